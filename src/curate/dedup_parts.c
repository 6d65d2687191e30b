/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication in parts: the phases of dedup.h, each as tasks over files of a shared work folder.
 *
 *   SKETCH   a part of the input -> bands-00003 (its records by band and partition, with their
 *            lengths in the marker), side0-00003 … side4-00003; documents are numbered from 0
 *   GATHER   side files of all parts -> side-0 … side-4, equal to those of a single process
 *   GROUP    the records of some units of all parts -> edges-00007
 *   RESOLVE  all edges -> decisions, places.json, state.json
 *   WRITE    a part of the input -> its kept documents, clusters and bad lines. For uncompressed
 *            output, the offset of each document follows from the decisions: it is written there
 *
 * Documents are numbered across parts in order. A unit thus has the same records in the same order
 * as in a single process.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup_index.h"
#include "curate/dedup_places.h"
#include "curate/sealed.h"
#include "io/file.h"

#define BLOCK 4096u

/* The markers of all sketched parts. */
typedef struct sketched {
    leat__dedup *d;
    leat__dedup_state *st;
    uint64_t *base; /* number of documents before each part */
    char (*path)[4096];
} sketched;

/* Writes the path of the folder for the files of this task to `out`. */
static const char *temp_folder(const leat__part *p, char *out)
{
    snprintf(out, 4096, "%s/task-%s", p->work, p->token);
    return out;
}

static uint64_t sum(const uint64_t *list, uint64_t n)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++) total += list[i];
    return total;
}

/* Joins FOLDER/NAME-0, NAME-1, … into one file. */
static int join_files(const leat__part *p, const char *folder, const char *name, const uint64_t *length,
                      uint32_t n, const char *to, leat_error *err)
{
    char(*path)[4096] = leat__alloc_array(LEAT__MEM_CURATE, n + 1, sizeof *path);
    leat__part_piece *piece = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof *piece);
    int rc = path && piece ? 0 : leat__fail_nomem(err, n * sizeof *path, "paths");
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s-%u", folder, name, i);
        piece[i] = (leat__part_piece){.path = path[i], .len = length[i]};
    }
    if (rc == 0) rc = leat__part_copy(p, to, piece, n, err);
    leat__free(path);
    leat__free(piece);
    return rc;
}

/* ---- begin ---- */

static int exists(const leat__dedup *d, const char *name, bool *there, leat_error *err)
{
    char path[4096];
    return leat__path_exists(leat__dedup_path(d, name, path), there, err);
}

/* Prepares the work folder, or fails when it must not be replaced. */
static int begin_folder(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    bool plan, state;
    LEAT_TRY(leat__path_mkdir(o->output, err));
    LEAT_TRY(exists(d, LEAT__PART_PLAN, &plan, err));
    LEAT_TRY(exists(d, LEAT__WORK_STATE, &state, err));
    bool again = o->replace || (plan && o->resume);
    if (state && !plan && !o->replace)
        return leat__fail(err, LEAT_EEXIST,
                          "%s: has an interrupted run on one machine (resume it there, or use `force`)",
                          o->output);
    if (plan && !again)
        return leat__fail(err, LEAT_EEXIST,
                          "%s: has an interrupted run (use `resume` to resume it, `force` to start over)",
                          o->output);
    if (!again) LEAT_TRY(leat__output_unused(o->output, err));
    else if (!plan && !state) LEAT_TRY(leat__output_ours(o->output, err));
    LEAT_TRY(leat__dedup_plan(d, err));
    LEAT_TRY(leat__dedup_check_disk(d, err));
    if (!o->resume) LEAT_TRY(leat__part_remove(d->work, err));
    LEAT_TRY(leat__output_sweep(o->output, err));
    return leat__path_mkdir(d->work, err);
}

