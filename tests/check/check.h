/* SPDX-License-Identifier: Apache-2.0
 *
 * Harness for kernels: compares the portable C with each instruction set of this machine, on
 * random and extreme input, with guard pages and canaries around the memory a kernel may touch,
 * and times the same kernels.
 *
 *   static void check_thing(check *c)      // called once per instruction set
 *   {
 *       thing_dsp ref, opt;
 *       thing_init(&ref, CHECK_REFERENCE);
 *       thing_init(&opt, c->flags);
 *       uint8_t *out = check_alloc(c, 4096);       // the byte after it cannot be touched
 *       check_random(c, in, n);
 *       …
 *       CHECK(c, memcmp(a, b, n) == 0, "width %u", n);
 *       CHECK_TIME(c, bytes, opt.run(out, in, n)); // only with --time
 *   }
 *   CHECK_MAIN({"thing", check_thing})
 *
 * Arguments: --time also times; --seed N; --isa NAME and --case NAME select. Exit 0 or 1.
 */
#ifndef LEAT_TESTS_CHECK_H
#define LEAT_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "probe/cpu.h"

#define CHECK_REFERENCE ((uint32_t)LEAT__CPU_SSE42)
#define CHECK_BLOCKS_MAX 256

typedef struct check_block {
    uint8_t *map; /* guard page, pages, guard page */
    size_t map_len;
    uint8_t *data;
    size_t size;
} check_block;

typedef struct check {
    const char *name; /* of the case */
    const char *isa;  /* "c", "avx2", "avx2 slow pdep", "avx512" … */
    uint32_t flags;   /* CPU flags that select the kernels */
    leat__rng rng;    /* the same numbers for every instruction set */
    bool timing;
    uint32_t failures, checks;
    check_block block[CHECK_BLOCKS_MAX];
    uint32_t blocks;
} check;

typedef struct check_case {
    const char *name;
    void (*run)(check *c);
} check_case;

/* `size` bytes that end at a guard page; the bytes before them are canaries, checked at the end
 * of the case. Freed then. */
uint8_t *check_alloc(check *c, size_t size);
/* The same with the guard page in front and the canaries after. */
uint8_t *check_alloc_front(check *c, size_t size);

void check_random(check *c, void *data, size_t size);
uint32_t check_below(check *c, uint32_t n); /* [0, n) */

void check_fail(check *c, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#define CHECK(c, condition, ...)                                                                             \
    do {                                                                                                     \
        (c)->checks++;                                                                                       \
        if (!(condition)) check_fail(c, __FILE__, __LINE__, __VA_ARGS__);                                    \
    } while (0)

/* Times `expression`, which touches `bytes` bytes (read and written), and prints the rate
 * relative to the machine's copy bandwidth. */
typedef struct check_clock {
    uint64_t runs, start;
    double best;
    int round;
} check_clock;
bool check_clock_next(check_clock *k);
void check_clock_print(check *c, const check_clock *k, const char *what, double bytes);
#define CHECK_TIME(c, what, bytes, expression)                                                               \
    do {                                                                                                     \
        if ((c)->timing) {                                                                                   \
            check_clock k_ = {0};                                                                            \
            while (check_clock_next(&k_))                                                                    \
                for (uint64_t i_ = 0; i_ < k_.runs; i_++) {                                                  \
                    expression;                                                                              \
                    __asm__ volatile("" ::: "memory");                                                       \
                }                                                                                            \
            check_clock_print(c, &k_, what, bytes);                                                          \
        }                                                                                                    \
    } while (0)

int check_run(int argc, char **argv, const check_case *cases, size_t count);
#define CHECK_MAIN(...)                                                                                      \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        static const check_case cases[] = {__VA_ARGS__};                                                     \
        return check_run(argc, argv, cases, sizeof cases / sizeof cases[0]);                                 \
    }

#endif
