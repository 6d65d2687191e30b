/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the table: finds a multiplier that gives every word a different slot.
 */
#include "text/word_table.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "base/thread.h"

static const char *const stop_words[] = {"the", "be", "to", "of", "and", "that", "have", "with"};
static const char *const symbols[] = {"...",       "[...]", "(...)", "\xe2\x80\xa6", "[\xe2\x80\xa6]",
                                      "-\xc2\xbb", "#"};

static leat__word_table table;

static int put(const char *word, uint32_t stop, uint32_t bit)
{
    LEAT_ASSERT(strlen(word) <= sizeof(uint64_t));
    uint64_t key = 0;
    memcpy(&key, word, strlen(word));
    leat__word_entry *e = &table.entry[key * table.multiplier >> 58];
    if (e->count) return 0;
    *e = (leat__word_entry){key, stop ? 1 : LEAT__WORD_SYMBOL, bit, (uint32_t)strlen(word)};
    return 1;
}

static void make(void)
{
    /* the first one works for these words; other words would need a search */
    for (table.multiplier = UINT64_C(0x1027c4d1c386bbc5);; table.multiplier *= UINT64_C(0x9e3779b97f4a7c15)) {
        memset(table.entry, 0, sizeof table.entry);
        for (size_t i = 0; i < LEAT_COUNT(table.entry); i++) table.entry[i].key = ~UINT64_C(0);
        int ok = 1;
        for (size_t i = 0; i < LEAT_COUNT(stop_words) && ok; i++) ok = put(stop_words[i], 1, 1u << i);
        for (size_t i = 0; i < LEAT_COUNT(symbols) && ok; i++) ok = put(symbols[i], 0, 0);
        if (ok) return;
    }
}

const leat__word_table *leat__word_table_get(void)
{
    static leat__once once = LEAT__ONCE_INIT;
    leat__once_run(&once, make);
    return &table;
}
