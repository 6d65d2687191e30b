/* SPDX-License-Identifier: Apache-2.0
 *
 * One set of tests that both backends of aio must pass: test_aio_threads.c and
 * test_aio_uring.c run it with their kind.
 */
#ifndef AIOTEST_H
#define AIOTEST_H

#include "iotest.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/rng.h"
#include "io/aio.h"
#include "io/inject.h"

static leat__aio_kind at_kind;

static inline leat__aio *at_open(uint32_t depth)
{
    leat__aio *a = NULL;
    leat_error err;
    leat__aio_opts o = {.kind = at_kind, .depth = depth};
    int rc = leat__aio_open(&a, &o, &err);
    if (rc == LEAT_ENOTSUP) skip();
    assert_int_equal(rc, 0);
    assert_int_equal(leat__aio_backend(a), at_kind);
    return a;
}

/* Many random reads, some past the end: each is completed once, in full or with its error. */
static inline void at_many(void **state)
{
    enum { N = 2000, SIZE = 1 << 20, MOST = 9000 };
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    leat__aio *a = at_open(8);
    it_make(it_path(dir, "a"), SIZE);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    leat__aio_req *reqs = calloc(N, sizeof *reqs);
    uint8_t *bufs = malloc((size_t)N * MOST);
    leat__rng r;
    leat__rng_init(&r, 1, 0, 0, 0);
    for (size_t i = 0; i < N; i++) {
        reqs[i] = (leat__aio_req){.file = f,
                                  .offset = leat__rng_below(&r, SIZE),
                                  .len = leat__rng_below(&r, MOST),
                                  .buf = bufs + i * MOST};
        leat__aio_submit(a, &reqs[i]);
        if (i == N / 2) leat__aio_depth_set(a, 2);
    }
    assert_true(leat__aio_in_flight(a) <= 8);
    for (size_t i = 0; i < N; i++) {
        leat__aio_req *q;
        assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
        bool inside = q->offset + q->len <= SIZE;
        assert_int_equal(q->rc, inside ? 0 : LEAT_EDATA);
        if (inside) it_check(q->buf, q->len, q->offset);
        else assert_int_equal(leat__aio_error(q, &err), LEAT_EDATA);
        assert_true(q->done_ns >= q->submit_ns);
        q->rc = 1; /* seen: a second delivery would fail above */
    }
    leat__aio_req *none;
    assert_int_equal(leat__aio_wait(a, &none, 0), LEAT_ENOENT);
    leat__aio_close(&a);
    leat__file_close(&f);
    free(reqs);
    free(bufs);
    it_rmdir(dir);
}

typedef struct at_chain {
    leat__aio *a;
    atomic_int left, done, wrong;
} at_chain;

/* Callbacks run on the lane's threads, where an assertion cannot fail the test. */
static inline bool at_right(const leat__aio_req *q)
{
    const uint8_t *p = q->buf;
    for (size_t i = 0; i < q->len; i++)
        if (p[i] != it_byte(q->offset + i)) return false;
    return true;
}

static inline void at_next(leat__aio_req *q)
{
    at_chain *c = q->cookie;
    if (q->rc == 0 && !at_right(q)) atomic_fetch_add(&c->wrong, 1);
    atomic_fetch_add(&c->done, 1);
    if (atomic_fetch_sub(&c->left, 1) > 1) {
        q->offset += 512;
        leat__aio_submit(c->a, q);
    }
}

/* Callbacks that submit the next read; then a close with reads in flight. */
static inline void at_callbacks(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    it_make(it_path(dir, "a"), 1 << 20);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    at_chain c = {.a = at_open(4), .left = 1000};
    leat__aio_req reqs[4];
    uint8_t bufs[4][512];
    for (int i = 0; i < 4; i++) {
        reqs[i] = (leat__aio_req){.file = f, .buf = bufs[i], .len = 512, .done = at_next, .cookie = &c};
        leat__aio_submit(c.a, &reqs[i]);
    }
    leat__aio_req *none;
    assert_int_equal(leat__aio_wait(c.a, &none, UINT64_MAX), LEAT_ENOENT);
    assert_true(atomic_load(&c.done) >= 1000);
    atomic_store(&c.left, 1 << 30);
    for (int i = 0; i < 4; i++) {
        reqs[i].offset = 0;
        leat__aio_submit(c.a, &reqs[i]);
    }
    atomic_store(&c.left, 100); /* the chains end by themselves, or at close */
    leat__aio_close(&c.a);
    assert_int_equal(atomic_load(&c.wrong), 0);
    leat__file_close(&f);
    it_rmdir(dir);
}

typedef struct at_tally {
    atomic_int read, canceled, wrong;
} at_tally;

static inline void at_count_and_free(leat__aio_req *q)
{
    at_tally *t = q->cookie;
    if (q->rc == 0 && at_right(q)) atomic_fetch_add(&t->read, 1);
    else if (q->rc == LEAT_ECANCELED) atomic_fetch_add(&t->canceled, 1);
    else atomic_fetch_add(&t->wrong, 1);
    free(q->buf);
    free(q);
}

/* Short-lived lanes: closed at any time, with requests that their callback frees, some of them
 * delayed. Every request is done exactly once by the time close returns. */
