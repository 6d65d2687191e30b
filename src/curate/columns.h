/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of the documents that a filter run writes: keys of the input, and scores. Shared by all
 * workers; constant after parsing except for `found`.
 */
#ifndef LEAT_CURATE_COLUMNS_H
#define LEAT_CURATE_COLUMNS_H

#include <stdatomic.h>

#include "curate/text_line.h"
#include "text/rule.h"

#define LEAT__COLUMN_LABEL 65536

typedef struct leat__columns {
    char *names;
    unsigned count;
    bool whole;                          /* only scores were named: they are added to the unchanged line */
    const char *name[LEAT__COLUMNS_MAX]; /* key in the output */
    int score[LEAT__COLUMNS_MAX];        /* -1 = a key of the input, LEAT__COLUMN_LABEL */
    int field[LEAT__COLUMNS_MAX]; /* TEXT, ID, or an index in leat__record_fields; for a score in a whole
                                     line: the key that it replaces */
    leat__jsonl_field wanted[LEAT__COLUMNS_MAX]; /* for leat__line_names */
    unsigned wanted_count;
    atomic_bool found[LEAT__COLUMNS_MAX]; /* a document has this key */
} leat__columns;

/* Parses a list such as "id,text,+words": keys of the input, and scores after a plus sign. */
int leat__columns_parse(leat__columns *c, const char *text, const char *text_field, const char *id_field,
                        leat_error *err) LEAT_MUST_CHECK;
void leat__columns_reset(leat__columns *c);
/* `scored`: true when a column is a score. `lang`: true when a score needs a language model. */
bool leat__columns_scored(const leat__columns *c);
bool leat__columns_lang(const leat__columns *c);

/* Appends the chosen columns of a document as one line; keys that the document lacks are left out.
 * `now` is its new text, NULL = unchanged. */
void leat__columns_put(leat__columns *c, const leat__line *line, const leat__record_fields *r,
                       const char *now, size_t len, const leat__counts *counts, leat__buf *out);

/* Returns the next key, from column *i on, that no written document had; NULL = none. Advances *i past it. */
const char *leat__columns_missing(leat__columns *c, unsigned *i);

#endif
