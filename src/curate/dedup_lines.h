/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact deduplication of lines, paragraphs or substrings instead of documents. A line, paragraph or
 * sequence of N words that occurred before, in the same or an earlier document, is removed.
 */
#ifndef LEAT_CURATE_DEDUP_LINES_H
#define LEAT_CURATE_DEDUP_LINES_H

#include "curate/dedup.h"

/* A piece of a text: it ends at `next`, after its trailing white space. [begin, end) is the line or
 * paragraph without surrounding white space; empty for blank lines. */
typedef struct leat__piece {
    size_t begin, end, next;
} leat__piece;

/* Returns the piece that begins at `at` < len. */
leat__piece leat__piece_at(const uint8_t *text, size_t len, size_t at, uint32_t level);

/* Counts the pieces in the lines of a chunk for the plan, and the bytes of these lines. With `inside`, the
 * chunk begins inside a line, which is left out. */
int leat__dedup_count_pieces(leat__dedup *d, leat__text_chunk *c, bool inside, uint64_t *pieces,
                             uint64_t *bytes, leat_error *err) LEAT_MUST_CHECK;

/* Runs all passes with opts->level. */
int leat__dedup_lines(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

#endif
