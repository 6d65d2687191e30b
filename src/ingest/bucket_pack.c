/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs being uploaded to a bucket: see bucket_pack.h.
 */
#include "ingest/bucket_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/pack.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/object.h"
#include "io/uploads.h"
#include "pack/layout.h"
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

static int set_paths(leat__bucket_pack *s, leat_error *err)
{
    const char *base = leat__path_base(s->remote);
    leat__buf b;
    if (!leat__path_relative_safe(base, strlen(base)))
        return leat__fail(err, LEAT_EINVAL, "%s: the name of the pack is missing after the last '/'",
                          s->remote);
    leat__buf_init(&b, LEAT__MEM_INGEST, 1u << 16);
    (void)leat__buf_printf(&b, "%s/leat-stage-%016llx", stage_root(),
                           (unsigned long long)leat__hash64(s->remote, strlen(s->remote), 0));
    s->folder = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    (void)leat__buf_printf(&b, "/%s", base);
    s->path = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    const size_t end = b.len;
    (void)leat__buf_puts(&b, ".origin");
    s->origin = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    b.len = end;
    (void)leat__buf_puts(&b, ".replaced");
    s->replaced = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    bool whole = leat__buf_status(&b) == 0 && s->folder != NULL && s->path != NULL && s->origin != NULL &&
                 s->replaced != NULL;
    leat__buf_reset(&b);
    return whole ? 0 : leat__fail_nomem(err, 4096, "a path");
}

/* True when the object in the bucket is the local pack: a run was killed before it cleaned up. */
static bool is_published(const leat__bucket_pack *s)
{
    const char *paths[] = {s->path, s->remote};
    leat_pack_info info[2];
    for (int i = 0; i < 2; i++) {
        leat_pack *pack;
        if (leat_pack_open(&pack, paths[i], NULL, NULL) != 0) return false;
        int rc = leat_pack_info_read(pack, &info[i], sizeof info[i]);
        leat_pack_close(&pack);
        if (rc != 0) return false;
    }
    return info[0].fingerprint == info[1].fingerprint && info[0].samples == info[1].samples;
}

int leat__bucket_pack_open(leat__bucket_pack *s, const char *remote, bool replace, bool resume,
                           leat_error *err)
{
    leat__object there;
    *s = (leat__bucket_pack){.remote = remote, .replace = replace};
    int rc;
    LEAT_GO(rc, out, set_paths(s, err));
    LEAT_GO(rc, out, leat__store_open(&s->store, remote, err));
    LEAT_GO(rc, out, leat__object_writable(s->store, remote, err));
    rc = leat__object_stat(s->store, remote, &there, err);
    if (rc == 0 && resume) s->published = leat__bucket_pack_ready(s) && is_published(s);
    if (rc == 0 && !s->published) rc = leat__file_only_pack(remote, replace, err);
    else if (rc == LEAT_ENOENT) rc = 0;
    if (rc == 0) rc = leat__dir_private(s->folder, err);
out:
    if (rc != 0) leat__bucket_pack_close(s);
    return rc;
}

void leat__bucket_pack_close(leat__bucket_pack *s)
{
    leat__store_close(&s->store);
    leat__free(s->folder);
    leat__free(s->path);
    leat__free(s->origin);
    leat__free(s->replaced);
    s->folder = s->path = s->origin = s->replaced = NULL;
}

/* ---- shards of the set that is replaced --------------------------------------------------- */

#define NAMED_MAX 8u /* names in a warning */

typedef struct removal {
    leat__bucket_pack *stage;
    leat__buf names; /* the first that stay */
    uint64_t left;
    leat_error why;
} removal;

/* Records the shards of the set that is about to be replaced, so that a killed run's successor can remove
 * them. A set that cannot be read is replaced without that, as on a local disk. */
static int note_replaced(leat__bucket_pack *s, leat_error *err)
{
    char *list = NULL;
    if (!s->replace || s->published) return 0;
    int rc = leat__path_unlink(s->replaced, err);
    if (rc == 0 && leat__set_list(s->remote, &list, NULL) == 0 && *list != '\0')
        rc = leat__file_store(s->replaced, list, strlen(list), err);
    leat__free(list);
    return rc;
}

static void remove_shard(void *cookie, const char *file)
{
    removal *r = cookie;
    const char *base = leat__path_base(r->stage->remote);
    const size_t stem = strlen(base) - (leat__str_ends(base, ".leat") ? strlen(".leat") : 0);
    if (strncmp(file, base, stem) != 0 || file[stem] != '-')
        return; /* made under another name: may be shared */
    char *path = leat__path_beside(r->stage->remote, file);
    leat_error *why = r->left == 0 ? &r->why : NULL;
    int rc = r->why.code; /* a bucket that forbids to remove one forbids all */
    if (rc != LEAT_EPERM)
        rc = path != NULL ? leat__object_remove(r->stage->store, path, why)
                          : leat__fail_nomem(why, strlen(file), "a path");
    if (rc != 0 && r->left++ < NAMED_MAX)
        (void)leat__buf_printf(&r->names, "%s%s", r->left > 1 ? ", " : "", file);
    leat__free(path);
}

/* Removes the recorded shards that the pack in the bucket does not name. */
static void remove_replaced(leat__bucket_pack *s)
{
    char *old = NULL, *kept = NULL;
    size_t len;
    bool exists;
    removal r = {.stage = s};
    if (leat__path_exists(s->replaced, &exists, NULL) != 0 || !exists) return;
    leat__buf_init(&r.names, LEAT__MEM_INGEST, 1u << 16);
    if (leat__file_load(s->replaced, LEAT__PACK_JSON_MAX, 1, &old, &len, NULL) == 0 &&
        leat__set_list(s->remote, &kept, NULL) == 0)
        leat__set_replaced(old, kept, remove_shard, &r);
    if (r.left > 0)
        leat__log(s->log, LEAT_LOG_WARN,
                  "%s: %llu shards of the pack that was replaced stay in the bucket: %s%s: %s", s->remote,
                  (unsigned long long)r.left, leat__buf_str(&r.names), r.left > NAMED_MAX ? " …" : "",
                  r.why.message);
    leat__buf_reset(&r.names);
    leat__free(old);
    leat__free(kept);
}

