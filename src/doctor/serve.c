/* SPDX-License-Identifier: Apache-2.0
 *
 * The live page: a small HTTP server on the loopback interface, off unless asked for. Answers GET
 * only, for its own host names only (a page elsewhere must not reach it with its own name), and
 * sends nothing that would make a browser fetch anything from anywhere else.
 *
 * libmicrohttpd is loaded when the first page is served: a trainer does not load it and the TLS
 * libraries that it needs. Its header stays in this file; its one thread calls `answer`.
 */
#include <string.h>

#include <leat/doctor.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "doctor/frame.h"
#include "doctor/judge.h"
#include "doctor/report.h"
#include "doctor/serve.h"
#include "probe/meter.h"

#define ANSWER_MAX ((size_t)16 << 20)
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

/* The loader's own meters, and gauges from the last frame. */
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
    /* it must come last */
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
        leat__report_page("leat doctor, live",
                          "<section><p>Waiting for the first measurement.</p></section>", true, out);
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

bool leat__serve_host_ok(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host != NULL && i < LEAT_COUNT(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(host, names[i], len) == 0 && (host[len] == '\0' || host[len] == ':')) return true;
    }
    return false;
}

/* ---- The server ---- */

#ifdef LEAT_HAVE_HTTP
#include <arpa/inet.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct {
    leat__once once;
    bool ok;
    struct MHD_Daemon *(*start)(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                void *accept_cookie, MHD_AccessHandlerCallback handler, void *cookie, ...);
    void (*stop)(struct MHD_Daemon *daemon);
    const union MHD_DaemonInfo *(*info)(struct MHD_Daemon *daemon, enum MHD_DaemonInfoType type, ...);
    struct MHD_Response *(*response)(size_t len, void *data, enum MHD_ResponseMemoryMode mode);
    enum MHD_Result (*header)(struct MHD_Response *r, const char *name, const char *value);
    enum MHD_Result (*queue)(struct MHD_Connection *c, unsigned status, struct MHD_Response *r);
    void (*destroy)(struct MHD_Response *r);
    const char *(*lookup)(struct MHD_Connection *c, enum MHD_ValueKind kind, const char *key);
} mhd = {.once = LEAT__ONCE_INIT};

static void load_library(void)
{
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"MHD_start_daemon", &mhd.start},
        {"MHD_stop_daemon", &mhd.stop},
        {"MHD_get_daemon_info", &mhd.info},
        {"MHD_create_response_from_buffer", &mhd.response},
        {"MHD_add_response_header", &mhd.header},
        {"MHD_queue_response", &mhd.queue},
        {"MHD_destroy_response", &mhd.destroy},
        {"MHD_lookup_connection_value", &mhd.lookup},
    };
    void *lib = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    mhd.ok = lib != NULL;
    for (size_t i = 0; i < LEAT_COUNT(symbols) && mhd.ok; i++) {
        void *found = dlsym(lib, symbols[i].name);
        memcpy(symbols[i].slot, &found, sizeof found);
        mhd.ok = found != NULL;
    }
}

struct leat_doctor_server {
    struct MHD_Daemon *daemon;
    leat_doctor_watch *watch;
    uint16_t port;
};

static enum MHD_Result send_text(struct MHD_Connection *c, uint32_t status, const char *type,
                                 const leat__buf *text)
{
    struct MHD_Response *r = mhd.response(text->len, (void *)leat__buf_str(text), MHD_RESPMEM_MUST_COPY);
    if (r == NULL) return MHD_NO;
    mhd.header(r, "Content-Type", type);
    mhd.header(r, "Cache-Control", "no-store");
    mhd.header(r, "X-Content-Type-Options", "nosniff");
    mhd.header(r, "Content-Security-Policy",
               "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
               "connect-src 'self'; base-uri 'none'; form-action 'none'");
    enum MHD_Result rc = mhd.queue(c, status, r);
    mhd.destroy(r);
    return rc;
}

static enum MHD_Result answer(void *cookie, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    leat_doctor_server *s = cookie;
    const char *type = "text/plain", *host = mhd.lookup(c, MHD_HEADER_KIND, "Host");
    leat__buf out;
    uint32_t status = 403;

    (void)version;
    (void)upload;
    (void)request;
    if (*upload_size > 0) return MHD_NO;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, ANSWER_MAX);
    if (strcmp(method, "GET") != 0)
        status = 405;
    else if (leat__serve_host_ok(host))
        status = leat__serve_answer(s->watch, url, &out, &type);
    enum MHD_Result rc = send_text(c, status, type, &out);
    leat__buf_reset(&out);
    return rc;
}

int leat_doctor_serve(leat_doctor_server **out, leat_doctor_watch *watch, uint16_t port, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    LEAT_REQUIRE(watch != NULL, err);
    leat__once_run(&mhd.once, load_library);
    if (!mhd.ok)
        return leat__fail(err, LEAT_ENOTSUP,
                          "the live page needs libmicrohttpd, which is not installed "
                          "(Debian: libmicrohttpd12)");
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    leat_doctor_server *s = LEAT_NEW(DOCTOR, leat_doctor_server);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a server");
    s->watch = watch;
    s->daemon = mhd.start(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, port, NULL, NULL, answer, s,
                          MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&where, MHD_OPTION_CONNECTION_LIMIT, 16u,
                          MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
    if (s->daemon == NULL) {
        leat__free(s);
        return leat__fail(err, LEAT_EEXIST, "port %u on 127.0.0.1 cannot be opened: is it taken?", port);
    }
    const union MHD_DaemonInfo *info = mhd.info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info != NULL ? info->port : port;
    *out = s;
    return 0;
}

uint16_t leat_doctor_server_port(const leat_doctor_server *s)
{
    if (s == NULL) return 0;
    return s->port;
}

void leat_doctor_server_close(leat_doctor_server **out)
{
    if (out == NULL) return;
    leat_doctor_server *s = *out;
    if (s == NULL) return;
    mhd.stop(s->daemon);
    leat__free(s);
    *out = NULL;
}

#else

int leat_doctor_serve(leat_doctor_server **out, leat_doctor_watch *watch, uint16_t port, leat_error *err)
{
    (void)watch;
    (void)port;
    *out = NULL;
    return leat__fail(err, LEAT_ENOTSUP, "this build has no HTTP server (libmicrohttpd)");
}

uint16_t leat_doctor_server_port(const leat_doctor_server *s)
{
    (void)s;
    return 0;
}

void leat_doctor_server_close(leat_doctor_server **out)
{
    *out = NULL;
}
#endif
