/* SPDX-License-Identifier: Apache-2.0
 *
 * Output and failures of a command. Data goes to stdout through stdio, from the main thread only. Messages
 * go to stderr as whole lines, from any thread, under the lock of the context, so that they do not disturb
 * the progress bar.
 */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"
#include "cli_frame.h"
#include "cli_parse.h"

#define LINE_MAX_ 2048
#define ROW_COLUMN 22

static bool env_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0];
}

static void log_line(void *cookie, leat_log_level level, const char *line)
{
    cli *c = cookie;
    if (level <= LEAT_LOG_WARN) cli_warn(c, "%s", line);
    else cli_say(c, "%s", line);
}

void cli_begin(cli *c, const cli_command *const *commands)
{
    memset(c, 0, sizeof *c);
    c->commands = commands;
    leat__mutex_init(&c->lock);
    setlocale(LC_CTYPE, ""); /* only LC_CTYPE: numbers keep the C locale */
    c->utf8 = leat__str_eq(nl_langinfo(CODESET), "UTF-8");
    c->log = (leat_log){.write = log_line, .cookie = c, .level = LEAT_LOG_WARN};
    cli_adapt(c, NULL);
}

void cli_adapt(cli *c, const cli_line *line)
{
    const bool dumb = leat__str_eq(getenv("TERM"), "dumb");
    int color = 0; /* 0 auto, 1 always, 2 never */
    if (line) {
        c->line = line;
        c->command = line->command;
        c->json = line->command->json && cli_flag(c, "json");
        c->quiet = cli_flag(c, "quiet");
        c->verbose = cli_flag(c, "verbose") && !c->quiet;
        color = cli_choice(c, "color");
    }
    c->tty_out = isatty(STDOUT_FILENO) && !dumb;
    c->tty_err = isatty(STDERR_FILENO) && !dumb;
    const bool allowed = color == 1 || (color == 0 && !env_set("NO_COLOR") && !dumb);
    c->color_out = allowed && (color == 1 || isatty(STDOUT_FILENO));
    c->color_err = allowed && (color == 1 || isatty(STDERR_FILENO));
    c->log.level = c->verbose ? LEAT_LOG_DEBUG : LEAT_LOG_WARN; /* --quiet keeps warnings */
}

int cli_columns(int fd)
{
    struct winsize size;
    int64_t columns = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *text = getenv("COLUMNS");
    if (text && leat__str_to_i64(text, &columns) && columns > 0 && columns < 10000) return (int)columns;
    return 80;
}

/* ---- stdout ---- */

static void out_failed(cli *c)
{
    if (c->out_errno) return;
    c->out_errno = errno ? errno : EIO;
    /* The reader closed stdout: stop silently, as after a signal. */
    if (c->out_errno == EPIPE) cli_stop(SIGPIPE);
}

/* Removes a live view from the terminal: the text is printed in its place, and the next drawing goes
 * below. */
static void make_room(cli *c)
{
    if (!c->tty_out) return;
    leat__mutex_lock(&c->lock);
    cli_view_hide_locked(c);
    leat__mutex_unlock(&c->lock);
}

void cli_out(cli *c, const char *fmt, ...)
{
    va_list ap;
    make_room(c);
    va_start(ap, fmt);
    errno = 0;
    if (!c->out_errno && vfprintf(stdout, fmt, ap) < 0) out_failed(c);
    va_end(ap);
}

void cli_out_buf(cli *c, const leat__buf *buf)
{
    if (c->out_errno || buf->len == 0) return;
    make_room(c);
    errno = 0;
    if (fwrite(buf->data, 1, buf->len, stdout) != buf->len) out_failed(c);
}

int cli_json(cli *c, leat__buf *json)
{
    const int status = leat__buf_status(json);
    if (status == 0) {
        cli_out_buf(c, json);
        cli_out(c, "\n");
    }
    leat__buf_reset(json);
    if (status != 0) return cli_failf(c, CLI_FIT, "out of memory while writing JSON");
    errno = 0;
    if (!c->out_errno && fflush(stdout) != 0) out_failed(c);
    return CLI_OK;
}

