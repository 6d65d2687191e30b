/* SPDX-License-Identifier: Apache-2.0 */
#include "../io/buckettest.h"

#include <leat/pack.h>

#include "ingest/bucket_pack.h"
#include "io/object.h"

#include "leat_test.h"

static web server;
static bucket store_data;
static char *dir;

static void begin(void)
{
    bucket_start(&store_data, &server);
    dir = it_dir();
    setenv("LEAT_STAGE_DIR", dir, 1);
}

static void end(void)
{
    bucket_stop(&store_data, &server);
    it_rmdir(dir);
    assert_no_leaks();
}

static void copy(const char *from, const char *to)
{
    char command[2048];
    snprintf(command, sizeof command, "cp '%s/%s' '%s'", getenv("LEAT_TEST_DATA"), from, to);
    assert_int_equal(system(command), 0);
}

static char *in_stage(const leat__bucket_pack *s, const char *name)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return path;
}

/* The set is written last, and only if there is none. */
static void a_set_is_published(void **state)
{
    leat__bucket_pack s;
    leat_error err;
    (void)state;
    begin();
    assert_ok(leat__bucket_pack_open(&s, "s3://b/d/pack-2.0-set.leat", false, false, NULL));
    assert_false(leat__bucket_pack_ready(&s));
    copy("pack-2.0-set.leat", s.path);
    copy("pack-2.0-set-00000.leat", in_stage(&s, "pack-2.0-set-00000.leat"));
    assert_true(leat__bucket_pack_ready(&s));
    assert_ok(leat__bucket_pack_publish(&s, NULL, NULL, NULL));
    assert_int_equal(store_data.conditional, 2); /* neither the shard nor the set replaces an object */
    assert_non_null(bucket_find(&store_data, "d/pack-2.0-set.leat", false));
    assert_non_null(bucket_find(&store_data, "d/pack-2.0-set-00000.leat", false));
    assert_int_not_equal(access(s.folder, F_OK), 0); /* no local files are left */
    leat__bucket_pack_close(&s);
    assert_code(LEAT_EEXIST, leat__bucket_pack_open(&s, "s3://b/d/pack-2.0-set.leat", false, false, &err));
    assert_contains(err.message, "already exists");
    assert_ok(leat__bucket_pack_open(&s, "s3://b/d/pack-2.0-set.leat", true, false, NULL));
    leat__bucket_pack_close(&s);
    end();
}

/* Stages the set, and publishes it. */
static void publish_set(const char *remote, bool replace, bool resume)
{
    leat__bucket_pack s;
    assert_ok(leat__bucket_pack_open(&s, remote, replace, resume, NULL));
    copy("pack-2.0-set.leat", s.path);
    copy("pack-2.0-set-00000.leat", in_stage(&s, "pack-2.0-set-00000.leat"));
    assert_ok(leat__bucket_pack_publish(&s, NULL, NULL, NULL));
    leat__bucket_pack_close(&s);
}

static int shards_in_the_bucket(bool *plain)
{
    int count = 0;
    *plain = false;
    for (int i = 0; i < BUCKET_OBJECTS; i++) {
        const char *key = store_data.objects[i].key;
        if (key == NULL || strncmp(key, "pack-2.0-set-00000", 18) != 0) continue;
        count++;
        *plain |= strcmp(key, "pack-2.0-set-00000.leat") == 0;
    }
    return count;
}

static void verify(const char *path)
{
    leat_pack *pack;
    leat_error err;
    assert_ok(leat_pack_open(&pack, path, NULL, &err));
    assert_true(leat_pack_count(pack) > 0);
    leat_pack_close(&pack);
}

/* A set that replaces a pack gives its shards other names, even if they are equal: a run that removes the old
 * ones cannot remove these. The old ones are removed. */
static void a_set_that_replaces_a_pack(void **state)
{
    bool plain;
    (void)state;
    begin();
    publish_set("s3://b/pack-2.0-set.leat", true, false);
    assert_int_equal(shards_in_the_bucket(&plain), 1);
    assert_true(plain);
    for (int i = 0; i < 2; i++) {
        publish_set("s3://b/pack-2.0-set.leat", true, false);
        assert_int_equal(shards_in_the_bucket(&plain), 1);
        assert_false(plain);
        verify("s3://b/pack-2.0-set.leat");
    }
    end();
}

