/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a recipe on an image: decodes the region the head needs, streams it through the resize, runs the
 * other steps, writes the sample. Owns the worker; one thread each.
 *
 *   source (codec or pixels) -> head -> [image -> steps -> head …] -> writer -> batch
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/resizer.h"
#include "dsp/ycc_resizer.h"
#include "op/apply.h"
#include "op/compiled.h"
#include "op/head.h"
#include "op/transpose.h"
#include "op/writer.h"

struct leat__pipeline_worker {
    leat__decoder *decoder;
    leat__resizer *resizer;
    leat__ycc_resizer *fast;
    leat__workspace pixels;
    leat__planes decoded; /* a whole decoded region: for rotated images and several views */
    leat__planes turned;
    leat__wide_workspace wide;
    leat__writer writer;
    leat__output_spec spec; /* of the sample being written */
    leat__recipe recipe;
};

int leat__pipeline_worker_open(leat__pipeline_worker **out, leat_error *err)
{
    leat__pipeline_worker *w = LEAT_NEW(OP, leat__pipeline_worker);
    int rc = 0;
    *out = NULL;
    if (!w) return leat__fail_nomem(err, sizeof *w, "a pipeline worker");
    LEAT_GO(rc, out, leat__decoder_open(&w->decoder, err));
    LEAT_GO(rc, out, leat__resizer_open(&w->resizer, err));
    LEAT_GO(rc, out, leat__ycc_resizer_open(&w->fast, err));
    *out = w;
    w = NULL;
out:
    leat__pipeline_worker_close(&w);
    return rc;
}

void leat__pipeline_worker_close(leat__pipeline_worker **pw)
{
    leat__pipeline_worker *w = *pw;
    if (!w) return;
    leat__decoder_close(&w->decoder);
    leat__resizer_close(&w->resizer);
    leat__ycc_resizer_close(&w->fast);
    leat__workspace_reset(&w->pixels);
    leat__wide_workspace_reset(&w->wide);
    leat__planes_reset(&w->decoded);
    leat__planes_reset(&w->turned);
    leat__writer_reset(&w->writer);
    leat__free(w);
    *pw = NULL;
}

/* ---- sources of pixels ---- */

typedef struct region {
    uint32_t x, y, width, height;
} region;

/* The source of pixels: an encoded image, or decoded pixels whose first is (x, y) of the image. Width and
 * height are those of the whole image with rows and columns in display order, before mirroring. */
typedef struct source {
    const leat__encoded *encoded;
    const leat__planes *pixels;
    uint32_t x, y;
    uint32_t width, height;
    uint32_t orientation; /* the part not yet applied: mirroring becomes part of the axes */
    uint32_t planes;      /* 1 or 3 */
} source;

static bool is_turned(uint32_t orientation)
{
    return orientation >= 5 && orientation <= 8;
}

static source source_of(const leat__encoded *e)
{
    const uint32_t o = e->orientation >= 1 && e->orientation <= 8 ? e->orientation : 1;
    const leat__image_info *const i = e->info;
    return (source){.encoded = e,
                    .width = is_turned(o) ? i->height : i->width,
                    .height = is_turned(o) ? i->width : i->height,
                    .orientation = o,
                    .planes = i->channels >= 3 ? 3 : 1};
}

static source source_of_pixels(const leat__planes *im)
{
    return (source){.pixels = im,
                    .width = im->width,
                    .height = im->height,
                    .orientation = 1,
                    .planes = im->channels >= 3 ? 3 : 1};
}

static leat__decode_request request_for(const leat__encoded *e, region r)
{
    return (leat__decode_request){.x = r.x,
                                  .y = r.y,
                                  .width = r.width,
                                  .height = r.height,
                                  .tables = e->tables,
                                  .limits = e->limits,
                                  .entries = e->entries,
                                  .entries_len = e->entries_len};
}

static int rows_to_resizer(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4],
                           size_t stride)
{
    return leat__resizer_rows(ctx, y, count, plane, stride);
}

/* Decodes a region (in display order) into w->decoded, which then replaces the source. */
static int hold(leat__pipeline_worker *w, source *s, region r, leat_error *err)
{
    const bool turned = is_turned(s->orientation);
    leat__planes *const im = turned ? &w->turned : &w->decoded;
    const region stored = turned ? (region){r.y, r.x, r.height, r.width} : r;
    const leat__encoded *const e = s->encoded;
    const leat__decode_request request = request_for(e, stored);
    LEAT_TRY(leat__codec_decode_planes(w->decoder, e->info, e->data, e->len, &request, im, err));
    if (turned) LEAT_TRY(leat__planes_transpose(&w->turned, &w->decoded, err));
    s->encoded = NULL;
    s->pixels = &w->decoded;
    s->x = r.x;
    s->y = r.y;
    return 0;
}

