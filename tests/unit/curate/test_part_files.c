/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter run in parts has the output of a run in one process.
 */
#include "curate/parts_box.h"

static leat_filter_opts filter_opts(parts_box *x, const char *out)
{
    leat_filter_opts o;
    leat_filter_opts_init(&o);
    o.inputs = x->files;
    o.input_count = x->file_count;
    o.output = in_box(out);
    o.set = "words.min=4,mean_word_length.max=5.5";
    o.columns = "id,text,absent,n";
    o.memory = 256u << 20;
    o.threads = 2;
    o.replace = 1;
    return o;
}

static void box(parts_box *x, uint64_t step, bool chunks)
{
    *x = (parts_box){.files = {in_box("a.jsonl"), in_box("b.jsonl.gz"), in_box("c.jsonl")}, .file_count = 3};
    cut_box(x, step, chunks);
}

/* Parts in reverse order, one of them twice, one after it was killed. */
static void run_parts(parts_box *x, const leat_filter_opts *o)
{
    leat_error err = {0};
    leat_filter_opts bad = *o;
    bad.profile = "absent";
    x->filter = o;
    x->part = (leat__part){.work = in_box("parts/.leat-work"), .parts = x->ranges};
    do_step(x, LEAT__PART_BEGIN, 0, NULL);
    for (uint32_t i = x->ranges; i-- > 0;) {
        x->part.range = x->range[i];
        if (i == 1) { /* killed: it left a file under its temporary name */
            put_text("parts/.leat-work/part-00001.kept.killed.tmp", "half a li");
            x->filter = &bad;
            assert_int_equal(try_step(x, LEAT__PART_WRITE, i, NULL, &err), LEAT_EINVAL);
            x->filter = o;
        }
        do_range(x, LEAT__PART_WRITE, i, i);
        if (i % 2) do_range(x, LEAT__PART_WRITE, i, i);
    }
    join_box(x);
    assert_int_not_equal(access(in_box("parts/.leat-work"), F_OK), 0);
}

static void the_same_bytes(void **state)
{
    static const uint64_t steps[] = {1, 100000, UINT64_MAX}, shards[] = {0, 70001, 30001};
    parts_box x;
    leat_filter_stats st;
    leat_error err = {0};
    make_lines("a.jsonl", 7000, 1, false);
    make_lines("b.jsonl.gz", 1000, 2, true);
    make_lines("c.jsonl", 4500, 3, false);
    for (int i = 0; i < 3; i++) {
        box(&x, steps[i], true);
        if (i == 0) assert_true(x.ranges > 5);
        if (i == 2) assert_int_equal(x.ranges, 1);
        for (uint32_t compress = 0; compress < 3; compress++) {
            leat_filter_opts o = filter_opts(&x, "whole");
            o.compress = compress;
            o.shard_bytes = shards[(i + (int)compress) % 3];
            if (leat_filter_text(&o, &st, &err) != 0) fail_msg("%s", err.message);
            assert_true(st.kept > 1000 && st.dropped > 100 && st.bad > 5);
            o.output = in_box("parts");
            run_parts(&x, &o);
            same_folders("whole", "parts");
        }
    }
}

/* Parts begin at any line. Lines are counted for parts that need the number of one. */
static void uncounted_lines(void **state)
{
    static const uint64_t steps[] = {11000, 20011, 100000};
    parts_box x;
    leat_filter_stats st;
    leat_error err = {0};
    for (int i = 0; i < 3; i++) {
        box(&x, steps[i], false);
        assert_true(x.ranges >= 5);
        leat_filter_opts o = filter_opts(&x, "whole");
        o.shard_bytes = i ? 30001 : 0;
        if (leat_filter_text(&o, &st, &err) != 0) fail_msg("%s", err.message);
        o.output = in_box("parts");
        run_parts(&x, &o);
        same_folders("whole", "parts");
        assert_true(x.counted > 2);
        box(&x, steps[i], false);
        o.set = NULL; /* without reasons */
        o.output = in_box("whole");
        if (leat_filter_text(&o, &st, &err) != 0) fail_msg("%s", err.message);
        o.output = in_box("parts");
        run_parts(&x, &o);
        same_folders("whole", "parts");
        assert_true(x.counted > 2);
        if (i == 0) assert_true(x.counted < x.ranges / 2);
    }
    /* messages have the number of a line, too */
    leat_filter_opts o = filter_opts(&x, "parts");
    box(&x, 30000, false);
    o.set = NULL;
    o.fail_on_bad = 1;
    x.filter = &o;
    x.part = (leat__part){.work = in_box("parts/.leat-work"), .parts = x.ranges, .range = x.range[1]};
    do_step(&x, LEAT__PART_BEGIN, 0, NULL);
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    do_step(&x, LEAT__PART_WRITE, 1, &json);
    assert_string_equal(leat__buf_str(&json), "{\"uncounted\":true}");
    leat__buf_reset(&json);
    leat__text_range *r = &x.part.range;
    assert_int_equal(leat__text_count_lines(x.files[0], 0, r->offset, &r->line, NULL), 0);
    r->line++;
    assert_int_equal(try_step(&x, LEAT__PART_WRITE, 1, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "a.jsonl: line 983, offset"));
}

