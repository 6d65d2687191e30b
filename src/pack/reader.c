/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads packs: the public calls. A sample of the pack is a sample of one shard. Each call splits its range
 * at shard borders and reads the shard's index, which verifies the bytes. Nothing is cached per sample, and
 * no lock is needed.
 */
#include "pack/reader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/reader_impl.h"

#define BATCH 128u /* rows read at once */
#define INDEX_CACHE_DEFAULT (16u << 20)
#define REPLACED_MAX 16 /* how often a set may be replaced while it is opened */
#define REMOTE_READS 6u /* attempts to read bytes damaged in transit */

/* ---- open ------------------------------------------------------------------------------- */

static int find_columns(const leat_pack *p, leat__shard *s, leat_error *err)
{
    const leat__index *x = s->index;
    for (uint64_t i = 0; i < x->footer.sections; i++) {
        const leat__section *c = &x->sections[i];
        if (c->kind == LEAT__SECTION_COLUMN && c->field < p->schema->count) s->columns[c->field] = c;
    }
    for (uint32_t i = 0; i < p->schema->count; i++) {
        const leat__section *c = s->columns[i];
        if (c == NULL || c->width != leat__field_width(&p->schema->fields[i]) ||
            c->length != x->footer.samples * c->width)
            return leat__fail(err, LEAT_EDATA,
                              "%s: the column of field \"%s\" is missing or"
                              " has the wrong size",
                              leat__file_path(x->file), p->schema->fields[i].name);
    }
    return 0;
}

/* Loads a text section and adds a NUL. */
static int load_text(leat__index *x, uint32_t kind, char **text, size_t *len, leat_error *err)
{
    void *data;
    LEAT_TRY(leat__index_load(x, leat__index_section(x, kind), LEAT__PACK_JSON_MAX, 1, &data, len, err));
    *text = data;
    return 0;
}

static int take_schema(leat_pack *p, leat__index *x, leat_error *err)
{
    size_t len;
    LEAT_TRY(load_text(x, LEAT__SECTION_SCHEMA, &p->schema_text, &len, err));
    int rc = leat__schema_parse(&p->schema, p->schema_text, len, err);
    if (rc != 0) leat__error_context(err, "%s", leat__file_path(x->file));
    return rc;
}

static int same_schema(leat_pack *p, leat__index *x, leat_error *err)
{
    char *text = NULL;
    size_t len;
    LEAT_TRY(load_text(x, LEAT__SECTION_SCHEMA, &text, &len, err));
    bool same = len == strlen(p->schema_text) && memcmp(text, p->schema_text, len) == 0;
    leat__free(text);
    if (same) return 0;
    return leat__fail(err, LEAT_EDATA, "%s: has another schema than %s", leat__file_path(x->file), p->path);
}

int leat__pack_add_shard(leat_pack *p, leat__index *index, leat_error *err)
{
    leat__shard *s = &p->shards[p->shard_count++];
    s->index = index; /* owned by the pack from here on */
    s->first_sample = p->samples;
    s->first_page = p->pages;
    if (p->set != NULL) LEAT_TRY(same_schema(p, index, err));
    s->columns = LEAT_NEW_ARRAY(PACK, const leat__section *, p->schema->count);
    if (s->columns == NULL) return leat__fail_nomem(err, p->schema->count * 8u, "columns");
    LEAT_TRY(find_columns(p, s, err));
    LEAT_TRY(leat__shard_take_drops(p, s, err));
    if (!leat__add_u64(p->samples, leat__shard_samples(s), &p->samples) ||
        !leat__add_u64(p->pages, index->footer.pages, &p->pages))
        return leat__fail(err, LEAT_EOVERFLOW, "%s: too many samples", p->path);
    return 0;
}

static int open_files(leat_pack *p, leat_error *err)
{
    leat__index *x = NULL;
    LEAT_TRY(leat__index_open(&x, NULL, p->source, p->direct, p->cache_limit, err));
    if (x->footer.kind == LEAT__PACK_SET) {
        p->set = x;
        LEAT_TRY(take_schema(p, x, err));
        return leat__pack_open_shards(p, err);
    }
    p->shards = LEAT_NEW(PACK, leat__shard);
    int rc = p->shards == NULL ? leat__fail_nomem(err, sizeof *p->shards, "a pack") : 0;
    if (rc == 0) rc = take_schema(p, x, err);
    if (rc != 0) {
        leat__index_close(&x);
        return rc;
    }
    return leat__pack_add_shard(p, x, err);
}

