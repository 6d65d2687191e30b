/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_match.h. Starts with the identity, and with the best shift and scale of one thumbnail
 * inside the other at 16 x 16 samples. From there Gauss-Newton steps refine an affine map, gain
 * and offset. Weights reduce the influence of captions and logos.
 */
#include "curate/image_match.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

#define SIDE LEAT__THUMB_SIDE
#define COARSE LEAT__MATCH_COARSE
#define MIDDLE 15.5f         /* of the pixel grid */
#define STEPS 8              /* of the refinement, at most */
#define OVERLAP_LEAST 300    /* pixels */
#define GRADIENT_FLOOR 200.0 /* noise of a thumbnail without edges */
#define ENOUGH 0.75f         /* above this no other start is tried */
#define PARAMS 8             /* six of the map, gain, offset */

typedef float lanes __attribute__((vector_size(16)));

/* ---- preparing ---- */

/* Area average of a square of SIDE to n. */
static void shrink(const float *from, int n, float *to)
{
    const float k = (float)SIDE / (float)n;
    float rows[SIDE * COARSE];
    for (int i = 0; i < n; i++) {
        const float a = (float)i * k, b = a + k;
        const int first = (int)a, last = LEAT_MIN((int)ceilf(b), SIDE);
        for (int y = 0; y < SIDE; y++) {
            float v = 0;
            for (int x = first; x < last; x++)
                v += from[y * SIDE + x] * (LEAT_MIN(b, (float)(x + 1)) - LEAT_MAX(a, (float)x));
            rows[y * COARSE + i] = v / k;
        }
    }
    for (int i = 0; i < n; i++) {
        const float a = (float)i * k, b = a + k;
        const int first = (int)a, last = LEAT_MIN((int)ceilf(b), SIDE);
        for (int x = 0; x < n; x++) {
            float v = 0;
            for (int y = first; y < last; y++)
                v += rows[y * COARSE + x] * (LEAT_MIN(b, (float)(y + 1)) - LEAT_MAX(a, (float)y));
            to[i * n + x] = v / k;
        }
    }
}

static void sum_up(leat__match_side *s)
{
    const int16_t *v = s->shrunk[0];
    for (int y = 0; y < COARSE; y++)
        for (int x = 0; x < COARSE; x++) {
            const int32_t p = v[y * COARSE + x];
            s->sum[y + 1][x + 1] = p + s->sum[y][x + 1] + s->sum[y + 1][x] - s->sum[y][x];
            s->squares[y + 1][x + 1] =
                (int64_t)p * p + s->squares[y][x + 1] + s->squares[y + 1][x] - s->squares[y][x];
        }
}

void leat__match_side_make(leat__match_side *s, const uint8_t *thumb, unsigned orientation)
{
    memset(s, 0, sizeof *s);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int a = orientation & 1 ? SIDE - 1 - x : x, b = orientation & 2 ? SIDE - 1 - y : y;
            if (orientation & 4) {
                const int t = a;
                a = b;
                b = t;
            }
            s->pixel[y * SIDE + x] = (float)thumb[b * SIDE + a] - 128;
        }
    for (int k = 0; k < LEAT__MATCH_SCALES; k++) {
        const int n = COARSE - k;
        float small[COARSE * COARSE], mean = 0, energy = 0;
        shrink(s->pixel, n, small);
        for (int i = 0; i < n * n; i++) mean += small[i];
        mean /= (float)(n * n);
        for (int i = 0; i < n * n; i++) {
            s->shrunk[k][i] = (int16_t)lrintf((small[i] - mean) * 16);
            energy += (float)s->shrunk[k][i] * (float)s->shrunk[k][i];
        }
        s->energy[k] = energy;
    }
    sum_up(s);
}

/* ---- the start ---- */

typedef struct start {
    float score, scale, left, top; /* shares of the side */
} start;

static float correlate(const leat__match_side *q, int k, const leat__match_side *d, int left, int top)
{
    const int n = COARSE - k;
    const int16_t *a = q->shrunk[k], *b = d->shrunk[0] + top * COARSE + left;
    int64_t ab = 0;
    for (int y = 0; y < n; y++) {
        int32_t row = 0;
        for (int x = 0; x < n; x++) row += a[y * n + x] * b[y * COARSE + x];
        ab += row;
    }
    const int r = left + n, e = top + n;
    const double sum = d->sum[e][r] - d->sum[top][r] - d->sum[e][left] + d->sum[top][left];
    const double squares =
        (double)(d->squares[e][r] - d->squares[top][r] - d->squares[e][left] + d->squares[top][left]);
    const double floor = 256.0 * n * n, energy = squares - sum * sum / (n * n);
    return (float)((double)ab / sqrt(((double)q->energy[k] + floor) * (energy + floor)));
}

