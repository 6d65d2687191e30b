/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads quantised coefficients into plain arrays. leat's own decoder (jpeg_scan.c) reads the files that it
 * supports; libjpeg reads all others and decides whether a file is damaged. The whole file is read to its
 * end marker, under the same rules on damage as a decode (jpeg_glue.c). libjpeg reads in its buffered-image
 * mode, which keeps the coefficients for a separate output pass. If leat has read the file, libjpeg gets
 * the file's own headers with a blank image, and then the coefficients. One reader per thread.
 */
#include "codec/jpeg_coef.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_glue.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_scan.h"
#include "codec/planes.h"
#include "dsp/idct.h"

#define ALIGN 64
#define PAD (LEAT__IDCT_BLOCKS_PAD * 64 * sizeof(int16_t)) /* kernels read past the end */
#define ODD 1 /* unaligned: libjpeg-turbo writes aligned rows past the caches, but they are read at once */

struct leat__jpeg_coef_reader {
    struct jpeg_decompress_struct cinfo;
    leat__jpeg_glue glue;
    leat__jpeg_scan *scan;
    int16_t *block;
    size_t capacity; /* bytes */
    uint8_t *row;    /* one row of interleaved pixels, starting at ODD */
    size_t row_capacity;
    leat__decode_limits bounds; /* of the current file */
    leat__jpeg_coefs own;       /* the file as read by leat; no components: libjpeg has read it */
    leat__buf blank;            /* blank file for libjpeg when leat has read the file */
    bool in_output;
};

/* The only function here with setjmp: see jpeg_glue.h. */
static int create_guarded(leat__jpeg_coef_reader *r)
{
    if (setjmp(r->glue.jump)) return r->glue.code;
    leat__jpeg_glue_create(&r->glue, &r->cinfo);
    return 0;
}

int leat__jpeg_coef_reader_open(leat__jpeg_coef_reader **reader, leat_error *err)
{
    *reader = NULL;
    leat__jpeg_coef_reader *r = LEAT_NEW(CODEC, leat__jpeg_coef_reader);
    if (!r) return leat__fail_nomem(err, sizeof *r, "a coefficient reader");
    leat__buf_init(&r->blank, LEAT__MEM_CODEC, (size_t)1 << 31);
    leat__jpeg_glue_init(&r->glue, (struct jpeg_common_struct *)&r->cinfo);
    r->glue.err = err;
    int rc = create_guarded(r);
    if (rc == 0) rc = leat__jpeg_scan_open(&r->scan, err);
    if (rc == 0) *reader = r;
    else leat__jpeg_coef_reader_close(&r);
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
    leat__buf_reset(&r->blank);
    leat__free(r);
    *reader = NULL;
}

static void describe_component(const struct jpeg_decompress_struct *c, int index, leat__jpeg_component *out)
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

/* Returns the bytes of all coefficients. At most 2^16 squared blocks' worth, so nothing overflows. */
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
    if (total > SIZE_MAX / 2) return leat__fail(err, LEAT_EOVERFLOW, "JPEG coefficients do not fit memory");
    if (total > r->capacity) {
        int16_t *grown = leat__alloc_aligned(LEAT__MEM_CODEC, (size_t)total + PAD, ALIGN);
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
        JBLOCKARRAY rows = c->mem->access_virt_barray((j_common_ptr)c, array, y, (JDIMENSION)out->v, FALSE);
        for (uint32_t i = 0; i < out->v; i++, dst += row) memcpy(dst, rows[i], row * sizeof(int16_t));
    }
    /* NULL when no scan has the component; libjpeg then decodes it to grey, as with zeros. A scan without its
     * table was refused. */
    const JQUANT_TBL *table = c->comp_info[index].quant_table;
    for (int i = 0; i < 64; i++) out->quant[i] = table ? table->quantval[i] : 0;
}

