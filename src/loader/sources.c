/* SPDX-License-Identifier: Apache-2.0
 *
 * The packs of a loader. See sources.h.
 */
#include "loader/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/reader.h"

/* Opens the tables of a pack. Packs with equal tables share them, so that a device can decode them all. */
static int open_tables(leat_loader *l, uint32_t part, leat_error *err)
{
    const void *blob, *other;
    size_t size, other_size;

    int rc = leat_pack_blob(leat_pack_part(l->pack, part, NULL), "tile-tables", &blob, &size, err);
    if (rc == LEAT_ENOENT) return 0;
    if (rc != 0) return rc;
    for (uint32_t i = 0; i < part; i++) {
        if (l->env.tables[i] == NULL) continue;
        LEAT_TRY(leat_pack_blob(leat_pack_part(l->pack, i, NULL), "tile-tables", &other, &other_size, err));
        if (size != other_size || memcmp(blob, other, size) != 0) continue;
        l->env.tables[part] = l->env.tables[i];
        return 0;
    }
    LEAT_TRY(leat__tile_tables_open(&l->tables[l->table_count], blob, size, err));
    l->env.tables[part] = l->tables[l->table_count++];
    return 0;
}

static int open_packs(leat_loader *l, const char *path, const leat_loader_opts *given, leat_error *err)
{
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;

    o.direct = l->opts.cache == LEAT_CACHE_PROCESS;
    if (given->source_count == 0) return leat_pack_open(&l->pack, path, &o, err);
    if (given->source_count > LEAT_LOADER_SOURCES_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u packs in one loader: at most %d", given->source_count,
                          LEAT_LOADER_SOURCES_MAX);
    const char **paths = LEAT_NEW_ARRAY(LOADER, const char *, given->source_count);
    int rc = 0;
    if (paths == NULL) return leat__fail_nomem(err, given->source_count * sizeof *paths, "packs");
    for (uint32_t i = 0; i < given->source_count && rc == 0; i++) {
        paths[i] = given->sources[i].path;
        if (paths[i] == NULL) rc = leat__fail(err, LEAT_EINVAL, "pack number %u has no path", i);
    }
    if (rc == 0) rc = leat_pack_open_many(&l->pack, paths, given->source_count, &o, err);
    leat__free(paths);
    return rc;
}

int leat__sources_open(leat_loader *l, const char *path, const leat_loader_opts *given, leat_error *err)
{
    if (path != NULL && given->source_count > 0)
        return leat__fail(err, LEAT_EINVAL, "give either a path or sources, not both");
    LEAT_TRY(open_packs(l, path, given, err));
    LEAT_TRY(leat_pack_info_read(l->pack, &l->info, sizeof l->info));
    uint32_t n = leat_pack_part_count(l->pack);
    l->tables = LEAT_NEW_ARRAY(LOADER, leat__tile_tables *, n);
    l->env.tables = LEAT_NEW_ARRAY(LOADER, const void *, n);
    l->digests = LEAT_NEW_ARRAY(LOADER, uint64_t, n);
    if (l->tables == NULL || l->env.tables == NULL || l->digests == NULL)
        return leat__fail_nomem(err, n * 24u, "packs");
    for (uint32_t i = 0; i < n; i++) {
        leat_pack_info info;
        LEAT_TRY(leat_pack_info_read(leat_pack_part(l->pack, i, NULL), &info, sizeof info));
        l->digests[i] = info.fingerprint;
        LEAT_TRY(open_tables(l, i, err));
    }
    return 0;
}

void leat__sources_close(leat_loader *l)
{
    for (uint32_t i = 0; l->tables != NULL && i < l->table_count; i++) leat__tile_tables_close(&l->tables[i]);
    leat__free(l->tables);
    leat__free(l->env.tables);
    leat__free(l->digests);
    leat_pack_close(&l->pack);
}

bool leat__sources_mixed(const leat_loader_opts *given)
{
    bool mixed =
        given->mix_batches != LEAT_MIX_SHUFFLED || given->mix_replacement != 0 || given->epoch_size > 0;
    for (uint32_t i = 0; i < given->source_count; i++) {
        const leat_loader_source *s = &given->sources[i];
        mixed |= s->weight != 0 || s->repeat != 0 || s->choose != 0;
    }
    return mixed;
}

