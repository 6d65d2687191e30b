/* SPDX-License-Identifier: Apache-2.0
 *
 * Many synthetic images for `leat dedup images`, and the recall of its index. JSON lines on stdout.
 *
 *   images_scale write CHECK.leat OUT.leat ROWS [FIRST]
 *                                                     columns like those of leat check, from row FIRST on
 *   images_scale recall PAIRS.csv ROWS                how many planted duplicates of such columns a CSV has
 *   images_scale pairs CHECK.leat ROWS                distances of all pairs, real images and synthetic ones
 *   images_scale index CHECK.leat ROWS QUERIES        against an exact search; in memory
 *   images_scale search COLUMNS.leat EVERY ORIENTATIONS
 *                                                     the search of leat dedup images, by one row in EVERY
 *
 * A row is put together from four images of CHECK.leat (columns of real images), parts of them, mirrored or
 * not: the lowest frequencies of brightness come from one, the middle ones from another, the details from a
 * third, the colours from a fourth of about the same variety. So two rows have no more in common than two
 * photographs; `pairs` shows it. Every 50th row of `write` is an edit of an earlier one: a crop of up to a
 * tenth of each side, other brightness, noise. Queries of `index` are such edits of random rows.
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

#define LISTS 1024   /* at most */
#define TRAINED 4096 /* descriptors that count for the number of lists */

typedef struct source {
    uint32_t list;
    int8_t coarse[LEAT__COARSE_BYTES];
    uint8_t thumb[LEAT__THUMB_BYTES];
} source;

/* Images list by list: those of a list look alike. */
typedef struct box {
    source *source;
    uint32_t count, begin[LISTS + 1];
} box;

static int die(const leat_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static int by_list(const void *x, const void *y)
{
    const source *a = x, *b = y;
    if (a->list != b->list) return a->list < b->list ? -1 : 1;
    return memcmp(a->thumb, b->thumb, sizeof a->thumb);
}

/* Sorts the images into lists. */
static int sort_thumbs(box *b, leat_error *err)
{
    leat__image_index *index = NULL;
    const uint32_t count = LEAT_MIN(b->count, TRAINED), train = leat__image_index_sample(count);
    int8_t *sample = malloc((size_t)train * LEAT__COARSE_BYTES + 1);
    if (!sample) return leat__fail_nomem(err, 0, "descriptors");
    for (uint32_t i = 0; i < train; i++)
        memcpy(sample + (size_t)i * LEAT__COARSE_BYTES, b->source[(uint64_t)i * b->count / train].coarse,
               LEAT__COARSE_BYTES);
    int rc = leat__image_index_train(&index, sample, count, NULL, err);
    free(sample);
    if (rc != 0) return rc;
    for (uint32_t i = 0; i < b->count; i++) {
        leat__image_index_assign(index, b->source[i].coarse, 1, &b->source[i].list);
        b->begin[b->source[i].list + 1]++;
    }
    leat__image_index_close(&index);
    for (int l = 0; l < LISTS; l++) b->begin[l + 1] += b->begin[l];
    qsort(b->source, b->count, sizeof *b->source, by_list);
    return 0;
}

static int read_thumbs(box *b, const char *path, leat_error *err)
{
    leat__image_columns c;
    leat__image_facts f;
    LEAT_TRY(leat__image_columns_open(&c, path, err));
    b->source = malloc(c.count * sizeof *b->source + 1);
    int rc = b->source ? 0 : leat__fail_nomem(err, 0, "thumbnails");
    for (uint64_t i = 0; i < c.count && rc == 0; i++) {
        rc = leat__image_columns_read(&c, i, &f, err);
        if (rc != 0 || !f.is_signed) continue;
        source *to = &b->source[b->count++];
        memcpy(to->coarse, f.sign.coarse, sizeof to->coarse);
        memcpy(to->thumb, f.sign.thumb, sizeof to->thumb);
    }
    leat__image_columns_close(&c);
    return rc == 0 ? sort_thumbs(b, err) : rc;
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

static void read_source(const uint8_t *t, picture *p)
{
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < (c == 0 ? SIDE * SIDE : CHROMA * CHROMA); i++) p->plane[c][i] = (float)*t++ - 128;
}

/* ---- frequencies ---- */

#define ORDER LEAT__COARSE_ORDER /* frequencies u + v below this */
#define LOW 3                    /* those below this come from the first image */
#define PI 3.14159265358979323846

typedef struct frequencies {
    float at[ORDER][ORDER];
} frequencies;

static float basis[2][ORDER][SIDE]; /* luma, chroma */

static void make_basis(void)
{
    for (int c = 0; c < 2; c++)
        for (int u = 0; u < ORDER; u++)
            for (int x = 0, n = c ? CHROMA : SIDE; x < n; x++)
                basis[c][u][x] = (float)(sqrt((u ? 2.0 : 1.0) / n) * cos((2 * x + 1) * u * PI / (2 * n)));
}

static void analyse(const float *plane, int n, int order, frequencies *f)
{
    const int c = n == CHROMA;
    for (int u = 0; u < order; u++) {
        float row[SIDE] = {0};
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) row[x] += basis[c][u][y] * plane[y * n + x];
        for (int v = 0; v < order - u; v++) {
            float sum = 0;
            for (int x = 0; x < n; x++) sum += row[x] * basis[c][v][x];
            f->at[u][v] = sum;
        }
    }
}

