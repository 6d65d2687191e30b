/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_resize: the cost of the Pillow-exact resize. Crops as drawn by RandomResizedCrop from a
 * 500 x 375 image (mean 87,000 pixels), to 224 x 224, random flip, into 8-bit planes, then into
 * each element type and layout. Variants alternate within a repeat.
 *
 *   kernel_resize [REPEATS]
 *
 * One JSON line per variant on stdout: median microseconds per image, and the spread.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "op/pipeline.h"
#include "probe/cpu.h"

enum { WIDTH = 500, HEIGHT = 375, CROPS = 200, REPEATS_MAX = 64 };

static const struct variant {
    const char *name, *ops;
} variants[] = {
    {"u8 nchw", ""},
    {"u8 nhwc", "; ToLayout(nhwc)"},
    {"f16 nchw", "; Normalize((0.485,0.456,0.406),(0.229,0.224,0.225)); ToDtype(f16)"},
    {"f16 nhwc", "; Normalize((0.485,0.456,0.406),(0.229,0.224,0.225)); ToDtype(f16); ToLayout(nhwc)"},
    {"f32 nchw", "; Normalize((0.485,0.456,0.406),(0.229,0.224,0.225)); ToDtype(f32)"},
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
                im->plane[c][y * im->stride + x] =
                    (uint8_t)(128 + 60 * sin(0.05 * x + c) + leat__rng_below(&rng, 40));
}

int main(int argc, char **argv)
{
    static lane lanes[LEAT_COUNT(isas)][LEAT_COUNT(variants)];
    const int repeats = argc > 1 ? LEAT_MIN(atoi(argv[1]), REPEATS_MAX) : 9;
    leat__planes im = {0};
    leat_error err = {0};
    uint8_t *const out = leat__alloc_aligned(LEAT__MEM_MISC, 224 * 224 * 3 * 4, 64);
    if (!out || leat__planes_resize(&im, WIDTH, HEIGHT, 3, &err) != 0) return 1;
    fill(&im);
    for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
        leat__cpu_mask(isas[i].keep);
        for (size_t v = 0; v < LEAT_COUNT(variants); v++) {
            char text[256];
            snprintf(text, sizeof text, "RandomResizedCrop(224); RandomHorizontalFlip()%s", variants[v].ops);
            if (leat__pipeline_open(&lanes[i][v].pipeline, &(leat__pipeline_opts){.ops = text}, &err) != 0 ||
                leat__pipeline_worker_open(&lanes[i][v].worker, &err) != 0) {
                fprintf(stderr, "kernel_resize: %s\n", err.message);
                return 1;
            }
        }
    }
    for (int r = 0; r < repeats; r++)
        for (size_t i = 0; i < LEAT_COUNT(isas); i++) {
            leat__cpu_mask(isas[i].keep);
            for (size_t v = 0; v < LEAT_COUNT(variants); v++) {
                lane *const l = &lanes[i][v];
                const uint64_t start = leat__clock_thread_ns();
                for (uint64_t k = 0; k < CROPS; k++) {
                    const leat__draw_key key = {7, 0, k};
                    if (leat__pipeline_run_pixels(l->pipeline, l->worker, &im, &key, out, &err)) return 1;
                }
                l->us[r] = (double)(leat__clock_thread_ns() - start) / 1e3 / CROPS;
            }
        }
    for (size_t i = 0; i < LEAT_COUNT(isas); i++)
        for (size_t v = 0; v < LEAT_COUNT(variants); v++) {
            lane *const l = &lanes[i][v];
            qsort(l->us, (size_t)repeats, sizeof *l->us, by_value);
            printf("{\"bench\":\"resize\",\"isa\":\"%s\",\"output\":\"%s\",\"us_median\":%.1f,"
                   "\"us_min\":%.1f,\"us_max\":%.1f}\n",
                   isas[i].name, variants[v].name, l->us[repeats / 2], l->us[0], l->us[repeats - 1]);
            leat__pipeline_worker_close(&l->worker);
            leat__pipeline_close(&l->pipeline);
        }
    leat__planes_reset(&im);
    leat__free(out);
    return 0;
}
