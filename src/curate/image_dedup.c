/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_dedup_images: columns of all inputs (created if not given), pairs, clusters, and the
 * output.
 */
#include "curate/image_dedup.h"

#include <leat/flow.h>
#include <leat/version.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/image_blocks.h"
#include "curate/image_check.h"
#include "curate/image_csv.h"
#include "io/url.h"
#include "pack/layout.h"
#include "pack/selection.h"

#define THRESHOLD 0.7
#define PROBABLE 0.6
#define CSV_HEAD "key_a,pack_a,"
#define TELL 4096 /* rows written between progress calls */

typedef struct deduping {
    const leat_dedup_images_opts *opts;
    leat_dedup_images_stats *stats;
    char **columns;      /* path of each input's columns */
    char **names;        /* each input as the output names it: a URL without its secrets */
    bool *made;          /* created by this run, removed at the end */
    uint32_t *order;     /* order of the inputs in the search */
    const char **sorted; /* paths of their columns, in this order */
    leat__dedup_rows rows;
    leat__image_pairs pairs;
    char *spill; /* folder for files, when memory is not enough */
    uint32_t *kept;
    uint32_t *best;    /* per row: its most similar pair, or LEAT__DEDUP_NONE */
    uint32_t *cluster; /* number of each row's cluster, or LEAT__DEDUP_NONE */
    leat_packer *packer;
    leat__saved saved;
} deduping;

void leat_dedup_images_opts_init_sized(leat_dedup_images_opts *opts, uint32_t struct_size)
{
    (void)!leat__sized_init(opts, struct_size);
}

/* ---- columns ---- */

static int on_check(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    const deduping *d = cookie;
    (void)bytes, (void)found;
    return d->opts->progress ? d->opts->progress(d->opts->cookie, done, total, 0, 0) : 0;
}

/* Checks the images, unless an interrupted run has done so. Its marker, FILE.state, identifies the
 * records. */
static int check_images(const leat_check_opts *c, leat__saved *mark, leat_error *err)
{
    leat__chain chain;
    bool done = false;
    LEAT_TRY(leat__check_chain(c, &chain, err));
    mark->key = (leat__hash128){.high = chain.value ^ LEAT_VERSION_NUMBER, .low = chain.records};
    LEAT_TRY(leat__saved_load(mark, NULL, 0, &done, err));
    if (done) LEAT_TRY(leat__path_exists(c->output, &done, err));
    if (done) return 0;
    LEAT_TRY(leat_check_images(c, NULL, err));
    return leat__saved_store(mark, NULL, 0, err);
}

/* Returns the options for checking an input without columns. */
static leat_check_opts check_of(deduping *d, uint32_t i)
{
    const leat_dedup_images_opts *o = d->opts;
    leat_check_opts c;
    leat_check_opts_init(&c);
    c.sources = &o->inputs[i];
    c.source_count = 1;
    c.threads = o->threads;
    c.memory = o->memory;
    c.replace = 1;
    c.no_sync = 1;
    c.progress = on_check;
    c.cookie = d;
    c.log = o->log;
    return c;
}

static int make_columns(deduping *d, uint32_t i, leat_error *err)
{
    leat__saved mark;
    leat_check_opts c = check_of(d, i);
    c.output = d->columns[i];
    d->made[i] = true;
    LEAT_TRY(leat__saved_open(&mark, c.output, err));
    int rc = check_images(&c, &mark, err);
    leat__saved_close(&mark);
    return rc;
}

