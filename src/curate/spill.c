/* SPDX-License-Identifier: Apache-2.0
 *
 * See spill.h.
 */
#include "curate/spill.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"

#define PATH_MAX_BYTES 4096
#define READ_BYTES (1u << 20)
#define SUM_MASK (UINT64_MAX >> 1) /* JSON numbers are signed */

static int path_of(const leat__spill *s, uint32_t file, char *out, leat_error *err)
{
    int n = snprintf(out, PATH_MAX_BYTES, "%s-%u", s->name, file);
    return n < PATH_MAX_BYTES ? 0 : leat__fail(err, LEAT_ELIMIT, "%s: the path is too long", s->name);
}

/* Truncates a file to its recorded length, and loads its incomplete last block into the buffer. */
static int begin_file(leat__spill *s, uint32_t i, leat_error *err)
{
    char path[PATH_MAX_BYTES];
    leat__file *f = NULL;
    uint64_t size = 0, length = s->length[i];
    LEAT_TRY(path_of(s, i, path, err));
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, err));
    int rc = leat__file_size(f, &size, err);
    if (rc == 0 && size < length)
        rc = leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (use `force` to start over)", path,
                        (unsigned long long)size, (unsigned long long)length);
    if (rc == 0) rc = leat__file_truncate(f, length, err);
    s->base[i] = length;
    if (rc == 0 && s->buffer_bytes >= LEAT__SPILL_BLOCK) {
        s->used[i] = (uint32_t)(length % LEAT__SPILL_BLOCK);
        s->base[i] = length - s->used[i];
        rc = leat__file_pread(f, s->buffer + i * s->buffer_bytes, s->used[i], s->base[i], err);
    }
    leat__file_close(&f);
    return rc;
}

/* Opens the files at their recorded lengths. `sums` cover whole files, so the sum of the incomplete
 * block is subtracted. */
static int begin_files(leat__spill *s, const uint64_t *lengths, const uint64_t *sums, leat_error *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        s->length[i] = lengths ? lengths[i] : 0;
        LEAT_TRY(begin_file(s, i, err));
        if (sums) s->sum[i] = sums[i] - leat__spill_sum(s, i);
    }
    return 0;
}

int leat__spill_open(leat__spill *s, const char *folder, const char *name, uint32_t count,
                     size_t buffer_bytes, const uint64_t *lengths, const uint64_t *sums, leat_error *err)
{
    LEAT_ASSERT(count > 0 && buffer_bytes > 0 && buffer_bytes <= UINT32_MAX);
    char base[PATH_MAX_BYTES - 16];
    memset(s, 0, sizeof *s);
    snprintf(base, sizeof base, "%s/%s", folder, name);
    s->name = leat__strdup(LEAT__MEM_CURATE, base);
    s->count = count;
    s->buffer_bytes = buffer_bytes;
    s->buffer = leat__alloc_array(LEAT__MEM_CURATE, count, buffer_bytes);
    s->used = LEAT_NEW_ARRAY(CURATE, uint32_t, count);
    s->base = LEAT_NEW_ARRAY(CURATE, uint64_t, count);
    s->length = LEAT_NEW_ARRAY(CURATE, uint64_t, count);
    s->sum = LEAT_NEW_ARRAY(CURATE, uint64_t, count);
    int rc = s->name && s->buffer && s->used && s->base && s->length && s->sum
                 ? begin_files(s, lengths, sums, err)
                 : leat__fail_nomem(err, count * buffer_bytes, "buffers of files on disk");
    if (rc != 0) leat__spill_reset(s);
    return rc;
}

void leat__spill_reset(leat__spill *s)
{
    leat__free(s->name);
    leat__free(s->buffer);
    leat__free(s->used);
    leat__free(s->base);
    leat__free(s->length);
    leat__free(s->sum);
    memset(s, 0, sizeof *s);
}

uint64_t leat__spill_sum_of(const void *data, size_t len, uint64_t offset)
{
    const uint8_t *p = data;
    uint64_t sum = 0;
    for (size_t at = 0; at < len; at += LEAT__SPILL_BLOCK)
        sum += leat__hash64(p + at, LEAT_MIN(len - at, LEAT__SPILL_BLOCK), offset + at);
    return sum & SUM_MASK;
}

uint64_t leat__spill_sum(const leat__spill *s, uint32_t file)
{
    return (s->sum[file] +
            leat__spill_sum_of(s->buffer + file * s->buffer_bytes, s->used[file], s->base[file])) &
           SUM_MASK;
}