static int begin(leat__dedup *d, leat__buf *json, leat_error *err)
{
    char path[4096];
    leat__json j;
    leat__buf stats;
    LEAT_TRY(begin_folder(d, err));
    leat__buf_init(&stats, LEAT__MEM_CURATE, 1u << 20);
    leat__dedup_json(d->stats, &stats); /* includes the plan */
    int rc = leat__part_mark(d->part, leat__dedup_path(d, "begin.json", path), &stats, err);
    leat__buf_reset(&stats);
    if (rc != 0) return rc;
    leat__json_init(&j, json, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "memory", d->memory);
    leat__json_ku64(&j, "max_line", d->names.max_line);
    leat__json_kstr(&j, "settings", d->settings);
    leat__json_ku64(&j, "bands", d->bands);
    leat__json_ku64(&j, "partitions", d->st.parts);
    leat__json_ku64(&j, "against", d->against);
    leat__json_key(&j, "files");
    leat__part_files(&d->files, &j);
    leat__json_key(&j, "heads");
    leat__json_array(&j);
    for (uint32_t i = 0; i < d->files.count; i++) leat__json_u64(&j, d->input_head[i]);
    leat__json_end(&j);
    leat__json_end(&j);
    return json->status == 0 ? 0 : leat__fail_nomem(err, json->len, "the list of files");
}

/* ---- sketch ---- */

/* Moves the results of a sketch task out of its folder, the marker last. */
static int publish_sketch(leat__dedup *d, const char *folder, leat_error *err)
{
    const leat__part *p = d->part;
    char from[4096], to[4096], kind[16];
    leat__buf stats;
    LEAT_TRY(join_files(p, folder, "band", d->st.band_length, d->st.band_files,
                        leat__part_path(p, "bands", p->number, "", to), err));
    for (unsigned k = 0; k < LEAT__SIDES; k++) {
        snprintf(from, sizeof from, "%.4000s/side-%u", folder, k);
        snprintf(kind, sizeof kind, "side%u", k);
        LEAT_TRY(leat__path_rename(from, leat__part_path(p, kind, p->number, "", to), err));
    }
    leat__buf_init(&stats, LEAT__MEM_CURATE, 1u << 20);
    leat__text_meter_load(&d->meter, &d->stats->load);
    d->stats->seconds = (double)d->meter.elapsed_ns / (double)LEAT_NS_PER_S;
    leat__dedup_json(d->stats, &stats);
    int rc = leat__part_mark(p, leat__part_path(p, "load", p->number, ".json", to), &stats, err);
    leat__buf_reset(&stats);
    if (rc != 0) return rc;
    snprintf(from, sizeof from, "%.4000s/state.json", folder);
    return leat__path_rename(from, leat__part_path(p, "sketch", p->number, ".json", to), err);
}

static int sketch(leat__dedup *d, leat_error *err)
{
    char folder[4096];
    bool done;
    LEAT_TRY(leat__part_done(d->part, "sketch", &done, err));
    if (done) return 0;
    LEAT_TRY(leat__path_mkdir(temp_folder(d->part, folder), err));
    leat__free(d->work);
    d->work = leat__strdup(LEAT__MEM_CURATE, folder);
    if (!d->work) return leat__fail_nomem(err, sizeof folder, "a path");
    d->st.parts = d->part->partitions;
    int rc = leat__dedup_sketch(d, err);
    if (rc == 0) rc = publish_sketch(d, folder, err);
    int removed = leat__part_remove(folder, rc == 0 ? err : NULL);
    return rc != 0 ? rc : removed;
}

/* ---- what all parts have ---- */

static void close_sketched(sketched *s)
{
    for (uint32_t i = 0; s->st && i < s->d->part->parts; i++) leat__dedup_state_reset(&s->st[i]);
    leat__free(s->st);
    leat__free(s->base);
    leat__free(s->path);
}

