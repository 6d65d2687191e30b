/* SPDX-License-Identifier: Apache-2.0
 *
 * One device. Owns the context it retained, but no state of the calling thread: every call pushes that
 * context and pops it again. Meanwhile the thread's capture mode is relaxed, so any call is allowed while
 * another thread captures a CUDA graph: our work is never part of that graph.
 */
#include "gpu/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "gpu/gpu_impl.h"

#define COPY_BYTES (UINT64_C(32) << 20)
#define SLICES 9
#define SLICE_NS (LEAT_NS_PER_S / 40)
#define ALIGN 4096
#define LOCAL_RANK_MAX 1000000

enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 };
enum { CAPTURE_RELAXED = 2 };
enum { REGISTER_MAPPED = 3 }; /* valid in all contexts, and readable by kernels */

int leat__gpu_count(const char *library, uint32_t *count, leat_error *err)
{
    leat__cu cu;
    int n = 0;
    *count = 0;
    LEAT_TRY(leat__cu_start(&cu, library, &n, err));
    *count = (uint32_t)n;
    return 0;
}

/* ---- Which device ---- */

/* Reads LOCAL_RANK, which launchers set for one process per GPU. *rank is -1 when it is not set. */
static int local_rank(int *rank, leat_error *err)
{
    const char *const text = getenv("LOCAL_RANK");
    char *end;
    *rank = -1;
    if (text == NULL || text[0] == '\0') return 0;
    const long value = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value >= LOCAL_RANK_MAX)
        return leat__fail(err, LEAT_EINVAL, "the environment is broken: LOCAL_RANK=%s is not a rank", text);
    *rank = (int)value;
    return 0;
}

/* Returns the device that this thread already uses, or -1. */
static int used_already(const leat__cu *cu, int count)
{
    leat__cu_context ctx = NULL;
    int device, other;
    if (cu->current(&ctx) != 0 || ctx == NULL || cu->current_device(&device) != 0) return -1;
    for (int i = 0; i < count; i++) {
        if (cu->get(&other, i) == 0 && other == device) return i;
    }
    return -1;
}

int leat__gpu_choose(const char *name, uint32_t *index, leat_error *err)
{
    leat__cu cu;
    int count = 0, rank;
    if (strncmp(name, "cuda", 4) != 0 || (name[4] != '\0' && name[4] != ':'))
        return leat__fail(err, LEAT_EINVAL, "`device`: '%s' is not cpu, cuda or cuda:N", name);
    if (name[4] == ':') {
        char *end;
        unsigned long number = strtoul(name + 5, &end, 10);
        const bool zeros = name[5] == '0' && name[6] != '\0'; /* PyTorch does not know cuda:00 */
        if (name[5] < '0' || name[5] > '9' || zeros || *end != '\0' || number > LOCAL_RANK_MAX)
            return leat__fail(err, LEAT_EINVAL, "`device`: '%s' is not cpu, cuda or cuda:N", name);
        *index = (uint32_t)number;
        return 0;
    }
    int rc = leat__cu_start(&cu, NULL, &count, err);
    if (rc == 0) rc = local_rank(&rank, err);
    if (rc != 0) {
        leat__error_context(err, "device '%s'", name);
        return rc;
    }
    int current = used_already(&cu, count);
    *index = rank >= 0 && rank < count ? (uint32_t)rank : current >= 0 ? (uint32_t)current : 0;
    return 0;
}

/* ---- A device ---- */

static int read_info(leat__gpu *g, uint32_t index, leat_error *err)
{
    const leat__cu *cu = &g->cu;
    size_t bytes;
    int major, minor;
    LEAT_TRY(leat__cu_explain(cu, cu->name(g->info.name, (int)sizeof g->info.name, g->device),
                              "the name of the GPU", err));
    LEAT_TRY(leat__cu_explain(cu, cu->total(&bytes, g->device), "the memory of the GPU", err));
    LEAT_TRY(leat__cu_explain(cu, cu->attribute(&major, ATTRIBUTE_MAJOR, g->device), "its capability", err));
    LEAT_TRY(leat__cu_explain(cu, cu->attribute(&minor, ATTRIBUTE_MINOR, g->device), "its capability", err));
    g->info.name[sizeof g->info.name - 1] = '\0';
    g->info.memory_bytes = bytes;
    g->info.compute_major = (uint32_t)major;
    g->info.compute_minor = (uint32_t)minor;
    g->info.index = (uint32_t)index;
    return 0;
}

