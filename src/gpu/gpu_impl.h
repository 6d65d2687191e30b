/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this module share of a device.
 */
#ifndef LEAT_GPU_GPU_IMPL_H
#define LEAT_GPU_GPU_IMPL_H

#include <stdatomic.h>

#include "gpu/device.h"
#include "gpu/driver.h"

struct leat__gpu {
    _Atomic uint32_t refs;
    leat__cu cu;
    int device;
    leat__cu_context ctx;
    leat__gpu_info info;
};

/* Makes the device's context current; *mode is for leave. Calls nest. */
int leat__gpu_enter(leat__gpu *gpu, int *mode, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_leave(leat__gpu *gpu, int mode);

#endif
