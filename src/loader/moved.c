/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes that are replaced. See moved.h.
 */
#include "loader/moved.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"

static int keep_before(leat__frame *f, uint32_t column, leat__moved *m, leat_error *err)
{
    leat_tensor *t = &f->tensors[column];
    const uint32_t n = f->batch.samples;
    const uint64_t size = leat_dtype_size(t->dtype), bytes = (uint64_t)t->offsets[n] * size;

    *m = (leat__moved){.tensor = t, .size = size, .ndim = t->ragged_ndim};
    m->before = leat__alloc(LEAT__MEM_SCRATCH, bytes + 1);
    m->offsets = LEAT_NEW_ARRAY(SCRATCH, int64_t, (uint64_t)n + 1);
    if (m->before == NULL || m->offsets == NULL) return leat__fail_nomem(err, bytes, "boxes of a batch");
    memcpy(m->before, t->data, bytes);
    memcpy(m->offsets, t->offsets, ((uint64_t)n + 1) * sizeof *m->offsets);
    return 0;
}

int leat__moved_open(leat__moved_boxes *b, leat__frame *f, const leat__follower *list, uint32_t count,
                     leat_error *err)
{
    *b = (leat__moved_boxes){.boxes = list};
    LEAT_TRY(keep_before(f, list->column, &b->box, err));
    for (uint32_t i = 1; i < count && list[i].role == LEAT__ROLE_LABELS; i++) {
        if (b->labels == LEAT_COUNT(b->label))
            return leat__fail(err, LEAT_ELIMIT, "more than %zu fields of labels are mixed",
                              LEAT_COUNT(b->label));
        LEAT_TRY(keep_before(f, list[i].column, &b->label[b->labels++], err));
    }
    return 0;
}

static void drop(leat__moved *m)
{
    leat__free(m->before);
    leat__free(m->offsets);
}

void leat__moved_close(leat__moved_boxes *b)
{
    drop(&b->box);
    for (uint32_t l = 0; l < b->labels; l++) drop(&b->label[l]);
    *b = (leat__moved_boxes){0};
}

int64_t leat__moved_count(const leat__moved_boxes *b, uint32_t row)
{
    return (b->box.offsets[row + 1] - b->box.offsets[row]) / 4;
}

const float *leat__moved_box(const leat__moved_boxes *b, uint32_t row, int64_t i)
{
    return (const float *)b->box.before + b->box.offsets[row] + 4 * i;
}

/* Appends element group `i` (of `width` elements) of row `from`. */
static void append(leat__moved *m, uint32_t from, int64_t i, int64_t width, const void *instead)
{
    const uint8_t *src = m->before + (uint64_t)(m->offsets[from] + i * width) * m->size;
    memcpy((uint8_t *)m->tensor->data + (uint64_t)m->at * m->size, instead != NULL ? instead : src,
           (uint64_t)width * m->size);
    m->at += width;
}

static void set_offset(leat__moved *m, uint32_t row)
{
    ((int64_t *)m->tensor->offsets)[row] = m->at;
}

void leat__moved_begin(leat__moved_boxes *b, uint32_t row)
{
    set_offset(&b->box, row);
    for (uint32_t l = 0; l < b->labels; l++) set_offset(&b->label[l], row);
}

void leat__moved_put(leat__moved_boxes *b, uint32_t from, int64_t i, const float box[4])
{
    const int64_t count = leat__moved_count(b, from);
    append(&b->box, from, i, 4, box);
    for (uint32_t l = 0; l < b->labels; l++) {
        const leat__moved *m = &b->label[l];
        append(&b->label[l], from, i, (m->offsets[from + 1] - m->offsets[from]) / count, NULL);
    }
}

void leat__moved_end(leat__moved_boxes *b, uint32_t row)
{
    const int64_t kept = (b->box.at - b->box.tensor->offsets[row]) / 4;
    ((int64_t *)b->box.tensor->ragged_shapes)[row * b->box.ndim] = kept;
    for (uint32_t l = 0; l < b->labels; l++)
        ((int64_t *)b->label[l].tensor->ragged_shapes)[row * b->label[l].ndim] = kept;
}

void leat__moved_finish(leat__moved_boxes *b, uint32_t rows)
{
    leat__moved_begin(b, rows);
    b->box.tensor->shape[0] = b->box.at;
    for (uint32_t l = 0; l < b->labels; l++) b->label[l].tensor->shape[0] = b->label[l].at;
}
