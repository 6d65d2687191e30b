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

#define LOCK "lock" /* name of the lock in the folder; exists while a run works, and after it was killed */

static char *lock_path(const leat__bucket_pack *s)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_INGEST, 1u << 16);
    char *path = leat__buf_printf(&b, "%s/" LOCK, s->folder) == 0
                     ? leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b))
                     : NULL;
    leat__buf_reset(&b);
    return path;
}

static int lock_folder(leat__bucket_pack *s, leat_error *err)
{
    char *path = lock_path(s);
    int rc = path != NULL ? leat__file_open(&s->lock, path,
                                            LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK, err)
                          : leat__fail_nomem(err, strlen(s->folder), "a path");
    if (rc == LEAT_ESTATE)
        leat__fail(err, rc, "%s: another run or writer is writing this pack (it uses %s)", s->remote,
                   s->folder);
    leat__free(path);
    return rc;
}

void leat__bucket_pack_unlock(leat__bucket_pack *s)
{
    char *path = s->lock != NULL ? lock_path(s) : NULL;
    if (path != NULL) (void)!leat__path_unlink(path, NULL);
    leat__file_close(&s->lock);
    if (path != NULL) leat__dir_remove(s->folder); /* only when it is empty */
    leat__free(path);
}

/* Fails when the bucket or container does not exist, before a pack is made that cannot be stored. The answer
 * to HEAD does not distinguish a missing bucket from a missing object, so the object is read. */
static int need_bucket(const char *remote, leat_error *err)
{
    leat__object_get g = {.path = remote, .max = 1u << 16};
    leat__object_get_all(&g, 1);
    leat__buf_reset(&g.body);
    if (g.rc == 0 || !leat__store_gone(&g.err)) return 0;
    if (err != NULL) *err = g.err;
    return g.rc;
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
    else if (rc == LEAT_ENOENT) rc = need_bucket(remote, err);
    if (rc == 0) rc = leat__dir_private(s->folder, err);
    if (rc == 0) rc = lock_folder(s, err);
out:
    if (rc != 0) leat__bucket_pack_close(s);
    return rc;
}

void leat__bucket_pack_close(leat__bucket_pack *s)
{
    if (s->folder != NULL) leat__bucket_pack_unlock(s);
    leat__store_close(&s->store);
    leat__free(s->folder);
    leat__free(s->path);
    leat__free(s->origin);
    leat__free(s->replaced);
    s->folder = s->path = s->origin = s->replaced = NULL;
}

#define NOTE ".upload" /* added to a file name: the file that records its upload */
/* Written instead of the upload's ID, before the tag of the object, when the upload is complete. */
#define SENT "sent:"
/* Added to the name of a shard: a file that is created before the shard is sent, if the bucket has no object
 * of that name. An object that already exists may belong to another set. */
#define OWN ".own"

/* ---- shards in the bucket that no pack needs any more ------------------------------------------------ */

#define NAMED_MAX 8u /* names in a warning */

typedef struct removal {
    leat__bucket_pack *stage;
    const char *of;  /* owner of the shards, for the warning */
    bool only_own;   /* only shards that the unfinished run sent, or was sending when it was killed */
    uint64_t tag;    /* tag of the pack in the bucket, which names the shards to keep; 0: there is no pack */
    bool replaced;   /* another run has replaced that pack: its shards may have the same names */
    bool unread;     /* that pack cannot be read, so all shards stay */
    leat__buf names; /* names of the first shards that stay */
    uint64_t left;
    leat_error why; /* the reason for the first shard that stays */
} removal;

/* Records the shards of the set that is about to be replaced, so that a killed run's successor can remove
 * them. A set that cannot be read is replaced without a record, as on a local disk. */
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

/* True when the unfinished run may have created this shard in the bucket. */
static bool is_own(const leat__bucket_pack *s, const char *file)
{
    bool exists = false;
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    bool own = leat__buf_printf(&path, "%s/%s" OWN, s->folder, file) == 0 &&
               leat__path_exists(leat__buf_str(&path), &exists, NULL) == 0 && exists;
    leat__buf_reset(&path);
    return own;
}

