/* SPDX-License-Identifier: Apache-2.0
 *
 * The copying thread: see to_device.h. Up to FLIGHTS batches are in flight, so that neither the
 * bus nor the device waits for this thread.
 */
#include "loader/to_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "loader/device_mix.h"
#include "loader/device_trace.h"
#include "probe/trace.h"

#define FLIGHTS LEAT__DECODE_SLOTS
#define RING (FLIGHTS + 1) /* one more, because the events of the last finished batch are still used */
_Static_assert(LEAT__DECODE_LANES < LEAT__TRACE_STREAMS, "copies and lanes have rows of the trace");
#define LEAST_BATCHES 2 /* one held by the consumer, one in flight */
#define RECENT 8u
#define RETRY_NS (5 * LEAT_NS_PER_MS)
#define POLL_NS (LEAT_NS_PER_MS / 20)

/* A batch whose copies are queued. */
typedef struct flight {
    leat__frame *frame;
    leat_task *task;
    leat__device_block *block;
    leat__gpu_event *begin;   /* start of its copies */
    leat__device_marks marks; /* start: only if the device decodes */
    leat__device_job job;     /* if the device decodes rows of it */
    bool decodes;
    uint32_t slot;
    uint64_t begin_ns, bytes;
} flight;

typedef struct pushed {
    struct pushed *next;
    leat__frame *frame;
    leat_task *task;
} pushed;

struct leat__to_device {
    leat__gpu *gpu;
    leat__gpu_stream *stream;
    leat__device_pool *pool;
    uint64_t frame_bytes;
    leat__device_decoder *decoder; /* NULL: batches are only copied */
    leat__run_env *env;
    leat__run_worker *worker; /* decodes damaged samples */
    const leat__mixing *mixing;
    leat_job_mix *mixes; /* arrays of a batch to mix */
    leat__device_store *store;
    leat__thread thread;
    flight flights[RING]; /* used only by the thread, like the next five */
    leat__device_trace trace;
    uint32_t first, count;
    uint32_t next_slot;
    uint64_t landed;  /* batches finished since the device was idle */
    leat__mutex lock; /* guards the rest */
    leat__cond changed;
    pushed *waiting;
    uint64_t next; /* the next batch in order */
    bool canceled, closed;
    _Atomic(leat__shortage) starved; /* why a batch waits for the consumer */
    _Atomic uint64_t needs;          /* how many bytes that batch needs; set before `starved` */
    _Atomic bool hurry;              /* the consumer waits for that batch */
    _Atomic bool cramped;            /* the CPUs decoded a batch because the device had no room */
    uint64_t copied_bytes, copy_ns, wait_ns, decoded, decode_ns, overlap_ns;
    struct {
        uint64_t images, decoded;
    } recent[RECENT]; /* batches */
    uint32_t recent_at;
};

/* ---- one batch ---- */

static bool is_canceled(leat__to_device *d)
{
    leat__mutex_lock(&d->lock);
    bool canceled = d->canceled;
    leat__mutex_unlock(&d->lock);
    return canceled;
}

/* Fails a request for `bytes` when no memory can be released any more. */
static int give_up(const leat__to_device *d, const leat__device_pool_stats *stats, uint64_t bytes,
                   leat_error *err)
{
    char needs[24], limit[24];
    leat__format_bytes(bytes, needs, sizeof needs);
    leat__format_bytes(stats->limit, limit, sizeof limit);
    if (stats->full)
        return leat__fail(err, LEAT_ENOMEM,
                          "device %d has no free memory: a batch needs %s, `device_memory` would allow %s",
                          (int)leat__to_device_index(d), needs, limit);
    return leat__fail(err, LEAT_EBUDGET,
                      "`device_memory`: %s, but a batch needs %s there (a smaller `batch_size` needs less)",
                      limit, needs);
}

/* Called when nothing is in flight and `bytes` were refused; `left` is the pool's state after that. Waits
 * until a block may have been released. Fails when none can be. */
static int wait_for_memory(leat__to_device *d, const leat__device_pool_stats *left, uint64_t bytes,
                           leat_error *err)
{
    leat__shortage why = LEAT__ENOUGH;
    if (is_canceled(d)) return LEAT_ECANCELED;
    if (left->lent == 0 && left->idle == 0) return give_up(d, left, bytes, err);
    if (left->idle == 0) why = left->full ? LEAT__DEVICE_FULL : LEAT__ALL_BORROWED;
    atomic_store(&d->needs, bytes);
    atomic_store(&d->starved, why);
    leat__device_pool_wait(d->pool, leat__clock_ns() + RETRY_NS);
    return 0;
}

