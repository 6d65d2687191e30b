/* SPDX-License-Identifier: Apache-2.0
 *
 * Random loaders whose device decodes, with little memory: one that could be opened ends its epochs.
 * Everything is charged before it is made, or decoded on the CPUs where the budget has no room for lists.
 */
#include "device_packs.h"

#include "base/rng.h"
#include "loader/setup.h"

enum { LARGE = 40, STAY_EPOCHS = 12 };

static const char *const pipelines[] = {
    "RandomResizedCrop(24); RandomHorizontalFlip()",
    "Resize((40, 40)); ColorJitter(0.4, 0.4, 0.4, 0.2)",
    "RandomResizedCrop(32); Normalize(0.5, 0.25); ToDtype(f16)",
    "CenterCrop(16); RandomErasing(p=1)",
};

static const leat_cache caches[] = {LEAT_CACHE_OS, LEAT_CACHE_PROCESS, LEAT_CACHE_DEVICE};

static leat_loader_opts draw(leat__rng *rng)
{
    leat_loader_opts o = base_opts();
    o.digest = 0;
    o.device = "cuda";
    o.ops = pipelines[leat__rng_below(rng, LEAT_COUNT(pipelines))];
    o.batch_size = 1 + (uint32_t)leat__rng_below(rng, 60);
    o.order = leat__rng_below(rng, 2) ? LEAT_ORDER_RANDOM : LEAT_ORDER_SEQUENTIAL;
    o.decode = leat__rng_below(rng, 3) ? LEAT_DECODE_GPU : LEAT_DECODE_AUTO;
    o.cache = caches[leat__rng_below(rng, LEAT_COUNT(caches))];
    o.threads = 1 + (uint32_t)leat__rng_below(rng, 3);
    o.prefetch = (uint32_t)leat__rng_below(rng, 4);
    o.seed = leat__rng_below(rng, 1000);
    if (o.cache == LEAT_CACHE_DEVICE)
        o.device_memory =
            leat__to_device_reserve(o.batch_size * 40 * 40 * 3 * 2) + leat__rng_below(rng, 1 << 20);
    else if (leat__rng_below(rng, 2)) o.device_memory = UINT64_C(64) << 20;
    return o;
}

/* The least memory with which it can be opened; 0: it cannot. */
static uint64_t least_memory(const char *path, const leat_loader_opts *o, int number)
{
    leat_loader *l;
    leat_error err = {0};
    int rc = leat_loader_open(&l, path, o, &err);
    if (rc == LEAT_EBUDGET) return 0; /* of the device */
    if (rc != 0) fail_msg("%d: %s", number, err.message);
    const uint64_t least = l->floor;
    leat_loader_close(&l);
    return least;
}

/* An epoch whose consumer holds a batch while it asks for the next one. */
static void epoch_ends(leat_loader *l, uint64_t epoch, const leat_loader_opts *o, int number,
                       leat_loader_stats *s)
{
    leat_batch *b = NULL, *before = NULL;
    leat_error err = {0};
    int rc;
    assert_ok(leat_loader_begin(l, epoch, NULL));
    while ((rc = leat_loader_next(l, &b, 20000, &err)) == 0 && b != NULL) {
        leat_batch_release(&before);
        before = b;
    }
    leat_batch_release(&before);
    if (rc != 0)
        fail_msg("%d: epoch %d: %s (batch %u, memory %llu, cache %d, decode %d, threads %u)", number,
                 (int)epoch, err.message, o->batch_size, (unsigned long long)o->memory, (int)o->cache,
                 (int)o->decode, o->threads);
    assert_ok(leat_loader_read(l, s, sizeof *s));
    assert_true(s->budget_peak <= o->memory);
}

/* Whether it could be opened. */
static bool epochs_end(const char *path, const leat_loader_opts *o, int number)
{
    leat_loader *l;
    leat_loader_stats s = {0};
    leat_error err = {0};
    int rc = leat_loader_open(&l, path, o, &err);
    if (rc == LEAT_EBUDGET) return false;
    if (rc != 0) fail_msg("%d: %s", number, err.message);
    for (uint64_t epoch = 0; epoch < 2; epoch++) epoch_ends(l, epoch, o, number, &s);
    leat_loader_close(&l);
    return true;
}

/* Epochs until all images are resident, and two more, in which the host reads none. */
static void images_stay(const char *path, const leat_loader_opts *o, uint64_t images, int number)
{
    leat_loader *l;
    leat_loader_stats s = {0};
    leat_error err = {0};
    uint64_t epoch = 0;
    if (leat_loader_open(&l, path, o, &err) != 0) fail_msg("%d: %s", number, err.message);
    while (epoch < STAY_EPOCHS && s.device_cached_images < images) epoch_ends(l, epoch++, o, number, &s);
    if (s.device_cached_images < images)
        fail_msg("%d: %d of %d images stay (batch %u, memory %llu, threads %u, order %d)", number,
                 (int)s.device_cached_images, (int)images, o->batch_size, (unsigned long long)o->memory,
                 o->threads, (int)o->order);
    for (int more = 0; more < 2; more++) epoch_ends(l, epoch++, o, number, &s);
    leat_loader_close(&l);
}

