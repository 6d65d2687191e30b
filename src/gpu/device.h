/* SPDX-License-Identifier: Apache-2.0
 *
 * One NVIDIA GPU through the CUDA driver, which is loaded when it is asked for: leat builds
 * without any CUDA header and starts without any CUDA library. A machine without a driver, or
 * with a driver and no GPU, answers LEAT_ENOTSUP and says which of the two.
 *
 * `library` is the file to load, NULL for the driver's own name. Calls on one handle come from
 * one thread at a time; the thread's own current CUDA context (a trainer's, say) is left as it
 * was found.
 */
#ifndef LEAT_GPU_DEVICE_H
#define LEAT_GPU_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/error.h>

typedef struct leat__gpu leat__gpu;

typedef struct leat__gpu_info {
    char name[96];
    uint64_t memory_bytes;
    uint32_t compute_major, compute_minor;
} leat__gpu_info;

/* Bytes per second: the second lowest, the median and the second highest of several copies. */
typedef struct leat__gpu_rate {
    double low, mid, high;
} leat__gpu_rate;

int leat__gpu_count(const char *library, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Device `index`, with its primary context: the one that PyTorch uses too. */
int leat__gpu_open(leat__gpu **gpu, uint32_t index, const char *library, leat_error *err)
    LEAT_MUST_CHECK;
void leat__gpu_close(leat__gpu **gpu);
const leat__gpu_info *leat__gpu_info_view(const leat__gpu *gpu);

/* Page-locked host memory, which the device reads without a staging copy. Unpin before closing
 * the device; NULL is fine. */
int leat__gpu_pin(leat__gpu *gpu, uint64_t bytes, void **memory, leat_error *err)
    LEAT_MUST_CHECK;
void leat__gpu_unpin(leat__gpu *gpu, void *memory);

/* How fast host memory reaches the device, page-locked or ordinary: about a quarter of a second
 * of copies of 32 MiB. LEAT_ENOMEM when host or device lacks that much. */
int leat__gpu_copy_rate(leat__gpu *gpu, bool pinned, leat__gpu_rate *rate, leat_error *err)
    LEAT_MUST_CHECK;

#endif
