/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain, gzip and zstd files as one stream of bytes. Input is read in chunks of CHUNK bytes.
 * Concatenated gzip members and zstd frames form one stream, as with their tools. Zeros after the
 * last gzip member are ignored, as gzip does. A file that ends inside compressed data is damaged.
 * The memory of zstd is bounded by its window limit (128 MiB, as the format recommends). One thread.
 */
#include "ingest/stream.h"

#include <string.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"

#define CHUNK (256u << 10)

typedef enum coding { PLAIN, GZIP, ZSTD_FRAMES } coding;

struct leat__stream {
    char *name;
    leat__file *file; /* NULL when reading from memory */
    const uint8_t *memory;
    uint64_t total;    /* size of the file or the memory */
    uint64_t next;     /* offset of the first byte not yet taken */
    uint8_t *chunk;    /* input buffer, when reading from a file */
    const uint8_t *in; /* unread part of the input */
    size_t in_len;
    coding coding;
    bool inside; /* in the middle of a gzip member or zstd frame */
    bool padded; /* zeros follow a gzip member: nothing else may */
    bool z_open;
    z_stream z;
    ZSTD_DCtx *zstd;
    uint64_t offset; /* decompressed bytes returned so far */
};

static int damaged(leat__stream *s, const char *what, leat_error *err)
{
    leat__fail(err, LEAT_EDATA, "%s: %s (after %llu decompressed bytes)", s->name, what,
               (unsigned long long)s->offset);
    leat__error_at(err, NULL, -1, (int64_t)(s->next - s->in_len));
    return LEAT_EDATA;
}

/* Reads more input if none is left; in_len stays 0 at the end of the input. */
static int refill(leat__stream *s, leat_error *err)
{
    if (s->in_len > 0 || s->next >= s->total) return 0;
    size_t want = (size_t)LEAT_MIN(s->total - s->next, CHUNK), got = 0;
    if (s->memory) {
        s->in = s->memory + s->next;
        got = want;
    } else {
        LEAT_TRY(leat__file_pread_some(s->file, s->chunk, want, s->next, &got, err));
        if (got == 0) return leat__fail(err, LEAT_EDATA, "%s: was truncated while it was read", s->name);
        s->in = s->chunk;
    }
    s->next += got;
    s->in_len = got;
    return 0;
}

static void *z_alloc(void *opaque, unsigned count, unsigned size)
{
    return leat__zalloc_array(LEAT__MEM_INGEST, count, size);
}

static void z_free(void *opaque, void *ptr)
{
    leat__free(ptr);
}

/* True at a zstd frame, or at a skippable frame, with which files of pzstd begin. */
static bool is_zstd(const uint8_t *p)
{
    uint32_t magic = leat__load_u32(p);
    return magic == ZSTD_MAGICNUMBER || (magic & ~15u) == 0x184D2A50u;
}

static int set_coding(leat__stream *s, leat_error *err)
{
    LEAT_TRY(refill(s, err));
    if (s->in_len >= 2 && s->in[0] == 0x1f && s->in[1] == 0x8b) {
        s->coding = GZIP;
        s->z.zalloc = z_alloc;
        s->z.zfree = z_free;
        if (inflateInit2(&s->z, 15 + 16) != Z_OK)
            return leat__fail_nomem(err, sizeof(z_stream), "a gzip reader");
        s->z_open = true;
    } else if (s->in_len >= 4 && is_zstd(s->in)) {
        s->coding = ZSTD_FRAMES;
        s->zstd = ZSTD_createDCtx();
        if (!s->zstd) return leat__fail_nomem(err, 0, "a zstd reader");
    }
    return 0;
}

static int stream_new(leat__stream **out, const char *name, leat_error *err)
{
    leat__stream *s = LEAT_NEW(INGEST, leat__stream);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a stream");
    *out = s;
    s->name = leat__strdup(LEAT__MEM_INGEST, name);
    return s->name ? 0 : leat__fail_nomem(err, strlen(name), "a name");
}

