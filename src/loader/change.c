/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes an open loader. See change.h.
 */
#include "loader/change.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/defaults.h"

#define SWAP(type, a, b)                                                                                     \
    do {                                                                                                     \
        type swap_ = (a);                                                                                    \
        (a) = (b);                                                                                           \
        (b) = swap_;                                                                                         \
    } while (0)

struct leat__asked {
    leat_loader_opts opts; /* its pointers point into the fields below */
    bool repeats;          /* a sample may come twice in a batch */
    char **texts;
    uint32_t text_count;
    leat_loader_image *images;
    const char **fields;
    leat_loader_default *defaults;
};

/* Copies a text; NULL stays NULL. Sets *failed when out of memory. */
static const char *keep_text(leat__asked *k, const char *text, bool *failed)
{
    if (text == NULL) return NULL;
    char *copy = leat__strdup(LEAT__MEM_LOADER, text);
    if (copy == NULL) *failed = true;
    else k->texts[k->text_count++] = copy;
    return copy;
}

static int copy_lists(leat__asked *k, const leat_loader_opts *given, leat_error *err)
{
    bool failed = false;
    uint32_t fields = given->fields != NULL ? given->field_count : 0;
    uint64_t texts = 3 + 3 * (uint64_t)given->image_count + fields + given->default_count;

    k->texts = LEAT_NEW_ARRAY(LOADER, char *, texts);
    k->images = LEAT_NEW_ARRAY(LOADER, leat_loader_image, (uint64_t)given->image_count + 1);
    k->fields = LEAT_NEW_ARRAY(LOADER, const char *, (uint64_t)fields + 1);
    k->defaults = LEAT_NEW_ARRAY(LOADER, leat_loader_default, (uint64_t)given->default_count + 1);
    if (k->texts == NULL || k->images == NULL || k->fields == NULL || k->defaults == NULL)
        return leat__fail_nomem(err, texts * 16, "the options");
    k->opts.ops = keep_text(k, given->ops, &failed);
    k->opts.label = keep_text(k, given->label, &failed);
    k->opts.follow = keep_text(k, given->follow, &failed);
    for (uint32_t i = 0; i < given->image_count; i++) {
        k->images[i].name = keep_text(k, given->images[i].name, &failed);
        k->images[i].field = keep_text(k, given->images[i].field, &failed);
        k->images[i].ops = keep_text(k, given->images[i].ops, &failed);
    }
    for (uint32_t i = 0; i < fields; i++) k->fields[i] = keep_text(k, given->fields[i], &failed);
    for (uint32_t i = 0; i < given->default_count; i++) {
        k->defaults[i] = given->defaults[i];
        k->defaults[i].field = keep_text(k, given->defaults[i].field, &failed);
    }
    if (failed) return leat__fail_nomem(err, 256, "the options");
    k->opts.images = given->image_count > 0 ? k->images : NULL;
    k->opts.fields = given->fields != NULL ? k->fields : NULL;
    k->opts.defaults = k->defaults;
    k->opts.image_count = given->image_count;
    k->opts.field_count = fields;
    k->opts.default_count = given->default_count;
    return 0;
}

int leat__asked_open(leat__asked **out, const leat_loader *l, const leat_loader_opts *given, bool repeats,
                     leat_error *err)
{
    leat__asked *k = LEAT_NEW(LOADER, leat__asked);

    *out = NULL;
    if (k == NULL) return leat__fail_nomem(err, sizeof *k, "the options");
    k->opts = l->opts;
    k->repeats = repeats;
    k->opts.sources = NULL;
    k->opts.indices = NULL;
    k->opts.weights = k->opts.bucket_edges = NULL;
    k->opts.balance = k->opts.quarantine = NULL;
    k->opts.disk_cache = given->disk_cache != NULL ? "" : NULL; /* only records whether there is one */
    k->opts.device = given->device != NULL && strcmp(given->device, "cpu") != 0 ? "" : NULL;
    int rc = copy_lists(k, given, err);
    if (rc == 0) *out = k;
    else leat__asked_close(&k);
    return rc;
}

