/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_columns.h.
 */
#include "curate/image_columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/reader.h"
#include "pack/selection.h"

/* Indices of the fields. */
enum {
    F_VERDICT,
    F_ISSUES,
    F_CODEC,
    F_WIDTH,
    F_HEIGHT,
    F_CHANNELS,
    F_ORIENTATION,
    F_BYTES,
    F_FILE_HASH,
    F_CONTENT_HASH,
    F_SCORES,
    F_REASON = F_SCORES + LEAT__LOOKS,
    F_COARSE,
    F_FINE,
    F_TRIMMED,
    F_THUMB,
    F_COUNT
};

static const char *const int_names[F_SCORES] = {"verdict",   "issues",      "codec",       "width",
                                                "height",    "channels",    "orientation", "bytes",
                                                "file_hash", "content_hash"};

static leat_field array_of(const char *name, uint32_t dtype, uint64_t length)
{
    return (leat_field){.name = name, .type = LEAT_FIELD_ARRAY, .dtype = dtype, .ndim = 1, .shape = {length}};
}

static void make_fields(leat_field fields[F_COUNT])
{
    for (int i = 0; i < F_SCORES; i++) fields[i] = (leat_field){.name = int_names[i], .type = LEAT_FIELD_INT};
    for (int i = 0; i < LEAT__LOOKS; i++)
        fields[F_SCORES + i] = (leat_field){.name = leat__look_names[i], .type = LEAT_FIELD_FLOAT};
    fields[F_REASON] = (leat_field){.name = "reason", .type = LEAT_FIELD_TEXT};
    fields[F_COARSE] = array_of("coarse", LEAT_DTYPE_I8, LEAT__COARSE_BYTES);
    fields[F_FINE] = array_of("fine", LEAT_DTYPE_I8, LEAT__FINE_BYTES);
    fields[F_TRIMMED] = array_of("trimmed", LEAT_DTYPE_I8, LEAT__COARSE_BYTES + LEAT__FINE_BYTES);
    fields[F_THUMB] = array_of("thumb", LEAT_DTYPE_U8, LEAT__THUMB_BYTES);
}

/* ---- facts ---- */

void leat__image_facts_fail(leat__image_facts *f, leat__verdict verdict, const char *reason)
{
    static const leat__issue issue[LEAT__VERDICTS] = {[LEAT__VERDICT_TRUNCATED] = LEAT__ISSUE_TRUNCATED,
                                                      [LEAT__VERDICT_DAMAGED] = LEAT__ISSUE_DAMAGED,
                                                      [LEAT__VERDICT_NOT_IMAGE] = LEAT__ISSUE_NOT_IMAGE,
                                                      [LEAT__VERDICT_UNREADABLE] = LEAT__ISSUE_UNREADABLE,
                                                      [LEAT__VERDICT_ABSENT] = LEAT__ISSUE_ABSENT};
    f->verdict = verdict;
    f->issues |= UINT64_C(1) << issue[verdict];
    for (int i = 0; i < LEAT__LOOKS; i++) f->score[i] = (double)NAN;
    size_t len = LEAT_MIN(strlen(reason), sizeof f->reason - 1), good = 0;
    /* truncated in the middle of a character */
    if (!leat__utf8_valid(reason, len, &good)) len = good;
    memcpy(f->reason, reason, len);
    f->reason[len] = 0;
}

/* True when the last bytes do not end a complete file. */
static bool ends_early(leat__codec_id codec, const uint8_t *data, size_t len)
{
    if (codec == LEAT__CODEC_JPEG) {
        for (size_t i = len; i-- > 1 && len - i < 4096;)
            if (data[i - 1] == 0xff && data[i] == 0xd9) return false;
        return true;
    }
    if (codec == LEAT__CODEC_PNG) return len < 12 || memcmp(data + len - 8, "IEND", 4) != 0;
    if (codec == LEAT__CODEC_WEBP) {
        const uint64_t said = len < 8 ? 0
                                      : (uint64_t)data[4] | (uint64_t)data[5] << 8 | (uint64_t)data[6] << 16 |
                                            (uint64_t)data[7] << 24;
        return said + 8 > len;
    }
    return false;
}

/* Returns the verdict. `why` is the decoder's message; all formats report a premature end with
 * "(truncated)". */
