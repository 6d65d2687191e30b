/* SPDX-License-Identifier: Apache-2.0
 *
 * See view_thumb.h. Small images are made by the op Resize with like=fast: inverse transforms of 1, 2 or 4
 * instead of 8 samples per side where that is enough.
 */
#include "view/view_thumb.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "codec/tile/tile.h"
#include "op/pipeline.h"

#define QUALITY 85u
#define WHOLE_SIDE 4096u /* largest side of an image that is re-encoded because browsers cannot show it */

typedef struct maker {
    struct maker *next;
    leat_sample *sample;
    leat__pipeline_worker *worker;
    leat__planes planes;
} maker;

struct leat__view_thumbs {
    leat_pack *pack;
    uint32_t field;
    leat__tile_tables *tables;
    leat__mutex lock;
    maker *idle; /* guarded by the lock */
};

int leat__view_thumbs_open(leat__view_thumbs **out, leat_pack *pack, uint32_t field, leat_error *err)
{
    const void *blob;
    size_t size;
    *out = NULL;
    leat__view_thumbs *t = LEAT_NEW(MISC, leat__view_thumbs);
    if (!t) return leat__fail_nomem(err, sizeof *t, "thumbnails");
    t->pack = pack;
    t->field = field;
    leat__mutex_init(&t->lock);
    int rc = leat_pack_blob(pack, "tile-tables", &blob, &size, err);
    if (rc == 0) rc = leat__tile_tables_open(&t->tables, blob, size, err);
    if (rc == LEAT_ENOENT) rc = 0;
    if (rc != 0) leat__view_thumbs_close(&t);
    *out = t;
    return rc;
}

static void close_maker(maker *m)
{
    leat__pipeline_worker_close(&m->worker);
    leat_sample_close(&m->sample);
    leat__planes_reset(&m->planes);
    leat__free(m);
}

void leat__view_thumbs_close(leat__view_thumbs **thumbs)
{
    leat__view_thumbs *t = *thumbs;
    if (!t) return;
    while (t->idle) {
        maker *m = t->idle;
        t->idle = m->next;
        close_maker(m);
    }
    leat__tile_tables_close(&t->tables);
    leat__mutex_destroy(&t->lock);
    leat__free(t);
    *thumbs = NULL;
}

static int borrow(leat__view_thumbs *t, maker **out, leat_error *err)
{
    leat__mutex_lock(&t->lock);
    maker *m = t->idle;
    if (m) t->idle = m->next;
    leat__mutex_unlock(&t->lock);
    *out = m;
    if (m) return 0;
    m = LEAT_NEW(MISC, maker);
    if (!m) return leat__fail_nomem(err, sizeof *m, "a decoder");
    int rc = leat_sample_open(&m->sample, t->pack, err);
    if (rc == 0) rc = leat__pipeline_worker_open(&m->worker, err);
    if (rc == 0) *out = m;
    else close_maker(m);
    return rc;
}

static void give_back(leat__view_thumbs *t, maker *m)
{
    if (!m) return;
    leat__mutex_lock(&t->lock);
    m->next = t->idle;
    t->idle = m;
    leat__mutex_unlock(&t->lock);
}

/* ---- small images ---- */

/* Computes the width and height of an image that fits a square of `side`; never enlarges. */
static void fit(uint32_t side, uint32_t *width, uint32_t *height)
{
    const double scale = LEAT_MIN(1.0, (double)side / LEAT_MAX(*width, *height));
    *width = LEAT_MAX((uint32_t)lround(*width * scale), 1u);
    *height = LEAT_MAX((uint32_t)lround(*height * scale), 1u);
}

static int run_ops(const leat__view_thumbs *t, maker *m, const leat_view *v, const leat__image_info *info,
                   uint32_t width, uint32_t height, void *out, leat_error *err)
{
    char ops[128];
    leat__pipeline *p = NULL;
    const leat__draw_key key = {0};
    const bool wide = leat__image_wide(info);
    snprintf(ops, sizeof ops,
             wide ? "Resize((%u, %u)); ToDtype(f32); ToLayout(nhwc)"
                  : "Resize((%u, %u), like=fast); ToLayout(nhwc)",
             height, width);
    leat__pipeline_opts o = {.ops = ops};
    if (wide) o.kind = (leat__pixel_kind){.type = info->type, .channels = info->channels};
    const leat__encoded image = {.info = info,
                                 .data = v->data,
                                 .len = v->size,
                                 .tables = t->tables,
                                 .entries = v->entries,
                                 .entries_len = v->entries_size,
                                 .orientation = v->image.orientation};
    LEAT_TRY(leat__pipeline_open(&p, &o, err));
    int rc = leat__pipeline_run(p, m->worker, &image, &key, out, err);
    leat__pipeline_close(&p);
    return rc;
}

