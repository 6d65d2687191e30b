/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a report page: one HTML file without scripts and without links to other files. All text
 * is escaped here.
 */
#ifndef LEAT_CURATE_REPORT_PAGE_H
#define LEAT_CURATE_REPORT_PAGE_H

#include "base/buf.h"
#include "base/error.h"

void leat__page_begin(leat__buf *out, const char *title);
void leat__page_end(leat__buf *out);
/* Appends text with < > & and quotes escaped; control characters other than line feeds become spaces. */
void leat__page_text(leat__buf *out, const char *text, size_t len);
void leat__page_heading(leat__buf *out, const char *text);

/* Draws a horizontal bar of a list with `share` of the full width. */
void leat__page_bars_begin(leat__buf *out);
void leat__page_bar(leat__buf *out, const char *name, double share, uint64_t count, const char *note);
void leat__page_bars_end(leat__buf *out);

/* A histogram of two stacked series (the second may be NULL) over equal bins. `marks` are lines at
 * these positions, in bins; `left` and `right` are the texts below the axis. */
typedef struct leat__page_plot {
    const char *title, *left, *right;
    const uint64_t *first, *second;
    unsigned bins;
    const double *marks;
    unsigned mark_count;
} leat__page_plot;
void leat__page_histogram(leat__buf *out, const leat__page_plot *plot);

/* Checks the list of report files ("a.html,b.json") before the run. Fails when one is report.json of
 * the output folder, which the run writes itself, or when its folder is missing or not writable. */
int leat__page_check(const char *paths, const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EDATA when one of the report files does not exist. */
int leat__page_exists(const char *paths, leat_error *err) LEAT_MUST_CHECK;
/* Writes `html` to the paths that end in .html and `json` to those that end in .json. */
int leat__page_store(const char *paths, const leat__buf *html, const leat__buf *json,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
