/* SPDX-License-Identifier: Apache-2.0
 *
 * What every unit test includes: cmocka with the headers it asks for, and a few checks.
 */
#ifndef LEAT_TEST_H
#define LEAT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"

/* A call that must succeed; prints its error when it does not. */
#define assert_ok(expr)                                                                                      \
    do {                                                                                                     \
        int ok_rc_ = (expr);                                                                                 \
        if (ok_rc_ != 0) fail_msg("%s: %s (%s)", #expr, leat_code_name(ok_rc_), leat_code_text(ok_rc_));     \
    } while (0)

/* A call that must fail with this code. */
#define assert_code(code, expr)                                                                              \
    do {                                                                                                     \
        int code_rc_ = (expr);                                                                               \
        if (code_rc_ != (code))                                                                              \
            fail_msg("%s: got %s, wanted %s", #expr, leat_code_name(code_rc_), leat_code_name(code));        \
    } while (0)

#define assert_contains(haystack, needle)                                                                    \
    do {                                                                                                     \
        if (strstr((haystack), (needle)) == NULL)                                                            \
            fail_msg("'%s' does not contain '%s'", (haystack), (needle));                                    \
    } while (0)

/* A test that fails leaves what it had behind; that is not the next one's fault: each begins by
 * counting what is there. */
static uint64_t test_blocks;

static inline int test_begin(void **state)
{
    (void)state;
    test_blocks = leat__mem_blocks();
    return 0;
}

#undef cmocka_unit_test
#define cmocka_unit_test(f)                                                                                  \
    {                                                                                                        \
#f, f, test_begin, NULL, NULL                                                                        \
    }

/* No heap block that was allocated during the test may be left. */
#define assert_no_leaks() assert_int_equal(leat__mem_blocks(), test_blocks)

/* Every test program works in its own folder, so that the same program can run several times at
 * once (under other instruction sets) with the same file names. */
static pid_t test_process;
static char test_folder[64];

static inline int test_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline void test_folder_leave(void)
{
    if (getpid() != test_process || chdir("..") != 0) return; /* a forked child leaves it alone */
    nftw(test_folder, test_remove, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((constructor)) static void test_folder_enter(void)
{
    snprintf(test_folder, sizeof test_folder, "leat-test-XXXXXX");
    if (mkdtemp(test_folder) == NULL || chdir(test_folder) != 0) abort();
    test_process = getpid();
    atexit(test_folder_leave);
}

/* A number from the environment, for runs longer than the default. */
static inline uint64_t test_count(const char *variable, uint64_t standard)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : standard;
}

/* A hang is killed by SIGALRM; a sanitizer's build takes many times longer. */
static inline unsigned watchdog_s(void)
{
    return getenv("LEAT_SANITIZED") != NULL ? 1800 : 120;
}

#endif
