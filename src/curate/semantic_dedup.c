/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_dedup_semantic: options, memory, clusters, comparison, and the rows that are kept.
 */
#include "curate/semantic_dedup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <leat/flow.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/kmeans.h"
#include "io/file.h"
#include "io/url.h"
#include "pack/selection.h"

#define THRESHOLD 0.95
#define TRAIN_PER_CLUSTER 32 /* sampled rows per cluster, to find the clusters on */
#define ROW_BYTES                                                                                            \
    40 /* row of the pack, cluster, distance, similarity, of, places while sorting, order                    \
        */
#define LEAST_TILE 256

typedef struct deduping {
    leat_dedup_semantic_opts opts;
    leat_dedup_semantic_stats stats;
    leat_budget *budget;
    leat__thread_team *crew;
    leat__vector_store store;
    leat__semantic s;
    leat__saved saved;
    uint64_t sample, chunk;
    bool *removed;
    bool whole; /* all vectors fit into memory */
} deduping;

void leat_dedup_semantic_opts_init_sized(leat_dedup_semantic_opts *opts, uint32_t struct_size)
{
    (void)!leat__sized_init(opts, struct_size);
}

static int check_opts(const leat_dedup_semantic_opts *o, leat_error *err)
{
    bool exists = false;
    if (!o->input || !o->input[0]) return leat__fail(err, LEAT_EINVAL, "no input was named");
    if (!o->output || !o->output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (leat__path_remote(o->output))
        return leat__fail(err, LEAT_EINVAL, "%s: results are written to a local file", o->output);
    if (o->keep > LEAT_KEEP_SIMILAR_CENTRAL)
        return leat__fail(err, LEAT_EINVAL, "`keep`: %u is not a rule", o->keep);
    if (!(o->threshold >= -1 && o->threshold <= 1))
        return leat__fail(err, LEAT_EINVAL, "`threshold`: %g is not between -1 and 1", o->threshold);
    if (!(o->keep_share >= 0 && o->keep_share <= 1))
        return leat__fail(err, LEAT_EINVAL, "`keep_share`: %g is not between 0 and 1", o->keep_share);
    if (o->keep_share > 0 && o->threshold != 0)
        return leat__fail(err, LEAT_EINVAL, "give either `threshold` or `keep_share`, not both");
    LEAT_TRY(leat__pack_spare_input(o->output, o->input, err));
    LEAT_TRY(leat__path_exists(o->output, &exists, err));
    return exists ? leat__file_only_pack(o->output, o->replace != 0, err) : 0;
}

/* ---- memory ---- */

static int fits(const deduping *d, uint64_t bytes, leat_error *err)
{
    leat_budget_stats bs;
    leat_budget_read(d->budget, &bs);
    if (bytes <= bs.limit - LEAT_MIN(bs.used, bs.limit)) return 0;
    return leat__fail(err, LEAT_EBUDGET, "%llu rows need %s of memory, more than the %s given (`memory`)",
                      (unsigned long long)d->stats.samples, leat__as_size(bs.used + bytes).text,
                      leat__as_size(bs.limit).text);
}

static int charge(deduping *d, uint64_t bytes, leat_error *err)
{
    LEAT_TRY(fits(d, bytes, err));
    return leat_budget_charge(d->budget, LEAT_BUDGET_OTHER, bytes, 0, err);
}

/* Divides the budget: bytes per row, then clusters, then vectors (all of them, or tiles). */
static int plan(deduping *d, uint64_t rows, size_t dim, leat_error *err)
{
    leat_budget_stats bs;
    const uint64_t vector = dim * sizeof(float);
    LEAT_TRY(leat_budget_open(&d->budget, d->opts.memory, err));
    d->sample = LEAT_MIN(rows, (uint64_t)d->s.clusters * TRAIN_PER_CLUSTER);
    const uint64_t least = LEAT_MAX(d->sample, 2 * LEAST_TILE); /* the sample does not depend on memory */
    const uint64_t base = rows * ROW_BYTES + leat__kmeans_bytes(d->sample, d->s.clusters, dim);
    LEAT_TRY(fits(d, base + least * vector, err)); /* named in the message: this limit is enough */
    LEAT_TRY(charge(d, base, err));
    leat_budget_read(d->budget, &bs);
    uint64_t left = (bs.limit - bs.used) / vector; /* in rows */
    d->whole = rows + least <= left;
    if (d->whole) {
        LEAT_TRY(charge(d, rows * vector, err));
        left -= rows;
    }
    if (left < least) return charge(d, least * vector, err);
    d->s.tile = LEAT_MIN(left / 2, LEAT_MAX(rows, LEAST_TILE));
    d->s.tile = LEAT_MIN(d->s.tile, 65536);
    d->chunk = d->s.tile;
    d->stats.in_memory = d->whole;
    return charge(d, LEAT_MAX(d->sample, 2 * d->s.tile) * vector, err);
}

/* ---- what is kept ---- */

typedef struct scored {
    float similarity;
    uint32_t row;
} scored;

static int by_similarity(const void *x, const void *y)
{
    const scored *a = x, *b = y;
    if (a->similarity != b->similarity) return a->similarity > b->similarity ? -1 : 1;
    return a->row > b->row ? -1 : a->row < b->row;
}

/* Removes the most similar rows until the requested share is left. The first row of a cluster always
 * stays. */
static int remove_share(deduping *d, leat_error *err)
{
    const uint64_t n = d->store.count;
    d->stats.asked = (uint64_t)(d->opts.keep_share * (double)n + 0.5);
    const uint64_t most = n - d->stats.asked;
    scored *all = LEAT_NEW_ARRAY(CURATE, scored, LEAT_MAX(n, 1));
    if (!all) return leat__fail_nomem(err, n * sizeof *all, "similarities");
    for (uint64_t i = 0; i < n; i++) all[i] = (scored){d->s.similarity[i], (uint32_t)i};
    if (n > 0) qsort(all, (size_t)n, sizeof *all, by_similarity);
    d->stats.threshold = 1;
    for (uint64_t i = 0; i < most && d->s.of[all[i].row] != LEAT__SEMANTIC_NONE; i++) {
        d->removed[all[i].row] = true;
        d->stats.threshold = (double)all[i].similarity;
    }
    leat__free(all);
    return 0;
}

static int decide(deduping *d, leat_error *err)
{
    const uint64_t n = d->store.count;
    d->removed = LEAT_NEW_ARRAY(CURATE, bool, LEAT_MAX(n, 1));
    if (!d->removed) return leat__fail_nomem(err, n, "rows");
    if (d->opts.keep_share > 0) LEAT_TRY(remove_share(d, err));
    else {
        d->stats.threshold = d->opts.threshold != 0 ? d->opts.threshold : THRESHOLD;
        for (uint64_t i = 0; i < n; i++)
            d->removed[i] =
                d->s.of[i] != LEAT__SEMANTIC_NONE && (double)d->s.similarity[i] >= d->stats.threshold;
    }
    for (uint64_t i = 0; i < n; i++) d->stats.removed += d->removed[i];
    d->stats.kept = n - d->stats.removed;
    if (d->opts.keep_share > 0 && d->stats.kept > d->stats.asked)
        leat__log(&d->opts.log, LEAT_LOG_WARN,
                  "keep share %g asks for %llu rows, but each of the %u clusters keeps one: use fewer "
                  "clusters to remove more",
                  d->opts.keep_share, (unsigned long long)d->stats.asked, d->s.clusters);
    return 0;
}

/* Returns the kept row for a removed one: each step leads to an earlier row of the cluster. */
static uint32_t kept_for(const deduping *d, uint32_t row)
{
    while (d->removed[row]) row = d->s.of[row];
    return row;
}

/* ---- output ---- */

enum { F_CLUSTER, F_KEEP, F_DUPLICATE_OF, F_SIMILARITY, F_COUNT };

static int create(const deduping *d, leat_packer **packer, leat_error *err)
{
    static const leat_field fields[F_COUNT] = {
        [F_CLUSTER] = {.name = "cluster", .type = LEAT_FIELD_INT},
        [F_KEEP] = {.name = "keep", .type = LEAT_FIELD_INT},
        [F_DUPLICATE_OF] = {.name = "duplicate_of", .type = LEAT_FIELD_INT},
        [F_SIMILARITY] = {.name = "similarity", .type = LEAT_FIELD_FLOAT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat__buf provenance;
    leat__json j;
    leat__buf_init(&provenance, LEAT__MEM_CURATE, 16u << 20);
    leat__json_init(&j, &provenance, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", "leat dedup semantic 1");
    leat__pack_pass_on(d->store.pack, &j);
    leat__json_end(&j);
    o.fields = fields;
    o.field_count = F_COUNT;
    o.provenance = leat__buf_str(&provenance);
    o.replace = d->opts.replace;
    o.no_sync = d->opts.no_sync;
    int rc = leat__buf_status(&provenance) == 0 ? leat__packer_open_once(packer, d->opts.output, &o, err)
                                                : leat__fail_nomem(err, provenance.len, "provenance");
    leat__buf_reset(&provenance);
    return rc;
}

/* Fills in the columns of row i of the store. */
static void describe(const deduping *d, uint64_t i, leat_pack_value *v)
{
    v[F_CLUSTER].i = d->s.cluster[i];
    v[F_KEEP].i = !d->removed[i];
    v[F_DUPLICATE_OF].i = d->removed[i] ? (int64_t)d->store.in_pack[kept_for(d, (uint32_t)i)] : -1;
    v[F_SIMILARITY].f = (double)d->s.similarity[i];
}

/* Writes a row for each row of the pack. Those without a vector stay, in no cluster. */
static int write_rows(deduping *d, leat_packer *packer, leat__buf *key, leat_error *err)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < d->stats.samples; i++) {
        leat_pack_value v[F_COUNT] = {[F_CLUSTER] = {.i = -1},
                                      [F_KEEP] = {.i = 1},
                                      [F_DUPLICATE_OF] = {.i = -1},
                                      [F_SIMILARITY] = {.f = -1}};
        LEAT_TRY(leat__pack_key_read(d->store.pack, i, key, err));
        if (next < d->store.count && d->store.in_pack[next] == i) describe(d, next++, v);
        const leat_pack_sample sample = {.key = leat__buf_str(key), .key_size = key->len, .values = v};
        LEAT_TRY(leat_packer_append(packer, &sample, err));
    }
    return 0;
}

static int write_pack(deduping *d, leat_error *err)
{
    leat_packer *packer = NULL;
    leat_packer_stats ps;
    leat__buf key;
    LEAT_TRY(create(d, &packer, err));
    leat__buf_init(&key, LEAT__MEM_CURATE, 2u << 20);
    int rc = write_rows(d, packer, &key, err);
    if (rc == 0) rc = leat_packer_finish(packer, &ps, err);
    leat_packer_close(&packer);
    if (rc != 0) (void)!leat_packer_discard(d->opts.output, NULL);
    leat__buf_reset(&key);
    return rc;
}

/* ---- the run ---- */

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    const leat_dedup_semantic_opts *o = &((const deduping *)cookie)->opts;
    return o->progress ? o->progress(o->cookie, done, total, 0, 0) : 0;
}

static int size_of(deduping *d, uint64_t *rows, size_t *dim, leat_error *err)
{
    leat_pack *pack = NULL;
    uint32_t field = 0;
    LEAT_TRY(leat_pack_open(&pack, d->opts.input, NULL, err));
    int rc = leat__vectors_field(pack, d->opts.field, &field, err);
    *rows = leat_pack_count(pack);
    *dim = rc == 0 ? leat__vectors_dim(pack, field) : 0;
    leat_pack_close(&pack);
    return rc;
}

/* Hashes everything that clusters and similarities depend on. */
static int make_key(deduping *d, leat_error *err)
{
    leat_pack_info info = {.struct_size = sizeof info};
    leat__hasher *h = leat__hasher_open(0);
    if (!h) return leat__fail_nomem(err, 0, "a hash");
    (void)leat_pack_info_read(d->store.pack, &info, sizeof info);
    const uint64_t numbers[] = {info.fingerprint, d->store.field, d->store.count, d->store.dim,
                                d->s.clusters,    d->sample,      d->s.keep};
    leat__hasher_update(h, numbers, sizeof numbers);
    d->saved.key = leat__hasher_value128(h);
    leat__hasher_close(&h);
    return 0;
}

static uint32_t clusters_for(const deduping *d, uint64_t rows)
{
    const uint32_t count = d->opts.clusters ? d->opts.clusters : (uint32_t)sqrt((double)rows);
    return (uint32_t)LEAT_MIN((uint64_t)LEAT_MAX(count, 1), LEAT_MAX(rows, 1));
}

static int run(deduping *d, leat_error *err)
{
    leat__semantic *s = &d->s;
    uint64_t rows = 0;
    size_t dim = 0;
    LEAT_TRY(check_opts(&d->opts, err));
    LEAT_TRY(size_of(d, &rows, &dim, err));
    d->stats.samples = rows;
    s->clusters = clusters_for(d, rows);
    LEAT_TRY(plan(d, rows, dim, err)); /* enough also when rows have no vector */
    LEAT_TRY(leat__thread_team_open(&d->crew, d->opts.threads, err));
    LEAT_TRY(leat__vector_store_open(&d->store, d->opts.input, d->opts.field, d->whole, d->crew, err));
    d->stats.without_vector = rows - d->store.count;
    rows = d->store.count;
    s->clusters = clusters_for(d, rows);
    d->sample = LEAT_MIN(rows, (uint64_t)s->clusters * TRAIN_PER_CLUSTER);
    LEAT_TRY(leat__saved_open(&d->saved, d->opts.output, err));
    LEAT_TRY(make_key(d, err));
    s->saved = &d->saved;
    s->store = &d->store;
    s->crew = d->crew;
    s->keep = d->opts.keep;
    s->tell = tell;
    s->cookie = d;
    s->cluster = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(rows, 1));
    s->distance = LEAT_NEW_ARRAY(CURATE, float, LEAT_MAX(rows, 1));
    s->similarity = LEAT_NEW_ARRAY(CURATE, float, LEAT_MAX(rows, 1));
    s->of = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(rows, 1));
    if (!s->cluster || !s->distance || !s->similarity || !s->of)
        return leat__fail_nomem(err, rows * 16, "rows");
    LEAT_TRY(leat__semantic_cluster(s, d->sample, d->chunk, err));
    LEAT_TRY(leat__semantic_compare(s, err));
    LEAT_TRY(decide(d, err));
    LEAT_TRY(write_pack(d, err));
    return leat__saved_drop(&d->saved, err);
}

