/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of scores, rules and profiles, and the evaluation of documents. To add a score or a profile,
 * add a row.
 */
#include "text/rule.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

#define C(name) LEAT__COUNT_##name
enum { ITSELF = -1, NOT_NEWLINES = -2 };
#define REST LEAT__SCORE_REST
#define EMPTY1 LEAT__SCORE_ONE_IF_EMPTY

/* One row per score; expanded to an enumeration and a table. */
#define SCORES(X)                                                                                            \
    X(words, "words between white space", words, ITSELF, 0, 0)                                               \
    X(plain_words, "words that are not all symbols", plain_words, ITSELF, 0, 0)                              \
    X(mean_word_length, "characters per word", word_chars, C(words), 0, 0)                                   \
    X(mean_plain_word_length, "characters per word that is not all symbols", plain_word_chars,               \
      C(plain_words), 0, 0)                                                                                  \
    X(longest_word, "characters of the longest word", longest_word, ITSELF, 0, 0)                            \
    X(hash_ratio, "number signs per word", hashes, C(words), 0, 0)                                           \
    X(ellipsis_ratio, "ellipses per word", ellipses, C(words), 0, 0)                                         \
    X(bullet_line_ratio, "lines that begin with a bullet or -", bullet_lines, C(split_lines), 0, 0)          \
    X(ellipsis_line_ratio, "lines that end in an ellipsis", ellipsis_lines, C(split_lines), 0, 0)            \
    X(alpha_word_ratio, "words with a letter", alpha_words, C(words), 0, 0)                                  \
    X(stop_words_distinct, "different stop words", stop_words_distinct, ITSELF, 0, 0)                        \
    X(stop_words, "occurrences of stop words", stop_words, ITSELF, 0, 0)                                     \
    X(dup_line_ratio, "repeated lines", rep_dup_lines, C(rep_lines), 0, 0)                                   \
    X(dup_line_char_ratio, "characters in repeated lines", rep_dup_line_chars, C(chars), 0, 0)               \
    X(dup_paragraph_ratio, "repeated paragraphs", rep_dup_paragraphs, C(rep_paragraphs), 0, 0)               \
    X(dup_paragraph_char_ratio, "characters in repeated paragraphs", rep_dup_paragraph_chars, C(chars), 0,   \
      0)                                                                                                     \
    X(top_2gram_ratio, "characters in the top 2-gram", top_2gram_chars, C(chars), 0, 0)                      \
    X(top_3gram_ratio, "characters in the top 3-gram", top_3gram_chars, C(chars), 0, 0)                      \
    X(top_4gram_ratio, "characters in the top 4-gram", top_4gram_chars, C(chars), 0, 0)                      \
    X(dup_5gram_ratio, "characters in repeated 5-grams", dup_5gram_chars, C(chars), 0, 0)                    \
    X(dup_6gram_ratio, "characters in repeated 6-grams", dup_6gram_chars, C(chars), 0, 0)                    \
    X(dup_7gram_ratio, "characters in repeated 7-grams", dup_7gram_chars, C(chars), 0, 0)                    \
    X(dup_8gram_ratio, "characters in repeated 8-grams", dup_8gram_chars, C(chars), 0, 0)                    \
    X(dup_9gram_ratio, "characters in repeated 9-grams", dup_9gram_chars, C(chars), 0, 0)                    \
    X(dup_10gram_ratio, "characters in repeated 10-grams", dup_10gram_chars, C(chars), 0, 0)                 \
    X(c4_sentences, "sentences on lines that C4 keeps (3 words)", c4_sentences, ITSELF, 0, 0)                \
    X(c4_drop, "lorem ipsum (1) or a brace (2) on such a line", c4_drop, ITSELF, 0, 0)                       \
    X(c4_paper_sentences, "sentences on lines that C4 keeps (5 words)", c4_paper_sentences, ITSELF, 0, 0)    \
    X(lorem_ipsum, "lorem ipsum occurs", lorem_ipsum, ITSELF, 0, 0)                                          \
    X(curly, "opening braces", curly, ITSELF, 0, 0)                                                          \
    X(lines, "lines that are not blank", lines, ITSELF, 0, 0)                                                \
    X(terminal_line_ratio, "lines that end in terminal punctuation", terminal_lines, C(lines), 0, 0)         \
    X(short_line_ratio, "lines of 30 characters or fewer", short_lines, C(lines), 0, 0)                      \
    X(shorter_line_ratio, "lines of fewer than 30 characters", shorter_lines, C(lines), 0, 0)                \
    X(dup_line_chars_ratio, "characters in repeated lines, line feeds not counted", dup_line_chars,          \
      NOT_NEWLINES, 0, 0)                                                                                    \
    X(newline_ratio, "line feeds per word", newlines, C(words), 0, 0)                                        \
    X(non_alnum_ratio, "not ASCII letters, digits, line feeds or ?!,.", nemo_alnum, C(chars), REST | EMPTY1, \
      0)                                                                                                     \
    X(symbol_word_ratio, "ellipses and words of # (NeMo)", symbol_words, C(words), EMPTY1, 0)                \
    X(digit_ratio, "digits 0 to 9", ascii_digits, C(chars), EMPTY1, 0)                                       \
    X(url_ratio, "characters in URLs", url_chars, C(chars), EMPTY1, 0)                                       \
    X(nemo_bullet_ratio, "lines that begin with a bullet (NeMo)", nemo_bullet_lines, C(lines), EMPTY1, 0)    \
    X(space_ratio, "white space (NeMo)", nemo_spaces, C(chars), EMPTY1, 0)                                   \
    X(bracket_ratio, "brackets", brackets, C(chars), EMPTY1, 0)                                              \
    X(boilerplate_ratio, "paragraphs with policy phrases", boilerplate_paragraphs, C(paragraphs), EMPTY1, 0) \
    X(open_line_ratio, "lines without . ? ! \" ' at the end", open_lines, C(lines), EMPTY1, 0)               \
    X(nemo_ellipsis_ratio, "lines that end in an ellipsis (NeMo)", nemo_ellipsis_lines, C(lines), EMPTY1, 0) \
    X(unique_line_ratio, "different lines", unique_lines, C(lines), EMPTY1, 0)                               \
    X(unique_paragraph_ratio, "different paragraphs", unique_paragraphs, C(paragraphs), EMPTY1, 0)           \
    X(unique_line_char_ratio, "characters in different lines", unique_line_chars, C(line_chars), EMPTY1, 0)  \
    X(unique_paragraph_char_ratio, "characters in different paragraphs", unique_paragraph_chars,             \
      C(paragraph_chars), EMPTY1, 0)                                                                         \
    X(nemo_dup_5gram_ratio, "repeated 5-grams (NeMo)", nemo_dup_5gram_chars, C(chars), EMPTY1, 5)            \
    X(nemo_dup_6gram_ratio, "repeated 6-grams (NeMo)", nemo_dup_6gram_chars, C(chars), EMPTY1, 6)            \
    X(nemo_dup_7gram_ratio, "repeated 7-grams (NeMo)", nemo_dup_7gram_chars, C(chars), EMPTY1, 7)            \
    X(nemo_dup_8gram_ratio, "repeated 8-grams (NeMo)", nemo_dup_8gram_chars, C(chars), EMPTY1, 8)            \
    X(nemo_dup_9gram_ratio, "repeated 9-grams (NeMo)", nemo_dup_9gram_chars, C(chars), EMPTY1, 9)            \
    X(nemo_dup_10gram_ratio, "repeated 10-grams (NeMo)", nemo_dup_10gram_chars, C(chars), EMPTY1, 10)        \
    X(chars, "code points", chars, ITSELF, 0, 0)                                                             \
    X(bytes, "bytes of UTF-8", bytes, ITSELF, 0, 0)                                                          \
    X(letter_ratio, "letters of any script", letters, C(chars), 0, 0)                                        \
    X(unicode_digit_ratio, "digits of any script", digits, C(chars), 0, 0)                                   \
    X(symbol_ratio, "datatrove's set of punctuation, control characters, ends of sentences", symbols,        \
      C(chars), 0, 0)                                                                                        \
    X(sentences, "sentences", sentences, ITSELF, 0, 0)                                                       \
    X(urls, "URLs", urls, ITSELF, 0, 0)

