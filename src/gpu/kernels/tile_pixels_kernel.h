/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns component planes into pixels of the batch. The results are those of src/dsp/ycc.c (libjpeg-turbo's),
 * src/dsp/resize.c (Pillow's) and src/dsp/pixel.c, bit for bit. Weights are computed in double without
 * contraction to FMA, as there.
 */

#define RESIZE_BITS 22
#define RESIZE_ONE (1 << RESIZE_BITS)

/* The values of leat__filter. */
#define FILTER_NEAREST 0u
#define FILTER_BOX 1u
#define FILTER_BILINEAR 2u
#define FILTER_BICUBIC 4u

/* ---- axes ---- */

DEVICE double filter_support(uint32_t filter)
{
    return filter == FILTER_BOX ? 0.5 : filter == FILTER_BILINEAR ? 1.0 : 2.0;
}

DEVICE double filter_at(uint32_t filter, double x)
{
    if (filter == FILTER_BOX) return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    if (x < 0) x = -x;
    if (filter == FILTER_BILINEAR) return x < 1.0 ? 1.0 - x : 0.0;
    if (x < 1.0) return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * -0.5;
    return 0.0;
}

typedef struct axis_view {
    uint32_t *first, *taps_of;
    leat_job_weights *weight;
} axis_view;

DEVICE axis_view view_axis(const leat_job_axis *a, uint8_t *work)
{
    axis_view v;
    v.first = (uint32_t *)(void *)(work + a->first);
    v.taps_of = (uint32_t *)(void *)(work + a->taps_of);
    v.weight = (leat_job_weights *)(void *)(work + a->weight);
    return v;
}

/* Loads all four words at once. */
DEVICE leat_job_weights load_weights(const leat_job_weights *w)
{
    leat_job_weights out;
    load_sixteen(w, &out.low, &out.middle, &out.high, &out.place);
    return out;
}

/* True for the nearest filter and for an axis of unchanged length, which no filter changes. */
DEVICE bool takes_nearest(const leat_job_axis *a)
{
    return a->filter == FILTER_NEAREST || a->in == a->out;
}

/* True when outputs have few inputs. Their weights begin at the first input; on other axes weights are for
 * whole words of inputs. */
DEVICE bool is_narrow(const leat_job_axis *a)
{
    return a->taps <= LEAT_JOB_NARROW;
}

/* Adds the weight of the input at byte `at` of a word. */
DEVICE void add_weight(leat_job_weights *w, int32_t weight, uint32_t at)
{
    const uint32_t bits = (uint32_t)weight;
    w->low |= (bits & 255) << 8 * at;
    w->middle |= (bits >> 8 & 255) << 8 * at;
    w->high |= (bits >> 16 & 255) << 8 * at;
}

/* Builds all outputs in sequence, because Pillow steps through the input by repeated addition. */
DEVICE void build_nearest(const leat_job_axis *a, uint8_t *work)
{
    const axis_view v = view_axis(a, work);
    const double step = (double)a->in / a->out;
    double at = 0.0 + step * 0.5;
    for (uint32_t i = 0; i < a->from; i++) at += step;
    for (uint32_t j = 0; j < a->count; j++, at += step) {
        const uint32_t k = a->mirror_out ? a->count - 1 - j : j;
        uint32_t x = a->in == a->out ? a->from + j : (uint32_t)at;
        x = x < a->in - 1 ? x : a->in - 1;
        const uint32_t first = (a->mirror_in ? a->in - x - 1 : x) - a->lo + a->lead;
        leat_job_weights w = {0, 0, 0, first};
        add_weight(&w, RESIZE_ONE, 0);
        v.first[k] = first;
        v.taps_of[k] = 1;
        v.weight[k] = w;
    }
}

/* Builds output j: its first input and its weights. */
DEVICE void build_output(const leat_job_axis *a, uint8_t *work, uint32_t j)
{
    const axis_view v = view_axis(a, work);
    const uint32_t o = a->from + (a->mirror_out ? a->count - 1 - j : j);
    const double scale = (double)a->in / a->out, stretch = scale < 1.0 ? 1.0 : scale;
    const double support = filter_support(a->filter) * stretch, step = 1.0 / stretch;
    const double center = 0.0 + ((double)(int32_t)o + 0.5) * scale;
    const int32_t lo = (int32_t)(center - support + 0.5), hi = (int32_t)(center + support + 0.5);
    const int32_t from = lo < 0 ? 0 : lo;
    const uint32_t all = (uint32_t)((hi > (int32_t)a->in ? (int32_t)a->in : hi) - from);
    const uint32_t taps = all < a->taps ? all : a->taps;
    const uint32_t first = (a->mirror_in ? a->in - (uint32_t)from - taps : (uint32_t)from) - a->lo + a->lead;
    const uint32_t lead =
        is_narrow(a) ? 0 : first & 3; /* bytes of the first word that precede the first input */
    const uint32_t place = is_narrow(a) ? first : first >> 2 | (lead + taps + 3) >> 2 << LEAT_JOB_WORD_BITS;
    double sum = 0.0;
    for (uint32_t t = 0; t < taps; t++)
        sum += filter_at(a->filter, ((double)(int32_t)((uint32_t)from + t) - center + 0.5) * step);
    for (uint32_t i = 0, at = 0u - lead; i < a->words; i++) {
        leat_job_weights w = {0, 0, 0, place};
        for (uint32_t b = 0; b < 4; b++, at++) {
            if (at >= taps) continue; /* also for bytes before the first input */
            const uint32_t t = a->mirror_in ? taps - 1 - at : at;
            const double f =
                filter_at(a->filter, ((double)(int32_t)((uint32_t)from + t) - center + 0.5) * step);
            const double k = (sum != 0.0 ? f / sum : f) * RESIZE_ONE;
            add_weight(&w, (int32_t)(k + (k < 0 ? -0.5 : 0.5)), b);
        }
        v.weight[i * a->count + j] = w;
    }
    v.first[j] = first;
    v.taps_of[j] = taps;
}

/* ---- colour ---- */

DEVICE int32_t sample_at(const leat_job_image *im, const uint8_t *work, uint32_t c, uint32_t x, uint32_t y)
{
    return work[im->plane[c] + (uint64_t)(y - 8 * im->by0[c]) * im->pitch[c] + (x - 8 * im->bx0[c])];
}

/* Returns the chroma of component c at pixel (x, y), upsampled as libjpeg-turbo does. */
DEVICE int32_t chroma_at(const leat_job_image *im, const uint8_t *work, uint32_t c, uint32_t x, uint32_t y)
{
    const uint32_t cx = x / im->h, cy = y / im->v;
    uint32_t far_y = cy, side = cx;
    if (im->v == 2) {
        far_y = y & 1 ? cy + 1 : cy - (cy > 0);
        if (far_y > im->samples_y[c] - 1) far_y = im->samples_y[c] - 1;
    }
    const int32_t near = sample_at(im, work, c, cx, cy);
    if (im->h == 1) {
        if (im->v == 1) return near;
        return (3 * near + sample_at(im, work, c, cx, far_y) + (y & 1 ? 2 : 1)) >> 2;
    }
    if (im->h == 4 || !im->smooth) return near;
    side = x & 1 ? cx + 1 : cx - (cx > 0);
    if (side > im->samples_x[c] - 1) side = im->samples_x[c] - 1;
    if (im->v == 1) return (3 * near + sample_at(im, work, c, side, cy) + (x & 1 ? 2 : 1)) >> 2;
    const int32_t here = 3 * near + sample_at(im, work, c, cx, far_y);
    const int32_t there = 3 * sample_at(im, work, c, side, cy) + sample_at(im, work, c, side, far_y);
    return (3 * here + there + (x & 1 ? 7 : 8)) >> 4;
}

DEVICE uint8_t clamp8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* A chroma component of a region, kept in registers while a thread makes pixels. */
typedef struct chroma_view {
    const uint8_t *plane;         /* sample (0, 0) of the image */
    uint32_t pitch, lo, hi, last; /* lo, hi: first and last available sample of a row; last: last row */
} chroma_view;

typedef struct colour_view {
    const uint8_t *luma; /* row 0 of the region, at its x minus `lead` */
    uint32_t luma_pitch, x, y;
    uint32_t tall, fancy, full,
        grey; /* chroma has: half the rows; half the columns, smoothed; full size; no planes */
    chroma_view chroma[2];
} colour_view;

DEVICE colour_view view_colour(const leat_job_image *im, uint8_t *work)
{
    colour_view v;
    v.x = im->x - im->lead;
    v.y = im->y;
    v.luma_pitch = im->pitch[0];
    v.luma = work + im->plane[0] + (uint64_t)(im->y - 8 * im->by0[0]) * v.luma_pitch + (v.x - 8 * im->bx0[0]);
    v.grey = im->components == 1;
    v.tall = im->v == 2;
    v.fancy = im->h == 2 && im->smooth;
    v.full = im->h == 1 && im->v == 1;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t c = v.grey ? 0 : i + 1;
        chroma_view *const k = &v.chroma[i];
        k->pitch = im->pitch[c];
        k->lo = 8 * im->bx0[c];
        k->hi = least(im->samples_x[c], 8 * im->bx1[c]) - 1;
        k->last = im->samples_y[c] - 1;
        k->plane = work + im->plane[c] - 8 * (int64_t)im->by0[c] * (int64_t)k->pitch - (int64_t)k->lo;
    }
    return v;
}

/* Reads four samples of a row, the first at `at`, which is odd. Beyond an edge, repeats its sample. */
DEVICE uint32_t four_samples(const chroma_view *k, const uint8_t *row, uint32_t at)
{
    if ((int32_t)at >= (int32_t)k->lo && at + 3 <= k->hi) {
        const uint32_t *const word = (const uint32_t *)(const void *)(row + (at & ~3u));
        return shift_right(word[0], word[1], 8 * (at & 3));
    }
    uint32_t all = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t x = (int32_t)(at + i) > (int32_t)k->lo ? least(at + i, k->hi) : k->lo;
        all |= (uint32_t)row[x] << 8 * i;
    }
    return all;
}

