/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis. Three independent sources of evidence (witnesses) each name the bottleneck, with a
 * weight:
 *
 *   rates    the measured rate of each part alone; the smallest one limits
 *   queues   waits inside the loader: tasks for a worker, tasks for memory, workers for tasks
 *   machine  what the CPUs, the kernel and the storage report
 *
 * The bottleneck is the limit with the most weight. If the witnesses disagree, or one has no evidence, the
 * confidence falls: a wrong answer may happen, a confident wrong answer must not.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "doctor/judge.h"

#define RATES_WEIGHT 1.2 /* measured on this data: slightly more weight than the others */
/* when the next rate is this far above the smallest, there is no doubt */
#define MARGIN_SURE 1.5
#define FETCHED_FEW 0.25 /* share of the bytes of the samples that a server sent */
#define FAR_ABOVE 5.0    /* reads this many times as fast as the loop and its trainer do not limit it */
#define EXPLAINS 0.6     /* a part that reached less than this share of its rate is not the cause */
#define SATURATED 0.85   /* share of the usable CPUs */
#define IDLE 0.6
#define DELAYED 0.2 /* share of the time that ready threads wait for a CPU */
#define THROTTLED 0.1
#define BLOCKED 0.2
#define READY_HIGH 0.5
#define READY_LOW 0.2
#define NOT_DECODING 0.3
#define PRESSURE 0.1
#define FEW 0.2  /* up to this share of the loss may have another cause */
#define MOST 0.5 /* share of a worker's time that counts as its main activity */
#define FAULTS_PER_S 100.0
#define DISK_BLOCK 4096.0    /* bytes */
#define DISK_BUSY 1e5        /* bytes per second: no disk that limits a run reads less */
#define MORE_HELP 1.1        /* more workers help if they raise the rate by this factor in every trial */
#define FEW_READS 4          /* reads in flight; a higher number delays reads on any disk */
#define MORE_BRING_MORE 3.0  /* eight times as many requests in flight must bring this many times as much */
#define MOST_BRING_MORE 1.5  /* the same for four times as many, from 16 to 64 */
#define MANY_READS 16        /* a lower fixed number of reads in flight may leave a line idle */
#define LESS_OFTEN_LATE 0.75 /* as LESS_OFTEN, where answers are late: the delay is part of each */
#define LATE_MS 100.0        /* small answers later than this may have left no time for large ones */
#define LESS_OFTEN 0.5      /* large answers are rare if they come less often than this share of small ones */
#define REFUSED 0.02        /* share of the requests */
#define AT_STORAGE_RATE 0.8 /* above this share of the storage's rate, more memory brings little */
#define NO_GAIN 1.1         /* ample memory must raise the rate by this factor to count */
#define TRIED_LEAST 1.15    /* the same for flags that were tried, if the loss allows such a gain */
#define SLACK 1.2           /* factor by which the loader must be faster than the trainer needs */
#define BUSY_READS 0.5      /* minimum mean reads in flight when storage is at work */
#define BUSY_PART 0.25      /* minimum mean reads in flight as a share of io_depth, unless reads are slow */
#define MEMORY_READ_MS 0.1  /* faster reads come from memory */
#define STORAGE_READ_MS 5.0 /* slower reads come from storage, even if only a few are in flight */
#define BUSY_DEVICE 0.8     /* share of the step */
#define MANY_STARTS 0.1     /* share of the time */
#define OTHER_BATCHES 3     /* batches besides the prefetched ones: held by the trainer, or in progress */
#define TINY_EPOCH 4        /* batches */
#define UNSURE 0.45         /* upper limit of the confidence when a measurement is wrong or missing */
#define FAIRLY_SURE 0.75    /* the same when the other witnesses agree */
#define CLEAR 0.5           /* weight of a witness without doubt */

typedef struct votes {
    double weight[LEAT_LIMITS];
} votes;

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- Witnesses ---- */

/* True when more of this flag ("memory=") was tried, and the run gained too little for it to be the
 * bottleneck. A small loss limits the possible gain: half of that is enough. */
static bool tried_in_vain(const leat_doctor_facts *f, const char *flag)
{
    const double lost = leat__doctor_lost(f), most = known(lost) && lost < 1 ? 1 / (1 - lost) : HUGE_VAL;
    for (uint32_t i = 0; i < f->trial_count; i++) {
        const leat_doctor_trial *t = &f->trials[i];
        if (leat__doctor_sets_only(t->set, flag) && t->gain > 0)
            return t->gain < LEAT_MIN(TRIED_LEAST, (1 + most) / 2);
    }
    return false;
}

/* True when this flag was tried, alone. */
static bool tried(const leat_doctor_facts *f, const char *flag)
{
    for (uint32_t i = 0; i < f->trial_count; i++)
        if (leat__doctor_sets_only(f->trials[i].set, flag) && f->trials[i].gain > 0) return true;
    return false;
}

/* True when a larger budget would not help: storage gives no more, or it was tried. Reads in flight
 * then fill the budget, and work waits for them, not for memory. */
static bool memory_suffices(const leat_doctor_facts *f)
{
    double storage = leat__doctor_storage(f), now = f->samples_per_s;
    if (tried_in_vain(f, "memory=")) return true;
    if (!known(now)) return false;
    if (known(storage) && now >= AT_STORAGE_RATE * storage) return true;
    return known(f->spacious) && f->spacious < NO_GAIN * now;
}

