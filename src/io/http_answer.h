/* SPDX-License-Identifier: Apache-2.0
 *
 * What the head of an answer says: the fields of a request that belong to its answer.
 */
#ifndef LEAT_IO_HTTP_ANSWER_H
#define LEAT_IO_HTTP_ANSWER_H

#include "io/http.h"

void leat__http_answer_clear(leat__http_req *r);
/* One line of the head, without its end. A Content-Range that makes no sense is none. */
void leat__http_answer_header(leat__http_req *r, const char *line, size_t len);

#endif