static void synthesise(float *plane, const frequencies *f)
{
    for (int u = 0; u < ORDER; u++) {
        float row[SIDE] = {0};
        for (int v = 0; v < ORDER - u; v++)
            for (int x = 0; x < SIDE; x++) row[x] += f->at[u][v] * basis[0][v][x];
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) plane[y * SIDE + x] += basis[0][u][y] * row[x];
    }
}

static float weight_of(int u, int v)
{
    return sqrtf(u || v ? (float)(u * u + v * v) : 1);
}

/* How strong brightness varies. */
static float contrast_of(const frequencies *f)
{
    float sum = 1;
    for (int u = 0; u < ORDER; u++)
        for (int v = 0; v < ORDER - u; v++)
            if (u + v > 0) sum += f->at[u][v] * f->at[u][v];
    return sqrtf(sum);
}

/* ---- rows ---- */

#define LIBRARY 1000000 /* parts that rows are put together from, list by list */
enum { LOWEST, MIDDLE, DETAILS, COLOURS, PARTS };

typedef struct mosaic {
    uint32_t part[PARTS];
} mosaic;

static mosaic draw_mosaic(const box *b, uint64_t row)
{
    mosaic m;
    leat__rng r;
    leat__rng_init(&r, SEED, 3, row, 0);
    const uint32_t list = b->source[leat__rng_below(&r, b->count)].list;
    const uint64_t from = (uint64_t)b->begin[list] * LIBRARY / b->count,
                   to = (uint64_t)b->begin[list + 1] * LIBRARY / b->count;
    for (int k = 0; k < PARTS; k++) m.part[k] = (uint32_t)(from + leat__rng_below(&r, to - from));
    return m;
}

static void draw_library_part(const box *b, uint32_t number, picture *out)
{
    leat__rng r;
    picture from;
    leat__rng_init(&r, SEED, 4, number, 0);
    read_source(b->source[(uint64_t)number * b->count / LIBRARY].thumb, &from);
    const part w = draw_part(&r, 0.9, false);
    memset(out, 0, sizeof *out);
    add_part(out, &from, &w, 1);
}

/* The factor that gives a part the contrast of the first one. */
static float gain_of(float first, float contrast)
{
    return LEAT_MIN(LEAT_MAX(first / contrast, 0.25f), 4.0f);
}

