/* SPDX-License-Identifier: Apache-2.0
 *
 * A command line with subcommands made for tests, on the same frame as `leat`: things that a
 * real command does only with large data (run for long, fail in each way) happen here at once.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli_frame.h"
#include "cli_parse.h"

/* ---- echo: what the parser understood ---- */

static const leat__param echo_options[] = {
    CLI_INT("count", 'c', "1", -10, 1000, "N", "a whole number"),
    CLI_FLOAT("ratio", 0, "0.5", 0, 1, "P", "a share"),
    CLI_BYTES("memory", 'm', "1G", 1, 0, "a size"),
    CLI_SECONDS("every", 0, "250ms", 0, 3600, "a time"),
    CLI_CHOICE("mode", 0, "keep", "keep|tiled|raw", "one of three"),
    CLI_STRING("name", 'n', NULL, "TEXT", "a text"),
    CLI_PATH("output", 'o', NULL, "FILE", "a file"),
    CLI_FLOATS("mean", 0, "0,0,0", -1, 1, 3, "R,G,B", "three numbers"),
    CLI_FLAG("resume", 'r', "a flag"),
    CLI_END,
};

static int echo_run(cli *c)
{
    leat__buf buf;
    leat__json j;
    leat__buf_init(&buf, LEAT__MEM_MISC, CLI_PAGE_MAX);
    leat__json_init(&j, &buf, 0);
    leat__json_object(&j);
    leat__json_ki64(&j, "count", cli_int(c, "count"));
    leat__json_kdouble(&j, "ratio", cli_float(c, "ratio"));
    leat__json_ku64(&j, "memory", cli_bytes(c, "memory"));
    leat__json_kdouble(&j, "every", cli_float(c, "every"));
    leat__json_kstr(&j, "mode", cli_str(c, "mode"));
    leat__json_kstr(&j, "name", cli_str(c, "name"));
    leat__json_kstr(&j, "output", cli_str(c, "output"));
    leat__json_kdouble(&j, "mean1", cli_value(c, "mean")->list[1]);
    leat__json_kbool(&j, "resume", cli_flag(c, "resume"));
    leat__json_kbool(&j, "count_given", cli_given(c, "count"));
    leat__json_key(&j, "args");
    leat__json_array(&j);
    for (size_t i = 0; i < cli_arg_count(c); i++) leat__json_str(&j, cli_arg(c, i));
    leat__json_end(&j);
    leat__json_end(&j);
    const int exit_code = cli_json(c, &buf);
    leat__buf_reset(&buf);
    return exit_code;
}

static const cli_command echo_command = {
    .name = "echo",
    .summary = "show what was understood",
    .examples = (const cli_example[]){{"leat echo -c 3 a b", "two arguments"}, {NULL, NULL}},
    .args = (const cli_arg_spec[]){{.name = "WORD", .help = "any", .optional = true, .many = true},
                                   {.name = NULL}},
    .options = {{"Echoing", echo_options}},
    .json = (const cli_key[]){{"args", "the arguments"}, {NULL, NULL}},
    .run = echo_run,
};

/* ---- wait: polls; sleep: is woken ---- */

static const leat__param wait_options[] = {
    CLI_SECONDS("time", 0, "30s", 0, 3600, "how long"),
    CLI_FLAG("deaf", 0, "do not poll for signals"),
    CLI_FLAG("unknown-total", 0, "do not say how much there is"),
    CLI_FLAG("talk", 0, "say something in the middle"),
    CLI_END,
};

static int wait_run(cli *c)
{
    const uint64_t steps = (uint64_t)(cli_float(c, "time") * 100);
    cli_progress bar;
    cli_out(c, "started\n");
    fflush(stdout);
    cli_progress_begin(&bar, c, "waiting", "steps", cli_flag(c, "unknown-total") ? 0 : steps);
    uint64_t i = 0;
    for (; i < steps; i++) {
        if (!cli_flag(c, "deaf") && cli_interrupted(c)) break;
        leat__sleep_ns(10 * LEAT_NS_PER_MS);
        cli_progress_at(&bar, i, i * 100000, i / 10);
        if (i == steps / 2 && cli_flag(c, "talk")) cli_say(c, "half way");
    }
    cli_progress_end(&bar);
    cli_out(c, i < steps ? "tidied\n" : "finished\n");
    return CLI_OK;
}

