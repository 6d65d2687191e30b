/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing the index of a deduplication.
 */
#include "curate/dedup_index.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define MAGIC "LEATDUPX"
#define VERSION 1       /* for whole texts, and for signatures of other tools */
#define WORDS_VERSION 3 /* for words and characters without case; before 3, only ASCII lost its case */
#define FOOTER 16
#define BLOCK (256u << 10)
#define ID_MAX (64u << 20)

static uint32_t version_of(const leat__index_header *h)
{
    bool folded = (h->kind & 255) == LEAT_DEDUP_FUZZY ? h->kind >> 8 == 0 : h->normalize != 0;
    return folded ? WORDS_VERSION : VERSION;
}

static leat__index_header header_of(const leat__dedup *d)
{
    const leat_dedup_opts *o = d->opts;
    leat__index_header h = {.kind = o->kind | o->compatible << 8,
                            .normalize = o->normalize != 0,
                            .words = o->shingle_words,
                            .chars = o->shingle_chars,
                            .bands = d->bands,
                            .rows = d->rows,
                            .sketch_bytes = d->sketch_bytes};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.version = version_of(&h);
    return h;
}

static const char *kind_name(uint32_t kind)
{
    static const char *const fuzzy[] = {"fuzzy", "fuzzy (datasketch)", "fuzzy (datasketch-legacy)",
                                        "fuzzy (datatrove)"};
    uint32_t compatible = kind >> 8;
    if ((kind & 255) == LEAT_DEDUP_EXACT) return "exact";
    return compatible < LEAT_COUNT(fuzzy) ? fuzzy[compatible] : "of another kind";
}

/* Computes the footer: the hash of the records, then of the header. */
static void finish_hash(leat__hasher *h, const leat__index_header *head, uint8_t *sum)
{
    leat__hasher_update(h, head, sizeof *head);
    leat__hash128 v = leat__hasher_value128(h);
    leat__store_u64(sum, v.low);
    leat__store_u64(sum + 8, v.high);
}

/* ---- reading ---- */

/* Fails with a message that says what the index was made with. */
static int refuse_other(const char *path, const leat__index_header *h, const leat__index_header *want,
                        leat_error *err)
{
    if (h->kind != want->kind)
        return leat__fail(err, LEAT_ESTATE,
                          "%s: was made by leat dedup %s, and cannot be used by leat dedup %s", path,
                          kind_name(h->kind), kind_name(want->kind));
    if (h->kind == LEAT_DEDUP_EXACT)
        return leat__fail(err, LEAT_ESTATE, "%s: was made %s `normalize` (use the same)", path,
                          h->normalize ? "with" : "without");
    return leat__fail(err, LEAT_ESTATE,
                      "%s: was made with shingles of %u %s, %u bands and %u rows (use the same)", path,
                      h->words ? h->words : h->chars, h->words ? "words" : "characters", h->bands, h->rows);
}

/* Fails when the checksum is wrong. */
static int check_sum(leat__file *f, const leat__index_header *h, leat_error *err)
{
    uint64_t end = leat__file_size_at_open(f) - FOOTER;
    uint8_t sum[FOOTER], found[FOOTER];
    leat__hasher *hash = leat__hasher_open(0);
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, BLOCK);
    int rc = hash && block ? leat__file_pread(f, sum, FOOTER, end, err)
                           : leat__fail_nomem(err, BLOCK, "the index");
    for (uint64_t at = sizeof *h; at < end && rc == 0; at += BLOCK) {
        size_t n = (size_t)LEAT_MIN(BLOCK, end - at);
        rc = leat__file_pread(f, block, n, at, err);
        if (rc == 0) leat__hasher_update(hash, block, n);
    }
    if (rc == 0) finish_hash(hash, h, found);
    if (rc == 0 && memcmp(sum, found, FOOTER) != 0)
        rc = leat__fail(err, LEAT_EDATA, "%s: the checksum is wrong (make the index again)",
                        leat__file_path(f));
    leat__hasher_close(&hash);
    leat__free(block);
    return rc;
}

