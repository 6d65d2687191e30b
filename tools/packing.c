/* SPDX-License-Identifier: Apache-2.0
 *
 * See packing.h.
 */
#include "packing.h"

#include "base/error.h"
#include "base/num.h"

typedef struct watch {
    cli *c;
    cli_progress bar;
} watch;

static int on_progress(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, bytes, skipped);
    return cli_interrupted(w->c);
}

int cli_packing_run(cli *c, leat_ingest_opts *o, const leat_check_opts *check, const char *doing,
                    leat_ingest_stats *st, leat_check_stats *found, leat_error *err)
{
    const char *sources[1024];
    watch w = {.c = c};
    size_t n = cli_arg_count(c);
    if (n > LEAT_COUNT(sources))
        return leat__fail(err, LEAT_EINVAL, "more than %zu sources", LEAT_COUNT(sources));
    for (size_t i = 0; i < n; i++) sources[i] = cli_arg(c, i);
    o->sources = sources;
    o->source_count = (uint32_t)n;
    o->progress = on_progress;
    o->cookie = &w;
    o->log = c->log;
    cli_progress_begin(&w.bar, c, doing, "samples", 0);
    int rc = check ? leat_ingest_checked(o, check, st, found, err) : leat_ingest(o, st, err);
    cli_progress_end(&w.bar);
    o->sources = NULL; /* lay here */
    return rc;
}

int cli_packing_end(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st)
{
    if (st->skipped)
        cli_warn(c, "%llu sample%s left out%s%s", (unsigned long long)st->skipped,
                 st->skipped == 1 ? " was" : "s were", o->report ? ": see " : " (--report FILE lists them)",
                 o->report ? o->report : "");
    if (st->unlabelled)
        cli_warn(c, "%llu image%s in no class folder (%s%s): the label is -1",
                 (unsigned long long)st->unlabelled, st->unlabelled == 1 ? " is" : "s are",
                 st->unlabelled_first, st->unlabelled == 1 ? "" : ", ...");
    return st->skipped ? CLI_FINDING : CLI_OK;
}
