/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/to_device.c through the loader, on the stand-in driver of tests/unit/gpu, whose
 * device memory can be read here.
 */
#include "gpu/fake_driver.h"
#include "tiny_loader.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/num.h"

static char pack[64], plain[64];

static int set_up(void **state)
{
    if (find_fake(state) != 0) return -1;
    go_wrong("");
    snprintf(pack, sizeof pack, "/tmp/leat-to-device-%d.leat", (int)getpid());
    snprintf(plain, sizeof plain, "/tmp/leat-to-device-p%d.leat", (int)getpid());
    tiny_pack(pack, &(tiny_opts){.samples = 200, .classes = 4, .captions = true});
    tiny_pack(plain, &(tiny_opts){.samples = 200, .classes = 4, .bad_every = 23});
    return 0;
}

static int tear_down(void **state)
{
    unlink(pack);
    unlink(plain);
    return 0;
}

static leat_loader_opts device_opts(void)
{
    leat_loader_opts o = base_opts();
    o.device = "cuda";
    return o;
}

static void assert_same_batch(const leat_batch *a, const leat_batch *b)
{
    assert_int_equal(a->samples, b->samples);
    assert_memory_equal(a->sample_ids, b->sample_ids, a->samples * sizeof(uint64_t));
    assert_memory_equal(a->sample_hash, b->sample_hash, a->samples * sizeof(uint64_t));
    for (uint32_t c = 0; c < a->field_count; c++) {
        const leat_tensor *x = &a->fields[c], *y = &b->fields[c];
        uint64_t bytes = leat_dtype_size(x->dtype);
        for (uint32_t d = 0; d < x->ndim; d++) {
            assert_int_equal(x->shape[d], y->shape[d]);
            bytes *= (uint64_t)x->shape[d];
        }
        assert_int_equal((uintptr_t)y->data % 256, 0);
        assert_memory_equal(x->data, y->data, bytes);
        if (x->offsets != NULL) assert_memory_equal(x->offsets, y->offsets, (a->samples + 1) * 8);
    }
}

