/* SPDX-License-Identifier: Apache-2.0
 *
 * sample_path: the whole path of one sample on one core, without the loader: decode the crop,
 * Pillow-exact bilinear resize to 224, flip, 8-bit planes into the batch. Stored as JPEG, with
 * and without entry points, and as tiles, on each instruction set that the machine has, beside
 * libjpeg-turbo (called here) in full followed by leat's resize of the crop, and with `like=fast`,
 * whose distance from the exact pixels is reported. Methods alternate within a repeat.
 *
 *   sample_path [-m METHOD] [-s FILE] [-t] [DIR] [REPEATS]
 *
 *   DIR        or $LEAT_IMAGES: a folder of JPEGs, or of such folders
 *   -m METHOD  only methods whose name contains this
 *   -s FILE    writes the samples (224 x 224, three planes) to FILE and a JSON line per image
 *              with its path and crop to stdout: for bench/vs_pillow_path.py
 *   -t         takes turns: each repeat waits for a line on stdin and ends with one on stdout
 *
 * One JSON line per method on stdout; remarks on stderr. Exit 1 when pixels differ.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"
#include "codec/jpeg_coef.h"
#include "codec/jpeg_entries.h"
#include "codec/planes.h"
#include "codec/tile/tile.h"
#include "op/pipeline.h"
#include "probe/cpu.h"

enum { IMAGES_MAX = 2048, REPEATS_MAX = 999, TRAIN_EVERY = 4, OUT_BYTES = 3 * 224 * 224 };

typedef struct stored {
    uint8_t *data;
    size_t len;
    leat__image_info info;
} stored;

typedef struct picture {
    char *path;
    stored jpeg, tiled[2]; /* by density; data NULL when it stays a JPEG */
    leat__buf entries;     /* of the JPEG; empty when it has none */
} picture;

static picture pictures[IMAGES_MAX];
static uint32_t count;
static leat__tile_tables *tables;
static leat_error err;

static void die(const char *what)
{
    fprintf(stderr, "sample_path: %s: %s\n", what, err.message);
    exit(1);
}

static void load_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) return;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    stored *const s = &pictures[count].jpeg;
    s->data = leat__zalloc(LEAT__MEM_MISC, (size_t)size + LEAT__CODEC_PADDING);
    s->len = s->data ? fread(s->data, 1, (size_t)size, f) : 0;
    fclose(f);
    if (s->len > 0 && leat__codec_sniff(s->data, s->len) == LEAT__CODEC_JPEG &&
        leat__codec_probe(LEAT__CODEC_JPEG, s->data, s->len, &s->info, &err) == 0)
        pictures[count++].path = strdup(path);
    else leat__free(s->data);
}

static void load_folder(const char *path, int depth)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && count < IMAGES_MAX && (e = readdir(d)) != NULL) {
        char name[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (leat__str_ends_nocase(name, ".jpeg") || leat__str_ends_nocase(name, ".jpg")) load_file(name);
        else if (depth > 0) load_folder(name, depth - 1);
    }
    if (d) closedir(d);
}

static void tile_one(leat__tile_encoder *encoder, const leat__jpeg_coefs *coefs, picture *p,
                     leat__tile_density density, leat__buf *out)
{
    stored *const t = &p->tiled[density];
    leat__tile_kept why = LEAT__TILE_KEPT_DAMAGED;
    const leat__tile_encode_opts opts = {.density = density};
    leat__buf_clear(out);
    if (leat__tile_encode(encoder, coefs, p->jpeg.data, p->jpeg.len, &opts, out, &why, &err) != 0)
        die("encode");
    if (why != LEAT__TILE_KEPT_NONE) return;
    t->len = out->len;
    t->data = leat__zalloc(LEAT__MEM_MISC, out->len + LEAT__CODEC_PADDING);
    if (!t->data) die("memory");
    memcpy(t->data, out->data, out->len);
    if (leat__codec_probe(LEAT__CODEC_TILE, t->data, t->len, &t->info, &err) != 0) die("probe");
}

