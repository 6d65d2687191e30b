/* SPDX-License-Identifier: Apache-2.0
 *
 * Data of a filter report beyond the counts: histograms of scores, documents nearest to thresholds,
 * languages, and random documents for review. Each worker collects its own part; the parts are merged
 * at the end. The result does not depend on how documents were distributed, nor on the number of
 * threads. An object is used by one thread.
 */
#ifndef LEAT_CURATE_FILTER_REPORT_H
#define LEAT_CURATE_FILTER_REPORT_H

#include <leat/text.h>

#include "curate/text_line.h"
#include "text/lid.h"
#include "text/rule.h"

#define LEAT__REPORT_BINS 64
#define LEAT__REPORT_NEAR 3 /* documents on each side of a threshold */
#define LEAT__REPORT_EXCERPT 480
#define LEAT__LOOK_MAX 100

typedef struct leat__example {
    double order; /* examples with the smallest values are kept; ties: the first documents */
    uint64_t document;
    double score; /* score of the document under the rule that it illustrates */
    bool kept;
    uint32_t rule_count;
    uint16_t rule[LEAT_FILTER_SEEN_RULES]; /* violated rules, or the nearest ones */
    double rule_score[LEAT_FILTER_SEEN_RULES];
    float lang_score;
    char lang[32], id[128], text[LEAT__REPORT_EXCERPT + 1];
} leat__example;

typedef struct leat__top {
    uint32_t count, max;
    leat__example *at; /* sorted */
} leat__top;

enum { LEAT__LOOK_KEPT, LEAT__LOOK_DROPPED, LEAT__LOOK_BORDERLINE, LEAT__LOOKS };

typedef struct leat__filter_report {
    const leat__rule_set *rules;
    const leat__lid *lid; /* NULL = none */
    uint64_t seed;
    unsigned scores;          /* number of scores with histograms */
    uint64_t *kept, *dropped; /* scores * LEAT__REPORT_BINS */
    uint64_t *lang_kept, *lang_dropped;
    leat__top *near; /* per rule: documents that pass it, documents that violate it */
    leat__top look[LEAT__LOOKS];
    leat__example *examples; /* memory of all examples */
    uint64_t bytes;
} leat__filter_report;

/* A document that was judged. */
typedef struct leat__judged {
    const leat__line_names *names;
    const leat__text_chunk *chunk;
    const leat__line *line;
    const leat__record_fields *fields;
    const uint8_t *text;
    size_t len;
    const leat__counts *counts;
    int label; /* label of the language, -1 = none */
    bool kept;
    const uint8_t *failed; /* one byte per rule */
} leat__judged;

/* Without `near`, no histograms and no examples near thresholds are collected. `look`: documents
 * shown of each kind. */
int leat__filter_report_init(leat__filter_report *r, const leat__rule_set *rules, const leat__lid *lid,
                             bool near, uint32_t look, uint64_t seed, leat_error *err) LEAT_MUST_CHECK;
void leat__filter_report_reset(leat__filter_report *r);
void leat__filter_report_add(leat__filter_report *r, const leat__judged *doc);
void leat__filter_report_merge(leat__filter_report *into, const leat__filter_report *from);

/* Returns the range [*from, *to) of a bin in a score's histogram. */
void leat__report_bin(unsigned score, unsigned bin, double *from, double *to);
/* Returns the position of a value, in bins. */
double leat__report_place(unsigned score, double value);

/* Write the report as JSON, and as a page (filter_page.c). */
void leat__filter_report_json(const leat__filter_report *r, const leat_filter_stats *stats, leat__buf *out);
void leat__filter_report_page(const leat__filter_report *r, const leat_filter_stats *stats, leat__buf *out);
/* Calls `seen` with the documents for review. */
void leat__filter_report_look(const leat__filter_report *r,
                              void (*seen)(void *cookie, const leat_filter_seen *doc), void *cookie);

#endif
