/* SPDX-License-Identifier: Apache-2.0
 *
 * See skipped_list.h. Lines: {"key":…,"code":"LEAT_EDATA","offset":…,"reason":…}.
 */
#include "ingest/skipped_list.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define LINE_MAX_BYTES (4u << 20)
#define HEAD "{\"key\":" /* the start of every line */

/* Counts the lines of a file, at most `most`; *end is the end of the last of them. */
static int count_lines(const leat__file *file, uint64_t most, uint64_t *lines, uint64_t *end, leat_error *err)
{
    char chunk[4096];
    uint64_t at = 0;
    size_t got = 1;
    *lines = *end = 0;
    while (*lines < most && got > 0) {
        LEAT_TRY(leat__file_pread_some(file, chunk, sizeof chunk, at, &got, err));
        for (size_t i = 0; i < got && *lines < most; i++) {
            if (chunk[i] != '\n') continue;
            *end = at + i + 1;
            ++*lines;
        }
        at += got;
    }
    return 0;
}

int leat__skipped_list_check(const char *path, bool replace, bool resume, leat_error *err)
{
    return leat__result_file_check(path, HEAD, replace, resume, err);
}

int leat__skipped_list_open(leat__skipped_list *r, const char *path, uint64_t keep, leat_error *err)
{
    uint64_t lines;
    memset(r, 0, sizeof *r);
    leat__buf_init(&r->line, LEAT__MEM_INGEST, LINE_MAX_BYTES);
    if (!path) return 0;
    int rc = leat__result_file_open(&r->to, path, HEAD, err);
    if (rc == 0) rc = count_lines(r->to.file, keep, &lines, &r->end, err);
    if (rc == 0) rc = leat__file_truncate(r->to.file, r->end, err);
    if (rc != 0) leat__skipped_list_close(r, false);
    return rc;
}

int leat__skipped_list_add(leat__skipped_list *r, const char *key, size_t key_size, const leat_error *why,
                           leat_error *err)
{
    if (!r->to.file) return 0;
    leat__json j;
    leat__buf_clear(&r->line);
    leat__json_init(&j, &r->line, 0);
    leat__json_object(&j);
    leat__json_key(&j, "key");
    leat__json_strn(&j, key, key_size);
    leat__json_kstr(&j, "code", leat_code_name(why ? why->code : LEAT_ENOMEM));
    leat__json_key(&j, "offset");
    if (why && why->offset >= 0) leat__json_i64(&j, why->offset);
    else leat__json_null(&j);
    leat__json_kstr(&j, "reason", why ? why->message : "out of memory");
    leat__json_end(&j);
    leat__buf_putc(&r->line, '\n');
    if (leat__buf_status(&r->line) != 0)
        return leat__fail(err, leat__buf_status(&r->line), "no memory for a line of the report");
    LEAT_TRY(leat__file_pwrite(r->to.file, r->line.data, r->line.len, r->end, err));
    r->end += r->line.len;
    return 0;
}

int leat__skipped_list_publish(leat__skipped_list *r, leat_error *err)
{
    return leat__result_file_publish(&r->to, err);
}

int leat__skipped_list_recall(const char *path, uint64_t *lines, leat_error *err)
{
    leat__skipped_list r;
    leat__file *file = NULL;
    bool left = false;
    uint64_t end;
    *lines = 0;
    if (!path) return 0;
    LEAT_TRY(leat__result_file_check(path, HEAD, true, false, err));
    LEAT_TRY(leat__result_file_left(path, &left, err));
    if (left) {
        LEAT_TRY(leat__skipped_list_open(&r, path, UINT64_MAX, err));
        int rc = leat__skipped_list_publish(&r, err);
        leat__skipped_list_close(&r, false);
        LEAT_TRY(rc);
    }
    int rc = leat__file_open(&file, path, LEAT__FILE_READ, err);
    if (rc == LEAT_ENOENT) return 0;
    if (rc == 0) rc = count_lines(file, UINT64_MAX, lines, &end, err);
    leat__file_close(&file);
    return rc;
}

void leat__skipped_list_close(leat__skipped_list *r, bool discard)
{
    leat__result_file_close(&r->to, discard);
    leat__buf_reset(&r->line);
}
