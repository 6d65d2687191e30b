/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_sample: views of every type, and its results before and after a failed read.
 */
#include "packtest.h"

static void test_views(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_pack *p;
    leat_sample *s;
    leat_view v;
    leat_error err;
    assert_int_equal(pt_write(path, &o, 120, 2000, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_sample_open(&s, p, &err), 0);
    assert_int_equal(leat_sample_field(s, 0, &v, &err), LEAT_ESTATE);
    assert_int_equal(leat_sample_read(s, 96, &err), 0); /* larger than a page */
    assert_int_equal(leat_sample_field(s, PT_IMAGE, &v, &err), 0);
    assert_int_equal(v.size, 80000);
    assert_int_equal(v.image.height, 97);
    assert_int_equal(leat_sample_read(s, 9, &err), 0);
    assert_int_equal(leat_sample_field(s, PT_BOXES, &v, &err), 0);
    assert_int_equal(v.ndim, 2);
    assert_int_equal(v.shape[0], 9);
    assert_int_equal(v.shape[1], 4);
    assert_int_equal(((const uint16_t *)v.data)[35], 9 * 3 + 35);
    assert_int_equal(leat_sample_field(s, PT_VEC, &v, &err), 0);
    assert_int_equal(v.shape[1], 3);
    assert_true(((const float *)v.data)[5] == 9 + 5 / 8.0f);
    assert_int_equal(leat_sample_field(s, PT_FIELDS, &v, &err), LEAT_EINVAL);
    assert_int_equal(leat_sample_read(s, 120, &err), LEAT_EINVAL);
    assert_int_equal(leat_sample_field(s, 0, &v, &err), LEAT_ESTATE); /* nothing stale */
    assert_string_equal(leat_sample_key(s, NULL), "");
    leat_sample_close(&s);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_views)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
