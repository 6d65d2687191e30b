/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing from end to end: the same bytes for any number of threads, after interruptions and
 * for every kind of source.
 */
#include "ingest/sandbox.h"

#include <leat/pack.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "io/file.h"

#define IMAGES 60

static void make_photos(void)
{
    for (uint32_t i = 0; i < IMAGES; i++) {
        char name[64];
        bool png = i % 7 == 3;
        snprintf(name, sizeof name, "photos/class%u/img%u.%s", i % 4, i, png ? "png" : "jpg");
        put_image(name, png ? LEAT__CODEC_PNG : LEAT__CODEC_JPEG, 40 + i, 90 - i, i);
    }
}

static leat_ingest_opts opts_for(const char *const *sources, uint32_t n, const char *output)
{
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = sources;
    o.source_count = n;
    o.output = output;
    o.replace = 1;
    o.no_sync = 1;
    o.images = LEAT_IMAGES_KEEP;
    return o;
}

static leat_ingest_stats pack_ok(leat_ingest_opts o)
{
    leat_ingest_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    if (leat_ingest(&o, &st, &err) != 0) fail_msg("%s", err.message);
    return st;
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    make_photos();
    const char *src[] = {in_box("photos")};
    static const leat_image_mode modes[] = {LEAT_IMAGES_KEEP, LEAT_IMAGES_TILED, LEAT_IMAGES_RAW,
                                            LEAT_IMAGES_MIX};
    for (int m = 0; m < 4; m++)
        for (int side = 0; side < 2; side++) {
            uint64_t first = 0;
            for (uint32_t threads = 1; threads <= 8; threads *= 2) {
                leat_ingest_opts o = opts_for(src, 1, in_box("t.leat"));
                o.images = modes[m];
                o.threads = threads;
                o.max_side = side ? 50 : 0;
                o.fast_tiles = side == 0;
                leat_ingest_stats st = pack_ok(o);
                assert_int_equal(st.samples, IMAGES);
                assert_string_equal(st.source_kind, "folder");
                uint64_t h = hash_of_file(o.output);
                if (threads == 1) first = h;
                assert_true(h == first);
            }
        }
}

static void packed_samples_equal_the_source(void **state)
{
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_ingest_opts o = opts_for(src, 1, in_box("in.leat"));
    pack_ok(o);
    leat_pack *pack = NULL;
    leat_sample *s = NULL;
    assert_int_equal(leat_pack_open(&pack, o.output, NULL, NULL), 0);
    assert_int_equal(leat_sample_open(&s, pack, NULL), 0);
    assert_int_equal(leat_pack_count(pack), IMAGES);
    const char *const *names;
    uint64_t n;
    assert_int_equal(leat_pack_classes(pack, 1, &names, &n, NULL), 0);
    assert_int_equal(n, 4);
    assert_string_equal(names[3], "class3");
    for (uint64_t i = 0; i < IMAGES; i++) {
        leat_view v;
        size_t len;
        assert_int_equal(leat_sample_read(s, i, NULL), 0);
        const char *key = leat_sample_key(s, NULL);
        char path[600], *data = NULL;
        snprintf(path, sizeof path, "%s/%s", src[0], key);
        assert_int_equal(leat__file_load(path, 1u << 24, 0, &data, &len, NULL), 0);
        assert_int_equal(leat_sample_field(s, 0, &v, NULL), 0);
        assert_int_equal(v.size, len);
        assert_memory_equal(v.data, data, len);
        leat__free(data);
        assert_int_equal(leat_sample_field(s, 1, &v, NULL), 0);
        assert_int_equal(*(const int64_t *)v.data, key[5] - '0'); /* "classN/…" */
    }
    leat_sample_close(&s);
    leat_pack_close(&pack);
}

static void make_bad_ones(void)
{
    leat__buf b = make_image(LEAT__CODEC_JPEG, 80, 60, 1);
    put_file("photos/class1/cut.jpg", b.data, b.len - 40);
    put_file("photos/class1/empty.jpg", "", 0);
    put_text("photos/class2/notes.txt", "not an image");
    leat__buf_reset(&b);
}

