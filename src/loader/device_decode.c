/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding jobs of a batch: see device_decode.h. Descriptors and input on the device:
 *
 *   outputs | images | tiles | status | ranges | arena | bytes of lists that did not fit the arena | gathered
 *
 * Gathered bytes are read by a kernel from page-locked pages of the cache. These kernels have separate
 * streams, so that the next copies can overlap with them.
 *
 * Images are decoded in slices whose workspaces together fit SLICE_BYTES.
 */
#include "loader/device_decode.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"

#define SLICE_BYTES (UINT64_C(256) << 20)
#define GROW (UINT64_C(16) << 20) /* memory grows in these steps */
#define GROW_SHARE 64             /* but a step is at most this part of the limit */
#define GATHERS 2                 /* gathering streams, so that the end of one batch overlaps with the next */
#define ALIGN 256u

/* A lane decodes one batch at a time. */
typedef struct lane {
    leat__gpu_stream *stream;
    leat__device_block *work;
} lane;

/* The input of one batch. */
typedef struct slot {
    lane *lane;
    leat__gpu_stream *gathers; /* owned by the decoder */
    leat__gpu_event *sent;     /* its copies have ended: gathering may begin */
    leat__device_block *input;
} slot;

struct leat__device_decoder {
    leat__device_decoder_opts opts;
    leat__gpu_kernels *kernels;
    leat__gpu_memory codes;   /* leat_job_codes, or 0 */
    leat_job_output *outputs; /* per column; data not set */
    uint64_t step;            /* step in which memory grows */
    leat__buf slices;         /* slices of a batch; kept for reuse */
    leat__gpu_stream *gathers[GATHERS];
    lane lanes[LEAT__DECODE_LANES];
    slot slots[LEAT__DECODE_SLOTS];
};

_Static_assert(sizeof(leat_job_codes) <= sizeof(leat__tile_codes), "one form of the tables");

static int send_codes(leat__device_decoder *d, leat_error *err)
{
    leat__gpu_event *sent = NULL;
    int rc;
    if (d->opts.tables == NULL) return 0;
    LEAT_TRY(leat__gpu_alloc(d->opts.gpu, sizeof(leat_job_codes), &d->codes, err));
    LEAT_TRY(leat__gpu_event_open(&sent, d->opts.gpu, false, err));
    LEAT_GO(rc, out,
            leat__gpu_copy_in(d->opts.copies, d->codes, &d->opts.tables->codes, sizeof(leat_job_codes), err));
    LEAT_GO(rc, out, leat__gpu_event_record(sent, d->opts.copies, err));
    rc = leat__gpu_event_wait(sent, err);
out:
    leat__gpu_event_close(&sent);
    return rc;
}

static int open_streams(leat__device_decoder *d, leat_error *err)
{
    for (uint32_t i = 0; i < GATHERS; i++)
        LEAT_TRY(leat__gpu_stream_open_urgent(&d->gathers[i], d->opts.gpu, err));
    for (uint32_t i = 0; i < LEAT__DECODE_LANES; i++)
        LEAT_TRY(leat__gpu_stream_open(&d->lanes[i].stream, d->opts.gpu, err));
    for (uint32_t i = 0; i < LEAT__DECODE_SLOTS; i++) {
        d->slots[i].lane = &d->lanes[i % LEAT__DECODE_LANES];
        d->slots[i].gathers = d->gathers[i % GATHERS];
        LEAT_TRY(leat__gpu_event_open(&d->slots[i].sent, d->opts.gpu, false, err));
    }
    return 0;
}

