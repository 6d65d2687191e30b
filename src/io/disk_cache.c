/* SPDX-License-Identifier: Apache-2.0
 *
 * Disk cache of pages: see disk_cache.h. A process that has a pack open holds a shared lock on its data file;
 * removing a pack needs the exclusive lock. The folder's size is read from the file system from time to time,
 * because a counter would be wrong after a kill.
 */
#include "io/disk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/dir.h"

#define STEP_MAX (UINT64_C(16) << 20) /* bytes written between two checks of the folder's size */
#define STEP_SHARE 32                 /* but at most 1/32 of the limit */
#define BLOCK 4096                    /* unit in which file systems allocate */
#define OPEN_TRIES 16
/* Longest wait for a page that another process is fetching. That process may be stopped, so afterwards the
 * page is fetched twice. On a slow link a page takes seconds, so this is as long as a transfer may stall. */
#define WAIT_NS (20 * LEAT_NS_PER_S)
#define WAIT_STEP_NS (2 * LEAT_NS_PER_MS) /* between two checks of the map */

enum {
    CACHED = 1,
    CLAIMED = 2
}; /* bits per page: CACHED in the file; CLAIMED: this open cache is fetching it */

struct leat__disk {
    char *folder;
    char name[32]; /* name of the pack's files, without ".data" */
    leat__file *data, *map;
    uint64_t pages, limit;
    uint64_t room;          /* the limit minus a reserve */
    _Atomic uint8_t *known; /* per page: CACHED, CLAIMED */
    atomic_bool full;
    leat__mutex lock;      /* guards the next three, and the removal of packs */
    uint64_t used, since;  /* bytes in the folder at the last check; bytes granted since then */
    uint64_t pending;      /* bytes granted and not yet written, so not yet in the folder's size */
    leat__mutex wait_lock; /* guards the next four */
    leat__cond wait_changed;
    leat__disk_waiter *waiting;
    leat__disk_saver *saving, *saving_last; /* queue, in the order of the leat__disk_save calls */
    bool closing;
    atomic_bool hurry;   /* no thread may wait for another process */
    leat__thread thread; /* started by the first wait or save */
    bool (*unwanted)(void *cookie, uint64_t page, uint64_t *offset, uint64_t *len);
    void *cookie;
    leat__mutex drop_lock; /* guards the next */
    uint64_t drop_at;      /* the pages before this one have been dropped, or will be read */
};

static void path_of(const leat__disk *d, const char *name, const char *ext, char *out, size_t size)
{
    snprintf(out, size, "%s/%s%s", d->folder, name, ext);
}

/* ---- size of the folder and eviction ----------------------------------------------------- */

typedef struct victim {
    char name[32];
    int64_t used_at;
} victim;

/* Sums the size of the folder. *oldest gets the least recently used pack other than ours that was
 * last used after `after`. */
static uint64_t look(const leat__disk *d, int64_t after, victim *oldest)
{
    char path[4096];
    uint64_t sum = 0;
    leat__dir dir = {0};
    oldest->used_at = INT64_MAX;
    if (leat__dir_read(&dir, d->folder, true, NULL) != 0) return 0;
    for (size_t i = 0; i < dir.count; i++) {
        const char *file = leat__dir_name(&dir, i);
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", d->folder, file);
        if (!leat__str_ends(file, ".data") && !leat__str_ends(file, ".map")) continue;
        if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) continue; /* not ours */
        sum += (uint64_t)st.st_blocks * 512;
        size_t len = strlen(file) - strlen(".data");
        if (!leat__str_ends(file, ".data") || len >= sizeof oldest->name) continue;
        bool ours = len == strlen(d->name) && memcmp(file, d->name, len) == 0;
        if (ours || st.st_mtime >= oldest->used_at || st.st_mtime <= after) continue;
        oldest->used_at = st.st_mtime;
        memcpy(oldest->name, file, len);
        oldest->name[len] = '\0';
    }
    leat__dir_reset(&dir);
    return sum;
}

/* Removes a pack unless a process has it open. The map is removed first, because data without a map is
 * ignored. */
