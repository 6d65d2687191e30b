/* SPDX-License-Identifier: Apache-2.0 */
#include "webtest.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/aio.h"
#include "io/http.h"
#include "io/remote.h"

#include "leat_test.h"

#define SIZE (UINT64_C(3) << 20)

static web server;
static web_file file = {SIZE, "\"one\""};
static char url[128];

static void begin(void (*answer)(web_request *q))
{
    web_environment();
    file = (web_file){SIZE, "\"one\""};
    web_start(&server, answer, &file);
    snprintf(url, sizeof url, "%s/f", server.url);
}

static void end(void)
{
    web_stop(&server);
    assert_no_leaks();
}

static void whole(web_request *q)
{
    web_range(q, q->w->cookie, 0);
}

static void check_read(leat__remote *f, uint64_t offset, size_t len, size_t want)
{
    size_t got;
    char *buf = malloc(len);
    assert_ok(leat__remote_pread(f, buf, len, offset, &got, NULL));
    assert_int_equal(got, want);
    it_check(buf, got, offset);
    free(buf);
}

static void reads_by_ranges(void **state)
{
    leat__remote *f;
    (void)state;
    begin(whole);
    assert_ok(leat__remote_open(&f, url, NULL));
    assert_int_equal(server.requests, 1); /* the size and the end of the file came with it */
    assert_int_equal(leat__remote_size(f), SIZE);
    check_read(f, SIZE - 1000, 1000, 1000);
    check_read(f, SIZE - 10, 1000, 10);
    check_read(f, SIZE, 5, 0);
    check_read(f, UINT64_MAX, 5, 0);
    assert_int_equal(server.requests, 1);
    check_read(f, 0, 4096, 4096);
    assert_contains(server.last, "if-match: \"one\"");
    check_read(f, SIZE - (300 << 10), 200 << 10, 200 << 10); /* across the border of the kept
                                                              * part */
    assert_int_equal(server.requests, 3);
    leat__remote_settle(f);
    check_read(f, SIZE - 1000, 1000, 1000);
    assert_int_equal(server.requests, 4);
    leat__remote_close(&f);
    end();
}

/* The first answer has fewer bytes than it says, with a length that matches them. */
static void first_is_short(web_request *q)
{
    char head[128];
    if (q->number != 1) {
        whole(q);
        return;
    }
    snprintf(head, sizeof head, "ETag: \"one\"\r\nContent-Range: bytes %llu-%llu/%llu\r\n",
             (unsigned long long)(SIZE - (256 << 10)), (unsigned long long)SIZE - 1,
             (unsigned long long)SIZE);
    web_reply(q, "206 Partial Content", head, "short", 5);
}

static void a_short_end_is_asked_for_again(void **state)
{
    leat__remote *f;
    (void)state;
    begin(first_is_short);
    assert_ok(leat__remote_open(&f, url, NULL));
    assert_int_equal(server.requests, 2);
    check_read(f, SIZE - 1000, 1000, 1000);
    leat__remote_close(&f);
    end();
}

static const char *wrong_head; /* headers of a wrong answer; NULL: one that is not HTTP */

/* The first answer to the opening is wrong, and the first to a read. */
static void wrong_at_first(web_request *q)
{
    static const char body[100];
    if (q->number % 2 == 0) {
        whole(q);
    } else if (wrong_head != NULL) {
        web_reply(q, "206 Partial Content", wrong_head, body, sizeof body);
    } else {
        q->close = true;
        web_send(q, "SSH-2.0-x\r\n", 11);
    }
}

static void single_wrong_answers_are_retried(void **state)
{
    static const char *const heads[] = {NULL, "ETag: \"one\"\r\n",
                                        "ETag: \"one\"\r\nContent-Range: bytes 0-99/3145728\r\n",
                                        "ETag: \"one\"\r\nContent-Range: bytes abc\r\n",
                                        "ETag: \"one\"\r\nContent-Range: bytes 5-104/777\r\n"};
    leat__remote *f;
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        wrong_head = heads[i];
        begin(wrong_at_first);
        assert_ok(leat__remote_open(&f, url, NULL));
        check_read(f, 5, 100, 100);
        assert_int_equal(server.requests, 4);
        leat__remote_close(&f);
        end();
    }
}

#define RANGES 32
static leat__aio_req reqs[RANGES];
static char bytes[RANGES][8192];