/* Waits for device memory; LEAT_ECANCELED when the batch is no longer needed. Memory kept for decoding is
 * freed only when the consumer waits too, because allocating it again takes time. */
static int wait_for_block(leat__to_device *d, leat__device_block **block, leat_error *err)
{
    const uint64_t begin = leat__clock_ns();
    leat__device_pool_stats left;
    bool keeps = d->decoder != NULL;
    int rc;
    while ((rc = leat__device_pool_take(d->pool, d->frame_bytes, d->stream, block, err)) == LEAT_EAGAIN) {
        leat__device_pool_read(d->pool, &left);
        const bool nothing_comes = left.lent == 0 && left.idle == 0;
        if (keeps && (nothing_comes || atomic_exchange(&d->hurry, false))) {
            leat__device_decoder_trim(d->decoder);
            keeps = false;
        } else if ((rc = wait_for_memory(d, &left, d->frame_bytes, err)) != 0) {
            break;
        }
    }
    atomic_store(&d->starved, LEAT__ENOUGH);
    leat__mutex_lock(&d->lock);
    d->wait_ns += leat__clock_ns() - begin;
    leat__mutex_unlock(&d->lock);
    return rc;
}

/* True when the device decodes all rows of column c. */
static bool made_there(const leat__frame *f, uint32_t c)
{
    uint32_t rows = 0;
    if (f->shape->columns[c].kind != LEAT__COLUMN_IMAGE) return false;
    for (const leat__device_tiles *t = f->tiles; t != NULL; t = t->next)
        for (uint32_t i = 0; i < t->image_count; i++) rows += t->images[i].column == c;
    return rows == f->rows;
}

static int copy_columns(leat__to_device *d, flight *f, bool all, leat_error *err)
{
    const leat__frame *frame = f->frame;
    for (uint32_t c = 0; c < frame->shape->count; c++) {
        const leat__column *column = &frame->shape->columns[c];
        uint64_t bytes = column->row_bytes * frame->batch.samples;
        if (column->kind == LEAT__COLUMN_RAGGED || (!all && made_there(frame, c))) continue;
        LEAT_TRY(leat__gpu_copy_in(d->stream, f->block->memory + column->device_start, frame->tensors[c].data,
                                   bytes, err));
        f->bytes += bytes;
    }
    return 0;
}

/* Queues all work of a batch: copies, kernels and events. */
static int queue(leat__to_device *d, flight *f, leat_error *err)
{
    f->bytes = 0;
    leat__device_mixes mixes = {.list = d->mixes};
    if (d->mixing != NULL && leat__device_mix_takes(f->frame))
        mixes.count = leat__device_mix_list(d->mixing, f->frame, f->block->memory, d->mixes);
    LEAT_TRY(leat__gpu_event_record(f->begin, d->stream, err));
    LEAT_TRY(copy_columns(d, f, f->frame->tiles == NULL, err));
    f->decodes = f->frame->tiles != NULL;
    if (f->decodes) {
        LEAT_TRY(leat__device_decoder_start(d->decoder, f->slot, f->frame, f->block, &mixes, &f->marks,
                                            &f->job, err));
        f->bytes += f->job.bytes;
        return 0;
    }
    LEAT_TRY(leat__gpu_event_record(f->marks.copied, d->stream, err));
    return leat__gpu_event_record(f->marks.end, d->stream, err);
}

/* Decodes images again on the CPU, which applies the policy for bad samples: the damaged ones, or all of them
 * if `status` is NULL. */
static int redo(leat__to_device *d, leat__frame *frame, const uint32_t *status, leat_error *err)
{
    uint32_t last = UINT32_MAX,
             at = 0; /* views of a row are adjacent in the list, so that each row is made once */
    for (const leat__device_tiles *t = frame->tiles; t != NULL; t = t->next) {
        for (uint32_t i = 0; i < t->image_count; i++, at++) {
            const uint32_t row = t->images[i].row;
            if (status != NULL && status[at] == LEAT_JOB_NO_DAMAGE) continue;
            if (frame->dropped[row] || row == last) continue;
            last = row;
            LEAT_TRY(leat__run_again(d->env, frame, d->worker, t->ids[i], row, err));
        }
    }
    return 0;
}

