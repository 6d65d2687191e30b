/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a pack into parts by the hash of each key. A sample's part depends only on its key, the seed and
 * the shares, so samples added later do not move others. Stratified: the samples of each value of a field
 * are ranked by hash. The shares are then exact within each value, but a sample near a border may move when
 * others are added.
 *
 * The hashes of a part are all from one range, so splitting a part again needs another hash. Parts record
 * the seeds of their hashes; a seed already used is replaced by one derived from it. If that record is
 * lost, shares that cannot be due to chance are refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/append.h"
#include "pack/compact.h"
#include "pack/layout.h"
#include "pack/reader_impl.h"
#include "pack/selection.h"

#define ROUNDING 1e-9
#define SEEDS_MAX 64     /* levels of splitting a part again */
#define DEVIATIONS 6     /* a share this many standard deviations off is not due to chance */
#define EMPTY_LOG (-14.) /* log of the probability of an empty part that rules out chance: 1 in a million */

typedef struct ranked {
    int64_t value;
    uint64_t hash, sample;
} ranked;

typedef struct division {
    leat_pack *pack;
    leat_pack_split_opts opts;
    uint8_t *part;             /* part of each sample; UINT8_MAX for none */
    uint64_t seeds[SEEDS_MAX]; /* of the hashes that made this pack, then that of this split */
    uint32_t seed_count;
} division;

static int check(const leat_pack_split_opts *o, leat_error *err)
{
    double sum = 0;
    if (o->part_count == 0 || o->part_count > LEAT_PACK_PARTS_MAX || o->parts == NULL)
        return leat__fail(err, LEAT_EINVAL, "`parts`: must be 1 to %u parts", LEAT_PACK_PARTS_MAX);
    for (uint32_t i = 0; i < o->part_count; i++) {
        const leat_split_part *p = &o->parts[i];
        if (p->output == NULL) return leat__fail(err, LEAT_EINVAL, "`parts`: part %u has no name", i + 1);
        if (!(p->share > 0 && p->share <= 1))
            return leat__fail(err, LEAT_EINVAL,
                              "`parts`: the share of part %u is %g, not above 0 and up to 1", i + 1,
                              p->share);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(o->parts[k].output, p->output) == 0)
                return leat__fail(err, LEAT_EINVAL, "`parts`: %s is the name of two parts", p->output);
        sum += p->share;
    }
    if (sum > 1 + ROUNDING)
        return leat__fail(err, LEAT_EINVAL, "`parts`: the shares add up to %g, more than 1", sum);
    return 0;
}

static uint8_t part_at(const leat_pack_split_opts *o, double place)
{
    LEAT_ASSERT(place >= 0 && place < 1 + ROUNDING);
    double end = 0;
    for (uint32_t i = 0; i < o->part_count; i++) {
        end += o->parts[i].share;
        if (place < end || end > 1 - ROUNDING) return (uint8_t)i;
    }
    return UINT8_MAX;
}

/* ---- the hash ---- */

static bool used(const division *d, uint64_t seed)
{
    for (uint32_t i = 0; i < d->seed_count; i++)
        if (d->seeds[i] == seed) return true;
    return false;
}

static void add_seed(division *d, const json_t *text)
{
    uint64_t seed;
    if (!json_is_string(text) || d->seed_count == SEEDS_MAX - 1) return;
    if (leat__str_to_u64(json_string_value(text), &seed)) d->seeds[d->seed_count++] = seed;
}

/* Chooses the seed of the hash: the given one, unless this pack was split off with it. */
static int choose_seed(division *d, leat_error *err)
{
    char *source = leat__provenance_source(leat_pack_provenance(d->pack));
    if (source == NULL) return leat__fail_nomem(err, 0, "provenance");
    json_t *root = json_loads(source, 0, NULL);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    if (kind != NULL && strcmp(kind, "split") == 0) {
        const json_t *seeds = json_object_get(root, "seeds");
        for (size_t i = 0; i < json_array_size(seeds); i++) add_seed(d, json_array_get(seeds, i));
        if (seeds == NULL) /* made by an earlier version */
            d->seeds[d->seed_count++] = (uint64_t)json_integer_value(json_object_get(root, "seed"));
    }
    json_decref(root);
    leat__free(source);
    uint64_t seed = d->opts.seed;
    while (d->opts.stratify == NULL && used(d, seed)) seed = leat__hash64(&seed, sizeof seed, d->opts.seed);
    d->seeds[d->seed_count++] = seed;
    return 0;
}

