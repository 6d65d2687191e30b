/* SPDX-License-Identifier: Apache-2.0
 *
 * A bucket in memory, served by webtest.h: enough of S3 for tests of writing. Signatures are not
 * checked here (tests/remote has real servers that do).
 */
#ifndef BUCKETTEST_H
#define BUCKETTEST_H

#include "webtest.h"

#define BUCKET_OBJECTS 64

typedef struct bucket_object {
    char *key; /* uploads in progress: "key#part" */
    char *data;
    size_t len;
} bucket_object;

typedef struct bucket {
    pthread_mutex_t lock;
    bucket_object objects[BUCKET_OBJECTS];
    int parts, aborted, completed, conditional;
    int fail_parts;     /* this many parts are answered with 500 first */
    int cut_lists;      /* this many lists are cut off first, with a length that matches */
    int fail_completes; /* this many last requests are answered with 200 and an error in the body */
    int lose_completes; /* this many are answered with 200 and half of a result, and nothing is made */
} bucket;

static inline bucket_object *bucket_find(bucket *b, const char *key, bool make)
{
    bucket_object *hole = NULL;
    for (int i = 0; i < BUCKET_OBJECTS; i++) {
        bucket_object *o = &b->objects[i];
        if (o->key != NULL && strcmp(o->key, key) == 0) return o;
        if (o->key == NULL && hole == NULL) hole = o;
    }
    if (make) hole->key = strdup(key);
    return make ? hole : NULL;
}

static inline void bucket_drop(bucket_object *o)
{
    free(o->key);
    free(o->data);
    *o = (bucket_object){0};
}

static inline void bucket_store(bucket *b, const char *key, const void *data, size_t len)
{
    bucket_object *o = bucket_find(b, key, true);
    free(o->data);
    o->data = malloc(len + 1);
    memcpy(o->data, data, len);
    o->len = len;
}

static inline void bucket_part_name(char *name, size_t size, const char *key, int part)
{
    snprintf(name, size, "%s#%06d", key, part);
}

static inline void bucket_complete(web_request *q, bucket *b, const char *key)
{
    char name[600], *all = malloc(64 << 20);
    size_t len = 0;
    int n = 0;
    const char *error = "<Error><Code>InternalError</Code></Error>";
    if (b->fail_completes > 0) {
        b->fail_completes--;
        web_reply(q, "200 OK", "", error, strlen(error));
    } else if (b->lose_completes > 0) {
        b->lose_completes--;
        web_reply(q, "200 OK", "", "<CompleteMultipartUploadResult><Loc", 35);
    } else {
        for (const char *p = q->body; (p = strstr(p, "<PartNumber>")) != NULL; p++) {
            bucket_part_name(name, sizeof name, key, ++n);
            assert_int_equal(strtol(p + strlen("<PartNumber>"), NULL, 10), n);
            bucket_object *o = bucket_find(b, name, false);
            memcpy(all + len, o->data, o->len);
            len += o->len;
            bucket_drop(o);
        }
        bucket_store(b, key, all, len);
        b->completed++;
        web_reply(q, "200 OK", "", "<CompleteMultipartUploadResult/>", 32);
    }
    free(all);
}

/* The value of a query's parameter, with %2F as '/'; keys are kept as they came. */
static inline void bucket_param(const char *query, const char *name, char *value, size_t size)
{
    const char *at = strstr(query, name);
    size_t n = 0;
    for (at = at != NULL ? at + strlen(name) : ""; *at != '\0' && *at != '&' && n + 1 < size; at++) {
        if (strncmp(at, "%2F", 3) == 0) value[n++] = '/', at += 2;
        else value[n++] = *at;
    }
    value[n] = '\0';
}

/* The folder of a key after the prefix, "" when it is in none; false when an earlier key has
 * it. */
