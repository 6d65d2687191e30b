/* SPDX-License-Identifier: Apache-2.0
 *
 * Shingles of words and of characters, and large documents among small ones.
 */
#include "curate/dedup_box.h"

static leat_dedup_stats st;

static void characters_find_more_than_words(void **state)
{
    FILE *f = fopen(in_box("c.jsonl"), "wb");
    /* the same letters, cut into other words */
    fprintf(f, "{\"text\":\"");
    for (int i = 0; i < 400; i++)
        fprintf(f, "\xe6\xbc\xa2%c\xe5\xad\x97", 'a' + i * 7 % 26);
    fprintf(f, "\"}\n{\"text\":\"");
    for (int i = 0; i < 400; i++)
        fprintf(f, "\xe6\xbc\xa2%c\xe5\xad\x97%s", 'a' + i * 7 % 26, i == 200 ? " " : "");
    fprintf(f, "\"}\n");
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "words");
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 0);
    o = fuzzy_opts("c.jsonl", "chars");
    o.shingle_chars = 5;
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 1);
}

static void large_documents(void **state)
{
    FILE *f = fopen(in_box("l.jsonl"), "wb");
    for (int i = 0; i < 4; i++) {
        put_doc(f, "small", i % 2, 100, 100, 0);
        put_doc(f, "large", i % 2 + 10, 300000, 300000, 0);
    }
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("l.jsonl", "l");
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 4);
    o = fuzzy_opts("l.jsonl", "limit");
    o.max_document = 1u << 20;
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 4);
    assert_int_equal(st.bad, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_find_more_than_words),
        cmocka_unit_test(large_documents),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
