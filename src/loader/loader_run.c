/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and decodes runs; run_read.c reads their samples.
 */
#include "loader/loader_run.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/str.h"
#include "io/remote.h"
#include "loader/run_list.h"
#include "loader/run_read.h"
#include "loader/spread.h"
#include "pack/reader.h"
#include "pack/schema.h"
#include "probe/meter.h"

#define REPLACE_TRIES 16
#define STORAGE_TRIES 3         /* candidates for which remote storage fails before the epoch ends */
#define SAMPLE_FN_STREAM 0xffff /* stream of random numbers that no op uses */

static _Atomic uint64_t all_decode_ns; /* for all loaders of the process */

uint64_t leat__run_decode_ns_all(void)
{
    return atomic_load_explicit(&all_decode_ns, memory_order_relaxed);
}

/* ---- plan -------------------------------------------------------------------------------- */

/* Returns the memory to decode the images of a sample, one at a time: that of the largest. */
static uint64_t scratch_of(const leat__run_env *env, const leat_pack_cell *cells)
{
    uint64_t most = 0;
    for (uint32_t g = 0; g < env->group_count; g++) {
        const leat__image_group *group = &env->groups[g];
        uint64_t bytes = leat__scratch_bytes(&cells[group->cell], &group->use);
        most = LEAT_MAX(most, bytes);
    }
    for (uint32_t i = 0; i < env->follow.count; i++) {
        if (env->follow.list[i].role != LEAT__ROLE_MASK) continue;
        const leat__scratch_use held = {.views = 2}; /* the visible part is held as decoded */
        most = LEAT_MAX(most, leat__scratch_bytes(&cells[env->follow.list[i].cell], &held));
    }
    return most;
}

/* Fails a sample that does not fit the whole budget, which would otherwise wait indefinitely. */
static void check_scratch(const leat__run_env *env, leat__run_sample *s)
{
    s->scratch = scratch_of(env, s->cells);
    if (s->scratch <= LEAT__WORKER_RAM) return;
    uint64_t beyond = s->scratch - LEAT__WORKER_RAM;
    if (beyond <= env->scratch_most) return;
    leat_error why;
    const leat_pack_image *i = &s->cells[env->groups[0].cell].image;
    leat__run_sample_fail(s,
                          leat__fail(&why, LEAT_EBUDGET,
                                     "decoding an image of %ux%u may take %s, for which `memory` must "
                                     "be at least %s",
                                     i->width, i->height, leat__as_size(s->scratch).text,
                                     leat__as_size(env->scratch_rest + beyond).text),
                          &why);
}

/* True when the device has the sample's bytes, or reads them from the cache. */
static bool is_listed(const leat__run_env *env, const leat__run_sample *s)
{
    return leat__run_is_resident(env, s->id) ||
           (env->reader != NULL && leat__cache_has(env->cache, s->row.page));
}

/* Charges the run for its samples. Samples resident on the device are read one at a time if the CPUs have to
 * decode them after all. A sample that is dropped from the cache before its use is not charged. */
static void charge(leat__run *r)
{
    uint64_t hand = 0;
    r->encoded_bytes = r->scratch_bytes = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const leat__run_sample *s = &r->sample[i];
        if (s->rc != 0) continue;
        const uint64_t bytes = leat__run_sample_bytes(s);
        if (!s->listed) r->encoded_bytes += bytes;
        else if (r->env->cache == NULL) hand = LEAT_MAX(hand, bytes);
        if (s->scratch > LEAT__WORKER_RAM)
            r->scratch_bytes = LEAT_MAX(r->scratch_bytes, s->scratch - LEAT__WORKER_RAM);
    }
    r->encoded_bytes += hand;
}

