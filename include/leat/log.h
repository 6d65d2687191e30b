/* SPDX-License-Identifier: Apache-2.0
 *
 * Where messages go. Put a leat_log into an options struct; zeroed means silent.
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
    /* One line without newline; may be called from any thread, several at once. */
    void (*write)(void *cookie, leat_log_level level, const char *line);
    void *cookie;
    int32_t level;    /* highest level wanted; 0 = LEAT_LOG_INFO */
    int32_t reserved; /* 0 */
} leat_log;

#ifdef __cplusplus
}
#endif

#endif
