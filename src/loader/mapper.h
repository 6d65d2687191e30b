/* SPDX-License-Identifier: Apache-2.0
 *
 * Page-locks the memory of cached pages, so that a device can read it in place. Locking takes about as long
 * as copying, and must not hold the cache's lock. So a separate thread does it, one chunk after the other.
 * Until then, and where it fails, the pages are copied.
 *
 * Any thread may call. The owner of a chunk removes it from the mapper before closing it.
 */
#ifndef LEAT_LOADER_MAPPER_H
#define LEAT_LOADER_MAPPER_H

#include <leat/log.h>

#include "base/error.h"
#include "gpu/device.h"

typedef struct leat__mapper leat__mapper;
struct leat__chunk;

int leat__mapper_open(leat__mapper **m, leat__gpu *gpu, const leat_log *log, leat_error *err) LEAT_MUST_CHECK;
bool leat__mapper_failed(leat__mapper *m); /* true when pages could not be locked */
void leat__mapper_close(leat__mapper **m); /* mapped chunks stay mapped */

/* Starts locking. Nothing is locked before, because the device may never decode anything. */
void leat__mapper_start(leat__mapper *m);

void leat__mapper_add(leat__mapper *m, struct leat__chunk *k);
void leat__mapper_remove(leat__mapper *m, struct leat__chunk *k); /* waits while it is being locked */

#endif