static void remove_pack(const leat__disk *d, const char *name)
{
    char data[4096], map[4096];
    path_of(d, name, ".data", data, sizeof data);
    path_of(d, name, ".map", map, sizeof map);
    int fd = open(data, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)unlink(map);
        (void)unlink(data);
    }
    close(fd);
}

/* Makes room for `len` more bytes by removing packs that no process has open. */
static bool make_room_locked(leat__disk *d, uint64_t len)
{
    victim v;
    int64_t after = INT64_MIN;
    d->since = 0;
    for (;;) {
        d->used = look(d, after, &v) + d->pending;
        if (d->used + len <= d->room) return true;
        if (v.used_at == INT64_MAX) return false;
        remove_pack(d, v.name);
        after = v.used_at;
    }
}

static bool room_for(leat__disk *d, uint64_t len)
{
    uint64_t step = LEAT_MIN(STEP_MAX, d->limit / STEP_SHARE);
    leat__mutex_lock(&d->lock);
    bool fits = d->since + len <= step && d->used + d->since + len <= d->room;
    if (!fits) fits = make_room_locked(d, len);
    if (fits) d->since += len;
    if (fits) d->pending += len;
    LEAT_ASSERT(!fits || d->pending >= len);
    LEAT_ASSERT(d->room <= d->limit);
    leat__mutex_unlock(&d->lock);
    return fits;
}

static void written(leat__disk *d, uint64_t len)
{
    leat__mutex_lock(&d->lock);
    LEAT_ASSERT(d->pending >= len);
    d->pending -= len;
    leat__mutex_unlock(&d->lock);
}

/* Takes the read lock that every user of a pack holds, on a byte after the map's last page. */
static void lock_as_user(leat__disk *d)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)d->pages + 1, .l_len = 1};
    (void)!fcntl(leat__file_fd(d->map), F_OFD_SETLK, &lock);
}

static bool only_user(leat__disk *d)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)d->pages + 1, .l_len = 1};
    return fcntl(leat__file_fd(d->map), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* Frees about `len` bytes of pages that this process will not read, if no other process uses the pack. The
 * map is written first, so that a kill leaves no page that is marked but empty. */
static bool drop_unwanted(leat__disk *d, uint64_t len)
{
    LEAT_ASSERT(len > 0);
    uint64_t freed = 0, offset, bytes, goal = LEAT_MAX(len, LEAT_MIN(STEP_MAX, d->limit / STEP_SHARE));
    if (d->unwanted == NULL || !only_user(d)) return false;
    leat__mutex_lock(&d->drop_lock);
    for (; d->drop_at < d->pages && freed < goal; d->drop_at++) {
        if (!leat__disk_has(d, d->drop_at) || !d->unwanted(d->cookie, d->drop_at, &offset, &bytes)) continue;
        leat__disk_forget(d, d->drop_at);
        if (fallocate(leat__file_fd(d->data), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                      (off_t)bytes) == 0)
            freed += bytes;
    }
    leat__mutex_unlock(&d->drop_lock);
    return freed > 0;
}

/* ---- opening ----------------------------------------------------------------------------- */

/* Removes a link in place of a cache file: writing would change the file that it leads to. The map goes, too,
 * since it lists the pages of other data. Anything else that is not a file is an error. */
static int remove_link(const char *path, const char *map, leat_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0) return 0;
    if (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink > 1)) {
        if (unlink(map) != 0 && errno != ENOENT)
            return leat__fail_errno(err, errno, "%s: cannot be removed", map);
        if (unlink(path) == 0 || errno == ENOENT) return 0;
        return leat__fail_errno(err, errno, "%s: is a link, and cannot be removed", path);
    }
    if (S_ISREG(st.st_mode)) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s: is not a file of the cache: remove it, or use another folder for the cache", path);
}

