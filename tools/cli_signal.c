/* SPDX-License-Identifier: Apache-2.0
 *
 * Stopping. The first SIGINT or SIGTERM is a request: it sets a number that commands poll and wakes the
 * watcher, if a command has one. The second ends the process immediately. SIGPIPE and SIGXFSZ are ignored:
 * a failing write is handled where it was made.
 *
 * The number, and the child that also gets the signal, belong to the process, because signals do. All other
 * state of the frame belongs to a context.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli_frame.h"

static atomic_int stopped;
static atomic_int wake_fd = -1;
static atomic_bool talk_on;
static atomic_int child; /* process id, 0 = none */

/* Passes a signal to the child, only once, because a second signal would end it immediately.
 * Async-signal-safe. */
static void pass_on(int number)
{
    const int process = atomic_exchange(&child, 0);
    if (process > 0) kill(process, number);
}

/* Async-signal-safe. */
static void on_signal(int number)
{
    static const char notice[] = "\nstopping; press Ctrl-C again to stop at once\n";
    const int saved = errno;
    if (atomic_load(&stopped) != 0) _exit(128 + number);
    if (number == SIGINT && atomic_load(&talk_on)) {
        const ssize_t ignored = write(STDERR_FILENO, notice, sizeof notice - 1);
        (void)ignored;
    }
    cli_stop(number);
    pass_on(number);
    errno = saved;
}

void cli_stop(int number)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&stopped, &none, number)) return;
    leat__stop_ask();
    const int fd = atomic_load(&wake_fd);
    if (fd >= 0) {
        const ssize_t ignored = write(fd, "s", 1);
        (void)ignored;
    }
}

int cli_stopped(void)
{
    return atomic_load(&stopped);
}

void cli_child(int process)
{
    atomic_store(&child, process);
    if (cli_stopped() != 0) pass_on(cli_stopped()); /* the signal came before */
}

bool cli_interrupted(const cli *c)
{
    return cli_stopped() != 0;
}

/* Installs the handler. A signal that the parent chose to ignore (nohup, a shell's background job)
 * stays ignored. */
static void catch (int number)
{
    struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
}

void cli_signals_begin(bool talk)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* writing a file beyond `ulimit -f` then fails as a write error */
    atomic_store(&talk_on, talk);
    catch (SIGINT);
    catch (SIGTERM);
}

/* ---- The watcher: a thread that sleeps on a pipe ---- */

typedef struct watcher {
    leat__thread thread;
    int fds[2]; /* read end, write end */
    void (*stop)(void *cookie);
    void *cookie;
} watcher;

static void watch_main(void *arg)
{
    watcher *w = arg;
    char byte = 0;
    ssize_t n;
    do n = read(w->fds[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1 && byte == 's') w->stop(w->cookie);
}

void cli_watch_end(cli *c)
{
    watcher *w = c->watch;
    if (!w) return;
    atomic_store(&wake_fd, -1);
    /* If an 's' is already in the pipe, it is read before this 'q', so `stop` finishes before the join. */
    if (w->thread.running) {
        const ssize_t ignored = write(w->fds[1], "q", 1);
        (void)ignored;
        leat__thread_join(&w->thread);
    }
    close(w->fds[0]);
    close(w->fds[1]);
    leat__free(w);
    c->watch = NULL;
}

int cli_on_interrupt(cli *c, void (*stop)(void *cookie), void *cookie, leat_error *err)
{
    cli_watch_end(c);
    if (!stop) return 0;
    watcher *w = LEAT_NEW(MISC, watcher);
    if (!w) return leat__fail_nomem(err, sizeof *w, "the signal watcher");
    w->stop = stop;
    w->cookie = cookie;
    if (pipe2(w->fds, O_CLOEXEC) != 0) {
        leat__free(w);
        return leat__fail_errno(err, errno, "cannot make a pipe for signals");
    }
    c->watch = w;
    const int rc = leat__thread_start(&w->thread, "leat-signal", watch_main, w, err);
    if (rc != 0) {
        cli_watch_end(c);
        return rc;
    }
    atomic_store(&wake_fd, w->fds[1]);
    /* the signal may have come before the watcher existed */
    if (cli_stopped()) {
        const ssize_t ignored = write(w->fds[1], "s", 1);
        (void)ignored;
    }
    return 0;
}
