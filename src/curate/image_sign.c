/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_sign.h. Sums have a fixed order and no multiply-add is fused, so that every CPU gives the
 * same bytes.
 */
#include "curate/image_sign.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/thread.h"
#include "dsp/align.h"
#include "probe/cpu.h"

#define SIDE LEAT__THUMB_SIDE
#define CHROMA LEAT__THUMB_CHROMA
#define FREQUENCIES 16     /* rows of the table: LEAT__FINE_ORDER rounded up to a multiple of 4 */
#define SCALE 220.0f       /* a component of a unit vector is at most 0.577 as int8 */
#define FLAT 1.5f          /* standard deviation of a thumbnail without content */
#define CHROMA_FLOOR 30.0f /* weak colours count less */
#define BORDER_MOST 0.4f   /* largest border, as a share of a side */

/* Bases as [frequency][sample] for luma, the same transposed, and for chroma, which has half the samples. */
static float luma_basis[FREQUENCIES][SIDE], luma_across[SIDE][FREQUENCIES];
static float chroma_basis[LEAT__CHROMA_ORDER][CHROMA];
static float coarse_weight[LEAT__FINE_ORDER][LEAT__FINE_ORDER],
    fine_weight[LEAT__FINE_ORDER][LEAT__FINE_ORDER];
static leat__once tables_once = LEAT__ONCE_INIT;

static void make_tables(void)
{
    const double pi = 3.14159265358979323846;
    for (int u = 0; u < FREQUENCIES; u++)
        for (int x = 0; x < SIDE; x++) {
            double v = sqrt((u ? 2.0 : 1.0) / SIDE) * cos((2 * x + 1) * u * pi / (2 * SIDE));
            luma_basis[u][x] = luma_across[x][u] = (float)v;
        }
    for (int u = 0; u < LEAT__CHROMA_ORDER; u++)
        for (int x = 0; x < CHROMA; x++)
            chroma_basis[u][x] =
                (float)(sqrt((u ? 2.0 : 1.0) / CHROMA) * cos((2 * x + 1) * u * pi / (2 * CHROMA)));
    for (int u = 0; u < LEAT__FINE_ORDER; u++)
        for (int v = 0; v < LEAT__FINE_ORDER; v++) {
            double r = u || v ? u * u + v * v : 1;
            coarse_weight[u][v] = (float)sqrt(r);
            fine_weight[u][v] = (float)pow(r, 0.375);
        }
}

/* ---- thumbnails ---- */

typedef struct window {
    float x0, y0, x1, y1; /* as shares of the image */
} window;

/* The samples of a row that an average covers: whole samples between two partial ones. */
typedef struct reach {
    int first, last; /* `last` is exclusive */
    float before, behind;
} reach;

static reach reach_of(float start, float step, uint32_t size)
{
    const float end = start + step;
    reach r = {.first = (int)start, .last = (int)ceilf(end - 1e-4f)};
    r.first = LEAT_MIN(r.first, (int)size - 1);
    r.last = LEAT_MAX(LEAT_MIN(r.last, (int)size), r.first + 1);
    r.before = (float)(r.first + 1) - start;
    r.behind = end - (float)(r.last - 1);
    return r;
}

/* The columns of a thumbnail: the samples that each covers, and the divisor of its sum. */
typedef struct columns {
    reach reach[SIDE];
    float size[SIDE];
    int least, most; /* fewest and most whole samples per column */
    bool single;     /* each column covers one sample (small images) */
} columns;

static void find_columns(columns *c, int side, float start, float step, uint32_t width)
{
    c->least = (int)width;
    c->most = 0;
    c->single = true;
    for (int i = 0; i < side; i++) {
        reach *r = &c->reach[i];
        *r = reach_of(start + (float)i * step, step, width);
        c->size[i] = r->last - r->first == 1 ? 1 : step;
        c->single &= r->last - r->first == 1;
        const int whole = LEAT_MAX(r->last - r->first - 2, 0);
        c->least = LEAT_MIN(c->least, whole);
        c->most = LEAT_MAX(c->most, whole);
    }
}

/* Sums the samples of a row that each column covers, not yet divided by its size. All loops have the
 * same length for all columns: a varying length would cause branch mispredictions. */
static void sum_columns(float *out, const columns *c, int side, const uint8_t *row)
{
    for (int i = 0; c->single && i < side; i++) out[i] = row[c->reach[i].first];
    for (int i = 0; !c->single && i < side; i++) {
        const reach *r = &c->reach[i];
        const int behind = r->last - 1;
        const uint8_t *const whole = row + r->first + 1;
        int sum = 0;
        for (int k = 0; k < c->least; k++) sum += whole[k];
        for (int k = c->least; k < c->most; k++) {
            const int x = r->first + 1 + k;
            sum += row[LEAT_MIN(x, behind)] & -(x < behind);
        }
        const float covered = r->before * row[r->first] + (float)sum + r->behind * row[behind];
        out[i] = behind == r->first ? row[r->first] : covered;
    }
}

