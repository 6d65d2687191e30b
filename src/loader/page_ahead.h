/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests pages of a remote pack before the runs that need them are planned. The order is known, so rows are
 * scanned ahead of the feed, and each page is read into the page cache at its first row. A page takes only
 * its own memory, but a run also takes its rows of a batch. So few runs and many pages in flight saturate a
 * link with high latency with less memory than many runs.
 *
 * Called by the feed, one thread at a time, except leat__page_ahead_done, which any thread may call.
 */
#ifndef LEAT_LOADER_PAGE_AHEAD_H
#define LEAT_LOADER_PAGE_AHEAD_H

#include "loader/loader_run.h"

typedef struct leat_loader leat_loader;

int leat__page_ahead_open(leat__page_ahead **out, uint64_t pages, leat_budget *budget,
                          leat_error *err) LEAT_MUST_CHECK;
void leat__page_ahead_close(leat__page_ahead **a);

/* Call it before an epoch. Pages are requested ahead if those that the order needs at a time fit in the
 * cache. */
void leat__page_ahead_begin(leat_loader *l);
/* Sets the I/O depth of the flow for a remote pack; the flow counts runs. */
void leat__page_ahead_depth(const leat_loader *l, leat_flow_opts *o);
/* Waits for the requests in flight, which the caller has canceled. */
void leat__page_ahead_end(leat__page_ahead *a);

/* Requests pages of the next rows, as far as there is room. */
void leat__page_ahead_look(leat_loader *l);
/* Call it when a sample of the page is planned. True for the first sample of a page requested ahead. */
bool leat__page_ahead_used(leat__page_ahead *a, uint64_t page, uint64_t bytes);
/* Closes the run, after its page has arrived or the request has failed. */
void leat__page_ahead_done(leat__run *r);

#endif