static void scores_and_nothing_kept(void **state)
{
    parts_box x;
    leat_filter_stats st;
    leat_error err = {0};
    box(&x, 1, true);
    leat_filter_opts o = filter_opts(&x, "whole");
    o.columns = NULL;
    o.score_only = 1;
    assert_int_equal(leat_filter_text(&o, &st, &err), 0);
    o.output = in_box("parts");
    run_parts(&x, &o);
    same_folders("whole", "parts");
    o = filter_opts(&x, "whole");
    o.set = "words.min=100"; /* nothing is kept */
    assert_int_equal(leat_filter_text(&o, &st, &err), 0);
    assert_int_equal(st.kept, 0);
    o.output = in_box("parts");
    run_parts(&x, &o);
    same_folders("whole", "parts");
}

/* Lines longer than a file of the output, and lines that fill one to its last byte. */
static void small_files(void **state)
{
    parts_box x = {.files = {in_box("s1.jsonl"), in_box("s2.jsonl"), in_box("s3.jsonl")}, .file_count = 3};
    leat_filter_stats st;
    leat_error err = {0};
    put_text("s1.jsonl", "{\"text\":\"a b c d\"}\n{\"text\":\"a b c d e f g h i j\"}\n{\"text\":\"a\"}\n");
    put_text("s2.jsonl", "{\"text\":\"a\"}\n");
    put_text("s3.jsonl", "{\"text\":\"a b c d\"}\n{\"text\":\"b c d e f\"}\n{\"text\":\"b c d e f g h\"}");
    for (uint32_t i = 0; i < 3; i++) x.range[i] = (leat__text_range){.file = i, .end_file = i + 1, .line = 1};
    x.ranges = 3;
    for (uint32_t bytes = 1; bytes < 130; bytes += 1 + bytes / 8) {
        leat_filter_opts o = filter_opts(&x, "whole");
        o.columns = NULL;
        o.shard_bytes = bytes;
        o.compress = bytes % 3;
        assert_int_equal(leat_filter_text(&o, &st, &err), 0);
        o.output = in_box("parts");
        run_parts(&x, &o);
        same_folders("whole", "parts");
    }
}

/* A task that is repeated after a kill reads lines that the other tasks did not read. */
static void a_changed_input_is_refused(void **state)
{
    leat_error err = {0};
    for (int change = 0; change < 3; change++) {
        parts_box x;
        make_lines("a.jsonl", 7000, 1, false);
        make_lines("c.jsonl", 4500, 3, false);
        box(&x, 100000, true);
        leat_filter_opts o = filter_opts(&x, "parts");
        x.filter = &o;
        x.part = (leat__part){.work = in_box("parts/.leat-work"), .parts = x.ranges};
        do_step(&x, LEAT__PART_BEGIN, 0, NULL);
        for (uint32_t i = 0; i < x.ranges; i++) {
            if (i == 1 && change == 1) put_text("c.jsonl", "{\"text\":\"a b c d\"}\n");
            if (i == 1 && change == 2) make_lines("c.jsonl", 4500, 4, false); /* of the same size */
            x.part.range = x.range[i];
            if (try_step(&x, LEAT__PART_WRITE, i, NULL, &err) != 0) break; /* now too short */
            assert_int_equal(chmod(in_box("c.jsonl"), 0600 + i), 0);       /* the content stays */
        }
        if (change == 0) {
            join_box(&x);
            continue;
        }
        assert_int_equal(try_step(&x, LEAT__PART_END, 0, NULL, &err), LEAT_EDATA);
        assert_non_null(strstr(err.message, "c.jsonl: changed since the run began"));
        assert_int_equal(leat__part_remove(x.part.work, NULL), 0);
    }
}

static void wrong_use(void **state)
{
    parts_box x;
    leat_error err = {0};
    box(&x, 1, true);
    leat_filter_opts o = filter_opts(&x, "parts");
    x.filter = &o;
    x.part = (leat__part){.work = in_box("parts/.leat-work"), .parts = x.ranges};
    o.replace = 0;
    assert_int_equal(try_step(&x, LEAT__PART_BEGIN, 0, NULL, &err), LEAT_EEXIST);
    o.replace = 1;
    do_step(&x, LEAT__PART_BEGIN, 0, NULL);
    x.part.range = (leat__text_range){.file = 1, .end_file = 1};
    assert_int_equal(try_step(&x, LEAT__PART_WRITE, 0, NULL, &err), LEAT_EINVAL);
    x.part.range = (leat__text_range){.end_file = 9};
    assert_int_equal(try_step(&x, LEAT__PART_WRITE, 0, NULL, &err), LEAT_EINVAL);
    assert_int_equal(try_step(&x, LEAT__PART_GROUP, 0, NULL, &err), LEAT_EINVAL);
    assert_int_equal(try_step(&x, LEAT__PART_JOIN, 0, NULL, &err), LEAT_ENOENT); /* no part is done */
    o.look = 3;
    assert_int_equal(try_step(&x, LEAT__PART_BEGIN, 0, NULL, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes),
        cmocka_unit_test(uncounted_lines),
        cmocka_unit_test(scores_and_nothing_kept),
        cmocka_unit_test(small_files),
        cmocka_unit_test(a_changed_input_is_refused),
        cmocka_unit_test(wrong_use),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
