/* SPDX-License-Identifier: Apache-2.0
 *
 * Assertions about leat's own code: preconditions of internal functions and invariants of structures. They
 * are not for the arguments of public calls, which LEAT_REQUIRE (base/error.h) checks in every build.
 *
 * A failed assertion ends the process and prints file, line and condition. Release builds (NDEBUG) compile
 * the conditions but do not evaluate them; `make test`, `make asan` and `make tsan` do.
 */
#ifndef LEAT_BASE_CHECK_H
#define LEAT_BASE_CHECK_H

#include <assert.h>
#include <stdbool.h>

/* `cond` must have no side effects: a release build does not evaluate it. Use LEAT_CHECKED for checks that
 * need a loop. */
#ifdef NDEBUG
#define LEAT_CHECKED 0
#define LEAT_ASSERT(cond) ((void)(false && (cond)))
#else
#define LEAT_CHECKED 1
#define LEAT_ASSERT(cond) assert(cond)
#endif

#endif
