/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes the state as one line of JSON. 64-bit hashes are hexadecimal strings, because some JSON
 * readers truncate numbers to 53 bits.
 */
#include "loader/state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/order.h"

static const struct {
    const char *name;
    uint32_t version;
    bool shuffled;
} orders[] = {
#define ORDER_ROW(id, value, name, version, shuffled) [value] = {name, version, shuffled},
    LEAT_ORDER_MAP(ORDER_ROW)
#undef ORDER_ROW
};

const char *leat__order_name(leat_order order)
{
    return (unsigned)order < LEAT_COUNT(orders) ? orders[order].name : "?";
}

bool leat__order_find(const char *name, leat_order *order)
{
    for (unsigned i = 0; i < LEAT_COUNT(orders); i++) {
        if (!leat__str_eq(name, orders[i].name)) continue;
        *order = (leat_order)i;
        return true;
    }
    return false;
}

uint32_t leat__order_version(leat_order order)
{
    return (unsigned)order < LEAT_COUNT(orders) ? orders[order].version : 0;
}

bool leat__order_shuffled(leat_order order)
{
    return (unsigned)order < LEAT_COUNT(orders) && orders[order].shuffled;
}

static void put_hex(leat__json *j, const char *key, uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    if (key != NULL) leat__json_key(j, key);
    leat__json_str(j, text);
}

int leat__state_write(const leat__state *s, leat__buf *out)
{
    leat__json j;

    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "leat_state", LEAT__STATE_VERSION);
    put_hex(&j, "pack", s->fingerprint);
    if (s->pack_count > 0) {
        leat__json_key(&j, "packs");
        leat__json_array(&j);
        for (uint32_t i = 0; i < s->pack_count; i++) put_hex(&j, NULL, s->packs[i]);
        leat__json_end(&j);
    }
    if (s->mix != 0) put_hex(&j, "mix", s->mix);
    put_hex(&j, "subset", s->subset);
    leat__json_kstr(&j, "order", leat__order_name(s->order));
    leat__json_ku64(&j, "order_version", s->order_version);
    put_hex(&j, "seed", s->seed);
    leat__json_ku64(&j, "epoch", s->epoch);
    leat__json_ku64(&j, "count", s->count);
    leat__json_ku64(&j, "global_batch", s->global_batch);
    leat__json_ku64(&j, "position", s->position);
    if (s->order == LEAT_ORDER_QUASI) {
        leat__json_ku64(&j, "streams", s->streams);
        leat__json_ku64(&j, "window_pages", s->window_pages);
    }
    leat__json_kbool(&j, "drop_last", s->drop_last != 0);
    if (s->subset_text[0] != 0) leat__json_kstr(&j, "subset_text", s->subset_text);
    if (s->mix_text[0] != 0) leat__json_kstr(&j, "mix_text", s->mix_text);
    if (s->left_out != 0) leat__json_kbool(&j, "left_out", true);
    leat__json_end(&j);
    return leat__buf_status(out);
}

static int bad_state(const char *key, leat_error *err)
{
    return leat__fail(err, LEAT_EDATA, "loader state: '%s' is missing or wrong", key);
}

static int get_u64(const json_t *root, const char *key, uint64_t max, uint64_t *out, leat_error *err)
{
    const json_t *v = json_object_get(root, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return bad_state(key, err);
    *out = (uint64_t)json_integer_value(v);
    return *out <= max ? 0 : bad_state(key, err);
}

static int get_u32(const json_t *root, const char *key, uint32_t *out, leat_error *err)
{
    uint64_t v = 0;
    LEAT_TRY(get_u64(root, key, UINT32_MAX, &v, err));
    *out = (uint32_t)v;
    return 0;
}

static int hex_value(const json_t *value, const char *key, uint64_t *out, leat_error *err)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return bad_state(key, err);
    *out = strtoull(text, NULL, 16);
    return 0;
}

