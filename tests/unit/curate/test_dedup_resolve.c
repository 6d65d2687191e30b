/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain: a and b are similar, b and c are, a and c are not.
 */
#include "curate/dedup_box.h"

static void chain(const char *name)
{
    FILE *f = fopen(in_box(name), "wb");
    /* 300 words: b replaces the last 30, c the last 75 */
    put_doc(f, "a", 1, 300, 300, 0);
    put_doc(f, "b", 1, 300, 270, 2);
    fprintf(f, "{\"id\":\"c\",\"score\":9,\"text\":\"");
    put_words(f, 1, 225, 225, 0);
    fprintf(f, " ");
    for (int i = 225; i < 270; i++) fprintf(f, "other%d ", i);
    for (int i = 270; i < 300; i++) fprintf(f, "w2x%d ", (int)((unsigned)i * 7919 % 5000));
    fprintf(f, "\"}\n");
    fclose(f);
}

static void stars_and_components(void **state)
{
    leat_dedup_stats st;
    chain("chain.jsonl");
    leat_dedup_opts o = fuzzy_opts("chain.jsonl", "star");
    o.bands = 128; /* every pair is compared */
    o.rows = 2;
    o.threshold = 0.65;
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 1);
    assert_int_equal(st.below_threshold, 0);
    o = fuzzy_opts("chain.jsonl", "components");
    o.bands = 128;
    o.rows = 2;
    o.threshold = 0.65;
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    char pages[1200];
    int n = snprintf(pages, sizeof pages, "%s,", in_box("c.html"));
    snprintf(pages + n, sizeof pages - (size_t)n, "%s", in_box("c.json"));
    o.report = pages;
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 2);
    assert_int_equal(st.clusters, 1);
    assert_int_equal(st.below_threshold, 1); /* c, for a */
    char *html = load_text("c.html"), *json = load_text("c.json");
    assert_non_null(
        strstr(html, "2 removed in 1 cluster (1 of them below the threshold to the kept one); 0 bad"));
    assert_non_null(strstr(json, "\"clusters\":1,\"below_threshold\":1,"));
    leat__free(html);
    leat__free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stars_and_components)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
