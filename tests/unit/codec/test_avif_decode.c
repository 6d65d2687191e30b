/* SPDX-License-Identifier: Apache-2.0
 *
 * AVIF: files of another program, lossless ones pixel for pixel; regions, damage.
 */
#include "codec/foreign.h"

static void pixels_are_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_AVIF, "avif/rgb.avif")) skip();
    foreign_same(LEAT__CODEC_AVIF, "avif/rgb.avif", 3, formula);
    foreign_same(LEAT__CODEC_AVIF, "avif/rgba.avif", 4, formula);
    foreign_same(LEAT__CODEC_AVIF, "avif/lossy.avif", 3, NULL);
    foreign_same(LEAT__CODEC_AVIF, "avif/animated.avif", 3, NULL);
}

static void damage_is_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_AVIF, "avif/rgb.avif")) skip();
    foreign_damage(LEAT__CODEC_AVIF, "avif/rgb.avif");
    foreign_damage(LEAT__CODEC_AVIF, "avif/alpha.avif");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),
        cmocka_unit_test(damage_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
