/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis as text: the sentence, the evidence for it, and other findings.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/judge.h"

#define TEXT 24

static const char *const limit_names[LEAT_LIMITS] = {"none",    "io",     "cpu",    "delivery",
                                                     "trainer", "memory", "python", "device"};
static const char *const grade_names[] = {"unknown", "fine", "warning", "critical"};
static const char *const basis_names[] = {"measured", "model", "guide"};
#define CAUSE_NAME(name, text) text,
static const char *const cause_names[LEAT_CAUSES] = {LEAT_DOCTOR_CAUSE_MAP(CAUSE_NAME)};
#undef CAUSE_NAME

const char *leat_doctor_limit_name(uint32_t limit)
{
    return limit < LEAT_LIMITS ? limit_names[limit] : "unknown";
}

const char *leat_doctor_cause_name(uint32_t cause)
{
    return cause < LEAT_CAUSES ? cause_names[cause] : "unknown";
}

const char *leat_doctor_grade_name(uint32_t grade)
{
    return grade < LEAT_COUNT(grade_names) ? grade_names[grade] : "unknown";
}

const char *leat_doctor_basis_name(uint32_t basis)
{
    return basis < LEAT_COUNT(basis_names) ? basis_names[basis] : "unknown";
}

void leat__doctor_line(char lines[][160], uint32_t *count, const char *fmt, ...)
{
    va_list ap;
    if (*count == LEAT_DOCTOR_LINES) return;
    va_start(ap, fmt);
    vsnprintf(lines[(*count)++], 160, fmt, ap);
    va_end(ap);
}

static double percent(double share)
{
    return 100 * share;
}

static const char *rate_text(double rate, char out[TEXT])
{
    if (rate > 0 && rate < 0.1) return snprintf(out, TEXT, "%.2g", rate), out; /* hours per sample */
    return leat__format_count(rate, out, TEXT);
}

const char *leat__doctor_speed(double bytes_per_s, char *out, size_t size)
{
    bool large = bytes_per_s >= 999.5e6;
    snprintf(out, size, "%.3g %cB/s", bytes_per_s / (large ? 1e9 : 1e6), large ? 'G' : 'M');
    return out;
}

/* ---- The sentence ---- */

static void say_cpu(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT];
    switch (d->cause) {
    case LEAT_CAUSE_THROTTLED:
        snprintf(out, size, "the quota of %.3g CPUs throttled %.0f %% of its periods",
                 or_else(f->quota, or_else(f->cpus, 0)), percent(or_else(f->throttled, 0)));
        break;
    case LEAT_CAUSE_OTHER_LOADER:
        snprintf(out, size, "other loaders of this process use %.1f of the %.1f usable CPUs", f->siblings,
                 or_else(f->cpus, 0));
        break;
    case LEAT_CAUSE_CONTENTION:
        /* clipped, because other processes may also use CPUs that are forbidden to this process */
        snprintf(out, size, "other processes use %.1f of the %.1f usable CPUs",
                 LEAT_MIN(or_else(f->others, 0), or_else(f->cpus, 0)), or_else(f->cpus, 0));
        break;
    case LEAT_CAUSE_FEW_THREADS:
        if (known(f->workers) && f->workers < 1)
            snprintf(out, size, "num_workers=0: the trainer's own process makes the batches");
        else if (known(f->workers))
            snprintf(out, size, "num_workers=%.0f for %.0f usable CPUs", f->workers, f->cpus);
        else
            snprintf(out, size, "%.0f thread%s for %.0f usable CPUs", f->threads,
                     f->threads == 1 ? " works" : "s work", f->cpus);
        break;
    case LEAT_CAUSE_AUGMENT:
        snprintf(out, size, "augmentation takes %.0f %% of the time per sample",
                 percent(LEAT_MAX(f->augment_share, f->worker_augment)));
        break;
    case LEAT_CAUSE_LARGE_IMAGES:
        snprintf(out, size, "images of %.1f megapixels are decoded to deliver %.2f", f->pixels / 1e6,
                 or_else(f->out_pixels, 0) / 1e6);
        break;
    case LEAT_CAUSE_PNG:
        snprintf(out, size, "%.0f %% of the images are PNG, which cannot be decoded in part",
                 percent(f->png));
        break;
    case LEAT_CAUSE_FEW_CPUS:
        snprintf(out, size, "this process may use %.1f of the machine's %.0f CPUs", f->cpus, f->cpus_host);
        break;
    case LEAT_CAUSE_PYTHON:
        snprintf(out, size, "Python code of the dataset takes %.0f %% of worker time",
                 percent(f->worker_python));
        break;
    case LEAT_CAUSE_COLLATE:
        snprintf(out, size, "collate_fn takes %.0f %% of worker time%s", percent(f->worker_collate),
                 leat__doctor_collate_waits(f) ? ", most of it waiting" : "");
        break;
    case LEAT_CAUSE_TRANSFER:
        snprintf(out, size, "sending batches from workers to the trainer takes %.0f %% of worker time",
                 percent(f->worker_transfer));
        break;
    case LEAT_CAUSE_WORKERS:
        snprintf(out, size, "worker time: the workers run %.0f %% of the time",
                 percent(or_else(f->decode_share, 1)));
        break;
    default:
        if (known(f->worker_decode))
            snprintf(out, size, "decode takes %.0f %% of worker time", percent(f->worker_decode));
        else if (known(f->decode_share))
            snprintf(out, size, "decode takes %.0f %% of worker time", percent(f->decode_share));
        else if (known(d->cpu))
            snprintf(out, size, "decode and augmentation reach %s samples/s", rate_text(d->cpu, a));
        else snprintf(out, size, "%.1f of %.1f CPUs are busy", or_else(f->cpu_used, 0), or_else(f->cpus, 0));
    }
}

