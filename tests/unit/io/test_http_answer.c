/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "io/http_answer.h"

static void say(leat__http_req *r, const char *line)
{
    leat__http_answer_header(r, line, strlen(line));
}

static void ranges(void **state)
{
    static const struct {
        const char *line;
        bool valid;
    } rows[] = {{"Content-Range: bytes 5-9/10", true},   {"content-range:bytes 0-0/1", true},
                {"Content-Range: bytes 5-9/*", false},   {"Content-Range: bytes 5-9/-5", false},
                {"Content-Range: bytes abc", false},     {"Content-Range: bytes 9-5/10", false},
                {"Content-Range: bytes 5-10/10", false}, {"Content-Range: items 5-9/10", false},
                {"X-Content-Range: bytes 5-9/10", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat__http_req r = {.status = 206};
        leat__buf_init(&r.body, LEAT__MEM_IO, 64);
        leat__http_answer_clear(&r);
        say(&r, rows[i].line);
        assert_int_equal(r.has_range, rows[i].valid);
        if (r.has_range) assert_true(r.range_first <= r.range_last && r.range_last < r.range_total);
        leat__buf_reset(&r.body);
    }
}

static void fields(void **state)
{
    leat__http_req r = {.status = 200};
    (void)state;
    leat__buf_init(&r.body, LEAT__MEM_IO, 64);
    say(&r, "ETag: \"abc\"");
    say(&r, "Last-Modified: Mon, 16 Nov 2026 00:00:00 GMT");
    say(&r, "x-amz-bucket-region:  eu-west-1");
    say(&r, "Content-Length: 123");
    say(&r, "Retry-After: 100000");
    say(&r, "no colon");
    assert_string_equal(r.etag, "\"abc\"");
    assert_string_equal(r.modified, "Mon, 16 Nov 2026 00:00:00 GMT");
    assert_string_equal(r.region, "eu-west-1");
    assert_int_equal(r.length, 123);
    assert_int_equal(r.retry_after_s, 30); /* at most */
    leat__http_answer_clear(&r);
    assert_int_equal(r.status, 0);
    assert_string_equal(r.etag, "");
    assert_true(r.length == UINT64_MAX && r.retry_after_s == 0);
    leat__buf_reset(&r.body);
}

static void answers_are_explained(void **state)
{
    static const char said[] = "<Error><Code>AccessDenied</Code><Message>not yours</Message></Error>";
    leat__http_req r = {.status = 403, .what = "s3://b/k", .method = "GET"};
    (void)state;
    leat__buf_init(&r.url, LEAT__MEM_IO, 256);
    leat__buf_init(&r.body, LEAT__MEM_IO, 256);
    leat__buf_puts(&r.body, said);
    assert_int_equal(leat__http_explain(&r), LEAT_EPERM);
    assert_string_equal(r.err.message, "s3://b/k: GET: the server answered 403 AccessDenied: not yours");
    assert_false(leat__http_transient(&r));
    r.status = 503;
    assert_true(leat__http_transient(&r));
    r.status = 501;
    assert_false(leat__http_transient(&r));
    assert_int_equal(leat__http_explain(&r), LEAT_ENOTSUP);
    leat__buf_reset(&r.url);
    leat__buf_reset(&r.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges), cmocka_unit_test(fields),
                                       cmocka_unit_test(answers_are_explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
