/* SPDX-License-Identifier: Apache-2.0
 *
 * Header, footer and directory: round trips, every damaged byte, impossible numbers.
 */
#include "packtest.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "pack/layout.h"

/* Footers of a file with 10 samples in 2 pages and one section: in whole blocks, and unpadded. */
static leat__footer blocks_footer(void)
{
    return (leat__footer){.major = 1,
                          .kind = LEAT__PACK_FILE,
                          .file_bytes = 4096 * 8,
                          .samples = 10,
                          .pages = 2,
                          .page_bytes = 65536,
                          .max_page_bytes = 8192,
                          .max_sample_bytes = 5000,
                          .index_offset = 4096 * 3,
                          .index_bytes = 4096,
                          .checks_bytes = 4096,
                          .roots_bytes = 4096,
                          .directory_bytes = 4096,
                          .sections = 1};
}

static leat__footer good_footer(void)
{
    return (leat__footer){.major = 2,
                          .kind = LEAT__PACK_FILE,
                          .file_bytes = 4096 + 7024 + 592 + 3 * 64 + 4096,
                          .samples = 10,
                          .pages = 2,
                          .page_bytes = 65536,
                          .max_page_bytes = 5008,
                          .max_sample_bytes = 5000,
                          .index_offset = 4096 + 7024,
                          .index_bytes = 592,
                          .checks_bytes = 64,
                          .roots_bytes = 64,
                          .directory_bytes = 64,
                          .sections = 1};
}

static void test_header(void **state)
{
    uint8_t block[4096];
    leat__footer f = good_footer(), g;
    leat_error err;
    f.check = 77;
    leat__header_encode(&f, block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), 0);
    assert_int_equal(g.major, 2);
    assert_int_equal(g.minor, 0);
    assert_int_equal(g.file_bytes, f.file_bytes);
    assert_int_equal(g.check, 77);
    assert_int_equal(g.kind, LEAT__PACK_FILE);
    for (int i = 0; i < 4096; i++) {
        block[i] ^= 0x10;
        assert_int_not_equal(leat__header_decode(block, "x", &g, &err), 0);
        block[i] ^= 0x10;
    }
    f.major = 1; /* a file of an older major version has whole blocks */
    leat__header_encode(&f, block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), LEAT_EDATA);
    f = blocks_footer();
    leat__header_encode(&f, block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), 0);
    f.major = 3; /* newer, with a valid check */
    leat__header_encode(&f, block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "3.0"));
    f.major = 0;
    leat__header_encode(&f, block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), LEAT_EFORMAT);
    leat__header_encode_partial(block);
    assert_int_equal(leat__header_decode(block, "x", &g, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "unfinished"));
}

static void footer_comes_back(leat__footer f)
{
    uint8_t block[4096];
    leat__footer g;
    leat_error err;
    leat__footer_encode(&f, block);
    assert_int_equal(leat__footer_decode(block, "x", f.file_bytes, &g, &err), 0);
    assert_memory_equal(&f, &g, sizeof f);
    for (int i = 0; i < 4096; i++) {
        block[i] ^= 1;
        assert_int_equal(leat__footer_decode(block, "x", f.file_bytes, &g, &err), LEAT_EDATA);
        block[i] ^= 1;
    }
    assert_int_equal(leat__footer_decode(block, "x", f.file_bytes + 4096, &g, &err), LEAT_EDATA);
}

static void test_footer(void **state)
{
    footer_comes_back(good_footer());
    footer_comes_back(blocks_footer());
}

