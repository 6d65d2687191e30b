/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress bar: one line on a terminal's stderr, redrawn in place.
 *
 *     packing  ██████▌          38%  12.3k/32.0k images  2.1k/s  231 MB/s  ETA 9s  3 skipped
 *
 * Any thread may report; a report between two drawings costs one atomic load and a clock read. Parts that
 * do not fit the width are dropped, the least important first, the bar itself last.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "cli_frame.h"

#define REDRAW_NS (100 * LEAT_NS_PER_MS)
#define SMOOTH_S 3.0 /* time constant of the moving averages */
#define BAR_MIN 8
#define BAR_MAX 40

typedef enum piece {
    PIECE_PERCENT,
    PIECE_DONE,
    PIECE_RATE,
    PIECE_ETA,
    PIECE_SKIPPED,
    PIECE_BYTES,
    PIECES,
} piece;

static void piece_text(const cli_progress *p, piece which, char *out, size_t size)
{
    char a[32], b[32];
    out[0] = '\0';
    switch (which) {
    case PIECE_PERCENT:
        if (p->total > 0) snprintf(out, size, "%3.0f%%", floor(100.0 * (double)p->done / (double)p->total));
        break;
    case PIECE_DONE:
        leat__format_count((double)p->done, a, sizeof a);
        if (p->total > 0)
            snprintf(out, size, "%s/%s %s", a, leat__format_count((double)p->total, b, sizeof b), p->unit);
        else snprintf(out, size, "%s %s", a, p->unit);
        break;
    case PIECE_RATE:
        if (p->per_s > 0) snprintf(out, size, "%s/s", leat__format_count(p->per_s, a, sizeof a));
        break;
    case PIECE_ETA:
        if (p->total > p->done && p->per_s > 0)
            snprintf(out, size, "ETA %s",
                     leat__format_seconds((double)(p->total - p->done) / p->per_s, a, sizeof a));
        break;
    case PIECE_SKIPPED:
        if (p->skipped > 0)
            snprintf(out, size, "%s skipped", leat__format_count((double)p->skipped, a, sizeof a));
        break;
    case PIECE_BYTES:
        if (p->bytes_per_s > 0) snprintf(out, size, "%.4g MB/s", p->bytes_per_s / 1e6);
        break;
    default: break;
    }
}

static size_t draw_bar(double share, int width, bool utf8, char *out, size_t size)
{
    static const char *const eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    const int steps = (int)(share * width * 8);
    size_t n = 0;
    for (int i = 0; i < width && n + 4 < size; i++) {
        const int part = LEAT_MAX(0, LEAT_MIN(8, steps - i * 8));
        const char *cell = utf8 ? eighths[part] : part == 8 ? "#" : ".";
        n += (size_t)snprintf(out + n, size - n, "%s", cell);
    }
    return n;
}

void cli_progress_format(const cli_progress *p, int columns, bool utf8, char *out, size_t size)
{
    /* shown in the order of the enum; dropped from the end of this list */
    static const piece wanted[] = {PIECE_PERCENT, PIECE_DONE,  PIECE_RATE,
                                   PIECE_ETA,     PIECE_BYTES, PIECE_SKIPPED};
    char text[PIECES][64];
    bool shown[PIECES] = {false};
    int room = columns - 1 - (int)strlen(p->label); /* writing the last column makes terminals wrap */
    for (size_t i = 0; i < LEAT_COUNT(wanted); i++) {
        const piece which = wanted[i];
        piece_text(p, which, text[which], sizeof text[which]);
        const int need = (int)strlen(text[which]) + 2;
        shown[which] = text[which][0] && need <= room;
        if (shown[which]) room -= need;
    }
    size_t n = (size_t)snprintf(out, size, "%.*s", LEAT_MAX(0, columns - 1), p->label);
    if (p->total > 0 && room >= BAR_MIN + 2 && n + 2 < size) {
        const double share = LEAT_MIN(1.0, (double)p->done / (double)p->total);
        n += (size_t)snprintf(out + n, size - n, "  ");
        n += draw_bar(share, LEAT_MIN(room - 2, BAR_MAX), utf8, out + n, size - n);
    }
    for (int i = 0; i < PIECES && n < size; i++)
        if (shown[i]) n += (size_t)snprintf(out + n, size - n, "  %s", text[i]);
}

