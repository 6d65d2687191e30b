/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a scorer. All arrays are in one block, each shifted by a multiple of 704 bytes: arrays at
 * the same offset of a page compete for cache sets, which cost 15 to 20 % of the speed. Small texts get
 * room for the worst case; for large texts the arrays are sized by the content.
 */
#include "text/score.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "text/text_dsp.h"

#define SMALL (256u << 10) /* texts up to this size need no measuring */
#define BEFORE 64          /* readable bytes before the text */
#define SLACK 64           /* entries past the end that put_bits() may write */

static const struct {
    const char *name, *help;
} names[] = {
#define LEAT_TEXT_NAME(name, help) {#name, help},
    LEAT_TEXT_COUNTS(LEAT_TEXT_NAME)
#undef LEAT_TEXT_NAME
};

const char *leat__count_name(unsigned index)
{
    return index < LEAT__COUNT_TOTAL ? names[index].name : "";
}

const char *leat__count_help(unsigned index)
{
    return index < LEAT__COUNT_TOTAL ? names[index].help : "";
}

/* Allocates parts of a block, or sums their sizes when there is no block. */
typedef struct carver {
    uint8_t *block;
    uint64_t used;
    uint32_t parts;
} carver;

static void *carve(carver *c, uint64_t count, uint64_t size)
{
    uint64_t at = c->used + c->parts++ * 704 % 8192;
    at = (at + 63) & ~UINT64_C(63);
    c->used = at + count * size + 64;
    return c->block ? c->block + at : NULL;
}

/* Slots of the interning table: four for each word or line. */
static uint64_t slots_for(const leat__text_size *size)
{
    uint64_t slots = 64;
    while (slots < 4 * (LEAT_MAX(size->words, size->newlines) + SLACK)) slots *= 2;
    return slots;
}

static uint64_t lay_out(leat__scorer *s, uint8_t *block, uint64_t bytes, const leat__text_size *size)
{
    carver c = {.block = block};
    uint64_t words = size->words + SLACK, lines = size->newlines + SLACK, found = size->candidates + SLACK;
    uint64_t most = LEAT_MAX(words, lines), filter = 512;
    while (filter < 16 * words) filter *= 2;
    s->bounds = carve(&c, 2 * words, 4);
    s->word_hash = carve(&c, words, 8);
    s->before = carve(&c, words, 4);
    s->newline = carve(&c, lines, 4);
    s->newline_words = carve(&c, lines, 4);
    s->newline_sentences = carve(&c, lines, 4);
    s->candidate = carve(&c, found, 4);
    s->continuation = carve(&c, bytes / 64 + 4, 8);
    s->continuations = carve(&c, bytes / 64 + 4, 4);
    s->u1 = carve(&c, most, 4);
    s->u2 = carve(&c, most, 4);
    s->u3 = carve(&c, most, 4);
    s->u4 = carve(&c, most, 4);
    s->u5 = carve(&c, most, 4);
    s->key = carve(&c, most, 8);
    s->seen = carve(&c, most, 1);
    s->filter = carve(&c, filter, 1);
    s->hit = carve(&c, found, 4);
    s->hit_kind = carve(&c, found, 1);
    s->intern.key = carve(&c, most, 8);
    return c.used;
}

static leat__text_size worst_case(uint64_t bytes)
{
    return (leat__text_size){.words = bytes / 2 + 1, .newlines = bytes + 1, .candidates = bytes + 1};
}

uint64_t leat__scorer_need(uint64_t bytes)
{
    leat__scorer s;
    leat__text_size size = worst_case(LEAT_MAX(bytes, SMALL));
    return lay_out(&s, NULL, LEAT_MAX(bytes, SMALL), &size) + 4 * slots_for(&size) + LEAT_MAX(bytes, SMALL) +
           BEFORE + 2 * LEAT__TEXT_PAD;
}

/* Makes the slots of the interning table. Slots of earlier texts are recognised by their value. New ones are
 * not written, so those of small texts take no memory until they are used. */
static int make_slots(leat__scorer *s, uint64_t slots, leat_error *err)
{
    leat__intern *t = &s->intern;
    if (slots <= t->slots) return 0;
    leat__free(t->slot);
    t->slots = 0;
    t->slot = leat__zalloc_array(LEAT__MEM_CURATE, slots, 4);
    if (!t->slot) return leat__fail_nomem(err, 4 * slots, "the counts of a document");
    t->slots = (uint32_t)slots;
    t->base = 1;
    return 0;
}

static int make_slab(leat__scorer *s, uint64_t bytes, const leat__text_size *size, leat_error *err)
{
    uint64_t need = lay_out(s, NULL, bytes, size);
    if (need > s->slab_bytes) {
        leat__free(s->slab);
        s->slab_bytes = 0;
        s->slab = leat__alloc_aligned(LEAT__MEM_CURATE, need, 64);
        if (!s->slab) return leat__fail_nomem(err, need, "the counts of a document");
        s->slab_bytes = need;
    }
    lay_out(s, s->slab, bytes, size);
    return make_slots(s, slots_for(size), err);
}

int leat__scorer_init(leat__scorer *s, leat_error *err)
{
    memset(s, 0, sizeof *s);
    return leat__scorer_reserve(s, SMALL, err);
}

void leat__scorer_reset(leat__scorer *s)
{
    leat__free(s->slab);
    leat__free(s->text_slab);
    leat__free(s->intern.slot);
    memset(s, 0, sizeof *s);
}

int leat__scorer_reserve(leat__scorer *s, size_t bytes, leat_error *err)
{
    if (bytes > LEAT__TEXT_MAX)
        return leat__fail(err, LEAT_ELIMIT, "a text of %s is larger than %s", leat__as_size(bytes).text,
                          leat__as_size(LEAT__TEXT_MAX).text);
    if (bytes <= s->text_capacity && s->text) return 0;
    uint64_t need = bytes + BEFORE + 2 * LEAT__TEXT_PAD;
    leat__free(s->text_slab);
    s->text_capacity = 0;
    s->text = NULL;
    s->text_slab = leat__alloc_aligned(LEAT__MEM_CURATE, need, 64);
    if (!s->text_slab) return leat__fail_nomem(err, need, "a document");
    s->text_slab_bytes = need;
    s->text = (uint8_t *)s->text_slab + BEFORE;
    s->text_capacity = bytes;
    memset(s->text_slab, ' ', BEFORE);
    return 0;
}

int leat__scorer_run(leat__scorer *s, size_t len, leat_error *err)
{
    const leat__text_dsp *dsp = leat__text_dsp_now();
    if (len <= SMALL) {
        leat__text_size size = worst_case(SMALL);
        if (!s->small) LEAT_TRY(make_slab(s, SMALL, &size, err));
        s->small = true;
    } else {
        leat__text_size size;
        memset(s->text + len, ' ', LEAT__TEXT_PAD);
        dsp->measure(s->text, len, &size);
        s->small = false;
        LEAT_TRY(make_slab(s, len, &size, err));
    }
    dsp->score(s, len);
    return 0;
}
