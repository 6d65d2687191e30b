/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all passes: finds the text and the id of a line, or lists the line as bad.
 */
#ifndef LEAT_CURATE_TEXT_LINE_H
#define LEAT_CURATE_TEXT_LINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "curate/text_files.h"
#include "text/jsonl.h"

#define LEAT__COLUMNS_MAX 64

/* The fields of a line; `keep` and `column` only if the pass needs them. */
typedef struct leat__record_fields {
    leat__jsonl_field text, id, keep;
    leat__jsonl_field column[LEAT__COLUMNS_MAX];
} leat__record_fields;

typedef struct leat__line_names {
    const char *text_field, *id_field, *keep_field; /* keep_field may be NULL */
    char *const *path;                              /* paths of the files, for messages */
    uint64_t max_line;                              /* longest line, 0 = any */
    const leat__jsonl_field *column;                /* names of further fields */
    unsigned column_count;
    leat__line_numbers *numbers; /* line numbers of the files; NULL = all are known */
} leat__line_names;

/* The reason given for a line over the limit. */
#define LEAT__LINE_TOO_LONG "longer than max-document"

/* Parses the line. Returns NULL, or a static error text and its offset in the line in *at. */
const char *leat__line_read(const leat__line_names *n, const leat__line *line, leat__record_fields *f,
                            size_t *at);

/* Does the same, and writes the text to `into` (see jsonl.h; may be NULL). */
const char *leat__line_read_into(const leat__line_names *n, const leat__line *line, uint8_t *into,
                                 leat__record_fields *f, size_t *at);

/* Appends the id as a JSON value: the id of the line, or "FILE:LINE". */
void leat__line_id_json(const leat__line_names *n, const leat__text_chunk *c, const leat__line *line,
                        const leat__record_fields *f, leat__buf *out);

/* Appends {"file":…,"line":…,"offset":…,"reason":…} and a newline. */
void leat__line_bad_json(const leat__line_names *n, uint32_t file, uint64_t number, uint64_t offset,
                         const char *reason, leat__buf *out);

/* Appends the line with its text replaced, and a newline. */
void leat__line_put(leat__buf *out, const leat__line *line, const leat__jsonl_field *text, const char *now,
                    size_t len);

/* Appends a string as JSON, with quotes; the text must be valid UTF-8. */
void leat__json_text(leat__buf *out, const char *text, size_t len);

#endif
