/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at up to IMAGES images, evenly spread where the source knows how many it has (a
 * folder sorted by class would otherwise teach one class), the first ones of a tar shard
 * (which cannot be entered in the middle). Images that will be encoded again are learned
 * after that. One thread.
 */
#include "ingest/tile_training.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "ingest/source.h"

#define IMAGES 300

typedef struct training {
    leat__source *source;
    leat__shelf shelf;
    leat__tile_trainer *trainer;
    leat__jpeg_coef_reader *reader;
    leat__encoder *encoder; /* when images are encoded again first */
    leat__encode_plan plan; /* of that */
} training;

/* Counts one JPEG; what cannot be read is not counted. */
static int learn_from(training *t, const uint8_t *data, size_t len, leat_error *err)
{
    leat__jpeg_coefs coefs;
    if (leat__codec_sniff(data, len) != LEAT__CODEC_JPEG) return 0;
    int rc = leat__jpeg_coef_read(t->reader, data, len, &t->plan.limits, &coefs, NULL);
    if (rc == LEAT_ENOMEM) return leat__fail_nomem(err, 0, "training");
    if (rc != 0) return 0;
    return leat__tile_trainer_add(t->trainer, &coefs, data, len, err);
}

static int learn_record(training *t, leat__run *run, leat__record *r, leat_error *err)
{
    leat__item *item = &r->items[t->source->image_field];
    if (t->source->ops->load && t->source->ops->load(t->source, run, r, NULL) != 0) return 0;
    if (item->absent || item->size == 0) return 0;
    bool again = t->plan.quality > 0 || t->plan.max_side > 0;
    if (again && leat__encoder_image(t->encoder, run, r, item, NULL, NULL) != 0) return 0;
    if (again && item->coded) { /* decoders may read a little past the end */
        size_t len = run->out.len;
        if (leat__buf_zeros(&run->out, LEAT__CODEC_PADDING) != 0)
            return leat__fail_nomem(err, LEAT__CODEC_PADDING, "training");
        run->out.len = len;
    }
    return learn_from(t, leat__run_data(run, item), item->size, err);
}

static int learn_all(training *t, leat_error *err)
{
    uint64_t total = t->source->total;
    uint64_t step = total > IMAGES ? total / IMAGES : 1, seen = 0;
    bool end = false;
    while (!end && leat__tile_trainer_images(t->trainer) < IMAGES) {
        leat__run *run = leat__shelf_take(&t->shelf);
        if (!run) return leat__fail_nomem(err, sizeof *run, "training");
        leat__record *r = leat__run_add(run);
        bool wanted = seen++ % step == 0;
        t->source->skim = !wanted;
        int rc = t->source->ops->next(t->source, run, r, &end, err);
        if (rc == 0 && !end && wanted && !r->failed) rc = learn_record(t, run, r, err);
        leat__shelf_give(&t->shelf, run);
        if (rc != 0) return rc;
    }
    return 0;
}

int leat__train_tables(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                       leat__buf *blob, leat_error *err)
{
    training t = {.plan = *plan};
    t.plan.images = LEAT_IMAGES_KEEP;
    t.plan.trust = true;
    int rc;
    bool shelf = false;
    LEAT_GO(rc, out, leat__source_open(&t.source, opts, err));
    leat__shelf_init(&t.shelf, t.source->field_count, 1);
    shelf = true;
    LEAT_GO(rc, out, leat__tile_trainer_open(&t.trainer, err));
    LEAT_GO(rc, out, leat__jpeg_coef_reader_open(&t.reader, err));
    LEAT_GO(rc, out, leat__encoder_open(&t.encoder, &t.plan, err));
    if (t.source->image_field >= 0) LEAT_GO(rc, out, learn_all(&t, err));
    LEAT_GO(rc, out, leat__tile_trainer_finish(t.trainer, blob, err));
out:
    if (shelf) leat__shelf_reset(&t.shelf);
    leat__encoder_close(&t.encoder);
    leat__jpeg_coef_reader_close(&t.reader);
    leat__tile_trainer_close(&t.trainer);
    leat__source_close(&t.source);
    return rc;
}
