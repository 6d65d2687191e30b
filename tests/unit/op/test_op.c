/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <leat/op.h>

#include "op/op.h"

/* Names are unique, every default parses and passes its own range, help is one sentence.
 */
static void the_table_is_sound(void **state)
{
    const uint32_t n = leat_op_count();
    assert_true(n >= 25);
    for (uint32_t i = 0; i < n; i++) {
        leat_op_info info;
        assert_ok(leat_op_info_at(i, &info));
        assert_ptr_equal(leat__op_find(info.name), leat__op_at(i));
        assert_true(strlen(info.help) > 5 && info.help[strlen(info.help) - 1] != '.');
        assert_true(info.params <= LEAT__OP_PARAMS_MAX);
        for (uint32_t k = 0; k < info.params; k++) {
            leat_op_param p;
            leat__value v;
            assert_ok(leat_op_param_at(i, k, &p));
            assert_true(strlen(p.help) > 2);
            const leat__param *q = &leat__op_at(i)->params[k];
            if (p.def && *p.def) assert_ok(leat__param_parse(q, p.name, p.def, &v, NULL));
            assert_int_equal(leat__op_param_index(leat__op_at(i), p.name), k);
            if (info.kind != LEAT_OP_ROLE) assert_string_not_equal(p.kind, "string");
        }
        leat_op_param none;
        assert_code(LEAT_ENOENT, leat_op_param_at(i, info.params, &none));
    }
    leat_op_info none;
    assert_code(LEAT_ENOENT, leat_op_info_at(n, &none));
    assert_null(leat__op_find("Nothing"));
    assert_string_equal(leat__op_nearest("CenterCorp"), "CenterCrop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_is_sound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
