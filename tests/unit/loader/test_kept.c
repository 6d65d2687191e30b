/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept samples against the pack's own reads, within their limit; and a loader that keeps them, which
 * delivers what one without does, inside its budget.
 */
#include "tiny_loader.h"

#include "../io/webtest.h"

#include "base/num.h"
#include "loader/kept.h"
#include "loader/setup.h"
#include "pack/reader.h"

enum { SAMPLES = 4000 };

static char path[64];

static uint64_t size_of(uint32_t i)
{
    return i % 97;
}

static int make_pack(void **state)
{
    static const leat_field fields[] = {{.name = "data", .type = LEAT_FIELD_BYTES},
                                        {.name = "label", .type = LEAT_FIELD_INT}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-kept-%d.leat", (int)getpid());
    opts.fields = fields;
    opts.field_count = 2;
    opts.page_bytes = 65536;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        char key[16], bytes[97];
        memset(bytes, (int)i, sizeof bytes);
        leat_pack_value v[2] = {{.data = bytes, .size = size_of(i)}, {.i = i}};
        leat_pack_sample s = {.key = key, .values = v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

/* Whether the system tells what is in its page cache. An emulator and some file systems do not; then
 * nothing is kept. */
static bool cache_is_known(void)
{
    leat__file *f;
    uint8_t byte;
    assert_ok(leat__file_open(&f, path, LEAT__FILE_READ, NULL));
    bool known = leat__file_pread_cached(f, &byte, 1, 0) == 1;
    leat__file_close(&f);
    return known;
}

/* Copies every sample; returns how many were available, all with the right bytes. */
static uint32_t copy_all(leat_pack *p, leat__kept *k)
{
    uint32_t copied = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint8_t want[256], got[256] = {0};
        leat_pack_row row;
        assert_ok(leat_pack_rows(p, i, 1, &row, NULL));
        assert_ok(leat_pack_read(p, i, want, sizeof want, NULL));
        if (row.size == 0 || !leat__kept_copy(k, row.shard, row.file_offset, got, row.size)) continue;
        assert_memory_equal(got, want, row.size);
        assert_true(leat__kept_has(k, row.shard, row.file_offset, row.size));
        copied++;
    }
    return copied;
}

static uint32_t with_bytes(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) n += size_of(i) > 0;
    return n;
}

/* Some samples lie across the border of two parts. */
static void copies_are_the_packs_bytes(void **state)
{
    leat_pack *p;
    leat__kept *k;
    (void)state;
    if (!cache_is_known()) skip();
    assert_ok(leat_pack_open(&p, path, NULL, NULL));
    assert_ok(leat__kept_open(&k, p, 1 << 30, NULL));
    assert_int_equal(leat__kept_bytes(k), 0);
    assert_int_equal(copy_all(p, k), with_bytes());
    uint64_t held = leat__kept_bytes(k);
    assert_true(held > 8 * LEAT__KEPT_PART);
    assert_int_equal(copy_all(p, k), with_bytes());
    assert_int_equal(leat__kept_bytes(k), held); /* each part once */
    leat__kept_close(&k);
    leat_pack_close(&p);
    assert_no_leaks();
}

static void the_limit_holds(void **state)
{
    leat_pack *p;
    leat__kept *k;
    (void)state;
    if (!cache_is_known()) skip();
    assert_ok(leat_pack_open(&p, path, NULL, NULL));
    for (uint64_t limit = 0; limit <= 4 * LEAT__KEPT_PART; limit += LEAT__KEPT_PART / 2) {
        assert_ok(leat__kept_open(&k, p, limit, NULL));
        uint32_t copied = copy_all(p, k);
        assert_true(copied < with_bytes());
        assert_int_equal(copied > 0, limit >= LEAT__KEPT_PART);
        assert_int_equal(leat__kept_bytes(k), limit / LEAT__KEPT_PART * LEAT__KEPT_PART);
        leat__kept_close(&k);
    }
    leat_pack_close(&p);
    assert_no_leaks();
}

/* With room for all, for some and for none of them, and with separate pages. */
static void a_loader_delivers_the_same(void **state)
{
    static const uint64_t memory[] = {64 << 20, 6 << 20, 0};
    leat_loader_opts o = base_opts();
    (void)state;
    o.ops = NULL;
    o.cache = LEAT_CACHE_PROCESS;
    outcome want = run_with(path, &o, 1);
    assert_ok(want.rc);
    assert_int_equal(want.samples, SAMPLES);
    o.cache = LEAT_CACHE_OS;
    for (size_t i = 0; i < LEAT_COUNT(memory); i++) {
        leat_loader *l;
        leat_budget_stats b;
        outcome got = {0};
        o.memory = memory[i];
        assert_ok(leat_loader_open(&l, path, &o, NULL));
        assert_non_null(l->env.kept);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            got = (outcome){0};
            assert_ok(leat_loader_begin(l, epoch, NULL));
            drain(l, &got);
        }
        assert_ok(got.rc);
        assert_true(got.digest == want.digest);
        assert_true(leat__kept_bytes(l->env.kept) <= l->kept_bytes);
        if (memory[i] != 6 << 20 && cache_is_known())
            assert_true(leat__kept_bytes(l->env.kept) > 8 * LEAT__KEPT_PART);
        leat_budget_read(l->budget, &b);
        assert_true(b.peak <= b.limit);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Large samples and orders that read on are not kept: nothing would be won. */
static void only_tiny_samples_in_jumping_orders_are_kept(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    (void)state;
    o.ops = NULL;
    o.order = LEAT_ORDER_SEQUENTIAL;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_null(l->env.kept);
    leat_loader_close(&l);
    char images[80];
    snprintf(images, sizeof images, "/tmp/leat-kept-images-%d.leat", (int)getpid());
    tiny_pack(images, &(tiny_opts){.samples = 20, .classes = 2});
    o = base_opts();
    assert_ok(leat_loader_open(&l, images, &o, NULL));
    assert_true(l->info.bytes / l->info.samples > LEAT__TINY_SAMPLE);
    assert_null(l->env.kept);
    leat_loader_close(&l);
    unlink(images);
    assert_no_leaks();
}

/* ---- a remote index ---- */

enum { ROWS = 250000, FIELDS = 8 };

static int64_t number(uint32_t row, uint32_t field)
{
    return (int64_t)row * FIELDS + field;
}

/* Integers only: all of it is index. */
static void write_numbers(const char *file)
{
    static const char *const names[FIELDS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    leat_field fields[FIELDS] = {0};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    for (int i = 0; i < FIELDS; i++) fields[i] = (leat_field){.name = names[i], .type = LEAT_FIELD_INT};
    opts.fields = fields;
    opts.field_count = FIELDS;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, file, &opts, NULL));
    for (uint32_t i = 0; i < ROWS; i++) {
        leat_pack_value v[FIELDS] = {0};
        char key[16];
        leat_pack_sample s = {.key = key, .values = v};
        for (uint32_t k = 0; k < FIELDS; k++) v[k].i = number(i, k);
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

static struct {
    char *data;
    size_t len;
} served;

static void serve(web_request *q)
{
    unsigned long long first = 0, last = served.len - 1;
    const char *range = strcasestr(q->head, "range: bytes=");
    char head[256];
    assert_non_null(range);
    if (sscanf(range + 13, "-%llu", &last) == 1) {
        first = served.len - LEAT_MIN(last, served.len);
        last = served.len - 1;
    } else {
        assert_true(sscanf(range + 13, "%llu-%llu", &first, &last) >= 1);
        last = LEAT_MIN(last, served.len - 1);
    }
    snprintf(head, sizeof head, "ETag: \"1\"\r\nContent-Range: bytes %llu-%llu/%zu\r\n", first, last,
             served.len);
    web_reply(q, "206 Partial Content", head, served.data + first, last - first + 1);
}

static uint64_t used_after_open(const char *file)
{
    leat_loader_opts o = base_opts();
    leat_budget_stats b;
    leat_loader *l;
    o.ops = NULL;
    o.order = LEAT_ORDER_SEQUENTIAL;
    o.memory = UINT64_C(512) << 20;
    assert_ok(leat_loader_open(&l, file, &o, NULL));
    leat_budget_read(l->budget, &b);
    leat_loader_close(&l);
    return b.used;
}

static void a_remote_index_is_charged(void **state)
{
    static web server;
    char file[64], url[128];
    leat_pack *p;
    (void)state;
#ifndef LEAT_HAVE_CURL
    skip();
#endif
    snprintf(file, sizeof file, "/tmp/leat-numbers-%d.leat", (int)getpid());
    write_numbers(file);
    assert_ok(leat_pack_open(&p, file, NULL, NULL));
    uint64_t index = leat__pack_index_bytes(p);
    leat_pack_close(&p);
    assert_true(index > UINT64_C(17) << 20); /* more than what is free */
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    served.len = (size_t)ftell(f);
    served.data = malloc(served.len);
    rewind(f);
    assert_int_equal(fread(served.data, 1, served.len, f), served.len);
    fclose(f);
    web_environment();
    web_start(&server, serve, NULL);
    snprintf(url, sizeof url, "%s/numbers.leat", server.url);
    uint64_t local = used_after_open(file), remote = used_after_open(url);
    web_stop(&server);
    assert_int_equal(remote - local, index - (UINT64_C(16) << 20));
    free(served.data);
    unlink(file);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_are_the_packs_bytes, make_pack, drop),
        cmocka_unit_test_setup_teardown(the_limit_holds, make_pack, drop),
        cmocka_unit_test_setup_teardown(a_loader_delivers_the_same, make_pack, drop),
        cmocka_unit_test_setup_teardown(only_tiny_samples_in_jumping_orders_are_kept, make_pack, drop),
        cmocka_unit_test(a_remote_index_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
