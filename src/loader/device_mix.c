/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists what the kernel `mix` does: see device_mix.h.
 */
#include "loader/device_mix.h"

#include "op/device_plan.h"

uint32_t leat__device_mix_room(const leat__mixing *m)
{
    if (m->images == NULL) return 0;
    return leat__pipeline_batch_ops(m->images[0].pipeline) * (m->image_count + 1);
}

bool leat__device_mix_takes(const leat__frame *f)
{
    if (f->tiles == NULL || f->skip > 0) return false;
    for (uint32_t row = 0; row < f->rows; row++)
        if (f->dropped[row]) return false;
    return true;
}

static leat_job_mix mix_image(const leat__mix *mix, const leat__output_spec *o)
{
    const uint32_t all = o->width * o->height * o->channels;
    return (leat_job_mix){
        .row_elements = all,
        .elements = mix->paste ? mix->width * mix->height * o->channels : all,
        .dtype = leat__device_dtype(o->dtype),
        .paste = mix->paste,
        .width = o->width,
        .height = o->height,
        .channels = o->channels,
        .nhwc = o->layout == LEAT__LAYOUT_NHWC,
        .x = mix->x,
        .y = mix->y,
        .wide = mix->width,
        .high = mix->height,
    };
}

uint32_t leat__device_mix_list(const leat__mixing *m, leat__frame *f, uint64_t batch, leat_job_mix *out)
{
    leat_job_mix *to = out;
    if (m->images == NULL) return 0;
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(m->images[0].pipeline); k++) {
        leat__mix mix;
        leat_job_mix *const first = to;
        leat__mixing_draw(m, f, k, &mix);
        if (m->classes == 0) leat__mixing_pairs(m, &mix, f);
        if (!mix.active) continue;
        for (uint32_t i = 0; i < m->image_count; i++) {
            *to = mix_image(&mix, leat__pipeline_output(m->images[i].pipeline));
            to++->data = batch + f->shape->columns[m->images[i].column].device_start;
        }
        if (m->classes > 0)
            *to++ = (leat_job_mix){.data = batch + f->shape->columns[m->label].device_start,
                                   .row_elements = m->classes,
                                   .elements = m->classes,
                                   .dtype = LEAT_JOB_F32};
        for (leat_job_mix *one = first; one < to; one++) {
            one->rows = f->batch.samples;
            one->weight = mix.lambda;
            one->rest = (float)(1.0 - (double)mix.lambda);
        }
    }
    return (uint32_t)(to - out);
}
