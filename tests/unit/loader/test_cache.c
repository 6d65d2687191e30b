/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/fake_driver.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"
#include "loader/cache.h"

enum { PAGE = 65536, SAMPLES = 200 };

static char path[64];
static leat_pack *pack;

/* A pack of many small pages. */
static int make_pack(void **state)
{
    static const leat_field field = {.name = "data", .type = LEAT_FIELD_BYTES};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer *p;
    leat_packer_stats stats;
    static unsigned char bytes[20000];
    if (find_fake(state) != 0) return -1;
    snprintf(path, sizeof path, "/tmp/leat-cache-%d.leat", (int)getpid());
    opts.fields = &field;
    opts.field_count = 1;
    opts.page_bytes = PAGE;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    for (int i = 0; i < SAMPLES; i++) {
        char key[16];
        leat_pack_value v = {.data = bytes, .size = sizeof bytes};
        leat_pack_sample s = {.key = key, .values = &v};
        s.key_size = (size_t)snprintf(key, sizeof key, "%d", i);
        memset(bytes, i, sizeof bytes);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    return 0;
}

static int drop_pack(void **state)
{
    (void)state;
    leat_pack_close(&pack);
    unlink(path);
    return 0;
}

static leat__cache_user user_of(leat_budget *b, uint64_t cap, bool keep)
{
    return (leat__cache_user){.budget = b, .cap = cap, .keep = keep};
}

static uint64_t memory_of(const leat_pack_page *info)
{
    return info->bytes + LEAT_PACK_PADDING;
}

/* Asks and, when told to, fills. */
static leat__cache_answer ask(leat__cache *c, leat__cache_user *u, uint64_t page, uint32_t uses,
                              leat__cached **got)
{
    leat_pack_page info;
    assert_ok(leat_pack_page_info(pack, page, &info, NULL));
    leat__cache_answer a = leat__cache_get(c, u, page, memory_of(&info), uses, NULL, got);
    if (a == LEAT__CACHE_FILL) {
        assert_ok(leat_pack_page_read(pack, page, (*got)->data, (*got)->bytes, NULL));
        leat__cache_filled(c, *got, 0);
    }
    return a;
}

static void pages_are_kept_and_shared(void **state)
{
    leat_budget *budget;
    leat__cache *c, *d;
    leat__cached *a, *b;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user one = user_of(budget, 4 << 20, true), two = user_of(budget, 4 << 20, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_ok(leat__cache_open(&d, pack, NULL));
    assert_ptr_equal(c, d); /* same content, same cache */
    assert_int_equal(ask(c, &one, 3, 1, &a), LEAT__CACHE_FILL);
    assert_int_equal(ask(d, &two, 3, 1, &b), LEAT__CACHE_HIT);
    assert_ptr_equal(a, b);
    leat_budget_stats s;
    leat_budget_read(budget, &s);
    assert_int_equal(s.cat_used[LEAT_BUDGET_PAGE], a->bytes);
    assert_int_equal(leat__cache_bytes(c), a->bytes);
    /* its reader leaves while the other holds it: valid until the pin ends, then gone */
    leat__cache_unpin(c, a);
    leat__cache_leave(&c, &one);
    assert_int_equal(b->data[b->bytes - 1], 0);
    leat_budget_read(budget, &s);
    assert_int_equal(s.cat_used[LEAT_BUDGET_PAGE], 0);
    leat__cache_unpin(d, b);
    assert_int_equal(leat__cache_bytes(d), 0);
    leat__cache_leave(&d, &two);
    leat_budget_close(&budget);
}

static void never_evicts_what_is_wanted(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, 5 * PAGE, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    for (uint64_t i = 0; i < 20; i++) {
        leat__cache_answer a = ask(c, &u, i, 1, &page);
        if (i < 5) assert_int_equal(a, LEAT__CACHE_FILL);
        else assert_int_equal(a, LEAT__CACHE_BYPASS);
        if (page != NULL) leat__cache_unpin(c, page);
    }
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(ask(c, &u, i, 1, &page), LEAT__CACHE_HIT);
        leat__cache_unpin(c, page);
    }
    u.cap = 2 * PAGE; /* the budget was lowered: even wanted pages go */
    leat__cache_trim(c, &u);
    assert_true(leat__cache_bytes(c) <= 2 * PAGE);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

/* A second pin keeps the page and counts no announced use. */
static void a_pin_can_be_added(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page, *other;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, PAGE, false); /* one page */
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_int_equal(ask(c, &u, 1, 2, &page), LEAT__CACHE_FILL);
    leat__cache_pin(c, page);
    leat__cache_unpin(c, page);                                     /* the first use */
    leat__cache_unpin(c, page);                                     /* the second pin */
    assert_int_equal(ask(c, &u, 2, 1, &other), LEAT__CACHE_BYPASS); /* one more use was announced */
    assert_int_equal(ask(c, &u, 1, 0, &page), LEAT__CACHE_HIT);
    leat__cache_pin(c, page);
    leat__cache_unpin(c, page);
    assert_int_equal(ask(c, &u, 2, 1, &other), LEAT__CACHE_BYPASS); /* still pinned */
    leat__cache_unpin(c, page);
    assert_int_equal(ask(c, &u, 2, 1, &other), LEAT__CACHE_FILL);
    leat__cache_unpin(c, other);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

static void pages_used_up_make_room(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, 3 * PAGE, false);
    assert_ok(leat__cache_open(&c, pack, NULL));
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(ask(c, &u, i, 2, &page), LEAT__CACHE_FILL);
        leat__cache_unpin(c, page);
        assert_int_equal(ask(c, &u, i, 0, &page), LEAT__CACHE_HIT);
        leat__cache_unpin(c, page); /* second use: idle from here */
    }
    assert_int_equal(ask(c, &u, 19, 1, &page), LEAT__CACHE_HIT); /* idle pages still serve */
    leat__cache_unpin(c, page);
    /* an epoch left in the middle: its announced uses are forgotten */
    for (uint64_t i = 0; i < 3; i++) {
        ask(c, &u, i, 9, &page);
        if (page != NULL) leat__cache_unpin(c, page);
    }
    assert_int_equal(ask(c, &u, 10, 1, &page), LEAT__CACHE_BYPASS);
    leat__cache_forget(c);
    assert_int_equal(ask(c, &u, 10, 1, &page), LEAT__CACHE_FILL);
    leat__cache_unpin(c, page);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

/* Every page of the pack once, as an epoch asks for them; pages that were there. */
static uint64_t epoch(leat__cache *c, leat__cache_user *u, uint64_t first)
{
    leat_pack_info info;
    leat__cached *page;
    uint64_t hits = 0;
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    for (uint64_t i = 0; i < info.pages; i++) {
        hits += ask(c, u, (first + i) % info.pages, 1, &page) == LEAT__CACHE_HIT;
        leat__cache_unpin(c, page);
    }
    return hits;
}

static void a_pack_larger_than_the_cap_fills_it_in_an_epoch(void **state)
{
    enum { CAP = 20 };
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page;
    leat_pack_info info;
    (void)state;
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    assert_true(info.pages > 2 * CAP);
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, CAP * PAGE, false);
    assert_ok(leat__cache_open(&c, pack, NULL));
    for (uint64_t i = 0; i < info.pages / 2; i++) {
        assert_int_equal(ask(c, &u, i, 1, &page), LEAT__CACHE_FILL);
        leat__cache_unpin(c, page);
    }
    assert_true(leat__cache_bytes(c) <= (CAP / 2 + 2) * PAGE); /* half way, half full */
    assert_true(leat__cache_bytes(c) >= (CAP / 2 - 2) * PAGE);
    epoch(c, &u, 0);
    assert_true(leat__cache_bytes(c) >= (CAP - 1) * PAGE);
    assert_true(leat__cache_bytes(c) <= CAP * PAGE);
    /* what was kept serves every further epoch, wherever that begins */
    for (uint64_t first = 0; first < info.pages; first += 7) assert_true(epoch(c, &u, first) >= CAP - 2);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

static uint64_t charged(leat_budget *budget)
{
    leat_budget_stats s;
    leat_budget_read(budget, &s);
    return s.cat_used[LEAT_BUDGET_PAGE];
}

/* With a large enough cap, pages are slots in huge pages: charged by the chunk, all of it used,
 * and each chunk gone with its last page. */
static void large_caps_are_held_in_chunks(void **state)
{
    enum { CHUNK = 2 << 20, CAP = 16 * CHUNK };
    leat_budget *budget;
    leat__cache *c, *d;
    leat__cached *page, *held;
    leat_pack_info info;
    (void)state;
    assert_ok(leat_pack_info_read(pack, &info, sizeof info));
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, CAP, true), other = user_of(budget, CAP, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_ok(leat__cache_open(&d, pack, NULL));
    for (uint64_t i = 0; i < info.pages; i++) {
        assert_int_equal(ask(c, &u, i, 1, &page), LEAT__CACHE_FILL);
        leat__cache_unpin(c, page);
        assert_int_equal(charged(budget) % CHUNK, 0);
        assert_true(charged(budget) - leat__cache_bytes(c) < CHUNK + CHUNK / 4);
    }
    for (uint64_t i = 0; i < info.pages; i++) {
        assert_int_equal(ask(c, &u, i, 1, &page), LEAT__CACHE_HIT);
        for (uint64_t k = 1; k <= LEAT_PACK_PADDING; k++) assert_int_equal(page->data[page->bytes - k], 0);
        leat__cache_unpin(c, page);
    }
    u.cap = CHUNK;
    leat__cache_trim(c, &u);
    assert_int_equal(charged(budget), CHUNK); /* a chunk that stays is not thinned out */
    assert_true(leat__cache_bytes(c) > CHUNK / 2);
    assert_int_equal(ask(c, &u, 3, 1, &held), LEAT__CACHE_HIT);
    assert_int_equal(leat__cache_shed(c, &u, CHUNK), 0); /* its only chunk has a pinned page */
    leat__cache_unpin(c, held);
    assert_int_equal(leat__cache_shed(c, &u, 1), CHUNK);
    assert_int_equal(charged(budget), 0);
    u.cap = CAP;
    assert_int_equal(ask(d, &other, 3, 1, &held), LEAT__CACHE_FILL);
    uint64_t kept = charged(budget);
    assert_int_equal(ask(c, &u, 3, 1, &page), LEAT__CACHE_HIT);
    leat__cache_unpin(d, held);
    leat__cache_leave(&d, &other); /* while the first one holds a page of its chunk */
    assert_int_equal(charged(budget), kept - CHUNK);
    memset(page->data, 1, page->bytes);
    leat__cache_unpin(c, page);
    leat__cache_leave(&c, &u);
    assert_int_equal(charged(budget), 0);
    leat_budget_close(&budget);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
}

/* Whether the mapping that contains `data` has the flag `name` in /proc/self/smaps. */
static bool has_flag(const void *data, const char *name)
{
    char line[512];
    bool inside = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f) != NULL) {
        unsigned long first, end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            inside = (uintptr_t)data >= first && (uintptr_t)data < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, name) != NULL;
    }
    fclose(f);
    return found;
}

