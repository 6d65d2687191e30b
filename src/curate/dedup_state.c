/* SPDX-License-Identifier: Apache-2.0
 *
 * The saved state of a run: OUTPUT/.leat-work/state.json, replaced atomically. It contains a hash
 * of the inputs and of all options that affect the result, so that a run is not resumed with
 * different ones.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/dedup.h"
#include "curate/sealed.h"

/* 11: components by leaders; 10: one file of removed pieces; 9: without input_found; 8: without a checksum */
#define STATE_VERSION 12
#define HEAD (64u << 10) /* bytes of each input that are hashed */

/* The single numbers of the state; this table is used for loading and for saving. */
/* clang-format off */
#define NUMBERS(X)                                                                                      \
    X(phase)                                                                                            \
    X(iteration) X(band) X(part) X(parts) X(edge_parts) X(bands_at_once) X(file) X(offset) X(line)      \
        X(document) X(ids_bytes) X(documents) X(text_bytes) X(lone_surrogates) X(empty) X(unscored)     \
            X(candidates) X(verified) X(crowded) X(disk_peak) X(pieces) X(gaps) X(dropped)              \
                X(decisions_sum) X(removed_file)
/* clang-format on */

const char *leat__dedup_path(const leat__dedup *d, const char *name, char *out)
{
    snprintf(out, 4096, "%s/%s", d->work, name);
    return out;
}

const char *leat__dedup_removed_path(const leat__dedup *d, char *out)
{
    return leat__dedup_path(d, d->st.removed_file ? "removed-1" : "removed-0", out);
}

void leat__dedup_state_reset(leat__dedup_state *s)
{
    leat__free(s->band_length);
    leat__free(s->edge_length);
    leat__free(s->band_sum);
    leat__free(s->edge_sum);
    leat__free(s->input_sum);
    leat__free(s->input_first);
    leat__free(s->input_found);
    leat__free(s->input_stamp);
    memset(s, 0, sizeof *s);
}

static int two_lists(uint64_t **a, uint64_t **b, uint32_t n, leat_error *err)
{
    leat__free(*a);
    leat__free(*b);
    *a = LEAT_NEW_ARRAY(CURATE, uint64_t, n);
    *b = LEAT_NEW_ARRAY(CURATE, uint64_t, n);
    return *a && *b ? 0 : leat__fail_nomem(err, 2 * (size_t)n * 8, "lengths");
}

int leat__dedup_state_bands(leat__dedup_state *s, uint32_t files, leat_error *err)
{
    s->band_files = files;
    return two_lists(&s->band_length, &s->band_sum, files, err);
}

int leat__dedup_state_edges(leat__dedup_state *s, uint32_t files, leat_error *err)
{
    s->edge_files = files;
    return two_lists(&s->edge_length, &s->edge_sum, files, err);
}

int leat__dedup_state_inputs(const leat__dedup_state *s, leat__text_files *files, leat_error *err)
{
    size_t bytes = files->count * sizeof(uint64_t);
    if (s->input_files != files->count)
        return leat__fail(err, LEAT_EDATA, "the state has %u files, not %u (use `force` to start over)",
                          s->input_files, files->count);
    LEAT_TRY(leat__text_files_begin(files, false, err));
    memcpy(files->found, s->input_found, bytes);
    memcpy(files->stamp, s->input_stamp, bytes);
    if (s->iteration > 0) LEAT_TRY(leat__text_files_begin(files, true, err)); /* trust unchanged files */
    memcpy(files->sum, s->input_sum, bytes);
    memcpy(files->first, s->input_first, bytes);
    return 0;
}

void leat__dedup_state_mark(const leat__spill *s, uint64_t *length, uint64_t *sum)
{
    for (uint32_t i = 0; i < s->count; i++) {
        length[i] = s->length[i];
        sum[i] = leat__spill_sum(s, i);
    }
}

static void put_list(leat__json *j, const char *key, const uint64_t *values, uint32_t n)
{
    leat__json_key(j, key);
    leat__json_array(j);
    for (uint32_t i = 0; i < n; i++) leat__json_u64(j, values[i]);
    leat__json_end(j);
}

void leat__dedup_state_json(const leat__dedup *d, leat__buf *out)
{
    const leat__dedup_state *s = &d->st;
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "version", STATE_VERSION);
    leat__json_kstr(&j, "settings", d->settings);
#define PUT(name) leat__json_ku64(&j, #name, s->name);
    NUMBERS(PUT)
