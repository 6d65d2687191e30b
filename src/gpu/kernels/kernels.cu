/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels: who does what. What is done is in the two headers, which the host's tests compile, too.
 * Rows of images are spread over blocks, pixels of a row over threads; blockIdx.y is the image.
 */
#include "warp_cuda.h"
#include "tile_job.h"
#include "tile_entropy_kernel.h"
#include "tile_pixels_kernel.h"

#define TILE_WARPS 4  /* per block */
#define TILE_BLOCKS 9 /* per multiprocessor, for which the compiler leaves enough registers */

extern "C" __global__ void leat_axes(leat_job job)
{
    const leat_job_image *const im = &job.images[blockIdx.y];
    const leat_job_axis *const a = blockIdx.x == 0 ? &im->ax : &im->ay;
    if (!takes_nearest(a)) {
        for (uint32_t j = threadIdx.x; j < a->count; j += blockDim.x) build_output(a, job.work + im->work, j);
    } else if (threadIdx.x == 0) {
        build_nearest(a, job.work + im->work);
    }
}

extern "C" __global__ void __launch_bounds__(32 * TILE_WARPS, TILE_BLOCKS) leat_tiles(leat_job job)
{
    __shared__ __align__(16) tile_scratch scratch[TILE_WARPS];
    const uint32_t tile = blockIdx.x * TILE_WARPS + threadIdx.x / 32;
    if (tile < job.tile_count) decode_tile(&job, tile, &scratch[threadIdx.x / 32]);
}

extern "C" __global__ void leat_colour(leat_job job)
{
    const leat_job_image *const im = &job.images[blockIdx.y];
    uint8_t *const work = job.work + im->work;
    const colour_view view = view_colour(im, work);
    const uint32_t wide = im->lead + im->width, high = im->height, lanes = (wide + 3) / 4;
    /* threads in as many rows as fit: crops are often narrower than a block */
    const uint32_t rows = lanes < blockDim.x ? blockDim.x / lanes : 1, row = threadIdx.x / lanes;
    if (row >= rows && lanes < blockDim.x) return;
    for (uint32_t y = blockIdx.x * rows + (rows > 1 ? row : 0); y < high; y += gridDim.x * rows)
        for (uint32_t x = 4 * (rows > 1 ? threadIdx.x - row * lanes : threadIdx.x); x < wide; x += 4 * blockDim.x)
            colour_four(im, &view, work, x, y);
}

extern "C" __global__ void leat_first(leat_job job)
{
    const leat_job_image *const im = &job.images[blockIdx.y];
    uint8_t *const work = job.work + im->work;
    if (im->vertical_first) {
        for (uint32_t y = blockIdx.x; y < im->mid_rows; y += gridDim.x)
            for (uint32_t x = 4 * threadIdx.x; x < im->lead + im->width; x += 4 * blockDim.x)
                first_four(im, work, x, y);
    } else {
        for (uint32_t x = threadIdx.x; x < im->ax.count; x += blockDim.x)
            for (uint32_t y = blockIdx.x; y < im->mid_rows; y += gridDim.x) first_pixel(im, work, x, y);
    }
}

extern "C" __global__ void leat_second(leat_job job)
{
    const leat_job_image *const im = &job.images[blockIdx.y];
    const leat_job_output *const o = &job.outputs[im->column];
    uint8_t *const work = job.work + im->work;
    if (im->vertical_first) {
        for (uint32_t x = threadIdx.x; x < o->width; x += blockDim.x)
            for (uint32_t y = blockIdx.x; y < o->height; y += gridDim.x) second_pixel(im, o, work, x, y);
    } else {
        /* 64 threads per row */
        const uint32_t lane = threadIdx.x % 64, rows = blockDim.x / 64;
        for (uint32_t y = blockIdx.x * rows + threadIdx.x / 64; y < o->height; y += gridDim.x * rows)
            for (uint32_t x = 4 * lane; x < o->width; x += 4 * 64) second_four(im, o, work, x, y);
    }
}
