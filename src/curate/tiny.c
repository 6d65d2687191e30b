/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in embedding: low DCT coefficients of luma and chroma (layout and colour), and histograms of
 * edge directions in 4 x 4 cells (shape). Each of the three parts is scaled to a fixed length, so that
 * none dominates; the whole has length 1. All arithmetic before that scaling is on integers.
 */
#include "curate/tiny.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIDE LEAT__TINY_SIDE
#define PIXELS (SIDE * SIDE)
#define FLAT_EDGE 24 /* weaker steps are codec noise */

/* A quarter of a cosine wave, times 16384: cos(pi * j / 64) for j = 0..32. Row k of the 32-point DCT is
 * cos(pi * k * (2 i + 1) / 64). */
static const int16_t wave[33] = {16384, 16364, 16305, 16207, 16069, 15893, 15679, 15426, 15137, 14811, 14449,
                                 14053, 13623, 13160, 12665, 12140, 11585, 11003, 10394, 9760,  9102,  8423,
                                 7723,  7005,  6270,  5520,  4756,  3981,  3196,  2404,  1606,  804,   0};

static int cosine(int k, int i)
{
    int j = k * (2 * i + 1) % 128; /* a full wave is 128 steps */
    if (j > 64) j = 128 - j;
    return j <= 32 ? wave[j] : -wave[64 - j];
}

typedef int16_t basis[LEAT__TINY_LUMA][SIDE];

static void make_basis(basis table)
{
    for (int k = 0; k < LEAT__TINY_LUMA; k++)
        for (int i = 0; i < SIDE; i++) table[k][i] = (int16_t)cosine(k, i);
}

/* Computes the lowest `n` x `n` coefficients of a plane. */
static void low_dct(const int16_t *plane, int n, basis table, float *out)
{
    int32_t rows[SIDE][LEAT__TINY_LUMA];
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < n; k++) {
            int32_t sum = 0; /* 32 x 255 x 16384 fits in 32 bits */
            for (int x = 0; x < SIDE; x++) sum += plane[y * SIDE + x] * table[k][x];
            rows[y][k] = sum / 256;
        }
    for (int k = 0; k < n; k++)
        for (int m = 0; m < n; m++) {
            int64_t sum = 0;
            for (int y = 0; y < SIDE; y++) sum += (int64_t)rows[y][m] * table[k][y];
            out[k * n + m] = (float)(sum / 4096);
        }
}

/* Returns the direction of a step, 0 to 7, by comparisons. Exact eighths of the half circle would
 * need an arc tangent. */
static int direction(int dx, int dy)
{
    const int ax = abs(dx), ay = abs(dy);
    int octant = ay > ax ? 2 : 0;
    if (5 * (ay > ax ? ax : ay) > 2 * (ay > ax ? ay : ax)) octant++; /* beyond 21.8 degrees */
    return octant + (dx < 0 ? 4 : 0);
}

static void edges(const int16_t *luma, float *out)
{
    int32_t bins[LEAT__TINY_CELLS * LEAT__TINY_CELLS * LEAT__TINY_ANGLES] = {0};
    const int cell = SIDE / LEAT__TINY_CELLS;
    for (int y = 1; y < SIDE - 1; y++)
        for (int x = 1; x < SIDE - 1; x++) {
            const int16_t *p = luma + y * SIDE + x;
            int dx = p[1] - p[-1], dy = p[SIDE] - p[-SIDE];
            const int strength = abs(dx) + abs(dy);
            if (strength < FLAT_EDGE) continue;
            if (dy < 0) dx = -dx, dy = -dy; /* opposite directions are the same edge */
            const int at = (y / cell * LEAT__TINY_CELLS + x / cell) * LEAT__TINY_ANGLES;
            bins[at + direction(dx, dy)] += strength;
        }
    for (size_t i = 0; i < sizeof bins / sizeof *bins; i++) out[i] = sqrtf((float)bins[i]);
}

static void scale(float *part, int n, double length)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)part[i] * part[i];
    if (sum <= 0) return;
    const double by = length / sqrt(sum);
    for (int i = 0; i < n; i++) part[i] = (float)(part[i] * by);
}

void leat__tiny_vector(const uint8_t *rgb, float *out)
{
    int16_t planes[3][PIXELS];
    enum { LUMA = LEAT__TINY_LUMA * LEAT__TINY_LUMA, CHROMA = LEAT__TINY_CHROMA * LEAT__TINY_CHROMA };
    for (int i = 0; i < PIXELS; i++) {
        const int r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
        planes[0][i] = (int16_t)((77 * r + 150 * g + 29 * b) / 256 - 128);
        planes[1][i] = (int16_t)((-43 * r - 85 * g + 128 * b) / 256);
        planes[2][i] = (int16_t)((128 * r - 107 * g - 21 * b) / 256);
    }
    float *shape = out + LUMA + 2 * CHROMA;
    basis table;
    make_basis(table);
    low_dct(planes[0], LEAT__TINY_LUMA, table, out);
    low_dct(planes[1], LEAT__TINY_CHROMA, table, out + LUMA);
    low_dct(planes[2], LEAT__TINY_CHROMA, table, out + LUMA + CHROMA);
    edges(planes[0], shape);
    out[0] /= 2; /* brightness alone carries little information */
    scale(out, LUMA, 0.6);
    scale(out + LUMA, 2 * CHROMA, 0.5);
    scale(shape, LEAT__TINY_CELLS * LEAT__TINY_CELLS * LEAT__TINY_ANGLES, 0.6);
    scale(out, LEAT__TINY_DIM, 1.0);
}
