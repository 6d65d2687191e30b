/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA GPUs through NVML, loaded at run time. A missing driver or GPU is not an error; `status`
 * reports it.
 */
#ifndef LEAT_PROBE_NVML_H
#define LEAT_PROBE_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/machine.h>

/* Fills at most `max` GPUs that CUDA_VISIBLE_DEVICES names (unset: all), in its order, and returns how many.
 * An index is that of NVML; CUDA counts in the same way with CUDA_DEVICE_ORDER=PCI_BUS_ID. `status` gets "ok"
 * or the reason for fewer. `library` is the file to load, NULL for the driver's default. */
uint32_t leat__nvml_read(leat_gpu *gpus, uint32_t max, char *status, size_t status_size, const char *library);

/* Measures bytes per second into (`in`) and out of GPU `index` of leat__nvml_read, over the bus. The driver
 * measures each for 20 ms, so the call takes that long. False when the driver has no such counter. */
bool leat__nvml_bus(uint32_t index, double *in, double *out, const char *library);

#endif