static void tile_all(void)
{
    leat__jpeg_coef_reader *reader;
    leat__tile_trainer *trainer;
    leat__tile_encoder *encoder;
    leat__jpeg_coefs coefs;
    leat__buf blob, out;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 28);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 28);
    if (leat__jpeg_coef_reader_open(&reader, &err) != 0) die("reader");
    if (leat__tile_trainer_open(&trainer, &err) != 0) die("trainer");
    for (uint32_t i = 0; i < count; i += TRAIN_EVERY) {
        const stored *const s = &pictures[i].jpeg;
        if (leat__jpeg_coef_read(reader, s->data, s->len, NULL, &coefs, &err) == 0 &&
            leat__tile_trainer_add(trainer, &coefs, s->data, s->len, &err) != 0)
            die("train");
    }
    if (leat__tile_trainer_finish(trainer, &blob, &err) != 0) die("tables");
    if (leat__tile_tables_open(&tables, blob.data, blob.len, &err) != 0) die("tables");
    if (leat__tile_encoder_open(&encoder, tables, &err) != 0) die("encoder");
    for (uint32_t i = 0; i < count; i++) {
        const stored *const s = &pictures[i].jpeg;
        if (leat__jpeg_coef_read(reader, s->data, s->len, NULL, &coefs, &err) != 0) continue;
        tile_one(encoder, &coefs, &pictures[i], LEAT__TILE_SMALL, &out);
        tile_one(encoder, &coefs, &pictures[i], LEAT__TILE_FAST, &out);
    }
    leat__tile_encoder_close(&encoder);
    leat__tile_trainer_close(&trainer);
    leat__jpeg_coef_reader_close(&reader);
    leat__buf_reset(&blob);
    leat__buf_reset(&out);
}

static void index_all(void)
{
    leat__jpeg_scan *scan;
    size_t bytes = 0, index = 0;
    uint32_t with = 0;
    if (leat__jpeg_scan_open(&scan, &err) != 0) die("scan");
    for (uint32_t i = 0; i < count; i++) {
        picture *const p = &pictures[i];
        bool whole_file;
        leat__buf_init(&p->entries, LEAT__MEM_MISC, 1 << 28);
        bytes += p->jpeg.len;
        if (leat__jpeg_entries_make(scan, p->jpeg.data, p->jpeg.len, NULL, NULL, &p->entries, &whole_file,
                                    &err) != 0)
            die("entry points");
        index += p->entries.len;
        with += p->entries.len > 0;
    }
    fprintf(stderr, "%u of %u have entry points: %.3f %% of their bytes\n", with, count,
            100.0 * (double)index / (double)bytes);
    leat__jpeg_scan_close(&scan);
}

/* ---- methods ---- */

typedef struct method {
    const char *name;
    uint32_t keep;  /* CPU flags */
    uint32_t needs; /* CPU flags without which it is left out: its name would be wrong */
    bool tiled, entries;
    bool full; /* the whole image is decoded first, by libjpeg-turbo */
    bool fast; /* like=fast: approximate pixels; the difference is reported */
    leat__tile_density density;
    leat__pipeline_worker *worker;
    double us[REPEATS_MAX];
} method;

#define AVX2_ROW .keep = LEAT__CPU_SSE42 | LEAT__CPU_AVX2, .needs = LEAT__CPU_AVX2
#define AVX512_ROW .keep = ~0u, .needs = LEAT__CPU_AVX512

static method methods[] = {
    {.name = "libjpeg-turbo full + scalar resize", .keep = LEAT__CPU_SSE42, .full = true},
    {.name = "libjpeg-turbo full + resize, avx2", AVX2_ROW, .full = true},
    {.name = "libjpeg-turbo full + resize, avx512", AVX512_ROW, .full = true},
    {.name = "keep (region), scalar", .keep = LEAT__CPU_SSE42},
    {.name = "keep (region), avx2", AVX2_ROW},
    {.name = "keep (region), avx512", AVX512_ROW},
    {.name = "keep (region, entry index), scalar", .keep = LEAT__CPU_SSE42, .entries = true},
    {.name = "keep (region, entry index), avx2", AVX2_ROW, .entries = true},
    {.name = "keep (region, entry index), avx512", AVX512_ROW, .entries = true},
    {.name = "tiled, scalar", .keep = LEAT__CPU_SSE42, .tiled = true},
    {.name = "tiled, avx2", AVX2_ROW, .tiled = true},
    {.name = "tiled, avx512", AVX512_ROW, .tiled = true},
    {.name = "tiled (plain bitmaps), avx2", AVX2_ROW, .tiled = true, .density = LEAT__TILE_FAST},
    {.name = "tiled (plain bitmaps), avx512", AVX512_ROW, .tiled = true, .density = LEAT__TILE_FAST},
    {.name = "keep (region, entry index), fast, avx512", AVX512_ROW, .entries = true, .fast = true},
    {.name = "tiled, fast, scalar", .keep = LEAT__CPU_SSE42, .tiled = true, .fast = true},
    {.name = "tiled, fast, avx2", AVX2_ROW, .tiled = true, .fast = true},
    {.name = "tiled, fast, avx512", AVX512_ROW, .tiled = true, .fast = true},
    {.name = "tiled (plain bitmaps), fast, avx2",
     AVX2_ROW,
     .tiled = true,
     .density = LEAT__TILE_FAST,
     .fast = true},
    {.name = "tiled (plain bitmaps), fast, avx512",
     AVX512_ROW,
     .tiled = true,
     .density = LEAT__TILE_FAST,
     .fast = true},
};

