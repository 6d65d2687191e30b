/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole loader on small packs. LEAT_LOADER_CYCLES, LEAT_LOADER_STOPS and LEAT_LOADER_FAULTS
 * make the repeated tests longer.
 */
#include "tiny_loader.h"

#include <dirent.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "loader/defaults.h"
#include "loader/state.h"

static char plain[64];
enum { SAMPLES = 301, CLASSES = 7 };

static int make_packs(void **state)
{
    (void)state;
    snprintf(plain, sizeof plain, "/tmp/leat-loader-%d.leat", (int)getpid());
    tiny_pack(plain, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .captions = true});
    return 0;
}

static int drop_packs(void **state)
{
    (void)state;
    unlink(plain);
    return 0;
}

static void the_same_bytes_on_any_machine(void **state)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    (void)state;
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        uint64_t digest = 0;
        for (int variant = 0; variant < 4 * 2 * 2 * 2; variant++) {
            leat_loader_opts o = base_opts();
            set_order(&o, (leat_order)order);
            o.threads = threads[variant & 3];
            o.cache = variant & 4 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS;
            o.memory = variant & 8 ? 6 << 20 : 256 << 20;
            setenv("LEAT_IO", variant & 16 ? "threads" : "uring", 1);
            outcome r = run_with(plain, &o, 3);
            if (r.rc == LEAT_ENOTSUP) continue; /* no io_uring here */
            if (r.rc != 0) fail_msg("order %d variant %d: %s", order, variant, r.err.message);
            assert_int_equal(r.samples, SAMPLES);
            if (digest == 0) digest = r.digest;
            if (r.digest != digest) fail_msg("order %d variant %d: another digest", order, variant);
        }
        unsetenv("LEAT_IO");
        leat_loader_opts o = base_opts();
        set_order(&o, (leat_order)order);
        o.batch_size = 7; /* rows do not depend on the batch they are in */
        assert_true(run_with(plain, &o, 3).digest == digest);
        assert_true(run_with(plain, &o, 4).digest != digest);
        o.seed++;
        assert_true(run_with(plain, &o, 3).digest != digest);
    }
    assert_no_leaks();
}

static void what_is_delivered_is_what_is_packed(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_pack *pack;
    leat_sample *s;
    leat_batch *b;
    uint64_t position = 0;
    (void)state;
    assert_ok(leat_pack_open(&pack, plain, NULL, NULL));
    assert_ok(leat_sample_open(&s, pack, NULL));
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    assert_int_equal(leat_loader_batches(l), (SAMPLES + 15) / 16);
    assert_int_equal(leat_loader_field_count(l), 3);
    assert_ok(leat_loader_begin(l, 0, NULL));
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
        assert_int_equal(b->position, position);
        assert_string_equal(b->fields[0].name, "image");
        assert_int_equal(b->fields[0].shape[1], 3);
        assert_int_equal(b->fields[0].shape[3], 24);
        for (uint32_t i = 0; i < b->samples; i++, position++) {
            uint64_t id;
            leat_view label, caption;
            assert_ok(leat_loader_sample_at(l, 0, position, &id, NULL));
            assert_int_equal(b->sample_ids[i], id);
            assert_ok(leat_sample_read(s, id, NULL));
            assert_ok(leat_sample_field(s, 1, &label, NULL));
            assert_ok(leat_sample_field(s, 2, &caption, NULL));
            assert_int_equal(((int64_t *)b->fields[1].data)[i], *(const int64_t *)label.data);
            const int64_t *at = b->fields[2].offsets + i;
            assert_int_equal(at[1] - at[0], caption.size);
            assert_memory_equal((char *)b->fields[2].data + at[0], caption.data, caption.size);
        }
        leat_batch_release(&b);
    }
    assert_int_equal(position, SAMPLES);
    leat_loader_close(&l);
    leat_sample_close(&s);
    leat_pack_close(&pack);
    assert_no_leaks();
}