/* Neighbours requested one at a time are joined into few requests. */
static void neighbours_are_joined(void **state)
{
    leat__file *f;
    leat__aio *a;
    leat__aio_req *r;
    (void)state;
    begin(whole);
    assert_ok(leat__file_open(&f, url, LEAT__FILE_READ, NULL));
    assert_ok(leat__aio_open(&a, NULL, NULL));
    for (int i = 0; i < RANGES; i++) {
        uint64_t at = 100000 + (uint64_t)i * 8200;
        reqs[i] = (leat__aio_req){.file = f, .offset = at, .buf = bytes[i], .len = 8192};
        leat__aio_submit(a, &reqs[i]);
    }
    for (int i = 0; i < RANGES; i++) assert_ok(leat__aio_wait(a, &r, UINT64_MAX));
    for (int i = 0; i < RANGES; i++) {
        assert_ok(reqs[i].rc);
        it_check(bytes[i], 8192, reqs[i].offset);
    }
    assert_true(server.requests < 1 + RANGES / 2);
    reqs[0] = (leat__aio_req){.file = f, .offset = SIZE - 10, .buf = bytes[0], .len = 100};
    leat__aio_submit(a, &reqs[0]);
    assert_ok(leat__aio_wait(a, &r, UINT64_MAX));
    assert_int_equal(r->rc, LEAT_EDATA); /* past the end */
    leat__aio_close(&a);
    leat__file_close(&f);
    end();
}

/* The rate is not known yet: large neighbours are requested apart, so that the first one is not late. */
static void the_first_large_ranges_are_not_joined(void **state)
{
    enum { LARGE = 700000, COUNT = 4 };
    static char large[COUNT][LARGE];
    leat__file *f;
    leat__aio *a;
    leat__aio_req *r;
    (void)state;
    begin(whole);
    assert_ok(leat__file_open(&f, url, LEAT__FILE_READ, NULL));
    assert_ok(leat__aio_open(&a, NULL, NULL));
    int before = server.requests;
    for (int i = 0; i < COUNT; i++) {
        reqs[i] = (leat__aio_req){.file = f, .offset = (uint64_t)i * LARGE, .buf = large[i], .len = LARGE};
        leat__aio_submit(a, &reqs[i]);
    }
    for (int i = 0; i < COUNT; i++) assert_ok(leat__aio_wait(a, &r, UINT64_MAX));
    for (int i = 0; i < COUNT; i++) {
        assert_ok(reqs[i].rc);
        it_check(large[i], LARGE, reqs[i].offset);
    }
    assert_true(server.requests - before >= COUNT);
    leat__aio_close(&a);
    leat__file_close(&f);
    end();
}

#define LATE_AT 120 /* a request that is never answered in time */
static atomic_bool served;
static atomic_bool half; /* it sends half of its body before it hangs */

static void one_hangs(web_request *q)
{
    if (q->number != LATE_AT) {
        web_range(q, q->w->cookie, 0);
        return;
    }
    if (atomic_load(&half)) web_range(q, q->w->cookie, 32 << 10);
    for (int i = 0; i < 20000 && !atomic_load(&served); i++) usleep(1000);
}

/* A hanging request is overtaken by a second one; without traffic budget it is not. */
static void late_requests_are_hedged(void **state)
{
    leat__remote *f;
    leat__http_stats before, after;
    (void)state;
    for (int part = 0; part < 2; part++) {
        begin(one_hangs);
        atomic_store(&served, false);
        atomic_store(&half, part == 1);
        assert_ok(leat__remote_open(&f, url, NULL));
        leat__http_read(&before);
        uint64_t at = 0;
        while (server.requests < LATE_AT) {
            at = (at + 1000003) % (SIZE - (400 << 10)); /* never sequential: nothing is
                                                         * prefetched */
            check_read(f, at, 64 << 10, 64 << 10);
        }
        leat__http_read(&after);
        atomic_store(&served, true);
        assert_true(after.hedged > before.hedged);
        assert_int_equal(after.retries, before.retries);
        assert_true(after.bytes_in - before.bytes_in < (LATE_AT + 8) * (UINT64_C(64) << 10));
        leat__remote_close(&f);
        end();
    }
}

static void broken_twice(web_request *q)
{
    web_range(q, q->w->cookie, q->number == 2 ? 100000 : q->number == 3 ? 50000 : 0);
}

static void a_broken_body_is_resumed(void **state)
{
    leat__remote *f;
    leat__http_stats before, after;
    (void)state;
    begin(broken_twice);
    assert_ok(leat__remote_open(&f, url, NULL));
    leat__http_read(&before);
    check_read(f, 0, 1 << 20, 1 << 20);
    leat__http_read(&after);
    assert_contains(server.last, "range: bytes=150000-1048575");
    assert_int_equal(after.bytes_in - before.bytes_in, 1 << 20); /* no byte twice */
    leat__remote_close(&f);
    end();
}

