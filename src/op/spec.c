/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses pipelines: see spec.h for the grammar. The text comes from users and files: lengths are bounded,
 * nothing is executed, every error gives the position.
 */
#include "op/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#include "op/roles.h"

enum {
    NAME_MAX_BYTES = 48,
    VALUE_MAX_BYTES = 256,
    ENDING = 40 /* bytes shown of a text that ends too early */
};

typedef struct cursor {
    const char *text, *at;
    leat__op_spec *ops; /* parsed so far */
    uint32_t count, max, depth;
    leat_error *err;
} cursor;

static int complain(const cursor *c, const char *what)
{
    const size_t before = (size_t)(c->at - c->text);
    const char *ending = c->text + (before > ENDING ? before - ENDING : 0);
    int rc;
    while ((*ending & 0xC0) == 0x80) ending++; /* begins with a whole character */
    if (*c->at != '\0')
        rc = leat__fail(c->err, LEAT_EINVAL, "pipeline: %s at character %zu: '%.24s'", what, before + 1,
                        c->at);
    else
        rc = leat__fail(c->err, LEAT_EINVAL, "pipeline: %s at the end of '%s%s'", what,
                        ending > c->text ? "..." : "", ending);
    leat__error_at(c->err, NULL, -1, c->at - c->text);
    return rc;
}

static void skip_blanks(cursor *c, bool lines)
{
    for (;; c->at++) {
        if (*c->at == '#') c->at += strcspn(c->at, "\n");
        if (*c->at == '\0' || !isspace((unsigned char)*c->at)) return;
        if (*c->at == '\n' && !lines) return;
    }
}

static bool name_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static int read_name(cursor *c, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    while (name_char(c->at[n])) n++;
    if (n == 0 || isdigit((unsigned char)c->at[0])) return complain(c, "a name is expected");
    if (n >= NAME_MAX_BYTES) return complain(c, "a name is too long");
    memcpy(out, c->at, n);
    out[n] = '\0';
    c->at += n;
    return 0;
}

/* Reads a list: (1, 2) becomes "1,2". */
static int read_list(cursor *c, char out[VALUE_MAX_BYTES])
{
    const char close = *c->at == '(' ? ')' : ']';
    size_t n = 0;
    for (c->at++;; c->at++) {
        skip_blanks(c, true);
        if (*c->at == close) break;
        if (*c->at == '\0' || strchr("([)];=", *c->at)) return complain(c, "a list is not closed");
        if (n + 1 >= VALUE_MAX_BYTES) return complain(c, "a list is too long");
        out[n++] = *c->at;
    }
    c->at++;
    if (n > 0 && out[n - 1] == ',') n--; /* Python writes a list of one with a trailing comma */
    out[n] = '\0';
    return 0;
}

static int read_value(cursor *c, char out[VALUE_MAX_BYTES])
{
    skip_blanks(c, true);
    if (*c->at == '(' || *c->at == '[') return read_list(c, out);
    size_t n;
    const bool quoted = *c->at == '\'' || *c->at == '"';
    if (quoted) {
        const char quote[2] = {*c->at, '\0'};
        c->at++;
        n = strcspn(c->at, quote);
        if (c->at[n] == '\0') return complain(c, "a quoted value is not closed");
    } else {
        n = strcspn(c->at, ",;()[]=# \t\r\n");
        if (n == 0) return complain(c, "a value is expected");
    }
    if (n >= VALUE_MAX_BYTES) return complain(c, "a value is too long");
    memcpy(out, c->at, n);
    out[n] = '\0';
    c->at += n + quoted;
    return 0;
}

/* Reads a parameter's name and its '='. Without one, returns false and does not move the cursor. */
static bool named_argument(cursor *c, char name[NAME_MAX_BYTES])
{
    cursor ahead = *c;
    ahead.err = NULL;
    if (read_name(&ahead, name) != 0) return false;
    skip_blanks(&ahead, true);
    if (*ahead.at != '=') return false;
    c->at = ahead.at + 1;
    return true;
}

