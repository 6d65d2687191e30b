/* SPDX-License-Identifier: Apache-2.0 */
#include "webtest.h"

#include "io/region.h"
#include "io/store.h"

#include "leat_test.h"

static web server;

static void ok(web_request *q)
{
    web_reply(q, "200 OK", "", "fine", 4);
}

/* One GET of the path; server.last has the request. */
static int get(const char *path, leat_error *err)
{
    leat__store *s;
    leat__url u;
    assert_ok(leat__url_parse(&u, path, NULL));
    LEAT_TRY(leat__store_open(&s, path, err));
    leat__call c = {.store = s, .key = u.key};
    c.http = (leat__http_req){.what = "test", .method = "GET"};
    leat__call_header(&c, "range", "bytes=0-1");
    int rc = leat__call_run(&c, err);
    leat__http_req_reset(&c.http);
    leat__store_close(&s);
    return rc;
}

static void begin(void (*answer)(web_request *q))
{
    web_environment();
    web_start(&server, answer, NULL);
    setenv("AWS_ENDPOINT_URL", server.url, 1);
    setenv("AWS_ACCESS_KEY_ID", "ID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET", 1);
    setenv("AWS_REGION", "eu-north-1", 1);
}

static void end(void)
{
    web_stop(&server);
    assert_no_leaks();
}

static void s3_requests_are_signed(void **state)
{
    (void)state;
    begin(ok);
    setenv("AWS_SESSION_TOKEN", "TOKEN", 1);
    assert_ok(get("s3://bucket/a b/c.leat", NULL));
    assert_contains(server.last, "GET /bucket/a%20b/c.leat HTTP/1.1");
    assert_contains(server.last, "Authorization: AWS4-HMAC-SHA256 Credential=ID/");
    assert_contains(server.last, "/eu-north-1/s3/aws4_request");
    assert_contains(server.last,
                    "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token");
    assert_contains(server.last, "x-amz-security-token: TOKEN");
    assert_null(strstr(server.last, "SECRET"));
    unsetenv("AWS_SESSION_TOKEN");
    setenv("LEAT_ANONYMOUS", "1", 1);
    assert_ok(get("s3://other/k", NULL));
    assert_null(strstr(server.last, "Authorization"));
    end();
}

static void azure_requests_are_signed(void **state)
{
    leat_error err;
    char url[128];
    (void)state;
    begin(ok);
    assert_code(LEAT_EPERM, get("az://c/k", &err));
    assert_contains(err.message, "AZURE_STORAGE_ACCOUNT");
    snprintf(url, sizeof url, "%s/devstore", server.url);
    setenv("AZURE_STORAGE_ENDPOINT", url, 1);
    setenv("AZURE_STORAGE_KEY", "a2V5a2V5", 1);
    assert_code(LEAT_EPERM, get("az://c/k", &err));
    assert_contains(err.message, "AZURE_STORAGE_KEY is set, but AZURE_STORAGE_ACCOUNT is not");
    setenv("AZURE_STORAGE_ACCOUNT", "devstore", 1);
    assert_ok(get("az://c/k", NULL));
    assert_contains(server.last, "GET /devstore/c/k HTTP/1.1");
    assert_contains(server.last, "Authorization: SharedKey devstore:");
    assert_contains(server.last, "x-ms-version: ");
    setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=abc", 1);
    assert_ok(get("az://c/k", NULL));
    assert_contains(server.last, "GET /devstore/c/k?sv=1&sig=abc HTTP/1.1");
    assert_null(strstr(server.last, "SharedKey"));
    setenv("AZURE_STORAGE_KEY", "***", 1);
    unsetenv("AZURE_STORAGE_SAS_TOKEN");
    assert_code(LEAT_EPERM, get("az://c/k", &err));
    unsetenv("AZURE_STORAGE_ENDPOINT");
    end();
}

static void gs_requests(void **state)
{
    (void)state;
    begin(ok);
    setenv("GS_ENDPOINT_URL", server.url, 1);
    setenv("GS_ACCESS_KEY_ID", "GOOG", 1);
    setenv("GS_SECRET_ACCESS_KEY", "S", 1);
    assert_ok(get("gs://bucket/k", NULL));
    assert_contains(server.last, "Credential=GOOG/");
    assert_contains(server.last, "/auto/s3/aws4_request");
    unsetenv("GS_ACCESS_KEY_ID");
    unsetenv("GS_SECRET_ACCESS_KEY");
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29", 1);
    assert_ok(get("gs://bucket/k", NULL));
    assert_contains(server.last, "Authorization: Bearer ya29");
    end();
}

static void moved(web_request *q)
{
    if (strstr(q->head, "/eu-north-1/") != NULL)
        web_reply(q, "400 Bad Request", "x-amz-bucket-region: us-west-2\r\n",
                  "<Code>AuthorizationHeaderMalformed</Code>", 41);
    else web_reply(q, "200 OK", "", "fine", 4);
}

static void the_region_follows_the_bucket(void **state)
{
    (void)state;
    begin(moved);
    assert_ok(get("s3://bucket/k", NULL));
    assert_contains(server.last, "/us-west-2/s3/");
    assert_int_equal(server.requests, 2);
    end();
}

static void moved_by_the_body(web_request *q)
{
    static const char answer[] =
        "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>";
    if (strstr(q->head, "/eu-north-1/") != NULL)
        web_reply(q, "400 Bad Request", "", answer, sizeof answer - 1);
    else web_reply(q, "200 OK", "", "fine", 4);
}

