/* SPDX-License-Identifier: Apache-2.0
 *
 * HEIF (HEIC) through libheif: the primary image as 8-bit RGB or RGBA. The library applies rotation,
 * mirroring and cropping that the file requests, so the orientation is always 1. One state per decoder,
 * used by one thread at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <libheif/heif.h>

#include "base/num.h"
#include "codec/library.h"
#include "codec/magic.h"
#include "codec/whole.h"

#define NAME "HEIF"

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(heif_context_alloc) X(heif_context_free) X(heif_context_read_from_memory_without_copy)         \
    X(heif_context_get_primary_image_handle) X(heif_context_get_number_of_top_level_images)          \
    X(heif_image_handle_release) X(heif_image_handle_get_width) X(heif_image_handle_get_height)      \
    X(heif_image_handle_has_alpha_channel) X(heif_image_handle_get_luma_bits_per_pixel)              \
    X(heif_decode_image) X(heif_image_release)                                                       \
    X(heif_image_get_width) X(heif_image_get_height) X(heif_image_get_plane_readonly)                \
    X(heif_context_set_max_decoding_threads) X(heif_context_set_maximum_image_size_limit)
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
    lib.rc = leat__library_load(NAME, "libheif.so.1", "libheif1", symbols, LEAT_COUNT(symbols), &lib.err);
}

typedef struct file {
    struct heif_context *context;
    struct heif_image_handle *handle;
} file;

static int failed(struct heif_error e, leat_error *err)
{
    int code = LEAT_EDATA;
    if (e.code == heif_error_Memory_allocation_error && e.subcode != heif_suberror_Security_limit_exceeded)
        code = LEAT_ENOMEM;
    else if (e.code == heif_error_Memory_allocation_error) code = LEAT_ELIMIT;
    if (e.code == heif_error_Unsupported_feature || e.code == heif_error_Unsupported_filetype)
        code = LEAT_EFORMAT;
    return leat__fail(err, code, "HEIF: %s", e.message ? e.message : "damaged data");
}

static void close_file(file *f)
{
    if (f->handle) lib.heif_image_handle_release(f->handle);
    if (f->context) lib.heif_context_free(f->context);
}

static int open_file(const uint8_t *data, size_t len, file *f, leat_error *err)
{
    *f = (file){0};
    leat__once_run(&lib.once, load);
    if (lib.rc != 0) {
        if (err != NULL) *err = lib.err;
        return lib.rc;
    }
    f->context = lib.heif_context_alloc();
    if (f->context == NULL) return leat__fail_nomem(err, 0, "a HEIF decoder");
    lib.heif_context_set_max_decoding_threads(f->context, 0); /* decode in the calling thread */
    struct heif_error e = lib.heif_context_read_from_memory_without_copy(f->context, data, len, NULL);
    if (e.code == heif_error_Ok) e = lib.heif_context_get_primary_image_handle(f->context, &f->handle);
    return e.code == heif_error_Ok ? 0 : failed(e, err);
}

/* The result, the decoder's planes, and copies of both in between, which have 16-bit samples if the file has
 * more than 8 bits. */
static uint64_t bytes_per_pixel(const file *f, uint32_t channels)
{
    return lib.heif_image_handle_get_luma_bits_per_pixel(f->handle) > 8 ? 5 * (uint64_t)channels
                                                                        : channels + 5;
}

static int describe(const file *f, leat__image_info *info, leat_error *err)
{
    int width = lib.heif_image_handle_get_width(f->handle);
    int height = lib.heif_image_handle_get_height(f->handle);
    if (width <= 0 || height <= 0)
        return leat__fail(err, LEAT_EDATA, "HEIF: image of zero or impossible size");
    info->width = (uint32_t)width;
    info->height = (uint32_t)height;
    info->channels = lib.heif_image_handle_has_alpha_channel(f->handle) ? 4 : 3;
    info->memory = (uint64_t)info->width * info->height * bytes_per_pixel(f, info->channels);
    info->animated = lib.heif_context_get_number_of_top_level_images(f->context) > 1;
    snprintf(info->format, sizeof info->format, "heif %s", info->channels == 4 ? "rgba" : "rgb");
    return leat__whole_sides(info, NAME, err);
}

static int heif_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    file f;
    int rc = open_file(data, len, &f, err);
    if (rc == 0) rc = describe(&f, info, err);
    close_file(&f);
    return rc;
}

static int read_pixels(leat__whole *w, const file *f, const leat__decode_job *job, leat_error *err)
{
    leat__image_info now = {.orientation = 1};
    struct heif_image *image = NULL;
    int stride = 0;
    LEAT_TRY(describe(f, &now, err));
    LEAT_TRY(leat__whole_same(job, &now, NAME, err));
    /* Images inside may claim more than the header: 2.4 GB from a file of 3 KB. They may also be slightly
     * larger than the image, which is cropped from them. Some versions of libheif limit each side to this
     * number, others the pixels to its square. */
    uint32_t side = (uint32_t)sqrt((double)LEAT_MIN(job->limits.max_pixels, UINT64_C(1) << 60));
    side = LEAT_MAX(side, LEAT_MAX(now.width, now.height));
    lib.heif_context_set_maximum_image_size_limit(f->context, (int)LEAT_MIN(side, (uint32_t)INT32_MAX));
    struct heif_error e = lib.heif_decode_image(
        f->handle, &image, heif_colorspace_RGB,
        now.channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, NULL);
    if (e.code != heif_error_Ok) return failed(e, err);
    const uint8_t *pixels = lib.heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
    int rc;
    if (pixels == NULL || lib.heif_image_get_width(image, heif_channel_interleaved) != (int)now.width ||
        lib.heif_image_get_height(image, heif_channel_interleaved) != (int)now.height)
        rc = leat__fail(err, LEAT_EDATA, "HEIF: the image has another size than the header says");
    else rc = leat__whole_emit(w, job, pixels, (size_t)stride, err);
    lib.heif_image_release(image);
    return rc;
}

static int heif_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    file f;
    int rc = open_file(job->data, job->len, &f, err);
    if (rc == 0) rc = read_pixels(state, &f, job, err);
    close_file(&f);
    return rc;
}

const leat__codec_ops leat__codec_ops_heif = {
    .name = "heif",
    .sniff = leat__magic_heif,
    .probe = heif_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = heif_decode,
};
