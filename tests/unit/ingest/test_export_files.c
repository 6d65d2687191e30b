/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <leat/pack.h>

#include "io/file.h"

static void pack(const char *const *src, uint32_t n, const char *out, leat_image_mode mode)
{
    leat_ingest_opts o;
    leat_error err = {0};
    leat_ingest_opts_init(&o);
    o.sources = src;
    o.source_count = n;
    o.output = out;
    o.images = mode;
    o.replace = o.no_sync = 1;
    if (leat_ingest(&o, NULL, &err) != 0) fail_msg("%s", err.message);
}

static int export(const char *from, const char *to, const char *keys, leat_export_stats *st, leat_error *err)
{
    leat_export_opts o;
    leat_export_opts_init(&o);
    o.pack = from;
    o.folder = to;
    o.keys = keys;
    return leat_export(&o, st, err);
}

static void same_file(const char *a, const char *b)
{
    char *da = NULL, *db = NULL;
    size_t na, nb;
    assert_int_equal(leat__file_load(a, 1u << 24, 0, &da, &na, NULL), 0);
    assert_int_equal(leat__file_load(b, 1u << 24, 0, &db, &nb, NULL), 0);
    assert_int_equal(na, nb);
    assert_memory_equal(da, db, na);
    leat__free(da);
    leat__free(db);
}

static void kept_and_tiled_files_are_restored(void **state)
{
    put_image("src/a/1.jpg", LEAT__CODEC_JPEG, 100, 50, 1);
    put_image("src/b/deep/2.jpg", LEAT__CODEC_JPEG, 90, 80, 2);
    put_image("src/b/3.png", LEAT__CODEC_PNG, 33, 44, 3);
    static const char *const files[] = {"a/1.jpg", "b/deep/2.jpg", "b/3.png"};
    const char *src[] = {in_box("src")};
    for (int mode = LEAT_IMAGES_KEEP; mode <= LEAT_IMAGES_TILED; mode++) {
        char to[64], a[128], b[128];
        leat_export_stats st;
        snprintf(to, sizeof to, "out%d", mode);
        pack(src, 1, in_box("p.leat"), (leat_image_mode)mode);
        assert_int_equal(export(in_box("p.leat"), in_box(to), NULL, &st, NULL), 0);
        assert_int_equal(st.files, 3);
        assert_int_equal(st.changed, 0);
        for (int i = 0; i < 3; i++) {
            snprintf(a, sizeof a, "src/%s", files[i]);
            snprintf(b, sizeof b, "%s/%s", to, files[i]);
            same_file(in_box(a), in_box(b));
        }
        /* a second run finds existing files */
        assert_int_equal(export(in_box("p.leat"), in_box(to), NULL, &st, NULL), LEAT_EEXIST);
    }
}

static void pixels_are_exported_as_png(void **state)
{
    put_image("raw/1.png", LEAT__CODEC_PNG, 33, 44, 3);
    put_image("raw/2.jpg", LEAT__CODEC_JPEG, 33, 44, 3);
    const char *src[] = {in_box("raw")};
    leat_export_stats st;
    pack(src, 1, in_box("r.leat"), LEAT_IMAGES_RAW);
    put_text("some.txt", "2.jpg\n");
    assert_int_equal(export(in_box("r.leat"), in_box("raw-some"), in_box("some.txt"), &st, NULL), 0);
    assert_int_equal(st.files, 1);
    assert_int_equal(st.changed, 1);
    assert_int_equal(access(in_box("raw-some/2.jpg.png"), F_OK), 0);
    put_text("some.txt", "missing\n");
    assert_int_equal(export(in_box("r.leat"), in_box("raw-some"), in_box("some.txt"), &st, NULL),
                     LEAT_ENOENT);
}

