/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames. Layout of a block: for each column its rows (ragged ones: offsets, shapes, then
 * elements), then sample ids, then hashes; every part is aligned to 256 bytes.
 */
#include "loader/batch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "dsp/pixel.h"
#include "base/num.h"

#define ALIGN 256u
struct leat__frames {
    leat__shape shape;
    leat__blocks *blocks;
    bool apart; /* sample ids and hashes are outside the block, which may be freed earlier */
    _Atomic uint32_t refs;
};

void leat__shape_reset(leat__shape *shape)
{
    for (uint32_t c = 0; c < shape->count; c++) leat__free((void *)shape->columns[c].tensor.name);
    leat__free(shape->columns);
    *shape = (leat__shape){0};
}

int leat__frames_open(leat__frames **out, leat_budget *budget, leat__shape *shape, leat_error *err)
{
    leat__frames *f = LEAT_NEW(LOADER, leat__frames);
    *out = f;
    if (f == NULL) {
        leat__shape_reset(shape);
        return leat__fail_nomem(err, sizeof *f, "batches");
    }
    f->shape = *shape;
    *shape = (leat__shape){0};
    f->refs = 1;
    int rc = leat__blocks_open(&f->blocks, budget, LEAT_BUDGET_BATCH, LEAT__MEM_BATCH, err);
    if (rc != 0) leat__frames_close(out);
    return rc;
}

static void unref(leat__frames *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1) return;
    leat__shape_reset(&f->shape);
    leat__free(f);
}

void leat__frames_for_device(leat__frames *f, leat__gpu *gpu, const leat_log *log)
{
    leat__blocks_lock_pages(f->blocks, gpu, log);
    f->apart = true;
}

bool leat__frames_locked(leat__frames *f)
{
    return leat__blocks_locked(f->blocks);
}

const leat__shape *leat__frames_shape(const leat__frames *f)
{
    return &f->shape;
}

void leat__frames_trim(leat__frames *f)
{
    leat__blocks_trim(f->blocks);
}

uint64_t leat__frames_kept(leat__frames *f)
{
    return leat__blocks_kept(f->blocks);
}

/* Frees the kept blocks at once. A borrowed batch holds its own block, which is freed on release. */
void leat__frames_close(leat__frames **out)
{
    leat__frames *f = *out;
    if (f == NULL) return;
    leat__blocks *blocks = f->blocks;
    leat__blocks_close(&blocks);
    unref(f);
    *out = NULL;
}

/* Adds an aligned part of count * size bytes at *at; *start gets its offset. */
static bool add_part(uint64_t *at, uint64_t count, uint64_t size, uint64_t *start)
{
    uint64_t bytes;
    if (!leat__align_up_u64(*at, ALIGN, start)) return false;
    return leat__mul_u64(count, size, &bytes) && leat__add_u64(*start, bytes, at);
}

uint64_t leat__frames_device_bytes(leat__frames *f, uint32_t rows)
{
    uint64_t at = 0;
    for (uint32_t c = 0; c < f->shape.count; c++) {
        leat__column *column = &f->shape.columns[c];
        if (column->kind == LEAT__COLUMN_RAGGED) continue;
        bool fits = add_part(&at, rows, column->row_bytes, &column->device_start);
        LEAT_ASSERT(fits); /* the host's layout has the same parts and was checked */
        (void)fits;
    }
    return LEAT_MAX(at, UINT64_C(1));
}

