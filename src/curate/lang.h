/* SPDX-License-Identifier: Apache-2.0
 *
 * The language model of a filter run. Constant after opening, shared by all workers.
 */
#ifndef LEAT_CURATE_LANG_H
#define LEAT_CURATE_LANG_H

#include <leat/flow.h>
#include <leat/text.h>

#include "curate/columns.h"
#include "text/lid.h"
#include "text/rule.h"

typedef struct leat__lang {
    leat__lid *lid;
    uint8_t *wanted;  /* one byte per label; NULL = no language was named */
    uint64_t charged; /* bytes charged to the budget */
} leat__lang;

/* Fails with LEAT_EINVAL when opts->set changes a rule of opts->lang or lang_min. */
int leat__lang_check(const leat_filter_opts *opts, leat_error *err) LEAT_MUST_CHECK;

/* Adds the rules of opts->lang and lang_min. Fails when a rule, a column or an option needs a model
 * and none is named. */
int leat__lang_rules(const leat_filter_opts *opts, leat__rule_set *rules, const leat__columns *columns,
                     leat_error *err) LEAT_MUST_CHECK;

/* Loads the model, which may take half of the budget. */
int leat__lang_open(leat__lang *l, const leat_filter_opts *opts, leat_budget *budget,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__lang_close(leat__lang *l, leat_budget *budget);

/* Detects the language of a text and stores it in `counts`. */
void leat__lang_run(const leat__lang *l, leat__lid_work *w, const uint8_t *text, size_t len,
                    leat__counts *counts);

#endif
