/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of all packs and their descriptors, in memory (about 290 bytes per image) or, when they do
 * not fit, in a file. See image_dedup.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/image_dedup.h"

#define WINDOWS 3 /* windows in each direction */
#define WINDOW_SIDE 0.75f
#define SPILL_BUFFER (256u << 10)
#define STOP_EVERY 1024 /* rows read between two calls of `stop` */

int leat__image_pairs_add(leat__image_pairs *p, const leat__image_pair *pair, leat_error *err)
{
    if (p->count == p->room) {
        const uint64_t room = p->room ? 2 * p->room : 1024;
        leat__image_pair *more = leat__realloc(LEAT__MEM_CURATE, p->pair, (size_t)room * sizeof *more);
        if (!more) return leat__fail_nomem(err, (size_t)room * sizeof *more, "pairs");
        p->pair = more;
        p->room = room;
    }
    p->pair[p->count++] = *pair;
    return 0;
}

unsigned leat__orientation_inverse(unsigned orientation)
{
    return orientation == 5 || orientation == 6 ? orientation ^ 3 : orientation; /* the quarter turns */
}

leat__image_pair leat__image_pair_of(uint32_t row, uint32_t other, unsigned orientation, float similarity)
{
    leat__image_pair pair = {.a = other, .b = row, .similarity = similarity};
    if (other > row) {
        pair.a = row;
        pair.b = other;
        orientation = leat__orientation_inverse(orientation);
    }
    pair.orientation = (uint8_t)orientation;
    return pair;
}

static int by_rows(const void *x, const void *y)
{
    const leat__image_pair *a = x, *b = y;
    if (a->a != b->a) return a->a < b->a ? -1 : 1;
    if (a->b != b->b) return a->b < b->b ? -1 : 1;
    if (a->similarity != b->similarity) return a->similarity > b->similarity ? -1 : 1;
    return (int)a->orientation - b->orientation;
}

void leat__image_pairs_sort(leat__image_pairs *p)
{
    uint64_t kept = 0;
    if (p->count > 0) qsort(p->pair, (size_t)p->count, sizeof *p->pair, by_rows);
    for (uint64_t i = 0; i < p->count; i++) {
        const leat__image_pair *last = kept > 0 ? &p->pair[kept - 1] : NULL;
        if (!last || last->a != p->pair[i].a || last->b != p->pair[i].b) p->pair[kept++] = p->pair[i];
    }
    p->count = kept;
}

int leat__dedup_entries_grow(leat__dedup_entries *e, uint64_t room, leat_error *err)
{
    if (room <= e->room) return 0;
    void **const parts[] = {(void **)&e->coarse, (void **)&e->fine, (void **)&e->owner, (void **)&e->window};
    static const size_t sizes[] = {LEAT__COARSE_BYTES, LEAT__FINE_BYTES, sizeof(uint32_t), 1};
    if (room > UINT32_MAX / 2)
        return leat__fail(err, LEAT_ELIMIT, "more than %u descriptors", UINT32_MAX / 2);
    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        void *more = leat__realloc(LEAT__MEM_CURATE, *parts[i], room * sizes[i]);
        if (!more) return leat__fail_nomem(err, room * sizes[i], "descriptors");
        *parts[i] = more;
    }
    e->room = (uint32_t)room;
    return 0;
}

void leat__dedup_entries_reset(leat__dedup_entries *e)
{
    leat__free(e->coarse);
    leat__free(e->fine);
    leat__free(e->owner);
    leat__free(e->window);
    leat__free(e->number);
    memset(e, 0, sizeof *e);
}

void leat__dedup_entries_put(leat__dedup_entries *e, uint32_t at, const leat__dedup_record *from)
{
    memcpy(e->coarse + (size_t)at * LEAT__COARSE_BYTES, from->coarse, LEAT__COARSE_BYTES);
    memcpy(e->fine + (size_t)at * LEAT__FINE_BYTES, from->fine, LEAT__FINE_BYTES);
    e->owner[at] = from->owner;
    e->window[at] = (uint8_t)from->window;
}

/* ---- the plan ---- */

