/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of credentials: see cred.h. Each source fills a leat__cred, returns LEAT_ENOENT when it is not
 * configured (the next one is tried), or fails. Metadata services are queried once with short time-outs,
 * because most machines have none.
 */
#include "io/cred.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/xml.h"

#define EARLY_NS (300 * LEAT_NS_PER_S) /* refresh this long before they expire */
#define FAILURES_MAX 3u                /* consecutive failed refreshes before requests fail */
#define FILE_MAX_BYTES (1u << 20)
#define IMDS "http://169.254.169.254"
#define GCE "http://metadata.google.internal"

struct leat__creds {
    leat__scheme scheme;
    leat__http *http; /* owned by the store */
    leat__mutex lock; /* guards all fields below */
    leat__cred now;
    bool refreshing;
    uint64_t retry_ns; /* monotonic: no refresh before this time */
    leat__thread thread;
    uint32_t failures;  /* consecutive refreshes that failed */
    leat_error failure; /* of the last failed refresh */
    char region[64];    /* of the instance; set by the first fetch */
};

static void wipe(void *data, size_t len)
{
    volatile char *p = data;
    while (len-- > 0) *p++ = 0;
}

static void drop_secret(char *text)
{
    if (text != NULL) wipe(text, strlen(text));
    leat__free(text);
}

void leat__cred_reset(leat__cred *c)
{
    drop_secret(c->token);
    wipe(c, sizeof *c);
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* Reads two variables that belong together. LEAT_ENOENT: neither is set. One without the other is an error,
 * because the next source may be another account. */
static int env_pair(const char *scheme, const char *first, const char *second, const char **a, const char **b,
                    leat_error *err)
{
    *a = env(first);
    *b = env(second);
    if (*a == NULL && *b == NULL) return LEAT_ENOENT;
    if (*a != NULL && *b != NULL) return 0;
    return leat__fail(err, LEAT_EPERM, "no credentials for %s: %s is set, but %s is not", scheme,
                      *a != NULL ? first : second, *a != NULL ? second : first);
}

static int set_cred(leat__cred *c, const char *id, const char *secret, const char *token)
{
    if (strlen(id) >= sizeof c->key_id || strlen(secret) >= sizeof c->secret) return LEAT_ELIMIT;
    snprintf(c->key_id, sizeof c->key_id, "%s", id);
    snprintf(c->secret, sizeof c->secret, "%s", secret);
    if (token == NULL || *token == '\0') return 0;
    c->token = leat__strdup(LEAT__MEM_IO, token);
    return c->token != NULL ? 0 : LEAT_ENOMEM;
}

/* ---- files ------------------------------------------------------------------------------- */

static char *copy_trimmed(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t')) from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
    return leat__strndup(LEAT__MEM_IO, from, (size_t)(to - from));
}

static bool same(const char *from, const char *to, const char *word)
{
    while (from < to && (*from == ' ' || *from == '\t')) from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
    return (size_t)(to - from) == strlen(word) && memcmp(from, word, (size_t)(to - from)) == 0;
}

char *leat__ini_value(const char *text, const char *section, const char *key)
{
    bool inside = false;
    for (const char *line = text; *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const char *equals = memchr(line, '=', (size_t)(end - line));
        const char *close = memchr(line, ']', (size_t)(end - line));
        if (*line == '[' && close != NULL) inside = same(line + 1, close, section);
        else if (inside && *line != '#' && *line != ';' && *line != ' ' && equals != NULL &&
                 same(line, equals, key))
            return copy_trimmed(equals + 1, end);
        line = *end != '\0' ? end + 1 : end;
    }
    return NULL;
}

/* True when the file has the line "[section]". */
static bool has_section(const char *text, const char *section)
{
    for (const char *line = text; *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        const char *close = memchr(line, ']', (size_t)(end - line));
        if (*line == '[' && close != NULL && same(line + 1, close, section)) return true;
        line = *end != '\0' ? end + 1 : end;
    }
    return false;
}

/* Sets `path` to ~/.aws/NAME, or to the file that `variable` names. */
static void aws_path(const char *variable, const char *name, char path[4096])
{
    const char *given = env(variable), *home = env("HOME");
    if (given != NULL) snprintf(path, 4096, "%s", given);
    else snprintf(path, 4096, "%s/.aws/%s", home != NULL ? home : "~", name);
}

/* Loads the file that aws_path names; NULL when it cannot be read. */
static char *aws_file(const char *variable, const char *name)
{
    char path[4096];
    char *text = NULL;
    size_t len;
    if (env(variable) == NULL && env("HOME") == NULL) return NULL;
    aws_path(variable, name, path);
    return leat__file_load(path, FILE_MAX_BYTES, 1, &text, &len, NULL) == 0 ? text : NULL;
}

static const char *profile_name(void)
{
    const char *name = env("AWS_PROFILE");
    if (name == NULL) name = env("AWS_DEFAULT_PROFILE");
    return name != NULL ? name : "default";
}

static char *config_value(const char *kind, const char *name, const char *key)
{
    char section[300];
    char *text = aws_file("AWS_CONFIG_FILE", "config"), *value = NULL;
    bool plain = strcmp(kind, "profile") == 0 && strcmp(name, "default") == 0;
    snprintf(section, sizeof section, "%s%s%s", plain ? "" : kind, plain ? "" : " ", name);
    if (text != NULL) value = leat__ini_value(text, section, key);
    drop_secret(text);
    return value;
}

char *leat__profile_value(const char *key)
{
    char *text = aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), *value = NULL;
    if (text != NULL) value = leat__ini_value(text, profile_name(), key);
    drop_secret(text);
    return value != NULL ? value : config_value("profile", profile_name(), key);
}

