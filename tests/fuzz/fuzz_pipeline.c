/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of pipelines: parsed, compiled, and when that works, drawn and run on a small image. The
 * first byte picks the image.
 */
#include <stdint.h>
#include <string.h>

#include "op/image.h"
#include "op/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 2000, OUT_MAX = 1 << 20 };

static void run(const leat__pipeline *p, uint8_t pick)
{
    static uint8_t out[OUT_MAX];
    leat__pipeline_worker *w = NULL;
    leat__planes im = {0};
    leat_error err;
    const uint32_t width = 1 + pick % 16, height = 1 + pick / 16;
    if (leat__pipeline_output(p)->bytes > OUT_MAX) return;
    if (leat__planes_resize(&im, width, height, pick % 2 ? 3 : 1, &err) == 0 &&
        leat__pipeline_worker_open(&w, &err) == 0) {
        for (uint32_t c = 0; c < im.channels; c++)
            for (uint32_t y = 0; y < height; y++)
                memset(leat__planes_row(&im, c, y), (int)(pick + y * 16), width);
        for (uint64_t sample = 0; sample < 3; sample++)
            if (leat__pipeline_run_pixels(p, w, &im, &(leat__draw_key){pick, 0, sample}, out, &err)) break;
    }
    leat__pipeline_worker_close(&w);
    leat__planes_reset(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX + 1];
    leat__pipeline *p = NULL;
    leat_error err;
    if (size < 1 || size > TEXT_MAX) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    /* sizes of thousands only cost time */
    for (size_t i = 0, digits = 0; i < size; i++) {
        digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
        if (digits > 3) return 0;
    }
    if (leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, &err) == 0) run(p, data[0]);
    leat__pipeline_close(&p);
    return 0;
}
