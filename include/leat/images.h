/* SPDX-License-Identifier: Apache-2.0
 *
 * Curating images: what is wrong with them, and which are duplicates. Results are columns beside the
 * images: a small pack with the same rows and keys.
 *
 *     leat_check_opts opts;
 *     leat_check_opts_init(&opts);
 *     const char *src[] = {"photos.leat"};
 *     opts.sources = src;
 *     opts.source_count = 1;
 *     opts.output = "photos.check.leat";
 *     rc = leat_check_images(&opts, &stats, &err);
 *
 * The same input gives the same bytes on any number of threads.
 */
#ifndef LEAT_IMAGES_H
#define LEAT_IMAGES_H

#include <stdint.h>

#include <leat/error.h>
#include <leat/ingest.h>
#include <leat/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called by one thread, a few times a second or more; return non-zero to stop (LEAT_ECANCELED).
 * total 0 = unknown. `found`: rows with an issue that is known at once, or duplicates. */
typedef int (*leat_images_progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes,
                                    uint64_t found);

/* ---- Checks ------------------------------------------------------------------------------- */

/* 0 and NULL mean the default given. */
typedef struct leat_check_opts {
    uint32_t struct_size;
    uint32_t source_count;
    const char *const *sources; /* as in leat_ingest_opts: packs, one folder or manifest, tar shards … */
    const char *output;         /* pack with the columns; needed */
    const char *csv;            /* also as a CSV file; `replace` holds for it too */
    const char *limits;         /* "dark=40,grey=off": limits of issues; they adapt to the data set */
    uint32_t threads;           /* usable CPUs */
    uint32_t replace;           /* 1 = a pack at `output` is replaced */
    uint32_t strict;            /* 1 = every file of a folder is a sample, whatever its name */
    uint32_t no_sync;           /* as in leat_packer_opts */
    uint64_t memory;            /* hard budget for data in flight; half of the available memory */
    uint64_t max_pixels;        /* 178,956,970 */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
} leat_check_opts;

LEAT_API void leat_check_opts_init_sized(leat_check_opts *opts, uint32_t struct_size);
#define leat_check_opts_init(o) leat_check_opts_init_sized((o), (uint32_t)sizeof *(o))

#define LEAT_CHECK_ISSUES_MAX 32
#define LEAT_CHECK_EXAMPLES 5

typedef struct leat_check_issue {
    const char *name, *help, *score; /* static; score: column that is compared, NULL when none */
    uint64_t count;                  /* rows */
    double limit;
    int32_t side;      /* -1: below the limit, 1: above, 0: no limit */
    uint32_t off;      /* 1 = disabled: switched off, or more than half of the images have it */
    uint32_t examples; /* how many follow: the rows furthest beyond the limit, or the first */
    uint32_t reserved;
    uint64_t example[LEAT_CHECK_EXAMPLES]; /* rows */
} leat_check_issue;

typedef struct leat_check_stats {
    uint32_t struct_size;
    uint32_t issue_count;
    uint64_t samples, ok; /* rows; rows whose image could be decoded */
    uint64_t found;       /* rows with an issue */
    uint64_t ignored;     /* files skipped because of their names */
    uint64_t bytes_in, bytes_out;
    uint64_t budget_peak_bytes;
    double seconds, cpu_seconds;
    leat_check_issue issues[LEAT_CHECK_ISSUES_MAX];
    uint64_t resumed; /* rows that an interrupted run had processed, from OUTPUT.scores */
} leat_check_stats;

/* Decodes every image once and writes the columns. A bad image is a row with a verdict, not an error. A run
 * that was killed or stopped is continued by the next one with the same output and sources. stats may be
 * NULL; set its struct_size first. LEAT_EINVAL: no images, or wrong limits. */
