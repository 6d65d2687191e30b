/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/label_box.h"

#include "io/file.h"

static void wrong_labels_are_found_by_any_number_of_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 7};
    uint64_t first = 0;
    leat_check_labels_opts o = label_opts("found.leat");
    for (int i = 0; i < 3; i++) {
        o.threads = threads[i];
        const leat_check_labels_stats st = labels_ok(&o);
        assert_true(st.samples == LABEL_ROWS && st.labelled == LABEL_ROWS - 1 && st.classes == LABEL_CLASSES);
        assert_true(st.wrong >= 5 && st.wrong <= 7 && st.examples == 5);
        for (uint32_t k = 0; k < 5; k++) assert_true(is_wrong((uint32_t)st.example[k]));
        if (i == 0) first = hash_of_file(o.output);
        assert_true(hash_of_file(o.output) == first);
    }
}

static void wrong_options_are_refused(void **state)
{
    leat_error err = {0};
    leat_check_labels_opts o = label_opts("never.leat");
    bool there = true;
    o.neighbours = 1001;
    assert_code(LEAT_EINVAL, leat_check_labels(&o, NULL, &err));
    o.neighbours = 0;
    o.column = "other";
    assert_code(LEAT_EINVAL, leat_check_labels(&o, NULL, &err));
    assert_contains(err.message, "only int columns");
    o.column = NULL;
    o.memory = 100;
    assert_code(LEAT_EBUDGET, leat_check_labels(&o, NULL, &err));
    o.memory = 0;
    o.vectors = put_vectors("few.leat", 7, (vector_kind){.dim = 4, .clusters = 1});
    assert_code(LEAT_EINVAL, leat_check_labels(&o, NULL, &err));
    assert_contains(err.message, "has 7 rows");
    o.vectors = NULL;
    assert_code(LEAT_EINVAL, leat_check_labels(&o, NULL, &err));
    assert_contains(err.message, "labels need embeddings");
    o.pack = o.vectors = put_vectors("alone.leat", 7, (vector_kind){.dim = 4, .clusters = 1});
    assert_code(LEAT_ENOFIELD, leat_check_labels(&o, NULL, &err));
    assert_contains(err.message, "no int or float column 'label'");
    assert_ok(leat__path_exists(o.output, &there, NULL));
    assert_false(there);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_labels_are_found_by_any_number_of_threads),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