/* ---- shares ------------------------------------------------------------------------------- */

/* Orders the subset by pack: each pack has a range of places. */
static int group_indices(leat_loader *l, uint64_t *size, uint32_t parts, leat_error *err)
{
    uint64_t *out = LEAT_NEW_ARRAY(LOADER, uint64_t, l->universe),
             *at = LEAT_NEW_ARRAY(LOADER, uint64_t, parts);

    if (out == NULL || at == NULL) {
        leat__free(out);
        leat__free(at);
        return leat__fail_nomem(err, l->universe * 8, "the subset");
    }
    memset(size, 0, parts * sizeof *size);
    for (uint64_t i = 0; i < l->universe; i++) size[leat__pack_part_of_sample(l->pack, l->indices[i])]++;
    for (uint32_t i = 1; i < parts; i++) at[i] = at[i - 1] + size[i - 1];
    for (uint64_t i = 0; i < l->universe; i++)
        out[at[leat__pack_part_of_sample(l->pack, l->indices[i])]++] = l->indices[i];
    memcpy(l->indices, out, l->universe * sizeof *out);
    leat__free(out);
    leat__free(at);
    return 0;
}

/* Assigns pages to packs. Pages are in the order of the packs, and no page has samples of two packs. */
static void share_pages(const leat_loader *l, leat__share_source *list, uint32_t parts, uint64_t pages)
{
    uint64_t page = 0;
    for (uint32_t i = 0; i < parts; i++) {
        list[i].page_samples = l->page_samples + page;
        for (uint64_t samples = 0; samples < list[i].size && page < pages; list[i].pages++)
            samples += l->page_samples[page++];
    }
}

/* Writes how many samples come of each pack per epoch, and how. */
static void describe_mix(leat_loader *l, const uint64_t *draws, uint32_t parts, const leat__shares_opts *o)
{
    static const char *const batches[] = {"shuffled", "stratified", "single"};
    char numbers[64] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < parts && n < sizeof numbers; i++)
        n += (size_t)snprintf(numbers + n, sizeof numbers - n, "%s%" PRIu64, i > 0 ? ", " : "", draws[i]);
    snprintf(l->mix_text, sizeof l->mix_text, "a mix of %s%s samples per epoch, batches %s%s", numbers,
             n >= sizeof numbers ? " …" : "", batches[o->batches],
             o->replacement ? ", with replacement" : "");
}

int leat__sources_shares(leat_loader *l, const leat_loader_opts *given, uint64_t pages,
                         leat__share_source **list, leat__shares_opts *o, leat_error *err)
{
    uint32_t parts = leat_pack_part_count(l->pack);
    uint64_t *size = LEAT_NEW_ARRAY(LOADER, uint64_t, parts),
             *draws = LEAT_NEW_ARRAY(LOADER, uint64_t, parts);
    leat_loader_source alone = {.path = leat_pack_path(l->pack)};
    int rc = 0;

    *list = LEAT_NEW_ARRAY(LOADER, leat__share_source, parts);
    if (*list == NULL || size == NULL || draws == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, parts * sizeof **list, "packs"));
    for (uint32_t i = 0; i < parts; i++) size[i] = leat_pack_count(leat_pack_part(l->pack, i, NULL));
    if (l->indices != NULL) LEAT_GO(rc, out, group_indices(l, size, parts, err));
    LEAT_GO(rc, out,
            leat__shares_draws(given->source_count > 0 ? given->sources : &alone, size, parts,
                               given->epoch_size, draws, err));
    uint64_t first = 0;
    for (uint32_t i = 0; i < parts; i++) {
        (*list)[i] = (leat__share_source){.first = first, .size = size[i], .draws = draws[i]};
        first += size[i];
    }
    if (l->page_samples != NULL) share_pages(l, *list, parts, pages);
    *o = (leat__shares_opts){.order = l->opts.order,
                             .seed = l->opts.seed,
                             .sources = *list,
                             .count = parts,
                             .batches = given->mix_batches,
                             .replacement = given->mix_replacement != 0,
                             .global_batch = (uint64_t)l->opts.batch_size * l->opts.world,
                             .streams = l->opts.streams,
                             .window_pages = l->opts.window_pages};
    l->mix = leat__hash64(draws, parts * sizeof *draws, 3 + given->mix_batches * 2 + o->replacement);
    describe_mix(l, draws, parts, o);
