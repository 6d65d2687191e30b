/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds JSONL files and cuts them into chunks. A chunk is LEAT__CHUNK_BYTES without the
 * incomplete last line; a longer line enlarges its chunk, up to the limit of a line.
 */
#include "curate/text_files.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/output_dir.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/url.h"

#define FOLDER_DEPTH 32
#define RECENT_S 2               /* timestamps of files have a coarse resolution */
#define REST_KEPT (4u << 20)     /* larger buffers are freed */
#define WINDOW (64u << 10)       /* bytes read to find the end of a line */
#define COUNT_BYTES (256u << 10) /* bytes counted at a time: fits the L2 cache */

leat__text_chunk *leat__text_chunk_new(void)
{
    leat__text_chunk *c = LEAT_NEW(CURATE, leat__text_chunk);
    if (!c) return NULL;
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++) leat__buf_init(&c->out[i], LEAT__MEM_CURATE, (size_t)1 << 40);
    return c;
}

void leat__text_chunk_free(leat__text_chunk *c)
{
    if (!c) return;
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++) leat__buf_reset(&c->out[i]);
    leat__free(c->data);
    leat__free(c->extra);
    leat__free(c);
}

void leat__text_chunk_clear(leat__text_chunk *c)
{
    leat__text_chunk keep = *c;
    leat__free(c->extra);
    memset(c, 0, sizeof *c);
    c->data = keep.data;
    c->capacity = keep.capacity;
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++) {
        c->out[i] = keep.out[i];
        leat__buf_clear(&c->out[i]);
    }
}

uint64_t leat__text_chunk_held(const leat__text_chunk *c)
{
    uint64_t n = sizeof *c + c->capacity;
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++) n += c->out[i].cap;
    return n;
}

bool leat__text_chunk_next(const leat__text_chunk *c, size_t *at, leat__line *line)
{
    if (*at == 0) {
        *line = (leat__line){.number = c->line - 1, .document = c->document - 1};
        if (c->offset == 0 && c->len >= 3 && memcmp(c->data, "\xef\xbb\xbf", 3) == 0) *at = 3;
    }
    while (*at < c->len) {
        const uint8_t *p = c->data + *at;
        line->text = p;
        line->len = c->end[line->number + 1 - c->line] - *at;
        line->offset = c->offset + *at;
        line->number++;
        line->document++;
        *at += line->len + 1;
        for (size_t i = 0; i < line->len; i++)
            if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r') return true;
    }
    return false;
}

/* ---- finding ---- */

static bool is_jsonl(const char *name)
{
    static const char *const ends[] = {".jsonl",   ".ndjson",    ".json",       ".jsonl.gz", ".ndjson.gz",
                                       ".json.gz", ".jsonl.zst", ".ndjson.zst", ".json.zst"};
    for (size_t i = 0; i < LEAT_COUNT(ends); i++)
        if (leat__str_ends_nocase(name, ends[i])) return true;
    return false;
}

/* Fails for files of other formats, whose lines would all be bad. */
static int check_format(leat__file *file, const char *path, leat_error *err)
{
    static const struct {
        const char *begin, *is;
    } others[] = {{"PAR1", "a Parquet file (leat.filter_parquet and leat.dedup_parquet read it)"},
                  {"BZh", "compressed by bzip2 (decompress it, or use gzip or zstd)"},
                  {"\xfd"
                   "7zXZ",
                   "compressed by xz (decompress it, or use gzip or zstd)"},
                  {"\xff\xfe", "UTF-16, not UTF-8 (convert it)"},
                  {"\xfe\xff", "UTF-16, not UTF-8 (convert it)"},
                  {LEAT__PACK_MAGIC, "a pack, not JSONL"}};
    char head[8] = {0};
    size_t got;
    LEAT_TRY(leat__file_pread_some(file, head, sizeof head, 0, &got, err));
    for (size_t i = 0; i < LEAT_COUNT(others); i++)
        if (memcmp(head, others[i].begin, strlen(others[i].begin)) == 0)
            return leat__fail(err, LEAT_EFORMAT, "%s: is %s", path, others[i].is);
    return 0;
}

