/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of shards in a bucket: see bucket_tag.h.
 */
#include "ingest/bucket_tag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/file.h"
#include "pack/reader.h"

#define DIGITS 16u /* of a tag, and of the tag of an object */

/* Returns the path of a file of the tag: that of the tagged set file with another end. */
static void path_of(const leat__bucket_pack *s, const char *end, leat__buf *path)
{
    leat__buf_init(path, LEAT__MEM_INGEST, 1u << 16);
    (void)leat__buf_printf(path, "%s%s", s->path, end);
}

/* Reads a file with 16 hexadecimal digits. */
static bool read_hex(const leat__bucket_pack *s, const char *end, char hex[DIGITS + 1])
{
    leat__buf path;
    char *text = NULL;
    size_t len = 0;
    bool exists = false, whole = false;
    path_of(s, end, &path);
    if (leat__buf_status(&path) == 0 && leat__path_exists(leat__buf_str(&path), &exists, NULL) == 0 && exists)
        whole = leat__file_load(leat__buf_str(&path), 64, 1, &text, &len, NULL) == 0 && len == DIGITS &&
                strspn(text, "0123456789abcdef") == DIGITS;
    if (whole) memcpy(hex, text, DIGITS + 1);
    leat__free(text);
    leat__buf_reset(&path);
    return whole;
}

static int write_hex(const leat__bucket_pack *s, const char *end, const char *hex, leat_error *err)
{
    leat__buf path;
    path_of(s, end, &path);
    int rc = leat__buf_status(&path) == 0 ? leat__file_store(leat__buf_str(&path), hex, DIGITS, err)
                                          : leat__fail_nomem(err, strlen(s->path), "a path");
    leat__buf_reset(&path);
    return rc;
}

static void remove_file(const leat__bucket_pack *s, const char *end)
{
    leat__buf path;
    path_of(s, end, &path);
    if (leat__buf_status(&path) == 0) (void)!leat__path_unlink(leat__buf_str(&path), NULL);
    leat__buf_reset(&path);
}

void leat__bucket_tag_load(leat__bucket_pack *s)
{
    if (!read_hex(s, ".tag", s->tag)) s->tag[0] = '\0';
}

int leat__bucket_tag_draw(leat__bucket_pack *s, leat_error *err)
{
    uint64_t random = 0;
    ssize_t n;
    do {
        n = getrandom(&random, sizeof random, 0);
    } while (n < 0 && errno == EINTR);
    if (n != sizeof random) return leat__fail_errno(err, errno, "no random numbers");
    char tag[DIGITS + 1];
    (void)snprintf(tag, sizeof tag, "%016llx", (unsigned long long)random);
    remove_file(s, ".tagged");
    LEAT_TRY(write_hex(s, ".tag", tag, err));
    memcpy(s->tag, tag, sizeof tag);
    leat__bucket_not_sent(s);
    return 0;
}

int leat__bucket_tag_apply(leat__bucket_pack *s, leat_pack *set, leat_error *err)
{
    return s->tag[0] != '\0' ? leat__set_retag(set, s->tagged, s->tag, err) : 0;
}

void leat__bucket_tag_drop(leat__bucket_pack *s)
{
    remove_file(s, ".tag");
    remove_file(s, ".tagged");
    leat__bucket_not_sent(s);
    s->tag[0] = '\0';
}

const char *leat__bucket_tag_set(const leat__bucket_pack *s)
{
    return s->tag[0] != '\0' ? s->tagged : s->path;
}

int leat__bucket_sending(const leat__bucket_pack *s, uint64_t instead_of, leat_error *err)
{
    char hex[DIGITS + 1];
    (void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)instead_of);
    return write_hex(s, ".sending", hex, err);
}

bool leat__bucket_was_sent(const leat__bucket_pack *s, uint64_t *instead_of)
{
    char hex[DIGITS + 1];
    unsigned long long tag = 0;
    bool sent = read_hex(s, ".sending", hex) && sscanf(hex, "%16llx", &tag) == 1;
    *instead_of = tag;
    return sent;
}

void leat__bucket_not_sent(const leat__bucket_pack *s)
{
    remove_file(s, ".sending");
}
