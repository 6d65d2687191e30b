/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include "curate/dedup.h"

static void the_plan_comes_first(void **state)
{
    leat_dedup_stats st;
    leat_error err = {0};
    make_corpus("c.jsonl", 5000);
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "x");
    o.plan_only = 1;
    dedup_ok(&o, &st);
    assert_true(st.plan_documents > 4500 && st.plan_documents < 5500);
    assert_int_equal(st.documents, 0);
    assert_int_not_equal(access(in_box("x"), F_OK), 0); /* nothing is written */
    uint64_t disk = st.plan_disk;
    o.output = NULL;
    dedup_ok(&o, &st);
    assert_int_equal(st.plan_disk, disk);
    double planned = (double)disk / (double)st.plan_documents;
    o.plan_only = 0;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("c.jsonl", "x");
    dedup_ok(&o, &st);
    double used = (double)st.disk_bytes / (double)st.documents;
    assert_true(used > 290 && used < planned * 1.03 && used > planned * 0.94);
    o.memory = 16u << 20;
    o.replace = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "of memory, the limit is"));
}

/* Writes `lines` lines of `bytes` characters each. */
static void put_lines(FILE *f, int lines, int bytes)
{
    for (int i = 0; i < lines; i++) fprintf(f, "{\"text\":\"%0*d\"}\n", bytes, i);
}

/* Documents are counted at several places: the first lines may be much shorter or longer than the others. */
static void unequal_lines(void **state)
{
    leat_dedup_stats st;
    leat_dedup_opts o = fuzzy_opts("u.jsonl", "u");
    o.plan_only = 1;
    FILE *f = fopen(in_box("u.jsonl"), "wb");
    put_lines(f, 1, 16);
    put_lines(f, 3, 8 << 20);
    fclose(f);
    dedup_ok(&o, &st);
    if (st.plan_documents < 1 || st.plan_documents > 20) fail_msg("%d", (int)st.plan_documents);
    f = fopen(in_box("u.jsonl"), "wb");
    put_lines(f, 100000, 10);
    put_lines(f, 1000, 20000);
    fclose(f);
    dedup_ok(&o, &st);
    if (st.plan_documents < 50000 || st.plan_documents > 200000) fail_msg("%d", (int)st.plan_documents);
}

/* The plan of a run on lines or substrings counts them at several places, which differ in length here. */
static void lines_and_substrings_are_counted(void **state)
{
    FILE *f = fopen(in_box("p.jsonl"), "wb");
    for (int i = 0; i < 4000; i++) put_doc(f, "long", i, 60 + i % 200, 1000, 0);
    for (int i = 0; i < 30000; i++) fprintf(f, "{\"text\":\"a\\nb c\\n\\n%d d e f g h i j k\"}\n", i % 100);
    fclose(f);
    for (int words = 0; words < 2; words++) {
        leat_dedup_stats st;
        leat_dedup_opts o = fuzzy_opts("p.jsonl", words ? "p-words" : "p-lines");
        o.kind = LEAT_DEDUP_EXACT;
        o.level = words ? LEAT_LEVEL_SUBSTRING : LEAT_LEVEL_LINE;
        o.shingle_words = words ? 10 : 0;
        dedup_ok(&o, &st);
        double ratio = (double)st.plan_disk / (double)st.disk_bytes;
        if (ratio < 0.85 || ratio > 1.15) fail_msg("level %u: %g", o.level, ratio);
    }
}

/* Too small a disk is found before the run, and is "does not fit", as too little memory is. */
static void a_small_disk_does_not_fit(void **state)
{
    leat_dedup_stats st = {.plan_disk = UINT64_C(1) << 60, .plan_documents = 7};
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "y");
    char work[] = "no-such-folder";
    leat__dedup d = {.opts = &o, .stats = &st, .work = work};
    leat_error err = {0};
    assert_int_equal(leat__dedup_check_disk(&d, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "needs 1.00 EiB of disk for 7 documents, "));
    st.plan_disk = 0;
    assert_int_equal(leat__dedup_check_disk(&d, &err), 0);
}

/* Of 32 files, 16 are sampled. The others have many more documents, which the run finds later: it names the
 * memory that is enough. */
static void too_low_an_estimate_names_the_memory(void **state)
{
    static char path[32][4096];
    static const char *inputs[32];
    leat_dedup_stats st;
    leat_error err = {0};
    unsigned enough = 0;
    for (int i = 0; i < 32; i++) {
        char name[32];
        snprintf(name, sizeof name, "e%02d.jsonl", i);
        inputs[i] = strcpy(path[i], in_box(name));
        FILE *f = fopen(inputs[i], "wb");
        for (int k = 0; k < (i % 2 ? 120000 : 1); k++) fputs("{\"text\":\"\"}\n", f);
        if (i % 2 == 0) put_lines(f, 1, 1 << 20);
        fclose(f);
    }
    leat_dedup_opts o = fuzzy_opts("e00.jsonl", "e");
    o.inputs = inputs;
    o.input_count = 32;
    o.kind = LEAT_DEDUP_EXACT;
    o.keep = LEAT_KEEP_LONGEST;
    o.memory = 48u << 20;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EBUDGET);
    const char *at = strstr(err.message, "(raise memory to ");
    if (strncmp(err.message, "1920032 documents need ", 23) != 0 || !at) fail_msg("%s", err.message);
    assert_int_equal(sscanf(at, "(raise memory to %uM)", &enough), 1);
    o.memory = (uint64_t)enough << 20;
    o.resume = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 1920032);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_comes_first), cmocka_unit_test(unequal_lines),
        cmocka_unit_test(lines_and_substrings_are_counted), cmocka_unit_test(a_small_disk_does_not_fit),
        cmocka_unit_test(too_low_an_estimate_names_the_memory)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
