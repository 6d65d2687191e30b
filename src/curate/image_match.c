/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_match.h. Starts with the identity, and with the best shift and scale of one thumbnail
 * inside the other at 16 x 16 samples. From there Gauss-Newton steps refine an affine map, gain
 * and offset. Weights reduce the influence of captions and logos, and a rectangle of the result may be left
 * out. Costs and limits were chosen on one half of the images of bench/images_edits.py, those of mats on the
 * other half.
 */
#include "curate/image_match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/thread.h"
#include "probe/cpu.h"

#define SIDE LEAT__THUMB_SIDE
#define COARSE LEAT__ALIGN_COARSE
#define STEPS 8               /* maximum steps of the refinement */
#define OVERLAP_LEAST 300     /* minimum overlap, in pixels */
#define GRADIENT_FLOOR 200.0f /* noise of a thumbnail without edges */
#define ENOUGH 0.75f          /* above this no other start is tried */
#define PARAMS 8              /* six of the affine map, gain, offset */
#define SLOW 0.95f            /* a step is slow if it leaves more than this share of the difference */
#define HOPELESS 0.35f        /* similarity below which refinement stops after a slow step */
#define HOPEFUL 0.35f         /* similarity from which borders and covered parts are searched */
#define FRAMED_LEAST 0.5f     /* similarity from which borders of both images matter */
#define OUTLINE_FLOOR 8.0f    /* noise of a shrunk thumbnail without edges */
#define OUTLINES_OFF 1.0f     /* minimum sum of distance and similarity of outlines, minus the one needed */
#define OUTLINES_WEIGHT 0.4f  /* weight of outlines in the sum with the refined similarity */
#define REFINED_OFF 0.2f      /* how far that sum may be below the needed similarity */
#define UNTRIED -2.0f         /* less than any similarity */
#define PART 0.8f             /* scale below which one image counts as a more detailed part of the other, */
#define PART_LEAST 0.64f      /* minimum similarity for which such a part is searched; */
#define PART_COST 0.1f        /* the similarity of a part is reduced by this */
#define CELLS 8               /* cells per side: a covered part is a rectangle of cells */
#define COVERED_MOST 16       /* maximum covered cells: a quarter of the image */
#define COVERED_LEAST 0.85f   /* minimum similarity of the rest */
#define COVERED_COST 0.15f    /* subtracted from the similarity of the rest */
#define DETAIL_LEAST 0.5f     /* minimum share of the detail of one image in the rest */
#define PLAIN_LEVELS 8        /* range of luma levels that counts as one colour */
#define PLAIN_PART 4          /* 1 / minimum share of pixels at which both have their most common colour */
#define BORDER_TOLERANCE 8    /* in levels, for a line of one colour */
#define BORDER_MOST 12        /* maximum lines of a border that is not a mat */
#define INSIDE_LEAST 6        /* minimum lines inside the borders */
#define INSIDE_FULL 0.75f     /* from this share of a side on, nothing is subtracted for the inside */
#define INSIDE_COST 0.2f      /* subtracted for a smaller inside, times the missing share */
#define FLOOR (LEAT__ALIGN_SCALE * LEAT__ALIGN_SCALE) /* squared noise of a shrunk pixel */

_Static_assert(SIDE == LEAT__ALIGN_SIDE, "thumbnails have the size that the kernels align");

/* ---- preparing ---- */

static leat__align_shrink shrinks[LEAT__MATCH_SCALES];
static leat__once shrinks_once = LEAT__ONCE_INIT;

