/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts: what is known about a run, its JSON form, and the rates computed from them. An unknown fact is
 * negative and stays so in every step.
 */
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "doctor/judge.h"
#include "loader/device_decode.h"

#define FACT_ROW(name, meaning) {#name, meaning, offsetof(leat_doctor_facts, name)},
const leat__fact_row leat__fact_rows[] = {LEAT_DOCTOR_FACT_MAP(FACT_ROW)};
#undef FACT_ROW
const size_t leat__fact_row_count = LEAT_COUNT(leat__fact_rows);

#define SIDE_BY_SIDE 0.1 /* share of the device's time that batches must overlap to count as concurrent */
#define DISPROVED 1.1    /* a run this many times faster than a part alone disproves the part's rate */

/* Facts that are shares: a value above 1 is a measurement error. */
static const char *const shares[] = {
    "gpu_busy",      "decode_ready", "blocked",       "order_busy", "read_share",   "decode_share",
    "augment_share", "bad",          "run_delay",     "throttled",  "pressure_cpu", "pressure_memory",
    "pressure_io",   "cached",       "jpeg",          "tiled",      "raw",          "png",
    "webp",          "stall_share",  "remedy_others",
};

static double *fact_of(leat_doctor_facts *f, size_t row)
{
    return (double *)((char *)f + leat__fact_rows[row].offset);
}

double leat__fact_at(const leat_doctor_facts *f, size_t row)
{
    return *(const double *)((const char *)f + leat__fact_rows[row].offset);
}

void leat_doctor_facts_init(leat_doctor_facts *f)
{
    if (f == NULL) return;
    memset(f, 0, sizeof *f);
    f->struct_size = sizeof *f;
    for (size_t i = 0; i < leat__fact_row_count; i++) *fact_of(f, i) = -1;
}

static bool is_share(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT(shares); i++)
        if (strcmp(shares[i], name) == 0) return true;
    return false;
}

int leat__facts_check(const leat_doctor_facts *f, leat_error *err)
{
    if (f->struct_size != sizeof *f) return leat__fail(err, LEAT_EINVAL, "doctor facts were not initialised");
    if (f->option_count > LEAT_DOCTOR_OPTIONS)
        return leat__fail(err, LEAT_EINVAL, "%u options: at most %d are allowed", f->option_count,
                          LEAT_DOCTOR_OPTIONS);
    if (f->decision_count > LEAT_DOCTOR_DECISIONS)
        return leat__fail(err, LEAT_EINVAL, "%u decisions: at most %d are allowed", f->decision_count,
                          LEAT_DOCTOR_DECISIONS);
    if (f->trial_count > LEAT_DOCTOR_TRIALS)
        return leat__fail(err, LEAT_EINVAL, "%u trials: at most %d are allowed", f->trial_count,
                          LEAT_DOCTOR_TRIALS);
    for (size_t i = 0; i < leat__fact_row_count; i++) {
        double value = leat__fact_at(f, i);
        const char *name = leat__fact_rows[i].name;
        if (!isfinite(value)) return leat__fail(err, LEAT_EINVAL, "fact %s is not a number", name);
        if (is_share(name) && value > 1 + 1e-9)
            return leat__fail(err, LEAT_EINVAL, "fact %s: %g is not a share", name, value);
    }
    return 0;
}

/* ---- JSON ---- */

static void trials_json(leat__json *j, const leat_doctor_facts *f)
{
    leat__json_key(j, "trials");
    leat__json_array(j);
    for (uint32_t i = 0; i < f->trial_count; i++) {
        leat__json_object(j);
        leat__json_kstr(j, "set", f->trials[i].set);
        leat__json_kdouble(j, "samples_per_s", f->trials[i].rate);
        leat__json_kdouble(j, "gain", f->trials[i].gain);
        leat__json_kdouble(j, "spread", f->trials[i].spread);
        leat__json_end(j);
    }
    leat__json_end(j);
}

