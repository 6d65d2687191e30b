/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication of lines, paragraphs and substrings in three steps:
 *
 *   hash    one pass over the text: the 128-bit hash of every piece and its number, in the order
 *           of the text, to files by hash
 *   mark    file by file: a new hash is added to the table; the piece of a known hash gets its
 *           bit set. A full table is emptied and the file is read again in twice as many
 *           slices, so that less memory costs time but does not limit the input
 *   write   a second pass over the text: pieces with a bit are left out
 *
 * Bits form a set and numbers follow the text, so the output does not depend on threads or
 * memory. The state is saved in the first two steps; the third starts over when it is interrupted.
 *
 * The pieces of substrings are the sequences of N words that begin at each word of a text. A
 * sequence that overlaps the first equal one is not a repetition: of a text that repeats one word,
 * N words stay. Numbers of different documents differ by N at least, so that they never overlap.
 */
#include "curate/dedup_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/pieces_report.h"
#include "curate/shards.h"
#include "text/unicode.h"

#define BLOCK 4096u /* records */
#define SLICES_MAX (1u << 20)
#define LARGE (256u << 10)
#define LOOK_BLOCKS 64u  /* blocks between two checks of the stop flag: 262144 records, about 30 ms */
#define REPORT_BYTES 256 /* upper bound for the report about one line */

enum { OUT_KEPT, OUT_CHANGED, OUT_BAD, OUT_REPORT };
enum { OUT_COUNTS = 1 }; /* the first pass: number of sequences of each document */
enum { N_DOCUMENTS, N_TEXT, N_LONE, N_EMPTY, N_BAD, N_PIECES, N_KEPT, N_CHANGED, N_REMOVED, N_BYTES };

typedef struct record {
    uint64_t low, high, piece;
} record;

/* The numbers of the first document and the first piece of a chunk. */
typedef struct start {
    uint64_t document, piece;
} start;

typedef struct lines {
    leat__dedup *d;
    leat__spill part, noted; /* records by hash; starts of chunks, for resuming */
    uint32_t window;         /* words of a sequence, 0 = lines or paragraphs */
    leat__pieces_report *report;
    start *starts;
    size_t chunks, capacity;
    uint8_t *removed; /* one bit per piece */
    record *table;
    uint64_t slots, used;
    uint32_t saves; /* of the bits */
    leat__shards kept, changed, bad;
} lines;

typedef struct worker {
    leat__buf text, now; /* text of a document; what remains of it */
    leat__sketcher sketcher;
} worker;

/* ---- pieces ---- */

/* True for white space of ASCII, as between words: also for the separators U+001C to U+001F. */
static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

/* Returns the offset after the next newline, or len. */
static size_t line_end(const uint8_t *text, size_t len, size_t at)
{
    const uint8_t *nl = memchr(text + at, '\n', len - at);
    return nl ? (size_t)(nl - text) + 1 : len;
}

/* Returns the offset of the first character in [from, to) that is not white space. */
static size_t skip_blanks(const uint8_t *text, size_t from, size_t to)
{
    uint32_t n;
    for (; from < to; from += n) {
        uint32_t code = leat__utf8_decode(text + from, &n);
        if (code < 0x80 ? !is_blank((uint8_t)code) : !(leat__unicode_of(code) & LEAT__UNI_SPACE)) break;
    }
    return from;
}

static bool all_blank(const uint8_t *text, size_t from, size_t to)
{
    return skip_blanks(text, from, to) == to;
}

/* Returns the end of [from, to) without trailing white space. */
static size_t cut_blanks(const uint8_t *text, size_t from, size_t to)
{
    while (to > from) {
        size_t last = to - 1;
        while (last > from && (text[last] & 0xc0) == 0x80) last--;
        if (!all_blank(text, last, to)) break;
        to = last;
    }
    return to;
}

leat__piece leat__piece_at(const uint8_t *text, size_t len, size_t at, uint32_t level)
{
    leat__piece p = {.begin = at, .end = line_end(text, len, at)};
    if (level == LEAT_LEVEL_PARAGRAPH) {
        bool blank = all_blank(text, at, p.end);
        while (!blank && p.end < len && !all_blank(text, p.end, line_end(text, len, p.end)))
            p.end = line_end(text, len, p.end);
    }
    p.next = p.end;
    if (level == LEAT_LEVEL_PARAGRAPH)
        while (p.next < len && all_blank(text, p.next, line_end(text, len, p.next)))
            p.next = line_end(text, len, p.next);
    p.begin = skip_blanks(text, p.begin, p.end);
    p.end = cut_blanks(text, p.begin, p.end);
    return p;
}

/* ---- hash ---- */

