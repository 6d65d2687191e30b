/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings, numbers in strings, and paths. Nothing here accesses the file system.
 */
#ifndef LEAT_BASE_STR_H
#define LEAT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

bool leat__str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool leat__str_starts(const char *s, const char *prefix);
bool leat__str_ends(const char *s, const char *suffix);
bool leat__str_has_control(const char *s); /* a byte below 0x20, such as a line break, or 0x7f */
bool leat__str_ends_nocase(const char *s, const char *suffix);

/* Compares names in natural order: digit sequences compare as numbers ("a2" < "a10"). Returns 0 only for
 * equal strings. */
int leat__str_natural_cmp(const char *a, const char *b);

/* Parse the whole string, without blanks or trailing characters; false when malformed or out of range. Bytes:
 * 512, 4K, 1.5G, 2TiB, 10MB (K = Ki = 1024, KB = 1000 …). Seconds: 250ms, 3s, 2m, 1h, or a plain number of
 * seconds. */
bool leat__str_to_i64(const char *s, int64_t *value);
/* What is wrong with text that leat__str_to_i64 refused: another kind of text, or a number above 64 bits. */
const char *leat__str_i64_fault(const char *s);
bool leat__str_to_u64(const char *s, uint64_t *value);
bool leat__str_to_double(const char *s, double *value);
bool leat__str_to_bytes(const char *s, uint64_t *value);
/* Parses amounts that are usually decimal: "10G" is 10 GB, only "10GiB" is binary. */
bool leat__str_to_bytes10(const char *s, uint64_t *value);
bool leat__str_to_seconds(const char *s, double *value);
bool leat__str_to_bool(const char *s, bool *value);

/* Format into `out` (at least 16 bytes) and return it: "1.50 GiB" for bytes, "12.3k" for counts. */
char *leat__format_bytes(uint64_t bytes, char *out, size_t size);
/* Formats a size for messages, rounded up, so that a memory limit of the printed size is enough:
 * leat__fail(err, …, "needs %s", leat__as_size(bytes).text). */
typedef struct leat__size_text {
    char text[16];
} leat__size_text;
leat__size_text leat__as_size(uint64_t bytes);
char *leat__format_count(double count, char *out, size_t size);
char *leat__format_seconds(double seconds, char *out, size_t size);

/* distance: edit distance with transpositions. nearest: the closest of the n `words`, NULL when
 * none is close enough for a hint. */
size_t leat__str_distance(const char *a, const char *b);
const char *leat__str_nearest(const char *word, const char *const *words, size_t n);

/* A list of names for a message: the first ten that fit, then how many more there are. Starts as {0}. */
typedef struct leat__names {
    char text[320]; /* "a, b, c and 5 more"; valid after leat__names_end */
    size_t len;
    uint64_t shown, all;
} leat__names;
void leat__names_add(leat__names *list, const char *name);
const char *leat__names_end(leat__names *list); /* returns list->text */

/* Makes `s` printable: control characters and bytes that are not UTF-8 become \xHH; cut to `size`
 * bytes. Returns `out`. */
const char *leat__str_shown(const char *s, char *out, size_t size);
/* Replaces user and password of every URL in `text` by "…", and the query except that of s3, gs and az, in
 * place; text and NUL may take `size` bytes. Use it on everything that is printed, logged or stored. A URL
 * ends at a blank, '"', '<' or '>'. */
void leat__str_hide_secrets(char *text, size_t size);
/* Hides the secrets of one URL whose host begins at `host`, up to `end`. Returns the new end. */
size_t leat__str_hide_in_url(char *text, size_t size, size_t host, size_t end);
/* Returns the length of "http://" or "https://" (any case) at the start of `s`; 0 when there is none. */
size_t leat__str_web_prefix(const char *s);
/* Unquotes a line of a list of keys in place; returns its new length. A line in double quotes uses \\n, \\r,
 * \\" and \\\\ for line breaks, quotes and backslashes of the key. Any other line is the key itself. */
size_t leat__str_unquote(char *line, size_t len);
/* Appends a path quoted for a POSIX shell: in single quotes where needed, and prefixed with "./" if it looks
 * like an option. */
int leat__str_shell(leat__buf *out, const char *path);
/* True for valid UTF-8 (no overlong forms, no surrogates). *good: length of the valid prefix. */
bool leat__utf8_valid(const char *s, size_t len, size_t *good);

/* Returns "" for a count of 1, else "s", for texts such as "%llu sample%s". */
static inline const char *leat__plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Paths. join inserts one '/'; base returns the part of `path` after the last '/'. relative_safe is true for
 * a path that may be created below a folder: relative, not empty, no NUL, and no "..", "." or empty part. */
int leat__path_join(leat__buf *out, const char *dir, const char *name);
const char *leat__path_base(const char *path);
bool leat__path_relative_safe(const char *path, size_t len);

#endif
