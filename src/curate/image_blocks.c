/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_blocks.h.
 */
#include "curate/image_blocks.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/thread_team.h"

#define COARSE_LIMIT 0.5f /* descriptors at a greater distance are not candidates */
/* lists that a query searches; with more than 4,096 lists, twice the square root of their number */
#define LISTS 128
#define RECORDS 256       /* records read at a time */
#define BUFFER (4u << 20) /* buffer of all part files together, before blocks are allocated */
#define PARTS_MAX 1024

/* ---- queries ---- */

static uint32_t place_of(const leat__dedup_entries *e, uint32_t number)
{
    uint32_t low = 0, high = e->count;
    if (!e->number) return number - e->first;
    while (low + 1 < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (e->number[middle] <= number) low = middle;
        else high = middle;
    }
    return low;
}

static void rank_new(const leat__dedup_entries *from, const int8_t *fine, bool window, leat__near_heap *heap)
{
    for (uint32_t i = 0; i < heap->count && !from->number;
         i++) { /* the descriptors are far apart in memory */
        const int8_t *other = from->fine + (size_t)(heap->near[i].entry - from->first) * LEAT__FINE_BYTES;
        __builtin_prefetch(other);
        __builtin_prefetch(other + 64);
    }
    for (uint32_t i = 0; i < heap->count; i++) {
        leat__near *near = &heap->near[i];
        if (near->owner != LEAT__NEAR_NEW) continue;
        const uint32_t at = place_of(from, near->entry);
        near->owner = from->owner[at] | (from->window[at] ? LEAT__DEDUP_WINDOW : 0);
        near->rank = window || from->window[at]
                         ? near->distance
                         : leat__image_sign_distance(fine, from->fine + (size_t)at * LEAT__FINE_BYTES,
                                                     LEAT__FINE_BYTES);
    }
}

static leat__near_query make_query(const leat__dedup_ask *a, const leat__dedup_question *question,
                                   int8_t *coarse)
{
    const leat__dedup_rows *r = a->rows;
    const uint32_t at = question->entry - r->entry.first;
    const leat__dedup_row *row = &r->row[question->row];
    const float lists = (float)leat__image_index_lists(a->index),
                share = LEAT_MAX(LISTS, 2 * sqrtf(lists)) / lists;
    leat__image_sign_turn(r->entry.coarse + (size_t)at * LEAT__COARSE_BYTES, coarse, LEAT__COARSE_ORDER,
                          question->orientation);
    return (leat__near_query){.code = coarse,
                              .limit = COARSE_LIMIT,
                              .share = LEAT_MIN(share, 1),
                              .before = a->across ? r->first_entry[row->pack] : row->entry,
                              .after = a->across ? r->first_entry[row->pack + 1] : 0};
}

void leat__dedup_ask_some(const leat__dedup_ask *a, const leat__dedup_question *question,
                          leat__near_heap *heap, uint32_t n, void *scratch)
{
    const leat__dedup_entries *e = &a->rows->entry;
    int8_t coarse[LEAT__NEAR_QUERIES][LEAT__COARSE_BYTES], fine[LEAT__FINE_BYTES];
    leat__near_query query[LEAT__NEAR_QUERIES] = {{0}};
    for (uint32_t i = 0; i < n; i++) query[i] = make_query(a, &question[i], coarse[i]);
    leat__image_index_scan(a->index, query, heap, n, scratch);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = question[i].entry - e->first;
        leat__image_sign_turn(e->fine + (size_t)at * LEAT__FINE_BYTES, fine, LEAT__FINE_ORDER,
                              question[i].orientation);
        rank_new(a->from, fine, e->window[at], &heap[i]);
    }
}

/* ---- parts on disk ---- */

struct leat__dedup_blocks {
    const leat__dedup_search *search;
    leat__dedup_rows *rows;
    leat__image_index *index;
    leat__thread_team *team;
    leat__spill files; /* one file per part */
    leat__dedup_entries part;
    uint32_t *list;      /* list of each descriptor of the part */
    uint64_t part_room;  /* capacity of a part, in descriptors */
    uint64_t block_room; /* capacity of a block, in descriptors */
    uint32_t orientations;
    bool across;
    uint32_t next; /* next row */
    uint32_t first, end;
    leat__near *near;      /* LEAT__DEDUP_ROOM entries for each heap */
    leat__near_heap *heap; /* one per descriptor and orientation of the block */
    uint8_t *scratch;      /* one per member */
    _Atomic uint32_t taken;
};

