/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the rows of a pack of columns that belong to a pack. The provenance of the columns names their
 * source: {"source":{"packs":[{"fingerprint":"…","samples":N},…]}}, whose rows follow each other, or
 * {"source":{"fingerprint":"…"}} for a single pack. Only the number of rows is compared if the columns
 * name no fingerprint. The same holds if the pack itself consists of columns made from the same source.
 * Keys must be equal in all cases.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/reader.h"
#include "pack/selection.h"

static uint64_t fingerprint_of(const leat_pack *pack)
{
    leat_pack_info info = {.struct_size = sizeof info};
    (void)leat_pack_info_read(pack, &info, sizeof info);
    return info.fingerprint;
}

static bool is_fingerprint(const json_t *value, uint64_t fingerprint)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || !text[0]) return false;
    const unsigned long long n = strtoull(text, &end, 16);
    return *end == 0 && n == fingerprint;
}

/* True when the parts of `pack` are the listed packs from number `at` on. */
static bool are_parts(const json_t *packs, size_t at, leat_pack *pack)
{
    const uint32_t parts = leat_pack_part_count(pack);
    for (uint32_t i = 0; i < parts; i++) {
        const json_t *p = json_array_get(packs, at + i);
        if (!is_fingerprint(json_object_get(p, "fingerprint"), fingerprint_of(leat_pack_part(pack, i, NULL))))
            return false;
    }
    return true;
}

/* True when the pack is listed: *first is its first row, *total the rows of all listed packs. */
static bool find_pack(const json_t *packs, leat_pack *pack, uint64_t *first, uint64_t *total)
{
    bool found = false;
    *total = 0;
    for (size_t i = 0; i < json_array_size(packs); i++) {
        const json_int_t samples = json_integer_value(json_object_get(json_array_get(packs, i), "samples"));
        if (samples < 0) return false;
        if (!found && are_parts(packs, i, pack)) {
            found = true;
            *first = *total;
        }
        if (!leat__add_u64(*total, (uint64_t)samples, total)) return false;
    }
    return found;
}

static int match_keys(leat_pack *columns, uint64_t first, leat_pack *pack, leat__buf *a, leat__buf *b,
                      leat_error *err)
{
    for (uint64_t i = 0; i < leat_pack_count(pack); i++) {
        LEAT_TRY(leat__pack_key_read(columns, first + i, a, err));
        LEAT_TRY(leat__pack_key_read(pack, i, b, err));
        if (a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0)) continue;
        return leat__fail(err, LEAT_EINVAL, "%s: row %llu is \"%s\", but \"%s\" in %s",
                          leat_pack_path(columns), (unsigned long long)(first + i), leat__buf_str(a),
                          leat__buf_str(b), leat_pack_path(pack));
    }
    return 0;
}

/* What the provenance names: no pack, one pack, or a list of packs. */
enum { NAMES_NOTHING, NAMES_ONE, NAMES_SEVERAL };

/* True when the columns and `pack` were made from the same pack. */
static bool are_siblings(const json_t *source, const leat_pack *pack)
{
    const char *text = leat_pack_provenance(pack);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *own = json_object_get(root, "source"), *one = json_object_get(source, "fingerprint"),
                 *packs = json_object_get(source, "packs");
    const bool same = one ? json_equal(one, json_object_get(own, "fingerprint")) != 0
                          : json_equal(packs, json_object_get(own, "packs")) != 0;
    json_decref(root);
    return same;
}

/* False when only other packs are named. *total: rows of all packs that are named. */
static bool find_rows(leat_pack *columns, leat_pack *pack, uint64_t *first, uint64_t *total, int *names)
{
    const char *text = leat_pack_provenance(columns);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *source = json_object_get(root, "source"), *packs = json_object_get(source, "packs"),
                 *one = json_object_get(source, "fingerprint");
    bool ok = true;
    *names = json_array_size(packs) > 0 ? NAMES_SEVERAL : one ? NAMES_ONE : NAMES_NOTHING;
    if (*names != NAMES_NOTHING &&
        (fingerprint_of(columns) == fingerprint_of(pack) || are_siblings(source, pack)))
        *names = NAMES_NOTHING; /* both have the same rows: nothing to look up */
    else if (*names == NAMES_SEVERAL) ok = find_pack(packs, pack, first, total);
    else if (*names == NAMES_ONE) ok = is_fingerprint(one, fingerprint_of(pack));
    json_decref(root);
    return ok;
}

/* ---- messages ---- */

#define NAMES_MOST 8

