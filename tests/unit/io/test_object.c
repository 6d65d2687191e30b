/* SPDX-License-Identifier: Apache-2.0 */
#include "buckettest.h"

#include "base/clock.h"
#include "base/num.h"
#include "io/object.h"

#include "leat_test.h"

#define PART ((size_t)1 << 20)

static web server;
static bucket store_data;
static leat__store *store;

static void begin(void)
{
    bucket_start(&store_data, &server);
    assert_ok(leat__store_open(&store, "s3://b/", NULL));
}

static void end(void)
{
    leat__store_close(&store);
    bucket_stop(&store_data, &server);
    assert_no_leaks();
}

static void put_stat_delete(void **state)
{
    leat__object o;
    leat_error err;
    (void)state;
    begin();
    assert_code(LEAT_ENOENT, leat__object_stat(store, "s3://b/a/x", &o, &err));
    assert_contains(err.message, "s3://b/a/x");
    assert_ok(leat__object_put(store, "s3://b/a/x", "hello", 5, true, NULL));
    assert_ok(leat__object_stat(store, "s3://b/a/x", &o, NULL));
    assert_int_equal(o.size, 5);
    assert_int_not_equal(o.tag, 0);
    assert_code(LEAT_EEXIST, leat__object_put(store, "s3://b/a/x", "other", 5, true, &err));
    assert_contains(err.message, "s3://b/a/x: already exists");
    assert_ok(leat__object_put(store, "s3://b/a/x", "", 0, false, NULL));
    assert_ok(leat__object_stat(store, "s3://b/a/x", &o, NULL));
    assert_int_equal(o.size, 0);
    end();
}

typedef struct seen {
    int count, stop_at;
    uint64_t bytes;
    char last[64];
} seen;

static int see(void *cookie, const leat__object *o, leat_error *err)
{
    seen *s = cookie;
    (void)err;
    s->bytes += o->size;
    snprintf(s->last, sizeof s->last, "%s", o->key);
    return ++s->count == s->stop_at ? LEAT_ECANCELED : 0;
}

static void lists_page_by_page(void **state)
{
    char path[64];
    seen s = {0};
    (void)state;
    begin();
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "s3://b/k %d", i); /* the fake bucket keeps it encoded */
        assert_ok(leat__object_put(store, path, "1234", 4, false, NULL));
    }
    int before = server.requests;
    assert_ok(leat__object_list(store, "s3://b/k", false, see, &s, NULL));
    assert_int_equal(s.count, 8);
    assert_int_equal(s.bytes, 32);
    assert_string_equal(s.last, "k 7");
    assert_int_equal(server.requests - before, 3);
    assert_contains(server.last, "list-type=2&prefix=k");
    s = (seen){.stop_at = 2};
    assert_code(LEAT_ECANCELED, leat__object_list(store, "s3://b/k", false, see, &s, NULL));
    assert_int_equal(s.count, 2);
    end();
}

static void a_list_that_is_cut_off_is_asked_for_again(void **state)
{
    seen s = {0};
    (void)state;
    begin();
    assert_ok(leat__object_put(store, "s3://b/k1", "1234", 4, false, NULL));
    assert_ok(leat__object_put(store, "s3://b/k2", "1234", 4, false, NULL));
    store_data.cut_lists = 2;
    assert_ok(leat__object_list(store, "s3://b/k", false, see, &s, NULL));
    assert_int_equal(s.count, 2);
    end();
}

static const char *odd_list;

static void answer_odd_list(web_request *q)
{
    web_reply(q, "200 OK", "", odd_list, strlen(odd_list));
}

/* Lists that are incomplete, endless, or of another prefix are errors. */
static void odd_lists_are_errors(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
         "does not name the next page"},
        {"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
         "</ListBucketResult>",
         "names the same page again"},
        {"<ListBucketResult><Contents><Key>other/x</Key><Size>1</Size></Contents></ListBucketResult>",
         "\"other/x\", which does not begin with \"p/\""},
        {"<ListBucketResult><CommonPrefixes><Prefix>q/</Prefix></CommonPrefixes></ListBucketResult>",
         "\"q/\", which does not begin with \"p/\""}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        seen s = {0};
        leat_error err;
        begin();
        odd_list = cases[i].text;
        server.answer = answer_odd_list;
        assert_code(LEAT_EDATA, leat__object_list(store, "s3://b/p/", true, see, &s, &err));
        assert_contains(err.message, cases[i].message);
        assert_int_equal(s.count, 0);
        end();
    }
}

