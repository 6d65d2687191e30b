/* SPDX-License-Identifier: Apache-2.0
 *
 * Files for --config of the text commands: YAML text of any bytes, into the options of leat filter.
 */
#include <stdint.h>
#include <string.h>

#include "cli_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const cli_command cli_cmd_filter;

static volatile size_t bytes_read; /* every text is read to its end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cli_line line;
    static cli_config config;
    static char *words[] = {NULL};
    leat_error err;

    if (cli_parse(&line, &cli_cmd_filter, 0, words, &err) != 0) return 0;
    if (cli_config_parse(&config, &line, "f.yaml", (const char *)data, size, &err) == 0)
        for (size_t i = 0; i < line.param_count; i++)
            if (line.params[i]->kind == LEAT__PARAM_STRING && line.values[i].s)
                bytes_read += strlen(line.values[i].s);
    cli_config_reset(&config);
    return 0;
}
