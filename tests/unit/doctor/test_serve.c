/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "doctor/serve.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-serve.leat"

static leat_loader *loader;
static leat_doctor_watch *watch;

static int setup(void **state)
{
    leat_loader_opts o;
    leat_batch *b = NULL;
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 100, .classes = 2});
    leat_loader_opts_init(&o);
    o.batch_size = 5;
    o.ops = "RandomResizedCrop(16)";
    o.threads = 2;
    assert_ok(leat_loader_open(&loader, PACK, &o, NULL));
    assert_ok(leat_doctor_watch_open(&watch, loader, 5, NULL));
    assert_ok(leat_loader_begin(loader, 0, NULL));
    for (;;) {
        assert_ok(leat_loader_next(loader, &b, -1, NULL));
        if (b == NULL) break;
        leat__sleep_ns(2 * LEAT_NS_PER_MS);
        leat_batch_release(&b);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leat_doctor_watch_close(&watch);
    leat_loader_close(&loader);
    return unlink(PACK) != 0 || leat__mem_blocks() != 0;
}

static leat__buf answer(const char *path, uint32_t wanted, const char *wanted_type)
{
    leat__buf out;
    const char *type;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 24);
    assert_int_equal(leat__serve_answer(watch, path, &out, &type), wanted);
    assert_contains(type, wanted_type);
    return out;
}

static void every_page_is_there(void **state)
{
    (void)state;
    leat__buf out = answer("/", 200, "text/html");
    assert_contains(out.data, "fetch('/body'");
    leat__buf_reset(&out);
    out = answer("/body", 200, "text/html");
    assert_contains(out.data, "id=\"verdict\"");
    assert_contains(out.data, "<polyline");
    leat__buf_reset(&out);
    out = answer("/nothing", 404, "text/plain");
    leat__buf_reset(&out);
}

static void json_is_json(void **state)
{
    static const char *const paths[] = {"/doctor.json", "/frames.json"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        leat__buf out = answer(paths[i], 200, "application/json");
        json_t *root = json_loadb(out.data, out.len, 0, NULL);
        assert_non_null(root);
        if (i == 0) assert_non_null(json_object_get(root, "verdict"));
        if (i == 1) assert_true(json_array_size(root) > 2);
        json_decref(root);
        leat__buf_reset(&out);
    }
}

/* Each family once, and the end mark last, as OpenMetrics requires. */
static void metrics_end_once(void **state)
{
    leat__buf out = answer("/metrics", 200, "openmetrics");
    (void)state;
    assert_contains(out.data, "leat_data_seconds");
    assert_contains(out.data, "# TYPE leat_samples_per_second gauge\n");
    assert_contains(out.data, "\nleat_loader_threads 2\n");
    const char *end = strstr(out.data, "# EOF\n");
    assert_non_null(end);
    assert_int_equal(end[6], '\0');
    leat__buf_reset(&out);
}

static void ask(uint16_t port, const char *request, char *reply, size_t size)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t len = 0;
    ssize_t got;
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    while (len + 1 < size && (got = recv(fd, reply + len, size - 1 - len, 0)) > 0) len += (size_t)got;
    reply[len] = '\0';
    close(fd);
}

static void a_server_answers_get_and_nothing_else(void **state)
{
    leat_doctor_server *s, *second;
    static char reply[1 << 20];
    leat_error err = {0};
    (void)state;
    int rc = leat_doctor_serve(&s, watch, 0, &err);
    if (rc == LEAT_ENOTSUP) skip();
    assert_ok(rc);
    uint16_t port = leat_doctor_server_port(s);
    assert_true(port > 0);
    ask(port, "GET /body HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 200", 12);
    assert_contains(reply, "Content-Security-Policy: default-src 'none'");
    assert_contains(reply, "id=\"verdict\"");
    ask(port, "GET / HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n", reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 403", 12);
    ask(port, "DELETE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", reply, sizeof reply);
    assert_memory_equal(reply, "HTTP/1.1 405", 12);
    assert_code(LEAT_EEXIST, leat_doctor_serve(&second, watch, port, &err));
    assert_contains(err.message, "cannot be opened");
    leat_doctor_server_close(&s);
    leat_doctor_server_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_is_there),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(metrics_end_once),
        cmocka_unit_test(a_server_answers_get_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
