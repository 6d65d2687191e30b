/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of callers that are older or newer than the library: nothing past their end is touched.
 */
#include "leat_test.h"

#include <leat/flow.h>
#include <leat/ingest.h>
#include <leat/loader.h>
#include <leat/machine.h>
#include <leat/plan.h>

#include "base/sized.h"

enum { ROOM = 4096, MARK = 0xa5 };

static unsigned char *marked(void)
{
    static _Alignas(64) unsigned char room[ROOM];
    memset(room, MARK, sizeof room);
    return room;
}

static void assert_untouched_from(const unsigned char *room, size_t size)
{
    for (size_t i = size; i < ROOM; i++)
        if (room[i] != MARK) fail_msg("byte %zu of a struct of %zu was written", i, size);
}

static void copies_what_both_know(void **state)
{
    struct {
        uint32_t size;
        uint32_t a;
        uint64_t b;
    } own = {99, 1, 2};
    unsigned char *room = marked();
    uint32_t size = 8;
    (void)state;
    memcpy(room, &size, sizeof size);
    assert_true(leat__sized_copy(room, &own, sizeof own));
    assert_int_equal(((uint32_t *)(void *)room)[0], 8); /* still the caller's value */
    assert_int_equal(((uint32_t *)(void *)room)[1], 1);
    assert_untouched_from(room, 8);
    size = 64; /* a newer caller: fields we do not know are 0 */
    memcpy(room, &size, sizeof size);
    assert_true(leat__sized_copy(room, &own, sizeof own));
    for (int i = sizeof own; i < 64; i++) assert_int_equal(room[i], 0);
    assert_untouched_from(room, 64);
    size = 0;
    memcpy(room, &size, sizeof size);
    assert_false(leat__sized_copy(room, &own, sizeof own));
}

/* Every public initialiser, with every size a caller may have. */
static void initialisers_stay_inside(void **state)
{
    (void)state;
    for (uint32_t size = 0; size < 1024; size += 4) {
        unsigned char *room = marked();
        leat_pool_opts_init_sized((void *)room, size);
        assert_untouched_from(room, size);
        leat_flow_opts_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
        leat_stage_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
        leat_loader_opts_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
        leat_ingest_opts_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
        leat_export_opts_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
        leat_plan_facts_init_sized((void *)marked(), size);
        assert_untouched_from(room, size);
    }
}

/* Every public call that fills a struct of a given size. */
static void statistics_stay_inside(void **state)
{
    leat_flow *flow;
    leat_ingest_opts o;
    leat_error err;
    (void)state;
    assert_ok(leat_flow_open(&flow, NULL, NULL));
    leat_ingest_opts_init(&o);
    o.output = "/nowhere/out.leat";
    for (uint32_t size = 4; size < 1024; size += 4) {
        unsigned char *room = marked();
        assert_ok(leat_flow_read(flow, (void *)room, size));
        assert_untouched_from(room, size);
        memcpy(marked(), &size, sizeof size);
        assert_true(leat_ingest(&o, (void *)room, &err) < 0);
        assert_untouched_from(room, size);
        assert_ok(leat_machine_read((void *)marked(), size, NULL));
        assert_untouched_from(room, size);
    }
    leat_flow_close(&flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_what_both_know),
        cmocka_unit_test(initialisers_stay_inside),
        cmocka_unit_test(statistics_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
