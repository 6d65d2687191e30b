/* SPDX-License-Identifier: Apache-2.0
 *
 * See append_to.h. Called by the packing thread.
 */
#include "ingest/append_to.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/tile/tile.h"
#include "pack/page.h"

/* ---- classes
 * -------------------------------------------------------------------------------- */

static int64_t number_of(const char *const *names, uint64_t count, const char *name)
{
    for (uint64_t i = 0; i < count; i++) /* a linear search is fast enough: it runs once per class */
        if (strcmp(names[i], name) == 0) return (int64_t)i;
    return -1;
}

static int join(leat__base_classes *c, const char **names, uint64_t have, const leat__source *source)
{
    for (uint64_t i = 0; i < source->class_count; i++) {
        int64_t n = number_of(names, have, source->classes[i]);
        if (n < 0) {
            n = (int64_t)have;
            names[have++] = source->classes[i];
        }
        c->relabel[i] = n;
    }
    return (int)have;
}

int leat__append_classes(leat__base_classes *c, leat_packer *packer, const leat__source *source,
                         leat_error *err)
{
    const char *const *old;
    uint64_t have;
    if (source->label_field < 0 || source->class_count == 0) return 0;
    leat_pack *base = leat__packer_base(packer);
    uint32_t field = (uint32_t)source->label_field;
    LEAT_TRY(leat_pack_classes(base, field, &old, &have, err));
    if (have == 0 && leat_pack_count(base) > 0)
        return leat__fail(err, LEAT_EINVAL, "%s: its labels have no class names, but those to append have",
                          leat_pack_path(base));
    const char **names = LEAT_NEW_ARRAY(INGEST, const char *, have + source->class_count);
    c->relabel = LEAT_NEW_ARRAY(INGEST, int64_t, source->class_count);
    c->count = source->class_count;
    int rc = names == NULL || c->relabel == NULL ? leat__fail_nomem(err, 0, "class names") : 0;
    if (rc == 0) {
        if (have > 0) memcpy(names, old, have * sizeof *names);
        uint64_t all = (uint64_t)join(c, names, have, source);
        if (all > have) rc = leat_packer_classes(packer, field, names, all, err);
    }
    leat__free(names);
    return rc;
}

void leat__append_classes_reset(leat__base_classes *c)
{
    leat__free(c->relabel);
    c->relabel = NULL;
}

void leat__append_relabel(const leat__base_classes *c, const leat__source *source, leat_pack_value *values)
{
    leat_pack_value *v = &values[source->label_field];
    if (v->i >= 0 && (uint64_t)v->i < c->count) v->i = c->relabel[v->i];
}

/* ---- images
 * --------------------------------------------------------------------------------- */

int leat__append_images(const leat_pack *base, const leat_ingest_opts *opts, leat__encode_plan *plan,
                        leat_error *err)
{
    static const char *const modes[] = {"auto", "keep", "tiled", "raw", "mix"};
    if (opts->images != LEAT_IMAGES_AUTO || plan->images == LEAT_IMAGES_KEEP) return 0;
    json_t *root = json_loads(leat_pack_provenance(base), 0, NULL);
    const json_t *settings = json_object_get(json_object_get(root, "source"), "settings");
    const char *mode = json_string_value(json_object_get(settings, "images"));
    plan->images = LEAT_IMAGES_KEEP; /* packs written sample by sample lack this setting */
    for (uint32_t i = LEAT_IMAGES_KEEP; mode != NULL && i < LEAT_COUNT(modes); i++)
        if (strcmp(mode, modes[i]) == 0) plan->images = (leat_image_mode)i;
    const json_t *share = json_object_get(settings, "mix_raw");
    if (json_is_number(share)) plan->mix_raw = LEAT_MIN(LEAT_MAX(json_number_value(share), 0), 1);
    json_decref(root);
    return 0;
}

/* ---- keys
 * ----------------------------------------------------------------------------------- */

int leat__append_admit(leat_packer *packer, uint32_t mode, const leat_pack_sample *sample, bool *wanted,
                       uint64_t *existing, leat_error *err)
{
    uint64_t found;
    *wanted = true;
    int rc = leat_pack_find(leat__packer_base(packer), sample->key, sample->key_size, &found, NULL);
    if (rc == LEAT_ENOENT) return 0;
    if (rc != 0)
        return leat__fail(err, rc, "%s: cannot look up a key", leat_pack_path(leat__packer_base(packer)));
    if (mode == LEAT_APPEND_FAIL)
        return leat__fail(
            err, LEAT_EEXIST,
            "%s: already has a sample with the key \"%.*s\" (choose `if_exists` update or skip)",
            leat_pack_path(leat__packer_base(packer)), (int)LEAT_MIN(sample->key_size, 200u),
            (const char *)sample->key);
    ++*existing;
    if (mode == LEAT_APPEND_SKIP) *wanted = false;
    return *wanted ? leat_packer_drop(packer, sample->key, sample->key_size, NULL, err) : 0;
}
