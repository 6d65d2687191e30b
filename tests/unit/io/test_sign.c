/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures against the examples published by the vendors: Amazon S3's "Signature Calculations
 * for the Authorization Header" and the SigV4 test suite; Azure's "Authorize with Shared Key".
 */
#include "leat_test.h"

#include "base/sha256.h"
#include "io/sign.h"

#define EXAMPLE_ID "AKIAIOSFODNN7EXAMPLE"
#define EXAMPLE_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static void check_s3(const char *method, const char *path, const char *query, const leat__header *headers,
                     size_t count, const char *payload, const char *signature)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 4096);
    leat__sign_v4 s = {.key_id = EXAMPLE_ID,
                       .secret = EXAMPLE_SECRET,
                       .region = "us-east-1",
                       .service = "s3",
                       .method = method,
                       .path = path,
                       .query = query,
                       .headers = headers,
                       .header_count = count,
                       .payload_hash = payload,
                       .date = "20130524T000000Z"};
    assert_ok(leat__sign_v4_header(&s, &out));
    assert_contains(leat__buf_str(&out), signature);
    assert_contains(leat__buf_str(&out), "Credential=" EXAMPLE_ID "/20130524/us-east-1/s3/aws4_request, ");
    leat__buf_reset(&out);
}

static void s3_examples(void **state)
{
    (void)state;
    const leat__header get[] = {{"x-amz-date", "20130524T000000Z"},
                                {"host", "examplebucket.s3.amazonaws.com"},
                                {"range", "bytes=0-9"},
                                {"x-amz-content-sha256", LEAT__EMPTY_SHA256}};
    check_s3("GET", "/test.txt", "", get, 4, LEAT__EMPTY_SHA256,
             "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    char payload[65];
    leat__sha256_hex("Welcome to Amazon S3.", 21, payload);
    const leat__header put[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                {"host", "examplebucket.s3.amazonaws.com"},
                                {"x-amz-content-sha256", payload},
                                {"x-amz-date", "20130524T000000Z"},
                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    check_s3("PUT", "/test%24file.text", "", put, 5, payload,
             "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    const leat__header plain[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                  {"x-amz-content-sha256", LEAT__EMPTY_SHA256},
                                  {"x-amz-date", "20130524T000000Z"}};
    check_s3("GET", "/", "lifecycle=", plain, 3, LEAT__EMPTY_SHA256,
             "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_s3("GET", "/", "max-keys=2&prefix=J", plain, 3, LEAT__EMPTY_SHA256,
             "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* get-vanilla of the SigV4 test suite. */
static void suite_example(void **state)
{
    (void)state;
    leat__buf out;
    const leat__header h[] = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}};
    leat__buf_init(&out, LEAT__MEM_MISC, 4096);
    leat__sign_v4 s = {.key_id = "AKIDEXAMPLE",
                       .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                       .region = "us-east-1",
                       .service = "service",
                       .method = "GET",
                       .path = "/",
                       .query = "",
                       .headers = h,
                       .header_count = 2,
                       .payload_hash = LEAT__EMPTY_SHA256,
                       .date = "20150830T123600Z"};
    assert_ok(leat__sign_v4_header(&s, &out));
    assert_contains(leat__buf_str(&out),
                    "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    leat__buf_reset(&out);
}

/* The two texts to sign that Azure's page shows. */
static void azure_texts(void **state)
{
    (void)state;
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 4096);
    const leat__header h[] = {{"x-ms-version", "2015-02-21"}, {"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"}};
    const leat__header q[] = {{"timeout", "20"}, {"restype", "container"}, {"comp", "metadata"}};
    leat__sign_azure s = {.account = "myaccount",
                          .key = "a2V5",
                          .method = "GET",
                          .path = "/mycontainer",
                          .query = q,
                          .query_count = 3,
                          .headers = h,
                          .header_count = 2,
                          .content_length = ""};
    assert_ok(leat__sign_azure_text(&s, &out));
    assert_string_equal(leat__buf_str(&out),
                        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
                        "x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\n"
                        "restype:container\ntimeout:20");
    leat__buf_clear(&out);
    const leat__header put[] = {{"content-type", "text/plain; charset=UTF-8"},
                                {"x-ms-date", "Sun, 20 Sep 2009 20:36:40 GMT"},
                                {"x-ms-meta-m1", "v1"},
                                {"x-ms-meta-m2", "v2"},
                                {"x-ms-version", "2009-09-19"},
                                {"range", "bytes=0-1"}};
    leat__sign_azure p = {.account = "testaccount1",
                          .key = "a2V5",
                          .method = "PUT",
                          .path = "/mycontainer/hello.txt",
                          .headers = put,
                          .header_count = 6,
                          .content_length = "11"};
    assert_ok(leat__sign_azure_text(&p, &out));
    assert_string_equal(leat__buf_str(&out),
                        "PUT\n\n\n11\n\ntext/plain; charset=UTF-8\n\n\n\n\n\nbytes=0-1\n"
                        "x-ms-date:Sun, 20 Sep 2009 20:36:40 GMT\nx-ms-meta-m1:v1\nx-ms-meta-m2:v2\n"
                        "x-ms-version:2009-09-19\n/testaccount1/mycontainer/hello.txt");
    leat__buf_clear(&out);
    p.content_length = "0"; /* since 2015-02-21 zero is not written */
    assert_ok(leat__sign_azure_text(&p, &out));
    assert_true(strncmp(leat__buf_str(&out), "PUT\n\n\n\n\ntext", 12) == 0);
    leat__buf_clear(&out);
    assert_ok(leat__sign_azure_header(&s, &out));
    assert_true(strncmp(leat__buf_str(&out), "SharedKey myaccount:", 20) == 0);
    assert_int_equal(out.len, 20 + 44);
    s.key = "not base64";
    assert_code(LEAT_EINVAL, leat__sign_azure_header(&s, &out));
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s3_examples),
        cmocka_unit_test(suite_example),
        cmocka_unit_test(azure_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
