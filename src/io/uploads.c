/* SPDX-License-Identifier: Apache-2.0
 *
 * Unfinished uploads: see uploads.h.
 */
#include "io/uploads.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/file.h"
#include "io/object.h"
#include "io/xml.h"

#define PAGE_MAX (8u << 20)
#define NOTE_MAX 4096

typedef struct pager {
    leat__buf key, id, text, mark[2];
} pager;

static void pager_init(pager *p)
{
    leat__buf *all[] = {&p->key, &p->id, &p->text, &p->mark[0], &p->mark[1]};
    for (size_t i = 0; i < 5; i++) leat__buf_init(all[i], LEAT__MEM_IO, PAGE_MAX);
}

static void pager_reset(pager *p)
{
    leat__buf *all[] = {&p->key, &p->id, &p->text, &p->mark[0], &p->mark[1]};
    for (size_t i = 0; i < 5; i++) leat__buf_reset(all[i]);
}

/* Sets *more when there is another page; p->mark is the start of that page. A list that would be incomplete,
 * or would not end, is an error. */
static int find_next(pager *p, leat__xml page, const char *mark0, const char *mark1, bool *more,
                     leat_error *err)
{
    bool again = *more;
    *more = leat__xml_text(page, "IsTruncated", &p->text) && strcmp(leat__buf_str(&p->text), "true") == 0;
    if (!*more) return 0;
    leat__buf *at[] = {&p->mark[0], &p->mark[1]};
    const char *names[] = {mark0, mark1};
    for (size_t i = 0; i < 2; i++) {
        if (names[i] == NULL || !leat__xml_text(page, names[i], &p->text)) leat__buf_clear(&p->text);
        again = again && strcmp(leat__buf_str(&p->text), leat__buf_str(at[i])) == 0;
        leat__buf was = *at[i];
        *at[i] = p->text;
        p->text = was;
    }
    if (p->mark[0].len > 0 && !again) return 0;
    return leat__fail(err, LEAT_EDATA, "the list of uploads %s",
                      again ? "does not end: the server names the same page again"
                            : "is incomplete: the server does not name the next page");
}

static int refuse(const leat__store *s, leat_error *err)
{
    if (leat__store_scheme(s) < LEAT__SCHEME_AZ) return 0;
    return leat__fail(err, LEAT_ENOTSUP, "unfinished uploads are listed for s3:// and gs:// only");
}

/* ---- uploads of a bucket ----------------------------------------------------------------- */

/* True for the object `path` itself and for keys below the folder `path`; "packs" is not a part of "packs2".
 */
static bool is_below(const char *key, const char *path)
{
    const size_t len = strlen(path);
    return len == 0 || path[len - 1] == '/' || key[len] == '/' || key[len] == '\0';
}

static int hand_out(pager *p, leat__xml page, const char *prefix, leat__uploads_fn each, void *cookie,
                    leat_error *err)
{
    leat__xml one, rest;
    if (!leat__xml_next(page, "ListMultipartUploadsResult", &rest, NULL))
        return leat__fail(err, LEAT_EDATA, "the server's answer is not a whole list of uploads");
    while (leat__xml_next(rest, "Upload", &one, &rest)) {
        if (!leat__xml_text(one, "Key", &p->key) || !leat__xml_text(one, "UploadId", &p->id))
            return leat__fail(err, LEAT_EDATA, "the list of uploads is malformed");
        if (prefix != NULL && strncmp(leat__buf_str(&p->key), prefix, strlen(prefix)) != 0)
            return leat__fail(
                err, LEAT_EDATA,
                "the server listed an upload of \"%.200s\", which does not begin with \"%.200s\"",
                leat__buf_str(&p->key), prefix);
        if (prefix != NULL && !is_below(leat__buf_str(&p->key), prefix)) continue;
        if (!leat__xml_text(one, "Initiated", &p->text)) leat__buf_clear(&p->text);
        leat__upload_info u = {leat__buf_str(&p->key), leat__buf_str(&p->id), leat__buf_str(&p->text)};
        LEAT_TRY(each(cookie, &u, err));
    }
    return 0;
}