static int open_pair(leat__disk *d, leat_error *err)
{
    char data[4096], map[4096];
    unsigned flags = LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_NO_LINK;
    struct stat held, named;
    path_of(d, d->name, ".data", data, sizeof data);
    path_of(d, d->name, ".map", map, sizeof map);
    for (int i = 0; i < OPEN_TRIES; i++) {
        LEAT_TRY(remove_link(data, map, err));
        LEAT_TRY(remove_link(map, map, err));
        LEAT_TRY(leat__file_open(&d->data, data, flags, err));
        int fd = leat__file_fd(d->data);
        /* checks that no other process removed the file between open and lock */
        if (flock(fd, LOCK_SH) == 0 && fstat(fd, &held) == 0 && lstat(data, &named) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
            (void)futimens(fd, NULL); /* the time of last use, for eviction */
            return leat__file_open(&d->map, map, flags, err);
        }
        leat__file_close(&d->data);
    }
    return leat__fail(err, LEAT_ESTATE, "%s: other processes keep removing it", data);
}

static int load_map(leat__disk *d, leat_error *err)
{
    size_t got, n = (size_t)d->pages;
    uint8_t *bytes = leat__zalloc(LEAT__MEM_IO, n + 1);
    d->known = leat__zalloc(LEAT__MEM_IO, n + 1);
    int rc = bytes == NULL || d->known == NULL ? leat__fail_nomem(err, n, "the map of a disk cache") : 0;
    if (rc == 0) rc = leat__file_pread_some(d->map, bytes, n, 0, &got, err);
    for (size_t i = 0; rc == 0 && i < got; i++)
        atomic_store_explicit(&d->known[i], bytes[i] == 1 ? CACHED : 0, memory_order_relaxed);
    leat__free(bytes);
    return rc;
}

/* Returns the bytes to leave free below the limit. File systems add blocks for extent lists, often only when
 * they write the data to disk, after the folder's size was checked. */
static uint64_t reserve_of(uint64_t limit)
{
    return LEAT_MIN(limit / 4, 4 * BLOCK + limit / 1024);
}

/* Returns the bytes of all blocks that a page touches. */
static uint64_t blocks_of(uint64_t offset, uint64_t len)
{
    LEAT_ASSERT(len > 0);
    return (offset + len + BLOCK - 1) / BLOCK * BLOCK - offset / BLOCK * BLOCK;
}

static uint64_t half_of_free(const char *folder)
{
    struct statvfs v;
    if (statvfs(folder, &v) != 0) return 0;
    return (uint64_t)v.f_bavail * v.f_frsize / 2;
}

int leat__disk_open(leat__disk **out, const leat__disk_opts *opts, leat_error *err)
{
    LEAT_ASSERT(opts->folder != NULL);
    *out = NULL;
    leat__disk *d = LEAT_NEW(IO, leat__disk);
    if (d == NULL) return leat__fail_nomem(err, sizeof *d, "a disk cache");
    leat__mutex_init(&d->lock);
    leat__mutex_init(&d->wait_lock);
    leat__mutex_init(&d->drop_lock);
    d->unwanted = opts->unwanted;
    d->cookie = opts->cookie;
    leat__cond_init(&d->wait_changed);
    d->pages = opts->pages;
    snprintf(d->name, sizeof d->name, "leat-%016llx", (unsigned long long)opts->id);
    d->folder = leat__strdup(LEAT__MEM_IO, opts->folder);
    int rc = d->folder == NULL ? leat__fail_nomem(err, strlen(opts->folder), "a path") : 0;
    victim v;
    if (rc == 0) rc = leat__path_mkdir(opts->folder, err);
    if (rc == 0) rc = open_pair(d, err);
    if (rc == 0) rc = load_map(d, err);
    if (rc == 0) {
        lock_as_user(d);
        /* so that the folder's size includes its blocks from now on */
        (void)!fallocate(leat__file_fd(d->map), 0, 0, (off_t)d->pages + 1);
        d->used = look(d, INT64_MIN, &v);
        d->limit = opts->limit != 0 ? opts->limit : d->used + half_of_free(opts->folder);
        d->room = d->limit - reserve_of(d->limit);
        LEAT_ASSERT(d->room > 0 || d->limit == 0);
        if (d->used > d->room) (void)make_room_locked(d, 0);
        *out = d;
    } else {
        leat__disk_close(&d);
    }
    return rc;
}

