/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of leat_filter_text with a report, for the tests of its files.
 */
#ifndef LEAT_TESTS_REPORT_BOX_H
#define LEAT_TESTS_REPORT_BOX_H

#include "ingest/sandbox.h"

#include <leat/text.h>

#include "io/file.h"

static leat_filter_stats st;
static leat_error err;

static inline char *load_box(const char *name)
{
    char *data = NULL;
    size_t len;
    if (leat__file_load(in_box(name), 1u << 28, 1, &data, &len, &err) != 0) fail_msg("%s", err.message);
    return data;
}

/* Reads in.jsonl; no output folder. */
static inline int report_run(leat_filter_opts *o, const char *report)
{
    static char input[512], path[1024];
    const char *in[] = {input};
    snprintf(input, sizeof input, "%s", in_box("in.jsonl"));
    snprintf(path, sizeof path, "%s", in_box(report));
    o->inputs = in;
    o->input_count = 1;
    o->report = report[0] ? path : NULL;
    memset(&err, 0, sizeof err);
    return leat_filter_text(o, &st, &err);
}

#endif
