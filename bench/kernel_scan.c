/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_scan: entropy decoding of JPEGs, leat's own against libjpeg-turbo's, on one core. First
 * checks that both give the same coefficients. Methods alternate within a repeat; figures are CPU
 * time per image, the best of the repeats.
 *
 *   kernel_scan [DIR] [REPEATS]      DIR or $LEAT_IMAGES: a folder of JPEGs, or of such folders
 *
 * One JSON line per method on stdout, remarks on stderr. Exit 1 when anything differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> /* needs stdio.h before it */

#include "base/clock.h"
#include "base/num.h"
#include "codec/jpeg_scan.h"
#include "pictures.h"

enum { IMAGES_MAX = 4096, REPEATS_MAX = 100 };

static jpeg_file pictures[IMAGES_MAX];
static uint32_t picture_count;
static struct jpeg_decompress_struct cinfo;
static struct jpeg_error_mgr errors;
static leat__jpeg_scan *scan;
static int16_t *room;

static bool take(const jpeg_file *j)
{
    pictures[picture_count++] = *j;
    return picture_count < IMAGES_MAX;
}

/* ---- methods ---- */

static bool with_libjpeg(const jpeg_file *p)
{
    jpeg_mem_src(&cinfo, p->data, p->len);
    jpeg_read_header(&cinfo, TRUE);
    jpeg_read_coefficients(&cinfo);
    jpeg_finish_decompress(&cinfo);
    return true;
}

/* Into memory for the whole image, or repeatedly into one row of MCUs. */
static bool decode(const jpeg_file *p, bool whole)
{
    leat__jpeg_cursor at;
    leat__jpeg_blocks to = {0};
    size_t end;
    if (!leat__jpeg_scan_start(scan, p->data, p->len)) return false;
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(scan);
    int16_t *next = room;
    leat__jpeg_scan_begin(scan, &at);
    for (uint32_t c = 0; c < f->components; c++) {
        to.block[c] = next;
        to.stride[c] = f->component[c].grid_x;
        next += 64 * (size_t)f->component[c].grid_x * f->component[c].grid_y;
    }
    uint32_t mcus_x = leat__jpeg_scan_mcus_x(scan);
    for (uint32_t y = 0; y < leat__jpeg_scan_mcus_y(scan); y++) {
        if (!leat__jpeg_scan_mcus(scan, &at, mcus_x, &to)) return false;
        for (uint32_t c = 0; whole && c < f->components; c++)
            to.block[c] += 64 * to.stride[c] * (f->components == 1 ? 1 : f->component[c].v);
    }
    return leat__jpeg_scan_finish(scan, &at, &end, NULL);
}

static bool with_leat(const jpeg_file *p)
{
    return decode(p, true);
}

static bool by_rows(const jpeg_file *p)
{
    return decode(p, false);
}

static bool with_check(const jpeg_file *p)
{
    return leat__jpeg_scan_whole(scan, p->data, p->len, NULL);
}

static bool headers_only(const jpeg_file *p)
{
    return leat__jpeg_scan_start(scan, p->data, p->len);
}

static const struct {
    const char *name;
    bool (*run)(const jpeg_file *p);
} methods[] = {
    {"libjpeg-turbo", with_libjpeg}, {"leat", with_leat},
    {"leat by rows", by_rows},       {"leat check", with_check},
    {"leat headers", headers_only},
};

/* ---- equality before speed ---- */

static bool same(const jpeg_file *p)
{
    if (!with_leat(p)) return false;
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(scan);
    bool equal = true;
    const int16_t *next = room;
    jpeg_mem_src(&cinfo, p->data, p->len);
    jpeg_read_header(&cinfo, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&cinfo);
    for (uint32_t c = 0; c < f->components; c++)
        for (uint32_t y = 0; y < f->component[c].grid_y; y++) {
            JBLOCKARRAY rows = cinfo.mem->access_virt_barray((j_common_ptr)&cinfo, arrays[c], y, 1, FALSE);
            size_t n = 64 * (size_t)f->component[c].grid_x;
            equal = equal && memcmp(rows[0], next, n * sizeof *next) == 0;
            next += n;
        }
    jpeg_finish_decompress(&cinfo);
    return equal && errors.num_warnings == 0;
}

static void prove(void)
{
    size_t largest = 0, mine = 0;
    for (uint32_t i = 0; i < picture_count; i++) {
        const leat__image_info *const info = &pictures[i].info;
        size_t blocks = ((info->width + 31) / 8) * ((info->height + 31) / 8) * (size_t)4;
        largest = LEAT_MAX(largest, blocks);
    }
    room = calloc(largest + 64, 128);
    for (uint32_t i = 0; i < picture_count; i++) {
        if (!leat__jpeg_scan_start(scan, pictures[i].data, pictures[i].len)) continue;
        if (!same(&pictures[i])) {
            fprintf(stderr, "kernel_scan: image %u differs\n", i);
            exit(1);
        }
        pictures[mine++] = pictures[i];
    }
    fprintf(stderr, "kernel_scan: %zu of %u images are leat's own, all coefficients equal\n", mine,
            picture_count);
    picture_count = (uint32_t)mine;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : getenv("LEAT_IMAGES");
    uint32_t repeats = argc > 2 ? (uint32_t)atoi(argv[2]) : 5;
    uint64_t best[LEAT_COUNT(methods)];
    size_t bytes = 0;
    if (dir == NULL || repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: kernel_scan DIR [REPEATS]\n");
        return 2;
    }
    jpeg_folder_load(dir, 2, take);
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    if (leat__jpeg_scan_open(&scan, NULL) != 0) return 1;
    prove();
    if (picture_count == 0) return 1;
    memset(best, 0xff, sizeof best);
    for (uint32_t r = 0; r < repeats; r++)
        for (size_t m = 0; m < LEAT_COUNT(methods); m++) {
            uint64_t start = leat__clock_thread_ns();
            for (uint32_t i = 0; i < picture_count; i++)
                if (!methods[m].run(&pictures[i])) return 1;
            best[m] = LEAT_MIN(best[m], leat__clock_thread_ns() - start);
        }
    for (uint32_t i = 0; i < picture_count; i++) bytes += pictures[i].len;
    for (size_t m = 0; m < LEAT_COUNT(methods); m++)
        printf("{\"method\": \"%s\", \"images\": %u, \"us_per_image\": %.1f, \"mb_per_s\": %.0f,"
               " \"times_libjpeg\": %.2f}\n",
               methods[m].name, picture_count, (double)best[m] / 1e3 / picture_count,
               (double)bytes * 1e3 / (double)best[m], (double)best[0] / (double)best[m]);
    leat__jpeg_scan_close(&scan);
    return 0;
}
