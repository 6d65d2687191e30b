/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and launches the kernels: see kernels.h. A module has no state, so any number of streams may use it.
 * All loaders of a process with the same context share it.
 */
#include "gpu/kernels.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "gpu/gpu_impl.h"
#include "gpu/kernels_data.h"
#include "gpu/nvrtc.h"

#define AXIS_THREADS 128
#define PIXEL_THREADS 256 /* as in kernels.cu */
#define COLOUR_THREADS 512
#define MIX_THREADS 128
#define MIX_BLOCKS 65535u
#define GATHER_THREADS 256 /* at most as in kernels.cu */
/* 128 KB in flight saturate the bus; more threads would only take room from other kernels */
#define GATHER_BLOCKS 8u
#define WINDOW_BLOCKS 16u /* maximum blocks per image; windows are spread over them */
#define TILE_WARPS 4u     /* as in kernels.cu */
#define OLDEST 75         /* minimum compute capability, times ten */
#define GRID_Y_MAX 65535u

enum { AXES, TILES, PIXELS, COLOUR, MIX, GATHER, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"leat_axes",   "leat_tiles", "leat_pixels",
                                             "leat_colour", "leat_mix",   "leat_gather"};

/* The module of one context. */
typedef struct module {
    struct module *next;
    uint32_t refs;
    leat__cu_context ctx;
    leat__cu_module handle;
    leat__cu_function function[FUNCTIONS];
    const char *origin;
} module;

struct leat__gpu_kernels {
    leat__gpu *gpu;
    module *module;
};

static leat__mutex lock = {PTHREAD_MUTEX_INITIALIZER}; /* guards the list; held while a module is loaded */
static module *modules;

static int load(leat__gpu *gpu, const void *image, module *m, leat_error *err)
{
    const leat__cu *cu = &gpu->cu;
    int mode, rc;
    LEAT_TRY(leat__gpu_enter(gpu, &mode, err));
    LEAT_GO(rc, out, leat__cu_explain(cu, cu->module_load(&m->handle, image), "loading the kernels", err));
    for (int i = 0; i < FUNCTIONS; i++)
        LEAT_GO(
            rc, out,
            leat__cu_explain(cu, cu->module_function(&m->function[i], m->handle, names[i]), names[i], err));
out:
    leat__gpu_leave(gpu, mode);
    return rc;
}

static void unload(leat__gpu *gpu, module *m)
{
    int mode;
    if (m->handle != NULL && leat__gpu_enter(gpu, &mode, NULL) == 0) {
        gpu->cu.module_unload(m->handle);
        leat__gpu_leave(gpu, mode);
    }
    m->handle = NULL;
}

/* Loads the kernels that were built in, else compiles the source with NVRTC. */
static int find_image(leat__gpu *gpu, module *m, leat_error *err)
{
    const leat__gpu_info *info = leat__gpu_info_view(gpu);
    uint32_t arch = 10 * info->compute_major + info->compute_minor;
    leat__buf made;
    const char *origin = NULL;
    if (arch < OLDEST)
        return leat__fail(err, LEAT_ENOTSUP, "%s: decoding needs compute capability 7.5", info->name);
    if (leat__kernels_image_size > 0) {
        m->origin = "built in";
        int rc = load(gpu, leat__kernels_image, m, err);
        if (rc == 0) return 0; /* a driver older than the compiler may refuse it */
        unload(gpu, m);
    }
    leat__buf_init(&made, LEAT__MEM_MISC, (size_t)64 << 20);
    int rc = leat__nvrtc_compile(leat__kernels_source, arch, &made, &origin, err);
    if (rc == 0) rc = load(gpu, made.data, m, err);
    m->origin = origin;
    leat__buf_reset(&made);
    return rc;
}

/* Takes a reference to the module of the device's context; called with the lock held. */
static int take_module(leat__gpu *gpu, module **out, leat_error *err)
{
    for (module *m = modules; m != NULL; m = m->next) {
        if (m->ctx != gpu->ctx) continue;
        m->refs++;
        *out = m;
        return 0;
    }
    module *m = LEAT_NEW(MISC, module);
    if (m == NULL) return leat__fail_nomem(err, sizeof *m, "kernels");
    int rc = find_image(gpu, m, err);
    if (rc != 0) {
        unload(gpu, m);
        leat__free(m);
        return rc;
    }
    m->ctx = gpu->ctx;
    m->refs = 1;
    m->next = modules;
    modules = *out = m;
    return 0;
}

