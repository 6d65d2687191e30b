/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes shards. A file may contain several gzip members or zstd frames, so each chunk is compressed
 * separately, by the thread that made it.
 */
#include "curate/shards.h"

#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/dir.h"

#define SHARDS_MAX 100000u /* numbers have five digits, so that the order of names is that of numbers */

const char *leat__compress_extension(leat__compress how)
{
    return how == LEAT__COMPRESS_GZIP ? ".gz" : how == LEAT__COMPRESS_ZSTD ? ".zst" : "";
}

int leat__shards_check(const char *folder, uint64_t number, leat_error *err)
{
    if (number < SHARDS_MAX) return 0;
    return leat__fail(err, LEAT_ELIMIT, "%s: more than 100,000 shards (raise `shard_bytes`)", folder);
}

static int begin_file(leat__shards *s, leat_error *err);

int leat__shards_open(leat__shards *s, const char *folder, const char *name, uint64_t shard_bytes,
                      leat__compress compress, leat_error *err)
{
    memset(s, 0, sizeof *s);
    leat__buf_init(&s->path, LEAT__MEM_CURATE, 1u << 20);
    s->folder = leat__strdup(LEAT__MEM_CURATE, folder);
    s->name = leat__strdup(LEAT__MEM_CURATE, name);
    s->compress = compress;
    s->single = shard_bytes == 0;
    s->shard_bytes = shard_bytes;
    if (s->folder && s->name) return 0;
    return leat__fail_nomem(err, strlen(folder), "a path");
}

int leat__shards_open_part(leat__shards *s, const char *folder, const char *name, const char *token,
                           leat__compress compress, leat_error *err)
{
    int rc = leat__shards_open(s, folder, name, 0, compress, err);
    s->token = token;
    leat__buf_init(&s->frames, LEAT__MEM_CURATE, 1u << 30);
    return rc;
}

