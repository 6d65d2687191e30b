/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of pixels: see kind.h.
 */
#include "pack/kind.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "pack/packer.h"
#include "pack/reader.h"

#define LOOKED 256 /* samples at the start of a pack that are searched for an image */

leat__sample_type leat__kind_type(leat__image_kind kind)
{
    return (leat__sample_type)(kind >> 8);
}

uint32_t leat__kind_channels(leat__image_kind kind)
{
    return kind & 255;
}

uint8_t leat__kind_flags(leat__sample_type type)
{
    static const uint8_t flags[LEAT__SAMPLE_COUNT] = {0, LEAT_PACK_IMAGE_U16, LEAT_PACK_IMAGE_F32};
    return flags[type];
}

leat__image_kind leat__image_kind_of(const leat_pack_image *image)
{
    const leat__image_info info = {.channels = image->channels,
                                   .type = image->flags & LEAT_PACK_IMAGE_F32   ? LEAT__SAMPLE_F32
                                           : image->flags & LEAT_PACK_IMAGE_U16 ? LEAT__SAMPLE_U16
                                                                                : LEAT__SAMPLE_U8};
    return leat__image_wide(&info) ? (uint32_t)info.type << 8 | info.channels : 0;
}

const char *leat__kind_text(leat__image_kind kind, char text[LEAT__KIND_TEXT])
{
    const uint32_t channels = leat__kind_channels(kind);
    if (kind == 0) return "8-bit images of 1, 3 or 4 channels";
    snprintf(text, LEAT__KIND_TEXT, "%s images with %u channel%s", leat__sample_name(leat__kind_type(kind)),
             channels, channels == 1 ? "" : "s");
    return text;
}

/* Finds the first sample that has an image, and its kind. *found is false when there is none. */
static int first_kind(leat_pack *pack, uint32_t field, leat__image_kind *kind, uint64_t *sample, bool *found,
                      leat_error *err)
{
    const uint64_t count = LEAT_MIN(leat_pack_count(pack), (uint64_t)LOOKED);
    *found = false;
    for (uint64_t i = 0; i < count && !*found; i++) {
        leat_pack_cell cell;
        LEAT_TRY(leat_pack_cells(pack, field, i, 1, &cell, err));
        *found = !cell.absent && cell.length > 0;
        *sample = i;
        if (!*found) continue;
        *kind = leat__image_kind_of(&cell.image);
        if (cell.image.channels > LEAT__CHANNELS_MAX)
            return leat__fail(
                err, LEAT_EDATA,
                "%s: the index has %u channels, more than possible, for field '%s' of sample %llu",
                leat_pack_path(pack), cell.image.channels, leat_pack_field(pack, field)->name,
                (unsigned long long)i);
    }
    return 0;
}

int leat__pack_image_kind(leat_pack *pack, uint32_t field, leat__image_kind *kind, leat_error *err)
{
    const char *name = leat_pack_field(pack, field)->name;
    bool known = false;
    *kind = 0;
    for (uint32_t i = 0; i < leat_pack_part_count(pack); i++) {
        leat_pack *part = leat_pack_part(pack, i, NULL);
        int own = leat_pack_field_find(part, name);
        leat__image_kind k = 0;
        uint64_t sample;
        bool found;
        char text[2][LEAT__KIND_TEXT];
        if (own < 0 || leat_pack_field(part, (uint32_t)own)->type != LEAT_FIELD_IMAGE) continue;
        LEAT_TRY(first_kind(part, (uint32_t)own, &k, &sample, &found, err));
        if (!found) continue;
        if (known && k != *kind)
            return leat__fail(err, LEAT_EINVAL, "%s: field '%s' has %s, and %s in the packs before it",
                              leat_pack_path(part), name, leat__kind_text(k, text[0]),
                              leat__kind_text(*kind, text[1]));
        *kind = k;
        known = true;
    }
    return 0;
}

/* Records that the sample with this key decides the kind of a field. */
static void decide(leat_packer *p, uint32_t field, leat__image_kind kind, const void *key, size_t size)
{
    p->kinds[field].kind = kind;
    p->kinds[field].known = true;
    snprintf(p->kinds[field].by, sizeof p->kinds[field].by, "%.*s",
             (int)LEAT_MIN(size, (size_t)LEAT__KIND_KEY - 1), (const char *)key);
}

void leat__packer_learn_kinds(leat_packer *p, const leat__journal_page *page)
{
    const size_t row_bytes = LEAT__PACK_SAMPLE_WIDTH + p->schema->row_bytes;
    uint64_t key = 0;
    for (uint64_t i = 0; i < page->samples && (i + 1) * row_bytes <= page->rows_bytes; i++) {
        const uint8_t *at = page->rows + i * row_bytes;
        leat__sample_entry e;
        bool all = true;
        leat__sample_entry_load(at, &e);
        at += LEAT__PACK_SAMPLE_WIDTH;
        if (e.key_end < key || e.key_end > page->keys_bytes) return; /* damaged: refused when it is read */
        for (uint32_t f = 0; f < p->schema->count; at += leat__field_width(&p->schema->fields[f]), f++) {
            leat_pack_cell cell;
            if (p->schema->fields[f].type != LEAT_FIELD_IMAGE || p->kinds[f].known) continue;
            if (leat__cell_load(&p->schema->fields[f], at, e.size, &cell) && !cell.absent)
                decide(p, f, leat__image_kind_of(&cell.image), page->keys + key, (size_t)(e.key_end - key));
            all = all && p->kinds[f].known;
        }
        key = e.key_end;
        if (all) return;
    }
}

/* When appending, the first image of the existing pack decides. */
static int learn_base(leat_packer *p, uint32_t field, leat_error *err)
{
    char key[LEAT__KIND_KEY] = "";
    leat__image_kind kind = 0;
    uint64_t sample;
    size_t size = 0;
    bool found;
    LEAT_TRY(first_kind(p->base, field, &kind, &sample, &found, err));
    if (!found) return 0;
    if (leat_pack_key(p->base, sample, key, sizeof key, &size, NULL) != 0) /* too long to show */
        snprintf(key, sizeof key, "sample %llu", (unsigned long long)sample);
    decide(p, field, kind, key, strlen(key));
    return 0;
}

int leat__packer_check_kinds(leat_packer *p, const leat_pack_sample *sample, leat_error *err)
{
    for (uint32_t i = 0; i < p->schema->count; i++) {
        const leat_field *f = &p->schema->fields[i];
        const leat_pack_value *v = &sample->values[i];
        char text[2][LEAT__KIND_TEXT];
        if (f->type != LEAT_FIELD_IMAGE || v->absent) continue;
        const leat__image_kind kind = leat__image_kind_of(&v->image);
        if (!p->kinds[i].known && p->base != NULL) LEAT_TRY(learn_base(p, i, err));
        if (!p->kinds[i].known) decide(p, i, kind, sample->key, sample->key_size);
        if (kind != p->kinds[i].kind)
            return leat__fail(
                err, LEAT_EFORMAT, "sample '%.*s', field '%s': %s in a field of %s (set by '%s')",
                (int)LEAT_MIN(sample->key_size, 200u), (const char *)sample->key, f->name,
                leat__kind_text(kind, text[0]), leat__kind_text(p->kinds[i].kind, text[1]), p->kinds[i].by);
    }
    return 0;
}