/* Describes the limit of a server, as the range requests showed it. */
static bool say_remote(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT], b[TEXT];
    if (d->cause == LEAT_CAUSE_REFUSED)
        snprintf(out, size, "the server refuses %.0f %% of the requests for now (429 or 503)",
                 percent(f->remote_refused));
    else if (d->cause == LEAT_CAUSE_REQUESTS)
        snprintf(out, size, "the server answers %s requests per second, however many are in flight",
                 rate_text(LEAT_MAX(f->remote_many, f->remote_most), a));
    else if (d->cause == LEAT_CAUSE_BANDWIDTH)
        snprintf(out, size, "the network gives %s, however many requests are in flight",
                 leat__doctor_speed(1e6 * leat__doctor_line_mbs(f), a, TEXT));
    else if (d->cause == LEAT_CAUSE_LATENCY)
        snprintf(out, size, "an answer takes %.0f ms: %s requests per second with 2 in flight, %s with 16",
                 or_else(f->remote_ms, 0), rate_text(f->remote_few, a), rate_text(f->remote_many, b));
    else return false;
    return true;
}

static void say_io(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT], b[2 * TEXT], c[TEXT], e[TEXT];
    double rate = or_else(d->io, d->rate);
    if (known(rate)) rate_text(rate, a);
    else snprintf(a, sizeof a, "too few");
    if (known(f->sample_bytes) && known(rate))
        snprintf(b, sizeof b, "%s (%s samples/s)", leat__doctor_speed(f->sample_bytes * rate, c, TEXT), a);
    else snprintf(b, sizeof b, "%s samples/s", a);
    if (known(f->remote_few) && say_remote(d, out, size)) return;
    switch (d->cause) {
    case LEAT_CAUSE_COLD:
        snprintf(out, size, "only %.0f %% of the pack is in memory yet, storage gives %s samples/s",
                 percent(or_else(f->cached, 0)), a);
        break;
    case LEAT_CAUSE_LATENCY:
        if (known(f->fetch_ms))
            snprintf(out, size, "a sample waits %.1f ms for its data, which gives %s samples/s", f->fetch_ms,
                     a);
        else if (known(f->read_ms))
            snprintf(out, size, "a read takes %.1f ms, which gives %s samples/s", f->read_ms, a);
        else snprintf(out, size, "latency limits the reads, not bandwidth: %s samples/s", a);
        break;
    case LEAT_CAUSE_REQUESTS:
        snprintf(out, size,
                 "storage is limited to %s reads per second, however many are in flight; larger "
                 "reads would help",
                 rate_text(f->io_cold, a));
        break;
    case LEAT_CAUSE_MEMORY_LIMIT:
        snprintf(out, size, "the memory limit of %s leaves no room to cache the pack of %s; storage gives %s",
                 leat__format_bytes((uint64_t)f->memory_limit, c, TEXT),
                 leat__format_bytes((uint64_t)f->dataset_bytes, e, TEXT), b);
        break;
    case LEAT_CAUSE_NETWORK: snprintf(out, size, "network storage gives %s", b); break;
    case LEAT_CAUSE_WAITS:
        snprintf(out, size, "the dataset waits%s, which gives %s samples/s",
                 known(f->read_bytes) ? " and reads nothing from a disk" : "", a);
        break;
    case LEAT_CAUSE_AMPLIFIED:
        snprintf(out, size, "%.1f times the bytes of the samples are read", f->read_bytes / f->sample_bytes);
        break;
    default: {
        const bool memory = or_else(f->cached, 0) >= LEAT__ALL_CACHED && or_else(f->remote, 0) < 1;
        snprintf(out, size, "%s %s", memory ? "reads of the pack, which is in memory, give" : "storage gives",
                 b);
    }
    }
}

