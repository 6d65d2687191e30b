/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON into a buffer; takes care of commas, nesting and escapes. Reading JSON is left to
 * jansson. Numbers are written so that they read back equal; NaN and infinities become null. In
 * strings that are not UTF-8, each bad byte becomes U+FFFD.
 *
 *   leat__json j; leat__json_init(&j, &buf, 0);
 *   leat__json_object(&j); leat__json_key(&j, "samples"); leat__json_u64(&j, 3);
 *   leat__json_end(&j);
 */
#ifndef LEAT_BASE_JSON_H
#define LEAT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define LEAT__JSON_DEPTH 32

typedef struct leat__json {
    leat__buf *out;
    unsigned depth;
    int indent; /* spaces per level, 0 = one line */
    bool first[LEAT__JSON_DEPTH];
    char close[LEAT__JSON_DEPTH];
    bool after_key;
} leat__json;

void leat__json_init(leat__json *j, leat__buf *out, int indent);
void leat__json_object(leat__json *j);
void leat__json_array(leat__json *j);
void leat__json_end(leat__json *j); /* closes the innermost object or array */
void leat__json_key(leat__json *j, const char *key);
void leat__json_str(leat__json *j, const char *s); /* NULL gives null */
void leat__json_strn(leat__json *j, const char *s, size_t len);
void leat__json_u64(leat__json *j, uint64_t v);
void leat__json_i64(leat__json *j, int64_t v);
void leat__json_double(leat__json *j, double v);
/* Appends a number with the fewest digits that read back equal; null when it is not finite. Whole numbers
 * below 1e15 have no exponent. */
void leat__json_number(leat__buf *out, double v);
void leat__json_bool(leat__json *j, bool v);
void leat__json_null(leat__json *j);
void leat__json_raw(leat__json *j, const char *json); /* a value that already is JSON */

/* Write key and value in one call. */
void leat__json_kstr(leat__json *j, const char *key, const char *s);
void leat__json_ku64(leat__json *j, const char *key, uint64_t v);
void leat__json_ki64(leat__json *j, const char *key, int64_t v);
void leat__json_kdouble(leat__json *j, const char *key, double v);
void leat__json_kbool(leat__json *j, const char *key, bool v);

#endif
