/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "curate/eval_table.h"
#include "text/sketch.h"

static leat__eval_table t;

static uint64_t corpus_need(void *cookie, uint64_t line)
{
    return 20 * line;
}

static int read_sets(const char *fields, uint64_t memory, leat_error *err)
{
    const char *in[] = {in_box("e.jsonl")};
    const leat__eval_sets sets = {.inputs = in,
                                  .corpus_need = corpus_need,
                                  .count = 1,
                                  .ngram = 3,
                                  .fields = fields,
                                  .id_field = "id",
                                  .memory = memory,
                                  .max_line = 4u << 20};
    return leat__eval_table_read(&t, &sets, err);
}

/* Number of the text with this n-gram. */
static uint32_t find(const char *words)
{
    leat__sketcher s;
    uint32_t n;
    assert_int_equal(leat__sketcher_init(&s, 3, 0, NULL), 0);
    memcpy(s.text, words, strlen(words));
    assert_int_equal(leat__sketcher_shingles(&s, strlen(words), &n, NULL), 0);
    assert_int_equal(n, 1);
    uint32_t text = leat__eval_table_find(&t, s.shingle[0]);
    leat__sketcher_reset(&s);
    return text;
}

static void texts_and_ids(void **state)
{
    leat__buf out;
    put_text("e.jsonl", "{\"id\":\"a\",\"q\":\"One two, three four\",\"a\":\"x y z\"}\n"
                        "not json\n{\"id\":\"none\"}\n{\"id\":2,\"q\":\"two words\"}\n"
                        "{\"q\":\"two three four\",\"a\":\"five six seven\"}\n");
    assert_int_equal(read_sets("q,a", 4 << 20, NULL), 0);
    assert_int_equal(t.texts, 3);
    assert_int_equal(t.texts_short, 1);
    assert_int_equal(t.bad, 1);
    assert_non_null(strstr(leat__buf_str(&t.bad_list), "e.jsonl\",\"line\":2,\"offset\":49,"));
    assert_int_equal(t.without, 1);
    assert_int_equal(t.used, 4);
    assert_int_equal(find("one TWO three"), 0);
    assert_int_equal(find("two three four"), 0); /* the first text that has it */
    assert_int_equal(find("x y z"), 0);
    assert_int_equal(find("five six seven"), 2);
    assert_int_equal(find("four five six"), LEAT__EVAL_NONE); /* not across fields */
    leat__buf_init(&out, LEAT__MEM_MISC, 1000);
    leat__eval_table_id(&t, 0, &out);
    leat__eval_table_id(&t, 1, &out);
    leat__eval_table_id(&t, 2, &out);
    assert_non_null(strstr(leat__buf_str(&out), "\"a\"2\""));
    assert_non_null(strstr(leat__buf_str(&out), "e.jsonl:5\""));
    leat__buf_reset(&out);
    leat__eval_table_reset(&t);
    assert_int_equal(read_sets("q", 4 << 20, NULL), 0);
    assert_int_equal(t.used, 2);
    leat__eval_table_reset(&t);
}

static void it_grows_to_the_limit(void **state)
{
    leat_error err = {0};
    FILE *f = fopen(in_box("e.jsonl"), "wb");
    fputs("{\"text\":\"", f);
    for (int i = 0; i < 20000; i++) fprintf(f, "w%d ", i);
    fputs("\"}\n", f);
    fclose(f);
    assert_int_equal(read_sets("text", 16 << 20, &err), 0);
    assert_int_equal(t.used, 19998);
    assert_int_equal(find("w7 w8 w9"), 0);
    assert_int_equal(find("w7 w9 w8"), LEAT__EVAL_NONE);
    leat__eval_table_reset(&t);
    assert_int_equal(read_sets("text", 1200000, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "memory to 5M"));
    assert_int_equal(read_sets("text", 5 << 20, &err), 0);
    leat__eval_table_reset(&t);
    assert_int_equal(read_sets(",", 1 << 20, &err), LEAT_EINVAL);
    put_text("e.jsonl", "{\"text\":\"one two three\"}\n");
    assert_int_equal(read_sets("text", 1024, &err), LEAT_EBUDGET); /* the smallest table */
}

/* A line that does not fit the memory is named, with a limit that is enough; one over max_line is bad. */
static void long_lines(void **state)
{
    leat_error err = {0};
    unsigned enough = 0;
    FILE *f = fopen(in_box("e.jsonl"), "wb");
    fputs("{\"text\":\"one two three\"}\n{\"text\":\"", f);
    for (int i = 0; i < 1 << 20; i++) fputs("ab ", f);
    fputs("\"}\n", f);
    fclose(f);
    assert_int_equal(read_sets("text", 20 << 20, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "e.jsonl: line 2 of 3145739 "));
    sscanf(strstr(err.message, "memory to"), "memory to %uM", &enough);
    assert_in_range(enough, 200, 300); /* each word counts as another n-gram */
    assert_int_equal(read_sets("text", (uint64_t)enough << 20, &err), 0);
    assert_int_equal(t.used, 2);
    leat__eval_table_reset(&t);
    f = fopen(in_box("e.jsonl"), "ab");
    fputs("{\"text\":\"", f);
    for (int i = 0; i < 2 << 20; i++) fputs("ab ", f);
    fputs("\"}\n", f);
    fclose(f);
    assert_int_equal(read_sets("text", (uint64_t)enough << 20, &err), 0);
    assert_int_equal(t.bad, 1);
    assert_non_null(strstr(leat__buf_str(&t.bad_list), "\"line\":3,"));
    assert_non_null(strstr(leat__buf_str(&t.bad_list), "max-document"));
    leat__eval_table_reset(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_and_ids),
                                       cmocka_unit_test(it_grows_to_the_limit), cmocka_unit_test(long_lines)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
