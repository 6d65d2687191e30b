/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/pipeline.h"

static const leat__pixel_kind five = {LEAT__SAMPLE_U16, 5};

static void refused(leat__pixel_kind kind, const char *ops, const char *text)
{
    leat__pipeline *p = NULL;
    leat_error err = {0};
    const leat__pipeline_opts o = {.ops = ops, .kind = kind, .field = "bands"};
    assert_int_equal(leat__pipeline_open(&p, &o, &err), LEAT_EINVAL);
    if (!strstr(err.message, text)) fail_msg("%s: %s", ops, err.message);
    assert_null(p);
}

static leat__output_spec taken(leat__pixel_kind kind, const char *ops)
{
    leat__pipeline *p = NULL;
    leat_error err = {0};
    const leat__pipeline_opts o = {.ops = ops, .kind = kind, .field = "bands"};
    if (leat__pipeline_open(&p, &o, &err) != 0) fail_msg("%s: %s", ops, err.message);
    assert_int_equal(leat__pipeline_wide(p), kind.channels > 0);
    const leat__output_spec spec = *leat__pipeline_output(p);
    leat__pipeline_close(&p);
    return spec;
}

static void refusals_name_op_field_and_kind(void **state)
{
    refused(five, "CenterCrop(8); ColorJitter(0.4)",
            "ColorJitter works on 8-bit images of 1, 3 or 4 channels, and not on field 'bands' "
            "(uint16, 5 channels)");
    refused(five, "CenterCrop(8); RandomApply(GaussianBlur(3))", "GaussianBlur works on 8-bit");
    refused(five, "CenterCrop(8); AugMix", "AugMix works on 8-bit");
    refused(five, "CenterCrop(8); ElasticTransform", "ElasticTransform works on 8-bit");
    refused(five, "CenterCrop(8); RandomErasing; ToDtype(f32)", "RandomErasing blanks 8-bit pixels");
    refused(five, "CenterCrop(8); Normalize((1, 2, 3), 1)",
            "Normalize.mean: one number or 5 for field 'bands'");
    refused(five, "CenterCrop(8); ToDtype(u8)",
            "ToDtype(u8) would change the values of field 'bands' (uint16, 5 channels): use u16 or a float "
            "type, such as f32");
    refused(five, "CenterCrop(8); Normalize(0, 1); ToDtype(u16)", "Normalize needs a float type");
    refused((leat__pixel_kind){LEAT__SAMPLE_U8, 17}, "CenterCrop(8)", "17 channels: at most 16");
    refused((leat__pixel_kind){LEAT__SAMPLE_F32, 1}, "CenterCrop(8); ToDtype(u16)",
            "use a float type, such as f32");
    refused((leat__pixel_kind){0}, "CenterCrop(8); ToDtype(u16)", "ToDtype(u16) needs images of uint16");
    refused((leat__pixel_kind){0}, "Pad(1, fill=256); CenterCrop(8)",
            "Pad.fill: 256 is out of range (0 to 255)");
    refused((leat__pixel_kind){0}, "CenterCrop(8); Normalize((1, 2, 3, 4), 1)", "one number or three");
    refused((leat__pixel_kind){0}, "Pad(1, fill=(1, 2)); CenterCrop(8)", "Pad.fill: one number or three");
}

static void output_types(void **state)
{
    leat__output_spec s = taken(five, "CenterCrop((4, 6))");
    assert_int_equal(s.dtype, LEAT_DTYPE_U16);
    assert_int_equal(s.channels, 5);
    assert_int_equal(s.bytes, 4 * 6 * 5 * 2);
    s = taken(five, "CenterCrop(4); Normalize((1, 2, 3, 4, 5), 1)");
    assert_int_equal(s.dtype, LEAT_DTYPE_F32);
    s = taken(five, "CenterCrop(4); Normalize(0, 1); ToDtype(f16); ToLayout(nhwc); RandomErasing");
    assert_int_equal(s.dtype, LEAT_DTYPE_F16);
    assert_int_equal(s.layout, LEAT__LAYOUT_NHWC);
    s = taken((leat__pixel_kind){LEAT__SAMPLE_F32, 16}, "CenterCrop(4); Pad(1, fill=60000)");
    assert_int_equal(s.dtype, LEAT_DTYPE_F32);
    s = taken((leat__pixel_kind){LEAT__SAMPLE_U8, 2}, "CenterCrop(4)");
    assert_int_equal(s.dtype, LEAT_DTYPE_U8);
    s = taken((leat__pixel_kind){0}, "CenterCrop(4); Normalize((1, 2, 3), 2)");
    assert_int_equal(s.channels, 3);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_op_field_and_kind),
        cmocka_unit_test(output_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
