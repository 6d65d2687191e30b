/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples per second: the rate of each resource, the bottleneck and the next bottleneck. A measured fact is
 * preferred to a table, and a table to nothing. An unknown rate is never reported as sufficient.
 */
#include "plan/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "loader/state.h"
#include "base/str.h"

/* Spread of the table of CPU costs, which was measured on one machine. On two others, with the factor
 * for the kind of CPU, ordinary settings were off by up to 0.4. */
#define SPREAD_COST 0.60
#define SPREAD_GUESS 1.50 /* ops on images whose size varies */
/* If the threads of a measurement got less than this share of the CPUs, they shared them with other
 * processes. */
#define IDLE_SHARE 0.75
#define SPREAD_COPY 0.25 /* uncertainty of the table of copies to the GPU */
/* Uncertainty of the table of reads per second: queues and caches of devices differ. */
#define SPREAD_READS 1.0

static leat_plan_range scaled(leat_plan_range r, double factor)
{
    return (leat_plan_range){r.low * factor, r.mid * factor, r.high * factor};
}

static leat_plan_range spread(double mid, double share)
{
    return (leat_plan_range){mid / (1 + share), mid, mid * (1 + share)};
}

static leat_plan_range at_most(leat_plan_range a, leat_plan_range b)
{
    return (leat_plan_range){LEAT_MIN(a.low, b.low), LEAT_MIN(a.mid, b.mid), LEAT_MIN(a.high, b.high)};
}

/* ---- CPU ---- */

static const char *isa_class(const char *isa)
{
    if (leat__str_starts(isa, "avx512")) return "avx512";
    if (leat__str_starts(isa, "avx2")) return "avx2";
    return "scalar";
}

double leat__plan_sample_us(const leat_plan_facts *f, const char *method, double bytes, double pixels)
{
    double out = (double)f->image * f->image, crop = f->crop_area;
    for (size_t i = 0; i < LEAT_COUNT(plan_sample_cost_rows); i++) {
        const plan_sample_cost *row = &plan_sample_cost_rows[i];
        if (strcmp(row->method, method) != 0) continue;
        if (strcmp(row->isa, "any") != 0 && strcmp(row->isa, isa_class(f->isa)) != 0) continue;
        return row->fixed_us + ((row->byte_ns + row->crop_byte_ns * crop) * bytes +
                                (row->pixel_ns + row->crop_pixel_ns * crop) * pixels + row->out_ns * out) /
                                   1e3;
    }
    return 0;
}

double leat__plan_table_us(const leat_plan_facts *f)
{
    double pixels = (double)f->width * f->height, bytes = (double)f->sample_bytes;
    double work = f->work > 0 ? f->work : 1;
    if (f->loader == LEAT_PLAN_PROCESS) return work * leat__plan_sample_us(f, "process", bytes, pixels);
    double share = f->images == LEAT_PLAN_RAW ? 1 : f->images == LEAT_PLAN_MIX ? f->mix_raw : 0;
    if (f->images == LEAT_PLAN_MIX && share < 1) /* share of the images that are not raw */
        bytes = LEAT_MAX(bytes - share * 3 * pixels, 0.0) / (1 - share);
    const char *coded = f->images == LEAT_PLAN_TILED ? "tiled" : "keep";
    return work * ((1 - share) * leat__plan_sample_us(f, coded, bytes, pixels) +
                   share * leat__plan_sample_us(f, "raw", 3 * pixels, pixels));
}

static leat_plan_range cpu_us(const leat_plan_facts *f)
{
    if (f->measured.cpu_us.mid > 0) return f->measured.cpu_us;
    double times = f->loader == LEAT_PLAN_PROCESS ? 1 : leat__plan_cpu_times(f);
    return spread(times * leat__plan_table_us(f) + f->ops_us, f->ops_guess ? SPREAD_GUESS : SPREAD_COST);
}

/* Splits the time of a sample, from the rates with 1 and `n` threads, into a part divided among the
 * threads and a rest. */
static void split_time(double one, double all, double n, double *divided, double *rest)
{
    *divided = n > 1 && one > 0 ? (1 / one - 1 / all) * n / (n - 1) : 1 / all * n;
    *rest = n > 1 && one > 0 ? 1 / one - *divided : 0;
}

static double at_threads(double one, double all, double n, double t)
{
    double divided, rest;
    split_time(one, all, n, &divided, &rest);
    if (divided <= 0) return all; /* more threads gave no gain */
    if (rest < 0) return all * t / n;
    return 1 / (rest + divided / t);
}

