/* SPDX-License-Identifier: Apache-2.0
 *
 * See jpeg_region.h. A strip of the raster is a row of MCUs. In each row of the region, the MCUs before
 * the region are skipped, or avoided by starting at an entry point. Those of the region are decoded in
 * chunks that stay in the L1 cache, transformed, and passed to the raster.
 *
 *   scan --entropy--> plain blocks --idct--> raster --upsample, colour--> band --> sink
 */
#include "codec/jpeg_region.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/jpeg_entries.h"
#include "codec/jpeg_scan.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

enum {
    RUN_MCUS = 16,         /* 12 KiB of blocks at 4:2:0 */
    BLOCKS = 4 * RUN_MCUS, /* of one component, at most */
};

typedef struct coefficients {
    _Alignas(64) int16_t block[LEAT__RASTER_COMPONENTS][(BLOCKS + LEAT__IDCT_BLOCKS_PAD) * 64];
    uint8_t last[LEAT__RASTER_COMPONENTS][BLOCKS];
} coefficients;

struct leat__jpeg_region {
    leat__jpeg_scan *scan;
    leat__raster raster;
    leat__idct_small_dsp idct;
    uint32_t cpu_flags; /* for which the kernels were chosen */
    coefficients *coefs;
    /* the current job */
    uint32_t mcu_h[LEAT__RASTER_COMPONENTS], mcu_v[LEAT__RASTER_COMPONENTS]; /* in blocks */
    uint32_t mcus_x, mx0, mx1; /* MCUs per row; columns of the region, mx1 exclusive */
    bool indexed;
    leat__jpeg_entries entries;
    leat__jpeg_cursor at;
    const leat__row_sink *sink;
};

int leat__jpeg_region_open(leat__jpeg_region **out, leat_error *err)
{
    int rc;
    leat__jpeg_region *r = LEAT_NEW(CODEC, leat__jpeg_region);
    if (!r) return leat__fail_nomem(err, sizeof *r, "a JPEG region decoder");
    LEAT_GO(rc, out, leat__jpeg_scan_open(&r->scan, err));
    r->coefs = leat__alloc_aligned(LEAT__MEM_SCRATCH, sizeof *r->coefs, 64);
    if (!r->coefs) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof *r->coefs, "coefficients"));
    memset(r->coefs, 0, sizeof *r->coefs);
    *out = r;
    r = NULL;
out:
    leat__jpeg_region_close(&r);
    return rc;
}

void leat__jpeg_region_close(leat__jpeg_region **region)
{
    leat__jpeg_region *r = *region;
    if (!r) return;
    leat__jpeg_scan_close(&r->scan);
    leat__raster_reset(&r->raster);
    leat__free(r->coefs);
    leat__free(r);
    *region = NULL;
}

bool leat__jpeg_region_shape(const leat__jpeg_coefs *f, leat__raster_shape *shape)
{
    *shape = (leat__raster_shape){f->width, f->height, 1, 1, 1};
    if (f->components == 1) return f->colour == LEAT__JPEG_GREY;
    if (f->components != 3 || f->colour != LEAT__JPEG_YCC) return false;
    if (f->component[0].h != f->max_h || f->component[0].v != f->max_v) return false;
    for (int c = 1; c < 3; c++)
        if (f->component[c].h != 1 || f->component[c].v != 1) return false;
    *shape = (leat__raster_shape){f->width, f->height, 3, f->max_h, f->max_v};
    return f->max_v <= 2 && f->max_h != 3 && f->max_h * f->max_v <= 4;
}

static bool is_as_probed(const leat__raster_shape *shape, const leat__image_info *info)
{
    return shape->width == info->width && shape->height == info->height &&
           shape->components == info->channels;
}

static void find_columns(leat__jpeg_region *r, const leat__raster_shape *shape)
{
    r->mcus_x = leat__jpeg_scan_mcus_x(r->scan);
    r->mx0 = UINT32_MAX;
    r->mx1 = 0;
    for (uint32_t c = 0; c < shape->components; c++) {
        const leat__raster_span *s = &r->raster.comp[c];
        r->mcu_h[c] = c == 0 ? shape->h : 1;
        r->mcu_v[c] = c == 0 ? shape->v : 1;
        r->mx0 = LEAT_MIN(r->mx0, s->bx0 / r->mcu_h[c]);
        r->mx1 = LEAT_MAX(r->mx1, (s->bx1 - 1) / r->mcu_h[c] + 1);
    }
}

