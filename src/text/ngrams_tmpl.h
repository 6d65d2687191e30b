/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeated n-grams of words, n = 2 to 10, as a cascade: an n-gram can repeat only where both of
 * its (n-1)-grams repeat. So each level checks only the places left by the previous one: on prose
 * 0.4 exact lookups per word instead of nine. An n-gram is identified by the pair of numbers of
 * its (n-1)-grams, so equality is exact if it is for words. Included after lines_tmpl.h.
 */

#ifndef HAS_KEEP_PLACES
/* Keeps the 2-grams whose byte of the filter is "seen again". */
INLINE uint32_t keep_pairs(const leat__scorer *s, uint32_t pairs, uint32_t shift)
{
    const uint64_t *hash = s->word_hash;
    uint32_t count = 0;
    for (uint32_t i = 0; i < pairs; i++) {
        uint64_t key = hash[i] * LEAT__HW1 + hash[i + 1];
        s->key[count] = key;
        s->u3[count] = i;
        count += s->filter[key >> shift] >= 3;
    }
    return count;
}

/* Of the m places s->u1 with the numbers s->u2, keeps those whose next place is also present. */
INLINE uint32_t keep_next(const leat__scorer *s, uint32_t m)
{
    uint32_t *at = s->u1, *id = s->u2, count = 0;
    for (uint32_t i = 0; i < m; i++) {
        s->key[count] = (uint64_t)id[i] << 32 | id[i + 1];
        s->u3[count] = at[i];
        count += at[i + 1] == at[i] + 1;
    }
    return count;
}

/* Of the places s->u3 with the numbers s->u4, copies those whose n-gram occurs more than once to s->u1 and
 * s->u2. Updates *most and *most_at with the first n-gram that occurs more often than *most. */
INLINE uint32_t keep_repeated(const leat__scorer *s, uint32_t count, uint32_t *most, uint32_t *most_at)
{
    const uint32_t *id = s->u4, *occurs = s->u5;
    uint32_t m = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = occurs[id[i]];
        s->u1[m] = s->u3[i];
        s->u2[m] = id[i];
        m += k >= 2;
        if (k > *most) {
            *most = k;
            *most_at = s->u3[i];
        }
    }
    return m;
}
#endif

/* Finds the places where a 2-gram may occur twice: a byte filter ("seen", "seen again") discards most of them
 * before the exact table. Keys go to s->key, places to s->u3. */
static NOINLINE uint32_t pair_candidates(leat__scorer *s)
{
    uint32_t n = s->word_count, log = n < 64 ? 9 : 35 - (uint32_t)__builtin_clz(n), shift = 64 - log;
    const uint64_t *hash = s->word_hash;
    memset(s->filter, 0, (size_t)1 << log);
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint8_t *f = &s->filter[(hash[i] * LEAT__HW1 + hash[i + 1]) >> shift];
        *f = (uint8_t)(*f << 1 | 1);
    }
    return keep_pairs(s, n - 1, shift);
}

/* Of the m places whose (n-1)-gram repeats, finds those whose next one repeats too. */
static NOINLINE uint32_t next_candidates(leat__scorer *s, uint32_t m)
{
    s->u1[m] = UINT32_MAX;
    s->u2[m] = 0;
    return keep_next(s, m);
}

/* Counts the characters in repeated n-grams. datatrove skips n words after a repeat and counts no blanks.
 * NeMo counts every later occurrence with blanks, and overlaps once. */
static NOINLINE void repeated_chars(leat__scorer *s, uint32_t n, uint32_t m, uint32_t ids,
                                    uint32_t *datatrove, uint32_t *nemo)
{
    const uint32_t *at = s->u1, *id = s->u2, *before = s->before;
    uint32_t greedy = 0, next = 0, all = 0, last = 0u - 2 * n;
    memset(s->seen, 0, ids);
    for (uint32_t i = 0; i < m; i++) { /* repeats are unpredictable: no branches here */
        uint32_t p = at[i], len = before[p + n] - before[p], seen = s->seen[id[i]];
        uint32_t live = p >= next, hit = live & seen & 1;
        greedy += len & (0u - hit);
        next = hit ? p + n : next;
        uint32_t again = seen >> 1, gap = p - last, overlap = gap < n ? n - gap : 0, fresh = n - overlap;
        uint32_t blanks = fresh < n - 1 ? fresh : n - 1;
        all += (before[p + n] - before[p + overlap] + blanks) & (0u - again);
        last = again ? p : last;
        s->seen[id[i]] = (uint8_t)(seen | live | 2);
    }
    *datatrove = greedy;
    *nemo = all;
}

static NOINLINE void ngram_pass(leat__scorer *s)
{
    uint32_t *top = &s->counts.top_2gram_chars, *dup = &s->counts.dup_5gram_chars;
    uint32_t *nemo = &s->counts.nemo_dup_5gram_chars;
    uint32_t words = s->word_count, m = 0;
    const uint32_t *before = s->before;
    for (uint32_t n = 2; n <= 10 && words >= n; n++) {
        uint32_t count = n == 2 ? pair_candidates(s) : next_candidates(s, m);
        if (count == 0) {
            if (n > 4) break;
            top[n - 2] = before[n] + n - 1; /* every n-gram occurs once: takes the first */
            m = 0;
            continue;
        }
        interning t = intern_begin(s, count);
        uint32_t *id = s->u4, *occurs = s->u5;
        memset(occurs, 0, 4 * (size_t)count);
        for (uint32_t i = 0; i < count; i++) {
            id[i] = intern_put(&t, (s->key[i] * LEAT__HW0) >> 32, s->key[i]);
            occurs[id[i]]++;
        }
        intern_end(s, &t);
        uint32_t most = n <= 4 ? 1 : UINT32_MAX, most_at = 0;
        m = keep_repeated(s, count, &most, &most_at);
        if (n <= 4) top[n - 2] = (before[most_at + n] - before[most_at] + n - 1) * most;
        else if (m > 0) repeated_chars(s, n, m, t.next, &dup[n - 5], &nemo[n - 5]);
    }
}

static void score_text(leat__scorer *s, size_t len)
{
    memset(&s->counts, 0, sizeof s->counts);
    scan_text(s, len);
    word_pass(s);
    pattern_pass(s);
    line_pass(s);
    paragraph_pass(s);
    ngram_pass(s);
}
