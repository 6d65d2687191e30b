/* SPDX-License-Identifier: Apache-2.0
 *
 * Images between Python and the codecs: decodes them to arrays, restores them as files, describes them for
 * the index. Works without the GIL, on private memory.
 */
#include "py_leat.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/raw.h"
#include "codec/tile/tile.h"
#include "codec/wide.h"
#include "ingest/image_cost.h"
#include "ingest/pixel_file.h"
#include "pack/kind.h"

#define FILE_MAX ((size_t)1 << 32) /* largest restored file, in bytes */

/* Copies encoded bytes and appends the padding that codecs need. */
static uint8_t *padded(const void *data, size_t size, leat_error *err)
{
    uint8_t *copy = leat__alloc(LEAT__MEM_SCRATCH, size + LEAT__CODEC_PADDING);
    if (copy == NULL) {
        leat__fail_nomem(err, size, "an image");
        return NULL;
    }
    memcpy(copy, data, size);
    memset(copy + size, 0, LEAT__CODEC_PADDING);
    return copy;
}

/* The position in the stored image of pixel (0, 0) of the turned image, and the distances of one step
 * down and one step right. */
typedef struct walk {
    uint32_t height, width; /* size of the turned image */
    ptrdiff_t first, down, right;
} walk;

static walk walk_of(const leat__planes *p, uint32_t orientation)
{
    const ptrdiff_t line = (ptrdiff_t)p->stride;
    const ptrdiff_t bottom = ((ptrdiff_t)p->height - 1) * line, end = (ptrdiff_t)p->width - 1;
    const uint32_t h = p->height, w = p->width;

    switch (orientation) {
    case 2: return (walk){h, w, end, line, -1};
    case 3: return (walk){h, w, bottom + end, -line, -1};
    case 4: return (walk){h, w, bottom, -line, 1};
    case 5: return (walk){w, h, 0, 1, line};
    case 6: return (walk){w, h, bottom, 1, -line};
    case 7: return (walk){w, h, bottom + end, -1, -line};
    case 8: return (walk){w, h, end, -1, line};
    default: return (walk){h, w, 0, line, 1};
    }
}

static void interleave(const leat__planes *p, const walk *go, uint8_t *out)
{
    for (uint32_t y = 0; y < go->height; y++) {
        ptrdiff_t at = go->first + (ptrdiff_t)y * go->down;
        for (uint32_t x = 0; x < go->width; x++, at += go->right) {
            for (uint32_t c = 0; c < p->channels; c++) *out++ = p->plane[c][at];
        }
    }
}

/* Decoded pixels in a separate block. */
typedef struct decoded {
    uint8_t *block;
    int64_t shape[3];
    uint32_t dtype;
} decoded;

static int take_wide(leat__decoder *decoder, const leat__image_info *info, const uint8_t *bytes, size_t size,
                     uint32_t orientation, decoded *out, leat_error *err)
{
    leat__wide stored = {0}, turned = {0};
    int rc = 0;

    LEAT_GO(rc, out, leat__codec_decode_wide(decoder, info, bytes, size, NULL, &stored, err));
    LEAT_GO(rc, out, leat__wide_turn(&stored, orientation, &turned, err));
    size_t line = turned.width * leat__wide_pixel(&turned), total = line * turned.height;
    out->block = leat__alloc_aligned(LEAT__MEM_BATCH, total + 1, 256);
    if (out->block == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, total, "an image"));
    for (uint32_t y = 0; y < turned.height; y++)
        memcpy(out->block + y * line, leat__wide_row(&turned, y), line);
    out->shape[0] = turned.height;
    out->shape[1] = turned.width;
    out->shape[2] = turned.channels;
    out->dtype = leat__sample_dtype(info->type);
out:
    leat__wide_reset(&stored);
    leat__wide_reset(&turned);
    return rc;
}