/* Finds the path of an input's columns: the input itself when it is a pack of columns. */
static int find_columns(deduping *d, uint32_t i, leat_error *err)
{
    const leat_dedup_images_opts *o = d->opts;
    leat__image_columns c;
    leat__buf path;
    if (leat__image_columns_open(&c, o->inputs[i], NULL) == 0) {
        leat__image_columns_close(&c);
        d->columns[i] = leat__strdup(LEAT__MEM_CURATE, o->inputs[i]);
        return d->columns[i] ? 0 : leat__fail_nomem(err, 0, "a path");
    }
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&path, "%s.columns-%u", o->output, i);
    d->columns[i] =
        leat__buf_status(&path) == 0 ? leat__strdup(LEAT__MEM_CURATE, leat__buf_str(&path)) : NULL;
    leat__buf_reset(&path);
    if (!d->columns[i]) return leat__fail_nomem(err, 0, "a path");
    return make_columns(d, i, err);
}

/* Returns a new block with the name of an input that the output stores. The name that the caller gave is
 * stored without its folder, so that the same inputs in another folder give the same bytes. */
static char *name_of(const leat_dedup_images_opts *o, uint32_t i)
{
    size_t len;
    if (!o->csv_pack) return leat__path_display(o->inputs[i]);
    const char *name = leat__path_name(o->csv_pack, &len);
    return leat__strndup(LEAT__MEM_CURATE, name, len);
}

static int open_columns(deduping *d, leat_error *err)
{
    const uint32_t n = d->opts->input_count;
    d->columns = LEAT_NEW_ARRAY(CURATE, char *, n);
    d->made = LEAT_NEW_ARRAY(CURATE, bool, n);
    d->names = LEAT_NEW_ARRAY(CURATE, char *, n);
    bool fits = d->columns && d->made && d->names;
    for (uint32_t i = 0; fits && i < n; i++) fits = (d->names[i] = name_of(d->opts, i)) != NULL;
    if (!fits) return leat__fail_nomem(err, n * sizeof *d->columns, "paths");
    for (uint32_t i = 0; i < n; i++) LEAT_TRY(find_columns(d, i, err));
    return 0;
}

static bool all_columns(const deduping *d)
{
    leat__image_columns c;
    for (uint32_t i = 0; i < d->opts->input_count; i++) {
        if (leat__image_columns_open(&c, d->opts->inputs[i], NULL) != 0) return false;
        leat__image_columns_close(&c);
    }
    return true;
}

/* Adds the number of images of an input to *rows. */
static int count_images(deduping *d, uint32_t i, uint64_t *rows, leat_error *err)
{
    leat__image_columns c;
    leat__chain chain;
    if (leat__image_columns_open(&c, d->opts->inputs[i], NULL) == 0) {
        *rows += c.count;
        leat__image_columns_close(&c);
        return 0;
    }
    const leat_check_opts opts = check_of(d, i);
    LEAT_TRY(leat__check_chain(&opts, &chain, err));
    *rows += chain.records;
    return 0;
}

/* Returns an amount of memory that is enough to check the inputs without columns. */
static uint64_t enough_to_check(deduping *d)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < d->opts->input_count; i++) {
        leat__image_columns c;
        const leat_check_opts opts = check_of(d, i);
        if (leat__image_columns_open(&c, d->opts->inputs[i], NULL) == 0) leat__image_columns_close(&c);
        else most = LEAT_MAX(most, leat__check_enough(&opts));
    }
    return most;
}

/* Fails when the memory is less than the rows of columns need, which are read for it: the number of their
 * descriptors is known. Names the least that is enough. */
static int refuse_known(const deduping *d, uint64_t rows, leat_error *err)
{
    const leat_dedup_images_opts *o = d->opts;
    uint64_t entries = 0;
    for (uint32_t i = 0; i < o->input_count; i++)
        LEAT_TRY(leat__dedup_rows_entries(o->inputs[i], &entries, err));
    const uint64_t need = LEAT_MIN(leat__dedup_rows_least(rows, entries, o->orientations),
                                   leat__dedup_rows_plan(rows, LEAT_MAX(rows, entries)));
    return need <= o->memory ? 0 : leat__dedup_rows_refuse(rows, o->memory, need, err);
}

/* Fails when the memory is not enough for the search. Called before images are checked, which may
 * take long. */
