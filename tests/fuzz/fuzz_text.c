/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of any bytes as documents: parsed, scored by every variant of the kernels, modified,
 * sketched, signed. Variants must agree, and the modifiers must write UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/cpu.h"
#include "text/english_words.h"
#include "text/fold.h"
#include "text/minhash.h"
#include "text/modify.h"
#include "text/rule.h"
#include "text/text_dsp.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void score_both(const uint8_t *text, size_t len)
{
    static leat__scorer a, b;
    if (!a.text && (leat__scorer_init(&a, NULL) != 0 || leat__scorer_init(&b, NULL) != 0)) abort();
    if (leat__scorer_reserve(&a, len, NULL) != 0 || leat__scorer_reserve(&b, len, NULL) != 0) abort();
    memcpy(a.text, text, len);
    memcpy(b.text, text, len);
    leat__cpu_mask(0);
    if (leat__scorer_run(&a, len, NULL) != 0) abort();
    leat__cpu_mask(~0u);
    if (leat__scorer_run(&b, len, NULL) != 0) abort();
    if (memcmp(&a.counts, &b.counts, sizeof a.counts) != 0) abort();
    for (unsigned i = 0; i < leat__score_total; i++)
        if (!(leat__score_value(i, &a.counts) >= 0)) abort();
}

static uint32_t shingles_with(leat__sketcher *s, uint32_t cpus, const uint8_t *text, size_t len,
                              uint32_t words, uint32_t chars)
{
    uint32_t n;
    if (leat__sketcher_init(s, words, chars, NULL) != 0) abort();
    if (leat__sketcher_reserve(s, len, NULL) != 0) abort();
    memcpy(s->text, text, len);
    leat__cpu_mask(cpus);
    if (leat__sketcher_shingles(s, len, &n, NULL) != 0) abort();
    leat__cpu_mask(~0u);
    return n;
}

/* Shingles do not depend on the CPU. */
static void sketch(const uint8_t *text, size_t len, uint32_t words, uint32_t chars)
{
    leat__sketcher a, b;
    uint32_t values[64], n = shingles_with(&a, 0, text, len, words, chars);
    if (shingles_with(&b, ~0u, text, len, words, chars) != n) abort();
    if (n > 0 && memcmp(a.shingle, b.shingle, n * sizeof *a.shingle) != 0) abort();
    if (n > 0) leat__sketch_fss(a.shingle, n, 64, values);
    leat__sketcher_reset(&a);
    leat__sketcher_reset(&b);
}

/* Buffers of the sizes that minhash.c gives them, so that a tool sees what goes beyond. */
static void fold(const uint8_t *text, size_t len)
{
    uint8_t *folded = leat__alloc(LEAT__MEM_MISC, LEAT__FOLD_GROWTH * len + 1);
    uint8_t *joined = leat__alloc(LEAT__MEM_MISC, (LEAT__FOLD_GROWTH + 1) * len + 1);
    uint32_t *start = leat__alloc(LEAT__MEM_MISC, (len + 1) * sizeof *start);
    if (!folded || !joined || !start) abort();
    size_t n = leat__fold_lower(text, len, 0, len, folded);
    if (leat__utf8_check(folded, n) != n) abort();
    n = leat__fold_simplify(text, len, 0, len, folded);
    if (leat__utf8_check(folded, n) != n) abort();
    leat__word_list list = {.out = joined, .start = start};
    leat__english_split(&list, folded, n);
    for (uint32_t i = 0; i + 1 < list.count; i++)
        if (start[i] >= start[i + 1]) abort();
    leat__free(folded);
    leat__free(joined);
    leat__free(start);
}

static uint32_t sign_with(leat__minhasher *m, uint32_t cpus, const uint8_t *text, size_t len,
                          uint64_t *values)
{
    leat__cpu_mask(cpus);
    if (len > 0) memcpy(m->text, text, len);
    uint32_t shingles = leat__minhasher_sign(m, len, values);
    leat__cpu_mask(~0u);
    return shingles;
}

