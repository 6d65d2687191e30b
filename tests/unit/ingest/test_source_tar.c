/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <zlib.h>

static void put_shard(const char *name, leat__buf *t)
{
    put_file(name, t->data, t->len);
    leat__buf_reset(t);
}

static leat__buf new_shard(void)
{
    leat__buf t;
    leat__buf_init(&t, LEAT__MEM_INGEST, 1u << 24);
    return t;
}

static void samples_are_groups_of_members(void **state)
{
    leat__buf t = new_shard();
    tar_header(&t, "d/", 0, '5');
    tar_image(&t, "d/001.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "d/001.cls", "42\n");
    tar_text(&t, "d/001.json", "{\"a\":[1,2]}");
    tar_text(&t, "d/001.seg.bin", "mask");
    tar_text(&t, "d/002.cls", " -7 ");
    tar_image(&t, "d/002.JPEG", LEAT__CODEC_JPEG, 2);
    tar_end(&t);
    put_shard("a.tar", &t);
    t = new_shard();
    tar_image(&t, "003.png", LEAT__CODEC_PNG, 3);
    tar_text(&t, "003.cls", "3");
    tar_end(&t);
    put_shard("b.tar", &t);
    const char *paths[] = {in_box("a.tar"), in_box("b.tar")};
    leat__source *s = open_source(paths, 2, NULL);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_int_equal(s->field_count, 4);
    int image = leat__source_field_find(s, "image"), label = leat__source_field_find(s, "label");
    int json = leat__source_field_find(s, "json"), seg = leat__source_field_find(s, "seg.bin");
    assert_int_equal(s->fields[image].type, LEAT_FIELD_IMAGE);
    assert_int_equal(s->fields[label].type, LEAT_FIELD_INT);
    assert_int_equal(s->fields[json].type, LEAT_FIELD_JSON);
    assert_int_equal(s->fields[seg].type, LEAT_FIELD_BYTES);

    static const char *const keys[] = {"d/001.jpg", "d/002.JPEG", "003.png"};
    static const int64_t labels[] = {42, -7, 3};
    for (int i = 0; i < 3; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_false(r->failed);
        assert_string_equal(leat__records_str(run, r->key), keys[i]);
        assert_int_equal(r->items[label].i, labels[i]);
        assert_int_equal(leat__codec_sniff(leat__records_data(run, &r->items[image]), r->items[image].size),
                         i < 2 ? LEAT__CODEC_JPEG : LEAT__CODEC_PNG);
        assert_int_equal(r->items[json].absent, i > 0);
        if (i == 0) assert_memory_equal(leat__records_data(run, &r->items[seg]), "mask", 4);
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static leat__source *open_tar(const char *const *paths, uint32_t n, const char *members, const char *defaults,
                              uint32_t infer)
{
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = n;
    o.members = members;
    o.defaults = defaults;
    o.infer = infer;
    o.max_sample_bytes = 1u << 20;
    leat__source *s = NULL;
    return leat__source_tar(&s, &o, NULL) == 0 ? s : NULL;
}

/* Members that only some samples have: found in the first samples or named, absent or a default. */
static void members_may_be_missing(void **state)
{
    leat__buf t = new_shard();
    tar_image(&t, "0.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "0.junk", "?");
    tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "1.cls", "5");
    tar_text(&t, "1.txt", "one");
    tar_text(&t, "2.cls", "6");
    tar_end(&t);
    put_shard("o.tar", &t);
    const char *paths[] = {in_box("o.tar")};
    for (int way = 0; way < 3; way++) {
        leat__source *s = open_tar(paths, 1, way == 2 ? "txt,JPG,cls" : NULL, "label=-1", way == 1 ? 2 : 0);
        leat__records_pool spare;
        leat__records *run;
        leat__record *r;
        assert_non_null(s);
        leat__records_pool_init(&spare, s->field_count, 2);
        assert_int_equal(s->field_count, way == 2 ? 3 : 4); /* junk is skipped when a list is given */
        int label = leat__source_field_find(s, "label"), txt = leat__source_field_find(s, "txt");
        int image = leat__source_field_find(s, "image");
        if (way == 2) assert_int_equal(txt, 0);
        static const int64_t labels[] = {-1, 5, 6};
        for (int i = 0; i < 3; i++) {
            assert_true(next_record(s, &spare, &run, &r));
            assert_false(r->failed);
            assert_int_equal(r->items[label].i, labels[i]);
            assert_int_equal(r->items[txt].absent, i != 1);
            assert_int_equal(r->items[image].absent, i == 2);
            leat__records_pool_give(&spare, run);
        }
        assert_int_equal(s->missing, way == 2 ? 2 : 3);
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
    }
    assert_null(open_tar(paths, 1, NULL, "label=-1", 1)); /* the first sample has no label */
    static const char *const bad[][2] = {
        {"jpg,,cls", NULL}, {"", NULL},      {".jpg", NULL},
        {"a/b", NULL},      {NULL, "label"}, {NULL, "label=x"},
        {NULL, "txt=1"},    {NULL, "=1"},    {NULL, "label=99999999999999999999"}};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) assert_null(open_tar(paths, 1, bad[i][0], bad[i][1], 0));
}

/* Reads all records of the shards. Returns how many there are, or the error. */
static int count_records(const char *const *paths, uint32_t n, const char *defaults, leat_error *err)
{
    leat__source *s = open_tar(paths, n, NULL, defaults, 0);
    leat__records_pool spare;
    int count = 0, rc = 0;
    bool end = false;
    assert_non_null(s);
    leat__records_pool_init(&spare, s->field_count, 2);
    while (!end && rc == 0) {
        leat__records *run = leat__records_pool_take(&spare);
        rc = s->ops->next(s, run, leat__records_add(run), &end, err);
        leat__records_pool_give(&spare, run);
        count += !end;
    }
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    return rc != 0 ? rc : count;
}

/* The parts of a sample that are not side by side would become several samples. */
static void members_must_be_side_by_side(void **state)
{
    leat_error err = {0};
    for (int i = 0; i < 2; i++) {
        leat__buf t = new_shard();
        tar_image(&t, "0.jpg", LEAT__CODEC_JPEG, 1);
        tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
        tar_text(&t, i == 0 ? "0.cls" : "2.cls", "5");
        tar_end(&t);
        put_shard(i == 0 ? "torn.tar" : "whole.tar", &t);
    }
    const char *torn[] = {in_box("whole.tar"), in_box("torn.tar")};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count_records(torn, 2, i == 0 ? NULL : "label=-1", &err), LEAT_EDATA);
        assert_non_null(strstr(err.message, "torn.tar: the members of \"0\" are not side by side"));
    }
    /* a whole sample again is a duplicate, as is one in another shard */
    leat__buf t = new_shard();
    for (int i = 0; i < 3; i++) {
        tar_image(&t, i == 1 ? "1.jpg" : "0.jpg", LEAT__CODEC_JPEG, 1);
        tar_text(&t, i == 1 ? "1.cls" : "0.cls", "5");
    }
    tar_end(&t);
    put_shard("again.tar", &t);
    const char *again[] = {in_box("again.tar"), in_box("whole.tar")};
    assert_int_equal(count_records(again, 2, NULL, &err), 6);
}

