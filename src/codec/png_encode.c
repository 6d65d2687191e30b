/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG encoder through libspng, row by row. Called by any number of threads, each with its own
 * image.
 */
#include "codec/png_encode.h"

#include <string.h>

#include <spng.h>

#include "base/mem.h"
#include "codec/exif.h"
#include "codec/planes.h"

static void *malloc_cb(size_t size)
{
    return leat__alloc(LEAT__MEM_CODEC, size);
}

static void *realloc_cb(void *ptr, size_t size)
{
    return leat__realloc(LEAT__MEM_CODEC, ptr, size);
}

static void *calloc_cb(size_t count, size_t size)
{
    return leat__zalloc_array(LEAT__MEM_CODEC, count, size);
}

static int write_cb(spng_ctx *ctx, void *user, void *src, size_t length)
{
    return leat__buf_append(user, src, length) == 0 ? 0 : SPNG_IO_ERROR;
}

#define STOPPED (-1000) /* by the caller; not a code of libspng */

static int write_rows(spng_ctx *ctx, const leat__planes *image, const leat__encode_opts *opts, uint8_t *row)
{
    size_t bytes = (size_t)image->width * image->channels;
    int code = 0;
    for (uint32_t y = 0; y < image->height && code == 0; y++) {
        const uint8_t *plane[4] = {NULL};
        for (uint32_t c = 0; c < image->channels; c++) plane[c] = image->plane[c] + y * image->stride;
        leat__planar_join(plane, image->width, image->channels, row);
        code = spng_encode_row(ctx, row, bytes);
        if ((code == 0 || code == SPNG_EOI) && opts->progress && opts->progress(opts->cookie, y + 1) != 0)
            code = STOPPED;
    }
    return code == SPNG_EOI ? 0 : code;
}

int leat__png_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                     leat_error *err)
{
    static const uint8_t colour[5] = {0, SPNG_COLOR_TYPE_GRAYSCALE, 0, SPNG_COLOR_TYPE_TRUECOLOR,
                                      SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    if (image->channels != 1 && image->channels != 3 && image->channels != 4)
        return leat__fail(err, LEAT_EINVAL, "a PNG of %u channels", image->channels);
    struct spng_alloc alloc = {malloc_cb, realloc_cb, calloc_cb, leat__free};
    struct spng_ihdr ihdr = {image->width, image->height, 8, colour[image->channels], 0, 0, 0};
    uint8_t exif[LEAT__EXIF_MINIMAL];
    struct spng_exif turned = {leat__exif_minimal(opts->orientation, exif) - 6,
                               (char *)exif + 6}; /* without "Exif\0\0" */
    uint8_t *row = leat__alloc_array(LEAT__MEM_CODEC, image->width, image->channels);
    spng_ctx *ctx = spng_ctx_new2(&alloc, SPNG_CTX_ENCODER);
    int code = row && ctx ? 0 : SPNG_EMEM;
    if (!code) code = spng_set_png_stream(ctx, write_cb, out);
    if (!code) code = spng_set_ihdr(ctx, &ihdr);
    if (!code && opts->orientation > 1) code = spng_set_exif(ctx, &turned);
    if (!code)
        code = spng_encode_image(ctx, NULL, 0, SPNG_FMT_PNG, SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
    if (!code) code = write_rows(ctx, image, opts, row);
    spng_ctx_free(ctx);
    leat__free(row);
    if (!code) return 0;
    if (code == STOPPED) return leat__fail(err, LEAT_ECANCELED, "PNG: the encoder was stopped");
    if (leat__buf_status(out) != 0)
        return leat__fail(err, leat__buf_status(out), "no room for the encoded image");
    if (code == SPNG_EMEM) return leat__fail_nomem(err, 0, "a PNG encoder");
    return leat__fail(err, LEAT_EINTERNAL, "PNG: %s", spng_strerror(code));
}