int leat__run_open(leat__run **out, leat__run_env *env, const uint64_t *ids, const uint64_t *salts,
                   uint32_t count, leat_error *err)
{
    LEAT_ASSERT(count > 0);
    size_t cells = env->field_count * sizeof(leat_pack_cell);
    size_t bytes = sizeof(leat__run) + count * (sizeof(leat__run_sample) + cells);
    leat__run *r = leat__zalloc(LEAT__MEM_LOADER, bytes);

    *out = r;
    if (r == NULL) return leat__fail_nomem(err, bytes, "a run");
    r->env = env;
    r->count = count;
    for (uint32_t i = 0; i < count; i++) {
        leat__run_sample *s = &r->sample[i];
        leat_error why;
        s->run = r;
        s->id = ids[i];
        s->salt = salts[i];
        s->cells = (leat_pack_cell *)(r->sample + count) + (size_t)i * env->field_count;
        int rc = leat_pack_look(env->pack, s->id, &s->row, env->fields, env->field_count, s->cells, &why);
        if (rc == 0 && (env->cache != NULL || env->ahead != NULL))
            rc = leat_pack_page_info(env->pack, s->row.page, &s->page, &why);
        if (rc != 0) {
            leat__run_sample_fail(s, rc, &why);
            continue;
        }
        s->listed = is_listed(env, s);
        check_scratch(env, s);
    }
    charge(r);
    return 0;
}

void leat__run_shorten(leat__run *r, uint32_t count)
{
    LEAT_ASSERT(count > 0 && count <= r->count && r->task == NULL);
    for (uint32_t i = count; i < r->count; i++) leat__free(r->sample[i].error);
    r->count = count;
    charge(r);
}

static void drop_encoded(leat__run *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        leat__run_sample *s = &r->sample[i];
        if (s->cached != NULL) leat__cache_unpin(r->env->cache, s->cached);
        s->cached = NULL;
        leat__blocks_give(r->env->blocks, s->direct);
        s->direct = (leat__block){0};
        s->data = NULL;
    }
    leat__blocks_give(r->env->blocks, r->buf);
    leat__blocks_give(r->env->blocks, r->hand);
    r->buf = r->hand = (leat__block){0};
}

void leat__run_close(leat__run *r)
{
    if (r == NULL) return;
    drop_encoded(r);
    for (uint32_t i = 0; i < r->count; i++) leat__free(r->sample[i].error);
    leat__frame_unref(r->frame);
    leat__free(r);
}

/* ---- decode ------------------------------------------------------------------------------ */

/* A sample whose bytes are in memory. */
typedef struct found {
    uint64_t id, salt;
    uint32_t shard;
    const leat_pack_cell *cells;
    const uint8_t *bytes; /* NULL: its images are resident on the device, and nothing else is needed */
    uint64_t size, wanted, attempt; /* the last two as in leat__device_id */
    uint64_t mapped;                /* address at which the device can read `bytes`; 0: none */
} found;
#define id_of(from) ((leat__device_id){(from)->id, (from)->salt, (from)->wanted, (from)->attempt})

static const void *tables_of(const leat__run_env *env, const found *from)
{
    return env->tables[leat__pack_part_of_shard(env->pack, from->shard)];
}

leat__draw_key leat__sample_key(const leat__run_env *env, uint64_t id, uint64_t salt)
{
    uint64_t seed = salt == 0 ? env->seed : env->seed ^ leat__mix64(salt);
    return (leat__draw_key){.seed = seed, .epoch = env->epoch, .sample = id};
}

static leat__draw_key key_of(const leat__run_env *env, const found *from)
{
    return leat__sample_key(env, from->id, from->salt);
}

/* Checks that an image has the size in the index, with which the batch was planned. */
static int check_size(const leat_pack_cell *cell, const leat__image_info *info, leat_error *err)
{
    if (info->width == cell->image.width && info->height == cell->image.height) return 0;
    return leat__fail(err, LEAT_EDATA, "the image is %ux%u, but %ux%u in the index", info->width,
                      info->height, cell->image.width, cell->image.height);
}

