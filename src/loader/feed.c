/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning of runs. See feed.h.
 */
#include "loader/feed.h"

#include "base/num.h"
#include "io/file.h"
#include "loader/bounds.h"
#include "loader/page_ahead.h"
#include "loader/run_read.h"
#include "loader/sizes.h"
#include "pack/reader.h"
#include "pack/schema.h"

#define TOUCH 64u /* rows whose index entries are prefetched */

/* Returns the remaining rows of this rank in the batch of row `at`. */
static uint32_t rows_to_batch_end(const leat_loader *l, uint64_t at)
{
    uint64_t left = l->opts.batch_size - at % l->opts.batch_size;
    return (uint32_t)LEAT_MIN(left, l->feed.end - at);
}

/* Prefetches the index entries of TOUCH rows from `row` on; the batch has `rows` rows. */
static void touch_rows(const leat_loader *l, uint32_t row, uint32_t rows)
{
    if (row < rows)
        leat__pack_touch(l->pack, l->feed.ids + row, LEAT_MIN(TOUCH, rows - row), l->env.fields,
                         l->env.field_count);
}

int leat__feed_ragged(leat_loader *l, uint32_t rows, leat__frame *f, leat_error *err)
{
    const leat__shape *shape = l->env.shape;

    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        if (column->kind != LEAT__COLUMN_RAGGED || column->sizing != LEAT__SIZING_ONE) continue;
        uint32_t size = leat_dtype_size(column->tensor.dtype);
        const leat_field *field = leat_pack_field(l->pack, column->field);
        bool ragged = field->type == LEAT_FIELD_RAGGED;
        uint64_t lead = ragged ? leat__field_shape_bytes(field) : 0, sum = 0;
        uint32_t stored = ragged ? leat_dtype_size(field->dtype) : size; /* boxes become f32 */
        for (uint32_t row = 0; row < rows; row++) {
            leat_pack_cell cell;
            if (row % TOUCH == 0) touch_rows(l, row + TOUCH, rows);
            int64_t *offsets = f != NULL ? (int64_t *)f->tensors[c].offsets : NULL;
            if (offsets != NULL) offsets[row] = (int64_t)(sum / size);
            /* a damaged index entry is found again, and handled, when the row is decoded */
            if (leat_pack_cells(l->pack, column->field, l->feed.ids[row], 1, &cell, NULL) != 0 ||
                cell.absent || cell.length < lead)
                continue;
            if (!leat__add_u64(sum, (cell.length - lead) / stored * size, &sum))
                return leat__fail(err, LEAT_EOVERFLOW, "a batch is too large");
        }
        if (f != NULL) ((int64_t *)f->tensors[c].offsets)[rows] = (int64_t)(sum / size);
        if (!leat__mul_u64(sum, LEAT_MAX(column->grows, 1u), &l->feed.ragged[c]))
            return leat__fail(err, LEAT_EOVERFLOW, "a batch is too large");
    }
    return 0;
}

/* Returns the arena bytes of a batch with `rows` rows. If images stay on the device, even one row may need
 * most of them. */
static uint64_t arena_bytes(const leat_loader *l, uint32_t rows)
{
    const uint64_t full = atomic_load(&l->env.arena_bytes);
    return l->env.store != NULL ? full : full * rows / l->opts.batch_size;
}

static int start_batch(leat_loader *l, leat_error *err)
{
    leat__feed *feed = &l->feed;
    uint32_t rows = rows_to_batch_end(l, feed->at);

    leat__order_fill(l->order, feed->at * l->opts.world + l->opts.rank, l->opts.world, rows, feed->ids,
                     feed->salts);
    touch_rows(l, 0, rows);
    LEAT_TRY(leat__feed_ragged(l, rows, NULL, err));
    LEAT_TRY(leat__sizes_plan(l, rows, err));
    LEAT_TRY(leat__frame_open(&feed->frame, l->frames, rows, feed->ragged, l->env.hashes, err));
    LEAT_TRY(leat__feed_ragged(l, rows, feed->frame, err));
    leat__sizes_lay(l, feed->frame);
    if (l->env.tile_blocks != NULL && atomic_load(&l->env.device_share) > 0)
        leat__frame_take_arena(feed->frame, l->env.tile_blocks, arena_bytes(l, rows));
    feed->frame->batch.epoch = l->epoch;
    feed->frame->batch.index = feed->at / l->opts.batch_size;
    feed->frame->batch.position = feed->at;
    feed->filled = 0;
    return 0;
}

uint32_t leat__feed_uses(const leat_loader *l, const leat_pack_page *page)
{
    const uint32_t world = l->opts.world, rank = l->opts.rank;
    uint64_t begin = l->env.mixed ? l->feed.begin - l->feed.begin % l->opts.batch_size : l->feed.begin;
    uint64_t uses = 0, position;

    if (world == 1 && begin == 0) return (uint32_t)LEAT_MIN(page->samples, UINT32_MAX);
    for (uint64_t i = 0; i < page->samples; i++) {
        if (!leat__order_position(l->order, page->first + i, &position))
            return (uint32_t)LEAT_MIN(page->samples, UINT32_MAX);
        const uint64_t row = position / world;
        uses += position % world == rank && row >= begin && row < l->feed.end;
    }
    return (uint32_t)LEAT_MIN(uses, UINT32_MAX);
}

