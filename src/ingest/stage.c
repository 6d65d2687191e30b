/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs on their way into a bucket: see stage.h.
 */
#include "ingest/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/pack.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/object.h"
#include "pack/reader.h"

static const char *stage_root(void)
{
    const char *names[] = {"LEAT_STAGE_DIR", "TMPDIR"};
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0') return value;
    }
    return "/tmp";
}

static int set_paths(leat__stage *s, leat_error *err)
{
    const char *base = leat__path_base(s->remote);
    leat__buf b;
    if (!leat__path_relative_safe(base, strlen(base)))
        return leat__fail(err, LEAT_EINVAL, "%s: has no name for a pack behind the last '/'", s->remote);
    leat__buf_init(&b, LEAT__MEM_INGEST, 1u << 16);
    (void)leat__buf_printf(&b, "%s/leat-stage-%016llx", stage_root(),
                           (unsigned long long)leat__hash64(s->remote, strlen(s->remote), 0));
    s->folder = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    (void)leat__buf_printf(&b, "/%s", base);
    s->path = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    leat__buf_reset(&b);
    return s->folder != NULL && s->path != NULL ? 0 : leat__fail_nomem(err, 4096, "a path");
}

int leat__stage_open(leat__stage *s, const char *remote, bool replace, leat_error *err)
{
    uint64_t size;
    *s = (leat__stage){.remote = remote, .replace = replace};
    int rc;
    LEAT_GO(rc, out, set_paths(s, err));
    LEAT_GO(rc, out, leat__store_open(&s->store, remote, err));
    rc = leat__object_stat(s->store, remote, &size, err);
    if (rc == 0 && !replace) rc = leat__fail(err, LEAT_EEXIST, "%s: already exists", remote);
    else if (rc == LEAT_ENOENT) rc = 0;
    if (rc == 0) rc = leat__dir_private(s->folder, err);
out:
    if (rc != 0) leat__stage_close(s);
    return rc;
}

void leat__stage_close(leat__stage *s)
{
    leat__store_close(&s->store);
    leat__free(s->folder);
    leat__free(s->path);
    s->folder = s->path = NULL;
}

bool leat__stage_ready(const leat__stage *s)
{
    bool exists;
    return leat__path_exists(s->path, &exists, NULL) == 0 && exists;
}

static int upload(leat__stage *s, const char *local, bool absent,
                  int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie, leat_error *err)
{
    leat__upload_opts opts = {.absent = absent, .progress = progress, .cookie = cookie};
    leat__file *f = NULL;
    char *path = leat__path_beside(s->remote, leat__path_base(local));
    if (path == NULL) return leat__fail_nomem(err, strlen(local), "a path");
    int rc = leat__file_open(&f, local, LEAT__FILE_READ, err);
    if (rc == 0) rc = leat__object_upload(s->store, path, f, &opts, err);
    leat__file_close(&f);
    leat__free(path);
    return rc;
}

int leat__stage_publish(leat__stage *s, int (*progress)(void *cookie, uint64_t done, uint64_t total),
                        void *cookie, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    int rc;
    LEAT_TRY(leat_pack_open(&pack, s->path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(pack, &info, sizeof info));
    const char *first = leat__file_path(leat__pack_file(pack, 0));
    bool set = strcmp(leat__path_base(first), leat__path_base(s->path)) != 0;
    for (uint32_t i = 0; set && i < info.shards; i++)
        LEAT_GO(rc, out, upload(s, leat__file_path(leat__pack_file(pack, i)), false, progress, cookie, err));
    LEAT_GO(rc, out, upload(s, s->path, !s->replace, progress, cookie, err));
    for (uint32_t i = 0; set && i < info.shards; i++)
        LEAT_GO(rc, out, leat__path_unlink(leat__file_path(leat__pack_file(pack, i)), err));
    LEAT_GO(rc, out, leat__path_unlink(s->path, err));
    leat__dir_remove(s->folder);
out:
    leat_pack_close(&pack);
    return rc;
}
