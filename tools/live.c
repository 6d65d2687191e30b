/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes a loader for commands: see live.h.
 */
#include "live.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli_frame.h"
#include "io/file.h"
#include "probe/trace.h"

#define REDRAW_NS (200 * LEAT_NS_PER_MS)
#define FRAMES 4096u
#define TEXT_MAX ((size_t)64 << 20)
#define TRACE_MAX ((size_t)1 << 30)

const leat__param cli_live_options[] = {
    CLI_FLAG("live", 0, "show stages, queues, rates, memory and the verdict while it runs"),
    CLI_INT("serve", 0, NULL, 0, 65535, "PORT", "the same as a page on 127.0.0.1, 0 = any free port"),
    CLI_FLAG("doctor", 0, "name the bottleneck at the end"),
    CLI_PATH("run-file", 0, NULL, "FILE", "record the run here for leat top and leat doctor --attach"),
    CLI_PATH("report", 0, NULL, "FILE", "write an HTML page with plots of the run here"),
    CLI_PATH("trace", 0, NULL, "FILE", "write a trace for chrome://tracing or Perfetto"),
    CLI_END,
};

struct live {
    cli *c;
    leat_doctor_watch *watch;
    leat_doctor_server *server;
    live_view view;
    bool draws, traces;
};

static int append(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

/* ---- The terminal ---- */

static uint32_t rows_of(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

/* Moves up over the lines of the last drawing and overwrites them. Draws at most as many lines as the
 * terminal has; otherwise moving up would miss the first. */
static void redraw(live_view *v, cli *c, int fd, const char *text, const leat_doctor_diagnosis *d)
{
    const char *colour = d->grade == LEAT_GRADE_CRITICAL  ? "\033[31m"
                         : d->grade == LEAT_GRADE_WARNING ? "\033[33m"
                                                          : "\033[32m";
    bool colours = fd == STDOUT_FILENO ? c->color_out : c->color_err;
    uint32_t rows = rows_of(fd);
    uint32_t lines = 0;
    leat__buf out;

    leat__buf_init(&out, LEAT__MEM_MISC, TEXT_MAX);
    leat__mutex_lock(&c->lock);
    if (v->lines > 0 && c->view_lines > 0) leat__buf_printf(&out, "\033[%uA", c->view_lines);
    for (const char *line = text; *line != '\0' && lines + 1 < rows; lines++) {
        size_t len = strcspn(line, "\n");
        bool verdict = colours && len > 0 && strncmp(line, d->sentence, len) == 0;
        if (verdict) leat__buf_printf(&out, "\033[1m%s", colour);
        leat__buf_append(&out, line, len);
        leat__buf_puts(&out, verdict ? "\033[0m\033[K\n" : "\033[K\n");
        line += len + (line[len] == '\n');
    }
    leat__buf_puts(&out, "\033[J"); /* erase the rest of an earlier, longer drawing */
    if (leat__buf_status(&out) == 0) {
        ssize_t written = write(fd, out.data, out.len);
        (void)written; /* an error of the view does not stop the run */
        v->lines = c->view_lines = lines;
        c->view_fd = fd;
    }
    leat__mutex_unlock(&c->lock);
    leat__buf_reset(&out);
}

void live_draw(live_view *v, cli *c, int fd, const leat_doctor_diagnosis *d, const leat_doctor_frame *frames,
               size_t count, const char *foot)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_MISC, TEXT_MAX);
    uint32_t columns = (uint32_t)cli_columns(fd);
    if (leat_doctor_top(d, frames, count, columns, !c->utf8, append, &text, NULL) == 0) {
        if (foot != NULL) leat__buf_printf(&text, "%.*s\n", (int)columns, foot);
        redraw(v, c, fd, leat__buf_str(&text), d);
    }
    leat__buf_reset(&text);
}

static int diagnose(leat_doctor_watch *w, leat_doctor_diagnosis *d, leat_error *err)
{
    leat_doctor_facts facts;
    LEAT_TRY(leat_doctor_watch_facts(w, &facts, err));
    return leat_doctor_judge(&facts, d, sizeof *d, err);
}

static bool on_screen(cli *c)
{
    leat__mutex_lock(&c->lock);
    bool drawn = c->view_lines > 0;
    leat__mutex_unlock(&c->lock);
    return drawn;
}

/* Keeps the last drawing on the screen; later text goes below it. */
static void leave_on_screen(cli *c)
{
    leat__mutex_lock(&c->lock);
    c->view_lines = 0;
    leat__mutex_unlock(&c->lock);
}

void live_show(live_view *v, cli *c, leat_doctor_watch *watch)
{
    static leat_doctor_diagnosis d; /* static: large, and used only by the main thread */
    leat_doctor_frame frames[64];

    if (!c->tty_err || c->quiet || (leat__clock_ns() < v->next_ns && on_screen(c))) return;
    v->next_ns = leat__clock_ns() + REDRAW_NS;
    size_t count = leat_doctor_watch_frames(watch, frames, sizeof frames / sizeof frames[0]);
    if (count == 0 || diagnose(watch, &d, NULL) != 0) return;
    live_draw(v, c, STDERR_FILENO, &d, frames, count, NULL);
}

/* ---- Files ---- */

static int store(cli *c, const char *path, const leat__buf *text, leat_error *err)
{
    LEAT_TRY(leat__file_store(path, leat__buf_str(text), text->len, err));
    cli_say(c, "wrote %s", path);
    return 0;
}

