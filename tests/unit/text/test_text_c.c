/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain C kernels on a text whose counts were determined by hand. tests/oracle/check_text.py compares
 * every count with Python on many more texts.
 */
#include "leat_test.h"

#include "text/text_dsp.h"

static void counts_by_hand(void **state)
{
    static const char text[] = "- The cat sat on the mat.\n"
                               "See https://x.org/a?b=1 (or not)...\n"
                               "\n"
                               "The cat sat on the mat.\n"
                               "12 \xd0\x96\xd0\xb4 #";
    leat__scorer s;
    assert_ok(leat__scorer_init(&s, NULL));
    assert_ok(leat__scorer_run(&s, 0, NULL));
    memcpy(s.text, text, sizeof text - 1);
    leat__text_c.score(&s, sizeof text - 1);
    const leat__counts *c = &s.counts;
    assert_int_equal(c->bytes, sizeof text - 1);
    assert_int_equal(c->chars, sizeof text - 1 - 2);
    assert_int_equal(c->words, 7 + 4 + 6 + 3);
    assert_int_equal(c->alpha_words, 6 + 4 + 6 + 1);
    assert_int_equal(c->plain_words, 6 + 4 + 6 + 2);
    assert_int_equal(c->stop_words, 2);
    assert_int_equal(c->stop_words_distinct, 1);
    assert_int_equal(c->urls, 1);
    assert_int_equal(c->url_chars, 19);
    assert_int_equal(c->ellipses, 1);
    assert_int_equal(c->ellipsis_lines, 1);
    assert_int_equal(c->bullet_lines, 1);
    assert_int_equal(c->lines, 4);
    assert_int_equal(c->newlines, 4);
    assert_int_equal(c->paragraphs, 2);
    assert_int_equal(c->hashes, 1);
    assert_int_equal(c->symbol_words, 1);
    assert_int_equal(c->digits, 3);
    assert_int_equal(c->c4_lines, 2);
    assert_int_equal(c->c4_sentences, 2);
    assert_int_equal(c->dup_5gram_chars, 3 + 3 + 3 + 2 + 3);
    leat__scorer_reset(&s);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
