/* SPDX-License-Identifier: Apache-2.0 */
#include "../io/iotest.h"

#include "ingest/bucket_tag.h"
#include "io/file.h"

#include "leat_test.h"

static char *dir;

static leat__bucket_pack at(const char *name)
{
    leat__bucket_pack s = {.path = strdup(it_path(dir, name))};
    char tagged[64];
    snprintf(tagged, sizeof tagged, "%s.tagged", name);
    s.tagged = strdup(it_path(dir, tagged));
    return s;
}

static void forget(leat__bucket_pack *s)
{
    free(s->path);
    free(s->tagged);
}

/* A tag is kept for a resumed run, and another one is drawn for each set. */
static void a_tag_is_kept(void **state)
{
    (void)state;
    dir = it_dir();
    leat__bucket_pack s = at("p.leat"), again = at("p.leat");
    leat__bucket_tag_load(&s);
    assert_string_equal(s.tag, "");
    assert_string_equal(leat__bucket_tag_set(&s), s.path);
    assert_ok(leat__bucket_tag_draw(&s, NULL));
    assert_int_equal(strspn(s.tag, "0123456789abcdef"), 16);
    assert_string_equal(leat__bucket_tag_set(&s), s.tagged);
    leat__bucket_tag_load(&again);
    assert_string_equal(again.tag, s.tag);
    assert_ok(leat__bucket_tag_draw(&again, NULL));
    assert_string_not_equal(again.tag, s.tag);
    leat__bucket_tag_drop(&s);
    leat__bucket_tag_load(&again);
    assert_string_equal(again.tag, "");
    assert_ok(leat__file_store(it_path(dir, "p.leat.tag"), "0123456789abcdeg", 16, NULL)); /* damaged */
    leat__bucket_tag_load(&s);
    assert_string_equal(s.tag, "");
    forget(&s);
    forget(&again);
    it_rmdir(dir);
    assert_no_leaks();
}

/* The record of a request ends when the server refuses it, and when another tag is drawn. */
static void a_request_is_recorded(void **state)
{
    uint64_t of;
    (void)state;
    dir = it_dir();
    leat__bucket_pack s = at("p.leat");
    assert_false(leat__bucket_was_sent(&s, &of));
    assert_ok(leat__bucket_sending(&s, UINT64_C(0xfedcba9876543210), NULL));
    assert_true(leat__bucket_was_sent(&s, &of));
    assert_true(of == UINT64_C(0xfedcba9876543210));
    leat__bucket_not_sent(&s);
    assert_false(leat__bucket_was_sent(&s, &of));
    assert_ok(leat__bucket_sending(&s, 0, NULL));
    assert_true(leat__bucket_was_sent(&s, &of) && of == 0);
    assert_ok(leat__bucket_tag_draw(&s, NULL));
    assert_false(leat__bucket_was_sent(&s, &of));
    forget(&s);
    it_rmdir(dir);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_is_kept),
        cmocka_unit_test(a_request_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