int live_report(cli *c, const char *path, const leat_doctor_diagnosis *d, const leat_doctor_frame *frames,
                size_t count, const char *title, leat_error *err)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_MISC, TEXT_MAX);
    char heading[512];
    snprintf(heading, sizeof heading, "%s%s", title, cli_arg_count(c) > 0 ? cli_arg(c, 0) : "the run");
    if (cli_arg_count(c) > 1)
        snprintf(heading, sizeof heading, "%s%s and %zu more", title, cli_arg(c, 0), cli_arg_count(c) - 1);
    leat__str_hide_secrets(heading, sizeof heading);
    int rc = leat_doctor_report(d, frames, count, heading, append, &text, err);
    if (rc == 0) rc = store(c, path, &text, err);
    leat__buf_reset(&text);
    return rc;
}

int live_trace_write(cli *c, const char *path, leat_error *err)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_MISC, TRACE_MAX);
    leat__trace_stop();
    int rc = leat__trace_json(&text);
    rc = rc == 0 ? store(c, path, &text, err) : leat__fail_nomem(err, text.len, "the trace");
    leat__buf_reset(&text);
    leat__trace_reset();
    return rc;
}

/* ---- A loader under watch ---- */

/* True for the same file, also under another name, or for the same name of a file that does not exist yet. */
static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    const bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
    if (has_a && has_b) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    return has_a == has_b && strcmp(a, b) == 0;
}

int live_check_outputs(cli *c, const live_output *written, size_t count, const char *const *others,
                       size_t other_count, leat_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *const path = cli_str(c, written[i].option);
        if (path == NULL) continue;
        LEAT_TRY(leat__file_spare_pack(path, err));
        for (size_t k = 0; k < i + other_count; k++) {
            const char *const name = k < i ? written[k].option : others[k - i], *const other =
                                                                                    cli_str(c, name);
            if (other != NULL && is_same(path, other))
                return leat__fail(err, LEAT_EINVAL, "%s: --%s and --%s name the same file", path, name,
                                  written[i].option);
        }
        if (leat__file_only_kind(path, written[i].head, true, err) != 0)
            return leat__error_context(err, "--%s", written[i].option);
    }
    return 0;
}

int live_open(live **out, cli *c, leat_loader *loader, leat_error *err)
{
    bool draws = cli_flag(c, "live"), serves = cli_given(c, "serve"), traces = cli_str(c, "trace") != NULL;
    int rc = 0;

    *out = NULL;
    if (!draws && !serves && !traces && !cli_flag(c, "doctor") && cli_str(c, "run-file") == NULL &&
        cli_str(c, "report") == NULL)
        return 0;
    live *l = LEAT_NEW(MISC, live);
    if (l == NULL) return leat__fail_nomem(err, sizeof *l, "a view");
    l->c = c;
    l->draws = draws && c->tty_err && !c->quiet;
    LEAT_GO(rc, out, leat_doctor_watch_open(&l->watch, loader, 0, err));
    if (cli_str(c, "run-file") != NULL)
        LEAT_GO(rc, out, leat_doctor_watch_record(l->watch, cli_str(c, "run-file"), err));
    if (serves) {
        LEAT_GO(rc, out, leat_doctor_serve(&l->server, l->watch, (uint16_t)cli_int(c, "serve"), err));
        cli_say(c, "live page: http://127.0.0.1:%u/", leat_doctor_server_port(l->server));
    }
    if (traces) LEAT_GO(rc, out, leat__trace_start(0, err));
    l->traces = traces;
    *out = l;
    l = NULL;
out:
    if (l != NULL) {
        leat_doctor_server_close(&l->server);
        leat_doctor_watch_close(&l->watch);
        leat__free(l);
    }
    return rc;
}

bool live_draws(const live *l)
{
    return l != NULL && l->draws;
}

void live_tick(live *l)
{
    if (live_draws(l)) live_show(&l->view, l->c, l->watch);
}

static int end_run(live *l, leat_error *err)
{
    const char *path = cli_str(l->c, "run-file");
    if (path == NULL) return 0;
    LEAT_TRY(leat_doctor_watch_record(l->watch, NULL, err));
    cli_say(l->c, "wrote %s", path);
    return 0;
}

static int finish(live *l, leat_error *err)
{
    cli *c = l->c;
    leat_doctor_diagnosis *d = LEAT_NEW(MISC, leat_doctor_diagnosis);
    leat_doctor_frame *frames = LEAT_NEW_ARRAY(MISC, leat_doctor_frame, FRAMES);
    int rc = d == NULL || frames == NULL ? leat__fail_nomem(err, sizeof *d, "a diagnosis") : 0;

    if (rc == 0) rc = diagnose(l->watch, d, err);
    if (rc == 0) rc = end_run(l, err);
    if (rc == 0 && cli_str(c, "report") != NULL)
        rc = live_report(c, cli_str(c, "report"), d, frames,
                         leat_doctor_watch_frames(l->watch, frames, FRAMES), "leat: ", err);
    if (rc == 0 && cli_flag(c, "doctor")) {
        cli_tell(c, "%s", d->sentence);
        for (uint32_t i = 0; i < d->remedy_count && i < 3; i++)
            cli_tell(c, "  %.2fx %s", d->remedies[i].gain, d->remedies[i].action);
    }
    if (l->traces) {
        int traced = live_trace_write(c, cli_str(c, "trace"), rc == 0 ? err : NULL);
        if (rc == 0) rc = traced;
    }
    leat__free(frames);
    leat__free(d);
    return rc;
}

int live_close(live **out, leat_error *err)
{
    live *l = *out;
    if (l == NULL) return 0;
    if (l->draws) {
        l->view.next_ns = 0;
        live_show(&l->view, l->c, l->watch);
        leave_on_screen(l->c);
    }
    int rc = finish(l, err);
    leat_doctor_server_close(&l->server);
    leat_doctor_watch_close(&l->watch);
    leat__free(l);
    *out = NULL;
    return rc;
}
