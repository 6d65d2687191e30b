/* SPDX-License-Identifier: Apache-2.0
 *
 * From planes of components to the batch: one function per pixel of each step. The arithmetic is that of
 * src/dsp/ycc.c (libjpeg-turbo's), src/dsp/resize.c (Pillow's) and src/dsp/pixel.c, bit for bit. Weights
 * are made in double without contraction to FMA, as there.
 */

#define RESIZE_BITS 22
#define RESIZE_ONE (1 << RESIZE_BITS)

/* As leat__filter. */
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
    int32_t *weight;
} axis_view;

DEVICE axis_view view_axis(const leat_job_axis *a, uint8_t *work)
{
    axis_view v;
    v.first = (uint32_t *)(void *)(work + a->first);
    v.taps_of = (uint32_t *)(void *)(work + a->taps_of);
    v.weight = (int32_t *)(void *)(work + a->weight);
    return v;
}

/* Every filter leaves an axis of unchanged length as it is. */
DEVICE bool takes_nearest(const leat_job_axis *a)
{
    return a->filter == FILTER_NEAREST || a->in == a->out;
}

/* All outputs, one after the other: Pillow steps through the input by repeated addition. */
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
        v.first[k] = (a->mirror_in ? a->in - x - 1 : x) - a->lo;
        v.taps_of[k] = 1;
        v.weight[k] = RESIZE_ONE;
    }
}

/* Output j. */
DEVICE void build_output(const leat_job_axis *a, uint8_t *work, uint32_t j)
{
    const axis_view v = view_axis(a, work);
    const uint32_t o = a->from + (a->mirror_out ? a->count - 1 - j : j);
    const double scale = (double)a->in / a->out, stretch = scale < 1.0 ? 1.0 : scale;
    const double support = filter_support(a->filter) * stretch, step = 1.0 / stretch;
    const double center = 0.0 + ((double)(int32_t)o + 0.5) * scale;
    const int32_t lo = (int32_t)(center - support + 0.5), hi = (int32_t)(center + support + 0.5);
    const int32_t from = lo < 0 ? 0 : lo;
    const uint32_t taps = (uint32_t)((hi > (int32_t)a->in ? (int32_t)a->in : hi) - from);
    double sum = 0.0;
    for (uint32_t t = 0; t < taps; t++)
        sum += filter_at(a->filter, ((double)(int32_t)((uint32_t)from + t) - center + 0.5) * step);
    for (uint32_t t = 0; t < taps; t++) {
        const double w = filter_at(a->filter, ((double)(int32_t)((uint32_t)from + t) - center + 0.5) * step);
        const double k = (sum != 0.0 ? w / sum : w) * RESIZE_ONE;
        const uint32_t at = a->mirror_in ? taps - 1 - t : t;
        if (at < a->taps) v.weight[at * a->count + j] = (int32_t)(k + (k < 0 ? -0.5 : 0.5));
    }
    v.first[j] = (a->mirror_in ? a->in - (uint32_t)from - taps : (uint32_t)from) - a->lo;
    v.taps_of[j] = taps < a->taps ? taps : a->taps;
}

/* ---- colour ---- */

DEVICE int32_t sample_at(const leat_job_image *im, const uint8_t *work, uint32_t c, uint32_t x, uint32_t y)
{
    return work[im->plane[c] + (uint64_t)(y - 8 * im->by0[c]) * im->pitch[c] + (x - 8 * im->bx0[c])];
}

/* Chroma of component c at pixel (x, y), upsampled as libjpeg-turbo does. */
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

/* A component as the pixels of a region see it: kept in registers while a thread makes its pixels. */
typedef struct chroma_view {
    const uint8_t *plane; /* sample (0, 0) of the image */
    uint32_t pitch, lo, hi, last; /* first and last sample of a row that is there; last row */
} chroma_view;

typedef struct colour_view {
    const uint8_t *luma; /* row 0 of the region, at its x less `lead` */
    uint32_t luma_pitch, x, y;
    uint8_t *rgb;
    uint32_t rgb_pitch;
    uint64_t rgb_size;
    uint32_t tall, fancy, grey; /* chroma has half the rows; half the columns, smoothed */
    chroma_view chroma[2];
} colour_view;

