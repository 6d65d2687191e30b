/* SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <stdatomic.h>

#include "io/disk_cache.h"

#include "leat_test.h"

#define PAGE ((size_t)64 << 10)
#define PAGES 64

static char *dir;

static leat__disk *open_cache(uint64_t id, uint64_t limit)
{
    leat__disk *d;
    leat__disk_opts o = {.folder = it_path(dir, "cache"), .id = id, .pages = PAGES, .limit = limit};
    assert_ok(leat__disk_open(&d, &o, NULL));
    return d;
}

static void put(leat__disk *d, uint64_t page)
{
    uint8_t *data = malloc(PAGE);
    for (size_t i = 0; i < PAGE; i++) data[i] = it_byte(page * PAGE + i);
    leat__disk_put(d, page, page * PAGE, data, PAGE);
    free(data);
}

static bool right(leat__disk *d, uint64_t page)
{
    uint8_t *data = malloc(PAGE);
    bool same = leat__file_pread(leat__disk_file(d), data, PAGE, page * PAGE, NULL) == 0;
    for (size_t i = 0; i < PAGE && same; i++) same = data[i] == it_byte(page * PAGE + i);
    free(data);
    return same;
}

static void pages_outlive_the_process(void **state)
{
    (void)state;
    dir = it_dir();
    leat__disk *a = open_cache(7, UINT64_C(1) << 30), *b = open_cache(7, UINT64_C(1) << 30);
    assert_false(leat__disk_has(a, 3));
    put(a, 3);
    assert_true(leat__disk_has(b, 3)); /* another process would see it as well */
    assert_true(right(b, 3));
    leat__disk_forget(b, 3);
    leat__disk_close(&a);
    a = open_cache(7, UINT64_C(1) << 30);
    assert_false(leat__disk_has(a, 3));
    put(a, PAGES - 1);
    put(a, PAGES); /* not a page of this pack */
    leat__disk_close(&a);
    leat__disk_close(&b);
    a = open_cache(7, UINT64_C(1) << 30);
    assert_true(leat__disk_has(a, PAGES - 1) && right(a, PAGES - 1));
    assert_false(leat__disk_has(a, PAGES));
    leat__disk *other = open_cache(8, UINT64_C(1) << 30);
    assert_false(leat__disk_has(other, PAGES - 1));
    leat__disk_close(&other);
    leat__disk_close(&a);
    it_rmdir(dir);
    assert_no_leaks();
}

static void the_limit_holds(void **state)
{
    (void)state;
    dir = it_dir();
    uint64_t limit = 20 * PAGE;
    leat__disk *a = open_cache(1, limit);
    for (uint64_t i = 0; i < PAGES; i++) put(a, i);
    assert_true(leat__disk_full(a));
    assert_true(leat__disk_used(a) <= limit && leat__disk_used(a) > limit / 2);
    /* the first ones are kept */
    assert_true(leat__disk_has(a, 0) && !leat__disk_has(a, PAGES - 1));
    /* while it is open, its pages are not evicted */
    leat__disk *b = open_cache(2, limit);
    put(b, 0);
    assert_true(leat__disk_full(b));
    assert_true(right(a, 0));
    leat__disk_close(&b);
    leat__disk_close(&a);
    b = open_cache(2, limit);
    for (uint64_t i = 0; i < 10; i++) put(b, i);
    assert_true(leat__disk_has(b, 9) && leat__disk_used(b) <= limit);
    leat__disk_close(&b);
    a = open_cache(1, limit);
    assert_false(leat__disk_has(a, 0)); /* it was evicted */
    leat__disk_close(&a);
    it_rmdir(dir);
    assert_no_leaks();
}

/* Pages that begin inside a block take more blocks than bytes, and the file system's own blocks may come
 * only when the data is written to the disk. */
static void the_limit_holds_in_blocks(void **state)
{
    static uint8_t bytes[10000];
    (void)state;
    for (uint64_t limit = 150000; limit < 160000; limit += 1000) {
        dir = it_dir();
        leat__disk *a = open_cache(1, limit);
        for (uint64_t i = 0; i < PAGES; i++) leat__disk_put(a, i, i * PAGE + 4000, bytes, sizeof bytes);
        assert_true(leat__disk_full(a));
        assert_int_equal(fsync(leat__file_fd(leat__disk_file(a))), 0);
        assert_true(leat__disk_used(a) <= limit && leat__disk_used(a) > limit / 2);
        leat__disk_close(&a);
        it_rmdir(dir);
    }
    assert_no_leaks();
}

/* ---- eviction ---- */

/* A different order of all pages in each epoch. */
static uint64_t page_at(uint64_t epoch, uint64_t i)
{
    return (i * (epoch % 2 == 0 ? 5 : 11) + 7 * epoch) % PAGES;
}

