/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver by dlopen: the few calls we need are declared here. The numbered names are
 * the driver's binary interface since CUDA 4 and are kept by later drivers. Owns the context it
 * retained and nothing of the thread: every call pushes that context and pops it again.
 */
#include "gpu/device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"

#define DRIVER "libcuda.so.1"
#define COPY_BYTES (UINT64_C(32) << 20)
#define SLICES 9
#define SLICE_NS (LEAT_NS_PER_S / 40)
#define ALIGN 4096

enum { CUDA_OUT_OF_MEMORY = 2, CUDA_NO_DEVICE = 100 };
enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };

typedef void *context;
typedef void *stream;
typedef uint64_t device_memory;

typedef struct driver {
    int (*init)(unsigned flags);
    int (*error_name)(int rc, const char **name);
    int (*count)(int *count);
    int (*get)(int *device, int index);
    int (*name)(char *name, int size, int device);
    int (*total)(size_t *bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*retain)(context *ctx, int device);
    int (*release)(int device);
    int (*push)(context ctx);
    int (*pop)(context *ctx);
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*alloc)(device_memory *memory, size_t bytes);
    int (*free)(device_memory memory);
    int (*copy)(device_memory to, const void *from, size_t bytes, stream s);
    int (*stream_make)(stream *s, unsigned flags);
    int (*stream_wait)(stream s);
    int (*stream_free)(stream s);
} driver;

struct leat__gpu {
    driver cu;
    int device;
    context ctx;
    leat__gpu_info info;
};

/* ---- The driver ---- */

static int load(driver *cu, const char *library, leat_error *err)
{
    /* POSIX: what dlsym returns may be copied into a function pointer. */
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"cuInit", &cu->init},
        {"cuGetErrorName", &cu->error_name},
        {"cuDeviceGetCount", &cu->count},
        {"cuDeviceGet", &cu->get},
        {"cuDeviceGetName", &cu->name},
        {"cuDeviceTotalMem_v2", &cu->total},
        {"cuDeviceGetAttribute", &cu->attribute},
        {"cuDevicePrimaryCtxRetain", &cu->retain},
        {"cuDevicePrimaryCtxRelease_v2", &cu->release},
        {"cuCtxPushCurrent_v2", &cu->push},
        {"cuCtxPopCurrent_v2", &cu->pop},
        {"cuMemHostAlloc", &cu->host_alloc},
        {"cuMemFreeHost", &cu->host_free},
        {"cuMemAlloc_v2", &cu->alloc},
        {"cuMemFree_v2", &cu->free},
        {"cuMemcpyHtoDAsync_v2", &cu->copy},
        {"cuStreamCreate", &cu->stream_make},
        {"cuStreamSynchronize", &cu->stream_wait},
        {"cuStreamDestroy_v2", &cu->stream_free},
    };
    /* Never closed: the driver does not expect to be unloaded. */
    void *lib = dlopen(library != NULL ? library : DRIVER, RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL) return leat__fail(err, LEAT_ENOTSUP, "no CUDA driver here (%s)", DRIVER);
    for (size_t i = 0; i < LEAT_COUNT(symbols); i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (address == NULL)
            return leat__fail(err, LEAT_ENOTSUP, "the CUDA driver lacks %s", symbols[i].name);
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    return 0;
}

static int explain(const driver *cu, int rc, const char *what, leat_error *err)
{
    const char *name = NULL;
    if (rc == 0) return 0;
    if (cu->error_name(rc, &name) != 0 || name == NULL) name = "an unknown error";
    int code = rc == CUDA_OUT_OF_MEMORY ? LEAT_ENOMEM : rc == CUDA_NO_DEVICE ? LEAT_ENOTSUP : LEAT_EIO;
    return leat__fail(err, code, "CUDA: %s: %s", what, name);
}

static int start(driver *cu, const char *library, int *count, leat_error *err)
{
    LEAT_TRY(load(cu, library, err));
    LEAT_TRY(explain(cu, cu->init(0), "starting the driver", err));
    LEAT_TRY(explain(cu, cu->count(count), "counting the GPUs", err));
    if (*count <= 0) return leat__fail(err, LEAT_ENOTSUP, "a CUDA driver, but no GPU");
    return 0;
}

int leat__gpu_count(const char *library, uint32_t *count, leat_error *err)
{
    driver cu;
    int n = 0;
    *count = 0;
    LEAT_TRY(start(&cu, library, &n, err));
    *count = (uint32_t)n;
    return 0;
}

/* ---- A device ---- */

static int read_info(leat__gpu *g, leat_error *err)
{
    const driver *cu = &g->cu;
    size_t bytes;
    int major, minor;
    LEAT_TRY(explain(cu, cu->name(g->info.name, (int)sizeof g->info.name, g->device),
                     "the name of the GPU", err));
    LEAT_TRY(explain(cu, cu->total(&bytes, g->device), "the memory of the GPU", err));
    LEAT_TRY(explain(cu, cu->attribute(&major, ATTRIBUTE_MAJOR, g->device), "its capability", err));
    LEAT_TRY(explain(cu, cu->attribute(&minor, ATTRIBUTE_MINOR, g->device), "its capability", err));
    g->info.name[sizeof g->info.name - 1] = '\0';
    g->info.memory_bytes = bytes;
    g->info.compute_major = (uint32_t)major;
    g->info.compute_minor = (uint32_t)minor;
    return 0;
}

