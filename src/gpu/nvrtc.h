/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's run-time compiler, loaded on demand. Compiling takes about a second, so its output is cached in a
 * folder of the user ($LEAT_CACHE_DIR, else $XDG_CACHE_HOME/leat, else ~/.cache/leat). Any thread.
 */
#ifndef LEAT_GPU_NVRTC_H
#define LEAT_GPU_NVRTC_H

#include "base/buf.h"
#include "base/error.h"

/* Compiles `source` for compute capability `arch` (times ten); machine code is appended to `out`. *origin
 * becomes "NVRTC" or "kept" (cached). LEAT_ENOTSUP: the library is missing; LEAT_EINTERNAL: err has the
 * beginning of the compiler's log. */
int leat__nvrtc_compile(const char *source, uint32_t arch, leat__buf *out, const char **origin,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
