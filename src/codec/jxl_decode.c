/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG XL through libjxl: 8-bit grey, RGB or RGBA, whatever the file has. Only the first frame of an
 * animation is decoded. As in other formats, pixels are decoded as stored and the orientation is only
 * reported. The library uses one thread per image. One state per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include <jxl/decode.h>
#include <jxl/version.h>

#include "base/num.h"
#include "codec/library.h"
#include "codec/magic.h"
#include "codec/whole.h"

#define NAME "JPEG XL"
#define GROUP 256        /* the library works on squares of this size */
#define PIXEL_BYTES 30   /* maximum bytes that it holds per pixel, without extra channels, */
#define CHANNEL_BYTES 13 /* and for each extra channel, such as alpha */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define VERSION TEXT(JPEGXL_MAJOR_VERSION) "." TEXT(JPEGXL_MINOR_VERSION)

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(JxlDecoderCreate) X(JxlDecoderDestroy) X(JxlDecoderSubscribeEvents)                            \
    X(JxlDecoderSetKeepOrientation) X(JxlDecoderSetInput) X(JxlDecoderCloseInput)                    \
    X(JxlDecoderProcessInput) X(JxlDecoderGetBasicInfo) X(JxlDecoderImageOutBufferSize)              \
    X(JxlDecoderSetImageOutBuffer)
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
    lib.rc = leat__library_load(NAME, "libjxl.so." VERSION, "libjxl" VERSION, symbols, LEAT_COUNT(symbols),
                                &lib.err);
}

static int failed(JxlDecoderStatus status, leat_error *err)
{
    if (status == JXL_DEC_NEED_MORE_INPUT)
        return leat__fail(err, LEAT_EDATA, "JPEG XL: premature end of file (truncated)");
    return leat__fail(err, LEAT_EDATA, "JPEG XL: damaged data (status %d)", (int)status);
}

/* Opens a decoder and reads the header. */
static int open_file(const uint8_t *data, size_t len, int events, JxlDecoder **d, JxlBasicInfo *basic,
                     leat_error *err)
{
    leat__once_run(&lib.once, load);
    if (lib.rc != 0) {
        if (err != NULL) *err = lib.err;
        return lib.rc;
    }
    *d = lib.JxlDecoderCreate(NULL);
    if (*d == NULL) return leat__fail_nomem(err, 0, "a JPEG XL decoder");
    JxlDecoderStatus status = lib.JxlDecoderSubscribeEvents(*d, JXL_DEC_BASIC_INFO | events);
    if (status == JXL_DEC_SUCCESS) status = lib.JxlDecoderSetKeepOrientation(*d, JXL_TRUE);
    if (status == JXL_DEC_SUCCESS) status = lib.JxlDecoderSetInput(*d, data, len);
    if (status == JXL_DEC_SUCCESS) {
        lib.JxlDecoderCloseInput(*d);
        status = lib.JxlDecoderProcessInput(*d);
    }
    if (status == JXL_DEC_BASIC_INFO) status = lib.JxlDecoderGetBasicInfo(*d, basic);
    if (status == JXL_DEC_SUCCESS) return 0;
    lib.JxlDecoderDestroy(*d);
    return failed(status, err);
}

static int describe(const JxlBasicInfo *b, leat__image_info *info, leat_error *err)
{
    info->width = b->xsize;
    info->height = b->ysize;
    info->channels = b->alpha_bits > 0 ? 4 : b->num_color_channels == 1 ? 1 : 3;
    info->orientation = (uint32_t)b->orientation;
    info->animated = b->have_animation;
    info->memory = leat__ceil_div(b->xsize, GROUP) * leat__ceil_div(b->ysize, GROUP) * GROUP * GROUP *
                   (PIXEL_BYTES + CHANNEL_BYTES * (uint64_t)b->num_extra_channels);
    snprintf(info->format, sizeof info->format, "jxl %s %u-bit",
             info->channels == 4   ? "rgba"
             : info->channels == 1 ? "grey"
                                   : "rgb",
             b->bits_per_sample);
    return leat__whole_sides(info, NAME, err);
}

static int jxl_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    JxlDecoder *d;
    JxlBasicInfo basic;
    LEAT_TRY(open_file(data, len, 0, &d, &basic, err));
    lib.JxlDecoderDestroy(d);
    return describe(&basic, info, err);
}

static int read_pixels(leat__whole *w, JxlDecoder *d, const JxlBasicInfo *basic, const leat__decode_job *job,
                       leat_error *err)
{
    leat__image_info now = {.orientation = 1};
    size_t size;
    LEAT_TRY(describe(basic, &now, err));
    LEAT_TRY(leat__whole_same(job, &now, NAME, err));
    const size_t stride = (size_t)now.width * now.channels;
    const JxlPixelFormat format = {now.channels, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    LEAT_TRY(leat__whole_fit(w, stride, now.height, err));
    for (;;) {
        JxlDecoderStatus status = lib.JxlDecoderProcessInput(d);
        if (status == JXL_DEC_FULL_IMAGE) return leat__whole_emit(w, job, w->pixels, stride, err);
        if (status == JXL_DEC_NEED_IMAGE_OUT_BUFFER) {
            status = lib.JxlDecoderImageOutBufferSize(d, &format, &size);
            if (status == JXL_DEC_SUCCESS && size != stride * now.height) status = JXL_DEC_ERROR;
            if (status == JXL_DEC_SUCCESS)
                status = lib.JxlDecoderSetImageOutBuffer(d, &format, w->pixels, size);
            if (status == JXL_DEC_SUCCESS) continue;
        }
        return failed(status, err);
    }
}

static int jxl_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    JxlDecoder *d;
    JxlBasicInfo basic;
    LEAT_TRY(open_file(job->data, job->len, JXL_DEC_FULL_IMAGE, &d, &basic, err));
    int rc = read_pixels(state, d, &basic, job, err);
    lib.JxlDecoderDestroy(d);
    return rc;
}

const leat__codec_ops leat__codec_ops_jxl = {
    .name = "jxl",
    .sniff = leat__magic_jxl,
    .probe = jxl_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = jxl_decode,
};
