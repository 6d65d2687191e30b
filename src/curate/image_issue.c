/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_issue.h.
 */
#include "curate/image_issue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

#define OUTLIER 3.0    /* interquartile ranges */
#define SIZE_RATIO 2.0 /* minimum ratio of an odd size to the median */

const char *const leat__verdict_names[LEAT__VERDICTS] = {"ok",           "truncated",  "damaged",
                                                         "not_an_image", "unreadable", "absent"};

const leat__issue_kind leat__issue_kinds[LEAT__ISSUES] = {
    [LEAT__ISSUE_TRUNCATED] = {"truncated", "the file ends before the image does", 0, 0, 0, 0},
    [LEAT__ISSUE_DAMAGED] = {"damaged", "the image cannot be decoded", 0, 0, 0, 0},
    [LEAT__ISSUE_NOT_IMAGE] = {"not_an_image", "not a format that leat reads", 0, 0, 0, 0},
    [LEAT__ISSUE_UNREADABLE] = {"unreadable", "cannot be read, or is over a limit", 0, 0, 0, 0},
    [LEAT__ISSUE_ABSENT] = {"absent", "the sample has no image", 0, 0, 0, 0},
    [LEAT__ISSUE_EXTENSION] = {"wrong_extension", "the name says another format", 0, 0, 0, 0},
    [LEAT__ISSUE_DARK] = {"dark", "p99 is low", LEAT__LOOK_P99, -1, 60, 110},
    [LEAT__ISSUE_BRIGHT] = {"bright", "p5 is high", LEAT__LOOK_P5, 1, 235, 190},
    [LEAT__ISSUE_LOW_CONTRAST] = {"low_contrast", "contrast is low", LEAT__LOOK_CONTRAST, -1, 10, 25},
    [LEAT__ISSUE_NEAR_UNIFORM] = {"near_uniform", "hardly any contrast", LEAT__LOOK_CONTRAST, -1, 3, 3},
    [LEAT__ISSUE_BLURRY] = {"blurry", "blur is low", LEAT__LOOK_BLUR, -1, 12, 100},
    [LEAT__ISSUE_LOW_INFORMATION] = {"low_information", "entropy is low", LEAT__LOOK_ENTROPY, -1, 3, 5},
    [LEAT__ISSUE_GREY] = {"grey", "no colours", LEAT__LOOK_SATURATION, -1, 0.75, 0.75},
    [LEAT__ISSUE_COLOUR_CAST] = {"colour_cast", "cast is high", LEAT__LOOK_CAST, 1, 60, 25},
    [LEAT__ISSUE_LOW_QUALITY] = {"low_jpeg_quality", "jpeg_quality is low", LEAT__LOOK_QUALITY, -1, 25, 60},
    [LEAT__ISSUE_BORDER] = {"border", "border is large", LEAT__LOOK_BORDER, 1, 0.2, 0.1},
    [LEAT__ISSUE_ODD_ASPECT] = {"odd_aspect", "aspect is high", LEAT__LOOK_ASPECT, 1, 4, 2},
    [LEAT__ISSUE_SMALL] = {"small", "size is far below that of the others", LEAT__LOOK_SIZE, -1, 8, 1e9},
    [LEAT__ISSUE_LARGE] = {"large", "size is far above that of the others", LEAT__LOOK_SIZE, 1, 1e9, 8},
    [LEAT__ISSUE_NOISY] = {"noisy", "noise is high", LEAT__LOOK_NOISE, 1, 12, 8},
};

static int find_kind(const char *name, size_t len)
{
    for (int i = LEAT__ISSUE_SCORED; i < LEAT__ISSUES; i++)
        if (strlen(leat__issue_kinds[i].name) == len && memcmp(leat__issue_kinds[i].name, name, len) == 0)
            return i;
    return -1;
}

static int unknown(const char *part, size_t len, leat_error *err)
{
    const char *names[LEAT__ISSUES];
    char word[64] = {0};
    for (int i = LEAT__ISSUE_SCORED; i < LEAT__ISSUES; i++)
        names[i - LEAT__ISSUE_SCORED] = leat__issue_kinds[i].name;
    memcpy(word, part, LEAT_MIN(len, sizeof word - 1));
    const char *near = leat__str_nearest(word, names, LEAT__ISSUES - LEAT__ISSUE_SCORED);
    return leat__fail(err, LEAT_EINVAL, "`limits`: \"%s\" is not an issue with a limit%s%s%s", word,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

int leat__issue_limits_parse(leat__issue_limits *l, const char *text, leat_error *err)
{
    memset(l, 0, sizeof *l);
    for (const char *at = text; at && *at;) {
        const size_t len = strcspn(at, ","), name = strcspn(at, "=,");
        char value[64] = {0};
        const int kind = find_kind(at, name);
        if (kind < 0) return unknown(at, name, err);
        if (name < len) memcpy(value, at + name + 1, LEAT_MIN(len - name - 1, sizeof value - 1));
        if (l->set[kind])
            return leat__fail(err, LEAT_EINVAL, "`limits`: %s appears twice", leat__issue_kinds[kind].name);
        l->set[kind] = true;
        l->off[kind] = leat__str_eq(value, "off");
        if (!l->off[kind] && !leat__str_to_double(value, &l->limit[kind]))
            return leat__fail(err, LEAT_EINVAL, "`limits`: %s=\"%s\" is not a number or \"off\"",
                              leat__issue_kinds[kind].name, value);
        at += len + (at[len] == ',');
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool beyond(const leat__issue_kind *k, double limit, double score)
{
    if (k->score == LEAT__LOOK_QUALITY && score < 0) return false; /* not a JPEG */
    return k->side < 0 ? score < limit : score > limit;
}

/* Removes missing scores (NaN). Returns the number of those left. */
static size_t drop_missing(double *scores, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(scores[i])) scores[n++] = scores[i];
    return n;
}

void leat__issue_limits_adapt(leat__issue_limits *l, leat__issue issue, double *scores, size_t count)
{
    const leat__issue_kind *k = &leat__issue_kinds[issue];
    if (l->set[issue]) return;
    l->limit[issue] = k->sure;
    count = drop_missing(scores, count);
    if (count == 0) return;
    qsort(scores, count, sizeof *scores, by_value);
    const double low = scores[count / 4], high = scores[count - 1 - count / 4], range = high - low;
    if (k->side < 0) l->limit[issue] = LEAT_MIN(LEAT_MAX(low - OUTLIER * range, k->sure), k->never);
    else l->limit[issue] = LEAT_MAX(LEAT_MIN(high + OUTLIER * range, k->sure), k->never);
    const double middle = scores[count / 2];
    if (issue == LEAT__ISSUE_SMALL) l->limit[issue] = LEAT_MIN(l->limit[issue], middle / SIZE_RATIO);
    if (issue == LEAT__ISSUE_LARGE) l->limit[issue] = LEAT_MAX(l->limit[issue], middle * SIZE_RATIO);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += beyond(k, l->limit[issue], scores[i]);
    l->off[issue] = found > count / 2 && count >= 4;
}

uint64_t leat__issue_bits(const leat__issue_limits *l, const double score[LEAT__LOOKS])
{
    uint64_t bits = 0;
    for (int i = LEAT__ISSUE_SCORED; i < LEAT__ISSUES; i++)
        if (!l->off[i] && beyond(&leat__issue_kinds[i], l->limit[i], score[leat__issue_kinds[i].score]))
            bits |= UINT64_C(1) << i;
    return bits;
}