static int make_images(leat__run *r, const leat__image_group *g, leat__run_worker *w, const found *from,
                       const leat__draw_key *key, uint32_t row, leat_error *err)
{
    const leat__run_env *env = r->env;
    const leat_pack_cell *cell = &from->cells[g->cell];
    leat__image_info info;
    void *out[LEAT__RUN_MAX];

    if (cell->absent || cell->length == 0)
        return leat__fail_absent(leat_pack_field(env->pack, g->field)->name, err);
    const uint8_t *data =
        from->bytes != NULL ? from->bytes + cell->start : leat__run_header(env, g, from->id);
    LEAT_TRY(leat__codec_probe((leat__codec_id)cell->image.codec, data, cell->length, &info, err));
    if (r->frame->shape->sized > 0) LEAT_TRY(check_size(cell, &info, err));
    leat__encoded image = {.info = &info,
                           .data = data,
                           .len = cell->length,
                           .tables = tables_of(env, from),
                           .orientation = cell->image.orientation};
    if (env->orientation == LEAT_ORIENTATION_IGNORE) image.orientation = 1;
    if (from->bytes != NULL)
        image.entries = leat__cell_entries(cell, from->bytes, from->size, &image.entries_len);
    if (r->on_device) {
        bool taken = false;
        const leat__run_image listed = {.encoded = &image,
                                        .mapped = from->mapped != 0 ? from->mapped + cell->start : 0,
                                        .id = id_of(from),
                                        .row = row};
        LEAT_TRY(leat__run_list(r, g, w, &listed, key, &taken, err));
        if (taken) return 0;
        if (from->bytes == NULL) return LEAT_EAGAIN; /* its bytes are needed, but were not read */
    }
    if (g->count == 1)
        return leat__pipeline_run(g->pipelines[0], w->pipeline, &image, key,
                                  leat__frame_row(r->frame, g->columns[0], row), err);
    LEAT_ASSERT(g->count <= LEAT__RUN_MAX);
    for (uint32_t v = 0; v < g->count; v++) out[v] = leat__frame_row(r->frame, g->columns[v], row);
    return leat__pipeline_run_views(g->pipelines, g->count, w->pipeline, &image, key, out, err);
}

/* Writes a label as one float per class. */
static int write_one_hot(const leat__column *column, int64_t label, float *row, leat_error *err)
{
    const int64_t classes = column->tensor.shape[1];

    if (label < 0 || label >= classes)
        return leat__fail(err, LEAT_EDATA, "field '%s': label %lld is not one of %lld classes",
                          column->tensor.name, (long long)label, (long long)classes);
    memset(row, 0, column->row_bytes);
    LEAT_ASSERT((uint64_t)classes * sizeof *row == column->row_bytes);
    row[label] = 1;
    return 0;
}

