/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of a batch: see device_decode.h. Descriptors and input on the device:
 *
 *   outputs | images | tiles | status | bytes of all lists
 *
 * Images are decoded in slices whose workspaces fit SLICE_BYTES together.
 */
#include "loader/device_decode.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"

#define SLICE_BYTES (UINT64_C(256) << 20)
#define GROW (UINT64_C(16) << 20) /* shared memory grows in these steps */
#define ALIGN 256u

struct leat__device_decoder {
    leat__device_decoder_opts opts;
    leat__gpu_kernels *kernels;
    leat__gpu_memory codes; /* leat_job_codes, or 0 */
    leat_job_output *outputs; /* per column; data not set */
    leat__device_block *input, *work; /* shared by all batches */
};

_Static_assert(sizeof(leat_job_codes) <= sizeof(leat__tile_codes), "one form of the tables");

static int send_codes(leat__device_decoder *d, leat_error *err)
{
    leat__gpu_event *sent = NULL;
    int rc;
    if (d->opts.tables == NULL) return 0;
    LEAT_TRY(leat__gpu_alloc(d->opts.gpu, sizeof(leat_job_codes), &d->codes, err));
    LEAT_TRY(leat__gpu_event_open(&sent, d->opts.gpu, false, err));
    LEAT_GO(rc, out, leat__gpu_copy_in(d->opts.stream, d->codes, &d->opts.tables->codes,
                                       sizeof(leat_job_codes), err));
    LEAT_GO(rc, out, leat__gpu_event_record(sent, d->opts.stream, err));
    rc = leat__gpu_event_wait(sent, err);
out:
    leat__gpu_event_close(&sent);
    return rc;
}

int leat__device_decoder_open(leat__device_decoder **out, const leat__device_decoder_opts *opts,
                              leat_error *err)
{
    leat__device_decoder *d = LEAT_NEW(LOADER, leat__device_decoder);
    int rc;
    *out = NULL;
    if (d == NULL) return leat__fail_nomem(err, sizeof *d, "a decoder on the device");
    d->opts = *opts;
    d->outputs = LEAT_NEW_ARRAY(LOADER, leat_job_output, opts->columns + 1);
    if (d->outputs == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof(leat_job_output), "outputs"));
    for (uint32_t c = 0; c < opts->columns; c++)
        if (opts->pipelines[c] != NULL) leat__device_output(opts->pipelines[c], &d->outputs[c]);
    LEAT_GO(rc, out, leat__gpu_kernels_open(&d->kernels, opts->gpu, err));
    LEAT_GO(rc, out, send_codes(d, err));
    *out = d;
    d = NULL;
out:
    leat__device_decoder_close(&d);
    return rc;
}

void leat__device_decoder_close(leat__device_decoder **out)
{
    leat__device_decoder *d = *out;
    if (d == NULL) return;
    *out = NULL;
    leat__device_pool_give(d->opts.pool, d->input);
    leat__device_pool_give(d->opts.pool, d->work);
    leat__gpu_free(d->opts.gpu, d->codes);
    leat__gpu_kernels_close(&d->kernels);
    leat__free(d->outputs);
    leat__free(d);
}

/* ---- one batch ---- */

/* Where the parts of the input begin, and how large things are. */
typedef struct layout {
    uint32_t images, tiles;
    uint64_t image_at, tile_at, status_at, descriptors; /* bytes */
    uint64_t data; /* of all lists, each aligned */
    uint64_t work; /* of the largest slice */
} layout;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static layout measure(const leat__device_decoder *d, const leat__device_tiles *list)
{
    layout l = {0};
    uint64_t slice = 0;
    for (const leat__device_tiles *t = list; t != NULL; t = t->next) {
        l.images += t->image_count;
        l.tiles += t->tile_count;
        l.data += aligned(t->data_bytes);
        for (uint32_t i = 0; i < t->image_count; i++) {
            uint64_t bytes = aligned(t->images[i].work_bytes);
            slice = slice + bytes > SLICE_BYTES ? bytes : slice + bytes;
            l.work = LEAT_MAX(l.work, slice);
        }
    }
    l.image_at = aligned(d->opts.columns * sizeof(leat_job_output));
    l.tile_at = aligned(l.image_at + l.images * sizeof(leat_job_image));
    l.status_at = aligned(l.tile_at + l.tiles * sizeof(leat_job_tile));
    l.descriptors = aligned(l.status_at + l.images * sizeof(uint32_t));
    return l;
}

/* Makes *block at least so large; what is queued still uses the old one, which the pool knows. */
static int fit(leat__device_decoder *d, leat__device_block **block, uint64_t bytes, leat_error *err)
{
    if (*block != NULL && (*block)->bytes >= bytes) return 0;
    leat__device_pool_give(d->opts.pool, *block);
    *block = NULL;
    return leat__device_pool_take(d->opts.pool, (bytes + GROW - 1) / GROW * GROW, d->opts.stream, block, err);
}