static void stopped_run_resumes(void **state)
{
    uint64_t stops = test_count("LEAT_LOADER_STOPS", 12);
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 1, 0, 0, 0);
    for (uint64_t n = 0; n < stops; n++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        leat_error err;
        char text[1024];
        size_t size;
        uint64_t stop = leat__rng_below(&r, SAMPLES), digest = 0, done = 0;
        set_order(&o, (leat_order)(n % 3));
        outcome whole = run_with(plain, &o, n);
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_begin(l, n, NULL));
        while (done < stop && leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
            for (uint32_t i = 0; i < b->samples && done < stop; i++, done++) {
                uint64_t pair[2] = {digest, b->sample_hash[i]};
                digest = leat__hash64(pair, sizeof pair, 0);
            }
            leat_batch_release(&b);
        }
        assert_ok(leat_loader_state(l, stop, text, sizeof text, &size, NULL));
        assert_code(LEAT_ELIMIT, leat_loader_state(l, stop, text, 10, &size, &err));
        assert_ok(leat_loader_state(l, stop, text, sizeof text, &size, NULL));
        leat_loader_close(&l);
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_restore(l, text, NULL));
        outcome rest = {.digest = digest, .samples = done};
        drain(l, &rest);
        assert_int_equal(rest.samples, SAMPLES);
        assert_true(rest.digest == whole.digest);
        leat_loader_close(&l);
        o.seed++;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_code(LEAT_EINVAL, leat_loader_restore(l, text, &err));
        assert_contains(err.message, "seed");
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Global batches are the same sets for every world; nothing twice, nothing lost. */
static void worlds_share_an_epoch(void **state)
{
    enum { GLOBAL = 32 };
    (void)state;
    for (int order = 0; order < 3; order++) {
        uint64_t sums[SAMPLES / GLOBAL + 1] = {0};
        for (uint32_t world = 1; world <= 8; world *= 2) {
            uint64_t sum[SAMPLES / GLOBAL + 1] = {0}, rows = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                leat_loader_opts o = base_opts();
                leat_loader *l;
                leat_batch *b;
                set_order(&o, (leat_order)order);
                o.world = world;
                o.rank = rank;
                o.batch_size = GLOBAL / world;
                assert_ok(leat_loader_open(&l, plain, &o, NULL));
                assert_int_equal(leat_loader_batches(l), (SAMPLES + GLOBAL - 1) / GLOBAL);
                while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
                    for (uint32_t i = 0; i < b->samples; i++)
                        sum[b->index] += leat__mix64(b->sample_ids[i]) ^ b->sample_hash[i];
                    rows += b->samples;
                    leat_batch_release(&b);
                }
                leat_loader_close(&l);
            }
            assert_int_equal(rows, SAMPLES);
            if (world == 1) memcpy(sums, sum, sizeof sums);
            assert_memory_equal(sums, sum, sizeof sums);
        }
        /* drop_last: all ranks have the same number of full batches */
        leat_loader_opts o = base_opts();
        o.drop_last = 1;
        o.world = 4;
        o.rank = 3;
        o.batch_size = 8;
        outcome r = run_with(plain, &o, 0);
        assert_int_equal(r.batches, SAMPLES / 32);
        assert_int_equal(r.samples, r.batches * 8);
    }
    assert_no_leaks();
}

/* Every rank gets leat_loader_batches() batches, also after resuming in front of the last one; a rank
 * without a part in it gets one of 0 samples, or by default in shuffled orders the batch is left out. */
