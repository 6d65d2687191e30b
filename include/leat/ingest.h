/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing: turns folders of images, tar shards, manifests and packs into one pack. Export extracts them
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
    LEAT_IMAGES_AUTO = 0,  /* the best mode that this build supports */
    LEAT_IMAGES_KEEP = 1,  /* the source's bytes, unchanged */
    LEAT_IMAGES_TILED = 2, /* JPEGs recoded without loss for fast decoding, others kept */
    LEAT_IMAGES_RAW = 3,   /* pixels */
    LEAT_IMAGES_MIX = 4    /* a share `mix_raw` as pixels, chosen by key, the rest kept */
} leat_image_mode;

/* How to handle samples whose key already exists in the pack appended to. */
typedef enum leat_append_mode {
    LEAT_APPEND_NONE = 0,  /* a new pack */
    LEAT_APPEND_FAIL = 1,  /* such a sample is an error */
    LEAT_APPEND_SKIP = 2,  /* the pack's sample is kept */
    LEAT_APPEND_UPDATE = 3 /* the new sample replaces it and moves to the end */
} leat_append_mode;

/* How to handle samples with equal keys when packs are merged. */
typedef enum leat_merge_keys {
    LEAT_MERGE_NONE = 0,  /* no merging: `images` decides how images are stored */
    LEAT_MERGE_ERROR = 1, /* fail; err names the key and the packs */
    LEAT_MERGE_FIRST = 2, /* the first one is kept */
    LEAT_MERGE_LAST = 3,  /* the last one is kept */
    LEAT_MERGE_RENAME = 4 /* all are kept: "a.jpg" becomes "a-2.jpg", "a-3.jpg" … */
} leat_merge_keys;

/* 0 means the default that the comment names. */
#define LEAT_MAX_SIDE 65500 /* largest `max_side` */

typedef struct leat_ingest_opts {
    uint32_t struct_size;
    uint32_t source_count;
    const char *const *sources; /* one folder or manifest, or several tar shards, TFRecord files or packs */
    const char *output;
    uint32_t images;   /* leat_image_mode */
    uint32_t max_side; /* larger images are downscaled, with antialiasing; 0 = never; at most LEAT_MAX_SIDE */
    uint32_t quality;  /* 1..100: encode every image as a JPEG of this quality; 0 = only images that must be
                          encoded, with 90 */
    uint32_t threads;  /* 0 = usable CPUs */
    double mix_raw;    /* 0..1; the initializer sets 0.5, since 0 is a share as well */
    uint64_t shard_bytes, page_bytes; /* as in leat_packer_opts */
    uint64_t memory;      /* hard budget for data in flight; default: half of the available memory */
    uint32_t skip_errors; /* 1 = samples that cannot be packed are left out and counted; an outage of
                             remote storage still ends the run */
    uint32_t trust; /* 1 = images are not decoded to verify them; tiled images that restore byte for byte are
                       not compared by pixels */
    uint32_t resume, replace; /* as in leat_packer_opts */
    uint32_t shuffle;         /* 1 = store samples in an order drawn from shuffle_seed; not for tar shards */
    uint32_t no_sync;         /* as in leat_packer_opts */
    uint64_t shuffle_seed;
    const char *keys;   /* packs only: file with one key per line; only these samples, in this order */
    const char *report; /* file for skipped samples, one JSON object per line; NULL = none. `replace` applies
                           to it too; with append it must not exist */
    /* Limits of one image and of one sample. */
    uint64_t max_pixels;       /* 178,956,970 */
    uint64_t max_out_bytes;    /* 1 GiB */
    uint32_t max_scans;        /* 500 */
    uint32_t fast_tiles;       /* 1 = tiles with plain bitmaps: about 10 % more bytes, faster to decode */
    uint64_t max_work;         /* JPEG: pixels times scans; 4,000,000,000 */
    uint64_t max_sample_bytes; /* 1 GiB */
    /* Called by one thread, a few times a second or more; return non-zero to stop (the result is
     * then LEAT_ECANCELED, and the run can be resumed). total 0 = unknown. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped);
    void *cookie;
    leat_log log;
    uint32_t strict;   /* 1 = every file of a folder is a sample; 0 = hidden files and folders, and files
                          without the extension of an image (.jpg, .png …), are skipped and counted */
    uint32_t append;   /* leat_append_mode: adds to the existing pack `output` (see leat_packer_opts). Fields,
                          page size, tile tables and the image mode (unless `images` is set) are those of the
                          pack; new classes are added. Local packs only */
    const char *where; /* only samples whose key and numbers meet this condition; NULL = all. `leat help pack`
                          describes the syntax */
    uint32_t merge; /* leat_merge_keys: the sources are packs, and stored samples are copied without decoding.
                       Tiles that use other tables than the first pack's are recoded with those, without loss.
                       Not with images, max_side, quality, shuffle, keys, select or append */
    /* Tar shards. */
    const char *members;  /* kinds of members to take, "jpg,cls,txt": the fields, in this
                             order; other members are skipped. NULL = all kinds that
                             the first `infer` samples have. Also formats that Python
                             reads: columns to take */
    const char *defaults; /* values for samples that lack a number: "label=-1,size.cls=0"; "*=-1" is for all
                             number fields and all sources. Without a default such a sample is not packed.
                             Only numbers need a default */
    uint32_t infer;       /* samples read to infer the fields; 0 = 64 */
    const char *select; /* packs: only the rows that this selection chooses (leat_pack_select); not with keys
                           or merge */
    uint32_t frames;    /* 1 = every frame of an animated GIF or WebP becomes a sample, "a.gif#0000",
                           "a.gif#0001" …, composed as a viewer shows it; without loss unless `quality` or
                           `max_side` is set. 0 = only the first frame. Not with merge */
} leat_ingest_opts;