/* Feeds the region to the resizer, which must have been started. */
static int feed(leat__pipeline_worker *w, source *s, region r, leat_error *err)
{
    if (s->encoded && is_turned(s->orientation)) LEAT_TRY(hold(w, s, r, err));
    if (s->encoded) {
        const leat__encoded *const e = s->encoded;
        const leat__row_sink sink = {rows_to_resizer, w->resizer};
        const leat__decode_request request = request_for(e, r);
        LEAT_TRY(leat__codec_decode(w->decoder, e->info, e->data, e->len, &request, &sink, err));
    } else {
        const uint8_t *plane[4] = {0};
        for (uint32_t c = 0; c < s->planes; c++)
            plane[c] = leat__planes_row(s->pixels, c, r.y - s->y) + (r.x - s->x);
        LEAT_TRY(leat__resizer_rows(w->resizer, 0, r.height, plane, s->pixels->stride));
    }
    if (!leat__resizer_finished(w->resizer))
        return leat__fail(err, LEAT_EINTERNAL, "the decoder delivered too few rows");
    return 0;
}

/* ---- destinations of rows ---- */

static uint8_t *image_target(void *ctx, uint32_t y, uint32_t plane)
{
    return leat__planes_row(ctx, plane, y);
}

/* Steps work on three planes: grey sources fill all of them. */
static int image_done(void *ctx, uint32_t y)
{
    return 0;
}

static int grey_done(void *ctx, uint32_t y)
{
    leat__planes *const im = ctx;
    for (uint32_t c = 1; c < im->channels; c++)
        memcpy(leat__planes_row(im, c, y), leat__planes_row(im, 0, y), im->width);
    return 0;
}

static int plan_head(leat__pipeline_worker *w, const source *s, leat__head *h, region *r, leat_error *err)
{
    leat__resize_need need;
    leat__head_orient(h, s->width, s->height, s->orientation);
    LEAT_TRY(leat__resizer_plan(w->resizer, &h->ax, &h->ay, h->order, &need, err));
    *r = (region){h->x + need.x, h->y + need.y, need.width, need.height};
    return 0;
}

static int part_to_resizer(void *ctx, uint32_t c, uint32_t count, const uint8_t *rows, size_t stride)
{
    leat__ycc_resizer_rows(ctx, c, count, rows, stride);
    return 0;
}

/* like=fast: resizes each component, then converts colours. Returns 0 with *done = false and nothing written
 * when the image has no components, is rotated, or has no fast resize of this size. */
static int run_fast(leat__pipeline_worker *w, const source *s, const leat__head *head,
                    const leat__resize_out *out, bool *done, leat_error *err)
{
    const leat__encoded *const e = s->encoded;
    leat__head h = *head;
    leat__ycc_part part[3];
    *done = false;
    if (h.order != LEAT__PASS_FAST || !e || e->info->chroma_h == 0 || is_turned(s->orientation)) return 0;
    const leat__ycc_grid grid = {e->info->channels, e->info->chroma_h, e->info->chroma_v};
    bool fits;
    leat__head_orient(&h, s->width, s->height, s->orientation);
    LEAT_TRY(leat__ycc_resizer_plan(w->fast, &grid, h.x, h.y, &h.ax, &h.ay, part, &fits, err));
    if (!fits) return 0;
    const leat__row_sink sink = {.part = part_to_resizer, .ctx = w->fast};
    leat__decode_request request = request_for(e, (region){0});
    request.parts = part;
    const int rc = leat__codec_decode(w->decoder, e->info, e->data, e->len, &request, &sink, err);
    if (rc == LEAT_ENOTSUP) return 0;
    if (rc != 0) return rc;
    *done = true;
    return leat__ycc_resizer_finish(w->fast, out);
}

static int run_head(leat__pipeline_worker *w, source *s, leat__head *h, uint32_t planes,
                    const leat__resize_out *out, leat_error *err)
{
    bool done;
    region r;
    LEAT_TRY(run_fast(w, s, h, out, &done, err));
    if (done) return 0;
    LEAT_TRY(plan_head(w, s, h, &r, err));
    LEAT_TRY(leat__resizer_begin(w->resizer, planes, out, err));
    return feed(w, s, r, err);
}