static leat__verdict verdict_of(int rc, leat__codec_id codec, const uint8_t *data, size_t len,
                                const char *why)
{
    if (codec == LEAT__CODEC_NONE) return len == 0 ? LEAT__VERDICT_TRUNCATED : LEAT__VERDICT_NOT_IMAGE;
    if (rc == LEAT_ELIMIT || rc == LEAT_ENOTSUP || rc == LEAT_EFORMAT) return LEAT__VERDICT_UNREADABLE;
    const bool cut = ends_early(codec, data, len) || strstr(why, "(truncated)") != NULL;
    return cut ? LEAT__VERDICT_TRUNCATED : LEAT__VERDICT_DAMAGED;
}

/* True when the name has the extension of another format. Unknown or missing extensions do not
 * count. */
static bool is_misnamed(const char *key, leat__codec_id codec)
{
    if (codec == LEAT__CODEC_NONE || codec == LEAT__CODEC_RAW) return false;
    if (codec == LEAT__CODEC_TILE) codec = LEAT__CODEC_JPEG;
    leat__codec_id named = strchr(key, '.') != NULL ? leat__codec_of_suffix(key) : LEAT__CODEC_NONE;
    return named != LEAT__CODEC_NONE && named != codec;
}

int leat__image_facts_make(leat__image_looker *looker, const char *key, const uint8_t *data, size_t len,
                           const leat__tile_tables *tables, leat__image_facts *f, leat_error *err)
{
    leat_error why = {0};
    const leat__image_small *small = NULL;
    memset(f, 0, sizeof *f);
    f->bytes = len;
    f->file_hash = leat__hash64(data, len, 0);
    f->codec = leat__codec_sniff(data, len);
    int rc = leat__image_look(looker, data, len, tables, &small, &why);
    if (rc == LEAT_ENOMEM) {
        if (err) *err = why;
        return rc;
    }
    f->width = small->info.width;
    f->height = small->info.height;
    f->channels = small->info.channels;
    f->orientation = small->info.orientation;
    if (is_misnamed(key, f->codec)) f->issues |= UINT64_C(1) << LEAT__ISSUE_EXTENSION;
    if (rc != 0) {
        leat__image_facts_fail(f, verdict_of(rc, f->codec, data, len, why.message),
                               len == 0 ? "an empty file" : why.message);
        return 0;
    }
    f->content_hash = small->content;
    leat__image_score(small, f->score);
    leat__image_sign_make(&f->sign, small);
    f->score[LEAT__LOOK_BORDER] = f->sign.border;
    f->is_signed = true;
    return 0;
}

/* ---- writing ---- */

static int name_classes(leat_packer *p, leat_error *err)
{
    const char *codecs[LEAT__CODEC_COUNT];
    for (int i = 0; i < LEAT__CODEC_COUNT; i++) codecs[i] = leat__codec_name((leat__codec_id)i);
    LEAT_TRY(leat_packer_classes(p, F_VERDICT, leat__verdict_names, LEAT__VERDICTS, err));
    return leat_packer_classes(p, F_CODEC, codecs, LEAT__CODEC_COUNT, err);
}

int leat__image_columns_create(leat_packer **packer, const char *path, const char *provenance, bool replace,
                               bool no_sync, leat_error *err)
{
    leat_field fields[F_COUNT];
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    make_fields(fields);
    o.fields = fields;
    o.field_count = F_COUNT;
    o.provenance = provenance;
    o.replace = replace;
    o.no_sync = no_sync;
    LEAT_TRY(leat__packer_open_once(packer, path, &o, err));
    int rc = name_classes(*packer, err);
    if (rc != 0) leat_packer_close(packer);
    return rc;
}

static void put(leat_pack_value *v, const void *data, size_t size, bool there)
{
    v->data = there ? data : NULL;
    v->size = there ? size : 0;
    v->absent = !there;
}

