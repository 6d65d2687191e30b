/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests src/op/device_plan.c together with the kernels of src/gpu/kernels, run on the host: for tiled
 * images they give the same bits as the CPU's pipeline, and they detect the same damage. LEAT_DEVICE_ROUNDS
 * makes the random test longer.
 */
#include "gpu/host_kernels.h" /* first: their names are short */
#include "codec/make_tiles.h"

#include "base/num.h"
#include "op/device_plan.h"

static leat__pipeline_worker *worker;

typedef struct tiled {
    bytes sample;
    leat__image_info info;
    leat__encoded encoded;
    uint8_t *pages; /* where the device reads it, if it was moved */
} tiled;

static bool make_tiled(tiled *t, uint32_t kind, uint32_t w, uint32_t h, uint32_t seed, bool fast)
{
    leat__tile_kept kept;
    if (!can_be_tiled(&jpeg_kinds[kind])) return false;
    bytes jpeg = make_jpeg(&jpeg_kinds[kind], w, h, 40 + (int)(seed % 55), seed);
    t->sample = tile_jpeg(jpeg, fast ? LEAT__TILE_FAST : LEAT__TILE_SMALL, &kept);
    free(jpeg.data);
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_TILE, t->sample.data, t->sample.len, &t->info, NULL), 0);
    t->pages = NULL;
    t->encoded = (leat__encoded){
        .info = &t->info, .data = t->sample.data, .len = t->sample.len, .tables = tables, .orientation = 1};
    return true;
}

static void drop_tiled(tiled *t)
{
    free(t->sample.data);
    free(t->pages);
}

/* Reads the chunk's ranges as the device would, into memory that the caller frees. */
static uint8_t *gather_chunk(leat__device_chunk *c)
{
    leat_job_range *const range = (leat_job_range *)(void *)c->ranges.data;
    leat_job job = {.ranges = range, .range_count = (uint32_t)(c->ranges.len / sizeof *range)};
    if (job.range_count == 0) return NULL;
    uint8_t *to = aligned_alloc(LEAT_JOB_LINE, c->arena->gathered);
    memset(to, 0xa5, c->arena->gathered);
    for (uint32_t i = 0; i < job.range_count; i++) {
        assert_int_equal(range[i].from % LEAT_JOB_LINE, 0);
        range[i].to += (uint64_t)(uintptr_t)to;
        range[i].first = job.lines;
        job.lines += range[i].lines;
    }
    assert_true((uint64_t)job.lines * LEAT_JOB_LINE <= c->arena->gathered);
    host_gather(&job);
    return to;
}

/* Runs a job of the chunk's images on the host. Returns the status of the first. */
static uint32_t run_chunk(leat__device_chunk *c, const leat__pipeline *p, void *out)
{
    uint32_t status[8], images = leat__device_chunk_images(c);
    leat_job_image *const im = (leat_job_image *)(void *)c->images.data;
    static leat_job_output output;
    uint64_t work = 0;
    uint8_t *gathered = gather_chunk(c);
    leat__device_output(p, &output);
    output.data = (uint64_t)(uintptr_t)out;
    for (uint32_t i = 0; i < images; i++) {
        status[i] = LEAT_JOB_NO_DAMAGE;
        im[i].work = work;
        work += im[i].work_bytes;
        if (im[i].source == LEAT_JOB_ARENA) im[i].data += (uintptr_t)c->arena->data;
        if (im[i].source == LEAT_JOB_SPILL) im[i].data += (uintptr_t)c->data.data;
        if (im[i].source != LEAT_JOB_GATHERED) continue;
        im[i].data += (uintptr_t)gathered;
        im[i].quant += (uintptr_t)c->arena->data - im[i].data;
    }
    uint8_t *block = malloc(work + 64);
    memset(block, 0xa5, work + 64); /* nothing may be taken for granted there */
    leat_job job = {.images = im,
                    .tiles = (const leat_job_tile *)(const void *)c->tiles.data,
                    .outputs = &output,
                    .codes = (const leat_job_codes *)(const void *)&tables->codes,
                    .work = block,
                    .status = status,
                    .image_count = images,
                    .tile_count = leat__device_chunk_tiles(c)};
    host_decode(&job);
    for (int i = 0; i < 64; i++) assert_int_equal(block[work + (uint64_t)i], 0xa5);
    free(block);
    free(gathered);
    return status[0];
}

