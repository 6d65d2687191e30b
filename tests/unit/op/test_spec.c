/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "op/spec.h"

static leat__op_spec ops[LEAT__SPEC_OPS_MAX];

static uint32_t parse(const char *text)
{
    uint32_t n = 0;
    leat_error err = {0};
    if (leat__spec_parse(text, ops, &n, &err) != 0) fail_msg("%s: %s", text, err.message);
    return n;
}

static void reads_values_by_position_and_name(void **state)
{
    assert_int_equal(
        parse("RandomResizedCrop( 224 , scale = (0.1, .9), interpolation='bicubic' )"),
        1);
    assert_string_equal(ops[0].def->name, "RandomResizedCrop");
    assert_int_equal(ops[0].value[0].count, 1);
    assert_true(ops[0].value[0].list[0] == 224);
    assert_true(ops[0].value[1].list[0] == 0.1 && ops[0].value[1].list[1] == 0.9);
    assert_true(ops[0].value[2].list[0] == 0.75); /* default */
    assert_int_equal(ops[0].value[3].i, LEAT__FILTER_BICUBIC);
    assert_int_equal(parse("Resize([7, 9]); Resize((7,))"), 2);
    assert_int_equal(ops[0].value[0].count, 2);
    assert_int_equal(ops[1].value[0].count, 1);
}

static void separators_and_comments(void **state)
{
    assert_int_equal(parse(""), 0);
    assert_int_equal(parse(" ;; \n # nothing\n"), 0);
    assert_int_equal(
        parse("CenterCrop(4)\nRandomHorizontalFlip # with p\n; RandomVerticalFlip()"), 3);
    assert_int_equal(parse("CenterCrop(\n  4 # side\n)"), 1);
}

static void mistakes_say_where(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"RandomResizedCorp(1)", "RandomResizedCrop"},
        {"CenterCrop", "needs its parameter 'size'"},
        {"CenterCrop(1, 2)", "too many"},
        {"CenterCrop(size=1, size=2)", "twice"},
        {"CenterCrop(height=3)", "no parameter 'height'"},
        {"RandomErasing(p=0.5, 3)", "without a name"},
        {"CenterCrop(4", "expected"},
        {"CenterCrop((1, 2)", "expected"},
        {"CenterCrop((1, 2", "not closed"},
        {"CenterCrop(0)", "out of range"},
        {"CenterCrop(x)", "list of numbers"},
        {"CenterCrop(4) CenterCrop(4)", "new line"},
        {"Resize(4, interpolation=bilinera)", "bilinear"},
        {"Resize(4, interpolation='bilinear)", "not closed"},
        {"Resize((1,2,3))", "size"},
        {"Resize(100, max_size=50)", "max_size"},
        {"Pad((1,2,3))", "padding"},
        {"Pad(1, fill=(1,2))", "fill"},
        {"9", "name is expected"},
        {"GaussianBlur(4)", "odd"},
        {"GaussianBlur(3, sigma=(2, 1))", "sigma"},
        {"ColorJitter(brightness=(2, 1))", "brightness"},
        {"RandAugment(2, 31)", "magnitude"},
        {"Grayscale(2)", "1 or 3"},
        {"RandomAffine(3, shear=(1,2,3))", "shear"},
        {"CenterCrop(=4)", "value is expected"},
        {"CenterCrop(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=4)",
         "list of numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_error err = {0};
        uint32_t n;
        if (leat__spec_parse(cases[i].text, ops, &n, &err) != LEAT_EINVAL)
            fail_msg("accepted: %s", cases[i].text);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.message,
                     cases[i].says);
    }
}

static void has_a_limit(void **state)
{
    char text[LEAT__SPEC_OPS_MAX * 24 + 64] = "";
    uint32_t n;
    for (int i = 0; i <= LEAT__SPEC_OPS_MAX; i++)
        strcat(text, "RandomVerticalFlip;");
    assert_code(LEAT_EINVAL, leat__spec_parse(text, ops, &n, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values_by_position_and_name),
        cmocka_unit_test(separators_and_comments),
        cmocka_unit_test(mistakes_say_where),
        cmocka_unit_test(has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
