/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores and rules. A score is a count or a ratio of two counts. A rule is a score and a bound;
 * a document that violates it is dropped. A profile is a named table of rules with the source
 * of its thresholds. Tables are constant; a rule set belongs to its owner and must not change while
 * documents are evaluated.
 */
#ifndef LEAT_TEXT_RULE_H
#define LEAT_TEXT_RULE_H

#include <stdbool.h>

#include "base/error.h"
#include "text/score.h"

typedef struct leat__score {
    const char *name;
    const char *help;
    uint16_t over; /* numerator */
    int16_t under; /* denominator; -1 = none, -2 = chars - newlines */
    uint16_t flags;
    uint16_t words; /* below this many words the score is 1 */
} leat__score;

enum {
    LEAT__SCORE_REST = 1,        /* one minus the ratio */
    LEAT__SCORE_ONE_IF_EMPTY = 2 /* 1 when the denominator is 0; otherwise 0 */
};

extern const leat__score leat__scores[];
extern const unsigned leat__score_total;
/* The next two scores need a language model (text/lid.h). */
extern const unsigned leat__score_lang, leat__score_lang_match;

/* Returns the index of the score of this name, or -1. */
int leat__score_find(const char *name, size_t len);
double leat__score_value(unsigned score, const leat__counts *c);

typedef enum leat__bound {
    LEAT__BOUND_MIN,   /* keep when score >= threshold */
    LEAT__BOUND_MAX,   /* keep when score <= threshold */
    LEAT__BOUND_ABOVE, /* keep when score > threshold */
    LEAT__BOUND_BELOW  /* keep when score < threshold */
} leat__bound;

typedef struct leat__rule {
    uint16_t score;
    uint8_t bound; /* leat__bound */
    bool on;
    double threshold;
    const char *profile; /* its profile; "" = the user */
} leat__rule;

static inline bool leat__rule_keeps(const leat__rule *r, double score)
{
    switch (r->bound) {
    case LEAT__BOUND_MIN: return score >= r->threshold;
    case LEAT__BOUND_MAX: return score <= r->threshold;
    case LEAT__BOUND_ABOVE: return score > r->threshold;
    default: return score < r->threshold;
    }
}

const char *leat__bound_name(unsigned bound); /* "min", "max", "above", "below" */
/* Writes the name used by overrides and reports, such as "words.min", to `out`; returns out. */
char *leat__rule_name(const leat__rule *r, char *out, size_t size);

#define LEAT__RULES_MAX 192

typedef struct leat__rule_set {
    leat__rule rule[LEAT__RULES_MAX];
    unsigned count;
} leat__rule_set;

/* Adds the rules of profiles: "gopher@paper", or several names with commas. */
int leat__rule_set_profile(leat__rule_set *set, const char *names, leat_error *err) LEAT_MUST_CHECK;
/* Changes thresholds: "words.min=20,short_lines_ratio.max=off". Adds rules that no profile has. Fails when a
 * rule appears twice. */
int leat__rule_set_change(leat__rule_set *set, const char *changes, leat_error *err) LEAT_MUST_CHECK;
/* True when such changes name the rule, as "words.min". */
bool leat__rule_changes_have(const char *changes, const char *rule);
/* Adds a rule, or changes it like leat__rule_set_change. */
int leat__rule_set_add(leat__rule_set *set, unsigned score, leat__bound bound, double threshold,
                       leat_error *err) LEAT_MUST_CHECK;
/* True when a rule needs a language model. */
bool leat__rule_set_lang(const leat__rule_set *set);
/* Returns the first rule that the document violates, or -1; `failed` (may be NULL) gets one byte per rule, 1
 * for every violated one. */
int leat__rule_set_judge(const leat__rule_set *set, const leat__counts *c, uint8_t *failed);

typedef struct leat__profile {
    const char *name;
    const char *source; /* source of the thresholds */
} leat__profile;
/* Returns the i-th profile; false past the last. */
bool leat__profile_at(unsigned i, leat__profile *profile);

#endif
