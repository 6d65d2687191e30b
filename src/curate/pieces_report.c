/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects and writes the report: see pieces_report.h.
 */
#include "curate/pieces_report.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/report_page.h"

void leat__pieces_note(leat__buf *out, uint64_t pieces, uint64_t removed, uint64_t bytes, const char *id)
{
    leat__pieces_doc doc = {.bytes = bytes, .pieces = pieces, .removed = removed};
    size_t len = strlen(id);
    if (len < sizeof doc.id) {
        memcpy(doc.id, id, len);
    } else { /* a string, since numbers are shorter: not cut within an escape or a character */
        size_t n = sizeof doc.id - 16;
        while (n > 1 && (((unsigned char)id[n] & 0xc0) == 0x80 || id[n - 1] == '\\')) n--;
        for (size_t k = n > 6 ? n - 6 : 1; k < n; k++)
            if (id[k] == '\\') n = k; /* \u1234 */
        memcpy(doc.id, id, n);
        memcpy(doc.id + n, "...\"", 5);
    }
    leat__buf_append(out, &doc, sizeof doc);
}

static void add_most(leat__pieces_report *r, const leat__pieces_doc *doc)
{
    unsigned i = r->count;
    if (i == LEAT__PIECES_MOST && doc->bytes <= r->most[i - 1].bytes) return;
    if (i < LEAT__PIECES_MOST) r->count++;
    else i--;
    for (; i > 0 && r->most[i - 1].bytes < doc->bytes; i--) r->most[i] = r->most[i - 1];
    r->most[i] = *doc;
}

void leat__pieces_add(leat__pieces_report *r, const leat__buf *notes)
{
    for (size_t at = 0; at + sizeof(leat__pieces_doc) <= notes->len; at += sizeof(leat__pieces_doc)) {
        leat__pieces_doc doc;
        memcpy(&doc, notes->data + at, sizeof doc);
        r->share[doc.removed * LEAT__PIECES_BINS / LEAT_MAX(doc.pieces, 1)]++;
        add_most(r, &doc);
    }
}

static void put_json(const leat__pieces_report *r, const leat__dedup *d, const char *unit, leat__buf *out)
{
    const leat_dedup_stats *st = d->stats;
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "report", "leat"); /* report_page.c recognises its files by this */
    leat__json_ku64(&j, "documents", d->st.documents);
    leat__json_kstr(&j, "unit", unit);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "removed", st->removed);
    leat__json_ku64(&j, "bad", st->bad);
    leat__json_ku64(&j, "changed", st->changed);
    leat__json_ku64(&j, "pieces", st->pieces);
    leat__json_ku64(&j, "pieces_removed", st->pieces_removed);
    leat__json_ku64(&j, "bytes_removed", st->bytes_removed);
    leat__json_key(&j, "share");
    leat__json_array(&j);
    for (unsigned i = 0; i <= LEAT__PIECES_BINS; i++) leat__json_u64(&j, r->share[i]);
    leat__json_end(&j);
    leat__json_key(&j, "most");
    leat__json_array(&j);
    for (unsigned i = 0; i < r->count; i++) {
        leat__json_object(&j);
        leat__json_key(&j, "id");
        leat__json_raw(&j, r->most[i].id);
        leat__json_ku64(&j, "bytes", r->most[i].bytes);
        leat__json_ku64(&j, "removed", r->most[i].removed);
        leat__json_ku64(&j, "of", r->most[i].pieces);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_end(&j);
    leat__buf_putc(out, '\n');
}

static void put_page(const leat__pieces_report *r, const leat__dedup *d, const char *unit, leat__buf *out)
{
    const leat_dedup_stats *st = d->stats;
    leat__page_plot p = {.title = "share of a document that was removed",
                         .left = "0",
                         .right = "1",
                         .first = r->share,
                         .bins = LEAT__PIECES_BINS + 1};
    bool words = d->opts->level == LEAT_LEVEL_SUBSTRING;
    leat__page_begin(out, words ? "leat dedup substring" : "leat dedup exact");
    leat__buf_printf(out,
                     "<p>%llu document%s: %llu changed, %llu kept, %llu removed; %llu byte%s of text taken "
                     "out; %llu bad line%s.</p>\n",
                     (unsigned long long)d->st.documents, leat__plural(d->st.documents),
                     (unsigned long long)st->changed, (unsigned long long)st->kept,
                     (unsigned long long)st->removed, (unsigned long long)st->bytes_removed,
                     leat__plural(st->bytes_removed), (unsigned long long)st->bad, leat__plural(st->bad));
    leat__page_heading(out, "Changed documents");
    leat__page_histogram(out, &p);
    leat__page_heading(out, "Documents that lost most");
    leat__buf_printf(out, "<table><tr><th>document</th><th>bytes</th><th>%s</th><th>of</th></tr>\n", unit);
    for (unsigned i = 0; i < r->count; i++) {
        const leat__pieces_doc *doc = &r->most[i];
        leat__buf_puts(out, "<tr><td>");
        leat__page_text(out, doc->id, strlen(doc->id));
        leat__buf_printf(out,
                         "</td><td class=\"n\">%llu</td><td class=\"n\">%llu</td>"
                         "<td class=\"n\">%llu</td></tr>\n",
                         (unsigned long long)doc->bytes, (unsigned long long)doc->removed,
                         (unsigned long long)doc->pieces);
    }
    leat__buf_puts(out, "</table>\n");
    leat__page_end(out);
}

int leat__pieces_store(const leat__pieces_report *r, const leat__dedup *d, const char *unit, leat_error *err)
{
    leat__buf html, json;
    leat__buf_init(&html, LEAT__MEM_CURATE, 16u << 20);
    leat__buf_init(&json, LEAT__MEM_CURATE, 16u << 20);
    put_page(r, d, unit, &html);
    put_json(r, d, unit, &json);
    int rc = leat__page_store(d->opts->report, &html, &json, err);
    leat__buf_reset(&html);
    leat__buf_reset(&json);
    return rc;
}