static int read_sketched(sketched *s, leat_error *err)
{
    const leat__part *p = s->d->part;
    const uint32_t n = p->parts;
    uint64_t at = 0;
    s->st = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof *s->st);
    s->base = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof *s->base);
    s->path = leat__alloc_array(LEAT__MEM_CURATE, n + 1, sizeof *s->path);
    if (!s->st || !s->base || !s->path) return leat__fail_nomem(err, n * sizeof *s->path, "parts");
    for (uint32_t i = 0; i < n; i++) {
        leat__part_path(p, "sketch", i, ".json", s->path[i]);
        LEAT_TRY(leat__dedup_state_read(s->d, s->path[i], &s->st[i], err));
        if (s->st[i].band_files != s->d->bands * p->partitions)
            return leat__fail(err, LEAT_EDATA, "%s: has %u files of bands, expected %u", s->path[i],
                              s->st[i].band_files, s->d->bands * p->partitions);
        leat__part_path(p, "bands", i, "", s->path[i]);
        s->base[i] = at;
        at += s->st[i].document;
    }
    s->base[n] = at;
    if (at >= UINT32_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %u lines: deduplicate in several runs", UINT32_MAX);
    return 0;
}

/* Sets the state that a single process has after sketching all parts. */
static int sum_sketched(const sketched *s, leat_error *err)
{
    leat__dedup_state *st = &s->d->st;
    st->parts = s->d->part->partitions;
    st->band_files = s->d->bands * st->parts;
    LEAT_TRY(leat__dedup_state_bands(st, st->band_files, err));
    for (uint32_t i = 0; i < s->d->part->parts; i++) {
        const leat__dedup_state *part = &s->st[i];
        for (uint32_t k = 0; k < st->band_files; k++) st->band_length[k] += part->band_length[k];
        for (uint32_t k = 0; k < LEAT__SIDES; k++) st->side_length[k] += part->side_length[k];
        st->document += part->document;
        st->ids_bytes += part->ids_bytes;
        st->documents += part->documents;
        st->text_bytes += part->text_bytes;
        st->lone_surrogates += part->lone_surrogates;
        st->empty += part->empty;
        st->unscored += part->unscored;
    }
    st->disk_peak = sum(st->band_length, st->band_files) + sum(st->side_length, LEAT__SIDE_BYTES);
    return 0;
}

/* ---- gather ---- */

static int gather(leat__dedup *d, const sketched *s, leat_error *err)
{
    const leat__part *p = d->part;
    char name[32], to[4096], kind[16];
    bool there;
    uint64_t ids = 0;
    if (p->number >= LEAT__SIDES)
        return leat__fail(err, LEAT_EINVAL, "side file %u does not exist", p->number);
    snprintf(name, sizeof name, "side-%u", p->number);
    snprintf(kind, sizeof kind, "side%u", p->number);
    LEAT_TRY(exists(d, name, &there, err));
    if (there) return 0;
    leat__part_piece *piece = leat__zalloc_array(LEAT__MEM_CURATE, p->parts + 1, sizeof *piece);
    if (!piece) return leat__fail_nomem(err, p->parts * sizeof *piece, "pieces");
    for (uint32_t i = 0; i < p->parts; i++) {
        piece[i] = (leat__part_piece){.path = leat__part_path(p, kind, i, "", s->path[i]),
                                      .len = s->st[i].side_length[p->number],
                                      .add = p->number == LEAT__SIDE_ENDS ? ids : 0};
        ids += s->st[i].ids_bytes;
    }
    int rc = leat__part_copy(p, leat__dedup_path(d, name, to), piece, p->parts, err);
    leat__free(piece);
    return rc;
}

/* ---- group ---- */

static void fill_unit(void *cookie, uint32_t unit, leat__band_segment *seg)
{
    const sketched *s = cookie;
    for (uint32_t i = 0; i < s->d->part->parts; i++)
        seg[i] = (leat__band_segment){.path = s->path[i],
                                      .offset = sum(s->st[i].band_length, unit),
                                      .bytes = s->st[i].band_length[unit],
                                      .base = (uint32_t)s->base[i]};
}

static int publish_edges(leat__dedup *d, const char *folder, leat_error *err)
{
    const leat__part *p = d->part;
    char to[4096];
    leat__buf json;
    LEAT_TRY(join_files(p, folder, "edge", d->st.edge_length, d->st.edge_files,
                        leat__part_path(p, "edges", p->number, "", to), err));
    leat__buf_init(&json, LEAT__MEM_CURATE, 64u << 20);
    leat__dedup_state_json(d, &json);
    int rc = leat__part_mark(p, leat__part_path(p, "edges", p->number, ".json", to), &json, err);
    leat__buf_reset(&json);
    return rc;
}

