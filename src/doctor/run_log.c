/* SPDX-License-Identifier: Apache-2.0
 *
 * Records a run to a file while it runs. Each line is written with one call, so that a reader sees at worst
 * an incomplete last line.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/frame.h"
#include "doctor/judge.h"
#include "io/file.h"

#define LINE_MAX_BYTES ((size_t)4 << 20)
#define PART_BYTES (UINT64_C(32) << 20) /* about an hour */

struct leat__run_log {
    char *path;
    leat__file *file;
    uint64_t at; /* offset of the next line */
    uint64_t id;
    uint32_t part;
    leat__buf line;
};

static int put_line(leat__run_log *log, leat_error *err)
{
    leat__buf_putc(&log->line, '\n');
    if (leat__buf_status(&log->line) != 0) return leat__fail_nomem(err, log->line.len, "a run's line");
    LEAT_TRY(leat__file_pwrite(log->file, log->line.data, log->line.len, log->at, err));
    log->at += log->line.len;
    leat__buf_clear(&log->line);
    return 0;
}

static void put_header(leat__run_log *log)
{
    char id[24];
    leat__json j;
    snprintf(id, sizeof id, "%016" PRIx64, log->id);
    leat__json_init(&j, &log->line, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "run", id);
    leat__json_ku64(&j, "part", log->part);
    leat__json_ku64(&j, "version", 1);
    leat__json_ki64(&j, "pid", getpid());
    leat__json_end(&j);
}

int leat__run_log_open(leat__run_log **out, const char *path, leat_error *err)
{
    int rc;

    *out = NULL;
    leat__run_log *log = LEAT_NEW(DOCTOR, leat__run_log);
    if (log == NULL) return leat__fail_nomem(err, sizeof *log, "a run file");
    leat__buf_init(&log->line, LEAT__MEM_DOCTOR, LINE_MAX_BYTES);
    uint64_t seed[2] = {(uint64_t)getpid(), leat__clock_ns()};
    log->id = leat__hash64(seed, sizeof seed, leat__hash64(path, strlen(path), 0));
    log->path = leat__strdup(LEAT__MEM_DOCTOR, path);
    if (log->path == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, strlen(path), "a run file"));
    unsigned how = LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE;
    LEAT_GO(rc, out, leat__file_spare_pack(path, err));
    LEAT_GO(rc, out, leat__file_only_kind(path, "{\"run\":", true, err));
    LEAT_GO(rc, out, leat__file_open(&log->file, path, how, err));
    put_header(log);
    LEAT_GO(rc, out, put_line(log, err));
    *out = log;
    log = NULL;
out:
    leat__run_log_close(&log);
    return rc;
}

void leat__run_log_close(leat__run_log **out)
{
    leat__run_log *log = *out;
    if (log == NULL) return;
    leat__file_close(&log->file);
    leat__buf_reset(&log->line);
    leat__free(log->path);
    leat__free(log);
    *out = NULL;
}

int leat__run_log_frame(leat__run_log *log, const leat_doctor_frame *f, leat_error *err)
{
    leat__json j;
    leat__json_init(&j, &log->line, 0);
    leat__json_object(&j);
    leat__json_key(&j, "frame");
    leat__frame_json(&j, f);
    leat__json_end(&j);
    return put_line(log, err);
}

/* Starts the next part. Writes its first two lines together, so that a reader never finds it without
 * a verdict. */
static int next_part(leat__run_log *log, leat_error *err)
{
    LEAT_TRY(leat__file_truncate(log->file, 0, err));
    log->at = 0;
    log->part++;
    put_header(log);
    leat__buf_putc(&log->line, '\n');
    return 0;
}

int leat__run_log_diagnosis(leat__run_log *log, const leat_doctor_diagnosis *d, bool ended, leat_error *err)
{
    leat__json j;
    if (log->at > PART_BYTES) LEAT_TRY(next_part(log, err));
    leat__json_init(&j, &log->line, 0);
    leat__json_object(&j);
    leat__doctor_json_fields(d, &j);
    leat__json_kstr(&j, "state", ended ? "ended" : "running");
    leat__json_end(&j);
    return put_line(log, err);
}