enum {
#define ROW(name, help, over, under, flags, words) S_##name,
    SCORES(ROW)
#undef ROW
        S_TOTAL,
    S_lang_score = S_TOTAL,
    S_lang_match,
    S_ALL
};

const leat__score leat__scores[] = {
#define ROW(name, help, over, under, flags, words) {#name, help, C(over), under, flags, words},
    SCORES(ROW)
#undef ROW
        {"lang_score", "probability of the language (with a model)", 0, ITSELF, 0, 0},
    {"lang_match", "1 when the language is a wanted one (with a model)", 0, ITSELF, 0, 0},
};
const unsigned leat__score_total = S_TOTAL;
const unsigned leat__score_lang = S_lang_score, leat__score_lang_match = S_lang_match;

int leat__score_find(const char *name, size_t len)
{
    for (unsigned i = 0; i < S_ALL; i++)
        if (strlen(leat__scores[i].name) == len && memcmp(leat__scores[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

double leat__score_value(unsigned score, const leat__counts *c)
{
    const leat__score *s = &leat__scores[score];
    const uint32_t *count = (const uint32_t *)c;
    if (score == S_lang_score) return (double)c->lang_score;
    if (score == S_lang_match) return c->lang_match;
    if (c->words < s->words) return 1;
    if (s->under == ITSELF) return count[s->over];
    double under = s->under == NOT_NEWLINES ? (double)c->chars - c->newlines : count[s->under];
    if (under <= 0) return s->flags & EMPTY1 ? 1 : 0;
    double ratio = count[s->over] / under;
    return s->flags & REST ? 1 - ratio : ratio;
}

/* ---- profiles ---- */

typedef struct profile_rule {
    uint16_t score;
    uint8_t bound;
    double threshold;
} profile_rule;

#define MIN LEAT__BOUND_MIN
#define MAX LEAT__BOUND_MAX
#define ABOVE LEAT__BOUND_ABOVE
#define BELOW LEAT__BOUND_BELOW

#define GOPHER_REPETITION                                                                                    \
    {S_dup_paragraph_ratio, MAX, .30}, {S_dup_paragraph_char_ratio, MAX, .20}, {S_dup_line_ratio, MAX, .30}, \
        {S_dup_line_char_ratio, MAX, .20}, {S_top_2gram_ratio, MAX, .20}, {S_top_3gram_ratio, MAX, .18},     \
        {S_top_4gram_ratio, MAX, .16}, {S_dup_5gram_ratio, MAX, .15}, {S_dup_6gram_ratio, MAX, .14},         \
        {S_dup_7gram_ratio, MAX, .13}, {S_dup_8gram_ratio, MAX, .12}, {S_dup_9gram_ratio, MAX, .11},         \
    {                                                                                                        \
        S_dup_10gram_ratio, MAX, .10                                                                         \
    }

static const profile_rule gopher_paper[] = {
    {S_words, MIN, 50},
    {S_words, MAX, 100000},
    {S_mean_word_length, MIN, 3},
    {S_mean_word_length, MAX, 10},
    {S_hash_ratio, MAX, .1},
    {S_ellipsis_ratio, MAX, .1},
    {S_bullet_line_ratio, MAX, .9},
    {S_ellipsis_line_ratio, MAX, .3},
    {S_alpha_word_ratio, MIN, .8},
    {S_stop_words_distinct, MIN, 2},
    GOPHER_REPETITION,
};
static const profile_rule gopher_datatrove[] = {
    {S_plain_words, MIN, 50},
    {S_plain_words, MAX, 100000},
    {S_mean_plain_word_length, MIN, 3},
    {S_mean_plain_word_length, MAX, 10},
    {S_hash_ratio, MAX, .1},
    {S_ellipsis_ratio, MAX, .1},
    {S_bullet_line_ratio, MAX, .9},
    {S_ellipsis_line_ratio, MAX, .3},
    {S_alpha_word_ratio, MIN, .8},
    {S_stop_words_distinct, MIN, 2},
    GOPHER_REPETITION,
};
static const profile_rule c4_paper[] = {
    {S_c4_paper_sentences, MIN, 3},
    {S_lorem_ipsum, MAX, 0},
    {S_curly, MAX, 0},
};
static const profile_rule c4_datatrove[] = {
    {S_c4_drop, MAX, 0},
    {S_c4_sentences, MIN, 5},
};
static const profile_rule fineweb_paper[] = {
    {S_terminal_line_ratio, ABOVE, .12},
    {S_dup_line_chars_ratio, BELOW, .1},
    {S_shorter_line_ratio, BELOW, .67},
};
static const profile_rule fineweb_datatrove[] = {
    {S_lines, MIN, 1},
    {S_terminal_line_ratio, MIN, .12},
    {S_short_line_ratio, MAX, .67},
    {S_dup_line_chars_ratio, MAX, .01},
    {S_newline_ratio, MAX, .3},
};
static const profile_rule nemo_english[] = {
    {S_non_alnum_ratio, MAX, .25},
    {S_symbol_word_ratio, MAX, .1},
    {S_digit_ratio, MAX, .15},
    {S_url_ratio, MAX, .2},
    {S_nemo_bullet_ratio, MAX, .9},
    {S_space_ratio, MAX, .25},
    {S_bracket_ratio, MAX, .1},
    {S_longest_word, MAX, 1000},
    {S_words, MIN, 50},
    {S_words, MAX, 100000},
    {S_boilerplate_ratio, MAX, .4},
    {S_mean_word_length, MIN, 3},
    {S_mean_word_length, MAX, 10},
    {S_open_line_ratio, MAX, .85},
    {S_nemo_ellipsis_ratio, MAX, .3},
    {S_stop_words, MIN, 2},
    {S_alpha_word_ratio, MIN, .8},
    {S_unique_line_ratio, MIN, .7},
    {S_unique_paragraph_ratio, MIN, .7},
    {S_unique_line_char_ratio, MIN, .8},
    {S_unique_paragraph_char_ratio, MIN, .8},
    {S_top_2gram_ratio, MAX, .20},
    {S_top_3gram_ratio, MAX, .18},
    {S_top_4gram_ratio, MAX, .16},
    {S_nemo_dup_5gram_ratio, MAX, .15},
    {S_nemo_dup_6gram_ratio, MAX, .14},
    {S_nemo_dup_7gram_ratio, MAX, .13},
    {S_nemo_dup_8gram_ratio, MAX, .12},
    {S_nemo_dup_9gram_ratio, MAX, .11},
    {S_nemo_dup_10gram_ratio, MAX, .10},
};

static const struct {
    leat__profile info;
    const profile_rule *rule;
    unsigned count;
} profiles[] = {
#define ROW(name, rules, source)                                                                             \
    {                                                                                                        \
        {name, source}, rules, LEAT_COUNT(rules)                                                             \
    }
    ROW("gopher@paper", gopher_paper, "Rae et al. 2021, appendix A.1: quality and repetition"),
    ROW("gopher@datatrove", gopher_datatrove,
        "datatrove GopherQualityFilter and GopherRepetitionFilter, defaults"),
    ROW("c4@paper", c4_paper, "Raffel et al. 2020, section 2.2: 5 words a line, 3 sentences a page"),
    ROW("c4@datatrove", c4_datatrove,
        "datatrove C4QualityFilter, defaults: 3 words a line, 5 sentences a page"),
    ROW("fineweb@paper", fineweb_paper, "Penedo et al. 2024, section 3.6"),
    ROW("fineweb@datatrove", fineweb_datatrove, "datatrove FineWebQualityFilter, defaults"),
    ROW("nemo-english", nemo_english, "NeMo Curator, heuristic filters for English, defaults"),
#undef ROW
};

bool leat__profile_at(unsigned i, leat__profile *profile)
{
    if (i >= LEAT_COUNT(profiles)) return false;
    *profile = profiles[i].info;
    return true;
}

static const char *const bound_words[] = {"min", "max", "above", "below"};

const char *leat__bound_name(unsigned bound)
{
    return bound_words[bound];
}

char *leat__rule_name(const leat__rule *r, char *out, size_t size)
{
    snprintf(out, size, "%s.%s", leat__scores[r->score].name, bound_words[r->bound]);
    return out;
}

/* ---- rule sets ---- */

static int add_rule(leat__rule_set *set, leat__rule rule, leat_error *err)
{
    if (set->count == LEAT__RULES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %d rules", LEAT__RULES_MAX);
    set->rule[set->count++] = rule;
    return 0;
}

static int add_profile(leat__rule_set *set, const char *name, leat_error *err)
{
    const char *known[LEAT_COUNT(profiles)];
    for (size_t i = 0; i < LEAT_COUNT(profiles); i++) {
        known[i] = profiles[i].info.name;
        if (!leat__str_eq(known[i], name)) continue;
        for (unsigned k = 0; k < set->count; k++)
            if (set->rule[k].profile == known[i])
                return leat__fail(err, LEAT_EINVAL, "`profile`: \"%s\" appears twice", name);
        for (unsigned k = 0; k < profiles[i].count; k++) {
            const profile_rule *p = &profiles[i].rule[k];
            leat__rule r = {p->score, p->bound, true, p->threshold, known[i]};
            LEAT_TRY(add_rule(set, r, err));
        }
        return 0;
    }
    const char *near = leat__str_nearest(name, known, LEAT_COUNT(known));
    return leat__fail(err, LEAT_EINVAL, "there is no profile \"%s\"%s%s%s", name,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* Copies the next part of a comma-separated list, without the blanks around it; false at the end. */
static bool next_part(const char **list, char *out, size_t size)
{
    if (**list == 0) return false;
    *list += strspn(*list, " ");
    size_t n = strcspn(*list, ","), len = n;
    while (len > 0 && (*list)[len - 1] == ' ') len--;
    snprintf(out, size, "%.*s", (int)LEAT_MIN(len, size - 1), *list);
    *list += n + ((*list)[n] == ',');
    return true;
}

int leat__rule_set_profile(leat__rule_set *set, const char *names, leat_error *err)
{
    char name[64];
    while (next_part(&names, name, sizeof name)) LEAT_TRY(add_profile(set, name, err));
    return 0;
}

/* Applies one change such as "words.min=20". */
static int change(leat__rule_set *set, const char *text, leat_error *err)
{
    const char *dot = strchr(text, '.'), *eq = dot ? strchr(dot, '=') : NULL;
    if (!eq) return leat__fail(err, LEAT_EINVAL, "\"%s\" is not a change of a rule (words.min=20)", text);
    int score = leat__score_find(text, (size_t)(dot - text)), bound = -1;
    if (score < 0) return leat__fail(err, LEAT_EINVAL, "\"%s\": there is no score of this name", text);
    size_t len = (size_t)(eq - dot - 1);
    for (int i = 0; i < 4; i++)
        if (strlen(bound_words[i]) == len && memcmp(bound_words[i], dot + 1, len) == 0) bound = i;
    if (bound < 0) return leat__fail(err, LEAT_EINVAL, "\"%s\": a bound is min, max, above or below", text);
    bool off = leat__str_eq(eq + 1, "off"), found = false;
    double value = 0;
    if (!off && !leat__str_to_double(eq + 1, &value))
        return leat__fail(err, LEAT_EINVAL, "\"%s\": the threshold is not a number or \"off\"", text);
    if (!off) return leat__rule_set_add(set, (unsigned)score, (leat__bound)bound, value, err);
    for (unsigned i = 0; i < set->count; i++) {
        leat__rule *r = &set->rule[i];
        if (r->score != score || r->bound != bound) continue;
        r->on = false;
        found = true;
    }
    return found ? 0 : leat__fail(err, LEAT_EINVAL, "\"%s\": the profile has no such rule", text);
}

int leat__rule_set_add(leat__rule_set *set, unsigned score, leat__bound bound, double threshold,
                       leat_error *err)
{
    bool found = false;
    for (unsigned i = 0; i < set->count; i++) {
        leat__rule *r = &set->rule[i];
        if (r->score != score || r->bound != bound) continue;
        r->on = true;
        r->threshold = threshold;
        found = true;
    }
    leat__rule rule = {(uint16_t)score, (uint8_t)bound, true, threshold, ""};
    return found ? 0 : add_rule(set, rule, err);
}

bool leat__rule_set_lang(const leat__rule_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->rule[i].score >= S_TOTAL) return true;
    return false;
}

int leat__rule_set_change(leat__rule_set *set, const char *changes, leat_error *err)
{
    char text[128];
    while (next_part(&changes, text, sizeof text)) {
        LEAT_TRY(change(set, text, err));
        text[strcspn(text, "=")] = 0;
        if (leat__rule_changes_have(changes, text))
            return leat__fail(err, LEAT_EINVAL, "`set`: \"%s\" appears twice", text);
    }
    return 0;
}

bool leat__rule_changes_have(const char *changes, const char *rule)
{
    char text[128];
    size_t n = strlen(rule);
    while (next_part(&changes, text, sizeof text))
        if (leat__str_starts(text, rule) && text[n] == '=') return true;
    return false;
}

int leat__rule_set_judge(const leat__rule_set *set, const leat__counts *c, uint8_t *failed)
{
    int first = -1;
    for (unsigned i = 0; i < set->count; i++) {
        const leat__rule *r = &set->rule[i];
        bool bad = r->on && !leat__rule_keeps(r, leat__score_value(r->score, c));
        if (failed) failed[i] = bad;
        if (bad && first < 0) first = (int)i;
        if (first >= 0 && !failed) break;
    }
    return first;
}