static inline void at_churn(void **state)
{
    enum { ROUNDS = 300, MOST = 12, LEN = 700, SIZE = 1 << 16 };
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    leat__rng r;
    leat__rng_init(&r, 2, 0, 0, 0);
    it_make(it_path(dir, "a"), SIZE);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    leat__inject_rule slow = {.length = SIZE / 8, .delay_ns = LEAT_NS_PER_MS / 2};
    assert_int_equal(leat__io_inject(&slow, &err), 0);
    for (int round = 0; round < ROUNDS; round++) {
        at_tally tally = {0};
        leat__aio *a = at_open(1 + (uint32_t)leat__rng_below(&r, 3));
        int n = (int)leat__rng_below(&r, MOST);
        for (int i = 0; i < n; i++) {
            leat__aio_req *q = malloc(sizeof *q);
            *q = (leat__aio_req){.file = f,
                                 .offset = leat__rng_below(&r, SIZE - LEN),
                                 .len = LEN,
                                 .buf = malloc(LEN),
                                 .done = at_count_and_free,
                                 .cookie = &tally};
            leat__aio_submit(a, q);
            if (i == n / 2) leat__aio_depth_set(a, 1 + (uint32_t)leat__rng_below(&r, 4));
        }
        leat__aio_req *none;
        if (round % 3 == 0) assert_int_equal(leat__aio_wait(a, &none, UINT64_MAX), LEAT_ENOENT);
        if (round % 3 == 1) usleep((unsigned)leat__rng_below(&r, 300));
        leat__aio_close(&a);
        assert_int_equal(atomic_load(&tally.wrong), 0);
        assert_int_equal(atomic_load(&tally.read) + atomic_load(&tally.canceled), n);
        if (round % 3 == 0) assert_int_equal(atomic_load(&tally.canceled), 0);
    }
    leat__io_inject_clear();
    leat__file_close(&f);
    it_rmdir(dir);
}

static inline void at_trouble(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    leat__aio_req *q;
    static uint8_t buf[2][4096]; /* requests in flight outlive a failed test */
    static leat__aio_req bad, good;
    leat__aio *a = at_open(4);
    it_make(it_path(dir, "a"), 1 << 16);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    bad = (leat__aio_req){.file = f, .offset = 8192, .len = 4096, .buf = buf[0]};
    good = (leat__aio_req){.file = f, .offset = 0, .len = 4096, .buf = buf[1]};
    leat__inject_rule eio = {.offset = 8192, .length = 1, .sys_errno = EIO};
    assert_int_equal(leat__io_inject(&eio, &err), 0);
    leat__aio_submit(a, &bad);
    assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
    assert_int_equal(q->rc, LEAT_EIO);
    assert_int_equal(leat__aio_error(q, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "8192"));
    leat__io_inject_clear();

    /* A slow read does not delay a fast one; a deadline passes. */
    leat__inject_rule slow = {.offset = 8192, .length = 1, .delay_ns = 400 * LEAT_NS_PER_MS};
    assert_int_equal(leat__io_inject(&slow, &err), 0);
    leat__aio_submit(a, &bad);
    leat__aio_submit(a, &good);
    assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
    assert_ptr_equal(q, &good);
    assert_int_equal(leat__aio_wait(a, &q, leat__clock_ns() + LEAT_NS_PER_MS), LEAT_ETIMEDOUT);
    assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
    assert_ptr_equal(q, &bad);
    assert_int_equal(q->rc, 0);
    it_check(q->buf, 4096, 8192);
    assert_true(q->done_ns - q->submit_ns >= 400 * LEAT_NS_PER_MS);
    leat__io_inject_clear();
    leat__aio_close(&a);
    leat__file_close(&f);
    it_rmdir(dir);
}

static inline void at_direct(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    leat__aio_req *q;
    leat__aio *a = at_open(4);
    size_t size = 3 * 4096 + 100;
    it_make(it_path(dir, "a"), size);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_DIRECT, &err), 0);
    uint8_t *buf = leat__alloc_aligned(LEAT__MEM_IO, 4 * 4096, 4096);
    leat__aio_req whole = {.file = f, .offset = 4096, .len = 8192, .buf = buf};
    leat__aio_submit(a, &whole);
    assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
    assert_int_equal(q->rc, 0);
    it_check(buf, 8192, 4096);
    leat__aio_req past = {.file = f, .offset = 8192, .len = 8192, .buf = buf};
    leat__aio_submit(a, &past);
    assert_int_equal(leat__aio_wait(a, &q, UINT64_MAX), 0);
    assert_int_equal(q->rc, LEAT_EDATA);
    assert_int_equal(q->got, 4196);
    it_check(buf, q->got, 8192);
    leat__aio_close(&a);
    leat__file_close(&f);
    leat__free(buf);
    it_rmdir(dir);
}

static inline int at_run(leat__aio_kind kind)
{
    at_kind = kind;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_many),    cmocka_unit_test(at_callbacks), cmocka_unit_test(at_churn),
        cmocka_unit_test(at_trouble), cmocka_unit_test(at_direct),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}

#endif
