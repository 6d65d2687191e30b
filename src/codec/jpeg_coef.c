/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads quantised coefficients into plain arrays: leat's own decoder (jpeg_scan.c) for files
 * that it takes, libjpeg for all others and for every verdict. The whole file is read to its end
 * marker, under the same rules on damage as a decode (jpeg_glue.c). Where pixels are to follow,
 * the file is read in libjpeg's buffered-image mode, which keeps the coefficients for an output
 * pass of its own. One reader per thread.
 */
#include "codec/jpeg_coef.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_glue.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_scan.h"
#include "codec/planes.h"

#define ALIGN 64

struct leat__jpeg_coef_reader {
    struct jpeg_decompress_struct cinfo;
    leat__jpeg_glue glue;
    leat__jpeg_scan *scan;
    int16_t *block;
    size_t capacity; /* bytes */
    uint8_t *row;    /* one of interleaved pixels */
    size_t row_capacity;
};

/* Alone with setjmp: see jpeg_glue.h. */
static int create_guarded(leat__jpeg_coef_reader *r)
{
    if (setjmp(r->glue.jump)) return r->glue.code;
    jpeg_create_decompress(&r->cinfo);
    return 0;
}

int leat__jpeg_coef_reader_open(leat__jpeg_coef_reader **reader, leat_error *err)
{
    *reader = NULL;
    leat__jpeg_coef_reader *r = LEAT_NEW(CODEC, leat__jpeg_coef_reader);
    if (!r) return leat__fail_nomem(err, sizeof *r, "a coefficient reader");
    leat__jpeg_glue_init(&r->glue, (struct jpeg_common_struct *)&r->cinfo);
    r->glue.err = err;
    int rc = create_guarded(r);
    if (rc == 0) rc = leat__jpeg_scan_open(&r->scan, err);
    if (rc == 0)
        *reader = r;
    else
        leat__jpeg_coef_reader_close(&r);
    return rc;
}

void leat__jpeg_coef_reader_close(leat__jpeg_coef_reader **reader)
{
    leat__jpeg_coef_reader *r = *reader;
    if (!r) return;
    jpeg_destroy_decompress(&r->cinfo);
    leat__jpeg_scan_close(&r->scan);
    leat__free(r->block);
    leat__free(r->row);
    leat__free(r);
    *reader = NULL;
}

static void describe_component(const struct jpeg_decompress_struct *c, int index,
                               leat__jpeg_component *out)
{
    const jpeg_component_info *info = &c->comp_info[index];
    out->id = (uint32_t)info->component_id;
    out->h = (uint32_t)info->h_samp_factor;
    out->v = (uint32_t)info->v_samp_factor;
    out->width = info->downsampled_width;
    out->height = info->downsampled_height;
    out->blocks_x = info->width_in_blocks;
    out->blocks_y = info->height_in_blocks;
    out->grid_x = (uint32_t)leat__ceil_div(out->blocks_x, out->h) * out->h;
    out->grid_y = (uint32_t)leat__ceil_div(out->blocks_y, out->v) * out->v;
    out->quant_index = (uint32_t)info->quant_tbl_no;
}

/* Bytes of all coefficients: at most 2^16 squared blocks' worth, so that nothing overflows. */
static uint64_t room_needed(const leat__jpeg_coefs *coefs)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < coefs->components; i++)
        total += (uint64_t)coefs->component[i].grid_x * coefs->component[i].grid_y;
    return total * 64 * sizeof(int16_t);
}

static int make_room(leat__jpeg_coef_reader *r, leat__jpeg_coefs *coefs, leat_error *err)
{
    uint64_t total = room_needed(coefs);
    if (total > SIZE_MAX / 2)
        return leat__fail(err, LEAT_EOVERFLOW, "JPEG coefficients do not fit memory");
    if (total > r->capacity) {
        int16_t *grown = leat__alloc_aligned(LEAT__MEM_CODEC, (size_t)total, ALIGN);
        if (!grown) return leat__fail_nomem(err, total, "JPEG coefficients");
        leat__free(r->block);
        r->block = grown;
        r->capacity = (size_t)total;
    }
    const int16_t *next = r->block;
    for (uint32_t i = 0; i < coefs->components; i++) {
        coefs->component[i].coefs = next;
        next += 64 * (size_t)coefs->component[i].grid_x * coefs->component[i].grid_y;
    }
    return 0;
}

