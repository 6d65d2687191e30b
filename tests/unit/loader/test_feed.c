/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs as the feed plans them, without the engine.
 */
#define PLAIN_SAMPLES 301
#include "tiny_loader.h"

#include "base/num.h"
#include "loader/feed.h"

static leat_loader *opened(const leat_loader_opts *o)
{
    leat_loader *l;
    leat_error err;
    if (leat_loader_open(&l, plain, o, &err) != 0) fail_msg("%s", err.message);
    l->feed.end = l->rows;
    return l;
}

/* The run that was planned; its owner closes it. */
static leat__run *planned(leat_loader *l)
{
    l->feed.next = NULL;
    leat__feed_plan(l);
    assert_ok(l->feed.rc);
    return l->feed.next;
}

static void runs_cover_the_rows_of_a_rank_in_order(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        leat_loader_opts o = base_opts();
        o.world = 2;
        o.rank = rank;
        leat_loader *l = opened(&o);
        uint64_t row = 0, charged = 0;
        for (leat__run *r = planned(l); r != NULL; r = planned(l)) {
            assert_int_equal(r->first, row % o.batch_size);
            assert_int_equal(r->frame->batch.index, row / o.batch_size);
            for (uint32_t i = 0; i < r->count; i++)
                assert_int_equal(r->sample[i].id, leat__order_at(l->order, (row + i) * 2 + rank));
            row += r->count;
            charged += r->share_bytes;
            assert_int_equal(r->last, row % o.batch_size == 0 || row == l->rows);
            assert_int_equal(l->feed.next_bytes, r->encoded_bytes + r->share_bytes + r->scratch_bytes);
            if (r->last) { /* its runs together are charged for the whole batch */
                assert_int_equal(charged, r->frame->bytes);
                charged = 0;
            }
            leat__run_close(r);
        }
        assert_int_equal(row, l->rows);
        assert_int_equal(l->feed.next_bytes, 0);
        assert_null(l->feed.frame);
        leat_loader_close(&l);
    }
    assert_no_leaks();
}

/* All workers share the first and the last batch: nothing else can be decoded then. */
static void runs_at_the_ends_of_an_epoch_are_short(void **state)
{
    leat_loader_opts o = base_opts();
    (void)state;
    leat_loader *l = opened(&o);
    uint32_t longest[3] = {0}; /* of the first batch, the last, the others */
    l->run_samples = 4;
    for (leat__run *r = planned(l); r != NULL; r = planned(l)) {
        uint64_t batch = r->frame->batch.index;
        uint32_t *most = &longest[batch == 0 ? 0 : batch == l->batches - 1 ? 1 : 2];
        *most = LEAT_MAX(*most, r->count);
        leat__run_close(r);
    }
    assert_int_equal(longest[0], 1);
    assert_int_equal(longest[1], 1);
    assert_int_equal(longest[2], 4);
    leat_loader_close(&l);
}

static void ragged_columns_are_measured_before_the_batch_is_made(void **state)
{
    leat_loader_opts o = base_opts();
    (void)state;
    leat_loader *l = opened(&o);
    uint32_t found = 0;
    leat__run *r = planned(l);
    for (uint32_t c = 0; c < l->env.shape->count; c++) {
        const leat_tensor *t = &r->frame->tensors[c];
        if (l->env.shape->columns[c].kind != LEAT__COLUMN_RAGGED) continue;
        const int64_t *offsets = t->offsets;
        assert_int_equal(offsets[0], 0);
        assert_int_equal((uint64_t)offsets[o.batch_size] * leat_dtype_size(t->dtype), l->feed.ragged[c]);
        assert_true(l->feed.ragged[c] > 0);
        found++;
    }
    assert_true(found > 0);
    assert_ok(leat__feed_ragged(l, 0, NULL, NULL));
    for (uint32_t c = 0; c < l->env.shape->count; c++) assert_int_equal(l->feed.ragged[c], 0);
    leat__run_close(r);
    l->feed.next = NULL;
    leat_loader_close(&l);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_cover_the_rows_of_a_rank_in_order),
        cmocka_unit_test(runs_at_the_ends_of_an_epoch_are_short),
        cmocka_unit_test(ragged_columns_are_measured_before_the_batch_is_made),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