/* Upsamples chroma with half the columns for four pixels of row y; the first, x, is a multiple of 4. out[0]
 * holds pixels 0 and 2, 16 bits each, out[1] pixels 1 and 3. Pixels outside the region get values that
 * nothing uses; reads stay inside the plane. */
DEVICE void chroma_four(const chroma_view *k, uint32_t tall, uint32_t x, uint32_t y, uint32_t out[2])
{
    const uint32_t cy = tall ? y / 2 : y, from = x / 2 - 1;
    const uint32_t near = four_samples(k, k->plane + (uint64_t)cy * k->pitch, from);
    uint32_t a = near & 0xff00ff, b = near >> 8 & 0xff00ff; /* samples 0 and 2, 1 and 3 */
    if (tall) {
        const uint32_t far_y = y & 1 ? least(cy + 1, k->last) : cy - (cy > 0);
        const uint32_t far = four_samples(k, k->plane + (uint64_t)far_y * k->pitch, from);
        a = 3 * a + (far & 0xff00ff);
        b = 3 * b + (far >> 8 & 0xff00ff);
    }
    const uint32_t middle = choose_bytes(b, a, 0x7610), left = choose_bytes(a, b, 0x5410);
    const uint32_t right = choose_bytes(a, b, 0x7632);
    out[0] = (3 * middle + left + (tall ? 0x80008u : 0x10001u)) >> (tall ? 4 : 2) & 0xff00ff;
    out[1] = (3 * middle + right + (tall ? 0x70007u : 0x20002u)) >> (tall ? 4 : 2) & 0xff00ff;
}

