/* SPDX-License-Identifier: Apache-2.0
 *
 * leat doctor DIR: the verdict on a run over text.
 */
#include "doctor_text.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli_parse.h"
#include "doctor/text_run.h"
#include "io/dir.h"
#include "io/file.h"

#define REPORT_MAX (64u << 20)

bool doctor_text_finds(const char *path, char *report)
{
    leat__entry_kind kind;
    bool there = false;
    if (leat__path_kind(path, &kind, NULL) != 0) return false;
    const char *const form = kind == LEAT__ENTRY_FOLDER ? "%s/report.json" : "%s";
    if (kind != LEAT__ENTRY_FOLDER && !leat__str_ends(path, "report.json")) return false;
    if (snprintf(report, 4096, form, path) >= 4096) return false;
    return leat__path_exists(report, &there, NULL) == 0 && there;
}

/* Options of a measurement have no effect on a report. */
static const char *given(const cli *c)
{
    static const char *const common[] = {"json", "quiet", "verbose", "color"};
    for (size_t i = 0; i < c->line->param_count; i++) {
        const char *name = c->line->params[i]->name;
        bool known = false;
        for (size_t k = 0; k < LEAT_COUNT(common); k++) known |= leat__str_eq(name, common[k]);
        if (!known && cli_given(c, name)) return name;
    }
    return NULL;
}

int doctor_text(cli *c, const char *report)
{
    leat_error err = {0};
    leat__text_verdict v;
    leat__buf out;
    char *text = NULL;
    size_t len;
    const char *option = given(c);
    if (option)
        return cli_usage(c, "--%s has no effect on %s: it is the report of a run that is over", option,
                         report);
    int rc = leat__file_load(report, REPORT_MAX, 1, &text, &len, &err);
    if (rc == 0) rc = leat__text_run_judge(&v, text, len, &err);
    leat__free(text);
    if (rc != 0) {
        leat__error_context(&err, "%s", report);
        return cli_fail(c, &err);
    }
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    if (c->json) leat__text_run_json(&v, &out);
    else leat__text_run_page(&v, &out);
    int code = CLI_OK;
    if (c->json) code = cli_json(c, &out);
    else cli_out(c, "%s", leat__buf_str(&out));
    leat__buf_reset(&out);
    return code != CLI_OK ? code : v.warning ? CLI_FINDING : CLI_OK;
}
