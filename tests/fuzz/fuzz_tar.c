/* SPDX-License-Identifier: Apache-2.0
 *
 * Tar archives, plain and compressed, against any bytes. Headers of plain input get their
 * checksum repaired first, because it would reject nearly every mutation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ingest/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair(uint8_t *file, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512) {
        uint8_t *h = file + at;
        if (memcmp(h + 257, "ustar", 5) != 0) continue;
        unsigned sum = 0;
        memset(h + 148, ' ', 8);
        for (int i = 0; i < 512; i++) sum += h[i];
        snprintf((char *)h + 148, 8, "%06o", sum);
    }
}

static void walk(leat__stream *stream)
{
    leat__tar tar;
    leat__tar_member m;
    bool end = false;
    char part[4096];
    leat__tar_init(&tar, stream);
    for (int n = 0; n < 1000 && leat__tar_next(&tar, &m, &end, NULL) == 0 && !end; n++) {
        if (strlen(m.name) != m.name_len) abort();
        size_t want = m.size < sizeof part ? (size_t)m.size : sizeof part;
        if (leat__tar_read(&tar, part, want, NULL) != 0) break;
    }
    leat__tar_reset(&tar);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    leat__stream *stream = NULL;
    if (!copy) return 0;
    if (size > 0) memcpy(copy, data, size);
    repair(copy, size);
    leat__mem_limit_set(256u << 20);
    if (leat__stream_open_memory(&stream, "fuzz.tar", copy, size, NULL) == 0) walk(stream);
    leat__stream_close(&stream);
    if (leat__mem_blocks() != 0) abort();
    free(copy);
    return 0;
}
