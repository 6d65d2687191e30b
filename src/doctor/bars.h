/* SPDX-License-Identifier: Apache-2.0
 *
 * The two tables of every page, text or HTML: the possible rate of each part, and where the time went. Pure
 * functions.
 */
#ifndef LEAT_DOCTOR_BARS_H
#define LEAT_DOCTOR_BARS_H

#include <stdbool.h>

#include <leat/doctor.h>

enum { LEAT__RATE_BARS = 8, LEAT__SHARE_BARS = 8 };

typedef struct leat__bar {
    const char *name; /* at most 18 columns */
    double share;     /* length of the bar, 0 to 1 */
    char value[24];
    bool limit;   /* the bottleneck, or the time it costs */
    bool reached; /* not a part: the current rate of the whole run */
} leat__bar;

/* Fill the rows of the tables and return their number. Lengths of rates are logarithmic: a part that
 * is a hundred times faster must not hide the difference between the two that matter. */
uint32_t leat__rate_bars(const leat_doctor_diagnosis *d, leat__bar rows[LEAT__RATE_BARS]);
uint32_t leat__share_bars(const leat_doctor_diagnosis *d, leat__bar rows[LEAT__SHARE_BARS]);

#endif
