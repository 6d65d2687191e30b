/* SPDX-License-Identifier: Apache-2.0
 *
 * See packing.h.
 */
#include "packing.h"

#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"
#include "io/url.h"
#include "pack/index.h"

int cli_packing_run(cli *c, leat_ingest_opts *o, const leat_check_opts *check, const char *doing,
                    leat_ingest_stats *st, leat_check_stats *found, leat_error *err)
{
    const char *sources[1024];
    cli_progress bar;
    size_t n = cli_arg_count(c);
    if (n > LEAT_COUNT(sources))
        return leat__fail(err, LEAT_EINVAL, "more than %zu sources", LEAT_COUNT(sources));
    for (size_t i = 0; i < n; i++) sources[i] = cli_arg(c, i);
    o->sources = sources;
    o->source_count = (uint32_t)n;
    o->progress = cli_progress_on;
    o->cookie = &bar;
    o->log = c->log;
    cli_progress_begin(&bar, c, doing, "samples", 0);
    int rc = check ? leat_ingest_checked(o, check, st, found, err) : leat_ingest(o, st, err);
    cli_progress_end(&bar);
    o->sources = NULL; /* the field pointed to a local array */
    return rc;
}

/* True when an interrupted run may have left something to resume. For an upload this is not checked. */
static bool may_resume(const char *output)
{
    leat__buf journal;
    bool there = true;
    if (leat__path_remote(output)) return true;
    leat__buf_init(&journal, LEAT__MEM_MISC, 1u << 20);
    if (leat__buf_printf(&journal, "%s.journal", output) == 0 &&
        leat__path_exists(leat__buf_str(&journal), &there, NULL) != 0)
        there = true;
    leat__buf_reset(&journal);
    return there;
}

/* True for an error that only other settings can fix: --resume needs the settings of the first run. */
static bool needs_setting(const leat_error *err)
{
    return err->code == LEAT_EDATA && strstr(err->message, "=-1 sets it to -1") != NULL;
}

/* True when the tar has to be made again: neither --resume nor --on-error skip helps. */
static bool needs_other_tar(const leat_error *err)
{
    return err->code == LEAT_EDATA && strstr(err->message, "are not side by side; make it with tar") != NULL;
}

/* True for an error of one sample, which skipping the sample avoids; false when storage fails. */
static bool is_about_sample(const leat_error *err)
{
    return err->sample >= 0 && err->code != LEAT_EIO && err->code != LEAT_EPERM &&
           err->code != LEAT_ECHANGED && !needs_setting(err);
}

/* True when another run is writing the pack: --force would be refused, too. */
static bool is_in_use(const leat_error *err)
{
    return strstr(err->message, ": another run or writer is writing this pack") != NULL ||
           strstr(err->message, ": in use by another process or writer") != NULL;
}

int cli_packing_fail(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st, const leat_error *err)
{
    int code = cli_fail(c, err);
    const bool skippable = is_about_sample(err) && !o->skip_errors;
    /* equal keys of a merge are also LEAT_EEXIST, found before anything is written: no option helps */
    if (err->code == LEAT_EEXIST && o->merge && !leat__str_starts(err->message, o->output)) return code;
    if (err->code == LEAT_EEXIST && st->samples > 0 && leat__path_remote(o->output))
        cli_tell(c, "--force --resume uploads it and replaces what is there");
    else if (err->code == LEAT_EEXIST && !o->resume && may_resume(o->output))
        cli_tell(c, "--resume continues an unfinished pack; --force replaces what is there");
    else if (err->code == LEAT_EEXIST) cli_tell(c, "--force replaces what is there");
    else if (err->code == LEAT_ESTATE && o->resume && !is_in_use(err))
        cli_tell(c, "--force without --resume starts over");
    else if (needs_setting(err) && st->samples > 0) cli_tell(c, "add that option and --force to start over");
    else if (needs_other_tar(err)) {
        if (st->samples > 0) cli_tell(c, "--force starts over with the new tar");
    } else if (skippable && o->merge)
        cli_tell(c, "%s--on-error skip leaves out samples that cannot be merged",
                 st->samples > 0 ? "--resume " : "");
    else if (skippable && st->samples > 0 && !o->append)
        cli_tell(c,
                 "to leave out such samples: --resume --on-error skip; after repairing or removing the file: "
                 "--resume");
    else if (skippable) cli_tell(c, "--on-error skip leaves out samples that cannot be packed");
    else if (st->samples > 0 && err->code != LEAT_ESTATE)
        cli_tell(c, "what is written so far is kept: --resume continues from there");
    return code;
}

bool cli_packing_is_set(const char *pack)
{
    leat__index *x = NULL;
    if (leat__index_open(&x, NULL, pack, false, 0, NULL) != 0) return false;
    bool set = x->footer.kind == LEAT__PACK_SET;
    leat__index_close(&x);
    return set;
}

void cli_packing_became_set(cli *c, const char *pack, bool was_set)
{
    size_t stem;
    const char *base = leat__path_name(pack, &stem);
    if (was_set || !cli_packing_is_set(pack)) return;
    if (stem > 5 && strncmp(base + stem - 5, ".leat", 5) == 0) stem -= 5;
    cli_say(c,
            "%s is now a set: its samples are in the files %.*s-*.leat beside it; copy them along, or make "
            "one file again with leat compact",
            pack, (int)stem, base);
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
    if (st->in_folders)
        cli_warn(
            c,
            "the members are in folders, and labels are not taken from them: unpack %s and pack the folder",
            o->source_count == 1 ? "the tar" : "the tars");
    if (st->blank_labels)
        cli_warn(c,
                 "%llu label%s or end%s with a blank, the first in line %llu: \"cat\" and \" cat\" are two "
                 "classes",
                 (unsigned long long)st->blank_labels, st->blank_labels == 1 ? " begins" : "s begin",
                 st->blank_labels == 1 ? "s" : "", (unsigned long long)st->blank_label_line);
    return st->skipped ? CLI_FINDING : CLI_OK;
}
