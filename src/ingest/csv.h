/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a CSV file (RFC 4180: quotes, doubled quotes, line breaks inside quotes; LF or CRLF; a
 * UTF-8 mark at the start is skipped). One thread.
 */
#ifndef LEAT_INGEST_CSV_H
#define LEAT_INGEST_CSV_H

#include "base/buf.h"
#include "ingest/stream.h"

#define LEAT__CSV_CELLS_MAX 4096u
#define LEAT__CSV_ROW_MAX (16u << 20) /* bytes */

typedef struct leat__csv {
    leat__stream *stream; /* not owned */
    char delimiter;
    leat__buf row; /* the cells of the row, each followed by a NUL */
    size_t *start; /* start of each cell in `row` */
    uint32_t cells;
    uint64_t line; /* line where the row starts, from 1 */
    uint64_t next_line;
    uint64_t offset; /* byte offset where the row starts */
    char *chunk;
    size_t at, len;
    int pushed; /* a character to read again, or -1 */
} leat__csv;

int leat__csv_init(leat__csv *c, leat__stream *stream, char delimiter, leat_error *err) LEAT_MUST_CHECK;
void leat__csv_reset(leat__csv *c);

/* Reads the next row that is not empty. *end is true after the last. LEAT_EDATA: an unclosed quote or
 * one inside a cell, a NUL, or too many cells or bytes. The reader is then at the start of the next
 * line and can continue. */
int leat__csv_next(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;
const char *leat__csv_cell(const leat__csv *c, uint32_t cell); /* "" past the last */

/* Reads a line of a text file, for JSON lines: `row` has the line without its end, as one cell. */
int leat__csv_next_line(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;

/* Reads a line of a list of keys, and unquotes a key in quotes (leat__str_unquote). */
int leat__csv_next_key(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;

#endif