/* Returns the cores that cpu_rate needs for a rate. If no number is enough, returns a lower bound. */
static double cores_for(const leat_plan_facts *f, double us, double rate)
{
    const leat_plan_calibration *m = &f->measured;
    double divided, rest;
    if (m->rate_all.mid <= 0 || m->threads == 0) return rate * us / 1e6;
    split_time(m->rate_one.mid, m->rate_all.mid, m->threads, &divided, &rest);
    if (rate <= 0 || divided <= 0 || rest < 0 || 1 / rate <= rest) return rate / m->rate_all.mid * m->threads;
    return divided / (1 / rate - rest);
}

/* Threads that read from memory wait only for CPUs: CPU time that they did not get was used by other
 * processes. */
double leat__plan_shared_cpus(const leat_plan_facts *f, uint32_t *wanted)
{
    const leat_plan_calibration *m = &f->measured;
    double had = m->rate_all.mid * m->cpu_us.mid / 1e6;
    *wanted = m->cpus > 0 ? LEAT_MIN(m->threads, m->cpus) : m->threads;
    return had < IDLE_SHARE * leat__plan_cpus(*wanted, f->cpu_quota) ? had : 0;
}

double leat__plan_cpus(double cpus, double quota)
{
    return quota > 0 ? LEAT_MIN(quota, cpus) : cpus;
}

static leat_plan_range cpu_rate(const leat_plan_facts *f, double *us_out)
{
    const leat_plan_calibration *m = &f->measured;
    leat_plan_range us = cpu_us(f);
    uint64_t busy = (uint64_t)f->workers * LEAT_MAX(f->gpus, 1u);
    double cores = (double)LEAT_MIN(busy, (uint64_t)f->cpus);
    *us_out = us.mid;
    if (m->rate_all.mid > 0 && m->threads > 0 && cores > 0) {
        double mid = at_threads(m->rate_one.mid, m->rate_all.mid, m->threads, cores);
        return scaled(m->rate_all, mid / m->rate_all.mid);
    }
    cores = leat__plan_cpus(cores, f->cpu_quota); /* of a measured rate it is a part */
    if (us.mid <= 0 || cores <= 0) return (leat_plan_range){0};
    return (leat_plan_range){cores * 1e6 / us.high, cores * 1e6 / us.mid, cores * 1e6 / us.low};
}

/* ---- I/O ---- */

static leat_plan_range storage_rate(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_storage_rows); i++) {
        const plan_storage *row = &plan_storage_rows[i];
        if (strcmp(row->name, name) == 0)
            return (leat_plan_range){row->low_mbs * 1e6, row->mid_mbs * 1e6, row->high_mbs * 1e6};
    }
    return (leat_plan_range){0};
}

double leat__plan_read_limit(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_storage_rows); i++)
        if (strcmp(plan_storage_rows[i].name, name) == 0) return plan_storage_rows[i].reads_per_s;
    return 0;
}

bool leat__plan_reads_single(const leat_plan_facts *f)
{
    return leat__plan_order(f) == LEAT_ORDER_RANDOM;
}

static leat_plan_range storage_bytes_per_s(const leat_plan_facts *f)
{
    if (f->measured.io_bytes_per_s.mid > 0) return f->measured.io_bytes_per_s;
    if ((f->measured.failed >> LEAT_PLAN_IO & 1) != 0) return (leat_plan_range){0};
    return storage_rate(f->storage);
}

/* Returns the rate of reads from a local or network disk. */
static leat_plan_range disk_rate(const leat_plan_facts *f)
{
    leat_plan_range r = scaled(storage_bytes_per_s(f), 1.0 / (double)f->sample_bytes);
    double most = leat__plan_reads_single(f) ? leat__plan_read_limit(f->storage) : 0;
    if (most > 0) r = at_most(r, spread(most, SPREAD_READS));
    return r;
}

bool leat__plan_remote(const leat_plan_facts *f)
{
    return strcmp(f->storage, "bucket") == 0;
}

bool leat__plan_own_pages(const leat_plan_facts *f)
{
    return f->loader == LEAT_PLAN_LEAT && (leat__plan_remote(f) || f->cache == PLAN_CACHE_PROCESS);
}

bool leat__plan_trainer_unknown(const leat_plan_facts *f)
{
    return f->gpus == 0 && f->model[0] != '\0';
}

