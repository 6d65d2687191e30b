/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources that share the positions of an epoch. See shares.h.
 */
#include "loader/shares.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/perm.h"
#include "base/rng.h"
#include "loader/order.h"
#include "loader/state.h"

#pragma GCC diagnostic error "-Wswitch" /* a new order must be handled here */

#define QUASI_STRETCH 4096u /* positions: enough to mix sources while their pages are still read together */
#define QUASI_BATCHES 64u
#define PASSES_MAX 64u /* quasi: maximum passes of a source per epoch; each has an order of its pages */

enum { TWEAK_STRETCH = 0x73, TWEAK_PASS = 0x74, OP_DRAW = 0x7765 };

typedef unsigned __int128 u128;

typedef struct source {
    leat__share_source is;
    uint64_t seed;
    uint64_t unit_count;  /* number of its units: draws, or batches of draws */
    uint64_t first_pass;  /* first pass of this epoch */
    uint64_t offset;      /* offset in that pass */
    leat__order **passes; /* quasi: order of each pass of this epoch; NULL = a keyed order without memory */
    uint32_t pass_count;
} source;

struct leat__shares {
    leat__shares_opts opts;
    source *sources;
    bool shuffled; /* the order is shuffled */
    uint64_t epoch;
    uint64_t unit;     /* positions dealt together: 1, or a global batch */
    uint64_t units;    /* per epoch */
    uint64_t stretch;  /* units shuffled together */
    uint64_t left_out; /* set by deal_batches */
    uint32_t never;
};

/* ---- draws -------------------------------------------------------------------------------- */

static const char *name_of(const leat_loader_source *g)
{
    return g->path != NULL ? g->path : "?";
}

static int check_source(const leat_loader_source *g, uint64_t size, bool weighted, leat_error *err)
{
    if (!(g->weight >= 0) || !isfinite(g->weight))
        return leat__fail(err, LEAT_EINVAL, "`mix`: the weight of %s is %g: it must be 0 or more", name_of(g),
                          g->weight);
    if (!(g->repeat >= 0) || !isfinite(g->repeat))
        return leat__fail(err, LEAT_EINVAL, "`mix`: `repeat` of %s is %g: it must be 0 or more", name_of(g),
                          g->repeat);
    if (weighted && (g->repeat != 0 || g->choose != 0))
        return leat__fail(err, LEAT_EINVAL, "`mix`: %s: give either weights, or `repeat` or `choose`",
                          name_of(g));
    if (g->repeat != 0 && g->choose != 0)
        return leat__fail(err, LEAT_EINVAL, "`mix`: %s: give either `repeat` or `choose`, not both",
                          name_of(g));
    if (size == 0 && (g->weight > 0 || (g->choose > 0 && g->choose != LEAT_CHOOSE_NONE)))
        return leat__fail(err, LEAT_EINVAL, "`mix`: %s has no samples to draw from", name_of(g));
    return 0;
}

/* Computes draws in proportion to the weights, as whole numbers that sum to `epoch`: the largest remainders
 * get one more. */
static void by_weight(const leat_loader_source *given, double sum, uint32_t count, uint64_t epoch,
                      uint64_t *draws)
{
    uint64_t given_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        double share = given[i].weight / sum * (double)epoch;
        draws[i] = LEAT_MIN((uint64_t)share, epoch - given_out);
        given_out += draws[i];
    }
    for (; given_out < epoch; given_out++) {
        uint32_t best = count;
        double most = -1e300;
        for (uint32_t i = 0; i < count; i++) {
            double rest = given[i].weight / sum * (double)epoch - (double)draws[i];
            if (given[i].weight > 0 && rest > most) {
                most = rest;
                best = i;
            }
        }
        LEAT_ASSERT(best < count);
        draws[best]++;
    }
}

