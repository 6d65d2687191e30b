/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which of libjpeg's warnings are errors. libjpeg continues after damage, with grey or garbled
 * pixels; leat does not:   - the data ends before the image does, a scan ends early, a code is not a
 * Huffman code, a     restart marker is missing or there are bytes before one: LEAT_EDATA;   - stray bytes
 * before another marker (padding of some cameras), an unknown JFIF version,     unusual scan parameters or
 * Adobe flags: accepted, because no pixel depends on them. Bytes after the end-of-image marker are
 * accepted and ignored.
 */
#include "codec/jpeg_glue.h"

#include <string.h>

#include <jerror.h>

#include "base/num.h"

#define MCU_PADDING (32u << 20) /* bytes by which MCUs can exceed an image, at most */
#define RST0 0xd0
#define RST7 0xd7

_Noreturn void leat__jpeg_glue_fail(leat__jpeg_glue *g, int code, const char *text)
{
    size_t offset = leat__jpeg_glue_offset(g);
    leat__fail(g->err, code, "JPEG: %s at byte %zu", text, offset);
    leat__error_at(g->err, NULL, -1, (int64_t)offset);
    g->code = code;
    longjmp(g->jump, 1);
}

static int code_of(int msg)
{
    switch (msg) {
    case JERR_OUT_OF_MEMORY: return LEAT_ENOMEM;
    case JERR_IMAGE_TOO_BIG: return LEAT_ELIMIT;
#if JPEG_LIB_VERSION < 70
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL: return LEAT_EFORMAT;
    default: return LEAT_EDATA;
    }
}

_Noreturn static void fail_with_message(j_common_ptr cinfo, int code)
{
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    leat__jpeg_glue_fail((leat__jpeg_glue *)cinfo->err, code, text);
}

static void on_error(j_common_ptr cinfo)
{
    if (cinfo->err->msg_code == JERR_NO_BACKING_STORE)
        leat__jpeg_glue_fail((leat__jpeg_glue *)cinfo->err, LEAT_ELIMIT,
                             "its coefficients exceed the limit on decoded bytes");
    fail_with_message(cinfo, code_of(cinfo->err->msg_code));
}

static bool harmless(const struct jpeg_error_mgr *mgr)
{
    switch (mgr->msg_code) {
    case JWRN_EXTRANEOUS_DATA: return mgr->msg_parm.i[1] < RST0 || mgr->msg_parm.i[1] > RST7;
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_TOO_MUCH_DATA: return true;
    default: return false;
    }
}

static void on_message(j_common_ptr cinfo, int level)
{
    if (level >= 0) return; /* trace */
    cinfo->err->num_warnings++;
    if (!harmless(cinfo->err)) fail_with_message(cinfo, LEAT_EDATA);
}

static void on_output(j_common_ptr cinfo)
{
}

static void on_progress(j_common_ptr cinfo)
{
    leat__jpeg_glue *g = (leat__jpeg_glue *)cinfo->err;
    if (!cinfo->is_decompressor) return;
    const struct jpeg_decompress_struct *c = (j_decompress_ptr)cinfo;
    uint64_t scans = (uint64_t)c->input_scan_number;
    if (scans > g->limits.max_scans) leat__jpeg_glue_fail(g, LEAT_ELIMIT, "more scans than the limit allows");
    if (scans * c->image_width * c->image_height > g->limits.max_work)
        leat__jpeg_glue_fail(g, LEAT_ELIMIT, "too many scans for an image of this size");
}

static void source_nothing(j_decompress_ptr cinfo)
{
}

/* libjpeg asks for more data. All data was given at the start, so the file is truncated. */
static boolean source_empty(j_decompress_ptr cinfo)
{
    leat__jpeg_glue_fail((leat__jpeg_glue *)cinfo->err, LEAT_EDATA, "premature end of file (truncated)");
}

static void source_skip(j_decompress_ptr cinfo, long count)
{
    leat__jpeg_glue *g = (leat__jpeg_glue *)cinfo->err;
    if (count <= 0) return;
    if ((unsigned long)count > g->src.bytes_in_buffer) {
        g->src.bytes_in_buffer = 0;
        source_empty(cinfo);
    }
    g->src.next_input_byte += count;
    g->src.bytes_in_buffer -= (size_t)count;
}

void leat__jpeg_glue_init(leat__jpeg_glue *g, struct jpeg_common_struct *cinfo)
{
    memset(g, 0, sizeof *g);
    cinfo->err = jpeg_std_error(&g->mgr);
    g->mgr.error_exit = on_error;
    g->mgr.emit_message = on_message;
    g->mgr.output_message = on_output;
    g->progress.progress_monitor = on_progress;
    g->src.init_source = source_nothing;
    g->src.fill_input_buffer = source_empty;
    g->src.skip_input_data = source_skip;
    g->src.resync_to_restart = jpeg_resync_to_restart;
    g->src.term_source = source_nothing;
}

/* libjpeg allocates quantisation and Huffman tables for the life of the decompressor. Here they live only as
 * long as the image: the next one must not see them, and the pool must not grow. */
static void *alloc_for_image(j_common_ptr cinfo, int pool, size_t size)
{
    leat__jpeg_glue *g = (leat__jpeg_glue *)cinfo->err;
    return g->alloc_small(cinfo, JPOOL_IMAGE, size);
}

void leat__jpeg_glue_create(leat__jpeg_glue *g, struct jpeg_decompress_struct *cinfo)
{
    jpeg_create_decompress(cinfo);
    g->alloc_small = cinfo->mem->alloc_small;
    cinfo->mem->alloc_small = alloc_for_image;
}

void leat__jpeg_glue_source(leat__jpeg_glue *g, struct jpeg_decompress_struct *cinfo, const uint8_t *data,
                            size_t len, const leat__decode_limits *limits, leat_error *err)
{
    jpeg_abort_decompress(cinfo); /* frees the tables of the previous image */
    for (int i = 0; i < NUM_QUANT_TBLS; i++) cinfo->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++) cinfo->dc_huff_tbl_ptrs[i] = cinfo->ac_huff_tbl_ptrs[i] = NULL;
    g->src.next_input_byte = data;
    g->src.bytes_in_buffer = len;
    g->len = len;
    g->limits = *limits;
    g->err = err;
    g->code = 0;
    g->mgr.num_warnings = 0;
    cinfo->src = &g->src;
    cinfo->progress = &g->progress;
    /* Whole-image buffers (progressive files) hold 2 bytes per coefficient, of 4 components when the output
     * has 3, in whole MCUs. No image within the output limit reaches this limit. */
    uint64_t output = LEAT_MIN(limits->max_out_bytes, (uint64_t)INT64_MAX / 4);
    cinfo->mem->max_memory_to_use = (long)(output * 3 + MCU_PADDING);
}
