/* SPDX-License-Identifier: Apache-2.0
 *
 * Origins of packs: see pack_origin.h.
 */
#include "ingest/pack_origin.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "io/file.h"

#define TEXT_MAX 128u

int leat__origin_write(const char *path, const leat__origin *o, leat_error *err)
{
    char text[TEXT_MAX];
    int len = snprintf(text, sizeof text, "leat origin 1\n%" PRIx64 " %" PRIx64 " %" PRIx64 "\n", o->identity,
                       o->records, o->chain);
    return leat__file_store(path, text, (size_t)len, err);
}

bool leat__origin_read(const char *path, leat__origin *o)
{
    char *text = NULL;
    size_t len;
    bool exists = false;
    if (leat__path_exists(path, &exists, NULL) != 0 || !exists) return false;
    if (leat__file_load(path, TEXT_MAX, 1, &text, &len, NULL) != 0) return false;
    int count =
        sscanf(text, "leat origin 1\n%" SCNx64 " %" SCNx64 " %" SCNx64, &o->identity, &o->records, &o->chain);
    bool whole = count == 3 && text[len - 1] == '\n';
    leat__free(text);
    return whole;
}