static bool profile_named(void)
{
    return env("AWS_PROFILE") != NULL || env("AWS_DEFAULT_PROFILE") != NULL;
}

/* True when a profile was named that neither file has. */
static bool profile_missing(void)
{
    char section[300];
    if (!profile_named()) return false;
    char *own = aws_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    char *config = aws_file("AWS_CONFIG_FILE", "config");
    const char *name = profile_name();
    snprintf(section, sizeof section, "%s%s", strcmp(name, "default") == 0 ? "" : "profile ", name);
    bool there = (own != NULL && has_section(own, name)) || (config != NULL && has_section(config, section));
    drop_secret(own);
    drop_secret(config);
    return !there;
}

static int refuse_profile(leat_error *err)
{
    char own[4096], config[4096];
    aws_path("AWS_SHARED_CREDENTIALS_FILE", "credentials", own);
    aws_path("AWS_CONFIG_FILE", "config", config);
    return leat__fail(
        err, LEAT_EPERM,
        "no credentials for s3://: the profile '%.100s' (AWS_PROFILE) does not exist in %.200s or "
        "%.200s",
        profile_name(), own, config);
}

static int from_profile(leat__creds *s, leat__cred *c, leat_error *err)
{
    (void)s;
    if (profile_missing()) return refuse_profile(err); /* never use another account than the named one */
    char *id = leat__profile_value("aws_access_key_id");
    char *secret = leat__profile_value("aws_secret_access_key");
    char *token = leat__profile_value("aws_session_token");
    int rc = id != NULL && secret != NULL ? set_cred(c, id, secret, token) : LEAT_ENOENT;
    drop_secret(id);
    drop_secret(secret);
    drop_secret(token);
    /* Another tool may rewrite the files: read them again from time to time. */
    if (rc == 0 && c->token != NULL) c->expires_ns = leat__clock_wall_ns() + 2 * EARLY_NS;
    return rc;
}

static bool profile_has(const char *key)
{
    char *value = leat__profile_value(key);
    bool has = value != NULL;
    drop_secret(value);
    return has;
}

