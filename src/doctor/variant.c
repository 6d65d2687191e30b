/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples in memory, and the same samples as the packer would store them with other settings, made by the
 * packer's own encoder.
 */
#include "doctor/variant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/jpeg_coef.h"
#include "ingest/image_encode.h"
#include "ingest/record.h"

#define SET_MAX ((size_t)1 << 30)
#define VARIANT_SAMPLES 96u
/* limit of pixel bytes: large images are slow to re-encode */
#define VARIANT_BYTES (96.0 * 1048576)
#define MIX_RAW 0.5
#define QUALITY 75u
#define ALIGN 64u
#define LOAD_NS (LEAT_NS_PER_S / 2)
/* extra time for the minimum number of samples: a bucket may answer very late */
#define LOAD_MORE_NS LEAT_NS_PER_S
#define LEAST_SAMPLES 8u
#define SIZES_MAX 2048u /* maximum samples whose size is read */
#define SHARE_PIXELS 16e6

/* ---- Sets ---- */

static int set_open(leat__set *set, uint64_t count, leat_error *err)
{
    *set = (leat__set){0};
    leat__buf_init(&set->memory, LEAT__MEM_DOCTOR, SET_MAX);
    leat__buf_init(&set->blob, LEAT__MEM_DOCTOR, SET_MAX);
    set->sample = LEAT_NEW_ARRAY(DOCTOR, leat__set_sample, LEAT_MAX(count, 1u));
    return set->sample == NULL ? leat__fail_nomem(err, count * sizeof *set->sample, "samples") : 0;
}

void leat__set_reset(leat__set *set)
{
    leat__free(set->sample);
    if (set->memory.max > 0) leat__buf_reset(&set->memory);
    if (set->blob.max > 0) leat__buf_reset(&set->blob);
    leat__tile_tables_close(&set->tables);
    *set = (leat__set){0};
}

double leat__set_bytes(const leat__set *set)
{
    double sum = 0;
    for (uint32_t i = 0; i < set->count; i++) sum += (double)set->sample[i].len;
    return set->count > 0 ? sum / set->count : 0;
}

/* Copies a sample into the set's memory. */
static int set_put(leat__set *set, const leat__set_sample *from, leat_error *err)
{
    leat__buf *m = &set->memory;
    leat__buf_zeros(m, (ALIGN - m->len % ALIGN) % ALIGN);
    size_t at = m->len;
    leat__buf_append(m, from->data, from->len);
    leat__buf_zeros(m, LEAT__CODEC_PADDING);
    if (from->entries_len > 0) leat__buf_append(m, from->entries, from->entries_len);
    if (leat__buf_status(m) != 0) return leat__fail_nomem(err, from->len, "samples");
    set->sample[set->count] = *from;
    set->sample[set->count++].at = at;
    return 0;
}

/* Sets the pointers, once the memory no longer moves. */
static void set_close(leat__set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        leat__set_sample *s = &set->sample[i];
        s->data = (const uint8_t *)set->memory.data + s->at;
        s->entries = s->entries_len > 0 ? s->data + s->len + LEAT__CODEC_PADDING : NULL;
    }
}

static int first_image_field(const leat_pack *pack)
{
    for (uint32_t f = 0; f < leat_pack_field_count(pack); f++)
        if (leat_pack_field(pack, f)->type == LEAT_FIELD_IMAGE) return (int)f;
    return -1;
}

static int load_sample(leat__set *set, leat_sample *s, uint32_t field, uint64_t id, leat_error *err)
{
    leat__image_info info;
    leat_view v;

    if (leat_sample_read(s, id, err) != 0 || leat_sample_field(s, field, &v, err) != 0) return 0;
    if (v.data == NULL || leat__codec_probe(v.image.codec, v.data, v.size, &info, NULL) != 0) return 0;
    info.orientation = v.image.orientation;
    leat__set_sample found = {.id = id,
                              .info = info,
                              .data = v.data,
                              .len = v.size,
                              .entries = v.entries,
                              .entries_len = v.entries_size};
    return set_put(set, &found, err);
}

/* Opens tables and keeps a copy of their bytes. */
static int set_tables(leat__set *set, const void *blob, size_t size, leat_error *err)
{
    if (leat__buf_append(&set->blob, blob, size) != 0) return leat__fail_nomem(err, size, "tables");
    return leat__tile_tables_open(&set->tables, blob, size, err);
}

