/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include "curate/dedup_lines.h"

static leat_dedup_stats st;

static void pieces_of(const char *text, uint32_t level, const char *expect)
{
    char got[256] = "";
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        leat__piece p = leat__piece_at((const uint8_t *)text, len, at, level);
        assert_true(p.next > at && p.next <= len && p.begin <= p.end && p.end <= p.next);
        strcat(got, "[");
        strncat(got, text + p.begin, p.end - p.begin);
        strcat(got, "]");
        at = p.next;
    }
    assert_string_equal(got, expect);
}

static void pieces(void **state)
{
    pieces_of("a\nb \n\n c", LEAT_LEVEL_LINE, "[a][b][][c]");
    pieces_of("a\nb \n \n\n c\n", LEAT_LEVEL_PARAGRAPH, "[a\nb][c]");
    pieces_of("\n\na\n\n", LEAT_LEVEL_PARAGRAPH, "[][a]");
    pieces_of("\n", LEAT_LEVEL_LINE, "[]");
    pieces_of("a", LEAT_LEVEL_PARAGRAPH, "[a]");
    /* white space of Unicode, too */
    pieces_of("\xc2\xa0"
              "a\xe3\x80\x80\n\xe2\x80\x83\n\xc3\xa9",
              LEAT_LEVEL_LINE, "[a][][\xc3\xa9]");
    pieces_of("a\n\xc2\xa0\nb", LEAT_LEVEL_PARAGRAPH, "[a][b]");
}

static leat_dedup_opts lines_opts(const char *in, const char *out, uint32_t level)
{
    leat_dedup_opts o = fuzzy_opts(in, out);
    o.kind = LEAT_DEDUP_EXACT;
    o.level = level;
    return o;
}

static void is_file(const char *name, const char *expect)
{
    char *text = load_text(name);
    assert_string_equal(text, expect);
    leat__free(text);
}

static void repeated_lines_are_removed(void **state)
{
    put_text("l.jsonl", "{\"id\":1,\"text\":\"Menu\\nFirst.\\n\\nFooter\",\"x\":\"\\u00e9\"}\n"
                        "{\"id\":2,\"text\":\"  Menu\\nSecond.\\nSecond.\\nFooter\"}\n"
                        "{}\n"
                        "{\"id\":3,\"text\":\"Menu\\nFooter\\n\"}\n"
                        "{\"id\":4,\"text\":\"\\n \\n\"}\n"
                        "{\"id\":5,\"text\":\"menu!\"}\n");
    leat_dedup_opts o = lines_opts("l.jsonl", "l", LEAT_LEVEL_LINE);
    dedup_ok(&o, &st);
    is_file("l/kept-00000.jsonl", "{\"id\":1,\"text\":\"Menu\\nFirst.\\n\\nFooter\",\"x\":\"\\u00e9\"}\n"
                                  "{\"id\":2,\"text\":\"Second.\"}\n{\"id\":4,\"text\":\"\\n \\n\"}\n"
                                  "{\"id\":5,\"text\":\"menu!\"}\n");
    is_file("l/changed.jsonl", "{\"id\":2,\"pieces\":4,\"removed\":3,\"kept\":true}\n"
                               "{\"id\":3,\"pieces\":2,\"removed\":2,\"kept\":false}\n");
    assert_int_equal(st.documents, 5);
    assert_int_equal(st.kept, 4);
    assert_int_equal(st.removed, 1);
    assert_int_equal(st.changed, 2);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.empty, 1);
    assert_int_equal(st.pieces, 10);
    assert_int_equal(st.pieces_removed, 5);
    assert_int_equal(st.bytes_removed, 7 + 8 + 6 + 5 + 7);
    assert_int_not_equal(access(in_box("l/.leat-work"), F_OK), 0);
    o = lines_opts("l.jsonl", "n", LEAT_LEVEL_LINE);
    o.normalize = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.pieces_removed, 6);
    o = lines_opts("l.jsonl", "p", LEAT_LEVEL_PARAGRAPH);
    dedup_ok(&o, &st);
    assert_int_equal(st.pieces, 5);
    assert_int_equal(st.pieces_removed, 0);
}