void leat__asked_close(leat__asked **out)
{
    leat__asked *k = *out;
    if (k == NULL) return;
    for (uint32_t i = 0; i < k->text_count; i++) leat__free(k->texts[i]);
    leat__free(k->texts);
    leat__free(k->images);
    leat__free(k->fields);
    leat__free(k->defaults);
    leat__free(k);
    *out = NULL;
}

static int check_change(const leat_loader *l, const leat_loader_change *c, leat_error *err)
{
    if (c->when > LEAT_WHEN_BATCH)
        return leat__fail(err, LEAT_EINVAL, "when: %d is not a valid value", (int)c->when);
    if (c->ops != NULL && c->image_count > 0)
        return leat__fail(err, LEAT_EINVAL, "give either `ops` or images, not both");
    if (c->image_count > 0 && c->images == NULL)
        return leat__fail(err, LEAT_EINVAL, "images: there are none");
    if (c->batch_size > 1u << 20)
        return leat__fail(err, LEAT_EINVAL, "batch size %u: at most %u", c->batch_size, 1u << 20);
    if (l->device != NULL && !leat__to_device_only_copies(l->device))
        return leat__fail(err, LEAT_ENOTSUP,
                          "a loader whose images the device decodes or keeps cannot be changed: open it with "
                          "`decode` cpu and another `cache`, or open another one");
    if (c->batch_size != 0 && c->batch_size != l->opts.batch_size &&
        (l->opts.mix_batches != LEAT_MIX_SHUFFLED || l->opts.bucket != LEAT_BUCKET_NONE))
        return leat__fail(err, LEAT_ENOTSUP,
                          "the order of a stratified or single-source mix, or of buckets, depends on the "
                          "batch size: open another loader to change it");
    return 0;
}

/* Copies the current (or pending) options with the change applied. */
static int changed_opts(const leat_loader *l, const leat_loader_change *c, leat__asked **out, leat_error *err)
{
    const leat__asked *from = leat__change_seen(l)->asked;
    leat_loader like = {.opts = from->opts};
    leat_loader_opts o = from->opts;

    if (c->batch_size != 0) like.opts.batch_size = o.batch_size = c->batch_size;
    if (c->ops != NULL || c->image_count > 0) {
        o.ops = c->ops;
        o.images = c->images;
        o.image_count = c->image_count;
    }
    return leat__asked_open(out, &like, &o, from->repeats, err);
}

static int make_parts(leat_loader *n, const leat_loader *l, leat_error *err)
{
    leat__shape shape = {0};

    n->opts = n->asked->opts;
    n->pack = l->pack; /* this and all below are owned by `l` */
    n->info = l->info;
    n->budget = l->budget;
    n->pool = l->pool;
    n->order = l->order;
    n->indices = l->indices;
    n->universe = l->universe;
    n->count = l->count;
    n->env.tables = l->env.tables;
    leat__loader_batches(n);
    int rc = leat__loader_shape(n, &n->asked->opts, &shape, err);
    if (rc == 0) rc = leat__loader_frames(n, n->asked->repeats, &shape, err);
    leat__shape_reset(&shape);
    if (rc != 0 || l->device == NULL) return rc;
    LEAT_TRY(leat__to_device_fits(l->device, leat__frames_device_bytes(n->frames, n->opts.batch_size), err));
    leat__frames_for_device(n->frames, leat__to_device_gpu(l->device), &l->opts.log);
    return 0;
}

void leat__loader_drop_frames(leat_loader *l)
{
    leat__frames_close(&l->frames);
    leat__free(l->feed.ids);
    leat__free(l->feed.salts);
    leat__free(l->feed.ragged);
    leat__free(l->feed.sizes);
    leat__free(l->feed.recipe);
}

