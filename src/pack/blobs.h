/* SPDX-License-Identifier: Apache-2.0
 *
 * The named blobs of a pack being written, and how a blob is stored. They are sorted by name, so the file
 * does not depend on the order in which they were set. One thread at a time.
 */
#ifndef LEAT_PACK_BLOBS_H
#define LEAT_PACK_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__blob {
    char *name;
    void *data;
    size_t size;
    void *packed; /* a smaller zstd frame of it, or NULL */
    size_t packed_size;
} leat__blob;

typedef struct leat__blobs {
    leat__blob *items;
    size_t count, capacity;
} leat__blobs;

void leat__blobs_reset(leat__blobs *b); /* zeroed is empty */
/* Copies name and data; replaces an existing blob of that name. */
int leat__blobs_set(leat__blobs *b, const char *name, const void *data, size_t size,
                    leat_error *err) LEAT_MUST_CHECK;
const leat__blob *leat__blobs_find(const leat__blobs *b, const char *name);
/* Decompresses `frame` into `out`; false when it is not a frame of exactly `size` bytes. */
bool leat__blob_unpack(const void *frame, size_t frame_size, void *out, size_t size);

/* Returns the name of the blob with the classes of a field, as a new string (leat__free); NULL: out of
 * memory. */
char *leat__blob_classes_name(const char *field);

#endif
