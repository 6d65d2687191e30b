/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>
#include <string.h>

#include "curate/tiny.h"

#define SIDE LEAT__TINY_SIDE

/* A picture: stripes of a period and direction, a colour, noise. */
static void paint(uint8_t *rgb, int period, bool upright, int red, unsigned noise)
{
    unsigned state = 1 + noise * 7919;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int at = upright ? i % SIDE : i / SIDE;
        const int value = at / period % 2 ? 200 : 40;
        state = state * 1664525u + 1013904223u;
        const int more = noise ? (int)(state >> 28) - 8 : 0;
        const int pixel[3] = {value / 2 + red / 2 + more, value + more, value + more};
        for (int c = 0; c < 3; c++) {
            const int low = pixel[c] < 0 ? 0 : pixel[c];
            rgb[3 * i + c] = (uint8_t)(low > 255 ? 255 : low);
        }
    }
}

static double cosine(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < LEAT__TINY_DIM; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void similar_images_are_near(void **state)
{
    uint8_t rgb[SIDE * SIDE * 3];
    float first[LEAT__TINY_DIM], noisy[LEAT__TINY_DIM], turned[LEAT__TINY_DIM], red[LEAT__TINY_DIM];
    (void)state;
    paint(rgb, 5, true, 120, 0);
    leat__tiny_vector(rgb, first);
    assert_true(fabs(cosine(first, first) - 1) < 1e-5);
    paint(rgb, 5, true, 120, 3);
    leat__tiny_vector(rgb, noisy);
    paint(rgb, 5, false, 120, 0);
    leat__tiny_vector(rgb, turned);
    paint(rgb, 5, true, 255, 0);
    leat__tiny_vector(rgb, red);
    assert_true(cosine(first, noisy) > 0.95);
    assert_true(cosine(first, turned) < 0.6);
    assert_true(cosine(first, red) < cosine(first, noisy));
}

static void empty_images_are_finite(void **state)
{
    static const int shades[] = {0, 128, 255};
    uint8_t rgb[SIDE * SIDE * 3];
    float out[LEAT__TINY_DIM];
    (void)state;
    for (size_t s = 0; s < sizeof shades / sizeof *shades; s++) {
        memset(rgb, shades[s], sizeof rgb);
        leat__tiny_vector(rgb, out);
        double length = cosine(out, out);
        assert_true(length < 1.001);
        for (int i = 0; i < LEAT__TINY_DIM; i++) assert_true(isfinite(out[i]));
    }
}

static void bits_are_the_same_everywhere(void **state)
{
    uint8_t rgb[SIDE * SIDE * 3];
    float out[LEAT__TINY_DIM];
    (void)state;
    paint(rgb, 3, true, 90, 1);
    leat__tiny_vector(rgb, out);
    double sum = 0;
    for (int i = 0; i < LEAT__TINY_DIM; i++) sum += (i + 1) * (double)out[i];
    print_message("weighted sum %.9f\n", sum);
    assert_true(fabs(sum - 528.838226960) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(similar_images_are_near),
        cmocka_unit_test(empty_images_are_finite),
        cmocka_unit_test(bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
