/* SPDX-License-Identifier: Apache-2.0
 *
 * See httpd.h. Only this file includes the header of libmicrohttpd.
 */
#include "io/httpd.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"

/* True for "" and for a colon with a port. It need not be our port, because ports may be forwarded. */
static bool is_port(const char *text)
{
    size_t digits = 0;
    if (text[0] == '\0') return true;
    if (text[0] != ':') return false;
    while (text[1 + digits] >= '0' && text[1 + digits] <= '9') digits++;
    return digits >= 1 && digits <= 5 && text[1 + digits] == '\0';
}

bool leat__httpd_host_ok(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host != NULL && i < LEAT_COUNT(names); i++) {
        size_t len = strlen(names[i]);
        if (strncmp(host, names[i], len) == 0 && is_port(host + len)) return true;
    }
    return false;
}

bool leat__httpd_origin_ok(const char *origin, const char *host, const char *site)
{
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) return false;
    if (origin == NULL) return true;
    return leat__str_starts(origin, "http://") && leat__str_eq(origin + strlen("http://"), host);
}

#ifdef LEAT_HAVE_HTTP
#include <arpa/inet.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define CONNECTIONS 64u /* open connections; a further one closes the oldest idle connection */
#define LIMIT 4096u     /* the library's own limit, at which it would accept nothing; never reached */
#define IDLE_S 5u

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
    const union MHD_ConnectionInfo *(*connection)(struct MHD_Connection *c, enum MHD_ConnectionInfoType type,
                                                  ...);
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
        {"MHD_get_connection_info", &mhd.connection},
    };
    void *lib = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    mhd.ok = lib != NULL;
    for (size_t i = 0; i < LEAT_COUNT(symbols) && mhd.ok; i++) {
        void *found = dlsym(lib, symbols[i].name);
        memcpy(symbols[i].slot, &found, sizeof found);
        mhd.ok = found != NULL;
    }
}

/* An open connection. */
typedef struct peer {
    int fd;
    bool busy;       /* the handler is running for this connection */
    bool dropped;    /* the socket was shut down and will be closed */
    uint64_t active; /* number of its last event; the lowest is idle longest */
    struct peer *next;
} peer;

struct leat__httpd {
    struct MHD_Daemon *daemon;
    leat__httpd_opts opts;
    uint16_t port;
    leat__mutex lock; /* guards the fields below */
    peer *peers;
    uint32_t peer_count; /* peers that were not dropped */
    uint64_t events;
};

/* Shuts down the oldest connection without a request in progress. Its thread closes it later; the descriptor
 * stays open while it is in the list. */
static void drop_oldest(leat__httpd *h)
{
    peer *oldest = NULL;
    for (peer *p = h->peers; p != NULL; p = p->next)
        if (!p->busy && !p->dropped && (oldest == NULL || p->active < oldest->active)) oldest = p;
    if (oldest == NULL) return;
    oldest->dropped = true;
    h->peer_count--;
    (void)!shutdown(oldest->fd, SHUT_RDWR);
}