enum { SPILL, ARENA, WHOLE, RESIDENT, MAPPED, PLACES };

/* Moves the sample to `offset` after the start of a page; whole lines around it can be read. */
static uint8_t *move_sample(tiled *t, uint32_t offset)
{
    const size_t size = (offset + t->sample.len + LEAT__DEVICE_SLACK + 4095) & ~(size_t)4095;
    uint8_t *page = aligned_alloc(4096, size);
    memset(page, 0x5a, size);
    memcpy(page + offset, t->sample.data, t->sample.len);
    free(t->pages);
    t->pages = page;
    return page + offset;
}

/* Adds an image to the chunk. The seed selects where its bytes are. */
static bool list(leat__device_chunk *c, leat__device_arena *arena, const leat__pipeline *p, tiled *t,
                 const leat__draw_key *key)
{
    const uint32_t where = (uint32_t)key->seed % PLACES;
    const bool whole = where == WHOLE || where == RESIDENT;
    leat__device_place place = {.whole = whole};
    leat__tile_header h;
    bool taken = false;
    c->arena = where == SPILL ? NULL : arena;
    if (where == MAPPED) place.mapped = (uint64_t)(uintptr_t)move_sample(t, (uint32_t)key->seed * 13 % 300);
    assert_int_equal(leat__device_plan(c, p, &t->encoded, key, 0, 0, &place, &taken, NULL), 0);
    if (!taken) return false;
    const leat_job_image *const im = (const leat_job_image *)(const void *)c->images.data;
    assert_int_equal(im->source, where == SPILL    ? LEAT_JOB_SPILL
                                 : where == MAPPED ? LEAT_JOB_GATHERED
                                                   : LEAT_JOB_ARENA);
    assert_int_equal(place.whole, whole);
    if (where != RESIDENT) return true;
    /* from the device: the header alone is read */
    assert_int_equal(leat__tile_header_parse(&h, t->encoded.data, t->encoded.len, NULL), 0);
    uint8_t *header = malloc(h.header_bytes);
    memcpy(header, t->encoded.data, h.header_bytes);
    leat__encoded e = t->encoded;
    e.data = header;
    place = (leat__device_place){.resident = (uint64_t)(uintptr_t)arena->data + im->data};
    leat__device_chunk_clear(c);
    const uint64_t used = atomic_load(&arena->used);
    assert_int_equal(leat__device_plan(c, p, &e, key, 0, 0, &place, &taken, NULL), 0);
    assert_true(taken && atomic_load(&arena->used) == used && c->data.len == 0);
    free(header);
    return true;
}

/* Decodes one image both ways and compares; false: the device does not support it. */
static bool compare(tiled *t, const char *ops, uint64_t seed)
{
    leat__pipeline *p = NULL;
    leat__device_chunk c;
    leat_error err = {0};
    leat__device_arena arena = {.size = 1 << 20};
    const leat__draw_key key = {.seed = seed, .epoch = 1, .sample = seed * 7};
    if (leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = ops}, &err) != 0)
        fail_msg("%s: %s", ops, err.message);
    leat__device_chunk_init(&c);
    arena.data = aligned_alloc(64, arena.size);
    memset(arena.data, 0x5a, arena.size);
    const bool taken = list(&c, &arena, p, t, &key);
    if (taken) {
        const size_t size = leat__pipeline_output(p)->bytes;
        uint8_t *a = malloc(size), *b = malloc(size);
        memset(a, 1, size);
        memset(b, 2, size);
        if (leat__pipeline_run(p, worker, &t->encoded, &key, a, &err) != 0) fail_msg("%s", err.message);
        assert_int_equal(run_chunk(&c, p, b), LEAT_JOB_NO_DAMAGE);
        if (memcmp(a, b, size) != 0) {
            size_t at = 0;
            while (a[at] == b[at]) at++;
            fail_msg("%s of %ux%u %s, seed %llu: byte %zu of %zu is %d, not %d", ops, t->info.width,
                     t->info.height, t->info.format, (unsigned long long)seed, at, size, b[at], a[at]);
        }
        free(a);
        free(b);
    }
    free(arena.data);
    leat__device_chunk_reset(&c);
    leat__pipeline_close(&p);
    return taken;
}