int leat__stream_open(leat__stream **out, const char *path, leat_error *err)
{
    leat__stream *s = NULL;
    int rc;
    leat__file *file = NULL;
    LEAT_GO(rc, out, leat__file_open(&file, path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, stream_new(&s, leat__file_path(file), err)); /* the path without secrets */
    s->file = file;
    file = NULL;
    LEAT_GO(rc, out, leat__file_size(s->file, &s->total, err));
    leat__file_advise(s->file, 0, 0, LEAT__ADVICE_SEQUENTIAL);
    s->chunk = leat__alloc(LEAT__MEM_INGEST, CHUNK);
    if (!s->chunk) LEAT_GO(rc, out, leat__fail_nomem(err, CHUNK, "a stream"));
    LEAT_GO(rc, out, set_coding(s, err));
    *out = s;
    s = NULL;
out:
    leat__file_close(&file);
    leat__stream_close(&s);
    return rc;
}

int leat__stream_open_memory(leat__stream **out, const char *name, const void *data, size_t len,
                             leat_error *err)
{
    leat__stream *s = NULL;
    int rc;
    LEAT_GO(rc, out, stream_new(&s, name, err));
    s->memory = data;
    s->total = len;
    LEAT_GO(rc, out, set_coding(s, err));
    *out = s;
    s = NULL;
out:
    leat__stream_close(&s);
    return rc;
}

void leat__stream_close(leat__stream **stream)
{
    leat__stream *s = *stream;
    if (!s) return;
    if (s->z_open) inflateEnd(&s->z);
    ZSTD_freeDCtx(s->zstd);
    leat__file_close(&s->file);
    leat__free(s->chunk);
    leat__free(s->name);
    leat__free(s);
    *stream = NULL;
}

/* Readers: each consumes s->in and reports how many bytes it wrote. 0 bytes with input left means "call
 * again". */
static int read_plain(leat__stream *s, uint8_t *buf, size_t len, size_t *wrote, leat_error *err)
{
    *wrote = LEAT_MIN(len, s->in_len);
    memcpy(buf, s->in, *wrote);
    s->in += *wrote;
    s->in_len -= *wrote;
    return 0;
}

/* Reads directly into the caller's memory, without a copy. */
static int read_direct(leat__stream *s, uint8_t *buf, size_t len, size_t *wrote, leat_error *err)
{
    size_t want = (size_t)LEAT_MIN(s->total - s->next, len);
    LEAT_TRY(leat__file_pread_some(s->file, buf, want, s->next, wrote, err));
    if (*wrote == 0) return leat__fail(err, LEAT_EDATA, "%s: was truncated while it was read", s->name);
    s->next += *wrote;
    return 0;
}

static bool may_read_direct(const leat__stream *s, size_t len)
{
    return s->coding == PLAIN && s->file && s->in_len == 0 && len >= CHUNK && s->next < s->total;
}

/* Skips zeros after a gzip member: tapes and block devices pad files with them. */
static int skip_padding(leat__stream *s, leat_error *err)
{
    s->padded |= s->in_len > 0 && s->in[0] == 0;
    if (!s->padded) return 0;
    for (; s->in_len > 0 && s->in[0] == 0; s->in_len--) s->in++;
    return s->in_len == 0 ? 0 : damaged(s, "damaged gzip data", err);
}

static int read_gzip(leat__stream *s, uint8_t *buf, size_t len, size_t *wrote, leat_error *err)
{
    s->z.next_in = (Bytef *)s->in;
    s->z.avail_in = (uInt)s->in_len;
    s->z.next_out = buf;
    s->z.avail_out = (uInt)LEAT_MIN(len, 1u << 30);
    uInt room = s->z.avail_out;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    s->in = s->z.next_in;
    s->in_len = s->z.avail_in;
    *wrote = room - s->z.avail_out;
    s->inside = rc != Z_STREAM_END;
    if (rc == Z_STREAM_END && inflateReset(&s->z) != Z_OK) return damaged(s, "gzip state lost", err);
    if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return 0;
    if (rc == Z_MEM_ERROR) return leat__fail_nomem(err, 0, "a gzip reader");
    return damaged(s, "damaged gzip data", err);
}

/* Returns the window size of the frame at s->in (RFC 8878, 3.1.1.1), or 0 when unknown. */
static uint64_t window_of(const leat__stream *s)
{
    if (s->inside || s->in_len < 6 || leat__load_u32(s->in) != ZSTD_MAGICNUMBER) return 0;
    if (s->in[4] & 0x20) return 0; /* a single segment has no window */
    uint64_t base = UINT64_C(1) << (10 + (s->in[5] >> 3));
    return base + base / 8 * (s->in[5] & 7);
}

static int refuse_window(leat__stream *s, leat_error *err)
{
    char window[24];
    uint64_t bytes = window_of(s);
    return leat__fail(err, LEAT_EDATA,
                      "%s: its zstd window%s%s is above the limit of 128 MiB (compress it again "
                      "without zstd's option long, or with long=27)",
                      s->name, bytes ? " of " : "",
                      bytes ? leat__format_bytes(bytes, window, sizeof window) : "");
}

static int read_zstd(leat__stream *s, uint8_t *buf, size_t len, size_t *wrote, leat_error *err)
{
    ZSTD_inBuffer in = {s->in, s->in_len, 0};
    ZSTD_outBuffer to = {buf, len, 0};
    size_t rc = ZSTD_decompressStream(s->zstd, &to, &in);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge) return refuse_window(s, err);
    if (ZSTD_isError(rc)) {
        s->offset += to.pos;
        return damaged(s, ZSTD_getErrorName(rc), err);
    }
    s->in += in.pos;
    s->in_len -= in.pos;
    s->inside = rc != 0;
    *wrote = to.pos;
    return 0;
}

