/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

static void expect(leat__source *s, leat__records_pool *spare, const char *key, int64_t label)
{
    leat__records *run;
    leat__record *r;
    if (!next_record(s, spare, &run, &r)) fail_msg("no record, not %s", key);
    assert_string_equal(leat__records_str(run, r->key), key);
    assert_false(r->failed);
    if (s->label_field >= 0) assert_int_equal(r->items[s->label_field].i, label);
    const leat__item *image = &r->items[s->image_field];
    assert_false(image->absent);
    assert_int_equal(r->bytes_in, image->size);
    assert_memory_equal(leat__records_data(run, image), key, strlen(key)); /* files hold their key */
    leat__records_pool_give(spare, run);
}

static void expect_end(leat__source *s, leat__records_pool *spare)
{
    leat__records *run;
    leat__record *r;
    assert_false(next_record(s, spare, &run, &r));
}

static void make_tree(const char *root, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", root, keys[i]);
        put_text(name, keys[i]);
    }
}

static const char *const tree[] = {"10/b.jpg",   "2/img10.jpg",   "2/img2.jpg", "2/deep/x.png",
                                   "cat/A.webp", ".hidden/z.jpg", "cat/.ds"};
/* classes in byte order (10 before 2), files in natural order, folders among them */
static const char *const order[] = {"10/b.jpg", "2/deep/x.png", "2/img2.jpg", "2/img10.jpg", "cat/A.webp"};
static const int64_t labels[] = {0, 1, 1, 1, 2};

