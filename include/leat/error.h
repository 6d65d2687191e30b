/* SPDX-License-Identifier: Apache-2.0
 *
 * How leat reports errors.
 *
 * Every call that can fail returns 0 or a negative LEAT_E… code. Most of them also take a `leat_error *err`
 * (NULL is allowed), which they fill only when they fail. There is no global and no thread-local error state.
 */
#ifndef LEAT_ERROR_H
#define LEAT_ERROR_H

#include <stdint.h>

#include <leat/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, short text. Values are part of the ABI: append, never renumber. */
#define LEAT_ERROR_MAP(X)                                                                                    \
    X(ENOMEM, -1, "out of memory")                                                                           \
    X(EINVAL, -2, "invalid argument")                                                                        \
    X(EIO, -3, "input/output error")                                                                         \
    X(ENOENT, -4, "no such file, key or entry")                                                              \
    X(EEXIST, -5, "already exists")                                                                          \
    X(ENOSPC, -6, "no space left")                                                                           \
    X(EDATA, -7, "damaged or malformed data")                                                                \
    X(EFORMAT, -8, "unsupported format or version")                                                          \
    X(ELIMIT, -9, "a configured limit was exceeded")                                                         \
    X(EBUDGET, -10, "does not fit the memory budget")                                                        \
    X(ECANCELED, -11, "canceled")                                                                            \
    X(ETIMEDOUT, -12, "timed out")                                                                           \
    X(EAGAIN, -13, "not ready")                                                                              \
    X(ECLOSED, -14, "closed")                                                                                \
    X(EFORK, -15, "used in a forked child process")                                                          \
    X(ETHREAD, -16, "a thread could not be started")                                                         \
    X(EOVERFLOW, -17, "size or number out of range")                                                         \
    X(ENOTSUP, -18, "not supported by this build or machine")                                                \
    X(EPERM, -19, "permission denied")                                                                       \
    X(ESTATE, -20, "called in the wrong state")                                                              \
    X(EINTERNAL, -21, "internal error")                                                                      \
    X(ENOFIELD, -22, "no such field or column, or one of another type")                                      \
    X(ENOCLASS, -23, "no such class name")                                                                   \
    X(ECHANGED, -24, "replaced or removed while it was read")

typedef enum leat_code {
    LEAT_OK = 0,
#define LEAT_ERROR_ENUM(name, value, text) LEAT_##name = value,
    LEAT_ERROR_MAP(LEAT_ERROR_ENUM)
#undef LEAT_ERROR_ENUM
} leat_code;

/* What went wrong, and where. Plain data: copy it, keep it, print it. */
typedef struct leat_error {
    int32_t code;      /* a leat_code, 0 when nothing failed */
    int32_t sys_errno; /* errno of the failed call, 0 when none */
    int64_t sample;    /* sample id, -1 when not about a sample */
    int64_t offset;    /* byte offset in the file or sample, -1 when unknown */
    char key[256];     /* key of the sample, "" when unknown */
    char message[768]; /* one line, no newline, names file, sample and offset */
} leat_error;

/* Return the name of a code ("LEAT_EDATA") and its short text: static strings, never NULL. */
LEAT_API const char *leat_code_name(int code);
LEAT_API const char *leat_code_text(int code);

#ifdef __cplusplus
}
#endif

#endif
