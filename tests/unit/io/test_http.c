/* SPDX-License-Identifier: Apache-2.0 */
#include "webtest.h"

#include "base/clock.h"
#include "io/http.h"

#include "leat_test.h"

static web server;
static leat__http *http;

static int prepare(leat__http_req *r, leat_error *err)
{
    (void)err;
    LEAT_TRY(leat__buf_printf(&r->url, "%s/x", server.url));
    return leat__http_header(r, "X-Test", "yes");
}

static const leat__http_ops plain = {.prepare = prepare};

static int run(leat__http_req *r, const char *method, leat_error *err)
{
    r->ops = &plain;
    r->what = "test";
    r->method = method;
    return leat__http_run(http, r, err);
}

static void begin(void (*answer)(web_request *q))
{
    web_start(&server, answer, NULL);
    assert_ok(leat__http_ref(&http, NULL));
}

static void end(void)
{
    leat__http_unref(&http);
    assert_null(http);
    web_stop(&server);
    assert_no_leaks();
}

static void ok(web_request *q)
{
    char value[16];
    assert_true(web_header(q, "x-test", value, sizeof value));
    if (strncmp(q->head, "PUT", 3) == 0) web_reply(q, "200 OK", "", q->body, q->body_len);
    else web_reply(q, "200 OK", "ETag: \"e\"\r\nContent-Range: bytes 3-7/90\r\n", "hello", 5);
}

static void answers_are_read(void **state)
{
    (void)state;
    begin(ok);
    leat__http_req r = {0};
    assert_ok(run(&r, "GET", NULL));
    assert_int_equal(r.status, 200);
    assert_string_equal(r.etag, "\"e\"");
    assert_true(r.has_range && r.range_first == 3 && r.range_last == 7 && r.range_total == 90);
    assert_memory_equal(r.body.data, "hello", 5);
    leat__http_req_reset(&r);
    leat__http_req head = {0};
    assert_ok(run(&head, "HEAD", NULL));
    assert_int_equal(head.length, 5);
    leat__http_req_reset(&head);
    char *big = malloc(3 << 20);
    memset(big, 'x', 3 << 20);
    leat__http_req put = {.send = big, .send_len = 3 << 20, .body_max = 4 << 20};
    assert_ok(run(&put, "PUT", NULL));
    assert_int_equal(put.body.len, 3 << 20);
    leat__http_req_reset(&put);
    free(big);
    end();
}

static void busy_twice(web_request *q)
{
    if (q->number == 1) web_reply(q, "503 Slow Down", "", "<Code>SlowDown</Code>", 21);
    else if (q->number == 2) q->close = true; /* no answer at all */
    else web_reply(q, "200 OK", "", "late", 4);
}

static void transient_failures_are_retried(void **state)
{
    leat__http_stats before, after;
    (void)state;
    leat__http_read(&before);
    begin(busy_twice);
    leat__http_req r = {0};
    assert_ok(run(&r, "GET", NULL));
    assert_int_equal(server.requests, 3);
    assert_in_range(r.attempts, 2, 3); /* libcurl repeats by itself when a kept connection was closed */
    assert_memory_equal(r.body.data, "late", 4);
    leat__http_req_reset(&r);
    end();
    leat__http_read(&after);
    assert_in_range(after.requests - before.requests, 2, 3);
    assert_in_range(after.retries - before.retries, 1, 2);
    assert_int_equal(after.throttled - before.throttled, 1); /* the 503 */
    assert_int_equal(after.answers - before.answers, 2);
    assert_true(after.waited_ns > before.waited_ns);
}

static void always_busy(web_request *q)
{
    web_reply(q, "500 Broken", "", "<Error><Code>InternalError</Code><Message>try later</Message></Error>",
              69);
}

static void attempts_are_limited(void **state)
{
    leat_error err;
    (void)state;
    begin(always_busy);
    leat__http_req r = {0};
    assert_code(LEAT_EIO, run(&r, "GET", &err));
    assert_int_equal(r.attempts, 4); /* LEAT_REMOTE_TRIES */
    assert_contains(err.message, "gave up after 4 attempts");
    assert_contains(err.message, "500 InternalError: try later");
    leat__http_req_reset(&r);
    leat__http_req one = {.once = true};
    assert_code(LEAT_EIO, run(&one, "GET", &err));
    assert_int_equal(one.attempts, 1);
    leat__http_req_reset(&one);
    end();
}

