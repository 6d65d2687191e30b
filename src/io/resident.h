/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how much of a file is in the page cache. The file is mapped for mincore, but the mapping is never
 * read, so a file truncated meanwhile cannot raise SIGBUS. Any thread.
 */
#ifndef LEAT_IO_RESIDENT_H
#define LEAT_IO_RESIDENT_H

#include <stdint.h>

#include "base/error.h"

/* *size: bytes of the file; *resident: those in the page cache now, in whole memory pages clipped to the
 * file. */
int leat__file_resident(const char *path, uint64_t *resident, uint64_t *size,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