static void copy_component(leat__jpeg_coef_reader *r, jvirt_barray_ptr array, int index,
                           leat__jpeg_component *out)
{
    struct jpeg_decompress_struct *c = &r->cinfo;
    int16_t *dst = r->block + (out->coefs - r->block);
    size_t row = (size_t)out->grid_x * 64;
    for (uint32_t y = 0; y < out->grid_y; y += out->v) {
        JBLOCKARRAY rows = c->mem->access_virt_barray((j_common_ptr)c, array, y,
                                                      (JDIMENSION)out->v, FALSE);
        for (uint32_t i = 0; i < out->v; i++, dst += row)
            memcpy(dst, rows[i], row * sizeof(int16_t));
    }
    const JQUANT_TBL *table = c->comp_info[index].quant_table;
    if (!table) leat__jpeg_glue_fail(&r->glue, LEAT_EDATA, "missing quantisation table");
    for (int i = 0; i < 64; i++) out->quant[i] = table->quantval[i];
}

static leat__jpeg_colour colour_of(const struct jpeg_decompress_struct *c)
{
    switch (c->jpeg_color_space) {
    case JCS_GRAYSCALE:
        return LEAT__JPEG_GREY;
    case JCS_RGB:
        return LEAT__JPEG_RGB;
    case JCS_CMYK:
        return LEAT__JPEG_CMYK;
    case JCS_YCCK:
        return LEAT__JPEG_YCCK;
    default:
        return LEAT__JPEG_YCC;
    }
}

/* Grey, or YCbCr that every libjpeg can upsample: others may have coefficients and no pixels. */
static bool has_pixels(const struct jpeg_decompress_struct *c)
{
    if (c->num_components == 1) return c->jpeg_color_space == JCS_GRAYSCALE;
    if (c->num_components != 3 || c->jpeg_color_space != JCS_YCbCr) return false;
    for (int i = 1; i < 3; i++)
        if (c->comp_info[i].h_samp_factor != 1 || c->comp_info[i].v_samp_factor != 1)
            return false;
    return true;
}

/* All scans, with the settings of jpeg_decode.c for the pixels that may be asked for. */
static void read_for_pixels(struct jpeg_decompress_struct *c)
{
    c->buffered_image = TRUE;
    c->out_color_space = c->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c->dct_method = JDCT_ISLOW;
    c->do_fancy_upsampling = TRUE;
    c->do_block_smoothing = FALSE;
    jpeg_start_decompress(c);
    do {
        c->progress->progress_monitor((j_common_ptr)c); /* the limits */
    } while (jpeg_consume_input(c) != JPEG_REACHED_EOI);
}

static int read_all(leat__jpeg_coef_reader *r, const leat__jpeg_header *header,
                    leat__jpeg_coefs *coefs, leat_error *err)
{
    struct jpeg_decompress_struct *c = &r->cinfo;
    jpeg_read_header(c, TRUE);
    if (c->image_width != header->width || c->image_height != header->height ||
        c->num_components != (int)header->components)
        leat__jpeg_glue_fail(&r->glue, LEAT_EDATA, "two headers that disagree");
    if (has_pixels(c)) {
        read_for_pixels(c);
        coefs->pixels = r;
    }
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(c);
    coefs->width = c->image_width;
    coefs->height = c->image_height;
    coefs->components = (uint32_t)c->num_components;
    coefs->max_h = (uint32_t)c->max_h_samp_factor;
    coefs->max_v = (uint32_t)c->max_v_samp_factor;
    coefs->mcus_x = (uint32_t)leat__ceil_div(coefs->width, 8ull * coefs->max_h);
    coefs->mcus_y = (uint32_t)leat__ceil_div(coefs->height, 8ull * coefs->max_v);
    coefs->colour = colour_of(c);
    coefs->progressive = c->progressive_mode;
    coefs->arithmetic = c->arith_code;
    coefs->scans = (uint32_t)c->input_scan_number;
    coefs->restart_interval = c->restart_interval;
    for (uint32_t i = 0; i < coefs->components; i++)
        describe_component(c, (int)i, &coefs->component[i]);
    LEAT_TRY(make_room(r, coefs, err));
    for (uint32_t i = 0; i < coefs->components; i++)
        copy_component(r, arrays[i], (int)i, &coefs->component[i]);
    if (coefs->pixels == NULL) jpeg_finish_decompress(c);
    return 0;
}

