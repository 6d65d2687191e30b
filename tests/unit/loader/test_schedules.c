/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedule search through the whole loader: order, reads, decoding, collating and hand-over of one
 * to three loaders on a pool without threads, with a disk that answers when the seed says so. Every
 * seed draws loaders, memory, a fault and a way to end. Every batch must have the rows of a plain
 * run except for one per bad sample that it counts beyond the plain run's, and every loader must end as
 * the plain run does or with an error that names the fault. LEAT_LOADER_SCHEDULES says how many seeds
 * (default 500), LEAT_SEED runs one and LEAT_FIRST_SEED says where to begin.
 */
#include "tiny_loader.h"

#include <errno.h>

#include "base/fault.h"
#include "base/num.h"
#include "base/rng.h"
#include "engine/replay.h"
#include "io/inject.h"
#include "loader/setup.h"

enum { SAMPLES = 41, BAD_EVERY = 9, LOADERS_MAX = 3 };

static char packs[2][64]; /* whole, damaged */

/* What a plain run gives, and each of its rows by position: hash (0 = left out) and bad samples. */
typedef struct plain {
    outcome out;
    uint64_t hash[SAMPLES];
    uint32_t bad[SAMPLES];
} plain;

static plain expected[2][3][3]; /* [pack][order][on_error] */

/* One loader of a scenario and what came out of it. */
typedef struct guest {
    leat_loader *loader;
    leat_loader_opts opts;
    leat_batch *held;
    outcome out;
    uint64_t rows;        /* of the order that its batches covered */
    uint64_t leave_after; /* batches; UINT64_MAX = stays to the end */
    const char *wrong;    /* with a batch of it, or NULL */
    bool over;
} guest;

typedef struct scenario {
    leat__rng rng;
    leat_pool *pool;
    leat_budget *budget; /* shared by all, or NULL */
    guest guests[LOADERS_MAX];
    uint32_t count, pack;
    bool faulty; /* something was made to fail */
    bool lowered;
} scenario;

static leat_loader_opts small_opts(void)
{
    leat_loader_opts o = base_opts();
    o.threads = 0;
    o.batch_size = 8;
    o.ops = "CenterCrop(16)";
    return o;
}

/* One row per batch, so that the position of each is known. */
static void run_plain(plain *p, const char *path, leat_loader_opts o)
{
    leat_loader *l;
    leat_batch *b;
    o.batch_size = 1;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_ok(leat_loader_begin(l, 0, NULL));
    while ((p->out.rc = leat_loader_next(l, &b, -1, &p->out.err)) == 0 && b != NULL) {
        p->hash[b->position] = b->samples > 0 ? b->sample_hash[0] : 0;
        p->bad[b->position] = b->bad;
        p->out.digest = fold(p->out.digest, b, 0);
        p->out.bad += b->bad;
        leat_batch_release(&b);
    }
    leat_loader_close(&l);
}

static int make_packs(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        snprintf(packs[p], sizeof packs[p], "/tmp/leat-schedules-%d-%d.leat", p, (int)getpid());
        tiny_pack(packs[p],
                  &(tiny_opts){.samples = SAMPLES, .classes = 3, .bad_every = p == 0 ? 0 : BAD_EVERY});
        for (int order = 0; order < 3; order++) {
            for (int policy = 0; policy < 3; policy++) {
                leat_loader_opts o = small_opts();
                set_order(&o, (leat_order)order);
                o.on_error = (leat_on_error)policy;
                run_plain(&expected[p][order][policy], packs[p], o);
            }
        }
    }
    return 0;
}

static int drop_packs(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) unlink(packs[p]);
    return 0;
}

static uint32_t below(scenario *s, uint32_t n)
{
    return (uint32_t)leat__rng_below(&s->rng, n);
}

/* A read of any loader that is waiting for the disk. */
static bool disk_moves(void *cookie, uint32_t draw)
{
    scenario *s = cookie;
    for (uint32_t i = 0; i < s->count; i++) {
        leat_loader *l = s->guests[(draw + i) % s->count].loader;
        if (l != NULL && l->env.aio != NULL && leat__aio_turn(l->env.aio, draw / LOADERS_MAX)) return true;
    }
    return false;
}