static void rates_locked(cli_progress *p, uint64_t now)
{
    const double seconds = (double)(now - p->rate_ns) / (double)LEAT_NS_PER_S;
    if (seconds < 0.05) return;
    const double per_s = (double)(p->done - p->rate_done) / seconds;
    const double bytes_per_s = (double)(p->bytes - p->rate_bytes) / seconds;
    /* An exponential average: the first span counts fully, later ones by their length. */
    const double gain = p->per_s == 0 ? 1 : 1 - exp(-seconds / SMOOTH_S);
    p->per_s += gain * (per_s - p->per_s);
    p->bytes_per_s += gain * (bytes_per_s - p->bytes_per_s);
    p->rate_ns = now;
    p->rate_done = p->done;
    p->rate_bytes = p->bytes;
}

void cli_progress_hide_locked(cli *c)
{
    if (c->bar) fputs("\r\033[K", stderr);
}

void cli_progress_show_locked(cli *c)
{
    char line[512];
    if (!c->bar) return;
    cli_progress_format(c->bar, cli_columns(STDERR_FILENO), c->utf8, line, sizeof line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

void cli_progress_begin(cli_progress *p, cli *c, const char *label, const char *unit, uint64_t total)
{
    memset(p, 0, sizeof *p);
    p->c = c;
    p->label = label;
    p->unit = unit;
    p->total = total;
    p->rate_ns = leat__clock_ns();
    p->shown = c->tty_err && !c->quiet && !c->json;
    /* the first drawing is delayed, so that quick work shows no bar */
    atomic_init(&p->next_ns, p->rate_ns + REDRAW_NS);
    if (!p->shown) return;
    leat__mutex_lock(&c->lock);
    c->bar = p;
    leat__mutex_unlock(&c->lock);
}

void cli_progress_total(cli_progress *p, uint64_t total)
{
    leat__mutex_lock(&p->c->lock);
    p->total = total;
    leat__mutex_unlock(&p->c->lock);
}

void cli_progress_at(cli_progress *p, uint64_t done, uint64_t bytes, uint64_t skipped)
{
    if (!p->shown) return;
    const uint64_t now = leat__clock_ns();
    if (now < atomic_load_explicit(&p->next_ns, memory_order_relaxed)) return;
    leat__mutex_lock(&p->c->lock);
    /* Reports of several threads may arrive out of order: never decrease. */
    p->done = LEAT_MAX(p->done, done);
    p->bytes = LEAT_MAX(p->bytes, bytes);
    p->skipped = LEAT_MAX(p->skipped, skipped);
    rates_locked(p, now);
    if (p->c->bar == p) cli_progress_show_locked(p->c);
    atomic_store_explicit(&p->next_ns, now + REDRAW_NS, memory_order_relaxed);
    leat__mutex_unlock(&p->c->lock);
}

int cli_progress_on(void *bar, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped)
{
    cli_progress *p = bar;
    if (total > 0) cli_progress_total(p, total);
    cli_progress_at(p, done, bytes, skipped);
    return cli_interrupted(p->c);
}

int cli_progress_on_text(void *bar, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    (void)documents;
    return cli_progress_on(bar, done, total, done, dropped);
}

void cli_progress_end(cli_progress *p)
{
    if (!p->shown) return;
    leat__mutex_lock(&p->c->lock);
    cli_progress_hide_locked(p->c);
    fflush(stderr);
    p->c->bar = NULL;
    p->shown = false;
    leat__mutex_unlock(&p->c->lock);
}
