/* SPDX-License-Identifier: Apache-2.0
 *
 * Journal records: see journal.h. A record truncated by a crash fails its size or its check and
 * marks the end. Records before it are valid, because each was complete before the next began.
 */
#include "pack/journal.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/num.h"
#include "pack/layout.h"

#define HEAD_BYTES 32u  /* of the journal */
#define RECORD_HEAD 24u /* of a record */
#define RECORD_MAX (UINT64_C(4) << 30)
#define PAGE_FIXED 96u
#define SHARD_FIXED 64u

_Static_assert(PAGE_FIXED == 8 * (6 + LEAT_PACKER_MARKS + 2), "as put_page writes it");
_Static_assert(HEAD_BYTES >= 8 + 8 + 8 + 8, "magic, identity, zeros, check");

static const uint8_t magic[8] = {'L', 'E', 'A', 'T', 'J', 'N', 'L', '1'};

uint64_t leat__journal_first(void)
{
    return HEAD_BYTES;
}

static void encode_head(uint8_t head[HEAD_BYTES], uint64_t identity)
{
    memset(head, 0, HEAD_BYTES);
    memcpy(head, magic, sizeof magic);
    leat__store_u64(head + 8, identity);
    leat__store_u64(head + 24, leat__hash64(head, 24, 0));
}

int leat__journal_hold(leat__journal *j, const char *path, leat_error *err)
{
    memset(j, 0, sizeof *j);
    leat__buf_init(&j->buf, LEAT__MEM_PACK, RECORD_MAX + RECORD_HEAD);
    return leat__file_open(&j->file, path, LEAT__FILE_WRITE | LEAT__FILE_LOCK, err);
}

int leat__journal_create(leat__journal *j, const char *path, uint64_t identity, leat_error *err)
{
    memset(j, 0, sizeof *j);
    leat__buf_init(&j->buf, LEAT__MEM_PACK, RECORD_MAX + RECORD_HEAD);
    LEAT_TRY(leat__file_open(&j->file, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK, err));
    /* Emptied only after taking the lock: another run may be using it. */
    return leat__journal_restart(j, identity, err);
}

int leat__journal_restart(leat__journal *j, uint64_t identity, leat_error *err)
{
    uint8_t head[HEAD_BYTES];
    LEAT_TRY(leat__file_truncate(j->file, 0, err));
    encode_head(head, identity);
    LEAT_TRY(leat__file_pwrite(j->file, head, sizeof head, 0, err));
    j->end = HEAD_BYTES;
    LEAT_ASSERT(leat__journal_first() == j->end);
    return 0;
}

int leat__journal_resume(leat__journal *j, const char *path, uint64_t identity, leat_error *err)
{
    uint8_t head[HEAD_BYTES], want[HEAD_BYTES];
    LEAT_TRY(leat__journal_hold(j, path, err));
    size_t got;
    LEAT_TRY(leat__file_pread_some(j->file, head, sizeof head, 0, &got, err));
    encode_head(want, identity);
    if (got == sizeof head && memcmp(head, want, sizeof head) == 0) {
        j->end = HEAD_BYTES; /* replaying the records advances it */
        return 0;
    }
    if (got < sizeof head) { /* killed before the header was complete: nothing is lost */
        LEAT_TRY(leat__file_pwrite(j->file, want, sizeof want, 0, err));
        j->end = HEAD_BYTES;
        return 0;
    }
    if (memcmp(head, magic, sizeof magic) != 0 || leat__load_u64(head + 24) != leat__hash64(head, 24, 0))
        return leat__fail(err, LEAT_EDATA,
                          "%s: damaged journal; replace the unfinished pack, without `resume`", path);
    return leat__fail(err, LEAT_ESTATE, "%s: the unfinished pack has another source or other settings", path);
}

void leat__journal_reset(leat__journal *j)
{
    leat__file_close(&j->file);
    leat__buf_reset(&j->buf);
}

/* ---- writing --------------------------------------------------------------------------- */

/* Reserves space for the head; the caller appends the body. */
static void begin(leat__journal *j)
{
    leat__buf_clear(&j->buf);
    (void)leat__buf_zeros(&j->buf, RECORD_HEAD);
}

static void put_u64(leat__journal *j, uint64_t v)
{
    uint8_t b[8];
    leat__store_u64(b, v);
    (void)leat__buf_append(&j->buf, b, sizeof b);
}