static void say_delivery(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT];
    if (d->cause == LEAT_CAUSE_SHORT_EPOCHS)
        snprintf(out, size, "each epoch has %.3g batch%s: its start takes %.1f ms and cannot be hidden",
                 f->epoch_steps, f->epoch_steps == 1 ? "" : "es", f->start_ms);
    else if (d->cause == LEAT_CAUSE_BURSTS)
        snprintf(out, size, "the average is enough, but one batch in twenty takes %.1f ms",
                 or_else(f->data_ms_p95, 0));
    else if (d->cause == LEAT_CAUSE_SMALL_BATCHES)
        snprintf(out, size, "batches of %.0f cost more to schedule and deliver than to make",
                 or_else(f->batch, 0));
    else if (known(d->delivery))
        snprintf(out, size, "scheduling and delivery reach %s samples/s", rate_text(d->delivery, a));
    else snprintf(out, size, "threads are busy with scheduling and delivery, not with samples");
}

static void say_memory(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT];
    if (d->cause == LEAT_CAUSE_SWAPPING)
        snprintf(out, size, "%.0f pages per second are read back from disk", or_else(f->faults, 0));
    else
        snprintf(out, size, "work waits for the budget of %s for %.0f %% of the time",
                 known(f->budget) ? leat__format_bytes((uint64_t)f->budget, a, TEXT) : "memory",
                 percent(or_else(f->blocked, 0)));
}

static void say_trainer(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    char a[TEXT], b[TEXT];
    double spare = d->facts.loader;
    if (known(spare) && spare < d->trainer)
        snprintf(out, size,
                 "it takes %s samples/s, and the loader makes about as many (%s without a trainer)",
                 rate_text(d->trainer, a), rate_text(spare, b));
    else if (known(spare))
        snprintf(out, size, "it takes %s samples/s, the loader could deliver %s", rate_text(d->trainer, a),
                 rate_text(spare, b));
    else snprintf(out, size, "it takes %s samples/s and the loader keeps up", rate_text(d->trainer, a));
}

static void say_python(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    double step = f->prepare_ms + or_else(f->data_ms, 0) + or_else(f->batch_ms, 0);
    snprintf(out, size, "transform= takes %.1f ms of each step of %.1f ms, in the trainer's own thread",
             f->prepare_ms, step);
}

static void say_device(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    bool copies = d->cause == LEAT_CAUSE_DEVICE_COPY;
    snprintf(out, size, "%s takes %.2f ms of each step there, %s %.2f ms",
             copies ? "copying to the device" : "decoding on the device",
             copies ? f->copy_ms : f->device_decode_ms, copies ? "decoding" : "copies",
             copies ? or_else(f->device_decode_ms, 0) : f->copy_ms);
}

static const char *const titles[LEAT_LIMITS] = {"Unknown",        "I/O-bound",     "CPU-bound",
                                                "Delivery-bound", "Trainer-bound", "Memory-bound",
                                                "Python-bound",   "Device-bound"};

