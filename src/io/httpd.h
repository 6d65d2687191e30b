/* SPDX-License-Identifier: Apache-2.0
 *
 * A small HTTP server on the loopback interface, for pages that a person looks at. It answers only requests
 * for its own host names, so that another web page cannot reach it through a name that the page controls (DNS
 * rebinding). Every answer forbids the browser to load anything from other servers.
 *
 * libmicrohttpd is loaded when the first server is opened; its threads call the handler.
 */
#ifndef LEAT_IO_HTTPD_H
#define LEAT_IO_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct leat__httpd_request {
    bool post;        /* else GET or HEAD */
    const char *path; /* decoded, begins with '/' */
    const char *body; /* POST; ends with a NUL that is not counted */
    size_t body_len;
    /* Returns the decoded value of an argument of the query string; NULL when there is none. */
    const char *(*arg)(const void *from, const char *name);
    const void *from;
} leat__httpd_request;

/* The handler appends to `body`, whose maximum is ANSWER_MAX, and may change the rest. */
typedef struct leat__httpd_answer {
    uint32_t status;    /* 200 */
    const char *type;   /* "text/plain; charset=utf-8" */
    const char *policy; /* Content-Security-Policy; default-src 'none' */
    bool keep;          /* the browser may cache it, because it never changes; else no-store */
    leat__buf body;
} leat__httpd_answer;

#define LEAT__HTTPD_ANSWER_MAX ((size_t)256 << 20)

typedef struct leat__httpd_opts {
    uint16_t port;    /* 0 = any free one */
    uint32_t threads; /* threads that call the handler; 0 = 1 */
    size_t body_max;  /* of a POST; 0 = POST is refused */
    leat__mem_cat cat;
    const char *what; /* for messages: "the live page" */
    void (*handler)(void *cookie, const leat__httpd_request *request, leat__httpd_answer *answer);
    void *cookie;
} leat__httpd_opts;

typedef struct leat__httpd leat__httpd;

/* Starts a server. LEAT_ENOTSUP: libmicrohttpd is missing; LEAT_EEXIST: the port is in use. */
int leat__httpd_open(leat__httpd **h, const leat__httpd_opts *opts, leat_error *err) LEAT_MUST_CHECK;
/* Waits for running handlers, then stops the server. */
void leat__httpd_close(leat__httpd **h);
uint16_t leat__httpd_port(const leat__httpd *h);

/* True when a Host header names this machine's loopback interface, with any port. */
bool leat__httpd_host_ok(const char *host);
/* True when a POST may come from a page of this server, or from no page at all: by its headers Origin,
 * Host and Sec-Fetch-Site, each of which may be NULL. */
bool leat__httpd_origin_ok(const char *origin, const char *host, const char *site);

#endif
