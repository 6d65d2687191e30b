/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes the secrets of a request from what the server answered: some servers repeat the query or the
 * headers in the text of an error.
 */
#ifndef LEAT_IO_HIDE_H
#define LEAT_IO_HIDE_H

#include <stdbool.h>

/* Replaces by "…", in place, the parts of the header "name: value" that sign a request: access key,
 * signature, token. */
void leat__hide_header(char *text, const char *header);
/* The same for user and password of a URL and the values of its query: all, or, for a query that leat made,
 * those that sign it. */
void leat__hide_url(char *text, const char *url, bool all);

#endif