/* Fails when the file is in an output folder whose run did not finish. */
static int check_finished(leat__text_files *f, const char *path, leat_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!leat__output_name(slash ? slash + 1 : path)) return 0;
    char *folder = slash ? leat__strndup(LEAT__MEM_CURATE, path, (size_t)(slash - path) + (slash == path))
                         : leat__strdup(LEAT__MEM_CURATE, ".");
    if (!folder) return leat__fail_nomem(err, strlen(path), "a path");
    bool known = f->finished && leat__str_eq(f->finished, folder);
    int rc = known ? 0 : leat__output_finished(folder, err);
    leat__free(f->finished);
    f->finished = folder;
    return rc;
}

static int add_file(leat__text_files *f, const char *path, leat_error *err)
{
    if (f->count == f->capacity) {
        uint32_t n = f->capacity ? 2 * f->capacity : 16;
        char **p = leat__realloc(LEAT__MEM_CURATE, f->path, n * sizeof *p);
        if (!p) return leat__fail_nomem(err, n * sizeof *p, "the list of files");
        f->path = p;
        uint64_t *s = leat__realloc(LEAT__MEM_CURATE, f->size, n * sizeof *s);
        if (!s) return leat__fail_nomem(err, n * sizeof *s, "the list of files");
        f->size = s;
        f->capacity = n;
    }
    leat__file *file = NULL;
    LEAT_TRY(check_finished(f, path, err));
    LEAT_TRY(leat__file_open(&file, path, LEAT__FILE_READ, err));
    f->size[f->count] = leat__file_size_at_open(file);
    int rc = check_format(file, path, err);
    leat__file_close(&file);
    if (rc != 0) return rc;
    f->path[f->count] = leat__strdup(LEAT__MEM_CURATE, path);
    if (!f->path[f->count]) return leat__fail_nomem(err, strlen(path), "a path");
    f->total += f->size[f->count++];
    return 0;
}

/* True when the folder has a file whose name begins so. */
static bool has(const leat__dir *dir, const char *begin)
{
    for (size_t i = 0; i < dir->count; i++)
        if (leat__str_starts(leat__dir_name(dir, i), begin)) return true;
    return false;
}

/* Which files of a folder are read. */
typedef enum choice { ALL, KEPT, FOREIGN } choice;

/* The output of a filter or deduplication run has its documents in kept-*; the other files are lists about
 * them. Of an input folder these documents are read; below one, only files that are not of the run. */
static choice choose(const leat__text_files *f, const leat__dir *dir, const char *path, bool below)
{
    if (!has(dir, "report.json")) return ALL;
    if (below && !f->only_outputs && leat__output_complete(path)) return FOREIGN;
    return has(dir, "kept-00000.jsonl") ? KEPT : ALL;
}

static bool is_chosen(const char *name, choice c)
{
    if (!is_jsonl(name) || name[0] == '.') return false;
    if (c == KEPT) return leat__str_starts(name, "kept-");
    return c == ALL || !leat__output_name(name);
}

static int leave_out(leat__text_files *f, const char *path, leat_error *err)
{
    f->skips++;
    if (!f->skipped) f->skipped = leat__strdup(LEAT__MEM_CURATE, path);
    return f->skipped ? 0 : leat__fail_nomem(err, strlen(path), "a path");
}

/* A folder that is being searched, and the one above it. */
typedef struct searched {
    const struct searched *up;
    leat__dir dir;
    int depth;
} searched;

/* Reads the folder. Fails when it is too deep, or when a link led back to it. */
static int enter_folder(searched *s, const char *path, leat_error *err)
{
    s->depth = s->up ? s->up->depth + 1 : 0;
    if (s->depth > FOLDER_DEPTH)
        return leat__fail(err, LEAT_ELIMIT, "%s: folders are nested deeper than %d", path, FOLDER_DEPTH);
    LEAT_TRY(leat__dir_read(&s->dir, path, false, err));
    for (const searched *up = s->up; up; up = up->up)
        if (up->dir.inode != 0 && up->dir.device == s->dir.device && up->dir.inode == s->dir.inode)
            return leat__fail(err, LEAT_EDATA, "%s: a link leads back to a folder above it", path);
    leat__dir_sort(&s->dir, strcmp);
    return 0;
}

