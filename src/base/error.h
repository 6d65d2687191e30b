/* SPDX-License-Identifier: Apache-2.0
 *
 * How functions inside leat report errors. include/leat/error.h describes the public side.
 *
 *   - A function that owns nothing uses LEAT_TRY(leat__thing_do(…, err));
 *   - A function that owns something sets its locals to NULL or zero, keeps `int rc`, uses
 *     LEAT_GO(rc, out, expr) and has one label `out:` that releases what is still owned;
 *     it passes ownership on by setting the local to NULL before `out:`.
 */
#ifndef LEAT_BASE_ERROR_H
#define LEAT_BASE_ERROR_H

#include <stdbool.h>

#include <leat/error.h>

/* Returns the code of `expr` from the current function unless it is 0. */
#define LEAT_TRY(expr)                                                                                       \
    do {                                                                                                     \
        int leat_try_rc_ = (expr);                                                                           \
        if (leat_try_rc_ != 0) return leat_try_rc_;                                                          \
    } while (0)

/* Checks the arguments of a public call: LEAT_EINVAL when `cond` is false. */
#define LEAT_REQUIRE(cond, err)                                                                              \
    do {                                                                                                     \
        if (!(cond)) return leat__fail((err), LEAT_EINVAL, "%s: bad argument: needs %s", __func__, #cond);   \
    } while (0)

/* Stores the code of `expr` in `rc` and jumps to `label` unless it is 0. */
#define LEAT_GO(rc, label, expr)                                                                             \
    do {                                                                                                     \
        (rc) = (expr);                                                                                       \
        if ((rc) != 0) goto label;                                                                           \
    } while (0)

/* Fills *err (may be NULL) with a formatted one-line message and returns `code`. Control
 * characters in the message are replaced, so that hostile names cannot forge output.
 *
 * `fmt` has the names of options in backquotes: "`pad_mask` has no effect". C and Python users see pad_mask;
 * users of the command see the flag, --pad-mask. tests/lint/options.py checks the names. */
int leat__fail(leat_error *err, int code, const char *fmt, ...) LEAT_PRINTF(3, 4);

/* Makes messages show options as flags (true) or as names (false). The command calls it before it starts
 * threads. */
void leat__options_as_flags(bool flags);

/* Like leat__fail, for a failed system call: picks the code from `sys_errno` (ENOSPC, ENOENT …, else EIO) and
 * appends its text. */
int leat__fail_errno(leat_error *err, int sys_errno, const char *fmt, ...) LEAT_PRINTF(3, 4);

/* Fails with LEAT_ENOMEM and the message "out of memory: cannot allocate N for WHAT". */
int leat__fail_nomem(leat_error *err, uint64_t bytes, const char *what);

/* Prepends "context: " to the message of an error from a callee; returns err->code. */
int leat__error_context(leat_error *err, const char *fmt, ...) LEAT_PRINTF(2, 3);

/* Records the sample and the position in it; key may be NULL, sample and offset -1 when
 * unknown. */
void leat__error_at(leat_error *err, const char *key, int64_t sample, int64_t offset);

/* Returns the LEAT_E… code for an errno value. */
int leat__code_of_errno(int sys_errno);

void leat__error_reset(leat_error *err);

#endif
