/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <leat/pack.h>

#include "base/num.h"
#include "pack/selection.h"

#define ROWS 20u
#define PACK "box.leat"
#define COLUMNS "columns.leat"

static char folder[64];
static uint64_t fingerprint; /* of PACK */

/* Writes `rows` rows, the last with the keys k19 … k0; `provenance` may have one %llx for the fingerprint. */
static void put(const char *path, uint32_t rows, const char *provenance)
{
    const leat_field field = {.name = "a", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer = NULL;
    leat_packer_stats stats;
    char text[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, provenance, (unsigned long long)fingerprint);
#pragma GCC diagnostic pop
    o.fields = &field;
    o.field_count = 1;
    o.provenance = text;
    o.no_sync = 1;
    o.replace = 1;
    assert_ok(leat_packer_open(&packer, path, &o, NULL));
    for (uint32_t i = 0; i < rows; i++) {
        char key[16];
        const leat_pack_value v = {.i = i};
        snprintf(key, sizeof key, "k%u", rows - 1 - i);
        const leat_pack_sample sample = {.key = key, .key_size = strlen(key), .values = &v};
        assert_ok(leat_packer_append(packer, &sample, NULL));
    }
    assert_ok(leat_packer_finish(packer, &stats, NULL));
    leat_packer_close(&packer);
}

static int bind(const char *columns, const char *const *packs, uint32_t count, uint64_t *first,
                leat_error *err)
{
    leat_pack *pack = NULL, *beside = NULL;
    assert_ok(leat_pack_open_many(&pack, packs, count, NULL, NULL));
    assert_ok(leat_pack_open(&beside, columns, NULL, NULL));
    int rc = leat__pack_bind(beside, pack, first, err);
    leat_pack_close(&pack);
    leat_pack_close(&beside);
    return rc;
}

static const char *const box[] = {PACK, PACK};

static void columns_of_this_pack_are_found(void **state)
{
    static const char *const same[] = {"{}", "{\"packs\":[]}", "{\"fingerprint\":\"%llx\"}"};
    uint64_t first = 99;
    for (size_t i = 0; i < LEAT_COUNT(same); i++) {
        put(COLUMNS, ROWS, same[i]);
        assert_ok(bind(COLUMNS, box, 1, &first, NULL));
        assert_int_equal(first, 0);
    }
    put(COLUMNS, ROWS + 5,
        "{\"packs\":[{\"fingerprint\":\"12\",\"samples\":5},{\"fingerprint\":\"%016llx\",\"samples\":20}]}");
    assert_ok(bind(COLUMNS, box, 1, &first, NULL));
    assert_int_equal(first, 5);
    assert_no_leaks();
}

/* Columns beside columns: both name the pack that they were made from. A pack also matches itself. */
static void columns_of_the_same_pack_belong_together(void **state)
{
    static const char *const other = "other.leat";
    uint64_t first = 99;
    put(COLUMNS, ROWS, "{\"fingerprint\":\"12\"}");
    put(other, ROWS, "{\"fingerprint\":\"12\",\"more\":1}");
    assert_ok(bind(COLUMNS, &other, 1, &first, NULL));
    assert_ok(bind(other, &other, 1, &first, NULL));
    put(other, ROWS, "{\"fingerprint\":\"13\"}");
    assert_code(LEAT_EINVAL, bind(COLUMNS, &other, 1, &first, NULL));
}

static void columns_of_joined_packs_are_found(void **state)
{
    uint64_t first = 99;
    leat_error err = {0};
    put(COLUMNS, 2 * ROWS,
        "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":20},"
        "{\"fingerprint\":\"1\",\"samples\":20}]}");
    assert_code(LEAT_EINVAL, bind(COLUMNS, box, 2, &first, &err));
    assert_contains(err.message, "were not made from");
}

