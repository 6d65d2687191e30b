/* SPDX-License-Identifier: Apache-2.0
 *
 * The n-grams of evaluation sets: a hash table from an n-gram to the first text that has it. Written by
 * one thread, then constant.
 */
#ifndef LEAT_CURATE_EVAL_TABLE_H
#define LEAT_CURATE_EVAL_TABLE_H

#include "base/buf.h"
#include "base/error.h"

#define LEAT__EVAL_NONE UINT32_MAX
#define LEAT__EVAL_FIELDS 16

typedef struct leat__eval_slot {
    uint64_t hash;
    uint32_t text; /* number + 1; 0 = empty slot */
} leat__eval_slot;

typedef struct leat__eval_table {
    leat__eval_slot *slot;
    uint64_t slots, used; /* slots: a power of two */
    uint32_t texts;       /* lines with at least one of the fields */
    uint32_t texts_short; /* texts too short for an n-gram */
    uint64_t without;     /* lines with none of the fields */
    uint64_t bad;         /* lines that could not be read */
    leat__buf bad_list;   /* lines for bad.jsonl about these */
    leat__buf ids, ends;  /* ids as JSON; end offset of each (uint64_t) */
    char *missing;        /* first field that no line has as a string; NULL = none */
} leat__eval_table;

typedef struct leat__eval_sets {
    const char *const *inputs;
    uint32_t count, ngram;
    const char *fields, *id_field; /* fields: names separated by commas */
    uint64_t memory;               /* limit of the run: a quarter is for the table, the rest for reading */
    uint64_t max_line;
    bool fail_on_bad;
    /* Returns the bytes that a line of this length takes in the corpus. */
    uint64_t (*corpus_need)(void *cookie, uint64_t line);
    void *cookie;
} leat__eval_sets;

/* Reads the files: every string in one of the fields is a separate text. LEAT_EBUDGET when the table or a
 * line does not fit. */
int leat__eval_table_read(leat__eval_table *t, const leat__eval_sets *sets, leat_error *err) LEAT_MUST_CHECK;
void leat__eval_table_reset(leat__eval_table *t);
uint64_t leat__eval_table_bytes(const leat__eval_table *t);
/* Returns the number of the text with this n-gram, or LEAT__EVAL_NONE. */
uint32_t leat__eval_table_find(const leat__eval_table *t, uint64_t hash);
/* Appends the id of a text, as JSON. */
void leat__eval_table_id(const leat__eval_table *t, uint32_t text, leat__buf *out);

#endif
