/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of packs against any bytes, repaired by fuzz_repair.h. An input that is not a multiple of 64 is
 * not repaired, except sets: two sizes (u32), then the set file and two shards, s-00000.leat and
 * s-00001.leat, whose fingerprints are written into the list before the set is repaired.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <leat/pack.h>

#include "base/mem.h"
#include "fuzz_repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

/* One lookup must match rows and cells, from the cache or not. */
static void look_at(leat_pack *p, uint64_t sample)
{
    uint32_t fields[8], n = LEAT_MIN(leat_pack_field_count(p), 8u);
    leat_pack_row row, other;
    leat_pack_cell cells[8];
    for (uint32_t i = 0; i < n; i++) fields[i] = i;
    if (leat_pack_look(p, sample, &row, fields, n, cells, NULL) != 0) return;
    if (leat_pack_rows(p, sample, 1, &other, NULL) != 0 || memcmp(&row, &other, sizeof row) != 0) abort();
    for (uint32_t i = 0; i < n; i++)
        if (cells[i].length > row.size || cells[i].start > row.size - cells[i].length) abort();
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
        for (uint64_t i = 0; i < leat_pack_count(p) && i < 64; i++) {
            look_at(p, i);
            use_sample(p, s, i);
        }
    leat_sample_close(&s);
    size_t capacity = (size_t)LEAT_MIN(info.max_page_bytes, 1u << 20) + LEAT_PACK_PADDING;
    uint8_t *page = malloc(capacity);
    for (uint64_t i = 0; i < info.pages && i < 16; i++)
        (void)!leat_pack_page_read(p, i, page, capacity, NULL);
    free(page);
}

/* With the index cached, with a cache of one chunk, and without. */
static void use_path(const char *path)
{
    static const uint64_t caches[] = {0, LEAT__PACK_CHUNK, UINT64_MAX};
    for (size_t i = 0; i < LEAT_COUNT(caches); i++) {
        leat_pack *p = NULL;
        leat_pack_opts o = LEAT_PACK_OPTS_INIT;
        o.no_verify = 1;
        o.index_cache_bytes = caches[i];
        if (leat_pack_open(&p, path, &o, NULL) == 0) use_pack(p);
        leat_pack_close(&p);
    }
    (void)!leat_pack_verify(path, NULL, NULL, NULL);
}

static void put_file(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size)) abort();
    close(fd);
}

/* ---- sets ---- */

static char folder[64];

static void remove_folder(void)
{
    static const char *const names[] = {"s.leat", "s-00000.leat", "s-00001.leat"};
    char path[128];
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* The n-th fingerprint of the list becomes that of the n-th shard. */
static void sign(uint8_t *set, size_t size, int n, const uint8_t *shard, size_t shard_size)
{
    static const char word[] = "\"fingerprint\":\"";
    char digits[17];
    uint8_t *at = set;
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)leat__load_u64(shard + shard_size - LEAT__PACK_BLOCK));
    for (int i = 0; i <= n && at != NULL; i++) {
        at = memmem(at, size - (size_t)(at - set), word, sizeof word - 1);
        if (at != NULL) at += sizeof word - 1;
    }
    if (at != NULL && size - (size_t)(at - set) >= 16) memcpy(at, digits, 16);
}

static void use_set(uint8_t *data, size_t size)
{
    size_t sizes[3] = {leat__load_u32(data), leat__load_u32(data + 4), 0};
    char path[3][128];
    if (folder[0] == '\0') {
        strcpy(folder, "/dev/shm/leat-fuzz-XXXXXX");
        if (mkdtemp(folder) == NULL) abort();
        atexit(remove_folder);
    }
    size -= 8;
    if (sizes[0] > size || sizes[1] > size - sizes[0]) return;
    sizes[2] = size - sizes[0] - sizes[1];
    uint8_t *part[3] = {data + 8, data + 8 + sizes[0], data + 8 + sizes[0] + sizes[1]};
    if (!can_be_whole(sizes[0])) return;
    for (int i = 1; i < 3; i++) {
        if (!can_be_whole(sizes[i])) continue;
        repair(part[i], sizes[i]);
        sign(part[0], sizes[0], i - 1, part[i], sizes[i]);
    }
    repair(part[0], sizes[0]);
    snprintf(path[0], sizeof path[0], "%s/s.leat", folder);
    snprintf(path[1], sizeof path[1], "%s/s-00000.leat", folder);
    snprintf(path[2], sizeof path[2], "%s/s-00001.leat", folder);
    for (int i = 0; i < 3; i++) put_file(path[i], part[i], sizes[i]);
    use_path(path[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4u << 20) return 0;
    uint8_t *file = malloc(size + 1);
    if (size > 0) memcpy(file, data, size);
    leat__mem_limit_set(256u << 20);
    if (size % LEAT__PACK_SECTION_ALIGN == 8 && size > LEAT__PACK_BLOCK) {
        use_set(file, size);
    } else {
        if (can_be_whole(size)) repair(file, size);
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        if (fd < 0 || write(fd, file, size) != (ssize_t)size) abort();
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        use_path(path);
        close(fd);
    }
    free(file);
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