/* Copies a plain field into its row. */
static int copy_field(const leat__run *r, uint32_t c, const found *from, uint32_t row, leat_error *err)
{
    const leat__column *column = &r->frame->shape->columns[c];
    const leat_field *field = leat_pack_field(r->env->pack, column->field);
    const leat_pack_cell *cell = &from->cells[column->cell];
    void *out = leat__frame_row(r->frame, c, row);

    if (column->sizing == LEAT__SIZING_NOTE) {
        const leat__size *own = leat__frame_size_of(r->frame, column->of, row);
        memcpy(out, (int64_t[2]){own->height, own->width}, 2 * sizeof(int64_t));
        return 0;
    }
    if (column->kind == LEAT__COLUMN_ONE_HOT) return write_one_hot(column, cell->i, out, err);
    if (column->kind == LEAT__COLUMN_LAMBDA) {
        memcpy(out, &(float){1}, sizeof(float));
    } else if (field->type == LEAT_FIELD_INT) {
        memcpy(out, &cell->i, sizeof cell->i);
    } else if (field->type == LEAT_FIELD_FLOAT) {
        memcpy(out, &cell->f, sizeof cell->f);
    } else if (column->kind == LEAT__COLUMN_FIXED) {
        if (cell->absent && cell->reserved != 0) {
            leat__column_fill(column, cell->i, cell->f, out);
            return 0;
        }
        if (cell->absent || cell->length != column->row_bytes) return leat__fail_absent(field->name, err);
        memcpy(out, from->bytes + cell->start, cell->length);
    } else if (!cell->absent) {
        /* a ragged array has its shape, one u64 per dimension, before its elements */
        uint64_t lead = field->type == LEAT_FIELD_RAGGED ? leat__field_shape_bytes(field) : 0;
        const leat_tensor *t = &r->frame->tensors[c];
        uint64_t room = (uint64_t)(t->offsets[row + 1] - t->offsets[row]) * leat_dtype_size(t->dtype);
        if (cell->length < lead || cell->length - lead != room)
            return leat__fail(err, LEAT_EDATA, "field '%s' has %llu bytes, not %llu", field->name,
                              (unsigned long long)cell->length, (unsigned long long)(room + lead));
        if (field->type == LEAT_FIELD_RAGGED) {
            int64_t *shape = (int64_t *)t->ragged_shapes + (uint64_t)row * column->ragged_ndim;
            uint64_t size = leat_dtype_size(t->dtype);
            memcpy(shape, from->bytes + cell->start, column->ragged_ndim * sizeof *shape);
            for (uint32_t d = 0; d < column->ragged_ndim; d++) {
                if (shape[d] < 0 || !leat__mul_u64(size, (uint64_t)shape[d], &size)) size = UINT64_MAX;
            }
            if (size != room)
                return leat__fail(err, LEAT_EDATA, "field '%s': shape does not match the size", field->name);
        }
        memcpy(out, from->bytes + cell->start + lead, room);
    } else if (field->type == LEAT_FIELD_RAGGED) {
        int64_t *shape = (int64_t *)r->frame->tensors[c].ragged_shapes + (uint64_t)row * column->ragged_ndim;
        memset(shape, 0, column->ragged_ndim * sizeof *shape); /* the memory is that of an earlier batch */
    }
    return 0;
}

/* Calls the caller's augmentation on the row, after the pipelines. */
static int call_sample_fn(const leat__run_env *env, const leat__frame *f, const found *from, uint32_t row,
                          leat_error *err)
{
    void *rows[LEAT_SAMPLE_FN_FIELDS];
    leat__rng rng;

    for (uint32_t c = 0; c < f->shape->count; c++) rows[c] = leat__frame_row(f, c, row);
    leat__rng_init(&rng, key_of(env, from).seed, env->epoch, from->id, SAMPLE_FN_STREAM);
    int answer =
        env->sample_fn(env->sample_cookie, rows, f->shape->count, from->id, env->epoch, leat__rng_u64(&rng));
    if (answer == 0) return 0;
    return leat__fail(err, LEAT_EDATA, "the sample function returned %d", answer);
}

static leat__follow_sample sample_of(const leat__run_env *env, const found *from)
{
    return (leat__follow_sample){.pack = env->pack,
                                 .cells = from->cells,
                                 .bytes = from->bytes,
                                 .tables = tables_of(env, from),
                                 .as_stored = env->orientation == LEAT_ORIENTATION_IGNORE,
                                 .key = key_of(env, from)};
}

static int fill_columns(leat__run *r, leat__run_worker *w, const found *from, uint32_t row, leat_error *err)
{
    const leat__follow *follow = &r->env->follow;
    leat__follow_sample sample = sample_of(r->env, from);
    leat__frame *f = r->frame;

    LEAT_TRY(leat__follow_guide(follow, &w->follow, &sample, err));
    for (uint32_t g = 0; g < r->env->group_count; g++)
        LEAT_TRY(make_images(r, &r->env->groups[g], w, from, &sample.key, row, err));
    for (uint32_t c = 0; c < f->shape->count; c++) {
        const leat__column *column = &f->shape->columns[c];
        bool copied = column->sizing == LEAT__SIZING_ONE || column->sizing == LEAT__SIZING_NOTE;
        if (column->kind != LEAT__COLUMN_IMAGE && !column->follows && copied)
            LEAT_TRY(copy_field(r, c, from, row, err));
    }
    if (follow->count > 0) LEAT_TRY(leat__follow_fill(follow, &w->follow, w->pipeline, &sample, f, row, err));
    f->ids[row] = from->id;
    if (r->env->sample_fn != NULL) LEAT_TRY(call_sample_fn(r->env, f, from, row, err));
    if (f->hashes != NULL && !r->env->mixed) f->hashes[row] = leat__frame_hash(f, row);
    leat__spread_row(f, row);
    return 0;
}

