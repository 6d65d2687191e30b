/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs under faults: a write that fails anywhere leaves no pack and can be resumed to the same
 * bytes; opening, reading and verifying fail cleanly.
 */
#include "fault.h"

#include "../unit/pack/packtest.h"

#define SCALE 4000

typedef struct world {
    char *dir, *path;
    leat_packer_opts opts;
    uint8_t *want;
    size_t want_size;
    uint64_t samples;
} world;

static void fresh(void *ctx)
{
    world *w = ctx;
    char cmd[700];
    snprintf(cmd, sizeof cmd, "%s/x.leat", w->dir);
    unlink(cmd);
    for (int i = 0; i < 10; i++) {
        snprintf(cmd, sizeof cmd, "%s/x-%05d.leat", w->dir, i);
        unlink(cmd);
        snprintf(cmd, sizeof cmd, "%s/x-%05d.leat.partial", w->dir, i);
        unlink(cmd);
    }
    snprintf(cmd, sizeof cmd, "%s/x.leat.partial", w->dir);
    unlink(cmd);
    snprintf(cmd, sizeof cmd, "%s/x.leat.journal", w->dir);
    unlink(cmd);
}

static int run_write(void *ctx, leat_error *err)
{
    world *w = ctx;
    return pt_write(w->path, &w->opts, w->samples, SCALE, NULL, err);
}

static bool same_as_wanted(world *w)
{
    size_t n;
    uint8_t *data = pt_load(w->path, &n);
    bool same = n == w->want_size && memcmp(data, w->want, n) == 0;
    free(data);
    return same;
}

/* Whatever happened, a resumed run ends in the right bytes. */
static bool resumes(void *ctx, int rc)
{
    world *w = ctx;
    leat_error err;
    if (rc == 0) return same_as_wanted(w);
    leat_packer_opts o = w->opts;
    o.resume = 1;
    bool there = access(w->path, F_OK) == 0;
    if (there && !same_as_wanted(w)) return false; /* a pack under its name is complete */
    rc = pt_write(w->path, &o, w->samples, SCALE, NULL, &err);
    if (rc != 0) fprintf(stderr, "resume: %s\n", err.message);
    return rc == 0 && same_as_wanted(w);
}

static int run_read(void *ctx, leat_error *err)
{
    world *w = ctx;
    leat_pack *p = NULL;
    leat_sample *s = NULL;
    const char *const *names;
    const void *blob;
    uint64_t count, found;
    size_t size;
    int rc = leat_pack_open(&p, w->path, NULL, err);
    if (rc == 0) rc = leat_sample_open(&s, p, err);
    for (uint64_t i = 0; rc == 0 && i < w->samples; i += 7) rc = leat_sample_read(s, i, err);
    if (rc == 0) rc = leat_pack_classes(p, PT_LABEL, &names, &count, err);
    if (rc == 0) rc = leat_pack_blob(p, "tile-tables", &blob, &size, err);
    if (rc == 0) rc = leat_pack_find(p, "class3/img_00000003.jpg", 23, &found, err);
    leat_sample_close(&s);
    leat_pack_close(&p);
    return rc;
}

static int run_verify(void *ctx, leat_error *err)
{
    world *w = ctx;
    leat_pack_verify_opts o = {.struct_size = sizeof o, .threads = 3};
    return leat_pack_verify(w->path, &o, NULL, err);
}

int main(void)
{
    if (!leat__fault_available()) return 77; /* skipped */
    world w = {.dir = pt_dir(), .opts = pt_opts()};
    leat_error err;
    int bad = 0;
    w.path = pt_path(w.dir, "x.leat");
    for (int shards = 0; shards < 2; shards++) {
        w.opts.shard_bytes = shards ? 1 << 20 : 0;
        w.samples = shards ? 400 : 60; /* three shards */
        w.opts.no_sync = 0;
        fresh(&w);
        if (run_write(&w, &err) != 0) return 1;
        w.want = pt_load(w.path, &w.want_size);
        fault_scenario scenarios[] = {
            {.name = shards ? "read a set" : "read", .run = run_read, .ctx = &w, .stride = shards ? 11 : 1},
            {.name = shards ? "verify a set" : "verify",
             .run = run_verify,
             .ctx = &w,
             .stride = shards ? 7 : 1},
            {.name = shards ? "write a set" : "write",
             .before = fresh,
             .run = run_write,
             .after = resumes,
             .ctx = &w,
             .stride = shards ? 3 : 1},
        };
        for (int i = 0; i < 3; i++) bad += fault_run(&scenarios[i]);
        free(w.want);
    }
    pt_rmdir(w.dir);
    return bad != 0;
}