/* Finishes a batch on the host after `redo`, and queues copies of the whole batch. */
static int finish_on_host(leat__to_device *d, flight *f, leat_error *err)
{
    leat__frame_finish(f->frame);
    if (d->mixing != NULL) {
        LEAT_TRY(leat__mixing_apply(d->mixing, f->frame, err));
        leat__frame_skip(f->frame, f->frame->skip);
    }
    LEAT_TRY(copy_columns(d, f, true, err));
    return leat__gpu_event_record(f->marks.end, d->stream, err);
}

/* Decodes a batch on the CPUs, because the device has no room. */
static int decode_on_host(leat__to_device *d, flight *f, leat_error *err)
{
    f->decodes = false;
    f->bytes = 0;
    atomic_store(&d->cramped, true);
    LEAT_TRY(leat__gpu_event_record(f->begin, d->stream, err));
    LEAT_TRY(redo(d, f->frame, NULL, err));
    LEAT_TRY(finish_on_host(d, f, err));
    return leat__gpu_event_record(f->marks.copied, d->stream, err);
}

/* Handles a batch with rows left out or replaced: copies the pixels back, lets the host reorder and mix the
 * batch, and copies all of it again. This is slow, but rare. */
static int repair(leat__to_device *d, flight *f, leat_error *err)
{
    const leat__frame *frame = f->frame;
    for (uint32_t c = 0; c < frame->shape->count; c++) {
        const leat__column *column = &frame->shape->columns[c];
        if (column->kind != LEAT__COLUMN_IMAGE) continue;
        LEAT_TRY(leat__gpu_copy_out(d->stream, frame->tensors[c].data,
                                    f->block->memory + column->device_start, column->row_bytes * frame->rows,
                                    err));
    }
    LEAT_TRY(leat__gpu_event_record(f->marks.end, d->stream, err));
    LEAT_TRY(leat__gpu_event_wait(f->marks.end, err));
    LEAT_TRY(redo(d, f->frame, f->job.status, err));
    LEAT_TRY(finish_on_host(d, f, err));
    return leat__gpu_event_wait(f->marks.end, err);
}

/* Finishes a batch with rows decoded by the device. */
static int finish_decoded(leat__to_device *d, flight *f, leat_error *err)
{
    bool bad = f->frame->skip > 0;
    int rc = 0;
    for (uint32_t i = 0; i < f->job.images; i++) bad |= f->job.status[i] != LEAT_JOB_NO_DAMAGE;
    for (uint32_t row = 0; row < f->frame->rows; row++) bad |= f->frame->dropped[row];
    leat__device_decoder_keep(d->decoder, f->frame, &f->job);
    if (bad) rc = repair(d, f, err);
    else leat__frame_finish(f->frame);
    leat__mutex_lock(&d->lock);
    d->decoded += f->job.images;
    leat__mutex_unlock(&d->lock);
    leat__device_decoder_end(d->decoder, &f->job);
    return rc;
}

/* Measures the time of a finished batch on the device: copies, kernels, and how long both overlapped with
 * those of the previous batch. */
static void measure(leat__to_device *d, const flight *f)
{
    const flight *before = &d->flights[(d->first + RING - 1) % RING];
    double copy = leat__gpu_event_seconds(f->begin, f->marks.copied);
    double decode = f->decodes ? leat__gpu_event_seconds(f->marks.start, f->marks.end) : 0;
    double span = leat__gpu_event_seconds(f->begin, f->marks.end);
    double alone = d->landed > 0 ? leat__gpu_event_seconds(before->marks.end, f->marks.end) : span;
    double overlap = alone < span ? span - alone : 0;
    leat__mutex_lock(&d->lock);
    d->copied_bytes += f->bytes;
    d->copy_ns += (uint64_t)(copy * 1e9);
    d->decode_ns += (uint64_t)(decode * 1e9);
    d->overlap_ns += (uint64_t)(LEAT_MIN(overlap, copy + decode) * 1e9);
    leat__mutex_unlock(&d->lock);
}

