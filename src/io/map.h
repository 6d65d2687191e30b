/* SPDX-License-Identifier: Apache-2.0
 *
 * A file mapped for reading, without its trap: touching a mapping whose file was cut shorter
 * raises SIGBUS, so the address is never handed out. Bytes leave by leat__map_read(), which
 * lets the kernel do the copy and turns a hole into LEAT_EDATA. What a mapping gives that
 * reads do not: advice per range and the answer to "how much of this is in memory?".
 * Any number of threads may use one map.
 */
#ifndef LEAT_IO_MAP_H
#define LEAT_IO_MAP_H

#include "io/file.h"

typedef struct leat__map leat__map;

/* Maps the file as long as it is now; an empty file gives an empty map. The path is opened
 * anew, so the map outlives any leat__file. */
int leat__map_open(leat__map **m, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__map_close(leat__map **m);

uint64_t leat__map_size(const leat__map *m);
int leat__map_read(const leat__map *m, void *buf, size_t len, uint64_t offset,
                   leat_error *err) LEAT_MUST_CHECK;
void leat__map_advise(const leat__map *m, uint64_t offset, uint64_t len, leat__advice advice);

/* Bytes of the range that are in the page cache now, in whole memory pages cut to the
 * range. */
int leat__map_resident(const leat__map *m, uint64_t offset, uint64_t len, uint64_t *bytes,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
