/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver's interface, loaded at run time, with the calls that leat uses. Private to this module.
 * Names with a version suffix (_v2) are part of the driver's ABI; later drivers keep them.
 */
#ifndef LEAT_GPU_DRIVER_H
#define LEAT_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef void *leat__cu_context;
typedef void *leat__cu_stream;
typedef void *leat__cu_event;
typedef void *leat__cu_module;
typedef void *leat__cu_function;
typedef uint64_t leat__cu_memory;

/* member, symbol, 1 = required, parameters */
#define LEAT__CU_MAP(X)                                                                                      \
    X(init, "cuInit", 1, (unsigned flags))                                                                   \
    X(error_name, "cuGetErrorName", 1, (int rc, const char **name))                                          \
    X(count, "cuDeviceGetCount", 1, (int *count))                                                            \
    X(get, "cuDeviceGet", 1, (int *device, int index))                                                       \
    X(name, "cuDeviceGetName", 1, (char *name, int size, int device))                                        \
    X(total, "cuDeviceTotalMem_v2", 1, (size_t * bytes, int device))                                         \
    X(attribute, "cuDeviceGetAttribute", 1, (int *value, int attribute, int device))                         \
    X(retain, "cuDevicePrimaryCtxRetain", 1, (leat__cu_context * ctx, int device))                           \
    X(release, "cuDevicePrimaryCtxRelease_v2", 1, (int device))                                              \
    X(push, "cuCtxPushCurrent_v2", 1, (leat__cu_context ctx))                                                \
    X(pop, "cuCtxPopCurrent_v2", 1, (leat__cu_context * ctx))                                                \
    X(current, "cuCtxGetCurrent", 1, (leat__cu_context * ctx))                                               \
    X(current_device, "cuCtxGetDevice", 1, (int *device))                                                    \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", 1, (int *mode))                                     \
    X(memory_info, "cuMemGetInfo_v2", 1, (size_t * unused, size_t * total))                                  \
    X(host_alloc, "cuMemHostAlloc", 1, (void **memory, size_t bytes, unsigned flags))                        \
    X(host_free, "cuMemFreeHost", 1, (void *memory))                                                         \
    X(host_register, "cuMemHostRegister_v2", 1, (void *memory, size_t bytes, unsigned flags))                \
    X(host_unregister, "cuMemHostUnregister", 1, (void *memory))                                             \
    X(host_address, "cuMemHostGetDevicePointer_v2", 1,                                                       \
      (leat__cu_memory * address, void *memory, unsigned flags))                                             \
    X(alloc, "cuMemAlloc_v2", 1, (leat__cu_memory * memory, size_t bytes))                                   \
    X(free, "cuMemFree_v2", 1, (leat__cu_memory memory))                                                     \
    X(copy, "cuMemcpyHtoDAsync_v2", 1,                                                                       \
      (leat__cu_memory to, const void *from, size_t bytes, leat__cu_stream s))                               \
    X(copy_back, "cuMemcpyDtoHAsync_v2", 1,                                                                  \
      (void *to, leat__cu_memory from, size_t bytes, leat__cu_stream s))                                     \
    X(stream_make, "cuStreamCreate", 1, (leat__cu_stream * s, unsigned flags))                               \
    X(priorities, "cuCtxGetStreamPriorityRange", 1, (int *least, int *greatest))                             \
    X(stream_urgent, "cuStreamCreateWithPriority", 1, (leat__cu_stream * s, unsigned flags, int priority))   \
    X(stream_wait, "cuStreamSynchronize", 1, (leat__cu_stream s))                                            \
    X(stream_free, "cuStreamDestroy_v2", 1, (leat__cu_stream s))                                             \
    X(stream_after, "cuStreamWaitEvent", 1, (leat__cu_stream s, leat__cu_event e, unsigned flags))           \
    X(stream_captured, "cuStreamIsCapturing", 1, (leat__cu_stream s, int *status))                           \
    X(event_make, "cuEventCreate", 1, (leat__cu_event * e, unsigned flags))                                  \
    X(event_free, "cuEventDestroy_v2", 1, (leat__cu_event e))                                                \
    X(event_record, "cuEventRecord", 1, (leat__cu_event e, leat__cu_stream s))                               \
    X(event_query, "cuEventQuery", 1, (leat__cu_event e))                                                    \
    X(event_wait, "cuEventSynchronize", 1, (leat__cu_event e))                                               \
    X(event_span, "cuEventElapsedTime", 1, (float *ms, leat__cu_event begin, leat__cu_event end))            \
    X(module_load, "cuModuleLoadData", 1, (leat__cu_module * m, const void *image))                          \
    X(module_unload, "cuModuleUnload", 1, (leat__cu_module m))                                               \
    X(module_function, "cuModuleGetFunction", 1,                                                             \
      (leat__cu_function * f, leat__cu_module m, const char *name))                                          \
    X(launch, "cuLaunchKernel", 1,                                                                           \
      (leat__cu_function f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
       unsigned block_y, unsigned block_z, unsigned shared, leat__cu_stream s, void **parameters,            \
       void **extra))                                                                                        \
    X(record_all, "cuCtxRecordEvent", 0, (leat__cu_context ctx, leat__cu_event e))

typedef struct leat__cu {
#define LEAT__CU_MEMBER(member, symbol, required, parameters) int(*member) parameters;
    LEAT__CU_MAP(LEAT__CU_MEMBER)
#undef LEAT__CU_MEMBER
} leat__cu;

enum {
    LEAT__CU_OUT_OF_MEMORY = 2,
    LEAT__CU_NOT_INITIALIZED = 3, /* from cuInit in a forked child whose parent uses the driver */
    LEAT__CU_NO_DEVICE = 100,
    LEAT__CU_INVALID_DEVICE = 101,
    LEAT__CU_NOT_READY = 600,
};

/* Loads `library` (NULL: the file in LEAT_CUDA_DRIVER, else the driver's own name), initializes the driver
 * and counts the devices. LEAT_ENOTSUP: no driver, a driver that lacks a required call, or no device. */
int leat__cu_start(leat__cu *cu, const char *library, int *count, leat_error *err) LEAT_MUST_CHECK;

/* Turns the result of a driver call into 0 or an error that says what failed. */
int leat__cu_explain(const leat__cu *cu, int rc, const char *what, leat_error *err);

#endif
