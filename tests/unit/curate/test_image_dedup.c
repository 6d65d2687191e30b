/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include <dirent.h>

#include "base/hash.h"
#include "curate/image_dedup.h"
#include "io/file.h"

#define SCENES 30

/* train/: scenes; test/: edits of some of them, and other scenes. */
static void make_photos(void)
{
    scene s = plain_scene;
    for (uint32_t i = 0; i < SCENES; i++) {
        char name[64];
        s.seed = i;
        snprintf(name, sizeof name, "train/%02u.jpg", i);
        put_scene(name, &s, 160, 120, 92);
        s.seed = 1000 + i;
        snprintf(name, sizeof name, "test/other%02u.jpg", i);
        put_scene(name, &s, 160, 120, 92);
    }
    s.seed = 3;
    put_scene("test/equal.jpg", &s, 160, 120, 92);
    put_scene("test/small.jpg", &s, 80, 60, 70);
    s.seed = 4;
    s.mirror = true;
    put_scene("test/mirror.jpg", &s, 160, 120, 85);
    s.mirror = false;
    s.seed = 5;
    s.border = 14;
    put_scene("test/border.jpg", &s, 160, 120, 92);
    s.border = 0;
    s.seed = 6;
    s.zoom = 0.72f;
    s.left = 0.2f;
    s.top = 0.1f;
    put_scene("test/crop.jpg", &s, 160, 120, 92);
}

static leat_dedup_images_opts opts_for(const char *const *inputs, const char *output)
{
    leat_dedup_images_opts o;
    leat_dedup_images_opts_init(&o);
    o.inputs = inputs;
    o.input_count = 2;
    o.output = output;
    o.csv = in_box("pairs.csv");
    o.replace = 1;
    o.no_sync = 1;
    return o;
}

static leat_dedup_images_stats run_ok(const leat_dedup_images_opts *o)
{
    leat_dedup_images_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    if (leat_dedup_images(o, &st, &err) != 0) fail_msg("%s", err.message);
    return st;
}

static uint64_t load(const char *path, char **text)
{
    size_t len;
    assert_ok(leat__file_load(path, 1u << 26, 1, text, &len, NULL));
    return leat__hash64(*text, len, 0);
}

static bool has_pair(const char *csv, const char *a, const char *b)
{
    char line[256];
    snprintf(line, sizeof line, "\n%s,%s,%s,%s,", a, in_box("train"), b, in_box("test"));
    return strstr(csv, line) != NULL;
}

static void duplicates_are_found(void **state)
{
    char *csv = NULL;
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("dup.leat"));
    leat_dedup_images_stats st = run_ok(&o);
    load(o.csv, &csv);
    assert_int_equal(strncmp(csv, "key_a,pack_a,key_b,pack_b,similarity,verdict\n", 45), 0);
    assert_true(has_pair(csv, "03.jpg", "equal.jpg") && has_pair(csv, "03.jpg", "small.jpg"));
    assert_true(has_pair(csv, "04.jpg", "mirror.jpg") && has_pair(csv, "05.jpg", "border.jpg"));
    leat__free(csv);
    assert_int_equal(st.exact, 1);
    assert_int_equal(st.samples, 2 * SCENES + 5);
    assert_true(st.removed >= 4 && st.removed <= 6 && st.kept + st.removed == st.samples);
    o.windows = 1;
    (void)run_ok(&o);
    load(o.csv, &csv);
    assert_true(has_pair(csv, "06.jpg", "crop.jpg"));
    leat__free(csv);
    o.windows = 0;
    o.orientations = 1;
    (void)run_ok(&o);
    load(o.csv, &csv);
    assert_false(has_pair(csv, "04.jpg", "mirror.jpg"));
    leat__free(csv);
    bool left = true;
    assert_ok(leat__path_exists(in_box("dup.leat.columns-0"), &left, NULL));
    assert_false(left);
    assert_no_leaks();
}