/* Called by each_record with all records of a file, a piece at a time. */
typedef int (*use_records)(leat__dedup_blocks *b, void *cookie, const leat__dedup_record *record, uint32_t n,
                           leat_error *err);

static int each_record(leat__dedup_blocks *b, const leat__spill *files, uint32_t number, use_records use,
                       void *cookie, leat_error *err)
{
    leat__dedup_record record[RECORDS];
    leat__file *f = NULL;
    const uint64_t total = files->length[number] / sizeof *record;
    LEAT_TRY(leat__spill_file(files, number, &f, err));
    int rc = 0;
    for (uint64_t at = 0; at < total && rc == 0; at += RECORDS) {
        const uint32_t n = (uint32_t)LEAT_MIN(total - at, RECORDS);
        rc = leat__file_pread(f, record, n * sizeof *record, at * sizeof *record, err);
        if (rc == 0) rc = use(b, cookie, record, n, err);
    }
    leat__file_close(&f);
    return rc;
}

static int take_sample(leat__dedup_blocks *b, int8_t *sample, leat_error *err)
{
    leat__dedup_record record;
    leat__file *f = NULL;
    const uint32_t count = b->rows->entries, train = leat__image_index_sample(count);
    LEAT_TRY(leat__spill_file(b->rows->spill, 0, &f, err));
    int rc = 0;
    for (uint32_t i = 0; i < train && rc == 0; i++) {
        rc = leat__file_pread(f, &record, sizeof record, (uint64_t)i * count / train * sizeof record, err);
        memcpy(sample + (size_t)i * LEAT__COARSE_BYTES, record.coarse, LEAT__COARSE_BYTES);
    }
    leat__file_close(&f);
    return rc;
}

static int find_centres(leat__dedup_blocks *b, leat_error *err)
{
    const uint32_t count = b->rows->entries;
    int8_t *sample =
        leat__alloc_array(LEAT__MEM_CURATE, LEAT_MAX(leat__image_index_sample(count), 1), LEAT__COARSE_BYTES);
    int rc = sample ? take_sample(b, sample, err) : leat__fail_nomem(err, 0, "descriptors");
    if (rc == 0)
        rc = leat__image_index_train(
            &b->index, sample, count,
            &(leat__index_work){b->team, leat__dedup_search_stopped, (void *)b->search}, err);
    leat__free(sample);
    return rc;
}

typedef struct dividing {
    uint32_t *list;  /* list of each descriptor */
    uint32_t *begin; /* position of each list's next descriptor, in the order of lists */
    int8_t *codes;   /* codes of a piece */
    const uint32_t *piece;
    uint32_t first, n;
    const leat__image_index *index;
} dividing;

static void assign_some(void *cookie, uint32_t member, uint32_t members)
{
    const dividing *d = cookie;
    const uint32_t from = d->n * member / members, to = d->n * (member + 1) / members;
    leat__image_index_assign(d->index, d->codes + (size_t)from * LEAT__COARSE_BYTES, to - from,
                             d->list + d->first + from);
}

static int use_assign(leat__dedup_blocks *b, void *cookie, const leat__dedup_record *record, uint32_t n,
                      leat_error *err)
{
    dividing *d = cookie;
    if (leat__dedup_search_stopped((void *)b->search))
        return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    for (uint32_t i = 0; i < n; i++)
        memcpy(d->codes + (size_t)i * LEAT__COARSE_BYTES, record[i].coarse, LEAT__COARSE_BYTES);
    d->n = n;
    leat__thread_team_run(b->team, assign_some, d);
    for (uint32_t i = 0; i < n; i++) d->begin[d->list[d->first + i] + 1]++;
    d->first += n;
    return 0;
}

static int use_divide(leat__dedup_blocks *b, void *cookie, const leat__dedup_record *record, uint32_t n,
                      leat_error *err)
{
    dividing *d = cookie;
    for (uint32_t i = 0; i < n; i++) {
        leat__dedup_record to = record[i];
        to.list = d->list[d->first++];
        const uint32_t place = d->begin[to.list]++;
        LEAT_TRY(leat__spill_put(&b->files, (uint32_t)(place / b->part_room), &to, sizeof to, err));
    }
    return 0;
}

/* Writes the parts: descriptors in the order of their lists, part_room in each. Within a part they
 * stay in row order. */
