/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_ingest_checked: packs images and checks each one as it is stored. The facts go to CHECK.scores in
 * the order of the pack. When the pack is complete, limits are adapted and the columns are written as in
 * leat_check_images.
 *
 * Facts depend only on the stored bytes. A resumed run does not see the images packed before, so it
 * checks the whole pack again, with the same result. If a run was killed after the pack got its name,
 * the files left beside the columns show that.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "curate/image_check.h"
#include "curate/image_columns.h"
#include "curate/image_spool.h"
#include "ingest/inspect.h"
#include "ingest/skipped_list.h"
#include "io/file.h"
#include "io/result_file.h"
#include "io/url.h"
#include "pack/kind.h"
#include "pack/selection.h"

typedef struct packing {
    const leat_ingest_opts *opts;
    leat_check_opts check;
    const char *pack; /* the source of the check */
    leat__image_spool *spool;
    char *scores; /* path of the scores */
    leat__check_counts counts;
} packing;

/* ---- the inspector ---- */

static int open_looker(void *cookie, void **looker, leat_error *err)
{
    const packing *p = cookie;
    leat__image_looker *l = NULL;
    const leat__decode_limits limits = {.max_pixels = p->opts->max_pixels};
    LEAT_TRY(leat__image_looker_open(&l, &limits, err));
    *looker = l;
    return 0;
}

static void close_looker(void *cookie, void *looker)
{
    leat__image_looker *l = looker;
    (void)cookie;
    leat__image_looker_close(&l);
}

static int take_coefs(void *cookie, void *looker, const leat__jpeg_coefs *coefs, leat_error *err)
{
    (void)cookie;
    return leat__image_prepare(looker, coefs, err);
}

static int look(void *cookie, void *looker, const char *key, const leat_pack_image *image,
                const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *found,
                leat_error *err)
{
    leat__image_facts facts;
    char text[LEAT__KIND_TEXT];
    (void)cookie;
    memset(&facts, 0, sizeof facts);
    if (!data) leat__image_facts_fail(&facts, LEAT__VERDICT_ABSENT, "no image");
    else if (leat__image_kind_of(image) != 0)
        return leat__fail(err, LEAT_EFORMAT, "%s: %s; only 8-bit images of 1, 3 or 4 channels can be checked",
                          key, leat__kind_text(leat__image_kind_of(image), text));
    else LEAT_TRY(leat__image_facts_make(looker, key, data, len, tables, &facts, err));
    return leat__buf_append(found, &facts, sizeof facts) == 0
               ? 0
               : leat__fail_nomem(err, sizeof facts, "facts about an image");
}

static int take(void *cookie, const char *key, size_t key_size, const void *found, leat_error *err)
{
    packing *p = cookie;
    leat__image_facts facts;
    memcpy(&facts, found, sizeof facts); /* not aligned */
    leat__check_count(&p->counts, &facts);
    return leat__image_spool_put(p->spool, key, key_size, &facts, &p->counts, err);
}

/* ---- the run ---- */

static char *scores_of(const char *output)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    if (output) leat__buf_printf(&path, "%s.scores", output);
    char *made = output && leat__buf_status(&path) == 0 ? leat__buf_take(&path, NULL) : NULL;
    leat__buf_reset(&path);
    return made;
}

static int check_opts(const packing *p, leat_error *err)
{
    const leat_ingest_opts *o = p->opts;
    const leat_check_opts *c = &p->check;
    bool exists = false;
    if (!c->output || !c->output[0]) return leat__fail(err, LEAT_EINVAL, "no output of the check was named");
    if (leat__path_remote(c->output))
        return leat__fail(err, LEAT_EINVAL, "%s: columns are written to a local file", c->output);
    if (o->append || o->merge)
        return leat__fail(err, LEAT_EINVAL, "`check`: has no effect on a pack that is appended to or merged");
    LEAT_TRY(leat__pack_spare_result(o->output, c->output, err));
    LEAT_TRY(leat__pack_spare_result(o->report, c->output, err));
    for (uint32_t i = 0; i < o->source_count; i++)
        LEAT_TRY(leat__pack_spare_input(c->output, o->sources[i], err));
    LEAT_TRY(leat__pack_spare_input(c->output, o->select, err));
    LEAT_TRY(leat__pack_spare_input(c->output, o->keys, err));
    LEAT_TRY(leat__pack_spare_result(o->output, c->csv, err));
    LEAT_TRY(leat__pack_spare_result(o->report, c->csv, err));
    LEAT_TRY(leat__pack_spare_result(c->output, c->csv, err));
    LEAT_TRY(leat__result_file_check(c->csv, LEAT__CHECK_CSV, o->replace != 0, false, err));
    LEAT_TRY(leat__path_can_make(c->output, err));
    LEAT_TRY(leat__path_exists(c->output, &exists, err));
    return exists ? leat__file_only_pack(c->output, o->replace != 0, err) : 0;
}

