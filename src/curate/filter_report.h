/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report of a filter run shows beyond its counts: histograms of scores, documents nearest
 * to thresholds, languages, and random documents to look at. Each worker collects on its own; the
 * parts are merged at the end. Sums and orders do not depend on how documents were shared out, so
 * the report does not depend on threads. One thread per object.
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
    double order; /* the smallest are kept; then the first documents */
    uint64_t document;
    double score; /* of the rule it is an example of */
    bool kept;
    uint32_t rule_count;
    uint16_t rule[LEAT_FILTER_SEEN_RULES]; /* violated or nearest ones */
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
    unsigned scores;          /* with histograms */
    uint64_t *kept, *dropped; /* scores * LEAT__REPORT_BINS */
    uint64_t *lang_kept, *lang_dropped;
    leat__top *near; /* per rule: documents that pass it, documents that violate it */
    leat__top look[LEAT__LOOKS];
    leat__example *examples; /* memory of all */
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
    int label; /* of the language, -1 = none */
    bool kept;
    const uint8_t *failed; /* per rule */
} leat__judged;

/* `near` false: without histograms and examples at thresholds. `look` documents of each kind. */
int leat__filter_report_init(leat__filter_report *r, const leat__rule_set *rules, const leat__lid *lid,
                             bool near, uint32_t look, uint64_t seed, leat_error *err) LEAT_MUST_CHECK;
void leat__filter_report_reset(leat__filter_report *r);
void leat__filter_report_add(leat__filter_report *r, const leat__judged *doc);
void leat__filter_report_merge(leat__filter_report *into, const leat__filter_report *from);

/* Range of a bin of a score's histogram: [*from, *to). */
void leat__report_bin(unsigned score, unsigned bin, double *from, double *to);
/* The position of a value in bins. */
double leat__report_place(unsigned score, double value);

/* The report as JSON, and (filter_page.c) as a page. */
void leat__filter_report_json(const leat__filter_report *r, const leat_filter_stats *stats, leat__buf *out);
void leat__filter_report_page(const leat__filter_report *r, const leat_filter_stats *stats, leat__buf *out);
/* Calls `seen` with the documents to look at. */
void leat__filter_report_look(const leat__filter_report *r,
                              void (*seen)(void *cookie, const leat_filter_seen *doc), void *cookie);

#endif
