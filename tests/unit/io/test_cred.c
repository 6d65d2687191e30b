/* SPDX-License-Identifier: Apache-2.0 */
#include "webtest.h"

#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "io/cred.h"

#include "leat_test.h"

static web server;
static leat__http *http;

static int stale; /* number of times that expired credentials were sent */
static int down;  /* number of requests for /flaky that fail */

/* All metadata services in one; /short returns credentials that expire in two seconds, /past expired ones. */
static void services(web_request *q)
{
    char body[512], until[32], token[64];
    bool brief = strstr(q->head, " /short") != NULL;
    const time_t end = time(NULL) + (brief ? 2 : 3600);
    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime(&end));
    if (strstr(q->head, " /past") != NULL) {
        snprintf(until, sizeof until, "2020-11-18T13:30:00Z");
        stale++;
    }
    if (strstr(q->head, " /flaky") != NULL && down > 0) {
        down--;
        web_reply(q, "500 Oh", "", "", 0);
    } else if (strstr(q->head, "PUT /latest/api/token") != NULL) {
        web_reply(q, "200 OK", "", "imds-token", 10);
    } else if (strstr(q->head, "GET /latest/meta-data/iam/security-credentials/ ") != NULL) {
        web_reply(q, "200 OK", "", "role", 4);
    } else if (strstr(q->head, "GET /latest/meta-data/placement/region ") != NULL) {
        web_reply(q, "200 OK", "", "ap-south-1", 10);
    } else if (strstr(q->head, "Action=AssumeRoleWithWebIdentity") != NULL) {
        int n = snprintf(body, sizeof body,
                         "<R><Credentials><AccessKeyId>web%d</AccessKeyId>"
                         "<SecretAccessKey>ws"
                         "</SecretAccessKey><SessionToken>wt</SessionToken><Expiration>%s</Expiration>"
                         "</Credentials></R>",
                         strstr(q->head, "WebIdentityToken=jwt.x ") != NULL, until);
        web_reply(q, "200 OK", "", body, (size_t)n);
    } else if (strstr(q->head, "/computeMetadata/v1/") != NULL) {
        const char *text = "{\"access_token\":\"ya29.x\",\"expires_in\":3599,\"token_type\":\"Bearer\"}";
        web_reply(q, "200 OK", "", text, strlen(text));
    } else {
        web_header(q, "x-aws-ec2-metadata-token", token, sizeof token);
        if (token[0] == '\0') web_header(q, "authorization", token, sizeof token);
        int n = snprintf(body, sizeof body,
                         "{\"AccessKeyId\":\"id-%s-%d\",\"SecretAccessKey\":\"sec\","
                         "\"Token\":\"tok\",\"Expiration\":\"%s\"}",
                         token, brief ? q->number : 0, until);
        web_reply(q, "200 OK", "", body, (size_t)n);
    }
}

static void begin(void)
{
    web_environment();
    web_start(&server, services, NULL);
    assert_ok(leat__http_ref(&http, NULL));
}

static void end(void)
{
    leat__http_unref(&http);
    web_stop(&server);
    assert_no_leaks();
}

static void expect(leat__scheme scheme, const char *id, const char *token)
{
    leat__creds *c;
    leat__cred cred = {0};
    assert_ok(leat__creds_open(&c, scheme, false, http, NULL));
    assert_ok(leat__creds_get(c, &cred, NULL));
    assert_string_equal(cred.key_id, id);
    if (token == NULL) assert_null(cred.token);
    else assert_string_equal(cred.token, token);
    leat__cred_reset(&cred);
    leat__creds_close(&c);
}

