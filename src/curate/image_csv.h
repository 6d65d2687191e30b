/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes lines of a CSV file. Fields with a comma, a quote or a line end are quoted.
 */
#ifndef LEAT_CURATE_IMAGE_CSV_H
#define LEAT_CURATE_IMAGE_CSV_H

#include "base/buf.h"
#include "io/file.h"

typedef struct leat__csv_out {
    leat__file *file; /* NULL: nothing is written */
    leat__buf buf;
    uint64_t end;
    bool middle; /* inside a line */
} leat__csv_out;

/* `path` NULL: all calls do nothing. */
int leat__csv_out_open(leat__csv_out *c, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__csv_out_field(leat__csv_out *c, const char *text, size_t len);
void leat__csv_out_text(leat__csv_out *c, const char *text);
void leat__csv_out_number(leat__csv_out *c, double value);
void leat__csv_out_count(leat__csv_out *c, uint64_t value);
int leat__csv_out_line(leat__csv_out *c, leat_error *err) LEAT_MUST_CHECK;   /* ends the line */
int leat__csv_out_finish(leat__csv_out *c, leat_error *err) LEAT_MUST_CHECK; /* writes the rest */
void leat__csv_out_close(leat__csv_out *c);

#endif
