/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of leat_check_labels: columns beside the pack, a CSV file of suspicious
 * labels, JSON.
 */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/image_csv.h"
#include "curate/label_check.h"
#include "pack/selection.h"

enum { F_LABEL, F_SUGGESTED, F_ISSUES, F_RANK, F_SUSPICION, F_CONFIDENCE, F_OUTLIER, F_COUNT };

static int create(const leat__labels *l, leat_packer **packer, leat_error *err)
{
    static const leat_field fields[F_COUNT] = {
        [F_LABEL] = {.name = "label", .type = LEAT_FIELD_INT},
        [F_SUGGESTED] = {.name = "suggested", .type = LEAT_FIELD_INT},
        [F_ISSUES] = {.name = "issues", .type = LEAT_FIELD_INT},
        [F_RANK] = {.name = "rank", .type = LEAT_FIELD_INT},
        [F_SUSPICION] = {.name = "suspicion", .type = LEAT_FIELD_FLOAT},
        [F_CONFIDENCE] = {.name = "confidence", .type = LEAT_FIELD_FLOAT},
        [F_OUTLIER] = {.name = "outlier", .type = LEAT_FIELD_FLOAT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat__buf provenance;
    leat__json j;
    leat__buf_init(&provenance, LEAT__MEM_CURATE, 1u << 16);
    leat__json_init(&j, &provenance, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", "leat check labels 1");
    leat__pack_describe(l->sheets.pack[0], &j);
    leat__json_end(&j);
    o.fields = fields;
    o.field_count = F_COUNT;
    o.provenance = leat__buf_str(&provenance);
    o.replace = l->opts.replace;
    o.no_sync = l->opts.no_sync;
    int rc = leat__buf_status(&provenance) == 0 ? leat__packer_open_once(packer, l->opts.output, &o, err)
                                                : leat__fail_nomem(err, provenance.len, "provenance");
    leat__buf_reset(&provenance);
    return rc;
}

static int64_t suggested(const leat__labels *l, uint64_t row)
{
    return l->issues[row] & LEAT__LABEL_WRONG ? l->code[l->other[row]] : l->label[row];
}

static int write_rows(leat__labels *l, leat_packer *packer, leat__buf *key, leat_error *err)
{
    const char *const *names = NULL;
    uint64_t count = 0;
    LEAT_TRY(leat__column_packs_classes(&l->sheets, l->opts.column, &names, &count, err));
    if (count > 0) {
        LEAT_TRY(leat_packer_classes(packer, F_LABEL, names, count, err));
        LEAT_TRY(leat_packer_classes(packer, F_SUGGESTED, names, count, err));
    }
    for (uint64_t i = 0; i < l->rows; i++) {
        leat_pack_value v[F_COUNT] = {{0}};
        LEAT_TRY(leat__pack_key_read(l->sheets.pack[0], i, key, err));
        v[F_LABEL].i = l->label[i];
        v[F_SUGGESTED].i = suggested(l, i);
        v[F_ISSUES].i = l->issues[i];
        v[F_RANK].i = l->rank[i];
        v[F_SUSPICION].f = l->suspicion[i];
        v[F_CONFIDENCE].f = l->own[i] != LEAT__LABEL_NONE ? (double)l->chance[i] : (double)NAN;
        v[F_OUTLIER].f = (double)l->outlier[i];
        const leat_pack_sample sample = {.key = leat__buf_str(key), .key_size = key->len, .values = v};
        LEAT_TRY(leat_packer_append(packer, &sample, err));
    }
    return 0;
}

/* Writes a class name, or its number if it has no name. */
static void put_class(leat__csv_out *csv, const char *const *names, uint64_t count, int64_t code)
{
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)code);
    leat__csv_out_text(csv, code >= 0 && (uint64_t)code < count ? names[code] : number);
}

static int write_lines(leat__labels *l, leat__csv_out *csv, const uint32_t *row, leat__buf *key,
                       leat_error *err)
{
    static const char *const head[] = {"key", "label", "suggested", "suspicion"};
    const char *const *names = NULL;
    uint64_t count = 0;
    LEAT_TRY(leat__column_packs_classes(&l->sheets, l->opts.column, &names, &count, err));
    for (size_t i = 0; i < LEAT_COUNT(head); i++) leat__csv_out_text(csv, head[i]);
    LEAT_TRY(leat__csv_out_line(csv, err));
    for (uint64_t i = 0; i < l->stats.wrong; i++) {
        char number[32];
        LEAT_TRY(leat__pack_key_read(l->sheets.pack[0], row[i], key, err));
        leat__csv_out_field(csv, leat__buf_str(key), key->len);
        put_class(csv, names, count, l->label[row[i]]);
        put_class(csv, names, count, suggested(l, row[i]));
        snprintf(number, sizeof number, "%.6f", l->suspicion[row[i]]);
        leat__csv_out_text(csv, number);
        LEAT_TRY(leat__csv_out_line(csv, err));
    }
    return leat__csv_out_finish(csv, err);
}

static int write_csv(leat__labels *l, leat__buf *key, leat_error *err)
{
    leat__csv_out csv;
    if (!l->opts.csv) return 0;
    uint32_t *row = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(l->stats.wrong, 1));
    if (!row) return leat__fail_nomem(err, l->stats.wrong * sizeof *row, "rows");
    for (uint64_t i = 0; i < l->rows; i++)
        if (l->rank[i] >= 0) row[l->rank[i]] = (uint32_t)i;
    int rc = leat__csv_out_open(&csv, l->opts.csv, LEAT__LABELS_CSV, err);
    if (rc == 0) {
        rc = write_lines(l, &csv, row, key, err);
        leat__csv_out_close(&csv);
    }
    leat__free(row);
    return rc;
}

int leat__labels_write(leat__labels *l, leat_error *err)
{
    leat_packer *packer = NULL;
    leat_packer_stats ps;
    leat__buf key;
    LEAT_TRY(create(l, &packer, err));
    leat__buf_init(&key, LEAT__MEM_CURATE, 2u << 20);
    int rc = write_rows(l, packer, &key, err);
    if (rc == 0) rc = leat_packer_finish(packer, &ps, err);
    leat_packer_close(&packer);
    if (rc != 0) (void)!leat_packer_discard(l->opts.output, NULL);
    if (rc == 0) rc = write_csv(l, &key, err);
    leat__buf_reset(&key);
    return rc;
}

void leat__check_labels_json(const leat_check_labels_stats *st, const char *output, leat__buf *out)
{
    leat__json j;
    leat_pack *pack = NULL;
    char key[512];
    size_t size;
    if (leat_pack_open(&pack, output, NULL, NULL) != 0) pack = NULL;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "samples", st->samples);
    leat__json_ku64(&j, "labelled", st->labelled);
    leat__json_ku64(&j, "classes", st->classes);
    leat__json_ku64(&j, "wrong", st->wrong);
    leat__json_ku64(&j, "outliers", st->outliers);
    leat__json_ku64(&j, "without_vector", st->without_vector);
    leat__json_ku64(&j, "without_scores", st->without_scores);
    leat__json_key(&j, "examples");
    leat__json_array(&j);
    for (uint32_t i = 0; pack && i < st->examples; i++)
        if (leat_pack_key(pack, st->example[i], key, sizeof key, &size, NULL) == 0)
            leat__json_strn(&j, key, size);
    leat__json_end(&j);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_end(&j);
    leat_pack_close(&pack);
}