static int commit(leat__journal *j, leat__record_kind kind, leat_error *err)
{
    LEAT_ASSERT(j->end >= HEAD_BYTES);
    LEAT_ASSERT(j->buf.len >= RECORD_HEAD || leat__buf_status(&j->buf) != 0);
    int rc = leat__buf_status(&j->buf);
    if (rc != 0) return leat__fail(err, rc, "%s: cannot build a record", leat__file_path(j->file));
    uint8_t *p = (uint8_t *)j->buf.data;
    leat__store_u32(p, kind);
    leat__store_u64(p + 8, j->buf.len - RECORD_HEAD);
    leat__store_u64(p + 16,
                    leat__hash64(p, 16, 0) ^ leat__hash64(p + RECORD_HEAD, j->buf.len - RECORD_HEAD, kind));
    LEAT_TRY(leat__file_pwrite(j->file, p, j->buf.len, j->end, err));
    j->end += j->buf.len;
    return 0;
}

int leat__journal_put_page(leat__journal *j, const leat__journal_page *page, leat_error *err)
{
    LEAT_ASSERT(page->samples > 0 && page->bytes > 0);
    begin(j);
    put_u64(j, page->shard | (uint64_t)page->samples << 32);
    put_u64(j, page->offset);
    put_u64(j, page->bytes);
    put_u64(j, page->check);
    put_u64(j, page->max_sample);
    put_u64(j, page->payload);
    for (int i = 0; i < LEAT_PACKER_MARKS; i++) put_u64(j, page->marks[i]);
    put_u64(j, page->rows_bytes);
    put_u64(j, page->keys_bytes);
    (void)leat__buf_append(&j->buf, page->rows, page->rows_bytes);
    if (page->keys_bytes > 0) (void)leat__buf_append(&j->buf, page->keys, page->keys_bytes);
    return commit(j, LEAT__RECORD_PAGE, err);
}

int leat__journal_put_blob(leat__journal *j, const char *name, const void *data, size_t size, leat_error *err)
{
    begin(j);
    put_u64(j, strlen(name) + 1);
    (void)leat__buf_append(&j->buf, name, strlen(name) + 1);
    if (size > 0) (void)leat__buf_append(&j->buf, data, size);
    return commit(j, LEAT__RECORD_BLOB, err);
}

int leat__journal_put_shard(leat__journal *j, const leat__journal_shard *s, leat_error *err)
{
    begin(j);
    put_u64(j, s->shard);
    put_u64(j, s->file_bytes);
    put_u64(j, s->samples);
    put_u64(j, s->pages);
    put_u64(j, s->fingerprint);
    put_u64(j, s->max_page_bytes);
    put_u64(j, s->max_sample_bytes);
    put_u64(j, s->duplicate_keys);
    return commit(j, LEAT__RECORD_SHARD, err);
}

int leat__journal_put_old(leat__journal *j, const char *shards, leat_error *err)
{
    begin(j);
    (void)leat__buf_append(&j->buf, shards, strlen(shards) + 1);
    return commit(j, LEAT__RECORD_OLD, err);
}

int leat__journal_put_mark(leat__journal *j, leat__record_kind kind, leat_error *err)
{
    begin(j);
    return commit(j, kind, err);
}

int leat__journal_cut(leat__journal *j, uint64_t at, leat_error *err)
{
    LEAT_ASSERT(at >= HEAD_BYTES);
    LEAT_TRY(leat__file_truncate(j->file, at, err));
    j->end = at;
    return 0;
}

int leat__journal_sync(leat__journal *j, leat_error *err)
{
    return leat__file_sync(j->file, err);
}

/* ---- reading --------------------------------------------------------------------------- */

static bool parse_page(leat__journal_record *r, const uint8_t *p, uint64_t len)
{
    LEAT_ASSERT(r->kind == LEAT__RECORD_PAGE);
    if (len < PAGE_FIXED) return false;
    leat__journal_page *g = &r->page;
    g->shard = leat__load_u32(p);
    g->samples = leat__load_u32(p + 4);
    g->offset = leat__load_u64(p + 8);
    g->bytes = leat__load_u64(p + 16);
    g->check = leat__load_u64(p + 24);
    g->max_sample = leat__load_u64(p + 32);
    g->payload = leat__load_u64(p + 40);
    for (int i = 0; i < LEAT_PACKER_MARKS; i++) g->marks[i] = leat__load_u64(p + 48 + 8 * i);
    g->rows_bytes = leat__load_u64(p + 80);
    g->keys_bytes = leat__load_u64(p + 88);
    if (g->rows_bytes > len || g->keys_bytes > len || PAGE_FIXED + g->rows_bytes + g->keys_bytes != len ||
        g->samples == 0)
        return false;
    g->rows = p + PAGE_FIXED;
    g->keys = g->rows + g->rows_bytes;
    return true;
}