/* Scales the first three channels (or the first) from their least to their greatest value. */
static void show_floats(const float *from, size_t pixels, uint32_t channels, uint8_t *to)
{
    const uint32_t shown = channels >= 3 ? 3 : 1;
    float lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < pixels; i++)
        for (uint32_t c = 0; c < shown; c++) {
            const float v = from[i * channels + c];
            if (!isfinite(v)) continue;
            lo = fminf(lo, v);
            hi = fmaxf(hi, v);
        }
    for (size_t i = 0; i < pixels; i++)
        for (uint32_t c = 0; c < 3; c++) {
            const float v = (from[i * channels + (shown == 3 ? c : 0)] - lo) / (hi > lo ? hi - lo : 1);
            to[3 * i + c] = v > 0 ? (uint8_t)lrintf(255 * fminf(v, 1)) : 0; /* NaN is black */
        }
}

static int make_pixels(const leat__view_thumbs *t, maker *m, const leat_view *v, uint32_t side,
                       uint8_t **pixels, uint32_t *width, uint32_t *height, leat_error *err)
{
    leat__image_info info;
    float *floats = NULL;
    LEAT_TRY(leat__codec_probe((leat__codec_id)v->image.codec, v->data, v->size, &info, err));
    const bool turned = v->image.orientation >= 5, wide = leat__image_wide(&info);
    *width = turned ? info.height : info.width;
    *height = turned ? info.width : info.height;
    fit(side, width, height);
    const size_t count = (size_t)*width * *height;
    uint8_t *rgb = leat__alloc_array(LEAT__MEM_MISC, count, 3);
    if (wide && rgb) floats = leat__alloc_array(LEAT__MEM_MISC, count * info.channels, sizeof *floats);
    int rc = rgb && (floats || !wide) ? 0 : leat__fail_nomem(err, count * 3, "a thumbnail");
    if (rc == 0) rc = run_ops(t, m, v, &info, *width, *height, wide ? (void *)floats : rgb, err);
    if (rc == 0 && wide) show_floats(floats, count, info.channels, rgb);
    leat__free(floats);
    if (rc == 0) *pixels = rgb;
    else leat__free(rgb);
    return rc;
}

static int read_row(const leat__view_thumbs *t, maker *m, uint64_t row, leat_view *v, leat_error *err)
{
    LEAT_TRY(leat_sample_read(m->sample, row, err));
    LEAT_TRY(leat_sample_field(m->sample, t->field, v, err));
    return v->data ? 0 : leat__fail(err, LEAT_ENOENT, "row %llu has no image", (unsigned long long)row);
}

int leat__view_thumb_pixels(leat__view_thumbs *t, uint64_t row, uint32_t side, uint8_t **pixels,
                            uint32_t *width, uint32_t *height, leat_error *err)
{
    maker *m = NULL;
    leat_view v;
    LEAT_TRY(borrow(t, &m, err));
    int rc = read_row(t, m, row, &v, err);
    if (rc == 0) rc = make_pixels(t, m, &v, side, pixels, width, height, err);
    give_back(t, m);
    return rc;
}

static int encode(maker *m, const uint8_t *rgb, uint32_t width, uint32_t height, leat__buf *out,
                  leat_error *err)
{
    const leat__encode_opts o = {.quality = QUALITY, .plain_tables = true};
    LEAT_TRY(leat__planes_resize(&m->planes, width, height, 3, err));
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                m->planes.plane[c][y * m->planes.stride + x] = rgb[((size_t)y * width + x) * 3 + (size_t)c];
    return leat__codec_encode(LEAT__CODEC_JPEG, &m->planes, &o, out, err);
}

static int make_jpeg(const leat__view_thumbs *t, maker *m, const leat_view *v, uint32_t side, leat__buf *out,
                     leat_error *err)
{
    uint8_t *rgb = NULL;
    uint32_t width, height;
    LEAT_TRY(make_pixels(t, m, v, side, &rgb, &width, &height, err));
    int rc = encode(m, rgb, width, height, out, err);
    leat__free(rgb);
    return rc;
}

int leat__view_thumb(leat__view_thumbs *t, uint64_t row, uint32_t side, leat__buf *out, leat_error *err)
{
    maker *m = NULL;
    leat_view v;
    LEAT_TRY(borrow(t, &m, err));
    int rc = read_row(t, m, row, &v, err);
    if (rc == 0) rc = make_jpeg(t, m, &v, side, out, err);
    give_back(t, m);
    return rc;
}

/* ---- whole images ---- */

int leat__view_image(leat__view_thumbs *t, uint64_t row, leat__buf *out, const char **type, leat_error *err)
{
    maker *m = NULL;
    leat_view v;
    LEAT_TRY(borrow(t, &m, err));
    int rc = read_row(t, m, row, &v, err);
    *type = rc == 0 ? leat__codec_facts_of((leat__codec_id)v.image.codec)->media : NULL;
    if (rc != 0) {
    } else if (!*type) {
        *type = "image/jpeg";
        rc = make_jpeg(t, m, &v, WHOLE_SIDE, out, err);
    } else if (v.image.codec == LEAT__CODEC_TILE) {
        rc = leat__tile_restore(v.data, v.size, t->tables, out, err);
    } else {
        rc = leat__buf_append(out, v.data, v.size);
        if (rc != 0) leat__fail(err, rc, "row %llu: the image is too large to send", (unsigned long long)row);
    }
    give_back(t, m);
    return rc;
}
