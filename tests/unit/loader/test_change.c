/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_loader_set against loaders that were opened with what was set.
 */
#include "tiny_loader.h"

#include "base/clock.h"
#include "base/num.h"

enum { SAMPLES = 90 };
static char path[64];
static const char small[] = "RandomResizedCrop(16); RandomHorizontalFlip()";

static int make(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-change-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = SAMPLES, .classes = 3, .captions = true});
    return 0;
}

static int drop(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void set(leat_loader *l, uint32_t batch, const char *ops, leat_when when)
{
    leat_loader_change c = LEAT_LOADER_CHANGE_INIT;
    c.batch_size = batch;
    c.ops = ops;
    c.when = when;
    assert_ok(leat_loader_set(l, &c, NULL));
}

static void epochs_are_those_of_a_new_loader(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
        for (int cache = 0; cache < 2; cache++) {
            leat_loader_opts o = base_opts();
            leat_loader *l;
            leat_batch *kept;
            o.threads = threads;
            o.cache = (leat_cache)cache;
            assert_ok(leat_loader_open(&l, path, &o, NULL));
            outcome a = {0}, b = {0}, c = {0};
            assert_ok(leat_loader_begin(l, 0, NULL));
            assert_ok(leat_loader_next(l, &kept, -1, NULL)); /* stays as it is through all changes */
            uint64_t before = leat__hash64(kept->fields[0].data, 16 * 3 * 24 * 24, 0);
            assert_ok(leat_loader_begin(l, 0, NULL));
            set(l, 32, small, LEAT_WHEN_EPOCH);
            assert_int_equal(leat_loader_batches(l), 3);
            assert_int_equal(leat_loader_field(l, 0)->shape[2], 16);
            drain(l, &a); /* the epoch that runs is not touched */
            assert_ok(leat_loader_begin(l, 1, NULL));
            drain(l, &b);
            set(l, 7, NULL, LEAT_WHEN_BATCH);            /* nothing runs: the next epoch */
            set(l, 0, base_opts().ops, LEAT_WHEN_EPOCH); /* adds to what waits */
            assert_ok(leat_loader_begin(l, 2, NULL));
            drain(l, &c);
            assert_int_equal(leat__hash64(kept->fields[0].data, 16 * 3 * 24 * 24, 0), before);
            leat_batch_release(&kept);
            leat_loader_close(&l);
            assert_true(a.rc == 0 && b.rc == 0 && c.rc == 0);
            assert_int_equal(a.digest, run_with(path, &o, 0).digest);
            o.batch_size = 7;
            outcome want = run_with(path, &o, 2);
            assert_int_equal(c.digest, want.digest);
            assert_int_equal(c.batches, want.batches);
            o.batch_size = 32;
            o.ops = small;
            want = run_with(path, &o, 1);
            assert_int_equal(b.digest, want.digest);
            assert_int_equal(b.batches, want.batches);
        }
    }
    assert_no_leaks();
}

/* In the middle of an epoch: samples continue where they were, batches begin where they would have. */
static void a_change_within_an_epoch(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= 2; world++) {
        for (uint32_t size = 1; size <= 45; size += 11) {
            leat_loader_opts o = base_opts();
            leat_loader *l, *want;
            leat_batch *b, *w;
            char text[LEAT_LOADER_STATE_MAX];
            size_t length;
            o.world = world;
            o.rank = world - 1;
            o.batch_size = 16 / world;
            o.drop_last = LEAT_DROP_NEVER;
            assert_ok(leat_loader_open(&l, path, &o, NULL));
            assert_ok(leat_loader_begin(l, 3, NULL));
            for (int i = 0; i < 2; i++) {
                assert_ok(leat_loader_next(l, &b, -1, NULL));
                leat_batch_release(&b);
            }
            set(l, size, small, LEAT_WHEN_BATCH);
            /* the state of now is that of a loader with the new size */
            assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &length, NULL));
            assert_non_null(strstr(text, "\"position\":32"));
            o.batch_size = size;
            o.ops = small;
            assert_ok(leat_loader_open(&want, path, &o, NULL));
            assert_ok(leat_loader_restore(want, text, NULL));
            uint64_t rows = 0, ends = 32 / world;
            for (;;) {
                assert_ok(leat_loader_next(l, &b, -1, NULL));
                assert_ok(leat_loader_next(want, &w, -1, NULL));
                assert_int_equal(b == NULL, w == NULL);
                if (b == NULL) break;
                assert_int_equal(b->samples, w->samples);
                assert_int_equal(b->index, w->index);
                assert_memory_equal(b->sample_hash, w->sample_hash, b->samples * 8);
                rows += b->samples;
                ends += b->samples;
                assert_true(ends % size == 0 || ends == SAMPLES / world);
                leat_batch_release(&b);
                leat_batch_release(&w);
            }
            assert_int_equal(rows, SAMPLES / world - 32 / world);
            leat_loader_close(&l);
            leat_loader_close(&want);
        }
    }
    assert_no_leaks();
}

