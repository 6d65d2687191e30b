/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains the tables of a pack. Counts the symbols of a sample of images, and merges similar contexts until
 * LEAT__TILE_CONTEXTS are left. Gives each an optimal code of limited length. Also builds a dictionary from
 * the images' headers. One thread per trainer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zdict.h>

#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "probe/cpu.h"

enum {
    CLASSES = 2 * 36,       /* luma or chroma x groups used x group */
    DICTIONARY = 32 * 1024, /* target size; small samples get less */
    SKELETONS_MAX = 8 << 20
};

struct leat__tile_trainer {
    uint32_t images;
    uint64_t pairs[2][LEAT__TILE_PAIRS];
    uint64_t bytes[CLASSES][256];
    leat__buf skeletons; /* adjacent */
    leat__buf lengths;   /* size_t per skeleton */
    leat__tile_pack_dsp dsp;
    leat__tile_parts parts;
};

static uint32_t class_of(uint32_t kind, uint32_t groups, uint32_t group)
{
    return kind * 36 + groups * (groups - 1) / 2 + group;
}

int leat__tile_trainer_open(leat__tile_trainer **out, leat_error *err)
{
    leat__tile_trainer *t = LEAT_NEW(CODEC, leat__tile_trainer);
    *out = NULL;
    if (t == NULL) return leat__fail_nomem(err, sizeof *t, "tile trainer");
    leat__tile_pack_init(&t->dsp, leat__cpu_flags());
    leat__buf_init(&t->skeletons, LEAT__MEM_CODEC, 2 * SKELETONS_MAX);
    leat__buf_init(&t->lengths, LEAT__MEM_CODEC, SKELETONS_MAX);
    *out = t;
    return 0;
}

void leat__tile_trainer_close(leat__tile_trainer **t)
{
    if (*t == NULL) return;
    leat__buf_reset(&(*t)->skeletons);
    leat__buf_reset(&(*t)->lengths);
    leat__free(*t);
    *t = NULL;
}

uint32_t leat__tile_trainer_images(const leat__tile_trainer *t)
{
    return t->images;
}

static void count_tile(leat__tile_trainer *t, const leat__tile_shape *shape)
{
    const leat__tile_parts *p = &t->parts;
    for (uint32_t c = 0, b = 0; c < shape->components; b += shape->count[c], c++) {
        uint32_t kind = c > 0, n = shape->count[c];
        for (uint32_t i = 0; i < (n + 1) / 2; i++)
            t->pairs[kind][leat__tile_pair_symbol(p->groups + b, n, i)]++;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t g = 0; g < p->groups[b + i]; g++)
                t->bytes[class_of(kind, p->groups[b + i], g)][p->mask[b + i] >> 8 * g & 255]++;
    }
}

/* Counts the skeleton that was just appended; removes it again if `rc` is an error. */
static int end_skeleton(leat__tile_trainer *t, size_t before, int rc, leat_error *err)
{
    size_t size = t->skeletons.len - before;
    if (rc == 0) rc = leat__buf_append(&t->lengths, &size, sizeof size);
    if (rc == LEAT_ENOMEM) return leat__fail_nomem(err, size, "tile trainer");
    leat__buf *bufs[2] = {&t->skeletons, &t->lengths};
    for (int i = 0; i < 2; i++)
        bufs[i]->status = 0; /* a full buffer is fine: it holds enough for the dictionary */
    if (rc != 0) t->skeletons.len = before;
    return 0;
}

int leat__tile_trainer_add(leat__tile_trainer *t, const leat__jpeg_coefs *coefs, const uint8_t *jpeg,
                           size_t len, leat_error *err)
{
    leat__tile_header h;
    if (leat__tile_header_from(&h, coefs) != LEAT__TILE_KEPT_NONE) return 0;
    for (uint32_t ty = 0; ty < h.tiles_y; ty++)
        for (uint32_t tx = 0; tx < h.tiles_x; tx++) {
            leat__tile_shape shape;
            if (leat__tile_take_apart(&t->dsp, &t->parts, &h, coefs, tx, ty) != LEAT__TILE_KEPT_NONE)
                return 0; /* the counts of its other tiles do no harm */
            leat__tile_shape_at(&h, tx, ty, &shape);
            count_tile(t, &shape);
        }
    t->images++;
    size_t before = t->skeletons.len;
    if (before >= SKELETONS_MAX) return 0;
    return end_skeleton(t, before, leat__tile_skeleton_of(jpeg, len, &t->skeletons), err);
}

