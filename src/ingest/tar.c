/* SPDX-License-Identifier: Apache-2.0
 *
 * The tar reader. An archive ends with a block of zeros. Without it the archive is reported as truncated:
 * otherwise the loss of whole members would go unnoticed. Every number is checked before use; extended
 * headers have a maximum size. One thread.
 */
#include "ingest/tar.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define BLOCK 512u

/* Offsets of the fields of a header. */
enum {
    NAME = 0,
    NAME_LEN = 100,
    SIZE = 124,
    SIZE_LEN = 12,
    CHECKSUM = 148,
    CHECKSUM_LEN = 8,
    TYPE = 156,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_LEN = 155
};

static int bad(const leat__tar *t, int code, uint64_t offset, const char *what, leat_error *err)
{
    leat__fail(err, code, "%s: %s at byte %llu of the archive", leat__stream_name(t->stream), what,
               (unsigned long long)offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return code;
}

void leat__tar_init(leat__tar *t, leat__stream *stream)
{
    memset(t, 0, sizeof *t);
    t->stream = stream;
    leat__buf_init(&t->name, LEAT__MEM_INGEST, LEAT__TAR_NAME_MAX);
    leat__buf_init(&t->pending_name, LEAT__MEM_INGEST, LEAT__TAR_NAME_MAX);
    leat__buf_init(&t->extended, LEAT__MEM_INGEST, LEAT__TAR_EXTENDED_MAX);
}

void leat__tar_reset(leat__tar *t)
{
    leat__buf_reset(&t->name);
    leat__buf_reset(&t->pending_name);
    leat__buf_reset(&t->extended);
    t->left = t->padding = 0;
}

/* Parses an octal number between blanks or NULs, or GNU's big-endian binary number when the top bit
 * is set. */
static bool parse_number(const uint8_t *p, size_t n, uint64_t *value)
{
    LEAT_ASSERT(n > 0);
    uint64_t v = 0;
    if (p[0] & 0x80) {
        if (p[0] & 0x40) return false; /* negative */
        for (size_t i = 0; i < n; i++) {
            if (v >> 55) return false;
            v = v << 8 | (i == 0 ? p[i] & 0x3fu : p[i]);
        }
        *value = v;
        return true;
    }
    size_t i = 0;
    while (i < n && p[i] == ' ') i++;
    size_t digits = 0;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++, digits++) {
        if (v >> 60) return false;
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != 0) return false;
    *value = v;
    return digits > 0;
}

static bool checksum_holds(const uint8_t *h)
{
    uint64_t want;
    if (!parse_number(h + CHECKSUM, CHECKSUM_LEN, &want)) return false;
    uint64_t plain = 0;
    int64_t with_sign = 0; /* some old writers summed signed bytes */
    for (size_t i = 0; i < BLOCK; i++) {
        uint8_t b = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_LEN ? ' ' : h[i];
        plain += b;
        with_sign += (int8_t)b;
    }
    return want == plain || (int64_t)want == with_sign;
}

static bool all_zero(const uint8_t *h)
{
    for (size_t i = 0; i < BLOCK; i++)
        if (h[i]) return false;
    return true;
}

static int read_exactly(leat__tar *t, void *buf, size_t len, leat_error *err)
{
    size_t got;
    uint64_t at = leat__stream_offset(t->stream);
    LEAT_TRY(leat__stream_read(t->stream, buf, len, &got, err));
    if (got < len) return bad(t, LEAT_EDATA, at + got, "archive ends early (truncated)", err);
    return 0;
}

static int pass_over(leat__tar *t, uint64_t len, leat_error *err)
{
    uint64_t got, at = leat__stream_offset(t->stream);
    LEAT_TRY(leat__stream_skip(t->stream, len, &got, err));
    if (got < len) return bad(t, LEAT_EDATA, at + got, "archive ends early (truncated)", err);
    return 0;
}

/* Reads compressed data to its end, where its checksum is. */
static int check_rest(leat__tar *t, leat_error *err)
{
    uint64_t got;
    if (!leat__stream_compressed(t->stream)) return 0;
    return leat__stream_skip(t->stream, UINT64_MAX, &got, err);
}

/* Reads the data of a pax or long-name header into t->extended. */
static int read_extended(leat__tar *t, uint64_t size, uint64_t at, leat_error *err)
{
    if (size > LEAT__TAR_EXTENDED_MAX - 1) return bad(t, LEAT_EDATA, at, "extended header is too large", err);
    leat__buf_clear(&t->extended);
    int rc = leat__buf_zeros(&t->extended, (size_t)size);
    LEAT_ASSERT(rc != 0 || t->extended.len == size);
    if (rc != 0) return leat__fail(err, rc, "no memory for an extended tar header");
    LEAT_TRY(read_exactly(t, t->extended.data, (size_t)size, err));
    return pass_over(t, (BLOCK - size % BLOCK) % BLOCK, err);
}

static int keep_name(leat__tar *t, const char *name, size_t len, uint64_t at, leat_error *err)
{
    leat__buf_clear(&t->pending_name);
    int rc = leat__buf_append(&t->pending_name, name, len);
    if (rc == LEAT_ELIMIT) return bad(t, LEAT_EDATA, at, "member name is too long", err);
    return rc == 0 ? 0 : leat__fail(err, rc, "no memory for a member name");
}

