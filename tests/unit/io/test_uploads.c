/* SPDX-License-Identifier: Apache-2.0 */
#include "buckettest.h"

#include "io/object.h"
#include "base/num.h"
#include "io/uploads.h"

#include "leat_test.h"

#define PART ((size_t)1 << 20)

static web server;
static bucket store_data;
static leat__store *store;
static char *dir;

static int begin(void **state)
{
    (void)state;
    dir = it_dir();
    bucket_start(&store_data, &server);
    assert_ok(leat__store_open(&store, "s3://b/", NULL));
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat__store_close(&store);
    bucket_stop(&store_data, &server);
    it_rmdir(dir);
    assert_no_leaks();
    return 0;
}

static int stop_late(void *cookie, uint64_t done, uint64_t total)
{
    (void)cookie, (void)total;
    return done >= 2 * PART;
}

static int send_file(size_t size, bool stop, leat_error *err)
{
    leat__file *f;
    leat__upload_opts o = {
        .part_bytes = PART, .note = it_path(dir, "note"), .progress = stop ? stop_late : NULL};
    it_make(it_path(dir, "f"), size);
    assert_ok(leat__file_open(&f, it_path(dir, "f"), LEAT__FILE_READ, NULL));
    int rc = leat__object_upload(store, "s3://b/dir/up", f, &o, err);
    leat__file_close(&f);
    return rc;
}

static bool noted(void)
{
    leat__upload_note n;
    return leat__upload_note_read(it_path(dir, "note"), &n);
}

static void stopped_upload_resumes_at_the_part(void **state)
{
    (void)state;
    assert_code(LEAT_ECANCELED, send_file(9 * PART + 5, true, NULL));
    assert_true(noted());
    assert_int_equal(store_data.aborted, 0);
    int sent = bucket_parts(&store_data);
    assert_in_range(sent, 2, 9);
    assert_ok(send_file(9 * PART + 5, false, NULL));
    assert_int_equal(bucket_parts(&store_data), 10); /* none was sent twice */
    assert_false(noted());
    bucket_object *o = bucket_find(&store_data, "dir/up", false);
    assert_int_equal(o->len, 9 * PART + 5);
    it_check(o->data, o->len, 0);
}

static void another_file_is_another_upload(void **state)
{
    (void)state;
    assert_code(LEAT_ECANCELED, send_file(9 * PART, true, NULL));
    assert_ok(send_file(5 * PART, false, NULL));
    assert_int_equal(store_data.aborted, 1);
    assert_int_equal(bucket_find(&store_data, "dir/up", false)->len, 5 * PART);
    /* a damaged note counts as none */
    it_make(it_path(dir, "note"), 100);
    assert_false(noted());
    assert_ok(send_file(3 * PART, false, NULL));
}

static int see(void *cookie, const leat__upload_info *u, leat_error *err)
{
    int *count = cookie;
    (void)err;
    ++*count;
    assert_string_equal(u->key, "dir/up");
    assert_string_equal(u->id, "up/1");
    assert_string_equal(u->begun, "today");
    return 0;
}

static void lists_and_aborts(void **state)
{
    int count = 0;
    (void)state;
    assert_code(LEAT_ECANCELED, send_file(9 * PART, true, NULL));
    assert_ok(leat__uploads_list(store, "s3://b/dir", see, &count, NULL));
    assert_int_equal(count, 1);
    assert_ok(leat__uploads_abort(store, "s3://b/dir/up", "up/1", NULL));
    count = 0;
    assert_ok(leat__uploads_list(store, "s3://b/dir", see, &count, NULL));
    assert_int_equal(count, 0);
    assert_ok(send_file(9 * PART, false, NULL)); /* the note names an upload that no longer
                                                  * exists */
}

#define LIST(text) "<ListMultipartUploadsResult>" text "</ListMultipartUploadsResult>"

static void answer_odd_list(web_request *q)
{
    static const struct {
        const char *prefix, *text;
    } rows[] = {
        {"prefix=x", LIST("<IsTruncated>true</IsTruncated>")},
        {"prefix=y", LIST("<IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>")},
        {"prefix=z", LIST("<Upload><Key>other</Key><UploadId>5</UploadId></Upload>")},
        {"prefix=w", LIST("<Upload><Key>w</Key><UploadId>1</UploadId></Upload>"
                          "<Upload><Key>w-old/z.leat</Key><UploadId>2</UploadId></Upload>"
                          "<Upload><Key>w/a</Key><UploadId>3</UploadId></Upload>"
                          "<Upload><Key>w2.leat</Key><UploadId>4</UploadId></Upload>")},
        {"prefix=html", "<html/>"},
        {"prefix=cut", "<ListMultipartUploadsResult><Upload><Key>cut</Key><UploadId>5</UploadId></Upload>"},
    };
    for (size_t i = 0; i < LEAT_COUNT(rows); i++)
        if (strstr(q->head, rows[i].prefix) != NULL)
            web_reply(q, "200 OK", "", rows[i].text, strlen(rows[i].text));
}

static int see_below(void *cookie, const leat__upload_info *u, leat_error *err)
{
    int *count = cookie;
    (void)err;
    ++*count;
    assert_true(strcmp(u->key, "w") == 0 || strcmp(u->key, "w/a") == 0);
    return 0;
}

static void a_path_is_an_object_or_a_folder(void **state)
{
    int count = 0;
    (void)state;
    server.answer = answer_odd_list;
    assert_ok(leat__uploads_list(store, "s3://b/w", see_below, &count, NULL));
    assert_int_equal(count, 2);
}

static void odd_lists_are_errors(void **state)
{
    int count = 0;
    leat_error err;
    (void)state;
    server.answer = answer_odd_list;
    assert_code(LEAT_EDATA, leat__uploads_list(store, "s3://b/x", see, &count, &err));
    assert_contains(err.message, "does not name the next page");
    assert_code(LEAT_EDATA, leat__uploads_list(store, "s3://b/y", see, &count, &err));
    assert_contains(err.message, "names the same page again");
    count = 0;
    assert_code(LEAT_EDATA, leat__uploads_list(store, "s3://b/z", see, &count, &err));
    assert_contains(err.message, "does not begin with \"z\"");
    assert_int_equal(count, 0); /* leat uploads --abort would have removed it */
    assert_code(LEAT_EDATA, leat__uploads_list(store, "s3://b/html", see, &count, &err));
    assert_contains(err.message, "not a whole list of uploads");
    assert_code(LEAT_EDATA, leat__uploads_list(store, "s3://b/cut", see, &count, &err));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stopped_upload_resumes_at_the_part, begin, end),
        cmocka_unit_test_setup_teardown(another_file_is_another_upload, begin, end),
        cmocka_unit_test_setup_teardown(lists_and_aborts, begin, end),
        cmocka_unit_test_setup_teardown(a_path_is_an_object_or_a_folder, begin, end),
        cmocka_unit_test_setup_teardown(odd_lists_are_errors, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