/* Like chroma_four, for chroma of full size. */
DEVICE void chroma_full(const chroma_view *k, uint32_t x, uint32_t y, uint32_t out[2])
{
    const uint32_t four = *(const uint32_t *)(const void *)(k->plane + (uint64_t)y * k->pitch + x);
    out[0] = four & 0xff00ff;
    out[1] = four >> 8 & 0xff00ff;
}

/* Like chroma_four, for rare chroma samplings. */
DEVICE void chroma_each(const leat_job_image *im, const uint8_t *work, uint32_t c, uint32_t x, uint32_t y,
                        uint32_t out[2])
{
    const uint32_t end = im->x + im->width - 1;
    out[0] = out[1] = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = x + i < im->x ? im->x : x + i;
        const uint32_t sample = (uint32_t)chroma_at(im, work, c, at < end ? at : end, y);
        if (i & 1) out[1] |= sample << 8 * (i - 1);
        else out[0] |= sample << 8 * i;
    }
}

/* Converts four pixels of the region's row y from `at` on, a multiple of 4, to RGB; the region begins at
 * pixel `lead`. out has a word per plane; grey has one plane. */
DEVICE void colour_four(const leat_job_image *im, const colour_view *p, const uint8_t *work, uint32_t at,
                        uint32_t y, uint32_t out[3])
{
    const uint32_t luma = *(const uint32_t *)(const void *)(p->luma + (uint64_t)y * p->luma_pitch + at);
    uint32_t u[2], v[2];
    int32_t r[4], g[4], b[4];
    out[0] = luma;
    if (p->grey) return;
    if (p->full) {
        chroma_full(&p->chroma[0], p->x + at, p->y + y, u);
        chroma_full(&p->chroma[1], p->x + at, p->y + y, v);
    } else if (p->fancy) {
        chroma_four(&p->chroma[0], p->tall, p->x + at, p->y + y, u);
        chroma_four(&p->chroma[1], p->tall, p->x + at, p->y + y, v);
    } else {
        chroma_each(im, work, 1, p->x + at, p->y + y, u);
        chroma_each(im, work, 2, p->x + at, p->y + y, v);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        const int32_t l = (int32_t)(luma >> 8 * i & 255);
        const int32_t cb = (int32_t)(u[i & 1] >> 8 * (i & 2) & 0xffff) - 128;
        const int32_t cr = (int32_t)(v[i & 1] >> 8 * (i & 2) & 0xffff) - 128;
        r[i] = l + ((91881 * cr + 32768) >> 16);
        g[i] = l + ((-22554 * cb - 46802 * cr + 32768) >> 16);
        b[i] = l + ((116130 * cb + 32768) >> 16);
    }
    out[0] = pack_four(r[0], r[1], r[2], r[3]);
    out[1] = pack_four(g[0], g[1], g[2], g[3]);
    out[2] = pack_four(b[0], b[1], b[2], b[3]);
}