static void make_shrinks(void)
{
    for (int k = 0; k < LEAT__MATCH_SCALES; k++) {
        leat__align_shrink *s = &shrinks[k];
        s->n = COARSE - k;
        const float step = (float)SIDE / (float)s->n;
        for (int i = 0; i < s->n; i++) {
            const float a = (float)i * step, b = LEAT_MIN(a + step, (float)SIDE);
            s->first[i] = LEAT_MIN((int)(a + 1e-4f), SIDE - LEAT__ALIGN_TAPS);
            for (int t = 0; t < LEAT__ALIGN_TAPS; t++) {
                const float low = (float)(s->first[i] + t), part = LEAT_MIN(b, low + 1) - LEAT_MAX(a, low);
                if (part < 1e-4f) continue;
                s->weight[t][i] = part / step;
                s->taps = LEAT_MAX(s->taps, t + 1);
            }
        }
    }
}

/* Computes the lengths of all parts of shrunk[0], from integral images. */
static void measure_places(leat__match_side *s)
{
    int32_t sum[COARSE + 1][COARSE + 1] = {{0}}, squares[COARSE + 1][COARSE + 1] = {{0}};
    float *to = s->by_place;
    for (int y = 0; y < COARSE; y++)
        for (int x = 0; x < COARSE; x++) {
            const int32_t v = s->shrunk[0][y * COARSE + x];
            sum[y + 1][x + 1] = v + sum[y][x + 1] + sum[y + 1][x] - sum[y][x];
            squares[y + 1][x + 1] = v * v + squares[y][x + 1] + squares[y + 1][x] - squares[y][x];
        }
    for (int k = 0; k < LEAT__MATCH_SCALES; k++) {
        const int n = COARSE - k;
        const float area = (float)(n * n), floor = FLOOR * area;
        for (int top = 0; top <= k; top++)
            for (int left = 0; left <= k; left++) {
                const int r = left + n, e = top + n;
                const float total = (float)(sum[e][r] - sum[top][r] - sum[e][left] + sum[top][left]);
                const float energy =
                    (float)(squares[e][r] - squares[top][r] - squares[e][left] + squares[top][left]);
                *to++ = 1 / sqrtf(LEAT_MAX(energy - total * total / area, 0) + floor);
            }
    }
}

void leat__match_turn(const uint8_t *thumb, unsigned orientation, uint8_t *to)
{
    if (orientation == 0) {
        memcpy(to, thumb, SIDE * SIDE);
        return;
    }
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const int a = orientation & 1 ? SIDE - 1 - x : x, b = orientation & 2 ? SIDE - 1 - y : y;
            to[y * SIDE + x] = orientation & 4 ? thumb[a * SIDE + b] : thumb[b * SIDE + a];
        }
}

/* Computes all other fields from luma. */
static void prepare(leat__match_side *s)
{
    const leat__align_dsp *dsp = leat__align_dsp_for(leat__cpu_flags());
    leat__once_run(&shrinks_once, make_shrinks);
    memset(s->shrunk, 0, sizeof s->shrunk);
    s->luma[SIDE * SIDE] = 0;
    dsp->prepare(s->luma, &s->image);
    for (int k = 0; k < LEAT__MATCH_SCALES; k++) {
        const int n = COARSE - k;
        const int32_t energy = dsp->shrink(&s->image, &shrinks[k], s->shrunk[k]);
        s->by[k] = 1 / sqrtf((float)energy + (float)(FLOOR * n * n));
    }
    measure_places(s);
}

void leat__match_side_make(leat__match_side *s, const uint8_t *thumb, unsigned orientation)
{
    leat__match_turn(thumb, orientation, s->luma);
    prepare(s);
}

/* ---- the start ---- */

typedef struct start {
    float score, scale, left, top; /* left, top: shares of the side */
} start;

/* Finds the best position of q inside d. */
static start find_start(const leat__align_dsp *dsp, const leat__match_side *q, const leat__match_side *d)
{
    start best = {-2, 1, 0, 0};
    const float *by = d->by_place;
    for (int k = 0; k < LEAT__MATCH_SCALES; k++) {
        int32_t product[LEAT__MATCH_SCALES * LEAT__MATCH_SCALES];
        const int places = (k + 1) * (k + 1);
        dsp->slide(q->shrunk[k], d->shrunk[0], COARSE - k, k, product);
        for (int i = 0; i < places; i++) {
            const float score = (float)product[i] * q->by[k] * by[i] - 0.004f * (float)k;
            if (score <= best.score) continue;
            best = (start){score, (float)(COARSE - k) / COARSE, (float)(i % (k + 1)) / COARSE,
                           (float)(i / (k + 1)) / COARSE};
        }
        by += places;
    }
    return best;
}

