/* SPDX-License-Identifier: Apache-2.0
 *
 * leat doctor DIR: the verdict on a finished run, from the file that it wrote.
 */
#include "doctor_past.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli_parse.h"
#include "doctor/curate_run.h"
#include "doctor/text_run.h"
#include "io/dir.h"
#include "io/file.h"

#define REPORT_MAX (64u << 20)

/* Files by which a run is recognised. The report of leat train is its loader's run file. */
static const struct {
    const char *name;
    past_kind kind;
} files[] = {{"run.jsonl", PAST_RECORD}, {"run.json", PAST_CURATE}, {"report.json", PAST_TEXT}};

past_kind doctor_past_find(const char *path, char *file)
{
    leat__entry_kind kind;
    if (leat__path_kind(path, &kind, NULL) != 0) return PAST_NONE;
    bool folder = kind == LEAT__ENTRY_FOLDER;
    for (size_t i = 0; i < LEAT_COUNT(files); i++) {
        bool there = false;
        if (!folder && !leat__str_ends(path, files[i].name)) continue;
        if (snprintf(file, 4096, folder ? "%s/%s" : "%s", path, files[i].name) >= 4096) continue;
        if (leat__path_exists(file, &there, NULL) == 0 && there) return files[i].kind;
    }
    return PAST_NONE;
}

const char *doctor_past_given(const cli *c, bool record)
{
    static const char *const used[] = {"json", "quiet", "verbose", "color", "attach", "apply", "report"};
    const size_t count = record ? LEAT_COUNT(used) : 4;
    for (size_t i = 0; i < c->line->param_count; i++) {
        const char *name = c->line->params[i]->name;
        bool known = false;
        for (size_t k = 0; k < count; k++) known |= leat__str_eq(name, used[k]);
        if (!known && cli_given(c, name)) return name;
    }
    return NULL;
}

static int judge_text(cli *c, const char *text, size_t len, leat__buf *out, bool *warning, leat_error *err)
{
    leat__text_verdict v;
    LEAT_TRY(leat__text_run_judge(&v, text, len, err));
    if (c->json) leat__text_run_json(&v, out);
    else leat__text_run_page(&v, out);
    *warning = v.warning;
    return 0;
}

static int judge_curate(cli *c, const char *text, size_t len, leat__buf *out, bool *warning, leat_error *err)
{
    leat__curate_verdict v;
    LEAT_TRY(leat__curate_run_judge(&v, text, len, err));
    if (c->json) leat__curate_run_json(&v, out);
    else leat__curate_run_page(&v, out);
    *warning = v.warning;
    leat__curate_run_reset(&v);
    return 0;
}

int doctor_past(cli *c, past_kind kind, const char *file)
{
    leat_error err = {0};
    leat__buf out;
    char *text = NULL;
    size_t len;
    bool warning = false;
    const char *option = doctor_past_given(c, false);
    if (option)
        return cli_usage(c, "--%s has no effect on %s: it is the report of a finished run", option, file);
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    int rc = leat__file_load(file, REPORT_MAX, 1, &text, &len, &err);
    if (rc == 0 && kind == PAST_CURATE) rc = judge_curate(c, text, len, &out, &warning, &err);
    else if (rc == 0) rc = judge_text(c, text, len, &out, &warning, &err);
    leat__free(text);
    int code = CLI_OK;
    if (rc != 0) {
        leat__error_context(&err, "%s", file);
        code = cli_fail(c, &err);
    } else if (c->json) {
        code = cli_json(c, &out);
    } else {
        cli_out(c, "%s", leat__buf_str(&out));
    }
    leat__buf_reset(&out);
    return code != CLI_OK ? code : warning ? CLI_FINDING : CLI_OK;
}