static void members_of_tar_samples_are_restored(void **state)
{
    leat__buf t;
    leat_export_stats st;
    leat__buf_init(&t, LEAT__MEM_INGEST, 1u << 20);
    tar_image(&t, "d/7.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "d/7.cls", "5");
    tar_text(&t, "d/7.json", "{\"k\": 1}");
    tar_text(&t, "d/7.mask.bin", "1010");
    tar_end(&t);
    put_file("s.tar", t.data, t.len);
    leat__buf_reset(&t);
    const char *src[] = {in_box("s.tar")};
    pack(src, 1, in_box("s.leat"), LEAT_IMAGES_TILED);
    assert_int_equal(export(in_box("s.leat"), in_box("members"), NULL, &st, NULL), 0);
    assert_int_equal(st.files, 4);
    put_text("want/7.cls", "5");
    put_text("want/7.json", "{\"k\": 1}");
    put_text("want/7.mask.bin", "1010");
    same_file(in_box("members/d/7.cls"), in_box("want/7.cls"));
    same_file(in_box("members/d/7.json"), in_box("want/7.json"));
    same_file(in_box("members/d/7.mask.bin"), in_box("want/7.mask.bin"));
}

static void keys_that_leave_the_folder_are_refused(void **state)
{
    static const char *const bad[] = {"../out.jpg", "/abs.jpg", "a/../../b.jpg", "a//b.jpg",
                                      "./x.jpg",    "",         "a/.."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        leat_packer *p = NULL;
        leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
        leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
        leat_error err = {0};
        o.fields = &field;
        o.field_count = 1;
        o.replace = o.no_sync = 1;
        leat__buf image = make_image(LEAT__CODEC_JPEG, 20, 20, 1);
        leat_pack_value v = {
            .data = image.data,
            .size = image.len,
            .image = {.width = 20, .height = 20, .codec = 1, .channels = 3, .orientation = 1}};
        leat_pack_sample s = {.key = bad[i], .key_size = strlen(bad[i]), .values = &v};
        assert_int_equal(leat_packer_open(&p, in_box("evil.leat"), &o, NULL), 0);
        assert_int_equal(leat_packer_append(p, &s, NULL), 0);
        assert_int_equal(leat_packer_finish(p, NULL, NULL), 0);
        leat_packer_close(&p);
        leat__buf_reset(&image);
        assert_int_equal(export(in_box("evil.leat"), in_box("evil/deep"), NULL, NULL, &err), LEAT_EPERM);
        assert_non_null(strstr(err.message, "not a path inside"));
    }
    assert_int_equal(access(in_box("out.jpg"), F_OK), -1);
    assert_int_equal(access(in_box("evil/out.jpg"), F_OK), -1);
}

static void put_sample(leat_packer *p, const char *key, size_t len)
{
    leat__buf image = make_image(LEAT__CODEC_JPEG, 20, 20, 1);
    leat_pack_value v = {.data = image.data,
                         .size = image.len,
                         .image = {.width = 20, .height = 20, .codec = 1, .channels = 3, .orientation = 1}};
    leat_pack_sample s = {.key = key, .key_size = len, .values = &v};
    assert_int_equal(leat_packer_append(p, &s, NULL), 0);
    leat__buf_reset(&image);
}

/* Odd but legal names are restored; samples that cannot be written are counted, and the rest
 * follows. */
static void odd_keys_do_not_stop_the_others(void **state)
{
    static const char *const good[] = {"back\\slash.jpg", "new\nline.jpg", "-rf",       "n\xff\xfe.jpg",
                                       "dots...",         "a b/ .x",       "*?$(x).jpg"};
    char name[300];
    leat_packer *p = NULL;
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_error err = {0};
    leat_export_stats st = {0};
    o.fields = &field;
    o.field_count = 1;
    o.replace = o.no_sync = 1;
    memset(name, 'n', sizeof name);
    assert_int_equal(leat_packer_open(&p, in_box("odd.leat"), &o, NULL), 0);
    put_sample(p, "../up.jpg", 9);
    put_sample(p, name, sizeof name); /* longer than a file name may be */
    put_sample(p, "a\0b", 3);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) put_sample(p, good[i], strlen(good[i]));
    put_sample(p, good[0], strlen(good[0])); /* twice */
    put_sample(p, "-rf/inside.jpg", 14);     /* below a file */
    assert_int_equal(leat_packer_finish(p, NULL, NULL), 0);
    leat_packer_close(&p);
    assert_int_equal(export(in_box("odd.leat"), in_box("odd"), NULL, &st, &err), LEAT_EPERM);
    assert_non_null(strstr(err.message, "5 samples were not exported, the first: "));
    assert_int_equal(st.samples, 7);
    assert_int_equal(st.failed, 5);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(name, sizeof name, "odd/%s", good[i]);
        assert_int_equal(access(in_box(name), F_OK), 0);
    }
    assert_int_equal(access(in_box("up.jpg"), F_OK), -1);
}

/* `replace` is for files of earlier runs: two samples with one key never share a file. */
static void replace_keeps_the_files_of_this_run(void **state)
{
    put_image("one/c/x.jpg", LEAT__CODEC_JPEG, 100, 50, 1);
    put_image("two/c/x.jpg", LEAT__CODEC_JPEG, 60, 70, 2);
    for (int i = 0; i < 1500; i++) { /* more names than the first table of names holds */
        char name[32];
        snprintf(name, sizeof name, "one/c/%d.jpg", i);
        put_image(name, LEAT__CODEC_JPEG, 8, 8, 1);
    }
    const char *one[] = {in_box("one")}, *two[] = {in_box("two")};
    pack(one, 1, in_box("one.leat"), LEAT_IMAGES_KEEP);
    pack(two, 1, in_box("two.leat"), LEAT_IMAGES_KEEP);
    const char *both[] = {in_box("one.leat"), in_box("two.leat")};
    pack(both, 2, in_box("both.leat"), LEAT_IMAGES_KEEP);
    put_text("twice/c/x.jpg", "of an earlier run");
    leat_export_opts o;
    leat_export_stats st = {0};
    leat_error err = {0};
    leat_export_opts_init(&o);
    o.pack = in_box("both.leat");
    o.folder = in_box("twice");
    o.replace = 1;
    assert_int_equal(leat_export(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "twice/c/x.jpg: an earlier sample of the pack was"));
    assert_int_equal(err.sample, 1501);
    assert_int_equal(st.samples, 1501);
    assert_int_equal(st.files, 1501);
    assert_int_equal(st.failed, 1);
    same_file(in_box("twice/c/x.jpg"), in_box("one/c/x.jpg"));
    o.pack = in_box("two.leat"); /* a later run replaces it */
    assert_int_equal(leat_export(&o, &st, &err), 0);
    same_file(in_box("twice/c/x.jpg"), in_box("two/c/x.jpg"));
}

