/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis as HTML: the sentence, the possible rate of each part, the run over time, the
 * evidence and the remedies. One renderer for the saved report and for the live page.
 */
#include "doctor/report.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "doctor/bars.h"
#include "doctor/judge.h"
#include "doctor/origin.h"
#include "doctor/style.h"

#define PAGE_MAX ((size_t)16 << 20)
#define TEXT 24

void leat__html_text(leat__buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&': leat__buf_puts(out, "&amp;"); break;
        case '<': leat__buf_puts(out, "&lt;"); break;
        case '>': leat__buf_puts(out, "&gt;"); break;
        case '"': leat__buf_puts(out, "&quot;"); break;
        case '\'': leat__buf_puts(out, "&#39;"); break;
        default: leat__buf_putc(out, *text);
        }
    }
}

/* ---- Bars ---- */

static void bar_table(leat__buf *out, const char *title, const leat__bar *rows, uint32_t count)
{
    if (count == 0) return;
    leat__buf_printf(out, "<section><h2>%s</h2><table>\n", title);
    for (uint32_t i = 0; i < count; i++)
        leat__buf_printf(out,
                         "<tr><th>%s</th><td class=\"bar\"><i class=\"%s\" style=\"width:%.1f%%\">"
                         "</i></td><td class=\"num\">%s</td></tr>\n",
                         rows[i].name,
                         rows[i].limit     ? "bad"
                         : rows[i].reached ? "c3"
                                           : "c0",
                         100 * rows[i].share, rows[i].value);
    leat__buf_puts(out, "</table></section>\n");
}

static void bars(leat__buf *out, const leat_doctor_diagnosis *d)
{
    leat__bar rates[LEAT__RATE_BARS], shares[LEAT__SHARE_BARS];
    leat__buf_puts(out, "<div class=\"pair\">\n");
    bar_table(out, "Samples per second each part could deliver (logarithmic scale)", rates,
              leat__rate_bars(d, rates));
    bar_table(out, "Share of the time", shares, leat__share_bars(d, shares));
    leat__buf_puts(out, "</div>\n");
}

/* ---- Plots ---- */

#define CURVE(name, expression)                                                                              \
    static double name(const leat_doctor_frame *f)                                                           \
    {                                                                                                        \
        return (double)(expression);                                                                         \
    }
CURVE(samples_of, f->samples_per_s)
CURVE(lost_of, f->lost)
CURVE(blocked_of, f->blocked)
CURVE(cpu_of, f->cpu_used)
CURVE(decode_busy, f->busy[2])
CURVE(collate_busy, f->busy[3])
CURVE(order_busy, f->busy[0])
CURVE(read_ready, f->ready[1])
CURVE(decode_ready, f->ready[2])
CURVE(collate_ready, f->ready[3])
CURVE(used_of, f->budget_used)
CURVE(bytes_of, f->read_bytes_per_s)
CURVE(threads_of, f->threads)
CURVE(depth_of, f->io_depth)
CURVE(prefetch_of, f->prefetch)

static void plots(leat__buf *out, const leat_doctor_frame *frames, size_t count)
{
    static const leat__curve rate[] = {{"samples/s", "c0", samples_of}},
                             wait[] = {{"waiting for data", "bad", lost_of},
                                       {"blocked by memory", "c2", blocked_of}},
                             busy[] = {{"CPUs used", "c3", cpu_of},
                                       {"order", "c1", order_busy},
                                       {"decode", "c0", decode_busy},
                                       {"collate", "c2", collate_busy}},
                             ready[] = {{"read", "c1", read_ready},
                                        {"decode", "c0", decode_ready},
                                        {"collate", "c2", collate_ready}},
                             memory[] = {{"used", "c0", used_of}}, disk[] = {{"read", "c1", bytes_of}},
                             threads[] = {{"threads", "c0", threads_of}},
                             knobs[] = {{"reads in flight", "c1", depth_of},
                                        {"batches ahead", "c2", prefetch_of}};
    char title[64], text[TEXT];

    if (count < 2) return;
    leat__buf_puts(out, "<section class=\"plots\"><h2>The run</h2><div>\n");
    leat__svg_plot(out, "Samples per second", "", rate, LEAT_COUNT(rate), 0, frames, count);
    leat__svg_plot(out, "Share of the time", "%", wait, LEAT_COUNT(wait), 1, frames, count);
    leat__svg_plot(out, "Workers busy, CPUs used", "", busy, LEAT_COUNT(busy), 0, frames, count);
    leat__svg_plot(out, "Queues: share of the time with something waiting at", "%", ready, LEAT_COUNT(ready),
                   1, frames, count);
    /* the axis follows the usage, which may be far below the budget */
    snprintf(title, sizeof title, "Memory used, of a budget of %s",
             leat__format_bytes(frames[count - 1].budget_limit, text, TEXT));
    leat__svg_plot(out, title, "B", memory, LEAT_COUNT(memory), 0, frames, count);
    leat__svg_plot(out, "Bytes read per second", "B", disk, LEAT_COUNT(disk), 0, frames, count);
    leat__svg_plot(out, "Threads", "", threads, LEAT_COUNT(threads), 0, frames, count);
    leat__svg_plot(out, "Decided by the controller:", "", knobs, LEAT_COUNT(knobs), 0, frames, count);
    leat__buf_puts(out, "</div></section>\n");
}

/* ---- Text ---- */

static void list(leat__buf *out, const char *title, const char *lines, size_t width, uint32_t count)
{
    if (count == 0) return;
    leat__buf_printf(out, "<section><h2>%s</h2><ul>\n", title);
    for (uint32_t i = 0; i < count; i++) {
        leat__buf_puts(out, "<li>");
        leat__html_text(out, lines + i * width);
        leat__buf_puts(out, "</li>\n");
    }
    leat__buf_puts(out, "</ul></section>\n");
}

