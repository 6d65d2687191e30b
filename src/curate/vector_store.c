/* SPDX-License-Identifier: Apache-2.0
 *
 * See vector_store.h.
 */
#include "curate/vector_store.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"

#define CHUNK 512 /* rows read at a time when they are not kept; at most two minimum tiles of a plan */

typedef struct fetching {
    leat__vector_store *s;
    const uint32_t *row;
    uint64_t first, n;
    float *out;
    _Atomic int rc;
    leat_error *errs; /* one per member */
} fetching;

/* Reads all rows, a chunk at a time or all at once, and keeps the numbers of those that have a vector. */
static int find_rows(leat__vector_store *s, bool keep, leat_error *err)
{
    const uint64_t all = s->count, chunk = keep ? LEAT_MAX(all, 1) : CHUNK;
    uint64_t found = 0;
    s->in_pack = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(all, 1));
    float *rows = leat__alloc_array(LEAT__MEM_CURATE, chunk, s->dim * sizeof *rows);
    int rc = s->in_pack && rows ? 0 : leat__fail_nomem(err, chunk * s->dim * sizeof *rows, "vectors");
    for (uint64_t i = 0; rc == 0 && i < all; i++) s->in_pack[i] = (uint32_t)i;
    for (uint64_t at = 0; rc == 0 && at < all; at += chunk) {
        const uint64_t n = LEAT_MIN(chunk, all - at);
        rc = leat__vector_store_get(s, NULL, at, n, rows, err);
        for (uint64_t i = 0; i < n && rc == 0; i++) {
            const float *row = rows + i * s->dim;
            if (leat__vectors_is_zero(row, s->dim)) continue;
            if (keep && found < i) memcpy(rows + found * s->dim, row, s->dim * sizeof *row);
            s->in_pack[found++] = (uint32_t)(at + i);
        }
    }
    s->count = found;
    if (keep && rc == 0) s->whole = (leat__vectors){.count = found, .dim = s->dim, .row = rows};
    else leat__free(rows);
    return rc;
}

int leat__vector_store_open(leat__vector_store *s, const char *path, const char *field, bool keep,
                            leat__thread_team *crew, leat_error *err)
{
    int rc;
    memset(s, 0, sizeof *s);
    s->crew = crew;
    LEAT_GO(rc, out, leat_pack_open(&s->pack, path, NULL, err));
    LEAT_GO(rc, out, leat__vectors_field(s->pack, field, &s->field, err));
    s->count = leat_pack_count(s->pack);
    s->dim = leat__vectors_dim(s->pack, s->field);
    if (s->count >= UINT32_MAX)
        LEAT_GO(rc, out, leat__fail(err, LEAT_ELIMIT, "%s: more than %u rows", path, UINT32_MAX - 1));
    const uint32_t members = leat__thread_team_size(crew);
    s->sample = LEAT_NEW_ARRAY(CURATE, leat_sample *, members);
    rc = s->sample ? 0 : leat__fail_nomem(err, members * sizeof *s->sample, "readers");
    for (uint32_t i = 0; i < members && rc == 0; i++) rc = leat_sample_open(&s->sample[i], s->pack, err);
    if (rc == 0) rc = find_rows(s, keep, err);
out:
    if (rc != 0) leat__vector_store_close(s);
    return rc;
}

void leat__vector_store_close(leat__vector_store *s)
{
    for (uint32_t i = 0; s->sample && i < leat__thread_team_size(s->crew); i++)
        leat_sample_close(&s->sample[i]);
    leat__free(s->sample);
    leat__free(s->in_pack);
    leat__vectors_reset(&s->whole);
    leat_pack_close(&s->pack);
    memset(s, 0, sizeof *s);
}

static void fetch(void *cookie, uint32_t member, uint32_t members)
{
    fetching *f = cookie;
    leat__vector_store *s = f->s;
    const uint64_t end = f->n * (member + 1) / members;
    for (uint64_t i = f->n * member / members; i < end && f->rc == 0; i++) {
        const uint64_t row = f->row ? f->row[i] : f->first + i;
        LEAT_ASSERT(row < s->count);
        float *to = f->out + i * s->dim;
        if (s->whole.row) {
            memcpy(to, leat__vectors_at(&s->whole, row), s->dim * sizeof *to);
            continue;
        }
        int rc = leat__vectors_read_one(s->sample[member], s->field, s->pack, s->in_pack[row], to, s->dim,
                                        &f->errs[member]);
        if (rc != 0) f->rc = rc;
    }
}

int leat__vector_store_get(leat__vector_store *s, const uint32_t *row, uint64_t first, uint64_t n, float *out,
                           leat_error *err)
{
    LEAT_ASSERT(row != NULL || first + n <= s->count);
    const uint32_t members = leat__thread_team_size(s->crew);
    fetching f = {.s = s, .row = row, .first = first, .n = n, .out = out};
    f.errs = LEAT_NEW_ARRAY(CURATE, leat_error, members);
    if (!f.errs) return leat__fail_nomem(err, members * sizeof *f.errs, "readers");
    leat__thread_team_run(s->crew, fetch, &f);
    int rc = f.rc;
    /* the failure at the lowest row */
    for (uint32_t i = 0; i < members && rc != 0; i++)
        if (f.errs[i].code != 0) {
            if (err) *err = f.errs[i];
            rc = f.errs[i].code;
            break;
        }
    leat__free(f.errs);
    return rc;
}
