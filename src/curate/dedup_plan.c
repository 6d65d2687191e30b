/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates the memory and disk that a run needs before it begins. The number of documents is
 * estimated from lines at a few places of a few files. Also reads the sketches of documents during a run.
 */
#include <stdio.h>
#include <string.h>

#include <leat/machine.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/dedup_lines.h"
#include "io/dir.h"

#define SAMPLE_FILES 16
#define PLACES 16                /* places where lines are counted, of all sampled files together */
#define PIECE_PLACES 2           /* times as many where pieces are counted, which vary more */
#define PLACE_BYTES (256u << 10) /* bytes at each */
#define COMPRESSED 4             /* text bytes per byte of compressed output, assumed */
#define RATIO_BYTES (4u << 20)   /* text bytes from which the compression of a file is estimated */
#define FLOOR (48u << 20)
#define WORDS_FLOOR (80u << 20) /* for substrings, whose hashes take more than their text */
#define PIECE_BYTES 40          /* bytes of a line, assumed in documents that are too long to sample */
#define DROPPED_BYTES 100       /* bytes of reasons per document, assumed */
#define WORD_BYTES 6            /* bytes of a word and its separator, assumed in such documents */
#define RECORD_BYTES 24         /* bytes of a line or a sequence of words in the files by hash */

static bool is_compressed(const char *path)
{
    return leat__str_ends_nocase(path, ".gz") || leat__str_ends_nocase(path, ".zst");
}

/* Totals of sampled lines. Their number is that of lines that end in `bytes`. */
typedef struct samples {
    uint64_t bytes, lines;
    uint64_t id_bytes, id_lines;
    double pieces, piece_bytes; /* lines or sequences of words estimated for sampled files; bytes of these */
    uint64_t packed, unpacked;  /* bytes of a part of a compressed file, and of its text */
} samples;

/* Returns the bytes of the ids in a chunk. */
static uint64_t id_bytes(const leat__dedup *d, const leat__text_files *f, const leat__text_chunk *c)
{
    leat__line_names names = d->names;
    leat__line line;
    leat__buf id;
    size_t at = 0, where;
    uint64_t sum = 0;
    names.path = f->path;
    leat__buf_init(&id, LEAT__MEM_CURATE, 64u << 20);
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        if (leat__line_read(&names, &line, &r, &where) != NULL) continue;
        leat__buf_clear(&id);
        leat__line_id_json(&names, c, &line, &r, &id);
        sum += id.len;
    }
    leat__buf_reset(&id);
    return sum;
}

static uint64_t piece_bytes(const leat__dedup *d)
{
    return d->opts->level == LEAT_LEVEL_SUBSTRING ? WORD_BYTES : PIECE_BYTES;
}

/* Adds the pieces per byte of a chunk. `inside`: see leat__dedup_count_pieces. */
static int add_density(leat__dedup *d, leat__text_chunk *c, bool inside, double *density, leat_error *err)
{
    uint64_t bytes = c->partial ? c->len : c->too_long, pieces = bytes / piece_bytes(d);
    if (bytes == 0) LEAT_TRY(leat__dedup_count_pieces(d, c, inside, &pieces, &bytes, err));
    *density += bytes > 0 ? (double)pieces / (double)bytes : 1. / (double)piece_bytes(d);
    return 0;
}

/* Leaves the lines that begin in the first bytes of a chunk, so that each place is about equally long. */
static void trim_chunk(leat__text_chunk *c)
{
    uint64_t n = 0;
    while (n < c->lines && c->end[n] < PLACE_BYTES) n++;
    if (c->too_long || n >= c->lines) return;
    c->lines = n + 1;
    c->len = LEAT_MIN(c->len, c->end[n] + 1);
}

/* Adds the pieces per byte at evenly spaced places of a file. The chunks differ in bytes, the places have the
 * same weight. */
static int add_densities(leat__dedup *d, leat__text_files *f, leat__text_chunk *c, uint32_t places,
                         double *density, leat_error *err)
{
    f->pause = LEAT__CHUNK_BYTES; /* reads only the begin of a long line */
    for (uint32_t i = 0; i < places; i++) {
        bool end;
        leat__text_chunk_clear(c);
        uint64_t at = (f->size[0] - PLACE_BYTES) / (2 * places) * (2 * i + 1);
        LEAT_TRY(leat__text_files_seek(f, 0, at, 1, 0, err));
        LEAT_TRY(leat__text_files_read(f, c, &end, err));
        trim_chunk(c);
        LEAT_TRY(add_density(d, c, true, density, err));
    }
    return 0;
}