/* Black icons whose shape is in alpha only; copy.png is equal to 1.png. */
static void shapes_in_alpha_are_not_duplicates(void **state)
{
    char *csv = NULL;
    for (uint32_t i = 0; i < 5; i++) {
        leat__buf b = encode_icon(i < 4 ? i : 1, 0, 64);
        char name[64];
        snprintf(name, sizeof name, i < 4 ? "icons/%u.png" : "icons/copy.png", i);
        put_file(name, b.data, b.len);
        leat__buf_reset(&b);
    }
    const char *inputs[] = {in_box("icons")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("icons.leat"));
    o.input_count = 1;
    const leat_dedup_images_stats st = run_ok(&o);
    load(o.csv, &csv);
    assert_non_null(strstr(csv, "\n1.png,"));
    assert_int_equal(st.exact, 1);
    assert_int_equal(st.removed, 1);
    leat__free(csv);
    assert_no_leaks();
}

static void rows_say_what_is_kept(void **state)
{
    leat_pack *pack = NULL;
    int64_t keep[2 * SCENES + 5], of[2 * SCENES + 5], from[2 * SCENES + 5];
    uint64_t at;
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("rows.leat"));
    o.keep = LEAT_KEEP_IMAGE_PACK;
    leat_dedup_images_stats st = run_ok(&o);
    assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
    assert_int_equal(leat_pack_count(pack), st.samples);
    assert_ok(leat_pack_ints(pack, 1, 0, st.samples, keep, NULL));
    assert_ok(leat_pack_ints(pack, 2, 0, st.samples, of, NULL));
    assert_ok(leat_pack_ints(pack, 5, 0, st.samples, from, NULL));
    assert_ok(leat_pack_find(pack, "small.jpg", 9, &at, NULL));
    assert_true(keep[at] == 0 && of[at] == 3 && from[at] == 1 && keep[3] == 1 && of[3] == -1);
    leat_pack_close(&pack);
    assert_no_leaks();
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    uint64_t first = 0;
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
        char *csv = NULL, *rows = NULL;
        leat_dedup_images_opts o = opts_for(inputs, in_box("same.leat"));
        o.threads = threads;
        o.list_probable = 1;
        (void)run_ok(&o);
        const uint64_t h = load(o.csv, &csv) ^ load(o.output, &rows);
        if (threads == 1) first = h;
        assert_true(h == first);
        leat__free(csv);
        leat__free(rows);
    }
}

/* Lines of a list with at least this similarity, all of them called duplicates. */
static uint64_t count_duplicates(const char *path, double least)
{
    char *csv = NULL;
    uint64_t n = 0;
    load(path, &csv);
    for (char *line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *verdict = strstr(line, ",duplicate\n");
        if (!verdict) continue;
        const char *number = verdict;
        while (number[-1] != ',') number--;
        n += strtod(number, NULL) >= least;
    }
    leat__free(csv);
    return n;
}

/* A similarity of 1 is printed only for equal images, which are never just probable. */
static void no_probable_pair_has_a_similarity_of_1(void **state)
{
    char *csv = NULL;
    scene s = plain_scene;
    s.seed = 3;
    put_scene("near/a.png", &s, 640, 480, 0);
    put_scene("near/b.png", &s, 640, 480, 0);
    s.offset += 0.0001f; /* changes a few pixels by 1 */
    put_scene("nearer/c.png", &s, 640, 480, 0);
    const char *inputs[] = {in_box("near"), in_box("nearer")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("certain.leat"));
    o.threshold = 1;
    o.list_probable = 1;
    (void)run_ok(&o);
    load(o.csv, &csv);
    if (!strstr(csv, ",0.999999,probable\n")) fail_msg("%s", csv);
    assert_null(strstr(csv, ",1,probable\n"));
    assert_non_null(strstr(csv, ",1,duplicate\n"));
    leat__free(csv);
}

/* The threshold chooses among the pairs that are found without it; none below is called a duplicate. */
static void no_duplicate_is_below_the_threshold(void **state)
{
    static const double thresholds[] = {0.9, 0.97, 0.99, 0.999, 1};
    uint64_t want[LEAT_COUNT(thresholds)];
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("least.leat"));
    (void)run_ok(&o);
    for (size_t i = 0; i < LEAT_COUNT(thresholds); i++) want[i] = count_duplicates(o.csv, thresholds[i]);
    assert_true(want[0] > want[2] && want[4] == 1);
    for (size_t i = 0; i < LEAT_COUNT(thresholds); i++) {
        o.threshold = thresholds[i];
        assert_int_equal(run_ok(&o).pairs, want[i]);
        assert_int_equal(count_duplicates(o.csv, 0), want[i]);
    }
    assert_no_leaks();
}

