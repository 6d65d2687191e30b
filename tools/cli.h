/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of the command `leat`: what a subcommand declares, and what it gets to work with.
 *
 * A subcommand is one file, tools/NAME.c, with one table, `cli_cmd_NAME`, and one word in the
 * list of tools/meson.build. Parsing, range checks, `leat NAME --help`, the man page, the
 * completions of bash, zsh and fish and the hints after a typing error all come from the table.
 *
 *     #include "cli.h"
 *
 *     static const leat__param options[] = {
 *         CLI_PATH("output", 'o', NULL, "FILE", "write the pack here"),
 *         CLI_CHOICE("images", 0, "tiled", "keep|tiled|raw|mix", "how images are stored"),
 *         CLI_THREADS,
 *         CLI_FLAG("resume", 0, "continue a partial pack"),
 *         CLI_END,
 *     };
 *
 *     static int run(cli *c)
 *     {
 *         leat_error err = {0};
 *         cli_progress bar;
 *         cli_progress_begin(&bar, c, "packing", "images", total);
 *         // in the library's callback, from any thread, as often as needed:
 *         //     cli_progress_at(&bar, done, bytes, skipped);
 *         //     return cli_interrupted(c) ? LEAT_ECANCELED : 0;
 *         int rc = leat_pack(cli_arg(c, 0), cli_str(c, "output"), …, &err);
 *         cli_progress_end(&bar);
 *         if (rc != 0) return cli_fail(c, &err);
 *         if (c->json) return cli_json(c, &buf);           // one JSON value, one line, stdout
 *         cli_out(c, "%llu samples\n", …);                 // data: stdout
 *         cli_say(c, "wrote %s", cli_str(c, "output"));    // message: stderr, not with --quiet
 *         return CLI_OK;
 *     }
 *
 *     const cli_command cli_cmd_pack = {
 *         .name = "pack",
 *         .summary = "turn images into one fast, checksummed file",
 *         .examples = (const cli_example[]){
 *             {"leat pack photos -o photos.leat", "a folder per class"}, {NULL, NULL}},
 *         .description = "One paragraph.\n\nAnother one.",
 *         .args = (const cli_arg_spec[]){
 *             {.name = "SRC", .path = true, .help = "folder, tar or manifest"}, {.name = NULL}},
 *         .options = {{"Packing", options}},
 *         .required = "output",
 *         .json = (const cli_key[]){{"samples", "samples written"}, {NULL, NULL}},
 *         .run = run,
 *     };
 *
 * With `.remote = true` the frame adds --anonymous and --ca-file and applies them before `run`.
 *
 * The frame adds --help, --json (when `json` documents its keys), --quiet, --verbose and --color to
 * every subcommand. `run` is called on the main thread with a valid command line and returns an exit
 * code; it never calls exit, printf or perror.
 */
#ifndef LEAT_TOOLS_CLI_H
#define LEAT_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/error.h>
#include <leat/log.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/param.h"
#include "base/thread.h"

/* Exit codes, the same for every subcommand. */
enum {
    CLI_OK = 0,
    CLI_FINDING = 1,       /* success, and it found something to report (doctor) */
    CLI_USAGE = 2,         /* wrong usage: nothing was done */
    CLI_FIT = 3,           /* does not fit: memory budget, limit, machine */
    CLI_DATA = 4,          /* bad data, or data that could not be read or written */
    CLI_INTERRUPTED = 130, /* stopped by SIGINT (143: SIGTERM, 141: stdout was closed) */
};

/* ---- What a subcommand declares ---- */

#define CLI_OPTIONS_MAX 96 /* per subcommand, including the common ones */
#define CLI_GROUPS_MAX 5

/* One option. `lo_` > `hi_` means any number; a default of NULL means none. A flag `x` also accepts
 * --no-x. Help is one sentence, lower case, without a full stop. */
#define CLI_PARAM(name_, kind_, short_, def_, lo_, hi_, choices_, arity_, meta_, help_)                      \
    {                                                                                                        \
        .name = (name_), .kind = (kind_), .def = (def_), .min = (lo_), .max = (hi_), .choices = (choices_),  \
        .arity = (arity_), .metavar = (meta_), .help = (help_), .shortcut = (short_)                         \
    }
#define CLI_FLAG(name, letter, help) CLI_PARAM(name, LEAT__PARAM_FLAG, letter, "", 1, 0, NULL, 0, NULL, help)
#define CLI_INT(name, letter, def, lo, hi, meta, help)                                                       \
    CLI_PARAM(name, LEAT__PARAM_INT, letter, def, lo, hi, NULL, 0, meta, help)
