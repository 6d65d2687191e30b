/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads fastText's binary format, versions 11 and 12, little-endian without padding:
 *
 *   header      magic, version
 *   settings    12 x i32 (dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn,
 *               maxn, lrUpdateRate), one f64
 *   dictionary  i32 entries, words, labels; i64 tokens, pruned n-grams (-1 = not pruned);
 *               entries: text, NUL, i64 count, i8 type; pruned n-grams: i32 hash, i32 row
 *   input       u8 quantised, matrix
 *   output      u8 quantised, matrix
 *
 * A matrix is i64 rows, i64 columns, f32 values; or, quantised, u8 with norms, i64 rows, i64
 * columns, i32 bytes of codes, codes, quantiser and, with norms, their codes and quantiser. A
 * quantiser is i32 columns, parts, columns of a part, columns of the last part; centroids.
 *
 * The file stays in memory and matrices are views of it. Every count is compared with the bytes
 * that are left before anything is allocated for it.
 */
#include "text/lid_model.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define MAGIC 793712314
#define PREFIX "__label__"
#define ENTRY_BYTES 10 /* minimum size of an entry: NUL, count, type */
#define COUNT_MAX INT64_C(1000000000000)

enum { MODEL_SUPERVISED = 3 };

typedef struct reader {
    char *data;
    size_t len, at;
    const char *name;
    leat_error *err;
} reader;

static int damaged(const reader *r, const char *what)
{
    leat__fail(r->err, LEAT_EDATA, "%s: damaged fastText model at offset %zu: %s", r->name, r->at, what);
    leat__error_at(r->err, NULL, -1, (int64_t)r->at);
    return LEAT_EDATA;
}

/* Returns the next n bytes, or NULL and an error. */
static const char *take(reader *r, uint64_t n)
{
    if (n > r->len - r->at) {
        damaged(r, "the file is truncated");
        return NULL;
    }
    const char *p = r->data + r->at;
    r->at += (size_t)n;
    return p;
}

static int take_i32(reader *r, int32_t *v)
{
    const char *p = take(r, sizeof *v);
    if (!p) return LEAT_EDATA;
    memcpy(v, p, sizeof *v);
    return 0;
}

static int take_i64(reader *r, int64_t *v)
{
    const char *p = take(r, sizeof *v);
    if (!p) return LEAT_EDATA;
    memcpy(v, p, sizeof *v);
    return 0;
}

static int take_byte(reader *r, uint8_t *v)
{
    const char *p = take(r, 1);
    if (!p) return LEAT_EDATA;
    *v = (uint8_t)*p;
    return 0;
}

/* Reads the next n floats, which must be finite: a NaN would make every score of a text NaN. They are moved
 * to an aligned address; this overwrites up to 3 bytes before them, which were already read. */
static int take_floats(reader *r, uint64_t n, const float **v)
{
    if (n > (r->len - r->at) / sizeof(float)) return damaged(r, "the file is truncated");
    size_t off = (uintptr_t)(r->data + r->at) % sizeof(float);
    if (off > 0) memmove(r->data + r->at - off, r->data + r->at, n * sizeof(float));
    *v = (const float *)(const void *)(r->data + r->at - off);
    for (uint64_t i = 0; i < n; i++, r->at += sizeof(float))
        if (!isfinite((*v)[i])) return damaged(r, "a weight is not a finite number");
    return 0;
}

