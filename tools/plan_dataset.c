/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts for `leat plan` out of a pack's index: no page of it is read.
 */
#include <jansson.h>
#include <stdio.h>

#include <leat/machine.h>
#include <leat/pack.h>

#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"
#include "doctor/reads.h"
#include "plan/parts.h"
#include "plan_modes.h"

/* Cells looked at, evenly spaced: means of a large pack are known well before all are. */
#define CELLS 4096

/* What the plan's table of costs calls the way this image is stored. */
static const char *method_of(const leat_pack_image *image, bool fast)
{
    switch (image->codec) {
    case LEAT__CODEC_RAW: return "raw";
    case LEAT__CODEC_TILE: return fast ? "fast" : "tiled";
    case LEAT__CODEC_PNG: return "png";
    case LEAT__CODEC_BMP: return "raw";
    case LEAT__CODEC_GIF:
    case LEAT__CODEC_TIFF: return "png";
    case LEAT__CODEC_AVIF: /* the nearest of the methods that were measured */
    case LEAT__CODEC_HEIF:
    case LEAT__CODEC_JXL:
    case LEAT__CODEC_WEBP: return "webp";
    default: return image->flags & LEAT_PACK_IMAGE_ENTRIES ? "keep" : "plain";
    }
}

/* `--tiles fast` is told by the settings that the pack was made with. */
static bool fast_tiles(const leat_pack *pack)
{
    json_t *root = json_loads(leat_pack_provenance(pack), 0, NULL);
    const json_t *source = json_object_get(root, "source");
    const char *tiles = json_string_value(json_object_get(json_object_get(source, "settings"), "tiles"));
    bool fast = tiles != NULL && leat__str_eq(tiles, "fast");
    json_decref(root);
    return fast;
}

static int first_image_field(const leat_pack *pack)
{
    for (uint32_t i = 0; i < leat_pack_field_count(pack); i++)
        if (leat_pack_field(pack, i)->type == LEAT_FIELD_IMAGE) return (int)i;
    return -1;
}

static int image_facts(leat_pack *pack, uint64_t samples, leat_plan_facts *f, leat_error *err)
{
    int field = first_image_field(pack);
    uint64_t seen = 0, width = 0, height = 0, raw = 0, tiles = 0;
    bool fast = fast_tiles(pack);
    double us = 0;
    if (field < 0) return 0;
    uint64_t step = LEAT_MAX(samples / CELLS, UINT64_C(1));
    for (uint64_t i = 0; i < samples; i += step) {
        leat_pack_cell cell;
        int rc = leat_pack_cells(pack, (uint32_t)field, i, 1, &cell, err);
        if (rc != 0) return rc;
        if (cell.absent) continue;
        seen++;
        width += cell.image.width;
        height += cell.image.height;
        raw += cell.image.codec == LEAT__CODEC_RAW;
        tiles += cell.image.codec == LEAT__CODEC_TILE;
        us += leat__plan_sample_us(f, method_of(&cell.image, fast), (double)cell.length,
                                   (double)cell.image.width * cell.image.height);
    }
    if (seen == 0) return 0;
    f->width = (uint32_t)(width / seen);
    f->height = (uint32_t)(height / seen);
    f->mix_raw = (double)raw / (double)seen;
    f->images = raw == seen ? LEAT_PLAN_RAW
                : raw > 0   ? LEAT_PLAN_MIX
                : 2 * tiles >= seen ? LEAT_PLAN_TILED
                                    : LEAT_PLAN_KEEP;
    f->work = us / (double)seen / leat__plan_table_us(f);
    return 0;
}

/* The storage of the file, if the system reports it clearly; "" otherwise. */
static int storage_facts(const char *path, leat_plan_facts *f, leat_error *err)
{
    leat_disk disk;
    int rc = leat_disk_read(&disk, path, err);
    if (rc != 0) return rc;
    const char *kind = "";
    if (leat__str_eq(disk.filesystem, "tmpfs"))
        kind = "memory";
    else if (disk.network == 1)
        kind = "network";
    else if (disk.rotational == 1)
        kind = "hdd";
    else if (leat__str_starts(disk.device, "nvme"))
        kind = "nvme";
    else if (disk.rotational == 0)
        kind = "ssd";
    snprintf(f->storage, sizeof f->storage, "%s", kind);
    return 0;
}

int plan_dataset(const char *path, leat_plan_facts *f, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    int rc = leat_pack_open(&pack, path, NULL, err);
    if (rc == 0) rc = leat_pack_info_read(pack, &info, sizeof info);
    if (rc == 0) {
        f->samples = info.samples;
        f->sample_bytes = info.samples > 0 ? info.bytes / info.samples : 0;
        f->page_bytes = info.page_bytes;
        f->max_sample_bytes = info.max_sample_bytes;
        rc = image_facts(pack, info.samples, f, err);
    }
    leat_pack_close(&pack);
    if (rc == 0 && leat__reads_resident(path, &f->cached, NULL) != 0) f->cached = 0;
    return rc == 0 ? storage_facts(path, f, err) : rc;
}
