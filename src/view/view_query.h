/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which rows are shown and in which order: conditions on columns and one column to sort by. A
 * query is JSON:
 *
 *   {"sort":"mean","desc":true,"where":[{"column":"mean","min":10,"max":90},
 *    {"column":"key","has":"cat"},{"column":"label","in":[1,2]},{"column":"issues","bit":3},
 *    {"selected":true}]}
 *
 * All conditions must hold. "has" ignores the case of ASCII letters; "in" on a column of text takes
 * texts. A row without a value fails every condition on that column and is sorted last. Equal values keep
 * the order of the rows.
 *
 * The caller serialises all calls.
 */
#ifndef LEAT_VIEW_VIEW_QUERY_H
#define LEAT_VIEW_VIEW_QUERY_H

#include "base/json.h"
#include "view/view_data.h"

/* Sorts `count` pairs by key, ascending and stable; `other` has room for as many. Returns the array
 * with the result. */
typedef struct leat__view_pair {
    uint64_t key;
    uint32_t row;
} leat__view_pair;
leat__view_pair *leat__view_sort(leat__view_pair *pairs, leat__view_pair *other, uint32_t count);
/* Maps a number to a key that sorts in the same order; NaN comes last in both directions. */
uint64_t leat__view_key(double value, bool descending);

typedef struct leat__view_rows {
    uint32_t *row;
    uint32_t count;
    uint64_t bytes; /* charged to the budget */
} leat__view_rows;

/* Runs a query. `selected`: one bit per row. LEAT_EINVAL: not a valid query. Free *out with rows_reset. */
int leat__view_query(leat__view_data *d, const char *query, const uint8_t *selected, leat__view_rows *out,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__view_rows_reset(leat__view_data *d, leat__view_rows *rows);
/* True when the result of the query depends on the selection. */
bool leat__view_query_selects(const char *query);

/* Writes {"lo":…,"hi":…,"bins":[…],"missing":n} for numbers. Writes
 * {"values":[{"value":…,"count":…}],"others":n} for text, classes and bits, the most frequent first. */
int leat__view_histogram(leat__view_data *d, leat__view_column *c, const leat__view_rows *rows, leat__json *j,
                         leat_error *err) LEAT_MUST_CHECK;

/* Groups of at least two rows with the same value, in the order of values; negative numbers are not
 * groups. Sorts `rows` in that order. `start` has the position of each group's first row, `size` its
 * length (one block, leat__free). */
typedef struct leat__view_groups {
    uint32_t *start, *size;
    uint32_t count;
    uint64_t bytes;
} leat__view_groups;
int leat__view_group(leat__view_data *d, leat__view_column *c, leat__view_rows *rows, leat__view_groups *out,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__view_groups_reset(leat__view_data *d, leat__view_groups *g);

#endif
