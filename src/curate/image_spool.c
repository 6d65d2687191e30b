/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_spool.h. The file consists of blocks of up to BLOCK_ROWS rows:
 *
 *   score 0 of its ok rows, score 1 ...   doubles
 *   rows                                  head, facts up to `reason`, key, reason
 *
 * Where the blocks are, and their checks, stays in memory.
 */
#include "curate/image_spool.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/file.h"

#define BLOCK_ROWS 256
#define BLOCK_BYTES (1u << 30) /* keys are much shorter */
#define FIXED offsetof(leat__image_facts, reason)

typedef struct block {
    uint64_t at, check;
    uint32_t rows, ok; /* rows, those of them with scores */
    size_t bytes;      /* of scores and rows */
} block;

typedef struct head {
    uint32_t key_size, reason_size;
} head;

struct leat__image_spool {
    char *path;
    leat__file *file;
    leat__buf blocks; /* of struct block */
    uint64_t count, end;
    /* the block that is written or read */
    double scores[LEAT__LOOKS][BLOCK_ROWS];
    leat__buf rows; /* reading: the whole block */
    uint32_t held, ok;
    size_t at, next; /* byte of the next row; index of the next block */
    leat__buf key;
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

int leat__image_spool_open(leat__image_spool **out, const char *path, leat_error *err)
{
    int rc;
    leat__image_spool *s = LEAT_NEW(CURATE, leat__image_spool);
    *out = NULL;
    if (!s) return leat__fail_nomem(err, sizeof *s, "scores");
    leat__buf_init(&s->blocks, LEAT__MEM_CURATE, SIZE_MAX / 2);
    leat__buf_init(&s->rows, LEAT__MEM_CURATE, BLOCK_BYTES);
    leat__buf_init(&s->key, LEAT__MEM_CURATE, BLOCK_BYTES);
    LEAT_GO(rc, out,
            leat__file_open(&s->file, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK, err));
    s->path = leat__strdup(LEAT__MEM_CURATE, path); /* from here on the file is removed at the end */
    if (!s->path) LEAT_GO(rc, out, leat__fail_nomem(err, strlen(path), "a path"));
    LEAT_GO(rc, out, leat__file_truncate(s->file, 0, err));
    *out = s;
    s = NULL;
out:
    leat__image_spool_close(&s);
    return rc;
}

void leat__image_spool_close(leat__image_spool **spool)
{
    leat__image_spool *s = *spool;
    if (!s) return;
    if (s->path) (void)!leat__path_unlink(s->path, NULL);
    leat__file_close(&s->file);
    leat__free(s->path);
    leat__buf_reset(&s->blocks);
    leat__buf_reset(&s->rows);
    leat__buf_reset(&s->key);
    leat__free(s);
    *spool = NULL;
}

/* ---- writing ---- */

static int write_block(leat__image_spool *s, leat_error *err)
{
    block b = {.at = s->end, .rows = s->held, .ok = s->ok};
    const size_t column = s->ok * sizeof(double);
    if (s->held == 0) return 0;
    for (int i = 0; i < LEAT__LOOKS; i++) {
        LEAT_TRY(leat__file_pwrite(s->file, s->scores[i], column, s->end, err));
        s->end += column;
    }
    LEAT_TRY(leat__file_pwrite(s->file, s->rows.data, s->rows.len, s->end, err));
    s->end += s->rows.len;
    b.bytes = (size_t)(s->end - b.at);
    b.check = leat__hash64(s->rows.data, s->rows.len, 0);
    if (leat__buf_append(&s->blocks, &b, sizeof b) != 0) return leat__fail_nomem(err, sizeof b, "scores");
    leat__buf_clear(&s->rows);
    s->held = s->ok = 0;
    return 0;
}

int leat__image_spool_put(leat__image_spool *s, const void *key, size_t key_size, const leat__image_facts *f,
                          leat_error *err)
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
    return ++s->held == BLOCK_ROWS ? write_block(s, err) : 0;
}

int leat__image_spool_finish(leat__image_spool *s, leat_error *err)
{
    return write_block(s, err);
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
    const size_t skip = LEAT__LOOKS * b.ok * sizeof(double), bytes = b.bytes - skip;
    leat__buf_clear(&s->rows);
    if (leat__buf_reserve(&s->rows, bytes) != 0) return leat__fail_nomem(err, bytes, "facts about images");
    LEAT_TRY(leat__file_pread(s->file, s->rows.data, bytes, b.at + skip, err));
    s->rows.len = bytes;
    s->held = b.rows;
    s->at = 0;
    if (leat__hash64(s->rows.data, bytes, 0) == b.check) return 0;
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
    leat__buf_clear(&s->key);
    if (leat__buf_append(&s->key, row + sizeof h + FIXED, h.key_size) != 0)
        return leat__fail_nomem(err, h.key_size, "a key");
    *key = leat__buf_str(&s->key);
    *key_size = h.key_size;
    s->at += sizeof h + FIXED + h.key_size + h.reason_size;
    s->held--;
    return 0;
}