/* Removes the record of a shard that was removed: another run may create a shard of this name. */
static void forget_own(const leat__bucket_pack *s, const char *file)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    if (leat__buf_printf(&path, "%s/%s" OWN, s->folder, file) == 0)
        (void)!leat__path_unlink(leat__buf_str(&path), NULL);
    leat__buf_reset(&path);
}

/* Records that the shard is this run's, before it is sent: a killed run's request may still succeed. */
static int note_own(const leat__bucket_pack *s, const char *file, leat_error *err)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    int rc = leat__buf_printf(&path, "%s/%s" OWN, s->folder, file);
    rc = rc == 0 ? leat__file_store(leat__buf_str(&path), "\n", 1, err)
                 : leat__fail_nomem(err, strlen(file), "a path");
    leat__buf_reset(&path);
    return rc;
}

/* Reads the tag of the pack in the bucket; 0 when there is none. */
static int read_tag(const leat__bucket_pack *s, uint64_t *tag, leat_error *err)
{
    leat__object o = {0};
    const int rc = leat__object_stat(s->store, s->remote, &o, err);
    *tag = rc == 0 ? o.tag : 0;
    return rc == LEAT_ENOENT ? 0 : rc;
}

/* Removes a shard, unless the pack in the bucket cannot be read or has changed since its list was read. */
static void remove_shard(void *cookie, const char *file)
{
    removal *r = cookie;
    uint64_t tag = 0;
    if (r->replaced || (r->only_own && !is_own(r->stage, file))) return;
    char *path = leat__path_beside(r->stage->remote, file);
    leat_error *why = r->left == 0 ? &r->why : NULL;
    int rc = r->why.code; /* a bucket that forbids removing one object forbids removing all */
    if (rc != LEAT_EPERM && !r->unread) rc = read_tag(r->stage, &tag, why);
    r->replaced = rc == 0 && tag != r->tag;
    if (rc == 0 && !r->replaced)
        rc = path != NULL ? leat__object_remove(r->stage->store, path, why)
                          : leat__fail_nomem(why, strlen(file), "a path");
    if (rc == 0 && !r->replaced) forget_own(r->stage, file);
    if (rc != 0 && r->left++ < NAMED_MAX)
        (void)leat__buf_printf(&r->names, "%s%s", r->left > 1 ? ", " : "", file);
    leat__free(path);
}

/* Removes the shards of the list `old` that the pack in the bucket does not name. When that pack cannot be
 * read, nothing is removed. */
static void remove_shards(removal *r, const char *old)
{
    leat__bucket_pack *s = r->stage;
    char *kept = NULL;
    leat__buf_init(&r->names, LEAT__MEM_INGEST, 1u << 16);
    /* read before the list, so that a later change is noticed */
    const int known = read_tag(s, &r->tag, &r->why);
    const int rc = known == 0 ? leat__set_list(s->remote, &kept, &r->why) : known;
    r->unread = rc != 0 && rc != LEAT_ENOENT;
    if (!r->unread) r->why = (leat_error){0};
    leat__set_replaced(s->remote, old, rc == 0 ? kept : "", remove_shard, r);
    if (r->replaced)
        leat__log(s->log, LEAT_LOG_WARN,
                  "%s: another run has replaced this pack: the shards of %s are no longer removed", s->remote,
                  r->of);
    if (r->left > 0)
        leat__log(s->log, LEAT_LOG_WARN, "%s: %llu shard%s of %s %s in the bucket: %s%s: %s", s->remote,
                  (unsigned long long)r->left, leat__plural(r->left), r->of, r->left == 1 ? "stays" : "stay",
                  leat__buf_str(&r->names), r->left > NAMED_MAX ? " …" : "", r->why.message);
    leat__buf_reset(&r->names);
    leat__free(kept);
}

/* Removes the recorded shards of the set that was replaced. */
static void remove_replaced(leat__bucket_pack *s)
{
    char *old = NULL;
    size_t len;
    bool exists;
    if (leat__path_exists(s->replaced, &exists, NULL) != 0 || !exists) return;
    removal r = {.stage = s, .of = "the pack that was replaced"};
    if (leat__file_load(s->replaced, LEAT__PACK_JSON_MAX, 1, &old, &len, NULL) == 0) remove_shards(&r, old);
    leat__free(old);
}

