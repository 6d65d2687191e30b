/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_tile: cost and gain of tiling on real JPEGs. Tiles every image at both densities, checks
 * pixels and files, then decodes a RandomResizedCrop region of each image to RGB on one core:
 * libjpeg-turbo in full, libjpeg-turbo's own region decode, and the tiles with each instruction
 * set. Methods alternate within a repeat; figures are CPU time per image.
 *
 *   kernel_tile [DIR] [REPEATS] [IMAGES]      DIR or $LEAT_IMAGES: a folder of JPEGs, or of such folders;
 *                                             of which the first IMAGES
 *
 * One JSON line per result on stdout, remarks on stderr. Exit 1 when anything differs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> /* needs stdio.h before it */

#include <leat/version.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/jpeg_coef.h"
#include "codec/tile/tile.h"
#include "pictures.h"
#include "probe/cpu.h"

enum { IMAGES_MAX = 4096, METHODS_MAX = 16, REPEATS_MAX = 64, TRAIN_EVERY = 4 };

typedef struct picture {
    jpeg_file file;
    uint8_t *tiled[2]; /* by density; NULL when kept */
    size_t tiled_len[2];
    uint32_t x, y, width, height; /* the crop */
} picture;

static picture pictures[IMAGES_MAX];
static uint32_t picture_count, most = IMAGES_MAX;
static leat__tile_tables *tables;
static leat__decoder *decoder;
static leat_error err;

static void die(const char *what)
{
    fprintf(stderr, "kernel_tile: %s: %s\n", what, err.message);
    exit(1);
}

/* ---- loading ---- */

static bool take(const jpeg_file *j)
{
    pictures[picture_count++].file = *j;
    return picture_count < most;
}

/* torchvision's RandomResizedCrop: area 8 to 100 %, aspect 3/4 to 4/3. */
static void draw_crop(picture *p, uint64_t id)
{
    leat__rng rng;
    leat__rng_init(&rng, 1, 0, id, 0);
    p->x = p->y = 0;
    p->width = p->file.info.width;
    p->height = p->file.info.height;
    for (int i = 0; i < 10; i++) {
        double area = (double)p->file.info.width * p->file.info.height * leat__rng_range(&rng, 0.08, 1);
        double aspect = exp(leat__rng_range(&rng, log(3 / 4.), log(4 / 3.)));
        uint32_t w = (uint32_t)lrint(sqrt(area * aspect));
        uint32_t h = (uint32_t)lrint(sqrt(area / aspect));
        if (w == 0 || h == 0 || w > p->file.info.width || h > p->file.info.height) continue;
        p->x = (uint32_t)leat__rng_below(&rng, p->file.info.width - w + 1);
        p->y = (uint32_t)leat__rng_below(&rng, p->file.info.height - h + 1);
        p->width = w;
        p->height = h;
        return;
    }
}

/* ---- tiling ---- */

static void train(leat__jpeg_coef_reader *reader)
{
    leat__tile_trainer *trainer;
    leat__buf blob;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 24);
    if (leat__tile_trainer_open(&trainer, &err) != 0) die("trainer");
    for (uint32_t i = 0; i < picture_count; i += TRAIN_EVERY) {
        leat__jpeg_coefs coefs;
        picture *p = &pictures[i];
        if (leat__jpeg_coef_read(reader, p->file.data, p->file.len, NULL, &coefs, &err) == 0 &&
            leat__tile_trainer_add(trainer, &coefs, p->file.data, p->file.len, &err) != 0)
            die("training");
    }
    if (leat__tile_trainer_finish(trainer, &blob, &err) != 0) die("tables");
    if (leat__tile_tables_open(&tables, blob.data, blob.len, &err) != 0) die("tables");
    fprintf(stderr, "tables: %zu bytes, trained on %u images\n", blob.len,
            leat__tile_trainer_images(trainer));
    leat__tile_trainer_close(&trainer);
    leat__buf_reset(&blob);
}