static int check_index(uint32_t index, int count, leat_error *err)
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    if (index < (uint32_t)count) return 0;
    if (count == 1) leat__fail(err, LEAT_EINVAL, "there is 1 GPU: cuda:0");
    else leat__fail(err, LEAT_EINVAL, "there are %d GPUs: cuda:0 to cuda:%d", count, count - 1);
    if (visible != NULL) leat__error_context(err, "CUDA_VISIBLE_DEVICES is '%s'", visible);
    return LEAT_EINVAL;
}

int leat__gpu_open(leat__gpu **out, uint32_t index, const char *library, leat_error *err)
{
    int rc, count = 0;
    leat__gpu *g = LEAT_NEW(MISC, leat__gpu);
    *out = NULL;
    if (g == NULL) return leat__fail_nomem(err, sizeof *g, "a GPU");
    LEAT_GO(rc, out, leat__cu_start(&g->cu, library, &count, err));
    LEAT_GO(rc, out, check_index(index, count, err));
    LEAT_GO(rc, out, leat__cu_explain(&g->cu, g->cu.get(&g->device, (int)index), "finding the GPU", err));
    LEAT_GO(rc, out, read_info(g, index, err));
    LEAT_GO(rc, out, leat__cu_explain(&g->cu, g->cu.retain(&g->ctx, g->device), "its context", err));
    g->refs = 1;
    *out = g;
    g = NULL;
out:
    leat__free(g);
    return rc;
}

void leat__gpu_close(leat__gpu **out)
{
    leat__gpu *g = *out;
    *out = NULL;
    if (g == NULL || atomic_fetch_sub(&g->refs, 1) != 1) return;
    g->cu.release(g->device);
    leat__free(g);
}

leat__gpu *leat__gpu_ref(leat__gpu *g)
{
    atomic_fetch_add(&g->refs, 1);
    return g;
}

const leat__gpu_info *leat__gpu_info_view(const leat__gpu *g)
{
    return &g->info;
}

int leat__gpu_enter(leat__gpu *g, int *mode, leat_error *err)
{
    LEAT_TRY(leat__cu_explain(&g->cu, g->cu.push(g->ctx), "entering its context", err));
    *mode = CAPTURE_RELAXED;
    if (g->cu.capture_mode(mode) != 0) *mode = -1;
    return 0;
}

void leat__gpu_leave(leat__gpu *g, int mode)
{
    leat__cu_context ours;
    if (mode >= 0) g->cu.capture_mode(&mode);
    g->cu.pop(&ours);
}

/* ---- Memory ---- */

int leat__gpu_pin(leat__gpu *g, uint64_t bytes, void **memory, leat_error *err)
{
    size_t size;
    *memory = NULL;
    if (!leat__u64_to_size(bytes, &size) || LEAT_FAULT(LEAT__FAULT_ALLOC))
        return leat__fail_nomem(err, bytes, "page-locked memory");
    int mode;
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    int rc = leat__cu_explain(&g->cu, g->cu.host_alloc(memory, size, 0), "page-locked memory", err);
    leat__gpu_leave(g, mode);
    return rc;
}

void leat__gpu_unpin(leat__gpu *g, void *memory)
{
    int mode;
    if (memory == NULL || leat__gpu_enter(g, &mode, NULL) != 0) return;
    g->cu.host_free(memory);
    leat__gpu_leave(g, mode);
}

int leat__gpu_lock_pages(leat__gpu *g, void *memory, uint64_t bytes, leat_error *err)
{
    int mode;
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    int rc =
        leat__cu_explain(&g->cu, g->cu.host_register(memory, (size_t)bytes, 0), "page-locking memory", err);
    leat__gpu_leave(g, mode);
    return rc;
}

void leat__gpu_unlock_pages(leat__gpu *g, void *memory)
{
    int mode;
    if (leat__gpu_enter(g, &mode, NULL) != 0) return;
    g->cu.host_unregister(memory);
    leat__gpu_leave(g, mode);
}