int leat__image_columns_append(leat_packer *packer, const void *key, size_t key_size,
                               const leat__image_facts *f, leat_error *err)
{
    leat_pack_value v[F_COUNT];
    memset(v, 0, sizeof v);
    v[F_VERDICT].i = f->verdict;
    v[F_ISSUES].i = (int64_t)f->issues;
    v[F_CODEC].i = f->codec;
    v[F_WIDTH].i = f->width;
    v[F_HEIGHT].i = f->height;
    v[F_CHANNELS].i = f->channels;
    v[F_ORIENTATION].i = f->orientation;
    v[F_BYTES].i = (int64_t)f->bytes;
    v[F_FILE_HASH].i = (int64_t)f->file_hash;
    v[F_CONTENT_HASH].i = (int64_t)f->content_hash;
    for (int i = 0; i < LEAT__LOOKS; i++) v[F_SCORES + i].f = f->score[i];
    put(&v[F_REASON], f->reason, strlen(f->reason), f->reason[0] != 0);
    put(&v[F_COARSE], f->sign.coarse, sizeof f->sign.coarse, f->is_signed);
    put(&v[F_FINE], f->sign.fine, sizeof f->sign.fine, f->is_signed);
    put(&v[F_TRIMMED], f->sign.trimmed, sizeof f->sign.trimmed, f->is_signed && f->sign.has_trimmed);
    put(&v[F_THUMB], f->sign.thumb, sizeof f->sign.thumb, f->is_signed);
    const leat_pack_sample s = {.key = key, .key_size = key_size, .values = v};
    return leat_packer_append(packer, &s, err);
}

/* ---- reading ---- */

bool leat__image_columns_are(const leat_pack *pack)
{
    leat_field fields[F_COUNT];
    make_fields(fields);
    if (leat_pack_field_count(pack) != F_COUNT) return false;
    for (uint32_t i = 0; i < F_COUNT; i++) {
        const leat_field *f = leat_pack_field(pack, i);
        if (f->type != fields[i].type || f->dtype != fields[i].dtype || f->shape[0] != fields[i].shape[0] ||
            strcmp(f->name, fields[i].name) != 0)
            return false;
    }
    return true;
}

int leat__image_columns_pack(leat_pack **pack, const char *path, uint64_t cache, leat_error *err)
{
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;
    o.index_cache_bytes = cache;
    LEAT_TRY(leat_pack_open(pack, path, &o, err));
    if (leat__image_columns_are(*pack)) return 0;
    leat_pack_close(pack);
    return leat__fail(err, LEAT_EFORMAT, "%s: not the columns of leat check", path);
}

#define ROW_MOST (UINT64_C(1) << 30) /* bytes */
#define WINDOW 64

/* Cells of consecutive rows. The index has a table per column, so reading the cells of one row takes
 * nearly as long as reading many. */
struct leat__columns_window {
    uint64_t first;
    uint32_t count;
    leat_pack_row row[WINDOW];
    leat_pack_cell cell[F_COUNT][WINDOW];
};

int leat__image_columns_open(leat__image_columns *c, const char *path, leat_error *err)
{
    memset(c, 0, sizeof *c);
    leat__buf_init(&c->room, LEAT__MEM_CURATE, ROW_MOST);
    LEAT_TRY(leat__image_columns_pack(&c->pack, path, LEAT__COLUMNS_CACHE, err));
    c->count = leat_pack_count(c->pack);
    c->window = LEAT_NEW(CURATE, struct leat__columns_window);
    if (c->window) return 0;
    leat__image_columns_close(c);
    return leat__fail_nomem(err, sizeof *c->window, "columns");
}

void leat__image_columns_close(leat__image_columns *c)
{
    leat_pack_close(&c->pack);
    leat__free(c->window);
    c->window = NULL;
    leat__buf_reset(&c->room);
}

static int move_window(leat__image_columns *c, uint64_t row, leat_error *err)
{
    struct leat__columns_window *w = c->window;
    /* beyond the end, leat_pack_rows reports the error */
    const uint64_t left = row < c->count ? c->count - row : 1;
    w->count = 0;
    w->first = row;
    const uint32_t n = (uint32_t)LEAT_MIN(left, WINDOW);
    LEAT_TRY(leat_pack_rows(c->pack, row, n, w->row, err));
    for (uint32_t f = 0; f < F_COUNT; f++) LEAT_TRY(leat_pack_cells(c->pack, f, row, n, w->cell[f], err));
    w->count = n;
    return 0;
}

