/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the CUDA driver with dlopen. The library stays loaded, because the driver does not expect to be
 * unloaded. No state; any thread.
 */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define DRIVER "libcuda.so.1"

static int load(leat__cu *cu, const char *library, leat_error *err)
{
    /* POSIX allows copying the result of dlsym into a function pointer. */
    const struct {
        const char *name;
        void *slot;
        int required;
    } symbols[] = {
#define SYMBOL(member, symbol, required, parameters) {symbol, &cu->member, required},
        LEAT__CU_MAP(SYMBOL)
#undef SYMBOL
    };
    const char *name = library != NULL ? library : getenv("LEAT_CUDA_DRIVER");
    if (name == NULL || name[0] == '\0') name = DRIVER;
    void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL)
        return leat__fail(err, LEAT_ENOTSUP, "no CUDA driver here (%s); leave `device` out to use the CPU",
                          name);
    for (size_t i = 0; i < LEAT_COUNT(symbols); i++) {
        void *address = dlsym(lib, symbols[i].name);
        if (address == NULL && symbols[i].required)
            return leat__fail(err, LEAT_ENOTSUP, "%s: not a CUDA driver, or one too old: it lacks %s", name,
                              symbols[i].name);
        memcpy(symbols[i].slot, &address, sizeof address);
    }
    return 0;
}

/* True for errors of a kernel (an illegal address, an assertion) that end the use of CUDA in a process. */
static bool ends_cuda(int rc)
{
    return rc == 700 || rc == 702 || rc == 710 || (rc >= 714 && rc <= 719);
}

int leat__cu_explain(const leat__cu *cu, int rc, const char *what, leat_error *err)
{
    const char *name = NULL;
    if (rc == 0) return 0;
    if (cu->error_name(rc, &name) != 0 || name == NULL) name = "an unknown error";
    int code = rc == LEAT__CU_OUT_OF_MEMORY ? LEAT_ENOMEM
               : rc == LEAT__CU_NO_DEVICE   ? LEAT_ENOTSUP
                                            : LEAT_EIO;
    if (ends_cuda(rc))
        return leat__fail(err, code,
                          "CUDA: %s: %s: a kernel failed before, and this process cannot use CUDA again: "
                          "restart it",
                          what, name);
    return leat__fail(err, code, "CUDA: %s: %s", what, name);
}

int leat__cu_start(leat__cu *cu, const char *library, int *count, leat_error *err)
{
    LEAT_TRY(load(cu, library, err));
    int rc = cu->init(0);
    if (rc == LEAT__CU_NOT_INITIALIZED)
        return leat__fail(
            err, LEAT_EFORK,
            "CUDA does not work in a process forked from one that uses it: start this process by "
            "spawn (torch.multiprocessing: start_method='spawn')");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (rc == LEAT__CU_NO_DEVICE && visible != NULL)
        return leat__fail(err, LEAT_ENOTSUP, "no GPU is visible: CUDA_VISIBLE_DEVICES is '%s'", visible);
    if (rc == LEAT__CU_INVALID_DEVICE && visible != NULL)
        return leat__fail(err, LEAT_EINVAL, "CUDA_VISIBLE_DEVICES is '%s': not a list of different GPUs",
                          visible);
    LEAT_TRY(leat__cu_explain(cu, rc, "starting the driver", err));
    LEAT_TRY(leat__cu_explain(cu, cu->count(count), "counting the GPUs", err));
    if (*count <= 0) return leat__fail(err, LEAT_ENOTSUP, "a CUDA driver, but no GPU");
    return 0;
}
