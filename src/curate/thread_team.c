/* SPDX-License-Identifier: Apache-2.0
 *
 * See thread_team.h. Steps are numbered; each member works on every number once.
 */
#include "curate/thread_team.h"

#include "base/mem.h"
#include "base/thread.h"
#include "probe/machine.h"

#define MEMBERS_MAX 256

typedef struct member {
    leat__thread thread;
    leat__thread_team *crew;
    uint32_t number;
} member;

struct leat__thread_team {
    leat__mutex lock;
    leat__cond begin, end;
    uint64_t step;
    uint32_t size, busy;
    bool stop;
    leat__thread_team_work work;
    void *cookie;
    member *members; /* number 0 is the caller: it has no thread */
};

static void serve(void *arg)
{
    member *m = arg;
    leat__thread_team *c = m->crew;
    uint64_t done = 0;
    leat__mutex_lock(&c->lock);
    for (;;) {
        while (!c->stop && c->step == done) leat__cond_wait(&c->begin, &c->lock);
        if (c->stop) break;
        done = c->step;
        leat__mutex_unlock(&c->lock);
        c->work(c->cookie, m->number, c->size);
        leat__mutex_lock(&c->lock);
        if (--c->busy == 0) leat__cond_signal(&c->end);
    }
    leat__mutex_unlock(&c->lock);
}

static uint32_t usable_cpus(void)
{
    leat_machine machine;
    leat__machine_host(&machine);
    return machine.cpus_usable;
}

int leat__thread_team_open(leat__thread_team **crew, uint32_t threads, leat_error *err)
{
    leat__thread_team *c = LEAT_NEW(CURATE, leat__thread_team);
    int rc = 0;
    if (!c) return leat__fail_nomem(err, sizeof *c, "threads");
    if (threads == 0) threads = usable_cpus();
    c->size = threads < 1 ? 1 : threads > MEMBERS_MAX ? MEMBERS_MAX : threads;
    leat__mutex_init(&c->lock);
    leat__cond_init(&c->begin);
    leat__cond_init(&c->end);
    *crew = c;
    c->members = LEAT_NEW_ARRAY(CURATE, member, c->size);
    if (!c->members) rc = leat__fail_nomem(err, c->size * sizeof *c->members, "threads");
    for (uint32_t i = 1; i < c->size && rc == 0; i++) {
        c->members[i].crew = c;
        c->members[i].number = i;
        rc = leat__thread_start(&c->members[i].thread, "leat crew", serve, &c->members[i], err);
    }
    if (rc != 0) leat__thread_team_close(crew);
    return rc;
}

void leat__thread_team_close(leat__thread_team **crew)
{
    leat__thread_team *c = *crew;
    if (!c) return;
    *crew = NULL;
    leat__mutex_lock(&c->lock);
    c->stop = true;
    leat__cond_broadcast(&c->begin);
    leat__mutex_unlock(&c->lock);
    for (uint32_t i = 1; c->members && i < c->size; i++) leat__thread_join(&c->members[i].thread);
    leat__cond_destroy(&c->begin);
    leat__cond_destroy(&c->end);
    leat__mutex_destroy(&c->lock);
    leat__free(c->members);
    leat__free(c);
}

uint32_t leat__thread_team_size(const leat__thread_team *crew)
{
    return crew->size;
}

void leat__thread_team_run(leat__thread_team *c, leat__thread_team_work work, void *cookie)
{
    if (c->size > 1) {
        leat__mutex_lock(&c->lock);
        c->work = work;
        c->cookie = cookie;
        c->busy = c->size - 1;
        c->step++;
        leat__cond_broadcast(&c->begin);
        leat__mutex_unlock(&c->lock);
    }
    work(cookie, 0, c->size);
    if (c->size == 1) return;
    leat__mutex_lock(&c->lock);
    while (c->busy > 0) leat__cond_wait(&c->end, &c->lock);
    leat__mutex_unlock(&c->lock);
}
