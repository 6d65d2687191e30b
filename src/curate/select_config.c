/* SPDX-License-Identifier: Apache-2.0
 *
 * See select_config.h. Texts are views into the YAML document.
 */
#include "curate/select_config.h"

#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/neighbours.h"

#define TEXT_MAX ((size_t)1 << 20)
#define LIST_MAX 4096

struct leat__select_config {
    const char *name;
    yaml_document_t doc;
    bool has_doc;
    leat_select_strategy strategy[LEAT__SELECT_STRATEGIES];
    uint32_t strategies;
    leat_select_target target[LIST_MAX]; /* targets of all strategies */
    uint32_t targets;
    const char *column[LIST_MAX];
    uint32_t columns;
};

static const char *const kinds[] = {"",          "diversity",  "weights", "balance",
                                    "threshold", "similarity", "random",  "typicality"};

const char *leat__select_kind_name(uint32_t kind)
{
    return kind >= 1 && kind < LEAT_COUNT(kinds) ? kinds[kind] : NULL;
}

/* ---- values ---- */

static int wrong(const leat__select_config *c, const yaml_node_t *at, leat_error *err, const char *what,
                 const char *name)
{
    return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' %s", c->name, at->start_mark.line + 1, name, what);
}

static yaml_node_t *node(leat__select_config *c, int index)
{
    return yaml_document_get_node(&c->doc, index);
}

/* Returns the text of a scalar; NULL for other nodes and for text with a NUL. */
static const char *scalar(const yaml_node_t *n)
{
    if (!n || n->type != YAML_SCALAR_NODE) return NULL;
    const char *text = (const char *)n->data.scalar.value;
    return strlen(text) == n->data.scalar.length && text[0] != 0 ? text : NULL;
}

static int get_text(leat__select_config *c, const char *key, const yaml_node_t *value, const char **to,
                    leat_error *err)
{
    const char *text = scalar(value);
    if (!text) return wrong(c, value, err, "needs a text", key);
    *to = text;
    return 0;
}

static int get_number(leat__select_config *c, const char *key, const yaml_node_t *value, double least,
                      double most, double *to, leat_error *err)
{
    const char *text = scalar(value);
    double x;
    if (!text || !leat__str_to_double(text, &x)) return wrong(c, value, err, "needs a number", key);
    if (!(x >= least && x <= most))
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' is %g, not between %g and %g", c->name,
                          value->start_mark.line + 1, key, x, least, most);
    *to = x;
    return 0;
}

static int get_whole(leat__select_config *c, const char *key, const yaml_node_t *value, uint64_t most,
                     uint64_t *to, leat_error *err)
{
    const char *text = scalar(value);
    uint64_t x;
    double number;
    const bool whole = text && leat__str_to_u64(text, &x);
    if (!whole && (!text || !leat__str_to_double(text, &number)))
        return wrong(c, value, err, "needs a whole number", key);
    if (!whole || x > most)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' is %s, not a whole number from 0 to %llu", c->name,
                          value->start_mark.line + 1, key, text, (unsigned long long)most);
    *to = x;
    return 0;
}

/* ---- strategies ---- */

static int get_distribution(leat__select_config *c, leat_select_strategy *s, const yaml_node_t *value,
                            leat_error *err)
{
    const char *word = scalar(value);
    if (word && strcmp(word, "uniform") == 0) s->shares = LEAT_SHARES_UNIFORM;
    else if (word && strcmp(word, "input") == 0) s->shares = LEAT_SHARES_INPUT;
    else if (value->type != YAML_MAPPING_NODE)
        return wrong(c, value, err, "is uniform, input, or a mapping of values to shares", "distribution");
    if (word) return 0;
    s->shares = LEAT_SHARES_TARGET;
    s->targets = &c->target[c->targets];
    for (const yaml_node_pair_t *p = value->data.mapping.pairs.start; p < value->data.mapping.pairs.top;
         p++) {
        leat_select_target *t = &c->target[c->targets];
        if (c->targets == LIST_MAX) return wrong(c, value, err, "has too many values", "distribution");
        t->name = scalar(node(c, p->key));
        if (!t->name) return wrong(c, value, err, "needs names of values", "distribution");
        LEAT_TRY(get_number(c, t->name, node(c, p->value), 0, 1, &t->share, err));
        c->targets++;
        s->target_count++;
    }
    return 0;
}

