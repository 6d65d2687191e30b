/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "base/hash.h"
#include "curate/image_flow.h"

typedef struct taken {
    uint64_t count, ok, hash, stop_at, chain;
    leat__chain skip;
    bool changed;
} taken;

static int take(void *cookie, const char *key, size_t size, const leat__image_facts *f, uint64_t chain,
                leat_error *err)
{
    taken *t = cookie;
    t->chain = chain;
    t->count++;
    t->ok += f->verdict == LEAT__VERDICT_OK;
    t->hash = leat__hash64(key, size, t->hash);
    t->hash = leat__hash64(f->sign.thumb, sizeof f->sign.thumb, t->hash ^ f->content_hash);
    return 0;
}

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    taken *t = cookie;
    return t->stop_at > 0 && done >= t->stop_at;
}

static int flow_over(const char *path, uint32_t threads, uint64_t memory, taken *t)
{
    leat_ingest_opts o;
    const char *src[] = {path};
    leat_ingest_opts_init(&o);
    o.sources = src;
    o.source_count = 1;
    o.threads = threads;
    o.memory = memory;
    leat__image_pass pass = {.opts = &o, .take = take, .tell = tell, .skip = t->skip, .cookie = t};
    assert_ok(leat__source_open(&pass.source, &o, NULL));
    int rc = leat__image_flow_run(&pass, NULL);
    t->changed = pass.changed;
    leat__source_close(&pass.source);
    return rc;
}

static void make_photos(void)
{
    for (uint32_t i = 0; i < 50; i++) {
        char name[64];
        scene s = plain_scene;
        s.seed = i;
        snprintf(name, sizeof name, "photos/%u/%02u.%s", i % 3, i, i % 5 ? "jpg" : "png");
        put_scene(name, &s, 40 + i, 90 - i, 80);
    }
    put_text("photos/0/broken.jpg", "\xff\xd8\xff nothing");
}

static void any_number_of_threads_gives_the_same_facts(void **state)
{
    uint64_t first = 0;
    make_photos();
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
        taken t = {0};
        assert_ok(flow_over(in_box("photos"), threads, threads == 4 ? 64u << 20 : 0, &t));
        assert_int_equal(t.count, 51);
        assert_int_equal(t.ok, 50);
        if (threads == 1) first = t.hash;
        assert_true(t.hash == first);
    }
    assert_no_leaks();
}

/* Every budget from the least on is enough, whatever the tasks before held. */
static void small_budgets_are_enough_or_refused(void **state)
{
    for (uint32_t i = 0; i < 96; i++) {
        char name[64];
        scene s = plain_scene;
        s.seed = i;
        snprintf(name, sizeof name, "many/%02u.png", i);
        put_scene(name, &s, 200 + i, 240, 0);
    }
    for (uint64_t mib = 8; mib <= 18; mib += 2) {
        taken t = {0};
        const int rc = flow_over(in_box("many"), 3, mib << 20, &t);
        assert_int_equal(rc, mib < 10 ? LEAT_EBUDGET : 0);
        assert_int_equal(t.count, mib < 10 ? 0 : 96);
    }
    assert_no_leaks();
}

static void it_can_be_stopped(void **state)
{
    taken t = {.stop_at = 1};
    make_photos();
    assert_code(LEAT_ECANCELED, flow_over(in_box("photos"), 2, 0, &t));
    assert_true(t.count < 51);
    assert_no_leaks();
}

/* Records that an interrupted run has processed are skipped, unless they have changed. */
static void it_continues_behind_known_records(void **state)
{
    taken part = {.stop_at = 1}, rest = {0};
    make_photos();
    assert_code(LEAT_ECANCELED, flow_over(in_box("photos"), 1, 0, &part));
    rest.skip = (leat__chain){part.chain, part.count};
    assert_ok(flow_over(in_box("photos"), 2, 0, &rest));
    assert_int_equal(part.count + rest.count, 51);
    assert_false(rest.changed);
    taken other = {.skip = {part.chain + 1, part.count}};
    assert_ok(flow_over(in_box("photos"), 2, 0, &other));
    assert_true(other.changed && other.count == 0);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_facts),
        cmocka_unit_test(small_budgets_are_enough_or_refused),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(it_continues_behind_known_records),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