static int load_tables(leat__set *set, leat_pack *pack, leat_error *err)
{
    const void *blob;
    size_t size;
    int rc = leat_pack_blob(pack, LEAT__TILE_TABLES_BLOB, &blob, &size, err);
    if (rc == LEAT_ENOENT) return 0;
    return rc != 0 ? rc : set_tables(set, blob, size, err);
}

typedef struct sized {
    uint64_t id, bytes;
} sized;

static int by_size(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int sort_by_size(leat_pack *pack, const uint64_t *ids, sized *out, uint64_t count, leat_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        leat_pack_row row;
        LEAT_TRY(leat_pack_rows(pack, ids[i], 1, &row, err));
        out[i] = (sized){ids[i], row.size};
    }
    qsort(out, count, sizeof *out, by_size);
    return 0;
}

/* Returns a step that visits n items once each and is evenly spread however early it ends: the golden
 * section, or the nearest number coprime to n. */
static uint64_t golden_step(uint64_t n)
{
    for (uint64_t step = (uint64_t)(0.618034 * (double)n); step > 1; step--) {
        uint64_t a = n, b = step;
        while (b != 0) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return step;
    }
    return 1;
}

int leat__set_load(leat__set *set, const char *path, const uint64_t *ids, uint64_t count, uint32_t max,
                   uint64_t max_bytes, const leat__time_limit *limit, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_sample *s = NULL;
    sized *sorted = NULL;
    int rc, field;

    count = LEAT_MIN(count, (uint64_t)SIZES_MAX);
    LEAT_TRY(set_open(set, max, err));
    set->limit = limit;
    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    field = first_image_field(pack);
    if (field < 0) goto out;
    LEAT_GO(rc, out, leat_sample_open(&s, pack, err));
    sorted = LEAT_NEW_ARRAY(DOCTOR, sized, LEAT_MAX(count, 1u));
    if (sorted == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, count * sizeof *sorted, "samples"));
    LEAT_GO(rc, out, sort_by_size(pack, ids, sorted, count, err));
    uint64_t until = leat__clock_ns() + LOAD_NS; /* a slow disk must not delay measurements
                                                  * that do not concern it */
    uint64_t step = golden_step(count);
    for (uint64_t i = 0; i < count && set->count < max && set->memory.len < max_bytes; i++) {
        uint64_t now = leat__clock_ns();
        if (now > until && (set->count >= LEAST_SAMPLES || now > until + LOAD_MORE_NS)) break;
        LEAT_GO(rc, out, leat__time_check(set->limit, err));
        uint64_t id = sorted[(count / 2 + i * step) % count].id;
        LEAT_GO(rc, out, load_sample(set, s, (uint32_t)field, id, err));
    }
    rc = load_tables(set, pack, err);
    set_close(set);
out:
    leat__free(sorted);
    leat_sample_close(&s);
    leat_pack_close(&pack);
    return rc;
}

/* ---- Re-encoding a set ---- */

static int encode_one(leat__encoder *e, leat__records_pool *spare, const leat__set_sample *s,
                      const leat__tile_tables *from, leat__set *to, leat_error *err)
{
    leat__records *run = leat__records_pool_take(spare);
    leat__image_info info;
    char key[32];
    int rc;

    if (run == NULL) return leat__fail_nomem(err, sizeof *run, "a sample");
    leat__record *r = leat__records_add(run);
    leat__item *item = &r->items[0];
    int len = snprintf(key, sizeof key, "%llu", (unsigned long long)s->id);
    LEAT_GO(rc, out, leat__records_key(run, r, key, (size_t)len, err));
    item->absent = false;
    if (leat__records_bytes(run, item, s->data, s->len) == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, s->len, "a sample"));
    rc = leat__encoder_image(e, run, r, item, from, err);
    if (rc == 0) {
        const uint8_t *data = leat__records_data(run, item);
        rc = leat__codec_probe(item->image.codec, data, item->size, &info, err);
        info.orientation = item->image.orientation;
        leat__set_sample made = {
            .id = s->id, .info = info, .data = data, .len = item->size, .entries_len = item->entries_size};
        if (made.entries_len > 0) made.entries = (const uint8_t *)run->out.data + item->entries_at;
        if (rc == 0) rc = set_put(to, &made, err);
    } else if (rc != LEAT_ENOMEM) {
        rc = 0; /* skip a damaged image */
    }
