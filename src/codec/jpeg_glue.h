/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts libjpeg's errors to leat's: an error manager that jumps, a memory source that knows its offset
 * and never invents an end, a progress monitor that enforces limits. Private to the JPEG files of this
 * module, the only ones that include jpeglib.h and setjmp.h.
 *
 *   if (setjmp(glue->jump)) return leat__jpeg_glue_failed(glue, …);
 *   … calls of libjpeg …
 *
 * A function that calls setjmp must not change local variables afterwards: it calls another one that does
 * the work.
 */
#ifndef LEAT_CODEC_JPEG_GLUE_H
#define LEAT_CODEC_JPEG_GLUE_H

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h> /* required by jpeglib.h */

#include <jpeglib.h>

/* libjpeg-turbo can be built with the interface of libjpeg 7 or 8 (Ubuntu's is), which has one scale per
 * direction. Here both are always equal. */
#if JPEG_LIB_VERSION >= 70
#define min_DCT_scaled_size min_DCT_h_scaled_size
#endif

#include "base/error.h"
#include "codec/codec.h"

typedef struct leat__jpeg_glue {
    struct jpeg_error_mgr mgr; /* first: libjpeg passes a pointer to it */
    struct jpeg_source_mgr src;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    void *(*alloc_small)(j_common_ptr cinfo, int pool, size_t size); /* libjpeg's own */
    size_t len;                                                      /* of the source */
    leat__decode_limits limits;
    leat_error *err;
    int code;
} leat__jpeg_glue;

/* Sets up cinfo->err; call before jpeg_create_…. */
void leat__jpeg_glue_init(leat__jpeg_glue *g, struct jpeg_common_struct *cinfo);

/* Creates a decompressor whose tables are freed with each image. Jumps when out of memory. */
void leat__jpeg_glue_create(leat__jpeg_glue *g, struct jpeg_decompress_struct *cinfo);

/* Points a decompressor at the data, under these limits, and removes the tables of earlier images. A file
 * without Huffman tables gets the standard ones; a file without quantisation tables is refused. `err`
 * receives the next failure. */
void leat__jpeg_glue_source(leat__jpeg_glue *g, struct jpeg_decompress_struct *cinfo, const uint8_t *data,
                            size_t len, const leat__decode_limits *limits, leat_error *err);

/* Returns the bytes that the decompressor has consumed. */
static inline size_t leat__jpeg_glue_offset(const leat__jpeg_glue *g)
{
    return g->len - g->src.bytes_in_buffer;
}

/* Reports a failure inside or between libjpeg calls: jumps. */
_Noreturn void leat__jpeg_glue_fail(leat__jpeg_glue *g, int code, const char *text);

#endif
