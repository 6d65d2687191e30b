/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts for `leat plan` from a pack's index, without reading its pages, or from the listing of a prefix in a
 * bucket.
 */
#include <jansson.h>
#include <stdio.h>

#include <leat/machine.h>
#include <leat/pack.h>

#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"
#include "doctor/reads.h"
#include "doctor/variant.h"
#include "io/dir.h"
#include "io/object.h"
#include "io/traffic.h"
#include "ingest/source.h"
#include "pack/kind.h"
#include "pack/reader.h"
#include "plan/parts.h"
#include "plan_modes.h"

/* Images that are re-encoded for what-ifs: some 50 ms of work. */
#define SIZE_IDS 256
#define SIZE_SAMPLES 24
#define SIZE_LEAST 4
#define SIZE_PIXELS 6e6
#define SIZE_BYTES (UINT64_C(32) << 20)

/* Returns the name that the plan's table of costs has for the way this image is stored. */
static const char *method_of(const leat_pack_image *image, bool fast)
{
    if (image->codec == LEAT__CODEC_TILE && fast) return "fast";
    if (image->codec == LEAT__CODEC_JPEG && image->flags & LEAT_PACK_IMAGE_ENTRIES) return "keep";
    return leat__codec_facts_of(image->codec)->method;
}

/* True when the pack was made with `--tiles fast`, by its settings. */
static bool fast_tiles(const leat_pack *pack)
{
    json_t *root = json_loads(leat_pack_provenance(pack), 0, NULL);
    const json_t *source = json_object_get(root, "source");
    const char *tiles = json_string_value(json_object_get(json_object_get(source, "settings"), "tiles"));
    bool fast = tiles != NULL && leat__str_eq(tiles, "fast");
    json_decref(root);
    return fast;
}

int plan_first_image_field(const leat_pack *pack)
{
    for (uint32_t i = 0; i < leat_pack_field_count(pack); i++)
        if (leat_pack_field(pack, i)->type == LEAT_FIELD_IMAGE) return (int)i;
    return -1;
}

typedef struct image_sums {
    uint64_t seen, width, height, raw, tiles;
    double us;
} image_sums;

static void add_image(const leat_plan_facts *f, const leat_pack_cell *cell, bool fast, image_sums *sum)
{
    if (cell->absent) return;
    sum->seen++;
    sum->width += cell->image.width;
    sum->height += cell->image.height;
    sum->raw += cell->image.codec == LEAT__CODEC_RAW;
    sum->tiles += cell->image.codec == LEAT__CODEC_TILE;
    sum->us += leat__plan_sample_us(f, method_of(&cell->image, fast), (double)cell->length,
                                    (double)cell->image.width * cell->image.height);
}

static int image_facts(leat_pack *pack, uint64_t samples, bool remote, leat_plan_facts *f,
                       leat__image_kind *kind, leat_error *err)
{
    const uint32_t field = (uint32_t)plan_first_image_field(pack);
    image_sums s = {0};
    bool fast = fast_tiles(pack);
    LEAT_TRY(leat__pack_image_kind(pack, field, kind, err));
    uint64_t run = remote ? PLAN_CELLS / PLAN_PLACES : 1, step = LEAT_MAX(samples / (PLAN_CELLS / run), run);
    for (uint64_t i = 0; i < samples; i += step) {
        for (uint64_t k = i; k < LEAT_MIN(i + run, samples); k++) {
            leat_pack_cell cell;
            LEAT_TRY(leat_pack_cells(pack, field, k, 1, &cell, err));
            add_image(f, &cell, fast, &s);
        }
    }
    if (s.seen == 0) return 0;
    f->width = (uint32_t)(s.width / s.seen);
    f->height = (uint32_t)(s.height / s.seen);
    f->mix_raw = (double)s.raw / (double)s.seen;
    f->images = s.raw == s.seen         ? LEAT_PLAN_RAW
                : s.raw > 0             ? LEAT_PLAN_MIX
                : 2 * s.tiles >= s.seen ? LEAT_PLAN_TILED
                                        : LEAT_PLAN_KEEP;
    f->work = s.us / (double)s.seen / leat__plan_table_us(f);
    return 0;
}

/* ---- Images stored again ---- */

void plan_sizes(const char *path, leat_plan_facts *f, const leat__time_limit *limit)
{
    uint64_t ids[SIZE_IDS], count = LEAT_MIN(f->samples, (uint64_t)SIZE_IDS);
    double pixels = LEAT_MAX((double)f->width * f->height, 1.0);
    uint32_t some = (uint32_t)LEAT_MIN(SIZE_PIXELS / pixels, (double)SIZE_SAMPLES);
    leat__set set = {0};

    for (uint64_t i = 0; i < count; i++) ids[i] = i * (f->samples / count);
    if (some < SIZE_LEAST) return; /* the images are too large: re-encoding even a few takes too long */
    int rc = leat__set_load(&set, path, ids, count, some, SIZE_BYTES, limit, NULL);
    if (rc == 0) rc = leat__variant_share(&set, PLAN_SMALLER_SIDE, 0, &f->smaller_share, NULL);
    if (rc == 0) rc = leat__variant_share(&set, 0, PLAN_LESS_QUALITY, &f->quality_share, NULL);
    if (rc != 0) f->smaller_share = f->quality_share = 0; /* use the table instead */
    leat__set_reset(&set);
}