/* Adds the entries of a folder that match the pattern (NULL: JSONL files, recursively). */
static int add_folder(leat__text_files *f, const char *path, const char *pattern, const searched *up,
                      leat_error *err)
{
    searched here = {.up = up};
    leat__buf name;
    int rc;
    leat__buf_init(&name, LEAT__MEM_CURATE, 1u << 20);
    LEAT_GO(rc, out, enter_folder(&here, path, err));
    const leat__dir *dir = &here.dir;
    const choice c = pattern ? ALL : choose(f, dir, path, up != NULL);
    if (c == FOREIGN) LEAT_GO(rc, out, leave_out(f, path, err));
    for (size_t i = 0; i < dir->count; i++) {
        const char *entry = leat__dir_name(dir, i);
        leat__entry_kind kind = dir->entries[i].kind;
        leat__buf_clear(&name);
        LEAT_GO(rc, out, leat__path_join(&name, path, entry));
        if (kind == LEAT__ENTRY_FILE &&
            (pattern ? fnmatch(pattern, entry, FNM_PERIOD) == 0 : is_chosen(entry, c)))
            LEAT_GO(rc, out, add_file(f, leat__buf_str(&name), err));
        if (c == KEPT && kind == LEAT__ENTRY_FILE && !is_chosen(entry, KEPT) && is_chosen(entry, FOREIGN) &&
            !f->ignored)
            f->ignored = leat__strdup(LEAT__MEM_CURATE, leat__buf_str(&name));
        if (!pattern && kind == LEAT__ENTRY_FOLDER && entry[0] != '.')
            LEAT_GO(rc, out, add_folder(f, leat__buf_str(&name), NULL, &here, err));
    }
out:
    leat__buf_reset(&name);
    leat__dir_reset(&here.dir);
    return rc;
}

/* Adds the files of an input folder. Outputs of runs below it are added only if all other files are empty:
 * they may have been made of the other files, whose documents would then come twice. */
static int search_folder(leat__text_files *f, const char *path, leat_error *err)
{
    const uint32_t files = f->count, skips = f->skips;
    const uint64_t total = f->total;
    f->only_outputs = false;
    LEAT_TRY(add_folder(f, path, NULL, NULL, err));
    if (f->total == total && f->skips > skips) {
        f->only_outputs = true;
        f->skips = skips;
        while (f->count > files) leat__free(f->path[--f->count]);
        if (skips == 0) {
            leat__free(f->skipped);
            f->skipped = NULL;
        }
        LEAT_TRY(add_folder(f, path, NULL, NULL, err));
    }
    if (f->count > files) return 0;
    return leat__fail(err, LEAT_ENOENT, "%s: has no .jsonl, .ndjson or .json files (also .gz and .zst)",
                      path);
}

static int add_pattern(leat__text_files *f, const char *input, leat_error *err)
{
    const char *slash = strrchr(input, '/');
    char *folder = slash ? leat__strndup(LEAT__MEM_CURATE, input, (size_t)(slash - input) + (slash == input))
                         : leat__strdup(LEAT__MEM_CURATE, ".");
    if (!folder) return leat__fail_nomem(err, strlen(input), "a path");
    int rc = add_folder(f, folder, slash ? slash + 1 : input, NULL, err);
    leat__free(folder);
    return rc;
}

static int add_input(leat__text_files *f, const char *input, leat_error *err)
{
    leat__entry_kind kind;
    uint32_t before = f->count;
    leat_error why = {0};
    if (!input[0]) return leat__fail(err, LEAT_EINVAL, "the name of an input is empty");
    int rc = leat__path_kind(input, &kind, &why);
    if (rc == LEAT_ENOENT && strpbrk(input, "*?[")) {
        LEAT_TRY(add_pattern(f, input, err));
        if (f->count > before) return 0;
        return leat__fail(err, LEAT_ENOENT, "%s: no file matches", input);
    }
    if (rc != 0) {
        if (err) *err = why;
        return rc;
    }
    if (kind == LEAT__ENTRY_FOLDER) return search_folder(f, input, err);
    if (kind != LEAT__ENTRY_FILE)
        return leat__fail(err, LEAT_EINVAL, "%s: not a regular file or a folder", input);
    return add_file(f, input, err);
}