/* Counts the images of a finished batch, and those that the device decoded. */
static void count_images(leat__to_device *d, const flight *f)
{
    uint64_t images = 0;
    for (uint32_t c = 0; c < f->frame->shape->count; c++)
        if (f->frame->shape->columns[c].kind == LEAT__COLUMN_IMAGE) images += f->frame->rows;
    leat__mutex_lock(&d->lock);
    d->recent[d->recent_at].images = images;
    d->recent[d->recent_at].decoded = f->decodes ? f->job.images : 0;
    d->recent_at = (d->recent_at + 1) % RECENT;
    leat__mutex_unlock(&d->lock);
}

static double recent_share_locked(const leat__to_device *d)
{
    uint64_t images = 0, decoded = 0;
    for (uint32_t i = 0; i < RECENT; i++) {
        images += d->recent[i].images;
        decoded += d->recent[i].decoded;
    }
    return images > 0 ? (double)decoded / (double)images : 0;
}

/* Records the batch in the trace rows of its streams. */
static void trace(leat__to_device *d, const flight *f)
{
    const int64_t batch = (int64_t)f->frame->batch.index;
    char name[32];
    snprintf(name, sizeof name, "GPU %d copies", (int)leat__to_device_index(d));
    leat__device_trace_span(&d->trace, 0, name, "copy", f->begin, f->marks.copied, batch);
    if (!f->decodes) return;
    const uint32_t lane = 1 + f->slot % LEAT__DECODE_LANES;
    snprintf(name, sizeof name, "GPU %d decode %u", (int)leat__to_device_index(d), lane);
    leat__device_trace_span(&d->trace, lane, name, "decode", f->marks.start, f->marks.end, batch);
}

static void land(leat__to_device *d)
{
    flight *f = &d->flights[d->first];
    leat_error err;
    leat__error_reset(&err);
    int rc = leat__gpu_event_wait(f->marks.end, &err);
    if (rc == 0) measure(d, f);
    if (rc == 0) count_images(d, f);
    if (rc == 0 && leat__trace_on()) trace(d, f);
    d->first = (d->first + 1) % RING;
    d->count--;
    d->landed = d->count > 0 ? d->landed + 1 : 0;
    if (rc == 0 && f->decodes) rc = finish_decoded(d, f, &err);
    else if (f->decodes) leat__device_decoder_end(d->decoder, &f->job);
    if (rc == 0) {
        leat__device_pool_lend(d->pool, f->block);
        f->task->bytes = leat__frame_moved(f->frame, d->pool, f->block, leat__to_device_index(d));
        leat__trace_end(f->decodes ? "device decode" : "copy", f->begin_ns, (int64_t)f->frame->batch.index);
    } else {
        leat__device_pool_give(d->pool, f->block);
    }
    leat_task_done(f->task, rc, &err);
}

/* Waits for all queued work. */
static void drain(leat__to_device *d)
{
    leat__gpu_stream_drain(d->stream);
    if (d->decoder != NULL) leat__device_decoder_drain(d->decoder);
}

/* Called when decoding was refused memory and nothing else is in flight; `left` is the pool's state after
 * that. Waits until a block may have been released. True: none will be, or not in time. */
static bool lacks_workspace(leat__to_device *d, const leat__device_pool_stats *left)
{
    if (left->lent == 0 && left->idle == 0) return true;
    atomic_store(&d->starved, LEAT__NO_WORKSPACE);
    leat__device_pool_wait(d->pool, leat__clock_ns() + RETRY_NS);
    return atomic_exchange(&d->hurry, false);
}

/* Queues a batch. If decoding lacks memory, finishes the batches in flight, frees the memory of other slots,
 * then waits for the consumer. If there is still no room, the CPUs decode the batch. */
static int queue_patiently(leat__to_device *d, flight *f, leat_error *err)
{
    leat__device_pool_stats left;
    bool alone = false, host = false;
    int rc;
    atomic_store(&d->hurry, false);
    while ((rc = queue(d, f, err)) == LEAT_EAGAIN || (f->decodes && rc == LEAT_EBUDGET)) {
        leat__device_pool_read(d->pool, &left); /* before its own parts are released */
        drain(d);
        leat__device_decoder_end(d->decoder, &f->job);
        if (is_canceled(d)) {
            rc = LEAT_ECANCELED;
            break;
        }
        if (rc == LEAT_EAGAIN && d->count > 0) {
            land(d);
            continue;
        }
        leat__device_decoder_trim(d->decoder);
        host = rc == LEAT_EBUDGET || (alone && lacks_workspace(d, &left));
        if (host) break;
        alone = true;
    }
    atomic_store(&d->starved, LEAT__ENOUGH);
    return host ? decode_on_host(d, f, err) : rc;
}

