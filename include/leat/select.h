/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects samples of a pack by vectors and columns. The result is a separate small pack with the same rows
 * and keys. Its columns say which rows are selected, in which order and why.
 *
 *     leat_select_strategy far = {.kind = LEAT_SELECT_DIVERSITY};
 *     leat_select_opts opts;
 *     leat_select_opts_init(&opts);
 *     opts.pack = "photos.leat";
 *     opts.vectors = "vectors.leat";
 *     opts.strategies = &far;
 *     opts.strategy_count = 1;
 *     opts.count = 1000;
 *     opts.output = "selected.leat";
 *     rc = leat_select(&opts, &stats, &err);
 *
 * Rows are chosen one at a time. The next one has the highest product of objective ^ strength over all
 * strategies; of equal rows, the first. The same input gives the same bytes on any number of threads.
 */
#ifndef LEAT_SELECT_H
#define LEAT_SELECT_H

#include <stdint.h>

#include <leat/error.h>
#include <leat/images.h>
#include <leat/log.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leat_select_kind {
    LEAT_SELECT_DIVERSITY = 1,  /* distance to the nearest chosen row; at most one of this kind */
    LEAT_SELECT_WEIGHTS = 2,    /* a column, scaled to 0.001 … 1.001; rows without a number are lowest */
    LEAT_SELECT_BALANCE = 3,    /* shares of the values of an int column, or of `folder` */
    LEAT_SELECT_THRESHOLD = 4,  /* excludes rows before anything is chosen */
    LEAT_SELECT_SIMILARITY = 5, /* similarity to the nearest row of a query set: (1 + cosine) / 2 */
    LEAT_SELECT_RANDOM = 6,     /* a number drawn from `seed` and the row */
    LEAT_SELECT_TYPICALITY = 7  /* 1 / mean distance to the nearest rows, scaled so that the most typical row
                                   has 1. Compares all pairs */
} leat_select_kind;

typedef enum leat_select_shares {
    LEAT_SHARES_UNIFORM = 0, /* the same for every value */
    LEAT_SHARES_INPUT = 1,   /* like the shares among all rows that may be chosen */
    LEAT_SHARES_TARGET = 2   /* given by `targets`; other values share the rest equally. Rows of a value whose
                                share is 0 are never chosen */
} leat_select_shares;

typedef struct leat_select_target {
    const char *name; /* class name, number or folder */
    double share;     /* 0 to 1 */
} leat_select_target;

/* 0 and NULL mean the default that the comment names. */
typedef struct leat_select_strategy {
    uint32_t kind;       /* leat_select_kind */
    uint32_t shares;     /* BALANCE: leat_select_shares */
    const char *vectors; /* DIVERSITY, SIMILARITY, TYPICALITY: pack with vectors of the same rows; default:
                            leat_select_opts.vectors */
    const char *query;   /* SIMILARITY: pack with vectors of the same length */
    const char *column;  /* WEIGHTS, BALANCE: int or float field of the pack or of its columns */
    const char *where;   /* THRESHOLD: condition that rows must meet, as in leat_ingest_opts */
    double strength;     /* -16 to 16; default: 1. DIVERSITY and BALANCE: above 0 */
    double least;        /* DIVERSITY: minimum distance to a chosen row, 0 to 2 */
    const leat_select_target *targets; /* BALANCE */
    uint32_t target_count;
    uint32_t neighbours; /* TYPICALITY: up to 1000; default: 20 */
    uint64_t seed;       /* RANDOM */
    const char *field;   /* of `vectors` and `query`; default: leat_select_opts.field */
    uint64_t reserved;
} leat_select_strategy;

typedef struct leat_select_opts {
    uint32_t struct_size;
    uint32_t strategy_count;
    const char *pack;           /* needed */
    const char *output;         /* needed: a local file */
    const char *const *columns; /* packs with columns of the same rows: leat check, leat dedup, … */
    uint32_t column_count;
    uint32_t threads;     /* default: usable CPUs */
    const char *vectors;  /* pack of leat embed, for strategies without their own */
    const char *previous; /* an earlier selection: its rows stay selected and count for all strategies */
    const char *where;    /* condition that rows must meet, besides THRESHOLD strategies */
    const leat_select_strategy *strategies;
    uint64_t count; /* rows to choose, in addition to those of `previous` */
    double share;   /* instead of `count`: share of all rows. Without both: all that the strategies allow */
    const char *config;            /* YAML or JSON text with any of the above; set fields override it */
    const char *config_name;       /* for messages */
    uint32_t replace, no_sync;     /* as in leat_packer_opts */
    uint64_t memory;               /* fail at the start when more is needed; default: no limit */
    leat_images_progress progress; /* done and total: chosen rows */
    void *cookie;
    leat_log log;
    const char *field; /* field of the vectors: needed when a pack has several */
} leat_select_opts;

LEAT_API void leat_select_opts_init_sized(leat_select_opts *opts, uint32_t struct_size);
#define leat_select_opts_init(o) leat_select_opts_init_sized((o), (uint32_t)sizeof *(o))

typedef struct leat_select_stats {
    uint32_t struct_size;
    uint32_t round;    /* number of this selection: 0 without a previous one */
    uint64_t samples;  /* rows of the pack */
    uint64_t selected; /* rows chosen by this run */
    uint64_t previous; /* rows of the previous selection */
    uint64_t excluded; /* rows excluded by thresholds */
    uint64_t near; /* rows left out because they are too near to a chosen row; 0 if `count` rows were found */
    uint64_t distances;   /* distances computed for diversity */
    double last_distance; /* distance of the last chosen row to those before it; 0 without diversity */
    uint64_t plan_memory; /* bytes planned before the run */
    double seconds, cpu_seconds;
    uint64_t unknown; /* rows left out because a column of WEIGHTS is not a finite number */
    uint64_t resumed; /* rows in `selected` that an interrupted run had chosen, from OUTPUT.state */
    uint64_t asked;   /* rows to choose by `count` or `share`, also from `config`; 0 = neither is set */
    /* Rows left out because a strategy uses vectors and theirs is zeros or not finite, such as images that
     * cannot be read. */
    uint64_t without_vector;
} leat_select_stats;

/* Chooses rows and writes the columns selected, order, round, score, distance and reason. stats may be NULL;
 * set its struct_size first. LEAT_EINVAL: wrong options, or columns with other rows; LEAT_EDATA: no row would
 * be selected; LEAT_EBUDGET: needs more memory than was given. */
LEAT_API int leat_select(const leat_select_opts *opts, leat_select_stats *stats,
                         leat_error *err) LEAT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