int leat__text_files_open(leat__text_files *f, const char *const *inputs, uint32_t count, uint64_t max_line,
                          leat_error *err)
{
    int rc = 0;
    memset(f, 0, sizeof *f);
    f->max_line = max_line;
    leat__buf_init(&f->rest, LEAT__MEM_CURATE, 2 * ((size_t)max_line + LEAT__CHUNK_BYTES));
    if (count == 0) rc = leat__fail(err, LEAT_EINVAL, "no input was named");
    for (uint32_t i = 0; i < count && rc == 0; i++) rc = add_input(f, inputs[i], err);
    leat__text_files_rewind(f);
    f->end_file = f->count;
    if (rc != 0) leat__text_files_reset(f);
    return rc;
}

static bool same_place(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Fails when the file is in the folder under a name that a run writes. */
static int check_folder(const char *path, const char *folder, leat_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!leat__output_name(slash ? slash + 1 : path)) return 0;
    char *parent = leat__strdup(LEAT__MEM_CURATE, slash ? path : ".");
    if (!parent) return leat__fail_nomem(err, strlen(path), "a path");
    if (slash) parent[LEAT_MAX(slash - path, 1)] = 0;
    bool same = same_place(parent, folder);
    leat__free(parent);
    return same
               ? leat__fail(err, LEAT_EINVAL,
                            "%s: is an input, and the output would replace it (choose another output folder)",
                            path)
               : 0;
}

static int check_reports(const char *path, const char *reports, leat_error *err)
{
    char *list = leat__strdup(LEAT__MEM_CURATE, reports);
    int rc = list ? 0 : leat__fail_nomem(err, strlen(reports), "the report");
    for (char *at = list, *next; at && rc == 0; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = 0;
        if (same_place(path, at))
            rc = leat__fail(err, LEAT_EINVAL, "`report`: %s is an input: choose another name", at);
    }
    leat__free(list);
    return rc;
}

int leat__text_files_check(const leat__text_files *f, const char *output, const char *reports,
                           leat_error *err)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (output) LEAT_TRY(check_folder(f->path[i], output, err));
        if (reports) LEAT_TRY(check_reports(f->path[i], reports, err));
    }
    return 0;
}

int leat__text_output_check(const char *output, const char *const *inputs, uint32_t count, const char *index,
                            leat_error *err)
{
    for (uint32_t i = 0; i < count && output; i++)
        if (same_place(inputs[i], output))
            return leat__fail(err, LEAT_EINVAL, "%s: is an input (choose another output folder)", output);
    if (output && index && same_place(index, output))
        return leat__fail(err, LEAT_EINVAL,
                          "%s: has the index of `against`, and the output would replace it (choose another "
                          "output folder)",
                          output);
    return 0;
}

void leat__text_files_reset(leat__text_files *f)
{
    leat__stream_close(&f->stream);
    leat__buf_reset(&f->rest);
    for (uint32_t i = 0; i < f->count; i++) leat__free(f->path[i]);
    leat__free(f->path);
    leat__free(f->size);
    leat__free(f->ignored);
    leat__free(f->skipped);
    leat__free(f->finished);
    leat__free(f->sum);
    leat__free(f->first);
    leat__free(f->found);
    leat__free(f->stamp);
    leat__free(f->trusted);
    memset(f, 0, sizeof *f);
}

void leat__text_files_warn(const leat__text_files *f, const leat_log *log)
{
    if (f->ignored)
        leat__log(log, LEAT_LOG_WARN,
                  "%s: not read: its folder has the output of a run, of which only kept-* is read",
                  f->ignored);
    if (!f->skipped) return;
    char more[48] = "";
    if (f->skips > 1)
        snprintf(more, sizeof more, " and %u more folder%s", f->skips - 1, leat__plural(f->skips - 1));
    leat__log(log, LEAT_LOG_WARN,
              "%s%s: not read: the output of a run beside other documents (to read it, name its folder)",
              f->skipped, more);
}

void leat__text_files_rewind(leat__text_files *f)
{
    leat__stream_close(&f->stream);
    leat__buf_clear(&f->rest);
    f->next = 0;
    f->document = f->bytes_read = 0;
}

/* ---- reading ---- */

static int grow(leat__text_chunk *c, size_t capacity, leat_error *err)
{
    if (c->capacity >= capacity + LEAT__TEXT_PAD) return 0;
    uint8_t *p = leat__realloc(LEAT__MEM_CURATE, c->data, capacity + LEAT__TEXT_PAD);
    if (!p) return leat__fail_nomem(err, capacity, "a chunk of lines");
    c->data = p;
    c->capacity = capacity + LEAT__TEXT_PAD;
    return 0;
}

