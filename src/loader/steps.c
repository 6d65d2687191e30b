/* SPDX-License-Identifier: Apache-2.0
 *
 * data_time, prepare_time and batch_time per step, as meters.
 */
#include "loader/steps.h"

#include "base/num.h"

int leat__steps_init(leat__steps *s, leat_error *err)
{
    LEAT_TRY(leat__meters_open(&s->meters, "loader", err));
    s->data = leat__timer_make(s->meters, "data_ns", NULL, "waiting in next() for a batch, per step");
    s->batch = leat__timer_make(s->meters, "batch_ns", NULL, "between next() calls, per step");
    s->prepare = leat__timer_make(s->meters, "prepare_ns", NULL,
                                  "the caller preparing a batch before the training, per step");
    if (leat__meters_enabled() && (s->data == NULL || s->batch == NULL || s->prepare == NULL))
        return leat__fail_nomem(err, 4096, "meters");
    return 0;
}

void leat__steps_reset(leat__steps *s)
{
    if (s->meters != NULL) leat__meters_close(&s->meters);
    s->data = s->batch = s->prepare = NULL;
}

/* Decides whether epochs are short: one of at most two batches that ended, or the second consecutive one that
 * was left early. Taking a single batch to look at it does not make epochs short. */
static void note_length(leat__steps *s)
{
    const bool is_short = s->step <= 2, ended = s->waited_ns > 0;
    s->short_epochs = is_short && (ended || s->was_short);
    s->was_short = is_short;
    s->epochs++;
    s->epoch_steps += s->step;
}

void leat__steps_epoch(leat__steps *s)
{
    if (s->step > 0) note_length(s);
    s->end_ns = s->waited_ns;
    s->enter_ns = s->leave_ns = s->waited_ns = s->prepared_ns = s->step = 0;
    s->this_steps = 0;
    leat__timer_take(s->data, &s->data_before);
    leat__timer_take(s->batch, &s->batch_before);
    leat__timer_take(s->prepare, &s->prepare_before);
}

void leat__steps_enter(leat__steps *s)
{
    s->enter_ns = leat__meters_now();
    if (s->leave_ns == 0) return; /* the first call of an epoch, or one that continues a wait */
    uint64_t between = s->enter_ns - s->leave_ns, prepared = LEAT_MIN(s->prepared_ns, between);
    if (s->step > 1 || s->short_epochs) {
        leat__timer_record(s->batch, between - prepared);
        if (prepared > 0) leat__timer_record(s->prepare, prepared);
    }
    s->leave_ns = s->prepared_ns = 0;
}

void leat__steps_prepared(leat__steps *s, uint64_t ns)
{
    s->prepared_ns += ns;
}

uint64_t leat__steps_leave(leat__steps *s, bool got)
{
    uint64_t now = leat__meters_now(), waited = now - s->enter_ns;

    s->waited_ns += waited;
    if (!got) return waited;
    if (s->step > 0 || s->short_epochs) leat__timer_record(s->data, s->waited_ns);
    if (s->step == 0 && s->epochs > 0) { /* the very first start also opens files and starts threads */
        s->starts++;
        s->start_ns += s->waited_ns + s->end_ns;
    }
    s->waited_ns = 0;
    s->leave_ns = now;
    s->this_steps = ++s->step;
    return waited;
}

/* Returns the mean batches per epoch. The running epoch counts once it is longer than earlier ones. */
static double mean_steps(const leat__steps *s)
{
    const double epochs = (double)s->epochs, steps = (double)s->epoch_steps, now = (double)s->this_steps;
    if (epochs == 0) return 0;
    return now * epochs > steps ? (steps + now) / (epochs + 1) : steps / epochs;
}

void leat__steps_read(const leat__steps *s, bool all, leat_loader_stats *stats)
{
    leat__timer_stats data, batch, prepare;

    leat__timer_since(s->data, all ? NULL : &s->data_before, &data);
    leat__timer_since(s->batch, all ? NULL : &s->batch_before, &batch);
    leat__timer_since(s->prepare, all ? NULL : &s->prepare_before, &prepare);
    stats->steps = batch.count;
    if (data.count > 0) stats->data_ms = (double)data.sum_ns / (double)data.count / 1e6;
    if (batch.count > 0) stats->batch_ms = (double)batch.sum_ns / (double)batch.count / 1e6;
    if (batch.count > 0) stats->prepare_ms = (double)prepare.sum_ns / (double)batch.count / 1e6;
    uint64_t starts = s->starts;
    stats->epoch_steps = mean_steps(s);
    if (starts > 0) stats->start_ms = (double)s->start_ns / (double)starts / 1e6;
    stats->data_ms_p50 = data.p50_ns / 1e6;
    stats->data_ms_p95 = data.p95_ns / 1e6;
    stats->batch_ms_p50 = batch.p50_ns / 1e6;
    stats->batch_ms_p95 = batch.p95_ns / 1e6;
}