/* Computes the area averages of a window of the plane, side x side. */
static void average(const leat__small_plane *p, const window *w, int side, float *out)
{
    const float ox = p->across * w->x0, oy = p->down * w->y0;
    const float sx = p->across * (w->x1 - w->x0) / (float)side, sy = p->down * (w->y1 - w->y0) / (float)side;
    columns c;
    float sums[SIDE];
    int summed = -1; /* row in `sums`: the last row of one average is often the first of the next */
    find_columns(&c, side, ox, sx, p->width);
    for (int ty = 0; ty < side; ty++) {
        const float y0 = oy + (float)ty * sy, y1 = y0 + sy;
        const reach rows = reach_of(y0, sy, p->height);
        float *to = out + ty * side;
        for (int tx = 0; tx < side; tx++) to[tx] = 0;
        for (int y = rows.first; y < rows.last; y++) {
            const float low = y0 > (float)y ? y0 : (float)y, high = y1 < (float)(y + 1) ? y1 : (float)(y + 1);
            const float wy = rows.last - rows.first == 1 ? 1 : (high - low) / sy;
            if (y != summed) sum_columns(sums, &c, side, p->data + (size_t)y * p->stride);
            summed = y;
            for (int tx = 0; tx < side; tx++) to[tx] += wy * sums[tx] / c.size[tx];
        }
    }
}

typedef struct thumbnail {
    float y[SIDE * SIDE], chroma[2][CHROMA * CHROMA];
} thumbnail;

/* Turns a square to its EXIF orientation. */
static void turn_square(float *square, int side, uint32_t orientation)
{
    const bool transposed = orientation >= 5;
    const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    float stored[SIDE * SIDE];
    memcpy(stored, square, sizeof *stored * (size_t)(side * side));
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            const int a = mirror_x ? side - 1 - x : x, b = mirror_y ? side - 1 - y : y;
            square[y * side + x] = stored[transposed ? a * side + b : b * side + a];
        }
}

/* Makes the thumbnail of the upright image. Averages are taken from the stored image, whose last
 * samples may be partial; turning the thumbnail afterwards is cheap. */
static void make_thumbnail(thumbnail *t, const leat__image_small *small, const window *w)
{
    const uint32_t orientation = small->info.orientation;
    average(&small->plane[0], w, SIDE, t->y);
    for (int i = 0; i < SIDE * SIDE; i++) t->y[i] -= 128;
    memset(t->chroma, 0, sizeof t->chroma);
    for (uint32_t c = 1; c < small->components; c++) {
        average(&small->plane[c], w, CHROMA, t->chroma[c - 1]);
        for (int i = 0; i < CHROMA * CHROMA; i++) t->chroma[c - 1][i] -= 128;
    }
    if (orientation < 2) return;
    turn_square(t->y, SIDE, orientation);
    for (int c = 0; c < 2; c++) turn_square(t->chroma[c], CHROMA, orientation);
}

static uint8_t to_byte(float v)
{
    v += 128.5f;
    return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static void store_thumbnail(uint8_t *to, const thumbnail *t)
{
    for (int i = 0; i < SIDE * SIDE; i++) to[i] = to_byte(t->y[i]);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < CHROMA * CHROMA; i++)
            to[SIDE * SIDE + c * CHROMA * CHROMA + i] = to_byte(t->chroma[c][i]);
}

/* ---- borders ---- */

/* True when a row or column has one colour, except for one sample in 50. */
static bool is_plain(const leat__small_plane *p, uint32_t line, bool row, int tolerance)
{
    const uint32_t n = row ? p->width : p->height;
    const size_t step = row ? 1 : p->stride;
    const uint8_t *at = p->data + (row ? line * p->stride : line);
    const int middle = at[n / 2 * step];
    uint32_t odd = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int d = at[i * step] - middle;
        odd += d > tolerance || d < -tolerance;
    }
    return odd * 50 <= n;
}

static bool same_line(const leat__small_plane *p, uint32_t a, uint32_t b, bool row, int tolerance)
{
    const uint32_t n = row ? p->width : p->height;
    const size_t step = row ? 1 : p->stride, line = row ? p->stride : 1;
    const int d = p->data[a * line + n / 2 * step] - p->data[b * line + n / 2 * step];
    return d <= tolerance && d >= -tolerance;
}