bool leat__plan_in_memory(const leat_plan_facts *f)
{
    if (f->cached >= PLAN_CACHED && f->cache != PLAN_CACHE_PROCESS) return true;
    return strcmp(f->storage, "memory") == 0 && f->measured.io_bytes_per_s.mid <= 0;
}

double leat__plan_busy(const leat_plan_facts *f)
{
    double ignored;
    leat_plan_range io = disk_rate(f), cpu = cpu_rate(f, &ignored);
    if (f->measured.rate_cold.mid > 0 && (uint32_t)f->workers == f->measured.threads)
        io = f->measured.rate_cold; /* measured on the loader itself, with all its costs of reading */
    return io.mid > 0 && cpu.mid > 0 ? LEAT_MIN(1.0, io.mid / cpu.mid) : 1;
}

/* Returns the share of the dataset that cache=process keeps, in the part of its budget that nothing else
 * needs. */
static double kept_share(const leat_plan_facts *f, const leat_plan_ram *ram)
{
    double dataset = (double)leat__plan_dataset_bytes(f);
    uint64_t trainers = LEAT_MAX(f->gpus, 1u);
    uint64_t own =
        (ram->queue + ram->assembling + ram->pinned + ram->workers + ram->pages - ram->uncharged) / trainers;
    if (ram->budget <= own) return 0;
    return LEAT_MIN(1.0, (double)(ram->budget - own) * (double)trainers / dataset);
}

/* Returns the share of the dataset that stays in memory: bytes that fit in free memory stay cached. */
static double cached_share(const leat_plan_facts *f, const leat_plan_ram *ram, const leat__plan_reads *reads)
{
    if (leat__plan_in_memory(f)) return 1;
    double dataset = (double)leat__plan_dataset_bytes(f);
    if (dataset > 0 && leat__plan_remote(f)) return LEAT_MIN(reads->kept, leat__plan_seen_share(f, reads, 1));
    if (dataset > 0 && leat__plan_own_pages(f)) return kept_share(f, ram);
    if (dataset <= 0 || ram->limit == 0 || ram->with_validation >= ram->limit) return 0;
    return LEAT_MIN(1.0, (double)(ram->limit - ram->with_validation) / dataset);
}

static double blend(double cold, double warm, double share)
{
    return cold > 0 && warm > 0 ? 1.0 / (share / warm + (1 - share) / cold) : cold;
}

static leat_plan_range larger(leat_plan_range a, leat_plan_range b)
{
    return a.mid >= b.mid ? a : b;
}

/* Returns the rate of reads when `share` is cached. Unknown storage counts as memory, which is an
 * upper bound. */
static leat_plan_range io_cached(const leat_plan_facts *f, leat_plan_range cold, double share)
{
    leat_plan_range warm = scaled(storage_rate("memory"), 1.0 / (double)f->sample_bytes);
    warm = larger(warm, f->measured.rate_all); /* memory is at least as fast as the measured
                                                * loader */
    if (cold.mid <= 0) return warm;
    leat_plan_range r = {blend(cold.low, LEAT_MAX(warm.low, cold.low), share),
                         blend(cold.mid, LEAT_MAX(warm.mid, cold.mid), share),
                         blend(cold.high, LEAT_MAX(warm.high, cold.high), share)};
    return r;
}

/* ---- Reading and decoding at once ---- */

leat__plan_overlap leat__plan_overlap_of(const leat_plan_facts *f)
{
    const leat_plan_calibration *m = &f->measured;
    leat__plan_overlap o = {.io_scale = 1};
    if (m->rate_cold.mid <= 0 || m->rate_all.mid <= 0 || m->cpus == 0) return o;
    double both = 1 / m->rate_cold.mid, io = (double)f->sample_bytes / m->io_bytes_per_s.mid;
    double cpu = LEAT_MAX(1 / m->rate_all.mid, m->cold_cpu_us / 1e6 / m->cpus);
    o.read_us = LEAT_MAX(m->cold_cpu_us - m->cpu_us.mid, 0.0) / (double)f->sample_bytes;
    if (both >= LEAT_MAX(io, cpu)) o.beside = LEAT_MIN((both - LEAT_MAX(io, cpu)) / LEAT_MIN(io, cpu), 1.0);
    if (both > io + cpu) o.io_scale = (both - cpu) / io;
    if (both < io) o.io_scale = LEAT_MAX(both, cpu) / io;
    return o;
}

/* Returns the loader's rate. `read`: share of its samples not in memory; `io`: samples per second
 * from storage; `cpu`: samples per second of the CPUs, at `us` per sample. */
