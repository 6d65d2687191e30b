/* SPDX-License-Identifier: Apache-2.0
 *
 * Every byte of a pack is covered: verify finds single flipped bytes anywhere, and no call of the
 * reader ever returns bytes that differ from the original. LEAT_FLIPS sets how many random places
 * are tried.
 */
#include "packtest.h"

#include <fcntl.h>

#define SAMPLES 220
#define SCALE 2500

typedef struct finds {
    int count, samples, named;
} finds;

static int on_damage(void *cookie, const leat_pack_damage *d)
{
    finds *f = cookie;
    f->count++;
    assert_non_null(d->path);
    assert_true(d->reason != NULL && d->reason[0] != '\0');
    if (d->sample >= 0) {
        f->samples++;
        if (d->key_size > 0) f->named++;
        assert_true(d->page >= 0 && d->offset >= 4096);
    }
    return 0;
}

static int verify(const char *path, uint32_t threads, finds *f, leat_pack_verify_stats *stats)
{
    leat_error err;
    *f = (finds){0};
    leat_pack_verify_opts o = {.struct_size = sizeof o, .threads = threads, .damage = on_damage, .cookie = f};
    return leat_pack_verify(path, &o, stats, &err);
}

/* The results of an undamaged pack. */
typedef struct truth {
    leat_pack_row rows[SAMPLES];
    leat_pack_cell cells[PT_FIELDS][SAMPLES];
    leat_pack_page *pages;
    uint64_t page_count;
    const uint8_t *file;
} truth;

static void learn(const char *path, truth *t)
{
    leat_pack *p;
    leat_error err;
    leat_pack_info info;
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    leat_pack_info_read(p, &info, sizeof info);
    t->page_count = info.pages;
    t->pages = calloc(info.pages, sizeof *t->pages);
    assert_int_equal(leat_pack_rows(p, 0, SAMPLES, t->rows, &err), 0);
    for (uint32_t f = 0; f < PT_FIELDS; f++)
        assert_int_equal(leat_pack_cells(p, f, 0, SAMPLES, t->cells[f], &err), 0);
    for (uint64_t i = 0; i < info.pages; i++)
        assert_int_equal(leat_pack_page_info(p, i, &t->pages[i], &err), 0);
    leat_pack_close(&p);
}

/* Every result that the damaged pack returns without an error equals the truth. */
static void never_wrong(const char *path, const truth *t, uint8_t *buf, size_t capacity)
{
    leat_pack *p;
    leat_error err;
    static leat_pack_row rows[SAMPLES];
    static leat_pack_cell cells[SAMPLES];
    if (leat_pack_open(&p, path, NULL, &err) != 0) return;
    if (leat_pack_rows(p, 0, SAMPLES, rows, &err) == 0) assert_memory_equal(rows, t->rows, sizeof rows);
    for (uint32_t f = 0; f < PT_FIELDS; f++)
        if (leat_pack_cells(p, f, 0, SAMPLES, cells, &err) == 0)
            assert_memory_equal(cells, t->cells[f], sizeof cells);
    for (uint64_t i = 0; i < t->page_count; i++)
        if (leat_pack_page_read(p, i, buf, capacity, &err) == 0)
            assert_memory_equal(buf, t->file + t->pages[i].offset, t->pages[i].bytes);
    for (uint64_t i = 0; i < SAMPLES; i += 5) {
        const leat_pack_row *r = &t->rows[i];
        if (leat_pack_read(p, i, buf, capacity, &err) == 0)
            assert_memory_equal(buf, t->file + t->pages[r->page].offset + r->offset, r->size);
    }
    leat_pack_close(&p);
}