static int read_settings(reader *r, leat__lid *m, uint32_t *dim)
{
    enum { DIM, WORD_NGRAMS = 5, LOSS, MODEL, BUCKET, MINN, MAXN, SETTINGS = 12 };
    int32_t magic = 0, version, v[SETTINGS];
    if (r->len < 8 || take_i32(r, &magic) != 0 || magic != MAGIC)
        return leat__fail(r->err, LEAT_EDATA, "%s: not a fastText model", r->name);
    LEAT_TRY(take_i32(r, &version));
    if (version != 11 && version != 12)
        return leat__fail(r->err, LEAT_EDATA, "%s: fastText models of version %d cannot be read", r->name,
                          version);
    for (int i = 0; i < SETTINGS; i++) LEAT_TRY(take_i32(r, &v[i]));
    if (!take(r, sizeof(double))) return LEAT_EDATA;
    if (v[MODEL] != MODEL_SUPERVISED)
        return leat__fail(r->err, LEAT_EDATA, "%s: a model of word vectors has no labels", r->name);
    if (version == 11) v[MAXN] = 0; /* such models have no character n-grams */
    if (v[DIM] <= 0) return damaged(r, "the dimension is not positive");
    if (v[LOSS] < LEAT__LID_HS || v[LOSS] > LEAT__LID_OVA) return damaged(r, "an unknown loss");
    if (v[BUCKET] < 0 || v[MINN] < 0 || v[MAXN] < 0) return damaged(r, "a setting is negative");
    if (v[WORD_NGRAMS] > LEAT__LID_NGRAMS_MAX || v[MAXN] > LEAT__LID_NGRAMS_MAX)
        return damaged(r, "n-grams are too long");
    *dim = (uint32_t)v[DIM];
    m->word_ngrams = (uint32_t)LEAT_MAX(v[WORD_NGRAMS], 1);
    m->loss = (leat__lid_loss)v[LOSS];
    m->bucket = (uint32_t)v[BUCKET];
    m->minn = (uint32_t)v[MINN];
    m->maxn = (uint32_t)v[MAXN];
    if ((m->maxn > 0 || m->word_ngrams > 1) && m->bucket == 0) return damaged(r, "n-grams without buckets");
    return 0;
}

/* ---- the dictionary ---- */

static void *zeros(const reader *r, leat__lid *m, uint64_t n, size_t size)
{
    void *p = leat__zalloc_array(LEAT__MEM_CURATE, n, size);
    if (!p) leat__fail_nomem(r->err, n * size, "a language model");
    m->bytes += n * size;
    return p;
}

/* Adds entry i to the table; the last of equal entries counts. */
static void enter(leat__lid *m, uint32_t i)
{
    uint32_t h = LEAT__LID_HASH;
    for (const char *c = m->word[i]; *c; c++) h = leat__lid_hash(h, (uint8_t)*c);
    for (uint32_t k = h & m->slot_mask;; k = (k + 1) & m->slot_mask) {
        if (m->slot[k] != 0 && !leat__str_eq(m->word[m->slot[k] - 1], m->word[i])) continue;
        m->slot[k] = i + 1;
        return;
    }
}

static int read_entries(reader *r, leat__lid *m, int64_t *counts)
{
    for (uint32_t i = 0; i < m->words + m->labels; i++) {
        uint8_t type;
        int64_t count;
        m->word[i] = r->data + r->at;
        const char *end = memchr(r->data + r->at, 0, r->len - r->at);
        if (!end) return damaged(r, "the file is truncated");
        r->at = (size_t)(end - r->data) + 1;
        LEAT_TRY(take_i64(r, &count));
        LEAT_TRY(take_byte(r, &type));
        if (type != (i >= m->words)) return damaged(r, "words and labels are not in order");
        if (i >= m->words && (count < 0 || count > COUNT_MAX)) return damaged(r, "the count of a label");
        if (i >= m->words) counts[i - m->words] = count;
        enter(m, i);
    }
    return 0;
}

static int read_pruned(reader *r, leat__lid *m, uint64_t n)
{
    m->pruned = true;
    if (n > (r->len - r->at) / 8) return damaged(r, "the file is truncated");
    if (n == 0) return 0;
    uint32_t slots = 2;
    while (slots < 2 * n) slots *= 2;
    m->kept = zeros(r, m, slots, sizeof *m->kept);
    if (!m->kept) return LEAT_ENOMEM;
    m->kept_mask = slots - 1;
    for (uint32_t k = 0; k < slots; k++) m->kept[k].row = -1;
    for (uint64_t i = 0; i < n; i++) {
        int32_t hash, row;
        LEAT_TRY(take_i32(r, &hash));
        LEAT_TRY(take_i32(r, &row));
        if (row < 0 || (uint64_t)row >= n) return damaged(r, "the row of an n-gram");
        uint32_t k = (uint32_t)leat__mix64((uint32_t)hash) & m->kept_mask;
        while (m->kept[k].row >= 0 && m->kept[k].hash != hash) k = (k + 1) & m->kept_mask;
        m->kept[k] = (leat__lid_kept){hash, row};
    }
    return 0;
}