static void ranks_get_equally_many_batches(void **state)
{
    static const struct {
        uint32_t world, batch;
    } runs[] = {{4, 25}, {7, 1}, {9, 11}, {SAMPLES - 1, 1}};
    (void)state;
    for (int n = 0; n < 4 * 6; n++) {
        uint32_t world = runs[n / 6].world, ranks = LEAT_MIN(world, 9u);
        leat_loader_opts o = base_opts();
        set_order(&o, n % 2 ? LEAT_ORDER_RANDOM : LEAT_ORDER_SEQUENTIAL);
        o.drop_last = (uint32_t)(n % 6 / 2);
        o.world = world;
        o.batch_size = runs[n / 6].batch;
        uint64_t rows = 0, full = SAMPLES / (o.batch_size * world);
        for (uint32_t i = 0; i < ranks; i++) {
            leat_loader *l;
            leat_batch *b;
            uint64_t given = 0, empty = 0;
            char text[1024], last[1024] = "";
            size_t size;
            o.rank = world - ranks + i;
            assert_ok(leat_loader_open(&l, plain, &o, NULL));
            for (;;) {
                assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
                assert_ok(leat_loader_next(l, &b, -1, NULL));
                if (b == NULL) break;
                assert_int_equal(b->index, given);
                empty += b->samples == 0;
                rows += b->samples;
                given++;
                leat_batch_release(&b);
                memcpy(last, text, sizeof last);
            }
            assert_int_equal(given, leat_loader_batches(l));
            assert_ok(leat_loader_next(l, &b, -1, NULL)); /* it stays at the end */
            assert_null(b);
            bool keeps = o.drop_last == LEAT_DROP_NEVER ||
                         (o.drop_last == LEAT_DROP_EMPTY && !leat__order_shuffled(o.order));
            if (!keeps && full > 0) assert_int_equal(empty, 0);
            assert_int_equal(given, keeps && SAMPLES % (o.batch_size * world) ? full + 1 : given);
            if (given > 0) {
                assert_ok(leat_loader_restore(l, last, NULL));
                assert_ok(leat_loader_next(l, &b, -1, NULL));
                assert_int_equal(b->index, given - 1);
                leat_batch_release(&b);
                assert_ok(leat_loader_next(l, &b, -1, NULL));
                assert_null(b);
            }
            leat_loader_close(&l);
        }
        if (o.drop_last == LEAT_DROP_NEVER && ranks == world) assert_int_equal(rows, SAMPLES);
    }
    assert_no_leaks();
}

/* Asking for another epoch's order leaves the state alone; a stopped loader does not start again. */
static void questions_and_stops_keep_the_state(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *b;
    leat_error err;
    char before[1024], after[1024];
    size_t size;
    uint64_t sample, third;
    (void)state;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    assert_ok(leat_loader_begin(l, 2, NULL));
    assert_ok(leat_loader_next(l, &b, INT64_MAX, NULL)); /* no timeout at once */
    leat_batch_release(&b);
    assert_ok(leat_loader_sample_at(l, 2, o.batch_size, &third, NULL));
    assert_code(LEAT_ESTATE, leat_loader_sample_at(l, 7, 0, &sample, NULL));
    leat_loader_stop(l);
    assert_ok(leat_loader_state(l, UINT64_MAX, before, sizeof before, &size, NULL));
    assert_ok(leat_loader_sample_at(l, 7, 0, &sample, NULL));
    assert_ok(leat_loader_state(l, UINT64_MAX, after, sizeof after, &size, NULL));
    assert_string_equal(before, after);
    assert_code(LEAT_ESTATE, leat_loader_next(l, &b, -1, &err));
    assert_contains(err.message, "no epoch is running");
    assert_ok(leat_loader_restore(l, before, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_int_equal(b->epoch, 2);
    assert_int_equal(b->sample_ids[0], third);
    leat_batch_release(&b);
    assert_code(LEAT_EINVAL, leat_loader_begin(l, UINT64_C(1) << 63, &err));
    assert_contains(err.message, "below 2^63");
    assert_ok(leat_loader_begin(l, INT64_MAX, NULL));
    assert_ok(leat_loader_state(l, UINT64_MAX, after, sizeof after, &size, NULL));
    assert_ok(leat_loader_restore(l, after, NULL));
    leat_loader_close(&l);
    assert_no_leaks();
}

static void states_move_between_worlds(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *b;
    char text[1024];
    size_t size;
    uint64_t left = 0;
    (void)state;
    o.batch_size = 32;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        leat_batch_release(&b);
    }
    assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
    leat_loader_close(&l);
    for (uint32_t rank = 0; rank < 4; rank++) {
        o.world = 4;
        o.rank = rank;
        o.batch_size = 8;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_restore(l, text, NULL));
        outcome r = {0};
        drain(l, &r);
        left += r.samples;
        leat_loader_close(&l);
    }
    assert_int_equal(left, SAMPLES - 3 * 32);
}

