/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat selftest engine`: runs a synthetic pipeline (read, CPU work, gather, write) of chosen sizes on the
 * real engine, with its meters. The output is compared with the same work done without an engine, so a wrong
 * order or a lost or duplicated task is detected.
 */
#include <leat/flow.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"

#define TEXT 24
#define STAGES 5

typedef struct test {
    uint64_t tasks, given;
    uint64_t task_bytes;
    uint64_t read_ns, work_ns, step_ns;
    uint32_t group;
    uint64_t digest, written; /* written only by the sink, which runs in order, one task at a time */
    cli_progress bar;
} test;

/* ---- The stages ---- */

static int list(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    test *t = cookie;
    return t->given++ < t->tasks ? 0 : LEAT_FLOW_END;
}

static void release_block(void *cookie, void *data)
{
    leat__free(data);
}

static void fill(uint64_t *block, uint64_t words, uint64_t seq)
{
    for (uint64_t i = 0; i < words; i++) block[i] = (seq + 1) * UINT64_C(0x9E3779B97F4A7C15) + i;
}

/* Simulates storage with a given latency. */
static int read_block(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    const test *t = cookie;
    uint64_t *block = leat__alloc(LEAT__MEM_PAGE, t->task_bytes);
    if (!block) return leat__fail_nomem(err, t->task_bytes, "a block");
    if (t->read_ns > 0) leat__sleep_ns(t->read_ns);
    fill(block, t->task_bytes / 8, task->seq);
    task->data = block;
    task->bytes = t->task_bytes;
    task->release = release_block;
    return 0;
}

/* Stores the block's hash in its first word after spending the requested CPU time. */
static int work(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    const test *t = cookie;
    uint64_t *block = task->data, begin = leat__clock_thread_ns();
    uint64_t hash = leat__hash64(block, t->task_bytes, task->seq);
    while (leat__clock_thread_ns() - begin < t->work_ns)
        if (leat_task_canceled(task)) break;
    block[0] = hash;
    return 0;
}

static int collate(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    const test *t = cookie;
    uint64_t *hashes = leat__alloc_array(LEAT__MEM_BATCH, t->group, sizeof *hashes);
    if (!hashes) return leat__fail_nomem(err, t->group * sizeof *hashes, "a group");
    memset(hashes, 0, t->group * sizeof *hashes);
    for (uint32_t i = 0; i < task->member_count; i++) hashes[i] = *(const uint64_t *)task->members[i]->data;
    task->data = hashes;
    task->bytes = t->group * sizeof *hashes;
    task->release = release_block;
    return 0;
}

static int write_group(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    test *t = cookie;
    t->digest = leat__hash64(task->data, t->group * sizeof(uint64_t), t->digest);
    t->written++;
    cli_progress_at(&t->bar, LEAT_MIN(t->written * t->group, t->tasks), 0, 0);
    if (t->step_ns > 0) leat__sleep_ns(t->step_ns);
    return 0;
}

/* Computes the same hashes and groups in sequence. */
static int expected(const test *t, uint64_t *digest, leat_error *err)
{
    uint64_t *block = leat__alloc(LEAT__MEM_PAGE, t->task_bytes);
    uint64_t *hashes = leat__zalloc_array(LEAT__MEM_BATCH, t->group, sizeof *hashes);
    int rc = block && hashes ? 0 : leat__fail_nomem(err, t->task_bytes, "the comparison");
    *digest = 0;
    for (uint64_t i = 0; rc == 0 && i < t->tasks; i++) {
        fill(block, t->task_bytes / 8, i);
        hashes[i % t->group] = leat__hash64(block, t->task_bytes, i);
        if (i % t->group != t->group - 1u && i + 1 < t->tasks) continue;
        *digest = leat__hash64(hashes, t->group * sizeof *hashes, *digest);
        memset(hashes, 0, t->group * sizeof *hashes);
    }
    leat__free(block);
    leat__free(hashes);
    return rc;
}

/* ---- Running it ---- */

static leat_stage stage_of(test *t, const char *name, leat_stage_kind kind,
                           int (*process)(void *, void *, leat_task *, leat_error *))
{
    leat_stage s;
    leat_stage_init(&s);
    s.name = name;
    s.kind = kind;
    s.process = process;
    s.cookie = t;
    return s;
}

static int build(test *t, leat_flow *flow, leat_error *err)
{
    leat_stage s[STAGES] = {
        stage_of(t, "list", LEAT_STAGE_SOURCE, list), stage_of(t, "read", LEAT_STAGE_MAP, read_block),
        stage_of(t, "work", LEAT_STAGE_MAP, work), stage_of(t, "gather", LEAT_STAGE_GATHER, collate),
        stage_of(t, "write", LEAT_STAGE_SINK, write_group)};
    s[1].lane = LEAT_LANE_IO;
    s[1].bytes_out = t->task_bytes;
    s[1].category = LEAT_BUDGET_PAGE;
    s[3].count = t->group;
    s[3].bytes_out = t->group * sizeof(uint64_t);
    s[3].category = LEAT_BUDGET_BATCH;
    s[4].flags = LEAT_STAGE_ORDERED;
    s[4].lane = LEAT_LANE_PYTHON; /* one thread that may sleep without blocking a CPU worker */
    for (int i = 0; i < STAGES; i++) LEAT_TRY(leat_flow_add(flow, &s[i], err));
    return 0;
}

static void cancel(void *flow)
{
    leat_flow_cancel(flow);
}

static int run_flow(cli *c, test *t, leat_budget *budget, leat_flow **flow, leat_error *err)
{
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.name = "selftest";
    fo.budget = budget;
    fo.mode = (leat_flow_mode)cli_choice(c, "mode");
    fo.threads = (uint32_t)cli_int(c, "threads");
    fo.io_depth = (uint32_t)cli_int(c, "io-depth");
    fo.log = c->log;
    LEAT_TRY(leat_flow_open(flow, &fo, err));
    LEAT_TRY(build(t, *flow, err));
    LEAT_TRY(cli_on_interrupt(c, cancel, *flow, err));
    cli_progress_begin(&t->bar, c, "running", "tasks", t->tasks);
    int rc = leat_flow_start(*flow, err);
    if (rc == 0) rc = leat_flow_wait(*flow, -1, err);
    cli_progress_end(&t->bar);
    int stopped = cli_on_interrupt(c, NULL, NULL, NULL);
    return rc != 0 ? rc : stopped;
}

/* ---- Showing it ---- */

static void show_text(cli *c, const test *t, leat_flow *flow, const leat_flow_stats *f,
                      const leat_budget_stats *b)
{
    char x[TEXT], y[TEXT];
    double seconds = (double)f->elapsed_ns / 1e9;
    cli_heading(c, "Flow");
    cli_row(c, "tasks", "%llu in groups of %u, all came out right", (unsigned long long)t->tasks, t->group);
    cli_row(c, "time", "%s, %.0f tasks/s", leat__format_seconds(seconds, x, TEXT),
            (double)t->tasks / seconds);
    cli_row(c, "budget", "peak %s of %s", leat__format_bytes(b->peak, x, TEXT),
            leat__format_bytes(b->limit, y, TEXT));
    cli_row(c, "blocked", "%.1f%% of the time for bytes",
            100 * (double)f->blocked_ns / (double)f->elapsed_ns);
    cli_row(c, "settings", "threads %u, I/O depth %u (%llu decisions)", f->threads, f->io_depth,
            (unsigned long long)f->decisions);
    cli_heading(c, "Stages");
    cli_out(c, "  %-8s %-7s %10s %10s %10s %8s %10s\n", "stage", "lane", "tasks", "busy", "waiting", "ready",
            "bytes");
    static const char *const lanes[] = {"cpu", "io", "gpu", "python"};
    for (uint32_t i = 0; i < f->stages; i++) {
        leat_stage_stats s;
        char z[TEXT];
        if (leat_flow_read_stage(flow, i, &s) != 0) continue;
        cli_out(c, "  %-8s %-7s %10llu %10s %10s %7.1f%% %10s\n", s.name, lanes[s.lane],
                (unsigned long long)s.items, leat__format_seconds((double)s.busy_ns / 1e9, x, TEXT),
                leat__format_seconds((double)s.wait_ns / 1e9, y, TEXT), 100 * s.readiness,
                leat__format_bytes(s.bytes, z, TEXT));
    }
}

static int show_json(cli *c, const test *t, leat_flow *flow, const leat_flow_stats *f,
                     const leat_budget_stats *b)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_kbool(j, "ok", true);
    leat__json_ku64(j, "tasks", t->tasks);
    leat__json_kdouble(j, "seconds", (double)f->elapsed_ns / 1e9);
    leat__json_kdouble(j, "tasks_per_s", (double)t->tasks * 1e9 / (double)f->elapsed_ns);
    leat__json_ku64(j, "budget_bytes", b->limit);
    leat__json_ku64(j, "budget_peak_bytes", b->peak);
    leat__json_kdouble(j, "blocked_share", (double)f->blocked_ns / (double)f->elapsed_ns);
    leat__json_ku64(j, "threads", f->threads);
    leat__json_ku64(j, "io_depth", f->io_depth);
    leat__json_ku64(j, "decisions", f->decisions);
    leat__json_key(j, "stages");
    leat__json_array(j);
    for (uint32_t i = 0; i < f->stages; i++) {
        leat_stage_stats s;
        if (leat_flow_read_stage(flow, i, &s) != 0) continue;
        leat__json_object(j);
        leat__json_kstr(j, "name", s.name);
        leat__json_ku64(j, "items", s.items);
        leat__json_kdouble(j, "busy_s", (double)s.busy_ns / 1e9);
        leat__json_kdouble(j, "wait_s", (double)s.wait_ns / 1e9);
        leat__json_kdouble(j, "readiness", s.readiness);
        leat__json_ku64(j, "bytes", s.bytes);
        leat__json_end(j);
    }
    leat__json_end(j);
    return cli_object_end(c, &page);
}

static int report(cli *c, const test *t, leat_flow *flow, leat_budget *budget)
{
    leat_flow_stats f;
    leat_budget_stats b;
    leat_error err;
    uint64_t want;
    leat_budget_read(budget, &b);
    if (leat_flow_read(flow, &f, sizeof f) != 0 || expected(t, &want, &err) != 0)
        return cli_failf(c, CLI_FIT, "out of memory");
    uint64_t groups = leat__ceil_div(t->tasks, t->group);
    if (t->written != groups || t->digest != want)
        return cli_failf(c, CLI_FINDING, "%llu of %llu groups came out, digest %016llx, not %016llx",
                         (unsigned long long)t->written, (unsigned long long)groups,
                         (unsigned long long)t->digest, (unsigned long long)want);
    if (b.peak > b.limit)
        return cli_failf(c, CLI_FINDING, "%llu bytes were charged to a budget of %llu",
                         (unsigned long long)b.peak, (unsigned long long)b.limit);
    if (c->json) return show_json(c, t, flow, &f, &b);
    show_text(c, t, flow, &f, &b);
    return CLI_OK;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_budget *budget = NULL;
    leat_flow *flow = NULL;
    test t = {.tasks = (uint64_t)cli_int(c, "tasks"),
              .task_bytes = cli_bytes(c, "task-bytes") / 8 * 8,
              .read_ns = (uint64_t)(cli_float(c, "read-time") * 1e9),
              .work_ns = (uint64_t)(cli_float(c, "work-time") * 1e9),
              .step_ns = (uint64_t)(cli_float(c, "write-time") * 1e9),
              .group = (uint32_t)cli_int(c, "group")};
    int rc = leat_budget_open(&budget, cli_bytes(c, "memory"), &err);
    if (rc == 0) rc = run_flow(c, &t, budget, &flow, &err);
    int code = rc == 0 ? report(c, &t, flow, budget) : cli_fail(c, &err);
    leat_flow_close(&flow);
    leat_budget_close(&budget);
    return code;
}

static const leat__param sizes[] = {
    CLI_INT("tasks", 'n', "2000", 1, 1e9, "N", "tasks to run"),
    CLI_BYTES("task-bytes", 0, "256KiB", 8, 1 << 30, "bytes each task reads and carries"),
    CLI_INT("group", 0, "16", 1, 65536, "N", "tasks gathered into one result"),
    CLI_SECONDS("read-time", 0, "2ms", 0, 60, "how long one read takes"),
    CLI_SECONDS("work-time", 0, "500us", 0, 60, "CPU time of one task"),
    CLI_SECONDS("write-time", 0, "0s", 0, 60, "how long writing one group takes"),
    CLI_END,
};

static const leat__param limits[] = {
    CLI_BYTES("memory", 'm', "256MiB", 1, 1e15, "the byte budget"),
    CLI_INT("threads", 't', "0", 0, 256, "N", "CPU workers, 0 = the controller decides"),
    CLI_INT("io-depth", 0, "0", 0, 256, "N", "reads at once, 0 = the controller decides"),
    CLI_CHOICE("mode", 0, "streaming", "streaming|batch", "order in which stages get to run"),
    CLI_END,
};

const cli_command cli_cmd_selftest = {
    .name = "selftest",
    .summary = "run parts of leat on generated data and check the results",
    .examples = (const cli_example[]){{"leat selftest engine",
                                       "a pipeline of read, work, gather, write, with its meters"},
                                      {"leat selftest engine --memory 16MiB --read-time 20ms --verbose",
                                       "a tight budget and slow storage; shows what the controller decides"},
                                      {NULL, NULL}},
    .description = "engine: reads, processes, gathers and writes synthetic blocks with the engine "
                   "that packs and loads, then compares the result with the same work done without "
                   "it. Exit code 1 when they differ or the budget was exceeded.",
    .args =
        (const cli_arg_spec[]){{.name = "WHAT", .choices = "engine", .help = "what to test"}, {.name = NULL}},
    .options = {{"Sizes", sizes}, {"Limits", limits}},
    .json = (const cli_key[]){{"ok", "always true: otherwise the exit code is not 0"},
                              {"tasks", "tasks run"},
                              {"seconds", "wall time"},
                              {"tasks_per_s", "tasks per second"},
                              {"budget_bytes", "limit of the budget"},
                              {"budget_peak_bytes", "most that was charged to it"},
                              {"blocked_share", "share of the time something waited for bytes"},
                              {"threads", "CPU workers at the end"},
                              {"io_depth", "reads at once at the end"},
                              {"decisions", "changes the controller made"},
                              {"stages[].name", "stage"},
                              {"stages[].items", "tasks it finished"},
                              {"stages[].busy_s", "time in it, all workers together"},
                              {"stages[].wait_s", "time tasks waited for it"},
                              {"stages[].readiness", "share of the time a task was waiting"},
                              {"stages[].bytes", "bytes its tasks held afterwards"},
                              {NULL, NULL}},
    .run = run,
};
