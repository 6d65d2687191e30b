/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference: the mean of the rows of words and n-grams, then the layer of the loss. Sums are in float and
 * in fastText's order, so that near ties give the same labels.
 */
#include "text/lid.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "text/lid_model.h"

#define END_OF_LINE "</s>"
#define PREFIX "__label__"

/* A node of the tree to visit, and the logarithm of its probability. */
typedef struct leat__lid_step {
    int32_t node;
    float score;
} leat__lid_step;

typedef struct sum {
    const leat__lid *m;
    float *hidden;
    uint64_t rows;
} sum;

int leat__lid_work_init(leat__lid_work *w, const leat__lid *m, leat_error *err)
{
    w->hidden = leat__alloc_array(LEAT__MEM_CURATE, m->input.cols, sizeof(float));
    w->output = leat__alloc_array(LEAT__MEM_CURATE, m->labels, sizeof(float));
    w->stack = leat__alloc_array(LEAT__MEM_CURATE, (size_t)m->labels + 2, sizeof *w->stack);
    if (w->hidden && w->output && w->stack) return 0;
    leat__lid_work_reset(w);
    return leat__fail_nomem(err, m->labels * sizeof *w->stack, "a language model");
}

void leat__lid_work_reset(leat__lid_work *w)
{
    leat__free(w->hidden);
    leat__free(w->output);
    leat__free(w->stack);
    memset(w, 0, sizeof *w);
}

uint64_t leat__lid_work_bytes(const leat__lid *m)
{
    return m->input.cols * sizeof(float) + m->labels * (sizeof(float) + sizeof(leat__lid_step)) +
           2 * sizeof(leat__lid_step);
}

/* ---- rows ---- */

static inline float norm_of(const leat__lid_matrix *x, uint64_t row)
{
    return x->norm_codes ? x->norms[x->norm_codes[row]] : 1;
}

/* Returns the centroid of part k, and its number of columns. */
static inline const float *centroid(const leat__lid_matrix *x, uint64_t row, uint32_t k, uint32_t *n)
{
    uint8_t code = x->codes[row * x->parts + k];
    const float *part = x->centroids + (size_t)k * LEAT__LID_CENTROIDS * x->part;
    *n = k + 1 == x->parts ? x->last : x->part;
    return part + (size_t)code * *n;
}

static void add_row(sum *s, uint64_t row)
{
    const leat__lid_matrix *x = &s->m->input;
    s->rows++;
    if (x->dense) {
        const float *v = x->dense + row * x->cols;
        for (uint32_t i = 0; i < x->cols; i++) s->hidden[i] += v[i];
        return;
    }
    float norm = norm_of(x, row);
    for (uint32_t k = 0; k < x->parts; k++) {
        uint32_t n;
        const float *v = centroid(x, row, k, &n);
        float *h = s->hidden + (size_t)k * x->part;
        for (uint32_t i = 0; i < n; i++) h[i] += norm * v[i];
    }
}

static float dot_row(const leat__lid_matrix *x, const float *hidden, uint64_t row)
{
    float d = 0;
    if (x->dense) {
        const float *v = x->dense + row * x->cols;
        for (uint32_t i = 0; i < x->cols; i++) d += v[i] * hidden[i];
        return d;
    }
    for (uint32_t k = 0; k < x->parts; k++) {
        uint32_t n;
        const float *v = centroid(x, row, k, &n), *h = hidden + (size_t)k * x->part;
        for (uint32_t i = 0; i < n; i++) d += h[i] * v[i];
    }
    return d * norm_of(x, row);
}

/* Adds the row of an n-gram, unless it was pruned from the model. */
static void add_ngram(sum *s, uint32_t hash)
{
    const leat__lid *m = s->m;
    if (!m->pruned) {
        add_row(s, (uint64_t)m->words + hash);
        return;
    }
    if (!m->kept) return;
    uint32_t k = (uint32_t)leat__mix64(hash) & m->kept_mask;
    for (; m->kept[k].row >= 0; k = (k + 1) & m->kept_mask) {
        if (m->kept[k].hash != (int32_t)hash) continue;
        add_row(s, (uint64_t)m->words + (uint32_t)m->kept[k].row);
        return;
    }
}