static double loader_rate(const leat_plan_facts *f, const leat__plan_overlap *o, double io, double cpu,
                          double us, double read)
{
    if (io <= 0 || cpu <= 0) return LEAT_MAX(io, cpu);
    double io_s = (1 + (o->io_scale - 1) * read) / io;
    double read_us = o->read_us * (double)f->sample_bytes * read;
    double cpu_s = LEAT_MAX(1 / cpu, (us + read_us) / 1e6 / leat__plan_cpus(f->cpus, f->cpu_quota));
    return 1 / (LEAT_MAX(io_s, cpu_s) + o->beside * read * LEAT_MIN(io_s, cpu_s));
}

static leat_plan_range loader_range(const leat_plan_facts *f, const leat__plan_overlap *o, leat_plan_range io,
                                    leat_plan_range cpu, double us, double read)
{
    /* the cost of a sample varies inversely to the rate */
    double more = cpu.low > 0 ? cpu.mid / cpu.low : 1, less = cpu.high > 0 ? cpu.mid / cpu.high : 1;
    return (leat_plan_range){loader_rate(f, o, io.low, cpu.low, us * more, read),
                             loader_rate(f, o, io.mid, cpu.mid, us, read),
                             loader_rate(f, o, io.high, cpu.high, us * less, read)};
}

/* ---- GPU ---- */

static leat_plan_range gpu_rate(const leat_plan_facts *f, const leat_plan_vram *v, uint32_t *measured)
{
    double gpus = f->gpus;
    if (f->gpus == 0) return (leat_plan_range){0};
    leat_plan_range ms = f->measured.step_ms;
    if (ms.mid > 0) {
        double batch =
            (double)(f->measured.step_batch > 0 ? f->measured.step_batch : leat__plan_batch_samples(f));
        *measured = 1;
        return (leat_plan_range){gpus * batch * 1e3 / ms.high, gpus * batch * 1e3 / ms.mid,
                                 gpus * batch * 1e3 / ms.low};
    }
    return v->step_s > 0 ? spread(gpus / v->step_s, v->step_spread) : (leat_plan_range){0};
}

static leat_plan_range h2d_rate(const leat_plan_facts *f)
{
    double pixels = 3.0 * f->image * f->image * f->element_bytes;
    double sample = f->out_bytes > 0 ? (double)f->out_bytes : pixels;
    leat_plan_range bytes = f->measured.h2d_bytes_per_s;
    if (f->gpus == 0) return (leat_plan_range){0};
    if (bytes.mid <= 0) {
        const plan_gpu *gpu = leat__plan_gpu_find(f->gpu);
        if (gpu == NULL) return (leat_plan_range){0};
        bytes = spread(gpu->h2d_gbs * 1e9, SPREAD_COPY);
    }
    return scaled(bytes, f->gpus / sample);
}

/* ---- Together ---- */

/* Returns the smallest known rate, and names it and the next; each end of the interval is computed
 * separately. */
static leat_plan_range smallest(const leat_plan_range rates[5], uint32_t *limit, uint32_t *next)
{
    leat_plan_range out = {INFINITY, INFINITY, INFINITY};
    double second = INFINITY;
    *limit = *next = LEAT_PLAN_NOTHING;
    for (uint32_t r = LEAT_PLAN_IO; r <= LEAT_PLAN_GPU; r++) {
        if (rates[r].mid <= 0) continue;
        if (rates[r].mid < out.mid) {
            *next = *limit;
            second = out.mid;
            *limit = r;
        } else if (rates[r].mid < second) {
            *next = r;
            second = rates[r].mid;
        }
        out.low = LEAT_MIN(out.low, rates[r].low);
        out.mid = LEAT_MIN(out.mid, rates[r].mid);
        out.high = LEAT_MIN(out.high, rates[r].high);
    }
    return *limit == LEAT_PLAN_NOTHING ? (leat_plan_range){0} : out;
}

/* Returns the batches per rank and epoch: the last, smaller one counts if every rank has a sample in it, or
 * if it is the only one. */
static uint64_t iterations(const leat_plan_facts *f)
{
    uint64_t ranks = (uint64_t)f->nodes * LEAT_MAX(f->gpus, 1u), step = f->batch * ranks;
    uint64_t rest = f->samples % step, least = f->loader == LEAT_PLAN_PROCESS ? 1 : ranks;
    return f->samples / step + (rest >= least || (rest > 0 && f->samples < step));
}

