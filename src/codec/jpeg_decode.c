/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG: slow-integer DCT and fancy upsampling, so the pixels equal Pillow's. Ordinary files are decoded by
 * jpeg_region.c. Here libjpeg-turbo decodes the others, files at a smaller scale, and everything unusual
 * or damaged. Only the MCU rows and columns that a region needs are decoded. The result is bit-identical
 * to the same rectangle of a full decode:   - rows above are skipped in whole iMCU rows (released
 * libjpeg-turbo versions garble     partial skips), columns are cropped to whole iMCUs by the library
 * itself;   - fancy upsampling looks one chroma sample to each side, and treats the first and last
 * sample of what is decoded as the image's edge: so MARGIN pixels more are decoded     around the region
 * where a neighbour exists, and thrown away. Block smoothing is off: it would invent detail in progressive
 * files that lack some of their refinement scans, and differ between a region and the whole.
 *
 * One state per decoder, used by one thread at a time.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_glue.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_region.h"
#include "codec/planes.h"

#define MARGIN 4 /* output pixels; two would be enough at every sampling factor */

typedef struct jpeg_state {
    struct jpeg_decompress_struct cinfo;
    leat__jpeg_glue glue;
    leat__jpeg_region *region;
    leat__band band;
    uint8_t *pixels; /* interleaved rows as libjpeg writes them */
    size_t capacity;
} jpeg_state;

static bool jpeg_sniff(const uint8_t *data, size_t len)
{
    return len >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

/* Sets the sampling of files that leat decodes itself: like leat__jpeg_region_shape(), from the header. */
static void find_grid(const leat__jpeg_header *h, leat__image_info *info)
{
    if (h->bits != 8 || h->progressive || h->arithmetic || h->lossless) return;
    if (h->colour == LEAT__JPEG_GREY) info->chroma_h = info->chroma_v = 1;
    if (h->colour != LEAT__JPEG_YCC) return;
    for (int c = 1; c < 3; c++)
        if (h->component[c].h != 1 || h->component[c].v != 1) return;
    const uint32_t across = h->component[0].h, down = h->component[0].v;
    if (down > 2 || across == 3 || across * down > 4) return;
    info->chroma_h = across;
    info->chroma_v = down;
}

static int jpeg_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    leat__jpeg_header h;
    LEAT_TRY(leat__jpeg_header_read(data, len, &h, err));
    info->width = h.width;
    info->height = h.height;
    info->bits = h.bits;
    info->channels = h.components == 1 ? 1 : 3;
    info->orientation = h.orientation;
    info->progressive = h.progressive;
    info->cmyk = h.components == 4;
    leat__jpeg_header_describe(&h, info->format, sizeof info->format);
    if (leat__jpeg_header_many_scans(&h)) info->memory = leat__jpeg_header_coefs(&h);
    find_grid(&h, info);
    return 0;
}

static void jpeg_close(void **state)
{
    jpeg_state *s = *state;
    if (!s) return;
    jpeg_destroy_decompress(&s->cinfo);
    leat__jpeg_region_close(&s->region);
    leat__band_reset(&s->band);
    leat__free(s->pixels);
    leat__free(s);
    *state = NULL;
}

static int jpeg_open(void **state, leat_error *err)
{
    jpeg_state *s = LEAT_NEW(CODEC, jpeg_state);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a JPEG decoder");
    leat__jpeg_glue_init(&s->glue, (struct jpeg_common_struct *)&s->cinfo);
    s->glue.err = err;
    if (setjmp(s->glue.jump)) {
        int code = s->glue.code;
        leat__free(s);
        return code;
    }
    leat__jpeg_glue_create(&s->glue, &s->cinfo);
    *state = s;
    int rc = leat__jpeg_region_open(&s->region, err);
    if (rc != 0) jpeg_close(state);
    return rc;
}

