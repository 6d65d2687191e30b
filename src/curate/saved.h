/* SPDX-License-Identifier: Apache-2.0
 *
 * The saved state of a long step (OUTPUT.state): arrays from which an interrupted run is resumed. A key
 * identifies everything that the result depends on. A state that is damaged or has another key or size
 * is ignored: the run starts from the beginning and replaces it.
 */
#ifndef LEAT_CURATE_SAVED_H
#define LEAT_CURATE_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"

typedef struct leat__saved {
    char *path;
    leat__hash128 key;
    uint64_t last, cost; /* in ns: time of the last save, and its duration */
} leat__saved;

typedef struct leat__saved_part {
    void *data;
    size_t size;
} leat__saved_part;

int leat__saved_open(leat__saved *s, const char *output, leat_error *err) LEAT_MUST_CHECK;
void leat__saved_close(leat__saved *s);

/* Returns the size of all parts of the state with this key; 0 when there is none. */
int leat__saved_size(leat__saved *s, uint64_t *size, leat_error *err) LEAT_MUST_CHECK;
/* Reads the parts. When there is no state with this key, *found is false and the parts are undefined. */
int leat__saved_load(leat__saved *s, const leat__saved_part *parts, uint32_t count, bool *found,
                     leat_error *err) LEAT_MUST_CHECK;
/* Replaces the state atomically. */
int leat__saved_store(leat__saved *s, const leat__saved_part *parts, uint32_t count,
                      leat_error *err) LEAT_MUST_CHECK;
/* True when the state should be saved again: some seconds have passed, and saving takes at most a
 * fiftieth of the time. */
bool leat__saved_due(const leat__saved *s);
/* Removes the state. */
int leat__saved_drop(leat__saved *s, leat_error *err) LEAT_MUST_CHECK;

#endif
