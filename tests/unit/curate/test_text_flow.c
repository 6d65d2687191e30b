/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "curate/text_flow.h"

typedef struct probe {
    uint64_t next, lines, stop_at;
} probe;

static int setup(void *cookie, void **worker, leat_error *err)
{
    *worker = leat__alloc(LEAT__MEM_CURATE, 16);
    return 0;
}

static void teardown(void *cookie, void *worker)
{
    leat__free(worker);
}

static uint64_t need(void *cookie, uint64_t longest)
{
    return 10 * longest;
}

static int work(void *cookie, void *worker, leat__text_chunk *c, leat_error *err)
{
    leat__line line;
    size_t at = 0;
    while (leat__text_chunk_next(c, &at, &line)) c->count[0]++;
    return 0;
}

static int take(void *cookie, leat__text_chunk *c, leat_error *err)
{
    probe *p = cookie;
    assert_int_equal(c->document, p->next); /* in order */
    p->next += c->lines;
    p->lines += c->count[0];
    return 0;
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    probe *p = cookie;
    assert_true(bytes <= total);
    return p->stop_at && p->lines >= p->stop_at;
}

static uint64_t need_much(void *cookie, uint64_t longest)
{
    return 100 * longest;
}

/* Writes as much as the declared bounds allow. */
static int work_much(void *cookie, void *worker, leat__text_chunk *c, leat_error *err)
{
    leat__line line;
    size_t at = 0;
    while (leat__text_chunk_next(c, &at, &line)) {
        c->count[0]++;
        leat__buf_append(&c->out[0], line.text, line.len);
        leat__buf_zeros(&c->out[1], 1000);
    }
    return c->out[0].status || c->out[1].status ? LEAT_ENOMEM : 0;
}

static int run_on(const char *name, bool much, probe *p, uint32_t threads, uint64_t memory, leat_error *err)
{
    const char *in[] = {in_box(name)};
    leat__text_pass pass = {.name = "count",
                            .cookie = p,
                            .setup = setup,
                            .teardown = teardown,
                            .ram = 1000,
                            .need = much ? need_much : need,
                            .per_line = much ? 1000 : 0,
                            .work = much ? work_much : work,
                            .take = take,
                            .tell = tell};
    leat__text_files f;
    leat_budget *budget = NULL;
    assert_int_equal(leat_budget_open(&budget, memory, err), 0);
    assert_int_equal(leat__text_files_open(&f, in, 1, 8 << 20, err), 0);
    int rc = leat__text_flow_run(&f, &pass, budget, threads, NULL, err);
    leat_budget_stats bs;
    leat_budget_read(budget, &bs);
    assert_true(bs.peak <= memory);
    leat__text_files_reset(&f);
    leat_budget_close(&budget);
    return rc;
}

static int run(probe *p, uint32_t threads, uint64_t memory, leat_error *err)
{
    return run_on("many.jsonl", false, p, threads, memory, err);
}

static void chunks_come_in_order(void **state)
{
    FILE *f = fopen(in_box("many.jsonl"), "wb");
    for (int i = 0; i < 200000; i++) fprintf(f, "{\"id\": %d, \"text\": \"some words of a line\"}\n", i);
    fclose(f);
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
        probe p = {0};
        assert_int_equal(run(&p, threads, 64u << 20, NULL), 0);
        assert_int_equal(p.lines, 200000);
    }
}

static void it_can_be_stopped(void **state)
{
    probe p = {.stop_at = 1};
    leat_error err = {0};
    assert_int_equal(run(&p, 2, 64u << 20, &err), LEAT_ECANCELED);
    assert_true(p.lines < 200000);
}

static void too_little_memory_is_refused(void **state)
{
    probe p = {0};
    leat_error err = {0};
    assert_int_equal(run(&p, 1, 1000, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "raise memory to"));
}

static uint64_t named_memory(const leat_error *err)
{
    const char *at = strstr(err->message, "raise memory to ");
    assert_non_null(at);
    return (uint64_t)atoi(at + 16) << 20;
}

/* Lines of all lengths around what the memory allows: processed, or refused with the memory that
 * they need. Lines over the limit of a line are skipped, whatever the memory. */
static void long_lines_run_or_are_refused(void **state)
{
    FILE *f = fopen(in_box("long.jsonl"), "wb");
    uint64_t lines = 0;
    for (double size = 1000; size < 6e6; size *= 1.4) {
        for (int i = 0; i < 30; i++, lines++) fprintf(f, "{\"text\": \"short\"}\n");
        for (int i = 0; i < 2; i++, lines++) fprintf(f, "%0*d\n", (int)size, 7);
    }
    for (int i = 0; i < 2; i++) fprintf(f, "%0*d\n%0*d\n", 9 << 20, 1, 20 << 20, 1);
    fclose(f);
    static const uint64_t memory[] = {48, 64, 128, 300, 700, 2000};
    for (uint32_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        for (uint32_t threads = 1; threads <= 16; threads *= 4) {
            leat_error err = {0};
            probe p = {0};
            uint64_t bytes = memory[i] << 20;
            for (int tries = 0; run_on("long.jsonl", true, &p, threads, bytes, &err) != 0; tries++) {
                assert_int_equal(err.code, LEAT_EBUDGET);
                assert_non_null(strstr(err.message, "long.jsonl: line "));
                assert_true(named_memory(&err) > bytes && tries < 30);
                bytes = named_memory(&err);
                p = (probe){0};
            }
            assert_true(p.next == lines + 4);
        }
}

static void the_largest_share_limits(void **state)
{
    leat_text_load load;
    char words[160];
    leat__text_meter m = {0};
    leat__text_meter_load(&m, &load);
    assert_int_equal(load.limit, LEAT_TEXT_LIMIT_NONE);
    m = (leat__text_meter){.elapsed_ns = 100, .read_ns = 20, .work_ns = 90, .take_ns = 30, .blocked_ns = 5};
    leat__text_meter_load(&m, &load);
    assert_int_equal(load.limit, LEAT_TEXT_LIMIT_CPUS);
    assert_true(load.read == 0.2 && load.work == 0.9 && load.write == 0.3 && load.memory == 0.05);
    assert_string_equal(leat__text_load_words(&load, words),
                        "limited by the CPUs: reading 0.20, CPUs 0.90, writing 0.30, waiting for memory "
                        "0.05 of the time");
    m.take_ns = 95;
    leat__text_meter_load(&m, &load);
    assert_string_equal(leat__text_limit_name(load.limit), "writing");
    m.blocked_ns = 99;
    leat__text_meter_load(&m, &load);
    assert_string_equal(leat__text_limit_name(load.limit), "memory");
    m.read_ns = 100;
    leat__text_meter_load(&m, &load);
    assert_string_equal(leat__text_limit_name(load.limit), "reading");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_come_in_order),         cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(too_little_memory_is_refused), cmocka_unit_test(long_lines_run_or_are_refused),
        cmocka_unit_test(the_largest_share_limits),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
