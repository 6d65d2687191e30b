/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of conditions: parsed, and when that works, tested on a few samples.
 */
#include <stdint.h>
#include <string.h>

#include "ingest/where.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 4000 };

static int class_names(const void *cookie, uint32_t field, const char *const **names, uint64_t *count,
                       leat_error *err)
{
    static const char *const classes[] = {"cat", "dog"};
    *names = classes;
    *count = field == 0 ? 2 : 0;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                        {.name = "score", .type = LEAT_FIELD_FLOAT},
                                        {.name = "a b", .type = LEAT_FIELD_INT},
                                        {.name = "text", .type = LEAT_FIELD_TEXT}};
    const leat__where_names names = {.fields = fields, .field_count = 4, .classes = class_names};
    char text[TEXT_MAX + 1];
    leat__where *w = NULL;
    leat_error err;

    if (size > TEXT_MAX) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (leat__where_open(&w, text, &names, &err) == 0) {
        for (int i = -2; i < 3; i++) {
            leat__item items[4] = {{.i = i}, {.f = i / 2.0}, {.i = INT64_MIN}, {.absent = true}};
            (void)leat__where_match(w, "key", i > 0 ? 3 : 0, items);
        }
    }
    leat__where_close(&w);
    return 0;
}