/* Computes the layout; with `f` also sets all pointers. */
static bool lay_out(const leat__shape *shape, uint32_t rows, const uint64_t *ragged, bool hashes,
                    leat__frame *f, uint64_t *bytes)
{
    uint64_t at = 0, start;

    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        leat_tensor *t = f != NULL ? &f->tensors[c] : NULL;
        if (column->kind != LEAT__COLUMN_RAGGED) {
            bool padded = leat__column_padded(column);
            uint64_t size = padded ? 1 : column->row_bytes;
            if (!add_part(&at, padded ? ragged[c] : rows, size, &start)) return false;
            if (t != NULL) t->data = f->block + start;
            continue;
        }
        if (!add_part(&at, (uint64_t)rows + 1, sizeof(int64_t), &start)) return false;
        if (t != NULL) t->offsets = (int64_t *)(f->block + start);
        if (column->ragged_ndim > 0) {
            if (!add_part(&at, (uint64_t)rows * column->ragged_ndim, sizeof(int64_t), &start)) return false;
            if (t != NULL) t->ragged_shapes = (int64_t *)(f->block + start);
        }
        if (!add_part(&at, ragged[c], 1, &start)) return false;
        if (t != NULL) t->data = f->block + start;
    }
    if (!add_part(&at, rows, sizeof(uint64_t), &start)) return false;
    if (f != NULL) f->ids = (uint64_t *)(f->block + start);
    if (hashes) {
        if (!add_part(&at, rows, sizeof(uint64_t), &start)) return false;
        if (f != NULL) f->hashes = (uint64_t *)(f->block + start);
    }
    /* even a batch of 0 rows has memory */
    return leat__align_up_u64(LEAT_MAX(at, UINT64_C(1)), LEAT__FRAME_ALIGN, bytes);
}

bool leat__frame_size(const leat__shape *shape, uint32_t rows, const uint64_t *ragged, bool hashes,
                      uint64_t *bytes)
{
    size_t size;
    return lay_out(shape, rows, ragged, hashes, NULL, bytes) && leat__u64_to_size(*bytes, &size);
}

int leat__frame_open(leat__frame **out, leat__frames *frames, uint32_t rows, const uint64_t *ragged,
                     bool hashes, leat_error *err)
{
    const leat__shape *shape = &frames->shape;
    uint64_t bytes;
    size_t extra = shape->count * (sizeof(leat_tensor) + 2 * sizeof(int64_t)) + rows * sizeof(bool);
    extra += (size_t)shape->sized * rows * sizeof(leat__size);
    extra += (size_t)shape->shrinking * rows * sizeof(int64_t);
    size_t apart = frames->apart ? rows * 2 * sizeof(uint64_t) : 0;

    *out = NULL;
    if (!leat__frame_size(shape, rows, ragged, hashes, &bytes))
        return leat__fail(err, LEAT_EOVERFLOW, "a batch of %u samples is too large", rows);
    leat__frame *f = leat__zalloc(LEAT__MEM_LOADER, sizeof *f + apart + extra);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f + apart + extra, "a batch");
    f->at_once = leat__blocks_locked(frames->blocks);
    f->memory = leat__blocks_take_unpaid(frames->blocks, bytes);
    if (f->memory.data == NULL) {
        leat__free(f);
        return leat__fail_nomem(err, bytes, "a batch");
    }
    atomic_fetch_add(&frames->refs, 1);
    f->refs = 1;
    f->frames = frames;
    f->shape = shape;
    f->block = f->memory.data;
    f->blocks = frames->blocks;
    f->bytes = bytes;
    f->rows = rows;
    f->tensors = (leat_tensor *)(void *)((uint8_t *)(f + 1) + apart);
    f->ragged_end = (int64_t *)(f->tensors + shape->count);
    f->used = f->ragged_end + shape->count;
    f->row_bytes = (uint64_t *)(f->used + (size_t)shape->shrinking * rows);
    f->sizes = (leat__size *)(f->row_bytes + shape->count);
    f->dropped = (bool *)(f->sizes + (size_t)shape->sized * rows);
    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        f->tensors[c] = column->tensor;
        f->tensors[c].shape[0] = rows;
        f->row_bytes[c] = leat__column_padded(column) && rows > 0 ? ragged[c] / rows : column->row_bytes;
    }
    bool fits = lay_out(shape, rows, ragged, hashes, f, &bytes);
    LEAT_ASSERT(fits);
    (void)fits;
    if (frames->apart) {
        f->ids = (uint64_t *)(f + 1);
        if (hashes) f->hashes = f->ids + rows;
    }
    f->batch.device = -1;
    f->batch.samples = f->batch.rows = rows;
    f->batch.field_count = shape->count;
    f->batch.fields = f->tensors;
    f->batch.sample_ids = f->ids;
    f->batch.sample_hash = f->hashes;
    *out = f;
    return 0;
}