int leat__tile_trainer_join(leat__tile_trainer *t, const leat__tile_trainer *part, leat_error *err)
{
    t->images += part->images;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < LEAT__TILE_PAIRS; i++) t->pairs[k][i] += part->pairs[k][i];
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t i = 0; i < 256; i++) t->bytes[c][i] += part->bytes[c][i];
    const size_t *size = (const size_t *)(const void *)part->lengths.data;
    const char *at = part->skeletons.data;
    for (size_t n = part->lengths.len / sizeof *size; n > 0; n--, at += *size++) {
        size_t before = t->skeletons.len;
        if (before >= SKELETONS_MAX) return 0;
        LEAT_TRY(end_skeleton(t, before, leat__buf_append(&t->skeletons, at, *size), err));
    }
    return 0;
}

/* ---- codes of limited length: package-merge ---- */

typedef struct package {
    double weight;
    uint16_t left, right; /* in the previous level; left == LEAF: right is a symbol */
} package;

enum { LEAF = 0xffff, LIST_MAX = 512 };

static int by_weight(const void *a, const void *b)
{
    const package *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    return (int)x->right - (int)y->right;
}

/* Adds one to the length of every symbol in the package. */
static void count_leaves(const package (*level)[LIST_MAX], int l, uint32_t i, uint8_t *length)
{
    const package *p = &level[l][i];
    if (p->left == LEAF) {
        length[p->right]++;
        return;
    }
    count_leaves(level, l - 1, p->left, length);
    count_leaves(level, l - 1, p->right, length);
}

/* Computes optimal lengths of at most LEAT__TILE_CODE_BITS. In each level, packages are pairs of the previous
 * level merged with the symbols. The cheapest 2n - 2 of the last level tell how often each symbol is used,
 * which is its length. */
static int code_lengths(const double *weight, uint32_t symbols, uint8_t *length)
{
    package(*level)[LIST_MAX] = leat__alloc_array(LEAT__MEM_CODEC, LEAT__TILE_CODE_BITS, sizeof *level);
    package leaf[256];
    uint32_t n[LEAT__TILE_CODE_BITS];
    if (level == NULL) return LEAT_ENOMEM;

    for (uint32_t s = 0; s < symbols; s++) leaf[s] = (package){weight[s], LEAF, (uint16_t)s};
    qsort(leaf, symbols, sizeof leaf[0], by_weight);
    memcpy(level[0], leaf, symbols * sizeof leaf[0]);
    n[0] = symbols;
    for (int l = 1; l < LEAT__TILE_CODE_BITS; l++) {
        uint32_t a = 0, b = 0, pairs = n[l - 1] / 2;
        for (n[l] = 0; a < symbols || b < pairs; n[l]++) {
            const package *pair = &level[l - 1][2 * b];
            bool take_leaf = b == pairs || (a < symbols && leaf[a].weight <= pair[0].weight + pair[1].weight);
            if (take_leaf) {
                level[l][n[l]] = leaf[a++];
            } else {
                level[l][n[l]] =
                    (package){pair[0].weight + pair[1].weight, (uint16_t)(2 * b), (uint16_t)(2 * b + 1)};
                b++;
            }
        }
    }
    memset(length, 0, 256);
    for (uint32_t i = 0; i < 2 * symbols - 2; i++)
        count_leaves((const package(*)[LIST_MAX])level, LEAT__TILE_CODE_BITS - 1, i, length);
    leat__free(level);
    return 0;
}

/* Computes code lengths. Symbols missing in the sample must have a code too. */
static int code_lengths_of(const uint64_t *count, uint32_t symbols, uint8_t *length)
{
    double weight[256], total = 0;
    for (uint32_t s = 0; s < symbols; s++) total += (double)count[s];
    for (uint32_t s = 0; s < symbols; s++) weight[s] = (double)count[s] + total * 2e-6 + 0.01;
    return code_lengths(weight, symbols, length);
}

/* ---- contexts ---- */

static double entropy_bits(const uint64_t *a, const uint64_t *b)
{
    double total = 0, sum = 0;
    for (int i = 0; i < 256; i++) {
        double n = (double)a[i] + (b != NULL ? (double)b[i] : 0);
        total += n;
        if (n > 0) sum += n * log2(n);
    }
    return total > 0 ? total * log2(total) - sum : 0;
}

typedef struct clusters {
    double bits[CLASSES];          /* of each cluster */
    double loss[CLASSES][CLASSES]; /* of joining two */
    uint8_t of[CLASSES];           /* class -> cluster; a cluster is named by its first class */
} clusters;