/* Describes the time lost per step: waiting, and transform=, which is not waiting. */
static void say_waiting(const leat_doctor_diagnosis *d, char *out, size_t size)
{
    const leat_doctor_facts *f = &d->facts;
    double prepare = or_else(f->prepare_ms, 0);
    if (!known(d->lost)) return;
    if (prepare <= 0 || !known(f->data_ms) || !known(f->batch_ms)) {
        snprintf(out, size, "; the trainer waits %.0f %% of each step", percent(d->lost));
        return;
    }
    double wait = leat__doctor_wait_ms(f), step = wait + prepare + f->batch_ms;
    snprintf(out, size, "; the trainer waits %.0f %% of each step, transform= takes %.0f %%",
             percent(wait / step), percent(prepare / step));
}

void leat__doctor_sentence(leat_doctor_diagnosis *d)
{
    static void (*const say[LEAT_LIMITS])(const leat_doctor_diagnosis *, char *, size_t) = {
        NULL, say_io, say_cpu, say_delivery, say_trainer, say_memory, say_python, say_device};
    char why[192] = "the measurements do not show the bottleneck", end[80] = "";

    if (d->facts.steps == 0) snprintf(why, sizeof why, "no step was measured, too few to judge");
    if (say[d->limit] != NULL) say[d->limit](d, why, sizeof why);
    say_waiting(d, end, sizeof end);
    bool few = known(d->facts.steps) && d->facts.steps < LEAT__STEPS_ENOUGH;
    snprintf(d->sentence, sizeof d->sentence, "%s%s%s: %s%s",
             d->complete ? "" : "INCOMPLETE: ", titles[d->limit],
             few                   ? " (few steps, a first impression)"
             : d->confidence < 0.5 ? " (not sure)"
                                   : "",
             why, end);
}

/* ---- Evidence ---- */

#define SAY(...) leat__doctor_line(d->evidence, &d->evidence_count, __VA_ARGS__)

static void trainer_evidence(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    if (known(f->data_ms) && known(f->batch_ms) && f->steps == 0)
        SAY("waiting %.1f ms, training %.1f ms per step, computed from rates: no step was measured",
            f->data_ms, f->batch_ms);
    else if (known(f->data_ms) && known(f->batch_ms))
        SAY("waiting %.1f ms, training %.1f ms per step (p95 %.1f and %.1f), %.0f step%s", f->data_ms,
            f->batch_ms, or_else(f->data_ms_p95, f->data_ms), or_else(f->batch_ms_p95, f->batch_ms),
            or_else(f->steps, 0), f->steps == 1 ? "" : "s");
    if (or_else(f->prepare_ms, 0) > 0)
        SAY("transform= takes %.1f ms per step, beside waiting and training", f->prepare_ms);
    double starts = leat__doctor_starts(f);
    if (known(starts) && starts >= 0.005)
        SAY("epoch starts cost %.1f %% of the time: %.1f ms each, %.3g step%s per epoch", percent(starts),
            f->start_ms, f->epoch_steps, f->epoch_steps == 1 ? "" : "s");
    if (known(d->lost))
        SAY("%.1f %% of the step is lost (under 5 %% fine, from 20 %% critical); training has the other %.0f "
            "%%",
            percent(d->lost), percent(1 - d->lost));
}

/* Returns what the rate of the CPUs covers. Only an examination measures the work alone, and then
 * also its output. */
static const char *work_name(const leat_doctor_facts *f)
{
    if (or_else(f->device_share, 0) > 0)
        return "the host's part of decoding and augmentation, beside the device";
    return known(f->out_bytes) ? "decode and augmentation alone, from memory"
                               : "decode and augmentation, from the time that workers were busy";
}

static void rate_evidence(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT], b[TEXT], c[TEXT];
    if (known(f->io_cold) && known(f->io_warm))
        SAY("reads alone: %s samples/s cold, %s from memory, %.0f %% of the pack is in memory",
            rate_text(f->io_cold, a), rate_text(f->io_warm, b), percent(or_else(f->cached, 0)));
    if (known(f->cpu_all) && f->threads == 1)
        SAY("%s: %s samples/s on one thread", work_name(f), rate_text(f->cpu_all, a));
    else if (known(f->cpu_all))
        SAY("%s: %s samples/s on %.0f threads, %s on one", work_name(f), rate_text(f->cpu_all, a),
            or_else(f->threads, 0), known(f->cpu_one) ? rate_text(f->cpu_one, b) : "?");
    if (known(f->loader))
        SAY("the whole loader without a trainer: %s samples/s; order, scheduling and delivery alone %s",
            rate_text(f->loader, a), known(f->delivery) ? rate_text(f->delivery, c) : "?");
}

