/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a filter run as a page.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "curate/filter_report.h"
#include "curate/report_page.h"

static double share(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

static void put_text(leat__buf *out, const char *text)
{
    leat__page_text(out, text, strlen(text));
}

static void put_funnel(leat__buf *out, const leat_filter_stats *st)
{
    uint64_t left = st->documents;
    char note[64];
    leat__page_heading(out, "Funnel");
    leat__page_bars_begin(out);
    leat__page_bar(out, "documents", 1, left, "");
    for (uint32_t i = 0; i < st->rule_count; i++) {
        const leat_filter_rule *r = &st->rules[i];
        if (r->first == 0) continue;
        left -= r->first;
        snprintf(note, sizeof note, "-%llu (%.1f %%)", (unsigned long long)r->first,
                 100 * share(r->first, st->documents));
        leat__page_bar(out, r->name, share(left, st->documents), left, note);
    }
    leat__page_bars_end(out);
}

static void put_rules(leat__buf *out, const leat_filter_stats *st)
{
    leat__page_heading(out, "Rules");
    leat__buf_puts(out, "<table><tr><th>rule</th><th>threshold</th><th>violated</th><th>first violated</th>"
                        "<th>profile</th></tr>\n");
    for (uint32_t i = 0; i < st->rule_count; i++) {
        const leat_filter_rule *r = &st->rules[i];
        leat__buf_puts(out, "<tr><td>");
        put_text(out, r->name);
        leat__buf_puts(out, "</td><td class=\"n\">");
        if (isnan(r->threshold)) leat__buf_puts(out, "off");
        else leat__buf_printf(out, "%.6g", r->threshold);
        leat__buf_printf(out,
                         "</td><td class=\"n\">%llu (%.1f %%)</td>"
                         "<td class=\"n\">%llu</td><td>",
                         (unsigned long long)r->failed, 100 * share(r->failed, st->documents),
                         (unsigned long long)r->first);
        put_text(out, r->profile);
        leat__buf_puts(out, "</td></tr>\n");
    }
    leat__buf_puts(out, "</table>\n");
}

static void put_languages(leat__buf *out, const leat__filter_report *r, const leat_filter_stats *st)
{
    char note[64];
    if (!r->lid) return;
    leat__page_heading(out, "Languages");
    leat__page_bars_begin(out);
    for (uint32_t i = 0; i < leat__lid_labels(r->lid); i++) {
        uint64_t all = r->lang_kept[i] + r->lang_dropped[i];
        if (all == 0) continue;
        snprintf(note, sizeof note, "%llu kept", (unsigned long long)r->lang_kept[i]);
        leat__page_bar(out, leat__lid_label(r->lid, i), share(all, st->documents), all, note);
    }
    leat__page_bars_end(out);
}

/* Writes the histogram of a score with the thresholds of its rules. */
static void put_histogram(leat__buf *out, const leat__filter_report *r, unsigned score)
{
    const uint64_t *kept = r->kept + score * LEAT__REPORT_BINS;
    const uint64_t *dropped = r->dropped + score * LEAT__REPORT_BINS;
    double marks[8], from, to;
    char title[128], right[48];
    leat__page_plot p = {.title = title,
                         .left = "0",
                         .right = right,
                         .first = kept,
                         .second = dropped,
                         .bins = LEAT__REPORT_BINS,
                         .marks = marks};
    for (unsigned i = 0; i < r->rules->count && p.mark_count < LEAT_COUNT(marks); i++) {
        const leat__rule *rule = &r->rules->rule[i];
        if (rule->on && rule->score == score)
            marks[p.mark_count++] = leat__report_place(score, rule->threshold);
    }
    if (p.mark_count == 0 && r->rules->count > 0) return;
    while (p.bins > 1 && kept[p.bins - 1] + dropped[p.bins - 1] == 0) p.bins--;
    for (unsigned i = 0; i < p.mark_count; i++)
        p.bins = (unsigned)LEAT_MIN(LEAT_MAX(p.bins, marks[i] + 1), LEAT__REPORT_BINS);
    leat__report_bin(score, p.bins - 1, &from, &to);
    snprintf(title, sizeof title, "%s: %s", leat__scores[score].name, leat__scores[score].help);
    snprintf(right, sizeof right, p.bins == LEAT__REPORT_BINS ? "%.3g and more" : "%.3g",
             p.bins == LEAT__REPORT_BINS ? from : to);
    leat__page_histogram(out, &p);
}

static void put_example(leat__buf *out, const leat__example *e, const char *side)
{
    leat__buf_printf(out, "<p><b class=\"%s\">%s</b> score %.6g, <code>", side, side, e->score);
    put_text(out, e->id);
    leat__buf_printf(out, "</code>, document %s</p><pre>", e->kept ? "kept" : "dropped");
    put_text(out, e->text);
    leat__buf_puts(out, "</pre>\n");
}

static void put_examples(leat__buf *out, const leat__filter_report *r, const leat_filter_stats *st)
{
    leat__page_heading(out, "Documents nearest to the thresholds");
    for (unsigned i = 0; i < r->rules->count; i++) {
        const leat__top *pass = &r->near[2 * i], *fail = &r->near[2 * i + 1];
        if (pass->count + fail->count == 0) continue;
        leat__buf_puts(out, "<details><summary>");
        put_text(out, st->rules[i].name);
        leat__buf_printf(out, ", threshold %.6g, violated by %llu</summary>\n", st->rules[i].threshold,
                         (unsigned long long)st->rules[i].failed);
        for (uint32_t k = 0; k < pass->count; k++) put_example(out, &pass->at[k], "kept");
        for (uint32_t k = 0; k < fail->count; k++) put_example(out, &fail->at[k], "dropped");
        leat__buf_puts(out, "</details>\n");
    }
}

void leat__filter_report_page(const leat__filter_report *r, const leat_filter_stats *st, leat__buf *out)
{
    leat__page_begin(out, "leat filter");
    leat__buf_printf(out, "<p>%llu document%s: %llu kept, %llu dropped; %llu bad line%s.</p>\n",
                     (unsigned long long)st->documents, leat__plural(st->documents),
                     (unsigned long long)st->kept, (unsigned long long)st->dropped,
                     (unsigned long long)st->bad, leat__plural(st->bad));
    put_funnel(out, st);
    put_rules(out, st);
    put_languages(out, r, st);
    leat__page_heading(out, "Scores");
    leat__buf_puts(out, "<p>Blue: kept documents. Red: dropped ones. Lines: thresholds. Shares have equal "
                        "bins, other scores three bins per doubling.</p><div class=\"plots\">\n");
    for (unsigned i = 0; i < r->scores; i++)
        if (i < leat__score_total || r->lid) put_histogram(out, r, i);
    leat__buf_puts(out, "</div>\n");
    put_examples(out, r, st);
    leat__page_end(out);
}
