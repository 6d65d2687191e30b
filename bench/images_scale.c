/* SPDX-License-Identifier: Apache-2.0
 *
 * Many synthetic images for `leat dedup images`, and the recall of its index. JSON lines on stdout.
 *
 *   images_scale write CHECK.leat OUT.leat ROWS [FIRST]
 *                                                     columns like those of leat check, from row FIRST on
 *   images_scale index CHECK.leat ROWS QUERIES        against an exact search; in memory
 *   images_scale search COLUMNS.leat EVERY ORIENTATIONS
 *                                                     the search of leat dedup images, by every EVERYth row
 *
 * A row is a mixture of parts of two thumbnails of CHECK.leat (columns of real images), mirrored or not, with
 * other brightness. Every 50th row of `write` is an edit of an earlier one: a crop of up to a tenth of each
 * side, other brightness, noise. Queries of `index` are such edits of random rows.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "curate/image_blocks.h"
#include "curate/image_columns.h"
#include "curate/image_index.h"
#include "curate/thread_team.h"
#include "dsp/align.h"
#include "probe/cpu.h"

#define SIDE LEAT__THUMB_SIDE
#define CHROMA LEAT__THUMB_CHROMA
#define EDIT_EVERY 50
#define ROOM 96
#define LIMIT 0.4f
#define SEED 5

typedef struct box {
    uint8_t *thumbs;
    uint32_t count;
} box;

static int die(const leat_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static int read_thumbs(box *b, const char *path, leat_error *err)
{
    leat__image_columns c;
    leat__image_facts f;
    LEAT_TRY(leat__image_columns_open(&c, path, err));
    b->thumbs = malloc(c.count * LEAT__THUMB_BYTES + 1);
    int rc = b->thumbs ? 0 : leat__fail_nomem(err, 0, "thumbnails");
    for (uint64_t i = 0; i < c.count && rc == 0; i++) {
        rc = leat__image_columns_read(&c, i, &f, err);
        if (rc == 0 && f.is_signed)
            memcpy(b->thumbs + (size_t)b->count++ * LEAT__THUMB_BYTES, f.sign.thumb, LEAT__THUMB_BYTES);
    }
    leat__image_columns_close(&c);
    return rc;
}

/* ---- pictures ---- */

typedef struct picture {
    float plane[3][SIDE * SIDE]; /* chroma uses 16 x 16 */
} picture;

typedef struct part {
    float left, top, side, gain, offset;
    bool mirror;
} part;

static float at(const float *p, int n, float x, float y)
{
    x = LEAT_MIN(LEAT_MAX(x, 0), (float)(n - 1) - 0.001f);
    y = LEAT_MIN(LEAT_MAX(y, 0), (float)(n - 1) - 0.001f);
    const int i = (int)x, k = (int)y;
    const float u = x - (float)i, v = y - (float)k, *q = p + k * n + i;
    return (1 - v) * ((1 - u) * q[0] + u * q[1]) + v * ((1 - u) * q[n] + u * q[n + 1]);
}

/* to += weight * (a part of from) */
static void add_part(picture *to, const picture *from, const part *w, float weight)
{
    for (int c = 0; c < 3; c++) {
        const int n = c == 0 ? SIDE : CHROMA;
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                const float u = ((float)(w->mirror ? n - 1 - x : x) + 0.5f) / (float)n;
                const float v = at(from->plane[c], n, (w->left + u * w->side) * (float)n - 0.5f,
                                   (w->top + ((float)y + 0.5f) / (float)n * w->side) * (float)n - 0.5f);
                to->plane[c][y * n + x] += weight * (c == 0 ? w->gain * v + w->offset : v);
            }
    }
}

static part draw_part(leat__rng *r, double least, bool mirror)
{
    part w = {.side = (float)leat__rng_range(r, least, 1)};
    w.left = (1 - w.side) * leat__rng_float(r);
    w.top = (1 - w.side) * leat__rng_float(r);
    w.gain = (float)leat__rng_range(r, 0.75, 1.3);
    w.offset = (float)leat__rng_range(r, -20, 20);
    w.mirror = leat__rng_below(r, 2) == 1 && mirror;
    return w;
}

static void draw_source(const box *b, leat__rng *r, picture *p)
{
    const uint8_t *t = b->thumbs + (size_t)leat__rng_below(r, b->count) * LEAT__THUMB_BYTES;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < (c == 0 ? SIDE * SIDE : CHROMA * CHROMA); i++) p->plane[c][i] = (float)*t++ - 128;
}