static int refuse_memory(deduping *d, leat_error *err)
{
    const leat_dedup_images_opts *o = d->opts;
    uint64_t rows = 0;
    if (o->memory == 0) return 0;
    for (uint32_t i = 0; i < o->input_count; i++) LEAT_TRY(count_images(d, i, &rows, err));
    if (all_columns(d) && !o->windows && leat__dedup_rows_enough(rows, o->orientations, false) > o->memory)
        return refuse_known(d, rows, err);
    int rc = leat__dedup_rows_fit(rows, o->orientations, o->windows != 0, o->memory, err);
    if (rc == 0) return 0;
    const uint64_t check = enough_to_check(d);
    if (check <= leat__dedup_rows_enough(rows, o->orientations, o->windows != 0)) return rc;
    return leat__fail(err, LEAT_EBUDGET, "the images do not fit the %s given (`memory`): %s is enough",
                      leat__as_size(o->memory).text, leat__as_size(check).text);
}

/* ---- results ---- */

static int tell(void *cookie, uint64_t done, uint64_t total, uint64_t found)
{
    const deduping *d = cookie;
    return d->opts->progress ? d->opts->progress(d->opts->cookie, done, total, 0, found) : 0;
}

static int number_clusters(deduping *d, leat_error *err)
{
    const uint32_t n = LEAT_MAX(d->rows.count, 1);
    d->kept = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    d->best = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    d->cluster = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    if (!d->kept || !d->best || !d->cluster) return leat__fail_nomem(err, 12 * (size_t)n, "clusters");
    LEAT_TRY(leat__dedup_clusters(&d->rows, &d->pairs, d->opts->keep, d->kept, err));
    for (uint32_t i = 0; i < d->rows.count; i++) d->best[i] = d->cluster[i] = LEAT__DEDUP_NONE;
    for (uint64_t i = 0; i < d->pairs.count; i++) {
        const leat__image_pair *p = &d->pairs.pair[i];
        d->stats->probable += p->probable;
        d->stats->pairs += !p->probable;
        d->stats->exact += p->similarity >= 1;
        if (p->probable) continue;
        const uint32_t both[2] = {p->a, p->b};
        for (int k = 0; k < 2; k++) {
            uint32_t *best = &d->best[both[k]];
            if (*best == LEAT__DEDUP_NONE || d->pairs.pair[*best].similarity < p->similarity)
                *best = (uint32_t)i;
        }
    }
    for (uint32_t i = 0; i < d->rows.count; i++) { /* numbers clusters in the order of their first rows */
        if (d->best[i] == LEAT__DEDUP_NONE) continue;
        uint32_t *number = &d->cluster[d->kept[i]];
        if (*number == LEAT__DEDUP_NONE) *number = (uint32_t)d->stats->clusters++;
        d->cluster[i] = *number;
        d->stats->removed += d->kept[i] != i;
    }
    d->stats->samples = d->rows.count;
    d->stats->kept = d->rows.count - d->stats->removed;
    return 0;
}

enum { F_CLUSTER, F_KEEP, F_DUPLICATE_OF, F_SIMILARITY, F_ORIENTATION, F_PACK, F_ROW, F_COUNT };

static void describe_pack(leat__json *j, const char *fingerprint, uint64_t samples)
{
    leat__json_object(j);
    leat__json_kstr(j, "fingerprint", fingerprint);
    leat__json_ku64(j, "samples", samples);
    leat__json_end(j);
}

/* Adds the packs with the images of an input: the input itself, or the packs that its columns were
 * made from. Returns false for other sources. */