/* ---- refinement ---- */

/* Sets up the normal equations of a step; the last column of `a` is the right side. The rows are the
 * x gradient times 1, x and y, the y gradient likewise, gain, and offset. */
static void arrange(const float *sum, double gain, double a[PARAMS][PARAMS + 1])
{
    static const int square[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}}; /* monomial of two factors */
    static const int second[2][2] = {{LEAT__ALIGN_XX, LEAT__ALIGN_XY}, {LEAT__ALIGN_XY, LEAT__ALIGN_YY}};
    static const int one[2] = {LEAT__ALIGN_X1, LEAT__ALIGN_Y1}, value[2] = {LEAT__ALIGN_XV, LEAT__ALIGN_YV},
                     rest[2] = {LEAT__ALIGN_XR, LEAT__ALIGN_YR};
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) a[r][c] = gain * gain * sum[second[r / 3][c / 3] + square[r % 3][c % 3]];
        a[r][6] = a[6][r] = gain * sum[value[r / 3] + r % 3];
        a[r][7] = a[7][r] = gain * sum[one[r / 3] + r % 3];
        a[r][PARAMS] = gain * sum[rest[r / 3] + r % 3];
    }
    a[6][6] = sum[LEAT__ALIGN_VV];
    a[6][7] = a[7][6] = sum[LEAT__ALIGN_V1];
    a[7][7] = sum[LEAT__ALIGN_11];
    a[6][PARAMS] = sum[LEAT__ALIGN_VR];
    a[7][PARAMS] = sum[LEAT__ALIGN_R1];
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
        for (int r = i + 1; r < PARAMS; r++) {
            const double f = a[r][i] / a[i][i];
            for (int c = i; c <= PARAMS; c++) a[r][c] -= f * a[i][c];
        }
    }
    for (int i = PARAMS - 1; i >= 0; i--) {
        for (int c = i + 1; c < PARAMS; c++) a[i][PARAMS] -= a[i][c] * a[c][PARAMS];
        a[i][PARAMS] /= a[i][i];
    }
    return true;
}

/* Moves the map by one step. Returns false when it cannot be improved or the overlap is too small. */
static bool move(const leat__align_dsp *dsp, const leat__align_probes *probes, float limit,
                 leat__align_map *m, double *moved)
{
    static const double damping[PARAMS] = {50, 4000, 4000, 50, 4000, 4000, 50, 0.1};
    double a[PARAMS][PARAMS + 1];
    float sums[LEAT__ALIGN_SUMS];
    dsp->sums(probes, limit, sums);
    arrange(sums, m->gain, a);
    for (int i = 0; i < PARAMS; i++) a[i][i] = a[i][i] * (i < 6 ? 1.002 : 1) + damping[i];
    if (!solve(a)) return false;
    for (int i = 0; i < 6; i++) m->p[i] += (float)a[i][PARAMS];
    m->gain = LEAT_MIN(LEAT_MAX(m->gain + (float)a[6][PARAMS], 0.15f), 6.0f);
    m->offset += (float)a[7][PARAMS];
    *moved = fabs(a[0][PARAMS]) + fabs(a[3][PARAMS]) + 16 * (fabs(a[1][PARAMS]) + fabs(a[5][PARAMS]));
    return true;
}

/* Refines the map and returns the similarity; -1 when the overlap is too small. Most pairs are not
 * duplicates: it stops, usually after three steps, when steps no longer help and the gradients
 * differ. */
