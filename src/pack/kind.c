/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of pixels. See kind.h.
 */
#include "pack/kind.h"

#include <stdio.h>

#include "base/num.h"
#include "pack/packer.h"
#include "pack/reader.h"

#define LOOKED 256 /* samples at the start of a pack, of which one should have an image */

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
    const leat__image_info info = {
        .channels = image->channels,
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

/* *found: one of the first samples has an image. */
static int first_kind(leat_pack *pack, uint32_t field, leat__image_kind *kind, bool *found, leat_error *err)
{
    const uint64_t count = LEAT_MIN(leat_pack_count(pack), (uint64_t)LOOKED);
    *found = false;
    for (uint64_t i = 0; i < count && !*found; i++) {
        leat_pack_cell cell;
        LEAT_TRY(leat_pack_cells(pack, field, i, 1, &cell, err));
        *found = !cell.absent && cell.length > 0;
        if (!*found) continue;
        *kind = leat__image_kind_of(&cell.image);
        if (cell.image.channels > LEAT__CHANNELS_MAX)
            return leat__fail(err, LEAT_EDATA, "%s: the index says %u channels for field '%s' of sample %llu",
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
        bool found;
        char text[2][LEAT__KIND_TEXT];
        if (own < 0 || leat_pack_field(part, (uint32_t)own)->type != LEAT_FIELD_IMAGE) continue;
        LEAT_TRY(first_kind(part, (uint32_t)own, &k, &found, err));
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

void leat__packer_learn_kinds(leat_packer *p, const leat__journal_page *page)
{
    const size_t row_bytes = LEAT__PACK_SAMPLE_WIDTH + p->schema->row_bytes;
    for (uint64_t i = 0; i < page->samples && (i + 1) * row_bytes <= page->rows_bytes; i++) {
        const uint8_t *at = page->rows + i * row_bytes;
        leat__sample_entry e;
        bool all = true;
        leat__sample_entry_load(at, &e);
        at += LEAT__PACK_SAMPLE_WIDTH;
        for (uint32_t f = 0; f < p->schema->count; at += leat__field_width(&p->schema->fields[f]), f++) {
            leat_pack_cell cell;
            if (p->schema->fields[f].type != LEAT_FIELD_IMAGE || p->kinds[f].known) continue;
            p->kinds[f].known = leat__cell_load(&p->schema->fields[f], at, e.size, &cell) && !cell.absent;
            if (p->kinds[f].known) p->kinds[f].kind = leat__image_kind_of(&cell.image);
            all = all && p->kinds[f].known;
        }
        if (all) return;
    }
}

int leat__packer_check_kinds(leat_packer *p, const leat_pack_sample *sample, leat_error *err)
{
    for (uint32_t i = 0; i < p->schema->count; i++) {
        const leat_field *f = &p->schema->fields[i];
        const leat_pack_value *v = &sample->values[i];
        char text[2][LEAT__KIND_TEXT];
        if (f->type != LEAT_FIELD_IMAGE || v->absent) continue;
        const leat__image_kind kind = leat__image_kind_of(&v->image);
        leat__image_kind first = p->kinds[i].kind;
        bool known = p->kinds[i].known;
        if (!known && p->base != NULL) LEAT_TRY(first_kind(p->base, i, &first, &known, err));
        if (known && kind != first)
            return leat__fail(err, LEAT_EFORMAT, "sample '%.*s', field '%s': %s in a field of %s",
                              (int)LEAT_MIN(sample->key_size, 200u), (const char *)sample->key, f->name,
                              leat__kind_text(kind, text[0]), leat__kind_text(first, text[1]));
        p->kinds[i].kind = kind;
        p->kinds[i].known = true;
    }
    return 0;
}