DEVICE colour_view view_colour(const leat_job_image *im, uint8_t *work)
{
    colour_view v;
    v.x = im->x - im->lead;
    v.y = im->y;
    v.luma_pitch = im->pitch[0];
    v.luma = work + im->plane[0] + (uint64_t)(im->y - 8 * im->by0[0]) * v.luma_pitch + (v.x - 8 * im->bx0[0]);
    v.rgb = work + im->rgb;
    v.rgb_pitch = im->rgb_pitch;
    v.rgb_size = (uint64_t)im->rgb_pitch * im->height;
    v.grey = im->components == 1;
    v.tall = im->v == 2;
    v.fancy = im->h == 2 && im->smooth;
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

/* Chroma of four pixels of row y, the first of which, x, is a multiple of 4, where it has half the columns.
 * Pixels outside of the region get values that nothing uses: reads stay inside the plane. */
DEVICE void chroma_four(const chroma_view *k, uint32_t tall, uint32_t x, uint32_t y, int32_t out[4])
{
    const uint32_t cx = x / 2, cy = tall ? y / 2 : y;
    const uint32_t far_y = !tall ? cy : y & 1 ? least(cy + 1, k->last) : cy - (cy > 0);
    const uint8_t *const near = k->plane + (uint64_t)cy * k->pitch;
    const uint8_t *const far = k->plane + (uint64_t)far_y * k->pitch;
    int32_t s[4];
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = cx + i > k->lo ? least(cx + i - 1, k->hi) : k->lo;
        s[i] = tall ? 3 * near[at] + far[at] : near[at];
    }
    const int32_t shift = tall ? 4 : 2, even = tall ? 8 : 1, odd = tall ? 7 : 2;
    out[0] = (3 * s[1] + s[0] + even) >> shift;
    out[1] = (3 * s[1] + s[2] + odd) >> shift;
    out[2] = (3 * s[2] + s[1] + even) >> shift;
    out[3] = (3 * s[2] + s[3] + odd) >> shift;
}

/* The same for the samplings that are rare. */
DEVICE void chroma_each(const leat_job_image *im, const uint8_t *work, uint32_t c, uint32_t x, uint32_t y,
                        int32_t out[4])
{
    const uint32_t end = im->x + im->width - 1;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = x + i < im->x ? im->x : x + i;
        out[i] = chroma_at(im, work, c, at < end ? at : end, y);
    }
}

/* Four pixels into the RGB planes, from `at` of row y on, a multiple of 4: the region begins `lead` pixels
 * behind the plane's. Grey has one plane. */
DEVICE void colour_four(const leat_job_image *im, const colour_view *p, const uint8_t *work, uint32_t at,
                        uint32_t y)
{
    uint8_t *const out = p->rgb + (uint64_t)y * p->rgb_pitch + at;
    const uint32_t luma = *(const uint32_t *)(const void *)(p->luma + (uint64_t)y * p->luma_pitch + at);
    int32_t u[4], v[4], r[4], g[4], b[4];
    if (p->grey) {
        *(uint32_t *)(void *)out = luma;
        return;
    }
    if (p->fancy) {
        chroma_four(&p->chroma[0], p->tall, p->x + at, p->y + y, u);
        chroma_four(&p->chroma[1], p->tall, p->x + at, p->y + y, v);
    } else {
        chroma_each(im, work, 1, p->x + at, p->y + y, u);
        chroma_each(im, work, 2, p->x + at, p->y + y, v);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        const int32_t l = (int32_t)(luma >> 8 * i & 255), cb = u[i] - 128, cr = v[i] - 128;
        r[i] = l + ((91881 * cr + 32768) >> 16);
        g[i] = l + ((-22554 * cb - 46802 * cr + 32768) >> 16);
        b[i] = l + ((116130 * cb + 32768) >> 16);
    }
    *(uint32_t *)(void *)out = pack_four(r[0], r[1], r[2], r[3]);
    *(uint32_t *)(void *)(out + p->rgb_size) = pack_four(g[0], g[1], g[2], g[3]);
    *(uint32_t *)(void *)(out + 2 * p->rgb_size) = pack_four(b[0], b[1], b[2], b[3]);
}

