/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_spool.h. The file begins with a file_head. Blocks of up to BLOCK_ROWS rows follow:
 *
 *   block
 *   score 0 of its ok rows, score 1 ...   doubles
 *   rows                                  head, facts up to `reason`, key, reason
 *
 * The blocks' heads stay in memory.
 */
#include "curate/image_spool.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/file.h"

#define BLOCK_ROWS 256
#define BLOCK_BYTES (1u << 30) /* upper limit; keys are much shorter */
#define FIXED offsetof(leat__image_facts, reason)

#define MAGIC "LEATSPO1"

typedef struct file_head {
    char magic[8];
    uint64_t key;
} file_head;

typedef struct block {
    uint64_t at;               /* offset of its scores */
    uint64_t bytes;            /* size of scores and rows */
    uint64_t check[2];         /* hashes of scores and rows */
    uint32_t rows, ok;         /* all rows; those with scores */
    leat__check_counts counts; /* up to and including its rows */
    uint64_t head_check;       /* hash of the fields above */
} block;

typedef struct head {
    uint32_t key_size, reason_size;
} head;

struct leat__image_spool {
    char *path;
    leat__file *file;
    leat__buf blocks; /* array of struct block */
    uint64_t count, end, key;
    leat__check_counts counts; /* including the rows in memory */
    /* the block being written or read */
    double scores[LEAT__LOOKS][BLOCK_ROWS];
    leat__buf rows; /* reading: the whole block */
    uint32_t held, ok;
    bool finished;   /* from now on, rows are read */
    size_t at, next; /* offset of the next row; index of the next block */
    leat__buf key_text;
};

static size_t block_count(const leat__image_spool *s)
{
    return s->blocks.len / sizeof(block);
}

static block block_at(const leat__image_spool *s, size_t i)
{
    block b;
    memcpy(&b, s->blocks.data + i * sizeof b, sizeof b);
    return b;
}

/* ---- opening ---- */

/* Reads the block after the known ones, if it is complete. */
static int adopt_block(leat__image_spool *s, uint64_t size, bool *whole, leat_error *err)
{
    block b;
    *whole = false;
    if (size - s->end < sizeof b) return 0;
    LEAT_TRY(leat__file_pread(s->file, &b, sizeof b, s->end, err));
    const size_t skip = LEAT__LOOKS * (size_t)b.ok * sizeof(double);
    if (leat__hash64(&b, offsetof(block, head_check), 0) != b.head_check || b.at != s->end + sizeof b ||
        b.bytes > size - b.at || b.rows == 0 || b.rows > BLOCK_ROWS || b.ok > b.rows || skip > b.bytes)
        return 0;
    leat__buf_clear(&s->rows);
    if (leat__buf_reserve(&s->rows, (size_t)b.bytes) != 0)
        return leat__fail_nomem(err, (size_t)b.bytes, "facts about images");
    LEAT_TRY(leat__file_pread(s->file, s->rows.data, (size_t)b.bytes, b.at, err));
    if (leat__hash64(s->rows.data, skip, 0) != b.check[0] ||
        leat__hash64(s->rows.data + skip, (size_t)b.bytes - skip, 0) != b.check[1])
        return 0;
    if (leat__buf_append(&s->blocks, &b, sizeof b) != 0) return leat__fail_nomem(err, sizeof b, "scores");
    s->end = b.at + b.bytes;
    s->count += b.rows;
    s->counts = b.counts;
    *whole = true;
    return 0;
}

static int adopt(leat__image_spool *s, leat_error *err)
{
    file_head h;
    uint64_t size = 0;
    bool whole = true;
    LEAT_TRY(leat__file_size(s->file, &size, err));
    if (s->key == 0 || size < sizeof h) return leat__image_spool_clear(s, err);
    LEAT_TRY(leat__file_pread(s->file, &h, sizeof h, 0, err));
    if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.key != s->key)
        return leat__image_spool_clear(s, err);
    s->end = sizeof h;
    while (whole) LEAT_TRY(adopt_block(s, size, &whole, err));
    leat__buf_clear(&s->rows);
    return leat__file_truncate(s->file, s->end, err);
}