/* Makes each number impossible in turn, with a valid check. */
static void test_impossible_footers(void **state)
{
    uint8_t block[4096];
    leat_error err;
    leat__footer g;
#define WRONG_IN(from, change)                                                                               \
    do {                                                                                                     \
        leat__footer f = from;                                                                               \
        uint64_t size = f.file_bytes;                                                                        \
        change;                                                                                              \
        leat__footer_encode(&f, block);                                                                      \
        assert_int_equal(leat__footer_decode(block, "x", size, &g, &err), LEAT_EDATA);                       \
    } while (0)
#define WRONG(change)                                                                                        \
    do {                                                                                                     \
        WRONG_IN(good_footer(), change);                                                                     \
        WRONG_IN(blocks_footer(), change);                                                                   \
    } while (0)
    WRONG(f.major = 0);
    WRONG(f.major = 3);
    WRONG(f.index_offset = 0);
    WRONG(f.index_offset += 1);
    WRONG(f.index_bytes = UINT64_MAX - 4095);
    WRONG(f.checks_bytes = 0);
    WRONG(f.roots_bytes = 8192);
    WRONG(f.sections = 65);
    WRONG(f.sections = UINT64_MAX);
    WRONG(f.samples = UINT64_C(1) << 32);
    WRONG(f.samples = 0);
    WRONG(f.pages = 11);
    WRONG(f.pages = 0);
    WRONG(f.max_page_bytes = 4096 * 3);
    WRONG(f.max_page_bytes = 100);
    WRONG(f.max_page_bytes = 0);
    WRONG(f.max_sample_bytes = 8193);
    WRONG(f.kind = LEAT__PACK_SET);
    /* allowed by only one of the two */
    WRONG_IN(blocks_footer(), f.pages = 3);
    WRONG_IN(blocks_footer(), f.max_page_bytes = 5008);
    WRONG_IN(blocks_footer(), (f.index_offset += 16, f.index_bytes -= 16));
    WRONG_IN(blocks_footer(), (f.index_bytes += 64, f.checks_bytes -= 64));
    WRONG_IN(good_footer(), (f.index_offset += 8, f.index_bytes -= 8));
    WRONG_IN(good_footer(), (f.index_bytes += 16, f.checks_bytes -= 16));
    WRONG_IN(good_footer(), (f.index_bytes -= 64, f.checks_bytes += 64));
    WRONG_IN(good_footer(), (f.roots_bytes += 64, f.directory_bytes -= 64));
    WRONG_IN(good_footer(), f.major = 1);
    WRONG_IN(good_footer(), (f.max_page_bytes = 7024, f.pages = 440, f.samples = 440));
#undef WRONG
#undef WRONG_IN
}

/* `first`: start of the first section. */
static void directory_is_checked(leat__footer f, uint64_t first)
{
    leat_error err;
    leat__buf b;
    leat__section in[3] =
        {
            {1, LEAT__PACK_NO_FIELD, first, 100, 1, 0, 0, 0},
            {4, LEAT__PACK_NO_FIELD, first + 128, 320, 32, 0, 0, 0},
            {10, LEAT__PACK_NO_FIELD, first + 448, 65, 1, 4, 9, f.major == 1 ? 0 : 1000},
        },
                  out[3];
    f.sections = 3;
    leat__buf_init(&b, LEAT__MEM_PACK, 65536);
    for (int i = 0; i < 3; i++) assert_int_equal(leat__section_append(&b, &in[i]), 0);
    assert_int_equal(leat__directory_decode((uint8_t *)b.data, &f, "x", out, &err), 0);
    assert_memory_equal(in, out, sizeof in);
    const struct {
        int at;
        uint64_t value;
    } wrong[] = {{8, first - 16},        {8, first + 64},
                 {64 + 8, first + 192},  {64 + 8, 0},
                 {64 + 16, 321},         {64 + 16, UINT64_MAX - 31},
                 {128 + 16, 5000},       {64 + 24, 0},
                 {128 + 40, UINT64_MAX}, {128 + 40, LEAT__PACK_PACKED_MAX + 1}};
    /* version 1 has no compressed blobs and ignores these bytes */
    size_t count = LEAT_COUNT(wrong) - (f.major == 1 ? 2 : 0);
    for (size_t i = 0; i < count; i++) {
        uint64_t keep = leat__load_u64(b.data + wrong[i].at);
        leat__store_u64(b.data + wrong[i].at, wrong[i].value);
        assert_int_equal(leat__directory_decode((uint8_t *)b.data, &f, "x", out, &err), LEAT_EDATA);
        leat__store_u64(b.data + wrong[i].at, keep);
    }
    if (f.major > 1) { /* part of the index belongs to no section */
        leat__store_u64(b.data + 128 + 16, 64);
        assert_int_equal(leat__directory_decode((uint8_t *)b.data, &f, "x", out, &err), LEAT_EDATA);
    }
    leat__buf_reset(&b);
}

static void test_directory(void **state)
{
    leat__footer f = good_footer();
    assert_int_equal(f.index_offset % 64, 48); /* the first section starts after that */
    directory_is_checked(f, f.index_offset + 16);
    directory_is_checked(blocks_footer(), 4096 * 3);
}

static void test_entries(void **state)
{
    uint8_t b[32];
    leat__page_entry p = {1, 2, 3, UINT64_MAX}, p2;
    leat__sample_entry s = {UINT32_MAX, 16, 3, 4, 5}, s2;
    leat__page_entry_store(b, &p);
    leat__page_entry_load(b, &p2);
    assert_memory_equal(&p, &p2, sizeof p);
    leat__sample_entry_store(b, &s);
    leat__sample_entry_load(b, &s2);
    assert_memory_equal(&s, &s2, sizeof s);
    assert_int_equal(b[4], 16); /* little-endian, as documented */
    assert_int_equal(leat__key_hash("", 0), 0x2d06800538d394c2u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_footer),
        cmocka_unit_test(test_impossible_footers),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_entries),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
