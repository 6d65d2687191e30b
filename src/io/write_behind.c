/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in flight: see write_behind.h. A slot is free (its block may be reused), full (waiting
 * for a thread) or being written; the lock guards the states and the first error. Two threads:
 * one copies into the page cache while the other starts the write-back of its last copy, which
 * may wait for the disk. Bypassing the page cache (O_DIRECT) was not faster, and the pack would
 * have to be read back for training.
 */
#include "io/write_behind.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#define THREADS 2
#define SLOTS 4

typedef enum slot_state { FREE, FULL, WRITING } slot_state;

typedef struct slot {
    slot_state state;
    uint64_t number; /* number of the write, in the order of the puts */
    leat__file *file;
    uint64_t offset;
    size_t len;
    leat__write_block block;
} slot;

struct leat__write_behind {
    leat__mutex lock; /* guards all fields below except `threads` */
    leat__cond work, done;
    slot slots[SLOTS];
    uint64_t puts, keep;
    leat_error error; /* the first error; code 0 when there is none */
    bool closing;
    leat__thread threads[THREADS];
};

static slot *next_full(leat__write_behind *w)
{
    slot *first = NULL;
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &w->slots[i];
        if (s->state == FULL && (!first || s->number < first->number)) first = s;
    }
    return first;
}

static slot *next_free(leat__write_behind *w)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->slots[i].state == FREE) return &w->slots[i];
    return NULL;
}

static void write_blocks(void *arg)
{
    leat__write_behind *w = arg;
    leat__mutex_lock(&w->lock);
    for (;;) {
        slot *s = next_full(w);
        if (!s) {
            if (w->closing) break;
            leat__cond_wait(&w->work, &w->lock);
            continue;
        }
        s->state = WRITING;
        bool failed = w->error.code != 0; /* after a failure nothing more is written to that
                                           * file */
        leat__mutex_unlock(&w->lock);
        leat_error why = {0};
        if (!failed && leat__file_pwrite(s->file, s->block.data, s->len, s->offset, &why) == 0)
            leat__file_flush_hint(s->file, s->offset, s->len);
        if (s->block.capacity > w->keep) {
            leat__free(s->block.data);
            s->block = (leat__write_block){0};
        }
        leat__mutex_lock(&w->lock);
        if (why.code != 0 && w->error.code == 0) w->error = why;
        s->state = FREE;
        LEAT_ASSERT(s->len <= s->block.capacity || s->block.data == NULL);
        leat__cond_signal(&w->done);
    }
    leat__mutex_unlock(&w->lock);
}

int leat__write_behind_open(leat__write_behind **out, uint64_t keep, leat_error *err)
{
    *out = NULL;
    leat__write_behind *w = LEAT_NEW(IO, leat__write_behind);
    if (!w) return leat__fail_nomem(err, sizeof *w, "a writer");
    leat__mutex_init(&w->lock);
    leat__cond_init(&w->work);
    leat__cond_init(&w->done);
    w->keep = keep;
    int rc = 0;
    for (int i = 0; i < THREADS && rc == 0; i++)
        rc = leat__thread_start(&w->threads[i], "leat-write", write_blocks, w, err);
    if (rc == 0) *out = w;
    else leat__write_behind_close(&w);
    return rc;
}

void leat__write_behind_close(leat__write_behind **writer)
{
    leat__write_behind *w = *writer;
    if (!w) return;
    leat__mutex_lock(&w->lock);
    w->closing = true;
    leat__cond_broadcast(&w->work);
    leat__mutex_unlock(&w->lock);
    for (int i = 0; i < THREADS; i++) leat__thread_join(&w->threads[i]);
    LEAT_ASSERT(next_full(w) == NULL);
    for (int i = 0; i < SLOTS; i++) leat__free(w->slots[i].block.data);
    leat__cond_destroy(&w->work);
    leat__cond_destroy(&w->done);
    leat__mutex_destroy(&w->lock);
    leat__free(w);
    *writer = NULL;
}

static int tell_locked(const leat__write_behind *w, leat_error *err)
{
    if (w->error.code != 0 && err) *err = w->error;
    return w->error.code;
}

int leat__write_behind_put(leat__write_behind *w, leat__file *f, uint64_t offset, size_t len,
                           leat__write_block *block, leat_error *err)
{
    LEAT_ASSERT(len > 0 && len <= block->capacity);
    leat__mutex_lock(&w->lock);
    slot *s;
    while (!(s = next_free(w))) leat__cond_wait(&w->done, &w->lock);
    int rc = tell_locked(w, err);
    if (rc == 0) {
        LEAT_ASSERT(s->state == FREE);
        leat__write_block written = s->block;
        *s = (slot){
            .state = FULL, .number = w->puts++, .file = f, .offset = offset, .len = len, .block = *block};
        *block = written;
        leat__cond_signal(&w->work);
    }
    leat__mutex_unlock(&w->lock);
    return rc;
}

static bool idle_locked(const leat__write_behind *w)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->slots[i].state != FREE) return false;
    return true;
}

int leat__write_behind_drain(leat__write_behind *w, leat_error *err)
{
    leat__mutex_lock(&w->lock);
    while (!idle_locked(w)) leat__cond_wait(&w->done, &w->lock);
    int rc = tell_locked(w, err);
    leat__mutex_unlock(&w->lock);
    return rc;
}
