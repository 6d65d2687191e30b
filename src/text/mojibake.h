/* SPDX-License-Identifier: Apache-2.0
 *
 * Mojibake: UTF-8 that was read as Windows-1252 ("cafÃ©" for "café"). Finds out whether a text has it,
 * and undoes it. Correct text also has characters that could be mojibake, such as "É™" in "CAFÉ™". These
 * are left alone unless the rest of the text shows that all of it was misread.
 */
#ifndef LEAT_TEXT_MOJIBAKE_H
#define LEAT_TEXT_MOJIBAKE_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct leat__mojibake {
    bool sure; /* has a sequence that correct text does not have */
    bool lone; /* has characters beyond ASCII outside of all sequences, so parts of it were read correctly */
} leat__mojibake;

/* Examines valid UTF-8. Nothing has to be undone unless `sure` is set. */
leat__mojibake leat__mojibake_find(const uint8_t *text, size_t size);
/* Appends the text to `out` with the sequences undone that `found` allows. */
void leat__mojibake_undo(const uint8_t *text, size_t size, leat__mojibake found, leat__buf *out);

#endif
