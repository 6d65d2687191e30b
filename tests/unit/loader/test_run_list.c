/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/run_list.c: which runs the device is given, and that their bytes share one arena.
 */
#include "leat_test.h"

#include "base/mem.h"
#include "loader/run_list.h"

static void the_share_decides(void **state)
{
    leat_budget *budget;
    leat__run_env env = {0};
    leat__frame frame = {0};
    leat__run_worker w = {0};
    leat__run run = {.env = &env, .frame = &frame, .list_bytes = LEAT__LIST_BYTES};
    leat__device_chunk_init(&w.chunk);
    leat__run_list_begin(&run, &w);
    assert_false(run.on_device); /* the device decodes nothing */
    assert_ok(leat_budget_open(&budget, 1 << 20, NULL));
    assert_ok(leat__blocks_open(&env.tile_blocks, budget, LEAT_BUDGET_BATCH, LEAT__MEM_BATCH, NULL));
    for (uint32_t share = 0; share <= LEAT__SHARE_WHOLE; share++) {
        uint32_t given = 0;
        env.device_share = share;
        for (int i = 0; i < 160; i++) {
            leat__run_list_begin(&run, &w);
            given += run.on_device;
        }
        assert_int_equal(given, 10 * share);
    }
    assert_null(w.chunk.arena);
    leat__frame_take_arena(&frame, env.tile_blocks, 5000);
    leat__run_list_begin(&run, &w);
    assert_ptr_equal(w.chunk.arena, &frame.arena);
    assert_true(frame.arena.size >= 5000);
    assert_int_equal(leat__frame_tile_bytes(&frame), frame.arena.size);
    assert_ok(leat__run_list_end(&run, &w, 0, NULL)); /* nothing was listed */
    assert_null(frame.tiles);
    leat__blocks_give(env.tile_blocks, frame.arena_memory);
    leat__blocks_close(&env.tile_blocks);
    leat_budget_close(&budget);
    leat__device_chunk_reset(&w.chunk);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_share_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