/* The same bytes for any threads and memory, including slices. */
static void blank_lines_stay(void **state)
{
    put_text("us.jsonl",
             "{\"text\":\"b\\na\\n\\u001fa\\u001c\\n\\u001e\"}\n"); /* white space between words */
    leat_dedup_opts us = lines_opts("us.jsonl", "us", LEAT_LEVEL_LINE);
    dedup_ok(&us, &st);
    is_file("us/kept-00000.jsonl", "{\"text\":\"b\\na\\n\\u001e\"}\n");
    put_text("bl.jsonl", "{\"text\":\"alpha\\n\\n\"}\n{\"text\":\"y\\n\\n\\nalpha\"}\n");
    leat_dedup_opts o = lines_opts("bl.jsonl", "bl", LEAT_LEVEL_LINE);
    dedup_ok(&o, &st);
    is_file("bl/kept-00000.jsonl", "{\"text\":\"alpha\\n\\n\"}\n{\"text\":\"y\\n\\n\"}\n");
    o.level = LEAT_LEVEL_PARAGRAPH;
    o.replace = 1;
    dedup_ok(&o, &st);
    is_file("bl/kept-00000.jsonl", "{\"text\":\"alpha\\n\\n\"}\n{\"text\":\"y\"}\n");
    put_text("bl.jsonl", "{\"text\":\"alpha\\n\"}\n{\"text\":\"q\\n\\n\\t\\nalpha\"}\n");
    dedup_ok(&o, &st);
    is_file("bl/kept-00000.jsonl", "{\"text\":\"alpha\\n\"}\n{\"text\":\"q\"}\n");
}

/* Lines are added between the passes: nothing is read beyond what the first pass counted. */
static int grow_input(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    bool *grown = cookie;
    if (done < total / 2 || *grown) return 0;
    FILE *f = fopen(in_box("grow.jsonl"), "ab");
    assert_non_null(f);
    for (int i = 0; i < 20000; i++) put_doc(f, "new", i, 60, 60, 0);
    fclose(f);
    *grown = true;
    return 0;
}

static void inputs_that_grow_are_refused(void **state)
{
    static const uint32_t levels[] = {LEAT_LEVEL_SUBSTRING, LEAT_LEVEL_LINE, LEAT_LEVEL_DOCUMENT,
                                      LEAT_LEVEL_DOCUMENT};
    for (int i = 0; i < 4; i++) {
        bool grown = false;
        leat_error err = {0};
        make_corpus("grow.jsonl", 2000);
        leat_dedup_opts o =
            i == 3 ? fuzzy_opts("grow.jsonl", "grow") : lines_opts("grow.jsonl", "grow", levels[i]);
        o.replace = 1;
        o.progress = grow_input;
        o.cookie = &grown;
        o.bands_per_iteration = i == 3 ? 7 : 0;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
        assert_true(grown);
        if (!strstr(err.message, "grow.jsonl: changed since the run began")) fail_msg("%s", err.message);
    }
}

static void output_is_the_same(void **state)
{
    FILE *f = fopen(in_box("many.jsonl"), "wb");
    leat__rng r;
    leat__rng_init(&r, 5, 0, 0, 0);
    for (int i = 0; i < 60000; i++) {
        fprintf(f, "{\"text\":\"");
        for (int k = 0; k < 8; k++) fprintf(f, "%d\\n", (int)leat__rng_below(&r, 4000000));
        fprintf(f, "\"}\n");
    }
    fclose(f);
    leat_dedup_opts o = lines_opts("many.jsonl", "m1", LEAT_LEVEL_LINE);
    o.threads = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.pieces, 480000);
    uint64_t removed = st.pieces_removed;
    assert_in_range(removed, 20000, 40000);
    o = lines_opts("many.jsonl", "m2", LEAT_LEVEL_LINE);
    o.threads = 7;
    o.memory = 49u << 20;
    dedup_ok(&o, &st);
    assert_int_equal(st.pieces_removed, removed);
    same_files("m1/kept-00000.jsonl", "m2/kept-00000.jsonl");
    same_files("m1/changed.jsonl", "m2/changed.jsonl");
}

