/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials for object stores. They are looked up in the places that the vendors' own tools use, and
 * refreshed before they expire. They are never printed, logged or stored, and their memory is cleared.
 *
 * s3://, in this order: AWS_ACCESS_KEY_ID … in the environment; AWS_WEB_IDENTITY_TOKEN_FILE with
 * AWS_ROLE_ARN; the profile (AWS_PROFILE, "default") in the shared credentials and config files,
 * keys or SSO cache; the container's endpoint; the instance's metadata. gs://: GS_ACCESS_KEY_ID
 * and GS_SECRET_ACCESS_KEY (HMAC keys); an access token in GOOGLE_OAUTH_ACCESS_TOKEN or
 * CLOUDSDK_AUTH_ACCESS_TOKEN; the instance's metadata.
 */
#ifndef LEAT_IO_CRED_H
#define LEAT_IO_CRED_H

#include "io/http.h"
#include "io/url.h"

typedef struct leat__cred {
    char key_id[256], secret[256];
    char *token;         /* session token, or the bearer token; NULL for none */
    bool anonymous;      /* send no signature */
    bool bearer;         /* the token is sent as "Authorization: Bearer" */
    bool fixed;          /* the source cannot give newer ones */
    uint64_t expires_ns; /* wall clock, 0 = never */
} leat__cred;

typedef struct leat__creds leat__creds;

/* Finds credentials now. May block, because it reads files and queries metadata services. LEAT_EPERM: there
 * are none; err says what to set. */
int leat__creds_open(leat__creds **c, leat__scheme scheme, bool anonymous, leat__http *http,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__creds_close(leat__creds **c);

/* Returns the region of this machine if the credentials come from its instance metadata; else "". */
const char *leat__creds_region(const leat__creds *c);

/* Copies the current credentials (free with leat__cred_reset). Does not block: a thread fetches new ones
 * shortly before they expire. LEAT_EAGAIN: they have expired, and new ones have not arrived yet. */
int leat__creds_get(leat__creds *c, leat__cred *copy, leat_error *err) LEAT_MUST_CHECK;
/* Marks the credentials as expired, because the server said so; they are fetched again. Returns false when
 * their source cannot give newer ones. */
bool leat__creds_expire(leat__creds *c);
void leat__cred_reset(leat__cred *cred);

/* Looks up a value of the profile in the credentials file, then in the config file. Returns a new block, NULL
 * when there is none. */
char *leat__profile_value(const char *key);

/* Returns the value of `key` in [section] of an INI text. Exposed only for its test. */
char *leat__ini_value(const char *text, const char *section, const char *key);

#endif