/* Returns the words of a sequence; 0 for lines and paragraphs. */
static uint32_t windows_of(const leat__dedup *d)
{
    return d->opts->level == LEAT_LEVEL_SUBSTRING ? d->opts->shingle_words : 0;
}

static int setup(void *cookie, void **ctx, leat_error *err)
{
    worker *w = LEAT_NEW(CURATE, worker);
    if (!w) return leat__fail_nomem(err, sizeof *w, "a worker");
    leat__buf_init(&w->text, LEAT__MEM_CURATE, (size_t)1 << 33);
    leat__buf_init(&w->now, LEAT__MEM_CURATE, (size_t)1 << 33);
    *ctx = w;
    return leat__sketcher_init(&w->sketcher, 1, 0, err);
}

static void teardown(void *cookie, void *ctx)
{
    worker *w = ctx;
    if (!w) return;
    leat__buf_reset(&w->text);
    leat__buf_reset(&w->now);
    leat__sketcher_reset(&w->sketcher);
    leat__free(w);
}

/* Bytes per worker: text, remaining text and, for substrings or normalised lines, words. A buffer may
 * double. */
static uint64_t need(void *cookie, uint64_t longest)
{
    const lines *l = cookie;
    const leat__sketcher s = {.words = 1};
    bool words = l->window || l->d->opts->normalize;
    return 4 * longest + (words ? leat__sketcher_need(&s, longest) : 0);
}

/* Copies the text of a document to w->text. */
static int take_text(worker *w, leat__text_chunk *c, const leat__record_fields *r, leat_error *err)
{
    leat__buf_clear(&w->text);
    if (leat__buf_reserve(&w->text, r->text.raw_len + LEAT__TEXT_PAD) != 0)
        return leat__fail_nomem(err, r->text.raw_len, "a document");
    w->text.len = leat__jsonl_text(&r->text, (uint8_t *)w->text.data, &c->count[N_LONE]);
    return 0;
}

/* Hashes a piece. *any is false when the piece is empty. */
static int hash_piece(const lines *l, worker *w, const leat__piece *p, leat__hash128 *h, bool *any,
                      leat_error *err)
{
    const char *text = w->text.data + p->begin;
    size_t len = p->end - p->begin;
    *any = len > 0;
    if (!*any) return 0;
    if (l->d->opts->normalize) {
        uint32_t n;
        LEAT_TRY(leat__sketcher_reserve(&w->sketcher, len, err));
        memcpy(w->sketcher.text, text, len);
        LEAT_TRY(leat__sketcher_shingles(&w->sketcher, len, &n, err));
        *any = n > 0;
        *h = leat__hash128_of(w->sketcher.shingle, n * sizeof(uint64_t), 0);
    } else {
        *h = leat__hash128_of(text, len, 0);
    }
    return 0;
}

/* Finds the words of w->text with the sketcher; *count is the number of sequences. */
static int find_windows(const lines *l, worker *w, uint32_t *count, leat_error *err)
{
    uint32_t n;
    LEAT_TRY(leat__sketcher_reserve(&w->sketcher, w->text.len, err));
    memcpy(w->sketcher.text, w->text.data, w->text.len);
    LEAT_TRY(leat__sketcher_shingles(&w->sketcher, w->text.len, &n, err));
    n = w->sketcher.word_count;
    *count = n < l->window ? 0 : n - l->window + 1;
    return 0;
}

