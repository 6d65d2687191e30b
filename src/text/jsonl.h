/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one line of a JSONL file: checks that the whole line is a JSON object, and finds a few of its
 * top-level fields. Values are views of the line. No allocation, any thread.
 */
#ifndef LEAT_TEXT_JSONL_H
#define LEAT_TEXT_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that must be readable past the end of a line. */
#define LEAT__TEXT_PAD 128
#define LEAT__JSONL_DEPTH 512 /* maximum nesting */

typedef enum leat__jsonl_kind {
    LEAT__JSONL_ABSENT,
    LEAT__JSONL_STRING,
    LEAT__JSONL_NUMBER,
    LEAT__JSONL_OTHER /* object, array, true, false, null */
} leat__jsonl_kind;

typedef struct leat__jsonl_field {
    const char *name; /* in: the key to look for, as UTF-8 */
    size_t name_len;
    const uint8_t *raw; /* out: the value; of a string, without the quotes */
    size_t raw_len;
    leat__jsonl_kind kind; /* of the last value with this key */
    bool escaped;          /* the string has backslashes */
    /* The member in the line, from the opening quote of its key to the end of its value. */
    const uint8_t *member;
    size_t member_len;
    /* in, may be NULL: memory for the text of a string, as long as the line plus LEAT__TEXT_PAD. */
    uint8_t *into;
    size_t into_len;          /* out: its length */
    uint64_t lone_surrogates; /* out: number of unpaired surrogates in the text */
} leat__jsonl_field;

/* Reads a line (without its newline) and fills the fields. Returns NULL, or an error text with
 * the offset in *at. */
const char *leat__jsonl_read(const uint8_t *line, size_t len, leat__jsonl_field *fields, size_t count,
                             size_t *at);

/* Writes the text of a string value to `dst`, which needs raw_len + LEAT__TEXT_PAD bytes; returns
 * its length. An unpaired surrogate becomes U+FFFD and is counted. */
size_t leat__jsonl_text(const leat__jsonl_field *field, uint8_t *dst, uint64_t *lone_surrogates);

/* Returns the length of the text of a string value. A field read with `into` already has the text there; for
 * others, writes the text to `dst` like leat__jsonl_text. */
size_t leat__jsonl_take(const leat__jsonl_field *field, uint8_t *dst, uint64_t *lone_surrogates);

/* Returns the value of a field of kind NUMBER. *rest: the difference of an integer of up to 64 bits from the
 * double. */
double leat__jsonl_number(const leat__jsonl_field *field, int32_t *rest);
/* True when a field is a number that has an order: also Infinity, but not NaN. */
bool leat__jsonl_ordered(const leat__jsonl_field *field);

#endif
