/* SPDX-License-Identifier: Apache-2.0
 *
 * See inspect.h.
 */
#include "ingest/inspect.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "codec/codec.h"

void leat__frame_suffix(char text[LEAT__FRAME_SUFFIX], uint32_t frame)
{
    snprintf(text, LEAT__FRAME_SUFFIX, "#%04u", frame);
}

/* Pads run->out: decoders read a few bytes past the end of an image. */
static int pad(leat__records *run, leat_error *err)
{
    const size_t len = run->out.len;
    if (leat__buf_zeros(&run->out, LEAT__CODEC_PADDING) != 0)
        return leat__fail_nomem(err, LEAT__CODEC_PADDING, "an encoded image");
    run->out.len = len;
    return 0;
}

static int look(const leat__inspector *x, void *looker, leat__records *run, const char *key, leat__item *item,
                const leat__tile_tables *tables, leat_error *err)
{
    item->found = run->found.len;
    return x->look(x->cookie, looker, key, &item->image, item->absent ? NULL : leat__records_data(run, item),
                   item->absent ? 0 : item->size, tables, &run->found, err);
}

static int frame_key(const leat__records *run, const leat__record *r, uint32_t frame, leat__buf *key,
                     leat_error *err)
{
    char suffix[LEAT__FRAME_SUFFIX];
    leat__frame_suffix(suffix, frame);
    leat__buf_clear(key);
    leat__buf_append(key, leat__records_str(run, r->key), r->key_size);
    return leat__buf_puts(key, suffix) == 0 ? 0 : leat__fail_nomem(err, r->key_size, "a key");
}

static int look_at_frames(const leat__inspector *x, void *looker, leat__records *run, leat__record *r,
                          const leat__tile_tables *tables, leat__buf *key, leat_error *err)
{
    for (uint32_t i = 0; i < r->frame_count; i++) {
        leat__item item;
        const size_t at = r->frames_at + i * sizeof item;
        memcpy(&item, run->frames.data + at, sizeof item);
        LEAT_TRY(frame_key(run, r, i, key, err));
        LEAT_TRY(look(x, looker, run, leat__buf_str(key), &item, tables, err));
        memcpy(run->frames.data + at, &item, sizeof item);
    }
    return 0;
}

int leat__inspect_record(const leat__inspector *x, void *looker, leat__records *run, leat__record *r,
                         uint32_t field, const leat__tile_tables *tables, leat_error *err)
{
    leat__buf key;
    int rc;
    if (r->failed || r->excluded) return 0;
    LEAT_TRY(pad(run, err));
    if (r->frame_count == 0)
        return look(x, looker, run, leat__records_str(run, r->key), &r->items[field], tables, err);
    leat__buf_init(&key, LEAT__MEM_INGEST, 4u << 20);
    if (r->frame_field == field) {
        rc = look_at_frames(x, looker, run, r, tables, &key, err);
    } else { /* the frames are those of another field: all samples share this image */
        rc = frame_key(run, r, 0, &key, err);
        if (rc == 0) rc = look(x, looker, run, leat__buf_str(&key), &r->items[field], tables, err);
    }
    leat__buf_reset(&key);
    return rc;
}