#define PROGRAM (14u << 20) /* the program, its libraries, buffers and cached indices of packs */

uint64_t leat__dedup_rows_plan(uint64_t rows, uint64_t entries)
{
    return PROGRAM + rows * LEAT__DEDUP_ROW_BYTES + entries * LEAT__DEDUP_ENTRY_BYTES +
           leat__image_index_bytes(entries, entries);
}

uint64_t leat__dedup_rows_least(uint64_t rows, uint64_t entries, uint32_t orientations)
{
    entries = LEAT_MAX(entries, rows);
    return PROGRAM + rows * LEAT__DEDUP_ROW_BYTES + entries * sizeof(uint32_t) +
           leat__image_index_bytes(entries, 0) + LEAT__DEDUP_BLOCKS_LEAST * orientations;
}

uint64_t leat__dedup_rows_enough(uint64_t rows, uint32_t orientations, bool windows)
{
    const uint64_t entries = rows * (LEAT__DEDUP_ENTRIES_MAX - (windows ? 0 : WINDOWS * WINDOWS));
    const uint64_t all = leat__dedup_rows_plan(rows, entries);
    return LEAT_MIN(all, leat__dedup_rows_least(rows, entries, orientations));
}

int leat__dedup_rows_refuse(uint64_t rows, uint64_t memory, uint64_t enough, leat_error *err)
{
    return leat__fail(err, LEAT_EBUDGET, "%llu image%s not fit the %s given (`memory`): %s is enough",
                      (unsigned long long)rows, rows == 1 ? " does" : "s do", leat__as_size(memory).text,
                      leat__as_size(enough).text);
}

int leat__dedup_rows_fit(uint64_t rows, uint32_t orientations, bool windows, uint64_t memory, leat_error *err)
{
    if (memory == 0 || leat__dedup_rows_plan(rows, rows) <= memory ||
        leat__dedup_rows_least(rows, rows, orientations) <= memory)
        return 0;
    return leat__dedup_rows_refuse(rows, memory, leat__dedup_rows_enough(rows, orientations, windows), err);
}

/* ---- reading ---- */

typedef struct reading {
    leat__dedup_rows *r;
    const leat__dedup_rows_opts *o;
} reading;

static int put_record(leat__dedup_rows *r, const int8_t *coarse, const int8_t *fine, uint32_t owner,
                      bool window, uint32_t number, leat_error *err)
{
    leat__dedup_record to = {.owner = owner, .number = number, .window = window};
    memcpy(to.coarse, coarse, sizeof to.coarse);
    if (fine) memcpy(to.fine, fine, sizeof to.fine);
    return leat__spill_put(r->spill, 0, &to, sizeof to, err);
}

/* Moves the descriptors from memory to a file. */
static int begin_spill(const reading *x, leat_error *err)
{
    leat__dedup_rows *r = x->r;
    leat__dedup_entries *e = &r->entry;
    LEAT_TRY(leat__dedup_rows_fit(r->count, x->o->orientations, x->o->windows, x->o->memory, err));
    r->spill = LEAT_NEW(CURATE, leat__spill);
    if (!r->spill) return leat__fail_nomem(err, sizeof *r->spill, "files");
    r->folder = x->o->spill;
    LEAT_TRY(leat__path_mkdir(r->folder, err));
    LEAT_TRY(leat__spill_open(r->spill, r->folder, "rows", 1, SPILL_BUFFER, NULL, NULL, err));
    for (uint32_t i = 0; i < e->count; i++)
        LEAT_TRY(put_record(r, e->coarse + (size_t)i * LEAT__COARSE_BYTES,
                            e->fine + (size_t)i * LEAT__FINE_BYTES, e->owner[i], e->window[i], i, err));
    leat__dedup_entries_reset(e);
    return 0;
}

static int grow(const reading *x, leat_error *err)
{
    leat__dedup_rows *r = x->r;
    const uint64_t more = r->entry.room ? (uint64_t)r->entry.room + r->entry.room / 2 : 4096;
    if (x->o->memory > 0 && leat__dedup_rows_plan(r->count, LEAT_MAX(r->entries, r->count)) > x->o->memory)
        return begin_spill(x, err);
    return r->entry.count < r->entry.room ? 0 : leat__dedup_entries_grow(&r->entry, more, err);
}

