/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable warp kernels, the selection of a variant, and the image layout that they read: see warp.h.
 * Pure functions.
 */
#include "dsp/warp.h"

#include "dsp/warp_tmpl.h"
#include "dsp/x86/warp_x86.h"

static const leat__warp_dsp warp_c = {
    .isa = "scalar",
    .pack = tmpl_pack,
    .unpack = tmpl_unpack,
    .fixed = tmpl_fixed,
    .nearest = tmpl_nearest,
    WARP_TMPL_MEMBERS,
};

const leat__warp_dsp *leat__warp_dsp_for(uint32_t cpu_flags)
{
    const leat__warp_dsp *best = &warp_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__warp_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__warp_avx512;
#endif
    return best;
}

size_t leat__warp_pixels(uint32_t width, uint32_t height)
{
    const uint64_t rows = (uint64_t)height + 2 * LEAT__WARP_BORDER + LEAT__WARP_FILL;
    const uint64_t stride = (uint64_t)width + 2 * LEAT__WARP_BORDER;
    return rows > INT32_MAX || stride > INT32_MAX || rows * stride > INT32_MAX ? 0 : (size_t)(rows * stride);
}

leat__warp_image leat__warp_image_lay(const leat__warp_dsp *dsp, const uint8_t *const plane[4], size_t stride,
                                      uint32_t width, uint32_t height, const uint8_t fill[4],
                                      uint32_t *memory)
{
    enum { BORDER = LEAT__WARP_BORDER };
    const size_t pitch = (size_t)width + 2 * BORDER;
    uint32_t *const first = memory + BORDER * pitch;
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t *row[4];
        for (int c = 0; c < 4; c++) row[c] = plane[c] + y * stride;
        uint32_t *const to = first + y * pitch + BORDER;
        dsp->pack(row, to, width);
        to[-2] = to[-1] = to[0];
        to[width] = to[width + 1] = to[width - 1];
    }
    uint32_t *const last = first + (height - 1) * pitch, *rest = last + pitch;
    for (int k = 0; k < BORDER; k++) {
        memcpy(memory + (size_t)k * pitch, first, pitch * sizeof *first);
        memcpy(rest, last, pitch * sizeof *last);
        rest += pitch;
    }
    const uint32_t outside =
        (uint32_t)fill[0] | (uint32_t)fill[1] << 8 | (uint32_t)fill[2] << 16 | (uint32_t)fill[3] << 24;
    for (int k = 0; k < LEAT__WARP_FILL * LEAT__WARP_FILL; k++)
        rest[(size_t)(k / LEAT__WARP_FILL) * pitch + (size_t)(k % LEAT__WARP_FILL)] = outside;
    uint32_t *const origin = first + BORDER;
    return (leat__warp_image){.origin = origin,
                              .stride = (int32_t)pitch,
                              .outside = (int32_t)(rest + pitch + 1 - origin),
                              .width = width,
                              .height = height};
}
