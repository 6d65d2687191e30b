/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG XL: files of another program, lossless ones pixel for pixel; regions, damage.
 */
#include "codec/foreign.h"

static void pixels_are_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_JXL, "jxl/rgb.jxl")) skip();
    foreign_same(LEAT__CODEC_JXL, "jxl/rgb.jxl", 3, formula);
    foreign_same(LEAT__CODEC_JXL, "jxl/rgba.jxl", 4, formula);
    foreign_same(LEAT__CODEC_JXL, "jxl/grey.jxl", 1, formula);
    foreign_same(LEAT__CODEC_JXL, "jxl/lossy.jxl", 3, NULL);
}

static void damage_is_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_JXL, "jxl/rgb.jxl")) skip();
    foreign_damage(LEAT__CODEC_JXL, "jxl/rgb.jxl");
    foreign_damage(LEAT__CODEC_JXL, "jxl/lossy.jxl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),
        cmocka_unit_test(damage_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