/* Returns the share of the time in which work waited for memory, if more of it would have helped. */
static double blocked_share(const leat_doctor_facts *f)
{
    return memory_suffices(f) ? 0 : or_else(f->blocked, 0);
}

/* Returns the share of the step in which the device copies or decodes; 0 = unknown. */
static double device_busy(const leat_doctor_facts *f)
{
    double device = leat__doctor_device_ms(f);
    if (!known(device) || !known(f->samples_per_s) || !(f->batch > 0)) return 0;
    return clamp(device * f->samples_per_s / f->batch / 1e3, 0, 1);
}

static void ask_rates(const leat_doctor_facts *f, const leat__doctor_rates *r, votes *v)
{
    if (known(f->spacious) && known(f->samples_per_s) && blocked_share(f) >= BLOCKED &&
        /* a trial showed that more memory makes the run faster */
        f->spacious >= MARGIN_SURE * f->samples_per_s) {
        v->weight[LEAT_LIMIT_MEMORY] += RATES_WEIGHT;
        return;
    }
    leat__doctor_rates rates = *r;
    /* a device that waits for the rest of the loader is not the bottleneck, whatever its rate */
    if (device_busy(f) < BUSY_DEVICE) rates.part[LEAT_LIMIT_DEVICE] = -1;
    r = &rates;
    uint32_t next, first = leat__doctor_smallest(r, false, &next);
    if (first == LEAT_LIMIT_NONE || next == LEAT_LIMIT_NONE) return;
    double low = r->part[first], margin = r->part[next] / LEAT_MAX(low, 1e-9);
    double weight = clamp((margin - 1) / (MARGIN_SURE - 1), 0.1, 1);
    bool all = known(r->part[LEAT_LIMIT_IO]) && known(r->part[LEAT_LIMIT_CPU]) &&
               known(r->part[LEAT_LIMIT_DELIVERY]);
    if (!all) weight *= 0.5; /* the rate of the unknown part may be even lower */
    if (known(f->samples_per_s) && f->samples_per_s < EXPLAINS * low)
        weight *= f->samples_per_s / (EXPLAINS * low);
    v->weight[first] += RATES_WEIGHT * weight;
}

/* True when a server was measured with 2 and with 16 requests in flight. */
static bool asked(const leat_doctor_facts *f)
{
    return or_else(f->remote, 0) >= 1 && known(f->remote_few) && known(f->remote_many);
}

static bool refused(const leat_doctor_facts *f)
{
    return or_else(f->remote, 0) >= 1 && or_else(f->remote_refused, 0) >= REFUSED;
}

static bool collate(const leat_doctor_facts *f)
{
    return or_else(f->worker_collate, 0) >= MOST;
}

/* True when work was seen to wait for reads: they take longer than a copy from memory, and storage
 * had some of them in flight all the time. The pressure reported by the kernel does not count: other
 * processes cause it too. */
static bool reads_seen(const leat_doctor_facts *f)
{
    if (collate(f)) return false; /* workers wait in collate_fn */
    if (asked(f) || refused(f) || known(f->fetch_ms) || or_else(f->worker_fetch, 0) >= MOST) return true;
    double flying = or_else(f->in_flight, or_else(f->read_ms, 0) * or_else(f->samples_per_s, 0) / 1e3);
    double least = or_else(f->read_ms, 0) >= STORAGE_READ_MS ? 0 : BUSY_PART * or_else(f->io_depth, 0);
    return or_else(f->read_ms, 0) >= MEMORY_READ_MS && flying >= LEAT_MAX(BUSY_READS, least);
}

/* True when idle workers and CPUs indicate slow storage: the run has the rate of reads alone, or waited for
 * reads. Otherwise the cause of the idle time is unknown. */
static bool waits_for_reads(const leat_doctor_facts *f)
{
    double io = leat__doctor_rates_of(f).part[LEAT_LIMIT_IO];
    if (leat__doctor_samples_per_read(f) > 1) return false;
    if (known(io) && (!known(f->samples_per_s) || f->samples_per_s >= EXPLAINS * io)) return true;
    return reads_seen(f);
}

static void ask_queues(const leat_doctor_facts *f, votes *v)
{
    double ready = f->decode_ready, blocked = blocked_share(f);
    if (known(f->order_busy) && f->order_busy >= 0.8) {
        v->weight[LEAT_LIMIT_DELIVERY] += f->order_busy;
        return;
    }
    if (device_busy(f) >= BUSY_DEVICE) {
        v->weight[LEAT_LIMIT_DEVICE] += device_busy(f);
        return;
    }
    if (!known(ready)) return;
    if (blocked >= BLOCKED && ready < READY_HIGH)
        v->weight[LEAT_LIMIT_MEMORY] += clamp(2 * blocked, 0, 1.2) * (1 - ready);
    else if (ready >= READY_HIGH && or_else(f->decode_share, 1) < NOT_DECODING && !leat__doctor_foreign(f))
        /* workers are busy with something else; those of another loader only prepare, or are idle */
        v->weight[LEAT_LIMIT_DELIVERY] += ready * (1 - f->decode_share);
    else if (ready >= READY_HIGH) v->weight[LEAT_LIMIT_CPU] += ready;
    else if (ready < READY_LOW && waits_for_reads(f))
        v->weight[LEAT_LIMIT_IO] += 0.7 * (1 - ready / READY_LOW);
}