/* many/: 24 encodings of a scene and two equal files; few/: a smaller one and a copy. */
static void make_copies(void)
{
    scene s = plain_scene;
    for (uint32_t i = 0; i < 24; i++) {
        char name[64];
        s.seed = 7;
        snprintf(name, sizeof name, "many/%02u.jpg", i);
        put_scene(name, &s, 160, 120, 60 + i);
        s.seed = 500 + i;
        snprintf(name, sizeof name, "few/other%02u.jpg", i);
        put_scene(name, &s, 160, 120, 90);
    }
    s.seed = 7;
    put_scene("few/small.jpg", &s, 80, 60, 90);
    s.seed = 8;
    put_scene("few/copy.jpg", &s, 160, 120, 90);
    put_scene("many/one.jpg", &s, 160, 120, 90);
    put_scene("many/two.jpg", &s, 160, 120, 90);
}

/* Across inputs, each image that has a copy in another one is found, in any order of the inputs. */
static void across_finds_the_same_in_any_order(void **state)
{
    make_copies();
    const char *inputs[2][2] = {{in_box("many"), in_box("few")}, {in_box("few"), in_box("many")}};
    for (int turned = 0; turned < 2; turned++) {
        int64_t cluster[100], kept[100];
        char *csv = NULL;
        leat_pack *pack = NULL;
        leat_dedup_images_opts o = opts_for(inputs[turned], in_box("across.leat"));
        o.across = 1;
        o.orientations = 8;
        o.keep = LEAT_KEEP_IMAGE_PACK;
        const leat_dedup_images_stats st = run_ok(&o);
        assert_int_equal(st.pairs, 26);
        assert_int_equal(st.exact, 2);
        load(o.csv, &csv);
        const char *key = turned ? "copy.jpg" : "two.jpg", *other = turned ? "two.jpg" : "copy.jpg";
        char line[256];
        snprintf(line, sizeof line, "\n%s,%s,%s,%s,1,", key, inputs[turned][0], other, inputs[turned][1]);
        assert_non_null(strstr(csv, line));
        leat__free(csv);
        assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
        assert_ok(leat_pack_ints(pack, 0, 0, st.samples, cluster, NULL));
        assert_ok(leat_pack_ints(pack, 1, 0, st.samples, kept, NULL));
        leat_pack_close(&pack);
        const uint32_t first = turned ? 26 : 0; /* row of many/ */
        for (uint32_t i = 0; i < 26; i++) assert_true(cluster[first + i] >= 0);
        assert_true(turned ? !kept[first] : kept[0] + kept[23] == 1);
        assert_int_equal(st.removed, 26);
    }
    assert_no_leaks();
}

/* one/: crops of two scenes; two/: others of the same scenes, turned by 180 degrees. */
static void make_turned(void)
{
    for (uint32_t i = 0; i < 40; i++) {
        char name[64];
        scene s = {.seed = i % 2, .zoom = 1 - 0.008f * (float)i, .gain = 1};
        snprintf(name, sizeof name, "one/%02u.jpg", i);
        put_scene(name, &s, 160, 120, 92);
        s = (scene){.seed = i % 2, .zoom = 0.008f * (float)i - 1, .left = 1, .top = 1, .gain = 1.2f};
        snprintf(name, sizeof name, "two/turned%02u.jpg", i);
        put_scene(name, &s, 140, 120, 60);
    }
}

static int by_text(const void *x, const void *y)
{
    return strcmp(x, y);
}

/* Reads the pairs of a list: both keys, the lower first, and the similarity. Returns how many. */
static size_t read_pairs(const char *path, char (*pair)[64], size_t room)
{
    char *csv = NULL;
    size_t n = 0;
    load(path, &csv);
    for (char *line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char a[24], b[24], similarity[24];
        assert_int_equal(sscanf(line + 1, "%23[^,],%*[^,],%23[^,],%*[^,],%23[^,]", a, b, similarity), 3);
        assert_true(n < room);
        const bool turned = strcmp(a, b) > 0;
        snprintf(pair[n++], sizeof *pair, "%s %s %s", turned ? b : a, turned ? a : b, similarity);
    }
    leat__free(csv);
    qsort(pair, n, sizeof *pair, by_text);
    return n;
}

