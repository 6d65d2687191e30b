/* SPDX-License-Identifier: Apache-2.0
 *
 * See result_file.h.
 */
#include "io/result_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"

/* Builds the name of the unfinished file, as a new string; a symbolic link is resolved first. */
static int name_partial(const char *path, char **target, char **partial, leat_error *err)
{
    leat__buf name;
    LEAT_TRY(leat__path_resolve(path, target, err));
    leat__buf_init(&name, LEAT__MEM_IO, 1u << 20);
    int rc = leat__buf_printf(&name, "%s.partial", *target);
    if (rc == 0) *partial = leat__buf_take(&name, NULL);
    leat__buf_reset(&name);
    if (rc == 0 && *partial) return 0;
    leat__free(*target);
    *target = NULL;
    return leat__fail_nomem(err, strlen(path), "a path");
}

int leat__result_file_check(const char *path, const char *head, bool replace, bool resume, leat_error *err)
{
    struct stat st;
    char *target = NULL, *partial = NULL;
    if (!path) return 0;
    LEAT_TRY(leat__path_local(path, "", err));
    if (stat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? leat__path_can_make(path, err)
                                                   : leat__fail_errno(err, errno, "%s: cannot stat", path);
    LEAT_TRY(leat__file_spare_pack(path, err)); /* refuses a folder with its own message */
    if (!S_ISREG(st.st_mode)) return leat__fail(err, LEAT_EINVAL, "%s: is not a regular file", path);
    if (!replace && resume) {
        LEAT_TRY(name_partial(path, &target, &partial, err));
        replace = stat(partial, &st) == 0;
        leat__free(target);
        leat__free(partial);
    }
    return leat__file_only_kind(path, head, replace, err);
}

int leat__result_file_left(const char *path, bool *left, leat_error *err)
{
    char *target = NULL, *partial = NULL;
    LEAT_TRY(name_partial(path, &target, &partial, err));
    int rc = leat__path_exists(partial, left, err);
    leat__free(target);
    leat__free(partial);
    return rc;
}

int leat__result_file_open(leat__result_file *r, const char *path, const char *head, leat_error *err)
{
    bool left = false;
    memset(r, 0, sizeof *r);
    if (!path) return 0;
    LEAT_TRY(leat__result_file_check(path, head, true, false, err));
    LEAT_TRY(name_partial(path, &r->path, &r->partial, err));
    int rc = leat__path_exists(r->partial, &left, err);
    if (rc == 0 && left) rc = leat__file_only_kind(r->partial, head, true, err);
    if (rc == 0)
        rc = leat__file_open(&r->file, r->partial, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK,
                             err);
    if (rc != 0) leat__result_file_close(r, false);
    return rc;
}

int leat__result_file_publish(leat__result_file *r, leat_error *err)
{
    struct stat old;
    if (!r->file) return 0;
    if (stat(r->path, &old) == 0) (void)!fchmod(leat__file_fd(r->file), old.st_mode & 07777);
    LEAT_TRY(leat__file_sync(r->file, err));
    LEAT_TRY(leat__path_rename(r->partial, r->path, err));
    leat__result_file_close(r, false);
    return 0;
}

void leat__result_file_close(leat__result_file *r, bool discard)
{
    if (r->file && discard) (void)!leat__path_unlink(r->partial, NULL);
    leat__file_close(&r->file);
    leat__free(r->path);
    leat__free(r->partial);
    memset(r, 0, sizeof *r);
}