#define CLI_FLOAT(name, letter, def, lo, hi, meta, help)                                                     \
    CLI_PARAM(name, LEAT__PARAM_FLOAT, letter, def, lo, hi, NULL, 0, meta, help)
#define CLI_BYTES(name, letter, def, lo, hi, help)                                                           \
    CLI_PARAM(name, LEAT__PARAM_BYTES, letter, def, lo, hi, NULL, 0, "BYTES", help)
#define CLI_BYTES10(name, letter, def, lo, hi, help)                                                         \
    CLI_PARAM(name, LEAT__PARAM_BYTES10, letter, def, lo, hi, NULL, 0, "BYTES", help)
#define CLI_SECONDS(name, letter, def, lo, hi, help)                                                         \
    CLI_PARAM(name, LEAT__PARAM_SECONDS, letter, def, lo, hi, NULL, 0, "TIME", help)
#define CLI_CHOICE(name, letter, def, choices, help)                                                         \
    CLI_PARAM(name, LEAT__PARAM_CHOICE, letter, def, 1, 0, choices, 0, NULL, help)
#define CLI_STRING(name, letter, def, meta, help)                                                            \
    CLI_PARAM(name, LEAT__PARAM_STRING, letter, def, 1, 0, NULL, 0, meta, help)
#define CLI_PATH(name, letter, def, meta, help)                                                              \
    CLI_PARAM(name, LEAT__PARAM_PATH, letter, def, 1, 0, NULL, 0, meta, help)
#define CLI_FLOATS(name, letter, def, lo, hi, arity, meta, help)                                             \
    CLI_PARAM(name, LEAT__PARAM_FLOATS, letter, def, lo, hi, NULL, arity, meta, help)
#define CLI_END                                                                                              \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

/* Options shared by many commands. */
#define CLI_REPLACE CLI_FLAG("force", 'f', "replace a pack of that name")
#define CLI_THREADS CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads, 0 = all usable CPUs")

/* Input and output of leat filter, dedup and decontaminate. */
#define CLI_TEXT_FILES                                                                                       \
    CLI_STRING("text-field", 0, "text", "NAME", "key of the text"),                                          \
        CLI_STRING("id-field", 0, "id", "NAME", "key of the id; documents without it are FILE:LINE"),        \
        CLI_CHOICE("on-error", 0, "skip", "skip|fail",                                                       \
                   "skip lines that cannot be read and list them in bad.jsonl, or stop"),                    \
        CLI_CHOICE("compress", 0, "none", "none|gzip|zstd", "compress the kept documents"),                  \
        CLI_BYTES("shard-bytes", 0, "1GiB", 1, 1e18, "split the output into files of about this size"),      \
        CLI_BYTES("max-document", 0, "128MiB", 1024, 2e9, "list longer lines as bad"),                       \
        CLI_FLAG("force", 'f', "replace the output of an earlier run")

/* A titled table of options. A table may be used by several commands: doctor takes load's. */
typedef struct cli_group {
    const char *title;         /* heading in the help: "Packing" */
    const leat__param *params; /* ends with CLI_END */
} cli_group;

/* A positional argument. */
typedef struct cli_arg_spec {
    const char *name; /* as in the synopsis: "SRC"; NULL ends the table */
    const char *help;
    const char *choices; /* "exact|fuzzy": other values are wrong usage */
    bool path;           /* completes as a file name */
    bool command;        /* completes as a subcommand of leat */
    bool optional;
    bool many; /* only for the last argument: one or more (with `optional`: any number) */
} cli_arg_spec;

typedef struct cli_example {
    const char *command; /* NULL ends the table */
    const char *text;    /* what it does, in lower case, no full stop; may be NULL */
} cli_example;

/* A key of the command's --json output. */
typedef struct cli_key {
    const char *name; /* "gpus[].name"; NULL ends the table */
    const char *help;
} cli_key;

typedef struct cli cli;

typedef struct cli_command {
    const char *name;
    const char *summary;         /* one line, lower case, no full stop */
    const cli_example *examples; /* shown first in the help: at least one */
    const char *description;     /* paragraphs with an empty line between */
    const cli_arg_spec *args;    /* NULL = none */
    cli_group options[CLI_GROUPS_MAX];
    const char *required; /* options that must be given: "output|profile", or NULL */
    const char *once;     /* rules that may be given only once: "set", or NULL */
    const cli_key *json;  /* NULL = no --json */
    bool config;          /* its table has --config FILE, which the frame reads */
    bool remote;          /* its paths may be in buckets: adds --anonymous and --ca-file */
    bool hidden;          /* works, but is not listed or completed (for tests) */
    int (*run)(cli *c);
} cli_command;

