/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io/httpd.h"

static void only_this_machine_by_its_own_name(void **state)
{
    (void)state;
    assert_true(leat__httpd_host_ok("127.0.0.1:8080"));
    assert_true(leat__httpd_host_ok("localhost"));
    assert_true(leat__httpd_host_ok("[::1]:99"));
    assert_false(leat__httpd_host_ok("localhost.evil.example"));
    assert_false(leat__httpd_host_ok("127.0.0.1.evil.example:80"));
    assert_false(leat__httpd_host_ok(NULL));
    assert_false(leat__httpd_host_ok("127.0.0.1:80.evil.example"));
    assert_false(leat__httpd_host_ok("localhost:"));
    assert_false(leat__httpd_host_ok("localhost:123456"));
}

static void posts_come_from_own_pages(void **state)
{
    static const char host[] = "127.0.0.1:80";
    (void)state;
    assert_true(leat__httpd_origin_ok(NULL, host, NULL));
    assert_true(leat__httpd_origin_ok("http://127.0.0.1:80", host, "same-origin"));
    assert_true(leat__httpd_origin_ok(NULL, host, "none"));
    assert_false(leat__httpd_origin_ok(NULL, host, "cross-site"));
    assert_false(leat__httpd_origin_ok(NULL, host, "same-site"));
    assert_false(leat__httpd_origin_ok("http://127.0.0.1:81", host, NULL));
    assert_false(leat__httpd_origin_ok("null", host, NULL));
    assert_false(leat__httpd_origin_ok("https://evil.example", host, NULL));
    assert_false(leat__httpd_origin_ok("http://127.0.0.1.evil.example", host, NULL));
}

/* Returns the method, the path, the argument a, and the body. */
static void echo(void *cookie, const leat__httpd_request *r, leat__httpd_answer *a)
{
    const char *arg = r->arg(r->from, "a");
    ++*(int *)cookie;
    a->keep = strcmp(r->path, "/kept") == 0;
    leat__buf_printf(&a->body, "%s|%s|%s|%.*s", r->post ? "post" : "get", r->path, arg ? arg : "-",
                     (int)r->body_len, r->body);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

static void ask(uint16_t port, const char *request, char *reply, size_t size)
{
    const int fd = connect_to(port);
    size_t len = 0;
    ssize_t got;
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while (len + 1 < size && (got = recv(fd, reply + len, size - 1 - len, 0)) > 0) len += (size_t)got;
    reply[len] = '\0';
    close(fd);
}

static leat__httpd *serve(uint32_t threads, size_t body_max, int *calls)
{
    leat__httpd *h = NULL;
    const leat__httpd_opts o = {
        .threads = threads, .body_max = body_max, .what = "this test", .handler = echo, .cookie = calls};
    int rc = leat__httpd_open(&h, &o, NULL);
    if (rc == LEAT_ENOTSUP) skip();
    assert_ok(rc);
    return h;
}

#define END "Connection: close\r\n\r\n"

static void requests_reach_the_handler_decoded(void **state)
{
    char reply[65536];
    int calls = 0;
    leat__httpd *h = serve(2, 100, &calls);
    const uint16_t port = leat__httpd_port(h);
    ask(port, "GET /a%20b?a=%3Cx%3E HTTP/1.1\r\nHost: localhost\r\n" END, reply, sizeof reply);
    assert_contains(reply, "200 OK");
    assert_contains(reply, "get|/a b|<x>|");
    assert_contains(reply, "Cache-Control: no-store");
    assert_contains(reply, "X-Content-Type-Options: nosniff");
    assert_contains(reply, "Content-Security-Policy: default-src 'none'");
    ask(port, "GET /kept HTTP/1.1\r\nHost: localhost\r\n" END, reply, sizeof reply);
    assert_contains(reply, "max-age");
    ask(port, "POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n" END "hello", reply,
        sizeof reply);
    assert_contains(reply, "post|/p|-|hello");
    ask(port, "HEAD /p HTTP/1.1\r\nHost: localhost\r\n" END, reply, sizeof reply);
    assert_contains(reply, "200 OK");
    assert_null(strstr(reply, "get|"));
    assert_int_equal(calls, 4);
    leat__httpd_close(&h);
    assert_no_leaks();
}

static void others_are_refused(void **state)
{
    char reply[65536];
    int calls = 0;
    leat__httpd *h = serve(1, 4, &calls);
    const uint16_t port = leat__httpd_port(h);
    ask(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n" END, reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 403", 12);
    ask(port,
        "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n" END,
        reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 403", 12);
    ask(port,
        "POST / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
        "Content-Length: 0\r\n" END,
        reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 403", 12);
    ask(port, "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" END, reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 405", 12);
    ask(port, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n" END "hello", reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 413", 12);
    assert_int_equal(calls, 0);
    leat__httpd_close(&h);
    h = serve(1, 0, &calls);
    ask(leat__httpd_port(h), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" END, reply,
        sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 405", 12);
    leat__httpd_close(&h);
    leat__httpd_close(&h);
    assert_no_leaks();
}

/* More idle connections than the server holds: it still answers, and closing it does not wait for them. */
static void idle_connections_do_not_block_others(void **state)
{
    enum { IDLE = 200 };
    static int fds[IDLE];
    char reply[65536];
    int calls = 0;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        leat__httpd *h = serve(threads, 0, &calls);
        for (int i = 0; i < IDLE; i++) fds[i] = connect_to(leat__httpd_port(h));
        for (int i = 0; i < 20; i++) {
            ask(leat__httpd_port(h), "GET / HTTP/1.1\r\nHost: localhost\r\n" END, reply, sizeof reply);
            assert_contains(reply, "200 OK");
        }
        leat__httpd_close(&h);
        for (int i = 0; i < IDLE; i++) close(fds[i]);
    }
    assert_int_equal(calls, 40);
    assert_no_leaks();
}

static void a_taken_port_is_an_error(void **state)
{
    int calls = 0;
    leat_error err = {0};
    leat__httpd *h = serve(1, 0, &calls), *second;
    const leat__httpd_opts o = {.port = leat__httpd_port(h), .what = "this test", .handler = echo};
    assert_code(LEAT_EEXIST, leat__httpd_open(&second, &o, &err));
    assert_contains(err.message, "cannot be opened");
    assert_null(second);
    leat__httpd_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_this_machine_by_its_own_name),    cmocka_unit_test(posts_come_from_own_pages),
        cmocka_unit_test(requests_reach_the_handler_decoded),   cmocka_unit_test(others_are_refused),
        cmocka_unit_test(idle_connections_do_not_block_others), cmocka_unit_test(a_taken_port_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