/* A third of the seeds each: a disk that is never asked, one that is slow, one that also fails. */
static void draw_fault(scenario *s)
{
    leat__inject_rule rule = {.path = packs[s->pack]}; /* acts on all, changes nothing: waited for */
    if (below(s, 3) > 0) assert_ok(leat__io_inject(&rule, NULL));
    if (below(s, 3) == 0) {
        rule.sys_errno = EIO;
        rule.offset = 4096 * (1 + below(s, 12));
        rule.length = 4096;
        rule.times = 1 + below(s, 3);
        assert_ok(leat__io_inject(&rule, NULL));
        s->faulty = true;
    } else if (leat__fault_available() && below(s, 2) == 0) {
        leat__fault_arm(below(s, 3) == 0 ? LEAT__FAULT_READ : LEAT__FAULT_ALLOC, 1 + below(s, 600),
                        below(s, 4) == 0);
        s->faulty = true;
    }
}

static void draw(scenario *s)
{
    s->pack = below(s, 3) == 0;
    s->count = 1 + below(s, LOADERS_MAX);
    if (below(s, 3) == 0) assert_ok(leat_budget_open(&s->budget, 48 << 20, NULL));
    for (uint32_t i = 0; i < s->count; i++) {
        guest *g = &s->guests[i];
        g->opts = small_opts();
        set_order(&g->opts, (leat_order)below(s, 3));
        g->opts.cache = (leat_cache)below(s, 2);
        g->opts.on_error = (leat_on_error)below(s, 3);
        g->opts.batch_size = 1 + below(s, 20);
        g->opts.prefetch = below(s, 4);
        g->opts.memory = (uint64_t)(8 + below(s, 8)) << 20;
        g->opts.budget = s->budget;
        g->leave_after = below(s, 4) == 0 ? below(s, 8) : UINT64_MAX;
    }
    draw_fault(s);
}

static void leave(guest *g)
{
    leat_batch_release(&g->held);
    leat_loader_close(&g->loader);
    g->over = true;
}

/* Rows of the batch that the plain run has too, in its order: the longest common subsequence. */
static uint32_t rows_in_common(const plain *want, const leat_batch *b)
{
    uint32_t best[SAMPLES + 1] = {0}; /* of the first i rows, by how many of the batch's */
    for (uint32_t i = 0; i < b->rows; i++) {
        uint64_t hash = want->hash[b->position + i];
        for (uint32_t k = 0, diagonal = 0; k < b->samples; k++) {
            uint32_t above = best[k + 1];
            best[k + 1] = hash == b->sample_hash[k] ? diagonal + 1 : LEAT_MAX(above, best[k]);
            diagonal = above;
        }
    }
    return best[b->samples];
}

/* What is wrong with a batch, or NULL: a row that is another one, or missing, needs a bad sample. */
static const char *judge_batch(const scenario *s, const guest *g, const leat_batch *b)
{
    const plain *want = &expected[s->pack][g->opts.order][g->opts.on_error];
    uint32_t rows = 0, bad = 0;
    if (b->position + b->rows > SAMPLES || b->samples > b->rows) return "more rows than there are";
    for (uint64_t i = b->position; i < b->position + b->rows; i++) {
        rows += want->hash[i] != 0;
        bad += want->bad[i];
    }
    if (b->bad < bad) return "fewer bad samples than there are";
    if (g->opts.on_error == LEAT_ON_ERROR_FAIL && b->bad > 0) return "a bad sample was let through";
    if (g->opts.on_error == LEAT_ON_ERROR_SKIP && b->samples + b->bad != b->rows)
        return "samples were lost or doubled";
    uint32_t same = rows_in_common(want, b);
    return LEAT_MAX(rows, b->samples) - same <= b->bad - bad ? NULL : "other rows, silently";
}

/* One call of one loader's training loop. */
static void step(scenario *s, guest *g)
{
    leat_batch *b = NULL;
    if (g->out.batches >= g->leave_after) {
        g->out.rc = LEAT_ECANCELED; /* its own wish */
        leave(g);
        return;
    }
    g->out.rc = leat_loader_next(g->loader, &b, -1, &g->out.err);
    leat_batch_release(&g->held);
    if (b == NULL) {
        leave(g);
        return;
    }
    if (g->wrong == NULL) g->wrong = judge_batch(s, g, b);
    g->out.digest = fold(g->out.digest, b, 0);
    g->rows += b->rows;
    g->out.samples += b->samples;
    g->out.bad += b->bad;
    g->out.batches++;
    if (below(s, 2) == 0) g->held = b;
    else leat_batch_release(&b);
    if (below(s, 24) == 0 && !s->lowered) {
        leat_budget_stats now;
        leat_budget_read(leat_loader_budget(g->loader), &now);
        s->lowered = leat_budget_set_limit(leat_loader_budget(g->loader), now.limit / 2, NULL) == 0;
    }
}