int leat__image_spool_clear(leat__image_spool *s, leat_error *err)
{
    file_head h = {.key = s->key};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    leat__buf_clear(&s->blocks);
    leat__buf_clear(&s->rows);
    memset(&s->counts, 0, sizeof s->counts);
    s->count = 0;
    s->held = s->ok = 0;
    s->end = sizeof h;
    LEAT_TRY(leat__file_truncate(s->file, 0, err));
    return leat__file_pwrite(s->file, &h, sizeof h, 0, err);
}

int leat__image_spool_open(leat__image_spool **out, const char *path, uint64_t key,
                           leat__check_counts *counts, leat_error *err)
{
    int rc;
    leat__image_spool *s = LEAT_NEW(CURATE, leat__image_spool);
    *out = NULL;
    if (!s) return leat__fail_nomem(err, sizeof *s, "scores");
    s->key = key;
    leat__buf_init(&s->blocks, LEAT__MEM_CURATE, SIZE_MAX / 2);
    leat__buf_init(&s->rows, LEAT__MEM_CURATE, BLOCK_BYTES);
    leat__buf_init(&s->key_text, LEAT__MEM_CURATE, BLOCK_BYTES);
    LEAT_GO(rc, out,
            leat__file_open(&s->file, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK, err));
    s->path = leat__strdup(LEAT__MEM_CURATE, path); /* from here on, closing removes the file */
    if (!s->path) LEAT_GO(rc, out, leat__fail_nomem(err, strlen(path), "a path"));
    LEAT_GO(rc, out, adopt(s, err));
    *counts = s->counts;
    *out = s;
    s = NULL;
out:
    leat__image_spool_close(&s);
    return rc;
}

/* ---- writing ---- */

static int write_block(leat__image_spool *s, leat_error *err)
{
    block b;
    leat__buf scores;
    const size_t column = s->ok * sizeof(double);
    if (s->held == 0) return 0;
    memset(&b, 0, sizeof b);
    b.at = s->end + sizeof b;
    b.rows = s->held;
    b.ok = s->ok;
    b.counts = s->counts;
    leat__buf_init(&scores, LEAT__MEM_CURATE, SIZE_MAX / 2);
    for (int i = 0; i < LEAT__LOOKS; i++) leat__buf_append(&scores, s->scores[i], column);
    b.bytes = scores.len + s->rows.len;
    b.check[0] = leat__hash64(scores.data, scores.len, 0);
    b.check[1] = leat__hash64(s->rows.data, s->rows.len, 0);
    b.head_check = leat__hash64(&b, offsetof(block, head_check), 0);
    int rc = leat__buf_status(&scores) == 0 ? 0 : leat__fail_nomem(err, LEAT__LOOKS * column, "scores");
    if (rc == 0 && scores.len > 0) rc = leat__file_pwrite(s->file, scores.data, scores.len, b.at, err);
    if (rc == 0) rc = leat__file_pwrite(s->file, s->rows.data, s->rows.len, b.at + scores.len, err);
    if (rc == 0) rc = leat__file_pwrite(s->file, &b, sizeof b, s->end, err);
    leat__buf_reset(&scores);
    if (rc == 0 && leat__buf_append(&s->blocks, &b, sizeof b) != 0)
        rc = leat__fail_nomem(err, sizeof b, "scores");
    s->end = b.at + b.bytes;
    leat__buf_clear(&s->rows);
    s->held = s->ok = 0;
    return rc;
}