static float refine(const leat__align_dsp *dsp, const leat__align_image *q, const leat__align_image *d,
                    leat__align_map *m)
{
    leat__align_probes probes;
    float before = INFINITY;
    bool hopeful = false;
    for (int step = 0; step < STEPS; step++) {
        double moved;
        int n;
        const float off = dsp->sample(q, d, m, &probes, &n) / (float)LEAT_MAX(n, 1);
        if (n < OVERLAP_LEAST) return -1;
        if (step > 1 && !hopeful && off > SLOW * before) {
            const float similarity = dsp->compare_sampled(q, &probes, m, GRADIENT_FLOOR);
            if (similarity < HOPELESS) return similarity;
            hopeful = true;
        }
        before = off;
        if (!move(dsp, &probes, 2 * (off * 1.2f + 1), m, &moved)) return -1;
        if (moved < 0.02) break;
    }
    return dsp->compare(q, d, m, GRADIENT_FLOOR);
}

/* ---- covered parts ---- */

/* Sums of gradients per cell, as integral images: sums of all cells above and left of a position. */
typedef struct cell_sums {
    float of[3][CELLS + 1][CELLS + 1]; /* absolute gradients of d and of q, products of both */
} cell_sums;

static float signed_root(float v)
{
    return v < 0 ? -sqrtf(-v) : sqrtf(v);
}

static void sum_cells(const leat__align_image *q, const leat__align_probes *p, cell_sums *s)
{
    memset(s, 0, sizeof *s);
    for (int y = 0; y < SIDE - 1; y++) {
        const uint32_t inside = p->inside[y] & p->inside[y] >> 1 & p->inside[y + 1];
        for (int x = 0; x < SIDE - 1; x++) {
            if (!(inside >> x & 1)) continue;
            const float *v = p->value + y * SIDE + x, *w = q->pixel + y * SIDE + x;
            const float a = v[1] - v[0], c = v[SIDE] - v[0], b = w[1] - w[0], e = w[SIDE] - w[0];
            const int row = y * CELLS / SIDE + 1, column = x * CELLS / SIDE + 1;
            s->of[0][row][column] += fabsf(a) + fabsf(c);
            s->of[1][row][column] += fabsf(b) + fabsf(e);
            s->of[2][row][column] += signed_root(a * b) + signed_root(c * e);
        }
    }
    for (int k = 0; k < 3; k++)
        for (int y = 1; y <= CELLS; y++)
            for (int x = 1; x <= CELLS; x++)
                s->of[k][y][x] += s->of[k][y - 1][x] + s->of[k][y][x - 1] - s->of[k][y - 1][x - 1];
}

/* Returns the similarity outside of a rectangle of cells; -1 when little detail of both is left there. */
static float similarity_outside(const cell_sums *s, int top, int bottom, int left, int right)
{
    float sum[3];
    for (int k = 0; k < 3; k++)
        sum[k] = s->of[k][CELLS][CELLS] - (s->of[k][bottom][right] - s->of[k][top][right] -
                                           s->of[k][bottom][left] + s->of[k][top][left]);
    if (sum[0] < DETAIL_LEAST * s->of[0][CELLS][CELLS] && sum[1] < DETAIL_LEAST * s->of[1][CELLS][CELLS])
        return -1;
    return sum[2] / sqrtf((sum[0] + GRADIENT_FLOOR) * (sum[1] + GRADIENT_FLOOR));
}

/* Returns the similarity when part of one image is covered, for example by a caption or a logo. It is
 * the best similarity of the rest without one rectangle. */
static float match_uncovered(const leat__align_dsp *dsp, const leat__match_side *q, const leat__match_side *d,
                             const leat__align_map *m)
{
    leat__align_probes probes;
    cell_sums sums;
    float best = -1;
    int n;
    (void)dsp->sample(&q->image, &d->image, m, &probes, &n);
    sum_cells(&q->image, &probes, &sums);
    for (int top = 0; top < CELLS; top++)
        for (int bottom = top + 1; bottom <= CELLS; bottom++)
            for (int left = 0; left < CELLS; left++)
                for (int right = left + 1; right <= CELLS; right++) {
                    if ((bottom - top) * (right - left) > COVERED_MOST) break;
                    best = LEAT_MAX(best, similarity_outside(&sums, top, bottom, left, right));
                }
    return best < COVERED_LEAST ? -1 : best - COVERED_COST;
}

