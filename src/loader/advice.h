/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice for the user of a loader that was just opened: an order that reads slowly, ranks whose
 * last batch is empty. Pure functions of facts; setup collects the facts.
 */
#ifndef LEAT_LOADER_ADVICE_H
#define LEAT_LOADER_ADVICE_H

#include <stdbool.h>

#include <leat/loader.h>

#define LEAT__ADVICE_MAX 7
#define LEAT__ADVICE_TEXT 320

typedef struct leat__advice_facts {
    const char *pack;
    leat_order order;
    uint64_t pack_bytes, page_bytes, sample_bytes; /* sample_bytes: mean */
    uint64_t memory_bytes;                         /* available for the page cache */
    bool rotational, network;
    uint64_t count, batches; /* of an epoch, all ranks */
    uint32_t world, batch_size;
    leat_drop drop;
    uint64_t left_out; /* single-source batches: samples per epoch that are left out; `never`: packs left out
                          of every epoch */
    uint32_t never;
} leat__advice_facts;

/* Each writes one line to `text` and returns true, or returns false when there is no advice. */
bool leat__advice_order(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT]);
bool leat__advice_ranks(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT]);
bool leat__advice_none(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT]);
bool leat__advice_single(const leat__advice_facts *f, char text[LEAT__ADVICE_TEXT]);

/* The state of a device that should decode. */
typedef struct leat__advice_idle {
    bool keeps;       /* cache = device */
    uint64_t batches; /* batches so far, none with an image that the device decoded */
    bool tiled;       /* some of their images are tiled */
    bool listed;      /* some of them were given to the device */
} leat__advice_idle;
void leat__advice_device(const leat__advice_idle *f, char text[LEAT__ADVICE_TEXT]);

/* Returns the batches per epoch, the same on all ranks. */
uint64_t leat__epoch_batches(uint64_t count, uint32_t batch_size, uint32_t world, leat_order order,
                             leat_drop drop);

#endif
