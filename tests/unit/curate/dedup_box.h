/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents for tests of deduplication: texts made of numbered words, with edits.
 */
#ifndef LEAT_TEST_DEDUP_BOX_H
#define LEAT_TEST_DEDUP_BOX_H

#include "ingest/sandbox.h"

#include <leat/text.h>

#include "base/rng.h"
#include "io/file.h"

/* `words` words of text `seed`; from `from` on, words of text `other`. */
static inline void put_words(FILE *f, int seed, int words, int from, int other)
{
    for (int i = 0; i < words; i++)
        fprintf(f, "%sw%dx%d", i ? " " : "", i < from ? seed : other, (int)((unsigned)i * 7919 % 5000));
}

static inline void put_doc(FILE *f, const char *id, int seed, int words, int from, int other)
{
    fprintf(f, "{\"id\":\"%s\",\"score\":%d,\"text\":\"", id, words % 17);
    put_words(f, seed, words, from, other);
    fprintf(f, "\"}\n");
}

/* n documents, about a third of them edited copies of earlier ones. */
static inline void make_corpus(const char *name, int n)
{
    leat__rng r;
    FILE *f = fopen(in_box(name), "wb");
    assert_non_null(f);
    leat__rng_init(&r, 5, 0, 0, 0);
    for (int i = 0; i < n; i++) {
        char id[32];
        int copy = i > 10 && leat__rng_below(&r, 3) == 0;
        int seed = copy ? (int)leat__rng_below(&r, (uint64_t)i) : i, words = 60 + seed % 50;
        int from = copy ? words - (int)leat__rng_below(&r, (uint64_t)words / 3) : words;
        snprintf(id, sizeof id, "d%d", i);
        put_doc(f, id, seed, words, from, i + 100000);
    }
    fclose(f);
}

static inline char *load_text(const char *name)
{
    char *data = NULL;
    size_t len;
    leat_error err = {0};
    if (leat__file_load(in_box(name), 1u << 28, 1, &data, &len, &err) != 0) fail_msg("%s", err.message);
    return data;
}

static inline void same_files(const char *a, const char *b)
{
    char *x = load_text(a), *y = load_text(b);
    if (strcmp(x, y) != 0) fail_msg("%s and %s differ", a, b);
    leat__free(x);
    leat__free(y);
}

static inline leat_dedup_opts fuzzy_opts(const char *in, const char *out)
{
    static const char *inputs[1];
    leat_dedup_opts o;
    leat_dedup_opts_init(&o);
    inputs[0] = in_box(in);
    o.inputs = inputs;
    o.input_count = 1;
    o.output = in_box(out);
    o.kind = LEAT_DEDUP_FUZZY;
    o.threads = 2;
    o.memory = 256u << 20;
    return o;
}

static inline void dedup_ok(const leat_dedup_opts *o, leat_dedup_stats *st)
{
    leat_error err = {0};
    if (leat_dedup_text(o, st, &err) != 0) fail_msg("%s", err.message);
}

#endif