/* The position of q inside d. */
static start find_start(const leat__match_side *q, const leat__match_side *d)
{
    start best = {-2, 1, 0, 0};
    for (int k = 0; k < LEAT__MATCH_SCALES; k++)
        for (int top = 0; top <= k; top++)
            for (int left = 0; left <= k; left++) {
                const float score = correlate(q, k, d, left, top) - 0.004f * (float)k;
                if (score <= best.score) continue;
                best =
                    (start){score, (float)(COARSE - k) / COARSE, (float)left / COARSE, (float)top / COARSE};
            }
    return best;
}

/* ---- refinement ---- */

typedef struct warp {
    float p[PARAMS]; /* X = p0 + p1 x + p2 y, Y = p3 + p4 x + p5 y, from the middle; gain,
                      * offset */
} warp;

/* One pixel of q, and the value and gradient of d there. */
typedef struct probe {
    float x, y, value, gx, gy, rest;
} probe;

static int sample_all(const float *q, const float *d, const warp *w, probe *out)
{
    const float *p = w->p;
    int n = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const float cx = (float)x - MIDDLE, cy = (float)y - MIDDLE;
            const float X = p[0] + p[1] * cx + p[2] * cy + MIDDLE, Y = p[3] + p[4] * cx + p[5] * cy + MIDDLE;
            if (!(X >= 0 && Y >= 0 && X < SIDE - 1 && Y < SIDE - 1)) continue;
            const int ix = (int)X, iy = (int)Y;
            const float fx = X - (float)ix, fy = Y - (float)iy;
            const float *s = d + iy * SIDE + ix;
            const float upper = s[0] + (s[1] - s[0]) * fx, lower = s[SIDE] + (s[SIDE + 1] - s[SIDE]) * fx;
            probe *o = &out[n++];
            o->x = cx;
            o->y = cy;
            o->value = upper + (lower - upper) * fy;
            o->gx = (s[1] - s[0]) * (1 - fy) + (s[SIDE + 1] - s[SIDE]) * fy;
            o->gy = lower - upper;
            o->rest = q[y * SIDE + x] - p[6] * o->value - p[7];
        }
    return n;
}

/* Normal equations of a step; the last column of `a` is the right side. */
static void accumulate(const probe *probes, int n, float gain, float limit, double a[PARAMS][PARAMS + 1])
{
    lanes sums[PARAMS][2] = {{{0}}}, right[2] = {{0}};
    for (int i = 0; i < n; i++) {
        const probe *o = &probes[i];
        const float off = fabsf(o->rest), ratio = off < limit ? 1 : limit / off, weight = ratio * ratio;
        const float gx = o->gx * gain, gy = o->gy * gain;
        const lanes low = {gx, gx * o->x, gx * o->y, gy}, high = {gy * o->x, gy * o->y, o->value, 1};
        const lanes wl = low * weight, wh = high * weight;
        for (int k = 0; k < 4; k++) {
            sums[k][0] += low * wl[k];
            sums[k][1] += high * wl[k];
            sums[k + 4][0] += low * wh[k];
            sums[k + 4][1] += high * wh[k];
        }
        right[0] += wl * o->rest;
        right[1] += wh * o->rest;
    }
    for (int r = 0; r < PARAMS; r++) {
        for (int c = 0; c < PARAMS; c++) a[r][c] = sums[r][c / 4][c % 4];
        a[r][PARAMS] = right[r / 4][r % 4];
    }
}

/* Gaussian elimination with pivots; the solution is in the last column. */
static bool solve(double a[PARAMS][PARAMS + 1])
{
    for (int i = 0; i < PARAMS; i++) {
        int pivot = i;
        for (int r = i + 1; r < PARAMS; r++)
            if (fabs(a[r][i]) > fabs(a[pivot][i])) pivot = r;
        if (fabs(a[pivot][i]) < 1e-12) return false;
        for (int c = 0; c <= PARAMS && pivot != i; c++) {
            const double t = a[i][c];
            a[i][c] = a[pivot][c];
            a[pivot][c] = t;
        }
        for (int r = 0; r < PARAMS; r++) {
            const double f = a[r][i] / a[i][i];
            for (int c = i; c <= PARAMS && r != i; c++) a[r][c] -= f * a[i][c];
        }
    }
    for (int i = 0; i < PARAMS; i++) a[i][PARAMS] /= a[i][i];
    return true;
}

