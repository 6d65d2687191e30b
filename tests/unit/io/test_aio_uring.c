/* SPDX-License-Identifier: Apache-2.0
 *
 * The io_uring backend passes the tests of every backend (skipped if the kernel has no io_uring),
 * and survives a kernel that refuses to run the ring, at the start or later.
 */
#include "leat_test.h"

#include "aiotest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { READS = 300, SIZE = 1 << 20 };

/* Makes io_uring_enter return `error` in all threads of this process from now on. */
static bool refuse_enter(int error)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* All reads must succeed; 0, or a line number. */
static int read_all(leat__aio *a, leat__file *f)
{
    static leat__aio_req reqs[READS];
    static uint8_t bufs[READS][4096];
    for (uint32_t i = 0; i < READS; i++) {
        reqs[i] = (leat__aio_req){.file = f, .offset = i * 2999u, .len = 4096, .buf = bufs[i]};
        leat__aio_submit(a, &reqs[i]);
    }
    for (uint32_t i = 0; i < READS; i++) {
        leat__aio_req *q;
        if (leat__aio_wait(a, &q, UINT64_MAX) != 0 || q->rc != 0) return __LINE__ & 127;
        for (size_t k = 0; k < q->len; k++)
            if (((uint8_t *)q->buf)[k] != it_byte(q->offset + k)) return __LINE__ & 127;
    }
    return 0;
}

enum { CANNOT = 99 };

/* In a separate process: a filter cannot be removed. */
static int under_filter(const char *path, int error, bool first_allowed)
{
    leat__aio *a = NULL;
    leat__file *f;
    leat_error err;
    leat__aio_opts o = {.kind = LEAT__AIO_URING, .depth = 8};
    alarm(watchdog_s()); /* it used to loop without end */
    if (leat__file_open(&f, path, LEAT__FILE_READ, &err) != 0) return __LINE__ & 127;
    if (!first_allowed && !refuse_enter(error)) return CANNOT;
    if (leat__aio_open(&a, &o, &err) != 0) return CANNOT;
    int rc = 0;
    if (first_allowed) {
        rc = read_all(a, f);
        if (rc == 0 && !refuse_enter(error)) return CANNOT;
    }
    if (rc == 0) rc = read_all(a, f);
    if (rc == 0) rc = read_all(a, f);
    if (rc == 0 && leat__aio_backend(a) != LEAT__AIO_THREADS) rc = __LINE__ & 127;
    leat__aio_close(&a);
    leat__file_close(&f);
    return rc;
}

static void refused_ring_falls_back_to_threads(void **state)
{
    static const int errors[] = {EPERM, ENOSYS, EACCES, EINVAL, EBADF};
    char *dir = it_dir();
    (void)state;
    it_make(it_path(dir, "a"), SIZE);
    for (uint32_t i = 0; i < 2 * sizeof errors / sizeof errors[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(under_filter(it_path(dir, "a"), errors[i / 2], i % 2));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) skip();
        if (status != 0)
            fail_msg("errno %d, %s: status %#x", errors[i / 2], i % 2 ? "after some reads" : "at once",
                     status);
    }
    it_rmdir(dir);
}

/* The same with injected faults, and without any thread. */
static void reads_work_without_ring_and_threads(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    (void)state;
    if (!leat__fault_available()) skip();
    it_make(it_path(dir, "a"), SIZE);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, NULL), 0);
    for (int threads = 0; threads < 2; threads++) {
        leat__aio *a = at_open(8);
        leat__fault_arm(LEAT__FAULT_RING, 1, true);
        if (threads == 0) leat__fault_arm(LEAT__FAULT_THREAD, 1, true);
        assert_int_equal(read_all(a, f), 0);
        assert_int_equal(leat__aio_backend(a), threads ? LEAT__AIO_THREADS : LEAT__AIO_URING);
        leat__aio_close(&a);
        leat__fault_disarm();
    }
    leat__file_close(&f);
    it_rmdir(dir);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_ring_falls_back_to_threads),
        cmocka_unit_test(reads_work_without_ring_and_threads),
    };
    int failed = at_run(LEAT__AIO_URING);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