static leat__jpeg_colour colour_of(const struct jpeg_decompress_struct *c)
{
    switch (c->jpeg_color_space) {
    case JCS_GRAYSCALE: return LEAT__JPEG_GREY;
    case JCS_RGB: return LEAT__JPEG_RGB;
    case JCS_CMYK: return LEAT__JPEG_CMYK;
    case JCS_YCCK: return LEAT__JPEG_YCCK;
    default: return LEAT__JPEG_YCC;
    }
}

/* True for grey, or YCbCr that every libjpeg can upsample. Other files may have coefficients but no
 * pixels. */
static bool has_pixels(const struct jpeg_decompress_struct *c)
{
    if (c->num_components == 1) return c->jpeg_color_space == JCS_GRAYSCALE;
    if (c->num_components != 3 || c->jpeg_color_space != JCS_YCbCr) return false;
    for (int i = 1; i < 3; i++)
        if (c->comp_info[i].h_samp_factor != 1 || c->comp_info[i].v_samp_factor != 1) return false;
    return true;
}

/* Reads all scans, with the settings of jpeg_decode.c for the pixels that may be requested later. */
static void read_for_pixels(struct jpeg_decompress_struct *c)
{
    c->buffered_image = TRUE;
    c->out_color_space = c->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c->dct_method = JDCT_ISLOW;
    c->do_fancy_upsampling = TRUE;
    c->do_block_smoothing = FALSE;
    jpeg_start_decompress(c);
    do {
        c->progress->progress_monitor((j_common_ptr)c); /* checks the limits */
    } while (jpeg_consume_input(c) != JPEG_REACHED_EOI);
}

static int read_all(leat__jpeg_coef_reader *r, const leat__jpeg_header *header, leat__jpeg_coefs *coefs,
                    leat_error *err)
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
    for (uint32_t i = 0; i < coefs->components; i++) describe_component(c, (int)i, &coefs->component[i]);
    LEAT_TRY(make_room(r, coefs, err));
    for (uint32_t i = 0; i < coefs->components; i++)
        copy_component(r, arrays[i], (int)i, &coefs->component[i]);
    if (coefs->pixels == NULL) jpeg_finish_decompress(c);
    return 0;
}

static int read_guarded(leat__jpeg_coef_reader *r, const leat__jpeg_header *header, leat__jpeg_coefs *coefs,
                        leat_error *err)
{
    if (setjmp(r->glue.jump)) {
        jpeg_abort_decompress(&r->cinfo);
        return r->glue.code;
    }
    return read_all(r, header, coefs, err);
}

/* Checks headers and limits, for both decoders. */
static int prepare(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                   const leat__decode_limits *limits, leat__jpeg_header *header, leat_error *err)
{
    r->bounds = limits ? *limits : (leat__decode_limits){0};
    leat__decode_limits_fill(&r->bounds);
    LEAT_TRY(leat__jpeg_header_read(data, len, header, err));
    leat__image_info info = {.width = header->width, .height = header->height};
    LEAT_TRY(leat__decode_limits_check(&r->bounds, &info, err));
    jpeg_abort_decompress(&r->cinfo); /* ends the output pass of the previous file */
    r->in_output = false;
    r->own.components = 0;
    return 0;
}

static void set_parts(leat__jpeg_coefs *coefs, const uint8_t *data, size_t len, size_t scan_offset,
                      size_t end)
{
    coefs->header = data;
    coefs->header_len = scan_offset;
    coefs->scan = data + scan_offset;
    coefs->scan_len = end - 2 - scan_offset;
    coefs->tail = data + end - 2;
    coefs->tail_len = len - (end - 2);
}

static int read_libjpeg(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                        const leat__jpeg_header *header, leat__jpeg_coefs *coefs, leat_error *err)
{
    memset(coefs, 0, sizeof *coefs);
    leat__jpeg_glue_source(&r->glue, &r->cinfo, data, len, &r->bounds, err);
    LEAT_TRY(read_guarded(r, header, coefs, err));
    size_t end = leat__jpeg_glue_offset(&r->glue); /* just after EOI */
    if (end < header->scan_offset + 2 || data[end - 2] != 0xff || data[end - 1] != 0xd9)
        return leat__fail(err, LEAT_EDATA, "JPEG: no end marker at byte %zu", end);
    set_parts(coefs, data, len, header->scan_offset, end);
    return 0;
}

