/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs being uploaded to a bucket: see bucket_pack.h.
 *
 * Several machines may write one name at the same time. The set in the bucket is whole at any time, because
 * a shard is only removed when no run can publish its name any more:
 *
 * 1. A set whose shards have no tag is published only where no pack is, by a request that the server refuses
 *    otherwise (If-None-Match). Its shards are created by such requests, too. A run that finds the name of
 *    a shard taken uses a tag. So one run at most has these names.
 * 2. A set that replaces a pack has a random tag in the names of its shards. So one run at most has these
 *    names. A run that finds a pack where there was none draws a tag, and sends its shards under the new
 *    names.
 * 3. A run removes shards that it sent itself and shards of packs that it has seen under the name, but only
 *    when the pack in the bucket does not name them. By 1 and 2, the run that sent them is the only one that
 *    could publish them again. It does not: it publishes a set once. If it cannot know whether it did (it was
 *    killed, or the answer was lost) and another pack has the name now, it draws a new tag.
 *
 * No shards are left over, either: the last request carries the ETag of the pack whose shards were recorded
 * (If-Match). If the server refuses it, the new pack's shards are recorded, too, and the request is sent
 * again. Where a server ignores the ETag, a run that sees that its pack was replaced removes its own shards.
 * Then those of a pack stay that was published after another run looked, and replaced by that run's request.
 *
 * With a server that ignores If-None-Match, rule 1 holds only if no other run acts between a look and
 * a request.
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
#include "ingest/bucket_tag.h"
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

#define LOCAL_MAX 160u /* bytes of a pack's name; names of its shards and of notes have up to 80 more */

/* Appends the local name of the pack, from which the names of its shards are made. It is the last part of the
 * path in the bucket. Where that is too long for a file system, it is its begin and a hash. */
static void put_name(leat__buf *b, const char *base)
{
    const size_t len = strlen(base);
    size_t cut = LOCAL_MAX;
    if (len <= LOCAL_MAX) {
        (void)leat__buf_puts(b, base);
        return;
    }
    while (cut > 0 && ((unsigned char)base[cut] & 0xc0) == 0x80) cut--; /* not within a character */
    (void)leat__buf_printf(b, "%.*s-%016llx%s", (int)cut, base,
                           (unsigned long long)leat__hash64(base, len, 0),
                           strcmp(base + len - 5, ".leat") == 0 ? ".leat" : "");
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
    (void)leat__buf_putc(&b, '/');
    put_name(&b, base);
    s->path = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    const size_t end = b.len;
    (void)leat__buf_puts(&b, ".origin");
    s->origin = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    b.len = end;
    (void)leat__buf_puts(&b, ".replaced");
    s->replaced = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    b.len = end;
    (void)leat__buf_puts(&b, ".tagged");
    s->tagged = leat__strdup(LEAT__MEM_INGEST, leat__buf_str(&b));
    bool whole = leat__buf_status(&b) == 0 && s->folder != NULL && s->path != NULL && s->origin != NULL &&
                 s->replaced != NULL && s->tagged != NULL;
    leat__buf_reset(&b);
    return whole ? 0 : leat__fail_nomem(err, 4096, "a path");
}

/* True when the object in the bucket is the local pack: a run was killed before it cleaned up. */
static bool is_published(const leat__bucket_pack *s)
{
    uint64_t check;
    leat_pack_info info;
    leat_pack *pack;
    if (leat__pack_check(leat__bucket_tag_set(s), &check, NULL) != 0) return false;
    if (leat_pack_open(&pack, s->remote, NULL, NULL) != 0) return false;
    int rc = leat_pack_info_read(pack, &info, sizeof info);
    leat_pack_close(&pack);
    return rc == 0 && info.fingerprint == check;
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
    leat__bucket_tag_load(s);
    if (rc == 0 && resume) s->published = leat__bucket_pack_ready(s) && is_published(s);
    if (rc == 0 && !s->published) rc = leat__file_only_pack(remote, replace, err);
    else if (rc == LEAT_ENOENT) rc = need_bucket(remote, err);
    if (rc == 0) rc = leat__dir_private(s->folder, err);
    if (rc == 0) rc = lock_folder(s, err);
    if (rc == 0 && !leat__bucket_pack_ready(s)) leat__bucket_tag_drop(s); /* of an earlier pack */
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
    leat__free(s->tagged);
    s->folder = s->path = s->origin = s->replaced = s->tagged = NULL;
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
    bool unread;     /* that pack cannot be read, so all shards stay */
    leat__buf names; /* names of the first shards that stay */
    uint64_t left;
    leat_error why; /* the reason for the first shard that stays */
} removal;

