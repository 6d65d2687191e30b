/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "io/xml.h"

static leat__xml of(const char *text)
{
    return (leat__xml){text, strlen(text)};
}

static void lists(void **state)
{
    leat__xml rest = of("<?xml version=\"1.0\"?><R xmlns=\"u\"><Contents><Key>a&amp;b</Key></Contents>"
                        "<Contents x='1'><Key>&#228;&#x20AC;c</Key></Contents><Contents/></R>");
    leat__xml inner;
    leat__buf key;
    (void)state;
    leat__buf_init(&key, LEAT__MEM_MISC, 1024);
    assert_true(leat__xml_next(rest, "Contents", &inner, &rest));
    assert_true(leat__xml_text(inner, "Key", &key));
    assert_string_equal(leat__buf_str(&key), "a&b");
    assert_true(leat__xml_next(rest, "Contents", &inner, &rest));
    assert_true(leat__xml_text(inner, "Key", &key));
    assert_string_equal(leat__buf_str(&key), "ä€c");
    assert_true(leat__xml_next(rest, "Contents", &inner, &rest));
    assert_int_equal(inner.len, 0);
    assert_false(leat__xml_text(inner, "Key", &key));
    assert_false(leat__xml_next(rest, "Contents", &inner, &rest));
    leat__buf_reset(&key);
    assert_no_leaks();
}

static void malformed(void **state)
{
    static const char *const texts[] = {"",    "<",     "<Key", "<Key>", "<Key>a</Ke", "<Keys>a</Keys>",
                                        "Key", "</Key>"};
    leat__buf key;
    (void)state;
    leat__buf_init(&key, LEAT__MEM_MISC, 1024);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(leat__xml_text(of(texts[i]), "Key", &key));
    assert_true(leat__xml_text(of("<Key>&bad; & &#0; &#xffffffff;</Key>"), "Key", &key));
    assert_string_equal(leat__buf_str(&key), "&bad; & &#0; &#xffffffff;");
    leat__buf_clear(&key);
    assert_ok(leat__xml_escape(&key, "<a & 'b'>\""));
    assert_string_equal(leat__buf_str(&key), "&lt;a &amp; &apos;b&apos;&gt;&quot;");
    leat__buf_reset(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(malformed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
