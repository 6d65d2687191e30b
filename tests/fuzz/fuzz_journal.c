/* SPDX-License-Identifier: Apache-2.0
 *
 * Resumes from any journal and any partial file. The input: flags (u8), the size of the journal
 * (u32), the journal, the partial pack. The head and the checks of the journal's records are
 * repaired, so that hostile records reach the replay and the indexer, unless AS_IS is set.
 * Resuming must then succeed or fail, and verify must be able to read a resulting pack to its
 * end.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/pack.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"

#define HEAD 32u
#define RECORD_HEAD 24u
#define SHARDS 3 /* files of a set that are cleaned up */

enum { AS_IS = 1, SHARDED = 2, PUBLISHED = 4 /* the partial pack already has its name */ };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE},
                                    {.name = "label", .type = LEAT_FIELD_INT},
                                    {.name = "text", .type = LEAT_FIELD_TEXT}};

static char folder[64], pack[128], journal[160];
static uint8_t heads[2][HEAD]; /* of journals with the expected identity: pack, set */

static int open_packer(leat_packer **p, bool sharded)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    o.fields = fields;
    o.field_count = 3;
    o.page_bytes = 64u << 10;
    o.shard_bytes = sharded ? 1u << 20 : 0;
    o.no_sync = 1;
    o.resume = 1;
    o.replace = 1;
    return leat_packer_open(p, pack, &o, NULL);
}

static void clean_up(void)
{
    (void)!leat_packer_discard(pack, NULL);
    unlink(pack);
    for (int i = 0; i < SHARDS; i++) {
        char shard[160];
        snprintf(shard, sizeof shard, "%s/p-%05d.leat", folder, i);
        unlink(shard);
        strcat(shard, ".partial");
        unlink(shard);
    }
}

static void remove_folder(void)
{
    clean_up();
    rmdir(folder);
}

static void prepare(void)
{
    strcpy(folder, "/dev/shm/leat-fuzz-XXXXXX");
    if (mkdtemp(folder) == NULL) abort();
    snprintf(pack, sizeof pack, "%s/p.leat", folder);
    snprintf(journal, sizeof journal, "%s.journal", pack);
    atexit(remove_folder);
    for (int sharded = 0; sharded < 2; sharded++) {
        leat_packer *p = NULL;
        if (open_packer(&p, sharded) != 0) abort();
        leat_packer_close(&p);
        int fd = open(journal, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, heads[sharded], HEAD) != HEAD) abort();
        close(fd);
        clean_up();
    }
}

static void put_file(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size)) abort();
    close(fd);
}

static void put_pack(unsigned flags, const uint8_t *data, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/p%s.leat%s", folder, flags & SHARDED ? "-00000" : "",
             flags & PUBLISHED ? "" : ".partial");
    put_file(path, data, size);
}

static void repair(uint8_t *j, size_t size, const uint8_t head[HEAD])
{
    memcpy(j, head, LEAT_MIN(size, (size_t)HEAD));
    for (size_t at = HEAD; at < size && size - at >= RECORD_HEAD;) {
        uint32_t kind = leat__load_u32(j + at);
        uint64_t len = leat__load_u64(j + at + 8);
        if (len > size - at - RECORD_HEAD) break;
        leat__store_u64(j + at + 16,
                        leat__hash64(j + at, 16, 0) ^ leat__hash64(j + at + RECORD_HEAD, (size_t)len, kind));
        at += RECORD_HEAD + (size_t)len;
    }
}

static void go_on(bool sharded)
{
    leat_packer *p = NULL;
    leat_packer_stats stats;
    uint64_t marks[LEAT_PACKER_MARKS];
    if (open_packer(&p, sharded) == 0) {
        (void)leat_packer_resumed(p, marks);
        leat_pack_value v[3] = {
            {.data = "image", .size = 5, .image = {.codec = 1}}, {.i = 7}, {.data = "text", .size = 4}};
        leat_pack_sample s = {.key = "more", .key_size = 4, .values = v};
        if (leat_packer_append(p, &s, NULL) == 0 && leat_packer_finish(p, &stats, NULL) == 0)
            (void)!leat_pack_verify(pack, NULL, NULL, NULL);
    }
    leat_packer_close(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5 || size > 4u << 20) return 0;
    if (folder[0] == '\0') prepare();
    unsigned flags = data[0];
    bool sharded = (flags & SHARDED) != 0;
    size_t journal_size = LEAT_MIN((size_t)leat__load_u32(data + 1), size - 5);
    uint8_t *copy = malloc(journal_size + 1);
    if (copy == NULL) return 0;
    memcpy(copy, data + 5, journal_size);
    if ((flags & AS_IS) == 0) repair(copy, journal_size, heads[sharded]);
    leat__mem_limit_set(256u << 20);
    put_file(journal, copy, journal_size);
    put_pack(flags, data + 5 + journal_size, size - 5 - journal_size);
    free(copy);
    go_on(sharded);
    clean_up();
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