void leat__disk_stop(leat__disk *d)
{
    if (d == NULL) return;
    leat__mutex_lock(&d->wait_lock);
    d->closing = true;
    leat__cond_signal(&d->wait_changed);
    leat__mutex_unlock(&d->wait_lock);
    leat__thread_join(&d->thread);
}

void leat__disk_close(leat__disk **disk)
{
    leat__disk *d = *disk;
    if (d == NULL) return;
    leat__disk_stop(d);
    leat__cond_destroy(&d->wait_changed);
    leat__mutex_destroy(&d->wait_lock);
    leat__mutex_destroy(&d->drop_lock);
    LEAT_ASSERT(d->waiting == NULL && d->saving == NULL && d->pending == 0);
    leat__file_close(&d->data);
    leat__file_close(&d->map);
    leat__free((void *)d->known);
    leat__free(d->folder);
    leat__mutex_destroy(&d->lock);
    leat__free(d);
    *disk = NULL;
}

/* ---- pages ------------------------------------------------------------------------------- */

bool leat__disk_has(leat__disk *d, uint64_t page)
{
    uint8_t byte = 0;
    if (page >= d->pages) return false;
    if (atomic_load_explicit(&d->known[page], memory_order_relaxed) & CACHED) return true;
    size_t got;
    if (leat__file_pread_some(d->map, &byte, 1, page, &got, NULL) != 0 || got != 1 || byte != 1) return false;
    /* another process stored the page */
    atomic_fetch_or_explicit(&d->known[page], CACHED, memory_order_relaxed);
    return true;
}

const leat__file *leat__disk_file(const leat__disk *d)
{
    return d->data;
}

void leat__disk_put(leat__disk *d, uint64_t page, uint64_t offset, const void *data, size_t len)
{
    LEAT_ASSERT(len > 0);
    static const uint8_t there = 1;
    if (page >= d->pages || atomic_load(&d->full) || leat__disk_has(d, page)) return;
    const uint64_t bytes = blocks_of(offset, len);
    bool room = room_for(d, bytes);
    /* other threads may take the freed space */
    while (!room && drop_unwanted(d, bytes)) room = room_for(d, bytes);
    bool stored = room && leat__file_pwrite(d->data, data, len, offset, NULL) == 0 &&
                  leat__file_pwrite(d->map, &there, 1, page, NULL) == 0;
    if (room) written(d, bytes);
    if (!stored) {
        atomic_store(&d->full, true);
        return;
    }
    atomic_fetch_or_explicit(&d->known[page], CACHED, memory_order_relaxed);
}

void leat__disk_forget(leat__disk *d, uint64_t page)
{
    static const uint8_t gone = 0;
    if (page >= d->pages) return;
    atomic_fetch_and_explicit(&d->known[page], (uint8_t)~CACHED, memory_order_relaxed);
    (void)!leat__file_pwrite(d->map, &gone, 1, page, NULL);
}

/* ---- one thread of one process fetches a page ---------------------------------------------- */

/* Locks the page's byte in the map for this open file. Other processes, and other loaders of this process,
 * have their own open files. The kernel releases the lock when the process ends. */