/* Moves the cursor to the region's first MCU of a row. */
static bool enter_row(leat__jpeg_region *r, uint32_t row)
{
    const uint32_t target = row * r->mcus_x + r->mx0;
    if (r->indexed) {
        leat__jpeg_cursor entry;
        leat__jpeg_entries_find(&r->entries, target, &entry);
        if (entry.mcu > r->at.mcu) r->at = entry;
    }
    uint32_t before = target - r->at.mcu;
    return before == 0 || leat__jpeg_scan_skip(r->scan, &r->at, before);
}

/* Transforms the blocks that the region needs of `count` MCUs, starting at column mx of a row. */
static void transform(leat__jpeg_region *r, uint32_t row, uint32_t mx, uint32_t count,
                      const leat__jpeg_blocks *from)
{
    const leat__jpeg_coefs *frame = leat__jpeg_scan_frame(r->scan);
    for (uint32_t c = 0; c < r->raster.shape.components; c++) {
        const leat__raster_span *need = &r->raster.comp[c];
        uint32_t gx = mx * r->mcu_h[c], gy = row * r->mcu_v[c];
        uint32_t x0 = LEAT_MAX(need->bx0, gx);
        uint32_t x1 = LEAT_MIN(need->bx1, gx + count * r->mcu_h[c]);
        uint32_t y0 = LEAT_MAX(need->by0, gy), y1 = LEAT_MIN(need->by1, gy + r->mcu_v[c]);
        for (uint32_t y = y0; y < y1 && x0 < x1; y++) {
            size_t first = (y - gy) * from->stride[c] + (x0 - gx);
            uint8_t *to = leat__raster_at(&r->raster, row, c, need->side * x0, need->side * y);
            if (c == 0 && r->sink->blocks)
                r->sink->blocks(r->sink->ctx, from->block[c] + 64 * first, x0, y, x1 - x0,
                                frame->component[c].quant);
            r->idct.plain[need->shrink](to, r->raster.planes.stride, from->block[c] + 64 * first,
                                        from->last[c] + first, x1 - x0, frame->component[c].quant);
        }
    }
}

/* Decodes one row of MCUs into the raster's planes. False: libjpeg must decode the rest. */
static bool decode_row(leat__jpeg_region *r, uint32_t row)
{
    leat__jpeg_blocks to = {{0}, {0}, {0}};
    for (uint32_t c = 0; c < r->raster.shape.components; c++) {
        to.block[c] = r->coefs->block[c];
        to.last[c] = r->coefs->last[c];
        to.stride[c] = RUN_MCUS * r->mcu_h[c];
        to.means_only[c] = r->raster.comp[c].shrink == 3 && !(c == 0 && r->sink->blocks);
    }
    if (!enter_row(r, row)) return false;
    for (uint32_t mx = r->mx0; mx < r->mx1; mx += RUN_MCUS) {
        uint32_t count = LEAT_MIN(r->mx1 - mx, RUN_MCUS);
        if (!leat__jpeg_scan_mcus(r->scan, &r->at, count, &to)) return false;
        transform(r, row, mx, count, &to);
    }
    return true;
}

static void choose_kernels(leat__jpeg_region *r)
{
    if (r->idct.isa && r->cpu_flags == leat__cpu_flags()) return;
    r->cpu_flags = leat__cpu_flags(); /* the flags were masked in the meantime */
    leat__idct_small_init(&r->idct, r->cpu_flags);
}

int leat__jpeg_region_decode(leat__jpeg_region *r, const leat__decode_job *job, uint32_t *done,
                             bool *complete, leat_error *err)
{
    leat__raster_shape shape;
    *done = 0;
    *complete = false;
    if (!leat__jpeg_scan_start(r->scan, job->data, job->len)) return 0;
    if (!leat__jpeg_region_shape(leat__jpeg_scan_frame(r->scan), &shape)) return 0;
    if (!is_as_probed(&shape, job->info)) return 0;
    if (job->parts) LEAT_TRY(leat__raster_begin_parts(&r->raster, &shape, job->parts, 8 * shape.v, err));
    else
        LEAT_TRY(leat__raster_begin(&r->raster, &shape, job->x, job->y, job->width, job->height, 8 * shape.v,
                                    err));
    find_columns(r, &shape);
    choose_kernels(r);
    r->sink = job->sink;
    leat__jpeg_scan_begin(r->scan, &r->at);
    r->indexed =
        job->entries && leat__jpeg_entries_view(&r->entries, job->entries, job->entries_len, r->scan);
    for (uint32_t row = r->raster.first; row <= r->raster.last; row++) {
        if (!decode_row(r, row)) return 0;
        LEAT_TRY(leat__raster_emit(&r->raster, row, job->sink));
        *done = r->raster.done;
    }
    size_t end;
    *complete = !job->whole || leat__jpeg_scan_finish(r->scan, &r->at, &end, NULL);
    return 0;
}
