/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of leat's own code: preconditions of internal functions, and what must hold of a
 * structure after each change. Bad arguments of a public call are not a matter of these:
 * LEAT_REQUIRE (base/error.h) answers them with LEAT_EINVAL in every build.
 *
 * A check that fails ends the process with its file, line and condition. Release builds (NDEBUG)
 * compile the conditions and run none of them; `make test`, `make asan` and `make tsan` run all.
 */
#ifndef LEAT_BASE_CHECK_H
#define LEAT_BASE_CHECK_H

#include <assert.h>
#include <stdbool.h>

/* `cond` must not change anything: a release build does not evaluate it. LEAT_CHECKED is for
 * checks that need a loop. */
#ifdef NDEBUG
#define LEAT_CHECKED 0
#define LEAT_ASSERT(cond) ((void)(false && (cond)))
#else
#define LEAT_CHECKED 1
#define LEAT_ASSERT(cond) assert(cond)
#endif

#endif
