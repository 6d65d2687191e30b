/* SPDX-License-Identifier: Apache-2.0
 *
 * Line plots as inline SVG. Colours come from the page's style sheet, so one drawing works for light and dark
 * mode.
 */
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "doctor/report.h"

#define WIDTH 560.0
#define HEIGHT 150.0
#define LEFT 52.0
#define RIGHT 8.0
#define TOP 10.0
#define BOTTOM 22.0
#define POINTS 240u
#define TEXT 24

/* Rounds up to a short number: 1, 2 or 5 times a power of ten; for bytes a power of two. */
static double round_up(double value, bool bytes)
{
    if (!(value > 0)) return 1;
    if (bytes) return exp2(ceil(log2(value)));
    double unit = pow(10, floor(log10(value)));
    double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < LEAT_COUNT(steps); i++)
        if (value <= steps[i] * unit * (1 + 1e-9)) return steps[i] * unit;
    return 10 * unit;
}

static double highest(const leat__curve *curves, size_t n, const leat_doctor_frame *frames, size_t count)
{
    double high = 0;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < count; i++) high = LEAT_MAX(high, curves[c].value(&frames[i]));
    return high;
}

static const char *axis_text(double value, const char *unit, char out[TEXT])
{
    if (unit[0] == '%') {
        snprintf(out, TEXT, "%.0f %%", 100 * value);
        return out;
    }
    if (unit[0] == 'B') return leat__format_bytes((uint64_t)value, out, TEXT);
    return leat__format_count(value, out, TEXT);
}

static void draw_axes(leat__buf *out, double top, const char *unit, double from, double to)
{
    char text[TEXT];
    for (int i = 0; i <= 4; i++) {
        double y = TOP + (HEIGHT - TOP - BOTTOM) * i / 4.0;
        leat__buf_printf(out, "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                         WIDTH - RIGHT, y, y);
        if (i % 2 == 0)
            leat__buf_printf(out, "<text class=\"axis\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                             LEFT - 5, y + 4, axis_text(top * (4 - i) / 4, unit, text));
    }
    leat__buf_printf(out, "<text class=\"axis\" x=\"%.0f\" y=\"%.0f\">%s</text>", LEFT, HEIGHT - 6,
                     leat__format_seconds(from, text, TEXT));
    leat__buf_printf(out, "<text class=\"axis\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text>",
                     WIDTH - RIGHT, HEIGHT - 6, leat__format_seconds(to, text, TEXT));
}

/* Draws a curve, with frames averaged to the resolution of a screen. */
static void draw_curve(leat__buf *out, const leat__curve *c, double top, double from, double to,
                       const leat_doctor_frame *frames, size_t count)
{
    size_t points = LEAT_MIN(count, (size_t)POINTS);
    double span = LEAT_MAX(to - from, 1e-9);
    leat__buf_printf(out, "<polyline class=\"%s\" points=\"", c->color);
    for (size_t p = 0; p < points; p++) {
        size_t begin = count * p / points, end = LEAT_MAX(count * (p + 1) / points, begin + 1);
        double value = 0, at = 0;
        for (size_t i = begin; i < end; i++) {
            value += c->value(&frames[i]) / (double)(end - begin);
            at += frames[i].at_s / (double)(end - begin);
        }
        double x = LEFT + (WIDTH - LEFT - RIGHT) * (at - from) / span;
        double y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * LEAT_MIN(1.0, value / top);
        leat__buf_printf(out, "%s%.1f,%.1f", p > 0 ? " " : "", x, y);
    }
    leat__buf_puts(out, "\"/>");
}

void leat__svg_plot(leat__buf *out, const char *title, const char *unit, const leat__curve *curves, size_t n,
                    double top, const leat_doctor_frame *frames, size_t count)
{
    if (count == 0) return;
    double from = frames[0].at_s, to = frames[count - 1].at_s;
    if (top <= 0) top = round_up(highest(curves, n, frames, count), unit[0] == 'B');
    leat__buf_puts(out, "<figure><figcaption>");
    leat__html_text(out, title);
    for (size_t c = 0; c < n && n > 1; c++)
        leat__buf_printf(out, " <span class=\"key %s\">%s</span>", curves[c].color, curves[c].name);
    leat__buf_printf(out, "</figcaption><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">", WIDTH, HEIGHT);
    draw_axes(out, top, unit, from, to);
    for (size_t c = 0; c < n; c++) draw_curve(out, &curves[c], top, from, to, frames, count);
    leat__buf_puts(out, "</svg></figure>\n");
}
