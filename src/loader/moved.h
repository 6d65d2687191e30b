/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the boxes of a batch, for a batch op: keeps the old values and appends the new ones. One thread.
 */
#ifndef LEAT_LOADER_MOVED_H
#define LEAT_LOADER_MOVED_H

#include "loader/batch.h"
#include "loader/follow.h"

/* The values of a ragged column. */
typedef struct leat__moved {
    leat_tensor *tensor;
    uint8_t *before;
    int64_t *offsets; /* offsets in `before` */
    int64_t at;       /* elements written */
    uint64_t size, ndim;
} leat__moved;

/* One list of boxes and the labels that follow it in the list of followers. */
typedef struct leat__moved_boxes {
    const leat__follower *boxes;
    leat__moved box, label[8];
    uint32_t labels;
} leat__moved_boxes;

/* Copies the current values; `list` begins with boxes and has `count` followers. Then write the rows from
 * first to last: begin, put any number of boxes, end. After the last row: finish. */
int leat__moved_open(leat__moved_boxes *b, leat__frame *f, const leat__follower *list, uint32_t count,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__moved_close(leat__moved_boxes *b);

int64_t leat__moved_count(const leat__moved_boxes *b, uint32_t row); /* boxes it had before */
const float *leat__moved_box(const leat__moved_boxes *b, uint32_t row, int64_t i);

void leat__moved_begin(leat__moved_boxes *b, uint32_t row);
/* Appends box `i` of row `from` with new coordinates, and its labels. */
void leat__moved_put(leat__moved_boxes *b, uint32_t from, int64_t i, const float box[4]);
void leat__moved_end(leat__moved_boxes *b, uint32_t row);
void leat__moved_finish(leat__moved_boxes *b, uint32_t rows);

#endif