/* Converts CMYK. Adobe writes CMYK inverted, and Pillow assumes this for all CMYK JPEGs, so RGB = (255 - K) *
 * (255 - C) / 255, rounded like Pillow's convert("RGB"). */
static void cmyk_to_rgb(const uint8_t *src, size_t width, uint8_t *const plane[4])
{
    for (size_t i = 0; i < width; i++, src += 4) {
        int white = src[3]; /* 255 - K */
        for (int c = 0; c < 3; c++) {
            int product = (255 - src[c]) * white + 128;
            int ink = ((product >> 8) + product) >> 8;
            plane[c][i] = (uint8_t)(white > ink ? white - ink : 0);
        }
    }
}

static uint32_t round_down(uint32_t v, uint32_t step)
{
    return v - v % step;
}

static int make_room(jpeg_state *s, leat_error *err)
{
    size_t row, total;
    if (!leat__mul_size(s->cinfo.output_width, (size_t)s->cinfo.output_components, &row) ||
        !leat__mul_size(row, LEAT__BAND_ROWS, &total))
        return leat__fail(err, LEAT_EOVERFLOW, "JPEG row does not fit memory");
    if (total <= s->capacity) return 0;
    uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, total);
    if (!grown) return leat__fail_nomem(err, total, "JPEG rows");
    leat__free(s->pixels);
    s->pixels = grown;
    s->capacity = total;
    return 0;
}

static void configure(jpeg_state *s, const leat__decode_job *job)
{
    struct jpeg_decompress_struct *c = &s->cinfo;
    const leat__image_info *info = job->info;
    bool cmyk = c->num_components == 4;
    uint32_t channels = c->num_components == 1 ? 1 : 3;
    if (c->image_width != info->width || c->image_height != info->height || channels != info->channels ||
        cmyk != info->cmyk)
        leat__jpeg_glue_fail(&s->glue, LEAT_EDATA, "header does not match what was probed");
    c->out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
    c->dct_method = JDCT_ISLOW;
    c->do_fancy_upsampling = TRUE;
    c->do_block_smoothing = FALSE;
    c->scale_num = 1;
    c->scale_denom = job->scale_denom;
}

/* Restricts the columns that are decoded; returns the offset of column job->x within a row. */
static size_t crop_columns(struct jpeg_decompress_struct *c, const leat__decode_job *job)
{
    uint32_t full = c->output_width;
    uint32_t step = (uint32_t)(c->max_h_samp_factor * c->min_DCT_scaled_size);
    uint32_t margin = c->max_h_samp_factor > 1 ? MARGIN : 0;
    uint32_t left = job->x > margin ? round_down(job->x - margin, step) : 0;
    uint64_t right = leat__ceil_div((uint64_t)job->x + job->width + margin, step) * step;
    if (right > full) right = full;
    if (left == 0 && right == full) return job->x;
    /* libjpeg-turbo 2.1.5 garbles cropped 4:1:0 at 1/2: such files are decoded full width */
    if (job->scale_denom > 1 && c->max_h_samp_factor > 2) return job->x;
    JDIMENSION x = left, width = (JDIMENSION)(right - left);
    jpeg_crop_scanline(c, &x, &width);
    return job->x - x;
}

/* Skips whole iMCU rows above the region; returns how many rows are left to discard. */
static uint32_t skip_rows(struct jpeg_decompress_struct *c, const leat__decode_job *job)
{
    uint32_t step = (uint32_t)(c->max_v_samp_factor * c->min_DCT_scaled_size);
    uint32_t margin = c->max_v_samp_factor > 1 ? MARGIN : 0;
    uint32_t top = job->y > margin ? round_down(job->y - margin, step) : 0;
    if (top > 0) jpeg_skip_scanlines(c, top);
    return job->y - top;
}

