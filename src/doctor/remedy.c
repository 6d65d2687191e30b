/* SPDX-License-Identifier: Apache-2.0
 *
 * Remedies. Each is a small function that changes the facts as the remedy would, so that all gains are
 * computed in the same way: rates from the changed facts, the smallest of them, and the next bottleneck.
 * There is no table from limits to advice: a remedy that does not raise the limit has no gain and is not
 * shown. If the loader was run with the flags of a remedy, the measured rate replaces the computed one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/judge.h"

#define WORTH 1.02       /* gains below this are noise */
#define TRIED_WORTH 1.05 /* a trial is short */
#define HARM 0.9         /* below this, a trial shows that the remedy makes the run slower */
#define TEXT 24
#define MIB 1048576.0
#define IN_FLIGHT 256 /* requests to a server that answers late */
#define CONNECTED 64  /* requests that the loader sends at once unless more are allowed */
#define COPIED 1e9    /* bytes per second: reads at this rate come from memory */

/* The facts and rates after applying a remedy. */
typedef struct situation {
    leat_doctor_facts f;
    double memory; /* rate the budget allows; negative = no limit */
    double reach;  /* share of its smallest part's rate that the loader reaches */
    double whole;  /* measured rate of the whole loader in this setting; negative = not tried */
    double now;    /* rate of the run; negative = unknown */
} situation;

typedef bool (*remedy_fn)(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r);

/* Returns the samples/s that a fixed number of reads in flight can fetch from a server, one sample each. */
static double reads_ceiling(const situation *w)
{
    const leat_doctor_facts *f = &w->f;
    double fetched = 1 - or_else(f->cached, 0);
    if (or_else(f->remote, 0) < 1 || or_else(f->io_fixed, 0) < 1 || or_else(f->order_random, 0) < 1)
        return HUGE_VAL;
    if (!(f->read_ms > 0) || !(f->io_depth > 0) || fetched <= 0) return HUGE_VAL;
    double most = f->io_depth * 1e3 / f->read_ms / fetched * leat__doctor_samples_per_read(f);
    return LEAT_MAX(most, w->now); /* a read may also bring neighbours that are used */
}

/* True when one thread makes the batches and trains: a DataLoader without workers, or a generator. */
static bool is_serial(const leat_doctor_facts *f)
{
    const bool own = or_else(f->plain, 0) >= 1 && or_else(f->threads, 0) == 1;
    return f->batch_ms > 0 && (own || (known(f->workers) && f->workers == 0));
}

/* Predicts the rate of one thread: reading, decoding and training follow each other. */
static double predict_serial(const leat__doctor_rates *r, double trainer, uint32_t *limit)
{
    static const uint32_t parts[] = {LEAT_LIMIT_IO, LEAT_LIMIT_CPU};
    double least = trainer, time = 1 / trainer;
    *limit = LEAT_LIMIT_TRAINER;
    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        const double rate = r->part[parts[i]];
        if (!(rate > 0)) continue;
        time += 1 / rate;
        if (rate < least) *limit = parts[i];
        least = LEAT_MIN(least, rate);
    }
    return 1 / time;
}

static double predict(const situation *w, uint32_t *limit)
{
    leat__doctor_rates r = leat__doctor_rates_of(&w->f);
    uint32_t taker = known(r.part[LEAT_LIMIT_PYTHON]) ? LEAT_LIMIT_PYTHON : LEAT_LIMIT_TRAINER;
    double trainer = r.part[taker];
    r.part[LEAT_LIMIT_MEMORY] = w->memory;
    if (is_serial(&w->f) && trainer > 0 && !known(w->whole)) return predict_serial(&r, trainer, limit);
    *limit = leat__doctor_smallest(&r, false, NULL);
    if (*limit == LEAT_LIMIT_NONE && !known(w->whole)) return -1;
    double supply = *limit != LEAT_LIMIT_NONE ? r.part[*limit] : HUGE_VAL;
    if (*limit != LEAT_LIMIT_MEMORY) supply *= w->reach;
    if (supply > reads_ceiling(w)) {
        *limit = LEAT_LIMIT_IO;
        supply = reads_ceiling(w);
    }
    bool python = taker == LEAT_LIMIT_PYTHON && w->f.prepare_ms > or_else(w->f.batch_ms, 0);
    uint32_t trains = python ? LEAT_LIMIT_PYTHON : LEAT_LIMIT_TRAINER;
    if (known(w->whole)) { /* the measured rate includes all parts */
        if (known(trainer) && trainer < supply) *limit = trains;
        supply = w->whole;
    }
    if (!known(trainer) || supply < trainer) return supply;
    *limit = trains;
    return trainer;
}

static situation situation_now(const leat_doctor_diagnosis *d)
{
    situation w = {.f = d->facts, .memory = d->memory, .reach = 1, .whole = -1, .now = d->rate};
    leat__doctor_rates r = leat__doctor_rates_of(&w.f);
    uint32_t first = leat__doctor_smallest(&r, false, NULL);
    bool waits = !known(d->lost) || d->lost >= LEAT__LOST_WARNING;
    if (first != LEAT_LIMIT_NONE && waits && known(d->rate) && r.part[first] > 0 &&
        d->limit != LEAT_LIMIT_MEMORY && d->limit != LEAT_LIMIT_PYTHON)
        w.reach = LEAT_MIN(1.3, LEAT_MAX(0.3, d->rate / r.part[first]));
    return w;
}