static int hash_windows(const lines *l, worker *w, leat__text_chunk *c, leat_error *err)
{
    uint32_t count;
    LEAT_TRY(find_windows(l, w, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        leat__hash128 h = leat__hash128_of(w->sketcher.word_hash + i, l->window * sizeof(uint64_t), 0);
        leat__buf_append(&c->out[0], &h.low, 8);
        leat__buf_append(&c->out[0], &h.high, 8);
    }
    leat__buf_append(&c->out[OUT_COUNTS], &count, sizeof count);
    c->count[N_PIECES] += count;
    return 0;
}

static int hash_pieces(const lines *l, worker *w, leat__text_chunk *c, leat_error *err)
{
    for (size_t at = 0; at < w->text.len;) {
        leat__hash128 h;
        bool any;
        leat__piece p = leat__piece_at((const uint8_t *)w->text.data, w->text.len, at, l->d->opts->level);
        LEAT_TRY(hash_piece(l, w, &p, &h, &any, err));
        if (any) {
            leat__buf_append(&c->out[0], &h.low, 8);
            leat__buf_append(&c->out[0], &h.high, 8);
            c->count[N_PIECES]++;
        }
        at = p.next;
    }
    return 0;
}

static int hash_document(lines *l, worker *w, leat__text_chunk *c, const leat__record_fields *r,
                         leat_error *err)
{
    uint64_t before = c->count[N_PIECES];
    LEAT_TRY(take_text(w, c, r, err));
    LEAT_TRY(l->window ? hash_windows(l, w, c, err) : hash_pieces(l, w, c, err));
    c->count[N_DOCUMENTS]++;
    c->count[N_TEXT] += w->text.len;
    c->count[N_EMPTY] += c->count[N_PIECES] == before;
    return 0;
}

/* Frees the memory that a large document needed. */
static int shrink(const lines *l, worker *w, const leat__text_chunk *c, leat_error *err)
{
    if (c->longest <= LARGE) return 0;
    leat__buf_reset(&w->text);
    leat__buf_reset(&w->now);
    leat__sketcher_reset(&w->sketcher);
    return leat__sketcher_init(&w->sketcher, 1, 0, err);
}

static int hash_chunk(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    lines *l = cookie;
    leat__line line;
    size_t at = 0, where = 0;
    if (c->too_long && l->d->opts->fail_on_bad)
        return leat__fail(err, LEAT_EDATA, "%s: line %llu: %s", l->d->files.path[c->file],
                          (unsigned long long)c->line, LEAT__LINE_TOO_LONG);
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        const char *wrong = leat__line_read(&l->d->names, &line, &r, &where);
        if (!wrong) LEAT_TRY(hash_document(l, ctx, c, &r, err));
        else if (l->d->opts->fail_on_bad)
            return leat__fail(err, LEAT_EDATA, "%s: line %llu, offset %llu: %s", l->d->files.path[c->file],
                              (unsigned long long)line.number, (unsigned long long)(line.offset + where),
                              wrong);
    }
    LEAT_TRY(shrink(l, ctx, c, err));
    return c->out[0].status == 0 && c->out[OUT_COUNTS].status == 0
               ? 0
               : leat__fail_nomem(err, c->out[0].len, "results");
}

int leat__dedup_count_pieces(leat__dedup *d, leat__text_chunk *c, bool inside, uint64_t *pieces,
                             uint64_t *bytes, leat_error *err)
{
    lines l = {.d = d, .window = windows_of(d)};
    void *ctx = NULL;
    leat__line line;
    size_t at = 0, where = 0;
    int rc = setup(&l, &ctx, err);
    *bytes = 0;
    while (rc == 0 && leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        if (inside && line.number == c->line) continue;
        *bytes += line.len + 1;
        if (!leat__line_read(&d->names, &line, &r, &where)) rc = hash_document(&l, ctx, c, &r, err);
    }
    *pieces = c->count[N_PIECES];
    teardown(&l, ctx);
    return rc;
}

static int note_start(lines *l, const leat__text_chunk *c, leat_error *err)
{
    if (l->chunks == l->capacity) {
        size_t n = l->capacity ? 2 * l->capacity : 256;
        start *p = leat__realloc(LEAT__MEM_CURATE, l->starts, n * sizeof *p);
        if (!p) return leat__fail_nomem(err, n * sizeof *p, "the list of chunks");
        l->starts = p;
        l->capacity = n;
    }
    start now = {c->document, l->d->st.pieces};
    l->starts[l->chunks++] = now;
    return leat__spill_put(&l->noted, 0, &now, sizeof now, err);
}

/* Writes hashes [from, from + n) of a chunk to the files. They belong to one document, or with lines
 * to all documents of the chunk. */
static int put_records(lines *l, const char *hashes, uint64_t from, uint64_t n, leat_error *err)
{
    for (uint64_t i = from; i < from + n; i++) {
        record r = {.piece = l->d->st.pieces++};
        memcpy(&r, hashes + 16 * i, 16);
        if (r.low == 0 && r.high == 0) r.low = 1; /* zero marks an empty slot of the table */
        LEAT_TRY(
            leat__spill_put(&l->part, (uint32_t)((r.high >> 32) * l->part.count >> 32), &r, sizeof r, err));
    }
    l->d->st.pieces += l->window;
    l->d->st.gaps += l->window;
    return 0;
}

/* Saves the state of the first step. */
static int save_hashes(lines *l, leat_error *err)
{
    leat__dedup *d = l->d;
    LEAT_TRY(leat__spill_flush(&l->part, true, err));
    LEAT_TRY(leat__spill_flush(&l->noted, true, err));
    leat__dedup_state_mark(&l->part, d->st.band_length, d->st.band_sum);
    leat__dedup_state_mark(&l->noted, d->st.side_length, d->st.side_sum);
    d->since_save = 0;
    return leat__dedup_save(d, err);
}

