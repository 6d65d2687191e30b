/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures for terminals: which way one is drawn, and the bytes of small ones.
 */
#include "leat_test.h"

#include <string.h>

#include "base/mem.h"
#include "show_draw.h"

static uint8_t pixels[2 * 3 * 3] = {255, 0, 0, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0, 0, 255, 255, 255};
static const show_picture picture = {pixels, 2, 3};

static void test_detect(void **state)
{
    assert_int_equal(show_detect("xterm-kitty", NULL, NULL), SHOW_KITTY);
    assert_int_equal(show_detect("xterm-256color", "WezTerm", NULL), SHOW_KITTY);
    assert_int_equal(show_detect("xterm", NULL, "1"), SHOW_KITTY);
    assert_int_equal(show_detect("foot", NULL, NULL), SHOW_SIXEL);
    assert_int_equal(show_detect("xterm-256color", "iTerm.app", NULL), SHOW_BLOCKS);
    assert_int_equal(show_detect(NULL, NULL, NULL), SHOW_BLOCKS);
}

static void test_half_blocks(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    show_blocks(&picture, true, &out);
    assert_string_equal(leat__buf_str(&out),
                        "\033[38;2;255;0;0;48;2;0;0;255m\xe2\x96\x80"
                        "\033[38;2;255;0;0;48;2;0;255;0m\xe2\x96\x80"
                        "\033[0m\n\033[38;2;0;0;0;48;2;0;0;0m\xe2\x96\x80\033[38;2;255;255;255;48;2;0;0;0m"
                        "\xe2\x96\x80\033[0m\n");
    leat__buf_clear(&out);
    show_blocks(&picture, false, &out);
    assert_non_null(strstr(leat__buf_str(&out), "\033[38;5;196;48;5;21m"));
    leat__buf_reset(&out);
}

static void test_sixel(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    show_sixel(&picture, &out);
    const char *text = leat__buf_str(&out);
    assert_non_null(strstr(text, "\"1;1;2;3#0;2;0;0;0#1;2;0;0;20"));
    assert_non_null(strstr(text, "#180!2@$")); /* red: the first row of both columns */
    assert_non_null(strstr(text, "-\033\\\n"));
    leat__buf_reset(&out);
}

static void test_kitty(void **state)
{
    leat__buf out;
    leat_error err;
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    assert_int_equal(show_kitty(&picture, &out, &err), 0);
    const char *text = leat__buf_str(&out);
    assert_int_equal(strncmp(text, "\033_Ga=T,f=100,m=0;iVBORw0KGgo", 28), 0); /* the front of a PNG */
    assert_non_null(strstr(text, "\033\\\n"));
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detect),
        cmocka_unit_test(test_half_blocks),
        cmocka_unit_test(test_sixel),
        cmocka_unit_test(test_kitty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
