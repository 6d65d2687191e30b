/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs of many samples: the cost of opening, lookups and reading rows, as JSON lines.
 *
 *   pack_scale write PATH SAMPLES     an image of 16 bytes and a label per sample
 *   pack_scale open PATH [CACHE]      in a fresh process: time and resident size
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <leat/pack.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"

static const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE},
                                    {.name = "label", .type = LEAT_FIELD_INT}};

static int die(const leat_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static int key_of(uint64_t i, char key[40])
{
    return snprintf(key, 40, "class%03d/img_%09" PRIu64 ".jpg", (int)(i % 1000), i);
}

static long resident_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static int write_pack(const char *path, uint64_t n)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_packer_stats stats;
    leat_error err;
    o.fields = fields;
    o.field_count = 2;
    o.replace = 1;
    uint64_t start = leat__clock_ns();
    if (leat_packer_open(&p, path, &o, &err) != 0) return die(&err);
    for (uint64_t i = 0; i < n; i++) {
        char key[40], image[16] = "0123456789abcdef";
        memcpy(image, &i, sizeof i);
        leat_pack_value v[2] = {{.data = image, .size = sizeof image, .image = {500, 375, 1, 3, 1, 0, 1500}},
                                {.i = (int64_t)(i % 1000)}};
        leat_pack_sample s = {.key = key, .key_size = (size_t)key_of(i, key), .values = v};
        if (leat_packer_append(p, &s, &err) != 0) return die(&err);
    }
    uint64_t appended = leat__clock_ns();
    if (leat_packer_finish(p, &stats, &err) != 0) return die(&err);
    uint64_t end = leat__clock_ns();
    leat_packer_close(&p);
    printf("{\"bench\":\"pack_write\",\"samples\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"append_s\":%.2f,\"finish_s\":%.2f,\"peak_rss_mb\":%.1f}\n",
           stats.samples, stats.file_bytes, (double)(appended - start) / 1e9, (double)(end - appended) / 1e9,
           (double)resident_kib() / 1024);
    return 0;
}

static int open_pack(const char *path, uint64_t cache)
{
    leat_pack *p = NULL;
    leat_error err;
    leat_pack_row row;
    leat_pack_cell cell;
    leat__rng r;
    long before = resident_kib();
    uint64_t t0 = leat__clock_ns();
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;
    o.index_cache_bytes = cache;
    if (leat_pack_open(&p, path, &o, &err) != 0) return die(&err);
    uint64_t t1 = leat__clock_ns();
    long after = resident_kib();
    uint64_t n = leat_pack_count(p), found;
    enum { TRIES = 100000 };
    leat__rng_init(&r, 1, 0, 0, 0);
    /* Touch all columns once: after that, the steady state is measured. */
    for (uint64_t at = 0; at < n; at += 1024)
        if (leat_pack_rows(p, at, 1, &row, &err) != 0 || leat_pack_cells(p, 0, at, 1, &cell, &err) != 0)
            return die(&err);
    uint64_t t2 = leat__clock_ns();
    for (int i = 0; i < TRIES; i++) {
        uint64_t at = leat__rng_below(&r, n);
        uint32_t field = 0;
        if (leat_pack_look(p, at, &row, &field, 1, &cell, &err) != 0) return die(&err);
    }
    uint64_t t3 = leat__clock_ns();
    for (int i = 0; i < TRIES; i++) {
        char key[40];
        uint64_t at = leat__rng_below(&r, n);
        int size = key_of(at, key);
        if (leat_pack_find(p, key, (size_t)size, &found, &err) != 0) return die(&err);
        if (found != at) return 1;
    }
    uint64_t t4 = leat__clock_ns();
    printf("{\"bench\":\"pack_open\",\"samples\":%" PRIu64 ",\"open_ms\":%.3f,"
           "\"rss_mb_before\":%.1f,\"rss_mb_open\":%.1f,\"heap_bytes\":%" PRIu64
           ",\"look_us\":%.2f,\"find_us\":%.2f,\"rss_mb_end\":%.1f}\n",
           n, (double)(t1 - t0) / 1e6, (double)before / 1024, (double)after / 1024,
           leat__mem_peak(LEAT__MEM_CATS), (double)(t3 - t2) / 1e3 / TRIES, (double)(t4 - t3) / 1e3 / TRIES,
           (double)resident_kib() / 1024);
    leat_pack_close(&p);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "write") == 0) return write_pack(argv[2], strtoull(argv[3], NULL, 10));
    if ((argc == 3 || argc == 4) && strcmp(argv[1], "open") == 0)
        return open_pack(argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : 0);
    fprintf(stderr, "usage: pack_scale write PATH SAMPLES | open PATH [CACHE]\n");
    return 2;
}