static void tear_down(deduping *d)
{
    leat_budget_stats bs = {0};
    if (d->budget) leat_budget_read(d->budget, &bs);
    d->stats.plan_memory = bs.used;
    d->stats.clusters = d->s.clusters;
    d->stats.largest = d->s.at.largest;
    d->stats.pairs = d->s.at.pairs;
    d->stats.resumed = d->s.resumed;
    if (d->budget) leat_budget_release(d->budget, LEAT_BUDGET_OTHER, bs.used);
    leat_budget_close(&d->budget);
    if (d->store.pack) leat__vector_store_close(&d->store);
    leat__thread_team_close(&d->crew);
    leat__semantic_reset(&d->s);
    leat__saved_close(&d->saved);
    leat__free(d->s.cluster);
    leat__free(d->s.distance);
    leat__free(d->s.similarity);
    leat__free(d->s.of);
    leat__free(d->removed);
}

int leat_dedup_semantic(const leat_dedup_semantic_opts *opts, leat_dedup_semantic_stats *stats,
                        leat_error *err)
{
    deduping d;
    if (!opts || opts->struct_size < sizeof opts->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&d, 0, sizeof d);
    memcpy(&d.opts, opts, LEAT_MIN(opts->struct_size, sizeof d.opts));
    d.stats.struct_size = sizeof d.stats;
    const uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(&d, err);
    tear_down(&d);
    d.stats.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    d.stats.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (stats) (void)!leat__sized_copy(stats, &d.stats, sizeof d.stats);
    return rc;
}

void leat__dedup_semantic_json(const leat_dedup_semantic_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "samples", st->samples);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "removed", st->removed);
    leat__json_ku64(&j, "without_vector", st->without_vector);
    leat__json_ku64(&j, "asked", st->asked);
    leat__json_kdouble(&j, "threshold", st->threshold);
    leat__json_ku64(&j, "clusters", st->clusters);
    leat__json_ku64(&j, "largest", st->largest);
    leat__json_ku64(&j, "pairs", st->pairs);
    leat__json_ku64(&j, "resumed", st->resumed);
    leat__json_kbool(&j, "in_memory", st->in_memory != 0);
    leat__json_ku64(&j, "plan_memory", st->plan_memory);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_end(&j);
}