/* Frees the bytes that were read to open remote files. */
static void settle(const leat_pack *p)
{
    if (p->set != NULL) leat__file_settle(p->set->file);
    for (uint32_t i = 0; i < p->shard_count; i++) leat__file_settle(p->shards[i].index->file);
}

/* Opens a pack. *set: the fingerprint of the set; 0 when it is not a set or could not be opened. */
static int open_pack(leat_pack **out, const char *path, const leat_pack_opts *opts, uint64_t *set,
                     leat_error *err)
{
    const leat_pack_opts o = *opts;
    *set = 0;
    leat_pack *p = LEAT_NEW(PACK, leat_pack);
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a pack");
    size_t len;
    int rc = 0;
    p->verify = o.no_verify == 0;
    p->direct = o.direct != 0;
    p->cache_limit = o.index_cache_bytes ? o.index_cache_bytes : INDEX_CACHE_DEFAULT;
    if (p->cache_limit == UINT64_MAX) p->cache_limit = 0;
    p->path = leat__path_display(path);
    p->source = leat__strdup(LEAT__MEM_PACK, path);
    if (p->path == NULL || p->source == NULL) rc = leat__fail_nomem(err, strlen(path), "a path");
    if (rc == 0) rc = open_files(p, err);
    if (rc == 0) rc = load_text(leat__pack_meta(p), LEAT__SECTION_PROVENANCE, &p->provenance, &len, err);
    if (rc == 0) rc = leat__pack_open_blobs(p, err);
    if (p->set != NULL) *set = p->set->footer.check;
    if (rc == 0) settle(p);
    if (rc == 0) *out = p;
    else leat_pack_close(&p);
    return rc;
}

static bool was_replaced(const char *path, uint64_t set)
{
    leat__index *x = NULL;
    bool other = leat__index_open(&x, NULL, path, false, 0, NULL) == 0 && x->footer.check != set;
    leat__index_close(&x);
    return other;
}

/* Writes the name of the pack beside a folder: "photos.leat" for "photos/", "../photos.leat" for "." in a
 * folder of that name. False for the root. */
static bool name_beside(leat__buf *out, const char *folder)
{
    char whole[PATH_MAX];
    const char *base = leat__path_base(folder);
    const bool dots = leat__str_eq(base, ".") || leat__str_eq(base, "..");
    if (realpath(folder, whole) == NULL || leat__str_eq(whole, "/")) return false;
    if (!dots) return leat__buf_printf(out, "%s.leat", folder) == 0;
    if (!leat__str_eq(folder, ".")) leat__buf_printf(out, "%s/", folder);
    return leat__buf_printf(out, "../%s.leat", leat__path_base(whole)) == 0;
}

static bool has_entry(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    return len > 0 && (size_t)len < sizeof path && stat(path, &st) == 0;
}

/* Fails with a hint for the folder of `leat curate` or `leat train`; returns 0 for other folders. */
static int refuse_run(const char *folder, leat_error *err)
{
    static const char *const results[] = {"selected.leat", "pack.leat"};
    const bool train = has_entry(folder, "checkpoints") && has_entry(folder, "config.json");
    for (size_t i = 0; i < LEAT_COUNT(results); i++)
        if (has_entry(folder, "run.json") && has_entry(folder, results[i]))
            return leat__fail(err, LEAT_EINVAL,
                              "%s: is a folder of leat curate, not a pack; its images are in %s/%s", folder,
                              folder, results[i]);
    if (has_entry(folder, "run.json") && has_entry(folder, "select.leat"))
        return leat__fail(err, LEAT_EINVAL,
                          "%s: is a folder of leat curate, not a pack; give the pack that was curated, with "
                          "`select` %s/select.leat",
                          folder, folder);
    if (!train) return 0;
    return leat__fail(
        err, LEAT_EINVAL,
        "%s: is a folder of leat train, not a pack; leat export with `checkpoint` writes its model", folder);
}