static int read_bytes(leat_pack *pack, uint64_t row, const leat_pack_row *place, leat__buf *room,
                      leat_error *err)
{
    leat__buf_clear(room);
    if (leat__buf_reserve(room, (size_t)place->size + LEAT_PACK_PADDING) != 0)
        return leat__fail_nomem(err, (size_t)place->size, "a row");
    return leat__pack_read_row(pack, row, place, room->data, (size_t)place->size + LEAT_PACK_PADDING, err);
}

static int get_bytes(const leat__image_columns *c, uint32_t field, uint32_t at, void *to, size_t size,
                     bool *there, leat_error *err)
{
    const leat_pack_cell *cell = &c->window->cell[field][at];
    *there = !cell->absent;
    if (!*there) return 0;
    if (field != F_REASON && cell->length != size)
        return leat__fail(err, LEAT_EDATA, "a signature of %llu bytes", (unsigned long long)cell->length);
    memcpy(to, c->room.data + cell->start, (size_t)LEAT_MIN(cell->length, size));
    return 0;
}

static int get_signature(leat__image_columns *c, uint32_t at, leat__image_facts *f, leat_error *err)
{
    bool there;
    leat__image_sign *s = &f->sign;
    LEAT_TRY(get_bytes(c, F_REASON, at, f->reason, sizeof f->reason - 1, &there, err));
    LEAT_TRY(get_bytes(c, F_COARSE, at, s->coarse, sizeof s->coarse, &f->is_signed, err));
    LEAT_TRY(get_bytes(c, F_FINE, at, s->fine, sizeof s->fine, &there, err));
    LEAT_TRY(get_bytes(c, F_TRIMMED, at, s->trimmed, sizeof s->trimmed, &s->has_trimmed, err));
    return get_bytes(c, F_THUMB, at, s->thumb, sizeof s->thumb, &there, err);
}

int leat__image_columns_read(leat__image_columns *c, uint64_t row, leat__image_facts *f, leat_error *err)
{
    struct leat__columns_window *w = c->window;
    uint64_t n[F_SCORES];
    if (row < w->first || row - w->first >= w->count) LEAT_TRY(move_window(c, row, err));
    const uint32_t at = (uint32_t)(row - w->first);
    LEAT_TRY(read_bytes(c->pack, row, &w->row[at], &c->room, err));
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < F_SCORES; i++) n[i] = (uint64_t)w->cell[i][at].i;
    if (n[F_VERDICT] >= LEAT__VERDICTS || n[F_CODEC] >= LEAT__CODEC_COUNT)
        return leat__fail(err, LEAT_EDATA, "row %llu: a verdict or codec that does not exist",
                          (unsigned long long)row);
    f->verdict = (leat__verdict)n[F_VERDICT];
    f->issues = n[F_ISSUES];
    f->codec = (leat__codec_id)n[F_CODEC];
    f->width = (uint32_t)n[F_WIDTH];
    f->height = (uint32_t)n[F_HEIGHT];
    f->channels = (uint32_t)n[F_CHANNELS];
    f->orientation = (uint32_t)n[F_ORIENTATION];
    f->bytes = n[F_BYTES];
    f->file_hash = n[F_FILE_HASH];
    f->content_hash = n[F_CONTENT_HASH];
    for (uint32_t i = 0; i < LEAT__LOOKS; i++) f->score[i] = w->cell[F_SCORES + i][at].f;
    return get_signature(c, at, f, err);
}

int leat__image_columns_thumb(leat_pack *pack, uint64_t row, leat__buf *room,
                              uint8_t thumb[LEAT__THUMB_BYTES], leat_error *err)
{
    static const uint32_t field = F_THUMB;
    leat_pack_row place;
    leat_pack_cell cell;
    LEAT_TRY(leat_pack_look(pack, row, &place, &field, 1, &cell, err));
    memset(thumb, 0, LEAT__THUMB_BYTES);
    if (cell.absent) return 0;
    if (cell.length != LEAT__THUMB_BYTES)
        return leat__fail(err, LEAT_EDATA, "row %llu: a thumbnail of %llu bytes", (unsigned long long)row,
                          (unsigned long long)cell.length);
    LEAT_TRY(read_bytes(pack, row, &place, room, err));
    memcpy(thumb, room->data + cell.start, LEAT__THUMB_BYTES);
    return 0;
}
