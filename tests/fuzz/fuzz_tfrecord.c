/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of TFRecord files against any bytes. The frame around them is a length and checksums,
 * which would reject every mutation, so it is omitted here.
 */
#include <stdlib.h>

#include "ingest/tf_example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(void *cookie, const leat__tf_feature *f, leat_error *err)
{
    size_t len = 0;
    (void)cookie, (void)err;
    if (f->count > f->list_len) abort(); /* a value takes a byte */
    if (f->kind == LEAT__TF_BYTES) {
        for (size_t i = 0; i < f->count && i < 100; i++)
            if (leat__tf_bytes(f, i, &len) == NULL) abort();
        return 0;
    }
    void *values = malloc(8 * f->count + 8);
    if (f->kind == LEAT__TF_FLOATS) leat__tf_floats(f, values);
    if (f->kind == LEAT__TF_INTS) leat__tf_ints(f, values);
    free(values);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)!leat__tf_example(data, size, look, NULL, NULL);
    return 0;
}
