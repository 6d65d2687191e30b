/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies bytes that this CPU will not read again soon, such as tiles for a device. The x86 variants bypass
 * the caches: an ordinary copy would first read each target line from memory.
 */
#ifndef LEAT_DSP_COPY_H
#define LEAT_DSP_COPY_H

#include <stddef.h>
#include <stdint.h>

typedef struct leat__copy_dsp {
    const char *isa;
    /* Like memcpy. When it returns, the bytes are ordered before later stores of the thread. */
    void (*out)(uint8_t *to, const uint8_t *from, size_t bytes);
} leat__copy_dsp;

const leat__copy_dsp *leat__copy_dsp_for(uint32_t cpu_flags);

#endif
