/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures with mincore how much of a file is in the page cache: see resident.h.
 */
#include "io/resident.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/num.h"
#include "io/file.h"

static int count_pages(const char *path, char *base, size_t size, uint64_t *resident, leat_error *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char state[1024];
    for (size_t at = 0; at < size; at += page * sizeof state) {
        const size_t span = LEAT_MIN(size - at, page * sizeof state);
        errno = EIO;
        if (LEAT_FAULT(LEAT__FAULT_MAP) || mincore(base + at, span, state) != 0)
            return leat__fail_errno(err, errno, "%s: cannot query the page cache", path);
        for (size_t in = 0; in < span; in += page)
            if (state[in / page] & 1) *resident += LEAT_MIN(page, span - in);
    }
    return 0;
}

int leat__file_resident(const char *path, uint64_t *resident, uint64_t *bytes, leat_error *err)
{
    leat__file *file = NULL;
    void *base = MAP_FAILED;
    size_t size = 0;
    int rc;

    *resident = *bytes = 0;
    LEAT_GO(rc, out, leat__file_open(&file, path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_size(file, bytes, err));
    if (*bytes == 0) goto out;
    if (!leat__u64_to_size(*bytes, &size))
        LEAT_GO(rc, out, leat__fail(err, LEAT_EOVERFLOW, "%s: too large to map", path));
    errno = ENOMEM;
    if (!LEAT_FAULT(LEAT__FAULT_MAP)) base = mmap(NULL, size, PROT_READ, MAP_SHARED, leat__file_fd(file), 0);
    if (base == MAP_FAILED) LEAT_GO(rc, out, leat__fail_errno(err, errno, "%s: cannot map", path));
    rc = count_pages(path, base, size, resident, err);
out:
    if (base != MAP_FAILED) munmap(base, size);
    leat__file_close(&file);
    return rc;
}