int leat__shares_draws(const leat_loader_source *given, const uint64_t *size, uint32_t count, uint64_t epoch,
                       uint64_t *draws, leat_error *err)
{
    double sum = 0;
    bool weighted = false;
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++) weighted |= given[i].weight != 0;
    for (uint32_t i = 0; i < count; i++) {
        LEAT_TRY(check_source(&given[i], size[i], weighted, err));
        sum += given[i].weight;
        if (!leat__add_u64(all, size[i], &all)) all = UINT64_MAX;
    }
    if (weighted && !isfinite(sum))
        return leat__fail(err, LEAT_EINVAL, "`mix`: the sum of the weights is %g", sum);
    if (epoch > 0 && !weighted)
        return leat__fail(err, LEAT_EINVAL,
                          "`mix`: `epoch_size` needs weights: without them, the packs, `repeat` and `choose` "
                          "set the number of samples");
    if (epoch == 0) epoch = all;
    if (weighted) {
        if (epoch > LEAT__PERM_MAX) return leat__fail(err, LEAT_EINVAL, "more than 2^48 samples per epoch");
        by_weight(given, sum, count, epoch, draws);
    }
    for (uint32_t i = 0; i < count && !weighted; i++) {
        double repeat = given[i].repeat != 0 ? given[i].repeat : 1;
        double times = floor(repeat * (double)size[i] + 0.5);
        if (given[i].choose == LEAT_CHOOSE_NONE) draws[i] = 0;
        else if (given[i].choose > 0) draws[i] = given[i].choose;
        else draws[i] = times > (double)LEAT__PERM_MAX ? LEAT__PERM_MAX + 1 : (uint64_t)times;
    }
    all = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!leat__add_u64(all, draws[i], &all)) all = UINT64_MAX;
    }
    if (all > LEAT__PERM_MAX) return leat__fail(err, LEAT_EINVAL, "more than 2^48 samples per epoch");
    return 0;
}

/* ---- open --------------------------------------------------------------------------------- */

static uint64_t tweak_of(uint64_t epoch, uint64_t use, uint64_t number)
{
    return leat__mix64(epoch ^ use << 56) ^ leat__mix64(number ^ 0x6d);
}

/* Converts draws to whole batches per source; the largest remainders are rounded up. */
static int deal_batches(leat__shares *s, uint64_t draws, leat_error *err)
{
    uint64_t batch = s->opts.global_batch, units = draws / batch, given = 0;

    if (units == 0)
        return leat__fail(err, LEAT_EINVAL,
                          "`mix`: batches of one pack each need an epoch of at least one global "
                          "batch (%llu), not %llu samples",
                          (unsigned long long)batch, (unsigned long long)draws);
    s->unit = batch;
    s->units = units;
    for (uint32_t i = 0; i < s->opts.count; i++) {
        s->sources[i].unit_count = s->sources[i].is.draws / batch;
        given += s->sources[i].unit_count;
    }
    for (; given < units; given++) {
        source *best = NULL;
        for (uint32_t i = 0; i < s->opts.count; i++) {
            source *c = &s->sources[i];
            if (c->unit_count * batch < c->is.draws &&
                (best == NULL ||
                 c->is.draws - c->unit_count * batch > best->is.draws - best->unit_count * batch))
                best = c;
        }
        LEAT_ASSERT(best != NULL);
        best->unit_count++;
    }
    for (uint32_t i = 0; i < s->opts.count; i++) {
        uint64_t *asked = &s->sources[i].is.draws, dealt = s->sources[i].unit_count * batch;
        s->never += *asked > 0 && dealt == 0;
        s->left_out += *asked > dealt ? *asked - dealt : 0;
        *asked = dealt;
    }
    return 0;
}

static int open_passes(leat__shares *s, source *c, uint64_t all, leat_error *err)
{
    double share = (double)s->opts.window_pages * (double)c->is.draws / (double)all;
    uint32_t window = share < 1 ? 1 : (uint32_t)share;

    if (s->opts.order != LEAT_ORDER_QUASI || s->opts.replacement || c->is.pages <= window || c->is.draws == 0)
        return 0;
    uint64_t passes = c->is.draws / c->is.size + 2;
    if (passes > PASSES_MAX)
        return leat__fail(err, LEAT_EINVAL,
                          "`mix`: a pack larger than `window_pages` is repeated more than %u times "
                          "in an epoch: use `order` random",
                          PASSES_MAX - 2);
    c->passes = LEAT_NEW_ARRAY(LOADER, leat__order *, passes);
    if (c->passes == NULL) return leat__fail_nomem(err, passes * 8, "the order of a pack");
    leat__order_opts o = {.kind = LEAT_ORDER_QUASI,
                          .seed = c->seed,
                          .count = c->is.size,
                          .streams = s->opts.streams,
                          .window_pages = window,
                          .pages = c->is.pages,
                          .page_samples = c->is.page_samples};
    for (; c->pass_count < passes; c->pass_count++)
        LEAT_TRY(leat__order_open(&c->passes[c->pass_count], &o, err));
    return 0;
}

static uint64_t stretch_of(const leat__shares *s)
{
    bool single = s->opts.batches == LEAT_MIX_SINGLE;
    if (!s->shuffled) return 1;
    if (s->opts.batches == LEAT_MIX_STRATIFIED) return s->opts.global_batch;
    if (s->opts.order == LEAT_ORDER_QUASI) return single ? QUASI_BATCHES : QUASI_STRETCH;
    return s->units;
}