static void draw_plain(const box *b, uint64_t row, picture *out)
{
    const mosaic m = draw_mosaic(b, row);
    picture from[PARTS];
    frequencies f[COLOURS];
    float gain[COLOURS] = {1};
    for (int k = 0; k < PARTS; k++) draw_library_part(b, m.part[k], &from[k]);
    for (int k = 0; k < COLOURS; k++) {
        analyse(from[k].plane[0], SIDE, ORDER, &f[k]);
        gain[k] = gain_of(contrast_of(&f[0]), contrast_of(&f[k]));
    }
    for (int u = 0; u < ORDER; u++)
        for (int v = 0; v < ORDER - u; v++) {
            const int k = u + v < LOW ? LOWEST : MIDDLE;
            f[DETAILS].at[u][v] = gain[k] * f[k].at[u][v] - gain[DETAILS] * f[DETAILS].at[u][v];
        }
    *out = from[COLOURS];
    for (int i = 0; i < SIDE * SIDE; i++) out->plane[0][i] = gain[DETAILS] * from[DETAILS].plane[0][i];
    synthesise(out->plane[0], &f[DETAILS]);
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

#define NUMBERS (LEAT__COARSE_BYTES - 1)
#define LUMA 27

typedef struct library_part {
    float contrast, number[NUMBERS]; /* weighted frequencies */
} library_part;

typedef struct making {
    const box *b;
    library_part *library;
    int8_t *codes;
    uint32_t *list;
    const leat__image_index *index;
    uint64_t rows;
} making;

/* The frequencies of the coarse descriptor, times their weights. */
static int flatten(const frequencies *f, int order, int skip, float *out)
{
    int count = 0;
    for (int u = 0; u < order; u++)
        for (int v = 0; v < order - u; v++)
            if (u + v >= skip) out[count++] = f->at[u][v] * weight_of(u, v);
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
        frequencies f;
        float *to = m->library[i].number;
        draw_library_part(m->b, i, &pic);
        analyse(pic.plane[0], SIDE, ORDER, &f);
        m->library[i].contrast = contrast_of(&f);
        to += flatten(&f, ORDER, 1, to);
        for (int c = 1; c < 3; c++) {
            analyse(pic.plane[c], CHROMA, LEAT__CHROMA_ORDER, &f);
            to += flatten(&f, LEAT__CHROMA_ORDER, 0, to);
        }
    }
}

/* The coarse descriptor of a row, without its picture; what clipping to bytes changes is not in it. */
static void make_code(const box *b, const library_part *library, uint64_t row, int8_t *to)
{
    float v[NUMBERS];
    const mosaic m = draw_mosaic(b, row);
    const library_part *low = &library[m.part[LOWEST]], *middle = &library[m.part[MIDDLE]],
                       *colours = &library[m.part[COLOURS]];
    const float gain = gain_of(low->contrast, middle->contrast);
    int at = 0;
    for (int u = 0; u < ORDER; u++)
        for (int k = 0; k < ORDER - u; k++) {
            if (u + k == 0) continue;
            v[at] = u + k < LOW ? low->number[at] : gain * middle->number[at];
            at++;
        }
    for (; at < NUMBERS; at++) v[at] = colours->number[at];
    const float luma = normalise(v, LUMA, 1), chroma = normalise(v + LUMA, NUMBERS - LUMA, 30);
    const float by = 220 / (sqrtf(luma * luma + chroma * chroma) + 1e-6f);
    for (int k = 0; k < NUMBERS; k++) to[k] = (int8_t)LEAT_MAX(LEAT_MIN(lrintf(v[k] * by), 127), -127);
    to[NUMBERS] = 0;
}

static void make_some(void *cookie, uint32_t member, uint32_t members)
{
    const making *m = cookie;
    for (uint64_t i = m->rows * member / members; i < m->rows * (member + 1) / members; i++)
        make_code(m->b, m->library, i, m->codes + i * LEAT__COARSE_BYTES);
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
                     uint32_t room, void *scratch)
{
    leat__near_heap heap = {.near = out, .room = room};
    leat__image_index_scan(index, query, &heap, 1, scratch);
    leat__near_sort(out, heap.count);
    return heap.count;
}

static void count_query(const making *m, const int8_t *code, const leat__near *exact, uint32_t n,
                        uint32_t original, tally *t, void *scratch)
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
        draw_plain(a->m->b, q->original, &from);
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
    m.library = malloc((size_t)LIBRARY * sizeof *m.library);
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
    void *scratch = malloc(leat__image_index_scratch(index));
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

/* ---- distances ---- */

#define STEPS 20 /* of 0.05 */

typedef struct signs {
    int8_t (*coarse)[LEAT__COARSE_BYTES], (*fine)[LEAT__FINE_BYTES];
    float *scale; /* 1 / length of the coarse one */
    uint32_t count, members;
    uint64_t (*pairs)[STEPS],
        (*near)[STEPS]; /* of each member: by coarse distance; below LIMIT by fine one */
} signs;

