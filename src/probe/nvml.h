/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA GPUs through NVML, loaded at run time. No driver, no GPU: no error, a status says so.
 */
#ifndef LEAT_PROBE_NVML_H
#define LEAT_PROBE_NVML_H

#include <stddef.h>

#include <leat/machine.h>

/* Fills at most `max` GPUs and returns how many; `status` gets "ok" or the reason for fewer.
 * `library` is the file to load, NULL for the driver's own name. */
uint32_t leat__nvml_read(leat_gpu *gpus, uint32_t max, char *status, size_t status_size,
                         const char *library);

#endif
