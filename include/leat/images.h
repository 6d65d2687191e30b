/* SPDX-License-Identifier: Apache-2.0
 *
 * Curating images: finds bad images, wrong labels, duplicates and similar images. Results are columns in a
 * separate small pack with the same rows and keys.
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

/* Called by one thread, a few times a second or more; return non-zero to stop (LEAT_ECANCELED). total 0 =
 * unknown. `found`: duplicates, or rows with an issue, as far as known. */
typedef int (*leat_images_progress)(void *cookie, uint64_t done, uint64_t total, uint64_t bytes,
                                    uint64_t found);

/* ---- Checks ------------------------------------------------------------------------------- */

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_check_opts {
    uint32_t struct_size;
    uint32_t source_count;
    const char *const *sources; /* as in leat_ingest_opts: packs, one folder or manifest, tar shards … */
    const char *output;         /* pack with the columns; needed */
    const char *csv;            /* writes a CSV file too; `replace` applies to it as well */
    const char *limits;  /* "dark=40,grey=off": limits of issues; by default they adapt to the dataset */
    uint32_t threads;    /* usable CPUs */
    uint32_t replace;    /* 1 = a pack at `output` is replaced */
    uint32_t strict;     /* 1 = every file of a folder is a sample, whatever its name */
    uint32_t no_sync;    /* as in leat_packer_opts */
    uint64_t memory;     /* hard budget for data in flight; half of the available memory */
    uint64_t max_pixels; /* 178,956,970 */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
} leat_check_opts;

LEAT_API void leat_check_opts_init_sized(leat_check_opts *opts, uint32_t struct_size);
#define leat_check_opts_init(o) leat_check_opts_init_sized((o), (uint32_t)sizeof *(o))

#define LEAT_CHECK_ISSUES_MAX 32
#define LEAT_CHECK_EXAMPLES 5

typedef struct leat_check_issue {
    const char *name, *help, *score; /* static; score: column compared with the limit, or NULL */
    uint64_t count;                  /* rows */
    double limit;
    int32_t side; /* when an image has the issue: -1 = its score is below the limit, 1 = above it, 0 = there
                     is no limit */
    uint32_t off; /* 1 = not reported: switched off, or more than half of the images have it */
    uint32_t examples; /* entries of `example`: the rows furthest beyond the limit, or the first ones */
    uint32_t reserved;
    uint64_t example[LEAT_CHECK_EXAMPLES]; /* rows */
} leat_check_issue;

typedef struct leat_check_stats {
    uint32_t struct_size;
    uint32_t issue_count;
    uint64_t samples, ok; /* all rows; rows whose image could be decoded */
    uint64_t found;       /* rows with an issue */
    uint64_t ignored;     /* files skipped because of their names */
    uint64_t bytes_in, bytes_out;
    uint64_t budget_peak_bytes; /* with images too large for the budget, processed alone */
    double seconds, cpu_seconds;
    leat_check_issue issues[LEAT_CHECK_ISSUES_MAX];
    uint64_t resumed; /* rows taken from an interrupted run, from OUTPUT.scores */
} leat_check_stats;

/* Decodes every image once and writes the columns. A bad image is a row with an issue, not an error. A run
 * that was killed or stopped is resumed by the next one with the same output and sources. stats may be NULL;
 * set its struct_size first. LEAT_EINVAL: there are no images, or limits are wrong. */
