/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch for remote files: see remote_ahead.h. The stream is a sequence of adjacent blocks. It starts when
 * reads are sequential. A block that fails is dropped, and its reader reads the range itself, so that the
 * error names that range.
 */
#include "io/remote_ahead.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#define BLOCK_BYTES (UINT64_C(4) << 20)
#define BLOCKS 12u
#define AHEAD 8u      /* blocks in flight ahead of the reader */
#define RUNS_FIRST 2u /* consecutive reads before the stream starts */

typedef enum state { EMPTY, LOADING, READY, FAILED } state;

typedef struct block {
    state state;
    leat__ahead *ahead;
    uint64_t offset;
    size_t len;
    uint8_t *data;
    uint32_t readers;
    uint64_t used; /* tick of the last use */
    leat__range range;
} block;

struct leat__ahead {
    leat__remote *file;
    uint64_t size;
    leat__mutex lock;
    leat__cond arrived;
    block blocks[BLOCKS];
    uint32_t loading;
    uint64_t next, runs, tick; /* end of the last read; consecutive reads that continued there */
};

static void loaded(leat__range *r, int rc, const leat_error *err)
{
    block *b = r->cookie;
    leat__ahead *a = b->ahead;
    (void)err;
    leat__mutex_lock(&a->lock);
    b->state = rc == 0 ? READY : FAILED;
    a->loading--;
    leat__cond_broadcast(&a->arrived);
    leat__mutex_unlock(&a->lock);
}

static block *find_locked(leat__ahead *a, uint64_t offset)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block *b = &a->blocks[i];
        if ((b->state == LOADING || b->state == READY) && offset >= b->offset && offset - b->offset < b->len)
            return b;
    }
    return NULL;
}

/* Finds a block to reuse: empty, failed, or the least recently used one before `offset`. */
static block *victim_locked(leat__ahead *a, uint64_t offset)
{
    block *best = NULL;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block *b = &a->blocks[i];
        if (b->readers > 0 || b->state == LOADING) continue;
        if (b->state != READY) return b;
        bool behind = b->offset + b->len <= offset || b->offset > offset + AHEAD * BLOCK_BYTES;
        if (behind && (best == NULL || b->used < best->used)) best = b;
    }
    return best;
}

/* Reserves the missing blocks after `offset` and returns those to request. */
static size_t extend_locked(leat__ahead *a, uint64_t offset, block *start[AHEAD])
{
    size_t n = 0;
    for (uint64_t at = offset; n < AHEAD && at < a->size && at < offset + AHEAD * BLOCK_BYTES;) {
        block *b = find_locked(a, at);
        if (b == NULL) {
            b = victim_locked(a, offset);
            if (b == NULL) break;
            if (b->data == NULL) b->data = leat__alloc(LEAT__MEM_IO, BLOCK_BYTES);
            if (b->data == NULL) break; /* out of memory: no prefetch */
            b->ahead = a;
            b->offset = at;
            b->len = (size_t)LEAT_MIN(BLOCK_BYTES, a->size - at);
            b->state = LOADING;
            b->used = ++a->tick;
            b->range = (leat__range){
                .offset = at, .buf = b->data, .len = b->len, .owner = a, .done = loaded, .cookie = b};
            a->loading++;
            start[n++] = b;
        }
        at = b->offset + b->len;
    }
    return n;
}

/* Copies from one block, waiting for it; returns the number of bytes, 0 when it failed. */
static size_t copy_locked(leat__ahead *a, block *b, void *buf, size_t len, uint64_t offset)
{
    b->readers++;
    b->used = ++a->tick;
    for (bool asked = false; b->state == LOADING;)
        asked = leat__remote_wait(a->file, a, &a->arrived, &a->lock, asked);
    size_t n = 0;
    if (b->state == READY) {
        n = LEAT_MIN(len, (size_t)(b->offset + b->len - offset));
        leat__mutex_unlock(&a->lock);
        memcpy(buf, b->data + (offset - b->offset), n);
        leat__mutex_lock(&a->lock);
    }
    b->readers--;
    return n;
}

bool leat__ahead_read(leat__ahead *a, void *buf, size_t len, uint64_t offset)
{
    block *start[AHEAD];
    size_t starts = 0, done = 0;
    leat__mutex_lock(&a->lock);
    bool known = find_locked(a, offset) != NULL;
    a->runs = offset == a->next || known ? a->runs + 1 : 0;
    a->next = offset + len;
    if (a->runs >= RUNS_FIRST) starts = extend_locked(a, offset, start);
    leat__mutex_unlock(&a->lock);
    for (size_t i = 0; i < starts; i++) leat__remote_read(a->file, &start[i]->range);
    if (starts == 0 && !known) return false;
    leat__mutex_lock(&a->lock);
    while (done < len) {
        block *b = find_locked(a, offset + done);
        size_t n = b != NULL ? copy_locked(a, b, (char *)buf + done, len - done, offset + done) : 0;
        if (n == 0) break;
        done += n;
    }
    leat__mutex_unlock(&a->lock);
    return done == len;
}

int leat__ahead_open(leat__ahead **out, leat__remote *file, uint64_t size, leat_error *err)
{
    leat__ahead *a = LEAT_NEW(IO, leat__ahead);
    *out = a;
    if (a == NULL) return leat__fail_nomem(err, sizeof *a, "read-ahead");
    a->file = file;
    a->size = size;
    a->next = UINT64_MAX;
    leat__mutex_init(&a->lock);
    leat__cond_init(&a->arrived);
    return 0;
}

void leat__ahead_drop(leat__ahead *a)
{
    leat__mutex_lock(&a->lock);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block *b = &a->blocks[i];
        if (b->readers > 0 && b->state == READY) b->state = FAILED; /* later reads must not use the block */
        if (b->readers > 0 || b->state == LOADING) continue;
        leat__free(b->data);
        b->data = NULL;
        b->state = EMPTY;
    }
    a->runs = 0;
    leat__mutex_unlock(&a->lock);
}

void leat__ahead_close(leat__ahead **ahead)
{
    leat__ahead *a = *ahead;
    if (a == NULL) return;
    leat__mutex_lock(&a->lock);
    bool any = a->loading > 0;
    leat__mutex_unlock(&a->lock);
    if (any) leat__remote_cancel(a->file, a);
    leat__mutex_lock(&a->lock);
    while (a->loading > 0) leat__cond_wait(&a->arrived, &a->lock);
    leat__mutex_unlock(&a->lock);
    for (uint32_t i = 0; i < BLOCKS; i++) leat__free(a->blocks[i].data);
    leat__cond_destroy(&a->arrived);
    leat__mutex_destroy(&a->lock);
    leat__free(a);
    *ahead = NULL;
}