static void losses_of(clusters *k, const leat__tile_trainer *t, uint32_t a)
{
    for (uint32_t b = 0; b < CLASSES; b++) {
        if (b == a || k->of[b] != b) continue;
        double loss = entropy_bits(t->bytes[a], t->bytes[b]) - k->bits[a] - k->bits[b];
        k->loss[LEAT_MIN(a, b)][LEAT_MAX(a, b)] = loss;
    }
}

static void join_cheapest(clusters *k, leat__tile_trainer *t)
{
    uint32_t best_a = 0, best_b = 0;
    double best = INFINITY;
    for (uint32_t a = 0; a < CLASSES; a++)
        for (uint32_t b = a + 1; b < CLASSES; b++)
            if (k->of[a] == a && k->of[b] == b && k->loss[a][b] < best) {
                best = k->loss[a][b];
                best_a = a;
                best_b = b;
            }
    for (int i = 0; i < 256; i++) t->bytes[best_a][i] += t->bytes[best_b][i];
    for (uint32_t c = 0; c < CLASSES; c++)
        if (k->of[c] == best_b) k->of[c] = (uint8_t)best_a;
    k->bits[best_a] = entropy_bits(t->bytes[best_a], NULL);
    losses_of(k, t, best_a);
}

/* Joins classes bottom-up, always the two whose merge costs the fewest bits. Adds the counts of a cluster to
 * its first class. */
static void make_clusters(clusters *k, leat__tile_trainer *t)
{
    for (uint32_t c = 0; c < CLASSES; c++) {
        k->of[c] = (uint8_t)c;
        k->bits[c] = entropy_bits(t->bytes[c], NULL);
    }
    for (uint32_t a = 0; a < CLASSES; a++) losses_of(k, t, a);
    for (uint32_t live = CLASSES; live > LEAT__TILE_CONTEXTS; live--) join_cheapest(k, t);
}

static int make_lengths(leat__tile_trainer *t, leat__tile_lengths *lengths)
{
    clusters *k = LEAT_NEW(CODEC, clusters);
    uint8_t table_of[CLASSES];
    uint32_t tables = 0;
    int rc = 0;
    if (k == NULL) return LEAT_ENOMEM;

    make_clusters(k, t);
    for (uint32_t c = 0; c < CLASSES; c++) {
        if (k->of[c] != c) continue;
        table_of[c] = (uint8_t)tables;
        LEAT_GO(rc, out, code_lengths_of(t->bytes[c], 256, lengths->length[tables++]));
    }
    for (uint32_t kind = 0; kind < 2; kind++) {
        LEAT_GO(
            rc, out,
            code_lengths_of(t->pairs[kind], LEAT__TILE_PAIRS, lengths->length[LEAT__TILE_CONTEXTS + kind]));
        for (uint32_t groups = 1; groups <= 8; groups++)
            for (uint32_t g = 0; g < groups; g++)
                lengths->context[kind][groups][g] = table_of[k->of[class_of(kind, groups, g)]];
    }
out:
    leat__free(k);
    return rc;
}

/* Builds the dictionary; returns 0 when there are too few or too small headers for one. */
static size_t make_dictionary(leat__tile_trainer *t, uint8_t *dictionary)
{
    size_t count = t->lengths.len / sizeof(size_t);
    size_t room = LEAT_MIN((size_t)DICTIONARY, t->skeletons.len / 8);
    if (count < 8 || room < 1024) return 0;
    size_t n = ZDICT_trainFromBuffer(dictionary, room, t->skeletons.data,
                                     (const size_t *)(const void *)t->lengths.data, (unsigned)count);
    return ZDICT_isError(n) ? 0 : n;
}

int leat__tile_trainer_finish(leat__tile_trainer *t, leat__buf *blob, leat_error *err)
{
    leat__tile_lengths lengths = {0};
    uint8_t *dictionary = leat__alloc(LEAT__MEM_CODEC, DICTIONARY);
    int rc = dictionary == NULL ? LEAT_ENOMEM : make_lengths(t, &lengths);
    if (rc == 0) rc = leat__tile_tables_write(&lengths, dictionary, make_dictionary(t, dictionary), blob);
    leat__free(dictionary);
    if (rc == LEAT_ENOMEM) return leat__fail_nomem(err, DICTIONARY, "tile tables");
    return rc == 0 ? 0 : leat__fail(err, rc, "tile tables do not fit their buffer");
}
