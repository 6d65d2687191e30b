/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills leat_error. Any thread may call with its own error. The only state is how options are shown, which
 * the command sets once.
 */
#include "base/error.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

const char *leat_code_name(int code)
{
    switch (code) {
    case LEAT_OK: return "LEAT_OK";
#define CASE(name, value, text)                                                                              \
    case LEAT_##name: return "LEAT_" #name;
        LEAT_ERROR_MAP(CASE)
#undef CASE
    default: return "LEAT_EUNKNOWN";
    }
}

const char *leat_code_text(int code)
{
    switch (code) {
    case LEAT_OK: return "no error";
#define CASE(name, value, text)                                                                              \
    case LEAT_##name: return text;
        LEAT_ERROR_MAP(CASE)
#undef CASE
    default: return "unknown error";
    }
}

#define MARK '\001' /* replaces the backquotes of a format while a message is built */

static atomic_bool as_flags;

void leat__options_as_flags(bool flags)
{
    atomic_store(&as_flags, flags);
}

/* Returns the end of the option that starts at a mark, or NULL if the character came from an argument of the
 * format. */
static const char *option_end(const char *mark)
{
    const char *s = mark + 1;
    while (islower((unsigned char)*s) || isdigit((unsigned char)*s) || *s == '_') s++;
    return *s == MARK && s > mark + 1 ? s : NULL;
}

/* Replaces marked options by flags or names, in place: two marks become at most two dashes, so the text never
 * gets longer. */
static void show_options(char *text)
{
    const bool flags = atomic_load(&as_flags);
    char *to = text;
    for (const char *from = text; *from; from++) {
        const char *end = *from == MARK ? option_end(from) : NULL;
        if (end == NULL) {
            *to++ = *from;
            continue;
        }
        const size_t len = (size_t)(end - from - 1), dashes = flags ? 2 : 0;
        memmove(to + dashes, from + 1, len);
        memset(to, '-', dashes);
        to += dashes;
        for (const char *stop = to + len; to < stop; to++)
            if (flags && *to == '_') *to = '-';
        from = end;
    }
    *to = '\0';
}

/* Replaces control characters. A newline or an escape sequence in a file name must not start a second line or
 * move the cursor. */
static void make_printable(char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == 0x7f) *s = '?';
    }
}

/* Hides secrets first, while control characters still end a URL. */
static void finish_message(leat_error *err)
{
    leat__str_hide_secrets(err->message, sizeof err->message);
    make_printable(err->message);
}

/* Formats a message. Names in backquotes in `fmt` are options: they are shown as flags or as names.
 * Backquotes in the arguments, such as file names, stay. Returns the length as vsnprintf does.
 */
static int format(char *out, size_t size, const char *fmt, va_list ap)
{
    char marked[sizeof(((leat_error *)0)->message)];
    const size_t len = strlen(fmt);
    if (strchr(fmt, '`') == NULL || len >= sizeof marked) return vsnprintf(out, size, fmt, ap);
    memcpy(marked, fmt, len + 1);
    for (char *s = marked; *s; s++)
        if (*s == '`') *s = MARK;
    const int n = vsnprintf(out, size, marked, ap);
    if (n < 0) return n;
    show_options(out);
    return (size_t)n < size ? (int)strlen(out) : n;
}

void leat__error_reset(leat_error *err)
{
    if (err == NULL) return;
    err->code = 0;
    err->sys_errno = 0;
    err->sample = -1;
    err->offset = -1;
    err->key[0] = '\0';
    err->message[0] = '\0';
}

int leat__fail(leat_error *err, int code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        leat__error_reset(err);
        err->code = code;
        va_start(ap, fmt);
        format(err->message, sizeof err->message, fmt, ap);
        va_end(ap);
        finish_message(err);
    }
    return code;
}

int leat__code_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOMEM: return LEAT_ENOMEM;
    case EINVAL: return LEAT_EINVAL;
    case ENOENT:
    case ENOTDIR: return LEAT_ENOENT;
    case EEXIST: return LEAT_EEXIST;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return LEAT_ENOSPC;
    case EACCES:
    case EPERM:
    case EROFS: return LEAT_EPERM;
    case ETIMEDOUT: return LEAT_ETIMEDOUT;
    case EAGAIN: return LEAT_EAGAIN;
    case ECANCELED: return LEAT_ECANCELED;
    case EOVERFLOW: return LEAT_EOVERFLOW;
    case ENOSYS:
    case EOPNOTSUPP: return LEAT_ENOTSUP;
    default: return LEAT_EIO;
    }
}

int leat__fail_errno(leat_error *err, int sys_errno, const char *fmt, ...)
{
    int code = leat__code_of_errno(sys_errno);
    if (err != NULL) {
        va_list ap;
        char text[128];
        leat__error_reset(err);
        err->code = code;
        err->sys_errno = sys_errno;
        va_start(ap, fmt);
        int n = format(err->message, sizeof err->message, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof err->message) {
            /* GNU strerror_r: thread-safe and may return a static string */
            const char *why = strerror_r(sys_errno, text, sizeof text);
            snprintf(err->message + n, sizeof err->message - (size_t)n, ": %s", why);
        }
        finish_message(err);
    }
    return code;
}

int leat__fail_nomem(leat_error *err, uint64_t bytes, const char *what)
{
    return leat__fail(err, LEAT_ENOMEM, "out of memory: cannot allocate %s for %s", leat__as_size(bytes).text,
                      what);
}

int leat__error_context(leat_error *err, const char *fmt, ...)
{
    char text[sizeof err->message];
    va_list ap;

    if (err == NULL) return LEAT_EINTERNAL;
    va_start(ap, fmt);
    int n = format(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0) return err->code;
    size_t used = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    snprintf(text + used, sizeof text - used, ": %s", err->message);
    memcpy(err->message, text, sizeof text);
    finish_message(err);
    return err->code;
}

void leat__error_at(leat_error *err, const char *key, int64_t sample, int64_t offset)
{
    if (err == NULL) return;
    if (key != NULL) {
        snprintf(err->key, sizeof err->key, "%s", key);
        make_printable(err->key);
    }
    err->sample = sample;
    err->offset = offset;
}