static void free_bad(leat__frame *f)
{
    leat__bad *next = f->bad;
    while (next != NULL) {
        leat__bad *b = next;
        next = b->next;
        leat__free(b);
    }
}

void leat__frame_ref(leat__frame *f)
{
    LEAT_ASSERT(atomic_load(&f->refs) > 0);
    atomic_fetch_add(&f->refs, 1);
}

static void drop_tiles(leat__frame *f)
{
    leat__device_tiles_close(f->tiles);
    f->tiles = NULL;
    if (f->arena_blocks != NULL) leat__blocks_give(f->arena_blocks, f->arena_memory);
    f->arena_blocks = NULL;
    f->arena_memory = (leat__block){0};
    f->arena.data = NULL;
    f->arena.size = 0;
}

void leat__frame_unref(leat__frame *f)
{
    if (f == NULL || atomic_fetch_sub(&f->refs, 1) != 1) return;
    leat__frames *frames = f->frames;
    free_bad(f);
    drop_tiles(f);
    leat__device_pool_give(f->device_pool, f->on_device);
    leat__blocks_give(f->blocks, f->memory);
    leat__free(f);
    unref(frames);
}

void *leat__frame_row(const leat__frame *f, uint32_t c, uint32_t row)
{
    LEAT_ASSERT(c < f->shape->count && row < f->rows);
    const leat_tensor *t = &f->tensors[c];
    if (t->offsets == NULL) return (uint8_t *)t->data + row * f->row_bytes[c];
    return (uint8_t *)t->data + (uint64_t)t->offsets[row] * leat_dtype_size(t->dtype);
}

uint64_t leat__frame_moved(leat__frame *f, leat__device_pool *pool, leat__device_block *block, int32_t device)
{
    LEAT_ASSERT(f->on_device == NULL && block != NULL);
    bool ragged = false;
    for (uint32_t c = 0; c < f->shape->count; c++) {
        const leat__column *column = &f->shape->columns[c];
        if (column->kind == LEAT__COLUMN_RAGGED) ragged = true;
        else f->tensors[c].data = (void *)(uintptr_t)(block->memory + column->device_start);
    }
    f->device_pool = pool;
    f->on_device = block;
    f->batch.device = device;
    drop_tiles(f);
    if (ragged) return f->bytes;
    leat__blocks_give(f->blocks, f->memory);
    f->memory = (leat__block){0};
    f->block = NULL;
    return 0;
}

void leat__frame_note(leat__frame *f, leat__bad *bad)
{
    LEAT_ASSERT(bad->row < f->rows);
    leat__bad *head = atomic_load(&f->bad);
    do {
        bad->next = head;
    } while (!atomic_compare_exchange_weak(&f->bad, &head, bad));
}

void leat__frame_take_arena(leat__frame *f, leat__blocks *blocks, uint64_t bytes)
{
    LEAT_ASSERT(f->arena.data == NULL && bytes > 0);
    f->arena_blocks = blocks;
    f->arena_memory =
        leat__blocks_take_unpaid(blocks, leat__ceil_div(bytes, LEAT__FRAME_ALIGN) * LEAT__FRAME_ALIGN);
    f->arena.data = f->arena_memory.data;
    f->arena.size = f->arena.data != NULL ? f->arena_memory.bytes : 0;
    atomic_init(&f->arena.used, 0);
    atomic_init(&f->arena.missing, 0);
    atomic_init(&f->arena.gathered, 0);
}

void leat__frame_pay(leat__frame *f, uint64_t bytes)
{
    bytes = leat__blocks_pay(f->blocks, &f->memory, bytes);
    if (f->arena_blocks != NULL) bytes = leat__blocks_pay(f->arena_blocks, &f->arena_memory, bytes);
    LEAT_ASSERT(bytes == 0);
}