int leat__uploads_list(leat__store *s, const char *path, leat__uploads_fn each, void *cookie, leat_error *err)
{
    pager p;
    bool more = false;
    int rc;
    LEAT_TRY(refuse(s, err));
    pager_init(&p);
    do {
        leat__call c = leat__object_call(s, path, "GET");
        const char *prefix = c.key;
        c.key = NULL;
        c.http.body_max = PAGE_MAX;
        leat__call_query(&c, "uploads", "");
        leat__call_query(&c, "prefix", prefix);
        if (more) leat__call_query(&c, "key-marker", leat__buf_str(&p.mark[0]));
        if (more) leat__call_query(&c, "upload-id-marker", leat__buf_str(&p.mark[1]));
        rc = leat__call_run(&c, err);
        leat__xml page = {c.http.body.data, c.http.body.len};
        if (rc == 0) rc = hand_out(&p, page, prefix, each, cookie, err);
        if (rc == 0) rc = find_next(&p, page, "NextKeyMarker", "NextUploadIdMarker", &more, err);
        leat__http_req_reset(&c.http);
    } while (rc == 0 && more);
    pager_reset(&p);
    return rc;
}

int leat__uploads_abort(leat__store *s, const char *path, const char *id, leat_error *err)
{
    LEAT_TRY(refuse(s, err));
    leat__call c = leat__object_call(s, path, "DELETE");
    leat__call_query(&c, "uploadId", id);
    int rc = leat__call_run(&c, err);
    leat__http_req_reset(&c.http);
    return rc == LEAT_ENOENT ? 0 : rc;
}

/* ---- parts of one ------------------------------------------------------------------------ */

static int hand_parts(pager *p, leat__xml page, leat__upload_part_fn each, void *cookie, leat_error *err)
{
    leat__xml one, rest;
    if (!leat__xml_next(page, "ListPartsResult", &rest, NULL))
        return leat__fail(err, LEAT_EDATA, "the server's answer is not a whole list of parts");
    while (leat__xml_next(rest, "Part", &one, &rest)) {
        uint64_t number, size;
        if (!leat__xml_text(one, "PartNumber", &p->text) ||
            !leat__str_to_u64(leat__buf_str(&p->text), &number) || !leat__xml_text(one, "Size", &p->text) ||
            !leat__str_to_u64(leat__buf_str(&p->text), &size) || !leat__xml_text(one, "ETag", &p->text) ||
            number == 0 || number > 10000)
            return leat__fail(err, LEAT_EDATA, "the list of parts is malformed");
        LEAT_TRY(each(cookie, (uint32_t)number, size, leat__buf_str(&p->text)));
    }
    return 0;
}

int leat__uploads_parts(leat__store *s, const char *path, const char *id, leat__upload_part_fn each,
                        void *cookie, leat_error *err)
{
    pager p;
    bool more = false;
    int rc;
    LEAT_TRY(refuse(s, err));
    pager_init(&p);
    do {
        leat__call c = leat__object_call(s, path, "GET");
        c.http.body_max = PAGE_MAX;
        leat__call_query(&c, "uploadId", id);
        if (more) leat__call_query(&c, "part-number-marker", leat__buf_str(&p.mark[0]));
        rc = leat__call_run(&c, err);
        leat__xml page = {c.http.body.data, c.http.body.len};
        if (rc == 0) rc = hand_parts(&p, page, each, cookie, err);
        if (rc == 0) rc = find_next(&p, page, "NextPartNumberMarker", NULL, &more, err);
        leat__http_req_reset(&c.http);
    } while (rc == 0 && more);
    pager_reset(&p);
    return rc;
}

/* ---- notes ------------------------------------------------------------------------------- */

bool leat__upload_note_read(const char *path, leat__upload_note *n)
{
    char *text = NULL;
    size_t len;
    unsigned long long size, part;
    bool exists = false;
    if (leat__path_exists(path, &exists, NULL) != 0 || !exists) return false;
    if (leat__file_load(path, NOTE_MAX, 1, &text, &len, NULL) != 0) return false;
    bool ok =
        sscanf(text, "leat upload 1\n%llu %llu\n%1023s\n", &size, &part, n->id) == 3 && text[len - 1] == '\n';
    n->size = size;
    n->part_bytes = part;
    leat__free(text);
    return ok;
}

int leat__upload_note_write(const char *path, const leat__upload_note *n, leat_error *err)
{
    char text[NOTE_MAX];
    int len = snprintf(text, sizeof text, "leat upload 1\n%llu %llu\n%s\n", (unsigned long long)n->size,
                       (unsigned long long)n->part_bytes, n->id);
    return leat__file_store(path, text, (size_t)len, err);
}

void leat__upload_note_remove(const char *path)
{
    (void)!leat__path_unlink(path, NULL);
}
