/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the status line and headers of an answer into the request, and says what the answer means.
 */
#ifndef LEAT_IO_HTTP_ANSWER_H
#define LEAT_IO_HTTP_ANSWER_H

#include "io/http.h"

void leat__http_answer_clear(leat__http_req *r);
/* Parses one header line, without its line end. An invalid Content-Range sets odd_range. */
void leat__http_answer_header(leat__http_req *r, const char *line, size_t len);

bool leat__http_reads(const leat__http_req *r); /* GET or HEAD */
/* Formats "METHOD path: answer of the server", with status and code. Returns the error code. */
int leat__http_explain(leat__http_req *r);
/* True when a retry may help: no answer, 408, 429, 5xx. */
bool leat__http_transient(const leat__http_req *r);

#endif
