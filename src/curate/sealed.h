/* SPDX-License-Identifier: Apache-2.0
 *
 * Small JSON files of a work folder (states, markers) and reports of runs, with a checksum. Its member
 * "sum", the last of the object, is the XXH3 hash of all bytes before it. A line feed may follow the object.
 */
#ifndef LEAT_CURATE_SEALED_H
#define LEAT_CURATE_SEALED_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/* Adds the checksum to a complete JSON object. */
void leat__sealed_end(leat__buf *json);
/* Loads a file of at most `max` bytes. *sound: its checksum is right. *root is NULL when it is not JSON. */
int leat__sealed_read(const char *path, size_t max, json_t **root, bool *sound,
                      leat_error *err) LEAT_MUST_CHECK;
/* As above; fails with LEAT_EDATA when the file is damaged. */
int leat__sealed_load(const char *path, size_t max, json_t **root, leat_error *err) LEAT_MUST_CHECK;
int leat__sealed_damaged(const char *path, leat_error *err);

#endif
