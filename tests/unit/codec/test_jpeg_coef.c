/* SPDX-License-Identifier: Apache-2.0
 *
 * Coefficients: passed through libjpeg's transcoder, they must give the same pixels.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "codec/jpeg_coef.h"
#include "codec/planes.h"

static leat__jpeg_coef_reader *reader;

static int open_reader(void **state)
{
    return leat__jpeg_coef_reader_open(&reader, NULL);
}

static int close_reader(void **state)
{
    leat__jpeg_coef_reader_close(&reader);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

/* Compares with the coefficients in libjpeg's virtual arrays. */
static void compare_with_libjpeg(bytes b, const leat__jpeg_coefs *got)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr e;
    c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, b.data, b.len);
    jpeg_read_header(&c, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&c);
    for (int i = 0; i < c.num_components; i++) {
        const leat__jpeg_component *comp = &got->component[i];
        assert_int_equal(comp->blocks_x, c.comp_info[i].width_in_blocks);
        assert_int_equal(comp->blocks_y, c.comp_info[i].height_in_blocks);
        assert_int_equal(comp->grid_x % comp->h, 0);
        assert_int_equal(comp->grid_y % comp->v, 0);
        assert_int_equal((uintptr_t)comp->coefs % 64, 0);
        for (uint32_t y = 0; y < comp->grid_y; y++) {
            JBLOCKARRAY row = c.mem->access_virt_barray((j_common_ptr)&c, arrays[i], y, 1, FALSE);
            assert_memory_equal(row[0], comp->coefs + (size_t)y * comp->grid_x * 64,
                                comp->grid_x * sizeof(JBLOCK));
        }
        for (int q = 0; q < 64; q++)
            assert_int_equal(comp->quant[q], c.comp_info[i].quant_table->quantval[q]);
    }
    jpeg_destroy_decompress(&c);
}

/* Alternates between leat's own decoder and libjpeg. */
static void coefficients_are_libjpegs(void **state)
{
    for (size_t n = 0; n < 2 * JPEG_KINDS; n++) {
        size_t k = n / 2;
        bytes b = make_jpeg(&jpeg_kinds[k], 75, 43, 85, 4);
        leat__jpeg_coefs coefs;
        int rc = n % 2 == 0 ? leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL)
                            : leat__jpeg_coef_read_libjpeg(reader, b.data, b.len, NULL, &coefs, NULL);
        assert_int_equal(rc, 0);
        assert_int_equal(coefs.width, 75);
        assert_int_equal(coefs.components, jpeg_kinds[k].channels);
        assert_int_equal(coefs.progressive, jpeg_kinds[k].progressive);
        if (jpeg_kinds[k].separate_scans) assert_int_equal(coefs.scans, 3);
        compare_with_libjpeg(b, &coefs);
        /* the three parts are the file */
        assert_ptr_equal(coefs.header, b.data);
        assert_ptr_equal(coefs.scan, b.data + coefs.header_len);
        assert_ptr_equal(coefs.tail, coefs.scan + coefs.scan_len);
        assert_int_equal(coefs.header_len + coefs.scan_len + coefs.tail_len, b.len);
        assert_int_equal(coefs.tail_len, 2);
        free(b.data);
    }
}

/* Reads all of libjpeg's rows. */
static void read_pixels(const leat__jpeg_coefs *coefs, leat__planes *out)
{
    leat_error err = {0};
    uint32_t channels = coefs->components == 1 ? 1 : 3;
    assert_int_equal(leat__planes_resize(out, coefs->width, coefs->height, channels, NULL), 0);
    if (leat__jpeg_coef_pixels(coefs->pixels, &err) != 0) fail_msg("%s", err.message);
    for (uint32_t y = 0; y < coefs->height; y++) {
        uint8_t *plane[4] = {0};
        const uint8_t *row;
        for (uint32_t c = 0; c < channels; c++) plane[c] = out->plane[c] + y * out->stride;
        if (leat__jpeg_coef_row(coefs->pixels, &row, &err) != 0) fail_msg("%s", err.message);
        leat__planar_split(row, coefs->width, channels, plane);
    }
    const uint8_t *none;
    assert_int_equal(leat__jpeg_coef_row(coefs->pixels, &none, NULL), LEAT_EINVAL);
}

/* Uses both decoders, and reads the pixels twice: they can be requested again. */
static void pixels_are_those_of_a_decode(void **state)
{
    leat__decoder *decoder = NULL;
    leat__planes want = {0}, got = {0};
    size_t compared = 0;
    assert_int_equal(leat__decoder_open(&decoder, NULL), 0);
    for (size_t n = 0; n < 2 * JPEG_KINDS; n++) {
        bytes b = make_jpeg(&jpeg_kinds[n / 2], 75, 43, 85, 4);
        leat__jpeg_coefs coefs;
        leat__image_info info;
        int rc = n % 2 == 0 ? leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL)
                            : leat__jpeg_coef_read_libjpeg(reader, b.data, b.len, NULL, &coefs, NULL);
        assert_int_equal(rc, 0);
        assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
        assert_int_equal(leat__codec_decode_planes(decoder, &info, b.data, b.len, NULL, &want, NULL), 0);
        for (int turn = 0; turn < 2 && coefs.pixels != NULL; turn++, compared++) {
            read_pixels(&coefs, &got);
            assert_int_equal(got.channels, want.channels);
            for (uint32_t c = 0; c < want.channels; c++)
                for (uint32_t y = 0; y < 43; y++)
                    assert_memory_equal(got.plane[c] + y * got.stride, want.plane[c] + y * want.stride, 75);
        }
        free(b.data);
    }
    assert_true(compared >= 20);
    leat__planes_reset(&want);
    leat__planes_reset(&got);
    leat__decoder_close(&decoder);
}

static void trailing_bytes_are_the_tail(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 75, 43, 85, 4);
    leat__jpeg_coefs coefs;
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len + 10, NULL, &coefs, NULL), 0);
    assert_int_equal(coefs.tail_len, 12);
    free(b.data);
}

static void damage_and_limits_are_errors(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[12], 75, 43, 85, 4);
    leat__jpeg_coefs coefs;
    leat_error err = {0};
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len * i / 50, NULL, &coefs, &err),
                         LEAT_EDATA);
        assert_true(err.offset >= 0);
    }
    leat__decode_limits few = {.max_scans = 2}, small = {.max_pixels = 1000};
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, &few, &coefs, &err), LEAT_ELIMIT);
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, &small, &coefs, &err), LEAT_ELIMIT);
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, &err), 0);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_libjpegs),
        cmocka_unit_test(pixels_are_those_of_a_decode),
        cmocka_unit_test(trailing_bytes_are_the_tail),
        cmocka_unit_test(damage_and_limits_are_errors),
    };
    return cmocka_run_group_tests(tests, open_reader, close_reader);
}
