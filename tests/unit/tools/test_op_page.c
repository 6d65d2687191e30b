/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include <leat/op.h>

#include "op_page.h"

/* Every op is on the page of all, and has a page with all its parameters. */
static void every_op_is_explained(void **state)
{
    leat__buf all, one;
    leat_op_info info;
    leat__buf_init(&all, LEAT__MEM_MISC, 1 << 20);
    leat__buf_init(&one, LEAT__MEM_MISC, 1 << 20);
    cli_writer w = cli_writer_text(&all, 80, false);
    op_page_all(&w);
    for (uint32_t i = 0; leat_op_info_at(i, &info) == 0; i++) {
        leat_op_param p;
        assert_contains(leat__buf_str(&all), info.name);
        leat__buf_clear(&one);
        w = cli_writer_text(&one, 200, false);
        assert_true(op_page_one(&w, info.name));
        for (uint32_t k = 0; leat_op_param_at(i, k, &p) == 0; k++) {
            assert_contains(leat__buf_str(&one), p.name);
            char start[24] = {0}; /* the rest may be on another line */
            strncpy(start, p.help, sizeof start - 1);
            assert_contains(leat__buf_str(&one), start);
        }
    }
    assert_false(op_page_one(&w, "Nothing"));
    assert_string_equal(op_page_nearest("RandomErase"), "RandomErasing");
    leat__buf_reset(&all);
    leat__buf_reset(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_op_is_explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