static int take_hashes(void *cookie, leat__text_chunk *c, leat_error *err)
{
    lines *l = cookie;
    leat__dedup_state *st = &l->d->st;
    uint64_t documents = l->window ? c->count[N_DOCUMENTS] : 1, at = 0;
    LEAT_TRY(note_start(l, c, err));
    for (uint64_t i = 0; i < documents; i++) {
        uint64_t n = l->window ? leat__load_u32(c->out[OUT_COUNTS].data + 4 * i) : c->count[N_PIECES];
        LEAT_TRY(put_records(l, c->out[0].data, at, n, err));
        at += n;
    }
    st->documents += c->count[N_DOCUMENTS];
    st->text_bytes += c->count[N_TEXT];
    st->lone_surrogates += c->count[N_LONE];
    st->empty += c->count[N_EMPTY];
    uint64_t bytes = c->len + c->too_long;
    st->file = c->file;
    st->offset = c->offset + bytes;
    st->line = c->line + c->lines;
    st->document = c->document + c->lines;
    l->d->since_save += bytes;
    /* save only between chunks that the last step will also find */
    return c->may_stop && l->d->since_save >= l->d->opts->checkpoint_bytes ? save_hashes(l, err) : 0;
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    const lines *l = cookie;
    const leat__dedup *d = l->d;
    if (!d->opts->progress) return 0;
    return d->opts->progress(d->opts->cookie, LEAT_MIN(d->bytes_done + bytes, d->bytes_total), d->bytes_total,
                             d->st.documents, d->stats->removed);
}

static int run_pass(lines *l, leat__text_pass *pass, uint64_t memory, leat_error *err)
{
    leat__dedup *d = l->d;
    leat_budget *budget = NULL;
    pass->cookie = l;
    pass->setup = setup;
    pass->teardown = teardown;
    pass->ram = 2u << 20;
    pass->need = need;
    pass->per_line = REPORT_BYTES;
    pass->memory = d->memory;
    pass->tell = tell;
    pass->meter = &d->meter;
    int rc = leat_budget_open(&budget, memory, err);
    if (rc == 0) rc = leat__text_flow_run(&d->files, pass, budget, d->opts->threads, &d->opts->log, err);
    if (budget) {
        leat_budget_stats bs;
        leat_budget_read(budget, &bs);
        d->stats->budget_peak_bytes = LEAT_MAX(d->stats->budget_peak_bytes, bs.peak);
    }
    leat_budget_close(&budget);
    return rc;
}

/* Loads the starts of the chunks that the saved state covers. */
static int load_starts(lines *l, leat_error *err)
{
    leat__file *f = NULL;
    uint64_t bytes = l->d->st.side_length[0];
    l->chunks = l->capacity = (size_t)(bytes / sizeof(start));
    if (l->chunks == 0) return 0;
    l->starts = leat__alloc_array(LEAT__MEM_CURATE, l->chunks, sizeof *l->starts);
    if (!l->starts) return leat__fail_nomem(err, bytes, "the list of chunks");
    LEAT_TRY(leat__spill_file(&l->noted, 0, &f, err));
    int rc = leat__file_pread(f, l->starts, l->chunks * sizeof(start), 0, err);
    leat__file_close(&f);
    return rc;
}

/* Opens the files of a new run, or those of the saved state. */
static int open_parts(lines *l, leat_error *err)
{
    leat__dedup *d = l->d;
    leat__dedup_state *st = &d->st;
    bool resumed = st->band_length != NULL, marked = st->phase == LEAT__PHASE_WRITE;
    if (!resumed) {
        st->parts = (uint32_t)LEAT_MIN(d->stats->plan_disk / LEAT_MAX(d->memory / 8, 1) + 1, 256);
        LEAT_TRY(leat__dedup_state_bands(st, st->parts, err));
        st->line = 1;
    }
    size_t buffer = (size_t)LEAT_MIN(LEAT_MAX(d->memory / 16 / st->band_files, 4096), 256u << 10);
    if (marked) leat__spill_clear(d->work, "part", st->band_files); /* left by a run that was killed */
    else
        LEAT_TRY(leat__spill_open(&l->part, d->work, "part", st->band_files, buffer,
                                  resumed ? st->band_length : NULL, resumed ? st->band_sum : NULL, err));
    LEAT_TRY(leat__spill_open(&l->noted, d->work, "starts", 1, 64u << 10, resumed ? st->side_length : NULL,
                              resumed ? st->side_sum : NULL, err));
    return load_starts(l, err);
}

