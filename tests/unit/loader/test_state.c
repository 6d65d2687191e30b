/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/num.h"
#include "loader/defaults.h"
#include "loader/state.h"

static const leat__state sample = {.fingerprint = UINT64_C(0xfedcba9876543210),
                                   .subset = 5,
                                   .subset_text = "a subset of 7 samples",
                                   .mix = 3,
                                   .mix_text = "4 buckets by size",
                                   .order = LEAT_ORDER_QUASI,
                                   .order_version = 2,
                                   .seed = UINT64_MAX,
                                   .epoch = 3,
                                   .count = 1281167,
                                   .global_batch = 1024,
                                   .position = 4096,
                                   .streams = 64,
                                   .window_pages = 4096,
                                   .drop_last = 1};

static void a_state_reads_back(void **state)
{
    leat__state back;
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    assert_ok(leat__state_write(&sample, &b));
    assert_true(b.len < 512);
    assert_null(strchr(b.data, '\n'));
    assert_ok(leat__state_parse(&back, b.data, NULL));
    assert_memory_equal(&back, &sample, sizeof back);
    assert_ok(leat__state_check(&sample, &back, NULL));
    leat__buf_reset(&b);
    assert_no_leaks();
}

static void what_differs_is_named(void **state)
{
    leat__state s;
    leat_error err;
    (void)state;
#define DIFFERS(field, value, words)                                                                         \
    s = sample;                                                                                              \
    s.field = value;                                                                                         \
    assert_code(LEAT_EINVAL, leat__state_check(&sample, &s, &err));                                          \
    assert_contains(err.message, words)
    DIFFERS(fingerprint, 1, "another pack");
    DIFFERS(order, LEAT_ORDER_RANDOM, "its order is random, this loader's is quasi_random");
    DIFFERS(order_version, 1,
            "version 1 of the quasi_random order, this build of leat gives version 2: finish its epoch 3");
    DIFFERS(subset, 0, "it has all samples, this loader has a subset of 7 samples");
    DIFFERS(subset, 6,
            "it has a subset of 7 samples (digest 0000000000000006), this loader has a subset of 7 "
            "samples with others (digest 0000000000000005)");
    DIFFERS(mix, 7, "it has 4 buckets by size (digest 0000000000000007), this loader has 4 buckets by size");
    DIFFERS(mix, 0, "it has no mix and no buckets, this loader has 4 buckets by size");
    s = sample, s.mix = 7, s.mix_text[0] = 0; /* of an older leat */
    assert_code(LEAT_EINVAL, leat__state_check(&sample, &s, &err));
    assert_contains(err.message, "it has a mix or buckets, this loader has 4 buckets by size");
    DIFFERS(seed, 6, "its seed is 6, this loader's is");
    DIFFERS(count, 6, "its number of samples per epoch is 6, this loader's is");
    DIFFERS(global_batch, 512, "its global batch (batch size x ranks) is 512, this loader's is 1024");
    DIFFERS(streams, 8, "its streams is 8, this loader's is");
    DIFFERS(window_pages, 8, "its window_pages is 8, this loader's is");
    DIFFERS(drop_last, 0, "its drop_last is false, this loader's is true");
    s = sample;
    s.epoch = 9;
    s.position = 7;
    assert_ok(leat__state_check(&sample, &s, NULL));
}

/* States written before orders had versions are of version 1: random ones still hold. */
static void states_without_an_order_version_are_of_the_first(void **state)
{
    static const char *const text =
        "{\"leat_state\":1,\"pack\":\"0000000000000001\",\"subset\":\"0000000000000000\","
        "\"order\":\"%s\",\"seed\":\"0000000000000000\",\"epoch\":3,\"count\":10,"
        "\"global_batch\":2,\"position\":4,\"streams\":64,\"window_pages\":4096,"
        "\"drop_last\":false}";
    (void)state;
    for (int kind = 0; kind < LEAT__ORDER_COUNT; kind++) {
        char line[512];
        leat__state old, now;
        leat_error err;
        snprintf(line, sizeof line, text, leat__order_name((leat_order)kind));
        assert_ok(leat__state_parse(&old, line, &err));
        assert_int_equal(old.order_version, 1);
        now = old;
        now.order_version = leat__order_version((leat_order)kind);
        assert_code(now.order_version > 1 ? LEAT_EINVAL : 0, leat__state_check(&now, &old, &err));
    }
}

