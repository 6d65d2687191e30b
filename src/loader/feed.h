/* SPDX-License-Identifier: Apache-2.0
 *
 * The feed plans the next run in advance: its samples, the batch they go into and the bytes it is charged
 * for. Its state is l->feed: one thread at a time, passed on by the engine.
 */
#ifndef LEAT_LOADER_FEED_H
#define LEAT_LOADER_FEED_H

#include "loader/setup.h"

/* Plans the next run of the epoch as feed.next. At the end of the epoch or on failure next_bytes is 0, and
 * feed.rc tells which. */
void leat__feed_plan(leat_loader *l);

/* Sets feed.ragged: the payload bytes of each ragged column for the first `rows` samples of feed.ids. Writes
 * where each row begins into `f`, if not NULL. */
int leat__feed_ragged(leat_loader *l, uint32_t rows, leat__frame *f, leat_error *err) LEAT_MUST_CHECK;

/* Returns how often the rows of this rank use a page in this epoch; if that is not known, the number of its
 * samples.
 */
uint32_t leat__feed_uses(const leat_loader *l, const leat_pack_page *page);

#endif