static leat_plan_range seconds_for(double samples, leat_plan_range rate)
{
    if (rate.mid <= 0) return (leat_plan_range){0};
    return (leat_plan_range){samples / rate.high, samples / rate.mid, samples / rate.low};
}

/* Returns the time of an epoch: all samples of a node, and at least one step of its GPUs. */
static leat_plan_range epoch_seconds(const leat_plan_facts *f, const leat_plan_speed *s, leat_plan_range rate)
{
    leat_plan_range all = seconds_for((double)f->samples / f->nodes, rate);
    leat_plan_range step = seconds_for((double)leat__plan_batch_samples(f) * f->gpus, s->gpu);
    if (s->iterations == 0) return all;
    return (leat_plan_range){LEAT_MAX(all.low, step.low), LEAT_MAX(all.mid, step.mid),
                             LEAT_MAX(all.high, step.high)};
}

/* Names the source of each rate. */
static void name_sources(const leat_plan_facts *f, leat_plan_speed *s)
{
    const leat_plan_calibration *m = &f->measured;
    const struct {
        leat_plan_range rate, measured;
        const char *calibrated, *given, *otherwise;
    } rows[] = {
        [LEAT_PLAN_IO] = {s->io, m->io_bytes_per_s,
                          leat__plan_remote(f) ? "measured: a few reads of the bucket"
                          : m->quick           ? "measured: a short series of direct reads of the pack"
                                               : "calibrated: direct reads of the pack",
                          "given: --io-mbs or --gbps", "table: " PLAN_STORAGE_SOURCE},
        [LEAT_PLAN_CPU] = {s->cpu, m->cpu_us,
                           m->quick ? "measured: a short run of the loader on the pack"
                                    : "calibrated: the loader on the pack, from memory",
                           "given: --cpu-us", "table: " PLAN_SAMPLE_COST_SOURCE},
        [LEAT_PLAN_H2D] = {s->h2d, m->h2d_bytes_per_s, "calibrated: page-locked copies to the GPU",
                           "given: --h2d-gbs", "table: " PLAN_GPU_SOURCE},
        [LEAT_PLAN_GPU] = {s->gpu, m->step_ms, "calibrated: training steps", "given: --step-ms",
                           "model: roofline of the architecture, fitted to " PLAN_STEP_SOURCE},
    };
    for (uint32_t r = LEAT_PLAN_IO; r <= LEAT_PLAN_GPU; r++) {
        if (rows[r].rate.mid <= 0) continue;
        bool calibrated = (m->calibrated >> r & 1) != 0;
        s->sources[r] = rows[r].measured.mid <= 0 ? rows[r].otherwise
                        : calibrated              ? rows[r].calibrated
                                                  : rows[r].given;
    }
}

/* Names the bottleneck of the loader. Reading and decoding overlap, so both are one rate in
 * rates[LEAT_PLAN_IO]. If storage alone is not the slower one, the CPUs are the limit. */
static void name_loader(const leat_plan_speed *s, leat_plan_range io, uint32_t *limit, uint32_t *next)
{
    uint32_t slowest, second;
    leat_plan_range others[5] = {{0}, io, {0}, s->h2d, s->gpu};
    if (*limit != LEAT_PLAN_IO || s->cpu.mid <= 0 || io.mid < s->cpu.mid) return;
    smallest(others, &slowest, &second);
    *limit = LEAT_PLAN_CPU;
    if (*next == LEAT_PLAN_CPU) *next = slowest;
}

/* Computes the first epoch: everything is read, unless it is already in the page cache. */
static void first_epoch(const leat_plan_facts *f, const leat__plan_overlap *o, leat_plan_speed *s,
                        uint32_t *next)
{
    leat_plan_range io = s->io.mid > 0 ? s->io : s->io_cached;
    /* the loader itself was measured with this many threads; otherwise the rate is computed */
    bool same = f->measured.rate_cold.mid > 0 && (uint32_t)f->workers == f->measured.threads;
    leat_plan_range first = same ? f->measured.rate_cold : loader_range(f, o, io, s->cpu, s->cpu_us, 1);
    leat_plan_range rates[5] = {{0}, first, s->cpu, s->h2d, s->gpu};
    s->first_epoch = smallest(rates, &s->first_limit, next);
    name_loader(s, io, &s->first_limit, next);
}