void leat__frame_add_tiles(leat__frame *f, leat__device_tiles *tiles)
{
    leat__device_tiles *head = atomic_load(&f->tiles);
    do {
        tiles->next = head;
    } while (!atomic_compare_exchange_weak(&f->tiles, &head, tiles));
}

uint64_t leat__frame_tile_bytes(const leat__frame *f)
{
    uint64_t bytes = f->arena_memory.asked;
    for (const leat__device_tiles *t = f->tiles; t != NULL; t = t->next) bytes += t->bytes;
    return bytes;
}

/* Sorts the list by row. Insertion sort is enough, because there are few bad samples. */
static leat__bad *sorted(leat__bad *list)
{
    leat__bad *head = NULL;
    while (list != NULL) {
        leat__bad *b = list, **at = &head;
        list = list->next;
        while (*at != NULL && (*at)->row < b->row) at = &(*at)->next;
        b->next = *at;
        *at = b;
    }
    return head;
}

/* Returns the number of elements of one row of a ragged column, before the frame is finished. */
static int64_t used_of(const leat__frame *f, uint32_t c, uint32_t row)
{
    LEAT_ASSERT(c < f->shape->count && row < f->rows);
    const uint32_t shrinks = f->shape->columns[c].shrinks;
    const int64_t *offsets = f->tensors[c].offsets;
    if (shrinks > 0) return f->used[(size_t)(shrinks - 1) * f->rows + row];
    return offsets[row + 1] - offsets[row];
}

void leat__column_fill(const leat__column *c, int64_t i, double f, uint8_t *row)
{
    LEAT_ASSERT(leat_dtype_size(c->tensor.dtype) > 0);
    const uint32_t size = leat_dtype_size(c->tensor.dtype);
    float single = (float)f;
    uint16_t half;

    for (uint64_t at = 0; at + size <= c->row_bytes; at += size) {
        switch (c->tensor.dtype) {
        case LEAT_DTYPE_F64: memcpy(row + at, &f, size); break;
        case LEAT_DTYPE_F32: memcpy(row + at, &single, size); break;
        case LEAT_DTYPE_F16:
            half = leat__f16_of(single);
            memcpy(row + at, &half, size);
            break;
        case LEAT_DTYPE_BF16:
            half = leat__bf16_of(single);
            memcpy(row + at, &half, size);
            break;
        default: memcpy(row + at, &i, size); /* little-endian: the low bytes */
        }
    }
}

void leat__frame_used(leat__frame *f, uint32_t c, uint32_t row, uint64_t elements)
{
    LEAT_ASSERT(c < f->shape->count && row < f->rows && f->shape->columns[c].shrinks > 0);
    f->used[(size_t)(f->shape->columns[c].shrinks - 1) * f->rows + row] = (int64_t)elements;
}

/* Moves row `from` of every array to row `to` (to <= from); ragged ends are kept in offsets. */
static void move_row(leat__frame *f, uint32_t to, uint32_t from, int64_t *ragged_end)
{
    LEAT_ASSERT(to <= from && from < f->rows);
    for (uint32_t c = 0; c < f->shape->count; c++) {
        leat_tensor *t = &f->tensors[c];
        const leat__column *column = &f->shape->columns[c];
        if (column->kind != LEAT__COLUMN_RAGGED) {
            if (to != from)
                memmove((uint8_t *)t->data + to * f->row_bytes[c],
                        (uint8_t *)t->data + from * f->row_bytes[c], f->row_bytes[c]);
            continue;
        }
        int64_t *offsets = (int64_t *)t->offsets, size = leat_dtype_size(t->dtype);
        int64_t start = offsets[from], length = used_of(f, c, from);
        memmove((uint8_t *)t->data + ragged_end[c] * size, (uint8_t *)t->data + start * size,
                (size_t)(length * size));
        offsets[to] = ragged_end[c];
        ragged_end[c] += length;
        if (column->ragged_ndim > 0)
            memmove((int64_t *)t->ragged_shapes + (uint64_t)to * column->ragged_ndim,
                    t->ragged_shapes + (uint64_t)from * column->ragged_ndim,
                    column->ragged_ndim * sizeof(int64_t));
    }
    f->ids[to] = f->ids[from];
    if (f->hashes != NULL) f->hashes[to] = f->hashes[from];
}

