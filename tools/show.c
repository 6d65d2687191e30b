/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat show`: shows images of a pack in the terminal, or as a contact sheet.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/pack.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "cli_frame.h"
#include "codec/tile/tile.h"
#include "io/file.h"
#include "op/pipeline.h"
#include "show_draw.h"

#define SHOWN_MAX 1024
#define GAP 4u /* pixels between images of a sheet */

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "FILE.png", "write a contact sheet here, as PNG, instead of showing it"),
    CLI_FLAG("force", 'f', "replace a PNG file at --output"),
    CLI_INT("count", 'n', "12", 1, SHOWN_MAX, "N", "without keys: how many samples, from the first on"),
    CLI_INT("size", 0, "0", 0, 4096, "N",
            "longest side of an image in pixels, never enlarged; 0 = 160, or what the terminal holds"),
    CLI_STRING("field", 0, NULL, "NAME", "image field; else the first"),
    CLI_CHOICE("as", 0, "auto", "auto|blocks|sixel|kitty",
               "how images are drawn; auto = what the terminal says"),
    CLI_END,
};

typedef struct show {
    cli *c;
    leat_pack *pack;
    leat__tile_tables *tables;
    leat_sample *sample;
    leat__pipeline_worker *worker;
    uint32_t field, side, columns;
    show_picture sheet;
    leat__buf lines; /* one line per image, or with --json one object */
    leat__json json;
    cli_progress bar;
} show;

static int open_all(show *s, leat_error *err)
{
    const void *blob;
    size_t size;
    const char *name = cli_str(s->c, "field");
    LEAT_TRY(leat_pack_open(&s->pack, cli_arg(s->c, 0), NULL, err));
    uint32_t n = leat_pack_field_count(s->pack);
    for (s->field = 0; s->field < n; s->field++) {
        const leat_field *f = leat_pack_field(s->pack, s->field);
        if (f->type == LEAT_FIELD_IMAGE && (name == NULL || strcmp(f->name, name) == 0)) break;
    }
    if (s->field == n)
        return leat__fail(err, LEAT_EINVAL, "%s: has no image field%s%s", leat_pack_path(s->pack),
                          name != NULL ? " " : "", name != NULL ? name : "");
    int rc = leat_pack_blob(s->pack, "tile-tables", &blob, &size, err);
    if (rc == 0) rc = leat__tile_tables_open(&s->tables, blob, size, err);
    if (rc != 0 && rc != LEAT_ENOENT) return rc;
    LEAT_TRY(leat_sample_open(&s->sample, s->pack, err));
    return leat__pipeline_worker_open(&s->worker, err);
}

static void close_all(show *s)
{
    leat__pipeline_worker_close(&s->worker);
    leat_sample_close(&s->sample);
    leat__tile_tables_close(&s->tables);
    leat_pack_close(&s->pack);
    leat__free(s->sheet.rgb);
    leat__buf_reset(&s->lines);
}

/* Computes the width and height of an image that fits a square of `side`; never enlarges. */
static void fit(uint32_t side, uint32_t *width, uint32_t *height)
{
    double scale = LEAT_MIN(1.0, (double)side / LEAT_MAX(*width, *height));
    *width = LEAT_MAX((uint32_t)lround(*width * scale), 1u);
    *height = LEAT_MAX((uint32_t)lround(*height * scale), 1u);
}

static int make(show *s, const leat__encoded *image, uint32_t width, uint32_t height, uint8_t *out,
                leat_error *err)
{
    char ops[128];
    leat__pipeline *p = NULL;
    leat__draw_key key = {0};
    snprintf(ops, sizeof ops, "Resize((%u, %u)); ToLayout(nhwc)", height, width);
    leat__pipeline_opts o = {.ops = ops};
    LEAT_TRY(leat__pipeline_open(&p, &o, err));
    int rc = leat__pipeline_run(p, s->worker, image, &key, out, err);
    leat__pipeline_close(&p);
    return rc;
}

/* Draws the image of the sample last read at position `n` of the sheet. */
static int place(show *s, const leat_view *v, uint32_t n, leat_error *err)
{
    leat__image_info info;
    LEAT_TRY(leat__codec_probe((leat__codec_id)v->image.codec, v->data, v->size, &info, err));
    bool turned = v->image.orientation >= 5;
    uint32_t width = turned ? info.height : info.width, height = turned ? info.width : info.height;
    fit(s->side, &width, &height);
    uint8_t *pixels = leat__alloc(LEAT__MEM_MISC, (size_t)width * height * 3);
    if (pixels == NULL) return leat__fail_nomem(err, (size_t)width * height * 3, "an image");
    leat__encoded image = {.info = &info,
                           .data = v->data,
                           .len = v->size,
                           .tables = s->tables,
                           .entries = v->entries,
                           .entries_len = v->entries_size,
                           .orientation = v->image.orientation};
    int rc = make(s, &image, width, height, pixels, err);
    uint32_t gap = s->columns > 1 ? GAP : 0;
    uint32_t x = n % s->columns * (s->side + gap), y = n / s->columns * (s->side + gap);
    for (uint32_t row = 0; row < height && rc == 0; row++)
        memcpy(s->sheet.rgb + ((size_t)(y + row) * s->sheet.width + x) * 3, pixels + (size_t)row * width * 3,
               (size_t)width * 3);
    leat__free(pixels);
    return rc;
}

static void describe_json(show *s, uint64_t number, const leat_view *v, const leat_error *why)
{
    size_t size;
    const char *key = leat_sample_key(s->sample, &size);
    leat__json *j = &s->json;
    leat__json_object(j);
    leat__json_ku64(j, "sample", number);
    leat__json_key(j, "key");
    leat__json_strn(j, key, size);
    leat__json_ku64(j, "width", v->image.width);
    leat__json_ku64(j, "height", v->image.height);
    leat__json_ku64(j, "channels", v->image.channels);
    leat__json_kstr(j, "codec", v->data == NULL ? "" : leat__codec_name((leat__codec_id)v->image.codec));
    leat__json_ku64(j, "bytes", v->size);
    if (why != NULL) leat__json_kstr(j, "error", why->message);
    leat__json_end(j);
}

static void describe(show *s, uint64_t number, const leat_view *v, const leat_error *why)
{
    size_t size;
    const char *key = leat_sample_key(s->sample, &size);
    if (s->c->json) {
        describe_json(s, number, v, why);
        return;
    }
    for (size_t i = 0; i < size && i < 200; i++) /* a hostile key must not send escape sequences */
        (void)leat__buf_printf(&s->lines, "%c", (unsigned char)key[i] < 32 || key[i] == 127 ? '?' : key[i]);
    if (why != NULL) (void)leat__buf_printf(&s->lines, "  %s\n", why->message);
    else
        (void)leat__buf_printf(&s->lines, "  %ux%u %s\n", v->image.width, v->image.height,
                               leat__codec_name((leat__codec_id)v->image.codec));
}

static int show_one(show *s, uint64_t number, uint32_t n, uint32_t *bad, leat_error *err)
{
    leat_view view = {0};
    leat_error why = {0};
    LEAT_TRY(leat_sample_read(s->sample, number, err));
    LEAT_TRY(leat_sample_field(s->sample, s->field, &view, err));
    int rc = view.data == NULL ? leat__fail(&why, LEAT_EDATA, "no image") : place(s, &view, n, &why);
    if (rc != 0) ++*bad;
    describe(s, number, &view, rc != 0 ? &why : NULL);
    return 0;
}

/* Finds the longest side of all images, at most `most`. */
static int longest(show *s, const uint64_t *numbers, uint32_t count, uint32_t most, uint32_t *side,
                   leat_error *err)
{
    leat_view v = {0};
    *side = 1;
    for (uint32_t i = 0; i < count && *side < most; i++) {
        LEAT_TRY(leat_sample_read(s->sample, numbers[i], err));
        LEAT_TRY(leat_sample_field(s->sample, s->field, &v, err));
        if (v.data != NULL) *side = LEAT_MAX(*side, LEAT_MAX(v.image.width, v.image.height));
    }
    *side = LEAT_MIN(*side, most);
    return 0;
}

/* Chooses the grid: as square as possible within the terminal. Images are never enlarged, so no cell
 * is larger than the largest of them. */
static int lay_out(show *s, const uint64_t *numbers, uint32_t count, bool blocks, leat_error *err)
{
    uint32_t width = blocks ? (uint32_t)LEAT_MAX(cli_columns(STDOUT_FILENO), 20) : 0,
             asked = (uint32_t)cli_int(s->c, "size");
    s->columns = LEAT_MAX((uint32_t)ceil(sqrt((double)count)), 1u);
    if (blocks && count > 1) s->columns = LEAT_MIN(count, LEAT_MAX(width / 24, 1u));
    s->side = asked != 0 ? asked
              : blocks   ? LEAT_MIN(width / s->columns - (s->columns > 1 ? GAP : 0), 80u)
                         : 160;
    LEAT_TRY(longest(s, numbers, count, s->side, &s->side, err));
    uint32_t gap = s->columns > 1 ? GAP : 0, rows = (count + s->columns - 1) / s->columns;
    s->sheet.width = s->columns * (s->side + gap);
    s->sheet.height = rows * (s->side + gap);
    s->sheet.rgb = leat__zalloc(LEAT__MEM_MISC, (size_t)s->sheet.width * s->sheet.height * 3);
    return s->sheet.rgb != NULL ? 0 : leat__fail_nomem(err, 0, "a sheet");
}

static int find_all(show *s, uint64_t *numbers, uint32_t *count, leat_error *err)
{
    size_t keys = cli_arg_count(s->c) - 1;
    *count = 0;
    if (keys > SHOWN_MAX) return leat__fail(err, LEAT_EINVAL, "more than %d keys", SHOWN_MAX);
    for (; *count < keys; ++*count) {
        const char *key = cli_arg(s->c, *count + 1);
        LEAT_TRY(leat_pack_find(s->pack, key, strlen(key), &numbers[*count], err));
    }
    if (keys > 0) return 0;
    *count = (uint32_t)LEAT_MIN((uint64_t)cli_int(s->c, "count"), leat_pack_count(s->pack));
    for (uint32_t i = 0; i < *count; i++) numbers[i] = i;
    return *count > 0 ? 0 : leat__fail(err, LEAT_EDATA, "%s: has no samples", leat_pack_path(s->pack));
}

static int on_row(void *cookie, uint32_t rows)
{
    show *s = cookie;
    cli_progress_at(&s->bar, rows, 0, 0);
    return cli_interrupted(s->c);
}

static int write_sheet(show *s, leat__buf *out, leat_error *err)
{
    cli_progress_begin(&s->bar, s->c, "writing", "rows", s->sheet.height);
    int rc = show_png(&s->sheet, on_row, s, out, err);
    cli_progress_end(&s->bar);
    return rc;
}

static int write_out(show *s, show_how how, leat_error *err)
{
    leat__buf out;
    int rc = 0;
    const char *path = cli_str(s->c, "output"), *depth = getenv("COLORTERM");
    leat__buf_init(&out, LEAT__MEM_MISC, (size_t)1 << 31);
    if (path != NULL) rc = write_sheet(s, &out, err);
    else if (how == SHOW_KITTY) rc = show_kitty(&s->sheet, &out, err);
    else if (how == SHOW_SIXEL) show_sixel(&s->sheet, &out);
    else show_blocks(&s->sheet, depth != NULL && *depth != '\0', &out);
    if (rc == 0 && leat__buf_status(&out) != 0) rc = leat__fail_nomem(err, out.len, "a picture");
    if (rc == 0 && path != NULL) rc = leat__file_store(path, out.data, out.len, err);
    else if (rc == 0) cli_out_buf(s->c, &out);
    leat__buf_reset(&out);
    return rc;
}

static void begin_json(show *s)
{
    if (!s->c->json) return;
    leat__json_init(&s->json, &s->lines, 0);
    leat__json_object(&s->json);
    leat__json_key(&s->json, "images");
    leat__json_array(&s->json);
}

static void end_lines(show *s)
{
    if (!s->c->json) {
        cli_out_buf(s->c, &s->lines);
        return;
    }
    leat__json_end(&s->json);
    if (cli_str(s->c, "output") != NULL) leat__json_kstr(&s->json, "sheet", cli_str(s->c, "output"));
    leat__json_end(&s->json);
    (void)cli_json(s->c, &s->lines);
}

/* Checks the name before anything is read: a sheet is a PNG file, so its name must not have another
 * extension. */
static int check_name(const char *path, bool force, leat_error *err)
{
    LEAT_TRY(leat__file_spare_pack(path, err));
    LEAT_TRY(leat__file_only_kind(path, "\x89PNG\r\n\x1a\n", force, err));
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    if (dot == NULL || leat__str_ends_nocase(path, ".png")) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s: a contact sheet is written as PNG; give a name that ends in .png", path);
}

static int draw_all(show *s, const uint64_t *numbers, uint32_t count, uint32_t *bad, leat_error *err)
{
    int rc = 0;
    cli_progress_begin(&s->bar, s->c, "drawing", "images", count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = show_one(s, numbers[i], i, bad, err);
        cli_progress_at(&s->bar, i + 1, 0, *bad);
        if (rc == 0 && cli_interrupted(s->c)) rc = leat__fail(err, LEAT_ECANCELED, "interrupted");
    }
    cli_progress_end(&s->bar);
    return rc;
}

static int run(cli *c)
{
    leat_error err = {0};
    show s = {.c = c};
    static uint64_t numbers[SHOWN_MAX];
    uint32_t count = 0, bad = 0;
    show_how how = (show_how)cli_choice(c, "as");
    bool sheet = cli_str(c, "output") != NULL;
    if (cli_given(c, "count") && cli_arg_count(c) > 1)
        return cli_usage(c, "--count has no effect: all samples of the given keys are shown");
    if (sheet && cli_given(c, "as"))
        return cli_usage(c, "--as has no effect with --output: a contact sheet is written as PNG");
    if (cli_flag(c, "force") && !sheet) return cli_usage(c, "--force needs --output");
    bool nowhere = !sheet && !c->json && how == SHOW_AUTO && !isatty(STDOUT_FILENO);
    if (how == SHOW_AUTO)
        how = show_detect(getenv("TERM"), getenv("TERM_PROGRAM"), getenv("KITTY_WINDOW_ID"));
    leat__buf_init(&s.lines, LEAT__MEM_MISC, 16u << 20);
    begin_json(&s);
    int rc = sheet ? check_name(cli_str(c, "output"), cli_flag(c, "force"), &err) : 0;
    if (rc == 0) rc = open_all(&s, &err);
    if (rc == 0 && nowhere) {
        close_all(&s);
        return cli_usage(c, "stdout is not a terminal: give -o FILE.png, or say how with --as");
    }
    if (rc == 0) rc = find_all(&s, numbers, &count, &err);
    if (rc == 0) rc = lay_out(&s, numbers, count, !sheet && how == SHOW_BLOCKS, &err);
    if (rc == 0) rc = draw_all(&s, numbers, count, &bad, &err);
    if (rc == 0 && (sheet || !c->json)) rc = write_out(&s, how, &err);
    int code = rc != 0 ? cli_fail_output(c, &err) : bad > 0 ? CLI_DATA : CLI_OK;
    if (rc == 0) end_lines(&s);
    close_all(&s);
    return code;
}

const cli_command cli_cmd_show = {
    .name = "show",
    .summary = "show images of a pack in the terminal",
    .examples = (const cli_example[]){{"leat show photos.leat", "the first twelve"},
                                      {"leat show photos.leat cat/1.jpg", "one of them"},
                                      {"leat show photos.leat -n 100 -o sheet.png", "a contact sheet"},
                                      {NULL, NULL}},
    .description = "Draws images by kitty's protocol or sixels where the terminal says "
                   "that it knows them, else by half "
                   "blocks of colour. Then a line about each: key, size, how it is "
                   "stored. Images that cannot be decoded "
                   "say why, and the exit code is 4. With --json nothing is drawn "
                   "unless --output names a sheet.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"},
                                   {.name = "KEY", .optional = true, .many = true, .help = "keys of samples"},
                                   {.name = NULL}},
    .options = {{"Showing", options}},
    .json = (const cli_key[]){{"images[].sample", "number of the sample"},
                              {"images[].key", "its key"},
                              {"images[].width", "in pixels, as stored"},
                              {"images[].height", "in pixels, as stored"},
                              {"images[].channels", "per pixel"},
                              {"images[].codec", "how it is stored; empty when the sample has no image"},
                              {"images[].bytes", "stored bytes"},
                              {"images[].error", "why it cannot be decoded"},
                              {"sheet", "the contact sheet, with --output"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
