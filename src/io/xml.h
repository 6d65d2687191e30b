/* SPDX-License-Identifier: Apache-2.0
 *
 * The little XML that object stores answer with: elements found by name, their text. No
 * namespaces, no entities but the five standard ones and numeric characters; nothing is
 * expanded beyond the input, so no answer can grow in memory.
 */
#ifndef LEAT_IO_XML_H
#define LEAT_IO_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct leat__xml {
    const char *data;
    size_t len;
} leat__xml;

/* The content of the next element `tag` at any depth; *rest continues behind it. False when
 * there is none. `rest` may be `in`. */
bool leat__xml_next(leat__xml in, const char *tag, leat__xml *inner, leat__xml *rest);
/* The text of the first element `tag`, decoded, replacing the content of `out`; false when there
 * is none or no memory. */
bool leat__xml_text(leat__xml in, const char *tag, leat__buf *out);
/* Appends text with the five special characters as entities. */
int leat__xml_escape(leat__buf *out, const char *text);

#endif
