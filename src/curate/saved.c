/* SPDX-License-Identifier: Apache-2.0
 *
 * See saved.h. The file has a head, then the parts. The head has a hash of the parts.
 */
#include "curate/saved.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/file.h"

#define MAGIC "LEATSTA1"
#define PAUSE (5 * LEAT_NS_PER_S) /* minimum time between two saves */
#define SHARE 50                  /* saving may take at most 1/SHARE of the time */

typedef struct head {
    char magic[8];
    uint64_t key[2];
    uint64_t size; /* size of all parts */
    uint64_t hash;
} head;

int leat__saved_open(leat__saved *s, const char *output, leat_error *err)
{
    leat__buf path;
    memset(s, 0, sizeof *s);
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&path, "%s.state", output);
    s->path = leat__buf_status(&path) == 0 ? leat__buf_take(&path, NULL) : NULL;
    leat__buf_reset(&path);
    s->last = leat__clock_ns();
    return s->path ? 0 : leat__fail_nomem(err, strlen(output), "a path");
}

void leat__saved_close(leat__saved *s)
{
    leat__free(s->path);
    memset(s, 0, sizeof *s);
}

static uint64_t sum_sizes(const leat__saved_part *parts, uint32_t count)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < count; i++) size += parts[i].size;
    return size;
}

static uint64_t hash_parts(const leat__saved_part *parts, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++) hash = leat__hash64(parts[i].data, parts[i].size, hash);
    return hash;
}

static head head_of(const leat__saved *s, const leat__saved_part *parts, uint32_t count)
{
    head h = {.key = {s->key.high, s->key.low}, .size = sum_sizes(parts, count)};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    return h;
}

static int read_parts(leat__file *f, const head *want, const leat__saved_part *parts, uint32_t count,
                      bool *found, leat_error *err)
{
    head h;
    uint64_t bytes = 0, at = sizeof h;
    LEAT_TRY(leat__file_size(f, &bytes, err));
    if (bytes != sizeof h + want->size) return 0;
    LEAT_TRY(leat__file_pread(f, &h, sizeof h, 0, err));
    if (memcmp(&h, want, offsetof(head, hash)) != 0) return 0;
    for (uint32_t i = 0; i < count; at += parts[i++].size)
        if (parts[i].size > 0) LEAT_TRY(leat__file_pread(f, parts[i].data, parts[i].size, at, err));
    *found = hash_parts(parts, count) == h.hash;
    return 0;
}

int leat__saved_size(leat__saved *s, uint64_t *size, leat_error *err)
{
    leat__file *f = NULL;
    head h;
    uint64_t bytes = 0;
    bool exists = false;
    *size = 0;
    LEAT_TRY(leat__path_exists(s->path, &exists, err));
    if (!exists) return 0;
    LEAT_TRY(leat__file_open(&f, s->path, LEAT__FILE_READ, err));
    int rc = leat__file_size(f, &bytes, err);
    if (rc == 0 && bytes >= sizeof h) rc = leat__file_pread(f, &h, sizeof h, 0, err);
    if (rc == 0 && bytes >= sizeof h && h.size == bytes - sizeof h) {
        const head want = {.key = {s->key.high, s->key.low}};
        if (memcmp(h.magic, MAGIC, sizeof h.magic) == 0 && memcmp(h.key, want.key, sizeof h.key) == 0)
            *size = h.size;
    }
    leat__file_close(&f);
    return rc;
}

int leat__saved_load(leat__saved *s, const leat__saved_part *parts, uint32_t count, bool *found,
                     leat_error *err)
{
    const head want = head_of(s, parts, count);
    leat__file *f = NULL;
    bool exists = false;
    *found = false;
    LEAT_TRY(leat__path_exists(s->path, &exists, err));
    if (!exists) return 0;
    LEAT_TRY(leat__file_open(&f, s->path, LEAT__FILE_READ, err));
    int rc = read_parts(f, &want, parts, count, found, err);
    leat__file_close(&f);
    return rc;
}

static int write_parts(const char *path, const head *h, const leat__saved_part *parts, uint32_t count,
                       leat_error *err)
{
    leat__file *f = NULL;
    uint64_t at = sizeof *h;
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    int rc = leat__file_pwrite(f, h, sizeof *h, 0, err);
    for (uint32_t i = 0; rc == 0 && i < count; at += parts[i++].size)
        rc = leat__file_pwrite(f, parts[i].data, parts[i].size, at, err);
    leat__file_close(&f);
    return rc;
}

int leat__saved_store(leat__saved *s, const leat__saved_part *parts, uint32_t count, leat_error *err)
{
    const uint64_t begin = leat__clock_ns();
    leat__buf path;
    head h = head_of(s, parts, count);
    h.hash = hash_parts(parts, count);
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&path, "%s.new", s->path);
    int rc = leat__buf_status(&path) == 0 ? write_parts(leat__buf_str(&path), &h, parts, count, err)
                                          : leat__fail_nomem(err, strlen(s->path), "a path");
    if (rc == 0) rc = leat__path_rename(leat__buf_str(&path), s->path, err);
    if (rc != 0) (void)!leat__path_unlink(leat__buf_str(&path), NULL);
    leat__buf_reset(&path);
    s->last = leat__clock_ns();
    s->cost = s->last - begin;
    return rc;
}

bool leat__saved_due(const leat__saved *s)
{
    return leat__clock_ns() - s->last >= LEAT_MAX(PAUSE, SHARE * s->cost);
}

int leat__saved_drop(leat__saved *s, leat_error *err)
{
    return leat__path_unlink(s->path, err);
}
