/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples per second: the rate of each resource, the bottleneck, the next bottleneck, and the
 * effect of changes to dataset or machine. A measured fact is preferred to a table, and a table
 * to nothing. An unknown rate is never reported as sufficient.
 */
#include "plan/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "loader/state.h"
#include "base/str.h"

/* Spread of the table of CPU costs: it was measured on one machine. With the factor of the kind of CPU
 * ordinary settings on two others were off by up to 0.4. */
#define SPREAD_COST 0.60
#define SPREAD_COPY 0.25 /* uncertainty of the table of copies to the GPU */
/* Uncertainty of the table of reads per second: queues and caches of devices differ. */
#define SPREAD_READS 1.0
/* Requests to a bucket: the loader's connections, Amazon's documented rate for one prefix, the
 * largest request that joins neighbours (io/remote.h), and the spread of a measured latency. */
#define IN_FLIGHT 64.0
#define REQUESTS_MOST 5500.0
#define JOINED_BYTES (UINT64_C(8) << 20)
#define SPREAD_LATENCY 0.50
/* Gains below this are within the error of the figures: not worth a row. */
#define LEAST_GAIN 1.05

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
    if (f->images == LEAT_PLAN_MIX && share < 1) /* share of those that are not raw */
        bytes = LEAT_MAX(bytes - share * 3 * pixels, 0.0) / (1 - share);
    const char *coded = f->images == LEAT_PLAN_TILED ? "tiled" : "keep";
    return work * ((1 - share) * leat__plan_sample_us(f, coded, bytes, pixels) +
                   share * leat__plan_sample_us(f, "raw", 3 * pixels, pixels));
}

static leat_plan_range cpu_us(const leat_plan_facts *f)
{
    if (f->measured.cpu_us.mid > 0) return f->measured.cpu_us;
    double times = f->loader == LEAT_PLAN_PROCESS ? 1 : leat__plan_cpu_times(f);
    return spread(times * leat__plan_table_us(f) + f->ops_us, SPREAD_COST);
}

/* The rate with `t` threads, from the rates of 1 and `n`: a part of each sample's time is divided
 * among the threads, the rest is not. */
static double at_threads(double one, double all, double n, double t)
{
    double divided = n > 1 && one > 0 ? (1 / one - 1 / all) * n / (n - 1) : 1 / all * n;
    double rest = n > 1 && one > 0 ? 1 / one - divided : 0;
    if (divided <= 0) return all; /* more threads gave no gain */
    if (rest < 0) return all * t / n;
    return 1 / (rest + divided / t);
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

/* Maximum reads per second of the storage, of any size; 0 = no limit. */
static double read_limit(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_storage_rows); i++)
        if (strcmp(plan_storage_rows[i].name, name) == 0) return plan_storage_rows[i].reads_per_s;
    return 0;
}

/* True for a random order when pages hold several samples: it reads each sample separately. Other
 * orders read whole pages. */
static bool reads_single_samples(const leat_plan_facts *f)
{
    return f->loader == LEAT_PLAN_LEAT && leat__plan_order(f) == LEAT_ORDER_RANDOM &&
           f->sample_bytes * 2 <= f->page_bytes;
}

double leat__plan_samples_per_request(const leat_plan_facts *f)
{
    uint64_t bytes = f->page_bytes;
    /* others of the page come much later in a random order */
    if (f->loader == LEAT_PLAN_LEAT && leat__plan_order(f) == LEAT_ORDER_RANDOM) return 1;
    if (!leat__order_shuffled(leat__plan_order(f))) bytes = LEAT_MAX(bytes, JOINED_BYTES);
    return LEAT_MAX(1.0, (double)bytes / (double)LEAT_MAX(f->sample_bytes, UINT64_C(1)));
}

/* Every read from a bucket is a request, also of a page: rate = requests in flight / latency. */
static leat_plan_range request_rate(const leat_plan_facts *f)
{
    double each = leat__plan_samples_per_request(f);
    if (f->latency_s > 0)
        return spread(LEAT_MIN(IN_FLIGHT / f->latency_s, REQUESTS_MOST) * each, SPREAD_LATENCY);
    return spread(read_limit("bucket") * each, SPREAD_READS);
}

static leat_plan_range io_rate(const leat_plan_facts *f)
{
    leat_plan_range bytes = f->measured.io_bytes_per_s;
    if (bytes.mid <= 0) bytes = storage_rate(f->storage);
    leat_plan_range r = scaled(bytes, 1.0 / (double)f->sample_bytes);
    if (leat__plan_remote(f)) return r.mid > 0 ? at_most(r, request_rate(f)) : r;
    double most = reads_single_samples(f) ? read_limit(f->storage) : 0;
    if (most > 0) r = at_most(r, spread(most, SPREAD_READS));
    return r;
}

