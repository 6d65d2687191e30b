/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that meet trouble: samples that do not decode, a disk that does not answer.
 */
#include "tiny_loader.h"

#include "base/clock.h"
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

static void a_broken_disk_is_an_error_in_time(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        outcome r = {0};
        o.cache = (leat_cache)cache;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        leat__inject_rule rule = {.path = plain, .sys_errno = 5};
        assert_ok(leat__io_inject(&rule, NULL));
        uint64_t begin = leat__clock_ns();
        drain(l, &r);
        leat__io_inject_clear();
        if (r.rc != LEAT_EIO) fail_msg("cache %d: %d %s", cache, r.rc, r.err.message);
        assert_true(leat__clock_ns() - begin < LEAT_NS_PER_S);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_samples_go_to_the_policy),
        cmocka_unit_test(a_broken_disk_is_an_error_in_time),
    };
    return cmocka_run_group_tests(tests, make_packs, drop_packs);
}
