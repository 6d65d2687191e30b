/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs: many samples in one checksummed, seekable file, or in a set of such files (shards) that is read as
 * one pack. docs/format.md specifies the file format.
 *
 * Reading: open a leat_pack once and use it from any number of threads at the same time. Opening costs the
 * same for a thousand and for a hundred million samples, because no memory is kept per sample. All returned
 * data has been verified against its checksum, unless no_verify is set.
 *
 * Writing: a leat_packer takes samples in order, one thread at a time. The same samples and options give the
 * same bytes. The pack appears under its name only when it is complete; until then "NAME.partial" and
 * "NAME.journal" hold the samples stored so far, and `resume` continues from there.
 */
#ifndef LEAT_PACK_H
#define LEAT_PACK_H

#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero bytes after every payload in a buffer filled by this interface; decoders may read them. */
#define LEAT_PACK_PADDING 64

/* ---- fields ---------------------------------------------------------------------------- */

/* Types of fields: identifier, value, name. Append rows, never renumber.
 *   image   encoded image: payload, and size, codec and cost in the index
 *   bytes   any bytes
 *   text    UTF-8
 *   int     int64, kept in the index
 *   float   double, kept in the index
 *   array   elements of `dtype`, the same `shape` in every sample
 *   ragged  elements of `dtype`, `ndim` dimensions, one shape per sample
 *   json    one JSON value as UTF-8 text */
#define LEAT_FIELD_MAP(X)                                                                                    \
    X(IMAGE, 1, "image")                                                                                     \
    X(BYTES, 2, "bytes")                                                                                     \
    X(TEXT, 3, "text")                                                                                       \
    X(INT, 4, "int")                                                                                         \
    X(FLOAT, 5, "float")                                                                                     \
    X(ARRAY, 6, "array")                                                                                     \
    X(RAGGED, 7, "ragged")                                                                                   \
    X(JSON, 8, "json")

typedef enum leat_field_type {
#define LEAT_FIELD_ENUM(id, value, name) LEAT_FIELD_##id = value,
    LEAT_FIELD_MAP(LEAT_FIELD_ENUM)
#undef LEAT_FIELD_ENUM
} leat_field_type;

/* Element types: identifier, value, name, bytes. Append rows, never renumber. */
#define LEAT_DTYPE_MAP(X)                                                                                    \
    X(BOOL, 1, "bool", 1)                                                                                    \
    X(U8, 2, "u8", 1)                                                                                        \
    X(I8, 3, "i8", 1)                                                                                        \
    X(U16, 4, "u16", 2)                                                                                      \
    X(I16, 5, "i16", 2)                                                                                      \
    X(U32, 6, "u32", 4)                                                                                      \
    X(I32, 7, "i32", 4)                                                                                      \
    X(U64, 8, "u64", 8)                                                                                      \
    X(I64, 9, "i64", 8)                                                                                      \
    X(F16, 10, "f16", 2)                                                                                     \
    X(BF16, 11, "bf16", 2)                                                                                   \
    X(F32, 12, "f32", 4)                                                                                     \
    X(F64, 13, "f64", 8)

typedef enum leat_dtype {
    LEAT_DTYPE_NONE = 0,
#define LEAT_DTYPE_ENUM(id, value, name, bytes) LEAT_DTYPE_##id = value,
    LEAT_DTYPE_MAP(LEAT_DTYPE_ENUM)
#undef LEAT_DTYPE_ENUM
} leat_dtype;

#define LEAT_NDIM_MAX 8

typedef struct leat_field {
    const char *name;              /* UTF-8, unique, 1 to 4096 bytes */
    uint32_t type;                 /* leat_field_type */
    uint32_t dtype;                /* leat_dtype; ARRAY and RAGGED */
    uint32_t ndim;                 /* ARRAY and RAGGED, 0 to LEAT_NDIM_MAX */
    uint32_t reserved;             /* 0 */
    uint64_t shape[LEAT_NDIM_MAX]; /* ARRAY */
} leat_field;

LEAT_API uint32_t leat_dtype_size(uint32_t dtype);        /* bytes; 0 when unknown */
LEAT_API const char *leat_dtype_name(uint32_t dtype);     /* "f32"; NULL when unknown */
LEAT_API const char *leat_field_type_name(uint32_t type); /* "image"; NULL when unknown */