static int group(leat__dedup *d, sketched *s, leat_error *err)
{
    const leat__part *p = d->part;
    char folder[4096];
    bool done;
    LEAT_TRY(leat__part_done(p, "edges", &done, err));
    if (done) return 0;
    if (p->from > p->to || p->to > d->bands * p->partitions)
        return leat__fail(err, LEAT_EINVAL, "units %u to %u of %u do not exist", p->from, p->to,
                          d->bands * p->partitions);
    LEAT_TRY(sum_sketched(s, err));
    LEAT_TRY(leat__dedup_rank(d, err));
    LEAT_TRY(leat__path_mkdir(temp_folder(p, folder), err));
    int rc = leat__dedup_group_units(d, folder, p->parts, fill_unit, s, err);
    if (rc == 0) rc = publish_edges(d, folder, err);
    int removed = leat__part_remove(folder, rc == 0 ? err : NULL);
    return rc != 0 ? rc : removed;
}

/* ---- resolve ---- */

/* Sums the edges of all groups, and joins their files part by part. */
static int gather_edges(leat__dedup *d, leat__dedup_state *groups, leat__part_piece *piece,
                        char (*path)[4096], leat_error *err)
{
    const leat__part *p = d->part;
    leat__dedup_state *st = &d->st;
    char to[4096], name[32];
    for (uint32_t g = 0; g < p->groups; g++) {
        leat__part_path(p, "edges", g, ".json", path[g]);
        LEAT_TRY(leat__dedup_state_read(d, path[g], &groups[g], err));
        if (groups[g].edge_files != groups[0].edge_files)
            return leat__fail(err, LEAT_EDATA, "%s: tasks had different memory limits", path[g]);
        leat__part_path(p, "edges", g, "", path[g]);
        st->candidates += groups[g].candidates;
        st->verified += groups[g].verified;
        st->crowded += groups[g].crowded;
        piece[g] = (leat__part_piece){.path = path[g]};
    }
    st->edge_parts = st->edge_files = groups[0].edge_files;
    LEAT_TRY(leat__dedup_state_edges(st, st->edge_files, err));
    for (uint32_t e = 0; e < st->edge_files; e++) {
        st->edge_length[e] = 0;
        for (uint32_t g = 0; g < p->groups; g++) {
            piece[g].len = groups[g].edge_length[e];
            st->edge_length[e] += piece[g].len;
        }
        snprintf(name, sizeof name, "edge-%u", e);
        LEAT_TRY(leat__part_copy(p, leat__dedup_path(d, name, to), piece, p->groups, err));
        for (uint32_t g = 0; g < p->groups; g++) piece[g].from += piece[g].len;
    }
    return 0;
}

static int resolve(leat__dedup *d, const sketched *s, leat_error *err)
{
    const uint32_t n = d->part->groups;
    bool done;
    LEAT_TRY(exists(d, LEAT__WORK_STATE, &done, err));
    if (done) return 0;
    if (n == 0) return leat__fail(err, LEAT_EINVAL, "no groups were named");
    LEAT_TRY(sum_sketched(s, err));
    leat__dedup_state *groups = leat__zalloc_array(LEAT__MEM_CURATE, n, sizeof *groups);
    leat__part_piece *piece = leat__zalloc_array(LEAT__MEM_CURATE, n, sizeof *piece);
    char(*path)[4096] = leat__alloc_array(LEAT__MEM_CURATE, n, sizeof *path);
    int rc = groups && piece && path ? gather_edges(d, groups, piece, path, err)
                                     : leat__fail_nomem(err, n * sizeof *path, "groups");
    for (uint32_t g = 0; groups && g < n; g++) leat__dedup_state_reset(&groups[g]);
    leat__free(groups);
    leat__free(piece);
    leat__free(path);
    if (rc == 0) rc = leat__dedup_rank(d, err);
    if (rc == 0) rc = leat__dedup_resolve(d, err);
    if (rc == 0) rc = leat__dedup_places_write(d, s->base, err);
    return rc == 0 ? leat__dedup_save(d, err) : rc;
}