LEAT_API int leat_check_images(const leat_check_opts *opts, leat_check_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* Packs and checks images in one run: every image is checked when it is stored, so the source is read only
 * once. Of `check`, only output, csv and limits are used; the rest comes from `opts`. The columns equal those
 * of leat_check_images on the finished pack. A resumed run reads the whole pack again for them. Not for
 * appending or merging. stats and found may be NULL; set their struct_size first. LEAT_ENOTSUP: images of
 * more than 8 bits. */
LEAT_API int leat_ingest_checked(const leat_ingest_opts *opts, const leat_check_opts *check,
                                 leat_ingest_stats *stats, leat_check_stats *found,
                                 leat_error *err) LEAT_MUST_CHECK;

/* ---- Labels ------------------------------------------------------------------------------- */

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_check_labels_opts {
    uint32_t struct_size;
    uint32_t neighbours; /* 20; up to 1000 */
    const char *pack;    /* needed */
    const char *output;  /* pack with the columns; needed */
    const char *csv;     /* CSV file of suspicious labels, the most suspicious first; see leat_check_opts */
    const char *vectors; /* pack of leat embed with the same rows; this or `predictions` is needed */
    const char *predictions; /* pack of leat embed --logits with the same rows, used instead of neighbours */
    const char *column;      /* int column with the labels, of the pack or of `columns`: "label" */
    const char *const *columns;
    uint32_t column_count;
    uint32_t threads;          /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    uint64_t memory;           /* fail at the start when more is needed; default: no limit */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
    const char *field; /* field of the vectors: needed when their pack has several */
} leat_check_labels_opts;

LEAT_API void leat_check_labels_opts_init_sized(leat_check_labels_opts *opts, uint32_t struct_size);
#define leat_check_labels_opts_init(o) leat_check_labels_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_check_labels_stats {
    uint32_t struct_size;
    uint32_t classes;
    uint64_t samples, labelled; /* labelled: rows with a label of 0 or more */
    uint64_t wrong;             /* rows whose label is probably wrong */
    uint64_t outliers;          /* rows far from the others in their class */
    uint32_t examples;          /* entries of `example`: the most suspicious rows */
    uint32_t reserved;
    uint64_t example[LEAT_CHECK_EXAMPLES];
    double seconds, cpu_seconds;
    uint64_t
        without_vector; /* labelled rows whose vector is zeros or not finite: see leat_dedup_semantic_stats */
    uint64_t without_scores; /* labelled rows whose predictions are not finite; they are not judged */
} leat_check_labels_stats;

/* Finds labels that contradict the nearest images or the predictions, and images far from the others in their
 * class. Writes the columns label, suggested, issues (1: wrong label, 2: outlier), rank, suspicion,
 * confidence and outlier; the last three are NaN for rows that are not judged. stats may be NULL; set its
 * struct_size first. LEAT_EBUDGET: needs more memory than was given. */
LEAT_API int leat_check_labels(const leat_check_labels_opts *opts, leat_check_labels_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* ---- Duplicates --------------------------------------------------------------------------- */

typedef enum leat_keep_image {
    LEAT_KEEP_IMAGE_LARGEST = 0, /* most pixels, then most bytes, then the first */
    LEAT_KEEP_IMAGE_QUALITY = 1,
    /* highest JPEG quality; in a cluster with other formats the largest image, */ /* then lossless formats;
                                                                                      then the most bytes */
    LEAT_KEEP_IMAGE_FIRST = 2, /* the first one, in the order of inputs and rows */
    LEAT_KEEP_IMAGE_PACK = 3   /* the one in the first input, then the largest */
} leat_keep_image;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_dedup_images_opts {
    uint32_t struct_size;
    uint32_t input_count;
    const char *const *inputs; /* packs, columns made by leat_check_images, or other sources of images */
    const char *output;        /* pack with a row per image of all inputs; needed */
    const char *csv;           /* CSV file of pairs, the most similar first; see leat_check_opts */
    uint32_t keep;             /* leat_keep_image */
    uint32_t orientations;     /* 1: as they are, 2: also mirrored, 8: also rotated; default: 2 */
    uint32_t windows;          /* 1 = also find large crops: takes about five times as long */
    uint32_t across; /* 1 = only pairs from different inputs; the result does not depend on the order of the
                        inputs */
    uint32_t list_probable;    /* 1 = the CSV file lists probable pairs too */
    uint32_t threads;          /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    double threshold;          /* minimum similarity of duplicates: 0.7 */
    double probable;           /* minimum similarity of probable pairs: 0.6 */
    uint64_t memory; /* default: half of what is available; larger data is spilled to OUTPUT.spill/… */
    leat_images_progress progress;
    void *cookie;
    leat_log log;
    const char *csv_pack; /* for a single input: the pack that the CSV file names instead of it, such as the
                             one that columns were made from. The output names it without its folder */
} leat_dedup_images_opts;

LEAT_API void leat_dedup_images_opts_init_sized(leat_dedup_images_opts *opts, uint32_t struct_size);
#define leat_dedup_images_opts_init(o) leat_dedup_images_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_dedup_images_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t samples, kept, removed;
    uint64_t clusters;   /* kept images with duplicates */
    uint64_t pairs;      /* pairs of duplicates */
    uint64_t exact;      /* the part of `pairs` with equal pixels */
    uint64_t probable;   /* similar pairs, not certain to be duplicates: both are kept */
    uint64_t candidates; /* pairs that were compared by their thumbnails */
    double seconds, cpu_seconds;
    uint64_t plan_memory; /* bytes planned */
    uint64_t in_memory;   /* 1 = descriptors stayed in memory; 0 = they were spilled to files */
    uint64_t resumed;     /* rows already searched by an interrupted run, from OUTPUT.state */
    uint64_t unreadable;  /* images that could not be decoded; counted in `kept` */
} leat_dedup_images_stats;

