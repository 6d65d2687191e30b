/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

static void bad_lines_and_ids(void **state)
{
    leat_dedup_stats st;
    leat_error err = {0};
    FILE *f = fopen(in_box("w.jsonl"), "wb");
    fprintf(f, "\n{\"broken\n");
    put_doc(f, "first \\\"one\\\"", 1, 50, 50, 0);
    fprintf(f, "{\"text\":7}\n{\"text\":\"");
    put_words(f, 1, 50, 50, 0);
    fprintf(f, "\", \"x\" : [ 1 ] }\n{\"text\":\"...\"}\n{\"text\":\"...\"}");
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("w.jsonl", "w");
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 4);
    assert_int_equal(st.kept, 3);
    assert_int_equal(st.bad, 2);
    assert_int_equal(st.empty, 2); /* no words: not duplicates */
    char *clusters = load_text("w/clusters.jsonl"), *bad = load_text("w/bad.jsonl"),
         *kept = load_text("w/kept-00000.jsonl");
    assert_non_null(strstr(clusters, "w.jsonl:5\",\"kept\":\"first \\\"one\\\"\",\"similarity\":1.0000}\n"));
    assert_non_null(strstr(bad, "\"line\":2,"));
    assert_non_null(strstr(bad, "\"line\":4,"));
    assert_non_null(strstr(kept, "\"}\n{\"text\":\"...\"}\n{\"text\":\"...\"}\n"));
    leat__free(clusters);
    leat__free(bad);
    leat__free(kept);
    o = fuzzy_opts("w.jsonl", "w2");
    o.fail_on_bad = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "w.jsonl: line 2, offset "));
}

static void empty_input(void **state)
{
    leat_dedup_stats st;
    put_text("none.jsonl", "");
    leat_dedup_opts o = fuzzy_opts("none.jsonl", "none");
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 0);
    char *kept = load_text("none/kept-00000.jsonl");
    assert_string_equal(kept, "");
    leat__free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_lines_and_ids), cmocka_unit_test(empty_input)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
