/* SPDX-License-Identifier: Apache-2.0
 *
 * The bars of the pages. Any thread, no shared state.
 */
#include "doctor/bars.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/judge.h"

#define SAME_RATE 1.1 /* rates up to this factor above the smallest count as equal: measurements vary */

uint32_t leat__rate_bars(const leat_doctor_diagnosis *d, leat__bar out[LEAT__RATE_BARS])
{
    const double with_transform = leat__doctor_rates_of(&d->facts).part[LEAT_LIMIT_PYTHON];
    const struct {
        const char *name;
        double rate;
        uint32_t limit;
    } rows[LEAT__RATE_BARS] = {{"reads", d->io, LEAT_LIMIT_IO},
                               {"decode + augment", d->cpu, LEAT_LIMIT_CPU},
                               {"delivery", d->delivery, LEAT_LIMIT_DELIVERY},
                               {"memory budget", d->memory, LEAT_LIMIT_MEMORY},
                               {"device", d->device, LEAT_LIMIT_DEVICE},
                               {"trainer", d->trainer, LEAT_LIMIT_TRAINER},
                               {"trainer + transform", with_transform, LEAT_LIMIT_PYTHON},
                               {"reached now", d->rate, LEAT_LIMIT_NONE}};
    double low = INFINITY, high = 0, least = INFINITY; /* least: smallest rate of a part */
    uint32_t count = 0;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        if (!known(rows[i].rate) || rows[i].rate <= 0) continue;
        low = LEAT_MIN(low, rows[i].rate);
        high = LEAT_MAX(high, rows[i].rate);
        if (rows[i].limit != LEAT_LIMIT_NONE) least = LEAT_MIN(least, rows[i].rate);
    }
    if (high <= 0) return 0;
    double span = log(LEAT_MAX(high / low, 1.5));
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        double rate = rows[i].rate;
        bool reached = rows[i].limit == LEAT_LIMIT_NONE;
        /* with short epochs no part is slow; a part that is faster than another is not the bottleneck */
        bool slow = known(rate) && rows[i].limit == d->limit && d->cause != LEAT_CAUSE_SHORT_EPOCHS &&
                    !(rate > SAME_RATE * least);
        bool rare = rows[i].limit == LEAT_LIMIT_MEMORY || rows[i].limit == LEAT_LIMIT_PYTHON ||
                    rows[i].limit == LEAT_LIMIT_DEVICE;
        if (!known(rate) && (reached || rare)) continue;
        leat__bar *b = &out[count++];
        *b = (leat__bar){.name = rows[i].name, .reached = reached, .limit = !reached && slow};
        if (known(rate)) leat__format_count(rate, b->value, sizeof b->value);
        else snprintf(b->value, sizeof b->value, "not known");
        if (rate > 0) b->share = LEAT_MIN(1.0, 0.25 + 0.75 * log(LEAT_MAX(rate / low, 1.0)) / span);
    }
    return count;
}

uint32_t leat__share_bars(const leat_doctor_diagnosis *d, leat__bar out[LEAT__SHARE_BARS])
{
    const leat_doctor_facts *f = &d->facts;
    double work = f->decode_share, augment = or_else(f->augment_share, 0);
    const struct {
        const char *name;
        double share;
    } rows[LEAT__SHARE_BARS] = {
        {or_else(f->prepare_ms, 0) > 0 ? "wait and transform" : "waiting for data", d->lost},
        {"workers decoding", known(work) ? work * (1 - augment) : -1},
        {"workers augmenting", known(f->augment_share) ? or_else(work, 0) * augment : -1},
        {"work waits: worker", f->decode_ready},
        {"work waits: memory", f->blocked},
        {"CPUs busy", known(f->cpu_used) && f->cpus > 0 ? f->cpu_used / f->cpus : -1},
        {"waiting for a CPU", f->run_delay},
        {"quota throttled", f->throttled}};
    uint32_t count = 0;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        if (!known(rows[i].share)) continue;
        leat__bar *b = &out[count++];
        *b = (leat__bar){.name = rows[i].name, .share = LEAT_MIN(1.0, rows[i].share), .limit = i == 0};
        snprintf(b->value, sizeof b->value, "%.1f %%", 100 * b->share);
    }
    return count;
}
