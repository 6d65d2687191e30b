/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared descriptors: see file_pool.h. Callers that cannot wait get at most half of the seats. So a waiting
 * caller always waits for another one that is reading and will finish.
 */
#include "io/file_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#define SHARE 4u /* the pool uses 1/4 of the process's limit, because others need descriptors too */
#define SEATS_MIN 2u

struct leat__file_pool {
    uint64_t room, open;               /* seats with open descriptors: the maximum, and the current number */
    uint64_t waiting_kind, other_kind; /* taken seats, by whether the caller can wait */
    leat__seat *oldest, *newest;       /* list of idle seats with open descriptors */
    leat__cond given;
};

static leat__mutex lock = {PTHREAD_MUTEX_INITIALIZER}; /* guards all pools */

int leat__file_pool_open(leat__file_pool **pool, uint64_t files, bool direct, leat_error *err)
{
    struct rlimit limit;
    uint64_t each = direct ? 2 : 1;
    *pool = NULL;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    uint64_t room = limit.rlim_cur / SHARE / each;
    if (files <= room) return 0;
    leat__file_pool *p = LEAT_NEW(IO, leat__file_pool);
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "descriptors");
    leat__fork_renew(&lock);
    leat__cond_init(&p->given);
    p->room = LEAT_MAX(room, SEATS_MIN);
    *pool = p;
    return 0;
}

void leat__file_pool_close(leat__file_pool **pool)
{
    if (*pool == NULL) return;
    leat__cond_destroy(&(*pool)->given);
    leat__free(*pool);
    *pool = NULL;
}

static void close_descriptors(leat__seat *s)
{
    if (s->fd >= 0) close(s->fd);
    if (s->direct_fd >= 0) close(s->direct_fd);
    s->fd = s->direct_fd = -1;
}

static void leave_list(leat__file_pool *p, leat__seat *s)
{
    *(s->older != NULL ? &s->older->newer : &p->oldest) = s->newer;
    *(s->newer != NULL ? &s->newer->older : &p->newest) = s->older;
    s->older = s->newer = NULL;
}

static bool close_oldest(leat__file_pool *p)
{
    LEAT_ASSERT(p->oldest == NULL || p->open > 0);
    leat__seat *s = p->oldest;
    if (s == NULL) return false;
    leave_list(p, s);
    close_descriptors(s);
    p->open--;
    return true;
}

static int open_retry(const char *path, int flags)
{
    int fd;
    do {
        fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static bool same_file(const leat__seat *s, const struct stat *st)
{
    return st->st_dev == s->device && st->st_ino == s->inode && st->st_size == s->bytes;
}

/* Returns 0 or an errno. O_NONBLOCK: a FIFO opened by mistake must not wait for a writer. */
static int open_descriptors(leat__seat *s)
{
    struct stat st;
    int bad = 0;
    s->fd = open_retry(s->path, O_NONBLOCK);
    if (s->fd < 0 || fstat(s->fd, &st) != 0) bad = errno;
    else if (s->known && !same_file(s, &st)) bad = ESTALE;
    if (bad == 0 && s->direct) {
        s->direct_fd = open_retry(s->path, O_DIRECT);
        if (s->direct_fd < 0 && (s->known || errno == EMFILE || errno == ENFILE)) bad = errno;
    }
    if (bad != 0) {
        close_descriptors(s);
        return bad;
    }
    s->pool->open++;
    if (s->known) return 0;
    s->direct = s->direct_fd >= 0; /* file systems without direct reads refuse the flag */
    s->known = true;
    s->device = st.st_dev;
    s->inode = st.st_ino;
    s->bytes = st.st_size;
    return 0;
}

static void check_locked(const leat__file_pool *p)
{
    LEAT_ASSERT((p->oldest == NULL) == (p->newest == NULL));
    LEAT_ASSERT(p->oldest == NULL || (p->oldest->older == NULL && p->newest->newer == NULL));
    LEAT_ASSERT(p->oldest == NULL || (p->open > 0 && p->oldest->users == 0 && p->oldest->fd >= 0));
}

/* Returns 0, an errno, or EAGAIN when a seat must be released first. */
static int take_locked(leat__file_pool *p, leat__seat *s)
{
    if (s->users > 0) return 0;
    if (s->fd >= 0) {
        leave_list(p, s);
        return 0;
    }
    if (p->open >= p->room && !close_oldest(p)) return EAGAIN;
    int bad = open_descriptors(s);
    while ((bad == EMFILE || bad == ENFILE) && close_oldest(p)) bad = open_descriptors(s);
    bool full = bad == EMFILE || bad == ENFILE;
    return full && p->waiting_kind > 0 ? EAGAIN : bad;
}

int leat__seat_take(leat__seat *s, bool waits)
{
    leat__file_pool *p = s->pool;
    int bad = 0;
    if (p == NULL) return 0;
    leat__mutex_lock(&lock);
    if (!waits && p->other_kind >= p->room / 2) bad = EAGAIN;
    else
        while ((bad = take_locked(p, s)) == EAGAIN && waits) leat__cond_wait(&p->given, &lock);
    if (bad == 0) {
        s->users++;
        ++*(waits ? &p->waiting_kind : &p->other_kind);
    }
    check_locked(p);
    leat__mutex_unlock(&lock);
    return bad;
}

void leat__seat_give(leat__seat *s, bool waits)
{
    leat__file_pool *p = s->pool;
    if (p == NULL) return;
    leat__mutex_lock(&lock);
    LEAT_ASSERT(s->users > 0 && *(waits ? &p->waiting_kind : &p->other_kind) > 0);
    --*(waits ? &p->waiting_kind : &p->other_kind);
    if (--s->users == 0) {
        s->older = p->newest;
        *(p->newest != NULL ? &p->newest->newer : &p->oldest) = s;
        p->newest = s;
    }
    leat__cond_broadcast(&p->given);
    check_locked(p);
    leat__mutex_unlock(&lock);
}

void leat__seat_close(leat__seat *s)
{
    if (s->pool != NULL) leat__mutex_lock(&lock);
    if (s->pool != NULL && s->fd >= 0) {
        if (s->users == 0) leave_list(s->pool, s);
        s->pool->open--;
    }
    close_descriptors(s);
    if (s->pool != NULL) leat__mutex_unlock(&lock);
}
