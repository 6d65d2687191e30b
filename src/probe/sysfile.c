/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kernel's small text files below a root that tests can replace. Owns the name of that
 * root. Any thread may read; only tests set the root, before threads start.
 */
#include "probe/sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/machine.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/num.h"

#define LOAD_MAX (16u << 20) /* the mountinfo of a busy node is far smaller */

static char root[PATH_MAX];
static bool root_set;

const char *leat__sysroot(void)
{
    if (root_set) return root;
    const char *env = getenv("LEAT_SYSROOT");
    return env ? env : "";
}

void leat__sysroot_set(const char *dir)
{
    root_set = dir != NULL;
    snprintf(root, sizeof root, "%s", dir ? dir : "");
}

static bool join(char out[PATH_MAX], const char *fmt, va_list ap)
{
    const char *prefix = leat__sysroot();
    size_t len = strlen(prefix);
    if (len >= PATH_MAX) return false;
    memcpy(out, prefix, len);
    int n = vsnprintf(out + len, PATH_MAX - len, fmt, ap);
    return n >= 0 && (size_t)n < PATH_MAX - len;
}

bool leat__sysfile_path(char out[PATH_MAX], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool ok = join(out, fmt, ap);
    va_end(ap);
    return ok;
}

/* Reads at most `size` bytes; -1 on error. The kernel may return a file in pieces. */
static ssize_t read_some(int fd, char *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        if (LEAT_FAULT(LEAT__FAULT_READ)) return -1;
        ssize_t n = read(fd, out + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static int open_path(const char *fmt, va_list ap)
{
    char path[PATH_MAX];
    return join(path, fmt, ap) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
}

static bool vread(char *out, size_t size, const char *fmt, va_list ap)
{
    out[0] = '\0';
    int fd = open_path(fmt, ap);
    if (fd < 0) return false;
    ssize_t n = read_some(fd, out, size - 1);
    close(fd);
    out[n < 0 ? 0 : n] = '\0';
    return n >= 0;
}

bool leat__sysfile_read(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool ok = vread(out, size, fmt, ap);
    va_end(ap);
    return ok;
}

char *leat__sysfile_load(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int fd = open_path(fmt, ap);
    va_end(ap);
    if (fd < 0) return NULL;

    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_PROBE, LOAD_MAX);
    char piece[4096];
    ssize_t n;
    while ((n = read_some(fd, piece, sizeof piece)) > 0) {
        if (leat__buf_append(&text, piece, (size_t)n) != 0) break;
    }
    close(fd);
    char *out = n == 0 ? leat__buf_take(&text, NULL) : NULL;
    leat__buf_reset(&text);
    return out;
}

bool leat__text_u64(const char *s, uint64_t *value)
{
    uint64_t v = 0;
    size_t digits = strspn(s, "0123456789");
    if (digits == 0) return false;
    for (size_t i = 0; i < digits; i++) {
        if (!leat__mul_u64(v, 10, &v) || !leat__add_u64(v, (uint64_t)(s[i] - '0'), &v)) {
            return false;
        }
    }
    char after = s[digits];
    if ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z')) return false;
    *value = v;
    return true;
}

bool leat__sysfile_u64(uint64_t *value, const char *fmt, ...)
{
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    bool ok = vread(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!ok) return false;
    if (strcmp(text, "max\n") == 0 || strcmp(text, "max") == 0) {
        *value = LEAT_UNLIMITED;
        return true;
    }
    return leat__text_u64(text, value);
}

bool leat__text_key_u64(const char *text, const char *key, uint64_t *value)
{
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, len) != 0) continue;
        const char *at = line + len;
        if (*at == ':') at++;
        size_t blanks = strspn(at, " \t");
        if (blanks == 0) continue; /* a longer key with this prefix */
        return leat__text_u64(at + blanks, value);
    }
    return false;
}

bool leat__cpuset_parse(leat__cpuset *set, const char *text)
{
    memset(set, 0, sizeof *set);
    const char *at = text;
    for (;;) {
        char *end;
        if (*at < '0' || *at > '9') break;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9') last = strtoul(end + 1, &end, 10);
        if (last < first || last >= LEAT__CPUS_MAX) break;
        for (unsigned long i = first; i <= last; i++) {
            set->words[i / 64] |= UINT64_C(1) << (i % 64);
        }
        if (*end == '\0' || *end == '\n') return true;
        if (*end != ',') break;
        at = end + 1;
    }
    memset(set, 0, sizeof *set);
    return false;
}

void leat__cpuset_and(leat__cpuset *set, const leat__cpuset *other)
{
    for (size_t i = 0; i < LEAT_COUNT(set->words); i++) set->words[i] &= other->words[i];
}

uint32_t leat__cpuset_count(const leat__cpuset *set)
{
    uint32_t count = 0;
    for (size_t i = 0; i < LEAT_COUNT(set->words); i++) {
        count += (uint32_t)__builtin_popcountll(set->words[i]);
    }
    return count;
}

bool leat__cpuset_has(const leat__cpuset *set, uint32_t number)
{
    return number < LEAT__CPUS_MAX && (set->words[number / 64] >> (number % 64) & 1) != 0;
}
