/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis as a page for people: the sentence, a bar per part, the evidence, the remedies.
 * Plain text; every line starts at the left margin or two blanks in.
 */
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/judge.h"

#define BAR 36
#define TEXT 24

static const char *const full_mark[2] = {"\xe2\x96\x88", "#"};
static const char *const rest_mark[2] = {"\xc2\xb7", "."};

static void bar(leat__buf *out, double share, bool ascii)
{
    int full = (int)(share * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        leat__buf_puts(out, i < full ? full_mark[ascii] : rest_mark[ascii]);
}

/* Bars of rates are logarithmic: a part that can do a hundred times more must not hide the
 * difference between the two that matter. */
static double rate_share(double rate, double low, double high)
{
    if (!known(rate) || rate <= 0) return 0;
    double span = log(LEAT_MAX(high / low, 1.5));
    return LEAT_MIN(1.0, 0.25 + 0.75 * log(LEAT_MAX(rate / low, 1.0)) / span);
}

static void rate_lines(leat__buf *out, const leat_doctor_diagnosis *d, bool ascii)
{
    const struct {
        const char *name;
        double rate;
        uint32_t limit;
    } rows[] = {{"reads", d->io, LEAT_LIMIT_IO},
                {"decode + augment", d->cpu, LEAT_LIMIT_CPU},
                {"delivery", d->delivery, LEAT_LIMIT_DELIVERY},
                {"memory budget", d->memory, LEAT_LIMIT_MEMORY},
                {"trainer", d->trainer, LEAT_LIMIT_TRAINER},
                {"reached now", d->rate, LEAT_LIMIT_NONE}};
    double low = INFINITY, high = 0;
    char text[TEXT];
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        if (!known(rows[i].rate) || rows[i].rate <= 0) continue;
        low = LEAT_MIN(low, rows[i].rate);
        high = LEAT_MAX(high, rows[i].rate);
    }
    if (high <= 0) return;
    leat__buf_puts(out, "\nSamples per second that each part could deliver (logarithmic)\n");
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        if (!known(rows[i].rate)) {
            if (rows[i].limit != LEAT_LIMIT_MEMORY && rows[i].limit != LEAT_LIMIT_NONE)
                leat__buf_printf(out, "  %-19s not known\n", rows[i].name);
            continue;
        }
        leat__buf_printf(out, "  %-19s", rows[i].name);
        bar(out, rate_share(rows[i].rate, low, high), ascii);
        leat__buf_printf(out, " %9s%s\n", leat__format_count(rows[i].rate, text, TEXT),
                         rows[i].limit == d->limit && d->limit != LEAT_LIMIT_NONE ? "  <- the limit" : "");
    }
}

static void share_lines(leat__buf *out, const leat_doctor_diagnosis *d, bool ascii)
{
    const leat_doctor_facts *f = &d->facts;
    double augment = or_else(f->augment_share, 0);
    const struct {
        const char *name;
        double share;
    } rows[] = {{"waiting for data", d->lost},
                {"workers decoding", known(f->decode_share) ? f->decode_share * (1 - augment) : -1},
                {"and augmenting", known(f->augment_share) ? or_else(f->decode_share, 0) * augment : -1},
                {"work for a worker", f->decode_ready},
                {"work for memory", f->blocked},
                {"CPUs busy", known(f->cpu_used) && f->cpus > 0 ? LEAT_MIN(1.0, f->cpu_used / f->cpus) : -1},
                {"standing in line", f->run_delay},
                {"quota throttled", f->throttled}};
    bool title = false;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        if (!known(rows[i].share)) continue;
        if (!title) leat__buf_puts(out, "\nShare of the time\n");
        title = true;
        leat__buf_printf(out, "  %-19s", rows[i].name);
        bar(out, rows[i].share, ascii);
        leat__buf_printf(out, " %8.1f %%\n", 100 * rows[i].share);
    }
}

static void lines(leat__buf *out, const char *title, const char *text, size_t width,
                  uint32_t count)
{
    if (count == 0) return;
    leat__buf_printf(out, "\n%s\n", title);
    for (uint32_t i = 0; i < count; i++) leat__buf_printf(out, "  - %s\n", text + i * width);
}

static void remedy_lines(leat__buf *out, const leat_doctor_diagnosis *d)
{
    char text[TEXT];
    leat__buf_puts(out, "\nRemedies, by predicted gain\n");
    if (d->remedy_count == 0) leat__buf_puts(out, "  none that can be priced\n");
    for (uint32_t i = 0; i < d->remedy_count; i++) {
        const leat_doctor_remedy *r = &d->remedies[i];
        leat__buf_printf(out, "  %5.2fx  %s\n", r->gain, r->action);
        leat__buf_printf(out, "          %s samples/s, then %s limits (%s)",
                         leat__format_count(r->rate, text, TEXT), leat_doctor_limit_name(r->next),
                         leat_doctor_basis_name(r->basis));
        if (r->set[0] != '\0') leat__buf_printf(out, "; load flags: %s", r->set);
        leat__buf_putc(out, '\n');
    }
}

void leat__doctor_page(const leat_doctor_diagnosis *d, leat__buf *out, bool ascii)
{
    leat__buf_printf(out, "%s\n", d->sentence);
    leat__buf_printf(out, "%s; confidence %.0f %%", leat_doctor_grade_name(d->grade), 100 * d->confidence);
    if (d->next != LEAT_LIMIT_NONE)
        leat__buf_printf(out, "; behind it: %s", leat_doctor_limit_name(d->next));
    leat__buf_putc(out, '\n');
    lines(out, "INCOMPLETE: not known", d->missing[0], sizeof d->missing[0], d->missing_count);
    rate_lines(out, d, ascii);
    share_lines(out, d, ascii);
    lines(out, "Evidence", d->evidence[0], sizeof d->evidence[0], d->evidence_count);
    lines(out, "Also found", d->findings[0], sizeof d->findings[0], d->finding_count);
    remedy_lines(out, d);
}