/* Adds the compression of the first part of a file. */
static int sample_ratio(leat__stream *stream, samples *s, leat_error *err)
{
    uint64_t got;
    LEAT_TRY(leat__stream_skip(stream, RATIO_BYTES, &got, err));
    s->packed += leat__stream_taken(stream);
    s->unpacked += leat__stream_offset(stream);
    return 0;
}

/* Adds the lines at evenly spaced places of a file to the samples. */
static int sample_places(const char *path, uint64_t size, uint32_t places, samples *s, leat_error *err)
{
    for (uint32_t i = 0; i < places; i++) {
        uint64_t at = (size - PLACE_BYTES) / (2 * places) * (2 * i + 1), lines;
        LEAT_TRY(leat__text_count_lines(path, at, at + PLACE_BYTES, &lines, err));
        s->bytes += PLACE_BYTES;
        s->lines += lines;
    }
    return 0;
}

/* Adds the pieces of a file, whose first chunk was read: from that chunk, or of a `large` file from places.
 */
static int sample_pieces(leat__dedup *d, leat__text_files *f, leat__text_chunk *c, bool large,
                         uint32_t places, samples *s, leat_error *err)
{
    double density = 0;
    if (d->opts->level == LEAT_LEVEL_DOCUMENT) return 0;
    places *= PIECE_PLACES;
    if (large) LEAT_TRY(add_densities(d, f, c, places, &density, err));
    else LEAT_TRY(add_density(d, c, false, &density, err));
    s->pieces += density / (large ? places : 1) * (double)f->size[0];
    s->piece_bytes += (double)f->size[0];
    return 0;
}

static int sample_open(leat__dedup *d, leat__text_files *f, leat__text_chunk *c, uint32_t places, samples *s,
                       leat_error *err)
{
    bool end;
    /* a longer line is counted, but not kept in memory */
    f->room_line = d->opts->level == LEAT_LEVEL_DOCUMENT ? d->memory / 8 : LEAT__CHUNK_BYTES;
    LEAT_TRY(leat__text_files_read(f, c, &end, err));
    s->id_lines += c->lines;
    s->id_bytes += id_bytes(d, f, c);
    bool packed = f->stream && leat__stream_compressed(f->stream);
    bool large = f->size[0] > LEAT__CHUNK_BYTES && f->stream && !packed;
    if (large) {
        LEAT_TRY(sample_places(f->path[0], f->size[0], places, s, err));
    } else {
        s->bytes += c->len + c->too_long;
        s->lines += c->lines;
        if (c->lines < LEAT__CHUNK_LINES) s->bytes += f->rest.len; /* of the next line */
    }
    if (packed) LEAT_TRY(sample_ratio(f->stream, s, err));
    return sample_pieces(d, f, c, large, places, s, err);
}

/* Adds a file to the samples: the ids of its first chunk, and the lines of that chunk or, of a larger
 * uncompressed file, of a few places. */
static int sample(leat__dedup *d, uint32_t file, uint32_t places, samples *s, leat_error *err)
{
    const char *in[] = {d->files.path[file]};
    leat__text_files f;
    leat__text_chunk *c = leat__text_chunk_new();
    if (!c) return leat__fail_nomem(err, sizeof *c, "a chunk");
    int rc = leat__text_files_open(&f, in, 1, d->files.max_line, err);
    if (rc == 0) {
        rc = sample_open(d, &f, c, places, s, err);
        leat__text_files_reset(&f);
    }
    leat__text_chunk_free(c);
    return rc;
}

/* The estimated input of a run. */
typedef struct estimate {
    uint64_t documents, text, id_bytes; /* id_bytes: mean bytes of an id */
    uint64_t pieces;                    /* lines, paragraphs or sequences of words */
} estimate;

static int estimate_documents(leat__dedup *d, estimate *e, leat_error *err)
{
    samples s = {0};
    uint32_t step = (uint32_t)leat__ceil_div(d->files.count, SAMPLE_FILES);
    uint32_t places = PLACES / (uint32_t)leat__ceil_div(d->files.count, step);
    for (uint32_t i = 0; i < d->files.count; i += step) LEAT_TRY(sample(d, i, places, &s, err));
    *e = (estimate){0};
    double ratio = s.packed > 0 ? (double)s.unpacked / (double)s.packed : COMPRESSED;
    for (uint32_t i = 0; i < d->files.count; i++)
        e->text += (uint64_t)((double)d->files.size[i] * (is_compressed(d->files.path[i]) ? ratio : 1));
    if (s.piece_bytes > 0) e->pieces = (uint64_t)((double)e->text / (double)s.piece_bytes * (double)s.pieces);
    if (s.bytes > 0) e->documents = (uint64_t)((double)e->text / (double)s.bytes * (double)s.lines);
    e->documents =
        LEAT_MAX(e->documents, s.id_lines); /* lines that were seen; perhaps none ends at these places */
    if (s.bytes > 0 && e->documents == 0) e->documents = 1;
    e->documents += d->against;
    e->id_bytes = s.id_lines > 0 ? leat__ceil_div(s.id_bytes, s.id_lines) : 0;
    return 0;
}

