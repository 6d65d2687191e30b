/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat view`: shows the images of a pack and the columns beside it in a browser. The page's server has its
 * own threads; the main thread waits for Ctrl-C.
 */
#include "view/view.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "cli.h"

#define WITH_MAX 64u

static const leat__param options[] = {
    CLI_FLAG("with", 0, "show the columns of the packs that follow PACK (spaces or commas between them)"),
    CLI_PATH("selection", 0, NULL, "PACK", "begin with this selection"),
    CLI_PATH("save", 0, NULL, "PACK",
             "save selections here, with a number added when it exists; else beside the pack"),
    CLI_STRING("field", 0, NULL, "NAME", "image field; else the first"),
    CLI_INT("port", 'p', "0", 0, 65535, "PORT", "port on 127.0.0.1, 0 = any free one"),
    CLI_BYTES("memory", 0, "1G", 1 << 20, 1e15, "memory budget for columns and results"),
    CLI_END,
};

typedef struct waiting {
    leat__mutex lock;
    leat__cond changed;
    bool stop;
} waiting;

static void on_stop(void *cookie)
{
    waiting *w = cookie;
    leat__mutex_lock(&w->lock);
    w->stop = true;
    leat__cond_signal(&w->changed);
    leat__mutex_unlock(&w->lock);
}

static int wait_for_signal(cli *c, leat_error *err)
{
    waiting w = {.stop = false};
    leat__mutex_init(&w.lock);
    leat__cond_init(&w.changed);
    int rc = cli_on_interrupt(c, on_stop, &w, err);
    leat__mutex_lock(&w.lock);
    while (rc == 0 && !w.stop) leat__cond_wait(&w.changed, &w.lock);
    leat__mutex_unlock(&w.lock);
    (void)!cli_on_interrupt(c, NULL, NULL, NULL);
    leat__cond_destroy(&w.changed);
    leat__mutex_destroy(&w.lock);
    return rc;
}

static int say_where(cli *c, const leat__view *v)
{
    leat__buf url, out;
    leat__json j;
    leat__buf_init(&url, LEAT__MEM_MISC, 1u << 12);
    leat__buf_printf(&url, "http://127.0.0.1:%u/%s/", leat__view_port(v), leat__view_token(v));
    if (!c->json) {
        cli_out(c, "%s\n", leat__buf_str(&url));
        fflush(stdout);
        cli_say(c, "%u image%s, %u column%s; Ctrl-C ends the view", leat__view_row_count(v),
                cli_s(leat__view_row_count(v)), leat__view_column_count(v),
                cli_s(leat__view_column_count(v)));
        leat__buf_reset(&url);
        return CLI_OK;
    }
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 16);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "url", leat__buf_str(&url));
    leat__json_ku64(&j, "port", leat__view_port(v));
    leat__json_ku64(&j, "samples", leat__view_row_count(v));
    leat__json_ku64(&j, "columns", leat__view_column_count(v));
    leat__json_end(&j);
    int code = cli_json(c, &out);
    leat__buf_reset(&url);
    leat__buf_reset(&out);
    return code;
}

/* Collects the arguments after the first, split at commas; their text is in `words`. Returns their number. */
static uint32_t list_columns(const cli *c, leat__buf *words, const char *with[WITH_MAX + 1])
{
    uint32_t count = 0;
    for (size_t i = 1; i < cli_arg_count(c); i++)
        leat__buf_append(words, cli_arg(c, i), strlen(cli_arg(c, i)) + 1);
    if (leat__buf_status(words) != 0) return 0;
    for (size_t at = 0; at < words->len && count <= WITH_MAX; at++) {
        if (words->data[at] == ',') words->data[at] = 0;
        if (words->data[at] != 0 && (at == 0 || words->data[at - 1] == 0)) with[count++] = words->data + at;
    }
    return count;
}

static int view_pack(cli *c, const char *const *with, uint32_t count)
{
    leat_error err = {0};
    leat__view *view = NULL;
    if (count > 0 && !cli_flag(c, "with"))
        return cli_usage(c, "'%s': packs of columns come after --with", cli_arg(c, 1));
    if (count == 0 && cli_flag(c, "with")) return cli_usage(c, "--with: no pack of columns was named");
    if (count > WITH_MAX) return cli_usage(c, "--with: more than %u packs", WITH_MAX);
    const leat__view_opts o = {.pack = cli_arg(c, 0),
                               .with = with,
                               .with_count = count,
                               .field = cli_str(c, "field"),
                               .selection = cli_str(c, "selection"),
                               .save = cli_str(c, "save"),
                               .memory = cli_bytes(c, "memory")};
    int rc = leat__view_open(&view, &o, &err);
    if (rc == 0 && o.selection && leat__view_selected_count(view) == 0)
        cli_warn(c, "%s: no sample is selected: the view begins without a selection", o.selection);
    if (rc == 0) rc = leat__view_serve(view, (uint16_t)cli_int(c, "port"), &err);
    int code = rc == 0 ? say_where(c, view) : CLI_OK;
    if (rc == 0 && code == CLI_OK) rc = wait_for_signal(c, &err);
    leat__view_close(&view);
    return rc == 0 ? code : cli_fail(c, &err);
}

static int run(cli *c)
{
    leat__buf words;
    const char *with[WITH_MAX + 1];
    leat__buf_init(&words, LEAT__MEM_MISC, 1u << 20);
    const uint32_t count = list_columns(c, &words, with);
    int code = leat__buf_status(&words) == 0 ? view_pack(c, with, count)
                                             : cli_failf(c, CLI_FIT, "the names of columns are too long");
    leat__buf_reset(&words);
    return code;
}

const cli_command cli_cmd_view = {
    .name = "view",
    .summary = "look at images and their columns in a browser",
    .examples = (const cli_example[]){{"leat view photos.leat", "print an address to open in a browser"},
                                      {"leat view photos.leat --with photos.check.leat vectors.leat dup.leat",
                                       "with scores, embeddings and duplicates"},
                                      {"leat view photos.leat --selection chosen.leat",
                                       "look at a selection and change it"},
                                      {NULL, NULL}},
    .description =
        "Serves a page on 127.0.0.1 until Ctrl-C. It shows the images as a grid of thumbnails that scrolls "
        "through millions; sorts and filters by any column; searches keys; shows histograms, groups of "
        "equal values, a map of vectors, similar images, and all values of a sample. Images can be selected "
        "and the selection saved as a new pack, which --select of other commands takes.\n\n"
        "Columns are packs that were made from PACK, by leat check, leat dedup images, leat embed or leat "
        "select: they name its fingerprint, and those of other packs are refused.\n\n"
        "The address has a random token: nothing is answered without it. The page loads nothing from the "
        "net.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack with images"},
                                   {.name = "COLUMNS",
                                    .path = true,
                                    .optional = true,
                                    .many = true,
                                    .help = "after --with: packs of columns made from PACK"},
                                   {.name = NULL}},
    .options = {{"Viewing", options}},
    .json = (const cli_key[]){{"url", "address of the page"},
                              {"port", "its port"},
                              {"samples", "images"},
                              {"columns", "columns of all packs"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