/* Returns the share of the used CPU time spent on decoding and augmenting. */
static double useful_share(const leat_doctor_facts *f)
{
    if (!known(f->cpu_used) || f->cpu_used <= 0) return -1;
    if (known(f->cpu_one) && f->cpu_one > 0 && known(f->samples_per_s))
        return clamp(f->samples_per_s / f->cpu_one / f->cpu_used, 0, 1);
    if (known(f->decode_share) && known(f->threads))
        return clamp(f->decode_share * f->threads / f->cpu_used, 0, 1);
    return -1;
}

/* Returns the share of the process's CPUs that its threads would have used without waiting for a CPU;
 * negative = unknown. CPU use by other processes alone is not evidence. */
static double cpus_wanted(const leat_doctor_facts *f)
{
    if (!known(f->cpu_used) || !known(f->cpus) || f->cpus <= 0) return -1;
    double room = LEAT_MIN(f->cpus, LEAT_MAX(or_else(f->threads, f->cpus), 1.0));
    double busy = f->cpu_used / room, line = LEAT_MIN(or_else(f->run_delay, 0), 0.98);
    double wanted = busy / (1 - line);
    /* Many threads woken together wait for each other on CPUs that are otherwise idle: clip at the
     * share that is in use. */
    return known(f->others) ? LEAT_MIN(wanted, (f->cpu_used + f->others) / room) : wanted;
}

bool leat__doctor_collate_waits(const leat_doctor_facts *f)
{
    return collate(f) && or_else(f->collate_wait, 0) >= MOST * f->worker_collate;
}

static bool contention(const leat_doctor_facts *f)
{
    double cpus = or_else(f->cpus, 1);
    return leat__doctor_others(f) >= 0.25 * cpus && or_else(f->run_delay, 1) >= DELAYED;
}

static void ask_machine(const leat_doctor_facts *f, votes *v)
{
    double useful = useful_share(f);
    if (leat__doctor_collate_waits(f)) return; /* CPUs and storage are not the cause */
    if (or_else(f->faults, 0) >= FAULTS_PER_S && or_else(f->pressure_memory, 1) >= PRESSURE) {
        v->weight[LEAT_LIMIT_MEMORY] += 1;
        return;
    }
    if (or_else(f->pressure_io, 0) >= PRESSURE && waits_for_reads(f)) v->weight[LEAT_LIMIT_IO] += 0.4;
    if (or_else(f->throttled, 0) >= THROTTLED) {
        v->weight[LEAT_LIMIT_CPU] += 1;
        return;
    }
    double wanted = cpus_wanted(f);
    if (!known(wanted)) return;
    bool other_work = wanted >= SATURATED && known(useful) && useful < 0.5; /* busy, but not with images */
    if (other_work && !known(f->delivery) && contention(f))
        v->weight[LEAT_LIMIT_CPU] += clamp(wanted, 0.5, 1); /* the trainer waits for a CPU, too */
    else if (other_work && leat__doctor_foreign(f)) return; /* the trainer may be what is busy */
    else if (other_work) v->weight[LEAT_LIMIT_DELIVERY] += 1 - useful;
    else if (wanted >= SATURATED) v->weight[LEAT_LIMIT_CPU] += clamp(wanted, 0.5, 1);
    else if (wanted < IDLE && blocked_share(f) >= BLOCKED) v->weight[LEAT_LIMIT_MEMORY] += 0.5;
    else if (wanted < IDLE && waits_for_reads(f)) v->weight[LEAT_LIMIT_IO] += 0.6 * (1 - wanted);
}

/* ---- Causes: the first that applies, per limit ---- */

static bool swapping(const leat_doctor_facts *f)
{
    return or_else(f->faults, 0) >= FAULTS_PER_S;
}

static bool always(const leat_doctor_facts *f)
{
    (void)f;
    return true;
}

static bool throttled(const leat_doctor_facts *f)
{
    return or_else(f->throttled, 0) >= THROTTLED;
}

static bool other_loader(const leat_doctor_facts *f)
{
    return or_else(f->siblings, 0) >= 0.25 * or_else(f->cpus, 1);
}

static bool few_threads(const leat_doctor_facts *f)
{
    if (known(f->more_workers_gain) && !leat__doctor_more_workers_help(f)) return false;
    return known(f->threads) && known(f->cpus) && f->threads <= f->cpus - 1;
}

static bool augment(const leat_doctor_facts *f)
{
    return or_else(f->augment_share, 0) >= 0.5 || or_else(f->worker_augment, 0) >= MOST;
}

static bool python_code(const leat_doctor_facts *f)
{
    return or_else(f->worker_python, 0) >= MOST;
}

static bool transfer(const leat_doctor_facts *f)
{
    return or_else(f->worker_transfer, 0) >= MOST;
}

leat__doctor_work leat__doctor_main_work(const leat_doctor_facts *f)
{
    const leat__doctor_work kinds[] = {{LEAT_CAUSE_COLLATE, f->worker_collate},
                                       {LEAT_CAUSE_AUGMENT, f->worker_augment},
                                       {LEAT_CAUSE_PYTHON, f->worker_python},
                                       {LEAT_CAUSE_DECODE, f->worker_decode},
                                       {LEAT_CAUSE_TRANSFER, f->worker_transfer}};
    for (size_t i = 0; i < LEAT_COUNT(kinds); i++)
        if (kinds[i].share >= MOST) return kinds[i];
    return (leat__doctor_work){LEAT_CAUSE_NONE, 0};
}

/* True when other processes cost more than the work itself: the threads waited for a CPU longer than they
 * ran. Where the work is not known, other processes are named earlier. */
