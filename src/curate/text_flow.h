/* SPDX-License-Identifier: Apache-2.0
 *
 * A pass over JSONL files as a flow of the engine: a source reads chunks of lines, a stage processes them
 * on all threads, and the caller gets the chunks in order. The caller supplies the functions of the
 * stage. The budget affects neither the chunks nor which lines are bad.
 */
#ifndef LEAT_CURATE_TEXT_FLOW_H
#define LEAT_CURATE_TEXT_FLOW_H

#include <leat/flow.h>
#include <leat/text.h>

#include "base/json.h"
#include "curate/text_files.h"

/* Sums over passes. */
typedef struct leat__text_meter {
    uint64_t elapsed_ns, read_ns, take_ns, blocked_ns;
    uint64_t work_ns; /* sum over all workers, divided by their number */
} leat__text_meter;

typedef struct leat__text_pass {
    const char *name; /* name of the stage, for meters */
    void *cookie;
    /* Called per worker; `ram` is the memory that one keeps. */
    int (*setup)(void *cookie, void **worker, leat_error *err);
    void (*teardown)(void *cookie, void *worker);
    uint64_t ram;
    /* Returns the extra bytes needed to process a chunk whose longest line has `longest` bytes. */
    uint64_t (*need)(void *cookie, uint64_t longest);
    /* Largest result of a line: this many bytes per byte, in addition to 1.25 times its length, */
    uint32_t per_byte;
    /* plus this many per line, in addition to two paths. */
    uint64_t per_line;
    uint64_t memory; /* limit of the run, for messages; 0 = that of the budget */
    int (*work)(void *cookie, void *worker, leat__text_chunk *c, leat_error *err);
    /* Called on the caller's thread, in the order of the files. */
    int (*take)(void *cookie, leat__text_chunk *c, leat_error *err);
    /* Called with the progress in bytes of files; non-zero stops the pass with LEAT_ECANCELED. May be
     * NULL. */
    int (*tell)(void *cookie, uint64_t bytes, uint64_t total);
    leat__text_meter *meter; /* the pass is added to it; may be NULL */
} leat__text_pass;

/* Runs the pass over the remaining files. Lines that are large for the budget are processed one at a
 * time, after all chunks before them were taken. LEAT_EBUDGET names a line that still does not fit. */
int leat__text_flow_run(leat__text_files *files, const leat__text_pass *pass, leat_budget *budget,
                        uint32_t threads, const leat_log *log, leat_error *err) LEAT_MUST_CHECK;

/* Returns the bytes that a pass needs for a line of this length, which is processed alone. */
uint64_t leat__text_flow_need(const leat__text_files *files, const leat__text_pass *pass, uint64_t line);

/* Fails with LEAT_EBUDGET for a line that needs a limit of `need` bytes instead of `limit`. */
int leat__text_refuse_line(const leat__text_files *f, uint32_t file, uint64_t number, uint64_t bytes,
                           uint64_t limit, uint64_t need, leat_error *err) LEAT_MUST_CHECK;
/* Computes what limited the metered passes. */
void leat__text_meter_load(const leat__text_meter *m, leat_text_load *out);
/* Returns the name of a limit for reports: "reading", "cpus", "writing", "memory", "none". */
const char *leat__text_limit_name(uint32_t limit);
/* Writes a sentence about the load, for people, to `out` and returns it. */
const char *leat__text_load_words(const leat_text_load *load, char out[160]);
/* Adds the shares and the limit to a report. */
void leat__text_load_json(const leat_text_load *load, leat__json *j);

#endif
