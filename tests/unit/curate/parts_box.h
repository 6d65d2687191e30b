/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs in parts for tests: what python/leat/_ray.py does, in one process.
 */
#ifndef LEAT_TEST_PARTS_BOX_H
#define LEAT_TEST_PARTS_BOX_H

#include "curate/dedup_box.h"

#include "curate/dedup.h"
#include "curate/filter_run.h"

#define RANGES_MAX 64
#define PIECES_MAX (3 * RANGES_MAX)

typedef struct parts_box {
    const char *files[3];
    uint32_t file_count;
    leat__text_range range[RANGES_MAX];
    uint32_t ranges;
    leat__part part;
    const leat_filter_opts *filter; /* or */
    const leat_dedup_opts *dedup;
    unsigned tasks;   /* tokens so far */
    unsigned counted; /* ranges whose lines were counted */
    bool named_early; /* dedup: an output file has its name already, as of a run that was killed */
} parts_box;

/* Lines as short as these make chunks of LEAT__CHUNK_LINES lines: many cuts in a small file. */
static inline void make_lines(const char *name, int n, int seed, bool compressed)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_MISC, 1u << 26);
    for (int i = 0; i < n; i++) {
        int k = i % 11 == 3 ? i % 1000 : i + seed * 100000;
        if (i % 977 == 5) leat__buf_printf(&b, i % 2 ? "\n" : "{\"text\":%d}\n", i);
        else if (i % 1501 == 7) leat__buf_printf(&b, "{\"text\":\"no id %d\"}\n", k);
        else
            leat__buf_printf(&b, "{\"id\":\"%d-%d\",\"n\":%d,\"text\":\"a%d b%d c%d d%d\"}\n", seed, i, i % 7,
                             k, k / 2, k / 3, k);
    }
    if (compressed) assert_int_equal(leat__compress_buf(&b, LEAT__COMPRESS_GZIP, NULL), 0);
    put_file(name, b.data, b.len);
    leat__buf_reset(&b);
}

/* Cuts the files into parts of about `step` bytes, where chunks begin or at any line. */
static inline void cut_box(parts_box *x, uint64_t step, bool chunks)
{
    leat__text_range now = {.line = 1};
    x->ranges = 0;
    for (uint32_t i = 0; i < x->file_count; i++) {
        leat__text_files f;
        leat__text_cut *cuts;
        size_t n;
        assert_int_equal(leat__text_files_open(&f, &x->files[i], 1, 1u << 20, NULL), 0);
        assert_int_equal(leat__text_files_cut(&f, step, chunks, &cuts, &n, NULL), 0);
        leat__text_files_reset(&f);
        for (size_t k = 0; k < n; k++) {
            now.end_file = i;
            now.end_offset = cuts[k].offset;
            assert_true(x->ranges + 2 < RANGES_MAX);
            x->range[x->ranges++] = now;
            now = (leat__text_range){.file = i, .offset = cuts[k].offset, .line = cuts[k].line};
        }
        leat__free(cuts);
    }
    now.end_file = x->file_count;
    x->range[x->ranges++] = now;
}

/* One step, with a new token. The answer is in `json` (may be NULL). */
static inline int try_step(parts_box *x, leat__part_step step, uint32_t number, leat__buf *json,
                           leat_error *err)
{
    char token[32];
    leat__buf own;
    leat__part p = x->part;
    leat__buf_init(&own, LEAT__MEM_MISC, 1u << 26);
    snprintf(token, sizeof token, "t%u", x->tasks++);
    p.step = step;
    p.token = token;
    p.number = number;
    if (!p.settings) p.settings = "";
    int rc = x->filter ? leat__filter_part(x->filter, &p, json ? json : &own, err)
                       : leat__dedup_part(x->dedup, &p, json ? json : &own, err);
    leat__buf_reset(&own);
    return rc;
}

static inline void do_step(parts_box *x, leat__part_step step, uint32_t number, leat__buf *json)
{
    leat_error err = {0};
    if (try_step(x, step, number, json, &err) != 0) fail_msg("step %d: %s", (int)step, err.message);
}

/* A step over range `i`, which is repeated if the lines before it must be counted. */
static inline void do_range(parts_box *x, leat__part_step step, uint32_t number, uint32_t i)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    x->part.range = x->range[i];
    do_step(x, step, number, &json);
    if (json.len > 0) {
        assert_string_equal(leat__buf_str(&json), "{\"uncounted\":true}");
        assert_int_equal(x->range[i].line, 0);
        assert_int_equal(leat__text_count_lines(x->files[x->range[i].file], 0, x->range[i].offset,
                                                &x->range[i].line, NULL),
                         0);
        x->range[i].line++;
        x->counted++;
        x->part.range = x->range[i];
        leat__buf_clear(&json);
        do_step(x, step, number, &json);
        assert_int_equal(json.len, 0);
    }
    leat__buf_reset(&json);
}

/* The output files, from the copies that JOIN lists; the last part of a run. */
static inline void join_box(parts_box *x)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 26);
    do_step(x, LEAT__PART_JOIN, 0, &json);
    json_t *root = json_loads(leat__buf_str(&json), 0, NULL);
    assert_non_null(root);
    const json_t *copies = json_object_get(root, "copies");
    for (size_t i = 0; i < json_array_size(copies); i++) {
        const json_t *copy = json_array_get(copies, i), *list = json_object_get(copy, "pieces");
        static leat__part_piece piece[PIECES_MAX];
        static char path[PIECES_MAX][600];
        size_t n = json_array_size(list);
        assert_true(n < PIECES_MAX);
        for (size_t k = 0; k < n; k++) {
            const json_t *row = json_array_get(list, k);
            snprintf(path[k], sizeof path[k], "%s/%s", x->part.work,
                     json_string_value(json_array_get(row, 0)));
            piece[k] = (leat__part_piece){.path = path[k],
                                          .from = (uint64_t)json_integer_value(json_array_get(row, 1)),
                                          .len = (uint64_t)json_integer_value(json_array_get(row, 2)),
                                          .at = (uint64_t)json_integer_value(json_array_get(row, 3))};
        }
        leat__part p = x->part;
        p.token = "copy";
        for (int again = 0; again < 2; again++)
            assert_int_equal(leat__part_copy_output(&p, json_string_value(json_object_get(copy, "to")),
                                                    json_is_true(json_object_get(copy, "patch")), piece, n,
                                                    NULL),
                             0);
    }
    json_decref(root);
    leat__buf_reset(&json);
    do_step(x, LEAT__PART_END, 0, NULL);
}

/* A report without what differs between runs: times, memory, load, the key of a run. */
static inline char *report_of(const char *folder)
{
    static const char *const noise[] = {
        "run",        "sum",        "seconds",     "cpu_seconds",  "limit",
        "read_share", "work_share", "write_share", "memory_share", "budget_peak_bytes"};
    char name[64];
    snprintf(name, sizeof name, "%s/report.json", folder);
    char *text = load_text(name);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    leat__free(text);
    for (size_t i = 0; i < LEAT_COUNT(noise); i++) json_object_del(root, noise[i]);
    char *out = json_dumps(root, JSON_SORT_KEYS);
    json_decref(root);
    return out;
}

/* Both folders have the same files with the same bytes. */
static inline void same_folders(const char *a, const char *b)
{
    char command[1200];
    char *x = report_of(a), *y = report_of(b);
    assert_string_equal(x, y);
    free(x);
    free(y);
    snprintf(command, sizeof command, "diff -r -x report.json '%s/%s' '%s/%s' >&2", sandbox, a, sandbox, b);
    assert_int_equal(system(command), 0);
}

#endif
