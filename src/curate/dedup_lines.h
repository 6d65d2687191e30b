/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact deduplication of lines, paragraphs or substrings instead of documents. Each line
 * (paragraph, sequence of a given number of words) that occurred before, in the same or an earlier document,
 * is removed from its text.
 */
#ifndef LEAT_CURATE_DEDUP_LINES_H
#define LEAT_CURATE_DEDUP_LINES_H

#include "curate/dedup.h"

/* A piece of a text: [at, next) with the white space after it; [begin, end) is the line or
 * paragraph without white space around it, empty for blank lines. */
typedef struct leat__piece {
    size_t begin, end, next;
} leat__piece;

/* The piece that begins at `at` < len. */
leat__piece leat__piece_at(const uint8_t *text, size_t len, size_t at, uint32_t level);

/* All passes of a run with opts->level. */
int leat__dedup_lines(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

#endif