/* ---- a window of the output ---- */

/* A block of threads makes the outputs of a window. Input lines (rows when the horizontal pass is first, else
 * columns) are converted to RGB in `lines`, a chunk at a time. The first pass turns four lines into one word
 * of `mid`, so that the second pass also reads adjacent bytes. A weighted sum takes three dot products of
 * bytes per four inputs, one for each byte of the weights.
 *
 * Fields that the loops need are copied from the job, else the compiler would reload them after each store.
 */
typedef struct pixel_window {
    const leat_job_image *im;
    uint8_t *work;
    uint32_t down;                         /* 1 = the vertical pass is first */
    uint32_t x0, wide, y0, high;           /* outputs of the window */
    uint32_t word_x, end_x, word_y, end_y; /* inputs that they need, in words of four */
    uint32_t planes, outputs;              /* of the first pass */
    uint32_t count, line_pitch, mid_pitch; /* lines processed at once; words from line to line */
    uint32_t *lines, *mid;                 /* shared memory */
    uint32_t tid, threads;
} pixel_window;

/* Returns i / n, given 1 / n. Adding 1/2 to i avoids rounding errors at multiples of n. */
DEVICE uint32_t over(uint32_t i, float inverse)
{
    return (uint32_t)(((float)i + 0.5f) * inverse);
}

/* How threads are spread over columns and rows: a warp is in one row, and idle threads have no columns. */
typedef struct spread {
    uint32_t column, column_step, row, row_step;
} spread;

DEVICE spread spread_threads(uint32_t columns, uint32_t tid, uint32_t threads)
{
    const uint32_t wide = (columns + 31) & ~31u;
    spread s = {tid, threads, 0, 1};
    if (2 * wide > threads) return s;
    s.row_step = threads / wide;
    s.row = tid / wide;
    s.column = s.row < s.row_step ? tid - s.row * wide : columns;
    return s;
}

/* Finds the words of input that outputs `from` up to `to` need, at most `room`. */
DEVICE void find_words(const leat_job_axis *a, uint8_t *work, uint32_t from, uint32_t to, uint32_t room,
                       uint32_t *word, uint32_t *end)
{
    const axis_view v = view_axis(a, work);
    const uint32_t p = v.first[from], q = v.first[to - 1]; /* falls on a mirrored axis */
    const uint32_t s = p + v.taps_of[from], t = q + v.taps_of[to - 1];
    *word = least(p, q) >> 2;
    *end = least(((s > t ? s : t) + 3) >> 2, *word + room);
}