int leat__gpu_kernels_open(leat__gpu_kernels **out, leat__gpu *gpu, leat_error *err)
{
    leat__gpu_kernels *k = LEAT_NEW(MISC, leat__gpu_kernels);
    *out = k;
    if (k == NULL) return leat__fail_nomem(err, sizeof *k, "kernels");
    k->gpu = gpu;
    leat__mutex_lock(&lock);
    int rc = take_module(gpu, &k->module, err);
    leat__mutex_unlock(&lock);
    if (rc != 0) leat__gpu_kernels_close(out);
    return rc;
}

void leat__gpu_kernels_close(leat__gpu_kernels **out)
{
    leat__gpu_kernels *k = *out;
    if (k == NULL) return;
    *out = NULL;
    leat__mutex_lock(&lock);
    module *const m = k->module;
    if (m != NULL && --m->refs == 0) {
        module **at = &modules;
        while (*at != m) at = &(*at)->next;
        *at = m->next;
        unload(k->gpu, m);
        leat__free(m);
    }
    leat__mutex_unlock(&lock);
    leat__free(k);
}

const char *leat__gpu_kernels_origin(const leat__gpu_kernels *k)
{
    return k->module->origin;
}

static int launch(leat__gpu_kernels *k, int which, leat__gpu_stream *s, leat_job *job, uint32_t grid_x,
                  uint32_t grid_y, uint32_t threads, leat_error *err)
{
    void *parameters[] = {job};
    int rc = k->gpu->cu.launch(k->module->function[which], grid_x, grid_y, 1, threads, 1, 1, 0,
                               leat__gpu_stream_handle(s), parameters, NULL);
    return leat__cu_explain(&k->gpu->cu, rc, names[which], err);
}

static int launch_all(leat__gpu_kernels *k, leat__gpu_stream *s, leat_job *job, leat_error *err)
{
    uint32_t images = job->image_count, tiles = (job->tile_count + TILE_WARPS - 1) / TILE_WARPS;
    LEAT_TRY(launch(k, AXES, s, job, 2, images, AXIS_THREADS, err));
    LEAT_TRY(launch(k, TILES, s, job, tiles, 1, 32 * TILE_WARPS, err));
    const uint32_t windows = LEAT_MAX(LEAT_MIN(job->windows, WINDOW_BLOCKS), 1u);
    LEAT_TRY(launch(k, PIXELS, s, job, windows, images, PIXEL_THREADS, err));
    return job->steps > 0 ? launch(k, COLOUR, s, job, 1, images, COLOUR_THREADS, err) : 0;
}

int leat__gpu_kernels_decode(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job, leat_error *err)
{
    leat_job mine = *job;
    int mode;
    if (job->image_count == 0) return 0;
    if (job->image_count > GRID_Y_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u images are too many for a launch", job->image_count);
    LEAT_TRY(leat__gpu_enter(k->gpu, &mode, err));
    int rc = launch_all(k, s, &mine, err);
    leat__gpu_leave(k->gpu, mode);
    return rc;
}

int leat__gpu_kernels_mix(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job, leat_error *err)
{
    leat_job mine = *job;
    int mode;
    if (job->mix.elements == 0 || job->mix.rows == 0) return 0;
    LEAT_TRY(leat__gpu_enter(k->gpu, &mode, err));
    const uint32_t blocks = job->mix.elements / MIX_THREADS + 1;
    int rc = launch(k, MIX, s, &mine, LEAT_MIN(blocks, MIX_BLOCKS), 1, MIX_THREADS, err);
    leat__gpu_leave(k->gpu, mode);
    return rc;
}

int leat__gpu_kernels_gather(leat__gpu_kernels *k, leat__gpu_stream *s, const leat_job *job, leat_error *err)
{
    leat_job mine = *job;
    int mode;
    if (job->lines == 0) return 0;
    LEAT_TRY(leat__gpu_enter(k->gpu, &mode, err));
    int rc = launch(k, GATHER, s, &mine, GATHER_BLOCKS, 1, GATHER_THREADS, err);
    leat__gpu_leave(k->gpu, mode);
    return rc;
}
