/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML and SVG of report pages.
 */
#include "curate/report_page.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"

/* First bytes of a page and of its data, by which an earlier one is recognised. */
#define HTML_HEAD "<!DOCTYPE html>\n<!-- report of leat -->"
#define JSON_HEAD "{\"report\":\"leat\","
#define PLOT_WIDTH 360
#define PLOT_HEIGHT 90

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:left;vertical-align:top}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}tr:nth-child(even){background:#f5f5f5}"
    ".b{background:#e8e8e8;width:22em}.b div{background:#3b78b5;height:1em}"
    ".plots{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0}figcaption{font-weight:600}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f5;padding:.5em;margin:.3em 0;"
    "max-height:9em;overflow:auto}.kept{color:#2e7d32}.dropped{color:#c62828}";

void leat__page_begin(leat__buf *out, const char *title)
{
    leat__buf_puts(out,
                   HTML_HEAD "\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                             "style-src 'unsafe-inline'\">\n<title>");
    leat__page_text(out, title, strlen(title));
    leat__buf_printf(out, "</title><style>%s</style></head><body>\n<h1>", style);
    leat__page_text(out, title, strlen(title));
    leat__buf_puts(out, "</h1>\n");
}

void leat__page_end(leat__buf *out)
{
    leat__buf_puts(out, "</body></html>\n");
}

void leat__page_text(leat__buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        switch (text[i]) {
        case '<': leat__buf_puts(out, "&lt;"); break;
        case '>': leat__buf_puts(out, "&gt;"); break;
        case '&': leat__buf_puts(out, "&amp;"); break;
        case '"': leat__buf_puts(out, "&quot;"); break;
        case '\'': leat__buf_puts(out, "&#39;"); break;
        default: {
            bool control = (unsigned char)text[i] < ' ' || text[i] == 127;
            leat__buf_putc(out, control && text[i] != '\n' ? ' ' : text[i]);
        }
        }
    }
}

void leat__page_heading(leat__buf *out, const char *text)
{
    leat__buf_puts(out, "<h2>");
    leat__page_text(out, text, strlen(text));
    leat__buf_puts(out, "</h2>\n");
}

void leat__page_bars_begin(leat__buf *out)
{
    leat__buf_puts(out, "<table>\n");
}

void leat__page_bar(leat__buf *out, const char *name, double share, uint64_t count, const char *note)
{
    leat__buf_puts(out, "<tr><td>");
    leat__page_text(out, name, strlen(name));
    leat__buf_printf(out,
                     "</td><td><div class=\"b\"><div style=\"width:%.2f%%\"></div></div></td>"
                     "<td class=\"n\">%llu</td><td>",
                     100 * LEAT_MIN(LEAT_MAX(share, 0), 1), (unsigned long long)count);
    leat__page_text(out, note, strlen(note));
    leat__buf_puts(out, "</td></tr>\n");
}

void leat__page_bars_end(leat__buf *out)
{
    leat__buf_puts(out, "</table>\n");
}

static void put_rect(leat__buf *out, double x, double y, double width, double height, const char *fill)
{
    if (height > 0)
        leat__buf_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>", x,
                         y, width, height, fill);
}

void leat__page_histogram(leat__buf *out, const leat__page_plot *p)
{
    uint64_t most = 1;
    for (unsigned i = 0; i < p->bins; i++)
        most = LEAT_MAX(most, p->first[i] + (p->second ? p->second[i] : 0));
    leat__buf_puts(out, "<figure><figcaption>");
    leat__page_text(out, p->title, strlen(p->title));
    leat__buf_printf(out, "</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\">", PLOT_WIDTH,
                     PLOT_HEIGHT + 18);
    double width = (double)PLOT_WIDTH / p->bins, scale = (double)PLOT_HEIGHT / (double)most;
    for (unsigned i = 0; i < p->bins; i++) {
        double first = (double)p->first[i] * scale, second = p->second ? (double)p->second[i] * scale : 0;
        put_rect(out, i * width, PLOT_HEIGHT - first, width - 0.5, first, "#3b78b5");
        put_rect(out, i * width, PLOT_HEIGHT - first - second, width - 0.5, second, "#d9705a");
    }
    for (unsigned i = 0; i < p->mark_count; i++) {
        double x = LEAT_MIN(LEAT_MAX(p->marks[i], 0), p->bins) * width;
        leat__buf_printf(out, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"0\" y2=\"%d\" stroke=\"#222\"/>", x, x,
                         PLOT_HEIGHT);
    }
    leat__buf_printf(out,
                     "<line x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke=\"#888\"/>"
                     "<text x=\"0\" y=\"%d\" font-size=\"11\">",
                     PLOT_WIDTH, PLOT_HEIGHT, PLOT_HEIGHT, PLOT_HEIGHT + 13);
    leat__page_text(out, p->left, strlen(p->left));
    leat__buf_printf(out, "</text><text x=\"%d\" y=\"%d\" font-size=\"11\" text-anchor=\"end\">", PLOT_WIDTH,
                     PLOT_HEIGHT + 13);
    leat__page_text(out, p->right, strlen(p->right));
    leat__buf_puts(out, "</text></svg></figure>\n");
}

