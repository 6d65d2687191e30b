/* SPDX-License-Identifier: Apache-2.0
 *
 * Several packs in one loader, through the public interface.
 */
#include "tiny_loader.h"

#include <math.h>

#include "base/num.h"
#include "base/rng.h"

enum { A = 90, B = 25, TOTAL = A + B + 1 };
static char paths[4][64];

static int make(void **state)
{
    static const uint32_t samples[] = {A, B, 1, 0};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/leat-sources-%d-%u.leat", (int)getpid(), i);
        tiny_pack(paths[i], &(tiny_opts){.samples = samples[i], .classes = 3 + i, .captions = i != 1});
    }
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) unlink(paths[i]);
    return 0;
}

static const char *const plain[] = {"label"};

static leat_loader_opts labels_only(const leat_loader_source *s, uint32_t count)
{
    leat_loader_opts o = base_opts();
    o.ops = NULL;
    o.fields = plain;
    o.field_count = 1;
    o.sources = s;
    o.source_count = count;
    o.digest = 0;
    return o;
}

/* Images of concatenated packs, without random ops: the pixels of the parts. */
static void concatenation_gives_every_pack(void **state)
{
    const leat_loader_source all[] = {
        {.path = paths[0]}, {.path = paths[3]}, {.path = paths[1]}, {.path = paths[2]}};
    static const char *const fields[] = {"image", "label"};
    (void)state;
    uint8_t *want = malloc(TOTAL * 3 * 16 * 16), *at = want;
    leat_loader_opts o = base_opts();
    o.ops = "Resize((16, 16))";
    o.order = LEAT_ORDER_SEQUENTIAL;
    o.fields = fields;
    o.field_count = 2;
    for (int part = 0; part < 3; part++) {
        leat_loader *l;
        leat_batch *b;
        assert_ok(leat_loader_open(&l, paths[part], &o, NULL));
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
            memcpy(at, b->fields[0].data, b->samples * 3 * 256);
            at += b->samples * 3 * 256;
            leat_batch_release(&b);
        }
        leat_loader_close(&l);
    }
    o.sources = all;
    o.source_count = 4;
    for (int order = 0; order < 3; order++) {
        for (uint32_t threads = 1; threads <= 7; threads += 3) {
            for (int cache = 0; cache < 2; cache++) {
                leat_loader *l;
                leat_batch *b;
                uint8_t seen[TOTAL] = {0};
                o.order = (leat_order)order;
                o.threads = threads;
                o.cache = (leat_cache)cache;
                assert_ok(leat_loader_open(&l, NULL, &o, NULL));
                assert_int_equal(leat_loader_samples(l), TOTAL);
                while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
                    for (uint32_t i = 0; i < b->samples; i++) {
                        uint64_t id = b->sample_ids[i];
                        seen[id]++;
                        assert_memory_equal((uint8_t *)b->fields[0].data + i * 768, want + id * 768, 768);
                    }
                    leat_batch_release(&b);
                }
                for (int i = 0; i < TOTAL; i++) assert_int_equal(seen[i], 1);
                leat_loader_close(&l);
            }
        }
    }
    free(want);
    assert_no_leaks();
}

static uint32_t part_of(uint64_t id)
{
    return id < A ? 0 : id < A + B ? 1 : 2;
}

/* Worlds 1 to 64 share one order, and its proportions are those of the weights. */
static void worlds_share_one_order(void **state)
{
    const leat_loader_source mix[] = {{.path = paths[0], .weight = 0.7},
                                      {.path = paths[1], .weight = 0.2},
                                      {.path = paths[2], .weight = 0.1},
                                      {.path = paths[3]}};
    (void)state;
    for (int batches = 0; batches < 3; batches++) {
        leat_loader_opts o = labels_only(mix, 4);
        uint64_t order[1280], of[3] = {0}, id;
        o.epoch_size = 1280;
        o.mix_batches = (leat_mix_batches)batches;
        for (uint32_t world = 1; world <= 64; world *= 2) {
            leat_loader *l;
            o.world = world;
            o.batch_size = 64 / world;
            for (o.rank = 0; o.rank<world; o.rank += world> 8 ? 7 : 1) {
                assert_ok(leat_loader_open(&l, NULL, &o, NULL));
                for (uint64_t p = 0; p < leat_loader_samples(l); p++) {
                    assert_ok(leat_loader_sample_at(l, 3, p, &id, NULL));
                    if (world == 1) order[p] = id;
                    else assert_int_equal(id, order[p * world + o.rank]);
                }
                leat_loader_close(&l);
            }
        }
        for (int p = 0; p < 1280; p++) of[part_of(order[p])]++;
        assert_int_equal(of[0], 896);
        assert_int_equal(of[1], 256);
        assert_int_equal(of[2], 128);
    }
}

