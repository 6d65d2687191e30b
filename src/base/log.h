/* SPDX-License-Identifier: Apache-2.0
 *
 * Logging goes to a callback in the options of the object that does the work; silent by default.
 * The library never prints. Never log per sample: use a counter.
 */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <leat/log.h>

/* Does nothing without a callback, or when `level` is more detailed than log->level. */
void leat__log(const leat_log *log, leat_log_level level, const char *fmt, ...) LEAT_PRINTF(3, 4);

#endif
