/* SPDX-License-Identifier: Apache-2.0
 *
 * Public structs begin with their own size. A caller built against an older, smaller struct
 * therefore works with this library: only the part that both know is read and written.
 */
#ifndef LEAT_BASE_SIZED_H
#define LEAT_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Zeroes the caller's struct of `size` bytes and stores the size in its first field; false when it is too
 * small for that. */
static inline bool leat__sized_init(void *to, uint32_t size)
{
    if (to == NULL || size < sizeof size) return false;
    memset(to, 0, size);
    memcpy(to, &size, sizeof size);
    return true;
}

/* Fills the caller's struct, whose first field is its size, from ours. Bytes of a larger struct
 * that we do not know become 0. False when the caller did not set its size. */
static inline bool leat__sized_copy(void *to, const void *from, size_t from_size)
{
    uint32_t size;
    memcpy(&size, to, sizeof size);
    if (size < sizeof size) return false;
    size_t both = size < from_size ? size : from_size;
    memset(to, 0, size);
    memcpy(to, from, both);
    memcpy(to, &size, sizeof size);
    return true;
}

/* True when `member` is inside a caller's struct of `size` bytes. */
#define LEAT__SIZED_HAS(type, member, size) ((size) >= offsetof(type, member) + sizeof(((type *)0)->member))

#endif