static int open_next(leat__text_files *f, leat_error *err)
{
    LEAT_TRY(leat__stream_open(&f->stream, f->path[f->next], err));
    if (leat__stream_size(f->stream) != f->size[f->next]) return leat__text_files_changed(f, f->next, err);
    f->next++;
    f->line = 1;
    f->offset = 0;
    f->at_end = false;
    leat__buf_clear(&f->rest);
    return 0;
}

int leat__text_files_seek(leat__text_files *f, uint32_t file, uint64_t offset, uint64_t line,
                          uint64_t document, leat_error *err)
{
    uint64_t got;
    leat__text_files_rewind(f);
    f->document = document;
    if (offset == 0 && file == 0) return 0;
    f->next = file;
    LEAT_TRY(open_next(f, err));
    LEAT_TRY(leat__stream_skip(f->stream, offset, &got, err));
    if (got < offset)
        return leat__fail(err, LEAT_EDATA, "%s: is shorter than %llu bytes", f->path[file],
                          (unsigned long long)offset);
    f->line = line;
    f->offset = offset;
    f->document = document;
    return 0;
}

void leat__line_numbers_want(leat__line_numbers *n, uint32_t file)
{
    if (file < n->unknown) atomic_store_explicit(&n->wanted, true, memory_order_relaxed);
}

int leat__line_numbers_check(leat__line_numbers *n, leat_error *err)
{
    if (!atomic_load_explicit(&n->wanted, memory_order_relaxed)) return 0;
    return leat__fail(err, LEAT_ECANCELED, "the lines before this part are not counted");
}

/* Counts the words that begin in a block. *inside: the byte before it belongs to a word. Bytes outside of
 * ASCII count as letters. */
static uint64_t count_words(const uint8_t *data, size_t len, bool *inside)
{
    uint64_t count = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t low = data[i] | 32;
        bool letter = data[i] >= 0x80 || (low >= 'a' && low <= 'z') || (data[i] >= '0' && data[i] <= '9');
        count += letter && !*inside;
        *inside = letter;
    }
    return count;
}

/* Skips the rest of the line that fills the chunk, because it exceeds a limit. The data after its
 * newline goes to the next chunk. */
static int skip_line(leat__text_files *f, leat__text_chunk *c, leat_error *err)
{
    bool newline = false, inside = false;
    uint64_t sum = 0; /* per block, so that it does not depend on the length at which skipping begins */
    for (size_t at = 0; f->sum && at < c->len; at += LEAT__CHUNK_BYTES)
        sum += leat__hash64(c->data + at, LEAT_MIN(c->len - at, LEAT__CHUNK_BYTES), f->offset + at);
    c->too_long = c->len;
    c->skipped_words = count_words(c->data, c->len, &inside);
    for (;;) {
        size_t got;
        LEAT_TRY(leat__stream_read(f->stream, c->data, LEAT__CHUNK_BYTES, &got, err));
        f->at_end = got < LEAT__CHUNK_BYTES;
        const uint8_t *nl = memchr(c->data, '\n', got);
        size_t used = nl ? (size_t)(nl - c->data) + 1 : got;
        if (f->sum && used > 0) sum += leat__hash64(c->data, used, f->offset + c->too_long);
        c->too_long += used;
        c->skipped_words += count_words(c->data, used, &inside);
        newline = nl != NULL;
        if (nl) LEAT_TRY(leat__buf_append(&f->rest, c->data + used, got - used));
        if (nl || f->at_end) break;
    }
    c->skipped_bytes = c->too_long - newline;
    c->no_room = c->skipped_bytes <= f->max_line;
    f->offset += c->too_long;
    c->sum = sum;
    c->len = 0;
    c->lines = 1;
    return 0;
}

/* Cuts the chunk after its last newline, or after LEAT__CHUNK_LINES lines, and keeps the rest for the
 * next. At the end of the file the last line may lack its newline. */
