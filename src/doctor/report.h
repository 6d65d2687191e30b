/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML of a diagnosis and its frames: the body alone (the live page fetches it repeatedly) and whole pages,
 * which also name command, machine, date and version (origin.h). Any thread.
 */
#ifndef LEAT_DOCTOR_REPORT_H
#define LEAT_DOCTOR_REPORT_H

#include <stdbool.h>

#include <leat/doctor.h>

#include "base/buf.h"

void leat__report_body(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                       leat__buf *out);
/* Wraps a body in a page; `live` adds the script that keeps it up to date. */
void leat__report_page(const char *title, const char *body, bool live, leat__buf *out);

/* Escapes the special characters of HTML. */
void leat__html_text(leat__buf *out, const char *text);

/* One line in a plot: a value from each frame. */
typedef struct leat__curve {
    const char *name;
    const char *color;
    double (*value)(const leat_doctor_frame *f);
} leat__curve;
/* Writes a plot as inline SVG; `top` is the maximum of the axis, 0 = from the data. `unit` follows
 * the axis numbers. */
void leat__svg_plot(leat__buf *out, const char *title, const char *unit, const leat__curve *curves,
                    size_t curve_count, double top, const leat_doctor_frame *frames, size_t count);

#endif