/* A cache with one user and a budget that no other uses. */
typedef struct single {
    leat_budget *budget;
    leat__cache *cache;
    leat__cache_user user;
} single;

static void single_open(single *s, uint64_t cap)
{
    assert_ok(leat_budget_open(&s->budget, 128 << 20, NULL));
    s->user = user_of(s->budget, cap, false);
    assert_ok(leat__cache_open(&s->cache, pack, NULL));
}

/* A page that is to be filled. */
static leat__cached *single_page(single *s, uint64_t number, uint64_t bytes)
{
    leat__cached *page;
    assert_int_equal(leat__cache_get(s->cache, &s->user, number, bytes, 1, NULL, &page), LEAT__CACHE_FILL);
    return page;
}

static void single_filled(single *s, leat__cached *page)
{
    leat__cache_filled(s->cache, page, 0);
    leat__cache_unpin(s->cache, page);
}

static void single_close(single *s)
{
    leat__cache_leave(&s->cache, &s->user);
    assert_int_equal(charged(s->budget), 0);
    leat_budget_close(&s->budget);
}

static void small_pages_of_memory_where_asked_for(void **state)
{
    enum { MIB = 1 << 20 };
    static const uint64_t sizes[] = {4 * MIB - 100000, 12 * MIB, 20000}; /* the last one is in a chunk */
    (void)state;
    for (int small = 0; small < 2; small++) {
        single s;
        single_open(&s, 64 * MIB);
        s.user.small_pages = small;
        for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint64_t before = atomic_load(&s.user.bytes);
            leat__cached *page = single_page(&s, i, sizes[i]);
            memset(page->data, 1, page->bytes);
            if (small) assert_false(has_flag(page->data, " hg"));
            if (i == 0) assert_int_equal(atomic_load(&s.user.bytes) - before, small ? sizes[i] : 4 * MIB);
            single_filled(&s, page);
        }
        single_close(&s);
    }
}