static void ini_files(void **state)
{
    const char *text = "# top\n[default]\nregion = eu\n[profile work]\r\nregion=us-1 \r\n  nested = x\n"
                       "; note\nkey=a=b\n[work]\nregion = other";
    const char *const rows[][3] = {{"default", "region", "eu"},      {"profile work", "region", "us-1"},
                                   {"profile work", "key", "a=b"},   {"work", "region", "other"},
                                   {"profile work", "nested", NULL}, {"none", "region", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *value = leat__ini_value(text, rows[i][0], rows[i][1]);
        if (rows[i][2] == NULL) assert_null(value);
        else assert_string_equal(value, rows[i][2]);
        leat__free(value);
    }
    assert_no_leaks();
}

static void every_source_is_found(void **state)
{
    leat_error err;
    leat__creds *c;
    char url[128], *dir = it_dir(), *file = it_path(dir, "credentials"), *jwt = it_path(dir, "jwt");
    (void)state;
    begin();
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_contains(err.message, "AWS_ACCESS_KEY_ID");
    setenv("AWS_PROFILE", "nope", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_contains(err.message, "the profile 'nope' (AWS_PROFILE) does not exist in ");
    assert_contains(err.message, file);
    FILE *f = fopen(file, "w");
    fputs("[nope]\nregion=eu\n", f);
    fclose(f);
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_contains(err.message, "the profile 'nope' (AWS_PROFILE) has no aws_access_key_id");
    unsetenv("AWS_PROFILE");
    /* the lowest priority first: each next one overrides it */
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url, 1);
    expect(LEAT__SCHEME_S3, "id-imds-token-0", "tok");
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, false, http, NULL));
    assert_string_equal(leat__creds_region(c), "ap-south-1");
    leat__creds_close(&c);
    snprintf(url, sizeof url, "%s/container", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "ctok", 1);
    expect(LEAT__SCHEME_S3, "id-ctok-0", "tok");
    setenv("AWS_PROFILE", "other", 1); /* not replaced by those of the container */
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_contains(err.message, "the profile 'other' (AWS_PROFILE) does not exist in ");
    unsetenv("AWS_PROFILE");
    f = fopen(file, "w");
    fputs("[default]\naws_access_key_id=fid\naws_secret_access_key=fsec\n", f);
    fclose(f);
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    expect(LEAT__SCHEME_S3, "fid", NULL);
    f = fopen(jwt, "w");
    fputs("jwt.x\n", f);
    fclose(f);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", jwt, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    setenv("AWS_ENDPOINT_URL_STS", server.url, 1);
    expect(LEAT__SCHEME_S3, "web1", "wt");
    setenv("AWS_ACCESS_KEY_ID", "eid", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "esec", 1);
    expect(LEAT__SCHEME_S3, "eid", NULL);
    setenv("GCE_METADATA_HOST", server.url + strlen("http://"), 1);
    expect(LEAT__SCHEME_GS, "", "ya29.x");
    it_rmdir(dir);
    end();
}

static void incomplete_keys_of_google(void **state)
{
    static const char *const names[] = {"GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY"};
    (void)state;
    begin();
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29", 1);
    for (size_t i = 0; i < 2; i++) {
        leat__creds *c;
        leat_error err;
        setenv(names[i], "x", 1);
        assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_GS, false, http, &err));
        assert_contains(err.message, " is set, but ");
        assert_contains(err.message, names[1 - i]);
        unsetenv(names[i]);
    }
    unsetenv("GOOGLE_OAUTH_ACCESS_TOKEN");
    end();
}

static void half_of_the_default_profile(void **state)
{
    char *dir = it_dir(), *file = it_path(dir, "credentials");
    leat__creds *c;
    leat_error err;
    (void)state;
    begin();
    FILE *f = fopen(file, "w");
    fputs("[default]\naws_access_key_id=h\n", f);
    fclose(f);
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_contains(err.message, "has no aws_secret_access_key");
    it_rmdir(dir);
    end();
}