/* Signatures do not depend on the CPU. */
static void sign(const uint8_t *text, size_t len, uint32_t family, uint32_t words, uint32_t chars)
{
    leat__minhasher m;
    uint64_t plain[8] = {0}, avx2[8] = {0}, all[8] = {0};
    if (leat__minhasher_init(&m, family, words, chars, 8, NULL) != 0) abort();
    if (leat__minhasher_reserve(&m, len, NULL) != 0) abort();
    uint32_t n = sign_with(&m, 0, text, len, plain);
    if (sign_with(&m, LEAT__CPU_AVX2, text, len, avx2) != n || sign_with(&m, ~0u, text, len, all) != n)
        abort();
    if (memcmp(plain, avx2, sizeof plain) != 0 || memcmp(plain, all, sizeof plain) != 0) abort();
    leat__minhasher_reset(&m);
}

static void modify(const uint8_t *text, size_t len)
{
    leat__modifiers m;
    leat__buf b;
    bool changed;
    if (leat__modifiers_init(&m, "unicode,compatible,newlines,quotes,urls,emails,pii,boilerplate,c4-lines",
                             NULL) != 0)
        abort();
    leat__buf_init(&b, LEAT__MEM_CURATE, 1u << 26);
    leat__buf_append(&b, text, len);
    if (leat__modifiers_run(&m, &b, &changed, NULL) != 0) abort();
    if (leat__utf8_check((const uint8_t *)leat__buf_str(&b), b.len) != b.len) abort();
    leat__buf_reset(&b);
    leat__modifiers_reset(&m);
}

static void document(const uint8_t *text, size_t len)
{
    score_both(text, len);
    sketch(text, len, 5, 0);
    sketch(text, len, 0, 7);
    fold(text, len);
    sign(text, len, LEAT__MINHASH_DATATROVE, 2, 0);
    sign(text, len, LEAT__MINHASH_DATASKETCH, 0, 3);
    sign(text, len, LEAT__MINHASH_DATASKETCH_LEGACY, 2, 0);
    modify(text, len);
}

/* Reading a line and its text at once gives the same result and the same text. */
static void read_at_once(const uint8_t *line, size_t size, const leat__jsonl_field *f, const char *wrong,
                         size_t wrong_at, const uint8_t *text, size_t len)
{
    uint8_t *into = leat__alloc(LEAT__MEM_MISC, size + LEAT__TEXT_PAD);
    leat__jsonl_field g = {.name = "text", .name_len = 4, .into = into};
    size_t at;
    if (!into) abort();
    if (leat__jsonl_read(line, size, &g, 1, &at) != wrong || at != wrong_at || g.kind != f->kind) abort();
    if (!wrong && f->kind == LEAT__JSONL_STRING && (g.into_len != len || memcmp(into, text, len) != 0))
        abort();
    leat__free(into);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *line = leat__zalloc(LEAT__MEM_MISC, size + LEAT__TEXT_PAD);
    uint8_t *text = leat__alloc(LEAT__MEM_MISC, size + LEAT__TEXT_PAD);
    leat__jsonl_field f = {.name = "text", .name_len = 4};
    size_t at;
    uint64_t lone = 0;
    if (!line || !text) abort();
    if (size > 0) memcpy(line, data, size); /* data may be NULL */
    const char *wrong = leat__jsonl_read(line, size, &f, 1, &at);
    if (at > size || (wrong && !wrong[0])) abort();
    if (!wrong && f.kind == LEAT__JSONL_STRING) {
        size_t n = leat__jsonl_text(&f, text, &lone);
        if (n > f.raw_len || leat__utf8_check(text, n) != n) abort();
        read_at_once(line, size, &f, wrong, at, text, n);
        document(text, n);
    } else {
        read_at_once(line, size, &f, wrong, at, NULL, 0);
    }
    if (leat__utf8_check(line, size) == size) document(line, size);
    leat__free(line);
    leat__free(text);
    return 0;
}
