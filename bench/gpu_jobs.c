/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_jobs PACK FILE COUNT [OPS]: writes device jobs for COUNT crops of the pack's tiled images,
 * with the CPU's result for each. Without OPS the crops are small, and most have randomly changed
 * bytes. gpu_jobs.cu runs them on a device, optionally under compute-sanitizer:
 *
 *     build/bench/gpu_jobs tiled.leat jobs.bin 1000
 *     nvcc -O3 -fmad=false -arch=sm_90 -Isrc/gpu/kernels -o gpu_jobs bench/gpu_jobs.cu
 *     compute-sanitizer --tool memcheck ./gpu_jobs jobs.bin 10
 *
 * The last number is the number of rounds; each except the first adds damage, which only the
 * tools judge. With `time` instead, it prints the time of each kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leat/pack.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "codec/tile/tile_format.h"
#include "op/device_plan.h"

#define TILES_MAX 4u /* small crops, so that there are more of them */

typedef struct counts {
    uint32_t images, tiles;
    uint64_t data;
} counts;

static void die(const char *what, const leat_error *err)
{
    fprintf(stderr, "gpu_jobs: %s: %s\n", what, err->message);
    exit(1);
}

/* Changes bytes of the tiles: about one in 4,000, or none. */
static void damage(uint8_t *image, size_t len, leat__rng *rng)
{
    leat__tile_header h;
    if (leat__tile_header_parse(&h, image, len, NULL) != 0 || h.tile_bytes == 0) return;
    uint64_t times = leat__rng_u64(rng) % (h.tile_bytes / 2000 + 2);
    for (uint64_t i = 0; i < times; i++)
        image[h.header_bytes + leat__rng_u64(rng) % h.tile_bytes] = (uint8_t)leat__rng_u64(rng);
}

int main(int argc, char **argv)
{
    leat_error err = {0};
    leat_pack *pack = NULL;
    leat_pack_info info;
    leat__tile_tables *tables = NULL;
    leat__pipeline *p = NULL;
    leat__pipeline_worker *w = NULL;
    leat__device_chunk c;
    const void *blob;
    size_t size;
    leat__rng rng;
    if (argc < 4) return 2;
    const bool breaks = argc < 5;
    const uint32_t count = (uint32_t)strtoul(argv[3], NULL, 10), field = 0;
    if (leat_pack_open(&pack, argv[1], NULL, &err) != 0) die(argv[1], &err);
    if (leat_pack_info_read(pack, &info, sizeof info) != 0) die(argv[1], &err);
    if (leat_pack_blob(pack, "tile-tables", &blob, &size, &err) != 0) die("tables", &err);
    if (leat__tile_tables_open(&tables, blob, size, &err) != 0) die("tables", &err);
    const leat__pipeline_opts opts = {.ops = breaks ? "RandomResizedCrop(24, scale=(0.01, 0.2))" : argv[4]};
    if (leat__pipeline_open(&p, &opts, &err) != 0) die("ops", &err);
    if (leat__pipeline_worker_open(&w, &err) != 0) die("worker", &err);
    leat__rng_init(&rng, 1, 2, 3, 4);
    leat__device_chunk_init(&c);
    const size_t row_bytes = leat__pipeline_output(p)->bytes;
    uint8_t *pixels = leat__zalloc(LEAT__MEM_MISC, count * row_bytes);
    uint32_t *bad = leat__zalloc(LEAT__MEM_MISC, (size_t)count * sizeof *bad), made = 0;
    for (uint64_t i = 0; made < count && i < 20 * (uint64_t)count; i++) {
        leat_pack_row row;
        leat_pack_cell cell;
        leat__image_info image;
        bool taken = false;
        const uint64_t id = i % info.samples;
        if (leat_pack_look(pack, id, &row, &field, 1, &cell, &err) != 0) die("sample", &err);
        uint8_t *bytes = leat__zalloc(LEAT__MEM_MISC, row.size + LEAT_PACK_PADDING);
        if (leat_pack_read(pack, id, bytes, row.size + LEAT_PACK_PADDING, &err) != 0) die("sample", &err);
        uint8_t *data = bytes + cell.start;
        if (leat__codec_probe(LEAT__CODEC_TILE, data, cell.length, &image, NULL) == 0) {
            if (breaks) damage(data, cell.length, &rng);
            leat__encoded e = {.info = &image, .data = data, .len = cell.length, .tables = tables};
            const leat__draw_key key = {.seed = 5, .epoch = i, .sample = id};
            leat__device_mark mark = leat__device_chunk_mark(&c);
            uint32_t tiles = leat__device_chunk_tiles(&c);
            leat__device_place place = {0};
            if (leat__device_plan(&c, p, &e, &key, made, 0, &place, &taken, &err) != 0) die("plan", &err);
            if (taken && breaks && leat__device_chunk_tiles(&c) - tiles > TILES_MAX) {
                leat__device_chunk_rewind(&c, mark);
                taken = false;
            }
            if (taken) {
                uint8_t *out = pixels + made * row_bytes;
                bad[made++] = leat__pipeline_run(p, w, &e, &key, out, &err) != 0;
            }
        }
        leat__free(bytes);
    }
    FILE *f = fopen(argv[2], "wb");
    if (f == NULL) return 1;
    leat_job_output out;
    leat__device_output(p, &out);
    const counts n = {made, leat__device_chunk_tiles(&c), c.data.len};
    fwrite(&n, sizeof n, 1, f);
    fwrite(&out, sizeof out, 1, f);
    fwrite(&tables->codes, sizeof(leat_job_codes), 1, f);
    fwrite(c.images.data, 1, c.images.len, f);
    fwrite(c.tiles.data, 1, c.tiles.len, f);
    fwrite(c.data.data, 1, c.data.len, f);
    fwrite(bad, sizeof *bad, made, f);
    fwrite(pixels, row_bytes, made, f);
    if (fclose(f) != 0) return 1;
    printf("gpu_jobs: %u images, %u tiles, %zu bytes\n", made, n.tiles, c.data.len);
    return 0;
}