static void another_order_of_packs_is_named(void **state)
{
    static const char *const second = "second.leat", *const turned[] = {"second.leat", PACK},
                             *const right[] = {PACK, "second.leat"};
    leat_pack_info info = {.struct_size = sizeof info};
    leat_pack *pack = NULL;
    leat_error err = {0};
    uint64_t first = 99;
    char text[300];
    put(second, 5, "{}");
    assert_ok(leat_pack_open(&pack, second, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    leat_pack_close(&pack);
    snprintf(text, sizeof text,
             "{\"packs\":[{\"fingerprint\":\"7\",\"samples\":1},{\"fingerprint\":\"%llx\",\"samples\":20},"
             "{\"fingerprint\":\"%llx\",\"samples\":5}]}",
             (unsigned long long)fingerprint, (unsigned long long)info.fingerprint);
    put(COLUMNS, ROWS + 6, text);
    assert_code(LEAT_EINVAL, bind(COLUMNS, turned, 2, &first, &err));
    assert_string_equal(err.message,
                        "columns.leat: its columns are of these packs in another order; give them as "
                        "box.leat second.leat");
    assert_code(LEAT_EINVAL, bind(COLUMNS, right, 2, &first, &err)); /* found: here only the keys differ */
    assert_contains(err.message, "row 1 is");
    assert_code(LEAT_EINVAL, bind(COLUMNS, box, 2, &first, &err)); /* one pack twice */
    assert_contains(err.message, "were not made from");
    assert_no_leaks();
}

static void other_columns_are_refused(void **state)
{
    static const struct {
        uint32_t rows;
        const char *provenance, *message;
    } bad[] = {{ROWS - 1, "{}", "has 19 rows, but box.leat has 20"},
               {ROWS + 1, "{}", "has 21 rows, but box.leat has 20"},
               {ROWS - 1, "{\"pack\":\"a/box.leat\"}", "has 20: the pack has changed since; make it again"},
               {ROWS - 1, "{\"pack\":\"other.leat\"}", "has 20: it was made from other.leat; make it again"},
               {ROWS - 1, "{}", "has 20: it was made from another pack; make it again"},
               {ROWS, "{\"pack\":\"box.leat\",\"fingerprint\":\"12\"}", "is not in them); make them again"},
               {ROWS, "{\"fingerprint\":\"12\"}", "were not made from box.leat"},
               {ROWS, "{\"fingerprint\":\"\"}", "were not made from box.leat"},
               {ROWS, "{\"fingerprint\":12}", "were not made from box.leat"},
               {ROWS, "{\"fingerprint\":\"%llxg\"}", "were not made from box.leat"},
               {ROWS - 1, "{\"fingerprint\":\"%llx\"}", "has 19 rows"},
               {ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\"}]}", "were not made from box.leat"},
               {ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":-20}]}", "were not made from"},
               {ROWS, "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":21}]}", "were not made from"},
               {ROWS + 5,
                "{\"packs\":[{\"fingerprint\":\"%llx\",\"samples\":20},"
                "{\"fingerprint\":\"1\",\"samples\":5}]}",
                "row 0 is \"k24\", but \"k19\" in box.leat"}};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        uint64_t first;
        leat_error err = {0};
        put(COLUMNS, bad[i].rows, bad[i].provenance);
        assert_code(LEAT_EINVAL, bind(COLUMNS, box, 1, &first, &err));
        assert_contains(err.message, "columns.leat");
        assert_contains(err.message, bad[i].message);
    }
    assert_no_leaks();
}

static void results_do_not_replace_inputs(void **state)
{
    leat_error err = {0};
    assert_ok(leat__pack_spare_input(NULL, PACK, NULL));
    assert_ok(leat__pack_spare_input(PACK, NULL, NULL));
    assert_ok(leat__pack_spare_input("new.leat", PACK, NULL));
    assert_code(LEAT_EINVAL, leat__pack_spare_input("./" PACK, PACK, &err));
    assert_string_equal(err.message, "./" PACK ": is also an input: give the result another name");
    assert_ok(leat__pack_spare_result("a.leat", "b.leat", NULL));
    assert_ok(leat__pack_spare_result("a.leat", "nowhere/a.leat", NULL));
    assert_code(LEAT_EINVAL, leat__pack_spare_result("new.leat", ".//new.leat", &err));
    assert_contains(err.message, "is the name of two results");
    assert_code(LEAT_EINVAL, leat__pack_spare_result("s3://b/x", "s3://b/x", NULL));
}

static int setup(void **state)
{
    leat_pack *pack = NULL;
    leat_pack_info info = {.struct_size = sizeof info};
    snprintf(folder, sizeof folder, "/tmp/leat-bind-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
    put(PACK, ROWS, "{}");
    assert_ok(leat_pack_open(&pack, PACK, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    leat_pack_close(&pack);
    fingerprint = info.fingerprint;
    return 0;
}

static int close_folder(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_of_this_pack_are_found),
                                       cmocka_unit_test(columns_of_the_same_pack_belong_together),
                                       cmocka_unit_test(columns_of_joined_packs_are_found),
                                       cmocka_unit_test(another_order_of_packs_is_named),
                                       cmocka_unit_test(other_columns_are_refused),
                                       cmocka_unit_test(results_do_not_replace_inputs)};
    return cmocka_run_group_tests(tests, setup, close_folder);
}
