/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's side of the comparison with the oracle: writes packs with known samples, and
 * dumps a pack as JSON lines in the format of leatpack.py.
 *
 *   pack_tool write PATH SAMPLES SCALE SHARD_BYTES
 *   pack_tool append PATH FIRST LAST SCALE    also drops sample FIRST - 1
 *   pack_tool dump PATH
 */
#include "../unit/pack/packtest.h"

#include "base/hash.h"
#include "base/json.h"

static void put_bytes(leat__json *j, const void *data, size_t size)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)leat__hash64(data, size, 0));
    leat__json_ku64(j, "size", size);
    leat__json_kstr(j, "xxh3", hash);
}

static void put_value(leat__json *j, const leat_field *f, const leat_view *v)
{
    if (v->data == NULL) {
        leat__json_null(j);
    } else if (f->type == LEAT_FIELD_INT) {
        leat__json_i64(j, *(const int64_t *)v->data);
    } else if (f->type == LEAT_FIELD_FLOAT) {
        leat__json_double(j, *(const double *)v->data);
    } else {
        leat__json_object(j);
        if (f->type == LEAT_FIELD_IMAGE) {
            leat__json_ku64(j, "width", v->image.width);
            leat__json_ku64(j, "height", v->image.height);
            leat__json_ku64(j, "codec", v->image.codec);
            leat__json_ku64(j, "channels", v->image.channels);
            leat__json_ku64(j, "orientation", v->image.orientation);
            leat__json_ku64(j, "flags", v->image.flags);
            leat__json_ku64(j, "cost", v->image.cost);
            if (v->entries != NULL) {
                leat__json_key(j, "entries");
                leat__json_object(j);
                put_bytes(j, v->entries, v->entries_size);
                leat__json_end(j);
            }
            leat__json_key(j, "data");
            leat__json_object(j);
        }
        if (f->type == LEAT_FIELD_ARRAY || f->type == LEAT_FIELD_RAGGED) {
            leat__json_key(j, "shape");
            leat__json_array(j);
            for (uint32_t d = 0; d < v->ndim; d++) leat__json_u64(j, v->shape[d]);
            leat__json_end(j);
        }
        put_bytes(j, v->data, v->size);
        if (f->type == LEAT_FIELD_IMAGE) leat__json_end(j);
        leat__json_end(j);
    }
}

static int put_head(leat_pack *p, leat__json *j, leat_error *err)
{
    leat_pack_info info;
    char hash[17];
    if (leat_pack_info_read(p, &info, sizeof info) != 0) return LEAT_EINVAL;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)info.fingerprint);
    leat__json_object(j);
    leat__json_ku64(j, "samples", info.samples);
    leat__json_ku64(j, "shards", info.shards);
    leat__json_kstr(j, "fingerprint", hash);
    leat__json_key(j, "blobs");
    leat__json_object(j);
    for (uint32_t i = 0; i < leat_pack_blob_count(p); i++) {
        const void *data;
        size_t size;
        int rc = leat_pack_blob(p, leat_pack_blob_name(p, i), &data, &size, err);
        if (rc != 0) return rc;
        leat__json_key(j, leat_pack_blob_name(p, i));
        leat__json_object(j);
        put_bytes(j, data, size);
        leat__json_end(j);
    }
    leat__json_end(j);
    leat__json_end(j);
    return 0;
}

static int put_sample(leat_pack *p, leat_sample *s, leat__json *j, leat_error *err)
{
    leat__json_object(j);
    leat__json_kstr(j, "key", leat_sample_key(s, NULL));
    leat__json_key(j, "values");
    leat__json_object(j);
    for (uint32_t f = 0; f < leat_pack_field_count(p); f++) {
        leat_view v;
        int rc = leat_sample_field(s, f, &v, err);
        if (rc != 0) return rc;
        leat__json_key(j, leat_pack_field(p, f)->name);
        put_value(j, leat_pack_field(p, f), &v);
    }
    leat__json_end(j);
    leat__json_end(j);
    return 0;
}

static int dump(const char *path, leat_error *err)
{
    leat_pack *p = NULL;
    leat_sample *s = NULL;
    leat__buf line;
    leat__buf_init(&line, LEAT__MEM_MISC, 1u << 30);
    int rc = leat_pack_open(&p, path, NULL, err);
    if (rc == 0) rc = leat_sample_open(&s, p, err);
    for (uint64_t i = 0; rc == 0 && i <= leat_pack_count(p); i++) {
        leat__json j;
        leat__buf_clear(&line);
        leat__json_init(&j, &line, 0);
        if (i == 0) rc = put_head(p, &j, err);
        else if ((rc = leat_sample_read(s, i - 1, err)) == 0) rc = put_sample(p, s, &j, err);
        if (rc == 0) puts(leat__buf_str(&line));
    }
    leat__buf_reset(&line);
    leat_sample_close(&s);
    leat_pack_close(&p);
    return rc;
}

static int append(const char *path, uint64_t first, uint64_t last, size_t scale, leat_error *err)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    o.append = 1;
    o.no_sync = 1;
    int rc = leat_packer_open(&p, path, &o, err);
    if (rc == 0 && first > 0) {
        pt_sample s;
        pt_make(&s, first - 1, scale);
        rc = leat_packer_drop(p, s.key, strlen(s.key), NULL, err);
        pt_free(&s);
    }
    if (rc == 0) rc = pt_append(p, first, last, scale, err);
    if (rc == 0) rc = leat_packer_finish(p, NULL, err);
    leat_packer_close(&p);
    return rc;
}

int main(int argc, char **argv)
{
    leat_error err;
    int rc = LEAT_EINVAL;
    snprintf(err.message, sizeof err.message, "usage: pack_tool write|append|dump PATH …");
    if (argc == 6 && strcmp(argv[1], "write") == 0) {
        leat_packer_opts o = pt_opts();
        o.shard_bytes = (uint64_t)atoll(argv[5]);
        rc = pt_write(argv[2], &o, (uint64_t)atoll(argv[3]), (size_t)atoll(argv[4]), NULL, &err);
    } else if (argc == 6 && strcmp(argv[1], "append") == 0) {
        rc =
            append(argv[2], (uint64_t)atoll(argv[3]), (uint64_t)atoll(argv[4]), (size_t)atoll(argv[5]), &err);
    } else if (argc == 3 && strcmp(argv[1], "dump") == 0) {
        rc = dump(argv[2], &err);
    }
    if (rc != 0) fprintf(stderr, "%s\n", err.message);
    return rc != 0;
}