/* A run that fails before its first sample leaves nothing that blocks the name. */
static void nothing_is_left_without_a_sample(void **state)
{
    make_photos();
    const char *src[] = {in_box("photos")};
    static const leat_image_mode modes[] = {LEAT_IMAGES_KEEP, LEAT_IMAGES_TILED};
    for (size_t i = 0; i < LEAT_COUNT(modes); i++) {
        leat_ingest_opts o = opts_for(src, 1, in_box("none.leat"));
        o.images = modes[i];
        o.memory = 1024;
        assert_int_equal(leat_ingest(&o, NULL, NULL), LEAT_EBUDGET);
        assert_int_equal(access(in_box("none.leat.journal"), F_OK), -1);
        assert_int_equal(access(in_box("none.leat.partial"), F_OK), -1);
    }
}

static void bad_samples_stop_or_are_listed(void **state)
{
    make_photos();
    make_bad_ones();
    const char *src[] = {in_box("photos")};
    leat_ingest_opts o = opts_for(src, 1, in_box("bad.leat"));
    o.strict = 1;
    leat_ingest_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    assert_int_equal(leat_ingest(&o, &st, &err), LEAT_EDATA);
    assert_string_equal(err.key, "class1/cut.jpg");
    assert_true(err.offset > 0);
    assert_int_equal(access(o.output, F_OK), -1); /* nothing under the final name */
    assert_int_equal(leat_packer_discard(o.output, NULL), 0);
    o.skip_errors = 1;
    o.report = in_box("bad.jsonl");
    st = pack_ok(o);
    assert_int_equal(st.samples, IMAGES);
    assert_int_equal(st.skipped, 3);
    char *text = NULL;
    size_t len;
    assert_int_equal(leat__file_load(o.report, 1 << 20, 1, &text, &len, NULL), 0);
    const char *cut = strstr(text, "class1/cut.jpg"), *notes = strstr(text, "class2/notes.txt");
    assert_true(cut && notes && strstr(text, "empty.jpg") && cut < notes);
    leat__free(text);
    o.strict = 0; /* a file without an image extension is not a sample */
    st = pack_ok(o);
    assert_int_equal(st.samples, IMAGES);
    assert_int_equal(st.skipped, 2);
    assert_int_equal(st.ignored, 1);
    assert_string_equal(st.ignored_first, "notes.txt");
    assert_int_equal(remove(in_box("photos/class1/cut.jpg")), 0);
    assert_int_equal(remove(in_box("photos/class1/empty.jpg")), 0);
    assert_int_equal(remove(in_box("photos/class2/notes.txt")), 0);
}

static int stop_after(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped)
{
    return done >= *(uint64_t *)cookie;
}

/* Stopped at many points and resumed each time: the same bytes as in one run. */
static void resumed_runs_give_the_same_bytes(void **state)
{
    make_photos();
    make_bad_ones();
    const char *src[] = {in_box("photos")};
    for (int mode = LEAT_IMAGES_KEEP; mode <= LEAT_IMAGES_TILED; mode++) {
        leat_ingest_opts o = opts_for(src, 1, in_box("whole.leat"));
        o.images = (uint32_t)mode;
        o.skip_errors = o.strict = 1;
        o.page_bytes = 65536;
        o.report = in_box("whole.jsonl");
        leat_ingest_stats st = pack_ok(o), in_one_go = st;
        uint64_t want = hash_of_file(o.output), report = hash_of_file(o.report);
        o.output = in_box(mode == LEAT_IMAGES_KEEP ? "parts-keep.leat" : "parts-tiled.leat");
        o.report = in_box("parts.jsonl");
        o.resume = 1;
        o.progress = stop_after;
        uint64_t limit = 5;
        o.cookie = &limit;
        int rc, rounds = 0;
        while ((rc = leat_ingest(&o, &st, NULL)) == LEAT_ECANCELED) {
            assert_int_equal(access(o.output, F_OK), -1);
            limit += 11;
            rounds++;
        }
        assert_int_equal(rc, 0);
        assert_true(rounds >= 3);
        assert_true(st.resumed > 0);
        assert_int_equal(st.skipped, 3);
        assert_int_equal(st.samples, in_one_go.samples);
        assert_int_equal(st.bytes_in, in_one_go.bytes_in);
        assert_true(hash_of_file(o.output) == want);
        assert_true(hash_of_file(o.report) == report);
    }
    assert_int_equal(remove(in_box("photos/class1/cut.jpg")), 0);
    assert_int_equal(remove(in_box("photos/class1/empty.jpg")), 0);
    assert_int_equal(remove(in_box("photos/class2/notes.txt")), 0);
}

