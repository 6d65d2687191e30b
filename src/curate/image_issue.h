/* SPDX-License-Identifier: Apache-2.0
 *
 * Named issues of images. The first ones are facts about the file. The others compare a score
 * with a limit that adapts to the data set: where outliers of the score begin (three
 * interquartile ranges from the quartile). The limit stays between `sure`, beyond which every
 * image has the issue, and `never`, up to which none has it. An issue that more than half of the
 * images would have is disabled: it says nothing about them. A limit set by the user is used
 * unchanged.
 */
#ifndef LEAT_CURATE_IMAGE_ISSUE_H
#define LEAT_CURATE_IMAGE_ISSUE_H

#include <leat/images.h>

#include "base/error.h"
#include "curate/image_score.h"

typedef enum leat__verdict {
    LEAT__VERDICT_OK = 0,
    LEAT__VERDICT_TRUNCATED,  /* the file ends before the image does */
    LEAT__VERDICT_DAMAGED,    /* complete, but cannot be decoded */
    LEAT__VERDICT_NOT_IMAGE,  /* not a format that leat reads */
    LEAT__VERDICT_UNREADABLE, /* could not be read, or is over a limit */
    LEAT__VERDICT_ABSENT,     /* the sample has no image */
    LEAT__VERDICTS
} leat__verdict;
extern const char *const leat__verdict_names[LEAT__VERDICTS];

/* Bits of the column "issues": append only. */
typedef enum leat__issue {
    LEAT__ISSUE_TRUNCATED,
    LEAT__ISSUE_DAMAGED,
    LEAT__ISSUE_NOT_IMAGE,
    LEAT__ISSUE_UNREADABLE,
    LEAT__ISSUE_ABSENT,
    LEAT__ISSUE_EXTENSION, /* the extension is that of another format */
    LEAT__ISSUE_SCORED,    /* first issue with a score */
    LEAT__ISSUE_DARK = LEAT__ISSUE_SCORED,
    LEAT__ISSUE_BRIGHT,
    LEAT__ISSUE_LOW_CONTRAST,
    LEAT__ISSUE_NEAR_UNIFORM,
    LEAT__ISSUE_BLURRY,
    LEAT__ISSUE_LOW_INFORMATION,
    LEAT__ISSUE_GREY,
    LEAT__ISSUE_COLOUR_CAST,
    LEAT__ISSUE_LOW_QUALITY,
    LEAT__ISSUE_BORDER,
    LEAT__ISSUE_ODD_ASPECT,
    LEAT__ISSUE_SMALL,
    LEAT__ISSUE_LARGE,
    LEAT__ISSUE_NOISY,
    LEAT__ISSUES
} leat__issue;

typedef struct leat__issue_kind {
    const char *name, *help;
    leat__look score;
    int side; /* -1: below the limit, 1: above it, 0: no score */
    double sure, never;
} leat__issue_kind;
extern const leat__issue_kind leat__issue_kinds[LEAT__ISSUES];

typedef struct leat__issue_limits {
    double limit[LEAT__ISSUES];
    bool off[LEAT__ISSUES]; /* by the user, or because most images are affected */
    bool set[LEAT__ISSUES]; /* by the user */
} leat__issue_limits;

/* Parses "dark=40,grey=off". LEAT_EINVAL names the error. */
int leat__issue_limits_parse(leat__issue_limits *l, const char *text, leat_error *err) LEAT_MUST_CHECK;
/* Adapts the limit of one issue to the scores of all images, which it sorts. NaN: no score. */
void leat__issue_limits_adapt(leat__issue_limits *l, leat__issue issue, double *scores, size_t count);
/* Returns the scored issues of one image as bits. */
uint64_t leat__issue_bits(const leat__issue_limits *l, const double score[LEAT__LOOKS]);

#endif