static int divide(leat__dedup_blocks *b, leat_error *err)
{
    const uint32_t lists = leat__image_index_lists(b->index), count = b->rows->entries;
    const uint32_t parts = (uint32_t)((count + b->part_room - 1) / b->part_room);
    dividing d = {.index = b->index};
    d.list = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(count, 1));
    d.begin = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)lists + 1);
    d.codes = leat__alloc_array(LEAT__MEM_CURATE, RECORDS, LEAT__COARSE_BYTES);
    int rc = d.list && d.begin && d.codes ? 0 : leat__fail_nomem(err, 4 * (size_t)count, "lists");
    if (rc == 0) rc = each_record(b, b->rows->spill, 0, use_assign, &d, err);
    for (uint32_t l = 0; l < lists && rc == 0; l++) d.begin[l + 1] += d.begin[l];
    d.first = 0;
    if (rc == 0)
        rc = leat__spill_open(&b->files, b->rows->folder, "part", LEAT_MAX(parts, 1),
                              LEAT_MAX(BUFFER / LEAT_MAX(parts, 1), LEAT__SPILL_BLOCK), NULL, NULL, err);
    if (rc == 0) rc = each_record(b, b->rows->spill, 0, use_divide, &d, err);
    if (rc == 0) rc = leat__spill_flush(&b->files, false, err);
    leat__free(d.list);
    leat__free(d.begin);
    leat__free(d.codes);
    return rc;
}

static int use_load(leat__dedup_blocks *b, void *cookie, const leat__dedup_record *record, uint32_t n,
                    leat_error *err)
{
    leat__dedup_entries *e = &b->part;
    (void)cookie, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        leat__dedup_entries_put(e, e->count, &record[i]);
        e->number[e->count] = record[i].number;
        b->list[e->count++] = record[i].list;
    }
    return 0;
}

static int load_part(leat__dedup_blocks *b, uint32_t number, leat_error *err)
{
    leat__dedup_entries *e = &b->part;
    e->count = 0;
    LEAT_TRY(each_record(b, &b->files, number, use_load, NULL, err));
    return leat__image_index_fill(
        b->index,
        &(leat__index_part){.codes = e->coarse, .list = b->list, .number = e->number, .count = e->count},
        err);
}

/* ---- blocks ---- */

#define PART_BYTES (LEAT__DEDUP_ENTRY_BYTES + 8 + LEAT__COARSE_BYTES + 8) /* bytes per descriptor */
#define HEAP_BYTES (LEAT__DEDUP_ROOM * sizeof(leat__near) + sizeof(leat__near_heap))

static uint64_t block_bytes(const leat__dedup_blocks *b)
{
    return LEAT__DEDUP_ENTRY_BYTES + b->orientations * HEAP_BYTES;
}

/* Divides the memory: a third for the part, the rest for a block. */
static int plan(leat__dedup_blocks *b, leat_error *err)
{
    const leat__dedup_rows *r = b->rows;
    const uint64_t fixed = leat__dedup_rows_least(r->count, r->entries, b->orientations);
    const uint64_t least = (uint64_t)LEAT__DEDUP_BLOCKS_LEAST * b->orientations;
    if (fixed > r->memory) return leat__dedup_rows_refuse(r->count, r->memory, fixed, err);
    const uint64_t left = r->memory - fixed + least;
    b->part_room = LEAT_MAX(left / 3 / PART_BYTES, r->entries / PARTS_MAX + 1);
    b->block_room = LEAT_MAX(left * 2 / 3 / block_bytes(b), LEAT__DEDUP_ENTRIES_MAX);
    return 0;
}

static int make_room(leat__dedup_blocks *b, leat_error *err)
{
    const uint64_t part = LEAT_MIN(b->part_room, b->rows->entries) + 1;
    const uint64_t block = LEAT_MIN(b->block_room, b->rows->entries) + 1;
    LEAT_TRY(leat__dedup_entries_grow(&b->part, part, err));
    LEAT_TRY(leat__dedup_entries_grow(&b->rows->entry, block, err));
    b->part.number = leat__alloc_array(LEAT__MEM_CURATE, part, sizeof *b->part.number);
    b->list = leat__alloc_array(LEAT__MEM_CURATE, part, sizeof *b->list);
    b->near =
        leat__alloc_array(LEAT__MEM_CURATE, block * b->orientations * LEAT__DEDUP_ROOM, sizeof *b->near);
    b->heap = leat__alloc_array(LEAT__MEM_CURATE, block * b->orientations, sizeof *b->heap);
    b->scratch = leat__alloc_array(LEAT__MEM_CURATE, leat__thread_team_size(b->team),
                                   leat__image_index_scratch(b->index));
    return b->part.number && b->list && b->near && b->heap && b->scratch
               ? 0
               : leat__fail_nomem(err, (size_t)block * block_bytes(b), "a block of rows");
}