static void decision_table(leat__buf *out, const leat_doctor_facts *f)
{
    if (f->decision_count == 0) return;
    leat__buf_puts(out, "<section><h2>Decided by the controller");
    if (f->decisions_made > f->decision_count)
        leat__buf_printf(out, ", the last %u of %u", f->decision_count, f->decisions_made);
    leat__buf_puts(out, "</h2><table class=\"decisions\">\n");
    for (uint32_t i = 0; i < f->decision_count; i++) {
        const leat_doctor_decision *d = &f->decisions[i];
        leat__buf_printf(out, "<tr><th>%.2f s</th><th>", d->at_s);
        leat__html_text(out, d->knob);
        leat__buf_printf(out, " %u &rarr; %u</th><td>", d->from, d->to);
        leat__html_text(out, d->reason);
        leat__buf_puts(out, "</td></tr>\n");
    }
    leat__buf_puts(out, "</table></section>\n");
}

static void remedy_table(leat__buf *out, const leat_doctor_diagnosis *d)
{
    char text[TEXT];
    leat__buf_puts(out, "<section><h2>Remedies, by predicted gain</h2>\n");
    if (d->remedy_count == 0) leat__buf_puts(out, "<p>None with a known gain.</p>");
    leat__buf_puts(out, "<table class=\"remedies\">\n");
    for (uint32_t i = 0; i < d->remedy_count; i++) {
        const leat_doctor_remedy *r = &d->remedies[i];
        bool guess = r->basis == LEAT_BASIS_GUIDE, first = i == 0 || d->remedies[i - 1].basis != r->basis;
        if (guess && first)
            leat__buf_puts(out, "<tr><th colspan=\"2\">Estimates from published guides, not measured here"
                                "</th></tr>\n");
        leat__buf_printf(out, "<tr><td class=\"gain\">%.2f&times;</td><td>", r->gain);
        leat__html_text(out, r->action);
        leat__buf_printf(out, "<small>%s samples/s, then %s limits &middot; %s",
                         leat__format_count(r->rate, text, TEXT), leat_doctor_limit_name(r->next),
                         leat_doctor_basis_name(r->basis));
        if (r->set[0] != '\0') {
            leat__buf_puts(out, " &middot; <code>");
            leat__html_text(out, r->set);
            leat__buf_puts(out, "</code>");
        }
        leat__buf_puts(out, "</small></td></tr>\n");
    }
    leat__buf_puts(out, "</table></section>\n");
}

static void verdict(leat__buf *out, const leat_doctor_diagnosis *d)
{
    leat__buf_printf(out, "<section class=\"verdict %s\"><p id=\"verdict\">",
                     leat_doctor_grade_name(d->grade));
    leat__html_text(out, d->sentence);
    leat__buf_printf(out, "</p><small>%s &middot; confidence %.0f %%", leat_doctor_grade_name(d->grade),
                     100 * d->confidence);
    if (d->next != LEAT_LIMIT_NONE)
        leat__buf_printf(out, " &middot; next limit: %s", leat_doctor_limit_name(d->next));
    leat__buf_puts(out, "</small></section>\n");
}

void leat__report_body(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                       leat__buf *out)
{
    verdict(out, d);
    list(out, "Not known", d->missing[0], sizeof d->missing[0], d->missing_count);
    bars(out, d);
    plots(out, frames, count);
    decision_table(out, &d->facts);
    remedy_table(out, d);
    list(out, "Evidence", d->evidence[0], sizeof d->evidence[0], d->evidence_count);
    list(out, "Also found", d->findings[0], sizeof d->findings[0], d->finding_count);
}

static void put_origin(leat__buf *out)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_DOCTOR, 4096);
    leat__origin_text(&text);
    leat__html_text(out, leat__buf_str(&text));
    leat__buf_reset(&text);
}

void leat__report_page(const char *title, const char *body, bool live, leat__buf *out)
{
    leat__buf_puts(
        out, "<!doctype html>\n<!-- report of leat -->\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    leat__html_text(out, title);
    leat__buf_printf(out, "</title><style>%s</style></head><body><header><h1>", leat__report_style);
    leat__html_text(out, title);
    leat__buf_puts(out, "</h1>");
    if (live) leat__buf_puts(out, "<span id=\"state\">live</span>");
    leat__buf_puts(out, "</header><p class=\"origin\">");
    put_origin(out);
    leat__buf_puts(out, "</p><main id=\"main\">\n");
    leat__buf_puts(out, body);
    leat__buf_puts(out, "</main>");
    if (live) leat__buf_printf(out, "<script>%s</script>", leat__report_script);
    leat__buf_puts(out, "</body></html>\n");
}

int leat_doctor_report(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                       const char *title, int (*write)(void *cookie, const char *text, size_t len),
                       void *cookie, leat_error *err)
{
    LEAT_REQUIRE(d != NULL && write != NULL && (frames != NULL || count == 0), err);
    leat__buf body, page;
    leat__buf_init(&body, LEAT__MEM_DOCTOR, PAGE_MAX);
    leat__buf_init(&page, LEAT__MEM_DOCTOR, PAGE_MAX);
    leat__report_body(d, frames, count, &body);
    leat__report_page(title, leat__buf_str(&body), false, &page);
    int rc = leat__buf_status(&body) != 0 ? leat__buf_status(&body) : leat__buf_status(&page);
    if (rc != 0) leat__fail_nomem(err, page.len, "a report");
    else rc = write(cookie, leat__buf_str(&page), page.len);
    leat__buf_reset(&body);
    leat__buf_reset(&page);
    return rc;
}