static void draw_plain(const box *b, uint64_t row, picture *out)
{
    leat__rng r;
    picture from;
    leat__rng_init(&r, SEED, 0, row, 0);
    memset(out, 0, sizeof *out);
    const float weight = (float)leat__rng_range(&r, 0.55, 0.95);
    for (int k = 0; k < 2; k++) {
        draw_source(b, &r, &from);
        const part w = draw_part(&r, 0.5, true);
        add_part(out, &from, &w, k == 0 ? weight : 1 - weight);
    }
}

static void edit(const picture *from, uint64_t number, picture *out)
{
    leat__rng r;
    leat__rng_init(&r, SEED, 1, number, 0);
    memset(out, 0, sizeof *out);
    const part w = draw_part(&r, 0.9, false);
    const float noise = 4 * leat__rng_float(&r);
    add_part(out, from, &w, 1);
    for (int i = 0; i < SIDE * SIDE; i++) out->plane[0][i] += noise * (float)leat__rng_normal(&r);
}

/* The row that row `row` is an edit of; itself when it is none. */
static uint64_t original_of(uint64_t row)
{
    leat__rng r;
    if (row % EDIT_EVERY != EDIT_EVERY - 1) return row;
    leat__rng_init(&r, SEED, 2, row, 0);
    const uint64_t of = leat__rng_below(&r, row);
    return of % EDIT_EVERY == EDIT_EVERY - 1 ? of - 1 : of;
}

static void draw_row(const box *b, uint64_t row, picture *out)
{
    picture from;
    const uint64_t of = original_of(row);
    if (of == row) {
        draw_plain(b, row, out);
        return;
    }
    draw_plain(b, of, &from);
    edit(&from, row, out);
}

static void sign(const picture *p, leat__image_sign *out)
{
    uint8_t bytes[3][SIDE * SIDE];
    leat__image_small small = {.components = 3};
    small.info.width = small.info.height = SIDE;
    for (int c = 0; c < 3; c++) {
        const uint32_t n = c == 0 ? SIDE : CHROMA;
        for (uint32_t i = 0; i < n * n; i++) {
            const float v = p->plane[c][i] + 128.5f;
            bytes[c][i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
        small.plane[c] = (leat__small_plane){
            .data = bytes[c], .stride = n, .width = n, .height = n, .across = (float)n, .down = (float)n};
    }
    leat__image_sign_make(out, &small);
}

/* ---- columns ---- */

static int write_columns(const box *b, const char *path, uint64_t first, uint64_t rows, leat_error *err)
{
    leat_packer *p = NULL;
    leat_packer_stats stats;
    LEAT_TRY(leat__image_columns_create(&p, path, "{\"kind\":\"" LEAT__COLUMNS_KIND "\"}", true, true, err));
    int rc = 0;
    for (uint64_t i = first; i < first + rows && rc == 0; i++) {
        leat__image_facts f = {.codec = LEAT__CODEC_JPEG, .is_signed = true, .width = 64, .height = 64};
        picture pic;
        char key[64];
        const uint64_t of = original_of(i);
        int size = of == i ? snprintf(key, sizeof key, "%08" PRIu64, i)
                           : snprintf(key, sizeof key, "%08" PRIu64 "-of-%08" PRIu64, i, of);
        draw_row(b, i, &pic);
        sign(&pic, &f.sign);
        f.content_hash = i + 1;
        f.bytes = 1000 + i % 1000;
        rc = leat__image_columns_append(p, key, (size_t)size, &f, err);
    }
    if (rc == 0) rc = leat_packer_finish(p, &stats, err);
    leat_packer_close(&p);
    return rc;
}

/* ---- the index ---- */

#define LIBRARY 200000 /* parts that rows are mixed from */
#define NUMBERS (LEAT__COARSE_BYTES - 1)
#define LUMA 27
#define PI 3.14159265358979323846

typedef struct making {
    const box *b;
    float *library; /* NUMBERS each: weighted frequencies of a part; a mixture of parts has their mixture */
    int8_t *codes;
    uint32_t *list;
    const leat__image_index *index;
    uint64_t rows;
} making;

typedef struct mixture {
    uint32_t part[2];
    float weight;
} mixture;

static mixture draw_mixture(uint64_t row)
{
    leat__rng r;
    leat__rng_init(&r, SEED, 3, row, 0);
    mixture m = {{(uint32_t)leat__rng_below(&r, LIBRARY), (uint32_t)leat__rng_below(&r, LIBRARY)},
                 (float)leat__rng_range(&r, 0.55, 0.95)};
    return m;
}

static void draw_library_part(const box *b, uint32_t number, picture *out)
{
    leat__rng r;
    picture from;
    leat__rng_init(&r, SEED, 4, number, 0);
    draw_source(b, &r, &from);
    const part w = draw_part(&r, 0.5, true);
    memset(out, 0, sizeof *out);
    add_part(out, &from, &w, 1);
}

static void draw_mixed(const box *b, uint64_t row, picture *out)
{
    static const part whole = {.side = 1, .gain = 1};
    const mixture m = draw_mixture(row);
    picture from;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < 2; k++) {
        draw_library_part(b, m.part[k], &from);
        add_part(out, &from, &whole, k == 0 ? m.weight : 1 - m.weight);
    }
}

/* The frequencies of the coarse descriptor, times their weights. */
static int transform(const float *plane, int n, int order, int skip, float *out)
{
    int count = 0;
    for (int u = 0; u < order; u++) {
        float row[SIDE] = {0};
        for (int y = 0; y < n; y++) {
            const float by = (float)(sqrt((u ? 2.0 : 1.0) / n) * cos((2 * y + 1) * u * PI / (2 * n)));
            for (int x = 0; x < n; x++) row[x] += by * plane[y * n + x];
        }
        for (int v = 0; v < order - u; v++) {
            if (u + v < skip) continue;
            double sum = 0;
            for (int x = 0; x < n; x++)
                sum += row[x] * sqrt((v ? 2.0 : 1.0) / n) * cos((2 * x + 1) * v * PI / (2 * n));
            out[count++] = (float)(sum * sqrt(u || v ? u * u + v * v : 1));
        }
    }
    return count;
}

static float normalise(float *v, int n, float floor)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        v[i] = v[i] < 0 ? -sqrtf(-v[i]) : sqrtf(v[i]);
        sum += v[i] * v[i];
    }
    const float length = sqrtf(sum), by = 1 / (length + floor);
    for (int i = 0; i < n; i++) v[i] *= by;
    return length * by;
}

