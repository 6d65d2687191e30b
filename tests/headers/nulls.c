/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls every public function with NULL where something is expected (nulls.py makes the calls
 * from the headers): it returns, with LEAT_EINVAL if it can, and never crashes. One process per
 * call, so that a crashing one is identified.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <leat/doctor.h>
#include <leat/flow.h>
#include <leat/ingest.h>
#include <leat/loader.h>
#include <leat/machine.h>
#include <leat/op.h>
#include <leat/pack.h>
#include <leat/plan.h>

#pragma GCC diagnostic ignored "-Wunused-result"

typedef struct objects {
    leat_budget *budget;
    leat_pool *pool;
    leat_flow *flow;
    leat_tuner *tuner;
    leat_pack *pack;
    leat_loader *loader;
    leat_sample *sample;
    leat_packer *packer;
} objects;

typedef struct call {
    const char *name, *variant;
    int (*run)(objects *real);
    int refuses;
} call;

static leat_error error;
static void *place;

#include "nulls.h"

static char path[64], other[64];

static int write_pack(void)
{
    static const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p = NULL;

    opts.fields = &field;
    opts.field_count = 1;
    opts.no_sync = 1;
    opts.replace = 1;
    int rc = leat_packer_open(&p, path, &opts, &error);
    for (int i = 0; i < 4 && rc == 0; i++) {
        char key = (char)('a' + i);
        leat_pack_value v = {.i = i};
        leat_pack_sample s = {.key = &key, .key_size = 1, .values = &v};
        rc = leat_packer_append(p, &s, &error);
    }
    if (rc == 0) rc = leat_packer_finish(p, &stats, &error);
    leat_packer_close(&p);
    return rc;
}

static int open_all(objects *o)
{
    static const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    leat_packer_opts packing = LEAT_PACKER_OPTS_INIT;
    leat_loader_opts loading;
    int rc;

    packing.fields = &field;
    packing.field_count = 1;
    packing.no_sync = 1;
    packing.replace = 1;
    if (leat_packer_discard(other, NULL) != 0) return LEAT_EINTERNAL; /* of the child before */
    leat_loader_opts_init(&loading);
    loading.memory = 64 << 20;
    loading.threads = 1;
    if ((rc = leat_budget_open(&o->budget, 64 << 20, &error)) != 0) return rc;
    if ((rc = leat_pool_shared(&o->pool, &error)) != 0) return rc;
    if ((rc = leat_flow_open(&o->flow, NULL, &error)) != 0) return rc;
    if ((rc = leat_tuner_open(&o->tuner, &error)) != 0) return rc;
    if ((rc = leat_pack_open(&o->pack, path, NULL, &error)) != 0) return rc;
    if ((rc = leat_sample_open(&o->sample, o->pack, &error)) != 0) return rc;
    if ((rc = leat_packer_open(&o->packer, other, &packing, &error)) != 0) return rc;
    return leat_loader_open(&o->loader, path, &loading, &error);
}

static int run_one(const call *c)
{
    objects real = {0};
    bool needs = strcmp(c->variant, "handles") == 0 || strcmp(c->variant, "ones") == 0;
    alarm(60); /* a call that never returns is as bad */
    if (needs && open_all(&real) != 0) {
        fprintf(stderr, "cannot open: %s\n", error.message);
        return 3;
    }
    int rc = c->run(&real);
    return c->refuses && rc != LEAT_EINVAL ? 2 : 0;
}

int main(void)
{
    int bad = 0;
    const size_t count = sizeof calls / sizeof calls[0];

    snprintf(path, sizeof path, "/tmp/leat-nulls-%d.leat", (int)getpid());
    snprintf(other, sizeof other, "/tmp/leat-nulls-%d-b.leat", (int)getpid());
    if (write_pack() != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) _exit(run_one(&calls[i]));
        if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
        if (status == 0) continue;
        bad++;
        if (WIFSIGNALED(status))
            printf("%s (%s): %s\n", calls[i].name, calls[i].variant, strsignal(WTERMSIG(status)));
        else
            printf("%s (%s): %s\n", calls[i].name, calls[i].variant,
                   WEXITSTATUS(status) == 2 ? "did not answer LEAT_EINVAL" : "could not be tried");
    }
    unlink(path);
    leat_packer_discard(other, NULL);
    printf("%zu calls, %d wrong\n", count, bad);
    return bad > 0;
}