static bool describe_input(leat__json *j, const char *input)
{
    leat_pack *pack = NULL;
    leat_pack_info info = {.struct_size = sizeof info};
    char hex[24];
    uint64_t sum = 0;
    if (leat_pack_open(&pack, input, NULL, NULL) != 0) return false;
    (void)leat_pack_info_read(pack, &info, sizeof info);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)info.fingerprint);
    const bool is_columns = leat__image_columns_are(pack);
    json_t *root = is_columns ? json_loads(leat_pack_provenance(pack), 0, NULL) : NULL;
    const json_t *packs = json_object_get(json_object_get(root, "source"), "packs");
    for (size_t i = 0; i < json_array_size(packs); i++) {
        const json_t *p = json_array_get(packs, i), *name = json_object_get(p, "fingerprint");
        const uint64_t samples = (uint64_t)json_integer_value(json_object_get(p, "samples"));
        describe_pack(j, json_is_string(name) ? json_string_value(name) : "", samples);
        sum += samples;
    }
    if (!is_columns) describe_pack(j, hex, info.samples);
    json_decref(root);
    leat_pack_close(&pack);
    return !is_columns || sum == info.samples;
}

/* Writes {"kind":"leat dedup images 1","packs":[{"fingerprint":…,"samples":…}]}; rows follow the
 * order of these packs. Omits "packs" when an input is not a pack. */
static int make_provenance(const deduping *d, leat__buf *out, leat_error *err)
{
    leat__json j;
    leat__buf packs;
    bool known = true;
    leat__buf_init(&packs, LEAT__MEM_CURATE, 16u << 20);
    leat__json_init(&j, &packs, 0);
    leat__json_array(&j);
    for (uint32_t i = 0; i < d->opts->input_count && known; i++)
        known = describe_input(&j, d->opts->inputs[i]);
    leat__json_end(&j);
    leat__buf_puts(out, "{\"kind\":\"leat dedup images 1\"");
    if (known) leat__buf_printf(out, ",\"packs\":%s", leat__buf_str(&packs));
    leat__buf_puts(out, "}");
    int rc = leat__buf_status(&packs) != 0 ? leat__buf_status(&packs) : leat__buf_status(out);
    leat__buf_reset(&packs);
    return rc == 0 ? 0 : leat__fail_nomem(err, out->len, "provenance");
}