static int hash_all(lines *l, leat_error *err)
{
    leat__dedup *d = l->d;
    leat__dedup_state *st = &d->st;
    /* a hash takes 16 bytes for a word of at least 2 bytes, or for a line of at least 3 */
    leat__text_pass pass = {
        .name = "hash", .per_byte = l->window ? 16 / 2 : 16 / 3 + 1, .work = hash_chunk, .take = take_hashes};
    if (st->document == 0) LEAT_TRY(leat__text_files_begin(&d->files, false, err));
    LEAT_TRY(leat__text_files_seek(&d->files, st->file, st->offset, st->line, st->document, err));
    LEAT_TRY(run_pass(l, &pass, d->memory - d->memory / 8, err));
    LEAT_TRY(leat__text_files_end(&d->files, err));
    st->phase = LEAT__PHASE_GROUP;
    st->part = 0;
    return save_hashes(l, err);
}

/* ---- mark ---- */

/* Adds the hash; returns false when the table is full. *seen: the hash was known and its piece does
 * not overlap this one. */
static bool enter(lines *l, const record *r, bool *seen)
{
    uint64_t mask = l->slots - 1;
    for (uint64_t i = leat__mix64(r->low) & mask;; i = (i + 1) & mask) {
        record *slot = &l->table[i];
        *seen = slot->low == r->low && slot->high == r->high;
        if (*seen) {
            *seen = r->piece - slot->piece >= l->window;
            return true;
        }
        if (slot->low != 0 || slot->high != 0) continue;
        if (l->used >= l->slots - l->slots / 4) return false;
        *slot = *r;
        l->used++;
        return true;
    }
}

