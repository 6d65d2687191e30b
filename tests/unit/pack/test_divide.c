/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting: every sample in one part, stable when samples are added, exact shares when
 * stratified.
 */
#include "packtest.h"

static uint64_t part_of(const char *const *paths, int count, uint64_t i)
{
    uint64_t in = 99, found;
    leat_error err;
    pt_sample s;
    pt_make(&s, i, 50);
    for (int k = 0; k < count; k++) {
        leat_pack *p;
        assert_int_equal(leat_pack_open(&p, paths[k], NULL, &err), 0);
        if (leat_pack_find(p, s.key, strlen(s.key), &found, &err) == 0) {
            assert_int_equal(in, 99);
            in = (uint64_t)k;
        }
        leat_pack_close(&p);
    }
    pt_free(&s);
    return in;
}

static void test_stable(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    const char *paths[] = {pt_path(dir, "t.leat"), pt_path(dir, "v.leat")};
    leat_split_part parts[] = {{.output = paths[0], .share = 0.8}, {.output = paths[1], .share = 0.2}};
    leat_pack_split_opts s = {.struct_size = sizeof s, .part_count = 2, .parts = parts, .no_sync = 1};
    leat_packer_opts o = pt_opts();
    leat_error err;
    uint64_t before[200];
    assert_int_equal(pt_write(path, &o, 200, 50, NULL, &err), 0);
    assert_int_equal(leat_pack_split(path, &s, &err), 0);
    assert_int_equal(parts[0].samples + parts[1].samples, 200);
    assert_in_range(parts[1].samples, 20, 60);
    for (uint64_t i = 0; i < 200; i++) assert_in_range(before[i] = part_of(paths, 2, i), 0, 1);
    o.append = 1; /* more samples do not move others */
    leat_packer *p;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    assert_int_equal(pt_append(p, 200, 300, 50, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EEXIST);
    s.replace = 1;
    assert_int_equal(leat_pack_split(path, &s, &err), 0);
    assert_int_equal(parts[0].samples + parts[1].samples, 300);
    for (uint64_t i = 0; i < 200; i++) assert_int_equal(part_of(paths, 2, i), before[i]);
    assert_int_equal(leat_pack_verify(paths[0], NULL, NULL, &err), 0);
    pt_rmdir(dir);
}

static void test_stratified(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_split_part parts[] = {{.output = pt_path(dir, "t.leat"), .share = 0.75},
                               {.output = pt_path(dir, "v.leat"), .share = 0.125}};
    leat_pack_split_opts s = {.struct_size = sizeof s,
                              .part_count = 2,
                              .parts = parts,
                              .no_sync = 1,
                              .stratify = "label",
                              .seed = 3};
    leat_packer_opts o = pt_opts();
    leat_error err;
    assert_int_equal(pt_write(path, &o, 400, 50, NULL, &err), 0); /* 40 of each label */
    assert_int_equal(leat_pack_split(path, &s, &err), 0);
    assert_int_equal(parts[0].samples, 300);
    assert_int_equal(parts[1].samples, 50); /* the rest is left out */
    leat_pack *p;
    int64_t labels[300];
    int counts[256] = {0};
    assert_int_equal(leat_pack_open(&p, parts[0].output, NULL, &err), 0);
    assert_int_equal(leat_pack_ints(p, PT_LABEL, 0, 300, labels, &err), 0);
    for (int i = 0; i < 300; i++) counts[labels[i] + 100]++;
    for (int i = 0; i < 256; i++) assert_true(counts[i] == 0 || counts[i] == 30);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

/* The hashes of a part are from one range: a second split with the same seed needs another hash. */
static void test_parts_of_parts(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat"), *anew = pt_path(dir, "anew.leat");
    const char *paths[] = {pt_path(dir, "t.leat"), pt_path(dir, "v.leat")};
    leat_split_part first[] = {{.output = paths[0], .share = 0.8}, {.output = paths[1], .share = 0.2}};
    leat_split_part second[] = {{.output = pt_path(dir, "1.leat"), .share = 0.5},
                                {.output = pt_path(dir, "2.leat"), .share = 0.5}};
    leat_split_part third[] = {{.output = pt_path(dir, "3.leat"), .share = 0.5},
                               {.output = pt_path(dir, "4.leat"), .share = 0.5}};
    leat_pack_split_opts s = {.struct_size = sizeof s, .part_count = 2, .parts = first, .no_sync = 1};
    leat_packer_opts o = pt_opts();
    leat_error err;
    leat_packer *p;
    assert_int_equal(pt_write(path, &o, 400, 50, NULL, &err), 0);
    assert_int_equal(leat_pack_split(path, &s, &err), 0);
    s.parts = second;
    assert_int_equal(leat_pack_split(paths[1], &s, &err), 0);
    assert_int_equal(second[0].samples + second[1].samples, first[1].samples);
    assert_in_range(second[0].samples, first[1].samples / 4, first[1].samples * 3 / 4);
    s.parts = third;
    assert_int_equal(leat_pack_split(second[0].output, &s, &err), 0);
    assert_in_range(third[0].samples, second[0].samples / 5, second[0].samples * 4 / 5);
    assert_int_equal(leat_packer_open(&p, anew, &o, &err), 0); /* the same samples without the record */
    for (uint64_t i = 0; i < 400; i++)
        if (part_of(paths, 2, i) == 1) assert_int_equal(pt_append(p, i, i + 1, 50, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
    s.replace = 1;
    assert_int_equal(leat_pack_split(anew, &s, &err), LEAT_EINVAL);
    if (!strstr(err.message, "earlier split with the same seed; give another")) fail_msg("%s", err.message);
    s.seed = 1;
    assert_int_equal(leat_pack_split(anew, &s, &err), 0);
    assert_in_range(third[0].samples, first[1].samples / 4, first[1].samples * 3 / 4);
    pt_rmdir(dir);
}

static void test_what_is_refused(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_split_part parts[] = {{.output = pt_path(dir, "t.leat"), .share = 0.7},
                               {.output = pt_path(dir, "v.leat"), .share = 0.4}};
    leat_pack_split_opts s = {.struct_size = sizeof s, .part_count = 2, .parts = parts, .no_sync = 1};
    leat_packer_opts o = pt_opts();
    leat_error err;
    assert_int_equal(pt_write(path, &o, 10, 50, NULL, &err), 0);
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "add up to 1.1"));
    parts[1].share = 0;
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EINVAL);
    parts[1].share = 0.3;
    s.stratify = "weight";
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EINVAL);
    s.stratify = NULL;
    parts[1].output = parts[0].output;
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EINVAL);
    s.part_count = 0;
    assert_int_equal(leat_pack_split(path, &s, &err), LEAT_EINVAL);
    assert_int_equal(leat_pack_split(pt_path(dir, "none"), &s, &err), LEAT_EINVAL);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stable),
        cmocka_unit_test(test_stratified),
        cmocka_unit_test(test_parts_of_parts),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