bool leat__plan_remote(const leat_plan_facts *f)
{
    return strcmp(f->storage, "bucket") == 0;
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
    leat_plan_range io = io_rate(f), cpu = cpu_rate(f, &ignored);
    if (f->measured.rate_cold.mid > 0 && (uint32_t)f->workers == f->measured.threads)
        io = f->measured.rate_cold; /* measured on the loader itself, with all its costs of
                                     * reading */
    return io.mid > 0 && cpu.mid > 0 ? LEAT_MIN(1.0, io.mid / cpu.mid) : 1;
}

/* The page cache does not hold objects of a bucket, and cache=process does not use it: the loader keeps
 * what it read, in the part of its budget that nothing else needs. Of a bucket, an order other than random
 * reads each page once an epoch and evicts it before it comes again, unless all fit. */
static double kept_share(const leat_plan_facts *f, const leat_plan_ram *ram, double dataset)
{
    uint64_t trainers = LEAT_MAX(f->gpus, 1u);
    uint64_t own = (ram->queue + ram->assembling + ram->pinned + ram->workers + ram->pages) / trainers;
    if (f->loader != LEAT_PLAN_LEAT || ram->budget <= own) return 0;
    double share = (double)(ram->budget - own) * (double)trainers / dataset;
    bool random = leat__plan_order(f) == LEAT_ORDER_RANDOM;
    bool stays = !leat__plan_remote(f) || (random && f->memory_bytes > 0);
    return share >= 1 ? 1 : stays ? share : 0;
}