/* ---- files ---- */

typedef int (*path_function)(void *cookie, const char *path, bool html, leat_error *err);

static int each_path(const char *paths, path_function call, void *cookie, leat_error *err)
{
    char *list = leat__strdup(LEAT__MEM_CURATE, paths);
    int rc = list ? 0 : leat__fail_nomem(err, strlen(paths), "the report");
    for (char *path = list, *next; path && rc == 0; path = next) {
        next = strchr(path, ',');
        if (next) *next++ = 0;
        bool html = leat__str_ends(path, ".html");
        if (!html && !leat__str_ends(path, ".json"))
            rc = leat__fail(err, LEAT_EINVAL, "`report`: %s: the name must end in .html or .json", path);
        else rc = call(cookie, path, html, err);
    }
    leat__free(list);
    return rc;
}

static int check_path(void *cookie, const char *path, bool html, leat_error *err)
{
    const char *folder = cookie;
    size_t n = folder ? strlen(folder) : 0;
    while (n > 1 && folder[n - 1] == '/') n--;
    if (n == 0 || strncmp(path, folder, n) != 0 || !leat__str_eq(path + n, "/report.json")) return 0;
    return leat__fail(err, LEAT_EINVAL, "`report`: %s is written by the run itself: choose another name",
                      path);
}

/* Appends the path as an absolute path without "." and double slashes. */
static void put_absolute(leat__buf *out, const char *path)
{
    char here[4096];
    if (path[0] != '/' && getcwd(here, sizeof here)) leat__buf_puts(out, here);
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (n > 0 && !(n == 1 && path[0] == '.')) leat__buf_printf(out, "/%.*s", (int)n, path);
    }
}

/* True when the file is directly in a folder that does not exist yet and that the run creates. */
static bool in_new_folder(const char *path, const char *folder)
{
    leat__buf file, parent;
    if (!folder || access(folder, F_OK) == 0) return false;
    leat__buf_init(&file, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_init(&parent, LEAT__MEM_CURATE, 1u << 20);
    put_absolute(&file, path);
    put_absolute(&parent, folder);
    const char *name = strrchr(leat__buf_str(&file), '/');
    bool in = name && (size_t)(name - leat__buf_str(&file)) == parent.len &&
              memcmp(file.data, parent.data, parent.len) == 0;
    leat__buf_reset(&file);
    leat__buf_reset(&parent);
    return in;
}

static int check_kind(void *cookie, const char *path, bool html, leat_error *err)
{
    LEAT_TRY(check_path(cookie, path, html, err));
    int rc = in_new_folder(path, cookie) ? 0 : leat__file_spare_pack(path, err);
    if (rc == 0) rc = leat__file_only_kind(path, html ? HTML_HEAD : JSON_HEAD, true, err);
    if (rc != 0) leat__error_context(err, "`report`");
    return rc;
}

int leat__page_check(const char *paths, const char *folder, leat_error *err)
{
    return each_path(paths, check_kind, (void *)(uintptr_t)folder, err);
}

static int find_path(void *cookie, const char *path, bool html, leat_error *err)
{
    bool there;
    LEAT_TRY(leat__path_exists(path, &there, err));
    return there ? 0 : leat__fail(err, LEAT_EDATA, "%s: is missing (use `force` to start over)", path);
}

int leat__page_exists(const char *paths, leat_error *err)
{
    return each_path(paths, find_path, NULL, err);
}

static int store_path(void *cookie, const char *path, bool html, leat_error *err)
{
    const leat__buf *const *pages = cookie;
    return leat__file_store(path, pages[!html]->data, pages[!html]->len, err);
}

int leat__page_store(const char *paths, const leat__buf *html, const leat__buf *json, leat_error *err)
{
    const leat__buf *pages[2] = {html, json};
    if (html->status != 0 || json->status != 0) return leat__fail_nomem(err, html->len, "the report");
    return each_path(paths, store_path, pages, err);
}