static leat__pipeline *pipelines[2]; /* exact, fast */
static leat__planes whole;

/* The peer: the whole image, interleaved, then split into planes. */
static int decode_plainly(const stored *s)
{
    static uint8_t row[1 << 18];
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr mgr;
    JSAMPROW at = row;
    c.err = jpeg_std_error(&mgr);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, s->data, s->len);
    jpeg_read_header(&c, TRUE);
    LEAT_TRY(leat__planes_resize(&whole, s->info.width, s->info.height, s->info.channels, &err));
    c.out_color_space = s->info.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&c);
    for (uint32_t y = 0; y < whole.height; y++) {
        uint8_t *plane[4] = {0};
        for (uint32_t k = 0; k < whole.channels; k++) plane[k] = whole.plane[k] + y * whole.stride;
        jpeg_read_scanlines(&c, &at, 1);
        leat__planar_split(row, whole.width, whole.channels, plane);
    }
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return 0;
}

static int run_one(method *m, uint32_t i, uint8_t *out)
{
    const leat__draw_key key = {1, 0, i};
    const stored *const tiled = &pictures[i].tiled[m->density];
    const stored *const s = m->tiled && tiled->data ? tiled : &pictures[i].jpeg;
    if (m->full) {
        LEAT_TRY(decode_plainly(s));
        return leat__pipeline_run_pixels(pipelines[0], m->worker, &whole, &key, out, &err);
    }
    leat__encoded e = {.info = &s->info, .data = s->data, .len = s->len, .tables = tables};
    if (m->entries && pictures[i].entries.len > 0) {
        e.entries = (const uint8_t *)pictures[i].entries.data;
        e.entries_len = pictures[i].entries.len;
    }
    return leat__pipeline_run(pipelines[m->fast], m->worker, &e, &key, out, &err);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint32_t cpu_flags; /* before any of them was masked */

static bool runs_here(const method *m)
{
    return (m->needs & ~cpu_flags) == 0;
}

static bool chosen(const method *m, const char *only)
{
    return runs_here(m) && (!only || strstr(m->name, only));
}

/* Differences of the fast pixels from the exact ones. */
static struct {
    uint64_t values, off[256], squares; /* off: by how many levels */
} distance;

static void compare(const uint8_t *exact, const uint8_t *fast)
{
    for (uint32_t i = 0; i < OUT_BYTES; i++) {
        const int d = abs(exact[i] - fast[i]);
        distance.off[d]++;
        distance.squares += (uint64_t)(d * d);
    }
    distance.values += OUT_BYTES;
}

static void report_distance(void)
{
    static const int beyond[] = {0, 1, 2, 4, 8};
    double sum = 0;
    int most = 0;
    for (int d = 0; d < 256; d++) {
        sum += (double)distance.off[d] * d;
        if (distance.off[d]) most = d;
    }
    const double n = (double)distance.values;
    printf("{\"bench\":\"sample_path\",\"fast_against_exact\":{\"mean\":%.4f,\"max\":%d,"
           "\"psnr_db\":%.2f",
           sum / n, most, 10 * log10(255.0 * 255.0 * n / (double)LEAT_MAX(distance.squares, 1u)));
    for (size_t i = 0; i < LEAT_COUNT(beyond); i++) {
        uint64_t more = 0;
        for (int d = beyond[i] + 1; d < 256; d++) more += distance.off[d];
        printf(",\"share_off_by_more_than_%d\":%.6f", beyond[i], (double)more / n);
    }
    printf("}}\n");
}

/* All exact methods give the same pixels, and so do all fast ones. */
static uint32_t check_pixels(void)
{
    static uint8_t want[2][OUT_BYTES], got[OUT_BYTES];
    uint32_t bad = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool known[2] = {false, false};
        for (size_t k = 0; k < LEAT_COUNT(methods); k++) {
            const bool fast = methods[k].fast;
            if (!runs_here(&methods[k])) continue;
            leat__cpu_mask(methods[k].keep);
            if (run_one(&methods[k], i, known[fast] ? got : want[fast]) != 0) die(methods[k].name);
            if (known[fast] && memcmp(want[fast], got, OUT_BYTES) != 0) bad++;
            known[fast] = true;
        }
        compare(want[0], want[1]);
    }
    return bad;
}

/* Writes the data another library needs to make the same samples: those of the last exact
 * method. */