static void malformed_states_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "null",
        "{\"leat_state\":1}",
        "{\"leat_state\":-1}",
        "{\"leat_state\":1,\"pack\":\"00\"}",
        "{\"leat_state\":1,\"pack\":\"000000000000000g\",\"subset\":\"0000000000000000\"}",
        "{\"leat_state\":1,\"pack\":\"0000000000000000\",\"subset\":\"0000000000000000\","
        "\"seed\":\"0000000000000000\",\"order\":\"zigzag\"}",
        "{\"leat_state\":1,\"pack\":\"0000000000000000\",\"subset\":\"0000000000000000\","
        "\"seed\":\"0000000000000000\",\"order\":\"random\",\"epoch\":0,\"count\":10,"
        "\"global_batch\":2,\"position\":11,\"drop_last\":false}",
        "{\"leat_state\":1,\"pack\":\"0000000000000000\",\"subset\":\"0000000000000000\","
        "\"seed\":\"0000000000000000\",\"order\":\"random\",\"epoch\":0,\"count\":10,"
        "\"global_batch\":2,\"position\":1,\"drop_last\":1}",
        "{\"leat_state\":1,\"pack\":\"0000000000000000\",\"subset\":\"0000000000000000\","
        "\"seed\":\"0000000000000000\",\"order\":\"random\",\"epoch\":0,\"count\":10,"
        "\"global_batch\":2,\"position\":1,\"drop_last\":false,\"left_out\":1}"};
    leat__state s;
    leat_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_code(LEAT_EDATA, leat__state_parse(&s, bad[i], &err));
        assert_contains(err.message, "loader state");
    }
    assert_code(LEAT_EFORMAT, leat__state_parse(&s, "{\"leat_state\":2}", &err));
    assert_string_equal(leat__order_name((leat_order)9), "?");
}

/* States, flags of remedies and the command use the names; the values are in the ABI. */
static void orders_are_found_by_their_names(void **state)
{
    static const struct {
        const char *name;
        leat_order order;
        bool shuffled;
    } rows[] = {{"sequential", LEAT_ORDER_SEQUENTIAL, false},
                {"random", LEAT_ORDER_RANDOM, true},
                {"quasi_random", LEAT_ORDER_QUASI, true}};
    leat_order order = LEAT_ORDER_QUASI;
    (void)state;
    assert_int_equal(LEAT__ORDER_COUNT, LEAT_COUNT(rows));
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        assert_true(leat__order_find(rows[i].name, &order));
        assert_int_equal(order, rows[i].order);
        assert_int_equal(order, i);
        assert_string_equal(leat__order_name(order), rows[i].name);
        assert_int_equal(leat__order_shuffled(order), rows[i].shuffled);
    }
    assert_false(leat__order_find("", &order) || leat__order_find(NULL, &order) ||
                 leat__order_find("Random", &order));
    assert_int_equal(order, LEAT_COUNT(rows) - 1); /* unchanged */
    assert_string_equal(LEAT__ORDER_CHOICES, "sequential|random|quasi_random");
    assert_string_equal(LEAT__ORDER_SHUFFLED_CHOICES, "random|quasi_random");
    assert_false(leat__order_shuffled((leat_order)9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_reads_back),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(states_without_an_order_version_are_of_the_first),
        cmocka_unit_test(malformed_states_are_refused),
        cmocka_unit_test(orders_are_found_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
