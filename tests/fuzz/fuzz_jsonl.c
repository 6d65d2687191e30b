/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifests of any bytes, as JSON lines and as CSV, through both passes of the source.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ingest/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static bool put(const uint8_t *data, size_t size, const char *ext)
{
    static bool registered;
    if (!registered) atexit(remove_file);
    registered = true;
    unlink(path);
    snprintf(path, sizeof path, "/tmp/leat-fuzz-%d.%s", (int)getpid(), ext);
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(data, 1, size, f) == size;
    return fclose(f) == 0 && ok;
}

static void read_manifest(bool shuffle)
{
    const char *paths[] = {path};
    leat_ingest_opts opts = {
        .struct_size = sizeof opts, .sources = paths, .source_count = 1, .output = path, .shuffle = shuffle};
    leat__source *s = NULL;
    leat_error err = {0};
    if (leat__source_open(&s, &opts, &err) != 0) {
        if (err.message[0] == 0) abort();
        return;
    }
    leat__records_pool spare;
    leat__records_pool_init(&spare, s->field_count, 1);
    bool end = false;
    uint64_t records = 0;
    while (!end) {
        leat__records *run = leat__records_pool_take(&spare);
        if (!run) break;
        leat__record *r = leat__records_add(run);
        int rc = s->ops->next(s, run, r, &end, &err);
        if (rc == 0 && !end && r->key_size == 0) abort();
        leat__records_pool_give(&spare, run);
        if (rc != 0) break;
        records++;
    }
    if (end && records - 1 != s->total) abort(); /* nothing dropped, nothing added */
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* a compressed manifest may be unlimited; the stream has its own target */
    if (size >= 2 && (memcmp(data, "\x1f\x8b", 2) == 0 || memcmp(data, "\x28\xb5", 2) == 0)) return 0;
    leat__mem_limit_set(256u << 20);
    if (put(data, size, "jsonl")) read_manifest(false);
    if (put(data, size, "csv")) {
        read_manifest(false);
        read_manifest(true);
    }
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
