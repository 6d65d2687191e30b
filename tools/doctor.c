/* SPDX-License-Identifier: Apache-2.0
 *
 * leat doctor: finds the bottleneck of a run, its cost, and remedies. Measures on the user's own pack with
 * a simulated trainer of a given step time, or judges the facts of a run that a loader wrote (--attach).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <leat/doctor.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli_frame.h"
#include "doctor/doctor_flags.h"
#include "doctor_past.h"
#include "io/file.h"
#include "io/http.h"
#include "io/url.h"
#include "live.h"
#include "load_flags.h"
#include "probe/trace.h"

#define RUN_MAX ((size_t)64 << 20)
#define RUN_BEGIN "{\"run\":" /* first bytes of a run file */
#define FRAMES 2048
#define CEILING_TIMES 2.0 /* the result comes within this many times --seconds, plus CEILING_MORE seconds */
#define CEILING_MORE 4.5
#define STOP_NS (LEAT_NS_PER_S * 7 / 10) /* time to end in order after a signal */

static const leat__param options[] = {
    CLI_SECONDS("seconds", 0, "8", 1, 600, "time to measure; it ends after twice this + 5 s at the latest"),
    CLI_FLAG("spin", 0, "the simulated trainer keeps one CPU busy"),
    CLI_PATH("apply", 0, NULL, "FILE", "write the load flags that help to this YAML file"),
    CLI_FLAG("verify", 0, "run again with those flags and compare with the prediction"),
    CLI_PATH("attach", 0, NULL, "FILE", "diagnose a run from its run file (- = stdin) without measuring"),
    CLI_FLAG("live", 0, "show the loader while it is measured"),
    CLI_INT("serve", 0, NULL, 0, 65535, "PORT", "the same as a page on 127.0.0.1, 0 = any free port"),
    CLI_PATH("report", 0, NULL, "FILE", "write an HTML page with plots here"),
    CLI_PATH("trace", 0, NULL, "FILE", "write a trace for chrome://tracing or Perfetto"),
    CLI_END,
};

typedef struct job {
    cli *c;
    load_flags flags;
    const char *record; /* the run file, finished or in progress; NULL = measure a pack */
    cli_progress bar;
    leat_doctor_diagnosis d;
    /* The loader that is running, and the frames of the first loader: the one with the trainer. */
    leat_doctor_watch *watch;
    leat_doctor_server *server;
    live_view view;
    leat_doctor_frame frames[FRAMES];
    size_t frame_count;
    uint32_t watches;
    int serve_rc;
    bool stopped; /* stopped by a signal; the verdict covers the measurements until then */
    leat_error serve_err;
    /* The measuring thread. */
    leat__thread thread;
    leat__mutex lock; /* guards the fields below, and all output while it measures */
    leat__cond changed;
    const leat_loader_opts *loader;
    leat_doctor_facts facts, so_far; /* `facts` belongs to the thread; `so_far` is a copy for the command */
    leat_error err;
    int rc;
    bool done;
    bool abandoned; /* the thread is stuck in a slow read: the process ends without it */
} job;

/* ---- Output ---- */