static void what_cannot_be_changes_nothing(void **state)
{
    static const leat_loader_image two[] = {{.name = "a", .ops = small}, {.name = "b", .ops = small}};
    const leat_loader_change bad[] = {
        {.struct_size = sizeof bad[0], .ops = "RandomResizedCorp(3)"},
        {.struct_size = sizeof bad[0], .ops = small, .images = two, .image_count = 1},
        {.struct_size = sizeof bad[0], .image_count = 1},
        {.struct_size = sizeof bad[0], .images = two, .image_count = 2}, /* other fields */
        {.struct_size = sizeof bad[0], .batch_size = 1u << 30},
        {.struct_size = sizeof bad[0], .when = (leat_when)7},
        {.struct_size = 0}};
    const leat_loader_change huge = {.struct_size = sizeof huge, .ops = "Resize((8000, 8000))"};
    leat_loader_opts o = base_opts();
    leat_error err;
    leat_loader *l;
    outcome got = {0};
    (void)state;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    set(l, 8, NULL, LEAT_WHEN_EPOCH); /* before the first epoch: at once */
    assert_int_equal(leat_loader_batches(l), 12);
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        assert_code(LEAT_EINVAL, leat_loader_set(l, &bad[i], &err));
        assert_true(err.message[0] != '\0');
    }
    assert_code(LEAT_EBUDGET, leat_loader_set(l, &huge, &err));
    assert_code(LEAT_EINVAL, leat_loader_set(l, NULL, &err));
    assert_code(LEAT_EINVAL, leat_loader_set(NULL, &huge, &err));
    assert_ok(leat_loader_begin(l, 0, NULL));
    drain(l, &got);
    leat_loader_close(&l);
    o.batch_size = 8;
    assert_int_equal(got.digest, run_with(path, &o, 0).digest);
    const leat_loader_source mix = {.path = path, .weight = 1};
    o.sources = &mix;
    o.source_count = 1;
    o.mix_batches = LEAT_MIX_STRATIFIED;
    assert_ok(leat_loader_open(&l, NULL, &o, NULL));
    const leat_loader_change size = {.struct_size = sizeof size, .batch_size = 4};
    assert_code(LEAT_ENOTSUP, leat_loader_set(l, &size, &err));
    set(l, 0, small, LEAT_WHEN_EPOCH);
    leat_loader_close(&l);
    assert_no_leaks();
}

/* Waiting changes are dropped with the loader, and thousands of them leave nothing behind. */
static void changes_are_cheap(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *b;
    (void)state;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    uint64_t cpu = leat__clock_process_ns();
    for (int i = 0; i < 1000; i++) set(l, 1 + (uint32_t)i % 32, i % 2 ? small : o.ops, LEAT_WHEN_EPOCH);
    cpu = leat__clock_process_ns() - cpu;
    print_message("one change: %.0f us of CPU\n", (double)cpu / 1e6);
    assert_true(cpu < UINT64_C(1000) * 5000000); /* 5 ms each: in fact far below */
    for (int i = 0; i < 30; i++) {
        set(l, 1 + (uint32_t)i % 3, i % 2 ? small : o.ops, LEAT_WHEN_BATCH);
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        assert_int_equal(b->fields[0].shape[2], i % 2 ? 16 : 24);
        leat_batch_release(&b);
    }
    leat_loader_close(&l);
    assert_no_leaks();
}

/* Each allocation of a change fails in turn: the loader continues unchanged. */
static void without_memory(void **state)
{
    leat_loader_change c = LEAT_LOADER_CHANGE_INIT;
    leat_loader_opts o = base_opts();
    leat_loader *l;
    outcome got = {0};
    int rc = LEAT_ENOMEM;
    uint64_t n = 1;
    (void)state;
    if (!leat__fault_available()) skip();
    c.ops = small;
    c.batch_size = 9;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    for (; rc != 0; n++) {
        assert_true(n < 1000);
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        rc = leat_loader_set(l, &c, NULL);
        leat__fault_disarm();
        assert_int_equal(leat_loader_field(l, 0)->shape[2], rc == 0 ? 16 : 24);
    }
    assert_true(n > 10);
    assert_ok(leat_loader_begin(l, 0, NULL));
    drain(l, &got);
    leat_loader_close(&l);
    o.ops = small;
    o.batch_size = 9;
    assert_int_equal(got.digest, run_with(path, &o, 0).digest);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_those_of_a_new_loader),
        cmocka_unit_test(a_change_within_an_epoch),
        cmocka_unit_test(what_cannot_be_changes_nothing),
        cmocka_unit_test(changes_are_cheap),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