/* A listed ending that no member has is most likely a typo: it fails, and names those that exist. */
static void a_listed_ending_must_exist(void **state)
{
    leat__buf t = new_shard();
    tar_image(&t, "0.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "0.cls", "5");
    tar_end(&t);
    put_shard("k.tar", &t);
    t = new_shard();
    tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "1.caption.txt", "rare");
    tar_end(&t);
    put_shard("l.tar", &t);
    const char *paths[] = {in_box("k.tar"), in_box("l.tar")};
    static const char *const right[][2] = {{"jpg,cls", NULL},
                                           {"caption.txt", NULL}, /* only in the last sample */
                                           {"png", NULL},         /* the ending of another image */
                                           {"jpg,x.cls", "x.cls=3"}};
    for (size_t i = 0; i < LEAT_COUNT(right); i++) {
        leat__source *s = open_tar(paths, 2, right[i][0], right[i][1], 0);
        assert_non_null(s);
        assert_int_equal(leat__source_field_find(s, "jpgg"), -1);
        leat__source_close(&s);
    }
    leat_ingest_opts o;
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 2;
    o.members = "jpg,clss";
    leat__source *s = NULL;
    leat_error err = {0};
    assert_int_equal(leat__source_tar(&s, &o, &err), LEAT_EINVAL);
    assert_string_equal(err.message,
                        "members: no sample has a member \"clss\"; the shards have jpg, cls, caption.txt");
}