/* ---- crops ---- */

/* Averages each pixel with its neighbours, weighted 1 2 1 in both directions. */
static void soften(const uint8_t *luma, uint8_t *to)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int sum = 8;
            for (int k = 0; k < 9; k++) {
                const int px = LEAT_MIN(LEAT_MAX(x + k % 3 - 1, 0), SIDE - 1);
                const int py = LEAT_MIN(LEAT_MAX(y + k / 3 - 1, 0), SIDE - 1);
                sum += (2 - abs(k % 3 - 1)) * (2 - abs(k / 3 - 1)) * luma[py * SIDE + px];
            }
            to[y * SIDE + x] = (uint8_t)(sum / 16);
        }
}

/* Returns the similarity when q is a part of d. It softens q, because d has fewer pixels of that part
 * and so less detail. */
static float match_part(const leat__align_dsp *dsp, const leat__match_side *q, const leat__match_side *d,
                        const leat__align_map *m)
{
    uint8_t luma[SIDE * SIDE + 1];
    leat__align_image soft;
    soften(q->luma, luma);
    luma[SIDE * SIDE] = 0;
    dsp->prepare(luma, &soft);
    return dsp->compare(&soft, &d->image, m, GRADIENT_FLOOR);
}

/* ---- the verdict ---- */

static float try_start(const leat__align_dsp *dsp, const leat__match_side *q, const leat__match_side *d,
                       const start *s, bool parts)
{
    leat__align_map m = {.p = {(s->left + s->scale / 2 - 0.5f) * SIDE, s->scale, 0,
                               (s->top + s->scale / 2 - 0.5f) * SIDE, 0, s->scale},
                         .gain = 1};
    float similarity = refine(dsp, &q->image, &d->image, &m);
    if (parts && s->scale < PART && similarity >= PART_LEAST && similarity < ENOUGH)
        similarity = LEAT_MAX(similarity, match_part(dsp, q, d, &m) - PART_COST);
    if (similarity < HOPEFUL || similarity >= COVERED_LEAST - COVERED_COST) return similarity;
    return LEAT_MAX(similarity, match_uncovered(dsp, q, d, &m));
}

static const start identity = {0, 1, 0, 0};

/* A comparison of q with d, in which q fits better than d in q. */
typedef struct trial {
    const leat__align_dsp *dsp;
    const leat__match_side *q, *d;
    const start *placed;
    bool parts;
    float from_identity, from_placed; /* results of the refinement; UNTRIED before */
} trial;

static float try_identity(trial *t)
{
    if (t->from_identity == UNTRIED) t->from_identity = try_start(t->dsp, t->q, t->d, &identity, t->parts);
    return t->from_identity;
}

static float try_placed(trial *t)
{
    if (t->from_placed == UNTRIED)
        t->from_placed = t->placed->scale < 1 ? try_start(t->dsp, t->q, t->d, t->placed, t->parts) : -1;
    return t->from_placed;
}

/* Returns the similarity of the gradients of the shrunk thumbnails at a start. */
static float compare_outlines(const trial *t, const start *s)
{
    const int n = (int)(s->scale * COARSE + 0.5f), left = (int)(s->left * COARSE + 0.5f),
              top = (int)(s->top * COARSE + 0.5f);
    return t->dsp->outlines(t->q->shrunk[COARSE - n], t->d->shrunk[0] + top * COARSE + left, n,
                            OUTLINE_FLOOR);
}

/* True when the similarity that is needed is out of reach: descriptors and outlines differ too much, or the
 * refinement does not help. Most candidates end here. */