static void replaced(web_request *q)
{
    web_file *f = q->w->cookie;
    if (q->number > 1) f->etag = "\"two\"";
    web_range(q, f, 0);
}

static void replaced_412(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else web_reply(q, "412 Precondition Failed", "", "", 0);
}

static void replaced_416(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else web_reply(q, "416 Range Not Satisfiable", "", "", 0);
}

static void removed_404(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else web_reply(q, "404 Not Found", "", "", 0);
}

static void removed_410(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else web_reply(q, "410 Gone", "", "", 0);
}

static void expect_error(void (*answer)(web_request *q), int code, const char *words)
{
    leat__remote *f;
    leat_error err;
    size_t got;
    char buf[100];
    begin(answer);
    int rc = leat__remote_open(&f, url, &err);
    if (rc == 0) rc = leat__remote_pread(f, buf, sizeof buf, 5, &got, &err);
    assert_int_equal(rc, code);
    assert_contains(err.message, words);
    assert_contains(err.message, url);
    leat__remote_close(&f);
    end();
}

static void no_ranges(web_request *q)
{
    char *body = calloc(1, SIZE);
    web_reply(q, "200 OK", "ETag: \"one\"\r\n", body, SIZE);
    q->close = true;
    free(body);
}

static void other_range(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else
        web_reply(q, "206 Partial Content", "ETag: \"one\"\r\nContent-Range: bytes 0-99/3145728\r\n", bytes,
                  100);
}

static void failing(web_request *q)
{
    if (q->number == 1) web_range(q, q->w->cookie, 0);
    else web_reply(q, "500 Oh", "", "", 0);
}

static void wrong_answers(void **state)
{
    (void)state;
    expect_error(replaced, LEAT_ECHANGED, "replaced while it was being read");
    expect_error(replaced_412, LEAT_ECHANGED, "replaced while it was being read");
    expect_error(replaced_416, LEAT_ECHANGED, "replaced while it was being read");
    expect_error(removed_404, LEAT_ECHANGED, "removed while it was being read");
    expect_error(removed_410, LEAT_ECHANGED, "removed while it was being read");
    expect_error(no_ranges, LEAT_ENOTSUP, "byte ranges");
    expect_error(other_range, LEAT_EIO, "another range");
    expect_error(failing, LEAT_EIO, "500 (bytes 5 to 104)");
}

static const char *refusal; /* answer to the first `refused` GETs */
static int refused;

/* Azure's way: size and ETag by HEAD, then the end by GET. */
static void changing(web_request *q)
{
    web_file *f = q->w->cookie;
    char head[64], *body = calloc(1, f->size);
    snprintf(head, sizeof head, "ETag: %s\r\n", f->etag);
    if (strncmp(q->head, "HEAD", 4) == 0) web_reply(q, "200 OK", head, body, f->size);
    else if (refused > 0) {
        refused--;
        f->etag = "\"two\"";
        f->size = SIZE / 2;
        web_reply(q, refusal, "", "", 0);
    } else web_range(q, f, 0);
    free(body);
}

static void changes_while_it_is_opened(void **state)
{
    static const char *const rows[][2] = {{"412 Precondition Failed", "replaced"},
                                          {"416 Range Not Satisfiable", "replaced"},
                                          {"404 Not Found", "removed"},
                                          {"410 Gone", "removed"}};
    leat__remote *f;
    leat_error err;
    char words[64];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(changing);
        setenv("AZURE_STORAGE_ENDPOINT", server.url, 1);
        setenv("LEAT_ANONYMOUS", "1", 1);
        refusal = rows[i][0];
        refused = 2;
        assert_ok(leat__remote_open(&f, "az://c/f", NULL)); /* opened again: nothing was read yet */
        assert_int_equal(leat__remote_size(f), SIZE / 2);
        check_read(f, 7, 1000, 1000);
        leat__remote_close(&f);
        assert_int_equal(refused, 0);
        refused = 3;
        assert_code(LEAT_ECHANGED, leat__remote_open(&f, "az://c/f", &err));
        snprintf(words, sizeof words, "az://c/f: was %s while it was being read", rows[i][1]);
        assert_string_equal(err.message, words);
        end();
    }
    unsetenv("AZURE_STORAGE_ENDPOINT");
    unsetenv("LEAT_ANONYMOUS");
}

