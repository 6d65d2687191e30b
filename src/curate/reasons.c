/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of reasons.jsonl, counts by rule.
 */
#include "curate/reasons.h"

#include <math.h>
#include <string.h>

void leat__reason_score(unsigned score, const leat__counts *counts, leat__buf *out)
{
    const double value = leat__score_value(score, counts);
    if (score == leat__score_lang) leat__buf_printf(out, "%.9g", value);
    else leat__json_number(out, value);
}

void leat__reason_lang(const leat__counts *counts, leat__buf *out)
{
    if (!counts->lang) return;
    leat__buf_puts(out, ",\"lang\":");
    leat__json_text(out, counts->lang, strlen(counts->lang));
    leat__buf_puts(out, ",\"lang_score\":");
    leat__reason_score(leat__score_lang, counts, out);
}

static void put_name(leat__buf *out, const leat__rule *rule)
{
    leat__buf_putc(out, '"');
    leat__buf_puts(out, leat__scores[rule->score].name);
    leat__buf_putc(out, '.');
    leat__buf_puts(out, leat__bound_name(rule->bound));
    leat__buf_putc(out, '"');
}

void leat__reason_put(const leat__rule_verdict *v, const leat__line_names *names, const leat__text_chunk *c,
                      const leat__line *line, const leat__record_fields *r, leat__buf *out)
{
    const leat__rule *rule = &v->rules->rule[v->first];
    if (names->numbers) leat__line_numbers_want(names->numbers, c->file);
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(names, c, line, r, out);
    leat__buf_puts(out, ",\"file\":");
    leat__json_text(out, names->path[c->file], strlen(names->path[c->file]));
    leat__buf_printf(out, ",\"line\":%llu,\"rule\":", (unsigned long long)line->number);
    put_name(out, rule);
    leat__buf_puts(out, ",\"profile\":\"");
    leat__buf_puts(out, rule->profile);
    leat__buf_puts(out, "\",\"score\":");
    leat__reason_score(rule->score, v->counts, out);
    leat__buf_puts(out, ",\"threshold\":");
    leat__json_number(out, rule->threshold);
    leat__buf_puts(out, ",\"failed\":[");
    const char *comma = "";
    for (unsigned i = 0; i < v->rules->count; i++) {
        if (!v->failed[i]) continue;
        leat__buf_puts(out, comma);
        put_name(out, &v->rules->rule[i]);
        comma = ",";
    }
    leat__buf_putc(out, ']');
    leat__reason_lang(v->counts, out);
    leat__buf_puts(out, "}\n");
}

void leat__reason_count(const leat__rule_verdict *v, uint64_t *counts)
{
    for (unsigned i = 0; i < v->rules->count; i++) counts[2 * i] += v->failed[i];
    counts[2 * v->first + 1]++;
}

uint32_t leat__reason_rules(const leat__rule_set *rules, leat_filter_rule *out)
{
    for (unsigned i = 0; i < rules->count; i++) {
        leat__rule_name(&rules->rule[i], out[i].name, sizeof out[i].name);
        strncpy(out[i].profile, rules->rule[i].profile, sizeof out[i].profile - 1);
        out[i].threshold = rules->rule[i].on ? rules->rule[i].threshold : NAN;
    }
    return rules->count;
}

void leat__reason_rules_json(const leat_filter_rule *rules, uint32_t count, leat__json *j)
{
    leat__json_key(j, "rules");
    leat__json_array(j);
    for (uint32_t i = 0; i < count; i++) {
        const leat_filter_rule *r = &rules[i];
        leat__json_object(j);
        leat__json_kstr(j, "rule", r->name);
        leat__json_kstr(j, "profile", r->profile);
        leat__json_kdouble(j, "threshold", r->threshold);
        leat__json_ku64(j, "failed", r->failed);
        leat__json_ku64(j, "first", r->first);
        leat__json_end(j);
    }
    leat__json_end(j);
}
