/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels: which threads do which part. The work itself is in the headers, which tests also compile for
 * the host. If images are spread over blocks, blockIdx.y is the image.
 */
#include "warp_cuda.h"
#include "tile_job.h"
#include "tile_entropy_kernel.h"
#include "tile_pixels_kernel.h"
#include "tile_colour_kernel.h"
#include "mix_kernel.h"
#include "gather_kernel.h"

#define TILE_WARPS 4  /* per block */
#define TILE_BLOCKS 7 /* per multiprocessor: limits the registers that the compiler uses */
#define PIXEL_THREADS 256
#if __CUDA_ARCH__ >= 900
#define PIXEL_BLOCKS 5 /* as many as fit in shared memory */
#else
#define PIXEL_BLOCKS 3
#endif
#define COLOUR_THREADS 512
#define GATHER_THREADS 256

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
    static_assert(sizeof(tile_scratch) % 16 == 0, "each is read 16 bytes at a time");
    __shared__ __align__(16) tile_scratch scratch[TILE_WARPS];
    const uint32_t tile = blockIdx.x * TILE_WARPS + threadIdx.x / 32;
    if (tile < job.tile_count) decode_tile(&job, tile, &scratch[threadIdx.x / 32]);
}

extern "C" __global__ void __launch_bounds__(PIXEL_THREADS, PIXEL_BLOCKS) leat_pixels(leat_job job)
{
    __shared__ __align__(16) uint32_t pool[LEAT_JOB_POOL];
    const leat_job_image *const im = &job.images[blockIdx.y];
    const bool damaged = is_damaged(&job, blockIdx.y);
    for (uint32_t i = blockIdx.x; i < im->windows; i += gridDim.x) {
        if (damaged) clear_window(&job, im, i, threadIdx.x, PIXEL_THREADS);
        else make_window(&job, im, i, pool, threadIdx.x, PIXEL_THREADS);
    }
}

extern "C" __global__ void __launch_bounds__(COLOUR_THREADS) leat_colour(leat_job job)
{
    __shared__ colour_scratch scratch;
    const leat_job_image *const im = &job.images[blockIdx.y];
    if (im->steps > 0 && !is_damaged(&job, blockIdx.y))
        colour_image_steps(&job, im, &scratch, threadIdx.x, COLOUR_THREADS);
}

extern "C" __global__ void leat_mix(leat_job job)
{
    const uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
    if (any_damage(&job, threadIdx.x, blockDim.x)) return;
    for (uint32_t i = first; i < job.mix.elements; i += gridDim.x * blockDim.x) mix_element(&job.mix, i);
}

extern "C" __global__ void __launch_bounds__(GATHER_THREADS) leat_gather(leat_job job)
{
    const uint32_t warps = blockDim.x / 32;
    gather_part(&job, blockIdx.x * warps + threadIdx.x / 32, gridDim.x * warps);
}
