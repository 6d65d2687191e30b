/* SPDX-License-Identifier: Apache-2.0
 *
 * See seen_names.h. A hash table with linear probing, at most half full. Equal hashes of two different
 * names are rare: about 1 in 2 million shards of the largest size has a pair.
 */
#include "ingest/seen_names.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_SLOTS UINT64_C(1024)

/* Returns the slot of the hash, or the empty slot where it belongs. */
static uint64_t slot_of(const leat__seen_names *s, uint64_t hash)
{
    uint64_t at = hash & (s->slots - 1);
    while (s->hash[at] != 0 && s->hash[at] != hash) at = (at + 1) & (s->slots - 1);
    return at;
}

static int grow(leat__seen_names *s, leat_error *err)
{
    leat__seen_names more = {.slots = s->slots ? 2 * s->slots : FIRST_SLOTS, .count = s->count};
    more.hash = LEAT_NEW_ARRAY(INGEST, uint64_t, more.slots);
    more.fields = LEAT_NEW_ARRAY(INGEST, uint16_t, more.slots);
    if (!more.hash || !more.fields) {
        leat__seen_names_reset(&more);
        return leat__fail_nomem(err, FIRST_SLOTS, "the names of samples");
    }
    for (uint64_t i = 0; i < s->slots; i++) {
        if (s->hash[i] == 0) continue;
        uint64_t at = slot_of(&more, s->hash[i]);
        more.hash[at] = s->hash[i];
        more.fields[at] = s->fields[i];
    }
    leat__seen_names_reset(s);
    *s = more;
    return 0;
}

int leat__seen_names_add(leat__seen_names *s, const char *name, size_t len, uint16_t fields, bool *torn,
                         leat_error *err)
{
    uint64_t hash = leat__hash64(name, len, 0);
    if (hash == 0) hash = 1;
    *torn = false;
    if (2 * s->count >= s->slots && s->count < LEAT__SEEN_NAMES_MAX) LEAT_TRY(grow(s, err));
    uint64_t at = slot_of(s, hash);
    if (s->hash[at] == hash) {
        *torn = (s->fields[at] & fields) == 0;
        return 0;
    }
    if (s->count >= LEAT__SEEN_NAMES_MAX) return 0;
    s->hash[at] = hash;
    s->fields[at] = fields;
    s->count++;
    return 0;
}

void leat__seen_names_clear(leat__seen_names *s)
{
    if (s->count > 0) memset(s->hash, 0, s->slots * sizeof *s->hash);
    s->count = 0;
}

void leat__seen_names_reset(leat__seen_names *s)
{
    leat__free(s->hash);
    leat__free(s->fields);
    memset(s, 0, sizeof *s);
}