/* Bytes that fit in free memory stay cached: t = c / memory + (1 − c) / storage. */
static double cached_share(const leat_plan_facts *f, const leat_plan_ram *ram)
{
    if (leat__plan_in_memory(f)) return 1;
    double dataset = (double)leat__plan_dataset_bytes(f);
    bool own = f->cache == PLAN_CACHE_PROCESS && f->loader == LEAT_PLAN_LEAT;
    if (dataset > 0 && (own || leat__plan_remote(f))) return kept_share(f, ram, dataset);
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

static leat_plan_range io_cached(const leat_plan_facts *f, leat_plan_range cold, double share)
{
    leat_plan_range warm = scaled(storage_rate("memory"), 1.0 / (double)f->sample_bytes);
    warm = larger(warm, f->measured.rate_all); /* memory is at least as fast as the measured
                                                * loader */
    if (cold.mid <= 0) return share >= 1 ? warm : cold;
    leat_plan_range r = {blend(cold.low, LEAT_MAX(warm.low, cold.low), share),
                         blend(cold.mid, LEAT_MAX(warm.mid, cold.mid), share),
                         blend(cold.high, LEAT_MAX(warm.high, cold.high), share)};
    return r;
}

/* ---- Reading and decoding at once ---- */

/* How reading and decoding overlap, from a calibration. Reading also takes CPU time, and neither
 * hides the other completely: a sample takes the longer of both plus a share of the shorter. */
typedef struct overlap {
    double read_us;  /* CPU time per byte read */
    double io_scale; /* time of the loader's reads relative to plain reads */
    double beside;   /* share of the shorter that is not hidden: 0 to 1 */
} overlap;

static overlap overlap_of(const leat_plan_facts *f)
{
    const leat_plan_calibration *m = &f->measured;
    overlap o = {.io_scale = 1};
    if (m->rate_cold.mid <= 0 || m->rate_all.mid <= 0 || m->cpus == 0) return o;
    double both = 1 / m->rate_cold.mid, io = (double)f->sample_bytes / m->io_bytes_per_s.mid;
    double cpu = LEAT_MAX(1 / m->rate_all.mid, m->cold_cpu_us / 1e6 / m->cpus);
    o.read_us = LEAT_MAX(m->cold_cpu_us - m->cpu_us.mid, 0.0) / (double)f->sample_bytes;
    if (both >= LEAT_MAX(io, cpu)) o.beside = LEAT_MIN((both - LEAT_MAX(io, cpu)) / LEAT_MIN(io, cpu), 1.0);
    if (both > io + cpu) o.io_scale = (both - cpu) / io;
    if (both < io) o.io_scale = LEAT_MAX(both, cpu) / io;
    return o;
}

/* The loader's rate when the share `read` of its samples is not in memory, storage delivers `io`
 * per second and the CPUs, with `us` per sample, `cpu`. */
static double loader_rate(const leat_plan_facts *f, const overlap *o, double io, double cpu, double us,
                          double read)
{
    if (io <= 0 || cpu <= 0) return LEAT_MAX(io, cpu);
    double io_s = (1 + (o->io_scale - 1) * read) / io;
    double read_us = o->read_us * (double)f->sample_bytes * read;
    double cpu_s = LEAT_MAX(1 / cpu, (us + read_us) / 1e6 / f->cpus);
    return 1 / (LEAT_MAX(io_s, cpu_s) + o->beside * read * LEAT_MIN(io_s, cpu_s));
}

static leat_plan_range loader_range(const leat_plan_facts *f, const overlap *o, leat_plan_range io,
                                    leat_plan_range cpu, double us, double read)
{
    /* a sample costs more or less by as much as the rate is lower or higher */
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
        double batch = (double)(f->measured.step_batch > 0 ? f->measured.step_batch : f->batch);
        *measured = 1;
        return (leat_plan_range){gpus * batch * 1e3 / ms.high, gpus * batch * 1e3 / ms.mid,
                                 gpus * batch * 1e3 / ms.low};
    }
    double uncertainty, sample_s = leat__plan_step_s(f, v, &uncertainty);
    if (sample_s <= 0) return (leat_plan_range){0};
    return spread(gpus / sample_s, uncertainty);
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

/* The smallest known rate and the next; each end of the interval separately. */
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

/* Batches per rank and epoch: the last, smaller one counts if every rank has a sample in it. */
static uint64_t iterations(const leat_plan_facts *f)
{
    uint64_t ranks = (uint64_t)f->nodes * LEAT_MAX(f->gpus, 1u), step = f->batch * ranks;
    uint64_t rest = f->samples % step, least = f->loader == LEAT_PLAN_PROCESS ? 1 : ranks;
    return f->samples / step + (rest >= least);
}

static leat_plan_range seconds_for(double samples, leat_plan_range rate)
{
    if (rate.mid <= 0) return (leat_plan_range){0};
    return (leat_plan_range){samples / rate.high, samples / rate.mid, samples / rate.low};
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

static void speed_of(const leat_plan_facts *f, const overlap *o, const leat_plan_ram *ram,
                     const leat_plan_vram *vram, leat_plan_speed *s)
{
    uint32_t ignored;
    *s = (leat_plan_speed){0};
    s->cached_share = cached_share(f, ram);
    s->io = io_rate(f);
    s->io_cached = io_cached(f, s->io, s->cached_share);
    s->cpu = cpu_rate(f, &s->cpu_us);
    s->h2d = h2d_rate(f);
    s->gpu = gpu_rate(f, vram, &s->gpu_measured);
    leat_plan_range warm[5] = {{0}, s->io_cached, s->cpu, s->h2d, s->gpu};
    /* cold: the loader itself was measured with as many threads; otherwise the rate is
     * computed */
    bool same = f->measured.rate_cold.mid > 0 && (uint32_t)f->workers == f->measured.threads;
    leat_plan_range first = same ? f->measured.rate_cold : loader_range(f, o, s->io, s->cpu, s->cpu_us, 1);
    if (leat__plan_in_memory(f) && f->cached >= PLAN_CACHED) first = s->io_cached;
    leat_plan_range cold[5] = {{0}, first, s->cpu, s->h2d, s->gpu};
    double read = leat__plan_in_memory(f) ? 0 : 1 - s->cached_share;
    s->first_epoch = smallest(cold, &s->first_limit, &ignored);
    bool storage = s->io.mid > 0 && s->io.mid < s->cpu.mid;
    if (s->first_limit == LEAT_PLAN_IO && s->cpu.mid > 0 && !storage) s->first_limit = LEAT_PLAN_CPU;
    s->rate = smallest(warm, &s->limit, &s->next);
    if (s->io.mid > 0 && s->cpu.mid > 0)
        s->rate = at_most(s->rate, loader_range(f, o, s->io_cached, s->cpu, s->cpu_us, read));
    s->incomplete = s->io.mid <= 0 || s->cpu.mid <= 0 || (f->gpus > 0 && s->gpu.mid <= 0) ||
                    leat__plan_trainer_unknown(f);
    s->iterations = iterations(f);
    double share = (double)f->samples / f->nodes; /* of the dataset, per node */
    leat_plan_range first_s = seconds_for(share, s->first_epoch);
    s->epoch_s = seconds_for(share, s->rate);
    double rest = f->epochs - 1.0;
    s->total_s = (leat_plan_range){first_s.low + rest * s->epoch_s.low, first_s.mid + rest * s->epoch_s.mid,
                                   first_s.high + rest * s->epoch_s.high};
    if (f->epochs == 1) s->epoch_s = first_s; /* there is no later one */
    if (leat__plan_trainer_unknown(f)) s->epoch_s = s->total_s = (leat_plan_range){0};
    s->needed = s->gpu.mid;
    s->cores_needed = s->needed * s->cpu_us / 1e6;
    name_sources(f, s);
}

void leat__plan_speed(const leat_plan_facts *f, const leat_plan_ram *ram, const leat_plan_vram *vram,
                      leat_plan_speed *s)
{
    overlap o = overlap_of(f);
    speed_of(f, &o, ram, vram, s);
}

double leat__plan_quality_share(uint32_t quality)
{
    const size_t n = LEAT_COUNT(plan_quality_rows); /* from high quality to low */
    if (quality >= plan_quality_rows[0].quality) return plan_quality_rows[0].bytes_share;
    for (size_t i = 1; i < n; i++) {
        const plan_quality *a = &plan_quality_rows[i - 1], *b = &plan_quality_rows[i];
        if (quality < b->quality) continue;
        double t = (double)(quality - b->quality) / (double)(a->quality - b->quality);
        return b->bytes_share + t * (a->bytes_share - b->bytes_share);
    }
    return plan_quality_rows[n - 1].bytes_share;
}

/* One row: the plan's speed with changed facts. */
static void what_if(leat_plan *plan, const char *change, const leat_plan_facts *f)
{
    if (plan->what_if_count == LEAT_PLAN_WHAT_IFS) return;
    leat_plan_what_if *row = &plan->what_ifs[plan->what_if_count];
    overlap o = overlap_of(&plan->facts);
    leat_plan_speed s;
    speed_of(f, &o, &plan->ram, &plan->vram, &s);
    /* of the only epoch, or of a later one */
    bool only = plan->facts.epochs == 1;
    double now = only ? plan->speed.first_epoch.mid : plan->speed.rate.mid;
    double then = only ? s.first_epoch.mid : s.rate.mid;
    if (then <= 0 || now <= 0) return;
    if (then < LEAST_GAIN * now) {
        size_t used = strlen(plan->no_gain);
        snprintf(plan->no_gain + used, sizeof plan->no_gain - used, "%s%s", used > 0 ? "; " : "", change);
        return;
    }
    *row = (leat_plan_what_if){.rate = then, .gain = then / now, .limit = only ? s.first_limit : s.limit};
    uint64_t bytes = leat__plan_dataset_bytes(f);
    if (bytes != leat__plan_dataset_bytes(&plan->facts)) row->dataset_bytes = bytes;
    snprintf(row->change, sizeof row->change, "%s", change);
    plan->what_if_count++;
}

static void scale_calibration(leat_plan_facts *f, double factor)
{
    leat_plan_calibration *m = &f->measured;
    m->cpu_us = scaled(m->cpu_us, factor);
    m->rate_one = scaled(m->rate_one, 1 / factor);
    m->rate_all = scaled(m->rate_all, 1 / factor);
    m->rate_cold = (leat_plan_range){0}; /* other bytes would be read */
}

/* A measured cost is valid only for the images as stored now; others are scaled by the ratio of
 * the table's costs. */
static void reprice(leat_plan_facts *f, const leat_plan_facts *before)
{
    scale_calibration(f, leat__plan_table_us(f) / leat__plan_table_us(before));
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

static void store_as(leat_plan_facts *f, uint32_t images, double mix)
{
    leat_plan_facts before = *f;
    f->sample_bytes = leat__plan_stored_bytes(f, images, mix);
    f->images = images;
    f->mix_raw = mix;
    reprice(f, &before);
}

/* leat pack stores smaller images at this quality, too. */
static double quality_share(const leat_plan_facts *f)
{
    return f->quality_share > 0 ? f->quality_share : leat__plan_quality_share(PLAN_LESS_QUALITY);
}

static double smaller_share(const leat_plan_facts *f, double shrink)
{
    if (f->smaller_share > 0) return f->smaller_share;
    return shrink * shrink * (f->images == LEAT_PLAN_RAW ? 1 : quality_share(f));
}

/* The most workers, up to those that the cores have work for, that still fit host memory. */
static uint32_t more_workers(const leat_plan *plan)
{
    leat_plan_facts f = plan->facts;
    leat_plan_ram ram;
    uint32_t low = (uint32_t)plan->facts.workers;
    uint32_t high = leat__plan_default_workers(plan->facts.cpus, plan->facts.gpus) + 1;
    while (plan->fits != 0 && low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        f.workers = (int32_t)middle;
        if (f.loader == LEAT_PLAN_PROCESS) leat__plan_ram_process(&f, &ram);
        else leat__plan_ram_leat(&f, plan->config.page_window, &ram);
        if (ram.verdict != LEAT_PLAN_OUT_OF_MEMORY) low = middle;
        else high = middle;
    }
    return low;
}

/* Workers of a given number use no more cores: more of them do, where cores are idle. */
static void what_if_cpus(leat_plan *plan, bool fixed)
{
    const leat_plan_facts *base = &plan->facts;
    const char *name = base->loader == LEAT_PLAN_PROCESS ? "workers" : "threads";
    bool idle = fixed && (uint32_t)base->workers < leat__plan_default_workers(base->cpus, base->gpus);
    uint32_t most = idle ? more_workers(plan) : 0;
    leat_plan_facts f = *base;
    char change[64];
    if (most > (uint32_t)base->workers) {
        f.workers = (int32_t)most;
        snprintf(change, sizeof change, "--%s %u", name, most);
        what_if(plan, change, &f);
        f = *base;
    }
    f.cpus *= 2;
    if (!idle) f.workers *= 2;
    snprintf(change, sizeof change, "twice the cores%s%s", fixed && !idle ? " and " : "",
             fixed && !idle ? name : "");
    what_if(plan, change, &f);
}

void leat__plan_what_ifs(leat_plan *plan, bool fixed)
{
    const leat_plan_facts *base = &plan->facts;
    leat_plan_facts f;
    plan->what_if_count = 0;
    plan->no_gain[0] = '\0';
    if (base->loader == LEAT_PLAN_PROCESS) {
        f = *base;
        f.loader = LEAT_PLAN_LEAT;
        f.images = LEAT_PLAN_TILED;
        f.measured = (leat_plan_calibration){.step_ms = f.measured.step_ms};
        what_if(plan, "leat's loader, images tiled", &f);
    } else {
        if (reads_single_samples(base)) {
            f = *base;
            f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
            what_if(plan, "--order quasi_random", &f);
        }
        if (base->images == LEAT_PLAN_KEEP) {
            f = *base;
            store_as(&f, LEAT_PLAN_TILED, 0);
            what_if(plan, "--images tiled", &f);
        }
        if (base->images != LEAT_PLAN_RAW && base->images != LEAT_PLAN_MIX) {
            f = *base;
            store_as(&f, LEAT_PLAN_MIX, 0.5);
            what_if(plan, "--images mix --mix-raw 0.5", &f);
            f = *base;
            store_as(&f, LEAT_PLAN_RAW, 0);
            what_if(plan, "--images raw", &f);
        }
        uint32_t side = LEAT_MAX(base->width, base->height);
        if (side > PLAN_SMALLER_SIDE) {
            f = *base;
            double shrink = (double)PLAN_SMALLER_SIDE / side;
            f.width = (uint32_t)(f.width * shrink + 0.5);
            f.height = (uint32_t)(f.height * shrink + 0.5);
            f.sample_bytes = (uint64_t)((double)f.sample_bytes * smaller_share(base, shrink));
            reprice(&f, base);
            what_if(plan, "--max-side 400", &f);
        }
        if (base->images != LEAT_PLAN_RAW) {
            f = *base;
            f.sample_bytes = (uint64_t)((double)f.sample_bytes * quality_share(base));
            reprice(&f, base);
            what_if(plan, "--quality 90", &f);
        }
    }
    if (leat__plan_remote(base)) {
        f = *base;
        snprintf(f.storage, sizeof f.storage, "nvme");
        f.measured.io_bytes_per_s = f.measured.rate_cold = (leat_plan_range){0};
        what_if(plan, "--cache disk:DIR on NVMe", &f);
    }
    f = *base;
    snprintf(f.storage, sizeof f.storage, "memory");
    f.measured.io_bytes_per_s = f.measured.rate_cold = (leat_plan_range){0};
    what_if(plan, "whole dataset cached in memory", &f);
    what_if_cpus(plan, fixed);
    if (base->gpus > 0 && base->element_bytes > 1 && base->wide == 0) {
        f = *base;
        f.element_bytes = 1;
        what_if(plan, "--dtype u8, normalise on the GPU", &f);
    }
}
