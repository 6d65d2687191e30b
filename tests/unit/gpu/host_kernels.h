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

static inline void host_colour(const leat_job *job)
{
    for (uint32_t i = 0; i < job->image_count; i++) {
        const leat_job_image *const im = &job->images[i];
        uint8_t *const work = work_of(job, im);
        const colour_view view = view_colour(im, work);
        for (uint32_t y = 0; y < im->height; y++)
            for (uint32_t x = 0; x < im->lead + im->width; x += 4) colour_four(im, &view, work, x, y);
    }
}

static inline void host_first(const leat_job *job)
{
    for (uint32_t i = 0; i < job->image_count; i++) {
        const leat_job_image *const im = &job->images[i];
        uint8_t *const work = work_of(job, im);
        for (uint32_t y = 0; y < im->mid_rows; y++) {
            for (uint32_t x = 0; im->vertical_first && x < im->lead + im->width; x += 4)
                first_four(im, work, x, y);
            for (uint32_t x = 0; !im->vertical_first && x < im->ax.count; x++) first_pixel(im, work, x, y);
        }
    }
}

static inline void host_second(const leat_job *job)
{
    for (uint32_t i = 0; i < job->image_count; i++) {
        const leat_job_image *const im = &job->images[i];
        const leat_job_output *const o = &job->outputs[im->column];
        uint8_t *const work = work_of(job, im);
        for (uint32_t y = 0; y < o->height; y++) {
            for (uint32_t x = 0; im->vertical_first && x < o->width; x++) second_pixel(im, o, work, x, y);
            for (uint32_t x = 0; !im->vertical_first && x < o->width; x += 4) second_four(im, o, work, x, y);
        }
    }
}

static inline void host_decode(const leat_job *job)
{
    host_axes(job);
    host_tiles(job);
    host_colour(job);
    host_first(job);
    host_second(job);
}

#endif
