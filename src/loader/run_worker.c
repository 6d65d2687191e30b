/* SPDX-License-Identifier: Apache-2.0
 *
 * The scratch of one worker: created for its first run, kept across epochs.
 */
#include "base/mem.h"
#include "loader/loader_run.h"

#define SPARE_MAX ((size_t)1 << 40)

int leat__run_worker_open(leat__run_worker **out, leat_error *err)
{
    int rc;
    leat__run_worker *w = LEAT_NEW(LOADER, leat__run_worker);

    *out = NULL;
    if (w == NULL) return leat__fail_nomem(err, sizeof *w, "a worker");
    leat__buf_init(&w->spare, LEAT__MEM_SCRATCH, SPARE_MAX);
    leat__buf_init(&w->chunk_ids, LEAT__MEM_SCRATCH, SPARE_MAX);
    leat__buf_init(&w->chunk_keep, LEAT__MEM_SCRATCH, SPARE_MAX);
    leat__buf_init(&w->chunk_pages, LEAT__MEM_SCRATCH, SPARE_MAX);
    leat__device_chunk_init(&w->chunk);
    LEAT_GO(rc, out, leat__pipeline_worker_open(&w->pipeline, err));
    *out = w;
    w = NULL;
out:
    leat__run_worker_close(&w);
    return rc;
}

void leat__run_worker_close(leat__run_worker **out)
{
    leat__run_worker *w = *out;
    if (w == NULL) return;
    leat__pipeline_worker_close(&w->pipeline);
    leat__buf_reset(&w->spare);
    leat__follow_scratch_reset(&w->follow);
    leat__buf_reset(&w->chunk_ids);
    leat__buf_reset(&w->chunk_keep);
    leat__buf_reset(&w->chunk_pages);
    leat__device_chunk_reset(&w->chunk);
    leat__free(w);
    *out = NULL;
}

void leat__run_worker_shrink(leat__run_worker *w)
{
    leat__buf_reset(&w->spare);
    leat__buf_init(&w->spare, LEAT__MEM_SCRATCH, SPARE_MAX);
    leat__pipeline_worker_close(&w->pipeline);
}