void leat__facts_json(leat__json *j, const leat_doctor_facts *f)
{
    for (size_t i = 0; i < leat__fact_row_count; i++) {
        double value = leat__fact_at(f, i);
        leat__json_key(j, leat__fact_rows[i].name);
        if (known(value)) leat__json_double(j, value);
        else leat__json_null(j);
    }
    leat__json_key(j, "options");
    leat__json_array(j);
    for (uint32_t i = 0; i < f->option_count; i++) {
        const leat_doctor_option *o = &f->options[i];
        leat__json_object(j);
        leat__json_kstr(j, "action", o->action);
        leat__json_kstr(j, "set", o->set);
        leat__json_kdouble(j, "cpu_all", o->cpu_all);
        leat__json_kdouble(j, "sample_bytes", o->sample_bytes);
        leat__json_kdouble(j, "out_bytes", o->out_bytes);
        leat__json_kdouble(j, "whole", o->whole);
        leat__json_kdouble(j, "spread", o->spread);
        leat__json_end(j);
    }
    leat__json_end(j);
    trials_json(j, f);
    leat__decisions_json(j, f);
}

void leat__decisions_json(leat__json *j, const leat_doctor_facts *f)
{
    leat__json_ku64(j, "decisions_made", f->decisions_made);
    leat__json_key(j, "decisions");
    leat__json_array(j);
    for (uint32_t i = 0; i < f->decision_count; i++) {
        const leat_doctor_decision *d = &f->decisions[i];
        leat__json_object(j);
        leat__json_kdouble(j, "at_s", d->at_s);
        leat__json_kstr(j, "knob", d->knob);
        leat__json_ku64(j, "from", d->from);
        leat__json_ku64(j, "to", d->to);
        leat__json_kstr(j, "reason", d->reason);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static int take_number(const json_t *value, const char *key, double *out, leat_error *err)
{
    if (value == NULL || json_is_null(value)) return 0;
    if (json_is_boolean(value)) {
        *out = json_is_true(value);
        return 0;
    }
    if (!json_is_number(value)) return leat__fail(err, LEAT_EDATA, "%s is not a number", key);
    *out = json_number_value(value);
    return 0;
}

static void take_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    size_t len = text != NULL ? LEAT_MIN(strlen(text), size - 1) : 0;
    memcpy(out, text != NULL ? text : "", len);
    out[len] = '\0';
}

static int take_option(const json_t *row, leat_doctor_option *o, leat_error *err)
{
    o->cpu_all = o->sample_bytes = o->out_bytes = o->spread = -1;
    o->whole = 0;
    take_text(row, "action", o->action, sizeof o->action);
    take_text(row, "set", o->set, sizeof o->set);
    LEAT_TRY(take_number(json_object_get(row, "cpu_all"), "cpu_all", &o->cpu_all, err));
    LEAT_TRY(take_number(json_object_get(row, "sample_bytes"), "sample_bytes", &o->sample_bytes, err));
    LEAT_TRY(take_number(json_object_get(row, "whole"), "whole", &o->whole, err));
    LEAT_TRY(take_number(json_object_get(row, "spread"), "spread", &o->spread, err));
    return take_number(json_object_get(row, "out_bytes"), "out_bytes", &o->out_bytes, err);
}

static int take_trials(const json_t *object, leat_doctor_facts *f, leat_error *err)
{
    const json_t *rows = json_object_get(object, "trials");
    size_t count = json_is_array(rows) ? json_array_size(rows) : 0;
    f->trial_count = (uint32_t)LEAT_MIN(count, (size_t)LEAT_DOCTOR_TRIALS);
    for (uint32_t i = 0; i < f->trial_count; i++) {
        const json_t *row = json_array_get(rows, i);
        leat_doctor_trial *t = &f->trials[i];
        t->rate = t->gain = t->spread = -1;
        take_text(row, "set", t->set, sizeof t->set);
        LEAT_TRY(take_number(json_object_get(row, "samples_per_s"), "samples_per_s", &t->rate, err));
        LEAT_TRY(take_number(json_object_get(row, "gain"), "gain", &t->gain, err));
        LEAT_TRY(take_number(json_object_get(row, "spread"), "spread", &t->spread, err));
    }
    return 0;
}

static int take_count(const json_t *object, const char *key, uint32_t *out, leat_error *err)
{
    double number = 0;
    LEAT_TRY(take_number(json_object_get(object, key), key, &number, err));
    if (!(number >= 0 && number <= UINT32_MAX)) return leat__fail(err, LEAT_EDATA, "%s is not a count", key);
    *out = (uint32_t)number;
    return 0;
}

static int take_decisions(const json_t *object, leat_doctor_facts *f, leat_error *err)
{
    const json_t *rows = json_object_get(object, "decisions");
    size_t count = json_is_array(rows) ? json_array_size(rows) : 0;
    f->decision_count = (uint32_t)LEAT_MIN(count, (size_t)LEAT_DOCTOR_DECISIONS);
    for (uint32_t i = 0; i < f->decision_count; i++) {
        const json_t *row = json_array_get(rows, count - f->decision_count + i);
        leat_doctor_decision *d = &f->decisions[i];
        LEAT_TRY(take_number(json_object_get(row, "at_s"), "at_s", &d->at_s, err));
        LEAT_TRY(take_count(row, "from", &d->from, err));
        LEAT_TRY(take_count(row, "to", &d->to, err));
        take_text(row, "knob", d->knob, sizeof d->knob);
        take_text(row, "reason", d->reason, sizeof d->reason);
    }
    LEAT_TRY(take_count(object, "decisions_made", &f->decisions_made, err));
    f->decisions_made = LEAT_MAX(f->decisions_made, f->decision_count);
    return 0;
}

/* Reads the facts from the object itself or its member "facts", as in a run file or a diagnosis. */
static int take_facts(const json_t *root, leat_doctor_facts *f, leat_error *err)
{
    const json_t *inner = json_object_get(root, "facts");
    const json_t *object = json_is_object(inner) ? inner : root;

    size_t known_count = 0;
    if (!json_is_object(object))
        return leat__fail(err, LEAT_EDATA, "not a run file: neither JSON lines nor a JSON object");
    for (size_t i = 0; i < leat__fact_row_count; i++) {
        const char *name = leat__fact_rows[i].name;
        known_count += json_object_get(object, name) != NULL;
        LEAT_TRY(take_number(json_object_get(object, name), name, fact_of(f, i), err));
    }
    if (known_count == 0 && json_object_size(object) > 0)
        return leat__fail(err, LEAT_EDATA, "not a run file: it has no facts about a run");
    const json_t *options = json_object_get(object, "options");
    size_t count = json_is_array(options) ? json_array_size(options) : 0;
    f->option_count = (uint32_t)LEAT_MIN(count, (size_t)LEAT_DOCTOR_OPTIONS);
    for (uint32_t i = 0; i < f->option_count; i++)
        LEAT_TRY(take_option(json_array_get(options, i), &f->options[i], err));
    LEAT_TRY(take_trials(object, f, err));
    LEAT_TRY(take_decisions(object, f, err));
    return leat__facts_check(f, err);
}

int leat_doctor_facts_parse(leat_doctor_facts *f, const char *json, size_t len, leat_error *err)
{
    LEAT_REQUIRE(f != NULL && (json != NULL || len == 0), err);
    json_error_t why;

    leat_doctor_facts_init(f);
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) return leat__fail(err, LEAT_EDATA, "not a run file: line %d: %s", why.line, why.text);
    int rc = take_facts(root, f, err);
    json_decref(root);
    return rc;
}