#undef PUT
    put_list(&j, "band_length", s->band_length, s->band_files);
    put_list(&j, "edge_length", s->edge_length, s->edge_files);
    put_list(&j, "side_length", s->side_length, LEAT__SIDES);
    put_list(&j, "band_sum", s->band_sum, s->band_sum ? s->band_files : 0);
    put_list(&j, "edge_sum", s->edge_sum, s->edge_sum ? s->edge_files : 0);
    put_list(&j, "side_sum", s->side_sum, LEAT__SIDES);
    put_list(&j, "input_sum", d->files.sum, d->files.sum ? d->files.count : 0);
    put_list(&j, "input_first", d->files.first, d->files.first ? d->files.count : 0);
    put_list(&j, "input_found", d->files.found, d->files.found ? d->files.count : 0);
    put_list(&j, "input_stamp", d->files.stamp, d->files.stamp ? d->files.count : 0);
    put_list(&j, "input_name", d->input_name, d->input_name ? d->files.count : 0);
    put_list(&j, "input_head", d->input_head, d->input_head ? d->files.count : 0);
    put_list(&j, "rule_counts", s->rule_counts, 2 * d->rules.count);
    leat__json_end(&j);
}

int leat__dedup_save(leat__dedup *d, leat_error *err)
{
    char path[4096];
    leat__buf buf;
    leat__buf_init(&buf, LEAT__MEM_CURATE, 64u << 20);
    leat__dedup_state_json(d, &buf);
    leat__sealed_end(&buf);
    int rc = buf.status == 0
                 ? leat__file_store(leat__dedup_path(d, LEAT__WORK_STATE, path), buf.data, buf.len, err)
                 : leat__fail_nomem(err, buf.len, "the state");
    leat__buf_reset(&buf);
    return rc;
}

static int take_list(const json_t *root, const char *key, uint64_t **values, uint32_t *n, leat_error *err)
{
    const json_t *list = json_object_get(root, key);
    size_t count = json_array_size(list);
    *n = (uint32_t)count;
    *values = NULL;
    if (count == 0) return 0;
    *values = LEAT_NEW_ARRAY(CURATE, uint64_t, count);
    if (!*values) return leat__fail_nomem(err, count * 8, "the state");
    for (size_t i = 0; i < count; i++) (*values)[i] = (uint64_t)json_integer_value(json_array_get(list, i));
    return 0;
}

/* Reads a list of exactly n numbers. */
static int take_numbers(const json_t *root, const char *key, uint64_t *values, uint32_t n, bool *sound,
                        leat_error *err)
{
    uint64_t *list = NULL;
    uint32_t count = 0;
    LEAT_TRY(take_list(root, key, &list, &count, err));
    if (list && count == n) memcpy(values, list, n * sizeof *list);
    *sound &= count == n;
    leat__free(list);
    return 0;
}

/* Reads the lists of lengths and checksums. Markers of a run in parts have no checksums of joined files. */
static int take_lists(const leat__dedup *d, leat__dedup_state *s, const json_t *root, bool *sound,
                      leat_error *err)
{
    uint32_t bands = 0, edges = 0, first = 0, found = 0, stamps = 0;
    LEAT_TRY(take_list(root, "band_length", &s->band_length, &s->band_files, err));
    LEAT_TRY(take_list(root, "edge_length", &s->edge_length, &s->edge_files, err));
    LEAT_TRY(take_list(root, "band_sum", &s->band_sum, &bands, err));
    LEAT_TRY(take_list(root, "edge_sum", &s->edge_sum, &edges, err));
    LEAT_TRY(take_list(root, "input_sum", &s->input_sum, &s->input_files, err));
    LEAT_TRY(take_list(root, "input_first", &s->input_first, &first, err));
    LEAT_TRY(take_list(root, "input_found", &s->input_found, &found, err));
    LEAT_TRY(take_list(root, "input_stamp", &s->input_stamp, &stamps, err));
    LEAT_TRY(take_numbers(root, "side_length", s->side_length, LEAT__SIDES, sound, err));
    LEAT_TRY(take_numbers(root, "side_sum", s->side_sum, LEAT__SIDES, sound, err));
    LEAT_TRY(take_numbers(root, "rule_counts", s->rule_counts, 2 * d->rules.count, sound, err));
    *sound &= (bands == 0 || bands == s->band_files) && (edges == 0 || edges == s->edge_files);
    *sound &= first == s->input_files && found == s->input_files && stamps == s->input_files;
    return 0;
}

