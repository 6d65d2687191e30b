/* SPDX-License-Identifier: Apache-2.0
 *
 * Spill files.
 */
#include "curate/spill.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"

#define PATH_MAX_BYTES 4096

static int path_of(const leat__spill *s, uint32_t file, char *out, leat_error *err)
{
    int n = snprintf(out, PATH_MAX_BYTES, "%s-%u", s->base, file);
    return n < PATH_MAX_BYTES ? 0 : leat__fail(err, LEAT_ELIMIT, "%s: the path is too long", s->base);
}

static int begin_files(leat__spill *s, const uint64_t *lengths, leat_error *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        char path[PATH_MAX_BYTES];
        leat__file *f = NULL;
        uint64_t size = 0;
        LEAT_TRY(path_of(s, i, path, err));
        LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, err));
        s->length[i] = lengths ? lengths[i] : 0;
        int rc = leat__file_size(f, &size, err);
        if (rc == 0 && size < s->length[i])
            rc = leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (truncated?)", path,
                            (unsigned long long)size, (unsigned long long)s->length[i]);
        if (rc == 0) rc = leat__file_truncate(f, s->length[i], err);
        leat__file_close(&f);
        if (rc != 0) return rc;
    }
    return 0;
}

int leat__spill_open(leat__spill *s, const char *folder, const char *name, uint32_t count,
                     size_t buffer_bytes, const uint64_t *lengths, leat_error *err)
{
    LEAT_ASSERT(count > 0 && buffer_bytes > 0 && buffer_bytes <= UINT32_MAX);
    char base[PATH_MAX_BYTES - 16];
    memset(s, 0, sizeof *s);
    snprintf(base, sizeof base, "%s/%s", folder, name);
    s->base = leat__strdup(LEAT__MEM_CURATE, base);
    s->count = count;
    s->buffer_bytes = buffer_bytes;
    s->buffer = leat__alloc_array(LEAT__MEM_CURATE, count, buffer_bytes);
    s->used = LEAT_NEW_ARRAY(CURATE, uint32_t, count);
    s->length = LEAT_NEW_ARRAY(CURATE, uint64_t, count);
    int rc = s->base && s->buffer && s->used && s->length
                 ? begin_files(s, lengths, err)
                 : leat__fail_nomem(err, count * buffer_bytes, "buffers of files on disk");
    if (rc != 0) leat__spill_reset(s);
    return rc;
}

void leat__spill_reset(leat__spill *s)
{
    leat__free(s->base);
    leat__free(s->buffer);
    leat__free(s->used);
    leat__free(s->length);
    memset(s, 0, sizeof *s);
}

static int append(leat__spill *s, uint32_t file, const void *data, size_t len, bool sync, leat_error *err)
{
    LEAT_ASSERT(file < s->count);
    char path[PATH_MAX_BYTES];
    leat__file *f = NULL;
    LEAT_TRY(path_of(s, file, path, err));
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_WRITE, err));
    int rc = len > 0 ? leat__file_pwrite(f, data, len, s->length[file], err) : 0;
    if (rc == 0) s->length[file] += len;
    if (rc == 0 && sync) rc = leat__file_sync(f, err);
    leat__file_close(&f);
    return rc;
}

int leat__spill_put(leat__spill *s, uint32_t file, const void *data, size_t len, leat_error *err)
{
    LEAT_ASSERT(file < s->count && s->used[file] <= s->buffer_bytes);
    uint8_t *buffer = s->buffer + file * s->buffer_bytes;
    if (s->used[file] + len > s->buffer_bytes) {
        uint32_t used = s->used[file];
        s->used[file] = 0;
        LEAT_TRY(append(s, file, buffer, used, false, err));
        if (len > s->buffer_bytes) return append(s, file, data, len, false, err);
    }
    memcpy(buffer + s->used[file], data, len);
    s->used[file] += (uint32_t)len;
    LEAT_ASSERT(s->used[file] <= s->buffer_bytes);
    return 0;
}

int leat__spill_flush(leat__spill *s, bool sync, leat_error *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t used = s->used[i];
        s->used[i] = 0;
        if (used > 0 || sync) LEAT_TRY(append(s, i, s->buffer + i * s->buffer_bytes, used, sync, err));
    }
    return 0;
}

int leat__spill_file(const leat__spill *s, uint32_t file, leat__file **f, leat_error *err)
{
    LEAT_ASSERT(file < s->count && s->used[file] == 0);
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
        s->length[i] = s->used[i] = 0;
    }
    return 0;
}

uint64_t leat__spill_bytes(const leat__spill *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) n += s->length[i] + s->used[i];
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
