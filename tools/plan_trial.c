/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements of `leat plan` in a separate thread, with a time limit. A read in flight cannot be cancelled:
 * when storage is too slow, or after a signal, the command continues without that thread.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/num.h"
#include "base/thread.h"
#include "cli_frame.h"
#include "doctor/reads.h"
#include "io/http.h"
#include "io/url.h"
#include "plan_modes.h"
#include "probe/machine.h"

#define CEILING_NS (2 * LEAT_NS_PER_S) /* a short measurement takes half of this, unless CPUs are busy */
#define CEILING_BUSY_NS (10 * LEAT_NS_PER_S)  /* while nothing has to be read */
#define CEILING_BUCKET_NS (5 * LEAT_NS_PER_S) /* for buckets, whose requests take longer */
#define CEILING_LONG_NS (60 * LEAT_NS_PER_S)  /* for a calibration, which takes some ten seconds */
#define STOP_NS (LEAT_NS_PER_S * 7 / 10)      /* time to end in order after a signal */
#define LOOK_NS (LEAT_NS_PER_S / 20)
#define LEAST_BYTES (UINT64_C(256) << 10) /* minimum bytes for a rate of storage */
#define PART_SPREAD 0.5                   /* spread of that rate, which includes reads of other data */
#define CONNECTIONS 64.0                  /* connections of the loader to a bucket */
#define RECEIVED_NS 1000000u              /* minimum time for a rate of the bytes that arrived */
#define SILENT_NS (2 * LEAT_NS_PER_S)     /* time without a byte after which the server counts as silent */
#define CODE_DATA (UINT64_C(1) << 20)     /* minimum memory of a process besides its code */
#define CODE_MAX (UINT64_C(16) << 20)     /* more means that another program runs the command */

static struct {
    leat__thread thread;
    leat__mutex lock; /* guards the rest */
    leat__cond changed;
    plan_trial own, measured; /* `own` belongs to the thread; `measured` is for the command */
    leat_plan_range link;     /* rate of a bucket, once measured */
    uint64_t data; /* memory of the process besides its code, recorded first; Python has several MB */
    double latency_s;
    leat_error err;
    int rc;
    bool known, done;    /* known: the rates are measured; done: all is measured */
    atomic_bool left;    /* the command continues without the thread */
    atomic_bool reading; /* the thread waits for storage, not for CPUs */
} job;

bool plan_trial_left(void)
{
    return atomic_load(&job.left);
}

void plan_trial_reading(bool on)
{
    atomic_store(&job.reading, on);
}

static int ended(void *cookie)
{
    (void)cookie;
    return plan_trial_left() || cli_stopped() != 0;
}

int plan_trial_check(leat_error *err)
{
    return ended(NULL) ? leat__fail(err, LEAT_ECANCELED, "stopped") : 0;
}

/* The amount of data that has arrived so far. */
typedef struct came {
    uint64_t bytes; /* from local storage; 0 if the system does not report it */
    leat__http_stats http;
} came;

static uint64_t local_bytes(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    char line[128];
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "read_bytes: %llu", &bytes) == 1) break;
    fclose(file);
    return bytes;
}

static int measure_rates(plan_trial *t, leat_error *err)
{
    if (leat__path_remote(t->path))
        return plan_measure_bucket(t->path, t->storage ? NULL : &t->opts, t->threads, t->link, t->longer,
                                   &t->k, &t->latency_s, err);
    if (t->storage) return plan_measure_storage(t->path, &t->k, err);
    if (t->longer) return plan_calibrate(t->path, &t->opts, t->threads, &t->k, err);
    return plan_measure(t->path, &t->opts, t->threads, t->cold, &t->k, err);
}

static void publish(int rc, bool done)
{
    leat__mutex_lock(&job.lock);
    job.measured = job.own;
    job.rc = rc;
    job.known = rc == 0;
    job.done = done;
    leat__cond_signal(&job.changed);
    leat__mutex_unlock(&job.lock);
}

static void measure(void *arg)
{
    plan_trial *t = arg;
    const leat__time_limit limit = {.until_ns = UINT64_MAX, .stop = ended};
    int rc = measure_rates(t, &job.err);
    if (rc == 0) {
        /* the loader has just run in this process, so `leat load` has the same code in memory */
        uint64_t code = leat__process_code_rss();
        if (code > 0 && code < CODE_MAX)
            t->facts.process_bytes = code + (job.data > 0 ? job.data : CODE_DATA);
        publish(0, false);
        plan_trial_reading(true);
        /* after memory was measured, because this changes it */
        if (t->sizes && !leat__path_remote(t->path)) plan_sizes(t->path, &t->facts, &limit);
    }
    publish(rc, true);
}

void plan_trial_link(leat_plan_range bytes_per_s, double latency_s)
{
    leat__mutex_lock(&job.lock);
    job.link = bytes_per_s;
    job.latency_s = latency_s;
    leat__mutex_unlock(&job.lock);
}

/* When bytes last came from a server. A signal or the ceiling may end a trial long after that. */
typedef struct hearing {
    uint64_t bytes, at_ns;
} hearing;

static void hear(hearing *h, uint64_t now)
{
    leat__http_stats s;
    leat__http_read(&s);
    if (s.bytes_in != h->bytes) *h = (hearing){s.bytes_in, now};
}

/* Computes the link of a bucket from the bytes that arrived since the first answer. The loader has more
 * connections; the server may limit all together or each one. Locked. */