static void machine_evidence(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT], b[TEXT];
    /* in a short run, most bytes that were read are not delivered yet */
    double bytes = f->steps < LEAT__STEPS_ENOUGH ? f->sample_bytes : f->read_bytes;
    if (known(f->decode_ready) || known(f->blocked))
        SAY("work waited for a worker %.0f %% of the time, and only for memory %.0f %%",
            percent(or_else(f->decode_ready, 0)), percent(or_else(f->blocked, 0)));
    if (known(f->cpu_used) && known(f->cpus))
        SAY("%.2f of %.2f CPUs used by this process, %.2f by others; threads waited for a CPU "
            "for %.0f %% of the time they could run",
            f->cpu_used, f->cpus, or_else(f->others, 0), percent(or_else(f->run_delay, 0)));
    if (known(f->read_ms) && f->in_flight > or_else(f->io_depth, 1)) /* whole pages are requested ahead */
        SAY("a read takes %.2f ms; %.0f in flight on average; %s per sample", f->read_ms, f->in_flight,
            known(bytes) ? leat__format_bytes((uint64_t)bytes, a, TEXT) : "?");
    else if (known(f->read_ms) && known(f->in_flight))
        SAY("a read takes %.2f ms; %.2g in flight on average, %.0f allowed; %s per sample", f->read_ms,
            f->in_flight, or_else(f->io_depth, 1),
            known(bytes) ? leat__format_bytes((uint64_t)bytes, a, TEXT) : "?");
    else if (known(f->read_ms))
        SAY("a read takes %.2f ms with %.0f in flight; %s per sample", f->read_ms, or_else(f->io_depth, 1),
            known(bytes) ? leat__format_bytes((uint64_t)bytes, a, TEXT) : "?");
    if (known(f->budget_peak) && known(f->budget))
        SAY("memory: %s of a budget of %s at the peak", leat__format_bytes((uint64_t)f->budget_peak, a, TEXT),
            leat__format_bytes((uint64_t)f->budget, b, TEXT));
}

/* Describes the cost and the benefit of decoding on the device. */
static void device_evidence(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    double step = or_else(f->data_ms, 0) + or_else(f->prepare_ms, 0) + or_else(f->batch_ms, 0);
    if (!known(f->copy_ms)) return;
    SAY("on the device, per step: copies %.2f ms, decoding %.2f ms, %.2f ms of both side by side", f->copy_ms,
        f->device_decode_ms, f->device_overlap_ms);
    if (or_else(f->device_share, 0) <= 0 || step <= 0) return;
    double cost = percent(LEAT_MIN(f->device_decode_ms / step, 1.0));
    if (known(f->device_frees))
        SAY("the device decodes %.0f %% of the images: it costs up to %.1f %% of the step and frees %.1f "
            "CPUs (decode=cpu|gpu overrides)",
            percent(f->device_share), cost, f->device_frees);
    else
        SAY("the device decodes %.0f %% of the images: it costs up to %.1f %% of the step",
            percent(f->device_share), cost);
}

static void trial_evidence(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    char a[TEXT];
    for (uint32_t i = 0; i < f->trial_count; i++)
        SAY("tried %s: %s samples/s, %.2f times the rate without it", f->trials[i].set,
            rate_text(f->trials[i].rate, a), f->trials[i].gain);
}

void leat__doctor_evidence(leat_doctor_diagnosis *d)
{
    trainer_evidence(d);
    rate_evidence(d);
    machine_evidence(d);
    device_evidence(d);
    trial_evidence(d);
}

/* ---- Findings ---- */

#define FIND(...) leat__doctor_line(d->findings, &d->finding_count, __VA_ARGS__)

