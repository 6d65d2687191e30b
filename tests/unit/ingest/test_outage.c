/* SPDX-License-Identifier: Apache-2.0 */
#include "../io/webtest.h"

#include <stdatomic.h>

#include "ingest/outage.h"

#include "leat_test.h"

static web server;
static web_file file;
static atomic_bool down;
static char url[128];

static void answer(web_request *q)
{
    if (strstr(q->head, "/bad")) web_reply(q, "403 Forbidden", "", "", 0);
    else if (atomic_load(&down)) web_reply(q, "503 Slow Down", "", "", 0);
    else web_range(q, q->w->cookie, 0);
}

static void begin(void)
{
    web_environment();
    file = (web_file){1000, "\"one\""};
    atomic_store(&down, false);
    web_start(&server, answer, &file);
    snprintf(url, sizeof url, "%s/f", server.url);
}

static bool failed(leat__outage *o, const char *path, int code)
{
    leat_error why;
    (void)leat__fail(&why, code, "no answer");
    return leat__outage_failed(o, path, &why, NULL, NULL) != NULL;
}

static void end(leat__outage *o)
{
    leat__outage_reset(o);
    web_stop(&server);
    assert_no_leaks();
}

static void an_outage_that_continues_or_is_over(void **state)
{
    leat__outage o = {0};
    (void)state;
    begin();
    assert_ok(leat__outage_delivered(&o, url, NULL));
    assert_false(failed(&o, url, LEAT_ENOENT)); /* about the record: nothing is requested */
    assert_false(failed(&o, NULL, LEAT_EIO));   /* not in remote storage */
    assert_int_equal(server.requests, 0);
    assert_true(failed(&o, url, LEAT_EIO)); /* it can be read now */
    assert_int_equal(server.requests, 1);
    atomic_store(&down, true);
    assert_false(failed(&o, url, LEAT_EFORMAT));
    assert_true(failed(&o, url, LEAT_ETIMEDOUT));
    end(&o);
}

static void a_single_object_and_a_dead_host(void **state)
{
    leat__outage o = {0};
    char other[160];
    (void)state;
    begin();
    snprintf(other, sizeof other, "%s/bad", server.url);
    assert_ok(leat__outage_delivered(&o, url, NULL));
    for (int i = 0; i < 20; i++) assert_false(failed(&o, other, LEAT_EPERM));
    for (int i = 0; i < 20; i++) assert_false(failed(&o, "http://127.0.0.1:1/x", LEAT_EIO));
    end(&o);
}

static void before_the_first_several_decide(void **state)
{
    leat__outage o = {0};
    (void)state;
    begin();
    atomic_store(&down, true);
    for (int i = 1; i < LEAT__OUTAGE_FAILURES; i++) assert_false(failed(&o, url, LEAT_EIO));
    assert_ok(leat__outage_delivered(&o, NULL, NULL)); /* a local file */
    assert_true(failed(&o, url, LEAT_EIO));
    end(&o);
}

static bool refused(leat__outage *o, const char *path, int code, const char *answer)
{
    leat_error why;
    (void)leat__fail(&why, code, "x: GET: the server answered %s", answer);
    return leat__outage_failed(o, path, &why, NULL, NULL) != NULL;
}

static void changed_sources_and_removed_buckets(void **state)
{
    leat__outage o = {0};
    (void)state;
    begin();
    assert_true(refused(&o, url, LEAT_ECHANGED, "412"));
    for (int i = 1; i < LEAT__OUTAGE_FAILURES; i++)
        assert_false(refused(&o, url, LEAT_ENOENT, "404 NoSuchBucket"));
    assert_true(refused(&o, url, LEAT_ENOENT, "404 NoSuchBucket"));
    assert_ok(leat__outage_delivered(&o, url, NULL));
    assert_true(refused(&o, url, LEAT_ENOENT, "404 NoSuchBucket: none"));
    assert_true(refused(&o, url, LEAT_ENOENT, "404 ContainerNotFound"));
    assert_false(refused(&o, url, LEAT_ENOENT, "404 NoSuchKey"));
    assert_false(refused(&o, "s3://other/x", LEAT_ENOENT, "404 NoSuchBucket")); /* a dead one of the list */
    assert_int_equal(server.requests, 0);
    end(&o);
}

static int give(void *cookie)
{
    return *(int *)cookie;
}

/* A file that can be opened, but not read in its middle. */
static void ranges_that_cannot_be_read(void **state)
{
    leat__outage o = {0};
    leat_error why;
    int rc = LEAT_EIO;
    const char *words;
    (void)state;
    begin();
    assert_ok(leat__outage_delivered(&o, url, NULL));
    (void)leat__fail(&why, LEAT_EIO, "no answer");
    for (int i = 0; i < 20; i++) assert_null(leat__outage_failed(&o, url, &why, give, &rc));
    rc = 0;
    words = leat__outage_failed(&o, url, &why, give, &rc);
    assert_string_equal(words, "the storage failed for a while: this sample can be read now");
    rc = LEAT_ECHANGED;
    words = leat__outage_failed(&o, url, &why, give, &rc);
    assert_string_equal(words, "the source changed during the run");
    rc = LEAT_EIO;
    atomic_store(&down, true);
    assert_non_null(leat__outage_failed(&o, url, &why, give, &rc));
    end(&o);
}

static void hosts_and_paths(void **state)
{
    leat__outage o = {0};
    char path[400];
    (void)state;
    for (size_t len = 12; len < sizeof path; len++) {
        snprintf(path, sizeof path, "s3://b/%0*d", (int)(len - 8), 0);
        assert_ok(leat__outage_delivered(&o, path, NULL));
        assert_string_equal(o.delivered[0], path);
    }
    assert_int_equal(o.hosts, 1);
    for (int i = 0; i < 2 * LEAT__OUTAGE_HOSTS; i++) {
        snprintf(path, sizeof path, "s3://b%d/x", i);
        assert_ok(leat__outage_delivered(&o, path, NULL));
    }
    assert_int_equal(o.hosts, LEAT__OUTAGE_HOSTS);
    leat__outage_reset(&o);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_that_continues_or_is_over),
        cmocka_unit_test(a_single_object_and_a_dead_host),
        cmocka_unit_test(before_the_first_several_decide),
        cmocka_unit_test(changed_sources_and_removed_buckets),
        cmocka_unit_test(ranges_that_cannot_be_read),
        cmocka_unit_test(hosts_and_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
