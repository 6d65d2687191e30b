/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat verify`: reads every byte of a pack and reports damage.
 */
#include <stdio.h>
#include <string.h>

#include <leat/pack.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli.h"

static const leat__param options[] = {
    CLI_INT("threads", 't', "2", 1, 256, "N", "threads that read and check"),
    CLI_END,
};

typedef struct watch {
    cli *c;
    cli_progress bar;
    leat__json json; /* findings, with --json */
} watch;

/* Prints a position, or nothing for a finding about the whole file. */
static void put_place(cli *c, const char *name, int64_t value)
{
    if (value >= 0) cli_out(c, "\t%s %lld", name, (long long)value);
    else cli_out(c, "\t%s -", name);
}

/* Returns the reason without the name of the file, which has its own column. */
static const char *reason_of(const leat_pack_damage *d)
{
    const size_t len = strlen(d->path);
    const bool named = strncmp(d->reason, d->path, len) == 0 && leat__str_starts(d->reason + len, ": ");
    return named ? d->reason + len + 2 : d->reason;
}

static int on_damage(void *cookie, const leat_pack_damage *d)
{
    watch *w = cookie;
    if (w->c->json) {
        leat__json *j = &w->json;
        leat__json_object(j);
        leat__json_kstr(j, "file", d->path);
        leat__json_key(j, "key");
        leat__json_strn(j, d->key, (size_t)d->key_size);
        leat__json_ki64(j, "sample", d->sample);
        leat__json_ki64(j, "page", d->page);
        leat__json_ki64(j, "offset", d->offset);
        leat__json_kstr(j, "reason", reason_of(d));
        leat__json_end(j);
        return cli_interrupted(w->c);
    }
    /* written as JSON, so that a hostile key cannot forge a line */
    leat__buf line;
    leat__json j;
    leat__buf_init(&line, LEAT__MEM_MISC, 4u << 20);
    leat__json_init(&j, &line, 0);
    leat__json_strn(&j, d->key, (size_t)d->key_size);
    cli_out(w->c, "%s", d->sample >= 0 ? leat__buf_str(&line) : "-");
    put_place(w->c, "page", d->page);
    put_place(w->c, "offset", d->offset);
    cli_out(w->c, "\t%s\t%s\n", d->path, reason_of(d));
    leat__buf_reset(&line);
    return cli_interrupted(w->c);
}

static int on_progress(void *cookie, uint64_t done, uint64_t total)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, done, 0);
    return cli_interrupted(w->c);
}

static int print_json(cli *c, watch *w, const leat_pack_verify_stats *st)
{
    leat__json *j = &w->json;
    leat__json_end(j);
    leat__json_kbool(j, "ok", st->damaged == 0);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "pages", st->pages);
    leat__json_ku64(j, "bytes", st->bytes);
    leat__json_ku64(j, "damaged_samples", st->damaged_samples);
    leat__json_ku64(j, "damaged", st->damaged);
    leat__json_end(j);
    return cli_json(c, j->out);
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_pack_verify_stats st = {0};
    leat__buf findings;
    watch w = {.c = c};
    leat__buf_init(&findings, LEAT__MEM_MISC, (size_t)1 << 30);
    leat__json_init(&w.json, &findings, 0);
    leat__json_object(&w.json);
    leat__json_key(&w.json, "damage");
    leat__json_array(&w.json);
    leat_pack_verify_opts o = {.struct_size = sizeof o,
                               .threads = (uint32_t)cli_int(c, "threads"),
                               .damage = on_damage,
                               .progress = on_progress,
                               .cookie = &w};
    cli_progress_begin(&w.bar, c, "verifying", "bytes", 0);
    int rc = leat_pack_verify(cli_arg(c, 0), &o, &st, &err);
    cli_progress_end(&w.bar);
    int code = CLI_OK;
    char pack[4096];
    snprintf(pack, sizeof pack, "%s", cli_arg(c, 0));
    leat__str_hide_secrets(pack, sizeof pack);
    if (rc != 0 && !(rc == LEAT_EDATA && st.damaged > 0)) {
        code = cli_fail(c, &err);
    } else {
        if (c->json) code = print_json(c, &w, &st);
        if (st.damaged > 0 && st.samples == 0)
            code = cli_failf(c, CLI_DATA, "%s: %llu finding%s, and no sample could be read", cli_arg(c, 0),
                             (unsigned long long)st.damaged, cli_s(st.damaged));
        else if (st.damaged > 0)
            code = cli_failf(c, CLI_DATA, "%s: %llu finding%s, %llu damaged sample%s of %llu", cli_arg(c, 0),
                             (unsigned long long)st.damaged, st.damaged == 1 ? "" : "s",
                             (unsigned long long)st.damaged_samples, st.damaged_samples == 1 ? "" : "s",
                             (unsigned long long)st.samples);
        else if (!c->json)
            cli_out(c, "%s: intact, %llu sample%s, %llu page%s, %llu bytes\n", pack,
                    (unsigned long long)st.samples, cli_s(st.samples), (unsigned long long)st.pages,
                    cli_s(st.pages), (unsigned long long)st.bytes);
    }
    leat__buf_reset(&findings);
    return code;
}

const cli_command cli_cmd_verify = {
    .name = "verify",
    .summary = "check every byte of a pack",
    .examples = (const cli_example[]){{"leat verify photos.leat", "exit code 0 when nothing is damaged"},
                                      {"leat verify photos.leat --json", "for scripts"},
                                      {NULL, NULL}},
    .description = "Reads the whole pack, or all shards of a set, and compares every checksum. "
                   "Each finding is one line: key, page, offset in the file, file, reason; - where "
                   "there is none. Exit code 4 when there are any.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .options = {{"Verifying", options}},
    .json = (const cli_key[]){{"ok", "true when nothing is damaged"},
                              {"samples", "samples checked"},
                              {"pages", "pages checked"},
                              {"bytes", "bytes checked"},
                              {"damaged_samples", "findings about samples"},
                              {"damaged", "all findings"},
                              {"damage[].file", "file of a finding"},
                              {"damage[].key", "key of a damaged sample"},
                              {"damage[].sample", "its number, -1 when not of one"},
                              {"damage[].page", "its page, -1 when not in one"},
                              {"damage[].offset", "where in the file"},
                              {"damage[].reason", "reason"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