static void write_samples(const char *path)
{
    static uint8_t out[OUT_BYTES];
    method *exact = &methods[LEAT_COUNT(methods) - 1];
    while (exact->fast || !runs_here(exact)) exact--;
    FILE *const f = fopen(path, "wb");
    if (!f) die(path);
    leat__cpu_mask(~0u);
    for (uint32_t i = 0; i < count; i++) {
        const leat__image_info *const info = &pictures[i].jpeg.info;
        const leat__draw_key key = {1, 0, i};
        leat__recipe recipe;
        if (leat__pipeline_draw(pipelines[0], &key, info->width, info->height, &recipe, &err) != 0 ||
            run_one(exact, i, out) != 0)
            die("samples");
        if (fwrite(out, 1, sizeof out, f) != sizeof out) die(path);
        const leat__step *const crop = &recipe.step[0];
        const bool flip = recipe.step[recipe.count - 1].kind == LEAT__STEP_FLIP_H;
        printf("{\"path\":\"%s\",\"crop\":[%d,%d,%u,%u],\"flip\":%s}\n", pictures[i].path, crop->x, crop->y,
               crop->width, crop->height, flip ? "true" : "false");
    }
    fclose(f);
    fflush(stdout);
}

static void measure(method *m, int repeat)
{
    static uint8_t out[OUT_BYTES];
    leat__cpu_mask(m->keep);
    const uint64_t start = leat__clock_thread_ns();
    for (uint32_t i = 0; i < count; i++)
        if (run_one(m, i, out) != 0) die(m->name);
    m->us[repeat] = (double)(leat__clock_thread_ns() - start) / 1e3 / count;
}

static void report(method *m, int repeats)
{
    qsort(m->us, (size_t)repeats, sizeof *m->us, by_value);
    printf("{\"bench\":\"sample_path\",\"method\":\"%s\",\"images\":%u,\"us_median\":%.1f,"
           "\"us_min\":%.1f,\"us_max\":%.1f,\"images_per_s\":%.0f}\n",
           m->name, count, m->us[repeats / 2], m->us[0], m->us[repeats - 1], 1e6 / m->us[repeats / 2]);
}

static void wait_for_turn(void)
{
    int c;
    while ((c = getchar()) != '\n' && c != EOF) {
    }
}

static void run(const char *only, int repeats, bool turns)
{
    for (int r = 0; r < repeats; r++) {
        if (turns) wait_for_turn();
        for (size_t k = 0; k < LEAT_COUNT(methods); k++)
            if (chosen(&methods[k], only)) measure(&methods[k], r);
        if (turns) {
            printf("{\"turn\":%d}\n", r);
            fflush(stdout);
        }
    }
    for (size_t k = 0; k < LEAT_COUNT(methods); k++)
        if (chosen(&methods[k], only)) report(&methods[k], repeats);
}

static void release(void)
{
    for (size_t k = 0; k < LEAT_COUNT(methods); k++) leat__pipeline_worker_close(&methods[k].worker);
    for (uint32_t i = 0; i < count; i++) {
        leat__free(pictures[i].jpeg.data);
        for (int d = 0; d < 2; d++) leat__free(pictures[i].tiled[d].data);
        leat__buf_reset(&pictures[i].entries);
        free(pictures[i].path);
    }
    for (int i = 0; i < 2; i++) leat__pipeline_close(&pipelines[i]);
    leat__planes_reset(&whole);
    leat__tile_tables_close(&tables);
}

int main(int argc, char **argv)
{
    const char *only = NULL, *samples = NULL;
    bool turns = false;
    for (int c; (c = getopt(argc, argv, "m:s:t")) != -1;) {
        if (c == 'm') only = optarg;
        else if (c == 's') samples = optarg;
        else if (c == 't') turns = true;
        else return 2;
    }
    const char *dir = optind < argc ? argv[optind] : getenv("LEAT_IMAGES");
    const int asked = optind + 1 < argc ? atoi(argv[optind + 1]) : 7;
    const int repeats = LEAT_MAX(1, LEAT_MIN(asked, REPEATS_MAX));
    if (!dir) {
        fprintf(stderr, "usage: sample_path [-m METHOD] [-s FILE] [-t] DIR [REPEATS]\n");
        return 2;
    }
    cpu_flags = leat__cpu_flags();
    load_folder(dir, 2);
    tile_all();
    index_all();
    static const char *const ops[2] = {"RandomResizedCrop(224); RandomHorizontalFlip()",
                                       "RandomResizedCrop(224, like=fast); RandomHorizontalFlip()"};
    for (int i = 0; i < 2; i++) {
        const leat__pipeline_opts opts = {.ops = ops[i]};
        if (leat__pipeline_open(&pipelines[i], &opts, &err) != 0) die("pipeline");
    }
    for (size_t k = 0; k < LEAT_COUNT(methods); k++) {
        leat__cpu_mask(methods[k].keep);
        if (leat__pipeline_worker_open(&methods[k].worker, &err) != 0) die("worker");
    }
    const uint32_t bad = check_pixels();
    fprintf(stderr, "%u images, %u results differ\n", count, bad);
    report_distance();
    if (samples) write_samples(samples);
    run(only, repeats, turns);
    release();
    return bad != 0;
}
