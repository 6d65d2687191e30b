/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels for text: finding the end of a JSON string, scoring a document, sketching a
 * document. One template, compiled for each instruction set; all variants give the same results.
 * The tables are constant: any thread.
 */
#ifndef LEAT_TEXT_TEXT_DSP_H
#define LEAT_TEXT_TEXT_DSP_H

#include <stddef.h>
#include <stdint.h>

#include "text/minhash.h"
#include "text/score.h"
#include "text/sketch.h"

typedef struct leat__text_dsp {
    const char *isa;
    /* Returns the first byte from p on that is a quote, a backslash or below 0x20. One must exist; up to 64
     * bytes past it are read. */
    const uint8_t *(*string_stop)(const uint8_t *p);
    /* Copies until such a byte, but decodes escapes of two bytes; advances *dst. Up to 64 bytes past the end
     * are written. */
    const uint8_t *(*string_copy)(const uint8_t *p, uint8_t **dst);
    /* Like leat__utf8_check(). */
    size_t (*utf8_check)(const uint8_t *p, size_t len);
    /* Counts word boundaries, line ends and candidates of the text, to size arrays. */
    void (*measure)(const uint8_t *text, size_t len, leat__text_size *size);
    void (*score)(leat__scorer *s, size_t len);
    /* Writes hashes of the shingles of the text to s->shingle; returns their number. */
    uint32_t (*shingles)(leat__sketcher *s, size_t len);
    /* Writes those of n values whose lower halves are below `most`; returns their number. Up to 8 more are
     * written. */
    uint32_t (*keep_low)(const uint64_t *x, uint32_t n, uint32_t most, uint64_t *out);
    /* Like keep_low, for values whose bins have no value below `most` in `least`; the bin is upper half * k /
     * 2^32. `least` has LEAT__SKETCH_MAX entries. */
    uint32_t (*keep_open)(const uint64_t *x, uint32_t n, uint32_t k, const uint32_t *least, uint32_t most,
                          uint64_t *out);
    /* Write the words of the text to m->joined and m->start; return their number. English: the words of the
     * simplified text, split like spaCy. Lower: those of text.lower().split(). */
    uint32_t (*join_english)(leat__minhasher *m, size_t len);
    uint32_t (*join_lower)(leat__minhasher *m, size_t len);
} leat__text_dsp;

/* The character encoded by the second byte of an escape; 0 = not an escape of two bytes. */
extern const uint8_t leat__plain_escape[256];

extern const leat__text_dsp leat__text_c;
extern const leat__text_dsp leat__text_avx2;
extern const leat__text_dsp leat__text_avx512;

const leat__text_dsp *leat__text_dsp_for(uint32_t cpu_flags);
/* Returns the kernels for this CPU. */
const leat__text_dsp *leat__text_dsp_now(void);

#endif
