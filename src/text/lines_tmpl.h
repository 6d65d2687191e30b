/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and paragraphs of a scanned text: repeated ones, and the rules about how lines begin and
 * end. NeMo, datatrove and C4 define a line differently, so each has its own counts. Included
 * after words_tmpl.h.
 */

/* One use of the interning table. */
typedef struct interning {
    uint32_t *slot;
    uint64_t *key;
    uint32_t base, mask, next;
} interning;

/* Prepares the table for n keys: at most a quarter full, if there are enough slots, otherwise half. */
INLINE interning intern_begin(leat__scorer *s, uint32_t n)
{
    leat__intern *t = &s->intern;
    uint32_t slots = n < 32 ? 128 : UINT32_C(1) << (34 - (uint32_t)__builtin_clz(n));
    slots = LEAT_MIN(slots, t->slots);
    if (t->base > UINT32_MAX - n - 1) {
        memset(t->slot, 0, 4 * (size_t)t->slots);
        t->base = 1;
    }
    return (interning){t->slot, t->key, t->base, slots - 1, 0};
}

INLINE void intern_end(leat__scorer *s, const interning *t)
{
    s->intern.base = t->base + t->next;
}

/* Returns the number of this key; new keys are numbered from 0. Known and new keys take the same path without
 * a branch, which would be unpredictable: a misprediction costs more than the work. */
INLINE uint32_t intern_put(interning *t, uint64_t hash, uint64_t key)
{
    for (uint32_t i = (uint32_t)hash & t->mask;; i = (i + 1) & t->mask) {
        uint32_t v = t->slot[i], known = 0u - (uint32_t)(v >= t->base);
        __asm__("" : "+r"(known)); /* otherwise the compiler makes a branch */
        uint32_t id = ((v - t->base) & known) | (t->next & ~known);
        uint64_t differs = (t->key[id] ^ key) & (uint64_t)(int64_t)(int32_t)known;
        if (RARE(differs)) continue;
        t->key[id] = key;
        t->slot[i] = id + t->base;
        t->next += known + 1;
        return id;
    }
}

/* Returns 1 when the key was seen before. */
INLINE uint32_t intern_again(interning *t, uint64_t key)
{
    uint32_t before = t->next;
    intern_put(t, key, key);
    return 1 - (t->next - before);
}

INLINE int ends_in(const uint8_t *from, const uint8_t *end, const char *word, size_t len)
{
    return (size_t)(end - from) >= len && memcmp(end - len, word, len) == 0;
}
#define ENDS(from, end, word) ends_in((from), (end), (word), sizeof(word) - 1)

INLINE int ends_in_dots(const uint8_t *from, const uint8_t *end)
{
    return ENDS(from, end, "...") || ENDS(from, end, "\xe2\x80\xa6");
}

/* Returns the end of [from, end) without citations: [12], [edit], [citation needed]. */
static const uint8_t *before_citations(const uint8_t *from, const uint8_t *end)
{
    while (end > from && end[-1] == ']') {
        const uint8_t *q = end - 1;
        while (q > from && q[-1] >= '0' && q[-1] <= '9') q--;
        if (q > from && q[-1] == '[') end = q - 1;
        else if (ENDS(from, end, "[edit]")) end -= 6;
        else if (ENDS(from, end, "[citation needed]")) end -= 17;
        else break;
    }
    return end;
}

/* True when the line, without its citations, ends in "...". */
static int dots_and_citations(const uint8_t *from, const uint8_t *end)
{
    for (int i = 0; i < 3; i++) {
        end = before_citations(from, end);
        if (end == from || end[-1] != '.') return 0;
        end--;
    }
    return 1;
}

/* Counts one line of str.splitlines(): its words w0 to w1, its patterns, and the sentences that
 * end in it. For texts with patterns, citations or unusual line breaks. */