/* Sets the storage of the file if the system reports it clearly; "" otherwise. */
static int storage_facts(const char *path, leat_plan_facts *f, leat_error *err)
{
    leat_disk disk;
    int rc = leat_disk_read(&disk, path, err);
    if (rc != 0) return rc;
    const char *kind = "";
    if (leat__str_eq(disk.filesystem, "tmpfs")) kind = "memory";
    else if (disk.network == 1) kind = "network";
    else if (disk.rotational == 1) kind = "hdd";
    else if (leat__str_starts(disk.device, "nvme")) kind = "nvme";
    else if (disk.rotational == 0) kind = "ssd";
    snprintf(f->storage, sizeof f->storage, "%s", kind);
    return 0;
}

/* Sets the storage to a bucket, with prices if its provider is known. */
static void bucket_facts(const char *path, leat_plan_facts *f)
{
    leat__traffic_rates rates;
    snprintf(f->storage, sizeof f->storage, "bucket");
    if (!leat__traffic_rates_of(path, &rates)) return;
    f->price_requests = rates.per_1000;
    f->price_other_region = rates.other_region;
    f->price_internet = rates.internet;
    snprintf(f->price_date, sizeof f->price_date, "%s", LEAT__TRAFFIC_DATE);
}

/* ---- A prefix of images ---- */

typedef struct listed {
    uint64_t images, bytes, largest;
} listed;

static int add_object(void *cookie, const leat__object *o, leat_error *err)
{
    listed *l = cookie;
    (void)err;
    if (o->folder || !leat__source_is_image(o->key)) return 0;
    l->images++;
    l->bytes += o->size;
    l->largest = LEAT_MAX(l->largest, o->size);
    return 0;
}

/* Uses only the listing, 1000 names per request: a pack made from the prefix is about as large. */
static int prefix_facts(const char *path, leat_plan_facts *f, leat_error *err)
{
    leat__store *store = NULL;
    listed l = {0};
    leat__buf prefix;
    int rc;

    leat__buf_init(&prefix, LEAT__MEM_MISC, 65536);
    (void)leat__buf_printf(&prefix, "%s%s", path, leat__str_ends(path, "/") ? "" : "/");
    if (leat__buf_status(&prefix) != 0) LEAT_GO(rc, out, leat__fail_nomem(err, 65536, "a path"));
    LEAT_GO(rc, out, leat__store_open(&store, path, err));
    LEAT_GO(rc, out, leat__object_list(store, leat__buf_str(&prefix), false, add_object, &l, err));
    if (l.images == 0)
        LEAT_GO(rc, out, leat__fail(err, LEAT_ENOENT, "%s: neither a pack nor a prefix with images", path));
    f->samples = l.images;
    f->sample_bytes = LEAT_MAX(l.bytes / l.images, UINT64_C(1));
    f->max_sample_bytes = l.largest;
    f->images = LEAT_PLAN_TILED; /* the default of leat pack */
    bucket_facts(path, f);
out:
    leat__store_close(&store);
    leat__buf_reset(&prefix);
    return rc;
}

static bool is_prefix(const char *path)
{
    leat__entry_kind kind;
    leat__scheme scheme = leat__path_scheme(path);
    if (scheme != LEAT__SCHEME_S3 && scheme != LEAT__SCHEME_GS && scheme != LEAT__SCHEME_AZ) return false;
    return leat__path_kind(path, &kind, NULL) == 0 && kind == LEAT__ENTRY_FOLDER;
}

int plan_dataset(const char *path, leat_plan_facts *f, leat__image_kind *kind, bool *listed_only,
                 leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    bool remote = leat__path_remote(path);
    *kind = 0;
    *listed_only = remote && is_prefix(path);
    if (*listed_only) return prefix_facts(path, f, err);
    int rc = leat_pack_open(&pack, path, NULL, err);
    if (rc == 0) rc = leat_pack_info_read(pack, &info, sizeof info);
    if (rc == 0 && info.samples == 0) rc = leat__fail(err, LEAT_EINVAL, "%s: the pack has no samples", path);
    if (rc == 0 && plan_first_image_field(pack) < 0)
        rc = leat__fail(err, LEAT_EINVAL,
                        "%s: there is no image field, and only packs of images are planned: leat load shows "
                        "the rate and memory of others",
                        path);
    if (rc == 0) {
        f->samples = info.samples;
        f->sample_bytes = info.bytes / info.samples;
        f->page_bytes = info.page_bytes;
        f->mean_page_bytes = info.bytes / LEAT_MAX(info.pages, UINT64_C(1));
        f->index_bytes = leat__pack_index_bytes(pack);
        f->max_sample_bytes = info.max_sample_bytes;
        rc = image_facts(pack, info.samples, remote, f, kind, err);
    }
    leat_pack_close(&pack);
    if (rc != 0) return rc;
    if (remote) {
        bucket_facts(path, f);
        return 0;
    }
    if (leat__reads_resident(path, &f->cached, NULL) != 0) f->cached = 0;
    return storage_facts(path, f, err);
}
