/* SPDX-License-Identifier: Apache-2.0
 *
 * leat top: shows the run of another process while it runs: follows the run file that a training loop or
 * `leat load` writes. On a terminal it draws in place and q quits; elsewhere it prints a line each second;
 * --json prints everything. Main thread only.
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <leat/doctor.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "live.h"

#define LOOK_MS 200
#define LINE_NS LEAT_NS_PER_S         /* between two plain lines */
#define SILENT_NS (5 * LEAT_NS_PER_S) /* a run that still writes is never silent for longer */
#define FRAMES 256u
#define TEXT 24
#define OUT_MAX ((size_t)4 << 20)
#define CTRL_C 3
#define CTRL_D 4

static const leat__param options[] = {
    CLI_FLAG("once", 0, "print the current values and exit"),
    CLI_SECONDS(
        "wait", 0, "1min", 0, 1e9,
        "how long to wait for a run file or for its next record; a terminal waits until q unless given"),
    CLI_END,
};

typedef struct job {
    cli *c;
    leat_doctor_run *run;
    bool draws, keys; /* stdout can be redrawn; stdin gives single keys */
    struct termios before;
    live_view view;
    leat_doctor_frame frames[FRAMES];
    size_t count;
    uint64_t news_ns, line_ns; /* time of the last news; earliest time of the next line */
    bool said_waiting;
} job;

/* ---- The terminal ---- */

static bool can_draw(const cli *c)
{
    const char *term = getenv("TERM");
    return !c->json && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

/* Sets the terminal to single keys without echo. Ctrl-C is a key like q, so that the view ends in order. */
static void terminal_begin(job *j)
{
    struct termios raw;
    if (!j->draws) return;
    fputs("\033[?25l", stdout); /* hides the cursor */
    fflush(stdout);
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &j->before) != 0) return;
    raw = j->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VINTR] = _POSIX_VDISABLE;
    j->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void terminal_end(job *j)
{
    if (!j->draws) return;
    if (j->keys) tcsetattr(STDIN_FILENO, TCSANOW, &j->before);
    fputs("\033[?25h", stdout);
    fflush(stdout);
}

/* Waits briefly; returns true when the user wants to leave. */
static bool leave(job *j)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;
    if (!j->keys) {
        leat__sleep_ns((uint64_t)LOOK_MS * LEAT_NS_PER_MS);
        return false;
    }
    if (poll(&in, 1, LOOK_MS) <= 0) return false;
    if (read(STDIN_FILENO, &key, 1) != 1) return true; /* the terminal is gone */
    return key == 'q' || key == 'Q' || key == CTRL_C || key == CTRL_D;
}

/* ---- Showing ---- */

static const char *state_of(const job *j, char *text, size_t size)
{
    uint64_t silent = leat__clock_ns() - j->news_ns;
    if (leat_doctor_run_ended(j->run)) return "ended";
    if (silent < SILENT_NS) return "running";
    snprintf(text, size, "no news for %.0f s: stopped, or killed?", (double)silent / 1e9);
    return text;
}

static void draw(job *j, const leat_doctor_diagnosis *d)
{
    char foot[160], state[64];
    snprintf(foot, sizeof foot, "%s  %s%s", cli_arg(j->c, 0), state_of(j, state, sizeof state),
             j->keys && !leat_doctor_run_ended(j->run) ? "  q quits" : "");
    live_draw(&j->view, j->c, STDOUT_FILENO, d, j->frames, j->count, foot);
}

static int append(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

static int print_json(job *j, const leat_doctor_diagnosis *d, leat_error *err)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, OUT_MAX);
    int rc = leat_doctor_write_now(d, j->count > 0 ? &j->frames[j->count - 1] : NULL, append, &out, err);
    if (rc == 0 && cli_json(j->c, &out) != CLI_OK) rc = LEAT_EIO;
    leat__buf_reset(&out);
    return rc;
}

/* Without a terminal to redraw: prints a line each second, and the whole view at the end. */
static void print_line(job *j, const leat_doctor_diagnosis *d)
{
    char at[TEXT], rate[TEXT], used[TEXT], limit[TEXT];
    const leat_doctor_frame *f = &j->frames[j->count - 1];
    if (j->count == 0) {
        cli_out(j->c, "%s\n", d->sentence);
        return;
    }
    cli_out(j->c, "%s  epoch %llu  %s samples/s  waiting %.0f %%  memory %s of %s  %s\n",
            leat__format_seconds(f->at_s, at, TEXT), (unsigned long long)f->epoch,
            leat__format_count(f->samples_per_s, rate, TEXT), 100 * f->lost,
            leat__format_bytes(f->budget_used, used, TEXT), leat__format_bytes(f->budget_limit, limit, TEXT),
            d->sentence);
}

static int print_view(job *j, const leat_doctor_diagnosis *d, leat_error *err)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, OUT_MAX);
    int rc = leat_doctor_top(d, j->frames, j->count, 80, !j->c->utf8, append, &out, err);
    if (rc == 0) cli_out_buf(j->c, &out);
    leat__buf_reset(&out);
    return rc;
}

