/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares with signatures of datatrove 0.10.1 (spaCy 3.8.18, MinhashConfig with 2 buckets of 2 hashes) and
 * of datasketch 2.0.0 (num_perm=4), for the shingles that minhash.h defines.
 */
#include "leat_test.h"

#include "base/num.h"
#include "text/minhash.h"

static const char *const text[] = {
    "The quick brown fox jumps over the lazy dog.",
    "I don't think we'd cannot go: it's 12.5km, 1,000,000 € (or 5£) — im sure they're gonna pay!",
    "Größe ÉCOLE İstanbul ΟΔΟΣ Σίσυφος x≠y 한국어 텍스트 ©2024 a©b №5 ‘quoted’ word",
    "one two three four",
};

static void check(uint32_t family, uint32_t words, uint32_t chars, int which, uint32_t shingles,
                  const uint64_t want[4])
{
    leat__minhasher m;
    uint64_t values[4] = {0};
    size_t len = strlen(text[which]);
    assert_ok(leat__minhasher_init(&m, family, words, chars, 4, NULL));
    assert_ok(leat__minhasher_reserve(&m, len, NULL));
    memcpy(m.text, text[which], len);
    assert_int_equal(leat__minhasher_sign(&m, len, values), shingles);
    for (int i = 0; i < 4; i++) assert_int_equal(values[i], want[i]);
    leat__minhasher_reset(&m);
    assert_no_leaks();
}

static void datatrove(void **state)
{
    const uint32_t f = LEAT__MINHASH_DATATROVE;
    check(f, 5, 0, 0, 5,
          (uint64_t[]){0x1a10a3766a5db31, 0x7cf7c5470a629, 0x2fb173cb0ecaa96, 0xcb37cf59dcb52fb});
    check(f, 5, 0, 1, 23,
          (uint64_t[]){0x8f87b260e0a161, 0xeae94144fb6efb, 0x14f62abbbce5ddb, 0x2b678306f6c33});
    check(f, 5, 0, 2, 16,
          (uint64_t[]){0x2e847ace5db55f, 0x23f928e3f8cecc3, 0x25fb5f7f5ab46c, 0x2e326a97cbeba26});
    check(f, 5, 0, 3, 0, (uint64_t[]){0, 0, 0, 0});
}

static void datasketch(void **state)
{
    const uint32_t f = LEAT__MINHASH_DATASKETCH;
    check(f, 5, 0, 0, 5, (uint64_t[]){0x129709bb, 0x194807b, 0x61dcf577, 0x1fa75b75});
    check(f, 5, 0, 1, 14, (uint64_t[]){0x221c4292, 0x38a5321, 0xe40fcb5, 0x20c54f55});
    check(f, 5, 0, 2, 9, (uint64_t[]){0x1abfa908, 0x5a825093, 0x49599d8, 0x18b7d544});
    check(f, 5, 0, 3, 1, (uint64_t[]){0xbb0f11d, 0xe9ea07df, 0x5293c6d5, 0x3808f4bf});
    check(f, 0, 7, 2, 67, (uint64_t[]){0x2e0b204, 0x13f05b7, 0x3b9384b, 0x7810273});
}

static void datasketch_legacy(void **state)
{
    const uint32_t f = LEAT__MINHASH_DATASKETCH_LEGACY;
    check(f, 5, 0, 0, 5, (uint64_t[]){0x233e67be, 0x35a7c12f, 0xc077c84, 0x19de5ec5});
    check(f, 5, 0, 2, 9, (uint64_t[]){0xac48bd8, 0x3e702917, 0x10a7ecbb, 0x3703f60});
    check(f, 5, 0, 3, 1, (uint64_t[]){0xf6b3dca4, 0x4c81c25e, 0x1401dae3, 0x4ffe8590});
    check(f, 0, 7, 2, 67, (uint64_t[]){0x59f1814, 0x42c982c, 0x2fd50a8, 0xe7a684f});
}

/* More shingles than are processed together, and texts with the largest growth. */
static void long_texts(void **state)
{
    leat__minhasher m;
    uint64_t values[8], again[8];
    assert_ok(leat__minhasher_init(&m, LEAT__MINHASH_DATATROVE, 1, 0, 8, NULL));
    static const char *const unit[] = {"\uac01 ", "ima ", "a ", "©", "\u037e"};
    for (size_t k = 0; k < LEAT_COUNT(unit); k++) {
        size_t n = strlen(unit[k]), len = 100000 / n * n;
        assert_ok(leat__minhasher_reserve(&m, len, NULL));
        for (size_t i = 0; i < len; i += n) memcpy(m.text + i, unit[k], n);
        uint32_t count = leat__minhasher_sign(&m, len, values);
        assert_true(count >= len / n);
        memcpy(m.text, unit[k], n);
        leat__minhasher_sign(&m, n, again);
        assert_memory_equal(values, again, sizeof values); /* a set: repeats do not matter */
        assert_true(leat__minhash_band(values, 8) == leat__minhash_band(again, 8));
    }
    leat__minhasher_reset(&m);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(datatrove), cmocka_unit_test(datasketch),
                                       cmocka_unit_test(datasketch_legacy), cmocka_unit_test(long_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
