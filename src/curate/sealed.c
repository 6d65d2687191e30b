/* SPDX-License-Identifier: Apache-2.0
 *
 * See sealed.h.
 */
#include "curate/sealed.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "io/file.h"

#define TAIL 26 /* bytes of ,"sum":"0123456789abcdef"} */

static void make_tail(const char *data, size_t len, char out[TAIL + 1])
{
    snprintf(out, TAIL + 1, ",\"sum\":\"%016llx\"}", (unsigned long long)leat__hash64(data, len, 0));
}

void leat__sealed_end(leat__buf *json)
{
    char tail[TAIL + 1];
    if (json->status != 0 || json->len == 0) return;
    json->len--; /* the closing brace */
    make_tail(json->data, json->len, tail);
    leat__buf_append(json, tail, TAIL);
}

int leat__sealed_read(const char *path, size_t max, json_t **root, bool *sound, leat_error *err)
{
    char *data = NULL, tail[TAIL + 1];
    size_t len;
    *root = NULL;
    *sound = false;
    LEAT_TRY(leat__file_load(path, max, 1, &data, &len, err));
    if (len > 0 && data[len - 1] == '\n') len--;
    if (len > TAIL) {
        make_tail(data, len - TAIL, tail);
        *sound = memcmp(data + len - TAIL, tail, TAIL) == 0;
    }
    *root = json_loadb(data, len, 0, NULL);
    *sound &= *root != NULL;
    leat__free(data);
    return 0;
}

int leat__sealed_damaged(const char *path, leat_error *err)
{
    return leat__fail(err, LEAT_EDATA, "%s: is damaged (use `force` to start over)", path);
}

int leat__sealed_load(const char *path, size_t max, json_t **root, leat_error *err)
{
    bool sound;
    LEAT_TRY(leat__sealed_read(path, max, root, &sound, err));
    if (sound) return 0;
    json_decref(*root);
    *root = NULL;
    return leat__sealed_damaged(path, err);
}
