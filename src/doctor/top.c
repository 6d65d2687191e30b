/* SPDX-License-Identifier: Apache-2.0
 *
 * The live view for a terminal: plain lines, no cursor movement; the caller redraws them.
 */
#include <stdio.h>
#include <string.h>

#include <leat/doctor.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "doctor/frame.h"
#include "doctor/judge.h"

#define TEXT 24
#define SPARK_MAX 60u
#define BAR_MAX 40u
#define VIEW_MAX ((size_t)64 << 10)

static void bar(leat__buf *out, double share, uint32_t width, bool ascii)
{
    uint32_t full = (uint32_t)(LEAT_MIN(1.0, LEAT_MAX(0.0, share)) * width + 0.5);
    for (uint32_t i = 0; i < width; i++)
        leat__buf_puts(out, i < full ? (ascii ? "#" : "\xe2\x96\x88") : (ascii ? "." : "\xc2\xb7"));
}

/* Draws the last frames, one character each. */
static void spark(leat__buf *out, const leat_doctor_frame *frames, size_t count, uint32_t width, double top,
                  double (*value)(const leat_doctor_frame *f), bool ascii)
{
    static const char *const block[8] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
                                         "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
    static const char *const plain[8] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    size_t shown = LEAT_MIN(count, (size_t)width);
    for (size_t i = count - shown; i < count; i++) top = LEAT_MAX(top, value(&frames[i]));
    for (size_t i = shown; i < width; i++) leat__buf_putc(out, ' ');
    for (size_t i = count - shown; i < count; i++) {
        int level = top > 0 ? (int)(value(&frames[i]) / top * 7.999) : 0;
        leat__buf_puts(out, (ascii ? plain : block)[LEAT_MIN(LEAT_MAX(level, 0), 7)]);
    }
}

static double samples_of(const leat_doctor_frame *f)
{
    return f->samples_per_s;
}

static double lost_of(const leat_doctor_frame *f)
{
    return f->lost;
}

static void head(leat__buf *out, const leat_doctor_frame *f)
{
    char a[TEXT], b[TEXT], c[TEXT], e[TEXT];
    leat__buf_printf(out, "leat  epoch %llu  %s samples  %s  now %s samples/s, %s/s read\n",
                     (unsigned long long)f->epoch, leat__format_count((double)f->samples, a, TEXT),
                     leat__format_seconds(f->at_s, b, TEXT), leat__format_count(f->samples_per_s, c, TEXT),
                     leat__format_bytes((uint64_t)f->read_bytes_per_s, e, TEXT));
}

static void stages(leat__buf *out, const leat_doctor_frame *f, uint32_t width, bool ascii)
{
    leat__buf_printf(out, "%-9s %-*s %6s %7s %8s\n", "stage", (int)width, "something waits", "share", "busy",
                     "waiting");
    for (int i = 0; i < LEAT_LOADER_STAGES; i++) {
        leat__buf_printf(out, "%-9s ", leat__stage_names[i]);
        bar(out, f->ready[i], width, ascii);
        leat__buf_printf(out, " %4.0f %% %7.2f %8u\n", 100 * f->ready[i], f->busy[i], f->waiting[i]);
    }
}

static void meters(leat__buf *out, const leat_doctor_diagnosis *d, const leat_doctor_frame *frames,
                   size_t count, uint32_t width, bool ascii)
{
    const leat_doctor_frame *f = &frames[count - 1];
    char a[TEXT], b[TEXT];
    uint32_t tail = LEAT_MIN(width, SPARK_MAX);
    leat__buf_puts(out, "samples/s ");
    spark(out, frames, count, tail, 0, samples_of, ascii);
    leat__buf_printf(out, " %s\n", leat__format_count(f->samples_per_s, a, TEXT));
    leat__buf_puts(out, "waiting   ");
    spark(out, frames, count, tail, 1, lost_of, ascii);
    leat__buf_printf(out, " %.0f %%\n", 100 * f->lost);
    leat__buf_puts(out, "memory    ");
    bar(out, f->budget_limit > 0 ? (double)f->budget_used / (double)f->budget_limit : 0, width, ascii);
    leat__buf_printf(out, " %s of %s\n", leat__format_bytes(f->budget_used, a, TEXT),
                     leat__format_bytes(f->budget_limit, b, TEXT));
    double cpus = or_else(d->facts.cpus, 0);
    leat__buf_puts(out, "CPUs      ");
    bar(out, cpus > 0 ? f->cpu_used / cpus : 0, width, ascii);
    leat__buf_printf(out, " %.1f of %.1f\n", f->cpu_used, cpus);
    leat__buf_printf(out, "threads %u  reads in flight %u  prefetch %u  bad samples %llu\n", f->threads,
                     f->io_depth, f->prefetch, (unsigned long long)f->bad);
}