/* 301 samples in global batches of 100 over 4 ranks: the last one has a row for rank 0 only. */
static void a_rank_without_a_part_in_the_last_batch_is_not_past_it(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 4; rank++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        char text[1024];
        size_t size;
        o.world = 4;
        o.rank = rank;
        o.batch_size = 25;
        o.drop_last = LEAT_DROP_NEVER;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        for (int i = 0; i < 3; i++) {
            assert_ok(leat_loader_next(l, &b, -1, NULL));
            leat_batch_release(&b);
        }
        assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
        assert_contains(text, "\"position\":300");
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        assert_non_null(b);
        assert_int_equal(b->samples, rank == 0);
        leat_batch_release(&b);
        assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
        assert_contains(text, "\"position\":301");
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

static uint64_t drain_rest(const leat_loader_opts *o, const char *text)
{
    leat_loader *l;
    outcome r = {0};
    assert_ok(leat_loader_open(&l, plain, o, NULL));
    assert_ok(leat_loader_restore(l, text, NULL));
    drain(l, &r);
    leat_loader_close(&l);
    return r.samples;
}

/* 301 samples in global batches of 100: 4 ranks leave the last sample out, so one rank that resumes from
 * their state does, too, and has the whole of the next epoch. */
static void samples_left_out_by_a_state_do_not_come_in_another_world(void **state)
{
    leat_loader_opts o = base_opts(), alone;
    leat_loader *l;
    leat_batch *b;
    char text[1024];
    size_t size;
    (void)state;
    set_order(&o, LEAT_ORDER_RANDOM);
    o.world = 4;
    o.batch_size = 25;
    o.drop_last = LEAT_DROP_EMPTY;
    alone = o;
    alone.world = 1;
    alone.batch_size = 100;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (uint64_t i = 1; i <= 3; i++) {
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        leat_batch_release(&b);
        assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
        assert_contains(text, "\"left_out\":true");
        alone.drop_last = LEAT_DROP_EMPTY;
        assert_int_equal(drain_rest(&alone, text), 300 - i * 100);
        alone.drop_last = LEAT_DROP_NEVER; /* asked for: it comes */
        assert_int_equal(drain_rest(&alone, text), 301 - i * 100);
    }
    leat_loader_close(&l);
    alone.drop_last = LEAT_DROP_EMPTY;
    assert_ok(leat_loader_open(&l, plain, &alone, NULL));
    assert_ok(leat_loader_restore(l, text, NULL));
    assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
    assert_contains(text, "\"position\":300");
    assert_contains(text, "\"left_out\":true");
    assert_ok(leat_loader_begin(l, 1, NULL));
    outcome r = {0};
    drain(l, &r);
    assert_int_equal(r.samples, 301);
    assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
    assert_null(strstr(text, "left_out"));
    leat_loader_close(&l);
    assert_no_leaks();
}

static void batches_are_borrowed(void **state)
{
    enum { KEEP = 8 };
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *kept[KEEP], *b;
    uint64_t sum[KEEP];
    (void)state;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (int i = 0; i < KEEP; i++) {
        assert_ok(leat_loader_next(l, &kept[i], -1, NULL));
        sum[i] = leat__hash64(kept[i]->fields[0].data, kept[i]->samples * 24 * 24 * 3, 0);
        assert_int_equal((uintptr_t)kept[i]->fields[0].data % 256, 0);
    }
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) leat_batch_release(&b);
    leat_loader_close(&l); /* before the batches are released */
    for (int i = 0; i < KEEP; i++) {
        assert_true(leat__hash64(kept[i]->fields[0].data, kept[i]->samples * 24 * 24 * 3, 0) == sum[i]);
        assert_string_equal(kept[i]->fields[1].name, "label");
        leat_batch_release(&kept[i]);
    }
    assert_no_leaks();
}