int leat__device_decoder_open(leat__device_decoder **out, const leat__device_decoder_opts *opts,
                              leat_error *err)
{
    leat__device_decoder *d = LEAT_NEW(LOADER, leat__device_decoder);
    leat__device_pool_stats pool;
    int rc;
    *out = NULL;
    if (d == NULL) return leat__fail_nomem(err, sizeof *d, "a decoder on the device");
    d->opts = *opts;
    leat__buf_init(&d->slices, LEAT__MEM_SCRATCH, SIZE_MAX / 2);
    leat__device_pool_read(opts->pool, &pool);
    d->step = LEAT_MAX(UINT64_C(1), LEAT_MIN(GROW, pool.limit / GROW_SHARE));
    d->outputs = LEAT_NEW_ARRAY(LOADER, leat_job_output, opts->columns + 1);
    if (d->outputs == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof(leat_job_output), "outputs"));
    for (uint32_t c = 0; c < opts->columns; c++)
        if (opts->pipelines[c] != NULL) leat__device_output(opts->pipelines[c], &d->outputs[c]);
    LEAT_GO(rc, out, leat__gpu_kernels_open(&d->kernels, opts->gpu, err));
    LEAT_GO(rc, out, open_streams(d, err));
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
    leat__device_decoder_trim(d);
    for (uint32_t i = 0; i < GATHERS; i++) leat__gpu_stream_close(&d->gathers[i]);
    for (uint32_t i = 0; i < LEAT__DECODE_LANES; i++) leat__gpu_stream_close(&d->lanes[i].stream);
    for (uint32_t i = 0; i < LEAT__DECODE_SLOTS; i++) leat__gpu_event_close(&d->slots[i].sent);
    leat__gpu_free(d->opts.gpu, d->codes);
    leat__gpu_kernels_close(&d->kernels);
    leat__buf_reset(&d->slices);
    leat__free(d->outputs);
    leat__free(d);
}

void leat__device_decoder_drain(leat__device_decoder *d)
{
    for (uint32_t i = 0; i < GATHERS; i++) leat__gpu_stream_drain(d->gathers[i]);
    for (uint32_t i = 0; i < LEAT__DECODE_LANES; i++) leat__gpu_stream_drain(d->lanes[i].stream);
}

void leat__device_decoder_trim(leat__device_decoder *d)
{
    for (uint32_t i = 0; i < LEAT__DECODE_LANES; i++) {
        leat__device_pool_give(d->opts.pool, d->lanes[i].work);
        d->lanes[i].work = NULL;
    }
    for (uint32_t i = 0; i < LEAT__DECODE_SLOTS; i++) {
        leat__device_pool_give(d->opts.pool, d->slots[i].input);
        d->slots[i].input = NULL;
    }
}

/* ---- one batch ---- */

