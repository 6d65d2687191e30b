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
    for (int i = 0; i < 400; i++) fprintf(f, "\xe6\xbc\xa2%c\xe5\xad\x97", 'a' + i * 7 % 26);
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

/* Words without digits, which datatrove makes equal. Of four documents three are edited. */
static void make_letters(const char *name)
{
    FILE *f = fopen(in_box(name), "wb");
    for (int i = 0; i < 400; i++) {
        fprintf(f, "{\"text\":\"");
        for (int k = 0; k < 80; k++) {
            int word = k * 389 + (k < i % 4 * 5 ? i : i / 4) * 7919;
            fprintf(f, "%c%c%c%c ", 'a' + word % 26, 'a' + word / 26 % 26, 'a' + word / 676 % 26,
                    'a' + word / 17576 % 26);
        }
        fprintf(f, "\"}\n");
    }
    fclose(f);
}

/* Signatures of other tools: sharing a band is enough, unless there is a threshold. */
static void signatures_of_others(void **state)
{
    leat_error err = {0};
    make_letters("s.jsonl");
    for (uint32_t kind = LEAT_COMPATIBLE_DATASKETCH; kind <= LEAT_COMPATIBLE_DATATROVE; kind++) {
        char a[16], b[16];
        snprintf(a, sizeof a, "a%u", kind);
        snprintf(b, sizeof b, "b%u", kind);
        leat_dedup_opts o = fuzzy_opts("s.jsonl", a);
        o.compatible = kind;
        dedup_ok(&o, &st);
        uint64_t removed = st.removed;
        assert_true(removed > 50);
        assert_int_equal(st.candidates, st.verified);
        o = fuzzy_opts("s.jsonl", b);
        o.compatible = kind;
        o.threshold = 0.95;
        o.threads = 3;
        o.memory = 64u << 20;
        dedup_ok(&o, &st);
        assert_true(st.removed > 0 && st.removed < removed);
        assert_true(st.verified < st.candidates);
        assert_int_equal(st.below_threshold, 0);
    }
    leat_dedup_opts o = fuzzy_opts("s.jsonl", "x");
    o.compatible = LEAT_COMPATIBLE_DATATROVE;
    o.shingle_chars = 5;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("s.jsonl", "x");
    o.compatible = 9;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("s.jsonl", "x");
    o.kind = LEAT_DEDUP_EXACT;
    o.compatible = LEAT_COMPATIBLE_DATATROVE;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
}

/* An index of one kind of signatures is refused by another. */
static void an_index_has_a_kind(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("s.jsonl", "index");
    o.compatible = LEAT_COMPATIBLE_DATASKETCH;
    o.index = 1;
    dedup_ok(&o, &st);
    o = fuzzy_opts("s.jsonl", "other");
    o.against = in_box("index");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "fuzzy (datasketch)"));
    o.compatible = LEAT_COMPATIBLE_DATASKETCH;
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_find_more_than_words),
        cmocka_unit_test(large_documents),
        cmocka_unit_test(signatures_of_others),
        cmocka_unit_test(an_index_has_a_kind),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
