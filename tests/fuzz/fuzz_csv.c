/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and lines of any bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ingest/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *data, size_t size, bool lines)
{
    leat__stream *stream = NULL;
    leat__csv csv;
    if (leat__stream_open_memory(&stream, "fuzz.csv", data, size, NULL) != 0) return;
    if (leat__csv_init(&csv, stream, ',', NULL) == 0) {
        bool end = false;
        /* every call advances: no input needs more calls than it has bytes */
        for (size_t n = 0; !end; n++) {
            int rc = lines ? leat__csv_next_line(&csv, &end, NULL) : leat__csv_next(&csv, &end, NULL);
            if (n > size + 2 && !leat__stream_compressed(stream)) abort();
            if (rc != 0 && leat__stream_compressed(stream)) break;
            for (uint32_t i = 0; rc == 0 && !lines && i < csv.cells; i++)
                if (strlen(leat__csv_cell(&csv, i)) > csv.row.len) abort();
        }
        leat__csv_reset(&csv);
    }
    leat__stream_close(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat__mem_limit_set(256u << 20);
    read_all(data, size, false);
    read_all(data, size, true);
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