/* Moves the rows from `from` on to the front, without the dropped ones (NULL: none). */
static void close_ranks(leat__frame *f, uint32_t from, uint32_t samples, const bool *dropped)
{
    LEAT_ASSERT(from <= samples && samples <= f->rows);
    int64_t *end = f->ragged_end;
    uint32_t kept = 0;

    memset(end, 0, f->shape->count * sizeof *end);
    for (uint32_t row = from; row < samples; row++) {
        if (dropped == NULL || !dropped[row]) move_row(f, kept++, row, end);
    }
    for (uint32_t c = 0; c < f->shape->count; c++) {
        leat_tensor *t = &f->tensors[c];
        if (t->offsets != NULL) ((int64_t *)t->offsets)[kept] = end[c];
        t->shape[0] = t->offsets != NULL ? end[c] : kept;
    }
    f->batch.samples = kept;
    LEAT_ASSERT(kept <= samples - from);
}

void leat__frame_finish(leat__frame *f)
{
    uint32_t bad = 0;

    f->bad = sorted(f->bad);
    for (leat__bad *b = f->bad; b != NULL; b = b->next) bad++;
    f->batch.bad = bad;
    bool any = false;
    for (uint32_t row = 0; row < f->rows; row++) any |= f->dropped[row];
    /* rows move only once; mixing calls leat__frame_used again for shrinking columns */
    if (any || f->shape->shrinking > 0) close_ranks(f, 0, f->rows, f->dropped);
    for (uint32_t c = 0; c < f->shape->count; c++) {
        leat_tensor *t = &f->tensors[c];
        if (t->offsets != NULL) t->shape[0] = t->offsets[f->batch.samples];
    }
}

void leat__frame_skip(leat__frame *f, uint32_t rows)
{
    uint32_t gone = 0;

    if (rows == 0) return;
    for (uint32_t row = 0; row < rows; row++) gone += !f->dropped[row];
    close_ranks(f, gone, f->batch.samples, NULL);
    for (leat__bad *b; (b = f->bad) != NULL && b->row < rows; f->batch.bad--) {
        f->bad = b->next;
        leat__free(b);
    }
    f->batch.position += rows;
    f->batch.rows -= rows;
}

int leat__fail_absent(const char *field, leat_error *err)
{
    return leat__fail(err, LEAT_EDATA,
                      "field '%s' is absent: write a value, leave the field out of the batch, or use "
                      "`on_error` skip",
                      field);
}

const leat__size *leat__frame_size_of(const leat__frame *f, uint32_t of, uint32_t row)
{
    return &f->sizes[(size_t)of * f->rows + row];
}

/* Returns the decoded bytes of a row. */
static uint64_t value_bytes(const leat__frame *f, uint32_t c, uint32_t row)
{
    const leat__column *column = &f->shape->columns[c];
    const uint64_t size = leat_dtype_size(column->tensor.dtype);

    if (f->tensors[c].offsets != NULL) return (uint64_t)used_of(f, c, row) * size;
    if (!leat__column_padded(column)) return f->row_bytes[c];
    if (column->sizing == LEAT__SIZING_SEEN) return 0; /* implied by the size */
    const leat__size *own = leat__frame_size_of(f, column->of, row);
    return (uint64_t)own->width * own->height * LEAT_MAX(column->channels, 1u) * size;
}

uint64_t leat__frame_hash(const leat__frame *f, uint32_t row)
{
    uint64_t h = leat__hash64(&f->ids[row], sizeof f->ids[row], 0);
    for (uint32_t c = 0; c < f->shape->count; c++) {
        const uint64_t dims = f->shape->columns[c].ragged_ndim;
        h = leat__hash64(leat__frame_row(f, c, row), value_bytes(f, c, row), h);
        if (dims > 0) h = leat__hash64(f->tensors[c].ragged_shapes + row * dims, dims * sizeof(int64_t), h);
    }
    return h;
}
