/* SPDX-License-Identifier: Apache-2.0
 *
 * Sketches of documents for fuzzy deduplication. The text is split into shingles, and their set is hashed
 * to K values. Two sketches agree at a position with a probability equal to the Jaccard similarity of the
 * sets. Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): every shingle is hashed into one of K
 * bins; further rounds fill the empty bins.
 *
 * The words of shingles are sequences of letters and digits; case is ignored. A sketcher belongs to one
 * thread. The same text gives the same values on every machine.
 */
#ifndef LEAT_TEXT_SKETCH_H
#define LEAT_TEXT_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/jsonl.h"

#define LEAT__SKETCH_MAX 1024 /* maximum values of a sketch */

typedef struct leat__sketcher {
    uint32_t words; /* per shingle; 0 = shingles of characters */
    uint32_t chars; /* per shingle of characters */
    uint8_t *text;  /* the document: write it here, as with leat__scorer */
    uint64_t text_capacity;
    uint8_t *folded; /* characters: the text in lower case with single blanks */
    uint32_t *bounds;
    uint64_t *word_hash;
    uint32_t word_count; /* words of the last text: word i is bounds[2 * i] to bounds[2 * i + 1] */
    uint64_t *shingle;
    void *slab, *text_slab;
    uint64_t slab_bytes, text_slab_bytes;
} leat__sketcher;

int leat__sketcher_init(leat__sketcher *s, uint32_t words, uint32_t chars, leat_error *err) LEAT_MUST_CHECK;
void leat__sketcher_reset(leat__sketcher *s);
int leat__sketcher_reserve(leat__sketcher *s, size_t bytes, leat_error *err) LEAT_MUST_CHECK;
/* Writes the shingles of s->text[0, len) to s->shingle, including repeats; *count is their number. A text
 * shorter than one shingle is one shingle; a text without words has none. */
int leat__sketcher_shingles(leat__sketcher *s, size_t len, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;
uint64_t leat__sketcher_need(const leat__sketcher *s, uint64_t bytes);

/* Computes K values (at most LEAT__SKETCH_MAX) of a set of n > 0 shingles. */
void leat__sketch_fss(const uint64_t *shingle, uint32_t n, uint32_t k, uint32_t *out);

/* Hashes the `rows` values of one band to 64 bits. */
uint64_t leat__sketch_band(const uint32_t *values, uint32_t rows);
/* Writes one byte of each value, for comparing sketches: equal values give equal bytes. */
void leat__sketch_bytes(const uint32_t *values, uint32_t k, uint8_t *out);
/* Returns how many of k bytes are equal. */
uint32_t leat__sketch_equal(const uint8_t *a, const uint8_t *b, uint32_t k);
/* Returns the similarity for `equal` equal bytes of k, corrected for bytes that are equal by chance, 1 in
 * 256. */
double leat__sketch_similarity(uint32_t equal, uint32_t k);
/* Returns the probability that documents of this similarity share a band: 1 - (1 - s^rows)^bands. */
double leat__sketch_curve(double similarity, uint32_t bands, uint32_t rows);

#endif