static void act(leat_doctor_remedy *r, uint32_t basis, const char *set, const char *action)
{
    r->basis = basis;
    snprintf(r->set, sizeof r->set, "%s", set);
    snprintf(r->action, sizeof r->action, "%s", action);
}

/* True when the loader is leat's, which has the flags that a remedy sets. */
static bool has_flags(const leat_doctor_facts *f)
{
    return !known(f->workers) && or_else(f->plain, 0) < 1;
}

/* Returns how certain a gain is. It is an estimate when its measurements disagree, when their spread is not
 * known, or when other processes used the CPUs during them. */
static uint32_t basis_of(const leat_doctor_facts *f, double spread)
{
    bool alone = or_else(f->remedy_others, 0) <= LEAT__AGREES;
    return alone && known(spread) && spread <= LEAT__AGREES ? LEAT_BASIS_MEASURED : LEAT_BASIS_MODEL;
}

/* ---- Storage ---- */

static bool stay_cached(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    char a[TEXT], b[TEXT];
    leat_doctor_facts *f = &w->f;
    if (!known(f->dataset_bytes) || !known(f->memory_free) || !known(f->io_warm)) return false;
    if (or_else(f->cached, 0) >= LEAT__ALL_CACHED || f->dataset_bytes * 1.1 > f->memory_free) return false;
    f->cached = 1;
    w->whole = f->loader_warm;
    act(r, basis_of(f, known(f->loader_warm) ? 0 : -1), or_else(f->cache_process, 0) >= 1 ? "cache=os" : "",
        "");
    snprintf(r->action, sizeof r->action,
             "nothing to set: from the second epoch on the page cache holds the pack (%s of %s free)",
             leat__format_bytes((uint64_t)f->dataset_bytes, a, TEXT),
             leat__format_bytes((uint64_t)f->memory_free, b, TEXT));
    (void)d;
    return true;
}

static bool process_cache(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->dataset_bytes) || !known(f->memory_free) || !known(f->io_warm)) return false;
    if (f->dataset_bytes * 1.1 <= f->memory_free || f->dataset_bytes <= 0) return false;
    double room = 0.6 * f->memory_free, batches = or_else(f->budget_peak, 0);
    bool has_it = or_else(f->cache_process, 0) >= 1 && or_else(f->budget, 0) >= 0.95 * room;
    if (has_it) return false;
    double share = (room - batches) / f->dataset_bytes; /* batches in flight need memory too */
    if (share <= or_else(f->cached, 0) + 0.02) return false;
    f->cached = LEAT_MIN(1.0, share);
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->set, sizeof r->set, "cache=process,memory=%.0f", room);
    snprintf(r->action, sizeof r->action,
             "cache in the process (cache=process): the pack is larger than memory, a cache that "
             "never evicts keeps %.0f %% of it",
             100 * f->cached);
    (void)d;
    return true;
}

static bool raise_memory_limit(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    char a[TEXT], b[TEXT];
    leat_doctor_facts *f = &w->f;
    if (!leat__doctor_memory_limit(f)) return false;
    double more = f->dataset_bytes * 1.1 - f->memory_free, limit = f->memory_limit + more;
    f->cached = 1;
    w->whole = f->loader_warm;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action,
             "raise the memory limit from %s to %s: from the second epoch on the page cache holds the pack",
             leat__format_bytes((uint64_t)f->memory_limit, a, TEXT),
             leat__format_bytes((uint64_t)limit, b, TEXT));
    (void)d;
    return true;
}

/* Remedy: a disk cache. From the second epoch on, a remote pack is read from the local disk. */
static bool disk_cache(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (or_else(f->remote, 0) < 1 || or_else(f->cache_disk, 0) >= 1 || !known(f->io_cold)) return false;
    f->io_cold = f->io_deep = f->io_pages = HUGE_VAL; /* as fast as the disk, whose rate is unknown here */
    f->remote = 0;
    w->reach = LEAT_MAX(w->reach, 1.0);
    act(r, LEAT_BASIS_MODEL, "",
        "keep pages on a local disk (--cache disk:DIR): from the second epoch on nothing is fetched, if the "
        "disk keeps up");
    (void)d;
    return true;
}

/* Returns the rate with `depth` requests in flight, in any unit: a power law between the measured depths 2,
 * 16 and 64. Beyond the highest measured depth the rate is constant. */
static double request_rate(const leat_doctor_facts *f, double depth)
{
    bool large = known(f->remote_few_mbs) && known(f->remote_many_mbs);
    double few = large ? f->remote_few_mbs : f->remote_few,
           many = large ? f->remote_many_mbs : f->remote_many;
    if (!(few > 0) || !(many > 0)) return -1;
    if (depth <= 16) return few * pow(many / few, log2(depth / 2) / 3);
    return many * pow(LEAT_MAX(f->remote_most_mbs / many, 1.0), LEAT_MIN(log2(depth / 16) / 2, 1.0));
}

/* Remedy for a server that answers late. A low fixed depth is raised to the number of requests that the
 * loader sends at once, with the gain from the measured rates. Otherwise the depth is raised further, which
 * gains no more than the last step that was measured, and at most doubles the rate. */