static int decode(const py_pack_handle *h, const void *data, size_t size, const leat_pack_image *image,
                  decoded *out, leat_error *err)
{
    leat__decoder *decoder = NULL;
    leat__planes planes = {0};
    leat__image_info info;
    leat__decode_request request = {.tables = h != NULL ? h->tables : NULL};
    int rc = 0;

    uint8_t *bytes = padded(data, size, err);
    if (bytes == NULL) return LEAT_ENOMEM;
    LEAT_GO(rc, out, leat__codec_probe((leat__codec_id)image->codec, bytes, size, &info, err));
    LEAT_GO(rc, out, leat__decoder_open(&decoder, err));
    if (leat__image_wide(&info)) {
        rc = take_wide(decoder, &info, bytes, size, image->orientation, out, err);
        goto out;
    }
    LEAT_GO(rc, out, leat__codec_decode_planes(decoder, &info, bytes, size, &request, &planes, err));
    const walk go = walk_of(&planes, image->orientation);
    size_t total = (size_t)go.height * go.width * planes.channels; /* bounded by the limits */
    out->block = leat__alloc_aligned(LEAT__MEM_BATCH, total + 1, 256);
    if (out->block == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, total, "an image"));
    interleave(&planes, &go, out->block);
    out->shape[0] = go.height;
    out->shape[1] = go.width;
    out->shape[2] = planes.channels;
    out->dtype = LEAT_DTYPE_U8;
out:
    leat__planes_reset(&planes);
    leat__decoder_close(&decoder);
    leat__free(bytes);
    return rc;
}

PyObject *py_image_decode(const py_pack_handle *h, const void *data, size_t size,
                          const leat_pack_image *image)
{
    leat_error err = {.sample = -1, .offset = -1};
    decoded pixels = {0};
    int rc;

    Py_BEGIN_ALLOW_THREADS rc = decode(h, data, size, image, &pixels, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    py_memory *memory = py_memory_new(NULL, pixels.block);
    if (memory == NULL) return NULL;
    PyObject *tensor = py_tensor_new(memory, pixels.block, pixels.dtype, 3, pixels.shape, NULL);
    py_memory_drop(memory);
    return tensor;
}

PyObject *py_image_file(const py_pack_handle *h, const void *data, size_t size, const leat_pack_image *image)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__buf file;
    int rc = LEAT_ENOMEM;

    if (image->codec == LEAT__CODEC_RAW) {
        leat__fail(&err, LEAT_ENOTSUP, "this image is stored as pixels, not as a file: decode() it");
        return py_raise(&err);
    }
    if (image->codec != LEAT__CODEC_TILE) return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    leat__buf_init(&file, LEAT__MEM_CODEC, FILE_MAX);
    Py_BEGIN_ALLOW_THREADS uint8_t *bytes = padded(data, size, &err);
    if (bytes != NULL) rc = leat__tile_restore(bytes, size, h != NULL ? h->tables : NULL, &file, &err);
    leat__free(bytes);
    Py_END_ALLOW_THREADS PyObject *result = NULL;
    if (rc == 0) result = PyBytes_FromStringAndSize((const char *)file.data, (Py_ssize_t)file.len);
    else py_raise(&err);
    leat__buf_reset(&file);
    return result;
}

int py_image_describe(const void *data, size_t size, leat_pack_image *image, leat_error *err)
{
    leat__image_info info;
    leat__codec_id codec = leat__codec_sniff(data, size);

    if (codec == LEAT__CODEC_NONE)
        return leat__fail(err, LEAT_EFORMAT, "not an image format that leat reads");
    uint8_t *bytes = padded(data, size, err);
    if (bytes == NULL) return LEAT_ENOMEM;
    int rc = leat__codec_probe(codec, bytes, size, &info, err);
    leat__free(bytes);
    LEAT_TRY(rc);
    *image = (leat_pack_image){.width = info.width,
                               .height = info.height,
                               .codec = (uint8_t)codec,
                               .channels = (uint8_t)info.channels,
                               .orientation = (uint8_t)info.orientation,
                               .flags = LEAT_PACK_IMAGE_UNCHECKED | leat__kind_flags(info.type),
                               .cost = leat__image_cost(&info, size)};
    return 0;
}