enum {
    K_STRATEGY,
    K_EMBEDDINGS,
    K_QUERY,
    K_COLUMN,
    K_WHERE,
    K_STRENGTH,
    K_MIN_DISTANCE,
    K_DISTRIBUTION,
    K_NEIGHBOURS,
    K_SEED,
    K_FIELD,
    K_COUNT
};
static const char *const strategy_keys[K_COUNT] = {"strategy",   "embeddings", "query",        "column",
                                                   "where",      "strength",   "min_distance", "distribution",
                                                   "neighbours", "seed",       "field"};
/* The kinds of strategy that accept each key, one bit per kind. */
#define OF(kind) (1u << LEAT_SELECT_##kind)
static const uint32_t key_kinds[K_COUNT] = {
    [K_STRATEGY] = ~0u,
    [K_EMBEDDINGS] = OF(DIVERSITY) | OF(SIMILARITY) | OF(TYPICALITY),
    [K_QUERY] = OF(SIMILARITY),
    [K_COLUMN] = OF(WEIGHTS) | OF(BALANCE),
    [K_WHERE] = OF(THRESHOLD),
    [K_STRENGTH] = ~OF(THRESHOLD),
    [K_MIN_DISTANCE] = OF(DIVERSITY),
    [K_DISTRIBUTION] = OF(BALANCE),
    [K_NEIGHBOURS] = OF(TYPICALITY),
    [K_SEED] = OF(RANDOM),
    [K_FIELD] = OF(DIVERSITY) | OF(SIMILARITY) | OF(TYPICALITY),
};

static int find_key(leat__select_config *c, const yaml_node_t *key, const char *const *keys, size_t count,
                    size_t *found, leat_error *err)
{
    const char *text = scalar(key);
    if (!text)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: a key must be a word", c->name,
                          key->start_mark.line + 1);
    for (*found = 0; *found < count; ++*found)
        if (strcmp(keys[*found], text) == 0) return 0;
    const char *near = leat__str_nearest(text, keys, count);
    if (!near)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: unknown key '%s'", c->name, key->start_mark.line + 1,
                          text);
    return leat__fail(err, LEAT_EINVAL, "%s:%zu: unknown key '%s'; did you mean '%s'?", c->name,
                      key->start_mark.line + 1, text, near);
}

static int get_kind(leat__select_config *c, leat_select_strategy *s, const yaml_node_t *value,
                    leat_error *err)
{
    const char *text = scalar(value);
    for (uint32_t k = 1; text && k < LEAT_COUNT(kinds); k++)
        if (strcmp(kinds[k], text) == 0) s->kind = k;
    if (s->kind) return 0;
    const char *near = text ? leat__str_nearest(text, kinds + 1, LEAT_COUNT(kinds) - 1) : NULL;
    return leat__fail(err, LEAT_EINVAL,
                      near ? "%s:%zu: '%s' is not a strategy; did you mean '%s'?"
                           : "%s:%zu: '%s' is not a strategy%s",
                      c->name, value->start_mark.line + 1, text ? text : "strategy", near ? near : "");
}

static int get_value(leat__select_config *c, leat_select_strategy *s, size_t key, const yaml_node_t *value,
                     leat_error *err)
{
    const char *name = strategy_keys[key];
    uint64_t whole = 0;
    switch (key) {
    case K_EMBEDDINGS: return get_text(c, name, value, &s->vectors, err);
    case K_QUERY: return get_text(c, name, value, &s->query, err);
    case K_COLUMN: return get_text(c, name, value, &s->column, err);
    case K_WHERE: return get_text(c, name, value, &s->where, err);
    case K_FIELD: return get_text(c, name, value, &s->field, err);
    case K_STRENGTH:
        LEAT_TRY(get_number(c, name, value, -16, 16, &s->strength, err));
        return s->strength != 0 ? 0 : wrong(c, value, err, "must not be 0", name);
    case K_MIN_DISTANCE: return get_number(c, name, value, 0, 2, &s->least, err);
    case K_DISTRIBUTION: return get_distribution(c, s, value, err);
    case K_NEIGHBOURS:
        LEAT_TRY(get_whole(c, name, value, LEAT__NEIGHBOURS_MAX, &whole, err));
        s->neighbours = (uint32_t)whole;
        return whole >= 1 ? 0 : wrong(c, value, err, "must be 1 or more", name);
    case K_SEED: return get_whole(c, name, value, UINT64_MAX, &s->seed, err);
    default: return 0;
    }
}

