/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/mapper.c: chunks that a device can read, and those that it cannot.
 */
#include "gpu/fake_driver.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "loader/chunk.h"
#include "loader/mapper.h"

enum { CHUNKS = 5 };
static atomic_int warned;

static void count_line(void *cookie, leat_log_level level, const char *line)
{
    (void)cookie;
    assert_int_equal(level, LEAT_LOG_WARN);
    assert_non_null(strstr(line, "CUDA"));
    atomic_fetch_add(&warned, 1);
}

static const leat_log quiet = {.write = count_line};

static leat__gpu *open_fake(void)
{
    leat__gpu *gpu = NULL;
    go_wrong("");
    atomic_store(&warned, 0);
    assert_ok(leat__gpu_open(&gpu, 0, fake_path, NULL));
    return gpu;
}

static void open_chunks(leat__chunk **chunks)
{
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i] = leat__chunk_open(LEAT__MEM_PAGE, LEAT__CHUNK_ALIGN);
        assert_non_null(chunks[i]);
    }
}

static void wait_until_mapped(const leat__chunk *k, const leat__gpu *gpu)
{
    for (int i = 0; i < 100000 && leat__chunk_mapped(k, gpu) == 0; i++) usleep(100);
    assert_true(leat__chunk_mapped(k, gpu) != 0);
}

static void chunks_are_mapped_once_it_starts(void **state)
{
    leat__gpu *gpu = open_fake(), *other;
    leat__chunk *k[CHUNKS];
    leat__mapper *m;
    (void)state;
    open_chunks(k);
    assert_ok(leat__gpu_open(&other, 1, fake_path, NULL));
    assert_ok(leat__mapper_open(&m, gpu, &quiet, NULL));
    for (int i = 0; i < 3; i++) leat__mapper_add(m, k[i]);
    usleep(2000);
    assert_int_equal(fake_cuda.locked(), 0);
    leat__mapper_remove(m, k[1]);
    leat__mapper_start(m);
    leat__mapper_start(m);
    wait_until_mapped(k[0], gpu);
    wait_until_mapped(k[2], gpu);
    leat__mapper_add(m, k[3]);
    wait_until_mapped(k[3], gpu);
    assert_int_equal(leat__chunk_mapped(k[1], gpu), 0);
    assert_int_equal(leat__chunk_mapped(k[0], other), 0); /* that is another device */
    assert_int_equal(fake_cuda.locked(), 3);
    leat__mapper_remove(m, k[0]); /* it was mapped already */
    leat__chunk_close(k[0]);
    assert_int_equal(fake_cuda.locked(), 2);
    leat__mapper_close(&m);
    leat__mapper_close(&m);
    leat__gpu_close(&other);
    leat__gpu_close(&gpu);
    assert_true(fake_cuda.held() > 0); /* the chunks hold the device */
    for (int i = 1; i < CHUNKS; i++) leat__chunk_close(k[i]);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(atomic_load(&warned), 0);
    assert_no_leaks();
}

static void a_failure_is_reported_once(void **state)
{
    leat__gpu *gpu = open_fake();
    leat__chunk *k[CHUNKS];
    leat__mapper *m;
    (void)state;
    open_chunks(k);
    assert_ok(leat__mapper_open(&m, gpu, &quiet, NULL));
    leat__mapper_start(m);
    leat__mapper_add(m, k[0]);
    wait_until_mapped(k[0], gpu);
    go_wrong("map");
    leat__mapper_add(m, k[1]);
    for (int i = 0; i < 100000 && atomic_load(&warned) == 0; i++) usleep(100);
    go_wrong("");
    leat__mapper_add(m, k[2]); /* it does not try again */
    usleep(2000);
    leat__mapper_remove(m, k[2]);
    leat__mapper_close(&m);
    assert_int_equal(atomic_load(&warned), 1);
    for (int i = 1; i < 3; i++) assert_int_equal(leat__chunk_mapped(k[i], gpu), 0);
    for (int i = 0; i < CHUNKS; i++) leat__chunk_close(k[i]);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
    assert_no_leaks();
}

static void chunks_come_and_go(void **state)
{
    leat__gpu *gpu = open_fake();
    leat__mapper *m;
    (void)state;
    assert_ok(leat__mapper_open(&m, gpu, &quiet, NULL));
    leat__mapper_start(m);
    for (int round = 0; round < 50; round++) {
        leat__chunk *k[CHUNKS];
        open_chunks(k);
        for (int i = 0; i < CHUNKS; i++) leat__mapper_add(m, k[i]);
        if (round % 2) usleep(300);
        for (int i = 0; i < CHUNKS; i++) {
            leat__mapper_remove(m, k[i]);
            leat__chunk_close(k[i]);
        }
        assert_int_equal(fake_cuda.locked(), 0);
    }
    leat__mapper_close(&m);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chunks_are_mapped_once_it_starts),
                                       cmocka_unit_test(a_failure_is_reported_once),
                                       cmocka_unit_test(chunks_come_and_go)};
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