static void compare_some(void *cookie, uint32_t member, uint32_t members)
{
    const signs *s = cookie;
    const leat__align_dsp *dsp = leat__align_dsp_for(leat__cpu_flags());
    for (uint32_t i = member; i < s->count; i += members)
        for (uint32_t at = i + 1; at < s->count; at += 256) {
            int32_t product[256];
            const uint32_t n = LEAT_MIN(s->count - at, 256);
            dsp->products(s->coarse[i], s->coarse[at], LEAT__COARSE_BYTES, n, product);
            for (uint32_t k = 0; k < n; k++) {
                const float d = 1 - (float)product[k] * s->scale[i] * s->scale[at + k];
                const int step = (int)(LEAT_MAX(d, 0) * STEPS);
                if (step < STEPS) s->pairs[member][step]++;
                if (d >= LIMIT) continue;
                const float fine = leat__image_sign_distance(s->fine[i], s->fine[at + k], LEAT__FINE_BYTES);
                s->near[member][LEAT_MIN((int)(LEAT_MAX(fine, 0) * STEPS), STEPS - 1)]++;
            }
        }
}

static void print_shares(const char *name, uint64_t (*counts)[STEPS], uint32_t members, double total)
{
    uint64_t sum = 0;
    printf(",\"%s\":{", name);
    for (int i = 0; i < STEPS; i++) {
        for (uint32_t m = 0; m < members; m++) sum += counts[m][i];
        printf("%s\"%.2f\":%.3g", i ? "," : "", (i + 1) / (double)STEPS, (double)sum / total);
    }
    printf("}");
}