static int find_param(const cursor *c, const leat__op_def *def, const char *name, uint32_t *i)
{
    for (*i = 0; *i < def->param_count; ++*i)
        if (strcmp(def->params[*i].name, name) == 0) return 0;
    const char *names[LEAT__OP_PARAMS_MAX];
    leat__names list = {0};
    for (*i = 0; *i < def->param_count; ++*i) {
        names[*i] = def->params[*i].name;
        leat__names_add(&list, names[*i]);
    }
    const char *near = leat__str_nearest(name, names, def->param_count);
    if (near)
        return leat__fail(c->err, LEAT_EINVAL, "%s has no parameter '%s'; did you mean '%s'?", def->name,
                          name, near);
    return leat__fail(c->err, LEAT_EINVAL, "%s has no parameter '%s' (there are %s)", def->name, name,
                      leat__names_end(&list));
}

static int read_op(cursor *c);

/* After an op inside a combinator: true when another op follows, separated by ';' or ','. */
static bool next_inside(cursor *c, bool bracket)
{
    char name[NAME_MAX_BYTES];
    skip_blanks(c, true);
    if (*c->at != ';' && *c->at != ',') return false;
    cursor ahead = *c;
    do {
        ahead.at++;
        skip_blanks(&ahead, true);
    } while (*ahead.at == ';');
    if (*c->at == ',' && !bracket && (!isalpha((unsigned char)*ahead.at) || named_argument(&ahead, name)))
        return false; /* another argument of the combinator */
    c->at = ahead.at;
    return *c->at != ')' && *c->at != ']';
}

static int check_inside(const cursor *c, const leat__op_spec *outer, const leat__op_spec *op)
{
    const leat_op_kind kind = op->def->kind;
    if (kind != LEAT_OP_OUTPUT && kind != LEAT_OP_BATCH && kind != LEAT_OP_ROLE && !op->def->crops) return 0;
    return leat__fail(c->err, LEAT_EINVAL, "%s cannot be used inside %s", op->def->name, outer->def->name);
}

/* Reads the ops inside a combinator, with or without brackets around them. */
static int read_inside(cursor *c, leat__op_spec *outer)
{
    skip_blanks(c, true);
    const bool bracket = *c->at == '[';
    const uint32_t before = c->count;
    if (++c->depth > LEAT__SPEC_DEPTH_MAX) return complain(c, "ops are nested too deeply");
    if (bracket) c->at++;
    skip_blanks(c, true);
    if (!bracket || *c->at != ']') {
        do {
            const uint32_t at = c->count;
            LEAT_TRY(read_op(c));
            LEAT_TRY(check_inside(c, outer, &c->ops[at]));
        } while (next_inside(c, bracket));
    }
    if (bracket && *c->at != ']') return complain(c, "';' or ']' is expected");
    c->at += bracket;
    c->depth--;
    if (c->count == before)
        return leat__fail(c->err, LEAT_EINVAL, "%s needs at least one op", outer->def->name);
    outer->inside = c->count - before;
    return 0;
}

/* Choices may be written in any case, as in Python. Other words stay, for the message. */
static void adopt_choice(const leat__param *p, char text[VALUE_MAX_BYTES])
{
    char word[VALUE_MAX_BYTES];
    for (int i = 0; p->kind == LEAT__PARAM_CHOICE && leat__param_choice(p, i, word, sizeof word); i++)
        if (strcasecmp(word, text) == 0) memcpy(text, word, strlen(word) + 1);
}

static int read_argument(cursor *c, leat__op_spec *op, uint32_t *position)
{
    const leat__op_def *const def = op->def;
    char name[NAME_MAX_BYTES], text[VALUE_MAX_BYTES], shown[2 * NAME_MAX_BYTES];
    uint32_t i;
    if (named_argument(c, name)) {
        *position = UINT32_MAX; /* as in Python: no positional arguments after a named one */
        LEAT_TRY(find_param(c, def, name, &i));
    } else {
        if (*position == UINT32_MAX) return complain(c, "an argument without a name follows one with a name");
        i = (*position)++;
        if (i >= def->param_count) return complain(c, "too many arguments");
    }
    snprintf(shown, sizeof shown, "%s.%s", def->name, def->params[i].name);
    if (op->value[i].set) return leat__fail(c->err, LEAT_EINVAL, "%s is given twice", shown);
    if (def->combine && i == 0) {
        op->value[i].set = true;
        return read_inside(c, op);
    }
    LEAT_TRY(read_value(c, text));
    adopt_choice(&def->params[i], text);
    LEAT_TRY(leat__param_parse(&def->params[i], shown, text, &op->value[i], c->err));
    if (def->params[i].kind == LEAT__PARAM_STRING) memcpy(op->text, text, strlen(text) + 1);
    op->value[i].s = NULL; /* the parsed text is freed */
    return 0;
}

