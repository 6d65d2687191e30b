/* SPDX-License-Identifier: Apache-2.0
 *
 * A web server on 127.0.0.1 for tests of remote reads: a thread per connection; a function of the
 * test makes the answers.
 */
#ifndef WEBTEST_H
#define WEBTEST_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "iotest.h"

typedef struct web web;
typedef struct web_request {
    web *w;
    char *head; /* request line and headers */
    char *body;
    size_t body_len;
    int number; /* of the request, from 1 */
    int fd;
    bool close; /* set by the answer: end the connection */
} web_request;

struct web {
    void (*answer)(web_request *q);
    void *cookie;
    int fd;
    unsigned short port;
    pthread_t thread;
    atomic_int requests, threads;
    pthread_mutex_t lock; /* guards `last`: each connection has a thread */
    char last[4096];      /* head of the last request */
    char url[64];         /* http://127.0.0.1:port */
};

static inline void web_send(web_request *q, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = send(q->fd, p, len, MSG_NOSIGNAL);
        if (n <= 0) return;
        p += n;
        len -= (size_t)n;
    }
}

/* A whole answer. `headers`: lines that end with \r\n. */
static inline void web_reply(web_request *q, const char *status, const char *headers, const void *body,
                             size_t len)
{
    char head[1024];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, headers, len);
    web_send(q, head, (size_t)n);
    if (strncmp(q->head, "HEAD", 4) != 0) web_send(q, body, len);
}

static inline bool web_header(const web_request *q, const char *name, char *value, size_t size)
{
    char want[128];
    snprintf(want, sizeof want, "\r\n%s: ", name);
    const char *at = strcasestr(q->head, want);
    value[0] = '\0';
    if (at == NULL) return false;
    at += strlen(want);
    snprintf(value, size, "%.*s", (int)strcspn(at, "\r"), at);
    return true;
}

static inline bool web_read(web_request *q)
{
    size_t len = 0;
    char text[64];
    q->head = calloc(1, 65536);
    while (len < 65535 && (len < 4 || memcmp(q->head + len - 4, "\r\n\r\n", 4) != 0)) {
        if (recv(q->fd, q->head + len, 1, 0) != 1) return false;
        len++;
    }
    if (!web_header(q, "content-length", text, sizeof text)) return true;
    q->body_len = strtoul(text, NULL, 10);
    q->body = calloc(1, q->body_len + 1);
    for (size_t got = 0; got < q->body_len;) {
        ssize_t n = recv(q->fd, q->body + got, q->body_len - got, 0);
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

typedef struct web_connection {
    web *w;
    int fd;
} web_connection;

static inline void *web_serve(void *arg)
{
    web_connection c = *(web_connection *)arg;
    free(arg);
    for (bool more = true; more;) {
        web_request q = {.w = c.w, .fd = c.fd};
        more = web_read(&q);
        if (more) {
            q.number = atomic_fetch_add(&c.w->requests, 1) + 1;
            pthread_mutex_lock(&c.w->lock);
            snprintf(c.w->last, sizeof c.w->last, "%s", q.head);
            pthread_mutex_unlock(&c.w->lock);
            c.w->answer(&q);
            more = !q.close;
        }
        free(q.head);
        free(q.body);
    }
    close(c.fd);
    atomic_fetch_sub(&c.w->threads, 1);
    return NULL;
}

static inline void *web_accept(void *arg)
{
    web *w = arg;
    for (int fd; (fd = accept(w->fd, NULL, NULL)) >= 0;) {
        pthread_t t;
        web_connection *c = malloc(sizeof *c);
        *c = (web_connection){w, fd};
        atomic_fetch_add(&w->threads, 1);
        assert_int_equal(pthread_create(&t, NULL, web_serve, c), 0);
        pthread_detach(t);
    }
    return NULL;
}

static inline void web_start(web *w, void (*answer)(web_request *q), void *cookie)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->answer = answer;
    w->cookie = cookie;
    w->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(w->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(w->fd, 128), 0);
    assert_int_equal(getsockname(w->fd, (struct sockaddr *)&a, &len), 0);
    w->port = ntohs(a.sin_port);
    snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u", w->port);
    assert_int_equal(pthread_create(&w->thread, NULL, web_accept, w), 0);
}

/* After the client has closed its connections. */
static inline void web_stop(web *w)
{
    shutdown(w->fd, SHUT_RDWR);
    close(w->fd);
    pthread_join(w->thread, NULL);
    for (int i = 0; i < 6000 && atomic_load(&w->threads) > 0; i++) usleep(10000);
    assert_int_equal(atomic_load(&w->threads), 0);
}

/* Serves `size` bytes of it_byte() by ranges, with an ETag. */
typedef struct web_file {
    uint64_t size;
    const char *etag;
} web_file;

static inline void web_range(web_request *q, const web_file *f, size_t cut)
{
    char text[128], head[512];
    unsigned long long first = 0, last = f->size - 1, tail;
    web_header(q, "range", text, sizeof text);
    if (sscanf(text, "bytes=-%llu", &tail) == 1) first = tail < f->size ? f->size - tail : 0;
    else sscanf(text, "bytes=%llu-%llu", &first, &last);
    if (last >= f->size) last = f->size - 1;
    size_t len = (size_t)(last - first + 1);
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 206 Partial Content\r\nETag: %s\r\nContent-Range: bytes "
                     "%llu-%llu/%llu\r\nContent-Length: %zu\r\n\r\n",
                     f->etag, first, last, (unsigned long long)f->size, len);
    web_send(q, head, (size_t)n);
    char *body = malloc(len);
    for (size_t i = 0; i < len; i++) body[i] = (char)it_byte(first + i);
    if (cut > 0 && cut < len) {
        len = cut;
        q->close = true;
    }
    web_send(q, body, len);
    free(body);
}

/* Keeps the user's own configuration out of the tests. */
static inline void web_environment(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "GS_ACCESS_KEY_ID",
                                        "GS_SECRET_ACCESS_KEY",
                                        "GOOGLE_OAUTH_ACCESS_TOKEN",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AZURE_STORAGE_ACCOUNT",
                                        "AZURE_STORAGE_KEY",
                                        "AZURE_STORAGE_SAS_TOKEN",
                                        "LEAT_ANONYMOUS",
                                        "http_proxy",
                                        "HTTP_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("NO_PROXY", "127.0.0.1", 1);
    setenv("LEAT_REMOTE_STALL_S", "1", 1);
    setenv("LEAT_REMOTE_TRIES", "4", 1);
}

#endif