leat__json *cli_object_begin(cli_object *o)
{
    leat__buf_init(&o->text, LEAT__MEM_MISC, (size_t)1 << 30);
    leat__json_init(&o->json, &o->text, 0);
    leat__json_object(&o->json);
    return &o->json;
}

int cli_object_end(cli *c, cli_object *o)
{
    leat__json_end(&o->json);
    return cli_json(c, &o->text);
}

int cli_end(cli *c, int exit_code)
{
    errno = 0;
    if (!c->out_errno && (fflush(stdout) != 0 || ferror(stdout))) out_failed(c);
    const int stopped = cli_stopped();
    if (stopped) exit_code = 128 + stopped;
    if (c->out_errno && c->out_errno != EPIPE)
        exit_code = cli_failf(c, CLI_DATA, "cannot write the output: %s", strerror(c->out_errno));
    leat__mutex_destroy(&c->lock);
    return exit_code;
}

const char *cli_styled(const cli *c, cli_style style)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",   [CLI_RED] = "\033[31m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_CYAN] = "\033[36m",
    };
    return c->color_out ? codes[style] : "";
}

void cli_heading(cli *c, const char *title)
{
    cli_out(c, "%s%s%s\n", cli_styled(c, CLI_BOLD), title, cli_styled(c, CLI_PLAIN));
}

/* Prints words after the name of a row: wrapped on a terminal, on one line for other programs. */
static void put_words(cli *c, const char *text)
{
    const int begin = 2 + ROW_COLUMN, width = c->tty_out ? cli_columns(STDOUT_FILENO) : INT_MAX;
    int at = begin;
    for (const char *word = text; *word;) {
        const int len = (int)strcspn(word, " ");
        if (at > begin && at + 1 + len > width) {
            cli_out(c, "\n%*s", begin, "");
            at = begin;
        }
        cli_out(c, " %.*s", len, word);
        at += 1 + len;
        word += len + (word[len] == ' ');
    }
    cli_out(c, "\n");
}

void cli_row(cli *c, const char *name, const char *fmt, ...)
{
    char value[LINE_MAX_];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    cli_out(c, "  %s%-*s%s", cli_styled(c, CLI_CYAN), ROW_COLUMN, name, cli_styled(c, CLI_PLAIN));
    put_words(c, value);
}

const char *cli_s(uint64_t count)
{
    return leat__plural(count);
}

void cli_view_hide_locked(cli *c)
{
    char up[32];
    if (c->view_lines == 0) return;
    int len = snprintf(up, sizeof up, "\033[%uA\033[J", c->view_lines);
    ssize_t written = write(c->view_fd, up, (size_t)len);
    (void)written; /* an error of the view does not stop the run */
    c->view_lines = 0;
}

/* ---- stderr ---- */

/* Prints one line, assembled first so that it reaches the terminal in one piece. File names and
 * samples may contain anything: control characters are shown as '?'. */
