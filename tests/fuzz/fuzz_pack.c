/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of packs against any bytes. Checksums would stop nearly every mutation at the
 * door, so the input is repaired first: the checks are computed anew over whatever the
 * mutation left, and the hostile numbers behind them reach the code that must survive them.
 * An input of odd length is taken as it is.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <leat/pack.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hash_chunks(uint8_t *file, uint64_t from, uint64_t bytes, uint64_t to)
{
    for (uint64_t at = 0; at < bytes; at += LEAT__PACK_CHUNK, to += 8) {
        size_t n = (size_t)LEAT_MIN(bytes - at, LEAT__PACK_CHUNK);
        leat__store_u64(file + to, leat__hash64(file + from + at, n, 0));
    }
}

/* Makes all checks fit, as far as the footer leaves the parts where they can be found. */
static void repair(uint8_t *file, size_t size)
{
    uint8_t *foot = file + size - LEAT__PACK_BLOCK;
    uint64_t index = leat__load_u64(foot + 64), bytes = leat__load_u64(foot + 72);
    uint64_t checks = leat__load_u64(foot + 80), roots = leat__load_u64(foot + 88);
    uint64_t dir = leat__load_u64(foot + 96), sum;
    bool found = leat__add_u64(index, bytes, &sum) && leat__add_u64(sum, checks, &sum) &&
                 leat__add_u64(sum, roots, &sum) && leat__add_u64(sum, dir, &sum) &&
                 sum == size - LEAT__PACK_BLOCK && checks >= leat__ceil_div(bytes, LEAT__PACK_CHUNK) * 8 &&
                 roots >= leat__ceil_div(checks, LEAT__PACK_CHUNK) * 8;
    if (found) {
        hash_chunks(file, index, bytes, index + bytes);
        hash_chunks(file, index + bytes, checks, index + bytes + checks);
        uint64_t at = index + bytes + checks;
        leat__store_u64(foot + 112, leat__hash64(file + at, (size_t)roots, 0));
        leat__store_u64(foot + 120, leat__hash64(file + at + roots, (size_t)dir, 0));
    }
    leat__store_u64(foot + 16, size);
    memcpy(foot + 4088, "\x1a\n\rTAEL\x89", 8);
    leat__store_u64(foot, leat__hash64(foot + 8, LEAT__PACK_BLOCK - 8, 0));
    memcpy(file, "\x89LEAT\r\n\x1a", 8);
    leat__store_u64(file + 16, size);
    leat__store_u64(file + 24, leat__load_u64(foot));
    leat__store_u64(file + 4088, leat__hash64(file, 4088, 0));
}

static _Atomic uint8_t sink; /* the reads must not be optimised away */

static void use_sample(leat_pack *p, leat_sample *s, uint64_t i)
{
    leat_view v;
    uint64_t found;
    size_t size;
    uint8_t sum = 0;
    if (leat_sample_read(s, i, NULL) != 0) return;
    const char *key = leat_sample_key(s, &size);
    if (leat_pack_find(p, key, size, &found, NULL) == 0 && found >= leat_pack_count(p)) abort();
    for (uint32_t f = 0; f < leat_pack_field_count(p); f++) {
        if (leat_sample_field(s, f, &v, NULL) != 0 || v.data == NULL) continue;
        for (size_t k = 0; k < v.size; k++) sum ^= ((const uint8_t *)v.data)[k];
    }
    atomic_store(&sink, sum);
}

static void use_pack(leat_pack *p)
{
    leat_sample *s = NULL;
    leat_pack_info info;
    const char *const *names;
    const void *blob;
    uint64_t count;
    size_t size;
    if (leat_pack_info_read(p, &info, sizeof info) != 0) abort();
    for (uint32_t i = 0; i < leat_pack_field_count(p); i++)
        (void)!leat_pack_classes(p, i, &names, &count, NULL);
    for (uint32_t i = 0; i < leat_pack_blob_count(p); i++)
        (void)!leat_pack_blob(p, leat_pack_blob_name(p, i), &blob, &size, NULL);
    if (leat_sample_open(&s, p, NULL) == 0)
        for (uint64_t i = 0; i < leat_pack_count(p) && i < 64; i++) use_sample(p, s, i);
    leat_sample_close(&s);
    size_t capacity = (size_t)LEAT_MIN(info.max_page_bytes, 1u << 20) + LEAT_PACK_PADDING;
    uint8_t *page = malloc(capacity);
    for (uint64_t i = 0; i < info.pages && i < 16; i++)
        (void)!leat_pack_page_read(p, i, page, capacity, NULL);
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4u << 20) return 0;
    uint8_t *file = malloc(size + 1);
    if (size > 0) memcpy(file, data, size);
    if (size % LEAT__PACK_BLOCK == 0 && size >= 2 * LEAT__PACK_BLOCK) repair(file, size);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, size) != (ssize_t)size) abort();
    free(file);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    leat__mem_limit_set(256u << 20);
    leat_pack *p = NULL;
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;
    o.no_verify = 1;
    if (leat_pack_open(&p, path, &o, NULL) == 0) use_pack(p);
    leat_pack_close(&p);
    (void)!leat_pack_verify(path, NULL, NULL, NULL);
    close(fd);
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