static int cut(leat__text_files *f, leat__text_chunk *c, bool *whole, leat_error *err)
{
    const uint8_t *last = memrchr(c->data, '\n', c->len);
    *whole = last || f->at_end;
    if (!*whole) return 0;
    size_t keep = 0, end = f->at_end ? c->len : (size_t)(last - c->data) + 1;
    while (keep < end && c->lines < LEAT__CHUNK_LINES) {
        const uint8_t *nl = memchr(c->data + keep, '\n', end - keep);
        size_t len = nl ? (size_t)(nl - c->data) - keep : end - keep;
        if (len <= f->max_line) c->longest = LEAT_MAX(c->longest, len);
        c->end[c->lines++] = keep + len;
        keep += len + (nl != NULL);
    }
    if (leat__buf_append(&f->rest, c->data + keep, c->len - keep) != 0)
        return leat__fail_nomem(err, c->len - keep, "a line");
    c->len = keep;
    f->offset += keep;
    return 0;
}

/* True when a reader that starts after this chunk would get the same chunks. Not when more than a
 * chunk was read ahead: the next chunk is then longer than usual. */
static bool may_cut(const leat__text_files *f)
{
    return f->rest.len < LEAT__CHUNK_BYTES && (f->rest.len > 0 || !f->at_end);
}

/* Starts a chunk of *room bytes with the data read after the last one. */
static int begin_chunk(leat__text_files *f, leat__text_chunk *c, size_t *room, leat_error *err)
{
    *room = LEAT__CHUNK_BYTES;
    c->file = f->next - 1;
    c->line = f->line;
    c->offset = f->offset;
    c->document = f->document;
    while (*room < f->rest.len) *room *= 2;
    LEAT_TRY(grow(c, *room, err));
    if (f->rest.len > 0) memcpy(c->data, f->rest.data, f->rest.len);
    c->len = f->rest.len;
    if (f->rest.cap > REST_KEPT) leat__buf_reset(&f->rest);
    leat__buf_clear(&f->rest);
    return 0;
}

/* Drops the data read beyond the end of the part. */
static void stop_at_end(leat__text_files *f, leat__text_chunk *c)
{
    if (f->end_offset == 0 || f->next != f->end_file + 1 || f->offset + c->len < f->end_offset) return;
    c->len = (size_t)(f->end_offset - f->offset);
    f->at_end = true;
}

/* Reads one chunk of the open file; c->lines is 0 at the end of the file and for a partial chunk. */
static int read_chunk(leat__text_files *f, leat__text_chunk *c, leat_error *err)
{
    size_t room = 2 * c->len; /* for a partial chunk, which is full */
    if (!c->partial) LEAT_TRY(begin_chunk(f, c, &room, err));
    c->partial = false;
    for (;;) {
        size_t got = 0;
        bool whole;
        LEAT_TRY(grow(c, room, err));
        if (!f->at_end) LEAT_TRY(leat__stream_read(f->stream, c->data + c->len, room - c->len, &got, err));
        if (c->len + got < room) f->at_end = true;
        c->len += got;
        stop_at_end(f, c);
        if (c->len == 0) return 0;
        LEAT_TRY(cut(f, c, &whole, err));
        if (whole) break;
        if (c->len > f->max_line || (f->room_line && c->len > f->room_line)) {
            LEAT_TRY(skip_line(f, c, err));
            break;
        }
        room *= 2;
        c->partial = f->pause && room > f->pause;
        if (c->partial) return 0;
    }
    memset(c->data + c->len, 0, LEAT__TEXT_PAD);
    c->may_cut = may_cut(f);
    c->may_stop = f->rest.len < LEAT__CHUNK_BYTES;
    f->line += c->lines;
    f->document += c->lines;
    return 0;
}

int leat__text_files_read(leat__text_files *f, leat__text_chunk *c, bool *end, leat_error *err)
{
    *end = false;
    for (;;) {
        bool last = f->stream ? f->next == f->end_file + 1 && f->offset >= f->end_offset
                              : f->next > f->end_file || (f->next == f->end_file && f->end_offset == 0);
        if (!c->partial && (last || (!f->stream && f->next == f->count))) {
            *end = true;
            return 0;
        }
        if (!f->stream) LEAT_TRY(open_next(f, err));
        LEAT_TRY(read_chunk(f, c, err));
        if (c->lines > 0 || c->partial) return 0;
        f->bytes_read += f->size[f->next - 1];
        leat__stream_close(&f->stream);
    }
}

/* ---- checksums ---- */