static void never_there(web_request *q)
{
    web_reply(q, refusal, "", "", 0);
}

static void opening_what_is_not_there(void **state)
{
    (void)state;
    refusal = "404 Not Found";
    expect_error(never_there, LEAT_ENOENT, "the server answered 404");
    refusal = "412 Precondition Failed"; /* a condition that was not sent */
    expect_error(never_there, LEAT_ECHANGED, "replaced while it was being read");
    refusal = "416 Range Not Satisfiable";
    expect_error(never_there, LEAT_EIO, "the server answered 416");
}

static atomic_int issued, used; /* session tokens */
static int lasting;             /* tokens from this one on last */

/* A bucket and its credentials service. A token is good for one request, whose body breaks off. */
static void short_tokens(web_request *q)
{
    char text[256] = "", expired[] = "<Error><Code>ExpiredToken</Code></Error>";
    int number = 0;
    if (strstr(q->head, "GET /creds") != NULL) {
        int n = snprintf(text, sizeof text,
                         "{\"AccessKeyId\":\"i\",\"SecretAccessKey\":\"s\",\"Token\":\"t%d\","
                         "\"Expiration\":\"2099-01-01T00:00:00Z\"}",
                         atomic_fetch_add(&issued, 1) + 1);
        web_reply(q, "200 OK", "", text, (size_t)n);
        return;
    }
    web_header(q, "x-amz-security-token", text, sizeof text);
    sscanf(text, "t%d", &number);
    if (number <= atomic_load(&used)) {
        web_reply(q, "400 Bad Request", "", expired, strlen(expired));
        return;
    }
    if (number < lasting) atomic_store(&used, number);
    web_range(q, q->w->cookie, number > 1 && number < lasting ? 100000 : 0);
}

static void begin_tokens(void)
{
    char creds[128];
    begin(short_tokens);
    atomic_store(&issued, 0);
    atomic_store(&used, 0);
    snprintf(creds, sizeof creds, "%s/creds", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds, 1);
    setenv("AWS_ENDPOINT_URL", server.url, 1);
}

static void tokens_are_renewed_as_often_as_they_expire(void **state)
{
    leat__remote *f;
    leat_error err;
    size_t got;
    char *buf = malloc(1 << 20);
    (void)state;
    begin_tokens();
    lasting = 7;
    assert_ok(leat__remote_open(&f, "s3://b/f", NULL));
    check_read(f, 5, 1 << 20, 1 << 20); /* one request, of which six tokens expire */
    assert_int_equal(issued, 7);
    leat__remote_close(&f);
    end();
    begin_tokens();
    lasting = 1;
    assert_ok(leat__remote_open(&f, "s3://b/f", NULL));
    atomic_store(&used, 1000); /* from now on every token is refused */
    assert_code(LEAT_EIO, leat__remote_pread(f, buf, 1000, 5, &got, &err));
    assert_contains(err.message,
                    "gave up after 4 attempts: s3://b/f: GET: the server answered 400 ExpiredToken");
    leat__remote_close(&f);
    end();
    free(buf);
}

static void tiny(web_request *q)
{
    web_reply(q, "200 OK", "ETag: \"t\"\r\n", "all of it", 9);
}

static void empty(web_request *q)
{
    if (strncmp(q->head, "HEAD", 4) == 0) web_reply(q, "200 OK", "", "", 0);
    else web_reply(q, "416 Range Not Satisfiable", "", "", 0);
}

static void small_files(void **state)
{
    leat__remote *f;
    char buf[100];
    size_t got;
    (void)state;
    begin(tiny); /* does not support ranges, which does not matter here */
    assert_ok(leat__remote_open(&f, url, NULL));
    assert_ok(leat__remote_pread(f, buf, sizeof buf, 4, &got, NULL));
    assert_int_equal(got, 5);
    assert_memory_equal(buf, "of it", 5);
    leat__remote_close(&f);
    end();
    begin(empty);
    assert_ok(leat__remote_open(&f, url, NULL));
    assert_int_equal(leat__remote_size(f), 0);
    assert_ok(leat__remote_pread(f, buf, sizeof buf, 0, &got, NULL));
    assert_int_equal(got, 0);
    leat__remote_close(&f);
    end();
}

static void slow(web_request *q)
{
    if (q->number > 1) usleep(500000);
    web_range(q, q->w->cookie, 0);
}