static int get_strategy(leat__select_config *c, const yaml_node_t *at, leat_error *err)
{
    leat_select_strategy *s = &c->strategy[c->strategies];
    bool seen[K_COUNT] = {false};
    size_t key;
    const bool word = scalar(at) != NULL; /* only a name: a strategy without settings */
    if ((!word && at->type != YAML_MAPPING_NODE) || c->strategies == LEAT__SELECT_STRATEGIES)
        return leat__fail(err, LEAT_EINVAL,
                          "%s:%zu: strategies must be a list of at most %d names or mappings", c->name,
                          at->start_mark.line + 1, LEAT__SELECT_STRATEGIES);
    if (word) {
        LEAT_TRY(get_kind(c, s, at, err));
        c->strategies++;
        return 0;
    }
    for (int pass = 0; pass < 2; pass++) /* the kind first: it decides which keys are valid */
        for (const yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
            const yaml_node_t *name = node(c, p->key), *value = node(c, p->value);
            LEAT_TRY(find_key(c, name, strategy_keys, K_COUNT, &key, err));
            if (pass == 0 && seen[key]) return wrong(c, name, err, "appears twice", strategy_keys[key]);
            seen[key] = true;
            if (pass == 0 && key == K_STRATEGY) LEAT_TRY(get_kind(c, s, value, err));
            if (pass == 0) continue;
            if (!s->kind) return wrong(c, at, err, "is missing", "strategy");
            if (!(key_kinds[key] >> s->kind & 1))
                return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' has no effect on %s", c->name,
                                  name->start_mark.line + 1, strategy_keys[key], kinds[s->kind]);
            LEAT_TRY(get_value(c, s, key, value, err));
        }
    if (!s->kind) return wrong(c, at, err, "is missing", "strategy");
    c->strategies++;
    return 0;
}

/* ---- the document ---- */

static int get_columns(leat__select_config *c, leat_select_opts *o, const yaml_node_t *value, leat_error *err)
{
    if (scalar(value)) c->column[c->columns++] = scalar(value);
    else if (value->type != YAML_SEQUENCE_NODE) return wrong(c, value, err, "needs a list of files", "with");
    else
        for (const yaml_node_item_t *i = value->data.sequence.items.start; i < value->data.sequence.items.top;
             i++) {
            if (c->columns == LIST_MAX) return wrong(c, value, err, "has too many files", "with");
            LEAT_TRY(get_text(c, "with", node(c, *i), &c->column[c->columns], err));
            c->columns++;
        }
    if (o->column_count > 0) return 0;
    o->columns = c->column;
    o->column_count = c->columns;
    return 0;
}

static int get_strategies(leat__select_config *c, leat_select_opts *o, const yaml_node_t *value,
                          leat_error *err)
{
    const bool list = value->type == YAML_SEQUENCE_NODE;
    if (!list) LEAT_TRY(get_strategy(c, value, err)); /* a single strategy */
    for (const yaml_node_item_t *i = list ? value->data.sequence.items.start : NULL;
         list && i < value->data.sequence.items.top; i++)
        LEAT_TRY(get_strategy(c, node(c, *i), err));
    if (o->strategy_count > 0)
        return wrong(c, value, err, "cannot be combined with a strategy given as an option", "strategies");
    o->strategies = c->strategy;
    o->strategy_count = c->strategies;
    return 0;
}

/* Sets a text, unless the options already give it. */
static int fill_text(leat__select_config *c, const char *key, const yaml_node_t *value, const char **to,
                     leat_error *err)
{
    const char *text = NULL;
    LEAT_TRY(get_text(c, key, value, &text, err));
    if (!*to) *to = text;
    return 0;
}