/* 200 times: a run is left somewhere in one world and resumed in another. */
static void resume_is_exact_in_other_worlds(void **state)
{
    const leat_loader_source mix[] = {
        {.path = paths[0], .weight = 3}, {.path = paths[1], .weight = 1}, {.path = paths[2], .weight = 1}};
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 9, 0, 0, 0);
    for (int round = 0; round < 200; round++) {
        leat_loader_opts o = labels_only(mix, 3);
        uint32_t world = 1u << leat__rng_below(&r, 4), other = 1u << leat__rng_below(&r, 4);
        uint64_t id, epoch = leat__rng_below(&r, 5), want[150];
        char text[LEAT_LOADER_STATE_MAX];
        size_t size;
        leat_loader *l;
        leat_batch *b;
        o.epoch_size = 145; /* the last global batch is a part of one */
        o.mix_batches = (leat_mix_batches)(round % 3);
        o.mix_replacement = round % 2;
        o.order = (leat_order)(round % 7 % 3);
        o.drop_last = LEAT_DROP_NEVER;
        o.batch_size = 16;
        assert_ok(leat_loader_open(&l, NULL, &o, NULL));
        uint64_t count = leat_loader_samples(l);
        for (uint64_t p = 0; p < count; p++) assert_ok(leat_loader_sample_at(l, epoch, p, &want[p], NULL));
        leat_loader_close(&l);

        o.world = world;
        o.batch_size = 16 / world;
        o.rank = (uint32_t)leat__rng_below(&r, world);
        o.threads = 1 + (uint32_t)leat__rng_below(&r, 3);
        assert_ok(leat_loader_open(&l, NULL, &o, NULL));
        assert_ok(leat_loader_begin(l, epoch, NULL));
        uint64_t batches = leat__rng_below(&r, leat_loader_batches(l) + 1);
        for (uint64_t i = 0; i < batches; i++) {
            assert_ok(leat_loader_next(l, &b, -1, NULL));
            leat_batch_release(&b);
        }
        assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
        leat_loader_close(&l);

        o.world = other;
        o.batch_size = 16 / other;
        o.rank = (uint32_t)leat__rng_below(&r, other);
        assert_ok(leat_loader_open(&l, NULL, &o, NULL));
        assert_ok(leat_loader_restore(l, text, NULL));
        uint64_t p = LEAT_MIN(batches * 16, count) + o.rank;
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
            for (uint32_t i = 0; i < b->samples; i++, p += other) {
                id = b->sample_ids[i];
                assert_int_equal(id, want[p]);
            }
            leat_batch_release(&b);
        }
        assert_true(p >= count);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

static void a_state_of_other_packs_is_refused(void **state)
{
    leat_loader_source mix[] = {{.path = paths[0], .weight = 3}, {.path = paths[1], .weight = 1}};
    leat_loader_opts o = labels_only(mix, 2);
    char text[LEAT_LOADER_STATE_MAX];
    leat_error err;
    leat_loader *l;
    size_t size;
    (void)state;
    assert_ok(leat_loader_open(&l, NULL, &o, NULL));
    assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
    assert_non_null(strstr(text, "\"packs\""));
    assert_ok(leat_loader_restore(l, text, NULL));
    leat_loader_close(&l);
    const struct {
        leat_loader_source s[2];
        uint32_t n;
        const char *says;
    } other[] = {{{{.path = paths[0], .weight = 3}, {.path = paths[2], .weight = 1}}, 2, "pack number 2"},
                 {{{.path = paths[0], .weight = 3}}, 1, "2 packs"},
                 {{{.path = paths[0], .weight = 2}, {.path = paths[1], .weight = 1}}, 2, "a mix of "},
                 {{{.path = paths[0]}, {.path = paths[1]}}, 2, "a mix of "}};
    for (size_t i = 0; i < LEAT_COUNT(other); i++) {
        o.sources = other[i].s;
        o.source_count = other[i].n;
        assert_ok(leat_loader_open(&l, NULL, &o, NULL));
        assert_code(LEAT_EINVAL, leat_loader_restore(l, text, &err));
        assert_contains(err.message, other[i].says);
        leat_loader_close(&l);
    }
}

