/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of a selection: a pack with the same rows and keys as the source pack.
 */
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/select_run.h"
#include "io/url.h"
#include "pack/selection.h"

#define TELL 4096 /* rows written between calls of progress */

enum { F_SELECTED, F_ORDER, F_ROUND, F_SCORE, F_DISTANCE, F_REASON, F_COUNT };

/* Writes {"kind":"leat select 1","pack":…,"fingerprint":…,"strategies":[…]}. */
static void describe(const leat__selecting *s, leat__buf *out)
{
    leat__json j;
    size_t len;
    const char *name = leat__path_name(s->opts.pack, &len);
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", "leat select 1");
    leat__json_key(&j, "pack");
    leat__json_strn(&j, name, len);
    leat__pack_describe(s->sheets.pack[0], &j);
    leat__json_key(&j, "strategies");
    leat__json_array(&j);
    for (uint32_t i = 0; i < s->opts.strategy_count; i++)
        leat__json_str(&j, leat__select_kind_name(s->opts.strategies[i].kind));
    leat__json_end(&j);
    leat__json_end(&j);
}

static int create(const leat__selecting *s, leat_packer **packer, leat_error *err)
{
    static const leat_field fields[F_COUNT] = {[F_SELECTED] = {.name = "selected", .type = LEAT_FIELD_INT},
                                               [F_ORDER] = {.name = "order", .type = LEAT_FIELD_INT},
                                               [F_ROUND] = {.name = "round", .type = LEAT_FIELD_INT},
                                               [F_SCORE] = {.name = "score", .type = LEAT_FIELD_FLOAT},
                                               [F_DISTANCE] = {.name = "distance", .type = LEAT_FIELD_FLOAT},
                                               [F_REASON] = {.name = "reason", .type = LEAT_FIELD_TEXT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat__buf provenance;
    leat__buf_init(&provenance, LEAT__MEM_CURATE, 1u << 20);
    describe(s, &provenance);
    o.fields = fields;
    o.field_count = F_COUNT;
    o.provenance = leat__buf_str(&provenance);
    o.replace = s->opts.replace;
    o.no_sync = s->opts.no_sync;
    int rc = leat__buf_status(&provenance) == 0 ? leat__packer_open_once(packer, s->opts.output, &o, err)
                                                : leat__fail_nomem(err, provenance.len, "provenance");
    leat__buf_reset(&provenance);
    return rc;
}

/* Writes the value of each strategy for the row, as in "diversity 0.8312, blur 12.3, label 4". */
static void explain_chosen(const leat__selecting *s, uint64_t row, leat__buf *out)
{
    for (uint32_t k = 0; k < s->opts.strategy_count; k++) {
        const leat_select_strategy *of = &s->opts.strategies[k];
        if (of->kind == LEAT_SELECT_THRESHOLD) continue;
        leat__buf_puts(out, out->len ? ", " : "");
        leat__buf_puts(out, of->column ? of->column : leat__select_kind_name(of->kind));
        if (of->column && leat__str_eq(of->column, "folder")) continue; /* the code is a hash */
        leat__buf_printf(out, " %.6g", s->shown[k] ? s->shown[k][row] : s->distance[row]);
    }
    if (out->len == 0) leat__buf_puts(out, "meets all conditions");
}

static void explain_unknown(const leat__selecting *s, uint64_t row, leat__buf *out)
{
    for (uint32_t k = 0; k < s->opts.strategy_count; k++)
        if (s->opts.strategies[k].kind == LEAT_SELECT_WEIGHTS && s->shown[k] && !isfinite(s->shown[k][row])) {
            leat__buf_printf(out, "%s is %s", s->opts.strategies[k].column,
                             isnan(s->shown[k][row]) ? "not a number" : "infinite");
            return;
        }
}

static void explain(const leat__selecting *s, uint64_t row, leat__buf *out)
{
    leat__buf_clear(out);
    switch (s->state[row]) {
    case LEAT__ROW_CHOSEN: explain_chosen(s, row, out); break;
    case LEAT__ROW_PREVIOUS: leat__buf_puts(out, "previous selection"); break;
    case LEAT__ROW_OPEN: leat__buf_puts(out, "others scored higher"); break;
    case LEAT__ROW_NEAR:
        leat__buf_printf(out, "nearer than %g to a selected row", s->diversity->least);
        break;
    case LEAT__ROW_BLANK: leat__buf_puts(out, "has no vector (zeros or not finite)"); break;
    case LEAT__ROW_SHARELESS: leat__buf_puts(out, "its value has no share"); break;
    case LEAT__ROW_UNKNOWN: explain_unknown(s, row, out); break;
    default:
        leat__buf_printf(out, "does not meet %s", leat__select_where(s, s->state[row] - LEAT__ROW_OUT));
        break;
    }
}

static int write_rows(leat__selecting *s, leat_packer *packer, leat__buf *key, leat__buf *why,
                      leat_error *err)
{
    const leat_select_opts *o = &s->opts;
    for (uint64_t i = 0; i < s->rows; i++) {
        leat_pack_value v[F_COUNT] = {{0}};
        if (i % TELL == 0 && o->progress &&
            o->progress(o->cookie, s->stats.selected, s->count, 0, s->stats.selected) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        LEAT_TRY(leat__pack_key_read(s->sheets.pack[0], i, key, err));
        explain(s, i, why);
        if (leat__buf_status(why) != 0) return leat__fail_nomem(err, why->len, "a reason");
        v[F_SELECTED].i = s->state[i] == LEAT__ROW_CHOSEN || s->state[i] == LEAT__ROW_PREVIOUS;
        v[F_ORDER].i = s->order[i];
        v[F_ROUND].i = s->round[i];
        v[F_SCORE].f = s->score[i];
        v[F_DISTANCE].f = s->distance[i];
        v[F_REASON].data = leat__buf_str(why);
        v[F_REASON].size = why->len;
        const leat_pack_sample sample = {.key = leat__buf_str(key), .key_size = key->len, .values = v};
        LEAT_TRY(leat_packer_append(packer, &sample, err));
    }
    return 0;
}

int leat__select_write(leat__selecting *s, leat_error *err)
{
    leat_packer *packer = NULL;
    leat_packer_stats ps;
    leat__buf key, why;
    LEAT_TRY(create(s, &packer, err));
    leat__buf_init(&key, LEAT__MEM_CURATE, 2u << 20);
    leat__buf_init(&why, LEAT__MEM_CURATE, 2u << 20);
    int rc = write_rows(s, packer, &key, &why, err);
    if (rc == 0) rc = leat_packer_finish(packer, &ps, err);
    leat_packer_close(&packer);
    if (rc != 0) (void)!leat_packer_discard(s->opts.output, NULL);
    leat__buf_reset(&key);
    leat__buf_reset(&why);
    return rc;
}
