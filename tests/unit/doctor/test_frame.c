/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/frame.h"

static const leat_doctor_frame full = {.at_s = 1.5,
                                       .samples_per_s = 8700.25,
                                       .read_bytes_per_s = 1e9,
                                       .batches_per_s = 34,
                                       .lost = 0.125,
                                       .cpu_used = 1.96,
                                       .busy = {0.01, 1.4, 1.9, 0.02},
                                       .ready = {0, 0.36, 0.97, 0.5},
                                       .waiting = {0, 1, 42, UINT32_MAX},
                                       .running = {1, 2, 3, 4},
                                       .blocked = 0.0625,
                                       .budget_used = UINT64_C(1) << 40,
                                       .budget_limit = UINT64_C(1) << 41,
                                       .cache_bytes = 12345,
                                       .threads = 2,
                                       .io_depth = 64,
                                       .prefetch = 4,
                                       .epoch = 10,
                                       .samples = UINT64_C(1) << 50,
                                       .bad = 7};

static leat__buf text_of(const leat_doctor_frame *f)
{
    leat__buf out;
    leat__json j;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 16);
    leat__json_init(&j, &out, 0);
    leat__frame_json(&j, f);
    return out;
}

static int parse(const char *text, leat_doctor_frame *f, leat_error *err)
{
    json_t *root = json_loads(text, 0, NULL);
    int rc = leat__frame_parse(root, f, err);
    json_decref(root);
    return rc;
}

static void what_is_written_reads_back_equal(void **state)
{
    leat_doctor_frame got;
    leat__buf out = text_of(&full);
    (void)state;
    assert_ok(parse(leat__buf_str(&out), &got, NULL));
    assert_memory_equal(&got, &full, sizeof full);
    leat__buf_reset(&out);
    assert_no_leaks();
}

static void missing_values_are_zero(void **state)
{
    leat_doctor_frame got, none = {0};
    (void)state;
    assert_ok(parse("{}", &got, NULL));
    assert_memory_equal(&got, &none, sizeof none);
    assert_ok(parse("{\"samples\":3,\"stages\":{\"decode\":{\"waiting\":9}},\"other\":[]}", &got, NULL));
    assert_int_equal(got.samples, 3);
    assert_int_equal(got.waiting[2], 9);
}

static void nonsense_is_refused(void **state)
{
    static const char *const texts[] = {"[]",
                                        "{\"samples\":-1}",
                                        "{\"samples\":1e300}",
                                        "{\"threads\":4294967296}",
                                        "{\"lost\":\"much\"}",
                                        "{\"stages\":{\"read\":{\"waiting\":-3}}}"};
    leat_doctor_frame got;
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(texts); i++) {
        leat_error err = {0};
        if (parse(texts[i], &got, &err) != LEAT_EDATA) fail_msg("%s was taken", texts[i]);
        assert_contains(err.message, "frame: ");
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back_equal),
        cmocka_unit_test(missing_values_are_zero),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
