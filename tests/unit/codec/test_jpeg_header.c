/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "codec/jpeg_header.h"

static void says_what_libjpeg_says(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        const jpeg_kind *kind = &jpeg_kinds[k];
        bytes b = make_jpeg(kind, 123, 45, 80, 1);
        leat__jpeg_header h;
        assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
        struct jpeg_decompress_struct c;
        struct jpeg_error_mgr e;
        c.err = jpeg_std_error(&e);
        jpeg_create_decompress(&c);
        jpeg_mem_src(&c, b.data, b.len);
        jpeg_read_header(&c, TRUE);
        assert_int_equal(h.width, c.image_width);
        assert_int_equal(h.height, c.image_height);
        assert_int_equal(h.bits, 8);
        assert_int_equal(h.components, c.num_components);
        assert_int_equal(h.progressive, c.progressive_mode);
        assert_int_equal(h.restart_interval, c.restart_interval);
        assert_int_equal(h.scan_offset, (size_t)(c.src->next_input_byte - b.data));
        static const int space[] = {0, JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_YCCK};
        assert_int_equal(space[h.colour], c.jpeg_color_space);
        for (int i = 0; i < c.num_components; i++) {
            assert_int_equal(h.component[i].h, c.comp_info[i].h_samp_factor);
            assert_int_equal(h.component[i].v, c.comp_info[i].v_samp_factor);
            assert_int_equal(h.component[i].quant, c.comp_info[i].quant_tbl_no);
        }
        uint16_t quant[64];
        assert_true(leat__jpeg_header_quant(&h, quant));
        for (int i = 0; i < 64; i++) assert_int_equal(quant[i], c.quant_tbl_ptrs[0]->quantval[i]);
        jpeg_destroy_decompress(&c);
        free(b.data);
    }
}

/* The bytes that libjpeg allocates for coefficients: whole MCUs of all components. */
static void counts_the_coefficients(void **state)
{
    uint32_t separate = 0;
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes b = make_jpeg(&jpeg_kinds[k], 123, 45, 80, 1);
        leat__jpeg_header h;
        struct jpeg_decompress_struct c;
        struct jpeg_error_mgr e;
        uint64_t want = 0;
        assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
        c.err = jpeg_std_error(&e);
        jpeg_create_decompress(&c);
        jpeg_mem_src(&c, b.data, b.len);
        jpeg_read_header(&c, TRUE);
        const bool many = jpeg_has_multiple_scans(&c);
        jpeg_start_decompress(&c); /* sets the numbers of blocks */
        for (int i = 0; i < c.num_components; i++) {
            const jpeg_component_info *p = &c.comp_info[i];
            const uint64_t across = (p->width_in_blocks + p->h_samp_factor - 1u) / p->h_samp_factor;
            const uint64_t down = (p->height_in_blocks + p->v_samp_factor - 1u) / p->v_samp_factor;
            want += across * p->h_samp_factor * down * p->v_samp_factor * sizeof(JBLOCK);
        }
        assert_int_equal(leat__jpeg_header_coefs(&h), want);
        assert_int_equal(leat__jpeg_header_many_scans(&h), many);
        separate += many && !h.progressive;
        jpeg_destroy_decompress(&c);
        free(b.data);
    }
    assert_true(separate > 0);
}

static void a_table_that_is_missing_or_damaged_is_not_there(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[0], 20, 20, 80, 1);
    uint16_t quant[64];
    leat__jpeg_header h;
    size_t at = 2;
    while (b.data[at + 1] != 0xdb) at += 2 + ((size_t)b.data[at + 2] << 8 | b.data[at + 3]);
    b.data[at + 4] = 0x20; /* values of 17 bits */
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
    assert_false(leat__jpeg_header_quant(&h, quant));
    b.data[at + 4] = 3; /* table of another number */
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
    assert_false(leat__jpeg_header_quant(&h, quant));
    free(b.data);
}

static void describes_the_sampling(void **state)
{
    char text[24];
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes b = make_jpeg(&jpeg_kinds[k], 20, 20, 80, 1);
        leat__jpeg_header h;
        assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
        leat__jpeg_header_describe(&h, text, sizeof text);
        const char *want = jpeg_kinds[k].name;
        size_t n = strcspn(want, " ");
        if (strcmp(want, "rgb") == 0) want = "4:4:4", n = 5;
        assert_memory_equal(text, "jpeg ", 5);
        assert_memory_equal(text + 5, want, n);
        assert_int_equal(strstr(text, "progressive") != NULL, jpeg_kinds[k].progressive);
        free(b.data);
    }
}

/* All truncations of the header and all single-byte changes give a result or LEAT_EDATA/LEAT_EFORMAT. */
static void every_cut_and_byte_is_safe(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 30, 20, 80, 1);
    leat__jpeg_header h;
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, NULL), 0);
    size_t n = h.scan_offset;
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, b.data, cut);
        leat_error err = {0};
        assert_int_equal(leat__jpeg_header_read(copy, cut, &h, &err), LEAT_EDATA);
        assert_true(err.offset >= 0 && (size_t)err.offset <= cut);
        free(copy);
    }
    uint8_t *copy = malloc(n);
    memcpy(copy, b.data, n);
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < 256; v += 5) {
            copy[i] = (uint8_t)v;
            int rc = leat__jpeg_header_read(copy, n, &h, NULL);
            assert_true(rc == 0 || rc == LEAT_EDATA || rc == LEAT_EFORMAT);
            copy[i] = b.data[i];
        }
    free(copy);
    free(b.data);
}

static void zero_size_and_odd_components_are_refused(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 30, 20, 80, 1);
    size_t sof = 0;
    for (size_t i = 2; i + 9 < b.len && !sof; i++)
        if (b.data[i] == 0xff && b.data[i + 1] == 0xc0) sof = i;
    assert_true(sof > 0);
    leat__jpeg_header h;
    leat_error err = {0};
    b.data[sof + 5] = b.data[sof + 6] = 0;
    assert_int_equal(leat__jpeg_header_read(b.data, b.len, &h, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "zero size"));
    assert_int_equal(err.offset, sof);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_libjpeg_says),
        cmocka_unit_test(counts_the_coefficients),
        cmocka_unit_test(a_table_that_is_missing_or_damaged_is_not_there),
        cmocka_unit_test(describes_the_sampling),
        cmocka_unit_test(every_cut_and_byte_is_safe),
        cmocka_unit_test(zero_size_and_odd_components_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
