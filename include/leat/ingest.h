/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing: folders of images, tar shards, manifests and packs into one pack; and extracting them
 * again.
 *
 *     leat_ingest_opts opts;
 *     leat_ingest_opts_init(&opts);
 *     const char *src[] = {"photos"};
 *     opts.sources = src;
 *     opts.source_count = 1;
 *     opts.output = "photos.leat";
 *     rc = leat_ingest(&opts, &stats, &err);
 *
 * The same sources and settings give the same bytes on any number of threads, and after any
 * interruption followed by `resume`.
 */
#ifndef LEAT_INGEST_H
#define LEAT_INGEST_H

#include <stdint.h>

#include <leat/error.h>
#include <leat/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How images are stored. */
typedef enum leat_image_mode {
    LEAT_IMAGES_AUTO = 0,  /* the best this build has */
    LEAT_IMAGES_KEEP = 1,  /* the source's bytes, untouched */
    LEAT_IMAGES_TILED = 2, /* JPEGs re-coded without loss for fast decoding, others kept */
    LEAT_IMAGES_RAW = 3,   /* pixels */
    LEAT_IMAGES_MIX = 4    /* a share of `mix_raw` as pixels, chosen by key, the rest kept */
} leat_image_mode;

/* How to handle samples whose key already exists in the pack appended to. */
typedef enum leat_append_mode {
    LEAT_APPEND_NONE = 0,  /* a new pack */
    LEAT_APPEND_FAIL = 1,  /* such a sample is an error */
    LEAT_APPEND_SKIP = 2,  /* the pack's sample is kept */
    LEAT_APPEND_UPDATE = 3 /* the new sample replaces it, at the end */
} leat_append_mode;

/* Merging packs: what happens to samples whose keys are equal. */
typedef enum leat_merge_keys {
    LEAT_MERGE_NONE = 0,  /* no merging: images are stored as `images` says */
    LEAT_MERGE_ERROR = 1, /* they are an error that names the key and the packs */
    LEAT_MERGE_FIRST = 2, /* the first one is kept */
    LEAT_MERGE_LAST = 3,  /* the last one is kept */
    LEAT_MERGE_RENAME = 4 /* all are kept: "a.jpg" becomes "a-2.jpg", "a-3.jpg" … */
} leat_merge_keys;

/* 0 means the default given. */
typedef struct leat_ingest_opts {
    uint32_t struct_size;
    uint32_t source_count;
    const char *const *sources; /* one folder or manifest, or several tar shards, TFRecord files or packs */
    const char *output;
    uint32_t images;                  /* leat_image_mode */
    uint32_t max_side;                /* larger images are made smaller, antialiased; 0 = never */
    uint32_t quality;                 /* 1..100: encode every image as JPEG of this quality; 0 = only
                                         those that must be (90) */
    uint32_t threads;                 /* 0 = usable CPUs */
    double mix_raw;                   /* 0..1; the initializer sets 0.5, since 0 is a share as well */
    uint64_t shard_bytes, page_bytes; /* as in leat_packer_opts */
    uint64_t memory;                  /* hard budget for data in flight; half of the available memory */
    uint32_t skip_errors;             /* 1 = samples that cannot be packed are left out and counted */
    uint32_t trust;                   /* 1 = images are not decoded to verify them; tiled: those restored
                                       * byte for byte are not compared pixel by pixel */
    uint32_t resume, replace;         /* as in leat_packer_opts */
    uint32_t shuffle;                 /* 1 = order drawn from shuffle_seed; not for tar shards */
    uint32_t no_sync;                 /* as in leat_packer_opts */
    uint64_t shuffle_seed;
    const char *keys;   /* file with one key per line: only these, in this order; packs only */
    const char *report; /* file for skipped samples, one JSON object per line; NULL = none. `replace` holds
                           for it too; append: it must be new */
    /* Limits of one image and of one sample. */
    uint64_t max_pixels;       /* 178,956,970 */
    uint64_t max_out_bytes;    /* 1 GiB */
    uint32_t max_scans;        /* 500 */
    uint32_t fast_tiles;       /* 1 = tiles with plain bitmaps: a tenth more bytes, faster to decode */
    uint64_t max_work;         /* JPEG: pixels times scans; 4,000,000,000 */
    uint64_t max_sample_bytes; /* 1 GiB */
    /* Called by one thread, a few times a second or more; return non-zero to stop (the result is
     * then LEAT_ECANCELED, and the run can be resumed). total 0 = unknown. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped);
    void *cookie;
    leat_log log;
    uint32_t strict;   /* 1 = every file of a folder is a sample; 0 = hidden files and folders and
                          files whose names do not end as images do (.jpg, .png …) are skipped
                          and counted */
    uint32_t append;   /* leat_append_mode: `output` is there and gets a new generation (leat_packer_opts):
                          its fields, classes (new ones follow), pages and tile tables, and its way
                          to store images unless `images` says another. Local packs only */
    const char *where; /* only samples that meet this condition on their key and numbers; NULL = all.
                          src/ingest/where.h and `leat help pack` say how it is written */
    uint32_t merge;    /* leat_merge_keys: the sources are packs, and samples are copied as they are stored,
                          without decoding. Tiles that have other tables than the first pack's are
                          coded again with these, without loss. Not with images, max_side, quality,
                          shuffle, keys, select or append */
    /* Tar shards. */
    const char *members;  /* kinds of members to take, "jpg,cls,txt": the fields, in this
                             order; other members are skipped. NULL = all kinds that
                             the first `infer` samples have */
    const char *defaults; /* numbers of samples that lack the member: "label=-1,size.cls=0". Without one a
                             sample without its number cannot be packed; other values may be missing */
    uint32_t infer;       /* samples read to find the fields; 0 = 64 */
    const char *select;   /* packs: only the rows that this selection names (leat_pack_select); not with keys
                             or merge */
    uint32_t frames; /* 1 = every frame of an animated GIF or WebP is a sample, "a.gif#0000", "a.gif#0001"
                        …, as a viewer shows it, without loss unless `quality` or `max_side` are given;
                        0 = only the first frame. Not with merge */
} leat_ingest_opts;

