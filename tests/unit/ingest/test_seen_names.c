/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include <stdio.h>
#include <string.h>

#include "ingest/seen_names.h"

static bool torn(leat__seen_names *s, const char *name, uint16_t fields)
{
    bool is;
    assert_int_equal(leat__seen_names_add(s, name, strlen(name), fields, &is, NULL), 0);
    return is;
}

static void parts_are_torn_and_copies_are_not(void **state)
{
    leat__seen_names s = {0};
    assert_false(torn(&s, "a", 1));
    assert_false(torn(&s, "b", 3));
    assert_true(torn(&s, "a", 2));  /* another field: a part */
    assert_false(torn(&s, "b", 1)); /* a field of the first: a copy */
    assert_true(torn(&s, "b", 4));
    assert_true(torn(&s, "b", 0)); /* no field at all */
    leat__seen_names_clear(&s);    /* the next shard */
    assert_false(torn(&s, "a", 2));
    leat__seen_names_reset(&s);
}

static void names_survive_growth(void **state)
{
    leat__seen_names s = {0};
    char name[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 10000; i++) {
            snprintf(name, sizeof name, "%d", i);
            assert_int_equal(torn(&s, name, (uint16_t)(1 << round)), round == 1);
        }
    assert_int_equal(s.count, 10000);
    assert_true(s.slots <= 32768);
    leat__seen_names_reset(&s);
}

static void memory_is_bounded(void **state)
{
    leat__seen_names s = {0};
    bool is;
    int rc = 0;
    for (uint64_t i = 0; i < LEAT__SEEN_NAMES_MAX + 1000; i++)
        rc |= leat__seen_names_add(&s, (const char *)&i, sizeof i, 1, &is, NULL);
    assert_int_equal(rc, 0);
    assert_int_equal(s.count, LEAT__SEEN_NAMES_MAX);
    assert_int_equal(s.slots, 2 * LEAT__SEEN_NAMES_MAX);
    uint64_t early = 5, late = LEAT__SEEN_NAMES_MAX + 5;
    assert_int_equal(leat__seen_names_add(&s, (const char *)&early, sizeof early, 2, &is, NULL), 0);
    assert_true(is);
    assert_int_equal(leat__seen_names_add(&s, (const char *)&late, sizeof late, 2, &is, NULL), 0);
    assert_false(is); /* it was not remembered */
    leat__seen_names_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_torn_and_copies_are_not),
        cmocka_unit_test(names_survive_growth),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