/* Returns the text after this one in the file of lists, which separates them by a zero; NULL: none. */
static const char *next_list(const char *all, size_t len, const char *at)
{
    const char *next = at + strlen(at) + 1;
    return (size_t)(next - all) < len ? next : NULL;
}

/* Loads the recorded lists; NULL when there are none. */
static char *load_replaced(const leat__bucket_pack *s, size_t *len)
{
    char *all = NULL;
    bool exists = false;
    *len = 0;
    if (leat__path_exists(s->replaced, &exists, NULL) == 0 && exists &&
        leat__file_load(s->replaced, LEAT__PACK_JSON_MAX, 1, &all, len, NULL) != 0)
        all = NULL;
    return all;
}

/* Records the shards of the set that is about to be replaced, so that a killed run's successor can remove
 * them. A set that cannot be read is replaced without a record, as on a local disk. */
static int note_replaced(leat__bucket_pack *s, leat_error *err)
{
    char *list = NULL;
    size_t len;
    if (leat__set_list(s->remote, &list, NULL) != 0 || *list == '\0') {
        leat__free(list);
        return 0;
    }
    char *all = load_replaced(s, &len);
    bool known = false;
    for (const char *at = all; at != NULL && !known; at = next_list(all, len, at)) known = !strcmp(at, list);
    int rc = known ? 0 : leat__file_append(s->replaced, list, strlen(list) + 1, err);
    leat__free(all);
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

/* True when the pack in the bucket has changed since its list was read, and names this shard now, or cannot
 * be read. */
static int is_named_now(removal *r, const char *file, bool *named, leat_error *err)
{
    uint64_t tag = 0;
    char *list = NULL;
    *named = false;
    LEAT_TRY(read_tag(r->stage, &tag, err));
    if (tag == r->tag) return 0;
    int rc = leat__set_list(r->stage->remote, &list, err);
    *named = rc == LEAT_ENOENT || (rc == 0 && leat__list_has(list, file));
    leat__free(list);
    return rc == LEAT_ENOENT ? 0 : rc;
}

/* Removes a shard, unless the pack in the bucket cannot be read or names it now. */
static void remove_shard(void *cookie, const char *file)
{
    removal *r = cookie;
    bool named = false;
    if (r->only_own && !is_own(r->stage, file)) return;
    char *path = leat__path_beside(r->stage->remote, file);
    leat_error *why = r->left == 0 ? &r->why : NULL;
    int rc = r->why.code; /* a bucket that forbids removing one object forbids removing all */
    if (rc != LEAT_EPERM && !r->unread) rc = is_named_now(r, file, &named, why);
    if (rc == 0 && !named)
        rc = path != NULL ? leat__object_remove(r->stage->store, path, why)
                          : leat__fail_nomem(why, strlen(file), "a path");
    if (rc == 0 && !named) forget_own(r->stage, file);
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
    if (rc != 0 && r->only_own && s->published) { /* only a pack that replaced this one frees its shards */
        leat__free(kept);
        leat__buf_reset(&r->names);
        return;
    }
    r->unread = rc != 0 && rc != LEAT_ENOENT;
    if (!r->unread) r->why = (leat_error){0};
    leat__set_replaced(s->remote, old, rc == 0 ? kept : "", remove_shard, r);
    if (r->left > 0)
        leat__log(s->log, LEAT_LOG_WARN, "%s: %llu shard%s of %s %s in the bucket: %s%s: %s", s->remote,
                  (unsigned long long)r->left, leat__plural(r->left), r->of, r->left == 1 ? "stays" : "stay",
                  leat__buf_str(&r->names), r->left > NAMED_MAX ? " …" : "", r->why.message);
    leat__buf_reset(&r->names);
    leat__free(kept);
}

/* Removes the recorded shards of the sets that were replaced. */
static void remove_replaced(leat__bucket_pack *s)
{
    size_t len;
    char *all = load_replaced(s, &len);
    for (const char *at = all; at != NULL; at = next_list(all, len, at)) {
        removal r = {.stage = s, .of = "the pack that was replaced"};
        if (*at != '\0') remove_shards(&r, at);
    }
    leat__free(all);
}

/* Removes the shards that this run has sent, or an unfinished one, if the pack in the bucket does not name
 * them: it was not published, or another run has replaced it. */
static void remove_own(leat__bucket_pack *s)
{
    char *old = NULL;
    if (leat__set_list(leat__bucket_tag_set(s), &old, NULL) != 0) return;
    removal r = {.stage = s, .of = s->published ? "this run" : "an unfinished run", .only_own = true};
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

/* Removes the files of the folder, and the uploads that they record; `records`: only these records. */
static void remove_files(const leat__bucket_pack *s, bool records)
{
    leat__dir dir = {0};
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_INGEST, 1u << 16);
    if (leat__dir_read(&dir, s->folder, true, NULL) != 0) dir.count = 0;
    for (size_t i = 0; i < dir.count; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (strcmp(name, LOCK) == 0 || (records && !leat__str_ends(name, NOTE))) continue;
        leat__buf_clear(&path);
        if (leat__buf_printf(&path, "%s/%s", s->folder, name) != 0) continue;
        abort_noted(s, leat__buf_str(&path), name);
        (void)!leat__path_unlink(leat__buf_str(&path), NULL);
    }
    leat__dir_reset(&dir);
    leat__buf_reset(&path);
}

void leat__bucket_pack_forget(leat__bucket_pack *s)
{
    remove_replaced(s);
    remove_own(s);
    (void)!leat_packer_discard(s->path, NULL);
    /* remove the local pack first: without its shards it cannot be opened */
    (void)!leat__path_unlink(s->path, NULL);
    remove_files(s, false);
    leat__bucket_tag_drop(s);
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

/* ---- upload ---------------------------------------------------------------------------------- */

#define ROUNDS 32 /* attempts to publish while other runs do */

typedef struct sender {
    leat__bucket_pack *stage;
    leat_pack *pack; /* the local one */
    uint32_t shards; /* 0: the pack is one file */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
    bool exists; /* there is a pack in the bucket: */
    leat__object there;
    bool unconditional; /* the server has no conditional writes */
} sender;

/* Uploads a file, with a record in the folder. */
static int upload(sender *w, const char *local, const char *remote, leat__upload_opts *o, leat_error *err)
{
    leat__file *f = NULL;
    o->progress = w->progress;
    o->cookie = w->cookie;
    LEAT_TRY(leat__file_open(&f, local, LEAT__FILE_READ, err));
    int rc = leat__object_upload(w->stage->store, remote, f, o, err);
    /* servers without conditional writes can only be used with `force` */
    if (rc == LEAT_ENOTSUP && w->stage->replace && (o->absent || (o->match != NULL && *o->match != '\0'))) {
        w->unconditional = true;
        o->absent = false;
        o->match = NULL;
        rc = leat__object_upload(w->stage->store, remote, f, o, err);
    }
    leat__file_close(&f);
    return rc;
}

/* Uploads a shard and records it. LEAT_EEXIST: another run has a shard of this name. */
static int send_shard(sender *w, const char *local, const char *name, const char *remote, const char *note,
                      leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    leat__upload_note sent = {0};
    leat__object o;
    int rc = leat__object_stat(s->store, remote, &o, err);
    const bool missing = rc == LEAT_ENOENT;
    if (rc != 0 && !missing) return rc;
    if (!missing && !is_own(s, name)) return leat__fail(err, LEAT_EEXIST, "%s: already exists", remote);
    if (missing) LEAT_TRY(note_own(s, name, err));
    leat__upload_opts opts = {.note = note, .absent = missing && s->tag[0] == '\0' && !w->unconditional};
    rc = upload(w, local, remote, &opts, err);
    if (rc == LEAT_EEXIST) forget_own(s, name);
    if (rc != 0) return rc;
    LEAT_TRY(leat__object_stat(s->store, remote, &o, err));
    record(&sent, &o);
    return leat__upload_note_write(note, &sent, err);
}

/* Uploads a shard, unless it was sent before. */
static int upload_shard(sender *w, const leat__file *f, leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    const char *local = leat__file_path(f);
    leat__buf note;
    leat__buf_init(&note, LEAT__MEM_INGEST, 1u << 16);
    char *name = leat__shard_tagged(leat__path_base(local), s->tag);
    char *remote = name != NULL ? leat__path_beside(s->remote, name) : NULL;
    bool whole = remote != NULL && leat__buf_printf(&note, "%s/%s" NOTE, s->folder, name) == 0;
    int rc = whole ? 0 : leat__fail_nomem(err, strlen(local), "a path");
    if (rc == 0 && !is_sent(s, leat__buf_str(&note), remote, leat__file_size_at_open(f)))
        rc = send_shard(w, local, name, remote, leat__buf_str(&note), err);
    leat__free(remote);
    leat__free(name);
    leat__buf_reset(&note);
    return rc;
}

/* Uploads all shards of a set. The second pass asks for each object once more, and sends what is missing:
 * another program may have removed it. */
static int upload_shards(sender *w, leat_error *err)
{
    for (uint32_t i = 0; i < 2 * w->shards; i++)
        LEAT_TRY(upload_shard(w, leat__pack_file(w->pack, i % w->shards), err));
    return 0;
}

/* Gives the shards new names. Those that were sent under the old ones are removed. */
static int draw_tag(sender *w, leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    remove_own(s);
    remove_files(s, true);
    LEAT_TRY(leat__bucket_tag_draw(s, err));
    return leat__bucket_tag_apply(s, w->pack, err);
}

/* Asks for the pack in the bucket, and draws a tag if the shards need new names (rules 2 and 3 above). */
static int look(sender *w, leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    uint64_t instead_of;
    int rc = leat__object_stat(s->store, s->remote, &w->there, err);
    if (rc != 0 && rc != LEAT_ENOENT) return rc;
    w->exists = rc == 0;
    if (!s->replace || w->shards == 0 || !w->exists) return 0;
    const bool other = leat__bucket_was_sent(s, &instead_of) && instead_of != w->there.tag;
    return s->tag[0] == '\0' || other ? draw_tag(w, err) : 0;
}

/* Sends the file that readers open. LEAT_EEXIST: another run was faster. */
static int send_last(sender *w, leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    leat__buf note;
    bool again = false;
    if (w->exists && s->replace) LEAT_TRY(note_replaced(s, err));
    if (w->shards > 0) LEAT_TRY(leat__bucket_sending(s, w->there.tag, err));
    leat__buf_init(&note, LEAT__MEM_INGEST, 1u << 16);
    int rc = leat__buf_printf(&note, "%s" NOTE, s->path) == 0 ? 0 : leat__fail_nomem(err, 4096, "a path");
    leat__upload_opts opts = {.note = leat__buf_str(&note),
                              .absent = !s->replace || (!w->exists && !w->unconditional),
                              .match = w->unconditional ? NULL : w->there.etag,
                              .again = &again};
    if (rc == 0) rc = upload(w, leat__bucket_tag_set(s), s->remote, &opts, err);
    if (rc == LEAT_ENOENT && w->exists && s->replace) rc = LEAT_EEXIST; /* it was removed meanwhile */
    if (rc == LEAT_EEXIST && !again) leat__bucket_not_sent(s);
    leat__buf_reset(&note);
    return rc;
}

/* Uploads the shards, then the file that readers open. When another run changes the bucket meanwhile, a run
 * that may replace packs looks at it again. */
static int send_all(sender *w, leat_error *err)
{
    leat__bucket_pack *s = w->stage;
    int rc = LEAT_EEXIST;
    LEAT_TRY(leat__bucket_tag_apply(s, w->pack, err));
    for (int i = 0; i < ROUNDS && rc == LEAT_EEXIST; i++) {
        const leat__object before = w->there;
        LEAT_TRY(look(w, err));
        /* a server that refuses the ETag that it gave does not compare it as it should */
        if (before.etag[0] != '\0' && strcmp(before.etag, w->there.etag) == 0) w->unconditional = true;
        rc = upload_shards(w, err);
        if (rc == LEAT_EEXIST) {
            LEAT_TRY(draw_tag(w, err));
            continue;
        }
        if (rc == 0) rc = send_last(w, err);
        if (rc == LEAT_EEXIST && !s->replace) break;
    }
    return rc;
}

/* Says where the pack is that could not be uploaded. */
static void tell_folder(const leat__bucket_pack *s, leat_error *err)
{
    if (err == NULL || err->code == LEAT_ECANCELED) return; /* the caller reports how to continue */
    char *why = leat__strdup(LEAT__MEM_INGEST, err->message);
    const int number = err->sys_errno;
    if (why == NULL) return;
    leat__fail(err, err->code, "%.300s; the finished pack is kept in %s: `resume` uploads it", why,
               s->folder);
    err->sys_errno = number;
    leat__free(why);
}

int leat__bucket_pack_publish(leat__bucket_pack *s,
                              int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie,
                              leat_error *err)
{
    sender w = {.stage = s, .progress = progress, .cookie = cookie};
    leat_pack_info info;
    int rc;
    LEAT_TRY(leat_pack_open(&w.pack, s->path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(w.pack, &info, sizeof info));
    const char *first = leat__file_path(leat__pack_file(w.pack, 0));
    if (strcmp(leat__path_base(first), leat__path_base(s->path)) != 0) w.shards = info.shards;
    if (!s->published) rc = send_all(&w, err);
    if (rc == LEAT_EEXIST && !s->replace) {
        leat__fail(err, rc,
                   "%s: already exists: it appeared during the upload; the finished pack is kept in %s",
                   s->remote, s->folder);
        remove_own(s); /* `resume` sends them again */
    } else if (rc != 0) {
        tell_folder(s, err);
    }
    if (rc != 0) goto out;
    s->published = true;
    leat__bucket_pack_forget(s);
    leat__bucket_pack_unlock(s);
out:
    leat_pack_close(&w.pack);
    return rc;
}
