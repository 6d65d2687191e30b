/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of ops other than crop, resize and flip, from data/plan/ops.txt, for plans that may not measure. Also
 * how much slower this CPU is than that of the tables.
 */
#include <ctype.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "plan/parts.h"

#define TABLE_PIXELS (224.0 * 224.0)
#define FIXED_US 20.0 /* per op, whatever the size; measured with 32 x 32 pixels */

static double cost_of(const char *name, size_t len, const char *isa)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_op_cost_rows); i++) {
        const plan_op_cost *row = &plan_op_cost_rows[i];
        if (strlen(row->name) != len || strncmp(row->name, name, len) != 0) continue;
        if (leat__str_starts(isa, "avx512")) return row->avx512_us;
        return leat__str_starts(isa, "avx2") ? row->avx2_us : row->scalar_us;
    }
    return -1;
}

bool leat__plan_ops_us(const char *ops, const char *isa, double pixels, double *us)
{
    bool all = true;
    *us = 0;
    for (const char *p = ops; *p != '\0';) { /* a name comes before "(": ops inside others count too */
        if (!isalpha((unsigned char)*p)) {
            p++;
            continue;
        }
        size_t len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (p[len] == '(' && isupper((unsigned char)*p)) {
            double cost = cost_of(p, len, isa);
            all = all && cost >= 0;
            *us += cost > 0 ? FIXED_US + cost * pixels / TABLE_PIXELS : 0;
        }
        p += len;
    }
    return all;
}

double leat__plan_cpu_times(const leat_plan_facts *f)
{
    if (f->cpu[0] == '\0') return 1;
    for (size_t i = 0; i < LEAT_COUNT(plan_cpu_rows); i++) {
        const plan_cpu *row = &plan_cpu_rows[i];
        if (strstr(f->cpu, row->match) == NULL) continue;
        if (strcmp(row->isa, "any") == 0 || leat__str_starts(f->isa, row->isa)) return row->times;
    }
    return 1;
}