static int check_header(const leat__dedup *d, const char *path, const leat__index_header *h, uint64_t size,
                        leat_error *err)
{
    leat__index_header want = header_of(d);
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->version != version_of(h))
        return leat__fail(err, LEAT_EFORMAT, "%s: not an index of this version of leat (make it again)",
                          path);
    if (size < sizeof *h + FOOTER || h->bytes > size - sizeof *h - FOOTER)
        return leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (truncated?)", path,
                          (unsigned long long)size, (unsigned long long)(h->bytes + sizeof *h + FOOTER));
    if (h->bytes < size - sizeof *h - FOOTER || h->documents >= UINT32_MAX)
        return leat__fail(err, LEAT_EDATA, "%s: is damaged (make the index again)", path);
    if (h->kind != want.kind || h->normalize != want.normalize || h->words != want.words ||
        h->chars != want.chars || h->bands != want.bands || h->rows != want.rows ||
        h->sketch_bytes != want.sketch_bytes) {
        LEAT_TRY(check_sum(d->index, h, err)); /* a damaged header may name other settings */
        return refuse_other(path, h, &want, err);
    }
    return 0;
}

int leat__dedup_index_open(leat__dedup *d, const char *folder, leat_error *err)
{
    char path[4200];
    leat__index_header h = {0};
    bool there;
    size_t got;
    if (snprintf(path, sizeof path, "%s/%s", folder, LEAT__INDEX_NAME) >= (int)sizeof path)
        return leat__fail(err, LEAT_EINVAL, "%s: the path is too long", folder);
    LEAT_TRY(leat__path_exists(path, &there, err));
    if (!there && leat__str_ends_nocase(folder, LEAT__INDEX_NAME))
        return leat__fail(err, LEAT_ENOENT, "%s: `against` names the folder of an index, not the index",
                          folder);
    if (!there)
        return leat__fail(err, LEAT_ENOENT, "%s: has no index (leat dedup writes one with --index)", folder);
    LEAT_TRY(leat__output_finished(folder, err));
    LEAT_TRY(leat__file_open(&d->index, path, LEAT__FILE_READ, err));
    uint64_t size = leat__file_size_at_open(d->index);
    LEAT_TRY(leat__file_pread_some(d->index, &h, sizeof h, 0, &got, err));
    LEAT_TRY(check_header(d, path, &h, size, err));
    LEAT_TRY(leat__file_pread(d->index, d->index_hash, FOOTER, size - FOOTER, err));
    d->against = h.documents;
    d->stats->against = h.documents;
    return 0;
}

void leat__dedup_index_close(leat__dedup *d)
{
    leat__file_close(&d->index);
}

/* The records as a byte stream. */
typedef struct source {
    leat__file *file;
    leat__hasher *hash;
    uint8_t *block;
    size_t at, len;
    uint64_t next, end; /* file offsets */
} source;

static int source_read(source *s, void *out, size_t len, leat_error *err)
{
    uint8_t *p = out;
    while (len > 0) {
        if (s->at == s->len) {
            s->len = (size_t)LEAT_MIN(BLOCK, s->end - s->next);
            s->at = 0;
            if (s->len == 0) return leat__fail(err, LEAT_EDATA, "the index ends early (truncated)");
            LEAT_TRY(leat__file_pread(s->file, s->block, s->len, s->next, err));
            leat__hasher_update(s->hash, s->block, s->len);
            s->next += s->len;
        }
        size_t n = LEAT_MIN(len, s->len - s->at);
        memcpy(p, s->block + s->at, n);
        s->at += n;
        p += n;
        len -= n;
    }
    return 0;
}