static int get_hex(const json_t *root, const char *key, uint64_t *out, leat_error *err)
{
    return hex_value(json_object_get(root, key), key, out, err);
}

/* Reads the digest of each of several packs, and how they are mixed. */
static int read_packs(const json_t *root, leat__state *s, leat_error *err)
{
    const json_t *list = json_object_get(root, "packs");

    if (json_object_get(root, "mix") != NULL) LEAT_TRY(get_hex(root, "mix", &s->mix, err));
    if (list == NULL) return 0;
    if (!json_is_array(list) || json_array_size(list) > LEAT_LOADER_SOURCES_MAX)
        return bad_state("packs", err);
    s->pack_count = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < s->pack_count; i++)
        LEAT_TRY(hex_value(json_array_get(list, i), "packs", &s->packs[i], err));
    return 0;
}

/* Reads an optional text for messages. */
static void get_text(const json_t *root, const char *key, char *out)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (text != NULL) (void)leat__str_shown(text, out, LEAT__STATE_TEXT);
}

static int read_root(const json_t *root, leat__state *s, leat_error *err)
{
    uint64_t version = 0;

    LEAT_TRY(get_u64(root, "leat_state", UINT64_MAX, &version, err));
    if (version != LEAT__STATE_VERSION)
        return leat__fail(err, LEAT_EFORMAT, "loader state: version %" PRIu64 " is not %d", version,
                          LEAT__STATE_VERSION);
    LEAT_TRY(get_hex(root, "pack", &s->fingerprint, err));
    LEAT_TRY(read_packs(root, s, err));
    LEAT_TRY(get_hex(root, "subset", &s->subset, err));
    LEAT_TRY(get_hex(root, "seed", &s->seed, err));
    if (!leat__order_find(json_string_value(json_object_get(root, "order")), &s->order))
        return bad_state("order", err);
    s->order_version = 1;
    if (json_object_get(root, "order_version") != NULL)
        LEAT_TRY(get_u32(root, "order_version", &s->order_version, err));
    LEAT_TRY(get_u64(root, "epoch", UINT64_MAX, &s->epoch, err));
    LEAT_TRY(get_u64(root, "count", UINT64_MAX, &s->count, err));
    LEAT_TRY(get_u64(root, "global_batch", UINT64_MAX, &s->global_batch, err));
    LEAT_TRY(get_u64(root, "position", s->count, &s->position, err));
    if (s->order == LEAT_ORDER_QUASI) {
        LEAT_TRY(get_u32(root, "streams", &s->streams, err));
        LEAT_TRY(get_u32(root, "window_pages", &s->window_pages, err));
    }
    const json_t *drop = json_object_get(root, "drop_last");
    if (!json_is_boolean(drop)) return bad_state("drop_last", err);
    s->drop_last = json_is_true(drop);
    const json_t *left_out = json_object_get(root, "left_out");
    if (left_out != NULL && !json_is_boolean(left_out)) return bad_state("left_out", err);
    s->left_out = json_is_true(left_out);
    get_text(root, "subset_text", s->subset_text);
    get_text(root, "mix_text", s->mix_text);
    return 0;
}

int leat__state_parse(leat__state *s, const char *text, leat_error *err)
{
    json_error_t where;
    *s = (leat__state){0};
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return leat__fail(err, LEAT_EDATA, "loader state: not JSON: %s (column %d)", where.text,
                          where.column);
    int rc = read_root(root, s, err);
    json_decref(root);
    return rc;
}

/* A macro, because `names` of options are replaced in the format only. */
#define DIFFERS(what, other, mine)                                                                           \
    leat__fail(err, LEAT_EINVAL, "loader state: its " what " is %" PRIu64 ", this loader's is %" PRIu64,     \
               (uint64_t)(other), (uint64_t)(mine))

/* Fails: the state has `other`, this loader `mine`. Their hashes differ, 0 for `none`; a state of an older
 * leat has no text. */