/* Queues the work of a batch. Waits for device memory only when nothing is in flight; batches in flight
 * finish first. */
static void launch(leat__to_device *d, leat__frame *frame, leat_task *task)
{
    leat__device_block *block = NULL;
    leat_error err;
    leat__error_reset(&err);
    int rc = leat__device_pool_take(d->pool, d->frame_bytes, d->stream, &block, &err);
    if (rc == LEAT_EAGAIN) {
        while (d->count > 0) land(d);
        rc = wait_for_block(d, &block, &err);
    }
    if (rc != 0) {
        leat_task_done(task, rc, &err);
        return;
    }
    flight *f = &d->flights[(d->first + d->count) % RING];
    f->slot = d->next_slot % LEAT__DECODE_SLOTS;
    f->frame = frame;
    f->task = task;
    f->block = block;
    f->begin_ns = leat__trace_begin();
    leat__device_trace_tick(&d->trace, d->gpu);
    rc = queue_patiently(d, f, &err);
    if (rc == 0) {
        d->count++;
        d->next_slot++;
        return;
    }
    drain(d); /* queued copies still read the batch */
    if (f->decodes) leat__device_decoder_end(d->decoder, &f->job);
    leat__device_pool_give(d->pool, block);
    leat_task_done(task, rc, &err);
}

/* ---- the thread ---- */

/* Takes the next batch in order, or any when the epoch is over; NULL: none now. */
static pushed *pop_locked(leat__to_device *d)
{
    pushed **at = &d->waiting;
    while (*at != NULL && !d->canceled && (*at)->frame->batch.index != d->next) at = &(*at)->next;
    pushed *p = *at;
    if (p == NULL) return NULL;
    *at = p->next;
    if (!d->canceled) d->next++;
    return p;
}

/* Waits for work; false at the end. *out NULL: finish a batch in flight. New batches are also taken while
 * others are in flight, so that they overlap. */
static bool next_work(leat__to_device *d, pushed **out, bool *canceled)
{
    leat__mutex_lock(&d->lock);
    while ((*out = pop_locked(d)) == NULL && !d->closed) {
        if (d->count == FLIGHTS) break;
        if (d->count == 0) {
            leat__cond_wait(&d->changed, &d->lock);
            continue;
        }
        leat__mutex_unlock(&d->lock);
        const bool landed = leat__gpu_event_passed(d->flights[d->first].marks.end);
        leat__mutex_lock(&d->lock);
        if (landed) break;
        leat__cond_wait_until(&d->changed, &d->lock, leat__clock_ns() + POLL_NS);
    }
    *canceled = d->canceled;
    bool more = *out != NULL || d->count > 0;
    leat__mutex_unlock(&d->lock);
    return more;
}

static void copy_thread(void *arg)
{
    leat__to_device *d = arg;
    pushed *p;
    bool canceled;
    while (next_work(d, &p, &canceled)) {
        if (p == NULL || d->count == FLIGHTS) land(d);
        if (p == NULL) continue;
        if (canceled) leat_task_done(p->task, LEAT_ECANCELED, NULL);
        else launch(d, p->frame, p->task);
        leat__free(p);
    }
}

/* ---- from outside ---- */

static int check_limit(uint64_t limit, uint64_t frame_bytes, const char *note, leat_error *err)
{
    uint64_t least = LEAST_BATCHES * (frame_bytes + (UINT64_C(64) << 10));
    if (limit >= least) return 0;
    return leat__fail(err, LEAT_EBUDGET,
                      "`device_memory`: %s%s, but %d batches need %s (a smaller `batch_size` needs less)",
                      leat__as_size(limit).text, note, LEAST_BATCHES, leat__as_size(least).text);
}

static int set_limit(const leat__to_device *d, const leat__to_device_opts *opts, uint64_t *limit,
                     leat_error *err)
{
    uint64_t unused = 0;
    LEAT_TRY(leat__gpu_unused(d->gpu, &unused, err));
    *limit = opts->memory > 0 ? opts->memory : unused / 4;
    return check_limit(*limit, opts->frame_bytes, opts->memory > 0 ? "" : " (a quarter of what is free)",
                       err);
}

