/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a run file while another process writes it. The file is opened again at every check, and its first
 * line shows whether it is still the same one. This works with truncation, renaming and network file
 * systems. One thread at a time.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/frame.h"
#include "io/file.h"

#define FRAMES 4096u
#define HEAD_BYTES 256u
#define PIECE_BYTES ((size_t)256 << 10)
#define LINE_MAX_BYTES ((size_t)4 << 20)
#define NAME_BYTES 40u

struct leat_doctor_run {
    char *path;
    char head[HEAD_BYTES]; /* first bytes of the file, at most its first line */
    size_t head_len;
    uint64_t at;           /* bytes read so far */
    uint64_t lines;        /* complete lines read so far */
    leat__buf rest;        /* an incomplete last line */
    char name[NAME_BYTES]; /* name of the run */
    bool ended, judged;
    leat_doctor_diagnosis d;
    leat_doctor_frame frames[FRAMES];
    uint64_t frame_count; /* in total; the ring holds the last FRAMES */
};

int leat_doctor_run_open(leat_doctor_run **out, const char *path, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    leat_doctor_run *run = LEAT_NEW(DOCTOR, leat_doctor_run);
    if (run == NULL) return leat__fail_nomem(err, sizeof *run, "a run");
    leat__buf_init(&run->rest, LEAT__MEM_DOCTOR, LINE_MAX_BYTES);
    if (path != NULL && (run->path = leat__strdup(LEAT__MEM_DOCTOR, path)) == NULL) {
        leat_doctor_run_close(&run);
        return leat__fail_nomem(err, strlen(path), "a run");
    }
    *out = run;
    return 0;
}

void leat_doctor_run_close(leat_doctor_run **out)
{
    if (out == NULL) return;
    leat_doctor_run *run = *out;
    if (run == NULL) return;
    leat__buf_reset(&run->rest);
    leat__free(run->path);
    leat__free(run);
    *out = NULL;
}

/* ---- Lines ---- */

static void forget(leat_doctor_run *run)
{
    run->ended = run->judged = false;
    run->frame_count = 0;
}

/* Handles the first line of a part, which may belong to the same run or to another. */
static void take_header(leat_doctor_run *run, const char *name)
{
    if (strcmp(run->name, name) == 0) return;
    forget(run);
    size_t len = LEAT_MIN(strlen(name), (size_t)NAME_BYTES - 1);
    memcpy(run->name, name, len);
    run->name[len] = '\0';
}

static int take_diagnosis(leat_doctor_run *run, const char *line, size_t len, const json_t *root,
                          leat_error *err)
{
    leat_doctor_facts facts;
    const char *state = json_string_value(json_object_get(root, "state"));
    LEAT_TRY(leat_doctor_facts_parse(&facts, line, len, err));
    LEAT_TRY(leat_doctor_judge(&facts, &run->d, sizeof run->d, err));
    run->judged = true;
    run->ended = state == NULL || strcmp(state, "running") != 0;
    return 0;
}

static int take_line(leat_doctor_run *run, const char *line, size_t len, leat_error *err)
{
    json_error_t why;
    int rc = 0;

    if (len == 0) return 0;
    json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) return leat__fail(err, LEAT_EDATA, "not a run file: %s", why.text);
    const json_t *frame = json_object_get(root, "frame");
    const char *name = json_string_value(json_object_get(root, "run"));
    if (frame != NULL) rc = leat__frame_parse(frame, &run->frames[run->frame_count % FRAMES], err);
    else if (name != NULL) take_header(run, name);
    else if (json_object_get(root, "facts") != NULL) rc = take_diagnosis(run, line, len, root, err);
    else rc = leat__fail(err, LEAT_EDATA, "not a run file: it has none of run, frame and facts");
    if (frame != NULL && rc == 0) run->frame_count++;
    json_decref(root);
    return rc;
}

