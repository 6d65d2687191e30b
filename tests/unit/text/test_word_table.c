/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/word_table.h"

static const leat__word_entry *look_up(const char *word)
{
    const leat__word_table *t = leat__word_table_get();
    uint64_t key = 0;
    memcpy(&key, word, strlen(word));
    const leat__word_entry *e = &t->entry[key * t->multiplier >> 58];
    return e->key == key && e->len == strlen(word) ? e : NULL;
}

static void words_are_found(void **state)
{
    static const char *const stop[] = {"the", "be", "to", "of", "and", "that", "have", "with"};
    uint32_t bits = 0;
    for (int i = 0; i < 8; i++) {
        assert_non_null(look_up(stop[i]));
        assert_int_equal(look_up(stop[i])->count, 1);
        bits |= look_up(stop[i])->bit;
    }
    assert_int_equal(bits, 255);
    assert_int_equal(look_up("...")->count, LEAT__WORD_SYMBOL);
    assert_int_equal(look_up("#")->count, LEAT__WORD_SYMBOL);
    assert_int_equal(look_up("#")->bit, 0);
    assert_null(look_up("The"));
    assert_null(look_up("cat"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
