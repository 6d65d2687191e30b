/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake of NVIDIA's library, loaded by test_nvml. FAKE_NVML chooses what fails.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, UNKNOWN = 999 };

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int rc);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **dev);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **dev);
EXPORT int nvmlDeviceGetName(void *dev, char *name, unsigned size);
EXPORT int nvmlDeviceGetUUID(void *dev, char *uuid, unsigned size);
EXPORT int nvmlDeviceGetMemoryInfo(void *dev, unsigned long long *three);
EXPORT int nvmlDeviceGetUtilizationRates(void *dev, unsigned *two);
EXPORT int nvmlDeviceGetCudaComputeCapability(void *dev, int *major, int *minor);
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void *dev, unsigned *generation);
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void *dev, unsigned *width);
EXPORT int nvmlDeviceGetPcieThroughput(void *dev, int counter, unsigned *kb_per_s);

static int opened;

static bool mode(const char *name)
{
    const char *value = getenv("FAKE_NVML");
    return value && strcmp(value, name) == 0;
}

static unsigned index_of(void *dev)
{
    return *(unsigned *)dev;
}

int nvmlInit_v2(void)
{
    if (mode("init")) return UNKNOWN;
    opened++;
    return OK;
}

int nvmlShutdown(void)
{
    if (opened == 0) abort();
    opened--;
    return OK;
}

const char *nvmlErrorString(int rc)
{
    return rc == NOT_SUPPORTED ? "Not Supported" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    if (opened == 0) return UNINITIALIZED;
    if (mode("count")) return UNKNOWN;
    *count = mode("none") ? 0 : mode("many") ? 40 : 2;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **dev)
{
    static unsigned indexes[64];
    if (mode("lost") && index == 0) return UNKNOWN;
    indexes[index] = index;
    *dev = &indexes[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **dev)
{
    return strcmp(uuid, "MIG-1/2/0") == 0 ? nvmlDeviceGetHandleByIndex_v2(1, dev) : UNKNOWN;
}

int nvmlDeviceGetName(void *dev, char *name, unsigned size)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    snprintf(name, size, "Fake GPU %u", index_of(dev));
    return OK;
}

int nvmlDeviceGetUUID(void *dev, char *uuid, unsigned size)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    snprintf(uuid, size, "GPU-%u", index_of(dev));
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *dev, unsigned long long *three)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    three[0] = 1000 + index_of(dev); /* total, free, used */
    three[1] = 600;
    three[2] = 400;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *dev, unsigned *two)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    two[0] = 71;
    two[1] = 29;
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(void *dev, int *major, int *minor)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    *major = 9;
    *minor = 0;
    return OK;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *dev, unsigned *generation)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    *generation = 5;
    return OK;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *dev, unsigned *width)
{
    if (mode("refuses")) return NOT_SUPPORTED;
    *width = 16;
    return OK;
}

int nvmlDeviceGetPcieThroughput(void *dev, int counter, unsigned *kb_per_s)
{
    if (opened == 0 || mode("refuses")) return NOT_SUPPORTED;
    *kb_per_s = (counter == 1 ? 3000 : 200) + index_of(dev);
    return OK;
}