static void every_sampling_and_pipeline(void **state)
{
    static const char *const pipelines[] = {
        "RandomResizedCrop(32); RandomHorizontalFlip()",
        "RandomResizedCrop(24, like=pillow12); RandomVerticalFlip(); ToDtype(f16)",
        "Resize(40); CenterCrop(36); Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)); ToDtype(f32)",
        "Resize((17, 90), bicubic); ToDtype(bf16); ToLayout(nhwc)",
        "Resize((20, 200)); RandomHorizontalFlip(p=1); ToLayout(nhwc)",
        "RandomHorizontalFlip(p=1); Resize((33, 21), nearest)",
        "CenterCrop(30); RandomVerticalFlip(p=1)",
        "RandomResizedCrop(28, interpolation=box); Normalize(0.5, 0.25); RandomErasing(p=1); ToDtype(f16)",
    };
    uint32_t taken = 0, seed = 1;
    for (uint32_t kind = 0; kind < JPEG_KINDS; kind++) {
        static const uint32_t sizes[][2] = {{130, 97}, {64, 64}, {61, 200}, {300, 40}, {40, 41}};
        for (size_t z = 0; z < LEAT_COUNT(sizes); z++) {
            for (int fast = 0; fast < 2; fast++, seed++) {
                tiled t;
                if (!make_tiled(&t, kind, sizes[z][0], sizes[z][1], seed, fast)) continue;
                for (size_t i = 0; i < LEAT_COUNT(pipelines); i++) {
                    t.encoded.orientation = 1 + (seed + (uint32_t)i) % 8;
                    taken += compare(&t, pipelines[i], seed + i);
                }
                drop_tiled(&t);
            }
        }
    }
    assert_true(taken > 300);
}

static void random_pipelines(void **state)
{
    static const char *const filters[] = {"bilinear", "bicubic", "box", "nearest"};
    static const char *const dtypes[] = {"u8", "f16", "bf16", "f32"};
    const char *rounds = getenv("LEAT_DEVICE_ROUNDS");
    uint32_t s = 12345, taken = 0, n = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : 60;
    for (uint32_t i = 0; i < n; i++) {
        char ops[256];
        tiled t;
        uint32_t kind = dice_below(&s, JPEG_KINDS);
        uint32_t width = 1 + dice_below(&s, 260), height = 1 + dice_below(&s, 260);
        if (!make_tiled(&t, kind, width, height, i, dice(&s) & 1)) continue;
        snprintf(ops, sizeof ops,
                 "RandomResizedCrop((%u, %u), interpolation=%s); RandomHorizontalFlip(); "
                 "RandomVerticalFlip(); ToDtype(%s); ToLayout(%s)",
                 1 + dice_below(&s, 80), 1 + dice_below(&s, 80), filters[dice_below(&s, 4)],
                 dtypes[dice_below(&s, 4)], dice(&s) & 1 ? "nhwc" : "nchw");
        t.encoded.orientation = 1 + dice_below(&s, 8);
        taken += compare(&t, ops, i);
        drop_tiled(&t);
    }
    assert_true(taken > n / 4);
}

