/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes lines of a CSV file. Fields with a comma, a quote or a line end are quoted. The file gets its
 * final name when all lines are written (io/result_file.h).
 */
#ifndef LEAT_CURATE_IMAGE_CSV_H
#define LEAT_CURATE_IMAGE_CSV_H

#include "base/buf.h"
#include "io/result_file.h"

typedef struct leat__csv_out {
    leat__result_file to; /* no file: nothing is written */
    leat__buf buf;
    uint64_t end;
    bool middle; /* inside a line */
} leat__csv_out;

/* With `path` NULL, all calls do nothing. `head` are the first fields of the first line, such as
 * "key,verdict,": only a file that begins with them is replaced. Callers call leat__result_file_check
 * at the start of their run. */
int leat__csv_out_open(leat__csv_out *c, const char *path, const char *head, leat_error *err) LEAT_MUST_CHECK;
bool leat__csv_out_wanted(const leat__csv_out *c);
void leat__csv_out_field(leat__csv_out *c, const char *text, size_t len);
void leat__csv_out_text(leat__csv_out *c, const char *text);
void leat__csv_out_number(leat__csv_out *c, double value);
void leat__csv_out_count(leat__csv_out *c, uint64_t value);
int leat__csv_out_line(leat__csv_out *c, leat_error *err) LEAT_MUST_CHECK;   /* ends the line */
int leat__csv_out_finish(leat__csv_out *c, leat_error *err) LEAT_MUST_CHECK; /* gives the file its name */
void leat__csv_out_close(leat__csv_out *c);                                  /* removes an unfinished file */

#endif
