/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed blocks of a pack file as defined in docs/format.md: header, footer, directory. Only
 * encoding and checked decoding; no I/O. Decoded numbers are consistent with each other and with
 * the size of the file.
 */
#ifndef LEAT_PACK_LAYOUT_H
#define LEAT_PACK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define LEAT__PACK_BLOCK 4096u
#define LEAT__PACK_CHUNK 65536u      /* bytes of the index with one checksum */
#define LEAT__PACK_ALIGN 16u         /* alignment of pages, samples and payloads */
#define LEAT__PACK_SECTION_ALIGN 64u /* alignment of sections and of the parts after the index */
#define LEAT__PACK_ENTRY 64u         /* bytes of a directory entry */
#define LEAT__PACK_MAJOR 2u
#define LEAT__PACK_MAJOR_DROPS 3u /* for sets that drop samples; the highest version we read */
#define LEAT__PACK_MINOR 0u
#define LEAT__PACK_VERSION "2.0"
#define LEAT__PACK_NO_FIELD UINT32_MAX
#define LEAT__PACK_ABSENT UINT64_MAX /* length of an absent payload */

/* Widths of the elements of the fixed columns. */
#define LEAT__PACK_PAGE_WIDTH 32u
#define LEAT__PACK_SAMPLE_WIDTH 32u
#define LEAT__PACK_IMAGE_WIDTH 32u
#define LEAT__PACK_PAYLOAD_WIDTH 16u
#define LEAT__PACK_NUMBER_WIDTH 8u
#define LEAT__PACK_ENTRIES_FRONT 4u /* bytes before the entry points of an image: their size */

/* Limits of the format. */
#define LEAT__PACK_SAMPLES_MAX UINT32_MAX /* per file */
#define LEAT__PACK_FIELDS_MAX 4096u
#define LEAT__PACK_NAME_MAX 4096u
#define LEAT__PACK_KEY_MAX (1u << 20)
#define LEAT__PACK_JSON_MAX (64u << 20)
#define LEAT__PACK_BLOB_MAX (1u << 30)
#define LEAT__PACK_PACKED_MAX                                                                                \
    (1u << 20) /* of a compressed blob: limits what a few bytes can                                          \
                * expand to */
#define LEAT__PACK_BLOBS_MAX 65536u
#define LEAT__PACK_SHARDS_MAX 65536u
#define LEAT__PACK_DROPS_MAX (UINT64_C(1) << 32) /* bytes of the list of dropped samples */
#define LEAT__PACK_SAMPLE_MAX (UINT64_C(1) << 40)
#define LEAT__PACK_PAGE_MIN 65536u
#define LEAT__PACK_PAGE_MAX (256u << 20)

_Static_assert(LEAT__PACK_CHUNK % LEAT__PACK_SECTION_ALIGN == 0, "a section begins inside one chunk");
_Static_assert(LEAT__PACK_BLOCK % LEAT__PACK_ALIGN == 0, "pages begin after the header, aligned");
_Static_assert(LEAT__PACK_CHUNK % LEAT__PACK_SAMPLE_WIDTH == 0, "no entry crosses a chunk");
_Static_assert(LEAT__PACK_CHUNK % LEAT__PACK_PAGE_WIDTH == 0, "no entry crosses a chunk");

typedef enum leat__pack_kind { LEAT__PACK_FILE = 1, LEAT__PACK_SET = 2 } leat__pack_kind;

typedef enum leat__section_kind {
    LEAT__SECTION_SCHEMA = 1,
    LEAT__SECTION_PROVENANCE = 2,
    LEAT__SECTION_PAGES = 3,
    LEAT__SECTION_SAMPLES = 4,
    LEAT__SECTION_COLUMN = 5,
    LEAT__SECTION_KEYS = 6,
    LEAT__SECTION_KEY_HASHES = 7,
    LEAT__SECTION_KEY_ROWS = 8,
    LEAT__SECTION_BLOB_NAMES = 9,
    LEAT__SECTION_BLOB = 10,
    LEAT__SECTION_SHARDS = 11,
    LEAT__SECTION_DROPS = 12 /* sets: samples of shards that are not part of the set */
} leat__section_kind;