static inline bool bucket_folder(const bucket *b, int i, const char *prefix, char *folder, size_t size)
{
    const char *key = b->objects[i].key, *slash = strchr(key + strlen(prefix), '/');
    *folder = '\0';
    if (slash == NULL) return true;
    snprintf(folder, size, "%.*s", (int)(slash - key) + 1, key);
    for (int j = 0; j < i; j++)
        if (b->objects[j].key != NULL && strncmp(b->objects[j].key, folder, strlen(folder)) == 0)
            return false;
    return true;
}

static inline void bucket_list(web_request *q, bucket *b, const char *query)
{
    static char text[1 << 16];
    char token[64] = "", prefix[256], folder[256] = "";
    int from = 0, shown = 0;
    const char *at = strstr(query, "continuation-token=");
    if (at != NULL) from = (int)strtol(at + strlen("continuation-token="), NULL, 10);
    bucket_param(query, "prefix=", prefix, sizeof prefix);
    bool folders = strstr(query, "delimiter=") != NULL;
    int n = snprintf(text, sizeof text, "<ListBucketResult><EncodingType>url</EncodingType>");
    for (int i = from; i < BUCKET_OBJECTS; i++) {
        const char *key = b->objects[i].key;
        if (key == NULL || strchr(key, '#') != NULL || strncmp(key, prefix, strlen(prefix)) != 0) continue;
        if (folders && !bucket_folder(b, i, prefix, folder, sizeof folder)) continue;
        if (shown++ == 3) { /* pages of three */
            snprintf(token, sizeof token, "<NextContinuationToken>%d</NextContinuationToken>", i);
            break;
        }
        if (*folder != '\0')
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>", folder);
        else
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "<Contents><Key>%s</Key><Size>%zu</Size><ETag>&quot;e&quot;</ETag></Contents>", key,
                          b->objects[i].len);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "%s</ListBucketResult>", token);
    if (b->cut_lists > 0 && b->cut_lists-- > 0) n = (int)(strstr(text, "</Contents>") + 11 - text);
    web_reply(q, "200 OK", "", text, (size_t)n);
}

/* Unfinished uploads, and the parts of one, stored as "key#part". */
static inline void bucket_uploads(web_request *q, bucket *b, const char *key)
{
    static char text[1 << 16];
    size_t len = strlen(key);
    const char *list = len == 0 ? "ListMultipartUploadsResult" : "ListPartsResult";
    int n = snprintf(text, sizeof text, "<%s>", list);
    for (int i = 0; i < BUCKET_OBJECTS; i++) {
        const char *name = b->objects[i].key, *mark = name != NULL ? strchr(name, '#') : NULL;
        if (mark == NULL) continue;
        if (len == 0 && strtol(mark + 1, NULL, 10) == 1)
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "<Upload><Key>%.*s</Key><UploadId>up/1</UploadId>"
                          "<Initiated>today</Initiated></Upload>",
                          (int)(mark - name), name);
        if (len > 0 && (size_t)(mark - name) == len && strncmp(name, key, len) == 0)
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "<Part><PartNumber>%ld</PartNumber><Size>%zu</Size><ETag>\"p\"</ETag></Part>",
                          strtol(mark + 1, NULL, 10), b->objects[i].len);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "</%s>", list);
    web_reply(q, "200 OK", "", text, (size_t)n);
}

static inline void bucket_abort(bucket *b, const char *key)
{
    size_t len = strlen(key);
    b->aborted++;
    for (int i = 0; i < BUCKET_OBJECTS; i++) {
        bucket_object *o = &b->objects[i];
        if (o->key != NULL && strncmp(o->key, key, len) == 0 && o->key[len] == '#') bucket_drop(o);
    }
}