static void classes_and_order(void **state)
{
    make_tree("tree", tree, 7);
    const char *paths[] = {in_box("tree/")};
    leat__source *s = open_source(paths, 1, NULL);
    leat__records_pool spare;
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_int_equal(s->field_count, 2);
    assert_int_equal(s->class_count, 3);
    assert_string_equal(s->classes[0], "10");
    assert_string_equal(s->classes[2], "cat");
    assert_int_equal(s->total, 5);
    for (int i = 0; i < 5; i++) expect(s, &spare, order[i], labels[i]);
    expect_end(s, &spare);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static void without_folders_there_are_no_labels(void **state)
{
    static const char *const flat[] = {"b2.jpg", "b10.jpg", "a.jpg"};
    make_tree("flat", flat, 3);
    const char *paths[] = {in_box("flat")};
    leat__source *s = open_source(paths, 1, NULL);
    leat__records_pool spare;
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_int_equal(s->label_field, -1);
    assert_int_equal(s->field_count, 1);
    expect(s, &spare, "a.jpg", 0);
    expect(s, &spare, "b10.jpg", 0);
    expect(s, &spare, "b2.jpg", 0);
    expect_end(s, &spare);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static void a_shuffle_is_a_permutation_of_its_seed(void **state)
{
    char seen[2][5][64] = {{{0}}};
    make_tree("tree", tree, 7);
    for (int round = 0; round < 2; round++) {
        leat_ingest_opts opts = {
            .struct_size = sizeof opts, .output = in_box("out.leat"), .shuffle = 1, .shuffle_seed = 7};
        const char *paths[] = {in_box("tree")};
        leat__source *s = open_source(paths, 1, &opts);
        leat__records_pool spare;
        leat__records_pool_init(&spare, s->field_count, 2);
        unsigned found = 0;
        leat__records *run;
        leat__record *r;
        for (int i = 0; next_record(s, &spare, &run, &r); i++) {
            assert_true(i < 5);
            snprintf(seen[round][i], 64, "%s", leat__records_str(run, r->key));
            for (int k = 0; k < 5; k++)
                if (strcmp(order[k], seen[round][i]) == 0) {
                    found |= 1u << k;
                    assert_int_equal(r->items[s->label_field].i, labels[k]);
                }
            leat__records_pool_give(&spare, run);
        }
        assert_int_equal(found, 31);
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
    }
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
}

static void links(void **state)
{
    static const char *const files[] = {"real/a.jpg"};
    make_tree("links", files, 1);
    assert_int_equal(symlink("real", in_box("links/zlinked")), 0);
    assert_int_equal(symlink("nowhere", in_box("links/real/broken.jpg")), 0);
    const char *paths[] = {in_box("links")};
    leat__source *s = open_source(paths, 1, NULL);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_int_equal(s->class_count, 2);
    expect(s, &spare, "real/a.jpg", 0);
    assert_true(next_record(s, &spare, &run, &r));
    assert_true(r->failed);
    assert_int_equal(r->error->code, LEAT_ENOENT);
    assert_string_equal(leat__records_str(run, r->key), "real/broken.jpg");
    leat__records_pool_give(&spare, run);
    assert_true(next_record(s, &spare, &run, &r)); /* through the link, under its own name */
    assert_string_equal(leat__records_str(run, r->key), "zlinked/a.jpg");
    assert_int_equal(r->items[s->label_field].i, 1);
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);

    assert_int_equal(symlink("..", in_box("links/real/loop")), 0);
    s = open_source(paths, 1, NULL);
    leat__records_pool_init(&spare, s->field_count, 2);
    int loops = 0; /* one unreadable sample for each path into it; the walk continues */
    while (next_record(s, &spare, &run, &r)) {
        if (r->failed && strstr(r->error->message, "leads back")) loops++;
        leat__records_pool_give(&spare, run);
    }
    assert_int_equal(loops, 2);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

/* Files without an image extension are counted; with `strict` they are samples. */
static void other_files_are_skipped(void **state)
{
    static const char *const names[] = {"a/1.jpg", "a/2.JPEG", "a/3.txt", "a/4", "a/5.gif", "README.md"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "stray/%s", names[i]);
        put_text(path, "x");
    }
    const char *paths[] = {in_box("stray")};
    leat_ingest_opts opts = {.struct_size = sizeof opts, .sources = paths, .source_count = 1};
    for (opts.strict = 0; opts.strict < 2; opts.strict++) {
        leat__source *s = open_source(paths, 1, &opts);
        leat__records_pool spare;
        leat__records *run;
        leat__record *r;
        uint64_t n = 0;
        leat__records_pool_init(&spare, s->field_count, 2);
        for (; next_record(s, &spare, &run, &r); n++) leat__records_pool_give(&spare, run);
        assert_int_equal(n, opts.strict ? 6 : 3);
        assert_int_equal(s->total, n);
        assert_int_equal(s->ignored, opts.strict ? 0 : 3);
        assert_true(s->class_folders);
        assert_string_equal(s->ignored_first, opts.strict ? "" : "README.md");
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
    }
}

/* Hidden files and folders are counted; with `strict` they are samples and classes. */
static void hidden_files_are_counted(void **state)
{
    put_text("hidden/a/x.jpg", "x");
    put_text("hidden/a/.y.jpg", "x");
    put_text("hidden/.b/x.jpg", "x");
    put_text("hidden/.b/z.jpg", "x");
    const char *paths[] = {in_box("hidden")};
    for (uint32_t strict = 0; strict < 2; strict++) {
        leat_ingest_opts opts = {.struct_size = sizeof opts, .sources = paths, .source_count = 1};
        opts.strict = strict;
        leat__source *s = open_source(paths, 1, &opts);
        leat__records_pool spare;
        leat__records *run;
        leat__record *r;
        uint64_t n = 0, label = 0;
        leat__records_pool_init(&spare, s->field_count, 2);
        for (; next_record(s, &spare, &run, &r); n++) {
            label += (uint64_t)r->items[s->label_field].i;
            leat__records_pool_give(&spare, run);
        }
        assert_int_equal(n, strict ? 4 : 1);
        assert_int_equal(s->total, n);
        assert_int_equal(s->class_count, strict ? 2 : 1);
        assert_int_equal(label, strict ? 2 : 0); /* .b is 0, a is 1 */
        assert_int_equal(s->ignored, strict ? 0 : 2);
        assert_string_equal(s->ignored_first, strict ? "" : ".b");
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_order),
        cmocka_unit_test(without_folders_there_are_no_labels),
        cmocka_unit_test(a_shuffle_is_a_permutation_of_its_seed),
        cmocka_unit_test(links),
        cmocka_unit_test(other_files_are_skipped),
        cmocka_unit_test(hidden_files_are_counted),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
