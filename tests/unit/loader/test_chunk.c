/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/rng.h"
#include "loader/chunk.h"

enum { BYTES = 4 << 20 };

static void slots_are_adjacent(void **state)
{
    leat__chunk *c = leat__chunk_open(LEAT__MEM_PAGE, BYTES);
    (void)state;
    assert_non_null(c);
    assert_int_equal((uintptr_t)c->data % LEAT__CHUNK_ALIGN, 0);
    assert_true(leat__chunk_empty(c));
    uint8_t *a = leat__chunk_take(c, 1), *b = leat__chunk_take(c, 4096), *d = leat__chunk_take(c, 4097);
    assert_ptr_equal(a, c->data);
    assert_ptr_equal(b, c->data + 4096);
    assert_ptr_equal(d, c->data + 2 * 4096);
    leat__chunk_give(c, b, 4096);
    assert_ptr_equal(leat__chunk_take(c, 8192), c->data + 4 * 4096); /* the gap is too small */
    assert_ptr_equal(leat__chunk_take(c, 100), b);                   /* for this it is not */
    assert_null(leat__chunk_take(c, BYTES));
    leat__chunk_close(c);
    assert_no_leaks();
}

static void whole_chunk_can_be_used_and_released(void **state)
{
    leat__chunk *c = leat__chunk_open(LEAT__MEM_PAGE, BYTES);
    (void)state;
    uint8_t *all = leat__chunk_take(c, BYTES);
    assert_ptr_equal(all, c->data);
    memset(all, 1, BYTES);
    assert_null(leat__chunk_take(c, 1));
    leat__chunk_give(c, all, BYTES);
    assert_true(leat__chunk_empty(c));
    leat__chunk_close(c);
    assert_no_leaks();
}

/* Slots taken and released at random never overlap, and a gap that fits is always found. */
static void random_slots_do_not_overlap(void **state)
{
    enum { ROOMS = 64 };
    struct {
        uint8_t *at;
        uint64_t bytes;
    } rooms[ROOMS] = {{0}};
    leat__chunk *c = leat__chunk_open(LEAT__MEM_PAGE, BYTES);
    static uint8_t owner[BYTES / 4096];
    leat__rng rng;
    (void)state;
    leat__rng_init(&rng, 1, 2, 3, 4);
    for (int step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)(leat__rng_u64(&rng) % ROOMS);
        if (rooms[i].at != NULL) {
            uint64_t first = (uint64_t)(rooms[i].at - c->data) / 4096, units = (rooms[i].bytes + 4095) / 4096;
            for (uint64_t u = first; u < first + units; u++) {
                assert_int_equal(owner[u], i + 1);
                owner[u] = 0;
            }
            leat__chunk_give(c, rooms[i].at, rooms[i].bytes);
            rooms[i].at = NULL;
            continue;
        }
        rooms[i].bytes = 1 + leat__rng_u64(&rng) % (200 << 10);
        rooms[i].at = leat__chunk_take(c, rooms[i].bytes);
        uint64_t units = (rooms[i].bytes + 4095) / 4096, gap = 0, widest = 0;
        for (uint64_t u = 0; u < BYTES / 4096; u++) {
            gap = owner[u] == 0 ? gap + 1 : 0;
            if (gap > widest) widest = gap;
        }
        assert_int_equal(rooms[i].at != NULL, widest >= units);
        if (rooms[i].at == NULL) continue;
        uint64_t first = (uint64_t)(rooms[i].at - c->data) / 4096;
        for (uint64_t u = first; u < first + units; u++) {
            assert_int_equal(owner[u], 0);
            owner[u] = (uint8_t)(i + 1);
        }
    }
    leat__chunk_close(c);
    assert_no_leaks();
}

static void out_of_memory_gives_no_chunk(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; n <= 2; n++) {
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        assert_null(leat__chunk_open(LEAT__MEM_PAGE, BYTES));
        leat__fault_disarm();
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_adjacent),
        cmocka_unit_test(whole_chunk_can_be_used_and_released),
        cmocka_unit_test(random_slots_do_not_overlap),
        cmocka_unit_test(out_of_memory_gives_no_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
