/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_check_labels: probabilities of labels from neighbours or predictions, class outliers,
 * and the output.
 */
#ifndef LEAT_CURATE_LABEL_CHECK_H
#define LEAT_CURATE_LABEL_CHECK_H

#include <leat/images.h>

#include "base/buf.h"
#include "curate/neighbours.h"
#include "curate/column_packs.h"

typedef enum leat__label_issue { LEAT__LABEL_WRONG = 1, LEAT__LABEL_OUTLIER = 2 } leat__label_issue;
#define LEAT__LABELS_CSV "key,label,suggested," /* first bytes of the CSV file */
#define LEAT__LABEL_NONE UINT32_MAX             /* the row has no label (negative) */

typedef struct leat__labels {
    leat_check_labels_opts opts;
    leat_check_labels_stats stats;
    leat__column_packs sheets;
    leat__thread_team *crew;
    uint64_t rows;
    uint32_t classes;
    int64_t *code;         /* code of each class, sorted */
    leat__vectors vectors; /* of the rows below */
    uint32_t *voter;       /* rows with a label and a vector, ascending: only these vote and are judged */
    /* Per row: */
    int64_t *label;
    uint32_t *own, *other; /* class; likeliest other class; or LEAT__LABEL_NONE */
    float *chance, *rival; /* probabilities of the own and of the other class */
    float *outlier;        /* 1 - cosine to the centre of its class; NaN without a label or a vector */
    double *suspicion;     /* NaN for a row that is not judged */
    int64_t *rank;         /* 0 = most suspicious; -1 = the label is not suspicious */
    uint8_t *issues;
} leat__labels;

/* Returns the class with this code, or LEAT__LABEL_NONE. */
uint32_t leat__labels_class(const leat__labels *l, int64_t code);

/* Computes, from the labels of the nearest rows, the probability of each row's own class and of the likeliest
 * other class. */
int leat__labels_by_neighbours(leat__labels *l, leat_error *err) LEAT_MUST_CHECK;
/* Computes the same from scores per class. Rows with scores that are not finite lose their class (`own`). */
int leat__labels_by_predictions(leat__labels *l, leat_error *err) LEAT_MUST_CHECK;
/* Computes the distances to class centres and marks outliers. */
int leat__labels_outliers(leat__labels *l, leat_error *err) LEAT_MUST_CHECK;
/* Writes the columns, and the CSV file if requested. */
int leat__labels_write(leat__labels *l, leat_error *err) LEAT_MUST_CHECK;

void leat__check_labels_json(const leat_check_labels_stats *stats, const char *output, leat__buf *out);

#endif