/* Nothing found, everything left out, everything skipped: errors that leave no files. */
static void empty_packs_are_refused(void **state)
{
    leat_error err = {0};
    assert_int_equal(leat__path_mkdir(in_box("none/class"), &err), 0);
    const char *src[] = {in_box("none")};
    leat_ingest_opts o = opts_for(src, 1, in_box("none.leat"));
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "no samples were found"));
    put_text("none/class/notes.txt", "text");
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "notes.txt"));
    put_text("none/class/bad.jpg", "text");
    o.skip_errors = 1;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "the only sample was left out"));
    assert_int_equal(access(o.output, F_OK), -1);
    assert_int_equal(access(in_box("none.leat.journal"), F_OK), -1);
    assert_int_equal(access(in_box("none.leat.partial"), F_OK), -1);
}

/* An older caller's smaller structs are not written past their ends. */
static void older_structs_are_respected(void **state)
{
    struct {
        leat_ingest_stats st;
        char behind[64];
    } s;
    char opts[sizeof(leat_ingest_opts)];
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_ingest_opts o = opts_for(src, 1, in_box("old.leat"));
    memset(&s, 0x5a, sizeof s);
    s.st.struct_size = 24;
    assert_int_equal(leat_ingest(&o, &s.st, NULL), 0);
    assert_int_equal(s.st.samples, IMAGES);
    for (size_t i = 24; i < sizeof s; i++) assert_int_equal(((char *)&s)[i], 0x5a);
    memset(opts, 0x5a, sizeof opts);
    leat_ingest_opts_init_sized((leat_ingest_opts *)opts, 40);
    for (size_t i = 40; i < sizeof opts; i++) assert_int_equal(opts[i], 0x5a);
}

static void a_changed_source_is_not_resumed(void **state)
{
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_ingest_opts o = opts_for(src, 1, in_box("changed.leat"));
    leat_error err = {0};
    uint64_t limit = 40;
    o.page_bytes = 65536;
    o.progress = stop_after;
    o.cookie = &limit;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ECANCELED);
    put_image("photos/class0/aaa.jpg", LEAT__CODEC_JPEG, 30, 30, 1);
    o.progress = NULL;
    o.resume = 1;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "changed"));
    assert_int_equal(remove(in_box("photos/class0/aaa.jpg")), 0);
    o.max_side = 20; /* other settings give another pack */
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ESTATE);
    assert_int_equal(leat_packer_discard(o.output, NULL), 0);
}

/* A file that is already packed changes its bytes, or only its time: not resumed either. */
static void a_changed_file_is_not_resumed(void **state)
{
    make_photos();
    const char *src[] = {in_box("photos")};
    leat_ingest_opts o = opts_for(src, 1, in_box("touched.leat"));
    leat_error err = {0};
    leat_ingest_stats st = {0};
    uint64_t limit = 40;
    put_image("photos/class0/aaa.jpg", LEAT__CODEC_JPEG, 30, 30, 1);
    struct timespec times[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000, .tv_nsec = 5}};
    assert_int_equal(utimensat(AT_FDCWD, in_box("photos/class0/aaa.jpg"), times, 0), 0);
    o.page_bytes = 65536;
    o.progress = stop_after;
    o.cookie = &limit;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ECANCELED);
    times[1].tv_nsec = 6; /* the same bytes, but the time differs */
    assert_int_equal(utimensat(AT_FDCWD, in_box("photos/class0/aaa.jpg"), times, 0), 0);
    o.progress = NULL;
    o.resume = 1;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "the source has changed since the interrupted run"));
    assert_non_null(strstr(err.message, "class0/aaa.jpg"));
    put_image("photos/class0/aaa.jpg", LEAT__CODEC_JPEG, 31, 30, 1);
    times[1].tv_nsec = 5; /* the same time, another size */
    assert_int_equal(utimensat(AT_FDCWD, in_box("photos/class0/aaa.jpg"), times, 0), 0);
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ESTATE);
    put_image("photos/class0/aaa.jpg", LEAT__CODEC_JPEG, 30, 30, 1);
    assert_int_equal(utimensat(AT_FDCWD, in_box("photos/class0/aaa.jpg"), times, 0), 0);
    assert_int_equal(leat_ingest(&o, &st, &err), 0);
    assert_true(st.resumed > 0);
    assert_int_equal(remove(in_box("photos/class0/aaa.jpg")), 0);
}