static void options_are_checked(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("l.jsonl", "x");
    o.level = LEAT_LEVEL_LINE;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = lines_opts("l.jsonl", "x", 4);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = lines_opts("l.jsonl", "x", LEAT_LEVEL_LINE);
    o.keep = LEAT_KEEP_LONGEST;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = lines_opts("l.jsonl", "x", LEAT_LEVEL_LINE);
    o.fail_on_bad = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "line 3"));
}

/* A line that does not fit the memory is refused with the memory that it needs. */
static void long_lines_are_refused(void **state)
{
    FILE *f = fopen(in_box("long.jsonl"), "wb");
    fprintf(f, "{\"text\":\"one\"}\n{\"text\":\"");
    for (int i = 0; i < 9 << 16; i++) fprintf(f, "line %07d \\n", i);
    fprintf(f, "\"}\n{\"text\":\"one\\ntwo\"}\n");
    fclose(f);
    leat_error err = {0};
    leat_dedup_opts o = lines_opts("long.jsonl", "long", LEAT_LEVEL_LINE);
    o.memory = 64u << 20;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "long.jsonl: line 2 of 8"));
    const char *needs = strstr(err.message, "raise memory to ");
    assert_non_null(needs);
    uint64_t memory = (uint64_t)atoi(needs + 16) << 20;
    assert_true(memory > 100u << 20 && memory < 1u << 30);
    o.memory = memory;
    o.replace = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.bad, 0);
    assert_int_equal(st.kept, 3);
    o.memory = 64u << 20;
    o.max_document = 1u << 20; /* now it is a bad line */
    dedup_ok(&o, &st);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.kept, 2);
}

/* Of four words each. Case, punctuation and white space do not matter; the first one stays. */
static void repeated_substrings_are_removed(void **state)
{
    put_text("s.jsonl", "{\"id\":1,\"text\":\"one two three four five\"}\n"
                        "{\"id\":2,\"text\":\"new: One, TWO three\\nfour! end here\"}\n"
                        "{\"id\":3,\"text\":\"two three four five\"}\n"
                        "{\"id\":4,\"text\":\"one two three\"}\n"
                        "{\"id\":5,\"text\":\"a a a a a a a a a\"}\n"
                        "{\"id\":6,\"text\":\"x a a a a, then one two three four five.\"}\n"
                        "{\"id\":7,\"text\":\"\"}\n{}\n");
    leat_dedup_opts o = lines_opts("s.jsonl", "s", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 4;
    dedup_ok(&o, &st);
    is_file("s/kept-00000.jsonl", "{\"id\":1,\"text\":\"one two three four five\"}\n"
                                  "{\"id\":2,\"text\":\"new: \\nend here\"}\n"
                                  "{\"id\":4,\"text\":\"one two three\"}\n"
                                  "{\"id\":5,\"text\":\"a a a a\"}\n"
                                  "{\"id\":6,\"text\":\"x \\nthen\"}\n"
                                  "{\"id\":7,\"text\":\"\"}\n");
    is_file("s/changed.jsonl", "{\"id\":2,\"words\":7,\"removed\":4,\"kept\":true}\n"
                               "{\"id\":3,\"words\":4,\"removed\":4,\"kept\":false}\n"
                               "{\"id\":5,\"words\":9,\"removed\":5,\"kept\":true}\n"
                               "{\"id\":6,\"words\":11,\"removed\":9,\"kept\":true}\n");
    assert_int_equal(st.pieces, 2 + 4 + 1 + 0 + 6 + 8);
    assert_int_equal(st.pieces_removed, 5);
    assert_int_equal(st.removed, 1);
    assert_int_equal(st.changed, 4);
    assert_int_equal(st.bad, 1);
    o.shingle_words = 0; /* the default, 50: no text here is that long */
    o.replace = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.changed, 0);
    o.normalize = 1;
    assert_int_equal(leat_dedup_text(&o, &st, NULL), LEAT_EINVAL);
    o.normalize = 0;
    o.kind = LEAT_DEDUP_FUZZY;
    assert_int_equal(leat_dedup_text(&o, &st, NULL), LEAT_EINVAL);
}

