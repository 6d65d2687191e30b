/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"
#include "curate/text_files.h"

static leat_dedup_stats st;
static leat_error err;

static int at_once(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    return 1;
}

/* An interrupted run in "s". */
static leat_dedup_opts interrupted(void)
{
    make_corpus("c.jsonl", 4000);
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "s");
    o.checkpoint_bytes = 1;
    o.replace = 1;
    o.progress = at_once;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
    o.progress = NULL;
    o.replace = 0;
    return o;
}

static void other_options_are_refused(void **state)
{
    leat_dedup_opts o = interrupted();
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "use resume"));
    o.resume = 1;
    o.bands = 10;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    o.bands = 0;
    o.memory = 64u << 20; /* another limit is allowed */
    o.threads = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.resumed, 1);
    assert_int_equal(st.documents, 4000);
}

/* Stops the run after the pass that reads the lines. */
static int after_the_first_pass(void *cookie, uint64_t done, uint64_t total, uint64_t documents,
                                uint64_t dropped)
{
    return done > total / 2;
}

/* A document of the first pass is one of the last, whatever the memory of each. */
static void less_memory_loses_no_line(void **state)
{
    make_corpus("long.jsonl", 100);
    FILE *f = fopen(in_box("long.jsonl"), "ab");
    put_doc(f, "first", 1000, 500000, 500000, 0);
    put_doc(f, "copy", 1000, 500000, 499900, 1001);
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("long.jsonl", "all");
    o.memory = 1u << 30;
    dedup_ok(&o, &st);
    uint64_t kept = st.kept;
    assert_int_equal(st.bad, 0);
    for (int i = 0; i < 2; i++) { /* in the first pass, in the last */
        o.output = in_box(i ? "less2" : "less1");
        o.memory = 1u << 30;
        o.checkpoint_bytes = 1;
        o.resume = 0;
        o.progress = i ? after_the_first_pass : at_once;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
        o.progress = NULL;
        o.resume = 1;
        o.memory = 48u << 20;
        int rc = leat_dedup_text(&o, &st, &err);
        if (i == 0) assert_int_equal(rc, LEAT_EBUDGET);
        if (rc != 0) {
            assert_int_equal(rc, LEAT_EBUDGET);
            assert_non_null(strstr(err.message, "long.jsonl: line 101 of "));
            o.memory = (uint64_t)atoi(strstr(err.message, "raise memory to ") + 16) << 20;
            dedup_ok(&o, &st);
        }
        assert_int_equal(st.resumed, 1);
        assert_int_equal(st.bad, 0);
        assert_int_equal(st.kept, kept);
        same_files("all/kept-00000.jsonl", i ? "less2/kept-00000.jsonl" : "less1/kept-00000.jsonl");
        same_files("all/clusters.jsonl", i ? "less2/clusters.jsonl" : "less1/clusters.jsonl");
    }
}

/* Changes a bit of a file. */
static void flip(const char *name, long at)
{
    FILE *f = fopen(in_box(name), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(c ^ 16, f);
    fclose(f);
}

static void another_input_is_refused(void **state)
{
    leat_dedup_opts o = interrupted();
    char *before = load_text("c.jsonl");
    o.resume = 1;
    make_corpus("c.jsonl", 4001); /* another size */
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    if (!strstr(err.message, "c.jsonl: changed since the run began")) fail_msg("%s", err.message);
    put_text("c.jsonl", before);
    flip("c.jsonl", 100); /* other first bytes */
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    if (!strstr(err.message, "c.jsonl: changed since the run began")) fail_msg("%s", err.message);
    put_text("c.jsonl", before);
    put_text("d.jsonl", before); /* another path */
    const char *const inputs[] = {in_box("d.jsonl")};
    leat_dedup_opts other = o;
    other.inputs = inputs;
    assert_int_equal(leat_dedup_text(&other, &st, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "other inputs or options"));
    o.threshold = 0.9; /* another option */
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "other inputs or options"));
    leat__free(before);
}

/* The same size and the same first bytes: the run ends before anything is written. */
static void a_changed_input_is_refused(void **state)
{
    leat_dedup_opts o = interrupted();
    o.resume = 1;
    char *before = load_text("c.jsonl");
    flip("c.jsonl", 70000);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "c.jsonl: changed since the run began (use force to start over)"));
    put_text("c.jsonl", before); /* touched, but equal */
    dedup_ok(&o, &st);
    leat__free(before);
}

/* Also a file that was not read before the interruption. */
static void a_changed_later_input_is_refused(void **state)
{
    static const struct {
        uint32_t kind, level;
    } kinds[] = {{LEAT_DEDUP_FUZZY, LEAT_LEVEL_DOCUMENT},
                 {LEAT_DEDUP_EXACT, LEAT_LEVEL_DOCUMENT},
                 {LEAT_DEDUP_EXACT, LEAT_LEVEL_LINE},
                 {LEAT_DEDUP_EXACT, LEAT_LEVEL_SUBSTRING}};
    const char *const inputs[] = {in_box("c.jsonl"), in_box("later.jsonl")};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        make_corpus("c.jsonl", 4000);
        make_corpus("later.jsonl", 4000);
        leat_dedup_opts o = fuzzy_opts("c.jsonl", "s");
        o.inputs = inputs;
        o.input_count = 2;
        o.kind = kinds[i].kind;
        o.level = kinds[i].level;
        o.checkpoint_bytes = 1;
        o.replace = 1;
        o.progress = at_once;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
        o.progress = NULL;
        o.replace = 0;
        o.resume = 1;
        usleep(20000); /* longer than a tick of the clock of files */
        flip("later.jsonl", 70000);
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
        if (!strstr(err.message, "later.jsonl: changed since the run began")) fail_msg("%s", err.message);
    }
}

