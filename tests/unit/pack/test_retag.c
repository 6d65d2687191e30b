/* SPDX-License-Identifier: Apache-2.0 */
#include "../io/iotest.h"

#include <leat/pack.h>

#include "base/mem.h"
#include "base/num.h"
#include "pack/reader.h"

#include "leat_test.h"

static void names_with_a_tag(void **state)
{
    static const char *const rows[][3] = {
        {"p-00000-1.leat", "ab", "p-00000-1-ab.leat"},
        {"p-00000-1.leat", "", "p-00000-1.leat"},
        {"p-00000-1", "ab", "p-00000-1-ab"},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        char *name = leat__shard_tagged(rows[i][0], rows[i][1]);
        assert_string_equal(name, rows[i][2]);
        leat__free(name);
    }
    assert_no_leaks();
}

/* The copy has other names of the same shards; everything else is the same. */
static void a_set_with_other_names(void **state)
{
    char command[2048], *dir = it_dir(), *to = strdup(it_path(dir, "pack-2.0-set.leat"));
    const char *data = getenv("LEAT_TEST_DATA");
    leat_pack *pack, *copy;
    leat_pack_info a, b;
    uint64_t check;
    (void)state;
    snprintf(command, sizeof command, "%s/pack-2.0-set.leat", data);
    assert_ok(leat_pack_open(&pack, command, NULL, NULL));
    assert_ok(leat__set_retag(pack, to, "abc", NULL));
    snprintf(command, sizeof command, "cp '%s/pack-2.0-set-00000.leat' '%s/pack-2.0-set-00000-abc.leat'",
             data, dir);
    assert_int_equal(system(command), 0);
    assert_ok(leat_pack_open(&copy, to, NULL, NULL));
    (void)leat_pack_info_read(pack, &a, sizeof a);
    (void)leat_pack_info_read(copy, &b, sizeof b);
    assert_ok(leat__pack_check(to, &check, NULL));
    assert_true(b.fingerprint == check && a.fingerprint != check);
    assert_int_equal(a.samples, b.samples);
    assert_int_equal(a.max_page_bytes, b.max_page_bytes);
    assert_int_equal(a.max_sample_bytes, b.max_sample_bytes);
    assert_string_equal(leat_pack_schema(pack), leat_pack_schema(copy));
    assert_string_equal(leat_pack_provenance(pack), leat_pack_provenance(copy));
    assert_int_equal(leat_pack_blob_count(pack), leat_pack_blob_count(copy));
    assert_true(leat__set_has(to, "pack-2.0-set-00000-abc.leat"));
    leat_pack_close(&copy);
    leat_pack_close(&pack);
    free(to);
    it_rmdir(dir);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_with_a_tag),
        cmocka_unit_test(a_set_with_other_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
