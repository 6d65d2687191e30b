/* SPDX-License-Identifier: Apache-2.0
 *
 * See view_select.h.
 */
#include "view/view_select.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/selection.h"

#define CHUNK 1024u
#define KEY_BYTES_MAX ((size_t)2 << 20)
#define NAMES_TRIED 10000u

int leat__view_selection_init(leat__view_selection *s, uint32_t rows, leat_error *err)
{
    memset(s, 0, sizeof *s);
    s->rows = rows;
    s->bits = leat__zalloc(LEAT__MEM_MISC, ((size_t)rows + 7) / 8);
    return s->bits ? 0 : leat__fail_nomem(err, rows / 8, "a selection");
}

void leat__view_selection_reset(leat__view_selection *s)
{
    leat__free(s->bits);
    memset(s, 0, sizeof *s);
}

void leat__view_select(leat__view_selection *s, uint32_t row, bool on)
{
    if (leat__view_selected(s, row) == on) return;
    s->bits[row >> 3] ^= (uint8_t)(1u << (row & 7));
    s->count = on ? s->count + 1 : s->count - 1;
    s->version++;
}

/* ---- loading ---- */

static int read_bits(leat__view_selection *s, leat_pack *from, uint64_t first, leat_error *err)
{
    int64_t values[CHUNK];
    uint32_t field;
    LEAT_TRY(leat__selection_field(from, &field, err));
    for (uint32_t at = 0; at < s->rows;) {
        const uint32_t n = LEAT_MIN(s->rows - at, CHUNK);
        LEAT_TRY(leat_pack_ints(from, field, first + at, n, values, err));
        for (uint32_t i = 0; i < n; i++, at++) leat__view_select(s, at, values[i] != 0);
    }
    return 0;
}

int leat__view_selection_load(leat__view_selection *s, leat_pack *pack, const char *path, leat_error *err)
{
    leat_pack *from = NULL;
    uint64_t first;
    LEAT_TRY(leat_pack_open(&from, path, NULL, err));
    int rc = leat__pack_bind(from, pack, &first, err);
    if (rc == 0) rc = read_bits(s, from, first, err);
    leat_pack_close(&from);
    return rc;
}

/* ---- saving ---- */

/* Creates a pack under the first free name. */
static int create(const char *base, const char *provenance, leat_packer **packer, leat__buf *name,
                  leat_error *err)
{
    static const leat_field field = {.name = "selected", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    int rc = LEAT_EEXIST; /* LEAT_ESTATE: another view writes that file now */
    o.fields = &field;
    o.field_count = 1;
    o.provenance = provenance;
    for (unsigned n = 1; (rc == LEAT_EEXIST || rc == LEAT_ESTATE) && n <= NAMES_TRIED; n++) {
        leat__buf_clear(name);
        if (n == 1) leat__buf_printf(name, "%s.leat", base);
        else leat__buf_printf(name, "%s-%u.leat", base, n);
        if (leat__buf_status(name) != 0) return leat__fail_nomem(err, strlen(base), "a path");
        rc = leat__packer_open_once(packer, leat__buf_str(name), &o, err);
    }
    return rc;
}

static int write_rows(const leat__view_selection *s, leat_pack *pack, leat_packer *packer, leat__buf *key,
                      const atomic_bool *stopping, leat_error *err)
{
    for (uint32_t row = 0; row < s->rows; row++) {
        LEAT_TRY(leat__pack_key_read(pack, row, key, err));
        const leat_pack_value value = {.i = leat__view_selected(s, row)};
        const leat_pack_sample sample = {.key = leat__buf_str(key), .key_size = key->len, .values = &value};
        LEAT_TRY(leat_packer_append(packer, &sample, err));
        if (row % CHUNK == 0 && atomic_load(stopping))
            return leat__fail(err, LEAT_ECANCELED, "the view was closed");
    }
    return 0;
}

static int describe(leat_pack *pack, leat__buf *out, leat_error *err)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", "leat view 1");
    size_t len;
    const char *name = leat__path_name(leat_pack_path(pack), &len);
    leat__json_key(&j, "pack");
    leat__json_strn(&j, name, len);
    leat__pack_describe(pack, &j);
    leat__json_end(&j);
    return leat__buf_status(out) == 0 ? 0 : leat__fail_nomem(err, out->len, "provenance");
}

int leat__view_selection_save(const leat__view_selection *s, leat_pack *pack, const char *base,
                              const atomic_bool *stopping, char **path, leat_error *err)
{
    int rc;
    leat__buf text, name, key;
    leat_packer *packer = NULL;
    leat_packer_stats stats;
    *path = NULL;
    leat__buf_init(&text, LEAT__MEM_MISC, 1u << 20);
    leat__buf_init(&name, LEAT__MEM_MISC, 1u << 20);
    leat__buf_init(&key, LEAT__MEM_MISC, KEY_BYTES_MAX);
    LEAT_GO(rc, out, describe(pack, &text, err));
    LEAT_GO(rc, out, create(base, leat__buf_str(&text), &packer, &name, err));
    rc = write_rows(s, pack, packer, &key, stopping, err);
    if (rc == 0) rc = leat_packer_finish(packer, &stats, err);
    leat_packer_close(&packer);
    if (rc != 0) (void)!leat_packer_discard(leat__buf_str(&name), NULL);
    if (rc == 0) *path = leat__strdup(LEAT__MEM_MISC, leat__buf_str(&name));
    if (rc == 0 && !*path) rc = leat__fail_nomem(err, name.len, "a path");
out:
    leat__buf_reset(&text);
    leat__buf_reset(&name);
    leat__buf_reset(&key);
    return rc;
}
