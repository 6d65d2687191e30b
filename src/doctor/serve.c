/* SPDX-License-Identifier: Apache-2.0
 *
 * The live page on the loopback interface, off by default. Its server is io/httpd.h, whose single thread
 * calls `answer`. libmicrohttpd is loaded when the first page is served, so a trainer does not load it or
 * the TLS libraries that it needs.
 */
#include <string.h>

#include <leat/doctor.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "doctor/frame.h"
#include "doctor/judge.h"
#include "doctor/report.h"
#include "doctor/serve.h"
#include "io/httpd.h"
#include "probe/meter.h"

#define FRAMES_SHOWN 1200u

/* ---- Answers, without HTTP ---- */

static int diagnose(leat_doctor_watch *w, leat_doctor_diagnosis *d)
{
    leat_doctor_facts facts;
    LEAT_TRY(leat_doctor_watch_facts(w, &facts, NULL));
    return leat_doctor_judge(&facts, d, sizeof *d, NULL);
}

static int frames_json(leat_doctor_frame *frames, size_t count, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_array(&j);
    for (size_t i = 0; i < count; i++) leat__frame_json(&j, &frames[i]);
    leat__json_end(&j);
    return leat__buf_status(out);
}

static int body_html(leat_doctor_watch *w, const leat_doctor_frame *frames, size_t count, leat__buf *out)
{
    leat_doctor_diagnosis *d = LEAT_NEW(DOCTOR, leat_doctor_diagnosis);
    int rc = d == NULL ? LEAT_ENOMEM : diagnose(w, d);
    if (rc == 0) leat__report_body(d, frames, count, out);
    leat__free(d);
    return rc;
}

static int doctor_json(leat_doctor_watch *w, leat__buf *out)
{
    leat_doctor_diagnosis *d = LEAT_NEW(DOCTOR, leat_doctor_diagnosis);
    int rc = d == NULL ? LEAT_ENOMEM : diagnose(w, d);
    if (rc == 0) leat__doctor_json(d, out);
    leat__free(d);
    return rc;
}

/* Writes the loader's own meters, and gauges from the last frame. */
static int metrics_text(const leat_doctor_frame *f, leat__buf *out)
{
    LEAT_TRY(leat__meters_openmetrics(NULL, out));
    if (f == NULL) return 0;
    const struct {
        const char *name, *help;
        double value;
    } rows[] = {{"samples_per_second", "samples delivered in the last interval", f->samples_per_s},
                {"data_wait_ratio", "share of the last interval spent waiting for data", f->lost},
                {"memory_blocked_ratio", "share in which work waited only for memory", f->blocked},
                {"cpus_used", "CPUs the process used", f->cpu_used},
                {"budget_used_bytes", "bytes charged to the budget", (double)f->budget_used},
                {"budget_limit_bytes", "the budget", (double)f->budget_limit},
                {"loader_threads", "CPU workers", f->threads},
                {"io_depth", "reads in flight at most", f->io_depth},
                {"prefetch_batches", "batches made ahead", f->prefetch},
                {"bad_samples", "damaged samples so far", (double)f->bad}};
    static const char eof[] = "# EOF\n";
    /* the end marker must be the last line */
    if (leat__str_ends(leat__buf_str(out), eof)) out->len -= sizeof eof - 1;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++)
        leat__buf_printf(out, "# TYPE leat_%s gauge\n# HELP leat_%s %s\nleat_%s %.9g\n", rows[i].name,
                         rows[i].name, rows[i].help, rows[i].name, rows[i].value);
    leat__buf_puts(out, eof);
    return leat__buf_status(out);
}

static const char *const no_page = "not found\n";

uint32_t leat__serve_answer(leat_doctor_watch *w, const char *path, leat__buf *out, const char **type)
{
    leat_doctor_frame *frames = LEAT_NEW_ARRAY(DOCTOR, leat_doctor_frame, FRAMES_SHOWN);
    size_t count = frames != NULL ? leat_doctor_watch_frames(w, frames, FRAMES_SHOWN) : 0;
    int rc = frames == NULL ? LEAT_ENOMEM : 0;
    uint32_t status = 200;

    *type = "text/html; charset=utf-8";
    if (rc != 0) {
    } else if (strcmp(path, "/") == 0) {
        leat__report_page("leat doctor, live", "<section><p>Waiting for the first measurement.</p></section>",
                          true, out);
    } else if (strcmp(path, "/body") == 0) {
        rc = body_html(w, frames, count, out);
    } else if (strcmp(path, "/doctor.json") == 0) {
        *type = "application/json";
        rc = doctor_json(w, out);
    } else if (strcmp(path, "/frames.json") == 0) {
        *type = "application/json";
        rc = frames_json(frames, count, out);
    } else if (strcmp(path, "/metrics") == 0) {
        *type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        rc = metrics_text(count > 0 ? &frames[count - 1] : NULL, out);
    } else {
        *type = "text/plain";
        leat__buf_puts(out, no_page);
        status = 404;
    }
    leat__free(frames);
    if (rc == 0) rc = leat__buf_status(out);
    if (rc == 0) return status;
    leat__buf_clear(out);
    *type = "text/plain";
    leat__buf_printf(out, "%s\n", leat_code_text(rc));
    return 500;
}

/* ---- The server ---- */

struct leat_doctor_server {
    leat__httpd *httpd;
    leat_doctor_watch *watch;
};

static void answer(void *cookie, const leat__httpd_request *r, leat__httpd_answer *a)
{
    const leat_doctor_server *s = cookie;
    a->policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                "connect-src 'self'; base-uri 'none'; form-action 'none'";
    a->status = leat__serve_answer(s->watch, r->path, &a->body, &a->type);
}

int leat_doctor_serve(leat_doctor_server **out, leat_doctor_watch *watch, uint16_t port, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    LEAT_REQUIRE(watch != NULL, err);
    leat_doctor_server *s = LEAT_NEW(DOCTOR, leat_doctor_server);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a server");
    s->watch = watch;
    const leat__httpd_opts o = {
        .port = port, .cat = LEAT__MEM_DOCTOR, .what = "the live page", .handler = answer, .cookie = s};
    int rc = leat__httpd_open(&s->httpd, &o, err);
    if (rc == 0) *out = s;
    else leat__free(s);
    return rc;
}

uint16_t leat_doctor_server_port(const leat_doctor_server *s)
{
    return s == NULL ? 0 : leat__httpd_port(s->httpd);
}

void leat_doctor_server_close(leat_doctor_server **out)
{
    if (out == NULL) return;
    leat_doctor_server *s = *out;
    if (s == NULL) return;
    leat__httpd_close(&s->httpd);
    leat__free(s);
    *out = NULL;
}
