/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds against what batches really take, and what stands on them: with variable-size values far
 * above a page, every budget either runs to the end or is refused at open.
 */
#include "tiny_loader.h"

#include "base/num.h"
#include "base/rng.h"
#include "loader/bounds.h"

static char path[64];

/* Sample i has size(i) bytes, with i as their content. */
static void bytes_pack(uint32_t samples, uint64_t (*size)(uint32_t i))
{
    static const leat_field fields[] = {{.name = "data", .type = LEAT_FIELD_BYTES},
                                        {.name = "label", .type = LEAT_FIELD_INT}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;

    opts.fields = fields;
    opts.field_count = 2;
    opts.page_bytes = 65536;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    for (uint32_t i = 0; i < samples; i++) {
        char key[16];
        uint64_t n = size(i);
        unsigned char *bytes = malloc(n + 1);
        assert_non_null(bytes);
        memset(bytes, (int)i, n);
        leat_pack_value v[2] = {{.data = bytes, .size = n}, {.i = i}};
        leat_pack_sample s = {.key = key, .values = v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", i);
        assert_ok(leat_packer_append(p, &s, NULL));
        free(bytes);
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

static uint64_t large(uint32_t i)
{
    (void)i;
    return 256 << 10;
}

/* One value in 50 is 512 KiB, the others are small. */
static uint64_t uneven(uint32_t i)
{
    return i % 50 == 7 ? 512 << 10 : i % 97;
}

static int make_large(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-bounds-%d.leat", (int)getpid());
    bytes_pack(150, large);
    alarm(watchdog_s());
    return 0;
}

static int make_uneven(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-bounds-%d.leat", (int)getpid());
    bytes_pack(300, uneven);
    alarm(watchdog_s());
    return 0;
}

static int drop(void **state)
{
    (void)state;
    alarm(0);
    unlink(path);
    return 0;
}

/* Every sample of both epochs, right, and no batch above the bound. */
static void run_two_epochs(leat_loader *l, uint64_t (*size)(uint32_t), uint32_t samples)
{
    leat_batch *b;
    leat_error err;

    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        uint64_t seen = 0;
        int rc = leat_loader_begin(l, epoch, &err);
        if (rc != 0) fail_msg("begin: %s", err.message);
        while ((rc = leat_loader_next(l, &b, -1, &err)) == 0 && b != NULL) {
            const leat_tensor *t = &b->fields[0];
            for (uint32_t i = 0; i < b->samples; i++) {
                uint64_t id = b->sample_ids[i], n = (uint64_t)(t->offsets[i + 1] - t->offsets[i]);
                assert_int_equal(n, size((uint32_t)id));
                if (n > 0) assert_int_equal(((uint8_t *)t->data)[t->offsets[i + 1] - 1], (uint8_t)id);
            }
            assert_true(((leat__frame *)b)->bytes <= l->max_frame_bytes);
            seen += b->samples;
            leat_batch_release(&b);
        }
        if (rc != 0) fail_msg("epoch %d: %s", (int)epoch, err.message);
        assert_int_equal(seen, samples);
    }
    leat_loader_stats s;
    assert_ok(leat_loader_read(l, &s, sizeof s));
    assert_true(s.budget_peak <= s.budget_limit);
    assert_int_equal(s.floor_bytes, l->floor); /* what open promised is what the engine asked for */
}

static void large_values_and_a_page_cache_do_not_hang(void **state)
{
    static const struct {
        uint32_t batch, memory_mib;
        leat_order order;
    } cases[] = {{16, 24, LEAT_ORDER_RANDOM},
                 {48, 48, LEAT_ORDER_RANDOM},
                 {16, 24, LEAT_ORDER_QUASI},
                 {4, 12, LEAT_ORDER_RANDOM}};
    (void)state;
    for (uint32_t i = 0; i < LEAT_COUNT(cases); i++) {
        leat_loader *l;
        leat_error err;
        leat_loader_opts o = base_opts();
        o.ops = NULL;
        o.batch_size = cases[i].batch;
        o.memory = (uint64_t)cases[i].memory_mib << 20;
        set_order(&o, cases[i].order);
        o.cache = LEAT_CACHE_PROCESS;
        if (leat_loader_open(&l, path, &o, &err) != 0) fail_msg("case %u: %s", i, err.message);
        run_two_epochs(l, large, 150);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

static void too_small_a_budget_is_refused_at_open(void **state)
{
    leat_loader *l;
    leat_error err;
    leat_loader_opts o = base_opts();
    (void)state;
    o.ops = NULL;
    o.batch_size = 16;
    o.memory = 8 << 20;
    for (int cache = LEAT_CACHE_OS; cache <= LEAT_CACHE_PROCESS; cache++) {
        o.cache = (leat_cache)cache;
        assert_code(LEAT_EBUDGET, leat_loader_open(&l, path, &o, &err));
        assert_null(l);
        assert_contains(err.message, "batches of 16 samples need at least");
    }
    o.batch_size = 1;
    o.memory = 1;
    assert_code(LEAT_EBUDGET, leat_loader_open(&l, path, &o, &err));
    assert_contains(err.message, "batches of 1 sample need at least");
    o.batch_size = 16;
    /* with exactly what it asked for it runs */
    o.memory = 1 << 30;
    assert_ok(leat_loader_open(&l, path, &o, &err));
    o.memory = l->floor;
    leat_loader_close(&l);
    assert_ok(leat_loader_open(&l, path, &o, &err));
    run_two_epochs(l, large, 150);
    leat_loader_close(&l);
    o.memory--;
    assert_code(LEAT_EBUDGET, leat_loader_open(&l, path, &o, &err));
    assert_contains(err.message, ", 1 B more than");
    assert_no_leaks();
}

static void measured_bounds_are_the_largest_values(void **state)
{
    leat_pack *pack;
    leat_pack_info info;
    leat__ragged_bound b;
    static const uint64_t few[] = {7, 3, 60};
    (void)state;
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    assert_ok(leat__ragged_measure(pack, 0, NULL, info.samples, 4, false, &b, NULL));
    assert_int_equal(b.value, 512 << 10);
    assert_int_equal(b.batch, 4 * (512 << 10));
    assert_ok(leat__ragged_measure(pack, 0, NULL, info.samples, 8, false, &b, NULL));
    assert_int_equal(b.batch, 6 * (512 << 10) + 96 + 96); /* there are six large ones */
    assert_ok(leat__ragged_measure(pack, 0, NULL, info.samples, 8, true, &b, NULL));
    assert_int_equal(b.batch, 8 * (512 << 10));
    assert_ok(leat__ragged_measure(pack, 0, few, 3, 2, false, &b, NULL));
    assert_int_equal(b.batch, (512 << 10) + 60);
    assert_true(leat__ragged_assume(&info, 8, true).batch >= 8 * (512 << 10));
    assert_true(leat__ragged_assume(&info, 1 << 20, false).batch == info.bytes);
    leat_pack_close(&pack);
    assert_no_leaks();
}

static leat_loader_opts drawn_opts(leat__rng *rng)
{
    static const uint32_t batches[] = {1, 3, 16, 64, 300};
    leat_loader_opts o = base_opts();
    o.ops = NULL;
    o.batch_size = batches[leat__rng_below(rng, LEAT_COUNT(batches))];
    set_order(&o, (leat_order)leat__rng_below(rng, 3));
    o.cache = (leat_cache)leat__rng_below(rng, 2);
    o.threads = 1 + (uint32_t)leat__rng_below(rng, 4);
    o.prefetch = (uint32_t)leat__rng_below(rng, 4);
    o.io_depth = (uint32_t)leat__rng_below(rng, 3) * 8;
    return o;
}

/* A third of the budgets are exactly the floor, the others a little or a lot above it. */
static void drawn_configurations_end(void **state)
{
    leat__rng rng;
    (void)state;
    leat__rng_init(&rng, test_count("LEAT_SEED", 1), 0, 0, 0);
    for (uint64_t n = test_count("LEAT_SCHEDULES", 24); n > 0; n--) {
        leat_loader *l;
        leat_error err;
        leat_loader_opts o = drawn_opts(&rng);
        o.memory = 1 << 30;
        assert_ok(leat_loader_open(&l, path, &o, &err));
        uint64_t spare = leat__rng_below(&rng, 3) * leat__rng_below(&rng, 8 << 20);
        o.memory = l->floor + spare;
        leat_loader_close(&l);
        if (leat_loader_open(&l, path, &o, &err) != 0) fail_msg("%s", err.message);
        run_two_epochs(l, uneven, 300);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Two loaders of one budget: the cached pages of the first make way for the second. */
static void cached_pages_make_way_for_another_loader(void **state)
{
    leat_budget *budget;
    leat_loader *a, *b;
    leat_error err;
    leat_loader_opts o = base_opts();
    (void)state;
    assert_ok(leat_budget_open(&budget, 24 << 20, NULL));
    o.ops = NULL;
    o.batch_size = 8;
    o.budget = budget;
    o.cache = LEAT_CACHE_PROCESS;
    assert_ok(leat_loader_open(&a, path, &o, &err));
    o.cache = LEAT_CACHE_OS;
    assert_ok(leat_loader_open(&b, path, &o, &err));
    leat_budget_close(&budget); /* the loaders keep it alive */
    run_two_epochs(a, large, 150);
    assert_true(a->cache_user.bytes > 0);
    run_two_epochs(b, large, 150);
    leat_loader_close(&a);
    leat_loader_close(&b);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_values_and_a_page_cache_do_not_hang, make_large, drop),
        cmocka_unit_test_setup_teardown(too_small_a_budget_is_refused_at_open, make_large, drop),
        cmocka_unit_test_setup_teardown(cached_pages_make_way_for_another_loader, make_large, drop),
        cmocka_unit_test_setup_teardown(measured_bounds_are_the_largest_values, make_uneven, drop),
        cmocka_unit_test_setup_teardown(drawn_configurations_end, make_uneven, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