static void err_line(cli *c, const char *style, const char *tag, const char *message)
{
    char line[LINE_MAX_];
    const char *name = c->command ? c->command->name : NULL;
    size_t from = 0;
    line[0] = '\0';
    if (tag) {
        snprintf(line, sizeof line, "%sleat%s%s:%s %s", c->color_err ? style : "", name ? " " : "",
                 name ? name : "", c->color_err ? "\033[0m" : "", tag);
        from = strlen(line);
    }
    snprintf(line + from, sizeof line - from, "%s", message);
    leat__str_hide_secrets(line + from, sizeof line - from);
    for (char *s = line + from; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
    leat__mutex_lock(&c->lock);
    cli_progress_hide_locked(c);
    cli_view_hide_locked(c);
    fprintf(stderr, "%s\n", line);
    cli_progress_show_locked(c);
    leat__mutex_unlock(&c->lock);
}

#define FORMAT(buffer, fmt)                                                                                  \
    do {                                                                                                     \
        va_list ap_;                                                                                         \
        va_start(ap_, fmt);                                                                                  \
        vsnprintf(buffer, sizeof buffer, fmt, ap_);                                                          \
        va_end(ap_);                                                                                         \
    } while (0)

void cli_say(cli *c, const char *fmt, ...)
{
    char message[LINE_MAX_];
    if (c->quiet) return;
    FORMAT(message, fmt);
    err_line(c, "", NULL, message);
}

void cli_tell(cli *c, const char *fmt, ...)
{
    char message[LINE_MAX_];
    FORMAT(message, fmt);
    err_line(c, "", NULL, message);
}

void cli_warn(cli *c, const char *fmt, ...)
{
    char message[LINE_MAX_];
    FORMAT(message, fmt);
    err_line(c, "\033[33m", "warning: ", message);
}

int cli_failf(cli *c, int exit_code, const char *fmt, ...)
{
    char message[LINE_MAX_];
    FORMAT(message, fmt);
    err_line(c, "\033[31m", "", message);
    return exit_code;
}

int cli_bad_lines(cli *c, uint64_t bad, uint64_t documents, const char *output)
{
    const char *see = output ? ": see " : "", *folder = output ? output : "",
               *list = output ? "/bad.jsonl" : "";
    if (bad == 0) return CLI_OK;
    if (documents == 0)
        return cli_failf(c, CLI_DATA, "no line has a text that could be read (%llu line%s)%s%s%s",
                         (unsigned long long)bad, cli_s(bad), see, folder, list);
    cli_warn(c, "%llu line%s could not be read%s%s%s", (unsigned long long)bad, cli_s(bad), see, folder,
             list);
    return CLI_OK;
}

int cli_usage(cli *c, const char *fmt, ...)
{
    char message[LINE_MAX_];
    FORMAT(message, fmt);
    return cli_failf(c, CLI_USAGE, "%s (see leat %s%s--help)", message, c->command ? c->command->name : "",
                     c->command ? " " : "");
}

int cli_exit_of(int code)
{
    switch (code) {
    case LEAT_OK: return CLI_OK;
    case LEAT_EINVAL:
    case LEAT_EEXIST:
    case LEAT_ENOFIELD:
    case LEAT_ENOCLASS:
    case LEAT_ENOTSUP: return CLI_USAGE;
    case LEAT_ENOMEM:
    case LEAT_ELIMIT:
    case LEAT_EBUDGET:
    case LEAT_ETHREAD: return CLI_FIT;
    case LEAT_ECANCELED: return CLI_INTERRUPTED;
    default: return CLI_DATA;
    }
}

int cli_fail(cli *c, const leat_error *err)
{
    const bool stopped = err->code == LEAT_ECANCELED && cli_interrupted(c);
    if (stopped && (err->sys_errno != EINTR || cli_stopped() == SIGPIPE)) return CLI_INTERRUPTED;
    return cli_failf(c, cli_exit_of(err->code), "%s",
                     err->message[0] ? err->message : leat_code_text(err->code));
}

int cli_fail_output(cli *c, const leat_error *err)
{
    const int exit_code = cli_fail(c, err);
    if (err->code == LEAT_EEXIST) cli_tell(c, "--force replaces what is there");
    return exit_code;
}

/* Finds what an interrupted run has left of OUTPUT to resume from. Returns its suffix, or NULL. */
static const char *kept_of(const char *output)
{
    static const char *const suffixes[] = {".scores", ".state", ".columns-0", ".columns-0.scores"};
    const char *found = NULL;
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_MISC, 1u << 20);
    for (size_t i = 0; output && !found && i < LEAT_COUNT(suffixes); i++) {
        bool there = false;
        leat__buf_clear(&path);
        leat__buf_printf(&path, "%s%s", output, suffixes[i]);
        if (leat__buf_status(&path) != 0 || leat__path_exists(leat__buf_str(&path), &there, NULL) != 0)
            continue;
        if (there) found = suffixes[i];
    }
    leat__buf_reset(&path);
    return found;
}

bool cli_is_stop(const cli *c, const leat_error *err)
{
    return err->code == LEAT_ECANCELED && cli_interrupted(c) && cli_stopped() != SIGPIPE;
}

int cli_fail_result(cli *c, const char *output, const leat_error *err)
{
    const int exit_code = cli_fail_output(c, err);
    if (!cli_is_stop(c, err)) return exit_code;
    const char *kept = kept_of(output);
    if (!kept) cli_tell(c, "interrupted: nothing was written");
    else
        cli_tell(c, "interrupted: %s was not written; the same command continues from %s%s", output, output,
                 kept);
    return exit_code;
}