/* What stands before the next word stays: a sign, a bracket, a currency. */
static void punctuation_of_other_words_stays(void **state)
{
    put_text("marks.jsonl", "{\"id\":0,\"text\":\"one two three four\"}\n"
                            "{\"id\":1,\"text\":\"a one two three four -5 \u00b0C end\"}\n"
                            "{\"id\":2,\"text\":\"b one two three four, $7\"}\n"
                            "{\"id\":3,\"text\":\"c (one two three four)\\n\\n(see y)\"}\n"
                            "{\"id\":4,\"text\":\"d one two three four\u2014fin\"}\n"
                            "{\"id\":5,\"text\":\"e one two three four\u3002\u300d \u300cstop\u300d\"}\n"
                            "{\"id\":6,\"text\":\"f one two three four. \u2022\"}\n"
                            "{\"id\":7,\"text\":\"one two three four!\"}\n");
    leat_dedup_opts o = lines_opts("marks.jsonl", "marks", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 4;
    dedup_ok(&o, &st);
    is_file("marks/kept-00000.jsonl", "{\"id\":0,\"text\":\"one two three four\"}\n"
                                      "{\"id\":1,\"text\":\"a \\n-5 \u00b0C end\"}\n"
                                      "{\"id\":2,\"text\":\"b \\n$7\"}\n"
                                      "{\"id\":3,\"text\":\"c (\\n(see y)\"}\n"
                                      "{\"id\":4,\"text\":\"d \\n\u2014fin\"}\n"
                                      "{\"id\":5,\"text\":\"e \\n\u300cstop\u300d\"}\n"
                                      "{\"id\":6,\"text\":\"f \\n\u2022\"}\n");
}

/* The same bytes for any threads and memory; a large document among small ones. */
static void substrings_are_the_same(void **state)
{
    FILE *f = fopen(in_box("sub.jsonl"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 6000; i++) put_doc(f, "d", i % 1000 / 2, 40 + i % 60, 20 + i % 50, i);
    put_doc(f, "large", 3, 60000, 50, 7);
    fclose(f);
    leat_dedup_opts o = lines_opts("sub.jsonl", "s1", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 20;
    o.threads = 1;
    dedup_ok(&o, &st);
    assert_true(st.changed > 3000 && st.kept > 100);
    o = lines_opts("sub.jsonl", "s2", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 20;
    o.threads = 5;
    o.memory = 96u << 20;
    dedup_ok(&o, &st);
    same_files("s1/kept-00000.jsonl", "s2/kept-00000.jsonl");
    same_files("s1/changed.jsonl", "s2/changed.jsonl");
    o = lines_opts("s1/kept-00000.jsonl", "s3", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 20;
    dedup_ok(&o, &st);
    assert_true(st.bytes_removed < 1000); /* only across places where a span was cut out */
}

typedef struct stopper {
    int calls, stop_at;
} stopper;

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    stopper *s = cookie;
    assert_true(done <= total);
    return s->calls++ == s->stop_at;
}

/* Stopped in every step, and resumed with other threads and memory until it is done. */
static void stopped_runs_continue(void **state)
{
    static const uint32_t levels[] = {LEAT_LEVEL_LINE, LEAT_LEVEL_SUBSTRING};
    FILE *f = fopen(in_box("stop.jsonl"), "wb");
    for (int i = 0; i < 9000; i++) {
        fprintf(f, "{\"text\":\"");
        for (int k = 0; k < 12; k++)
            fprintf(f, "w%d%s", i % 3 ? i * 12 + k : k * 7 + i % 50, k == 5 ? "\\n" : " ");
        fprintf(f, "\"}\n");
    }
    fclose(f);
    for (int l = 0; l < 2; l++) {
        leat_dedup_opts o = lines_opts("stop.jsonl", l ? "whole1" : "whole0", levels[l]);
        leat_error err = {0};
        int rc = LEAT_ECANCELED, runs = 0, resumed = 0;
        if (l) o.shingle_words = 6;
        o.memory = 128u << 20;
        o.report = in_box(l ? "whole1.json" : "whole0.json");
        dedup_ok(&o, &st);
        leat_dedup_stats want = st;
        o.output = in_box(l ? "stopped1" : "stopped0");
        o.report = in_box(l ? "stopped1.json" : "stopped0.json");
        o.checkpoint_bytes = 1;
        o.resume = 1;
        for (; rc == LEAT_ECANCELED; runs++) {
            stopper s = {.stop_at = runs % 3};
            o.progress = stop;
            o.cookie = &s;
            o.threads = 1 + (uint32_t)runs % 3;
            o.memory = (100u + 30u * (uint32_t)(runs % 2)) << 20;
            if (runs > 30) o.progress = NULL;
            rc = leat_dedup_text(&o, &st, &err);
            resumed += st.resumed != 0;
        }
        if (rc != 0) fail_msg("%s", err.message);
        assert_true(resumed > 3);
        assert_int_equal(st.pieces, want.pieces);
        assert_int_equal(st.pieces_removed, want.pieces_removed);
        assert_int_equal(st.documents, want.documents);
        assert_int_equal(st.disk_bytes, want.disk_bytes);
        same_files(l ? "whole1/kept-00000.jsonl" : "whole0/kept-00000.jsonl",
                   l ? "stopped1/kept-00000.jsonl" : "stopped0/kept-00000.jsonl");
        same_files(l ? "whole1/changed.jsonl" : "whole0/changed.jsonl",
                   l ? "stopped1/changed.jsonl" : "stopped0/changed.jsonl");
        same_files(l ? "whole1.json" : "whole0.json", l ? "stopped1.json" : "stopped0.json");
        assert_int_not_equal(access(in_box(l ? "stopped1/.leat-work" : "stopped0/.leat-work"), F_OK), 0);
    }
}

/* Counts the calls while the saved state is that of the marking step. */
static int count_marking(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    char text[4096] = "";
    FILE *f = fopen(in_box("look/.leat-work/state.json"), "rb");
    if (f) {
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    *(int *)cookie += strstr(text, "\"phase\":1,") != NULL;
    return 0;
}

static void marking_can_be_stopped(void **state)
{
    int calls = 0;
    leat_dedup_opts o = lines_opts("stop.jsonl", "look", LEAT_LEVEL_SUBSTRING);
    o.shingle_words = 6;
    o.progress = count_marking;
    o.cookie = &calls;
    dedup_ok(&o, &st);
    assert_true(calls > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(repeated_lines_are_removed),
        cmocka_unit_test(blank_lines_stay),
        cmocka_unit_test(inputs_that_grow_are_refused),
        cmocka_unit_test(output_is_the_same),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(long_lines_are_refused),
        cmocka_unit_test(repeated_substrings_are_removed),
        cmocka_unit_test(punctuation_of_other_words_stays),
        cmocka_unit_test(substrings_are_the_same),
        cmocka_unit_test(stopped_runs_continue),
        cmocka_unit_test(marking_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