static int mark_slice(lines *l, leat__file *f, record *block, uint64_t slice, uint64_t slices, bool *full,
                      leat_error *err)
{
    uint64_t records = leat__file_size_at_open(f) / sizeof(record);
    bool seen;
    memset(l->table, 0, l->slots * sizeof *l->table);
    l->used = 0;
    *full = false;
    for (uint64_t at = 0; at < records; at += BLOCK) {
        uint64_t n = LEAT_MIN(BLOCK, records - at);
        if (at / BLOCK % LOOK_BLOCKS == 0 && tell(l, l->d->files.total, 0) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        LEAT_TRY(leat__file_pread(f, block, n * sizeof *block, at * sizeof *block, err));
        for (uint64_t i = 0; i < n; i++) {
            if ((block[i].low >> 32) * slices >> 32 != slice) continue;
            if (!enter(l, &block[i], &seen)) {
                *full = true;
                return 0;
            }
            if (block[i].piece >= l->d->st.pieces)
                return leat__fail(err, LEAT_EDATA, "%s: is damaged", leat__file_path(f));
            if (seen) l->removed[block[i].piece / 8] |= (uint8_t)(1u << block[i].piece % 8);
        }
    }
    return 0;
}

static int mark_part(lines *l, uint32_t part, record *block, leat_error *err)
{
    leat__file *f = NULL;
    uint64_t slices = 1;
    bool full = false;
    int rc = leat__spill_file(&l->part, part, &f, err);
    for (uint64_t s = 0; s < slices && rc == 0; s++) {
        rc = mark_slice(l, f, block, s, slices, &full, err);
        if (!full) continue;
        slices *= 2; /* bits already set stay correct */
        s = UINT64_MAX;
        if (slices > SLICES_MAX)
            rc = leat__fail(err, LEAT_EBUDGET, "the lines need more memory (raise `memory`)");
    }
    leat__file_close(&f);
    return rc;
}

/* Saves the bits of the removed pieces and the number of the next part. The bits go to the file that the
 * saved state does not name, so that this state stays valid until the new one replaces it. */
static int save_marks(lines *l, uint64_t bits, leat_error *err)
{
    leat__dedup *d = l->d;
    char path[4096], old[4096];
    leat__file *f = NULL;
    int rc;
    leat__dedup_removed_path(d, old);
    d->st.removed_file = !d->st.removed_file;
    LEAT_GO(rc, out,
            leat__file_open(&f, leat__dedup_removed_path(d, path),
                            LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    LEAT_GO(rc, out, leat__file_pwrite(f, l->removed, bits, 0, err));
    LEAT_GO(rc, out, leat__file_sync(f, err));
    l->saves++;
    d->st.disk_peak = LEAT_MAX(d->st.disk_peak, leat__spill_bytes(&l->part) + leat__spill_bytes(&l->noted) +
                                                    bits * LEAT_MIN(l->saves, 2));
    d->st.decisions_sum = leat__spill_sum_of(l->removed, bits, 0);
    LEAT_GO(rc, out, leat__dedup_save(d, err));
    rc = leat__path_unlink(old, err);
out:
    leat__file_close(&f);
    return rc;
}

static int load_marks(lines *l, uint64_t bits, leat_error *err)
{
    char path[4096];
    leat__file *f = NULL;
    if (l->d->st.phase == LEAT__PHASE_GROUP && l->d->st.part == 0) return 0;
    LEAT_TRY(leat__file_open(&f, leat__dedup_removed_path(l->d, path), LEAT__FILE_READ, err));
    int rc = leat__file_pread(f, l->removed, bits, 0, err);
    leat__file_close(&f);
    return rc;
}

/* Marks the parts from st.part on, and saves the bits at intervals. */
static int mark_parts(lines *l, record *block, uint64_t bits, leat_error *err)
{
    leat__dedup *d = l->d;
    uint64_t since = 0;
    while (d->st.part < l->part.count) {
        LEAT_TRY(mark_part(l, d->st.part, block, err));
        since += l->part.length[d->st.part++];
        if (since < d->opts->checkpoint_bytes || d->st.part == l->part.count) continue;
        LEAT_TRY(save_marks(l, bits, err));
        since = 0;
    }
    d->st.phase = LEAT__PHASE_WRITE;
    LEAT_TRY(save_marks(l, bits, err));
    return leat__spill_remove(&l->part, err); /* leaves their place on the disk to the output */
}

static int mark_all(lines *l, leat_error *err)
{
    leat__dedup *d = l->d;
    uint64_t bits = d->st.pieces / 8 + 1, most = 0;
    if (bits > d->memory / 2)
        return leat__fail(err, LEAT_EBUDGET,
                          "%llu lines or words need at least %llu MiB of memory (raise `memory`)",
                          (unsigned long long)d->st.pieces, (unsigned long long)(bits >> 19) + 1);
    for (uint32_t i = 0; i < l->part.count; i++) most = LEAT_MAX(most, l->part.length[i] / sizeof(record));
    l->slots = 1024;
    while (l->slots < 2 * most && 2 * l->slots * sizeof(record) <= (d->memory - bits) / 2) l->slots *= 2;
    record *block = leat__alloc_array(LEAT__MEM_CURATE, BLOCK, sizeof *block);
    l->removed = leat__zalloc(LEAT__MEM_CURATE, bits);
    l->table = leat__alloc_array(LEAT__MEM_CURATE, l->slots, sizeof *l->table);
    int rc = block && l->removed && l->table ? load_marks(l, bits, err)
                                             : leat__fail_nomem(err, bits, "the table of lines");
    if (rc == 0 && d->st.phase == LEAT__PHASE_GROUP) rc = mark_parts(l, block, bits, err);
    leat__free(block);
    leat__free(l->table);
    l->table = NULL;
    return rc;
}

/* ---- write ---- */

static uint64_t first_piece(const lines *l, uint64_t document)
{
    size_t low = 0, high = l->chunks;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (l->starts[mid].document <= document) low = mid;
        else high = mid;
    }
    return l->starts[low].piece;
}

static bool is_removed(const lines *l, uint64_t piece)
{
    return piece < l->d->st.pieces && (l->removed[piece / 8] >> piece % 8 & 1);
}

/* Appends a part of the text to w->now, after a line feed if it is not the first part. */
static void keep_text(worker *w, size_t from, size_t to)
{
    if (from == to) return;
    if (w->now.len > 0) leat__buf_putc(&w->now, '\n');
    leat__buf_append(&w->now, w->text.data + from, to - from);
}

/* Returns the offset of the text that stays after a removed word that ends at `at`. The punctuation between
 * the word and the next white space belongs to the word; the white space is removed with it. Signs and
 * brackets before the next word stay. */
static size_t after_word(const uint8_t *text, size_t len, size_t at)
{
    size_t end = at;
    uint32_t n;
    for (; end < len; end += n) {
        uint8_t kind = leat__unicode_of(leat__utf8_decode(text + end, &n));
        if (kind & LEAT__UNI_SPACE) break;
        if (!(kind & LEAT__UNI_MARK)) return at; /* it joins two words: "up/down" */
    }
    return skip_blanks(text, end, len);
}

/* Like cut_text, for substrings. A line feed replaces a removed span between two parts. */
static int cut_windows(const lines *l, worker *w, leat__text_chunk *c, uint64_t *piece, uint64_t *words,
                       uint64_t *removed, uint64_t *spans, leat_error *err)
{
    uint32_t count, end = 0; /* end: the word after all sequences so far */
    size_t from = 0;
    LEAT_TRY(find_windows(l, w, &count, err));
    const uint32_t *bounds = w->sketcher.bounds;
    *words = w->sketcher.word_count;
    *removed = *spans = 0;
    leat__buf_clear(&w->now);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_removed(l, *piece + i)) continue;
        uint32_t first = LEAT_MAX(i, end);
        if (i > end || *spans == 0) {
            keep_text(w, from, bounds[2 * i]);
            ++*spans;
        }
        end = i + l->window;
        *removed += end - first;
        from = after_word((const uint8_t *)w->text.data, w->text.len, bounds[2 * end - 1]);
    }
    keep_text(w, from, w->text.len);
    while (from == w->text.len && w->now.len > 0 && is_blank((uint8_t)w->now.data[w->now.len - 1]))
        w->now.len--;
    c->count[N_BYTES] += w->text.len - LEAT_MIN(w->now.len, w->text.len);
    *piece += count + l->window;
    return w->now.status == 0 ? 0 : leat__fail_nomem(err, w->now.len, "a document");
}

