/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as JSON: one table for writing and reading. Any thread, no shared state.
 */
#include "doctor/frame.h"

#include <math.h>
#include <stddef.h>

#include "base/error.h"
#include "base/num.h"

const char *const leat__stage_names[LEAT_LOADER_STAGES] = {"order", "read", "decode", "collate"};

typedef enum kind { REAL, SMALL, LARGE } kind; /* double, uint32_t, uint64_t */

typedef struct row {
    const char *name;
    kind kind;
    size_t offset; /* for values per stage: offset of the first stage */
} row;

#define ROW(name, kind)                                                                                      \
    {                                                                                                        \
#name, kind, offsetof(leat_doctor_frame, name)                                                       \
    }

static const row whole[] = {
    ROW(at_s, REAL),          ROW(samples_per_s, REAL), ROW(read_bytes_per_s, REAL), ROW(batches_per_s, REAL),
    ROW(lost, REAL),          ROW(blocked, REAL),       ROW(cpu_used, REAL),         ROW(budget_used, LARGE),
    ROW(budget_limit, LARGE), ROW(cache_bytes, LARGE),  ROW(threads, SMALL),         ROW(io_depth, SMALL),
    ROW(prefetch, SMALL),     ROW(epoch, LARGE),        ROW(samples, LARGE),         ROW(bad, LARGE),
};

static const row of_stage[] = {ROW(busy, REAL), ROW(ready, REAL), ROW(waiting, SMALL), ROW(running, SMALL)};

static const size_t size_of[] = {
    [REAL] = sizeof(double), [SMALL] = sizeof(uint32_t), [LARGE] = sizeof(uint64_t)};

/* ---- Writing ---- */

static void put(leat__json *j, const leat_doctor_frame *f, const row *r, size_t stage)
{
    const char *at = (const char *)f + r->offset + stage * size_of[r->kind];
    if (r->kind == REAL) leat__json_kdouble(j, r->name, *(const double *)at);
    else leat__json_ku64(j, r->name, r->kind == LARGE ? *(const uint64_t *)at : *(const uint32_t *)at);
}

void leat__frame_json(leat__json *j, const leat_doctor_frame *f)
{
    leat__json_object(j);
    for (size_t i = 0; i < LEAT_COUNT(whole); i++) put(j, f, &whole[i], 0);
    leat__json_key(j, "stages");
    leat__json_object(j);
    for (size_t s = 0; s < LEAT_LOADER_STAGES; s++) {
        leat__json_key(j, leat__stage_names[s]);
        leat__json_object(j);
        for (size_t i = 0; i < LEAT_COUNT(of_stage); i++) put(j, f, &of_stage[i], s);
        leat__json_end(j);
    }
    leat__json_end(j);
    leat__json_end(j);
}

/* ---- Reading ---- */

static int take(const json_t *object, leat_doctor_frame *f, const row *r, size_t stage, leat_error *err)
{
    const json_t *value = json_object_get(object, r->name);
    char *at = (char *)f + r->offset + stage * size_of[r->kind];
    if (value == NULL || json_is_null(value)) return 0;
    double number = json_number_value(value);
    double most = r->kind == SMALL ? (double)UINT32_MAX : 9007199254740992.0;
    if (!json_is_number(value) || !isfinite(number) || number < 0 || (r->kind != REAL && number > most))
        return leat__fail(err, LEAT_EDATA, "frame: %s has an impossible value", r->name);
    if (r->kind == REAL) *(double *)at = number;
    else if (r->kind == SMALL) *(uint32_t *)at = (uint32_t)number;
    else *(uint64_t *)at = (uint64_t)number;
    return 0;
}

int leat__frame_parse(const json_t *object, leat_doctor_frame *f, leat_error *err)
{
    const json_t *stages = json_object_get(object, "stages");

    *f = (leat_doctor_frame){0};
    if (!json_is_object(object)) return leat__fail(err, LEAT_EDATA, "frame: not a JSON object");
    for (size_t i = 0; i < LEAT_COUNT(whole); i++) LEAT_TRY(take(object, f, &whole[i], 0, err));
    for (size_t s = 0; s < LEAT_LOADER_STAGES; s++)
        for (size_t i = 0; i < LEAT_COUNT(of_stage); i++)
            LEAT_TRY(take(json_object_get(stages, leat__stage_names[s]), f, &of_stage[i], s, err));
    return 0;
}
