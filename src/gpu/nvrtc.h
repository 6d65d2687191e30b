/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's run-time compiler, loaded when it is needed. What it made is kept in a folder of the user's
 * ($LEAT_CACHE_DIR, else $XDG_CACHE_HOME/leat, else ~/.cache/leat) and used again: compiling takes about
 * a second. Any thread.
 */
#ifndef LEAT_GPU_NVRTC_H
#define LEAT_GPU_NVRTC_H

#include "base/buf.h"
#include "base/error.h"

/* Compiles `source` for compute capability `arch` (times ten); machine code is appended to `out`.
 * *origin becomes "NVRTC" or "kept". LEAT_ENOTSUP: the library is not there; LEAT_EINTERNAL with the
 * compiler's first words. */
int leat__nvrtc_compile(const char *source, uint32_t arch, leat__buf *out, const char **origin,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