static bool more_requests(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (d->cause != LEAT_CAUSE_LATENCY || or_else(f->remote, 0) < 1 || !known(f->io_cold)) return false;
    if (or_else(f->io_fixed, 0) >= 1 && or_else(f->io_depth, 0) >= IN_FLIGHT) return false;
    bool few = or_else(f->io_fixed, 0) >= 1 && f->io_depth > 0 && f->io_depth < CONNECTED;
    double now = few ? request_rate(f, f->io_depth) : -1;
    int depth = now > 0 ? CONNECTED : IN_FLIGHT;
    const bool most = f->remote_most_mbs > 0 && f->remote_many_mbs > 0;
    const double more = most ? LEAT_MIN(f->remote_most_mbs / f->remote_many_mbs, 2.0) : 2;
    f->io_cold *= now > 0 ? request_rate(f, CONNECTED) / now : more;
    f->io_depth = depth;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->set, sizeof r->set, "io-depth=%d", depth);
    if (now > 0)
        snprintf(r->action, sizeof r->action, "%d reads in flight: answers come late, not slowly", depth);
    else
        snprintf(r->action, sizeof r->action,
                 "%d reads in flight (and LEAT_REMOTE_CONNECTIONS=%d): answers come late, not slowly", depth,
                 depth);
    return true;
}

/* Remedy: fewer requests to a server that refuses some. Refused requests wait and are sent again. */
static bool fewer_requests(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (d->cause != LEAT_CAUSE_REFUSED || !known(f->io_cold)) return false;
    f->io_cold /= 1 - LEAT_MIN(0.5, f->remote_refused);
    act(r, LEAT_BASIS_MODEL, "",
        "ask less often (LEAT_REMOTE_CONNECTIONS=16), use more prefixes, or raise the limit there");
    return true;
}

static bool quasi_random(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    bool refused = d->cause == LEAT_CAUSE_REFUSED || d->cause == LEAT_CAUSE_REQUESTS;
    if (refused && known(f->remote_many_mbs) && known(f->sample_bytes) && f->sample_bytes > 0)
        f->io_pages = 1e6 * f->remote_many_mbs / f->sample_bytes; /* fewer, larger answers */
    if (or_else(f->order_random, 0) < 1 || !known(f->io_pages) || !known(f->io_cold)) return false;
    f->io_cold = LEAT_MAX(f->io_cold, f->io_pages);
    f->io_deep = LEAT_MAX(f->io_deep, f->io_cold);
    f->order_random = 0;
    act(r, LEAT_BASIS_MODEL, "order=quasi_random",
        "order quasi_random: pages are shuffled and read whole, samples are shuffled in a window");
    (void)d;
    return true;
}

static bool deeper_reads(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (or_else(f->io_fixed, 0) < 1) return false; /* the controller finds the best depth */
    if (!known(f->io_deep) || !known(f->io_cold) || or_else(f->io_depth, 0) >= 64) return false;
    f->io_cold = f->io_deep;
    f->io_depth = 64;
    if (known(f->io_warm))
        f->io_warm = LEAT_MAX(f->io_warm, known(f->io_warm_deep) ? f->io_warm_deep : f->io_deep);
    /* a depth set by the user is used at once, without a search */
    if (w->reach < 1 && d->limit == LEAT_LIMIT_IO) w->reach = (w->reach + 1) / 2;
    act(r, LEAT_BASIS_MODEL, "io-depth=64", "64 reads in flight: latency limits the storage, not bandwidth");
    return true;
}

static bool smaller_window(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->read_bytes) || !known(f->sample_bytes) || f->sample_bytes <= 0) return false;
    double factor = f->read_bytes / f->sample_bytes;
    if (factor < 1.3 || or_else(f->cache_process, 0) < 1) return false;
    f->io_cold *= factor;
    f->read_bytes = f->sample_bytes;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action, "a smaller page window, or more memory: pages are read %.1f times",
             factor);
    (void)d;
    return true;
}

static bool faster_storage(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->io_cold)) return false;
    if (or_else(f->cached, 0) >= LEAT__ALL_CACHED && or_else(f->remote, 0) < 1) return false; /* not used */
    double was = f->io_cold;
    f->io_cold *= 4;
    if (f->read_ms > 0) f->read_ms /= 4;
    if (known(f->io_warm)) f->io_warm = LEAT_MAX(f->io_warm, f->io_cold);
    r->basis = LEAT_BASIS_MODEL;
    char now[TEXT + 16] = "", speed[TEXT];
    double bytes = known(f->sample_bytes) ? f->sample_bytes : or_else(f->read_bytes, 0);
    if (bytes > 0) snprintf(now, sizeof now, " (now %s)", leat__doctor_speed(bytes * was, speed, TEXT));
    if (leat__doctor_waits(f)) {
        act(r, r->basis, "", "what the dataset waits for, four times as fast");
        return true;
    }
    snprintf(r->action, sizeof r->action, "%sstorage four times as fast%s",
             or_else(f->network, 0) >= 1 ? "local disk, or a bucket in this region: " : "", now);
    (void)d;
    return true;
}

/* ---- CPU ---- */

/* Returns the CPU rate with this many threads and CPUs, in proportion to the current number. */
static double cpu_with(const leat_doctor_facts *f, double threads, double cpus)
{
    double now = LEAT_MIN(or_else(f->threads, 1), or_else(f->cpus, 1));
    double then = LEAT_MIN(threads, cpus);
    return now > 0 ? f->cpu_all * then / now : f->cpu_all;
}

