/* SPDX-License-Identifier: Apache-2.0
 *
 * See dedup_places.h.
 */
#include "curate/dedup_places.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/sealed.h"
#include "io/file.h"

#define BLOCK 4096u

uint64_t leat__dedup_shard_bytes(const leat__dedup *d)
{
    return d->opts->shard_bytes ? d->opts->shard_bytes : UINT64_C(1) << 30;
}

void leat__dedup_places_init(leat__dedup_places *p)
{
    leat__buf_init(&p->documents, LEAT__MEM_CURATE, 1u << 30);
    leat__buf_init(&p->place, LEAT__MEM_CURATE, 1u << 30);
    leat__buf_init(&p->shards, LEAT__MEM_CURATE, 1u << 30);
}

void leat__dedup_places_reset(leat__dedup_places *p)
{
    leat__buf_reset(&p->documents);
    leat__buf_reset(&p->place);
    leat__buf_reset(&p->shards);
}

/* Adds the parts that begin at this document. */
static void place_parts(const leat__dedup *d, const uint64_t *base, leat__dedup_places *p, uint32_t *part,
                        uint64_t document, const leat__place *at)
{
    for (; *part <= d->part->parts && base[*part] == document; (*part)++) {
        leat__buf_append(&p->documents, &document, 8);
        leat__buf_append(&p->place, at, sizeof *at);
    }
}

/* Adds a kept document as shards.c does: a file ends before the line that would exceed its size. */
static void place_line(leat__place *at, uint64_t bytes, uint64_t most, leat__dedup_places *p)
{
    if (at->offset > 0 && at->offset + bytes > most) {
        leat__buf_append(&p->shards, &at->offset, 8);
        *at = (leat__place){at->shard + 1, 0};
    }
    at->offset += bytes;
}

/* Finds the places of all parts in plain output files. Documents of an index are not written. */
static int find_places(const leat__dedup *d, const uint64_t *base, leat__file *decisions, leat__file *lengths,
                       leat__dedup_places *p, leat_error *err)
{
    const uint64_t n = d->st.document;
    leat__dedup_decision decision[BLOCK];
    uint64_t bytes[BLOCK];
    leat__place at = {0, 0};
    uint32_t part = 0;
    for (; part < d->part->parts && base[part] < d->against; part++) {
        leat__buf_append(&p->documents, &base[part], 8);
        leat__buf_append(&p->place, &at, sizeof at);
    }
    for (uint64_t from = d->against; from < n; from += BLOCK) {
        uint64_t take = LEAT_MIN(BLOCK, n - from);
        LEAT_TRY(
            leat__file_pread(decisions, decision, take * sizeof *decision, from * sizeof *decision, err));
        LEAT_TRY(leat__file_pread(lengths, bytes, take * 8, (from - d->against) * 8, err));
        for (uint64_t i = 0; i < take; i++) {
            place_parts(d, base, p, &part, from + i, &at);
            if (bytes[i] > 0 && decision[i].kept_for == from + i)
                place_line(&at, bytes[i], leat__dedup_shard_bytes(d), p);
        }
    }
    place_parts(d, base, p, &part, n, &at);
    leat__buf_append(&p->shards, &at.offset, 8);
    return 0;
}

static void put_list(leat__json *j, const char *key, const leat__buf *list)
{
    leat__json_key(j, key);
    leat__json_array(j);
    for (size_t at = 0; at < list->len; at += 8)
        leat__json_u64(j, leat__load_u64((const uint8_t *)list->data + at));
    leat__json_end(j);
}

static int store_places(leat__dedup *d, const leat__dedup_places *p, leat_error *err)
{
    char path[4096];
    leat__buf json;
    leat__json j;
    if (p->documents.status != 0 || p->place.status != 0 || p->shards.status != 0)
        return leat__fail_nomem(err, p->place.len, "places");
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 30);
    leat__json_init(&j, &json, 0);
    leat__json_object(&j);
    put_list(&j, "documents", &p->documents);
    put_list(&j, "places", &p->place);
    put_list(&j, "shards", &p->shards);
    leat__json_end(&j);
    int rc = leat__part_mark(d->part, leat__dedup_path(d, "places.json", path), &json, err);
    leat__buf_reset(&json);
    return rc;
}

int leat__dedup_places_write(leat__dedup *d, const uint64_t *base, leat_error *err)
{
    char path[4096];
    leat__file *decisions = NULL, *lengths = NULL;
    leat__dedup_places p;
    int rc;
    leat__dedup_places_init(&p);
    if (d->opts->compress) { /* lengths are not known before */
        for (uint32_t i = 0; i <= d->part->parts; i++) leat__buf_append(&p.documents, &base[i], 8);
        LEAT_GO(rc, out, store_places(d, &p, err));
        goto out;
    }
    LEAT_GO(rc, out,
            leat__file_open(&decisions, leat__dedup_path(d, "decisions", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_open(&lengths, leat__dedup_path(d, "side-7", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, find_places(d, base, decisions, lengths, &p, err));
    rc = store_places(d, &p, err);
out:
    leat__file_close(&decisions);
    leat__file_close(&lengths);
    leat__dedup_places_reset(&p);
    return rc;
}

static void take_list(const json_t *root, const char *key, leat__buf *out)
{
    const json_t *list = json_object_get(root, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t n = (uint64_t)json_integer_value(json_array_get(list, i));
        leat__buf_append(out, &n, 8);
    }
}

int leat__dedup_places_read(leat__dedup *d, leat__dedup_places *p, leat_error *err)
{
    char path[4096];
    size_t n = d->part->parts + 1;
    json_t *root;
    LEAT_TRY(leat__sealed_load(leat__dedup_path(d, "places.json", path), 1u << 30, &root, err));
    take_list(root, "documents", &p->documents);
    take_list(root, "places", &p->place);
    take_list(root, "shards", &p->shards);
    json_decref(root);
    bool plain = !d->opts->compress;
    if (p->documents.len == 8 * n && p->place.len == (plain ? sizeof(leat__place) * n : 0) &&
        (p->shards.len > 0) == plain)
        return 0;
    return leat__sealed_damaged(path, err);
}

int leat__dedup_places_part(leat__dedup *d, leat__dedup_places *p, leat__part_place *place, leat_error *err)
{
    const uint32_t i = d->part->number;
    LEAT_TRY(leat__dedup_places_read(d, p, err));
    d->base = leat__load_u64((const uint8_t *)p->documents.data + 8 * (size_t)i);
    d->end = leat__load_u64((const uint8_t *)p->documents.data + 8 * ((size_t)i + 1));
    if (p->place.len == 0) return 0;
    place->shard_bytes = leat__dedup_shard_bytes(d);
    memcpy(&place->begin, p->place.data + i * sizeof place->begin, sizeof place->begin);
    memcpy(&place->end, p->place.data + (i + 1) * sizeof place->end, sizeof place->end);
    d->place = place;
    return 0;
}
