/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `leat view`, which shows the images of a pack and the columns beside it in a browser. A
 * server on the loopback interface; every path begins with a random token, and requests without it are
 * refused.
 *
 * GET  /TOKEN/                       the page
 *      /TOKEN/facts                  rows, columns, selection, memory
 *      /TOKEN/rows?q&from&count&show rows of a query (view_query.h), with the value of a column
 *      /TOKEN/histogram?q&column     distribution of a column in these rows
 *      /TOKEN/groups?q&column&from&count   groups of rows with the same value
 *      /TOKEN/map?q&column&colour    or x and y: points, as bytes
 *      /TOKEN/similar?row&column&count     nearest rows by cosine
 *      /TOKEN/sample?row             all values of a row
 *      /TOKEN/t/ROW?s                thumbnail
 *      /TOKEN/i/ROW                  image
 * POST /TOKEN/select                 {"rows":[…],"on":true} or {"q":{…},"on":false}
 *      /TOKEN/save                   the selection as a new file
 */
#ifndef LEAT_VIEW_VIEW_H
#define LEAT_VIEW_VIEW_H

#include <stdint.h>

#include "io/httpd.h"

typedef struct leat__view leat__view;

/* Options; 0 and NULL mean the default named last. */
typedef struct leat__view_opts {
    const char *pack;
    const char *const *with; /* packs of columns made from the pack */
    uint32_t with_count;
    const char *field;     /* image field; NULL = the first one */
    const char *selection; /* selection whose rows are selected at the start; NULL = none */
    const char *save;      /* where to save selections; NULL = NAME.selection.leat for the pack NAME.leat */
    uint64_t memory;       /* for columns and results; 0 = 1 GiB */
} leat__view_opts;

/* Opens a view. LEAT_EINVAL when the pack has no images, or the columns are those of another pack. */
int leat__view_open(leat__view **v, const leat__view_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__view_close(leat__view **v);

uint32_t leat__view_row_count(const leat__view *v);
uint32_t leat__view_column_count(const leat__view *v);
uint32_t leat__view_selected_count(const leat__view *v); /* before the server runs */
const char *leat__view_token(const leat__view *v);

/* Answers one request; any thread. */
void leat__view_answer(void *view, const leat__httpd_request *request, leat__httpd_answer *answer);

/* Starts the server; port 0 = any free port. */
int leat__view_serve(leat__view *v, uint16_t port, leat_error *err) LEAT_MUST_CHECK;
uint16_t leat__view_port(const leat__view *v);

#endif
