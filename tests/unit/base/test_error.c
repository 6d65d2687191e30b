/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <errno.h>

static void codes_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(leat_code_name(0), "LEAT_OK");
    assert_string_equal(leat_code_name(LEAT_EDATA), "LEAT_EDATA");
    assert_string_equal(leat_code_text(LEAT_ENOMEM), "out of memory");
    assert_string_equal(leat_code_text(0), "no error");
    assert_string_equal(leat_code_name(-9999), "LEAT_EUNKNOWN");
    assert_string_equal(leat_code_text(-9999), "unknown error");
}

static void codes_are_distinct_and_negative(void **state)
{
    static const int all[] = {
#define VALUE(name, value, text) value,
        LEAT_ERROR_MAP(VALUE)
#undef VALUE
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_true(all[i] < 0);
        for (size_t j = 0; j < i; j++) assert_int_not_equal(all[i], all[j]);
    }
}

static void fail_fills_and_returns_the_code(void **state)
{
    leat_error err;
    (void)state;
    assert_int_equal(leat__fail(&err, LEAT_EDATA, "a.leat: page %d is damaged", 7), LEAT_EDATA);
    assert_int_equal(err.code, LEAT_EDATA);
    assert_string_equal(err.message, "a.leat: page 7 is damaged");
    assert_int_equal(err.sample, -1);
    assert_int_equal(err.offset, -1);
    assert_int_equal(leat__fail(NULL, LEAT_EIO, "no error struct"), LEAT_EIO);
}

static void messages_cannot_forge_lines(void **state)
{
    leat_error err;
    (void)state;
    leat__fail(&err, LEAT_ENOENT, "%s: missing", "evil\n\x1b[2Jname");
    assert_string_equal(err.message, "evil??[2Jname: missing");
    leat__error_at(&err, "k\ny", 3, 4096);
    assert_string_equal(err.key, "k?y");
    assert_int_equal(err.sample, 3);
    assert_int_equal(err.offset, 4096);
    leat__error_at(NULL, "x", 0, 0);
}

static void options_are_names_or_flags(void **state)
{
    leat_error err;
    (void)state;
    leat__fail(&err, LEAT_EINVAL, "`pad_mask` has no effect: `collate` is not pad");
    assert_string_equal(err.message, "pad_mask has no effect: collate is not pad");
    leat__options_as_flags(true);
    leat__fail(&err, LEAT_EINVAL, "`pad_mask` has no effect: `collate` is not pad");
    assert_string_equal(err.message, "--pad-mask has no effect: --collate is not pad");
    leat__fail(&err, LEAT_EINVAL, "%s: `%s` has no effect", "a_b", "window_pages");
    assert_string_equal(err.message, "a_b: --window-pages has no effect");
    leat__error_context(&err, "`cache`");
    assert_string_equal(err.message, "--cache: a_b: --window-pages has no effect");
    leat__fail_errno(&err, ENOENT, "`report`: %s", "a");
    assert_string_equal(err.message, "--report: a: No such file or directory");
    /* what comes from outside is not touched */
    leat__fail(&err, LEAT_EINVAL, "%s: not a `cache`", "`my_file` --x");
    assert_string_equal(err.message, "`my_file` --x: not a --cache");
    leat__options_as_flags(false);
    leat__fail(&err, LEAT_EINVAL, "%s: not a `cache`", "`my_file`");
    assert_string_equal(err.message, "`my_file`: not a cache");
}

/* A message that is cut inside a name keeps its text, and ends. */
static void long_messages_with_options_are_cut(void **state)
{
    char name[sizeof(((leat_error *)0)->message)];
    leat_error err;
    (void)state;
    for (size_t len = sizeof name - 20; len < sizeof name; len++) {
        memset(name, 'x', len - 1);
        name[len - 1] = '\0';
        leat__fail(&err, LEAT_EINVAL, "%s `window_pages` has no effect", name);
        assert_memory_equal(err.message, name, len - 1);
        assert_true(strlen(err.message) < sizeof err.message);
    }
}

static void errno_gives_code_and_text(void **state)
{
    static const struct {
        int sys, code;
    } map[] = {{ENOSPC, LEAT_ENOSPC},       {EDQUOT, LEAT_ENOSPC}, {ENOENT, LEAT_ENOENT},
               {EACCES, LEAT_EPERM},        {EIO, LEAT_EIO},       {ENOMEM, LEAT_ENOMEM},
               {EEXIST, LEAT_EEXIST},       {EINVAL, LEAT_EINVAL}, {ENOSYS, LEAT_ENOTSUP},
               {ETIMEDOUT, LEAT_ETIMEDOUT}, {EAGAIN, LEAT_EAGAIN}, {ECANCELED, LEAT_ECANCELED},
               {EOVERFLOW, LEAT_EOVERFLOW}, {EPIPE, LEAT_EIO}};
    leat_error err;
    (void)state;
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++) {
        assert_int_equal(leat__fail_errno(&err, map[i].sys, "x.leat"), map[i].code);
        assert_int_equal(err.sys_errno, map[i].sys);
    }
    leat__fail_errno(&err, ENOSPC, "out.leat: write at %d", 12);
    assert_string_equal(err.message, "out.leat: write at 12: No space left on device");
    assert_int_equal(leat__fail_errno(NULL, EIO, "x"), LEAT_EIO);
}

static void context_is_prepended(void **state)
{
    leat_error err;
    (void)state;
    leat__fail(&err, LEAT_EDATA, "bad marker");
    assert_int_equal(leat__error_context(&err, "%s", "a.jpg"), LEAT_EDATA);
    assert_string_equal(err.message, "a.jpg: bad marker");
    assert_int_equal(leat__error_context(NULL, "x"), LEAT_EINTERNAL);
    /* longer than the buffer: truncated, never overrun */
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    leat__error_context(&err, "%s", big);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void nomem_names_size_and_purpose(void **state)
{
    leat_error err;
    (void)state;
    assert_code(LEAT_ENOMEM, leat__fail_nomem(&err, 4096, "a page"));
    assert_string_equal(err.message, "out of memory: cannot allocate 4.00 KiB for a page");
}

static int two(leat_error *err)
{
    LEAT_TRY(0);
    LEAT_TRY(leat__fail(err, LEAT_ESTATE, "stop"));
    return 0;
}

static void try_and_go_leave_early(void **state)
{
    leat_error err;
    int rc = 0;
    (void)state;
    assert_code(LEAT_ESTATE, two(&err));
    LEAT_GO(rc, out, 0);
    LEAT_GO(rc, out, two(&err));
    fail_msg("not reached");
out:
    assert_int_equal(rc, LEAT_ESTATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names_and_texts),
        cmocka_unit_test(codes_are_distinct_and_negative),
        cmocka_unit_test(fail_fills_and_returns_the_code),
        cmocka_unit_test(messages_cannot_forge_lines),
        cmocka_unit_test(options_are_names_or_flags),
        cmocka_unit_test(long_messages_with_options_are_cut),
        cmocka_unit_test(errno_gives_code_and_text),
        cmocka_unit_test(context_is_prepended),
        cmocka_unit_test(nomem_names_size_and_purpose),
        cmocka_unit_test(try_and_go_leave_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
