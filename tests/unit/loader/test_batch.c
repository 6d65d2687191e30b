/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "loader/batch.h"

/* A shape of an image of 30 bytes, a label, and a ragged text. */
static leat__shape make_shape(void)
{
    leat__shape s = {.count = 3, .columns = leat__zalloc(LEAT__MEM_LOADER, 3 * sizeof(leat__column))};
    s.columns[0] = (leat__column){.kind = LEAT__COLUMN_IMAGE,
                                  .row_bytes = 30,
                                  .tensor = {.dtype = LEAT_DTYPE_U8, .ndim = 2, .shape = {0, 30}}};
    s.columns[1] = (leat__column){
        .kind = LEAT__COLUMN_FIXED, .row_bytes = 8, .tensor = {.dtype = LEAT_DTYPE_I64, .ndim = 1}};
    s.columns[2] = (leat__column){.kind = LEAT__COLUMN_RAGGED,
                                  .ragged_ndim = 1,
                                  .tensor = {.dtype = LEAT_DTYPE_U16, .ndim = 1, .ragged_ndim = 1}};
    s.columns[0].tensor.name = leat__strdup(LEAT__MEM_LOADER, "image");
    s.columns[1].tensor.name = leat__strdup(LEAT__MEM_LOADER, "label");
    s.columns[2].tensor.name = leat__strdup(LEAT__MEM_LOADER, "text");
    return s;
}

/* Row i: image of i's, label 100 + i, i elements of value i. */
static leat__frame *filled(leat__frames *frames, uint32_t rows)
{
    uint64_t ragged[3] = {0, 0, rows * (rows - 1)}; /* bytes: 2 * sum of i */
    leat__frame *f;
    assert_ok(leat__frame_open(&f, frames, rows, ragged, true, NULL));
    leat__frame_pay(f, f->bytes);
    int64_t *offsets = (int64_t *)f->tensors[2].offsets;
    offsets[0] = 0;
    for (uint32_t i = 0; i < rows; i++) offsets[i + 1] = offsets[i] + i;
    for (uint32_t i = 0; i < rows; i++) {
        memset(leat__frame_row(f, 0, i), (int)i, 30);
        *(int64_t *)leat__frame_row(f, 1, i) = 100 + i;
        uint16_t *words = leat__frame_row(f, 2, i);
        for (uint32_t k = 0; k < i; k++) words[k] = (uint16_t)i;
        ((int64_t *)f->tensors[2].ragged_shapes)[i] = i;
        f->ids[i] = 1000 + i;
        f->hashes[i] = i;
    }
    return f;
}

static void parts_are_aligned_and_separate(void **state)
{
    leat_budget *budget;
    leat__frames *frames;
    leat__shape shape = make_shape();
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    assert_ok(leat__frames_open(&frames, budget, &shape, NULL));
    leat__frame *f = filled(frames, 9);
    leat__frame_finish(f);
    assert_int_equal(f->batch.samples, 9);
    assert_int_equal(f->batch.bad, 0);
    for (uint32_t c = 0; c < 3; c++) assert_int_equal((uintptr_t)f->tensors[c].data % 256, 0);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(((int64_t *)f->tensors[1].data)[i], 100 + i);
        assert_int_equal(*(uint8_t *)leat__frame_row(f, 0, i), i);
    }
    assert_int_equal(f->tensors[2].shape[0], 36);
    assert_int_equal(f->tensors[0].shape[0], 9);
    /* the batch outlives its loader, names included */
    leat__frames_close(&frames);
    assert_string_equal(f->batch.fields[1].name, "label");
    leat__frame_unref(f);
    leat_budget_close(&budget);
    assert_no_leaks();
}

static leat__bad *bad_at(uint32_t row)
{
    leat__bad *b = leat__zalloc(LEAT__MEM_LOADER, sizeof *b);
    b->row = row;
    b->sample = 1000 + row;
    return b;
}