/* Facts about one image in the index. */
typedef struct leat_pack_image {
    uint32_t width, height; /* as stored, before orientation */
    uint8_t codec;          /* number of the image format, as docs/format.md lists them; 0 = absent */
    uint8_t channels;       /* of the decoded image: 1, 3 or 4; 1 to 16 for uint16 and float32 images */
    uint8_t orientation;    /* EXIF 1..8 */
    uint8_t flags;          /* LEAT_PACK_IMAGE_… */
    uint32_t cost; /* decode cost in µs on the reference machine, from the content alone; 0 = unknown */
} leat_pack_image;

enum {
    LEAT_PACK_IMAGE_RESIZED = 1,   /* pixels differ from the source's: resized or re-encoded */
    LEAT_PACK_IMAGE_UNCHECKED = 2, /* never decoded at pack time */
    LEAT_PACK_IMAGE_RECODED = 4,   /* recoded without loss: the source file can be restored */
    LEAT_PACK_IMAGE_ENTRIES = 8,   /* entry points follow it: regions decode faster */
    LEAT_PACK_IMAGE_U16 = 16,      /* pixels are uint16 */
    LEAT_PACK_IMAGE_F32 = 32       /* pixels are float32; without both flags: uint8 */
};

/* Returns 1 when the source file can be restored byte for byte, 0 when only pixels are available: raw,
 * resized or re-encoded images, and tiled progressive JPEGs in packs of older versions of leat. */
LEAT_API int leat_pack_image_exact(const leat_pack_image *image);

/* ---- reading --------------------------------------------------------------------------- */

typedef struct leat_pack leat_pack;

typedef struct leat_pack_opts {
    uint32_t struct_size;
    uint32_t no_verify;         /* 1 = skip checksums of samples and pages (never of the index) */
    uint32_t direct;            /* 1 = page reads bypass the page cache if possible */
    uint32_t reserved;          /* 0 */
    uint64_t index_cache_bytes; /* maximum bytes of the index to cache in memory; 0 = 16 MiB, UINT64_MAX = no
                                   cache: each lookup is a system call */
} leat_pack_opts;
#define LEAT_PACK_OPTS_INIT                                                                                  \
    {                                                                                                        \
        sizeof(leat_pack_opts), 0, 0, 0, 0                                                                   \
    }

/* Opens a pack or a set by its name. opts may be NULL. LEAT_EFORMAT: not a pack, unfinished, or of a newer
 * major version; LEAT_EDATA: damaged; LEAT_ENOENT …: the system's error. */