int leat__stream_read(leat__stream *s, void *buf, size_t len, size_t *got, leat_error *err)
{
    uint8_t *at = buf;
    *got = 0;
    while (*got < len) {
        if (may_read_direct(s, len - *got)) {
            size_t n = 0;
            LEAT_TRY(read_direct(s, at, len - *got, &n, err));
            at += n;
            *got += n;
            s->offset += n;
            continue;
        }
        LEAT_TRY(refill(s, err));
        bool end = s->in_len == 0;
        if (end && s->coding == PLAIN) break;
        size_t wrote = 0;
        /* at the end of the input a decoder may still have output */
        if (s->coding == PLAIN) LEAT_TRY(read_plain(s, at, len - *got, &wrote, err));
        if (s->coding == GZIP && !s->inside) LEAT_TRY(skip_padding(s, err));
        if (s->padded && !end) continue;
        if (s->coding == GZIP && (!end || s->inside)) LEAT_TRY(read_gzip(s, at, len - *got, &wrote, err));
        if (s->coding == ZSTD_FRAMES && (!end || s->inside))
            LEAT_TRY(read_zstd(s, at, len - *got, &wrote, err));
        at += wrote;
        *got += wrote;
        s->offset += wrote;
        if (end && wrote == 0) {
            if (s->inside) return damaged(s, "compressed data ends early (truncated)", err);
            break;
        }
    }
    return 0;
}

int leat__stream_skip(leat__stream *s, uint64_t len, uint64_t *got, leat_error *err)
{
    *got = 0;
    if (s->coding == PLAIN) {
        uint64_t left = s->in_len + (s->total - s->next);
        *got = LEAT_MIN(len, left);
        size_t from_chunk = (size_t)LEAT_MIN(*got, s->in_len);
        if (from_chunk > 0) s->in += from_chunk;
        s->in_len -= from_chunk;
        s->next += *got - from_chunk;
        s->offset += *got;
        return 0;
    }
    uint8_t *waste = leat__alloc(LEAT__MEM_INGEST, CHUNK);
    if (!waste) return leat__fail_nomem(err, CHUNK, "a stream");
    int rc = 0;
    while (*got < len) {
        size_t n = 0;
        LEAT_GO(rc, out, leat__stream_read(s, waste, (size_t)LEAT_MIN(len - *got, CHUNK), &n, err));
        if (n == 0) break;
        *got += n;
    }
out:
    leat__free(waste);
    return rc;
}

uint64_t leat__stream_taken(const leat__stream *s)
{
    return s->next - s->in_len;
}

uint64_t leat__stream_size(const leat__stream *s)
{
    return s->total;
}

uint64_t leat__stream_offset(const leat__stream *s)
{
    return s->offset;
}

const char *leat__stream_name(const leat__stream *s)
{
    return s->name;
}

bool leat__stream_compressed(const leat__stream *s)
{
    return s->coding != PLAIN;
}
