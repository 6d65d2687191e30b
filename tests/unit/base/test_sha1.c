/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums around the ends of blocks, from Python's hashlib.
 */
#include "leat_test.h"

#include "base/num.h"
#include "base/sha1.h"
#include "base/sha256.h"

static void sums(void **state)
{
    static const struct {
        size_t len;
        const char *hex;
    } want[] = {
        {0, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},   {3, "0c7a623fd2bbc05b06423be359e4021d36e721ad"},
        {55, "8ae2d46729cfe68ff927af5eec9c7d1b66d65ac2"},  {56, "636e2ec698dac903498e648bd2f3af641d3c88cb"},
        {63, "6d942da0c4392b123528f2905c713a3ce28364bd"},  {64, "c6138d514ffa2135bfce0ed0b8fac65669917ec7"},
        {119, "41c89d06001bab4ab78736b44efe7ce18ce6ae08"}, {200, "54d11e99127d159799dbce10f51a75e697780478"},
    };
    uint8_t data[200], sum[LEAT__SHA1_BYTES];
    char hex[2 * LEAT__SHA1_BYTES + 1];
    for (int i = 0; i < 200; i++) data[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < LEAT_COUNT(want); i++) {
        leat__sha1_of(data, want[i].len, sum);
        assert_string_equal(leat__to_hex(sum, sizeof sum, hex), want[i].hex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