static int append(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

static int text_of(const leat_doctor_diagnosis *d, leat_doctor_format format, leat__buf *out, leat_error *err)
{
    leat__buf_init(out, LEAT__MEM_MISC, RUN_MAX);
    return leat_doctor_write(d, format, append, out, err);
}

static cli_style style_of(uint32_t grade)
{
    return grade == LEAT_GRADE_CRITICAL ? CLI_RED : grade == LEAT_GRADE_WARNING ? CLI_YELLOW : CLI_GREEN;
}

static int show(job *j, leat_error *err)
{
    cli *c = j->c;
    leat__buf out;
    int rc = text_of(&j->d,
                     c->json   ? LEAT_DOCTOR_JSON
                     : c->utf8 ? LEAT_DOCTOR_PAGE
                               : LEAT_DOCTOR_PAGE_ASCII,
                     &out, err);
    if (rc == 0 && c->json) {
        rc = cli_json(c, &out) == CLI_OK ? 0 : LEAT_EIO;
    } else if (rc == 0) {
        /* highlight the first sentence */
        size_t first = strcspn(leat__buf_str(&out), "\n");
        cli_out(c, "%s%s%.*s%s%s", cli_styled(c, CLI_BOLD), cli_styled(c, style_of(j->d.grade)), (int)first,
                leat__buf_str(&out), cli_styled(c, CLI_PLAIN), leat__buf_str(&out) + first);
    }
    leat__buf_reset(&out);
    return rc;
}

/* ---- Measuring ---- */

/* Called when a loader starts or ends: the page shows its watch. */
static void change_watch(job *j, leat_doctor_watch *watch)
{
    leat_doctor_server_close(&j->server);
    j->watch = watch;
    j->view.lines = 0;
    if (watch == NULL) return;
    j->watches++;
    if (!cli_given(j->c, "serve")) return;
    j->serve_rc = leat_doctor_serve(&j->server, watch, (uint16_t)cli_int(j->c, "serve"), &j->serve_err);
    if (j->serve_rc == 0 && j->watches == 1)
        cli_say(j->c, "live page: http://127.0.0.1:%u/", leat_doctor_server_port(j->server));
}

static int on_progress(void *cookie, const char *what, double done, leat_doctor_watch *watch)
{
    job *j = cookie;
    leat__mutex_lock(&j->lock);
    bool stop = j->abandoned;
    if (!stop) {
        if (watch != j->watch) change_watch(j, watch);
        if (watch != NULL && j->watches == 1)
            j->frame_count = leat_doctor_watch_frames(watch, j->frames, FRAMES);
        if (watch != NULL && cli_flag(j->c, "live")) live_show(&j->view, j->c, watch);
        j->bar.label = what;
        cli_progress_at(&j->bar, (uint64_t)(done * 100), 0, 0);
        j->so_far = j->facts;
        stop = cli_interrupted(j->c) || j->serve_rc != 0;
    }
    leat__mutex_unlock(&j->lock);
    return stop;
}

static void measure(void *arg)
{
    job *j = arg;
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;

    o.step_ms = j->flags.step_s * 1e3;
    o.seconds = cli_float(j->c, "seconds");
    o.spin = cli_flag(j->c, "spin");
    o.progress = on_progress;
    o.cookie = j;
    int rc = leat_doctor_examine(cli_arg(j->c, 0), j->loader, &o, &j->facts, &j->err);
    leat__mutex_lock(&j->lock);
    j->rc = rc;
    j->so_far = j->facts;
    j->done = true;
    leat__cond_signal(&j->changed);
    leat__mutex_unlock(&j->lock);
}

/* Waits for the measurements. Reads in flight cannot be cancelled. If they take longer than the ceiling, or
 * than STOP_NS after Ctrl-C, the command continues without them. Call it with the lock held. */
static void wait_for_facts(job *j)
{
    double most = CEILING_TIMES * cli_float(j->c, "seconds") + CEILING_MORE;
    uint64_t until = leat__clock_ns() + (uint64_t)(most * 1e9);
    bool asked = false;

    while (!j->done && leat__clock_ns() < until) {
        if (!asked && cli_interrupted(j->c)) {
            asked = true;
            until = LEAT_MIN(until, leat__clock_ns() + STOP_NS);
        }
        leat__cond_wait_until(&j->changed, &j->lock, leat__clock_ns() + LEAT_NS_PER_S / 20);
    }
    j->abandoned = !j->done;
}

/* Fails because no batch came in time; names a server that has not sent a byte. */
static int too_late(const char *path, leat_error *err)
{
    leat__http_stats net;
    leat__url url;

    leat__http_read(&net);
    if (!leat__path_remote(path) || net.bytes_in > 0 || leat__url_parse(&url, path, NULL) != 0)
        return leat__fail(err, LEAT_ETIMEDOUT, "%s: no batch in time: try a longer --seconds", path);
    return leat__fail(err, LEAT_ETIMEDOUT, "%s: no answer from %.*s in time", path, (int)url.bucket_len,
                      url.bucket);
}

/* Returns the result of the measurements, or of those made in time. Call it with the lock held. */
static int result(job *j, leat_error *err)
{
    /* a run without a batch still shows where it waited; a run that was stopped early shows nothing */
    bool some = j->so_far.samples_per_s > 0 || (!cli_interrupted(j->c) && j->so_far.decode_ready >= 0);
    if (j->serve_rc != 0) *err = j->serve_err;
    else if (j->done) *err = j->err;
    if (j->done && (j->rc != LEAT_ECANCELED || j->serve_rc != 0 || !some)) return j->rc;
    if (some) j->stopped = cli_interrupted(j->c);
    if (some && !j->stopped) j->so_far.skipped = LEAT_MAX(j->so_far.skipped, 0.0) + 1;
    if (some) return 0;
    if (cli_interrupted(j->c)) return leat__fail(err, LEAT_ECANCELED, "stopped");
    return too_late(cli_arg(j->c, 0), err);
}

static int examine(job *j, const leat_loader_opts *loader, leat_doctor_diagnosis *d, leat_error *err)
{
    leat__mutex_init(&j->lock);
    leat__cond_init(&j->changed);
    leat_doctor_facts_init(&j->so_far);
    j->loader = loader;
    j->done = false;
    if (!cli_flag(j->c, "live")) cli_progress_begin(&j->bar, j->c, "the loader", "%", 100);
    LEAT_TRY(leat__thread_start(&j->thread, "leat-exam", measure, j, err));
    leat__mutex_lock(&j->lock);
    wait_for_facts(j);
    cli_progress_end(&j->bar);
    int rc = result(j, err);
    leat__mutex_unlock(&j->lock);
    if (!j->abandoned) {
        leat__thread_join(&j->thread);
        leat__mutex_destroy(&j->lock);
        leat__cond_destroy(&j->changed);
    }
    return rc != 0 ? rc : leat_doctor_judge(&j->so_far, d, sizeof *d, err);
}

static int read_stdin(char **text, size_t *len, leat_error *err)
{
    leat__buf in;
    char piece[16384];
    size_t got;

    leat__buf_init(&in, LEAT__MEM_MISC, RUN_MAX);
    while ((got = fread(piece, 1, sizeof piece, stdin)) > 0) leat__buf_append(&in, piece, got);
    *text = leat__buf_status(&in) == 0 ? leat__buf_take(&in, len) : NULL;
    leat__buf_reset(&in);
    return *text == NULL ? leat__fail(err, LEAT_ELIMIT, "stdin: more than %s", leat__as_size(RUN_MAX).text)
                         : 0;
}

/* Reads facts from a run file, or from one JSON object in any form. */
static int facts_of(const char *text, size_t len, leat_doctor_diagnosis *d, leat_error *err)
{
    leat_doctor_run *run = NULL;
    leat_doctor_facts facts, none;

    const bool record = len >= sizeof RUN_BEGIN && memcmp(text, RUN_BEGIN, sizeof RUN_BEGIN - 1) == 0;

    LEAT_TRY(leat_doctor_run_open(&run, NULL, err));
    int rc = leat_doctor_run_feed(run, text, len, record ? err : NULL);
    const leat_doctor_diagnosis *last = leat_doctor_run_diagnosis(run);
    if (last != NULL) *d = *last;
    leat_doctor_run_close(&run);
    if (rc == 0 && last != NULL) return 0;
    if (record && rc != 0) return rc;
    if (record) return leat__fail(err, LEAT_EDATA, "the run has no verdict yet: try again in a second");
    LEAT_TRY(leat_doctor_facts_parse(&facts, text, len, err));
    leat_doctor_facts_init(&none);
    if (memcmp(&facts, &none, sizeof facts) == 0)
        return leat__fail(err, LEAT_EDATA,
                          "describes no run: it has no facts (give the file of a run, or the "
                          "output of leat doctor --json)");
    return leat_doctor_judge(&facts, d, sizeof *d, err);
}

static int attach(job *j, const char *path, leat_error *err)
{
    char *text = NULL;
    size_t len = 0;

    if (strcmp(path, "-") == 0) LEAT_TRY(read_stdin(&text, &len, err));
    else LEAT_TRY(leat__file_load(path, RUN_MAX, 1, &text, &len, err));
    int rc = facts_of(text, len, &j->d, err);
    if (rc != 0) leat__error_context(err, "%s", path);
    leat__free(text);
    return rc;
}

/* ---- --apply and --verify ---- */

static int write_yaml(job *j, const char *path, leat_error *err)
{
    leat__buf out;
    int rc = text_of(&j->d, LEAT_DOCTOR_YAML, &out, err);
    if (rc == 0) rc = leat__file_store(path, leat__buf_str(&out), out.len, err);
    leat__buf_reset(&out);
    if (rc == 0) cli_say(j->c, "wrote %s", path);
    return rc;
}

static int verify(job *j, leat_error *err)
{
    cli *c = j->c;
    leat_doctor_diagnosis again;
    leat__buf out;
    leat__json w;

    if (j->d.apply[0] == '\0') {
        cli_say(c, "nothing to verify: no load flag would make this faster");
        return 0;
    }
    leat_loader_opts o = leat__doctor_apply(&j->flags.opts, j->d.apply);
    LEAT_TRY(examine(j, &o, &again, err));
    double real = j->d.rate > 0 ? again.rate / j->d.rate : 0;
    double error = real > 0 ? j->d.apply_gain / real - 1 : 0;
    if (!c->json) {
        cli_out(c,
                "\nVerified with %s\n  predicted %.2fx, real %.2fx (%.0f to %.0f samples/s): "
                "the prediction was off by %+.0f %%\n  now: %s\n",
                j->d.apply, j->d.apply_gain, real, j->d.rate, again.rate, 100 * error, again.sentence);
        return 0;
    }
    leat__buf_init(&out, LEAT__MEM_MISC, RUN_MAX);
    leat__json_init(&w, &out, 0);
    leat__json_object(&w);
    leat__json_kstr(&w, "verified", j->d.apply);
    leat__json_kdouble(&w, "predicted_gain", j->d.apply_gain);
    leat__json_kdouble(&w, "real_gain", real);
    leat__json_kdouble(&w, "error", error);
    leat__json_kdouble(&w, "samples_per_s_before", j->d.rate);
    leat__json_kdouble(&w, "samples_per_s_after", again.rate);
    leat__json_kstr(&w, "verdict", again.sentence);
    leat__json_end(&w);
    return cli_json(c, &out) == CLI_OK ? 0 : LEAT_EIO;
}

/* ---- The command ---- */

static int work(job *j, leat_error *err)
{
    static const live_output written[] = {
        {"apply", "# Written by `leat doctor`"}, {LIVE_REPORT}, {LIVE_TRACE}, {LIVE_QUARANTINE}};
    static const char *const others[] = {"attach", "keys", "config"};
    cli *c = j->c;
    const char *apply = cli_str(c, "apply"), *trace = cli_str(c, "trace");
    int rc;

    LEAT_TRY(live_check_outputs(c, written, LEAT_COUNT(written), others, LEAT_COUNT(others), err));
    if (trace != NULL) LEAT_TRY(leat__trace_start(0, err));
    rc = j->record != NULL ? attach(j, j->record, err) : examine(j, &j->flags.opts, &j->d, err);
    if (rc == LEAT_ECANCELED) cli_warn(c, "stopped: nothing was measured yet");
    if (rc == 0 && j->stopped) cli_warn(c, "stopped: this is what was measured until then");
    if (rc == 0) rc = show(j, err);
    if (rc == 0 && j->stopped) return leat__fail(err, LEAT_ECANCELED, "stopped");
    if (rc == 0 && apply != NULL) rc = write_yaml(j, apply, err);
    if (rc == 0 && j->abandoned)
        cli_warn(c, "some reads took longer than there was time: this is what was measured until then");
    else if (rc == 0 && cli_flag(c, "verify")) rc = verify(j, err);
    if (rc == 0 && cli_str(c, "report") != NULL)
        rc = live_report(c, cli_str(c, "report"), &j->d, j->frames, j->frame_count, "leat doctor: ", err);
    if (trace != NULL && rc == 0) rc = live_trace_write(c, trace, err);
    return rc;
}

static int run(cli *c)
{
    static job j; /* large */
    leat_error err = {0};
    char file[4096];
    j.c = c;
    int rc = 0;

    if (cli_arg_count(c) == 0 && cli_str(c, "attach") == NULL)
        return cli_usage(c, "give a PACK, the folder of a run, or a run with --attach");
    past_kind past = cli_arg_count(c) > 0 ? doctor_past_find(cli_arg(c, 0), file) : PAST_NONE;
    if (past == PAST_TEXT || past == PAST_CURATE) return doctor_past(c, past, file);
    bool pack = cli_arg_count(c) > 0 && past == PAST_NONE;
    j.record = past == PAST_RECORD ? file : cli_str(c, "attach");
    if (cli_given(c, "attach") && cli_arg_count(c) > 0)
        return cli_usage(c, "--attach diagnoses a recorded run, PACK is measured: give one of them");
    if (j.record != NULL && cli_flag(c, "verify"))
        return cli_usage(c, "--verify needs a pack: a recorded run cannot be run again");
    const char *unused = j.record != NULL ? doctor_past_given(c, true) : NULL;
    if (unused != NULL) return cli_usage(c, "--%s has no effect on a recorded run", unused);
    if (cli_typed(c, "epochs")) /* not when set by --config, whose file may be one of leat load */
        return cli_usage(c, "--epochs has no effect: leat doctor measures for --seconds");
    if (pack) rc = load_flags_read(&j.flags, c, &err);
    if (rc == 0 && pack) rc = load_flags_keys(&j.flags, c, &err);
    if (rc == 0) rc = work(&j, &err);
    int code = rc != 0 ? cli_fail(c, &err) : j.d.grade >= LEAT_GRADE_WARNING ? CLI_FINDING : CLI_OK;
    if (j.abandoned) _exit(cli_end(c, code)); /* the thread still uses the flags */
    if (pack) load_flags_reset(&j.flags);
    return code;
}

const cli_command cli_cmd_doctor = {
    .name = "doctor",
    .summary = "find the bottleneck of a training run and what to do about it",
    .examples =
        (const cli_example[]){
            {"leat doctor train.leat --step-ms 55", "a trainer that takes 55 ms a step"},
            {"leat doctor train.leat --step-ms 55 --batch 128 --dtype f16", "with the flags of leat load"},
            {"leat doctor train.leat --step-ms 55 --apply fast.yaml --verify",
             "write the flags that help, then test them"},
            {"leat doctor train.leat --step-ms 55 --report doctor.html", "a page with plots"},
            {"leat doctor --attach run.jsonl", "diagnose a run from the file it writes"},
            {"leat doctor kept", "what limited leat filter -o kept, or leat dedup, and what would help"},
            {"leat doctor run", "the same of leat curate -o run or leat train -o run"},
            {NULL, NULL}},
    .description =
        "Measures on the pack itself how fast reading (cold and from memory), decoding with "
        "augmentation (from memory, on one and on all CPUs) and delivery are alone. Then runs the "
        "loader with a trainer of the given step time. Names the one thing that limits the run, the "
        "share of each step that is lost, the evidence, and remedies by predicted gain, each with "
        "the next limit.\n\n"
        "Under 5 % of the step lost is fine, from 20 % on it is critical; fewer than 20 steps and an "
        "unknown limit are at most a warning. A missing signal makes the verdict INCOMPLETE. Exit "
        "code 1 means that something was found.\n\n"
        "It ends after 2 x --seconds + 5 s at the latest, whatever a sample costs (--verify runs it twice): "
        "measurements that do not fit are shortened or left out, and it says so. Ctrl-C and SIGTERM end it "
        "within a second with a verdict on what was measured until then.\n\n"
        "Only packs of images are examined: leat load shows the rate of others.",
    .args =
        (const cli_arg_spec[]){
            {.name = "PACK",
             .path = true,
             .optional = true,
             .help = "a pack or a set of shards; or the output of leat train, curate, filter, dedup or "
                     "decontaminate"},
            {.name = NULL}},
    .options = {{"What is delivered", cli_load_options},
                {"How", cli_load_machine},
                {"The examination", options}},
    .json =
        (const cli_key[]){
            {"verdict", "one sentence"},
            {"limit",
             "io, cpu, delivery, device, trainer, memory, python or none; of a run over text also reading, "
             "cpus or writing"},
            {"cause", "what exactly about it"},
            {"grade", "fine, warning, critical or unknown"},
            {"confidence", "0 to 1"},
            {"complete", "false when something in missing[] could change the verdict"},
            {"lost", "share of the step spent waiting for data, or in transform="},
            {"rates{}",
             "samples/s that io, cpu, delivery, device, loader and gpu (the trainer) could do; now"},
            {"shares{}", "of the step (wait, compute) and of the workers' time"},
            {"remedies[].action", "what to do, the largest gain first; guesses from guides last"},
            {"remedies[].gain", "predicted speed as a factor of now"},
            {"remedies[].next", "what limits next"},
            {"remedies[].basis", "measured, model or guide"},
            {"remedies[].set", "load flags that do it, or null"},
            {"apply{}", "the load flags together: set, gain, samples_per_s, basis of the gain"},
            {"evidence[]", "lines"},
            {"findings[]", "what else was found"},
            {"decisions[]", "what the controller changed while it ran: at_s, knob, from, to, reason"},
            {"decisions_made", "how many in all; decisions[] has the last 16"},
            {"missing[]", "signals that were missing"},
            {"facts{}", "every measurement; null = unknown"},
            {"predicted_gain", "with --verify, on a second line: predicted gain"},
            {"real_gain", "measured gain"},
            {NULL, NULL}},
    .config = true,
    .remote = true,
    .run = run,
};