/* Tests every colour step alone, then several, in all types and layouts. */
static void colour_steps(void **state)
{
    static const char *const steps[] = {
        "ColorJitter(brightness=0.6)",
        "ColorJitter(contrast=0.6)",
        "ColorJitter(saturation=0.6)",
        "ColorJitter(hue=0.5)",
        "ColorJitter(0.4, 0.4, 0.4, 0.1); RandomGrayscale(p=0.3)",
        "Grayscale(3)",
        "RandomInvert(p=1)",
        "RandomSolarize(99.5, p=1)",
        "RandomPosterize(3, p=1)",
        "RandomAutocontrast(p=1)",
        "RandomEqualize(p=1)",
        "RandomErasing(p=1, value=(9, 130, 255))",
        "RandomErasing(p=1, random=true)",
        "Grayscale(1)",
        "RandomEqualize(p=1); RandomErasing(p=1); ColorJitter(0.2, 0.2, 0.2, 0.2); RandomSolarize(7, p=0.5)",
        "ColorJitter(0.4, 0.4, 0.4, 0.1); RandomHorizontalFlip(p=1)",
        "RandomEqualize(p=1); RandomVerticalFlip(p=1); ColorJitter(contrast=0.6); RandomHorizontalFlip(p=1); "
        "RandomErasing(p=1)",
        "RandomAutocontrast(p=1); RandomHorizontalFlip(p=0.5); RandomPosterize(3, p=1); "
        "RandomVerticalFlip(p=0.5)",
        "RandomAutocontrast(p=1); Normalize(0.5, 0.25); RandomErasing(p=1)"};
    static const char *const types[] = {"u8", "f16", "bf16", "f32"};
    uint32_t taken = 0, n = 0;
    for (uint32_t kind = 0; kind < JPEG_KINDS; kind++) {
        tiled t;
        if (!make_tiled(&t, kind, 120, 90 + kind, kind, kind & 1)) continue;
        for (size_t i = 0; i < LEAT_COUNT(steps); i++, n++) {
            char ops[320];
            snprintf(
                ops, sizeof ops,
                "RandomResizedCrop((33, 41)); RandomHorizontalFlip(); %s; ToDtype(%s); "
                "ToLayout(%s)",
                steps[i],
                types[(i + kind) % (strstr(steps[i], "Norm") ? 3 : 4) + (strstr(steps[i], "Norm") ? 1 : 0)],
                (i + kind) & 1 ? "nhwc" : "nchw");
            t.encoded.orientation = 1 + n % 8;
            taken += compare(&t, ops, 4 * n + 1);
        }
        drop_tiled(&t);
    }
    assert_true(n > 100);
    assert_int_equal(taken, n);
}

/* Regions that do not fit into a block's shared memory are computed in several windows, also side by side. */
static void large_regions_are_made_in_parts(void **state)
{
    static const char *const pipelines[] = {"Resize((3, 2))",
                                            "Resize((40, 300), bicubic)",
                                            "RandomResizedCrop(200); RandomHorizontalFlip()",
                                            "Resize((300, 7), box); ToDtype(f16)",
                                            "CenterCrop((80, 1900)); RandomVerticalFlip(p=1)",
                                            "CenterCrop((1900, 80)); ToLayout(nhwc)",
                                            "Resize((70, 1000), nearest)"};
    static const uint32_t sizes[][2] = {{2100, 90}, {90, 2100}, {700, 500}};
    uint32_t taken = 0, kind = 0;
    for (size_t z = 0; z < LEAT_COUNT(sizes); z++) {
        tiled t;
        while (!make_tiled(&t, kind, sizes[z][0], sizes[z][1], (uint32_t)z, z & 1)) kind++;
        kind++;
        for (size_t i = 0; i < LEAT_COUNT(pipelines); i++) {
            t.encoded.orientation = 1 + (uint32_t)i % 4;
            taken += compare(&t, pipelines[i], 4 * (z + i)); /* the arena is too small for them */
        }
        drop_tiled(&t);
    }
    assert_int_equal(taken, LEAT_COUNT(sizes) * LEAT_COUNT(pipelines) - 4); /* crops that pad */
}

/* Changes bytes at random: the kernels and the CPU agree on whether the tiles are valid, and on the pixels
 * when they are. Damaged images are black. */
