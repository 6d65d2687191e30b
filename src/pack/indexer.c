/* SPDX-License-Identifier: Apache-2.0
 *
 * See indexer.h. All sizes are known before the first byte is written (counts times widths). So
 * one pass over the journal can scatter its rows to all columns at once, each column through its
 * own small buffer. Key hashes are first written unsorted past the end of the future file, then
 * sorted into their sections, and finally truncated.
 */
#include "pack/indexer.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/keysort.h"

#define COLUMN_BUFFERS (16u << 20) /* bytes for all columns together; at most 256 KiB each */

/* ---- the plan: position of each section ------------------------------------------------- */

typedef struct plan {
    leat__section *sections;
    size_t count, capacity;
    uint64_t end;     /* of the last section */
    leat__buf schema; /* JSON */
    leat__buf names;  /* of blobs */
    leat__footer footer;
} plan;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + LEAT__PACK_SECTION_ALIGN - 1) & ~(uint64_t)(LEAT__PACK_SECTION_ALIGN - 1);
}

static leat__section *add_section(plan *p, uint32_t kind, uint64_t length, uint32_t width)
{
    LEAT_ASSERT(p->count < p->capacity);
    uint64_t start = round_up(p->end);
    leat__section *s = &p->sections[p->count++];
    *s = (leat__section){
        .kind = kind, .field = LEAT__PACK_NO_FIELD, .offset = start, .length = length, .width = width};
    p->end = start + length;
    return s;
}

static const leat__section *section(const plan *p, uint32_t kind)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->sections[i].kind == kind) return &p->sections[i];
    return NULL;
}

static void plan_blobs(plan *p, const leat__blobs *blobs)
{
    for (size_t i = 0; i < blobs->count; i++) (void)leat__buf_puts(&p->names, blobs->items[i].name);
    add_section(p, LEAT__SECTION_BLOB_NAMES, p->names.len, 1);
    uint64_t name_at = 0;
    for (size_t i = 0; i < blobs->count; i++) {
        const leat__blob *b = &blobs->items[i];
        leat__section *s =
            add_section(p, LEAT__SECTION_BLOB, b->packed != NULL ? b->packed_size : b->size, 1);
        if (b->packed != NULL) s->unpacked = b->size;
        s->name_offset = name_at;
        s->name_length = (uint32_t)strlen(b->name);
        name_at += s->name_length;
    }
}

static void plan_samples(plan *p, const leat__indexer *x)
{
    uint64_t n = x->samples;
    add_section(p, LEAT__SECTION_PAGES, x->pages * LEAT__PACK_PAGE_WIDTH, LEAT__PACK_PAGE_WIDTH);
    add_section(p, LEAT__SECTION_SAMPLES, n * LEAT__PACK_SAMPLE_WIDTH, LEAT__PACK_SAMPLE_WIDTH);
    for (uint32_t i = 0; i < x->schema->count; i++) {
        uint32_t width = leat__field_width(&x->schema->fields[i]);
        add_section(p, LEAT__SECTION_COLUMN, n * width, width)->field = i;
    }
    add_section(p, LEAT__SECTION_KEYS, x->keys_bytes, 1);
    add_section(p, LEAT__SECTION_KEY_HASHES, n * 8, 8);
    add_section(p, LEAT__SECTION_KEY_ROWS, n * 4, 4);
}

static size_t drops_of(const leat__indexer *x)
{
    return x->drops != NULL ? x->drops->len : 0;
}

static void plan_footer(plan *p, const leat__indexer *x)
{
    LEAT_ASSERT(p->end >= x->data_end);
    leat__footer *f = &p->footer;
    f->major = drops_of(x) > 0 ? LEAT__PACK_MAJOR_DROPS : LEAT__PACK_MAJOR;
    f->minor = LEAT__PACK_MINOR;
    f->kind = x->kind;
    f->samples = x->samples;
    f->pages = x->pages;
    f->page_bytes = x->page_bytes;
    f->max_page_bytes = x->max_page_bytes;
    f->max_sample_bytes = x->max_sample_bytes;
    f->index_offset = x->data_end;
    f->index_bytes = round_up(p->end) - x->data_end;
    f->checks_bytes = round_up(leat__ceil_div(f->index_bytes, LEAT__PACK_CHUNK) * 8);
    f->roots_bytes = round_up(leat__ceil_div(f->checks_bytes, LEAT__PACK_CHUNK) * 8);
    f->sections = p->count;
    f->directory_bytes = round_up(p->count * LEAT__PACK_ENTRY);
    f->file_bytes = leat__footer_directory_at(f) + f->directory_bytes + LEAT__PACK_BLOCK;
    LEAT_ASSERT(f->file_bytes % LEAT__PACK_SECTION_ALIGN == 0 || x->data_end % LEAT__PACK_SECTION_ALIGN != 0);
}

