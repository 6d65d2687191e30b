/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of a pack of columns belong to a pack of images. The provenance of the columns says
 * what they were made from: {"source":{"packs":[{"fingerprint":"…","samples":N},…]}}, whose rows follow
 * each other, or {"source":{"fingerprint":"…"}} for a single one.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "view/view_data.h"

static bool is_fingerprint(const json_t *value, uint64_t fingerprint)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || !text[0]) return false;
    const unsigned long long n = strtoull(text, &end, 16);
    return *end == 0 && n == fingerprint;
}

/* True when found: *first is its first row, *total the rows of all. */
static bool find_pack(const json_t *packs, uint64_t fingerprint, uint64_t *first, uint64_t *total)
{
    bool found = false;
    *total = 0;
    for (size_t i = 0; i < json_array_size(packs); i++) {
        const json_t *p = json_array_get(packs, i);
        const json_int_t samples = json_integer_value(json_object_get(p, "samples"));
        if (samples < 0) return false;
        if (!found && is_fingerprint(json_object_get(p, "fingerprint"), fingerprint)) {
            found = true;
            *first = *total;
        }
        if (!leat__add_u64(*total, (uint64_t)samples, total)) return false;
    }
    return found;
}

int leat__view_bind(leat_pack *pack, leat_pack *columns, uint64_t *first, leat_error *err)
{
    leat_pack_info info = {.struct_size = sizeof info};
    const char *text = leat_pack_provenance(columns);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const uint64_t rows = leat_pack_count(columns);
    uint64_t total = rows;
    bool ok;
    *first = 0;
    (void)leat_pack_info_read(pack, &info, sizeof info);
    const json_t *source = json_object_get(root, "source"), *packs = json_object_get(source, "packs");
    if (json_is_array(packs)) ok = find_pack(packs, info.fingerprint, first, &total);
    else ok = is_fingerprint(json_object_get(source, "fingerprint"), info.fingerprint);
    ok = ok && total == rows && leat__range_inside(*first, info.samples, rows) &&
         (json_is_array(packs) || rows == info.samples);
    json_decref(root);
    if (ok) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s: its columns were not made from %s as it is now (its fingerprint is not in them)",
                      leat_pack_path(columns), leat_pack_path(pack));
}
