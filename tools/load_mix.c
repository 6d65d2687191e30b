/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags that define how several packs are mixed in one loader.
 */
#include "load_mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

const leat__param cli_mix_options[] = {
    CLI_STRING("mix", 0, NULL, "W,W,...", "weight of each pack: its share of the epoch"),
    CLI_STRING("repeat", 0, NULL, "R,R,...", "how often the samples of each pack come per epoch, also 0.5"),
    CLI_STRING("choose", 0, NULL, "N,N,...",
               "how many samples of each pack come per epoch; all = every sample, as often as --repeat says"),
    CLI_INT("epoch-size", 0, "0", 0, 281474976710656.0, "N",
            "with --mix: samples per epoch, 0 = as many as all packs have"),
    CLI_CHOICE("mix-batches", 0, "shuffled", "shuffled|stratified|single",
               "packs in a batch: as the shuffle has it, in the proportions, or one"),
    CLI_FLAG("replacement", 0, "draw samples of a pack with replacement"),
    CLI_STRING("default", 0, NULL, "FIELD=N,...", "values of fields that some packs lack"),
    CLI_END,
};

/* Parses the next of the numbers separated by commas and moves *text past it. */
static int next_number(const char *flag, const char **text, double *out, leat_error *err)
{
    char *end;
    *out = strtod(*text, &end);
    if (end == *text || (*end != ',' && *end != '\0') || !isfinite(*out) || *out < 0)
        return leat__fail(err, LEAT_EINVAL, "--%s: '%s' is not a list of numbers of 0 and more", flag, *text);
    *text = *end == ',' ? end + 1 : end;
    return 0;
}

static int too_few(const char *flag, const load_mix *m, leat_error *err)
{
    return leat__fail(err, LEAT_EINVAL, "--%s: there must be one number for each of the %u packs", flag,
                      m->count);
}

static int read_weights(load_mix *m, const char *text, leat_error *err)
{
    double sum = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (*text == '\0') return too_few("mix", m, err);
        LEAT_TRY(next_number("mix", &text, &m->sources[i].weight, err));
        sum += m->sources[i].weight;
    }
    if (*text != '\0') return too_few("mix", m, err);
    return sum > 0 ? 0 : leat__fail(err, LEAT_EINVAL, "--mix: all weights are 0");
}

static int read_repeats(load_mix *m, const char *text, leat_error *err)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (*text == '\0') return too_few("repeat", m, err);
        LEAT_TRY(next_number("repeat", &text, &m->sources[i].repeat, err));
        if (m->sources[i].repeat == 0) m->sources[i].choose = LEAT_CHOOSE_NONE;
    }
    return *text == '\0' ? 0 : too_few("repeat", m, err);
}

static int read_chosen(load_mix *m, const char *text, leat_error *err)
{
    for (uint32_t i = 0; i < m->count; i++) {
        double n;
        if (*text == '\0') return too_few("choose", m, err);
        if (leat__str_starts(text, "all") && (text[3] == ',' || text[3] == '\0')) {
            text += text[3] == ',' ? 4 : 3;
            continue;
        }
        LEAT_TRY(next_number("choose", &text, &n, err));
        if (n != floor(n) || n > 281474976710656.0)
            return leat__fail(err, LEAT_EINVAL, "--choose: %g is not a whole number of samples", n);
        m->sources[i].choose = n > 0 ? (uint64_t)n : LEAT_CHOOSE_NONE;
    }
    return *text == '\0' ? 0 : too_few("choose", m, err);
}

/* Parses FIELD=NUMBER,... pairs. */
static int read_defaults(load_mix *m, const char *text, leat_error *err)
{
    m->text = leat__strdup(LEAT__MEM_MISC, text);
    m->defaults = LEAT_NEW_ARRAY(MISC, leat_loader_default, strlen(text) + 1);
    if (m->text == NULL || m->defaults == NULL) return leat__fail_nomem(err, strlen(text), "defaults");
    for (char *at = m->text; at != NULL && *at != '\0';) {
        char *comma = strchr(at, ','), *equal, *end;
        if (comma != NULL) *comma = '\0';
        equal = strchr(at, '=');
        leat_loader_default *d = &m->defaults[m->default_count++];
        if (equal != NULL) {
            *equal = '\0';
            d->field = at;
            d->i = strtoll(equal + 1, &end, 10);
            if (*end != '\0') d->i = 0;
            d->f = strtod(equal + 1, &end);
        }
        if (equal == NULL || equal == at || end == equal + 1 || *end != '\0')
            return leat__fail(err, LEAT_EINVAL, "--default: '%s' is not FIELD=NUMBER,...", text);
        at = comma != NULL ? comma + 1 : NULL;
    }
    return 0;
}

int load_mix_read(load_mix *m, load_flags *f, cli *c, leat_error *err)
{
    const char *mix = cli_str(c, "mix"), *repeat = cli_str(c, "repeat");
    const char *choose = cli_str(c, "choose"), *fill = cli_str(c, "default");

    memset(m, 0, sizeof *m);
    m->count = (uint32_t)cli_arg_count(c);
    m->sources = LEAT_NEW_ARRAY(MISC, leat_loader_source, m->count);
    if (m->sources == NULL) return leat__fail_nomem(err, m->count * sizeof *m->sources, "packs");
    for (uint32_t i = 0; i < m->count; i++) m->sources[i].path = cli_arg(c, i);
    if (mix != NULL) LEAT_TRY(read_weights(m, mix, err));
    if (repeat != NULL) LEAT_TRY(read_repeats(m, repeat, err));
    if (choose != NULL) LEAT_TRY(read_chosen(m, choose, err));
    if (fill != NULL) LEAT_TRY(read_defaults(m, fill, err));
    f->opts.sources = m->sources;
    f->opts.source_count = m->count;
    f->opts.epoch_size = (uint64_t)cli_int(c, "epoch-size");
    f->opts.mix_batches = (leat_mix_batches)cli_choice(c, "mix-batches");
    f->opts.mix_replacement = cli_flag(c, "replacement");
    f->opts.defaults = m->defaults;
    f->opts.default_count = m->default_count;
    return 0;
}

void load_mix_reset(load_mix *m)
{
    leat__free(m->sources);
    leat__free(m->defaults);
    leat__free(m->text);
    memset(m, 0, sizeof *m);
}