static bool is_in_memory(const uint8_t *data, size_t bytes)
{
    unsigned char parts[1024];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_true(bytes / page <= sizeof parts);
    assert_int_equal(
        mincore((void *)(((uintptr_t)data + page - 1) / page * page), bytes / page * page, parts), 0);
    for (size_t i = 0; i + 1 < bytes / page; i++)
        if (!(parts[i] & 1)) return false;
    return true;
}

static void new_memory_is_faulted_in_where_asked_for(void **state)
{
    enum { MIB = 1 << 20 };
    static const uint64_t sizes[] = {2 * MIB - 100000, 20000}; /* the last one is in a chunk */
    (void)state;
    for (int populate = 0; populate < 2; populate++) {
        single s;
        single_open(&s, 16 * MIB);
        s.user.populate = populate;
        s.user.small_pages = true; /* one fault would bring a whole huge page */
        for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            leat__cached *page = single_page(&s, i, sizes[i]);
            if (populate || i == 0) assert_int_equal(is_in_memory(page->data, page->bytes), populate);
            single_filled(&s, page);
        }
        single_close(&s);
    }
}

/* Large pages are in whole huge pages if little is lost by that, and if the cap has room for it. */
static void large_pages_are_whole_huge_pages(void **state)
{
    enum { MIB = 1 << 20 };
    static const struct {
        uint64_t bytes, cap, charged;
    } cases[] = {{4 * MIB - 100000, 16 * MIB, 4 * MIB},
                 {4 * MIB, 16 * MIB, 4 * MIB},
                 {2 * MIB + 4096, 16 * MIB, 2 * MIB + 4096}, /* would be nearly twice as much */
                 {2 * MIB - 4096, 16 * MIB, 2 * MIB - 4096}, /* smaller than a huge page */
                 {4 * MIB - 100000, 4 * MIB - 1, 4 * MIB - 100000}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        single s;
        single_open(&s, cases[i].cap);
        leat__cached *page = single_page(&s, 0, cases[i].bytes);
        memset(page->data, 1, page->bytes);
        assert_int_equal(page->bytes, cases[i].bytes);
        assert_int_equal(charged(s.budget), cases[i].charged);
        single_filled(&s, page);
        single_close(&s);
    }
}

