/* SPDX-License-Identifier: Apache-2.0
 *
 * One NVIDIA GPU through the CUDA driver, which is loaded when it is asked for: leat builds
 * without any CUDA header and starts without any CUDA library. A machine without a driver, or
 * with a driver and no GPU, answers LEAT_ENOTSUP and says which of the two.
 *
 * `library` is the file to load, NULL for LEAT_CUDA_DRIVER or the driver's own name. Any thread may
 * call once the handle is open; the thread's own current CUDA context (a trainer's, say) is left as
 * it was found.
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
    uint32_t index; /* as the driver counts */
} leat__gpu_info;

typedef uint64_t leat__gpu_memory; /* an address on the device, 0 = none */

/* Bytes per second: the second lowest, the median and the second highest of several copies. */
typedef struct leat__gpu_rate {
    double low, mid, high;
} leat__gpu_rate;

int leat__gpu_count(const char *library, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

/* The device that "cuda" or "cuda:N" means. "cuda": LOCAL_RANK where a launcher set it and there are
 * as many, else the device this thread uses already, else the first. A LOCAL_RANK that is not a number is an
 * error. No context is made. */
int leat__gpu_choose(const char *name, uint32_t *index, leat_error *err) LEAT_MUST_CHECK;

/* Device `index`, with its primary context: the one that PyTorch uses too. */
int leat__gpu_open(leat__gpu **gpu, uint32_t index, const char *library, leat_error *err) LEAT_MUST_CHECK;
leat__gpu *leat__gpu_ref(leat__gpu *gpu); /* one more that closes it */
void leat__gpu_close(leat__gpu **gpu);    /* the last one gives the context back */
const leat__gpu_info *leat__gpu_info_view(const leat__gpu *gpu);

/* Page-locked host memory, which the device reads without a staging copy. Unpin before closing
 * the device; NULL is fine. */
int leat__gpu_pin(leat__gpu *gpu, uint64_t bytes, void **memory, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_unpin(leat__gpu *gpu, void *memory);

/* The same for memory that exists already: whole pages. */
int leat__gpu_lock_pages(leat__gpu *gpu, void *memory, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_unlock_pages(leat__gpu *gpu, void *memory);

/* The same, and kernels may read it: *address is where they find it. leat__gpu_unlock_pages ends it, when no
 * queued work reads it. */
int leat__gpu_map_pages(leat__gpu *gpu, void *memory, uint64_t bytes, leat__gpu_memory *address,
                        leat_error *err) LEAT_MUST_CHECK;
/* Whether both are handles of one device's context: then an address of one is an address of the other. */
bool leat__gpu_same(const leat__gpu *a, const leat__gpu *b);

int leat__gpu_alloc(leat__gpu *gpu, uint64_t bytes, leat__gpu_memory *memory,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_free(leat__gpu *gpu, leat__gpu_memory memory);
int leat__gpu_unused(leat__gpu *gpu, uint64_t *bytes, leat_error *err) LEAT_MUST_CHECK;

/* How fast host memory reaches the device, page-locked or ordinary: about a quarter of a second
 * of copies of 32 MiB. LEAT_ENOMEM when host or device lacks that much. */
int leat__gpu_copy_rate(leat__gpu *gpu, bool pinned, leat__gpu_rate *rate, leat_error *err) LEAT_MUST_CHECK;

#endif