static int refuse_folder(const char *folder, leat_error *err)
{
    LEAT_TRY(refuse_run(folder, err));
    leat__buf words, name;
    leat__buf_init(&words, LEAT__MEM_PACK, 1u << 20);
    leat__buf_init(&name, LEAT__MEM_PACK, 1u << 20);
    bool known = name_beside(&name, folder);
    leat__buf_puts(&words, "leat pack ");
    leat__str_shell(&words, folder);
    leat__buf_puts(&words, " -o ");
    known = known && leat__str_shell(&words, leat__buf_str(&name)) == 0;
    int rc = leat__fail(err, LEAT_EINVAL, "%s: is a folder, not a pack%s%s", folder,
                        known ? "; make one with: " : "", known ? leat__buf_str(&words) : "");
    leat__buf_reset(&words);
    leat__buf_reset(&name);
    return rc;
}

/* Detects a common mistake: the folder of images was given instead of the pack made from it. */
static int check_folder(const char *path, leat_error *err)
{
    struct stat st;
    if (leat__path_remote(path) || stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return 0;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    char *folder = leat__strndup(LEAT__MEM_PACK, path, len);
    if (folder == NULL) return leat__fail_nomem(err, len, "a path");
    int rc = refuse_folder(folder, err);
    leat__free(folder);
    return rc;
}

int leat_pack_open(leat_pack **out, const char *path, const leat_pack_opts *opts, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    leat_pack_opts o = {0};
    uint64_t set;
    if (opts != NULL) memcpy(&o, opts, LEAT_MIN((size_t)opts->struct_size, sizeof o));
    if (path == NULL) return leat__fail(err, LEAT_EINVAL, "pack: no path");
    LEAT_TRY(check_folder(path, err));
    int rc = open_pack(out, path, &o, &set, err);
    /* The set was replaced in the meantime: its shards were removed after its list was read. */
    for (int i = 0; i < REPLACED_MAX && rc == LEAT_ENOENT && set != 0 && was_replaced(path, set); i++)
        rc = open_pack(out, path, &o, &set, err);
    return rc;
}

void leat_pack_close(leat_pack **pack)
{
    if (pack == NULL) return;
    leat_pack *p = *pack;
    if (p == NULL) return;
    leat__pack_close_blobs(p);
    for (uint32_t i = 0; i < p->shard_count; i++) {
        if (p->parts == NULL) leat__index_close(&p->shards[i].index);
        leat__free(p->shards[i].columns);
    }
    for (uint32_t i = 0; i < p->part_count; i++) leat_pack_close(&p->parts[i]);
    leat__free(p->parts);
    leat__free(p->part_first);
    leat__free(p->fill);
    leat__free(p->lacking);
    leat__index_close(&p->set);
    leat__file_pool_close(&p->descriptors);
    leat__free(p->shards);
    leat__free(p->drops);
    leat__schema_close(&p->schema);
    leat__free(p->schema_text);
    leat__free(p->provenance);
    leat__free(p->path);
    leat__free(p->source);
    leat__free(p);
    *pack = NULL;
}

/* ---- facts ------------------------------------------------------------------------------ */

int leat_pack_info_read(const leat_pack *p, leat_pack_info *info, uint32_t struct_size)
{
    LEAT_REQUIRE(p != NULL && info != NULL, NULL);
    if (p->parts != NULL) return leat__pack_join_info(p, info, struct_size);
    const leat__footer *meta = &leat__pack_meta(p)->footer;
    leat_pack_info full = {.struct_size = struct_size,
                           .shards = p->shard_count,
                           .samples = p->samples,
                           .pages = p->pages,
                           .bytes = p->set != NULL ? meta->file_bytes : 0,
                           .page_bytes = meta->page_bytes,
                           .fingerprint = meta->check,
                           .version_major = meta->major,
                           .version_minor = meta->minor,
                           .dropped = p->drop_count};
    for (uint32_t i = 0; i < p->shard_count; i++) {
        const leat__footer *f = &p->shards[i].index->footer;
        full.bytes += f->file_bytes;
        full.max_page_bytes = LEAT_MAX(full.max_page_bytes, f->max_page_bytes);
        full.max_sample_bytes = LEAT_MAX(full.max_sample_bytes, f->max_sample_bytes);
    }
    if (struct_size < sizeof info->struct_size) return LEAT_EINVAL;
    memcpy(info, &full, LEAT_MIN((size_t)struct_size, sizeof full));
    return 0;
}

uint64_t leat_pack_count(const leat_pack *p)
{
    if (p == NULL) return 0;
    return p->samples;
}

const char *leat_pack_path(const leat_pack *p)
{
    if (p == NULL) return NULL;
    return p->path;
}

uint32_t leat_pack_field_count(const leat_pack *p)
{
    if (p == NULL) return 0;
    return p->schema->count;
}

const leat_field *leat_pack_field(const leat_pack *p, uint32_t field)
{
    if (p == NULL) return NULL;
    return field < p->schema->count ? &p->schema->fields[field] : NULL;
}

int leat_pack_field_find(const leat_pack *p, const char *name)
{
    LEAT_REQUIRE(p != NULL && name != NULL, NULL);
    for (uint32_t i = 0; i < p->schema->count; i++)
        if (strcmp(p->schema->fields[i].name, name) == 0) return (int)i;
    return LEAT_ENOENT;
}

const char *leat_pack_schema(const leat_pack *p)
{
    if (p == NULL) return NULL;
    return p->schema_text;
}

const char *leat_pack_provenance(const leat_pack *p)
{
    if (p == NULL) return NULL;
    return p->provenance;
}

const leat__file *leat__pack_file(const leat_pack *p, uint32_t shard)
{
    return shard < p->shard_count ? p->shards[shard].index->file : NULL;
}

uint64_t leat__pack_data_end(const leat_pack *p, uint32_t shard)
{
    return p->shards[shard].index->footer.index_offset;
}

uint32_t leat__pack_shards(const leat_pack *p)
{
    return p->shard_count;
}

uint64_t leat__pack_index_bytes(const leat_pack *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->shard_count; i++)
        sum += leat__ceil_div(p->shards[i].index->footer.index_bytes, LEAT__PACK_CHUNK) * LEAT__PACK_CHUNK;
    return sum;
}

