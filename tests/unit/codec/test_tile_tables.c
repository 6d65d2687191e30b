/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: complete codes open and decode what they encode; all others are refused.
 */
#include "codec/make_tiles.h"

static leat__buf blob;

/* Writes tables of equal code lengths without a dictionary. */
static void write_flat(void)
{
    leat__tile_lengths lengths = {0};
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++)
        for (uint32_t s = 0; s < leat__tile_table_symbols(t); s++)
            lengths.length[t][s] = t < LEAT__TILE_CONTEXTS ? 8 : s < 47 ? 6 : 7;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__tile_tables_write(&lengths, NULL, 0, &blob), 0);
    assert_int_equal(blob.len, 1962);
}

static int open_blob(void)
{
    leat__tile_tables *t;
    int rc = leat__tile_tables_open(&t, blob.data, blob.len, NULL);
    assert_int_equal(t != NULL, rc == 0);
    leat__tile_tables_close(&t);
    return rc;
}

static void codes_are_prefix_free_and_complete(void **state)
{
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++)
        for (uint32_t i = 0; i < 1u << LEAT__TILE_CODE_BITS; i++) {
            uint32_t e = tables->codes.entry[t][i], length = e & 255, symbol = e >> 8;
            assert_in_range(length, 1, LEAT__TILE_CODE_BITS);
            assert_true(symbol < leat__tile_table_symbols(t));
            assert_int_equal(tables->lengths.length[t][symbol], length);
            assert_int_equal((i & ((1u << length) - 1)) << 4 | length, tables->put[t][symbol]);
        }
}

static void damaged_tables_are_refused(void **state)
{
    write_flat();
    assert_int_equal(open_blob(), 0);
    for (size_t i = 0; i < blob.len; i++) { /* one length changed: no longer complete */
        char was = blob.data[i];
        if (i >= 16 && i < 88) continue; /* the map: any table will do */
        blob.data[i] = (char)(was ^ 1);
        int rc = open_blob();
        assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT);
        blob.data[i] = was;
    }
    blob.data[20] = LEAT__TILE_CONTEXTS;
    assert_int_equal(open_blob(), LEAT_EDATA);
    blob.data[20] = LEAT__TILE_CONTEXTS - 1;
    assert_int_equal(open_blob(), 0);
    for (size_t len = 0; len < 1962; len += 61) {
        leat__tile_tables *t;
        assert_int_equal(leat__tile_tables_open(&t, blob.data, len, NULL), LEAT_EDATA);
    }
    leat__buf_reset(&blob);
}

static void ids_follow_the_bytes(void **state)
{
    leat__tile_tables *a, *b;
    write_flat();
    assert_int_equal(leat__tile_tables_open(&a, blob.data, blob.len, NULL), 0);
    blob.data[16] = 1;
    assert_int_equal(leat__tile_tables_open(&b, blob.data, blob.len, NULL), 0);
    assert_int_not_equal(leat__tile_tables_id(a), 0);
    assert_int_not_equal(leat__tile_tables_id(a), leat__tile_tables_id(b));
    leat__tile_tables_close(&a);
    leat__tile_tables_close(&b);
    leat__buf_reset(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_prefix_free_and_complete),
        cmocka_unit_test(damaged_tables_are_refused),
        cmocka_unit_test(ids_follow_the_bytes),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
