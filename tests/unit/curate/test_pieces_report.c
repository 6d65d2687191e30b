/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include <jansson.h>

#include "curate/pieces_report.h"

static void documents_that_lost_most(void **state)
{
    static leat__pieces_report r;
    leat__buf notes;
    leat__buf_init(&notes, LEAT__MEM_MISC, 1u << 20);
    for (int i = 0; i < 100; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        leat__pieces_note(&notes, 10, (uint64_t)(i % 10) + 1, (uint64_t)(i * 37 % 100), id);
    }
    leat__pieces_add(&r, &notes);
    assert_int_equal(r.count, LEAT__PIECES_MOST);
    assert_int_equal(r.most[0].bytes, 99);
    for (unsigned i = 1; i < r.count; i++) assert_true(r.most[i].bytes <= r.most[i - 1].bytes);
    assert_int_equal(r.share[LEAT__PIECES_BINS], 10); /* nothing is left */
    assert_int_equal(r.share[LEAT__PIECES_BINS / 2], 10);
    leat__buf_reset(&notes);
}

/* Ids of any length stay JSON. */
static void long_ids_are_cut(void **state)
{
    static const char *const units[] = {"x", "\\\"", "\\u00e9", "\xc3\xa9", "\\\\"};
    for (size_t u = 0; u < LEAT_COUNT(units); u++) {
        for (int shift = 0; shift < 8; shift++) {
            leat__buf notes;
            char id[2000] = "\"";
            leat__pieces_doc doc;
            leat__buf_init(&notes, LEAT__MEM_MISC, 1u << 20);
            for (int i = 0; i < shift; i++) strcat(id, "a");
            for (int i = 0; i < 250; i++) strcat(id, units[u]);
            strcat(id, "\"");
            leat__pieces_note(&notes, 1, 1, 1, id);
            memcpy(&doc, notes.data, sizeof doc);
            json_t *value = json_loads(doc.id, JSON_DECODE_ANY, NULL);
            if (!value) fail_msg("%s", doc.id);
            json_decref(value);
            leat__buf_reset(&notes);
        }
    }
}

static void pages_are_written(void **state)
{
    leat_dedup_stats st;
    put_text("p.jsonl", "{\"id\":\"a<b\",\"text\":\"one\\ntwo\"}\n{\"id\":7,\"text\":\"one\\nthree\"}\n"
                        "{\"text\":\"two\"}\n{}\n");
    leat_dedup_opts o = fuzzy_opts("p.jsonl", "out");
    char files[1100];
    o.kind = LEAT_DEDUP_EXACT;
    o.level = LEAT_LEVEL_LINE;
    snprintf(files, sizeof files, "%s,%s", in_box("p.html"), in_box("p.json"));
    o.report = files;
    dedup_ok(&o, &st);
    char *json = load_text("p.json"), *page = load_text("p.html");
    json_t *root = json_loads(json, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "unit")), "lines");
    assert_int_equal(json_integer_value(json_object_get(root, "changed")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "documents")), 3);
    assert_int_equal(json_integer_value(json_object_get(root, "kept")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "removed")), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "bad")), 1);
    const json_t *most = json_object_get(root, "most");
    assert_int_equal(json_array_size(most), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(most, 0), "id")), 7);
    json_decref(root);
    assert_non_null(strstr(page, "Documents that lost most"));
    assert_non_null(strstr(page, "3 documents: 2 changed, 2 kept, 1 removed;"));
    assert_non_null(strstr(page, "; 1 bad line."));
    leat__free(json);
    leat__free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_that_lost_most),
        cmocka_unit_test(long_ids_are_cut),
        cmocka_unit_test(pages_are_written),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