int leat__gpu_map_pages(leat__gpu *g, void *memory, uint64_t bytes, leat__gpu_memory *address,
                        leat_error *err)
{
    int mode, rc;
    *address = 0;
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    LEAT_GO(rc, out,
            leat__cu_explain(&g->cu, g->cu.host_register(memory, (size_t)bytes, REGISTER_MAPPED),
                             "page-locking memory", err));
    rc = leat__cu_explain(&g->cu, g->cu.host_address(address, memory, 0), "mapping memory", err);
    if (rc != 0) g->cu.host_unregister(memory);
out:
    leat__gpu_leave(g, mode);
    return rc;
}

bool leat__gpu_same(const leat__gpu *a, const leat__gpu *b)
{
    return a->ctx == b->ctx;
}

int leat__gpu_alloc(leat__gpu *g, uint64_t bytes, leat__gpu_memory *memory, leat_error *err)
{
    int mode;
    *memory = 0;
    if (LEAT_FAULT(LEAT__FAULT_ALLOC)) return leat__fail_nomem(err, bytes, "device memory");
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    int rc = leat__cu_explain(&g->cu, g->cu.alloc(memory, (size_t)bytes), "device memory", err);
    leat__gpu_leave(g, mode);
    return rc;
}

void leat__gpu_free(leat__gpu *g, leat__gpu_memory memory)
{
    int mode;
    if (memory == 0 || leat__gpu_enter(g, &mode, NULL) != 0) return;
    g->cu.free(memory);
    leat__gpu_leave(g, mode);
}

int leat__gpu_unused(leat__gpu *g, uint64_t *bytes, leat_error *err)
{
    size_t unused = 0, total = 0;
    int mode;
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    int rc = leat__cu_explain(&g->cu, g->cu.memory_info(&unused, &total), "its free memory", err);
    leat__gpu_leave(g, mode);
    *bytes = unused;
    return rc;
}

/* ---- How fast it copies ---- */

/* Copies until `span_ns` have passed, including the wait at the end. From ordinary memory each copy returns
 * when the driver has staged it, so the same calls measure both kinds of memory. */
static int copy_for(const leat__cu *cu, leat__cu_memory to, const void *from, leat__cu_stream s,
                    uint64_t span_ns, double *rate, leat_error *err)
{
    uint64_t begin = leat__clock_ns(), copied = 0;
    do { /* two in flight, so that the device never waits between copies */
        for (int i = 0; i < 2; i++, copied += COPY_BYTES)
            LEAT_TRY(leat__cu_explain(cu, cu->copy(to, from, COPY_BYTES, s), "copying", err));
        LEAT_TRY(leat__cu_explain(cu, cu->stream_wait(s), "copying", err));
    } while (leat__clock_ns() - begin < span_ns);
    *rate = (double)copied * 1e9 / (double)(leat__clock_ns() - begin);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const leat__cu *cu, const void *from, leat__gpu_rate *rate, leat_error *err)
{
    leat__cu_memory to = 0;
    leat__cu_stream s = NULL;
    double rates[SLICES], warm;
    int rc;
    LEAT_GO(rc, out, leat__cu_explain(cu, cu->alloc(&to, COPY_BYTES), "memory of the GPU", err));
    LEAT_GO(rc, out, leat__cu_explain(cu, cu->stream_make(&s, 0), "a stream", err));
    LEAT_GO(rc, out, copy_for(cu, to, from, s, SLICE_NS, &warm, err)); /* wakes the link up */
    for (int i = 0; i < SLICES; i++) LEAT_GO(rc, out, copy_for(cu, to, from, s, SLICE_NS, &rates[i], err));
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
    int rc, mode;
    if (pinned) {
        LEAT_TRY(leat__gpu_pin(g, COPY_BYTES, &locked, err));
    } else {
        plain = leat__alloc_aligned(LEAT__MEM_MISC, COPY_BYTES, ALIGN);
        if (plain == NULL) return leat__fail_nomem(err, COPY_BYTES, "a copy to the GPU");
    }
    void *from = pinned ? locked : plain;
    memset(from, 0x5a, COPY_BYTES); /* touch all pages, else they would be the kernel's shared zero page */
    LEAT_GO(rc, out, leat__gpu_enter(g, &mode, err));
    rc = measure(&g->cu, from, rate, err);
    leat__gpu_leave(g, mode);
out:
    leat__gpu_unpin(g, locked);
    leat__free(plain);
    return rc;
}