/* Returns the peak size of the work files. Records of bands are removed before decisions are written. */
static uint64_t disk_of(const leat__dedup *d, const estimate *e)
{
    uint64_t each = d->st.bands_at_once * sizeof(leat__band_record) + d->sketch_bytes + e->id_bytes + 8;
    each += 8; /* edges */
    if (d->opts->keep != LEAT_KEEP_FIRST) each += sizeof(leat__dedup_keep);
    if (d->rules.count > 0) each += 1 + DROPPED_BYTES;
    if (d->opts->index) each += 2 * 8 * (uint64_t)d->bands + d->sketch_bytes + e->id_bytes;
    return e->documents * each;
}

/* Returns the memory that a run needs for any number of documents. */
static uint64_t floor_of(const leat__dedup *d)
{
    if (d->opts->level == LEAT_LEVEL_SUBSTRING) return WORDS_FLOOR;
    return FLOOR + (d->rules.count > 0 ? LEAT__DEDUP_SCORER : 0);
}

/* Returns the minimum memory: enough for a pass over the text, and for the decisions plus a sixteenth for a
 * part of the edges. */
static uint64_t memory_of(const leat__dedup *d, uint64_t documents)
{
    uint64_t all = documents * (d->opts->keep != LEAT_KEEP_FIRST ? 32 : 12) + (8u << 20);
    return LEAT_MAX(floor_of(d), all + leat__ceil_div(all, 15));
}

/* Returns the free bytes on the output's disk, found by the nearest folder that exists. */
static int free_bytes(const char *output, uint64_t *bytes, leat_error *err)
{
    leat_disk disk;
    leat_error why = {0};
    char *path = leat__strdup(LEAT__MEM_CURATE, output);
    if (!path) return leat__fail_nomem(err, strlen(output), "a path");
    int rc = leat_disk_read(&disk, path, &why);
    for (char *slash; rc == LEAT_ENOENT && (slash = strrchr(path, '/')) != NULL && slash > path;) {
        *slash = 0;
        rc = leat_disk_read(&disk, path, &why);
    }
    if (rc == LEAT_ENOENT) rc = leat_disk_read(&disk, path[0] == '/' ? "/" : ".", &why);
    leat__free(path);
    if (rc != 0 && err) *err = why;
    *bytes = disk.free_bytes;
    return rc;
}

/* Fails with a message that names both sizes: in bytes, if rounded sizes would look equal. */
static int refuse_memory(const leat__dedup *d, const char *about, uint64_t documents, uint64_t bytes,
                         leat_error *err)
{
    char need[32], limit[32];
    leat__format_bytes(bytes, need, sizeof need);
    leat__format_bytes(d->memory, limit, sizeof limit);
    if (leat__str_eq(need, limit)) {
        snprintf(need, sizeof need, "%llu bytes", (unsigned long long)bytes);
        snprintf(limit, sizeof limit, "%llu", (unsigned long long)d->memory);
    }
    const unsigned long long enough = leat__ceil_div(bytes, 1u << 20);
    if (bytes < floor_of(d) + (1u << 20)) /* the documents add little or nothing */
        return leat__fail(err, LEAT_EBUDGET,
                          "a run needs %s of memory, the limit is %s (raise `memory` to %lluM)", need, limit,
                          enough);
    return leat__fail(err, LEAT_EBUDGET,
                      "%s%llu document%s need%s %s of memory, the limit is %s (raise `memory` to %lluM)",
                      about, (unsigned long long)documents, leat__plural(documents),
                      documents == 1 ? "s" : "", need, limit, enough);
}

int leat__dedup_check_memory(const leat__dedup *d, uint64_t least, leat_error *err)
{
    const uint64_t lines = d->st.document;
    if (least <= d->memory) return 0;
    return refuse_memory(d, "", lines, LEAT_MAX(least, memory_of(d, lines)), err);
}

/* Plans a run on lines, paragraphs or substrings: a record and one bit each. The bits are on disk twice while
 * they are saved, and take at most half of the memory. */
static void plan_pieces(leat__dedup *d, const estimate *e)
{
    leat_dedup_stats *st = d->stats;
    bool words = d->opts->level == LEAT_LEVEL_SUBSTRING;
    uint64_t bits = (e->pieces + (words ? e->documents * d->opts->shingle_words : 0)) / 8;
    d->plan_marks = 2 * bits;
    st->plan_disk = e->pieces * RECORD_BYTES + d->plan_marks;
    st->plan_memory = LEAT_MAX(floor_of(d) + bits, 2 * bits);
}

