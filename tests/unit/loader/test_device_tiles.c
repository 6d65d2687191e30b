/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_tiles.c: lists keep what a worker's chunk had.
 */
#include "leat_test.h"

#include "base/mem.h"
#include "loader/device_tiles.h"

static const leat__device_pages no_pages;

static void lists_are_copies(void **state)
{
    leat_budget *budget;
    leat__device_chunk c;
    leat__device_tiles *a, *b;
    const leat__device_id ids[] = {{7, 0}, {8, 3}};
    const leat_job_image images[2] = {{.row = 3}, {.row = 4}};
    const leat_job_tile tiles[3] = {{.number = 1}, {.number = 2}, {.number = 9}};
    assert_ok(leat_budget_open(&budget, 1 << 20, NULL));
    leat__device_chunk_init(&c);
    assert_ok(leat__buf_append(&c.images, images, sizeof images));
    assert_ok(leat__buf_append(&c.tiles, tiles, sizeof tiles));
    assert_ok(leat__buf_append(&c.data, "0123456789abcdef", 16));
    assert_ok(leat__device_tiles_open(&a, &c, ids, NULL, NULL, &no_pages, NULL));
    leat__device_chunk_clear(&c);
    assert_ok(leat__buf_append(&c.data, "x", 1));
    assert_ok(leat__device_tiles_open(&b, &c, ids, NULL, NULL, &no_pages, NULL));
    assert_int_equal(a->image_count, 2);
    assert_int_equal(a->tile_count, 3);
    assert_int_equal(a->images[1].row, 4);
    assert_int_equal(a->tiles[2].number, 9);
    assert_int_equal(a->ids[1].sample, 8);
    assert_int_equal(a->ids[1].salt, 3);
    assert_memory_equal(a->data, "0123456789abcdef", 16);
    assert_true(a->bytes >= a->data_bytes && a->data_bytes == 16);
    assert_int_equal(b->image_count, 0);
    leat__device_chunk_clear(&c); /* all of it is in the arena of a batch */
    leat__device_tiles *none;
    assert_ok(leat__device_tiles_open(&none, &c, ids, NULL, NULL, &no_pages, NULL));
    assert_int_equal(none->data_bytes, 0);
    b->next = none;
    a->next = b;
    leat__device_tiles_close(a);
    leat__device_tiles_close(NULL);
    leat__device_chunk_reset(&c);
    leat_budget_close(&budget);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void claims_that_are_not_kept_are_dropped(void **state)
{
    leat_budget *budget;
    leat__device_store *store;
    leat__device_chunk c;
    leat__device_tiles *t;
    const leat__device_id ids[] = {{0, 0}, {1, 0}};
    const leat_job_image images[2] = {{.row = 0}, {.row = 1}};
    const uint8_t header[4] = {0};
    assert_ok(leat_budget_open(&budget, 1 << 20, NULL));
    assert_ok(leat__device_store_open(
        &store, &(leat__device_store_opts){.budget = budget, .images = 2, .limit = 1 << 20, .reserve = 4096},
        NULL));
    leat__device_entry *keep[] = {leat__device_store_claim(store, 0, header, 4, 4),
                                  leat__device_store_claim(store, 1, header, 4, 4)};
    leat__device_chunk_init(&c);
    assert_ok(leat__buf_append(&c.images, images, sizeof images));
    assert_ok(leat__device_tiles_open(&t, &c, ids, store, keep, &no_pages, NULL));
    leat__device_store_keep(store, t->keep[0], 256);
    t->keep[0] = NULL;
    leat__device_tiles_close(t);
    assert_non_null(leat__device_store_find(store, 0));
    assert_ptr_equal(leat__device_store_claim(store, 1, header, 4, 4), keep[1]); /* free again */
    leat__device_store_close(&store);
    leat__device_chunk_reset(&c);
    leat_budget_close(&budget);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_copies),
                                       cmocka_unit_test(claims_that_are_not_kept_are_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