static int take_pair(leat__select_config *c, leat_select_opts *o, const leat_select_opts *given, size_t key,
                     const char *name, const yaml_node_t *value, leat_error *err)
{
    uint64_t count = 0;
    double share = 0;
    const bool limited = given->count > 0 || given->share > 0;
    switch (key) {
    case 0:
        LEAT_TRY(get_whole(c, name, value, UINT64_MAX, &count, err));
        if (count == 0) return wrong(c, value, err, "must be 1 or more", name);
        if (!limited) o->count = count;
        return 0;
    case 1:
        LEAT_TRY(get_number(c, name, value, 0, 1, &share, err));
        if (share <= 0) return wrong(c, value, err, "must be above 0", name);
        if (!limited) o->share = share;
        return 0;
    case 2: return fill_text(c, name, value, &o->vectors, err);
    case 3: return get_columns(c, o, value, err);
    case 4: return fill_text(c, name, value, &o->previous, err);
    case 5: return fill_text(c, name, value, &o->where, err);
    case 6: return fill_text(c, name, value, &o->field, err);
    default: return get_strategies(c, o, value, err);
    }
}

static int take_document(leat__select_config *c, leat_select_opts *o, leat_error *err)
{
    static const char *const keys[] = {"count",    "share", "embeddings", "with",
                                       "previous", "where", "field",      "strategies"};
    const leat_select_opts given = *o;
    bool seen[LEAT_COUNT(keys)] = {false};
    const yaml_node_t *root = yaml_document_get_root_node(&c->doc);
    if (!root) return leat__fail(err, LEAT_EINVAL, "%s: is empty", c->name);
    if (root->type != YAML_MAPPING_NODE)
        return leat__fail(err, LEAT_EINVAL, "%s: must be a mapping with 'strategies'", c->name);
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
        size_t key;
        LEAT_TRY(find_key(c, node(c, p->key), keys, LEAT_COUNT(keys), &key, err));
        if (seen[key]) return wrong(c, node(c, p->key), err, "appears twice", keys[key]);
        seen[key] = true;
        LEAT_TRY(take_pair(c, o, &given, key, keys[key], node(c, p->value), err));
    }
    return 0;
}

/* Fails when a second document follows, which would be ignored. */
static int refuse_more(const leat__select_config *c, yaml_parser_t *parser, leat_error *err)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next))
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: %s", c->name, parser->problem_mark.line + 1,
                          parser->problem ? parser->problem : "not YAML");
    const bool more = yaml_document_get_root_node(&next) != NULL;
    const size_t line = next.start_mark.line + 1;
    yaml_document_delete(&next);
    if (!more) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s:%zu: a second document begins here (only one is read)", c->name,
                      line);
}

static int parse(leat__select_config *c, const char *text, leat_error *err)
{
    yaml_parser_t parser;
    const size_t len = strnlen(text, TEXT_MAX + 1);
    if (len > TEXT_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%s: is longer than %zu bytes", c->name, TEXT_MAX);
    if (!yaml_parser_initialize(&parser)) return leat__fail_nomem(err, sizeof parser, "a YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int rc = 0;
    c->has_doc = yaml_parser_load(&parser, &c->doc) != 0;
    if (!c->has_doc)
        rc = leat__fail(err, LEAT_EINVAL, "%s:%zu: %s", c->name, parser.problem_mark.line + 1,
                        parser.problem ? parser.problem : "not YAML");
    else rc = refuse_more(c, &parser, err);
    yaml_parser_delete(&parser);
    return rc;
}

int leat__select_config_open(leat__select_config **config, leat_select_opts *opts, leat_error *err)
{
    *config = NULL;
    if (!opts->config) return 0;
    leat__select_config *c = LEAT_NEW(CURATE, leat__select_config);
    if (!c) return leat__fail_nomem(err, sizeof *c, "a configuration");
    c->name = opts->config_name ? opts->config_name : "config";
    int rc = parse(c, opts->config, err);
    if (rc == 0) rc = take_document(c, opts, err);
    if (rc == 0) *config = c;
    else leat__select_config_close(&c);
    return rc;
}

void leat__select_config_close(leat__select_config **config)
{
    leat__select_config *c = *config;
    if (!c) return;
    *config = NULL;
    if (c->has_doc) yaml_document_delete(&c->doc);
    leat__free(c);
}
