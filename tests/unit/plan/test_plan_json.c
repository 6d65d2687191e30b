/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include <jansson.h>

static json_t *parsed(leat_plan_facts f)
{
    leat_plan p = plan_of(f);
    leat__buf out;
    json_error_t why;
    leat__buf_init(&out, LEAT__MEM_PLAN, 1 << 20);
    leat__plan_json(&p, &out);
    assert_null(strchr(leat__buf_str(&out), '\n'));
    json_t *j = json_loads(leat__buf_str(&out), 0, &why);
    if (j == NULL) fail_msg("%s at %d", why.text, why.position);
    leat__buf_reset(&out);
    return j;
}

static void json_has_the_figures(void **state)
{
    json_t *j = parsed(guide_facts());
    (void)state;
    assert_true(json_is_true(json_object_get(j, "fits")));
    assert_true(json_is_null(json_object_get(j, "fix")));
    json_t *ram = json_object_get(j, "ram");
    assert_int_equal(json_integer_value(json_object_get(ram, "batch_bytes")), 154140672);
    assert_string_equal(json_string_value(json_object_get(ram, "verdict")), "safe");
    json_t *speed = json_object_get(j, "speed");
    assert_int_equal(json_integer_value(json_object_get(speed, "iterations_per_epoch")), 5005);
    assert_true(json_is_null(json_object_get(json_object_get(speed, "rates"), "io")));
    assert_int_equal(json_array_size(json_object_get(j, "scale")), 4);
    json_t *vram = json_object_get(j, "vram");
    assert_int_equal(json_integer_value(json_object_get(vram, "params")), 25557032);
    json_decref(j);
}

/* With one epoch the limit and the rate are those of that epoch. */
static void json_has_the_epochs(void **state)
{
    static const char *const limits[] = {"io", "gpu"};
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.storage, sizeof f.storage, "hdd");
    f.samples = 100000;
    for (f.epochs = 1; f.epochs <= 2; f.epochs++) {
        json_t *j = parsed(f), *speed = json_object_get(j, "speed");
        json_t *rate = json_object_get(speed, "samples_per_s");
        json_t *same = json_object_get(speed, f.epochs == 1 ? "first_epoch_samples_per_s"
                                                            : "later_epochs_samples_per_s");
        assert_true(json_equal(rate, same));
        assert_string_equal(json_string_value(json_object_get(speed, "limit")), limits[f.epochs - 1]);
        assert_string_equal(json_string_value(json_object_get(speed, "first_epoch_limit")), "io");
        assert_string_equal(json_string_value(json_object_get(speed, "later_epochs_limit")), "gpu");
        json_decref(j);
    }
}

static void json_says_unknown_and_unfit(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.ram_bytes = 0;
    json_t *j = parsed(f);
    assert_true(json_is_null(json_object_get(j, "fits")));
    json_decref(j);
    f = guide_facts();
    f.batch = 5000;
    j = parsed(f);
    assert_true(json_is_false(json_object_get(j, "fits")));
    assert_contains(json_string_value(json_object_get(j, "fix")), "--batch");
    json_decref(j);
    f = guide_facts();
    f.gpus = 0;
    j = parsed(f);
    assert_true(json_is_null(json_object_get(j, "vram")));
    json_decref(j);
}

static void assert_nulls(json_t *j, const char *object, const char *keys)
{
    char name[32];
    int used;
    for (; sscanf(keys, " %31s%n", name, &used) == 1; keys += used)
        if (!json_is_null(json_object_get(json_object_get(j, object), name)))
            fail_msg("%s.%s is not null", object, name);
}

/* What is not known is null: neither 0, nor "", nor left out. */
static void json_has_null_for_what_is_not_known(void **state)
{
    leat_plan_facts f;
    (void)state;
    leat_plan_facts_init(&f);
    json_t *j = parsed(f);
    assert_nulls(j, "facts",
                 "cpus gpu ram_bytes limit_bytes vram_bytes storage samples latency_seconds model "
                 "optimizer");
    assert_nulls(j, "ram", "limit_bytes");
    assert_nulls(j, "ram_process", "limit_bytes budget_bytes resident_bytes");
    assert_nulls(j, "config", "page_window precision lr");
    assert_nulls(j, "speed",
                 "cached_share iterations_per_epoch needed_samples_per_s cores_needed "
                 "epoch_seconds total_seconds");
    json_decref(j);
    f.gpus = 1;
    j = parsed(f);
    assert_nulls(j, "facts", "gpu vram_bytes");
    assert_nulls(j, "vram", "limit_bytes largest_batch");
    json_decref(j);
    f = guide_facts();
    f.vram_bytes = 1 << 20; /* known, and too small for any batch */
    j = parsed(f);
    json_t *vram = json_object_get(j, "vram");
    assert_true(json_is_integer(json_object_get(vram, "largest_batch")));
    assert_int_equal(json_integer_value(json_object_get(vram, "largest_batch")), 0);
    json_decref(j);
}

/* A GPU of which nothing is known has no rate, in no row. */
static void json_has_no_rate_of_an_unknown_gpu(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.gpu[0] = '\0';
    json_t *j = parsed(f), *scale = json_object_get(j, "scale"), *speed = json_object_get(j, "speed");
    for (size_t i = 0; i < json_array_size(scale); i++)
        assert_true(json_is_null(json_object_get(json_array_get(scale, i), "samples_per_s")));
    assert_true(json_is_null(json_object_get(speed, "needed_samples_per_s")));
    assert_true(json_is_null(json_object_get(speed, "cores_needed")));
    json_decref(j);
    j = parsed(guide_facts());
    scale = json_object_get(j, "scale");
    assert_true(json_real_value(json_object_get(json_array_get(scale, 0), "samples_per_s")) > 0);
    json_decref(j);
}

/* Only flags of `leat load` may be outside comments. */
static void yaml_has_load_flags_only(void **state)
{
    static const char *const flags[] = {"batch",   "size",   "dtype",  "order",    "cache",
                                        "threads", "epochs", "memory", "prefetch", "window_pages"};
    leat_plan_facts f = guide_facts();
    f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
    f.cache = PLAN_CACHE_PROCESS;
    leat_plan p = plan_of(f);
    leat__buf out;
    size_t seen = 0;
    (void)state;
    leat__buf_init(&out, LEAT__MEM_PLAN, 1 << 20);
    leat__plan_yaml(&p, &out);
    char *text = leat__strdup(LEAT__MEM_PLAN, leat__buf_str(&out));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] == '#') continue;
        char *colon = strstr(line, ": ");
        assert_non_null(colon);
        *colon = '\0';
        assert_string_equal(line, flags[seen]);
        seen++;
    }
    assert_int_equal(seen, LEAT_COUNT(flags));
    assert_contains(leat__buf_str(&out), "batch: 256\n");
    assert_contains(leat__buf_str(&out), "order: quasi_random\n");
    assert_contains(leat__buf_str(&out), "# trainer: precision bf16-mixed");
    leat__free(text);
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_the_figures),        cmocka_unit_test(json_has_the_epochs),
        cmocka_unit_test(json_says_unknown_and_unfit), cmocka_unit_test(json_has_no_rate_of_an_unknown_gpu),
        cmocka_unit_test(yaml_has_load_flags_only),    cmocka_unit_test(json_has_null_for_what_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