/* Fills a row. On failure, what it listed for the device is dropped. */
static int fill_row(leat__run *r, leat__run_worker *w, const found *from, uint32_t row, leat_error *err)
{
    leat__run_list_mark mark = leat__run_list_marked(w);
    int rc = fill_columns(r, w, from, row, err);
    if (rc != 0) leat__run_list_rewind(r->env, w, mark);
    return rc;
}

static int try_sample(leat__run *r, leat__run_worker *w, uint32_t i, leat_error *err)
{
    leat__run_sample *s = &r->sample[i];

    if (s->rc != 0) {
        if (s->error != NULL) *err = *s->error;
        else leat__fail(err, s->rc, "sample %llu: %s", (unsigned long long)s->id, leat_code_text(s->rc));
        return s->rc;
    }
    if (r->on_device && leat__run_is_resident(r->env, s->id)) {
        const found there = {s->id, s->salt, s->row.shard, s->cells, NULL, s->row.size};
        int rc = fill_row(r, w, &there, r->first + i, err);
        if (rc != LEAT_EAGAIN) return rc;
    }
    LEAT_TRY(leat__run_sample_get(s, w, err));
    const found from = {.id = s->id,
                        .salt = s->salt,
                        .shard = s->row.shard,
                        .cells = s->cells,
                        .bytes = s->data,
                        .size = s->row.size,
                        .mapped = leat__run_list_mapped(r, w, s)};
    return fill_row(r, w, &from, r->first + i, err);
}

/* Adds everything needed to find the sample to the error. */
static void describe(leat__run *r, uint64_t id, leat_error *err)
{
    char key[sizeof err->key];
    int64_t offset = err->offset;
    size_t size;

    if (leat_pack_key(r->env->pack, id, key, sizeof key, &size, NULL) != 0) key[0] = '\0';
    if (key[0] != '\0' && strstr(err->message, key) == NULL)
        leat__error_context(err, "sample %llu (%s)", (unsigned long long)id, key);
    uint32_t part = leat__pack_part_of_sample(r->env->pack, id);
    const char *path = leat_pack_path(leat_pack_part(r->env->pack, part, NULL));
    if (strstr(err->message, path) == NULL) leat__error_context(err, "%s", path);
    leat__error_at(err, key, (int64_t)id, offset);
}

/* Records sample `id` of `row` as bad, for the reason `why`. */
static int note(leat__run *r, uint64_t id, uint32_t row, leat_error *why, leat_error *err)
{
    leat__bad *bad = leat__alloc(LEAT__MEM_LOADER, sizeof *bad);

    if (bad == NULL) return leat__fail_nomem(err, sizeof *bad, "a bad sample's note");
    describe(r, id, why);
    *bad = (leat__bad){.row = row, .sample = id, .error = *why};
    leat__frame_note(r->frame, bad);
    return 0;
}

/* Puts a replacement into `row`, if decoding it takes at most `room` bytes. `cells` is scratch for its index
 * entries. */
static int stand_in(leat__run *r, leat__run_worker *w, leat__device_id which, leat_pack_cell *cells,
                    uint64_t room, uint32_t row, leat_error *err)
{
    const uint64_t id = which.sample;
    leat__run_env *env = r->env;
    leat_pack_row place;

    LEAT_TRY(leat_pack_look(env->pack, id, &place, env->fields, env->field_count, cells, err));
    /* no more than was charged; the decision must be the same on every run */
    if (scratch_of(env, cells) > LEAT_MAX(room, LEAT__WORKER_RAM))
        return leat__fail(err, LEAT_EDATA, "too large to replace a bad sample");
    leat__buf_clear(&w->spare);
    if (leat__buf_zeros(&w->spare, place.size + LEAT_PACK_PADDING) != 0)
        return leat__fail_nomem(err, place.size + LEAT_PACK_PADDING, "a sample that replaces a bad one");
    LEAT_TRY(leat_pack_read(env->pack, id, w->spare.data, w->spare.len, err));
    const found from = {id,         which.salt,   place.shard,  cells, (const uint8_t *)w->spare.data,
                        place.size, which.wanted, which.attempt};
    return fill_row(r, w, &from, row, err);
}

