/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a copy of a set file that names the same shards with a tag: NAME-00000-FINGERPRINT-TAG.leat. The
 * files themselves keep their names; an upload gives them the new ones.
 */
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pack/blobs.h"
#include "pack/indexer.h"
#include "pack/layout.h"
#include "pack/reader_impl.h"

char *leat__shard_tagged(const char *file, const char *tag)
{
    const size_t stem = strlen(file) - (leat__str_ends(file, ".leat") ? strlen(".leat") : 0);
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_PACK, 1u << 16);
    (void)leat__buf_append(&b, file, stem);
    if (*tag != '\0') (void)leat__buf_printf(&b, "-%s", tag);
    (void)leat__buf_puts(&b, file + stem);
    char *name = leat__buf_status(&b) == 0 ? leat__strdup(LEAT__MEM_PACK, leat__buf_str(&b)) : NULL;
    leat__buf_reset(&b);
    return name;
}

static int put_text(const char *text, size_t len, void *out)
{
    return leat__buf_append(out, text, len) == 0 ? 0 : -1;
}

/* Appends the list of shards with tagged names. */
static int put_tagged(leat__buf *out, const char *list, const char *tag, leat_error *err)
{
    json_t *root = json_loads(list, 0, NULL);
    const json_t *shards = json_object_get(root, "shards");
    bool whole = root != NULL;
    for (size_t i = 0; i < json_array_size(shards) && whole; i++) {
        json_t *entry = json_array_get(shards, i);
        const char *file = json_string_value(json_object_get(entry, "file"));
        char *name = file != NULL ? leat__shard_tagged(file, tag) : NULL;
        whole = name != NULL && json_object_set_new(entry, "file", json_string(name)) == 0;
        leat__free(name);
    }
    whole = whole && json_dump_callback(root, put_text, out, JSON_COMPACT) == 0;
    json_decref(root);
    return whole ? 0 : leat__fail_nomem(err, strlen(list), "a list of shards");
}

static int take_blobs(leat_pack *pack, leat__blobs *blobs, leat_error *err)
{
    for (uint32_t i = 0; i < leat_pack_blob_count(pack); i++) {
        const char *name = leat_pack_blob_name(pack, i);
        const void *data;
        size_t size;
        LEAT_TRY(leat_pack_blob(pack, name, &data, &size, err));
        LEAT_TRY(leat__blobs_set(blobs, name, data, size, err));
    }
    return 0;
}

static int write_set(const leat_pack *pack, const leat__blobs *blobs, const char *list, const char *to,
                     leat_error *err)
{
    const leat__footer *was = &pack->set->footer;
    leat__indexer x = {.kind = LEAT__PACK_SET,
                       .schema = pack->schema,
                       .provenance = pack->provenance,
                       .shards = list,
                       .blobs = blobs,
                       .data_end = LEAT__PACK_BLOCK,
                       .page_bytes = was->page_bytes,
                       .max_page_bytes = was->max_page_bytes,
                       .max_sample_bytes = was->max_sample_bytes};
    leat__file *file = NULL;
    leat__footer footer;
    uint8_t block[LEAT__PACK_BLOCK];
    uint64_t none;
    int rc;
    LEAT_GO(rc, out,
            leat__file_open(&file, to, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    leat__header_encode_partial(block);
    LEAT_GO(rc, out, leat__file_pwrite(file, block, sizeof block, 0, err));
    LEAT_GO(rc, out, leat__indexer_write(&x, file, &footer, &none, err));
    leat__header_encode(&footer, block);
    LEAT_GO(rc, out, leat__file_pwrite(file, block, sizeof block, 0, err));
out:
    leat__file_close(&file);
    return rc;
}

int leat__set_retag(leat_pack *set, const char *to, const char *tag, leat_error *err)
{
    leat__blobs blobs = {0};
    leat__buf tagged;
    char *list = NULL;
    int rc;
    leat__buf_init(&tagged, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    LEAT_GO(rc, out, leat__set_list(set->source, &list, err));
    LEAT_GO(rc, out, put_tagged(&tagged, list, tag, err));
    LEAT_GO(rc, out, take_blobs(set, &blobs, err));
    rc = write_set(set, &blobs, leat__buf_str(&tagged), to, err);
out:
    leat__blobs_reset(&blobs);
    leat__buf_reset(&tagged);
    leat__free(list);
    return rc;
}

int leat__pack_check(const char *path, uint64_t *check, leat_error *err)
{
    leat__index *x = NULL;
    LEAT_TRY(leat__index_open(&x, NULL, path, false, 0, err));
    *check = x->footer.check;
    leat__index_close(&x);
    return 0;
}