/* ---- Rates ---- */

/* Returns the rate when `share` of the samples comes from memory and the rest from storage. */
static double blend(double cold, double warm, double share)
{
    if (!known(cold) || cold == 0) return share >= 0.999 ? warm : cold;
    if (!known(warm) || warm < cold) warm = cold;
    return 1 / (share / warm + (1 - share) / cold);
}

/* Returns the share of the run's samples that came from memory: those cached before, and those that
 * later epochs read again. */
static double memory_share(const leat_doctor_facts *f)
{
    double cached = or_else(f->cached, 0), each = f->epoch_steps;
    if (!known(f->cached) || each < 1 || !known(f->steps) || !known(f->dataset_bytes)) return cached;
    if (f->dataset_bytes > or_else(f->memory_free, 0)) return cached;
    double steps = each > 2 ? f->steps * each / (each - 1) : f->steps; /* first steps do not count */
    return steps > each ? 1 - (1 - cached) * each / steps : cached;
}

double leat__doctor_samples_per_read(const leat_doctor_facts *f)
{
    if (!(f->steps >= LEAT__STEPS_ENOUGH) || !known(f->read_bytes) || !known(f->sample_bytes)) return 1;
    return f->read_bytes < f->sample_bytes / 50 ? f->sample_bytes / LEAT_MAX(f->read_bytes, 1.0) : 1;
}