LEAT_API void leat_ingest_opts_init_sized(leat_ingest_opts *opts, uint32_t struct_size);
#define leat_ingest_opts_init(o) leat_ingest_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_ingest_stats {
    uint32_t struct_size;
    uint32_t fields;
    uint64_t samples;   /* in the pack */
    uint64_t skipped;   /* left out because they could not be packed */
    uint64_t bytes_in;  /* read from the sources, for the samples in the pack */
    uint64_t bytes_out; /* size of all files of the pack */
    uint64_t pages, shards;
    uint64_t resumed; /* samples that an earlier run had already written */
    uint64_t duplicate_keys;
    uint64_t images[8];         /* by codec 0 to 7, see leat_pack_image.codec; of this run */
    uint64_t budget_peak_bytes; /* with images too large for the budget, processed alone */
    double seconds;
    char source_kind[16];
    uint64_t changed;       /* images of this run that cannot be exported byte for byte */
    uint64_t ignored;       /* files and hidden folders skipped: by their names, or not of the dataset */
    char ignored_first[64]; /* the first of them, "" when there is none */
    uint64_t existing; /* append: samples whose key existed, skipped or replaced; merge: samples with the key
                          of another one, left out or renamed */
    uint64_t filtered; /* samples that did not meet the condition */
    uint64_t images_more[8]; /* like `images`, for codecs 8 to 15 */
    uint64_t animated;   /* images of this run with several frames or pages, of which the first was packed */
    uint64_t recoded;    /* merge: images whose tiles were recoded */
    uint64_t missing;    /* tar shards: samples that lack a member */
    uint64_t unlabelled; /* folders: images of this run outside the class folders; their label is -1 */
    char unlabelled_first[64]; /* the first of them, "" when there is none */
    uint64_t frames;           /* samples of this run that are frames of animations */
    uint64_t in_folders;   /* tar shards with images only, in several folders: samples; they have no labels */
    uint64_t blank_labels; /* manifests: rows whose class name begins or ends with a blank */
    uint64_t blank_label_line; /* line of the first of them, 0 when there is none */
    uint64_t flat;             /* folders: 1 = there are no class folders, so the pack has no labels */
} leat_ingest_stats;

/* Packs the sources. stats may be NULL; set its struct_size first (0 = up to `changed`, exclusive). It is
 * filled as far as possible even on failure. LEAT_EDATA: a sample is damaged (err names its key and the
 * offset), or there is no sample to pack. The pack appears only when complete. */
LEAT_API int leat_ingest(const leat_ingest_opts *opts, leat_ingest_stats *stats,
                         leat_error *err) LEAT_MUST_CHECK;

/* What export writes. */
typedef enum leat_export_form {
    LEAT_EXPORT_FILES = 0,      /* the original files under their keys */
    LEAT_EXPORT_WEBDATASET = 1, /* tar shards 00000.tar … with all fields; to local folders only */
    LEAT_EXPORT_PARQUET = 2     /* 00000.parquet …; only within the Python package (LEAT_ENOTSUP) */
} leat_export_form;

typedef struct leat_export_opts {
    uint32_t struct_size;
    uint32_t replace; /* 1 = overwrite existing files, except those written by this run */
    const char *pack;
    const char *folder; /* created when missing */
    const char *keys;   /* file with one key per line: only these; NULL = all */
    int (*progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped);
    void *cookie;
    /* Called for each sample that could not be written; the export continues. May be NULL. */
    void (*failure)(void *cookie, const leat_error *why);
    uint32_t to;       /* leat_export_form */
    uint32_t reserved; /* 0 */
    uint64_t
        shard_bytes; /* a shard or table ends after the sample that reaches it; 0 = 1 GiB; not with FILES */
    const char *select; /* only the rows that this selection chooses (leat_pack_select); not with keys */
} leat_export_opts;

typedef struct leat_export_stats {
    uint64_t samples;
    uint64_t files; /* LEAT_EXPORT_WEBDATASET: tar shards */
    uint64_t bytes;
    uint64_t changed; /* images that cannot be restored byte for byte */
    uint64_t failed;  /* samples that could not be written */
    uint64_t removed; /* `replace`: surplus shards of an earlier run, which had more shards */
    uint64_t members; /* of tar shards */
    uint64_t stayed;  /* `replace`: files with higher numbers that are not removed: changed since leat wrote
                         them, or after a gap in the numbers */
    char stayed_first[32]; /* the first of them, "" when there is none */
    uint64_t unnamed;      /* fields whose class names are not in the tar shards */
} leat_export_stats;

LEAT_API void leat_export_opts_init_sized(leat_export_opts *opts, uint32_t struct_size);
#define leat_export_opts_init(o) leat_export_opts_init_sized((o), (uint32_t)sizeof *(o))

/* Writes the files of a pack below `folder`, under their keys. A sample that cannot be written is counted,
 * and the export continues. Reasons: its key would leave the folder or is not a legal path; the file exists
 * or was written for an earlier sample; the sample is damaged. Returns the code of the first failure; a full
 * disk and similar errors stop the export at once. A file or shard is NAME.partial until it is complete;
 * `stats` counts only complete ones. Shards that replace others are renamed only when all are complete, so a
 * failure leaves those of an earlier run unchanged. */
LEAT_API int leat_export(const leat_export_opts *opts, leat_export_stats *stats,
                         leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
