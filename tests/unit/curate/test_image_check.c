/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include <leat/images.h>
#include <leat/pack.h>

#include "curate/image_check.h"
#include "curate/image_issue.h"
#include "io/file.h"

#define GOOD 40

static leat_check_opts opts_for(const char *const *sources, const char *output)
{
    leat_check_opts o;
    leat_check_opts_init(&o);
    o.sources = sources;
    o.source_count = 1;
    o.output = output;
    o.no_sync = 1;
    return o;
}

static void make_photos(void)
{
    scene s = plain_scene;
    s.seed = GOOD - 1;
    put_photos(GOOD);
    put_scene("photos/long.jpg", &s, 500, 40, 90);
    put_scene("photos/png.jpg.png", &s, 120, 100, 90);
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 120, 100, 90);
    put_file("photos/cut.jpg", jpeg.data, jpeg.len / 2);
    put_file("photos/named.png", jpeg.data, jpeg.len);
    put_text("photos/text.jpg", "not an image");
    leat__buf_reset(&jpeg);
}

static uint64_t count_of(const leat_check_stats *st, const char *name)
{
    for (uint32_t i = 0; i < st->issue_count; i++)
        if (strcmp(st->issues[i].name, name) == 0) return st->issues[i].count;
    fail_msg("no issue %s", name);
    return 0;
}

