/* SPDX-License-Identifier: Apache-2.0
 *
 * The two tables of every page, text or HTML: what each part could deliver, and where the time
 * went. Pure functions.
 */
#ifndef LEAT_DOCTOR_BARS_H
#define LEAT_DOCTOR_BARS_H

#include <stdbool.h>

#include <leat/doctor.h>

enum { LEAT__RATE_BARS = 7, LEAT__SHARE_BARS = 8 };

typedef struct leat__bar {
    const char *name; /* 18 columns at most */
    double share;     /* of the bar's length, 0 to 1 */
    char value[24];
    bool limit;       /* this is what holds the run back, or what that costs */
    bool reached;     /* not a part: what all of them together do now */
} leat__bar;

/* Rows of the table; how many. Lengths of rates are logarithmic: a part that can do a hundred
 * times more must not hide the difference between the two that matter. */
uint32_t leat__rate_bars(const leat_doctor_diagnosis *d, leat__bar rows[LEAT__RATE_BARS]);
uint32_t leat__share_bars(const leat_doctor_diagnosis *d, leat__bar rows[LEAT__SHARE_BARS]);

#endif
