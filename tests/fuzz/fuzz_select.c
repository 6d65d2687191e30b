/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations of selections: YAML and JSON text.
 */
#include <stdint.h>
#include <string.h>

#include "curate/select_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 16000 };

static volatile size_t bytes_read; /* every text is read to its end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 1];
    leat__select_config *config = NULL;
    leat_select_opts o;
    leat_error err;

    if (size > TEXT_MAX) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    leat_select_opts_init(&o);
    o.config = text;
    if (leat__select_config_open(&config, &o, &err) == 0) {
        size_t read = 0;
        for (uint32_t i = 0; i < o.strategy_count; i++) {
            const leat_select_strategy *s = &o.strategies[i];
            for (uint32_t k = 0; k < s->target_count; k++) read += strlen(s->targets[k].name);
            read += s->column ? strlen(s->column) : 0;
            read += strlen(leat__select_kind_name(s->kind));
        }
        for (uint32_t i = 0; i < o.column_count; i++) read += strlen(o.columns[i]);
        bytes_read = read;
    }
    leat__select_config_close(&config);
    return 0;
}
