/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of different size in a batch: pixels and sizes against batches of one, budgets from the floor up,
 * bad samples, options that do not go together.
 */
#include "tiny_loader.h"

#include "base/num.h"

#include "base/fault.h"

#define SAMPLES 90

static const char *const paths[] = {"sizes_good.leat", "sizes_bad.leat"};

static int make(void **state)
{
    (void)state;
    tiny_pack(paths[0], &(tiny_opts){.samples = SAMPLES, .classes = 3, .captions = true});
    tiny_pack(paths[1], &(tiny_opts){.samples = SAMPLES, .classes = 3, .bad_every = 7});
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) unlink(paths[i]);
    return 0;
}

static leat_loader_opts opts_of(leat_collate collate, const char *ops)
{
    leat_loader_opts o = base_opts();
    o.collate = collate;
    o.ops = ops;
    return o;
}

static const char *const pipelines[] = {"", "Resize(20); ColorJitter(0.4)", "RandomRotation(40, expand=true)",
                                        "Pad((1, 2, 3, 4)); ToDtype(f16); ToLayout(nhwc)"};

/* Hashes are of the images, not of what stands beside them: the same for any size of batch. */
static void digest_is_of_the_images(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(pipelines); i++) {
        for (leat_collate c = LEAT_COLLATE_PAD; c <= LEAT_COLLATE_RAGGED; c++) {
            leat_loader_opts o = opts_of(c, pipelines[i]);
            outcome first = run_with(paths[0], &o, 1);
            assert_ok(first.rc);
            assert_int_equal(first.samples, SAMPLES);
            for (uint32_t threads = 1; threads <= 7; threads += 3) {
                o.threads = threads;
                o.batch_size = threads == 4 ? 1 : 29;
                o.cache = threads == 7 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS;
                outcome again = run_with(paths[0], &o, 1);
                assert_ok(again.rc);
                assert_int_equal(again.samples, SAMPLES);
                assert_int_equal(again.digest, first.digest);
            }
        }
    }
}

/* Every row of a padded batch against the same row of a ragged one. */
static void compare_batches(const leat_batch *a, const leat_batch *b, uint8_t fill)
{
    const leat_tensor *pad = &a->fields[0], *own = &b->fields[0], *size = &a->fields[a->field_count - 1];
    const int64_t *whole = pad->shape + 1;
    int64_t most[2] = {0};

    assert_string_equal(size->name, "image_size");
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(own->offsets[b->samples], own->shape[0]);
    for (uint32_t r = 0; r < a->samples; r++) {
        const int64_t *s = own->ragged_shapes + 3 * (size_t)r;
        const int64_t *noted = (const int64_t *)size->data + 2 * (size_t)r;
        const uint8_t *from = (const uint8_t *)own->data + own->offsets[r];
        const uint8_t *to = (const uint8_t *)pad->data + r * pad->strides[0];
        assert_int_equal(own->offsets[r + 1] - own->offsets[r], s[0] * s[1] * s[2]);
        assert_memory_equal(noted, s + 1, 2 * sizeof *s);
        for (int64_t i = 0; i < pad->strides[0]; i++) {
            const int64_t x = i % whole[2], y = i / whole[2] % whole[1], c = i / whole[2] / whole[1];
            assert_int_equal(to[i], x < s[2] && y < s[1] ? from[(c * s[1] + y) * s[2] + x] : fill);
        }
        for (int d = 0; d < 2; d++) most[d] = LEAT_MAX(most[d], s[d + 1]);
    }
    if (a->bad == 0) assert_memory_equal(whole + 1, most, sizeof most);
}

static void padded_rows_are_the_images(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        leat_loader_opts o = opts_of(LEAT_COLLATE_PAD, "RandomRotation(30, expand=true)");
        leat_loader *l[2];
        leat_batch *a, *b;
        uint64_t bad = 0;
        o.on_error = LEAT_ON_ERROR_SKIP;
        o.pad_value = 200;
        assert_ok(leat_loader_open(&l[0], paths[k], &o, NULL));
        o.collate = LEAT_COLLATE_RAGGED;
        o.pad_value = 0;
        assert_ok(leat_loader_open(&l[1], paths[k], &o, NULL));
        for (;;) {
            assert_ok(leat_loader_next(l[0], &a, -1, NULL));
            assert_ok(leat_loader_next(l[1], &b, -1, NULL));
            assert_int_equal(a == NULL, b == NULL);
            if (a == NULL) break;
            compare_batches(a, b, 200);
            bad += a->bad;
            leat_batch_release(&a);
            leat_batch_release(&b);
        }
        assert_int_equal(bad > 0, k == 1);
        leat_loader_close(&l[0]);
        leat_loader_close(&l[1]);
    }
    assert_no_leaks();
}

