/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads quantised coefficients through libjpeg into plain arrays. The whole file is read to
 * its end marker, under the same rules on damage as a decode (jpeg_glue.c). Where pixels can
 * follow, the file is read in libjpeg's buffered-image mode, which keeps the coefficients for
 * an output pass of its own. One reader per thread.
 */
#include "codec/jpeg_coef.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_glue.h"
#include "codec/jpeg_header.h"
#include "codec/planes.h"

#define ALIGN 64

struct leat__jpeg_coef_reader {
    struct jpeg_decompress_struct cinfo;
    leat__jpeg_glue glue;
    int16_t *block;
    size_t capacity; /* bytes */
    uint8_t *row;    /* one of interleaved pixels */
    size_t row_capacity;
};

int leat__jpeg_coef_reader_open(leat__jpeg_coef_reader **reader, leat_error *err)
{
    leat__jpeg_coef_reader *r = LEAT_NEW(CODEC, leat__jpeg_coef_reader);
    if (!r) return leat__fail_nomem(err, sizeof *r, "a coefficient reader");
    leat__jpeg_glue_init(&r->glue, (struct jpeg_common_struct *)&r->cinfo);
    r->glue.err = err;
    if (setjmp(r->glue.jump)) {
        int code = r->glue.code;
        leat__free(r);
        return code;
    }
    jpeg_create_decompress(&r->cinfo);
    *reader = r;
    return 0;
}

void leat__jpeg_coef_reader_close(leat__jpeg_coef_reader **reader)
{
    leat__jpeg_coef_reader *r = *reader;
    if (!r) return;
    jpeg_destroy_decompress(&r->cinfo);
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

static int make_room(leat__jpeg_coef_reader *r, leat__jpeg_coefs *coefs, leat_error *err)
{
    uint64_t total = 0, at[4] = {0};
    for (uint32_t i = 0; i < coefs->components; i++) {
        const leat__jpeg_component *c = &coefs->component[i];
        uint64_t bytes;
        at[i] = total;
        if (!leat__mul_u64((uint64_t)c->grid_x * c->grid_y, 64 * sizeof(int16_t), &bytes) ||
            !leat__add_u64(total, bytes, &total) || total > SIZE_MAX / 2)
            return leat__fail(err, LEAT_EOVERFLOW, "JPEG coefficients do not fit memory");
    }
    if (total > r->capacity) {
        int16_t *grown = leat__alloc_aligned(LEAT__MEM_CODEC, (size_t)total, ALIGN);
        if (!grown) return leat__fail_nomem(err, total, "JPEG coefficients");
        leat__free(r->block);
        r->block = grown;
        r->capacity = (size_t)total;
    }
    for (uint32_t i = 0; i < coefs->components; i++)
        coefs->component[i].coefs = r->block + at[i] / sizeof(int16_t);
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

int leat__jpeg_coef_read(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                         const leat__decode_limits *limits, leat__jpeg_coefs *coefs,
                         leat_error *err)
{
    leat__decode_limits bounds = {0};
    if (limits) bounds = *limits;
    leat__decode_limits_fill(&bounds);
    leat__jpeg_header header;
    LEAT_TRY(leat__jpeg_header_read(data, len, &header, err));
    leat__image_info info = {.width = header.width, .height = header.height};
    LEAT_TRY(leat__decode_limits_check(&bounds, &info, err));
    memset(coefs, 0, sizeof *coefs);
    jpeg_abort_decompress(&r->cinfo); /* the file before, had it pixels */
    leat__jpeg_glue_source(&r->glue, &r->cinfo, data, len, &bounds,
                           leat__decode_deadline(&bounds), err);
    LEAT_TRY(read_guarded(r, &header, coefs, err));

    size_t end = leat__jpeg_glue_offset(&r->glue); /* just behind EOI */
    if (end < header.scan_offset + 2 || data[end - 2] != 0xff || data[end - 1] != 0xd9)
        return leat__fail(err, LEAT_EDATA, "JPEG: no end marker at byte %zu", end);
    coefs->header = data;
    coefs->header_len = header.scan_offset;
    coefs->scan = data + header.scan_offset;
    coefs->scan_len = end - 2 - header.scan_offset;
    coefs->tail = data + end - 2;
    coefs->tail_len = len - (end - 2);
    return 0;
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
