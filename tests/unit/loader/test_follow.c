/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <unistd.h>

#include <leat/loader.h>

#include "base/buf.h"
#include "codec/codec.h"
#include "codec/raw.h"

#define SIDE 32
#define SAMPLES 20

static const char *const path = "follow.leat";

static void encode(leat__buf *out, uint32_t channels, uint32_t i)
{
    leat__planes im = {0};
    assert_ok(leat__planes_resize(&im, SIDE, SIDE, channels, NULL));
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t y = 0; y < SIDE; y++)
            for (uint32_t x = 0; x < SIDE; x++)
                im.plane[c][y * im.stride + x] = (uint8_t)(x / 4 * 8 + y / 4 + i);
    leat__buf_clear(out);
    assert_ok(leat__raw_encode(&im, &(leat__encode_opts){0}, out, NULL));
    leat__planes_reset(&im);
}

/* Two boxes per sample, the second at the right border; one label each. */
static int make_pack(void **state)
{
    const leat_field fields[] = {
        {.name = "image", .type = LEAT_FIELD_IMAGE},
        {.name = "mask", .type = LEAT_FIELD_IMAGE},
        {.name = "boxes", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_F32, .ndim = 2},
        {.name = "labels", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_I64, .ndim = 1},
        {.name = "score", .type = LEAT_FIELD_INT}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat__buf image, mask;

    opts.fields = fields;
    opts.field_count = 5;
    opts.no_sync = opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    leat__buf_init(&image, LEAT__MEM_MISC, 1 << 20);
    leat__buf_init(&mask, LEAT__MEM_MISC, 1 << 20);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const float boxes[8] = {8, 8, 16, 20, 28, 0, 32, 4};
        const int64_t labels[2] = {5, 6};
        encode(&image, 3, i);
        encode(&mask, 1, i);
        leat_pack_image info = {
            .width = SIDE, .height = SIDE, .codec = LEAT__CODEC_RAW, .channels = 3, .orientation = 1};
        leat_pack_value v[5] = {{.data = image.data, .size = image.len, .image = info},
                                {.data = mask.data, .size = mask.len, .image = info},
                                {.data = boxes, .size = sizeof boxes, .shape = {2, 4}},
                                {.data = labels, .size = sizeof labels, .shape = {2}},
                                {.i = i}};
        v[1].image.channels = 1;
        leat_pack_sample s = {.key = "k", .key_size = 1, .values = v};
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    leat__buf_reset(&image);
    leat__buf_reset(&mask);
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    return 0;
}

static int drop_pack(void **state)
{
    return unlink(path);
}

static leat_loader_opts options(const char *ops, const char *follow)
{
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.batch_size = SAMPLES;
    o.order = LEAT_ORDER_SEQUENTIAL;
    o.threads = 2;
    o.memory = 64 << 20;
    o.ops = ops;
    o.follow = follow;
    o.digest = 1;
    return o;
}

static void all_follow(void **state)
{
    leat_loader_opts o = options("CenterCrop(16); RandomHorizontalFlip(1)", "mask; boxes; labels");
    leat_loader *l;
    leat_batch *b;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_int_equal(b->field_count, 5);
    const leat_tensor *mask = &b->fields[1], *boxes = &b->fields[2], *labels = &b->fields[3];
    assert_int_equal(mask->ndim, 3);
    assert_int_equal(mask->shape[1], 16);
    for (int i = 0; i < SAMPLES; i++)
        assert_memory_equal((uint8_t *)mask->data + i * 256, (uint8_t *)b->fields[0].data + i * 768, 256);
    /* the box at the border is gone, and its label */
    assert_int_equal(boxes->shape[0], 4 * SAMPLES);
    assert_int_equal(labels->shape[0], SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        const float *box = (const float *)boxes->data + boxes->offsets[i];
        assert_int_equal(boxes->offsets[i], 4 * i);
        assert_true(box[0] == 8 && box[1] == 0 && box[2] == 16 && box[3] == 12);
        assert_int_equal(boxes->ragged_shapes[2 * i], 1);
        assert_int_equal(boxes->ragged_shapes[2 * i + 1], 4);
        assert_int_equal(((const int64_t *)labels->data)[labels->offsets[i]], 5);
        assert_int_equal(labels->ragged_shapes[i], 1);
        assert_int_equal(((const int64_t *)b->fields[4].data)[i], i);
    }
    leat_batch_release(&b);
    leat_loader_close(&l);
}

static void refused(const char *ops, const char *follow, const char *why)
{
    leat_loader_opts o = options(ops, follow);
    leat_loader *l;
    leat_error err = {0};
    assert_code(LEAT_EINVAL, leat_loader_open(&l, path, &o, &err));
    assert_contains(err.message, why);
}

static void what_cannot_follow_is_refused(void **state)
{
    refused("CenterCrop(8)", "", "no field is named");
    refused("CenterCrop(8)", "score", "say what field 'score' is");
    refused("CenterCrop(8)", "labels", "has no boxes");
    refused("CenterCrop(8)", "image", "follow itself");
    refused("CenterCrop(8)", "boxes = Mask()", "not an image");
    refused("CenterCrop(8)", "boxes = Boxes(image=x)", "no image 'x'");
    refused("CenterCrop(8); MixUp()", "mask", "MixUp or CutMix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_follow),
        cmocka_unit_test(what_cannot_follow_is_refused),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
