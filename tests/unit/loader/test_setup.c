/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: what is refused and in which words, subsets, balance.
 */
#include "tiny_loader.h"

#include <dlfcn.h>

#include <leat/machine.h>

static uint32_t nvidia; /* libraries that were asked for */

/* Takes the place of the system's. */
void *dlopen(const char *name, int flags)
{
    if (name != NULL && (strstr(name, "nvidia") != NULL || strstr(name, "cuda") != NULL)) {
        nvidia++;
        return NULL;
    }
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof next);
    return next(name, flags);
}

enum { SAMPLES = 90, CLASSES = 3 };

static int make_pack(void **state)
{
    (void)state;
    return make_shared_pack(&(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .captions = true});
}

static void wrong_options_are_named(void **state)
{
    static const leat_loader_image image = {.ops = "RandomResizedCrop(8)"};
    static const uint64_t far_away[] = {1, SAMPLES}, near[] = {1, 2};
    static const double weights[SAMPLES] = {1};
    leat_loader_opts o;
    leat_loader *l;
    leat_error err;
    (void)state;
    o = one_thread_opts(), o.rank = 2, o.world = 2,
    assert_refused(&o, "rank 2 is not below the world size 2");
    o = one_thread_opts(), o.images = &image, o.image_count = 1, assert_refused(&o, "either ops or images");
    o = one_thread_opts(), o.indices = far_away, o.index_count = 2, assert_refused(&o, "90 is not below 90");
    o = one_thread_opts(), o.indices = far_away, assert_refused(&o, "the subset is empty");
    o = one_thread_opts(), o.balance = "caption", o.order = LEAT_ORDER_RANDOM,
    assert_refused(&o, "'caption' is not an int field");
    o = one_thread_opts(), o.balance = "label", o.order = LEAT_ORDER_QUASI,
    assert_refused(&o, "must be random");
    o = one_thread_opts(), o.weights = weights, o.balance = "label",
    assert_refused(&o, "either weights or balance");
    o = one_thread_opts(), o.weights = weights, o.order = LEAT_ORDER_RANDOM;
    assert_refused(&o, "weights: 0 were given, there are 90 samples");
    o.weight_count = 89, assert_refused(&o, "weights: 89 were given, there are 90 samples");
    o.weight_count = 90, o.indices = near, o.index_count = 2;
    assert_refused(&o, "weights: 90 were given, there are 2 samples");
    o = one_thread_opts(), o.draws = 5, assert_refused(&o, "draws needs");
    o = one_thread_opts(), o.streams = 4,
    assert_refused(&o, "streams has no effect: order is not quasi_random");
    o = one_thread_opts(), o.window_pages = 4, assert_refused(&o, "window_pages has no effect");
    o = one_thread_opts(), o.max_bad = 1, assert_refused(&o, "max_bad has no effect: on_error is fail");
    o = one_thread_opts(), o.quarantine = "/nowhere/bad",
    assert_refused(&o, "quarantine has no effect: on_error is fail");
    o = one_thread_opts(), o.order = (leat_order)7, assert_refused(&o, "order: 7 is not a valid value");
    o = one_thread_opts(), o.drop_last = 9, assert_refused(&o, "drop_last: 9 is not a valid value");
    o = one_thread_opts(), o.ops = "RandomResizedCrp(16)", assert_refused(&o, "RandomResizedCrop");
    o = one_thread_opts(), o.batch_size = 1 << 30, assert_refused(&o, "batch size");
    o = one_thread_opts(), o.struct_size = 0, assert_refused(&o, "not initialised");
    o = one_thread_opts();
    assert_code(LEAT_ENOENT, leat_loader_open(&l, "/nowhere.leat", &o, &err));
    assert_contains(err.message, "/nowhere.leat");
    assert_no_leaks();
}

/* Counts how often each class comes. */
static uint64_t count_labels(const leat_loader_opts *o, uint64_t counts[CLASSES])
{
    leat_loader *l;
    leat_batch *b;
    uint64_t n = 0;
    memset(counts, 0, CLASSES * sizeof *counts);
    assert_ok(leat_loader_open(&l, shared_pack(), o, NULL));
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
        uint32_t label = 0;
        while (strcmp(b->fields[label].name, "label") != 0) label++;
        for (uint32_t i = 0; i < b->samples; i++) counts[((int64_t *)b->fields[label].data)[i]]++;
        n += b->samples;
        leat_batch_release(&b);
    }
    leat_loader_close(&l);
    return n;
}

static void subsets_and_balance(void **state)
{
    uint64_t indices[40], counts[CLASSES];
    double weights[SAMPLES] = {0};
    leat_loader_opts o = one_thread_opts();
    (void)state;
    for (uint64_t i = 0; i < 40; i++) indices[i] = i; /* 30 of class 0, 10 of class 1 */
    for (int order = 0; order < 3; order++) {
        o.order = (leat_order)order;
        o.indices = indices;
        o.index_count = 40;
        assert_int_equal(count_labels(&o, counts), 40);
        assert_int_equal(counts[0], 30);
        assert_int_equal(counts[1], 10);
    }
    o.order = LEAT_ORDER_RANDOM;
    o.balance = "label";
    o.draws = 4000;
    assert_int_equal(count_labels(&o, counts), 4000);
    assert_in_range(counts[0], 1850, 2150); /* half each, though three quarters are class 0 */
    assert_int_equal(counts[2], 0);
    o = one_thread_opts();
    o.order = LEAT_ORDER_RANDOM;
    o.weights = weights;
    o.weight_count = SAMPLES;
    weights[0] = 1;
    weights[SAMPLES - 1] = 3;
    o.draws = 2000;
    count_labels(&o, counts);
    assert_in_range(counts[2], 1400, 1600);
    assert_int_equal(counts[1], 0);
    /* a caller that was compiled before the count existed */
    o.struct_size = offsetof(leat_loader_opts, weight_count);
    o.weight_count = 7;
    assert_int_equal(count_labels(&o, counts), 2000);
    assert_in_range(counts[2], 1400, 1600);
    assert_no_leaks();
}

static void no_device_loads_no_library_of_its_driver(void **state)
{
    leat_loader *l;
    leat_batch *b;
    leat_machine m;
    leat_loader_opts o = one_thread_opts();
    (void)state;
    o.memory = 0;
    o.threads = 0; /* both defaults follow from the machine */
    nvidia = 0;
    assert_ok(leat_loader_open(&l, shared_pack(), &o, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    leat_batch_release(&b);
    leat_loader_close(&l);
    assert_int_equal(nvidia, 0);
    assert_ok(leat_machine_read(&m, sizeof m, NULL));
    assert_int_equal(nvidia, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_device_loads_no_library_of_its_driver),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(subsets_and_balance),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_shared_pack);
}
