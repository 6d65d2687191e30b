/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/num.h"
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
    assert_int_equal(parse("RandomResizedCrop( 224 , scale = (0.1, .9), interpolation='bicubic' )"), 1);
    assert_string_equal(ops[0].def->name, "RandomResizedCrop");
    assert_int_equal(ops[0].value[0].count, 1);
    assert_true(ops[0].value[0].list[0] == 224);
    assert_true(ops[0].value[1].list[0] == 0.1 && ops[0].value[1].list[1] == 0.9);
    assert_true(ops[0].value[2].list[0] == 0.75); /* default */
    assert_int_equal(ops[0].value[3].i, LEAT__FILTER_BICUBIC);
    assert_int_equal(parse("ToLayout(NHWC); ToDtype('F16'); Resize(4, interpolation=BiCubic)"), 3);
    assert_int_equal(ops[0].value[0].i, 1);
    assert_int_equal(ops[2].value[1].i, LEAT__FILTER_BICUBIC);
    assert_int_equal(parse("Resize([7, 9]); Resize((7,))"), 2);
    assert_int_equal(ops[0].value[0].count, 2);
    assert_int_equal(ops[1].value[0].count, 1);
}

static void separators_and_comments(void **state)
{
    assert_int_equal(parse(""), 0);
    assert_int_equal(parse(" ;; \n # nothing\n"), 0);
    assert_int_equal(parse("CenterCrop(4)\nRandomHorizontalFlip # with p\n; RandomVerticalFlip()"), 3);
    assert_int_equal(parse("CenterCrop(\n  4 # side\n)"), 1);
}

static void mistakes_say_where(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"RandomResizedCorp(1)", "RandomResizedCrop"},
        {"CenterCrop", "needs its parameter 'size'"},
        {"CenterCrop(1, 0.5, bilinear, pillow13, 5)", "too many"},
        {"CenterCrop(size=1, size=2)", "twice"},
        {"CenterCrop(height=3)", "no parameter 'height'"},
        {"RandomErasing(p=0.5, 3)", "without a name"},
        {"CenterCrop(4", "expected"},
        {"CenterCrop((1, 2)", "expected"},
        {"CenterCrop((1, 2", "a list is not closed at the end of 'CenterCrop((1, 2'"},
        {"CenterCrop(1", "',' or ')' is expected at the end of 'CenterCrop(1'"},
        {"CenterCrop(1; Resize(2)", "',' or ')' is expected at character 13: '; Resize(2)'"},
        {"RandomHorizontalFlip; RandomVerticalFlip; CenterCrop(1",
         "at the end of '...alFlip; RandomVerticalFlip; CenterCrop(1'"},
        {"CenterCrop(0)", "out of range"},
        {"CenterCrop(x)", "list of numbers"},
        {"CenterCrop(4) CenterCrop(4)", "new line"},
        {"Resize(4, interpolation=bilinera)", "bilinear"},
        {"Resize(4, interpolation='bilinear)", "not closed"},
        {"Resize((1,2,3))", "size"},
        {"Resize(100, max_size=50)", "max_size"},
        {"Pad((1,2,3))", "padding"},
        {"Pad(1, fill=70000)", "fill"},
        {"9", "name is expected"},
        {"RandomApply", "needs its parameter 'transforms'"},
        {"RandomApply(p=0.5)", "needs its parameter 'transforms'"},
        {"RandomApply([])", "at least one op"},
        {"RandomApply(0.5)", "name is expected"},
        {"RandomApply(RandomInvert; 0.5)", "name is expected"},
        {"RandomApply([RandomInvert, 0.5])", "name is expected"},
        {"RandomApply([RandomInvert; RandomGrayscale)", "']' is expected"},
        {"RandomApply([RandomInvert], RandomGrayscale)", "RandomApply.p"},
        {"RandomApply(RandomInvert, p=2)", "out of range"},
        {"RandomApply(RandomInvert, transforms=RandomInvert)", "twice"},
        {"RandomApply(Normalize(0, 1))", "Normalize cannot be used inside RandomApply"},
        {"RandomOrder(RandomInvert; MixUp())", "MixUp cannot be used inside RandomOrder"},
        {"RandomOrder(Mask())", "Mask cannot be used inside RandomOrder"},
        {"RandomOrder(Grayscale())", "Grayscale(3)"},
        {"RandomOrder(RandomApply(Grayscale(1)))", "Grayscale(3)"},
        {"RandomChoice(RandomInvert; RandomGrayscale, p=(1, 2, 3))", "3 weights for 2 ops"},
        {"RandomChoice(RandomInvert; RandomGrayscale, p=(0, 0))", "all weights are 0"},
        {"RandomChoice(RandomInvert, p=-1)", "out of range"},
        {"RandomApply(RandomApply(RandomApply(RandomApply(RandomApply(RandomApply(RandomApply("
         "RandomApply(RandomApply(RandomInvert)))))))))",
         "nested too deeply"},
        {"RandomApply(RandomInvert", "expected"},
        {"RandomApply(RandomInverd)", "RandomInvert"},
        {"GaussianBlur(4)", "odd"},
        {"GaussianBlur(3, sigma=(2, 1))", "sigma"},
        {"ColorJitter(brightness=(2, 1))", "brightness"},
        {"RandAugment(2, 31)", "magnitude"},
        {"Grayscale(2)", "1 or 3"},
        {"RandomAffine(3, shear=(1,2,3))", "shear"},
        {"CenterCrop(=4)", "value is expected"},
        {"CenterCrop(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=4)", "list of numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_error err = {0};
        uint32_t n;
        if (leat__spec_parse(cases[i].text, ops, &n, &err) != LEAT_EINVAL)
            fail_msg("accepted: %s", cases[i].text);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].text, err.message, cases[i].says);
    }
}

