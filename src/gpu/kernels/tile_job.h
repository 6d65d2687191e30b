/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's description of images that the device decodes: plain data with the same layout on both sides.
 * Compiled by the host's compiler, nvcc and NVRTC, which has no standard headers. So it includes nothing and
 * expects the types of <stdint.h>.
 *
 * A batch is decoded in three to six steps, each of them one kernel over all images:
 *   gather  optional: bytes in host memory -> input
 *   axes    resize requests -> first input, taps and weights of each output
 *   tiles   bytes -> quantised coefficients -> inverse DCT -> planes of the components
 *   pixels  planes -> upsampled, RGB -> both passes of the resize -> normalised, cast, into the batch
 *   colour  only images with colour steps, which `pixels` leaves in their workspace: steps -> into the batch
 *   mix     MixUp or CutMix of one array of the batch, if no image of it is damaged
 */
#ifndef LEAT_GPU_KERNELS_TILE_JOB_H
#define LEAT_GPU_KERNELS_TILE_JOB_H

#define LEAT_JOB_COMPONENTS 3
#define LEAT_JOB_NO_DAMAGE 0xffffffffu
#define LEAT_JOB_POOL 11264   /* words of shared memory for a window of an image */
#define LEAT_JOB_POOL_SLACK 8 /* words after the last one that are read but not used */
#define LEAT_JOB_NARROW 4     /* with up to this many inputs per output, the weights fit in one word */
#define LEAT_JOB_WORD_BITS 20
#define LEAT_JOB_WORDS_MAX 4095u /* maximum words of inputs for one output */

/* One axis of a resize, like leat__axis_request without a box. */
typedef struct leat_job_axis {
    uint32_t in, out, from, count; /* whole input and output; window of the output */
    uint32_t filter;               /* leat__filter: nearest, box, bilinear or bicubic */
    uint32_t mirror_in, mirror_out;
    uint32_t lo;    /* first input of the region; taps are relative to it */
    uint32_t taps;  /* maximum taps per output */
    uint32_t words; /* maximum words of weights per output */
    uint32_t lead;  /* inputs of the first word before the region */
    uint32_t pad;
    uint64_t first;   /* offset in the image's workspace: u32 per output, `lead` included */
    uint64_t taps_of; /* offset: u32 per output */
    uint64_t weight;  /* offset: leat_job_weights [word][output] */
} leat_job_axis;

/* Weights of four adjacent inputs, signed with 22 fractional bits, split into three bytes each. */
typedef struct leat_job_weights {
    uint32_t low, middle, high;
    uint32_t place; /* first of the four inputs; for a wider axis the first word, and in the bits from
                       LEAT_JOB_WORD_BITS on the number of words */
} leat_job_weights;

/* Colour steps on the pixels after the resize. Those before SATURATION are lookup tables. */
enum {
    LEAT_JOB_BRIGHTNESS,
    LEAT_JOB_CONTRAST,
    LEAT_JOB_INVERT,
    LEAT_JOB_SOLARIZE,
    LEAT_JOB_POSTERIZE,
    LEAT_JOB_EQUALIZE,
    LEAT_JOB_AUTOCONTRAST,
    LEAT_JOB_SATURATION,
    LEAT_JOB_GRAYSCALE,
    LEAT_JOB_HUE,
    LEAT_JOB_ERASE
};
#define LEAT_JOB_STEPS 8 /* maximum steps of an image */

typedef struct leat_job_step {
    uint32_t kind;
    float amount;   /* weight of a blend */
    uint32_t value; /* threshold; mask of bits to keep; shift of the hue; or a byte per channel */
    uint32_t x, y, width, height; /* of an erased rectangle */
    uint32_t noise, key[2];       /* 1 = fill the rectangle with random bytes of this key */
} leat_job_step;

