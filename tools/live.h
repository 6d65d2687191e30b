/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes a loader while a command runs it: a view in the terminal, a page on the loopback interface, a
 * trace, the facts of the run as a file, and the doctor's verdict at the end. One table of flags for every
 * command that runs a loader.
 */
#ifndef LEAT_TOOLS_LIVE_H
#define LEAT_TOOLS_LIVE_H

#include <leat/doctor.h>
#include <leat/loader.h>

#include "cli.h"

extern const leat__param cli_live_options[];

typedef struct live live;

/* A file that an option names, and the first bytes of every such file: other files are never replaced. */
typedef struct live_output {
    const char *option, *head;
} live_output;
#define LIVE_REPORT "report", "<!doctype html>\n<!-- report of leat -->"
#define LIVE_TRACE "trace", "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_events\""
#define LIVE_QUARANTINE "quarantine", "{\"pack\":"
/* Checks, before anything runs, that these files can be written and are neither packs nor foreign files. Each
 * must differ from the other outputs and from the files `others`, which the command reads. */
int live_check_outputs(cli *c, const live_output *written, size_t count, const char *const *others,
                       size_t other_count, leat_error *err);
/* Starts observing; *l is NULL when no flag requests anything. Open it after the loader, close it before. */
int live_open(live **l, cli *c, leat_loader *loader, leat_error *err);
bool live_draws(const live *l); /* true when the view uses the terminal: draw no progress bar */
void live_tick(live *l);        /* main thread, any number of times */
/* Stops observing and writes the requested files. */
int live_close(live **l, leat_error *err);

/* Draws a watch in the terminal, at most five times a second, and again at once after a line of text has
 * removed the view. Start with a zeroed state. Does nothing unless stderr is a terminal. */
typedef struct live_view {
    uint64_t next_ns;
    uint32_t lines; /* lines drawn; 0 = the next drawing goes below the current text */
} live_view;
/* Draws over the previous drawing on a terminal; `foot` is a last line, or NULL. */
void live_draw(live_view *v, cli *c, int fd, const leat_doctor_diagnosis *d, const leat_doctor_frame *frames,
               size_t count, const char *foot);
void live_show(live_view *v, cli *c, leat_doctor_watch *watch);

/* Writes a report to a file. */
int live_report(cli *c, const char *path, const leat_doctor_diagnosis *d, const leat_doctor_frame *frames,
                size_t count, const char *title, leat_error *err);
int live_trace_write(cli *c, const char *path, leat_error *err);

#endif