static void tile_all(leat__jpeg_coef_reader *reader, leat__tile_density density)
{
    static const char *const names[] = {"small", "fast"};
    leat__tile_encoder *encoder;
    leat__buf out;
    uint64_t jpeg_bytes = 0, tiled_bytes = 0, header = 0, restore = 0;
    uint32_t kept[LEAT__TILE_KEPT_COUNT] = {0}, exact = 0;
    uint64_t start = leat__clock_thread_ns();

    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 28);
    if (leat__tile_encoder_open(&encoder, tables, &err) != 0) die("encoder");
    for (uint32_t i = 0; i < picture_count; i++) {
        picture *p = &pictures[i];
        leat__jpeg_coefs coefs;
        leat__tile_kept why = LEAT__TILE_KEPT_DAMAGED;
        leat__tile_encode_opts opts = {.density = density};
        if (leat__jpeg_coef_read(reader, p->file.data, p->file.len, NULL, &coefs, &err) == 0 &&
            leat__tile_encode(encoder, &coefs, p->file.data, p->file.len, &opts, &out, &why, &err) != 0)
            die("encode");
        kept[why]++;
        if (why != LEAT__TILE_KEPT_NONE) {
            fprintf(stderr, "kept: %s: %s\n", p->file.name, leat__tile_kept_text(why));
            continue;
        }
        leat__tile_facts facts;
        if (leat__tile_describe((uint8_t *)out.data, out.len, &facts, &err) != 0) die("facts");
        exact += facts.exact;
        if (!facts.exact) fprintf(stderr, "not restored byte for byte: %s\n", p->file.name);
        p->tiled[density] = calloc(1, out.len + LEAT__CODEC_PADDING);
        memcpy(p->tiled[density], out.data, out.len);
        p->tiled_len[density] = out.len;
        jpeg_bytes += p->file.len;
        tiled_bytes += out.len;
        header += facts.header_bytes;
        restore += facts.restore_bytes;
    }
    double seconds = (double)(leat__clock_thread_ns() - start) / 1e9;
    printf("{\"tiles\": \"%s\", \"images\": %u, \"tiled\": %u, \"bytes_vs_jpeg\": %.4f, "
           "\"header_share\": %.4f, \"restore_share\": %.4f, \"restored_exactly\": %u, "
           "\"ms_per_image_verified\": %.2f, \"kept\": {",
           names[density], picture_count, kept[0], (double)tiled_bytes / (double)jpeg_bytes,
           (double)header / (double)tiled_bytes, (double)restore / (double)tiled_bytes, exact,
           1e3 * seconds / picture_count);
    const char *comma = "";
    for (int k = 1; k < LEAT__TILE_KEPT_COUNT; k++)
        if (kept[k] > 0) {
            printf("%s\"%s\": %u", comma, leat__tile_kept_name((leat__tile_kept)k), kept[k]);
            comma = ", ";
        }
    printf("}}\n");
    leat__tile_encoder_close(&encoder);
    leat__buf_reset(&out);
}

/* ---- methods ---- */

static uint8_t *rgb; /* large enough for any image, interleaved */

static void jpeg_start(struct jpeg_decompress_struct *s, struct jpeg_error_mgr *e, const picture *p)
{
    s->err = jpeg_std_error(e);
    jpeg_create_decompress(s);
    jpeg_mem_src(s, p->file.data, p->file.len);
    jpeg_read_header(s, TRUE);
    if (s->jpeg_color_space != JCS_GRAYSCALE) s->out_color_space = JCS_RGB;
    s->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(s);
}

static void jpeg_rows(struct jpeg_decompress_struct *s, uint32_t count)
{
    size_t stride = (size_t)s->output_width * (size_t)s->output_components;
    for (uint32_t y = 0; y < count;) {
        JSAMPROW row[8];
        for (uint32_t i = 0; i < 8; i++) row[i] = rgb + (y + i) * stride;
        y += jpeg_read_scanlines(s, row, LEAT_MIN(8, count - y));
    }
}

static void decode_jpeg_full(const picture *p)
{
    struct jpeg_decompress_struct s;
    struct jpeg_error_mgr e;
    jpeg_start(&s, &e, p);
    jpeg_rows(&s, s.output_height);
    jpeg_finish_decompress(&s);
    jpeg_destroy_decompress(&s);
}

static void decode_jpeg_roi(const picture *p)
{
    struct jpeg_decompress_struct s;
    struct jpeg_error_mgr e;
    jpeg_start(&s, &e, p);
    JDIMENSION x = p->x, width = p->width;
    jpeg_crop_scanline(&s, &x, &width);
    uint32_t mcu = 8u * (uint32_t)s.max_v_samp_factor, skip = p->y / mcu * mcu;
    if (skip > 0) jpeg_skip_scanlines(&s, skip);
    jpeg_rows(&s, p->y - skip + p->height);
    jpeg_abort_decompress(&s);
    jpeg_destroy_decompress(&s);
}

static uint32_t rows_seen;

