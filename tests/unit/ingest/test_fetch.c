/* SPDX-License-Identifier: Apache-2.0 */
#include "../io/buckettest.h"

#include "ingest/fetch.h"

#include "leat_test.h"

static web server;
static bucket store_data;
static leat__records_pool spare;

static int begin(void **state)
{
    (void)state;
    bucket_start(&store_data, &server);
    return 0;
}

static int end(void **state)
{
    (void)state;
    bucket_stop(&store_data, &server);
    assert_no_leaks();
    return 0;
}

static leat__source *open_source(const char *path)
{
    leat_ingest_opts o;
    leat__source *s = NULL;
    const char *sources[] = {path};
    leat_ingest_opts_init(&o);
    o.sources = sources;
    o.source_count = 1;
    assert_ok(leat__source_open(&s, &o, NULL));
    leat__records_pool_init(&spare, s->field_count, 4);
    return s;
}

static void close_source(leat__source *s, leat__records *run)
{
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static leat__records *list_all(leat__source *s)
{
    leat__records *run = leat__records_pool_take(&spare);
    for (bool over = false; !over;) {
        leat__record *r = leat__records_add(run);
        assert_ok(s->ops->next(s, run, r, &over, NULL));
        if (over) leat__records_drop_last(run);
    }
    return run;
}

static void store(const char *key, const char *text)
{
    bucket_store(&store_data, key, text, strlen(text));
}

static void a_prefix_is_a_folder_of_images(void **state)
{
    static const char *const order[] = {"10/b.jpg", "2/deep/x.png", "2/img2.jpg", "2/img10.jpg"};
    static const int64_t labels[] = {0, 1, 1, 1};
    (void)state;
    store("r/2/img10.jpg", "2/img10.jpg");
    store("r/2/img2.jpg", "2/img2.jpg");
    store("r/2/deep/x.png", "2/deep/x.png");
    store("r/10/b.jpg", "10/b.jpg");
    store("r/10/.hidden.jpg", "h");
    store("r/readme.txt", "t");
    store("rest/c.jpg", "another prefix");
    leat__source *s = open_source("s3://b/r");
    assert_int_equal(s->total, 4);
    assert_int_equal(s->class_count, 2);
    leat__records *run = list_all(s);
    assert_int_equal(run->count, 4);
    int before = server.requests;
    assert_ok(leat__fetch_run(s, run, NULL));
    assert_int_equal(server.requests - before, 4);
    for (uint32_t i = 0; i < 4; i++) {
        leat__record *r = &run->record[i];
        assert_true(r->loaded);
        assert_string_equal(leat__records_str(run, r->key), order[i]);
        assert_int_equal(r->items[s->label_field].i, labels[i]);
        assert_memory_equal(leat__records_data(run, &r->items[0]), order[i], strlen(order[i]));
        assert_int_equal(r->bytes_in, strlen(order[i]));
        assert_int_not_equal(r->stamp.mtime_ns, 0);
    }
    assert_int_equal(s->ignored, 2);
    close_source(s, run);
}

static void files_changed_since_the_listing_fail(void **state)
{
    (void)state;
    store("r/a.jpg", "12345");
    store("r/b.jpg", "12345");
    store("r/c.jpg", "12345");
    leat__source *s = open_source("s3://b/r/");
    leat__records *run = list_all(s);
    bucket_drop(bucket_find(&store_data, "r/a.jpg", false));
    store("r/b.jpg", "1234567");
    assert_ok(leat__fetch_run(s, run, NULL));
    assert_true(run->record[0].failed);
    assert_contains(run->record[0].error->message, "s3://b/r/a.jpg");
    assert_true(run->record[1].failed);
    assert_contains(run->record[1].error->message, "is 7 bytes, but the bucket lists it with 5");
    assert_true(run->record[2].loaded);
    leat_error err;
    assert_code(LEAT_ENOENT, leat__fetch_record(s, run, &run->record[0], &err));
    close_source(s, run);
}

static void paths_of_a_manifest_are_beside_it(void **state)
{
    (void)state;
    store("m/list.csv", "path,label\nx/1.jpg,3\ns3://b/other/2.jpg,4\n");
    store("m/x/1.jpg", "one");
    store("other/2.jpg", "two");
    leat__source *s = open_source("s3://b/m/list.csv");
    leat__records *run = list_all(s);
    assert_int_equal(run->count, 2);
    assert_ok(leat__fetch_run(s, run, NULL));
    assert_memory_equal(leat__records_data(run, &run->record[0].items[0]), "one", 3);
    assert_memory_equal(leat__records_data(run, &run->record[1].items[0]), "two", 3);
    close_source(s, run);
}

static void query_is_not_part_of_the_name(void **state)
{
    (void)state;
    assert_int_equal(leat__source_name_len("https://h/a.tar?sig=1"), strlen("https://h/a.tar"));
    assert_int_equal(leat__source_name_len("a?b.tar"), 7);
    assert_int_equal(leat__source_name_len("s3://b/a?b.tar"), 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_prefix_is_a_folder_of_images, begin, end),
        cmocka_unit_test_setup_teardown(files_changed_since_the_listing_fail, begin, end),
        cmocka_unit_test_setup_teardown(paths_of_a_manifest_are_beside_it, begin, end),
        cmocka_unit_test(query_is_not_part_of_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
