/* SPDX-License-Identifier: Apache-2.0
 *
 * See settings.h.
 */
#include "ingest/settings.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/num.h"
#include "ingest/skipped_list.h"
#include "io/url.h"
#include "pack/selection.h"

static void describe_settings(const leat_ingest_opts *o, const leat__encode_plan *plan, bool tar,
                              leat__json *j)
{
    static const char *const modes[] = {"auto", "keep", "tiled", "raw", "mix"};
    leat__json_kstr(j, "images", modes[plan->images]);
    if (plan->images == LEAT_IMAGES_MIX) leat__json_kdouble(j, "mix_raw", plan->mix_raw);
    if (plan->images == LEAT_IMAGES_TILED && o->fast_tiles) leat__json_kstr(j, "tiles", "fast");
    if (o->max_side) leat__json_ku64(j, "max_side", o->max_side);
    if (o->quality) leat__json_ku64(j, "quality", o->quality);
    if (o->frames) leat__json_kstr(j, "frames", "all");
    leat__json_kbool(j, "checked", !o->trust);
    if (o->shuffle) leat__json_ku64(j, "shuffle", o->shuffle_seed);
    if (o->where) leat__json_kstr(j, "where", o->where);
    if (o->members) leat__json_kstr(j, "members", o->members);
    if (o->defaults && tar) leat__json_kstr(j, "defaults", o->defaults);
    if (o->infer) leat__json_ku64(j, "infer", o->infer);
}

int leat__ingest_provenance(const leat_ingest_opts *o, const leat__encode_plan *plan,
                            const leat__source *source, leat__buf *out, leat_error *err)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", source->ops->kind);
    leat__json_key(&j, "names");
    leat__json_array(&j);
    for (uint32_t i = 0; i < o->source_count; i++) {
        size_t len;
        const char *name = leat__path_name(o->sources[i], &len);
        leat__json_strn(&j, name, len);
    }
    leat__json_end(&j);
    leat__json_key(&j, "settings");
    leat__json_object(&j);
    describe_settings(o, plan, strcmp(source->ops->kind, "tar") == 0, &j);
    leat__json_end(&j);
    leat__json_end(&j);
    return leat__buf_status(out) == 0 ? 0 : leat__fail_nomem(err, 0, "provenance");
}

uint64_t leat__ingest_identity(const leat_ingest_opts *o, const leat__buf *provenance)
{
    uint64_t h = leat__hash64(provenance->data, provenance->len, 0);
    for (uint32_t i = 0; i < o->source_count; i++) h = leat__path_hash(o->sources[i], h);
    if (o->keys) h = leat__path_hash(o->keys, h);
    if (o->select) h = leat__path_hash(o->select, h);
    uint64_t numbers[] = {o->max_pixels,       o->max_out_bytes, o->max_scans,   o->max_work,
                          o->max_sample_bytes, o->merge,         o->shard_bytes, o->page_bytes};
    return leat__hash64(numbers, sizeof numbers, h);
}

int leat__ingest_spare(const leat_ingest_opts *o, leat_error *err)
{
    const char *const results[] = {o->output, o->report};
    LEAT_TRY(leat__pack_spare_result(o->output, o->report, err));
    for (size_t r = 0; r < LEAT_COUNT(results); r++) {
        for (uint32_t i = 0; i < o->source_count; i++)
            LEAT_TRY(leat__pack_spare_input(results[r], o->sources[i], err));
        LEAT_TRY(leat__pack_spare_input(results[r], o->keys, err));
        LEAT_TRY(leat__pack_spare_input(results[r], o->select, err));
    }
    return leat__skipped_list_check(o->report, o->replace != 0, o->resume != 0, err);
}
