/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

static leat_dedup_stats st;

static char *report(leat_dedup_opts *o, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s", in_box(name));
    o->report = path;
    o->replace = 1;
    dedup_ok(o, &st);
    return load_text(name);
}

static void sizes_of_clusters(void **state)
{
    FILE *f = fopen(in_box("sizes.jsonl"), "wb");
    fprintf(f, "{}\n\n"); /* lines without a document */
    for (int text = 0; text < 9; text++)
        for (int copy = 0; copy <= text; copy++)
            fprintf(f, "{\"id\":\"<%d.%d>\",\"text\":\"text number %d\"}\n", text, copy, text);
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("sizes.jsonl", "sizes");
    o.kind = LEAT_DEDUP_EXACT;
    char *json = report(&o, "s.json");
    assert_non_null(strstr(json, "\"documents\":45,\"kept\":9,\"removed\":36,\"dropped\":0,\"bad\":1,"
                                 "\"clusters\":8,\"below_threshold\":0,\"sizes\":["
                                 "{\"from\":2,\"to\":2,\"clusters\":1,\"documents\":2},"
                                 "{\"from\":3,\"to\":3,\"clusters\":1,\"documents\":3},"
                                 "{\"from\":4,\"to\":4,\"clusters\":1,\"documents\":4},"
                                 "{\"from\":5,\"to\":8,\"clusters\":4,\"documents\":26},"
                                 "{\"from\":9,\"to\":16,\"clusters\":1,\"documents\":9}]"));
    assert_non_null(strstr(json, "\"largest\":[{\"kept\":\"<8.0>\",\"documents\":9},{\"kept\":\"<7.0>\""));
    leat__free(json);
    char *page = report(&o, "s.html");
    assert_null(strstr(page, "<8.0>"));
    assert_non_null(strstr(page, "&lt;8.0&gt;"));
    assert_non_null(strstr(page, "45 documents: 9 kept, 36 removed in 8 clusters; 1 bad line."));
    leat__free(page);
    o.set = "words.min=4"; /* all documents have three words, so all are dropped */
    json = report(&o, "s.json");
    assert_non_null(strstr(json, "\"documents\":45,\"kept\":0,\"removed\":0,\"dropped\":45,\"bad\":1,"));
    leat__free(json);
    page = report(&o, "s.html");
    assert_non_null(strstr(page, "45 documents: 45 dropped by rules, 0 kept, 0 removed in 0 clusters;"));
    leat__free(page);
}

static void memory_does_not_matter(void **state)
{
    char *first = NULL;
    make_corpus("corpus.jsonl", 3000);
    for (int i = 0; i < 2; i++) {
        leat_dedup_opts o = fuzzy_opts("corpus.jsonl", "corpus");
        o.memory = i ? 64u << 20 : 0;
        o.threads = 1 + 3 * (uint32_t)i;
        char *json = report(&o, "c.json");
        if (first) assert_string_equal(first, json);
        leat__free(first);
        first = json;
    }
    assert_true(st.clusters > 100);
    leat__free(first);
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("corpus.jsonl", "x");
    o.report = "x.pdf";
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_clusters),
        cmocka_unit_test(memory_does_not_matter),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