static void damage_is_found_alike(void **state)
{
    static const char *const ops[] = {"Resize((48, 40))", "Resize((48, 40)); ColorJitter(0.4); ToDtype(f16)",
                                      "Resize((48, 40)); ToLayout(nhwc)"};
    uint32_t s = 99, found = 0;
    leat__pipeline *all[LEAT_COUNT(ops)] = {0};
    for (size_t i = 0; i < LEAT_COUNT(ops); i++)
        assert_int_equal(leat__pipeline_open(&all[i], &(leat__pipeline_opts){.ops = ops[i]}, NULL), 0);
    for (uint32_t i = 0; i < 400; i++) {
        const leat__pipeline *const p = all[i % LEAT_COUNT(ops)];
        tiled t;
        leat__device_chunk c;
        leat__tile_header h;
        bool taken;
        leat_error err = {0};
        const leat__draw_key key = {.seed = i};
        uint32_t kind = dice_below(&s, JPEG_KINDS), width = 60 + dice_below(&s, 90);
        if (!make_tiled(&t, kind, width, 60 + dice_below(&s, 90), i / 8, i & 1)) continue;
        t.encoded.orientation = 1 + i / 3 % 8;
        assert_int_equal(leat__tile_header_parse(&h, t.sample.data, t.sample.len, NULL), 0);
        for (uint32_t k = 0; k <= i % 3; k++)
            t.sample.data[h.header_bytes + dice_below(&s, h.tile_bytes)] ^=
                (uint8_t)(1u << dice_below(&s, 8));
        leat__device_chunk_init(&c);
        leat__device_place place = {0};
        assert_int_equal(leat__device_plan(&c, p, &t.encoded, &key, 0, 0, &place, &taken, NULL), 0);
        assert_true(taken);
        const size_t size = leat__pipeline_output(p)->bytes;
        uint8_t a[48 * 40 * 6], b[sizeof a];
        assert_true(size <= sizeof a);
        memset(b, 0x77, sizeof b);
        int rc = leat__pipeline_run(p, worker, &t.encoded, &key, a, &err);
        uint32_t status = run_chunk(&c, p, b);
        assert_int_equal(rc == 0, status == LEAT_JOB_NO_DAMAGE);
        if (rc != 0) {
            char words[32];
            snprintf(words, sizeof words, "tile %u ", status >> 4);
            assert_non_null(strstr(err.message, words));
            assert_non_null(strstr(err.message, leat__tile_damage_text(status & 15)));
            for (size_t k = 0; k < size; k++) assert_int_equal(b[k], 0); /* made black, all of it */
            found++;
        } else {
            assert_memory_equal(a, b, size);
        }
        leat__device_chunk_reset(&c);
        drop_tiled(&t);
    }
    for (size_t i = 0; i < LEAT_COUNT(ops); i++) leat__pipeline_close(&all[i]);
    assert_true(found > 50);
}

