/* SPDX-License-Identifier: Apache-2.0
 *
 * A declared parameter: name, kind, default, range, help. Options of commands and arguments of
 * augmentations are tables of these. Parsing, range checks, --help, the man page, completions and
 * Python signatures all come from this one table.
 */
#ifndef LEAT_BASE_PARAM_H
#define LEAT_BASE_PARAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum leat__param_kind {
    LEAT__PARAM_FLAG,    /* bool, no value on the command line */
    LEAT__PARAM_INT,     /* int64 */
    LEAT__PARAM_FLOAT,   /* double */
    LEAT__PARAM_BYTES,   /* uint64 with units: 4G, 1.5GiB */
    LEAT__PARAM_BYTES10, /* uint64 with decimal units: 4G is 4 GB */
    LEAT__PARAM_SECONDS, /* double with units: 250ms, 3s */
    LEAT__PARAM_CHOICE,  /* one of `choices` ("a|b|c"); value is its index */
    LEAT__PARAM_STRING,  /* text */
    LEAT__PARAM_PATH,    /* text; shells complete it as a file name */
    LEAT__PARAM_FLOATS,  /* fixed number of doubles, "0.485,0.456,0.406"; the number is `arity` */
    LEAT__PARAM_INTS     /* fixed number of integers, "224,256" */
} leat__param_kind;

#define LEAT__PARAM_ARITY_MAX 16

typedef struct leat__param {
    const char *name; /* "max-side" for options, "max_side" for ops */
    leat__param_kind kind;
    const char *def;     /* default as the user would write it; NULL = none ("" for flags) */
    double min, max;     /* for numbers, inclusive; min > max = no range */
    const char *choices; /* "a|b|c" for LEAT__PARAM_CHOICE */
    int arity;           /* for lists of numbers; 0 = any number up to the maximum */
    const char *metavar; /* the placeholder for the value in help: "N", "FILE"; NULL = by kind */
    const char *help;    /* one sentence, lower case, no full stop */
    char shortcut;       /* one-letter form on the command line, 0 = none */
} leat__param;

typedef struct leat__value {
    bool set; /* given by the user; false for the default */
    int64_t i;
    uint64_t u;
    double f;
    const char *s; /* the parsed text, not copied */
    double list[LEAT__PARAM_ARITY_MAX];
    int count;
} leat__value;

/* Parses `text` as a value of `p` and checks its range. LEAT_EINVAL: the message is one line, "--batch: 0 is
 * out of range (1 to 65536)", and suggests the nearest choice. `shown` is the name as the user wrote it
 * ("--batch", "RandomErasing.p"). */
int leat__param_parse(const leat__param *p, const char *shown, const char *text, leat__value *value,
                      leat_error *err) LEAT_MUST_CHECK;

/* Copies the i-th choice to out; false past the last. */
bool leat__param_choice(const leat__param *p, int index, char *out, int size);

/* Sets `value` to the default, with `set` false. A NULL default gives zeros. */
void leat__param_default(const leat__param *p, leat__value *value);

#endif
