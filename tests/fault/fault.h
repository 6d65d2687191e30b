/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of every fault test: runs a scenario and counts how often it allocates, reads, writes,
 * maps, syncs or starts a thread. Then runs it again for each of these calls and makes it fail,
 * once and from there on. A scenario must return an error or succeed, leak nothing, and leave the
 * state that its `after` expects.
 */
#ifndef FAULT_H
#define FAULT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"

typedef struct fault_scenario {
    const char *name;
    void (*before)(void *ctx);              /* a fresh start; no faults */
    int (*run)(void *ctx, leat_error *err); /* under fault */
    bool (*after)(void *ctx, int rc);       /* no faults; false = wrong */
    void *ctx;
    uint64_t stride; /* test every stride-th call of a kind that is called very often; 0 = 1 */
} fault_scenario;

static inline int fault_once(const fault_scenario *s, leat__fault_kind kind, uint64_t nth, bool for_ever)
{
    leat_error err;
    leat__error_reset(&err);
    if (s->before != NULL) s->before(s->ctx);
    uint64_t blocks = leat__mem_blocks();
    leat__fault_arm(kind, nth, for_ever);
    int rc = s->run(s->ctx, &err);
    leat__fault_disarm();
    const char *wrong = NULL;
    if (rc > 0) wrong = "returned a positive code";
    else if (rc != 0 && (err.code != rc || err.message[0] == '\0')) wrong = "did not say why";
    else if (leat__mem_blocks() != blocks) wrong = "leaked memory";
    else if (s->after != NULL && !s->after(s->ctx, rc)) wrong = "left something wrong behind";
    if (wrong == NULL) return 0;
    fprintf(stderr, "%s: fault %d at %" PRIu64 "%s: %s (rc %d, \"%s\")\n", s->name, (int)kind, nth,
            for_ever ? " and later" : "", wrong, rc, err.message);
    return 1;
}

/* Number of calls that went wrong. */
static inline int fault_run(const fault_scenario *s)
{
    int bad = 0;
    uint64_t total = 0;
    for (int kind = 0; kind < LEAT__FAULT_KINDS; kind++) {
        leat_error err;
        if (s->before != NULL) s->before(s->ctx);
        leat__fault_arm((leat__fault_kind)kind, 0, false);
        int rc = s->run(s->ctx, &err);
        uint64_t count = leat__fault_count((leat__fault_kind)kind);
        leat__fault_disarm();
        if (rc != 0 || (s->after != NULL && !s->after(s->ctx, rc))) {
            fprintf(stderr, "%s: fails without faults: %s\n", s->name, err.message);
            return 1;
        }
        for (uint64_t n = 1; n <= count; n += s->stride ? s->stride : 1) {
            bad += fault_once(s, (leat__fault_kind)kind, n, false);
            bad += fault_once(s, (leat__fault_kind)kind, n, true);
            total += 2;
        }
    }
    printf("%s: %" PRIu64 " faults, %d wrong\n", s->name, total, bad);
    return bad;
}

#endif
