/* SPDX-License-Identifier: Apache-2.0
 *
 * Joined packs: every call is compared with the same call on the part.
 */
#include "leat_test.h"

#include <unistd.h>

#include <leat/pack.h>

#include "base/mem.h"
#include "base/num.h"
#include "pack/reader.h"

static char paths[4][64];
static const char *names[4] = {paths[0], paths[1], paths[2], paths[3]};

enum { A = 0, EMPTY = 1, B = 2, ONE = 3 };

static void write_pack(const char *path, const leat_field *fields, uint32_t count, uint32_t samples,
                       uint32_t from)
{
    static const char *const classes[] = {"cat", "dog", "emu"};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    opts.fields = fields;
    opts.field_count = count;
    opts.page_bytes = 65536;
    opts.no_sync = opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    for (uint32_t i = 0; i < samples; i++) {
        char key[32], text[32];
        leat_pack_value v[3] = {0};
        for (uint32_t f = 0; f < count; f++) {
            v[f].i = from + i;
            v[f].f = from + i + 0.5;
            v[f].data = text;
            v[f].size = (size_t)snprintf(text, sizeof text, "text %u", from + i);
        }
        leat_pack_sample s = {.key = key, .values = v};
        s.key_size = (size_t)snprintf(key, sizeof key, "k%u", from + i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    for (uint32_t f = 0; f < count; f++) {
        if (fields[f].type == LEAT_FIELD_INT && samples > 0)
            assert_ok(leat_packer_classes(p, f, classes, samples > 100 ? 3 : 2, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

static int make(void **state)
{
    static const leat_field a[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                   {.name = "t", .type = LEAT_FIELD_TEXT},
                                   {.name = "score", .type = LEAT_FIELD_FLOAT}};
    static const leat_field b[] = {{.name = "t", .type = LEAT_FIELD_TEXT},
                                   {.name = "label", .type = LEAT_FIELD_INT}};
    static const leat_field c[] = {{.name = "label", .type = LEAT_FIELD_FLOAT},
                                   {.name = "extra", .type = LEAT_FIELD_INT}};
    (void)state;
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "/tmp/leat-join-%d-%d.leat", (int)getpid(), i);
    write_pack(paths[A], a, 3, 150, 0);
    write_pack(paths[EMPTY], a, 3, 0, 0);
    write_pack(paths[B], b, 2, 40, 1000);
    write_pack(paths[ONE], c, 2, 1, 2000);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) unlink(paths[i]);
    return 0;
}

static void samples_are_those_of_the_parts(void **state)
{
    leat_pack *p;
    leat_pack_info info;
    (void)state;
    assert_ok(leat_pack_open_many(&p, names, 4, NULL, NULL));
    assert_int_equal(leat_pack_count(p), 191);
    assert_ok(leat_pack_info_read(p, &info, sizeof info));
    assert_int_equal(info.shards, 4);
    assert_int_equal(leat_pack_part_count(p), 4);
    assert_int_equal(leat_pack_field_count(p), 4); /* label, t, score, extra */
    int label = leat_pack_field_find(p, "label"), t = leat_pack_field_find(p, "t");
    for (uint32_t part = 0; part < 4; part++) {
        uint64_t first;
        leat_pack *of = leat_pack_part(p, part, &first);
        assert_string_equal(leat_pack_path(of), paths[part]);
        for (uint64_t i = 0; i < leat_pack_count(of); i++) {
            char key[32], want[32], text[64], want_text[64];
            size_t size;
            uint64_t found;
            leat_pack_row row, own;
            assert_ok(leat_pack_key(p, first + i, key, sizeof key, &size, NULL));
            assert_ok(leat_pack_key(of, i, want, sizeof want, &size, NULL));
            assert_string_equal(key, want);
            assert_ok(leat_pack_find(p, key, size, &found, NULL));
            assert_int_equal(found, first + i);
            assert_int_equal(leat__pack_part_of_sample(p, first + i), part);
            assert_ok(leat_pack_rows(p, first + i, 1, &row, NULL));
            assert_ok(leat_pack_rows(of, i, 1, &own, NULL));
            assert_int_equal(row.check, own.check);
            assert_int_equal(leat__pack_part_of_shard(p, row.shard), part);
            char *block = calloc(1, row.size + LEAT_PACK_PADDING);
            assert_ok(leat_pack_read(p, first + i, block, row.size + LEAT_PACK_PADDING, NULL));
            leat_pack_cell cell;
            assert_ok(leat_pack_cells(p, (uint32_t)t, first + i, 1, &cell, NULL));
            if (part == ONE) {
                assert_true(cell.absent && cell.reserved);
            } else {
                snprintf(text, sizeof text, "%.*s", (int)cell.length, block + cell.start);
                snprintf(want_text, sizeof want_text, "text %u", (unsigned)(i + (part == B ? 1000 : 0)));
                assert_string_equal(text, want_text);
            }
            free(block);
        }
    }
    assert_null(leat_pack_part(p, 4, NULL));
    int64_t all[191];
    leat__pack_fill(p, (uint32_t)label, -7, 0);
    assert_ok(leat_pack_ints(p, (uint32_t)label, 0, 191, all, NULL));
    for (int i = 0; i < 191; i++) assert_int_equal(all[i], i < 150 ? i : i < 190 ? 1000 + i - 150 : -7);
    assert_string_equal(leat_pack_path(leat__pack_lacking(p, (uint32_t)label)), paths[ONE]);
    assert_string_equal(leat_pack_path(leat__pack_lacking(p, (uint32_t)leat_pack_field_find(p, "score"))),
                        paths[B]);
    const char *const *classes;
    uint64_t count;
    assert_ok(leat_pack_classes(p, (uint32_t)label, &classes, &count, NULL));
    assert_int_equal(count, 3); /* the longest list */
    leat_pack_close(&p);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void digest_covers_all_parts_in_order(void **state)
{
    const char *const two[2] = {paths[A], paths[B]}, *const other[2] = {paths[B], paths[A]};
    leat_pack *p, *q, *r;
    leat_pack_info a, b, c;
    (void)state;
    assert_ok(leat_pack_open_many(&p, two, 2, NULL, NULL));
    assert_ok(leat_pack_open_many(&q, other, 2, NULL, NULL));
    assert_ok(leat_pack_open_many(&r, two, 1, NULL, NULL)); /* returns the pack itself */
    leat_pack_info_read(p, &a, sizeof a);
    leat_pack_info_read(q, &b, sizeof b);
    leat_pack_info_read(r, &c, sizeof c);
    assert_true(a.fingerprint != b.fingerprint && a.fingerprint != c.fingerprint);
    assert_int_equal(leat_pack_part_count(r), 1);
    assert_ptr_equal(leat_pack_part(r, 0, NULL), r);
    leat_pack_close(&p);
    leat_pack_close(&q);
    leat_pack_close(&r);
}

static void errors_name_the_pack(void **state)
{
    const char *const gone[2] = {paths[A], "/tmp/leat-no-such-pack.leat"};
    leat_pack *p;
    leat_error err;
    (void)state;
    assert_code(LEAT_ENOENT, leat_pack_open_many(&p, gone, 2, NULL, &err));
    assert_non_null(strstr(err.message, "no-such-pack"));
    assert_code(LEAT_EINVAL, leat_pack_open_many(&p, gone, 0, NULL, &err));
    assert_code(LEAT_ELIMIT, leat_pack_open_many(&p, gone, 5000, NULL, &err));
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_the_parts),
        cmocka_unit_test(digest_covers_all_parts_in_order),
        cmocka_unit_test(errors_name_the_pack),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
