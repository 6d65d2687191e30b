/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/log.h"

static int lines;
static char last[1100];

static void keep(void *cookie, leat_log_level level, const char *line)
{
    (void)cookie;
    lines++;
    snprintf(last, sizeof last, "%d %s", (int)level, line);
}

static void levels_filter(void **state)
{
    leat_log log = {.write = keep};
    (void)state;
    leat__log(NULL, LEAT_LOG_ERROR, "nobody");
    leat__log(&(leat_log){0}, LEAT_LOG_ERROR, "nobody");
    assert_int_equal(lines, 0);
    leat__log(&log, LEAT_LOG_INFO, "default level is %s", "info");
    assert_string_equal(last, "3 default level is info");
    leat__log(&log, LEAT_LOG_DEBUG, "not wanted");
    assert_int_equal(lines, 1);
    log.level = LEAT_LOG_WARN;
    leat__log(&log, LEAT_LOG_INFO, "not wanted");
    leat__log(&log, LEAT_LOG_WARN, "wanted");
    assert_int_equal(lines, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_filter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
