/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/modify.h"

static void expect(const char *names, const char *from, const char *to)
{
    leat__modifiers m;
    leat__buf text;
    bool changed;
    assert_ok(leat__modifiers_init(&m, names, NULL));
    leat__buf_init(&text, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_puts(&text, from);
    assert_ok(leat__modifiers_run(&m, &text, &changed, NULL));
    assert_string_equal(leat__buf_str(&text), to);
    assert_int_equal(changed, strcmp(from, to) != 0);
    leat__buf_reset(&text);
    leat__modifiers_reset(&m);
}

static void steps(void **state)
{
    expect("newlines", "a \r\nb\r\r\n\n\nc\t\n", "a\nb\n\nc\n");
    expect("quotes", "\xe2\x80\x9cyes\xe2\x80\x9d it\xe2\x80\x99s \xc2\xabno\xc2\xbb", "\"yes\" it's \"no\"");
    expect("unicode", "caf\xc3\x83\xc2\xa9 it\xc3\xa2\xe2\x82\xac\xe2\x84\xa2s \xef\xbb\xbfok\x01",
           "caf\xc3\xa9 it\xe2\x80\x99s ok");
    expect("unicode", "na\xc3\xafve caf\xc3\xa9 \xc3\x83 x", "na\xc3\xafve caf\xc3\xa9 \xc3\x83 x");
    expect("unicode", "caf\u00c3\u0192\u00c2\u00a9", "caf\u00e9"); /* misread twice */
    expect("compatible", "\xef\xbc\xa1\xef\xbc\x91\xc2\xa0\xef\xac\x81x\xe2\x80\x91y", "A1 fix-y");
    expect("urls", "see http://a.b/c?d=e, or (www.x.org). end", "see , or (). end");
    expect("urls", "xhttp://a is not one; https:// neither", "xhttp://a is not one; https:// neither");
    expect("emails", "to a.b+c@d-e.org, now", "to , now");
    expect("emails", "a@b is none; x@1.2 neither", "a@b is none; x@1.2 neither");
    expect("pii", "mail me@x.com or 10.0.0.255, call +1 (555) 123-4567.",
           "mail <EMAIL> or <IP>, call <PHONE>.");
    expect("pii", "version 1.2.3.4.5, 256.1.1.1, 2024-01-01, 1234567890123",
           "version 1.2.3.4.5, 256.1.1.1, 2024-01-01, 1234567890123");
    expect("pii", "call 555-123-4567 now", "call <PHONE> now");
    expect("urls", "at HTTP://Z.Q and https://\xc3\xbc.de/\xc3\xa4\xe3\x80\x82 end",
           "at  and \xe3\x80\x82 end");
    expect("emails", "to \xc3\xa9@b.co, \xe3\x80\x82x@\xc3\xbc.de.", "to , \xe3\x80\x82.");
    expect("urls", "[l](http://a.b)[m](http://c.d) x, http://e.f/A_(b) y, (http://g.h). http://[::1]/z end",
           "[l]()[m]() x,  y, ().  end");
    expect("unicode",
           "a\vb\fc\xc2\x85"
           "d\x01"
           "e",
           "a b c de");
    expect("compatible", "\xef\xac\x85\xef\xac\x86", "stst");
    expect(" quotes , newlines", "\xe2\x80\x98x\r\n", "'x\n");
    expect("boilerplate", "one\nOur Privacy Policy is here\ntwo", "one\ntwo");
    expect("c4-lines", "menu\nThis line is kept.\nshort one.\nAnd so on...", "This line is kept.");
    expect("c4-lines",
           "An end[3] with marks.[edit]\r\nThree\u00a0words here.\u00a0\rA citation ends. [1]\vNo",
           "An end with marks.\nThree\u00a0words here.");
    expect("c4-lines", "No.\n[12] \u00a0One two three four.\n[3] Five six seven.",
           "One two three four.\n Five six seven.");
    expect("c4-lines", "Lorem ipsum is kept.\nOur privacy policy is {here}.\nOur privacy policy is not.",
           "Lorem ipsum is kept.\nOur privacy policy is {here}.");
    expect("emails", "写信给support@example.com我们。 พิมพ์a@b.co้ การ a@b.com으로",
           "写信给我们。 พิมพ์้ การ 으로");
    expect("pii", "电话030-1234567谢谢, 服务器10.0.0.1的地址", "电话<PHONE>谢谢, 服务器<IP>的地址");
    expect("quotes,newlines", "\xe2\x80\x98x\xe2\x80\x99\r\n", "'x'\n");
    expect("", "same", "same");
    expect("newlines", "", "");
}

/* Telephone numbers, and numbers that are not. */
static void telephones(void **state)
{
    static const char *const yes[] = {
        "+1 (555) 123-4567", "+15551234567",   "+49 30 12345678", "+44 20 7946 0958", "+33 1 23 45 67 89",
        "+7 495 123-45-67",  "+4915112345678", "(212) 555-1234",  "(212)555-1234",    "555-123-4567",
        "555.123.4567",      "212 555 1234",   "1-800-555-0199",  "1 (800) 555-0199", "030 1234567",
        "0171-1234567",      "020 7946 0958",  "01 23 45 67 89",  "(030) 12345678",   "+49 (0)30 1234567"};
    static const char *const no[] = {"2024-01-02 12:34",
                                     "2024-01-02T12:34:56Z",
                                     "12.05.2024 18:30",
                                     "01.02.2024 18",
                                     "01-02-2024 12",
                                     "2024-01-02 12 34 56",
                                     "978-3-16-148410-0",
                                     "0-306-40615-2",
                                     "ISBN 978-0-306-40615-7",
                                     "2 000 000 000",
                                     "+2 000 000 000",
                                     "1 000 000 0000",
                                     "10 20 30 40 50",
                                     "+10 20",
                                     "192.168.1.256",
                                     "1234567890123",
                                     "5551234567",
                                     "123-45-6789",
                                     "10 200 300 4000",
                                     "212-555-1234-99",
                                     "212-555-1234x",
                                     "4111 1111 1111 1111",
                                     "0.123456789",
                                     "007",
                                     "1.5-2.5",
                                     "12345-6789",
                                     "00:11:22:33:44:55",
                                     "3.14159 26535 89793",
                                     "02 03 2024 10"};
    char text[100], want[100];
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        snprintf(text, sizeof text, "call %s, now", yes[i]);
        expect("pii", text, "call <PHONE>, now");
        snprintf(text, sizeof text, "%s", yes[i]);
        expect("pii", text, "<PHONE>");
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        snprintf(text, sizeof text, "it is %s, now", no[i]);
        snprintf(want, sizeof want, "%s", text);
        expect("pii", text, want);
    }
    expect("pii", "tel:5551234567", "tel:<PHONE>");
}

static void names(void **state)
{
    leat__modifiers m;
    leat_error err;
    const char *name, *help;
    assert_code(LEAT_EINVAL, leat__modifiers_init(&m, "newlines,nothing", &err));
    assert_contains(err.message, "nothing");
    leat__modifiers_reset(&m);
    unsigned n = 0;
    while (leat__modifier_at(n, &name, &help)) n++;
    assert_int_equal(n, 9);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(telephones),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