/* Converts rows [line, line + w->count) of the input to RGB. */
DEVICE void fill_rows(const pixel_window *w, const colour_view *view, uint32_t line)
{
    const uint32_t wide = w->end_x - w->word_x, plane = w->count * w->line_pitch;
    const uint32_t end = least(least(line + w->count, 4 * w->end_y), w->im->height);
    const float inverse = 1.0f / (float)wide;
    const uint32_t down = over(w->threads, inverse), right = w->threads - down * wide;
    uint32_t y = over(w->tid, inverse), x = w->tid - y * wide;
    for (y += line; y < end;) {
        uint32_t *const to = w->lines + (y - line) * w->line_pitch + x;
        uint32_t rgb[3];
        colour_four(w->im, view, w->work, 4 * (w->word_x + x), y, rgb);
        to[0] = rgb[0];
        if (w->planes == 3) {
            to[plane] = rgb[1];
            to[2 * plane] = rgb[2];
        }
        x += right;
        y += down;
        if (x >= wide) {
            x -= wide;
            y++;
        }
    }
}

/* Converts columns [line, line + w->count) of the input to RGB, four by four pixels at a time. */
DEVICE void fill_columns(const pixel_window *w, const colour_view *view, uint32_t line)
{
    const uint32_t first = line / 4, wide = least(w->count / 4, w->end_x - first);
    const uint32_t high = w->end_y - w->word_y, last = w->im->height - 1;
    const float inverse = 1.0f / (float)wide;
    for (uint32_t i = w->tid; i < high * wide; i += w->threads) {
        const uint32_t y = over(i, inverse), x = i - y * wide;
        uint32_t column[3][4] = {{0}};
        NO_UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t rgb[3];
            colour_four(w->im, view, w->work, 4 * (first + x), least(4 * (w->word_y + y) + k, last), rgb);
            UNROLL
            for (int c = 0; c < 3; c++) { /* shift the row's bytes in from the top */
                if (c > 0 && w->planes == 1) break;
                column[c][0] = choose_bytes(column[c][0], rgb[c], 0x4321);
                column[c][1] = choose_bytes(column[c][1], rgb[c], 0x5321);
                column[c][2] = choose_bytes(column[c][2], rgb[c], 0x6321);
                column[c][3] = choose_bytes(column[c][3], rgb[c], 0x7321);
            }
        }
        UNROLL
        for (uint32_t c = 0; c < 3; c++) {
            if (c >= w->planes) break;
            uint32_t *const to = w->lines + (c * w->count + 4 * x) * w->line_pitch + y;
            UNROLL
            for (uint32_t k = 0; k < 4; k++) to[k * w->line_pitch] = column[c][k];
        }
    }
}

/* Computes the weighted sum of bytes from `in` on, with the weights of one output, which are `step` apart. */
DEVICE int32_t weigh(const uint32_t *in, const leat_job_weights *weight, uint32_t step, uint32_t words)
{
    uint32_t low = 1u << (RESIZE_BITS - 1), middle = 0, high = 0;
    for (uint32_t k = 0; k < words; k++) {
        low = dot_bytes(in[k], weight[k * step].low, low);
        middle = dot_bytes(in[k], weight[k * step].middle, middle);
        high = dot_signed(in[k], weight[k * step].high, high);
    }
    return (int32_t)(low + (middle << 8) + (high << 16)) >> RESIZE_BITS;
}

/* Weights of an output. Those of a narrow axis are kept in registers. `narrow` is a compile-time constant, so
 * the other branch is removed. */
typedef struct output_weights {
    leat_job_weights one;
    const leat_job_weights *all;
    uint32_t step;
} output_weights;

DEVICE output_weights weights_of(const leat_job_weights *all, uint32_t count, uint32_t j)
{
    output_weights o;
    o.all = all + j;
    o.step = count;
    o.one = load_weights(o.all);
    return o;
}