/* Builds the tree of a hierarchical softmax. Labels are sorted, the most frequent first. */
static int build_tree(const reader *r, leat__lid *m, const int64_t *label_counts)
{
    int64_t n = m->labels, leaf = n - 1, node = n, total = 2 * n - 1;
    int64_t *count = leat__alloc_array(LEAT__MEM_CURATE, (size_t)total, sizeof *count);
    m->tree = zeros(r, m, (uint64_t)total, sizeof *m->tree);
    int rc = count && m->tree ? 0 : leat__fail_nomem(r->err, (uint64_t)total * 8, "a language model");
    for (int64_t i = 0; i < total && rc == 0; i++) {
        count[i] = i < n ? label_counts[i] : 0;
        m->tree[i] = (leat__lid_node){-1, -1};
    }
    for (int64_t i = n; i < total && rc == 0; i++) {
        int64_t least[2];
        for (int k = 0; k < 2; k++) {
            bool inner = node < i; /* an inner node is available */
            if (leaf >= 0 && (!inner || count[leaf] < count[node])) least[k] = leaf--;
            else least[k] = node++;
        }
        m->tree[i] = (leat__lid_node){(int32_t)least[0], (int32_t)least[1]};
        count[i] = count[least[0]] + count[least[1]];
    }
    leat__free(count);
    return rc;
}

static int read_dictionary(reader *r, leat__lid *m)
{
    int32_t size, words, labels;
    int64_t tokens, pruned;
    LEAT_TRY(take_i32(r, &size));
    LEAT_TRY(take_i32(r, &words));
    LEAT_TRY(take_i32(r, &labels));
    LEAT_TRY(take_i64(r, &tokens));
    LEAT_TRY(take_i64(r, &pruned));
    if (words < 0 || labels <= 0 || (int64_t)words + labels != size)
        return damaged(r, "the numbers of words and labels");
    if ((uint64_t)size > (r->len - r->at) / ENTRY_BYTES) return damaged(r, "the file is truncated");
    m->words = (uint32_t)words;
    m->labels = (uint32_t)labels;
    uint32_t slots = 2;
    while (slots < (uint32_t)size + (uint32_t)size / 2) slots *= 2;
    m->slot_mask = slots - 1;
    m->word = zeros(r, m, (uint64_t)size, sizeof *m->word);
    m->slot = m->word ? zeros(r, m, slots, sizeof *m->slot) : NULL;
    int64_t *counts = m->slot ? leat__alloc_array(LEAT__MEM_CURATE, m->labels, sizeof *counts) : NULL;
    int rc = counts ? read_entries(r, m, counts) : leat__fail_nomem(r->err, slots, "a language model");
    if (rc == 0 && pruned >= 0) rc = read_pruned(r, m, (uint64_t)pruned);
    if (rc == 0 && m->loss == LEAT__LID_HS) rc = build_tree(r, m, counts);
    leat__free(counts);
    return rc;
}

/* ---- matrices ---- */

static int read_quantiser(reader *r, leat__lid_matrix *x, uint32_t cols, const float **centroids)
{
    int32_t dim, parts, part, last;
    LEAT_TRY(take_i32(r, &dim));
    LEAT_TRY(take_i32(r, &parts));
    LEAT_TRY(take_i32(r, &part));
    LEAT_TRY(take_i32(r, &last));
    if (dim < 0 || (uint32_t)dim != cols || part <= 0 || last <= 0 || last > part || parts <= 0 ||
        (int64_t)(parts - 1) * part + last != dim)
        return damaged(r, "the parts of a quantiser");
    x->parts = (uint32_t)parts;
    x->part = (uint32_t)part;
    x->last = (uint32_t)last;
    return take_floats(r, (uint64_t)cols * LEAT__LID_CENTROIDS, centroids);
}

static int read_size(reader *r, leat__lid_matrix *x, uint32_t dim)
{
    int64_t rows, cols;
    LEAT_TRY(take_i64(r, &rows));
    LEAT_TRY(take_i64(r, &cols));
    if (rows < 0 || cols != dim) return damaged(r, "the size of a matrix");
    x->rows = (uint64_t)rows;
    x->cols = dim;
    return 0;
}

