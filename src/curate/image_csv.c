/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_csv.h.
 */
#include "curate/image_csv.h"

#include <string.h>

#define FLUSH_BYTES (256u << 10)

int leat__csv_out_open(leat__csv_out *c, const char *path, const char *head, leat_error *err)
{
    memset(c, 0, sizeof *c);
    leat__buf_init(&c->buf, LEAT__MEM_CURATE, 64u << 20);
    if (!path) return 0;
    LEAT_TRY(leat__result_file_open(&c->to, path, head, err));
    int rc = leat__file_truncate(c->to.file, 0, err);
    if (rc != 0) leat__csv_out_close(c);
    return rc;
}

bool leat__csv_out_wanted(const leat__csv_out *c)
{
    return c->to.file != NULL;
}

void leat__csv_out_field(leat__csv_out *c, const char *text, size_t len)
{
    bool quoted = false;
    if (!c->to.file) return;
    for (size_t i = 0; i < len; i++) quoted = quoted || strchr(",\"\r\n", text[i]) != NULL;
    if (c->middle) leat__buf_putc(&c->buf, ',');
    c->middle = true;
    if (!quoted) {
        leat__buf_append(&c->buf, text, len);
        return;
    }
    leat__buf_putc(&c->buf, '"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"') leat__buf_putc(&c->buf, '"');
        leat__buf_putc(&c->buf, text[i]);
    }
    leat__buf_putc(&c->buf, '"');
}

void leat__csv_out_text(leat__csv_out *c, const char *text)
{
    leat__csv_out_field(c, text, strlen(text));
}

void leat__csv_out_number(leat__csv_out *c, double value)
{
    if (!c->to.file) return;
    leat__buf_printf(&c->buf, "%s%.6g", c->middle ? "," : "", value);
    c->middle = true;
}

void leat__csv_out_count(leat__csv_out *c, uint64_t value)
{
    if (!c->to.file) return;
    leat__buf_printf(&c->buf, "%s%llu", c->middle ? "," : "", (unsigned long long)value);
    c->middle = true;
}

static int flush(leat__csv_out *c, leat_error *err)
{
    if (leat__buf_status(&c->buf) != 0) return leat__fail_nomem(err, c->buf.len, "lines of a CSV file");
    if (c->buf.len == 0) return 0;
    LEAT_TRY(leat__file_pwrite(c->to.file, c->buf.data, c->buf.len, c->end, err));
    c->end += c->buf.len;
    leat__buf_clear(&c->buf);
    return 0;
}

int leat__csv_out_line(leat__csv_out *c, leat_error *err)
{
    if (!c->to.file) return 0;
    leat__buf_putc(&c->buf, '\n');
    c->middle = false;
    return c->buf.len < FLUSH_BYTES && leat__buf_status(&c->buf) == 0 ? 0 : flush(c, err);
}

int leat__csv_out_finish(leat__csv_out *c, leat_error *err)
{
    if (!c->to.file) return 0;
    LEAT_TRY(flush(c, err));
    return leat__result_file_publish(&c->to, err);
}

void leat__csv_out_close(leat__csv_out *c)
{
    leat__result_file_close(&c->to, true);
    leat__buf_reset(&c->buf);
}