static void use_link(plan_trial *m, const leat__http_stats *before, uint64_t ns)
{
    leat__http_stats s;
    leat__http_read(&s);
    if (job.link.mid > 0) {
        m->k.io_bytes_per_s = job.link;
        m->latency_s = job.latency_s;
        return;
    }
    s.bytes_in -= before->bytes_in;
    s.answers -= before->answers;
    s.waited_ns -= before->waited_ns;
    s.received_ns -= before->received_ns;
    if (s.bytes_in == 0 || s.answers == 0) return;
    uint64_t wait = s.waited_ns / s.answers, received = LEAT_MAX(s.received_ns, RECEIVED_NS);
    uint64_t most = ns > 2 * wait ? ns - wait : UINT64_MAX;
    double rate = (double)s.bytes_in * 1e9 / (double)LEAT_MIN(received, most);
    double each = (double)s.bytes_in * 1e9 / (double)received;
    double low = rate / (1 + PART_SPREAD), high = LEAT_MAX(rate * (1 + PART_SPREAD), each * CONNECTIONS);
    m->k.io_bytes_per_s = (leat_plan_range){low, sqrt(low * high), high};
    m->latency_s = (double)wait / 1e9;
}

/* Computes the storage rate of this machine from the bytes read since `before`. */
static void use_reads(plan_trial *m, uint64_t before, uint64_t ns)
{
    uint64_t bytes = local_bytes() - before;
    if (bytes < LEAST_BYTES) return;
    double rate = (double)bytes * 1e9 / (double)ns;
    m->k.io_bytes_per_s = (leat_plan_range){rate / (1 + PART_SPREAD), rate, rate * (1 + PART_SPREAD)};
}

/* Reports that there is no rate: the server stopped answering after the pack was opened. Locked. */
static void use_nothing(cli *c, plan_trial *m, uint64_t silent_ns)
{
    m->k.failed = 1u << LEAT_PLAN_IO;
    cli_warn(c,
             "the server sent nothing in the last %.0f seconds: its rate is not measured, and the plan is "
             "incomplete (--gbps or --io-mbs gives the rate)",
             (double)silent_ns / 1e9);
}

/* True when the measurement did not wait for storage: the pack is in memory, or was read before. */
static bool samples_cost(const plan_trial *t)
{
    if (t->storage || leat__path_remote(t->path)) return false;
    return !atomic_load(&job.reading) || (!t->cold && !t->longer);
}

/* Uses what is known without the thread: how fast storage delivered. Locked. */
static void use_what_came(cli *c, const plan_trial *t, const came *before, uint64_t ns, uint64_t silent_ns)
{
    plan_trial *m = &job.measured;
    const char *what = t->longer ? "a minute" : leat__path_remote(t->path) ? "five seconds" : "two seconds";
    if (job.known) return; /* only the sizes for what-ifs are missing: use the table */
    *m = *t;
    bool remote = leat__path_remote(t->path);
    m->k.quick = 1;
    if (remote && t->link && job.link.mid <= 0 && silent_ns >= SILENT_NS) {
        use_nothing(c, m, silent_ns);
        return;
    }
    if (remote && t->link) use_link(m, &before->http, ns);
    else if (!remote && (t->cold || t->longer)) use_reads(m, before->bytes, ns);
    if (m->k.io_bytes_per_s.mid > 0) m->k.calibrated = 1u << LEAT_PLAN_IO;
    if (samples_cost(t)) {
        cli_warn(c, "samples take too much CPU time to measure in %.0f seconds: used the table for the CPUs",
                 (double)ns / 1e9);
        return;
    }
    cli_warn(c, "storage too slow to measure in %s: used the table%s", what,
             m->k.io_bytes_per_s.mid <= 0 ? ""
             : job.link.mid > 0           ? " for the CPUs; the link was measured"
                                          : " for the CPUs, and the bytes that arrived for storage");
}

/* Waits until the measurement is done, the time is over, or a signal came a while ago. Locked. */
static void wait_for_rates(uint64_t begin, uint64_t ceiling, hearing *heard)
{
    uint64_t until = UINT64_MAX, now = begin;
    for (; !job.done && now < until; now = leat__clock_ns()) {
        hear(heard, now);
        if (until == UINT64_MAX && cli_stopped() != 0) until = now + STOP_NS;
        uint64_t most = atomic_load(&job.reading) ? ceiling : LEAT_MAX(ceiling, CEILING_BUSY_NS);
        if (now - begin >= most) break;
        leat__cond_wait_until(&job.changed, &job.lock, now + LOOK_NS);
    }
    atomic_store(&job.left, !job.done);
}

void plan_trial_note_memory(void)
{
    job.data = leat__process_data_rss();
}

int plan_trial_run(cli *c, plan_trial *t, leat_error *err)
{
    uint64_t ceiling = t->longer                    ? CEILING_LONG_NS
                       : leat__path_remote(t->path) ? CEILING_BUCKET_NS
                                                    : CEILING_NS;
    came before = {.bytes = local_bytes()};
    uint64_t begin = leat__clock_ns();
    leat__http_read(&before.http);
    hearing heard = {before.http.bytes_in, begin};
    leat__mutex_init(&job.lock);
    leat__cond_init(&job.changed);
    job.own = *t;
    plan_trial_reading(true);
    LEAT_TRY(leat__thread_start(&job.thread, "leat-plan", measure, &job.own, err));
    leat__mutex_lock(&job.lock);
    wait_for_rates(begin, ceiling, &heard);
    uint64_t now = leat__clock_ns();
    if (!job.done && cli_stopped() == 0) use_what_came(c, t, &before, now - begin, now - heard.at_ns);
    if (job.done || cli_stopped() == 0) *t = job.measured;
    int rc = job.done ? job.rc : cli_stopped() != 0 ? LEAT_ECANCELED : 0;
    if (job.done) *err = job.err;
    leat__mutex_unlock(&job.lock);
    if (!plan_trial_left()) leat__thread_join(&job.thread);
    return rc;
}