/* A manifest, tar shard or pack that was rewritten. */
static void a_changed_source_file_is_not_resumed(void **state)
{
    make_photos();
    const char *folder[] = {in_box("photos")}, *src[] = {in_box("source.leat")};
    pack_ok(opts_for(folder, 1, src[0]));
    leat_ingest_opts o = opts_for(src, 1, in_box("copy.leat"));
    leat_error err = {0};
    uint64_t limit = 40;
    o.page_bytes = 65536;
    o.progress = stop_after;
    o.cookie = &limit;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ECANCELED);
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, src[0], times, 0), 0);
    o.progress = NULL;
    o.resume = 1;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ESTATE);
    assert_int_equal(leat_packer_discard(o.output, NULL), 0);
}

static uint64_t payload_of(const char *path)
{
    leat_pack *pack = NULL;
    uint64_t sum = 0;
    assert_int_equal(leat_pack_open(&pack, path, NULL, NULL), 0);
    for (uint64_t i = 0; i < leat_pack_count(pack); i++) {
        leat_pack_row row;
        assert_int_equal(leat_pack_rows(pack, i, 1, &row, NULL), 0);
        sum += row.size;
    }
    leat_pack_close(&pack);
    return sum;
}

/* Repacked, cut or joined, tiles take as many bytes as from the files. */
static void tiles_do_not_grow(void **state)
{
    make_photos();
    const char *folder[] = {in_box("photos")}, *one[] = {in_box("t1.leat")};
    const char *fast[] = {in_box("tfast.leat")};
    leat_ingest_opts o = opts_for(folder, 1, one[0]);
    o.images = LEAT_IMAGES_TILED;
    pack_ok(o);
    uint64_t want = payload_of(one[0]);
    o.output = fast[0];
    o.fast_tiles = 1;
    pack_ok(o);
    assert_true(payload_of(fast[0]) != want);
    leat_ingest_opts again = opts_for(one, 1, in_box("t2.leat"));
    again.images = LEAT_IMAGES_TILED;
    pack_ok(again); /* copied */
    assert_int_equal(payload_of(again.output), want);
    again.trust = 1;
    pack_ok(again);
    assert_int_equal(payload_of(again.output), want);
    again.trust = 0;
    again.sources = fast; /* another density: restored and tiled with the same tables */
    pack_ok(again);
    assert_int_equal(payload_of(again.output), want);
    again.sources = one;
    put_text("tkeys", "class0/img4.jpg\nclass1/img1.jpg\n");
    again.keys = in_box("tkeys");
    pack_ok(again);
    leat_pack *a = NULL, *b = NULL;
    leat_pack_row ra, rb;
    uint64_t at;
    assert_int_equal(leat_pack_open(&a, one[0], NULL, NULL), 0);
    assert_int_equal(leat_pack_open(&b, again.output, NULL, NULL), 0);
    assert_int_equal(leat_pack_find(a, "class1/img1.jpg", 15, &at, NULL), 0);
    assert_int_equal(leat_pack_rows(a, at, 1, &ra, NULL), 0);
    assert_int_equal(leat_pack_rows(b, 1, 1, &rb, NULL), 0);
    assert_int_equal(ra.check, rb.check); /* identical bytes */
    leat_pack_close(&a);
    leat_pack_close(&b);
    /* two packs with different tables: trained again, on the tiles */
    const char *halves[] = {in_box("h1.leat"), in_box("h2.leat")}, *kept[] = {in_box("hk.leat")};
    again.keys = NULL;
    for (int i = 0; i < 2; i++) {
        const char *part[] = {in_box(i == 0 ? "photos/class0" : "photos/class1")};
        leat_ingest_opts h = opts_for(part, 1, halves[i]);
        h.images = LEAT_IMAGES_TILED;
        pack_ok(h);
    }
    leat_ingest_opts join = opts_for(halves, 2, kept[0]);
    pack_ok(join); /* the files of both */
    again.sources = kept;
    again.output = in_box("from-files.leat");
    pack_ok(again);
    join.images = LEAT_IMAGES_TILED;
    join.output = in_box("from-tiles.leat");
    pack_ok(join);
    assert_int_equal(payload_of(join.output), payload_of(again.output));
}

