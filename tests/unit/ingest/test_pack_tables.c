/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <leat/ingest.h>

#include "ingest/pack_tables.h"

static void pack(const char *src, const char *out, leat_image_mode mode)
{
    leat_ingest_opts o;
    leat_error err = {0};
    leat_ingest_opts_init(&o);
    o.sources = &src;
    o.source_count = 1;
    o.output = out;
    o.images = (uint32_t)mode;
    o.threads = 1;
    o.no_sync = o.replace = 1;
    if (leat_ingest(&o, NULL, &err) != 0) fail_msg("%s", err.message);
}

static void packs_with_and_without_tiles(void **state)
{
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "src/%u.jpg", i);
        put_image(name, LEAT__CODEC_JPEG, 40, 30, i);
    }
    pack(in_box("src"), in_box("tiled.leat"), LEAT_IMAGES_TILED);
    pack(in_box("src"), in_box("kept.leat"), LEAT_IMAGES_KEEP);
    const char *paths[] = {in_box("tiled.leat"), in_box("kept.leat")};
    leat__source *s = open_source(paths, 2, NULL);
    leat__pack_tables t = {0};
    leat_error err = {0};
    if (leat__pack_tables_open(&t, s, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(t.from_count, 2);
    assert_non_null(leat__pack_tables_of(&t, 0));
    assert_null(leat__pack_tables_of(&t, 1));
    assert_null(leat__pack_tables_of(&t, 2)); /* a record that comes from no pack */

    leat__encode_plan plan = {.images = LEAT_IMAGES_KEEP};
    assert_int_equal(leat__pack_tables_prepare(&t, NULL, s, NULL, &plan, &err), 0); /* nothing to do */
    assert_null(t.own);
    leat__pack_tables_close(&t);
    assert_int_equal(t.from_count, 0);
    leat__source_close(&s);

    const char *folder = in_box("src");
    s = open_source(&folder, 1, NULL);
    assert_int_equal(leat__pack_tables_open(&t, s, &err), 0);
    assert_null(leat__pack_tables_of(&t, 0));
    leat__pack_tables_close(&t);
    leat__source_close(&s);
}

/* Tiles of one pack are copied with its tables; of two that differ, new ones are trained. */
static void tables_of_one_pack_are_taken(void **state)
{
    const char *blob_name = LEAT__TILE_TABLES_BLOB;
    const void *blob, *other;
    size_t len, other_len;
    leat_pack *a = NULL, *b = NULL;
    pack(in_box("tiled.leat"), in_box("again.leat"), LEAT_IMAGES_TILED);
    assert_int_equal(leat_pack_open(&a, in_box("tiled.leat"), NULL, NULL), 0);
    assert_int_equal(leat_pack_open(&b, in_box("again.leat"), NULL, NULL), 0);
    assert_int_equal(leat_pack_blob(a, blob_name, &blob, &len, NULL), 0);
    assert_int_equal(leat_pack_blob(b, blob_name, &other, &other_len, NULL), 0);
    assert_int_equal(len, other_len);
    assert_memory_equal(blob, other, len);
    leat_pack_close(&a);
    leat_pack_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_with_and_without_tiles),
        cmocka_unit_test(tables_of_one_pack_are_taken),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