/* What is wrong with how this loader ended, or NULL. */
static const char *judge(const scenario *s, const guest *g)
{
    const outcome *want = &expected[s->pack][g->opts.order][g->opts.on_error].out, *got = &g->out;
    if (g->wrong != NULL) return g->wrong;
    if (got->rc == LEAT_EINTERNAL) return "a deadlock";
    if (got->rc == LEAT_ECANCELED && g->leave_after != UINT64_MAX) return NULL;
    if (got->rc == 0 && g->rows != SAMPLES) return "rows of the order are missing";
    if (!s->faulty) {
        if (got->rc != want->rc) return "an outcome that the plain run does not have";
        if (got->rc != 0) return got->err.sample == want->err.sample ? NULL : "another sample is blamed";
        if (got->digest != want->digest) return "other bytes than the plain run";
        return got->bad == want->bad ? NULL : "another count of bad samples";
    }
    if (got->rc == 0) return want->rc == 0 ? NULL : "a damaged sample was let through";
    return got->rc == LEAT_EIO || got->rc == LEAT_ENOMEM || got->rc == LEAT_EDATA
               ? NULL
               : "an error of another kind than the fault";
}

static const char *run_seed(uint64_t seed, uint64_t *moves)
{
    scenario s = {0};
    leat_pool_opts po;
    const char *wrong = NULL;

    leat__rng_init(&s.rng, seed, 1, 2, 3);
    draw(&s);
    leat_pool_opts_init(&po);
    po.threads = 1 + below(&s, 4);
    po.io_threads = 1 + below(&s, 4);
    int rc = leat__replay_open(&s.pool, &po, seed, NULL, NULL, NULL);
    if (rc == 0) leat__replay_outside_set(s.pool, disk_moves, &s);
    uint32_t live = rc == 0 ? s.count : 0;
    for (uint32_t i = 0; i < live; i++) {
        guest *g = &s.guests[i];
        g->out.rc = leat__loader_open_on(&g->loader, packs[s.pack], &g->opts, s.pool, &g->out.err);
        if (g->out.rc == 0) g->out.rc = leat_loader_begin(g->loader, 0, &g->out.err);
        if (g->out.rc != 0) leave(g);
    }
    while (live > 0) {
        live = 0;
        for (uint32_t i = 0; i < s.count; i++) {
            guest *g = &s.guests[(i + below(&s, s.count)) % s.count];
            if (!g->over) step(&s, g);
            for (uint32_t k = 0; k < s.count; k++) live += !s.guests[k].over;
        }
    }
    leat__fault_disarm();
    leat__io_inject_clear();
    for (uint32_t i = 0; i < s.count && rc == 0 && wrong == NULL; i++) {
        wrong = judge(&s, &s.guests[i]);
        if (wrong != NULL)
            print_error("loader %u: order %d cache %d on_error %d batch %u: rc %d (%s), "
                        "%d samples, %d bad\n",
                        i, s.guests[i].opts.order, s.guests[i].opts.cache, s.guests[i].opts.on_error,
                        s.guests[i].opts.batch_size, s.guests[i].out.rc, s.guests[i].out.err.message,
                        (int)s.guests[i].out.samples, (int)s.guests[i].out.bad);
    }
    if (rc == 0) *moves += leat__replay_moves(s.pool);
    if (rc == 0) leat_pool_close(&s.pool);
    leat_budget_stats left = {0};
    if (s.budget != NULL) leat_budget_read(s.budget, &left);
    if (wrong == NULL && left.used + left.floors != 0) wrong = "bytes are still charged";
    leat_budget_close(&s.budget);
    return wrong;
}

static void search(void **state)
{
    uint64_t one = test_count("LEAT_SEED", 0), count = one ? 1 : test_count("LEAT_LOADER_SCHEDULES", 500);
    uint64_t first = one ? one : test_count("LEAT_FIRST_SEED", 1), moves = 0, blocks = leat__mem_blocks();
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *wrong = run_seed(seed, &moves);
        if (wrong == NULL && leat__mem_blocks() != blocks) wrong = "memory leaked";
        if (wrong != NULL) {
            print_error("LEAT_SEED=%llu: %s\n", (unsigned long long)seed, wrong);
            fail();
        }
    }
    print_message("%llu scenarios, %llu moves\n", (unsigned long long)count, (unsigned long long)moves);
}

/* The same seed gives the same moves: a failing seed can be repeated. */
static void same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 40; seed < 60; seed++) {
        uint64_t a = 0, b = 0;
        assert_null(run_seed(seed, &a));
        assert_null(run_seed(seed, &b));
        assert_int_equal(a, b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search),
        cmocka_unit_test(same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, make_packs, drop_packs);
}
