/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns encoded bytes into a finished sample in the batch. A pipeline is compiled once from its ops and is
 * then constant: any number of threads share it. A worker owns the scratch of one thread (decoder, resize
 * tables, images) and serves any pipeline.
 *
 * run() first draws the recipe from (seed, epoch, sample, op). Leading crops, resizes and flips become one
 * request: the codec decodes only that region and rows stream through the resize. If no other step follows,
 * rows go straight into the batch, normalised, cast and laid out. Other steps run in between, on a small
 * planar image in the worker's cache.
 */
#ifndef LEAT_OP_PIPELINE_H
#define LEAT_OP_PIPELINE_H

#include "base/error.h"
#include "codec/codec.h"
#include "op/image.h"
#include "op/step.h"

/* Element types of delivered images, in the order of ToDtype's choices and of `leat load --dtype`: identifier
 * of LEAT_DTYPE_MAP, name, 1 for integers, which cannot be normalised. u16 is only for 16-bit images. */
#define LEAT__OUTPUT_DTYPE_MAP(X)                                                                            \
    X(U8, "u8", 1)                                                                                           \
    X(F16, "f16", 0)                                                                                         \
    X(BF16, "bf16", 0)                                                                                       \
    X(F32, "f32", 0)                                                                                         \
    X(U16, "u16", 1)
#define LEAT__OUTPUT_DTYPE_CHOICE(id, name, whole) "|" name
#define LEAT__OUTPUT_DTYPE_CHOICES (&(LEAT__OUTPUT_DTYPE_MAP(LEAT__OUTPUT_DTYPE_CHOICE))[1])

typedef enum leat__layout { LEAT__LAYOUT_NCHW, LEAT__LAYOUT_NHWC } leat__layout;
#define LEAT__LAYOUT_CHOICES "nchw|nhwc"

/* Returns the element type of a choice in LEAT__OUTPUT_DTYPE_CHOICES. */
leat_dtype leat__output_dtype(uint32_t choice);
bool leat__output_whole(leat_dtype dtype); /* see LEAT__OUTPUT_DTYPE_MAP */
const char *leat__layout_name(leat__layout layout);

/* Describes one sample in the batch. Width, height and bytes are 0 where they depend on the image. */
typedef struct leat__output_spec {
    uint32_t width, height, channels;
    leat_dtype dtype;
    leat__layout layout;
    size_t bytes;   /* of all crops */
    uint32_t crops; /* images per sample, as FiveCrop makes them; 0 = one, without an extra dimension */
} leat__output_spec;

/* The kind of input pixels. Zeroed: 8-bit images of 1, 3 or 4 channels; the output has three. Else wide
 * images (src/op/wide_ops.h) of exactly this kind; all channels are kept. */
typedef struct leat__pixel_kind {
    leat__sample_type type;
    uint32_t channels;
} leat__pixel_kind;

typedef struct leat__pipeline leat__pipeline;
typedef struct leat__pipeline_worker leat__pipeline_worker;

/* `ops` is the text form (include/leat/op.h). Without ToDtype and ToLayout the output is u8, nchw. Unless
 * any_size is set, the ops alone must determine the output size (a Resize to one number does not).
 * LEAT_EINVAL names the op and parameter that is wrong. */
typedef struct leat__pipeline_opts {
    const char *ops;
    uint32_t view; /* number of the view: views of one sample draw differently */
    bool any_size; /* output images may have different sizes */
    leat__pixel_kind kind;
    const char *field; /* for messages about the kind; NULL: "image" */
} leat__pipeline_opts;