DEVICE uint32_t first_word(const output_weights *o, bool narrow)
{
    return narrow ? o->one.place >> 2 : o->one.place & ((1u << LEAT_JOB_WORD_BITS) - 1);
}

DEVICE int32_t weigh_output(const uint32_t *in, const output_weights *o, bool narrow)
{
    if (!narrow) return weigh(in, o->all, o->step, o->one.place >> LEAT_JOB_WORD_BITS);
    const uint32_t four = shift_right(in[0], in[1], o->one.place << 3 & 31);
    return weigh(&four, &o->one, 1, 1);
}

/* Runs the first pass on the `count` lines from `line` on, which is a multiple of four. */
DEVICE void first_pass(const pixel_window *w, const leat_job_axis *a, uint32_t line, uint32_t count,
                       bool narrow)
{
    const leat_job_weights *const all = view_axis(a, w->work).weight + (w->down ? w->y0 : w->x0);
    const uint32_t weights = a->count, pitch = w->line_pitch, groups = (count + 3) / 4;
    const uint32_t begin = w->down ? w->word_y : w->word_x;
    const uint32_t at = line / 4 - (w->down ? w->word_x : w->word_y);
    const uint32_t in_step = w->count * pitch, out_step = w->outputs * w->mid_pitch;
    const spread s = spread_threads(w->outputs, w->tid, w->threads);
    for (uint32_t j = s.column; j < w->outputs; j += s.column_step) {
        const output_weights o = weights_of(all, weights, j);
        const uint32_t *const from = w->lines + (first_word(&o, narrow) - begin);
        uint32_t *const to = w->mid + j * w->mid_pitch + at;
        for (uint32_t g = s.row; g < groups; g += s.row_step) {
            const uint32_t *in = from + 4 * g * pitch;
            uint32_t *out = to + g;
            NO_UNROLL
            for (uint32_t c = 0; c < w->planes; c++, in += in_step, out += out_step)
                *out = pack_four(weigh_output(in, &o, narrow), weigh_output(in + pitch, &o, narrow),
                                 weigh_output(in + 2 * pitch, &o, narrow),
                                 weigh_output(in + 3 * pitch, &o, narrow));
        }
    }
}

/* The destination of the outputs. */
typedef struct pixel_sink {
    uint8_t *data; /* first value of the image */
    const leat_job_output *o;
    uint32_t dtype, channels;
    uint32_t x_step, y_step, c_step; /* in values */
    uint32_t erase, erase_x, erase_y, erase_width, erase_height;
} pixel_sink;

/* Transposes the sink, for an image whose rows are columns of the output. */
DEVICE void turn_sink(pixel_sink *s)
{
    const pixel_sink t = *s;
    s->x_step = t.y_step;
    s->y_step = t.x_step;
    s->erase_x = t.erase_y;
    s->erase_y = t.erase_x;
    s->erase_width = t.erase_height;
    s->erase_height = t.erase_width;
}

DEVICE pixel_sink find_sink(const leat_job_image *im, const leat_job_output *o)
{
    const uint32_t area = o->width * o->height;
    const uint32_t size = o->dtype == LEAT_JOB_U8 ? 1 : o->dtype == LEAT_JOB_F32 ? 4 : 2;
    pixel_sink s;
    s.o = o;
    s.data = (uint8_t *)(o->data + (uint64_t)im->row * area * o->channels * size);
    s.dtype = o->dtype;
    s.channels = o->channels;
    s.x_step = o->nhwc ? o->channels : 1;
    s.y_step = o->width * s.x_step;
    s.c_step = o->nhwc ? 1 : area;
    s.erase = im->erase;
    s.erase_x = im->erase_x;
    s.erase_y = im->erase_y;
    s.erase_width = im->erase_width;
    s.erase_height = im->erase_height;
    return s;
}

/* Makes a sink in the image's workspace, for images with colour steps after the resize. */
DEVICE pixel_sink find_canvas(const leat_job_image *im, const leat_job_output *o, uint8_t *work)
{
    pixel_sink s;
    s.o = o;
    s.data = work + im->canvas;
    s.dtype = LEAT_JOB_U8;
    s.channels = 3;
    s.x_step = 1;
    s.y_step = o->width;
    s.c_step = o->width * o->height;
    s.erase = 0;
    s.erase_x = s.erase_y = s.erase_width = s.erase_height = 0;
    return s;
}

