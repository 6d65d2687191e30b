/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one loader epoch after epoch with a simulated trainer and disturbs it at a known time.
 * Prints the timeline of rates and of the controller's decisions as JSON lines.
 * bench/autotune_react.py runs it, with the controller and with every fixed setting.
 *
 *     autotune_react PACK SITUATION SECONDS AT_SECONDS [THREADS IO_DEPTH PREFETCH]
 *
 * Situations: hog (spinning processes), disk (every read takes 40 ms), budget (lowered to
 * slightly above the loader's minimum), fast (the trainer's step from 60 to 8 ms), slow (from 4
 * to 60 ms).
 */
#include <leat/loader.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "io/inject.h"

enum { HOGS = 3 };
static const uint64_t window_ns = 250 * LEAT_NS_PER_MS;

typedef struct situation {
    const char *name;
    double step_before_ms, step_after_ms;
} situation;

static const situation situations[] = {
    {"hog", 20, 20}, {"disk", 0, 0}, {"budget", 0, 0}, {"fast", 60, 8}, {"slow", 4, 60}};

typedef struct stage {
    const situation *s;
    leat_loader *loader;
    const char *pack;
    uint64_t begin_ns, at_ns; /* at_ns: the disturbance */
    bool disturbed;
    pid_t hogs[HOGS];
    uint64_t window, samples; /* of the current window */
    uint64_t decided;
} stage;

static void must(int rc, const leat_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "autotune_react: %s\n", err->message);
    exit(2);
}

static double seconds(const stage *g, uint64_t ns)
{
    return (double)(ns - g->begin_ns) / 1e9;
}

static void start_hogs(stage *g)
{
    for (int i = 0; i < HOGS; i++) {
        g->hogs[i] = fork();
        if (g->hogs[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t x = 0;; x++) continue;
    }
}

static void stop_hogs(stage *g)
{
    for (int i = 0; i < HOGS; i++) {
        if (g->hogs[i] <= 0) continue;
        kill(g->hogs[i], SIGKILL);
        waitpid(g->hogs[i], NULL, 0);
    }
}

static void disturb(stage *g)
{
    leat_error err = {0};
    const char *what = g->s->name;
    g->disturbed = true;
    if (strcmp(what, "hog") == 0) start_hogs(g);
    if (strcmp(what, "disk") == 0) {
        const char *name = strrchr(g->pack, '/');
        leat__inject_rule rule = {.path = name ? name + 1 : g->pack, .delay_ns = 40 * LEAT_NS_PER_MS};
        must(leat__io_inject(&rule, &err), &err);
    }
    if (strcmp(what, "budget") == 0) {
        leat_loader_stats s;
        must(leat_loader_read(g->loader, &s, sizeof s), &err);
        must(leat_budget_set_limit(leat_loader_budget(g->loader), s.floor_bytes * 5 / 4, &err), &err);
    }
    printf("{\"t\": %.3f, \"disturbance\": \"%s\"}\n", seconds(g, leat__clock_ns()), what);
}

static void tell(stage *g)
{
    leat_decision d[16];
    uint64_t now = leat__clock_ns();
    uint32_t count = leat_loader_decisions(g->loader, g->decided, d, LEAT_COUNT(d));
    for (uint32_t i = 0; i < count; i++) {
        printf("{\"t\": %.3f, \"knob\": \"%s\", \"from\": %u, \"to\": %u, \"reason\": \"%s\"}\n",
               seconds(g, d[i].at_ns), leat_knob_name(d[i].knob), d[i].from, d[i].to, d[i].reason);
        g->decided = d[i].number + 1;
    }
    if (now - g->window < window_ns) return;
    leat_loader_stats s;
    leat_error err = {0};
    must(leat_loader_read(g->loader, &s, sizeof s), &err);
    printf("{\"t\": %.3f, \"rate\": %.1f, \"threads\": %u, \"io_depth\": %u, \"prefetch\": %u, "
           "\"budget_used\": %llu, \"budget_limit\": %llu}\n",
           seconds(g, now), (double)g->samples * 1e9 / (double)(now - g->window), s.threads, s.io_depth,
           s.prefetch, (unsigned long long)s.budget_used, (unsigned long long)s.budget_limit);
    g->window = now;
    g->samples = 0;
}

/* One epoch, or until the time is over. */
static bool run_epoch(stage *g, uint64_t epoch, uint64_t until_ns)
{
    leat_error err = {0};
    must(leat_loader_begin(g->loader, epoch, &err), &err);
    for (;;) {
        leat_batch *b = NULL;
        must(leat_loader_next(g->loader, &b, -1, &err), &err);
        if (b == NULL) return true;
        g->samples += b->samples;
        uint64_t now = leat__clock_ns();
        if (!g->disturbed && now - g->begin_ns >= g->at_ns) disturb(g);
        double step_ms = g->disturbed ? g->s->step_after_ms : g->s->step_before_ms;
        if (step_ms > 0) leat__sleep_ns((uint64_t)(step_ms * 1e6));
        leat_batch_release(&b);
        tell(g);
        if (now >= until_ns) return false;
    }
}

int main(int argc, char **argv)
{
    leat_error err = {0};
    stage g = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: autotune_react PACK SITUATION SECONDS AT [THREADS DEPTH PREFETCH]\n");
        return 2;
    }
    for (size_t i = 0; i < LEAT_COUNT(situations); i++)
        if (strcmp(argv[2], situations[i].name) == 0) g.s = &situations[i];
    if (g.s == NULL) {
        fprintf(stderr, "autotune_react: no situation '%s'\n", argv[2]);
        return 2;
    }
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.batch_size = 64;
    o.memory = UINT64_C(1) << 30;
    o.order = LEAT_ORDER_RANDOM;
    if (argc > 7) {
        o.threads = (uint32_t)atoi(argv[5]);
        o.io_depth = (uint32_t)atoi(argv[6]);
        o.prefetch = (uint32_t)atoi(argv[7]);
    }
    must(leat_loader_open(&g.loader, argv[1], &o, &err), &err);
    setvbuf(stdout, NULL, _IOLBF, 0);
    g.pack = argv[1];
    g.at_ns = (uint64_t)(atof(argv[4]) * 1e9);
    g.begin_ns = g.window = leat__clock_ns();
    uint64_t until = g.begin_ns + (uint64_t)(atof(argv[3]) * 1e9);
    for (uint64_t epoch = 0; run_epoch(&g, epoch, until); epoch++) continue;
    stop_hogs(&g);
    leat_loader_close(&g.loader);
    return 0;
}
