/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/label_box.h"

#include "io/file.h"

static void columns_and_csv_agree(void **state)
{
    static int64_t suggested[LABEL_ROWS], issues[LABEL_ROWS], rank[LABEL_ROWS];
    leat_check_labels_opts o = label_opts("written.leat");
    leat_pack *pack = NULL;
    const char *const *names = NULL;
    uint64_t count = 0;
    char *csv = NULL, key[64];
    size_t len;
    leat__buf json;
    put_logits("p.leat", NULL);
    o.predictions = in_box("p.leat");
    o.csv = in_box("wrong.csv");
    const leat_check_labels_stats st = labels_ok(&o);
    assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
    assert_ok(leat_pack_classes(pack, 1, &names, &count, NULL));
    assert_true(count == 4 && strcmp(names[2], "owl") == 0);
    assert_ok(leat_pack_ints(pack, 1, 0, LABEL_ROWS, suggested, NULL));
    assert_ok(leat_pack_ints(pack, 2, 0, LABEL_ROWS, issues, NULL));
    assert_ok(leat_pack_ints(pack, 3, 0, LABEL_ROWS, rank, NULL));
    for (uint32_t i = 0; i < LABEL_ROWS; i++) {
        assert_true(suggested[i] == (i == 5 ? -1 : (int64_t)(i % LABEL_CLASSES)));
        assert_true((issues[i] & 1) == is_wrong(i) && (rank[i] >= 0) == is_wrong(i));
    }
    leat_pack_close(&pack);
    assert_ok(leat__file_load(o.csv, 1 << 20, 1, &csv, &len, NULL));
    assert_int_equal(strncmp(csv, "key,label,suggested,suspicion\n", 30), 0);
    row_key(key, sizeof key, 13); /* the first of equally suspicious ones: a dog that was called owl */
    assert_int_equal(strncmp(csv + 30, key, strlen(key)), 0);
    assert_contains(csv, ",owl,dog,0.9");
    leat__free(csv);
    leat__buf_init(&json, LEAT__MEM_MISC, 1 << 16);
    leat__check_labels_json(&st, o.output, &json);
    assert_contains(leat__buf_str(&json), "\"wrong\":5");
    assert_contains(leat__buf_str(&json), key);
    leat__buf_reset(&json);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_and_csv_agree)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