void leat__text_chunk_sum(const leat__text_files *f, leat__text_chunk *c)
{
    if (f->sum && c->len > 0 && !f->trusted[c->file]) c->sum = leat__hash64(c->data, c->len, c->offset);
}

/* Returns a stamp of a local file, from its inode, size and times. Returns 0 when there is none, or
 * when the file changed so recently that another change may have the same time. */
static uint64_t stamp_of(const char *path)
{
    struct stat st;
    if (leat__path_remote(path) || stat(path, &st) != 0) return 0;
    if (LEAT_MAX(st.st_mtim.tv_sec, st.st_ctim.tv_sec) + RECENT_S > time(NULL)) return 0;
    const uint64_t facts[] = {st.st_dev,
                              st.st_ino,
                              (uint64_t)st.st_size,
                              (uint64_t)st.st_mtim.tv_sec,
                              (uint64_t)st.st_mtim.tv_nsec,
                              (uint64_t)st.st_ctim.tv_sec,
                              (uint64_t)st.st_ctim.tv_nsec};
    return leat__hash64(facts, sizeof facts, 0) >> 1 | 1;
}

uint64_t leat__text_files_stamp(const leat__text_files *f, uint32_t file)
{
    struct stat st;
    if (leat__path_remote(f->path[file]) || stat(f->path[file], &st) != 0) return f->size[file];
    const uint64_t facts[] = {st.st_dev, st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                              (uint64_t)st.st_mtim.tv_nsec};
    return leat__hash64(facts, sizeof facts, 0) >> 1;
}

int leat__text_files_changed(const leat__text_files *f, uint32_t file, leat_error *err)
{
    if (!f->sum) return leat__fail(err, LEAT_EDATA, "%s: changed since the run began", f->path[file]);
    return leat__fail(err, LEAT_EDATA, "%s: changed since the run began (use `force` to start over)",
                      f->path[file]);
}

/* Compares the files before `end`, which have been read completely, with the first pass. */
static int compare(leat__text_files *f, uint32_t end, leat_error *err)
{
    for (; f->again && f->compared < end; f->compared++)
        if (f->trusted[f->compared] ? stamp_of(f->path[f->compared]) != f->stamp[f->compared]
                                    : f->sum[f->compared] != f->first[f->compared])
            return leat__text_files_changed(f, f->compared, err);
    return 0;
}

int leat__text_files_begin(leat__text_files *f, bool again, leat_error *err)
{
    if (!f->sum) f->sum = LEAT_NEW_ARRAY(CURATE, uint64_t, f->count);
    if (!f->first) f->first = LEAT_NEW_ARRAY(CURATE, uint64_t, f->count);
    if (!f->found) f->found = LEAT_NEW_ARRAY(CURATE, uint64_t, f->count);
    if (!f->stamp) f->stamp = LEAT_NEW_ARRAY(CURATE, uint64_t, f->count);
    if (!f->trusted) f->trusted = LEAT_NEW_ARRAY(CURATE, bool, f->count);
    if (!f->sum || !f->first || !f->found || !f->stamp || !f->trusted)
        return leat__fail_nomem(err, f->count * 33, "checksums");
    memset(f->sum, 0, f->count * sizeof *f->sum);
    for (uint32_t i = 0; i < f->count; i++) {
        if (!again) f->found[i] = leat__text_files_stamp(f, i);
        if (!again) f->stamp[i] = stamp_of(f->path[i]);
        f->trusted[i] = again && f->stamp[i] && stamp_of(f->path[i]) == f->stamp[i];
    }
    f->again = again;
    f->compared = 0;
    return 0;
}

int leat__text_files_take(leat__text_files *f, const leat__text_chunk *c, leat_error *err)
{
    if (!f->sum) return 0;
    LEAT_TRY(compare(f, c->file, err));
    bool first = !f->again && c->offset == 0;
    if (c->changed || (first && leat__text_files_stamp(f, c->file) != f->found[c->file]))
        return leat__text_files_changed(f, c->file, err);
    f->sum[c->file] = (f->sum[c->file] + c->sum) & (UINT64_MAX >> 1);
    return 0;
}

int leat__text_files_end(leat__text_files *f, leat_error *err)
{
    LEAT_TRY(compare(f, f->count, err));
    if (!f->again) memcpy(f->first, f->sum, f->count * sizeof *f->sum);
    return 0;
}

