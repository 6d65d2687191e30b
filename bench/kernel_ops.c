/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_ops: the cost of each op on a 224 x 224 image, one thread. The time of the same pipeline
 * without the op (a copy into the batch) is subtracted. Ops alternate within a repeat.
 *
 *   kernel_ops [REPEATS [SIDE PIPELINE...]]
 *
 * With pipelines, it times these instead, on an image of SIDE x SIDE pixels.
 * One JSON line per op and ISA on stdout: CPU microseconds, the least of all repeats.
 * bench/ops_table.py puts them beside Pillow and torchvision; bench/op_costs.py makes the table of `leat
 * plan`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "op/mosaic.h"
#include "op/paste.h"
#include "op/pipeline.h"
#include "probe/cpu.h"

enum { SIDE = 224, RUNS = 40, REPEATS_MAX = 33, OPS_MAX = 128 };

static struct op {
    const char *name, *text;
    bool boxes; /* its draw depends on boxes */
} ops[OPS_MAX] = {
    {"none", ""},
    {"flip_h", "RandomHorizontalFlip(1)"},
    {"flip_v", "RandomVerticalFlip(1)"},
    {"pad_reflect", "Pad(4, padding_mode=reflect); CenterCrop(224)"},
    {"random_crop_padding", "RandomCrop(224, padding=16)"},
    {"resize_96_bilinear", "Resize((96, 96))"},
    {"resize_96_bicubic", "Resize((96, 96), bicubic)"},
    {"resize_96_lanczos", "Resize((96, 96), lanczos)"},
    {"rotate_nearest", "RandomRotation((30, 30))"},
    {"rotate_bilinear", "RandomRotation((30, 30), bilinear)"},
    {"affine_nearest", "RandomAffine((10, 10), (0, 0), (1.1, 1.1), (5, 5))"},
    {"affine_bicubic", "RandomAffine((10, 10), (0, 0), (1.1, 1.1), (5, 5), bicubic)"},
    {"perspective_bilinear", "RandomPerspective(0.5, p=1)"},
    {"brightness", "ColorJitter(brightness=(1.3, 1.3))"},
    {"contrast", "ColorJitter(contrast=(1.3, 1.3))"},
    {"saturation", "ColorJitter(saturation=(1.3, 1.3))"},
    {"hue", "ColorJitter(hue=(0.2, 0.2))"},
    {"grayscale", "RandomGrayscale(1)"},
    {"invert", "RandomInvert(1)"},
    {"solarize", "RandomSolarize(128, p=1)"},
    {"posterize", "RandomPosterize(4, p=1)"},
    {"equalize", "RandomEqualize(1)"},
    {"autocontrast", "RandomAutocontrast(1)"},
    {"sharpness", "RandomAdjustSharpness(2, p=1)"},
    {"blur_23", "GaussianBlur(23, sigma=(1, 1))"},
    {"noise", "GaussianNoise()"},
    {"jpeg_75", "JPEG(75)"},
    {"photometric", "RandomPhotometricDistort(p=1)"},
    {"permute", "RandomChannelPermutation()"},
    {"median_5", "MedianBlur(5)"},
    {"grid_mask", "GridMask((96, 96), p=1)"},
    {"clahe", "CLAHE((2, 2), p=1)"},
    {"elastic", "ElasticTransform()"},
    {"augmix", "AugMix()"},
    {"five_crop_128", "FiveCrop(128)"},
    {"iou_crop", "RandomIoUCrop(); RandomCrop(224, pad_if_needed=true)", true},
    {"zoom_out", "RandomZoomOut(side_range=(2, 2), p=1); CenterCrop(224)"},
    {"scale_jitter", "ScaleJitter(224, (0.5, 0.5)); CenterCrop(112)"},
    {"shortest_size_112", "RandomShortestSize(112); CenterCrop(112)"},
    {"center_crop_ratio", "CenterCrop(128, ratio=224/256)"},
    {"erase", "RandomErasing(1, scale=(0.2, 0.2), ratio=(1, 1))"},
    {"normalize_f32", "Normalize((0.485,0.456,0.406), (0.229,0.224,0.225))"},
    {"normalize_f16", "Normalize((0.485,0.456,0.406), (0.229,0.224,0.225)); ToDtype(f16)"},
    {"normalize_f32_nhwc", "Normalize((0.485,0.456,0.406), (0.229,0.224,0.225)); ToLayout(nhwc)"},
    {"randaugment", "RandAugment()"},
};
static const struct isa {
    const char *name;
    uint32_t keep;
} isas[] = {
    {"scalar", LEAT__CPU_SSE42},
    {"avx2", LEAT__CPU_SSE42 | LEAT__CPU_AVX2},
    {"avx512", ~0u},
};

typedef struct lane {
    leat__pipeline *pipeline;
    leat__pipeline_worker *worker;
    double us[REPEATS_MAX];
} lane;
static lane lanes[LEAT_COUNT(isas)][OPS_MAX];
static size_t op_count; /* rows of ops[] */
static int side = SIDE;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill(leat__planes *im)
{
    leat__rng rng;
    leat__rng_init(&rng, 1, 0, 0, 0);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < im->height; y++)
            for (uint32_t x = 0; x < im->width; x++)
                im->plane[c][y * im->stride + x] = (uint8_t)(110 + 60 * sin(0.05 * x + c) * cos(0.03 * y) +
                                                             (double)leat__rng_below(&rng, 40));
}

