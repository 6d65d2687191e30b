/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the samples of a run: from the page cache of the process, the disk cache, the OS page cache or the
 * file. leat__run_read starts the reads on the I/O lane; a worker then verifies each sample.
 */
#ifndef LEAT_LOADER_RUN_READ_H
#define LEAT_LOADER_RUN_READ_H

#include "loader/loader_run.h"

/* Returns the memory that reading the sample takes. */
uint64_t leat__run_sample_bytes(const leat__run_sample *s);

/* Records why a sample is not available. Without memory for the text, the code is kept. */
void leat__run_sample_fail(leat__run_sample *s, int rc, const leat_error *why);

/* Starts all reads. Returns 0: all bytes are available; LEAT_FLOW_PENDING: leat_task_done(task) follows. */
int leat__run_read(leat__run *r, leat_task *task, leat_error *err);

/* Reads the page of the one sample of a request ahead (loader/page_ahead.h) into the cache. FILL and WAIT:
 * leat__page_ahead_done follows, or was already called. HIT: the page is pinned. */
leat__cache_answer leat__run_ask(leat__run *r);

/* On a worker: copies the sample from the OS page cache if it was left there, verifies it, and
 * keeps its page on disk. Then s->data has the bytes. */
int leat__run_sample_get(leat__run_sample *s, leat__run_worker *w, leat_error *err) LEAT_MUST_CHECK;

#endif
