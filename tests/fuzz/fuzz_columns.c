/* SPDX-License-Identifier: Apache-2.0
 *
 * Column files of any bytes, repaired by fuzz_repair.h, through the readers of curation: signatures and the
 * search for duplicates, columns by name and their conditions, vectors.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "curate/column_packs.h"
#include "curate/image_dedup.h"
#include "curate/vectors.h"
#include "fuzz_repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MOST = 256 };

static int tell(void *cookie, uint64_t done, uint64_t total, uint64_t found)
{
    (void)cookie, (void)done, (void)total, (void)found;
    return 0;
}

static void search(const char *path)
{
    const leat__dedup_rows_opts from = {.paths = &path, .count = 1, .orientations = 2, .windows = true};
    leat__dedup_rows rows;
    leat__image_pairs pairs = {0};
    leat_dedup_images_opts o;
    uint32_t kept[ROWS_MOST];
    leat_dedup_images_opts_init(&o);
    o.orientations = 2;
    o.threshold = 0.7;
    o.probable = 0.6;
    o.threads = 1;
    if (leat__dedup_rows_read(&rows, &from, NULL) == 0 && rows.count <= ROWS_MOST) {
        leat__dedup_search s = {.opts = &o, .columns = &path, .rows = &rows, .pairs = &pairs, .tell = tell};
        if (leat__dedup_search_run(&s, NULL) == 0)
            for (uint32_t keep = 0; keep <= LEAT_KEEP_IMAGE_PACK; keep++)
                (void)!leat__dedup_clusters(&rows, &pairs, keep, kept, NULL);
    }
    leat__free(pairs.pair);
    leat__dedup_rows_reset(&rows);
}

static void use_columns(const char *path)
{
    static const char *const names[] = {"verdict", "blur", "issues", "label", "folder", "size"};
    leat__column_packs s = {0};
    double numbers[ROWS_MOST];
    int64_t codes[ROWS_MOST];
    bool chosen[ROWS_MOST];
    const char *const *classes;
    uint64_t count;
    if (leat__column_packs_open(&s, path, &path, 1, NULL) == 0 && s.rows <= ROWS_MOST) {
        for (size_t i = 0; i < LEAT_COUNT(names); i++) {
            (void)!leat__column_packs_numbers(&s, names[i], numbers, NULL);
            (void)!leat__column_packs_codes(&s, names[i], codes, NULL);
            (void)!leat__column_packs_code_of(&s, names[i], "ok", codes, NULL);
            (void)!leat__column_packs_classes(&s, names[i], &classes, &count, NULL);
        }
        for (uint64_t i = 0; i < s.rows; i++) chosen[i] = true;
        (void)!leat__column_packs_where(&s, "verdict == 0 and blur > 3 or key ~ 'a'", chosen, NULL);
    }
    leat__column_packs_close(&s);
}

static void use_vectors(const char *path)
{
    leat_pack *pack = NULL;
    leat__vectors v = {0};
    if (leat_pack_open(&pack, path, NULL, NULL) == 0 && leat_pack_count(pack) <= ROWS_MOST)
        (void)!leat__vectors_read(&v, pack, NULL, NULL);
    leat__vectors_reset(&v);
    leat_pack_close(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    uint8_t *copy = malloc(size ? size : 1);
    int fd = memfd_create("columns", MFD_CLOEXEC);
    if (!copy || fd < 0) abort();
    leat__mem_limit_set(256u << 20);
    memcpy(copy, data, size);
    if (can_be_whole(size)) repair(copy, size);
    if (size > 0 && write(fd, copy, size) != (ssize_t)size) abort();
    free(copy);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    search(path);
    use_columns(path);
    use_vectors(path);
    close(fd);
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
