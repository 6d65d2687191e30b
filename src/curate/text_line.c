/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of JSONL files as documents.
 */
#include "curate/text_line.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

const char *leat__line_read(const leat__line_names *n, const leat__line *line, leat__record_fields *f,
                            size_t *at)
{
    return leat__line_read_into(n, line, NULL, f, at);
}

const char *leat__line_read_into(const leat__line_names *n, const leat__line *line, uint8_t *into,
                                 leat__record_fields *f, size_t *at)
{
    leat__jsonl_field *fields = &f->text;
    memset(f, 0, offsetof(leat__record_fields, column));
    *at = 0;
    if (n->max_line > 0 && line->len > n->max_line) return LEAT__LINE_TOO_LONG;
    f->text = (leat__jsonl_field){.name = n->text_field, .name_len = strlen(n->text_field), .into = into};
    f->id = (leat__jsonl_field){.name = n->id_field, .name_len = strlen(n->id_field)};
    if (n->keep_field)
        f->keep = (leat__jsonl_field){.name = n->keep_field, .name_len = strlen(n->keep_field)};
    else f->keep = (leat__jsonl_field){.name = "", .name_len = SIZE_MAX}; /* no key has this length */
    if (n->column_count > 0) memcpy(f->column, n->column, n->column_count * sizeof *f->column);
    size_t count = n->column_count > 0 ? 3 + n->column_count : n->keep_field ? 3 : 2;
    const char *wrong = leat__jsonl_read(line->text, line->len, fields, count, at);
    if (wrong) return wrong;
    *at = 0;
    if (leat__str_eq(n->text_field, n->id_field)) f->id = f->text;
    if (f->text.kind == LEAT__JSONL_ABSENT) return "the text field is missing";
    if (f->text.kind == LEAT__JSONL_OTHER && f->text.raw[0] == 'n') return "the text field is null";
    if (f->text.kind != LEAT__JSONL_STRING) return "the text field is not a string";
    return NULL;
}

void leat__json_text(leat__buf *out, const char *text, size_t len)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_strn(&j, text, len);
}

void leat__line_id_json(const leat__line_names *n, const leat__text_chunk *c, const leat__line *line,
                        const leat__record_fields *f, leat__buf *out)
{
    if (f->id.kind == LEAT__JSONL_STRING) {
        leat__buf_append(out, f->id.raw - 1, f->id.raw_len + 2); /* including its quotes */
    } else if (f->id.kind == LEAT__JSONL_NUMBER) {
        leat__buf_append(out, f->id.raw, f->id.raw_len);
    } else {
        leat__buf name;
        if (n->numbers) leat__line_numbers_want(n->numbers, c->file);
        leat__buf_init(&name, LEAT__MEM_CURATE, 1u << 20);
        leat__buf_printf(&name, "%s:%llu", n->path[c->file], (unsigned long long)line->number);
        leat__json_text(out, leat__buf_str(&name), name.len);
        if (name.status != 0) out->status = name.status;
        leat__buf_reset(&name);
    }
}

void leat__line_bad_json(const leat__line_names *n, uint32_t file, uint64_t number, uint64_t offset,
                         const char *reason, leat__buf *out)
{
    leat__json j;
    if (n->numbers) leat__line_numbers_want(n->numbers, file);
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "file", n->path[file]);
    leat__json_ku64(&j, "line", number);
    leat__json_ku64(&j, "offset", offset);
    leat__json_kstr(&j, "reason", reason);
    leat__json_end(&j);
    leat__buf_putc(out, '\n');
}

void leat__line_put(leat__buf *out, const leat__line *line, const leat__jsonl_field *text, const char *now,
                    size_t len)
{
    const uint8_t *value = text->raw - 1, *after = text->raw + text->raw_len + 1;
    leat__buf_append(out, line->text, (size_t)(value - line->text));
    leat__json_text(out, now, len);
    leat__buf_append(out, after, (size_t)(line->text + line->len - after));
    leat__buf_putc(out, '\n');
}
