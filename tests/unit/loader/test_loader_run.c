/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that meet trouble: samples that do not decode, an epoch that is left.
 */
#include "tiny_loader.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "io/file.h"
#include "io/inject.h"

static char plain[64], damaged[64];
enum { SAMPLES = 301, CLASSES = 7, BAD_EVERY = 20 };

static int make_packs(void **state)
{
    (void)state;
    snprintf(plain, sizeof plain, "/tmp/leat-run-%d.leat", (int)getpid());
    snprintf(damaged, sizeof damaged, "/tmp/leat-run-bad-%d.leat", (int)getpid());
    tiny_pack(plain, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .captions = true});
    tiny_pack(damaged, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .bad_every = BAD_EVERY});
    return 0;
}

static int drop_packs(void **state)
{
    (void)state;
    unlink(plain);
    unlink(damaged);
    return 0;
}

static void bad_samples_go_to_the_policy(void **state)
{
    uint64_t expected = 0;
    char list[96];
    (void)state;
    snprintf(list, sizeof list, "%s.bad", damaged);
    for (uint32_t i = 0; i < SAMPLES; i++) expected += i % BAD_EVERY == BAD_EVERY / 2;
    uint64_t digest[2] = {0, 0};
    for (uint32_t threads = 1; threads <= 4; threads++) {
        leat_loader_opts o = base_opts();
        o.threads = threads;
        outcome r = run_with(damaged, &o, 0);
        assert_true(r.rc == LEAT_EDATA);
        assert_contains(r.err.message, ".jpg");
        assert_true(r.err.sample % BAD_EVERY == BAD_EVERY / 2);
        for (int policy = 0; policy < 2; policy++) {
            unlink(list);
            o.on_error = policy == 0 ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_REPLACE;
            o.quarantine = list;
            r = run_with(damaged, &o, 0);
            if (r.rc != 0) fail_msg("%s", r.err.message);
            assert_int_equal(r.bad, expected);
            assert_int_equal(r.samples, policy == 0 ? SAMPLES - expected : SAMPLES);
            if (digest[policy] == 0) digest[policy] = r.digest;
            assert_true(r.digest == digest[policy]);
            FILE *f = fopen(list, "r");
            char line[4096];
            uint64_t lines = 0;
            while (fgets(line, sizeof line, f) != NULL) lines++;
            fclose(f);
            assert_int_equal(lines, expected);
        }
        o.quarantine = NULL;
        o.max_bad = 3;
        r = run_with(damaged, &o, 0);
        assert_true(r.rc == LEAT_EDATA);
        assert_contains(r.err.message, "more than the 3 allowed");
    }
    unlink(list);
    assert_no_leaks();
}

static int slow_sample(void *cookie, void *const *rows, uint32_t fields, uint64_t id, uint64_t epoch,
                       uint64_t random)
{
    (void)rows, (void)fields, (void)id, (void)epoch, (void)random;
    atomic_fetch_add((atomic_uint *)cookie, 1);
    leat__sleep_ns(4 * LEAT_NS_PER_MS);
    return 0;
}

/* Packs all samples of `from` again, with the version of the format that is written now. */
static void pack_again(const char *from, const char *to)
{
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer;
    leat_pack *pack;
    leat_sample *s;
    leat_field fields[2];
    assert_ok(leat_pack_open(&pack, from, NULL, NULL));
    assert_int_equal(leat_pack_field_count(pack), 2); /* image, label */
    for (uint32_t f = 0; f < 2; f++) fields[f] = *leat_pack_field(pack, f);
    opts.fields = fields;
    opts.field_count = 2;
    opts.page_bytes = 65536;
    opts.no_sync = 1;
    assert_ok(leat_packer_open(&packer, to, &opts, NULL));
    assert_ok(leat_sample_open(&s, pack, NULL));
    for (uint64_t i = 0; i < leat_pack_count(pack); i++) {
        leat_view image, label;
        leat_pack_value v[2] = {0};
        assert_ok(leat_sample_read(s, i, NULL));
        assert_ok(leat_sample_field(s, 0, &image, NULL));
        assert_ok(leat_sample_field(s, 1, &label, NULL));
        v[0] = (leat_pack_value){.data = image.data,
                                 .size = image.size,
                                 .image = image.image,
                                 .entries = image.entries,
                                 .entries_size = image.entries_size};
        memcpy(&v[1].i, label.data, sizeof v[1].i);
        leat_pack_sample sample = {.values = v};
        sample.key = leat_sample_key(s, &sample.key_size);
        assert_ok(leat_packer_append(packer, &sample, NULL));
    }
    assert_ok(leat_packer_finish(packer, NULL, NULL));
    leat_packer_close(&packer);
    leat_sample_close(&s);
    leat_pack_close(&pack);
}

/* The same samples in a pack of an older and of this version of the format: the same batches. */
static void packs_of_older_versions_are_loaded(void **state)
{
    const char *data = getenv("LEAT_TEST_DATA");
    char path[2][1024];
    uint64_t digest = 0;
    (void)state;
    if (data == NULL) skip();
    snprintf(path[0], sizeof path[0], "%s/images-1.1.leat", data);
    snprintf(path[1], sizeof path[1], "%s.again", plain);
    pack_again(path[0], path[1]);
    for (int variant = 0; variant < 8; variant++) {
        leat_pack *pack;
        leat_pack_info info;
        leat_loader_opts o = base_opts();
        o.batch_size = 5;
        o.cache = variant / 2 % 2 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS;
        set_order(&o, LEAT_ORDER_RANDOM);
        o.threads = variant / 4 ? 1 : 3;
        outcome r = run_with(path[variant % 2], &o, 0);
        if (r.rc != 0) fail_msg("%s: %s", path[variant % 2], r.err.message);
        assert_int_equal(r.samples, 12);
        if (variant == 0) digest = r.digest;
        assert_true(r.digest == digest);
        assert_ok(leat_pack_open(&pack, path[variant % 2], NULL, NULL));
        assert_ok(leat_pack_info_read(pack, &info, sizeof info));
        assert_int_equal(info.version_major, 1 + variant % 2);
        assert_true(info.pages > 1);
        leat_pack_close(&pack);
    }
    unlink(path[1]);
    assert_no_leaks();
}

static void leaving_an_epoch_waits_for_a_sample_not_a_run(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *b;
    atomic_uint begun = 0;
    uint32_t after = 0, epochs = 5;
    (void)state;
    o.threads = 1;
    o.batch_size = 64; /* runs of 16 */
    o.fields = (const char *const[]){"image", "label"};
    o.field_count = 2;
    o.sample_fn = slow_sample;
    o.sample_cookie = &begun;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (uint64_t e = 0; e < epochs; e++) {
        assert_ok(leat_loader_begin(l, e, NULL));
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        leat_batch_release(&b);
        uint32_t before = atomic_load(&begun);
        leat_loader_stop(l);
        after += atomic_load(&begun) - before;
    }
    leat_loader_close(&l);
    assert_true(after <= 4 * epochs);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_of_older_versions_are_loaded),
        cmocka_unit_test(leaving_an_epoch_waits_for_a_sample_not_a_run),
        cmocka_unit_test(bad_samples_go_to_the_policy),
    };
    return cmocka_run_group_tests(tests, make_packs, drop_packs);
}