static int add_entry(const reading *x, uint32_t owner, const int8_t *coarse, const int8_t *fine,
                     leat_error *err)
{
    leat__dedup_rows *r = x->r;
    leat__dedup_row *row = &r->row[owner];
    if (coarse[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT) return 0;
    if (r->entries >= UINT32_MAX / 2)
        return leat__fail(err, LEAT_ELIMIT, "more than %u descriptors", UINT32_MAX / 2);
    if (row->entries == 0) row->entry = r->entries;
    const uint32_t at = r->entries++;
    row->entries++;
    if (!r->spill) LEAT_TRY(grow(x, err));
    if (r->spill) return put_record(r, coarse, fine, owner, fine == NULL, at, err);
    leat__dedup_entries *e = &r->entry;
    memcpy(e->coarse + (size_t)at * LEAT__COARSE_BYTES, coarse, LEAT__COARSE_BYTES);
    if (fine) memcpy(e->fine + (size_t)at * LEAT__FINE_BYTES, fine, LEAT__FINE_BYTES);
    else memset(e->fine + (size_t)at * LEAT__FINE_BYTES, 0, LEAT__FINE_BYTES);
    e->owner[at] = owner;
    e->window[at] = fine == NULL;
    e->count++;
    return 0;
}

static int add_windows(const reading *x, uint32_t owner, const uint8_t *thumb, leat_error *err)
{
    const float step = (1 - WINDOW_SIDE) / (WINDOWS - 1);
    for (int i = 0; i < WINDOWS * WINDOWS; i++) {
        int8_t coarse[LEAT__COARSE_BYTES];
        const float left = step * (float)(i % WINDOWS), top = step * (float)(i / WINDOWS);
        leat__image_sign_part(thumb, left, top, WINDOW_SIDE, coarse);
        LEAT_TRY(add_entry(x, owner, coarse, NULL, err));
    }
    return 0;
}

static int add_row(const reading *x, uint32_t at, uint32_t pack, const leat__image_facts *f, leat_error *err)
{
    leat__dedup_row *row = &x->r->row[at];
    *row = (leat__dedup_row){.content_hash = f->content_hash,
                             .size = f->score[LEAT__LOOK_SIZE],
                             .quality = f->score[LEAT__LOOK_QUALITY],
                             .bytes = f->bytes,
                             .pack = pack,
                             .entry = LEAT__DEDUP_NONE,
                             .lossless = leat__codec_facts_of(f->codec)->lossless};
    x->r->unreadable += f->verdict != LEAT__VERDICT_OK;
    if (!f->is_signed) return 0;
    LEAT_TRY(add_entry(x, at, f->sign.coarse, f->sign.fine, err));
    if (row->entries == 0) return 0;
    if (f->sign.has_trimmed)
        LEAT_TRY(add_entry(x, at, f->sign.trimmed, f->sign.trimmed + LEAT__COARSE_BYTES, err));
    return x->o->windows ? add_windows(x, at, f->sign.thumb, err) : 0;
}

static int read_pack(const reading *x, uint32_t pack, leat_error *err)
{
    leat__dedup_rows *r = x->r;
    leat__image_columns c;
    leat__image_facts f;
    int rc = 0;
    LEAT_TRY(leat__image_columns_open(&c, x->o->paths[pack], err));
    r->first_entry[pack] = r->entries;
    for (uint64_t i = 0; i < c.count && rc == 0; i++) {
        if (i % STOP_EVERY == 0 && x->o->stop && x->o->stop(x->o->cookie))
            rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        if (rc == 0) rc = leat__image_columns_read(&c, i, &f, err);
        if (rc == 0) rc = add_row(x, r->first[pack] + (uint32_t)i, pack, &f, err);
    }
    leat__image_columns_close(&c);
    return rc;
}

int leat__dedup_rows_entries(const char *path, uint64_t *entries, leat_error *err)
{
    leat__image_columns c;
    leat__image_facts f;
    int rc = 0;
    LEAT_TRY(leat__image_columns_open(&c, path, err));
    for (uint64_t i = 0; i < c.count && rc == 0; i++) {
        rc = leat__image_columns_read(&c, i, &f, err);
        if (rc != 0 || !f.is_signed || f.sign.coarse[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT) continue;
        *entries += 1;
        *entries += f.sign.has_trimmed && !(f.sign.trimmed[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT);
    }
    leat__image_columns_close(&c);
    return rc;
}

static int count_rows(leat__dedup_rows *r, const char *const *paths, leat_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < r->packs; i++) {
        leat__image_columns c;
        LEAT_TRY(leat__image_columns_open(&c, paths[i], err));
        r->first[i] = (uint32_t)total;
        total += c.count;
        leat__image_columns_close(&c);
        if (total >= UINT32_MAX / 16)
            return leat__fail(err, LEAT_ELIMIT, "more than %u images", UINT32_MAX / 16);
    }
    r->first[r->packs] = r->count = (uint32_t)total;
    return 0;
}

int leat__dedup_rows_read(leat__dedup_rows *r, const leat__dedup_rows_opts *o, leat_error *err)
{
    const reading x = {r, o};
    memset(r, 0, sizeof *r);
    r->packs = o->count;
    r->first = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)o->count + 1);
    r->first_entry = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)o->count + 1);
    if (!r->first || !r->first_entry) return leat__fail_nomem(err, 4 * (size_t)o->count, "rows");
    LEAT_TRY(count_rows(r, o->paths, err));
    if (o->memory > 0 && leat__dedup_rows_plan(r->count, r->count) > o->memory)
        LEAT_TRY(begin_spill(&x, err));
    r->row = LEAT_NEW_ARRAY(CURATE, leat__dedup_row, LEAT_MAX(r->count, 1));
    if (!r->row) return leat__fail_nomem(err, r->count * sizeof *r->row, "rows");
    for (uint32_t i = 0; i < o->count; i++) LEAT_TRY(read_pack(&x, i, err));
    r->first_entry[o->count] = r->entries;
    r->memory = r->spill ? o->memory : leat__dedup_rows_plan(r->count, r->entries);
    return r->spill ? leat__spill_flush(r->spill, false, err) : 0;
}

