/* SPDX-License-Identifier: Apache-2.0
 *
 * The diagnosis for programs: JSON for scripts and pages, YAML for the loader. Keys are added,
 * never renamed.
 */
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "doctor/frame.h"
#include "doctor/judge.h"

#define TEXT_MAX ((size_t)4 << 20)

static void put_known(leat__json *j, const char *key, double value)
{
    leat__json_key(j, key);
    if (known(value)) leat__json_double(j, value);
    else leat__json_null(j);
}

static void put_rates(leat__json *j, const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    leat__json_key(j, "rates");
    leat__json_object(j);
    put_known(j, "io", d->io);
    put_known(j, "cpu", d->cpu);
    put_known(j, "gpu", d->trainer);
    put_known(j, "delivery", d->delivery);
    put_known(j, "device", d->device);
    put_known(j, "loader", f->loader);
    put_known(j, "now", d->rate);
    put_known(j, "io_cold", f->io_cold);
    put_known(j, "io_warm", f->io_warm);
    put_known(j, "cpu_one", f->cpu_one);
    leat__json_end(j);
}

/* Writes shares of the step (waiting and computing) and shares of the workers' time (their activities). */
static void put_shares(leat__json *j, const leat_doctor_diagnosis *d)
{
    const leat_doctor_facts *f = &d->facts;
    double work = f->decode_share, augment = or_else(f->augment_share, 0);
    leat__json_key(j, "shares");
    leat__json_object(j);
    put_known(j, "wait", d->lost);
    put_known(j, "compute", known(d->lost) ? 1 - d->lost : -1);
    put_known(j, "read", f->read_share);
    put_known(j, "decode", known(work) ? work * (1 - augment) : -1);
    put_known(j, "augment", known(work) && known(f->augment_share) ? work * augment : -1);
    put_known(j, "blocked", f->blocked);
    put_known(j, "decode_ready", f->decode_ready);
    put_known(j, "cpu", known(f->cpu_used) && f->cpus > 0 ? f->cpu_used / f->cpus : -1);
    put_known(j, "run_delay", f->run_delay);
    put_known(j, "throttled", f->throttled);
    put_known(j, "bad", f->bad);
    leat__json_end(j);
}

static void put_remedies(leat__json *j, const leat_doctor_diagnosis *d)
{
    leat__json_key(j, "remedies");
    leat__json_array(j);
    for (uint32_t i = 0; i < d->remedy_count; i++) {
        const leat_doctor_remedy *r = &d->remedies[i];
        leat__json_object(j);
        leat__json_kstr(j, "action", r->action);
        leat__json_kdouble(j, "gain", r->gain);
        put_known(j, "samples_per_s", r->rate);
        leat__json_kstr(j, "next", leat_doctor_limit_name(r->next));
        leat__json_kstr(j, "basis", leat_doctor_basis_name(r->basis));
        leat__json_kstr(j, "set", r->set[0] ? r->set : NULL);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static void put_lines(leat__json *j, const char *key, const char *lines, size_t width, uint32_t count)
{
    leat__json_key(j, key);
    leat__json_array(j);
    for (uint32_t i = 0; i < count; i++) leat__json_str(j, lines + i * width);
    leat__json_end(j);
}

void leat__doctor_json_fields(const leat_doctor_diagnosis *d, leat__json *j)
{
    leat__json_ku64(j, "version", 1);
    leat__json_kstr(j, "verdict", d->sentence);
    leat__json_kstr(j, "limit", leat_doctor_limit_name(d->limit));
    leat__json_kstr(j, "cause", leat_doctor_cause_name(d->cause));
    leat__json_kstr(j, "next", leat_doctor_limit_name(d->next));
    leat__json_kstr(j, "grade", leat_doctor_grade_name(d->grade));
    leat__json_kdouble(j, "confidence", d->confidence);
    leat__json_kbool(j, "complete", d->complete != 0);
    put_known(j, "lost", d->lost);
    put_rates(j, d);
    put_shares(j, d);
    put_lines(j, "missing", d->missing[0], sizeof d->missing[0], d->missing_count);
    put_lines(j, "evidence", d->evidence[0], sizeof d->evidence[0], d->evidence_count);
    put_lines(j, "findings", d->findings[0], sizeof d->findings[0], d->finding_count);
    put_remedies(j, d);
    leat__json_key(j, "apply");
    leat__json_object(j);
    leat__json_kstr(j, "set", d->apply);
    put_known(j, "samples_per_s", d->apply_rate);
    leat__json_kdouble(j, "gain", d->apply_gain);
    leat__json_kstr(j, "basis", leat_doctor_basis_name(d->apply_basis));
    leat__json_end(j);
    leat__decisions_json(j, &d->facts);
    leat__json_key(j, "facts");
    leat__json_object(j);
    leat__facts_json(j, &d->facts);
    leat__json_end(j);
}

void leat__doctor_json(const leat_doctor_diagnosis *d, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__doctor_json_fields(d, &j);
    leat__json_end(&j);
}

static void write_yaml(const leat_doctor_diagnosis *d, leat__buf *out)
{
    const char *at = d->apply;
    leat__buf_puts(out, "# Written by `leat doctor`; read by `leat load --config`.\n");
    leat__buf_printf(out, "# %s\n", d->sentence);
    if (at[0] == '\0') {
        leat__buf_puts(out, "# No load flag would make this faster.\n");
        return;
    }
    leat__buf_printf(out, "# Predicted: %.2f times as fast.\n", d->apply_gain);
    while (*at != '\0') {
        size_t len = strcspn(at, ","), key = strcspn(at, "=");
        if (key < len)
            leat__buf_printf(out, "%.*s: %.*s\n", (int)key, at, (int)(len - key - 1), at + key + 1);
        at += len + (at[len] == ',');
    }
}

static int hand_over(leat__buf *out, int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                     leat_error *err)
{
    int rc = leat__buf_status(out);
    if (rc != 0) leat__fail_nomem(err, out->len, "a diagnosis");
    else rc = write(cookie, leat__buf_str(out), out->len);
    leat__buf_reset(out);
    return rc;
}

int leat_doctor_write(const leat_doctor_diagnosis *d, leat_doctor_format format,
                      int (*write)(void *cookie, const char *text, size_t len), void *cookie, leat_error *err)
{
    LEAT_REQUIRE(d != NULL && write != NULL, err);
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, TEXT_MAX);
    if (format == LEAT_DOCTOR_JSON) leat__doctor_json(d, &out);
    else if (format == LEAT_DOCTOR_YAML) write_yaml(d, &out);
    else leat__doctor_page(d, &out, format == LEAT_DOCTOR_PAGE_ASCII);
    return hand_over(&out, write, cookie, err);
}

int leat_doctor_write_now(const leat_doctor_diagnosis *d, const leat_doctor_frame *frame,
                          int (*write)(void *cookie, const char *text, size_t len), void *cookie,
                          leat_error *err)
{
    LEAT_REQUIRE(d != NULL && write != NULL, err);
    leat__buf out;
    leat__json j;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, TEXT_MAX);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__doctor_json_fields(d, &j);
    leat__json_key(&j, "frame");
    if (frame != NULL) leat__frame_json(&j, frame);
    else leat__json_null(&j);
    leat__json_end(&j);
    return hand_over(&out, write, cookie, err);
}