/* ---- the two passes ---- */

DEVICE uint32_t plane_count(const leat_job_image *im)
{
    return im->components == 1 ? 1 : 3;
}

/* Output j along a row of all planes, which are `size` bytes apart. */
DEVICE void resample_along(const leat_job_axis *a, const axis_view *v, uint32_t j, const uint8_t *in,
                           uint64_t size, uint32_t planes, uint8_t out[3])
{
    const uint32_t taps = v->taps_of[j];
    int32_t sum[3] = {1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1)};
    in += v->first[j];
    for (uint32_t t = 0; t < taps; t++) {
        const int32_t w = v->weight[t * a->count + j];
        sum[0] += in[t] * w;
        if (planes == 1) continue;
        sum[1] += in[size + t] * w;
        sum[2] += in[2 * size + t] * w;
    }
    UNROLL
    for (int c = 0; c < 3; c++) out[c] = clamp8(sum[c] >> RESIZE_BITS);
}

/* Output j down four columns side by side, whose rows are `pitch` bytes apart: four bytes. */
DEVICE uint32_t resample_down(const leat_job_axis *a, const axis_view *v, uint32_t j, const uint8_t *in,
                              uint32_t pitch)
{
    const uint32_t taps = v->taps_of[j];
    int32_t sum[4] = {1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1), 1 << (RESIZE_BITS - 1),
                      1 << (RESIZE_BITS - 1)};
    uint32_t out = 0;
    in += (uint64_t)v->first[j] * pitch;
    for (uint32_t t = 0; t < taps; t++, in += pitch) {
        const int32_t w = v->weight[t * a->count + j];
        const uint32_t four = *(const uint32_t *)(const void *)in;
        UNROLL
        for (int i = 0; i < 4; i++) sum[i] += (int32_t)(four >> 8 * i & 255) * w;
    }
    UNROLL
    for (int i = 0; i < 4; i++) out |= (uint32_t)clamp8(sum[i] >> RESIZE_BITS) << 8 * i;
    return out;
}

/* What lies between the passes, horizontal first: pixel (x, y). */
DEVICE void first_pixel(const leat_job_image *im, uint8_t *work, uint32_t x, uint32_t y)
{
    const uint64_t size = (uint64_t)im->rgb_pitch * im->height;
    const uint64_t mid_size = (uint64_t)im->mid_pitch * im->mid_rows;
    const axis_view v = view_axis(&im->ax, work);
    uint8_t *const out = work + im->mid + (uint64_t)y * im->mid_pitch + x;
    uint8_t value[3];
    resample_along(&im->ax, &v, x, work + im->rgb + im->lead + (uint64_t)y * im->rgb_pitch, size,
                   plane_count(im), value);
    out[0] = value[0];
    if (im->components == 1) return;
    out[mid_size] = value[1];
    out[2 * mid_size] = value[2];
}

/* The same, vertical first: four pixels from (x, y) on, `lead` as in the RGB planes. Rows have padding. */
DEVICE void first_four(const leat_job_image *im, uint8_t *work, uint32_t x, uint32_t y)
{
    const uint64_t size = (uint64_t)im->rgb_pitch * im->height;
    const uint64_t mid_size = (uint64_t)im->mid_pitch * im->mid_rows;
    const axis_view v = view_axis(&im->ay, work);
    uint8_t *const out = work + im->mid + (uint64_t)y * im->mid_pitch + x;
    for (uint32_t c = 0; c < plane_count(im); c++)
        *(uint32_t *)(void *)(out + c * mid_size) =
            resample_down(&im->ay, &v, y, work + im->rgb + c * size + x, im->rgb_pitch);
}