static void careful_line(leat__scorer *s, uint32_t end, uint32_t w0, uint32_t w1, uint32_t sentences,
                         uint32_t *next_hit)
{
    leat__counts *k = &s->counts;
    uint32_t kinds = 0;
    k->split_lines++;
    while (*next_hit < s->hit_count && s->hit[*next_hit] < end) kinds |= s->hit_kind[(*next_hit)++];
    if (w0 == w1) return;
    const uint8_t *a = s->text + s->bounds[2 * w0], *z = s->text + s->bounds[2 * w1 - 1];
    k->bullet_lines += *a == '-' || (a[0] == 0xe2 && a[1] == 0x80 && a[2] == 0xa2);
    k->ellipsis_lines += ends_in_dots(a, z);
    if (k->longest_word > 1000)
        for (uint32_t i = w0; i < w1; i++)
            if (s->before[i + 1] - s->before[i] > 1000) return;
    const uint8_t *y = before_citations(a, z);
    if (y == a) return;
    int mark = y[-1] == '.' || y[-1] == '?' || y[-1] == '!' || y[-1] == '"';
    if ((!mark && y[-1] != '\'') || dots_and_citations(a, y)) return;
    if (sentences == 0) sentences = 1;
    if (mark && w1 - w0 >= 5 && !(kinds & (HIT_SCRIPT | HIT_POLICY))) {
        k->c4_paper_lines++;
        k->c4_paper_sentences += sentences;
    }
    if (w1 - w0 < 3 || k->c4_drop) return;
    if (kinds & HIT_LOREM) k->c4_drop = 1;
    else if (kinds & HIT_SCRIPT) return;
    else if (k->curly > 0 && memchr(a, '{', (size_t)(z - a))) k->c4_drop = 2;
    else if (!(kinds & HIT_POLICY)) {
        k->c4_lines++;
        k->c4_words += w1 - w0;
        k->c4_sentences += sentences;
    }
}

/* Returns the length of a line break of str.splitlines() at p, or 0. */
static uint32_t break_at(const uint8_t *p)
{
    uint32_t len = 1;
    if (*p < 0x80) {
        if (*p == '\r' && p[1] == '\n') return 2;
        return (*p >= 10 && *p <= 13) || (*p >= 0x1c && *p <= 0x1e);
    }
    if (*p != 0xc2 && *p != 0xe2) return 0;
    uint8_t is = leat__unicode_of(leat__utf8_decode(p, &len));
    return is & LEAT__UNI_BREAK ? len : 0;
}

/* Counts sentence ends in the line [from, to), with the same rules as block_masks() and scan_unicode(). The
 * end of the line counts as white space, whatever character breaks it. */
static uint32_t sentences_in(const leat__scorer *s, uint32_t from, uint32_t to)
{
    uint32_t n = 0, len;
    for (uint32_t i = from; i < to; i += len) {
        const uint8_t *p = s->text + i;
        uint32_t code = leat__utf8_decode(p, &len);
        if (code >= 0x80) {
            n += (leat__unicode_of(code) & LEAT__UNI_TERMINAL) != 0;
        } else if (code == '.' || code == '?' || code == '!') {
            int closer = p[1] == '"' || p[1] == '\'' || p[1] == ')' || p[1] == ']';
            const uint8_t *q = p + 1 + closer;
            n += q >= s->text + to || *q == ' ' || (*q >= 9 && *q <= 13);
        }
    }
    return n;
}

