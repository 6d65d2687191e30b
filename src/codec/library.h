/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of image formats that are loaded when the first such image is met: a program that reads
 * JPEGs loads neither them nor their dependencies, and a machine without them still runs. Only their
 * headers are needed to build.
 */
#ifndef LEAT_CODEC_LIBRARY_H
#define LEAT_CODEC_LIBRARY_H

#include "base/error.h"
#include "base/thread.h"

/* One function: its name, and where its address goes. */
typedef struct leat__library_symbol {
    const char *name;
    void *slot;
} leat__library_symbol;

/* `file` has the version of the headers that leat was built with: their structs are laid out for it.
 * LEAT_ENOTSUP: "AVIF images need libavif.so.15, which is not installed (on Debian: apt install
 * libavif15)". The library is never closed: others may keep state in it. */
int leat__library_load(const char *format, const char *file, const char *package,
                       const leat__library_symbol *symbols, size_t count, leat_error *err) LEAT_MUST_CHECK;

#endif