/* True unless CPUs are idle because threads are fewer, or wait in collate_fn. */
static bool uses_all_cpus(const leat_doctor_facts *f)
{
    bool few = known(f->threads) && known(f->cpus) && f->threads <= f->cpus - 1;
    return !few && !leat__doctor_collate_waits(f);
}

static bool more_threads(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    const bool waits = leat__doctor_waits(f) && known(f->io_cold);
    if (!known(f->threads) || !known(f->cpus) || (!known(f->cpu_all) && !waits)) return false;
    double threads = ceil(f->cpus);
    if (f->threads >= threads || known(f->more_workers_gain)) return false;
    if (known(f->cpu_all)) f->cpu_all = cpu_with(f, threads, f->cpus);
    if (waits) f->io_cold *= threads / LEAT_MAX(f->threads, 1.0); /* several wait at the same time */
    f->threads = threads;
    r->basis = LEAT_BASIS_MODEL;
    if (known(f->workers)) {
        if (f->workers < 1) w->reach = 1; /* workers overlap with the trainer */
        snprintf(r->action, sizeof r->action, "num_workers=%.0f: as many as there are usable CPUs", threads);
        return true;
    }
    if (or_else(f->plain, 0) >= 1) {
        if (d->facts.threads <= 1) w->reach = 1; /* see above */
        snprintf(
            r->action, sizeof r->action,
            "make batches in %.0f worker processes (a DataLoader with num_workers=%.0f), or pack the data "
            "and use leat.Loader",
            threads, threads);
        return true;
    }
    snprintf(r->set, sizeof r->set, "threads=%.0f", threads);
    snprintf(r->action, sizeof r->action, "%.0f threads: as many as there are usable CPUs", threads);
    return true;
}

/* Remedy: more worker processes. They were tried with the same loader and step; the gain is that of the
 * trials. */
static bool more_workers(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->more_workers) || !(f->more_workers_rate > 0) || !leat__doctor_more_workers_help(f))
        return false;
    w->whole = f->more_workers_rate; /* each worker has the same slowest part */
    act(r, LEAT_BASIS_MEASURED, "", "");
    snprintf(r->action, sizeof r->action, "num_workers=%.0f instead of %.0f: tried in turn, with the step",
             f->more_workers, or_else(f->workers, 0));
    (void)d;
    return true;
}

/* Remedy: cheaper code of the user, where it is most of the workers' time. Python code and collate_fn run as
 * fast as they are written. */
static bool faster_code(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    const leat__doctor_work work = leat__doctor_main_work(&w->f);
    const bool own = work.cause == LEAT_CAUSE_COLLATE || work.cause == LEAT_CAUSE_PYTHON;
    if (!own || !known(w->f.cpu_all) || leat__doctor_collate_waits(&w->f)) return false;
    w->f.cpu_all /= 1 - LEAT_MIN(work.share, 1.0) / 2;
    act(r, LEAT_BASIS_MODEL, "",
        work.cause == LEAT_CAUSE_COLLATE ? "collate_fn in half the time"
                                         : "the Python code of the dataset in half the time");
    (void)d;
    return true;
}

static bool fewer_threads(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    double line = or_else(f->run_delay, 0), slow = or_else(f->throttled, 0);
    if (!known(f->threads) || !known(f->cpus) || !known(f->cpu_all)) return false;
    double threads = LEAT_MAX(1.0, floor(f->cpus));
    if (f->threads <= ceil(f->cpus) || (line < 0.1 && slow < 0.1)) return false;
    /* Threads beyond the number of CPUs do no extra work; they cost context switches and cache
     * misses. Published figures are around a tenth. */
    f->cpu_all *= 1.1;
    f->threads = threads;
    f->run_delay = f->throttled = 0;
    r->basis = LEAT_BASIS_GUIDE;
    if (has_flags(f)) snprintf(r->set, sizeof r->set, "threads=%.0f", threads);
    snprintf(r->action, sizeof r->action, "%s%.0f%s: more than the usable CPUs only contend",
             known(f->workers) ? "num_workers=" : "", threads,
             known(f->workers) ? ""
             : has_flags(f)    ? " threads"
                               : " worker processes");
    (void)d;
    return true;
}

static bool close_siblings(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    double siblings = or_else(f->siblings, 0), cpus = or_else(f->cpus, 0);
    if (!known(f->cpu_all) || cpus <= 0 || siblings < 0.1 * cpus) return false;
    f->cpu_all /= 1 - LEAT_MIN(0.9, siblings / cpus);
    f->siblings = 0;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action,
             "stop the other loaders of this process while this one works: they use %.1f of %.1f CPUs",
             siblings, cpus);
    (void)d;
    return true;
}

static bool free_cpus(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    double others = leat__doctor_others(f), cpus = or_else(f->cpus, 0);
    if (!known(f->cpu_all) || cpus <= 0 || others < 0.1 * cpus) return false;
    if (leat__doctor_collate_waits(f)) return false;
    double share = LEAT_MIN(0.9, others / cpus), gain = 1 / (1 - share);
    /* quota for the process's threads */
    double room = LEAT_MIN(cpus, LEAT_MAX(or_else(f->threads, cpus), 1.0));
    if (f->cpu_used > 0) gain = LEAT_MIN(gain, LEAT_MAX(room / f->cpu_used, 1.0));
    f->cpu_all *= gain;
    f->others = f->run_delay = 0;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action, "free CPUs for this process: others use %.1f of %.1f",
             LEAT_MIN(others, cpus), cpus);
    (void)d;
    return true;
}

