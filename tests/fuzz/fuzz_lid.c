/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as a fastText model. One that can be read must predict any text without an error. The
 * last 64 bytes are also the text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "text/lid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] = "a yes ja </s> text __label__x of words";
    leat__lid *lid = NULL;
    leat__lid_work work = {0};
    leat_error err = {0};
    double p;
    char *copy = leat__alloc(LEAT__MEM_MISC, size + 1);
    if (!copy) abort();
    if (size > 0) memcpy(copy, data, size);
    if (leat__lid_open(&lid, copy, size, "model", &err) != 0) {
        if (err.code != LEAT_EDATA || err.message[0] == 0) abort();
        return 0;
    }
    if (leat__lid_bytes(lid) > 16 * size + 4096) abort(); /* more than the file can justify */
    if (leat__lid_work_init(&work, lid, &err) != 0) abort();
    const uint8_t *texts[] = {(const uint8_t *)sample, data + size - LEAT_MIN(size, 64)};
    for (int i = 0; i < 2; i++) {
        int label = leat__lid_run(lid, &work, texts[i], i == 0 ? sizeof sample - 1 : LEAT_MIN(size, 64), &p);
        if (label >= (int)leat__lid_labels(lid) || !(p >= 0 && p <= 1)) abort();
        if (label >= 0 && leat__lid_find(lid, leat__lid_label(lid, (uint32_t)label)) < 0) abort();
    }
    leat__lid_work_reset(&work);
    leat__lid_close(&lid);
    return 0;
}
