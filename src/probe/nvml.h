/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA GPUs through NVML, loaded at run time. No driver, no GPU: no error, a status says so.
 */
#ifndef LEAT_PROBE_NVML_H
#define LEAT_PROBE_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include <leat/machine.h>

/* Fills at most `max` GPUs and returns how many; `status` gets "ok" or the reason for fewer.
 * `library` is the file to load, NULL for the driver's own name. */
uint32_t leat__nvml_read(leat_gpu *gpus, uint32_t max, char *status, size_t status_size,
                         const char *library);

/* Bytes per second that cross the bus into (`in`) and out of GPU `index`, over the driver's own
 * window of 20 ms each: the call takes that long. False when there is no such counter. */
bool leat__nvml_bus(uint32_t index, double *in, double *out, const char *library);

#endif