/* Fails for a state with other settings. Names the first input that has changed, if the inputs have the same
 * paths. */
static int other_settings(const leat__dedup *d, const json_t *root, const char *path, leat_error *err)
{
    const json_t *names = json_object_get(root, "input_name"), *heads = json_object_get(root, "input_head");
    uint32_t n = d->files.count, changed = n;
    bool same = d->input_name && json_array_size(names) == n && json_array_size(heads) == n;
    for (uint32_t i = n; i-- > 0 && same;) {
        same = (uint64_t)json_integer_value(json_array_get(names, i)) == d->input_name[i];
        if ((uint64_t)json_integer_value(json_array_get(heads, i)) != d->input_head[i]) changed = i;
    }
    if (same && changed < n) return leat__text_files_changed(&d->files, changed, err);
    return leat__fail(err, LEAT_ESTATE,
                      "%s: the interrupted run had other inputs or options (use `force` to start over)",
                      path);
}

/* Loads the state from JSON. `sound`: the checksum of the file is right. */
static int take_state(leat__dedup *d, leat__dedup_state *s, const json_t *root, bool sound, const char *path,
                      leat_error *err)
{
    const char *settings = json_string_value(json_object_get(root, "settings"));
    if (json_integer_value(json_object_get(root, "version")) != STATE_VERSION || !settings)
        return leat__fail(err, LEAT_EFORMAT,
                          "%s: not a state of this version of leat (use `force` to start over)", path);
    if (!sound) return leat__sealed_damaged(path, err);
    if (!leat__str_eq(settings, d->settings)) return other_settings(d, root, path, err);
#define TAKE(name) s->name = (__typeof__(s->name))json_integer_value(json_object_get(root, #name));
    NUMBERS(TAKE)
#undef TAKE
    LEAT_TRY(take_lists(d, s, root, &sound, err));
    sound &= s->phase <= LEAT__PHASE_WRITE && s->parts > 0 && s->bands_at_once > 0 &&
             s->band_files % s->parts == 0 && s->edge_parts == s->edge_files &&
             s->edge_files <= LEAT__EDGE_PARTS_MAX && s->bands_at_once <= d->bands &&
             s->document < UINT32_MAX && s->iteration <= d->bands && s->removed_file <= 1;
    return sound ? 0 : leat__sealed_damaged(path, err);
}

int leat__dedup_state_read(leat__dedup *d, const char *path, leat__dedup_state *s, leat_error *err)
{
    json_t *root;
    bool sound;
    LEAT_TRY(leat__sealed_read(path, 64u << 20, &root, &sound, err));
    int rc = root ? take_state(d, s, root, sound, path, err) : leat__sealed_damaged(path, err);
    json_decref(root);
    return rc;
}

/* Verifies work files against the checksums of the state. */
static int verify_set(const leat__dedup *d, const char *name, uint32_t files, const uint64_t *length,
                      const uint64_t *sum, leat_error *err)
{
    for (uint32_t i = 0; sum && i < files; i++) {
        char path[4096], file[64];
        snprintf(file, sizeof file, "%s-%u", name, i);
        LEAT_TRY(leat__spill_verify(leat__dedup_path(d, file, path), length[i], sum[i], err));
    }
    return 0;
}

static int verify_pieces(const leat__dedup *d, leat_error *err)
{
    const leat__dedup_state *s = &d->st;
    char path[4096];
    LEAT_TRY(verify_set(d, "starts", 1, s->side_length, s->side_sum, err));
    if (s->phase <= LEAT__PHASE_GROUP)
        LEAT_TRY(verify_set(d, "part", s->band_files, s->band_length, s->band_sum, err));
    if (s->phase == LEAT__PHASE_SKETCH || (s->phase == LEAT__PHASE_GROUP && s->part == 0)) return 0;
    return leat__spill_verify(leat__dedup_removed_path(d, path), s->pieces / 8 + 1, s->decisions_sum, err);
}