/* ---- words ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

static bool is_continuation(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* A word of the text and its entry in the dictionary. */
typedef struct token {
    const uint8_t *text;
    size_t len;
    uint32_t hash;
    int64_t id;   /* -1 = not in the dictionary */
    bool label;   /* fastText ignores labels in a text */
    bool is_last; /* the end of the line */
} token;

static int64_t find_word(const leat__lid *m, const uint8_t *text, size_t len, uint32_t hash)
{
    for (uint32_t k = hash & m->slot_mask; m->slot[k] != 0; k = (k + 1) & m->slot_mask) {
        const char *word = m->word[m->slot[k] - 1];
        if (strncmp(word, (const char *)text, len) == 0 && word[len] == 0) return m->slot[k] - 1;
    }
    return -1;
}

/* Reads the next word at *at. After the last word comes the end of the line, then false. */
static bool next_token(const leat__lid *m, const uint8_t *text, size_t len, size_t *at, token *t)
{
    static const uint8_t end[] = END_OF_LINE;
    const size_t end_len = sizeof end - 1, prefix = sizeof PREFIX - 1;
    if (*at > len) return false;
    size_t i = *at;
    while (i < len && is_blank(text[i])) i++;
    t->text = i < len ? text + i : end;
    t->hash = LEAT__LID_HASH;
    size_t from = i, limit = len;
    if (i == len) {
        from = 0;
        i = 0;
        limit = end_len;
    }
    const uint8_t *base = t->text - from;
    for (; i < limit && !is_blank(base[i]); i++) t->hash = leat__lid_hash(t->hash, base[i]);
    t->len = i - from;
    t->is_last = t->len == end_len && memcmp(t->text, end, end_len) == 0;
    *at = t->is_last ? len + 1 : i;
    t->id = find_word(m, t->text, t->len, t->hash);
    t->label = t->id >= 0 ? t->id >= m->words : t->len >= prefix && memcmp(t->text, PREFIX, prefix) == 0;
    return true;
}

/* Returns byte i of the word, which is framed by < and >. */
static inline uint8_t framed(const token *t, size_t i)
{
    return i == 0 ? '<' : i <= t->len ? t->text[i - 1] : '>';
}

/* Adds the character n-grams of the word, with < and > around it as in fastText. */
static void add_characters(sum *s, const token *t)
{
    const leat__lid *m = s->m;
    size_t len = t->len + 2;
    for (size_t i = 0; i < len; i++) {
        uint32_t h = LEAT__LID_HASH;
        if (is_continuation(framed(t, i))) continue;
        size_t j = i;
        for (uint32_t n = 1; j < len && n <= m->maxn; n++) {
            h = leat__lid_hash(h, framed(t, j++));
            while (j < len && is_continuation(framed(t, j))) h = leat__lid_hash(h, framed(t, j++));
            if (n >= m->minn && !(n == 1 && (i == 0 || j == len))) add_ngram(s, h % m->bucket);
        }
    }
}

static void add_words(sum *s, const uint8_t *text, size_t len)
{
    token t;
    for (size_t at = 0; next_token(s->m, text, len, &at, &t);) {
        if (t.label) continue;
        if (t.id >= 0) add_row(s, (uint64_t)t.id);
        if (s->m->maxn > 0 && !t.is_last) add_characters(s, &t);
    }
}

/* Adds the n-grams that begin with the oldest of `count` hashes in the ring. */
static void add_from(sum *s, const int32_t *ring, uint32_t first, uint32_t count)
{
    uint64_t h = (uint64_t)ring[first % LEAT__LID_NGRAMS_MAX];
    for (uint32_t j = 1; j < count; j++) {
        h = h * 116049371u + (uint64_t)ring[(first + j) % LEAT__LID_NGRAMS_MAX];
        add_ngram(s, (uint32_t)(h % s->m->bucket));
    }
}