int leat__image_spool_put(leat__image_spool *s, const void *key, size_t key_size, const leat__image_facts *f,
                          const leat__check_counts *counts, leat_error *err)
{
    const head h = {(uint32_t)key_size, (uint32_t)strlen(f->reason)};
    leat__buf_append(&s->rows, &h, sizeof h);
    leat__buf_append(&s->rows, f, FIXED);
    leat__buf_append(&s->rows, key, key_size);
    leat__buf_append(&s->rows, f->reason, h.reason_size);
    if (leat__buf_status(&s->rows) != 0)
        return leat__fail_nomem(err, sizeof *f + key_size, "facts about an image");
    if (f->verdict == LEAT__VERDICT_OK) {
        for (int i = 0; i < LEAT__LOOKS; i++) s->scores[i][s->ok] = f->score[i];
        s->ok++;
    }
    s->count++;
    s->counts = *counts;
    return ++s->held == BLOCK_ROWS ? write_block(s, err) : 0;
}

int leat__image_spool_finish(leat__image_spool *s, leat_error *err)
{
    LEAT_TRY(write_block(s, err));
    s->finished = true;
    return 0;
}

/* ---- closing ---- */

static void release(leat__image_spool **spool)
{
    leat__image_spool *s = *spool;
    leat__file_close(&s->file);
    leat__free(s->path);
    leat__buf_reset(&s->blocks);
    leat__buf_reset(&s->rows);
    leat__buf_reset(&s->key_text);
    leat__free(s);
    *spool = NULL;
}

void leat__image_spool_leave(leat__image_spool **spool)
{
    if (!*spool) return;
    if (!(*spool)->finished) (void)!write_block(*spool, NULL);
    release(spool);
}

void leat__image_spool_close(leat__image_spool **spool)
{
    if (!*spool) return;
    if ((*spool)->path) (void)!leat__path_unlink((*spool)->path, NULL);
    release(spool);
}

/* ---- reading ---- */

uint64_t leat__image_spool_count(const leat__image_spool *s)
{
    return s->count;
}

int leat__image_spool_scores(const leat__image_spool *s, leat__look score, double *out, size_t *count,
                             leat_error *err)
{
    *count = 0;
    for (size_t i = 0; i < block_count(s); i++) {
        const block b = block_at(s, i);
        const size_t column = b.ok * sizeof *out;
        LEAT_TRY(leat__file_pread(s->file, out + *count, column, b.at + (uint64_t)score * column, err));
        *count += b.ok;
    }
    return 0;
}

static int read_block(leat__image_spool *s, leat_error *err)
{
    const block b = block_at(s, s->next++);
    const size_t skip = LEAT__LOOKS * b.ok * sizeof(double), bytes = (size_t)b.bytes - skip;
    leat__buf_clear(&s->rows);
    if (leat__buf_reserve(&s->rows, bytes) != 0) return leat__fail_nomem(err, bytes, "facts about images");
    LEAT_TRY(leat__file_pread(s->file, s->rows.data, bytes, b.at + skip, err));
    s->rows.len = bytes;
    s->held = b.rows;
    s->at = 0;
    if (leat__hash64(s->rows.data, bytes, 0) == b.check[1]) return 0;
    return leat__fail(err, LEAT_EDATA, "%s: changed while it was in use", s->path);
}

int leat__image_spool_next(leat__image_spool *s, leat__image_facts *f, const char **key, size_t *key_size,
                           leat_error *err)
{
    head h;
    *key = NULL;
    *key_size = 0;
    if (s->held == 0) {
        if (s->next == block_count(s)) return 0;
        LEAT_TRY(read_block(s, err));
    }
    const char *const row = s->rows.data + s->at;
    memcpy(&h, row, sizeof h);
    memcpy(f, row + sizeof h, FIXED);
    memcpy(f->reason, row + sizeof h + FIXED + h.key_size, h.reason_size);
    f->reason[h.reason_size] = 0;
    leat__buf_clear(&s->key_text);
    if (leat__buf_append(&s->key_text, row + sizeof h + FIXED, h.key_size) != 0)
        return leat__fail_nomem(err, h.key_size, "a key");
    *key = leat__buf_str(&s->key_text);
    *key_size = h.key_size;
    s->at += sizeof h + FIXED + h.key_size + h.reason_size;
    s->held--;
    return 0;
}
