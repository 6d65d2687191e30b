/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine and the run of the single-GPU guide: A10G (23,028 MiB), 62 GiB, 16 cores,
 * ResNet-50 on ImageNet's 1,281,167 training images.
 */
#ifndef LEAT_PLAN_TEST_H
#define LEAT_PLAN_TEST_H

#include "leat_test.h"

#include <stdio.h>

#include <leat/plan.h>

#include "base/num.h"
#include "base/rng.h"
#include "plan/parts.h"

#define GIB (UINT64_C(1) << 30)

static inline leat_plan_facts guide_facts(void)
{
    leat_plan_facts f;
    leat_plan_facts_init(&f);
    f.cpus = 16;
    f.gpus = 1;
    f.whole_machine = 1;
    f.ram_bytes = 62 * GIB;
    f.samples = 1281167;
    snprintf(f.gpu, sizeof f.gpu, "A10G");
    snprintf(f.model, sizeof f.model, "resnet50");
    return f;
}

static inline leat_plan plan_of(leat_plan_facts f)
{
    leat_plan p;
    leat_error err = {0};
    int rc = leat_plan_make(&f, &p, sizeof p, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return p;
}

/* Facts of a machine and a run as a user gives them: much is left to defaults. */
static inline leat_plan_facts random_facts(leat__rng *r)
{
    static const char *const gpus[] = {"T4", "A10G", "A100", "H200", "B200"};
    static const char *const models[] = {"resnet18", "resnet50", "resnet152", "vit_s", "vit_b", "vit_l"};
    static const char *const storages[] = {"", "hdd", "ssd", "nvme", "network", "memory", "bucket"};
    leat_plan_facts f;
    leat_plan_facts_init(&f);
#define ONE_OF(n) leat__rng_below(r, n)
    f.cpus = 1 + (uint32_t)ONE_OF(UINT64_C(1) << ONE_OF(10));
    f.gpus = ONE_OF(3) == 0 ? 0 : 1u << ONE_OF(4);
    f.whole_machine = (uint32_t)ONE_OF(2);
    f.ram_bytes = (GIB + ONE_OF(GIB)) << ONE_OF(10);
    f.samples = UINT64_C(1000) << ONE_OF(12);
    f.epochs = ONE_OF(2) != 0 ? 1 : 10;
    f.batch = ONE_OF(3) == 0 ? 0 : UINT64_C(1) << ONE_OF(10);
    f.prefetch = (uint32_t)ONE_OF(10);
    f.images = (uint32_t)ONE_OF(4);
    f.loader = ONE_OF(4) == 0 ? LEAT_PLAN_PROCESS : LEAT_PLAN_LEAT;
    f.element_bytes = ONE_OF(2) != 0 ? 1 : 4;
    f.no_validation = (uint32_t)ONE_OF(2);
    f.cache = ONE_OF(3) == 0 && f.loader == LEAT_PLAN_LEAT ? PLAN_CACHE_PROCESS : 0;
    if (ONE_OF(4) == 0) f.workers = 1 << ONE_OF(6);
    if (ONE_OF(4) == 0) f.sample_bytes = UINT64_C(5000) << ONE_OF(10);
    double us = 10.0 * (double)(1 + ONE_OF(500));
    if (ONE_OF(2) == 0) f.measured.cpu_us = (leat_plan_range){0.9 * us, us, 1.1 * us};
    snprintf(f.storage, sizeof f.storage, "%s", storages[ONE_OF(7)]);
    if (ONE_OF(4) == 0) f.measured.io_bytes_per_s = (leat_plan_range){4e8, 5e8, 6e8};
    if (f.gpus == 0) return f;
    snprintf(f.gpu, sizeof f.gpu, "%s", gpus[ONE_OF(5)]);
    snprintf(f.model, sizeof f.model, "%s", models[ONE_OF(6)]);
    if (ONE_OF(2) == 0) f.vram_bytes = (4 * GIB) << ONE_OF(5);
#undef ONE_OF
    return f;
}

/* |value − wanted| ≤ tolerance */
static inline void assert_near(double value, double wanted, double tolerance)
{
    double off = value > wanted ? value - wanted : wanted - value;
    if (!(off <= tolerance)) fail_msg("%g is not within %g of %g", value, tolerance, wanted);
}

#endif
