/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/tar.h"
#include "ingest/tar_write.h"

static void read_back(const char *path, const char *const *names, size_t count, const char *data, size_t len)
{
    leat__stream *stream = NULL;
    leat__tar tar;
    leat__tar_member m;
    bool end = false;
    assert_int_equal(leat__stream_open(&stream, path, NULL), 0);
    leat__tar_init(&tar, stream);
    for (size_t i = 0; i < count; i++) {
        char *got = malloc(len + 1);
        assert_int_equal(leat__tar_next(&tar, &m, &end, NULL), 0);
        assert_false(end);
        assert_string_equal(m.name, names[i]);
        assert_int_equal(m.size, len - i);
        assert_int_equal(leat__tar_read(&tar, got, len - i, NULL), 0);
        assert_memory_equal(got, data, len - i);
        free(got);
    }
    assert_int_equal(leat__tar_next(&tar, &m, &end, NULL), 0);
    assert_true(end);
    leat__tar_reset(&tar);
    leat__stream_close(&stream);
}

static void our_reader_and_tar_read_it(void **state)
{
    char long_name[300], data[2000], command[700];
    leat__tar_out t;
    (void)state;
    memset(long_name, 'n', sizeof long_name);
    long_name[120] = '/';
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    const char *const names[] = {"a.jpg", long_name, "b.cls"};
    leat__tar_out_init(&t, sandbox, 1u << 30, false);
    assert_int_equal(leat__tar_out_sample(&t, NULL), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(leat__tar_out_add(&t, names[i], data, sizeof data - i, NULL), 0);
    assert_int_equal(leat__tar_out_finish(&t, NULL), 0);
    leat__tar_out_reset(&t);
    read_back(in_box("00000.tar"), names, 3, data, sizeof data);
    snprintf(command, sizeof command, "tar -tf '%s' | wc -l | grep -qx 3", in_box("00000.tar"));
    assert_int_equal(system(command), 0);
}

static void shards_end_after_a_sample(void **state)
{
    leat__tar_out t;
    leat_error err = {0};
    (void)state;
    leat__tar_out_init(&t, sandbox, 3000, false);
    for (int i = 0; i < 6; i++) {
        char name[16];
        assert_int_equal(leat__tar_out_sample(&t, NULL), 0);
        snprintf(name, sizeof name, "%d.x", i);
        assert_int_equal(leat__tar_out_add(&t, name, "1", 1, NULL), 0);
    }
    assert_int_equal(leat__tar_out_finish(&t, NULL), 0);
    assert_int_equal(t.shards, 2); /* three samples of 1024 bytes in each */
    leat__tar_out_reset(&t);
    leat__tar_out_init(&t, sandbox, 3000, false);
    assert_int_equal(leat__tar_out_sample(&t, &err), LEAT_EEXIST);
    leat__tar_out_reset(&t);
}

static void write_samples(leat__tar_out *t, int count, char byte)
{
    leat__tar_out_init(t, sandbox, 1024, true);
    for (int i = 0; i < count; i++) {
        char name[16];
        assert_int_equal(leat__tar_out_sample(t, NULL), 0);
        snprintf(name, sizeof name, "%c%d.x", byte, i);
        assert_int_equal(leat__tar_out_add(t, name, &byte, 1, NULL), 0);
    }
}

static bool is_of(const char *shard, char byte)
{
    size_t len;
    char *text = NULL;
    assert_int_equal(leat__file_load(in_box(shard), 1u << 20, 1, &text, &len, NULL), 0);
    const bool found = text[0] == byte;
    leat__free(text);
    return found;
}

/* A run that replaces shards and fails leaves all of the earlier ones, and no new one. */
static void shards_are_replaced_together(void **state)
{
    leat__tar_out t;
    write_samples(&t, 3, 'a');
    assert_int_equal(leat__tar_out_finish(&t, NULL), 0);
    leat__tar_out_reset(&t);
    write_samples(&t, 3, 'b');
    assert_true(t.shards == 2 && is_of("00000.tar", 'a') && is_of("00001.tar", 'a'));
    leat__tar_out_reset(&t);
    assert_true(is_of("00000.tar", 'a') && is_of("00001.tar", 'a') && is_of("00002.tar", 'a'));
    assert_int_not_equal(access(in_box("00000.tar.partial"), F_OK), 0);
    assert_int_not_equal(access(in_box("00002.tar.partial"), F_OK), 0);
    write_samples(&t, 3, 'b');
    assert_int_equal(leat__tar_out_finish(&t, NULL), 0);
    leat__tar_out_reset(&t);
    assert_true(is_of("00000.tar", 'b') && is_of("00001.tar", 'b') && is_of("00002.tar", 'b'));
    assert_int_not_equal(access(in_box("00000.tar.partial"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(our_reader_and_tar_read_it, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(shards_end_after_a_sample, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(shards_are_replaced_together, sandbox_open, sandbox_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
