/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the run file of leat curate. The file contains what limited each step, as measured by the step
 * itself.
 */
#include "doctor/curate_run.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"

#define TOO_SHORT_S 0.5

static double number(const json_t *step, const char *key)
{
    return json_number_value(json_object_get(step, key));
}

static const char *text(const json_t *step, const char *key)
{
    const char *found = json_string_value(json_object_get(step, key));
    return found ? found : "";
}

/* True for a step that the config turns off: it is not part of the run. */
static bool off(const json_t *step)
{
    return leat__str_eq(text(step, "state"), "off");
}

static bool done(const json_t *step)
{
    return leat__str_eq(text(step, "state"), "done");
}

/* True when something other than its own work limits a step. A step that uses all CPUs or the GPU is
 * doing its own work. */
static bool held_up(const json_t *step)
{
    static const char *const work[] = {"CPU", "GPU", "none", ""};
    for (size_t i = 0; i < LEAT_COUNT(work); i++)
        if (leat__str_eq(text(step, "limit"), work[i])) return false;
    return true;
}

int leat__curate_run_judge(leat__curate_verdict *v, const char *json, size_t len, leat_error *err)
{
    json_t *root = json_loadb(json, len, 0, NULL), *step;
    double most = 0;
    const char *name;
    *v = (leat__curate_verdict){.steps = json_incref(json_object_get(root, "steps"))};
    json_decref(root);
    if (!json_is_object(v->steps)) {
        leat__curate_run_reset(v);
        return leat__fail(err, LEAT_EFORMAT, "not the run file of leat curate");
    }
    json_object_foreach(v->steps, name, step)
    {
        if (!done(step)) continue;
        double seconds = number(step, "seconds");
        v->seconds += seconds;
        if (v->longest != NULL && seconds <= most) continue;
        most = seconds;
        v->longest = name;
    }
    step = v->longest ? json_object_get(v->steps, v->longest) : NULL;
    v->warning = step != NULL && most >= TOO_SHORT_S && held_up(step);
    return 0;
}

void leat__curate_run_reset(leat__curate_verdict *v)
{
    json_decref(v->steps);
    *v = (leat__curate_verdict){0};
}

static void sentence(const leat__curate_verdict *v, char *out, size_t size)
{
    const json_t *step = v->longest ? json_object_get(v->steps, v->longest) : NULL;
    if (step == NULL) snprintf(out, size, "No step of this run is done.");
    else if (v->seconds < TOO_SHORT_S)
        snprintf(out, size, "The steps took %.2f s: too short to say what limited them.", v->seconds);
    else
        snprintf(out, size, "%s took %.0f %% of %.1f s; its limit: %s (%s).", v->longest,
                 100 * number(step, "seconds") / v->seconds, v->seconds, text(step, "limit"),
                 text(step, "why"));
}

void leat__curate_run_page(const leat__curate_verdict *v, leat__buf *out)
{
    char line[512];
    const char *name;
    json_t *step;
    sentence(v, line, sizeof line);
    leat__buf_printf(out, "%s\n", line);
    json_object_foreach(v->steps, name, step)
    {
        const char *advice = text(step, "advice");
        if (off(step)) continue;
        if (!done(step)) {
            leat__buf_printf(out, "  %-8s not done\n", name);
            continue;
        }
        leat__buf_printf(out, "  %-8s %8.1f s  %-*s%s%s\n", name, number(step, "seconds"), advice[0] ? 20 : 0,
                         text(step, "limit"), advice[0] ? "  " : "", advice);
    }
}

static void step_json(leat__json *j, const char *name, const json_t *step)
{
    leat__json_object(j);
    leat__json_kstr(j, "step", name);
    leat__json_kbool(j, "done", done(step));
    leat__json_kdouble(j, "seconds", number(step, "seconds"));
    leat__json_kdouble(j, "cpu_seconds", number(step, "cpu_seconds"));
    leat__json_kstr(j, "limit", text(step, "limit"));
    leat__json_kstr(j, "why", text(step, "why"));
    leat__json_kstr(j, "action", text(step, "advice"));
    leat__json_end(j);
}

void leat__curate_run_json(const leat__curate_verdict *v, leat__buf *out)
{
    const json_t *longest = v->longest ? json_object_get(v->steps, v->longest) : NULL;
    bool known = longest != NULL && v->seconds >= TOO_SHORT_S;
    char line[512];
    const char *name;
    json_t *step;
    leat__json j;
    sentence(v, line, sizeof line);
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "verdict", line);
    leat__json_kstr(&j, "limit", known ? text(longest, "limit") : "none");
    leat__json_kstr(&j, "grade", v->warning ? "warning" : known ? "fine" : "unknown");
    leat__json_kdouble(&j, "seconds", v->seconds);
    leat__json_key(&j, "steps");
    leat__json_array(&j);
    json_object_foreach(v->steps, name, step)
    {
        if (!off(step)) step_json(&j, name, step);
    }
    leat__json_end(&j);
    leat__json_end(&j);
}
