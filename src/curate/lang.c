/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading of the language model, and the wanted languages.
 */
#include "curate/lang.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"

#define LABELS_MAX 4096 /* labels that a hint considers */

int leat__lang_check(const leat_filter_opts *o, leat_error *err)
{
    if (o->set && o->lang && leat__rule_changes_have(o->set, "lang_match.min"))
        return leat__fail(err, LEAT_EINVAL,
                          "`lang` and `set` both give the rule lang_match.min a threshold: leave out one");
    if (o->set && o->lang_min > 0 && leat__rule_changes_have(o->set, "lang_score.min"))
        return leat__fail(
            err, LEAT_EINVAL,
            "`lang_min` and `set` both give the rule lang_score.min a threshold: leave out one");
    return 0;
}

int leat__lang_rules(const leat_filter_opts *o, leat__rule_set *rules, const leat__columns *columns,
                     leat_error *err)
{
    if (!(o->lang_min >= 0 && o->lang_min <= 1))
        return leat__fail(err, LEAT_EINVAL, "`lang_min`: %g is not between 0 and 1", o->lang_min);
    if (o->lang) LEAT_TRY(leat__rule_set_add(rules, leat__score_lang_match, LEAT__BOUND_MIN, 1, err));
    if (o->lang_min > 0)
        LEAT_TRY(leat__rule_set_add(rules, leat__score_lang, LEAT__BOUND_MIN, o->lang_min, err));
    if (!o->lid && o->lang_min > 0)
        return leat__fail(err, LEAT_EINVAL, "`lang_min` needs a model: name a fastText file (`lid`)");
    if (!o->lid && (leat__rule_set_lang(rules) || leat__columns_lang(columns)))
        return leat__fail(err, LEAT_EINVAL, "languages need a model: name a fastText file (`lid`)");
    return 0;
}

static int unknown_label(const leat__lang *l, const char *label, const char *model, leat_error *err)
{
    const char *known[LABELS_MAX];
    uint32_t n = LEAT_MIN(leat__lid_labels(l->lid), LABELS_MAX);
    for (uint32_t i = 0; i < n; i++) known[i] = leat__lid_label(l->lid, i);
    const char *near = leat__str_nearest(label, known, n);
    char shown[64];
    if (near) near = leat__str_shown(near, shown, sizeof shown); /* a damaged model has any bytes */
    return leat__fail(err, LEAT_EINVAL, "%s: the model has no label \"%s\"%s%s%s", model, label,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int read_wanted(leat__lang *l, const leat_filter_opts *o, leat_error *err)
{
    l->wanted = leat__zalloc(LEAT__MEM_CURATE, leat__lid_labels(l->lid));
    char *names = leat__strdup(LEAT__MEM_CURATE, o->lang);
    int rc = l->wanted && names ? 0 : leat__fail_nomem(err, leat__lid_labels(l->lid), "languages");
    for (char *name = names, *next; name && rc == 0; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = 0;
        int label = leat__lid_find(l->lid, name);
        if (label < 0) rc = unknown_label(l, name, o->lid, err);
        else l->wanted[label] = 1;
    }
    leat__free(names);
    return rc;
}

int leat__lang_open(leat__lang *l, const leat_filter_opts *o, leat_budget *budget, leat_error *err)
{
    leat_budget_stats bs;
    char *data = NULL;
    size_t len;
    leat_budget_read(budget, &bs);
    int rc = leat__file_load(o->lid, (size_t)bs.limit / 2, 1, &data, &len, err);
    if (rc == LEAT_ELIMIT)
        return leat__fail(err, LEAT_EBUDGET,
                          "%s: the model needs more than half of the memory limit "
                          "(%llu MiB)",
                          o->lid, (unsigned long long)bs.limit >> 20);
    if (rc != 0) return rc;
    LEAT_TRY(leat__lid_open(&l->lid, data, len, o->lid, err));
    uint64_t bytes = leat__lid_bytes(l->lid);
    if (leat_budget_try(budget, LEAT_BUDGET_OTHER, bytes) != 0)
        return leat__fail(err, LEAT_EBUDGET, "%s: the model needs %llu MiB of memory, the limit is %llu MiB",
                          o->lid, (unsigned long long)(bytes >> 20) + 1, (unsigned long long)bs.limit >> 20);
    l->charged = bytes;
    return o->lang ? read_wanted(l, o, err) : 0;
}

void leat__lang_close(leat__lang *l, leat_budget *budget)
{
    if (l->charged > 0) leat_budget_release(budget, LEAT_BUDGET_OTHER, l->charged);
    leat__free(l->wanted);
    leat__lid_close(&l->lid);
    memset(l, 0, sizeof *l);
}

void leat__lang_run(const leat__lang *l, leat__lid_work *w, const uint8_t *text, size_t len,
                    leat__counts *counts)
{
    double probability;
    int label = leat__lid_run(l->lid, w, text, len, &probability);
    counts->lang = label < 0 ? "" : leat__lid_label(l->lid, (uint32_t)label);
    counts->lang_label = label < 0 ? 0 : (uint32_t)label;
    counts->lang_score = (float)probability;
    counts->lang_match = label >= 0 && l->wanted && l->wanted[label];
}