static bool mostly_contention(const leat_doctor_facts *f)
{
    if (!contention(f)) return false;
    return leat__doctor_main_work(f).cause == LEAT_CAUSE_NONE || or_else(f->run_delay, 1) >= MOST;
}

/* True for a loader other than leat's whose workers are not known to decode. */
static bool some_worker_time(const leat_doctor_facts *f)
{
    return known(f->workers) && or_else(f->worker_decode, 0) < MOST;
}

/* True when images have far more pixels than the network uses. */
static bool large_images(const leat_doctor_facts *f)
{
    return known(f->pixels) && f->pixels >= 2e6 && f->pixels >= 16 * or_else(f->out_pixels, 5e4);
}

static bool png(const leat_doctor_facts *f)
{
    return or_else(f->png, 0) >= 0.5;
}

static bool few_cpus(const leat_doctor_facts *f)
{
    return known(f->cpus) && known(f->cpus_host) && f->cpus <= 0.5 * f->cpus_host;
}

static bool network(const leat_doctor_facts *f)
{
    return or_else(f->network, 0) >= 1;
}

/* True when far more bytes were read than samples need. Samples that still wait in memory count as needed; in
 * a run of a few steps they are most of the samples read. */
static bool amplified(const leat_doctor_facts *f)
{
    double bytes = f->read_bytes; /* per sample */
    if (!known(f->read_bytes) || !known(f->sample_bytes) || f->sample_bytes <= 0) return false;
    if (known(f->steps) && f->steps < LEAT__STEPS_ENOUGH) return false;
    if (known(f->steps) && known(f->batch) && f->batch > 0) {
        double delivered = (f->steps + 1) * f->batch;
        double waiting = (or_else(f->prefetch, 0) + OTHER_BATCHES) * f->batch + or_else(f->io_depth, 0);
        bytes = LEAT_MIN(bytes - or_else(f->budget_peak, 0) / delivered,
                         bytes * delivered / (delivered + waiting));
    }
    return bytes >= 1.5 * f->sample_bytes;
}

/* True when reads from memory would be much faster. If there was no time to measure cold reads, and they are
 * the bottleneck, the rate of the run is used instead: nearly 0 when no step ended. */
static bool memory_is_faster(const leat_doctor_facts *f)
{
    double now = or_else(f->io_cold, f->samples_per_s), warm = LEAT_MAX(f->io_warm, f->loader_warm);
    if (!known(now) && f->steps == 0) now = 0;
    return known(warm) && known(now) && warm >= 1.5 * now;
}

/* True when the pack is not in memory, but memory would be much faster. */
static bool cold(const leat_doctor_facts *f)
{
    return known(f->cached) && f->cached < 0.9 && memory_is_faster(f) && known(f->dataset_bytes) &&
           f->dataset_bytes < or_else(f->memory_free, 0);
}

/* True when storage is limited by requests per second: more requests in flight do not help, larger requests
 * do. */
static bool requests(const leat_doctor_facts *f)
{
    if (!known(f->io_cold) || !known(f->io_deep) || !known(f->io_pages)) return false;
    if (!known(f->sample_bytes)) return false;
    if (or_else(f->order_random, 0) < 1 || or_else(f->cached, 0) >= 0.9) return false;
    if (f->io_deep >= 1.3 * f->io_cold) return false;
    double each = f->sample_bytes + DISK_BLOCK; /* a sample read alone is rounded up to whole blocks */
    return f->io_pages * f->sample_bytes >= 2 * f->io_cold * each;
}

bool leat__doctor_memory_limit(const leat_doctor_facts *f)
{
    return or_else(f->memory_limit, 0) > 0 && known(f->memory_host) && known(f->dataset_bytes) &&
           known(f->memory_free) && f->dataset_bytes * 1.1 > f->memory_free &&
           f->dataset_bytes * 1.1 < f->memory_host && memory_is_faster(f);
}

bool leat__doctor_more_workers_help(const leat_doctor_facts *f)
{
    return f->more_workers_gain >= MORE_HELP && f->more_workers_least > 1;
}

bool leat__doctor_latency(const leat_doctor_facts *f)
{
    /* A trial with more workers was faster, and these workers wait. The step limits the gain: half of the
     * possible gain is enough. */
    if (known(f->more_workers_gain)) {
        const double most = known(f->data_ms) && f->batch_ms > 0 ? 1 + f->data_ms / f->batch_ms : HUGE_VAL;
        return leat__doctor_more_workers_help(f) && f->more_workers_gain >= LEAT_MIN(1.3, (1 + most) / 2);
    }
    return (known(f->io_deep) && known(f->io_cold) && f->io_deep >= 1.3 * f->io_cold) ||
           (known(f->read_ms) && f->read_ms >= 2 && !known(f->io_deep) &&
            or_else(f->io_depth, 1) <= FEW_READS);
}

bool leat__doctor_waits(const leat_doctor_facts *f)
{
    if (!leat__doctor_foreign(f)) return false;
    return or_else(f->read_bytes, 0) * or_else(f->samples_per_s, 0) < DISK_BUSY;
}

bool leat__doctor_many_suffice(const leat_doctor_facts *f)
{
    if (!asked(f) || !known(f->remote_many_mbs) || !known(f->remote_most_mbs)) return false;
    if (or_else(f->io_fixed, 0) >= 1 && f->io_depth < MANY_READS) return false;
    return f->remote_most_mbs < MOST_BRING_MORE * f->remote_many_mbs;
}

