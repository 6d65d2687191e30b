/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_damage PACK COUNT [SEED [valid]]: COUNT damaged packs of a few tiled images of PACK, each loaded
 * twice: decoded by the CPUs and by the device. Both must deliver the same batches, or the same error. A
 * third of the packs has changed bytes in tiles and a third in headers of images, under checksums that are
 * right, so that only a decoder can find it; a third has bytes of the file changed. The policies for bad
 * samples, the pipelines, two of which mix the batch, and caches take turns. With `valid` nothing is damaged.
 *
 *     build/bench/gpu_damage tiled.leat 10000
 *     compute-sanitizer --tool memcheck build/bench/gpu_damage tiled.leat 200
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/loader.h>
#include <leat/pack.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "codec/tile/tile_format.h"
#include "gpu/gpu_stream.h"
#include "gpu/kernels.h"

enum { IMAGES = 6, ROUNDS = 3, KINDS = 3 };
#define IMAGE_MAX (64u << 10)
#define FILE_MAX (1u << 20)

typedef struct stored {
    uint8_t bytes[IMAGE_MAX];
    leat_pack_cell cell;
} stored;

static stored images[IMAGES];
static const void *tables;
static size_t tables_size;
static char path[256];

static void die(const char *what, const leat_error *err)
{
    fprintf(stderr, "gpu_damage: %s: %s\n", what, err->message);
    exit(1);
}

/* The first images of the pack that are small. */
static void take_images(leat_pack *pack)
{
    static uint8_t bytes[4u << 20];
    leat_error err = {0};
    leat_pack_info info;
    if (leat_pack_info_read(pack, &info, sizeof info) != 0) die("pack", &err);
    uint32_t n = 0;
    const int field = leat_pack_field_find(pack, "image");
    const uint32_t wanted = (uint32_t)LEAT_MAX(field, 0);
    for (uint64_t i = 0; i < info.samples && n < IMAGES; i++) {
        leat_pack_row row;
        leat_pack_cell cell;
        if (leat_pack_look(pack, i, &row, &wanted, 1, &cell, &err) != 0) die("look", &err);
        if (cell.length > IMAGE_MAX) continue;
        if (leat_pack_read(pack, i, bytes, sizeof bytes, &err) != 0) die("read", &err);
        memcpy(images[n].bytes, bytes + cell.start, cell.length);
        images[n++].cell = cell;
    }
    if (n < IMAGES) {
        fprintf(stderr, "gpu_damage: too few images below %u bytes\n", IMAGE_MAX);
        exit(1);
    }
}

static void change(uint8_t *bytes, uint64_t size, leat__rng *rng)
{
    const uint64_t times = 1 + leat__rng_u64(rng) % 6;
    for (uint64_t i = 0; i < times && size > 0; i++) {
        const uint64_t at = leat__rng_u64(rng) % size;
        const uint64_t run = LEAT_MIN(leat__rng_u64(rng) % 4 == 0 ? leat__rng_u64(rng) % 64 : 1, size - at);
        for (uint64_t k = 0; k < run; k++) bytes[at + k] = (uint8_t)leat__rng_u64(rng);
    }
}

/* Damages an image under a checksum that will be right. */
static void change_image(uint8_t *image, size_t len, uint32_t kind, leat__rng *rng)
{
    leat__tile_header h;
    if (leat__tile_header_parse(&h, image, len, NULL) != 0) return;
    if (kind == 0) change(image + h.header_bytes, h.tile_bytes, rng);
    else change(image, h.header_bytes, rng);
}

static void write_pack(uint32_t kind, leat__rng *rng)
{
    static const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE},
                                        {.name = "label", .type = LEAT_FIELD_INT}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat_error err = {0};
    opts.fields = fields;
    opts.field_count = 2;
    opts.no_sync = opts.replace = 1;
    unlink(path); /* a damaged one is not replaced */
    if (leat_packer_open(&p, path, &opts, &err) != 0) die("pack", &err);
    if (tables_size > 0 && leat_packer_blob(p, "tile-tables", tables, tables_size, &err) != 0)
        die("tables", &err);
    for (uint32_t i = 0; i < IMAGES; i++) {
        static uint8_t bytes[IMAGE_MAX];
        char key[16];
        const leat_pack_cell *cell = &images[i].cell;
        memcpy(bytes, images[i].bytes, cell->length);
        if (kind < 2 && leat__rng_u64(rng) % 2 == 0) change_image(bytes, cell->length, kind, rng);
        leat_pack_value v[2] = {{.data = bytes, .size = cell->length, .image = cell->image}, {.i = i}};
        leat_pack_sample s = {.key = key, .values = v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%u", (unsigned)i);
        if (leat_packer_append(p, &s, &err) != 0) die("append", &err);
    }
    if (leat_packer_finish(p, &stats, &err) != 0) die("finish", &err);
    leat_packer_close(&p);
}

static void change_file(leat__rng *rng)
{
    static uint8_t bytes[FILE_MAX];
    FILE *f = fopen(path, "r+b");
    const size_t size = f != NULL ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (size == 0 || size == sizeof bytes) {
        perror("gpu_damage: reading the pack again");
        exit(1);
    }
    change(bytes, size, rng);
    rewind(f);
    if (fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        perror("gpu_damage: writing the pack");
        exit(1);
    }
}

/* What a loader did, as one number, and what it said at the end. */
typedef struct outcome {
    uint64_t hash, bad, there;
    int rc;
    leat_error err;
} outcome;

/* The device and its kernels, held open so that they are loaded once. */
static leat__gpu *gpu;
static leat__gpu_kernels *kernels;
static leat__gpu_stream *stream;