int leat__jpeg_coef_read_libjpeg(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                                 const leat__decode_limits *limits, leat__jpeg_coefs *coefs, leat_error *err)
{
    leat__jpeg_header header;
    LEAT_TRY(prepare(r, data, len, limits, &header, err));
    return read_libjpeg(r, data, len, &header, coefs, err);
}

/* ---- leat's own decoder ---- */

/* Clears the rows and columns of a grid that no MCU covers: padding in scans of one component. */
static void clear_padding(const leat__jpeg_component *c, int16_t *block)
{
    size_t row = 64 * (size_t)c->grid_x, used = 64 * (size_t)c->blocks_x;
    for (uint32_t y = 0; y < c->grid_y; y++) {
        size_t from = y < c->blocks_y ? used : 0;
        memset(block + y * row + from, 0, (row - from) * sizeof *block);
    }
}

/* Decodes all MCUs. True when all were decoded and the file ends after them. */
static bool scan_all(leat__jpeg_coef_reader *r, leat__jpeg_coefs *coefs, size_t *end)
{
    const leat__jpeg_scan *s = r->scan;
    bool alone = coefs->components == 1;
    uint32_t mcus_x = leat__jpeg_scan_mcus_x(s), mcus_y = leat__jpeg_scan_mcus_y(s);
    leat__jpeg_cursor at;
    leat__jpeg_traits traits = {0};
    leat__jpeg_blocks to = {.traits = &traits};
    for (uint32_t c = 0; c < coefs->components; c++) {
        to.block[c] = r->block + (coefs->component[c].coefs - r->block);
        to.stride[c] = coefs->component[c].grid_x;
    }
    if (alone) clear_padding(&coefs->component[0], to.block[0]);
    leat__jpeg_scan_begin(s, &at);
    for (uint32_t y = 0; y < mcus_y; y++) {
        if (!leat__jpeg_scan_mcus(s, &at, mcus_x, &to)) return false;
        for (uint32_t c = 0; c < coefs->components; c++)
            to.block[c] += 64 * to.stride[c] * (alone ? 1 : coefs->component[c].v);
    }
    if (!leat__jpeg_scan_finish(s, &at, end, &traits)) return false;
    coefs->usual = !traits.odd && !(traits.ones && traits.zeros);
    coefs->pads_zero = traits.zeros;
    return true;
}

bool leat__jpeg_coef_begin(leat__jpeg_coef_reader *r, const leat__jpeg_scan *scan, uint64_t most,
                           leat__jpeg_coefs *coefs)
{
    *coefs = *leat__jpeg_scan_frame(scan);
    for (uint32_t c = 0; c < coefs->components; c++)
        coefs->component[c].grid_y = coefs->components == 1 ? 1 : coefs->component[c].v;
    if (room_needed(coefs) > most || make_room(r, coefs, NULL) != 0) return false;
    if (coefs->components == 1) clear_padding(&coefs->component[0], r->block);
    return true;
}

bool leat__jpeg_coef_put(leat__jpeg_coef_reader *r, const leat__jpeg_scan *scan,
                         const leat__jpeg_coefs *coefs, leat__jpeg_cursor *at, uint32_t count)
{
    const uint32_t x = at->mcu % leat__jpeg_scan_mcus_x(scan);
    leat__jpeg_blocks to = {.traits = NULL};
    for (uint32_t c = 0; c < coefs->components; c++) {
        const leat__jpeg_component *of = &coefs->component[c];
        const size_t first = (size_t)x * (coefs->components == 1 ? 1 : of->h);
        to.block[c] = r->block + (of->coefs - r->block) + 64 * first;
        to.stride[c] = of->grid_x;
    }
    return leat__jpeg_scan_mcus(scan, at, count, &to);
}