static int with_suffix(const char *path, const char *suffix, bool *exists, leat_error *err)
{
    leat__buf name;
    leat__buf_init(&name, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&name, "%s%s", path, suffix);
    int rc = leat__buf_status(&name) == 0 ? leat__path_exists(leat__buf_str(&name), exists, err)
                                          : leat__fail_nomem(err, strlen(path), "a path");
    leat__buf_reset(&name);
    return rc;
}

/* Sets *packed when a killed run finished the pack but not its columns. */
static int is_packed(const packing *p, bool *packed, leat_error *err)
{
    static const char *const left[] = {".scores", ".journal"};
    bool exists = false;
    *packed = false;
    if (!p->opts->resume || leat__path_remote(p->opts->output)) return 0;
    if (p->opts->where && p->opts->replace) return 0; /* only packing counts the samples it filters */
    LEAT_TRY(leat__path_exists(p->opts->output, &exists, err));
    if (!exists) return 0;
    LEAT_TRY(with_suffix(p->opts->output, ".journal", &exists, err));
    if (exists) return 0; /* the resumed run will replace that pack */
    for (size_t i = 0; i < LEAT_COUNT(left) && !*packed; i++)
        LEAT_TRY(with_suffix(p->check.output, left[i], packed, err));
    return 0;
}

static int count_packed(const packing *p, leat_ingest_stats *st, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info = {.struct_size = sizeof info};
    LEAT_TRY(leat_pack_open(&pack, p->opts->output, NULL, err));
    (void)leat_pack_info_read(pack, &info, sizeof info);
    st->samples = st->resumed = info.samples;
    st->bytes_out = info.bytes;
    st->pages = info.pages;
    st->shards = info.shards;
    leat_pack_close(&pack);
    return leat__skipped_list_recall(p->opts->report, &st->skipped, err);
}

static int pack_images(packing *p, leat_ingest_stats *st, leat_error *err)
{
    const leat__inspector x = {.cookie = p,
                               .open = open_looker,
                               .close = close_looker,
                               .bytes = leat__image_look_bytes,
                               .coefs = take_coefs,
                               .look = look,
                               .take = take};
    LEAT_TRY(leat__image_spool_open(&p->spool, p->scores, 0, &p->counts, err));
    LEAT_TRY(leat__ingest_inspected(p->opts, &x, st, err));
    return leat__image_spool_finish(p->spool, err);
}

static int run(packing *p, leat_ingest_stats *st, leat_check_stats *found, leat_error *err)
{
    bool packed = false;
    LEAT_TRY(check_opts(p, err));
    LEAT_TRY(is_packed(p, &packed, err));
    LEAT_TRY(packed ? count_packed(p, st, err) : pack_images(p, st, err));
    if (st->resumed == 0) return leat__check_scored(&p->check, p->spool, &p->counts, found, err);
    leat__image_spool_close(&p->spool);
    return leat_check_images(&p->check, found, err);
}

int leat_ingest_checked(const leat_ingest_opts *opts, const leat_check_opts *check, leat_ingest_stats *stats,
                        leat_check_stats *found, leat_error *err)
{
    leat_ingest_stats own = {.struct_size = sizeof own};
    leat_ingest_opts o;
    packing p = {.opts = &o};
    if (!opts || opts->struct_size < sizeof o.struct_size || !check ||
        check->struct_size < sizeof check->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&o, 0, sizeof o);
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    memcpy(&p.check, check, LEAT_MIN(check->struct_size, sizeof p.check));
    if (p.check.source_count > 0)
        return leat__fail(err, LEAT_EINVAL, "`check`: takes no sources: it checks the pack that is written");
    p.pack = o.output;
    p.check.struct_size = sizeof p.check;
    p.check.sources = &p.pack;
    p.check.source_count = 1;
    p.check.threads = o.threads;
    p.check.memory = o.memory;
    p.check.max_pixels = o.max_pixels;
    p.check.replace = o.replace;
    p.check.no_sync = o.no_sync;
    p.check.log = o.log;
    p.check.progress = NULL;
    p.scores = scores_of(p.check.output);
    if (p.check.output && !p.scores) return leat__fail_nomem(err, strlen(p.check.output), "a path");
    int rc = run(&p, &own, found, err);
    leat__image_spool_close(&p.spool);
    leat__free(p.scores);
    if (stats) (void)!leat__sized_copy(stats, &own, sizeof own);
    return rc;
}
