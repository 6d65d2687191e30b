/* SPDX-License-Identifier: Apache-2.0
 *
 * A CSV reader: a small state machine over single characters. A packing run reads its manifest only twice, so
 * correctness matters here, not speed. One thread.
 */
#include "ingest/csv.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define CHUNK 65536u
#define END (-1)

int leat__csv_init(leat__csv *c, leat__stream *stream, char delimiter, leat_error *err)
{
    memset(c, 0, sizeof *c);
    c->stream = stream;
    c->delimiter = delimiter;
    c->next_line = 1;
    c->pushed = END;
    leat__buf_init(&c->row, LEAT__MEM_INGEST, LEAT__CSV_ROW_MAX);
    c->chunk = leat__alloc(LEAT__MEM_INGEST, CHUNK);
    c->start = LEAT_NEW_ARRAY(INGEST, size_t, LEAT__CSV_CELLS_MAX);
    if (!c->chunk || !c->start) {
        leat__csv_reset(c);
        return leat__fail_nomem(err, CHUNK, "a CSV reader");
    }
    return 0;
}

void leat__csv_reset(leat__csv *c)
{
    leat__buf_reset(&c->row);
    leat__free(c->chunk);
    leat__free(c->start);
    c->chunk = NULL;
    c->start = NULL;
}

static uint64_t position(const leat__csv *c)
{
    LEAT_ASSERT(c->at <= c->len);
    return leat__stream_offset(c->stream) - (c->len - c->at) - (c->pushed != END);
}

static int get(leat__csv *c, int *ch, leat_error *err)
{
    LEAT_ASSERT(c->at <= c->len && c->len <= CHUNK);
    if (c->pushed != END) {
        *ch = c->pushed;
        c->pushed = END;
        return 0;
    }
    if (c->at == c->len) {
        c->at = c->len = 0;
        LEAT_TRY(leat__stream_read(c->stream, c->chunk, CHUNK, &c->len, err));
        if (c->len == 0) {
            *ch = END;
            return 0;
        }
    }
    *ch = (unsigned char)c->chunk[c->at++];
    return 0;
}

static int skip_mark(leat__csv *c, leat_error *err)
{
    int ch;
    LEAT_TRY(get(c, &ch, err));
    c->pushed = ch;
    if (ch != 0xef || c->len < 3 || memcmp(c->chunk, "\xef\xbb\xbf", 3) != 0) return 0;
    c->pushed = END;
    c->at = 3;
    return 0;
}

static int bad(leat__csv *c, const char *what, leat_error *err)
{
    leat__fail(err, LEAT_EDATA, "%s:%llu: %s", leat__stream_name(c->stream), (unsigned long long)c->line,
               what);
    leat__error_at(err, NULL, -1, (int64_t)c->offset);
    return LEAT_EDATA;
}

/* Fails, and skips to the end of the physical line, so that the caller can continue after a bad row. */
static int bad_row(leat__csv *c, int last, const char *what, leat_error *err)
{
    while (last != '\n' && last != END) LEAT_TRY(get(c, &last, err));
    c->next_line++;
    return bad(c, what, err);
}

static void open_cell(leat__csv *c)
{
    LEAT_ASSERT(c->cells < LEAT__CSV_CELLS_MAX);
    c->start[c->cells++] = c->row.len;
}

/* Reads one row into c->row. *empty: the line is empty. */
static int read_row(leat__csv *c, bool *empty, bool *end, leat_error *err)
{
    enum { CELL_START, PLAIN_CELL, QUOTED, AFTER_QUOTE } state = CELL_START;
    int ch;
    c->cells = 0;
    leat__buf_clear(&c->row);
    c->line = c->next_line;
    c->offset = position(c);
    open_cell(c);
    *empty = true;
    for (;;) {
        LEAT_TRY(get(c, &ch, err));
        if (ch == 0) return bad_row(c, ch, "a NUL character", err);
        if (ch == END && state == QUOTED) return bad(c, "a quote that is not closed", err);
        if (ch == END && *empty) {
            *end = true;
            return 0;
        }
        if (ch == '\r' && state != QUOTED) {
            int after;
            LEAT_TRY(get(c, &after, err));
            if (after == '\n') ch = after;
            else c->pushed = after;
        }
        if ((ch == '\n' || ch == END) && state != QUOTED) {
            if (ch == '\n') c->next_line++;
            leat__buf_putc(&c->row, 0);
            break;
        }
        *empty = false;
        if (ch == '\n') c->next_line++;
        if (state == QUOTED) {
            if (ch == '"') state = AFTER_QUOTE;
            else leat__buf_putc(&c->row, (char)ch);
        } else if (ch == c->delimiter) {
            if (c->cells == LEAT__CSV_CELLS_MAX) return bad_row(c, ch, "too many cells", err);
            leat__buf_putc(&c->row, 0);
            open_cell(c);
            state = CELL_START;
        } else if (ch == '"' && state == CELL_START) {
            state = QUOTED;
        } else if (ch == '"' && state == AFTER_QUOTE) {
            leat__buf_putc(&c->row, '"');
            state = QUOTED;
        } else if (ch == '"' || state == AFTER_QUOTE) {
            return bad_row(c, ch, "a quote in the middle of a cell", err);
        } else {
            leat__buf_putc(&c->row, (char)ch);
            state = PLAIN_CELL;
        }
        if (leat__buf_status(&c->row) != 0) break;
    }
    int rc = leat__buf_status(&c->row);
    if (rc == LEAT_ELIMIT) return bad_row(c, ch, "a row that is too long", err);
    return rc == 0 ? 0 : leat__fail(err, rc, "no memory for a CSV row");
}

int leat__csv_next(leat__csv *c, bool *end, leat_error *err)
{
    bool empty = true;
    *end = false;
    if (leat__stream_offset(c->stream) == 0) LEAT_TRY(skip_mark(c, err));
    while (empty && !*end) LEAT_TRY(read_row(c, &empty, end, err));
    return 0;
}

const char *leat__csv_cell(const leat__csv *c, uint32_t cell)
{
    return cell < c->cells && c->row.data ? c->row.data + c->start[cell] : "";
}

int leat__csv_next_line(leat__csv *c, bool *end, leat_error *err)
{
    *end = false;
    if (leat__stream_offset(c->stream) == 0) LEAT_TRY(skip_mark(c, err));
    do {
        int ch = 0;
        leat__buf_clear(&c->row);
        c->cells = 0;
        c->line = c->next_line;
        c->offset = position(c);
        open_cell(c);
        for (;;) {
            LEAT_TRY(get(c, &ch, err));
            if (ch == '\n' || ch == END) break;
            if (leat__buf_putc(&c->row, (char)ch) != 0) break;
        }
        int rc = leat__buf_status(&c->row);
        if (rc == LEAT_ELIMIT) return bad_row(c, ch, "a line that is too long", err);
        if (rc != 0) return leat__fail(err, rc, "no memory for a line");
        if (ch == '\n') c->next_line++;
        if (c->row.len > 0 && c->row.data[c->row.len - 1] == '\r') c->row.data[--c->row.len] = 0;
        if (ch == END && c->row.len == 0) *end = true;
    } while (c->row.len == 0 && !*end);
    return 0;
}

int leat__csv_next_key(leat__csv *c, bool *end, leat_error *err)
{
    LEAT_TRY(leat__csv_next_line(c, end, err));
    if (*end) return 0;
    c->row.len = leat__str_unquote(c->row.data, c->row.len);
    c->row.data[c->row.len] = 0;
    return 0;
}