double leat__doctor_line_mbs(const leat_doctor_facts *f)
{
    return LEAT_MAX(f->remote_many_mbs, f->remote_most_mbs);
}

/* Few large requests do not fill a line whose answers are late: they are compared with 64 in flight. */
bool leat__doctor_line_full(const leat_doctor_facts *f)
{
    if (!asked(f) || !known(f->remote_few_mbs) || !known(f->remote_many_mbs)) return false;
    double large = 1e6 * f->remote_many_mbs / LEAT__PART_LARGE;
    if (f->remote_many_mbs < MORE_BRING_MORE * f->remote_few_mbs && large < LESS_OFTEN * f->remote_many)
        return true;
    large = 1e6 * f->remote_most_mbs / LEAT__PART_LARGE;
    return leat__doctor_many_suffice(f) && large < LESS_OFTEN_LATE * or_else(f->remote_most, HUGE_VAL);
}

/* True when the server limits requests per second, whatever their size and number in flight. */
static bool remote_requests(const leat_doctor_facts *f)
{
    if (!asked(f) || leat__doctor_line_full(f)) return false;
    return f->remote_many < MORE_BRING_MORE * f->remote_few || leat__doctor_many_suffice(f);
}

static bool remote_latency(const leat_doctor_facts *f)
{
    return asked(f) && (known(f->remote_many_mbs) || or_else(f->remote_ms, 0) >= LATE_MS);
}

static bool network_latency(const leat_doctor_facts *f)
{
    return network(f) && leat__doctor_latency(f);
}

static bool device_decodes(const leat_doctor_facts *f)
{
    return or_else(f->device_decode_ms, 0) > or_else(f->copy_ms, 0);
}

/* True when epochs end before the queues are full; used when delivery is the bottleneck. */
static bool many_starts(const leat_doctor_facts *f)
{
    return leat__doctor_starts(f) >= MANY_STARTS;
}

static bool small_batches(const leat_doctor_facts *f)
{
    double per_sample_us =
        known(f->handover_us) && known(f->batch) && f->batch > 0 ? f->handover_us / f->batch : 0;
    return (known(f->delivery) && f->delivery > 0 && per_sample_us * f->delivery >= 0.4e6) ||
           (known(f->batch) && f->batch <= 4);
}

static const struct {
    uint32_t limit, cause;
    bool (*holds)(const leat_doctor_facts *f);
} causes[] = {
    {LEAT_LIMIT_MEMORY, LEAT_CAUSE_SWAPPING, swapping},
    {LEAT_LIMIT_MEMORY, LEAT_CAUSE_BUDGET, always},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_COLLATE, leat__doctor_collate_waits},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_THROTTLED, throttled},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_OTHER_LOADER, other_loader},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_CONTENTION, mostly_contention},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_FEW_THREADS, few_threads},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_AUGMENT, augment},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_PYTHON, python_code},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_COLLATE, collate},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_TRANSFER, transfer},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_LARGE_IMAGES, large_images},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_PNG, png},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_FEW_CPUS, few_cpus},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_WORKERS, some_worker_time},
    {LEAT_LIMIT_CPU, LEAT_CAUSE_DECODE, always},
    {LEAT_LIMIT_IO, LEAT_CAUSE_REFUSED, refused},
    {LEAT_LIMIT_IO, LEAT_CAUSE_REQUESTS, remote_requests},
    {LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, leat__doctor_line_full},
    {LEAT_LIMIT_IO, LEAT_CAUSE_LATENCY, remote_latency},
    {LEAT_LIMIT_IO, LEAT_CAUSE_AMPLIFIED, amplified},
    {LEAT_LIMIT_IO, LEAT_CAUSE_REQUESTS, requests},
    {LEAT_LIMIT_IO, LEAT_CAUSE_LATENCY, network_latency},
    {LEAT_LIMIT_IO, LEAT_CAUSE_NETWORK, network},
    {LEAT_LIMIT_IO, LEAT_CAUSE_COLD, cold},
    {LEAT_LIMIT_IO, LEAT_CAUSE_MEMORY_LIMIT, leat__doctor_memory_limit},
    {LEAT_LIMIT_IO, LEAT_CAUSE_LATENCY, leat__doctor_latency},
    {LEAT_LIMIT_IO, LEAT_CAUSE_WAITS, leat__doctor_waits},
    {LEAT_LIMIT_IO, LEAT_CAUSE_BANDWIDTH, always},
    {LEAT_LIMIT_DELIVERY, LEAT_CAUSE_SHORT_EPOCHS, many_starts},
    {LEAT_LIMIT_DELIVERY, LEAT_CAUSE_SMALL_BATCHES, small_batches},
    {LEAT_LIMIT_DELIVERY, LEAT_CAUSE_HANDOVER, always},
    {LEAT_LIMIT_TRAINER, LEAT_CAUSE_TRAINER, always},
    {LEAT_LIMIT_PYTHON, LEAT_CAUSE_TRANSFORM, always},
    {LEAT_LIMIT_DEVICE, LEAT_CAUSE_DEVICE_DECODE, device_decodes},
    {LEAT_LIMIT_DEVICE, LEAT_CAUSE_DEVICE_COPY, always},
};

static uint32_t cause_of(uint32_t limit, const leat_doctor_facts *f)
{
    for (size_t i = 0; i < LEAT_COUNT(causes); i++)
        if (causes[i].limit == limit && causes[i].holds(f)) return causes[i].cause;
    return LEAT_CAUSE_NONE;
}

