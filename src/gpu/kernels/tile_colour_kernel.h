/* SPDX-License-Identifier: Apache-2.0
 *
 * Colour steps on the pixels of one image, by one block of threads. The results are those of
 * src/op/color_steps.c, src/op/pad.c and src/dsp/color_tmpl.h, bit for bit, also in float and double, without
 * contraction to FMA. The image is in its workspace as three planes of bytes.
 */

#define COLOUR_LEVELS 256u

/* Shared memory of the block. */
typedef struct colour_scratch {
    uint64_t sum;
    uint32_t counts[3][COLOUR_LEVELS];
    uint8_t table[3][COLOUR_LEVELS];
} colour_scratch;

typedef struct colour_image {
    uint8_t *plane[3];
    uint32_t width, area;
    uint32_t tid, threads;
} colour_image;

DEVICE uint8_t blend_one(int32_t a, int32_t b, float alpha)
{
    const float v = (float)a + alpha * (float)(b - a);
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

DEVICE uint32_t luma_one(uint32_t r, uint32_t g, uint32_t b)
{
    return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
}

/* ---- hue ---- */

/* Rounds half up, for values that are not negative. */
DEVICE int32_t round_up(double v)
{
    const int32_t whole = (int32_t)v;
    return whole + (int32_t)((v - (double)whole) * 2.0);
}

/* Computes hue and saturation, 0 to 255 each, of a pixel whose largest value is `high`. */
DEVICE void hue_of(const uint8_t px[3], int32_t high, int32_t low, int32_t *h, int32_t *s)
{
    const int32_t r = px[0], g = px[1], b = px[2], span = high - low;
    const int32_t plus = r == high ? b : g == high ? r : g, minus = r == high ? g : g == high ? b : r;
    const float by = (float)(span + (span == 0)), base = r == high ? 0.0f : g == high ? 2.0f : 4.0f;
    const float turn =
        (float)((double)base + (double)((float)(high - plus) / by) - (double)((float)(high - minus) / by));
    const double once = (double)turn / 6.0 + 1.0;
    const float hue = (float)(once - (double)(int32_t)once);
    const float sat = (float)span / (float)(high + (high == 0));
    *h = span != 0 ? (int32_t)((double)hue * 255.0) : 0;
    *s = (int32_t)((double)sat * 255.0);
}

DEVICE void turn_hue(uint8_t px[3], uint32_t shift)
{
    const int32_t rg = px[0] > px[1] ? px[0] : px[1], high = rg > px[2] ? rg : px[2];
    const int32_t lrg = px[0] < px[1] ? px[0] : px[1], low = lrg < px[2] ? lrg : px[2];
    int32_t h, s;
    hue_of(px, high, low, &h, &s);
    const double at = (double)((h + (int32_t)shift) & 255) * 6.0 / 255.0, value = (double)high;
    const int32_t sector = (int32_t)at;
    const float f = (float)(at - (double)sector), fs = (float)((double)s / 255.0);
    const uint8_t v = (uint8_t)high, p = (uint8_t)round_up(value * (1.0 - (double)fs));
    const uint8_t q = (uint8_t)round_up(value * (1.0 - (double)(fs * f)));
    const uint8_t t = (uint8_t)round_up(value * (1.0 - (double)fs * (1.0 - (double)f)));
    px[0] = sector == 1 ? q : sector == 2 || sector == 3 ? p : sector == 4 ? t : v;
    px[1] = sector == 0 || sector == 6 ? t : sector == 3 ? q : sector >= 4 ? p : v;
    px[2] = sector == 0 || sector == 1 || sector == 6 ? p : sector == 2 ? t : sector == 5 ? q : v;
}

/* ---- noise ---- */

/* Returns random number `at` of the generator in src/base/rng.c with this key. */
DEVICE uint32_t noise_at(uint32_t k0, uint32_t k1, uint32_t at)
{
    uint32_t c0 = at / 4, c1 = 0, c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
    }
    return at % 4 == 0 ? c0 : at % 4 == 1 ? c1 : at % 4 == 2 ? c2 : c3;
}

/* ---- tables ---- */

DEVICE void count_levels(const colour_image *m, colour_scratch *s)
{
    for (uint32_t i = m->tid; i < COLOUR_LEVELS; i += m->threads)
        s->counts[0][i] = s->counts[1][i] = s->counts[2][i] = 0;
    BLOCK_SYNC();
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t i = m->tid; i < m->area; i += m->threads) ADD_SHARED(&s->counts[c][m->plane[c][i]], 1u);
    BLOCK_SYNC();
}

DEVICE void sum_luma(const colour_image *m, colour_scratch *s)
{
    uint64_t sum = 0;
    if (m->tid == 0) s->sum = 0;
    BLOCK_SYNC();
    for (uint32_t i = m->tid; i < m->area; i += m->threads)
        sum += luma_one(m->plane[0][i], m->plane[1][i], m->plane[2][i]);
    ADD_SHARED(&s->sum, sum);
    BLOCK_SYNC();
}

/* Makes the table of Pillow's equalize for a channel; the identity where equalize changes nothing. */
DEVICE void equalize_table(const uint32_t counts[COLOUR_LEVELS], uint8_t table[COLOUR_LEVELS])
{
    uint32_t total = 0, last = 0, used = 0;
    for (uint32_t v = 0; v < COLOUR_LEVELS; v++) {
        total += counts[v];
        if (counts[v] == 0) continue;
        last = counts[v];
        used++;
    }
    const uint32_t step = (total - last) / 255;
    uint32_t n = step / 2;
    for (uint32_t v = 0; v < COLOUR_LEVELS; v++) {
        const uint32_t level = step > 0 ? n / step : 0;
        table[v] = (uint8_t)(used <= 1 || step == 0 ? v : level > 255 ? 255 : level);
        n += counts[v];
    }
}