static int set_up(leat__shares *s, leat_error *err)
{
    uint64_t draws = 0;

    s->sources = LEAT_NEW_ARRAY(LOADER, source, (uint64_t)s->opts.count + 1);
    if (s->sources == NULL) return leat__fail_nomem(err, s->opts.count * sizeof *s->sources, "packs");
    for (uint32_t i = 0; i < s->opts.count; i++) {
        source *c = &s->sources[i];
        c->is = s->opts.sources[i];
        c->seed = leat__mix64(s->opts.seed ^ leat__mix64(i + UINT64_C(0x5eed)));
        c->unit_count = c->is.draws;
        draws += c->is.draws;
    }
    s->opts.sources = NULL;
    if (draws == 0) return leat__fail(err, LEAT_EINVAL, "`mix`: no pack has samples to draw");
    s->unit = 1;
    s->units = draws;
    if (s->opts.batches == LEAT_MIX_SINGLE) LEAT_TRY(deal_batches(s, draws, err));
    s->stretch = stretch_of(s);
    LEAT_ASSERT(s->unit > 0 && s->units > 0 && s->stretch > 0);
    for (uint32_t i = 0; i < s->opts.count; i++)
        LEAT_TRY(open_passes(s, &s->sources[i], leat__shares_count(s), err));
    leat__shares_epoch(s, 0);
    return 0;
}

int leat__shares_open(leat__shares **out, const leat__shares_opts *opts, leat_error *err)
{
    leat__shares *s = LEAT_NEW(LOADER, leat__shares);

    *out = NULL;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a mix");
    s->opts = *opts;
    s->shuffled = leat__order_shuffled(opts->order);
    int rc = set_up(s, err);
    if (rc == 0) *out = s;
    else leat__shares_close(&s);
    return rc;
}

void leat__shares_close(leat__shares **out)
{
    leat__shares *s = *out;
    if (s == NULL) return;
    for (uint32_t i = 0; s->sources != NULL && i < s->opts.count; i++) {
        source *c = &s->sources[i];
        for (uint32_t p = 0; p < c->pass_count; p++) leat__order_close(&c->passes[p]);
        leat__free(c->passes);
    }
    leat__free(s->sources);
    leat__free(s);
    *out = NULL;
}

void leat__shares_epoch(leat__shares *s, uint64_t epoch)
{
    s->epoch = epoch;
    for (uint32_t i = 0; i < s->opts.count; i++) {
        source *c = &s->sources[i];
        if (c->is.size == 0) continue;
        u128 before = (u128)epoch * c->is.draws;
        c->first_pass = (uint64_t)(before / c->is.size);
        c->offset = (uint64_t)(before % c->is.size);
        for (uint32_t p = 0; p < c->pass_count; p++) leat__order_epoch(c->passes[p], c->first_pass + p);
    }
}

uint64_t leat__shares_left_out(const leat__shares *s, uint32_t *packs)
{
    *packs = s->never;
    return s->left_out;
}

uint64_t leat__shares_count(const leat__shares *s)
{
    return s->units * s->unit;
}

void leat__shares_range(const leat__shares *s, uint32_t number, uint64_t *first, uint64_t *size)
{
    LEAT_ASSERT(number < s->opts.count);
    *first = s->sources[number].is.first;
    *size = s->sources[number].is.size;
}

uint64_t leat__shares_memory(const leat__shares *s)
{
    uint64_t bytes = sizeof *s + s->opts.count * sizeof *s->sources;
    for (uint32_t i = 0; i < s->opts.count; i++) {
        for (uint32_t p = 0; p < s->sources[i].pass_count; p++)
            bytes += leat__order_memory(s->sources[i].passes[p]);
    }
    return bytes;
}

/* ---- which source ------------------------------------------------------------------------- */

/* Webster's method: unit k of a source with n units has its turn at time (2k + 1) / 2n. */
static bool turn_before(const source *a, uint64_t ka, const source *b, uint64_t kb)
{
    return (u128)(2 * ka + 1) * b->unit_count < (u128)(2 * kb + 1) * a->unit_count;
}

/* Sets counts[i] to the units of source i among the first t. The sum of the rounded shares may differ from t
 * by a few. Then the units next in turn are added, or the last ones removed. Of equal turns, the first source
 * comes first. */
