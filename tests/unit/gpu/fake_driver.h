/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the stand-in for the CUDA driver (fake_cuda.c), which is in a folder beside the test, and
 * makes it the driver that leat loads.
 */
#ifndef LEAT_TESTS_FAKE_DRIVER_H
#define LEAT_TESTS_FAKE_DRIVER_H

#include "leat_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fake_path[PATH_MAX];
static struct {
    int (*held)(void);
    int (*begin)(void);
    void (*end)(int kernel);
    int (*calls)(void);
    void (*fail_at)(int call);
    int (*locked)(void);
    uint64_t (*gathered)(void);
    void (*hold)(int on);
    int (*broken)(void);
} fake_cuda;

static inline int fake_symbol(void *lib, const char *name, void *slot)
{
    void *address = dlsym(lib, name);
    memcpy(slot, &address, sizeof address);
    return address == NULL ? -1 : 0;
}

static inline int find_fake(void **state)
{
    char exe[PATH_MAX - 32];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return -1;
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(fake_path, sizeof fake_path, "%s/gpu/fake_cuda.so", exe);
    void *lib = dlopen(fake_path, RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL) return -1;
    setenv("LEAT_CUDA_DRIVER", fake_path, 1);
    setenv("LEAT_NVRTC", fake_path, 1);             /* where leat was built without nvcc */
    setenv("LEAT_CACHE_DIR", "/nowhere/at/all", 1); /* nothing is kept */
    unsetenv("LOCAL_RANK");
    return fake_symbol(lib, "fake_cuda_held", &fake_cuda.held) |
           fake_symbol(lib, "fake_cuda_begin", &fake_cuda.begin) |
           fake_symbol(lib, "fake_cuda_end", &fake_cuda.end) |
           fake_symbol(lib, "fake_cuda_calls", &fake_cuda.calls) |
           fake_symbol(lib, "fake_cuda_fail", &fake_cuda.fail_at) |
           fake_symbol(lib, "fake_cuda_locked", &fake_cuda.locked) |
           fake_symbol(lib, "fake_cuda_gathered", &fake_cuda.gathered) |
           fake_symbol(lib, "fake_cuda_hold", &fake_cuda.hold) |
           fake_symbol(lib, "fake_cuda_broken", &fake_cuda.broken);
}

/* What goes wrong from now on; "" = nothing. */
static inline void go_wrong(const char *how)
{
    setenv("FAKE_CUDA", how, 1);
}

#endif
