/* SPDX-License-Identifier: Apache-2.0
 *
 * Meters as OpenMetrics text, for scrapers. Reads while others
 * write: each number is correct, but the numbers of one page may be from slightly different
 * times. Any thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/meter.h"
#include "probe/meter_set.h"

/* Iterate over the sets of an export: all open ones, or only `only`. */
static const leat__meters *first_set(const leat__meters *only)
{
    return only ? only : leat__meters_first_locked();
}

static const leat__meters *next_set(const leat__meters *only, const leat__meters *at)
{
    return only ? NULL : at->next;
}

/* Takes the next "key=value" of a label; false at its end. */
static bool next_pair(const char **at, const char **key, size_t *key_len, const char **value,
                      size_t *value_len)
{
    if (!*at || **at == '\0') return false;
    *key = *at;
    *key_len = strcspn(*key, "=");
    *value = *key + *key_len + 1;
    *value_len = strcspn(*value, ",");
    *at = *value + *value_len;
    if (**at == ',') (*at)++;
    return true;
}

/* ---- OpenMetrics ----------------------------------------------------------------------- */

/* Writes a label value or HELP text: escaped, with U+FFFD for bytes that are not UTF-8. */
static void put_escaped(leat__buf *out, const char *s, size_t len)
{
    size_t good;
    while (!leat__utf8_valid(s, len, &good) || good > 0) {
        for (size_t i = 0; i < good; i++) {
            if (s[i] == '\n') {
                leat__buf_puts(out, "\\n");
            } else {
                if (s[i] == '\\' || s[i] == '"') leat__buf_putc(out, '\\');
                leat__buf_putc(out, s[i]);
            }
        }
        if (good == len) return;
        leat__buf_puts(out, "\xef\xbf\xbd");
        s += good + 1;
        len -= good + 1;
    }
}

/* Writes exact decimal seconds: 1024 gives 0.000001024. */
static void put_seconds(leat__buf *out, uint64_t ns)
{
    char fraction[16];
    snprintf(fraction, sizeof fraction, "%09" PRIu64, ns % LEAT_NS_PER_S);
    size_t len = strlen(fraction);
    while (len > 1 && fraction[len - 1] == '0') fraction[--len] = '\0';
    leat__buf_printf(out, "%" PRIu64 ".%s", ns / LEAT_NS_PER_S, fraction);
}

/* Names of one family: "decode_ns" is family leat_decode_seconds, unit seconds. */
typedef struct family {
    char name[112];
    const char *unit; /* "" when none */
    bool in_ns;       /* kept in nanoseconds, shown in seconds */
} family;

static family family_of(const leat__meter *m)
{
    family f = {.unit = ""};
    int len = (int)strlen(m->name);
    bool ns_name = leat__str_ends(m->name, "_ns");
    f.in_ns = ns_name || m->kind == LEAT__METER_TIMER;
    if (ns_name) len -= 3;
    snprintf(f.name, sizeof f.name, "leat_%.*s%s", len, m->name, f.in_ns ? "_seconds" : "");
    if (leat__str_ends(f.name, "_seconds")) f.unit = "seconds";
    if (leat__str_ends(f.name, "_bytes")) f.unit = "bytes";
    return f;
}

/* Writes name{set="…",label="…" without the closing brace, so that `le` can follow. */
static void put_series(leat__buf *out, const family *f, const char *suffix, const leat__meters *set,
                       const leat__meter *m)
{
    const char *label = m->label, *key, *value;
    size_t key_len, value_len;
    leat__buf_printf(out, "%s%s{set=\"", f->name, suffix);
    put_escaped(out, set->name, strlen(set->name));
    leat__buf_putc(out, '"');
    while (next_pair(&label, &key, &key_len, &value, &value_len)) {
        leat__buf_printf(out, ",%.*s=\"", (int)key_len, key);
        put_escaped(out, value, value_len);
        leat__buf_putc(out, '"');
    }
}

