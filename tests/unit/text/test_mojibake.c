/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/mojibake.h"

static void expect(const char *from, const char *to)
{
    const uint8_t *p = (const uint8_t *)from;
    leat__mojibake found = leat__mojibake_find(p, strlen(from));
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_CURATE, 1u << 20);
    leat__mojibake_undo(p, strlen(from), found, &out);
    assert_int_equal(found.sure, strcmp(from, to) != 0);
    assert_string_equal(leat__buf_str(&out), to);
    leat__buf_reset(&out);
}

static void misread_text_is_undone(void **state)
{
    expect("cafÃ© naÃ¯ve Ãœber Ã\u00a0 la", "café naïve Über à la");
    expect("itâ€™s 5 â‚¬, Acmeâ„¢", "it’s 5 €, Acme™");
    expect("DÃ©faut, K\u00c4\xc2\x81"
           "rsava",
           "Défaut, Kārsava");
    expect("Â£5, 20Â°C", "£5, 20°C");
    expect("vÄ›c, sÉ™hÉ™r", "věc, səhər");
    expect("Ð´Ð°", "да");
    expect("æ—¥æœ¬", "日本");
    expect("ðŸ˜€", "😀");
    expect("ï»¿a", "\xef\xbb\xbf"
                   "a");
}

/* An accented letter with punctuation is not mojibake by itself. */
static void correct_text_is_kept(void **state)
{
    static const char *const texts[] = {"Er sagte: „Das macht Spaß“ und ging.",
                                        "CONSEILLÉ\u00a0: fermer",
                                        "«Ya está…»",
                                        "sintaxi: OPCIÓ… NOM",
                                        "parlé…\u00a0»",
                                        "«Você…»",
                                        "CAFÉ™ DÉPOSÉ®",
                                        "AMANHÃ… ROMÂ®",
                                        "Ä–Ö–Ü, Ä·Ö·Ü",
                                        "« Hawaï… »",
                                        "âlâ”…",
                                        "Â€ is a symbol",
                                        "È\u00a0vero",
                                        "5 ×²",
                                        "",
                                        "plain"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect(texts[i], texts[i]);
}

/* What may be either is undone only if all of the text was misread. */
static void the_rest_of_the_text_decides(void **state)
{
    expect("Å‚adny cafÃ©", "ładny café");
    expect("Å‚adny cafÃ© and café", "Å‚adny café and café");
    expect("SÃ‰CURITÃ‰, cafÃ©", "SÉCURITÉ, café");
    expect("CAFÉ™ and cafÃ© à la carte", "CAFÉ™ and café à la carte");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misread_text_is_undone),
        cmocka_unit_test(correct_text_is_kept),
        cmocka_unit_test(the_rest_of_the_text_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
