/* SPDX-License-Identifier: Apache-2.0
 *
 * Progressive files to tiles and back, byte for byte: random scan scripts, restart markers, runs at their
 * limits. Files that another encoder would have written differently are not tiled.
 */
#include "codec/make_tiles.h"

#include <math.h>

#include "leat_test.h"

enum { SCRIPT_MAX = 64 };

typedef struct script {
    jpeg_scan_info scan[SCRIPT_MAX];
    int scans;
} script;

static void add_scan(script *s, int components, int first, int from, int to, int high, int low)
{
    assert_true(s->scans < SCRIPT_MAX);
    jpeg_scan_info *scan = &s->scan[s->scans++];
    *scan = (jpeg_scan_info){.comps_in_scan = components, .Ss = from, .Se = to, .Ah = high, .Al = low};
    for (int i = 0; i < components; i++) scan->component_index[i] = first + i;
}

/* Each band of each component, first down to a random bit, then refined bit by bit. Sometimes the last bits
 * are omitted, as in a file truncated between two scans. */
static void random_script(script *s, int components, uint32_t *seed)
{
    int low = (int)dice_below(seed, 3), alone = components == 1 || dice_below(seed, 3) == 0;
    for (int bit = low; bit >= 0; bit--)
        for (int c = 0; c < (alone ? components : 1); c++)
            add_scan(s, alone ? 1 : components, c, 0, 0, bit == low ? 0 : bit + 1, bit);
    for (int c = 0; c < components; c++)
        for (int from = 1; from <= 63;) {
            int to = from + (int)dice_below(seed, 30), bits = (int)dice_below(seed, 4);
            if (to > 50) to = 63;
            int stop = dice_below(seed, 8) == 0 ? bits : 0;
            for (int bit = bits; bit >= stop; bit--)
                add_scan(s, 1, c, from, to, bit == bits ? 0 : bit + 1, bit);
            from = to + 1;
        }
}

typedef struct making {
    uint32_t width, height;
    int components, h, v, quality, restart;
    bool flat, wave; /* one grey; one frequency in every block */
} making;

static bytes make_progressive(const making *m, const script *s, uint32_t seed)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long len = 0;
    uint8_t *pixels = make_pixels(m->width, m->height, (uint32_t)m->components, seed);
    if (m->flat) memset(pixels, 100, (size_t)m->width * m->height * (size_t)m->components);
    for (size_t i = 0; m->wave && i < (size_t)m->width * m->height; i++)
        pixels[i] = (uint8_t)(128 + 100 * cos((2 * (double)(i % m->width % 8) + 1) * 0.19635));
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &len);
    c.image_width = m->width;
    c.image_height = m->height;
    c.input_components = m->components;
    c.in_color_space = m->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, m->quality, TRUE);
    c.comp_info[0].h_samp_factor = m->h;
    c.comp_info[0].v_samp_factor = m->v;
    c.restart_interval = (unsigned)m->restart;
    c.scan_info = s->scan;
    c.num_scans = s->scans;
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < m->height) {
        JSAMPROW row = pixels + (size_t)c.next_scanline * m->width * (size_t)m->components;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(pixels);
    bytes b = {calloc(1, len + LEAT__CODEC_PADDING), len};
    assert_non_null(b.data);
    memcpy(b.data, out, len);
    free(out);
    return b;
}

static void expect_back(bytes jpeg, uint32_t number)
{
    leat__tile_kept kept;
    leat__tile_facts facts;
    leat__buf file;
    bytes b = tile_jpeg(jpeg, number % 2 ? LEAT__TILE_FAST : LEAT__TILE_SMALL, &kept);
    if (kept != LEAT__TILE_KEPT_NONE) fail_msg("file %u: %s", number, leat__tile_kept_text(kept));
    assert_int_equal(b.data[4], 2); /* readers of version 1 refuse it */
    assert_ok(leat__tile_describe(b.data, b.len, &facts, NULL));
    assert_true(facts.exact && facts.progressive);
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 26);
    assert_ok(leat__tile_restore(b.data, b.len, tables, &file, NULL));
    assert_int_equal(file.len, jpeg.len);
    assert_memory_equal(file.data, jpeg.data, jpeg.len);
    leat__buf_reset(&file);
    free(b.data);
}

static void random_scripts_come_back(void **state)
{
    static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    uint32_t seed = 9;
    const uint64_t files = test_count("LEAT_TEST_SCRIPTS", 150);
    for (uint32_t i = 0; i < files; i++) {
        making m = {1 + dice_below(&seed, 150),
                    1 + dice_below(&seed, 150),
                    3,
                    1,
                    1,
                    30 + (int)dice_below(&seed, 70),
                    0,
                    false,
                    false};
        if (dice_below(&seed, 4) == 0) m.components = 1;
        uint32_t sampling = dice_below(&seed, 5);
        if (m.components == 3) {
            m.h = samplings[sampling][0];
            m.v = samplings[sampling][1];
        }
        if (dice_below(&seed, 3) == 0) m.restart = 1 + (int)dice_below(&seed, 40);
        m.flat = dice_below(&seed, 10) == 0;
        script s = {.scans = 0};
        random_script(&s, m.components, &seed);
        bytes jpeg = make_progressive(&m, &s, i);
        expect_back(jpeg, i);
        free(jpeg.data);
    }
}

/* More consecutive ended blocks than one run can contain, and more correction bits than may wait. */
static void runs_at_their_limits_come_back(void **state)
{
    script s = {.scans = 0};
    add_scan(&s, 1, 0, 0, 0, 0, 0);
    add_scan(&s, 1, 0, 1, 63, 0, 1);
    add_scan(&s, 1, 0, 1, 63, 1, 0);
    bytes flat = make_progressive(&(making){1600, 1600, 1, 1, 1, 75, 0, true, false}, &s, 1);
    expect_back(flat, 0); /* 40,000 blocks */
    free(flat.data);
    bytes wave = make_progressive(&(making){400, 400, 1, 1, 1, 90, 0, false, true}, &s, 2);
    expect_back(wave, 1); /* 2,500 blocks with a correction bit each */
    free(wave.data);
}

/* A valid file with scans of another encoder: three runs of one block each instead of one run. It is not
 * tiled, with the reason. */
static void other_runs_are_kept(void **state)
{
    script s = {.scans = 0};
    add_scan(&s, 1, 0, 0, 0, 0, 0);
    add_scan(&s, 1, 0, 1, 63, 0, 0);
    bytes jpeg = make_progressive(&(making){24, 8, 1, 1, 1, 75, 0, true, false}, &s, 1);
    /* the last scan: its table has one code, 0, of the run of two or three; the run, its one
     * extra bit. Instead: that code means one block. */
    size_t at = jpeg.len - 2;
    while (!(jpeg.data[at] == 0xff && jpeg.data[at + 1] == 0xc4)) at--;
    assert_int_equal(jpeg.data[at + 4], 0x10);
    assert_int_equal(jpeg.data[at + 5], 1);
    assert_int_equal(jpeg.data[at + 21], 0x10);
    jpeg.data[at + 21] = 0x00;
    jpeg.data[jpeg.len - 3] = 0x1f; /* 0 0 0 11111 */
    leat__tile_kept kept;
    bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    assert_int_equal(kept, LEAT__TILE_KEPT_RESTORE);
    assert_int_equal(b.len, 0);
    free(b.data);
    free(jpeg.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_scripts_come_back),
        cmocka_unit_test(runs_at_their_limits_come_back),
        cmocka_unit_test(other_runs_are_kept),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
