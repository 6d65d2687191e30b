/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include <leat/op.h>

#include "op/pipeline.h"

static int open_text(leat__pipeline **p, const char *text, leat_error *err)
{
    return leat__pipeline_open(p, &(leat__pipeline_opts){.ops = text}, err);
}

static void output_follows_the_ops(void **state)
{
    static const struct {
        const char *text;
        uint32_t w, h, c;
        const char *dtype, *layout;
        uint64_t bytes;
    } cases[] = {
        {"RandomResizedCrop(224)", 224, 224, 3, "u8", "nchw", 224 * 224 * 3},
        {"Resize(256); CenterCrop((200, 100))", 100, 200, 3, "u8", "nchw", 60000},
        {"Resize((8, 9)); Pad(2)", 13, 12, 3, "u8", "nchw", 468},
        {"CenterCrop(4); Normalize(0.5, 0.5)", 4, 4, 3, "f32", "nchw", 192},
        {"CenterCrop(4)\nNormalize(mean=(0.1,0.2,0.3), std=[1,2,3])\nToDtype(bf16)\n"
         "ToLayout(nhwc) # done",
         4, 4, 3, "bf16", "nhwc", 96},
        {"RandomCrop(32, padding=4); RandomHorizontalFlip; ToDtype('f16')", 32, 32, 3,
         "f16", "nchw", 6144},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_pipeline_output o;
        leat_error err = {0};
        assert_int_equal(leat_pipeline_check(cases[i].text, &o, &err), 0);
        assert_int_equal(o.width, cases[i].w);
        assert_int_equal(o.height, cases[i].h);
        assert_int_equal(o.channels, cases[i].c);
        assert_string_equal(o.dtype, cases[i].dtype);
        assert_string_equal(o.layout, cases[i].layout);
        assert_int_equal(o.bytes, cases[i].bytes);
    }
}

static void wrong_pipelines_say_why(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "one size"},
        {"Resize(256)", "one size"},
        {"Normalize(0, 1); CenterCrop(4)", "before Normalize"},
        {"CenterCrop(4); ToDtype(u8); Normalize(0, 1)", "float type"},
        {"RandomResizedCrop(224, scale=(1, 0.5))", "scale"},
        {"CenterCrop(4, 5)", "too many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        leat_error err = {0};
        assert_int_equal(open_text(&p, cases[i].text, &err), LEAT_EINVAL);
        assert_null(p);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

/* The same key draws the same, any other key (or view) something else. */
static void draws_depend_on_the_key_only(void **state)
{
    leat__pipeline *a = NULL, *b = NULL;
    leat__recipe r[2];
    const leat__draw_key key = {1, 2, 3};
    assert_int_equal(open_text(&a, "RandomResizedCrop(64)", NULL), 0);
    assert_int_equal(
        leat__pipeline_open(
            &b, &(leat__pipeline_opts){.ops = "RandomResizedCrop(64)", .view = 1}, NULL),
        0);
    assert_int_equal(leat__pipeline_draw(a, &key, 500, 375, &r[0], NULL), 0);
    assert_int_equal(leat__pipeline_draw(a, &key, 500, 375, &r[1], NULL), 0);
    assert_memory_equal(&r[0].step[0], &r[1].step[0], sizeof(leat__step));
    const leat__draw_key others[] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(leat__pipeline_draw(i < 3 ? a : b, i < 3 ? &others[i] : &key,
                                             500, 375, &r[1], NULL),
                         0);
        assert_memory_not_equal(&r[0].step[0], &r[1].step[0], sizeof(leat__step));
    }
    leat__pipeline_close(&a);
    leat__pipeline_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_follows_the_ops),
        cmocka_unit_test(wrong_pipelines_say_why),
        cmocka_unit_test(draws_depend_on_the_key_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
