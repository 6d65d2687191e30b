/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <leat/pack.h>

#include "pack/selection.h"

static char folder[64];
static uint32_t keys = UINT32_MAX; /* they repeat after this many rows */
static uint32_t every = 3;         /* row that is selected */
static const char *made_from;      /* provenance */
static uint32_t first_of_two;      /* keys begin again at this row; 0: they do not */

static const char *at(const char *name)
{
    static char path[8][160];
    static int next;
    char *to = path[next++ % 8];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

/* Writes rows with keys k0, k1 …; field = row % every == 0, if there are more rows than that. `renamed`: this
 * row has another key. */
static const char *put(const char *name, const char *field, uint32_t type, uint32_t rows, uint32_t renamed)
{
    leat_packer *p = NULL;
    leat_packer_stats st;
    const leat_field f = {.name = field, .type = type};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    o.fields = &f;
    o.field_count = 1;
    o.no_sync = o.replace = 1;
    o.provenance = made_from;
    const char *path = at(name);
    assert_ok(leat_packer_open(&p, path, &o, NULL));
    for (uint32_t i = 0; i < rows; i++) {
        char key[16];
        const leat_pack_value v = {.i = i % every == 0 && every < rows, .f = i};
        const uint32_t number = i < first_of_two ? i : i - first_of_two;
        snprintf(key, sizeof key, i == renamed ? "other" : "k%u", number % keys);
        const leat_pack_sample s = {.key = key, .key_size = strlen(key), .values = &v};
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    assert_ok(leat_packer_finish(p, &st, NULL));
    leat_packer_close(&p);
    return path;
}

static void rows_of_a_selection_are_read(void **state)
{
    static const char *const fields[] = {"selected", "keep"};
    leat_pack *pack = NULL;
    uint64_t rows[1000], count = 0;
    assert_ok(leat_pack_open(&pack, put("p.leat", "x", LEAT_FIELD_FLOAT, 2500, UINT32_MAX), NULL, NULL));
    for (int i = 0; i < 2; i++) {
        const char *path = put("s.leat", fields[i], LEAT_FIELD_INT, 2500, UINT32_MAX);
        assert_ok(leat_pack_select(pack, path, NULL, 0, &count, NULL));
        assert_int_equal(count, 834);
        assert_ok(leat_pack_select(pack, path, rows, 1000, &count, NULL));
        for (uint64_t k = 0; k < count; k++) assert_int_equal(rows[k], 3 * k);
        assert_code(LEAT_ELIMIT, leat_pack_select(pack, path, rows, 10, &count, NULL));
        assert_int_equal(count, 834);
    }
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void rows_are_for_the_caller_to_free_and_there_are_some(void **state)
{
    leat_pack *pack = NULL;
    leat_error err = {0};
    uint64_t *rows = NULL, count = 0;
    assert_ok(leat_pack_open(&pack, put("p.leat", "x", LEAT_FIELD_FLOAT, 7, UINT32_MAX), NULL, NULL));
    const char *path = put("s.leat", "selected", LEAT_FIELD_INT, 7, UINT32_MAX);
    assert_ok(leat__selection_rows(pack, path, &rows, &count, NULL));
    assert_true(count == 3 && rows[0] == 0 && rows[1] == 3 && rows[2] == 6);
    leat__free(rows);
    every = 100;
    const char *none = put("none.leat", "selected", LEAT_FIELD_INT, 7, UINT32_MAX);
    every = 3;
    assert_code(LEAT_EINVAL, leat__selection_rows(pack, none, &rows, &count, &err));
    assert_contains(err.message, "none.leat: no row of ");
    assert_null(rows);
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void selections_of_joined_packs_are_read(void **state)
{
    leat_pack *pack = NULL;
    uint64_t rows[8], count = 0;
    const char *both[] = {put("a.leat", "x", LEAT_FIELD_INT, 4, 99),
                          put("b.leat", "x", LEAT_FIELD_INT, 4, 99)};
    keys = 4;
    const char *path = put("s.leat", "keep", LEAT_FIELD_INT, 8, 99);
    keys = UINT32_MAX;
    assert_ok(leat_pack_open_many(&pack, both, 2, NULL, NULL));
    assert_ok(leat_pack_select(pack, path, rows, 8, &count, NULL));
    assert_true(count == 3 && rows[0] == 0 && rows[1] == 3 && rows[2] == 6);
    leat_pack_close(&pack);
}

static uint64_t fingerprint_of(const char *path)
{
    leat_pack *pack = NULL;
    leat_pack_info info = {.struct_size = sizeof info};
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    leat_pack_close(&pack);
    return info.fingerprint;
}

/* A selection of packs of 3 and 5 rows, whose rows 0, 3 and 6 are selected. */
static void rows_of_one_of_several_packs_are_read(void **state)
{
    leat_pack *pack = NULL;
    leat_error err = {0};
    uint64_t rows[8], count = 0;
    char text[256];
    const char *one = put("a.leat", "x", LEAT_FIELD_INT, 3, 99);
    const char *two = put("b.leat", "y", LEAT_FIELD_INT, 5, 99),
               *other = put("c.leat", "z", LEAT_FIELD_INT, 5, 99);
    snprintf(text, sizeof text,
             "{\"names\":[\"a.leat\",\"b.leat\"],\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":3},"
             "{\"fingerprint\":\"%llx\",\"samples\":5}]}",
             (unsigned long long)fingerprint_of(one), (unsigned long long)fingerprint_of(two));
    made_from = text;
    first_of_two = 3;
    const char *path = put("s.leat", "keep", LEAT_FIELD_INT, 8, 99);
    made_from = NULL;
    first_of_two = 0;
    assert_ok(leat_pack_open(&pack, one, NULL, NULL));
    assert_ok(leat_pack_select(pack, path, rows, 8, &count, NULL));
    assert_true(count == 1 && rows[0] == 0);
    leat_pack_close(&pack);
    assert_ok(leat_pack_open(&pack, two, NULL, NULL));
    assert_ok(leat_pack_select(pack, path, rows, 8, &count, NULL));
    assert_true(count == 2 && rows[0] == 0 && rows[1] == 3);
    leat_pack_close(&pack);
    assert_ok(leat_pack_open(&pack, other, NULL, NULL));
    assert_code(LEAT_EINVAL, leat_pack_select(pack, path, rows, 8, &count, &err));
    assert_contains(err.message, "but from a.leat, b.leat; make them again");
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void other_packs_are_refused(void **state)
{
    leat_pack *pack = NULL;
    leat_error err = {0};
    uint64_t count = 7;
    assert_ok(leat_pack_open(&pack, put("p.leat", "x", LEAT_FIELD_FLOAT, 9, UINT32_MAX), NULL, NULL));
    assert_code(LEAT_EINVAL,
                leat_pack_select(pack, put("s.leat", "keep", LEAT_FIELD_INT, 8, 99), NULL, 0, &count, &err));
    assert_contains(err.message, "has 8 rows");
    assert_code(LEAT_EINVAL,
                leat_pack_select(pack, put("s.leat", "keep", LEAT_FIELD_INT, 9, 5), NULL, 0, &count, &err));
    assert_contains(err.message, "row 5 is \"other\", but \"k5\" in");
    assert_code(LEAT_EINVAL, leat_pack_select(pack, put("s.leat", "keep", LEAT_FIELD_FLOAT, 9, 99), NULL, 0,
                                              &count, &err));
    assert_contains(err.message, "not a selection");
    assert_code(LEAT_EINVAL, leat_pack_select(pack, at("p.leat"), NULL, 0, &count, &err));
    assert_code(LEAT_ENOENT, leat_pack_select(pack, at("nothing"), NULL, 0, &count, &err));
    assert_code(LEAT_EINVAL, leat_pack_select(NULL, at("p.leat"), NULL, 0, &count, &err));
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static int open_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/leat-selection-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int close_folder(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_selection_are_read),
        cmocka_unit_test(rows_are_for_the_caller_to_free_and_there_are_some),
        cmocka_unit_test(selections_of_joined_packs_are_read),
        cmocka_unit_test(rows_of_one_of_several_packs_are_read),
        cmocka_unit_test(other_packs_are_refused),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
