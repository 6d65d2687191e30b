/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic, and a loader that is held back until its queues are full against it.
 */
#include "tiny_loader.h"

#include "base/clock.h"
#include "loader/footprint.h"

static leat__footprint_facts facts(void)
{
    return (leat__footprint_facts){.batch = 128,
                                   .threads = 1,
                                   .prefetch = 3,
                                   .io_depth = 4,
                                   .frame_bytes = 20 << 20,
                                   .sample_bytes = 110000,
                                   .max_sample_bytes = 600000};
}

static void runs_share_a_batch_among_workers(void **state)
{
    (void)state;
    assert_int_equal(leat__run_samples(256, 2, 9000), 16);
    assert_int_equal(leat__run_samples(64, 4, 9000), 4);
    assert_int_equal(leat__run_samples(8, 16, 9000), 1);
    assert_int_equal(leat__run_samples(1 << 20, 1, 9000), LEAT__RUN_MAX);
    assert_int_equal(leat__run_samples(256, 1, 1024), 64); /* tiny ones are less work than handing on */
    assert_int_equal(leat__run_samples(256, 1, 1025), LEAT__RUN_MAX);
    assert_int_equal(leat__run_usual(256, 2, 1000, 60 << 20), 16);
    assert_int_equal(leat__run_usual(256, 2, 600000, 60 << 20), 4); /* three are less than 2 MiB */
    assert_int_equal(leat__run_usual(256, 2, 50 << 20, 60 << 20), 1);
    assert_int_equal(leat__run_usual(256, 2, 0, 60 << 20), 16);
}

/* 12 runs of 16 samples in flight: one batch and a half, beside the one that comes in. */
static void parts_add_up(void **state)
{
    leat__footprint_facts f = facts();
    leat__footprint p;
    (void)state;
    leat__footprint_of(&f, &p);
    assert_int_equal(p.window, 12);
    assert_int_equal(p.frames, 3 + 1 + 1 + 2);
    assert_int_equal(p.waiting + p.lent + p.filling, p.frames * f.frame_bytes);
    assert_int_equal(p.resident, p.waiting + p.lent + p.filling + p.reading + p.scratch + p.process);
    assert_true(p.budget > p.resident - p.process - p.scratch);
    assert_true(p.floor < p.budget && p.floor >= 3 * f.frame_bytes);
}

static void each_fact_moves_its_part(void **state)
{
    leat__footprint_facts f = facts();
    leat__footprint a, b;
    (void)state;
    leat__footprint_of(&f, &a);
    f.prefetch = 5;
    leat__footprint_of(&f, &b);
    assert_int_equal(b.resident - a.resident, 2 * f.frame_bytes);
    f = facts();
    f.in_memory = true; /* nothing is read ahead */
    leat__footprint_of(&f, &b);
    assert_true(b.reading < a.reading / 2);
    assert_int_equal(b.budget, a.budget);
    f = facts();
    f.busy = 0.2; /* what was read is decoded at once */
    leat__footprint_of(&f, &b);
    assert_int_equal(b.reading, a.reading - (a.window - (f.io_depth + f.threads + 1)) * 16 * f.sample_bytes);
    assert_int_equal(b.budget, a.budget);
    f.busy = 0.9; /* as good as always */
    leat__footprint_of(&f, &b);
    assert_int_equal(b.reading, a.reading);
    f = facts();
    f.io_depth = 8;
    leat__footprint_of(&f, &b);
    assert_int_equal(b.reading - a.reading, 8 * 16 * f.sample_bytes);
    f = facts();
    f.threads = 3;
    leat__footprint_of(&f, &a);
    f.max_image_bytes = 90 << 20; /* one worker has the largest, the others any */
    f.image_bytes = 1 << 20;
    f.max_used_image_bytes = 60 << 20;
    f.used_image_bytes = 1 << 20;
    leat__footprint_of(&f, &b);
    assert_int_equal(b.images, (90 + 2 * 6) << 20);
    assert_int_equal(b.used_images, (60 + 2 * 6) << 20);
    assert_int_equal(b.resident - a.resident, b.used_images);
    assert_int_equal(b.budget - a.budget, b.images);
    f = facts();
    f.io_depth = 8;
    f.sample_bytes = 3 << 20; /* one sample fills a run */
    leat__footprint_of(&f, &b);
    assert_int_equal(b.frames, 3 + 1 + 1 + 1);
}

/* Batches of 32 with one thread: 12 runs of 8 samples are three batches exactly, and touch up to five.
 * Measured: nine batches in memory. */
