/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/sha256.h"

/* FIPS 180-4 examples. */
static void known_digests(void **state)
{
    char hex[65];
    (void)state;
    assert_string_equal(leat__sha256_hex("", 0, hex),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(leat__sha256_hex("abc", 3, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_string_equal(leat__sha256_hex(two, strlen(two), hex),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    leat__sha256 s;
    uint8_t digest[LEAT__SHA256_BYTES];
    leat__sha256_init(&s);
    for (int i = 0; i < 1000000; i += 8) leat__sha256_update(&s, "aaaaaaaa", 8);
    leat__sha256_final(&s, digest);
    assert_string_equal(leat__to_hex(digest, sizeof digest, hex),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void streaming_equals_one_call(void **state)
{
    uint8_t data[300], a[LEAT__SHA256_BYTES], b[LEAT__SHA256_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len <= sizeof data; len++) {
        leat__sha256 s;
        leat__sha256_of(data, len, a);
        leat__sha256_init(&s);
        for (size_t at = 0; at < len; at += 13)
            leat__sha256_update(&s, data + at, len - at < 13 ? len - at : 13);
        leat__sha256_final(&s, b);
        assert_memory_equal(a, b, sizeof a);
    }
}

/* RFC 4231, cases 1, 2 and 6. */
static void known_macs(void **state)
{
    uint8_t key[131], mac[LEAT__SHA256_BYTES];
    char hex[65];
    (void)state;
    memset(key, 0x0b, 20);
    leat__hmac_sha256(key, 20, "Hi There", 8, mac);
    assert_string_equal(leat__to_hex(mac, sizeof mac, hex),
                        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    leat__hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
    assert_string_equal(leat__to_hex(mac, sizeof mac, hex),
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    const char *text = "Test Using Larger Than Block-Size Key - Hash Key First";
    leat__hmac_sha256(key, sizeof key, text, strlen(text), mac);
    assert_string_equal(leat__to_hex(mac, sizeof mac, hex),
                        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* RFC 4648, section 10. */
static void base64(void **state)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    static const char *const bad[] = {"Z", "Zg=", "Zg==Zg==", "=g==", "Z===", "Zm9*", "Zg=a"};
    char text[64];
    uint8_t back[64];
    size_t len;
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_string_equal(leat__base64_encode(pairs[i][0], strlen(pairs[i][0]), text), pairs[i][1]);
        assert_true(leat__base64_decode(pairs[i][1], back, sizeof back, &len));
        assert_int_equal(len, strlen(pairs[i][0]));
        assert_memory_equal(back, pairs[i][0], len);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(leat__base64_decode(bad[i], back, sizeof back, &len));
    assert_false(leat__base64_decode("Zm9vYmFy", back, 5, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(streaming_equals_one_call),
        cmocka_unit_test(known_macs),
        cmocka_unit_test(base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