int leat__gpu_open(leat__gpu **out, uint32_t index, const char *library, leat_error *err)
{
    int rc, count = 0;
    leat__gpu *g = LEAT_NEW(MISC, leat__gpu);
    *out = NULL;
    if (g == NULL) return leat__fail_nomem(err, sizeof *g, "a GPU");
    LEAT_GO(rc, out, start(&g->cu, library, &count, err));
    if (index >= (uint32_t)count)
        LEAT_GO(rc, out, leat__fail(err, LEAT_EINVAL, "GPU %u: there are %d", index, count));
    LEAT_GO(rc, out, explain(&g->cu, g->cu.get(&g->device, (int)index), "finding the GPU", err));
    LEAT_GO(rc, out, read_info(g, err));
    LEAT_GO(rc, out, explain(&g->cu, g->cu.retain(&g->ctx, g->device), "its context", err));
    *out = g;
    g = NULL;
out:
    leat__free(g);
    return rc;
}

void leat__gpu_close(leat__gpu **out)
{
    leat__gpu *g = *out;
    if (g == NULL) return;
    g->cu.release(g->device);
    leat__free(g);
    *out = NULL;
}

const leat__gpu_info *leat__gpu_info_view(const leat__gpu *g)
{
    return &g->info;
}

static int enter(leat__gpu *g, leat_error *err)
{
    return explain(&g->cu, g->cu.push(g->ctx), "entering its context", err);
}

static void leave(leat__gpu *g)
{
    context ours;
    g->cu.pop(&ours);
}

/* ---- Memory ---- */

int leat__gpu_pin(leat__gpu *g, uint64_t bytes, void **memory, leat_error *err)
{
    size_t size;
    *memory = NULL;
    if (!leat__u64_to_size(bytes, &size) || LEAT_FAULT(LEAT__FAULT_ALLOC))
        return leat__fail_nomem(err, bytes, "page-locked memory");
    LEAT_TRY(enter(g, err));
    int rc = explain(&g->cu, g->cu.host_alloc(memory, size, 0), "page-locked memory", err);
    leave(g);
    return rc;
}

void leat__gpu_unpin(leat__gpu *g, void *memory)
{
    if (memory == NULL || enter(g, NULL) != 0) return;
    g->cu.host_free(memory);
    leave(g);
}

/* ---- How fast it copies ---- */

/* Copies until `span_ns` passed; the wait at the end is part of it. From ordinary memory each
 * copy returns when the driver has staged it, so the same calls measure both. */
static int copy_for(const driver *cu, device_memory to, const void *from, stream s,
                    uint64_t span_ns, double *rate, leat_error *err)
{
    uint64_t begin = leat__clock_ns(), copied = 0;
    do { /* two in flight: the device never waits for us between copies */
        for (int i = 0; i < 2; i++, copied += COPY_BYTES)
            LEAT_TRY(explain(cu, cu->copy(to, from, COPY_BYTES, s), "copying", err));
        LEAT_TRY(explain(cu, cu->stream_wait(s), "copying", err));
    } while (leat__clock_ns() - begin < span_ns);
    *rate = (double)copied * 1e9 / (double)(leat__clock_ns() - begin);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const driver *cu, const void *from, leat__gpu_rate *rate, leat_error *err)
{
    device_memory to = 0;
    stream s = NULL;
    double rates[SLICES], warm;
    int rc;
    LEAT_GO(rc, out, explain(cu, cu->alloc(&to, COPY_BYTES), "memory of the GPU", err));
    LEAT_GO(rc, out, explain(cu, cu->stream_make(&s, 0), "a stream", err));
    LEAT_GO(rc, out, copy_for(cu, to, from, s, SLICE_NS, &warm, err)); /* the link wakes up */
    for (int i = 0; i < SLICES; i++)
        LEAT_GO(rc, out, copy_for(cu, to, from, s, SLICE_NS, &rates[i], err));
    qsort(rates, SLICES, sizeof rates[0], by_value);
    *rate = (leat__gpu_rate){rates[1], rates[SLICES / 2], rates[SLICES - 2]};
out:
    if (s != NULL) cu->stream_free(s);
    if (to != 0) cu->free(to);
    return rc;
}

int leat__gpu_copy_rate(leat__gpu *g, bool pinned, leat__gpu_rate *rate, leat_error *err)
{
    void *locked = NULL, *plain = NULL;
    int rc;
    if (pinned) {
        LEAT_TRY(leat__gpu_pin(g, COPY_BYTES, &locked, err));
    } else {
        plain = leat__alloc_aligned(LEAT__MEM_MISC, COPY_BYTES, ALIGN);
        if (plain == NULL) return leat__fail_nomem(err, COPY_BYTES, "a copy to the GPU");
    }
    void *from = pinned ? locked : plain;
    memset(from, 0x5a, COPY_BYTES); /* pages that exist, not the kernel's page of zeros */
    LEAT_GO(rc, out, enter(g, err));
    rc = measure(&g->cu, from, rate, err);
    leave(g);
out:
    leat__gpu_unpin(g, locked);
    leat__free(plain);
    return rc;
}
