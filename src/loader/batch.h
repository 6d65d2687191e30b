/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a batch, its memory, and lending it to the caller.
 *
 * A shape describes the arrays of this loader's batches. A frame is one batch being filled or
 * borrowed: one block of memory with all arrays, each aligned to 256 bytes. Runs of different
 * workers write different rows of a frame at the same time. Blocks are kept for reuse as far as
 * the budget allows.
 */
#ifndef LEAT_LOADER_BATCH_H
#define LEAT_LOADER_BATCH_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"
#include "gpu/device_pool.h"
#include "loader/blocks.h"
#include "loader/device_tiles.h"

/* Source of the rows of one array. */
typedef enum leat__column_kind {
    LEAT__COLUMN_IMAGE,   /* made by a pipeline */
    LEAT__COLUMN_FIXED,   /* INT, FLOAT, ARRAY: the same number of bytes in every sample */
    LEAT__COLUMN_ONE_HOT, /* INT as one float per class */
    LEAT__COLUMN_LAMBDA,  /* 1 until the batch is mixed */
    LEAT__COLUMN_RAGGED   /* BYTES, TEXT, JSON, RAGGED: offsets and bytes */
} leat__column_kind;

/* Height and width of the rows of one array. */
typedef enum leat__sizing {
    LEAT__SIZING_ONE,    /* the same in all batches, or none */
    LEAT__SIZING_OWN,    /* each row has its own: a RAGGED column */
    LEAT__SIZING_PADDED, /* that of the largest row of the batch, or a little more */
    LEAT__SIZING_NOTE,   /* the column NAME_size: height and width of each row */
    LEAT__SIZING_SEEN    /* the column NAME_mask: sized like PADDED, true inside the image */
} leat__sizing;

typedef struct leat__size {
    uint32_t width, height;
} leat__size;

typedef struct leat__column {
    leat__column_kind kind;
    leat__sizing sizing;
    uint32_t of;       /* sizing: the image column whose sizes it uses */
    uint32_t channels; /* OWN and PADDED: channels of a pixel; 0 = a mask */
    bool channels_last;
    uint32_t multiple;  /* PADDED and SEEN: height and width are multiples of this */
    uint8_t fill[8];    /* PADDED: the value of padding, one element */
    uint32_t field;     /* field of the pack */
    uint32_t cell;      /* its index among the cells of a sample */
    uint64_t row_bytes; /* IMAGE and FIXED; 0 when it differs: leat__frame.row_bytes */
    uint32_t ragged_ndim;
    uint64_t device_start; /* IMAGE and FIXED: its offset in a batch on a device */
    bool follows;          /* filled by loader/follow.c */
    uint32_t grows;        /* RAGGED: factor by which mixing may multiply its elements; 0 = 1 */
    uint32_t shrinks; /* RAGGED: number among the shrinking columns, from 1, when rows may use less than their
                         room; else 0 */
    leat_tensor tensor; /* as in a full batch, data NULL; its name is owned */
} leat__column;

typedef struct leat__shape {
    uint32_t count;
    leat__column *columns;
    uint32_t shrinking; /* number of columns that shrink */
    uint32_t sized;     /* number of image columns, when images differ in size; else 0 */
} leat__shape;

/* A sample that could not be delivered. */
typedef struct leat__bad {
    struct leat__bad *next;
    uint32_t row;
    uint64_t sample;
    leat_error error;
} leat__bad;

/* Shared by all batches of a loader: their shape and blocks for reuse. Lives until the loader has closed it
 * and the last batch was released. */
typedef struct leat__frames leat__frames;

typedef struct leat__frame {
    leat_batch batch; /* first member: the public part */
    const leat__shape *shape;
    leat__frames *frames;
    _Atomic uint32_t refs; /* runs that write it, then the holder of the batch */
    leat_task *task;       /* while borrowed */
    leat__blocks *blocks;  /* the owner of its memory */
    leat__block memory;
    uint8_t *block; /* data of `memory` */
    uint64_t bytes; /* charged for it */
    bool at_once;   /* page-locked memory is resident at once: the first run is charged for all of it */
    uint32_t rows;  /* capacity */
    leat_tensor *tensors;
    uint64_t *ids, *hashes;
    bool *dropped;                     /* rows to drop */
    int64_t *ragged_end;               /* per column, while rows are dropped */
    leat__device_pool *device_pool;    /* owner of `on_device` */
    leat__device_tiles *_Atomic tiles; /* rows decoded by the device; their pixels are not here */
    leat__device_arena arena;          /* the bytes of these tiles */
    leat__block arena_memory;
    leat__blocks *arena_blocks;    /* the owner of arena_memory */
    leat__device_block *on_device; /* copy of the columns of fixed size, or NULL */
    int64_t *used;                 /* per shrinking column and row: elements written */
    uint64_t *row_bytes;           /* per column that is not ragged */
    leat__size *sizes;             /* shape.sized x rows, when images differ in size */
    leat__bad *_Atomic bad;
    uint32_t skip; /* rows to leave out after mixing, when the device decodes rows of it */
} leat__frame;