static void fetch(void *to, const void *from, uint64_t bytes)
{
    leat_error err = {0};
    if (leat__gpu_copy_out(stream, to, (leat__gpu_memory)(uintptr_t)from, bytes, &err) != 0)
        die("fetch", &err);
    leat__gpu_stream_drain(stream);
}

static outcome load(leat_loader_opts o)
{
    static uint8_t pixels[IMAGES * 3 * 64 * 64 * 4];
    outcome r = {0};
    leat_loader *l = NULL;
    leat_batch *b;
    r.rc = leat_loader_open(&l, path, &o, &r.err);
    for (uint64_t epoch = 0; epoch < ROUNDS && r.rc == 0; epoch++) {
        r.rc = leat_loader_begin(l, epoch, &r.err);
        while (r.rc == 0 && (r.rc = leat_loader_next(l, &b, -1, &r.err)) == 0 && b != NULL) {
            const leat_tensor *t = &b->fields[0];
            const uint64_t size = (uint64_t)(t->shape[0] * t->strides[0]) * leat_dtype_size(t->dtype);
            if (b->device < 0) memcpy(pixels, t->data, size);
            else fetch(pixels, t->data, size);
            r.hash = leat__hash64(pixels, size, r.hash);
            r.hash = leat__hash64(b->sample_ids, b->samples * sizeof(uint64_t), r.hash);
            r.bad += b->bad;
            leat_batch_release(&b);
        }
    }
    leat_loader_stats s = {0};
    if (l != NULL && leat_loader_read_all(l, &s, sizeof s) == 0) r.there = s.device_images;
    leat_loader_close(&l);
    return r;
}

static bool same(const outcome *a, const outcome *b)
{
    return a->rc == b->rc && a->hash == b->hash && a->bad == b->bad &&
           (a->rc == 0 || strcmp(a->err.message, b->err.message) == 0);
}

int main(int argc, char **argv)
{
    static const char *const pipelines[] = {"RandomResizedCrop(64)",
                                            "Resize((40, 50)); ToDtype(f32); ToLayout(nhwc)",
                                            "RandomResizedCrop(48); ColorJitter(0.4, 0.4, 0.4, 0.1)",
                                            "RandomResizedCrop(64); Normalize(0.5, 0.25); ToDtype(f16)",
                                            "RandomResizedCrop(64); MixUp(0.4)",
                                            "RandomResizedCrop(48); ToDtype(f32); CutMix(); MixUp(p=0.5)"};
    static const leat_on_error policies[] = {LEAT_ON_ERROR_FAIL, LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};
    leat_error err = {0};
    leat_pack *pack = NULL;
    leat_loader_opts o;
    leat__rng rng;
    uint64_t bad = 0, failed = 0, there = 0, wrong = 0;
    if (argc < 3) return 2;
    const uint64_t count = strtoull(argv[2], NULL, 10), seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    const bool valid = argc > 4 && strcmp(argv[4], "valid") == 0;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/gpu-damage-%d.leat", folder != NULL ? folder : "/tmp", (int)getpid());
    if (leat_pack_open(&pack, argv[1], NULL, &err) != 0) die(argv[1], &err);
    if (leat_pack_blob(pack, "tile-tables", &tables, &tables_size, &err) != 0) die("tables", &err);
    take_images(pack);
    if (leat__gpu_open(&gpu, 0, NULL, &err) != 0) die("device", &err);
    if (leat__gpu_stream_open(&stream, gpu, &err) != 0) die("device", &err);
    if (leat__gpu_kernels_open(&kernels, gpu, &err) != 0) die("kernels", &err);
    for (uint64_t i = 0; i < count; i++) {
        leat__rng_init(&rng, seed, i, 3, 4);
        const uint32_t kind = valid ? KINDS : (uint32_t)(i % KINDS);
        write_pack(kind, &rng);
        if (kind == 2) change_file(&rng);
        leat_loader_opts_init(&o);
        o.batch_size = IMAGES - 2;
        o.ops = pipelines[i / 9 % LEAT_COUNT(pipelines)];
        o.on_error = policies[i / KINDS % LEAT_COUNT(policies)];
        o.seed = i;
        o.threads = 2;
        if (strstr(o.ops, "Mix") != NULL) o.classes = IMAGES;
        o.memory = 64 << 20;
        o.cache =
            i % 2 != 0 ? LEAT_CACHE_PROCESS : LEAT_CACHE_OS; /* the device reads cached pages in place */
        outcome host = load(o);
        o.device = "cuda";
        o.decode = LEAT_DECODE_GPU;
        o.device_memory = 2u << 30;
        outcome device = load(o);
        bad += host.bad;
        failed += host.rc != 0;
        there += device.there;
        if (same(&host, &device)) continue;
        wrong++;
        fprintf(stderr, "gpu_damage: pack %llu differs: %d '%s', %llu bad; on the device %d '%s', %llu bad\n",
                (unsigned long long)i, host.rc, host.err.message, (unsigned long long)host.bad, device.rc,
                device.err.message, (unsigned long long)device.bad);
    }
    unlink(path);
    leat__gpu_kernels_close(&kernels);
    leat__gpu_stream_close(&stream);
    leat__gpu_close(&gpu);
    leat_pack_close(&pack);
    printf("gpu_damage: %llu packs, %llu ended with an error, %llu samples skipped or replaced, %llu images "
           "decoded on the device, %llu differences\n",
           (unsigned long long)count, (unsigned long long)failed, (unsigned long long)bad,
           (unsigned long long)there, (unsigned long long)wrong);
    return wrong > 0;
}
