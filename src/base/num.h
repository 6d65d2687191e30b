/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked arithmetic: every size from outside goes through these functions before use. Each
 * returns true and stores the result when it fits. Otherwise it returns false and the stored
 * value is not meaningful.
 */
#ifndef LEAT_BASE_NUM_H
#define LEAT_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/export.h>

static inline LEAT_MUST_CHECK bool leat__add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline LEAT_MUST_CHECK bool leat__mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline LEAT_MUST_CHECK bool leat__add_size(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline LEAT_MUST_CHECK bool leat__mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Rounds up to a multiple of `align`, a power of two. */
static inline LEAT_MUST_CHECK bool leat__align_up_u64(uint64_t value, uint64_t align, uint64_t *result)
{
    uint64_t sum;
    if (__builtin_add_overflow(value, align - 1, &sum)) return false;
    *result = sum & ~(align - 1);
    return true;
}

static inline LEAT_MUST_CHECK bool leat__u64_to_size(uint64_t value, size_t *result)
{
    *result = (size_t)value;
    return (uint64_t)*result == value;
}

static inline LEAT_MUST_CHECK bool leat__u64_to_u32(uint64_t value, uint32_t *result)
{
    *result = (uint32_t)value;
    return value <= UINT32_MAX;
}

/* True when [offset, offset + length) is inside [0, total). */
static inline bool leat__range_inside(uint64_t offset, uint64_t length, uint64_t total)
{
    return offset <= total && length <= total - offset;
}

static inline bool leat__is_pow2(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static inline uint64_t leat__ceil_div(uint64_t a, uint64_t b) /* b > 0 */
{
    return a / b + (a % b != 0);
}

#define LEAT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define LEAT_MAX(a, b) ((a) > (b) ? (a) : (b))
#define LEAT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
