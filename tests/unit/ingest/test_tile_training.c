/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/tile_training.h"

static void train(const char *folder, leat__encode_plan plan, uint32_t threads, leat__buf *blob)
{
    const char *paths[] = {in_box(folder)};
    leat_ingest_opts o = {.struct_size = sizeof o, .sources = paths, .source_count = 1, .threads = threads};
    leat_error err = {0};
    plan.images = LEAT_IMAGES_TILED;
    leat__buf_init(blob, LEAT__MEM_INGEST, 16u << 20);
    if (leat__train_tables(&o, &plan, NULL, 0, blob, &err) != 0) fail_msg("%s", err.message);
    leat__tile_tables *t = NULL;
    assert_int_equal(leat__tile_tables_open(&t, blob->data, blob->len, NULL), 0);
    leat__tile_tables_close(&t);
}

static void tables_follow_from_the_images(void **state)
{
    leat__buf a, b, c;
    for (uint32_t i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "t/%u/%u.jpg", i % 3, i);
        put_image(name, LEAT__CODEC_JPEG, 120, 90, i);
    }
    put_text("t/0/broken.jpg", "\xff\xd8\xff nothing"); /* skipped here, reported later */
    put_text("t/1/notes.txt", "text");
    train("t", (leat__encode_plan){0}, 1, &a);
    train("t", (leat__encode_plan){0}, 4, &b); /* for any number of threads */
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    /* as they will be packed */
    train("t", (leat__encode_plan){.max_side = 40, .quality = 30}, 2, &c);
    assert_true(c.len != a.len || memcmp(a.data, c.data, a.len) != 0);
    leat__buf_reset(&a);
    leat__buf_reset(&b);
    leat__buf_reset(&c);
}

static void no_jpegs_is_not_an_error(void **state)
{
    leat__buf blob;
    put_image("p/1.png", LEAT__CODEC_PNG, 30, 20, 1);
    train("p", (leat__encode_plan){0}, 1, &blob);
    leat__buf_reset(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_follow_from_the_images),
        cmocka_unit_test(no_jpegs_is_not_an_error),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