/* True when remote storage failed after all retries, which does not mean that the sample is bad. */
static bool storage_failed(const leat__run_env *env, int rc)
{
    return env->remote && leat__remote_failed(rc);
}

/* Ends the epoch with the error of sample `id`, whatever the policy: its pack was replaced or removed, so no
 * sample of it can be read any more. */
static int end_epoch(leat__run *r, uint64_t id, leat_error *why, leat_error *err)
{
    describe(r, id, why);
    if (err != NULL) *err = *why;
    return why->code;
}

/* Replaces a bad sample, beginning with candidate `attempt`. The replacement is the same on every training
 * run: candidates follow from (seed, epoch, sample), and damaged ones are always skipped. A candidate that
 * failed for another reason (disk, time limit) may be available next time, so it is recorded as bad. So if a
 * row differs between two training runs, a bad sample was counted. Fails with LEAT_ENOMEM, when the pack has
 * changed, and when remote storage fails for STORAGE_TRIES candidates: all others would fail too, each after
 * its own retries. One may be in the same unreadable range as the sample. */
static int replace_sample(leat__run *r, leat__run_worker *w, uint32_t i, uint64_t attempt, leat_error *err)
{
    leat__run_env *env = r->env;
    leat__run_sample *s = &r->sample[i];
    uint32_t row = r->first + i;
    uint64_t first = 0, count = env->universe;
    uint32_t failures = 0;

    if (env->shares != NULL)
        leat__shares_range(env->shares, leat__pack_part_of_sample(env->pack, s->id), &first, &count);
    for (; attempt < REPLACE_TRIES; attempt++) {
        uint64_t draw = leat__mix64(leat__mix64(env->seed + env->epoch) ^ s->id);
        draw += attempt * 0x9e3779b97f4a7c15u;
        uint64_t at = first + (uint64_t)(((unsigned __int128)leat__mix64(draw) * count) >> 64);
        uint64_t other = env->indices != NULL ? env->indices[at] : at;
        leat_error why;
        leat__error_reset(&why);
        /* the cells of the bad sample are not needed any more */
        const leat__device_id which = {other, s->salt, s->id, attempt + 1};
        int rc = stand_in(r, w, which, s->cells, s->scratch, row, &why);
        if (rc == 0) return 0;
        if (rc == LEAT_ECHANGED) return end_epoch(r, other, &why, err);
        const bool outage = storage_failed(env, rc) && ++failures == STORAGE_TRIES;
        if (outage) {
            describe(r, other, &why);
            leat__error_context(&why,
                                "the storage fails: neither sample %llu nor its replacements can be read",
                                (unsigned long long)s->id);
        }
        if (rc == LEAT_ENOMEM || outage) {
            if (err != NULL) *err = why;
            return rc;
        }
        if (rc != LEAT_EDATA) LEAT_TRY(note(r, other, row, &why, err));
    }
    r->frame->ids[row] = s->id;
    r->frame->dropped[row] = true;
    return 0;
}

static int judge(leat__run *r, leat__run_worker *w, uint32_t i, leat_error *why, leat_error *err)
{
    uint32_t row = r->first + i;

    if (why->code == LEAT_ECHANGED) return end_epoch(r, r->sample[i].id, why, err);
    LEAT_TRY(note(r, r->sample[i].id, row, why, err));
    if (r->env->on_error == LEAT_ON_ERROR_REPLACE) return replace_sample(r, w, i, 0, err);
    r->frame->ids[row] = r->sample[i].id;
    r->frame->dropped[row] = true;
    return 0;
}

