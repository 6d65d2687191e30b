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
        {"RandomCrop(32, padding=4); RandomHorizontalFlip; ToDtype('f16')", 32, 32, 3, "f16", "nchw", 6144},
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
        {"CenterCrop(4, 0.5, bilinear, pillow13, 5)", "too many"},
        {"CenterCrop(4); ToDtype(f32); ToDtype(f16)", "ToDtype is given twice"},
        {"CenterCrop(4); ToDtype(u8, scale=false)", "ToDtype.scale has no effect"},
        {"CenterCrop(4); ToDtype(u16, scale=false)", "ToDtype.scale has no effect on u16"},
        {"Pad(2, fill=1, padding_mode=edge)", "Pad.fill has no effect"},
        {"RandomCrop(4, fill=1)", "RandomCrop.fill has no effect"},
        {"CenterCrop(4); RandomErasing(value=1, random=true)", "RandomErasing.value has no effect"},
        {"CenterCrop(4); ColorJitter(p=0.5)", "ColorJitter has no effect"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        leat_error err = {0};
        assert_int_equal(open_text(&p, cases[i].text, &err), LEAT_EINVAL);
        assert_null(p);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

/* The same key gives the same draw; another key (or view) gives another one. */
static void draws_depend_on_the_key_only(void **state)
{
    leat__pipeline *a = NULL, *b = NULL;
    leat__recipe r[2];
    const leat__draw_key key = {1, 2, 3};
    assert_int_equal(open_text(&a, "RandomResizedCrop(64)", NULL), 0);
    assert_int_equal(
        leat__pipeline_open(&b, &(leat__pipeline_opts){.ops = "RandomResizedCrop(64)", .view = 1}, NULL), 0);
    assert_int_equal(leat__pipeline_draw(a, &key, 500, 375, &r[0], NULL), 0);
    assert_int_equal(leat__pipeline_draw(a, &key, 500, 375, &r[1], NULL), 0);
    assert_memory_equal(&r[0].step[0], &r[1].step[0], sizeof(leat__step));
    const leat__draw_key others[] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(leat__pipeline_draw(i < 3 ? a : b, i < 3 ? &others[i] : &key, 500, 375, &r[1], NULL),
                         0);
        assert_memory_not_equal(&r[0].step[0], &r[1].step[0], sizeof(leat__step));
    }
    leat__pipeline_close(&a);
    leat__pipeline_close(&b);
}

/* Colour ops, random or not, never change what the geometry draws. */
static void colour_does_not_shift_geometry(void **state)
{
    static const char *const texts[] = {
        "RandomResizedCrop(64); RandomHorizontalFlip()",
        "RandomInvert(0); RandomResizedCrop(64); RandomHorizontalFlip()",
        "RandomResizedCrop(64); RandomInvert(0); RandomErasing(0); RandomHorizontalFlip()",
    };
    leat__pipeline *p[3];
    leat__recipe r[3];
    for (int i = 0; i < 3; i++) assert_int_equal(open_text(&p[i], texts[i], NULL), 0);
    for (uint64_t sample = 0; sample < 50; sample++)
        for (int i = 0; i < 3; i++) {
            const leat__draw_key key = {1, 2, sample};
            assert_int_equal(leat__pipeline_draw(p[i], &key, 500, 375, &r[i], NULL), 0);
            assert_int_equal(r[i].count, r[0].count);
            assert_memory_equal(r[i].step, r[0].step, r[0].count * sizeof r[0].step[0]);
        }
    for (int i = 0; i < 3; i++) leat__pipeline_close(&p[i]);
}

