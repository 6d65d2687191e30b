/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

static void totals_count_every_block(void **state)
{
    (void)state;
    uint64_t before = leat__mem_used(LEAT__MEM_CATS);
    void *a = leat__alloc(LEAT__MEM_PAGE, 1000), *b = leat__zalloc(LEAT__MEM_BATCH, 24);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 1000);
    assert_int_equal(leat__mem_used(LEAT__MEM_BATCH), 24);
    assert_int_equal(leat__mem_used(LEAT__MEM_CATS) - before, 1024);
    assert_int_equal(leat__mem_blocks(), 2);
    leat__free(a);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
    assert_true(leat__mem_peak(LEAT__MEM_PAGE) >= 1000);
    leat__mem_peak_reset();
    assert_int_equal(leat__mem_peak(LEAT__MEM_PAGE), 0);
    leat__free(b);
    leat__free(NULL);
    assert_no_leaks();
}

static void zalloc_returns_zeros(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        unsigned char *p = leat__zalloc_array(LEAT__MEM_MISC, 33, 7);
        for (int k = 0; k < 231; k++) assert_int_equal(p[k], 0);
        memset(p, 0xff, 231);
        leat__free(p);
    }
}

static void alignment_is_kept(void **state)
{
    (void)state;
    for (size_t align = 1; align <= (size_t)2 << 20; align *= 2) {
        char *p = leat__alloc_aligned(LEAT__MEM_PAGE, 100, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 1, 100);
        leat__free(p);
    }
    assert_no_leaks();
}

static void impossible_sizes_fail(void **state)
{
    (void)state;
    assert_null(leat__alloc(LEAT__MEM_MISC, SIZE_MAX));
    assert_null(leat__alloc(LEAT__MEM_MISC, SIZE_MAX - 8));
    assert_null(leat__alloc(LEAT__MEM_MISC, SIZE_MAX / 2));
    assert_null(leat__alloc_array(LEAT__MEM_MISC, SIZE_MAX / 2, 3));
    assert_null(leat__zalloc_array(LEAT__MEM_MISC, SIZE_MAX, SIZE_MAX));
    assert_null(leat__strndup(LEAT__MEM_MISC, "", SIZE_MAX));
    char *p = leat__alloc(LEAT__MEM_MISC, 10);
    assert_null(leat__realloc(LEAT__MEM_MISC, p, SIZE_MAX));
    assert_null(leat__realloc(LEAT__MEM_MISC, p, SIZE_MAX / 2));
    leat__free(p);
    assert_no_leaks();
    assert_int_equal(leat__mem_used(LEAT__MEM_CATS), 0);
}

static void the_limit_is_hard(void **state)
{
    (void)state;
    leat__mem_limit_set(1 << 20);
    void *a = leat__alloc(LEAT__MEM_PAGE, 700 << 10);
    assert_non_null(a);
    assert_null(leat__alloc(LEAT__MEM_BATCH, 400 << 10));
    assert_null(leat__realloc(LEAT__MEM_PAGE, a, 2 << 20));
    void *b = leat__alloc(LEAT__MEM_BATCH, 300 << 10);
    assert_non_null(b);
    leat__free(a);
    leat__free(b);
    leat__mem_limit_set(0);
    assert_no_leaks();
}

static void realloc_keeps_content_and_moves_the_charge(void **state)
{
    (void)state;
    char *p = leat__realloc(LEAT__MEM_MISC, NULL, 16);
    memcpy(p, "0123456789abcde", 16);
    p = leat__realloc(LEAT__MEM_PACK, p, 100000);
    assert_string_equal(p, "0123456789abcde");
    assert_int_equal(leat__mem_used(LEAT__MEM_MISC), 0);
    assert_int_equal(leat__mem_used(LEAT__MEM_PACK), 100000);
    assert_int_equal(leat__mem_blocks(), 1);
    leat__free(p);
}

/* Large blocks are mapped: they grow, shrink, cross the threshold both ways, and are really
 * freed. */
static void large_blocks_cross_the_threshold(void **state)
{
    static const size_t sizes[] = {100, 300 << 10, 5 << 20, 400 << 10, 1000, 300 << 10, 10};
    unsigned char *p = leat__alloc(LEAT__MEM_MISC, 50);
    (void)state;
    memset(p, 7, 50);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        p = leat__realloc(LEAT__MEM_PAGE, p, sizes[i]);
        assert_non_null(p);
        assert_int_equal(leat__mem_used(LEAT__MEM_CATS), sizes[i]);
        for (int k = 0; k < 10; k++) assert_int_equal(p[k], 7);
        p[sizes[i] - 1] = 7;
    }
    leat__free(p);
    unsigned char *z = leat__zalloc(LEAT__MEM_PAGE, 1 << 20);
    for (size_t k = 0; k < 1 << 20; k += 4000) assert_int_equal(z[k], 0);
    leat__free(z);
    assert_no_leaks();
}

static uint64_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return (uint64_t)pages * 4096;
}

/* Page-aligned blocks are returned to the system although small ones from the heap are between them. */
static void page_aligned_blocks_leave_no_gaps(void **state)
{
    void *large[200], *small[200];
    (void)state;
    if (getenv("LEAT_SANITIZED") != NULL) skip(); /* they keep freed memory */
    uint64_t before = resident_bytes();
    for (int i = 0; i < 200; i++) {
        large[i] = leat__alloc_aligned(LEAT__MEM_PAGE, 110 << 10, 4096);
        small[i] = leat__alloc(LEAT__MEM_MISC, 100);
        assert_non_null(large[i]);
        memset(large[i], 1, 110 << 10);
    }
    assert_true(resident_bytes() > before + (20 << 20));
    for (int i = 0; i < 200; i++) leat__free(large[i]);
    assert_true(resident_bytes() < before + (2 << 20));
    for (int i = 0; i < 200; i++) leat__free(small[i]);
    assert_no_leaks();
}

static void strings_are_copied(void **state)
{
    (void)state;
    char *s = leat__strdup(LEAT__MEM_MISC, "mill"), *t = leat__strndup(LEAT__MEM_MISC, "wheel", 2);
    assert_string_equal(s, "mill");
    assert_string_equal(t, "wh");
    leat__free(s);
    leat__free(t);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_count_every_block),
        cmocka_unit_test(zalloc_returns_zeros),
        cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(impossible_sizes_fail),
        cmocka_unit_test(the_limit_is_hard),
        cmocka_unit_test(realloc_keeps_content_and_moves_the_charge),
        cmocka_unit_test(large_blocks_cross_the_threshold),
        cmocka_unit_test(page_aligned_blocks_leave_no_gaps),
        cmocka_unit_test(strings_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