/* Misses of a cache that replaces the page used least recently. */
static int lru_misses(uint64_t epochs, size_t room)
{
    uint64_t used[PAGES] = {0}, now = 0;
    size_t held = 0;
    int misses = 0;
    for (uint64_t e = 0; e < epochs; e++) {
        for (uint64_t i = 0; i < PAGES; i++) {
            uint64_t page = page_at(e, i), oldest = PAGES;
            if (used[page] == 0) {
                misses++;
                for (uint64_t p = 0; p < PAGES; p++)
                    if (used[p] > 0 && (oldest == PAGES || used[p] < used[oldest])) oldest = p;
                if (held == room) used[oldest] = 0;
                else held++;
            }
            used[page] = ++now;
        }
    }
    return misses;
}

static void half_a_pack_saves_more_than_lru(void **state)
{
    (void)state;
    dir = it_dir();
    leat__disk *d = open_cache(3, PAGES / 2 * PAGE + 8192); /* and its map */
    int misses = 0;
    uint64_t kept = 0;
    for (uint64_t e = 0; e < 2; e++) {
        for (uint64_t i = 0; i < PAGES; i++) {
            uint64_t page = page_at(e, i);
            if (leat__disk_has(d, page)) {
                assert_true(right(d, page));
                continue;
            }
            misses++;
            put(d, page);
        }
    }
    for (uint64_t p = 0; p < PAGES; p++) kept += leat__disk_has(d, p);
    assert_true(kept >= PAGES / 2 - 1);
    assert_int_equal(misses, PAGES + (PAGES - (int)kept)); /* no policy has fewer in the second epoch */
    assert_true(misses < lru_misses(2, (size_t)kept));
    leat__disk_close(&d);
    it_rmdir(dir);
    assert_no_leaks();
}

/* Only even pages are read from now on. */
static bool odd(void *cookie, uint64_t page, uint64_t *offset, uint64_t *len)
{
    (void)cookie;
    *offset = page * PAGE;
    *len = PAGE;
    return page % 2 == 1;
}

static void pages_that_are_not_read_again_go_first(void **state)
{
    leat__disk_opts o = {.id = 4, .pages = PAGES, .limit = PAGES / 2 * PAGE + 8192, .unwanted = odd};
    leat__disk *d;
    (void)state;
    dir = it_dir();
    o.folder = it_path(dir, "cache");
    leat__disk *first = open_cache(4, o.limit);
    for (uint64_t p = 0; p < PAGES; p++) put(first, p); /* the first half, odd and even */
    assert_true(leat__disk_has(first, 1) && !leat__disk_has(first, PAGES - 2));
    assert_ok(leat__disk_open(&d, &o, NULL));
    put(d, PAGES - 2);
    assert_false(leat__disk_has(d, PAGES - 2)); /* another user may want them */
    leat__disk_close(&first);
    leat__disk_close(&d);
    assert_ok(leat__disk_open(&d, &o, NULL));
    for (uint64_t p = 0; p < PAGES; p += 2) put(d, p);
    for (uint64_t p = 0; p + 2 < PAGES; p += 2) assert_true(leat__disk_has(d, p) && right(d, p));
    assert_false(leat__disk_has(d, 1));
    assert_true(leat__disk_used(d) <= o.limit);
    leat__disk_close(&d);
    it_rmdir(dir);
    assert_no_leaks();
}

