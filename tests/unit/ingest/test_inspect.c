/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "ingest/sandbox.h"

#include <stdatomic.h>

#include "ingest/inspect.h"

typedef struct seen {
    _Atomic uint32_t lookers, looks;
    uint32_t taken;
    char keys[2000];
    int fail;
} seen;

typedef struct note {
    char key[64];
    uint64_t bytes;
} note;

static int open_looker(void *cookie, void **looker, leat_error *err)
{
    ++((seen *)cookie)->lookers;
    *looker = cookie;
    return 0;
}

static void close_looker(void *cookie, void *looker)
{
    assert_ptr_equal(cookie, looker);
    --((seen *)cookie)->lookers;
}

static int look(void *cookie, void *looker, const char *key, const leat_pack_image *image,
                const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *found,
                leat_error *err)
{
    seen *s = cookie;
    note n = {.bytes = len};
    ++s->looks;
    if (s->fail) return leat__fail(err, s->fail, "%s: cannot be inspected", key);
    snprintf(n.key, sizeof n.key, "%s", key);
    for (size_t i = 0; data && i < len + LEAT__CODEC_PADDING; i++) /* all of it can be read */
        n.bytes += data[i] & 0;
    assert_true(data == NULL || image->codec != 0);
    return leat__buf_append(found, &n, sizeof n) == 0 ? 0 : LEAT_ENOMEM;
}

static int take(void *cookie, const char *key, size_t key_size, const void *found, leat_error *err)
{
    seen *s = cookie;
    note n;
    memcpy(&n, found, sizeof n);
    assert_string_equal(key, n.key);
    assert_int_equal(strlen(key), key_size);
    s->taken++;
    strncat(s->keys, key, sizeof s->keys - strlen(s->keys) - 2);
    strcat(s->keys, " ");
    return 0;
}

static int run(seen *s, const char *source, uint32_t images, leat_error *err)
{
    const leat__inspector x = {
        .cookie = s, .open = open_looker, .close = close_looker, .look = look, .take = take};
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = &source;
    o.source_count = 1;
    o.output = in_box("p.leat");
    o.threads = 3;
    o.images = images;
    o.skip_errors = 1;
    o.no_sync = o.replace = 1;
    int rc = leat__ingest_inspected(&o, &x, NULL, err);
    assert_int_equal(s->lookers, 0);
    return rc;
}

static void stored_images_are_seen_in_order(void **state)
{
    static const uint32_t modes[] = {LEAT_IMAGES_TILED, LEAT_IMAGES_KEEP, LEAT_IMAGES_RAW};
    for (uint32_t i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "photos/%02u.jpg", i);
        put_image(name, LEAT__CODEC_JPEG, 40 + i, 30, i);
    }
    put_text("photos/07.jpg", "not an image");
    for (size_t m = 0; m < 3; m++) {
        seen s = {0};
        leat_error err = {0};
        if (run(&s, in_box("photos"), modes[m], &err) != 0) fail_msg("%s", err.message);
        assert_true(s.taken == 39 && s.looks == 39);
        assert_memory_equal(s.keys, "00.jpg 01.jpg 02.jpg ", 21);
        assert_contains(s.keys, " 06.jpg 08.jpg ");
    }
}

/* An image that cannot be inspected is left out, like one that cannot be packed; without memory the run ends.
 */
static void images_that_cannot_be_seen_are_left_out(void **state)
{
    static const int codes[][2] = {{LEAT_EFORMAT, LEAT_EDATA}, {LEAT_ENOMEM, LEAT_ENOMEM}};
    for (size_t i = 0; i < 2; i++) {
        leat_error err = {0};
        seen s = {.fail = codes[i][0]};
        assert_int_equal(run(&s, in_box("photos"), LEAT_IMAGES_KEEP, &err), codes[i][1]);
        assert_contains(err.message, i == 0 ? "all 40 samples were left out" : "cannot be inspected");
        assert_int_equal(s.taken, 0);
    }
}

static void sources_without_images_are_refused(void **state)
{
    seen s = {0};
    leat_error err = {0};
    const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    const leat_pack_value value = {.i = 1};
    const leat_pack_sample sample = {.key = "a", .key_size = 1, .values = &value};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer = NULL;
    leat_packer_stats st;
    o.fields = &field;
    o.field_count = o.no_sync = 1;
    assert_int_equal(leat_packer_open(&packer, in_box("rows.leat"), &o, NULL), 0);
    assert_int_equal(leat_packer_append(packer, &sample, NULL), 0);
    assert_int_equal(leat_packer_finish(packer, &st, NULL), 0);
    leat_packer_close(&packer);
    assert_int_equal(run(&s, in_box("rows.leat"), 0, &err), LEAT_EINVAL);
    assert_contains(err.message, "rows.leat: has no images");
}

static void frames_have_their_numbers(void **state)
{
    char text[LEAT__FRAME_SUFFIX];
    leat__frame_suffix(text, 7);
    assert_string_equal(text, "#0007");
    leat__frame_suffix(text, 4000000000u);
    assert_string_equal(text, "#4000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored_images_are_seen_in_order),
                                       cmocka_unit_test(images_that_cannot_be_seen_are_left_out),
                                       cmocka_unit_test(sources_without_images_are_refused),
                                       cmocka_unit_test(frames_have_their_numbers)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
