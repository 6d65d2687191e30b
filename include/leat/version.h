/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of these headers, and of the library at run time.
 *
 * Within one major version a newer library accepts programs built with older headers: structs
 * carry their size, and fields are only added at their ends.
 */
#ifndef LEAT_VERSION_H
#define LEAT_VERSION_H

#include <leat/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_VERSION_MAJOR 0
#define LEAT_VERSION_MINOR 1
#define LEAT_VERSION_PATCH 0
#define LEAT_VERSION "0.1.0"
/* For comparisons: LEAT_VERSION_NUMBER >= 100 means 0.1.0 or newer. */
#define LEAT_VERSION_NUMBER (LEAT_VERSION_MAJOR * 10000 + LEAT_VERSION_MINOR * 100 + LEAT_VERSION_PATCH)

/* Version of the library at run time, as in "0.1.0". */
LEAT_API const char *leat_version(void);
/* LEAT_VERSION_NUMBER of the library at run time. */
LEAT_API int leat_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
