/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded mappings: see map.h. The kernel copies out of the mapping (process_vm_readv on our own
 * process) and returns EFAULT where a plain load would raise SIGBUS. So we never install a signal
 * handler in the host's process. If a sandbox forbids the call, pread reads the same bytes.
 */
#include "io/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"

struct leat__map {
    leat__file *file;
    void *base; /* NULL when empty */
    size_t size;
};

int leat__map_open(leat__map **out, const char *path, leat_error *err)
{
    *out = NULL;
    leat__map *m = LEAT_NEW(IO, leat__map);
    if (m == NULL) return leat__fail_nomem(err, sizeof *m, "a mapping");
    uint64_t bytes;
    int rc;
    LEAT_GO(rc, out, leat__file_open(&m->file, path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_size(m->file, &bytes, err));
    if (!leat__u64_to_size(bytes, &m->size)) {
        rc = leat__fail(err, LEAT_EOVERFLOW, "%s: too large to map", path);
        goto out;
    }
    if (m->size > 0) {
        void *base = MAP_FAILED;
        errno = ENOMEM;
        if (!LEAT_FAULT(LEAT__FAULT_MAP))
            base = mmap(NULL, m->size, PROT_READ, MAP_SHARED, leat__file_fd(m->file), 0);
        if (base == MAP_FAILED) {
            rc = leat__fail_errno(err, errno, "%s: cannot map", path);
            goto out;
        }
        m->base = base;
    }
    *out = m;
    m = NULL;
out:
    leat__map_close(&m);
    return rc;
}

void leat__map_close(leat__map **map)
{
    leat__map *m = *map;
    if (m == NULL) return;
    if (m->base != NULL) munmap(m->base, m->size);
    leat__file_close(&m->file);
    leat__free(m);
    *map = NULL;
}

uint64_t leat__map_size(const leat__map *m)
{
    return m->size;
}

int leat__map_read(const leat__map *m, void *buf, size_t len, uint64_t offset,
                   leat_error *err)
{
    if (!leat__range_inside(offset, len, m->size))
        return leat__fail(err, LEAT_EINVAL, "%s: bytes %llu+%llu are outside the mapping",
                          leat__file_path(m->file), (unsigned long long)offset,
                          (unsigned long long)len);
    size_t got = 0;
    while (got < len) {
        struct iovec to = {(char *)buf + got, len - got};
        struct iovec from = {(char *)m->base + offset + got, len - got};
        ssize_t n = LEAT_FAULT(LEAT__FAULT_READ) ? 0 : process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (n > 0) {
            got += (size_t)n;
            continue;
        }
        if (n < 0 && (errno == ENOSYS || errno == EPERM))
            return leat__file_pread(m->file, buf, len, offset, err);
        leat__fail(err, LEAT_EDATA, "%s: bytes from %llu on cannot be read: the file was cut"
                   " shorter or the disk failed", leat__file_path(m->file),
                   (unsigned long long)(offset + got));
        leat__error_at(err, NULL, -1, (int64_t)(offset + got));
        return LEAT_EDATA;
    }
    return 0;
}

/* The memory pages that contain the range; false when it is empty. */
static bool page_span(const leat__map *m, uint64_t offset, uint64_t len, char **start,
                      size_t *bytes)
{
    if (m->base == NULL || offset >= m->size) return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t end = len == 0 || len > m->size - offset ? m->size : (size_t)(offset + len);
    size_t begin = (size_t)offset & ~(page - 1);
    *start = (char *)m->base + begin;
    *bytes = end - begin;
    return true;
}

void leat__map_advise(const leat__map *m, uint64_t offset, uint64_t len, leat__advice advice)
{
    static const int names[] = {
        [LEAT__ADVICE_NORMAL] = MADV_NORMAL,
        [LEAT__ADVICE_SEQUENTIAL] = MADV_SEQUENTIAL,
        [LEAT__ADVICE_RANDOM] = MADV_RANDOM,
        [LEAT__ADVICE_WILLNEED] = MADV_WILLNEED,
        [LEAT__ADVICE_DONTNEED] = MADV_DONTNEED,
    };
    char *start;
    size_t bytes;
    if (page_span(m, offset, len, &start, &bytes)) (void)madvise(start, bytes, names[advice]);
}

int leat__map_resident(const leat__map *m, uint64_t offset, uint64_t len, uint64_t *bytes,
                       leat_error *err)
{
    *bytes = 0;
    char *start;
    size_t left;
    if (!page_span(m, offset, len, &start, &left)) return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t lead = offset & (page - 1); /* bytes of the first page before the range */
    unsigned char state[1024];
    while (left > 0) {
        size_t span = LEAT_MIN(left, page * sizeof state);
        if (LEAT_FAULT(LEAT__FAULT_MAP) || mincore(start, span, state) != 0)
            return leat__fail_errno(err, errno ? errno : EIO, "%s: cannot ask for residency",
                                    leat__file_path(m->file));
        for (size_t at = 0; at < span; at += page) {
            if (state[at / page] & 1) *bytes += LEAT_MIN(page, span - at) - lead;
            lead = 0;
        }
        start += span;
        left -= span;
    }
    return 0;
}
