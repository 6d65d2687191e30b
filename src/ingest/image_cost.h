/* SPDX-License-Identifier: Apache-2.0
 *
 * What an image will cost to decode, told from its size in bytes and pixels alone. It is recorded in
 * packs; `leat plan` has costs of its own, per way of decoding (data/plan/costs.txt).
 */
#ifndef LEAT_INGEST_IMAGE_COST_H
#define LEAT_INGEST_IMAGE_COST_H

#include "codec/codec.h"

/* Microseconds to decode the whole image on one core of the reference machine; at least 1. A
 * pure function of its arguments: a measured time would differ from run to run, and so would
 * the pack. */
uint32_t leat__image_cost(const leat__image_info *info, size_t bytes);

#endif
