/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of batches: fields, views, and names that are refused.
 */
#include "tiny_loader.h"

static int make_pack(void **state)
{
    (void)state;
    return make_shared_pack(&(tiny_opts){.samples = 30, .classes = 3, .captions = true});
}

static void wrong_fields_are_named(void **state)
{
    static const leat_loader_image same[] = {{.name = "label", .ops = "Resize((8, 8))"}};
    static const leat_loader_image other[] = {{.field = "picture", .ops = "Resize((8, 8))"}};
    static const char *const missing[] = {"nothing"}, *const only_image[] = {"image"};
    leat_loader_opts o;
    (void)state;
    o = one_thread_opts(), o.fields = missing, o.field_count = 1;
    assert_refused(&o, "there is no field 'nothing'; it has image, label, caption");
    o = one_thread_opts(), o.on_error = LEAT_ON_ERROR_REPLACE,
    assert_refused(&o, "leave out 'caption' or use skip");
    o = one_thread_opts(), o.ops = NULL, o.images = same, o.image_count = 1;
    assert_refused(&o, "two outputs are named 'label'");
    o.images = other, assert_refused(&o, "there is no image field 'picture'");
    o.images = same, o.fields = only_image, o.field_count = 1, o.independent = 1;
    assert_refused(&o, "independent has no effect");
}

static void fields_and_views(void **state)
{
    static const leat_loader_image images[] = {
        {.name = "a", .ops = "RandomResizedCrop(16)"},
        {.name = "b", .ops = "RandomResizedCrop(16)"},
        {.name = "small", .field = "image", .ops = "Resize((8, 8)); ToDtype(f32); ToLayout(nhwc)"}};
    static const char *const only[] = {"label"};
    leat_loader_opts o = one_thread_opts();
    leat_loader *l;
    leat_batch *b;
    (void)state;
    o.ops = NULL;
    o.images = images;
    o.image_count = 3;
    assert_ok(leat_loader_open(&l, shared_pack(), &o, NULL));
    assert_int_equal(leat_loader_field_count(l), 5);
    assert_null(leat_loader_field(l, 5));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_string_equal(b->fields[1].name, "b");
    assert_true(memcmp(b->fields[0].data, b->fields[1].data, 16 * 16 * 3 * 10) != 0); /* other draws */
    assert_int_equal(b->fields[2].dtype, LEAT_DTYPE_F32);
    assert_int_equal(b->fields[2].shape[3], 3);
    leat_batch_release(&b);
    leat_loader_close(&l);
    o = one_thread_opts();
    o.fields = only;
    o.field_count = 1;
    assert_refused(&o, "'image' has a pipeline but is not among fields");
    o.ops = NULL; /* the default pipeline is for images that are asked for */
    assert_ok(leat_loader_open(&l, shared_pack(), &o, NULL));
    assert_int_equal(leat_loader_field_count(l), 1);
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_string_equal(b->fields[0].name, "label");
    leat_batch_release(&b);
    leat_loader_close(&l);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(fields_and_views),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_shared_pack);
}