/* Images of which a resize needs all tiles: twice what is expected of a crop. */
static void large_pack(const char *path, const char *tiled_path)
{
    const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat__buf jpeg;
    opts.fields = fields;
    opts.field_count = 1;
    opts.no_sync = opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    leat__buf_init(&jpeg, LEAT__MEM_MISC, 1 << 20);
    for (uint32_t i = 0; i < LARGE; i++) {
        char key[16];
        const uint32_t side = i % 10 == 9 ? 400 : 80 + i % 7 * 20;
        leat__planes image = {0};
        leat__encode_opts how = {.quality = 90};
        leat__rng rng;
        leat__rng_init(&rng, 1, 0, i, 0);
        assert_ok(leat__planes_resize(&image, side, side, 3, NULL));
        for (uint32_t k = 0; k < 3 * side; k++)
            for (uint32_t x = 0; x < side; x++)
                image.plane[k % 3][k / 3 * image.stride + x] = (uint8_t)(leat__rng_u32(&rng) & 0x7f);
        leat__buf_clear(&jpeg);
        assert_ok(leat__jpeg_encode(&image, &how, &jpeg, NULL));
        leat__planes_reset(&image);
        leat_pack_value v = {.data = jpeg.data, .size = jpeg.len, .image = {.width = side, .height = side}};
        v.image.codec = LEAT__CODEC_JPEG;
        v.image.channels = 3;
        v.image.orientation = 1;
        leat_pack_sample s = {.key = key, .values = &v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    leat__buf_reset(&jpeg);
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    tile_pack(path, tiled_path);
}

static void run_configurations(const char *const *packs, int count, int configurations)
{
    leat__rng rng;
    int opened = 0;
    for (int i = 0; i < configurations; i++) {
        leat__rng_init(&rng, 5, 0, (uint64_t)i, 0);
        leat_loader_opts o = draw(&rng);
        const char *const path = packs[i % count];
        const uint64_t least = least_memory(path, &o, i);
        if (least == 0) continue;
        o.memory = least + leat__rng_below(&rng, 4) * leat__rng_below(&rng, least / 16);
        opened += epochs_end(path, &o, i);
    }
    assert_true(opened > configurations / 2);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void small_images(void **state)
{
    const char *const packs[] = {tiled, half, kept};
    run_configurations(packs, 3, 150);
}

static void large_images(void **state)
{
    char jpegs[64], tiles[64];
    snprintf(jpegs, sizeof jpegs, "/tmp/leat-db-j%d.leat", (int)getpid());
    snprintf(tiles, sizeof tiles, "/tmp/leat-db-t%d.leat", (int)getpid());
    large_pack(jpegs, tiles);
    const char *const packs[] = {tiles};
    run_configurations(packs, 1, 60);
    unlink(jpegs);
    unlink(tiles);
}

/* The device has room for all images, the host for little more than it needs to open. */
static void images_stay_with_little_memory(void **state)
{
    char jpegs[64], tiles[64];
    snprintf(jpegs, sizeof jpegs, "/tmp/leat-ds-j%d.leat", (int)getpid());
    snprintf(tiles, sizeof tiles, "/tmp/leat-ds-t%d.leat", (int)getpid());
    large_pack(jpegs, tiles);
    const char *const packs[] = {tiled, tiles, half};
    const uint64_t images[] = {SAMPLES, LARGE, SAMPLES / 2};
    for (int i = 0; i < 60; i++) {
        leat__rng rng;
        leat__rng_init(&rng, 6, 0, (uint64_t)i, 0);
        leat_loader_opts o = draw(&rng);
        o.cache = LEAT_CACHE_DEVICE;
        o.decode = LEAT_DECODE_AUTO;
        o.device_memory = UINT64_C(2) << 30;
        const uint64_t least = least_memory(packs[i % 3], &o, i);
        o.memory = least + leat__rng_below(&rng, 2) * leat__rng_below(&rng, least / 8);
        images_stay(packs[i % 3], &o, images[i % 3], i);
    }
    unlink(jpegs);
    unlink(tiles);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* The consumer holds a batch while it asks for the next one. */
static void the_least_device_memory_is_enough(void **state)
{
    for (int i = 0; i < 16; i++) {
        leat_loader_opts o = base_opts();
        o.digest = 0;
        o.device = "cuda";
        o.memory = UINT64_C(256) << 20;
        o.ops = pipelines[i % 4];
        o.batch_size = 4 + 3 * (uint32_t)i;
        o.decode = i % 3 == 0 ? LEAT_DECODE_AUTO : LEAT_DECODE_GPU;
        o.prefetch = (uint32_t)i % 4;
        o.device_memory = least_device_memory(o);
        assert_true(epochs_end(i % 2 ? half : tiled, &o, i));
    }
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_images),
        cmocka_unit_test(large_images),
        cmocka_unit_test(images_stay_with_little_memory),
        cmocka_unit_test(the_least_device_memory_is_enough),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