out:
    leat__records_pool_give(spare, run);
    return rc;
}

static int encode_set(const leat__set *from, uint32_t count, const leat__encode_plan *plan, leat__set *to,
                      leat_error *err)
{
    leat__encoder *e = NULL;
    leat__records_pool spare;
    int rc;

    LEAT_TRY(set_open(to, count, err));
    to->limit = from->limit;
    leat__records_pool_init(&spare, 1, 1);
    LEAT_GO(rc, out, leat__encoder_open(&e, plan, err));
    for (uint32_t i = 0; i < count; i++) {
        LEAT_GO(rc, out, leat__time_check(from->limit, err));
        LEAT_GO(rc, out, encode_one(e, &spare, &from->sample[i], from->tables, to, err));
    }
    set_close(to);
out:
    leat__encoder_close(&e);
    leat__records_pool_reset(&spare);
    return rc;
}

/* Trains tables on the set itself. */
static int train(const leat__set *from, uint32_t count, leat__buf *blob, leat_error *err)
{
    leat__tile_trainer *t = NULL;
    leat__jpeg_coef_reader *reader = NULL;
    leat__decode_limits limits = {0};
    int rc;

    LEAT_GO(rc, out, leat__tile_trainer_open(&t, err));
    LEAT_GO(rc, out, leat__jpeg_coef_reader_open(&reader, err));
    for (uint32_t i = 0; i < count; i++) {
        leat__jpeg_coefs coefs;
        const leat__set_sample *s = &from->sample[i];
        LEAT_GO(rc, out, leat__time_check(from->limit, err));
        if (s->info.codec != LEAT__CODEC_JPEG) continue;
        if (leat__jpeg_coef_read(reader, s->data, s->len, &limits, &coefs, NULL) != 0) continue;
        LEAT_GO(rc, out, leat__tile_trainer_add(t, &coefs, s->data, s->len, err));
    }
    rc = leat__tile_trainer_finish(t, blob, err);
out:
    leat__tile_trainer_close(&t);
    leat__jpeg_coef_reader_close(&reader);
    return rc;
}

static int tile_set(const leat__set *from, uint32_t count, leat__set *to, leat_error *err)
{
    leat__encode_plan plan = {.images = LEAT_IMAGES_TILED, .trust = true};
    leat__tile_tables *tables = NULL;
    leat__buf blob;
    int rc;

    leat__buf_init(&blob, LEAT__MEM_DOCTOR, SET_MAX);
    LEAT_GO(rc, out, train(from, count, &blob, err));
    LEAT_GO(rc, out, leat__tile_tables_open(&tables, blob.data, blob.len, err));
    plan.tables = tables;
    rc = encode_set(from, count, &plan, to, err);
    if (rc == 0) rc = set_tables(to, blob.data, blob.len, err);
    if (rc != 0) leat__set_reset(to);
out:
    leat__tile_tables_close(&tables);
    leat__buf_reset(&blob);
    return rc;
}

/* Stores every second sample as pixels. The packer chooses by key, which gives half of a large set but any
 * share of a small one. */
static int mix_set(const leat__set *from, uint32_t count, leat__set *to, leat_error *err)
{
    leat__encode_plan plan = {.images = LEAT_IMAGES_RAW, .trust = true};
    leat__set raw = {0};
    int rc = encode_set(from, count, &plan, &raw, err);
    if (rc == 0) rc = set_open(to, count, err);
    to->limit = from->limit;
    for (uint32_t i = 0, r = 0; rc == 0 && i < count; i++) {
        const leat__set_sample *s = &from->sample[i];
        /* damaged images are missing in the re-encoded set */
        while (r < raw.count && raw.sample[r].id != s->id) r++;
        if (i % 2 == 0 && r < raw.count) s = &raw.sample[r];
        rc = set_put(to, s, err);
        if (r == raw.count) r = 0;
    }
    set_close(to);
    leat__set_reset(&raw);
    return rc;
}

/* Re-encodes as JPEG, then as tiles if the set was tiled. */
static int again(const leat__set *from, uint32_t count, const leat__encode_plan *plan, bool tiled,
                 leat__set *to, leat_error *err)
{
    leat__set jpeg = {0};
    if (!tiled) return encode_set(from, count, plan, to, err);
    int rc = encode_set(from, count, plan, &jpeg, err);
    if (rc == 0) rc = tile_set(&jpeg, jpeg.count, to, err);
    leat__set_reset(&jpeg);
    return rc;
}

