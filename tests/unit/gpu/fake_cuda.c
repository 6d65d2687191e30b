/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the CUDA driver, loaded by test_device. Copies take the time a bus of 8 GB/s
 * (page-locked) or 4 GB/s (ordinary memory) would need. FAKE_CUDA chooses what goes wrong. Calls
 * in the wrong order abort; fake_cuda_held() says what was taken and not given back.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, UNKNOWN = 999 };
#define MEMORY ((size_t)8 << 30)

EXPORT int fake_cuda_held(void);
EXPORT int cuInit(unsigned flags);
EXPORT int cuGetErrorName(int rc, const char **name);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int index);
EXPORT int cuDeviceGetName(char *name, int size, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxPushCurrent_v2(void *ctx);
EXPORT int cuCtxPopCurrent_v2(void **ctx);
EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
EXPORT int cuMemFreeHost(void *memory);
EXPORT int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
EXPORT int cuMemFree_v2(uint64_t memory);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuStreamDestroy_v2(void *stream);

static bool started;
static int contexts, entered, blocks, pinned_blocks, streams;
static char *locked;
static size_t locked_bytes, queued_ns;

static bool mode(const char *name)
{
    const char *value = getenv("FAKE_CUDA");
    return value && strcmp(value, name) == 0;
}

static void need(bool condition)
{
    if (!condition) abort();
}

int fake_cuda_held(void)
{
    return contexts + entered + blocks + pinned_blocks + streams;
}

int cuInit(unsigned flags)
{
    need(flags == 0);
    if (mode("init")) return UNKNOWN;
    if (mode("no device")) return NO_DEVICE;
    started = true;
    return OK;
}

int cuGetErrorName(int rc, const char **name)
{
    *name = rc == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
    return mode("nameless") ? INVALID : OK;
}

int cuDeviceGetCount(int *count)
{
    need(started);
    *count = mode("none") ? 0 : 2;
    return OK;
}

int cuDeviceGet(int *device, int index)
{
    need(index >= 0 && index < 2);
    *device = 10 + index;
    return OK;
}

int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Fake CUDA %d", device - 10);
    return OK;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    need(device >= 10);
    *bytes = MEMORY;
    return OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    need(device >= 10 && (attribute == 75 || attribute == 76));
    *value = attribute == 75 ? 9 : 0;
    return OK;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
    need(device >= 10);
    if (mode("context") || mode("nameless")) return UNKNOWN;
    *ctx = &contexts;
    contexts++;
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    need(device >= 10 && contexts > 0 && entered == 0);
    contexts--;
    return OK;
}

int cuCtxPushCurrent_v2(void *ctx)
{
    need(ctx == &contexts && contexts > 0);
    entered++;
    return OK;
}

int cuCtxPopCurrent_v2(void **ctx)
{
    need(entered > 0);
    entered--;
    *ctx = &contexts;
    return OK;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    need(entered > 0 && flags == 0);
    if (mode("pin")) return NO_MEMORY;
    locked = *memory = malloc(bytes);
    locked_bytes = bytes;
    pinned_blocks++;
    return OK;
}

int cuMemFreeHost(void *memory)
{
    need(entered > 0 && memory == locked);
    free(memory);
    locked = NULL;
    pinned_blocks--;
    return OK;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    need(entered > 0);
    if (mode("memory")) return NO_MEMORY;
    *memory = bytes;
    blocks++;
    return OK;
}

int cuMemFree_v2(uint64_t memory)
{
    need(entered > 0 && memory > 0 && blocks > 0);
    blocks--;
    return OK;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    bool fast = locked != NULL && (const char *)from >= locked &&
                (const char *)from + bytes <= locked + locked_bytes;
    need(entered > 0 && blocks > 0 && bytes <= to && stream == &streams);
    if (mode("copy")) return UNKNOWN;
    queued_ns += fast ? bytes / 8 : bytes / 4;
    return OK;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    need(entered > 0 && flags == 0);
    *stream = &streams;
    streams++;
    return OK;
}

int cuStreamSynchronize(void *stream)
{
    struct timespec span = {.tv_nsec = (long)queued_ns};
    need(entered > 0 && stream == &streams);
    nanosleep(&span, NULL);
    queued_ns = 0;
    return OK;
}

int cuStreamDestroy_v2(void *stream)
{
    need(entered > 0 && stream == &streams);
    streams--;
    return OK;
}
