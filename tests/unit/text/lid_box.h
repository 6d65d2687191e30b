/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes small fastText models for tests: 2 dimensions, the words "</s>", "yes", "ja" and the labels "en"
 * and "de". The first dimension favours "en", the second "de".
 */
#ifndef LEAT_TESTS_LID_BOX_H
#define LEAT_TESTS_LID_BOX_H

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

enum { BOX_DIM, BOX_NGRAMS = 5, BOX_LOSS, BOX_MODEL, BOX_BUCKET, BOX_MINN, BOX_MAXN, BOX_SETTINGS = 12 };

typedef struct lid_box {
    int32_t magic, version;
    int32_t setting[BOX_SETTINGS];
    int64_t pruned; /* n-grams that were kept, -1 = all */
    int quantised;
    size_t dictionary, matrix; /* out: where they begin */
} lid_box;

static inline lid_box lid_box_new(void)
{
    lid_box b = {.magic = 793712314, .version = 12, .pruned = -1};
    b.setting[BOX_DIM] = 2;
    b.setting[BOX_NGRAMS] = 1;
    b.setting[BOX_LOSS] = 3;
    b.setting[BOX_MODEL] = 3;
    return b;
}

static inline void box_i32(leat__buf *out, int32_t v)
{
    leat__buf_append(out, &v, sizeof v);
}

static inline void box_i64(leat__buf *out, int64_t v)
{
    leat__buf_append(out, &v, sizeof v);
}

static inline void box_floats(leat__buf *out, const float *v, size_t n)
{
    leat__buf_append(out, v, n * sizeof *v);
}

static inline void box_entry(leat__buf *out, const char *word, int64_t count, char type)
{
    leat__buf_append(out, word, strlen(word) + 1);
    box_i64(out, count);
    leat__buf_putc(out, type);
}

/* Writes the rows of the words, then those of n-grams: even ones favour "en". */
static inline void box_input(leat__buf *out, const lid_box *b)
{
    static const float row[3][2] = {{0, 0}, {4, 0}, {0, 4}};
    int64_t ngrams = b->pruned >= 0 ? b->pruned : b->setting[BOX_BUCKET], rows = 3 + ngrams;
    if (!b->quantised) {
        box_i64(out, rows);
        box_i64(out, 2);
        box_floats(out, row[0], 6);
        for (int64_t i = 0; i < ngrams; i++) box_floats(out, row[1 + i % 2], 2);
        return;
    }
    leat__buf_putc(out, 1); /* with norms */
    box_i64(out, rows);
    box_i64(out, 2);
    box_i32(out, (int32_t)rows);
    for (int64_t i = 0; i < rows; i++) leat__buf_putc(out, (char)(i < 3 ? i : 1 + (i - 3) % 2));
    box_i32(out, 2); /* one part of 2 columns */
    box_i32(out, 1);
    box_i32(out, 2);
    box_i32(out, 2);
    for (int i = 0; i < 256; i++) {
        float half[2] = {row[i % 3][0] / 2, row[i % 3][1] / 2};
        box_floats(out, half, 2);
    }
    for (int64_t i = 0; i < rows; i++) leat__buf_putc(out, 7);
    for (int i = 0; i < 4; i++) box_i32(out, 1);
    for (int i = 0; i < 256; i++) {
        float norm = i == 7 ? 2 : 100;
        box_floats(out, &norm, 1);
    }
}

/* Writes the bytes of the model. */
static inline void lid_box_write(lid_box *b, leat__buf *out)
{
    static const float output[2][2] = {{1, 0}, {0, 1}};
    double sampling = 1e-4;
    box_i32(out, b->magic);
    box_i32(out, b->version);
    for (int i = 0; i < BOX_SETTINGS; i++) box_i32(out, b->setting[i]);
    leat__buf_append(out, &sampling, sizeof sampling);
    b->dictionary = out->len;
    box_i32(out, 5);
    box_i32(out, 3);
    box_i32(out, 2);
    box_i64(out, 100);
    box_i64(out, b->pruned);
    box_entry(out, "</s>", 9, 0);
    box_entry(out, "yes", 5, 0);
    box_entry(out, "ja", 4, 0);
    box_entry(out, "__label__en", 6, 1);
    box_entry(out, "__label__de", 3, 1);
    for (int64_t i = 0; i < b->pruned; i++) {
        box_i32(out, (int32_t)i * 2);
        box_i32(out, (int32_t)i);
    }
    b->matrix = out->len;
    leat__buf_putc(out, (char)b->quantised);
    box_input(out, b);
    leat__buf_putc(out, 0);
    box_i64(out, 2);
    box_i64(out, 2);
    box_floats(out, output[0], 4);
}

/* Makes a copy for leat__lid_open, which takes ownership of it. */
static inline char *lid_box_copy(const leat__buf *b, size_t len)
{
    char *data = leat__alloc(LEAT__MEM_MISC, len + 1);
    if (data && len > 0) memcpy(data, b->data, len);
    return data;
}

#endif