static int show(job *j, bool last, leat_error *err)
{
    const leat_doctor_diagnosis *d = leat_doctor_run_diagnosis(j->run);
    if (d == NULL) return 0; /* no diagnosis yet: the run is in its first second */
    j->count = leat_doctor_run_frames(j->run, j->frames, FRAMES);
    if (j->draws) {
        draw(j, d);
        return 0;
    }
    if (!last && leat__clock_ns() < j->line_ns) return 0;
    j->line_ns = leat__clock_ns() + LINE_NS;
    if (j->c->json) return print_json(j, d, err);
    if (last) return print_view(j, d, err);
    print_line(j, d);
    fflush(stdout);
    return 0;
}

/* ---- Following ---- */

/* True when the command may wait for a run. A user at a terminal can quit; a script or a pipe would hang. */
static bool waits(const job *j)
{
    if (j->draws && !cli_given(j->c, "wait")) return true;
    return (double)(leat__clock_ns() - j->news_ns) < 1e9 * cli_float(j->c, "wait");
}

/* Reads the run file; waits for a run that has not begun. *news: whether there was something new. */
static int look(job *j, uint32_t *news, leat_error *err)
{
    int rc = leat_doctor_run_look(j->run, news, err);
    if (*news) j->news_ns = leat__clock_ns();
    if (rc != LEAT_ENOENT || cli_flag(j->c, "once")) return rc;
    if (!waits(j))
        return leat__fail(err, rc, "%s: no run file after %g s (--wait TIME waits longer)", cli_arg(j->c, 0),
                          cli_float(j->c, "wait"));
    if (!j->said_waiting) cli_say(j->c, "waiting for %s", cli_arg(j->c, 0));
    j->said_waiting = true;
    return 0;
}

static int follow(job *j, leat_error *err)
{
    uint32_t news = 0;

    for (;;) {
        LEAT_TRY(look(j, &news, err));
        if (leat_doctor_run_ended(j->run)) return show(j, true, err);
        if (news || j->draws) LEAT_TRY(show(j, false, err));
        if (!waits(j))
            return leat__fail(err, LEAT_EDATA,
                              "%s: no new record for %g s: the run was killed, or hangs (--wait TIME "
                              "waits longer)",
                              cli_arg(j->c, 0), cli_float(j->c, "wait"));
        if (leave(j)) return 0;
        if (cli_interrupted(j->c)) return leat__fail(err, LEAT_ECANCELED, "stopped");
    }
}

static int look_once(job *j, leat_error *err)
{
    uint32_t news;
    LEAT_TRY(look(j, &news, err));
    if (leat_doctor_run_diagnosis(j->run) == NULL)
        return leat__fail(err, LEAT_EDATA, "%s: no verdict yet: try again in a second", cli_arg(j->c, 0));
    return show(j, true, err);
}

/* Returns the file of a run: the path itself, or run.jsonl in the folder that leat train wrote. */
static const char *run_file(const char *path, char *inside, size_t size)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return path;
    snprintf(inside, size, "%s/run.jsonl", path);
    return inside;
}

static int run(cli *c)
{
    static job j; /* large */
    leat_error err = {0};
    j = (job){.c = c, .news_ns = leat__clock_ns()};

    char inside[PATH_MAX];
    int rc = leat_doctor_run_open(&j.run, run_file(cli_arg(c, 0), inside, sizeof inside), &err);
    if (rc == 0 && cli_flag(c, "once")) {
        rc = look_once(&j, &err);
    } else if (rc == 0) {
        j.draws = can_draw(c);
        terminal_begin(&j);
        rc = follow(&j, &err);
        terminal_end(&j);
    }
    leat_doctor_run_close(&j.run);
    return rc != 0 ? cli_fail(c, &err) : CLI_OK;
}

const cli_command cli_cmd_top = {
    .name = "top",
    .summary = "watch a running training job",
    .examples =
        (const cli_example[]){
            {"leat top run.jsonl", "a training loop whose loader was made with run=\"run.jsonl\""},
            {"leat top run.jsonl --once", "print the current values once"},
            {"leat top run.jsonl --json | jq .frame.samples_per_s", "for programs: a line each second"},
            {NULL, NULL}},
    .description =
        "Follows the run file that a loader writes while it works (Loader(run=FILE) in Python, "
        "--run-file of leat load). Shows how busy each stage is and how much waits for it, rates, "
        "memory and its budget, and the doctor's current verdict with the best remedy. It only "
        "reads the file: the run never waits for it, and either may start first.\n\n"
        "Ends when the run does; q or Ctrl-C leave it earlier. Where stdout is not a terminal it "
        "prints a line each second, and gives up with exit code 4 when there is no run file after --wait.",
    .args = (const cli_arg_spec[]){{.name = "RUN", .path = true, .help = "the run file"}, {.name = NULL}},
    .options = {{"Looking", options}},
    .json =
        (const cli_key[]){{"verdict", "one sentence, and all other keys of leat doctor --json"},
                          {"frame.at_s", "seconds since the first reading of the run"},
                          {"frame.samples_per_s", "samples in the last interval, per second"},
                          {"frame.lost", "share of it spent waiting for data"},
                          {"frame.budget_used", "bytes charged to the budget, of frame.budget_limit"},
                          {"frame.stages{}", "order, read, decode, collate: busy, ready, waiting, running"},
                          {NULL, NULL}},
    .run = run,
};