static bool lock_page(leat__disk *d, uint64_t page, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)page, .l_len = 1};
    return fcntl(leat__file_fd(d->map), F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* The bit excludes other threads that use this open file; the file lock does not. */
bool leat__disk_claim(leat__disk *d, uint64_t page)
{
    if (page >= d->pages) return true;
    if (atomic_fetch_or(&d->known[page], CLAIMED) & CLAIMED) return false;
    if (lock_page(d, page, F_WRLCK)) return true;
    atomic_fetch_and(&d->known[page], (uint8_t)~CLAIMED);
    return false;
}

void leat__disk_release(leat__disk *d, uint64_t page)
{
    if (page >= d->pages) return;
    LEAT_ASSERT(atomic_load(&d->known[page]) & CLAIMED);
    (void)lock_page(
        d, page,
        F_UNLCK); /* before clearing the bit: a later unlock would release the lock of the next claim */
    atomic_fetch_and(&d->known[page], (uint8_t)~CLAIMED);
}

/* True when the waiter need not wait any longer. There is no time limit for fetches of this process, which
 * always end. */
static bool is_ready(leat__disk *d, leat__disk_waiter *w, uint64_t now)
{
    if (leat__disk_has(d, w->page)) return true;
    bool ours = atomic_load(&d->known[w->page]) & CLAIMED;
    if (ours) w->until_ns = now + WAIT_NS;
    else w->claimed = leat__disk_claim(d, w->page);
    return w->claimed || now >= w->until_ns || atomic_load(&d->hurry);
}

/* Removes waiters that need not wait any longer from the list. */
static leat__disk_waiter *take_ready_locked(leat__disk *d)
{
    leat__disk_waiter *ready = NULL, **at = &d->waiting;
    uint64_t now = leat__clock_ns();
    while (*at != NULL) {
        leat__disk_waiter *w = *at;
        if (!is_ready(d, w, now)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = ready;
        ready = w;
    }
    return ready;
}

static leat__disk_saver *take_saver_locked(leat__disk *d)
{
    leat__disk_saver *s = d->saving;
    if (s != NULL) d->saving = s->next;
    if (d->saving == NULL) d->saving_last = NULL;
    return s;
}

static void save_now(leat__disk *d, leat__disk_saver *s)
{
    leat__disk_put(d, s->page, s->offset, s->data, s->len);
    leat__disk_release(d, s->page);
    s->done(s);
}

static void thread_main(void *arg)
{
    leat__disk *d = arg;
    leat__mutex_lock(&d->wait_lock);
    while (!d->closing || d->waiting != NULL || d->saving != NULL) {
        leat__disk_saver *saver = take_saver_locked(d);
        leat__disk_waiter *ready = take_ready_locked(d);
        if (saver == NULL && ready == NULL) {
            if (d->waiting != NULL)
                (void)leat__cond_wait_until(&d->wait_changed, &d->wait_lock, leat__clock_ns() + WAIT_STEP_NS);
            else if (!d->closing) leat__cond_wait(&d->wait_changed, &d->wait_lock);
            continue;
        }
        leat__mutex_unlock(&d->wait_lock);
        while (ready != NULL) {
            leat__disk_waiter *w = ready;
            ready = w->next;
            w->ready(w);
        }
        if (saver != NULL) save_now(d, saver);
        leat__mutex_lock(&d->wait_lock);
    }
    leat__mutex_unlock(&d->wait_lock);
}

static bool thread_runs_locked(leat__disk *d)
{
    return d->thread.running || leat__thread_start(&d->thread, "leat-disk", thread_main, d, NULL) == 0;
}

void leat__disk_wait(leat__disk *d, leat__disk_waiter *w)
{
    LEAT_ASSERT(w->ready != NULL && w->page < d->pages);
    leat__mutex_lock(&d->wait_lock);
    bool runs = thread_runs_locked(d);
    w->claimed = false;
    if (runs) {
        w->until_ns = leat__clock_ns() + WAIT_NS;
        w->next = d->waiting;
        d->waiting = w;
        leat__cond_signal(&d->wait_changed);
    }
    leat__mutex_unlock(&d->wait_lock);
    if (!runs) w->ready(w); /* without the cache's thread, the process fetches the page itself */
}

void leat__disk_hurry(leat__disk *d, bool on)
{
    atomic_store(&d->hurry, on);
    leat__mutex_lock(&d->wait_lock);
    leat__cond_signal(&d->wait_changed);
    leat__mutex_unlock(&d->wait_lock);
}

void leat__disk_save(leat__disk *d, leat__disk_saver *s)
{
    LEAT_ASSERT(s->done != NULL && s->len > 0);
    leat__mutex_lock(&d->wait_lock);
    bool runs = thread_runs_locked(d);
    s->next = NULL;
    if (runs) {
        if (d->saving_last != NULL) d->saving_last->next = s;
        else d->saving = s;
        d->saving_last = s;
        leat__cond_signal(&d->wait_changed);
    }
    leat__mutex_unlock(&d->wait_lock);
    if (!runs) save_now(d, s);
}

bool leat__disk_full(const leat__disk *d)
{
    return atomic_load(&d->full);
}

uint64_t leat__disk_used(leat__disk *d)
{
    victim v;
    return look(d, INT64_MIN, &v);
}
