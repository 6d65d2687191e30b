/* SPDX-License-Identifier: Apache-2.0
 *
 * Modifiers: changes of a text before it is scored. A list of names is parsed once; applying it
 * belongs to one thread at a time.
 */
#ifndef LEAT_TEXT_MODIFY_H
#define LEAT_TEXT_MODIFY_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define LEAT__MODIFIERS_MAX 16

typedef struct leat__modifiers {
    uint8_t step[LEAT__MODIFIERS_MAX];
    unsigned count;
    leat__buf work; /* second buffer of a step */
} leat__modifiers;

/* Parses names such as "newlines,quotes": LEAT_EINVAL names an unknown modifier. NULL or "" means none. */
int leat__modifiers_init(leat__modifiers *m, const char *names, leat_error *err) LEAT_MUST_CHECK;
void leat__modifiers_reset(leat__modifiers *m);
/* Modifies the valid UTF-8 in `text`; *changed is true when anything changed. */
int leat__modifiers_run(leat__modifiers *m, leat__buf *text, bool *changed, leat_error *err) LEAT_MUST_CHECK;

/* Returns the i-th modifier; false past the last. */
bool leat__modifier_at(unsigned i, const char **name, const char **help);

#endif
