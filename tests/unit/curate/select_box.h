/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs for tests of selection: rows with labels and scores, and vectors of the same
 * rows.
 */
#ifndef LEAT_TEST_SELECT_BOX_H
#define LEAT_TEST_SELECT_BOX_H

#include "leat_test.h"

#include "ingest/sandbox.h"

#include <math.h>

#include <leat/pack.h>

#include "base/rng.h"

static inline void row_key(char *key, size_t size, uint32_t row)
{
    snprintf(key, size, "f%u/%05u.jpg", row % 3, row);
}

static inline void put_pack(const char *path, const leat_field *fields, uint32_t field_count, uint32_t rows,
                            void (*fill)(uint32_t row, leat_pack_value *v, void *cookie), void *cookie)
{
    leat_packer *p = NULL;
    leat_packer_stats st;
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_error err = {0};
    o.fields = fields;
    o.field_count = field_count;
    o.no_sync = 1;
    o.replace = 1;
    if (leat_packer_open(&p, path, &o, &err) != 0) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < rows; i++) {
        leat_pack_value v[8];
        char key[64];
        memset(v, 0, sizeof v);
        row_key(key, sizeof key, i);
        fill(i, v, cookie);
        const leat_pack_sample s = {.key = key, .key_size = strlen(key), .values = v};
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    if (field_count == 2) { /* label and score: class names */
        static const char *const names[] = {"cat", "dog", "owl", "ant"};
        assert_ok(leat_packer_classes(p, 0, names, 4, NULL));
    }
    assert_ok(leat_packer_finish(p, &st, NULL));
    leat_packer_close(&p);
}

static inline int64_t label_of(uint32_t row)
{
    return row % 7 == 0 ? 3 : row % 5 == 0 ? 2 : row % 2;
}

static inline double score_of(uint32_t row)
{
    return (double)(row * 37 % 101) / 10;
}

static inline void fill_row(uint32_t row, leat_pack_value *v, void *cookie)
{
    (void)cookie;
    v[0].i = label_of(row);
    v[1].f = score_of(row);
}

/* True when a strategy of the configuration takes vectors: others refuse them. */
static inline bool uses_vectors(const char *config)
{
    return config &&
           (strstr(config, "diversity") || strstr(config, "similarity") || strstr(config, "typicality"));
}

/* "label" (int, four classes) and "score" (float). */
static inline const char *put_rows(const char *name, uint32_t rows)
{
    static const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                        {.name = "score", .type = LEAT_FIELD_FLOAT}};
    put_pack(in_box(name), fields, 2, rows, fill_row, NULL);
    return in_box(name);
}

typedef struct vector_kind {
    uint32_t dim, clusters;
    uint64_t seed;
    float spread;
} vector_kind;

/* A point near one of the clusters' centres. */
static inline void vector_of(const vector_kind *k, uint32_t row, float *to)
{
    leat__rng centre, own;
    leat__rng_init(&centre, k->seed, 1, row % k->clusters, 0);
    leat__rng_init(&own, k->seed, 2, row, 0);
    for (uint32_t i = 0; i < k->dim; i++)
        to[i] = (float)(leat__rng_normal(&centre) + (double)k->spread * leat__rng_normal(&own));
}

static inline void fill_vector(uint32_t row, leat_pack_value *v, void *cookie)
{
    static float vector[512];
    const vector_kind *k = cookie;
    vector_of(k, row, vector);
    v[0].data = vector;
    v[0].size = k->dim * sizeof(float);
}

static inline const char *put_vectors(const char *name, uint32_t rows, vector_kind kind)
{
    const leat_field field = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {kind.dim}};
    put_pack(in_box(name), &field, 1, rows, fill_vector, &kind);
    return in_box(name);
}

#endif