static void runs_that_fill_batches_exactly_touch_one_more(void **state)
{
    leat__footprint_facts f = facts();
    leat__footprint p;
    (void)state;
    f.batch = 32;
    leat__footprint_of(&f, &p);
    assert_int_equal(p.frames, 3 + 1 + 5);
    f.batch = 512; /* less than one */
    leat__footprint_of(&f, &p);
    assert_int_equal(p.frames, 3 + 1 + 2);
}

/* A mixed pack: one large raw image among small JPEGs. Only the workers' own blocks grow to it. */
static void one_large_sample_counts_once_per_worker(void **state)
{
    leat__footprint_facts f = facts();
    leat__footprint a, b;
    (void)state;
    f.in_memory = true;
    f.threads = 2;
    f.max_sample_bytes = 6000000;
    leat__footprint_of(&f, &a);
    assert_int_equal(a.reading, 2 * 6000000 + 2 * 2 * 110000);
    f.in_memory = false;
    leat__footprint_of(&f, &a);
    f.max_sample_bytes = 9000000;
    leat__footprint_of(&f, &b);
    assert_int_equal(b.reading - a.reading, 2 * 3000000);
    f.threads = 20; /* more than blocks: no underflow */
    leat__footprint_of(&f, &b);
    assert_true(b.reading >= 20 * UINT64_C(9000000) && b.reading < UINT64_C(1) << 32);
}

/* Never more batches than it says, and all of them while the consumer rests. */
static void a_held_back_loader_fills_what_it_says(void **state)
{
    char path[64];
    leat_loader *l = NULL;
    leat_error err;
    leat_loader_stats s;
    leat__footprint p;
    leat_loader_opts o = base_opts();
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-footprint-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = 400, .classes = 3});
    o.prefetch = 2;
    o.threads = 2;
    o.digest = 0;
    assert_ok(leat_loader_open(&l, path, &o, &err));
    assert_ok(leat_loader_begin(l, 0, &err));
    leat_batch *b = NULL;
    assert_ok(leat_loader_next(l, &b, -1, &err));
    uint64_t frame = 16 * (3 * 24 * 24 + 16), used = 0;
    leat__footprint_facts f = {.batch = 16,
                               .threads = 2,
                               .prefetch = 2,
                               .io_depth = 4,
                               .frame_bytes = frame,
                               .sample_bytes = 2000,
                               .max_sample_bytes = 4000};
    leat__footprint_of(&f, &p);
    for (int i = 0; i < 500 && used < (p.frames - 2) * frame; i++) { /* until nothing moves */
        leat__sleep_ns(LEAT_NS_PER_S / 100);
        assert_ok(leat_loader_read(l, &s, sizeof s));
        used = s.budget_used;
    }
    assert_true(used >= (p.frames - 2) * frame);
    assert_true(s.budget_peak <= p.budget + p.frames * frame);
    leat_batch_release(&b);
    leat_loader_close(&l);
    unlink(path);
}

/* Few samples per batch: more batches ahead, while they take little memory. */
static void small_batches_are_made_further_ahead(void **state)
{
    (void)state;
    assert_int_equal(leat__prefetch_first(256, 38 << 20, 4), 4);
    assert_int_equal(leat__prefetch_first(8, 24 << 20, 4), 4);
    assert_int_equal(leat__prefetch_first(4, 600 << 10, 4), 8);
    assert_int_equal(leat__prefetch_first(1, 150 << 10, 4), 32);
    assert_int_equal(leat__prefetch_first(1, 2 << 20, 4), 8);
    assert_int_equal(leat__prefetch_first(1, 3 << 20, 8), 8); /* a device decodes as many at once */
}

/* The floor has room for an image where a batch is larger than a run; the other workers' scratch counts only
 * above it. */
static void the_least_budget_is_enough_for_an_image(void **state)
{
    const uint64_t run = 6 << 20, frame = 10 << 20, ram = LEAT__WORKER_RAM;
    const uint64_t floor = leat__footprint_floor(run, frame);
    (void)state;
    assert_int_equal(leat__footprint_least(floor, run, frame, 8, 0), floor);
    assert_int_equal(leat__footprint_least(floor, run, frame, 8, 4 << 20), floor);
    assert_int_equal(leat__footprint_least(floor, run, frame, 8, 5 << 20),
                     run + 2 * frame + 8 * ram + (5 << 20));
    assert_true(leat__footprint_least(floor, UINT64_MAX, frame, 8, 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_share_a_batch_among_workers),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(each_fact_moves_its_part),
        cmocka_unit_test(runs_that_fill_batches_exactly_touch_one_more),
        cmocka_unit_test(one_large_sample_counts_once_per_worker),
        cmocka_unit_test(a_held_back_loader_fills_what_it_says),
        cmocka_unit_test(small_batches_are_made_further_ahead),
        cmocka_unit_test(the_least_budget_is_enough_for_an_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
