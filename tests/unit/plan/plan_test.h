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

/* |value − wanted| ≤ tolerance */
static inline void assert_near(double value, double wanted, double tolerance)
{
    double off = value > wanted ? value - wanted : wanted - value;
    if (!(off <= tolerance)) fail_msg("%g is not within %g of %g", value, tolerance, wanted);
}

#endif
