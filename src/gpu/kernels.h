/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels on a device: loaded once per context, then launched on any stream. They are compiled when leat
 * is built, if nvcc is found. Otherwise NVRTC compiles them at first use, if that library can be loaded
 * (PyTorch ships it), and the result is cached on disk.
 */
#ifndef LEAT_GPU_KERNELS_H
#define LEAT_GPU_KERNELS_H

#include "gpu/gpu_stream.h"
#include "gpu/kernels/tile_job.h"

typedef struct leat__gpu_kernels leat__gpu_kernels;

/* Loads the kernels. LEAT_ENOTSUP: this build has none and NVRTC is missing, or the device is too old (before
 * sm_75). */
int leat__gpu_kernels_open(leat__gpu_kernels **k, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_kernels_close(leat__gpu_kernels **k); /* call it after its work, before leat__gpu_close */
const char *leat__gpu_kernels_origin(const leat__gpu_kernels *k); /* "built in", "NVRTC", "kept" */

/* Queues all steps except `gather` and `mix`. All pointers in the job are device addresses. */
int leat__gpu_kernels_decode(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                             leat_error *err) LEAT_MUST_CHECK;
/* Queues job->mix. `status` and `image_count` must be those of the whole batch: nothing is mixed when one of
 * its images is damaged. */
int leat__gpu_kernels_mix(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                          leat_error *err) LEAT_MUST_CHECK;
/* Queues the copy of job->ranges from host memory that leat__gpu_map_pages mapped. The list of ranges itself
 * is on the device.
 */
int leat__gpu_kernels_gather(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                             leat_error *err) LEAT_MUST_CHECK;

#endif
