/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the report of a run over text: see text_run.h.
 */
#include "doctor/text_run.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"

#define BUSY 0.5        /* share of the time above which a part limits a run */
#define TOO_SHORT_S 0.5 /* in shorter runs, shares are mostly start-up */
#define COMPRESSED 1.3  /* minimum bytes of text per input byte of compressed files */

static double number(const json_t *root, const char *key)
{
    return json_number_value(json_object_get(root, key));
}

static void add(leat__text_verdict *v, const char *remedy)
{
    if (v->remedies < LEAT__TEXT_REMEDIES) v->remedy[v->remedies++] = remedy;
}

static void judge_reading(leat__text_verdict *v, const json_t *root)
{
    bool compressed = number(root, "text_bytes") > COMPRESSED * number(root, "bytes_in");
    if (compressed) add(v, "use inputs that are not compressed, or zstd: one thread reads and decompresses");
    else add(v, "read from a faster disk: one thread reads");
    add(v, "run on several nodes (--on ray): each has its own reading thread");
}

static void judge_writing(leat__text_verdict *v, const json_t *root)
{
    if (json_object_get(root, "bands")) add(v, "raise --memory: the files of bands get larger buffers");
    add(v, "write to a faster disk");
    add(v, "run on several nodes (--on ray): each writes its own part");
}

static void judge_memory(leat__text_verdict *v)
{
    add(v, "raise --memory: chunks in flight waited for it");
    add(v, "lower --threads: each worker thread keeps memory");
    add(v, "lower --max-document if some lines are very long");
}

static void say(leat__text_verdict *v)
{
    static const char *const limits[] = {"reading", "cpus", "writing", "memory"};
    static const char *const words[] = {"Reading limits this run: the reading thread was busy",
                                        "The CPUs limit this run: the worker threads were busy",
                                        "Writing limits this run: results were merged or written",
                                        "Memory limits this run: work waited only for memory"};
    const double share[] = {v->read, v->work, v->write, v->memory};
    for (size_t i = 0; i < LEAT_COUNT(limits); i++)
        if (leat__str_eq(v->limit, limits[i]))
            snprintf(v->sentence, sizeof v->sentence, "%s %.0f %% of the time.", words[i], 100 * share[i]);
}

static int judge(leat__text_verdict *v, const json_t *root)
{
    const double most = LEAT_MAX(LEAT_MAX(v->read, v->work), LEAT_MAX(v->write, v->memory));
    if (v->seconds < TOO_SHORT_S || leat__str_eq(v->limit, "none")) {
        snprintf(v->sentence, sizeof v->sentence, "The run took %.2f s: too short to say what limited it.",
                 v->seconds);
        v->limit = "none";
        return 0;
    }
    if (most < BUSY) {
        snprintf(v->sentence, sizeof v->sentence,
                 "Nothing was busy half of the time: other processes had the CPUs, or the passes over the "
                 "text are a small part of this run.");
        v->limit = "none";
        return 0;
    }
    say(v);
    v->warning = !leat__str_eq(v->limit, "cpus");
    if (leat__str_eq(v->limit, "reading")) judge_reading(v, root);
    else if (leat__str_eq(v->limit, "writing")) judge_writing(v, root);
    else if (leat__str_eq(v->limit, "memory")) judge_memory(v);
    else add(v, "use more threads, or several nodes (--on ray): all CPUs are at work");
    return 0;
}

/* Returns the limit as a static string, NULL when it is unknown. */
static const char *limit_of(const json_t *root)
{
    static const char *const limits[] = {"reading", "cpus", "writing", "memory", "none"};
    const char *limit = json_string_value(json_object_get(root, "limit"));
    for (size_t i = 0; limit && i < LEAT_COUNT(limits); i++)
        if (leat__str_eq(limit, limits[i])) return limits[i];
    return NULL;
}

int leat__text_run_judge(leat__text_verdict *v, const char *json, size_t len, leat_error *err)
{
    json_t *root = json_loadb(json, len, 0, NULL);
    memset(v, 0, sizeof *v);
    v->limit = limit_of(root);
    if (!v->limit || !json_object_get(root, "read_share") || !json_object_get(root, "text_bytes")) {
        json_decref(root);
        return leat__fail(err, LEAT_EFORMAT,
                          "not the report of leat filter, leat dedup or leat decontaminate");
    }
    v->read = number(root, "read_share");
    v->work = number(root, "work_share");
    v->write = number(root, "write_share");
    v->memory = number(root, "memory_share");
    v->seconds = number(root, "seconds");
    double cpu = number(root, "cpu_seconds"), mb = number(root, "text_bytes") / 1e6;
    v->mb_per_s = v->seconds > 0 ? mb / v->seconds : 0;
    v->mb_per_cpu_s = cpu > 0 ? mb / cpu : 0;
    int rc = judge(v, root);
    json_decref(root);
    return rc;
}

void leat__text_run_page(const leat__text_verdict *v, leat__buf *out)
{
    leat__buf_printf(out, "%s\n", v->sentence);
    leat__buf_printf(out, "  reading %.2f, CPUs %.2f, writing %.2f, waiting for memory %.2f of the time\n",
                     v->read, v->work, v->write, v->memory);
    leat__buf_printf(out, "  %.1f s, %.0f MB of text per second, %.0f per CPU-second\n", v->seconds,
                     v->mb_per_s, v->mb_per_cpu_s);
    if (v->remedies > 0) leat__buf_puts(out, "What would help\n");
    for (unsigned i = 0; i < v->remedies; i++) leat__buf_printf(out, "  %u. %s\n", i + 1, v->remedy[i]);
}

void leat__text_run_json(const leat__text_verdict *v, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "verdict", v->sentence);
    leat__json_kstr(&j, "limit", v->limit);
    const char *good = leat__str_eq(v->limit, "none") ? "unknown" : "fine";
    leat__json_kstr(&j, "grade", v->warning ? "warning" : good);
    leat__json_key(&j, "shares");
    leat__json_object(&j);
    leat__json_kdouble(&j, "read", v->read);
    leat__json_kdouble(&j, "work", v->work);
    leat__json_kdouble(&j, "write", v->write);
    leat__json_kdouble(&j, "memory", v->memory);
    leat__json_end(&j);
    leat__json_kdouble(&j, "mb_per_s", v->mb_per_s);
    leat__json_kdouble(&j, "mb_per_cpu_s", v->mb_per_cpu_s);
    leat__json_key(&j, "remedies");
    leat__json_array(&j);
    for (unsigned i = 0; i < v->remedies; i++) {
        leat__json_object(&j);
        leat__json_kstr(&j, "action", v->remedy[i]);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_end(&j);
}
