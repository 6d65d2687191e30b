/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_pack.h"

#include <leat/loader.h>

#include "base/mem.h"
#include "base/num.h"
#include "io/inject.h"
#include "loader/footprint.h"

#define PACK "loader-stats.leat"

static leat_loader *opened(void)
{
    leat_loader_opts o;
    leat_loader *l;
    leat_loader_opts_init(&o);
    o.batch_size = 10;
    o.ops = "RandomResizedCrop(16)";
    o.threads = 2;
    o.memory = 64 << 20;
    o.on_error = LEAT_ON_ERROR_SKIP;
    assert_ok(leat_loader_open(&l, PACK, &o, NULL));
    return l;
}

static void take(leat_loader *l, uint64_t epoch, int batches)
{
    leat_batch *b = NULL;
    assert_ok(leat_loader_begin(l, epoch, NULL));
    for (int i = 0; i < batches; i++) {
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        if (b == NULL) return;
        leat_batch_release(&b);
    }
}

static void the_epoch_and_all_epochs(void **state)
{
    leat_loader_stats one, all;
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 100, .classes = 2, .bad_every = 25});
    leat_loader *l = opened();
    assert_ok(leat_loader_read(l, &one, sizeof one));
    assert_int_equal(one.samples, 0);
    assert_int_equal(one.elapsed_ns, 0);
    assert_int_equal(one.budget_limit, 64 << 20);

    take(l, 0, 99);
    assert_ok(leat_loader_read(l, &one, sizeof one));
    assert_ok(leat_loader_read_all(l, &all, sizeof all));
    assert_int_equal(one.samples, 100);
    assert_int_equal(one.bad_samples, 4);
    assert_int_equal(all.samples, 100);
    assert_int_equal(one.stages[3].items, 10); /* collate: one per batch */
    assert_string_equal(one.stages[2].name, "decode");
    /* memory for batches and samples, and what workers are charged */
    const uint64_t blocks = leat__mem_used(LEAT__MEM_BATCH) + leat__mem_used(LEAT__MEM_PAGE);
    assert_in_range(one.budget_kept, 1, blocks);
    assert_in_range(one.budget_memory, blocks, blocks + 2 * LEAT__WORKER_RAM);
    assert_true(one.budget_memory_peak >= one.budget_memory);

    take(l, 1, 3);
    assert_ok(leat_loader_read(l, &one, sizeof one));
    assert_ok(leat_loader_read_all(l, &all, sizeof all));
    assert_int_equal(one.epoch, 1);
    assert_int_equal(one.samples, 30);
    assert_int_equal(all.samples, 130);
    assert_int_equal(all.batches, 13);
    assert_true(all.stages[3].items >= 13);
    assert_true(all.decode_ns > one.decode_ns);
    assert_true(all.stages[2].readiness >= 0 && all.stages[2].readiness <= 1);
    assert_int_equal(all.steps, 9 + 1); /* whole steps, the first of each epoch left out */
    leat_loader_close(&l);
    unlink(PACK);
    assert_no_leaks();
}

/* Reads of 20 ms want more in flight than a loader begins with: decided while epochs of half a
 * second follow each other, told with its reason, and kept for the next epoch. */
static void decisions_outlive_epochs(void **state)
{
    leat_loader_stats one;
    leat_decision d = {0};
    leat__inject_rule slow = {.path = PACK, .delay_ns = 20000000};
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 100, .classes = 2});
    assert_ok(leat__io_inject(&slow, NULL));
    leat_loader *l = opened();
    uint32_t told = 0;
    for (uint64_t epoch = 0; epoch < 60 && told == 0; epoch++) {
        take(l, epoch, 99);
        told = leat_loader_decisions(l, 0, &d, 1);
    }
    assert_int_equal(told, 1);
    assert_int_equal(d.knob, LEAT_KNOB_IO_DEPTH);
    assert_int_equal(d.from, 4); /* reads: a run has one sample here */
    assert_int_equal(d.to, 8);
    assert_non_null(strstr(d.reason, "read had tasks waiting"));
    take(l, 99, 0);
    assert_ok(leat_loader_read(l, &one, sizeof one));
    assert_true(one.io_depth >= 8);
    assert_int_equal(one.threads, 2); /* asked for: left alone */
    leat_loader_close(&l);
    leat__io_inject_clear();
    unlink(PACK);
    assert_no_leaks();
}

