/* SPDX-License-Identifier: Apache-2.0
 *
 * Tar shards: see tar_write.h. Names of up to 100 bytes are stored in the header, longer ones in a pax
 * header before it.
 */
#include "ingest/tar_write.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "ingest/shard_mark.h"

#define BLOCK 512
#define PENDING (4u << 20) /* bytes written at a time */

void leat__tar_out_init(leat__tar_out *t, const char *folder, uint64_t shard_bytes, bool replace)
{
    *t = (leat__tar_out){.folder = folder, .shard_bytes = shard_bytes, .replace = replace};
    leat__buf_init(&t->pending, LEAT__MEM_INGEST, SIZE_MAX / 4);
    leat__buf_init(&t->path, LEAT__MEM_INGEST, 2u << 20);
    leat__buf_init(&t->partial, LEAT__MEM_INGEST, 2u << 20);
}

static int flush(leat__tar_out *t, leat_error *err)
{
    if (leat__buf_status(&t->pending) != 0) return leat__fail_nomem(err, t->pending.len, "a tar shard");
    if (t->pending.len == 0) return 0;
    LEAT_TRY(leat__file_pwrite(t->file, t->pending.data, t->pending.len, t->at - t->pending.len, err));
    leat__buf_clear(&t->pending);
    return 0;
}

static void append(leat__tar_out *t, const void *data, size_t len)
{
    leat__buf_append(&t->pending, data, len);
    t->at += len;
}

static void pad(leat__tar_out *t, size_t len)
{
    size_t n = (BLOCK - len % BLOCK) % BLOCK;
    leat__buf_zeros(&t->pending, n);
    t->at += n;
}

/* Sets the names of a shard: the final one, and the one it has until it is complete. */
static int name_shard(leat__tar_out *t, uint32_t number, leat_error *err)
{
    char name[24];
    snprintf(name, sizeof name, "%05u.tar", number);
    leat__buf_clear(&t->path);
    leat__buf_clear(&t->partial);
    if (leat__path_join(&t->path, t->folder, name) != 0 ||
        leat__buf_printf(&t->partial, "%s.partial", leat__buf_str(&t->path)) != 0)
        return leat__fail_nomem(err, 0, "a path");
    return 0;
}

/* Gives the complete shards their final names. */
static int publish(leat__tar_out *t, leat_error *err)
{
    int rc = 0;
    for (; t->named < t->shards && rc == 0; t->named += rc == 0) {
        rc = name_shard(t, t->named, err);
        if (rc == 0) rc = leat__path_rename(leat__buf_str(&t->partial), leat__buf_str(&t->path), err);
    }
    if (rc != 0 && t->replace && t->named > 0)
        leat__error_context(err, "%u shard%s of this run replaced earlier ones, %u did not", t->named,
                            t->named == 1 ? "" : "s", t->shards - t->named);
    return rc;
}

static int end_shard(leat__tar_out *t, leat_error *err)
{
    if (!t->file) return 0;
    leat__buf_zeros(&t->pending, 2 * BLOCK);
    t->at += 2 * BLOCK;
    LEAT_TRY(flush(t, err));
    leat__file_close(&t->file);
    t->shards++;
    return t->replace ? 0 : publish(t, err);
}

int leat__tar_out_sample(leat__tar_out *t, leat_error *err)
{
    bool there = false;
    if (t->file && t->at < t->shard_bytes) return 0;
    LEAT_TRY(end_shard(t, err));
    LEAT_TRY(name_shard(t, t->shards, err));
    const char *path = leat__buf_str(&t->path), *partial = leat__buf_str(&t->partial);
    if (t->replace) LEAT_TRY(leat__shard_replaceable(path, true, err));
    else LEAT_TRY(leat__path_exists(path, &there, err));
    if (there) return leat__fail(err, LEAT_EEXIST, "%s: already exists", path);
    LEAT_TRY(leat__path_unlink(partial, err)); /* left by a killed run */
    LEAT_TRY(
        leat__file_open(&t->file, partial, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_EXCLUSIVE, err));
    t->at = 0;
    return 0;
}

static void header(leat__tar_out *t, const char *name, size_t name_len, uint64_t size, char type)
{
    char h[BLOCK] = {0};
    memcpy(h, name, LEAT_MIN(name_len, (size_t)100));
    memcpy(h + 100, "0000644", 8);
    memcpy(h + 108, "0000000", 8);
    memcpy(h + 116, "0000000", 8);
    if (size < UINT64_C(1) << 33) {
        snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    } else { /* base-256 encoding */
        h[124] = (char)0x80;
        for (int i = 0; i < 8; i++) h[135 - i] = (char)(size >> (8 * i));
    }
    memcpy(h + 136, "00000000000", 12);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    memcpy(h + 265, LEAT__SHARD_OWNER, sizeof LEAT__SHARD_OWNER); /* user */
    memcpy(h + 297, LEAT__SHARD_OWNER, sizeof LEAT__SHARD_OWNER); /* group */
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += (uint8_t)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    append(t, h, BLOCK);
}

/* Writes the pax record "LEN path=NAME\n", where LEN includes its own digits. */
static void long_name(leat__tar_out *t, const char *name, size_t len)
{
    size_t rest = strlen(" path=") + len + 1, digits = 1, total = rest + 1;
    for (size_t bound = 10; total >= bound; bound *= 10) total = rest + ++digits;
    char begin[40];
    int n = snprintf(begin, sizeof begin, "%zu path=", total);
    header(t, "pax", 3, total, 'x');
    append(t, begin, (size_t)n);
    append(t, name, len);
    append(t, "\n", 1);
    pad(t, total);
}

int leat__tar_out_add(leat__tar_out *t, const char *name, const void *data, size_t len, leat_error *err)
{
    size_t name_len = strlen(name);
    if (name_len > 100) long_name(t, name, name_len);
    header(t, name, name_len, len, '0');
    append(t, data, len);
    pad(t, len);
    return t->pending.len >= PENDING || leat__buf_status(&t->pending) != 0 ? flush(t, err) : 0;
}

int leat__tar_out_finish(leat__tar_out *t, leat_error *err)
{
    LEAT_TRY(end_shard(t, err));
    return publish(t, err);
}

void leat__tar_out_reset(leat__tar_out *t)
{
    for (uint32_t i = t->named; i < t->shards + (t->file != NULL); i++)
        if (name_shard(t, i, NULL) == 0) (void)!leat__path_unlink(leat__buf_str(&t->partial), NULL);
    leat__file_close(&t->file);
    leat__buf_reset(&t->pending);
    leat__buf_reset(&t->path);
    leat__buf_reset(&t->partial);
}
