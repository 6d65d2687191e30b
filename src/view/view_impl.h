/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a view, and the functions that answer requests. `lock` guards everything except the
 * thumbnails, which must not wait for a sort.
 */
#ifndef LEAT_VIEW_VIEW_IMPL_H
#define LEAT_VIEW_VIEW_IMPL_H

#include "base/json.h"
#include "base/thread.h"
#include "view/view.h"
#include "view/view_data.h"
#include "view/view_query.h"
#include "view/view_select.h"
#include "view/view_thumb.h"

#define LEAT__VIEW_RESULTS 4u

/* The rows of a query, cached for the next request with the same query. */
typedef struct leat__view_result {
    char *query;        /* NULL: empty */
    uint64_t selection; /* version of the selection, if the query depends on it */
    leat__view_rows rows;
    uint64_t used;
} leat__view_result;

struct leat__view {
    leat__mutex lock;
    leat__view_data data;
    leat__view_selection selection;
    leat__view_result result[LEAT__VIEW_RESULTS];
    uint64_t clock;
    leat__view_thumbs *thumbs;
    leat__httpd *httpd;
    char *save;
    char token[33], nonce[33], policy[384];
};

/* Returns the rows of a query, under the lock. They are valid until the next call. */
int leat__view_rows_for(leat__view *v, const char *query, leat__view_rows **rows,
                        leat_error *err) LEAT_MUST_CHECK;

/* Functions that answer a request, under the lock, by appending to `a->body`. The code of a failure
 * becomes the HTTP status. */
typedef int (*leat__view_part)(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                               leat_error *err);
int leat__view_answer_rows(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                           leat_error *err);
int leat__view_answer_histogram(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                                leat_error *err);
int leat__view_answer_groups(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                             leat_error *err);
int leat__view_answer_map(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                          leat_error *err);
int leat__view_answer_similar(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                              leat_error *err);
int leat__view_answer_sample(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                             leat_error *err);

/* Parses a number of the query string; `fallback` when absent. LEAT_EINVAL when malformed or above `most`. */
int leat__view_number_arg(const leat__httpd_request *r, const char *name, uint64_t fallback, uint64_t most,
                          uint64_t *value, leat_error *err) LEAT_MUST_CHECK;

#endif