static bool raise_quota(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (or_else(f->quota, 0) <= 0 || !known(f->cpus_host) || !known(f->cpu_all)) return false;
    if (f->cpus_host <= f->cpus || f->cpus <= 0 || !uses_all_cpus(f)) return false;
    double cpus = LEAT_MIN(f->cpus_host, 2 * f->cpus), gain = cpus / f->cpus;
    f->cpu_all *= gain;
    f->cpus = f->threads = cpus;
    f->throttled = 0;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action, "raise the CPU quota from %.2f to %.2f CPUs (the machine has %.0f)",
             f->quota, cpus, f->cpus_host);
    (void)d;
    return true;
}

static bool lift_affinity(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (or_else(f->quota, 0) > 0 || !known(f->cpus_host)) return false;
    if (!known(f->cpus) || !known(f->cpu_all)) return false;
    if (f->cpus_host <= f->cpus || f->cpus <= 0 || !uses_all_cpus(f)) return false;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action,
             "let this process use all %.0f CPUs of the machine: its affinity (taskset, cpuset) allows %.0f",
             f->cpus_host, f->cpus);
    f->cpu_all *= f->cpus_host / f->cpus;
    f->cpus = f->threads = f->cpus_host;
    (void)d;
    return true;
}

static bool more_cpus(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->cpus) || !known(f->cpu_all) || f->cpus <= 0) return false;
    /* the host already has more CPUs than the process may use */
    if (known(f->cpus_host) && f->cpus < f->cpus_host) return false;
    if (!uses_all_cpus(f)) return false;
    f->cpu_all *= 2;
    f->cpus *= 2;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->action, sizeof r->action, "a machine with %.0f CPUs instead of %.0f", f->cpus, f->cpus / 2);
    (void)d;
    return true;
}

/* ---- Memory and delivery ---- */

static bool raise_budget(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    char a[TEXT];
    if (!known(w->memory) || d->cause != LEAT_CAUSE_BUDGET || !known(f->budget)) return false;
    /* slow reads may be what fills the budget */
    if (!known(f->spacious) && !known(leat__doctor_storage(f))) return false;
    double room = or_else(f->memory_free, 0) + f->budget, want = 4 * f->budget;
    double budget = LEAT_MIN(want, 0.5 * room);
    if (budget < 1.2 * f->budget) return false;
    w->memory = f->spacious; /* if unknown, only the next part limits */
    f->blocked = 0;
    f->budget = budget;
    r->basis = LEAT_BASIS_MODEL; /* unlimited memory was tried, not this budget */
    snprintf(r->set, sizeof r->set, "memory=%.0f", floor(budget / MIB) * MIB);
    snprintf(r->action, sizeof r->action, "a budget of %s: work waits for memory, not for workers",
             leat__format_bytes((uint64_t)budget, a, TEXT));
    return true;
}

static bool lower_budget(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    char a[TEXT];
    if (!known(w->memory) || d->cause != LEAT_CAUSE_SWAPPING || !known(f->budget)) return false;
    w->memory = -1;
    f->budget *= 0.5;
    r->basis = LEAT_BASIS_MODEL;
    snprintf(r->set, sizeof r->set, "memory=%.0f", floor(f->budget / MIB) * MIB);
    snprintf(r->action, sizeof r->action,
             "a budget of %s: the machine is short of memory and reads evicted pages again",
             leat__format_bytes((uint64_t)f->budget, a, TEXT));
    return true;
}

static bool more_prefetch(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (d->cause != LEAT_CAUSE_BURSTS || !known(d->trainer)) return false;
    double prefetch = LEAT_MAX(8.0, 4 * or_else(f->prefetch, 2));
    f->prefetch = prefetch;
    f->data_ms = 0;
    r->basis = LEAT_BASIS_MODEL;
    if (has_flags(f)) snprintf(r->set, sizeof r->set, "prefetch=%.0f", prefetch);
    snprintf(r->action, sizeof r->action, "%s%.0f%s: the average is enough, but some batches come late",
             known(f->workers) ? "prefetch_factor=" : "", prefetch,
             known(f->workers) ? ""
             : has_flags(f)    ? " batches ahead"
                               : " batches made ahead, by another thread or process");
    return true;
}

static bool longer_epochs(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    if (d->cause != LEAT_CAUSE_SHORT_EPOCHS) return false;
    w->whole = d->rate / (1 - LEAT_MIN(leat__doctor_starts(&d->facts), 0.99));
    if (known(d->device)) w->whole = LEAT_MIN(w->whole, LEAT_MAX(d->device, d->rate));
    const bool workers = or_else(d->facts.workers, 0) > 0;
    act(r, LEAT_BASIS_MODEL, "",
        workers && or_else(d->facts.persistent, 1) < 1
            ? "persistent_workers=True: workers do not start again in each epoch; up to this gain, a guess: "
              "each epoch still begins without batches"
        : workers ? "num_workers=0, or longer epochs: workers begin each epoch without batches"
                  : "longer epochs (more samples, or each of them several times), so that few steps wait "
                    "for a start");
    return true;
}

