/* SPDX-License-Identifier: Apache-2.0
 *
 * The harness of check.h: guarded memory, the loop over instruction sets, the clock. One
 * thread.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

enum { CANARY = 0xa5, ROUNDS = 7, SHOWN_MAX = 10 };

static const struct {
    const char *name;
    uint32_t flags;
} levels[] = {
    {"c", CHECK_REFERENCE},
    {"avx2", CHECK_REFERENCE | LEAT__CPU_AVX2},
    {"avx2 slow pdep", CHECK_REFERENCE | LEAT__CPU_AVX2 | LEAT__CPU_SLOW_PDEP},
    {"avx512", CHECK_REFERENCE | LEAT__CPU_AVX2 | LEAT__CPU_AVX512},
    {"avx512icl", CHECK_REFERENCE | LEAT__CPU_AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL},
};

static uint64_t seed = 1;
static double copy_rate; /* bytes read and written per second */

/* ---- guarded memory ---- */

static uint8_t *alloc_at(check *c, size_t size, bool front)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inside = (size + page - 1) / page * page;
    inside += inside == 0 ? page : 0;
    size_t total = inside + 2 * page;
    uint8_t *map = c->blocks < CHECK_BLOCKS_MAX
                       ? mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                       : MAP_FAILED;
    if (map == MAP_FAILED || mprotect(map + page, inside, PROT_READ | PROT_WRITE) != 0) {
        fprintf(stderr, "check: no guarded memory of %zu bytes\n", size);
        exit(2);
    }
    memset(map + page, CANARY, inside);
    uint8_t *data = map + page + (front ? 0 : inside - size);
    c->block[c->blocks++] = (check_block){map, total, data, size};
    return data;
}

uint8_t *check_alloc(check *c, size_t size)
{
    return alloc_at(c, size, false);
}

uint8_t *check_alloc_front(check *c, size_t size)
{
    return alloc_at(c, size, true);
}

static void free_blocks(check *c)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < c->blocks; i++) {
        check_block *b = &c->block[i];
        for (uint8_t *p = b->map + page; p < b->map + b->map_len - page; p++)
            if ((p < b->data || p >= b->data + b->size) && *p != CANARY) {
                CHECK(c, false, "wrote %td bytes from the start of a block of %zu", p - b->data, b->size);
                break;
            }
        munmap(b->map, b->map_len);
    }
    c->blocks = 0;
}

/* ---- input ---- */

void check_random(check *c, void *data, size_t size)
{
    uint8_t *p = data;
    for (; size >= 4; size -= 4, p += 4) {
        uint32_t v = leat__rng_u32(&c->rng);
        memcpy(p, &v, 4);
    }
    for (; size > 0; size--) *p++ = (uint8_t)leat__rng_u32(&c->rng);
}

uint32_t check_below(check *c, uint32_t n)
{
    return (uint32_t)leat__rng_below(&c->rng, n);
}

void check_fail(check *c, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    if (c->failures++ >= SHOWN_MAX) return;
    printf("FAILED %s [%s] seed %llu, %s:%d: ", c->name, c->isa, (unsigned long long)seed, file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* ---- clock ---- */

/* Doubles the number of runs until one round takes 5 ms, then takes the best of several. */
bool check_clock_next(check_clock *k)
{
    uint64_t now = leat__clock_thread_ns();
    if (k->runs == 0) {
        k->runs = 1;
    } else {
        double ns = (double)(now - k->start);
        if (k->round == 0 && ns < 5e6) {
            k->runs *= 2;
        } else {
            double each = ns / (double)k->runs;
            if (k->round == 0 || each < k->best) k->best = each;
            if (++k->round == ROUNDS) return false;
        }
    }
    k->start = leat__clock_thread_ns();
    return true;
}

void check_clock_print(check *c, const check_clock *k, const char *what, double bytes)
{
    double rate = bytes / k->best * 1e9;
    printf("%-28s %-14s %10.1f ns %8.2f GB/s %6.0f %% of copying\n", what, c->isa, k->best, rate / 1e9,
           100 * rate / copy_rate);
}

static double measure_copy(void)
{
    size_t size = (size_t)64 << 20;
    uint8_t *a = malloc(size), *b = malloc(size);
    check_clock k = {0};
    if (a == NULL || b == NULL) exit(2);
    memset(a, 1, size);
    while (check_clock_next(&k))
        for (uint64_t i = 0; i < k.runs; i++) {
            memcpy(b, a, size);
            __asm__ volatile("" ::: "memory");
        }
    free(a);
    free(b);
    return 2.0 * (double)size / k.best * 1e9;
}

/* ---- running ---- */

static uint32_t run_case(const check_case *one, uint32_t level, bool timing)
{
    check c = {.name = one->name, .isa = levels[level].name, .flags = levels[level].flags, .timing = timing};
    leat__rng_init(&c.rng, seed, 0, 0, 0);
    one->run(&c);
    free_blocks(&c);
    if (!timing)
        printf("%-6s %-28s %-14s %u checks\n", c.failures ? "FAILED" : "ok", c.name, c.isa, c.checks);
    return c.failures;
}

int check_run(int argc, char **argv, const check_case *cases, size_t count)
{
    const char *only_isa = NULL, *only_case = NULL;
    bool timing = false;
    uint32_t failures = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--time") == 0) timing = true;
        else if (strcmp(argv[i], "--seed") == 0 && more) seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--isa") == 0 && more) only_isa = argv[++i];
        else if (strcmp(argv[i], "--case") == 0 && more) only_case = argv[++i];
        else {
            fprintf(stderr, "usage: %s [--time] [--seed N] [--isa NAME] [--case NAME]\n", argv[0]);
            return 2;
        }
    }
    if (timing) {
        copy_rate = measure_copy();
        printf("%s: copying 64 MiB reads and writes %.1f GB/s\n", leat__cpu_model(), copy_rate / 1e9);
    }
    uint32_t have = leat__cpu_detected() | (uint32_t)LEAT__CPU_SLOW_PDEP;
    for (size_t i = 0; i < count; i++)
        for (uint32_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
            if ((levels[l].flags & ~have) != 0) continue;
            if (only_isa != NULL && strcmp(only_isa, levels[l].name) != 0) continue;
            if (only_case != NULL && strcmp(only_case, cases[i].name) != 0) continue;
            failures += run_case(&cases[i], l, timing);
        }
    return failures > 0;
}
