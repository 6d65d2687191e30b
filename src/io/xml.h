/* SPDX-License-Identifier: Apache-2.0
 *
 * Minimal XML for the answers of object stores: finds elements by name and their text. No namespaces; only
 * the five standard entities and numeric characters. The output is never larger than the input, so an answer
 * cannot exhaust memory.
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

/* Finds the next element `tag` at any depth; *rest starts after it. False when there is none.
 * `rest` may be `in`. */
bool leat__xml_next(leat__xml in, const char *tag, leat__xml *inner, leat__xml *rest);
/* Sets `out` to the decoded text of the first element `tag`; false when there is none or out of memory. */
bool leat__xml_text(leat__xml in, const char *tag, leat__buf *out);
/* Appends text with the five special characters as entities. */
int leat__xml_escape(leat__buf *out, const char *text);

#endif
