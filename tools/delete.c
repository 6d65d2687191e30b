/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat delete`: deletes samples from a pack, as a new generation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/pack.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli.h"
#include "io/file.h"
#include "packing.h"

#define KEYS_MAX ((size_t)1 << 32) /* largest list, in bytes */

static const leat__param options[] = {
    CLI_PATH("keys", 0, NULL, "FILE", "delete these keys, one per line"),
    CLI_FLAG("missing-ok", 0, "do not report keys that the pack does not have"),
    CLI_END,
};

typedef struct deletion {
    leat_packer *packer;
    uint64_t samples, missing;
    char first[200]; /* first missing key */
} deletion;

static int drop(deletion *d, const char *key, size_t size, leat_error *err)
{
    uint64_t count;
    LEAT_TRY(leat_packer_drop(d->packer, key, size, &count, err));
    d->samples += count;
    if (count == 0 && d->missing++ == 0)
        snprintf(d->first, sizeof d->first, "%.*s", (int)(size < 190 ? size : 190), key);
    return 0;
}

typedef struct named {
    const char *at;
    size_t size;
} named;

static int by_key(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->size < y->size ? x->size : y->size);
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* Lists the keys of the text, one per line; returns how many. `keys` has room for all lines. */
static size_t list_lines(char *text, size_t len, named *keys)
{
    size_t n = 0;
    for (char *at = text, *end; at < text + len; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + len - at));
        if (end == NULL) end = text + len;
        size_t size = (size_t)(end - at);
        if (size > 0 && at[size - 1] == '\r') size--;
        if (size > 0) keys[n++] = (named){at, leat__str_unquote(at, size)};
    }
    return n;
}

/* Drops the keys of the command line and of the list. A key that is named twice counts once. */
static int drop_all(deletion *d, cli *c, const char *list, leat_error *err)
{
    char *text = NULL;
    size_t len = 0, lines = 1, n = 0;
    int rc = 0;
    if (list != NULL) LEAT_TRY(leat__file_load(list, KEYS_MAX, 1, &text, &len, err));
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    named *keys = LEAT_NEW_ARRAY(MISC, named, lines + cli_arg_count(c));
    if (keys == NULL) rc = leat__fail_nomem(err, lines * sizeof *keys, "keys");
    for (size_t i = 1; i < cli_arg_count(c) && rc == 0; i++)
        keys[n++] = (named){cli_arg(c, i), strlen(cli_arg(c, i))};
    if (rc == 0) n += list_lines(text, len, keys + n);
    if (n > 1) qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (i == 0 || by_key(&keys[i - 1], &keys[i]) != 0) rc = drop(d, keys[i].at, keys[i].size, err);
    leat__free(keys);
    leat__free(text);
    return rc;
}

static int print(cli *c, const deletion *d)
{
    if (!c->json) {
        cli_out(c, "%llu sample%s deleted\n", (unsigned long long)d->samples, d->samples == 1 ? "" : "s");
        return 0;
    }
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", d->samples);
    leat__json_ku64(j, "missing", d->missing);
    return cli_object_end(c, &page);
}

static int run(cli *c)
{
    leat_error err = {0};
    deletion d = {0};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    const char *list = cli_str(c, "keys"), *pack = cli_arg(c, 0);
    if (list == NULL && cli_arg_count(c) < 2) return cli_usage(c, "no key: give KEY... or --keys FILE");
    o.append = 1;
    bool was_set = cli_packing_is_set(pack);
    int rc = leat_packer_open(&d.packer, pack, &o, &err);
    if (rc == 0) rc = drop_all(&d, c, list, &err);
    if (rc == 0) rc = leat_packer_finish(d.packer, NULL, &err);
    bool unfinished = rc != 0 && d.packer != NULL;
    leat_packer_close(&d.packer);
    if (unfinished) (void)!leat_packer_discard(pack, NULL);
    if (rc != 0) return cli_fail(c, &err);
    bool finding = d.missing > 0 && !cli_flag(c, "missing-ok");
    if (finding)
        cli_warn(c, "%llu key%s not in the pack (\"%s\"%s)", (unsigned long long)d.missing,
                 d.missing == 1 ? " was" : "s were", d.first, d.missing == 1 ? "" : ", ...");
    print(c, &d);
    cli_packing_became_set(c, pack, was_set);
    return finding ? CLI_FINDING : CLI_OK;
}

const cli_command cli_cmd_delete = {
    .name = "delete",
    .summary = "delete samples from a pack, by key",
    .examples = (const cli_example[]){{"leat delete photos.leat cat/1.jpg dog/2.jpg", "two samples"},
                                      {"leat delete photos.leat --keys bad.txt", "those that are listed"},
                                      {NULL, NULL}},
    .description = "Publishes a new generation of the pack without these samples, in one "
                   "step. Nothing is written again: PACK becomes a set that needs the files "
                   "PACK-*.leat beside it, also when it is copied. They contain the bytes of the "
                   "deleted samples until 'leat compact', which makes one file again. All "
                   "samples with a key are deleted. "
                   "Exit code 1 when the pack did not have a key. The pack becomes format 3.0, "
                   "which older versions of leat cannot read.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"},
                                   {.name = "KEY", .optional = true, .many = true, .help = "keys of samples"},
                                   {.name = NULL}},
    .options = {{"Deleting", options}},
    .json = (const cli_key[]){{"samples", "samples deleted"},
                              {"missing", "keys that the pack did not have"},
                              {NULL, NULL}},
    .run = run,
};
