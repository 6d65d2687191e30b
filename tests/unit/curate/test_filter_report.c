/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/report_box.h"

#include <math.h>

#include "curate/filter_report.h"

/* 20,000 documents; number i has i % 100 words. */
static void write_documents(void)
{
    FILE *f = fopen(in_box("in.jsonl"), "wb");
    for (int i = 0; i < 20000; i++) {
        fprintf(f, "{\"id\":\"d%d\",\"text\":\"", i);
        for (int k = 0; k < i % 100; k++) fprintf(f, "w%d ", (i * 31 + k * 7) % 97);
        fprintf(f, "\"}\n");
    }
    fclose(f);
}

static void threads_do_not_matter(void **state)
{
    char *first = NULL;
    write_documents();
    for (uint32_t t = 1; t <= 7; t += 3) {
        leat_filter_opts o;
        leat_filter_opts_init(&o);
        o.set = "words.min=20,words.max=90,urls.max=2";
        o.threads = t;
        if (report_run(&o, "r.json") != 0) fail_msg("%s", err.message);
        char *now = load_box("r.json");
        if (first) assert_string_equal(first, now);
        leat__free(first);
        first = now;
    }
    assert_non_null(strstr(first, "\"funnel\":[{\"after\":\"\",\"documents\":20000},{\"after\":\"words.min\","
                                  "\"documents\":16000},{\"after\":\"words.max\",\"documents\":14200}]"));
    /* the nearest on both sides, and of equal ones the first */
    assert_non_null(strstr(first, "{\"rule\":\"words.min\",\"passes\":true,\"id\":\"d20\",\"score\":20,"
                                  "\"kept\":true,"));
    assert_non_null(strstr(first, "{\"rule\":\"words.min\",\"passes\":false,\"id\":\"d19\",\"score\":19,"
                                  "\"kept\":false,"));
    assert_non_null(strstr(first, "{\"rule\":\"words.max\",\"passes\":false,\"id\":\"d91\",\"score\":91,"));
    /* no word, 1 word, then bins of a third of a doubling */
    assert_non_null(strstr(first, "{\"score\":\"words\",\"from\":[0,1,1.25992"));
    assert_non_null(strstr(first, "\"dropped\":[200,200,0,0,200,200,0,400,"));
    leat__free(first);
}

typedef struct seen {
    int kept, dropped, borderline;
    char ids[4096];
    bool good;
} seen;

static void on_looked(void *cookie, const leat_filter_seen *d)
{
    seen *s = cookie;
    int words = atoi(d->id + 1) % 100;
    bool kept = words >= 20 && words <= 90, border = words >= 18 && words < 22;
    border = border || (words > 81 && words <= 99);
    s->good = s->good && d->kept == kept && d->rule_count == 2;
    if (strcmp(d->kind, "kept") == 0) s->kept++;
    else if (strcmp(d->kind, "dropped") == 0) s->dropped++;
    else s->borderline++;
    if (strcmp(d->kind, "borderline") == 0) s->good = s->good && border;
    s->good = s->good && d->rules[0].keeps == (kept ? 1 : 0);
    strncat(s->ids, d->id, 16);
}

static void random_documents(void **state)
{
    seen s[3] = {{.good = true}, {.good = true}, {.good = true}};
    for (uint32_t i = 0; i < 3; i++) {
        leat_filter_opts o;
        leat_filter_opts_init(&o);
        o.set = "words.min=20,words.max=90";
        o.look = 7;
        o.seed = i / 2;
        o.threads = 1 + 3 * i;
        o.looked = on_looked;
        o.cookie = &s[i];
        if (report_run(&o, "") != 0) fail_msg("%s", err.message);
        assert_true(s[i].good);
        assert_int_equal(s[i].kept, 7);
        assert_int_equal(s[i].dropped, 7);
        assert_int_equal(s[i].borderline, 7);
    }
    assert_string_equal(s[0].ids, s[1].ids);     /* any number of threads */
    assert_string_not_equal(s[0].ids, s[2].ids); /* another seed */
    leat_filter_opts o;
    leat_filter_opts_init(&o);
    o.look = 101;
    assert_int_equal(report_run(&o, ""), LEAT_EINVAL);
}

static void bins_cover_all_values(void **state)
{
    for (unsigned score = 0; score < leat__score_total + 2; score++) {
        double from, to, end = 0;
        for (unsigned b = 0; b < LEAT__REPORT_BINS; b++) {
            leat__report_bin(score, b, &from, &to);
            assert_true(from == end && to > from);
            end = to;
            double inside = b + 1 == LEAT__REPORT_BINS ? from + 1 : (from + to) / 2;
            assert_int_equal((unsigned)leat__report_place(score, inside), b);
        }
        assert_true(isinf(end));
        assert_int_equal((unsigned)leat__report_place(score, -1), 0);
        assert_int_equal((unsigned)leat__report_place(score, NAN), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(random_documents),
        cmocka_unit_test(bins_cover_all_values),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
