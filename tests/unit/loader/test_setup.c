/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: what is refused and in which words, subsets, balance.
 */
#include "tiny_pack.h"

#include <dlfcn.h>

#include <leat/loader.h>
#include <leat/machine.h>

static char path[64];
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
    snprintf(path, sizeof path, "/tmp/leat-setup-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .captions = true});
    return 0;
}

static int drop_pack(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static leat_loader_opts small(void)
{
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.batch_size = 10;
    o.ops = "RandomResizedCrop(16)";
    o.threads = 1;
    o.memory = 32 << 20;
    return o;
}

static void refused(const leat_loader_opts *o, const char *words)
{
    leat_loader *l;
    leat_error err;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, path, o, &err));
    assert_null(l);
    assert_contains(err.message, words);
    assert_no_leaks();
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
    o = small(), o.rank = 2, o.world = 2, refused(&o, "rank 2 is not below the world size 2");
    o = small(), o.images = &image, o.image_count = 1, refused(&o, "either ops or images");
    o = small(), o.indices = far_away, o.index_count = 2, refused(&o, "90 is not below 90");
    o = small(), o.indices = far_away, refused(&o, "the subset is empty");
    o = small(), o.balance = "caption", o.order = LEAT_ORDER_RANDOM,
    refused(&o, "'caption' is not an int field");
    o = small(), o.balance = "label", o.order = LEAT_ORDER_QUASI, refused(&o, "must be random");
    o = small(), o.weights = weights, o.balance = "label", refused(&o, "either weights or balance");
    o = small(), o.weights = weights, o.order = LEAT_ORDER_RANDOM;
    refused(&o, "weights: 0 were given, there are 90 samples");
    o.weight_count = 89, refused(&o, "weights: 89 were given, there are 90 samples");
    o.weight_count = 90, o.indices = near, o.index_count = 2;
    refused(&o, "weights: 90 were given, there are 2 samples");
    o = small(), o.draws = 5, refused(&o, "draws needs");
    o = small(), o.streams = 4, refused(&o, "streams has no effect: order is not quasi_random");
    o = small(), o.window_pages = 4, refused(&o, "window_pages has no effect");
    o = small(), o.max_bad = 1, refused(&o, "max_bad has no effect: on_error is fail");
    o = small(), o.order = (leat_order)7, refused(&o, "order: 7 is not a valid value");
    o = small(), o.drop_last = 9, refused(&o, "drop_last: 9 is not a valid value");
    o = small(), o.ops = "RandomResizedCrp(16)", refused(&o, "RandomResizedCrop");
    o = small(), o.batch_size = 1 << 30, refused(&o, "batch size");
    o = small(), o.struct_size = 0, refused(&o, "not initialised");
    o = small();
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
    assert_ok(leat_loader_open(&l, path, o, NULL));
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
    leat_loader_opts o = small();
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
    o = small();
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
    leat_loader_opts o = small();
    (void)state;
    o.memory = 0;
    o.threads = 0; /* both defaults follow from the machine */
    nvidia = 0;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
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
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
