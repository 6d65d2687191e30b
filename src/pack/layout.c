/* SPDX-License-Identifier: Apache-2.0
 *
 * Header, footer, directory and the elements of the index, byte by byte: see layout.h and
 * docs/format.md. The offsets below repeat the tables there.
 */
#include "pack/layout.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "io/file.h"

#define MAGIC_BYTES 8
static const char magic[] = LEAT__PACK_MAGIC;
static const uint8_t end_magic[8] = {0x1a, 0x0a, 0x0d, 'T', 'A', 'E', 'L', 0x89};
static const char partial_magic[] = LEAT__PARTIAL_MAGIC;

enum { HEADER_CHECK_AT = 4088, FOOTER_MAGIC_AT = 4088 };

static int damaged(leat_error *err, const char *path, int64_t offset, const char *what)
{
    leat__fail(err, LEAT_EDATA, "%s: %s (byte %lld)", path, what, (long long)offset);
    leat__error_at(err, NULL, -1, offset);
    return LEAT_EDATA;
}

void leat__header_encode(const leat__footer *f, uint8_t block[LEAT__PACK_BLOCK])
{
    memset(block, 0, LEAT__PACK_BLOCK);
    memcpy(block, magic, MAGIC_BYTES);
    leat__store_u16(block + 8, f->major);
    leat__store_u16(block + 10, f->minor);
    leat__store_u32(block + 12, f->kind);
    leat__store_u64(block + 16, f->file_bytes);
    leat__store_u64(block + 24, f->check);
    leat__store_u64(block + HEADER_CHECK_AT, leat__hash64(block, HEADER_CHECK_AT, 0));
}

void leat__header_encode_partial(uint8_t block[LEAT__PACK_BLOCK])
{
    memset(block, 0, LEAT__PACK_BLOCK);
    memcpy(block, partial_magic, MAGIC_BYTES);
}

static bool known_major(const leat__footer *f)
{
    return f->major >= 1 && (f->major <= LEAT__PACK_MAJOR ||
                             (f->major == LEAT__PACK_MAJOR_DROPS && f->kind == LEAT__PACK_SET));
}

int leat__header_decode(const uint8_t block[LEAT__PACK_BLOCK], const char *path, leat__footer *f,
                        leat_error *err)
{
    memset(f, 0, sizeof *f);
    if (memcmp(block, partial_magic, MAGIC_BYTES) == 0)
        return leat__fail(err, LEAT_EFORMAT, "%s: an unfinished pack; continue it with `resume`", path);
    if (memcmp(block, magic, MAGIC_BYTES) != 0)
        return leat__fail(err, LEAT_EFORMAT, "%s: not a leat pack; leat pack makes one", path);
    if (leat__load_u64(block + HEADER_CHECK_AT) != leat__hash64(block, HEADER_CHECK_AT, 0))
        return damaged(err, path, 0, "header checksum does not match");
    f->major = leat__load_u16(block + 8);
    f->minor = leat__load_u16(block + 10);
    f->kind = leat__load_u32(block + 12);
    if (!known_major(f))
        return leat__fail(err, LEAT_EFORMAT, "%s: format %u.%u is newer than this leat's " LEAT__PACK_VERSION,
                          path, f->major, f->minor);
    f->file_bytes = leat__load_u64(block + 16);
    f->check = leat__load_u64(block + 24);
    if (f->kind != LEAT__PACK_FILE && f->kind != LEAT__PACK_SET)
        return leat__fail(err, LEAT_EFORMAT, "%s: unknown kind of file %u", path, f->kind);
    if (f->file_bytes < 2 * LEAT__PACK_BLOCK || f->file_bytes % leat__footer_part_align(f) != 0 ||
        f->file_bytes > INT64_MAX)
        return damaged(err, path, 16, "impossible file size in the header");
    return 0;
}

/* The footer's u64 fields after `kind`, in file order. */
#define FOOTER_WORDS(X)                                                                                      \
    X(16, file_bytes)                                                                                        \
    X(24, samples)                                                                                           \
    X(32, pages)                                                                                             \
    X(40, page_bytes)                                                                                        \
    X(48, max_page_bytes)                                                                                    \
    X(56, max_sample_bytes)                                                                                  \
    X(64, index_offset)                                                                                      \
    X(72, index_bytes)                                                                                       \
    X(80, checks_bytes)                                                                                      \
    X(88, roots_bytes)                                                                                       \
    X(96, directory_bytes)                                                                                   \
    X(104, sections)                                                                                         \
    X(112, roots_check)                                                                                      \
    X(120, directory_check)