/* ---- local files -------------------------------------------------------------------------- */

#define NOTE ".upload" /* added to a file name: the file that records its upload */
#define SENT "sent"    /* in place of the upload's ID: the upload is complete */

/* Aborts the upload that a note records. */
static void abort_noted(const leat__bucket_pack *s, const char *path, const char *name)
{
    leat__upload_note note;
    if (!leat__str_ends(name, NOTE) || !leat__upload_note_read(path, &note) || strcmp(note.id, SENT) == 0)
        return;
    char *object = leat__strndup(LEAT__MEM_INGEST, name, strlen(name) - strlen(NOTE));
    char *remote = object != NULL ? leat__path_beside(s->remote, object) : NULL;
    if (remote != NULL) (void)!leat__uploads_abort(s->store, remote, note.id, NULL);
    leat__free(remote);
    leat__free(object);
}

void leat__bucket_pack_forget(leat__bucket_pack *s)
{
    leat__dir dir = {0};
    leat__buf path;
    remove_replaced(s);
    if (leat_packer_discard(s->path, NULL) == LEAT_ESTATE) return; /* another run is packing there */
    (void)!leat__path_unlink(s->path, NULL); /* first: without its shards it cannot be opened */
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    if (leat__dir_read(&dir, s->folder, true, NULL) != 0) dir.count = 0;
    for (size_t i = 0; i < dir.count; i++) {
        const char *name = leat__dir_name(&dir, i);
        leat__buf_clear(&path);
        if (leat__buf_printf(&path, "%s/%s", s->folder, name) != 0) continue;
        abort_noted(s, leat__buf_str(&path), name);
        (void)!leat__path_unlink(leat__buf_str(&path), NULL);
    }
    leat__dir_reset(&dir);
    leat__buf_reset(&path);
}

bool leat__bucket_pack_ready(const leat__bucket_pack *s)
{
    bool exists;
    return leat__path_exists(s->path, &exists, NULL) == 0 && exists;
}

int leat__bucket_pack_count(const leat__bucket_pack *s, leat_ingest_stats *own, leat_error *err)
{
    leat_pack *pack;
    leat_pack_info info;
    LEAT_TRY(leat_pack_open(&pack, s->path, NULL, err));
    (void)leat_pack_info_read(pack, &info, sizeof info);
    own->samples = own->resumed = info.samples;
    own->bytes_out = info.bytes;
    own->pages = info.pages;
    own->shards = info.shards;
    leat_pack_close(&pack);
    return 0;
}

/* True when an earlier run has uploaded this shard: its note says so, and the object exists. */
static bool is_sent(leat__bucket_pack *s, const char *note, const char *path, uint64_t size)
{
    leat__upload_note n;
    leat__object o;
    return leat__upload_note_read(note, &n) && strcmp(n.id, SENT) == 0 && n.size == size &&
           leat__object_stat(s->store, path, &o, NULL) == 0 && o.size == size;
}

static int upload(leat__bucket_pack *s, const char *local, bool shard,
                  int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie, leat_error *err)
{
    leat__buf note;
    leat__buf_init(&note, LEAT__MEM_INGEST, 1u << 16);
    (void)leat__buf_printf(&note, "%s" NOTE, local);
    leat__upload_opts opts = {.absent = !shard && !s->replace,
                              .note = leat__buf_str(&note),
                              .progress = progress,
                              .cookie = cookie};
    leat__file *f = NULL;
    char *path = leat__path_beside(s->remote, leat__path_base(local));
    bool whole = path != NULL && leat__buf_status(&note) == 0;
    int rc = whole ? 0 : leat__fail_nomem(err, strlen(local), "a path");
    if (rc == 0) rc = leat__file_open(&f, local, LEAT__FILE_READ, err);
    leat__upload_note sent = {.size = rc == 0 ? leat__file_size_at_open(f) : 0, .id = SENT};
    if (rc == 0 && !(shard && is_sent(s, opts.note, path, sent.size))) {
        rc = leat__object_upload(s->store, path, f, &opts, err);
        if (rc == 0 && shard) rc = leat__upload_note_write(opts.note, &sent, err);
    }
    leat__file_close(&f);
    leat__free(path);
    leat__buf_reset(&note);
    return rc;
}

int leat__bucket_pack_publish(leat__bucket_pack *s,
                              int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie,
                              leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    int rc;
    LEAT_TRY(leat_pack_open(&pack, s->path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(pack, &info, sizeof info));
    const char *first = leat__file_path(leat__pack_file(pack, 0));
    bool set = strcmp(leat__path_base(first), leat__path_base(s->path)) != 0;
    for (uint32_t i = 0; set && !s->published && i < info.shards; i++)
        LEAT_GO(rc, out, upload(s, leat__file_path(leat__pack_file(pack, i)), true, progress, cookie, err));
    LEAT_GO(rc, out, note_replaced(s, err));
    if (!s->published) rc = upload(s, s->path, false, progress, cookie, err);
    if (rc == LEAT_EEXIST)
        leat__fail(err, rc,
                   "%s: already exists: it appeared during the upload; the finished pack is kept in %s",
                   s->remote, s->folder);
    if (rc != 0) goto out;
    leat__bucket_pack_forget(s);
    leat__dir_remove(s->folder);
out:
    leat_pack_close(&pack);
    return rc;
}
