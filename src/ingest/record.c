/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs, and the pool of unused ones. The lock guards the pool.
 */
#include "ingest/record.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define ALIGN 16u
#define SLACK (64u << 10) /* paddings of samples, growth of small buffers */
#define PADDING LEAT_PACK_PADDING
#define TEXT_MAX (64u << 20)
#define BYTES_MAX (UINT64_C(1) << 36)
#define KEEP_BYTES (1u << 20)  /* larger sample buffers are freed */
#define KEEP_SMALL (64u << 10) /* larger buffers of names and the like are freed */

static void release_errors(leat__records *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        leat__free(run->record[i].error);
        run->record[i].error = NULL;
    }
}

static void run_close(leat__records *run)
{
    release_errors(run);
    leat__buf_reset(&run->text);
    leat__buf_reset(&run->in);
    leat__buf_reset(&run->out);
    leat__buf_reset(&run->frames);
    leat__buf_reset(&run->found);
    leat__free(run->items);
    leat__free(run);
}

static leat__records *run_open(uint32_t fields)
{
    leat__records *run = LEAT_NEW(INGEST, leat__records);
    if (!run) return NULL;
    leat__buf_init(&run->text, LEAT__MEM_INGEST, TEXT_MAX);
    leat__buf_init(&run->in, LEAT__MEM_INGEST, BYTES_MAX);
    leat__buf_init(&run->out, LEAT__MEM_INGEST, BYTES_MAX);
    leat__buf_init(&run->frames, LEAT__MEM_INGEST, BYTES_MAX);
    leat__buf_init(&run->found, LEAT__MEM_INGEST, BYTES_MAX);
    run->fields = fields;
    run->items = LEAT_NEW_ARRAY(INGEST, leat__item, (size_t)fields * LEAT__RECORDS_MOST);
    if (!run->items) {
        run_close(run);
        return NULL;
    }
    return run;
}

static void forget(leat__buf *b, size_t keep)
{
    if (b->cap > keep) leat__buf_reset(b);
    else leat__buf_clear(b);
}

static void run_clear(leat__records *run)
{
    release_errors(run);
    run->count = 0;
    run->pending = run->decode = run->result = 0;
    run->large = false;
    forget(&run->text, KEEP_SMALL);
    forget(&run->in, KEEP_BYTES);
    forget(&run->out, KEEP_BYTES);
    forget(&run->frames, KEEP_SMALL);
    forget(&run->found, KEEP_SMALL);
}

void leat__records_pool_init(leat__records_pool *spare, uint32_t fields, uint32_t keep)
{
    memset(spare, 0, sizeof *spare);
    leat__mutex_init(&spare->lock);
    spare->fields = fields;
    spare->keep = keep;
}

void leat__records_pool_reset(leat__records_pool *spare)
{
    while (spare->first) {
        leat__records *run = spare->first;
        spare->first = run->next;
        run_close(run);
    }
    leat__mutex_destroy(&spare->lock);
}

leat__records *leat__records_pool_take(leat__records_pool *spare)
{
    leat__mutex_lock(&spare->lock);
    leat__records *run = spare->first;
    if (run) {
        spare->first = run->next;
        spare->kept--;
    }
    leat__mutex_unlock(&spare->lock);
    return run ? run : run_open(spare->fields);
}

void leat__records_pool_give(leat__records_pool *spare, leat__records *run)
{
    if (!run) return;
    run_clear(run);
    leat__mutex_lock(&spare->lock);
    bool keep = spare->kept < spare->keep;
    if (keep) {
        run->next = spare->first;
        spare->first = run;
        spare->kept++;
    }
    leat__mutex_unlock(&spare->lock);
    if (!keep) run_close(run);
}

bool leat__records_full(const leat__records *run)
{
    return run->count == LEAT__RECORDS_MOST || run->in.len + run->pending >= LEAT__RECORDS_BYTES;
}