static bool larger_batches(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (!known(f->delivery) || !known(f->batch) || !known(f->handover_us) || f->batch <= 0) return false;
    double batch = leat__larger_batch(f->batch), fixed = f->handover_us / 1e6;
    double sample = 1 / LEAT_MAX(f->delivery, 1e-9) - fixed / f->batch;
    if (known(f->larger)) { /* the rate of all parts together, in the current setting */
        f->delivery = f->larger;
        f->cpu_all = LEAT_MAX(f->cpu_all, f->larger);
        w->reach = 1;
    } else {
        f->delivery = 1 / (LEAT_MAX(sample, 0) + fixed / batch);
    }
    /* at best the step time grows in proportion to the batch */
    if (known(f->batch_ms)) f->batch_ms *= batch / f->batch;
    if (known(f->prepare_ms)) f->prepare_ms *= batch / f->batch;
    f->batch = batch;
    r->basis = basis_of(f, f->larger_spread);
    snprintf(r->action, sizeof r->action, "batches of %.0f: each batch costs %.0f us whatever its size",
             batch, d->facts.handover_us);
    return true;
}

/* ---- Other ways to store and deliver: gains are measured ---- */

/* Scales the read rates to samples of another size. If the depth is fixed and latency limits the
 * storage, the size does not matter. If reading is copying from memory, it is CPU time and included
 * in the measured cost. */
static void resize_reads(const leat_doctor_option *o, leat_doctor_facts *f)
{
    double factor = f->sample_bytes / o->sample_bytes;
    bool late = or_else(f->io_fixed, 0) >= 1 && leat__doctor_latency(f);
    bool copied = o->whole > 0 && f->io_warm * f->sample_bytes >= COPIED;

    if (known(f->io_cold) && !late) f->io_cold *= factor;
    if (known(f->io_warm) && !late) f->io_warm = copied ? HUGE_VAL : f->io_warm * factor;
    if (known(f->cached) && known(f->dataset_bytes) && known(f->memory_free)) {
        double bytes = f->dataset_bytes / factor;
        f->cached = LEAT_MIN(f->cached, LEAT_MAX(0.0, f->memory_free / bytes));
    }
}

static bool take_option(const leat_doctor_option *o, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (known(o->sample_bytes) && known(f->sample_bytes) && o->sample_bytes > 0) resize_reads(o, f);
    if (known(o->cpu_all)) f->cpu_all = o->cpu_all;
    if (o->whole > 0) f->delivery = -1; /* already included */
    act(r, basis_of(f, o->spread), o->set, o->action);
    return true;
}

/* ---- Python code on batches ---- */

static bool no_transform(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    leat_doctor_facts *f = &w->f;
    if (or_else(f->prepare_ms, 0) <= 0) return false;
    f->prepare_ms = -1;
    act(r, LEAT_BASIS_MODEL, "",
        "take transform= out of the loop: as ops of the pipeline, as sample_fn= in the workers, or on "
        "the GPU");
    (void)d;
    return true;
}

/* ---- The trainer: figures of the single-GPU guide ---- */

static bool faster_step(situation *w, leat_doctor_remedy *r, double factor, const char *action)
{
    if (!known(w->f.batch_ms)) return false;
    w->f.batch_ms /= factor;
    act(r, LEAT_BASIS_GUIDE, "", action);
    return true;
}

static bool mixed_precision(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    (void)d;
    return faster_step(w, r, 2.0, "mixed precision (bf16), if the trainer is still in fp32");
}

static bool compiled_model(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    (void)d;
    return faster_step(w, r, 1.2, "torch.compile, if the model is not compiled yet");
}

static bool channels_last(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    if (or_else(d->facts.nhwc, 0) >= 1) return false;
    return faster_step(w, r, 1.15, "channels_last (--layout nhwc), if the model is a CNN in nchw");
}

static bool second_gpu(const leat_doctor_diagnosis *d, situation *w, leat_doctor_remedy *r)
{
    (void)d;
    return faster_step(w, r, 1.9, "a second GPU, each with this batch");
}

static const remedy_fn remedies[] = {
    stay_cached,    process_cache,  raise_memory_limit, disk_cache,    quasi_random, more_requests,
    fewer_requests, deeper_reads,   smaller_window,     more_threads,  more_workers, fewer_threads,
    close_siblings, free_cpus,      raise_quota,        lift_affinity, raise_budget, lower_budget,
    more_prefetch,  larger_batches, faster_storage,     more_cpus,     no_transform, mixed_precision,
    compiled_model, channels_last,  second_gpu,         longer_epochs, faster_code,
};
#define REMEDY_ROWS LEAT_COUNT(remedies)

/* ---- Ranking ---- */

/* Applies row i of the table or, past its end, a measured option. */
static bool take(const leat_doctor_diagnosis *d, size_t row, situation *w, leat_doctor_remedy *r)
{
    *r = (leat_doctor_remedy){.rate = -1, .gain = 1};
    if (row < REMEDY_ROWS) return remedies[row](d, w, r);
    return take_option(&d->facts.options[row - REMEDY_ROWS], w, r);
}

static const leat_doctor_trial *trial_of(const leat_doctor_facts *f, const char *set)
{
    for (uint32_t i = 0; i < f->trial_count && set[0] != '\0'; i++)
        if (strcmp(f->trials[i].set, set) == 0) return &f->trials[i];
    return NULL;
}

