/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat dedup images`: finds equal and similar images. Its options are in the table of dedup.c.
 */
#include "dedup_images.h"

#include <leat/images.h>

#include "base/num.h"
#include "base/str.h"
#include "curate/image_dedup.h"

enum { TEXTS, IMAGES, VECTORS, KINDS };

int dedup_kind_check(cli *c)
{
    static const char *const names[KINDS] = {"texts", "images", "vectors"};
    static const char *const options[KINDS][28] = {
        {"normalize",   "words",        "chars",      "bands",
         "rows",        "clusters",     "keep-field", "plan",
         "text-field",  "id-field",     "on-error",   "compress",
         "shard-bytes", "max-document", "resume",     "bands-per-iteration",
         "checkpoint",  "report",       "index",      "against",
         "level",       "compatible",   "on",         "task-bytes",
         "profile",     "set",          NULL},
        {"csv", "orientations", "windows", "across", "list-probable", NULL},
        {"keep-share", "centres", "field", "device", NULL}};
    static const char *const rules[KINDS][4] = {
        {"longest", "field", NULL}, {"largest", "quality", "pack", NULL}, {"outer", "central", NULL}};
    const char *kind = cli_arg(c, 0), *keep = cli_str(c, "keep");
    const int own = leat__str_eq(kind, "images") ? IMAGES : leat__str_eq(kind, "semantic") ? VECTORS : TEXTS;
    for (int k = 0; k < KINDS; k++) {
        if (k == own) continue;
        for (size_t i = 0; options[k][i]; i++)
            if (cli_given(c, options[k][i]))
                return cli_usage(c, "--%s is for %s, not for %s", options[k][i], names[k], names[own]);
        for (size_t i = 0; cli_given(c, "keep") && rules[k][i]; i++)
            if (leat__str_eq(rules[k][i], keep)) return cli_usage(c, "--keep %s is for %s", keep, names[k]);
    }
    if (cli_given(c, "list-probable") && !cli_given(c, "csv"))
        return cli_usage(c, "--list-probable has an effect only with --csv");
    return CLI_OK;
}

static void fill(cli *c, cli_progress *bar, leat_dedup_images_opts *o)
{
    static const char *const rules[] = {"largest", "quality", "first", "pack"};
    static const uint32_t orientations[] = {1, 2, 8};
    leat_dedup_images_opts_init(o);
    o->csv = cli_str(c, "csv");
    for (uint32_t i = 0; cli_given(c, "keep") && i < LEAT_COUNT(rules); i++)
        if (leat__str_eq(cli_str(c, "keep"), rules[i])) o->keep = i;
    o->orientations = orientations[cli_choice(c, "orientations")];
    o->windows = cli_flag(c, "windows");
    o->across = cli_flag(c, "across");
    o->list_probable = cli_flag(c, "list-probable");
    o->threshold = cli_float(c, "threshold");
    CLI_FILL_RUN(o, c, bar);
}

static int finish(cli *c, const leat_dedup_images_stats *st)
{
    char took[24];
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__dedup_images_json(st, &buf);
        return cli_json(c, &buf);
    }
    cli_out(
        c,
        "%llu image%s: %llu pair%s of duplicates (%llu with equal pixels), %llu probable; %llu cluster%s, "
        "%llu image%s to keep, %llu to remove\n",
        (unsigned long long)st->samples, cli_s(st->samples), (unsigned long long)st->pairs, cli_s(st->pairs),
        (unsigned long long)st->exact, (unsigned long long)st->probable, (unsigned long long)st->clusters,
        cli_s(st->clusters), (unsigned long long)st->kept, cli_s(st->kept), (unsigned long long)st->removed);
    cli_out(c, "%llu pair%s compared by thumbnails, %s, %.1f CPU-seconds\n",
            (unsigned long long)st->candidates, cli_s(st->candidates),
            leat__format_seconds(st->seconds, took, sizeof took), st->cpu_seconds);
    if (st->unreadable)
        cli_warn(
            c,
            "%llu of these images cannot be read and were not compared: they count as images to keep; leat "
            "check lists them",
            (unsigned long long)st->unreadable);
    if (st->resumed)
        cli_out(c, "%llu image%s searched by the interrupted run before\n", (unsigned long long)st->resumed,
                cli_s(st->resumed));
    return CLI_OK;
}

int dedup_images(cli *c, const char *const *inputs, uint32_t count)
{
    leat_error err = {0};
    leat_dedup_images_opts o;
    leat_dedup_images_stats st = {.struct_size = sizeof st};
    cli_progress bar;
    fill(c, &bar, &o);
    o.inputs = inputs;
    o.input_count = count;
    cli_progress_begin(&bar, c, "comparing", "images", 0);
    int rc = leat_dedup_images(&o, &st, &err);
    cli_progress_end(&bar);
    if (rc == 0) return finish(c, &st);
    return cli_fail_result(c, o.output, &err);
}