/* Returns where to break a line of `len` bytes that is wider than `columns`: before its last word
 * that fits. "%" stays with its number. If there is no such position, breaks at the edge. */
static size_t break_at(const char *line, size_t len, uint32_t columns)
{
    uint32_t column = 0;
    size_t space = 0, i = 0;
    for (; i < len; i++) {
        if (((unsigned char)line[i] & 0xc0) != 0x80 && ++column > columns) break;
        if (line[i] == ' ' && i > 2 && i + 1 < len && line[i + 1] != '%') space = i;
    }
    if (i == len) return len;
    return line[i] == ' ' && line[i + 1] != '%' ? i : space > 0 ? space : i;
}

/* Breaks lines longer than the terminal between words. */
static void fit_lines(const char *text, uint32_t columns, leat__buf *out)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n"), n = break_at(text, len, columns);
        leat__buf_append(out, text, n);
        leat__buf_putc(out, '\n');
        for (text += n, len -= n; len > 0; text += n, len -= n) {
            for (; len > 0 && *text == ' '; text++) len--;
            if (len == 0) break;
            n = break_at(text, len, LEAT_MAX(columns, 22u) - 2);
            leat__buf_puts(out, "  ");
            leat__buf_append(out, text, n);
            leat__buf_putc(out, '\n');
        }
        if (*text == '\n') text++;
    }
}

int leat_doctor_top(const leat_doctor_diagnosis *d, const leat_doctor_frame *frames, size_t count,
                    uint32_t columns, uint32_t ascii,
                    int (*write)(void *cookie, const char *text, size_t len), void *cookie, leat_error *err)
{
    LEAT_REQUIRE(d != NULL && write != NULL && (frames != NULL || count == 0), err);
    leat__buf all, out;
    uint32_t width = columns > 45 ? LEAT_MIN(columns - 40, BAR_MAX) : 5;

    leat__buf_init(&all, LEAT__MEM_DOCTOR, VIEW_MAX);
    leat__buf_init(&out, LEAT__MEM_DOCTOR, VIEW_MAX);
    if (count > 0) head(&all, &frames[count - 1]);
    leat__buf_printf(&all, "%s\n", d->sentence);
    if (count > 0) stages(&all, &frames[count - 1], width, ascii != 0);
    if (count > 0) meters(&all, d, frames, count, width, ascii != 0);
    const leat_doctor_facts *f = &d->facts;
    if (f->decision_count > 0) {
        const leat_doctor_decision *last = &f->decisions[f->decision_count - 1];
        leat__buf_printf(&all, "decided at %.1f s: %s %u -> %u: %s\n", last->at_s, last->knob, last->from,
                         last->to, last->reason);
    }
    if (d->remedy_count > 0)
        leat__buf_printf(&all, "best remedy: %.2fx %s\n", d->remedies[0].gain, d->remedies[0].action);
    fit_lines(leat__buf_str(&all), columns, &out);
    leat__buf_reset(&all);
    int rc = leat__buf_status(&out);
    if (rc != 0) leat__fail_nomem(err, out.len, "the view");
    else rc = write(cookie, leat__buf_str(&out), out.len);
    leat__buf_reset(&out);
    return rc;
}
