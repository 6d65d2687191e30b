/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing and checking declared parameters. Pure functions.
 */
#include "base/param.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

#define CHOICES_MAX 32
#define CHOICE_BYTES 48

bool leat__param_choice(const leat__param *p, int index, char *out, int size)
{
    const char *s = p->choices;

    for (int i = 0; s != NULL; i++) {
        const char *bar = strchr(s, '|');
        size_t len = bar != NULL ? (size_t)(bar - s) : strlen(s);
        if (i == index) {
            snprintf(out, (size_t)size, "%.*s", (int)len, s);
            return true;
        }
        s = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

static int parse_choice(const leat__param *p, const char *shown, const char *text, leat__value *value,
                        leat_error *err)
{
    char words[CHOICES_MAX][CHOICE_BYTES];
    const char *list[CHOICES_MAX];
    int n = 0;

    for (; n < CHOICES_MAX && leat__param_choice(p, n, words[n], CHOICE_BYTES); n++) {
        if (strcmp(words[n], text) == 0) {
            value->i = n;
            return 0;
        }
        list[n] = words[n];
    }
    const char *near = leat__str_nearest(text, list, (size_t)n);
    if (near != NULL)
        return leat__fail(err, LEAT_EINVAL, "%s: '%s' is not one of %s; did you mean '%s'?", shown, text,
                          p->choices, near);
    return leat__fail(err, LEAT_EINVAL, "%s: '%s' is not one of %s", shown, text, p->choices);
}

static int check_range(const leat__param *p, const char *shown, const char *text, double number,
                       leat_error *err)
{
    if (p->min > p->max || (number >= p->min && number <= p->max)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: %s is out of range (%.16g to %.16g)", shown, text, p->min,
                      p->max);
}

static int malformed(const char *shown, const char *text, const char *wanted, leat_error *err)
{
    return leat__fail(err, LEAT_EINVAL, "%s: '%s' is not %s", shown, text, wanted);
}

/* A number, or a quotient such as 224/256. */
static bool parse_float(const char *text, double *value)
{
    char first[64];
    const char *const slash = strchr(text, '/');
    double over, under;

    if (slash == NULL) return leat__str_to_double(text, value);
    const size_t len = (size_t)(slash - text);
    if (len >= sizeof first) return false;
    memcpy(first, text, len);
    first[len] = '\0';
    if (!leat__str_to_double(first, &over) || !leat__str_to_double(slash + 1, &under) || under == 0)
        return false;
    *value = over / under;
    return isfinite(*value);
}

static int parse_list(const leat__param *p, const char *shown, const char *text, leat__value *value,
                      leat_error *err)
{
    const char *s = text;

    value->count = 0;
    for (;;) {
        char part[64];
        size_t len = strcspn(s, ",");
        double number;
        if (len >= sizeof part) return malformed(shown, text, "a list of numbers", err);
        memcpy(part, s, len);
        part[len] = '\0';
        if (!leat__str_to_double(part, &number)) return malformed(shown, text, "a list of numbers", err);
        if (value->count == LEAT__PARAM_ARITY_MAX)
            return leat__fail(err, LEAT_EINVAL, "%s: more than %d numbers", shown, LEAT__PARAM_ARITY_MAX);
        LEAT_TRY(check_range(p, shown, part, number, err));
        if (p->kind == LEAT__PARAM_INTS && number != trunc(number))
            return malformed(shown, part, "a whole number", err);
        value->list[value->count++] = number;
        if (s[len] == '\0') break;
        s += len + 1;
    }
    if (p->arity != 0 && value->count != p->arity)
        return leat__fail(err, LEAT_EINVAL, "%s: '%s' has %d numbers, %d are needed", shown, text,
                          value->count, p->arity);
    return 0;
}

int leat__param_parse(const leat__param *p, const char *shown, const char *text, leat__value *value,
                      leat_error *err)
{
    bool flag;

    *value = (leat__value){.set = true, .s = text};
    switch (p->kind) {
    case LEAT__PARAM_FLAG:
        if (!leat__str_to_bool(text, &flag)) return malformed(shown, text, "yes or no", err);
        value->i = flag;
        return 0;
    case LEAT__PARAM_INT:
        if (leat__str_to_i64(text, &value->i)) value->f = (double)value->i;
        else if (!leat__str_to_double(text, &value->f) || fabs(value->f) < 0x1p63) /* else: out of range */
            return malformed(shown, text, "a whole number", err);
        return check_range(p, shown, text, value->f, err);
    case LEAT__PARAM_FLOAT:
        if (!parse_float(text, &value->f)) return malformed(shown, text, "a number", err);
        return check_range(p, shown, text, value->f, err);
    case LEAT__PARAM_BYTES:
    case LEAT__PARAM_BYTES10:
        if (!(p->kind == LEAT__PARAM_BYTES ? leat__str_to_bytes : leat__str_to_bytes10)(text, &value->u))
            return malformed(shown, text, "a size such as 512M or 4G", err);
        value->f = (double)value->u;
        return check_range(p, shown, text, value->f, err);
    case LEAT__PARAM_SECONDS:
        if (!leat__str_to_seconds(text, &value->f))
            return malformed(shown, text, "a time such as 250ms or 3s", err);
        return check_range(p, shown, text, value->f, err);
    case LEAT__PARAM_CHOICE: return parse_choice(p, shown, text, value, err);
    case LEAT__PARAM_INTS:
    case LEAT__PARAM_FLOATS: return parse_list(p, shown, text, value, err);
    case LEAT__PARAM_STRING:
    case LEAT__PARAM_PATH:
        if (*text == '\0') return leat__fail(err, LEAT_EINVAL, "%s: is empty", shown);
        return 0;
    }
    return leat__fail(err, LEAT_EINTERNAL, "%s: unknown kind of parameter", shown);
}

void leat__param_default(const leat__param *p, leat__value *value)
{
    *value = (leat__value){0};
    if (p->def == NULL || *p->def == '\0') return;
    if (leat__param_parse(p, p->name, p->def, value, NULL) != 0) *value = (leat__value){0};
    value->set = false;
}
