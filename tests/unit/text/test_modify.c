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
    expect("boilerplate", "one\nOur Privacy Policy is here\ntwo", "one\ntwo");
    expect("c4-lines", "menu\nThis line is kept.\nshort one.\nAnd so on...", "This line is kept.");
    expect("quotes,newlines", "\xe2\x80\x98x\xe2\x80\x99\r\n", "'x'\n");
    expect("", "same", "same");
    expect("newlines", "", "");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