int leat_doctor_run_feed(leat_doctor_run *run, const char *text, size_t len, leat_error *err)
{
    LEAT_REQUIRE(run != NULL && (text != NULL || len == 0), err);
    leat__buf *rest = &run->rest;
    size_t from = 0;

    if (leat__buf_append(rest, text, len) != 0)
        return leat__fail(err, LEAT_EDATA, "line %llu: not a run file: a line of more than %zu bytes",
                          (unsigned long long)run->lines + 1, LINE_MAX_BYTES);
    if (run->lines == 0 && rest->len >= 5 &&
        memcmp(leat__buf_str(rest),
               "\x89"
               "LEAT",
               5) == 0)
        return leat__fail(err, LEAT_EDATA, "a pack, not a run file");
    for (;;) {
        const char *line = leat__buf_str(rest) + from;
        const char *end = memchr(line, '\n', rest->len - from);
        if (end == NULL) break;
        int rc = take_line(run, line, (size_t)(end - line), err);
        run->lines++;
        if (rc != 0) leat__error_context(err, "line %llu", (unsigned long long)run->lines);
        if (rc != 0) return rc;
        from += (size_t)(end - line) + 1;
    }
    if (from > 0) {
        memmove(rest->data, rest->data + from, rest->len - from + 1);
        rest->len -= from;
    }
    return 0;
}

/* ---- The file ---- */

/* Sets *same when the file still begins with the same bytes. */
static int same_file(leat_doctor_run *run, const leat__file *f, bool *same, leat_error *err)
{
    char head[HEAD_BYTES];
    size_t got;
    uint64_t size;

    LEAT_TRY(leat__file_size(f, &size, err));
    LEAT_TRY(leat__file_pread_some(f, head, sizeof head, 0, &got, err));
    const char *end = memchr(head, '\n', got);
    size_t len = end != NULL ? (size_t)(end - head) : got;
    /* while the first line is incomplete, no data has been taken from the file */
    *same = size >= run->at && len >= run->head_len && memcmp(head, run->head, run->head_len) == 0;
    memcpy(run->head, head, len);
    run->head_len = len;
    return 0;
}

static int read_on(leat_doctor_run *run, const leat__file *f, uint32_t *news, leat_error *err)
{
    char *piece = leat__alloc(LEAT__MEM_DOCTOR, PIECE_BYTES);
    size_t got = 0;
    int rc = piece == NULL ? leat__fail_nomem(err, PIECE_BYTES, "a run") : 0;

    while (rc == 0) {
        rc = leat__file_pread_some(f, piece, PIECE_BYTES, run->at, &got, err);
        if (rc != 0 || got == 0) break;
        run->at += got;
        *news = 1;
        rc = leat_doctor_run_feed(run, piece, got, err);
    }
    leat__free(piece);
    if (rc == LEAT_EDATA) leat__error_context(err, "%s", run->path);
    return rc;
}

int leat_doctor_run_look(leat_doctor_run *run, uint32_t *news, leat_error *err)
{
    LEAT_REQUIRE(run != NULL, err);
    leat__file *f = NULL;
    uint32_t ignored;
    bool same;
    int rc;

    if (news == NULL) news = &ignored;
    *news = 0;
    if (run->path == NULL) return 0;
    LEAT_TRY(leat__file_open(&f, run->path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, same_file(run, f, &same, err));
    if (!same) {
        run->at = run->lines = 0;
        leat__buf_clear(&run->rest);
        if (run->name[0] == '\0') forget(run); /* not a run file of leat: drop everything */
    }
    rc = read_on(run, f, news, err);
out:
    leat__file_close(&f);
    return rc;
}

/* ---- Results ---- */

const leat_doctor_diagnosis *leat_doctor_run_diagnosis(const leat_doctor_run *run)
{
    if (run == NULL) return NULL;
    return run->judged ? &run->d : NULL;
}

size_t leat_doctor_run_frames(const leat_doctor_run *run, leat_doctor_frame *out, size_t count)
{
    if (run == NULL || (out == NULL && count > 0)) return 0;
    uint64_t there = LEAT_MIN(run->frame_count, (uint64_t)FRAMES);
    size_t n = (size_t)LEAT_MIN((uint64_t)count, there);
    for (size_t i = 0; i < n; i++) out[i] = run->frames[(run->frame_count - n + i) % FRAMES];
    return n;
}

uint32_t leat_doctor_run_ended(const leat_doctor_run *run)
{
    if (run == NULL) return 0;
    return run->ended;
}