static int hash_of(division *d, uint64_t sample, char **key, size_t *room, uint64_t *hash, leat_error *err)
{
    size_t size;
    int rc = leat_pack_key(d->pack, sample, *key, *room, &size, err);
    if (rc == LEAT_ELIMIT && size >= *room) {
        leat__free(*key);
        *room = size + 1;
        *key = leat__alloc(LEAT__MEM_PACK, *room);
        if (*key == NULL) return leat__fail_nomem(err, *room, "a key");
        rc = leat_pack_key(d->pack, sample, *key, *room, &size, err);
    }
    if (rc == 0) *hash = leat__hash64(*key, size, d->seeds[d->seed_count - 1]);
    return rc;
}

static int by_value_and_hash(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static void rank_all(division *d, ranked *all, uint64_t count)
{
    LEAT_ASSERT(count == leat_pack_count(d->pack));
    qsort(all, (size_t)count, sizeof *all, by_value_and_hash);
    for (uint64_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && all[end].value == all[first].value; end++) continue;
        for (uint64_t i = first; i < end; i++)
            d->part[all[i].sample] = part_at(&d->opts, ((double)(i - first) + 0.5) / (double)(end - first));
    }
}

static int stratum(division *d, uint64_t sample, uint32_t field, int64_t *value, leat_error *err)
{
    return leat_pack_ints(d->pack, field, sample, 1, value, err);
}

static int assign(division *d, leat_error *err)
{
    uint64_t count = leat_pack_count(d->pack), hash = 0;
    size_t room = 512;
    char *key = leat__alloc(LEAT__MEM_PACK, room);
    ranked *all = NULL;
    int field = 0, rc = 0;
    d->part = LEAT_NEW_ARRAY(PACK, uint8_t, count);
    if (d->opts.stratify != NULL) {
        field = leat_pack_field_find(d->pack, d->opts.stratify);
        if (field < 0 || leat_pack_field(d->pack, (uint32_t)field)->type != LEAT_FIELD_INT)
            LEAT_GO(rc, out,
                    leat__fail(err, LEAT_EINVAL, "%s: has no int field \"%s\" to stratify by",
                               leat_pack_path(d->pack), d->opts.stratify));
        all = LEAT_NEW_ARRAY(PACK, ranked, count);
    }
    if (key == NULL || d->part == NULL || (d->opts.stratify != NULL && all == NULL))
        LEAT_GO(rc, out, leat__fail_nomem(err, count * sizeof *all, "a split"));
    for (uint64_t i = 0; i < count; i++) {
        LEAT_GO(rc, out, hash_of(d, i, &key, &room, &hash, err));
        if (all == NULL) {
            d->part[i] = part_at(&d->opts, (double)(hash >> 11) * 0x1p-53);
            continue;
        }
        all[i] = (ranked){.hash = hash, .sample = i};
        LEAT_GO(rc, out, stratum(d, i, (uint32_t)field, &all[i].value, err));
    }
    if (all != NULL) rank_all(d, all, count);
out:
    leat__free(all);
    leat__free(key);
    return rc;
}

/* Refuses shares that cannot be due to chance: then the pack is a part, but its provenance does not say
 * so. */
static int check_shares(const division *d, leat_error *err)
{
    const uint64_t count = leat_pack_count(d->pack);
    uint64_t got[LEAT_PACK_PARTS_MAX] = {0};
    if (d->opts.stratify != NULL) return 0;
    for (uint64_t i = 0; i < count; i++)
        if (d->part[i] != UINT8_MAX) got[d->part[i]]++;
    for (uint32_t i = 0; i < d->opts.part_count; i++) {
        const double share = d->opts.parts[i].share, expected = share * (double)count;
        if (share > 1 - ROUNDING) continue;
        bool odd = fabs((double)got[i] - expected) > DEVIATIONS * sqrt(expected * (1 - share)) + 1;
        if (got[i] == 0) odd = (double)count * log1p(-share) < EMPTY_LOG;
        if (odd)
            return leat__fail(err, LEAT_EINVAL,
                              "%s: a share of %g would get %llu of %llu samples, since this pack is a part "
                              "of an earlier split with the same seed; give another `seed`",
                              leat_pack_path(d->pack), share, (unsigned long long)got[i],
                              (unsigned long long)count);
    }
    return 0;
}

