/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <zlib.h>
#include <zstd.h>

#include "ingest/stream.h"

#define LEN 700000

static uint8_t *plain;

static int open_all(void **state)
{
    plain = malloc(LEN);
    uint32_t s = 1;
    for (size_t i = 0; i < LEN; i++) {
        s = s * 1664525u + 1013904223u;
        plain[i] = i % 3 ? (uint8_t)(s >> 24) : 'a'; /* compresses a little */
    }
    return sandbox_open(state);
}

static int close_all(void **state)
{
    free(plain);
    return sandbox_close(state);
}

static size_t gzip(uint8_t *out, size_t room, const uint8_t *in, size_t len)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)in;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = z.total_out;
    deflateEnd(&z);
    return n;
}

/* The data as a file: 0 plain, 1 gzip of two members, 2 zstd of two frames, 3 with skippable frames before
 * each. */
static size_t encode(int coding, uint8_t *out, size_t room)
{
    size_t half = LEN / 2;
    if (coding == 0) return (memcpy(out, plain, LEN), LEN);
    if (coding == 1) {
        size_t n = gzip(out, room, plain, half);
        return n + gzip(out + n, room - n, plain + half, LEN - half);
    }
    static const uint8_t skipped[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    size_t n = coding == 3 ? sizeof skipped : 0;
    memcpy(out, skipped, n);
    n += ZSTD_compress(out + n, room - n, plain, half, 3);
    if (coding == 3) {
        memcpy(out + n, skipped, sizeof skipped);
        out[n] = 0x5f;
        n += sizeof skipped;
    }
    return n + ZSTD_compress(out + n, room - n, plain + half, LEN - half, 3);
}

static void all_codings_read_alike(void **state)
{
    uint8_t *packed = malloc(2 * LEN), *back = malloc(LEN + 10);
    for (int coding = 0; coding < 4; coding++) {
        size_t n = encode(coding, packed, 2 * LEN), at = 0, got, step = 1;
        put_file("data", packed, n);
        leat__stream *s = NULL;
        assert_int_equal(leat__stream_open(&s, in_box("data"), NULL), 0);
        assert_int_equal(leat__stream_compressed(s), coding != 0);
        do {
            step = step * 5 % 70001 + 1;
            size_t want = step < LEN + 10 - at ? step : LEN + 10 - at;
            assert_int_equal(leat__stream_read(s, back + at, want, &got, NULL), 0);
            at += got;
            assert_int_equal(leat__stream_offset(s), at);
        } while (got > 0);
        assert_int_equal(at, LEN);
        assert_memory_equal(back, plain, LEN);
        leat__stream_close(&s);
    }
    free(packed);
    free(back);
}

static void skipping_is_reading(void **state)
{
    uint8_t *packed = malloc(2 * LEN), byte;
    for (int coding = 0; coding < 4; coding++) {
        size_t n = encode(coding, packed, 2 * LEN), got;
        uint64_t skipped;
        leat__stream *s = NULL;
        assert_int_equal(leat__stream_open_memory(&s, "m", packed, n, NULL), 0);
        assert_int_equal(leat__stream_skip(s, 400001, &skipped, NULL), 0);
        assert_int_equal(skipped, 400001);
        assert_int_equal(leat__stream_read(s, &byte, 1, &got, NULL), 0);
        assert_int_equal(byte, plain[400001]);
        assert_int_equal(leat__stream_skip(s, LEN, &skipped, NULL), 0);
        assert_int_equal(skipped, LEN - 400002);
        leat__stream_close(&s);
    }
    free(packed);
}

static void truncated_compressed_data_is_damage(void **state)
{
    uint8_t *packed = malloc(2 * LEN), *back = malloc(LEN);
    for (int coding = 1; coding < 3; coding++) {
        size_t n = encode(coding, packed, 2 * LEN), got;
        for (int i = 1; i < 20; i++) {
            size_t cut = n * (size_t)i / 20 + (size_t)i;
            leat__stream *s = NULL;
            leat_error err = {0};
            assert_int_equal(leat__stream_open_memory(&s, "m", packed, cut, NULL), 0);
            int rc = leat__stream_read(s, back, LEN, &got, &err);
            assert_int_equal(rc, LEAT_EDATA);
            assert_true(err.offset >= 0 && (size_t)err.offset <= cut);
            leat__stream_close(&s);
        }
        packed[n / 3] ^= 0x55;
        leat__stream *s = NULL;
        assert_int_equal(leat__stream_open_memory(&s, "m", packed, n, NULL), 0);
        int rc = leat__stream_read(s, back, LEN, &got, NULL);
        /* zstd frames without a checksum can hide a changed literal; gzip cannot */
        assert_true(rc == LEAT_EDATA || (coding == 2 && memcmp(back, plain, got) != 0));
        leat__stream_close(&s);
    }
    free(packed);
    free(back);
}

/* Zeros after the last member are ignored, as by gzip; anything after them is damage. */
static void gzip_may_have_padding(void **state)
{
    uint8_t *packed = calloc(4, LEN), *back = malloc(LEN);
    const size_t n = encode(1, packed, 2 * LEN);
    const size_t sizes[] = {1, 511, 600000}; /* more than a chunk */
    size_t got;
    for (int i = 0; i < 3; i++) {
        leat__stream *s = NULL;
        put_file("padded.gz", packed, n + sizes[i]);
        assert_int_equal(leat__stream_open(&s, in_box("padded.gz"), NULL), 0);
        assert_int_equal(leat__stream_read(s, back, LEN, &got, NULL), 0);
        assert_int_equal(got, LEN);
        assert_memory_equal(back, plain, LEN);
        assert_int_equal(leat__stream_read(s, back, LEN, &got, NULL), 0);
        assert_int_equal(got, 0);
        leat__stream_close(&s);
        packed[n + sizes[i]] = 0x1f;
        assert_int_equal(leat__stream_open_memory(&s, "m", packed, n + sizes[i] + 1, NULL), 0);
        assert_int_equal(leat__stream_read(s, back, LEN, &got, NULL), 0);
        assert_int_equal(leat__stream_read(s, back, LEN, &got, NULL), LEAT_EDATA);
        leat__stream_close(&s);
        packed[n + sizes[i]] = 0;
    }
    free(packed);
    free(back);
}

static void a_large_window_is_named(void **state)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 18 << 3, 1, 0, 0}; /* 2^28 bytes */
    leat__stream *s = NULL;
    leat_error err = {0};
    uint8_t byte;
    size_t got;
    assert_int_equal(leat__stream_open_memory(&s, "m", frame, sizeof frame, NULL), 0);
    assert_int_equal(leat__stream_read(s, &byte, 1, &got, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "window of 256 MiB is above the limit of 128 MiB"));
    leat__stream_close(&s);
}

static void missing_files_are_named(void **state)
{
    leat__stream *s = NULL;
    leat_error err = {0};
    assert_int_equal(leat__stream_open(&s, in_box("nothing.tar"), &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, "nothing.tar"));
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_codings_read_alike),
        cmocka_unit_test(skipping_is_reading),
        cmocka_unit_test(truncated_compressed_data_is_damage),
        cmocka_unit_test(gzip_may_have_padding),
        cmocka_unit_test(a_large_window_is_named),
        cmocka_unit_test(missing_files_are_named),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