static int open_stream(leat__to_device *d, leat_error *err)
{
    LEAT_TRY(leat__gpu_stream_open(&d->stream, d->gpu, err));
    for (uint32_t i = 0; i < RING; i++) {
        flight *f = &d->flights[i];
        LEAT_TRY(leat__gpu_event_open(&f->begin, d->gpu, true, err));
        LEAT_TRY(leat__gpu_event_open(&f->marks.copied, d->gpu, true, err));
        LEAT_TRY(leat__gpu_event_open(&f->marks.start, d->gpu, true, err));
        LEAT_TRY(leat__gpu_event_open(&f->marks.end, d->gpu, true, err));
    }
    return 0;
}

/* Adds to an error of open which device has no memory left, and what to do. */
static int explain_full(const leat__to_device *d, int rc, leat_error *err)
{
    uint64_t unused = 0;
    if (rc == LEAT_ENOMEM && leat__gpu_unused(d->gpu, &unused, NULL) == 0)
        leat__error_context(err,
                            "cuda:%d has %s of memory left: free some, or open the loader before the model",
                            (int)leat__to_device_index(d), leat__as_size(unused).text);
    return rc;
}

static int open_parts(leat__to_device *d, const leat__to_device_opts *opts, leat_error *err)
{
    uint32_t index;
    uint64_t limit;
    d->frame_bytes = opts->frame_bytes;
    LEAT_TRY(leat__gpu_choose(opts->device, &index, err));
    int rc = leat__gpu_open(&d->gpu, index, NULL, err);
    if (rc != 0) {
        leat__error_context(err, "device '%s'", opts->device);
        return rc;
    }
    LEAT_TRY(set_limit(d, opts, &limit, err));
    LEAT_TRY(leat__device_pool_open(&d->pool, d->gpu, limit, err));
    LEAT_TRY(explain_full(d, open_stream(d, err), err));
    return leat__thread_start(&d->thread, "leat-copy", copy_thread, d, err);
}

int leat__to_device_open(leat__to_device **out, const leat__to_device_opts *opts, leat_error *err)
{
    leat__to_device *d = LEAT_NEW(LOADER, leat__to_device);
    *out = d;
    if (d == NULL) return leat__fail_nomem(err, sizeof *d, "batches on a device");
    leat__mutex_init(&d->lock);
    leat__cond_init(&d->changed);
    d->canceled = true;
    int rc = open_parts(d, opts, err);
    if (rc != 0) leat__to_device_close(out);
    return rc;
}

void leat__to_device_close(leat__to_device **out)
{
    leat__to_device *d = *out;
    if (d == NULL) return;
    *out = NULL;
    leat__mutex_lock(&d->lock);
    d->closed = d->canceled = true;
    leat__cond_broadcast(&d->changed);
    leat__mutex_unlock(&d->lock);
    leat__thread_join(&d->thread);
    for (uint32_t i = 0; i < RING; i++) {
        flight *f = &d->flights[i];
        leat__gpu_event_close(&f->begin);
        leat__gpu_event_close(&f->marks.copied);
        leat__gpu_event_close(&f->marks.start);
        leat__gpu_event_close(&f->marks.end);
    }
    leat__device_decoder_close(&d->decoder);
    leat__device_store_close(&d->store);
    leat__run_worker_close(&d->worker);
    leat__free(d->mixes);
    leat__device_trace_close(&d->trace);
    leat__gpu_stream_close(&d->stream);
    leat__device_pool_close(&d->pool);
    leat__gpu_close(&d->gpu);
    leat__cond_destroy(&d->changed);
    leat__mutex_destroy(&d->lock);
    leat__free(d);
}

uint64_t leat__to_device_reserve(uint64_t frame_bytes)
{
    return LEAT__DECODE_SLOTS * frame_bytes + LEAT__DECODE_LANES * LEAT__DECODE_LANE_BYTES;
}

int leat__to_device_caches(leat__to_device *d, leat__device_store_opts *opts, leat__device_store **store,
                           leat_error *err)
{
    leat__device_pool_stats stats;
    uint64_t reserve = leat__to_device_reserve(d->frame_bytes);
    leat__device_pool_read(d->pool, &stats);
    if (stats.limit <= reserve)
        return leat__fail(err, LEAT_EBUDGET,
                          "`cache` device: `device_memory` is %s, and batches alone may need %s",
                          leat__as_size(stats.limit).text, leat__as_size(reserve).text);
    opts->pool = d->pool;
    opts->limit = stats.limit - reserve;
    LEAT_TRY(leat__device_store_open(&d->store, opts, err));
    *store = d->store;
    return 0;
}