typedef struct choice {
    const division *d;
    uint8_t part;
} choice;

static bool chosen(void *cookie, uint64_t sample)
{
    const choice *c = cookie;
    return c->d->part[sample] == c->part;
}

static int describe(const division *d, uint32_t part, leat__buf *out, leat_error *err)
{
    char of[24];
    leat__json j;
    snprintf(of, sizeof of, "%016llx", (unsigned long long)leat__pack_meta(d->pack)->footer.check);
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", "split");
    leat__json_kstr(&j, "of", of);
    leat__json_ku64(&j, "part", part);
    leat__json_key(&j, "shares");
    leat__json_array(&j);
    for (uint32_t i = 0; i < d->opts.part_count; i++) leat__json_double(&j, d->opts.parts[i].share);
    leat__json_end(&j);
    leat__json_ku64(&j, "seed", d->opts.seed);
    leat__json_key(&j, "seeds");
    leat__json_array(&j);
    for (uint32_t i = 0; i < d->seed_count; i++) {
        snprintf(of, sizeof of, "%llu", (unsigned long long)d->seeds[i]);
        leat__json_str(&j, of);
    }
    leat__json_end(&j);
    if (d->opts.stratify != NULL) leat__json_kstr(&j, "stratify", d->opts.stratify);
    leat__json_end(&j);
    return leat__buf_status(out) == 0 ? 0 : leat__fail_nomem(err, 0, "provenance");
}

static int write_part(division *d, uint32_t part, leat_error *err)
{
    LEAT_ASSERT(part < d->opts.part_count);
    choice c = {d, (uint8_t)part};
    leat_packer_stats st = {0};
    leat__buf source;
    leat_pack_compact_opts o = {.struct_size = sizeof o,
                                .no_sync = d->opts.no_sync,
                                .replace = d->opts.replace,
                                .output = d->opts.parts[part].output,
                                .progress = d->opts.progress,
                                .cookie = d->opts.cookie};
    leat__buf_init(&source, LEAT__MEM_PACK, 1u << 20);
    int rc = describe(d, part, &source, err);
    if (rc == 0) rc = leat__pack_copy(d->pack, &o, leat__buf_str(&source), chosen, &c, &st, err);
    leat__buf_reset(&source);
    d->opts.parts[part].samples = st.samples;
    return rc;
}

/* Before writing anything: refuses outputs that exist, or that are the pack itself. */
static int check_outputs(const division *d, leat_error *err)
{
    for (uint32_t i = 0; i < d->opts.part_count; i++) {
        bool exists;
        LEAT_TRY(leat__pack_spare_input(d->opts.parts[i].output, leat_pack_path(d->pack), err));
        LEAT_TRY(leat__path_exists(d->opts.parts[i].output, &exists, err));
        if (exists) LEAT_TRY(leat__file_only_pack(d->opts.parts[i].output, d->opts.replace != 0, err));
    }
    return 0;
}

int leat_pack_split(const char *path, const leat_pack_split_opts *opts, leat_error *err)
{
    LEAT_REQUIRE(path != NULL && opts != NULL, err);
    division d = {0};
    memcpy(&d.opts, opts, LEAT_MIN((size_t)opts->struct_size, sizeof d.opts));
    LEAT_TRY(check(&d.opts, err));
    for (uint32_t i = 0; i < d.opts.part_count; i++)
        LEAT_TRY(leat__pack_spare_input(d.opts.parts[i].output, path, err));
    int rc = leat_pack_open(&d.pack, path, NULL, err);
    if (rc == 0) rc = check_outputs(&d, err);
    if (rc == 0) rc = choose_seed(&d, err);
    if (rc == 0) rc = assign(&d, err);
    if (rc == 0) rc = check_shares(&d, err);
    for (uint32_t i = 0; i < d.opts.part_count && rc == 0; i++) rc = write_part(&d, i, err);
    leat__free(d.part);
    leat_pack_close(&d.pack);
    return rc;
}
