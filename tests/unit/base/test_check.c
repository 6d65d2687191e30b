/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static int calls;

static bool note(bool value)
{
    calls++;
    return value;
}

static void a_true_condition_does_nothing(void **state)
{
    (void)state;
    LEAT_ASSERT(note(true));
    assert_int_equal(calls, LEAT_CHECKED);
}

/* The child's message is not for the log of the test. */
static void a_false_one_ends_the_process(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (dup2(open("/dev/null", O_WRONLY), 2) >= 0) LEAT_ASSERT(note(false));
        _exit(7);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (LEAT_CHECKED) assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    else assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_condition_does_nothing),
        cmocka_unit_test(a_false_one_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
