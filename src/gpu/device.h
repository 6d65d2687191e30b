/* SPDX-License-Identifier: Apache-2.0
 *
 * One NVIDIA GPU through the CUDA driver, which is loaded on demand: leat builds without CUDA headers and
 * starts without CUDA libraries. Without a driver or without a GPU, calls return LEAT_ENOTSUP, and err says
 * which is missing.
 *
 * `library` is the file to load, NULL for LEAT_CUDA_DRIVER or the driver's own name. Any thread may call once
 * the handle is open. The thread's current CUDA context (a trainer's, say) is restored after each call.
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
    uint32_t index; /* number of the device in the driver's order */
} leat__gpu_info;

typedef uint64_t leat__gpu_memory; /* an address on the device, 0 = none */

/* Bytes per second: second lowest, median and second highest of several measurements. */
typedef struct leat__gpu_rate {
    double low, mid, high;
} leat__gpu_rate;

int leat__gpu_count(const char *library, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Finds the device for "cuda" or "cuda:N". "cuda" means LOCAL_RANK if a launcher set it and there are that
 * many devices, else the device this thread already uses, else the first. A LOCAL_RANK that is not a number
 * is an error. Creates no context. */
int leat__gpu_choose(const char *name, uint32_t *index, leat_error *err) LEAT_MUST_CHECK;

/* Opens device `index` with its primary context, which PyTorch uses too. */
int leat__gpu_open(leat__gpu **gpu, uint32_t index, const char *library, leat_error *err) LEAT_MUST_CHECK;
leat__gpu *leat__gpu_ref(leat__gpu *gpu); /* adds a reference, which a close drops */
void leat__gpu_close(leat__gpu **gpu);    /* the last one releases the context */
const leat__gpu_info *leat__gpu_info_view(const leat__gpu *gpu);

/* Allocates page-locked host memory, which the device reads without a staging copy. Unpin it before closing
 * the device; NULL is fine. */
int leat__gpu_pin(leat__gpu *gpu, uint64_t bytes, void **memory, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_unpin(leat__gpu *gpu, void *memory);

/* Page-locks existing memory: whole pages. */
int leat__gpu_lock_pages(leat__gpu *gpu, void *memory, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_unlock_pages(leat__gpu *gpu, void *memory);

/* Page-locks existing memory so that kernels can read it at *address. End it with leat__gpu_unlock_pages,
 * once no queued work reads it. */
int leat__gpu_map_pages(leat__gpu *gpu, void *memory, uint64_t bytes, leat__gpu_memory *address,
                        leat_error *err) LEAT_MUST_CHECK;
/* True when both handles have the same context, so that addresses of one are valid for the other. */
bool leat__gpu_same(const leat__gpu *a, const leat__gpu *b);

int leat__gpu_alloc(leat__gpu *gpu, uint64_t bytes, leat__gpu_memory *memory,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_free(leat__gpu *gpu, leat__gpu_memory memory);
int leat__gpu_unused(leat__gpu *gpu, uint64_t *bytes, leat_error *err) LEAT_MUST_CHECK;

/* Measures how fast host memory (page-locked or ordinary) is copied to the device, with copies of 32 MiB for
 * about a quarter of a second. LEAT_ENOMEM: host or device lacks that much. */
int leat__gpu_copy_rate(leat__gpu *gpu, bool pinned, leat__gpu_rate *rate, leat_error *err) LEAT_MUST_CHECK;

#endif
