/* SPDX-License-Identifier: Apache-2.0 */
#include "buckettest.h"

#include "io/dir_ahead.h"
#include "io/object.h"

#include "leat_test.h"

static web server;
static bucket store_data;

static void put(const char *key)
{
    pthread_mutex_lock(&store_data.lock);
    bucket_store(&store_data, key, "abc", 3);
    pthread_mutex_unlock(&store_data.lock);
}

static void prefetched_lists_are_equal(void **state)
{
    leat__dir d = {0}, plain = {0};
    leat_error err;
    (void)state;
    bucket_start(&store_data, &server);
    put("p/b/2.jpg");
    put("p/a/1.jpg");
    put("p/a/sub/x.jpg");
    put("p/a/2.jpg");
    put("p/a/");
    leat__dir_ahead *a = leat__dir_ahead_open();
    assert_true(leat__dir_ahead_want(a, "s3://b/p/a/"));
    assert_true(leat__dir_ahead_want(a, "s3://b/p/a/"));
    assert_true(leat__dir_ahead_want(a, "s3://b/p/b/")); /* never read: close waits for it */
    assert_ok(leat__dir_ahead_read(a, &d, "s3://b/p/a/", NULL));
    assert_ok(leat__dir_ahead_read(a, &plain, "s3://b/p/a/", NULL));
    leat__dir_sort(&d, strcmp);
    leat__dir_sort(&plain, strcmp);
    assert_int_equal(d.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(leat__dir_name(&d, i), leat__dir_name(&plain, i));
        assert_int_equal(d.entries[i].tag, plain.entries[i].tag);
    }
    assert_string_equal(leat__dir_name(&d, 0), "1.jpg");
    assert_int_equal(d.entries[0].size, 3);
    assert_int_not_equal(d.entries[0].tag, 0);
    assert_string_equal(leat__dir_name(&d, 2), "sub");
    assert_int_equal(d.entries[2].kind, LEAT__ENTRY_FOLDER);
    for (int i = 0; i < 40; i++) {
        char path[40];
        snprintf(path, sizeof path, "s3://b/p/none%d/", i);
        if (!leat__dir_ahead_want(a, path)) i = 40;
        else assert_true(i < LEAT__DIR_AHEAD);
    }
    leat__dir_ahead_close(&a);
    bucket_stop(&store_data, &server);
    setenv("LEAT_REMOTE_TRIES", "1", 1);
    a = leat__dir_ahead_open();
    assert_true(leat__dir_ahead_want(a, "s3://b/p/a/"));
    assert_int_not_equal(leat__dir_ahead_read(a, &d, "s3://b/p/a/", &err), 0);
    assert_contains(err.message, "s3://b/p/a/");
    leat__dir_ahead_close(&a);
    leat__dir_reset(&d);
    leat__dir_reset(&plain);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prefetched_lists_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