/* ---- What a subcommand gets ---- */

typedef enum cli_style {
    CLI_PLAIN, /* resets the style */
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_CYAN,
} cli_style;

typedef struct cli_progress cli_progress;
typedef struct cli_line cli_line; /* a parsed command line: cli_parse.h */

struct cli {
    const cli_command *command; /* NULL for `leat --version` and the like */
    const cli_line *line;
    bool json;
    bool quiet;
    bool verbose;
    bool color_out, color_err; /* whether stdout, stderr may have colour */
    bool tty_out, tty_err;     /* stdout, stderr are terminals that can redraw a line */
    bool utf8;                 /* the locale can show more than ASCII */
    leat_log log;              /* for option structs of the library; writes to stderr */
    /* Used only by the frame from here on. */
    const cli_command *const *commands; /* all commands, ends with NULL */
    const char *const *self;            /* words that start leat again, ends with NULL; NULL: this program */
    leat__mutex lock;                   /* guards stderr, `bar` and the view */
    cli_progress *bar;                  /* the bar on the screen, NULL when none */
    uint32_t view_lines;                /* lines of a live view on the screen: see live.h */
    int view_fd;                        /* file descriptor of that view */
    int out_errno;                      /* first failure to write stdout */
    void *watch;                        /* state of cli_on_interrupt */
};

/* Return values by option name; the default when the user gave none. An unknown name or a wrong kind
 * is a bug of the subcommand and aborts with its name. */
const leat__value *cli_value(const cli *c, const char *name);
bool cli_given(const cli *c, const char *name); /* true when the user gave it */
bool cli_typed(const cli *c, const char *name); /* true when on the command line, not in the --config file */
/* Returns CLI_USAGE when the user gave 0 for a number for which 0 means the library's default. */
int cli_refuse_zero(cli *c, const char *name);
bool cli_flag(const cli *c, const char *name);
int64_t cli_int(const cli *c, const char *name);
double cli_float(const cli *c, const char *name); /* also for seconds */
uint64_t cli_bytes(const cli *c, const char *name);
int cli_choice(const cli *c, const char *name); /* index into the choices */
/* Returns text, path or choice as written; NULL when there is none. */
const char *cli_str(const cli *c, const char *name);

size_t cli_arg_count(const cli *c);
const char *cli_arg(const cli *c, size_t i); /* NULL past the last */

/* ---- Output. Only the main thread writes stdout; stderr is for any thread. ---- */

void cli_out(cli *c, const char *fmt, ...) LEAT_PRINTF(2, 3);
void cli_out_buf(cli *c, const leat__buf *buf);

/* Prints a finished JSON value, a newline and a flush, and frees the buffer's memory. Returns CLI_OK, or
 * fails when the buffer ran out of memory. */
int cli_json(cli *c, leat__buf *json);

/* One JSON object, printed when it ends:
 *     cli_object page;
 *     leat__json *j = cli_object_begin(&page);
 *     leat__json_ku64(j, "samples", n);
 *     return cli_object_end(c, &page); */
typedef struct cli_object {
    leat__buf text;
    leat__json json;
} cli_object;
leat__json *cli_object_begin(cli_object *o);
int cli_object_end(cli *c, cli_object *o);

/* Print lines of a readable page: a bold heading; a dim name, then the value. */
void cli_heading(cli *c, const char *title);
void cli_row(cli *c, const char *name, const char *fmt, ...) LEAT_PRINTF(3, 4);

/* See leat__plural. */
const char *cli_s(uint64_t count);

/* Returns the escape sequence of a style, "" when stdout has no colour. */
const char *cli_styled(const cli *c, cli_style style);

/* Print one line on stderr. cli_say prints without prefix, and not with --quiet. cli_tell always prints: for
 * results, when stdout is used for other data, and for the remedy of an error. cli_warn always prints "leat
 * CMD: warning: …". All add the newline and do not disturb a progress bar. */
void cli_say(cli *c, const char *fmt, ...) LEAT_PRINTF(2, 3);
void cli_tell(cli *c, const char *fmt, ...) LEAT_PRINTF(2, 3);
void cli_warn(cli *c, const char *fmt, ...) LEAT_PRINTF(2, 3);
/* Reports how many lines of a text run were bad; they are listed in `output` (may be NULL). Returns
 * the exit code: CLI_DATA when no line was a document. */
int cli_bad_lines(cli *c, uint64_t bad, uint64_t documents, const char *output);

/* ---- Failing: the only way. Each prints "leat CMD: message" and returns the exit code, so that
 * `return cli_fail(c, &err);` ends a command. ---- */

