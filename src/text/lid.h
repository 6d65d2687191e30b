/* SPDX-License-Identifier: Apache-2.0
 *
 * Language identification with supervised models in fastText's binary format (.bin, and .ftz with
 * product quantisation). The label of a text is the one that fastText predicts when line feeds are
 * replaced by spaces. A model is constant and may be shared by threads; the work memory belongs to
 * one thread.
 */
#ifndef LEAT_TEXT_LID_H
#define LEAT_TEXT_LID_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__lid leat__lid;

/* Reads a model from the bytes of its file and takes ownership of them (leat__alloc), also on failure. `name`
 * is for messages. LEAT_EDATA when the file is damaged or contains another kind of model. */
int leat__lid_open(leat__lid **lid, char *data, size_t len, const char *name,
                   leat_error *err) LEAT_MUST_CHECK;
void leat__lid_close(leat__lid **lid);
uint64_t leat__lid_bytes(const leat__lid *lid); /* of memory in use */

uint32_t leat__lid_labels(const leat__lid *lid);
/* Returns a label without the prefix __label__. */
const char *leat__lid_label(const leat__lid *lid, uint32_t index);
/* Returns the index of a label, or -1 when the model does not have it. */
int leat__lid_find(const leat__lid *lid, const char *label);

typedef struct leat__lid_work {
    float *hidden, *output;
    struct leat__lid_step *stack;
} leat__lid_work;

int leat__lid_work_init(leat__lid_work *w, const leat__lid *lid, leat_error *err) LEAT_MUST_CHECK;
void leat__lid_work_reset(leat__lid_work *w);
uint64_t leat__lid_work_bytes(const leat__lid *lid); /* of one leat__lid_work */

/* Predicts the label of a text. Returns its index and its probability, or -1 and 0 when the text contains
 * nothing that the model knows. */
int leat__lid_run(const leat__lid *lid, leat__lid_work *w, const uint8_t *text, size_t len,
                  double *probability);

#endif