static const cli_command wait_command = {
    .name = "wait",
    .summary = "work for a while",
    .examples = (const cli_example[]){{"leat wait --time 2s", NULL}, {NULL, NULL}},
    .options = {{"Waiting", wait_options}},
    .json = (const cli_key[]){{"none", "it has none"}, {NULL, NULL}},
    .run = wait_run,
};

typedef struct bell {
    leat__mutex lock;
    leat__cond ring;
    bool rung;
} bell;

static void bell_ring(void *cookie)
{
    bell *b = cookie;
    leat__mutex_lock(&b->lock);
    b->rung = true;
    leat__cond_signal(&b->ring);
    leat__mutex_unlock(&b->lock);
}

static int sleep_run(cli *c)
{
    leat_error err = {0};
    bell b = {.rung = false};
    leat__mutex_init(&b.lock);
    leat__cond_init(&b.ring);
    if (cli_on_interrupt(c, bell_ring, &b, &err) != 0) return cli_fail(c, &err);
    cli_out(c, "started\n");
    fflush(stdout);
    const uint64_t deadline = leat__clock_ns() + 30 * LEAT_NS_PER_S;
    leat__mutex_lock(&b.lock);
    while (!b.rung && leat__cond_wait_until(&b.ring, &b.lock, deadline)) continue;
    leat__mutex_unlock(&b.lock);
    if (cli_on_interrupt(c, NULL, NULL, &err) != 0) return cli_fail(c, &err);
    cli_out(c, b.rung ? "woken\n" : "slept\n");
    leat__cond_destroy(&b.ring);
    leat__mutex_destroy(&b.lock);
    return leat__fail(&err, LEAT_ECANCELED, "canceled"), cli_fail(c, &err);
}

static const cli_command sleep_command = {
    .name = "sleep",
    .summary = "sleep until woken",
    .examples = (const cli_example[]){{"leat sleep", NULL}, {NULL, NULL}},
    .hidden = true,
    .run = sleep_run,
};

/* ---- fail: in every way; lines: more than a pipe holds ---- */

static int fail_run(cli *c)
{
#define FAIL_IF(name, value, text)                                                                           \
    if (leat__str_eq(cli_arg(c, 0), #name)) {                                                                \
        leat_error err = {0};                                                                                \
        leat__fail(&err, LEAT_##name, "a\tfile\033[31m: %s", text);                                          \
        return cli_fail(c, &err);                                                                            \
    }
    LEAT_ERROR_MAP(FAIL_IF)
    cli_warn(c, "about to fail");
    return cli_failf(c, CLI_FINDING, "a finding\nin two lines");
}

static const cli_command fail_command = {
    .name = "fail",
    .summary = "fail as told",
    .examples = (const cli_example[]){{"leat fail EDATA", NULL}, {NULL, NULL}},
    .args = (const cli_arg_spec[]){{.name = "CODE", .help = "which"}, {.name = NULL}},
    .run = fail_run,
};

static int lines_run(cli *c)
{
    int i = 0;
    for (; i < 10000000 && !cli_interrupted(c); i++) cli_out(c, "line %d\n", i);
    cli_say(c, "%s", i < 10000000 ? "stopped early" : "wrote all");
    return CLI_OK;
}

static const cli_command lines_command = {
    .name = "lines",
    .summary = "write many lines",
    .examples = (const cli_example[]){{"leat lines | head -1", NULL}, {NULL, NULL}},
    .run = lines_run,
};

extern const cli_command cli_cmd_help, cli_cmd_completions;

int main(int argc, char **argv)
{
    static const cli_command *const commands[] = {
        &echo_command,  &wait_command, &sleep_command,       &fail_command,
        &lines_command, &cli_cmd_help, &cli_cmd_completions, NULL,
    };
    return cli_main(commands, argc, argv);
}
