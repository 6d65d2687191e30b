/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded queue of pointers for any number of producers and consumers. close() wakes all of
 * them: producers get LEAT_ECLOSED at once, consumers after the queue is empty. The owner must
 * drain the queue before destroying it.
 */
#ifndef LEAT_BASE_QUEUE_H
#define LEAT_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__queue leat__queue;

int leat__queue_open(leat__queue **q, size_t capacity, leat_error *err) LEAT_MUST_CHECK;
void leat__queue_close(leat__queue *q);     /* no more items; may be called again */
void leat__queue_destroy(leat__queue **q);

/* 0 or LEAT_ECLOSED; also LEAT_ETIMEDOUT when the deadline passed (a time of leat__clock_ns; 0 =
 * do not wait, UINT64_MAX = no deadline). */
int leat__queue_push(leat__queue *q, void *item, uint64_t deadline_ns) LEAT_MUST_CHECK;
int leat__queue_pop(leat__queue *q, void **item, uint64_t deadline_ns) LEAT_MUST_CHECK;
size_t leat__queue_len(leat__queue *q);

#endif