static void add_sign(signs *s, const leat__image_sign *from)
{
    int32_t square;
    int8_t *coarse = s->coarse[s->count];
    if (from->coarse[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT) return;
    memcpy(coarse, from->coarse, LEAT__COARSE_BYTES);
    coarse[LEAT__COARSE_FLAGS] = 0;
    memcpy(s->fine[s->count], from->fine, LEAT__FINE_BYTES);
    leat__align_dsp_for(leat__cpu_flags())->products(coarse, coarse, LEAT__COARSE_BYTES, 1, &square);
    s->scale[s->count++] = 1 / (sqrtf((float)square) + 1e-6f);
}

static void report_pairs(signs *s, leat__thread_team *team, const char *kind)
{
    const double total = (double)s->count * (s->count - 1) / 2;
    double near = 0;
    memset(s->pairs, 0, s->members * sizeof *s->pairs);
    memset(s->near, 0, s->members * sizeof *s->near);
    leat__thread_team_run(team, compare_some, s);
    for (uint32_t m = 0; m < s->members; m++)
        for (int i = 0; i < STEPS; i++) near += (double)s->near[m][i];
    printf("{\"bench\":\"image_pairs\",\"kind\":\"%s\",\"images\":%u", kind, s->count);
    print_shares("nearer", s->pairs, s->members, total);
    print_shares("fine_of_near", s->near, s->members, LEAT_MAX(near, 1));
    printf("}\n");
}

/* Distances of `rows` real images and as many synthetic ones. */
static int measure_pairs(const box *b, const char *path, uint32_t rows, leat_error *err)
{
    leat__thread_team *team = NULL;
    leat__image_columns c;
    leat__image_facts f;
    leat__image_sign made;
    signs s = {.coarse = malloc(rows * sizeof *s.coarse), .fine = malloc(rows * sizeof *s.fine)};
    s.scale = malloc(rows * sizeof *s.scale);
    LEAT_TRY(leat__thread_team_open(&team, 0, err));
    s.members = leat__thread_team_size(team);
    s.pairs = malloc(s.members * sizeof *s.pairs);
    s.near = malloc(s.members * sizeof *s.near);
    if (!s.coarse || !s.fine || !s.scale || !s.pairs || !s.near)
        return leat__fail_nomem(err, 0, "descriptors");
    LEAT_TRY(leat__image_columns_open(&c, path, err));
    const uint64_t some = LEAT_MIN(c.count, rows);
    int rc = 0;
    for (uint64_t i = 0; i < some && rc == 0; i++) {
        rc = leat__image_columns_read(&c, i * c.count / some, &f, err);
        if (rc == 0 && f.is_signed) add_sign(&s, &f.sign);
    }
    leat__image_columns_close(&c);
    if (rc == 0) report_pairs(&s, team, "real");
    s.count = 0;
    for (uint64_t i = 0; i < rows && rc == 0; i++) {
        picture pic;
        draw_plain(b, i, &pic);
        sign(&pic, &made);
        add_sign(&s, &made);
    }
    if (rc == 0) report_pairs(&s, team, "synthetic");
    leat__thread_team_close(&team);
    free(s.coarse);
    free(s.fine);
    free(s.scale);
    free(s.pairs);
    free(s.near);
    return rc;
}

/* ---- planted duplicates ---- */

/* Counts the planted pairs of rows below `rows` in a CSV of leat dedup images. Two edits of one original are
 * duplicates, too. */
static int measure_recall(const char *path, uint64_t rows, leat_error *err)
{
    char line[512];
    uint64_t planted = 0, found = 0, related = 0, other = 0;
    FILE *f = fopen(path, "r");
    if (!f) return leat__fail(err, LEAT_EIO, "%s: cannot be read", path);
    for (uint64_t i = 0; i < rows; i++) planted += original_of(i) != i;
    while (fgets(line, sizeof line, f)) {
        const char *second = strchr(line, ',');
        second = second ? strchr(second + 1, ',') : NULL;
        if (!second || line[0] < '0' || line[0] > '9') continue;
        const uint64_t a = strtoull(line, NULL, 10), b = strtoull(second + 1, NULL, 10);
        if (original_of(LEAT_MAX(a, b)) == LEAT_MIN(a, b)) found++;
        else if (original_of(a) == original_of(b)) related++;
        else other++;
    }
    fclose(f);
    printf("{\"bench\":\"image_recall\",\"planted\":%" PRIu64 ",\"found\":%" PRIu64 ",\"related\":%" PRIu64
           ",\"other\":%" PRIu64 "}\n",
           planted, found, related, other);
    return 0;
}

/* ---- the search ---- */

#define RUN 100 /* rows in succession, as leat dedup images searches them */

/* Queries of some rows from `first` on. Returns how many; adds what they find. */
static uint64_t ask_run(const leat__dedup_rows *r, const leat__image_index *index, uint32_t first,
                        uint32_t orientations, void *scratch, uint64_t *found)
{
    static leat__near near[LEAT__NEAR_QUERIES][LEAT__DEDUP_ROOM];
    leat__dedup_question turned[LEAT__NEAR_QUERIES];
    leat__near_heap heap[LEAT__NEAR_QUERIES];
    const leat__dedup_ask ask = {.rows = r, .index = index, .from = &r->entry};
    uint32_t n = 0;
    for (uint32_t row = first; row < LEAT_MIN(first + RUN, r->count); row++)
        for (uint32_t e = 0; e < r->row[row].entries; e++)
            for (uint32_t o = 0; o < orientations && n < LEAT__NEAR_QUERIES; o++) {
                heap[n] = (leat__near_heap){.near = near[n], .room = LEAT__DEDUP_ROOM};
                turned[n++] = (leat__dedup_question){row, r->row[row].entry + e, o};
            }
    leat__dedup_ask_some(&ask, turned, heap, n, scratch);
    for (uint32_t i = 0; i < n; i++) *found += heap[i].count;
    return n;
}

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
    void *scratch = malloc(leat__image_index_scratch(index));
    for (uint32_t row = every / 2; row < r.count && scratch; row += RUN * every)
        queries += ask_run(&r, index, row, orientations, scratch, &found);
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
    make_basis();
    if (argc < 4 || argc > 6)
        return fprintf(stderr, "usage: images_scale write|recall|pairs|index|search FILE …\n"), 2;
    if (strcmp(argv[1], "recall") == 0)
        return measure_recall(argv[2], strtoull(argv[3], NULL, 10), &err) == 0 ? 0 : die(&err);
    if (strcmp(argv[1], "pairs") == 0) {
        if (read_thumbs(&b, argv[2], &err) != 0) return die(&err);
        return measure_pairs(&b, argv[2], (uint32_t)strtoul(argv[3], NULL, 10), &err) == 0 ? 0 : die(&err);
    }
    if (argc < 5) return 2;
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
    free(b.source);
    return rc == 0 ? 0 : die(&err);
}