static bool is_hopeless(trial *t, const leat__match_need *need, float reverse)
{
    const float outlines =
        LEAT_MAX(LEAT_MAX(compare_outlines(t, &identity), compare_outlines(t, t->placed)), reverse);
    if (outlines < need->similarity - OUTLINES_OFF + need->distance) return true;
    if (t->placed->scale >= 1) return false; /* neither fits better: both directions count */
    const float enough = need->similarity - REFINED_OFF - OUTLINES_WEIGHT * outlines;
    return try_placed(t) < enough && try_identity(t) < enough;
}

static float match(const leat__match_side *a, const leat__match_side *b, bool parts,
                   const leat__match_need *need)
{
    const leat__align_dsp *dsp = leat__align_dsp_for(leat__cpu_flags());
    const start inside = find_start(dsp, a, b), around = find_start(dsp, b, a);
    trial t = {dsp, a, b, &inside, parts, UNTRIED, UNTRIED}, reverse = t;
    reverse.q = b;
    reverse.d = a;
    reverse.placed = &around;
    if (around.score > inside.score) {
        const trial swap = t;
        t = reverse;
        reverse = swap;
    }
    if (need && is_hopeless(&t, need, compare_outlines(&reverse, reverse.placed))) return -1;
    /* the order of the images must not decide */
    const float best = LEAT_MAX(try_identity(&t), try_identity(&reverse));
    return best >= ENOUGH ? best : LEAT_MAX(best, try_placed(&t));
}

/* ---- borders ---- */

static int edge_step(int edge)
{
    return (edge % 2 ? -1 : 1) * (edge < 2 ? SIDE : 1);
}

static const uint8_t *edge_line(const uint8_t *luma, int edge)
{
    return luma + (edge % 2 ? (SIDE - 1) * (edge < 2 ? SIDE : 1) : 0);
}

/* Counts the pixels of a part of a line that do not have the border's colour. */
static int other_pixels(const uint8_t *line, int along, int from, int to, int colour)
{
    int n = 0;
    for (int i = from; i < to; i++) n += abs(line[i * along] - colour) > BORDER_TOLERANCE;
    return n;
}

/* Returns the number of lines of one colour at an edge: 0 top, 1 bottom, 2 left, 3 right. */
static int plain_lines(const uint8_t *luma, int edge)
{
    const int along = edge < 2 ? 1 : SIDE, step = edge_step(edge);
    const uint8_t *first = edge_line(luma, edge);
    int n = 0;
    while (n < SIDE && other_pixels(first + n * step, along, 0, SIDE, first[SIDE / 2 * along]) == 0) n++;
    return n;
}

/* Finds borders: lines of one colour at each edge, as in plain_lines. Most of the line after a border
 * must have other colours, otherwise it is a plain background. The line between may have both. A mat,
 * which surrounds the picture, may have any width. Returns false when there are none. */
static bool find_borders(const uint8_t *luma, int n[4])
{
    int plain[4], wide = 0;
    for (int edge = 0; edge < 4; edge++) plain[edge] = plain_lines(luma, edge);
    const bool mat = plain[0] > 0 && plain[1] > 0 && plain[2] > 0 && plain[3] > 0;
    for (int edge = 0; edge < 4; edge++) {
        const int along = edge < 2 ? 1 : SIDE, *sides = plain + (edge < 2 ? 2 : 0), k = plain[edge];
        const int from = mat ? sides[0] : 0, to = mat ? SIDE - sides[1] : SIDE;
        const uint8_t *first = edge_line(luma, edge);
        n[edge] = 0;
        if (k == 0 || k > (mat ? SIDE - INSIDE_LEAST : BORDER_MOST)) continue;
        const uint8_t *after = first + (k + 1) * edge_step(edge);
        if (2 * other_pixels(after, along, from, to, first[SIDE / 2 * along]) >= to - from) n[edge] = k + 1;
        wide += n[edge];
    }
    return wide > 0 && n[0] + n[1] <= SIDE - INSIDE_LEAST && n[2] + n[3] <= SIDE - INSIDE_LEAST;
}

