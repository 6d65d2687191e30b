/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "base/rng.h"
#include "curate/image_dedup.h"

#define ROWS 600

/* A row of noise of few frequencies; every third one is nearly the row before it. */
static void draw(uint32_t row, leat__image_sign *sign)
{
    uint8_t bytes[3][32 * 32];
    leat__image_small small = {.components = 3};
    leat__rng r;
    small.info.width = small.info.height = 32;
    leat__rng_init(&r, 9, 0, row - (row % 3 == 2), 0);
    float wave[12][3];
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 3; k++)
            wave[i][k] = (float)leat__rng_range(&r, k < 2 ? -0.6 : 5, k < 2 ? 0.6 : 25);
    for (int c = 0; c < 3; c++) {
        const uint32_t n = c == 0 ? 32 : 16;
        for (uint32_t i = 0; i < n * n; i++) {
            float v = 128 + (row % 3 == 2 ? 6 : 0);
            for (int k = 4 * c; k < 4 * c + 4; k++)
                v += wave[k][2] * sinf(wave[k][0] * (float)(i % n) + wave[k][1] * (float)(i / n) + (float)k);
            bytes[c][i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
        small.plane[c] = (leat__small_plane){
            .data = bytes[c], .stride = n, .width = n, .height = n, .across = (float)n, .down = (float)n};
    }
    leat__image_sign_make(sign, &small);
}

static void write_row(leat_packer *p, uint32_t drawn, uint64_t hash)
{
    leat__image_facts f = {.codec = LEAT__CODEC_JPEG, .is_signed = true, .width = 32, .height = 32};
    char key[24];
    draw(drawn, &f.sign);
    f.content_hash = hash;
    f.bytes = hash - 1;
    const int size = snprintf(key, sizeof key, "%05llu", (unsigned long long)hash - 1);
    assert_ok(leat__image_columns_append(p, key, (size_t)size, &f, NULL));
}

static void write_rows(const char *path, uint32_t first)
{
    leat_packer *p = NULL;
    leat_packer_stats stats;
    assert_ok(leat__image_columns_create(&p, path, "{}", true, true, NULL));
    for (uint32_t i = first; i < first + ROWS; i++) write_row(p, i, i + 1);
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

static uint8_t *read_file(const char *path, uint64_t *size)
{
    leat__file *f = NULL;
    assert_ok(leat__file_open(&f, path, LEAT__FILE_READ, NULL));
    *size = leat__file_size_at_open(f);
    uint8_t *data = malloc(*size + 1);
    assert_non_null(data);
    assert_ok(leat__file_pread(f, data, *size, 0, NULL));
    leat__file_close(&f);
    return data;
}

static void assert_same_file(const char *a, const char *b)
{
    uint64_t n, m;
    uint8_t *x = read_file(a, &n), *y = read_file(b, &m);
    assert_true(n == m && memcmp(x, y, n) == 0);
    free(x);
    free(y);
}

/* Descriptors in files give the same bytes as descriptors in memory, and no file is left over. */
static void files_find_what_memory_finds(void **state)
{
    const char *paths[] = {in_box("a.leat"), in_box("b.leat")};
    write_rows(paths[0], 0);
    write_rows(paths[1], ROWS - 3);
    for (uint32_t round = 0; round < 4; round++) {
        leat_dedup_images_opts o;
        leat_dedup_images_stats st[2] = {{.struct_size = sizeof st[0]}, {.struct_size = sizeof st[0]}};
        leat_dedup_images_opts_init(&o);
        o.inputs = paths;
        o.input_count = 2;
        o.across = round == 1;
        o.orientations = round == 2 ? 8 : 2;
        o.windows = round == 3;
        o.list_probable = 1;
        o.no_sync = 1;
        o.replace = 1;
        o.threads = 2;
        o.output = in_box("memory.dup");
        o.csv = in_box("memory.csv");
        assert_ok(leat_dedup_images(&o, &st[0], NULL));
        assert_true(st[0].in_memory && (round == 1 || st[0].pairs >= 2 * (uint64_t)ROWS / 3 - 2));
        o.output = in_box("files.dup");
        o.csv = in_box("files.csv");
        o.memory =
            leat__dedup_rows_least(2 * ROWS, round == 3 ? 11 * 2 * ROWS : 0, o.orientations) + (64u << 10);
        if (round == 3) o.memory += 1u << 20;
        assert_true(o.memory < st[0].plan_memory);
        assert_ok(leat_dedup_images(&o, &st[1], NULL));
        assert_true(!st[1].in_memory && st[1].plan_memory == o.memory);
        assert_int_equal(st[1].pairs, st[0].pairs);
        assert_int_equal(st[1].candidates, st[0].candidates);
        assert_same_file(in_box("memory.dup"), in_box("files.dup"));
        assert_same_file(in_box("memory.csv"), in_box("files.csv"));
        bool left = true;
        assert_ok(leat__path_exists(in_box("files.dup.spill"), &left, NULL));
        assert_false(left);
    }
    assert_no_leaks();
}

/* Similarity 1 is that of equal images, not of equal descriptors. */
static void equal_descriptors_are_not_equal_images(void **state)
{
    leat_packer *p = NULL;
    leat_packer_stats ps;
    leat_dedup_images_opts o;
    const char *path = in_box("pair.leat");
    assert_ok(leat__image_columns_create(&p, path, "{}", true, true, NULL));
    for (uint32_t i = 0; i < 2; i++) write_row(p, 0, 1 + i);
    assert_ok(leat_packer_finish(p, &ps, NULL));
    leat_packer_close(&p);
    leat_dedup_images_opts_init(&o);
    o.inputs = &path;
    o.input_count = 1;
    o.output = in_box("pair.dup");
    o.no_sync = 1;
    o.replace = 1;
    for (uint64_t most = 0; most < 2; most++) {
        leat_dedup_images_stats st = {.struct_size = sizeof st};
        o.threshold = most ? 1 : 0.99;
        assert_ok(leat_dedup_images(&o, &st, NULL));
        assert_true(st.exact == 0 && st.pairs == 1 - most && st.probable == most);
    }
    assert_no_leaks();
}

/* Columns with any values: an answer or an error, and the same from files. */
static void odd_columns_do_no_harm(void **state)
{
    for (uint32_t round = 0; round < 6; round++) {
        leat_packer *p = NULL;
        leat_packer_stats ps;
        leat__rng r;
        const char *path = in_box("odd.leat");
        leat__rng_init(&r, 77, round, 0, 0);
        assert_ok(leat__image_columns_create(&p, path, "{}", true, true, NULL));
        for (uint32_t i = 0; i < 700; i++) {
            leat__image_facts f = {.is_signed = leat__rng_below(&r, 8) != 0};
            char key[16];
            f.verdict = (leat__verdict)leat__rng_below(&r, round == 5 ? 99 : LEAT__VERDICTS);
            f.codec = (leat__codec_id)leat__rng_below(&r, LEAT__CODEC_COUNT);
            f.content_hash = leat__rng_below(&r, 300);
            for (int k = 0; k < LEAT__LOOKS; k++)
                f.score[k] = leat__rng_below(&r, 4) ? leat__rng_normal(&r) * 1e300 : NAN;
            if (leat__rng_below(&r, 4)) /* some rows are zeros */
                for (size_t k = 0; k < sizeof f.sign; k++)
                    ((uint8_t *)&f.sign)[k] =
                        (uint8_t)(leat__rng_below(&r, 3) ? leat__rng_below(&r, 256) : 128);
            f.sign.has_trimmed = leat__rng_below(&r, 2) == 1;
            assert_ok(
                leat__image_columns_append(p, key, (size_t)snprintf(key, sizeof key, "%u", i), &f, NULL));
        }
        assert_ok(leat_packer_finish(p, &ps, NULL));
        leat_packer_close(&p);
        int rc[2];
        for (uint32_t files = 0; files < 2; files++) {
            leat_dedup_images_opts o;
            leat_dedup_images_opts_init(&o);
            o.inputs = &path;
            o.input_count = 1;
            o.orientations = round == 1 ? 8 : 2;
            o.windows = round == 2;
            o.replace = o.no_sync = 1;
            o.output = in_box(files ? "files.dup" : "memory.dup");
            o.memory =
                files ? leat__dedup_rows_least(700, 11 * 700, o.orientations) + (round == 2 ? 1u << 20 : 0)
                      : 0;
            rc[files] = leat_dedup_images(&o, NULL, NULL);
        }
        assert_int_equal(rc[0], rc[1]);
        assert_int_equal(rc[0], round == 5 ? LEAT_EDATA : 0);
        if (rc[0] == 0) assert_same_file(in_box("memory.dup"), in_box("files.dup"));
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_find_what_memory_finds),
                                       cmocka_unit_test(equal_descriptors_are_not_equal_images),
                                       cmocka_unit_test(odd_columns_do_no_harm)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