/* A sample that comes several times in an epoch is not cropped alike each time. */
static void repeats_are_augmented_differently(void **state)
{
    const leat_loader_source mix[] = {{.path = paths[2], .repeat = 8}, {.path = paths[3]}};
    leat_loader_opts o = base_opts();
    uint64_t hash[8];
    leat_loader *l;
    leat_batch *b;
    (void)state;
    o.sources = mix;
    o.source_count = 2;
    o.batch_size = 8;
    assert_ok(leat_loader_open(&l, NULL, &o, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_int_equal(b->samples, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(b->sample_ids[i], 0);
        hash[i] = leat__hash64((uint8_t *)b->fields[0].data + i * 3 * 24 * 24, 3 * 24 * 24, 0);
        for (int k = 0; k < i; k++) assert_true(hash[i] != hash[k]);
    }
    leat_batch_release(&b);
    leat_loader_close(&l);
}

static void missing_fields_need_a_default(void **state)
{
    const leat_loader_source both[] = {{.path = paths[0]}, {.path = paths[1]}};
    const leat_loader_default caption = {.field = "caption"}, label = {.field = "label"},
                              none = {.field = "nobody"};
    leat_loader_opts o = base_opts();
    leat_error err;
    leat_loader *l;
    leat_batch *b;
    (void)state;
    o.sources = both;
    o.source_count = 2;
    o.order = LEAT_ORDER_SEQUENTIAL;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    assert_contains(err.message, "no field 'caption'");
    assert_contains(err.message, paths[1]);
    o.default_count = 1;
    o.defaults = &label;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    o.defaults = &caption;
    assert_ok(leat_loader_open(&l, NULL, &o, NULL));
    uint64_t rows = 0;
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
        const leat_tensor *t = &b->fields[2];
        for (uint32_t i = 0; i < b->samples; i++, rows++)
            assert_int_equal(t->offsets[i + 1] - t->offsets[i], rows < A ? rows % 17 : 0);
        leat_batch_release(&b);
    }
    assert_int_equal(rows, A + B);
    leat_loader_close(&l);
    o.defaults = &none;
    o.fields = plain;
    o.field_count = 1;
    o.ops = NULL;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    assert_contains(err.message, "no effect");
}

static void wrong_mixes_are_refused(void **state)
{
    const leat_loader_source one[] = {{.path = paths[0], .weight = 1}, {.path = paths[3], .weight = 1}};
    const leat_loader_source empty[] = {{.path = paths[3]}, {.path = paths[3]}}, lost[] = {{.path = NULL}};
    const double weights[A] = {1};
    leat_loader_opts o = labels_only(one, 2);
    leat_error err;
    leat_loader *l;
    (void)state;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    assert_contains(err.message, "no samples");
    o.source_count = 1;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, paths[0], &o, &err));
    assert_contains(err.message, "either a path or sources");
    o.weights = weights;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    o = labels_only(empty, 2);
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    assert_contains(err.message, "no samples");
    o = labels_only(lost, 1);
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    o = labels_only(NULL, 0);
    assert_code(LEAT_EINVAL, leat_loader_open(&l, NULL, &o, &err));
    assert_no_leaks();
}

/* Each allocation of opening a mix fails in turn: an error, and nothing left behind. */
static void without_memory(void **state)
{
    const leat_loader_source mix[] = {{.path = paths[0], .weight = 3}, {.path = paths[1], .weight = 1}};
    const uint64_t indices[] = {3, A + 2, 5};
    leat_loader *l = NULL;
    int rc = LEAT_ENOMEM;
    (void)state;
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; rc != 0; n++) {
        leat_loader_opts o = labels_only(mix, 2);
        o.indices = indices;
        o.index_count = 3;
        o.order = LEAT_ORDER_QUASI;
        assert_true(n < 2000);
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        rc = leat_loader_open(&l, NULL, &o, NULL);
        leat__fault_disarm();
        leat_loader_close(&l);
        assert_no_leaks();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concatenation_gives_every_pack),
        cmocka_unit_test(worlds_share_one_order),
        cmocka_unit_test(resume_is_exact_in_other_worlds),
        cmocka_unit_test(a_state_of_other_packs_is_refused),
        cmocka_unit_test(repeats_are_augmented_differently),
        cmocka_unit_test(missing_fields_need_a_default),
        cmocka_unit_test(wrong_mixes_are_refused),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