/* Another machine is about to publish a set with equal shards: this run neither writes nor removes them. */
static void a_shard_of_another_run_is_left_alone(void **state)
{
    bool plain;
    (void)state;
    begin();
    bucket_store(&store_data, "pack-2.0-set-00000.leat", "theirs", 6);
    publish_set("s3://b/pack-2.0-set.leat", true, false);
    assert_int_equal(bucket_find(&store_data, "pack-2.0-set-00000.leat", false)->len, 6);
    assert_int_equal(shards_in_the_bucket(&plain), 2);
    verify("s3://b/pack-2.0-set.leat");
    end();
}

/* Another writer was faster: its pack stays, and ours is kept for another try. */
static void a_name_taken_meanwhile(void **state)
{
    leat__bucket_pack s;
    leat_error err;
    (void)state;
    begin();
    assert_ok(leat__bucket_pack_open(&s, "s3://b/pack-2.0.leat", false, false, NULL));
    copy("pack-2.0.leat", s.path);
    bucket_store(&store_data, "pack-2.0.leat", "theirs", 6);
    assert_code(LEAT_EEXIST, leat__bucket_pack_publish(&s, NULL, NULL, &err));
    assert_int_equal(bucket_find(&store_data, "pack-2.0.leat", false)->len, 6);
    assert_true(leat__bucket_pack_ready(&s));
    leat__bucket_pack_close(&s);
    end();
}

/* A run that was killed after its last request has nothing left to send. */
static void published_before_the_kill(void **state)
{
    leat__bucket_pack s;
    (void)state;
    begin();
    assert_ok(leat__bucket_pack_open(&s, "s3://b/pack-2.0.leat", false, true, NULL));
    copy("pack-2.0.leat", s.path);
    leat__file *f;
    leat__upload_opts o = {0};
    assert_ok(leat__file_open(&f, s.path, LEAT__FILE_READ, NULL));
    assert_ok(leat__object_upload(s.store, "s3://b/pack-2.0.leat", f, &o, NULL));
    leat__file_close(&f);
    leat__bucket_pack_close(&s);
    assert_code(LEAT_EEXIST, leat__bucket_pack_open(&s, "s3://b/pack-2.0.leat", false, false, NULL));
    assert_ok(leat__bucket_pack_open(&s, "s3://b/pack-2.0.leat", false, true, NULL));
    assert_true(s.published);
    assert_ok(leat__bucket_pack_publish(&s, NULL, NULL, NULL));
    assert_int_not_equal(access(s.folder, F_OK), 0);
    leat__bucket_pack_close(&s);
    end();
}

static void names_without_a_pack(void **state)
{
    leat__bucket_pack s;
    (void)state;
    begin();
    assert_code(LEAT_EINVAL, leat__bucket_pack_open(&s, "s3://b/d/", false, false, NULL));
    assert_code(LEAT_EINVAL, leat__bucket_pack_open(&s, "s3://b/..", false, false, NULL));
    leat_error err;
    assert_code(LEAT_ENOTSUP, leat__bucket_pack_open(&s, "http://127.0.0.1:1/x.leat", false, false, &err));
    assert_contains(err.message, "a web server cannot be written");
    end();
}

/* A folder created by other users is not used. */
static void folder_of_another_user_is_refused(void **state)
{
    leat__bucket_pack s;
    (void)state;
    begin();
    assert_ok(leat__bucket_pack_open(&s, "s3://b/x.leat", false, false, NULL));
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", s.folder);
    leat__bucket_pack_close(&s);
    assert_int_not_equal(access(folder, F_OK), 0); /* removed when it is empty */
    assert_int_equal(symlink("/tmp", folder), 0);
    assert_code(LEAT_EPERM, leat__bucket_pack_open(&s, "s3://b/x.leat", false, false, NULL));
    end();
}

int main(void)
{
    leat__http *http;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_published),
        cmocka_unit_test(a_set_that_replaces_a_pack),
        cmocka_unit_test(a_shard_of_another_run_is_left_alone),
        cmocka_unit_test(a_name_taken_meanwhile),
        cmocka_unit_test(published_before_the_kill),
        cmocka_unit_test(names_without_a_pack),
        cmocka_unit_test(folder_of_another_user_is_refused),
    };
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