static void on_connection(void *cookie, struct MHD_Connection *c, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    leat__httpd *h = cookie;
    leat__mutex_lock(&h->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = mhd.connection(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        peer *p = info != NULL ? LEAT_NEW(IO, peer) : NULL;
        if (p != NULL) {
            if (h->peer_count >= CONNECTIONS) drop_oldest(h);
            *p = (peer){.fd = info->connect_fd, .active = h->events++, .next = h->peers};
            h->peers = p;
            h->peer_count++;
            *state = p;
        }
    } else if (*state != NULL) {
        peer *p = *state, **at = &h->peers;
        while (*at != p) at = &(*at)->next;
        *at = p->next;
        if (!p->dropped) h->peer_count--;
        leat__free(p);
        *state = NULL;
    }
    leat__mutex_unlock(&h->lock);
}

/* Records that the connection is used; busy: it must not be dropped now. */
static void touch(leat__httpd *h, struct MHD_Connection *c, bool busy)
{
    const union MHD_ConnectionInfo *info = mhd.connection(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    peer *p = info != NULL ? info->socket_context : NULL;
    if (p == NULL) return;
    leat__mutex_lock(&h->lock);
    p->busy = busy;
    p->active = h->events++;
    leat__mutex_unlock(&h->lock);
}

/* The body of a POST while it arrives. */
typedef struct incoming {
    leat__buf body;
} incoming;

static enum MHD_Result send_answer(struct MHD_Connection *c, const leat__httpd_answer *a)
{
    struct MHD_Response *r =
        mhd.response(a->body.len, (void *)leat__buf_str(&a->body), MHD_RESPMEM_MUST_COPY);
    if (r == NULL) return MHD_NO;
    mhd.header(r, "Content-Type", a->type);
    mhd.header(r, "Cache-Control", a->keep ? "private, max-age=86400, immutable" : "no-store");
    mhd.header(r, "X-Content-Type-Options", "nosniff");
    mhd.header(r, "X-Frame-Options", "DENY");
    mhd.header(r, "Referrer-Policy", "no-referrer");
    mhd.header(r, "Cross-Origin-Resource-Policy", "same-origin");
    mhd.header(r, "Content-Security-Policy", a->policy);
    enum MHD_Result rc = mhd.queue(c, a->status, r);
    mhd.destroy(r);
    return rc;
}

static const char *find_arg(const void *from, const char *name)
{
    return mhd.lookup((struct MHD_Connection *)from, MHD_GET_ARGUMENT_KIND, name);
}

/* Returns 0, or the HTTP status that refuses the request. */
static uint32_t refusal(const leat__httpd *h, struct MHD_Connection *c, const char *method, bool *post)
{
    *post = strcmp(method, "POST") == 0;
    if (!leat__httpd_host_ok(mhd.lookup(c, MHD_HEADER_KIND, "Host"))) return 403;
    if (*post ? h->opts.body_max == 0 : strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) return 405;
    if (!*post) return 0; /* the server drops the body of an answer to HEAD */
    const bool ok = leat__httpd_origin_ok(mhd.lookup(c, MHD_HEADER_KIND, "Origin"),
                                          mhd.lookup(c, MHD_HEADER_KIND, "Host"),
                                          mhd.lookup(c, MHD_HEADER_KIND, "Sec-Fetch-Site"));
    return ok ? 0 : 403;
}

/* Collects the body of a POST. True when it is complete, or too long. */
static bool collect(const leat__httpd *h, const char *upload, size_t *upload_size, incoming **request)
{
    if (*request == NULL) {
        *request = LEAT_NEW(IO, incoming);
        if (*request) leat__buf_init(&(*request)->body, h->opts.cat, h->opts.body_max);
        return *request == NULL;
    }
    if (*upload_size == 0) return true;
    /* the status of the buffer is checked at the end */
    (void)!leat__buf_append(&(*request)->body, upload, *upload_size);
    *upload_size = 0;
    return false;
}

static enum MHD_Result on_request(void *cookie, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state)
{
    leat__httpd *h = cookie;
    incoming *in = *state;
    bool post;
    (void)version;
    leat__httpd_answer a = {.type = "text/plain; charset=utf-8", .policy = "default-src 'none'"};
    a.status = refusal(h, c, method, &post);
    if (a.status == 0 && post && !collect(h, upload, upload_size, &in)) {
        *state = in;
        return MHD_YES;
    }
    if (*upload_size > 0) return MHD_NO;
    leat__buf_init(&a.body, h->opts.cat, LEAT__HTTPD_ANSWER_MAX);
    if (a.status == 0 && post && (in == NULL || leat__buf_status(&in->body) != 0)) a.status = 413;
    if (a.status == 0) {
        const leat__httpd_request r = {.post = post,
                                       .path = url,
                                       .body = in ? leat__buf_str(&in->body) : "",
                                       .body_len = in ? in->body.len : 0,
                                       .arg = find_arg,
                                       .from = c};
        a.status = 200;
        touch(h, c, true);
        h->opts.handler(h->opts.cookie, &r, &a);
        touch(h, c, false);
        if (leat__buf_status(&a.body) != 0) {
            leat__buf_reset(&a.body);
            a.status = 500;
        }
    }
    enum MHD_Result rc = send_answer(c, &a);
    leat__buf_reset(&a.body);
    return rc;
}

static void on_end(void *cookie, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    incoming *in = *state;
    (void)cookie, (void)c, (void)why;
    if (in == NULL) return;
    leat__buf_reset(&in->body);
    leat__free(in);
    *state = NULL;
}

int leat__httpd_open(leat__httpd **out, const leat__httpd_opts *opts, leat_error *err)
{
    *out = NULL;
    leat__once_run(&mhd.once, load_library);
    if (!mhd.ok)
        return leat__fail(err, LEAT_ENOTSUP,
                          "%s needs libmicrohttpd, which is not installed (Debian: libmicrohttpd12)",
                          opts->what);
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(opts->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    leat__httpd *h = LEAT_NEW(IO, leat__httpd);
    if (h == NULL) return leat__fail_nomem(err, sizeof *h, "a server");
    h->opts = *opts;
    leat__mutex_init(&h->lock);
    /* MHD_USE_ITC: wakes threads that do not listen, so that they stop */
    h->daemon = mhd.start(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, opts->port, NULL,
                          NULL, on_request, h, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&where,
                          MHD_OPTION_CONNECTION_LIMIT, LIMIT, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
                          MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                          on_connection, h, opts->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END,
                          opts->threads, MHD_OPTION_END);
    if (h->daemon == NULL) {
        leat__mutex_destroy(&h->lock);
        leat__free(h);
        return leat__fail(err, LEAT_EEXIST, "port %u on 127.0.0.1 cannot be opened: is it in use?",
                          opts->port);
    }
    const union MHD_DaemonInfo *info = mhd.info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    h->port = info != NULL ? info->port : opts->port;
    *out = h;
    return 0;
}

void leat__httpd_close(leat__httpd **out)
{
    leat__httpd *h = *out;
    if (h == NULL) return;
    mhd.stop(h->daemon);
    leat__mutex_destroy(&h->lock);
    leat__free(h);
    *out = NULL;
}

uint16_t leat__httpd_port(const leat__httpd *h)
{
    return h == NULL ? 0 : h->port;
}

#else

int leat__httpd_open(leat__httpd **out, const leat__httpd_opts *opts, leat_error *err)
{
    *out = NULL;
    return leat__fail(err, LEAT_ENOTSUP,
                      "%s needs an HTTP server, which this build does not have "
                      "(libmicrohttpd)",
                      opts->what);
}

void leat__httpd_close(leat__httpd **out)
{
    *out = NULL;
}

uint16_t leat__httpd_port(const leat__httpd *h)
{
    (void)h;
    return 0;
}
#endif