/* ---- Missing evidence ---- */

static void miss(leat_doctor_diagnosis *d, bool there, const char *what)
{
    if (there || d->missing_count == LEAT_DOCTOR_LINES) return;
    snprintf(d->missing[d->missing_count++], sizeof d->missing[0], "%s", what);
}

static void find_missing(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    miss(d, known(d->trainer), "the trainer's step time (--step-ms, or batch_ms of a run)");
    miss(d, known(f->data_ms) || known(f->loader) || known(d->delivery),
         "the time spent waiting for batches");
    miss(d, known(d->io) || known(f->decode_ready), "the rate of reads");
    miss(d, known(d->cpu) || (known(f->cpu_used) && known(f->cpus)), "the rate of decoding");
    bool fed = known(d->lost) && d->lost < LEAT__LOST_WARNING;
    miss(d, fed || known(d->delivery) || known(f->decode_share), "the rate of delivery");
    miss(d, fed || known(f->blocked), "whether memory blocked work");
    d->complete = d->missing_count == 0;
}

/* ---- Together ---- */

/* True when the trainer waits although the loader is faster on average: bursts. */
static bool bursts(const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    double need = SLACK * d->trainer;
    if (!known(d->trainer) || !known(d->lost) || d->lost >= 2 * LEAT__LOST_CRITICAL) return false;
    if (known(f->data_ms_p95) && known(f->data_ms) && f->data_ms_p95 < 2.5 * f->data_ms) return false;
    if (known(f->loader)) return f->loader >= need;
    if (known(d->device) && d->device < need) return false;
    return d->io >= need && d->cpu >= need && d->delivery >= need;
}

/* True when the trainer waits at the starts of epochs, and the parts of the loader are otherwise fast
 * enough. Sets the confidence. */
static bool short_epochs(const leat_doctor_diagnosis *d, double *confidence)
{
    const leat_doctor_facts *f = &d->facts;
    double starts = leat__doctor_starts(f), parts[] = {d->io, d->cpu, d->delivery};
    if (!known(d->trainer) || !known(starts) || d->lost < LEAT__LOST_WARNING || starts < MOST * d->lost)
        return false;
    const double rest = d->lost - starts;
    *confidence = rest < LEAT__LOST_WARNING ? 0.9 : FAIRLY_SURE;
    if (starts < MANY_STARTS) *confidence = UNSURE; /* a small loss may differ in the next run */
    if (f->epoch_steps > 2) return rest < LEAT_MAX(LEAT__LOST_WARNING, FEW * d->lost);
    /* With one or two batches per epoch, the parts tell whether longer epochs would be fast enough. */
    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        if (known(parts[i]) && parts[i] < d->trainer) return false;
        if (!known(parts[i])) *confidence = LEAT_MIN(*confidence, FAIRLY_SURE);
    }
    return true;
}

/* Blames the starts of epochs when no other bottleneck is clear. Their cost was measured, and so was
 * the slow start of an epoch that ends before the queues are full. */
static void blame_starts(leat_doctor_diagnosis *d)
{
    double starts = leat__doctor_starts(&d->facts);
    const double least = d->limit == LEAT_LIMIT_NONE ? MANY_STARTS : LEAT__LOST_CRITICAL;
    if (d->confidence >= CLEAR || !known(starts) || starts < least) return;
    d->limit = LEAT_LIMIT_DELIVERY;
    d->cause = LEAT_CAUSE_SHORT_EPOCHS;
    d->confidence = starts >= MOST * d->lost ? FAIRLY_SURE : UNSURE;
}

static void weigh(leat_doctor_diagnosis *d, const votes *v)
{
    double best = 0, sum = 0;
    for (uint32_t i = LEAT_LIMIT_IO; i < LEAT_LIMITS; i++) {
        sum += v->weight[i];
        if (v->weight[i] <= best) continue;
        best = v->weight[i];
        d->limit = i;
    }
    if (d->limit == LEAT_LIMIT_NONE) return;
    d->confidence = best / sum * clamp(best / 1.2, 0, 1);
}

/* True when the transform takes a significant share of the step, and more than waiting for
 * batches does. */
static bool transform_limits(const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    double prepare = or_else(f->prepare_ms, 0), wait = or_else(f->data_ms, 0);
    return known(d->lost) && d->lost >= LEAT__LOST_WARNING && prepare > wait;
}

/* True when the flag that would remove the cause was tried and gained next to nothing. */
static bool cause_in_vain(const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    switch (d->cause) {
    case LEAT_CAUSE_FEW_THREADS: return tried_in_vain(f, "threads=");
    case LEAT_CAUSE_LATENCY: return or_else(f->io_fixed, 0) >= 1 && tried_in_vain(f, "io-depth=");
    default: return false;
    }
}

/* True when the chosen part is only what is left over: delivery that was never measured, or a part of another
 * loader's workers that they spent little time on. */
static bool left_over(const leat_doctor_diagnosis *d, const leat__doctor_rates *r)
{
    const leat_doctor_facts *f = &d->facts;
    bool others = d->cause == LEAT_CAUSE_CONTENTION || d->cause == LEAT_CAUSE_THROTTLED;
    if (d->limit == LEAT_LIMIT_DELIVERY)
        return !known(r->part[LEAT_LIMIT_DELIVERY]) && or_else(f->order_busy, 0) < 0.8;
    if (d->limit != LEAT_LIMIT_IO && d->limit != LEAT_LIMIT_CPU) return false;
    if (!(f->workers > 0) || others || !known(f->samples_per_s)) return false;
    return f->samples_per_s < EXPLAINS * r->part[d->limit];
}

