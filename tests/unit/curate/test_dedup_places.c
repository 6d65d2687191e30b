/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include "curate/dedup_places.h"

/* Compressed output: ranges of documents, but no places. Plain output is compared by test_dedup_parts.c. */
static void ranges_are_stored_and_read(void **state)
{
    static const uint64_t base[] = {0, 3, 7};
    leat_dedup_opts o = {.compress = 1};
    leat_dedup_stats st = {0};
    char work[4096];
    snprintf(work, sizeof work, "%s", in_box("."));
    leat__part part = {.work = work, .token = "t", .parts = 2, .number = 1};
    leat__dedup d = {.opts = &o, .stats = &st, .work = work, .part = &part};
    leat__part_place place;
    leat__dedup_places p;
    leat_error err = {0};
    (void)state;
    leat__dedup_places_init(&p);
    assert_int_equal(leat__dedup_shard_bytes(&d), 1 << 30);
    assert_int_equal(leat__dedup_places_write(&d, base, &err), 0);
    assert_int_equal(leat__dedup_places_part(&d, &p, &place, &err), 0);
    assert_int_equal(d.base, 3);
    assert_int_equal(d.end, 7);
    assert_null(d.place);
    leat__dedup_places_reset(&p);
    leat__dedup_places_init(&p);
    o.compress = 0; /* needs places */
    assert_int_equal(leat__dedup_places_read(&d, &p, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "places.json: is damaged"));
    leat__dedup_places_reset(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges_are_stored_and_read)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
