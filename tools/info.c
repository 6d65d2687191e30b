/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat info`: shows the content of a pack. Reads only the index.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <leat/pack.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "codec/codec.h"
#include "pack/kind.h"

#define CHUNK 4096
#define NAMES_SHOWN 10 /* classes named in the text */
#define NAME_BYTES 48  /* longer names are truncated */
#define NAMES_BYTES 1024

typedef struct facts {
    leat_pack *pack;
    leat_pack_info info;
    uint64_t codec[LEAT__CODEC_COUNT];
    uint64_t images, image_bytes, pixels, cost_us, resized, unchecked, absent, changed;
    uint64_t indexed, entries_bytes; /* JPEGs with entry points, and the bytes of these entry points */
    char created_with[64];
    json_t *provenance;
} facts;

/* Finds where the space of a payload in its sample ends: at the next payload, or at the end of the sample. */
static int end_of_room(facts *f, uint64_t sample, const leat_pack_cell *of, uint64_t *end, leat_error *err)
{
    leat_pack_row row;
    LEAT_TRY(leat_pack_rows(f->pack, sample, 1, &row, err));
    *end = row.size;
    for (uint32_t i = 0; i < leat_pack_field_count(f->pack); i++) {
        leat_pack_cell other;
        const uint32_t type = leat_pack_field(f->pack, i)->type;
        if (type == LEAT_FIELD_INT || type == LEAT_FIELD_FLOAT) continue;
        LEAT_TRY(leat_pack_cells(f->pack, i, sample, 1, &other, err));
        if (!other.absent && other.start > of->start) *end = LEAT_MIN(*end, other.start);
    }
    return 0;
}

static int count_images(facts *f, uint32_t field, leat_error *err)
{
    static leat_pack_cell cells[CHUNK];
    for (uint64_t at = 0; at < f->info.samples; at += CHUNK) {
        size_t n = (size_t)LEAT_MIN(f->info.samples - at, CHUNK);
        LEAT_TRY(leat_pack_cells(f->pack, field, at, n, cells, err));
        for (size_t i = 0; i < n; i++) {
            const leat_pack_image *m = &cells[i].image;
            if (cells[i].absent) {
                f->absent++;
                continue;
            }
            f->images++;
            if (m->codec < LEAT__CODEC_COUNT) f->codec[m->codec]++;
            f->image_bytes += cells[i].length;
            f->pixels += (uint64_t)m->width * m->height;
            f->cost_us += m->cost;
            f->resized += (m->flags & LEAT_PACK_IMAGE_RESIZED) != 0;
            f->changed += !leat_pack_image_exact(m);
            f->unchecked += (m->flags & LEAT_PACK_IMAGE_UNCHECKED) != 0;
            if (!(m->flags & LEAT_PACK_IMAGE_ENTRIES)) continue;
            f->indexed++;
            uint64_t end;
            LEAT_TRY(end_of_room(f, at + i, &cells[i], &end, err));
            f->entries_bytes += end - (cells[i].start + cells[i].length);
        }
    }
    return 0;
}

static int gather(facts *f, const char *path, leat_error *err)
{
    LEAT_TRY(leat_pack_open(&f->pack, path, NULL, err));
    LEAT_TRY(leat_pack_info_read(f->pack, &f->info, sizeof f->info));
    for (uint32_t i = 0; i < leat_pack_field_count(f->pack); i++)
        if (leat_pack_field(f->pack, i)->type == LEAT_FIELD_IMAGE) LEAT_TRY(count_images(f, i, err));
    f->provenance = json_loads(leat_pack_provenance(f->pack), 0, NULL);
    const char *with = json_string_value(json_object_get(f->provenance, "created_with"));
    snprintf(f->created_with, sizeof f->created_with, "%s", with ? with : "unknown");
    return 0;
}

/* Returns the number of images stored as files of any format, neither tiled nor raw. */
static uint64_t kept(const facts *f)
{
    uint64_t n = 0;
    for (int i = 1; i < LEAT__CODEC_COUNT; i++)
        if (i != LEAT__CODEC_RAW && i != LEAT__CODEC_TILE) n += f->codec[i];
    return n;
}

static uint64_t class_count(facts *f, uint32_t field)
{
    const char *const *names;
    uint64_t n = 0;
    if (leat_pack_classes(f->pack, field, &names, &n, NULL) != 0) return 0;
    return n;
}

/* Returns the kind of pixels of an image field; 0: 8-bit images of 1, 3 or 4 channels, or not an
 * image field. */
static leat__image_kind kind_of(facts *f, uint32_t field)
{
    leat__image_kind kind = 0;
    if (leat_pack_field(f->pack, field)->type != LEAT_FIELD_IMAGE ||
        leat__pack_image_kind(f->pack, field, &kind, NULL) != 0)
        return 0;
    return kind;
}

static void json_classes(facts *f, uint32_t field, leat__json *j)
{
    const char *const *names;
    uint64_t n = 0;
    if (leat_pack_classes(f->pack, field, &names, &n, NULL) != 0 || n == 0) return;
    leat__json_ku64(j, "classes", n);
    leat__json_key(j, "class_names");
    leat__json_array(j);
    for (uint64_t i = 0; i < n; i++) leat__json_str(j, names[i]);
    leat__json_end(j);
}

static void json_fields(facts *f, leat__json *j)
{
    leat__json_key(j, "fields");
    leat__json_array(j);
    for (uint32_t i = 0; i < leat_pack_field_count(f->pack); i++) {
        const leat_field *field = leat_pack_field(f->pack, i);
        leat__json_object(j);
        leat__json_kstr(j, "name", field->name);
        leat__json_kstr(j, "type", leat_field_type_name(field->type));
        if (field->dtype) leat__json_kstr(j, "dtype", leat_dtype_name(field->dtype));
        const leat__image_kind kind = kind_of(f, i);
        if (kind != 0) {
            leat__json_kstr(j, "dtype", leat_dtype_name(leat__sample_dtype(leat__kind_type(kind))));
            leat__json_ku64(j, "channels", leat__kind_channels(kind));
        }
        if (field->type == LEAT_FIELD_RAGGED) leat__json_ku64(j, "ndim", field->ndim);
        if (field->type == LEAT_FIELD_ARRAY) {
            leat__json_key(j, "shape");
            leat__json_array(j);
            for (uint32_t d = 0; d < field->ndim; d++) leat__json_u64(j, field->shape[d]);
            leat__json_end(j);
        }
        if (field->type == LEAT_FIELD_INT) json_classes(f, i, j);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static int print_json(cli *c, facts *f)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    char hex[24];
    leat__json_ku64(j, "samples", f->info.samples);
    json_fields(f, j);
    leat__json_key(j, "images");
    leat__json_object(j);
    if (kept(f)) leat__json_ku64(j, "keep", kept(f));
    if (f->codec[LEAT__CODEC_TILE]) leat__json_ku64(j, "tiled", f->codec[LEAT__CODEC_TILE]);
    if (f->codec[LEAT__CODEC_RAW]) leat__json_ku64(j, "raw", f->codec[LEAT__CODEC_RAW]);
    leat__json_end(j);
    leat__json_key(j, "codecs");
    leat__json_object(j);
    for (int i = 1; i < LEAT__CODEC_COUNT; i++)
        if (f->codec[i]) leat__json_ku64(j, leat__codec_name((leat__codec_id)i), f->codec[i]);
    leat__json_end(j);
    leat__json_ku64(j, "bytes", f->info.bytes);
    leat__json_kstr(j, "created_with", f->created_with);
    leat__json_ku64(j, "image_bytes", f->image_bytes);
    leat__json_ku64(j, "pixels", f->pixels);
    leat__json_ku64(j, "decode_cost_us", f->cost_us);
    leat__json_ku64(j, "resized", f->resized);
    leat__json_ku64(j, "changed", f->changed);
    leat__json_ku64(j, "unchecked", f->unchecked);
    leat__json_ku64(j, "indexed", f->indexed);
    leat__json_ku64(j, "entries_bytes", f->entries_bytes);
    leat__json_ku64(j, "pages", f->info.pages);
    leat__json_ku64(j, "page_bytes", f->info.page_bytes);
    leat__json_ku64(j, "max_page_bytes", f->info.max_page_bytes);
    leat__json_ku64(j, "max_sample_bytes", f->info.max_sample_bytes);
    leat__json_ku64(j, "shards", f->info.shards);
    leat__json_ku64(j, "dropped", f->info.dropped);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)f->info.fingerprint);
    leat__json_kstr(j, "fingerprint", hex);
    snprintf(hex, sizeof hex, "%u.%u", f->info.version_major, f->info.version_minor);
    leat__json_kstr(j, "format", hex);
    leat__json_key(j, "provenance");
    leat__json_raw(j, leat_pack_provenance(f->pack));
    return cli_object_end(c, &page);
}

/* Prints the number of classes and the first names. */
static void print_classes(cli *c, facts *f, uint32_t field)
{
    const char *const *names;
    uint64_t n = 0;
    leat__buf text;
    if (leat_pack_classes(f->pack, field, &names, &n, NULL) != 0) return;
    leat__buf_init(&text, LEAT__MEM_MISC, NAMES_BYTES);
    for (uint64_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        char name[NAME_BYTES];
        leat__buf_printf(&text, "%s%s", i > 0 ? ", " : "", leat__str_shown(names[i], name, sizeof name));
    }
    if (n > NAMES_SHOWN) leat__buf_puts(&text, ", ...");
    cli_row(c, leat_pack_field(f->pack, field)->name, "int, %llu class%s: %s", (unsigned long long)n,
            n == 1 ? "" : "es", leat__buf_str(&text));
    leat__buf_reset(&text);
}

static void print_fields(cli *c, facts *f)
{
    cli_heading(c, "Fields");
    for (uint32_t i = 0; i < leat_pack_field_count(f->pack); i++) {
        const leat_field *field = leat_pack_field(f->pack, i);
        uint64_t classes = field->type == LEAT_FIELD_INT ? class_count(f, i) : 0;
        const leat__image_kind kind = kind_of(f, i);
        char text[LEAT__KIND_TEXT];
        if (kind != 0) cli_row(c, field->name, "image: %s", leat__kind_text(kind, text));
        else if (classes) print_classes(c, f, i);
        else if (field->dtype)
            cli_row(c, field->name, "%s of %s, %u dimension%s", leat_field_type_name(field->type),
                    leat_dtype_name(field->dtype), field->ndim, cli_s(field->ndim));
        else cli_row(c, field->name, "%s", leat_field_type_name(field->type));
    }
}

static void print_images(cli *c, const facts *f)
{
    char a[24];
    if (f->images == 0) return;
    cli_heading(c, "Images");
    for (int i = 1; i < LEAT__CODEC_COUNT; i++)
        if (f->codec[i])
            cli_row(c, leat__codec_name((leat__codec_id)i), "%llu", (unsigned long long)f->codec[i]);
    cli_row(c, "mean size", "%s, %.2f megapixels",
            leat__format_bytes(f->image_bytes / f->images, a, sizeof a),
            (double)f->pixels / (double)f->images / 1e6);
    cli_row(c, "decode cost", "%.0f us each on the reference machine",
            (double)f->cost_us / (double)f->images);
    if (f->resized) cli_row(c, "re-encoded", "%llu", (unsigned long long)f->resized);
    if (f->changed)
        cli_row(c, "changed", "%llu, which cannot be exported byte for byte", (unsigned long long)f->changed);
    if (f->unchecked) cli_row(c, "unchecked", "%llu", (unsigned long long)f->unchecked);
    if (f->indexed)
        cli_row(c, "entry points", "%llu image%s, %.2f %% of the bytes of all images",
                (unsigned long long)f->indexed, cli_s(f->indexed),
                100.0 * (double)f->entries_bytes / (double)LEAT_MAX(f->image_bytes, 1u));
}

static void print_text(cli *c, facts *f)
{
    char a[24];
    cli_heading(c, leat_pack_path(f->pack));
    cli_row(c, "samples", "%llu", (unsigned long long)f->info.samples);
    cli_row(c, "bytes", "%s in %u file%s", leat__format_bytes(f->info.bytes, a, sizeof a), f->info.shards,
            f->info.shards == 1 ? "" : "s");
    cli_row(c, "pages", "%llu of %s", (unsigned long long)f->info.pages,
            leat__format_bytes(f->info.page_bytes, a, sizeof a));
    cli_row(c, "format", "%u.%u", f->info.version_major, f->info.version_minor);
    cli_row(c, "created with", "%s", f->created_with);
    if (f->info.dropped > 0)
        cli_row(c, "dropped", "%llu sample%s whose bytes are still there; leat compact removes them",
                (unsigned long long)f->info.dropped, cli_s(f->info.dropped));
    cli_row(c, "fingerprint", "%016llx", (unsigned long long)f->info.fingerprint);
    print_fields(c, f);
    print_images(c, f);
}

static int run(cli *c)
{
    leat_error err = {0};
    facts f = {0};
    int rc = gather(&f, cli_arg(c, 0), &err);
    int code = CLI_OK;
    if (rc != 0) code = cli_fail(c, &err);
    else if (c->json) code = print_json(c, &f);
    else print_text(c, &f);
    json_decref(f.provenance);
    leat_pack_close(&f.pack);
    return code;
}

#define FIELD_NAME(id, value, name) ", " name
#define FIELD_NAMES (&(LEAT_FIELD_MAP(FIELD_NAME))[2]) /* "image, bytes, …" */

const cli_command cli_cmd_info = {
    .name = "info",
    .summary = "show what a pack contains",
    .examples = (const cli_example[]){{"leat info photos.leat", "samples, fields, images, size"},
                                      {"leat info photos.leat --json", "the same for scripts"},
                                      {NULL, NULL}},
    .description = "Reads the index of a pack, not its samples: fields, how images are stored, "
                   "sizes, what it was made from and with.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .json = (const cli_key[]){{"samples", "samples"},
                              {"fields[].name", "name of a field"},
                              {"fields[].type", FIELD_NAMES},
                              {"fields[].classes", "number of classes of an int field"},
                              {"fields[].class_names", "their names, by value"},
                              {"fields[].dtype", "element type of arrays, and of images that are not 8-bit"},
                              {"fields[].channels", "of such images"},
                              {"fields[].shape", "of arrays"},
                              {"fields[].ndim", "number of dimensions of ragged arrays"},
                              {"images", "images by mode: keep, tiled, raw"},
                              {"codecs", "images by format"},
                              {"bytes", "bytes of all files"},
                              {"created_with", "program and version that wrote it"},
                              {"image_bytes", "stored bytes of all images"},
                              {"pixels", "pixels of all images"},
                              {"decode_cost_us", "predicted time to decode all images once"},
                              {"resized", "images that are not the source's pixels"},
                              {"changed", "images that cannot be exported byte for byte"},
                              {"unchecked", "images that were not decoded when packed"},
                              {"indexed", "JPEGs with entry points: regions decode faster"},
                              {"entries_bytes", "stored bytes of all entry points"},
                              {"pages", "pages"},
                              {"page_bytes", "target size of a page"},
                              {"max_page_bytes", "size of the largest page"},
                              {"max_sample_bytes", "size of the largest sample"},
                              {"shards", "files with samples"},
                              {"dropped", "deleted or updated samples that still take room"},
                              {"fingerprint", "equal for equal packs"},
                              {"format", "version of the format"},
                              {"provenance", "source and settings, as recorded"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