/* Prints an error. For LEAT_ECANCELED after a signal it prints nothing, because the user sent the signal.
 * With sys_errno EINTR (a request that waited for a server) it prints the message. */
int cli_fail(cli *c, const leat_error *err);
/* Does the same for a command with --force: mentions that option when the output already exists. */
int cli_fail_output(cli *c, const leat_error *err);
/* Does the same for a command whose output appears when it is complete. After a signal, prints that nothing
 * was written, or which files are kept for resuming. output: NULL when nothing is kept. */
int cli_fail_result(cli *c, const char *output, const leat_error *err);
/* True for LEAT_ECANCELED after a signal that the user sent. */
bool cli_is_stop(const cli *c, const leat_error *err);
int cli_failf(cli *c, int exit_code, const char *fmt, ...) LEAT_PRINTF(3, 4);

/* Reports wrong usage that the table cannot detect: "--rank must be below --world". */
int cli_usage(cli *c, const char *fmt, ...) LEAT_PRINTF(2, 3);

int cli_exit_of(int code); /* returns the exit code for a leat_code */

/* ---- Stopping ---- */

/* True after the first SIGINT or SIGTERM, or when stdout was closed: finish the current piece, clean
 * up, return. The frame then exits with 130, 143 or 141 whatever `run` returned. A second signal ends
 * the process at once. Any thread may call it. */
bool cli_interrupted(const cli *c);

/* Calls `stop` once, on a separate thread (so it may lock), at the first signal: for commands that
 * sleep inside the library. NULL removes it; after that call `stop` is not running and will not run. */
int cli_on_interrupt(cli *c, void (*stop)(void *cookie), void *cookie, leat_error *err);

/* Also sends the first signal to this process: a child that the command started in a separate group
 * and waits for. 0: none. */
void cli_child(int process);

/* ---- Progress: drawn on stderr if that is a terminal, without --quiet and --json, at most ten times
 * a second; otherwise every call is nearly free. Any thread may report. ---- */

struct cli_progress {
    cli *c;
    const char *label;
    const char *unit;
    bool shown;
    uint64_t total;
    _Atomic uint64_t next_ns;                /* earliest time of the next drawing */
    uint64_t done, bytes, skipped;           /* guarded by the lock of `c`, like everything below */
    uint64_t rate_ns, rate_done, rate_bytes; /* values when the rates were last computed */
    double per_s, bytes_per_s;               /* moving averages */
};

/* Starts a bar. `total` is in units, 0 when unknown. Strings must outlive the bar. One bar at a time. */
void cli_progress_begin(cli_progress *p, cli *c, const char *label, const char *unit, uint64_t total);
void cli_progress_total(cli_progress *p, uint64_t total);
void cli_progress_at(cli_progress *p, uint64_t done, uint64_t bytes, uint64_t skipped);
/* Callbacks for leat/ingest.h, leat/images.h and leat/text.h, with the bar as cookie. `total` 0: not
 * known yet. For texts, `done` is in bytes. Return non-zero when the user interrupted. */
int cli_progress_on(void *bar, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped);
int cli_progress_on_text(void *bar, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped);
/* Sets the fields that all option structs of runs over a pack share. They come from the options of
 * the same names and the progress bar. */
#define CLI_FILL_RUN(o, c, bar)                                                                              \
    do {                                                                                                     \
        (o)->output = cli_str(c, "output");                                                                  \
        (o)->replace = cli_flag(c, "force");                                                                 \
        (o)->threads = (uint32_t)cli_int(c, "threads");                                                      \
        (o)->memory = cli_bytes(c, "memory");                                                                \
        (o)->log = (c)->log;                                                                                 \
        (o)->progress = cli_progress_on;                                                                     \
        (o)->cookie = (bar);                                                                                 \
    } while (0)
/* Does the same for commands with CLI_TEXT_FILES. */
#define CLI_FILL_TEXT_FILES(o, c, bar)                                                                       \
    do {                                                                                                     \
        CLI_FILL_RUN(o, c, bar);                                                                             \
        (o)->progress = cli_progress_on_text;                                                                \
        (o)->text_field = cli_str(c, "text-field");                                                          \
        (o)->id_field = cli_str(c, "id-field");                                                              \
        (o)->fail_on_bad = cli_choice(c, "on-error") == 1;                                                   \
        (o)->compress = (uint32_t)cli_choice(c, "compress");                                                 \
        (o)->shard_bytes = cli_bytes(c, "shard-bytes");                                                      \
        (o)->max_document = cli_bytes(c, "max-document");                                                    \
    } while (0)

/* Removes the line from the screen. Call it after the last report of any thread. */
void cli_progress_end(cli_progress *p);

#endif
