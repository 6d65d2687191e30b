/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of src/gpu/kernels on the host, as their launches would run them.
 */
#ifndef LEAT_TESTS_HOST_KERNELS_H
#define LEAT_TESTS_HOST_KERNELS_H

/* clang-format off: the order matters */
#include "../../../src/gpu/kernels/warp_host.h"
#include "../../../src/gpu/kernels/tile_job.h"
#include "../../../src/gpu/kernels/tile_entropy_kernel.h"
#include "../../../src/gpu/kernels/tile_pixels_kernel.h"
#include "../../../src/gpu/kernels/tile_colour_kernel.h"
#include "../../../src/gpu/kernels/mix_kernel.h"
#include "../../../src/gpu/kernels/gather_kernel.h"

/* A job whose images need no working memory has none; offsets of 0 are added to it all the same. */
static inline uint8_t *work_of(const leat_job *job, const leat_job_image *im)
{
    static uint8_t none;
    return job->work != NULL ? job->work + im->work : &none;
}

static inline void host_axes(const leat_job *job)
{
    for (uint32_t i = 0; i < job->image_count; i++) {
        const leat_job_image *const im = &job->images[i];
        for (int d = 0; d < 2; d++) {
            const leat_job_axis *const a = d == 0 ? &im->ax : &im->ay;
            if (takes_nearest(a)) build_nearest(a, work_of(job, im));
            else
                for (uint32_t j = 0; j < a->count; j++) build_output(a, work_of(job, im), j);
        }
    }
}

static inline void host_tiles(const leat_job *job)
{
    static _Thread_local tile_scratch scratch;
    for (uint32_t i = 0; i < job->tile_count; i++) decode_tile(job, i, &scratch);
}

static inline void host_pixels(const leat_job *job)
{
    static _Thread_local uint32_t pool[LEAT_JOB_POOL];
    for (uint32_t i = 0; i < job->image_count; i++) {
        const leat_job_image *const im = &job->images[i];
        const bool damaged = is_damaged(job, i);
        for (uint32_t w = 0; w < im->windows; w++) {
            if (damaged) clear_window(job, im, w, 0, 1);
            else make_window(job, im, w, pool, 0, 1);
        }
    }
}

static inline void host_colour(const leat_job *job)
{
    static _Thread_local colour_scratch scratch;
    for (uint32_t i = 0; i < job->image_count; i++)
        if (job->images[i].steps > 0 && !is_damaged(job, i))
            colour_image_steps(job, &job->images[i], &scratch, 0, 1);
}

static inline void host_mix(const leat_job *job)
{
    if (any_damage(job, 0, 1)) return;
    for (uint32_t i = 0; i < job->mix.elements; i++) mix_element(&job->mix, i);
}

static inline void host_gather(const leat_job *job)
{
    enum { PARTS = 7 }; /* any number reads the same */
    for (uint32_t i = 0; i < PARTS; i++) gather_part(job, i, PARTS);
}

static inline void host_decode(const leat_job *job)
{
    host_axes(job);
    host_tiles(job);
    host_pixels(job);
    host_colour(job);
}

#endif
