/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that follow the geometry of an image: masks, boxes and their labels, points. Opening
 * builds followers and their columns from the text of roles; filling transforms one sample's
 * values with the recipe drawn for its image. Constant after opening; scratch belongs to the
 * worker.
 */
#ifndef LEAT_LOADER_FOLLOW_H
#define LEAT_LOADER_FOLLOW_H

#include "loader/batch.h"
#include "op/pipeline.h"
#include "op/roles.h"
#include "op/targets.h"

typedef struct leat__follower {
    leat__role role;
    leat__role_spec spec;
    uint32_t field, column;
    uint32_t image;                 /* column of the image it follows */
    const leat__pipeline *pipeline; /* pipeline of that image, not owned */
    uint32_t image_field;
    uint32_t cell, image_cell; /* indices among the cells of a sample */
    uint32_t boxes; /* LABELS: number of their boxes, used while opening; in the list, boxes come before their
                       labels */
} leat__follower;

typedef struct leat__follow {
    leat__follower *list; /* NULL = none */
    uint32_t count;
    uint32_t guide; /* 1 + number of the boxes that crops depend on (RandomIoUCrop); 0 = none */
} leat__follow;

/* An image column that can be followed. */
typedef struct leat__followed {
    uint32_t column, field;
    const leat__pipeline *pipeline;
} leat__followed;

/* Parses the text; finds fields and images. LEAT_EINVAL: err names what does not fit. */
int leat__follow_open(leat__follow *f, leat_pack *pack, const char *text, const leat__shape *shape,
                      const leat__followed *images, uint32_t image_count, leat_error *err) LEAT_MUST_CHECK;
void leat__follow_reset(leat__follow *f);

/* Finds the follower of a field of the pack, or NULL. */
leat__follower *leat__follow_of(const leat__follow *f, uint32_t field);

/* Fills the column (its name is set) for a batch of `rows` rows; counts columns that shrink. */
int leat__follow_column(leat__follower *f, leat_pack *pack, uint32_t rows, leat__shape *shape,
                        uint32_t column, leat_error *err) LEAT_MUST_CHECK;

/* Returns the box rule of a follower that has boxes. */
leat__box_rule leat__follow_rule(const leat__follower *f);

/* Scratch of one worker. Zeroed is empty. */
typedef struct leat__follow_scratch {
    leat__recipe *recipe;
    bool *keep;
    uint64_t keep_cap, boxes; /* boxes: number of boxes in the last follower with boxes */
    float *corners;           /* corners of the boxes that crops depend on, and space for as many */
    uint64_t corners_cap;
} leat__follow_scratch;
void leat__follow_scratch_reset(leat__follow_scratch *s);

/* One sample with its bytes. */
typedef struct leat__follow_sample {
    leat_pack *pack;
    const leat_pack_cell *cells;
    const uint8_t *bytes;
    const void *tables; /* tile codec, or NULL */
    bool as_stored;     /* EXIF orientation is ignored */
    leat__draw_key key;
} leat__follow_sample;

/* Puts the boxes that crops depend on into the sample's draw key. Call it before the images are made. */
int leat__follow_guide(const leat__follow *f, leat__follow_scratch *s, leat__follow_sample *sample,
                       leat_error *err) LEAT_MUST_CHECK;

/* Fills row `row` of all followers' columns. */
int leat__follow_fill(const leat__follow *f, leat__follow_scratch *s, leat__pipeline_worker *w,
                      const leat__follow_sample *sample, leat__frame *frame, uint32_t row,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
