/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares with the words of spacy.blank("en") 3.8.18, for texts that are already simplified.
 */
#include "leat_test.h"

#include "text/english_words.h"

static void splits(const char *text, const char *want)
{
    uint8_t out[512];
    uint32_t start[256];
    leat__word_list list = {.out = out, .start = start};
    leat__english_split(&list, (const uint8_t *)text, strlen(text));
    uint32_t n = list.count;
    out[n > 0 ? list.bytes - 1 : 0] = 0;
    assert_string_equal((char *)out, want);
    for (uint32_t i = 1; i < n; i++) assert_int_equal(out[start[i] - 1], ' ');
}

static void words(void **state)
{
    splits("", "");
    splits("plain words  here", "plain words here");
    splits("dont cannot shouldntve yall dontt ont", "do nt can not should nt ve y all dontt ont");
    splits("id im ima", "i d i m i m a");
    splits("0km 0kmh 0m² 0µg a0km 0kms 0мм", "0 km 0 kmh 0 m² 0 µg a0 km 0kms 0 мм");
    splits("€0 0€ x€ 0€€", "€ 0 0 € x€ 0€€");
    splits("a©b © ©©x© ©dont", "a © b © © © x © © do nt");
    splits("‘quoted‘ ‘s it‘s", "‘ quoted ‘ ‘s it‘s");
    splits("x=y =y x= 0=y 0=0", "x = y = y x= 0 = y 0=0");
    splits("0km©", "0 km ©");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
