/* SPDX-License-Identifier: Apache-2.0
 *
 * A condition on the key and the numbers of a sample, as `leat pack --where` takes it:
 *
 *   label < 10 and not (score in 0.2..0.8 or key in ['a.jpg', 'b.jpg'])
 *
 *   or, and, not, ( )          from lowest to highest precedence
 *   == != < <= > >=            may be chained: 0 <= label < 10
 *   in, not in                 a list [1, 2, 5] or a range LOW..HIGH, both ends included
 *   names                      int and float fields, key, with dots inside: check.blur; `a name` in
 * backquotes may have any characters numbers, 'text', "text"    text is compared with key, or is the class
 * name of an int field
 *
 * Whole numbers are compared exactly, also with fractions. Nothing in a condition is executed, and the
 * time of a test is bounded by the length of the text. A compiled condition is constant: any number of
 * threads may share it.
 */
#ifndef LEAT_INGEST_WHERE_H
#define LEAT_INGEST_WHERE_H

#include <leat/pack.h>

#include "base/error.h"
#include "ingest/record.h"

typedef struct leat__where leat__where;

/* The names that a condition may use. */
typedef struct leat__where_names {
    const leat_field *fields;
    uint32_t field_count;
    /* Returns the class names of an int field; *count is 0 when it has none. The pointer is NULL when no
     * field has class names. */
    int (*classes)(const void *cookie, uint32_t field, const char *const **names, uint64_t *count,
                   leat_error *err);
    /* Finds a field by name. LEAT_ENOFIELD, without a message: there is none. The pointer is NULL when names
     * are those of `fields`. */
    int (*find)(const void *cookie, const char *name, size_t size, uint32_t *field, leat_error *err);
    const void *cookie;
} leat__where_names;

/* True for a name that needs no backquotes in a condition. */
bool leat__where_is_name(const char *text);

/* Compiles a condition. LEAT_EINVAL names the problem and its column. */
int leat__where_open(leat__where **w, const char *text, const leat__where_names *names,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__where_close(leat__where **w);

/* True when a sample matches the condition. `items`: one per field. Comparisons with NaN are
 * false, != is true. */
bool leat__where_match(const leat__where *w, const char *key, size_t key_size, const leat__item *items);

#endif
