/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the CUDA driver. Device memory is memory of the host, so that tests see what arrived.
 * Work on streams waits for events as on a device; work of a "trainer" that the tests begin and end
 * (fake_cuda_begin, fake_cuda_end) stands for kernels on streams that leat does not know. Copies that
 * are waited for with cuStreamSynchronize take the time of a bus of 8 GB/s (page-locked memory) or
 * 4 GB/s (ordinary). FAKE_CUDA chooses what goes wrong, fake_cuda_fail makes the n-th call fail.
 * "capture" and "capture ordinary": a thread captures a graph, on a stream that does not block or one that
 * does; marking all streams breaks the capture, as the driver does. Calls in the wrong order abort;
 * fake_cuda_held() says what was taken and not released.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "host_kernels.h"

#define EXPORT __attribute__((visibility("default")))
enum {
    OK = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    NO_CONTEXT = 201,
    NOT_READY = 600,
    CAPTURE = 900,
    CAPTURE_IMPLICIT = 906,
    UNKNOWN = 999
};
#define MEMORY ((size_t)8 << 30)
#define DEVICES 2
#define TIMED ((size_t)16 << 20) /* copies that only take their time */

EXPORT int fake_cuda_held(void);
EXPORT int fake_cuda_begin(void);         /* a kernel of the trainer begins: its number */
EXPORT void fake_cuda_end(int kernel);    /* and ends, with all before it */
EXPORT int fake_cuda_calls(void);         /* made so far */
EXPORT void fake_cuda_fail(int call);     /* this one fails; 0 = none */
EXPORT int fake_cuda_locked(void);        /* blocks of page-locked memory */
EXPORT uint64_t fake_cuda_gathered(void); /* bytes that kernels read from memory of the host */
EXPORT void fake_cuda_hold(int on);       /* kernels wait until it is off */
EXPORT int fake_cuda_broken(void);        /* calls that ended a capture with an error */
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
EXPORT int cuCtxGetCurrent(void **ctx);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT int cuMemGetInfo_v2(size_t *unused, size_t *total);
EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
EXPORT int cuMemFreeHost(void *memory);
EXPORT int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags);
EXPORT int cuMemHostUnregister(void *memory);
EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags);
EXPORT int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
EXPORT int cuMemFree_v2(uint64_t memory);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuStreamDestroy_v2(void *stream);
EXPORT int cuStreamIsCapturing(void *stream, int *status);
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
EXPORT int cuEventCreate(void **event, unsigned flags);
EXPORT int cuEventDestroy_v2(void *event);
EXPORT int cuEventRecord(void *event, void *stream);
EXPORT int cuEventQuery(void *event);
EXPORT int cuEventSynchronize(void *event);
EXPORT int cuEventElapsedTime(float *ms, void *begin, void *end);
EXPORT int cuCtxRecordEvent(void *ctx, void *event);
EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleUnload(void *module);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                          void **parameters, void **extra);
EXPORT int nvrtcCreateProgram(void **p, const char *source, const char *name, int headers,
                              const char *const *header, const char *const *names);
EXPORT int nvrtcCompileProgram(void *p, int options, const char *const *option);
EXPORT int nvrtcGetCUBINSize(void *p, size_t *size);
EXPORT int nvrtcGetCUBIN(void *p, char *out);
EXPORT int nvrtcGetProgramLogSize(void *p, size_t *size);
EXPORT int nvrtcGetProgramLog(void *p, char *out);
EXPORT int nvrtcDestroyProgram(void **p);

/* An event has passed when all of its marks have: one set by a stream, one by the trainer's work. */
typedef struct fake_event {
    struct fake_event *next, **at; /* in the list of all, and what points here */
    bool pending;                  /* recorded on a stream that has not come to it */
    int kernel;                    /* of the trainer that must have ended */
    int uses;                      /* queued items that name it: it may be destroyed before */
    bool destroyed;
} fake_event;

typedef enum item_kind { ITEM_COPY, ITEM_RECORD, ITEM_AFTER, ITEM_KERNEL } item_kind;
typedef struct item {
    struct item *next;
    item_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    fake_event *event;
    void (*kernel)(const leat_job *job);
    leat_job job;
} item;

typedef struct fake_stream {
    struct fake_stream *next;
    item *head, **tail;
    size_t queued_ns;
} fake_stream;

