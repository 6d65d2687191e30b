/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "curate/sealed.h"
#include "io/file.h"

static leat_error err;

static void store(const leat__buf *b)
{
    assert_int_equal(leat__file_store(in_box("s.json"), b->data, b->len, NULL), 0);
}

/* Every changed byte is found, and every lost one. */
static void damage_is_found(void **state)
{
    leat__buf b;
    json_t *root = NULL;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    leat__buf_puts(&b, "{\"version\":3,\"lengths\":[10,2000]}");
    leat__sealed_end(&b);
    store(&b);
    assert_int_equal(leat__sealed_load(in_box("s.json"), 4096, &root, &err), 0);
    assert_int_equal(json_integer_value(json_object_get(root, "version")), 3);
    json_decref(root);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] ^= 1;
        store(&b);
        assert_int_equal(leat__sealed_load(in_box("s.json"), 4096, &root, &err), LEAT_EDATA);
        assert_null(root);
        assert_non_null(strstr(err.message, "s.json: is damaged (use force to start over)"));
        b.data[i] ^= 1;
    }
    while (b.len-- > 0) {
        store(&b);
        assert_int_equal(leat__sealed_load(in_box("s.json"), 4096, &root, &err), LEAT_EDATA);
        if (b.len == 0) break;
    }
    leat__buf_reset(&b);
}

/* Callers that know an older form can still read it. */
static void a_file_without_a_checksum_is_not_sound(void **state)
{
    leat__buf b;
    json_t *root = NULL;
    bool sound = true;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    leat__buf_puts(&b, "{\"version\":2}");
    store(&b);
    assert_int_equal(leat__sealed_read(in_box("s.json"), 4096, &root, &sound, &err), 0);
    assert_false(sound);
    assert_int_equal(json_integer_value(json_object_get(root, "version")), 2);
    json_decref(root);
    leat__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_file_without_a_checksum_is_not_sound),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