/* Makes the head's result the image in flight. If that image is also the source, the spare one is used: so
 * steps that work in place need only one image. */
static int head_to_image(leat__pipeline_worker *w, source *s, leat__head *h, uint32_t channels,
                         leat_error *err)
{
    const bool again = !s->encoded && s->pixels == &w->pixels.image;
    leat__planes *const im = again ? &w->pixels.spare : &w->pixels.image;
    const uint32_t planes = LEAT_MIN(s->planes, channels);
    const leat__resize_out out = {image_target, planes < channels ? grey_done : image_done, im};
    LEAT_TRY(leat__planes_resize(im, h->ax.count, h->ay.count, channels, err));
    LEAT_TRY(run_head(w, s, h, planes, &out, err));
    if (again) leat__planes_swap(&w->pixels.image, &w->pixels.spare);
    return 0;
}

/* Computes the source pixel of each output pixel of an axis, as torch's nearest interpolation does: positions
 * are scaled in float and truncated. */
static void nearest_axis(const leat__axis_request *a, uint32_t *at)
{
    const float scale = (float)a->in / (float)a->out;
    for (uint32_t i = 0; i < a->count; i++) {
        const uint32_t o = a->from + (a->mirror_out ? a->count - 1 - i : i);
        uint32_t s = a->in == a->out ? o : (uint32_t)((float)o * scale);
        s = LEAT_MIN(s, a->in - 1);
        at[i] = a->mirror_in ? a->in - 1 - s : s;
    }
}

/* Makes the head's result the image in flight, for a mask: pixels are selected, never interpolated. */
static int head_to_mask(leat__pipeline_worker *w, source *s, leat__head *h, leat_error *err)
{
    leat__planes *const im = &w->pixels.spare;
    leat__head_orient(h, s->width, s->height, s->orientation);
    if (s->encoded) LEAT_TRY(hold(w, s, (region){h->x, h->y, h->width, h->height}, err));
    LEAT_TRY(leat__planes_resize(im, h->ax.count, h->ay.count, 1, err));
    const size_t count = (size_t)h->ax.count + h->ay.count;
    uint32_t *const at = leat__work_fit(&w->pixels.work, count * sizeof *at, err);
    if (!at) return LEAT_ENOMEM;
    nearest_axis(&h->ax, at);
    nearest_axis(&h->ay, at + h->ax.count);
    for (uint32_t y = 0; y < h->ay.count; y++) {
        const uint8_t *const src =
            leat__planes_row(s->pixels, 0, h->y + at[h->ax.count + y] - s->y) + (h->x - s->x);
        uint8_t *const dst = leat__planes_row(im, 0, y);
        for (uint32_t x = 0; x < h->ax.count; x++) dst[x] = src[at[x]];
    }
    leat__planes_swap(&w->pixels.image, &w->pixels.spare);
    return 0;
}

static int head_to_batch(leat__pipeline_worker *w, source *s, leat__head *h, leat_error *err)
{
    const leat__resize_out out = leat__writer_rows(&w->writer);
    w->writer.planes = s->planes;
    return run_head(w, s, h, s->planes, &out, err);
}

/* Returns the number of steps on pixels; steps that erase the output follow them. */
static uint32_t pixel_steps(const leat__recipe *r)
{
    uint32_t n = 0;
    while (n < r->count && r->step[n].kind != LEAT__STEP_ERASE_OUT) n++;
    return n;
}

/* Runs all steps. Sets *in_batch when the last head wrote into the batch; else the result is the image in
 * flight. mask: nearest, one channel, never into the batch. */
static int run_steps(leat__pipeline_worker *w, source s, bool mask, bool *in_batch, leat_error *err)
{
    const leat__recipe *const r = &w->recipe;
    const uint32_t count = pixel_steps(r);
    uint32_t i = 0;
    *in_batch = false;
    for (;;) {
        leat__head h;
        leat__head_fuse(&h, r, i, s.width, s.height);
        i += h.steps;
        if (i == count && !mask) {
            *in_batch = true;
            return head_to_batch(w, &s, &h, err);
        }
        LEAT_TRY(mask ? head_to_mask(w, &s, &h, err) : head_to_image(w, &s, &h, 3, err));
        while (i < count && !leat__head_takes(r->step[i].kind))
            LEAT_TRY(leat__step_apply(&w->pixels, &r->step[i++], mask, err));
        if (i == count) return 0;
        s = source_of_pixels(&w->pixels.image);
    }
}

