/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of the live page's server, without the server, for tests. Any thread.
 */
#ifndef LEAT_DOCTOR_SERVE_H
#define LEAT_DOCTOR_SERVE_H

#include <leat/doctor.h>

#include "base/buf.h"

/* Writes the answer to GET `path` and its type; returns the HTTP status. */
uint32_t leat__serve_answer(leat_doctor_watch *w, const char *path, leat__buf *out, const char **type);

#endif
