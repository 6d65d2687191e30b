/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the status line and headers of an answer into the request.
 */
#ifndef LEAT_IO_HTTP_ANSWER_H
#define LEAT_IO_HTTP_ANSWER_H

#include "io/http.h"

void leat__http_answer_clear(leat__http_req *r);
/* Parses one header line, without its line end. An invalid Content-Range sets odd_range. */
void leat__http_answer_header(leat__http_req *r, const char *line, size_t len);

#endif
