/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens one path component at a time, each relative to the descriptor of its parent: see below.h.
 */
#include "io/below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/num.h"
#include "base/str.h"

#define PARTIAL ".partial"
#define COMPONENT_MAX 256 /* with its NUL: no file system allows longer names */

/* Copies the next component of *name to `part`; sets *last when it is the last. */
static int next_part(const char **name, char part[COMPONENT_MAX], bool *last, leat_error *err)
{
    const char *end = strchr(*name, '/');
    size_t len = end != NULL ? (size_t)(end - *name) : strlen(*name);
    if (len >= COMPONENT_MAX) return leat__fail_errno(err, ENAMETOOLONG, "%.200s: cannot open", *name);
    memcpy(part, *name, len);
    part[len] = '\0';
    *last = end == NULL;
    *name += len + (*last ? 0 : 1);
    return 0;
}

/* Opens the folder `part` of `dir`, creating it if needed, and closes `dir`. Returns -1 on failure. */
static int step(int dir, const char *part, const char *folder, const char *name, leat_error *err)
{
    int bad = 0, fd = -1;
    if (LEAT_FAULT(LEAT__FAULT_WRITE)) bad = EIO;
    else if (mkdirat(dir, part, 0777) != 0 && errno != EEXIST) bad = errno;
    if (bad == 0) {
        fd = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) bad = errno;
    }
    struct stat st;
    bool link = fd < 0 && fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    if (link)
        leat__fail(err, LEAT_EPERM,
                   "%s/%s: the folder \"%s\" on the way is a symbolic "
                   "link, which is not followed",
                   folder, name, part);
    else if (bad != 0) leat__fail_errno(err, bad, "%s/%s: cannot make the folder \"%s\"", folder, name, part);
    close(dir);
    return fd;
}

/* Fails when `part` exists and must not be replaced. */
static int check_place(int dir, const char *part, const char *folder, const char *name, bool replace,
                       leat_error *err)
{
    struct stat st;
    /* opening reports other errors */
    if (fstatat(dir, part, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (!replace) return leat__fail(err, LEAT_EEXIST, "%s/%s: already exists", folder, name);
    if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) return 0;
    return leat__fail_errno(err, S_ISDIR(st.st_mode) ? EISDIR : EEXIST,
                            "%s/%s: not a regular file, not replaced", folder, name);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        if (LEAT_FAULT(LEAT__FAULT_WRITE)) return EIO;
        ssize_t n = write(fd, data, LEAT_MIN(len, (size_t)1 << 30));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Renames a complete file to its final name; returns 0 or an errno. Without `replace`, returns EEXIST if
 * another process has created the file meanwhile, where the file system can tell. */
static int publish(int dir, const char *partial, const char *part, bool replace)
{
    if (LEAT_FAULT(LEAT__FAULT_WRITE)) return EIO;
    if (!replace) {
        if (renameat2(dir, partial, dir, part, RENAME_NOREPLACE) == 0) return 0;
        if (errno != EINVAL && errno != ENOSYS) return errno;
    }
    return renameat(dir, partial, dir, part) == 0 ? 0 : errno;
}

/* Writes `part` of `dir`; returns 0, or an errno, and then leaves no file. */
static int write_part(int dir, const char *part, const char *partial, const void *data, size_t len,
                      bool replace)
{
    if (LEAT_FAULT(LEAT__FAULT_WRITE)) return EIO;
    if (unlinkat(dir, partial, 0) != 0 && errno != ENOENT) return errno; /* left by a killed run */
    int fd = openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    int bad = write_all(fd, data, len);
    if (close(fd) != 0 && bad == 0) bad = errno;
    if (bad == 0) bad = publish(dir, partial, part, replace);
    if (bad != 0) (void)unlinkat(dir, partial, 0);
    return bad;
}

int leat__below_partial(const char *name, leat__buf *partial, leat_error *err)
{
    const char *base = leat__path_base(name);
    const size_t room = COMPONENT_MAX - sizeof PARTIAL, len = strlen(base);
    leat__buf_clear(partial);
    leat__buf_append(partial, name, (size_t)(base - name) + LEAT_MIN(len, room));
    leat__buf_puts(partial, PARTIAL);
    return leat__buf_status(partial) == 0 ? 0 : leat__fail_nomem(err, strlen(name), "a name");
}

int leat__below_write(const char *folder, const char *name, const void *data, size_t len, bool replace,
                      leat_error *err)
{
    const char *rest = name;
    char part[COMPONENT_MAX];
    bool last = false;
    int rc = 0;
    leat__buf partial;

    leat__buf_init(&partial, LEAT__MEM_IO, 2 * COMPONENT_MAX);
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return leat__fail_errno(err, errno, "%s: cannot open", folder);
    for (;;) {
        LEAT_GO(rc, out, next_part(&rest, part, &last, err));
        if (last) break;
        leat_error why;
        dir = step(dir, part, folder, name, &why);
        if (dir >= 0) continue;
        if (err != NULL) *err = why;
        leat__buf_reset(&partial);
        return why.code;
    }
    LEAT_GO(rc, out, check_place(dir, part, folder, name, replace, err));
    LEAT_GO(rc, out, leat__below_partial(part, &partial, err));
    int bad = write_part(dir, part, leat__buf_str(&partial), data, len, replace);
    if (bad == EEXIST) rc = leat__fail(err, LEAT_EEXIST, "%s/%s: already exists", folder, name);
    else if (bad != 0) rc = leat__fail_errno(err, bad, "%s/%s: cannot write", folder, name);
out:
    leat__buf_reset(&partial);
    close(dir);
    return rc;
}
