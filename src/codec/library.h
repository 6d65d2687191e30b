/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of image formats, loaded when the first such image is read. A program that only reads JPEGs
 * loads neither them nor their dependencies, and a machine without them still works. Only their headers are
 * needed to build.
 */
#ifndef LEAT_CODEC_LIBRARY_H
#define LEAT_CODEC_LIBRARY_H

#include "base/error.h"
#include "base/thread.h"

/* One function: its name, and where to store its address. */
typedef struct leat__library_symbol {
    const char *name;
    void *slot;
} leat__library_symbol;

/* Loads a library. `file` must have the version of the headers that leat was built with, because struct
 * layouts depend on it. LEAT_ENOTSUP: "AVIF images need libavif.so.15, which is not installed (on Debian: apt
 * install libavif15)". The library is never closed: other code may keep state in it. */
int leat__library_load(const char *format, const char *file, const char *package,
                       const leat__library_symbol *symbols, size_t count, leat_error *err) LEAT_MUST_CHECK;

#endif