/* Returns the upper limit of the confidence after the witnesses chose a limit. */
static double most_confidence(const leat_doctor_diagnosis *d, const leat__doctor_rates *r,
                              uint32_t distrusted)
{
    const leat_doctor_facts *f = &d->facts;
    bool part = d->limit == LEAT_LIMIT_IO || d->limit == LEAT_LIMIT_CPU || d->limit == LEAT_LIMIT_DELIVERY;
    if (part && !known(r->part[d->limit])) { /* the verdict rests on other evidence */
        if (d->limit == LEAT_LIMIT_IO && !reads_seen(f)) return UNSURE;
        if (or_else(f->skipped, 0) > 0 && !(d->limit == LEAT_LIMIT_IO && reads_seen(f))) return UNSURE;
    }
    /* workers of another loader that were not seen to read */
    if (d->limit == LEAT_LIMIT_IO && known(f->worker_fetch) && f->worker_fetch < FEW && !(f->read_bytes > 0))
        return UNSURE;
    if (cause_in_vain(d) || left_over(d, r)) return UNSURE;
    /* most samples came from the loader's memory: the few reads may all be of the first epoch */
    bool few = known(f->read_bytes) && f->read_bytes < f->sample_bytes * FETCHED_FEW;
    if (d->limit == LEAT_LIMIT_IO && or_else(f->remote, 0) >= 1 && few) return UNSURE;
    /* reads that arrived before the trial began may have made it look faster */
    if (tried_in_vain(f, "memory=") && f->spacious >= MARGIN_SURE * or_else(f->samples_per_s, HUGE_VAL))
        return UNSURE;
    /* answers come in bursts: a short run with enough memory may only have taken batches that were ready */
    if (d->cause == LEAT_CAUSE_BUDGET && or_else(f->remote, 0) >= 1 && !tried(f, "memory=")) return UNSURE;
    /* slow reads also fill a budget: only their rate, or a run with more memory, distinguishes the two */
    if (d->cause == LEAT_CAUSE_BUDGET && !known(f->spacious) && !known(leat__doctor_storage(f)))
        return UNSURE;
    /* idle CPUs are not the bottleneck, whatever the rates say */
    double wanted = cpus_wanted(f);
    bool idle = known(wanted) && wanted < IDLE && !leat__doctor_collate_waits(f);
    if (d->limit == LEAT_LIMIT_CPU && idle && !throttled(f)) return UNSURE;
    if (distrusted == 0) return d->cause == LEAT_CAUSE_WAITS ? FAIRLY_SURE : 1;
    votes queues = {{0}}, machine = {{0}};
    ask_queues(f, &queues);
    ask_machine(f, &machine);
    bool agree = queues.weight[d->limit] >= CLEAR && machine.weight[d->limit] >= CLEAR;
    return agree ? FAIRLY_SURE : UNSURE;
}

/* True when no step ended and the only evidence for the chosen limit is busy threads. Threads are also busy
 * at the start of a run, so they do not show that a trainer waits. An examination measures the delivery. */
static bool no_step_shows_it(const leat_doctor_diagnosis *d)
{
    bool busy = d->limit == LEAT_LIMIT_CPU || d->limit == LEAT_LIMIT_DELIVERY;
    return busy && d->facts.steps == 0 && !known(d->lost) && !known(d->delivery) && !known(d->facts.loader);
}

/* True when worker processes of another loader make only a few batches per epoch. Then starting them and
 * making the first batches cannot be distinguished. */
static bool tiny_epochs(const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    if (d->limit != LEAT_LIMIT_IO && d->limit != LEAT_LIMIT_DELIVERY) return false;
    return or_else(f->workers, 0) > 0 && known(f->epoch_steps) && f->epoch_steps <= TINY_EPOCH;
}

/* True when reads alone are much faster than the loop ever takes samples. Idle workers then wait for
 * something else: a busy machine, or the trainer. */
static bool reads_far_above(const leat_doctor_diagnosis *d, const leat__doctor_rates *r)
{
    const double loop = LEAT_MAX(d->facts.samples_per_s, d->trainer);
    return loop > 0 && r->part[LEAT_LIMIT_IO] >= FAR_ABOVE * loop;
}

