/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include "op/roles.h"
#include "op/spec.h"

static leat__role_spec roles[LEAT__SPEC_OPS_MAX];

static void text_becomes_roles(void **state)
{
    uint32_t n;
    assert_ok(leat__spec_parse_roles("mask; boxes = Boxes(xywh, min_visible=0.25, image=view)\n"
                                     "'my field' = follow; points=Keypoints(relative=true);c = Labels('b x')",
                                     roles, &n, NULL));
    assert_int_equal(n, 5);
    assert_string_equal(roles[0].field, "mask");
    assert_null(roles[0].op.def);
    assert_ptr_equal(roles[1].op.def, &leat__ops_roles[LEAT__ROLE_BOXES]);
    assert_int_equal(roles[1].op.value[LEAT__BOXES_FORMAT].i, 1);
    assert_true(roles[1].op.value[LEAT__BOXES_VISIBLE].f == 0.25);
    assert_true(roles[1].op.value[LEAT__BOXES_SIZE].f == 1);
    assert_string_equal(roles[1].op.text, "view");
    assert_string_equal(roles[2].field, "my field");
    assert_null(roles[2].op.def);
    assert_int_equal(roles[3].op.value[LEAT__POINTS_RELATIVE].i, 1);
    assert_string_equal(roles[4].op.text, "b x");
}

static void wrong_roles_say_why(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"mask = Resize(3)", "cannot be Resize"},
        {"mask; mask", "given twice"},
        {"mask = Bokses()", "did you mean 'Boxes'"},
        {"mask = Mask(fill=300)", "out of range"},
        {"mask boxes", "expected"},
        {"boxes = Boxes(xyz)", "xyxy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_error err = {0};
        uint32_t n;
        assert_code(LEAT_EINVAL, leat__spec_parse_roles(cases[i].text, roles, &n, &err));
        assert_contains(err.message, cases[i].says);
    }
    static leat__op_spec ops[LEAT__SPEC_OPS_MAX];
    leat_error err = {0};
    uint32_t n;
    assert_code(LEAT_EINVAL, leat__spec_parse("CenterCrop(4); Mask()", ops, &n, &err));
    assert_contains(err.message, "give it to follow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_roles),
        cmocka_unit_test(wrong_roles_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