static int take_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    rows_seen += count;
    return 0;
}

static void decode_tiles(const picture *p, leat__tile_density density, bool crop)
{
    leat__image_info info;
    leat__decode_request request = {.tables = tables};
    leat__row_sink sink = {take_rows, NULL};
    if (crop) {
        request.x = p->x;
        request.y = p->y;
        request.width = p->width;
        request.height = p->height;
    }
    const uint8_t *data = p->tiled[density];
    size_t len = p->tiled_len[density];
    if (leat__codec_probe(LEAT__CODEC_TILE, data, len, &info, &err) != 0 ||
        leat__codec_decode(decoder, &info, data, len, &request, &sink, &err) != 0)
        die(p->file.name);
}

typedef struct method {
    const char *name, *what, *isa;
    int density; /* or -1 full JPEG, -2 region of JPEG, -3 checksum of the sample */
    bool crop;
    uint32_t keep; /* CPU flags */
    double us[REPEATS_MAX];
} method;

enum {
    SCALAR = LEAT__CPU_SSE42,
    AVX2 = LEAT__CPU_SSE42 | LEAT__CPU_AVX2,
    ALL = SCALAR | AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL
};

static method methods[METHODS_MAX] = {
    {"libjpeg-turbo", "full", "its own", -1, false, ALL},
    {"libjpeg-turbo", "crop", "its own", -2, true, ALL},
    {"XXH3 of the sample", "full", "its own", -3, true, ALL},
    {"tiles small", "crop", "avx512", LEAT__TILE_SMALL, true, ALL},
    {"tiles small", "crop", "avx2", LEAT__TILE_SMALL, true, AVX2},
    {"tiles small", "crop", "scalar", LEAT__TILE_SMALL, true, SCALAR},
    {"tiles small", "full", "avx512", LEAT__TILE_SMALL, false, ALL},
    {"tiles small", "full", "avx2", LEAT__TILE_SMALL, false, AVX2},
    {"tiles small", "full", "scalar", LEAT__TILE_SMALL, false, SCALAR},
    {"tiles fast", "crop", "avx512", LEAT__TILE_FAST, true, ALL},
    {"tiles fast", "crop", "avx2", LEAT__TILE_FAST, true, AVX2},
    {"tiles fast", "crop", "scalar", LEAT__TILE_FAST, true, SCALAR},
};

/* Rows of instructions that this machine lacks are left out. */
static bool runs_here(const method *m)
{
    const uint32_t need = strcmp(m->isa, "avx512") == 0 ? LEAT__CPU_AVX512ICL
                          : strcmp(m->isa, "avx2") == 0 ? LEAT__CPU_AVX2
                                                        : 0;
    return (leat__cpu_flags() & need) == need;
}

static volatile uint64_t checksum;