static void careful_lines(leat__scorer *s)
{
    leat__counts *k = &s->counts;
    uint32_t len = k->bytes, next_hit = 0, from = 0, w0 = 0, s0 = 0;
    k->split_lines = k->bullet_lines = k->ellipsis_lines = 0;
    k->c4_lines = k->c4_words = k->c4_sentences = k->c4_paper_lines = k->c4_paper_sentences = 0;
    if (!s->rare_breaks) {
        for (uint32_t i = 0; i <= s->newline_count; i++) {
            uint32_t end = s->newline[i], w1 = s->newline_words[i], s1 = s->newline_sentences[i];
            if (i < s->newline_count || end > from) careful_line(s, end, w0, w1, s1 - s0, &next_hit);
            from = end + 1;
            w0 = w1;
            s0 = s1;
        }
        return;
    }
    for (uint32_t i = 0; i < len;) {
        uint32_t n = break_at(s->text + i);
        if (n == 0) {
            i++;
            continue;
        }
        if (i + n > len) n = 1; /* the line feed after a return is in the padding */
        uint32_t w1 = w0;
        while (w1 < s->word_count && s->bounds[2 * w1] < i) w1++;
        careful_line(s, i, w0, w1, sentences_in(s, from, i), &next_hit);
        i += n;
        from = i;
        w0 = w1;
    }
    if (from < len) careful_line(s, len, w0, s->word_count, sentences_in(s, from, len), &next_hit);
}

/* Classes of the last byte of a line. Bit 0: one of . ? ! " '. Bit 1: the same without '. Bit 2: . ? !. Bit
 * 3: may end one of NeMo's longer ellipses. */
static const uint8_t line_end[256] = {
    ['.'] = 7, ['?'] = 7,  ['!'] = 7,  ['"'] = 3, ['\''] = 1, [']'] = 8,
    [')'] = 8, [0xa6] = 8, [0xbb] = 8, ['e'] = 8, ['E'] = 8,
};

/* True for NeMo's other endings of an unfinished line. */
static int nemo_ellipsis(const leat__scorer *s, const uint8_t *a, const uint8_t *z)
{
    if (ENDS(a, z, "[...]") || ENDS(a, z, "(...)") || ENDS(a, z, "[\xe2\x80\xa6]") || ENDS(a, z, "-\xc2\xbb"))
        return 1;
    if (z - a >= 9 && SAYS(z - 9, "read more")) return 1;
    return z - a >= 11 && SAYS(z - 11, "read more..");
}

typedef struct line_counts {
    uint32_t again, again_chars, chars, shorter, shortest, bullets, nemo_bullets, dots, nemo_dots, marks,
        terminal;
    uint32_t c4, c4_words, c4_sentences, paper, paper_sentences;
    uint32_t citation;
} line_counts;

/* Counts the line that ends at line feed i. It must have words. */
INLINE void plain_line(const leat__scorer *s, line_counts *c, interning *t, uint32_t i)
{
    uint32_t from = i ? s->newline[i - 1] + 1 : 0, to = s->newline[i];
    uint32_t w0 = i ? s->newline_words[i - 1] : 0, w1 = s->newline_words[i];
    uint32_t sentences = s->newline_sentences[i] - (i ? s->newline_sentences[i - 1] : 0);
    const uint8_t *a = s->text + s->bounds[2 * w0], *z = s->text + s->bounds[2 * w1 - 1];
    uint32_t chars = chars_in(s, from, to), again = intern_again(t, s->key[i]);
    c->again += again;
    c->again_chars += chars & (0u - again);
    c->chars += chars;
    c->shorter += chars <= 30;
    c->shortest += chars < 30;
    /* the last eight bytes of the line's words; 64 bytes before the text are readable */
    uint64_t last = leat__load_u64(z - 8);
    uint32_t long3 = z - a >= 3;
    uint32_t dots = long3 & (uint32_t)(((last >> 40) == 0x2e2e2e) | ((last >> 40) == 0xa680e2));
    uint32_t is = line_end[z[-1]], n = w1 - w0;
    c->dots += dots;
    c->marks += is & 1;
    if (RARE(s->text + to != z)) is = (is & ~4u) | (line_end[s->text[to - 1]] & 4u);
    c->terminal += is >> 2 & 1;
    if (RARE(s->text[to - 1] >= 0x80)) {
        const uint8_t *q = s->text + to - 1;
        uint32_t len;
        while ((*q & 0xc0) == 0x80) q--;
        c->terminal += (leat__unicode_of(leat__utf8_decode(q, &len)) & LEAT__UNI_TERMINAL) != 0;
    }
    c->bullets += *a == '-';
    if (RARE(*a == 0xe2)) {
        uint32_t len;
        c->nemo_bullets += (leat__unicode_of(leat__utf8_decode(a, &len)) & LEAT__UNI_BULLET) != 0;
        c->bullets += a[1] == 0x80 && a[2] == 0xa2;
    }
    if (RARE((is & 8) | ((last >> 48) == 0x2e2e)) && !dots) c->nemo_dots += (uint32_t)nemo_ellipsis(s, a, z);
    /* a bracket in the last three bytes: possibly a citation */
    uint64_t b = (last >> 40) ^ 0x5d5d5d;
    c->citation |= ((b - 0x010101) & ~b & 0x808080) != 0;
    uint32_t ends = sentences + (sentences == 0);
    uint32_t kept = (is & 1) & (dots ^ 1) & (n >= 3), paper = (is >> 1 & 1) & (dots ^ 1) & (n >= 5);
    c->c4 += kept;
    c->c4_words += n & (0u - kept);
    c->c4_sentences += ends & (0u - kept);
    c->paper += paper;
    c->paper_sentences += ends & (0u - paper);
}

