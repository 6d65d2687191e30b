/* SPDX-License-Identifier: Apache-2.0
 *
 * The callback for log messages, a field of options structs. A zeroed leat_log is silent.
 */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <stdint.h>

#include <leat/export.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_log_level {
    LEAT_LOG_ERROR = 1,
    LEAT_LOG_WARN = 2,
    LEAT_LOG_INFO = 3,
    LEAT_LOG_DEBUG = 4
} leat_log_level;

typedef struct leat_log {
    /* Gets one line without newline. Any thread may call it, several at once. */
    void (*write)(void *cookie, leat_log_level level, const char *line);
    void *cookie;
    int32_t level;    /* most detailed level to log; 0 = LEAT_LOG_INFO */
    int32_t reserved; /* 0 */
} leat_log;

#ifdef __cplusplus
}
#endif

#endif