static double time_method(method *m)
{
    leat__cpu_mask(m->keep);
    uint32_t n = 0;
    uint64_t start = leat__clock_thread_ns();
    for (uint32_t i = 0; i < picture_count; i++) {
        const picture *p = &pictures[i];
        if (p->tiled[0] == NULL || p->tiled[1] == NULL) continue;
        if (m->density == -1) decode_jpeg_full(p);
        else if (m->density == -2) decode_jpeg_roi(p);
        else if (m->density == -3) checksum ^= leat__hash64(p->tiled[0], p->tiled_len[0], 0);
        else decode_tiles(p, (leat__tile_density)m->density, m->crop);
        n++;
    }
    double us = (double)(leat__clock_thread_ns() - start) / 1e3 / n;
    leat__cpu_mask(~0u);
    return us;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- equality before speed ---- */

static uint32_t check_crops(const method *m)
{
    leat__planes want = {0}, got = {0};
    uint32_t bad = 0;
    leat__cpu_mask(m->keep);
    for (uint32_t i = 0; i < picture_count; i++) {
        const picture *p = &pictures[i];
        if (p->tiled[m->density] == NULL) continue;
        leat__image_info info;
        leat__decode_request all = {0};
        leat__decode_request part = {p->x, p->y, p->width, p->height, .tables = tables};
        if (!m->crop) part.x = part.y = part.width = part.height = 0;
        if (leat__codec_decode_planes(decoder, &p->file.info, p->file.data, p->file.len, &all, &want, &err) !=
                0 ||
            leat__codec_probe(LEAT__CODEC_TILE, p->tiled[m->density], p->tiled_len[m->density], &info,
                              &err) != 0 ||
            leat__codec_decode_planes(decoder, &info, p->tiled[m->density], p->tiled_len[m->density], &part,
                                      &got, &err) != 0)
            die(p->file.name);
        bool same = got.channels == want.channels;
        for (uint32_t c = 0; c < got.channels && same; c++)
            for (uint32_t y = 0; y < got.height && same; y++)
                same = memcmp(got.plane[c] + y * got.stride,
                              want.plane[c] + (part.y + y) * want.stride + part.x, got.width) == 0;
        if (!same) fprintf(stderr, "DIFFERENT: %s with %s\n", p->file.name, m->isa);
        bad += !same;
    }
    leat__cpu_mask(~0u);
    leat__planes_reset(&want);
    leat__planes_reset(&got);
    return bad;
}

/* Mean bytes of RGB of the images, or of the crops, that are timed. */
static double rgb_bytes(bool crop)
{
    double sum = 0, n = 0;
    for (uint32_t i = 0; i < picture_count; i++) {
        const picture *p = &pictures[i];
        if (p->tiled[0] == NULL || p->tiled[1] == NULL) continue;
        sum += 3.0 * (crop ? (double)p->width * p->height : (double)p->file.info.width * p->file.info.height);
        n++;
    }
    return sum / n;
}

static void report(uint32_t count, int repeats)
{
    double full = methods[0].us[repeats / 2], roi = methods[1].us[repeats / 2];
    for (uint32_t k = 0; k < count; k++) {
        method *m = &methods[k];
        double us = m->us[repeats / 2];
        printf("{\"method\": \"%s\", \"region\": \"%s\", \"isa\": \"%s\", \"us\": %.1f, "
               "\"us_min\": %.1f, \"us_max\": %.1f, \"images_per_s\": %.0f, "
               "\"rgb_gb_per_s\": %.3f, \"vs_full\": %.2f, \"vs_roi\": %.2f}\n",
               m->name, m->what, m->isa, us, m->us[0], m->us[repeats - 1], 1e6 / us,
               m->density == -3 ? 0 : rgb_bytes(m->crop) / us / 1e3, full / us, roi / us);
    }
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : getenv("LEAT_IMAGES");
    int repeats = argc > 2 ? atoi(argv[2]) : 7;
    leat__jpeg_coef_reader *reader;
    uint32_t count = 0, bad = 0;
    size_t largest = 0;
    if (dir == NULL || repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: kernel_tile DIR [REPEATS] [IMAGES]\n");
        return 2;
    }
    if (argc > 3) most = (uint32_t)LEAT_MAX(1, LEAT_MIN(atoi(argv[3]), IMAGES_MAX));
    jpeg_folder_load(dir, 2, take);
    if (picture_count == 0) die("no JPEG found");
    if (leat__decoder_open(&decoder, &err) != 0) die("decoder");
    if (leat__jpeg_coef_reader_open(&reader, &err) != 0) die("reader");
    double area = 0;
    for (uint32_t i = 0; i < picture_count; i++) {
        picture *p = &pictures[i];
        draw_crop(p, i);
        largest = LEAT_MAX(largest, (size_t)p->file.info.width * (p->file.info.height + 64) * 3);
        area += (double)p->width * p->height / p->file.info.width / p->file.info.height / picture_count;
    }
    rgb = malloc(largest + 4096);
    train(reader);
    tile_all(reader, LEAT__TILE_SMALL);
    tile_all(reader, LEAT__TILE_FAST);
    leat__jpeg_coef_reader_close(&reader);
    printf("{\"cpu\": \"%s\", \"isa\": \"%s\", \"images\": %u, \"mean_crop_area\": %.3f, "
           "\"version\": \"%s\"}\n",
           leat__cpu_model(), leat__cpu_level(leat__cpu_flags()), picture_count, area, LEAT_VERSION);

    for (uint32_t k = 0; k < METHODS_MAX && methods[k].name != NULL; k++)
        if (runs_here(&methods[k])) methods[count++] = methods[k];
    for (uint32_t k = 0; k < count; k++)
        if (methods[k].density >= 0) bad += check_crops(&methods[k]);
    printf("{\"differing_images\": %u}\n", bad);
    for (int r = 0; r < repeats; r++)
        for (uint32_t k = 0; k < count; k++) methods[k].us[r] = time_method(&methods[k]);
    for (uint32_t k = 0; k < count; k++) qsort(methods[k].us, (size_t)repeats, sizeof(double), by_value);
    report(count, repeats);
    return bad > 0;
}