void leat__pack_index_keep(leat_pack *p, uint64_t bytes)
{
    double share = (double)bytes / (double)LEAT_MAX(leat__pack_index_bytes(p), UINT64_C(1));
    for (uint32_t i = 0; i < p->shard_count; i++) {
        leat__index *x = p->shards[i].index;
        uint64_t chunks = leat__ceil_div(x->footer.index_bytes, LEAT__PACK_CHUNK);
        uint64_t mine = share >= 1 ? chunks : (uint64_t)((double)chunks * share);
        x->cache_limit = LEAT_MAX(x->cache_limit, mine * LEAT__PACK_CHUNK);
    }
}

void leat__pack_index_limit(leat_pack *p, uint64_t bytes)
{
    double share = (double)bytes / (double)LEAT_MAX(leat__pack_index_bytes(p), UINT64_C(1));
    for (uint32_t i = 0; i < p->shard_count; i++) {
        leat__index *x = p->shards[i].index;
        uint64_t chunks = leat__ceil_div(x->footer.index_bytes, LEAT__PACK_CHUNK);
        if (leat__file_remote(x->file) == NULL) continue;
        x->cache_limit = LEAT__PACK_CHUNK * (share >= 1 ? chunks : (uint64_t)((double)chunks * share));
    }
}

/* ---- rows and cells --------------------------------------------------------------------- */

const leat__shard *leat__pack_shard_of_sample(const leat_pack *p, uint64_t sample)
{
    uint32_t lo = 0, hi = p->shard_count;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->shards[mid].first_sample <= sample) lo = mid;
        else hi = mid;
    }
    return &p->shards[lo];
}

const leat__shard *leat__pack_shard_of_page(const leat_pack *p, uint64_t page)
{
    uint32_t lo = 0, hi = p->shard_count;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->shards[mid].first_page <= page) lo = mid;
        else hi = mid;
    }
    return &p->shards[lo];
}

static int check_range(const leat_pack *p, uint64_t first, size_t count, leat_error *err)
{
    if (leat__range_inside(first, count, p->samples)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: samples %llu+%llu are out of range (%llu)", p->path,
                      (unsigned long long)first, (unsigned long long)count, (unsigned long long)p->samples);
}

