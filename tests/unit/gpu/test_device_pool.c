/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/device_pool.c: a block is not written again while a stream may read it, whatever
 * happens in between.
 */
#include "fake_driver.h"

#include "base/clock.h"
#include "base/mem.h"
#include "gpu/device_pool.h"

#define SIZE (UINT64_C(1) << 20)

typedef struct rig {
    leat__gpu *gpu;
    leat__gpu_stream *s;
    leat__device_pool *pool;
} rig;

static rig open_rig(uint64_t limit)
{
    rig r = {0};
    go_wrong("");
    assert_int_equal(leat__gpu_open(&r.gpu, 0, fake_path, NULL), 0);
    assert_int_equal(leat__gpu_stream_open(&r.s, r.gpu, NULL), 0);
    assert_int_equal(leat__device_pool_open(&r.pool, r.gpu, limit, NULL), 0);
    return r;
}

static void close_rig(rig *r)
{
    leat__device_pool_close(&r->pool);
    leat__gpu_stream_close(&r->s);
    leat__gpu_close(&r->gpu);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static leat__device_block *take(rig *r, uint64_t bytes)
{
    leat__device_block *b = NULL;
    leat_error err = {0};
    if (leat__device_pool_take(r->pool, bytes, r->s, &b, &err) != 0) fail_msg("%s", err.message);
    return b;
}

/* A batch that the consumer had. */
static void release(rig *r, leat__device_block *b)
{
    leat__device_pool_lend(r->pool, b);
    leat__device_pool_give(r->pool, b);
}

static void blocks_are_used_again(void **state)
{
    rig r = open_rig(8 * SIZE);
    leat__device_block *a = take(&r, SIZE);
    leat__gpu_memory memory = a->memory;
    assert_int_equal(memory % 256, 0);
    for (int i = 0; i < 100; i++) {
        leat__device_pool_give(r.pool, a);
        a = take(&r, SIZE - 1000);
        assert_true(a->memory == memory);
    }
    leat__device_pool_stats stats;
    leat__device_pool_read(r.pool, &stats);
    assert_int_equal(stats.blocks, 1);
    assert_int_equal(stats.peak, SIZE);
    leat__device_pool_give(r.pool, a);
    close_rig(&r);
}

static void the_limit_holds(void **state)
{
    rig r = open_rig(2 * SIZE);
    leat__device_block *a = take(&r, SIZE), *b = take(&r, SIZE), *c = NULL;
    leat_error err = {0};
    assert_int_equal(leat__device_pool_take(r.pool, SIZE, r.s, &c, &err), LEAT_EAGAIN);
    assert_int_equal(leat__device_pool_take(r.pool, 3 * SIZE, r.s, &c, &err), LEAT_EBUDGET);
    leat__device_pool_give(r.pool, a);
    c = take(&r, SIZE / 8); /* another size: the idle block makes room */
    leat__device_pool_stats stats;
    leat__device_pool_read(r.pool, &stats);
    assert_true(stats.used <= 2 * SIZE);
    leat__device_pool_give(r.pool, b);
    leat__device_pool_give(r.pool, c);
    close_rig(&r);
}

/* What the pool gives out is either no longer read, or the stream waits before it writes. */
static void nothing_is_written_while_a_stream_reads(void **state)
{
    rig r = open_rig(4 * SIZE);
    uint8_t from[256];
    int kernel[32];
    leat__device_block *on_loan[32];
    for (int i = 0; i < 32; i++) {
        leat__device_block *b = take(&r, SIZE);
        memset(from, i + 1, sizeof from);
        assert_int_equal(leat__gpu_copy_in(r.s, b->memory, from, sizeof from, NULL), 0);
        if (i >= 4) fake_cuda.end(kernel[i - 4]); /* the trainer is four steps behind */
        kernel[i] = fake_cuda.begin();            /* reads the block until it ends */
        on_loan[i] = b;
        release(&r, b);
        leat__device_pool_settle(r.pool, false);
        /* no later copy has reached blocks whose kernels have not ended */
        for (int k = i >= 4 ? i - 3 : 0; k <= i; k++)
            assert_true(((uint8_t *)(uintptr_t)on_loan[k]->memory)[0] <= k + 1);
    }
    fake_cuda.end(kernel[31]);
    close_rig(&r);
}

static leat__device_pool_stats read_pool(rig *r)
{
    leat__device_pool_stats stats;
    leat__device_pool_read(r->pool, &stats);
    return stats;
}

/* Until the consumer's thread settles it, a released block is not used, and no call is made. */
static void a_release_makes_no_call(void **state)
{
    rig r = open_rig(SIZE);
    leat__device_block *b = take(&r, SIZE), *again = NULL;
    leat_error err = {0};
    go_wrong("capture");
    int calls = fake_cuda.calls();
    release(&r, b);
    assert_int_equal(fake_cuda.calls(), calls);
    assert_int_equal(leat__device_pool_take(r.pool, SIZE, r.s, &again, &err), LEAT_EAGAIN);
    assert_int_equal(leat__device_pool_take(r.pool, SIZE / 8, r.s, &again, &err), LEAT_EAGAIN);
    go_wrong("");
    leat__device_pool_settle(r.pool, false);
    again = take(&r, SIZE);
    assert_ptr_equal(again, b);
    leat__device_pool_give(r.pool, again);
    assert_int_equal(fake_cuda.broken(), 0);
    close_rig(&r);
}

/* A thread that captures a graph may take more batches before its end: new blocks first, then released ones,
 * for which the driver waits when they are freed. */
static void a_capture_does_not_stop_new_blocks(void **state)
{
    rig r = open_rig(8 * SIZE);
    leat__device_block *b[8];
    for (int i = 0; i < 4; i++) b[i] = take(&r, SIZE);
    go_wrong("capture");
    for (int i = 0; i < 4; i++) release(&r, b[i]);
    leat__device_pool_settle(r.pool, true);
    for (int i = 0; i < 4; i++) b[i] = take(&r, SIZE);
    assert_int_equal(read_pool(&r).idle, 4);
    for (int i = 4; i < 8; i++) b[i] = take(&r, SIZE);
    assert_int_equal(read_pool(&r).idle, 0);
    assert_int_equal(read_pool(&r).used, 8 * SIZE);
    for (int i = 0; i < 8; i++) release(&r, b[i]);
    leat__device_pool_settle(r.pool, true);
    b[0] = take(&r, SIZE / 8); /* another size */
    release(&r, b[0]);
    assert_int_equal(fake_cuda.broken(), 0);
    go_wrong("");
    close_rig(&r);
}

/* What could not be marked during a capture is marked after it, whether the capture succeeded or not. */
static void blocks_are_marked_after_a_capture(void **state)
{
    rig r = open_rig(3 * SIZE);
    leat__device_block *b[3], *other;
    for (int i = 0; i < 3; i++) b[i] = take(&r, SIZE);
    int kernel = fake_cuda.begin();
    go_wrong("capture");
    for (int i = 0; i < 3; i++) release(&r, b[i]);
    leat__device_pool_settle(r.pool, true);
    go_wrong("");
    leat__device_pool_settle(r.pool, false);
    for (int i = 0; i < 3; i++) assert_int_equal(b[i]->use, LEAT__BLOCK_MARKED);
    other = take(&r, SIZE); /* the stream waits for the kernel */
    assert_ptr_equal(other, b[0]);
    fake_cuda.end(kernel);
    leat__gpu_stream_drain(r.s);
    leat__device_pool_give(r.pool, other);
    assert_int_equal(fake_cuda.broken(), 0);
    close_rig(&r);
}

/* A capture that ended with an error, or a device that failed: blocks are still used again. */
static void blocks_without_a_mark_are_used_again(void **state)
{
    rig r = open_rig(SIZE);
    for (int i = 0; i < 8; i++) {
        leat__device_block *b = take(&r, SIZE);
        release(&r, b);
        fake_cuda.fail_at(fake_cuda.calls() + 1 + i % 2); /* entering the context; the mark */
        leat__device_pool_settle(r.pool, false);
        fake_cuda.fail_at(0);
        assert_int_equal(b->use, LEAT__BLOCK_UNMARKED);
    }
    assert_int_equal(read_pool(&r).blocks, 1);
    close_rig(&r);
}

static void a_full_device_gets_idle_blocks_back(void **state)
{
    rig r = open_rig(8 * SIZE);
    leat__device_block *a = take(&r, SIZE), *b = take(&r, SIZE), *c = NULL;
    leat_error err = {0};
    leat__device_pool_stats stats;
    leat__device_pool_lend(r.pool, b);
    leat__device_pool_give(r.pool, a);
    go_wrong("memory");
    assert_int_equal(leat__device_pool_take(r.pool, 4 * SIZE, r.s, &c, &err), LEAT_EAGAIN);
    leat__device_pool_read(r.pool, &stats);
    assert_true(stats.full);
    assert_int_equal(stats.idle, 0); /* freed, so that the device might have room */
    assert_int_equal(stats.lent, 1);
    leat__device_pool_give(r.pool, b);
    leat__device_pool_read(r.pool, &stats);
    assert_int_equal(stats.lent, 0);
    go_wrong("");
    c = take(&r, 4 * SIZE);
    leat__device_pool_read(r.pool, &stats);
    assert_false(stats.full);
    leat__device_pool_give(r.pool, c);
    close_rig(&r);
}

static void blocks_outlive_the_pool(void **state)
{
    rig r = open_rig(4 * SIZE);
    leat__device_block *b = take(&r, SIZE);
    leat__device_pool *pool = r.pool;
    leat__device_pool_close(&r.pool);
    leat__gpu_stream_close(&r.s);
    leat__gpu_close(&r.gpu);
    memset((void *)(uintptr_t)b->memory, 3, SIZE);
    assert_true(fake_cuda.held() > 0);
    leat__device_pool_give(pool, b);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void less_memory_than_the_limit(void **state)
{
    rig r = open_rig(8 * SIZE);
    leat__device_block *a = take(&r, SIZE), *b = NULL;
    leat_error err = {0};
    go_wrong("memory");
    assert_int_equal(leat__device_pool_take(r.pool, SIZE, r.s, &b, &err), LEAT_EAGAIN);
    leat__device_pool_give(r.pool, a);
    b = take(&r, SIZE);
    go_wrong("");
    leat__device_pool_give(r.pool, b);
    close_rig(&r);
    r = open_rig(8 * SIZE);
    go_wrong("memory"); /* nothing there at all: an error, not an endless wait */
    assert_int_equal(leat__device_pool_take(r.pool, SIZE, r.s, &b, &err), LEAT_ENOMEM);
    go_wrong("");
    close_rig(&r);
}

static void waiting_ends(void **state)
{
    rig r = open_rig(4 * SIZE);
    uint64_t begin = leat__clock_ns();
    leat__device_pool_wait(r.pool, begin + LEAT_NS_PER_MS);
    assert_true(leat__clock_ns() >= begin + LEAT_NS_PER_MS);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_used_again),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(nothing_is_written_while_a_stream_reads),
        cmocka_unit_test(a_release_makes_no_call),
        cmocka_unit_test(blocks_are_marked_after_a_capture),
        cmocka_unit_test(blocks_without_a_mark_are_used_again),
        cmocka_unit_test(a_capture_does_not_stop_new_blocks),
        cmocka_unit_test(a_full_device_gets_idle_blocks_back),
        cmocka_unit_test(blocks_outlive_the_pool),
        cmocka_unit_test(less_memory_than_the_limit),
        cmocka_unit_test(waiting_ends),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