DEVICE void put_value(const leat_job_output *o, uint64_t index, uint32_t bits)
{
    uint8_t *const data = (uint8_t *)o->data;
    if (o->dtype == LEAT_JOB_U8) data[index] = (uint8_t)bits;
    else if (o->dtype == LEAT_JOB_F32) ((uint32_t *)(void *)data)[index] = bits;
    else ((uint16_t *)(void *)data)[index] = (uint16_t)bits;
}

/* Value of pixel (x, y), channel c, into the batch. */
DEVICE void put_pixel(const leat_job_image *im, const leat_job_output *o, uint32_t x, uint32_t y, uint32_t c,
                      uint32_t value)
{
    const uint64_t area = (uint64_t)o->width * o->height, pixel = (uint64_t)y * o->width + x;
    uint32_t bits = o->dtype == LEAT_JOB_U8    ? value
                    : o->dtype == LEAT_JOB_F32 ? o->f32[c][value]
                                               : o->f16[c][value];
    if (im->erase && x - im->erase_x < im->erase_width && y - im->erase_y < im->erase_height)
        bits = im->erase_bits[c];
    put_value(o, im->row * area * o->channels + (o->nhwc ? pixel * o->channels + c : c * area + pixel), bits);
}

/* The second pass, horizontal: pixel (x, y) of the image. */
DEVICE void second_pixel(const leat_job_image *im, const leat_job_output *o, uint8_t *work, uint32_t x,
                         uint32_t y)
{
    const uint64_t mid_size = (uint64_t)im->mid_pitch * im->mid_rows;
    const axis_view v = view_axis(&im->ax, work);
    uint8_t value[3];
    resample_along(&im->ax, &v, x, work + im->mid + im->lead + (uint64_t)y * im->mid_pitch, mid_size,
                   plane_count(im), value);
    for (uint32_t c = 0; c < o->channels; c++)
        put_pixel(im, o, x, y, c, c == 0 || im->components == 1 ? value[0] : c == 1 ? value[1] : value[2]);
}

/* Four pixels of three channels, 12 bytes, next to each other. */
DEVICE void put_twelve(uint8_t *out, const uint32_t four[3])
{
    const uint32_t r = four[0], g = four[1], b = four[2];
    uint32_t *const word = (uint32_t *)(void *)out;
    word[0] = (r & 255) | (g & 255) << 8 | (b & 255) << 16 | (r >> 8 & 255) << 24;
    word[1] = (g >> 8 & 255) | (b >> 8 & 255) << 8 | (r >> 16 & 255) << 16 | (g >> 16 & 255) << 24;
    word[2] = (b >> 16 & 255) | (r >> 24) << 8 | (g >> 24) << 16 | (b >> 24) << 24;
}

/* The second pass, vertical: four pixels from (x, y) on, as far as the row goes. */
DEVICE void second_four(const leat_job_image *im, const leat_job_output *o, uint8_t *work, uint32_t x,
                        uint32_t y)
{
    const uint64_t mid_size = (uint64_t)im->mid_pitch * im->mid_rows, area = (uint64_t)o->width * o->height;
    const axis_view v = view_axis(&im->ay, work);
    const bool whole = o->dtype == LEAT_JOB_U8 && o->width % 4 == 0 && !im->erase;
    const uint64_t pixel = (uint64_t)y * o->width + x;
    uint32_t four[3];
    UNROLL
    for (uint32_t c = 0; c < 3; c++)
        four[c] = c > 0 && c >= plane_count(im)
                      ? four[0]
                      : resample_down(&im->ay, &v, y, work + im->mid + c * mid_size + x, im->mid_pitch);
    if (whole && o->nhwc && o->channels == 3) {
        put_twelve((uint8_t *)o->data + 3 * (im->row * area + pixel), four);
        return;
    }
    UNROLL
    for (uint32_t c = 0; c < 3; c++) {
        if (c >= o->channels) break;
        if (whole && !o->nhwc) {
            *(uint32_t *)(o->data + (im->row * o->channels + c) * area + pixel) = four[c];
            continue;
        }
        for (uint32_t i = 0; i < 4 && x + i < o->width; i++)
            put_pixel(im, o, x + i, y, c, four[c] >> 8 * i & 255);
    }
}