static void fill_library(void *cookie, uint32_t member, uint32_t members)
{
    const making *m = cookie;
    for (uint32_t i = (uint32_t)((uint64_t)LIBRARY * member / members);
         i < (uint64_t)LIBRARY * (member + 1) / members; i++) {
        picture pic;
        float *to = m->library + (size_t)i * NUMBERS;
        draw_library_part(m->b, i, &pic);
        to += transform(pic.plane[0], SIDE, LEAT__COARSE_ORDER, 1, to);
        to += transform(pic.plane[1], CHROMA, LEAT__CHROMA_ORDER, 0, to);
        transform(pic.plane[2], CHROMA, LEAT__CHROMA_ORDER, 0, to);
    }
}

static void make_some(void *cookie, uint32_t member, uint32_t members)
{
    const making *m = cookie;
    for (uint64_t i = m->rows * member / members; i < m->rows * (member + 1) / members; i++) {
        float v[NUMBERS];
        int8_t *to = m->codes + i * LEAT__COARSE_BYTES;
        const mixture mix = draw_mixture(i);
        const float *a = m->library + (size_t)mix.part[0] * NUMBERS,
                    *b = m->library + (size_t)mix.part[1] * NUMBERS;
        for (int k = 0; k < NUMBERS; k++) v[k] = mix.weight * a[k] + (1 - mix.weight) * b[k];
        const float luma = normalise(v, LUMA, 1), chroma = normalise(v + LUMA, NUMBERS - LUMA, 30);
        const float by = 220 / (sqrtf(luma * luma + chroma * chroma) + 1e-6f);
        for (int k = 0; k < NUMBERS; k++) to[k] = (int8_t)LEAT_MAX(LEAT_MIN(lrintf(v[k] * by), 127), -127);
        to[NUMBERS] = 0;
    }
}

static void assign_some(void *cookie, uint32_t member, uint32_t members)
{
    const making *m = cookie;
    const uint64_t from = m->rows * member / members, to = m->rows * (member + 1) / members;
    leat__image_index_assign(m->index, m->codes + from * LEAT__COARSE_BYTES, (uint32_t)(to - from),
                             m->list + from);
}