void leat__footer_encode(leat__footer *f, uint8_t block[LEAT__PACK_BLOCK])
{
    memset(block, 0, LEAT__PACK_BLOCK);
    leat__store_u16(block + 8, f->major);
    leat__store_u16(block + 10, f->minor);
    leat__store_u32(block + 12, f->kind);
#define STORE(at, name) leat__store_u64(block + (at), f->name);
    FOOTER_WORDS(STORE)
#undef STORE
    leat__store_u32(block + 128, LEAT__PACK_CHUNK);
    memcpy(block + FOOTER_MAGIC_AT, end_magic, sizeof end_magic);
    f->check = leat__hash64(block + 8, LEAT__PACK_BLOCK - 8, 0);
    leat__store_u64(block, f->check);
}

/* Checks that parts are in order, without gaps, each with the size of its content. */
static bool footer_consistent(const leat__footer *f)
{
    const uint64_t parts[] = {f->index_bytes, f->checks_bytes, f->roots_bytes, f->directory_bytes};
    uint64_t align = leat__footer_part_align(f), end = f->index_offset;
    if (!known_major(f) || f->index_offset < LEAT__PACK_BLOCK ||
        f->index_offset % leat__footer_page_align(f) != 0)
        return false;
    for (size_t i = 0; i < LEAT_COUNT(parts); i++)
        if (!leat__add_u64(end, parts[i], &end) || end % align != 0) return false;
    if (!leat__add_u64(end, LEAT__PACK_BLOCK, &end) || end != f->file_bytes) return false;
    /* Every part is inside the file, so the products below cannot overflow. */
    uint64_t checks = leat__ceil_div(f->index_bytes, LEAT__PACK_CHUNK) * 8;
    uint64_t roots = leat__ceil_div(f->checks_bytes, LEAT__PACK_CHUNK) * 8;
    uint64_t entries = f->sections <= UINT32_MAX ? f->sections * LEAT__PACK_ENTRY : UINT64_MAX;
    return f->checks_bytes >= checks && f->checks_bytes - checks < align && f->roots_bytes >= roots &&
           f->roots_bytes - roots < align && f->directory_bytes >= entries &&
           f->directory_bytes - entries < align;
}

static bool footer_in_limits(const leat__footer *f)
{
    uint64_t room = f->index_offset - LEAT__PACK_BLOCK; /* of all pages */
    uint64_t align = leat__footer_page_align(f);
    if (f->samples > LEAT__PACK_SAMPLES_MAX || f->pages > f->samples) return false;
    if (f->kind == LEAT__PACK_SET) return f->samples == 0 && room == 0;
    if ((f->samples == 0) != (f->pages == 0)) return false;
    return f->max_page_bytes <= room && f->max_sample_bytes <= f->max_page_bytes &&
           f->pages <= room / align && f->max_page_bytes % align == 0 &&
           (f->pages == 0) == (f->max_page_bytes == 0) && (f->pages == 0) == (room == 0);
}

int leat__footer_decode(const uint8_t block[LEAT__PACK_BLOCK], const char *path, uint64_t file_bytes,
                        leat__footer *f, leat_error *err)
{
    int64_t at = (int64_t)(file_bytes - LEAT__PACK_BLOCK);
    memset(f, 0, sizeof *f);
    if (memcmp(block + FOOTER_MAGIC_AT, end_magic, sizeof end_magic) != 0)
        return damaged(err, path, at + FOOTER_MAGIC_AT, "no end mark (truncated or damaged)");
    f->check = leat__load_u64(block);
    if (f->check != leat__hash64(block + 8, LEAT__PACK_BLOCK - 8, 0))
        return damaged(err, path, at, "footer checksum does not match");
    f->major = leat__load_u16(block + 8);
    f->minor = leat__load_u16(block + 10);
    f->kind = leat__load_u32(block + 12);
#define LOAD(offset, name) f->name = leat__load_u64(block + (offset));
    FOOTER_WORDS(LOAD)
#undef LOAD
    if (f->file_bytes != file_bytes)
        return damaged(err, path, at + 16, "footer and header disagree about the size");
    if (leat__load_u32(block + 128) != LEAT__PACK_CHUNK)
        return damaged(err, path, at + 128, "unknown chunk size");
    if (!footer_consistent(f) || !footer_in_limits(f))
        return damaged(err, path, at + 16, "footer describes an impossible file");
    return 0;
}