static void floor_is_true(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        leat_loader_opts o = opts_of(i % 2 == 0 ? LEAT_COLLATE_PAD : LEAT_COLLATE_RAGGED,
                                     "RandomRotation(45, expand=true); Resize(30)");
        leat_loader_stats s = {0};
        leat_loader *l;
        o.on_error = LEAT_ON_ERROR_SKIP;
        o.threads = 1 + i / 2;
        assert_ok(leat_loader_open(&l, paths[1], &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        assert_ok(leat_loader_read(l, &s, sizeof s));
        leat_loader_close(&l);
        outcome roomy = run_with(paths[1], &o, 0);
        o.memory = s.floor_bytes;
        outcome tight = run_with(paths[1], &o, 0);
        assert_ok(tight.rc);
        assert_int_equal(tight.digest, roomy.digest);
        o.memory = s.floor_bytes - 1;
        assert_code(LEAT_EBUDGET, run_with(paths[1], &o, 0).rc);
    }
    assert_no_leaks();
}

/* The fields before a batch is there: -1 where batches differ. */
static void fields_are_told(void **state)
{
    leat_loader_opts o = opts_of(LEAT_COLLATE_PAD, "Grayscale(1)");
    leat_loader *l;
    (void)state;
    o.pad_mask = 1;
    o.pad_multiple = 32;
    assert_ok(leat_loader_open(&l, paths[1], &o, NULL));
    assert_int_equal(leat_loader_field_count(l), 4);
    const leat_tensor *image = leat_loader_field(l, 0), *mask = leat_loader_field(l, 3);
    assert_int_equal(image->shape[1], 1);
    assert_int_equal(image->shape[2], -1);
    assert_string_equal(leat_loader_field(l, 2)->name, "image_size");
    assert_string_equal(mask->name, "image_mask");
    assert_int_equal(mask->shape[2], -1);
    leat_loader_close(&l);
}

static void wrong_options_are_refused(void **state)
{
    const struct {
        leat_loader_opts o;
        const char *says;
    } cases[] = {
        {{.collate = LEAT_COLLATE_STACK}, "collate"},
        {{.collate = LEAT_COLLATE_RAGGED + 1}, "collate"},
        {{.collate = LEAT_COLLATE_PAD, .on_error = LEAT_ON_ERROR_REPLACE}, "replace"},
        {{.collate = LEAT_COLLATE_LIST, .pad_multiple = 8}, "pad_multiple has no effect"},
        {{.collate = LEAT_COLLATE_LIST, .pad_mask = 1}, "pad_mask has no effect"},
        {{.collate = LEAT_COLLATE_LIST, .pad_value = 1}, "pad_value has no effect"},
        {{.collate = LEAT_COLLATE_PAD, .pad_value = -1}, "pad_value -1"},
        {{.collate = LEAT_COLLATE_PAD, .pad_multiple = 1u << 20}, "pad_multiple"},
        {{.collate = LEAT_COLLATE_PAD, .device = "cuda"}, "device"},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        leat_loader_opts o = opts_of(cases[i].o.collate, "Resize(20)");
        leat_loader *l;
        leat_error err;
        o.on_error = cases[i].o.on_error;
        o.pad_multiple = cases[i].o.pad_multiple;
        o.pad_mask = cases[i].o.pad_mask;
        o.pad_value = cases[i].o.pad_value;
        o.device = cases[i].o.device;
        assert_code(o.device != NULL ? LEAT_ENOTSUP : LEAT_EINVAL, leat_loader_open(&l, paths[1], &o, &err));
        assert_non_null(strstr(err.message, cases[i].says));
    }
    assert_no_leaks();
}

/* Each allocation fails in turn: an error, and nothing left behind. */
static void without_memory(void **state)
{
    int rc = LEAT_ENOMEM;
    (void)state;
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; rc != 0; n++) {
        leat_loader_opts o = opts_of(LEAT_COLLATE_PAD, "Resize(20)");
        leat_loader *l = NULL;
        o.pad_mask = 1;
        assert_true(n < 2000);
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        rc = leat_loader_open(&l, paths[0], &o, NULL);
        leat__fault_disarm();
        leat_loader_close(&l);
        assert_no_leaks();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest_is_of_the_images),
        cmocka_unit_test(padded_rows_are_the_images),
        cmocka_unit_test(floor_is_true),
        cmocka_unit_test(fields_are_told),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
