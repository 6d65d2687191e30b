/* SPDX-License-Identifier: Apache-2.0 */
#include "webtest.h"

#include "io/http.h"
#include "io/remote.h"

#include "leat_test.h"

#define SIZE (UINT64_C(40) << 20)
#define STEP ((size_t)64 << 10)

static web server;
static web_file file = {SIZE, "\"a\""};
static char url[128];

static void whole(web_request *q)
{
    web_range(q, q->w->cookie, 0);
}

static void begin(leat__remote **f, void (*answer)(web_request *q))
{
    web_environment();
    web_start(&server, answer, &file);
    snprintf(url, sizeof url, "%s/f", server.url);
    assert_ok(leat__remote_open(f, url, NULL));
}

static void end(leat__remote **f)
{
    leat__remote_close(f);
    web_stop(&server);
    assert_no_leaks();
}

static void read_at(leat__remote *f, uint64_t offset)
{
    static char buf[STEP];
    size_t got;
    assert_ok(leat__remote_pread(f, buf, STEP, offset, &got, NULL));
    it_check(buf, got, offset);
}

/* 640 sequential reads of a file: blocks of 4 MiB, joined in pairs. */
static void sequential_reads_come_in_blocks(void **state)
{
    leat__remote *f;
    (void)state;
    begin(&f, whole);
    for (uint64_t at = 0; at < SIZE; at += STEP) read_at(f, at);
    assert_true(server.requests < 20);
    end(&f);
}

static void random_reads_are_not_prefetched(void **state)
{
    leat__remote *f;
    leat__http_stats before, after;
    (void)state;
    begin(&f, whole);
    leat__http_read(&before);
    for (uint64_t i = 0; i < 20; i++) read_at(f, i * 7 % 20 * (2 << 20));
    leat__http_read(&after);
    assert_int_equal(after.bytes_in - before.bytes_in, 20 * STEP);
    end(&f);
}

static leat__remote *shared;

static void *reader(void *arg)
{
    for (uint64_t at = (uintptr_t)arg * STEP; at < SIZE / 2; at += 4 * STEP) {
        char *buf = malloc(STEP);
        size_t got;
        if (leat__remote_pread(shared, buf, STEP, at, &got, NULL) != 0 || got != STEP) abort();
        for (size_t i = 0; i < STEP; i += 97)
            if ((uint8_t)buf[i] != it_byte(at + i)) abort();
        free(buf);
    }
    return NULL;
}

static void threads_share_blocks(void **state)
{
    pthread_t t[4];
    (void)state;
    begin(&shared, whole);
    for (uintptr_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, reader, (void *)i), 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    end(&shared);
}

static void fails_later(web_request *q)
{
    if (q->number < 6) web_range(q, q->w->cookie, 0);
    else web_reply(q, "403 Forbidden", "", "", 0);
}

static void errors_name_the_readers_range(void **state)
{
    leat__remote *f;
    leat_error err;
    char *buf = malloc(STEP);
    int rc = 0;
    (void)state;
    begin(&f, fails_later);
    for (uint64_t at = 0; at < SIZE - (1 << 20) && rc == 0; at += STEP) {
        size_t got;
        rc = leat__remote_pread(f, buf, STEP, at, &got, &err);
        if (rc == 0) it_check(buf, got, at);
    }
    assert_int_equal(rc, LEAT_EPERM);
    assert_contains(err.message, "(bytes ");
    free(buf);
    end(&f);
}

int main(void)
{
    leat__http *http;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_reads_come_in_blocks),
        cmocka_unit_test(random_reads_are_not_prefetched),
        cmocka_unit_test(threads_share_blocks),
        cmocka_unit_test(errors_name_the_readers_range),
    };
    web_environment();
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