DEVICE void autocontrast_table(const uint32_t counts[COLOUR_LEVELS], uint8_t table[COLOUR_LEVELS])
{
    int32_t lo = 0, hi = 255;
    while (lo < 255 && counts[lo] == 0) lo++;
    while (hi > 0 && counts[hi] == 0) hi--;
    const double scale = 255.0 / (hi > lo ? hi - lo : 1), offset = -lo * scale;
    for (int32_t v = 0; v < (int32_t)COLOUR_LEVELS; v++) {
        const double level = v * scale + offset;
        table[v] = (uint8_t)(hi <= lo ? v : level < 0 ? 0 : level > 255 ? 255 : (int32_t)level);
    }
}

/* Returns the table entry for value v, for a step that treats all channels alike. */
DEVICE uint8_t table_value(const leat_job_step *st, int32_t v, int32_t mean)
{
    switch (st->kind) {
    case LEAT_JOB_BRIGHTNESS: return blend_one(0, v, st->amount);
    case LEAT_JOB_CONTRAST: return blend_one(mean, v, st->amount);
    case LEAT_JOB_INVERT: return (uint8_t)(255 - v);
    case LEAT_JOB_SOLARIZE: return (uint8_t)(v < (int32_t)st->value ? v : 255 - v);
    default: return (uint8_t)((uint32_t)v & st->value); /* posterize */
    }
}

/* Fills the tables of a step; false when the step is not a table. */
DEVICE bool make_tables(const colour_image *m, colour_scratch *s, const leat_job_step *st)
{
    int32_t mean = 0;
    if (st->kind >= LEAT_JOB_SATURATION) return false;
    if (st->kind == LEAT_JOB_EQUALIZE || st->kind == LEAT_JOB_AUTOCONTRAST) {
        count_levels(m, s);
        for (uint32_t c = m->tid; c < 3; c += m->threads) {
            if (st->kind == LEAT_JOB_EQUALIZE) equalize_table(s->counts[c], s->table[c]);
            else autocontrast_table(s->counts[c], s->table[c]);
        }
        return true;
    }
    if (st->kind == LEAT_JOB_CONTRAST) {
        sum_luma(m, s);
        mean = (int32_t)(uint8_t)((double)s->sum / (double)m->area + 0.5);
    }
    for (uint32_t v = m->tid; v < COLOUR_LEVELS; v += m->threads)
        for (uint32_t c = 0; c < 3; c++) s->table[c][v] = table_value(st, (int32_t)v, mean);
    return true;
}

/* ---- steps ---- */

DEVICE void change_pixel(const leat_job_step *st, uint8_t px[3])
{
    if (st->kind == LEAT_JOB_HUE) {
        turn_hue(px, st->value);
        return;
    }
    const int32_t grey = (int32_t)luma_one(px[0], px[1], px[2]);
    for (int c = 0; c < 3; c++)
        px[c] = st->kind == LEAT_JOB_GRAYSCALE ? (uint8_t)grey : blend_one(grey, px[c], st->amount);
}

DEVICE void erase_part(const colour_image *m, const leat_job_step *st)
{
    const uint32_t part = st->width * st->height;
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t i = m->tid; i < part; i += m->threads) {
            const uint32_t y = i / st->width, x = i - y * st->width;
            m->plane[c][(st->y + y) * m->width + st->x + x] =
                (uint8_t)(st->noise ? noise_at(st->key[0], st->key[1], c * part + i)
                                    : st->value >> 8 * c & 255);
        }
}

DEVICE void run_step(const colour_image *m, colour_scratch *s, const leat_job_step *st)
{
    if (st->kind == LEAT_JOB_ERASE) {
        erase_part(m, st);
        return;
    }
    const bool table = make_tables(m, s, st);
    BLOCK_SYNC();
    for (uint32_t i = m->tid; i < m->area; i += m->threads) {
        uint8_t px[3] = {m->plane[0][i], m->plane[1][i], m->plane[2][i]};
        if (!table) change_pixel(st, px);
        for (int c = 0; c < 3; c++) m->plane[c][i] = table ? s->table[c][px[c]] : px[c];
    }
}

/* Runs all colour steps of an image and writes its pixels into the batch. */
DEVICE void colour_image_steps(const leat_job *job, const leat_job_image *im, colour_scratch *s, uint32_t tid,
                               uint32_t threads)
{
    const leat_job_output *const o = &job->outputs[im->column];
    const pixel_sink sink = find_sink(im, o);
    colour_image m;
    m.width = o->width;
    m.area = o->width * o->height;
    m.tid = tid;
    m.threads = threads;
    for (uint32_t c = 0; c < 3; c++) m.plane[c] = job->work + im->work + im->canvas + (uint64_t)c * m.area;
    for (uint32_t i = 0; i < im->steps; i++) {
        run_step(&m, s, &im->step[i]);
        BLOCK_SYNC();
    }
    const spread t = spread_threads(m.width, tid, threads);
    for (uint32_t x = t.column; x < m.width; x += t.column_step)
        for (uint32_t y = t.row; y < o->height; y += t.row_step) {
            const uint32_t i = y * m.width + x;
            const uint32_t value[3] = {m.plane[0][i], m.plane[1][i], m.plane[2][i]};
            put_pixel(&sink, im, x, y, value);
        }
}
