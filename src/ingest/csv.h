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
    size_t *start; /* of each cell in `row` */
    uint32_t cells;
    uint64_t line; /* of the start of the row, from 1 */
    uint64_t next_line;
    uint64_t offset; /* of the start of the row */
    char *chunk;
    size_t at, len;
    int pushed; /* one pushed-back character, or -1 */
} leat__csv;

int leat__csv_init(leat__csv *c, leat__stream *stream, char delimiter, leat_error *err) LEAT_MUST_CHECK;
void leat__csv_reset(leat__csv *c);

/* Reads the next row that is not empty. *end is true after the last. LEAT_EDATA for an unclosed
 * quote or one in the middle of a cell, a NUL, too many cells or bytes: the reader is then at the
 * start of the next line and may continue. */
int leat__csv_next(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;
const char *leat__csv_cell(const leat__csv *c, uint32_t cell); /* "" past the last */

/* Lines of a text file, for JSON lines: puts the line without its end into `row`, as one
 * "cell". */
int leat__csv_next_line(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;

/* The same for a list of keys: without the quotes of a key that has them (leat__str_unquote). */
int leat__csv_next_key(leat__csv *c, bool *end, leat_error *err) LEAT_MUST_CHECK;

#endif