typedef struct block {
    struct block *next;
    char *memory;
    size_t bytes;
    bool locked; /* of the host */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool started;
static int contexts, modules, events, begun, ended, calls, fail_at, token[DEVICES];
static struct fake_event *all_events; /* not destroyed yet */
static _Thread_local int entered, entered_device;
static _Thread_local int capture_mode;
static int all_entered;
static fake_stream *streams;
static block *blocks;
static size_t taken;
static uint64_t gathered;
static bool holding;
static int broken;

static bool mode(const char *name)
{
    const char *value = getenv("FAKE_CUDA");
    return value && strcmp(value, name) == 0;
}

static void need(bool condition)
{
    if (!condition) abort();
}

static bool capturing(void)
{
    return mode("capture") || mode("capture ordinary");
}

/* Inside the context, and allowed to make calls that a capture of another thread forbids. */
static void need_ours(void)
{
    need(entered > 0 && capture_mode == 2);
}

static bool fails(void)
{
    pthread_mutex_lock(&lock);
    bool now = ++calls == fail_at;
    pthread_mutex_unlock(&lock);
    return now;
}

#define COUNTED                                                                                              \
    do {                                                                                                     \
        if (fails()) return UNKNOWN;                                                                         \
    } while (0)

int fake_cuda_held(void)
{
    int n = contexts + modules + all_entered + events;
    for (const fake_stream *s = streams; s; s = s->next) n++;
    for (const block *b = blocks; b; b = b->next) n++;
    return n;
}

int fake_cuda_calls(void)
{
    pthread_mutex_lock(&lock);
    int n = calls;
    pthread_mutex_unlock(&lock);
    return n;
}

void fake_cuda_fail(int call)
{
    pthread_mutex_lock(&lock);
    fail_at = call;
    pthread_mutex_unlock(&lock);
}

int fake_cuda_locked(void)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks; b; b = b->next) n += b->locked;
    pthread_mutex_unlock(&lock);
    return n;
}

int fake_cuda_broken(void)
{
    pthread_mutex_lock(&lock);
    int n = broken;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- work ---- */

static bool passed(const fake_event *e)
{
    return !e->pending && e->kernel <= ended;
}

static void drop_use(fake_event *e)
{
    if (--e->uses > 0 || !e->destroyed) return;
    *e->at = e->next;
    if (e->next) e->next->at = e->at;
    free(e);
}

/* Runs what can run. The lock is held. */
static void progress(void)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (fake_stream *s = streams; s; s = s->next) {
            item *i = s->head;
            if (!i || (i->kind == ITEM_AFTER && !passed(i->event)) || (i->kind == ITEM_KERNEL && holding))
                continue;
            if (i->kind == ITEM_COPY && i->bytes < TIMED) memcpy(i->to, i->from, i->bytes);
            if (i->kind == ITEM_KERNEL) i->kernel(&i->job);
            if (i->kind == ITEM_RECORD) i->event->pending = false;
            if (i->event) drop_use(i->event);
            s->head = i->next;
            if (!s->head) s->tail = &s->head;
            free(i);
            moved = true;
        }
    }
    pthread_cond_broadcast(&changed);
}

int fake_cuda_begin(void)
{
    pthread_mutex_lock(&lock);
    int kernel = ++begun;
    pthread_mutex_unlock(&lock);
    return kernel;
}

void fake_cuda_end(int kernel)
{
    pthread_mutex_lock(&lock);
    if (kernel > ended) ended = kernel;
    progress();
    pthread_mutex_unlock(&lock);
}

static void queue(fake_stream *s, item what)
{
    item *i = malloc(sizeof *i);
    need(i != NULL);
    *i = what;
    i->next = NULL;
    if (i->event) i->event->uses++;
    *s->tail = i;
    s->tail = &i->next;
    progress();
}

uint64_t fake_cuda_gathered(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = gathered;
    pthread_mutex_unlock(&lock);
    return n;
}

void fake_cuda_hold(int on)
{
    pthread_mutex_lock(&lock);
    holding = on != 0;
    progress();
    pthread_mutex_unlock(&lock);
}

/* ---- devices ---- */

int cuInit(unsigned flags)
{
    need(flags == 0);
    if (mode("init")) return UNKNOWN;
    if (mode("no device")) return NO_DEVICE;
    if (mode("forked")) return NOT_INITIALIZED;
    if (mode("twice")) return INVALID_DEVICE;
    started = true;
    return OK;
}

int cuGetErrorName(int rc, const char **name)
{
    *name = rc == NO_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : rc == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
                              : "CUDA_ERROR_UNKNOWN";
    return mode("nameless") ? INVALID : OK;
}

int cuDeviceGetCount(int *count)
{
    need(started);
    *count = mode("none") ? 0 : DEVICES;
    return OK;
}