/* Finds exact and near duplicates within the inputs and across them. A run that was killed or stopped is
 * resumed by the next one with the same output, inputs and options. stats may be NULL; set its struct_size
 * first. LEAT_EBUDGET: needs more memory than was given. */
LEAT_API int leat_dedup_images(const leat_dedup_images_opts *opts, leat_dedup_images_stats *stats,
                               leat_error *err) LEAT_MUST_CHECK;

/* ---- Similar vectors ---------------------------------------------------------------------- */

/* Which one of several similar rows is kept. */
typedef enum leat_keep_similar {
    LEAT_KEEP_SIMILAR_FIRST = 0,  /* the first row */
    LEAT_KEEP_SIMILAR_OUTER = 1,  /* the one farthest from the centre of its cluster */
    LEAT_KEEP_SIMILAR_CENTRAL = 2 /* the one nearest to it */
} leat_keep_similar;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_dedup_semantic_opts {
    uint32_t struct_size;
    uint32_t keep;      /* leat_keep_similar */
    const char *input;  /* pack of leat embed; needed */
    const char *output; /* pack with the same rows; needed */
    double threshold;   /* cosine similarity at which a row is removed: 0.95 */
    double keep_share;  /* instead of `threshold`: share of rows to keep; the most similar rows are removed */
    uint32_t clusters;  /* of k-means; default: the square root of the number of rows */
    uint32_t threads;   /* usable CPUs */
    uint32_t replace, no_sync; /* as in leat_packer_opts */
    uint64_t memory; /* hard limit; half of what is available. Vectors that do not fit are read again */
    leat_images_progress progress; /* done and total: rows */
    void *cookie;
    leat_log log;
    const char *field; /* field of the vectors: needed when the pack has several */
} leat_dedup_semantic_opts;

LEAT_API void leat_dedup_semantic_opts_init_sized(leat_dedup_semantic_opts *opts, uint32_t struct_size);
#define leat_dedup_semantic_opts_init(o) leat_dedup_semantic_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_dedup_semantic_stats {
    uint32_t struct_size;
    uint32_t clusters;
    uint64_t samples, kept, removed;
    double threshold;     /* the threshold used; with keep_share: the lowest similarity of a removed row */
    uint64_t largest;     /* rows in the largest cluster */
    uint64_t pairs;       /* pairs compared */
    uint64_t plan_memory; /* bytes planned and used */
    uint32_t in_memory;   /* 1 = all vectors were in memory */
    uint32_t reserved;
    double seconds, cpu_seconds;
    uint64_t asked;   /* with keep_share: rows to keep; more are kept if there are more clusters */
    uint64_t resumed; /* rows whose clusters came from an interrupted run, from OUTPUT.state */
    /* Rows whose vector is zeros or not finite, such as images that cannot be read. They are compared with
     * no other row, stay in the output, and count neither as kept nor as removed. */
    uint64_t without_vector;
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