static int run_drawn(const leat__pipeline *p, leat__pipeline_worker *w, source s, void *out, leat_error *err)
{
    bool in_batch;
    w->spec = leat__pipeline_output_of(p, w->recipe.width, w->recipe.height);
    LEAT_TRY(leat__writer_begin(&w->writer, &w->spec, p->norm, out, err));
    LEAT_TRY(run_steps(w, s, false, &in_batch, err));
    if (!in_batch) leat__writer_image(&w->writer, &w->pixels.image);
    for (uint32_t i = pixel_steps(&w->recipe); i < w->recipe.count; i++)
        leat__writer_erase(&w->writer, &w->recipe.step[i]);
    return 0;
}

/* ---- wide images ---- */

/* Decodes a wide image. If the first step is a crop, only that region is decoded, unless EXIF rotates or
 * mirrors the image. */
static int load_wide(leat__pipeline_worker *w, const leat__encoded *e, bool *cropped, leat_error *err)
{
    const leat__step *const s = &w->recipe.step[0];
    const bool turned = e->orientation >= 2 && e->orientation <= 8;
    region r = {0};
    *cropped = !turned && w->recipe.count > 0 && s->kind == LEAT__STEP_CROP;
    if (*cropped) r = (region){(uint32_t)s->x, (uint32_t)s->y, s->width, s->height};
    const leat__decode_request request = request_for(e, r);
    leat__wide *const to = turned ? &w->wide.spare : &w->wide.image;
    LEAT_TRY(leat__codec_decode_wide(w->decoder, e->info, e->data, e->len, &request, to, err));
    return turned ? leat__wide_turn(&w->wide.spare, e->orientation, &w->wide.image, err) : 0;
}

static int run_wide(const leat__pipeline *p, leat__pipeline_worker *w, const leat__encoded *e, void *out,
                    leat_error *err)
{
    const leat__recipe *const r = &w->recipe;
    const uint32_t count = pixel_steps(r);
    bool cropped;
    LEAT_TRY(load_wide(w, e, &cropped, err));
    for (uint32_t i = cropped; i < count; i++) LEAT_TRY(leat__wide_apply(&w->wide, &r->step[i], err));
    w->spec = leat__pipeline_output_of(p, r->width, r->height);
    leat__wide_write(&w->wide.image, &p->wide_norm, &w->spec, out);
    for (uint32_t i = count; i < r->count; i++) leat__wide_erase_out(&w->spec, &r->step[i], out);
    return 0;
}

static int run_wide_view(const leat__pipeline *p, leat__pipeline_worker *w, const source *s,
                         const leat__draw_key *key, uint8_t *out, leat_error *err)
{
    const uint32_t crops = LEAT_MAX(p->output.crops, 1u);
    leat__draw_key k = *key;
    for (k.crop = 0; k.crop < crops; k.crop++) {
        LEAT_TRY(leat__pipeline_draw(p, &k, s->width, s->height, &w->recipe, err));
        LEAT_TRY(run_wide(p, w, s->encoded, out + k.crop * (p->output.bytes / crops), err));
    }
    return 0;
}

/* "uint16 with 5 channels" */
static const char *kind_text(leat__pixel_kind kind, char text[64])
{
    if (kind.channels == 0) return "8-bit images of 1, 3 or 4 channels";
    snprintf(text, 64, "%s with %u channel%s", leat__sample_name(kind.type), kind.channels,
             kind.channels == 1 ? "" : "s");
    return text;
}

/* Checks that an image has the pixel kind of the pipeline, which is that of the field's first image. */
static int check_kind(const leat__pipeline *p, const leat__image_info *info, leat_error *err)
{
    const leat__pixel_kind own =
        leat__image_wide(info) ? (leat__pixel_kind){info->type, info->channels} : (leat__pixel_kind){0};
    char text[2][64];
    if (own.type == p->kind.type && own.channels == p->kind.channels) return 0;
    return leat__fail(err, LEAT_EDATA, "an image of %s in a field of %s",
                      kind_text((leat__pixel_kind){info->type, info->channels}, text[0]),
                      kind_text(p->kind, text[1]));
}

/* ---- several views ---- */

static region unite(region a, region b)
{
    if (a.width == 0) return b;
    const uint32_t x1 = LEAT_MAX(a.x + a.width, b.x + b.width);
    const uint32_t y1 = LEAT_MAX(a.y + a.height, b.y + b.height);
    const uint32_t x = LEAT_MIN(a.x, b.x), y = LEAT_MIN(a.y, b.y);
    return (region){x, y, x1 - x, y1 - y};
}

/* Adds the regions that the crops of a view need to the union *all, and the pixels of each region to
 * *apart. */