static void test_flips(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    finds f;
    truth t;
    size_t size;
    const char *env = getenv("LEAT_FLIPS");
    int flips = env != NULL ? atoi(env) : 1000;
    assert_int_equal(pt_write(path, &o, SAMPLES, SCALE, NULL, &err), 0);
    uint8_t *file = pt_load(path, &size);
    learn(path, &t);
    t.file = file;
    assert_int_equal(verify(path, 1, &f, NULL), 0);
    assert_int_equal(f.count, 0);
    uint8_t *buf = malloc(size);
    int fd = open(path, O_RDWR);
    leat__rng r;
    leat__rng_init(&r, 2026, 0, 0, 0);
    int in_samples = 0;
    for (int i = 0; i < flips; i++) {
        uint64_t at = leat__rng_below(&r, size);
        uint8_t bad = file[at] ^ (uint8_t)(1 + leat__rng_below(&r, 255));
        assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
        int rc = verify(path, 1 + (uint32_t)i % 2, &f, NULL);
        if (rc == 0 || f.count == 0) fail_msg("flip at byte %llu was not found", (unsigned long long)at);
        in_samples += f.samples;
        assert_int_equal(f.samples, f.named);
        if (i % 10 == 0) never_wrong(path, &t, buf, size);
        assert_int_equal(pwrite(fd, &file[at], 1, (off_t)at), 1);
    }
    assert_true(in_samples > flips / 2); /* most bytes are samples, and those have names */
    print_message("%d flips over %zu bytes: all found, %d in named samples\n", flips, size, in_samples);
    close(fd);
    free(buf);
    free(file);
    free(t.pages);
    pt_rmdir(dir);
}

/* One sample is damaged: exactly that one is named. */
static void test_names_the_sample(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    leat_pack_verify_stats stats;
    leat_pack *p;
    leat_pack_row row;
    leat_pack_page page;
    finds f;
    uint8_t byte, buf[70000];
    assert_int_equal(pt_write(path, &o, SAMPLES, SCALE, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_rows(p, 77, 1, &row, &err), 0);
    assert_int_equal(leat_pack_page_info(p, row.page, &page, &err), 0);
    int fd = open(path, O_RDWR);
    off_t at = (off_t)(page.offset + row.offset + row.size / 2);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(verify(path, 4, &f, &stats), LEAT_EDATA);
    assert_int_equal(f.count, 1);
    assert_int_equal(stats.damaged_samples, 1);
    assert_int_equal(stats.samples, SAMPLES);
    assert_int_equal(leat_pack_read(p, 77, buf, sizeof buf, &err), LEAT_EDATA);
    assert_int_equal(err.sample, 77);
    assert_string_equal(err.key, "class7/img_00000077.jpg");
    assert_int_equal(leat_pack_read(p, 76, buf, sizeof buf, &err), 0);
    assert_int_equal(leat_pack_page_read(p, row.page, buf, sizeof buf, &err), LEAT_EDATA);
    leat_pack_close(&p);
    close(fd);
    pt_rmdir(dir);
}

static int stop_at_once(void *cookie, uint64_t done, uint64_t total)
{
    return 1;
}

static void test_stops_when_asked(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    assert_int_equal(pt_write(path, &o, 50, SCALE, NULL, &err), 0);
    leat_pack_verify_opts v = {.struct_size = sizeof v, .progress = stop_at_once};
    assert_int_equal(leat_pack_verify(path, &v, NULL, &err), LEAT_ECANCELED);
    assert_int_equal(leat_pack_verify(pt_path(dir, "nothing"), NULL, NULL, &err), LEAT_ENOENT);
    pt_rmdir(dir);
}

/* The pack is truncated at every block, and extended by a byte. */
static void test_cut_short(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat"), *cut = pt_path(dir, "cut");
    leat_packer_opts o = pt_opts();
    leat_error err;
    size_t size;
    finds f;
    assert_int_equal(pt_write(path, &o, 60, 1000, NULL, &err), 0);
    uint8_t *file = pt_load(path, &size);
    for (size_t n = 0; n < size; n += 4096) {
        pt_store(cut, file, n);
        assert_int_not_equal(verify(cut, 1, &f, NULL), 0);
    }
    file[size] = 0;
    pt_store(cut, file, size + 1);
    assert_int_equal(verify(cut, 1, &f, NULL), LEAT_EDATA);
    leat_pack *long_one;
    assert_int_equal(leat_pack_open(&long_one, cut, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "(bytes were added?)"));
    free(file);

    /* Truncated while open: reads fail, no signal is raised. */
    leat_pack *p;
    leat_pack_row row;
    uint8_t buf[70000];
    leat_pack_opts no_cache = LEAT_PACK_OPTS_INIT;
    no_cache.index_cache_bytes = UINT64_MAX;
    assert_int_equal(leat_pack_open(&p, path, &no_cache, &err), 0);
    assert_int_equal(truncate(path, 8192), 0);
    assert_int_equal(leat_pack_rows(p, 59, 1, &row, &err), LEAT_EDATA);
    assert_int_equal(leat_pack_read(p, 59, buf, sizeof buf, &err), LEAT_EDATA);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_names_the_sample),
        cmocka_unit_test(test_stops_when_asked),
        cmocka_unit_test(test_cut_short),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