/* Encodes pixels (height x width x channels) as a file of this codec, appended to `out`. */
static int encode(leat__codec_id codec, const uint8_t *pixels, uint32_t height, uint32_t width,
                  uint32_t channels, leat__buf *out, leat_error *err)
{
    leat__planes planes = {0};
    leat__encode_opts opts = {.orientation = 1};

    int rc = leat__planes_resize(&planes, width, height, channels, err);
    if (rc != 0) return rc;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t c = 0; c < channels; c++) {
            uint8_t *row = planes.plane[c] + (size_t)y * planes.stride;
            const uint8_t *from = pixels + (size_t)y * width * channels + c;
            for (uint32_t x = 0; x < width; x++) row[x] = from[(size_t)x * channels];
        }
    }
    rc = leat__codec_encode(codec, &planes, &opts, out, err);
    leat__planes_reset(&planes);
    return rc;
}

int py_image_raw(const void *pixels, uint32_t height, uint32_t width, uint32_t channels, uint32_t dtype,
                 void **data, size_t *size, leat_error *err)
{
    leat__buf out;
    int rc = 0;

    const leat__sample_type type = dtype == LEAT_DTYPE_U16   ? LEAT__SAMPLE_U16
                                   : dtype == LEAT_DTYPE_F32 ? LEAT__SAMPLE_F32
                                                             : LEAT__SAMPLE_U8;

    leat__buf_init(&out, LEAT__MEM_CODEC, SIZE_MAX / 2);
    LEAT_GO(rc, out, leat__raw_encode_wide(pixels, width, height, channels, type, 1, &out, err));
    *data = leat__alloc(LEAT__MEM_CODEC, out.len + 1);
    if (*data == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, out.len, "an image"));
    memcpy(*data, out.data, out.len);
    *size = out.len;
out:
    leat__buf_reset(&out);
    return rc;
}

PyObject *py_image_png(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *array, *result = NULL;
    Py_buffer view;
    leat__buf out;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "O", &array) || PyObject_GetBuffer(array, &view, PyBUF_ND) != 0) return NULL;
    bool fits = view.ndim == 3 && view.itemsize == 1 && view.len > 0 && view.shape[0] <= UINT32_MAX &&
                view.shape[1] <= UINT32_MAX &&
                (view.shape[2] == 1 || view.shape[2] == 3 || view.shape[2] == 4);
    leat__buf_init(&out, LEAT__MEM_CODEC, SIZE_MAX / 2);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "pixels must be uint8, height x width x 1, 3 or 4");
    } else {
        Py_BEGIN_ALLOW_THREADS rc = encode(LEAT__CODEC_PNG, view.buf, (uint32_t)view.shape[0],
                                           (uint32_t)view.shape[1], (uint32_t)view.shape[2], &out, &err);
        Py_END_ALLOW_THREADS if (rc == 0) result =
            PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.len);
        else py_raise(&err); }
    leat__buf_reset(&out);
    PyBuffer_Release(&view);
    return result;
}

PyObject *py_pixel_file(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__pixel_file f = {0};
    Py_buffer stored;
    leat__buf out;
    const char *ext;
    int rc = LEAT_ENOMEM;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*", &stored)) return NULL;
    leat__buf_init(&out, LEAT__MEM_CODEC, FILE_MAX);
    Py_BEGIN_ALLOW_THREADS uint8_t *bytes = padded(stored.buf, (size_t)stored.len, &err);
    if (bytes != NULL) rc = leat__pixel_file_write(&f, bytes, (size_t)stored.len, &out, &ext, &err);
    leat__free(bytes);
    leat__pixel_file_reset(&f);
    Py_END_ALLOW_THREADS PyObject *result = NULL;
    if (rc == 0) result = PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.len);
    else py_raise(&err);
    leat__buf_reset(&out);
    PyBuffer_Release(&stored);
    return result;
}
