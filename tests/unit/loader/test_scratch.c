/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding inside the budget: large images are charged before they are read, few at once, or refused
 * by name; memory that runs out all the same makes the loader slower, not fail.
 */
#include "tiny_loader.h"

#include "codec/png_encode.h"
#include "loader/bounds.h"
#include "loader/scratch.h"

enum { LARGE = 1600, SMALL = 40, SAMPLES = 24 };

static char path[64];

static void png(uint32_t side, leat__buf *out)
{
    leat__planes image = {0};
    assert_ok(leat__planes_resize(&image, side, side, 3, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < side; y++) memset(leat__planes_row(&image, c, y), (int)(y + c), side);
    leat__encode_opts opts = {0};
    assert_ok(leat__codec_encode(LEAT__CODEC_PNG, &image, &opts, out, NULL));
    leat__planes_reset(&image);
}

/* Every fourth image is LARGE x LARGE pixels. */
static int make_pack(void **state)
{
    static const leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat__buf bytes[2];
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-scratch-%d.leat", (int)getpid());
    opts.fields = &field;
    opts.field_count = 1;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    for (int k = 0; k < 2; k++) {
        leat__buf_init(&bytes[k], LEAT__MEM_MISC, 64 << 20);
        png(k ? LARGE : SMALL, &bytes[k]);
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const leat__buf *b = &bytes[i % 4 == 3];
        uint32_t side = i % 4 == 3 ? LARGE : SMALL;
        char key[16];
        leat_pack_value v = {
            .data = b->data,
            .size = b->len,
            .image = {
                .width = side, .height = side, .codec = LEAT__CODEC_PNG, .channels = 3, .orientation = 1}};
        leat_pack_sample s = {.key = key, .values = &v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    for (int k = 0; k < 2; k++) leat__buf_reset(&bytes[k]);
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    return 0;
}

static int drop_pack(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static uint64_t bytes_of(uint32_t side, uint8_t codec, uint8_t flags, uint8_t orientation,
                         leat__scratch_use use)
{
    leat_pack_cell cell = {
        .length = 1,
        .image = {.width = side, .height = side, .codec = codec, .flags = flags, .orientation = orientation}};
    return leat__scratch_bytes(&cell, &use);
}

static void bytes_follow_codec_and_use(void **state)
{
    const uint64_t pixels = 1000 * 1000, band = 256 * 1000;
    const leat__scratch_use one = {.views = 1}, two = {.views = 2}, whole = {.views = 1, .whole = true};
    leat_pack_cell absent = {.absent = 1},
                   huge = {.length = 1,
                           .image = {.width = UINT32_MAX, .height = UINT32_MAX, .codec = LEAT__CODEC_WEBP}};
    (void)state;
    assert_int_equal(bytes_of(1000, LEAT__CODEC_JPEG, LEAT_PACK_IMAGE_ENTRIES, 1, one), band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_JPEG, 0, 1, one), 8 * pixels + band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_PNG, 0, 1, one), 4 * pixels + band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_WEBP, 0, 1, one), 9 * pixels + band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_TILE, 0, 1, one), band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_TILE, 0, 6, one), 6 * pixels + band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_RAW, 0, 1, two), 3 * pixels + band);
    assert_int_equal(bytes_of(1000, LEAT__CODEC_RAW, 0, 1, whole), 9 * pixels + band);
    assert_int_equal(leat__scratch_bytes(&absent, &one), 0);
    assert_int_equal(leat__scratch_bytes(&huge, &one), UINT64_MAX);
}

static bool works_on_whole(const char *ops)
{
    leat__pipeline *p;
    leat__pipeline_opts o = {.ops = ops};
    assert_ok(leat__pipeline_open(&p, &o, NULL));
    const leat__pipeline *list[] = {p};
    bool whole = leat__scratch_use_of(list, 1).whole;
    leat__pipeline_close(&p);
    return whole;
}

static void ops_before_the_crop_need_the_whole_image(void **state)
{
    (void)state;
    assert_false(works_on_whole("RandomResizedCrop(224)"));
    assert_false(works_on_whole("Resize(256); CenterCrop(224); ColorJitter(0.4)"));
    assert_true(works_on_whole("ColorJitter(0.4); RandomResizedCrop(224)"));
}