static bool refine(const float *q, const float *d, warp *w, probe *probes)
{
    static const double damping[PARAMS] = {50, 4000, 4000, 50, 4000, 4000, 50, 0.1};
    for (int step = 0; step < STEPS; step++) {
        double a[PARAMS][PARAMS + 1];
        float off = 0;
        const int n = sample_all(q, d, w, probes);
        if (n < OVERLAP_LEAST) return false;
        for (int i = 0; i < n; i++) off += fabsf(probes[i].rest);
        accumulate(probes, n, w->p[6], 2 * (off / (float)n * 1.2f + 1), a);
        for (int i = 0; i < PARAMS; i++) a[i][i] = a[i][i] * (i < 6 ? 1.002 : 1) + damping[i];
        if (!solve(a)) return false;
        for (int i = 0; i < PARAMS; i++) w->p[i] += (float)a[i][PARAMS];
        w->p[6] = LEAT_MIN(LEAT_MAX(w->p[6], 0.15f), 6.0f);
        const double moved =
            fabs(a[0][PARAMS]) + fabs(a[3][PARAMS]) + 16 * (fabs(a[1][PARAMS]) + fabs(a[5][PARAMS]));
        if (moved < 0.02) break;
    }
    return true;
}

/* ---- the verdict ---- */

static float signed_root(float v)
{
    return v < 0 ? -sqrtf(-v) : sqrtf(v);
}

/* Correlation of gradients, as signed square roots, where the thumbnails overlap. */
static float compare(const float *q, const float *d, const warp *w)
{
    const float *p = w->p, far = SIDE - 1.001f;
    float v[SIDE * SIDE];
    bool there[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        const float cx = (float)(i % SIDE) - MIDDLE, cy = (float)(i / SIDE) - MIDDLE;
        float X = p[0] + p[1] * cx + p[2] * cy + MIDDLE, Y = p[3] + p[4] * cx + p[5] * cy + MIDDLE;
        v[i] = 0;
        there[i] = X >= -0.5f && Y >= -0.5f && X < SIDE - 0.5f && Y < SIDE - 0.5f;
        if (!there[i]) continue;
        X = LEAT_MIN(LEAT_MAX(X, 0), far);
        Y = LEAT_MIN(LEAT_MAX(Y, 0), far);
        const float fx = X - (float)(int)X, fy = Y - (float)(int)Y;
        const float *s = d + (int)Y * SIDE + (int)X;
        const float upper = s[0] + (s[1] - s[0]) * fx, lower = s[SIDE] + (s[SIDE + 1] - s[SIDE]) * fx;
        v[i] = upper + (lower - upper) * fy;
    }
    double aa = 0, bb = 0, ab = 0;
    for (int y = 0; y < SIDE - 1; y++)
        for (int x = 0; x < SIDE - 1; x++) {
            const int i = y * SIDE + x;
            if (!there[i] || !there[i + 1] || !there[i + SIDE]) continue;
            const float a = v[i + 1] - v[i], b = q[i + 1] - q[i], c = v[i + SIDE] - v[i],
                        e = q[i + SIDE] - q[i];
            aa += fabsf(a) + fabsf(c);
            bb += fabsf(b) + fabsf(e);
            ab += signed_root(a) * signed_root(b) + signed_root(c) * signed_root(e);
        }
    return (float)(ab / sqrt((aa + GRADIENT_FLOOR) * (bb + GRADIENT_FLOOR)));
}

static float try_start(const leat__match_side *q, const leat__match_side *d, const start *s, probe *probes)
{
    warp w = {{(s->left + s->scale / 2 - 0.5f) * SIDE, s->scale, 0, (s->top + s->scale / 2 - 0.5f) * SIDE, 0,
               s->scale, 1, 0}};
    if (!refine(q->pixel, d->pixel, &w, probes)) return -1;
    return compare(q->pixel, d->pixel, &w);
}

float leat__match(const leat__match_side *a, const leat__match_side *b)
{
    static const start identity = {0, 1, 0, 0};
    probe probes[SIDE * SIDE];
    float best = try_start(a, b, &identity, probes);
    if (best >= ENOUGH) return best;
    const start inside = find_start(a, b), around = find_start(b, a);
    const bool turned = around.score > inside.score;
    const start *s = turned ? &around : &inside;
    if (s->scale < 1) {
        const float found = turned ? try_start(b, a, s, probes) : try_start(a, b, s, probes);
        best = LEAT_MAX(best, found);
    }
    return best;
}