static void refused(web_request *q)
{
    web_reply(q, "404 Not Found", "", "", 0);
}

static void final_answers_are_not_retried(void **state)
{
    leat_error err;
    (void)state;
    begin(refused);
    leat__http_req r = {0};
    assert_code(LEAT_ENOENT, run(&r, "GET", &err));
    assert_int_equal(r.attempts, 1);
    leat__http_req_reset(&r);
    end();
}

static void silent(web_request *q)
{
    if (q->number == 1) {
        usleep(2500000);
        q->close = true;
    } else {
        web_reply(q, "200 OK", "", "awake", 5);
    }
}

static void stalled_answer_is_retried(void **state)
{
    (void)state;
    begin(silent);
    leat__http_req r = {0};
    assert_ok(run(&r, "GET", NULL));
    assert_int_equal(r.attempts, 2);
    leat__http_req_reset(&r);
    end();
}

static atomic_int canceled;

static void count_canceled(leat__http_req *r)
{
    if (r->rc == LEAT_ECANCELED) atomic_fetch_add(&canceled, 1);
    leat__http_req_reset(r);
}

static void requests_of_an_owner_are_canceled(void **state)
{
    static const leat__http_ops ops = {.prepare = prepare, .done = count_canceled};
    static leat__http_req r[8];
    (void)state;
    begin(always_busy);
    for (int i = 0; i < 8; i++) {
        r[i] = (leat__http_req){.ops = &ops,
                                .what = "test",
                                .method = "GET",
                                .owner = &canceled,
                                .delay_ns = i < 4 ? 0 : 3600 * LEAT_NS_PER_S};
        leat__http_submit(http, &r[i]);
    }
    leat__http_cancel(http, &canceled);
    leat__http_unref(&http); /* waits for all of them */
    assert_int_equal(atomic_load(&canceled), 8);
    web_stop(&server);
    assert_no_leaks();
}

/* A cancel does not affect requests submitted after it, however soon. */
static void later_requests_are_not_canceled(void **state)
{
    static const leat__http_ops ops = {.prepare = prepare, .done = count_canceled};
    (void)state;
    begin(ok);
    for (int i = 0; i < 100; i++) {
        leat__http_req gone = {.ops = &ops,
                               .what = "test",
                               .method = "GET",
                               .owner = &canceled,
                               .delay_ns = 3600 * LEAT_NS_PER_S};
        leat__http_req stays = {.owner = &canceled};
        int before = atomic_load(&canceled);
        leat__http_submit(http, &gone);
        leat__http_cancel(http, &canceled);
        assert_ok(run(&stays, "GET", NULL));
        leat__http_req_reset(&stays);
        while (atomic_load(&canceled) == before) usleep(100);
    }
    end();
}

/* Memory outside the budget: small beside the range, and never more than one of malloc's heap blocks. */
static void receive_buffers_follow_the_range(void **state)
{
    (void)state;
    assert_true(leat__http_buffer_bytes(110 << 10) <= 28 << 10);
    assert_true(leat__http_buffer_bytes(1) == 16 << 10);
    assert_true(leat__http_buffer_bytes(UINT64_C(8) << 20) == 100 << 10);
    assert_true(leat__http_buffer_bytes(0) == 100 << 10); /* unknown */
}

static void nothing_listens(void **state)
{
    leat_error err;
    (void)state;
    begin(ok);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:1");
    leat__http_req r = {.once = true};
    assert_code(LEAT_EIO, run(&r, "GET", &err));
    assert_contains(err.message, "test: GET: ");
    leat__http_req_reset(&r);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(transient_failures_are_retried),
        cmocka_unit_test(attempts_are_limited),
        cmocka_unit_test(final_answers_are_not_retried),
        cmocka_unit_test(stalled_answer_is_retried),
        cmocka_unit_test(requests_of_an_owner_are_canceled),
        cmocka_unit_test(later_requests_are_not_canceled),
        cmocka_unit_test(nothing_listens),
        cmocka_unit_test(receive_buffers_follow_the_range),
    };
    web_environment();
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
