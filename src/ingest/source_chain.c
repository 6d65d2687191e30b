/* SPDX-License-Identifier: Apache-2.0
 *
 * See source_chain.h.
 */
#include "ingest/source_chain.h"

#include "base/hash.h"
#include "io/file.h"
#include "io/url.h"

static uint64_t add_stamp(uint64_t chain, leat__stamp stamp)
{
    uint64_t words[] = {stamp.bytes, (uint64_t)stamp.mtime_ns};
    return leat__hash64(words, sizeof words, chain);
}

leat__chain leat__chain_begin(const leat_ingest_opts *o)
{
    leat__chain chain = {0, 0};
    for (uint32_t i = 0; i < o->source_count; i++)
        chain.value = add_stamp(chain.value, leat__path_stamp(o->sources[i]));
    if (o->select) chain.value = add_stamp(chain.value, leat__path_stamp(o->select));
    if (o->keys) chain.value = add_stamp(chain.value, leat__path_stamp(o->keys));
    return chain;
}

void leat__chain_add(leat__chain *chain, const leat__records *run, const leat__record *r)
{
    chain->value =
        add_stamp(leat__hash64(leat__records_str(run, r->key), r->key_size, chain->value), r->stamp);
    chain->records++;
}

/* Records the most recently modified file, to name it in a message. */
static int note_newest(leat__buf *newest, int64_t *mtime_ns, const char *path, leat__stamp stamp,
                       leat_error *err)
{
    if (!newest || stamp.mtime_ns <= *mtime_ns) return 0;
    *mtime_ns = stamp.mtime_ns;
    leat__buf_clear(newest);
    return leat__buf_puts(newest, path) == 0 ? 0 : leat__fail_nomem(err, 0, "a path");
}

int leat__chain_skip(leat__chain *chain, leat__source *source, leat__records_pool *spare, uint64_t records,
                     leat__buf *newest, leat_error *err)
{
    int64_t mtime_ns = 0;
    leat__records *run = NULL;
    int rc = 0;
    source->skim = true;
    for (uint64_t i = 0; i < records; i++) {
        bool end = false;
        if (!run || leat__records_full(run)) {
            leat__records_pool_give(spare, run);
            run = leat__records_pool_take(spare);
            if (!run) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof *run, "a run of samples"));
        }
        leat__record *r = leat__records_add(run);
        LEAT_GO(rc, out, source->ops->next(source, run, r, &end, err));
        if (end) break;
        /* remote files already have the listing's stamp, if any */
        if (!r->failed && r->path != LEAT__RECORDS_NOWHERE &&
            !leat__path_remote(leat__records_str(run, r->path))) {
            const char *path = leat__records_str(run, r->path);
            r->stamp = leat__path_stamp(path);
            LEAT_GO(rc, out, note_newest(newest, &mtime_ns, path, r->stamp, err));
        }
        leat__chain_add(chain, run, r);
    }
out:
    leat__records_pool_give(spare, run);
    source->skim = false;
    return rc;
}
