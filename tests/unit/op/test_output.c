/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "op/output.h"
#include "op/spec.h"

static leat__output_draft draft_of(const char *text)
{
    static leat__op_spec ops[LEAT__SPEC_OPS_MAX];
    leat__output_draft d = {.scale = true, .std = {1, 1, 1}};
    uint32_t n;
    assert_ok(leat__spec_parse(text, ops, &n, NULL));
    for (uint32_t i = 0; i < n; i++) assert_ok(leat__output_apply(&d, &ops[i], NULL));
    return d;
}

static void ops_fill_the_draft(void **state)
{
    leat__output_draft d = draft_of("Normalize((1,2,3), 4); ToDtype(bf16, scale=false); ToLayout(nhwc)");
    assert_true(d.normalized && d.dtype_given && !d.scale);
    assert_int_equal(d.dtype, LEAT_DTYPE_BF16);
    assert_int_equal(d.layout, LEAT__LAYOUT_NHWC);
    assert_true(d.mean[2] == 3 && d.std[0] == 4);
    assert_true(d.mean_count == 3 && d.std_count == 1);
    d = draft_of("ToDtype(u8)");
    assert_true(d.dtype_given && d.scale && !d.normalized);
    assert_int_equal(d.dtype, LEAT_DTYPE_U8);
}

/* The number of channels is known when a pipeline is opened. */
static void wrong_lists_are_refused(void **state)
{
    static leat__op_spec ops[LEAT__SPEC_OPS_MAX];
    uint32_t n;
    assert_code(LEAT_EINVAL, leat_pipeline_check("CenterCrop(4); Normalize((1,2), 1)", NULL, NULL));
    assert_code(LEAT_EINVAL, leat_pipeline_check("CenterCrop(4); Normalize(1, (1,2))", NULL, NULL));
    assert_code(LEAT_EINVAL,
                leat__spec_parse("Normalize((1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,7), 1)", ops, &n, NULL));
    assert_code(LEAT_EINVAL, leat__spec_parse("Normalize(1, 0)", ops, &n, NULL));
}

/* The choices of ToDtype and --dtype come from one table, with the values of leat_dtype. */
static void every_choice_has_its_element_type(void **state)
{
    char joined[64] = "";
    (void)state;
    for (uint32_t i = 0; leat__output_dtype(i) != LEAT_DTYPE_NONE; i++)
        snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", i > 0 ? "|" : "",
                 leat_dtype_name(leat__output_dtype(i)));
    assert_string_equal(joined, LEAT__OUTPUT_DTYPE_CHOICES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_has_its_element_type),
        cmocka_unit_test(ops_fill_the_draft),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
