/* SPDX-License-Identifier: Apache-2.0
 *
 * HEIF: files of another program, lossless ones pixel for pixel; regions, damage.
 */
#include "codec/foreign.h"

static void pixels_are_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_HEIF, "heif/rgb.heic")) skip();
    foreign_tolerance = 2; /* heif-enc's conversion of colours is not lossless */
    foreign_same(LEAT__CODEC_HEIF, "heif/rgb.heic", 3, formula);
    foreign_same(LEAT__CODEC_HEIF, "heif/rgba.heic", 4, formula);
    foreign_same(LEAT__CODEC_HEIF, "heif/lossy.heic", 3, NULL);
}

static void damage_is_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_HEIF, "heif/rgb.heic")) skip();
    foreign_damage(LEAT__CODEC_HEIF, "heif/rgb.heic");
    foreign_damage(LEAT__CODEC_HEIF, "heif/lossy.heic");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),
        cmocka_unit_test(damage_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