static void refreshed_before_expiry(void **state)
{
    leat__creds *c;
    leat__cred cred = {0};
    char url[128], first[64];
    (void)state;
    begin();
    snprintf(url, sizeof url, "%s/short", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, false, http, NULL));
    assert_ok(leat__creds_get(c, &cred, NULL)); /* starts a refresh: they expire soon */
    snprintf(first, sizeof first, "%s", cred.key_id);
    leat__cred_reset(&cred);
    bool fresh = false;
    for (int i = 0; i < 400 && !fresh; i++) {
        int rc = leat__creds_get(c, &cred, NULL);
        assert_true(rc == 0 || rc == LEAT_EAGAIN);
        fresh = rc == 0 && strcmp(cred.key_id, first) != 0;
        leat__cred_reset(&cred);
        usleep(10000);
    }
    assert_true(fresh);
    leat__creds_close(&c);
    end();
}

/* A source that is configured, but incomplete, ends the search: the container's credentials are not used. */
static void incomplete_sources_are_errors(void **state)
{
    static const char *const rows[][4] = {
        {"AWS_PROFILE", "region", "AWS_REGION", "'region' (AWS_PROFILE) has no aws_access_key_id and no"},
        {"AWS_PROFILE", "half", "AWS_REGION", "'half' (AWS_PROFILE) has no aws_secret_access_key"},
        {"AWS_PROFILE", "role", "AWS_REGION", "roles of profiles are not supported: use the output of aws "},
        {"AWS_PROFILE", "tool", "AWS_REGION", "has a credential_process, which is not supported"},
        {"AWS_PROFILE", "sso", "AWS_REGION", "profile sso: not logged in (run aws sso login)"},
        {"AWS_PROFILE", "default", "AWS_REGION", "'default' (AWS_PROFILE) has no aws_access_key_id"},
        {"AWS_ACCESS_KEY_ID", "x", "AWS_REGION", "is set, but AWS_SECRET_ACCESS_KEY is not"},
        {"AWS_SECRET_ACCESS_KEY", "x", "AWS_REGION", "is set, but AWS_ACCESS_KEY_ID is not"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/jwt", "AWS_REGION", "is set, but AWS_ROLE_ARN is not"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/jwt", "AWS_ROLE_ARN", "_TOKEN_FILE: /nowhere/jwt"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere/t", "AWS_REGION", "_TOKEN_FILE: /nowhere/t"},
    };
    char url[128], *dir = it_dir(), *file = it_path(dir, "credentials");
    (void)state;
    begin();
    snprintf(url, sizeof url, "%s/container", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    setenv("AWS_SHARED_CREDENTIALS_FILE", file, 1);
    FILE *f = fopen(file, "w");
    fputs("[default]\nregion=eu\n[region]\nregion=eu\n[half]\naws_access_key_id=h\n[tool]\n"
          "credential_process=x\n[role]\nrole_arn=arn:aws:iam::1:role/r\nsource_profile=two\n",
          f);
    fclose(f);
    f = fopen(it_path(dir, "config"), "w");
    fputs("[profile sso]\nsso_account_id=1\nsso_role_name=r\nsso_start_url=http://x\nsso_region=eu\n", f);
    fclose(f);
    setenv("AWS_CONFIG_FILE", it_path(dir, "config"), 1);
    expect(LEAT__SCHEME_S3, "id--0", "tok"); /* the default profile, which was not named */
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat__creds *c;
        leat_error err;
        setenv(rows[i][0], rows[i][1], 1);
        setenv(rows[i][2], "us-east-1", 1);
        assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
        assert_contains(err.message, rows[i][3]);
        unsetenv(rows[i][0]);
        unsetenv(rows[i][2]);
    }
    setenv("AWS_ROLE_ARN", "arn", 1);
    expect(LEAT__SCHEME_S3, "id--0", "tok"); /* a role alone names no source: SDKs ignore it, too */
    unsetenv("AWS_ROLE_ARN");
    it_rmdir(dir);
    end();
}

/* They go into headers, where a line break would begin another one. */
static void control_characters_are_refused(void **state)
{
    static const char *const rows[][3] = {
        {"AWS_ACCESS_KEY_ID", "AK\nX-Evil: 1", "the environment gives a key ID with a line break"},
        {"AWS_SECRET_ACCESS_KEY", "secret\r", "the environment gives a secret with a line break"},
        {"AWS_SESSION_TOKEN", "tok\r\nen", "the environment gives a token with a line break"},
    };
    (void)state;
    begin();
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat__creds *c;
        leat_error err;
        setenv("AWS_ACCESS_KEY_ID", "id", 1);
        setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        setenv(rows[i][0], rows[i][1], 1);
        assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
        assert_contains(err.message, rows[i][2]);
        assert_null(strstr(err.message, "secret\r"));
    }
    unsetenv("AWS_SESSION_TOKEN");
    setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "tok\nen", 1);
    leat__creds *g;
    assert_code(LEAT_EPERM, leat__creds_open(&g, LEAT__SCHEME_GS, false, http, NULL));
    end();
}

