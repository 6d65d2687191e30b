/* SPDX-License-Identifier: Apache-2.0
 *
 * Followers of a pack's images for random access to samples; see py_follow.c.
 */
#ifndef LEAT_PY_FOLLOW_H
#define LEAT_PY_FOLLOW_H

#include "py_leat.h"

#include "loader/follow.h"

typedef struct py_follow py_follow;

/* Returns NULL with a TypeError for any other object. */
py_follow *py_follow_of(PyObject *object);
/* Returns the pipeline of a leat._leat.Pipeline; NULL with a TypeError for any other object. */
const leat__pipeline *py_pipeline_of(PyObject *object);
/* Marks the fields that follow: their stored values are not needed. */
void py_follow_skip(const py_follow *self, bool *skip);
/* Fills a new frame with the values of the sample last read, number key->sample. Called without the GIL. */
int py_follow_fill(py_follow *self, leat_sample *sample, leat__pipeline_worker *worker,
                   const leat__draw_key *key, bool as_stored, leat__follow_scratch *scratch,
                   leat__frame **frame, leat_error *err) LEAT_MUST_CHECK;
/* Returns a dict from name to (bytes, dtype, shape). */
PyObject *py_follow_values(const py_follow *self, const leat__frame *frame);

#endif