static void put_name(leat__buf *out, const char *name, uint64_t number, uint64_t total)
{
    if (!name || number > NAMES_MOST) return;
    if (number == NAMES_MOST) {
        leat__buf_printf(out, " and %llu more", (unsigned long long)(total - number));
        return;
    }
    leat__buf_printf(out, "%s%s", number > 0 ? ", " : "", name);
}

/* Writes the names of the sources of the columns: from the provenance, else the class names of the field
 * 'pack'. */
static void put_names(leat__buf *out, leat_pack *columns)
{
    const char *text = leat_pack_provenance(columns), *const *class = NULL;
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *source = json_object_get(root, "source"), *names = json_object_get(source, "names");
    const int field = leat_pack_field_find(columns, "pack");
    uint64_t classes = 0;
    put_name(out, json_string_value(json_object_get(source, "pack")), 0, 1);
    for (size_t i = 0; i < json_array_size(names); i++)
        put_name(out, json_string_value(json_array_get(names, i)), i, json_array_size(names));
    if (out->len == 0 && field >= 0 && leat_pack_field(columns, (uint32_t)field)->type == LEAT_FIELD_INT &&
        leat_pack_classes(columns, (uint32_t)field, &class, &classes, NULL) == 0)
        for (uint64_t i = 0; i < classes; i++) put_name(out, class[i], i, classes);
    json_decref(root);
}

/* Returns the number of the part of `pack` with this fingerprint; the number of parts if there is none. */
static uint32_t part_with(const json_t *fingerprint, leat_pack *pack)
{
    const uint32_t parts = leat_pack_part_count(pack);
    uint32_t i = 0;
    while (i < parts && !is_fingerprint(fingerprint, fingerprint_of(leat_pack_part(pack, i, NULL)))) i++;
    return i;
}

/* Writes the parts of `pack` in the order of the columns. False when another order does not help: not all
 * of them follow each other there. */
static bool put_order(leat__buf *out, leat_pack *columns, leat_pack *pack)
{
    const char *text = leat_pack_provenance(columns);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *packs = json_object_get(json_object_get(root, "source"), "packs");
    const uint32_t parts = leat_pack_part_count(pack);
    uint64_t seen = 0;
    uint32_t found = 0;
    for (size_t i = 0; parts <= 64 && i < json_array_size(packs) && found < parts; i++) {
        const uint32_t at = part_with(json_object_get(json_array_get(packs, i), "fingerprint"), pack);
        if (at == parts && found == 0) continue;
        if (at == parts || seen >> at & 1) break;
        seen |= UINT64_C(1) << at;
        leat__buf_printf(out, "%s%s", found++ ? " " : "", leat_pack_path(leat_pack_part(pack, at, NULL)));
    }
    json_decref(root);
    return parts > 1 && found == parts && leat__buf_status(out) == 0;
}

/* Reports columns of the same packs in another order; returns 0 when they are of other packs. */
static int fail_order(leat_pack *columns, leat_pack *pack, leat_error *err)
{
    leat__buf order;
    leat__buf_init(&order, LEAT__MEM_PACK, 1u << 20);
    int rc = put_order(&order, columns, pack)
                 ? leat__fail(err, LEAT_EINVAL,
                              "%s: its columns are of these packs in another order; give them as %s",
                              leat_pack_path(columns), leat__buf_str(&order))
                 : 0;
    leat__buf_reset(&order);
    return rc;
}

/* Reports columns of another pack. `differs`: the number of rows differs; else the fingerprint does. */
static int fail_other(leat_pack *columns, leat_pack *pack, bool differs, leat_error *err)
{
    leat__buf names;
    const char *of = leat_pack_path(columns), *for_pack = leat_pack_path(pack);
    leat__buf_init(&names, LEAT__MEM_PACK, 1u << 20);
    put_names(&names, columns);
    bool named = names.len > 0 && leat__buf_status(&names) == 0;
    const bool same =
        named && leat__str_eq(leat__path_base(leat__buf_str(&names)), leat__path_base(for_pack));
    if (same) named = false; /* the name does not help: it is that of the pack */
    int rc =
        differs
            ? leat__fail(err, LEAT_EINVAL, "%s has %llu row%s, but %s has %llu: %s%s; make it again", of,
                         (unsigned long long)leat_pack_count(columns), leat__plural(leat_pack_count(columns)),
                         for_pack, (unsigned long long)leat_pack_count(pack),
                         same ? "the pack has changed since" : "it was made from ",
                         named  ? leat__buf_str(&names)
                         : same ? ""
                                : "another pack")
            : leat__fail(err, LEAT_EINVAL,
                         "%s: its columns were not made from %s as it is now (its fingerprint is not "
                         "in them)%s%s; make them again",
                         of, for_pack, named ? ", but from " : "", named ? leat__buf_str(&names) : "");
    leat__buf_reset(&names);
    return rc;
}