static int refuse(const char *none, const char *some, uint64_t mine, const char *mine_text, uint64_t other,
                  const char *other_text, leat_error *err)
{
    char digests[2][40] = {"", ""};
    if (other == 0) other_text = none;
    else if (other_text[0] == 0) other_text = some;
    if (mine == 0) mine_text = none;
    if (strcmp(mine_text, other_text) == 0) {
        snprintf(digests[0], sizeof digests[0], " (digest %016" PRIx64 ")", other);
        snprintf(digests[1], sizeof digests[1], " with others (digest %016" PRIx64 ")", mine);
    }
    return leat__fail(err, LEAT_EINVAL, "loader state: it has %s%s, this loader has %s%s", other_text,
                      digests[0], mine_text, digests[1]);
}

/* Checks that the packs are the same; err names the pack that differs. */
static int check_packs(const leat__state *mine, const leat__state *other, leat_error *err)
{
    if (mine->pack_count != other->pack_count && (mine->pack_count > 0 || other->pack_count > 0))
        return leat__fail(err, LEAT_EINVAL, "loader state: it was taken on %u pack%s, this loader has %u",
                          LEAT_MAX(other->pack_count, 1), leat__plural(LEAT_MAX(other->pack_count, 1)),
                          LEAT_MAX(mine->pack_count, 1));
    for (uint32_t i = 0; i < mine->pack_count; i++) {
        if (mine->packs[i] != other->packs[i])
            return leat__fail(err, LEAT_EINVAL,
                              "loader state: pack number %u of %u was a different pack (%016" PRIx64
                              ", this one is %016" PRIx64 ")",
                              i + 1, mine->pack_count, other->packs[i], mine->packs[i]);
    }
    if (mine->mix != other->mix)
        return refuse("no mix and no buckets", "a mix or buckets", mine->mix, mine->mix_text, other->mix,
                      other->mix_text, err);
    return 0;
}

int leat__state_check(const leat__state *mine, const leat__state *other, leat_error *err)
{
    LEAT_TRY(check_packs(mine, other, err));
    if (mine->fingerprint != other->fingerprint)
        return leat__fail(err, LEAT_EINVAL,
                          "loader state: it was taken on another pack (%016" PRIx64
                          ", this one is %016" PRIx64 ")",
                          other->fingerprint, mine->fingerprint);
    if (mine->order != other->order)
        return leat__fail(err, LEAT_EINVAL, "loader state: its order is %s, this loader's is %s",
                          leat__order_name(other->order), leat__order_name(mine->order));
    if (mine->order_version != other->order_version)
        return leat__fail(err, LEAT_EINVAL,
                          "loader state: it has version %u of the %s order, this build of leat gives "
                          "version %u: finish its epoch %" PRIu64 " with the leat that wrote it, or begin "
                          "epoch %" PRIu64 " without it",
                          other->order_version, leat__order_name(other->order), mine->order_version,
                          other->epoch, other->epoch + 1);
    if (mine->subset != other->subset)
        return refuse("all samples", "a subset or weights", mine->subset, mine->subset_text, other->subset,
                      other->subset_text, err);
    if (mine->seed != other->seed) return DIFFERS("seed", other->seed, mine->seed);
    if (mine->count != other->count) return DIFFERS("number of samples per epoch", other->count, mine->count);
    if (mine->global_batch != other->global_batch)
        return DIFFERS("global batch (batch size x ranks)", other->global_batch, mine->global_batch);
    if (mine->streams != other->streams) return DIFFERS("`streams`", other->streams, mine->streams);
    if (mine->window_pages != other->window_pages)
        return DIFFERS("`window_pages`", other->window_pages, mine->window_pages);
    if (mine->drop_last != other->drop_last)
        return leat__fail(err, LEAT_EINVAL, "loader state: its `drop_last` is %s, this loader's is %s",
                          other->drop_last ? "true" : "false", mine->drop_last ? "true" : "false");
    return 0;
}
