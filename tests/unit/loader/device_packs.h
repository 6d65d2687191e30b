/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs for loaders whose device decodes, and the comparison of its batches with those of the CPUs.
 */
#ifndef LEAT_TESTS_DEVICE_PACKS_H
#define LEAT_TESTS_DEVICE_PACKS_H

#include "gpu/fake_driver.h"
#include "tiny_loader.h"

#include <leat/ingest.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "loader/to_device.h"

static char kept[64], tiled[64], damaged[64], half[64];
enum { SAMPLES = 150, DAMAGED_EVERY = 13 };
static uint64_t cached;    /* images that stayed on the device, in the last compare() */
static uint64_t resume_at; /* compare() begins its first epoch with this row */

static inline void tile_pack(const char *from, const char *to)
{
    leat_ingest_opts o;
    leat_ingest_stats stats;
    leat_error err = {0};
    leat_ingest_opts_init(&o);
    o.sources = &from;
    o.source_count = 1;
    o.output = to;
    o.images = LEAT_IMAGES_TILED;
    o.threads = 1;
    o.replace = o.no_sync = 1;
    if (leat_ingest(&o, &stats, &err) != 0) fail_msg("%s", err.message);
}

/* The tiled pack again, some tiles broken under a checksum that is right, or some images as JPEGs. */
static inline void rewrite(const char *to, bool breaks)
{
    const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE},
                                 {.name = "label", .type = LEAT_FIELD_INT}};
    const uint32_t wanted[] = {0, 1};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat_pack *pack, *jpegs;
    const void *blob;
    size_t size;
    opts.fields = fields;
    opts.field_count = 2;
    opts.page_bytes = 65536;
    opts.no_sync = opts.replace = 1;
    assert_ok(leat_pack_open(&pack, tiled, NULL, NULL));
    assert_ok(leat_pack_open(&jpegs, kept, NULL, NULL));
    assert_ok(leat_packer_open(&p, to, &opts, NULL));
    assert_ok(leat_pack_blob(pack, "tile-tables", &blob, &size, NULL));
    assert_ok(leat_packer_blob(p, "tile-tables", blob, size, NULL));
    for (uint64_t i = 0; i < SAMPLES; i++) {
        static uint8_t bytes[1 << 16];
        leat_pack_row row;
        leat_pack_cell cells[2];
        leat__tile_header h;
        char key[16];
        leat_pack *from = !breaks && i % 2 ? jpegs : pack;
        assert_ok(leat_pack_look(from, i, &row, wanted, 2, cells, NULL));
        assert_ok(leat_pack_read(from, i, bytes, sizeof bytes, NULL));
        uint8_t *image = bytes + cells[0].start;
        if (breaks && (i % DAMAGED_EVERY == 5 || i % DAMAGED_EVERY == 9)) {
            assert_ok(leat__tile_header_parse(&h, image, cells[0].length, NULL));
            memset(image + h.header_bytes, 0xff, 6); /* lengths of the streams of the first tile */
        }
        if (breaks && i % DAMAGED_EVERY == 7) image[0] ^= 0xff; /* the host finds it, before decoding */
        leat_pack_value v[2] = {{.data = image, .size = cells[0].length, .image = cells[0].image},
                                {.i = cells[1].i}};
        leat_pack_sample s = {.key = key, .values = v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", (unsigned)i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    leat_pack_close(&pack);
    leat_pack_close(&jpegs);
}

static inline int set_up(void **state)
{
    if (find_fake(state) != 0) return -1;
    go_wrong("");
    snprintf(kept, sizeof kept, "/tmp/leat-dd-k%d.leat", (int)getpid());
    snprintf(tiled, sizeof tiled, "/tmp/leat-dd-t%d.leat", (int)getpid());
    snprintf(damaged, sizeof damaged, "/tmp/leat-dd-d%d.leat", (int)getpid());
    snprintf(half, sizeof half, "/tmp/leat-dd-h%d.leat", (int)getpid());
    tiny_pack(kept, &(tiny_opts){.samples = SAMPLES, .classes = 5});
    tile_pack(kept, tiled);
    rewrite(damaged, true);
    rewrite(half, false);
    return 0;
}

static inline int tear_down(void **state)
{
    unlink(kept);
    unlink(tiled);
    unlink(damaged);
    unlink(half);
    return 0;
}

static inline leat_loader_opts options(void)
{
    leat_loader_opts o = base_opts();
    o.digest = 0;
    o.ops = "RandomResizedCrop(24); RandomHorizontalFlip(); Normalize(0.5, 0.25); ToDtype(f16)";
    return o;
}

/* Begins an epoch, the first one at `resume_at`. */
static inline void begin_epoch(leat_loader *l, uint64_t epoch)
{
    char text[4096];
    size_t size;
    assert_ok(leat_loader_begin(l, epoch, NULL));
    if (epoch > 0 || resume_at == 0) return;
    assert_ok(leat_loader_state(l, resume_at, text, sizeof text, &size, NULL));
    assert_ok(leat_loader_restore(l, text, NULL));
}

/* Epochs from the CPUs beside the same from the device; returns the images that the device decoded. */
static inline uint64_t compare(const char *path, leat_loader_opts o, uint64_t *bad)
{
    leat_loader *host, *device;
    leat_loader_stats s = {0};
    leat_batch *a, *b;
    leat_error e1 = {0}, e2 = {0};
    *bad = 0;
    leat_loader_opts plain = o;
    if (plain.cache == LEAT_CACHE_DEVICE) plain.cache = LEAT_CACHE_OS;
    plain.device_memory = 0;
    assert_ok(leat_loader_open(&host, path, &plain, NULL));
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    if (leat_loader_open(&device, path, &o, &e2) != 0) fail_msg("%s", e2.message);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        begin_epoch(host, epoch);
        begin_epoch(device, epoch);
        for (;;) {
            int rc = leat_loader_next(host, &a, -1, &e1);
            assert_int_equal(leat_loader_next(device, &b, -1, &e2), rc);
            if (rc != 0) {
                assert_string_equal(e1.message, e2.message);
                assert_int_equal(e1.sample, e2.sample);
                break;
            }
            if (a == NULL) break;
            assert_int_equal(a->samples, b->samples);
            assert_int_equal(a->bad, b->bad);
            assert_int_equal(a->rows, b->rows);
            assert_memory_equal(a->sample_ids, b->sample_ids, a->samples * 8);
            for (uint32_t c = 0; c < a->field_count; c++) {
                const leat_tensor *t = &a->fields[c];
                assert_int_equal(t->shape[0], b->fields[c].shape[0]);
                assert_memory_equal(t->data, b->fields[c].data,
                                    (uint64_t)(t->shape[0] * t->strides[0]) * leat_dtype_size(t->dtype));
            }
            *bad += a->bad;
            leat_batch_release(&a);
            leat_batch_release(&b);
        }
    }
    assert_ok(leat_loader_read_all(device, &s, sizeof s));
    leat_loader_close(&host);
    leat_loader_close(&device);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
    cached = s.device_cached_images;
    return s.device_images;
}

/* The least device memory with which it can be opened. */
static inline uint64_t least_device_memory(leat_loader_opts o)
{
    uint64_t refused = 1, opens = UINT64_C(64) << 20;
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    while (opens - refused > 1) {
        leat_loader *l;
        o.device_memory = refused + (opens - refused) / 2;
        if (leat_loader_open(&l, tiled, &o, NULL) == 0) {
            opens = o.device_memory;
            leat_loader_close(&l);
        } else {
            refused = o.device_memory;
        }
    }
    return opens;
}

#endif
