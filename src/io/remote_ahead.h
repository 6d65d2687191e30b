/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch for blocking reads of a remote file: once reads are sequential, the next blocks are
 * requested before they are needed, as a kernel does for local files. A few blocks are kept, so
 * that threads reading the same part share them. Any thread may read.
 */
#ifndef LEAT_IO_REMOTE_AHEAD_H
#define LEAT_IO_REMOTE_AHEAD_H

#include <stdbool.h>

#include "io/remote.h"

typedef struct leat__ahead leat__ahead;

int leat__ahead_open(leat__ahead **a, leat__remote *file, uint64_t size, leat_error *err) LEAT_MUST_CHECK;
/* Waits for blocks in flight. */
void leat__ahead_close(leat__ahead **a);
/* Copies the range from blocks, waiting for them. False: the caller must read it itself. */
bool leat__ahead_read(leat__ahead *a, void *buf, size_t len, uint64_t offset);
/* Drops the blocks that have arrived, so that later reads request their bytes again. */
void leat__ahead_drop(leat__ahead *a);

#endif