int cuDeviceGet(int *device, int index)
{
    need(index >= 0 && index < DEVICES);
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
    COUNTED;
    if (mode("context") || mode("nameless")) return UNKNOWN;
    *ctx = &token[device - 10];
    __atomic_add_fetch(&contexts, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    need(device >= 10 && contexts > 0 && entered == 0);
    if (__atomic_sub_fetch(&contexts, 1, __ATOMIC_SEQ_CST) > 0) return OK;
    pthread_mutex_lock(&lock);
    progress();                                            /* then nothing that is queued names them */
    for (fake_event *e = all_events, *next; e; e = next) { /* a context takes its events with it */
        next = e->next;
        if (e->uses == 0) free(e);
    }
    all_events = NULL;
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuCtxPushCurrent_v2(void *ctx)
{
    need((ctx == &token[0] || ctx == &token[1]) && contexts > 0);
    COUNTED;
    entered++;
    entered_device = (int)((int *)ctx - token);
    __atomic_add_fetch(&all_entered, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int cuCtxPopCurrent_v2(void **ctx)
{
    need(entered > 0);
    entered--;
    __atomic_sub_fetch(&all_entered, 1, __ATOMIC_SEQ_CST);
    *ctx = &token[entered_device];
    return OK;
}

int cuCtxGetCurrent(void **ctx)
{
    *ctx = mode("current") ? &token[0] : NULL;
    return OK;
}

int cuCtxGetDevice(int *device)
{
    if (mode("current")) *device = 11;
    return mode("current") ? OK : NO_CONTEXT;
}

int cuThreadExchangeStreamCaptureMode(int *given)
{
    int before = capture_mode;
    capture_mode = *given;
    *given = before;
    return OK;
}

/* ---- memory ---- */

static int add_block(char *memory, size_t bytes, bool is_locked)
{
    block *b = malloc(sizeof *b);
    need(b != NULL && memory != NULL);
    *b = (block){NULL, memory, bytes, is_locked};
    pthread_mutex_lock(&lock);
    b->next = blocks;
    blocks = b;
    if (!is_locked) taken += bytes;
    pthread_mutex_unlock(&lock);
    return OK;
}

/* Returns its size. */
static size_t remove_block(const void *memory, bool is_locked)
{
    pthread_mutex_lock(&lock);
    block **at = &blocks;
    while (*at && ((*at)->memory != memory || (*at)->locked != is_locked)) at = &(*at)->next;
    block *b = *at;
    need(b != NULL);
    *at = b->next;
    if (!is_locked) taken -= b->bytes;
    pthread_mutex_unlock(&lock);
    size_t bytes = b->bytes;
    free(b);
    return bytes;
}

/* Whether the range is in one block. The lock is held. */
static bool inside(const void *from, size_t bytes, bool is_locked)
{
    for (const block *b = blocks; b; b = b->next)
        if (b->locked == is_locked && (const char *)from >= b->memory &&
            (const char *)from + bytes <= b->memory + b->bytes)
            return true;
    return false;
}

/* Memory of the device and page-locked memory are large and hardly touched. Under a sanitizer they come from
 * the heap, which finds accesses past their end; else from mmap, because the test runner has malloc fill
 * its blocks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FROM_HEAP 1
#elif defined(__has_feature)
#define FROM_HEAP (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FROM_HEAP 0
#endif

static void *large_alloc(size_t bytes)
{
    if (FROM_HEAP) return aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void large_free(void *memory, size_t bytes)
{
    if (FROM_HEAP) free(memory);
    else munmap(memory, bytes);
}

int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    need_ours();
    COUNTED;
    *unused = MEMORY - taken;
    *total = MEMORY;
    return OK;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    need(entered > 0 && capture_mode == 2 && flags == 0);
    COUNTED;
    if (mode("pin")) return NO_MEMORY;
    return add_block(*memory = large_alloc(bytes), bytes, true);
}

int cuMemFreeHost(void *memory)
{
    need_ours();
    large_free(memory, remove_block(memory, true));
    return OK;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    need_ours();
    need((flags == 0 || flags == 3) && (uintptr_t)memory % 4096 == 0 && bytes % 4096 == 0);
    COUNTED;
    if (mode("pin") || (flags == 3 && mode("map"))) return NO_MEMORY;
    return add_block(memory, bytes, true);
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags)
{
    need(entered > 0 && capture_mode == 2 && flags == 0);
    COUNTED;
    pthread_mutex_lock(&lock);
    need(inside(memory, 1, true));
    pthread_mutex_unlock(&lock);
    *address = (uint64_t)(uintptr_t)memory;
    return OK;
}

int cuMemHostUnregister(void *memory)
{
    need_ours();
    (void)remove_block(memory, true);
    return OK;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    need_ours();
    COUNTED;
    if (mode("memory")) return NO_MEMORY;
    void *p = large_alloc(bytes);
    *memory = (uint64_t)(uintptr_t)p;
    return add_block(p, bytes, false);
}

int cuMemFree_v2(uint64_t memory)
{
    void *p = (void *)(uintptr_t)memory;
    need(entered > 0 && capture_mode == 2 && memory > 0);
    pthread_mutex_lock(&lock);
    while (ended < begun) pthread_cond_wait(&changed, &lock); /* it waits for all work on the device */
    pthread_mutex_unlock(&lock);
    large_free(p, remove_block(p, false));
    return OK;
}

/* ---- streams and events ---- */

static int copy(void *to, const void *from, size_t bytes, fake_stream *s, const void *host)
{
    need_ours();
    COUNTED;
    if (mode("copy")) return UNKNOWN;
    pthread_mutex_lock(&lock);
    need(inside(host == from ? to : from, bytes, false));
    s->queued_ns += inside(host, bytes, true) ? bytes / 8 : bytes / 4;
    queue(s, (item){.kind = ITEM_COPY, .to = to, .from = from, .bytes = bytes});
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    return copy((void *)(uintptr_t)to, from, bytes, stream, from);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    return copy(to, (const void *)(uintptr_t)from, bytes, stream, to);
}

int cuStreamCreate(void **stream, unsigned flags)
{
    need(entered > 0 && capture_mode == 2 && flags <= 1);
    COUNTED;
    if (mode("stream")) return NO_MEMORY;
    fake_stream *s = calloc(1, sizeof *s);
    need(s != NULL);
    s->tail = &s->head;
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *stream = s;
    return OK;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    need_ours();
    COUNTED;
    *least = 0;
    *greatest = -5;
    return OK;
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    need(priority == -5);
    return cuStreamCreate(stream, flags);
}

int cuStreamSynchronize(void *stream)
{
    fake_stream *s = stream;
    need_ours();
    COUNTED;
    pthread_mutex_lock(&lock);
    struct timespec span = {.tv_nsec = (long)s->queued_ns};
    s->queued_ns = 0;
    while (s->head) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    nanosleep(&span, NULL);
    return OK;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    need(entered > 0 &&
         stream <= (void *)1); /* 1: the legacy stream, which ordinary ones block; 0: a consumer's */
    *status = stream == NULL && mode("capture");
    return mode("capture ordinary") ? CAPTURE_IMPLICIT : OK;
}

int cuStreamDestroy_v2(void *stream)
{
    need_ours();
    pthread_mutex_lock(&lock);
    fake_stream **at = &streams;
    while (*at != stream) at = &(*at)->next;
    *at = (*at)->next;
    need(((fake_stream *)stream)->head == NULL);
    pthread_mutex_unlock(&lock);
    free(stream);
    return OK;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    need(entered > 0 && capture_mode == 2 && flags == 0);
    COUNTED;
    pthread_mutex_lock(&lock);
    queue(stream, (item){.kind = ITEM_AFTER, .event = event});
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuEventCreate(void **event, unsigned flags)
{
    need(entered > 0 && capture_mode == 2 && flags <= 3);
    COUNTED;
    fake_event *e = calloc(1, sizeof *e);
    need(e != NULL);
    pthread_mutex_lock(&lock);
    *e = (fake_event){.next = all_events, .at = &all_events};
    if (all_events) all_events->at = &e->next;
    all_events = e;
    pthread_mutex_unlock(&lock);
    *event = e;
    __atomic_add_fetch(&events, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int cuEventDestroy_v2(void *event)
{
    fake_event *e = event;
    need_ours();
    pthread_mutex_lock(&lock);
    e->destroyed = true;
    e->uses++;
    drop_use(e);
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&events, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int cuEventRecord(void *event, void *stream)
{
    fake_event *e = event;
    need_ours();
    COUNTED;
    pthread_mutex_lock(&lock);
    e->pending = stream != NULL;
    e->kernel = stream != NULL ? 0 : begun; /* the consumer's: its kernels, in their order */
    if (stream != NULL) queue(stream, (item){.kind = ITEM_RECORD, .event = e});
    else broken += capturing();
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuCtxRecordEvent(void *ctx, void *event)
{
    fake_event *e = event;
    need(entered > 0 && capture_mode == 2 && (ctx == &token[0] || ctx == &token[1]));
    COUNTED;
    pthread_mutex_lock(&lock);
    const bool breaks = capturing();
    broken += breaks;
    if (!breaks) {
        e->pending = false;
        e->kernel = begun;
    }
    pthread_mutex_unlock(&lock);
    return breaks ? CAPTURE : OK;
}

int cuEventQuery(void *event)
{
    need_ours();
    COUNTED;
    pthread_mutex_lock(&lock);
    progress();
    bool is = passed(event);
    pthread_mutex_unlock(&lock);
    return is ? OK : NOT_READY;
}

int cuEventSynchronize(void *event)
{
    need_ours();
    COUNTED;
    pthread_mutex_lock(&lock);
    progress();
    while (!passed(event)) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuEventElapsedTime(float *ms, void *begin, void *end)
{
    need(entered > 0 && capture_mode == 2 && begin != end);
    *ms = 1;
    return OK;
}

/* ---- kernels: on the host ---- */

int cuModuleLoadData(void **module, const void *image)
{
    need(entered > 0 && capture_mode == 2 && image != NULL);
    COUNTED;
    if (mode("module")) return UNKNOWN;
    *module = &modules;
    __atomic_add_fetch(&modules, 1, __ATOMIC_SEQ_CST);
    return OK;
}

int cuModuleUnload(void *module)
{
    need(entered > 0 && capture_mode == 2 && module == &modules && modules > 0);
    __atomic_sub_fetch(&modules, 1, __ATOMIC_SEQ_CST);
    return OK;
}

/* Ranges are read from memory that is page-locked now, and written to memory of the device. */
static void checked_gather(const leat_job *job)
{
    for (uint32_t i = 0; i < job->range_count; i++) {
        const leat_job_range *const r = &job->ranges[i];
        const size_t bytes = (size_t)r->lines * LEAT_JOB_LINE;
        need(r->from % LEAT_JOB_LINE == 0 && r->to % LEAT_JOB_LINE == 0);
        need(inside((const void *)(uintptr_t)r->from, bytes, true));
        need(inside((const void *)(uintptr_t)r->to, bytes, false));
        gathered += bytes;
    }
    host_gather(job);
}

static const struct {
    const char *name;
    void (*run)(const leat_job *job);
} kernels[] = {{"leat_axes", host_axes},     {"leat_tiles", host_tiles}, {"leat_pixels", host_pixels},
               {"leat_colour", host_colour}, {"leat_mix", host_mix},     {"leat_gather", checked_gather}};

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    need(entered > 0 && capture_mode == 2 && module == &modules);
    COUNTED;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) != 0) continue;
        *function = (void *)(uintptr_t)&kernels[i];
        return OK;
    }
    return INVALID;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                   void **extra)
{
    need_ours();
    need(grid_x > 0 && grid_y > 0 && grid_z == 1 && block_x % 32 == 0 && block_y == 1 && block_z == 1 &&
         shared == 0 && extra == NULL);
    COUNTED;
    item i = {.kind = ITEM_KERNEL, .job = *(const leat_job *)parameters[0]};
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        if (function == (void *)(uintptr_t)&kernels[k]) i.kernel = kernels[k].run;
    need(i.kernel != NULL);
    pthread_mutex_lock(&lock);
    queue(stream, i);
    pthread_mutex_unlock(&lock);
    return OK;
}

/* ---- NVRTC ---- */

int nvrtcCreateProgram(void **p, const char *source, const char *name, int headers, const char *const *header,
                       const char *const *names)
{
    need(strstr(source, "leat_tiles") != NULL && name != NULL && headers == 0 && !header && !names);
    *p = &modules;
    return OK;
}

int nvrtcCompileProgram(void *p, int options, const char *const *option)
{
    need(p == &modules && options == 2 && strncmp(option[0], "--gpu-architecture=sm_", 22) == 0);
    return mode("compile") ? INVALID : OK;
}

int nvrtcGetCUBINSize(void *p, size_t *size)
{
    need(p == &modules);
    *size = 100;
    return OK;
}

int nvrtcGetCUBIN(void *p, char *out)
{
    need(p == &modules);
    memset(out, 'c', 100);
    return OK;
}

int nvrtcGetProgramLogSize(void *p, size_t *size)
{
    need(p == &modules);
    *size = 12;
    return OK;
}

int nvrtcGetProgramLog(void *p, char *out)
{
    need(p == &modules);
    memcpy(out, "line 1: what", 12);
    return OK;
}

int nvrtcDestroyProgram(void **p)
{
    *p = NULL;
    return OK;
}