/* Writes a histogram with bounds at powers of two from 1 us to 69 s, the same at every scrape. */
static void put_timer(leat__buf *out, const family *f, const leat__meters *set, const leat__meter *m)
{
    enum { FIRST_POWER = 10, LAST_POWER = 36 };
    const leat__timer *t = (const leat__timer *)m;
    uint64_t buckets[LEAT__TIMER_BUCKETS], count = 0;
    uint64_t sum_ns = leat__timer_buckets(t, buckets);
    uint32_t i = 0;
    for (unsigned power = FIRST_POWER; power <= LAST_POWER; power++) {
        for (; i < LEAT__TIMER_BUCKETS && leat__timer_bucket_top(i) <= UINT64_C(1) << power; i++) {
            count += buckets[i];
        }
        put_series(out, f, "_bucket", set, m);
        leat__buf_puts(out, ",le=\"");
        put_seconds(out, UINT64_C(1) << power);
        leat__buf_printf(out, "\"} %" PRIu64 "\n", count);
    }
    for (; i < LEAT__TIMER_BUCKETS; i++) count += buckets[i];
    put_series(out, f, "_bucket", set, m);
    leat__buf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    put_series(out, f, "_count", set, m);
    leat__buf_printf(out, "} %" PRIu64 "\n", count);
    put_series(out, f, "_sum", set, m);
    leat__buf_puts(out, "} ");
    put_seconds(out, sum_ns);
    leat__buf_putc(out, '\n');
}

static void put_sample(leat__buf *out, const family *f, const leat__meters *set, const leat__meter *m)
{
    if (m->kind == LEAT__METER_TIMER) {
        put_timer(out, f, set, m);
        return;
    }
    put_series(out, f, m->kind == LEAT__METER_COUNTER ? "_total" : "", set, m);
    leat__buf_puts(out, "} ");
    if (m->kind == LEAT__METER_COUNTER) {
        uint64_t value = leat__counter_value((const leat__counter *)m);
        if (f->in_ns) {
            put_seconds(out, value);
        } else {
            leat__buf_printf(out, "%" PRIu64, value);
        }
    } else {
        int64_t value = leat__gauge_value((const leat__gauge *)m);
        if (f->in_ns) {
            if (value < 0) leat__buf_putc(out, '-');
            put_seconds(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
        } else {
            leat__buf_printf(out, "%" PRId64, value);
        }
    }
    leat__buf_putc(out, '\n');
}

static void put_family_head(leat__buf *out, const family *f, const leat__meter *m)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    leat__buf_printf(out, "# TYPE %s %s\n", f->name, types[m->kind]);
    if (f->unit[0]) leat__buf_printf(out, "# UNIT %s %s\n", f->name, f->unit);
    if (m->help) {
        leat__buf_printf(out, "# HELP %s ", f->name);
        put_escaped(out, m->help, strlen(m->help));
        leat__buf_putc(out, '\n');
    }
}

/* True when `m` is the first meter of this export with its name, so that its family is written here. */
static bool opens_family(const leat__meters *only, const leat__meter *m)
{
    for (const leat__meters *s = first_set(only); s; s = next_set(only, s)) {
        for (const leat__meter *n = s->first; n; n = n->next) {
            if (strcmp(n->name, m->name) == 0) return n == m;
        }
    }
    return false;
}

/* Writes a whole family: OpenMetrics wants its samples adjacent, whichever sets they come from. */
static void put_family(leat__buf *out, const leat__meters *only, const leat__meter *m)
{
    family f = family_of(m);
    put_family_head(out, &f, m);
    for (const leat__meters *s = first_set(only); s; s = next_set(only, s)) {
        for (const leat__meter *n = s->first; n; n = n->next) {
            if (strcmp(n->name, m->name) == 0) put_sample(out, &f, s, n);
        }
    }
}

int leat__meters_openmetrics(leat__meters *set, leat__buf *out)
{
    leat__mutex_lock(&leat__meters_lock);
    for (const leat__meters *s = first_set(set); s; s = next_set(set, s)) {
        for (const leat__meter *m = s->first; m; m = m->next) {
            if (opens_family(set, m)) put_family(out, set, m);
        }
    }
    leat__mutex_unlock(&leat__meters_lock);
    leat__buf_puts(out, "# EOF\n");
    return leat__buf_status(out);
}