static int by_distance(const void *x, const void *y)
{
    const leat__near *a = x, *b = y;
    if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
    return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static float length_of(const leat__align_dsp *dsp, const int8_t *code)
{
    int32_t square;
    dsp->products(code, code, LEAT__COARSE_BYTES, 1, &square);
    return sqrtf((float)square);
}

/* The nearest entries of all: exact. */
static uint32_t search_all(const making *m, const int8_t *code, leat__near *out)
{
    const leat__align_dsp *dsp = leat__align_dsp_for(leat__cpu_flags());
    leat__near *found = NULL;
    size_t n = 0, room = 0;
    const float own = 1 / (length_of(dsp, code) + 1e-6f);
    for (uint64_t i = 0; i < m->rows; i += 256) {
        int32_t product[256];
        const size_t some = (size_t)LEAT_MIN(m->rows - i, 256);
        dsp->products(code, m->codes + i * LEAT__COARSE_BYTES, LEAT__COARSE_BYTES, some, product);
        for (size_t k = 0; k < some; k++) {
            const float rough = 1 - (float)product[k] * own / 219;
            if (rough > LIMIT + 0.05f) continue;
            const float d = 1 - (float)product[k] * own *
                                    (1 / (length_of(dsp, m->codes + (i + k) * LEAT__COARSE_BYTES) + 1e-6f));
            if (d >= LIMIT) continue;
            if (n == room) {
                room = room ? 2 * room : 4096;
                found = realloc(found, room * sizeof *found);
                if (!found) abort();
            }
            found[n++] = (leat__near){(uint32_t)(i + k), d, 0, 0};
        }
    }
    qsort(found, n, sizeof *found, by_distance);
    n = LEAT_MIN(n, ROOM);
    if (n > 0) memcpy(out, found, n * sizeof *found);
    free(found);
    return (uint32_t)n;
}

typedef struct tally {
    uint64_t ns, planted, wanted[3], got[3];
} tally;

static const float shares[] = {0.005f, 0.01f, 0.02f, 0.03f, 0.06f, 0.12f};
static const float bounds[3] = {0.2f, 0.3f, 0.4f};

static uint32_t find(const leat__image_index *index, const leat__near_query *query, leat__near *out,
                     uint32_t room, int32_t *scratch)
{
    leat__near_heap heap = {.near = out, .room = room};
    leat__image_index_scan(index, query, &heap, scratch);
    leat__near_sort(out, heap.count);
    return heap.count;
}

static void count_query(const making *m, const int8_t *code, const leat__near *exact, uint32_t n,
                        uint32_t original, tally *t, int32_t *scratch)
{
    for (size_t s = 0; s < LEAT_COUNT(shares); s++) {
        leat__near found[ROOM];
        const uint64_t begin = leat__clock_process_ns();
        const uint32_t got =
            find(m->index, &(leat__near_query){code, LIMIT, shares[s], UINT32_MAX}, found, ROOM, scratch);
        t[s].ns += leat__clock_process_ns() - begin;
        for (uint32_t i = 0; i < got; i++) t[s].planted += found[i].entry == original;
        for (uint32_t e = 0; e < n; e++) {
            bool there = false;
            for (uint32_t i = 0; i < got && !there; i++) there = found[i].entry == exact[e].entry;
            for (int b = 0; b < 3; b++) {
                if (exact[e].distance >= bounds[b]) continue;
                t[s].wanted[b]++;
                t[s].got[b] += there;
            }
        }
    }
}

static void report(const tally *t, uint64_t rows, uint64_t queries, uint64_t planted, bool whole)
{
    for (size_t s = 0; s < LEAT_COUNT(shares); s++) {
        printf("{\"bench\":\"image_index\",\"rows\":%" PRIu64 ",\"share\":%.3f,\"edits_found\":%.5f,"
               "\"edits_of_exact\":%" PRIu64 ",\"queries\":%" PRIu64,
               rows, (double)shares[s], (double)t[s].planted / (double)LEAT_MAX(planted, 1), planted,
               queries);
        if (whole) printf(",\"us_per_query\":%.1f", (double)t[s].ns / 1e3 / (double)queries);
        for (int b = 0; b < 3; b++)
            printf(",\"recall_below_%.1f\":%.5f,\"pairs_below_%.1f\":%" PRIu64, (double)bounds[b],
                   (double)t[s].got[b] / (double)LEAT_MAX(t[s].wanted[b], 1), (double)bounds[b],
                   t[s].wanted[b]);
        printf("}\n");
    }
}

typedef struct question {
    int8_t code[LEAT__COARSE_BYTES];
    uint32_t original, n;
    leat__near exact[ROOM];
} question;

typedef struct asking {
    const making *m;
    question *q;
    uint64_t queries;
} asking;

static void ask_some(void *cookie, uint32_t member, uint32_t members)
{
    const asking *a = cookie;
    for (uint64_t i = a->queries * member / members; i < a->queries * (member + 1) / members; i++) {
        leat__image_sign s;
        picture from, pic;
        question *q = &a->q[i];
        q->original = (uint32_t)(i * (a->m->rows / a->queries));
        draw_mixed(a->m->b, q->original, &from);
        edit(&from, a->m->rows + i, &pic);
        sign(&pic, &s);
        s.coarse[LEAT__COARSE_FLAGS] = 0;
        memcpy(q->code, s.coarse, sizeof q->code);
        q->n = search_all(a->m, q->code, q->exact);
    }
}

static int by_number(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Fills the index with all rows or, of many, with those that a query should find: whether they are found
 * depends on their lists only. */
static int fill_index(making *m, leat__thread_team *team, leat__image_index *index, const asking *a,
                      bool whole, leat_error *err)
{
    uint32_t *number = NULL;
    uint64_t n = 0;
    int8_t *codes = m->codes;
    if (!whole) {
        number = malloc(a->queries * ROOM * sizeof *number);
        codes = malloc(a->queries * ROOM * LEAT__COARSE_BYTES);
        if (!number || !codes) return leat__fail_nomem(err, 0, "descriptors");
        for (uint64_t i = 0; i < a->queries; i++)
            for (uint32_t k = 0; k < a->q[i].n; k++) number[n++] = a->q[i].exact[k].entry;
        qsort(number, n, sizeof *number, by_number);
        uint64_t kept = 0;
        for (uint64_t i = 0; i < n; i++)
            if (i == 0 || number[i] != number[i - 1]) number[kept++] = number[i];
        n = kept;
        for (uint64_t i = 0; i < n; i++)
            memcpy(codes + i * LEAT__COARSE_BYTES, m->codes + (uint64_t)number[i] * LEAT__COARSE_BYTES,
                   LEAT__COARSE_BYTES);
    }
    making some = *m;
    some.codes = codes;
    some.rows = whole ? m->rows : n;
    leat__thread_team_run(team, assign_some, &some);
    int rc = leat__image_index_fill(
        index,
        &(leat__index_part){.codes = codes, .list = m->list, .number = number, .count = (uint32_t)some.rows},
        err);
    free(number);
    if (!whole) free(codes);
    return rc;
}

static int measure_index(const box *b, uint64_t rows, uint64_t queries, leat_error *err)
{
    leat__thread_team *team = NULL;
    leat__image_index *index = NULL;
    making m = {.b = b, .rows = rows};
    asking a = {.m = &m, .queries = queries};
    tally t[LEAT_COUNT(shares)] = {{0}};
    uint64_t planted = 0;
    const bool whole = rows <= 2000000;
    m.library = malloc((size_t)LIBRARY * NUMBERS * sizeof *m.library);
    m.codes = malloc(rows * LEAT__COARSE_BYTES);
    m.list = malloc(rows * sizeof *m.list);
    a.q = malloc(queries * sizeof *a.q);
    const uint32_t train = leat__image_index_sample((uint32_t)rows);
    int8_t *sample = malloc((size_t)train * LEAT__COARSE_BYTES);
    if (!m.library || !m.codes || !m.list || !a.q || !sample) return leat__fail_nomem(err, 0, "descriptors");
    LEAT_TRY(leat__thread_team_open(&team, 0, err));
    leat__thread_team_run(team, fill_library, &m);
    leat__thread_team_run(team, make_some, &m);
    leat__thread_team_run(team, ask_some, &a);
    const uint64_t begin = leat__clock_process_ns();
    for (uint32_t i = 0; i < train; i++)
        memcpy(sample + (size_t)i * LEAT__COARSE_BYTES,
               m.codes + (uint64_t)i * rows / train * LEAT__COARSE_BYTES, LEAT__COARSE_BYTES);
    LEAT_TRY(leat__image_index_train(&index, sample, (uint32_t)rows, NULL, err));
    m.index = index;
    LEAT_TRY(fill_index(&m, team, index, &a, whole, err));
    printf("{\"bench\":\"image_index_build\",\"rows\":%" PRIu64 ",\"lists\":%u,\"%s\":%.1f}\n", rows,
           leat__image_index_lists(index), whole ? "cpu_s" : "cpu_s_of_centres",
           (double)(leat__clock_process_ns() - begin) / 1e9);
    int32_t *scratch = malloc(2 * sizeof *scratch * leat__image_index_lists(index));
    for (uint64_t i = 0; i < queries && scratch; i++) {
        const question *q = &a.q[i];
        for (uint32_t k = 0; k < q->n; k++) planted += q->exact[k].entry == q->original;
        count_query(&m, q->code, q->exact, q->n, q->original, t, scratch);
    }
    report(t, rows, queries, planted, whole);
    leat__image_index_close(&index);
    leat__thread_team_close(&team);
    free(m.library);
    free(m.codes);
    free(m.list);
    free(a.q);
    free(sample);
    free(scratch);
    return 0;
}

/* ---- the search ---- */

/* Reads all rows, builds the index and searches with some rows; no thumbnails are compared. One thread. */
static int measure_search(const char *path, uint32_t every, uint32_t orientations, leat_error *err)
{
    leat__dedup_rows r;
    leat__image_index *index = NULL;
    struct rusage u;
    uint64_t queries = 0, found = 0;
    const uint64_t begin = leat__clock_process_ns();
    LEAT_TRY(leat__dedup_rows_read(
        &r, &(leat__dedup_rows_opts){.paths = &path, .count = 1, .orientations = orientations}, err));
    const uint64_t read = leat__clock_process_ns();
    LEAT_TRY(leat__image_index_open(&index, r.entry.coarse, r.entries, NULL, err));
    const uint64_t built = leat__clock_process_ns();
    int32_t *scratch = malloc(2 * sizeof *scratch * leat__image_index_lists(index));
    const leat__dedup_ask ask = {.rows = &r, .index = index, .from = &r.entry};
    for (uint32_t row = every / 2; row < r.count && scratch; row += every)
        for (uint32_t e = 0; e < r.row[row].entries; e++)
            for (uint32_t o = 0; o < orientations; o++) {
                leat__near near[LEAT__DEDUP_ROOM];
                leat__near_heap heap = {.near = near, .room = LEAT__DEDUP_ROOM};
                leat__dedup_ask_one(&ask, row, r.row[row].entry + e, o, &heap, scratch);
                queries++;
                found += heap.count;
            }
    const double asked = (double)(leat__clock_process_ns() - built) / 1e9;
    getrusage(RUSAGE_SELF, &u);
    printf("{\"bench\":\"image_search\",\"rows\":%u,\"descriptors\":%u,\"read_s\":%.1f,\"build_s\":%.1f,"
           "\"queries\":%" PRIu64 ",\"us_per_query\":%.1f,\"found_per_query\":%.1f,\"all_queries_s\":%.1f,"
           "\"peak_mb\":%.0f,\"planned_mb\":%.0f}\n",
           r.count, r.entries, (double)(read - begin) / 1e9, (double)(built - read) / 1e9, queries,
           asked * 1e6 / (double)LEAT_MAX(queries, 1), (double)found / (double)LEAT_MAX(queries, 1),
           asked * every, (double)u.ru_maxrss / 1e3 * 1.024, (double)r.memory / 1e6);
    leat__image_index_close(&index);
    leat__dedup_rows_reset(&r);
    free(scratch);
    return 0;
}

int main(int argc, char **argv)
{
    leat_error err = {0};
    box b = {0};
    if (argc < 5 || argc > 6) return fprintf(stderr, "usage: images_scale write|index|search FILE …\n"), 2;
    if (strcmp(argv[1], "search") == 0) {
        const uint32_t every = (uint32_t)strtoul(argv[3], NULL, 10),
                       turns = (uint32_t)strtoul(argv[4], NULL, 10);
        return measure_search(argv[2], LEAT_MAX(every, 1), LEAT_MAX(turns, 1), &err) == 0 ? 0 : die(&err);
    }
    if (read_thumbs(&b, argv[2], &err) != 0) return die(&err);
    const int rc = strcmp(argv[1], "write") == 0
                       ? write_columns(&b, argv[3], argc > 5 ? strtoull(argv[5], NULL, 10) : 0,
                                       strtoull(argv[4], NULL, 10), &err)
                       : measure_index(&b, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), &err);
    free(b.thumbs);
    return rc == 0 ? 0 : die(&err);
}