/* Returns the number of lines of one colour at an edge. */
static uint32_t plain_lines(const leat__small_plane *p, bool row, bool from_end, int tolerance)
{
    const uint32_t lines = row ? p->height : p->width, most = (uint32_t)((float)lines * BORDER_MOST);
    const uint32_t first = from_end ? lines - 1 : 0;
    uint32_t n = 0;
    while (n < most) {
        const uint32_t line = from_end ? lines - 1 - n : n;
        if (!is_plain(p, line, row, tolerance) || !same_line(p, first, line, row, tolerance)) break;
        n++;
    }
    return n;
}

/* Finds the window without the borders; returns false when there are none. */
static bool trim(const leat__image_small *small, window *w)
{
    const leat__small_plane *p = &small->plane[0];
    *w = (window){0, 0, 1, 1};
    if (p->width < 8 || p->height < 8) return false;
    const uint32_t factor =
        small->info.width / p->width; /* pixels per sample: averaging blurs the edge of a border */
    const int tolerance = 4 + 8 / (int)LEAT_MAX(factor, 1); /* JPEG blurs the edges of single pixels more */
    uint32_t n[4];
    for (int side = 0; side < 4; side++) {
        n[side] = plain_lines(p, side < 2, side % 2 == 1, tolerance);
        const uint32_t lines = side < 2 ? p->height : p->width;
        if (n[side] >= (uint32_t)((float)lines * BORDER_MOST))
            n[side] = 0; /* a plain background, not a border */
        if (n[side] > 0 && factor > 1) n[side]++;
    }
    w->y0 = (float)n[0] / p->down;
    w->y1 = 1 - (float)n[1] / p->down;
    w->x0 = (float)n[2] / p->across;
    w->x1 = 1 - (float)n[3] / p->across;
    return n[0] + n[1] + n[2] + n[3] > 0 && w->x1 - w->x0 > 0.2f && w->y1 - w->y0 > 0.2f;
}

/* ---- descriptors ---- */

typedef struct spectrum {
    float y[FREQUENCIES][FREQUENCIES], chroma[2][LEAT__CHROMA_ORDER][LEAT__CHROMA_ORDER];
} spectrum;

typedef float lanes __attribute__((vector_size(16)));

static lanes load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static void transform(spectrum *s, const thumbnail *t)
{
    for (int u = 0; u < LEAT__FINE_ORDER; u++) {
        lanes row[SIDE / 4] = {{0}}, sums[FREQUENCIES / 4] = {{0}};
        float across[SIDE];
        for (int y = 0; y < SIDE; y++)
            for (int k = 0; k < SIDE / 4; k++) row[k] += luma_basis[u][y] * load(t->y + y * SIDE + 4 * k);
        memcpy(across, row, sizeof across);
        for (int x = 0; x < SIDE; x++)
            for (int k = 0; k < FREQUENCIES / 4; k++) sums[k] += across[x] * load(luma_across[x] + 4 * k);
        memcpy(s->y[u], sums, sizeof s->y[u]);
    }
    for (int c = 0; c < 2; c++)
        for (int u = 0; u < LEAT__CHROMA_ORDER; u++) {
            float row[CHROMA] = {0};
            for (int y = 0; y < CHROMA; y++)
                for (int x = 0; x < CHROMA; x++) row[x] += chroma_basis[u][y] * t->chroma[c][y * CHROMA + x];
            for (int v = 0; v < LEAT__CHROMA_ORDER; v++) {
                float sum = 0;
                for (int x = 0; x < CHROMA; x++) sum += row[x] * chroma_basis[v][x];
                s->chroma[c][u][v] = sum;
            }
        }
}

static float signed_root(float v)
{
    return v < 0 ? -sqrtf(-v) : sqrtf(v);
}

static float length_of(const float *v, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrtf(sum);
}

static void describe(const spectrum *s, int order, float weight[LEAT__FINE_ORDER][LEAT__FINE_ORDER],
                     int8_t *out)
{
    float v[LEAT__FINE_BYTES];
    int luma = 0, n;
    for (int u = 0; u < order; u++)
        for (int k = 0; k < order - u; k++)
            if (u + k > 0) v[luma++] = signed_root(s->y[u][k] * weight[u][k]);
    n = luma;
    for (int c = 0; c < 2; c++)
        for (int u = 0; u < LEAT__CHROMA_ORDER; u++)
            for (int k = 0; k < LEAT__CHROMA_ORDER - u; k++)
                v[n++] = signed_root(s->chroma[c][u][k] * weight[u][k]);
    const float by_luma = 1 / (length_of(v, luma) + 1),
                by_chroma = 1 / (length_of(v + luma, n - luma) + CHROMA_FLOOR);
    for (int i = 0; i < n; i++) v[i] *= i < luma ? by_luma : by_chroma;
    const float by = SCALE / (length_of(v, n) + 1e-6f);
    for (int i = 0; i < n; i++) {
        const float x = v[i] * by;
        out[i] = (int8_t)(x > 127 ? 127 : x < -127 ? -127 : lrintf(x));
    }
}