/* Reads up to `count` rows into s->pixels. */
static uint32_t read_rows(jpeg_state *s, uint32_t count)
{
    JSAMPROW rows[LEAT__BAND_ROWS];
    size_t stride = (size_t)s->cinfo.output_width * (size_t)s->cinfo.output_components;
    uint32_t got = 0;
    while (got < count) {
        for (uint32_t i = got; i < count; i++) rows[i - got] = s->pixels + i * stride;
        got += jpeg_read_scanlines(&s->cinfo, rows, count - got);
    }
    return got;
}

static void band_from_pixels(jpeg_state *s, const leat__decode_job *job, size_t first, uint32_t count)
{
    size_t bytes = (size_t)s->cinfo.output_components;
    size_t stride = s->cinfo.output_width * bytes;
    for (uint32_t i = 0; i < count; i++, s->band.count++) {
        const uint8_t *src = s->pixels + i * stride + first * bytes;
        uint8_t *row[4];
        leat__band_next(&s->band, row);
        if (job->info->cmyk) cmyk_to_rgb(src, job->width, row);
        else leat__planar_split(src, job->width, job->info->channels, row);
    }
}

static int decode_rows(jpeg_state *s, const leat__decode_job *job, leat_error *err)
{
    struct jpeg_decompress_struct *c = &s->cinfo;
    jpeg_read_header(c, TRUE);
    configure(s, job);
    jpeg_start_decompress(c);
    size_t first = crop_columns(c, job);
    LEAT_TRY(make_room(s, err));
    LEAT_TRY(leat__band_fit(&s->band, job->width, job->info->channels, err));
    uint32_t discard = skip_rows(c, job);
    while (discard > 0) discard -= read_rows(s, LEAT_MIN(discard, LEAT__BAND_ROWS));
    for (uint32_t y = 0; y < job->height;) {
        uint32_t count = read_rows(s, LEAT_MIN(job->height - y, LEAT__BAND_ROWS));
        band_from_pixels(s, job, first, count);
        LEAT_TRY(leat__band_flush(&s->band, job->sink, y));
        y += count;
    }
    if (job->whole) jpeg_finish_decompress(c);
    return 0;
}

static int library_decode(jpeg_state *s, const leat__decode_job *job, leat_error *err)
{
    leat__jpeg_glue_source(&s->glue, &s->cinfo, job->data, job->len, &job->limits, err);
    if (setjmp(s->glue.jump)) {
        jpeg_abort_decompress(&s->cinfo);
        return s->glue.code;
    }
    int rc = decode_rows(s, job, err);
    jpeg_abort_decompress(&s->cinfo); /* no effect after a complete decode */
    return rc;
}

/* A sink that already has the first rows. */
typedef struct later_rows {
    const leat__row_sink *sink;
    uint32_t done;
} later_rows;

static int take_later(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    const later_rows *later = ctx;
    if (y + count <= later->done) return 0;
    uint32_t known = later->done > y ? later->done - y : 0;
    const uint8_t *from[4] = {NULL};
    for (int c = 0; c < 4; c++)
        if (plane[c]) from[c] = plane[c] + known * stride;
    return later->sink->rows(later->sink->ctx, y + known, count - known, from, stride);
}

static int jpeg_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    jpeg_state *s = state;
    later_rows later = {.sink = job->sink};
    bool complete = false;
    /* On every CPU: whether a file is accepted must not depend on the instruction set. */
    if (job->scale_denom == 1)
        LEAT_TRY(leat__jpeg_region_decode(s->region, job, &later.done, &complete, err));
    if (complete) return 0;
    if (job->parts) return leat__fail(err, LEAT_ENOTSUP, "JPEG: only its pixels can be decoded");
    const leat__row_sink sink = {take_later, &later};
    leat__decode_job rest = *job;
    if (later.done > 0) rest.sink = &sink;
    return library_decode(s, &rest, err);
}

const leat__codec_ops leat__codec_ops_jpeg = {
    .name = "jpeg",
    .scales = true,
    .sniff = jpeg_sniff,
    .probe = jpeg_probe,
    .open = jpeg_open,
    .close = jpeg_close,
    .decode = jpeg_decode,
};