/* Drops the newline before a last line that was taken out, or all white space before a paragraph. */
static void drop_end(leat__buf *text, uint32_t level)
{
    if (level == LEAT_LEVEL_PARAGRAPH) text->len = cut_blanks((const uint8_t *)text->data, 0, text->len);
    else if (text->len > 0 && text->data[text->len - 1] == '\n') text->len--;
}

/* Writes the remaining text to w->now and counts its pieces. */
static int cut_text(const lines *l, worker *w, leat__text_chunk *c, uint64_t *piece, uint64_t *pieces,
                    uint64_t *removed, leat_error *err)
{
    const uint8_t *text = (const uint8_t *)w->text.data;
    size_t len = w->text.len;
    bool last = false;
    *pieces = *removed = 0;
    leat__buf_clear(&w->now);
    for (size_t at = 0; at < len;) {
        leat__hash128 h;
        bool any;
        leat__piece p = leat__piece_at(text, len, at, l->d->opts->level);
        LEAT_TRY(hash_piece(l, w, &p, &h, &any, err));
        last = any && is_removed(l, *piece);
        if (!last) leat__buf_append(&w->now, text + at, p.next - at);
        else c->count[N_BYTES] += p.next - at;
        *piece += any;
        *pieces += any;
        *removed += last;
        at = p.next;
    }
    if (last && text[len - 1] != '\n') drop_end(&w->now, l->d->opts->level);
    return w->now.status == 0 ? 0 : leat__fail_nomem(err, w->now.len, "a document");
}

static int write_document(const lines *l, worker *w, leat__text_chunk *c, const leat__line *line,
                          const leat__record_fields *r, uint64_t *piece, leat_error *err)
{
    uint64_t pieces, removed, spans = 0; /* pieces: words when removing substrings */
    const uint64_t before = c->count[N_BYTES];
    LEAT_TRY(take_text(w, c, r, err));
    LEAT_TRY(l->window ? cut_windows(l, w, c, piece, &pieces, &removed, &spans, err)
                       : cut_text(l, w, c, piece, &pieces, &removed, err));
    /* lines without words are not pieces, but they are kept text */
    bool keep = removed < pieces || pieces == 0 ||
                (!l->window && !all_blank((const uint8_t *)w->now.data, 0, w->now.len));
    c->count[N_KEPT] += keep;
    c->count[N_REMOVED] += l->window ? spans : removed;
    if (removed == 0) {
        leat__buf_append(&c->out[OUT_KEPT], line->text, line->len);
        leat__buf_putc(&c->out[OUT_KEPT], '\n');
        return 0;
    }
    if (keep) leat__line_put(&c->out[OUT_KEPT], line, &r->text, leat__buf_str(&w->now), w->now.len);
    if (l->report) {
        leat__buf id;
        leat__buf_init(&id, LEAT__MEM_CURATE, 1u << 20);
        leat__line_id_json(&l->d->names, c, line, r, &id);
        leat__pieces_note(&c->out[OUT_REPORT], pieces, removed, c->count[N_BYTES] - before,
                          leat__buf_str(&id));
        leat__buf_reset(&id);
    }
    leat__buf *out = &c->out[OUT_CHANGED];
    c->count[N_CHANGED]++;
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(&l->d->names, c, line, r, out);
    leat__buf_printf(out, ",\"%s\":%llu,\"removed\":%llu,\"kept\":%s}\n", l->window ? "words" : "pieces",
                     (unsigned long long)pieces, (unsigned long long)removed, keep ? "true" : "false");
    return 0;
}

static int write_chunk(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    const lines *l = cookie;
    leat__line line;
    size_t at = 0, where;
    c->changed = c->document + c->lines > l->d->st.document;
    if (c->changed) return 0;
    uint64_t piece = first_piece(l, c->document);
    if (c->too_long) {
        c->count[N_BAD]++;
        leat__line_bad_json(&l->d->names, c->file, c->line, c->offset, LEAT__LINE_TOO_LONG, &c->out[OUT_BAD]);
    }
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        const char *wrong = leat__line_read(&l->d->names, &line, &r, &where);
        if (!wrong) {
            LEAT_TRY(write_document(l, ctx, c, &line, &r, &piece, err));
            continue;
        }
        c->count[N_BAD]++;
        leat__line_bad_json(&l->d->names, c->file, line.number, line.offset + where, wrong, &c->out[OUT_BAD]);
    }
    LEAT_TRY(shrink(l, ctx, c, err));
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++)
        if (c->out[i].status != 0) return leat__fail_nomem(err, c->out[i].len, "results");
    return leat__compress_buf(&c->out[OUT_KEPT], (leat__compress)l->d->opts->compress, err);
}