typedef struct leat__section {
    uint32_t kind;
    uint32_t field;       /* LEAT__SECTION_COLUMN, else LEAT__PACK_NO_FIELD */
    uint64_t offset;      /* in the file */
    uint64_t length;      /* bytes, without padding */
    uint32_t width;       /* bytes per element */
    uint32_t name_length; /* LEAT__SECTION_BLOB: its name inside the names section */
    uint64_t name_offset;
    uint64_t unpacked; /* LEAT__SECTION_BLOB: its size if stored as a zstd frame, else 0 */
} leat__section;

typedef struct leat__footer {
    uint16_t major, minor;
    uint32_t kind; /* leat__pack_kind */
    uint64_t file_bytes, samples, pages, page_bytes;
    uint64_t max_page_bytes, max_sample_bytes;
    uint64_t index_offset, index_bytes; /* sections */
    uint64_t checks_bytes;              /* one u64 per chunk of the index */
    uint64_t roots_bytes;               /* one u64 per chunk of the checks */
    uint64_t directory_bytes, sections;
    uint64_t roots_check, directory_check;
    uint64_t check; /* of the footer itself: the fingerprint of the file */
} leat__footer;

/* The alignment of pages and of the ends of index, checks, roots and directory. */
static inline uint64_t leat__footer_page_align(const leat__footer *f)
{
    return f->major < 2 ? LEAT__PACK_BLOCK : LEAT__PACK_ALIGN;
}
static inline uint64_t leat__footer_part_align(const leat__footer *f)
{
    return f->major < 2 ? LEAT__PACK_BLOCK : LEAT__PACK_SECTION_ALIGN;
}

/* Offsets of the parts after the index; they are adjacent. */
static inline uint64_t leat__footer_checks_at(const leat__footer *f)
{
    return f->index_offset + f->index_bytes;
}
static inline uint64_t leat__footer_roots_at(const leat__footer *f)
{
    return leat__footer_checks_at(f) + f->checks_bytes;
}
static inline uint64_t leat__footer_directory_at(const leat__footer *f)
{
    return leat__footer_roots_at(f) + f->roots_bytes;
}

/* The buffers are whole blocks. leat__footer_encode sets f->check. */
void leat__footer_encode(leat__footer *f, uint8_t block[LEAT__PACK_BLOCK]);
void leat__header_encode(const leat__footer *f, uint8_t block[LEAT__PACK_BLOCK]);
/* Placeholder for the header until the file is complete: readers refuse it. */
void leat__header_encode_partial(uint8_t block[LEAT__PACK_BLOCK]);

/* Header: LEAT_EFORMAT when not a pack, unfinished or newer; LEAT_EDATA when damaged. On success
 * *f has the values that the header repeats from the footer: version, kind, file_bytes, check. */
int leat__header_decode(const uint8_t block[LEAT__PACK_BLOCK], const char *path, leat__footer *f,
                        leat_error *err) LEAT_MUST_CHECK;
int leat__footer_decode(const uint8_t block[LEAT__PACK_BLOCK], const char *path, uint64_t file_bytes,
                        leat__footer *f, leat_error *err) LEAT_MUST_CHECK;

int leat__section_append(leat__buf *out, const leat__section *s); /* returns the buffer's status */
/* Decodes `f->sections` entries and checks order, bounds, widths and counts. `out` must have room
 * for all of them. */
int leat__directory_decode(const uint8_t *bytes, const leat__footer *f, const char *path, leat__section *out,
                           leat_error *err) LEAT_MUST_CHECK;

/* Elements of the index. */
typedef struct leat__page_entry {
    uint64_t offset, bytes, check, first;
} leat__page_entry;
typedef struct leat__sample_entry {
    uint32_t page, offset;
    uint64_t size, check, key_end;
} leat__sample_entry;

void leat__page_entry_store(uint8_t *p, const leat__page_entry *e);
void leat__page_entry_load(const uint8_t *p, leat__page_entry *e);
void leat__sample_entry_store(uint8_t *p, const leat__sample_entry *e);
void leat__sample_entry_load(const uint8_t *p, leat__sample_entry *e);

/* A dropped sample as stored in LEAT__SECTION_DROPS: shard, and row in it. */
static inline uint64_t leat__drop_word(uint32_t shard, uint64_t row)
{
    return (uint64_t)shard << 32 | row;
}

/* 64-bit hash of a key, as stored in the index. */
uint64_t leat__key_hash(const void *key, size_t size);

#endif
