/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of packs. See pack_tables.h.
 */
#include "ingest/pack_tables.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "ingest/tile_training.h"

const leat__tile_tables *leat__pack_tables_of(const leat__pack_tables *t, uint32_t origin)
{
    return origin < t->from_count ? t->from[origin] : NULL;
}

void leat__pack_tables_close(leat__pack_tables *t)
{
    leat__tile_tables_close(&t->own);
    for (uint32_t i = 0; i < t->from_count; i++) leat__tile_tables_close(&t->from[i]);
    leat__free(t->from);
    *t = (leat__pack_tables){0};
}

int leat__pack_tables_open(leat__pack_tables *t, leat__source *source, leat_error *err)
{
    uint32_t n = 0;
    while (leat__source_pack_of(source, n)) n++;
    if (n == 0) return 0;
    t->from = LEAT_NEW_ARRAY(INGEST, leat__tile_tables *, n);
    if (!t->from) return leat__fail_nomem(err, n * sizeof *t->from, "tables");
    t->from_count = n;
    for (uint32_t i = 0; i < n; i++) {
        const void *blob;
        size_t len;
        int rc = leat_pack_blob(leat__source_pack_of(source, i), LEAT__TILE_TABLES_BLOB, &blob, &len, err);
        if (rc == LEAT_ENOENT) continue;
        if (rc != 0) return rc;
        LEAT_TRY(leat__tile_tables_open(&t->from[i], blob, len, err));
    }
    return 0;
}

/* Returns the tables shared by all source packs if their tiles can be copied; NULL when images are
 * re-encoded or the tables differ. */
static int shared_tables(const leat__pack_tables *t, leat__source *source, const leat__encode_plan *plan,
                         const void **blob, size_t *len, leat_error *err)
{
    *blob = NULL;
    *len = 0;
    if (plan->quality > 0 || plan->max_side > 0) return 0;
    for (uint32_t i = 0; i < t->from_count; i++) {
        const void *other;
        size_t other_len;
        int rc =
            leat_pack_blob(leat__source_pack_of(source, i), LEAT__TILE_TABLES_BLOB, &other, &other_len, err);
        if (rc != 0 && rc != LEAT_ENOENT) return rc;
        if (rc != 0 || (i > 0 && (other_len != *len || memcmp(other, *blob, *len) != 0))) {
            *blob = NULL;
            return 0;
        }
        *blob = other;
        *len = other_len;
    }
    return 0;
}

static int make_tables(const leat__pack_tables *t, const leat_ingest_opts *opts, leat__source *source,
                       leat_packer *packer, const leat__encode_plan *plan, leat_error *err)
{
    const void *shared;
    size_t len;
    leat__buf trained;
    LEAT_TRY(shared_tables(t, source, plan, &shared, &len, err));
    if (shared) return leat_packer_blob(packer, LEAT__TILE_TABLES_BLOB, shared, len, err);
    leat__buf_init(&trained, LEAT__MEM_INGEST, 16u << 20);
    int rc = leat__train_tables(opts, plan, t->from, t->from_count, &trained, err);
    if (rc == 0) rc = leat_packer_blob(packer, LEAT__TILE_TABLES_BLOB, trained.data, trained.len, err);
    leat__buf_reset(&trained);
    return rc;
}

int leat__pack_tables_prepare(leat__pack_tables *t, const leat_ingest_opts *opts, leat__source *source,
                              leat_packer *packer, leat__encode_plan *plan, leat_error *err)
{
    const void *blob = NULL;
    size_t len = 0;
    if (plan->images != LEAT_IMAGES_TILED) return 0;
    if (plan->stored && leat_packer_blob_view(packer, LEAT__TILE_TABLES_BLOB, &blob, &len) != 0) {
        plan->images = LEAT_IMAGES_KEEP; /* no source pack has tables */
        return 0;
    }
    if (leat_packer_blob_view(packer, LEAT__TILE_TABLES_BLOB, &blob, &len) != 0) {
        LEAT_TRY(make_tables(t, opts, source, packer, plan, err));
        LEAT_TRY(leat_packer_blob_view(packer, LEAT__TILE_TABLES_BLOB, &blob, &len));
    }
    LEAT_TRY(leat__tile_tables_open(&t->own, blob, len, err));
    plan->tables = t->own;
    return 0;
}