/* Parses records "LEN KEY=VALUE\n". Only path and size matter; sparse files are refused. */
static int parse_pax(leat__tar *t, uint64_t at, bool *has_size, uint64_t *size, bool global, leat_error *err)
{
    const char *p = t->extended.data, *end = p + t->extended.len;
    while (p < end) {
        uint64_t len = 0;
        const char *q = p;
        while (q < end && *q >= '0' && *q <= '9' && len < LEAT__TAR_EXTENDED_MAX)
            len = len * 10 + (uint64_t)(*q++ - '0');
        if (q == p || q >= end || *q != ' ' || len > (uint64_t)(end - p) || p + len <= q + 1 ||
            p[len - 1] != '\n')
            return bad(t, LEAT_EDATA, at, "damaged pax header", err);
        const char *key = q + 1, *stop = p + len - 1;
        const char *eq = memchr(key, '=', (size_t)(stop - key));
        if (!eq) return bad(t, LEAT_EDATA, at, "damaged pax header", err);
        size_t key_len = (size_t)(eq - key), value_len = (size_t)(stop - eq - 1);
        if (key_len >= 10 && memcmp(key, "GNU.sparse", 10) == 0)
            return bad(t, LEAT_EFORMAT, at, "sparse files are not read", err);
        if (!global && key_len == 4 && memcmp(key, "path", 4) == 0)
            LEAT_TRY(keep_name(t, eq + 1, value_len, at, err));
        if (!global && key_len == 4 && memcmp(key, "size", 4) == 0) {
            char number[24];
            if (value_len >= sizeof number) return bad(t, LEAT_EDATA, at, "damaged pax size", err);
            memcpy(number, eq + 1, value_len);
            number[value_len] = 0;
            if (!leat__str_to_u64(number, size)) return bad(t, LEAT_EDATA, at, "damaged pax size", err);
            *has_size = true;
        }
        p += len;
    }
    return 0;
}

static int header_name(leat__tar *t, const uint8_t *h, uint64_t at, leat_error *err)
{
    leat__buf_clear(&t->name);
    int rc = 0;
    if (t->pending_name.len > 0) {
        rc = leat__buf_append(&t->name, t->pending_name.data, t->pending_name.len);
        leat__buf_clear(&t->pending_name);
    } else {
        size_t prefix = strnlen((const char *)h + PREFIX, PREFIX_LEN);
        bool ustar = memcmp(h + MAGIC, "ustar\0", 6) == 0; /* not GNU's "ustar  " */
        if (ustar && prefix > 0) {
            leat__buf_append(&t->name, h + PREFIX, prefix);
            leat__buf_putc(&t->name, '/');
        }
        leat__buf_append(&t->name, h + NAME, strnlen((const char *)h + NAME, NAME_LEN));
        rc = leat__buf_status(&t->name);
    }
    if (rc != 0) return leat__fail(err, rc, "no memory for a member name");
    /* a NUL would truncate the name in later code */
    if (memchr(leat__buf_str(&t->name), 0, t->name.len))
        return bad(t, LEAT_EDATA, at, "member name with a NUL inside", err);
    return 0;
}

static void give(leat__tar *t, leat__tar_member *m, const uint8_t *h, uint64_t size)
{
    m->name = leat__buf_str(&t->name);
    m->name_len = t->name.len;
    while (m->name_len >= 2 && m->name[0] == '.' && m->name[1] == '/') {
        m->name += 2;
        m->name_len -= 2;
    }
    char type = (char)h[TYPE];
    m->type = type == 0 || type == '7' ? '0' : type;
    m->size = m->type == '0' ? size : 0;
    m->offset = leat__stream_offset(t->stream);
    t->left = size;
    t->padding = (BLOCK - size % BLOCK) % BLOCK;
    LEAT_ASSERT((t->left + t->padding) % BLOCK == 0);
}

int leat__tar_next(leat__tar *t, leat__tar_member *member, bool *end, leat_error *err)
{
    bool pax_size = false;
    uint64_t forced = 0;
    *end = false;
    LEAT_TRY(pass_over(t, t->left, err));
    LEAT_TRY(pass_over(t, t->padding, err));
    t->left = t->padding = 0;
    leat__buf_clear(&t->pending_name);
    for (;;) {
        uint8_t h[BLOCK];
        uint64_t size, at = leat__stream_offset(t->stream);
        LEAT_TRY(read_exactly(t, h, BLOCK, err));
        if (all_zero(h)) {
            *end = true;
            return check_rest(t, err);
        }
        if (!checksum_holds(h)) return bad(t, LEAT_EDATA, at, "damaged header", err);
        if (!parse_number(h + SIZE, SIZE_LEN, &size) || size > INT64_MAX - BLOCK)
            return bad(t, LEAT_EDATA, at, "damaged size", err);
        switch (h[TYPE]) {
        case 'x':
        case 'g':
            LEAT_TRY(read_extended(t, size, at, err));
            LEAT_TRY(parse_pax(t, at, &pax_size, &forced, h[TYPE] == 'g', err));
            continue;
        case 'L':
            LEAT_TRY(read_extended(t, size, at, err));
            LEAT_TRY(keep_name(t, leat__buf_str(&t->extended),
                               strnlen(leat__buf_str(&t->extended), t->extended.len), at, err));
            continue;
        case 'K': /* long link target: links are not followed */
            LEAT_TRY(read_extended(t, size, at, err));
            continue;
        case 'S': return bad(t, LEAT_EFORMAT, at, "sparse files are not read", err);
        default: break;
        }
        if (pax_size) size = forced;
        if (size > INT64_MAX - BLOCK) return bad(t, LEAT_EDATA, at, "damaged size", err);
        LEAT_TRY(header_name(t, h, at, err));
        give(t, member, h, size);
        return 0;
    }
}

int leat__tar_read(leat__tar *t, void *buf, size_t len, leat_error *err)
{
    if (len > t->left) return leat__fail(err, LEAT_EINVAL, "read past a tar member");
    LEAT_TRY(read_exactly(t, buf, len, err));
    t->left -= len;
    return 0;
}