static int plan_view(const leat__pipeline *p, leat__pipeline_worker *w, const source *s,
                     const leat__draw_key *key, region *all, uint64_t *apart, leat_error *err)
{
    leat__draw_key k = *key;
    for (k.crop = 0; k.crop < LEAT_MAX(p->output.crops, 1u); k.crop++) {
        leat__head h;
        region r;
        LEAT_TRY(leat__pipeline_draw(p, &k, s->width, s->height, &w->recipe, err));
        leat__head_fuse(&h, &w->recipe, 0, s->width, s->height);
        LEAT_TRY(plan_head(w, s, &h, &r, err));
        *all = unite(*all, r);
        *apart += (uint64_t)r.width * r.height;
    }
    return 0;
}

static int run_view(const leat__pipeline *p, leat__pipeline_worker *w, const source *s,
                    const leat__draw_key *key, uint8_t *out, leat_error *err)
{
    const uint32_t crops = LEAT_MAX(p->output.crops, 1u);
    leat__draw_key k = *key;
    for (k.crop = 0; k.crop < crops; k.crop++) {
        LEAT_TRY(leat__pipeline_draw(p, &k, s->width, s->height, &w->recipe, err));
        LEAT_TRY(run_drawn(p, w, *s, out + k.crop * (p->output.bytes / crops), err));
    }
    return 0;
}

int leat__pipeline_run_views(const leat__pipeline *const *p, uint32_t count, leat__pipeline_worker *w,
                             const leat__encoded *image, const leat__draw_key *key, void *const *out,
                             leat_error *err)
{
    source s = source_of(image);
    region all = {0};
    uint64_t apart = 0;
    LEAT_TRY(check_kind(p[0], image->info, err));
    for (uint32_t i = 0; i < count && p[0]->kind.channels > 0; i++)
        LEAT_TRY(run_wide_view(p[i], w, &s, key, out[i], err));
    if (p[0]->kind.channels > 0) return 0;
    for (uint32_t i = 0; i < count; i++) LEAT_TRY(plan_view(p[i], w, &s, key, &all, &apart, err));
    if ((count > 1 || p[0]->output.crops) && (uint64_t)all.width * all.height < apart)
        LEAT_TRY(hold(w, &s, all, err));
    for (uint32_t i = 0; i < count; i++) LEAT_TRY(run_view(p[i], w, &s, key, out[i], err));
    return 0;
}

int leat__pipeline_run(const leat__pipeline *p, leat__pipeline_worker *w, const leat__encoded *image,
                       const leat__draw_key *key, void *out, leat_error *err)
{
    const source s = source_of(image);
    if (p->output.crops) return leat__pipeline_run_views(&p, 1, w, image, key, &out, err);
    LEAT_TRY(check_kind(p, image->info, err));
    LEAT_TRY(leat__pipeline_draw(p, key, s.width, s.height, &w->recipe, err));
    if (p->kind.channels > 0) return run_wide(p, w, image, out, err);
    return run_drawn(p, w, s, out, err);
}

int leat__pipeline_run_pixels(const leat__pipeline *p, leat__pipeline_worker *w, const leat__planes *pixels,
                              const leat__draw_key *key, void *out, leat_error *err)
{
    const source s = source_of_pixels(pixels);
    return run_view(p, w, &s, key, out, err);
}

/* ---- masks ---- */

int leat__pipeline_run_mask(leat__pipeline_worker *w, const leat__recipe *recipe, const leat__encoded *mask,
                            uint8_t fill, uint8_t *out, leat_error *err)
{
    const source s = source_of(mask);
    bool in_batch;
    if (mask->info->channels != 1)
        return leat__fail(err, LEAT_EDATA, "a mask of %u channels: masks are grey or palette images",
                          mask->info->channels);
    if (s.width != recipe->in_width || s.height != recipe->in_height)
        return leat__fail(err, LEAT_EDATA, "a mask of %ux%u belongs to an image of %ux%u", s.width, s.height,
                          recipe->in_width, recipe->in_height);
    w->recipe = *recipe;
    for (uint32_t i = 0; i < w->recipe.count; i++)
        for (int c = 0; c < 3; c++) w->recipe.step[i].fill[c] = fill;
    LEAT_TRY(run_steps(w, s, true, &in_batch, err));
    for (uint32_t y = 0; y < recipe->height; y++)
        memcpy(out + (size_t)y * recipe->width, leat__planes_row(&w->pixels.image, 0, y), recipe->width);
    return 0;
}
