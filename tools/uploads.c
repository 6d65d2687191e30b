/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat uploads`: lists multipart uploads that were started in a bucket and never completed.
 */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli.h"
#include "io/uploads.h"

static const leat__param options[] = {
    CLI_FLAG("abort", 0, "remove them, and the parts that arrived"),
    CLI_END,
};

typedef struct found {
    leat__buf text; /* key, id and date of each, each followed by a NUL */
    size_t count;
} found;

static int keep(void *cookie, const leat__upload_info *u, leat_error *err)
{
    found *f = cookie;
    const char *all[] = {u->key, u->id, u->begun};
    for (size_t i = 0; i < 3; i++)
        if (leat__buf_append(&f->text, all[i], strlen(all[i]) + 1) != 0)
            return leat__fail_nomem(err, 0, "the list");
    f->count++;
    return 0;
}

static int abort_one(leat__store *store, const char *path, const char *key, const char *id, leat_error *err)
{
    leat__url url;
    leat__buf whole;
    LEAT_TRY(leat__url_parse(&url, path, err));
    leat__buf_init(&whole, LEAT__MEM_MISC, 1u << 20);
    leat__buf_append(&whole, path, (size_t)(url.key - path));
    if (whole.len > 0 && whole.data[whole.len - 1] != '/') leat__buf_putc(&whole, '/');
    leat__buf_puts(&whole, key);
    int rc = leat__buf_status(&whole) == 0 ? leat__uploads_abort(store, leat__buf_str(&whole), id, err)
                                           : leat__fail_nomem(err, 0, "a path");
    leat__buf_reset(&whole);
    return rc;
}

static int show(cli *c, leat__store *store, const found *f, leat_error *err)
{
    leat__buf out;
    leat__json j;
    const char *at = leat__buf_str(&f->text);
    int rc = 0;
    leat__buf_init(&out, LEAT__MEM_MISC, (size_t)1 << 30);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__json_key(&j, "uploads");
    leat__json_array(&j);
    for (size_t i = 0; i < f->count && rc == 0; i++) {
        const char *key = at, *id = key + strlen(key) + 1, *begun = id + strlen(id) + 1;
        at = begun + strlen(begun) + 1;
        leat__json_object(&j);
        leat__json_kstr(&j, "key", key);
        leat__json_kstr(&j, "id", id);
        leat__json_kstr(&j, "begun", begun);
        leat__json_end(&j);
        if (cli_flag(c, "abort")) rc = abort_one(store, cli_arg(c, 0), key, id, err);
        if (!c->json && rc == 0)
            cli_out(c, "%s\t%s\t%s\n", begun, key, cli_flag(c, "abort") ? "removed" : id);
    }
    leat__json_end(&j);
    leat__json_kbool(&j, "removed", cli_flag(c, "abort"));
    leat__json_end(&j);
    if (rc == 0 && c->json) rc = cli_json(c, &out);
    leat__buf_reset(&out);
    return rc;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat__store *store = NULL;
    found f = {0};
    int rc;
    if (!leat__path_remote(cli_arg(c, 0)))
        return cli_failf(c, CLI_USAGE, "%s: not a bucket (s3://bucket or s3://bucket/path)", cli_arg(c, 0));
    if (leat__path_scheme(cli_arg(c, 0)) > LEAT__SCHEME_GS) /* before credentials are looked for */
        return cli_failf(c, CLI_USAGE, "%s: unfinished uploads are listed for s3:// and gs:// only",
                         cli_arg(c, 0));
    leat__buf_init(&f.text, LEAT__MEM_MISC, (size_t)1 << 30);
    rc = leat__store_open(&store, cli_arg(c, 0), &err);
    if (rc == 0) rc = leat__uploads_list(store, cli_arg(c, 0), keep, &f, &err);
    if (rc == 0) rc = show(c, store, &f, &err);
    leat__store_close(&store);
    leat__buf_reset(&f.text);
    return rc == 0 ? CLI_OK : cli_fail(c, &err);
}

const cli_command cli_cmd_uploads = {
    .name = "uploads",
    .summary = "list unfinished uploads in a bucket",
    .examples = (const cli_example[]){{"leat uploads s3://my-bucket/packs", "date, key and number of each"},
                                      {"leat uploads s3://my-bucket/packs --abort", "remove them"},
                                      {NULL, NULL}},
    .description = "A process that is killed while it uploads a pack leaves the uploaded parts in "
                   "the bucket. They are billed until the upload is completed (leat pack --resume) "
                   "or removed. A path is an object or a folder: packs is packs itself and what is below "
                   "packs/, but not packs2. With --abort all its uploads are removed, also those of other "
                   "programs and those that are still running.",
    .args =
        (const cli_arg_spec[]){
            {.name = "BUCKET", .path = true, .help = "s3://bucket/path or gs://bucket/path"}, {.name = NULL}},
    .options = {{"Uploads", options}},
    .json = (const cli_key[]){{"uploads[].key", "of the object"},
                              {"uploads[].id", "the server's number for the upload"},
                              {"uploads[].begun", "when it was begun"},
                              {"removed", "true with --abort"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
