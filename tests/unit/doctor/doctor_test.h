/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs as sets of facts: a healthy one, and variants with one problem each.
 */
#ifndef LEAT_DOCTOR_TEST_H
#define LEAT_DOCTOR_TEST_H

#include "leat_test.h"

#include <stdio.h>

#include <leat/doctor.h>

#include "base/num.h"
#include "doctor/judge.h"

#define GIB 1073741824.0

static inline void assert_near(double value, double wanted, double tolerance)
{
    double off = value > wanted ? value - wanted : wanted - value;
    if (!(off <= tolerance)) fail_msg("%g is not within %g of %g", value, tolerance, wanted);
}

/* 16 CPUs, batches of 256, a step of 50 ms (5,120 samples/s), a loader that can do twice that. */
static inline leat_doctor_facts healthy(void)
{
    leat_doctor_facts f;
    leat_doctor_facts_init(&f);
    f.steps = 200;
    f.batch = 256;
    f.data_ms = 0.2;
    f.data_ms_p50 = 0.1;
    f.data_ms_p95 = 0.5;
    f.batch_ms = f.batch_ms_p50 = 50;
    f.batch_ms_p95 = 52;
    f.samples_per_s = 5100;
    f.io_cold = 20000;
    f.io_pages = 24000;
    f.io_deep = 21000;
    f.io_warm = 80000;
    f.cpu_all = 12000;
    f.cpu_one = 800;
    f.delivery = 100000;
    f.loader = 11000;
    f.decode_ready = 0.1;
    f.blocked = 0;
    f.order_busy = 0.02;
    f.read_share = 0.02;
    f.decode_share = 0.42;
    f.augment_share = 0.1;
    f.read_ms = 0.3;
    f.handover_us = 100;
    f.bad = 0;
    f.cpus_host = f.cpus = f.threads = 16;
    f.quota = 0;
    f.cpu_used = 6.5;
    f.others = 0.2;
    f.run_delay = 0.01;
    f.throttled = 0;
    f.pressure_cpu = f.pressure_memory = f.pressure_io = 0;
    f.budget = 4 * GIB;
    f.budget_peak = 1.5 * GIB;
    f.memory_free = 64 * GIB;
    f.faults = 0;
    f.dataset_bytes = 140 * GIB;
    f.sample_bytes = 110000;
    f.read_bytes = 112000;
    f.cached = 0;
    f.io_depth = 16;
    f.prefetch = 4;
    f.network = f.rotational = 0;
    f.order_random = 1;
    f.cache_process = 0;
    f.pixels = 187500;
    f.out_pixels = 50176;
    f.out_bytes = 150528;
    f.jpeg = f.raw = f.png = f.webp = 0;
    f.tiled = 1;
    return f;
}

/* The loader delivers `rate` samples/s: sets the trainer's clocks accordingly. */
static inline void starve(leat_doctor_facts *f, double rate)
{
    double step_ms = f->batch * 1e3 / rate;
    f->samples_per_s = rate;
    f->loader = rate;
    f->data_ms = f->data_ms_p50 = step_ms - f->batch_ms;
    f->data_ms_p95 = 1.3 * f->data_ms;
}

/* The same because of reads, which alone give `alone` samples/s: workers wait for them. */
static inline void starve_by_reads(leat_doctor_facts *f, double rate, double alone)
{
    starve(f, rate);
    f->io_cold = f->io_pages = f->io_deep = alone;
    f->decode_ready = 0.02;
    f->cpu_used = 3;
}

/* The same because of the CPUs: reads wait for them. */
static inline void starve_by_cpu(leat_doctor_facts *f, double rate, double alone)
{
    starve(f, rate);
    f->cpu_all = alone;
    f->cpu_one = alone / f->cpus;
    f->decode_ready = 0.95;
    f->cpu_used = 0.98 * f->cpus;
}

static inline leat_doctor_diagnosis judge(leat_doctor_facts f)
{
    leat_doctor_diagnosis d;
    leat_error err = {0};
    int rc = leat_doctor_judge(&f, &d, sizeof d, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return d;
}

static inline const leat_doctor_remedy *remedy(const leat_doctor_diagnosis *d, const char *part)
{
    for (uint32_t i = 0; i < d->remedy_count; i++)
        if (strstr(d->remedies[i].action, part) != NULL || strstr(d->remedies[i].set, part) != NULL)
            return &d->remedies[i];
    return NULL;
}

#endif