LEAT_API int leat_check_images(const leat_check_opts *opts, leat_check_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* leat_ingest and leat_check_images in one run: every image is checked when it is stored, so that the source
 * is read once. `check`: output, csv and limits; its sources are the pack, all else is as in `opts`. The
 * columns are those that leat_check_images makes of the pack. A resumed run reads the whole pack for them.
 * Not for appending and merging. stats and found may be NULL; set their struct_size first. LEAT_ENOTSUP:
 * images of more than 8 bits. */
LEAT_API int leat_ingest_checked(const leat_ingest_opts *opts, const leat_check_opts *check,
                                 leat_ingest_stats *stats, leat_check_stats *found,
                                 leat_error *err) LEAT_MUST_CHECK;

/* ---- Labels ------------------------------------------------------------------------------- */

/* 0 and NULL mean the default given. */
typedef struct leat_check_labels_opts {
    uint32_t struct_size;
    uint32_t neighbours;     /* 20; up to 1000 */
    const char *pack;        /* needed */
    const char *output;      /* pack with the columns; needed */
    const char *csv;         /* suspicious labels, the most suspicious first; as in leat_check_opts */
    const char *vectors;     /* pack of leat embed with the same rows; this or `predictions` is needed */
    const char *predictions; /* pack of leat embed --logits with the same rows: instead of neighbours */
    const char *column;      /* int column with the labels, of the pack or of `columns`: "label" */
    const char *const *columns;
    uint32_t column_count;
    uint32_t threads;          /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    uint64_t memory;           /* refuse to start when more is needed; no limit */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
    const char *field; /* of the vectors: needed when their pack has several */
} leat_check_labels_opts;

LEAT_API void leat_check_labels_opts_init_sized(leat_check_labels_opts *opts, uint32_t struct_size);
#define leat_check_labels_opts_init(o) leat_check_labels_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_check_labels_stats {
    uint32_t struct_size;
    uint32_t classes;
    uint64_t samples, labelled; /* labels below 0 are none */
    uint64_t wrong;             /* rows whose label is probably wrong */
    uint64_t outliers;          /* rows far from the others of their class */
    uint32_t examples;          /* how many follow: the most suspicious rows */
    uint32_t reserved;
    uint64_t example[LEAT_CHECK_EXAMPLES];
    double seconds, cpu_seconds;
} leat_check_labels_stats;

/* Finds labels that the nearest images, or predictions, contradict, and images far from the others of
 * their class. Writes the columns label, suggested, issues (1: wrong label, 2: outlier), rank, suspicion,
 * confidence and outlier. stats may be NULL; set its struct_size first. LEAT_EBUDGET: needs more memory
 * than was given. */
LEAT_API int leat_check_labels(const leat_check_labels_opts *opts, leat_check_labels_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* ---- Duplicates --------------------------------------------------------------------------- */

typedef enum leat_keep_image {
    LEAT_KEEP_IMAGE_LARGEST = 0, /* most pixels, then most bytes, then the first */
    LEAT_KEEP_IMAGE_QUALITY = 1, /* highest JPEG quality; of a cluster with other formats the largest, then */
                                 /* lossless formats; then the most bytes */
    LEAT_KEEP_IMAGE_FIRST = 2,   /* in the order of inputs and rows */
    LEAT_KEEP_IMAGE_PACK = 3     /* of the input named first, then the largest */
} leat_keep_image;

/* 0 and NULL mean the default given. */
typedef struct leat_dedup_images_opts {
    uint32_t struct_size;
    uint32_t input_count;
    const char *const *inputs; /* packs, or their columns of leat_check_images, or other sources of images */
    const char *output;        /* pack with a row per image of all inputs; needed */
    const char *csv;           /* pairs, the most similar first; as in leat_check_opts */
    uint32_t keep;             /* leat_keep_image */
    uint32_t orientations;     /* 1: as they are, 2: mirrored as well, 8: turned as well; 2 */
    uint32_t windows;          /* 1 = also find large crops: takes about five times as long */
    uint32_t across;           /* 1 = only pairs of different inputs; the same in any order of the inputs */
    uint32_t list_probable;    /* 1 = the CSV file has probable pairs as well */
    uint32_t threads;          /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    double threshold;          /* least similarity of duplicates: 0.7 */
    double probable;           /* least similarity of probable pairs: 0.6 */
    uint64_t memory;           /* half of what is available; beyond it, files OUTPUT.spill/… are used */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
} leat_dedup_images_opts;

LEAT_API void leat_dedup_images_opts_init_sized(leat_dedup_images_opts *opts, uint32_t struct_size);
#define leat_dedup_images_opts_init(o) leat_dedup_images_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_dedup_images_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t samples, kept, removed;
    uint64_t clusters;   /* kept images that have duplicates */
    uint64_t pairs;      /* of duplicates */
    uint64_t exact;      /* of these, with equal pixels */
    uint64_t probable;   /* pairs that are similar, not surely duplicates: they are kept */
    uint64_t candidates; /* pairs that were compared by their thumbnails */
    double seconds, cpu_seconds;
    uint64_t plan_memory; /* bytes planned */
    uint64_t in_memory;   /* 1: descriptors stayed in memory; 0: they were read from files */
    uint64_t resumed;     /* rows that an interrupted run had searched, from OUTPUT.state */
    uint64_t
        unreadable; /* images that could not be decoded: they are in `kept`, as nothing is known of them */
} leat_dedup_images_stats;