/* Counts the lines, and leaves their hashes in s->key. */
static NOINLINE void line_pass(leat__scorer *s)
{
    leat__counts *k = &s->counts;
    uint32_t len = k->bytes, n = 0, from = 0, w0 = 0, *line = s->u1;
    /* Gopher's parts between line feeds: empty ones at the start and end count */
    uint32_t edges = (len > 0 && s->text[0] == '\n') + (len > 0 && s->text[len - 1] == '\n');
    uint32_t blank = 0, blank_again = 0, blank_chars = 0;
    interning t = intern_begin(s, s->newline_count + 2);
    s->newline[s->newline_count] = len;
    s->newline_words[s->newline_count] = s->word_count;
    s->newline_sentences[s->newline_count] = k->sentences;
    for (uint32_t i = 0; i <= s->newline_count; i++) {
        uint32_t to = s->newline[i], w1 = s->newline_words[i];
        s->key[i] = leat__hash_run(s->text + from, to - from, 0);
        line[n] = i;
        n += w1 > w0;
        if (RARE((w1 == w0) & (to > from))) {
            uint32_t again = intern_again(&t, s->key[i]);
            blank++;
            blank_again += again;
            if (again) blank_chars += chars_in(s, from, to);
        }
        from = to + 1;
        w0 = w1;
    }
    line_counts c = {0};
    for (uint32_t i = 0; i < n; i++) plain_line(s, &c, &t, line[i]);
    intern_end(s, &t);
    if (len == 0) edges = 1;                           /* an empty text has one empty part */
    if (len > 0 && s->newline_count == len) edges = 2; /* only line feeds: two empty parts */
    k->lines = n;
    k->line_chars = c.chars;
    k->unique_lines = n - c.again;
    k->unique_line_chars = c.chars - c.again_chars;
    k->dup_line_chars = c.again_chars;
    k->short_lines = c.shorter;
    k->shorter_lines = c.shortest;
    k->rep_lines = edges + blank + n;
    k->rep_dup_lines = (edges == 2) + blank_again + c.again;
    k->rep_dup_line_chars = blank_chars + c.again_chars;
    k->open_lines = n - c.marks;
    k->terminal_lines = c.terminal;
    k->nemo_bullet_lines = c.nemo_bullets;
    k->nemo_ellipsis_lines = c.dots + c.nemo_dots;
    k->bullet_lines = c.bullets;
    k->ellipsis_lines = c.dots;
    k->split_lines = s->newline_count + (len > 0 && s->text[len - 1] != '\n');
    k->c4_lines = c.c4;
    k->c4_words = c.c4_words;
    k->c4_sentences = c.c4_sentences;
    k->c4_paper_lines = c.paper;
    k->c4_paper_sentences = c.paper_sentences;
    if (s->rare_breaks || s->hit_count > 0 || k->curly > 0 || c.citation || k->longest_word > 1000)
        careful_lines(s);
}