static int create_pack(deduping *d, leat_error *err)
{
    static const leat_field fields[F_COUNT] = {
        [F_CLUSTER] = {.name = "cluster", .type = LEAT_FIELD_INT},
        [F_KEEP] = {.name = "keep", .type = LEAT_FIELD_INT},
        [F_DUPLICATE_OF] = {.name = "duplicate_of", .type = LEAT_FIELD_INT},
        [F_SIMILARITY] = {.name = "similarity", .type = LEAT_FIELD_FLOAT},
        [F_ORIENTATION] = {.name = "orientation", .type = LEAT_FIELD_INT},
        [F_PACK] = {.name = "pack", .type = LEAT_FIELD_INT},
        [F_ROW] = {.name = "row", .type = LEAT_FIELD_INT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat__buf provenance;
    leat__buf_init(&provenance, LEAT__MEM_CURATE, 16u << 20);
    int rc = make_provenance(d, &provenance, err);
    o.fields = fields;
    o.field_count = F_COUNT;
    o.provenance = leat__buf_str(&provenance);
    o.replace = d->opts->replace;
    o.no_sync = d->opts->no_sync;
    if (rc == 0) rc = leat__packer_open_once(&d->packer, d->opts->output, &o, err);
    leat__buf_reset(&provenance);
    return rc;
}

static int write_row(deduping *d, uint32_t at, const char *key, size_t size, leat_error *err)
{
    leat_pack_value v[F_COUNT];
    const uint32_t pack = d->rows.row[at].pack;
    memset(v, 0, sizeof v);
    v[F_CLUSTER].i = d->cluster[at] == LEAT__DEDUP_NONE ? -1 : (int64_t)d->cluster[at];
    v[F_KEEP].i = d->kept[at] == at;
    v[F_DUPLICATE_OF].i = d->kept[at] == at ? -1 : (int64_t)d->kept[at];
    if (d->best[at] != LEAT__DEDUP_NONE) {
        v[F_SIMILARITY].f = d->pairs.pair[d->best[at]].similarity;
        v[F_ORIENTATION].i = d->pairs.pair[d->best[at]].orientation;
    }
    v[F_PACK].i = pack;
    v[F_ROW].i = at - d->rows.first[pack];
    const leat_pack_sample s = {.key = key, .key_size = size, .values = v};
    return leat_packer_append(d->packer, &s, err);
}

/* Writes the rows of a pack; `key` has room for the longest key. */
static int write_pack(deduping *d, uint32_t number, leat_pack *pack, char *key, leat_error *err)
{
    const uint32_t first = d->rows.first[number], count = d->rows.first[number + 1] - first;
    for (uint32_t i = 0; i < count; i++) {
        size_t size;
        if (i % TELL == 0 && tell(d, d->rows.count, d->rows.count, d->pairs.count) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        LEAT_TRY(leat_pack_key(pack, i, key, LEAT__PACK_KEY_MAX + 1, &size, err));
        LEAT_TRY(write_row(d, first + i, key, size, err));
    }
    return 0;
}

static int write_rows(deduping *d, leat_error *err)
{
    char *key = leat__alloc(LEAT__MEM_CURATE, LEAT__PACK_KEY_MAX + 1);
    if (!key) return leat__fail_nomem(err, LEAT__PACK_KEY_MAX + 1, "a key");
    int rc = leat_packer_classes(d->packer, F_PACK, (const char *const *)d->names, d->opts->input_count, err);
    for (uint32_t p = 0; p < d->rows.packs && rc == 0; p++) {
        leat_pack *pack = NULL;
        rc = leat__image_columns_pack(&pack, d->columns[p], LEAT__COLUMNS_CACHE, err);
        if (rc == 0) rc = write_pack(d, p, pack, key, err);
        leat_pack_close(&pack);
    }
    leat__free(key);
    return rc;
}

static int by_similarity(const void *x, const void *y)
{
    const leat__image_pair *a = x, *b = y;
    if (a->similarity != b->similarity) return a->similarity > b->similarity ? -1 : 1;
    if (a->a != b->a) return a->a < b->a ? -1 : 1;
    return a->b < b->b ? -1 : a->b > b->b;
}

static int put_key(deduping *d, leat__csv_out *csv, leat_pack **packs, uint32_t row, leat_error *err)
{
    const uint32_t pack = d->rows.row[row].pack;
    char key[4096];
    size_t size = 0;
    LEAT_TRY(leat_pack_key(packs[pack], row - d->rows.first[pack], key, sizeof key, &size, err));
    leat__csv_out_field(csv, key, size);
    leat__csv_out_text(csv, d->opts->csv_pack ? d->opts->csv_pack : d->names[pack]);
    return 0;
}

static int write_pairs(deduping *d, leat__csv_out *csv, leat_pack **packs, leat_error *err)
{
    static const char *const head[] = {"key_a", "pack_a", "key_b", "pack_b", "similarity", "verdict"};
    for (size_t i = 0; i < LEAT_COUNT(head); i++) leat__csv_out_text(csv, head[i]);
    LEAT_TRY(leat__csv_out_line(csv, err));
    for (uint64_t i = 0; i < d->pairs.count; i++) {
        const leat__image_pair *p = &d->pairs.pair[i];
        if (p->probable && !d->opts->list_probable) continue;
        LEAT_TRY(put_key(d, csv, packs, p->a, err));
        LEAT_TRY(put_key(d, csv, packs, p->b, err));
        leat__csv_out_number(csv, p->similarity);
        leat__csv_out_text(csv, p->probable ? "probable" : "duplicate");
        LEAT_TRY(leat__csv_out_line(csv, err));
    }
    return leat__csv_out_finish(csv, err);
}

/* Writes the pairs, the most similar first. */
static int write_csv(deduping *d, leat_error *err)
{
    leat__csv_out csv;
    int rc = 0;
    if (!d->opts->csv) return 0;
    leat_pack **packs = LEAT_NEW_ARRAY(CURATE, leat_pack *, d->rows.packs);
    if (!packs) return leat__fail_nomem(err, d->rows.packs * sizeof *packs, "packs");
    for (uint32_t i = 0; i < d->rows.packs && rc == 0; i++)
        rc = leat__image_columns_pack(&packs[i], d->columns[i],
                                      LEAT_MAX(LEAT__COLUMNS_CACHE / d->rows.packs, 1), err);
    if (d->pairs.count > 0)
        qsort(d->pairs.pair, (size_t)d->pairs.count, sizeof *d->pairs.pair, by_similarity);
    if (rc == 0) rc = leat__csv_out_open(&csv, d->opts->csv, CSV_HEAD, err);
    if (rc == 0) {
        rc = write_pairs(d, &csv, packs, err);
        leat__csv_out_close(&csv);
    }
    for (uint32_t i = 0; i < d->rows.packs; i++) leat_pack_close(&packs[i]);
    leat__free(packs);
    return rc;
}

/* ---- the run ---- */

/* Returns the given memory, or half of the available one. */
static int find_memory(uint64_t given, uint64_t *memory, leat_error *err)
{
    leat_budget *budget = NULL;
    leat_budget_stats stats;
    LEAT_TRY(leat_budget_open(&budget, given, err));
    leat_budget_read(budget, &stats);
    *memory = stats.limit;
    leat_budget_close(&budget);
    return 0;
}

static int name_spill(deduping *d, leat_error *err)
{
    const size_t size = strlen(d->opts->output) + sizeof ".spill";
    d->spill = leat__alloc(LEAT__MEM_CURATE, size);
    if (!d->spill) return leat__fail_nomem(err, size, "a path");
    snprintf(d->spill, size, "%s.spill", d->opts->output);
    return 0;
}

/* Hashes everything that the pairs depend on. */
static int make_key(deduping *d, leat_error *err)
{
    const leat_dedup_images_opts *o = d->opts;
    const uint64_t numbers[] = {LEAT_VERSION_NUMBER,
                                o->input_count,
                                o->orientations,
                                o->windows != 0,
                                o->across ? 2 : 0 /* 1 was a search in one direction */,
                                3 /* 3 since images that clearly differ are not aligned */};
    const double limits[] = {o->threshold, o->probable};
    leat__hasher *h = leat__hasher_open(0);
    int rc = 0;
    if (!h) return leat__fail_nomem(err, 0, "a hash");
    leat__hasher_update(h, numbers, sizeof numbers);
    leat__hasher_update(h, limits, sizeof limits);
    for (uint32_t i = 0; i < o->input_count && rc == 0; i++) {
        leat_pack *pack = NULL;
        leat_pack_info info = {.struct_size = sizeof info};
        rc = leat_pack_open(&pack, d->columns[i], NULL, err);
        if (rc != 0) break;
        (void)leat_pack_info_read(pack, &info, sizeof info);
        leat__hasher_update(h, &info.fingerprint, sizeof info.fingerprint);
        leat__hasher_update(h, &info.samples, sizeof info.samples);
        leat_pack_close(&pack);
    }
    d->saved.key = leat__hasher_value128(h);
    leat__hasher_close(&h);
    return rc;
}

static bool is_stopped(void *cookie)
{
    const deduping *d = cookie;
    return tell(cookie, 0, d->rows.count, 0) != 0;
}

static int search(deduping *d, leat_error *err)
{
    leat__dedup_search s = {.opts = d->opts,
                            .columns = d->sorted,
                            .rows = &d->rows,
                            .pairs = &d->pairs,
                            .saved = &d->saved,
                            .tell = tell,
                            .cookie = d};
    LEAT_TRY(leat__saved_open(&d->saved, d->opts->output, err));
    LEAT_TRY(make_key(d, err));
    int rc = leat__dedup_search_run(&s, err);
    d->stats->candidates = s.candidates;
    d->stats->resumed = s.from;
    leat__dedup_entries_reset(&d->rows.entry); /* frees memory for writing */
    return rc == 0 ? leat__dedup_order_restore(&d->rows, &d->pairs, d->order, err) : rc;
}

/* Finds the order in which the inputs are searched. It does not depend on the order given. */
static int sort_columns(deduping *d, leat_error *err)
{
    const uint32_t n = d->opts->input_count;
    d->order = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    d->sorted = LEAT_NEW_ARRAY(CURATE, const char *, n);
    if (!d->order || !d->sorted) return leat__fail_nomem(err, n * sizeof *d->sorted, "paths");
    LEAT_TRY(leat__dedup_order_find((const char *const *)d->columns, n, d->order, err));
    for (uint32_t i = 0; i < n; i++) d->sorted[i] = d->columns[d->order[i]];
    return 0;
}

static int run(deduping *d, leat_error *err)
{
    const leat_dedup_images_opts *o = d->opts;
    LEAT_TRY(name_spill(d, err));
    LEAT_TRY(create_pack(d, err));
    leat__dedup_blocks_forget(d->spill);
    LEAT_TRY(refuse_memory(d, err));
    LEAT_TRY(open_columns(d, err));
    LEAT_TRY(sort_columns(d, err));
    uint64_t memory;
    LEAT_TRY(find_memory(o->memory, &memory, err));
    const leat__dedup_rows_opts rows = {.paths = d->sorted,
                                        .count = o->input_count,
                                        .orientations = o->orientations,
                                        .windows = o->windows != 0,
                                        .memory = memory,
                                        .spill = d->spill,
                                        .stop = is_stopped,
                                        .cookie = d};
    LEAT_TRY(leat__dedup_rows_read(&d->rows, &rows, err));
    d->stats->unreadable = d->rows.unreadable;
    d->stats->plan_memory = d->rows.memory;
    d->stats->in_memory = d->rows.spill == NULL;
    LEAT_TRY(search(d, err));
    LEAT_TRY(number_clusters(d, err));
    LEAT_TRY(write_rows(d, err));
    LEAT_TRY(write_csv(d, err)); /* last: sorts the pairs in another order */
    leat_packer_stats ps;
    LEAT_TRY(leat_packer_finish(d->packer, &ps, err));
    return leat__saved_drop(&d->saved, err);
}

static void remove_columns(const char *path)
{
    leat__saved mark;
    (void)!leat__path_unlink(path, NULL);
    if (leat__saved_open(&mark, path, NULL) != 0) return;
    (void)!leat__saved_drop(&mark, NULL);
    leat__saved_close(&mark);
}

static void tear_down(deduping *d, int rc)
{
    const bool mine = d->packer != NULL;
    leat_packer_close(&d->packer);
    if (rc != 0 && mine) (void)!leat_packer_discard(d->opts->output, NULL);
    for (uint32_t i = 0; d->columns && d->made && i < d->opts->input_count; i++) {
        if (d->made[i] && d->columns[i] && rc != LEAT_ECANCELED) remove_columns(d->columns[i]);
        leat__free(d->columns[i]);
    }
    for (uint32_t i = 0; d->names && i < d->opts->input_count; i++) leat__free(d->names[i]);
    leat__free(d->columns);
    leat__free(d->names);
    leat__free(d->made);
    leat__free(d->order);
    leat__free(d->sorted);
    leat__dedup_rows_reset(&d->rows);
    leat__saved_close(&d->saved);
    leat__free(d->spill);
    leat__free(d->pairs.pair);
    leat__free(d->kept);
    leat__free(d->best);
    leat__free(d->cluster);
}

/* Sets *unfinished when a run was killed before it gave its result a name; its CSV file may already
 * be named. */
static int is_unfinished(const char *output, bool *unfinished, leat_error *err)
{
    bool state = false, there = false;
    leat__buf name;
    leat__buf_init(&name, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&name, "%s.state", output);
    int rc = leat__buf_status(&name) == 0 ? 0 : leat__fail_nomem(err, name.len, "a path");
    if (rc == 0) rc = leat__path_exists(leat__buf_str(&name), &state, err);
    if (rc == 0) rc = leat__path_exists(output, &there, err);
    leat__buf_reset(&name);
    *unfinished = state && !there;
    return rc;
}

static int check_opts(leat_dedup_images_opts *o, leat_error *err)
{
    bool unfinished = false;
    if (!o->output || !o->output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (leat__path_remote(o->output))
        return leat__fail(err, LEAT_EINVAL, "%s: results are written to a local file", o->output);
    if (o->input_count == 0) return leat__fail(err, LEAT_EINVAL, "no input was named");
    if (o->csv_pack && o->input_count > 1)
        return leat__fail(err, LEAT_EINVAL, "csv_pack is for one input, not for %u", o->input_count);
    LEAT_TRY(leat__pack_spare_result(o->output, o->csv, err));
    for (uint32_t i = 0; i < o->input_count; i++) {
        LEAT_TRY(leat__pack_spare_input(o->output, o->inputs[i], err));
        LEAT_TRY(leat__pack_spare_input(o->csv, o->inputs[i], err));
    }
    LEAT_TRY(is_unfinished(o->output, &unfinished, err));
    LEAT_TRY(leat__result_file_check(o->csv, CSV_HEAD, o->replace != 0 || unfinished, false, err));
    if (o->orientations == 0) o->orientations = 2;
    if (o->orientations != 1 && o->orientations != 2 && o->orientations != 8)
        return leat__fail(err, LEAT_EINVAL, "`orientations`: %u is not 1, 2 or 8", o->orientations);
    if (o->keep > LEAT_KEEP_IMAGE_PACK)
        return leat__fail(err, LEAT_EINVAL, "`keep`: %u is not a rule", o->keep);
    if (o->threshold == 0) o->threshold = THRESHOLD;
    if (o->probable == 0) o->probable = LEAT_MIN(PROBABLE, o->threshold);
    if (!(o->threshold > 0 && o->threshold <= 1 && o->probable > 0 && o->probable <= o->threshold))
        return leat__fail(err, LEAT_EINVAL,
                          "`threshold`: %g and probable: %g are not 0 < probable <= threshold <= 1",
                          o->threshold, o->probable);
    if (o->across && o->input_count < 2)
        return leat__fail(err, LEAT_EINVAL, "`across`: needs two inputs or more");
    return 0;
}

int leat_dedup_images(const leat_dedup_images_opts *opts, leat_dedup_images_stats *stats, leat_error *err)
{
    leat_dedup_images_opts o;
    leat_dedup_images_stats own = {.struct_size = sizeof own};
    if (!opts || opts->struct_size < sizeof o.struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&o, 0, sizeof o);
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    LEAT_TRY(check_opts(&o, err));
    const uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    deduping d = {.opts = &o, .stats = &own};
    int rc = run(&d, err);
    tear_down(&d, rc);
    own.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    own.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (stats) (void)!leat__sized_copy(stats, &own, sizeof own);
    return rc;
}

void leat__dedup_images_json(const leat_dedup_images_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "samples", st->samples);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "removed", st->removed);
    leat__json_ku64(&j, "clusters", st->clusters);
    leat__json_ku64(&j, "pairs", st->pairs);
    leat__json_ku64(&j, "exact", st->exact);
    leat__json_ku64(&j, "probable", st->probable);
    leat__json_ku64(&j, "candidates", st->candidates);
    leat__json_ku64(&j, "unreadable", st->unreadable);
    leat__json_ku64(&j, "resumed", st->resumed);
    leat__json_ku64(&j, "plan_memory", st->plan_memory);
    leat__json_kbool(&j, "in_memory", st->in_memory != 0);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_end(&j);
}