/* Closing a lane does not wait for its reads. */
static void reads_are_canceled(void **state)
{
    leat__file *f;
    leat__aio *a;
    (void)state;
    begin(slow);
    assert_ok(leat__file_open(&f, url, LEAT__FILE_READ, NULL));
    assert_ok(leat__aio_open(&a, NULL, NULL));
    for (int i = 0; i < RANGES; i++) {
        reqs[i] = (leat__aio_req){.file = f, .offset = (uint64_t)i * 50000, .buf = bytes[i], .len = 100};
        leat__aio_submit(a, &reqs[i]);
    }
    leat__aio_close(&a);
    for (int i = 0; i < RANGES; i++) assert_int_equal(reqs[i].rc, LEAT_ECANCELED);
    leat__file_close(&f);
    end();
}

/* A stopped lane ends its reads at once and works again afterwards. */
static void a_lane_is_stopped(void **state)
{
    leat__file *f;
    leat__aio *a;
    leat__aio_req *r;
    (void)state;
    begin(slow);
    assert_ok(leat__file_open(&f, url, LEAT__FILE_READ, NULL));
    assert_ok(leat__aio_open(&a, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        reqs[i] = (leat__aio_req){.file = f, .offset = (uint64_t)i * 50000, .buf = bytes[i], .len = 100};
        if (i == 2) leat__aio_stop_remote(a, true);
        leat__aio_submit(a, &reqs[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_ok(leat__aio_wait(a, &r, UINT64_MAX));
        assert_int_equal(r->rc, LEAT_ECANCELED);
    }
    leat__aio_stop_remote(a, false);
    leat__aio_submit(a, &reqs[0]);
    assert_ok(leat__aio_wait(a, &r, UINT64_MAX));
    assert_ok(r->rc);
    it_check(bytes[0], 100, 0);
    leat__aio_close(&a);
    leat__file_close(&f);
    end();
}

static atomic_int range_rc = 1;

static void note_rc(leat__range *r, int rc, const leat_error *err)
{
    (void)r, (void)err;
    atomic_store(&range_rc, rc);
}

static int read_in_child(leat__remote *f)
{
    static uint8_t mine[5000];
    leat__range other = {.buf = mine, .len = 10, .done = note_rc};
    size_t got;
    alarm(30); /* ends a hang */
    leat__remote_cancel(f, NULL);
    leat__remote_read(f, &other);
    if (atomic_load(&range_rc) != LEAT_EFORK) return 1;
    if (leat__remote_pread(f, mine, sizeof mine, 7, &got, NULL) != 0 || got != sizeof mine) return 2;
    for (size_t i = 0; i < got; i++)
        if (mine[i] != it_byte(7 + i)) return 3;
    leat__remote_close(&f);
    return f == NULL ? 0 : 4;
}

/* A request of the parent is in flight at the fork: the child does not wait for it. */
static void a_forked_child_reads_on(void **state)
{
    static uint8_t mine[1000];
    leat__range range = {.offset = 100, .buf = mine, .len = sizeof mine, .done = note_rc};
    leat__remote *f;
    int status;
    (void)state;
    begin(slow);
    assert_ok(leat__remote_open(&f, url, NULL));
    for (int unused = 0; unused < 2; unused++) { /* a child that does not read closes it, too */
        atomic_store(&range_rc, 1);
        leat__remote_read(f, &range);
        pid_t pid = fork();
        if (pid == 0) {
            if (unused == 0) _exit(read_in_child(f));
            alarm(30);
            leat__remote_close(&f);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        for (int i = 0; i < 20000 && atomic_load(&range_rc) == 1; i++) usleep(1000);
        assert_int_equal(atomic_load(&range_rc), 0);
        it_check(mine, sizeof mine, 100);
    }
    leat__remote_close(&f);
    end();
}

int main(void)
{
    leat__http *http;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_by_ranges),
        cmocka_unit_test(a_short_end_is_asked_for_again),
        cmocka_unit_test(single_wrong_answers_are_retried),
        cmocka_unit_test(neighbours_are_joined),
        cmocka_unit_test(the_first_large_ranges_are_not_joined),
        cmocka_unit_test(late_requests_are_hedged),
        cmocka_unit_test(a_broken_body_is_resumed),
        cmocka_unit_test(wrong_answers),
        cmocka_unit_test(changes_while_it_is_opened),
        cmocka_unit_test(opening_what_is_not_there),
        cmocka_unit_test(tokens_are_renewed_as_often_as_they_expire),
        cmocka_unit_test(small_files),
        cmocka_unit_test(reads_are_canceled),
        cmocka_unit_test(a_lane_is_stopped),
        cmocka_unit_test(a_forked_child_reads_on),
    };
    web_environment();
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
