/* SPDX-License-Identifier: Apache-2.0
 *
 * Markers, copying and joining of parts.
 */
#include "curate/part_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/output_dir.h"
#include "curate/sealed.h"
#include "io/dir.h"
#include "io/file.h"

#define BLOCK (1u << 20)
#define WINDOW (64u << 10)
#define MARKER_MAX (256u << 20)

static const char *const out_ext[LEAT__OUTS] = {".kept", ".second", ".bad"};

const char *leat__part_path(const leat__part *p, const char *kind, uint32_t number, const char *ext,
                            char *out)
{
    snprintf(out, 4096, "%s/%s-%05u%s", p->work, kind, number, ext);
    return out;
}

/* Writes a temporary name beside the path to `out`. */
static const char *temp_path(const leat__part *p, const char *path, char *out)
{
    snprintf(out, 4096, "%s.%s.tmp", path, p->token);
    return out;
}

/* Writes a file of the work folder atomically. */
static int store(const leat__part *p, const char *path, const leat__buf *data, leat_error *err)
{
    char temp[4096];
    leat__file *f = NULL;
    int rc;
    temp_path(p, path, temp);
    if (data->status != 0) return leat__fail_nomem(err, data->len, "results");
    LEAT_GO(rc, out,
            leat__file_open(&f, temp, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    LEAT_GO(rc, out, leat__file_pwrite(f, leat__buf_str(data), data->len, 0, err));
    LEAT_GO(rc, out, leat__file_sync(f, err));
    rc = leat__path_rename(temp, path, err);
out:
    leat__file_close(&f);
    return rc;
}

int leat__part_mark(const leat__part *p, const char *path, leat__buf *json, leat_error *err)
{
    leat__sealed_end(json);
    return store(p, path, json, err);
}

int leat__part_seek(const leat__text_range *r, leat__text_files *files, uint64_t document, leat_error *err)
{
    if (r->file >= files->count || r->end_file > files->count || r->end_file < r->file ||
        (r->end_file == r->file && r->end_offset <= r->offset) ||
        (r->end_file == files->count && r->end_offset > 0))
        return leat__fail(err, LEAT_EINVAL, "a part of %u files from %u to %u is not valid", files->count,
                          r->file, r->end_file);
    files->end_file = r->end_file;
    files->end_offset = r->end_offset;
    files->numbers.unknown = r->offset > 0 && r->line == 0 ? r->file + 1 : 0;
    return leat__text_files_seek(files, r->file, r->offset, LEAT_MAX(r->line, 1), document, err);
}

int leat__part_answer(leat__text_files *files, int rc, leat__buf *json)
{
    if (leat__line_numbers_check(&files->numbers, NULL) == 0) return rc;
    leat__buf_clear(json);
    leat__buf_puts(json, "{\"uncounted\":true}");
    return 0;
}

void leat__part_files(const leat__text_files *files, leat__json *j)
{
    leat__json_array(j);
    for (uint32_t i = 0; i < files->count; i++) {
        leat__json_array(j);
        leat__json_str(j, files->path[i]);
        leat__json_u64(j, files->size[i]);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static const char *stamps_path(const leat__part *p, char *out)
{
    snprintf(out, 4096, "%s/stamps.json", p->work);
    return out;
}

int leat__part_stamp(const leat__part *p, const leat__text_files *files, leat_error *err)
{
    char path[4096];
    leat__buf data;
    leat__json j;
    leat__buf_init(&data, LEAT__MEM_CURATE, MARKER_MAX);
    leat__json_init(&j, &data, 0);
    leat__json_object(&j);
    leat__json_key(&j, "stamps");
    leat__json_array(&j);
    for (uint32_t i = 0; i < files->count; i++) leat__json_u64(&j, leat__text_files_stamp(files, i));
    leat__json_end(&j);
    leat__json_end(&j);
    int rc = leat__part_mark(p, stamps_path(p, path), &data, err);
    leat__buf_reset(&data);
    return rc;
}

int leat__part_compare(const leat__part *p, const leat__text_files *files, leat_error *err)
{
    char path[4096];
    json_t *root;
    LEAT_TRY(leat__sealed_load(stamps_path(p, path), MARKER_MAX, &root, err));
    const json_t *stamps = json_object_get(root, "stamps");
    int rc = json_array_size(stamps) == files->count ? 0 : leat__sealed_damaged(path, err);
    for (uint32_t i = 0; i < files->count && rc == 0; i++)
        if ((uint64_t)json_integer_value(json_array_get(stamps, i)) != leat__text_files_stamp(files, i))
            rc = leat__text_files_changed(files, i, err);
    json_decref(root);
    return rc;
}

/* ---- copying ---- */

static int copy_piece(leat__file *to, uint64_t *at, const leat__part_piece *piece, uint8_t *block,
                      leat_error *err)
{
    leat__file *from = NULL;
    LEAT_TRY(leat__file_open(&from, piece->path, LEAT__FILE_READ, err));
    int rc = 0;
    for (uint64_t done = 0; done < piece->len && rc == 0;) {
        size_t n = (size_t)LEAT_MIN(BLOCK, piece->len - done);
        rc = leat__file_pread(from, block, n, piece->from + done, err);
        for (size_t i = 0; piece->add > 0 && rc == 0 && i + 8 <= n; i += 8)
            leat__store_u64(block + i, leat__load_u64(block + i) + piece->add);
        if (rc == 0) rc = leat__file_pwrite(to, block, n, *at, err);
        leat__file_flush_hint(to, *at, n);
        *at += n;
        done += n;
    }
    leat__file_close(&from);
    return rc;
}

int leat__part_copy(const leat__part *p, const char *to, const leat__part_piece *pieces, size_t count,
                    leat_error *err)
{
    char temp[4096];
    leat__file *f = NULL;
    uint64_t at = 0;
    int rc;
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, BLOCK);
    if (!block) return leat__fail_nomem(err, BLOCK, "a copy");
    temp_path(p, to, temp);
    LEAT_GO(rc, out,
            leat__file_open(&f, temp, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    for (size_t i = 0; i < count; i++)
        if (pieces[i].len > 0) LEAT_GO(rc, out, copy_piece(f, &at, &pieces[i], block, err));
    LEAT_GO(rc, out, leat__file_sync(f, err));
    rc = leat__path_rename(temp, to, err);
out:
    leat__file_close(&f);
    leat__free(block);
    return rc;
}

static const char *output_path(const leat__part *p, const char *name, char *out)
{
    snprintf(out, 4096, "%s/out.%s", p->work, name);
    return out;
}

/* Writes pieces into a file at their offsets. */
static int patch_file(const char *to, const leat__part_piece *pieces, size_t count, leat_error *err)
{
    leat__file *f = NULL;
    int rc;
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, BLOCK);
    if (!block) return leat__fail_nomem(err, BLOCK, "a copy");
    LEAT_GO(rc, out, leat__file_open(&f, to, LEAT__FILE_WRITE, err));
    for (size_t i = 0; i < count; i++) {
        uint64_t at = pieces[i].at;
        LEAT_GO(rc, out, copy_piece(f, &at, &pieces[i], block, err));
    }
    rc = leat__file_sync(f, err);
out:
    leat__file_close(&f);
    leat__free(block);
    return rc;
}

int leat__part_copy_output(const leat__part *p, const char *name, bool patch, const leat__part_piece *pieces,
                           size_t count, leat_error *err)
{
    char to[4096];
    bool there;
    output_path(p, name, to);
    if (patch) return patch_file(to, pieces, count, err);
    LEAT_TRY(leat__path_exists(to, &there, err));
    return there ? 0 : leat__part_copy(p, to, pieces, count, err);
}

/* ---- the outputs of a part ---- */

int leat__part_open(const leat__part *p, leat__shards out[LEAT__OUTS], leat__compress compress,
                    const leat__part_place *place, leat_error *err)
{
    for (int i = 0; i < LEAT__OUTS; i++) {
        char name[32];
        if (i == LEAT__OUT_KEPT && place) {
            LEAT_TRY(leat__shards_open_placed(&out[i], p->work, "out.kept", place->shard_bytes, place->begin,
                                              place->end, err));
            continue;
        }
        snprintf(name, sizeof name, "part-%05u%s", p->number, out_ext[i]);
        LEAT_TRY(leat__shards_open_part(&out[i], p->work, name, p->token,
                                        i == LEAT__OUT_KEPT ? compress : LEAT__COMPRESS_NONE, err));
    }
    return 0;
}

/* Appends a buffer of 8-byte numbers as a list. */
static void put_numbers(leat__json *j, const char *key, const leat__buf *list)
{
    leat__json_key(j, key);
    leat__json_array(j);
    for (size_t at = 0; at < list->len; at += 8) {
        uint64_t n;
        memcpy(&n, list->data + at, 8);
        leat__json_u64(j, n);
    }
    leat__json_end(j);
}

int leat__part_finish(const leat__part *p, leat__shards out[LEAT__OUTS], const char *stats, leat_error *err)
{
    char path[4096];
    leat__buf marker;
    leat__json j;
    int rc = 0;
    const leat__shards *kept = &out[LEAT__OUT_KEPT];
    leat__buf_init(&marker, LEAT__MEM_CURATE, MARKER_MAX);
    leat__json_init(&j, &marker, 0);
    leat__json_object(&j);
    leat__json_key(&j, "stats");
    leat__json_raw(&j, stats);
    leat__json_key(&j, "bytes");
    leat__json_array(&j);
    for (int i = 0; i < LEAT__OUTS; i++) leat__json_u64(&j, out[i].bytes);
    leat__json_end(&j);
    put_numbers(&j, "frames", &kept->frames);
    put_numbers(&j, "edges", &kept->edges);
    leat__json_end(&j);
    for (int i = 0; i < LEAT__OUTS && rc == 0; i++) rc = leat__shards_commit(&out[i], err);
    if (rc == 0 && kept->placed)
        rc = store(p, leat__part_path(p, "part", p->number, ".edge", path), &kept->edge_data, err);
    if (rc == 0) rc = leat__part_mark(p, leat__part_path(p, "part", p->number, ".json", path), &marker, err);
    leat__buf_reset(&marker);
    return rc;
}

int leat__part_done(const leat__part *p, const char *kind, bool *done, leat_error *err)
{
    char path[4096];
    return leat__path_exists(leat__part_path(p, kind, p->number, ".json", path), done, err);
}

/* ---- joining ---- */

void leat__part_load(const json_t *stats, leat__text_meter *m)
{
    double ns = json_number_value(json_object_get(stats, "seconds")) * 1e9;
    m->elapsed_ns += (uint64_t)ns;
    m->read_ns += (uint64_t)(ns * json_number_value(json_object_get(stats, "read_share")));
    m->work_ns += (uint64_t)(ns * json_number_value(json_object_get(stats, "work_share")));
    m->take_ns += (uint64_t)(ns * json_number_value(json_object_get(stats, "write_share")));
    m->blocked_ns += (uint64_t)(ns * json_number_value(json_object_get(stats, "memory_share")));
}

/* Reads a list of a marker into 8-byte numbers. */
static int take_numbers(const json_t *list, leat__buf *out, leat_error *err)
{
    for (size_t k = 0; k < json_array_size(list); k++) {
        uint64_t n = (uint64_t)json_integer_value(json_array_get(list, k));
        if (leat__buf_append(out, &n, 8) != 0) return leat__fail_nomem(err, out->len, "lengths");
    }
    return 0;
}

static int read_marker(leat__join *j, uint32_t i, void (*add)(void *cookie, const json_t *stats),
                       void *cookie, leat_error *err)
{
    char path[4096];
    json_t *root;
    leat__part_path(j->part, "part", i, ".json", path);
    LEAT_TRY(leat__sealed_load(path, MARKER_MAX, &root, err));
    const json_t *bytes = json_object_get(root, "bytes");
    const json_t *stats = json_object_get(root, "stats");
    int rc = json_array_size(bytes) == LEAT__OUTS && stats ? 0 : leat__sealed_damaged(path, err);
    for (size_t k = 0; k < LEAT__OUTS && rc == 0; k++)
        j->length[k][i] = (uint64_t)json_integer_value(json_array_get(bytes, k));
    if (rc == 0) rc = take_numbers(json_object_get(root, "frames"), &j->frames[i], err);
    if (rc == 0) rc = take_numbers(json_object_get(root, "edges"), &j->edges[i], err);
    if (rc == 0) {
        leat__part_load(stats, &j->meter);
        add(cookie, stats);
    }
    json_decref(root);
    return rc;
}

int leat__join_open(leat__join *j, void (*add)(void *cookie, const json_t *stats), void *cookie,
                    leat_error *err)
{
    uint32_t n = j->part->parts;
    for (int k = 0; k < LEAT__OUTS; k++) {
        j->length[k] = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof(uint64_t));
        if (!j->length[k]) return leat__fail_nomem(err, n * 8, "lengths");
    }
    j->frames = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof *j->frames);
    j->edges = leat__zalloc_array(LEAT__MEM_CURATE, n + 1, sizeof *j->edges);
    if (!j->frames || !j->edges) return leat__fail_nomem(err, n * sizeof *j->frames, "lengths");
    for (uint32_t i = 0; i < n; i++) {
        leat__buf_init(&j->frames[i], LEAT__MEM_CURATE, 1u << 30);
        leat__buf_init(&j->edges[i], LEAT__MEM_CURATE, 1u << 30);
    }
    for (uint32_t i = j->first; i < n; i++) LEAT_TRY(read_marker(j, i, add, cookie, err));
    return 0;
}

void leat__join_close(leat__join *j)
{
    for (uint32_t i = 0; j->frames && j->edges && i < j->part->parts; i++) {
        leat__buf_reset(&j->frames[i]);
        leat__buf_reset(&j->edges[i]);
    }
    for (int k = 0; k < LEAT__OUTS; k++) leat__free(j->length[k]);
    leat__free(j->frames);
    leat__free(j->edges);
}

/* A position in the kept documents of all parts. */
typedef struct place {
    uint32_t part;
    uint64_t offset;
} place;

/* Reads up to WINDOW bytes of a part at `offset`. */
static int window(const leat__join *j, uint32_t part, uint64_t offset, size_t len, char *out, leat_error *err)
{
    char path[4096];
    leat__file *f = NULL;
    LEAT_TRY(leat__file_open(&f, leat__part_path(j->part, "part", part, out_ext[LEAT__OUT_KEPT], path),
                             LEAT__FILE_READ, err));
    int rc = leat__file_pread(f, out, len, offset, err);
    leat__file_close(&f);
    return rc;
}

/* Finds the end of the last line of the part that ends in [from, limit]; `from` if there is none. */
static int last_line_end(const leat__join *j, uint32_t part, uint64_t from, uint64_t limit, uint64_t *end,
                         leat_error *err)
{
    LEAT_ASSERT(from <= limit);
    char block[WINDOW];
    *end = from;
    while (limit > from) {
        size_t n = (size_t)LEAT_MIN(WINDOW, limit - from);
        LEAT_TRY(window(j, part, limit - n, n, block, err));
        const char *nl = memrchr(block, '\n', n);
        if (nl) {
            *end = limit - n + (uint64_t)(nl - block) + 1;
            return 0;
        }
        limit -= n;
    }
    return 0;
}

/* Finds the end of the line that begins at `from`. */
static int line_end(const leat__join *j, uint32_t part, uint64_t from, uint64_t *end, leat_error *err)
{
    char block[WINDOW];
    uint64_t size = j->length[LEAT__OUT_KEPT][part];
    for (uint64_t at = from; at < size; at += WINDOW) {
        size_t n = (size_t)LEAT_MIN(WINDOW, size - at);
        LEAT_TRY(window(j, part, at, n, block, err));
        const char *nl = memchr(block, '\n', n);
        if (!nl) continue;
        *end = at + (uint64_t)(nl - block) + 1;
        return 0;
    }
    *end = size;
    return 0;
}

/* Finds the end of the output file that begins at *at, when lines are written one by one. */
static int plain_end(const leat__join *j, place at, place *end, leat_error *err)
{
    LEAT_ASSERT(at.part <= j->part->parts);
    const uint64_t *length = j->length[LEAT__OUT_KEPT];
    uint64_t room = j->shard_bytes;
    *end = at;
    for (; end->part < j->part->parts; *end = (place){end->part + 1, 0}) {
        uint64_t left = length[end->part] - end->offset, stop;
        if (left <= room) {
            room -= left;
            continue;
        }
        LEAT_TRY(last_line_end(j, end->part, end->offset, end->offset + room, &stop, err));
        if (stop == end->offset && room == j->shard_bytes) /* a line longer than a file */
            LEAT_TRY(line_end(j, end->part, end->offset, &stop, err));
        end->offset = stop;
        return 0;
    }
    return 0;
}

/* Does the same for compressed pieces, which are not split. */
static void frames_end(const leat__join *j, place at, place *end)
{
    LEAT_ASSERT(at.part <= j->part->parts && j->compress != LEAT__COMPRESS_NONE);
    uint64_t used = 0;
    *end = at;
    for (; end->part < j->part->parts; *end = (place){end->part + 1, 0}) {
        const leat__buf *frames = &j->frames[end->part];
        uint64_t offset = 0, len;
        for (size_t i = 0; i < frames->len; i += 8, offset += len) {
            memcpy(&len, frames->data + i, 8);
            if (offset < end->offset) continue;
            if (used > 0 && used + len > j->shard_bytes) {
                end->offset = offset;
                return;
            }
            used += len;
        }
    }
}

static void put_piece(leat__json *json, uint32_t part, const char *ext, uint64_t from, uint64_t len,
                      uint64_t at)
{
    char name[32];
    if (len == 0) return;
    snprintf(name, sizeof name, "part-%05u%s", part, ext);
    leat__json_array(json);
    leat__json_str(json, name);
    leat__json_u64(json, from);
    leat__json_u64(json, len);
    leat__json_u64(json, at);
    leat__json_end(json);
}

static void begin_copy(leat__json *json, const char *to, bool patch)
{
    leat__json_object(json);
    leat__json_kstr(json, "to", to);
    leat__json_kbool(json, "patch", patch);
    leat__json_key(json, "pieces");
    leat__json_array(json);
}

static void end_copy(leat__json *json)
{
    leat__json_end(json);
    leat__json_end(json);
}

static void output_name(const leat__join *j, uint64_t shard, char *out, size_t size)
{
    snprintf(out, size, "%s-%05u.jsonl%s", j->names[LEAT__OUT_KEPT], (unsigned)shard,
             leat__compress_extension(j->compress));
}

/* Moves an output file back to the work folder that a killed run had already renamed. */
static int reclaim(const leat__join *j, const char *name, leat_error *err)
{
    char from[4096], to[4096];
    bool there;
    LEAT_TRY(leat__path_exists(output_path(j->part, name, to), &there, err));
    if (there) return 0;
    snprintf(from, sizeof from, "%s/%s", j->output, name);
    return leat__path_rename(from, to, err);
}

/* Lists the edges of the parts for each file that the parts wrote. */
static int list_edges(leat__join *j, leat__json *json, leat_error *err)
{
    char name[64];
    j->bytes = 0;
    for (uint64_t shard = 0; shard < j->shards; shard++) {
        j->bytes += j->shard_length[shard];
        output_name(j, shard, name, sizeof name);
        LEAT_TRY(reclaim(j, name, err));
        begin_copy(json, name, true);
        for (uint32_t i = j->first; i < j->part->parts; i++) {
            leat__shard_edge edge;
            uint64_t from = 0;
            for (size_t k = 0; k + sizeof edge <= j->edges[i].len; k += sizeof edge, from += edge.len) {
                memcpy(&edge, j->edges[i].data + k, sizeof edge);
                if (edge.shard == shard) put_piece(json, i, ".edge", from, edge.len, edge.at);
            }
        }
        end_copy(json);
    }
    return 0;
}

static int list_kept(leat__join *j, leat__json *json, leat_error *err)
{
    const uint64_t *length = j->length[LEAT__OUT_KEPT];
    place at = {j->first, 0}, end;
    char name[64];
    j->shards = j->bytes = 0;
    for (uint32_t i = j->first; i < j->part->parts; i++) j->bytes += length[i];
    uint64_t left = j->bytes;
    do { /* an empty output is one empty file */
        if (j->compress == LEAT__COMPRESS_NONE) LEAT_TRY(plain_end(j, at, &end, err));
        else frames_end(j, at, &end);
        LEAT_TRY(leat__shards_check(j->output, j->shards, err));
        output_name(j, j->shards++, name, sizeof name);
        begin_copy(json, name, false);
        for (; at.part < end.part; at = (place){at.part + 1, 0}) {
            put_piece(json, at.part, out_ext[LEAT__OUT_KEPT], at.offset, length[at.part] - at.offset, 0);
            left -= length[at.part] - at.offset;
        }
        put_piece(json, at.part, out_ext[LEAT__OUT_KEPT], at.offset, end.offset - at.offset, 0);
        left -= end.offset - at.offset;
        LEAT_ASSERT(end.part >= at.part);
        at = end;
        end_copy(json);
    } while (left > 0);
    return 0;
}

int leat__join_list(leat__join *j, leat__buf *out, leat_error *err)
{
    leat__json json;
    char name[64];
    leat__json_init(&json, out, 0);
    leat__json_object(&json);
    leat__json_key(&json, "copies");
    leat__json_array(&json);
    LEAT_TRY(j->shard_length ? list_edges(j, &json, err) : list_kept(j, &json, err));
    for (int k = LEAT__OUT_SECOND; k < LEAT__OUTS; k++) {
        if (!j->names[k]) continue;
        snprintf(name, sizeof name, "%s.jsonl", j->names[k]);
        begin_copy(&json, name, false);
        for (uint32_t i = j->first; i < j->part->parts; i++)
            put_piece(&json, i, out_ext[k], 0, j->length[k][i], 0);
        end_copy(&json);
    }
    leat__json_end(&json);
    leat__json_end(&json);
    return out->status == 0 ? 0 : leat__fail_nomem(err, out->len, "the list of copies");
}

/* Fails with LEAT_EDATA when a file written by the parts does not have the planned length. */
static int check_length(const leat__join *j, uint64_t shard, const char *name, leat_error *err)
{
    char path[4096];
    leat__file *f = NULL;
    if (!j->shard_length) return 0;
    LEAT_TRY(leat__file_open(&f, output_path(j->part, name, path), LEAT__FILE_READ, err));
    uint64_t size = leat__file_size_at_open(f);
    leat__file_close(&f);
    if (size == j->shard_length[shard]) return 0;
    return leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (use `force` to start over)", path,
                      (unsigned long long)size, (unsigned long long)j->shard_length[shard]);
}

static int adopt(const leat__join *j, const char *name, leat_error *err)
{
    char from[4096], to[4096];
    snprintf(to, sizeof to, "%s/%s", j->output, name);
    return leat__path_rename(output_path(j->part, name, from), to, err);
}

int leat__join_end(leat__join *j, leat_error *err)
{
    char name[64];
    leat__buf list;
    leat__buf_init(&list, LEAT__MEM_CURATE, (size_t)1 << 33);
    int rc = leat__join_list(j, &list, err);
    leat__buf_reset(&list);
    for (uint64_t i = 0; i < j->shards && rc == 0; i++) {
        output_name(j, i, name, sizeof name);
        rc = check_length(j, i, name, err);
    }
    for (uint64_t i = 0; i < j->shards && rc == 0; i++) {
        output_name(j, i, name, sizeof name);
        rc = adopt(j, name, err);
    }
    for (int k = LEAT__OUT_SECOND; k < LEAT__OUTS && rc == 0; k++) {
        if (!j->names[k]) continue;
        snprintf(name, sizeof name, "%s.jsonl", j->names[k]);
        rc = adopt(j, name, err);
    }
    if (rc != 0) return rc;
    return leat__shards_trim(j->output, j->names[LEAT__OUT_KEPT], j->compress, (uint32_t)j->shards, err);
}

/* True for names of files and folders that runs write to a work folder: a word of the list, which a number, a
 * token or an extension may follow. */
static bool is_work_name(const char *name)
{
    static const char *const words[] = {LEAT__WORK_BEGUN,
                                        "state",
                                        "plan",
                                        "begin",
                                        "stamps",
                                        "places",
                                        "part",
                                        "starts",
                                        "removed",
                                        "band",
                                        "bands",
                                        "side",
                                        "edges",
                                        "sketch",
                                        "decisions",
                                        "edge",
                                        "load",
                                        "task",
                                        "out",
                                        ".nfs" /* a removed file that is still open on NFS */};
    for (size_t i = 0; i < LEAT_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if (strncmp(name, words[i], n) != 0) continue;
        if (name[n] == 0 || strchr("-.0123456789", name[n])) return true;
    }
    return false;
}

int leat__part_own(const char *folder, leat_error *err)
{
    struct stat st;
    leat__dir dir = {0};
    if (lstat(folder, &st) != 0) return 0;
    if (!S_ISDIR(st.st_mode))
        return leat__fail(err, LEAT_EEXIST, "%s: is not a folder: remove it first", folder);
    int rc = leat__dir_read(&dir, folder, true, err);
    if (rc == 0) leat__dir_sort(&dir, strcmp);
    for (size_t i = 0; i < dir.count && rc == 0; i++)
        if (!is_work_name(leat__dir_name(&dir, i)))
            rc = leat__fail(
                err, LEAT_EEXIST,
                "%s/%s: is not a file of leat, and this run would remove it (move it, or choose another "
                "folder)",
                folder, leat__dir_name(&dir, i));
    leat__dir_reset(&dir);
    return rc;
}

static int remove_files(const char *folder, int depth, leat_error *err)
{
    leat__dir dir = {0};
    char path[4096];
    LEAT_TRY(leat__part_own(folder, err));
    int rc = leat__dir_read(&dir, folder, false, err);
    for (size_t i = 0; i < dir.count && rc == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, leat__dir_name(&dir, i));
        rc = dir.entries[i].kind == LEAT__ENTRY_FOLDER && depth > 0 ? remove_files(path, depth - 1, err)
                                                                    : leat__path_unlink(path, err);
    }
    leat__dir_reset(&dir);
    return rc == 0 ? leat__path_rmdir(folder, err) : rc;
}

