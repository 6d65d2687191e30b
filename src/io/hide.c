/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets of a request in an answer: see hide.h.
 */
#include "io/hide.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "io/url.h"

#define WORD_MIN 4u /* shorter words occur by chance */
#define USER_MAX 1024u

static void hide_word(char *text, const char *word, size_t len)
{
    static const char dots[] = "\xe2\x80\xa6";
    const size_t n = sizeof dots - 1;
    if (len < WORD_MIN) return;
    for (char *at = text; (at = memmem(at, strlen(at), word, len)) != NULL; at += n) {
        memcpy(at, dots, n);
        memmove(at + n, at + len, strlen(at + len) + 1);
    }
}

/* Hides a part of a URL, both percent-encoded and decoded. */
static void hide_part(char *text, const char *part, size_t len)
{
    char *copy = leat__strndup(LEAT__MEM_IO, part, len);
    hide_word(text, part, len);
    if (copy == NULL) text[0] = '\0';
    else hide_word(text, copy, leat__url_decode(copy, len));
    leat__free(copy);
}

/* Hides the value after `name`, up to one of `ends`. */
static void hide_value(char *text, const char *header, const char *name, const char *ends)
{
    const char *at = strstr(header, name);
    if (at != NULL) hide_word(text, at + strlen(name), strcspn(at + strlen(name), ends));
}

void leat__hide_header(char *text, const char *header)
{
    const char *value = strchr(header, ':');
    if (value == NULL) return;
    value += 1 + strspn(value + 1, " ");
    if (strncasecmp(header, "x-amz-security-token:", 21) == 0) hide_word(text, value, strlen(value));
    if (strncasecmp(header, "authorization:", 14) != 0) return;
    const char *rest = value + strcspn(value, " "); /* after "Bearer" and the like */
    rest += strspn(rest, " ");
    if (strstr(rest, "Signature=") != NULL) {
        hide_value(text, rest, "Credential=", "/, ");
        hide_value(text, rest, "Signature=", ", ");
        return;
    }
    const char *colon = strchr(rest, ':'); /* "SharedKey account:signature" */
    hide_word(text, rest, strlen(rest));
    if (colon != NULL) hide_word(text, colon + 1, strlen(colon + 1));
}

/* Hides user and password, and the header that is made from them. */
static void hide_user(char *text, const char *user, size_t len)
{
    char plain[USER_MAX + 1], coded[4 * ((USER_MAX + 2) / 3) + 1];
    const char *colon = memchr(user, ':', len);
    const size_t name = colon != NULL ? (size_t)(colon - user) : len;
    const size_t most = LEAT_MIN(len, USER_MAX);
    memcpy(plain, user, most);
    const char *basic = leat__base64_encode(plain, leat__url_decode(plain, most), coded);
    hide_word(text, basic, strlen(basic));
    if (colon != NULL) hide_part(text, colon + 1, len - name - 1);
    hide_part(text, user, name);
}

/* True for names of values that sign a request. */
static bool signs(const char *name, size_t len)
{
    static const char *const words[] = {"sig", "signature", "credential", "token"};
    for (size_t i = 0; i < LEAT_COUNT(words); i++) {
        const size_t n = strlen(words[i]);
        if (len >= n && strncasecmp(name + len - n, words[i], n) == 0) return true;
    }
    return false;
}

void leat__hide_url(char *text, const char *url, bool all)
{
    const size_t prefix = leat__str_web_prefix(url);
    const char *host = url + prefix, *end = host + strcspn(host, "/?#"), *at = end;
    while (at > host && at[-1] != '@') at--;
    if (prefix > 0 && at > host) hide_user(text, host, (size_t)(at - host) - 1);
    const char *pair = end + strcspn(end, "?");
    while (*pair != '\0') {
        pair++;
        const size_t len = strcspn(pair, "&#"), name = LEAT_MIN(strcspn(pair, "="), len);
        if (name == len && all) hide_part(text, pair, len);
        else if (name < len && (all || signs(pair, name))) hide_part(text, pair + name + 1, len - name - 1);
        pair += len;
    }
}