static bool is_flat(const thumbnail *t)
{
    float sum = 0, squares = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += t->y[i];
        squares += t->y[i] * t->y[i];
    }
    sum /= SIDE * SIDE;
    return squares / (SIDE * SIDE) - sum * sum < FLAT * FLAT;
}

static void sign_window(const thumbnail *t, int8_t *coarse, int8_t *fine)
{
    spectrum s;
    transform(&s, t);
    memset(coarse, 0, LEAT__COARSE_BYTES);
    memset(fine, 0, LEAT__FINE_BYTES);
    describe(&s, LEAT__COARSE_ORDER, coarse_weight, coarse);
    describe(&s, LEAT__FINE_ORDER, fine_weight, fine);
    if (is_flat(t)) coarse[LEAT__COARSE_FLAGS] = LEAT__SIGN_FLAT;
}

void leat__image_sign_make(leat__image_sign *sign, const leat__image_small *small)
{
    thumbnail t;
    window w = {0, 0, 1, 1};
    leat__once_run(&tables_once, make_tables);
    memset(sign, 0, sizeof *sign);
    make_thumbnail(&t, small, &w);
    store_thumbnail(sign->thumb, &t);
    sign_window(&t, sign->coarse, sign->fine);
    if (sign->coarse[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT) return;
    sign->has_trimmed = trim(small, &w);
    if (!sign->has_trimmed) return;
    sign->border = 1 - (w.x1 - w.x0) * (w.y1 - w.y0);
    make_thumbnail(&t, small, &w);
    sign_window(&t, sign->trimmed, sign->trimmed + LEAT__COARSE_BYTES);
}

void leat__image_sign_part(const uint8_t *thumb, float left, float top, float side, int8_t *coarse)
{
    leat__image_small small = {.components = 3};
    thumbnail t;
    int8_t fine[LEAT__FINE_BYTES];
    uint8_t copy[LEAT__THUMB_BYTES];
    const window w = {left, top, left + side, top + side};
    leat__once_run(&tables_once, make_tables);
    memcpy(copy, thumb, sizeof copy);
    for (int c = 0; c < 3; c++) {
        const uint32_t n = c == 0 ? SIDE : CHROMA;
        small.plane[c] =
            (leat__small_plane){.data = copy + (c == 0 ? 0 : SIDE * SIDE + (c - 1) * CHROMA * CHROMA),
                                .stride = n,
                                .width = n,
                                .height = n,
                                .across = (float)n,
                                .down = (float)n};
    }
    make_thumbnail(&t, &small, &w);
    sign_window(&t, coarse, fine);
}

/* ---- turning and comparing ---- */

/* Returns the index of frequency (u, v) in the triangle of frequencies. */
static int place_of(int u, int v, int order)
{
    return u * order - u * (u - 1) / 2 + v;
}

static void turn_triangle(const int8_t *from, int8_t *to, int order, int skip, unsigned orientation)
{
    for (int u = 0; u < order; u++)
        for (int v = 0; v < order - u; v++) {
            if (u + v < skip) continue;
            const bool minus = ((orientation & 1) && (v & 1)) != ((orientation & 2) && (u & 1));
            const int8_t value =
                orientation & 4 ? from[place_of(v, u, order) - skip] : from[place_of(u, v, order) - skip];
            to[place_of(u, v, order) - skip] = (int8_t)(minus ? -value : value);
        }
}

void leat__image_sign_turn(const int8_t *from, int8_t *to, int order, unsigned orientation)
{
    const int luma = order * (order + 1) / 2 - 1, chroma = LEAT__CHROMA_ORDER * (LEAT__CHROMA_ORDER + 1) / 2;
    memcpy(to, from, order == LEAT__COARSE_ORDER ? LEAT__COARSE_BYTES : LEAT__FINE_BYTES);
    turn_triangle(from, to, order, 1, orientation);
    for (int c = 0; c < 2; c++)
        turn_triangle(from + luma + c * chroma, to + luma + c * chroma, LEAT__CHROMA_ORDER, 0, orientation);
}

float leat__image_sign_distance(const int8_t *a, const int8_t *b, int bytes)
{
    const leat__align_dsp *dsp = leat__align_dsp_for(leat__cpu_flags());
    const int whole = bytes / 16 * 16;
    int32_t ab, aa, bb;
    dsp->products(a, b, (size_t)whole, 1, &ab);
    dsp->products(a, a, (size_t)whole, 1, &aa);
    dsp->products(b, b, (size_t)whole, 1, &bb);
    for (int i = whole; i < bytes; i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    return 1 - (float)ab / (sqrtf((float)aa * (float)bb) + 1e-6f);
}