static void what_is_left_to_the_cpu(void **state)
{
    static const char *const others[] = {"RandomResizedCrop(16, interpolation=lanczos)",
                                         "RandomResizedCrop(16, like=fast)",
                                         "ColorJitter(0.5); RandomResizedCrop(16)",
                                         "Resize((9, 9)); Normalize(0, 1); RandomErasing(p=1, random=true)"};
    tiled t;
    leat__pipeline *p = NULL;
    const char *op = "";
    assert_true(make_tiled(&t, 0, 90, 80, 5, false));
    for (size_t i = 0; i < LEAT_COUNT(others); i++) assert_false(compare(&t, others[i], 3));
    t.encoded.tables = NULL;
    assert_false(compare(&t, "RandomResizedCrop(16)", 3));
    drop_tiled(&t);
    static const struct {
        const char *ops, *op, *why;
    } refused[] = {
        {"Resize((9, 9)); GaussianBlur(3)", "GaussianBlur", "runs on the host"},
        {"Resize((9, 9)); ColorJitter(0.4); GaussianBlur(3)", "GaussianBlur", "runs on the host"},
        {"Resize((9, 9)); RandomInvert(); RandomRotation(9)", "RandomRotation", "runs on the host"},
        {"Resize((9, 9)); RandomErasing(); RandomHorizontalFlip()", "RandomHorizontalFlip",
         "after RandomErasing"},
        {"RandomInvert(); Resize((9, 9)); ColorJitter(0.1)", "RandomInvert", "before a resize"}};
    for (size_t i = 0; i < LEAT_COUNT(refused); i++) {
        const leat__pipeline_opts o = {.ops = refused[i].ops};
        assert_int_equal(leat__pipeline_open(&p, &o, NULL), 0);
        const char *why = leat__device_refuses(p, &op);
        assert_non_null(why);
        assert_non_null(strstr(why, refused[i].why));
        assert_string_equal(op, refused[i].op);
        assert_true(leat__device_takes(p, 90, 80) == 0);
        leat__pipeline_close(&p);
    }
    const leat__pipeline_opts plain = {.ops = "Resize((9, 9)); ColorJitter(0.1); Normalize(0, 1)"};
    assert_int_equal(leat__pipeline_open(&p, &plain, NULL), 0);
    assert_null(leat__device_refuses(p, &op));
    assert_true(leat__device_takes(p, 90, 80) == 1);
    leat__pipeline_close(&p);
    for (size_t i = 0; i < LEAT_COUNT(others); i++) {
        const leat__pipeline_opts o = {.ops = others[i]};
        assert_int_equal(leat__pipeline_open(&p, &o, NULL), 0);
        assert_true(leat__device_takes(p, 90, 80) == 0);
        leat__pipeline_close(&p);
    }
}

static int open_all(void **state)
{
    open_tiles(state);
    return leat__pipeline_worker_open(&worker, NULL);
}

static int close_all(void **state)
{
    leat__pipeline_worker_close(&worker);
    return close_tiles(state);
}

/* Chunks share an arena: what does not fit goes into the chunk's own bytes. */
static void a_full_arena_spills(void **state)
{
    tiled t;
    leat__pipeline *p = NULL;
    leat__device_chunk c;
    static _Alignas(16) uint8_t memory[1536];
    leat__device_arena arena = {.data = memory, .size = sizeof memory};
    uint32_t spilled = 0, kind = 0;
    while (!make_tiled(&t, kind, 70, 70, 3, true)) kind++;
    assert_int_equal(leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = "Resize((8, 8))"}, NULL), 0);
    leat__device_chunk_init(&c);
    c.arena = &arena;
    for (uint32_t i = 0; i < 8; i++) {
        const leat__draw_key key = {.seed = i};
        leat__device_place place = {.whole = i % 2};
        bool taken = false;
        assert_int_equal(leat__device_plan(&c, p, &t.encoded, &key, i, 0, &place, &taken, NULL), 0);
        assert_true(taken);
        const leat_job_image *const im = (const leat_job_image *)(const void *)c.images.data + i;
        if (im->source == LEAT_JOB_SPILL) spilled++;
        assert_int_equal(place.whole, i % 2 && im->source == LEAT_JOB_ARENA);
    }
    assert_true(spilled > 0 && c.data.len > 0 && atomic_load(&arena.used) <= sizeof memory);
    uint8_t out[8 * 8 * 3 * 8];
    assert_int_equal(run_chunk(&c, p, out), LEAT_JOB_NO_DAMAGE);
    for (uint32_t i = 1; i < 8; i++) assert_memory_equal(out, out + i * 192, 192);
    leat__device_chunk_reset(&c);
    leat__pipeline_close(&p);
    drop_tiled(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sampling_and_pipeline),
        cmocka_unit_test(random_pipelines),
        cmocka_unit_test(colour_steps),
        cmocka_unit_test(large_regions_are_made_in_parts),
        cmocka_unit_test(damage_is_found_alike),
        cmocka_unit_test(a_full_arena_spills),
        cmocka_unit_test(what_is_left_to_the_cpu),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