LEAT_API int leat_pack_open(leat_pack **pack, const char *path, const leat_pack_opts *opts,
                            leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_pack_close(leat_pack **pack); /* no thread may use the pack any more */

/* Opens several packs as one: the samples of the first, then those of the second … Fields are matched by name
 * and type. Samples of a pack that lacks a field have no value in it (0 for INT and FLOAT). The same pack may
 * be given twice. Errors as leat_pack_open; LEAT_EINVAL without a path. */
LEAT_API int leat_pack_open_many(leat_pack **pack, const char *const *paths, uint32_t count,
                                 const leat_pack_opts *opts, leat_error *err) LEAT_MUST_CHECK;
/* The packs that leat_pack_open_many joined. Any other pack has one part, itself. leat_pack_part returns pack
 * number `part` (do not close it), or NULL past the last. *first (may be NULL) gets the number of its first
 * sample. */
LEAT_API uint32_t leat_pack_part_count(const leat_pack *pack);
LEAT_API leat_pack *leat_pack_part(leat_pack *pack, uint32_t part, uint64_t *first);

typedef struct leat_pack_info {
    uint32_t struct_size;
    uint32_t shards; /* files with samples: 1 for a single pack */
    uint64_t samples;
    uint64_t pages;
    uint64_t bytes;            /* size of all files */
    uint64_t page_bytes;       /* target size of a page */
    uint64_t max_page_bytes;   /* largest page: what a page buffer must hold */
    uint64_t max_sample_bytes; /* largest sample */
    uint64_t fingerprint;      /* hash of the whole content: equal for equal packs */
    uint32_t version_major, version_minor;
    uint64_t dropped; /* samples still in the files that were dropped from the pack */
} leat_pack_info;
LEAT_API int leat_pack_info_read(const leat_pack *pack, leat_pack_info *info, uint32_t struct_size);
LEAT_API uint64_t leat_pack_count(const leat_pack *pack); /* samples */
LEAT_API const char *leat_pack_path(const leat_pack *pack);

/* Returned pointers are valid as long as the pack is open. */
LEAT_API uint32_t leat_pack_field_count(const leat_pack *pack);
LEAT_API const leat_field *leat_pack_field(const leat_pack *pack, uint32_t field);
LEAT_API int leat_pack_field_find(const leat_pack *pack,
                                  const char *name); /* returns the number of the field, or LEAT_ENOENT */
LEAT_API const char *leat_pack_schema(const leat_pack *pack);     /* JSON */
LEAT_API const char *leat_pack_provenance(const leat_pack *pack); /* JSON */

/* Class names of an INT field, indexed by value. *names gets an array of *count strings that live as long as
 * the pack; *count is 0 when the field has none. */
LEAT_API int leat_pack_classes(leat_pack *pack, uint32_t field, const char *const **names, uint64_t *count,
                               leat_error *err) LEAT_MUST_CHECK;

/* Looks up a named blob ("tile-tables"). *data is valid as long as the pack is open, followed by
 * LEAT_PACK_PADDING zeros and aligned to 64 bytes. LEAT_ENOENT when there is none. */
LEAT_API int leat_pack_blob(leat_pack *pack, const char *name, const void **data, size_t *size,
                            leat_error *err) LEAT_MUST_CHECK;
LEAT_API uint32_t leat_pack_blob_count(const leat_pack *pack);
LEAT_API const char *leat_pack_blob_name(const leat_pack *pack, uint32_t blob);

/* The location of a sample. */
typedef struct leat_pack_row {
    uint64_t page;        /* number of its page in the whole pack */
    uint64_t offset;      /* where the sample begins in its page, a multiple of 16 */
    uint64_t size;        /* bytes of the sample */
    uint64_t check;       /* XXH3-64 of those bytes */
    uint64_t key_size;    /* bytes of its key */
    uint64_t file_offset; /* where the sample begins in its file */
    uint32_t shard;       /* number of its file */
    uint32_t reserved;    /* 0 */
} leat_pack_row;

/* Facts about one field of one sample in the index. */
typedef struct leat_pack_cell {
    uint64_t start;  /* where the payload begins in the sample, a multiple of 16 */
    uint64_t length; /* bytes of the payload */
    uint32_t absent; /* 1 = the sample has no value here */
    uint32_t reserved;
    leat_pack_image image; /* IMAGE */
    int64_t i;             /* INT */
    double f;              /* FLOAT */
} leat_pack_cell;

/* Read rows or cells first … first+count-1 from the index, without reading pages. So labels and sizes of a
 * whole pack are cheap. LEAT_EINVAL: out of range; LEAT_EDATA: the index is damaged. */
LEAT_API int leat_pack_rows(leat_pack *pack, uint64_t first, size_t count, leat_pack_row *rows,
                            leat_error *err) LEAT_MUST_CHECK;
LEAT_API int leat_pack_cells(leat_pack *pack, uint32_t field, uint64_t first, size_t count,
                             leat_pack_cell *cells, leat_error *err) LEAT_MUST_CHECK;
/* Looks up one sample: its row and its cells of `count` fields, with one read per table. Meant for random
 * access; for whole pages the calls above are cheaper. */
LEAT_API int leat_pack_look(leat_pack *pack, uint64_t sample, leat_pack_row *row, const uint32_t *fields,
                            uint32_t count, leat_pack_cell *cells, leat_error *err) LEAT_MUST_CHECK;
/* Read an INT or FLOAT column as plain numbers. */
LEAT_API int leat_pack_ints(leat_pack *pack, uint32_t field, uint64_t first, size_t count, int64_t *values,
                            leat_error *err) LEAT_MUST_CHECK;
LEAT_API int leat_pack_floats(leat_pack *pack, uint32_t field, uint64_t first, size_t count, double *values,
                              leat_error *err) LEAT_MUST_CHECK;

/* Copies the key of a sample to `key` with a NUL at its end; *size gets its length also when it
 * did not fit (LEAT_ELIMIT). Keys are bytes, usually a relative path in UTF-8. */
LEAT_API int leat_pack_key(leat_pack *pack, uint64_t sample, char *key, size_t capacity, size_t *size,
                           leat_error *err) LEAT_MUST_CHECK;
/* Finds the sample with this key, the first one if there are several. LEAT_ENOENT: none has it. */
LEAT_API int leat_pack_find(leat_pack *pack, const void *key, size_t size, uint64_t *sample,
                            leat_error *err) LEAT_MUST_CHECK;

/* Reads the rows that a selection chooses, in order. `path` is a pack made by leat_select or leat dedup: it
 * has the rows and keys of `pack`, and an int field 'selected' or 'keep' that is not 0 for chosen rows. If it
 * was made from several packs, only the rows of `pack` are read. rows NULL: only *count is set. LEAT_EINVAL:
 * not a selection, or of another pack; LEAT_ELIMIT: more rows than `capacity`. */
LEAT_API int leat_pack_select(leat_pack *pack, const char *path, uint64_t *rows, uint64_t capacity,
                              uint64_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Reads the bytes of one sample into `buf`, which must hold row.size + LEAT_PACK_PADDING bytes (LEAT_ELIMIT
 * when it does not). A field's payload is at buf + cell.start. */
LEAT_API int leat_pack_read(leat_pack *pack, uint64_t sample, void *buf, size_t capacity,
                            leat_error *err) LEAT_MUST_CHECK;

/* The simple interface: a sample with its own growing buffer, one per thread. */
typedef struct leat_sample leat_sample;
LEAT_API int leat_sample_open(leat_sample **s, leat_pack *pack, leat_error *err) LEAT_MUST_CHECK;
LEAT_API void leat_sample_close(leat_sample **s);
LEAT_API int leat_sample_read(leat_sample *s, uint64_t sample, leat_error *err) LEAT_MUST_CHECK;
LEAT_API const char *leat_sample_key(const leat_sample *s, size_t *size);

/* One field of the sample last read, valid until the next read. For RAGGED, `data` points to the elements,
 * after the shape. */
typedef struct leat_view {
    const void *data; /* NULL when absent; INT and FLOAT: points to the number */
    size_t size;
    uint32_t ndim;
    uint32_t reserved;
    uint64_t shape[LEAT_NDIM_MAX]; /* ARRAY, RAGGED */
    leat_pack_image image;         /* IMAGE */
    const void *entries;           /* IMAGE: its entry points, NULL when there are none */
    size_t entries_size;
} leat_view;
LEAT_API int leat_sample_field(const leat_sample *s, uint32_t field, leat_view *view,
                               leat_error *err) LEAT_MUST_CHECK;

/* A page: consecutive samples that are stored, and best read, together. */
typedef struct leat_pack_page {
    uint64_t bytes;   /* a multiple of 16; of 4096 before version 2 */
    uint64_t first;   /* its first sample */
    uint64_t samples; /* how many */
    uint64_t offset;  /* in its file */
    uint64_t check;   /* XXH3-64 of its bytes */
    uint32_t shard;   /* number of its file */
    uint32_t reserved;
} leat_pack_page;
LEAT_API int leat_pack_page_info(leat_pack *pack, uint64_t page, leat_pack_page *info,
                                 leat_error *err) LEAT_MUST_CHECK;
/* Reads and verifies a page into `buf`, which must hold info.bytes + LEAT_PACK_PADDING bytes. */
LEAT_API int leat_pack_page_read(leat_pack *pack, uint64_t page, void *buf, size_t capacity,
                                 leat_error *err) LEAT_MUST_CHECK;

/* One piece of damage that leat_pack_verify found. */
typedef struct leat_pack_damage {
    const char *path; /* file */
    const char *key;  /* key of the sample, "" when not about one sample */
    uint64_t key_size;
    int64_t sample;     /* -1 when not about one sample */
    int64_t page;       /* -1 when not in a page */
    int64_t offset;     /* in the file */
    const char *reason; /* one line */
} leat_pack_damage;

typedef struct leat_pack_verify_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = 1 */
    /* Called for each finding, by one thread at a time; return non-zero to stop. */
    int (*damage)(void *cookie, const leat_pack_damage *damage);
    /* Called from time to time; return non-zero to stop. May be NULL. */
    int (*progress)(void *cookie, uint64_t done_bytes, uint64_t total_bytes);
    void *cookie;
} leat_pack_verify_opts;

typedef struct leat_pack_verify_stats {
    uint64_t samples, pages, bytes;    /* verified */
    uint64_t damaged_samples, damaged; /* findings about samples; all findings */
} leat_pack_verify_stats;

/* Reads every byte of the pack or set and verifies it. Returns 0: no damage; LEAT_EDATA: damage was found and
 * reported; LEAT_ECANCELED: a callback stopped it; other errors as leat_pack_open. */
LEAT_API int leat_pack_verify(const char *path, const leat_pack_verify_opts *opts,
                              leat_pack_verify_stats *stats, leat_error *err) LEAT_MUST_CHECK;

/* ---- writing --------------------------------------------------------------------------- */

typedef struct leat_packer leat_packer;

#define LEAT_PACKER_MARKS 4

typedef struct leat_packer_opts {
    uint32_t struct_size;
    uint32_t field_count;
    const leat_field *fields;
    uint64_t page_bytes;    /* target, 64 KiB to 256 MiB, multiple of 4096; 0 = 512 KiB */
    uint64_t shard_bytes;   /* maximum size of a file; 0 = one file. At least 1 MiB. A page
                             * with one large sample may exceed it. */
    const char *provenance; /* JSON object: source and settings. No times, hosts or threads, so that equal
                               input gives equal bytes */
    uint64_t identity;      /* hash of source and settings: resume fails if it differs */
    uint32_t resume;        /* 1 = resume a partial pack if there is one */
    /* 1 = an existing pack of that name is replaced at the end. An unfinished one that no process is writing
     * is discarded, unless resume is 1 */
    uint32_t replace;
    uint32_t no_sync; /* 1 = no fsync (tests); kill -9 is still safe, power loss is not */
    /* 1 = append to the existing pack NAME: its files stay, samples go to new shards, and at the end NAME
     * becomes a set of all shards. Fields must be those of NAME; field_count 0 takes them from NAME. Its
     * class names and blobs are kept; class names may be added. Leftovers of a killed append, compaction or
     * split are discarded; an append cannot be resumed. */
    uint32_t append;
} leat_packer_opts;
#define LEAT_PACKER_OPTS_INIT                                                                                \
    {                                                                                                        \
        .struct_size = sizeof(leat_packer_opts)                                                              \
    }

/* One value. Fields with a payload use data and size; absent = 1 with data NULL means no value. */
typedef struct leat_pack_value {
    const void *data;
    size_t size;
    int64_t i;       /* INT */
    double f;        /* FLOAT */
    uint32_t absent; /* payload fields only */
    uint32_t reserved;
    uint64_t shape[LEAT_NDIM_MAX]; /* RAGGED */
    leat_pack_image image;         /* IMAGE; LEAT_PACK_IMAGE_ENTRIES is set if `entries` is */
    const void *entries;           /* IMAGE: entry points to store after it, or NULL */
    size_t entries_size;
} leat_pack_value;

typedef struct leat_pack_sample {
    const void *key;
    size_t key_size;               /* up to 1 MiB */
    const leat_pack_value *values; /* one per field, in the order of the schema */
    /* The caller's own counters (inputs consumed, skipped …), not stored in the pack. On resume,
     * leat_packer_resumed returns those of the last stored sample. */
    uint64_t marks[LEAT_PACKER_MARKS];
} leat_pack_sample;

/* Starts (or resumes) NAME. LEAT_EEXIST: NAME exists and replace is 0, or a partial pack exists and both
 * resume and replace are 0; LEAT_ESTATE: another process writes it, or resume with another identity or
 * schema; LEAT_EINVAL: NAME exists and is not a regular file, or replace is 1 and it is neither a pack nor
 * empty. When NAME is a symbolic link, the file it points to is written. */
LEAT_API int leat_packer_open(leat_packer **p, const char *path, const leat_packer_opts *opts,
                              leat_error *err) LEAT_MUST_CHECK;
/* Returns how many samples were already stored when the run was resumed; `marks` gets those of the last of
 * them (zeros if there is none). */
LEAT_API uint64_t leat_packer_resumed(const leat_packer *p, uint64_t marks[LEAT_PACKER_MARKS]);

LEAT_API int leat_packer_append(leat_packer *p, const leat_pack_sample *sample,
                                leat_error *err) LEAT_MUST_CHECK;
/* With `append`: drops the old samples of NAME with this key; *count (may be NULL) gets their number. Samples
 * appended by this packer stay, so drop, then append is an update. LEAT_ESTATE: not appending. */
LEAT_API int leat_packer_drop(leat_packer *p, const void *key, size_t size, uint64_t *count,
                              leat_error *err) LEAT_MUST_CHECK;
/* Sets a named blob, at any time before finish; setting a name again replaces it. With shards, a blob set
 * before the first sample is in every file, a later one only in the set and in later shards. */
LEAT_API int leat_packer_blob(leat_packer *p, const char *name, const void *data, size_t size,
                              leat_error *err) LEAT_MUST_CHECK;
/* Looks up a blob set so far, also before a resume. *data is valid until the blob is set again or the packer
 * is closed. LEAT_ENOENT when there is none. */
LEAT_API int leat_packer_blob_view(const leat_packer *p, const char *name, const void **data, size_t *size);
/* Sets the class names of an INT field, at any time before finish. LEAT_EINVAL: a name is not UTF-8. */
LEAT_API int leat_packer_classes(leat_packer *p, uint32_t field, const char *const *names, uint64_t count,
                                 leat_error *err) LEAT_MUST_CHECK;

typedef struct leat_packer_stats {
    uint64_t samples, pages, shards;
    uint64_t payload_bytes;  /* payload of all samples */
    uint64_t file_bytes;     /* size of all files */
    uint64_t duplicate_keys; /* samples with the key of an earlier sample in the same file */
} leat_packer_stats;

/* Writes the index, syncs and renames. Afterwards the pack is complete or, on failure, can still be resumed.
 * Only leat_packer_close may follow. */
LEAT_API int leat_packer_finish(leat_packer *p, leat_packer_stats *stats, leat_error *err) LEAT_MUST_CHECK;
/* Closes the packer. Without finish, the partial pack is kept for resume. */
LEAT_API void leat_packer_close(leat_packer **p);
typedef struct leat_pack_compact_opts {
    uint32_t struct_size;
    uint32_t no_sync;     /* as in leat_packer_opts */
    const char *output;   /* NULL = the pack itself is replaced at the end */
    uint64_t shard_bytes; /* as in leat_packer_opts */
    uint32_t replace;     /* 1 = a pack at `output` is replaced */
    uint32_t reserved;    /* 0 */
    /* Called from time to time with samples; return non-zero to stop. May be NULL. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
} leat_pack_compact_opts;

/* Rewrites a pack without its dropped samples. The bytes are those of one packer that was given all samples
 * at once, with the same blobs (tile tables). Readers see either the old files or the new ones. A single file
 * without dropped samples is not changed. LEAT_ESTATE: another process writes the pack. */
LEAT_API int leat_pack_compact(const char *path, const leat_pack_compact_opts *opts, leat_packer_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

#define LEAT_PACK_PARTS_MAX 64u

typedef struct leat_split_part {
    const char *output; /* the pack of this part */
    double share;       /* share of all samples: above 0, up to 1 */
    uint64_t samples;   /* result: how many samples it got */
} leat_split_part;

typedef struct leat_pack_split_opts {
    uint32_t struct_size;
    uint32_t part_count;    /* up to LEAT_PACK_PARTS_MAX */
    leat_split_part *parts; /* shares add up to at most 1; if less, the other samples are left out */
    const char *stratify;   /* int field: shares are exact within each of its values; NULL = none */
    uint64_t seed;
    uint32_t replace; /* 1 = packs at the outputs are replaced */
    uint32_t no_sync; /* as in leat_packer_opts */
    /* Called from time to time with samples of one part; return non-zero to stop. May be NULL. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
} leat_pack_split_opts;

/* Copies the stored samples of a pack unchanged into one pack per part. The part of a sample depends only on
 * its key, the seed and the shares, so samples added later do not move others. With `stratify`, samples are
 * ranked by the hash of their key within each value; a few near a border may move when others are added.
 * Splitting a part again with the same seed uses a different hash. LEAT_EINVAL: the pack is itself a part but
 * has lost the record of it, so the shares would be wrong. LEAT_EEXIST: an output exists; nothing is
 * written. */
LEAT_API int leat_pack_split(const char *path, const leat_pack_split_opts *opts,
                             leat_error *err) LEAT_MUST_CHECK;

/* Removes the leftovers of an unfinished run beside NAME, but never a file that the pack or set at NAME
 * needs. LEAT_ESTATE: another process is writing NAME. */
LEAT_API int leat_packer_discard(const char *path, leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