/* Like has_pixels, for a file that leat has read. */
static bool could_have_pixels(const leat__jpeg_coefs *f)
{
    if (f->components == 1) return f->colour == LEAT__JPEG_GREY;
    if (f->components != 3 || f->colour != LEAT__JPEG_YCC) return false;
    for (int i = 1; i < 3; i++)
        if (f->component[i].h != 1 || f->component[i].v != 1) return false;
    return true;
}

int leat__jpeg_coef_read(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                         const leat__decode_limits *limits, leat__jpeg_coefs *coefs, leat_error *err)
{
    leat__jpeg_header header;
    size_t end;
    LEAT_TRY(prepare(r, data, len, limits, &header, err));
    if (leat__jpeg_scan_start(r->scan, data, len)) {
        *coefs = *leat__jpeg_scan_frame(r->scan);
        /* libjpeg's memory limit is that of the output: it must refuse files beyond it */
        if (room_needed(coefs) <= r->bounds.max_out_bytes) {
            LEAT_TRY(make_room(r, coefs, err));
            if (scan_all(r, coefs, &end)) {
                set_parts(coefs, data, len, header.scan_offset, end);
                if (could_have_pixels(coefs)) coefs->pixels = r;
                r->own = *coefs;
                return 0;
            }
        }
    }
    return read_libjpeg(r, data, len, &header, coefs, err);
}

/* ---- pixels ---- */

/* Writes the segments that pixels depend on. The frame is marked as progressive, because such a file is valid
 * with one bit per block. */
static void put_blank_headers(leat__buf *out, const leat__jpeg_coefs *f)
{
    enum { SOF0 = 0xc0, SOF1 = 0xc1, SOF2 = 0xc2, DQT = 0xdb, APP0 = 0xe0, APP14 = 0xee };
    leat__buf_append(out, f->header, 2);
    for (size_t at = 2; at + 4 <= f->header_len;) { /* segments are complete: jpeg_scan.c has checked them */
        const uint8_t *p = f->header + at;
        size_t size = 2 + ((size_t)p[2] << 8 | p[3]), to = out->len;
        bool frame = p[1] == SOF0 || p[1] == SOF1;
        if (frame || p[1] == DQT || p[1] == APP0 || p[1] == APP14) leat__buf_append(out, p, size);
        if (frame && out->status == 0) out->data[to + 1] = (char)SOF2;
        at += size;
    }
}

/* Writes a scan with a single code, a zero bit, for "same as the previous block": all zero. */
static void put_blank_scan(leat__buf *out, const leat__jpeg_coefs *f)
{
    static const uint8_t code[4 + 1 + 16 + 1] = {0xff, 0xc4, 0, 20, 0, 1};
    const uint8_t start[5] = {0xff, 0xda, 0, (uint8_t)(6 + 2 * f->components), (uint8_t)f->components};
    const uint8_t means_only[3] = {0, 0, 0}, end[2] = {0xff, 0xd9};
    uint64_t blocks = 0;
    leat__buf_append(out, code, sizeof code);
    leat__buf_append(out, start, sizeof start);
    for (uint32_t c = 0; c < f->components; c++) {
        const leat__jpeg_component *comp = &f->component[c];
        leat__buf_putc(out, (char)comp->id);
        leat__buf_putc(out, 0);
        blocks += f->components == 1 ? (uint64_t)comp->blocks_x * comp->blocks_y
                                     : (uint64_t)f->mcus_x * f->mcus_y * comp->h * comp->v;
    }
    leat__buf_append(out, means_only, sizeof means_only);
    leat__buf_zeros(out, (size_t)leat__ceil_div(blocks, 8));
    leat__buf_append(out, end, sizeof end);
}

