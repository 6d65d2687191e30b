/* SPDX-License-Identifier: Apache-2.0
 *
 * AVIF through libavif: 8-bit RGB or RGBA, from files of 8, 10 and 12 bits. Only the first frame of a
 * sequence is decoded. Mirroring and rotation that the file requests become its orientation, as in Pillow.
 * The library uses one thread per image. One state per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include <avif/avif.h>

#include "base/num.h"
#include "codec/library.h"
#include "codec/magic.h"
#include "codec/whole.h"

#define NAME "AVIF"
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#if AVIF_VERSION >= 1000000
#define SONAME "16"
#else
#define SONAME "15"
#endif

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(avifDecoderCreate) X(avifDecoderDestroy) X(avifDecoderSetIOMemory) X(avifDecoderParse)         \
    X(avifDecoderNextImage) X(avifRGBImageSetDefaults) X(avifImageYUVToRGB) X(avifResultToString)    \
    X(avifVersion) X(avifGetPixelFormatInfo)
/* clang-format on */

static struct {
    leat__once once;
    int rc;
    leat_error err;
#define X(f) __typeof__(f) *f;
    FUNCTIONS(X)
#undef X
} lib = {.once = LEAT__ONCE_INIT};

static void load(void)
{
    const leat__library_symbol symbols[] = {
#define X(f) {#f, &lib.f},
        FUNCTIONS(X)
#undef X
    };
    static const char built[] = TEXT(AVIF_VERSION_MAJOR) "." TEXT(AVIF_VERSION_MINOR) ".";
    lib.rc = leat__library_load(NAME, "libavif.so." SONAME, "libavif" SONAME, symbols, LEAT_COUNT(symbols),
                                &lib.err);
    /* before 1.0, structs could change with every minor version */
    if (lib.rc == 0 && AVIF_VERSION < 1000000 && strncmp(lib.avifVersion(), built, strlen(built)) != 0)
        lib.rc = leat__fail(&lib.err, LEAT_ENOTSUP, "libavif %s is installed, this build needs %s*",
                            lib.avifVersion(), built);
}

static int failed(avifResult result, leat_error *err)
{
    int code = LEAT_EDATA;
    if (result == AVIF_RESULT_OUT_OF_MEMORY) return leat__fail_nomem(err, 0, "an AVIF image");
    if (result == AVIF_RESULT_NO_CODEC_AVAILABLE || result == AVIF_RESULT_NOT_IMPLEMENTED)
        code = LEAT_ENOTSUP;
    if (result == AVIF_RESULT_UNSUPPORTED_DEPTH) code = LEAT_EFORMAT;
    if (result == AVIF_RESULT_TRUNCATED_DATA)
        return leat__fail(err, code, "AVIF: premature end of file (truncated)");
    return leat__fail(err, code, "AVIF: %s", lib.avifResultToString(result));
}

static int open_file(const uint8_t *data, size_t len, avifDecoder **d, leat_error *err)
{
    leat__once_run(&lib.once, load);
    if (lib.rc != 0) {
        if (err != NULL) *err = lib.err;
        return lib.rc;
    }
    *d = lib.avifDecoderCreate();
    if (*d == NULL) return leat__fail_nomem(err, 0, "an AVIF decoder");
    (*d)->maxThreads = 1;
    (*d)->imageDimensionLimit = 65536;
    (*d)->strictFlags = AVIF_STRICT_DISABLED; /* accept what Pillow accepts */
    avifResult result = lib.avifDecoderSetIOMemory(*d, data, len);
    if (result == AVIF_RESULT_OK) result = lib.avifDecoderParse(*d);
    if (result == AVIF_RESULT_OK) return 0;
    lib.avifDecoderDestroy(*d);
    return failed(result, err);
}

/* Returns the EXIF orientation for a rotation (anticlockwise, in quarters) followed by mirroring: Pillow's
 * table. */
static uint32_t orientation_of(const avifImage *image)
{
    static const uint8_t turned[4] = {1, 8, 3, 6};
    static const uint8_t mirrored[2][4] = {{4, 5, 2, 7}, {2, 7, 4, 5}}; /* 0: top and bottom are exchanged */
    uint32_t angle = image->transformFlags & AVIF_TRANSFORM_IROT ? image->irot.angle & 3 : 0;
    if (!(image->transformFlags & AVIF_TRANSFORM_IMIR)) return turned[angle];
#if AVIF_VERSION >= 1000000
    return mirrored[image->imir.axis & 1][angle];
#else
    return mirrored[image->imir.mode & 1][angle];
#endif
}

/* Returns the bytes per pixel of the result and of the planes, which may be copied: from the cells of a grid,
 * or for film grain. The decoder's own data takes almost 2 more. */
static uint64_t bytes_per_pixel(const avifDecoder *d, uint32_t channels)
{
    avifPixelFormatInfo format;
    lib.avifGetPixelFormatInfo(d->image->yuvFormat, &format);
    const uint32_t each = d->image->depth > 8 ? 2 : 1, alpha = d->alphaPresent ? 1 : 0;
    const uint32_t shift = (uint32_t)(format.chromaShiftX + format.chromaShiftY);
    const uint32_t chroma = d->image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 0 : 2; /* planes */
    return channels + 2 * each * (1 + alpha) + (2 * each * chroma >> shift) + 2;
}

static int describe(const avifDecoder *d, leat__image_info *info, leat_error *err)
{
    info->width = d->image->width;
    info->height = d->image->height;
    info->channels = d->alphaPresent ? 4 : 3;
    info->orientation = orientation_of(d->image);
    info->animated = d->imageCount > 1;
    info->memory = (uint64_t)info->width * info->height * bytes_per_pixel(d, info->channels);
    snprintf(info->format, sizeof info->format, "avif %s %u-bit", d->alphaPresent ? "rgba" : "rgb",
             d->image->depth);
    return leat__whole_sides(info, NAME, err);
}

static int avif_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    avifDecoder *d;
    LEAT_TRY(open_file(data, len, &d, err));
    int rc = describe(d, info, err);
    lib.avifDecoderDestroy(d);
    return rc;
}

static int read_pixels(leat__whole *w, avifDecoder *d, const leat__decode_job *job, leat_error *err)
{
    avifRGBImage rgb;
    leat__image_info now = {.orientation = 1};
    LEAT_TRY(describe(d, &now, err));
    LEAT_TRY(leat__whole_same(job, &now, NAME, err));
    avifResult result = lib.avifDecoderNextImage(d);
    if (result != AVIF_RESULT_OK) return failed(result, err);
    if (d->image->width != now.width || d->image->height != now.height)
        return leat__fail(err, LEAT_EDATA, "AVIF: the frame has another size than the header says");
    const size_t stride = (size_t)now.width * now.channels;
    LEAT_TRY(leat__whole_fit(w, stride, now.height, err));
    lib.avifRGBImageSetDefaults(&rgb, d->image);
    rgb.depth = 8;
    rgb.format = now.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = w->pixels;
    rgb.rowBytes = (uint32_t)stride;
    result = lib.avifImageYUVToRGB(d->image, &rgb);
    if (result != AVIF_RESULT_OK) return failed(result, err);
    return leat__whole_emit(w, job, w->pixels, stride, err);
}

static int avif_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    avifDecoder *d;
    LEAT_TRY(open_file(job->data, job->len, &d, err));
    int rc = read_pixels(state, d, job, err);
    lib.avifDecoderDestroy(d);
    return rc;
}

const leat__codec_ops leat__codec_ops_avif = {
    .name = "avif",
    .sniff = leat__magic_avif,
    .probe = avif_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = avif_decode,
};