LEAT_API void leat_ingest_opts_init_sized(leat_ingest_opts *opts, uint32_t struct_size);
#define leat_ingest_opts_init(o) leat_ingest_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_ingest_stats {
    uint32_t struct_size;
    uint32_t fields;
    uint64_t samples;   /* in the pack */
    uint64_t skipped;   /* left out */
    uint64_t bytes_in;  /* read from the sources, for the samples in the pack */
    uint64_t bytes_out; /* of all files */
    uint64_t pages, shards;
    uint64_t resumed; /* samples that an earlier run had already written */
    uint64_t duplicate_keys;
    uint64_t images[8]; /* by codec 0 to 7, see leat_pack_image.codec; of this run */
    uint64_t budget_peak_bytes;
    double seconds;
    char source_kind[16];
    uint64_t changed;          /* images of this run that cannot be exported byte for byte */
    uint64_t ignored;          /* files and hidden folders skipped because of their names */
    char ignored_first[64];    /* the first of them, "" when there is none */
    uint64_t existing;         /* append: samples whose key existed: skipped, or replaced; merge: samples
                                  with the key of another one: left out, or renamed */
    uint64_t filtered;         /* samples that did not meet the condition */
    uint64_t images_more[8];   /* as `images`, for codecs 8 to 15 */
    uint64_t animated;         /* images of this run with several frames or pages: the first one counts */
    uint64_t recoded;          /* merge: images whose tiles were coded again */
    uint64_t missing;          /* tar shards: samples that lack a member */
    uint64_t unlabelled;       /* folders: images beside the class folders, with the label -1 */
    char unlabelled_first[64]; /* the first of them, "" when there is none */
    uint64_t frames;           /* samples of this run that are frames of animations */
} leat_ingest_stats;

/* Packs. stats may be NULL, and is filled as far as possible also on failure; set its struct_size
 * first (0 = everything before `changed`). LEAT_EDATA: a sample is damaged (err names its key and
 * the offset), or there is no sample to pack. The pack appears only when complete. */
LEAT_API int leat_ingest(const leat_ingest_opts *opts, leat_ingest_stats *stats,
                         leat_error *err) LEAT_MUST_CHECK;

/* What export writes. */
typedef enum leat_export_form {
    LEAT_EXPORT_FILES = 0,      /* the original files under their keys */
    LEAT_EXPORT_WEBDATASET = 1, /* tar shards 00000.tar … with all fields; local folders only */
    LEAT_EXPORT_PARQUET = 2     /* 00000.parquet …; only within the Python package (LEAT_ENOTSUP) */
} leat_export_form;

typedef struct leat_export_opts {
    uint32_t struct_size;
    uint32_t replace; /* 1 = existing files are overwritten, but none of this run */
    const char *pack;
    const char *folder; /* created when missing */
    const char *keys;   /* file with one key per line: only these; NULL = all */
    int (*progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped);
    void *cookie;
    /* Called for each sample that could not be written; the export continues. May be NULL. */
    void (*failure)(void *cookie, const leat_error *why);
    uint32_t to;          /* leat_export_form */
    uint32_t reserved;    /* 0 */
    uint64_t shard_bytes; /* a shard or table ends after the sample that reaches it; 0 = 1 GiB */
    const char *select;   /* only the rows that this selection names (leat_pack_select); not with keys */
} leat_export_opts;

typedef struct leat_export_stats {
    uint64_t samples;
    uint64_t files; /* of LEAT_EXPORT_WEBDATASET: tar shards */
    uint64_t bytes;
    uint64_t changed; /* images that cannot be restored byte for byte */
    uint64_t failed;  /* samples that could not be written */
    uint64_t removed; /* shards of an earlier run with more of them, which `replace` replaces */
    uint64_t members; /* of tar shards */
} leat_export_stats;

LEAT_API void leat_export_opts_init_sized(leat_export_opts *opts, uint32_t struct_size);
#define leat_export_opts_init(o) leat_export_opts_init_sized((o), (uint32_t)sizeof *(o))

/* Writes the files of a pack below `folder`, under their keys. A sample that cannot be written is
 * counted and the others follow: a key that would leave the folder or is not a legal path, a file
 * that already exists or was written for an earlier sample, damage. The result is the code of the
 * first failure; a full disk and similar errors stop it at once. A file or shard is NAME.partial until it is
 * complete; `stats` counts complete ones only. Shards that replace others get their names when all are
 * complete: a failure leaves those of an earlier run as they were. */
LEAT_API int leat_export(const leat_export_opts *opts, leat_export_stats *stats,
                         leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