bool leat__doctor_sets_only(const char *set, const char *flag)
{
    return leat__str_starts(set, flag) && strchr(set, ',') == NULL;
}

/* Returns the gain of a trial. A short trial may take batches that were read before it began. So the gain of
 * more memory is limited by the storage, and the gain of more threads by their number. */
static double tried_gain(const leat_doctor_diagnosis *d, const leat_doctor_trial *t)
{
    const double storage = leat__doctor_storage(&d->facts), threads = or_else(d->facts.threads, 0);
    double most = HUGE_VAL, tried;
    if (leat__doctor_sets_only(t->set, "memory=") && known(storage) && d->rate > 0)
        most = LEAT_MAX(storage / d->rate, 1.0);
    if (leat__doctor_sets_only(t->set, "threads=") && threads > 0 &&
        leat__str_to_double(t->set + strlen("threads="), &tried))
        most = LEAT_MAX(tried / threads, 1.0);
    return LEAT_MIN(t->gain, most);
}

/* Returns how sure the gain of a trial is. How much of a larger budget is in use changes for longer than a
 * trial lasts: trials that agreed with each other were 20 % off. */
static uint32_t tried_basis(const leat_doctor_facts *f, const leat_doctor_trial *t)
{
    return leat__doctor_sets_only(t->set, "memory=") ? LEAT_BASIS_MODEL : basis_of(f, t->spread);
}

/* True for a cache, which fills in the first epoch: a short trial only shows whether it does harm. */
static bool shows_late(const char *set)
{
    return strstr(set, "cache=process") != NULL;
}

/* Returns the maximum gain of a run: no waiting, and training faster by the factor of this situation. */
static double most_gain(const leat_doctor_diagnosis *d, const situation *w)
{
    const leat_doctor_facts *f = &d->facts;
    if (!known(d->lost) || d->lost >= 1) return HUGE_VAL;
    double factor = 1; /* speed-up of training per sample */
    if (known(f->batch_ms) && known(w->f.batch_ms) && w->f.batch_ms > 0 && f->batch > 0)
        factor = f->batch_ms / f->batch / (w->f.batch_ms / w->f.batch);
    if (factor <= 1) return 1 / (1 - d->lost);
    return 1 / (d->lost + (1 - d->lost) / factor); /* a faster step does not shorten the waiting */
}

/* Caps the gain of faster training. An unknown part of the loader may be as slow as the whole loader, so the
 * run cannot become faster than the loader is now. */
static void hold_below_loader(const leat_doctor_diagnosis *d, const situation *w, leat_doctor_remedy *r)
{
    const leat_doctor_facts *f = &d->facts;
    const uint32_t unknown = !known(d->cpu)        ? LEAT_LIMIT_CPU
                             : !known(d->io)       ? LEAT_LIMIT_IO
                             : !known(d->delivery) ? LEAT_LIMIT_DELIVERY
                                                   : LEAT_LIMIT_NONE;
    if (unknown == LEAT_LIMIT_NONE || !known(f->loader) || !(d->rate > 0) || !(w->f.batch_ms < f->batch_ms))
        return;
    const double most = LEAT_MAX(f->loader / d->rate, 1.0);
    if (r->gain <= most) return;
    r->gain = most;
    r->next = unknown;
}

/* Computes gain and rate of a remedy. `now` is the rate predicted for the run as it is. The gain is a factor
 * of `now`; the rate is the measured rate times that factor, so that both have the same base. */
static bool price(const leat_doctor_diagnosis *d, size_t row, double now, situation *w, leat_doctor_remedy *r)
{
    if (!take(d, row, w, r)) return false;
    r->rate = predict(w, &r->next);
    bool late_ones = d->cause == LEAT_CAUSE_BURSTS || d->cause == LEAT_CAUSE_SHORT_EPOCHS;
    if (late_ones && known(d->rate)) now = d->rate;
    const leat_doctor_trial *t = trial_of(&d->facts, r->set);
    bool late = t != NULL && shows_late(r->set);
    r->gain = known(r->rate) && now > 0 ? r->rate / now : 1;
    if (t != NULL && !late) r->gain = tried_gain(d, t);
    if (row < REMEDY_ROWS && remedies[row] == more_workers) r->gain = d->facts.more_workers_gain;
    double most = most_gain(d, w);
    r->gain = LEAT_MIN(r->gain, most);
    hold_below_loader(d, w, r);
    if (r->gain >= 0.99 * most && r->next != LEAT_LIMIT_PYTHON) r->next = LEAT_LIMIT_TRAINER;
    r->rate = or_else(d->rate, now) * r->gain;
    if (t == NULL) return r->gain >= WORTH;
    if (late) return r->gain >= WORTH && t->gain >= HARM;
    r->basis = tried_basis(&d->facts, t);
    return r->gain >= TRIED_WORTH;
}

/* Estimates from guides rank after everything measured on this machine. */
static bool ranks_before(const leat_doctor_remedy *a, const leat_doctor_remedy *b)
{
    bool guess_a = a->basis == LEAT_BASIS_GUIDE, guess_b = b->basis == LEAT_BASIS_GUIDE;
    return guess_a != guess_b ? guess_b : a->gain > b->gain;
}