/* Says what to measure when the verdict is uncertain. */
static void say_what_settles(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    if (d->confidence >= 0.5) return;
    if (d->limit == LEAT_LIMIT_NONE && d->missing_count == 0)
        FIND("leat doctor PACK, with the same options, measures reads, decoding and delivery alone: that "
             "settles "
             "it");
    if (d->limit == LEAT_LIMIT_NONE) return;
    if (known(f->steps) && f->steps < LEAT__STEPS_ENOUGH)
        FIND("not sure after %.0f step%s: a longer run settles it (from %d steps on)", f->steps,
             f->steps == 1 ? "" : "s", LEAT__STEPS_ENOUGH);
    else if (d->cause == LEAT_CAUSE_BUDGET && !known(f->spacious) && !known(leat__doctor_storage(f)))
        FIND("not sure: slow reads fill a budget, too; leat doctor PACK measures the reads and more memory");
    else if (d->missing_count > 0) FIND("not sure: this would settle it: %s", d->missing[0]);
    else if (d->cause == LEAT_CAUSE_SHORT_EPOCHS)
        FIND("not sure: a run of one long epoch settles what the starts of epochs cost");
    else if (or_else(f->skipped, 0) > 0)
        FIND("not sure: a larger --seconds settles it, with the measurements that were left out");
    else if (or_else(f->others, 0) >= 0.25 * or_else(f->cpus, 1))
        FIND("not sure: the same on an otherwise idle machine settles it, others use %.1f of %.1f CPUs",
             f->others, f->cpus);
    else if (d->next != LEAT_LIMIT_NONE)
        FIND("not sure: %s limits nearly as much; a run with twice --seconds settles it",
             leat_doctor_limit_name(d->next));
    else FIND("not sure: a run with twice --seconds settles it");
}

/* Explains rates that disagree: a run that warmed the pack reads faster than it did cold; both are right. */
static void say_disagreement(leat_doctor_diagnosis *d, uint32_t distrusted)
{
    static const char *const names[LEAT_LIMITS] = {[LEAT_LIMIT_IO] = "reads",
                                                   [LEAT_LIMIT_CPU] = "decode and augmentation",
                                                   [LEAT_LIMIT_DELIVERY] = "delivery"};
    const leat_doctor_facts *f = &d->facts;
    leat__doctor_rates r = leat__doctor_rates_of(f);
    char a[TEXT], b[TEXT];
    for (uint32_t i = LEAT_LIMIT_IO; i < LEAT_LIMITS; i++) {
        if ((distrusted & 1u << i) == 0) continue;
        if (i == LEAT_LIMIT_IO && f->samples_per_s <= f->io_warm) continue;
        const bool run = i == LEAT_LIMIT_IO || known(f->copy_ms) || f->samples_per_s >= f->loader;
        FIND("measurements disagree: %s alone %s samples/s, the whole %s %s: the machine was busy; not "
             "counted",
             names[i], rate_text(r.part[i], a), run ? "run" : "loader",
             rate_text(run ? f->samples_per_s : f->loader, b));
    }
}

/* Says what cannot be known about waiting that is not for a disk. */
static void say_waits(leat_doctor_diagnosis *d)
{
    if (d->limit != LEAT_LIMIT_IO || d->cause != LEAT_CAUSE_WAITS) return;
    FIND("what the dataset waits for (a network, a lock, a timer, another process) cannot be seen from "
         "outside: its code tells");
}

/* Names the work of another loader's workers that the verdict does not name: it can be made cheaper, too. */
static void say_work(leat_doctor_diagnosis *d)
{
    static const char *const names[LEAT_CAUSES] = {[LEAT_CAUSE_COLLATE] = "collate_fn",
                                                   [LEAT_CAUSE_AUGMENT] = "augmentation",
                                                   [LEAT_CAUSE_PYTHON] = "Python code of the dataset",
                                                   [LEAT_CAUSE_DECODE] = "decode",
                                                   [LEAT_CAUSE_TRANSFER] =
                                                       "sending batches from workers to the trainer"};
    const leat__doctor_work work = leat__doctor_main_work(&d->facts);
    if (work.cause == LEAT_CAUSE_NONE || work.cause == d->cause || d->lost < LEAT__LOST_WARNING) return;
    FIND("%s takes %.0f %% of worker time", names[work.cause], percent(work.share));
}

