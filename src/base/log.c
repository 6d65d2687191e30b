/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a log line for the callback. Any thread may call.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"

void leat__log(const leat_log *log, leat_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (log == NULL || log->write == NULL) return;
    if ((int)level > (log->level != 0 ? log->level : LEAT_LOG_INFO)) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    leat__str_hide_secrets(line, sizeof line);
    log->write(log->cookie, level, line);
}
