/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of this module: a scratch folder, a schema with every type of field, and
 * samples whose content is a pure function of their number, so that any reader can check them.
 */
#ifndef PACKTEST_H
#define PACKTEST_H

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <leat/pack.h>

#include "base/mem.h"
#include "base/rng.h"

#define PT_FIELDS 9
enum { PT_IMAGE, PT_LABEL, PT_WEIGHT, PT_MASK, PT_TEXT, PT_RAW, PT_VEC, PT_BOXES, PT_META };

static const leat_field pt_fields[PT_FIELDS] = {
    {.name = "image", .type = LEAT_FIELD_IMAGE},
    {.name = "label", .type = LEAT_FIELD_INT},
    {.name = "weight", .type = LEAT_FIELD_FLOAT},
    {.name = "mask", .type = LEAT_FIELD_IMAGE},
    {.name = "caption", .type = LEAT_FIELD_TEXT},
    {.name = "raw bytes", .type = LEAT_FIELD_BYTES},
    {.name = "vec", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 2, .shape = {2, 3}},
    {.name = "boxes", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_U16, .ndim = 2},
    {.name = "meta", .type = LEAT_FIELD_JSON},
};

/* One sample and its memory. */
typedef struct pt_sample {
    leat_pack_sample sample;
    leat_pack_value values[PT_FIELDS];
    char key[64], text[64], json[64];
    uint8_t *image, *mask, *raw;
    uint16_t boxes[40];
    float vec[6];
} pt_sample;

static inline void pt_fill(uint8_t *p, size_t n, uint64_t seed)
{
    leat__rng r;
    leat__rng_init(&r, seed, 0, n, 7);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)leat__rng_u32(&r);
}

/* Sample number i: sizes vary; some fields are absent or empty; `scale` sets image sizes. */
static inline void pt_make(pt_sample *s, uint64_t i, size_t scale)
{
    memset(s, 0, sizeof *s);
    leat__rng r;
    leat__rng_init(&r, 42, 0, i, 1);
    size_t image = 1 + leat__rng_below(&r, 2 * scale), mask = leat__rng_below(&r, scale / 4 + 1);
    size_t raw = i % 3 == 0 ? 0 : leat__rng_below(&r, 100);
    if (i % 97 == 96) image = scale * 40; /* occasionally larger than a page */
    s->image = malloc(image);
    s->mask = malloc(mask + 1);
    s->raw = malloc(raw + 1);
    pt_fill(s->image, image, i);
    pt_fill(s->mask, mask, i + 1);
    pt_fill(s->raw, raw, i + 2);
    snprintf(s->key, sizeof s->key, "class%llu/img_%08llu.jpg", (unsigned long long)(i % 10),
             (unsigned long long)i);
    snprintf(s->text, sizeof s->text, "a caption – %llu", (unsigned long long)i);
    snprintf(s->json, sizeof s->json, "{\"id\": %llu}", (unsigned long long)i);
    for (int k = 0; k < 6; k++) s->vec[k] = (float)i + (float)k / 8;
    uint64_t boxes = i % 11;
    for (uint64_t k = 0; k < boxes * 4; k++) s->boxes[k] = (uint16_t)(i * 3 + k);

    leat_pack_value *v = s->values;
    v[PT_IMAGE] = (leat_pack_value){.data = s->image,
                                    .size = image,
                                    .image = {(uint32_t)(i % 640 + 1), (uint32_t)(i % 480 + 1), 1, 3,
                                              (uint8_t)(i % 8 + 1), 0, (uint32_t)(i * 7)}};
    if (i % 6 == 3 || i % 97 == 96) { /* entry points: the format does not parse them */
        v[PT_IMAGE].image.flags = LEAT_PACK_IMAGE_ENTRIES;
        v[PT_IMAGE].entries = s->text;
        v[PT_IMAGE].entries_size = 1 + i % 13;
    }
    v[PT_LABEL].i = (int64_t)(i % 10) - (i % 5 == 0 ? 100 : 0);
    v[PT_WEIGHT].f = (double)i / 3.0;
    v[PT_MASK] = (leat_pack_value){
        .data = s->mask, .size = mask, .absent = i % 4 == 1, .image = {8, 8, 2, 1, 1, 0, 0}};
    v[PT_TEXT] = (leat_pack_value){.data = s->text, .size = strlen(s->text)};
    v[PT_RAW] = (leat_pack_value){.data = s->raw, .size = raw, .absent = i % 5 == 2};
    v[PT_VEC] = (leat_pack_value){.data = s->vec, .size = sizeof s->vec};
    v[PT_BOXES] = (leat_pack_value){.data = s->boxes, .size = boxes * 8, .shape = {boxes, 4}};
    v[PT_META] = (leat_pack_value){.data = s->json, .size = strlen(s->json)};
    s->sample = (leat_pack_sample){
        .key = s->key, .key_size = strlen(s->key), .values = v, .marks = {i + 1, i / 2, 0, 77}};
}

static inline void pt_free(pt_sample *s)
{
    free(s->image);
    free(s->mask);
    free(s->raw);
}

static inline leat_packer_opts pt_opts(void)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    o.fields = pt_fields;
    o.field_count = PT_FIELDS;
    o.page_bytes = 65536;
    o.provenance = "{\"kind\": \"test\"}";
    o.identity = 1234;
    o.no_sync = 1;
    return o;
}