/* Returns the row of sample `sample` in its shard. *left: how many samples from there on are adjacent. */
static uint64_t row_in_shard(const leat__shard *s, uint64_t sample, uint64_t *left)
{
    uint64_t live = sample - s->first_sample, lo = 0, hi = s->drop_count;
    while (lo < hi) { /* counts the dropped rows before it: those with at most `live` kept rows before them */
        uint64_t mid = lo + (hi - lo) / 2;
        if ((s->drops[mid] & UINT32_MAX) - mid <= live) lo = mid + 1;
        else hi = mid;
    }
    uint64_t end = lo < s->drop_count ? s->drops[lo] & UINT32_MAX : s->index->footer.samples;
    *left = end - (live + lo);
    return live + lo;
}

/* Returns how many of `count` samples from `first` on are adjacent in their shard, at most BATCH; *row: row
 * of the first. */
static size_t run_length(const leat__shard *s, uint64_t first, size_t count, uint64_t *row)
{
    uint64_t left;
    *row = row_in_shard(s, first, &left);
    return (size_t)LEAT_MIN(LEAT_MIN(left, (uint64_t)count), BATCH);
}

static void row_of(const leat_pack *p, const leat__shard *s, const leat__sample_place *place,
                   uint64_t key_start, leat_pack_row *row)
{
    const leat__sample_entry *e = &place->e;
    *row = (leat_pack_row){.page = s->first_page + e->page,
                           .offset = e->offset,
                           .size = e->size,
                           .check = e->check,
                           .key_size = e->key_end - key_start,
                           .file_offset = place->page_offset + e->offset,
                           .shard = (uint32_t)(s - p->shards)};
}

int leat_pack_rows(leat_pack *p, uint64_t first, size_t count, leat_pack_row *rows, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (rows != NULL || count == 0), err);
    leat__sample_place places[BATCH];
    LEAT_TRY(check_range(p, first, count, err));
    while (count > 0) {
        const leat__shard *s = leat__pack_shard_of_sample(p, first);
        uint64_t key_start, local;
        size_t n = run_length(s, first, count, &local);
        LEAT_TRY(leat__index_samples(s->index, local, n, places, &key_start, err));
        for (size_t i = 0; i < n; i++) {
            row_of(p, s, &places[i], key_start, rows++);
            key_start = places[i].e.key_end;
        }
        first += n;
        count -= n;
    }
    return 0;
}

static int bad_cell(const leat_pack *p, const leat__shard *s, uint32_t field, uint64_t sample,
                    leat_error *err)
{
    const leat__section *c = s->columns[field];
    uint64_t left, at = c->offset + row_in_shard(s, sample, &left) * c->width;
    leat__fail(err, LEAT_EDATA,
               "%s: sample %llu, field \"%s\": impossible entry in the index"
               " (byte %llu)",
               leat__file_path(s->index->file), (unsigned long long)sample, p->schema->fields[field].name,
               (unsigned long long)at);
    leat__error_at(err, NULL, (int64_t)sample, (int64_t)at);
    return LEAT_EDATA;
}

int leat_pack_image_exact(const leat_pack_image *image)
{
    if (!image || image->codec == LEAT__CODEC_NONE || image->codec == LEAT__CODEC_RAW) return 0;
    if (image->flags & LEAT_PACK_IMAGE_RESIZED) return 0;
    return image->codec != LEAT__CODEC_TILE || (image->flags & LEAT_PACK_IMAGE_RECODED) != 0;
}

int leat_pack_cells(leat_pack *p, uint32_t field, uint64_t first, size_t count, leat_pack_cell *cells,
                    leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (cells != NULL || count == 0), err);
    uint8_t bytes[BATCH * LEAT__PACK_IMAGE_WIDTH];
    leat__sample_place places[BATCH];
    LEAT_TRY(check_range(p, first, count, err));
    if (field >= p->schema->count) return leat__fail(err, LEAT_EINVAL, "%s: no field %u", p->path, field);
    const leat_field *f = &p->schema->fields[field];
    uint32_t width = leat__field_width(f);
    while (count > 0) {
        const leat__shard *s = leat__pack_shard_of_sample(p, first);
        uint64_t local, key_start;
        size_t n = run_length(s, first, count, &local);
        if (s->columns[field] == NULL) { /* joined packs: this part lacks the field */
            for (size_t i = 0; i < n; i++) *cells++ = p->fill[field];
            first += n;
            count -= n;
            continue;
        }
        if (leat__field_is_payload(f)) /* the cells are checked against the sizes */
            LEAT_TRY(leat__index_samples(s->index, local, n, places, &key_start, err));
        LEAT_TRY(leat__index_read(s->index, s->columns[field], local * width, bytes, n * width, err));
        for (size_t i = 0; i < n; i++) {
            uint64_t size = leat__field_is_payload(f) ? places[i].e.size : 0;
            if (!leat__cell_load(f, bytes + i * width, size, cells++))
                return bad_cell(p, s, field, first + i, err);
        }
        first += n;
        count -= n;
    }
    return 0;
}

