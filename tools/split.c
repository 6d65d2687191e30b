/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat split`: splits a pack into parts (training, validation) by a hash of the key.
 */
#include <string.h>

#include <leat/pack.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"
#include "io/url.h"
#include "cli.h"

static const leat__param options[] = {
    CLI_STRING("parts", 0, "train=0.9,val=0.1", "NAME=P,...",
               "names of the parts and their shares, which are approximate; shares that add up to "
               "less than 1 leave samples out"),
    CLI_STRING("stratify", 0, NULL, "FIELD", "exact shares within each value of this int field"),
    CLI_PATH("output", 'o', NULL, "DIR",
             "write the parts into this folder, made where needed; else beside the pack"),
    CLI_STRING("seed", 0, "0", "SEED", "another seed gives other parts"),
    CLI_FLAG("force", 'f', "replace packs that are there"),
    CLI_END,
};

typedef struct watch {
    cli *c;
    cli_progress bar;
} watch;

typedef struct parts {
    leat_split_part part[LEAT_PACK_PARTS_MAX];
    char *name[LEAT_PACK_PARTS_MAX], *path[LEAT_PACK_PARTS_MAX];
    uint32_t count;
} parts;

static int on_progress(void *cookie, uint64_t done, uint64_t total)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, 0, 0);
    return cli_interrupted(w->c);
}

static void forget(parts *p)
{
    for (uint32_t i = 0; i < LEAT_PACK_PARTS_MAX; i++) {
        leat__free(p->name[i]);
        leat__free(p->path[i]);
    }
}

/* Returns DIR/STEM-NAME.leat, or that name beside the pack. */
static char *path_of(const char *pack, const char *folder, const char *name)
{
    leat__buf b;
    size_t stem;
    const char *base = leat__path_name(pack, &stem);
    if (stem > 5 && strncmp(base + stem - 5, ".leat", 5) == 0) stem -= 5;
    leat__buf_init(&b, LEAT__MEM_MISC, 1u << 20);
    if (folder != NULL) (void)leat__buf_printf(&b, "%s/", folder);
    else (void)leat__buf_append(&b, pack, (size_t)(base - pack));
    (void)leat__buf_append(&b, base, stem);
    (void)leat__buf_printf(&b, "-%s.leat", name);
    char *path = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return path;
}

static int parse(parts *p, const char *text, const char *pack, const char *folder, leat_error *err)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ","), name = strcspn(text, "=");
        char share[32];
        uint32_t i = p->count;
        if (i == LEAT_PACK_PARTS_MAX) return leat__fail(err, LEAT_EINVAL, "--parts: more than %u parts", i);
        if (memchr(text, '/', name < len ? name : len) != NULL)
            return leat__fail(err, LEAT_EINVAL,
                              "--parts: \"%.*s\": a name cannot have a \"/\"; --output sets the folder",
                              (int)len, text);
        if (strspn(text, ".") == name && name > 0)
            return leat__fail(err, LEAT_EINVAL, "--parts: \"%.*s\" is not a name of a part", (int)name, text);
        if (name == 0 || name >= len || len - name - 1 >= sizeof share)
            return leat__fail(err, LEAT_EINVAL, "--parts: \"%.*s\" is not NAME=SHARE", (int)len, text);
        memcpy(share, text + name + 1, len - name - 1);
        share[len - name - 1] = '\0';
        if (!leat__str_to_double(share, &p->part[i].share))
            return leat__fail(err, LEAT_EINVAL, "--parts: \"%s\" is not a number", share);
        p->name[i] = leat__strndup(LEAT__MEM_MISC, text, name);
        if (p->name[i] != NULL) p->path[i] = path_of(pack, folder, p->name[i]);
        if (p->path[i] == NULL) return leat__fail_nomem(err, len, "a part");
        p->part[i].output = p->path[i];
        p->count++;
        text += len + (text[len] == ',');
    }
    return 0;
}

/* Warns about empty parts. With --stratify a part is empty only when no value has enough samples. */
static void warn_empty(cli *c, const parts *p)
{
    const char *field = cli_str(c, "stratify");
    uint64_t all = 0;
    for (uint32_t i = 0; i < p->count; i++) all += p->part[i].samples;
    for (uint32_t i = 0; i < p->count && all > 0; i++) {
        if (p->part[i].samples > 0) continue;
        if (field == NULL)
            cli_warn(
                c,
                "part %s has no samples: samples are drawn by chance, and there are few; --stratify gives "
                "exact shares of each class",
                p->name[i]);
        else
            cli_warn(c, "part %s has no samples: each value of %s has too few for a share of %g", p->name[i],
                     field, p->part[i].share);
    }
}

/* Prints the error, and names the complete parts of an interrupted run: parts are written in sequence. */
static int fail(cli *c, const parts *p, const leat_error *err)
{
    leat__names list = {0};
    for (uint32_t i = 0; i < p->count; i++)
        if (p->part[i].samples > 0) leat__names_add(&list, p->path[i]);
    if (list.all == 0 || !cli_is_stop(c, err)) return cli_fail_result(c, NULL, err);
    const int code = cli_fail_output(c, err);
    cli_tell(c, "interrupted: only %s %s written; --force starts again", leat__names_end(&list),
             list.all == 1 ? "was" : "were");
    return code;
}

static int print(cli *c, const parts *p)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    for (uint32_t i = 0; i < p->count && !c->json; i++)
        cli_out(c, "%s: %llu sample%s\n", p->path[i], (unsigned long long)p->part[i].samples,
                cli_s(p->part[i].samples));
    if (!c->json) return 0;
    leat__json_key(j, "parts");
    leat__json_array(j);
    for (uint32_t i = 0; i < p->count; i++) {
        leat__json_object(j);
        leat__json_kstr(j, "name", p->name[i]);
        leat__json_kstr(j, "path", p->path[i]);
        leat__json_ku64(j, "samples", p->part[i].samples);
        leat__json_end(j);
    }
    leat__json_end(j);
    return cli_object_end(c, &page);
}

static int run(cli *c)
{
    leat_error err = {0};
    parts p = {0};
    watch w = {.c = c};
    uint64_t seed;
    if (!leat__str_to_u64(cli_str(c, "seed"), &seed))
        return cli_usage(c, "--seed: \"%s\" is not a whole number from 0 on", cli_str(c, "seed"));
    int rc = parse(&p, cli_str(c, "parts"), cli_arg(c, 0), cli_str(c, "output"), &err);
    leat_pack_split_opts o = {.struct_size = sizeof o,
                              .part_count = p.count,
                              .parts = p.part,
                              .stratify = cli_str(c, "stratify"),
                              .seed = seed,
                              .replace = cli_flag(c, "force"),
                              .progress = on_progress,
                              .cookie = &w};
    if (rc == 0 && cli_str(c, "output") != NULL) rc = leat__path_mkdir(cli_str(c, "output"), &err);
    if (rc == 0) {
        cli_progress_begin(&w.bar, c, "splitting", "samples", 0);
        rc = leat_pack_split(cli_arg(c, 0), &o, &err);
        cli_progress_end(&w.bar);
    }
    int code = rc != 0 ? fail(c, &p, &err) : CLI_OK;
    if (rc == 0) warn_empty(c, &p);
    if (rc == 0 && print(c, &p) != 0) code = CLI_DATA;
    forget(&p);
    return code;
}

const cli_command cli_cmd_split = {
    .name = "split",
    .summary = "split a pack into parts, by hash of key",
    .examples =
        (const cli_example[]){
            {"leat split photos.leat --parts train=0.9,val=0.1", "photos-train.leat and photos-val.leat"},
            {"leat split photos.leat --stratify label -o parts", "exact shares of each class"},
            {NULL, NULL}},
    .description =
        "Copies the samples as they are stored. The part of a sample depends only on its "
        "key, the seed and the shares: when the pack grows, no sample changes its part. "
        "So each sample is drawn by chance, and counts are close to their shares only in large "
        "packs: a share of 0.8 of 10 samples may be 7 of them, of 10,000 it is about 8,000 give or "
        "take 80. The counts are printed.\n\n"
        "With --stratify the samples of each value are ranked by the hashes of their "
        "keys. Shares are then exact, but a few samples near a border may change their "
        "part when others are added; a value with few samples "
        "may have none in a small part.\n\n"
        "A part can be split again: it records its seeds, and another hash is used. A part that "
        "was packed again has no such record; where its shares would be far off, "
        "the split is refused and needs another --seed.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .options = {{"Splitting", options}},
    .json = (const cli_key[]){{"parts[].name", "of a part"},
                              {"parts[].path", "its pack"},
                              {"parts[].samples", "its samples"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