bool leat__to_device_only_copies(const leat__to_device *d)
{
    return d->decoder == NULL && d->store == NULL;
}

int leat__to_device_fits(leat__to_device *d, uint64_t frame_bytes, leat_error *err)
{
    leat__device_pool_stats stats;
    leat__device_pool_read(d->pool, &stats);
    return check_limit(stats.limit, frame_bytes, "", err);
}

void leat__to_device_resize(leat__to_device *d, uint64_t frame_bytes)
{
    leat__mutex_lock(&d->lock);
    d->frame_bytes = frame_bytes;
    leat__mutex_unlock(&d->lock);
}

int leat__to_device_decodes(leat__to_device *d, leat__run_env *env, const leat__mixing *mixing,
                            const leat__tile_tables *tables, const leat__pipeline *const *pipelines,
                            uint32_t columns, leat_error *err)
{
    const uint32_t room = leat__device_mix_room(mixing);
    leat__device_decoder_opts opts = {.gpu = d->gpu,
                                      .copies = d->stream,
                                      .pool = d->pool,
                                      .tables = tables,
                                      .pipelines = pipelines,
                                      .columns = columns,
                                      .blocks = env->tile_blocks,
                                      .store = env->store,
                                      .arena_bytes = &env->arena_bytes,
                                      .arena_most = env->arena_most};
    d->mixes = LEAT_NEW_ARRAY(LOADER, leat_job_mix, (uint64_t)room + 1);
    if (d->mixes == NULL) return leat__fail_nomem(err, room * sizeof *d->mixes, "mixing");
    if (room > 0) d->mixing = mixing;
    LEAT_TRY(leat__run_worker_open(&d->worker, err));
    d->env = env;
    return explain_full(d, leat__device_decoder_open(&d->decoder, &opts, err), err);
}

leat__gpu *leat__to_device_gpu(leat__to_device *d)
{
    return d->gpu;
}

int32_t leat__to_device_index(const leat__to_device *d)
{
    return (int32_t)leat__gpu_info_view(d->gpu)->index;
}

void leat__to_device_begin(leat__to_device *d, uint64_t first)
{
    leat__mutex_lock(&d->lock);
    d->next = first;
    d->canceled = false;
    leat__mutex_unlock(&d->lock);
}

void leat__to_device_cancel(leat__to_device *d)
{
    leat__mutex_lock(&d->lock);
    d->canceled = true;
    leat__cond_broadcast(&d->changed);
    leat__mutex_unlock(&d->lock);
}

void leat__to_device_push(leat__to_device *d, leat__frame *f, leat_task *task)
{
    pushed *p = LEAT_NEW(LOADER, pushed);
    if (p == NULL) {
        leat_error err;
        leat_task_done(task, leat__fail_nomem(&err, sizeof *p, "a batch in flight"), &err);
        return;
    }
    p->frame = f;
    p->task = task;
    leat__mutex_lock(&d->lock);
    p->next = d->waiting;
    d->waiting = p;
    leat__cond_broadcast(&d->changed);
    leat__mutex_unlock(&d->lock);
}

void leat__to_device_settle(leat__to_device *d, bool capturing)
{
    leat__device_pool_settle(d->pool, capturing);
}

leat__shortage leat__to_device_starved(leat__to_device *d)
{
    return atomic_load(&d->starved);
}

void leat__to_device_hurry(leat__to_device *d)
{
    atomic_store(&d->hurry, true);
}

bool leat__to_device_cramped(leat__to_device *d)
{
    return atomic_load(&d->cramped);
}

uint64_t leat__to_device_needs(leat__to_device *d)
{
    return atomic_load(&d->needs);
}

void leat__to_device_read(leat__to_device *d, leat__to_device_stats *stats)
{
    leat__device_pool_read(d->pool, &stats->pool);
    leat__mutex_lock(&d->lock);
    stats->copied_bytes = d->copied_bytes;
    stats->copy_ns = d->copy_ns;
    stats->wait_ns = d->wait_ns;
    stats->decoded = d->decoded;
    stats->share = recent_share_locked(d);
    stats->decode_ns = d->decode_ns;
    stats->overlap_ns = d->overlap_ns;
    stats->store = (leat__device_store_stats){0};
    if (d->store != NULL) leat__device_store_read(d->store, &stats->store);
    leat__mutex_unlock(&d->lock);
}