static void later_epochs(const leat_plan_facts *f, const leat__plan_overlap *o, leat_plan_speed *s,
                         uint32_t *next)
{
    leat_plan_range rates[5] = {{0}, s->io_cached, s->cpu, s->h2d, s->gpu};
    double read = leat__plan_in_memory(f) ? 0 : 1 - s->cached_share;
    s->later = smallest(rates, &s->later_limit, next);
    if (s->io.mid > 0 && s->cpu.mid > 0)
        s->later = at_most(s->later, loader_range(f, o, s->io_cached, s->cpu, s->cpu_us, read));
}

static void times_of(const leat_plan_facts *f, leat_plan_speed *s)
{
    double rest = f->epochs - 1.0;
    leat_plan_range first_s = epoch_seconds(f, s, s->first_epoch);
    if (leat__plan_trainer_unknown(f)) return;
    s->epoch_s = epoch_seconds(f, s, s->rate);
    s->total_s = (leat_plan_range){first_s.low + rest * s->epoch_s.low, first_s.mid + rest * s->epoch_s.mid,
                                   first_s.high + rest * s->epoch_s.high};
}

void leat__plan_speed(const leat_plan_facts *f, const leat__plan_overlap *o, const leat_plan_ram *ram,
                      const leat_plan_vram *vram, leat_plan_speed *s)
{
    uint32_t next_first, next_later;
    *s = (leat_plan_speed){0};
    const bool remote = leat__plan_remote(f);
    leat__plan_reads reads = leat__plan_reads_of(f, ram);
    leat_plan_range link = storage_bytes_per_s(f);
    s->cached_share = cached_share(f, ram, &reads);
    s->io = remote ? leat__plan_bucket_rate(f, &reads, link, false) : disk_rate(f);
    s->io_cached =
        io_cached(f, remote ? leat__plan_bucket_rate(f, &reads, link, true) : s->io, s->cached_share);
    s->cpu = cpu_rate(f, &s->cpu_us);
    s->h2d = h2d_rate(f);
    s->gpu = gpu_rate(f, vram, &s->gpu_measured);
    first_epoch(f, o, s, &next_first);
    later_epochs(f, o, s, &next_later);
    if (leat__plan_in_memory(f) && f->cached >= PLAN_CACHED) { /* all epochs are alike */
        s->first_epoch = s->later;
        s->first_limit = s->later_limit;
        next_first = next_later;
    }
    bool only = f->epochs == 1;
    s->rate = only ? s->first_epoch : s->later;
    s->limit = only ? s->first_limit : s->later_limit;
    s->next = only ? next_first : next_later;
    s->incomplete = s->io.mid <= 0 || s->cpu.mid <= 0 || (f->gpus > 0 && s->gpu.mid <= 0) ||
                    leat__plan_trainer_unknown(f);
    s->iterations = iterations(f);
    times_of(f, s);
    s->needed = s->gpu.mid;
    s->cores_needed = cores_for(f, s->cpu_us, s->needed);
    name_sources(f, s);
}

double leat__plan_quality_share(uint32_t quality)
{
    const size_t n = LEAT_COUNT(plan_quality_rows); /* sorted from high quality to low */
    if (quality >= plan_quality_rows[0].quality) return plan_quality_rows[0].bytes_share;
    for (size_t i = 1; i < n; i++) {
        const plan_quality *a = &plan_quality_rows[i - 1], *b = &plan_quality_rows[i];
        if (quality < b->quality) continue;
        double t = (double)(quality - b->quality) / (double)(a->quality - b->quality);
        return b->bytes_share + t * (a->bytes_share - b->bytes_share);
    }
    return plan_quality_rows[n - 1].bytes_share;
}

static double raw_share(uint32_t images, double mix)
{
    return images == LEAT_PLAN_RAW ? 1 : images == LEAT_PLAN_MIX ? mix : 0;
}

uint64_t leat__plan_stored_bytes(const leat_plan_facts *f, uint32_t images, double mix)
{
    double raw = 3.0 * f->width * f->height, coded = (double)f->sample_bytes;
    double share = raw_share(images, mix), now = raw_share(f->images, f->mix_raw);
    if (f->sample_bytes == 0) coded = LEAT__PLAN_SAMPLE;
    else if (now >= 1) coded = raw / (3.0 * LEAT__PLAN_WIDTH * LEAT__PLAN_HEIGHT) * LEAT__PLAN_SAMPLE;
    else coded = LEAT_MAX(coded - now * raw, 0.0) / (1 - now);
    return LEAT_MAX((uint64_t)(share * raw + (1 - share) * coded), UINT64_C(1));
}