/* The order of the inputs changes neither the pairs nor their similarities. */
static void the_order_of_inputs_changes_no_pair(void **state)
{
    static char pair[2][4000][64];
    make_turned();
    const char *inputs[2][2] = {{in_box("one"), in_box("two")}, {in_box("two"), in_box("one")}};
    static const uint32_t orientations[] = {1, 8};
    for (size_t i = 0; i < LEAT_COUNT(orientations); i++) {
        size_t n[2];
        for (int turned = 0; turned < 2; turned++) {
            leat_dedup_images_opts o = opts_for(inputs[turned], in_box("order.leat"));
            o.orientations = orientations[i];
            o.threshold = 0.05;
            run_ok(&o);
            n[turned] = read_pairs(o.csv, pair[turned], LEAT_COUNT(pair[turned]));
        }
        assert_true(n[0] > 100);
        assert_int_equal(n[0], n[1]);
        for (size_t k = 0; k < n[0]; k++) assert_string_equal(pair[0][k], pair[1][k]);
    }
    assert_no_leaks();
}

/* A similarity depends on the two images only, not on the places of their rows. */
static void rows_in_another_order_have_the_same_similarity(void **state)
{
    static char pair[2][4][64];
    for (uint32_t seed = 0; seed < 6; seed++) {
        for (int turned = 0; turned < 2; turned++) {
            const char *inputs[] = {in_box(turned ? "places2" : "places1")};
            scene s = {.seed = seed, .zoom = 1, .gain = 1};
            put_scene(turned ? "places2/2.jpg" : "places1/1.jpg", &s, 160, 120, 92);
            s = (scene){.seed = seed, .zoom = -0.9f, .left = 0.95f, .top = 0.95f, .gain = 1.2f};
            put_scene(turned ? "places2/1.jpg" : "places1/2.jpg", &s, 140, 120, 60);
            leat_dedup_images_opts o = opts_for(inputs, in_box("places.leat"));
            o.input_count = 1;
            o.orientations = 8;
            o.threshold = 0.01;
            run_ok(&o);
            assert_int_equal(read_pairs(o.csv, pair[turned], 4), 1);
        }
        assert_string_equal(pair[0][0], pair[1][0]); /* of the same two keys */
    }
    assert_no_leaks();
}

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    return 1;
}

static void wrong_options_are_refused(void **state)
{
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("wrong.leat")), p = o;
    leat__buf json;
    o.orientations = 3;
    assert_code(LEAT_EINVAL, leat_dedup_images(&o, NULL, NULL));
    o = p;
    o.threshold = 1.5;
    assert_code(LEAT_EINVAL, leat_dedup_images(&o, NULL, NULL));
    o = p;
    o.across = 1;
    o.input_count = 1;
    assert_code(LEAT_EINVAL, leat_dedup_images(&o, NULL, NULL));
    o = p;
    o.progress = stop;
    assert_code(LEAT_ECANCELED, leat_dedup_images(&o, NULL, NULL));
    bool left = true;
    assert_ok(leat__path_exists(in_box("wrong.leat"), &left, NULL));
    assert_false(left);
    p.across = 1;
    const leat_dedup_images_stats st = run_ok(&p);
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    leat__dedup_images_json(&st, &json);
    assert_contains(leat__buf_str(&json), "\"samples\":65");
    leat__buf_reset(&json);
    p.replace = 0;
    assert_code(LEAT_EEXIST, leat_dedup_images(&p, NULL, NULL));
    assert_no_leaks();
}

typedef struct stopping {
    uint64_t calls, stop_at;
} stopping;

static int stop_later(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    stopping *s = cookie;
    return ++s->calls == s->stop_at;
}