/* Adds the n-grams of words, in fastText's order: by first word. */
static void add_word_ngrams(sum *s, const uint8_t *text, size_t len)
{
    int32_t ring[LEAT__LID_NGRAMS_MAX];
    uint32_t n = s->m->word_ngrams, first = 0, count = 0;
    token t;
    if (n < 2) return;
    for (size_t at = 0; next_token(s->m, text, len, &at, &t);) {
        if (t.label) continue;
        ring[(first + count++) % LEAT__LID_NGRAMS_MAX] = (int32_t)t.hash;
        if (count < n) continue;
        add_from(s, ring, first, count);
        first = (first + 1) % LEAT__LID_NGRAMS_MAX;
        count--;
    }
    for (; count > 1; count--, first++) add_from(s, ring, first, count);
}

/* ---- losses ---- */

/* fastText's logarithm; its predictions are exp() of this. */
static float log_of(float x)
{
    return (float)log((double)x + 1e-5);
}

/* fastText's sigmoid, which is a table of 512 steps. */
static float sigmoid(float x)
{
    if (!(x >= -8)) return 0;
    if (x > 8) return 1;
    int i = (int)((x + 8) * 512 / 8 / 2);
    float at = (float)(i * 2 * 8) / 512 - 8;
    return (float)(1.0 / (1.0 + (double)expf(-at)));
}

static void softmax(float *v, uint32_t n)
{
    float max = v[0], z = 0;
    for (uint32_t i = 0; i < n; i++) max = LEAT_MAX(v[i], max);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (float)exp((double)(v[i] - max));
        z += v[i];
    }
    for (uint32_t i = 0; i < n; i++) v[i] /= z;
}

/* Returns the label with the largest value; among equal ones the last, like fastText's heap. */
static int best_of(const leat__lid *m, leat__lid_work *w, float *score)
{
    int best = -1;
    for (uint32_t i = 0; i < m->labels; i++) w->output[i] = dot_row(&m->output, w->hidden, i);
    if (m->loss == LEAT__LID_SOFTMAX) softmax(w->output, m->labels);
    for (uint32_t i = 0; i < m->labels; i++) {
        float value = log_of(m->loss == LEAT__LID_SOFTMAX ? w->output[i] : sigmoid(w->output[i]));
        if (isnan(value) || (best >= 0 && value < *score)) continue;
        best = (int)i;
        *score = value;
    }
    return best;
}

/* Searches the tree, left branches first; branches that score less than the best leaf so far are skipped. */
static int best_leaf(const leat__lid *m, leat__lid_work *w, float *score)
{
    const float least = log_of(0);
    uint32_t n = 1;
    int best = -1;
    w->stack[0] = (leat__lid_step){(int32_t)(2 * m->labels - 2), 0};
    while (n > 0) {
        leat__lid_step s = w->stack[--n];
        if (!(s.score >= least) || (best >= 0 && s.score < *score)) continue;
        if (m->tree[s.node].left < 0) {
            best = s.node;
            *score = s.score;
            continue;
        }
        float f = dot_row(&m->output, w->hidden, (uint64_t)s.node - m->labels);
        f = (float)(1. / (double)(1 + expf(-f)));
        w->stack[n++] = (leat__lid_step){m->tree[s.node].right, s.score + log_of(f)};
        w->stack[n++] = (leat__lid_step){m->tree[s.node].left, s.score + log_of((float)(1.0 - (double)f))};
    }
    return best;
}

int leat__lid_run(const leat__lid *m, leat__lid_work *w, const uint8_t *text, size_t len, double *probability)
{
    sum s = {.m = m, .hidden = w->hidden};
    float score = 0;
    *probability = 0;
    memset(w->hidden, 0, m->input.cols * sizeof *w->hidden);
    add_words(&s, text, len);
    add_word_ngrams(&s, text, len);
    if (s.rows == 0) return -1;
    float scale = (float)(1.0 / (double)s.rows);
    for (uint32_t i = 0; i < m->input.cols; i++) w->hidden[i] *= scale;
    int label = m->loss == LEAT__LID_HS ? best_leaf(m, w, &score) : best_of(m, w, &score);
    if (label >= 0) *probability = LEAT_MIN((double)expf(score), 1.0);
    return label;
}