/* A slice: images and tiles that one launch decodes. */
typedef struct slice {
    uint32_t first_image, images, first_tile, tiles;
    uint64_t work;
} slice;

static int run_slice(leat__device_decoder *d, const layout *l, const slice *s, leat_error *err)
{
    const leat__gpu_memory at = d->input->memory;
    leat_job job = {
        .images = (const leat_job_image *)(uintptr_t)(at + l->image_at) + s->first_image,
        .tiles = (const leat_job_tile *)(uintptr_t)(at + l->tile_at) + s->first_tile,
        .outputs = (const leat_job_output *)(uintptr_t)at,
        .codes = (const leat_job_codes *)(uintptr_t)d->codes,
        .data = (const uint8_t *)(uintptr_t)(at + l->descriptors),
        .work = (uint8_t *)(uintptr_t)d->work->memory,
        .status = (uint32_t *)(uintptr_t)(at + l->status_at) + s->first_image,
        .image_count = s->images,
        .tile_count = s->tiles,
    };
    return leat__gpu_kernels_decode(d->kernels, d->opts.stream, &job, err);
}

/* Joins the lists: images get their places in data and workspace, tiles count images of their slice. */
static void describe(leat__device_decoder *d, const leat__device_tiles *list, const layout *l, uint8_t *host,
                    slice *slices, uint32_t *count)
{
    leat_job_image *image = (leat_job_image *)(void *)(host + l->image_at);
    leat_job_tile *tile = (leat_job_tile *)(void *)(host + l->tile_at);
    uint64_t data = 0;
    slice *s = slices;
    *s = (slice){0};
    for (const leat__device_tiles *t = list; t != NULL; data += aligned(t->data_bytes), t = t->next) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < t->image_count; i++, image++) {
            uint64_t bytes = aligned(t->images[i].work_bytes);
            if (s->images > 0 && s->work + bytes > SLICE_BYTES) {
                s[1] = (slice){.first_image = s->first_image + s->images,
                               .first_tile = s->first_tile + s->tiles};
                s++;
            }
            *image = t->images[i];
            image->data = data;
            image->work = s->work;
            for (; k < t->tile_count && t->tiles[k].image == i; k++, tile++) {
                *tile = t->tiles[k];
                tile->image = s->images;
                s->tiles++;
            }
            s->images++;
            s->work += bytes;
        }
    }
    memcpy(host, d->outputs, d->opts.columns * sizeof *d->outputs);
    memset(host + l->status_at, 0xff, l->images * sizeof(uint32_t));
    *count = (uint32_t)(s - slices) + 1;
}

static int send(leat__device_decoder *d, const leat__frame *f, const layout *l, leat__device_job *job,
                leat_error *err)
{
    uint64_t at = l->descriptors;
    LEAT_TRY(leat__gpu_copy_in(d->opts.stream, d->input->memory, job->descriptors.data, l->descriptors, err));
    for (const leat__device_tiles *t = f->tiles; t != NULL; at += aligned(t->data_bytes), t = t->next)
        LEAT_TRY(leat__gpu_copy_in(d->opts.stream, d->input->memory + at, t->data.data, t->data_bytes, err));
    job->bytes = l->descriptors + l->data;
    return 0;
}

static void point_outputs(leat__device_decoder *d, const leat__frame *f, const leat__device_block *batch)
{
    for (uint32_t c = 0; c < d->opts.columns; c++)
        d->outputs[c].data = batch->memory + f->shape->columns[c].device_start;
}

int leat__device_decoder_start(leat__device_decoder *d, const leat__frame *f,
                               const leat__device_block *batch, leat__device_job *job, leat_error *err)
{
    layout l = measure(d, f->tiles);
    uint32_t count = 0;
    int rc;
    *job = (leat__device_job){.images = l.images};
    LEAT_TRY(fit(d, &d->work, l.work, err));
    LEAT_TRY(fit(d, &d->input, l.descriptors + l.data, err));
    slice *slices = LEAT_NEW_ARRAY(LOADER, slice, l.images + 1);
    job->descriptors = leat__blocks_take(d->opts.blocks, l.descriptors);
    if (slices == NULL || job->descriptors.data == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, l.descriptors, "jobs of a batch"));
    point_outputs(d, f, batch);
    describe(d, f->tiles, &l, job->descriptors.data, slices, &count);
    LEAT_GO(rc, out, send(d, f, &l, job, err));
    for (uint32_t i = 0; i < count; i++) LEAT_GO(rc, out, run_slice(d, &l, &slices[i], err));
    uint8_t *status = job->descriptors.data + l.status_at;
    job->status = (const uint32_t *)(const void *)status;
    rc = leat__gpu_copy_out(d->opts.stream, status, d->input->memory + l.status_at,
                            l.images * sizeof(uint32_t), err);
out:
    leat__free(slices);
    return rc;
}

void leat__device_decoder_end(leat__device_decoder *d, leat__device_job *job)
{
    leat__blocks_give(d->opts.blocks, job->descriptors);
    *job = (leat__device_job){0};
}