static unsigned entries(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

static void leaving_in_the_middle_leaves_nothing(void **state)
{
    uint64_t cycles = test_count("LEAT_LOADER_CYCLES", 40);
    unsigned fds = 0, threads = 0;
    (void)state;
    for (uint64_t i = 0; i < cycles; i++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        o.cache = i % 2 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS;
        set_order(&o, (leat_order)(i % 3));
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        for (uint64_t k = 0; k < i % 5; k++) {
            assert_ok(leat_loader_next(l, &b, -1, NULL));
            leat_batch_release(&b);
        }
        if (i % 7 == 3) assert_ok(leat_loader_begin(l, 1, NULL));
        leat_loader_close(&l);
        if (i == 4) {
            fds = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
        assert_no_leaks();
    }
    assert_int_equal(entries("/proc/self/fd"), fds);
    if (getenv("LEAT_TEST_EMULATED") == NULL) /* an emulator has its own threads */
        assert_int_equal(entries("/proc/self/task"), threads);
    assert_no_leaks();
}

static void the_budget_holds(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        leat_budget_stats s;
        o.cache = (leat_cache)cache;
        o.memory = 8 << 20;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        int n = 0;
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
            leat_batch_release(&b);
            if (++n == 5) assert_ok(leat_budget_set_limit(leat_loader_budget(l), 6 << 20, NULL));
        }
        leat_budget_read(leat_loader_budget(l), &s);
        assert_true(s.peak <= 8 << 20);
        assert_true(s.used <= 6 << 20);
        leat_loader_close(&l);
        o.memory = 4096;
        leat_error err;
        int rc = leat_loader_open(&l, plain, &o, &err);
        if (rc == 0) rc = leat_loader_begin(l, 0, &err);
        assert_int_equal(rc, LEAT_EBUDGET);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Enough samples ahead to be worth waking for, unless they are large. */
static void small_batches_begin_with_more_of_them_ahead(void **state)
{
    static const struct {
        uint32_t batch, prefetch;
        const char *ops;
    } rows[] = {{1, 32, "Resize((8, 8))"},
                {4, 8, "Resize((8, 8))"},
                {16, 4, "Resize((8, 8))"},
                {1, 5, "Resize((1000, 1000))"}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_loader_opts o = base_opts();
        leat_loader_stats s;
        leat_loader *l;
        leat_batch *b;
        o.batch_size = rows[i].batch;
        o.ops = rows[i].ops;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        assert_ok(leat_loader_read(l, &s, sizeof s));
        assert_int_equal(s.prefetch, rows[i].prefetch);
        leat_batch_release(&b);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Half the memory from now on: whatever is kept or made ahead is gone after a few batches, from the
 * budget and from the heap, and the epoch continues. */
static void a_lowered_budget_is_obeyed(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        leat_loader_opts o = base_opts();
        leat_loader *l;
        leat_batch *b;
        leat_budget_stats s;
        uint64_t samples = 0, half = 32 << 20, over = 0, heap = 0;
        bool obeyed = false;
        o.cache = (leat_cache)cache;
        o.ops = "RandomResizedCrop(320)";
        o.memory = 2 * half;
        o.prefetch = 64; /* as much ahead as fits */
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        for (int n = 0; leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL; n++) {
            samples += b->samples;
            leat_batch_release(&b);
            leat_budget_read(leat_loader_budget(l), &s);
            if (over > 0 && !obeyed && s.used <= half) {
                obeyed = true;
                assert_true(leat__mem_used(LEAT__MEM_CATS) < heap - over / 2);
            }
            if (obeyed) assert_true(s.used <= half);
            if (n != 5) continue;
            for (int tries = 0; tries < 6000; tries++) { /* until it is well ahead: others may run */
                leat_budget_read(leat_loader_budget(l), &s);
                if (s.used >= half + half / 8) break;
                leat__sleep_ns(10 * LEAT_NS_PER_MS);
            }
            assert_true(s.used > half);
            over = s.used - half;
            heap = leat__mem_used(LEAT__MEM_CATS);
            assert_ok(leat_loader_memory_set(l, half, NULL));
        }
        assert_int_equal(samples, SAMPLES);
        assert_true(obeyed);
        leat_error err;
        assert_int_equal(leat_loader_memory_set(l, 4096, &err), LEAT_EBUDGET); /* no epoch runs */
        assert_contains(err.message, "memory: batches of");
        assert_ok(leat_loader_begin(l, 1, NULL));
        assert_int_equal(leat_loader_memory_set(l, 4096, &err), LEAT_EBUDGET);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* Every allocation and thread start fails in turn: an error in the caller, nothing left. */
static void every_failure_in_turn(void **state)
{
    static const leat__fault_kind kinds[] = {LEAT__FAULT_ALLOC, LEAT__FAULT_THREAD, LEAT__FAULT_READ};
    uint64_t most = test_count("LEAT_LOADER_FAULTS", 120);
    (void)state;
    if (!leat__fault_available()) skip();
    for (int k = 0; k < 3; k++) {
        for (int cache = 0; cache < 2; cache++) {
            uint64_t failed = 0;
            leat_loader_opts o = base_opts();
            o.cache = (leat_cache)cache;
            o.batch_size = 64;
            leat__fault_arm(kinds[k], 0, false);
            outcome whole = run_with(plain, &o, 0);
            assert_int_equal(whole.rc, 0);
            uint64_t calls = leat__fault_count(kinds[k]), step = calls / most + 1;
            for (uint64_t n = 1; n <= calls; n += step) {
                for (int for_ever = 0; for_ever < 2; for_ever++) {
                    leat__fault_arm(kinds[k], n, for_ever);
                    outcome r = run_with(plain, &o, 0);
                    leat__fault_disarm();
                    failed += r.rc != 0;
                    if (r.rc == 0) assert_true(r.digest == whole.digest && r.samples == SAMPLES);
                    else assert_true(r.rc < 0);
                    assert_no_leaks();
                }
            }
            assert_true(failed > 0);
        }
    }
}

static void a_forked_child_is_told(void **state)
{
    leat_loader_opts o = base_opts();
    leat_loader *l;
    leat_batch *b;
    int status;
    (void)state;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    pid_t child = fork();
    if (child == 0) {
        leat_error err;
        _exit(leat_loader_next(l, &b, 1000, &err) == LEAT_EFORK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    leat_loader_close(&l);
    assert_no_leaks();
}

static void several_loaders_at_once(void **state)
{
    enum { LOADERS = 6 };
    leat_loader *l[LOADERS];
    leat_batch *b;
    outcome r[LOADERS] = {{0}};
    leat_budget *budget;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    for (int i = 0; i < LOADERS; i++) {
        leat_loader_opts o = base_opts();
        o.cache = LEAT_CACHE_PROCESS;
        o.threads = 0;
        o.memory = 0;
        o.budget = budget;
        assert_ok(leat_loader_open(&l[i], plain, &o, NULL));
        assert_ok(leat_loader_begin(l[i], 0, NULL));
    }
    for (int live = LOADERS; live > 0;) {
        for (int i = 0; i < LOADERS; i++) {
            if (l[i] == NULL) continue;
            assert_ok(leat_loader_next(l[i], &b, -1, NULL));
            if (b == NULL) {
                leat_loader_close(&l[i]);
                live--;
                continue;
            }
            r[i].digest = fold(r[i].digest, b, 0);
            leat_batch_release(&b);
        }
    }
    for (int i = 1; i < LOADERS; i++) assert_true(r[i].digest == r[0].digest);
    leat_budget_close(&budget);
    assert_no_leaks();
}

/* Overwrites the first pixel with the sample's number, and the label with what it was told. */
static int stamp(void *cookie, void *const *rows, uint32_t fields, uint64_t sample, uint64_t epoch,
                 uint64_t random)
{
    int64_t label = (int64_t)(random >> 1);
    assert_true(fields >= 2 && epoch == 3);
    if (cookie != NULL && sample % 10 == 0) return 7;
    *(uint8_t *)rows[0] = (uint8_t)sample;
    memcpy(rows[1], &label, sizeof label);
    return 0;
}

static void a_sample_function_sees_every_sample(void **state)
{
    uint64_t sums[2] = {0};
    leat_loader_opts o = base_opts();
    leat_loader *l = NULL;
    leat_batch *b;
    leat_error err;
    (void)state;
    o.sample_fn = stamp;
    for (int run = 0; run < 2; run++) { /* what it is told does not depend on threads */
        o.threads = 1 + (uint32_t)run * 2;
        uint64_t samples = 0;
        assert_ok(leat_loader_open(&l, plain, &o, &err));
        assert_ok(leat_loader_begin(l, 3, &err));
        while (leat_loader_next(l, &b, -1, &err) == 0 && b != NULL) {
            const leat_tensor *image = &b->fields[0], *label = &b->fields[1];
            for (uint32_t i = 0; i < b->samples; i++) {
                assert_int_equal(((uint8_t *)image->data)[i * image->strides[0]], (uint8_t)b->sample_ids[i]);
                sums[run] = sums[run] * 31 + (uint64_t)((int64_t *)label->data)[i];
            }
            samples += b->samples;
            leat_batch_release(&b);
        }
        assert_int_equal(samples, SAMPLES);
        leat_loader_close(&l);
    }
    assert_true(sums[0] == sums[1]);
    o.sample_cookie = &o; /* now it refuses some */
    o.on_error = LEAT_ON_ERROR_SKIP;
    uint64_t bad = 0;
    assert_ok(leat_loader_open(&l, plain, &o, &err));
    assert_ok(leat_loader_begin(l, 3, &err));
    while (leat_loader_next(l, &b, -1, &err) == 0 && b != NULL) {
        bad += b->bad;
        leat_batch_release(&b);
    }
    assert_int_equal(bad, (SAMPLES + 9) / 10);
    leat_loader_stop(l);
    leat_loader_close(&l);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_on_any_machine),
        cmocka_unit_test(what_is_delivered_is_what_is_packed),
        cmocka_unit_test(stopped_run_resumes),
        cmocka_unit_test(worlds_share_an_epoch),
        cmocka_unit_test(ranks_get_equally_many_batches),
        cmocka_unit_test(questions_and_stops_keep_the_state),
        cmocka_unit_test(states_move_between_worlds),
        cmocka_unit_test(a_rank_without_a_part_in_the_last_batch_is_not_past_it),
        cmocka_unit_test(samples_left_out_by_a_state_do_not_come_in_another_world),
        cmocka_unit_test(batches_are_borrowed),
        cmocka_unit_test(leaving_in_the_middle_leaves_nothing),
        cmocka_unit_test(the_budget_holds),
        cmocka_unit_test(a_lowered_budget_is_obeyed),
        cmocka_unit_test(every_failure_in_turn),
        cmocka_unit_test(small_batches_begin_with_more_of_them_ahead),
        cmocka_unit_test(a_forked_child_is_told),
        cmocka_unit_test(several_loaders_at_once),
        cmocka_unit_test(a_sample_function_sees_every_sample),
    };
    return cmocka_run_group_tests(tests, make_packs, drop_packs);
}