static int read_guarded(leat__jpeg_coef_reader *r, const leat__jpeg_header *header,
                        leat__jpeg_coefs *coefs, leat_error *err)
{
    if (setjmp(r->glue.jump)) {
        jpeg_abort_decompress(&r->cinfo);
        return r->glue.code;
    }
    return read_all(r, header, coefs, err);
}

/* Headers and limits, common to both ways. */
static int prepare(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                   const leat__decode_limits *limits, leat__decode_limits *bounds,
                   leat__jpeg_header *header, leat_error *err)
{
    *bounds = limits ? *limits : (leat__decode_limits){0};
    leat__decode_limits_fill(bounds);
    LEAT_TRY(leat__jpeg_header_read(data, len, header, err));
    leat__image_info info = {.width = header->width, .height = header->height};
    LEAT_TRY(leat__decode_limits_check(bounds, &info, err));
    jpeg_abort_decompress(&r->cinfo); /* the file before, had it pixels */
    return 0;
}

static void set_parts(leat__jpeg_coefs *coefs, const uint8_t *data, size_t len,
                      size_t scan_offset, size_t end)
{
    coefs->header = data;
    coefs->header_len = scan_offset;
    coefs->scan = data + scan_offset;
    coefs->scan_len = end - 2 - scan_offset;
    coefs->tail = data + end - 2;
    coefs->tail_len = len - (end - 2);
}

static int read_libjpeg(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                        const leat__decode_limits *bounds, const leat__jpeg_header *header,
                        leat__jpeg_coefs *coefs, leat_error *err)
{
    memset(coefs, 0, sizeof *coefs);
    leat__jpeg_glue_source(&r->glue, &r->cinfo, data, len, bounds,
                           leat__decode_deadline(bounds), err);
    LEAT_TRY(read_guarded(r, header, coefs, err));
    size_t end = leat__jpeg_glue_offset(&r->glue); /* just behind EOI */
    if (end < header->scan_offset + 2 || data[end - 2] != 0xff || data[end - 1] != 0xd9)
        return leat__fail(err, LEAT_EDATA, "JPEG: no end marker at byte %zu", end);
    set_parts(coefs, data, len, header->scan_offset, end);
    return 0;
}

int leat__jpeg_coef_read_libjpeg(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                                 const leat__decode_limits *limits, leat__jpeg_coefs *coefs,
                                 leat_error *err)
{
    leat__decode_limits bounds;
    leat__jpeg_header header;
    LEAT_TRY(prepare(r, data, len, limits, &bounds, &header, err));
    return read_libjpeg(r, data, len, &bounds, &header, coefs, err);
}

/* ---- leat's own way ---- */

/* Rows and columns of a grid that no MCU has: padding of scans of one component. */
static void clear_padding(const leat__jpeg_component *c, int16_t *block)
{
    size_t row = 64 * (size_t)c->grid_x, used = 64 * (size_t)c->blocks_x;
    for (uint32_t y = 0; y < c->grid_y; y++) {
        size_t from = y < c->blocks_y ? used : 0;
        memset(block + y * row + from, 0, (row - from) * sizeof *block);
    }
}