int leat__pack_bind(leat_pack *columns, leat_pack *pack, uint64_t *first, leat_error *err)
{
    leat__buf a, b;
    const uint64_t rows = leat_pack_count(columns), samples = leat_pack_count(pack);
    uint64_t total = rows;
    int names;
    *first = 0;
    bool ok = find_rows(columns, pack, first, &total, &names);
    if (names != NAMES_SEVERAL && rows != samples) return fail_other(columns, pack, true, err);
    if (names == NAMES_SEVERAL) ok = ok && total == rows && leat__range_inside(*first, samples, rows);
    if (!ok && names == NAMES_SEVERAL) LEAT_TRY(fail_order(columns, pack, err));
    if (!ok) return fail_other(columns, pack, false, err);
    leat__buf_init(&a, LEAT__MEM_PACK, 2u << 20);
    leat__buf_init(&b, LEAT__MEM_PACK, 2u << 20);
    int rc = match_keys(columns, *first, pack, &a, &b, err);
    leat__buf_reset(&a);
    leat__buf_reset(&b);
    return rc;
}

int leat__pack_match_rows(leat_pack *columns, leat_pack *pack, leat_error *err)
{
    uint64_t first;
    LEAT_TRY(leat__pack_bind(columns, pack, &first, err));
    if (leat_pack_count(columns) == leat_pack_count(pack)) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s has %llu row%s, but %s has %llu: it was made from several packs; make it from this "
                      "one alone",
                      leat_pack_path(columns), (unsigned long long)leat_pack_count(columns),
                      leat__plural(leat_pack_count(columns)), leat_pack_path(pack),
                      (unsigned long long)leat_pack_count(pack));
}

void leat__pack_describe(const leat_pack *pack, leat__json *j)
{
    char hex[24];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)fingerprint_of(pack));
    leat__json_kstr(j, "fingerprint", hex);
}

void leat__pack_pass_on(const leat_pack *columns, leat__json *j)
{
    static const char *const names[] = {"fingerprint", "packs"};
    const char *text = leat_pack_provenance(columns);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        const json_t *value = json_object_get(json_object_get(root, "source"), names[i]);
        const size_t size = value ? json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
        char *raw = size > 0 ? leat__zalloc(LEAT__MEM_PACK, size + 1) : NULL;
        if (!raw) continue;
        (void)json_dumpb(value, raw, size, JSON_COMPACT | JSON_ENCODE_ANY);
        leat__json_key(j, names[i]);
        leat__json_raw(j, raw);
        leat__free(raw);
    }
    json_decref(root);
}

/* ---- results and inputs ---- */

/* Splits a path, which need not exist, into its folder and its name. */
static bool split_path(const char *path, struct stat *folder, const char **name)
{
    char *copy = leat__strdup(LEAT__MEM_PACK, path);
    *name = leat__path_base(path);
    if (!copy) return false;
    copy[*name - path] = 0;
    const bool ok = stat(copy[0] ? copy : ".", folder) == 0;
    leat__free(copy);
    return ok;
}

static bool same_file(const char *x, const char *y)
{
    struct stat a, b;
    const char *of_x, *of_y;
    if (strcmp(x, y) == 0) return true;
    if (leat__path_remote(x) || leat__path_remote(y)) return false;
    if (stat(x, &a) == 0 && stat(y, &b) == 0) return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (!split_path(x, &a, &of_x) || !split_path(y, &b, &of_y)) return false;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && strcmp(of_x, of_y) == 0;
}

/* True when `file` is a shard of the set `set`, which is in the same folder. */
static bool is_shard(const char *file, const char *set)
{
    struct stat a, b;
    const char *name, *of_set;
    if (leat__path_remote(file) || leat__path_remote(set) || stat(file, &a) != 0) return false;
    return split_path(file, &a, &name) && split_path(set, &b, &of_set) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino && leat__set_has(set, name);
}

int leat__pack_spare_shards(const char *output, const char *set, leat_error *err)
{
    if (!output || !set || !is_shard(output, set)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: is a part of the input %s: give the result another name", output,
                      set);
}

int leat__pack_spare_input(const char *output, const char *input, leat_error *err)
{
    if (!output || !input) return 0;
    if (!same_file(output, input)) return leat__pack_spare_shards(output, input, err);
    return leat__fail(err, LEAT_EINVAL, "%s: is also an input: give the result another name", output);
}

int leat__pack_spare_result(const char *output, const char *other, leat_error *err)
{
    if (!output || !other || !same_file(output, other)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: is the name of two results: give one another name", other);
}
