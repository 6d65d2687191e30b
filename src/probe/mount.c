/* SPDX-License-Identifier: Apache-2.0
 *
 * mountinfo lines:  36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=x
 *                   id parent dev root point options optional… - type source super-options
 * Blanks inside a field are written as \040. No state, any thread.
 */
#include "probe/mount.h"

#include <stdio.h>
#include <string.h>

/* Copies the unescaped field at *at and moves past the blank after it. A field that does not fit
 * fails, or is truncated if `cut`. */
static bool take_field(const char **at, char *out, size_t size, bool cut)
{
    const char *s = *at;
    size_t n = 0;
    while (*s != ' ' && *s != '\n' && *s != '\0') {
        char c = *s++;
        if (c == '\\' && s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' &&
            s[2] <= '7') {
            c = (char)((s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0'));
            s += 3;
        }
        if (n + 1 < size) {
            out[n++] = c;
        } else if (!cut) {
            return false;
        }
    }
    bool some = s != *at;
    out[n] = '\0';
    *at = *s == ' ' ? s + 1 : s;
    return some;
}

bool leat__mount_parse(const char *line, leat__mount *m)
{
    char skipped[16];
    const char *at = line;
    for (int i = 0; i < 2; i++) { /* id, parent */
        if (!take_field(&at, skipped, sizeof skipped, true)) return false;
    }
    char dev[32];
    if (!take_field(&at, dev, sizeof dev, false)) return false;
    if (sscanf(dev, "%u:%u", &m->major, &m->minor) != 2) return false;
    if (!take_field(&at, m->root, sizeof m->root, false)) return false;
    if (!take_field(&at, m->point, sizeof m->point, false)) return false;
    do { /* options and optional fields, up to the dash */
        if (!take_field(&at, skipped, sizeof skipped, true)) return false;
    } while (strcmp(skipped, "-") != 0);
    if (!take_field(&at, m->type, sizeof m->type, true)) return false;
    if (!take_field(&at, m->source, sizeof m->source, true)) return false;
    if (!take_field(&at, m->options, sizeof m->options, true)) m->options[0] = '\0';
    if (strcmp(m->point, "/") == 0) m->point[0] = '\0';
    return true;
}

bool leat__mount_option(const char *list, size_t len, const char *name)
{
    size_t want = strlen(name);
    for (size_t i = 0; i <= len;) {
        size_t n = 0;
        while (i + n < len && list[i + n] != ',') n++;
        if (n == want && memcmp(list + i, name, n) == 0) return true;
        i += n + 1;
    }
    return false;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

bool leat__mount_find(const char *mountinfo, const char *type, const char *option, leat__mount *m)
{
    leat__mount one;
    bool found = false;
    for (const char *line = mountinfo; *line; line = next_line(line)) {
        if (!leat__mount_parse(line, &one) || strcmp(one.type, type) != 0) continue;
        if (option && !leat__mount_option(one.options, strlen(one.options), option)) continue;
        *m = one;
        found = true;
    }
    return found;
}

bool leat__mount_of(const char *mountinfo, const char *path, leat__mount *m)
{
    leat__mount one;
    size_t best = 0;
    bool found = false;
    for (const char *line = mountinfo; *line; line = next_line(line)) {
        if (!leat__mount_parse(line, &one)) continue;
        size_t len = strlen(one.point);
        bool above = strncmp(path, one.point, len) == 0 && (path[len] == '/' || path[len] == '\0');
        if (!above || (found && len < best)) continue;
        *m = one;
        best = len;
        found = true;
    }
    return found;
}