/* Adds one document to the files of the sketch phase. */
static int add_document(leat__dedup *d, uint32_t number, source *s, leat__buf *record, leat_error *err)
{
    const leat__dedup_keep first = {.value = INFINITY};
    size_t fixed = 8 * (size_t)d->bands + d->sketch_bytes + 4;
    leat__buf_clear(record);
    if (leat__buf_reserve(record, fixed) != 0) return leat__fail_nomem(err, fixed, "the index");
    LEAT_TRY(source_read(s, record->data, fixed, err));
    record->len = fixed;
    uint32_t id_len = leat__load_u32(record->data + fixed - 4);
    if (id_len > ID_MAX)
        return leat__fail(err, LEAT_EDATA, "%s: the index is damaged", leat__file_path(s->file));
    if (leat__buf_reserve(record, id_len) != 0) return leat__fail_nomem(err, id_len, "an id");
    LEAT_TRY(source_read(s, record->data + fixed, id_len, err));
    const uint8_t *digests = (const uint8_t *)record->data, *sketch = digests + 8 * (size_t)d->bands;
    uint32_t from = d->st.iteration * d->st.bands_at_once;
    uint32_t bands = LEAT_MIN(d->st.bands_at_once, d->bands - from);
    for (uint32_t b = 0; b < bands; b++) {
        leat__band_record r = {leat__load_u64(digests + 8 * (from + b)), number};
        uint32_t part = (uint32_t)((r.digest >> 32) * d->st.parts >> 32);
        LEAT_TRY(leat__spill_put(&d->band, b * d->st.parts + part, &r, sizeof r, err));
    }
    if (d->st.iteration > 0) return 0;
    LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_SKETCH, sketch, d->sketch_bytes, err));
    LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_IDS, record->data + fixed, id_len, err));
    d->st.ids_bytes += id_len;
    LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_ENDS, &d->st.ids_bytes, 8, err));
    if (d->opts->keep != LEAT_KEEP_FIRST)
        LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_KEEP, &first, sizeof first, err));
    if (d->rules.count > 0) LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_DROPPED, "", 1, err)); /* never */
    if (!d->opts->index) return 0;
    return leat__spill_put(&d->side, LEAT__SIDE_DIGESTS, digests, 8 * (size_t)d->bands, err);
}

static int add_all(leat__dedup *d, source *s, leat_error *err)
{
    leat__index_header h;
    leat__buf record;
    uint8_t sum[FOOTER];
    int rc = 0;
    leat__buf_init(&record, LEAT__MEM_CURATE, ID_MAX + (1u << 20));
    LEAT_GO(rc, out, leat__file_pread(s->file, &h, sizeof h, 0, err));
    for (uint64_t i = 0; i < d->against; i++) LEAT_GO(rc, out, add_document(d, (uint32_t)i, s, &record, err));
    finish_hash(s->hash, &h, sum);
    if (s->next != s->end || s->at != s->len || memcmp(sum, d->index_hash, FOOTER) != 0)
        rc = leat__fail(err, LEAT_EDATA, "%s/%s: the checksum is wrong (make the index again)",
                        d->opts->against, LEAT__INDEX_NAME);
out:
    leat__buf_reset(&record);
    return rc;
}

int leat__dedup_index_add(leat__dedup *d, leat_error *err)
{
    source s = {.file = d->index,
                .next = sizeof(leat__index_header),
                .end = leat__file_size_at_open(d->index) - FOOTER};
    s.hash = leat__hasher_open(0);
    s.block = leat__alloc(LEAT__MEM_CURATE, BLOCK);
    int rc = s.hash && s.block ? add_all(d, &s, err) : leat__fail_nomem(err, BLOCK, "the index");
    leat__hasher_close(&s.hash);
    leat__free(s.block);
    if (rc == 0) {
        d->st.document = d->against;
        d->st.line = 1;
    }
    return rc;
}

/* ---- writing ---- */

#define WINDOW 1024u /* documents read at a time */

enum { IN_DECISIONS, IN_SKETCH, IN_IDS, IN_ENDS, IN_DIGESTS, INS };

typedef struct target {
    leat__dedup *d;
    leat__file *out, *in[INS];
    leat__hasher *hash;
    leat__buf buf, block[INS]; /* buf: of the output file; block: of WINDOW documents */
    uint64_t written, end;     /* bytes written to the file; end of the ids before the window */
    leat__index_header head;
} target;

static int flush(target *t, leat_error *err)
{
    if (t->buf.status != 0) return leat__fail_nomem(err, t->buf.len, "the index");
    leat__hasher_update(t->hash, t->buf.data, t->buf.len);
    LEAT_TRY(leat__file_pwrite(t->out, t->buf.data, t->buf.len, t->written, err));
    t->written += t->buf.len;
    leat__buf_clear(&t->buf);
    return 0;
}

static int load(target *t, int which, uint64_t offset, uint64_t len, leat_error *err)
{
    leat__buf *b = &t->block[which];
    leat__buf_clear(b);
    if (leat__buf_reserve(b, len) != 0) return leat__fail_nomem(err, len, "the index");
    return leat__file_pread(t->in[which], b->data, len, offset, err);
}

static bool any_bit(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i]) return true;
    return false;
}

/* Writes the kept documents among `n` documents from number `from` on. Skips numbers without digests: lines
 * without a document, and documents without words. */