static void another_region_is_followed_and_noted(void **state)
{
    char text[LEAT__REGION_TEXT];
    (void)state;
    begin(moved_by_the_body);
    assert_ok(get("s3://bucket/k", NULL));
    assert_contains(server.last, "/us-west-2/s3/");
    assert_int_equal(server.requests, 2);
    assert_true(leat__region_warning(LEAT__REGION_COMMAND, text));
    assert_contains(text, "us-west-2");
    assert_contains(text, "eu-north-1");
    end();
}

static void moved_to_nonsense(web_request *q)
{
    web_reply(q, "301 Moved", "x-amz-bucket-region: evil.example/\r\n", "", 0);
}

/* The region becomes part of a host name. */
static void a_region_with_odd_characters_is_not_followed(void **state)
{
    (void)state;
    begin(moved_to_nonsense);
    assert_code(LEAT_EIO, get("s3://bucket/k", NULL));
    assert_int_equal(server.requests, 1);
    end();
}

static int issued; /* session tokens */

/* The first token has expired, which an answer to HEAD says only with its status. */
static void first_token_expired(web_request *q)
{
    char body[128];
    if (strstr(q->head, "GET /creds") != NULL) {
        int n = snprintf(body, sizeof body,
                         "{\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"s\",\"Token\":\"t%d\"}", ++issued);
        web_reply(q, "200 OK", "", body, (size_t)n);
    } else if (strstr(q->head, "token: t1") != NULL) web_reply(q, "400 Bad Request", "", "", 0);
    else web_reply(q, strstr(q->head, "/odd") != NULL ? "400 Bad Request" : "200 OK", "", "fine", 4);
}

static int head(leat__store *s, const char *key, leat_error *err)
{
    leat__call c = {.store = s, .key = key};
    c.http = (leat__http_req){.what = "test", .method = "HEAD"};
    int rc = leat__call_run(&c, err);
    leat__http_req_reset(&c.http);
    return rc;
}

static void tokens_that_expire_before_a_head(void **state)
{
    leat__store *s;
    leat_error err;
    char creds[128];
    (void)state;
    begin(first_token_expired);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    snprintf(creds, sizeof creds, "%s/creds", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds, 1);
    issued = 0;
    assert_ok(leat__store_open(&s, "s3://bucket/k", NULL));
    assert_ok(head(s, "k", NULL));
    assert_int_equal(issued, 2);
    assert_code(LEAT_EIO, head(s, "odd", &err)); /* 400 for another reason: renewed once */
    assert_contains(err.message, "the server answered 400");
    assert_int_equal(issued, 3);
    leat__store_close(&s);
    unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    end();
}

static void lacks_it(web_request *q)
{
    web_reply(q, "501 Not Implemented", "", "<Error><Code>NotImplemented</Code></Error>", 42);
}

static void operations_that_a_server_lacks(void **state)
{
    static const struct {
        const char *method, *query, *header, *words;
    } rows[] = {
        {"PUT", NULL, "if-none-match",
         "(it cannot write an object only if none exists (If-None-Match): `force` "},
        {"POST", "uploadId", "if-none-match", "(If-None-Match)"}, /* the parts have arrived */
        {"POST", "uploads", NULL,
         "(it has no multipart uploads: files of at most 16 MiB need none (`shard_bytes` "},
        {"PUT", "partNumber", NULL, "multipart uploads"},
        {"GET", "uploads", NULL, "(it cannot list unfinished uploads)"},
        {"GET", "list-type", NULL, "ListObjectsV2: name the objects in a manifest"},
        {"GET", NULL, "range", "cannot read ranges: copy the file to a local disk"},
        {"DELETE", NULL, NULL, "cannot remove objects"},
        {"GET", NULL, NULL, "lacks this operation"},
    };
    leat__store *s;
    (void)state;
    begin(lacks_it);
    assert_ok(leat__store_open(&s, "s3://bucket/k", NULL));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_error err;
        leat__call c = {.store = s, .key = "k"};
        c.http = (leat__http_req){.what = "test", .method = rows[i].method};
        if (rows[i].method[0] == 'P') c.http.send = "";
        if (rows[i].query != NULL) leat__call_query(&c, rows[i].query, "1");
        if (rows[i].header != NULL) leat__call_header(&c, rows[i].header, "*");
        assert_code(LEAT_ENOTSUP, leat__call_run(&c, &err));
        assert_contains(err.message, "the server answered 501 NotImplemented (it ");
        assert_contains(err.message, rows[i].words);
        leat__http_req_reset(&c.http);
    }
    leat__store_close(&s);
    end();
}

static void wrong_endpoints(void **state)
{
    leat_error err;
    (void)state;
    begin(ok);
    setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000", 1);
    assert_code(LEAT_EINVAL, get("s3://bucket/k", &err));
    assert_contains(err.message, "AWS_ENDPOINT_URL");
    end();
}

int main(void)
{
    leat__http *http;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s3_requests_are_signed),
        cmocka_unit_test(azure_requests_are_signed),
        cmocka_unit_test(gs_requests),
        cmocka_unit_test(another_region_is_followed_and_noted),
        cmocka_unit_test(a_region_with_odd_characters_is_not_followed),
        cmocka_unit_test(the_region_follows_the_bucket),
        cmocka_unit_test(tokens_that_expire_before_a_head),
        cmocka_unit_test(operations_that_a_server_lacks),
        cmocka_unit_test(wrong_endpoints),
    };
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