static void issues_are_found(void **state)
{
    leat_check_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    leat__buf json;
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_check_opts o = opts_for(src, in_box("check.leat"));
    o.csv = in_box("check.csv");
    if (leat_check_images(&o, &st, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(st.samples, GOOD + 6);
    assert_int_equal(st.ok, GOOD + 4);
    assert_int_equal(count_of(&st, "truncated"), 1);
    assert_int_equal(count_of(&st, "not_an_image"), 1);
    assert_int_equal(count_of(&st, "wrong_extension"), 1);
    assert_int_equal(count_of(&st, "dark"), 1);
    assert_int_equal(count_of(&st, "odd_aspect"), 1);
    assert_true(st.found >= 5 && st.found < 10);
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    leat__check_json(&st, o.output, &json);
    assert_contains(leat__buf_str(&json), "\"examples\":[\"night.jpg\"]");
    leat__buf_reset(&json);
    char *csv = NULL;
    size_t len;
    assert_ok(leat__file_load(o.csv, 1u << 20, 1, &csv, &len, NULL));
    assert_contains(csv, "key,verdict,issues,width,height,bytes,mean,");
    assert_contains(csv, "\nnamed.png,ok,wrong_extension,120,100,");
    leat__free(csv);
    bool left = true;
    assert_ok(leat__path_exists(in_box("check.leat.scores"), &left, NULL));
    assert_false(left);
    assert_code(LEAT_EEXIST, leat_check_images(&o, NULL, NULL));
    assert_no_leaks();
}

static void columns_are_bound_to_the_pack(void **state)
{
    leat_ingest_opts in;
    leat_pack *pack = NULL, *columns = NULL;
    leat_pack_info info;
    char key[64], other[64], hex[32];
    size_t size;
    make_photos();
    const char *photos[] = {in_box("photos")}, *src[] = {in_box("tiled.leat")};
    leat_ingest_opts_init(&in);
    in.sources = photos;
    in.source_count = 1;
    in.output = src[0];
    in.skip_errors = 1;
    in.replace = 1;
    in.no_sync = 1;
    assert_ok(leat_ingest(&in, NULL, NULL));
    leat_check_opts o = opts_for(src, in_box("columns.leat"));
    o.replace = 1;
    assert_ok(leat_check_images(&o, NULL, NULL));
    assert_ok(leat_pack_open(&pack, src[0], NULL, NULL));
    assert_ok(leat_pack_open(&columns, o.output, NULL, NULL));
    assert_int_equal(leat_pack_count(pack), leat_pack_count(columns));
    for (uint64_t i = 0; i < leat_pack_count(pack); i++) {
        assert_ok(leat_pack_key(pack, i, key, sizeof key, &size, NULL));
        assert_ok(leat_pack_key(columns, i, other, sizeof other, &size, NULL));
        assert_string_equal(key, other);
    }
    (void)leat_pack_info_read(pack, &info, sizeof info);
    snprintf(hex, sizeof hex, "\"%016llx\"", (unsigned long long)info.fingerprint);
    assert_contains(leat_pack_provenance(columns), hex);
    leat_pack_close(&pack);
    leat_pack_close(&columns);
    assert_no_leaks();
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    uint64_t first = 0;
    make_photos();
    const char *src[] = {in_box("photos")};
    for (uint32_t threads = 1; threads <= 8; threads *= 2) {
        leat_check_opts o = opts_for(src, in_box("same.leat"));
        o.replace = 1;
        o.threads = threads;
        assert_ok(leat_check_images(&o, NULL, NULL));
        uint64_t h = hash_of_file(o.output);
        if (threads == 1) first = h;
        assert_true(h == first);
    }
}

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    return 1;
}

static void options_have_an_effect(void **state)
{
    leat_check_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_check_opts o = opts_for(src, in_box("limits.leat"));
    o.limits = "dark=255,odd_aspect=off";
    o.replace = 1;
    assert_ok(leat_check_images(&o, &st, NULL));
    assert_true(count_of(&st, "dark") > GOOD / 2);
    assert_int_equal(count_of(&st, "odd_aspect"), 0);
    o.max_pixels = 1000;
    assert_ok(leat_check_images(&o, &st, NULL));
    assert_int_equal(count_of(&st, "unreadable"), GOOD + 5);
    put_text("photos/README", "x");
    o.strict = 1;
    assert_ok(leat_check_images(&o, &st, NULL));
    assert_int_equal(st.samples, GOOD + 7);
    o.limits = "drak=1";
    assert_code(LEAT_EINVAL, leat_check_images(&o, NULL, &err));
    o.limits = NULL;
    o.progress = stop;
    o.output = in_box("stopped.leat");
    assert_code(LEAT_ECANCELED, leat_check_images(&o, NULL, &err));
    bool left = true;
    assert_ok(leat__path_exists(in_box("stopped.leat.partial"), &left, NULL));
    assert_false(left);
    o.output = "s3://bucket/x.leat";
    assert_code(LEAT_EINVAL, leat_check_images(&o, NULL, &err));
    o.output = in_box("empty.leat");
    o.progress = NULL;
    src[0] = in_box("nothing");
    assert_true(leat_check_images(&o, NULL, &err) != 0);
    assert_no_leaks();
}

typedef struct stopping {
    uint64_t calls, stop_at;
} stopping;

static int stop_later(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    stopping *s = cookie;
    return ++s->calls == s->stop_at;
}

/* A run that was stopped at any point continues with the same result; one of a changed source starts again.
 */
static void a_stopped_run_is_continued(void **state)
{
    char *want = NULL, *got = NULL;
    size_t want_len, got_len;
    uint64_t continued = 0;
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_check_opts o = opts_for(src, in_box("whole.leat"));
    assert_ok(leat_check_images(&o, NULL, NULL));
    assert_ok(leat__file_load(o.output, 1u << 26, 0, &want, &want_len, NULL));
    o.output = in_box("parts.leat");
    o.progress = stop_later;
    for (uint64_t at = 1;; at++) {
        leat_check_stats st = {.struct_size = sizeof st};
        stopping s = {.stop_at = at};
        o.cookie = &s;
        const int rc = leat_check_images(&o, NULL, NULL);
        s = (stopping){0};
        if (rc == 0) break;
        assert_code(LEAT_ECANCELED, rc);
        assert_ok(leat_check_images(&o, &st, NULL));
        assert_ok(leat__file_load(o.output, 1u << 26, 0, &got, &got_len, NULL));
        assert_true(got_len == want_len && memcmp(got, want, got_len) == 0);
        leat__free(got);
        continued += st.resumed;
        assert_int_equal(access(in_box("parts.leat.scores"), F_OK), -1);
        assert_int_equal(unlink(o.output), 0);
    }
    assert_true(continued > 0);
    assert_int_equal(unlink(o.output), 0);
    stopping s = {.stop_at = 1};
    leat_check_stats st = {.struct_size = sizeof st};
    o.cookie = &s;
    assert_code(LEAT_ECANCELED, leat_check_images(&o, NULL, NULL));
    put_text("photos/00-new.jpg", "not an image");
    assert_ok(leat_check_images(&o, &st, NULL));
    assert_int_equal(st.resumed, 0);
    assert_int_equal(st.samples, GOOD + 7);
    leat__free(want);
    assert_no_leaks();
}

/* Writes a PNG of noise, whose file is as large as its pixels. */
static void put_noise(const char *name, uint32_t w, uint32_t h)
{
    leat__planes p = {0};
    uint32_t r = 1;
    assert_ok(leat__planes_resize(&p, w, h, 3, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) {
                r = r * 1664525u + 1013904223u;
                p.plane[c][y * p.stride + x] = (uint8_t)(r >> 24);
            }
    leat__buf b = encode_planes(&p, LEAT__CODEC_PNG, 0);
    put_file(name, b.data, b.len);
    leat__buf_reset(&b);
}

/* A refusal names the memory that is enough, also where the file needs more than decoding it. */
static void the_memory_named_is_enough(void **state)
{
    leat_error err = {0};
    double mib = 0;
    put_noise("noise/1.png", 2400, 1600);
    put_noise("noise/2.png", 2400, 1500);
    const char *src[] = {in_box("noise")};
    leat_check_opts o = opts_for(src, in_box("noise.leat"));
    o.memory = 10u << 20;
    assert_code(LEAT_EBUDGET, leat_check_images(&o, NULL, &err));
    if (sscanf(err.message, "the images do not fit the 10.0 MiB given (memory): %lf MiB is enough", &mib) !=
        1)
        fail_msg("%s", err.message);
    o.memory = (uint64_t)(mib * (1 << 20));
    if (leat_check_images(&o, NULL, &err) != 0) fail_msg("%s", err.message);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(issues_are_found),
        cmocka_unit_test(columns_are_bound_to_the_pack),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(options_have_an_effect),
        cmocka_unit_test(a_stopped_run_is_continued),
        cmocka_unit_test(the_memory_named_is_enough),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