/* The memory of a batch is page-locked in whole pages. */
#define LEAT__FRAME_ALIGN 4096u

/* True for PADDED and SEEN. */
static inline bool leat__column_padded(const leat__column *c)
{
    return c->sizing == LEAT__SIZING_PADDED || c->sizing == LEAT__SIZING_SEEN;
}

/* Frees the columns and their names. */
void leat__shape_reset(leat__shape *shape);

/* Takes ownership of the shape, even on failure. The budget must outlive the frames. */
int leat__frames_open(leat__frames **f, leat_budget *budget, leat__shape *shape,
                      leat_error *err) LEAT_MUST_CHECK;
void leat__frames_close(leat__frames **f);
const leat__shape *leat__frames_shape(const leat__frames *f); /* valid until close */
void leat__frames_trim(leat__frames *f);                      /* releases kept blocks to the budget */
uint64_t leat__frames_kept(leat__frames *f);                  /* bytes of kept blocks */

/* Computes the bytes of a batch with up to `rows` rows on a device, and sets device_start of its columns,
 * those of fixed size. Ragged columns, sample ids and hashes stay on the host. Call it, and the next
 * function, before the first frame is opened. */
uint64_t leat__frames_device_bytes(leat__frames *f, uint32_t rows);
/* Page-locks the memory of batches, which will be copied to a device. */
void leat__frames_for_device(leat__frames *f, leat__gpu *gpu, const leat_log *log);
bool leat__frames_locked(leat__frames *f); /* true while page-locking has not failed */

/* Computes the bytes of the block for `rows` rows; `ragged` has the total payload bytes per ragged or padded
 * column (0 for the others). False on overflow. */
bool leat__frame_size(const leat__shape *shape, uint32_t rows, const uint64_t *ragged, bool hashes,
                      uint64_t *bytes);

/* Opens a frame for `rows` rows; its offsets are not set. */
int leat__frame_open(leat__frame **out, leat__frames *frames, uint32_t rows, const uint64_t *ragged,
                     bool hashes, leat_error *err) LEAT_MUST_CHECK;
void leat__frame_ref(leat__frame *f);
void leat__frame_unref(leat__frame *f); /* the last one returns the block to the frames */

/* Returns row `row` of column `c`. */
void *leat__frame_row(const leat__frame *f, uint32_t c, uint32_t row);

/* When images differ in size: returns the size of image column `of` in this row. */
const leat__size *leat__frame_size_of(const leat__frame *f, uint32_t of, uint32_t row);

/* Fills a row with the same value in every element: i, or f for floating-point elements. */
void leat__column_fill(const leat__column *c, int64_t i, double f, uint8_t *row);

/* Sets the actual number of elements in row `row` of a shrinking column. */
void leat__frame_used(leat__frame *f, uint32_t c, uint32_t row, uint64_t elements);

/* Fails: a sample has no value in `field`, and the batch needs one. */
int leat__fail_absent(const char *field, leat_error *err);

/* Any thread: records a bad sample; takes ownership of `bad`. */
void leat__frame_note(leat__frame *f, leat__bad *bad);

/* Switches the columns to their copy in `block`, which the frame then owns. Releases the host memory unless
 * ragged columns need it; returns the bytes still held. */
uint64_t leat__frame_moved(leat__frame *f, leat__device_pool *pool, leat__device_block *block,
                           int32_t device);

/* Takes an arena of at least `bytes` for the tiles of a new frame. When out of memory, there is none, and
 * each list uses its own memory. */
void leat__frame_take_arena(leat__frame *f, leat__blocks *blocks, uint64_t bytes);
/* The caller has charged `bytes` more of the batch and its arena. Call it before they are written, for one
 * run at a time. */
void leat__frame_pay(leat__frame *f, uint64_t bytes);
/* Any thread: adds rows for the device; takes ownership of `tiles`. */
void leat__frame_add_tiles(leat__frame *f, leat__device_tiles *tiles);
uint64_t leat__frame_tile_bytes(const leat__frame *f); /* bytes charged for all lists */

/* After all runs have written: removes dropped rows, sorts the bad ones by row, sets the
 * counts. */
void leat__frame_finish(leat__frame *f);

/* For a finished frame: removes the first `rows` rows of the order, and their bad ones. */
void leat__frame_skip(leat__frame *f, uint32_t rows);

/* Hashes all values of a row, including the sample id. Of padded columns only the image is hashed, so call it
 * before the row is spread. */
uint64_t leat__frame_hash(const leat__frame *f, uint32_t row);

#endif
