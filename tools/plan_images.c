/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts for `leat plan`: the memory to decode the images of a pack, and to run ops on them. The loader
 * reserves it by an image's size and codec, so the plan looks up all of them in the index.
 */
#include <leat/pack.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec.h"
#include "doctor/variant.h"
#include "io/url.h"
#include "loader/bounds.h"
#include "loader/footprint.h"
#include "loader/scratch.h"
#include "pack/kind.h"
#include "plan/parts.h"
#include "plan_modes.h"

/* Images whose headers are read. */
#define HEADER_IDS 256
#define HEADERS 24
#define HEADER_BYTES (UINT64_C(32) << 20)
/* Bytes per pixel of a progressive JPEG: its coefficients, with colours at half the width and height. */
#define JPEG_DECODING 3

typedef struct image_memory {
    const leat__scratch_use *use;
    leat__codec_id stored;              /* how the images will be stored; NONE = as they are */
    double decoding[LEAT__CODEC_COUNT]; /* bytes per pixel that a decoder takes */
    uint64_t seen, max_used;
    double charged, used; /* sums */
} image_memory;

static bool has_entries(const leat_pack_image *image)
{
    return image->codec == LEAT__CODEC_JPEG && image->flags & LEAT_PACK_IMAGE_ENTRIES;
}

/* Returns the memory that this image takes beyond that of a crop. The loader reserves more if the index does
 * not tell how an image was encoded. */
static uint64_t used_bytes(const image_memory *m, const leat_pack_cell *cell)
{
    static const leat__scratch_use crop = {.views = 1};
    const double pixels = (double)cell->image.width * cell->image.height;
    leat_pack_cell tiles = *cell, upright;
    if (cell->length == 0) return 0;
    tiles.image.codec = LEAT__CODEC_TILE; /* needs no memory to be decoded */
    upright = tiles;
    upright.image.orientation = 1;
    uint64_t ops = leat__scratch_bytes(&tiles, m->use), usual = leat__scratch_bytes(&upright, &crop);
    if (leat__image_kind_of(&cell->image) != 0) return ops;
    const double decoding = has_entries(&cell->image) ? 0 : m->decoding[cell->image.codec];
    return ops - LEAT_MIN(ops, usual) + (uint64_t)(decoding * pixels);
}

/* Adds an image; returns what the loader reserves for it beyond the usual memory of a worker. */
static uint64_t add_image(void *arg, const leat_pack_cell *cell)
{
    image_memory *m = arg;
    leat_pack_cell c = *cell;
    if (m->stored != LEAT__CODEC_NONE) c.image.codec = (uint8_t)m->stored;
    const uint64_t bytes = leat__scratch_bytes(&c, m->use), used = used_bytes(m, &c);
    const uint64_t beyond = bytes > LEAT__WORKER_RAM ? bytes - LEAT__WORKER_RAM : 0;
    m->seen++;
    m->charged += (double)beyond;
    m->used += (double)used;
    m->max_used = LEAT_MAX(m->max_used, used);
    return beyond;
}

static void set_facts(const image_memory *m, uint64_t most, leat_plan_facts *f)
{
    const double seen = (double)LEAT_MAX(m->seen, UINT64_C(1));
    f->image_bytes = (uint64_t)(m->charged / seen);
    f->max_image_bytes = most;
    f->used_image_bytes = (uint64_t)(m->used / seen);
    f->max_used_image_bytes = m->max_used;
}

/* Reads the headers of a few images, which tell what their decoders take: the index does not have interlaced
 * PNGs and the components of JPEGs. Keeps the usual figures where it cannot. */