/* Writes the bytes of the buffer that are not yet in the file. */
static int append(leat__spill *s, uint32_t file, bool sync, leat_error *err)
{
    char path[PATH_MAX_BYTES];
    leat__file *f = NULL;
    uint64_t end = s->base[file] + s->used[file];
    size_t new = (size_t)(end - s->length[file]);
    LEAT_TRY(path_of(s, file, path, err));
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_WRITE, err));
    const uint8_t *data = s->buffer + file * s->buffer_bytes + s->used[file] - new;
    int rc = new > 0 ? leat__file_pwrite(f, data, new, s->length[file], err) : 0;
    if (rc == 0) s->length[file] = end;
    if (rc == 0 && sync) rc = leat__file_sync(f, err);
    leat__file_close(&f);
    return rc;
}

/* Drops the whole blocks of the buffer, which have been written. */
static void drop_blocks(leat__spill *s, uint32_t file)
{
    uint8_t *buffer = s->buffer + file * s->buffer_bytes;
    uint32_t whole = s->used[file] / LEAT__SPILL_BLOCK * LEAT__SPILL_BLOCK;
    s->sum[file] += leat__spill_sum_of(buffer, whole, s->base[file]);
    s->used[file] -= whole;
    s->base[file] += whole;
    memmove(buffer, buffer + whole, s->used[file]);
}

int leat__spill_put(leat__spill *s, uint32_t file, const void *data, size_t len, leat_error *err)
{
    LEAT_ASSERT(file < s->count && s->buffer_bytes >= LEAT__SPILL_BLOCK && s->used[file] < s->buffer_bytes);
    uint8_t *buffer = s->buffer + file * s->buffer_bytes;
    for (const uint8_t *p = data;;) {
        size_t n = LEAT_MIN(len, s->buffer_bytes - s->used[file]);
        memcpy(buffer + s->used[file], p, n);
        s->used[file] += (uint32_t)n;
        p += n;
        len -= n;
        if (s->used[file] < s->buffer_bytes) return 0;
        LEAT_TRY(append(s, file, false, err));
        drop_blocks(s, file);
    }
}

int leat__spill_flush(leat__spill *s, bool sync, leat_error *err)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->base[i] + s->used[i] > s->length[i] || sync) LEAT_TRY(append(s, i, sync, err));
    return 0;
}

int leat__spill_verify(const char *path, uint64_t len, uint64_t sum, leat_error *err)
{
    leat__file *f = NULL;
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, READ_BYTES);
    uint64_t found = 0;
    int rc = block ? leat__file_open(&f, path, LEAT__FILE_READ, err)
                   : leat__fail_nomem(err, READ_BYTES, "a checksum");
    if (rc == LEAT_ENOENT)
        rc = leat__fail(err, LEAT_EDATA, "%s: is missing (use `force` to start over)", path);
    if (rc == 0 && leat__file_size_at_open(f) < len)
        rc = leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (use `force` to start over)", path,
                        (unsigned long long)leat__file_size_at_open(f), (unsigned long long)len);
    for (uint64_t at = 0; at < len && rc == 0; at += READ_BYTES) {
        size_t n = (size_t)LEAT_MIN(len - at, READ_BYTES);
        rc = leat__file_pread(f, block, n, at, err);
        if (rc == 0) found += leat__spill_sum_of(block, n, at);
    }
    if (rc == 0 && (found & SUM_MASK) != sum)
        rc = leat__fail(err, LEAT_EDATA, "%s: is damaged (use `force` to start over)", path);
    leat__file_close(&f);
    leat__free(block);
    return rc;
}

int leat__spill_file(const leat__spill *s, uint32_t file, leat__file **f, leat_error *err)
{
    LEAT_ASSERT(file < s->count && s->base[file] + s->used[file] == s->length[file]);
    char path[PATH_MAX_BYTES];
    LEAT_TRY(path_of(s, file, path, err));
    return leat__file_open(f, path, LEAT__FILE_READ, err);
}

int leat__spill_remove(leat__spill *s, leat_error *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        char path[PATH_MAX_BYTES];
        LEAT_TRY(path_of(s, i, path, err));
        LEAT_TRY(leat__path_unlink(path, err));
        s->base[i] = s->length[i] = s->sum[i] = s->used[i] = 0;
    }
    return 0;
}

uint64_t leat__spill_bytes(const leat__spill *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) n += s->base[i] + s->used[i];
    return n;
}

void leat__spill_clear(const char *folder, const char *name, uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        char path[PATH_MAX_BYTES];
        if (snprintf(path, sizeof path, "%s/%s-%u", folder, name, i) >= (int)sizeof path) return;
        (void)!leat__path_unlink(path, NULL);
    }
}