DEVICE void put_bits(const pixel_sink *s, uint32_t at, uint32_t bits)
{
    if (s->dtype == LEAT_JOB_U8) s->data[at] = (uint8_t)bits;
    else if (s->dtype == LEAT_JOB_F32) ((uint32_t *)(void *)s->data)[at] = bits;
    else ((uint16_t *)(void *)s->data)[at] = (uint16_t)bits;
}

/* Writes pixel (x, y) into the batch. */
DEVICE void put_pixel(const pixel_sink *s, const leat_job_image *im, uint32_t x, uint32_t y,
                      const uint32_t value[3])
{
    uint32_t at = x * s->x_step + y * s->y_step;
    const bool erased = s->erase && x - s->erase_x < s->erase_width && y - s->erase_y < s->erase_height;
    UNROLL
    for (uint32_t c = 0; c < 3; c++, at += s->c_step) {
        if (c >= s->channels) break;
        uint32_t bits = value[c];
        if (s->dtype == LEAT_JOB_F32) bits = READ_ONLY(&s->o->f32[c][bits]);
        else if (s->dtype != LEAT_JOB_U8) bits = READ_ONLY(&s->o->f16[c][bits]);
        put_bits(s, at, erased ? im->erase_bits[c] : bits);
    }
}

/* Runs the second pass, for all outputs of the window. */
DEVICE void second_pass(const pixel_window *w, const leat_job_axis *a, const pixel_sink *sink, bool narrow)
{
    const leat_job_weights *const all = view_axis(a, w->work).weight + (w->down ? w->x0 : w->y0);
    const uint32_t weights = a->count, step = w->outputs * w->mid_pitch;
    const uint32_t begin = w->down ? w->word_x : w->word_y;
    const spread s = spread_threads(w->wide, w->tid, w->threads);
    for (uint32_t x = s.column; x < w->wide; x += s.column_step) {
        output_weights o = weights_of(all, weights, w->down ? x : 0);
        NO_UNROLL
        for (uint32_t y = s.row; y < w->high; y += s.row_step) {
            if (!w->down) o = weights_of(all, weights, y);
            const uint32_t *const in =
                w->mid + ((w->down ? y : x) * w->mid_pitch + first_word(&o, narrow) - begin);
            uint32_t value[3];
            value[0] = value[1] = value[2] = clamp8(weigh_output(in, &o, narrow));
            if (w->planes == 3) {
                value[1] = clamp8(weigh_output(in + step, &o, narrow));
                value[2] = clamp8(weigh_output(in + 2 * step, &o, narrow));
            }
            put_pixel(sink, w->im, w->x0 + x, w->y0 + y, value);
        }
    }
}

/* Runs the second pass for the common case: a narrow axis, three channels of bytes, nothing erased. `down` is
 * a compile-time constant. */
DEVICE void second_pass_bytes(const pixel_window *w, const leat_job_axis *a, const pixel_sink *sink,
                              bool down)
{
    const leat_job_weights *const all = view_axis(a, w->work).weight + (down ? w->x0 : w->y0);
    const uint32_t plane = w->outputs * w->mid_pitch, begin = down ? w->word_x : w->word_y;
    const spread s = spread_threads(w->wide, w->tid, w->threads);
    const uint32_t stride = s.row_step * sink->y_step, c_step = sink->c_step;
    for (uint32_t x = s.column; x < w->wide; x += s.column_step) {
        uint8_t *to = sink->data + (w->x0 + x) * sink->x_step + (w->y0 + s.row) * sink->y_step;
        output_weights o = weights_of(all, 0, down ? x : 0);
        NO_UNROLL
        for (uint32_t y = s.row; y < w->high; y += s.row_step, to += stride) {
            if (!down) o = weights_of(all, 0, y);
            const uint32_t *const in =
                w->mid + ((down ? y : x) * w->mid_pitch + first_word(&o, true) - begin);
            to[0] = clamp8(weigh_output(in, &o, true));
            to[c_step] = clamp8(weigh_output(in + plane, &o, true));
            to[2 * c_step] = clamp8(weigh_output(in + 2 * plane, &o, true));
        }
    }
}

