/* SPDX-License-Identifier: Apache-2.0
 *
 * MixUp and CutMix of a batch whose images the device decodes: the same draws and the same arithmetic as
 * mixing.c, on the device. Soft labels are mixed there too; pairs of labels are written on the host.
 */
#ifndef LEAT_LOADER_DEVICE_MIX_H
#define LEAT_LOADER_DEVICE_MIX_H

#include "gpu/kernels.h"
#include "loader/mixing.h"

/* Returns the most entries that leat__device_mix_list may write. 0: nothing is mixed. */
uint32_t leat__device_mix_room(const leat__mixing *m);

/* True when the device can mix this batch, because all of its rows are delivered. Otherwise the host mixes it
 * once it knows which rows remain. */
bool leat__device_mix_takes(const leat__frame *f);

/* Lists the arrays to mix, in order; the batch begins at `batch` on the device. Call it before the columns
 * are copied. Returns the number of entries. */
uint32_t leat__device_mix_list(const leat__mixing *m, leat__frame *f, uint64_t batch, leat_job_mix *out);

#endif