static void a_damaged_page_goes_with_its_last_pin(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page, *again;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, 3 * PAGE, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_int_equal(ask(c, &u, 0, 1, &page), LEAT__CACHE_FILL);
    assert_false(page->checked);
    page->checked = true;
    leat__cache_unpin(c, page);
    assert_int_equal(ask(c, &u, 0, 1, &page), LEAT__CACHE_HIT);
    assert_true(page->checked); /* found right once is enough */
    assert_int_equal(ask(c, &u, 0, 0, &again), LEAT__CACHE_HIT);
    page->damaged = true;
    leat__cache_unpin(c, page);
    assert_int_equal(leat__cache_bytes(c), again->bytes); /* still held */
    leat__cache_unpin(c, again);
    assert_int_equal(leat__cache_bytes(c), 0);
    assert_int_equal(ask(c, &u, 0, 1, &page), LEAT__CACHE_FILL);
    assert_false(page->checked || page->damaged);
    leat__cache_unpin(c, page);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

typedef struct waiting {
    leat__cache_waiter w;
    leat__cached *got;
    int calls;
} waiting;

static void told(leat__cache_waiter *w, leat__cached *page)
{
    waiting *x = (waiting *)w;
    x->got = page;
    x->calls++;
}

static void waiters_are_told(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *page, *none;
    leat_pack_page info;
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    leat__cache_user u = user_of(budget, 8 * PAGE, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_ok(leat_pack_page_info(pack, 7, &info, NULL));
    for (int fail = 0; fail < 2; fail++) {
        waiting a = {.w = {.ready = told}}, b = {.w = {.ready = told}};
        assert_int_equal(leat__cache_get(c, &u, 7, memory_of(&info), 1, NULL, &page), LEAT__CACHE_FILL);
        assert_int_equal(leat__cache_get(c, &u, 7, memory_of(&info), 1, &a.w, &none), LEAT__CACHE_WAIT);
        assert_int_equal(leat__cache_get(c, &u, 7, memory_of(&info), 1, &b.w, &none), LEAT__CACHE_WAIT);
        assert_null(none);
        leat__cache_filled(c, page, fail == 0 ? LEAT_EIO : 0);
        assert_int_equal(a.calls + b.calls, 2);
        assert_ptr_equal(a.got, fail == 0 ? NULL : page);
        if (fail == 1) {
            for (int i = 0; i < 3; i++) leat__cache_unpin(c, page);
        } else {
            assert_int_equal(leat__cache_bytes(c), 0);
        }
    }
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
}

/* A mapped page is found by its device, and stays for the list that pins it. */
static void a_device_finds_mapped_pages(void **state)
{
    leat_budget *budget;
    leat__cache *c;
    leat__cached *pages[2], *more;
    leat__gpu *gpu = NULL;
    const leat_log quiet = {0};
    (void)state;
    go_wrong("");
    assert_ok(leat__gpu_open(&gpu, 0, fake_path, NULL));
    assert_ok(leat_budget_open(&budget, 128 << 20, NULL));
    leat__cache_user u = user_of(budget, 64 << 20, true);
    assert_ok(leat__cache_open(&c, pack, NULL));
    assert_true(leat__cache_stays(c, &u));
    assert_ok(leat__mapper_open(&u.mapper, gpu, &quiet, NULL));
    leat__mapper_start(u.mapper);
    assert_false(leat__cache_has(c, 1));
    for (uint64_t i = 0; i < 2; i++) assert_int_equal(ask(c, &u, i, 1, &pages[i]), LEAT__CACHE_FILL);
    assert_true(leat__cache_has(c, 1));
    for (int i = 0; i < 100000 && leat__cache_mapped(pages[1], gpu) == 0; i++) usleep(100);
    for (int i = 0; i < 2; i++) /* the stand-in sees memory where the host does */
        assert_int_equal(leat__cache_mapped(pages[i], gpu), (uint64_t)(uintptr_t)pages[i]->data);
    assert_int_equal(ask(c, &u, 1, 1, &more), LEAT__CACHE_HIT);
    leat__cache_unpin_all(c, pages, 2);
    u.cap = 0;
    leat__cache_trim(c, &u); /* one of them is pinned again: their chunk stays */
    assert_true(leat__cache_has(c, 1));
    assert_int_equal(fake_cuda.locked(), 1);
    leat__cache_unpin_all(c, &more, 1);
    leat__cache_trim(c, &u);
    assert_false(leat__cache_has(c, 1));
    assert_int_equal(fake_cuda.locked(), 0);
    u.keep = false;
    assert_false(leat__cache_stays(c, &u));
    leat__mapper_close(&u.mapper);
    leat__cache_leave(&c, &u);
    leat_budget_close(&budget);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_kept_and_shared),
        cmocka_unit_test(never_evicts_what_is_wanted),
        cmocka_unit_test(a_pin_can_be_added),
        cmocka_unit_test(pages_used_up_make_room),
        cmocka_unit_test(a_pack_larger_than_the_cap_fills_it_in_an_epoch),
        cmocka_unit_test(large_caps_are_held_in_chunks),
        cmocka_unit_test(large_pages_are_whole_huge_pages),
        cmocka_unit_test(small_pages_of_memory_where_asked_for),
        cmocka_unit_test(new_memory_is_faulted_in_where_asked_for),
        cmocka_unit_test(a_damaged_page_goes_with_its_last_pin),
        cmocka_unit_test(waiters_are_told),
        cmocka_unit_test(a_device_finds_mapped_pages),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