static void same_geometry_is_recognised(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"RandomResizedCrop(64)", "RandomInvert(); RandomResizedCrop(32, interpolation=nearest)", true},
        {"RandomResizedCrop(64)", "RandomResizedCrop(64, scale=(0.5, 1))", false},
        {"RandomResizedCrop(64)", "Resize((64, 64))", false},
        {"Resize(70); CenterCrop(64)", "Resize((64, 64))", true}, /* nothing is random */
        {"CenterCrop(64); RandomRotation(5)", "CenterCrop(64); RandomRotation(5, fill=9)", true},
        {"CenterCrop(64); RandomRotation(5)", "CenterCrop(64); RandomRotation(6)", false},
        {"CenterCrop(64); RandAugment()", "CenterCrop(64)", false},
        {"RandomCrop(64)", "RandomCrop(32)", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *a = NULL, *b = NULL;
        assert_int_equal(open_text(&a, cases[i].a, NULL), 0);
        assert_int_equal(open_text(&b, cases[i].b, NULL), 0);
        assert_int_equal(leat__pipeline_same_geometry(a, b), cases[i].same);
        assert_int_equal(leat__pipeline_same_geometry(b, a), cases[i].same);
        leat__pipeline_close(&a);
        leat__pipeline_close(&b);
    }
}

/* Drawn sizes never exceed the predicted maximum, for any ops and size. */
static void draws_stay_within_reach(void **state)
{
    static const char *const texts[] = {
        "",
        "Resize(17)",
        "Resize(40, max_size=90)",
        "Pad((1, 2, 30, 4))",
        "RandomRotation(180, expand=true)",
        "RandomRotation(90, expand=true); Resize(33)",
        "RandomRotation(44, expand=true); Resize(9, max_size=10)",
        "Pad(3); RandomRotation(10, expand=true); Pad(5); RandomRotation(100, expand=true); Resize(7)",
        "RandomRotation(5, expand=true, center=(3, 90)); RandomHorizontalFlip()",
        "Resize(3); RandAugment()",
        "RandomResizedCrop((5, 9)); RandomRotation(70, expand=true)",
        "RandomApply(Resize(50); Pad(3)); RandomChoice(Pad(9); RandomRotation(30, expand=true); Resize(5))",
        "ScaleJitter((60, 90), (0.1, 2))",
        "RandomShortestSize((9, 20, 55))",
        "Pad(9); RandomZoomOut(side_range=(1, 3))",
        "RandomShortestSize((40, 60), max_size=70); RandomZoomOut(p=0.7)",
        "ScaleJitter(30, (1, 1))",
        "RandomOrder(Resize(40); RandomHorizontalFlip(); ColorJitter(0.4)); RandomApply(CenterCrop(90))"};
    leat__recipe r;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        leat__pipeline *p = NULL;
        assert_ok(leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = texts[t], .any_size = true}, NULL));
        assert_int_equal(leat__pipeline_output(p)->width, 0);
        for (uint64_t i = 0; i < 3000; i++) {
            const uint32_t side[2] = {1 + (uint32_t)(i * i % 97), i % 7 == 0 ? 1 : 1 + (uint32_t)(i % 1201)};
            const uint32_t w = side[i % 2], h = side[1 - i % 2];
            uint32_t most_w, most_h;
            leat__pipeline_reach(p, w, h, &most_w, &most_h);
            const leat__draw_key key = {t, 1, i};
            assert_ok(leat__pipeline_draw(p, &key, w, h, &r, NULL));
            assert_true(r.width <= most_w && r.height <= most_h);
        }
        leat__pipeline_close(&p);
    }
}

/* An op whose size has no bound is refused, even if images may differ in size. */
static void sizes_need_a_bound(void **state)
{
    static const char *const texts[] = {"RandomOrder(Pad(2); Resize(9))",
                                        "RandomOrder(RandomZoomOut(); Pad(3))", "RandomIoUCrop()"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        leat__pipeline *p = NULL;
        leat_error err = {0};
        const leat__pipeline_opts o = {.ops = texts[i], .any_size = true};
        assert_int_equal(leat__pipeline_open(&p, &o, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "not known in advance"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_follows_the_ops),       cmocka_unit_test(wrong_pipelines_say_why),
        cmocka_unit_test(draws_depend_on_the_key_only), cmocka_unit_test(colour_does_not_shift_geometry),
        cmocka_unit_test(same_geometry_is_recognised),  cmocka_unit_test(draws_stay_within_reach),
        cmocka_unit_test(sizes_need_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
