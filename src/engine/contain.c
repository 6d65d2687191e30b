/* SPDX-License-Identifier: Apache-2.0
 *
 * Opt-in: a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL) inside process() ends that call and fails its task,
 * instead of ending the process.
 *
 * The handlers are process-wide, installed once and never removed. A fault outside a contained call goes to
 * the previously installed handler. Memory and locks held by the op are lost. A stack overflow is not
 * contained, because no stack is left to run the handler on.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/sched.h"

typedef struct frame {
    sigjmp_buf back;
    volatile int signal;
    void *volatile address;
} frame;

static const int contained[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[NSIG];
static _Thread_local frame *volatile current;

static void on_fault(int sig, siginfo_t *info, void *machine)
{
    frame *f = current;
    if (f) {
        f->signal = sig;
        f->address = info->si_addr;
        current = NULL;
        siglongjmp(f->back, 1);
    }
    const struct sigaction *old = &before[sig];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(sig, info, machine);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(sig);
    } else {
        /* Restore the previous handler. Returning then runs the faulting instruction again; a signal that a
         * process sent is raised again. */
        sigaction(sig, old, NULL);
        if (info->si_code <= 0) raise(sig);
    }
}

static leat__once once = LEAT__ONCE_INIT;
static int installed_rc;

static void install(void)
{
    for (size_t i = 0; i < LEAT_COUNT(contained); i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        if (sigaction(contained[i], &action, &before[contained[i]]) != 0) installed_rc = LEAT_ENOTSUP;
    }
}

int leat__contain_install(leat_error *err)
{
    leat__once_run(&once, install);
    if (installed_rc != 0) return leat__fail(err, installed_rc, "cannot install handlers to contain crashes");
    return 0;
}

static const char *signal_name(int sig)
{
    switch (sig) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    default: return "SIGILL";
    }
}

int leat__contain_call(const leat__stage *s, void *ctx, leat_task *task, bool *crashed, leat_error *err)
{
    frame f;
    f.signal = 0;
    f.address = NULL;
    if (sigsetjmp(f.back, 1) == 0) {
        current = &f;
        int rc = s->decl.process(s->decl.cookie, ctx, task, err);
        current = NULL;
        return rc;
    }
    *crashed = true;
    return leat__fail(err, LEAT_EINTERNAL, "stage %s crashed on task %llu: %s at %p", s->name,
                      (unsigned long long)task->seq, signal_name(f.signal), f.address);
}