int leat__dedup_plan(leat__dedup *d, leat_error *err)
{
    leat_dedup_stats *st = d->stats;
    estimate e;
    LEAT_TRY(estimate_documents(d, &e, err));
    uint64_t documents = e.documents, text = e.text;
    st->plan_documents = documents;
    st->plan_disk = disk_of(d, &e);
    st->plan_memory = memory_of(d, documents);
    if (d->opts->level != LEAT_LEVEL_DOCUMENT) plan_pieces(d, &e);
    if (st->plan_memory > d->memory) return refuse_memory(d, "about ", documents, st->plan_memory, err);
    /* a part of a band takes twice its size when sorted, and gets a quarter of the memory */
    d->st.parts = (uint32_t)LEAT_MIN(documents * 2 * sizeof(leat__band_record) / (d->memory / 4) + 1, 256);
    d->plan_output = d->opts->compress ? text / COMPRESSED : text;
    return 0;
}

/* Returns the bytes of existing work files, which the run replaces or resumes. */
static int held_bytes(const leat__dedup *d, uint64_t *bytes, leat_error *err)
{
    leat__dir dir = {0};
    bool there;
    *bytes = 0;
    LEAT_TRY(leat__path_exists(d->work, &there, err));
    if (!there) return 0;
    int rc = leat__dir_read(&dir, d->work, false, err);
    for (size_t i = 0; i < dir.count; i++) *bytes += dir.entries[i].size;
    leat__dir_reset(&dir);
    return rc;
}

/* Returns the disk that a run on pieces needs with its output. The files by hash are removed before the
 * output is written. */
static uint64_t pieces_need(const leat__dedup *d, uint64_t held)
{
    uint64_t marks = d->plan_marks, work = d->stats->plan_disk;
    if (d->st.phase >= LEAT__PHASE_GROUP) {
        marks = d->st.pieces / 4;
        work = d->st.phase == LEAT__PHASE_GROUP ? held + marks : 0;
    }
    return LEAT_MAX(work, d->plan_output + marks);
}

int leat__dedup_check_disk(const leat__dedup *d, leat_error *err)
{
    const leat_dedup_stats *st = d->stats;
    bool pieces = d->opts->level != LEAT_LEVEL_DOCUMENT;
    uint64_t free_disk, held, need = st->plan_disk + d->plan_output;
    char size[24], limit[24];
    LEAT_TRY(free_bytes(d->opts->output, &free_disk, err));
    LEAT_TRY(held_bytes(d, &held, err));
    free_disk += held;
    if (pieces) need = pieces_need(d, held);
    else if (d->st.phase >= LEAT__PHASE_RESOLVE) /* resumed: only decisions are missing */
        need = held + d->plan_output + d->st.document * sizeof(leat__dedup_decision);
    if (need <= free_disk) return 0;
    return leat__fail(
        err, LEAT_EBUDGET,
        "%s: the run needs %s of disk for %llu document%s, %s are free; give an output on a larger disk",
        d->opts->output, leat__format_bytes(need, size, sizeof size), (unsigned long long)st->plan_documents,
        leat__plural(st->plan_documents), leat__format_bytes(free_disk, limit, sizeof limit));
}

/* ---- sketches ---- */

int leat__dedup_sketches_open(leat__dedup *d, uint64_t memory, leat_error *err)
{
    char path[4096];
    LEAT_TRY(leat__file_open(&d->sketch_file, leat__dedup_path(d, "side-0", path), LEAT__FILE_READ, err));
    uint64_t bytes = d->st.side_length[LEAT__SIDE_SKETCH];
    if (bytes > memory) return 0;
    d->sketches = leat__alloc(LEAT__MEM_CURATE, bytes + 1);
    if (!d->sketches) return leat__fail_nomem(err, bytes, "sketches");
    return leat__file_pread(d->sketch_file, d->sketches, bytes, 0, err);
}

void leat__dedup_sketches_close(leat__dedup *d)
{
    leat__file_close(&d->sketch_file);
    leat__free(d->sketches);
    d->sketches = NULL;
}

int leat__dedup_sketch_of(leat__dedup *d, uint32_t document, uint8_t *out, leat_error *err)
{
    uint64_t line = d->order ? d->order[document] : document;
    if (d->sketches) {
        memcpy(out, d->sketches + line * d->sketch_bytes, d->sketch_bytes);
        return 0;
    }
    return leat__file_pread(d->sketch_file, out, d->sketch_bytes, line * d->sketch_bytes, err);
}
