/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dsp/tile_entropy.h"
#include "leat_test.h"

#define WIDE 200
#define HIGH 160

/* Returns a number with mean 0 and deviation 1: a sum of uniform ones. */
static double white(uint32_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / (1u << 24);
    }
    return sum;
}

/* Returns the level of a slope with noise of this deviation in its left part. */
static double level_of(uint32_t width, uint32_t height, double deviation, uint32_t noisy)
{
    int16_t *pixels = calloc((size_t)width * height, sizeof *pixels);
    leat__image_noise n;
    uint32_t state = 7;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            pixels[y * width + x] =
                (int16_t)((int)(x + y) + lrint(x < noisy ? deviation * white(&state) : 0));
    leat__image_noise_begin(&n, width, height, NULL);
    for (uint32_t y = 1; y + 1 < height; y++) {
        const int16_t *at = pixels + (size_t)y * width;
        leat__image_noise_row(&n, y, at - width, at, at + width, width);
    }
    free(pixels);
    return leat__image_noise_level(&n);
}

static void near(double a, double b, double off)
{
    if (!(fabs(a - b) <= off)) fail_msg("%f and %f differ by more than %f", a, b, off);
}

static void pixels_have_the_level_of_their_noise(void **state)
{
    near(level_of(WIDE, HIGH, 0, WIDE), 0, 0);
    for (int deviation = 2; deviation <= 30; deviation += 7) /* the quartile is below the mean */
        near(level_of(WIDE, HIGH, deviation, WIDE) / deviation, 0.9, 0.08);
    near(level_of(WIDE, HIGH, 20, WIDE * 7 / 8) / 20, 0.9, 0.1); /* a quiet eighth does not count, */
    near(level_of(WIDE, HIGH, 20, WIDE / 2), 0, 0);              /* a quiet half does */
    near(level_of(8 * 90, 8 * 70, 10, 8 * 90) / 10, 0.9, 0.08);  /* a part of the blocks */
    near(level_of(12, 8, 10, 12) / 10, 0.9, 0.3);                /* one block */
    assert_true(isnan(level_of(7, 300, 10, 7)) && isnan(level_of(5000, 7, 10, 5000)));
    assert_false(isnan(level_of(5000, 9, 10, 5000)));
}

/* Coefficients of noise with the deviation of a quantisation step of 4 have the level 4, as plain and as
 * sparse blocks. */
static void plain_and_sparse_blocks_agree(void **state)
{
    leat__image_noise plain, sparse;
    leat__tile_coefs *coefs = aligned_alloc(64, sizeof *coefs);
    uint16_t quant[64];
    int16_t block[64];
    uint32_t random = 3;
    for (int i = 0; i < 64; i++) quant[i] = 4;
    leat__image_noise_begin(&plain, WIDE, HIGH, quant);
    leat__image_noise_begin(&sparse, WIDE, HIGH, quant);
    for (uint32_t b = 0; b < WIDE / 8 * (HIGH / 8); b++) {
        const uint32_t x = b % (WIDE / 8), y = b / (WIDE / 8);
        memset(coefs, 0, sizeof *coefs);
        for (int i = 0, n = 0; i < 64; i++) {
            const int16_t c = (int16_t)lrint(white(&random));
            block[leat__tile_order[i]] = c;
            if (c != 0) {
                coefs->mask[0] |= UINT64_C(1) << i;
                coefs->value[n++] = c;
            }
        }
        leat__image_noise_plain(&plain, block, x, y, 1);
        leat__image_noise_area(&sparse, coefs, &(leat__idct_area){0, 1, 1, 1}, x, y);
    }
    assert_memory_equal(plain.count, sparse.count, sizeof plain.count);
    near(leat__image_noise_level(&plain) / 4, 0.9, 0.1);
    free(coefs);
}

/* Blocks that pad the image, and those between the measured ones, do not count. */
static void only_some_blocks_count(void **state)
{
    const int16_t block[4 * 64] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    uint16_t quant[64];
    leat__image_noise n;
    for (int i = 0; i < 64; i++) quant[i] = 255;
    leat__image_noise_begin(&n, 23, 15, quant); /* 2 x 1 whole blocks */
    leat__image_noise_plain(&n, block, 0, 0, 3);
    leat__image_noise_plain(&n, block, 0, 1, 3);
    uint32_t all = 0;
    for (int i = 0; i < LEAT__NOISE_BINS; i++) all += n.count[i];
    assert_int_equal(all, 2);
    leat__image_noise_begin(&n, 8 * 100, 8 * 100, quant);
    for (uint32_t y = 0; y < 100; y++)
        for (uint32_t x = 0; x < 100; x += 4) leat__image_noise_plain(&n, block, x, y, 4);
    all = 0;
    for (int i = 0; i < LEAT__NOISE_BINS; i++) all += n.count[i];
    assert_int_equal(all, 20 * 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_have_the_level_of_their_noise),
        cmocka_unit_test(plain_and_sparse_blocks_agree),
        cmocka_unit_test(only_some_blocks_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