static bool parse_shard(leat__journal_record *r, const uint8_t *p, uint64_t len)
{
    if (len != SHARD_FIXED) return false;
    r->shard = (leat__journal_shard){
        .shard = leat__load_u32(p),
        .file_bytes = leat__load_u64(p + 8),
        .samples = leat__load_u64(p + 16),
        .pages = leat__load_u64(p + 24),
        .fingerprint = leat__load_u64(p + 32),
        .max_page_bytes = leat__load_u64(p + 40),
        .max_sample_bytes = leat__load_u64(p + 48),
        .duplicate_keys = leat__load_u64(p + 56),
    };
    return true;
}

static bool parse_blob(leat__journal_record *r, const uint8_t *p, uint64_t len)
{
    if (len < 8) return false;
    uint64_t name = leat__load_u64(p);
    if (name < 2 || name > len - 8 || p[8 + name - 1] != '\0') return false;
    r->blob_name = (const char *)p + 8;
    r->blob = p + 8 + name;
    r->blob_bytes = len - 8 - name;
    return true;
}

static bool parse_old(leat__journal_record *r, const uint8_t *p, uint64_t len)
{
    r->old_shards = (const char *)p;
    return len > 0 && p[len - 1] == '\0';
}

static bool parse(leat__journal_record *r, const uint8_t *p, uint64_t len)
{
    switch (r->kind) {
    case LEAT__RECORD_PAGE: return parse_page(r, p, len);
    case LEAT__RECORD_SHARD: return parse_shard(r, p, len);
    case LEAT__RECORD_BLOB: return parse_blob(r, p, len);
    case LEAT__RECORD_OLD: return parse_old(r, p, len);
    case LEAT__RECORD_SYNC:
    case LEAT__RECORD_ONCE:
    case LEAT__RECORD_FINISH: return len == 0;
    }
    return false;
}

int leat__journal_read(leat__journal *j, uint64_t at, leat__journal_record *r, leat_error *err)
{
    LEAT_ASSERT(at >= HEAD_BYTES);
    uint8_t head[RECORD_HEAD];
    size_t got;
    memset(r, 0, sizeof *r);
    LEAT_TRY(leat__file_pread_some(j->file, head, sizeof head, at, &got, err));
    uint64_t len = leat__load_u64(head + 8);
    uint64_t size;
    LEAT_TRY(leat__file_size(j->file, &size, err));
    if (got < sizeof head || !leat__range_inside(at + RECORD_HEAD, len, size) || len > RECORD_MAX)
        return LEAT_ENOENT;
    leat__buf_clear(&j->buf);
    if (leat__buf_reserve(&j->buf, (size_t)len) != 0) return leat__fail_nomem(err, len, "a journal record");
    uint8_t *body = (uint8_t *)j->buf.data;
    LEAT_TRY(leat__file_pread(j->file, body, (size_t)len, at + RECORD_HEAD, err));
    r->kind = (leat__record_kind)leat__load_u32(head);
    r->at = at;
    r->next = at + RECORD_HEAD + len;
    uint64_t check = leat__hash64(head, 16, 0) ^ leat__hash64(body, (size_t)len, r->kind);
    if (leat__load_u64(head + 16) != check || !parse(r, body, len)) return LEAT_ENOENT;
    return 0;
}

int leat__journal_known(const leat__journal *held, const char *path, leat_error *err)
{
    static const uint8_t never_written[8]; /* a crash may leave zeros */
    uint8_t head[8];
    size_t got;
    LEAT_TRY(leat__file_pread_some(held->file, head, sizeof head, 0, &got, err));
    if (memcmp(head, magic, got) == 0 || memcmp(head, never_written, got) == 0) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: is not a journal of leat; move it away", path);
}

int leat__journal_once(leat__journal *held, bool *once, leat_error *err)
{
    leat__journal_record r;
    uint64_t size;
    LEAT_TRY(leat__file_size(held->file, &size, err));
    int rc = leat__journal_read(held, HEAD_BYTES, &r, err);
    *once = rc == 0 ? r.kind == LEAT__RECORD_ONCE : size <= HEAD_BYTES + RECORD_HEAD;
    return rc == LEAT_ENOENT ? 0 : rc;
}
