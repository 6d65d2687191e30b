/* SPDX-License-Identifier: Apache-2.0
 *
 * Logging is a callback in the options of whoever owns the work; silent by default. The
 * library never prints. Never log per sample: count instead.
 */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <leat/log.h>

/* Nothing when the sink has no callback or the level is above its own. */
void leat__log(const leat_log *log, leat_log_level level, const char *fmt, ...)
    LEAT_PRINTF(3, 4);

#endif