/* Removes the shards that an unfinished run has sent. */
static void remove_unfinished(leat__bucket_pack *s)
{
    char *old = NULL;
    if (s->published || leat__set_list(s->path, &old, NULL) != 0) return;
    removal r = {.stage = s, .of = "an unfinished run", .only_own = true};
    if (*old != '\0') remove_shards(&r, old);
    leat__free(old);
}

/* ---- local files -------------------------------------------------------------------------- */

static bool is_complete(const leat__upload_note *note)
{
    return leat__str_starts(note->id, SENT);
}

/* Aborts the upload that a note records. */
static void abort_noted(const leat__bucket_pack *s, const char *path, const char *name)
{
    leat__upload_note note;
    if (!leat__str_ends(name, NOTE) || !leat__upload_note_read(path, &note) || is_complete(&note)) return;
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
    remove_unfinished(s);
    (void)!leat_packer_discard(s->path, NULL);
    /* remove the local pack first: without its shards it cannot be opened */
    (void)!leat__path_unlink(s->path, NULL);
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    if (leat__dir_read(&dir, s->folder, true, NULL) != 0) dir.count = 0;
    for (size_t i = 0; i < dir.count; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (strcmp(name, LOCK) == 0) continue;
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

/* Completes the record of an upload with the tag of its object. */
static void record(leat__upload_note *n, const leat__object *o)
{
    n->size = o->size;
    (void)snprintf(n->id, sizeof n->id, SENT "%016llx", (unsigned long long)o->tag);
}

/* True when a run has uploaded this shard, and the object is still the one that it sent. */
static bool is_sent(leat__bucket_pack *s, const char *note, const char *path, uint64_t size)
{
    leat__upload_note n, now = {0};
    leat__object o;
    if (!leat__upload_note_read(note, &n) || !is_complete(&n) || n.size != size ||
        leat__object_stat(s->store, path, &o, NULL) != 0)
        return false;
    record(&now, &o);
    return now.size == size && strcmp(now.id, n.id) == 0;
}

/* Uploads a shard and records it. An existing object belongs to this run only if an earlier attempt sent
 * it. */
static int send_shard(leat__bucket_pack *s, const char *path, const leat__file *f,
                      const leat__upload_opts *opts, leat_error *err)
{
    leat__upload_note sent = {0};
    leat__object o;
    if (leat__object_stat(s->store, path, &o, NULL) == LEAT_ENOENT)
        LEAT_TRY(note_own(s, leat__path_base(leat__file_path(f)), err));
    LEAT_TRY(leat__object_upload(s->store, path, f, opts, err));
    LEAT_TRY(leat__object_stat(s->store, path, &o, err));
    record(&sent, &o);
    return leat__upload_note_write(opts->note, &sent, err);
}

/* Uploads a file of the pack, unless it is a shard that was sent before. */
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
    if (rc == 0 && !shard) rc = leat__object_upload(s->store, path, f, &opts, err);
    else if (rc == 0 && !is_sent(s, opts.note, path, leat__file_size_at_open(f)))
        rc = send_shard(s, path, f, &opts, err);
    leat__file_close(&f);
    leat__free(path);
    leat__buf_reset(&note);
    return rc;
}

/* Uploads all shards of a set. The second pass asks for each object once more, and sends what is missing: a
 * run on another machine may have removed it. */
static int upload_shards(leat__bucket_pack *s, leat_pack *pack, uint32_t count,
                         int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie,
                         leat_error *err)
{
    for (uint32_t i = 0; i < 2 * count; i++)
        LEAT_TRY(upload(s, leat__file_path(leat__pack_file(pack, i % count)), true, progress, cookie, err));
    return 0;
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
    if (set && !s->published) LEAT_GO(rc, out, upload_shards(s, pack, info.shards, progress, cookie, err));
    LEAT_GO(rc, out, note_replaced(s, err));
    if (!s->published) rc = upload(s, s->path, false, progress, cookie, err);
    if (rc == LEAT_EEXIST) {
        leat__fail(err, rc,
                   "%s: already exists: it appeared during the upload; the finished pack is kept in %s",
                   s->remote, s->folder);
        remove_unfinished(s); /* `resume` sends them again */
    }
    if (rc != 0) goto out;
    s->published = true;
    leat__bucket_pack_forget(s);
    leat__bucket_pack_unlock(s);
out:
    leat_pack_close(&pack);
    return rc;
}