void leat__loader_drop_images(leat_loader *l)
{
    for (uint32_t i = 0; i < l->pipeline_count; i++) leat__pipeline_close(&l->pipelines[i]);
    leat__free(l->pipelines);
    leat__mixing_reset(&l->mixing);
    leat__follow_reset(&l->env.follow);
    for (uint32_t i = 0; i < l->env.group_count; i++) {
        leat__free(l->env.groups[i].columns);
        leat__free(l->env.groups[i].pipelines);
    }
    leat__free(l->env.groups);
    leat__free(l->env.fields);
}

static void drop_parts(leat_loader *n)
{
    if (n == NULL) return;
    leat__loader_drop_frames(n);
    leat__loader_drop_images(n);
    leat__asked_close(&n->asked);
    leat__free(n);
}

/* Checks that the fields of a batch stay the same, because a caller's loop relies on them. */
static int same_fields(const leat_loader *l, const leat_loader *n, leat_error *err)
{
    const leat__shape *a = l->env.shape, *b = n->env.shape;
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = strcmp(a->columns[i].tensor.name, b->columns[i].tensor.name) == 0;
    return same ? 0 : leat__fail(err, LEAT_EINVAL, "a change must leave the fields of a batch as they are");
}

int leat__change_make(leat_loader *l, const leat_loader_change *c, leat_error *err)
{
    LEAT_TRY(check_change(l, c, err));
    leat_loader *n = LEAT_NEW(LOADER, leat_loader);
    int rc = 0;
    if (n == NULL) return leat__fail_nomem(err, sizeof *n, "a change");
    LEAT_GO(rc, out, changed_opts(l, c, &n->asked, err));
    LEAT_GO(rc, out, make_parts(n, l, err));
    LEAT_GO(rc, out, same_fields(l, n, err));
    leat__change_drop(l);
    l->next = n;
    n = NULL;
out:
    drop_parts(n);
    return rc;
}

void leat__change_drop(leat_loader *l)
{
    drop_parts(l->next);
    l->next = NULL;
}

void leat__change_apply(leat_loader *l)
{
    leat_loader *n = l->next;

    if (n == NULL) return;
    leat__budget_unkeep(l->budget, &l->keeper); /* the keeper uses the frames */
    leat__mutex_lock(&l->lock);
    SWAP(leat__asked *, l->asked, n->asked);
    SWAP(leat__frames *, l->frames, n->frames);
    SWAP(leat__pipeline **, l->pipelines, n->pipelines);
    SWAP(uint32_t, l->pipeline_count, n->pipeline_count);
    SWAP(leat__mixing, l->mixing, n->mixing);
    SWAP(leat__follow, l->env.follow, n->env.follow);
    l->mixing.follow = &l->env.follow;
    n->mixing.follow = &n->env.follow;
    SWAP(leat__image_group *, l->env.groups, n->env.groups);
    SWAP(uint32_t, l->env.group_count, n->env.group_count);
    SWAP(uint32_t *, l->env.fields, n->env.fields);
    SWAP(uint64_t *, l->feed.ids, n->feed.ids);
    SWAP(uint64_t *, l->feed.salts, n->feed.salts);
    SWAP(uint64_t *, l->feed.ragged, n->feed.ragged);
    SWAP(leat__size *, l->feed.sizes, n->feed.sizes);
    SWAP(leat__recipe *, l->feed.recipe, n->feed.recipe);
    l->env.field_count = n->env.field_count;
    l->env.shape = n->env.shape;
    l->env.mixed = n->env.mixed;
    l->opts.batch_size = n->opts.batch_size;
    l->batches = n->batches;
    l->used = n->used;
    l->rows = n->rows;
    l->run_samples = n->run_samples;
    l->run_listed = n->run_listed;
    l->run_usual = n->run_usual;
    l->max_frame_bytes = n->max_frame_bytes;
    l->max_run_bytes = n->max_run_bytes;
    l->floor = n->floor;
    leat__mutex_unlock(&l->lock);
    if (l->device != NULL)
        leat__to_device_resize(l->device, leat__frames_device_bytes(l->frames, l->opts.batch_size));
    leat__budget_keep(l->budget, &l->keeper);
    leat__change_drop(l);
    leat__loader_obey_budget(l);
}