/* Whatever the map says, killed writers never leave a wrong page marked as cached. */
static void killed_writers(void **state)
{
    (void)state;
    dir = it_dir();
    uint64_t rounds = test_count("LEAT_TEST_KILLS", 20);
    for (uint64_t r = 0; r < rounds; r++) {
        pid_t pid = fork();
        if (pid == 0) {
            leat__disk *d = open_cache(5, UINT64_C(1) << 30);
            for (uint64_t i = 0;; i = (i + 7) % PAGES) {
                if (leat__disk_has(d, i)) leat__disk_forget(d, i);
                else put(d, i);
            }
        }
        usleep(1000 + (useconds_t)(r * 313 % 5000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        leat__disk *d = open_cache(5, UINT64_C(1) << 30);
        for (uint64_t i = 0; i < PAGES; i++)
            if (leat__disk_has(d, i)) assert_true(right(d, i));
        leat__disk_close(&d);
    }
    it_rmdir(dir);
    assert_no_leaks();
}

static void full_disk_only_stops_caching(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    dir = it_dir();
    leat__disk *d = open_cache(3, UINT64_C(1) << 30);
    put(d, 0);
    leat__fault_arm(LEAT__FAULT_WRITE, 1, false);
    put(d, 1);
    leat__fault_disarm();
    assert_true(leat__disk_full(d));
    assert_false(leat__disk_has(d, 1));
    assert_true(leat__disk_has(d, 0) && right(d, 0));
    put(d, 2);
    assert_false(leat__disk_has(d, 2));
    leat__disk_close(&d);
    it_rmdir(dir);
    assert_no_leaks();
}

static void odd_files(void **state)
{
    (void)state;
    leat__disk *d;
    leat_error err;
    dir = it_dir();
    it_make(it_path(dir, "file"), 10);
    leat__disk_opts o = {.folder = it_path(dir, "file"), .id = 1, .pages = 1};
    assert_int_not_equal(leat__disk_open(&d, &o, &err), 0);
    assert_contains(err.message, "file");
    /* a map of another length, with invalid bytes */
    d = open_cache(9, 0);
    leat__disk_close(&d);
    it_make(it_path(dir, "cache/leat-0000000000000009.map"), 1000);
    d = open_cache(9, 0);
    uint32_t there = 0;
    for (uint64_t i = 0; i < PAGES; i++) there += leat__disk_has(d, i);
    assert_true(there < PAGES / 4); /* only the byte 1 counts; the caller verifies the page */
    leat__disk_close(&d);
    it_rmdir(dir);
    assert_no_leaks();
}

/* A link in place of a cache file is removed, and the file that it leads to stays as it is. */
static void links_are_removed(void **state)
{
    static const char *const ends[] = {"data", "map"};
    (void)state;
    dir = it_dir();
    char *theirs = strdup(it_path(dir, "theirs"));
    for (int i = 0; i < 4; i++) {
        char name[64];
        leat__disk *d = open_cache(9, 0); /* makes the folder */
        leat__disk_close(&d);
        it_make(theirs, 1000);
        snprintf(name, sizeof name, "cache/leat-0000000000000009.%s", ends[i % 2]);
        char *path = strdup(it_path(dir, name));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(i < 2 ? symlink(theirs, path) : link(theirs, path), 0);
        d = open_cache(9, 0);
        put(d, 3);
        assert_true(leat__disk_has(d, 3) && right(d, 3));
        leat__disk_close(&d);
        struct stat st;
        assert_int_equal(stat(theirs, &st), 0);
        assert_int_equal(st.st_size, 1000);
        assert_int_equal(lstat(path, &st), 0);
        assert_true(S_ISREG(st.st_mode) && st.st_nlink == 1);
        free(path);
    }
    free(theirs);
    it_rmdir(dir);
    assert_no_leaks();
}

/* A link to another pack's file, or to any other, is not followed when the folder is measured and emptied. */
static void links_of_other_packs_do_not_count(void **state)
{
    (void)state;
    dir = it_dir();
    leat__disk *d = open_cache(9, UINT64_C(1) << 30);
    char *theirs = strdup(it_path(dir, "theirs"));
    it_make(theirs, 8 << 20);
    assert_int_equal(symlink(theirs, it_path(dir, "cache/leat-0000000000000001.data")), 0);
    assert_true(leat__disk_used(d) < 1 << 20);
    leat__disk_close(&d);
    free(theirs);
    it_rmdir(dir);
    assert_no_leaks();
}

/* What is neither a file nor a link is an error that says what to do. */
static void a_folder_in_place_of_a_file(void **state)
{
    leat__disk *d;
    leat_error err;
    (void)state;
    dir = it_dir();
    leat__disk_opts o = {.folder = dir, .id = 9, .pages = PAGES};
    for (int i = 0; i < 2; i++) {
        const char *path = it_path(dir, "leat-0000000000000009.data");
        assert_int_equal(i == 0 ? mkdir(path, 0700) : mkfifo(path, 0600), 0);
        assert_code(LEAT_EINVAL, leat__disk_open(&d, &o, &err));
        assert_contains(err.message, "leat-0000000000000009.data: is not a file of the cache: remove it");
        assert_int_equal(remove(path), 0);
    }
    it_rmdir(dir);
    assert_no_leaks();
}

static atomic_int woken;

static void count_woken(leat__disk_waiter *w)
{
    (void)w;
    atomic_fetch_add(&woken, 1);
}

static void wait_for_woken(int count)
{
    for (int i = 0; i < 20000 && atomic_load(&woken) < count; i++) usleep(1000);
    assert_int_equal(atomic_load(&woken), count);
}

/* One process fetches a page: others wait until it is cached, or until that process ends. */
static void one_process_fetches_a_page(void **state)
{
    char *folder = it_dir();
    leat__disk *a, *b;
    leat__disk_opts o = {.folder = folder, .id = 7, .pages = 100, .limit = 64 << 20};
    leat__disk_waiter w = {.page = 5, .ready = count_woken}, v = {.page = 6, .ready = count_woken};
    (void)state;
    assert_ok(leat__disk_open(&a, &o, NULL));
    assert_ok(leat__disk_open(&b, &o, NULL));
    assert_true(leat__disk_claim(a, 5));
    assert_true(leat__disk_claim(a, 6));
    assert_false(leat__disk_claim(b, 5));
    assert_true(leat__disk_claim(b, 7));
    leat__disk_wait(b, &w);
    leat__disk_wait(b, &v);
    leat__disk_put(a, 5, 5 * 4096, "page", 4);
    leat__disk_release(a, 5);
    wait_for_woken(1);
    assert_true(leat__disk_has(b, 5));
    leat__disk_close(&a); /* like a kill: page 6 was never stored */
    wait_for_woken(2);
    assert_false(leat__disk_has(b, 6));
    assert_ok(leat__disk_open(&a, &o, NULL));
    assert_false(leat__disk_claim(a, 6)); /* it was claimed for b meanwhile */
    leat__disk_release(b, 6);
    assert_true(leat__disk_claim(a, 6));
    leat__disk_wait(b, &v);
    leat__disk_release(a, 6);
    leat__disk_stop(b); /* calls the waiters first, and none afterwards */
    assert_int_equal(atomic_load(&woken), 3);
    leat__disk_stop(b);
    leat__disk_close(&a);
    leat__disk_close(&b);
    it_rmdir(folder);
    assert_no_leaks();
}

static atomic_int saved;

static void count_saved(leat__disk_saver *s)
{
    (void)s;
    atomic_fetch_add(&saved, 1);
}

/* Threads of one process exclude each other like processes; a save ends the claim. */
static void one_thread_fetches_a_page(void **state)
{
    leat__disk_waiter w = {.page = 5, .ready = count_woken}, v = {.page = 6, .ready = count_woken};
    uint8_t *data = malloc(PAGE);
    (void)state;
    dir = it_dir();
    leat__disk *a = open_cache(7, UINT64_C(1) << 30), *b = open_cache(7, UINT64_C(1) << 30);
    atomic_store(&woken, 0);
    for (size_t i = 0; i < PAGE; i++) data[i] = it_byte(5 * PAGE + i);
    assert_true(leat__disk_claim(a, 5));
    assert_false(leat__disk_claim(a, 5));
    leat__disk_wait(a, &w);
    usleep(20000);
    assert_int_equal(atomic_load(&woken), 0);
    leat__disk_saver s = {.page = 5, .offset = 5 * PAGE, .data = data, .len = PAGE, .done = count_saved};
    leat__disk_save(a, &s);
    wait_for_woken(1);
    assert_false(w.claimed); /* it is there: nothing to fetch */
    leat__disk_stop(a);
    assert_int_equal(atomic_load(&saved), 1);
    assert_true(leat__disk_has(b, 5) && right(b, 5));
    assert_true(leat__disk_claim(b, 5)); /* released */
    leat__disk_release(b, 5);
    /* a claim that is given up goes to a waiter */
    assert_true(leat__disk_claim(b, 6));
    leat__disk_wait(b, &v);
    leat__disk_release(b, 6);
    wait_for_woken(2);
    assert_true(v.claimed && !leat__disk_claim(b, 6));
    leat__disk_release(b, 6);
    free(data);
    leat__disk_close(&a);
    leat__disk_close(&b);
    it_rmdir(dir);
    assert_no_leaks();
}

/* A loader that stops does not wait for the pages of another process. */
static void waits_end_in_a_hurry(void **state)
{
    leat__disk_waiter w = {.page = 5, .ready = count_woken};
    (void)state;
    dir = it_dir();
    leat__disk *a = open_cache(7, UINT64_C(1) << 30), *b = open_cache(7, UINT64_C(1) << 30);
    atomic_store(&woken, 0);
    assert_true(leat__disk_claim(a, 5));
    leat__disk_wait(b, &w);
    leat__disk_hurry(b, true);
    wait_for_woken(1);
    assert_false(w.claimed);
    leat__disk_hurry(b, false);
    leat__disk_close(&b);
    leat__disk_close(&a);
    it_rmdir(dir);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_outlive_the_process),
        cmocka_unit_test(one_process_fetches_a_page),
        cmocka_unit_test(one_thread_fetches_a_page),
        cmocka_unit_test(waits_end_in_a_hurry),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(the_limit_holds_in_blocks),
        cmocka_unit_test(half_a_pack_saves_more_than_lru),
        cmocka_unit_test(pages_that_are_not_read_again_go_first),
        cmocka_unit_test(killed_writers),
        cmocka_unit_test(full_disk_only_stops_caching),
        cmocka_unit_test(odd_files),
        cmocka_unit_test(links_are_removed),
        cmocka_unit_test(links_of_other_packs_do_not_count),
        cmocka_unit_test(a_folder_in_place_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