/* Finds the start of the first line at or after `from`; the size of the file if there is none. */
static int next_line(const leat__file *file, uint64_t from, uint64_t *start, leat_error *err)
{
    char block[WINDOW];
    *start = leat__file_size_at_open(file);
    for (uint64_t at = from - 1; at < *start;) {
        size_t got;
        LEAT_TRY(leat__file_pread_some(file, block, sizeof block, at, &got, err));
        const char *nl = memchr(block, '\n', got);
        if (nl) *start = at + (uint64_t)(nl - block) + 1;
        if (nl || got < sizeof block) return 0;
        at += got;
    }
    return 0;
}

static int add_cut(leat__buf *found, uint64_t offset, uint64_t line, leat_error *err)
{
    leat__text_cut cut = {offset, line};
    if (leat__buf_append(found, &cut, sizeof cut) == 0) return 0;
    return leat__fail_nomem(err, found->len, "positions in a file");
}

static int cut_lines(const leat__text_files *f, uint64_t step, leat__buf *found, leat_error *err)
{
    leat__file *file = NULL;
    LEAT_TRY(leat__file_open(&file, f->path[0], LEAT__FILE_READ, err));
    const uint64_t size = leat__file_size_at_open(file);
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && size - at > step;) {
        rc = next_line(file, at + step, &at, err);
        if (rc == 0 && at < size) rc = add_cut(found, at, 0, err);
    }
    leat__file_close(&file);
    return rc;
}

static int cut_chunks(leat__text_files *f, uint64_t step, leat__buf *found, leat_error *err)
{
    uint64_t last = 0;
    int rc = 0;
    leat__text_chunk *c = leat__text_chunk_new();
    if (!c) return leat__fail_nomem(err, sizeof *c, "a chunk");
    for (;;) {
        leat__text_chunk_clear(c);
        LEAT_GO(rc, out, read_chunk(f, c, err));
        if (c->lines == 0) break;
        if (f->offset - last < step || !c->may_cut) continue;
        last = f->offset;
        LEAT_GO(rc, out, add_cut(found, f->offset, f->line, err));
    }
out:
    leat__text_chunk_free(c);
    return rc;
}

int leat__text_files_cut(leat__text_files *f, uint64_t step, bool chunks, leat__text_cut **cuts,
                         size_t *count, leat_error *err)
{
    leat__buf found;
    leat__buf_init(&found, LEAT__MEM_CURATE, 1u << 30);
    *cuts = NULL;
    *count = 0;
    leat__text_files_rewind(f);
    int rc = open_next(f, err);
    if (rc == 0 && !leat__stream_compressed(f->stream))
        rc = chunks ? cut_chunks(f, step, &found, err) : cut_lines(f, LEAT_MAX(step, 1), &found, err);
    if (rc == 0) *count = found.len / sizeof(leat__text_cut);
    if (rc == 0 && found.len > 0) *cuts = (leat__text_cut *)(void *)leat__buf_take(&found, NULL);
    leat__buf_reset(&found);
    leat__text_files_rewind(f);
    return rc;
}

/* Counts newlines in short blocks, whose counts fit in a byte, so that compilers vectorise the inner loop. */
static uint64_t count_newlines(const uint8_t *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < n; at += 128) {
        uint8_t some = 0;
        for (size_t i = at; i < LEAT_MIN(at + 128, n); i++) some = (uint8_t)(some + (p[i] == '\n'));
        sum += some;
    }
    return sum;
}

int leat__text_count_lines(const char *path, uint64_t from, uint64_t to, uint64_t *count, leat_error *err)
{
    leat__file *f = NULL;
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, COUNT_BYTES);
    int rc =
        block ? leat__file_open(&f, path, LEAT__FILE_READ, err) : leat__fail_nomem(err, COUNT_BYTES, "lines");
    *count = 0;
    for (uint64_t at = from; at < to && rc == 0; at += COUNT_BYTES) {
        size_t n = (size_t)LEAT_MIN(to - at, COUNT_BYTES);
        rc = leat__file_pread(f, block, n, at, err);
        if (rc == 0) *count += count_newlines(block, n);
    }
    leat__file_close(&f);
    leat__free(block);
    return rc;
}