/* With a list, members of other kinds are part of no sample, whatever they are. */
static void other_members_are_skipped(void **state)
{
    leat__buf t = new_shard();
    tar_text(&t, "README", "read me");
    tar_image(&t, "0.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "LICENSE", "may");
    tar_text(&t, "0.cls", "5");
    tar_text(&t, "NOTICE.txt", "note");
    tar_header(&t, "latest", 0, '2');
    tar_header(&t, "0.json", 0, '2');
    tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "1.cls", "6");
    tar_text(&t, "0.txt", "not beside 0.jpg");
    tar_end(&t);
    put_shard("m.tar", &t);
    const char *paths[] = {in_box("m.tar")};
    leat__source *s = open_tar(paths, 1, "jpg,cls", NULL, 0);
    assert_non_null(s);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_false(r->failed);
        assert_int_equal(r->items[1].i, 5 + i);
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    assert_int_equal(s->missing, 0);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

/* What is wrong with one sample does not touch the next; a cut shard is one thing left out. */
static void nothing_is_dropped_silently(void **state)
{
    leat__buf t = new_shard();
    tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "1.cls", "1");
    tar_image(&t, "2.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "2.cls", "one");
    tar_image(&t, "3.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "3.cls", "1");
    tar_text(&t, "3.txt", "new");
    tar_image(&t, "4.jpg", LEAT__CODEC_JPEG, 1);
    tar_header(&t, "5.jpg", 0, '2');
    tar_text(&t, "5.cls", "5");
    tar_image(&t, "6.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "6.cls", "6");
    tar_image(&t, "7.jpg", LEAT__CODEC_JPEG, 1);
    t.len -= 512; /* truncated */
    put_shard("cut.tar", &t);
    t = new_shard();
    tar_image(&t, "8.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "8.cls", "8");
    tar_image(&t, "9.jpg", LEAT__CODEC_JPEG, 1);
    tar_text(&t, "9.cls", "-9223372036854775809");
    tar_end(&t);
    put_shard("next.tar", &t);
    const char *paths[] = {in_box("cut.tar"), in_box("next.tar")};
    leat__source *s = open_tar(paths, 2, NULL, NULL, 2);
    assert_non_null(s);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    static const char *const why[] = {NULL,
                                      "not a whole number",
                                      "no member of this kind",
                                      "no \"label\", which other samples have; default label=-1 sets",
                                      "regular file",
                                      NULL,
                                      "truncated",
                                      NULL,
                                      "out of range"}; /* the text of sample 3 is not read: infer is 2 */
    for (int i = 0; i < 9; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_int_equal(r->failed, why[i] != NULL);
        if (why[i] && !strstr(r->error->message, why[i]))
            fail_msg("%d: %s, not %s", i, r->error->message, why[i]);
        if (i == 6) assert_non_null(strstr(leat__records_str(run, r->key), "cut.tar"));
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

/* Writes the shard with gzip, with one bit of its checksum changed if `damaged`. */
static void put_gzip(const char *name, leat__buf *t, bool damaged)
{
    uint8_t *out = malloc(t->len + 4096);
    z_stream z = {.next_in = (Bytef *)t->data,
                  .avail_in = (uInt)t->len,
                  .next_out = out,
                  .avail_out = (uInt)t->len + 4096};
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    if (damaged) out[z.total_out - 8] ^= 1;
    put_file(name, out, z.total_out);
    deflateEnd(&z);
    free(out);
    leat__buf_reset(t);
}

/* The checksum of a compressed shard comes after its last member. Where it is wrong, the sample read last is
 * left out, too, and named. */
static void the_checksum_of_a_shard_is_read(void **state)
{
    for (int damaged = 0; damaged < 2; damaged++) {
        leat__buf t = new_shard();
        tar_image(&t, "1.jpg", LEAT__CODEC_JPEG, 1);
        tar_text(&t, "1.cls", "1");
        tar_image(&t, "2.jpg", LEAT__CODEC_JPEG, 1);
        tar_text(&t, "2.cls", "2");
        tar_end(&t);
        put_gzip("shard.tar.gz", &t, damaged);
        const char *paths[] = {in_box("shard.tar.gz")};
        leat__source *s = open_tar(paths, 1, "jpg,cls", NULL, 0);
        assert_non_null(s);
        leat__records_pool spare;
        leat__records *run;
        leat__record *r;
        leat__records_pool_init(&spare, s->field_count, 2);
        for (int i = 0; i < 2; i++) {
            assert_true(next_record(s, &spare, &run, &r));
            assert_int_equal(r->failed, damaged && i == 1);
            if (r->failed) assert_non_null(strstr(r->error->message, "from sample 2 on"));
            leat__records_pool_give(&spare, run);
        }
        assert_false(next_record(s, &spare, &run, &r));
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
    }
}

static void skimming_gives_the_same_keys(void **state)
{
    leat__buf t = new_shard();
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", i);
        tar_image(&t, name, LEAT__CODEC_JPEG, (uint32_t)i);
    }
    tar_end(&t);
    put_shard("five.tar", &t);
    const char *paths[] = {in_box("five.tar")};
    leat__source *s = open_source(paths, 1, NULL);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    s->skim = true;
    for (int i = 0; i < 4; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_int_equal(leat__records_str(run, r->key)[0], '0' + i);
        assert_int_equal(run->in.len, 0);
        leat__records_pool_give(&spare, run);
    }
    s->skim = false;
    assert_true(next_record(s, &spare, &run, &r));
    assert_string_equal(leat__records_str(run, r->key), "4.jpg");
    assert_true(run->in.len > 0);
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_groups_of_members), cmocka_unit_test(members_may_be_missing),
        cmocka_unit_test(members_must_be_side_by_side),  cmocka_unit_test(a_listed_ending_must_exist),
        cmocka_unit_test(nothing_is_dropped_silently),   cmocka_unit_test(the_checksum_of_a_shard_is_read),
        cmocka_unit_test(skimming_gives_the_same_keys),  cmocka_unit_test(other_members_are_skipped),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
