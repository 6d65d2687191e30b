/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <jansson.h>

static int collect(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

static leat__buf written(const leat_doctor_diagnosis *d, leat_doctor_format format)
{
    leat__buf out;
    leat_error err = {0};
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 20);
    assert_ok(leat_doctor_write(d, format, collect, &out, &err));
    return out;
}

static leat_doctor_facts starved(void)
{
    leat_doctor_facts f = healthy();
    starve(&f, 640);
    f.threads = 4;
    f.cpu_all = 650;
    f.cpu_used = 4;
    f.decode_ready = 0.95;
    return f;
}

static void json_has_the_keys_scripts_rely_on(void **state)
{
    leat_doctor_diagnosis d = judge(starved());
    leat__buf out = written(&d, LEAT_DOCTOR_JSON);
    (void)state;
    json_t *root = json_loadb(out.data, out.len, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "verdict")), d.sentence);
    assert_string_equal(json_string_value(json_object_get(root, "limit")), "cpu");
    json_t *rates = json_object_get(root, "rates");
    assert_near(json_number_value(json_object_get(rates, "cpu")), 650, 1e-9);
    assert_near(json_number_value(json_object_get(rates, "gpu")), 5120, 1e-9);
    assert_near(json_number_value(json_object_get(rates, "io")), 20000, 1e-9);
    assert_near(json_number_value(json_object_get(json_object_get(root, "shares"), "wait")), d.lost, 1e-9);
    json_t *first = json_array_get(json_object_get(root, "remedies"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "action")), d.remedies[0].action);
    assert_near(json_number_value(json_object_get(first, "gain")), d.remedies[0].gain, 1e-9);
    json_decref(root);
    leat__buf_reset(&out);
}

/* Unknown facts are null, not zero; and the JSON can be judged again. */
static void json_can_be_judged_again(void **state)
{
    leat_doctor_facts f = starved(), back;
    leat_error err = {0};
    (void)state;
    f.pressure_cpu = -1;
    leat_doctor_diagnosis d = judge(f);
    leat__buf out = written(&d, LEAT_DOCTOR_JSON);
    assert_contains(out.data, "\"pressure_cpu\":null");
    assert_ok(leat_doctor_facts_parse(&back, out.data, out.len, &err));
    leat_doctor_diagnosis again = judge(back);
    assert_string_equal(again.sentence, d.sentence);
    assert_int_equal(again.remedy_count, d.remedy_count);
    leat__buf_reset(&out);
}

static void yaml_is_flags_and_values(void **state)
{
    leat_doctor_diagnosis d = judge(starved());
    leat__buf out = written(&d, LEAT_DOCTOR_YAML);
    (void)state;
    assert_contains(out.data, "\nthreads: 16\n");
    leat__buf_reset(&out);
    d = judge(healthy());
    out = written(&d, LEAT_DOCTOR_YAML);
    assert_contains(out.data, "# No load flag");
    for (const char *line = out.data; *line; line = strchr(line, '\n') + 1) assert_int_equal(*line, '#');
    leat__buf_reset(&out);
}

static int refuse(void *cookie, const char *text, size_t len)
{
    (void)cookie;
    (void)text;
    (void)len;
    return 42;
}

static void writer_errors_are_returned(void **state)
{
    leat_doctor_diagnosis d = judge(healthy());
    leat_error err;
    (void)state;
    assert_int_equal(leat_doctor_write(&d, LEAT_DOCTOR_PAGE, refuse, NULL, &err), 42);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_the_keys_scripts_rely_on),
        cmocka_unit_test(json_can_be_judged_again),
        cmocka_unit_test(yaml_is_flags_and_values),
        cmocka_unit_test(writer_errors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