static int read_arguments(cursor *c, leat__op_spec *op)
{
    uint32_t position = 0;
    for (c->at++;;) {
        skip_blanks(c, true);
        if (*c->at == ')') break;
        LEAT_TRY(read_argument(c, op, &position));
        skip_blanks(c, true);
        if (*c->at == ',') c->at++;
        else if (*c->at != ')') return complain(c, "',' or ')' is expected");
    }
    c->at++;
    return 0;
}

/* Appends an op and those inside it to c->ops. */
static int read_op(cursor *c)
{
    char name[NAME_MAX_BYTES];
    if (c->count == c->max) return complain(c, "too many ops");
    leat__op_spec *const op = &c->ops[c->count++];
    LEAT_TRY(read_name(c, name));
    *op = (leat__op_spec){.def = leat__op_find(name)};
    if (!op->def) {
        const char *near = leat__op_nearest(name);
        return leat__fail(c->err, LEAT_EINVAL, "there is no op '%s'%s%s%s", name,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    skip_blanks(c, false);
    if (*c->at == '(') LEAT_TRY(read_arguments(c, op));
    for (uint32_t i = 0; i < op->def->param_count; i++) {
        const leat__param *p = &op->def->params[i];
        if (op->value[i].set) continue;
        if (!p->def)
            return leat__fail(c->err, LEAT_EINVAL, "%s needs its parameter '%s'", op->def->name, p->name);
        leat__param_default(p, &op->value[i]);
        op->value[i].s = NULL;
    }
    return op->def->check ? op->def->check(op, c->err) : 0;
}

/* Moves to the next item. False at the end of the text. */
static bool next_item(cursor *c)
{
    for (;; c->at++) {
        skip_blanks(c, true);
        if (*c->at != ';') return *c->at != '\0';
    }
}

static int end_item(cursor *c)
{
    skip_blanks(c, false);
    if (*c->at == '\0' || *c->at == ';' || *c->at == '\n') return 0;
    return complain(c, "';' or a new line is expected");
}

int leat__spec_parse(const char *text, leat__op_spec *ops, uint32_t *count, leat_error *err)
{
    cursor c = {.text = text, .at = text, .ops = ops, .max = LEAT__SPEC_OPS_MAX, .err = err};
    *count = 0;
    while (next_item(&c)) {
        const leat__op_spec *const op = &ops[c.count];
        LEAT_TRY(read_op(&c));
        if (op->def->kind == LEAT_OP_ROLE)
            return leat__fail(err, LEAT_EINVAL,
                              "%s says how a field follows an image: give it to `follow`, not to a pipeline",
                              op->def->name);
        LEAT_TRY(end_item(&c));
    }
    *count = c.count;
    return 0;
}

static int read_role(cursor *c, leat__role_spec *role)
{
    *role = (leat__role_spec){0};
    LEAT_TRY(read_value(c, role->field));
    skip_blanks(c, false);
    if (*c->at != '=') return 0;
    c->at++;
    skip_blanks(c, true);
    const size_t word = strlen("follow");
    if (strncmp(c->at, "follow", word) == 0 && !name_char(c->at[word])) {
        c->at += word;
        return 0;
    }
    c->ops = &role->op;
    c->count = 0;
    c->max = 1;
    LEAT_TRY(read_op(c));
    if (role->op.def->kind == LEAT_OP_ROLE) return 0;
    return leat__fail(c->err, LEAT_EINVAL,
                      "field '%s' cannot be %s: fields follow as Mask, Boxes, Keypoints or Labels",
                      role->field, role->op.def->name);
}

int leat__spec_parse_roles(const char *text, leat__role_spec *roles, uint32_t *count, leat_error *err)
{
    cursor c = {.text = text, .at = text, .err = err};
    *count = 0;
    while (next_item(&c)) {
        if (*count == LEAT__SPEC_OPS_MAX) return complain(&c, "too many fields");
        LEAT_TRY(read_role(&c, &roles[*count]));
        for (uint32_t i = 0; i < *count; i++)
            if (strcmp(roles[i].field, roles[*count].field) == 0)
                return leat__fail(err, LEAT_EINVAL, "`follow`: field '%s' is given twice", roles[i].field);
        ++*count;
        LEAT_TRY(end_item(&c));
    }
    return 0;
}