/* ---- write, join, end ---- */

static int load_resolved(leat__dedup *d, leat_error *err)
{
    char path[4096];
    return leat__dedup_state_read(d, leat__dedup_path(d, LEAT__WORK_STATE, path), &d->st, err);
}

static int write_part(leat__dedup *d, leat_error *err)
{
    char path[4096];
    bool done;
    leat__dedup_places p;
    leat__part_place place;
    leat__dedup_state st = {0};
    LEAT_TRY(leat__part_done(d->part, "part", &done, err));
    if (done) return 0;
    if (d->part->number >= d->part->parts)
        return leat__fail(err, LEAT_EINVAL, "part %u does not exist", d->part->number);
    leat__dedup_places_init(&p);
    int rc = leat__dedup_places_part(d, &p, &place, err);
    leat__part_path(d->part, "sketch", d->part->number, ".json", path);
    if (rc == 0) rc = leat__dedup_state_read(d, path, &st, err);
    if (rc == 0) rc = leat__dedup_state_inputs(&st, &d->files, err);
    if (rc == 0) rc = load_resolved(d, err);
    if (rc == 0) rc = leat__dedup_write(d, err);
    d->place = NULL;
    leat__dedup_state_reset(&st);
    leat__dedup_places_reset(&p);
    return rc;
}

static uint64_t number(const json_t *stats, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(stats, key));
}

static void add_part(void *cookie, const json_t *stats)
{
    leat_dedup_stats *st = cookie;
    st->kept += number(stats, "kept");
    st->removed += number(stats, "removed");
    st->below_threshold += number(stats, "below_threshold");
    st->bad += number(stats, "bad");
    st->removed_against += number(stats, "removed_against");
}

/* Counts the kept documents for which another one was removed. */
static int count_clusters(leat__dedup *d, leat__file *decisions, leat_error *err)
{
    leat__dedup_decision block[BLOCK];
    uint64_t n = d->st.document;
    uint8_t *seen = leat__zalloc(LEAT__MEM_CURATE, n / 8 + 1);
    int rc = seen ? 0 : leat__fail_nomem(err, n / 8, "clusters");
    for (uint64_t at = 0; at < n && rc == 0; at += BLOCK) {
        uint64_t take = LEAT_MIN(BLOCK, n - at);
        rc = leat__file_pread(decisions, block, take * sizeof *block, at * sizeof *block, err);
        for (uint64_t i = 0; i < take && rc == 0; i++) {
            uint32_t k = block[i].kept_for;
            if (k == at + i || k >= n || seen[k / 8] >> k % 8 & 1) continue;
            seen[k / 8] |= (uint8_t)(1u << k % 8);
            d->stats->clusters++;
        }
    }
    leat__free(seen);
    return rc;
}

