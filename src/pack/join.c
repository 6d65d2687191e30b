/* SPDX-License-Identifier: Apache-2.0
 *
 * Several packs that read as one (leat_pack_open_many). The parts stay open packs. The joined pack lists
 * all their shards, each with its columns in the order of the joined fields. So every call of reader.c
 * works on it as on a set. Data that differs between parts (blobs, codec tables) is read from the part.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/reader_impl.h"

#define SHOWN 3u /* names of packs in a message */
#define NAME_MAX_BYTES ((size_t)1 << 20)
#define PARTS_MAX 4096u
#define INDEX_CACHE ((uint64_t)16 << 20) /* of all parts together */

static bool same_field(const leat_field *a, const leat_field *b)
{
    return a->type == b->type && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

/* Returns the number of the field in a part, or -1 when the part has no field of that name and type. */
static int field_in(const leat_pack *part, const leat_field *f)
{
    int at = leat_pack_field_find(part, f->name);
    return at >= 0 && same_field(&part->schema->fields[at], f) ? at : -1;
}

/* Collects the fields of all parts, each as declared by the first part that has it. */
static int join_fields(leat_pack *p, leat_error *err)
{
    uint32_t most = 0, n = 0;
    for (uint32_t i = 0; i < p->part_count; i++) most += p->parts[i]->schema->count;
    leat_field *fields = LEAT_NEW_ARRAY(PACK, leat_field, (uint64_t)most + 1);
    if (fields == NULL) return leat__fail_nomem(err, most * sizeof *fields, "fields");
    for (uint32_t i = 0; i < p->part_count; i++) {
        const leat__schema *s = p->parts[i]->schema;
        for (uint32_t f = 0; f < s->count; f++) {
            uint32_t at = 0;
            while (at < n && strcmp(fields[at].name, s->fields[f].name) != 0) at++;
            if (at == n) fields[n++] = s->fields[f];
        }
    }
    int rc = leat__schema_make(&p->schema, fields, n, err);
    leat__free(fields);
    if (rc != 0) return rc;
    p->fill = LEAT_NEW_ARRAY(PACK, leat_pack_cell, (uint64_t)n + 1);
    p->lacking = LEAT_NEW_ARRAY(PACK, uint32_t, (uint64_t)n + 1);
    if (p->fill == NULL || p->lacking == NULL) return leat__fail_nomem(err, n * 64, "fields");
    for (uint32_t f = 0; f < n; f++) {
        p->fill[f] = (leat_pack_cell){.absent = leat__field_is_payload(&p->schema->fields[f]), .reserved = 1};
        for (uint32_t i = 0; i < p->part_count && p->lacking[f] == 0; i++)
            if (field_in(p->parts[i], &p->schema->fields[f]) < 0) p->lacking[f] = i + 1;
    }
    return 0;
}

static int add_shard(leat_pack *p, uint32_t part, const leat__shard *from, leat_error *err)
{
    uint32_t n = p->schema->count;
    leat__shard *s = &p->shards[p->shard_count++];

    s->index = from->index;
    s->part = part;
    s->first_sample = p->samples;
    s->drops = from->drops; /* owned by the part, which stays open */
    s->drop_count = from->drop_count;
    s->first_page = p->pages;
    s->columns = LEAT_NEW_ARRAY(PACK, const leat__section *, (uint64_t)n + 1);
    if (s->columns == NULL) return leat__fail_nomem(err, n * 8u, "columns");
    for (uint32_t f = 0; f < n; f++) {
        int at = field_in(p->parts[part], &p->schema->fields[f]);
        if (at >= 0) s->columns[f] = from->columns[at];
    }
    if (!leat__add_u64(p->samples, leat__shard_samples(from), &p->samples) ||
        !leat__add_u64(p->pages, from->index->footer.pages, &p->pages))
        return leat__fail(err, LEAT_EOVERFLOW, "%s: too many samples", p->path);
    return 0;
}

static int join_shards(leat_pack *p, leat_error *err)
{
    uint64_t shards = 0;
    for (uint32_t i = 0; i < p->part_count; i++) shards += p->parts[i]->shard_count;
    p->shards = LEAT_NEW_ARRAY(PACK, leat__shard, shards + 1);
    p->part_first = LEAT_NEW_ARRAY(PACK, uint64_t, (uint64_t)p->part_count + 1);
    if (p->shards == NULL || p->part_first == NULL)
        return leat__fail_nomem(err, shards * sizeof *p->shards, "shards");
    for (uint32_t i = 0; i < p->part_count; i++) {
        for (uint32_t s = 0; s < p->parts[i]->shard_count; s++)
            LEAT_TRY(add_shard(p, i, &p->parts[i]->shards[s], err));
        p->part_first[i + 1] = p->samples;
    }
    return 0;
}

/* Composes the name: "a.leat, b.leat, c.leat and 5 more". */
static int join_names(leat_pack *p, leat_error *err)
{
    leat__buf name, schema;
    leat__buf_init(&name, LEAT__MEM_PACK, NAME_MAX_BYTES);
    leat__buf_init(&schema, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    for (uint32_t i = 0; i < LEAT_MIN(p->part_count, SHOWN); i++)
        leat__buf_printf(&name, "%s%s", i > 0 ? ", " : "", p->parts[i]->path);
    if (p->part_count > SHOWN) leat__buf_printf(&name, " and %u more", p->part_count - SHOWN);
    leat__schema_json(p->schema, &schema);
    p->path = leat__buf_take(&name, NULL);
    p->schema_text = leat__buf_take(&schema, NULL);
    p->provenance = leat__strdup(LEAT__MEM_PACK, "{}");
    leat__buf_reset(&name);
    leat__buf_reset(&schema);
    if (p->path != NULL && p->schema_text != NULL && p->provenance != NULL) return 0;
    return leat__fail_nomem(err, 256, "a name");
}

int leat_pack_open_many(leat_pack **out, const char *const *paths, uint32_t count, const leat_pack_opts *opts,
                        leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    LEAT_REQUIRE(paths != NULL && count > 0, err);
    if (count == 1) return leat_pack_open(out, paths[0], opts, err);
    if (count > PARTS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%u packs to join: at most %u", count, PARTS_MAX);
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;
    if (opts != NULL) memcpy(&o, opts, LEAT_MIN((size_t)opts->struct_size, sizeof o));
    o.struct_size = sizeof o;
    if (o.index_cache_bytes == 0) o.index_cache_bytes = INDEX_CACHE / count;
    leat_pack *p = LEAT_NEW(PACK, leat_pack);
    int rc = 0;
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a pack");
    p->verify = o.no_verify == 0;
    p->direct = o.direct != 0;
    p->parts = LEAT_NEW_ARRAY(PACK, leat_pack *, count);
    if (p->parts == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, count * 8u, "packs"));
    for (; p->part_count < count; p->part_count++)
        LEAT_GO(rc, out, leat_pack_open(&p->parts[p->part_count], paths[p->part_count], &o, err));
    LEAT_GO(rc, out, join_fields(p, err));
    LEAT_GO(rc, out, join_names(p, err));
    LEAT_GO(rc, out, join_shards(p, err));
    *out = p;
    p = NULL;
out:
    leat_pack_close(&p);
    return rc;
}

int leat__pack_join_info(const leat_pack *p, leat_pack_info *info, uint32_t struct_size)
{
    leat_pack_info full = {.struct_size = struct_size,
                           .shards = p->shard_count,
                           .samples = p->samples,
                           .pages = p->pages,
                           .fingerprint = leat__mix64(p->part_count)};
    for (uint32_t i = 0; i < p->part_count; i++) {
        leat_pack_info part = {0};
        (void)leat_pack_info_read(p->parts[i], &part, sizeof part);
        full.bytes += part.bytes;
        full.dropped += part.dropped;
        full.page_bytes = LEAT_MAX(full.page_bytes, part.page_bytes);
        full.max_page_bytes = LEAT_MAX(full.max_page_bytes, part.max_page_bytes);
        full.max_sample_bytes = LEAT_MAX(full.max_sample_bytes, part.max_sample_bytes);
        full.version_major = LEAT_MAX(full.version_major, part.version_major);
        full.version_minor = LEAT_MAX(full.version_minor, part.version_minor);
        uint64_t both[2] = {full.fingerprint, part.fingerprint};
        full.fingerprint = leat__hash64(both, sizeof both, 0);
    }
    if (struct_size < sizeof info->struct_size) return LEAT_EINVAL;
    memcpy(info, &full, LEAT_MIN((size_t)struct_size, sizeof full));
    return 0;
}

/* Returns the longest list of class names that a part has for the field. */
int leat__pack_join_classes(leat_pack *p, uint32_t field, const char *const **names, uint64_t *count,
                            leat_error *err)
{
    for (uint32_t i = 0; i < p->part_count; i++) {
        int at = field_in(p->parts[i], &p->schema->fields[field]);
        const char *const *here;
        uint64_t n;
        if (at < 0) continue;
        LEAT_TRY(leat_pack_classes(p->parts[i], (uint32_t)at, &here, &n, err));
        if (n <= *count) continue;
        *names = here;
        *count = n;
    }
    return 0;
}

uint32_t leat_pack_part_count(const leat_pack *p)
{
    if (p == NULL) return 0;
    return p->parts != NULL ? p->part_count : 1;
}

leat_pack *leat_pack_part(leat_pack *p, uint32_t part, uint64_t *first)
{
    if (part >= leat_pack_part_count(p)) return NULL;
    if (first != NULL) *first = p->parts != NULL ? p->part_first[part] : 0;
    return p->parts != NULL ? p->parts[part] : p;
}

uint32_t leat__pack_part_of_shard(const leat_pack *p, uint32_t shard)
{
    return shard < p->shard_count ? p->shards[shard].part : 0;
}

uint32_t leat__pack_part_of_sample(const leat_pack *p, uint64_t sample)
{
    return leat__pack_shard_of_sample(p, sample)->part;
}

leat_pack *leat__pack_lacking(leat_pack *p, uint32_t field)
{
    return p->parts != NULL && p->lacking[field] > 0 ? p->parts[p->lacking[field] - 1] : NULL;
}

void leat__pack_fill(leat_pack *p, uint32_t field, int64_t i, double f)
{
    if (p->parts == NULL || field >= p->schema->count) return;
    leat_pack_cell *fill = &p->fill[field];
    /* unchanged: do not write, because other threads may be reading */
    if (fill->i == i && memcmp(&fill->f, &f, sizeof f) == 0) return;
    fill->i = i;
    fill->f = f;
}
