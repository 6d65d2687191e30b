/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_pack.h"

#include <leat/loader.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_epoch_and_all_epochs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