/* Counts the clusters and writes the report page, from the decisions. */
static int count_and_report(leat__dedup *d, leat_error *err)
{
    char path[4096];
    leat__dedup_ids ids = {0};
    leat__file *decisions = NULL;
    int rc;
    LEAT_GO(rc, out,
            leat__file_open(&decisions, leat__dedup_path(d, "decisions", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_open(&ids.ids, leat__dedup_path(d, "side-1", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_open(&ids.ends, leat__dedup_path(d, "side-2", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, count_clusters(d, decisions, err));
    if (d->opts->report) rc = leat__dedup_report(d, decisions, &ids, err);
out:
    leat__file_close(&decisions);
    leat__file_close(&ids.ids);
    leat__file_close(&ids.ends);
    return rc;
}

/* Adds the stored stats: the plan, the kind of input, and the load of the sketch tasks. */
static int add_stored(leat__dedup *d, leat_error *err)
{
    leat_dedup_stats *st = d->stats;
    char path[4096];
    json_t *stats = NULL;
    LEAT_TRY(leat__sealed_load(leat__dedup_path(d, "begin.json", path), 1u << 20, &stats, err));
    st->plan_documents = number(stats, "plan_documents");
    st->plan_memory = number(stats, "plan_memory");
    st->plan_disk = number(stats, "plan_disk");
    st->files = number(stats, "files");
    st->bytes_in = number(stats, "bytes_in");
    json_decref(stats);
    for (uint32_t i = 0; i < d->part->parts; i++) {
        leat__part_path(d->part, "load", i, ".json", path);
        LEAT_TRY(leat__sealed_load(path, 1u << 20, &stats, err));
        leat__part_load(stats, &d->meter);
        st->budget_peak_bytes = LEAT_MAX(st->budget_peak_bytes, number(stats, "budget_peak_bytes"));
        json_decref(stats);
    }
    return 0;
}

static int end(leat__dedup *d, leat__join *j, leat_error *err)
{
    leat_dedup_stats *st = d->stats;
    char path[4096];
    LEAT_TRY(load_resolved(d, err));
    LEAT_TRY(leat__join_open(j, add_part, st, err));
    LEAT_TRY(leat__dedup_refuse_empty(d, err));
    LEAT_TRY(leat__output_clear(d->opts->output, err));
    LEAT_TRY(leat__join_end(j, err));
    if (d->opts->index) LEAT_TRY(leat__dedup_index_write(d, err));
    LEAT_TRY(count_and_report(d, err));
    d->meter = j->meter;
    LEAT_TRY(add_stored(d, err));
    leat__dedup_copy_state(d);
    st->shards = j->bytes > 0 ? j->shards : 0;
    st->bytes_out = j->bytes;
    st->seconds = d->part->seconds;
    st->cpu_seconds = d->part->cpu_seconds;
    LEAT_TRY(leat__dedup_write_report(d, err));
    LEAT_TRY(leat__path_unlink(leat__dedup_path(d, LEAT__PART_PLAN, path), err)); /* nothing left to resume */
    return leat__part_remove(d->work, err);
}

static int join_step(leat__dedup *d, leat__buf *json, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    leat__join j = {.part = d->part,
                    .output = o->output,
                    .names = {"kept", "clusters", "bad"},
                    .shard_bytes = leat__dedup_shard_bytes(d),
                    .compress = (leat__compress)o->compress,
                    .first = d->against > 0};
    leat__dedup_places p;
    leat__dedup_places_init(&p);
    int rc = leat__dedup_places_read(d, &p, err);
    j.shards = p.shards.len / 8;
    if (rc == 0 && j.shards > 0) j.shard_length = (const uint64_t *)(const void *)p.shards.data;
    if (rc == 0 && d->part->step == LEAT__PART_JOIN) {
        rc = leat__join_open(&j, add_part, d->stats, err);
        if (rc == 0) rc = leat__join_list(&j, json, err);
    } else if (rc == 0) {
        rc = end(d, &j, err);
        if (rc == 0) leat__dedup_json(d->stats, json);
    }
    leat__join_close(&j);
    leat__dedup_places_reset(&p);
    return rc;
}

int leat__dedup_step(leat__dedup *d, leat__buf *json, leat_error *err)
{
    sketched s = {.d = d};
    int rc;
    switch (d->part->step) {
    case LEAT__PART_BEGIN: return begin(d, json, err);
    case LEAT__PART_SKETCH: return sketch(d, err);
    case LEAT__PART_WRITE: return write_part(d, err);
    case LEAT__PART_JOIN:
    case LEAT__PART_END: return join_step(d, json, err);
    default: break;
    }
    rc = read_sketched(&s, err);
    if (rc == 0) switch (d->part->step) {
        case LEAT__PART_GATHER: rc = gather(d, &s, err); break;
        case LEAT__PART_GROUP: rc = group(d, &s, err); break;
        default: rc = resolve(d, &s, err); break;
        }
    close_sketched(&s);
    return rc;
}