static void plan_reset(plan *p)
{
    leat__free(p->sections);
    leat__buf_reset(&p->schema);
    leat__buf_reset(&p->names);
}

static int plan_make(plan *p, const leat__indexer *x, leat_error *err)
{
    memset(p, 0, sizeof *p);
    leat__buf_init(&p->schema, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    leat__buf_init(&p->names, LEAT__MEM_PACK, (size_t)LEAT__PACK_BLOBS_MAX * LEAT__PACK_NAME_MAX);
    p->capacity = x->schema->count + x->blobs->count + 16;
    p->sections = LEAT_NEW_ARRAY(PACK, leat__section, p->capacity);
    if (p->sections == NULL) return leat__fail_nomem(err, p->capacity * sizeof *p->sections, "the directory");
    if (leat__schema_json(x->schema, &p->schema) != 0)
        return leat__fail(err, p->schema.status, "cannot write the schema");
    p->end = x->data_end;
    add_section(p, LEAT__SECTION_SCHEMA, p->schema.len, 1);
    add_section(p, LEAT__SECTION_PROVENANCE, strlen(x->provenance), 1);
    if (x->kind == LEAT__PACK_FILE) plan_samples(p, x);
    else add_section(p, LEAT__SECTION_SHARDS, strlen(x->shards), 1);
    if (drops_of(x) > 0) add_section(p, LEAT__SECTION_DROPS, drops_of(x), 8);
    plan_blobs(p, x->blobs);
    if (leat__buf_status(&p->names) != 0)
        return leat__fail(err, p->names.status, "cannot write the names of the blobs");
    plan_footer(p, x);
    return 0;
}

int leat__indexer_size(const leat__indexer *x, uint64_t *file_bytes, leat_error *err)
{
    plan p;
    int rc = plan_make(&p, x, err);
    *file_bytes = p.footer.file_bytes;
    plan_reset(&p);
    return rc;
}

/* ---- columns ---------------------------------------------------------------------------- */

typedef struct column {
    uint64_t at; /* file offset of the buffer */
    uint8_t *data;
    size_t used, capacity;
} column;

static int column_flush(column *c, leat__file *file, leat_error *err)
{
    LEAT_ASSERT(c->used <= c->capacity);
    LEAT_TRY(leat__file_pwrite(file, c->data, c->used, c->at, err));
    c->at += c->used;
    c->used = 0;
    return 0;
}

static int column_put(column *c, leat__file *file, const void *data, size_t len, leat_error *err)
{
    LEAT_ASSERT(c->capacity > 0);
    const uint8_t *p = data;
    while (len > 0) {
        if (c->used == c->capacity) LEAT_TRY(column_flush(c, file, err));
        size_t n = LEAT_MIN(len, c->capacity - c->used);
        memcpy(c->data + c->used, p, n);
        c->used += n;
        p += n;
        len -= n;
    }
    return 0;
}

/* Columns of a pack: pages, samples, keys, hashes, then one per field. */
enum { COL_PAGES, COL_SAMPLES, COL_KEYS, COL_HASHES, COL_FIELDS };

typedef struct scatter {
    const leat__indexer *x;
    leat__file *file;
    column *cols;
    size_t count;
    uint8_t *memory;
    uint64_t page, first, key_base;
} scatter;

static int scatter_open(scatter *s, const leat__indexer *x, leat__file *file, const plan *p, leat_error *err)
{
    memset(s, 0, sizeof *s);
    s->x = x;
    s->file = file;
    s->count = COL_FIELDS + x->schema->count;
    size_t each = LEAT_MIN(COLUMN_BUFFERS / s->count, (size_t)256 << 10) & ~(size_t)4095;
    each = LEAT_MAX(each, (size_t)4096);
    s->cols = LEAT_NEW_ARRAY(PACK, column, s->count);
    s->memory = leat__alloc_array(LEAT__MEM_PACK, s->count, each);
    if (s->cols == NULL || s->memory == NULL)
        return leat__fail_nomem(err, s->count * each, "the columns of the index");
    for (size_t i = 0; i < s->count; i++) {
        s->cols[i].data = s->memory + i * each;
        s->cols[i].capacity = each;
    }
    s->cols[COL_PAGES].at = section(p, LEAT__SECTION_PAGES)->offset;
    s->cols[COL_SAMPLES].at = section(p, LEAT__SECTION_SAMPLES)->offset;
    s->cols[COL_KEYS].at = section(p, LEAT__SECTION_KEYS)->offset;
    s->cols[COL_HASHES].at = p->footer.file_bytes;
    for (size_t i = 0, field = COL_FIELDS; i < p->count; i++)
        if (p->sections[i].kind == LEAT__SECTION_COLUMN) s->cols[field++].at = p->sections[i].offset;
    return 0;
}

static void scatter_reset(scatter *s)
{
    leat__free(s->cols);
    leat__free(s->memory);
}

static int scatter_row(scatter *s, const uint8_t *row, const leat__journal_page *g, uint64_t *key_start,
                       leat_error *err)
{
    leat__sample_entry e;
    uint8_t bytes[LEAT__PACK_SAMPLE_WIDTH];
    leat__sample_entry_load(row, &e);
    if (e.key_end < *key_start || e.key_end > g->keys_bytes)
        return leat__fail(err, LEAT_EDATA, "journal: keys out of order");
    const uint8_t *key = g->keys + *key_start;
    size_t key_size = (size_t)(e.key_end - *key_start);
    *key_start = e.key_end;
    uint64_t hash = leat__key_hash(key, key_size);
    e.page = (uint32_t)s->page;
    e.key_end += s->key_base;
    leat__sample_entry_store(bytes, &e);
    LEAT_TRY(column_put(&s->cols[COL_SAMPLES], s->file, bytes, sizeof bytes, err));
    leat__store_u64(bytes, hash);
    LEAT_TRY(column_put(&s->cols[COL_HASHES], s->file, bytes, 8, err));
    row += LEAT__PACK_SAMPLE_WIDTH;
    for (uint32_t i = 0; i < s->x->schema->count; i++) {
        uint32_t width = leat__field_width(&s->x->schema->fields[i]);
        LEAT_TRY(column_put(&s->cols[COL_FIELDS + i], s->file, row, width, err));
        row += width;
    }
    return 0;
}

static int scatter_page(scatter *s, const leat__journal_page *g, leat_error *err)
{
    LEAT_ASSERT(s->page < s->x->pages && g->samples > 0);
    size_t row_bytes = LEAT__PACK_SAMPLE_WIDTH + s->x->schema->row_bytes;
    if (g->rows_bytes != g->samples * (uint64_t)row_bytes)
        return leat__fail(err, LEAT_EDATA, "journal: rows do not match the schema");
    leat__page_entry e = {g->offset, g->bytes, g->check, s->first};
    uint8_t bytes[LEAT__PACK_PAGE_WIDTH];
    leat__page_entry_store(bytes, &e);
    LEAT_TRY(column_put(&s->cols[COL_PAGES], s->file, bytes, sizeof bytes, err));
    LEAT_TRY(column_put(&s->cols[COL_KEYS], s->file, g->keys, g->keys_bytes, err));
    uint64_t key_start = 0;
    for (uint32_t i = 0; i < g->samples; i++)
        LEAT_TRY(scatter_row(s, g->rows + i * row_bytes, g, &key_start, err));
    s->page++;
    s->first += g->samples;
    s->key_base += g->keys_bytes;
    return 0;
}

static int scatter_all(scatter *s, leat_error *err)
{
    leat__journal_record r;
    uint64_t at = s->x->journal_from;
    while (s->page < s->x->pages) {
        int rc = leat__journal_read(s->x->journal, at, &r, err);
        if (rc == LEAT_ENOENT) return leat__fail(err, LEAT_EDATA, "journal: ends too early");
        LEAT_TRY(rc);
        if (r.kind == LEAT__RECORD_PAGE && r.page.shard == s->x->shard)
            LEAT_TRY(scatter_page(s, &r.page, err));
        at = r.next;
    }
    if (s->first != s->x->samples || s->key_base != s->x->keys_bytes)
        return leat__fail(err, LEAT_EDATA, "journal: counts of samples or key bytes do not match the shards");
    for (size_t i = 0; i < s->count; i++) LEAT_TRY(column_flush(&s->cols[i], s->file, err));
    return 0;
}

static int write_samples(const leat__indexer *x, leat__file *file, const plan *p, uint64_t *duplicates,
                         leat_error *err)
{
    scatter s;
    int rc;
    LEAT_GO(rc, out, scatter_open(&s, x, file, p, err));
    LEAT_GO(rc, out, scatter_all(&s, err));
    leat__keysort k = {
        .file = file,
        .count = x->samples,
        .from = p->footer.file_bytes,
        .hashes_to = section(p, LEAT__SECTION_KEY_HASHES)->offset,
        .rows_to = section(p, LEAT__SECTION_KEY_ROWS)->offset,
        .memory = x->sort_memory,
    };
    rc = leat__keysort_run(&k, duplicates, err);
out:
    scatter_reset(&s);
    return rc;
}

/* ---- text sections, checks, directory, footer ------------------------------------------- */

static int write_texts(const leat__indexer *x, leat__file *file, const plan *p, leat_error *err)
{
    size_t blob = 0;
    for (size_t i = 0; i < p->count; i++) {
        const leat__section *s = &p->sections[i];
        const void *data = NULL;
        if (s->kind == LEAT__SECTION_SCHEMA) data = p->schema.data;
        if (s->kind == LEAT__SECTION_PROVENANCE) data = x->provenance;
        if (s->kind == LEAT__SECTION_SHARDS) data = x->shards;
        if (s->kind == LEAT__SECTION_DROPS) data = x->drops->data;
        if (s->kind == LEAT__SECTION_BLOB_NAMES) data = p->names.data;
        if (s->kind == LEAT__SECTION_BLOB) {
            const leat__blob *b = &x->blobs->items[blob++];
            LEAT_ASSERT(blob <= x->blobs->count);
            data = b->packed != NULL ? b->packed : b->data;
        }
        if (data != NULL) LEAT_TRY(leat__file_pwrite(file, data, (size_t)s->length, s->offset, err));
    }
    return 0;
}

/* Computes one check per chunk of [from, from + bytes) into `out`, padded. */
static int hash_chunks(leat__file *file, uint64_t from, uint64_t bytes, uint8_t *chunk, leat__buf *out,
                       leat_error *err)
{
    for (uint64_t at = 0; at < bytes; at += LEAT__PACK_CHUNK) {
        size_t n = (size_t)LEAT_MIN(bytes - at, LEAT__PACK_CHUNK);
        uint8_t check[8];
        LEAT_TRY(leat__file_pread(file, chunk, n, from + at, err));
        leat__store_u64(check, leat__hash64(chunk, n, 0));
        (void)leat__buf_append(out, check, sizeof check);
    }
    (void)leat__buf_zeros(out, (size_t)(round_up(out->len) - out->len));
    if (leat__buf_status(out) != 0) return leat__fail_nomem(err, out->len, "checks");
    return 0;
}

static int write_tail(leat__file *file, plan *p, leat_error *err)
{
    leat__footer *f = &p->footer;
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_PACK, SIZE_MAX / 2);
    uint8_t *chunk = leat__alloc(LEAT__MEM_PACK, LEAT__PACK_CHUNK);
    int rc = chunk == NULL ? leat__fail_nomem(err, LEAT__PACK_CHUNK, "checks") : 0;
    if (rc != 0) goto out;

    LEAT_GO(rc, out, hash_chunks(file, f->index_offset, f->index_bytes, chunk, &out, err));
    LEAT_GO(rc, out, leat__file_pwrite(file, out.data, out.len, leat__footer_checks_at(f), err));
    leat__buf_clear(&out);
    LEAT_GO(rc, out, hash_chunks(file, leat__footer_checks_at(f), f->checks_bytes, chunk, &out, err));
    f->roots_check = leat__hash64(out.data, out.len, 0);
    LEAT_GO(rc, out, leat__file_pwrite(file, out.data, out.len, leat__footer_roots_at(f), err));

    leat__buf_clear(&out);
    for (size_t i = 0; i < p->count; i++) (void)leat__section_append(&out, &p->sections[i]);
    LEAT_ASSERT(out.len <= f->directory_bytes || leat__buf_status(&out) != 0);
    (void)leat__buf_zeros(&out, (size_t)(f->directory_bytes - out.len));
    if (leat__buf_status(&out) != 0) {
        rc = leat__fail_nomem(err, f->directory_bytes, "the directory");
        goto out;
    }
    f->directory_check = leat__hash64(out.data, out.len, 0);
    LEAT_GO(rc, out, leat__file_pwrite(file, out.data, out.len, leat__footer_directory_at(f), err));
    uint8_t block[LEAT__PACK_BLOCK];
    leat__footer_encode(f, block);
    rc = leat__file_pwrite(file, block, sizeof block, f->file_bytes - sizeof block, err);
out:
    leat__free(chunk);
    leat__buf_reset(&out);
    return rc;
}

int leat__indexer_write(const leat__indexer *x, leat__file *file, leat__footer *footer,
                        uint64_t *duplicate_keys, leat_error *err)
{
    LEAT_ASSERT(x->kind == LEAT__PACK_SET || (x->journal != NULL && x->samples >= x->pages));
    plan p;
    int rc;
    *duplicate_keys = 0;
    LEAT_GO(rc, out, plan_make(&p, x, err));
    /* Truncate first, then set the size: gaps between sections must be zeros, even if an earlier
     * attempt left bytes there. */
    LEAT_GO(rc, out, leat__file_truncate(file, x->data_end, err));
    LEAT_GO(rc, out, leat__file_truncate(file, p.footer.file_bytes, err));
    LEAT_GO(rc, out, write_texts(x, file, &p, err));
    if (x->kind == LEAT__PACK_FILE) LEAT_GO(rc, out, write_samples(x, file, &p, duplicate_keys, err));
    LEAT_GO(rc, out, write_tail(file, &p, err));
    LEAT_GO(rc, out, leat__file_truncate(file, p.footer.file_bytes, err));
    *footer = p.footer;
out:
    plan_reset(&p);
    return rc;
}
