/* SPDX-License-Identifier: Apache-2.0
 *
 * See where.h: a recursive descent parser that fills an array of nodes, and an evaluator. Depth
 * and number of nodes are limited, so hostile text cannot exhaust the stack or memory.
 */
#include "ingest/where.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define NODES_MAX 65536u
#define DEPTH_MAX 64u
#define TEXT_MAX (1u << 20)

typedef enum kind { OR, AND, NOT, COMPARE, IN, FIELD, KEY, INT, FLOAT, TEXT } kind;
typedef enum compare { EQ, NE, LT, LE, GT, GE } compare;

typedef struct node {
    kind kind;
    compare op;           /* COMPARE */
    bool negated;         /* IN: "not in" */
    bool range;           /* IN: a range; right is low, then high */
    uint32_t left, right; /* OR, AND, COMPARE; NOT, IN: left. IN: right is the first of
                             `count` choices */
    uint32_t count;
    uint32_t field; /* FIELD */
    bool is_float;  /* FIELD */
    size_t at;      /* column of the node in the text, from 0 */
    int64_t i;
    double f;
    const char *text; /* TEXT: in leat__where.text */
    size_t size;
} node;

struct leat__where {
    char *text;
    node *nodes;
    uint32_t count, root;
};

typedef struct parser {
    leat__where *w;
    const leat__where_names *names;
    size_t at;
    uint32_t depth;
    leat_error *err;
} parser;

/* ---- tokens
 * --------------------------------------------------------------------------------- */

static int fail_at(const parser *p, int code, size_t at, const char *what)
{
    return leat__fail(p->err, code, "`where`: column %zu: %s in \"%.200s\"", at + 1, what, p->w->text);
}

