/* SPDX-License-Identifier: Apache-2.0
 *
 * tf.train.Example: see tf_example.h. The messages:
 *
 *   Example   { 1: Features }                 Feature   { 1: BytesList | 2: FloatList | 3: Int64List }
 *   Features  { 1: repeated Entry }           …List     { 1: repeated values, numbers packed or not }
 *   Entry     { 1: name, 2: Feature }
 */
#include "ingest/tf_example.h"

#include <string.h>

/* ---- checksum ---------------------------------------------------------------------------- */

static uint32_t crc32c(const uint8_t *p, size_t len)
{
    uint32_t crc = ~0u;
#ifdef __SSE4_2__
    uint64_t wide = crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
#endif
    for (; len > 0; p++, len--) {
        crc ^= *p;
        for (int k = 0; k < 8; k++) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

uint32_t leat__tf_checksum(const void *data, size_t len)
{
    uint32_t crc = crc32c(data, len);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* ---- protobuf ---------------------------------------------------------------------------- */

typedef struct view {
    const uint8_t *p, *end;
} view;

static bool varint(view *v, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && v->p < v->end; shift += 7) {
        uint8_t byte = *v->p++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Reads the next field: its number and its bytes (the content of a length-delimited field, type 2,
 * else the value). Returns false at the end, or when it is malformed (*bad). */
static bool field(view *v, uint32_t *number, uint32_t *type, view *value, bool *bad)
{
    uint64_t tag, len = 0;
    if (v->p == v->end) return false;
    *bad = true;
    if (!varint(v, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    *number = (uint32_t)(tag >> 3);
    *type = (uint32_t)(tag & 7);
    value->p = v->p;
    if (*type == 0) {
        if (!varint(v, &len)) return false;
    } else {
        len = *type == 1 ? 8 : *type == 5 ? 4 : 0;
        if (*type == 2 && !varint(v, &len)) return false;
        if ((*type != 1 && *type != 2 && *type != 5) || len > (uint64_t)(v->end - v->p)) return false;
        value->p = v->p;
        v->p += len;
    }
    value->end = v->p;
    *bad = false;
    return true;
}

/* Iterates over the values of a list of numbers; a packed list holds several per field. */
typedef struct numbers {
    view list, packed;
    bool bad;
} numbers;

static bool next_number(numbers *n, uint32_t size, view *value)
{
    uint32_t number, type;
    for (;;) {
        if (n->packed.p < n->packed.end) {
            uint64_t ignored;
            value->p = n->packed.p;
            n->bad = size == 0 ? !varint(&n->packed, &ignored) : (size_t)(n->packed.end - n->packed.p) < size;
            if (n->bad) return false;
            if (size != 0) n->packed.p += size;
            value->end = n->packed.p;
            return true;
        }
        if (!field(&n->list, &number, &type, value, &n->bad)) return false;
        if (number != 1) continue;
        if (type == 2) n->packed = *value;
        else if (type == (size == 0 ? 0u : 5u)) return true;
        else return (n->bad = true, false);
    }
}

/* Counts the values and checks that all of them can be read. */
static bool count_values(leat__tf_feature *f)
{
    view list = {f->list, f->list + f->list_len}, value;
    bool bad = false;
    uint32_t number, type;
    f->count = 0;
    if (f->kind == LEAT__TF_BYTES) {
        while (field(&list, &number, &type, &value, &bad)) f->count += number == 1 && type == 2;
        return !bad;
    }
    numbers n = {.list = list};
    while (next_number(&n, f->kind == LEAT__TF_FLOATS ? 4 : 0, &value)) f->count++;
    return !n.bad;
}

static int malformed(leat_error *err)
{
    return leat__fail(err, LEAT_EDATA, "not a tf.train.Example");
}

static int one_feature(view entry, leat__tf_fn each, void *cookie, leat_error *err)
{
    leat__tf_feature f = {.name = ""};
    view value, feature = {0}, list;
    uint32_t number, type;
    bool bad = false;
    while (field(&entry, &number, &type, &value, &bad)) {
        if (number == 1 && type == 2) {
            f.name = (const char *)value.p;
            f.name_len = (size_t)(value.end - value.p);
        }
        if (number == 2 && type == 2) feature = value;
    }
    while (!bad && field(&feature, &number, &type, &list, &bad)) {
        if (number < 1 || number > 3 || type != 2) continue;
        f.kind = (leat__tf_kind)number;
        f.list = list.p;
        f.list_len = (size_t)(list.end - list.p);
    }
    if (bad || (f.kind != LEAT__TF_NONE && !count_values(&f))) return malformed(err);
    return each(cookie, &f, err);
}

int leat__tf_example(const void *data, size_t len, leat__tf_fn each, void *cookie, leat_error *err)
{
    view example = {data, (const uint8_t *)data + len}, features, entry;
    uint32_t number, type;
    bool bad = false;
    while (field(&example, &number, &type, &features, &bad)) {
        if (number != 1 || type != 2) continue;
        while (field(&features, &number, &type, &entry, &bad))
            if (number == 1 && type == 2) LEAT_TRY(one_feature(entry, each, cookie, err));
        if (bad) break;
    }
    return bad ? malformed(err) : 0;
}

/* ---- values ------------------------------------------------------------------------------ */

const uint8_t *leat__tf_bytes(const leat__tf_feature *f, size_t i, size_t *len)
{
    view list = {f->list, f->list + f->list_len}, value;
    uint32_t number, type;
    bool bad = false;
    while (field(&list, &number, &type, &value, &bad)) {
        if (number != 1 || type != 2 || i-- > 0) continue;
        *len = (size_t)(value.end - value.p);
        return value.p;
    }
    return NULL;
}

void leat__tf_floats(const leat__tf_feature *f, float *to)
{
    numbers n = {.list = {f->list, f->list + f->list_len}};
    view value;
    while (next_number(&n, 4, &value)) memcpy(to++, value.p, 4);
}

void leat__tf_ints(const leat__tf_feature *f, int64_t *to)
{
    numbers n = {.list = {f->list, f->list + f->list_len}};
    view value;
    while (next_number(&n, 0, &value)) {
        uint64_t bits = 0;
        (void)varint(&value, &bits);
        *to++ = (int64_t)bits;
    }
}
