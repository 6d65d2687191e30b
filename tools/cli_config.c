/* SPDX-License-Identifier: Apache-2.0
 *
 * --config. A value is a scalar. For options that are text it may also be a list, which is joined with
 * commas, or a mapping, which becomes KEY=VALUE pairs separated by commas:
 *
 *     profile: [gopher@paper, fineweb@paper]
 *     set:
 *       words.min: 20
 *       curly.max: off
 */
#include "cli_config.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"

#define FILE_MAX_ ((size_t)1 << 20)

typedef struct reading {
    cli_config *config;
    cli_line *line;
    yaml_document_t *doc;
    const char *path;
    bool seen[CLI_OPTIONS_MAX]; /* options that occur in the file */
} reading;

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

/* Returns the text of a scalar; NULL for a list, a mapping, or text with a NUL. */
static const char *scalar(const yaml_node_t *node)
{
    if (node == NULL || node->type != YAML_SCALAR_NODE) return NULL;
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

/* Returns the number of options of the command itself, without the common ones. */
static size_t own_options(const cli_line *line)
{
    size_t common = 0;
    for (const leat__param *p = cli_common(line->command).params; p->name; p++) common++;
    return line->param_count - common;
}

static int find_key(const reading *r, const yaml_node_t *node, size_t *index, leat_error *err)
{
    const char *names[CLI_OPTIONS_MAX], *key = scalar(node);
    char name[64];
    size_t n = own_options(r->line);
    if (key == NULL)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: a key must be the name of an option", r->path,
                          line_of(node));
    snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    const int found = cli_line_find(r->line, name);
    *index = (size_t)LEAT_MAX(found, 0);
    if (found >= 0 && *index < n && !leat__str_eq(name, "config")) return 0;
    if (found >= 0)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' works on the command line only", r->path,
                          line_of(node), key);
    for (size_t i = 0; i < n; i++) names[i] = r->line->params[i]->name;
    const char *near = leat__str_nearest(name, names, n);
    if (near == NULL || leat__str_eq(near, "config"))
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: unknown key '%s'", r->path, line_of(node), key);
    return leat__fail(err, LEAT_EINVAL, "%s:%zu: unknown key '%s'; did you mean '%s'?", r->path,
                      line_of(node), key, near);
}

/* Appends an element of a list, after the character `before`. The element must not contain a comma,
 * which would split it. */
static int put_part(const reading *r, const yaml_node_t *node, leat__buf *out, char before, leat_error *err)
{
    const char *text = scalar(node);
    if (text == NULL || strchr(text, ',') != NULL)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: an element of a list must be text without commas",
                          r->path, line_of(node));
    if (before != 0 && out->len > 0) leat__buf_putc(out, before);
    leat__buf_puts(out, text);
    return 0;
}

static int put_value(const reading *r, const yaml_node_t *node, leat__buf *out, leat_error *err)
{
    if (node->type == YAML_SEQUENCE_NODE) {
        for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top;
             i++)
            LEAT_TRY(put_part(r, yaml_document_get_node(r->doc, *i), out, ',', err));
    } else if (node->type == YAML_MAPPING_NODE) {
        for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
             p++) {
            LEAT_TRY(put_part(r, yaml_document_get_node(r->doc, p->key), out, ',', err));
            leat__buf_putc(out, '=');
            LEAT_TRY(put_part(r, yaml_document_get_node(r->doc, p->value), out, 0, err));
        }
    } else if (scalar(node) != NULL) {
        leat__buf_puts(out, scalar(node));
    }
    if (out->status != 0) return leat__fail_nomem(err, out->len, "an option");
    if (out->len == 0)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: the key has no value", r->path, line_of(node));
    return 0;
}

static int take_pair(reading *r, const yaml_node_pair_t *pair, leat_error *err)
{
    const yaml_node_t *key = yaml_document_get_node(r->doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(r->doc, pair->value);
    size_t i = 0;
    char shown[512];
    leat__buf text;
    LEAT_TRY(find_key(r, key, &i, err));
    const leat__param *p = r->line->params[i];
    if (r->seen[i])
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' appears twice", r->path, line_of(key), p->name);
    r->seen[i] = true;
    if (value->type != YAML_SCALAR_NODE && p->kind != LEAT__PARAM_STRING)
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: '%s' needs a single value", r->path, line_of(key),
                          p->name);
    leat__buf_init(&text, LEAT__MEM_MISC, FILE_MAX_);
    int rc = put_value(r, value, &text, err);
    char *own = rc == 0 ? leat__buf_take(&text, NULL) : NULL;
    leat__buf_reset(&text);
    if (rc != 0) return rc;
    if (own == NULL) return leat__fail_nomem(err, FILE_MAX_, "an option");
    r->config->text[r->config->count++] = own; /* one per option: `seen` */
    snprintf(shown, sizeof shown, "%s:%zu: %s", r->path, line_of(key), p->name);
    leat__value parsed = r->line->values[i];
    /* check the value even when the command line overrides it */
    LEAT_TRY(leat__param_parse(p, shown, own, &parsed, err));
    if (!r->line->typed[i]) r->line->values[i] = parsed;
    return 0;
}

static int take_document(reading *r, leat_error *err)
{
    const yaml_node_t *root = yaml_document_get_root_node(r->doc);
    if (root == NULL) return 0; /* an empty file */
    if (root->type != YAML_MAPPING_NODE)
        return leat__fail(err, LEAT_EINVAL, "%s: must be 'option: value' lines", r->path);
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++)
        LEAT_TRY(take_pair(r, p, err));
    return 0;
}

/* Fails when a second document follows, which would have no effect. */
static int expect_end(yaml_parser_t *parser, const char *path, leat_error *err)
{
    yaml_document_t doc;
    if (!yaml_parser_load(parser, &doc))
        return leat__fail(err, LEAT_EINVAL, "%s:%zu: %s", path, parser->problem_mark.line + 1,
                          parser->problem != NULL ? parser->problem : "not YAML");
    const yaml_node_t *root = yaml_document_get_root_node(&doc);
    int rc = root == NULL
                 ? 0
                 : leat__fail(err, LEAT_EINVAL, "%s:%zu: a second document begins here (only one is read)",
                              path, line_of(root));
    yaml_document_delete(&doc);
    return rc;
}

int cli_config_parse(cli_config *config, cli_line *line, const char *path, const char *text, size_t len,
                     leat_error *err)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    reading r = {.config = config, .line = line, .doc = &doc, .path = path};
    if (!yaml_parser_initialize(&parser)) return leat__fail_nomem(err, sizeof parser, "a YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int rc;
    if (!yaml_parser_load(&parser, &doc)) {
        rc = leat__fail(err, LEAT_EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                        parser.problem != NULL ? parser.problem : "not YAML");
    } else {
        rc = take_document(&r, err);
        yaml_document_delete(&doc);
        if (rc == 0) rc = expect_end(&parser, path, err);
    }
    yaml_parser_delete(&parser);
    return rc;
}

int cli_config_read(cli_config *config, cli_line *line, leat_error *err)
{
    char *text = NULL;
    size_t len;
    const char *path = line->values[cli_line_find(line, "config")].s;
    if (path == NULL) return 0;
    LEAT_TRY(leat__file_load(path, FILE_MAX_, 1, &text, &len, err));
    int rc = cli_config_parse(config, line, path, text, len, err);
    leat__free(text);
    return rc;
}

void cli_config_reset(cli_config *config)
{
    for (size_t i = 0; i < config->count; i++) leat__free(config->text[i]);
    config->count = 0;
}
