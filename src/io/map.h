/* SPDX-License-Identifier: Apache-2.0
 *
 * A file mapped for reading, safe against truncation. Touching a mapping whose file was truncated
 * raises SIGBUS, so the address is never exposed. leat__map_read() lets the kernel copy the bytes
 * and turns a missing page into LEAT_EDATA. A mapping offers two things that reads do not: advice
 * per range, and how much of a range is in memory. Any number of threads may use one map.
 */
#ifndef LEAT_IO_MAP_H
#define LEAT_IO_MAP_H

#include "io/file.h"

typedef struct leat__map leat__map;

/* Maps the file at its current length; an empty file gives an empty map. Opens the path itself,
 * so the map outlives any leat__file. */
int leat__map_open(leat__map **m, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__map_close(leat__map **m);

uint64_t leat__map_size(const leat__map *m);
int leat__map_read(const leat__map *m, void *buf, size_t len, uint64_t offset,
                   leat_error *err) LEAT_MUST_CHECK;
void leat__map_advise(const leat__map *m, uint64_t offset, uint64_t len, leat__advice advice);

/* Bytes of the range in the page cache now, in whole memory pages clipped to the range. */
int leat__map_resident(const leat__map *m, uint64_t offset, uint64_t len, uint64_t *bytes,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