/* Copies have one stream, decoding has several. If batches overlap, the device could do more until all
 * streams are busy. If they do not overlap, it has no time left. No device is busy for longer than the
 * step. */
double leat__doctor_device_ms(const leat_doctor_facts *f)
{
    if (!known(f->copy_ms)) return -1;
    double decode = or_else(f->device_decode_ms, 0), both = f->copy_ms + decode;
    double busy = LEAT_MAX(f->copy_ms, decode / LEAT__DECODE_LANES);
    if (or_else(f->device_overlap_ms, 0) < SIDE_BY_SIDE * both) busy = both;
    if (f->samples_per_s > 0 && f->batch > 0) busy = LEAT_MIN(busy, f->batch * 1e3 / f->samples_per_s);
    return busy;
}

leat__doctor_rates leat__doctor_rates_of(const leat_doctor_facts *f)
{
    leat__doctor_rates r;
    for (int i = 0; i < LEAT_LIMITS; i++) r.part[i] = -1;
    r.part[LEAT_LIMIT_IO] = blend(f->io_cold, f->io_warm, memory_share(f));
    if (known(r.part[LEAT_LIMIT_IO])) r.part[LEAT_LIMIT_IO] *= leat__doctor_samples_per_read(f);
    r.part[LEAT_LIMIT_CPU] = f->cpu_all;
    r.part[LEAT_LIMIT_DELIVERY] = f->delivery;
    if (known(f->batch_ms) && f->batch_ms > 0 && known(f->batch))
        r.part[LEAT_LIMIT_TRAINER] = f->batch * 1e3 / f->batch_ms;
    double device = leat__doctor_device_ms(f);
    if (device > 0 && known(f->batch)) r.part[LEAT_LIMIT_DEVICE] = f->batch * 1e3 / device;
    /* one thread does both, so their times add up */
    if (or_else(f->prepare_ms, 0) > 0 && known(f->batch))
        r.part[LEAT_LIMIT_PYTHON] = f->batch * 1e3 / (f->prepare_ms + or_else(f->batch_ms, 0));
    return r;
}

double leat__doctor_storage(const leat_doctor_facts *f)
{
    double now = leat__doctor_rates_of(f).part[LEAT_LIMIT_IO];
    return known(now) ? LEAT_MAX(now, f->io_deep) : -1;
}

uint32_t leat__doctor_smallest(const leat__doctor_rates *r, bool with_trainer, uint32_t *next)
{
    uint32_t first = LEAT_LIMIT_NONE, second = LEAT_LIMIT_NONE;
    for (uint32_t i = LEAT_LIMIT_IO; i < LEAT_LIMITS; i++) {
        bool takes = i == LEAT_LIMIT_TRAINER || i == LEAT_LIMIT_PYTHON;
        if (!known(r->part[i]) || (takes && !with_trainer)) continue;
        if (first == LEAT_LIMIT_NONE || r->part[i] < r->part[first]) {
            second = first;
            first = i;
        } else if (second == LEAT_LIMIT_NONE || r->part[i] < r->part[second]) {
            second = i;
        }
    }
    if (next != NULL) *next = second;
    return first;
}

/* Returns the mean wait per step, with the first step of each epoch. The loader includes that step in
 * data_ms only when epochs have one or two steps. */
double leat__doctor_wait_ms(const leat_doctor_facts *f)
{
    double steps = f->epoch_steps;
    if (!known(f->start_ms) || steps <= 2) return f->data_ms;
    return f->data_ms + LEAT_MAX(f->start_ms - f->data_ms, 0.0) / steps;
}

