/* SPDX-License-Identifier: Apache-2.0
 *
 * The reasons why documents were dropped: a line of reasons.jsonl for each, and counts by rule. Used by
 * filter runs and by deduplication with rules. Any thread.
 */
#ifndef LEAT_CURATE_REASONS_H
#define LEAT_CURATE_REASONS_H

#include <leat/text.h>

#include "base/json.h"
#include "curate/text_line.h"
#include "text/rule.h"

#define LEAT__REASON_BYTES 512 /* upper bound for a line of reasons.jsonl */

/* The verdict on a document. */
typedef struct leat__rule_verdict {
    const leat__rule_set *rules;
    const uint8_t *failed; /* a byte per rule */
    int first;             /* first violated rule */
    const leat__counts *counts;
} leat__rule_verdict;

/* Appends the line about a dropped document. */
void leat__reason_put(const leat__rule_verdict *v, const leat__line_names *names, const leat__text_chunk *c,
                      const leat__line *line, const leat__record_fields *r, leat__buf *out);
/* Adds the verdict on a dropped document to `counts`, which has two numbers per rule: violated, first
 * violated. */
void leat__reason_count(const leat__rule_verdict *v, uint64_t *counts);
/* Appends the value of a score. It reads back equal: the probability of the language as float32, other scores
 * as double. */
void leat__reason_score(unsigned score, const leat__counts *counts, leat__buf *out);
/* Appends the language and its probability as members, if there is a model. */
void leat__reason_lang(const leat__counts *counts, leat__buf *out);

/* Fills in the names and thresholds of the rules, NaN for those switched off; returns their number. */
uint32_t leat__reason_rules(const leat__rule_set *rules, leat_filter_rule *out);
/* Writes the member "rules" of a report. */
void leat__reason_rules_json(const leat_filter_rule *rules, uint32_t count, leat__json *j);

#endif
