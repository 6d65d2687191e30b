/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts, shingles and sketches of the documents of a JSONL file, for check_text.py.
 *     text_oracle names | counts FILE | text FILE | shingles FILE WORDS CHARS | bench FILE KIND REPEATS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/file.h"
#include "text/score.h"
#include "text/sketch.h"
#include "text/text_dsp.h"

static leat__scorer scorer;
static leat__sketcher sketcher;
static uint64_t total;

static void fail(const char *what)
{
    fprintf(stderr, "text_oracle: %s\n", what);
    exit(1);
}

static void print_counts(size_t len)
{
    leat_error err;
    if (leat__scorer_run(&scorer, len, &err) != 0) fail(err.message);
    const uint32_t *v = (const uint32_t *)&scorer.counts;
    for (unsigned i = 0; i < LEAT__COUNT_TOTAL; i++)
        printf("%u%c", v[i], i + 1 < LEAT__COUNT_TOTAL ? '\t' : '\n');
}

static void print_text(size_t len)
{
    for (size_t i = 0; i < len; i++) printf("%02x", scorer.text[i]);
    printf("\n");
}

static void print_shingles(size_t len)
{
    uint32_t n, values[112];
    leat_error err;
    if (leat__sketcher_reserve(&sketcher, len, &err) != 0) fail(err.message);
    memcpy(sketcher.text, scorer.text, len);
    if (leat__sketcher_shingles(&sketcher, len, &n, &err) != 0) fail(err.message);
    for (uint32_t i = 0; i < n; i++) printf("%llx ", (unsigned long long)sketcher.shingle[i]);
    printf("|");
    if (n > 0) {
        leat__sketch_fss(sketcher.shingle, n, 112, values);
        for (uint32_t i = 0; i < 112; i++) printf(" %x", values[i]);
    }
    printf("\n");
}

static void time_counts(size_t len)
{
    if (leat__scorer_run(&scorer, len, NULL) != 0) fail("score");
    total += scorer.counts.words;
}

static void time_sketch(size_t len)
{
    uint32_t n, values[112];
    memcpy(sketcher.text, scorer.text, len);
    if (leat__sketcher_shingles(&sketcher, len, &n, NULL) != 0) fail("shingles");
    if (n == 0) return;
    leat__sketch_fss(sketcher.shingle, n, 112, values);
    for (uint32_t b = 0; b < 14; b++) total += leat__sketch_band(values + 8 * b, 8);
}

static void nothing(size_t len)
{
    total += len;
}

/* Calls `each` for every document, its text in scorer.text; bytes of text in all. */
static uint64_t walk(const char *data, size_t size, void (*each)(size_t len))
{
    leat__jsonl_field f = {.name = "text", .name_len = 4};
    uint64_t lone = 0, bytes = 0;
    for (const char *p = data, *end = data + size; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((nl ? nl : end) - p), at;
        const char *wrong = leat__jsonl_read((const uint8_t *)p, len, &f, 1, &at);
        if (wrong || f.kind != LEAT__JSONL_STRING) fail(wrong ? wrong : "no text");
        if (leat__scorer_reserve(&scorer, f.raw_len, NULL) != 0) fail("memory");
        if (leat__sketcher_reserve(&sketcher, f.raw_len, NULL) != 0) fail("memory");
        size_t n = leat__jsonl_text(&f, scorer.text, &lone);
        bytes += n;
        each(n);
        p += len + 1;
    }
    return bytes;
}

static void bench(const char *data, size_t size, const char *kind, int repeats)
{
    void (*each)(size_t) = !strcmp(kind, "counts")   ? time_counts
                           : !strcmp(kind, "sketch") ? time_sketch
                                                     : nothing;
    double best = 1e9;
    uint64_t bytes = 0;
    for (int i = 0; i < repeats; i++) {
        uint64_t t = leat__clock_process_ns();
        bytes = walk(data, size, each);
        double s = (double)(leat__clock_process_ns() - t) / 1e9;
        if (s < best) best = s;
    }
    printf("%s %s %.1f MB/CPU-s (%.1f MB, best of %d; %llx)\n", leat__text_dsp_now()->isa, kind,
           (double)bytes / 1e6 / best, (double)bytes / 1e6, repeats, (unsigned long long)total);
}

int main(int argc, char **argv)
{
    char *data = NULL;
    size_t size = 0;
    leat_error err;
    if (argc > 1 && !strcmp(argv[1], "names")) {
        for (unsigned i = 0; i < LEAT__COUNT_TOTAL; i++) printf("%s\n", leat__count_name(i));
        return 0;
    }
    if (argc < 3) fail("usage: text_oracle names | counts|text|shingles|bench FILE …");
    uint32_t words = argc > 3 && !strcmp(argv[1], "shingles") ? (uint32_t)atoi(argv[3]) : 5;
    uint32_t chars = argc > 4 && !strcmp(argv[1], "shingles") ? (uint32_t)atoi(argv[4]) : 0;
    if (leat__file_load(argv[2], (size_t)1 << 40, LEAT__TEXT_PAD, &data, &size, &err) != 0) fail(err.message);
    if (leat__scorer_init(&scorer, &err) != 0 || leat__sketcher_init(&sketcher, words, chars, &err) != 0)
        fail(err.message);
    if (!strcmp(argv[1], "counts")) walk(data, size, print_counts);
    else if (!strcmp(argv[1], "text")) walk(data, size, print_text);
    else if (!strcmp(argv[1], "shingles")) walk(data, size, print_shingles);
    else if (!strcmp(argv[1], "bench") && argc > 4) bench(data, size, argv[3], atoi(argv[4]));
    else fail("no such command");
    leat__free(data);
    leat__scorer_reset(&scorer);
    leat__sketcher_reset(&sketcher);
    return 0;
}