/* Offsets and sizes of the parts of the input. */
typedef struct layout {
    uint32_t images, tiles, ranges;
    uint64_t image_at, tile_at, status_at, range_at, descriptors; /* bytes */
    uint64_t arena;                                               /* bytes of it in use */
    uint64_t data;     /* bytes of all lists, each aligned, and of the arena */
    uint64_t gathered; /* bytes of gathered data, after all of that */
    uint64_t work;     /* workspace of the largest slice */
} layout;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static layout measure(const leat__device_decoder *d, const leat__frame *f)
{
    layout l = {.arena = LEAT_MIN(atomic_load(&f->arena.used), f->arena.size)};
    uint64_t slice = 0;
    l.data = aligned(l.arena);
    for (const leat__device_tiles *t = f->tiles; t != NULL; t = t->next) {
        l.images += t->image_count;
        l.tiles += t->tile_count;
        l.ranges += t->range_count;
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
    l.range_at = aligned(l.status_at + l.images * sizeof(uint32_t));
    l.descriptors = aligned(l.range_at + l.ranges * sizeof(leat_job_range));
    if (l.ranges > 0) l.gathered = atomic_load(&f->arena.gathered);
    return l;
}

/* Rounds up to whole steps, so that blocks also fit later batches. */
static uint64_t grown(const leat__device_decoder *d, uint64_t bytes)
{
    return leat__ceil_div(bytes, d->step) * d->step;
}

/* Grows *block to at least this size. `stream` writes to it; no other stream may still use the old one. */
static int fit(leat__device_decoder *d, leat__device_block **block, uint64_t bytes, leat__gpu_stream *stream,
               leat_error *err)
{
    if (*block != NULL && (*block)->bytes >= bytes) return 0;
    if (*block != NULL) leat__gpu_stream_drain(stream);
    leat__device_pool_give(d->opts.pool, *block);
    *block = NULL;
    return leat__device_pool_take(d->opts.pool, grown(d, bytes), stream, block, err);
}

/* A slice: images and tiles decoded by one launch. */
typedef struct slice {
    uint32_t first_image, images, first_tile, tiles, windows, steps;
    uint64_t work;
} slice;

static int run_slice(leat__device_decoder *d, const slot *at_slot, const layout *l, const slice *s,
                     leat_error *err)
{
    const leat__gpu_memory at = at_slot->input->memory;
    leat_job job = {
        .images = (const leat_job_image *)(uintptr_t)(at + l->image_at) + s->first_image,
        .tiles = (const leat_job_tile *)(uintptr_t)(at + l->tile_at) + s->first_tile,
        .outputs = (const leat_job_output *)(uintptr_t)at,
        .codes = (const leat_job_codes *)(uintptr_t)d->codes,
        .work = (uint8_t *)(uintptr_t)at_slot->lane->work->memory,
        .status = (uint32_t *)(uintptr_t)(at + l->status_at) + s->first_image,
        .image_count = s->images,
        .tile_count = s->tiles,
        .windows = s->windows,
        .steps = s->steps,
    };
    return leat__gpu_kernels_decode(d->kernels, at_slot->lane->stream, &job, err);
}

/* Device addresses that the offsets of images are relative to: the arena, a list's own bytes, the gathered
 * bytes. */
typedef struct places {
    leat__gpu_memory arena, own, gathered;
} places;

static void set_data(leat_job_image *im, const places *at)
{
    switch (im->source) {
    case LEAT_JOB_SPILL: im->data += at->own; break;
    case LEAT_JOB_ARENA: im->data += at->arena; break;
    case LEAT_JOB_GATHERED:
        im->data += at->gathered;
        im->quant += at->arena - im->data; /* relative to the image's data */
        break;
    default: break;
    }
}

#define SIZES 256u
#define SIZE_STEP 64u /* bytes */

static uint32_t size_class(const leat_job_tile *t)
{
    return LEAT_MIN(t->len / SIZE_STEP, SIZES - 1);
}

/* A place in the tiles of all lists. */
typedef struct cursor {
    const leat__device_tiles *list;
    uint32_t image; /* number in the batch of the list's first image */
    uint32_t tile;  /* number in the list */
} cursor;

/* Copies the tiles of a slice, which begin at `from`, large ones first. So the tiles of a block of threads
 * take about the same time, and no large tile starts last. `sizes` counts them by size class.
 */
static void put_by_size(const slice *s, cursor from, uint32_t *sizes, leat_job_tile *to)
{
    uint32_t at = 0;
    for (uint32_t k = SIZES; k-- > 0;) {
        at += sizes[k];
        sizes[k] = at - sizes[k];
    }
    for (uint32_t i = 0; i < s->tiles; i++) {
        while (from.tile == from.list->tile_count) {
            from.image += from.list->image_count;
            from.list = from.list->next;
            from.tile = 0;
        }
        const leat_job_tile *const tile = &from.list->tiles[from.tile++];
        leat_job_tile *const put = &to[sizes[size_class(tile)]++];
        *put = *tile;
        put->image += from.image - s->first_image;
    }
}

/* Joins the lists: images get addresses and places in the workspace; tiles refer to images of their slice. */
static void describe(leat__device_decoder *d, const leat__frame *f, const layout *l, places at, uint8_t *host,
                     slice *slices, uint32_t *count)
{
    leat_job_image *const images = (leat_job_image *)(void *)(host + l->image_at), *image = images;
    leat_job_tile *const tiles = (leat_job_tile *)(void *)(host + l->tile_at);
    slice *s = slices;
    uint32_t sizes[SIZES] = {0};
    cursor begin = {.list = f->tiles};
    *s = (slice){0};
    for (const leat__device_tiles *t = f->tiles; t != NULL; at.own += aligned(t->data_bytes), t = t->next) {
        const uint32_t first = (uint32_t)(image - images);
        uint32_t k = 0;
        for (uint32_t i = 0; i < t->image_count; i++, image++) {
            uint64_t bytes = aligned(t->images[i].work_bytes);
            if (s->images > 0 && s->work + bytes > SLICE_BYTES) {
                put_by_size(s, begin, sizes, tiles + s->first_tile);
                s[1] = (slice){.first_image = s->first_image + s->images,
                               .first_tile = s->first_tile + s->tiles};
                s++;
                begin = (cursor){.list = t, .image = first, .tile = k};
                memset(sizes, 0, sizeof sizes);
            }
            *image = t->images[i];
            set_data(image, &at);
            image->work = s->work;
            s->windows = LEAT_MAX(s->windows, image->windows);
            s->steps = LEAT_MAX(s->steps, image->steps);
            for (; k < t->tile_count && t->tiles[k].image == i; k++, s->tiles++)
                sizes[size_class(&t->tiles[k])]++;
            s->images++;
            s->work += bytes;
        }
    }
    put_by_size(s, begin, sizes, tiles + s->first_tile);
    memcpy(host, d->outputs, d->opts.columns * sizeof *d->outputs);
    memset(host + l->status_at, 0xff, l->images * sizeof(uint32_t));
    *count = (uint32_t)(s - slices) + 1;
}

/* Joins the ranges of the lists; returns how many lines they have. */
static uint32_t describe_ranges(const leat__frame *f, const layout *l, leat__gpu_memory gathered,
                                uint8_t *host)
{
    leat_job_range *range = (leat_job_range *)(void *)(host + l->range_at);
    uint32_t lines = 0;
    for (const leat__device_tiles *t = f->tiles; t != NULL; t = t->next) {
        for (uint32_t i = 0; i < t->range_count; i++, range++) {
            *range = t->ranges[i];
            range->to += gathered;
            range->first = lines;
            lines += range->lines;
        }
    }
    return lines;
}

/* Copies descriptors and the arena: two copies, and one for each list that did not fit. */
static int send(leat__device_decoder *d, const leat__frame *f, const layout *l, leat__gpu_memory input,
                leat__device_job *job, leat_error *err)
{
    uint64_t at = l->descriptors;
    LEAT_TRY(leat__gpu_copy_in(d->opts.copies, input, job->descriptors.data, l->descriptors, err));
    const leat__gpu_memory arena = job->stored != 0 ? job->stored : input + at;
    if (l->arena > 0) LEAT_TRY(leat__gpu_copy_in(d->opts.copies, arena, f->arena.data, l->arena, err));
    at += aligned(l->arena);
    for (const leat__device_tiles *t = f->tiles; t != NULL; at += aligned(t->data_bytes), t = t->next) {
        if (t->data_bytes > 0)
            LEAT_TRY(leat__gpu_copy_in(d->opts.copies, input + at, t->data, t->data_bytes, err));
    }
    job->bytes = l->descriptors + l->data;
    return 0;
}

/* After the copies: queues the kernel that reads pages of the cache, and records the event that all input has
 * arrived. */
static int gather(leat__device_decoder *d, const slot *s, const layout *l, uint32_t lines,
                  leat__gpu_event *copied, leat__device_job *job, leat_error *err)
{
    const leat_job_range *const ranges = (const leat_job_range *)(uintptr_t)(s->input->memory + l->range_at);
    const leat_job read = {.ranges = ranges, .range_count = l->ranges, .lines = lines};
    if (lines == 0) return leat__gpu_event_record(copied, d->opts.copies, err);
    LEAT_TRY(leat__gpu_event_record(s->sent, d->opts.copies, err));
    LEAT_TRY(leat__gpu_stream_after(s->gathers, s->sent, err));
    LEAT_TRY(leat__gpu_kernels_gather(d->kernels, s->gathers, &read, err));
    job->bytes += (uint64_t)lines * LEAT_JOB_LINE;
    return leat__gpu_event_record(copied, s->gathers, err);
}

/* True when images of the batch should stay on the device. */
static bool has_claims(const leat__frame *f)
{
    for (const leat__device_tiles *t = f->tiles; t != NULL; t = t->next)
        for (uint32_t i = 0; t->store != NULL && i < t->image_count; i++)
            if (t->keep[i] != NULL) return true;
    return false;
}

/* Enlarges the arena of later batches, so that all tiles of this one would have fitted. */
static void learn(leat__device_decoder *d, const leat__frame *f, const layout *l)
{
    uint64_t missing = atomic_load(&f->arena.missing), known = atomic_load(d->opts.arena_bytes);
    uint64_t need = LEAT_MAX(l->data, l->arena + missing);
    need = LEAT_MIN(need + need / 8, d->opts.arena_most);
    if (need > known) atomic_store(d->opts.arena_bytes, need);
}

static void point_outputs(leat__device_decoder *d, const leat__frame *f, const leat__device_block *batch)
{
    for (uint32_t c = 0; c < d->opts.columns; c++)
        d->outputs[c].data = batch->memory + f->shape->columns[c].device_start;
}

static int run_mixes(leat__device_decoder *d, const slot *s, const layout *l, const leat__device_mixes *mixes,
                     leat_error *err)
{
    leat_job job = {.status = (uint32_t *)(uintptr_t)(s->input->memory + l->status_at),
                    .image_count = l->images};
    for (uint32_t i = 0; i < mixes->count; i++) {
        job.mix = mixes->list[i];
        LEAT_TRY(leat__gpu_kernels_mix(d->kernels, s->lane->stream, &job, err));
    }
    return 0;
}

/* Queues the kernels after the copies, and the copy of their status. */
static int run_kernels(leat__device_decoder *d, const slot *s, const layout *l, const slice *slices,
                       uint32_t count, const leat__device_mixes *mixes, const leat__device_marks *marks,
                       leat__device_job *job, leat_error *err)
{
    uint8_t *status = job->descriptors.data + l->status_at;
    leat__gpu_stream *const stream = s->lane->stream;
    LEAT_TRY(leat__gpu_stream_after(stream, marks->copied, err));
    LEAT_TRY(leat__gpu_event_record(marks->start, stream, err));
    for (uint32_t i = 0; i < count; i++) LEAT_TRY(run_slice(d, s, l, &slices[i], err));
    LEAT_TRY(run_mixes(d, s, l, mixes, err));
    job->status = (const uint32_t *)(const void *)status;
    LEAT_TRY(leat__gpu_copy_out(stream, status, s->input->memory + l->status_at, l->images * sizeof(uint32_t),
                                err));
    return leat__gpu_event_record(marks->end, stream, err);
}

int leat__device_decoder_start(leat__device_decoder *d, uint32_t slot_index, const leat__frame *f,
                               const leat__device_block *batch, const leat__device_mixes *mixes,
                               const leat__device_marks *marks, leat__device_job *job, leat_error *err)
{
    const layout l = measure(d, f);
    slot *const s = &d->slots[slot_index];
    uint32_t count = 0;
    *job = (leat__device_job){.images = l.images};
    learn(d, f, &l);
    job->needs = grown(d, l.work) + grown(d, l.descriptors + l.data + l.gathered);
    LEAT_TRY(fit(d, &s->lane->work, l.work, s->lane->stream, err));
    LEAT_TRY(fit(d, &s->input, l.descriptors + l.data + l.gathered, d->opts.copies, err));
    leat__buf_clear(&d->slices);
    job->descriptors = leat__blocks_take(d->opts.blocks, l.descriptors);
    if (job->descriptors.data == NULL ||
        leat__buf_reserve(&d->slices, (l.images + UINT64_C(1)) * sizeof(slice)) != 0)
        return leat__fail_nomem(err, l.descriptors, "jobs of a batch");
    slice *const slices = (slice *)(void *)d->slices.data;
    point_outputs(d, f, batch);
    if (d->opts.store != NULL && has_claims(f))
        job->stored = leat__device_store_take(d->opts.store, l.arena, d->opts.copies);
    const leat__gpu_memory data = s->input->memory + l.descriptors;
    const places at = {.arena = job->stored != 0 ? job->stored : data,
                       .own = data + aligned(l.arena),
                       .gathered = data + l.data};
    describe(d, f, &l, at, job->descriptors.data, slices, &count);
    const uint32_t lines = describe_ranges(f, &l, at.gathered, job->descriptors.data);
    LEAT_TRY(send(d, f, &l, s->input->memory, job, err));
    LEAT_TRY(gather(d, s, &l, lines, marks->copied, job, err));
    return run_kernels(d, s, &l, slices, count, mixes, marks, job, err);
}

void leat__device_decoder_keep(leat__device_decoder *d, const leat__frame *f, const leat__device_job *job)
{
    const uint32_t *status = job->status;
    if (job->stored == 0) return;
    for (leat__device_tiles *t = f->tiles; t != NULL; status += t->image_count, t = t->next) {
        for (uint32_t i = 0; t->store != NULL && i < t->image_count; i++) {
            if (t->keep[i] == NULL || status[i] != LEAT_JOB_NO_DAMAGE) continue;
            leat__device_store_keep(d->opts.store, t->keep[i], job->stored + t->images[i].data);
            t->keep[i] = NULL;
        }
    }
}

void leat__device_decoder_end(leat__device_decoder *d, leat__device_job *job)
{
    leat__blocks_give(d->opts.blocks, job->descriptors);
    *job = (leat__device_job){0};
}