/* An epoch from the host beside the same from the device. */
static void assert_same_epoch(const char *path, leat_loader_opts o)
{
    leat_loader *host, *device;
    leat_batch *a, *b;
    leat_loader_stats s = {0};
    o.device = NULL;
    assert_ok(leat_loader_open(&host, path, &o, NULL));
    assert_int_equal(leat_loader_device(host), -1);
    o.device = "cuda:1";
    assert_ok(leat_loader_open(&device, path, &o, NULL));
    assert_int_equal(leat_loader_device(device), 1);
    for (;;) {
        assert_ok(leat_loader_next(host, &a, -1, NULL));
        assert_ok(leat_loader_next(device, &b, -1, NULL));
        if (a == NULL) break;
        assert_int_equal(a->device, -1);
        assert_int_equal(b->device, 1);
        assert_same_batch(a, b);
        leat_batch_release(&a);
        leat_batch_release(&b);
    }
    assert_null(b);
    assert_ok(leat_loader_read(device, &s, sizeof s));
    assert_int_equal(s.page_locked, 1);
    assert_true(s.budget_kept > 0 && s.budget_used + s.budget_kept <= s.budget_limit);
    assert_true(fake_cuda.locked() > 0);
    assert_true(s.copied_bytes > 0 && s.device_used > 0 && s.device_used <= s.device_limit);
    leat_loader_close(&host);
    leat_loader_close(&device);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void the_same_bytes_as_on_the_host(void **state)
{
    leat_loader_opts o = base_opts();
    assert_same_epoch(pack, o);
    o.ops = "RandomResizedCrop(20); ToDtype(f16); ToLayout(nhwc)";
    o.on_error = LEAT_ON_ERROR_SKIP; /* batches of different length */
    o.threads = 1;
    assert_same_epoch(plain, o);
}

static void batches_stay_as_they_are_while_they_are_kept(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *kept[3], *b;
    uint64_t sums[3], rows;
    assert_ok(leat_loader_open(&l, plain, (o.on_error = LEAT_ON_ERROR_SKIP, &o), NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(leat_loader_next(l, &kept[i], -1, NULL));
        rows = kept[i]->samples * UINT64_C(3) * 24 * 24;
        sums[i] = leat__hash64(kept[i]->fields[0].data, rows, 0);
    }
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) leat_batch_release(&b);
    leat_loader_close(&l);
    for (int i = 0; i < 3; i++) {
        rows = kept[i]->samples * UINT64_C(3) * 24 * 24;
        assert_true(leat__hash64(kept[i]->fields[0].data, rows, 0) == sums[i]);
        leat_batch_release(&kept[i]);
    }
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* The trainer has released a batch, and its kernels still read it. */
static void a_released_batch_waits_for_its_readers(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *b;
    const uint64_t size = UINT64_C(16) * 3 * 24 * 24;
    o.device_memory = 3 * (64 << 10);
    o.on_error = LEAT_ON_ERROR_REPLACE;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (uint64_t step = 0; step < 8; step++) {
        assert_ok(leat_loader_begin(l, step, NULL));
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        const void *data = b->fields[0].data;
        uint64_t sum = leat__hash64(data, size, 0);
        int kernel = fake_cuda.begin();
        leat_batch_release(&b);
        /* others come as far as there is other memory; then next() waits for the kernel */
        for (int i = 0; i < 4; i++) {
            int rc = leat_loader_next(l, &b, 60, NULL);
            assert_true(rc == 0 || rc == LEAT_ETIMEDOUT);
            leat_batch_release(&b);
            assert_true(leat__hash64(data, size, 0) == sum);
        }
        fake_cuda.end(kernel);
    }
    leat_loader_close(&l);
    assert_int_equal(fake_cuda.held(), 0);
}

static void borrowed_device_memory_is_reported(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *kept[4], *b;
    leat_error err = {0};
    o.on_error = LEAT_ON_ERROR_REPLACE;
    o.device_memory = 2 * (64 << 10);
    assert_int_equal(leat_loader_open(&l, plain, &o, &err), LEAT_EBUDGET); /* two batches do not fit */
    assert_non_null(strstr(err.message, "device_memory"));
    o.device_memory = 4 * (64 << 10);
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (int i = 0; i < 4; i++) assert_ok(leat_loader_next(l, &kept[i], -1, NULL));
    assert_int_equal(leat_loader_next(l, &b, -1, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "device_memory (256 KiB), and the next one needs 27.1 KiB"));
    assert_int_equal(leat_loader_next(l, &b, 0, &err), LEAT_ETIMEDOUT);
    leat_batch_release(&kept[2]);
    assert_ok(leat_loader_next(l, &b, -1, NULL)); /* not final */
    assert_int_equal(b->index, 4);
    leat_batch_release(&b);
    leat_loader_close(&l);
    for (int i = 0; i < 4; i++)
        if (i != 2) leat_batch_release(&kept[i]);
    assert_int_equal(fake_cuda.held(), 0);
    o.device = NULL;
    assert_int_equal(leat_loader_open(&l, plain, &o, &err), LEAT_EINVAL);
}

/* The device got full after the loader was opened: an error, and the next epoch works when there is room. */
static void a_full_device_is_reported(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *b;
    leat_error err = {0};
    o.on_error = LEAT_ON_ERROR_SKIP;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    go_wrong("memory");
    assert_ok(leat_loader_begin(l, 0, NULL));
    assert_int_equal(leat_loader_next(l, &b, -1, &err), LEAT_ENOMEM);
    go_wrong("");
    assert_ok(leat_loader_begin(l, 1, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    leat_batch_release(&b);
    leat_loader_close(&l);
    assert_int_equal(fake_cuda.held(), 0);
}

static void epochs_can_be_stopped_anywhere(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *b;
    o.device_memory = 3 * (64 << 10);
    o.on_error = LEAT_ON_ERROR_SKIP;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        assert_ok(leat_loader_begin(l, epoch, NULL));
        for (uint64_t i = 0; i < epoch % 5; i++) {
            assert_ok(leat_loader_next(l, &b, -1, NULL));
            leat_batch_release(&b);
        }
    }
    leat_loader_close(&l);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void state_resumes_in_the_middle(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *b;
    char text[4096];
    size_t size;
    o.on_error = LEAT_ON_ERROR_SKIP;
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        leat_batch_release(&b);
    }
    assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
    leat_loader_close(&l);
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    assert_ok(leat_loader_restore(l, text, NULL));
    assert_ok(leat_loader_next(l, &b, -1, NULL));
    assert_int_equal(b->index, 3);
    leat_batch_release(&b);
    leat_loader_close(&l);
    assert_int_equal(fake_cuda.held(), 0);
}

/* Page-locked batches are charged whole with their first run; the floor has room for that. */
static void the_floor_is_enough_for_page_locked_batches(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_loader_stats s = {0};
    outcome got = {0};
    o.ops = "RandomResizedCrop(100); ToDtype(f32)"; /* 2 MB each */
    o.on_error = LEAT_ON_ERROR_SKIP;
    const outcome whole = run_with(plain, &o, 0);
    assert_int_equal(whole.rc, 0);
    for (o.threads = 1; o.threads < 4; o.threads += 2) {
        o.memory = 64 << 20;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        assert_ok(leat_loader_read(l, &s, sizeof s));
        leat_loader_close(&l);
        o.memory = s.floor_bytes;
        assert_ok(leat_loader_open(&l, plain, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        drain(l, (got = (outcome){0}, &got));
        assert_int_equal(got.rc, 0);
        assert_true(got.digest == whole.digest && got.samples == whole.samples);
        assert_ok(leat_loader_read(l, &s, sizeof s));
        assert_true(s.page_locked && s.budget_peak <= s.budget_limit);
        assert_true(s.budget_memory_peak <= s.budget_limit);
        leat_loader_close(&l);
    }
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static atomic_int lines;
static char last_line[256];

static void write_line(void *cookie, leat_log_level level, const char *line)
{
    if (level != LEAT_LOG_WARN) return;
    lines++;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static void without_page_locking_it_continues_and_warns_once(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_batch *b;
    leat_loader_stats s = {0};
    uint64_t batches = 0;
    o.on_error = LEAT_ON_ERROR_SKIP;
    o.log = (leat_log){.write = write_line};
    go_wrong("pin");
    assert_ok(leat_loader_open(&l, plain, &o, NULL));
    while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
        batches++;
        leat_batch_release(&b);
    }
    assert_int_equal(batches, 13);
    assert_ok(leat_loader_read(l, &s, sizeof s));
    assert_int_equal(s.page_locked, 0);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(last_line, "not page-locked"));
    leat_loader_close(&l);
    go_wrong("");
    assert_int_equal(fake_cuda.held(), 0);
}

static void no_device_is_one_clear_line(void **state)
{
    leat_loader_opts o = device_opts();
    leat_loader *l;
    leat_error err = {0};
    setenv("LEAT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    assert_int_equal(leat_loader_open(&l, plain, &o, &err), LEAT_ENOTSUP);
    assert_string_equal(err.message,
                        "device 'cuda': no CUDA driver here (/nowhere/libcuda.so.1); leave device out "
                        "to use the CPU");
    setenv("LEAT_CUDA_DRIVER", fake_path, 1);
    o.device = "cuda:7";
    assert_int_equal(leat_loader_open(&l, plain, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "device 'cuda:7': there are 2 GPUs: cuda:0 to cuda:1");
    o.device = "tpu";
    assert_int_equal(leat_loader_open(&l, plain, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "device: 'tpu' is not cpu, cuda or cuda:N");
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* Last: a call that fails while things are put away leaves them with the stand-in. */
static void each_failing_call_ends_in_an_error(void **state)
{
    leat_loader_opts o = device_opts();
    o.threads = 1;
    o.on_error = LEAT_ON_ERROR_SKIP;
    int before = fake_cuda.calls();
    outcome whole = run_with(plain, &o, 0);
    assert_int_equal(whole.rc, 0);
    int calls = fake_cuda.calls() - before, failed = 0;
    for (int i = 1; i <= calls; i++) {
        fake_cuda.fail_at(fake_cuda.calls() + i);
        outcome r = run_with(plain, &o, 0);
        fake_cuda.fail_at(0);
        if (r.rc != 0) {
            failed++;
            assert_non_null(strstr(r.err.message, "CUDA"));
        } else { /* page-locking, marking, or something of the end */
            assert_true(r.digest == whole.digest && r.samples == whole.samples);
        }
        assert_int_equal(leat__mem_blocks(), 0);
    }
    assert_true(failed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_as_on_the_host),
        cmocka_unit_test(batches_stay_as_they_are_while_they_are_kept),
        cmocka_unit_test(a_released_batch_waits_for_its_readers),
        cmocka_unit_test(borrowed_device_memory_is_reported),
        cmocka_unit_test(a_full_device_is_reported),
        cmocka_unit_test(epochs_can_be_stopped_anywhere),
        cmocka_unit_test(state_resumes_in_the_middle),
        cmocka_unit_test(the_floor_is_enough_for_page_locked_batches),
        cmocka_unit_test(without_page_locking_it_continues_and_warns_once),
        cmocka_unit_test(no_device_is_one_clear_line),
        cmocka_unit_test(each_failing_call_ends_in_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