static int open_lanes(leat_error *err)
{
    for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
        leat__cpu_mask(isas[i].keep);
        for (size_t k = 0; k < op_count; k++) {
            char text[512];
            snprintf(text, sizeof text, "Resize((%d, %d)); %s", side, side, ops[k].text);
            LEAT_TRY(leat__pipeline_open(&lanes[i][k].pipeline, &(leat__pipeline_opts){.ops = text}, err));
            LEAT_TRY(leat__pipeline_worker_open(&lanes[i][k].worker, err));
        }
    }
    return 0;
}

static int time_lane(lane *l, bool boxed, const leat__planes *im, void *out, double *us, leat_error *err)
{
    static const float boxes[] = {20, 30, 90, 120, 100, 60, 200, 210};
    float moved[LEAT_COUNT(boxes)];
    const uint64_t start = leat__clock_thread_ns();
    for (uint64_t k = 0; k < RUNS; k++) {
        leat__draw_key key = {7, 0, k};
        if (boxed) {
            key.box_count = LEAT_COUNT(boxes) / 4;
            key.boxes = boxes;
            key.moved = moved;
        }
        LEAT_TRY(leat__pipeline_run_pixels(l->pipeline, l->worker, im, &key, out, err));
    }
    *us = (double)(leat__clock_thread_ns() - start) / 1e3 / RUNS;
    return 0;
}

/* Batch ops: three planes of one image out of those of others. They copy, so the ISA does not matter. */
static double time_batch_op(bool paste, uint8_t *planes)
{
    enum { AREA = SIDE * SIDE };
    const leat__mosaic m = {true, 100, 90};
    const leat__paste_rect r = {40, 50, 100, 90};
    uint8_t *const out = planes + 12 * AREA, *const map = planes + 15 * AREA;
    const uint64_t start = leat__clock_thread_ns();
    for (int k = 0; k < RUNS; k++) {
        if (paste) {
            memset(map, 0, AREA);
            leat__paste_mark(map, SIDE, &r, NULL);
        }
        for (int c = 0; c < 3; c++) {
            const uint8_t *const part[] = {planes + c * AREA, planes + (3 + c) * AREA,
                                           planes + (6 + c) * AREA, planes + (9 + c) * AREA};
            if (paste) leat__paste_copy(map, AREA, 1, part[0], out + c * AREA);
            else leat__mosaic_plane(&m, SIDE, SIDE, 1, part, out + c * AREA);
        }
    }
    return (double)(leat__clock_thread_ns() - start) / 1e3 / RUNS;
}

static void print_batch_ops(int repeats, uint8_t *planes)
{
    static const char *const names[] = {"mosaic", "copy_paste"};
    for (int op = 0; op < 2; op++)
        for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
            double least = INFINITY;
            for (int r = 0; r < repeats; r++) least = fmin(least, time_batch_op(op == 1, planes));
            printf("{\"bench\":\"ops\",\"isa\":\"%s\",\"op\":\"%s\",\"us\":%.1f,"
                   "\"us_with_copy\":%.1f}\n",
                   isas[i].name, names[op], least, least);
        }
}

/* Replaces the table by the pipelines of the command line, if there are any. */
static void choose_ops(int argc, char **argv)
{
    while (op_count < OPS_MAX && ops[op_count].name != NULL) op_count++;
    if (argc < 4) return;
    side = atoi(argv[2]);
    op_count = 1; /* "none" stays */
    for (int i = 3; i < argc && op_count < OPS_MAX; i++)
        ops[op_count++] = (struct op){argv[i], argv[i], false};
}

int main(int argc, char **argv)
{
    const int repeats = argc > 1 ? LEAT_MIN(atoi(argv[1]), REPEATS_MAX) : 7;
    leat__planes im = {0};
    leat_error err = {0};
    choose_ops(argc, argv);
    const uint64_t room =
        3 * (uint64_t)side * (uint64_t)side * 3 * sizeof(float); /* 3: ten crops of half the side */
    void *const out = leat__alloc_aligned(LEAT__MEM_MISC, room, 64);
    int rc = out ? leat__planes_resize(&im, (uint32_t)side, (uint32_t)side, 3, &err) : LEAT_ENOMEM;
    if (rc == 0) rc = open_lanes(&err);
    if (rc == 0) fill(&im);
    for (int r = 0; rc == 0 && r < repeats; r++)
        for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
            leat__cpu_mask(isas[i].keep);
            for (size_t k = 0; rc == 0 && k < op_count; k++)
                rc = time_lane(&lanes[i][k], ops[k].boxes, &im, out, &lanes[i][k].us[r], &err);
        }
    if (rc != 0) fprintf(stderr, "kernel_ops: %s\n", err.message);
    for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
        for (size_t k = 0; k < op_count; k++) {
            lane *const l = &lanes[i][k];
            qsort(l->us, (size_t)repeats, sizeof *l->us, by_value);
            leat__pipeline_worker_close(&l->worker);
            leat__pipeline_close(&l->pipeline);
        }
        const double base = lanes[i][0].us[0];
        for (size_t k = 0; rc == 0 && k < op_count; k++)
            printf("{\"bench\":\"ops\",\"isa\":\"%s\",\"op\":\"%s\",\"us\":%.1f,\"us_with_copy\":%.1f}\n",
                   isas[i].name, ops[k].name, lanes[i][k].us[0] - (k ? base : 0), lanes[i][k].us[0]);
    }
    uint8_t *const planes = leat__zalloc(LEAT__MEM_MISC, 16 * SIDE * SIDE);
    if (rc == 0 && planes && argc < 4) print_batch_ops(repeats, planes);
    leat__free(planes);
    leat__planes_reset(&im);
    leat__free(out);
    return rc != 0;
}