/* Ops inside an op follow it; its count includes nested ones. */
static void ops_are_nested(void **state)
{
    static const char *const same[] = {
        "RandomApply(ColorJitter(0.4); RandomChoice(RandomInvert, Cutout(3)); Resize(9), 0.3)",
        "RandomApply([ColorJitter(0.4), RandomChoice([RandomInvert; Cutout(3)]), Resize(9)], p=0.3)",
        "RandomApply(p=0.3, transforms=ColorJitter(0.4), RandomChoice(RandomInvert; Cutout(3);); Resize(9);)",
        ("RandomApply(transforms=[\nColorJitter(0.4); "
         "# one\n RandomChoice(\nRandomInvert;Cutout(3)),Resize(9),],p=0.3)"),
    };
    for (size_t i = 0; i < LEAT_COUNT(same); i++) {
        assert_int_equal(parse(same[i]), 6);
        assert_string_equal(ops[0].def->name, "RandomApply");
        assert_int_equal(ops[0].inside, 5);
        assert_true(ops[0].value[1].f == 0.3);
        assert_int_equal(ops[1].inside, 0);
        assert_string_equal(ops[2].def->name, "RandomChoice");
        assert_int_equal(ops[2].inside, 2);
        assert_string_equal(ops[5].def->name, "Resize");
    }
    assert_int_equal(parse("RandomChoice(RandomInvert; RandomGrayscale(), p=(1, 3)); CenterCrop(4)"), 4);
    assert_int_equal(ops[0].inside, 2);
    assert_int_equal(ops[0].value[1].count, 2);
    assert_int_equal(ops[3].inside, 0);
}

static void has_a_limit(void **state)
{
    char text[LEAT__SPEC_OPS_MAX * 24 + 64] = "";
    uint32_t n;
    for (int i = 0; i <= LEAT__SPEC_OPS_MAX; i++) strcat(text, "RandomVerticalFlip;");
    assert_code(LEAT_EINVAL, leat__spec_parse(text, ops, &n, NULL));
    strcpy(text, "RandomOrder(");
    for (int i = 0; i < LEAT__SPEC_OPS_MAX; i++) strcat(text, "RandomVerticalFlip;");
    strcat(text, ")");
    assert_code(LEAT_EINVAL, leat__spec_parse(text, ops, &n, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values_by_position_and_name),
        cmocka_unit_test(separators_and_comments),
        cmocka_unit_test(mistakes_say_where),
        cmocka_unit_test(ops_are_nested),
        cmocka_unit_test(has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