static void read_headers(const char *path, uint64_t samples, image_memory *m)
{
    uint64_t ids[HEADER_IDS], count = LEAT_MIN(samples, (uint64_t)HEADER_IDS);
    double bytes[LEAT__CODEC_COUNT] = {0}, pixels[LEAT__CODEC_COUNT] = {0};
    leat__set set = {0};
    for (uint64_t i = 0; i < count; i++) ids[i] = i * (samples / count);
    if (leat__set_load(&set, path, ids, count, HEADERS, HEADER_BYTES, NULL, NULL) != 0) set.count = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const leat__image_info *info = &set.sample[i].info;
        if (set.sample[i].entries_len > 0) continue;
        bytes[info->codec] += (double)info->memory;
        pixels[info->codec] += (double)info->width * info->height;
    }
    for (uint32_t i = 0; i < LEAT__CODEC_COUNT; i++)
        if (pixels[i] > 0) m->decoding[i] = bytes[i] / pixels[i];
    leat__set_reset(&set);
}

/* Lists the samples whose entries plan_dataset reads from a remote index. */
static uint64_t *remote_ids(uint64_t samples, uint64_t *count, leat_error *err)
{
    const uint64_t run = PLAN_CELLS / PLAN_PLACES, step = LEAT_MAX(samples / PLAN_PLACES, run);
    uint64_t *ids = LEAT_NEW_ARRAY(MISC, uint64_t, PLAN_CELLS + run);
    *count = 0;
    if (ids == NULL) (void)leat__fail_nomem(err, PLAN_CELLS * sizeof *ids, "samples");
    for (uint64_t i = 0; ids != NULL && i < samples; i += step)
        for (uint64_t k = i; k < LEAT_MIN(i + run, samples); k++) ids[(*count)++] = k;
    return ids;
}

/* Reads the index entries of all images; of a remote pack, of those that plan_dataset read. */
static int read_index(leat_pack *pack, bool remote, image_memory *m, leat_plan_facts *f, leat_error *err)
{
    leat_pack_info info;
    leat__ragged_bound most = {0};
    uint64_t *ids = NULL;
    LEAT_TRY(leat_pack_info_read(pack, &info, sizeof info));
    leat__measured what = {.pack = pack,
                           .field = (uint32_t)plan_first_image_field(pack),
                           .count = info.samples,
                           .value = add_image,
                           .arg = m};
    if (remote) {
        what.indices = ids = remote_ids(info.samples, &what.count, err);
        if (ids == NULL) return LEAT_ENOMEM;
    }
    int rc = leat__values_measure(&what, 1, false, &most, err);
    if (rc == 0) set_facts(m, most.value, f);
    leat__free(ids);
    return rc;
}

static int images_of_pack(const char *path, image_memory *m, leat_plan_facts *f, leat_error *err)
{
    leat_pack *pack = NULL;
    const bool remote = leat__path_remote(path);
    int rc;
    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    LEAT_GO(rc, out, read_index(pack, remote, m, f, err));
    if (f->max_image_bytes == 0 || remote) goto out;
    read_headers(path, f->samples, m);
    m->seen = m->max_used = 0;
    m->charged = m->used = 0;
    rc = read_index(pack, remote, m, f, err);
out:
    leat_pack_close(&pack);
    return rc;
}

int plan_images(const char *path, uint32_t stored, const leat__pipeline *pipeline, leat_plan_facts *f,
                leat_error *err)
{
    const leat__pipeline *const list[] = {pipeline};
    const leat__scratch_use use = leat__scratch_use_of(list, 1);
    image_memory m = {.use = &use, .stored = (leat__codec_id)stored};
    for (uint32_t i = 0; i < LEAT__CODEC_COUNT; i++)
        m.decoding[i] = leat__codec_facts_of((leat__codec_id)i)->memory;
    m.decoding[LEAT__CODEC_JPEG] = JPEG_DECODING;
    m.decoding[LEAT__CODEC_PNG] = 0; /* interlaced ones are rare */
    if (path != NULL) return images_of_pack(path, &m, f, err);
    const leat_pack_cell cell = {.length = 1,
                                 .image = {.width = f->width > 0 ? f->width : LEAT__PLAN_WIDTH,
                                           .height = f->height > 0 ? f->height : LEAT__PLAN_HEIGHT,
                                           .codec = LEAT__CODEC_TILE,
                                           .channels = 3,
                                           .orientation = 1}};
    set_facts(&m, add_image(&m, &cell), f);
    return 0;
}
