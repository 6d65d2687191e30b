/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a device that the files of this module share.
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

/* Makes the device's context current; pass *mode to leave. Calls may nest. */
int leat__gpu_enter(leat__gpu *gpu, int *mode, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_leave(leat__gpu *gpu, int mode);

#endif