static void say_starts(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    double starts = leat__doctor_starts(f);
    if (!known(starts) || starts < 0.02 || d->cause == LEAT_CAUSE_SHORT_EPOCHS) return;
    FIND("epoch starts cost %.0f %% of the time: %.3g step%s per epoch", percent(starts), f->epoch_steps,
         f->epoch_steps == 1 ? "" : "s");
}

/* Says that more worker processes were tried and do not help. */
static void say_workers_tried(leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    if (!known(f->more_workers) || !known(f->more_workers_gain) || leat__doctor_more_workers_help(f)) return;
    FIND("num_workers=%.0f instead of %.0f was tried in turn: %.2f times the rate (%.2f at worst): the "
         "number of "
         "workers is not the limit",
         f->more_workers, or_else(f->workers, 0), f->more_workers_gain, or_else(f->more_workers_least, 0));
}

void leat__doctor_findings(leat_doctor_diagnosis *d, uint32_t distrusted)
{
    const leat_doctor_facts *f = &d->facts;
    say_what_settles(d);
    say_disagreement(d, distrusted);
    say_waits(d);
    say_work(d);
    say_starts(d);
    say_workers_tried(d);
    if (or_else(f->skipped, 0) > 0)
        FIND("the time ran out before %.0f measurement%s: give a larger --seconds", f->skipped,
             f->skipped > 1 ? "s" : "");
    if (or_else(f->no_files, 0) >= 1)
        FIND("other ways to store and deliver were not measured: no temporary file could be written (see "
             "$TMPDIR)");
    if (known(f->trial_batch))
        FIND("measured with batches of %.0f: by a first estimate, enough larger ones take too long (a larger "
             "--seconds allows them)",
             f->trial_batch);
    if (known(f->trial_step_ms))
        FIND("measured with steps of %.3g ms: there was no time for enough longer ones; times are converted",
             f->trial_step_ms);
    if (or_else(f->bad, 0) > 0)
        FIND("%.2g %% of the samples are damaged: leat verify lists them, --on-error replace "
             "trains without them",
             percent(f->bad));
    if (or_else(f->throttled, 0) >= 0.05 && d->cause != LEAT_CAUSE_THROTTLED)
        FIND("the CPU quota throttles %.0f %% of its periods", percent(f->throttled));
    if (known(f->threads) && known(f->cpus) && f->threads > f->cpus + 1)
        FIND("%.0f threads for %.1f usable CPUs", f->threads, f->cpus);
    if (or_else(f->faults, 0) >= 10 && d->cause != LEAT_CAUSE_SWAPPING)
        FIND("%.0f major page faults per second: memory is short", f->faults);
    if (known(f->data_ms_p95) && known(f->data_ms_p50) && d->cause != LEAT_CAUSE_BURSTS &&
        known(f->batch_ms) && f->data_ms_p95 > 5 * (f->data_ms_p50 + 0.1) &&
        f->data_ms_p95 > 0.2 * f->batch_ms)
        FIND("one step in twenty waits %.1f ms and more, the median only %.1f ms", f->data_ms_p95,
             f->data_ms_p50);
    if (f->stalls == 1)
        FIND("one step waited %.1f s, %.1f s after the first: a single stall, %.0f %% of the time observed; "
             "all figures are of the other steps",
             f->stall_s, f->stall_at_s, percent(f->stall_share));
    if (f->stalls > 1)
        FIND("%.0f steps waited far longer than the others, up to %.1f s, %.0f %% of the time observed; all "
             "figures are of the other steps",
             f->stalls, f->stall_s, percent(f->stall_share));
    if (known(f->gpu_busy) && f->gpu_busy < 0.3 && d->limit == LEAT_LIMIT_TRAINER)
        FIND("the GPU is busy %.0f %% of the time although no batch is missing: larger batches, or "
             "less work on the trainer's own thread",
             percent(f->gpu_busy));
    if (known(f->batch) && f->batch <= 4 && d->cause != LEAT_CAUSE_SMALL_BATCHES)
        FIND("batches of %.0f: every step pays the fixed costs of the loader and of the GPU", f->batch);
}
