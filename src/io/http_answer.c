/* SPDX-License-Identifier: Apache-2.0 */
#include "io/http_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

#define RETRY_AFTER_MAX_S 30u

static void copy_value(char *to, size_t size, const char *value, size_t len)
{
    len = LEAT_MIN(len, size - 1);
    memcpy(to, value, len);
    to[len] = '\0';
}

static void read_content_range(leat__http_req *r, const char *value)
{
    unsigned long long first, last, total;
    r->odd_range = true;
    if (strstr(value, "/-") != NULL || sscanf(value, "bytes %llu-%llu/%llu", &first, &last, &total) != 3)
        return;
    if (last < first || last >= total) return;
    r->has_range = true;
    r->odd_range = false;
    r->range_first = first;
    r->range_last = last;
    r->range_total = total;
}

void leat__http_answer_clear(leat__http_req *r)
{
    r->status = 0;
    r->etag[0] = r->modified[0] = r->region[0] = '\0';
    r->length = UINT64_MAX;
    r->has_range = r->odd_range = r->refused = false;
    r->range_first = r->range_last = r->range_total = 0;
    r->retry_after_s = 0;
    leat__buf_clear(&r->body);
}

static bool header_is(const char *line, size_t len, const char *name)
{
    size_t n = strlen(name);
    return len > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

void leat__http_answer_header(leat__http_req *r, const char *line, size_t len)
{
    const char *value = memchr(line, ':', len);
    if (value == NULL) return;
    for (value++; value < line + len && (*value == ' ' || *value == '\t');) value++;
    size_t n = (size_t)(line + len - value);
    char text[160];
    copy_value(text, sizeof text, value, n);
    if (header_is(line, len, "etag")) copy_value(r->etag, sizeof r->etag, value, n);
    else if (header_is(line, len, "last-modified")) copy_value(r->modified, sizeof r->modified, value, n);
    else if (header_is(line, len, "x-amz-bucket-region")) copy_value(r->region, sizeof r->region, value, n);
    else if (header_is(line, len, "content-range")) read_content_range(r, text);
    else if (header_is(line, len, "content-length")) r->length = strtoull(text, NULL, 10);
    else if (header_is(line, len, "retry-after"))
        r->retry_after_s = (uint32_t)LEAT_MIN(strtoul(text, NULL, 10), RETRY_AFTER_MAX_S);
}