typedef struct leat_job_image {
    uint32_t components, h, v, smooth; /* chroma is sampled every h x v pixels */
    uint32_t x, y, width, height;      /* region of the image that is needed, in pixels */
    uint32_t bx0[LEAT_JOB_COMPONENTS], by0[LEAT_JOB_COMPONENTS]; /* blocks that are needed */
    uint32_t bx1[LEAT_JOB_COMPONENTS], by1[LEAT_JOB_COMPONENTS];
    uint32_t samples_x[LEAT_JOB_COMPONENTS], samples_y[LEAT_JOB_COMPONENTS]; /* of the whole image */
    uint32_t pitch[LEAT_JOB_COMPONENTS]; /* bytes from row to row of a plane */
    uint32_t mcus_x, mcus_y;             /* of the whole image */
    uint32_t small;                      /* bitmaps are Huffman-coded */
    uint32_t vertical_first;
    uint32_t turned; /* rows of the image are columns of the output (EXIF 5 to 8) */
    /* number of windows; outputs that a block of threads makes at once */
    uint32_t windows, window_x, window_y;
    uint32_t lines, line_pitch; /* lines processed at once; words from line to line */
    uint32_t mid_pitch;         /* words per output between the two passes */
    uint32_t row;               /* row of the batch */
    uint32_t column;            /* which array of the batch it is for */
    uint32_t erase, erase_x, erase_y, erase_width, erase_height; /* a rectangle blanked at the end */
    uint32_t erase_bits[3]; /* filled with these bits, of the output's type */
    uint32_t lead;          /* pixels before the region, in its RGB planes: x % 4 */
    uint32_t source;        /* LEAT_JOB_SPILL and so on: what `data` is relative to */
    uint64_t data;          /* quantisers and tiles; an address once the job is sent */
    uint64_t work;          /* start of its part of the workspace */
    uint64_t work_bytes;
    uint64_t plane[LEAT_JOB_COMPONENTS]; /* offsets in its workspace */
    uint64_t quant;                      /* offset in its data: u16 [component][64], row by row */
    leat_job_axis ax, ay;
    uint64_t canvas; /* with colour steps: offset in its workspace of three planes of bytes */
    uint32_t steps, pad2;
    leat_job_step step[LEAT_JOB_STEPS];
} leat_job_image;

typedef struct leat_job_tile {
    uint64_t data; /* offset in its image's data */
    uint32_t len;
    uint32_t image;
    uint32_t tx, ty;
    uint32_t number; /* number of the tile in its image, used to report damage */
    uint32_t pad;
} leat_job_tile;

/* Where the bytes of an image are before the job is sent. */
enum {
    LEAT_JOB_SPILL,    /* in the list's own bytes */
    LEAT_JOB_ARENA,    /* in the arena of the batch */
    LEAT_JOB_RESIDENT, /* already on the device: `data` is the address */
    LEAT_JOB_GATHERED  /* in page-locked memory that the device reads: `data` is an offset in the gathered
                          bytes, and the quantisers are in the arena */
};

/* Whole lines of page-locked memory that the device reads into the input of the batch. */
typedef struct leat_job_range {
    uint64_t from;  /* device address of the host memory; a multiple of LEAT_JOB_LINE, as is `to` */
    uint64_t to;    /* offset in the input; an address once the job is sent */
    uint32_t first; /* lines of all ranges before this one */
    uint32_t lines;
} leat_job_range;
#define LEAT_JOB_LINE 128u /* bytes */

enum { LEAT_JOB_U8, LEAT_JOB_F16, LEAT_JOB_BF16, LEAT_JOB_F32 };

/* One array of the batch. */
typedef struct leat_job_output {
    uint64_t data; /* address on the device */
    uint32_t width, height, channels;
    uint32_t dtype, nhwc;
    uint32_t pad;
    uint32_t f32[3][256]; /* the bits of each normalised value as f32 */
    uint16_t f16[3][256]; /* the same as f16 or bf16 */
} leat_job_output;

/* A pack's Huffman tables for decoding, as in leat__tile_codes. */
typedef struct leat_job_codes {
    uint16_t entry[16][2048]; /* length | symbol << 8 */
    uint8_t context[2][9][8];
} leat_job_codes;

/* One array of the batch that is mixed: each row with the one before it, the first with the last. */
typedef struct leat_job_mix {
    uint64_t data; /* address on the device */
    uint32_t rows;
    uint32_t row_elements; /* elements from row to row */
    uint32_t elements;     /* elements of a row that change */
    uint32_t dtype;
    uint32_t paste;                         /* CutMix: copies a rectangle from the partner */
    uint32_t width, height, channels, nhwc; /* of a row, with `paste` */
    uint32_t x, y, wide, high;              /* the rectangle */
    float weight, rest;                     /* without `paste`: weights of the row and of its partner */
    uint32_t pad;
} leat_job_mix;

/* The parameters of every kernel. */
typedef struct leat_job {
    const leat_job_image *images;
    const leat_job_tile *tiles;
    const leat_job_output *outputs;
    const leat_job_codes *codes;
    uint8_t *work;    /* workspace */
    uint32_t *status; /* per image: LEAT_JOB_NO_DAMAGE, or tile number << 4 | damage */
    uint32_t image_count, tile_count;
    uint32_t windows;             /* largest number of windows of an image */
    uint32_t steps;               /* largest number of colour steps of an image */
    leat_job_mix mix;             /* used only by the kernel `mix` */
    const leat_job_range *ranges; /* used only by the kernel `gather`, like the next two */
    uint32_t range_count, lines;
} leat_job;

#endif
