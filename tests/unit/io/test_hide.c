/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "io/hide.h"

static void headers(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA123/20250101/us-east-1/s3/aws4_request, "
         "SignedHeaders=host, Signature=abcdef01",
         "AKIA123 may not; expecting us-east-1; got Signature=abcdef01, not abcdef02",
         "… may not; expecting us-east-1; got Signature=…, not abcdef02"},
        {"authorization: Bearer TOKEN.1", "Bearer TOKEN.1 is wrong: TOKEN.1", "Bearer … is wrong: …"},
        {"Authorization: SharedKey me:c2ln", "c2ln of me:c2ln", "… of …"},
        {"X-Amz-Security-Token: SESSION", "SESSION is over", "… is over"},
        {"range: bytes=0-1000", "bytes=0-1000", "bytes=0-1000"},
        {"Authorization", "Authorization", "Authorization"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s", rows[i][1]);
        leat__hide_header(text, rows[i][0]);
        assert_string_equal(text, rows[i][2]);
    }
}

static void urls(void **state)
{
    (void)state;
    static const struct {
        const char *url, *text, *all, *made;
    } rows[] = {
        {"https://h/p?X-Amz-Signature=ab%2Fcd&id=12345&flag1", "ab%2Fcd ab/cd 12345 flag1", "… … … …",
         "… … 12345 flag1"},
        {"http://bob:P%40ss@h/p", "bob P%40ss P@ss Ym9iOlBAc3M=", "bob … … …", "bob … … …"},
        {"http://h/a@bcde?x", "a@bcde x", "a@bcde x", "a@bcde x"},
        {"https://h?sv=2020&sig=SIGN", "2020 SIGN", "… …", "2020 …"},
        {"", "text", "text", "text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int all = 0; all < 2; all++) {
            char text[200];
            snprintf(text, sizeof text, "%s", rows[i].text);
            leat__hide_url(text, rows[i].url, all);
            assert_string_equal(text, all ? rows[i].all : rows[i].made);
        }
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(headers), cmocka_unit_test(urls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