/* A blob that is worth compressing. */
static const char pt_words[] = "water runs down the leat, down the leat to the mill, to the mill"
                               " wheel, and the wheel turns the stone, the stone grinds the corn,"
                               " the corn is flour, the flour is bread, and water runs down the leat";

static const char *const pt_classes[] = {"zero", "one", "two \"quoted\"", "drei", "四"};

static inline int pt_blobs(leat_packer *p, leat_error *err)
{
    int rc = leat_packer_blob(p, "tile-tables", "some tables", 11, err);
    if (rc == 0) rc = leat_packer_blob(p, "words", pt_words, sizeof pt_words, err);
    return rc == 0 ? leat_packer_classes(p, PT_LABEL, pt_classes, 5, err) : rc;
}

/* Appends samples first … last-1; returns the first failure. */
static inline int pt_append(leat_packer *p, uint64_t first, uint64_t last, size_t scale, leat_error *err)
{
    int rc = 0;
    for (uint64_t i = first; i < last && rc == 0; i++) {
        pt_sample s;
        pt_make(&s, i, scale);
        rc = leat_packer_append(p, &s.sample, err);
        pt_free(&s);
    }
    return rc;
}

/* Writes a pack, from open to finish. */
static inline int pt_write(const char *path, const leat_packer_opts *o, uint64_t n, size_t scale,
                           leat_packer_stats *stats, leat_error *err)
{
    leat_packer *p = NULL;
    int rc = leat_packer_open(&p, path, o, err);
    uint64_t from = rc == 0 ? leat_packer_resumed(p, NULL) : 0;
    if (rc == 0) rc = pt_blobs(p, err);
    if (rc == 0) rc = pt_append(p, from, n, scale, err);
    if (rc == 0) rc = leat_packer_finish(p, stats, err);
    leat_packer_close(&p);
    return rc;
}

static inline char *pt_dir(void) /* a fresh folder; freed and removed by pt_rmdir */
{
    const char *base = getenv("TMPDIR");
    char *dir = malloc(512);
    snprintf(dir, 512, "%s/leat-pack-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static inline void pt_rmdir(char *dir)
{
    char cmd[600];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    assert_int_equal(system(cmd), 0);
    free(dir);
}

static inline char *pt_path(const char *dir, const char *name)
{
    static char paths[64][600];
    static int next;
    char *p = paths[next++ % 64];
    snprintf(p, 600, "%s/%s", dir, name);
    return p;
}

/* Returns the path of shard i of the set STEM.leat, for any fingerprint; a name without a file when there is
 * none. */
static inline char *pt_shard(const char *dir, const char *stem, unsigned i)
{
    char name[64];
    glob_t found;
    snprintf(name, sizeof name, "%s-%05u-????????????????.leat", stem, i);
    char *path = pt_path(dir, name);
    if (glob(path, 0, NULL, &found) == 0) {
        snprintf(path, 600, "%s", found.gl_pathv[0]);
        globfree(&found);
    }
    return path;
}

static inline uint8_t *pt_load(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*size + 1);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

static inline void pt_store(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

/* Compares one field of a sample that was read with the result of pt_make. */
static inline void pt_same(const leat_sample *s, uint32_t field, const leat_pack_value *want)
{
    leat_view v;
    leat_error err;
    assert_int_equal(leat_sample_field(s, field, &v, &err), 0);
    if (field == PT_LABEL) {
        assert_int_equal(*(const int64_t *)v.data, want->i);
    } else if (field == PT_WEIGHT) {
        assert_true(*(const double *)v.data == want->f);
    } else if (want->absent) {
        assert_null(v.data);
    } else {
        assert_non_null(v.data);
        assert_int_equal(v.size, want->size);
        assert_memory_equal(v.data, want->data, want->size);
        assert_int_equal((uintptr_t)v.data % 16, 0);
        if (v.image.flags & LEAT_PACK_IMAGE_ENTRIES) { /* not in packs of version 1.0 */
            assert_int_equal(v.entries_size, want->entries_size);
            assert_memory_equal(v.entries, want->entries, want->entries_size);
        }
        for (int i = 0; i < LEAT_PACK_PADDING; i++)
            (void)((const volatile uint8_t *)v.data)[v.size + (size_t)i]; /* readable */
    }
}

/* Checks every sample of a pack against pt_make. */
static inline void pt_check(const char *path, uint64_t n, size_t scale)
{
    leat_pack *p = NULL;
    leat_sample *s = NULL;
    leat_error err;
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_count(p), n);
    assert_int_equal(leat_sample_open(&s, p, &err), 0);
    for (uint64_t i = 0; i < n; i++) {
        pt_sample want;
        uint64_t found;
        pt_make(&want, i, scale);
        assert_int_equal(leat_sample_read(s, i, &err), 0);
        assert_string_equal(leat_sample_key(s, NULL), want.key);
        for (uint32_t f = 0; f < PT_FIELDS; f++) pt_same(s, f, &want.values[f]);
        assert_int_equal(leat_pack_find(p, want.key, strlen(want.key), &found, &err), 0);
        assert_int_equal(found, i);
        pt_free(&want);
    }
    leat_sample_close(&s);
    leat_pack_close(&p);
}

#endif