static int wrong(const parser *p, size_t at, const char *what)
{
    return fail_at(p, LEAT_EINVAL, at, what);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the length of the name that begins here. Two dots are a range. */
static size_t name_size(const char *t)
{
    size_t n = is_letter(t[0]) ? 1 : 0;
    while (n > 0 && (is_letter(t[n]) || is_digit(t[n]) || (t[n] == '.' && is_letter(t[n + 1])))) n++;
    return n;
}

bool leat__where_is_name(const char *text)
{
    const size_t n = name_size(text);
    return n > 0 && text[n] == '\0';
}

static const char *here(parser *p)
{
    const char *t = p->w->text;
    while (t[p->at] == ' ' || t[p->at] == '\t' || t[p->at] == '\n' || t[p->at] == '\r') p->at++;
    return t + p->at;
}

/* Consumes a sign such as "<=" if it comes next. */
static bool take(parser *p, const char *sign)
{
    size_t n = strlen(sign);
    if (strncmp(here(p), sign, n) != 0) return false;
    p->at += n;
    return true;
}

/* Consumes a word such as "and" if it comes next; not when it is the start of a longer word. */
static bool take_word(parser *p, const char *word)
{
    const char *t = here(p);
    size_t n = strlen(word);
    if (strncmp(t, word, n) != 0 || name_size(t) > n) return false;
    p->at += n;
    return true;
}

static int add(parser *p, node n, uint32_t *number)
{
    leat__where *w = p->w;
    if (w->count == NODES_MAX) return wrong(p, n.at, "the condition is too long");
    if ((w->count & (w->count - 1)) == 0) { /* a power of two: full */
        size_t want = w->count == 0 ? 1 : 2 * (size_t)w->count;
        node *grown = leat__realloc(LEAT__MEM_INGEST, w->nodes, want * sizeof *grown);
        if (grown == NULL) return leat__fail_nomem(p->err, want * sizeof *grown, "a condition");
        w->nodes = grown;
    }
    *number = w->count++;
    w->nodes[*number] = n;
    return 0;
}

/* ---- operands
 * ------------------------------------------------------------------------------- */

/* Fails, listing the fields that a condition can use. */
static int unknown_field(const parser *p, size_t at, const char *name, size_t size)
{
    char what[480];
    leat__names list = {0};
    leat__names_add(&list, "key");
    for (uint32_t i = 0; i < p->names->field_count; i++) {
        const leat_field *f = &p->names->fields[i];
        if (f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT) leat__names_add(&list, f->name);
    }
    snprintf(what, sizeof what, "no field '%.*s' (there are %s)", (int)LEAT_MIN(size, (size_t)60), name,
             leat__names_end(&list));
    return fail_at(p, LEAT_ENOFIELD, at, what);
}

static int find_field(const parser *p, const char *name, size_t size, uint32_t *field)
{
    const leat__where_names *names = p->names;
    if (names->find) return names->find(names->cookie, name, size, field, p->err);
    for (uint32_t i = 0; i < names->field_count; i++) {
        if (strlen(names->fields[i].name) != size || memcmp(names->fields[i].name, name, size) != 0) continue;
        *field = i;
        return 0;
    }
    return LEAT_ENOFIELD;
}

static int find_name(parser *p, const char *name, size_t size, node *n)
{
    uint32_t i = 0;
    int rc = find_field(p, name, size, &i);
    if (rc == 0) {
        const leat_field *f = &p->names->fields[i];
        if (f->type != LEAT_FIELD_INT && f->type != LEAT_FIELD_FLOAT)
            return fail_at(p, LEAT_ENOFIELD, n->at, "a field that is not a number");
        n->kind = FIELD;
        n->field = i;
        n->is_float = f->type == LEAT_FIELD_FLOAT;
        return 0;
    }
    if (rc != LEAT_ENOFIELD) return rc;
    if (size == 3 && memcmp(name, "key", 3) == 0) {
        n->kind = KEY;
        return 0;
    }
    return unknown_field(p, n->at, name, size);
}

static int parse_text(parser *p, char quote, node *n)
{
    const char *from = p->w->text + ++p->at, *end = strchr(from, quote);
    if (end == NULL) return wrong(p, n->at, "no closing quote");
    p->at += (size_t)(end - from) + 1;
    if (quote == '`') return find_name(p, from, (size_t)(end - from), n);
    n->kind = TEXT;
    n->text = from;
    n->size = (size_t)(end - from);
    return 0;
}

/* Removes the point and the zeros of "12.00", which is a whole number. Returns false for other numbers. */
static bool cut_zeros(char *number)
{
    char *point = strchr(number, '.');
    if (point == NULL || point == number || !is_digit(point[-1])) return false;
    if (strspn(point + 1, "0") != strlen(point + 1)) return false;
    *point = '\0';
    return true;
}

/* Parses digits with at most one point; two points begin a range. */
static int parse_number(parser *p, node *n)
{
    const char *t = p->w->text + p->at;
    char copy[64];
    size_t k = t[0] == '-' || t[0] == '+' ? 1 : 0;
    bool whole = true;
    for (; k < sizeof copy; k++) {
        char before = k > 0 ? t[k - 1] : 0;
        if (is_digit(t[k])) continue;
        if (t[k] == '.' && t[k + 1] == '.') break;
        if (t[k] != '.' && t[k] != 'e' && t[k] != 'E' &&
            !((t[k] == '-' || t[k] == '+') && (before == 'e' || before == 'E')))
            break;
        whole = false;
    }
    if (k == sizeof copy || is_letter(t[k])) return wrong(p, n->at, "not a number");
    memcpy(copy, t, k);
    copy[k] = '\0';
    p->at += k;
    whole = whole || cut_zeros(copy);
    n->kind = whole ? INT : FLOAT;
    bool fits =
        whole ? leat__str_to_i64(copy[0] == '+' ? copy + 1 : copy, &n->i) : leat__str_to_double(copy, &n->f);
    return fits ? 0 : wrong(p, n->at, "not a number, or out of range");
}

static int parse_operand(parser *p, uint32_t *number)
{
    const char *t = here(p);
    node n = {.at = p->at};
    int rc;
    if (*t == '\'' || *t == '"' || *t == '`') {
        rc = parse_text(p, *t, &n);
    } else if (is_digit(*t) || *t == '-' || *t == '+' || *t == '.') {
        rc = parse_number(p, &n);
    } else if (is_letter(*t)) {
        const size_t size = name_size(t);
        p->at += size;
        rc = find_name(p, t, size, &n);
    } else {
        rc = wrong(p, n.at, *t == '\0' ? "something is missing" : "a name, number or text is expected");
    }
    return rc != 0 ? rc : add(p, n, number);
}

/* ---- comparisons
 * ---------------------------------------------------------------------------- */

static bool is_text(const node *n)
{
    return n->kind == TEXT || n->kind == KEY;
}

/* Fails, listing classes; names the nearest one where there is one. */
static int unknown_class(const parser *p, const node *text, const char *const *classes, uint64_t count)
{
    char what[480], name[61];
    leat__names list = {0};
    snprintf(name, sizeof name, "%.*s", (int)LEAT_MIN(text->size, sizeof name - 1), text->text);
    const char *near = leat__str_nearest(name, classes, (size_t)count);
    for (uint64_t i = 0; i < count; i++) leat__names_add(&list, classes[i]);
    if (near) snprintf(what, sizeof what, "no class of the name '%s'; did you mean '%.200s'?", name, near);
    else
        snprintf(what, sizeof what, "no class of the name '%s' (there are %s)", name, leat__names_end(&list));
    return fail_at(p, LEAT_ENOCLASS, text->at, what);
}

/* Replaces text that is compared with a field by the number of that class name. */
static int class_number(parser *p, const node *side, node *text)
{
    const leat__where_names *names = p->names;
    if (side->kind != FIELD || text->kind != TEXT) return 0;
    const char *const *classes = NULL;
    uint64_t count = 0;
    if (names->classes && !side->is_float)
        LEAT_TRY(names->classes(names->cookie, side->field, &classes, &count, p->err));
    if (count == 0)
        return fail_at(p, LEAT_ENOCLASS, text->at, "text compared with a field without class names");
    for (uint64_t i = 0; i < count; i++) {
        if (strlen(classes[i]) != text->size || memcmp(classes[i], text->text, text->size) != 0) continue;
        text->kind = INT;
        text->i = (int64_t)i;
        return 0;
    }
    return unknown_class(p, text, classes, count);
}

/* Checks that both sides are numbers, or both text. */
static int agree(parser *p, uint32_t a, uint32_t b)
{
    node *x = &p->w->nodes[a], *y = &p->w->nodes[b];
    LEAT_TRY(class_number(p, x, y));
    LEAT_TRY(class_number(p, y, x));
    return is_text(x) == is_text(y) ? 0 : wrong(p, y->at, "a number compared with text");
}

static bool take_compare(parser *p, compare *op)
{
    static const struct {
        const char *sign;
        compare op;
    } signs[] = {{"==", EQ}, {"!=", NE}, {"<=", LE}, {">=", GE}, {"<", LT}, {">", GT}, {"=", EQ}};
    for (size_t i = 0; i < LEAT_COUNT(signs); i++) {
        if (!take(p, signs[i].sign)) continue;
        *op = signs[i].op;
        return true;
    }
    return false;
}

static int parse_choices(parser *p, node *in)
{
    uint32_t number;
    in->right = p->w->count;
    if (take(p, "[") || take(p, "(")) {
        char close = p->w->text[p->at - 1] == '[' ? ']' : ')';
        do {
            LEAT_TRY(parse_operand(p, &number));
            LEAT_TRY(agree(p, in->left, number));
            in->count++;
        } while (take(p, ","));
        return take(p, close == ']' ? "]" : ")") ? 0 : wrong(p, p->at, "the list is not closed");
    }
    LEAT_TRY(parse_operand(p, &number));
    if (!take(p, "..")) return wrong(p, p->at, "a list [1, 2] or a range 1..2 is expected");
    LEAT_TRY(agree(p, in->left, number));
    LEAT_TRY(parse_operand(p, &number));
    LEAT_TRY(agree(p, in->left, number));
    in->range = true;
    in->count = 2;
    return 0;
}

static int join(parser *p, kind how, uint32_t left, uint32_t right, uint32_t *number)
{
    return add(p, (node){.kind = how, .left = left, .right = right, .at = p->at}, number);
}

/* Parses a comparison; a < b < c means a < b and b < c. */
static int parse_comparison(parser *p, uint32_t *number)
{
    uint32_t left, right, whole = UINT32_MAX;
    compare op;
    LEAT_TRY(parse_operand(p, &left));
    size_t before = p->at;
    bool negated = take_word(p, "not");
    if (take_word(p, "in")) {
        node in = {.kind = IN, .left = left, .negated = negated, .at = p->at};
        LEAT_TRY(parse_choices(p, &in));
        return add(p, in, number);
    }
    p->at = before;
    while (take_compare(p, &op)) {
        uint32_t one;
        LEAT_TRY(parse_operand(p, &right));
        LEAT_TRY(agree(p, left, right));
        LEAT_TRY(add(p, (node){.kind = COMPARE, .op = op, .left = left, .right = right, .at = p->at}, &one));
        if (whole == UINT32_MAX) whole = one;
        else LEAT_TRY(join(p, AND, whole, one, &whole));
        left = right;
    }
    if (whole == UINT32_MAX) return wrong(p, p->at, "a comparison is expected");
    *number = whole;
    return 0;
}

static int parse_or(parser *p, uint32_t *number);

static int parse_not(parser *p, uint32_t *number)
{
    int rc;
    if (p->depth++ >= DEPTH_MAX) return wrong(p, p->at, "nested too deeply");
    if (take_word(p, "not") || (here(p)[0] == '!' && take(p, "!"))) {
        uint32_t inner;
        rc = parse_not(p, &inner);
        if (rc == 0) rc = join(p, NOT, inner, 0, number);
    } else if (take(p, "(")) {
        rc = parse_or(p, number);
        if (rc == 0 && !take(p, ")")) rc = wrong(p, p->at, "no closing parenthesis");
    } else {
        rc = parse_comparison(p, number);
    }
    p->depth--;
    return rc;
}

static int parse_and(parser *p, uint32_t *number)
{
    uint32_t right;
    LEAT_TRY(parse_not(p, number));
    while (take_word(p, "and") || take(p, "&&")) {
        LEAT_TRY(parse_not(p, &right));
        LEAT_TRY(join(p, AND, *number, right, number));
    }
    return 0;
}

static int parse_or(parser *p, uint32_t *number)
{
    uint32_t right;
    LEAT_TRY(parse_and(p, number));
    while (take_word(p, "or") || take(p, "||")) {
        LEAT_TRY(parse_and(p, &right));
        LEAT_TRY(join(p, OR, *number, right, number));
    }
    return 0;
}

int leat__where_open(leat__where **out, const char *text, const leat__where_names *names, leat_error *err)
{
    *out = NULL;
    if (strlen(text) > TEXT_MAX) return leat__fail(err, LEAT_EINVAL, "`where`: more than %u bytes", TEXT_MAX);
    leat__where *w = LEAT_NEW(INGEST, leat__where);
    if (w == NULL) return leat__fail_nomem(err, sizeof *w, "a condition");
    parser p = {.w = w, .names = names, .err = err};
    w->text = leat__strdup(LEAT__MEM_INGEST, text);
    int rc = w->text == NULL ? leat__fail_nomem(err, strlen(text), "a condition") : 0;
    if (rc == 0) rc = parse_or(&p, &w->root);
    if (rc == 0 && *here(&p) != '\0') rc = wrong(&p, p.at, "and, or, or the end is expected");
    if (rc == 0) *out = w;
    else leat__where_close(&w);
    return rc;
}

void leat__where_close(leat__where **where)
{
    leat__where *w = *where;
    if (w == NULL) return;
    leat__free(w->text);
    leat__free(w->nodes);
    leat__free(w);
    *where = NULL;
}

/* ---- testing
 * -------------------------------------------------------------------------------- */

typedef struct tested {
    const leat__where *w;
    const char *key;
    size_t key_size;
    const leat__item *items;
} tested;

typedef struct value {
    bool is_text, is_float;
    int64_t i;
    double f;
    const char *text;
    size_t size;
} value;

static value value_of(const tested *t, uint32_t number)
{
    const node *n = &t->w->nodes[number];
    switch (n->kind) {
    case FIELD:
        if (n->is_float) return (value){.is_float = true, .f = t->items[n->field].f};
        return (value){.i = t->items[n->field].i};
    case KEY: return (value){.is_text = true, .text = t->key, .size = t->key_size};
    case TEXT: return (value){.is_text = true, .text = n->text, .size = n->size};
    case FLOAT: return (value){.is_float = true, .f = n->f};
    default: return (value){.i = n->i};
    }
}

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Compares exactly, even when a double cannot represent the whole number. Returns 2 for NaN. */
static int order_mixed(int64_t a, double b)
{
    if (b != b) return 2;
    if (b >= 0x1p63) return -1;
    if (b < -0x1p63) return 1;
    int64_t whole = (int64_t)b; /* truncated towards 0, and exact as a double */
    double rest = b - (double)whole;
    if (a != whole) return order(a, whole);
    return rest > 0 ? -1 : rest < 0;
}

/* Returns -1, 0 or 1; 2 when one of them is NaN. */
static int compare_values(const value *a, const value *b)
{
    if (a->is_text) {
        int c = memcmp(a->text, b->text, LEAT_MIN(a->size, b->size));
        return c != 0 ? (c < 0 ? -1 : 1) : order((int64_t)a->size, (int64_t)b->size);
    }
    if (!a->is_float && !b->is_float) return order(a->i, b->i);
    if (!a->is_float) return order_mixed(a->i, b->f);
    if (!b->is_float) {
        int c = order_mixed(b->i, a->f);
        return c == 2 ? c : -c;
    }
    return a->f < b->f ? -1 : a->f > b->f ? 1 : a->f == b->f ? 0 : 2;
}

static bool compares(const tested *t, uint32_t left, uint32_t right, compare op)
{
    value a = value_of(t, left), b = value_of(t, right);
    int c = compare_values(&a, &b);
    switch (op) {
    case EQ: return c == 0;
    case NE: return c != 0;
    case LT: return c == -1;
    case LE: return c == -1 || c == 0;
    case GT: return c == 1;
    case GE: return c == 1 || c == 0;
    }
    return false;
}

static bool is_in(const tested *t, const node *n)
{
    if (n->range) return compares(t, n->left, n->right, GE) && compares(t, n->left, n->right + 1, LE);
    for (uint32_t i = 0; i < n->count; i++)
        if (compares(t, n->left, n->right + i, EQ)) return true;
    return false;
}

/* Evaluates a node. A chain of `and` or `or` leans to the left and is as deep as it is long: iterate
 * on that side instead of recursing. */
static bool test(const tested *t, uint32_t number)
{
    const node *n = &t->w->nodes[number];
    switch (n->kind) {
    case NOT: return !test(t, n->left);
    case COMPARE: return compares(t, n->left, n->right, n->op);
    case IN: return is_in(t, n) != n->negated;
    default: break;
    }
    kind chain = n->kind;
    for (; n->kind == chain; n = &t->w->nodes[n->left])
        if (test(t, n->right) == (chain == OR)) return chain == OR;
    return test(t, (uint32_t)(n - t->w->nodes));
}

bool leat__where_match(const leat__where *w, const char *key, size_t key_size, const leat__item *items)
{
    tested t = {.w = w, .key = key, .key_size = key_size, .items = items};
    return test(&t, w->root);
}