static int take_chunk(void *cookie, leat__text_chunk *c, leat_error *err)
{
    lines *l = cookie;
    leat_dedup_stats *st = l->d->stats;
    st->kept += c->count[N_KEPT];
    st->bad += c->count[N_BAD];
    st->changed += c->count[N_CHANGED];
    st->pieces_removed += c->count[N_REMOVED];
    st->bytes_removed += c->count[N_BYTES];
    st->removed = l->d->st.documents - st->kept;
    if (l->report) leat__pieces_add(l->report, &c->out[OUT_REPORT]);
    LEAT_TRY(leat__shards_put(&l->kept, c->out[OUT_KEPT].data, c->out[OUT_KEPT].len, err));
    LEAT_TRY(leat__shards_put(&l->changed, c->out[OUT_CHANGED].data, c->out[OUT_CHANGED].len, err));
    return leat__shards_put(&l->bad, c->out[OUT_BAD].data, c->out[OUT_BAD].len, err);
}

/* Writes the report: the page and its data. */
static int store_report(const lines *l, leat_error *err)
{
    const char *unit = l->window                                   ? "words"
                       : l->d->opts->level == LEAT_LEVEL_PARAGRAPH ? "paragraphs"
                                                                   : "lines";
    return leat__pieces_store(l->report, l->d, unit, err);
}

static int write_all(lines *l, leat_error *err)
{
    leat__dedup *d = l->d;
    const leat_dedup_opts *o = d->opts;
    leat__text_pass pass = {.name = "write", .work = write_chunk, .take = take_chunk};
    uint64_t shard = o->shard_bytes ? o->shard_bytes : UINT64_C(1) << 30, bits = d->st.pieces / 8;
    LEAT_TRY(leat__shards_open(&l->kept, o->output, "kept", shard, (leat__compress)o->compress, err));
    LEAT_TRY(leat__shards_open(&l->changed, o->output, "changed", 0, LEAT__COMPRESS_NONE, err));
    LEAT_TRY(leat__shards_open(&l->bad, o->output, "bad", 0, LEAT__COMPRESS_NONE, err));
    d->bytes_done = d->files.total;
    leat__text_files_rewind(&d->files);
    LEAT_TRY(leat__text_files_begin(&d->files, true, err));
    LEAT_TRY(run_pass(l, &pass, d->memory - bits, err));
    LEAT_TRY(leat__text_files_end(&d->files, err));
    d->stats->removed = d->st.documents - d->stats->kept;
    d->stats->pieces = d->st.pieces - d->st.gaps;
    LEAT_TRY(leat__dedup_refuse_empty(d, err));
    /* the report comes first: when the disk is full, the earlier output is kept */
    if (l->report) LEAT_TRY(store_report(l, err));
    LEAT_TRY(leat__output_clear(o->output, err));
    LEAT_TRY(leat__shards_commit(&l->kept, err));
    LEAT_TRY(leat__shards_commit(&l->changed, err));
    LEAT_TRY(leat__shards_commit(&l->bad, err));
    d->stats->shards = leat__shards_filled(&l->kept);
    d->stats->bytes_out = l->kept.bytes;
    return 0;
}

int leat__dedup_lines(leat__dedup *d, leat_error *err)
{
    lines l = {.d = d, .window = windows_of(d)};
    int rc;
    d->bytes_done = 0;
    if (d->opts->report) {
        l.report = LEAT_NEW(CURATE, leat__pieces_report);
        if (!l.report) return leat__fail_nomem(err, sizeof *l.report, "the report");
    }
    LEAT_GO(rc, out, open_parts(&l, err));
    if (d->st.phase == LEAT__PHASE_SKETCH) LEAT_GO(rc, out, hash_all(&l, err));
    LEAT_GO(rc, out, mark_all(&l, err));
    rc = write_all(&l, err);
out:
    leat__spill_reset(&l.part);
    leat__spill_reset(&l.noted);
    leat__shards_reset(&l.kept);
    leat__shards_reset(&l.changed);
    leat__shards_reset(&l.bad);
    leat__free(l.starts);
    leat__free(l.removed);
    leat__free(l.report);
    return rc;
}
