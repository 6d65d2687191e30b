/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches sample files from buckets: see fetch.h.
 */
#include "ingest/fetch.h"

#include "base/mem.h"
#include "base/num.h"
#include "io/object.h"
#include "io/url.h"

#define FETCH_MAX (UINT64_C(32) << 20)

bool leat__fetchable(const leat__records *run, const leat__record *r)
{
    return r->path != LEAT__RECORDS_NOWHERE && leat__path_remote(leat__records_str(run, r->path)) &&
           r->size_hint <= FETCH_MAX;
}

static int put_into(leat__source *s, leat__records *run, leat__record *r, leat__object_get *g,
                    leat_error *err)
{
    if (g->rc != 0) {
        if (err) *err = g->err;
        return g->rc;
    }
    /* with a stamp, the size came from the bucket's listing */
    if (r->stamp.bytes != 0 && r->stamp.bytes != g->body.len)
        return leat__fail(err, LEAT_EDATA, "%s: is %zu bytes, but the bucket lists it with %llu",
                          leat__records_str(run, r->path), g->body.len, (unsigned long long)r->stamp.bytes);
    if (!leat__records_bytes(run, &r->items[r->path_field], g->body.data, g->body.len))
        return leat__fail_nomem(err, g->body.len, "a file");
    r->bytes_in += g->body.len;
    return 0;
}

int leat__fetch_record(leat__source *s, leat__records *run, leat__record *r, leat_error *err)
{
    leat__object_get g = {.path = leat__records_str(run, r->path), .max = s->max_sample};
    leat__object_get_all(&g, 1);
    int rc = put_into(s, run, r, &g, err);
    leat__buf_reset(&g.body);
    return rc;
}

int leat__fetch_run(leat__source *s, leat__records *run, leat_error *err)
{
    leat__record *of[LEAT__RECORDS_MOST];
    size_t count = 0;
    int rc = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        leat__record *r = &run->record[i];
        if (!r->failed && !r->loaded && leat__fetchable(run, r)) of[count++] = r;
    }
    if (count == 0) return 0;
    leat__object_get *gets = LEAT_NEW_ARRAY(INGEST, leat__object_get, count);
    if (!gets) return leat__fail_nomem(err, count * sizeof *gets, "requests");
    for (size_t i = 0; i < count; i++) {
        gets[i].path = leat__records_str(run, of[i]->path);
        gets[i].max = s->max_sample;
    }
    leat__object_get_all(gets, count);
    for (size_t i = 0; i < count; i++) {
        leat_error why = {0};
        int one = rc == 0 ? put_into(s, run, of[i], &gets[i], &why) : 0;
        leat__buf_reset(&gets[i].body);
        of[i]->loaded = one == 0;
        if (one == LEAT_ENOMEM) {
            rc = one;
            if (err) *err = why;
        } else if (one != 0) {
            leat__records_fail(of[i], &why);
        }
    }
    leat__free(gets);
    return rc;
}