static inline void bucket_get(web_request *q, const bucket_object *o)
{
    char range[128], head[256];
    unsigned long long first = 0, last = o->len - 1, tail;
    if (!web_header(q, "range", range, sizeof range)) {
        web_reply(q, "200 OK", "ETag: \"e\"\r\n", o->data, o->len);
        return;
    }
    if (sscanf(range, "bytes=-%llu", &tail) == 1) first = tail < o->len ? o->len - tail : 0;
    else sscanf(range, "bytes=%llu-%llu", &first, &last);
    snprintf(head, sizeof head, "ETag: \"e\"\r\nContent-Range: bytes %llu-%llu/%zu\r\n", first, last, o->len);
    web_reply(q, "206 Partial Content", head, o->data + first, (size_t)(last - first + 1));
}

static inline void bucket_put(web_request *q, bucket *b, const char *key, const char *query)
{
    char name[600], value[32];
    const char *part = strstr(query, "partNumber=");
    if (part != NULL) {
        if (b->fail_parts > 0) {
            b->fail_parts--;
            web_reply(q, "500 Oh", "", "", 0);
            return;
        }
        b->parts++;
        bucket_part_name(name, sizeof name, key, (int)strtol(part + 11, NULL, 10));
        bucket_store(b, name, q->body, q->body_len);
        web_reply(q, "200 OK", "ETag: \"p\"\r\n", "", 0);
        return;
    }
    bool absent = web_header(q, "if-none-match", value, sizeof value);
    b->conditional += absent;
    if (absent && bucket_find(b, key, false) != NULL) {
        web_reply(q, "412 Precondition Failed", "", "", 0);
        return;
    }
    bucket_store(b, key, q->body != NULL ? q->body : "", q->body_len);
    web_reply(q, "200 OK", "ETag: \"e\"\r\n", "", 0);
}

static inline void bucket_answer(web_request *q)
{
    bucket *b = q->w->cookie;
    char method[16], path[1024], key[512];
    sscanf(q->head, "%15s %1023s", method, path);
    char *query = strchr(path, '?');
    if (query != NULL) *query++ = '\0';
    else query = path + strlen(path);
    const char *slash = strchr(path + 1, '/');
    snprintf(key, sizeof key, "%s", slash != NULL ? slash + 1 : "");
    pthread_mutex_lock(&b->lock);
    bucket_object *o = bucket_find(b, key, false);
    bool uploads = strstr(query, "uploads=") != NULL || strstr(query, "uploadId=") != NULL;
    if (strcmp(method, "GET") == 0 && uploads) bucket_uploads(q, b, key);
    else if (strcmp(method, "GET") == 0 && *key == '\0') bucket_list(q, b, query);
    else if (strcmp(method, "PUT") == 0) bucket_put(q, b, key, query);
    else if (strcmp(method, "POST") == 0 && strstr(query, "uploads=") != NULL)
        web_reply(q, "200 OK", "", "<R><UploadId>up/1</UploadId></R>", 32);
    else if (strcmp(method, "POST") == 0) bucket_complete(q, b, key);
    else if (strcmp(method, "DELETE") == 0) {
        if (strstr(query, "uploadId=") != NULL) bucket_abort(b, key);
        else if (o != NULL) bucket_drop(o);
        web_reply(q, "204 No Content", "", "", 0);
    } else if (o == NULL) web_reply(q, "404 Not Found", "", "", 0);
    else bucket_get(q, o);
    pthread_mutex_unlock(&b->lock);
}

/* Parts that came so far; requests may still be in progress. */
static inline int bucket_parts(bucket *b)
{
    pthread_mutex_lock(&b->lock);
    int parts = b->parts;
    pthread_mutex_unlock(&b->lock);
    return parts;
}

static inline void bucket_start(bucket *b, web *w)
{
    memset(b, 0, sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    web_environment();
    web_start(w, bucket_answer, b);
    setenv("AWS_ENDPOINT_URL", w->url, 1);
    setenv("AWS_ACCESS_KEY_ID", "ID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET", 1);
}

static inline void bucket_stop(bucket *b, web *w)
{
    web_stop(w);
    for (int i = 0; i < BUCKET_OBJECTS; i++) bucket_drop(&b->objects[i]);
}

#endif
