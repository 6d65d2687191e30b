/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache of a loader: see disk_pages.h.
 */
#include "loader/disk_pages.h"

#include "base/mem.h"
#include "io/file.h"
#include "loader/setup.h"
#include "pack/reader.h"

int leat__loader_disk(leat_loader *l, leat_error *err)
{
    leat__run_env *env = &l->env;
    leat__disk_opts o = {.folder = l->opts.disk_cache,
                         .id = l->info.fingerprint,
                         .pages = l->info.pages,
                         .limit = l->opts.disk_cache_bytes,
                         .unwanted = leat__disk_unwanted,
                         .cookie = env};
    uint64_t at = 0;

    if (o.folder == NULL) return 0;
    if (!env->remote)
        return leat__fail(err, LEAT_EINVAL, "`cache`: disk:DIR is for remote packs, and %s is local",
                          leat_pack_path(l->pack));
    if (o.folder[0] == '\0') return leat__fail(err, LEAT_EINVAL, "`cache`: disk: needs a folder (disk:DIR)");
    env->disk_base = LEAT_NEW_ARRAY(LOADER, uint64_t, l->info.shards);
    if (env->disk_base == NULL) return leat__fail_nomem(err, l->info.shards * 8, "the disk cache");
    for (uint32_t i = 0; i < l->info.shards; i++) {
        env->disk_base[i] = at;
        at += leat__file_size_at_open(leat__pack_file(l->pack, i));
    }
    return leat__disk_open(&env->disk, &o, err);
}

/* Lists the pages that the subset needs; false, and all pages count as needed, when out of memory or when the
 * index cannot be read. */
static bool list_wanted(leat__run_env *env)
{
    leat_pack_info info;
    leat_pack_row row;
    if (leat_pack_info_read(env->pack, &info, sizeof info) != 0) return false;
    uint8_t *bits = LEAT_NEW_ARRAY(LOADER, uint8_t, info.pages / 8 + 1);
    bool all = bits != NULL;
    for (uint64_t i = 0; all && i < env->universe; i++) {
        all = leat_pack_rows(env->pack, env->indices[i], 1, &row, NULL) == 0;
        if (all) bits[row.page / 8] |= (uint8_t)(1u << row.page % 8);
    }
    if (all) env->disk_wanted = bits;
    else leat__free(bits);
    return all;
}

bool leat__disk_unwanted(void *cookie, uint64_t page, uint64_t *offset, uint64_t *len)
{
    leat__run_env *env = cookie;
    leat_pack_page info;
    if (env->indices == NULL) return false; /* the whole pack is read */
    if (env->disk_wanted == NULL && !list_wanted(env)) return false;
    if (env->disk_wanted[page / 8] & 1u << page % 8) return false;
    if (leat_pack_page_info(env->pack, page, &info, NULL) != 0) return false;
    *offset = env->disk_base[info.shard] + info.offset;
    *len = info.bytes;
    return true;
}
