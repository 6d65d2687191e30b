/* SPDX-License-Identifier: Apache-2.0
 *
 * A private folder for a test, archives written byte by byte, and small images.
 */
#ifndef LEAT_TEST_SANDBOX_H
#define LEAT_TEST_SANDBOX_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec.h"
#include "ingest/source.h"
#include "io/file.h"

static char sandbox[256];

static inline int sandbox_open(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(sandbox, sizeof sandbox, "%s/leat-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(sandbox) ? 0 : -1;
}

static inline int sandbox_close(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", sandbox);
    int rc = system(command);
    assert_int_equal(leat__mem_blocks(), 0);
    return rc;
}

/* A path in the sandbox, valid until the end of the program. */
static inline const char *in_box(const char *name)
{
    static char path[96][512];
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s/%s", sandbox, name);
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
        if (path[i][0] == 0) memcpy(path[i], wanted, sizeof wanted);
        if (strcmp(path[i], wanted) == 0) return path[i];
    }
    fail_msg("too many paths");
    return NULL;
}

static inline void put_file(const char *name, const void *data, size_t len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", sandbox, name);
    for (char *p = path + strlen(sandbox) + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
            *p = '/';
        }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

/* A small image of one of the formats, different for each seed. */
static inline leat__buf make_image(leat__codec_id codec, uint32_t w, uint32_t h, uint32_t seed)
{
    leat__planes p = {0};
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_INGEST, 1u << 26);
    assert_int_equal(leat__planes_resize(&p, w, h, 3, NULL), 0);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++)
                p.plane[c][y * p.stride + x] =
                    (uint8_t)((x * (c + 1 + seed) + y * (seed + 3)) / 2 + ((x ^ y) & 15) * c);
    assert_int_equal(leat__codec_encode(codec, &p, NULL, &out, NULL), 0);
    leat__planes_reset(&p);
    return out;
}

static inline void put_image(const char *name, leat__codec_id codec, uint32_t w, uint32_t h, uint32_t seed)
{
    leat__buf b = make_image(codec, w, h, seed);
    put_file(name, b.data, b.len);
    leat__buf_reset(&b);
}

/* ---- tar ---- */

static inline void tar_header(leat__buf *t, const char *name, uint64_t size, char type)
{
    uint8_t h[512] = {0};
    strncpy((char *)h, name, 100);
    memcpy(h + 100,
           "0000644\0"
           "0000000\0"
           "0000000\0",
           24);
    snprintf((char *)h + 124, 12, "%011llo", (unsigned long long)size);
    snprintf((char *)h + 136, 12, "%011o", 0);
    memset(h + 148, ' ', 8);
    h[156] = (uint8_t)type;
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
    assert_int_equal(leat__buf_append(t, h, sizeof h), 0);
}

static inline void tar_data(leat__buf *t, const void *data, size_t len)
{
    assert_int_equal(leat__buf_append(t, data, len), 0);
    assert_int_equal(leat__buf_zeros(t, (512 - len % 512) % 512), 0);
}

static inline void tar_add(leat__buf *t, const char *name, const void *data, size_t len)
{
    tar_header(t, name, len, '0');
    tar_data(t, data, len);
}

static inline void tar_text(leat__buf *t, const char *name, const char *text)
{
    tar_add(t, name, text, strlen(text));
}

static inline void tar_image(leat__buf *t, const char *name, leat__codec_id codec, uint32_t seed)
{
    leat__buf b = make_image(codec, 24, 16, seed);
    tar_add(t, name, b.data, b.len);
    leat__buf_reset(&b);
}

static inline void tar_end(leat__buf *t)
{
    assert_int_equal(leat__buf_zeros(t, 1024), 0);
}

/* ---- sources ---- */

static inline leat__source *open_source(const char *const *paths, uint32_t n, leat_ingest_opts *opts)
{
    leat_ingest_opts own;
    leat_error err = {0};
    if (!opts) {
        own = (leat_ingest_opts){.struct_size = sizeof own};
        opts = &own;
    }
    opts->sources = paths;
    opts->source_count = n;
    leat__source *s = NULL;
    if (leat__source_open(&s, opts, &err) != 0) fail_msg("%s", err.message);
    return s;
}

/* The next record in its own run, loaded; false at the end. Return the run to `spare`. */
static inline bool next_record(leat__source *s, leat__records_pool *spare, leat__records **run,
                               leat__record **r)
{
    leat_error err = {0};
    bool end = false;
    *run = leat__records_pool_take(spare);
    assert_non_null(*run);
    *r = leat__records_add(*run);
    if (s->ops->next(s, *run, *r, &end, &err) != 0) fail_msg("%s", err.message);
    if (end) {
        leat__records_pool_give(spare, *run);
        return false;
    }
    if (!(*r)->failed && s->ops->load && s->ops->load(s, *run, *r, &err) != 0) leat__records_fail(*r, &err);
    return true;
}

static inline uint64_t hash_of_file(const char *path)
{
    char *data = NULL;
    size_t len;
    assert_int_equal(leat__file_load(path, 1u << 28, 0, &data, &len, NULL), 0);
    const uint64_t hash = leat__hash64(data, len, 0);
    leat__free(data);
    return hash;
}

#endif
