/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in a file: all can be read in any order, and nothing is left on disk or in memory.
 */
#include "sandbox.h"

#include <string.h>

#include "base/mem.h"
#include "ingest/name_list.h"

static size_t name_of(uint64_t i, char name[64])
{
    if (i % 1000 == 7) return 0; /* an empty name is allowed */
    return (size_t)snprintf(name, 64, "class%llu/image_%llu.jpg", (unsigned long long)(i % 10),
                            (unsigned long long)(i * i));
}

static void test_any_order(void **state)
{
    enum { COUNT = 100000 };
    leat__name_list l;
    leat__buf name;
    leat_error err;
    char want[64];
    assert_int_equal(leat__name_list_open(&l, in_box("out.leat"), &err), 0);
    leat__buf_init(&name, LEAT__MEM_INGEST, 1u << 20);
    for (uint64_t i = 0; i < COUNT; i++) {
        size_t len = name_of(i, want);
        assert_int_equal(leat__name_list_add(&l, want, len, &err), 0);
    }
    assert_int_equal(leat__name_list_close_adding(&l, &err), 0);
    assert_int_equal(l.count, COUNT);
    assert_true(leat__mem_used(LEAT__MEM_INGEST) < 2u << 20);
    for (uint64_t k = 0; k < COUNT; k++) {
        uint64_t i = k * 7919 % COUNT;
        size_t len = name_of(i, want);
        assert_int_equal(leat__name_list_at(&l, i, &name, &err), 0);
        assert_int_equal(name.len, len);
        assert_memory_equal(name.data, want, len);
    }
    leat__buf_reset(&name);
    leat__name_list_reset(&l);
    assert_int_equal(access(in_box("out.leat.names"), F_OK), -1);
    assert_int_equal(access(in_box("out.leat.ends"), F_OK), -1);
}

static void test_no_folder(void **state)
{
    leat__name_list l;
    leat_error err;
    assert_int_equal(leat__name_list_open(&l, "/nowhere/at/all/out.leat", &err), LEAT_ENOENT);
    leat__name_list_reset(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_no_folder),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
