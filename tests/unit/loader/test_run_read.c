/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the samples of runs: what is in memory already, blocks around pages, a disk that fails.
 */
#define PLAIN_SAMPLES 301
#include "tiny_loader.h"

#include "io/file.h"
#include "io/inject.h"

/* What the system has in memory is not read ahead: only the sample being decoded takes room, and
 * the bytes are the same as those of a disk that has to be waited for. */
static void what_is_in_memory_is_not_read_ahead(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader_stats s[2];
    outcome r[2] = {0};
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        leat__inject_rule rule = {.path = plain, .delay_ns = 1000};
        leat_loader *l;
        if (slow) assert_ok(leat__io_inject(&rule, NULL));
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        drain(l, &r[slow]);
        assert_ok(r[slow].rc);
        assert_ok(leat_loader_read(l, &s[slow], sizeof s[slow]));
        leat_loader_close(&l);
        leat__io_inject_clear();
    }
    assert_true(r[0].digest == r[1].digest);
    assert_int_equal(s[0].read_bytes, s[1].read_bytes);
    assert_int_equal(s[0].reads, s[1].reads);
    assert_no_leaks();
}

/* Pages start anywhere in a block: each is read once, with all blocks that contain it, and
 * that is what the meters say. */
static void reads_are_counted_as_wide_as_they_are(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader_stats s;
    leat_loader *l;
    leat_pack *pack;
    leat_pack_info info;
    outcome direct = {0}, plainly = {0};
    uint64_t bytes = 0, inside = 0;
    (void)state;
    assert_ok(leat_pack_open(&pack, plain, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    for (uint64_t i = 0; i < info.pages; i++) {
        leat_pack_page page;
        assert_ok(leat_pack_page_info(pack, i, &page, NULL));
        leat__span span = leat__span_around(page.offset, page.bytes);
        assert_true(span.offset <= page.offset && span.lead == page.offset - span.offset);
        assert_true(span.len >= span.lead + page.bytes && span.len % LEAT__IO_ALIGN == 0);
        bytes += span.len;
        inside += span.lead > 0;
    }
    leat_pack_close(&pack);
    assert_true(inside > 0);
    plainly = run_with(plain, &o, 0);
    o.cache = LEAT_CACHE_PROCESS;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    drain(l, &direct);
    assert_ok(leat_loader_read(l, &s, sizeof s));
    assert_int_equal(s.reads, info.pages);
    assert_int_equal(s.read_bytes, bytes);
    leat_loader_close(&l);
    assert_ok(direct.rc);
    assert_true(direct.digest == plainly.digest);
    assert_no_leaks();
}

static void a_broken_disk_is_an_error(void **state)
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
        drain(l, &r);
        leat__io_inject_clear();
        if (r.rc != LEAT_EIO) fail_msg("cache %d: %d %s", cache, r.rc, r.err.message);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* The file loses its end while it is being read: an error that says where, never a signal. */
static void a_file_cut_short_is_an_error(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        char copy[80];
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        outcome r = {0};
        snprintf(copy, sizeof copy, "%s.cut", plain);
        tiny_pack(copy, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES});
        o.cache = (leat_cache)(k % 2);
        set_order(&o, k / 2 ? LEAT_ORDER_SEQUENTIAL : LEAT_ORDER_RANDOM);
        assert_ok(leat_loader_open(&l, copy, &o, NULL));
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        leat_batch_release(&b);
        assert_int_equal(truncate(copy, 8192), 0);
        drain(l, &r);
        bool kept = o.cache == LEAT_CACHE_PROCESS && r.rc == 0; /* all pages had been read before */
        if (kept) assert_int_equal(r.samples, SAMPLES - o.batch_size);
        else if (r.rc != LEAT_EDATA) fail_msg("case %d: %d %s", k, r.rc, r.err.message);
        else assert_contains(r.err.message, copy);
        leat_loader_close(&l);
        unlink(copy);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_memory_is_not_read_ahead),
        cmocka_unit_test(reads_are_counted_as_wide_as_they_are),
        cmocka_unit_test(a_broken_disk_is_an_error),
        cmocka_unit_test(a_file_cut_short_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
