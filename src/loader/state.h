/* SPDX-License-Identifier: Apache-2.0
 *
 * The position of a loader as JSON: everything that defines the order, and the global position in
 * it. Rank and world are not included: any world with the same global batch may resume from it.
 */
#ifndef LEAT_LOADER_STATE_H
#define LEAT_LOADER_STATE_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/buf.h"
#include "base/error.h"

#define LEAT__STATE_VERSION 1
#define LEAT__STATE_TEXT 128u

typedef struct leat__state {
    uint64_t fingerprint; /* of the pack */
    uint64_t subset;      /* hash of the indices and weights, 0 = all samples */
    leat_order order;
    uint32_t order_version; /* see LEAT_ORDER_MAP; a state without one has version 1 */
    uint64_t seed, epoch;
    uint64_t count;                 /* positions of an epoch */
    uint64_t global_batch;          /* samples of all ranks per step */
    uint64_t position;              /* global: positions done by all ranks together */
    uint32_t streams, window_pages; /* quasi */
    uint32_t drop_last;
    /* several packs */
    uint32_t pack_count;                     /* 0 for one pack */
    uint64_t mix;                            /* hash of how they are mixed, or of buckets; 0 = neither */
    uint64_t packs[LEAT_LOADER_SOURCES_MAX]; /* digest of each */
    /* What `subset` and `mix` are, for messages; "" = nothing, or an older leat wrote the state. */
    char subset_text[LEAT__STATE_TEXT], mix_text[LEAT__STATE_TEXT];
    uint32_t left_out; /* LEAT_DROP_EMPTY left out the last, smaller global batch in this world */
} leat__state;

int leat__state_write(const leat__state *s, leat__buf *out) LEAT_MUST_CHECK;
int leat__state_parse(leat__state *s, const char *text, leat_error *err) LEAT_MUST_CHECK;

/* Returns 0 when a loader with state `mine` may resume at `other`. LEAT_EINVAL: err names the difference. */
int leat__state_check(const leat__state *mine, const leat__state *other, leat_error *err) LEAT_MUST_CHECK;

const char *leat__order_name(leat_order order);
bool leat__order_find(const char *name, leat_order *order); /* false: no such order, or name is NULL */
uint32_t leat__order_version(leat_order order);             /* of this build */
bool leat__order_shuffled(leat_order order);                /* see LEAT_ORDER_MAP */

#endif
