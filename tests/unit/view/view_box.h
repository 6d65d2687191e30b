/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack to look at: images with a label, a score, a caption and a vector; and columns beside it.
 */
#ifndef LEAT_TEST_VIEW_BOX_H
#define LEAT_TEST_VIEW_BOX_H

#include "curate/image_box.h"

#include <leat/pack.h>

#include "view/view_data.h"

#define BOX_PACK "box.leat"
#define BOX_COLUMNS "columns.leat"
#define BOX_ROWS 20u
#define BOX_DIM 3u

/* Row i: key "k<19-i>", label i % 4, score 10 - i (NaN in row 7), caption, vector. Row 5 has no image.
 */
static inline void box_pack(const char *path)
{
    static const leat_field fields[] = {
        {.name = "image", .type = LEAT_FIELD_IMAGE},
        {.name = "label", .type = LEAT_FIELD_INT},
        {.name = "score", .type = LEAT_FIELD_FLOAT},
        {.name = "caption", .type = LEAT_FIELD_TEXT},
        {.name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {BOX_DIM}}};
    static const char *const classes[] = {"cat", "dog", "<b>eel</b>", "fox"};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer = NULL;
    leat_packer_stats stats;
    o.fields = fields;
    o.field_count = LEAT_COUNT(fields);
    o.no_sync = 1;
    o.replace = 1;
    assert_int_equal(leat_packer_open(&packer, path, &o, NULL), 0);
    assert_int_equal(leat_packer_classes(packer, 1, classes, 4, NULL), 0);
    for (uint32_t i = 0; i < BOX_ROWS; i++) {
        scene s = plain_scene;
        s.seed = i + 1;
        leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 64 + i, 48, 90);
        char key[32], caption[64];
        const float vector[BOX_DIM] = {(float)i, 1, i == 9 ? NAN : 0.5f};
        snprintf(key, sizeof key, "k%02u", BOX_ROWS - 1 - i);
        snprintf(caption, sizeof caption, i % 2 ? "An ODD one" : "even %u", i / 4);
        const leat_pack_value v[] = {
            {.data = i == 5 ? NULL : jpeg.data,
             .size = i == 5 ? 0 : jpeg.len,
             .absent = i == 5,
             .image =
                 {.width = 64 + i, .height = 48, .codec = 1, .channels = 3, .orientation = i == 3 ? 6 : 1}},
            {.i = i % 4},
            {.f = i == 7 ? NAN : 10.0 - i},
            {.data = caption, .size = strlen(caption)},
            {.data = vector, .size = sizeof vector}};
        const leat_pack_sample sample = {.key = key, .key_size = strlen(key), .values = v};
        assert_int_equal(leat_packer_append(packer, &sample, NULL), 0);
        leat__buf_reset(&jpeg);
    }
    assert_int_equal(leat_packer_finish(packer, &stats, NULL), 0);
    leat_packer_close(&packer);
}

static inline uint64_t box_fingerprint(const char *path)
{
    leat_pack *pack = NULL;
    leat_pack_info info = {.struct_size = sizeof info};
    assert_int_equal(leat_pack_open(&pack, path, NULL, NULL), 0);
    assert_int_equal(leat_pack_info_read(pack, &info, sizeof info), 0);
    leat_pack_close(&pack);
    return info.fingerprint;
}

/* `rows` rows of one int column, 1000 + row, the last with the keys of the box; `provenance` may have one
 * %llx for the fingerprint. */
static inline void box_columns(const char *path, const char *name, uint32_t rows, const char *provenance)
{
    const leat_field field = {.name = name, .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer = NULL;
    leat_packer_stats stats;
    char text[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, provenance, (unsigned long long)box_fingerprint(BOX_PACK));
#pragma GCC diagnostic pop
    o.fields = &field;
    o.field_count = 1;
    o.provenance = text;
    o.no_sync = 1;
    o.replace = 1;
    assert_int_equal(leat_packer_open(&packer, path, &o, NULL), 0);
    for (uint32_t i = 0; i < rows; i++) {
        const leat_pack_value v = {.i = 1000 + i};
        char key[32];
        snprintf(key, sizeof key, "k%02u", rows - 1 - i);
        const leat_pack_sample sample = {.key = key, .key_size = strlen(key), .values = &v};
        assert_int_equal(leat_packer_append(packer, &sample, NULL), 0);
    }
    assert_int_equal(leat_packer_finish(packer, &stats, NULL), 0);
    leat_packer_close(&packer);
}

static inline void box_open(leat__view_data *d, uint64_t budget)
{
    leat_error err = {0};
    box_pack(BOX_PACK);
    if (leat__view_data_open(d, BOX_PACK, NULL, 0, NULL, budget, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(unlink(BOX_PACK), 0);
}

#endif