leat__record *leat__records_add(leat__records *run)
{
    if (run->count == LEAT__RECORDS_MOST) return NULL;
    leat__record *r = &run->record[run->count];
    memset(r, 0, sizeof *r);
    r->path = LEAT__RECORDS_NOWHERE;
    r->items = run->items + (size_t)run->count * run->fields;
    memset(r->items, 0, run->fields * sizeof *r->items);
    for (uint32_t f = 0; f < run->fields; f++) r->items[f].absent = true;
    run->count++;
    return r;
}

void leat__records_drop_last(leat__records *run)
{
    run->count--;
    leat__free(run->record[run->count].error);
    run->record[run->count].error = NULL;
}

size_t leat__records_text(leat__records *run, const char *text, size_t len)
{
    size_t at = run->text.len;
    leat__buf_append(&run->text, text, len);
    leat__buf_putc(&run->text, 0);
    return leat__buf_status(&run->text) == 0 ? at : LEAT__RECORDS_NOWHERE;
}

int leat__records_key(leat__records *run, leat__record *r, const char *key, size_t len, leat_error *err)
{
    r->key = leat__records_text(run, key, len);
    r->key_size = len;
    return r->key == LEAT__RECORDS_NOWHERE ? leat__fail_nomem(err, len, "a key") : 0;
}

uint8_t *leat__records_bytes(leat__records *run, leat__item *item, const void *data, size_t len)
{
    size_t pad = (ALIGN - run->in.len % ALIGN) % ALIGN, total;
    if (!leat__add_size(len, pad + PADDING, &total)) return NULL;
    if (leat__buf_reserve(&run->in, total) != 0) return NULL;
    uint8_t *base = (uint8_t *)run->in.data + run->in.len + pad;
    memset(base - pad, 0, pad);
    if (data) memcpy(base, data, len);
    memset(base + len, 0, PADDING);
    item->at = run->in.len + pad;
    item->size = len;
    item->absent = false;
    item->coded = false;
    run->in.len += pad + len; /* the next bytes may overwrite the padding */
    return base;
}

void leat__records_fail(leat__record *r, const leat_error *err)
{
    if (r->failed) return;
    r->failed = true;
    r->error = leat__alloc(LEAT__MEM_INGEST, sizeof *r->error);
    if (r->error) *r->error = *err;
}

uint64_t leat__records_first(uint32_t fields)
{
    return sizeof(leat__records) + 2 * (uint64_t)KEEP_BYTES + 3 * (uint64_t)KEEP_SMALL +
           (uint64_t)fields * LEAT__RECORDS_MOST * sizeof(leat__item);
}

/* Returns the memory of a buffer. A buffer doubles when it grows, but pages never written take no
 * memory: of a large one only the used part counts. */
static uint64_t held(const leat__buf *b)
{
    return LEAT_MAX(b->len, LEAT_MIN(b->cap, KEEP_BYTES));
}

uint64_t leat__records_held(const leat__records *run)
{
    return sizeof *run + held(&run->text) + held(&run->in) + held(&run->out) + held(&run->frames) +
           held(&run->found) + (uint64_t)run->fields * LEAT__RECORDS_MOST * sizeof(leat__item);
}

/* Returns the maximum of held() plus leat__records_growth(b, bytes). */
static uint64_t grown(const leat__buf *b, uint64_t bytes)
{
    return LEAT_MAX(b->len + bytes + SLACK, KEEP_BYTES) + SLACK;
}

/* Returns the maximum of held() for a small buffer, which doubles when it grows. */
static uint64_t small(const leat__buf *b)
{
    return LEAT_MAX(2 * b->len, KEEP_SMALL);
}

uint64_t leat__records_most(const leat__records *run, uint64_t result)
{
    return sizeof *run + small(&run->text) + small(&run->frames) + small(&run->found) + grown(&run->in, 0) +
           grown(&run->out, result) + (uint64_t)run->fields * LEAT__RECORDS_MOST * sizeof(leat__item);
}

uint64_t leat__records_growth(const leat__buf *b, uint64_t bytes)
{
    const uint64_t most = b->len + bytes + SLACK;
    uint64_t cap = LEAT_MAX(b->cap, 64);
    while (cap < most && cap < KEEP_BYTES) cap *= 2;
    return LEAT_MAX(most, LEAT_MIN(cap, KEEP_BYTES)) - held(b) + SLACK;
}
