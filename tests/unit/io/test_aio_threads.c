/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread backend passes the tests of every backend, and starts a thread for each request that
 * the depth allows.
 */
#include "aiotest.h"

#include "base/thread.h"

typedef struct meeting {
    leat__mutex lock;
    leat__cond came;
    int wanted, here;
    bool missed;
} meeting;

/* Blocks its thread until all reads are in their callbacks at once: that needs one thread for
 * each. (A callback must not block; this tests what happens if one does.) */
static void meet(leat__aio_req *q)
{
    meeting *m = q->cookie;
    uint64_t deadline = leat__clock_ns() + 10 * LEAT_NS_PER_S;
    leat__mutex_lock(&m->lock);
    m->here++;
    leat__cond_broadcast(&m->came);
    while (m->here < m->wanted && !m->missed)
        if (!leat__cond_wait_until(&m->came, &m->lock, deadline)) m->missed = true;
    leat__mutex_unlock(&m->lock);
}

/* Requests that arrive while threads are idle or asleep: none waits for another. */
static void at_once(void **state)
{
    enum { DEPTH = 4, ROUNDS = 30 };
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    static leat__aio_req reqs[DEPTH];
    static uint8_t bufs[DEPTH][512];
    it_make(it_path(dir, "a"), 1 << 16);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    for (int round = 0; round < ROUNDS; round++) {
        leat__aio *a = at_open(DEPTH);
        meeting m = {.wanted = 1};
        leat__mutex_init(&m.lock);
        leat__cond_init(&m.came);
        for (; m.wanted <= DEPTH; m.wanted++) {
            usleep(round % 3 * 500u); /* lets the threads fall asleep */
            m.here = 0;
            for (int i = 0; i < m.wanted; i++) {
                reqs[i] = (leat__aio_req){.file = f,
                                          .offset = 512 * (uint64_t)i,
                                          .len = 512,
                                          .buf = bufs[i],
                                          .done = meet,
                                          .cookie = &m};
                leat__aio_submit(a, &reqs[i]);
            }
            leat__aio_req *none;
            assert_int_equal(leat__aio_wait(a, &none, UINT64_MAX), LEAT_ENOENT);
            assert_false(m.missed);
        }
        leat__aio_close(&a);
        leat__cond_destroy(&m.came);
        leat__mutex_destroy(&m.lock);
    }
    leat__file_close(&f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_once)};
    at_kind = LEAT__AIO_THREADS;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return at_run(LEAT__AIO_THREADS) != 0 || failed != 0;
}