/* True when all MCUs are in place and the file ends behind them. */
static bool scan_all(leat__jpeg_coef_reader *r, leat__jpeg_coefs *coefs, uint64_t deadline_ns,
                     size_t *end)
{
    const leat__jpeg_scan *s = r->scan;
    bool alone = coefs->components == 1;
    uint32_t mcus_x = leat__jpeg_scan_mcus_x(s), mcus_y = leat__jpeg_scan_mcus_y(s);
    leat__jpeg_cursor at;
    leat__jpeg_blocks to = {0};
    for (uint32_t c = 0; c < coefs->components; c++) {
        to.block[c] = r->block + (coefs->component[c].coefs - r->block);
        to.stride[c] = coefs->component[c].grid_x;
    }
    if (alone) clear_padding(&coefs->component[0], to.block[0]);
    leat__jpeg_scan_begin(s, &at);
    for (uint32_t y = 0; y < mcus_y; y++) {
        if (leat__clock_ns() > deadline_ns || !leat__jpeg_scan_mcus(s, &at, mcus_x, &to))
            return false;
        for (uint32_t c = 0; c < coefs->components; c++)
            to.block[c] += 64 * to.stride[c] * (alone ? 1 : coefs->component[c].v);
    }
    return leat__jpeg_scan_finish(s, &at, end);
}

int leat__jpeg_coef_read(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                         const leat__decode_limits *limits, leat__jpeg_coefs *coefs,
                         leat_error *err)
{
    leat__decode_limits bounds;
    leat__jpeg_header header;
    size_t end;
    LEAT_TRY(prepare(r, data, len, limits, &bounds, &header, err));
    if (leat__jpeg_scan_start(r->scan, data, len)) {
        *coefs = *leat__jpeg_scan_frame(r->scan);
        /* libjpeg's limit on memory is the output's: files beyond it are its to refuse */
        if (room_needed(coefs) <= bounds.max_out_bytes) {
            LEAT_TRY(make_room(r, coefs, err));
            if (scan_all(r, coefs, leat__decode_deadline(&bounds), &end)) {
                set_parts(coefs, data, len, header.scan_offset, end);
                return 0;
            }
        }
    }
    return read_libjpeg(r, data, len, &bounds, &header, coefs, err);
}

/* ---- pixels ---- */

static void put_rows(leat__jpeg_coef_reader *r, leat__planes *out)
{
    struct jpeg_decompress_struct *c = &r->cinfo;
    jpeg_start_output(c, c->input_scan_number);
    for (uint32_t y = 0; y < out->height; y++) {
        JSAMPROW row = r->row;
        uint8_t *plane[4] = {0};
        for (uint32_t i = 0; i < out->channels; i++)
            plane[i] = out->plane[i] + y * out->stride;
        jpeg_read_scanlines(c, &row, 1);
        leat__planar_split(r->row, out->width, out->channels, plane);
    }
}

static int put_guarded(leat__jpeg_coef_reader *r, leat__planes *out)
{
    if (setjmp(r->glue.jump)) {
        jpeg_abort_decompress(&r->cinfo);
        return r->glue.code;
    }
    put_rows(r, out);
    jpeg_finish_output(&r->cinfo);
    return 0;
}

int leat__jpeg_coef_pixels(leat__jpeg_coef_reader *r, leat__planes *out, leat_error *err)
{
    const struct jpeg_decompress_struct *c = &r->cinfo;
    uint32_t channels = c->num_components == 1 ? 1 : 3;
    size_t bytes = (size_t)c->image_width * channels;
    LEAT_TRY(leat__planes_resize(out, c->image_width, c->image_height, channels, err));
    if (bytes > r->row_capacity) {
        uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, bytes);
        if (!grown) return leat__fail_nomem(err, bytes, "JPEG rows");
        leat__free(r->row);
        r->row = grown;
        r->row_capacity = bytes;
    }
    r->glue.err = err;
    return put_guarded(r, out);
}