static uint64_t count_files(const char *prefix)
{
    DIR *dir = opendir(sandbox);
    uint64_t n = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

/* A run that was stopped at any point, while it checks images or searches, continues with the same result. */
static void a_stopped_run_is_continued(void **state)
{
    char *csv = NULL, *rows = NULL;
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    for (int spilled = 0; spilled < 2; spilled++) {
        leat_dedup_images_opts o = opts_for(inputs, in_box("whole.leat"));
        uint64_t resumed = 0;
        o.list_probable = 1;
        o.threads = 2;
        o.windows = spilled != 0; /* more descriptors */
        o.memory = spilled ? (14u << 20) + 130000 : 0;
        const leat_dedup_images_stats first = run_ok(&o);
        assert_int_equal(first.in_memory, !spilled);
        const uint64_t want = load(o.csv, &csv) ^ load(o.output, &rows);
        leat__free(csv);
        leat__free(rows);
        o.output = in_box("again.leat");
        o.progress = stop_later;
        for (uint64_t at = 1;; at += spilled ? 1 + at / 2 : 1) {
            stopping s = {.stop_at = at};
            o.cookie = &s;
            const int rc = leat_dedup_images(&o, NULL, NULL);
            if (rc == 0) break;
            assert_code(LEAT_ECANCELED, rc);
            s = (stopping){0};
            resumed += run_ok(&o).resumed;
            assert_true((load(o.csv, &csv) ^ load(o.output, &rows)) == want);
            leat__free(csv);
            leat__free(rows);
            assert_int_equal(count_files("again.leat"), 1);
        }
        assert_true(resumed > 0);
    }
    assert_no_leaks();
}

/* A run that has enough memory removes the files of a killed one that had not. */
static void files_of_a_killed_run_are_removed(void **state)
{
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("left.leat"));
    leat__spill left;
    assert_ok(leat__path_mkdir(in_box("left.leat.spill"), NULL));
    assert_ok(leat__spill_open(&left, in_box("left.leat.spill"), "rows", 1, 8, NULL, NULL, NULL));
    leat__spill_reset(&left);
    assert_ok(leat__spill_open(&left, in_box("left.leat.spill"), "part", 9, 8, NULL, NULL, NULL));
    leat__spill_reset(&left);
    assert_true(run_ok(&o).in_memory);
    assert_int_equal(count_files("left.leat"), 1);
    assert_no_leaks();
}

static int stop_writing(void *cookie, uint64_t done, uint64_t total, uint64_t pairs, uint64_t bytes)
{
    (void)cookie, (void)pairs, (void)bytes;
    return done == total && total == 2 * SCENES + 5;
}

/* A run that is killed after it named its list, and before it named its rows, is continued. */
static void the_list_of_an_unfinished_run_is_replaced(void **state)
{
    make_photos();
    const char *inputs[] = {in_box("train"), in_box("test")};
    leat_dedup_images_opts o = opts_for(inputs, in_box("whole.leat"));
    char *whole[2], *again[2];
    run_ok(&o);
    const uint64_t want = load(o.csv, &whole[0]) ^ load(o.output, &whole[1]);
    o.output = in_box("killed.leat");
    o.replace = 0;
    assert_code(LEAT_EEXIST, leat_dedup_images(&o, NULL, NULL));
    o.replace = 1;
    o.progress = stop_writing;
    assert_code(LEAT_ECANCELED, leat_dedup_images(&o, NULL, NULL));
    o.replace = 0;
    o.progress = NULL;
    assert_int_equal(run_ok(&o).resumed, 2 * SCENES + 5);
    assert_true((load(o.csv, &again[0]) ^ load(o.output, &again[1])) == want);
    for (int i = 0; i < 2; i++) {
        leat__free(whole[i]);
        leat__free(again[i]);
    }
    assert_int_equal(count_files("killed.leat"), 1);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duplicates_are_found),
        cmocka_unit_test(shapes_in_alpha_are_not_duplicates),
        cmocka_unit_test(rows_say_what_is_kept),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(across_finds_the_same_in_any_order),
        cmocka_unit_test(the_order_of_inputs_changes_no_pair),
        cmocka_unit_test(rows_in_another_order_have_the_same_similarity),
        cmocka_unit_test(no_duplicate_is_below_the_threshold),
        cmocka_unit_test(no_probable_pair_has_a_similarity_of_1),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_stopped_run_is_continued),
        cmocka_unit_test(files_of_a_killed_run_are_removed),
        cmocka_unit_test(the_list_of_an_unfinished_run_is_replaced),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
