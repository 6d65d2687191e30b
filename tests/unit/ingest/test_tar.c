/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/tar.h"

typedef struct archive {
    leat__buf bytes;
    leat__stream *stream;
    leat__tar tar;
} archive;

static void begin(archive *a)
{
    memset(a, 0, sizeof *a);
    leat__buf_init(&a->bytes, LEAT__MEM_INGEST, 1u << 24);
}

static void open_archive(archive *a, size_t len)
{
    assert_int_equal(leat__stream_open_memory(&a->stream, "a.tar", a->bytes.data, len, NULL), 0);
    leat__tar_init(&a->tar, a->stream);
}

static void shut(archive *a)
{
    leat__tar_reset(&a->tar);
    leat__stream_close(&a->stream);
}

static void end(archive *a)
{
    shut(a);
    leat__buf_reset(&a->bytes);
}

static void expect(archive *a, const char *name, const char *content)
{
    leat__tar_member m;
    bool over;
    leat_error err = {0};
    char buf[4096] = "";
    if (leat__tar_next(&a->tar, &m, &over, &err) != 0) fail_msg("%s", err.message);
    assert_false(over);
    assert_string_equal(m.name, name);
    assert_int_equal(m.name_len, strlen(name));
    assert_int_equal(m.size, strlen(content));
    assert_int_equal(leat__tar_read(&a->tar, buf, (size_t)m.size, NULL), 0);
    assert_memory_equal(buf, content, (size_t)m.size);
    assert_memory_equal(a->bytes.data + m.offset, content, (size_t)m.size);
}

static void expect_end(archive *a)
{
    leat__tar_member m;
    bool over;
    assert_int_equal(leat__tar_next(&a->tar, &m, &over, NULL), 0);
    assert_true(over);
}

static void reads_ustar_pax_and_long_names(void **state)
{
    archive a;
    char longest[301], pax[400], record[360];
    begin(&a);
    memset(longest, 'x', 300);
    longest[300] = 0;
    tar_text(&a.bytes, "./plain.txt", "hello");
    tar_header(&a.bytes, "folder/", 0, '5');
    tar_header(&a.bytes, "././@LongLink", 301, 'L'); /* GNU */
    tar_data(&a.bytes, longest, 301);
    tar_text(&a.bytes, "cut", "long");
    int n = snprintf(record, sizeof record, " path=%s\n", longest);
    n = snprintf(pax, sizeof pax, "%d%s", n + 3, record);
    tar_header(&a.bytes, "PaxHeaders/x", (uint64_t)n, 'x');
    tar_data(&a.bytes, pax, (size_t)n);
    tar_text(&a.bytes, "cut", "pax");
    tar_text(&a.bytes, "empty", "");
    tar_end(&a.bytes);
    open_archive(&a, a.bytes.len);
    expect(&a, "plain.txt", "hello");
    leat__tar_member m;
    bool over;
    assert_int_equal(leat__tar_next(&a.tar, &m, &over, NULL), 0);
    assert_int_equal(m.type, '5');
    expect(&a, longest, "long");
    expect(&a, longest, "pax");
    expect(&a, "empty", "");
    expect_end(&a);
    end(&a);
}

static void unread_data_is_skipped(void **state)
{
    archive a;
    leat__tar_member m;
    bool over;
    char two[2];
    begin(&a);
    tar_text(&a.bytes, "one", "0123456789");
    tar_text(&a.bytes, "two", "abc");
    tar_end(&a.bytes);
    open_archive(&a, a.bytes.len);
    assert_int_equal(leat__tar_next(&a.tar, &m, &over, NULL), 0);
    assert_int_equal(leat__tar_read(&a.tar, two, 2, NULL), 0);
    assert_int_equal(leat__tar_read(&a.tar, two, 9, NULL), LEAT_EINVAL);
    expect(&a, "two", "abc");
    expect_end(&a);
    end(&a);
}

static void prefix_of_ustar_is_joined(void **state)
{
    archive a;
    begin(&a);
    tar_header(&a.bytes, "name.jpg", 3, '0');
    char *h = a.bytes.data;
    memcpy(h + 345, "some/folder", 11);
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += (uint8_t)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    tar_data(&a.bytes, "abc", 3);
    tar_end(&a.bytes);
    open_archive(&a, a.bytes.len);
    expect(&a, "some/folder/name.jpg", "abc");
    end(&a);
}

static int read_through(archive *a, size_t len, leat_error *err)
{
    leat__tar_member m;
    bool over = false;
    int rc = 0;
    open_archive(a, len);
    while (rc == 0 && !over) rc = leat__tar_next(&a->tar, &m, &over, err);
    shut(a);
    return rc;
}

static void every_truncation_is_detected(void **state)
{
    archive a;
    begin(&a);
    tar_text(&a.bytes, "one", "0123456789");
    tar_text(&a.bytes, "two", "abc");
    tar_end(&a.bytes);
    size_t whole = a.bytes.len - 512; /* one block of zeros is enough */
    for (size_t len = 0; len < whole; len++) {
        leat_error err = {0};
        assert_int_equal(read_through(&a, len, &err), LEAT_EDATA);
        assert_non_null(strstr(err.message, "truncated"));
        assert_true(err.offset >= 0 && (size_t)err.offset <= len);
    }
    assert_int_equal(read_through(&a, whole, NULL), 0);
    end(&a);
}

static void sparse_and_damaged_are_refused(void **state)
{
    archive a;
    leat_error err = {0};
    begin(&a);
    tar_header(&a.bytes, "holes", 0, 'S');
    tar_end(&a.bytes);
    assert_int_equal(read_through(&a, a.bytes.len, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "sparse"));
    end(&a);
    static const char *const pax[] = {
        "22 GNU.sparse.major=1\n", "99 path=x\n", "path=x\n", "3 \n", "9 pathx\n",
        "12 size=12x\n",           "0 path=x\n",  "7 a=b"};
    for (size_t i = 0; i < sizeof pax / sizeof pax[0]; i++) {
        begin(&a);
        tar_header(&a.bytes, "p", strlen(pax[i]), 'x');
        tar_data(&a.bytes, pax[i], strlen(pax[i]));
        tar_text(&a.bytes, "one", "1");
        tar_end(&a.bytes);
        int rc = read_through(&a, a.bytes.len, &err);
        assert_int_equal(rc, i == 0 ? LEAT_EFORMAT : LEAT_EDATA);
        end(&a);
    }
    begin(&a);
    tar_text(&a.bytes, "one", "1");
    tar_end(&a.bytes);
    for (int i = 0; i < 512; i++) {
        a.bytes.data[i] ^= 1;
        assert_int_equal(read_through(&a, a.bytes.len, NULL), LEAT_EDATA);
        a.bytes.data[i] ^= 1;
    }
    end(&a);
}

static void huge_sizes_do_not_allocate(void **state)
{
    archive a;
    begin(&a);
    tar_header(&a.bytes, "p", 077777777777, 'x'); /* an extended header of 8 GiB */
    open_archive(&a, a.bytes.len);
    leat__tar_member m;
    bool over;
    leat_error err = {0};
    assert_int_equal(leat__tar_next(&a.tar, &m, &over, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "too large"));
    end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ustar_pax_and_long_names), cmocka_unit_test(unread_data_is_skipped),
        cmocka_unit_test(prefix_of_ustar_is_joined),      cmocka_unit_test(every_truncation_is_detected),
        cmocka_unit_test(sparse_and_damaged_are_refused), cmocka_unit_test(huge_sizes_do_not_allocate),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
