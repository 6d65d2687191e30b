/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels on a device: loaded once per device handle, then launched on any stream. Compiled when
 * leat was built, where nvcc was found; else by NVRTC at first use, where that library can be loaded
 * (PyTorch brings it), and kept on disk.
 */
#ifndef LEAT_GPU_KERNELS_H
#define LEAT_GPU_KERNELS_H

#include "gpu/gpu_stream.h"
#include "gpu/kernels/tile_job.h"

typedef struct leat__gpu_kernels leat__gpu_kernels;

/* LEAT_ENOTSUP: no kernels in this build and no NVRTC, or the device is too old (before sm_75). */
int leat__gpu_kernels_open(leat__gpu_kernels **k, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_kernels_close(leat__gpu_kernels **k); /* call it after its work, before leat__gpu_close */
const char *leat__gpu_kernels_origin(const leat__gpu_kernels *k); /* "built in", "NVRTC", "kept" */

/* Queues all steps but `mix`. All pointers of the job are addresses on the device. */
int leat__gpu_kernels_decode(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                             leat_error *err) LEAT_MUST_CHECK;
/* Queues job->mix. `status` and `image_count` are those of the whole batch: nothing is mixed when one of its
 * images is damaged. */
int leat__gpu_kernels_mix(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                          leat_error *err) LEAT_MUST_CHECK;
/* Queues the reading of job->ranges, which are on the device, out of memory that leat__gpu_map_pages mapped.
 */
int leat__gpu_kernels_gather(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job,
                             leat_error *err) LEAT_MUST_CHECK;

#endif
