/* SPDX-License-Identifier: Apache-2.0
 *
 * A fastText model in memory, as lid_model.c reads it and lid.c uses it. Constant after opening.
 */
#ifndef LEAT_TEXT_LID_MODEL_H
#define LEAT_TEXT_LID_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/lid.h"

#define LEAT__LID_CENTROIDS 256 /* per part of a quantised row */
#define LEAT__LID_NGRAMS_MAX 64 /* maximum words or characters of an n-gram */

typedef enum leat__lid_loss {
    LEAT__LID_HS = 1, /* hierarchical softmax */
    LEAT__LID_NS = 2, /* negative sampling */
    LEAT__LID_SOFTMAX = 3,
    LEAT__LID_OVA = 4 /* one classifier per label */
} leat__lid_loss;

/* Rows of floats, or (dense == NULL) of product-quantised codes. Views of the file. */
typedef struct leat__lid_matrix {
    uint64_t rows;
    uint32_t cols;
    const float *dense;
    uint32_t parts, part, last; /* parts per row, columns per part, columns of the last part */
    const uint8_t *codes;       /* rows * parts */
    const float *centroids;
    const uint8_t *norm_codes; /* NULL = rows are not scaled */
    const float *norms;
} leat__lid_matrix;

/* A node of the tree of a hierarchical softmax; leaves are labels. */
typedef struct leat__lid_node {
    int32_t left, right; /* -1 in a leaf */
} leat__lid_node;

/* An n-gram that a pruned model kept: its hash and its row. */
typedef struct leat__lid_kept {
    int32_t hash, row; /* row -1 = a free slot */
} leat__lid_kept;

struct leat__lid {
    char *data;
    uint64_t bytes; /* of memory in use */
    uint32_t words, labels;
    uint32_t bucket;
    uint32_t minn, maxn;  /* length of character n-grams; maxn 0 = none */
    uint32_t word_ngrams; /* length of word n-grams; 1 = none */
    leat__lid_loss loss;
    const char **word; /* words, then labels */
    uint32_t *slot;    /* hash table of words and labels: index + 1; 0 = free */
    uint32_t slot_mask;
    bool pruned;
    leat__lid_kept *kept;
    uint32_t kept_mask;   /* 0 = none */
    leat__lid_node *tree; /* 2 * labels - 1 nodes, the root last */
    leat__lid_matrix input, output;
};

/* fastText's hash of a text: FNV-1a on signed bytes. */
#define LEAT__LID_HASH 2166136261u
static inline uint32_t leat__lid_hash(uint32_t h, uint8_t byte)
{
    return (h ^ (uint32_t)(int32_t)(int8_t)byte) * 16777619u;
}

#endif