/* Handles running out of memory although the budget had room (an address space limit, other processes).
 * Decodes once more, with no other thread decoding and nothing cached. */
static int try_alone(leat__run *r, leat__run_worker *w, uint32_t i, leat_error *why)
{
    leat__run_env *env = r->env;

    leat__run_worker_shrink(
        w); /* before waiting, so that a waiting thread holds no memory that another needs */
    leat__gate_leave(&env->decoding);
    leat__gate_alone(&env->decoding);
    leat__blocks_trim(env->blocks);
    leat__error_reset(why);
    int rc = leat__pipeline_worker_open(&w->pipeline, why);
    if (rc == 0) rc = try_sample(r, w, i, why);
    if (rc == LEAT_ENOMEM) leat__run_worker_shrink(w);
    leat__gate_leave(&env->decoding);
    leat__gate_share(&env->decoding);
    return rc;
}

static int decode_one(leat__run *r, leat__run_worker *w, uint32_t i, leat_error *err)
{
    leat__run_sample *s = &r->sample[i];
    const leat__run_list_mark mark = leat__run_list_marked(w);
    leat_error why;

    leat__error_reset(&why);
    int rc = w->pipeline == NULL ? leat__pipeline_worker_open(&w->pipeline, &why) : 0;
    if (rc == 0) rc = try_sample(r, w, i, &why);
    if (rc == LEAT_ENOMEM) rc = try_alone(r, w, i, &why);
    if (rc == LEAT_ENOMEM) {
        if (err != NULL) *err = why;
    } else if (rc != 0) {
        rc = judge(r, w, i, &why, err);
    }
    leat__run_list_release(r, w, s, mark);
    return rc;
}

int leat__run_again(leat__run_env *env, leat__frame *f, leat__run_worker *w, leat__device_id id, uint32_t row,
                    leat_error *err)
{
    leat__run *r;
    leat_error why;
    int rc = leat__run_open(&r, env, id.attempt > 0 ? &id.wanted : &id.sample, &id.salt, 1, err);

    if (rc != 0) return rc;
    leat__frame_ref(f);
    r->frame = f;
    r->first = row;
    leat__error_reset(&why);
    leat__gate_share(&env->decoding);
    if (id.attempt > 0) { /* continue with the next candidates, as after damage found by the CPU */
        rc = replace_sample(r, w, 0, id.attempt - 1, err);
    } else if ((rc = stand_in(r, w, id, r->sample[0].cells, UINT64_MAX, row, &why)) == LEAT_ENOMEM) {
        if (err != NULL) *err = why;
    } else if (rc != 0) {
        rc = judge(r, w, 0, &why, err);
    }
    leat__gate_leave(&env->decoding);
    leat__run_close(r);
    return rc;
}

int leat__run_decode(leat__run *r, leat__run_worker *w, leat_error *err)
{
    uint64_t begin = leat__meters_now();
    int rc = 0;

    leat__run_list_begin(r, w);
    leat__gate_share(&r->env->decoding);
    for (uint32_t i = 0; i < r->count && rc == 0; i++) {
        if (atomic_load_explicit(&r->env->stop, memory_order_relaxed)) rc = LEAT_ECANCELED;
        else rc = decode_one(r, w, i, err);
        /* Extra memory for a large image was charged to this run only. It is freed after each image: between
         * smaller ones the allocator would keep parts of it. */
        if (r->sample[i].scratch > LEAT__WORKER_RAM) leat__run_worker_shrink(w);
    }
    drop_encoded(r);
    rc = leat__run_list_end(r, w, rc, err);
    leat__gate_leave(&r->env->decoding);
    uint64_t took = leat__meters_now() - begin;
    atomic_fetch_add_explicit(&r->env->decode_ns, took, memory_order_relaxed);
    atomic_fetch_add_explicit(&all_decode_ns, took, memory_order_relaxed);
    if (r->on_device) atomic_fetch_add_explicit(&r->env->list_ns, took, memory_order_relaxed);
    return rc;
}