/* Returns the first of the PLAIN_LEVELS adjacent levels that most pixels have. */
static int common_level(const uint8_t *luma)
{
    int count[256] = {0}, near = 0, most = 0, found = 0;
    for (int i = 0; i < SIDE * SIDE; i++) count[luma[i]]++;
    for (int level = 0; level < 256; level++) {
        near += count[level] - (level < PLAIN_LEVELS ? 0 : count[level - PLAIN_LEVELS]);
        if (near <= most) continue;
        most = near;
        found = level - PLAIN_LEVELS + 1;
    }
    return found;
}

/* True when both have borders at all four edges, and of the same width. */
static bool share_frame(const uint8_t *a, const uint8_t *b)
{
    int n[4], m[4];
    if (!find_borders(a, n) || !find_borders(b, m)) return false;
    for (int edge = 0; edge < 4; edge++)
        if (n[edge] == 0 || m[edge] == 0 || abs(n[edge] - m[edge]) > 1) return false;
    return true;
}

bool leat__match_share_plain(const uint8_t *a, const uint8_t *b)
{
    if (share_frame(a, b)) return true;
    const int low_a = common_level(a), low_b = common_level(b);
    int n = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        n += a[i] >= low_a && a[i] < low_a + PLAIN_LEVELS && b[i] >= low_b && b[i] < low_b + PLAIN_LEVELS;
    return n >= SIDE * SIDE / PLAIN_PART;
}

/* Stretches the area inside the borders to a full side. Returns what to subtract from its similarity,
 * because few pixels are similar more often than many; -1 without borders. */
static float make_inside(const leat__match_side *from, leat__match_side *to)
{
    int n[4];
    if (!find_borders(from->luma, n)) return -1;
    const float dx = (float)(SIDE - n[2] - n[3]) / SIDE, dy = (float)(SIDE - n[0] - n[1]) / SIDE;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const float px = LEAT_MAX((float)n[2] + ((float)x + 0.5f) * dx - 0.5f, 0);
            const float py = LEAT_MAX((float)n[0] + ((float)y + 0.5f) * dy - 0.5f, 0);
            const int x0 = LEAT_MIN((int)px, SIDE - 2), y0 = LEAT_MIN((int)py, SIDE - 2);
            const float fx = LEAT_MIN(px - (float)x0, 1), fy = LEAT_MIN(py - (float)y0, 1);
            const uint8_t *at = from->luma + y0 * SIDE + x0;
            const float above = (float)at[0] * (1 - fx) + (float)at[1] * fx;
            const float below = (float)at[SIDE] * (1 - fx) + (float)at[SIDE + 1] * fx;
            to->luma[y * SIDE + x] = (uint8_t)(above * (1 - fy) + below * fy + 0.5f);
        }
    prepare(to);
    return INSIDE_COST * LEAT_MAX(INSIDE_FULL - sqrtf(dx * dy), 0);
}

float leat__match(const leat__match_side *a, const leat__match_side *b, bool parts,
                  const leat__match_need *need)
{
    const float whole = match(a, b, parts, need);
    leat__match_side inside[2];
    if (whole < HOPEFUL) return whole;
    const float cost_a = make_inside(a, &inside[0]), cost_b = make_inside(b, &inside[1]);
    const float cost = LEAT_MAX(cost_a, cost_b);
    if (cost_a >= 0 && cost_b >= 0)
        return whole < FRAMED_LEAST ? whole
                                    : LEAT_MIN(whole, match(&inside[0], &inside[1], parts, NULL) - cost);
    if (cost < 0 || whole >= ENOUGH) return whole;
    const float without = cost_a >= 0 ? match(&inside[0], b, parts, NULL) : match(a, &inside[1], parts, NULL);
    return LEAT_MAX(whole, without - cost);
}
