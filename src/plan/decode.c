/* SPDX-License-Identifier: Apache-2.0
 *
 * Where tiles are decoded: on CPUs, on the GPU beside training, or on both. The GPU's decode kernels take
 * time from its training steps, and a thread must still hand each image over. Threads beside a trainer decode
 * slower than alone. The figures are in data/plan/decode.txt.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "loader/to_device.h"
#include "plan/parts.h"

#define BATCHES 4 /* batches on the device when CPUs decode */

/* The figures of the table, scaled to this GPU and CPU. */
typedef struct prices {
    double hand_us, kernel_us, beside;
    bool estimated;
} prices;

static prices prices_of(const leat_plan_facts *f, const plan_gpu *gpu)
{
    const plan_device_decode *row = &plan_device_decode_rows[0];
    const plan_gpu *measured = leat__plan_gpu_find(row->gpu);
    leat_plan_facts there = {.isa = "avx512", .cpu = "Intel"};
    double cpu = leat__plan_cpu_times(f) / leat__plan_cpu_times(&there);
    double pixels = (double)f->image * f->image / (224.0 * 224.0);
    return (prices){row->cpu_us * cpu * pixels,
                    row->kernel_us * pixels * measured->memory_gbs / gpu->memory_gbs, row->beside,
                    gpu != measured};
}

static void add(leat_plan *plan, const char *name, double rate, double ceiling, double cpu_us, bool estimated,
                uint64_t device_bytes)
{
    leat_plan_decode *d = &plan->decodes[plan->decode_count++];
    *d = (leat_plan_decode){
        .rate = LEAT_MIN(rate, ceiling), .estimated = estimated, .device_bytes = device_bytes};
    d->share = d->rate / ceiling;
    d->threads = (uint32_t)LEAT_MIN(ceil(ceiling * cpu_us / 1e6), 1e6);
    snprintf(d->decode, sizeof d->decode, "%s", name);
}

void leat__plan_decodes(leat_plan *plan)
{
    const leat_plan_facts *f = &plan->facts;
    const leat_plan_speed *s = &plan->speed;
    const plan_gpu *gpu = leat__plan_gpu_find(f->gpu);
    plan->decode_count = 0;
    if (f->gpus == 0 || f->loader != LEAT_PLAN_LEAT || f->images != LEAT_PLAN_TILED || gpu == NULL) return;
    if (s->gpu.mid <= 0 || s->cpu.mid <= 0) return;
    prices p = prices_of(f, gpu);
    uint64_t frame = leat__plan_batch_bytes(f), reserve = leat__to_device_reserve(frame);
    double trains = s->gpu.mid / f->gpus, decodes = s->cpu.mid / f->gpus * p.beside;
    double copies = s->h2d.mid > 0 ? s->h2d.mid / f->gpus : trains;
    double threads = LEAT_MIN((double)f->workers, leat__plan_cpus(f->cpus, f->cpu_quota) / f->gpus);
    double hands = threads * 1e6 / p.hand_us, kernel_s = p.kernel_us / 1e6;
    double host = LEAT_MIN(LEAT_MAX(f->host_share, 0.0), 1.0), device = 1 - host;
    double alone = LEAT_MIN(1 / (host / decodes + device / hands), 1 / (1 / trains + device * kernel_s));
    /* CPUs decode as many as they can, the device the rest: r = 1 / (1/trains + (1 - decodes/r) x kernel) */
    double both = decodes >= trains ? trains : (1 + decodes * kernel_s) / (1 / trains + kernel_s);
    if (host > 0) both = LEAT_MIN(both, decodes / host);
    both = LEAT_MAX(LEAT_MIN(both, hands + decodes), LEAT_MAX(alone, LEAT_MIN(decodes, trains)));
    double cpu_us = s->cores_needed / s->needed * 1e6 / p.beside,
           some_us = host * cpu_us + device * p.hand_us;
    add(plan, "cpu", LEAT_MIN(decodes, copies), trains, cpu_us, false, BATCHES * frame);
    if (host >= 1) return; /* gpu is refused or without effect, auto means the CPUs */
    add(plan, "gpu", alone, trains, some_us, p.estimated, reserve);
    add(plan, "auto", both, trains, some_us, p.estimated, reserve);
}