int leat__dedup_blocks_open(leat__dedup_blocks **out, const leat__dedup_search *search, leat_error *err)
{
    leat__dedup_blocks *b = LEAT_NEW(CURATE, leat__dedup_blocks);
    leat__dedup_rows *rows = search->rows;
    int rc;
    if (!b) return leat__fail_nomem(err, sizeof *b, "blocks of rows");
    b->search = search;
    b->rows = rows;
    b->orientations = search->opts->orientations;
    b->across = search->opts->across != 0;
    b->next = search->from;
    LEAT_GO(rc, out, plan(b, err));
    LEAT_GO(rc, out, leat__thread_team_open(&b->team, search->opts->threads, err));
    LEAT_GO(rc, out, find_centres(b, err));
    LEAT_GO(rc, out, divide(b, err));
    LEAT_GO(rc, out, make_room(b, err));
out:
    if (rc != 0) leat__dedup_blocks_close(&b);
    *out = b;
    return rc;
}

void leat__dedup_blocks_close(leat__dedup_blocks **blocks)
{
    leat__dedup_blocks *b = *blocks;
    if (!b) return;
    if (b->files.name) (void)!leat__spill_remove(&b->files, NULL);
    leat__spill_reset(&b->files);
    leat__dedup_entries_reset(&b->part);
    leat__image_index_close(&b->index);
    leat__thread_team_close(&b->team);
    leat__free(b->list);
    leat__free(b->near);
    leat__free(b->heap);
    leat__free(b->scratch);
    leat__free(b);
    *blocks = NULL;
}

void leat__dedup_blocks_forget(const char *folder)
{
    bool there = false;
    if (leat__path_exists(folder, &there, NULL) != 0 || !there) return;
    leat__spill_clear(folder, "rows", 1);
    leat__spill_clear(folder, "part", PARTS_MAX);
    (void)!leat__path_rmdir(folder, NULL);
}

/* Returns one past the last row of the block that begins at `first`. */
static uint32_t end_of(const leat__dedup_blocks *b, uint32_t first)
{
    const leat__dedup_rows *r = b->rows;
    uint64_t entries = 0;
    uint32_t end = first;
    while (end < r->count && entries + r->row[end].entries <= b->block_room) entries += r->row[end++].entries;
    return end;
}

static void search_some(void *cookie, uint32_t member, uint32_t members)
{
    leat__dedup_blocks *b = cookie;
    leat__dedup_rows *r = b->rows;
    const leat__dedup_ask ask = {.rows = r, .index = b->index, .from = &b->part, .across = b->across};
    const uint32_t some = LEAT__NEAR_QUERIES / b->orientations;
    void *scratch = b->scratch + (size_t)member * leat__image_index_scratch(b->index);
    (void)members;
    for (uint32_t at; (at = atomic_fetch_add(&b->taken, some)) < r->entry.count;) {
        leat__dedup_question question[LEAT__NEAR_QUERIES];
        uint32_t n = 0;
        for (uint32_t e = at; e < LEAT_MIN(at + some, r->entry.count); e++)
            for (uint32_t o = 0; o < b->orientations; o++)
                question[n++] = (leat__dedup_question){r->entry.owner[e], r->entry.first + e, o};
        leat__dedup_ask_some(&ask, question, &b->heap[(size_t)at * b->orientations], n, scratch);
    }
}

int leat__dedup_blocks_next(leat__dedup_blocks *b, uint32_t *first, uint32_t *end, leat_error *err)
{
    const leat__dedup_search *s = b->search;
    leat__dedup_rows *r = b->rows;
    *first = b->next;
    *end = b->next = end_of(b, b->next);
    if (*first == *end) return 0;
    LEAT_TRY(leat__dedup_rows_load(r, *first, *end, err));
    for (size_t i = 0; i < (size_t)r->entry.count * b->orientations; i++)
        b->heap[i] = (leat__near_heap){.near = b->near + i * LEAT__DEDUP_ROOM, .room = LEAT__DEDUP_ROOM};
    for (uint32_t i = 0; i < b->files.count && r->entry.count > 0; i++) {
        LEAT_TRY(load_part(b, i, err));
        b->taken = 0;
        leat__thread_team_run(b->team, search_some, b);
        if (s->tell(s->cookie, *first, r->count, s->pairs->count) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    return 0;
}

leat__near_heap *leat__dedup_blocks_found(const leat__dedup_blocks *b, uint32_t entry, unsigned orientation)
{
    return &b->heap[(size_t)(entry - b->rows->entry.first) * b->orientations + orientation];
}