static void lists_folders(void **state)
{
    seen s = {0};
    (void)state;
    begin();
    assert_ok(leat__object_put(store, "s3://b/p/a/1", "1", 1, false, NULL));
    assert_ok(leat__object_put(store, "s3://b/p/a/2", "1", 1, false, NULL));
    assert_ok(leat__object_put(store, "s3://b/p/x", "123", 3, false, NULL));
    assert_ok(leat__object_list(store, "s3://b/p/", true, see, &s, NULL));
    assert_int_equal(s.count, 2);
    assert_int_equal(s.bytes, 3);
    assert_string_equal(s.last, "p/a/"); /* objects of a page come first */
    end();
}

static void gets_many_at_once(void **state)
{
    leat__object_get g[4] = {{.path = "s3://b/1", .max = 100},
                             {.path = "s3://b/none", .max = 100},
                             {.path = "s3://b/2", .max = 3},
                             {.path = "s3:///", .max = 1}};
    (void)state;
    begin();
    assert_ok(leat__object_put(store, "s3://b/1", "hello", 5, false, NULL));
    assert_ok(leat__object_put(store, "s3://b/2", "hello", 5, false, NULL));
    leat__object_get_all(g, 4);
    assert_ok(g[0].rc);
    assert_int_equal(g[0].body.len, 5);
    assert_memory_equal(g[0].body.data, "hello", 5);
    assert_code(LEAT_ENOENT, g[1].rc);
    assert_contains(g[1].err.message, "s3://b/none");
    assert_code(LEAT_ELIMIT, g[2].rc);
    assert_code(LEAT_EINVAL, g[3].rc);
    for (int i = 0; i < 4; i++) leat__buf_reset(&g[i].body);
    end();
}

static int upload(const char *dir, size_t size, bool absent, leat_error *err)
{
    leat__file *f;
    leat__upload_opts o = {.part_bytes = PART, .absent = absent};
    it_make(it_path(dir, "f"), size);
    assert_ok(leat__file_open(&f, it_path(dir, "f"), LEAT__FILE_READ, NULL));
    int rc = leat__object_upload(store, "s3://b/up", f, &o, err);
    leat__file_close(&f);
    return rc;
}

static void check_object(size_t size)
{
    bucket_object *o = bucket_find(&store_data, "up", false);
    assert_non_null(o);
    assert_int_equal(o->len, size);
    it_check(o->data, size, 0);
}

static void uploads_in_parts(void **state)
{
    char *dir = it_dir();
    (void)state;
    begin();
    assert_ok(upload(dir, 1000, false, NULL)); /* small: one request */
    check_object(1000);
    assert_int_equal(store_data.parts, 0);
    store_data.fail_parts = 2; /* sent again */
    assert_ok(upload(dir, 5 * PART + 17, false, NULL));
    check_object(5 * PART + 17);
    assert_int_equal(store_data.parts, 6);
    assert_int_equal(store_data.completed, 1);
    store_data.fail_completes = 2; /* 200 with InternalError in the body: sent again */
    assert_ok(upload(dir, 3 * PART, false, NULL));
    check_object(3 * PART);
    assert_int_equal(store_data.completed, 2);
    store_data.lose_completes = 2; /* 200 without a whole result: sent again */
    assert_ok(upload(dir, 4 * PART, false, NULL));
    check_object(4 * PART);
    assert_int_equal(store_data.completed, 3);
    assert_int_equal(store_data.aborted, 0);
    it_rmdir(dir);
    end();
}

static void a_failed_upload_leaves_nothing(void **state)
{
    char *dir = it_dir();
    leat_error err;
    (void)state;
    begin();
    store_data.fail_parts = 1000;
    assert_code(LEAT_EIO, upload(dir, 3 * PART, false, &err));
    assert_contains(err.message, "s3://b/up: PUT: the server answered 500");
    assert_int_equal(store_data.aborted, 1);
    store_data.fail_parts = 0;
    store_data.fail_completes = 1000; /* status 200, and an error in the body */
    assert_int_not_equal(upload(dir, 3 * PART, false, &err), 0);
    assert_contains(err.message, "InternalError");
    assert_int_equal(store_data.aborted, 2);
    store_data.fail_completes = 0;
    store_data.lose_completes = 1000;
    assert_code(LEAT_EIO, upload(dir, 3 * PART, false, &err));
    assert_contains(err.message, "answered 200, but not that the object is complete");
    assert_null(bucket_find(&store_data, "up", false));
    it_rmdir(dir);
    end();
}

static int stop(void *cookie, uint64_t done, uint64_t total)
{
    (void)cookie, (void)done, (void)total;
    return 1;
}