static void packs_are_joined_cut_and_changed(void **state)
{
    make_photos();
    const char *folder[] = {in_box("photos")};
    const char *one[] = {in_box("one.leat")};
    leat_ingest_opts o = opts_for(folder, 1, one[0]);
    o.images = LEAT_IMAGES_TILED;
    pack_ok(o);
    /* tiled to kept, and back to the result of the folder */
    leat_ingest_opts back = opts_for(one, 1, in_box("back.leat"));
    pack_ok(back);
    leat_pack *a = NULL, *b = NULL;
    leat_sample *sa = NULL, *sb = NULL;
    leat_ingest_opts plain = opts_for(folder, 1, in_box("plain.leat"));
    pack_ok(plain);
    assert_int_equal(leat_pack_open(&a, back.output, NULL, NULL), 0);
    assert_int_equal(leat_pack_open(&b, plain.output, NULL, NULL), 0);
    assert_int_equal(leat_sample_open(&sa, a, NULL), 0);
    assert_int_equal(leat_sample_open(&sb, b, NULL), 0);
    for (uint64_t i = 0; i < IMAGES; i++) {
        leat_view va, vb;
        assert_int_equal(leat_sample_read(sa, i, NULL), 0);
        assert_int_equal(leat_sample_read(sb, i, NULL), 0);
        assert_string_equal(leat_sample_key(sa, NULL), leat_sample_key(sb, NULL));
        for (uint32_t f = 0; f < 2; f++) {
            assert_int_equal(leat_sample_field(sa, f, &va, NULL), 0);
            assert_int_equal(leat_sample_field(sb, f, &vb, NULL), 0);
            assert_int_equal(va.size, vb.size);
            assert_memory_equal(va.data, vb.data, va.size);
        }
    }
    leat_sample_close(&sa);
    leat_sample_close(&sb);
    leat_pack_close(&a);
    leat_pack_close(&b);
    /* twice, and a part in another order; an unknown key is an error, or counted */
    const char *both[] = {one[0], plain.output};
    leat_ingest_opts join = opts_for(both, 2, in_box("join.leat"));
    leat_ingest_stats st = pack_ok(join);
    assert_int_equal(st.samples, 2 * IMAGES);
    assert_int_equal(st.duplicate_keys, IMAGES);
    put_text("keys.txt", "class3/img7.jpg\nnothing\nclass0/img0.jpg\n");
    leat_ingest_opts part = opts_for(one, 1, in_box("part.leat"));
    part.keys = in_box("keys.txt");
    assert_int_equal(leat_ingest(&part, NULL, NULL), LEAT_ENOENT);
    assert_int_equal(leat_packer_discard(part.output, NULL), 0);
    part.skip_errors = 1;
    st = pack_ok(part);
    assert_int_equal(st.samples, 2);
    assert_int_equal(st.skipped, 1);
    char key[64];
    size_t n;
    assert_int_equal(leat_pack_open(&a, part.output, NULL, NULL), 0);
    assert_int_equal(leat_pack_key(a, 0, key, sizeof key, &n, NULL), 0);
    assert_string_equal(key, "class3/img7.jpg");
    leat_pack_close(&a);
}

static void wrong_options_are_refused(void **state)
{
    make_photos();
    leat_error err = {0};
    const char *none[] = {in_box("nothing")};
    leat_ingest_opts o = opts_for(none, 1, in_box("x.leat"));
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_ENOENT);
    put_text("file.xyz", "x");
    const char *odd[] = {in_box("file.xyz")};
    o.sources = odd;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    const char *two[] = {in_box("photos"), in_box("photos")};
    o = opts_for(two, 2, in_box("x.leat"));
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    o = opts_for(two, 1, in_box("x.leat"));
    o.keys = "k";
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    o = opts_for(two, 0, in_box("x.leat"));
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    o = opts_for(two, 1, NULL);
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    o = opts_for(two, 1, in_box("x.leat"));
    o.mix_raw = 2;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_without_a_sample),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(packed_samples_equal_the_source),
        cmocka_unit_test(bad_samples_stop_or_are_listed),
        cmocka_unit_test(resumed_runs_give_the_same_bytes),
        cmocka_unit_test(empty_packs_are_refused),
        cmocka_unit_test(older_structs_are_respected),
        cmocka_unit_test(a_changed_source_is_not_resumed),
        cmocka_unit_test(a_changed_file_is_not_resumed),
        cmocka_unit_test(a_changed_source_file_is_not_resumed),
        cmocka_unit_test(tiles_do_not_grow),
        cmocka_unit_test(packs_are_joined_cut_and_changed),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
