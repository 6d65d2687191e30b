/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML through dlopen. The few functions we need are declared here, so leat builds without NVIDIA
 * headers and starts without NVIDIA libraries. A function that the driver lacks or refuses (old
 * drivers, partitioned GPUs) leaves its field 0. NVML is thread-safe, and this file has no state.
 */
#include "probe/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

enum { BUS_OUT = 0, BUS_IN = 1 }; /* from the GPU's view: sent and received */
typedef void *device;
typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;
typedef struct utilization {
    unsigned gpu, memory; /* percent during the last sample period */
} utilization;

typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int rc);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, device *dev);
    /* the following may be missing */
    int (*by_uuid)(const char *uuid, device *dev);
    int (*name)(device dev, char *name, unsigned size);
    int (*uuid)(device dev, char *uuid, unsigned size);
    int (*memory)(device dev, memory_info *info);
    int (*rates)(device dev, utilization *rates);
    int (*capability)(device dev, int *major, int *minor);
    int (*pcie_generation)(device dev, unsigned *generation);
    int (*pcie_width)(device dev, unsigned *width);
    int (*pcie_throughput)(device dev, int counter, unsigned *kb_per_s);
} nvml;

static bool load(nvml *n, void *lib)
{
    /* POSIX allows copying the result of dlsym into a function pointer. */
    const struct {
        const char *name;
        void *slot;
        bool needed;
    } symbols[] = {
        {"nvmlInit_v2", &n->init, true},
        {"nvmlShutdown", &n->shutdown, true},
        {"nvmlErrorString", &n->error_string, true},
        {"nvmlDeviceGetCount_v2", &n->count, true},
        {"nvmlDeviceGetHandleByIndex_v2", &n->by_index, true},
        {"nvmlDeviceGetHandleByUUID", &n->by_uuid, false},
        {"nvmlDeviceGetName", &n->name, false},
        {"nvmlDeviceGetUUID", &n->uuid, false},
        {"nvmlDeviceGetMemoryInfo", &n->memory, false},
        {"nvmlDeviceGetUtilizationRates", &n->rates, false},
        {"nvmlDeviceGetCudaComputeCapability", &n->capability, false},
        /* the maximum of card and slot; the current link is slower when idle */
        {"nvmlDeviceGetMaxPcieLinkGeneration", &n->pcie_generation, false},
        {"nvmlDeviceGetMaxPcieLinkWidth", &n->pcie_width, false},
        {"nvmlDeviceGetPcieThroughput", &n->pcie_throughput, false},
    };
    for (size_t i = 0; i < LEAT_COUNT(symbols); i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (!address && symbols[i].needed) return false;
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    return true;
}

static void read_gpu(const nvml *n, device dev, leat_gpu *gpu)
{
    memory_info memory;
    utilization rates;
    int major, minor;
    unsigned value;
    memset(gpu, 0, sizeof *gpu);
    if (!n->name || n->name(dev, gpu->name, sizeof gpu->name) != 0) gpu->name[0] = '\0';
    if (!n->uuid || n->uuid(dev, gpu->uuid, sizeof gpu->uuid) != 0) gpu->uuid[0] = '\0';
    if (n->memory && n->memory(dev, &memory) == 0) {
        gpu->memory_bytes = memory.total;
        gpu->memory_used_bytes = memory.used;
    }
    if (n->rates && n->rates(dev, &rates) == 0) {
        gpu->utilization_percent = rates.gpu;
        gpu->memory_utilization_percent = rates.memory;
    }
    if (n->capability && n->capability(dev, &major, &minor) == 0) {
        gpu->compute_major = (uint32_t)major;
        gpu->compute_minor = (uint32_t)minor;
    }
    if (n->pcie_generation && n->pcie_generation(dev, &value) == 0) {
        gpu->pcie_generation = value;
    }
    if (n->pcie_width && n->pcie_width(dev, &value) == 0) gpu->pcie_width = value;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* The GPUs that this process may use, in their order. */
typedef struct visible {
    device dev[LEAT_MACHINE_GPUS_MAX];
    uint32_t count;
    unsigned present; /* in the machine */
    int rc;           /* error of the last GPU that the driver refused, and its index */
    unsigned refused;
} visible;

static bool take(const nvml *n, unsigned index, visible *v)
{
    device dev;
    int rc = n->by_index(index, &dev);
    if (rc == 0) {
        v->dev[v->count++] = dev;
        return true;
    }
    v->rc = rc;
    v->refused = index;
    return false;
}

/* Returns the index of the only GPU whose UUID begins with `text`; `present` if there is none, or several. */
static unsigned with_uuid(const nvml *n, const char *text, unsigned present)
{
    unsigned found = present;
    for (unsigned i = 0; i < present; i++) {
        char uuid[96];
        device dev;
        if (n->by_index(i, &dev) != 0 || !n->uuid || n->uuid(dev, uuid, sizeof uuid) != 0) continue;
        if (strncmp(uuid, text, strlen(text)) != 0) continue;
        if (found != present) return present;
        found = i;
    }
    return found;
}

/* Adds one entry of the list: an index, the beginning of a UUID, or a part of a GPU (MIG). */
static bool take_entry(const nvml *n, const char *text, visible *v)
{
    char *end;
    if (strncmp(text, "MIG-", 4) == 0) {
        if (!n->by_uuid || n->by_uuid(text, &v->dev[v->count]) != 0) return false;
        v->count++;
        return true;
    }
    if (strncmp(text, "GPU-", 4) == 0) {
        unsigned index = with_uuid(n, text, v->present);
        return index < v->present && take(n, index, v);
    }
    long index = strtol(text, &end, 10);
    return end != text && index >= 0 && index < (long)v->present && take(n, (unsigned)index, v);
}

static bool repeated(const visible *v)
{
    for (uint32_t i = 0; i + 1 < v->count; i++)
        if (v->dev[i] == v->dev[v->count - 1]) return true;
    return false;
}

/* Reads the list like CUDA: an entry that is not a GPU ends it, and a repeated entry makes it empty. */
static void take_list(const nvml *n, const char *list, uint32_t max, visible *v)
{
    while (v->count < max) {
        char text[96];
        size_t len = strcspn(list, ",");
        snprintf(text, sizeof text, "%.*s", (int)LEAT_MIN(len, sizeof text - 1), list);
        if (!take_entry(n, text + strspn(text, " "), v)) return;
        if (repeated(v)) v->count = 0;
        if (v->count == 0 || list[len] == '\0') return;
        list += len + 1;
    }
}

static int find_visible(const nvml *n, uint32_t max, visible *v)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    memset(v, 0, sizeof *v);
    max = LEAT_MIN(max, (uint32_t)LEAT_MACHINE_GPUS_MAX);
    int rc = n->count(&v->present);
    if (rc != 0) return rc;
    if (list != NULL) take_list(n, list, max, v);
    for (unsigned i = 0; list == NULL && i < v->present && v->count < max; i++) take(n, i, v);
    return 0;
}

static uint32_t read_all(const nvml *n, leat_gpu *gpus, uint32_t max, char *status, size_t status_size)
{
    visible v;
    int rc = find_visible(n, max, &v);
    if (rc != 0) {
        snprintf(status, status_size, "NVML: %s", n->error_string(rc));
        return 0;
    }
    for (uint32_t i = 0; i < v.count; i++) read_gpu(n, v.dev[i], &gpus[i]);
    if (v.rc != 0) snprintf(status, status_size, "NVML: GPU %u: %s", v.refused, n->error_string(v.rc));
    else if (getenv("CUDA_VISIBLE_DEVICES") != NULL && v.count < v.present)
        snprintf(status, status_size, "CUDA_VISIBLE_DEVICES: %u of %u GPUs", v.count, v.present);
    else if (v.count < v.present)
        snprintf(status, status_size, "only %u of %u GPUs shown", v.count, v.present);
    else snprintf(status, status_size, "ok");
    return v.count;
}

static bool open_library(nvml *n, const char *library, char *status, size_t status_size)
{
    const char *file = library ? library : "libnvidia-ml.so.1";
    /* Never closed: the driver's libraries do not expect to be unloaded. */
    void *lib = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (!lib) {
        snprintf(status, status_size, "no NVIDIA driver library (libnvidia-ml.so.1)");
        return false;
    }
    if (!load(n, lib)) {
        snprintf(status, status_size, "NVML is too old or not NVML");
        return false;
    }
    int rc = n->init();
    if (rc != 0) snprintf(status, status_size, "NVML: %s", n->error_string(rc));
    return rc == 0;
}

uint32_t leat__nvml_read(leat_gpu *gpus, uint32_t max, char *status, size_t status_size, const char *library)
{
    nvml n;
    if (!open_library(&n, library, status, status_size)) return 0;
    uint32_t filled = read_all(&n, gpus, max, status, status_size);
    n.shutdown();
    return filled;
}

bool leat__nvml_bus(uint32_t index, double *in, double *out, const char *library)
{
    nvml n;
    visible v;
    char status[96];
    unsigned received = 0, sent = 0;
    if (!open_library(&n, library, status, sizeof status)) return false;
    bool known = n.pcie_throughput && find_visible(&n, index + 1, &v) == 0 && index < v.count &&
                 n.pcie_throughput(v.dev[index], BUS_IN, &received) == 0 &&
                 n.pcie_throughput(v.dev[index], BUS_OUT, &sent) == 0;
    n.shutdown();
    *in = received * 1024.0;
    *out = sent * 1024.0;
    return known;
}
