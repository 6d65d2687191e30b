/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/device_trace.c through the loader: the trace has a row for each stream of a device,
 * with all batches on them.
 */
#include "device_packs.h"

#include <jansson.h>

#include "base/buf.h"
#include "probe/trace.h"

/* Spans on rows whose name begins so; *rows: how many such rows there are. */
static size_t spans_on(json_t *events, const char *prefix, size_t *rows)
{
    json_t *m, *e;
    size_t i, k, spans = 0;
    *rows = 0;
    json_array_foreach(events, i, m)
    {
        const json_int_t tid = json_integer_value(json_object_get(m, "tid"));
        const char *name = json_string_value(json_object_get(json_object_get(m, "args"), "name"));
        if (name == NULL || strncmp(name, prefix, strlen(prefix)) != 0) continue;
        ++*rows;
        json_array_foreach(events, k, e) spans +=
            strcmp(json_string_value(json_object_get(e, "ph")), "X") == 0 &&
            json_integer_value(json_object_get(e, "tid")) == tid;
    }
    return spans;
}

static json_t *trace_of(void)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 64 << 20);
    leat__trace_stop();
    assert_ok(leat__trace_json(&out));
    json_t *root = json_loads(leat__buf_str(&out), 0, NULL);
    assert_non_null(root);
    leat__buf_reset(&out);
    leat__trace_reset();
    return root;
}

static uint64_t pull(leat_loader *l)
{
    leat_batch *b;
    uint64_t batches = 0;
    leat_error err = {0};
    while (leat_loader_next(l, &b, -1, &err) == 0 && b != NULL) {
        batches++;
        leat_batch_release(&b);
    }
    return batches;
}

static void each_stream_has_a_row(void **state)
{
    leat_loader_opts o = options();
    leat_loader *one, *two;
    size_t rows;
    o.device = "cuda";
    o.decode = LEAT_DECODE_GPU;
    assert_ok(leat_loader_open(&one, tiled, &o, NULL));
    assert_ok(leat__trace_start(0, NULL)); /* like `leat load --trace`: after the loader was opened */
    const uint64_t batches = pull(one);
    o.decode = LEAT_DECODE_CPU;
    assert_ok(leat_loader_open(&two, tiled, &o, NULL));
    assert_int_equal(pull(two), batches);
    json_t *root = trace_of(), *events = json_object_get(root, "traceEvents");
    assert_int_equal(spans_on(events, "GPU 0 copies", &rows), 2 * batches);
    assert_int_equal(rows, 2);
    assert_int_equal(spans_on(events, "GPU 0 copies (loader 2)", &rows), batches);
    assert_int_equal(rows, 1);
    assert_int_equal(spans_on(events, "GPU 0 decode", &rows), batches);
    assert_int_equal(rows, LEAT__DECODE_LANES);
    json_decref(root);
    leat_loader_close(&one);
    leat_loader_close(&two);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* A device that refuses a call for the trace: batches come all the same, or the error of the batch. */
static void failures_leave_the_trace_only(void **state)
{
    leat_loader_opts o = options();
    o.device = "cuda";
    o.decode = LEAT_DECODE_CPU;
    o.threads = 1;
    int calls = 0, whole = 0;
    for (int i = 0; i <= calls; i++) {
        leat_loader *l;
        size_t rows;
        leat_batch *b;
        leat_error err = {0};
        assert_ok(leat_loader_open(&l, tiled, &o, NULL));
        assert_ok(leat__trace_start(0, NULL));
        const int before = fake_cuda.calls();
        fake_cuda.fail_at(i > 0 ? before + i : 0);
        int rc = leat_loader_next(l, &b, -1, &err);
        if (i == 0) calls = LEAT_MIN(fake_cuda.calls() - before, 40);
        fake_cuda.fail_at(0);
        if (rc == 0) leat_batch_release(&b);
        leat_loader_close(&l);
        json_t *root = trace_of();
        whole += rc == 0 && spans_on(json_object_get(root, "traceEvents"), "GPU 0 copies", &rows) == 0;
        json_decref(root);
        assert_int_equal(leat__mem_blocks(), 0);
    }
    assert_true(whole > 0); /* the clock failed, and the batch came */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stream_has_a_row),
        cmocka_unit_test(failures_leave_the_trace_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