/* On the first use of a page in an epoch: announces how often it will be needed, or starts readahead into the
 * OS page cache. */
static void announce_pages(leat_loader *l, leat__run *r)
{
    if (l->env.cache == NULL && l->env.ahead == NULL) return;
    for (uint32_t i = 0; i < r->count; i++) {
        leat__run_sample *s = &r->sample[i];
        if (s->rc != 0) continue;
        uint8_t *seen = &l->page_seen[s->row.page / 8], bit = (uint8_t)(1u << s->row.page % 8);
        if (*seen & bit) {
            s->uses = 0;
            s->counted =
                l->page_ahead != NULL && leat__page_ahead_used(l->page_ahead, s->row.page, s->page.bytes);
            continue;
        }
        *seen |= bit;
        if (l->env.cache != NULL) s->uses = leat__feed_uses(l, &s->page);
        if (l->env.ahead != NULL &&
            leat__readahead_push(l->env.ahead, leat__pack_file(l->pack, s->page.shard), s->page.offset,
                                 s->page.bytes) == LEAT_EAGAIN)
            leat__readahead_consume(l->env.ahead, 1024);
    }
}

/* Returns the length of the next run. Runs are short when all workers should finish together: for the first
 * batch, because the caller waits, and for the last one, because no other work follows. */
static uint32_t run_length(const leat_loader *l)
{
    const leat__frame *f = l->feed.frame;
    bool edge = f->batch.position == l->started_at || f->batch.position + f->rows == l->feed.end;
    bool listed = l->env.tile_blocks != NULL && atomic_load(&l->env.device_share) == LEAT__SHARE_WHOLE;
    uint32_t most = listed ? l->run_listed : l->run_samples;
    if (edge) most = LEAT_MAX(1, most / 4);
    return LEAT_MIN(most, f->rows - l->feed.filled);
}

/* Returns the bytes of the batch that a run is charged for: those of its rows, and its part of the tiles. */
static uint64_t share_of(const leat__frame *f, uint32_t first, uint32_t count)
{
    const uint64_t bytes = f->bytes + f->arena_memory.asked;
    if (f->at_once) return first == 0 ? bytes : 0;
    return bytes * (first + count) / f->rows - bytes * first / f->rows;
}

/* Returns after how many samples the run is full. Samples that the host does not touch only cost lists. */
static uint32_t full_after(const leat_loader *l, const leat__run *r)
{
    const uint32_t most = LEAT_MAX(leat__run_samples(l->opts.batch_size, 1, l->info.max_sample_bytes), 1u);
    uint64_t bytes = 0;
    uint32_t touched = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const leat__run_sample *s = &r->sample[i];
        if (s->listed) continue;
        bytes += l->env.disk != NULL ? s->page.bytes : s->row.size; /* maximum bytes that may be read */
        if (bytes > LEAT__RUN_TARGET || ++touched == most) return i + 1;
    }
    return r->count;
}

/* Plans one run: up to run_samples or run_listed samples, fewer when they are large. */
static int plan_run(leat_loader *l, leat_error *err)
{
    leat__feed *feed = &l->feed;
    leat__run *r;

    leat__page_ahead_look(l);
    if (feed->frame == NULL) LEAT_TRY(start_batch(l, err));
    leat__loader_bound_scratch(l);
    uint32_t left = feed->frame->rows - feed->filled, count = run_length(l);
    touch_rows(l, feed->filled + count, feed->frame->rows); /* the run after this one */
    LEAT_TRY(leat__run_open(&r, &l->env, feed->ids + feed->filled, feed->salts + feed->filled, count, err));
    count = full_after(l, r);
    if (count < r->count) leat__run_shorten(r, count);
    announce_pages(l, r);
    r->first = feed->filled;
    r->last = count == left;
    r->frame = feed->frame;
    r->share_bytes = share_of(feed->frame, r->first, count);
    if (feed->frame->arena_blocks != NULL) r->list_bytes = count * LEAT__LIST_BYTES + LEAT__LIST_LARGE;
    feed->filled += count;
    feed->at += count;
    if (r->last) feed->frame = NULL; /* the run takes over the feed's reference */
    else leat__frame_ref(feed->frame);
    feed->next = r;
    feed->next_bytes = r->encoded_bytes + r->share_bytes + r->scratch_bytes + r->list_bytes;
    return 0;
}

void leat__feed_plan(leat_loader *l)
{
    leat__feed *feed = &l->feed;
    feed->next_bytes = 0;
    if (feed->rc == 0 && feed->at < feed->end) feed->rc = plan_run(l, &feed->error);
}