static const char *file_of(const char *folder, const char *name, char *out)
{
    snprintf(out, 4096, "%s/%s", folder, name);
    return out;
}

int leat__part_remove(const char *folder, leat_error *err)
{
    static const char *const first[] = {LEAT__WORK_BEGUN, LEAT__WORK_STATE, LEAT__PART_PLAN};
    char path[4096];
    bool there;
    LEAT_TRY(leat__part_own(folder, err));
    LEAT_TRY(leat__path_exists(folder, &there, err));
    if (!there) return 0;
    for (size_t i = 0; i < LEAT_COUNT(first); i++)
        LEAT_TRY(leat__path_unlink(file_of(folder, first[i], path), err));
    return remove_files(folder, 1, err);
}

int leat__part_clear(const char *output, bool replace, leat_error *err)
{
    char work[4000], path[4096];
    bool state, plan;
    if (snprintf(work, sizeof work, "%s/%s", output, LEAT__WORK_NAME) >= (int)sizeof work)
        return leat__fail(err, LEAT_EINVAL, "%s: the path is too long", output);
    LEAT_TRY(leat__part_own(work, err));
    LEAT_TRY(leat__path_exists(file_of(work, LEAT__WORK_STATE, path), &state, err));
    LEAT_TRY(leat__path_exists(file_of(work, LEAT__PART_PLAN, path), &plan, err));
    if ((state || plan) && !replace)
        return leat__fail(err, LEAT_EEXIST,
                          "%s: has an interrupted run of leat dedup (resume that run, or use `force` to "
                          "replace it)",
                          output);
    LEAT_TRY(leat__part_remove(work, err));
    return leat__output_sweep(output, err);
}
