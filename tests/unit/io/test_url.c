/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "io/url.h"

static void schemes_and_parts(void **state)
{
    leat__url u;
    (void)state;
    assert_false(leat__path_remote("data/s3://x"));
    assert_false(leat__path_remote("s3:/x"));
    assert_ok(leat__url_parse(&u, "s3://my-bucket/a/b c.leat", NULL));
    assert_int_equal(u.scheme, LEAT__SCHEME_S3);
    assert_int_equal(u.bucket_len, 9);
    assert_string_equal(u.key, "a/b c.leat");
    assert_ok(leat__url_parse(&u, "gs://b", NULL));
    assert_string_equal(u.key, "");
    assert_ok(leat__url_parse(&u, "https://host:81/p/x?y=1", NULL));
    assert_string_equal(u.key, "/p/x?y=1");
    assert_int_equal(u.bucket_len, strlen("https://host:81"));
    const char *const bad[] = {"s3://",     "s3:///key",  "s3://a b/k",   "s3://a@b/k", "s3://.a/k",
                               "http:///x", "s3://b/k\n", "http://h/a b", "file.leat"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(LEAT_EINVAL, leat__url_parse(&u, bad[i], NULL));
    leat_error err;
    assert_code(LEAT_EINVAL, leat__url_parse(&u, "s3://b/a b\t", &err)); /* keys may have blanks */
    assert_null(strstr(err.message, "blank"));
    assert_non_null(
        strstr(err.message, "s3://b/a b\\x09: has a control character, such as a tab or a line break"));
    assert_code(LEAT_EINVAL, leat__url_parse(&u, "http://h/a b", &err));
    assert_non_null(strstr(err.message, "%20"));
}

static void encoding(void **state)
{
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 1024);
    assert_ok(leat__url_encode(&b, "a/b c+d~é%", 11, true));
    assert_string_equal(leat__buf_str(&b), "a/b%20c%2Bd~%C3%A9%25");
    b.len = leat__url_decode(b.data, b.len);
    assert_memory_equal(b.data, "a/b c+d~é%", 11);
    leat__buf_clear(&b);
    assert_ok(leat__buf_puts(&b, "a+b%2Bc%20d%"));
    b.len = leat__url_decode(b.data, b.len);
    assert_int_equal(b.len, 8);
    assert_memory_equal(b.data, "a b+c d%", 8);
    leat__buf_clear(&b);
    assert_ok(leat__url_fit(&b, "a b/\u00e4#1%20%zz%.jpg?sig=1&x=(y)"));
    assert_string_equal(leat__buf_str(&b), "a%20b/%C3%A4%231%20%25zz%25.jpg?sig=1&x=(y)");
    leat__buf_clear(&b);
    leat__pair pairs[] = {{"prefix", "a/b"}, {"list-type", "2"}, {"delimiter", ""}};
    assert_ok(leat__url_query(&b, pairs, 3));
    assert_string_equal(leat__buf_str(&b), "delimiter=&list-type=2&prefix=a%2Fb");
    leat__buf_reset(&b);
    assert_no_leaks();
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    const char *const pairs[][2] = {
        {"s3://b/k?x", "s3://b/k?x"},
        {"https://h/p?X-Amz-Signature=abc", "https://h/p?…"},
        {"https://user:secret@h/p", "https://…@h/p"},
        {"local?x", "local?x"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *text = leat__path_display(pairs[i][0]);
        assert_string_equal(text, pairs[i][1]);
        leat__free(text);
    }
    assert_no_leaks();
}

static void keys_have_no_secrets(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"s3://b/a@b?x#y", "s3://b/a@b?x#y"},
        {"a@b?x", "a@b?x"},
        {"http://u:p@h:80/a@b.jpg?s=1", "http://h:80/a@b.jpg"},
        {"https://h?s=u@v", "https://h"},
        {"HTTP://u@h/x#y", "HTTP://h/x"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *text = leat__path_plain(pairs[i][0]);
        assert_string_equal(text, pairs[i][1]);
        leat__free(text);
        assert_int_equal(leat__path_hash(pairs[i][0], 7), leat__path_hash(pairs[i][1], 7));
    }
    assert_int_not_equal(leat__path_hash("http://h/a", 7), leat__path_hash("http://h/b", 7));
    assert_int_not_equal(leat__path_hash("http://h/a", 7), leat__path_hash("https://h/a", 7));
    assert_no_leaks();
}

static void neighbours(void **state)
{
    (void)state;
    const char *const rows[][2] = {
        {"s3://b/a/set.leat", "s3://b/a/x y.leat"},
        {"set.leat", "x y.leat"},
        {"/d/set.leat", "/d/x y.leat"},
        {"https://h/a/set.leat?sig=1/2", "https://h/a/x%20y.leat?sig=1/2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = leat__path_beside(rows[i][0], "x y.leat");
        assert_string_equal(text, rows[i][1]);
        leat__free(text);
    }
    assert_no_leaks();
}

static void dots_are_resolved(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"s3://b/f/../photos/./a.jpg", "s3://b/photos/a.jpg"},
        {"s3://b/../../a", "s3://b/a"},
        {"s3://b/x/y/..", "s3://b/x/"},
        {"s3://b/x/..y/.z/...", "s3://b/x/..y/.z/..."},
        {"https://h/a/../b?q=/../c", "https://h/b?q=/../c"},
        {"s3://b", "s3://b"},
        {"/a/../b", "/a/../b"}, /* the file system does that */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        leat__url_resolve(text);
        assert_string_equal(text, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_and_parts),     cmocka_unit_test(encoding),
        cmocka_unit_test(secrets_are_not_shown), cmocka_unit_test(neighbours),
        cmocka_unit_test(dots_are_resolved),     cmocka_unit_test(keys_have_no_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