/* ---- Variants ---- */

static double share_of(const leat__set *set, leat__codec_id codec)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->count; i++) n += set->sample[i].info.codec == codec;
    return set->count > 0 ? (double)n / set->count : 0;
}

static double mean_side(const leat__set *set)
{
    double sum = 0;
    for (uint32_t i = 0; i < set->count; i++)
        sum += LEAT_MAX(set->sample[i].info.width, set->sample[i].info.height);
    return set->count > 0 ? sum / set->count : 0;
}

uint32_t leat__variant_part(const leat__set *set)
{
    double bytes = 0;
    uint32_t n = 0;
    while (n < LEAT_MIN(set->count, VARIANT_SAMPLES) && (n < LEAST_SAMPLES || bytes < VARIANT_BYTES)) {
        const leat__image_info *info = &set->sample[n++].info;
        bytes += 3.0 * info->width * info->height;
    }
    return n;
}

int leat__variant_make(uint32_t variant, const leat__set *from, double out_pixels, leat__set *to,
                       char *action, size_t size, leat_error *err)
{
    uint32_t count = leat__variant_part(from);
    double jpeg = share_of(from, LEAT__CODEC_JPEG), tiled = share_of(from, LEAT__CODEC_TILE);
    bool tiles = tiled > 0.5;
    leat__encode_plan plan = {.images = LEAT_IMAGES_KEEP}; /* keep, with entry points, as leat pack does */
    const char *mode = tiles ? "tiled" : "keep";

    *to = (leat__set){0};
    switch (variant) {
    case LEAT__VARIANT_TILED:
        if (jpeg < 0.5) return 0;
        snprintf(action, size, "store as tiles: leat pack --images tiled");
        return tile_set(from, count, to, err);
    case LEAT__VARIANT_RAW:
        if (share_of(from, LEAT__CODEC_RAW) > 0.5) return 0;
        snprintf(action, size, "store pixels: leat pack --images raw");
        plan.images = LEAT_IMAGES_RAW;
        plan.trust = true;
        return encode_set(from, count, &plan, to, err);
    case LEAT__VARIANT_MIX:
        if (share_of(from, LEAT__CODEC_RAW) > 0 || tiles) return 0;
        snprintf(action, size, "store every second one as pixels: leat pack --images mix --mix-raw %.1f",
                 MIX_RAW);
        return mix_set(from, count, to, err);
    case LEAT__VARIANT_SMALLER:
        plan.max_side = (uint32_t)(ceil(2 * sqrt(LEAT_MAX(out_pixels, 1.0)) / 16) * 16);
        if (mean_side(from) < 1.2 * plan.max_side) return 0;
        snprintf(action, size, "store smaller: leat pack --images %s --max-side %u", mode, plan.max_side);
        return again(from, count, &plan, tiles, to, err);
    case LEAT__VARIANT_QUALITY:
        if (jpeg + tiled < 0.5) return 0;
        plan.quality = QUALITY;
        snprintf(action, size, "store at lower quality: leat pack --images %s --quality %u", mode, QUALITY);
        return again(from, count, &plan, tiles, to, err);
    default: return 0;
    }
}

int leat__variant_share(const leat__set *from, uint32_t max_side, uint32_t quality, double *share,
                        leat_error *err)
{
    leat__encode_plan plan = {.images = LEAT_IMAGES_KEEP, .max_side = max_side, .quality = quality};
    bool raw = share_of(from, LEAT__CODEC_RAW) > 0.5, tiles = share_of(from, LEAT__CODEC_TILE) > 0.5;
    leat__set to = {0};
    double pixels = 0, before = leat__set_bytes(from);

    *share = 0;
    for (uint32_t i = 0; i < from->count; i++)
        pixels += (double)from->sample[i].info.width * from->sample[i].info.height;
    if (from->count == 0 || before <= 0 || pixels > SHARE_PIXELS) return 0;
    if (raw) plan.images = LEAT_IMAGES_RAW;
    int rc = again(from, from->count, &plan, tiles, &to, err);
    /* if samples that cannot be re-encoded are missing, there is no share */
    if (rc == 0 && to.count == from->count) *share = leat__set_bytes(&to) / before;
    leat__set_reset(&to);
    return rc;
}