static void decide(leat_doctor_diagnosis *d, const leat__doctor_rates *r, uint32_t distrusted)
{
    const leat_doctor_facts *f = &d->facts;
    votes v = {{0}};
    double sure;

    if (transform_limits(d)) { /* measured directly: no other evidence is needed */
        d->limit = LEAT_LIMIT_PYTHON;
        d->cause = LEAT_CAUSE_TRANSFORM;
        d->confidence = 0.95;
    } else if (known(d->trainer) && known(d->lost) && d->lost < LEAT__LOST_WARNING) {
        d->limit = LEAT_LIMIT_TRAINER;
        d->cause = LEAT_CAUSE_TRAINER;
        d->confidence = 1 - d->lost / LEAT__LOST_WARNING * 0.3;
        if (known(f->loader) && f->loader < d->trainer) d->confidence = CLEAR; /* both have the same rate */
    } else if (short_epochs(d, &sure)) {
        d->limit = LEAT_LIMIT_DELIVERY;
        d->cause = LEAT_CAUSE_SHORT_EPOCHS;
        d->confidence = sure;
    } else if (bursts(d)) {
        bool others = contention(f); /* fast enough without the other processes on its CPUs */
        d->limit = blocked_share(f) >= BLOCKED ? LEAT_LIMIT_MEMORY
                   : others                    ? LEAT_LIMIT_CPU
                                               : LEAT_LIMIT_DELIVERY;
        d->cause = d->limit == LEAT_LIMIT_DELIVERY ? LEAT_CAUSE_BURSTS : cause_of(d->limit, f);
        d->confidence = known(f->others) && known(f->run_delay) ? 0.6 : 0.5;
        if (tried_in_vain(f, "prefetch=")) d->confidence = LEAT_MIN(d->confidence, UNSURE);
    } else {
        ask_rates(f, r, &v);
        ask_queues(f, &v);
        ask_machine(f, &v);
        if (reads_far_above(d, r)) v.weight[LEAT_LIMIT_IO] = 0;
        weigh(d, &v);
        if (no_step_shows_it(d)) d->limit = LEAT_LIMIT_NONE;
        d->cause = cause_of(d->limit, f);
        d->confidence = LEAT_MIN(d->confidence, most_confidence(d, r, distrusted));
        blame_starts(d);
    }
    if (or_else(f->stall_share, 0) >= MOST) d->confidence = LEAT_MIN(d->confidence, UNSURE);
    if (tiny_epochs(d)) d->confidence = LEAT_MIN(d->confidence, UNSURE);
    if (!d->complete) d->confidence *= 0.6;
    if (known(f->steps) && f->steps < LEAT__STEPS_ENOUGH) d->confidence *= 0.5;
}

static uint32_t grade_of(const leat_doctor_diagnosis *d)
{
    if (!known(d->lost)) return LEAT_GRADE_UNKNOWN;
    if (d->lost < LEAT__LOST_WARNING) return LEAT_GRADE_FINE;
    if (d->lost < LEAT__LOST_CRITICAL) return LEAT_GRADE_WARNING;
    bool few = known(d->facts.steps) && d->facts.steps < LEAT__STEPS_ENOUGH;
    /* without a bottleneck the loss itself is uncertain: asynchronous work on a device looks like idle
     * time */
    return few || d->limit == LEAT_LIMIT_NONE ? LEAT_GRADE_WARNING : LEAT_GRADE_CRITICAL;
}

/* Returns the current rate: measured, or the combined rate of loader and trainer. */
static double rate_now(const leat_doctor_facts *f, const leat__doctor_rates *r)
{
    if (known(f->samples_per_s)) return f->samples_per_s;
    if (f->steps == 0) return -1; /* no batch came, so the rates of the parts were not reached */
    double trainer = r->part[LEAT_LIMIT_TRAINER];
    if (known(f->loader)) return known(trainer) ? LEAT_MIN(f->loader, trainer) : f->loader;
    uint32_t first = leat__doctor_smallest(r, true, NULL);
    return first != LEAT_LIMIT_NONE ? r->part[first] : -1;
}

/* Uses the rate of the run for a bottleneck that was never measured alone, because remedies are computed from
 * a rate. In the rates of the diagnosis it stays unknown. */
static void take_as_measured(leat_doctor_diagnosis *d)
{
    if (!known(d->rate)) return;
    if (d->limit == LEAT_LIMIT_IO && !known(d->io)) d->facts.io_cold = d->rate;
    if (d->limit == LEAT_LIMIT_CPU && !known(d->cpu)) d->facts.cpu_all = d->rate;
    if (d->cause == LEAT_CAUSE_SHORT_EPOCHS) return; /* no part is slow */
    if (d->limit == LEAT_LIMIT_DELIVERY && !known(d->delivery)) d->facts.delivery = d->rate;
}

int leat_doctor_judge(const leat_doctor_facts *facts, leat_doctor_diagnosis *out, size_t size,
                      leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && out != NULL, err);
    leat_doctor_diagnosis d = {.struct_size = sizeof d, .facts = *facts};

    LEAT_TRY(leat__facts_check(facts, err));
    uint32_t distrusted = leat__doctor_distrust(&d.facts);
    leat__doctor_rates r = leat__doctor_rates_of(&d.facts);
    d.io = r.part[LEAT_LIMIT_IO];
    d.cpu = r.part[LEAT_LIMIT_CPU];
    d.delivery = r.part[LEAT_LIMIT_DELIVERY];
    d.trainer = r.part[LEAT_LIMIT_TRAINER];
    d.device = r.part[LEAT_LIMIT_DEVICE];
    d.memory = -1;
    d.rate = rate_now(&d.facts, &r);
    d.lost = leat__doctor_lost(facts);
    find_missing(&d);
    decide(&d, &r, distrusted);
    if (d.limit == LEAT_LIMIT_MEMORY) d.memory = d.rate;
    take_as_measured(&d);
    r.part[d.limit] = -1;
    d.next = leat__doctor_smallest(&r, true, NULL);
    d.grade = grade_of(&d);
    leat__doctor_sentence(&d);
    leat__doctor_remedies(&d);
    d.facts = *facts; /* as given: judging them again gives the same verdict */
    leat__doctor_evidence(&d);
    leat__doctor_findings(&d, distrusted);
    memset(out, 0, size);
    memcpy(out, &d, LEAT_MIN(size, sizeof d));
    return 0;
}