int leat__pipeline_open(leat__pipeline **p, const leat__pipeline_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__pipeline_close(leat__pipeline **p);
const leat__output_spec *leat__pipeline_output(const leat__pipeline *p); /* view */
/* Returns the output of one sample whose recipe ends with this size. */
leat__output_spec leat__pipeline_output_of(const leat__pipeline *p, uint32_t width, uint32_t height);

/* True when steps on whole images need only one image in memory, without a second one for results, over all
 * draws. */
bool leat__pipeline_in_place(const leat__pipeline *p);

/* Finds the largest output width and height for an image of this (oriented) size, over all draws. They need
 * not occur together. */
void leat__pipeline_reach(const leat__pipeline *p, uint32_t width, uint32_t height, uint32_t *most_width,
                          uint32_t *most_height);
/* Returns the pixels of the largest image that an op like RandomZoomOut makes of an image of this size; 0:
 * none is larger than what it is made of. *copies: later ops need copies of it. */
uint64_t leat__pipeline_canvas(const leat__pipeline *p, uint32_t width, uint32_t height, bool *copies);

/* True when images of one size are cropped, rotated and flipped alike: both have the same random geometry in
 * the same order, whatever colour ops are in between, or none that is random. */
bool leat__pipeline_same_geometry(const leat__pipeline *a, const leat__pipeline *b);

/* True when the pipeline takes wide images. */
bool leat__pipeline_wide(const leat__pipeline *p);

/* Returns the first op that makes several images of one, which masks and boxes cannot follow; NULL = none. */
const char *leat__pipeline_splits(const leat__pipeline *p);

/* Returns the first op whose draw depends on boxes (RandomIoUCrop); NULL = none. Without boxes it changes
 * nothing. */
const char *leat__pipeline_needs_boxes(const leat__pipeline *p);

/* Batch ops of the text (such as MixUp and CutMix), in order; see src/op/mix.h. */
struct leat__op_spec;
uint32_t leat__pipeline_batch_ops(const leat__pipeline *p);
const struct leat__op_spec *leat__pipeline_batch_op(const leat__pipeline *p, uint32_t i);

int leat__pipeline_worker_open(leat__pipeline_worker **w, leat_error *err) LEAT_MUST_CHECK;
void leat__pipeline_worker_close(leat__pipeline_worker **w);

/* One encoded image, followed by LEAT__CODEC_PADDING readable bytes. */
typedef struct leat__encoded {
    const leat__image_info *info;
    const uint8_t *data;
    size_t len;
    const void *tables;     /* tile codec: tables of the pack, else NULL */
    const uint8_t *entries; /* JPEG: entry points, or NULL */
    size_t entries_len;
    uint32_t orientation; /* EXIF 1..8; 0 or 1 = as stored */
    leat__decode_limits limits;
} leat__encoded;

typedef struct leat__draw_key {
    uint64_t seed, epoch, sample;
    uint32_t crop;      /* which of the output's crops */
    uint32_t box_count; /* boxes as two corners in the (oriented) image; `moved` has room for as many */
    const float *boxes;
    float *moved;
} leat__draw_key;

/* Decodes one sample and writes it to `out`, which must be aligned to the element type and have room for the
 * bytes of its output. On failure the bytes at `out` are undefined. */
int leat__pipeline_run(const leat__pipeline *p, leat__pipeline_worker *w, const leat__encoded *image,
                       const leat__draw_key *key, void *out, leat_error *err) LEAT_MUST_CHECK;

/* Runs several views of one image (pipelines opened with view 0, 1, …). The image is decoded once for the
 * union of their regions when that is less work, else once per view. The pixels are the same either way. */
int leat__pipeline_run_views(const leat__pipeline *const *p, uint32_t count, leat__pipeline_worker *w,
                             const leat__encoded *image, const leat__draw_key *key, void *const *out,
                             leat_error *err) LEAT_MUST_CHECK;

/* Moves a mask by `recipe`, which leat__pipeline_draw gave for its image. Pixels are interpolated with
 * nearest, as torchvision resizes masks; `fill` is used outside the image. The mask has the size of the image
 * and one channel. Writes u8, height x width of the output, to `out`. */
int leat__pipeline_run_mask(leat__pipeline_worker *w, const leat__recipe *recipe, const leat__encoded *mask,
                            uint8_t fill, uint8_t *out, leat_error *err) LEAT_MUST_CHECK;

/* Draws the recipe for an image of this (oriented) size: for tests, tools and masks. */
int leat__pipeline_draw(const leat__pipeline *p, const leat__draw_key *key, uint32_t width, uint32_t height,
                        leat__recipe *recipe, leat_error *err) LEAT_MUST_CHECK;

/* Runs the pipeline on decoded pixels (three planes): for tools and tests. */
int leat__pipeline_run_pixels(const leat__pipeline *p, leat__pipeline_worker *w, const leat__planes *pixels,
                              const leat__draw_key *key, void *out, leat_error *err) LEAT_MUST_CHECK;

#endif