DEVICE bool takes_bytes(const pixel_window *w, const pixel_sink *sink)
{
    return w->planes == 3 && sink->channels == 3 && sink->dtype == LEAT_JOB_U8 && !sink->erase;
}

/* True when a tile of the image could not be decoded. The image must not be read then, because parts of its
 * planes were never written. The host decides what happens to the sample. */
DEVICE bool is_damaged(const leat_job *job, uint32_t image)
{
    return job->status[image] != LEAT_JOB_NO_DAMAGE;
}

/* Makes window `number` of a damaged image black, so that copies of the batch read defined memory. */
DEVICE void clear_window(const leat_job *job, const leat_job_image *im, uint32_t number, uint32_t tid,
                         uint32_t threads)
{
    const uint32_t across = (im->ax.count + im->window_x - 1) / im->window_x;
    const uint32_t x0 = number % across * im->window_x, y0 = number / across * im->window_y;
    const uint32_t wide = least(im->window_x, im->ax.count - x0);
    const uint32_t high = least(im->window_y, im->ay.count - y0);
    pixel_sink sink = find_sink(im, &job->outputs[im->column]);
    if (im->turned) turn_sink(&sink);
    for (uint32_t i = tid; i < wide * high; i += threads) {
        const uint32_t at = (x0 + i % wide) * sink.x_step + (y0 + i / wide) * sink.y_step;
        for (uint32_t c = 0; c < sink.channels; c++) put_bits(&sink, at + c * sink.c_step, 0);
    }
}

/* Makes window `number` of an image, by `threads` threads that share `pool`. */
DEVICE void make_window(const leat_job *job, const leat_job_image *im, uint32_t number, uint32_t *pool,
                        uint32_t tid, uint32_t threads)
{
    const leat_job_output *const o = &job->outputs[im->column];
    pixel_window w;
    w.im = im;
    w.work = job->work + im->work;
    w.tid = tid;
    w.threads = threads;
    w.down = im->vertical_first;
    const uint32_t across = (im->ax.count + im->window_x - 1) / im->window_x, down = w.down;
    w.x0 = number % across * im->window_x;
    w.y0 = number / across * im->window_y;
    w.wide = least(im->window_x, im->ax.count - w.x0);
    w.high = least(im->window_y, im->ay.count - w.y0);
    w.planes = im->components == 1 ? 1 : 3;
    w.outputs = down ? w.high : w.wide;
    w.count = im->lines;
    w.line_pitch = im->line_pitch;
    w.mid_pitch = im->mid_pitch;
    find_words(&im->ax, w.work, w.x0, w.x0 + w.wide, down ? w.mid_pitch : w.line_pitch, &w.word_x, &w.end_x);
    find_words(&im->ay, w.work, w.y0, w.y0 + w.high, down ? w.line_pitch : w.mid_pitch, &w.word_y, &w.end_y);
    w.lines = pool;
    w.mid = pool + w.planes * w.count * w.line_pitch +
            LEAT_JOB_POOL_SLACK / 2; /* reads of lines may go past their end */
    const leat_job_axis *const first = down ? &im->ay : &im->ax, *const second = down ? &im->ax : &im->ay;
    const uint32_t end = 4 * (down ? w.end_x : w.end_y);
    for (uint32_t line = 4 * (down ? w.word_x : w.word_y); line < end; line += w.count) {
        const colour_view view = view_colour(im, w.work);
        if (down) fill_columns(&w, &view, line);
        else fill_rows(&w, &view, line);
        BLOCK_SYNC();
        if (is_narrow(first)) first_pass(&w, first, line, least(w.count, end - line), true);
        else first_pass(&w, first, line, least(w.count, end - line), false);
        BLOCK_SYNC(); /* the next lines overwrite these */
    }
    pixel_sink sink = im->steps > 0 ? find_canvas(im, o, w.work) : find_sink(im, o);
    if (im->turned) turn_sink(&sink);
    if (!is_narrow(second)) second_pass(&w, second, &sink, false);
    else if (!takes_bytes(&w, &sink)) second_pass(&w, second, &sink, true);
    else if (down) second_pass_bytes(&w, second, &sink, true);
    else second_pass_bytes(&w, second, &sink, false);
    BLOCK_SYNC(); /* the next window overwrites this one */
}
