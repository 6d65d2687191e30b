/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/saved.h"
#include "io/file.h"

enum { COUNT = 1000 };

typedef struct box {
    leat__saved s;
    uint32_t rows[COUNT];
    double number;
    leat__saved_part parts[3];
} box;

static void fill(box *b, uint32_t by)
{
    for (uint32_t i = 0; i < COUNT; i++) b->rows[i] = i * by;
    b->number = by / 2.0;
}

static void open_box(box *b)
{
    memset(b, 0, sizeof *b);
    assert_ok(leat__saved_open(&b->s, in_box("out.leat"), NULL));
    b->s.key = (leat__hash128){.high = 7, .low = 9};
    b->parts[0] = (leat__saved_part){b->rows, sizeof b->rows};
    b->parts[1] = (leat__saved_part){NULL, 0};
    b->parts[2] = (leat__saved_part){&b->number, sizeof b->number};
}

static bool loads(box *b)
{
    bool found = true;
    assert_ok(leat__saved_load(&b->s, b->parts, 3, &found, NULL));
    return found;
}

static void a_state_is_read_as_it_was_saved(void **state)
{
    box b, c;
    open_box(&b);
    open_box(&c);
    assert_false(loads(&c));
    fill(&b, 3);
    assert_ok(leat__saved_store(&b.s, b.parts, 3, NULL));
    fill(&b, 5);
    assert_ok(leat__saved_store(&b.s, b.parts, 3, NULL)); /* replaces */
    assert_true(loads(&c));
    assert_memory_equal(b.rows, c.rows, sizeof b.rows);
    assert_true(c.number == 2.5);
    assert_false(leat__saved_due(&b.s)); /* it was saved just now */
    b.s.last -= 60 * UINT64_C(1000000000);
    b.s.cost = 0;
    assert_true(leat__saved_due(&b.s));
    b.s.cost = 2 * UINT64_C(1000000000); /* slow to save: seldom */
    assert_false(leat__saved_due(&b.s));
    assert_ok(leat__saved_drop(&b.s, NULL));
    assert_false(loads(&c));
    assert_ok(leat__saved_drop(&b.s, NULL)); /* it is gone */
    leat__saved_close(&b.s);
    leat__saved_close(&c.s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void other_and_damaged_states_are_ignored(void **state)
{
    box b;
    bool found;
    char *data = NULL;
    size_t len = 0;
    open_box(&b);
    fill(&b, 3);
    assert_ok(leat__saved_store(&b.s, b.parts, 3, NULL));
    b.s.key.low++;
    assert_false(loads(&b));
    b.s.key.low--;
    assert_ok(leat__saved_load(&b.s, b.parts, 1, &found, NULL)); /* another size */
    assert_false(found);
    assert_true(loads(&b));
    assert_ok(leat__file_load(b.s.path, 1u << 20, 1, &data, &len, NULL));
    for (size_t at = 0; at < len; at += 97) {
        data[at] ^= 4;
        assert_ok(leat__file_store(b.s.path, data, len, NULL));
        assert_false(loads(&b));
        data[at] ^= 4;
    }
    for (size_t part = 0; part < len; part += 499) {
        assert_ok(leat__file_store(b.s.path, data, part, NULL));
        assert_false(loads(&b));
    }
    leat__free(data);
    assert_ok(leat__saved_drop(&b.s, NULL));
    leat__saved_close(&b.s);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    box b;
    leat_error err = {0};
    open_box(&b);
    leat__saved_close(&b.s);
    assert_ok(leat__saved_open(&b.s, in_box("none/out.leat"), NULL));
    assert_true(leat__saved_store(&b.s, b.parts, 3, &err) != 0);
    assert_contains(err.message, "out.leat.state");
    leat__saved_close(&b.s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_read_as_it_was_saved),
        cmocka_unit_test(other_and_damaged_states_are_ignored),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