/* Finds exact and near duplicates inside the inputs and across them. A run that was killed or stopped is
 * continued by the next one with the same output, inputs and options. stats may be NULL; set its struct_size
 * first. LEAT_EBUDGET: needs more memory than was given. */
LEAT_API int leat_dedup_images(const leat_dedup_images_opts *opts, leat_dedup_images_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* ---- Similar vectors ---------------------------------------------------------------------- */

/* Which of similar rows is kept. */
typedef enum leat_keep_similar {
    LEAT_KEEP_SIMILAR_FIRST = 0,  /* the first row */
    LEAT_KEEP_SIMILAR_OUTER = 1,  /* the one farthest from the centre of its cluster */
    LEAT_KEEP_SIMILAR_CENTRAL = 2 /* the one nearest to it */
} leat_keep_similar;

/* 0 and NULL mean the default given. */
typedef struct leat_dedup_semantic_opts {
    uint32_t struct_size;
    uint32_t keep;             /* leat_keep_similar */
    const char *input;         /* pack of leat embed; needed */
    const char *output;        /* pack with the same rows; needed */
    double threshold;          /* cosine similarity from which on a row is removed: 0.95 */
    double keep_share;         /* or the share of rows to keep: the most similar ones are removed */
    uint32_t clusters;         /* of k-means: the square root of the number of rows */
    uint32_t threads;          /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    uint64_t memory; /* hard limit; half of what is available. Vectors that do not fit are read again */
    leat_images_progress progress; /* done and total: rows */
    void *cookie;
    leat_log log;
    const char *field; /* of the vectors: needed when the pack has several */
} leat_dedup_semantic_opts;

LEAT_API void leat_dedup_semantic_opts_init_sized(leat_dedup_semantic_opts *opts, uint32_t struct_size);
#define leat_dedup_semantic_opts_init(o) leat_dedup_semantic_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_dedup_semantic_stats {
    uint32_t struct_size;
    uint32_t clusters;
    uint64_t samples, kept, removed;
    double threshold;     /* that was used; with keep_share: the lowest similarity that was removed */
    uint64_t largest;     /* rows of the largest cluster */
    uint64_t pairs;       /* compared */
    uint64_t plan_memory; /* bytes planned and used */
    uint32_t in_memory;   /* 1 = all vectors were in memory */
    uint32_t reserved;
    double seconds, cpu_seconds;
    uint64_t asked;   /* keep_share: rows to keep; more are kept when there are more clusters */
    uint64_t resumed; /* rows whose clusters came from an interrupted run, from OUTPUT.state */
} leat_dedup_semantic_stats;

/* Finds rows whose vectors are similar: k-means, then all pairs inside each cluster. The result depends
 * neither on threads nor on memory. stats may be NULL; set its struct_size first. LEAT_EBUDGET: needs more
 * memory than was given. */
LEAT_API int leat_dedup_semantic(const leat_dedup_semantic_opts *opts, leat_dedup_semantic_stats *stats,
                                 leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