/* Copies coefficients to libjpeg: the reverse of copy_component. */
static void fill_component(leat__jpeg_coef_reader *r, jvirt_barray_ptr array,
                           const leat__jpeg_component *from)
{
    struct jpeg_decompress_struct *c = &r->cinfo;
    const int16_t *src = from->coefs;
    size_t row = (size_t)from->grid_x * 64;
    for (uint32_t y = 0; y < from->grid_y; y += from->v) {
        JBLOCKARRAY rows = c->mem->access_virt_barray((j_common_ptr)c, array, y, (JDIMENSION)from->v, TRUE);
        for (uint32_t i = 0; i < from->v; i++, src += row) memcpy(rows[i], src, row * sizeof(int16_t));
    }
}

static void read_blank(leat__jpeg_coef_reader *r)
{
    struct jpeg_decompress_struct *c = &r->cinfo;
    const leat__jpeg_coefs *f = &r->own;
    jpeg_read_header(c, TRUE);
    bool same = has_pixels(c) && c->image_width == f->width && c->image_height == f->height &&
                c->num_components == (int)f->components;
    for (int i = 0; same && i < c->num_components; i++)
        same = c->comp_info[i].h_samp_factor == (int)f->component[i].h &&
               c->comp_info[i].v_samp_factor == (int)f->component[i].v;
    if (!same) leat__jpeg_glue_fail(&r->glue, LEAT_EDATA, "two headers that disagree");
    read_for_pixels(c);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(c);
    for (uint32_t i = 0; i < f->components; i++) fill_component(r, arrays[i], &f->component[i]);
}

static int begin_guarded(leat__jpeg_coef_reader *r, bool blank)
{
    if (setjmp(r->glue.jump)) {
        jpeg_abort_decompress(&r->cinfo);
        r->in_output = false;
        return r->glue.code;
    }
    if (blank) read_blank(r);
    if (r->in_output) jpeg_finish_output(&r->cinfo);
    jpeg_start_output(&r->cinfo, r->cinfo.input_scan_number);
    r->in_output = true;
    return 0;
}

static int begin_output(leat__jpeg_coef_reader *r, leat_error *err)
{
    bool blank = r->own.components != 0;
    r->glue.err = err;
    if (blank) {
        leat__buf_clear(&r->blank);
        put_blank_headers(&r->blank, &r->own);
        put_blank_scan(&r->blank, &r->own);
        if (leat__buf_status(&r->blank) != 0) return leat__fail_nomem(err, r->blank.len, "a blank JPEG");
        jpeg_abort_decompress(&r->cinfo);
        r->in_output = false;
        leat__jpeg_glue_source(&r->glue, &r->cinfo, (const uint8_t *)r->blank.data, r->blank.len, &r->bounds,
                               err);
    }
    return begin_guarded(r, blank);
}

int leat__jpeg_coef_pixels(leat__jpeg_coef_reader *r, leat_error *err)
{
    const struct jpeg_decompress_struct *c = &r->cinfo;
    LEAT_TRY(begin_output(r, err));
    size_t bytes = (size_t)c->output_width * (size_t)c->output_components + ODD;
    if (bytes > r->row_capacity) {
        uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, bytes);
        if (!grown) return leat__fail_nomem(err, bytes, "JPEG rows");
        leat__free(r->row);
        r->row = grown;
        r->row_capacity = bytes;
    }
    return 0;
}

static int row_guarded(leat__jpeg_coef_reader *r)
{
    if (setjmp(r->glue.jump)) {
        jpeg_abort_decompress(&r->cinfo);
        r->in_output = false;
        return r->glue.code;
    }
    JSAMPROW row = r->row + ODD;
    jpeg_read_scanlines(&r->cinfo, &row, 1);
    return 0;
}

int leat__jpeg_coef_row(leat__jpeg_coef_reader *r, const uint8_t **row, leat_error *err)
{
    const struct jpeg_decompress_struct *c = &r->cinfo;
    if (!r->in_output || c->output_scanline >= c->output_height)
        return leat__fail(err, LEAT_EINVAL, "no row of pixels is left");
    r->glue.err = err;
    *row = r->row + ODD;
    return row_guarded(r);
}
