/* SPDX-License-Identifier: Apache-2.0 */
#include "io/http_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/curl_api.h"
#include "io/hide.h"
#include "io/xml.h"

#define RETRY_AFTER_MAX_S 30u
#define TEXT_MAX (1u << 20) /* bytes of a message of the server */

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

bool leat__http_transient(const leat__http_req *r)
{
    return r->status == 0 || r->status == 408 || r->status == 429 || (r->status >= 500 && r->status != 501);
}

bool leat__http_reads(const leat__http_req *r)
{
    return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
}

static int code_of_status(const leat__http_req *r)
{
    switch (r->status) {
    case 401:
    case 403: return LEAT_EPERM;
    case 404:
    case 410: return LEAT_ENOENT;
    case 409:
    case 412:
        return leat__http_reads(r) ? LEAT_EIO
                                   : LEAT_EEXIST; /* a read does not require that something is absent */
    case 501: return LEAT_ENOTSUP;
    default: return LEAT_EIO;
    }
}

/* Removes secrets of the request from the server's text. */
static void hide_secrets(leat__http_req *r, leat__buf *text)
{
    if (text->len == 0) return;
    char *t = text->data;
    (void)leat__buf_str(text); /* adds a NUL */
    leat__hide_url(t, leat__buf_str(&r->url), leat__str_web_prefix(r->what) > 0);
#ifdef LEAT_HAVE_CURL
    for (const struct curl_slist *h = r->headers; h != NULL; h = h->next) leat__hide_header(t, h->data);
#endif
    text->len = strlen(t);
}

int leat__http_explain(leat__http_req *r)
{
    leat__buf code, text;
    leat__buf_init(&code, LEAT__MEM_IO, TEXT_MAX);
    leat__buf_init(&text, LEAT__MEM_IO, TEXT_MAX);
    leat__xml xml = {r->body.data, r->body.len};
    bool known = leat__xml_text(xml, "Code", &code);
    bool told = leat__xml_text(xml, "Message", &text);
    hide_secrets(r, &code);
    hide_secrets(r, &text);
    r->rc = leat__fail(&r->err, code_of_status(r), "%s: %s: the server answered %ld%s%.60s%s%.200s", r->what,
                       r->method, r->status, known ? " " : "", known ? leat__buf_str(&code) : "",
                       told ? ": " : "", told ? leat__buf_str(&text) : "");
    leat__buf_reset(&code);
    leat__buf_reset(&text);
    return r->rc;
}
