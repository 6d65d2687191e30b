/* SPDX-License-Identifier: Apache-2.0
 *
 * Compaction: rewrites all samples of a pack, in order, as a single run of a packer would:
 * without dropped samples and without borders between generations. Stored bytes are copied
 * unchanged. One thread.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "pack/append.h"
#include "pack/compact.h"
#include "pack/reader_impl.h"
#include "pack/selection.h"

typedef struct compacting {
    leat_pack *pack;
    leat_packer *packer;
    leat_sample *sample;
    leat_pack_value *values;
    leat_pack_compact_opts opts;
    bool (*select)(void *cookie, uint64_t sample); /* NULL = all */
    void *cookie;
} compacting;

static int copy_blobs(compacting *c, leat_error *err)
{
    for (uint32_t i = 0; i < leat_pack_blob_count(c->pack); i++) {
        const char *name = leat_pack_blob_name(c->pack, i);
        const void *data;
        size_t size;
        LEAT_TRY(leat_pack_blob(c->pack, name, &data, &size, err));
        LEAT_TRY(leat_packer_blob(c->packer, name, data, size, err));
    }
    return 0;
}

static int copy_sample(compacting *c, uint64_t number, leat_error *err)
{
    leat_pack_sample s = {.values = c->values, .marks = {number + 1}};
    LEAT_TRY(leat_sample_read(c->sample, number, err));
    s.key = leat_sample_key(c->sample, &s.key_size);
    for (uint32_t f = 0; f < leat_pack_field_count(c->pack); f++) {
        leat_pack_value *v = &c->values[f];
        uint32_t type = leat_pack_field(c->pack, f)->type;
        leat_view view;
        LEAT_TRY(leat_sample_field(c->sample, f, &view, err));
        *v = (leat_pack_value){.data = view.data,
                               .size = view.size,
                               .image = view.image,
                               .entries = view.entries,
                               .entries_size = view.entries_size};
        memcpy(v->shape, view.shape, sizeof v->shape);
        if (type == LEAT_FIELD_INT) memcpy(&v->i, view.data, sizeof v->i);
        else if (type == LEAT_FIELD_FLOAT) memcpy(&v->f, view.data, sizeof v->f);
        else v->absent = view.data == NULL;
    }
    return leat_packer_append(c->packer, &s, err);
}

static int copy_samples(compacting *c, leat_error *err)
{
    uint64_t count = leat_pack_count(c->pack);
    for (uint64_t i = leat_packer_resumed(c->packer, NULL); i < count; i++) {
        if (c->select == NULL || c->select(c->cookie, i)) LEAT_TRY(copy_sample(c, i, err));
        if (c->opts.progress != NULL && i % 256 == 0 && c->opts.progress(c->opts.cookie, i, count) != 0)
            return leat__fail(err, LEAT_ECANCELED, "compacting was stopped");
    }
    return 0;
}

/* Opens the pack again, now that the packer holds the lock of the output: a generation published in between
 * must not be lost. */
static int open_again(compacting *c, const char *path, leat_error *err)
{
    uint64_t before = leat__pack_meta(c->pack)->footer.check;
    leat_pack_close(&c->pack);
    LEAT_TRY(leat_pack_open(&c->pack, path, NULL, err));
    if (leat__pack_meta(c->pack)->footer.check == before) return 0;
    return leat__fail(err, LEAT_ESTATE, "%s: was changed by another process; compact it again", path);
}

/* Opens the packer of the output. */
static int open_output(compacting *c, const char *path, const char *source, leat_error *err)
{
    leat_pack_info info;
    (void)leat_pack_info_read(c->pack, &info, sizeof info);
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    o.fields = c->pack->schema->fields;
    o.field_count = c->pack->schema->count;
    o.page_bytes = info.page_bytes;
    o.shard_bytes = c->opts.shard_bytes;
    o.provenance = source;
    o.replace = c->opts.output == NULL || c->opts.replace;
    o.no_sync = c->opts.no_sync;
    o.identity = ~UINT64_C(0); /* no later run resumes it */
    LEAT_TRY(leat_packer_open(&c->packer, c->opts.output != NULL ? c->opts.output : path, &o, err));
    return leat__journal_put_mark(&c->packer->journal, LEAT__RECORD_ONCE, err);
}

static int copy_all(compacting *c, leat_packer_stats *stats, leat_error *err)
{
    LEAT_TRY(leat_sample_open(&c->sample, c->pack, err));
    LEAT_TRY(copy_blobs(c, err));
    LEAT_TRY(copy_samples(c, err));
    return leat_packer_finish(c->packer, stats, err);
}

static int write_anew(compacting *c, const char *path, leat_packer_stats *stats, leat_error *err)
{
    char *source = leat__provenance_source(leat_pack_provenance(c->pack));
    if (source == NULL) return leat__fail_nomem(err, 0, "provenance");
    int rc = open_output(c, path, source, err);
    leat__free(source);
    if (rc == 0) rc = open_again(c, path, err);
    return rc == 0 ? copy_all(c, stats, err) : rc;
}

static int open_values(compacting *c, leat_error *err)
{
    c->values = LEAT_NEW_ARRAY(PACK, leat_pack_value, c->pack->schema->count);
    return c->values != NULL ? 0 : leat__fail_nomem(err, 0, "values");
}

/* Closes everything except the pack; removes an incomplete output. */
static void close_output(compacting *c, const char *path, int rc)
{
    bool unfinished = rc != 0 && c->packer != NULL;
    leat_sample_close(&c->sample);
    leat_packer_close(&c->packer);
    leat__free(c->values);
    if (unfinished) (void)!leat_packer_discard(c->opts.output != NULL ? c->opts.output : path, NULL);
}

int leat__pack_copy(leat_pack *pack, const leat_pack_compact_opts *opts, const char *source,
                    bool (*select)(void *cookie, uint64_t sample), void *cookie, leat_packer_stats *stats,
                    leat_error *err)
{
    compacting c = {.pack = pack, .opts = *opts, .select = select, .cookie = cookie};
    int rc = open_values(&c, err);
    if (rc == 0) rc = open_output(&c, opts->output, source, err);
    if (rc == 0) rc = copy_all(&c, stats, err);
    close_output(&c, opts->output, rc);
    return rc;
}

static bool compact_already(const compacting *c)
{
    return c->opts.output == NULL && c->opts.shard_bytes == 0 && c->pack->set == NULL;
}

int leat_pack_compact(const char *path, const leat_pack_compact_opts *opts, leat_packer_stats *stats,
                      leat_error *err)
{
    LEAT_REQUIRE(path != NULL, err);
    compacting c = {0};
    leat_packer_stats own = {0};
    if (opts != NULL) memcpy(&c.opts, opts, LEAT_MIN((size_t)opts->struct_size, sizeof c.opts));
    LEAT_TRY(leat__pack_spare_shards(c.opts.output, path, err));
    int rc = leat_pack_open(&c.pack, path, NULL, err);
    if (rc == 0) rc = open_values(&c, err);
    if (rc == 0 && compact_already(&c)) {
        const leat__footer *f = &c.pack->shards[0].index->footer;
        own = (leat_packer_stats){
            .samples = f->samples, .pages = f->pages, .shards = 1, .file_bytes = f->file_bytes};
    } else if (rc == 0) {
        rc = write_anew(&c, path, &own, err);
    }
    close_output(&c, path, rc);
    leat_pack_close(&c.pack);
    if (stats != NULL) *stats = own;
    return rc;
}
