/* SPDX-License-Identifier: Apache-2.0
 *
 * A fault inside process() fails its task and nothing else; a fault elsewhere still ends the
 * process.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stages.h"

static atomic_int setups;

static int count_setup(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    atomic_fetch_add(&setups, 1);
    *ctx = cookie;
    return 0;
}

static int crash_on_seven(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    if (ctx != cookie) return leat__fail(err, LEAT_EINTERNAL, "a context that is not fresh");
    uint64_t n = number_of(task);
    if (n % 10 == 7) {
        volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[n] = 1;
    }
    if (n % 10 == 8) raise(SIGFPE);
    return 0;
}

static void a_crash_fails_its_task(void **state)
{
    numbers n = {.end = 50};
    int cookie = 0;
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    fo.contain_crashes = 1;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "shaky", crash_on_seven, &cookie)};
    s[1].setup = count_setup;
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    int crashed = 0;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        bool bad = i % 10 == 7 || i % 10 == 8;
        assert_int_equal(t->status, bad ? LEAT_EINTERNAL : 0);
        if (bad) {
            crashed++;
            assert_non_null(strstr(t->error->message, "stage shaky crashed on task"));
            assert_non_null(strstr(t->error->message, i % 10 == 7 ? "SIGSEGV" : "SIGFPE"));
        }
        leat_task_release(t);
    }
    rig_close(&r);
    assert_int_equal(crashed, 10);
    assert_true(atomic_load(&setups) > 10 / 2); /* each crash costs its worker the context */
}

static void crash_elsewhere_still_ends_the_process(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGILL, SIG_DFL); /* as a process without a test framework's handlers */
        leat_flow *f = NULL;
        leat_flow_opts fo;
        leat_flow_opts_init(&fo);
        fo.contain_crashes = 1;
        if (leat_flow_open(&f, &fo, NULL) != 0) _exit(3);
        raise(SIGILL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_elsewhere_still_ends_the_process),
        cmocka_unit_test(a_crash_fails_its_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
