/* SPDX-License-Identifier: Apache-2.0
 *
 * The origin of a page in a few words: the command, the machine, the date and the version. Any
 * thread.
 */
#ifndef LEAT_DOCTOR_ORIGIN_H
#define LEAT_DOCTOR_ORIGIN_H

#include "base/buf.h"

/* Writes "leat doctor train.leat · host: 8 CPUs (AMD EPYC), 64.0 GiB · 2026-11-16 17:00 UTC · leat
 * 0.1.0" for this process and time. Unknown parts are left out. */
void leat__origin_text(leat__buf *out);

#endif