/* Of a size that does not depend on the source: counted where it is larger than what is delivered. */
static void images_enlarged_between_ops_count(void **state)
{
    static const struct {
        const char *ops;
        uint64_t between;
    } cases[] = {{"Resize((3000,2000)); ColorJitter(0.4); Resize((224,224))", 3000 * 2000},
                 {"Resize((600,600)); RandomInvert(1); CenterCrop(512)", 600 * 600},
                 {"RandomResizedCrop(512); ColorJitter(0.4)", 0},
                 {"Resize((600,600)); CenterCrop(512)", 0}, /* one request: no image in between */
                 {"ColorJitter(0.4); RandomResizedCrop(224)", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        const leat__pipeline_opts o = {.ops = cases[i].ops};
        assert_ok(leat__pipeline_open(&p, &o, NULL));
        const leat__pipeline *const list[1] = {p};
        const leat__scratch_use use = leat__scratch_use_of(list, 1);
        assert_int_equal(use.between, cases[i].between);
        leat__pipeline_close(&p);
    }
    const leat__scratch_use plain = {.views = 1}, large = {.views = 1, .between = 9000000};
    assert_int_equal(bytes_of(100, LEAT__CODEC_TILE, 0, 1, large) -
                         bytes_of(100, LEAT__CODEC_TILE, 0, 1, plain),
                     81000000);
}

/* A canvas counts at its largest, however rarely it is drawn. */
static void enlarged_canvases_count(void **state)
{
    static const struct {
        const char *ops;
        uint64_t
            more; /* bytes for an image of 100 x 100 pixels, beside those of the same ops without the first */
    } cases[] = {{"RandomZoomOut(p=0.01); Resize((24,24))", 3 * 160000},
                 {"RandomZoomOut(side_range=(1,2), p=1); GaussianBlur(3); Resize((24,24))", 9 * 40000},
                 {"RandomApply(RandomZoomOut(p=1), p=0.1); Resize((24,24))", 9 * 160000},
                 {"RandomRotation(45); Resize((24,24))", 0},
                 {"RandomRotation(45, expand=true); Resize((24,24))", 3 * 142 * 142}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        const leat__pipeline_opts o = {.ops = cases[i].ops};
        assert_ok(leat__pipeline_open(&p, &o, NULL));
        const leat__pipeline *const list[1] = {p};
        leat__scratch_use use = leat__scratch_use_of(list, 1);
        assert_int_equal(use.canvas != NULL, cases[i].more > 0);
        const uint64_t with = bytes_of(100, LEAT__CODEC_TILE, 0, 1, use);
        use.canvas = NULL;
        const uint64_t more = with - bytes_of(100, LEAT__CODEC_TILE, 0, 1, use);
        if (cases[i].more == 0) assert_int_equal(more, 0);
        else assert_in_range(more, cases[i].more, cases[i].more + cases[i].more / 20);
        leat__pipeline_close(&p);
    }
}

/* Colours are changed where they are; what is drawn rarely counts as well. */
static void ops_in_place_need_one_image(void **state)
{
    static const struct {
        const char *ops;
        bool in_place;
    } cases[] = {{"ColorJitter(0.4); RandomResizedCrop(224)", true},
                 {"RandomHorizontalFlip(); RandomApply([RandomInvert(1)], p=0.2); Resize((224,224))", true},
                 {"Resize((3000,2000)); ColorJitter(0.4); RandomErasing(); Resize((224,224))", true},
                 {"ColorJitter(0.4); GaussianBlur(9); Resize((224,224))", false},
                 {"ColorJitter(0.4); RandomApply([GaussianBlur(9)], p=0.001); Resize((224,224))", false},
                 {"ColorJitter(0.4); Resize((900,900)); RandomInvert(1); Resize((224,224))", false},
                 {"RandomOrder([ColorJitter(0.4), Resize((900,900))]); Resize((224,224))", false},
                 {"RandomRotation(30); Resize((224,224))", false},
                 {"RandAugment(); Resize((224,224))", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        leat_error err = {0};
        const leat__pipeline_opts o = {.ops = cases[i].ops};
        if (leat__pipeline_open(&p, &o, &err) != 0) fail_msg("%s", err.message);
        const leat__pipeline *const list[1] = {p};
        if (leat__scratch_use_of(list, 1).in_place != cases[i].in_place) fail_msg("%s", cases[i].ops);
        leat__pipeline_close(&p);
    }
    const leat__scratch_use one = {.views = 1, .whole = true, .in_place = true};
    const leat__scratch_use plain = {.views = 1, .whole = true};
    assert_int_equal(bytes_of(100, LEAT__CODEC_TILE, 0, 1, plain) -
                         bytes_of(100, LEAT__CODEC_TILE, 0, 1, one),
                     6 * 100 * 100);
}

static leat_loader_opts scratch_opts(void)
{
    leat_loader_opts o = base_opts();
    o.ops = "Resize(32); CenterCrop(32)";
    o.batch_size = 8;
    o.threads = 4;
    return o;
}

/* ElasticTransform and AugMix hold more than the image; crops of one image hold it for all of them. */
static void some_ops_take_more(void **state)
{
    static const struct {
        const char *ops;
        uint32_t more, views;
    } cases[] = {{"RandomInvert(1); CenterCrop(9)", 0, 1},
                 {"ElasticTransform(p=0.5); CenterCrop(9)", 12, 1},
                 {"RandomInvert(1); AugMix(p=0.5); CenterCrop(9)", 15, 1},
                 {"FiveCrop(9)", 0, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        const leat__pipeline_opts o = {.ops = cases[i].ops};
        assert_ok(leat__pipeline_open(&p, &o, NULL));
        const leat__pipeline *const list[1] = {p};
        const leat__scratch_use use = leat__scratch_use_of(list, 1);
        assert_int_equal(use.more, cases[i].more);
        assert_int_equal(use.views, cases[i].views);
        leat__pipeline_close(&p);
    }
}

static void too_large_an_image_is_refused_by_name(void **state)
{
    leat_loader_opts o = scratch_opts();
    (void)state;
    alarm(watchdog_s());
    o.memory = 12 << 20; /* an image takes 10.2 MB and the rest */
    outcome got = run_with(path, &o, 0);
    assert_int_equal(got.rc, LEAT_EBUDGET);
    assert_contains(got.err.message, "decoding an image of 1600x1600 may take 10.2 MiB");
    assert_int_equal(got.err.sample % 4, 3);
    o.on_error = LEAT_ON_ERROR_SKIP;
    got = run_with(path, &o, 0);
    assert_int_equal(got.rc, 0);
    assert_int_equal(got.samples, SAMPLES / 4 * 3);
    assert_int_equal(got.bad, SAMPLES / 4);
    alarm(0);
    assert_no_leaks();
}

/* A larger budget also leaves the memory of more workers, which the old message did not count. */
static void the_memory_that_a_refusal_names_is_enough(void **state)
{
    leat_loader_opts o = scratch_opts();
    (void)state;
    alarm(watchdog_s());
    for (o.threads = 1; o.threads <= 16; o.threads *= 4) {
        o.memory = 12 << 20;
        outcome got = run_with(path, &o, 0);
        assert_int_equal(got.rc, LEAT_EBUDGET);
        const char *named = strstr(got.err.message, "memory must be at least ");
        assert_non_null(named);
        o.memory = (uint64_t)(strtod(named + strlen("memory must be at least "), NULL) * (1 << 20));
        got = run_with(path, &o, 0);
        if (got.rc != 0) fail_msg("%u threads: %s", o.threads, got.err.message);
        assert_int_equal(got.samples, SAMPLES);
    }
    alarm(0);
    assert_no_leaks();
}

/* With room for one large image: they come one by one, and what is held stays inside. */
static void large_images_come_few_at_once(void **state)
{
    leat_loader_opts o = scratch_opts();
    leat_loader *l;
    uint64_t digest = 0;
    (void)state;
    alarm(watchdog_s());
    for (int i = 0; i < 4; i++) {
        outcome got = {0};
        o.memory = i < 2 ? 24 << 20 : 256 << 20;
        o.cache = (leat_cache)(i % 2);
        assert_ok(leat_loader_open(&l, path, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        leat__mem_peak_reset();
        drain(l, &got);
        if (got.rc != 0) fail_msg("%s", got.err.message);
        assert_int_equal(got.samples, SAMPLES);
        leat_loader_stats s;
        assert_ok(leat_loader_read(l, &s, sizeof s));
        assert_true(s.budget_peak <= s.budget_limit);
        assert_true(s.budget_peak > (10 << 20)); /* it was charged */
        uint64_t held = leat__mem_peak(LEAT__MEM_CODEC) + leat__mem_peak(LEAT__MEM_SCRATCH) +
                        leat__mem_peak(LEAT__MEM_BATCH) + leat__mem_peak(LEAT__MEM_PAGE);
        assert_true(held <= o.memory);
        if (i > 0) assert_int_equal(got.digest, digest);
        digest = got.digest;
        leat_loader_close(&l);
    }
    alarm(0);
    assert_no_leaks();
}

/* A limit outside the budget, as an address space limit is: one at a time goes. */
static void memory_that_runs_out_makes_it_slower(void **state)
{
    leat_loader_opts o = scratch_opts();
    leat_loader *l;
    (void)state;
    alarm(watchdog_s());
    o.ops = "ColorJitter(0.4); Resize(32); CenterCrop(32)"; /* on the whole image */
    o.memory = 512 << 20;
    outcome got = {0}, want = run_with(path, &o, 0);
    assert_int_equal(want.rc, 0);
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    leat__mem_limit_set(leat__mem_used(LEAT__MEM_CATS) + (40 << 20));
    drain(l, &got);
    leat__mem_limit_set(0);
    if (got.rc != 0) fail_msg("%s", got.err.message);
    assert_int_equal(got.digest, want.digest);
    leat_loader_close(&l);
    alarm(0);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_follow_codec_and_use),
        cmocka_unit_test(ops_before_the_crop_need_the_whole_image),
        cmocka_unit_test(some_ops_take_more),
        cmocka_unit_test(images_enlarged_between_ops_count),
        cmocka_unit_test(enlarged_canvases_count),
        cmocka_unit_test(ops_in_place_need_one_image),
        cmocka_unit_test(too_large_an_image_is_refused_by_name),
        cmocka_unit_test(the_memory_that_a_refusal_names_is_enough),
        cmocka_unit_test(large_images_come_few_at_once),
        cmocka_unit_test(memory_that_runs_out_makes_it_slower),
    };
    if (!leat__codec_built(LEAT__CODEC_PNG)) return 77;
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