/* A key may be the temporary name of another one: neither loses its bytes. */
static void temporary_names_spare_files_of_this_run(void **state)
{
    leat_packer *p = NULL;
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_export_stats st = {0};
    leat_error err = {0};
    o.fields = &field;
    o.field_count = 1;
    o.replace = o.no_sync = 1;
    assert_int_equal(leat_packer_open(&p, in_box("named.leat"), &o, NULL), 0);
    put_sample(p, "a.jpg", 5);
    put_sample(p, "a.jpg.partial", 13);
    put_sample(p, "d/b.jpg.partial", 15);
    put_sample(p, "d/b.jpg", 7);
    assert_int_equal(leat_packer_finish(p, NULL, NULL), 0);
    leat_packer_close(&p);
    assert_int_equal(export(in_box("named.leat"), in_box("named"), NULL, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "its temporary name d/b.jpg.partial"));
    assert_int_equal(st.samples, 3);
    assert_int_equal(access(in_box("named/a.jpg.partial"), F_OK), 0);
    assert_int_equal(access(in_box("named/d/b.jpg.partial"), F_OK), 0);
}

/* Shards of a longer run would be read as a part of the new one. */
static void replace_removes_later_shards(void **state)
{
    leat_packer *p = NULL;
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_export_stats st = {0};
    leat_error err = {0};
    o.fields = &field;
    o.field_count = 1;
    o.replace = o.no_sync = 1;
    assert_int_equal(leat_packer_open(&p, in_box("many.leat"), &o, NULL), 0);
    for (int i = 0; i < 4; i++) put_sample(p, (char[]){(char)('a' + i), '\0'}, 1);
    assert_int_equal(leat_packer_finish(p, NULL, NULL), 0);
    leat_packer_close(&p);
    leat_export_opts x;
    leat_export_opts_init(&x);
    x.pack = strdup(in_box("many.leat"));
    x.folder = strdup(in_box("tars"));
    x.to = LEAT_EXPORT_WEBDATASET;
    x.shard_bytes = 1;
    assert_int_equal(leat_export(&x, &st, &err), 0);
    assert_int_equal(access(in_box("tars/00003.tar"), F_OK), 0);
    /* a gap, and a shard that another tool has changed: it stays and is named */
    assert_int_equal(unlink(in_box("tars/00002.tar")), 0);
    FILE *f = fopen(in_box("tars/00001.tar"), "a");
    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    x.replace = 1;
    x.shard_bytes = 1 << 30;
    assert_int_equal(leat_export(&x, &st, &err), 0);
    assert_int_equal(st.samples, 4);
    assert_int_equal(st.removed, 0);
    assert_int_equal(st.stayed, 2);
    assert_string_equal(st.stayed_first, "00001.tar");
    assert_int_equal(unlink(in_box("tars/00003.tar")), 0);
    assert_int_equal(access(in_box("tars/00000.tar"), F_OK), 0);
    assert_int_equal(unlink(in_box("tars/00001.tar")), 0);
    assert_int_not_equal(access(in_box("tars/00003.tar"), F_OK), 0);
    /* a file of the user in the place of a later shard: found when that one begins, all stays */
    struct stat before, after;
    f = fopen(in_box("tars/00002.tar"), "w");
    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    assert_int_equal(stat(in_box("tars/00000.tar"), &before), 0);
    x.shard_bytes = 1;
    assert_int_equal(leat_export(&x, &st, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "00002.tar: is not an unchanged shard of leat export"));
    assert_int_equal(st.samples + st.files + st.failed, 0);
    assert_int_equal(stat(in_box("tars/00000.tar"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(stat(in_box("tars/00002.tar"), &after), 0);
    assert_int_equal(after.st_size, 4);
    assert_int_not_equal(access(in_box("tars/00001.tar.partial"), F_OK), 0);
    free((char *)x.pack);
    free((char *)x.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_and_tiled_files_are_restored),
        cmocka_unit_test(pixels_are_exported_as_png),
        cmocka_unit_test(replace_removes_later_shards),
        cmocka_unit_test(members_of_tar_samples_are_restored),
        cmocka_unit_test(keys_that_leave_the_folder_are_refused),
        cmocka_unit_test(odd_keys_do_not_stop_the_others),
        cmocka_unit_test(replace_keeps_the_files_of_this_run),
        cmocka_unit_test(temporary_names_spare_files_of_this_run),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