/* Ends the search when a named profile has no credentials, or the default profile is incomplete: the
 * credentials of the machine may belong to another account. */
static int from_incomplete_profile(leat__creds *s, leat__cred *c, leat_error *err)
{
    (void)s, (void)c;
    const bool half = profile_has("aws_access_key_id") != profile_has("aws_secret_access_key");
    if (!profile_named() && !half) return LEAT_ENOENT;
    const char *lack = "has no aws_access_key_id and no complete sign-on (sso_…)";
    if (profile_has("aws_access_key_id")) lack = "has no aws_secret_access_key";
    else if (profile_has("role_arn"))
        lack = "has a role_arn: roles of profiles are not supported: use the output of aws configure "
               "export-credentials --format env";
    else if (profile_has("credential_process"))
        lack = "has a credential_process, which is not supported: use the output of aws configure "
               "export-credentials --format env";
    return leat__fail(err, LEAT_EPERM, "no credentials for s3://: the profile '%.100s' (AWS_PROFILE) %s",
                      profile_name(), lack);
}

static int from_environment(leat__creds *s, leat__cred *c, leat_error *err)
{
    (void)s;
    const char *id, *secret;
    LEAT_TRY(env_pair("s3://", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", &id, &secret, err));
    return set_cred(c, id, secret, env("AWS_SESSION_TOKEN"));
}

/* ---- services ---------------------------------------------------------------------------- */

typedef struct question {
    leat__http_req http;
    const char *url;
    const char *name, *value; /* one header to send, or NULL */
} question;

static int prepare_question(leat__http_req *r, leat_error *err)
{
    question *q = r->cookie;
    int rc = leat__buf_puts(&r->url, q->url);
    if (rc == 0 && q->name != NULL) rc = leat__http_header(r, q->name, q->value);
    return rc == 0 ? 0 : leat__fail(err, rc, "a request for credentials cannot be made");
}

/* Sends one request and collects the answer; LEAT_ENOENT when there is no such service. */
static int ask(leat__creds *s, const char *method, const char *url, const char *name, const char *value,
               leat__buf *answer)
{
    static const leat__http_ops ops = {.prepare = prepare_question};
    question q = {.url = url, .name = name, .value = value};
    q.http = (leat__http_req){.ops = &ops,
                              .what = "credentials",
                              .method = method,
                              .urgent = true,
                              .once = true,
                              .quick = true,
                              .cookie = &q};
    int rc = leat__http_run(s->http, &q.http, NULL);
    leat__buf_init(answer, LEAT__MEM_IO, FILE_MAX_BYTES);
    if (rc == 0) rc = leat__buf_append(answer, q.http.body.data, q.http.body.len);
    if (q.http.body.data != NULL) wipe(q.http.body.data, q.http.body.len);
    leat__http_req_reset(&q.http);
    if (rc != 0) leat__buf_reset(answer);
    return rc;
}

static void drop_answer(leat__buf *answer)
{
    if (answer->data != NULL) wipe(answer->data, answer->len);
    leat__buf_reset(answer);
}

/* "2026-01-31T12:00:00Z" */
static uint64_t parse_time(const char *text)
{
    struct tm tm = {0};
    if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL) return 0;
    time_t t = timegm(&tm);
    return t > 0 ? (uint64_t)t * LEAT_NS_PER_S : 0;
}

static const char *member(const json_t *obj, const char *name)
{
    return json_string_value(json_object_get(obj, name));
}

/* Parses the answer of container and instance services. */
static int read_json(const leat__buf *answer, leat__cred *c, leat_error *err)
{
    json_error_t jerr;
    json_t *root = json_loadb(answer->data, answer->len, 0, &jerr);
    const char *id = member(root, "AccessKeyId"), *secret = member(root, "SecretAccessKey");
    int rc = id != NULL && secret != NULL ? set_cred(c, id, secret, member(root, "Token"))
                                          : leat__fail(err, LEAT_EPERM,
                                                       "a credentials service "
                                                       "answered without credentials");
    if (rc == 0) c->expires_ns = parse_time(member(root, "Expiration"));
    json_decref(root);
    return rc;
}

/* Loads the file that `variable` names. LEAT_EPERM when it does not exist: the search ends here. */
static int load_token(const char *variable, char **token, size_t *len, leat_error *err)
{
    leat_error why;
    leat__error_reset(&why);
    if (leat__file_load(env(variable), FILE_MAX_BYTES, 1, token, len, &why) == 0) return 0;
    return leat__fail(err, LEAT_EPERM, "%s: %s", variable, why.message);
}

static int from_web_identity(leat__creds *s, leat__cred *c, leat_error *err)
{
    const char *file, *role;
    const char *session = env("AWS_ROLE_SESSION_NAME"), *region = env("AWS_REGION");
    const char *endpoint = env("AWS_ENDPOINT_URL_STS");
    char *token = NULL;
    size_t len;
    leat__buf url, answer, id, secret, word;
    /* as in SDKs, even if a role is set */
    if (env("AWS_WEB_IDENTITY_TOKEN_FILE") == NULL) return LEAT_ENOENT;
    LEAT_TRY(env_pair("s3://", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", &file, &role, err));
    LEAT_TRY(load_token("AWS_WEB_IDENTITY_TOKEN_FILE", &token, &len, err));
    while (len > 0 && (token[len - 1] == '\n' || token[len - 1] == ' ')) len--;
    leat__buf_init(&url, LEAT__MEM_IO, FILE_MAX_BYTES);
    if (endpoint != NULL) (void)leat__buf_printf(&url, "%s/?", endpoint);
    else
        (void)leat__buf_printf(&url, "https://sts.%s.amazonaws.com/?", region != NULL ? region : "us-east-1");
    (void)leat__buf_puts(&url, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
    (void)leat__url_encode(&url, role, strlen(role), false);
    (void)leat__buf_puts(&url, "&RoleSessionName=");
    if (session == NULL) session = "leat";
    (void)leat__url_encode(&url, session, strlen(session), false);
    (void)leat__buf_puts(&url, "&WebIdentityToken=");
    (void)leat__url_encode(&url, token, len, false);
    drop_secret(token);
    int rc = leat__buf_status(&url);
    if (rc == 0) rc = ask(s, "GET", leat__buf_str(&url), "Accept", "application/xml", &answer);
    drop_answer(&url);
    if (rc != 0) return leat__fail(err, LEAT_EPERM, "the token service refused the web identity of %s", role);
    leat__buf_init(&id, LEAT__MEM_IO, FILE_MAX_BYTES);
    leat__buf_init(&secret, LEAT__MEM_IO, FILE_MAX_BYTES);
    leat__buf_init(&word, LEAT__MEM_IO, FILE_MAX_BYTES);
    leat__xml xml = {answer.data, answer.len};
    bool whole = leat__xml_text(xml, "AccessKeyId", &id) && leat__xml_text(xml, "SecretAccessKey", &secret) &&
                 leat__xml_text(xml, "SessionToken", &word);
    rc = whole ? set_cred(c, leat__buf_str(&id), leat__buf_str(&secret), leat__buf_str(&word))
               : leat__fail(err, LEAT_EPERM, "the token service answered without credentials");
    if (rc == 0 && leat__xml_text(xml, "Expiration", &word)) c->expires_ns = parse_time(leat__buf_str(&word));
    drop_answer(&answer);
    drop_answer(&id);
    drop_answer(&secret);
    drop_answer(&word);
    return rc;
}

/* Finds the token cached by `aws sso login`, which is exchanged for the role's credentials. */
static char *sso_token(const char *start_url)
{
    char path[4096];
    const char *home = env("HOME");
    leat__dir dir = {0};
    char *found = NULL;
    snprintf(path, sizeof path, "%s/.aws/sso/cache", home != NULL ? home : "");
    if (home == NULL || leat__dir_read(&dir, path, true, NULL) != 0) return NULL;
    for (size_t i = 0; i < dir.count && found == NULL; i++) {
        char *text = NULL;
        size_t len;
        json_error_t jerr;
        snprintf(path, sizeof path, "%s/.aws/sso/cache/%s", home, leat__dir_name(&dir, i));
        if (leat__file_load(path, FILE_MAX_BYTES, 1, &text, &len, NULL) != 0) continue;
        json_t *root = json_loadb(text, len, 0, &jerr);
        const char *url = member(root, "startUrl"), *token = member(root, "accessToken");
        if (url != NULL && token != NULL && strcmp(url, start_url) == 0 &&
            parse_time(member(root, "expiresAt")) > leat__clock_wall_ns())
            found = leat__strdup(LEAT__MEM_IO, token);
        json_decref(root);
        drop_secret(text);
    }
    leat__dir_reset(&dir);
    return found;
}

static int ask_sso(leat__creds *s, const char *region, const char *account, const char *role,
                   const char *token, leat__cred *c, leat_error *err)
{
    leat__buf url, answer;
    json_error_t jerr;
    leat__buf_init(&url, LEAT__MEM_IO, FILE_MAX_BYTES);
    (void)leat__buf_printf(&url,
                           "https://portal.sso.%s.amazonaws.com/federation/credentials?account_id=%s"
                           "&role_name=",
                           region, account);
    (void)leat__url_encode(&url, role, strlen(role), false);
    int rc = leat__buf_status(&url);
    if (rc == 0) rc = ask(s, "GET", leat__buf_str(&url), "x-amz-sso_bearer_token", token, &answer);
    leat__buf_reset(&url);
    if (rc != 0) return leat__fail(err, LEAT_EPERM, "the sign-on portal refused: run aws sso login");
    json_t *root = json_loadb(answer.data, answer.len, 0, &jerr);
    const json_t *keys = json_object_get(root, "roleCredentials");
    const char *id = member(keys, "accessKeyId"), *secret = member(keys, "secretAccessKey");
    rc = id != NULL && secret != NULL ? set_cred(c, id, secret, member(keys, "sessionToken")) : LEAT_EPERM;
    c->expires_ns = (uint64_t)json_integer_value(json_object_get(keys, "expiration")) * LEAT_NS_PER_MS;
    json_decref(root);
    drop_answer(&answer);
    return rc;
}

static int from_sso(leat__creds *s, leat__cred *c, leat_error *err)
{
    char *session = config_value("profile", profile_name(), "sso_session");
    char *account = config_value("profile", profile_name(), "sso_account_id");
    char *role = config_value("profile", profile_name(), "sso_role_name");
    char *url = session != NULL ? config_value("sso-session", session, "sso_start_url")
                                : config_value("profile", profile_name(), "sso_start_url");
    char *region = session != NULL ? config_value("sso-session", session, "sso_region")
                                   : config_value("profile", profile_name(), "sso_region");
    int rc = LEAT_ENOENT;
    if (account != NULL && role != NULL && url != NULL && region != NULL) {
        char *token = sso_token(url);
        rc = token != NULL ? ask_sso(s, region, account, role, token, c, err)
                           : leat__fail(err, LEAT_EPERM, "profile %s: not logged in (run aws sso login)",
                                        profile_name());
        drop_secret(token);
    }
    leat__free(session);
    leat__free(account);
    leat__free(role);
    leat__free(url);
    leat__free(region);
    return rc;
}

static int from_container(leat__creds *s, leat__cred *c, leat_error *err)
{
    const char *relative = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *file = env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *given = env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char url[2048], *token = NULL;
    size_t len;
    leat__buf answer;
    if (relative == NULL && full == NULL) return LEAT_ENOENT;
    if (relative != NULL) snprintf(url, sizeof url, "http://169.254.170.2%s", relative);
    else snprintf(url, sizeof url, "%s", full);
    if (file != NULL) {
        LEAT_TRY(load_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token, &len, err));
        while (len > 0 && (token[len - 1] == '\n' || token[len - 1] == '\r')) token[--len] = '\0';
    }
    const char *value = token != NULL ? token : given;
    int rc = ask(s, "GET", url, value != NULL ? "Authorization" : NULL, value, &answer);
    drop_secret(token);
    if (rc != 0) return leat__fail(err, LEAT_EPERM, "the container's credentials service does not answer");
    rc = read_json(&answer, c, err);
    drop_answer(&answer);
    return rc;
}

/* Asks for the region of the instance, used only for a warning. Without an answer the region stays
 * unknown. */
static void ask_region(leat__creds *s, const char *base, const char *token)
{
    char url[2048];
    leat__buf answer;
    if (s->region[0] != '\0') return;
    snprintf(url, sizeof url, "%s/latest/meta-data/placement/region", base);
    if (ask(s, "GET", url, "X-aws-ec2-metadata-token", token, &answer) != 0) return;
    size_t len = strspn(leat__buf_str(&answer), "abcdefghijklmnopqrstuvwxyz0123456789-");
    /* a match at the end of the text counts too */
    bool whole = strchr("\r\n", leat__buf_str(&answer)[len]) != NULL;
    if (whole && len < sizeof s->region)
        snprintf(s->region, sizeof s->region, "%.*s", (int)len, leat__buf_str(&answer));
    drop_answer(&answer);
}

static int from_instance(leat__creds *s, leat__cred *c, leat_error *err)
{
    const char *off = env("AWS_EC2_METADATA_DISABLED"), *base = env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char url[2048], token[512];
    leat__buf answer;
    if (off != NULL && strcmp(off, "true") == 0) return LEAT_ENOENT;
    if (base == NULL) base = IMDS;
    snprintf(url, sizeof url, "%s/latest/api/token", base);
    if (ask(s, "PUT", url, "X-aws-ec2-metadata-token-ttl-seconds", "21600", &answer) != 0) return LEAT_ENOENT;
    snprintf(token, sizeof token, "%s", leat__buf_str(&answer));
    drop_answer(&answer);
    snprintf(url, sizeof url, "%s/latest/meta-data/iam/security-credentials/", base);
    int rc = ask(s, "GET", url, "X-aws-ec2-metadata-token", token, &answer);
    if (rc != 0) return LEAT_ENOENT; /* an instance without a role */
    size_t at = strlen(url), name = strcspn(leat__buf_str(&answer), "\r\n");
    snprintf(url + at, sizeof url - at, "%.*s", (int)name, leat__buf_str(&answer));
    drop_answer(&answer);
    rc = ask(s, "GET", url, "X-aws-ec2-metadata-token", token, &answer);
    if (rc == 0) ask_region(s, base, token);
    wipe(token, sizeof token);
    if (rc != 0) return leat__fail(err, LEAT_EPERM, "the instance's metadata service gives no credentials");
    rc = read_json(&answer, c, err);
    drop_answer(&answer);
    return rc;
}

/* ---- Google ------------------------------------------------------------------------------ */

static int from_gs_keys(leat__creds *s, leat__cred *c, leat_error *err)
{
    (void)s;
    const char *id, *secret;
    LEAT_TRY(env_pair("gs://", "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", &id, &secret, err));
    return set_cred(c, id, secret, NULL);
}

static int from_gs_token(leat__creds *s, leat__cred *c, leat_error *err)
{
    (void)s, (void)err;
    const char *token = env("GOOGLE_OAUTH_ACCESS_TOKEN");
    if (token == NULL) token = env("CLOUDSDK_AUTH_ACCESS_TOKEN");
    if (token == NULL) return LEAT_ENOENT;
    c->bearer = true;
    return set_cred(c, "", "", token);
}

static int from_gs_instance(leat__creds *s, leat__cred *c, leat_error *err)
{
    const char *host = env("GCE_METADATA_HOST");
    char url[1024];
    leat__buf answer;
    json_error_t jerr;
    (void)err;
    if (host != NULL) snprintf(url, sizeof url, "http://%s", host);
    else snprintf(url, sizeof url, GCE);
    size_t at = strlen(url);
    snprintf(url + at, sizeof url - at, "/computeMetadata/v1/instance/service-accounts/default/token");
    if (ask(s, "GET", url, "Metadata-Flavor", "Google", &answer) != 0) return LEAT_ENOENT;
    json_t *root = json_loadb(answer.data, answer.len, 0, &jerr);
    const char *token = member(root, "access_token");
    int64_t left = json_integer_value(json_object_get(root, "expires_in"));
    int rc = token != NULL ? set_cred(c, "", "", token) : LEAT_ENOENT;
    c->bearer = true;
    if (left > 0) c->expires_ns = leat__clock_wall_ns() + (uint64_t)left * LEAT_NS_PER_S;
    json_decref(root);
    drop_answer(&answer);
    return rc;
}

/* ---- the chain --------------------------------------------------------------------------- */

typedef struct source {
    int (*fetch)(leat__creds *s, leat__cred *c, leat_error *err);
    const char *name; /* for messages */
    bool fixed;       /* cannot give newer credentials */
} source;

/* Fetches credentials, and once more if they have already expired. Expired credentials twice are an error:
 * waiting would not end. */
static int fetch(leat__creds *s, const source *from, leat__cred *c, leat_error *err)
{
    char until[32];
    struct tm tm;
    time_t end = 0;
    for (int i = 0; i < 2; i++) {
        LEAT_TRY(from->fetch(s, c, err));
        c->fixed = from->fixed;
        if (c->expires_ns == 0 || c->expires_ns > leat__clock_wall_ns()) return 0;
        end = (time_t)(c->expires_ns / LEAT_NS_PER_S);
        leat__cred_reset(c);
    }
    gmtime_r(&end, &tm);
    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return leat__fail(err, LEAT_EPERM,
                      "%s gives credentials that have expired (%s; is this machine's clock right?)",
                      from->name, until);
}

/* Refuses credentials with a line break or another control character: they go into headers. */
static int check_text(const source *from, const leat__cred *c, leat_error *err)
{
    const char *texts[] = {c->key_id, c->secret, c->token}, *names[] = {"key ID", "secret", "token"};
    for (size_t i = 0; i < LEAT_COUNT(texts); i++)
        if (texts[i] != NULL && leat__str_has_control(texts[i]))
            return leat__fail(err, LEAT_EPERM, "%s gives a %s with a line break or another control character",
                              from->name, names[i]);
    return 0;
}

static int find(leat__creds *s, leat__cred *c, leat_error *err)
{
    static const source aws[] = {
        {from_environment, "the environment", true},
        {from_web_identity, "the token service", false},
        {from_profile, "the profile", false},
        {from_sso, "the sign-on portal", false},
        {from_incomplete_profile, "the profile", false},
        {from_container, "the container's credentials service", false},
        {from_instance, "the instance's metadata service", false},
        {NULL, NULL, false},
    };
    static const source google[] = {
        {from_gs_keys, "the environment", true},
        {from_gs_token, "the environment", true},
        {from_gs_instance, "the instance's metadata service", false},
        {NULL, NULL, false},
    };
    for (const source *f = s->scheme == LEAT__SCHEME_GS ? google : aws; f->fetch != NULL; f++) {
        int rc = fetch(s, f, c, err);
        if (rc == 0) rc = check_text(f, c, err);
        if (rc != LEAT_ENOENT) return rc;
        leat__cred_reset(c);
    }
    if (s->scheme == LEAT__SCHEME_GS)
        return leat__fail(err, LEAT_EPERM,
                          "no credentials for gs:// (set GS_ACCESS_KEY_ID and "
                          "GS_SECRET_ACCESS_KEY; for a public bucket --anonymous or LEAT_ANONYMOUS=1)");
    return leat__fail(err, LEAT_EPERM,
                      "no credentials for s3:// (set AWS_ACCESS_KEY_ID and "
                      "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket --anonymous or "
                      "LEAT_ANONYMOUS=1)");
}

const char *leat__creds_region(const leat__creds *c)
{
    return c->region;
}

int leat__creds_open(leat__creds **out, leat__scheme scheme, bool anonymous, leat__http *http,
                     leat_error *err)
{
    *out = NULL;
    leat__creds *s = LEAT_NEW(IO, leat__creds);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "credentials");
    s->scheme = scheme;
    s->http = http;
    leat__mutex_init(&s->lock);
    int rc = 0;
    if (anonymous) s->now.anonymous = true;
    else rc = find(s, &s->now, err);
    if (rc == 0) *out = s;
    else leat__creds_close(&s);
    return rc;
}

void leat__creds_close(leat__creds **creds)
{
    leat__creds *s = *creds;
    if (s == NULL) return;
    leat__thread_join(&s->thread);
    leat__cred_reset(&s->now);
    leat__mutex_destroy(&s->lock);
    leat__free(s);
    *creds = NULL;
}

/* Runs on a short-lived thread: fetching may wait for a service, and the HTTP loop must not. */
static void refresh(void *arg)
{
    leat__creds *s = arg;
    leat__cred fresh = {0};
    leat_error err;
    leat__error_reset(&err);
    int rc = find(s, &fresh, &err);
    leat__mutex_lock(&s->lock);
    if (rc == 0) {
        leat__cred_reset(&s->now);
        s->now = fresh;
        s->failures = 0;
    } else {
        leat__cred_reset(&fresh);
        s->failure = err;
        s->failures++;
    }
    s->retry_ns = leat__clock_ns() + (s->failures < FAILURES_MAX ? 1 : 10) * LEAT_NS_PER_S;
    s->refreshing = false;
    leat__mutex_unlock(&s->lock);
}

static void start_refresh_locked(leat__creds *s)
{
    if (s->refreshing || leat__clock_ns() < s->retry_ns) return;
    leat__thread_join(&s->thread); /* the previous refresh, which has ended */
    s->refreshing = true;
    if (leat__thread_start(&s->thread, "leat-cred", refresh, s, NULL) != 0) s->refreshing = false;
}

int leat__creds_get(leat__creds *s, leat__cred *copy, leat_error *err)
{
    int rc = 0;
    leat__mutex_lock(&s->lock);
    uint64_t now = leat__clock_wall_ns();
    if (s->now.expires_ns != 0 && now + EARLY_NS > s->now.expires_ns) start_refresh_locked(s);
    bool over = s->now.expires_ns != 0 && now > s->now.expires_ns;
    if (over && (s->refreshing || s->failures < FAILURES_MAX)) {
        rc = LEAT_EAGAIN;
    } else if (over) {
        if (err != NULL) *err = s->failure;
        rc = s->failure.code;
    } else {
        *copy = s->now;
        if (copy->token != NULL) {
            copy->token = leat__strdup(LEAT__MEM_IO, s->now.token);
            if (copy->token == NULL) rc = leat__fail_nomem(err, 1024, "credentials");
        }
    }
    leat__mutex_unlock(&s->lock);
    return rc;
}

bool leat__creds_expire(leat__creds *s)
{
    leat__mutex_lock(&s->lock);
    const bool renewable = !s->now.anonymous && !s->now.fixed;
    if (renewable && !s->refreshing) {
        s->now.expires_ns = 1;
        start_refresh_locked(s);
    }
    leat__mutex_unlock(&s->lock);
    return renewable;
}