static void insert(leat_doctor_diagnosis *d, size_t rows[], size_t row, const leat_doctor_remedy *r)
{
    uint32_t at = d->remedy_count;
    if (at == LEAT_DOCTOR_REMEDIES) {
        if (!ranks_before(r, &d->remedies[--at])) return;
    } else {
        d->remedy_count++;
    }
    for (; at > 0 && ranks_before(r, &d->remedies[at - 1]); at--) {
        d->remedies[at] = d->remedies[at - 1];
        rows[at] = rows[at - 1];
    }
    d->remedies[at] = *r;
    rows[at] = row;
}

bool leat__doctor_may_apply(const char *set)
{
    static const char *const keys[] = {"cache=", "order=", "threads=", "memory=", "prefetch=", "io-depth="};
    for (size_t i = 0; i < LEAT_COUNT(keys); i++)
        if (leat__str_starts(set, keys[i])) return true;
    return false;
}

static bool sets_already(const char *apply, const char *set)
{
    char key[32];
    size_t len = strcspn(set, "=");
    snprintf(key, sizeof key, "%.*s=", (int)LEAT_MIN(len, sizeof key - 2), set);
    return strstr(apply, key) != NULL;
}

/* Returns the extra gain of this remedy on top of those already in `w`; 1 when none. */
static double adds(const leat_doctor_diagnosis *d, size_t row, situation *w)
{
    leat_doctor_remedy r;
    uint32_t limit;
    situation with = *w;
    double before = predict(w, &limit);
    if (!take(d, row, &with, &r)) return 1;
    double gain = before > 0 ? predict(&with, &limit) / before : 1;
    if (gain >= WORTH) *w = with;
    return gain;
}

/* Uses the result of trying all flags together. Together they may gain less than the best one alone. */
static void judge_together(leat_doctor_diagnosis *d, const leat_doctor_remedy *best)
{
    const leat_doctor_trial *t = trial_of(&d->facts, d->apply);
    if (t == NULL) return;
    double gain = tried_gain(d, t);
    bool worse = best->basis == LEAT_BASIS_MEASURED && gain < best->gain;
    if (worse || gain < HARM) {
        snprintf(d->apply, sizeof d->apply, "%s", worse ? best->set : "");
        d->apply_gain = worse ? best->gain : 1;
        d->apply_basis = best->basis;
    } else if (!shows_late(d->apply)) {
        d->apply_gain = gain;
        d->apply_basis = tried_basis(&d->facts, t);
    }
}

/* True when a larger budget would take memory from the page cache. If a control group limits both and
 * the pack does not fit, only a trial shows a gain: 1.59 was predicted, 0.87 was measured. */
static bool takes_from_cache(const leat_doctor_diagnosis *d, const leat_doctor_remedy *r)
{
    const leat_doctor_facts *f = &d->facts;
    bool full = or_else(f->memory_limit, 0) > 0 && known(f->dataset_bytes) && known(f->memory_free) &&
                f->dataset_bytes > f->memory_free;
    return full && trial_of(f, r->set) == NULL && leat__str_starts(r->set, "memory=");
}

/* Adds the flags in sequence, each with its gain on top of the previous ones. */
static void put_together(leat_doctor_diagnosis *d, const size_t rows[], double now)
{
    const leat_doctor_remedy *first = NULL;
    situation w = situation_now(d);
    d->apply_gain = 1;
    for (uint32_t i = 0; i < d->remedy_count; i++) {
        const leat_doctor_remedy *r = &d->remedies[i];
        if (!leat__doctor_may_apply(r->set) || sets_already(d->apply, r->set)) continue;
        if (takes_from_cache(d, r)) continue;
        double gain = adds(d, rows[i], &w);
        if (first == NULL) {
            first = r;
            gain = r->gain;
        }
        if (gain < WORTH) continue;
        size_t len = strlen(d->apply);
        snprintf(d->apply + len, sizeof d->apply - len, "%s%s", len > 0 ? "," : "", r->set);
        d->apply_gain *= gain;
        d->apply_basis =
            len > 0 ? LEAT_BASIS_MODEL
                    : r->basis; /* the gain of several flags is computed, unless they were tried together */
    }
    if (first != NULL) judge_together(d, first);
    d->apply_gain = LEAT_MIN(d->apply_gain, most_gain(d, &w));
    d->apply_rate = known(now) ? now * d->apply_gain : -1;
}

void leat__doctor_remedies(leat_doctor_diagnosis *d)
{
    size_t rows[LEAT_DOCTOR_REMEDIES] = {0};
    uint32_t limit;
    situation now = situation_now(d);
    double rate = predict(&now, &limit);

    d->remedy_count = 0;
    d->apply[0] = '\0';
    d->apply_gain = 1;
    d->apply_basis = LEAT_BASIS_MODEL;
    d->apply_rate = or_else(d->rate, rate);
    if (d->limit == LEAT_LIMIT_NONE) return; /* the part with the computed gain may not be the bottleneck */
    for (size_t row = 0; row < REMEDY_ROWS + d->facts.option_count; row++) {
        leat_doctor_remedy r;
        situation w = now;
        bool other = row >= REMEDY_ROWS || remedies[row] != longer_epochs;
        /* no other remedy shortens the starts */
        if (other == (d->cause == LEAT_CAUSE_SHORT_EPOCHS)) continue;
        if (price(d, row, rate, &w, &r)) insert(d, rows, row, &r);
    }
    put_together(d, rows, or_else(d->rate, rate));
}