int leat_pack_look(leat_pack *p, uint64_t sample, leat_pack_row *row, const uint32_t *fields, uint32_t count,
                   leat_pack_cell *cells, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && row != NULL, err);
    uint8_t bytes[LEAT__PACK_IMAGE_WIDTH];
    LEAT_TRY(leat_pack_rows(p, sample, 1, row, err));
    const leat__shard *s = &p->shards[row->shard];
    uint64_t left, local = row_in_shard(s, sample, &left);
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i] >= p->schema->count)
            return leat__fail(err, LEAT_EINVAL, "%s: no field %u", p->path, fields[i]);
        const leat_field *f = &p->schema->fields[fields[i]];
        uint32_t width = leat__field_width(f);
        if (s->columns[fields[i]] == NULL) {
            cells[i] = p->fill[fields[i]];
            continue;
        }
        LEAT_TRY(leat__index_read(s->index, s->columns[fields[i]], local * width, bytes, width, err));
        if (!leat__cell_load(f, bytes, row->size, &cells[i])) return bad_cell(p, s, fields[i], sample, err);
    }
    return 0;
}

void leat__pack_touch(const leat_pack *p, const uint64_t *samples, uint32_t count, const uint32_t *fields,
                      uint32_t field_count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (samples[i] >= p->samples) continue;
        const leat__shard *s = leat__pack_shard_of_sample(p, samples[i]);
        uint64_t left, local = row_in_shard(s, samples[i], &left), before = local > 0 ? 1 : 0;
        leat__index_touch(s->index, leat__index_section(s->index, LEAT__SECTION_SAMPLES),
                          (local - before) * LEAT__PACK_SAMPLE_WIDTH, (1 + before) * LEAT__PACK_SAMPLE_WIDTH);
        for (uint32_t f = 0; f < field_count; f++) {
            uint32_t width = leat__field_width(&p->schema->fields[fields[f]]);
            if (s->columns[fields[f]] != NULL)
                leat__index_touch(s->index, s->columns[fields[f]], local * width, width);
        }
    }
}

/* Reads a column of 8-byte numbers directly into the caller's array. */
static int numbers(leat_pack *p, uint32_t field, uint32_t type, uint64_t first, size_t count, void *out,
                   leat_error *err)
{
    LEAT_TRY(check_range(p, first, count, err));
    if (field >= p->schema->count || p->schema->fields[field].type != type)
        return leat__fail(err, LEAT_EINVAL, "%s: field %u is not of type %s", p->path, field,
                          leat_field_type_name(type));
    char *to = out;
    while (count > 0) {
        const leat__shard *s = leat__pack_shard_of_sample(p, first);
        uint64_t left, local = row_in_shard(s, first, &left);
        size_t n = (size_t)LEAT_MIN(left, (uint64_t)count);
        if (s->columns[field] != NULL)
            LEAT_TRY(leat__index_read(s->index, s->columns[field], local * 8, to, n * 8, err));
        for (size_t i = 0; s->columns[field] == NULL && i < n; i++) {
            const leat_pack_cell *fill = &p->fill[field];
            memcpy(to + i * 8, type == LEAT_FIELD_INT ? (const void *)&fill->i : (const void *)&fill->f, 8);
        }
        to += n * 8;
        first += n;
        count -= n;
    }
    return 0;
}

int leat_pack_ints(leat_pack *p, uint32_t field, uint64_t first, size_t count, int64_t *values,
                   leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (values != NULL || count == 0), err);
    return numbers(p, field, LEAT_FIELD_INT, first, count, values, err);
}

