/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the decode cost of an image from its bytes and pixels alone. The cost is recorded in packs;
 * `leat plan` has its own costs for each way of decoding (data/plan/costs.txt).
 */
#ifndef LEAT_INGEST_IMAGE_COST_H
#define LEAT_INGEST_IMAGE_COST_H

#include "codec/codec.h"

/* Returns the microseconds, at least 1, to decode the whole image on one core of the reference
 * machine. A pure function: measured times, and so the packs, would differ between runs. */
uint32_t leat__image_cost(const leat__image_info *info, size_t bytes);

#endif