static void count_units(const leat__shares *s, uint64_t t, uint64_t *counts)
{
    LEAT_ASSERT(t <= s->units);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->opts.count; i++) {
        u128 twice = (u128)2 * s->sources[i].unit_count * t + s->units;
        counts[i] = (uint64_t)(twice / ((u128)2 * s->units));
        sum += counts[i];
    }
    for (; sum < t; sum++) {
        uint32_t best = s->opts.count;
        for (uint32_t i = 0; i < s->opts.count; i++) {
            if (counts[i] == s->sources[i].unit_count) continue;
            if (best == s->opts.count ||
                turn_before(&s->sources[i], counts[i], &s->sources[best], counts[best]))
                best = i;
        }
        LEAT_ASSERT(best < s->opts.count);
        counts[best]++;
    }
    for (; sum > t; sum--) {
        uint32_t best = s->opts.count;
        for (uint32_t i = 0; i < s->opts.count; i++) {
            if (counts[i] == 0) continue;
            if (best == s->opts.count ||
                !turn_before(&s->sources[i], counts[i] - 1, &s->sources[best], counts[best] - 1))
                best = i;
        }
        LEAT_ASSERT(best < s->opts.count);
        counts[best]--;
    }
    LEAT_ASSERT(sum == t);
}

/* One stretch of units: how many each source has in it, and before it. */
typedef struct stretch {
    uint64_t number, first, length;
    uint64_t before[LEAT_LOADER_SOURCES_MAX]; /* units of the source before the stretch */
    uint64_t ends[LEAT_LOADER_SOURCES_MAX];   /* where each source ends, concatenated in the stretch */
    leat__perm shuffle;
} stretch;

static void enter_stretch(const leat__shares *s, uint64_t number, stretch *w)
{
    LEAT_ASSERT(number * s->stretch < s->units);
    uint64_t sum = 0;

    w->number = number;
    w->first = number * s->stretch;
    w->length = LEAT_MIN(s->stretch, s->units - w->first);
    count_units(s, w->first, w->before);
    count_units(s, w->first + w->length, w->ends);
    for (uint32_t i = 0; i < s->opts.count; i++) {
        sum += w->ends[i] - w->before[i];
        w->ends[i] = sum;
    }
    LEAT_ASSERT(sum == w->length);
    if (s->shuffled)
        leat__perm_init(&w->shuffle, w->length, s->opts.seed, tweak_of(s->epoch, TWEAK_STRETCH, number));
}

/* Returns the sample of draw `k` of this epoch. */
static uint64_t draw(const leat__shares *s, const source *c, uint64_t k, uint64_t *salt)
{
    leat__perm p;

    LEAT_ASSERT(k < c->is.draws && c->is.size > 0);
    if (s->opts.replacement) {
        leat__rng r;
        leat__rng_init(&r, c->seed, s->epoch, k, OP_DRAW);
        *salt = k + 1;
        return c->is.first + leat__rng_below(&r, c->is.size);
    }
    uint64_t pass = (c->offset + k) / c->is.size, at = (c->offset + k) % c->is.size;
    *salt = pass;
    LEAT_ASSERT(c->passes == NULL || pass < c->pass_count);
    if (c->passes != NULL) return c->is.first + leat__order_at(c->passes[pass], at);
    switch (s->opts.order) {
    case LEAT_ORDER_SEQUENTIAL: break;
    case LEAT_ORDER_RANDOM:
    case LEAT_ORDER_QUASI: /* without passes: one window holds all pages */
        leat__perm_init(&p, c->is.size, c->seed, tweak_of(c->first_pass + pass, TWEAK_PASS, 0));
        at = leat__perm_at(&p, at);
        break;
    }
    return c->is.first + at;
}

void leat__shares_fill(const leat__shares *s, uint64_t first, uint64_t step, uint32_t n, uint64_t *places,
                       uint64_t *salts)
{
    stretch w;

    w.number = UINT64_MAX;
    for (uint32_t p = 0; p < n; p++) {
        uint64_t position = first + p * step, unit = position / s->unit, low = 0, high = s->opts.count - 1;
        if (unit / s->stretch != w.number) enter_stretch(s, unit / s->stretch, &w);
        uint64_t at = unit - w.first;
        if (s->shuffled) at = leat__perm_at(&w.shuffle, at);
        while (low < high) { /* the first source that ends past it */
            uint64_t middle = low + (high - low) / 2;
            if (w.ends[middle] > at) high = middle;
            else low = middle + 1;
        }
        uint64_t k = w.before[low] + at - (low > 0 ? w.ends[low - 1] : 0);
        places[p] = draw(s, &s->sources[low], k * s->unit + position % s->unit, &salts[p]);
    }
}
