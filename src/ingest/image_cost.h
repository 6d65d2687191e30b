/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the decode cost of an image from its bytes and pixels alone. The cost is recorded in
 * packs; `leat plan` has its own costs, per way of decoding (data/plan/costs.txt).
 */
#ifndef LEAT_INGEST_IMAGE_COST_H
#define LEAT_INGEST_IMAGE_COST_H

#include "codec/codec.h"

/* Microseconds to decode the whole image on one core of the reference machine; at least 1. A pure
 * function of its arguments: measured times would differ between runs, and so would the packs. */
uint32_t leat__image_cost(const leat__image_info *info, size_t bytes);

#endif