static void expired_on_arrival(void **state)
{
    leat__creds *c;
    leat_error err;
    char url[128];
    (void)state;
    begin();
    stale = 0;
    snprintf(url, sizeof url, "%s/past", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    assert_code(LEAT_EPERM, leat__creds_open(&c, LEAT__SCHEME_S3, false, http, &err));
    assert_string_equal(err.message,
                        "the container's credentials service gives credentials that have expired "
                        "(2020-11-18T13:30:00Z; is this machine's clock right?)");
    assert_int_equal(stale, 2); /* asked again once */
    end();
}

static void keys_of_the_environment_cannot_be_renewed(void **state)
{
    leat__creds *c;
    leat__cred cred = {0};
    char url[128];
    (void)state;
    begin();
    snprintf(url, sizeof url, "%s/container", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, false, http, NULL));
    assert_true(leat__creds_expire(c));
    leat__creds_close(&c);
    setenv("AWS_ACCESS_KEY_ID", "eid", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "esec", 1);
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, false, http, NULL));
    assert_false(leat__creds_expire(c));
    assert_ok(leat__creds_get(c, &cred, NULL)); /* at once: there is nothing to wait for */
    leat__cred_reset(&cred);
    leat__creds_close(&c);
    end();
}

/* One failure of the service does not end a run: three consecutive ones do. */
static void failed_renewals(void **state)
{
    leat__creds *c;
    leat__cred cred = {0};
    leat_error err;
    char url[128];
    (void)state;
    begin();
    down = 0;
    snprintf(url, sizeof url, "%s/flaky", server.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, false, http, NULL));
    for (int failures = 2; failures <= 3; failures++) {
        int rc = LEAT_EAGAIN;
        down = failures;
        assert_true(leat__creds_expire(c));
        for (int i = 0; i < 1500 && rc == LEAT_EAGAIN; i++) {
            rc = leat__creds_get(c, &cred, &err);
            usleep(10000);
        }
        assert_code(failures == 2 ? 0 : LEAT_EPERM, rc);
        assert_int_equal(down, 0);
        leat__cred_reset(&cred);
    }
    assert_contains(err.message, "the container's credentials service does not answer");
    leat__creds_close(&c);
    end();
}

static void anonymous_needs_nothing(void **state)
{
    leat__creds *c;
    leat__cred cred = {0};
    (void)state;
    begin();
    assert_ok(leat__creds_open(&c, LEAT__SCHEME_S3, true, http, NULL));
    assert_ok(leat__creds_get(c, &cred, NULL));
    assert_true(cred.anonymous);
    leat__creds_close(&c);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ini_files),
        cmocka_unit_test(every_source_is_found),
        cmocka_unit_test(refreshed_before_expiry),
        cmocka_unit_test(incomplete_sources_are_errors),
        cmocka_unit_test(incomplete_keys_of_google),
        cmocka_unit_test(half_of_the_default_profile),
        cmocka_unit_test(control_characters_are_refused),
        cmocka_unit_test(expired_on_arrival),
        cmocka_unit_test(keys_of_the_environment_cannot_be_renewed),
        cmocka_unit_test(failed_renewals),
        cmocka_unit_test(anonymous_needs_nothing),
    };
    if (leat__http_ref(&http, NULL) != 0) return 77;
    leat__http_unref(&http);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