static int put_window(target *t, uint64_t from, uint64_t n, leat_error *err)
{
    const leat__dedup *d = t->d;
    size_t digests = 8 * (size_t)d->bands, sketch = d->sketch_bytes;
    LEAT_TRY(
        load(t, IN_DECISIONS, from * sizeof(leat__dedup_decision), n * sizeof(leat__dedup_decision), err));
    LEAT_TRY(load(t, IN_ENDS, from * 8, n * 8, err));
    LEAT_TRY(load(t, IN_DIGESTS, from * digests, n * digests, err));
    LEAT_TRY(load(t, IN_SKETCH, from * sketch, n * sketch, err));
    uint64_t begin = t->end, last = leat__load_u64(t->block[IN_ENDS].data + 8 * (n - 1));
    if (last < begin) return leat__fail(err, LEAT_EDATA, "the list of ids is damaged");
    LEAT_TRY(load(t, IN_IDS, begin, last - begin, err));
    const leat__dedup_decision *decision = (const leat__dedup_decision *)t->block[IN_DECISIONS].data;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t end = leat__load_u64(t->block[IN_ENDS].data + 8 * i), at = t->end;
        const char *mine = t->block[IN_DIGESTS].data + i * digests;
        if (end < at || end > last || end - at > ID_MAX)
            return leat__fail(err, LEAT_EDATA, "the list of ids is damaged");
        t->end = end;
        if (decision[i].kept_for != from + i || !any_bit(mine, digests)) continue;
        uint32_t id_len = (uint32_t)(end - at);
        leat__buf_append(&t->buf, mine, digests);
        leat__buf_append(&t->buf, t->block[IN_SKETCH].data + i * sketch, sketch);
        leat__buf_append(&t->buf, &id_len, 4);
        leat__buf_append(&t->buf, t->block[IN_IDS].data + (at - begin), id_len);
        t->head.documents++;
        t->head.bytes += digests + sketch + 4 + id_len;
        if (t->buf.len > BLOCK) LEAT_TRY(flush(t, err));
    }
    return 0;
}

static int write_all(target *t, const char *path, leat_error *err)
{
    static const char *const names[INS] = {"decisions", "side-0", "side-1", "side-2", "side-4"};
    leat__dedup *d = t->d;
    char p[4096];
    uint8_t sum[FOOTER];
    LEAT_TRY(leat__file_open(&t->out, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    for (int i = 0; i < INS; i++)
        LEAT_TRY(leat__file_open(&t->in[i], leat__dedup_path(d, names[i], p), LEAT__FILE_READ, err));
    t->head = header_of(d);
    t->written = sizeof t->head;
    for (uint64_t i = 0; i < d->st.document; i += WINDOW)
        LEAT_TRY(put_window(t, i, LEAT_MIN(WINDOW, d->st.document - i), err));
    LEAT_TRY(flush(t, err));
    finish_hash(t->hash, &t->head, sum);
    LEAT_TRY(leat__file_pwrite(t->out, sum, FOOTER, t->written, err));
    LEAT_TRY(leat__file_pwrite(t->out, &t->head, sizeof t->head, 0, err));
    d->stats->index_bytes = t->written + FOOTER;
    return leat__file_sync(t->out, err);
}

int leat__dedup_index_write(leat__dedup *d, leat_error *err)
{
    target t = {.d = d};
    char path[4200], partial[4216];
    snprintf(path, sizeof path, "%s/%s", d->opts->output, LEAT__INDEX_NAME);
    snprintf(partial, sizeof partial, "%s.partial", path);
    leat__buf_init(&t.buf, LEAT__MEM_CURATE, ID_MAX + 2 * BLOCK);
    for (int i = 0; i < INS; i++) leat__buf_init(&t.block[i], LEAT__MEM_CURATE, (size_t)1 << 33);
    t.hash = leat__hasher_open(0);
    int rc = t.hash ? write_all(&t, partial, err) : leat__fail_nomem(err, 0, "a hash");
    leat__file_close(&t.out);
    for (int i = 0; i < INS; i++) {
        leat__file_close(&t.in[i]);
        leat__buf_reset(&t.block[i]);
    }
    leat__hasher_close(&t.hash);
    leat__buf_reset(&t.buf);
    if (rc == 0) return leat__path_rename(partial, path, err);
    if (leat__path_unlink(partial, NULL) != 0) return rc; /* report the first failure */
    return rc;
}