int leat_pack_floats(leat_pack *p, uint32_t field, uint64_t first, size_t count, double *values,
                     leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (values != NULL || count == 0), err);
    return numbers(p, field, LEAT_FIELD_FLOAT, first, count, values, err);
}

/* ---- keys ------------------------------------------------------------------------------- */

int leat_pack_key(leat_pack *p, uint64_t sample, char *key, size_t capacity, size_t *size, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && size != NULL && (key != NULL || capacity == 0), err);
    leat__sample_place place;
    uint64_t start, left;
    *size = 0;
    LEAT_TRY(check_range(p, sample, 1, err));
    const leat__shard *s = leat__pack_shard_of_sample(p, sample);
    LEAT_TRY(leat__index_samples(s->index, row_in_shard(s, sample, &left), 1, &place, &start, err));
    *size = (size_t)(place.e.key_end - start);
    if (capacity <= *size)
        return leat__fail(err, LEAT_ELIMIT, "%s: the key of sample %llu has %zu bytes", p->path,
                          (unsigned long long)sample, *size);
    LEAT_TRY(leat__index_read(s->index, leat__index_section(s->index, LEAT__SECTION_KEYS), start, key, *size,
                              err));
    key[*size] = '\0';
    return 0;
}

int leat_pack_find(leat_pack *p, const void *key, size_t size, uint64_t *sample, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && sample != NULL && (key != NULL || size == 0), err);
    for (uint32_t i = 0; i < p->shard_count; i++) {
        const leat__shard *s = &p->shards[i];
        uint64_t row = 0;
        int rc = leat__index_find(s->index, key, size, 0, &row, err);
        while (rc == 0 && leat__shard_dropped(s, row))
            rc = leat__index_find(s->index, key, size, row + 1, &row, err);
        if (rc == 0) *sample = s->first_sample + row - leat__shard_drops_before(s, row);
        if (rc != LEAT_ENOENT) return rc;
    }
    return leat__fail(err, LEAT_ENOENT, "%s: no sample has the key \"%.*s\"", p->path,
                      (int)LEAT_MIN(size, 200u), (const char *)key);
}

/* ---- samples and pages ------------------------------------------------------------------ */

int leat__pack_sample_check(leat_pack *p, uint64_t sample, const leat_pack_row *row, const void *bytes,
                            leat_error *err)
{
    if (!p->verify || leat__hash64(bytes, (size_t)row->size, 0) == row->check) return 0;
    char key[256] = ""; /* for the message: worth an extra read */
    size_t size;
    if (leat_pack_key(p, sample, key, sizeof key, &size, NULL) != 0) key[0] = '\0';
    leat__fail(err, LEAT_EDATA,
               "%s: sample %llu \"%s\" (page %llu, byte %llu): checksum does"
               " not match",
               leat__file_path(leat__pack_file(p, row->shard)), (unsigned long long)sample, key,
               (unsigned long long)row->page, (unsigned long long)row->file_offset);
    leat__error_at(err, key, (int64_t)sample, (int64_t)row->file_offset);
    return LEAT_EDATA;
}

int leat__pack_read_row(leat_pack *p, uint64_t sample, const leat_pack_row *row, void *buf, size_t capacity,
                        leat_error *err)
{
    uint64_t want;
    if (!leat__add_u64(row->size, LEAT_PACK_PADDING, &want) || capacity < want)
        return leat__fail(err, LEAT_ELIMIT, "%s: sample %llu needs %llu bytes of buffer", p->path,
                          (unsigned long long)sample, (unsigned long long)want);
    const leat__file *file = leat__pack_file(p, row->shard);
    uint32_t reads = leat__file_remote(file) != NULL ? REMOTE_READS : 1;
    int rc;
    do {
        LEAT_TRY(leat__file_pread(file, buf, (size_t)row->size, row->file_offset, err));
        memset((char *)buf + row->size, 0, LEAT_PACK_PADDING);
        rc = leat__pack_sample_check(p, sample, row, buf, err);
        if (rc != 0) leat__file_settle(file); /* the cached bytes may be the damaged ones */
    } while (rc != 0 && --reads > 0);
    return rc;
}

