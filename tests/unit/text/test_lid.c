/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictions that can be computed by hand. tests/oracle/check_lid.py compares all kinds of models with a
 * second implementation, and with fastText if it is installed.
 */
#include "leat_test.h"

#include <math.h>

#include "text/lid.h"
#include "text/lid_box.h"

static leat__lid *lid;
static leat__lid_work work;

static void open_box(lid_box b)
{
    leat__buf out;
    leat_error err = {0};
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 26);
    lid_box_write(&b, &out);
    if (leat__lid_open(&lid, lid_box_copy(&out, out.len), out.len, "m.bin", &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(leat__lid_work_init(&work, lid, &err), 0);
    assert_true(leat__lid_work_bytes(lid) >= 2 * sizeof(float));
    leat__buf_reset(&out);
}

static void close_box(void)
{
    leat__lid_work_reset(&work);
    leat__lid_close(&lid);
}

static int predict(const char *text, double *p)
{
    return leat__lid_run(lid, &work, (const uint8_t *)text, strlen(text), p);
}

static void expect(const char *text, int label, double probability)
{
    double p;
    int got = predict(text, &p);
    if (got != label || fabs(p - probability) > 1e-4)
        fail_msg("\"%s\": label %d, %g; expected %d, %g", text, got, p, label, probability);
}

/* The rows of the two words and of the end of the line (zeros) are averaged. */
static void softmax_of_words(void **state)
{
    for (int quantised = 0; quantised < 2; quantised++) {
        lid_box b = lid_box_new();
        b.quantised = quantised;
        open_box(b);
        double e2 = exp(2), e83 = exp(8. / 3);
        expect("yes", 0, e2 / (e2 + 1));
        expect(" \n\tja\r", 1, e2 / (e2 + 1));
        expect("yes\nyes", 0, e83 / (e83 + 1));
        expect("ja yes ja", 1, exp(2) / (exp(2) + exp(1)));
        expect("unknown yes", 0, e2 / (e2 + 1));       /* not in the dictionary: no row */
        expect("yes __label__de", 0, e2 / (e2 + 1));   /* labels do not count */
        expect("yes </s> ja ja ja", 0, e2 / (e2 + 1)); /* the line ends */
        expect("", 1, 0.5);                            /* a tie: the last label */
        close_box();
    }
}

static void other_losses(void **state)
{
    lid_box b = lid_box_new();
    b.setting[BOX_LOSS] = 4;
    open_box(b);
    expect("yes", 0, 1 / (1 + exp(-2))); /* a sigmoid per label */
    expect("", 1, 0.5);
    close_box();
    b.setting[BOX_LOSS] = 1; /* one node: its row decides between de (left) and en */
    open_box(b);
    expect("yes", 0, 1 / (1 + exp(-2)));
    close_box();
}

static void ngrams(void **state)
{
    lid_box b = lid_box_new();
    double p;
    b.setting[BOX_BUCKET] = 10;
    b.setting[BOX_MINN] = b.setting[BOX_MAXN] = 3;
    open_box(b);
    assert_true(predict("qqqq", &p) >= 0 && p >= 0.5);
    close_box();
    b.setting[BOX_MAXN] = 0;
    b.setting[BOX_MINN] = 0;
    b.setting[BOX_NGRAMS] = 2;
    open_box(b);
    assert_true(predict("qqqq zzz", &p) >= 0 && p >= 0.5);
    close_box();
    b.pruned = 0; /* every n-gram was pruned: only the end of the line is known */
    b.quantised = 1;
    open_box(b);
    expect("qqqq zzz", 1, 0.5);
    close_box();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_of_words),
        cmocka_unit_test(other_losses),
        cmocka_unit_test(ngrams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