out:
    leat__free(size);
    leat__free(draws);
    return rc;
}

/* ---- fields ------------------------------------------------------------------------------- */

static const leat_loader_default *default_of(const leat_loader_opts *given, const char *name)
{
    for (uint32_t i = 0; i < given->default_count; i++) {
        if (given->defaults[i].field != NULL && strcmp(given->defaults[i].field, name) == 0)
            return &given->defaults[i];
    }
    return NULL;
}

static int check_field(leat_loader *l, uint32_t field, const leat_loader_opts *given, leat_error *err)
{
    const leat_field *f = leat_pack_field(l->pack, field);
    leat_pack *lacking = leat__pack_lacking(l->pack, field);
    const leat_loader_default *d = default_of(given, f->name);

    if (lacking == NULL) return 0;
    int other = leat_pack_field_find(lacking, f->name);
    if (other >= 0)
        return leat__fail(err, LEAT_EINVAL,
                          "field '%s' of %s has another type or shape than in the packs before "
                          "it: leave it out (fields)",
                          f->name, leat_pack_path(lacking));
    if (f->type == LEAT_FIELD_IMAGE)
        return leat__fail(err, LEAT_EINVAL, "%s has no image field '%s': leave it out (fields), or the pack",
                          leat_pack_path(lacking), f->name);
    if (d == NULL)
        return leat__fail(err, LEAT_EINVAL,
                          "%s has no field '%s': give it a default, or leave it out (fields)",
                          leat_pack_path(lacking), f->name);
    leat__pack_fill(l->pack, field, d->i, d->f);
    return 0;
}

int leat__sources_check(leat_loader *l, const leat__shape *shape, const leat_loader_opts *given,
                        leat_error *err)
{
    for (uint32_t c = 0; c < shape->count; c++) LEAT_TRY(check_field(l, shape->columns[c].field, given, err));
    for (uint32_t i = 0; i < given->default_count; i++) {
        const char *name = given->defaults[i].field;
        int field = name != NULL ? leat_pack_field_find(l->pack, name) : -1;
        uint32_t c = 0;
        while (c < shape->count && (int)shape->columns[c].field != field) c++;
        if (c == shape->count || leat__pack_lacking(l->pack, (uint32_t)field) == NULL)
            return leat__fail(err, LEAT_EINVAL,
                              "default of '%s' has no effect: all packs have this field, or it is "
                              "not delivered",
                              name != NULL ? name : "?");
    }
    return 0;
}

/* True when the shorter list of names is a prefix of the longer one. */
static bool agree(const char *const *a, uint64_t a_count, const char *const *b, uint64_t b_count)
{
    for (uint64_t i = 0; i < LEAT_MIN(a_count, b_count); i++) {
        if (strcmp(a[i], b[i]) != 0) return false;
    }
    return true;
}

bool leat__sources_classes(leat_loader *l, const leat__shape *shape, char text[LEAT__ADVICE_TEXT])
{
    uint32_t parts = leat_pack_part_count(l->pack);

    for (uint32_t c = 0; parts > 1 && c < shape->count; c++) {
        const leat_field *f = leat_pack_field(l->pack, shape->columns[c].field);
        const char *const *all, *const *own;
        uint64_t all_count, own_count;
        if (f->type != LEAT_FIELD_INT ||
            leat_pack_classes(l->pack, shape->columns[c].field, &all, &all_count, NULL) != 0)
            continue;
        for (uint32_t i = 0; i < parts; i++) {
            leat_pack *part = leat_pack_part(l->pack, i, NULL);
            int field = leat_pack_field_find(part, f->name);
            if (field < 0 || leat_pack_classes(part, (uint32_t)field, &own, &own_count, NULL) != 0 ||
                agree(all, all_count, own, own_count))
                continue;
            snprintf(text, LEAT__ADVICE_TEXT,
                     "%.120s: field '%.60s' has other class names than in the other packs; "
                     "its numbers are delivered unchanged",
                     leat_pack_path(part), f->name);
            return true;
        }
    }
    return false;
}