/* A token allows Google's own condition, for whole objects only. Parts have none: the object is asked for. */
static void google_writes(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    const leat__upload_opts o = {.part_bytes = PART, .absent = true};
    (void)state;
    bucket_start(&store_data, &server);
    setenv("GS_ENDPOINT_URL", server.url, 1);
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29", 1);
    assert_ok(leat__store_open(&store, "gs://b/", NULL));
    assert_ok(leat__object_put(store, "gs://b/x", "hello", 5, true, NULL));
    assert_contains(server.last, "x-goog-if-generation-match: 0");
    assert_int_equal(server.requests, 2);
    assert_code(LEAT_EEXIST, leat__object_put(store, "gs://b/x", "other", 5, true, NULL));
    assert_int_equal(server.requests, 3); /* it was only asked for */
    assert_ok(leat__object_put(store, "gs://b/x", "other", 5, false, NULL));
    assert_null(strstr(server.last, "x-goog-if"));
    it_make(it_path(dir, "f"), 3 * PART);
    assert_ok(leat__file_open(&f, it_path(dir, "f"), LEAT__FILE_READ, NULL));
    assert_ok(leat__object_upload(store, "gs://b/up", f, &o, NULL));
    assert_null(strstr(server.last, "x-goog-if"));
    assert_code(LEAT_EEXIST, leat__object_upload(store, "gs://b/up", f, &o, NULL));
    assert_int_equal(store_data.completed, 1);
    leat__file_close(&f);
    it_rmdir(dir);
    end();
}

static void an_upload_is_stopped(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat__upload_opts o = {.part_bytes = PART, .progress = stop};
    (void)state;
    begin();
    it_make(it_path(dir, "f"), 3 * PART);
    assert_ok(leat__file_open(&f, it_path(dir, "f"), LEAT__FILE_READ, NULL));
    assert_code(LEAT_ECANCELED, leat__object_upload(store, "s3://b/up", f, &o, NULL));
    assert_int_equal(store_data.aborted, 1);
    leat__file_close(&f);
    it_rmdir(dir);
    end();
}

static void answer_late(web_request *q)
{
    if (strncmp(q->head, "PUT", 3) == 0) usleep(2000000);
    bucket_answer(q);
}

static int stop_later(void *cookie, uint64_t done, uint64_t total)
{
    int *calls = cookie;
    (void)done, (void)total;
    return ++*calls > 5;
}

/* `progress` is called while a request is in flight; a stop ends the request. */
static void an_upload_in_flight_is_stopped(void **state)
{
    (void)state;
    for (size_t parts = 1; parts <= 3; parts += 2) {
        char *dir = it_dir();
        leat__file *f;
        leat_error err;
        int calls = 0;
        leat__upload_opts o = {
            .part_bytes = PART, .note = it_path(dir, "note"), .progress = stop_later, .cookie = &calls};
        begin();
        it_make(it_path(dir, "f"), parts * PART);
        assert_ok(leat__file_open(&f, it_path(dir, "f"), LEAT__FILE_READ, NULL));
        server.answer = answer_late;
        uint64_t begun = leat__clock_ns();
        assert_code(LEAT_ECANCELED, leat__object_upload(store, "s3://b/up", f, &o, &err));
        assert_true(leat__clock_ns() - begun < 1900 * LEAT_NS_PER_MS);
        assert_contains(err.message, "s3://b/up: the upload was interrupted");
        assert_int_equal(store_data.completed, 0);
        leat__file_close(&f);
        end();
        it_rmdir(dir);
    }
}

static void a_web_server_is_not_written(void **state)
{
    leat__store *web_store;
    leat_error err;
    seen s = {0};
    (void)state;
    begin();
    assert_ok(leat__store_open(&web_store, server.url, NULL));
    assert_code(LEAT_ENOTSUP, leat__object_put(web_store, server.url, "", 0, false, &err));
    assert_contains(err.message, "s3://");
    assert_code(LEAT_ENOTSUP, leat__object_list(web_store, server.url, false, see, &s, &err));
    leat__store_close(&web_store);
    end();
}

int main(void)
{
    leat__http *http;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_stat_delete),
        cmocka_unit_test(lists_page_by_page),
        cmocka_unit_test(a_list_that_is_cut_off_is_asked_for_again),
        cmocka_unit_test(odd_lists_are_errors),
        cmocka_unit_test(lists_folders),
        cmocka_unit_test(gets_many_at_once),
        cmocka_unit_test(uploads_in_parts),
        cmocka_unit_test(a_failed_upload_leaves_nothing),
        cmocka_unit_test(google_writes),
        cmocka_unit_test(an_upload_is_stopped),
        cmocka_unit_test(an_upload_in_flight_is_stopped),
        cmocka_unit_test(a_web_server_is_not_written),
    };
    web_environment(); /* before the limits are read */
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