int leat__dedup_rows_load(leat__dedup_rows *r, uint32_t first, uint32_t end, leat_error *err)
{
    leat__dedup_record record[64];
    leat__dedup_entries *e = &r->entry;
    leat__file *f = NULL;
    uint32_t from = r->entries, to = 0;
    int rc = 0;
    for (uint32_t i = first; i < end; i++) {
        if (r->row[i].entry == LEAT__DEDUP_NONE) continue;
        from = LEAT_MIN(from, r->row[i].entry);
        to = r->row[i].entry + r->row[i].entries;
    }
    e->first = from;
    e->count = to > from ? to - from : 0;
    LEAT_TRY(leat__dedup_entries_grow(e, e->count, err));
    LEAT_TRY(leat__spill_file(r->spill, 0, &f, err));
    for (uint32_t at = 0; at < e->count && rc == 0; at += LEAT_COUNT(record)) {
        const uint32_t n = LEAT_MIN(e->count - at, (uint32_t)LEAT_COUNT(record));
        rc = leat__file_pread(f, record, n * sizeof *record, ((uint64_t)from + at) * sizeof *record, err);
        for (uint32_t i = 0; i < n && rc == 0; i++) leat__dedup_entries_put(e, at + i, &record[i]);
    }
    leat__file_close(&f);
    return rc;
}

void leat__dedup_rows_reset(leat__dedup_rows *r)
{
    leat__free(r->row);
    leat__free(r->first);
    leat__free(r->first_entry);
    leat__dedup_entries_reset(&r->entry);
    if (r->spill) {
        if (r->spill->name) (void)!leat__spill_remove(r->spill, NULL);
        leat__spill_reset(r->spill);
        if (r->folder) (void)!leat__path_rmdir(r->folder, NULL);
    }
    leat__free(r->spill);
    memset(r, 0, sizeof *r);
}