static int read_quantised(reader *r, leat__lid_matrix *x, uint32_t dim)
{
    uint8_t with_norms;
    int32_t bytes;
    leat__lid_matrix norm = {0};
    LEAT_TRY(take_byte(r, &with_norms));
    LEAT_TRY(read_size(r, x, dim));
    LEAT_TRY(take_i32(r, &bytes));
    if (bytes < 0) return damaged(r, "the number of codes");
    x->codes = (const uint8_t *)take(r, (uint64_t)bytes);
    if (!x->codes) return LEAT_EDATA;
    LEAT_TRY(read_quantiser(r, x, dim, &x->centroids));
    if (x->rows > (uint64_t)bytes || x->rows * x->parts != (uint64_t)bytes)
        return damaged(r, "the number of codes");
    if (!with_norms) return 0;
    x->norm_codes = (const uint8_t *)take(r, x->rows);
    if (!x->norm_codes) return LEAT_EDATA;
    return read_quantiser(r, &norm, 1, &x->norms);
}

static int read_matrix(reader *r, leat__lid_matrix *x, bool quantised, uint32_t dim)
{
    if (quantised) return read_quantised(r, x, dim);
    LEAT_TRY(read_size(r, x, dim));
    if (x->rows > (r->len - r->at) / sizeof(float) / dim) return damaged(r, "the file is truncated");
    return take_floats(r, x->rows * dim, &x->dense);
}

static int read_model(reader *r, leat__lid *m)
{
    uint32_t dim = 0;
    uint8_t input = 0, output = 0;
    LEAT_TRY(read_settings(r, m, &dim));
    LEAT_TRY(read_dictionary(r, m));
    LEAT_TRY(take_byte(r, &input));
    LEAT_TRY(read_matrix(r, &m->input, input != 0, dim));
    LEAT_TRY(take_byte(r, &output));
    LEAT_TRY(read_matrix(r, &m->output, input != 0 && output != 0, dim));
    if (m->pruned && input == 0) return damaged(r, "pruned n-grams without quantisation");
    bool ngrams = m->maxn > 0 || m->word_ngrams > 1;
    uint64_t rows = m->words;
    if (m->kept) {
        for (uint32_t k = 0; k <= m->kept_mask; k++)
            rows = LEAT_MAX(rows, m->words + (uint64_t)(m->kept[k].row + 1));
    } else if (ngrams && !m->pruned) {
        rows += m->bucket;
    }
    if (m->input.rows < rows) return damaged(r, "the input matrix has too few rows");
    if (m->output.rows != m->labels) return damaged(r, "the output matrix does not have a row per label");
    return 0;
}

int leat__lid_open(leat__lid **lid, char *data, size_t len, const char *name, leat_error *err)
{
    reader r = {.data = data, .len = len, .name = name, .err = err};
    leat__lid *m = LEAT_NEW(CURATE, leat__lid);
    *lid = NULL;
    if (!m) {
        leat__free(data);
        return leat__fail_nomem(err, sizeof *m, "a language model");
    }
    m->data = data;
    m->bytes = len + sizeof *m;
    int rc = read_model(&r, m);
    if (rc == 0) *lid = m;
    else leat__lid_close(&m);
    return rc;
}

void leat__lid_close(leat__lid **lid)
{
    leat__lid *m = *lid;
    if (!m) return;
    leat__free(m->data);
    leat__free(m->word);
    leat__free(m->slot);
    leat__free(m->kept);
    leat__free(m->tree);
    leat__free(m);
    *lid = NULL;
}

uint64_t leat__lid_bytes(const leat__lid *lid)
{
    return lid->bytes;
}

uint32_t leat__lid_labels(const leat__lid *lid)
{
    return lid->labels;
}

const char *leat__lid_label(const leat__lid *lid, uint32_t index)
{
    const char *label = lid->word[lid->words + index];
    return leat__str_starts(label, PREFIX) ? label + strlen(PREFIX) : label;
}

int leat__lid_find(const leat__lid *lid, const char *label)
{
    for (uint32_t i = 0; i < lid->labels; i++)
        if (leat__str_eq(leat__lid_label(lid, i), label)) return (int)i;
    return -1;
}