int leat__shards_open_placed(leat__shards *s, const char *folder, const char *name, uint64_t shard_bytes,
                             leat__place begin, leat__place end, leat_error *err)
{
    LEAT_TRY(leat__shards_open(s, folder, name, shard_bytes, LEAT__COMPRESS_NONE, err));
    s->placed = true;
    s->begin = begin;
    s->end = end;
    leat__buf_init(&s->edges, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_init(&s->edge_data, LEAT__MEM_CURATE, 1u << 30);
    s->count = (uint32_t)begin.shard;
    LEAT_TRY(begin_file(s, err));
    s->offset = begin.offset;
    return 0;
}

/* Sets s->path to the name of shard i, or to its temporary name. */
static int set_path(leat__shards *s, uint32_t i, bool partial, leat_error *err)
{
    leat__buf_clear(&s->path);
    leat__buf_printf(&s->path, "%s/%s", s->folder, s->name);
    if (s->token) {
        if (partial) leat__buf_printf(&s->path, ".%s.tmp", s->token);
    } else {
        if (!s->single) leat__buf_printf(&s->path, "-%05u", i);
        leat__buf_printf(&s->path, ".jsonl%s%s", leat__compress_extension(s->compress),
                         partial && !s->placed ? ".partial" : "");
    }
    return s->path.status == 0 ? 0 : leat__fail_nomem(err, s->path.len, "a path");
}

static int finish_file(leat__shards *s, leat_error *err)
{
    if (!s->file) return 0;
    int rc = leat__file_sync(s->file, err);
    leat__file_close(&s->file);
    return rc;
}

static int begin_file(leat__shards *s, leat_error *err)
{
    LEAT_TRY(finish_file(s, err));
    if (!s->single) LEAT_TRY(leat__shards_check(s->folder, s->count, err));
    LEAT_TRY(set_path(s, s->count, true, err));
    unsigned empty = s->placed ? 0 : LEAT__FILE_TRUNCATE;
    LEAT_TRY(leat__file_open(&s->file, leat__buf_str(&s->path), LEAT__FILE_WRITE | LEAT__FILE_CREATE | empty,
                             err));
    s->count++;
    s->offset = 0;
    return 0;
}

/* Returns the bytes of whole lines that still fit in the open file: at least one line if it is empty. */
static size_t fitting(const leat__shards *s, const char *data, size_t len)
{
    if (s->single || s->offset + len <= s->shard_bytes) return len;
    if (s->compress != LEAT__COMPRESS_NONE) return s->offset == 0 ? len : 0;
    size_t room = s->offset < s->shard_bytes ? (size_t)(s->shard_bytes - s->offset) : 0;
    const char *end = memrchr(data, '\n', room);
    if (!end && s->offset == 0) end = memchr(data, '\n', len);
    if (!end) return s->offset == 0 ? len : 0;
    return (size_t)(end - data) + 1;
}

static int write_at(leat__shards *s, const char *data, size_t len, uint64_t at, leat_error *err)
{
    LEAT_TRY(leat__file_pwrite(s->file, data, len, at, err));
    leat__file_flush_hint(s->file, at, len);
    return 0;
}

static int put_edge(leat__shards *s, const char *data, size_t len, uint64_t at, leat_error *err)
{
    leat__shard_edge edge = {s->count - 1, at, len}, *last = NULL;
    if (s->edges.len > 0) last = (leat__shard_edge *)(void *)(s->edges.data + s->edges.len - sizeof edge);
    if (last && last->shard == edge.shard && last->at + last->len == at) {
        last->len += len;
        if (leat__buf_append(&s->edge_data, data, len) == 0) return 0;
    } else if (leat__buf_append(&s->edge_data, data, len) == 0 &&
               leat__buf_append(&s->edges, &edge, sizeof edge) == 0)
        return 0;
    return leat__fail_nomem(err, s->edge_data.len, "the edges of a part");
}

/* Writes only the blocks that this part does not share with others. */
static int put_placed(leat__shards *s, const char *data, size_t len, leat_error *err)
{
    const uint64_t shard = s->count - 1, from = s->offset, to = from + len;
    if (shard > s->end.shard || (shard == s->end.shard && to > s->end.offset))
        return leat__fail(err, LEAT_EDATA,
                          "%s: an input changed since the run began (use `force` to start over)",
                          leat__buf_str(&s->path));
    uint64_t low =
        shard == s->begin.shard ? leat__ceil_div(s->begin.offset, LEAT__PLACE_BLOCK) * LEAT__PLACE_BLOCK : 0;
    uint64_t high = shard == s->end.shard ? s->end.offset / LEAT__PLACE_BLOCK * LEAT__PLACE_BLOCK : to;
    low = LEAT_MIN(LEAT_MAX(low, from), to);
    high = LEAT_MIN(LEAT_MAX(high, low), to);
    if (low > from) LEAT_TRY(put_edge(s, data, (size_t)(low - from), from, err));
    if (high > low) LEAT_TRY(write_at(s, data + (low - from), (size_t)(high - low), low, err));
    return to > high ? put_edge(s, data + (high - from), (size_t)(to - high), high, err) : 0;
}

static int put_some(leat__shards *s, const char *data, size_t len, leat_error *err)
{
    LEAT_TRY(s->placed ? put_placed(s, data, len, err) : write_at(s, data, len, s->offset, err));
    s->offset += len;
    s->bytes += len;
    return 0;
}

int leat__shards_put(leat__shards *s, const void *data, size_t len, leat_error *err)
{
    const char *p = data;
    uint64_t frame = len;
    if (s->token && s->compress != LEAT__COMPRESS_NONE && len > 0 &&
        leat__buf_append(&s->frames, &frame, sizeof frame) != 0)
        return leat__fail_nomem(err, s->frames.len, "lengths");
    while (len > 0) {
        if (!s->file) LEAT_TRY(begin_file(s, err));
        size_t n = fitting(s, p, len);
        if (n > 0) LEAT_TRY(put_some(s, p, n, err));
        p += n;
        len -= n;
        if (len > 0) LEAT_TRY(begin_file(s, err));
    }
    return 0;
}

/* Parses a name such as "NAME-00012.jsonl.gz.partial". Returns false for other files. */
static bool read_name(const char *file, const char *name, uint64_t *number, leat__compress *how,
                      bool *partial)
{
    size_t n = strlen(name), digits = 0;
    if (strncmp(file, name, n) != 0 || file[n] != '-') return false;
    file += n + 1;
    for (*number = 0; digits < 10 && *file >= '0' && *file <= '9'; digits++)
        *number = *number * 10 + (uint64_t)(*file++ - '0');
    if (digits < 5 || strncmp(file, ".jsonl", 6) != 0) return false;
    file += 6;
    *how = leat__str_starts(file, ".gz")    ? LEAT__COMPRESS_GZIP
           : leat__str_starts(file, ".zst") ? LEAT__COMPRESS_ZSTD
                                            : LEAT__COMPRESS_NONE;
    file += strlen(leat__compress_extension(*how));
    *partial = leat__str_eq(file, ".partial");
    return *partial || *file == 0;
}

/* Lists the folder, since a killed run can leave any of the numbers. */
int leat__shards_trim(const char *folder, const char *name, leat__compress compress, uint32_t count,
                      leat_error *err)
{
    leat__dir dir = {0};
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    int rc = leat__dir_read(&dir, folder, true, err);
    for (size_t i = 0; i < dir.count && rc == 0; i++) {
        uint64_t number;
        leat__compress how;
        bool partial;
        if (!read_name(leat__dir_name(&dir, i), name, &number, &how, &partial)) continue;
        if (!partial && how == compress && number < count) continue;
        leat__buf_clear(&path);
        leat__buf_printf(&path, "%s/%s", folder, leat__dir_name(&dir, i));
        rc = path.status != 0 ? leat__fail_nomem(err, path.len, "a path")
                              : leat__path_unlink(leat__buf_str(&path), err);
    }
    leat__buf_reset(&path);
    leat__dir_reset(&dir);
    return rc;
}

/* Finishes a placed part, which is not renamed. */
static int commit_placed(leat__shards *s, leat_error *err)
{
    LEAT_TRY(finish_file(s, err));
    if (s->count - 1 == s->end.shard && s->offset == s->end.offset) return 0;
    return leat__fail(err, LEAT_EDATA, "%s: an input changed since the run began (use `force` to start over)",
                      leat__buf_str(&s->path));
}

int leat__shards_commit(leat__shards *s, leat_error *err)
{
    if (s->placed) return commit_placed(s, err);
    if (s->count == 0) LEAT_TRY(begin_file(s, err));
    LEAT_TRY(finish_file(s, err));
    for (uint32_t i = 0; i < s->count; i++) {
        LEAT_TRY(set_path(s, i, true, err));
        char *from = leat__strdup(LEAT__MEM_CURATE, leat__buf_str(&s->path));
        if (!from) return leat__fail_nomem(err, s->path.len, "a path");
        int rc = set_path(s, i, false, err);
        if (rc == 0) rc = leat__path_rename(from, leat__buf_str(&s->path), err);
        leat__free(from);
        if (rc != 0) return rc;
    }
    s->committed = true;
    return s->single ? 0 : leat__shards_trim(s->folder, s->name, s->compress, s->count, err);
}

uint32_t leat__shards_filled(const leat__shards *s)
{
    return s->bytes > 0 ? s->count : 0;
}

void leat__shards_reset(leat__shards *s)
{
    leat__file_close(&s->file);
    for (uint32_t i = 0; i < s->count && !s->committed && !s->placed; i++)
        if (set_path(s, i, true, NULL) != 0 || leat__path_unlink(leat__buf_str(&s->path), NULL) != 0) break;
    leat__buf_reset(&s->path);
    if (s->token) leat__buf_reset(&s->frames);
    if (s->placed) {
        leat__buf_reset(&s->edges);
        leat__buf_reset(&s->edge_data);
    }
    leat__free(s->folder);
    leat__free(s->name);
    memset(s, 0, sizeof *s);
}

static int gzip_buf(const leat__buf *b, leat__buf *out, leat_error *err)
{
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return leat__fail_nomem(err, 0, "a gzip writer");
    size_t bound = deflateBound(&z, b->len) + 64;
    int rc = leat__buf_reserve(out, bound);
    if (rc == 0 && b->len <= UINT32_MAX && bound <= UINT32_MAX) {
        z.next_in = (Bytef *)b->data;
        z.avail_in = (uInt)b->len;
        z.next_out = (Bytef *)out->data;
        z.avail_out = (uInt)bound;
        rc = deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : LEAT_EINTERNAL;
        out->len = z.total_out;
    } else if (rc == 0) {
        rc = LEAT_ELIMIT;
    }
    deflateEnd(&z);
    return rc == 0 ? 0 : leat__fail(err, rc, "a chunk of %zu bytes cannot be compressed", b->len);
}

static int zstd_buf(const leat__buf *b, leat__buf *out, leat_error *err)
{
    size_t bound = ZSTD_compressBound(b->len) + 8;
    if (leat__buf_reserve(out, bound) != 0) return leat__fail_nomem(err, bound, "a compressed chunk");
    ZSTD_CCtx *z = ZSTD_createCCtx();
    if (!z) return leat__fail_nomem(err, 0, "a zstd writer");
    size_t n = ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, 3);
    if (!ZSTD_isError(n)) n = ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    if (!ZSTD_isError(n)) n = ZSTD_compress2(z, out->data, bound, b->data, b->len);
    ZSTD_freeCCtx(z);
    if (ZSTD_isError(n)) return leat__fail(err, LEAT_EINTERNAL, "zstd: %s", ZSTD_getErrorName(n));
    out->len = n;
    return 0;
}

int leat__compress_buf(leat__buf *b, leat__compress how, leat_error *err)
{
    leat__buf out;
    if (how == LEAT__COMPRESS_NONE || b->len == 0) return 0;
    leat__buf_init(&out, LEAT__MEM_CURATE, b->max);
    int rc = how == LEAT__COMPRESS_GZIP ? gzip_buf(b, &out, err) : zstd_buf(b, &out, err);
    if (rc == 0) {
        leat__buf swap = *b;
        *b = out;
        out = swap;
    }
    leat__buf_reset(&out);
    return rc;
}
