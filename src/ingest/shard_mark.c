/* SPDX-License-Identifier: Apache-2.0
 *
 * The mark of leat's shards: see shard_mark.h. A Parquet file ends with its metadata (Thrift, compact
 * protocol), their length and "PAR1". The key-value pair is searched there as bytes: two strings, fields
 * 1 and 2 of a struct.
 */
#include "ingest/shard_mark.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/num.h"
#include "io/file.h"

#define TAR_BLOCK UINT64_C(512)
#define TAR_SIZE_AT 124
#define TAR_MAGIC_AT 257
#define TAR_UNAME_AT 265
#define METADATA_MAX (UINT32_C(1) << 30)

static const char parquet_pair[] = "\x18\x04" LEAT__SHARD_OWNER "\x18\x06"
                                   "export";

/* Reads the size in a header that leat writes: octal digits, or base 256 from 2^33 on. */
static bool size_of(const char *head, uint64_t *size)
{
    *size = 0;
    if ((uint8_t)head[TAR_SIZE_AT] == 0x80) {
        for (int i = 4; i < 12; i++) *size = *size << 8 | (uint8_t)head[TAR_SIZE_AT + i];
        return *size < UINT64_MAX / 2;
    }
    for (int i = 0; i < 11; i++) {
        const char c = head[TAR_SIZE_AT + i];
        if (c < '0' || c > '7') return false;
        *size = *size << 3 | (uint64_t)(c - '0');
    }
    return true;
}

/* Sets *ours when every member has the mark and nothing follows the end of the archive. Members that another
 * tool has added would be lost. */
static int tar_marked(const leat__file *f, bool *ours, leat_error *err)
{
    const uint64_t end = leat__file_size_at_open(f);
    uint64_t at = 0, size;
    while (at < end && end - at > 2 * TAR_BLOCK) {
        char head[TAR_BLOCK];
        LEAT_TRY(leat__file_pread(f, head, sizeof head, at, err));
        if (memcmp(head + TAR_MAGIC_AT, "ustar", 6) != 0 || !size_of(head, &size) ||
            memcmp(head + TAR_UNAME_AT, LEAT__SHARD_OWNER, sizeof LEAT__SHARD_OWNER) != 0)
            return 0;
        at += TAR_BLOCK + leat__ceil_div(size, TAR_BLOCK) * TAR_BLOCK;
    }
    *ours = at > 0 && at < end && end - at == 2 * TAR_BLOCK;
    return 0;
}

static int parquet_marked(const leat__file *f, bool *ours, leat_error *err)
{
    const uint64_t size = leat__file_size_at_open(f);
    uint8_t end[8];
    leat__buf data;
    if (size < 12) return 0;
    LEAT_TRY(leat__file_pread(f, end, sizeof end, size - sizeof end, err));
    const uint32_t len = leat__load_u32(end);
    if (memcmp(end + 4, "PAR1", 4) != 0 || len > METADATA_MAX || len > size - 12) return 0;
    leat__buf_init(&data, LEAT__MEM_INGEST, METADATA_MAX);
    int rc = leat__buf_zeros(&data, len) == 0 ? 0 : leat__fail_nomem(err, len, "Parquet metadata");
    if (rc == 0) rc = leat__file_pread(f, data.data, len, size - sizeof end - len, err);
    *ours = rc == 0 && memmem(data.data, len, parquet_pair, sizeof parquet_pair - 1) != NULL;
    leat__buf_reset(&data);
    return rc;
}

int leat__shard_ours(const char *path, bool tar, bool *ours, leat_error *err)
{
    leat__file *f = NULL;
    *ours = false;
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_READ, err));
    int rc = tar ? tar_marked(f, ours, err) : parquet_marked(f, ours, err);
    leat__file_close(&f);
    return rc;
}

int leat__shard_foreign(const char *path, leat_error *err)
{
    return leat__fail(
        err, LEAT_EINVAL,
        "%s: is not an unchanged shard of leat export, so it is not replaced; move it away or give "
        "another folder",
        path);
}

int leat__shard_replaceable(const char *path, bool tar, leat_error *err)
{
    bool there, ours;
    LEAT_TRY(leat__path_exists(path, &there, err));
    if (!there) return 0;
    LEAT_TRY(leat__shard_ours(path, tar, &ours, err));
    return ours ? 0 : leat__shard_foreign(path, err);
}