/* Runs two epochs with `memory` and checks that nothing was allocated beyond it or before it was charged. */
static void assert_within(const leat_loader_opts *o, uint64_t memory, uint32_t held, const char *what)
{
    leat_loader_opts opts = *o;
    leat_loader_stats s;
    leat_loader *l;
    leat_error err = {0};
    opts.memory = memory;
    assert_ok(leat_loader_open(&l, PACK, &opts, NULL));
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        leat_batch *lent[2] = {NULL}, *b;
        int rc;
        assert_ok(leat_loader_begin(l, epoch, NULL));
        while ((rc = leat_loader_next(l, &b, -1, &err)) == 0 && b != NULL) {
            leat_batch_release(&lent[1]);
            lent[1] = lent[0];
            lent[0] = b;
            if (held < 2) leat_batch_release(&lent[1]);
        }
        if (rc != 0) fail_msg("%s, %llu bytes: %s", what, (unsigned long long)memory, err.message);
        leat_batch_release(&lent[0]);
        leat_batch_release(&lent[1]);
    }
    assert_ok(leat_loader_read_all(l, &s, sizeof s));
    leat_loader_close(&l);
    if (s.budget_memory_peak > s.budget_peak || s.budget_peak > memory)
        fail_msg("%s: %llu bytes allocated, %llu charged, limit %llu", what,
                 (unsigned long long)s.budget_memory_peak, (unsigned long long)s.budget_peak,
                 (unsigned long long)memory);
}

static void memory_is_charged_before_it_is_allocated(void **state)
{
    static const char *const ops[] = {"RandomResizedCrop(32)", "RandomResizedCrop(144)",
                                      "RandomResizedCrop(112); ToDtype(f32)"};
    static const uint32_t batches[] = {1, 5, 32, 64}, threads[] = {1, 2, 5};
    static const leat_collate collates[] = {LEAT_COLLATE_STACK, LEAT_COLLATE_PAD, LEAT_COLLATE_LIST};
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 150, .classes = 2, .captions = true});
    const size_t kinds = LEAT_COUNT(ops) * LEAT_COUNT(batches) * LEAT_COUNT(threads);
    for (uint32_t i = 0; i < kinds * LEAT_COUNT(collates); i++) {
        leat_loader_opts o;
        leat_loader_stats s;
        leat_loader *l;
        char what[128];
        uint32_t at = i;
        leat_loader_opts_init(&o);
        o.ops = ops[at % LEAT_COUNT(ops)];
        at /= LEAT_COUNT(ops);
        o.batch_size = batches[at % LEAT_COUNT(batches)];
        at /= LEAT_COUNT(batches);
        o.threads = threads[at % LEAT_COUNT(threads)];
        at /= LEAT_COUNT(threads);
        o.collate = collates[at];
        o.memory = 256 << 20;
        if (o.collate != LEAT_COLLATE_STACK) o.ops = "RandomHorizontalFlip()";
        if (o.collate != LEAT_COLLATE_STACK && i % LEAT_COUNT(ops) > 0) continue;
        snprintf(what, sizeof what, "%s, batch %u, threads %u, collate %d", o.ops, o.batch_size, o.threads,
                 (int)o.collate);
        assert_ok(leat_loader_open(&l, PACK, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        assert_ok(leat_loader_read(l, &s, sizeof s));
        leat_loader_close(&l);
        const uint64_t least = s.floor_bytes;
        assert_within(&o, least, 1, what);
        assert_within(&o, least + least / 200, 1, what);
        assert_within(&o, least + least / 4, 1, what);
        assert_within(&o, 2 * least, 2, what);
    }
    unlink(PACK);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_epoch_and_all_epochs),
                                       cmocka_unit_test(decisions_outlive_epochs),
                                       cmocka_unit_test(memory_is_charged_before_it_is_allocated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