static int verify_work(const leat__dedup *d, leat_error *err)
{
    const leat__dedup_state *s = &d->st;
    char path[4096];
    if (d->opts->level != LEAT_LEVEL_DOCUMENT) return verify_pieces(d, err);
    LEAT_TRY(verify_set(d, "side", LEAT__SIDES, s->side_length, s->side_sum, err));
    if (s->phase == LEAT__PHASE_GROUP || (s->phase == LEAT__PHASE_SKETCH && s->document > 0))
        LEAT_TRY(verify_set(d, "band", s->band_files, s->band_length, s->band_sum, err));
    if (s->phase < LEAT__PHASE_WRITE)
        return verify_set(d, "edge", s->edge_files, s->edge_length, s->edge_sum, err);
    return leat__spill_verify(leat__dedup_path(d, "decisions", path),
                              s->document * sizeof(leat__dedup_decision), s->decisions_sum, err);
}

int leat__dedup_load(leat__dedup *d, bool *found, leat_error *err)
{
    char path[4096];
    leat__dedup_path(d, LEAT__WORK_STATE, path);
    LEAT_TRY(leat__path_exists(path, found, err));
    if (!*found) return 0;
    LEAT_TRY(leat__dedup_state_read(d, path, &d->st, err));
    if (d->st.file >= d->files.count) return leat__sealed_damaged(path, err);
    LEAT_TRY(leat__dedup_state_inputs(&d->st, &d->files, err));
    return verify_work(d, err);
}

/* Hashes the path, size and first bytes of every input: all to `h`, and each to the lists. The hashes in the
 * lists have 63 bits, as JSON numbers are signed. */
static int hash_inputs(leat__dedup *d, leat__hasher *h, leat_error *err)
{
    uint8_t *head = leat__alloc(LEAT__MEM_CURATE, HEAD);
    int rc = head ? two_lists(&d->input_name, &d->input_head, d->files.count, err)
                  : leat__fail_nomem(err, HEAD, "a hash");
    for (uint32_t i = 0; i < d->files.count && rc == 0; i++) {
        leat__file *f = NULL;
        size_t got = 0;
        leat__hasher_update(h, d->files.path[i], strlen(d->files.path[i]) + 1);
        leat__hasher_update(h, &d->files.size[i], sizeof d->files.size[i]);
        rc = leat__file_open(&f, d->files.path[i], LEAT__FILE_READ, err);
        if (rc == 0) rc = leat__file_pread_some(f, head, HEAD, 0, &got, err);
        leat__hasher_update(h, head, got);
        d->input_name[i] = leat__hash64(d->files.path[i], strlen(d->files.path[i]), 0) >> 1;
        d->input_head[i] = leat__hash64(head, got, d->files.size[i]) >> 1;
        leat__file_close(&f);
    }
    leat__free(head);
    return rc;
}

static void put_hash(const leat__hasher *h, char out[40])
{
    leat__hash128 v = leat__hasher_value128(h);
    snprintf(out, 40, "%016llx%016llx", (unsigned long long)v.high, (unsigned long long)v.low);
}

int leat__dedup_key(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    const char *page = o->report ? o->report : "";
    const uint64_t form[] = {o->shard_bytes, o->compress, o->fail_on_bad};
    leat__hasher *h = leat__hasher_open(0);
    if (!h) return leat__fail_nomem(err, 0, "a hash");
    leat__hasher_update(h, d->settings, strlen(d->settings));
    leat__hasher_update(h, form, sizeof form);
    leat__hasher_update(h, page, strlen(page));
    for (uint32_t i = 0; i < d->files.count; i++) {
        uint64_t stamp = leat__text_files_stamp(&d->files, i);
        leat__hasher_update(h, &stamp, sizeof stamp);
    }
    put_hash(h, d->run_key);
    leat__hasher_close(&h);
    return 0;
}

int leat__dedup_settings(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    leat__hasher *h = leat__hasher_open(0);
    if (!h) return leat__fail_nomem(err, 0, "a hash");
    const uint64_t numbers[] = {o->kind,  o->normalize,  o->shingle_words, o->shingle_chars, d->bands,
                                d->rows,  d->need_equal, o->clusters,      o->keep,          o->max_document,
                                o->index, d->against,    o->compatible,    o->level};
    const char *const texts[] = {d->names.text_field, d->names.id_field, o->keep_field ? o->keep_field : "",
                                 o->profile ? o->profile : "", o->set ? o->set : ""};
    leat__hasher_update(h, numbers, sizeof numbers);
    for (size_t i = 0; i < LEAT_COUNT(texts); i++) leat__hasher_update(h, texts[i], strlen(texts[i]) + 1);
    leat__hasher_update(h, d->index_hash, sizeof d->index_hash);
    int rc = hash_inputs(d, h, err);
    put_hash(h, d->settings);
    leat__hasher_close(&h);
    return rc;
}
