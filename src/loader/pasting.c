/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste: see pasting.h. First, a map with a byte per pixel is made that says which pixels each sample
 * gets. Then images, masks and boxes are changed by it.
 */
#include "loader/pasting.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "loader/moved.h"
#include "op/paste.h"

const leat__follower *leat__paste_follower(const leat__follow *follow, leat__role role)
{
    for (uint32_t i = 0; i < follow->count; i++)
        if (follow->list[i].role == role) return &follow->list[i];
    return NULL;
}

typedef struct pasting {
    const leat__op_spec *op;
    leat__frame *frame;
    uint32_t rows;
    leat__size size;
    leat__box_rule rule;
    leat__moved_boxes boxes;
    uint8_t *maps; /* maps of all rows: 1 = the pixel comes from the row before */
    bool *taken;   /* per old box: it is pasted onto the next row */
    size_t pixels; /* of one image */
} pasting;

static uint32_t row_before(const pasting *p, uint32_t row)
{
    return row > 0 ? row - 1 : p->rows - 1;
}

static bool *taken_of(const pasting *p, uint32_t row)
{
    return p->taken + p->boxes.box.offsets[row] / 4;
}

/* Draws the objects for all rows, in order, and marks their pixels. */
static void mark_all(pasting *p, const uint8_t *masks, leat__rng *rng)
{
    for (uint32_t row = 0; row < p->rows; row++) {
        const uint32_t from = row_before(p, row);
        if (!leat__paste_happens(p->op, rng) || from == row) continue;
        for (int64_t i = 0; i < leat__moved_count(&p->boxes, from); i++) {
            const float *const box = leat__moved_box(&p->boxes, from, i);
            const leat__paste_rect r = leat__paste_pixels(&p->rule, p->size.width, p->size.height, box);
            taken_of(p, from)[i] = leat__paste_takes(p->op, rng);
            if (taken_of(p, from)[i])
                leat__paste_mark(p->maps + row * p->pixels, p->size.width, &r,
                                 masks != NULL ? masks + from * p->pixels : NULL);
        }
    }
}

/* Pastes into rows of pixels or masks, from the last to the first, so that the row before is unchanged. The
 * last row is saved for the first. */
static int paste_rows(const pasting *p, uint32_t planes, size_t pixel, uint8_t *rows, leat_error *err)
{
    const size_t plane = p->pixels * pixel, bytes = planes * plane;
    uint8_t *last = leat__alloc(LEAT__MEM_SCRATCH, bytes + 1);
    if (last == NULL) return leat__fail_nomem(err, bytes, "an image");
    memcpy(last, rows + (p->rows - 1) * bytes, bytes);
    for (uint32_t row = p->rows; row-- > 0;) {
        const uint8_t *from = row > 0 ? rows + (row - 1) * bytes : last;
        for (uint32_t c = 0; c < planes; c++)
            leat__paste_copy(p->maps + row * p->pixels, p->pixels, pixel, from + c * plane,
                             rows + row * bytes + c * plane);
    }
    leat__free(last);
    return 0;
}

/* True when enough of an own box is still visible: some of it, and at least the share in its rule. */
static bool still_seen(const pasting *p, uint32_t row, const float box[4])
{
    const leat__paste_rect r = leat__paste_pixels(&p->rule, p->size.width, p->size.height, box);
    const uint64_t all = (uint64_t)r.width * r.height;
    const uint64_t hidden = leat__paste_marked(p->maps + row * p->pixels, p->size.width, &r);
    const double least = (double)p->rule.min_visible * (double)all;
    return hidden == 0 || (hidden < all && (double)(all - hidden) >= least);
}

static void paste_boxes(pasting *p)
{
    leat__moved_boxes *const b = &p->boxes;
    for (uint32_t row = 0; row < p->rows; row++) {
        const uint32_t from = row_before(p, row);
        leat__moved_begin(b, row);
        for (int64_t i = 0; i < leat__moved_count(b, row); i++)
            if (still_seen(p, row, leat__moved_box(b, row, i)))
                leat__moved_put(b, row, i, leat__moved_box(b, row, i));
        for (int64_t i = 0; i < leat__moved_count(b, from) && from != row; i++)
            if (taken_of(p, from)[i]) leat__moved_put(b, from, i, leat__moved_box(b, from, i));
        leat__moved_end(b, row);
    }
    leat__moved_finish(b, p->rows);
}

static int paste_all(const leat__mixing *m, pasting *p, leat_error *err)
{
    for (uint32_t i = 0; i < m->image_count; i++) {
        const leat__output_spec *o = leat__pipeline_output(m->images[i].pipeline);
        const bool woven = o->layout == LEAT__LAYOUT_NHWC;
        const size_t pixel = leat_dtype_size(o->dtype) * (woven ? o->channels : 1);
        LEAT_TRY(
            paste_rows(p, woven ? 1 : o->channels, pixel, p->frame->tensors[m->images[i].column].data, err));
    }
    for (uint32_t i = 0; i < m->follow->count; i++)
        if (m->follow->list[i].role == LEAT__ROLE_MASK)
            LEAT_TRY(paste_rows(p, 1, 1, p->frame->tensors[m->follow->list[i].column].data, err));
    paste_boxes(p);
    return 0;
}

int leat__paste_batch(const leat__mixing *m, const leat__op_spec *op, leat__frame *f, uint64_t position,
                      uint32_t index, leat_error *err)
{
    const leat__output_spec *first = leat__pipeline_output(m->images[0].pipeline);
    const leat__follower *const boxes = leat__paste_follower(m->follow, LEAT__ROLE_BOXES);
    const leat__follower *const mask = leat__paste_follower(m->follow, LEAT__ROLE_MASK);
    pasting p = {.op = op, .frame = f, .rows = f->batch.samples, .size = {first->width, first->height}};
    leat__rng rng;
    int rc = 0;

    if (p.rows == 0) return 0;
    p.rule = leat__follow_rule(boxes);
    p.pixels = (size_t)first->width * first->height;
    const uint32_t left = m->follow->count - (uint32_t)(boxes - m->follow->list);
    LEAT_GO(rc, out, leat__moved_open(&p.boxes, f, boxes, left, err));
    p.maps = leat__zalloc(LEAT__MEM_SCRATCH, p.rows * p.pixels);
    p.taken = LEAT_NEW_ARRAY(SCRATCH, bool, (size_t)p.boxes.box.offsets[p.rows] / 4 + 1);
    if (p.maps == NULL || p.taken == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, p.rows * p.pixels, "the pixels that are pasted"));
    leat__mix_rng(&rng, m->seed, f->batch.epoch, position, index);
    mark_all(&p, mask != NULL ? f->tensors[mask->column].data : NULL, &rng);
    rc = paste_all(m, &p, err);
out:
    leat__moved_close(&p.boxes);
    leat__free(p.maps);
    leat__free(p.taken);
    return rc;
}