int leat_pack_read(leat_pack *p, uint64_t sample, void *buf, size_t capacity, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (buf != NULL || capacity == 0), err);
    leat_pack_row row;
    LEAT_TRY(leat_pack_rows(p, sample, 1, &row, err));
    return leat__pack_read_row(p, sample, &row, buf, capacity, err);
}

int leat_pack_page_info(leat_pack *p, uint64_t page, leat_pack_page *info, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && info != NULL, err);
    leat__page_entry e;
    uint64_t samples;
    if (page >= p->pages)
        return leat__fail(err, LEAT_EINVAL, "%s: page %llu is out of range (%llu)", p->path,
                          (unsigned long long)page, (unsigned long long)p->pages);
    const leat__shard *s = leat__pack_shard_of_page(p, page);
    LEAT_TRY(leat__index_page(s->index, page - s->first_page, &e, &samples, err));
    uint64_t before = leat__shard_drops_before(s, e.first);
    uint64_t inside = leat__shard_drops_before(s, e.first + samples) - before;
    *info = (leat_pack_page){.bytes = e.bytes,
                             .first = s->first_sample + e.first - before,
                             .samples = samples - inside,
                             .offset = e.offset,
                             .check = e.check,
                             .shard = (uint32_t)(s - p->shards)};
    return 0;
}

int leat__pack_page_check(leat_pack *p, uint64_t page, const leat_pack_page *info, const void *bytes,
                          leat_error *err)
{
    if (!p->verify || leat__hash64(bytes, (size_t)info->bytes, 0) == info->check) return 0;
    leat__fail(err, LEAT_EDATA, "%s: page %llu (byte %llu): checksum does not match",
               leat__file_path(leat__pack_file(p, info->shard)), (unsigned long long)page,
               (unsigned long long)info->offset);
    leat__error_at(err, NULL, -1, (int64_t)info->offset);
    return LEAT_EDATA;
}

/* Reads a page. If the pack was opened to bypass the page cache, reads whole blocks, so not directly into the
 * caller's memory. */
static int read_page(const leat_pack *p, const leat_pack_page *info, void *buf, leat_error *err)
{
    const leat__file *file = leat__pack_file(p, info->shard);
    leat__span span = leat__span_around(info->offset, info->bytes);
    if (!leat__file_direct(file) || span.len == info->bytes)
        return leat__file_pread(file, buf, (size_t)info->bytes, info->offset, err);
    uint8_t *blocks = leat__alloc_aligned(LEAT__MEM_PACK, (size_t)span.len, LEAT__IO_ALIGN);
    if (blocks == NULL) return leat__fail_nomem(err, span.len, "a page");
    int rc = leat__file_pread(file, blocks, (size_t)span.len, span.offset, err);
    if (rc == 0) memcpy(buf, blocks + span.lead, (size_t)info->bytes);
    leat__free(blocks);
    return rc;
}

int leat__pack_page_fetch(const leat_pack *p, const leat_pack_page *info, void *buf, bool *whole,
                          leat_error *err)
{
    const leat__file *file = leat__pack_file(p, info->shard);
    uint32_t reads = leat__file_remote(file) != NULL ? REMOTE_READS : 1;
    do {
        LEAT_TRY(read_page(p, info, buf, err));
        *whole = !p->verify || leat__hash64(buf, (size_t)info->bytes, 0) == info->check;
        if (!*whole) leat__file_settle(file); /* the prefetched bytes may be the damaged ones */
    } while (!*whole && --reads > 0);
    return 0;
}

int leat_pack_page_read(leat_pack *p, uint64_t page, void *buf, size_t capacity, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (buf != NULL || capacity == 0), err);
    leat_pack_page info;
    LEAT_TRY(leat_pack_page_info(p, page, &info, err));
    if (capacity < LEAT_PACK_PADDING || capacity - LEAT_PACK_PADDING < info.bytes)
        return leat__fail(err, LEAT_ELIMIT, "%s: page %llu needs %llu bytes of buffer", p->path,
                          (unsigned long long)page, (unsigned long long)info.bytes + LEAT_PACK_PADDING);
    bool whole;
    LEAT_TRY(leat__pack_page_fetch(p, &info, buf, &whole, err));
    memset((char *)buf + info.bytes, 0, LEAT_PACK_PADDING);
    return whole ? 0 : leat__pack_page_check(p, page, &info, buf, err);
}
