/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis as a page for people: the sentence, a bar per part, the evidence, the remedies.
 * Plain text; every line starts at the left margin or is indented by two blanks.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/bars.h"
#include "doctor/judge.h"

#define BAR 36
#define TEXT 24

static const char *const full_mark[2] = {"\xe2\x96\x88", "#"};
static const char *const rest_mark[2] = {"\xc2\xb7", "."};

static void bar(leat__buf *out, double share, bool ascii)
{
    int full = (int)(share * BAR + 0.5);
    for (int i = 0; i < BAR; i++) leat__buf_puts(out, i < full ? full_mark[ascii] : rest_mark[ascii]);
}

static void rate_lines(leat__buf *out, const leat_doctor_diagnosis *d, bool ascii)
{
    leat__bar rows[LEAT__RATE_BARS];
    uint32_t count = leat__rate_bars(d, rows);
    if (count > 0) leat__buf_puts(out, "\nSamples per second that each part could deliver (logarithmic)\n");
    for (uint32_t i = 0; i < count; i++) {
        leat__buf_printf(out, "  %-19s", rows[i].name);
        if (rows[i].share > 0 || rows[i].limit) {
            bar(out, rows[i].share, ascii);
            leat__buf_printf(out, " %9s%s\n", rows[i].value, rows[i].limit ? "  <- the limit" : "");
        } else {
            leat__buf_printf(out, " %s\n", rows[i].value);
        }
    }
}

static void share_lines(leat__buf *out, const leat_doctor_diagnosis *d, bool ascii)
{
    leat__bar rows[LEAT__SHARE_BARS];
    uint32_t count = leat__share_bars(d, rows);
    if (count > 0) leat__buf_puts(out, "\nShare of the time\n");
    for (uint32_t i = 0; i < count; i++) {
        leat__buf_printf(out, "  %-19s", rows[i].name);
        bar(out, rows[i].share, ascii);
        leat__buf_printf(out, " %10s\n", rows[i].value);
    }
}

static void decision_lines(leat__buf *out, const leat_doctor_facts *f)
{
    if (f->decision_count == 0) return;
    leat__buf_puts(out, "\nDecided by the controller");
    if (f->decisions_made > f->decision_count)
        leat__buf_printf(out, ", the last %u of %u", f->decision_count, f->decisions_made);
    leat__buf_putc(out, '\n');
    for (uint32_t i = 0; i < f->decision_count; i++) {
        const leat_doctor_decision *d = &f->decisions[i];
        leat__buf_printf(out, "  %7.2f s  %s %u -> %u: %s\n", d->at_s, d->knob, d->from, d->to, d->reason);
    }
}

static void lines(leat__buf *out, const char *title, const char *text, size_t width, uint32_t count)
{
    if (count == 0) return;
    leat__buf_printf(out, "\n%s\n", title);
    for (uint32_t i = 0; i < count; i++) leat__buf_printf(out, "  - %s\n", text + i * width);
}

static const char *const basis_words[] = {"measured", "estimated from the rates above, not tried",
                                          "a guide's figure"};

/* Returns whether the remedy was tried, and by how much its measurements disagree. */
static bool tried(const leat_doctor_diagnosis *d, const leat_doctor_remedy *r, double *spread)
{
    const leat_doctor_facts *f = &d->facts;
    for (uint32_t i = 0; i < f->trial_count && r->set[0] != '\0'; i++) {
        *spread = f->trials[i].spread;
        if (strcmp(f->trials[i].set, r->set) == 0) return true;
    }
    for (uint32_t i = 0; i < f->option_count; i++) {
        *spread = f->options[i].spread;
        if (strcmp(f->options[i].action, r->action) == 0) return true;
    }
    *spread = f->larger_spread;
    return known(*spread) && leat__str_starts(r->action, "batches of ");
}

/* Says what a gain rests on. A remedy that was tried is an estimate when its runs disagree, are too short,
 * shared the CPUs with other processes, or cannot show its effect. */
static void basis_text(const leat_doctor_diagnosis *d, const leat_doctor_remedy *r, char *out, size_t size)
{
    double spread, others = or_else(d->facts.remedy_others, 0);
    if (r->basis != LEAT_BASIS_MODEL || !tried(d, r, &spread))
        snprintf(out, size, "%s", basis_words[r->basis]);
    else if (others > LEAT__AGREES)
        snprintf(out, size, "an estimate: other processes took %.0f %% of the CPUs when it was tried",
                 100 * others);
    else if (!known(spread))
        snprintf(out, size, "an estimate: tried with fewer than %d batches", LEAT__STEPS_ENOUGH);
    else if (spread > LEAT__AGREES)
        snprintf(out, size, "an estimate: its trials differ by %.0f %%", 100 * spread);
    else snprintf(out, size, "estimated from the rates above: a short trial does not show it");
}

static void remedy_lines(leat__buf *out, const leat_doctor_diagnosis *d)
{
    char text[TEXT], basis[96];
    bool guesses = false;
    leat__buf_puts(out, "\nRemedies, by predicted gain\n");
    if (d->remedy_count == 0 || d->remedies[0].basis == LEAT_BASIS_GUIDE)
        leat__buf_puts(out, "  none with a known gain\n");
    for (uint32_t i = 0; i < d->remedy_count; i++) {
        const leat_doctor_remedy *r = &d->remedies[i];
        if (r->basis == LEAT_BASIS_GUIDE && !guesses) {
            guesses = true;
            leat__buf_puts(out, "\nEstimates from published guides, not measured here\n");
        }
        leat__buf_printf(out, "  %5.2fx  %s\n", r->gain, r->action);
        basis_text(d, r, basis, sizeof basis);
        leat__buf_printf(out, "          %s samples/s, then %s limits (%s)",
                         leat__format_count(r->rate, text, TEXT), leat_doctor_limit_name(r->next), basis);
        if (r->set[0] != '\0') leat__buf_printf(out, "; load flags: %s", r->set);
        leat__buf_putc(out, '\n');
    }
}

void leat__doctor_page(const leat_doctor_diagnosis *d, leat__buf *out, bool ascii)
{
    leat__buf_printf(out, "%s\n", d->sentence);
    leat__buf_printf(out, "%s; confidence %.0f %%", leat_doctor_grade_name(d->grade), 100 * d->confidence);
    if (d->next != LEAT_LIMIT_NONE)
        leat__buf_printf(out, "; next limit: %s", leat_doctor_limit_name(d->next));
    leat__buf_putc(out, '\n');
    lines(out, "INCOMPLETE: not known", d->missing[0], sizeof d->missing[0], d->missing_count);
    rate_lines(out, d, ascii);
    share_lines(out, d, ascii);
    lines(out, "Evidence", d->evidence[0], sizeof d->evidence[0], d->evidence_count);
    lines(out, "Also found", d->findings[0], sizeof d->findings[0], d->finding_count);
    decision_lines(out, &d->facts);
    remedy_lines(out, d);
}