static void dropped_rows_leave_no_trace(void **state)
{
    leat_budget *budget;
    leat__frames *frames;
    leat__shape shape = make_shape();
    (void)state;
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    assert_ok(leat__frames_open(&frames, budget, &shape, NULL));
    leat__frame *f = filled(frames, 8);
    static const uint32_t gone[] = {6, 0, 3};
    for (int i = 0; i < 3; i++) {
        f->dropped[gone[i]] = true;
        leat__frame_note(f, bad_at(gone[i]));
    }
    leat__frame_finish(f);
    static const uint32_t left[] = {1, 2, 4, 5, 7};
    assert_int_equal(f->batch.samples, 5);
    assert_int_equal(f->batch.bad, 3);
    assert_int_equal(f->bad->row, 0); /* sorted */
    assert_int_equal(f->bad->next->row, 3);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(f->batch.sample_ids[i], 1000 + left[i]);
        assert_int_equal(f->batch.sample_hash[i], left[i]);
        assert_int_equal(((int64_t *)f->tensors[1].data)[i], 100 + left[i]);
        assert_int_equal(((uint8_t *)f->tensors[0].data)[i * 30 + 29], left[i]);
        assert_int_equal(f->tensors[2].offsets[i + 1] - f->tensors[2].offsets[i], left[i]);
        assert_int_equal(f->tensors[2].ragged_shapes[i], left[i]);
        assert_int_equal(*(uint16_t *)leat__frame_row(f, 2, i), left[i]);
    }
    assert_int_equal(f->tensors[2].shape[0], 1 + 2 + 4 + 5 + 7);
    leat__frame_unref(f);
    leat__frames_close(&frames);
    leat_budget_close(&budget);
    assert_no_leaks();
}

static void blocks_are_kept_within_the_budget(void **state)
{
    leat_budget *budget;
    leat__frames *frames;
    leat__shape shape = make_shape();
    leat_budget_stats s;
    (void)state;
    assert_ok(leat_budget_open(&budget, 1 << 20, NULL));
    assert_ok(leat__frames_open(&frames, budget, &shape, NULL));
    leat__frame *f = filled(frames, 100);
    uint8_t *block = f->block;
    leat__frame_unref(f);
    leat_budget_read(budget, &s);
    assert_true(s.cat_used[LEAT_BUDGET_BATCH] > 0); /* kept, and charged */
    f = filled(frames, 100);
    assert_ptr_equal(f->block, block); /* used again */
    leat_budget_read(budget, &s);
    assert_int_equal(s.cat_used[LEAT_BUDGET_BATCH], 0);
    leat__frame_unref(f);
    leat__frames_trim(frames);
    leat_budget_read(budget, &s);
    assert_int_equal(s.used, 0);
    /* no room to keep it */
    assert_ok(leat_budget_try(budget, LEAT_BUDGET_OTHER, (1 << 20) - 100));
    leat__frame_unref(filled(frames, 100));
    leat_budget_read(budget, &s);
    assert_int_equal(s.cat_used[LEAT_BUDGET_BATCH], 0);
    leat_budget_release(budget, LEAT_BUDGET_OTHER, (1 << 20) - 100);
    leat__frames_close(&frames);
    leat_budget_close(&budget);
    assert_no_leaks();
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    leat__shape shape = make_shape();
    uint64_t ragged[3] = {0, 0, UINT64_MAX - 100}, bytes;
    (void)state;
    assert_false(leat__frame_size(&shape, 10, ragged, false, &bytes));
    shape.columns[0].row_bytes = UINT64_MAX / 4;
    ragged[2] = 0;
    assert_false(leat__frame_size(&shape, 10, ragged, false, &bytes));
    leat__shape_reset(&shape);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_aligned_and_separate),
        cmocka_unit_test(dropped_rows_leave_no_trace),
        cmocka_unit_test(blocks_are_kept_within_the_budget),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
