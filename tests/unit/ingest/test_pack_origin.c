/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "ingest/pack_origin.h"

static char path[64];

static void written_and_read(void **state)
{
    const leat__origin out = {0x123456789abcdef0u, 42, UINT64_MAX};
    leat__origin in = {0};
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-origin-%d", (int)getpid());
    unlink(path);
    assert_false(leat__origin_read(path, &in));
    assert_ok(leat__origin_write(path, &out, NULL));
    assert_true(leat__origin_read(path, &in));
    assert_true(in.identity == out.identity && in.records == out.records && in.chain == out.chain);
    unlink(path);
    assert_no_leaks();
}

/* A cut or foreign file is refused: the pack is made again. */
static void damaged_files_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "leat origin 1\n",
                                        "leat origin 1\n1 2",
                                        "leat origin 1\n1 2 3",
                                        "leat origin 2\n1 2 3\n",
                                        "something else\n"};
    leat__origin in;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *f = fopen(path, "w");
        fputs(texts[i], f);
        fclose(f);
        assert_false(leat__origin_read(path, &in));
    }
    unlink(path);
    assert_code(LEAT_ENOENT, leat__origin_write("/tmp/no-such-folder/origin", &(leat__origin){0}, NULL));
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
