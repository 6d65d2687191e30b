/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for MinHash signatures: lower case, joined by single blanks. ASCII words are copied 16 bytes at a
 * time; other words use the tables of fold.c and english_words.c. Included after scan_tmpl.h; the including
 * file defines letter_masks() and white_mask().
 */
#include "text/english_words.h"
#include "text/fold.h"
#include "text/minhash.h"

enum { JOIN_WINDOW = 1024 }; /* bytes whose word boundaries are held at once */

/* Boundaries of words, and bytes that need the tables. The boundaries of a word may be in two windows. */
typedef struct joining {
    uint32_t bounds[JOIN_WINDOW + 80];
    uint32_t odd[JOIN_WINDOW + 80];
    uint32_t bound_count, odd_count;
    uint64_t last; /* bit 0: the byte before the block is a separator */
} joining;

/* Keeps the start of an unfinished word, and its first odd byte, for the next window. */
INLINE void keep_open_word(joining *j, uint32_t o)
{
    uint32_t open = j->bound_count & 1, odd_count = j->odd_count;
    if (open) {
        j->bounds[0] = j->bounds[j->bound_count - 1];
        while (o < odd_count && j->odd[o] < j->bounds[0]) o++;
        j->odd[0] = j->odd[o]; /* or the mark after the last one */
    }
    j->bound_count = open;
    j->odd_count = open && o < odd_count;
}

/* Scans the window at `base`. english: words consist of letters; other ASCII characters except digits
 * separate them. */
INLINE void scan_window(joining *j, const uint8_t *text, size_t base, size_t len, const int english)
{
    uint32_t *bounds = j->bounds + j->bound_count, *odd = j->odd + j->odd_count;
    for (size_t i = base; i < base + JOIN_WINDOW && i <= len; i += 64) {
        uint64_t nonascii, letter, digit = 0, gap;
        if (english) {
            letter_masks(text + i, &nonascii, &letter, &digit);
            gap = ~(letter | digit | nonascii);
        } else {
            white_mask(text + i, &nonascii, &gap);
        }
        bounds = put_bits(bounds, gap ^ (gap << 1 | j->last), (uint32_t)i, 24);
        odd = put_bits(odd, nonascii | digit, (uint32_t)i, 1);
        j->last = gap >> 63;
    }
    j->bound_count = (uint32_t)(bounds - j->bounds);
    j->odd_count = (uint32_t)(odd - j->odd);
    j->odd[j->odd_count] = UINT32_MAX;
}

/* Converts the bytes of a word to lower case: of letters only, or of any ASCII. */
INLINE uint64_t lower_ascii(uint64_t x, const int letters)
{
    if (letters) return x | UINT64_C(0x2020202020202020);
    uint64_t from_a = x + UINT64_C(0x3f3f3f3f3f3f3f3f), past_z = x + UINT64_C(0x2525252525252525);
    return x + ((from_a & ~past_z & UINT64_C(0x8080808080808080)) >> 2);
}

INLINE void join_word(leat__word_list *list, const leat__contractions *contractions, const uint8_t *p,
                      uint32_t len, const int english)
{
    uint64_t a = lower_ascii(leat__load_u64(p), english), b = lower_ascii(leat__load_u64(p + 8), english);
    uint8_t *out = list->out + list->bytes;
    if (english && len <= LEAT__CONTRACTION_MAX) {
        const uint8_t *mask = leat__mask_of(len);
        uint64_t low = a & leat__load_u64(mask), high = b & leat__load_u64(mask + 8);
        const leat__contraction *c = leat__contraction_of(contractions, low, high);
        if (RARE(c->low == low && c->high == high)) {
            leat__english_put_parts(list, c);
            return;
        }
    }
    list->start[list->count++] = (uint32_t)list->bytes;
    leat__store_u64(out, a);
    leat__store_u64(out + 8, b);
    for (uint32_t i = 16; RARE(i < len); i += 8)
        leat__store_u64(out + i, lower_ascii(leat__load_u64(p + i), english));
    out[len] = ' ';
    list->bytes += len + 1;
}

INLINE uint32_t join_words(leat__minhasher *m, size_t len, const int english)
{
    joining j = {.last = 1};
    leat__word_list list = {.out = m->joined, .start = m->start};
    size_t done = 0;
    memset(m->text + len, ' ', LEAT__TEXT_PAD);
    const leat__contractions *contractions = english ? leat__english_contractions() : NULL;
    for (size_t base = 0; base <= len; base += JOIN_WINDOW) {
        uint32_t o = 0;
        scan_window(&j, m->text, base, len, english);
        for (uint32_t w = 0; w + 2 <= j.bound_count; w += 2) {
            uint32_t s = j.bounds[w], e = j.bounds[w + 1];
            if (RARE(s < done)) continue;
            while (RARE(j.odd[o] < s)) o++;
            if (RARE(j.odd[o] < e)) {
                if (english) done = leat__english_words(&list, m->text, len, s, e, m->folded);
                else leat__fold_lower_words(&list, m->text, len, s, e, m->folded);
                continue;
            }
            join_word(&list, contractions, m->text + s, e - s, english);
        }
        keep_open_word(&j, o);
    }
    list.start[list.count] = (uint32_t)list.bytes;
    return list.count;
}

static uint32_t join_english(leat__minhasher *m, size_t len)
{
    return join_words(m, len, 1);
}

static uint32_t join_lower(leat__minhasher *m, size_t len)
{
    return join_words(m, len, 0);
}