void leat__doctor_hide_waits(leat_doctor_facts *f, double device_ms)
{
    double *const waits[] = {&f->data_ms, &f->data_ms_p50, &f->data_ms_p95, &f->start_ms};
    double *const steps[] = {&f->batch_ms, &f->batch_ms_p50, &f->batch_ms_p95};
    if (!known(f->data_ms) || !known(f->batch_ms)) return;
    const double wait = leat__doctor_wait_ms(f), host = f->batch_ms + or_else(f->prepare_ms, 0);
    const double hidden = LEAT_MIN(device_ms - host, wait);
    if (hidden <= 0) return;
    for (size_t i = 0; i < LEAT_COUNT(waits); i++)
        if (known(*waits[i])) *waits[i] *= 1 - hidden / wait;
    for (size_t i = 0; i < LEAT_COUNT(steps); i++)
        if (known(*steps[i])) *steps[i] += hidden;
}

double leat__doctor_others(const leat_doctor_facts *f)
{
    double others = or_else(f->others, 0), outside = 0;
    if (or_else(f->quota, 0) > 0 && known(f->cpus_host) && known(f->cpus)) outside = f->cpus_host - f->cpus;
    return LEAT_MAX(others - LEAT_MAX(outside, 0.0), 0.0);
}

double leat__doctor_starts(const leat_doctor_facts *f)
{
    if (!known(f->start_ms) || !known(f->data_ms) || !known(f->batch_ms) || f->epoch_steps < 1) return -1;
    double wait = leat__doctor_wait_ms(f), step = wait + or_else(f->prepare_ms, 0) + f->batch_ms;
    return step > 0 ? LEAT_MIN(f->start_ms / f->epoch_steps, wait) / step : -1;
}

double leat__doctor_apart(double a, double b)
{
    double low = LEAT_MIN(a, b), high = LEAT_MAX(a, b);
    return low > 0 ? high / low - 1 : 1;
}

uint32_t leat__doctor_distrust(leat_doctor_facts *f)
{
    static const uint32_t parts[] = {LEAT_LIMIT_IO, LEAT_LIMIT_CPU, LEAT_LIMIT_DELIVERY};
    leat__doctor_rates r = leat__doctor_rates_of(f);
    uint32_t bits = 0;
    /* without a trainer the loader may be even faster: from memory, or when a device decodes */
    const double alone = known(f->copy_ms) ? f->samples_per_s : LEAT_MAX(f->samples_per_s, f->loader);

    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        const double reached = parts[i] == LEAT_LIMIT_IO ? f->samples_per_s : alone;
        if (known(r.part[parts[i]]) && reached > DISPROVED * r.part[parts[i]]) bits |= 1u << parts[i];
    }
    if ((bits & 1u << LEAT_LIMIT_IO) != 0) f->io_cold = f->io_warm = f->io_deep = f->io_pages = -1;
    if ((bits & 1u << LEAT_LIMIT_CPU) != 0) f->cpu_all = f->cpu_one = -1;
    if ((bits & 1u << LEAT_LIMIT_DELIVERY) != 0) f->delivery = -1;
    return bits;
}

double leat__doctor_lost(const leat_doctor_facts *f)
{
    if (known(f->data_ms) && known(f->batch_ms) && f->data_ms + f->batch_ms > 0) {
        double lost = leat__doctor_wait_ms(f) + or_else(f->prepare_ms, 0);
        return lost / (lost + f->batch_ms);
    }
    leat__doctor_rates r = leat__doctor_rates_of(f);
    double trainer = r.part[LEAT_LIMIT_TRAINER];
    double supply = known(f->samples_per_s) ? f->samples_per_s : f->loader;
    if (!known(supply)) { /* unless all its parts are known, the loader's rate is unknown */
        if (!known(f->cpu_all) || !known(r.part[LEAT_LIMIT_IO]) || !known(f->delivery)) return -1;
        supply = r.part[leat__doctor_smallest(&r, false, NULL)];
    }
    if (!known(trainer)) return -1;
    return supply >= trainer ? 0 : 1 - supply / trainer;
}
