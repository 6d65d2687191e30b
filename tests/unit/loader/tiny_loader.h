/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a loader over a small pack and remembering what came out.
 */
#ifndef LEAT_TESTS_TINY_LOADER_H
#define LEAT_TESTS_TINY_LOADER_H

#include "tiny_pack.h"

#include <leat/loader.h>

#include "base/hash.h"

static inline leat_loader_opts base_opts(void)
{
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.batch_size = 16;
    o.ops = "RandomResizedCrop(24); RandomHorizontalFlip()";
    o.order = LEAT_ORDER_RANDOM;
    o.seed = 5;
    o.threads = 2;
    o.memory = 64 << 20;
    o.digest = 1;
    return o;
}

/* Options of one thread with little memory, for tests of what is refused. */
static inline leat_loader_opts one_thread_opts(void)
{
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.batch_size = 10;
    o.ops = "RandomResizedCrop(16)";
    o.threads = 1;
    o.memory = 32 << 20;
    return o;
}

/* The pack of a test that has one pack for all of its cases. */
static inline char *shared_pack(void)
{
    static char path[64];
    return path;
}

static inline int make_shared_pack(const tiny_opts *t)
{
    snprintf(shared_pack(), 64, "/tmp/leat-shared-%d.leat", (int)getpid());
    tiny_pack(shared_pack(), t);
    return 0;
}

static inline int drop_shared_pack(void **state)
{
    (void)state;
    unlink(shared_pack());
    return 0;
}

/* A loader of the shared pack with these options is refused with a message that has these words. */
static inline void assert_refused(const leat_loader_opts *o, const char *words)
{
    leat_loader *l;
    leat_error err;
    assert_code(LEAT_EINVAL, leat_loader_open(&l, shared_pack(), o, &err));
    assert_null(l);
    assert_contains(err.message, words);
    assert_no_leaks();
}

/* The order, and for quasi_random a window that is smaller than the packs of the tests. */
static inline void set_order(leat_loader_opts *o, leat_order order)
{
    o->order = order;
    o->window_pages = order == LEAT_ORDER_QUASI ? 8 : 0;
    o->streams = order == LEAT_ORDER_QUASI ? 4 : 0;
}

typedef struct outcome {
    uint64_t digest, samples, batches, bad;
    int rc;
    leat_error err;
} outcome;

static inline uint64_t fold(uint64_t digest, const leat_batch *b, uint32_t from)
{
    for (uint32_t i = from; i < b->samples; i++) {
        uint64_t pair[2] = {digest, b->sample_hash[i]};
        digest = leat__hash64(pair, sizeof pair, 0);
    }
    return digest;
}

/* Pulls what is left of the epoch. */
static inline void drain(leat_loader *l, outcome *o)
{
    leat_batch *b;
    while ((o->rc = leat_loader_next(l, &b, -1, &o->err)) == 0 && b != NULL) {
        o->digest = fold(o->digest, b, 0);
        o->samples += b->samples;
        o->bad += b->bad;
        o->batches++;
        leat_batch_release(&b);
    }
}

static inline outcome run_with(const char *path, const leat_loader_opts *opts, uint64_t epoch)
{
    leat_loader *l;
    outcome o = {0};
    o.rc = leat_loader_open(&l, path, opts, &o.err);
    if (o.rc == 0) o.rc = leat_loader_begin(l, epoch, &o.err);
    if (o.rc == 0) drain(l, &o);
    leat_loader_close(&l);
    return o;
}

/* Define PLAIN_SAMPLES before this header to get one pack for all tests of a file, with captions. */
#ifdef PLAIN_SAMPLES
enum { SAMPLES = PLAIN_SAMPLES, CLASSES = 7 };
static char plain[64];

static int make_pack(void **state)
{
    (void)state;
    snprintf(plain, sizeof plain, "/tmp/leat-plain-%d.leat", (int)getpid());
    tiny_pack(plain, &(tiny_opts){.samples = SAMPLES, .classes = CLASSES, .captions = true});
    return 0;
}

static int drop_pack(void **state)
{
    (void)state;
    unlink(plain);
    return 0;
}
#endif

#endif