typedef struct paragraph_counts {
    uint32_t n, again, again_chars, chars;
} paragraph_counts;

INLINE void paragraph(const leat__scorer *s, paragraph_counts *c, interning *t, uint32_t from, uint32_t to,
                      uint64_t hash)
{
    uint32_t chars = chars_in(s, from, to), again = intern_again(t, hash);
    c->n++;
    c->again += again;
    c->again_chars += chars & (0u - again);
    c->chars += chars;
}

/* Counts the parts of re.split("\n{2,}", text.strip()). */
static void gopher_paragraphs(leat__scorer *s, paragraph_counts *c)
{
    const uint32_t *nl = s->newline;
    if (s->word_count == 0) {
        c->n = 1;
        return;
    }
    interning t = intern_begin(s, s->newline_count + 2);
    uint32_t from = s->bounds[0], end = s->bounds[2 * s->word_count - 1];
    for (uint32_t i = 0; i < s->newline_count && nl[i] < end;) {
        uint32_t j = i + 1;
        while (j < s->newline_count && nl[j] == nl[j - 1] + 1) j++;
        if (nl[i] >= from && j - i >= 2) {
            paragraph(s, c, &t, from, nl[i], leat__hash_run(s->text + from, nl[i] - from, 0));
            from = nl[j - 1] + 1;
        }
        i = j;
    }
    paragraph(s, c, &t, from, end, leat__hash_run(s->text + from, end - from, 0));
    intern_end(s, &t);
}

static NOINLINE void paragraph_pass(leat__scorer *s)
{
    leat__counts *k = &s->counts;
    const uint32_t *nl = s->newline;
    uint32_t len = k->bytes, from = 0, next_hit = 0, boilerplate = 0, triple = 0;
    uint64_t hash = LEAT__HW1; /* of the paragraph's lines */
    paragraph_counts c = {0};
    interning t = intern_begin(s, s->newline_count + 2);
    for (uint32_t i = 0; i <= s->newline_count; i++) { /* text.split("\n\n") */
        uint32_t last = i == s->newline_count, end = len, kinds = 0;
        hash = leat__fold(hash ^ LEAT__HW0, s->key[i] ^ LEAT__HW2);
        if (!last) {
            if (i + 1 >= s->newline_count || nl[i + 1] != nl[i] + 1) continue;
            end = nl[i];
            triple |= i + 2 < s->newline_count && nl[i + 2] == nl[i] + 2;
            i++;
        }
        paragraph(s, &c, &t, from, end, hash);
        hash = LEAT__HW1;
        while (next_hit < s->hit_count && s->hit[next_hit] < end) kinds |= s->hit_kind[next_hit++];
        boilerplate += (kinds & (HIT_POLICY | HIT_NEMO_POLICY)) != 0;
        k->lorem_ipsum |= (kinds & HIT_LOREM) != 0;
        from = end + 2;
        if (last) break;
    }
    intern_end(s, &t);
    k->paragraphs = c.n;
    k->unique_paragraphs = c.n - c.again;
    k->unique_paragraph_chars = c.chars - c.again_chars;
    k->paragraph_chars = c.chars;
    k->boilerplate_paragraphs = k->lorem_ipsum ? c.n : boilerplate;
    int stripped = s->word_count > 0 && s->bounds[0] == 0 && s->bounds[2 * s->word_count - 1] == len;
    if (!stripped || triple) {
        c = (paragraph_counts){0};
        gopher_paragraphs(s, &c);
    }
    k->rep_paragraphs = c.n;
    k->rep_dup_paragraphs = c.again;
    k->rep_dup_paragraph_chars = c.again_chars;
}
