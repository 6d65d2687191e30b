/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/sample_pack.h"
#include "doctor/reads.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-mini.leat"
#define FOLDER "doctor-mini-tmp"

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 40, .classes = 2, .bad_every = 20});
    mkdir(FOLDER, 0777);
    return setenv("TMPDIR", FOLDER, 1);
}

static int teardown(void **state)
{
    (void)state;
    rmdir(FOLDER);
    return unlink(PACK);
}

static uint32_t files_left(void)
{
    DIR *d = opendir(FOLDER);
    uint32_t n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static leat__set loaded(void)
{
    uint64_t ids[16];
    leat__set set;
    for (uint64_t i = 0; i < 16; i++) ids[i] = i + 1;
    assert_ok(leat__set_load(&set, PACK, ids, 16, 16, 1 << 20, NULL, NULL));
    return set;
}

static double cost(const leat__set *set, const char *ops)
{
    leat__sample_pack *m;
    leat__sample_load *run;
    leat_loader_opts o;
    double cpu_s = -1, clock_s = -1;
    leat_loader_opts_init(&o);
    o.batch_size = 8;
    o.ops = "RandomResizedCrop(64)";
    assert_ok(leat__sample_pack_open(&m, set, 64e6, NULL));
    assert_int_equal(files_left(), 1);
    assert_ok(leat__sample_load_open(&run, m, &o, ops != NULL ? &ops : NULL, 2, NULL));
    for (int i = 0; i < 2; i++) assert_ok(leat__sample_load_cost(run, 0.1, &cpu_s, &clock_s, NULL));
    leat__sample_load_close(&run);
    leat__sample_pack_close(&m);
    assert_int_equal(files_left(), 0);
    assert_true(clock_s > 0);
    return cpu_s;
}

static void more_work_costs_more(void **state)
{
    leat__set set = loaded();
    (void)state;
    double plain = cost(&set, NULL);
    double heavy = cost(&set, "RandomResizedCrop(64); GaussianBlur(23); ToDtype(f32)");
    assert_true(plain > 0);
    if (heavy < 1.5 * plain) fail_msg("%g s with a blur, %g s without", heavy, plain);
    leat__set_reset(&set);
    assert_no_leaks();
}

/* Tiles carry their tables; pixels have none. */
static void every_way_to_store_can_be_loaded(void **state)
{
    leat__set set = loaded();
    (void)state;
    for (uint32_t v = 0; v < LEAT__VARIANTS; v++) {
        leat__set other;
        char action[128];
        assert_ok(leat__variant_make(v, &set, 64 * 64, &other, action, sizeof action, NULL));
        if (other.count > 0) assert_true(cost(&other, NULL) > 0);
        leat__set_reset(&other);
    }
    leat__set_reset(&set);
    assert_no_leaks();
}

/* The folder of the test's pack exists. */
static void the_path(char path[300])
{
    DIR *d = opendir(FOLDER);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (e->d_name[0] != '.') snprintf(path, 300, FOLDER "/%s", e->d_name);
    closedir(d);
}

/* The pack for the measurement must have everything the real one has. */
static void entry_points_are_copied(void **state)
{
    (void)state;
    leat__set set = loaded(), back;
    leat__sample_pack *m;
    char path[300] = "";
    uint64_t first = 0;
    set.sample[0].entries = (const uint8_t *)"a few of";
    set.sample[0].entries_len = 8;
    assert_ok(leat__sample_pack_open(&m, &set, 64e6, NULL));
    the_path(path);
    assert_ok(leat__set_load(&back, path, &first, 1, 1, 1 << 20, NULL, NULL));
    assert_int_equal(back.sample[0].entries_len, 8);
    assert_memory_equal(back.sample[0].entries, "a few of", 8);
    leat__set_reset(&back);
    leat__sample_pack_close(&m);
    leat__set_reset(&set);
    assert_no_leaks();
}

/* Samples whose cost is copying are dropped from the cache and read again: in memory again, with
 * the same bytes; no more of them than requested. */
static void large_samples_are_read_again(void **state)
{
    static uint8_t large[300000];
    leat__set set = loaded(), back;
    leat__sample_pack *m;
    char path[300] = "";
    uint64_t first = 0;
    double cached = -1;
    leat_pack *pack;
    leat_pack_info info;
    uint32_t count = set.count;
    (void)state;
    for (size_t i = 0; i < sizeof large; i++) large[i] = (uint8_t)(i * 2654435761u >> 24);
    memcpy(large, set.sample[0].data, set.sample[0].len); /* an image, followed by many bytes */
    set.sample[0].data = large;
    set.sample[0].len = sizeof large;
    set.count = 1;
    assert_ok(leat__sample_pack_open(&m, &set, 4e6, NULL));
    the_path(path);
    assert_ok(leat__reads_resident(path, &cached, NULL));
    assert_true(cached > 0.8);
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    assert_int_equal(info.samples, 13);
    leat_pack_close(&pack);
    assert_ok(leat__set_load(&back, path, &first, 1, 1, 1 << 20, NULL, NULL));
    assert_int_equal(back.sample[0].len, sizeof large);
    assert_memory_equal(back.sample[0].data, large, sizeof large);
    leat__set_reset(&back);
    leat__sample_pack_close(&m);
    set.count = count;
    leat__set_reset(&set);
    assert_no_leaks();
}

static void missing_folder_is_an_error_without_leftovers(void **state)
{
    leat__set set = loaded();
    leat__sample_pack *m;
    (void)state;
    setenv("TMPDIR", "no-such-folder", 1);
    assert_code(leat__sample_pack_open(&m, &set, 64e6, NULL), LEAT_ENOENT);
    assert_null(m);
    setenv("TMPDIR", FOLDER, 1);
    leat__set_reset(&set);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_work_costs_more),
        cmocka_unit_test(every_way_to_store_can_be_loaded),
        cmocka_unit_test(entry_points_are_copied),
        cmocka_unit_test(large_samples_are_read_again),
        cmocka_unit_test(missing_folder_is_an_error_without_leftovers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