/* Files with the same inode, size and times are not hashed again; others are. */
static void stamps_are_compared(void **state)
{
    const char *in[] = {in_box("stamp.jsonl")};
    for (int change = 0; change < 2; change++) {
        leat__text_files f;
        leat__text_chunk c = {.data = (uint8_t *)"x\n", .len = 2};
        put_text("stamp.jsonl", "x\n");
        usleep(change ? 1000 : 2500000); /* too recent, or not */
        assert_int_equal(leat__text_files_open(&f, in, 1, 1 << 20, NULL), 0);
        assert_int_equal(leat__text_files_begin(&f, false, NULL), 0);
        assert_int_equal(f.stamp[0] == 0, change);
        leat__text_chunk_sum(&f, &c);
        assert_int_not_equal(c.sum, 0);
        assert_int_equal(leat__text_files_take(&f, &c, NULL), 0);
        assert_int_equal(leat__text_files_end(&f, NULL), 0);
        assert_int_equal(leat__text_files_begin(&f, true, NULL), 0);
        assert_int_equal(f.trusted[0], !change);
        put_text("stamp.jsonl", "y\n"); /* while it is read */
        c.data = (uint8_t *)"y\n";
        leat__text_chunk_sum(&f, &c);
        assert_int_equal(leat__text_files_take(&f, &c, NULL), 0);
        assert_int_equal(leat__text_files_end(&f, &err), LEAT_EDATA);
        assert_non_null(strstr(err.message, "stamp.jsonl: changed since the run began"));
        leat__text_files_reset(&f);
    }
}

static void damage_is_detected(void **state)
{
    static const char *const damaged[] = {"", "{", "[]", "{\"version\":6}",
                                          "{\"version\":4,\"settings\":\"\"}"};
    leat_dedup_opts o = interrupted();
    o.resume = 1;
    char *whole = load_text("s/.leat-work/state.json");
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        put_text("s/.leat-work/state.json", damaged[i]);
        int rc = leat_dedup_text(&o, &st, &err);
        assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT);
    }
    put_text("s/.leat-work/state.json", whole);
    flip("s/.leat-work/side-0", 5);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "side-0: is damaged"));
    flip("s/.leat-work/side-0", 5);
    flip("s/.leat-work/band-3", 100);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "band-3: is damaged"));
    put_text("s/.leat-work/side-0", "");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "use force to start over"));
    leat__free(whole);
}

/* Changes every digit of the state of an interrupted run in turn. */
static void check_digits(leat_dedup_opts o)
{
    const char *name = "s/.leat-work/state.json";
    o.resume = 1;
    char *whole = load_text(name);
    for (char *c = whole; *c; c++) {
        char before = *c;
        if (before < '0' || before > '9') continue;
        *c = before == '9' ? '8' : (char)(before + 1);
        put_text(name, whole);
        *c = before;
        int rc = leat_dedup_text(&o, &st, &err);
        if (rc != LEAT_EDATA && rc != LEAT_EFORMAT) fail_msg("digit %ld: %d", (long)(c - whole), rc);
        assert_non_null(strstr(err.message, "state.json: "));
        assert_non_null(strstr(err.message, "(use force to start over)"));
    }
    put_text(name, whole);
    leat__free(whole);
    dedup_ok(&o, &st);
    same_files("whole/kept-00000.jsonl", "s/kept-00000.jsonl");
}

static uint64_t stop_at;

static int at_some_time(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    return --stop_at == 0;
}

/* Stops a run at each of its first calls of progress, which are in different phases. */
static void every_changed_digit_is_refused(void **state)
{
    make_corpus("d.jsonl", 300);
    leat_dedup_opts o = fuzzy_opts("d.jsonl", "whole");
    o.bands = 3;
    dedup_ok(&o, &st);
    uint32_t phases = 0;
    for (uint64_t at = 1; at <= 40; at += 3) {
        o = fuzzy_opts("d.jsonl", "s");
        o.bands = 3;
        o.bands_per_iteration = 2;
        o.checkpoint_bytes = o.replace = 1;
        o.progress = at_some_time;
        stop_at = at;
        int rc = leat_dedup_text(&o, &st, &err);
        if (rc == 0) break;
        assert_int_equal(rc, LEAT_ECANCELED);
        if (!st.resumable) continue;
        char *text = load_text("s/.leat-work/state.json");
        uint32_t phase = strstr(text, "\"phase\":0") ? 1 : strstr(text, "\"phase\":1") ? 2 : 4;
        leat__free(text);
        o.progress = NULL;
        o.replace = 0;
        if (!(phases & phase)) check_digits(o);
        phases |= phase;
    }
    assert_true(phases & 1 && phases & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_options_are_refused),
        cmocka_unit_test(less_memory_loses_no_line),
        cmocka_unit_test(another_input_is_refused),
        cmocka_unit_test(a_changed_input_is_refused),
        cmocka_unit_test(a_changed_later_input_is_refused),
        cmocka_unit_test(stamps_are_compared),
        cmocka_unit_test(damage_is_detected),
        cmocka_unit_test(every_changed_digit_is_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
