/* SPDX-License-Identifier: Apache-2.0
 *
 * A deduplication in parts has the output of a run in one process.
 */
#include "curate/parts_box.h"

#define GROUPS 5

static leat_dedup_opts dedup_opts(parts_box *x, const char *out, uint32_t kind)
{
    leat_dedup_opts o;
    leat_dedup_opts_init(&o);
    o.inputs = x->files;
    o.input_count = x->file_count;
    o.output = in_box(out);
    o.kind = kind;
    if (kind == LEAT_DEDUP_FUZZY) o.shingle_words = 2;
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

/* What BEGIN answers. */
static void begin(parts_box *x, uint32_t *bands, uint32_t *against)
{
    static char settings[64];
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    x->part = (leat__part){.work = in_box("parts/.leat-work")};
    do_step(x, LEAT__PART_BEGIN, 0, &json);
    json_t *root = json_loads(leat__buf_str(&json), 0, NULL);
    assert_non_null(root);
    snprintf(settings, sizeof settings, "%s", json_string_value(json_object_get(root, "settings")));
    *bands = (uint32_t)json_integer_value(json_object_get(root, "bands"));
    *against = json_integer_value(json_object_get(root, "against")) > 0;
    assert_int_equal(json_array_size(json_object_get(root, "files")), x->file_count);
    json_decref(root);
    leat__buf_reset(&json);
    x->part.settings = settings;
    x->part.parts = x->ranges + *against;
    x->part.partitions = 3;
    x->part.groups = GROUPS;
}

/* All steps; tasks in reverse order, some of them twice. */
static void run_parts(parts_box *x, const leat_dedup_opts *o)
{
    uint32_t bands, first;
    x->dedup = o;
    begin(x, &bands, &first);
    if (first) do_step(x, LEAT__PART_SKETCH, 0, NULL);
    for (uint32_t i = x->ranges; i-- > 0;) {
        do_range(x, LEAT__PART_SKETCH, i + first, i);
        if (i % 3 == 1) do_range(x, LEAT__PART_SKETCH, i + first, i);
    }
    for (uint32_t side = 0; side < LEAT__SIDES; side++)
        for (int again = 0; again < 2; again++) do_step(x, LEAT__PART_GATHER, side, NULL);
    for (uint32_t g = GROUPS; g-- > 0;) {
        x->part.from = bands * x->part.partitions * g / GROUPS;
        x->part.to = bands * x->part.partitions * (g + 1) / GROUPS;
        do_step(x, LEAT__PART_GROUP, g, NULL);
        if (g == 2) do_step(x, LEAT__PART_GROUP, g, NULL);
    }
    do_step(x, LEAT__PART_RESOLVE, 0, NULL);
    do_step(x, LEAT__PART_RESOLVE, 0, NULL);
    for (uint32_t i = x->ranges; i-- > 0;) {
        do_range(x, LEAT__PART_WRITE, i + first, i);
        if (i % 2) do_range(x, LEAT__PART_WRITE, i + first, i);
    }
    if (x->named_early)
        assert_int_equal(
            rename(in_box("parts/.leat-work/out.kept-00001.jsonl"), in_box("parts/kept-00001.jsonl")), 0);
    join_box(x);
    assert_int_not_equal(access(in_box("parts/.leat-work"), F_OK), 0);
}

static void compare(parts_box *x, leat_dedup_opts o)
{
    leat_dedup_stats st;
    o.output = in_box("whole");
    dedup_ok(&o, &st);
    assert_true(st.removed > 100);
    o.output = in_box("parts");
    run_parts(x, &o);
    same_folders("whole", "parts");
}

static void the_same_bytes(void **state)
{
    static const uint64_t steps[] = {1, 100000, UINT64_MAX};
    parts_box x;
    make_lines("a.jsonl", 4500, 1, false);
    make_lines("b.jsonl.gz", 800, 2, true);
    make_lines("c.jsonl", 2200, 3, false);
    for (int i = 0; i < 3; i++) {
        box(&x, steps[i], true);
        leat_dedup_opts o = dedup_opts(&x, "whole", LEAT_DEDUP_FUZZY);
        o.shard_bytes = i == 1 ? 50000 : 0;
        compare(&x, o);
        o = dedup_opts(&x, "whole", LEAT_DEDUP_EXACT);
        o.compress = (uint32_t)i;
        o.shard_bytes = 30001;
        compare(&x, o);
    }
}

/* Parts begin at any line and write to their places in the output. Blocks are shared: most parts are shorter
 * than one, or a few long. */
static void places_in_the_output(void **state)
{
    static const uint64_t steps[] = {9000, 40000, 200000}, shards[] = {0, 65536, 200001, 30001};
    parts_box x;
    make_lines("a.jsonl", 9000, 1, false);
    make_lines("c.jsonl", 2200, 3, false);
    for (int i = 0; i < 6; i++) {
        box(&x, steps[i % 3] * 2, false);
        leat_dedup_opts o = dedup_opts(&x, "whole", i % 2 ? LEAT_DEDUP_EXACT : LEAT_DEDUP_FUZZY);
        o.shard_bytes = shards[i % 4];
        compare(&x, o);
        assert_true(x.counted > 0);
    }
    /* a run that was killed after it had named some of its files */
    leat_dedup_opts o = dedup_opts(&x, "parts", LEAT_DEDUP_EXACT);
    o.shard_bytes = 65536;
    x.named_early = true;
    compare(&x, o);
    assert_true(x.counted > 0);
}

static void other_choices(void **state)
{
    parts_box x;
    leat_dedup_stats st;
    box(&x, 1, true);
    leat_dedup_opts o = dedup_opts(&x, "whole", LEAT_DEDUP_FUZZY);
    o.keep = LEAT_KEEP_LONGEST;
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    compare(&x, o);
    o = dedup_opts(&x, "whole", LEAT_DEDUP_EXACT);
    o.keep = LEAT_KEEP_FIELD;
    o.keep_field = "n";
    compare(&x, o);
    /* a later batch, against the index of an earlier one */
    parts_box old = x;
    old.file_count = 1;
    o = dedup_opts(&old, "old", LEAT_DEDUP_FUZZY);
    o.index = 1;
    dedup_ok(&o, &st);
    o = dedup_opts(&x, "whole", LEAT_DEDUP_FUZZY);
    o.against = in_box("old");
    o.index = 1;
    compare(&x, o);
    dedup_ok(&o, &st);
    assert_true(st.removed_against > 1000);
}

/* A task that is killed leaves files behind; it is repeated with another token. */
static void killed_tasks(void **state)
{
    parts_box x;
    leat_dedup_stats st;
    leat_error err = {0};
    uint32_t bands, first;
    box(&x, 1, true);
    leat_dedup_opts o = dedup_opts(&x, "parts", LEAT_DEDUP_FUZZY);
    x.dedup = &o;
    begin(&x, &bands, &first);
    x.part.range = x.range[0];
    put_text("parts/.leat-work/task-dead/band-0", "half");
    put_text("parts/.leat-work/bands-00000.dead.tmp", "half");
    put_text("parts/.leat-work/bands-00000", "moved, but the marker is not there");
    do_step(&x, LEAT__PART_SKETCH, 0, NULL);
    /* steps before those that they need */
    assert_int_equal(try_step(&x, LEAT__PART_GATHER, 0, NULL, &err), LEAT_ENOENT);
    assert_int_equal(try_step(&x, LEAT__PART_RESOLVE, 0, NULL, &err), LEAT_ENOENT);
    /* an interrupted run is not replaced silently */
    put_text("parts/.leat-work/plan.json", "{}");
    o.replace = 0;
    assert_int_equal(try_step(&x, LEAT__PART_BEGIN, 0, NULL, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "use resume"));
    o.resume = 1;
    do_step(&x, LEAT__PART_BEGIN, 0, NULL);
    assert_int_equal(access(in_box("parts/.leat-work/sketch-00000.json"), F_OK), 0);
    o.resume = 0;
    o.replace = 1;
    do_step(&x, LEAT__PART_BEGIN, 0, NULL);
    assert_int_not_equal(access(in_box("parts/.leat-work/sketch-00000.json"), F_OK), 0);
    /* one machine starts over in such a folder and leaves nothing behind */
    put_text("parts/.leat-work/task-dead/band-0", "half");
    dedup_ok(&o, &st);
    assert_int_not_equal(access(in_box("parts/.leat-work"), F_OK), 0);
    o.level = LEAT_LEVEL_LINE;
    o.kind = LEAT_DEDUP_EXACT;
    o.shingle_words = 0;
    assert_int_equal(try_step(&x, LEAT__PART_BEGIN, 0, NULL, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes),
        cmocka_unit_test(places_in_the_output),
        cmocka_unit_test(other_choices),
        cmocka_unit_test(killed_tasks),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