int leat__section_append(leat__buf *out, const leat__section *s)
{
    uint8_t e[LEAT__PACK_ENTRY] = {0};
    leat__store_u32(e, s->kind);
    leat__store_u32(e + 4, s->field);
    leat__store_u64(e + 8, s->offset);
    leat__store_u64(e + 16, s->length);
    leat__store_u32(e + 24, s->width);
    leat__store_u32(e + 28, s->name_length);
    leat__store_u64(e + 32, s->name_offset);
    leat__store_u64(e + 40, s->unpacked);
    return leat__buf_append(out, e, sizeof e);
}

static uint64_t section_start(uint64_t end_before)
{
    return (end_before + LEAT__PACK_SECTION_ALIGN - 1) & ~(uint64_t)(LEAT__PACK_SECTION_ALIGN - 1);
}

int leat__directory_decode(const uint8_t *bytes, const leat__footer *f, const char *path, leat__section *out,
                           leat_error *err)
{
    uint64_t at = leat__footer_directory_at(f);
    uint64_t next = section_start(f->index_offset), index_end = f->index_offset + f->index_bytes;
    for (uint64_t i = 0; i < f->sections; i++) {
        const uint8_t *e = bytes + i * LEAT__PACK_ENTRY;
        leat__section *s = &out[i];
        s->kind = leat__load_u32(e);
        s->field = leat__load_u32(e + 4);
        s->offset = leat__load_u64(e + 8);
        s->length = leat__load_u64(e + 16);
        s->width = leat__load_u32(e + 24);
        s->name_length = leat__load_u32(e + 28);
        s->name_offset = leat__load_u64(e + 32);
        s->unpacked = s->kind == LEAT__SECTION_BLOB && f->major >= 2 ? leat__load_u64(e + 40) : 0;
        int64_t here = (int64_t)(at + i * LEAT__PACK_ENTRY);
        if (s->offset != next || s->width == 0 || s->length % s->width != 0 ||
            !leat__range_inside(s->offset, s->length, index_end))
            return damaged(err, path, here, "directory entry out of place");
        if (s->unpacked > LEAT__PACK_PACKED_MAX)
            return damaged(err, path, here, "a compressed blob is too large");
        /* index_end is a multiple of 64, so rounding up to that stays inside. */
        next = section_start(s->offset + s->length);
    }
    if (index_end - next >= leat__footer_part_align(f))
        return damaged(err, path, (int64_t)at, "directory does not cover the index");
    return 0;
}

void leat__page_entry_store(uint8_t *p, const leat__page_entry *e)
{
    leat__store_u64(p, e->offset);
    leat__store_u64(p + 8, e->bytes);
    leat__store_u64(p + 16, e->check);
    leat__store_u64(p + 24, e->first);
}

void leat__page_entry_load(const uint8_t *p, leat__page_entry *e)
{
    e->offset = leat__load_u64(p);
    e->bytes = leat__load_u64(p + 8);
    e->check = leat__load_u64(p + 16);
    e->first = leat__load_u64(p + 24);
}

void leat__sample_entry_store(uint8_t *p, const leat__sample_entry *e)
{
    leat__store_u32(p, e->page);
    leat__store_u32(p + 4, e->offset);
    leat__store_u64(p + 8, e->size);
    leat__store_u64(p + 16, e->check);
    leat__store_u64(p + 24, e->key_end);
}

void leat__sample_entry_load(const uint8_t *p, leat__sample_entry *e)
{
    e->page = leat__load_u32(p);
    e->offset = leat__load_u32(p + 4);
    e->size = leat__load_u64(p + 8);
    e->check = leat__load_u64(p + 16);
    e->key_end = leat__load_u64(p + 24);
}

uint64_t leat__key_hash(const void *key, size_t size)
{
    return leat__hash64(key, size, 0);
}
