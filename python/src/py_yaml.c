/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml(text, name, plain): reads a YAML text as dicts, lists and strings, for the configs of `leat train`
 * and `leat curate`. It is the parser of `leat select -c`, so PyYAML is not needed. `plain` makes a value
 * of a scalar without quotes.
 */
#include "py_leat.h"

#include <string.h>
#include <yaml.h>

#include "base/error.h"

#define DEPTH_MAX 50
#define NODES_MAX 100000 /* nodes made: aliases can repeat a node */

typedef struct reading {
    yaml_document_t *doc;
    const char *name; /* of the file, for messages */
    PyObject *plain;
    uint32_t nodes;
} reading;

static PyObject *fail_at(const reading *r, size_t line, const char *what)
{
    leat_error err = {.sample = -1, .offset = -1};
    (void)leat__fail(&err, LEAT_EINVAL, "%s:%zu: %s", r->name, line + 1, what);
    return py_raise(&err);
}

static PyObject *fail_node(const reading *r, const yaml_node_t *node, const char *what)
{
    return fail_at(r, node->start_mark.line, what);
}

static PyObject *fail_parser(const reading *r, const yaml_parser_t *p, const char *text)
{
    size_t line = p->problem_mark.line;
    if (p->error == YAML_READER_ERROR) /* such errors have no mark */
        for (size_t i = 0; i < p->problem_offset && text[i]; i++) line += text[i] == '\n';
    return fail_at(r, line, p->problem ? p->problem : "not YAML");
}

static PyObject *make_node(reading *r, int index, int depth);

static PyObject *make_scalar(const reading *r, const yaml_node_t *node)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)node->data.scalar.value,
                                          (Py_ssize_t)node->data.scalar.length, "strict");
    if (text == NULL || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return text;
    PyObject *value = PyObject_CallFunctionObjArgs(r->plain, text, NULL);
    Py_DECREF(text);
    return value;
}

static PyObject *make_list(reading *r, const yaml_node_t *node, int depth)
{
    PyObject *list = PyList_New(0);
    for (const yaml_node_item_t *i = node->data.sequence.items.start;
         list != NULL && i < node->data.sequence.items.top; i++) {
        PyObject *value = make_node(r, *i, depth);
        if (value == NULL || PyList_Append(list, value) != 0) Py_CLEAR(list);
        Py_XDECREF(value);
    }
    return list;
}

/* Adds a pair to a dict. Keys are text as it stands. Returns false with an exception. */
static bool add_pair(reading *r, const yaml_node_pair_t *pair, PyObject *dict, int depth)
{
    const yaml_node_t *node = yaml_document_get_node(r->doc, pair->key);
    if (node->type != YAML_SCALAR_NODE) {
        fail_node(r, node, "a key must be a single value");
        return false;
    }
    PyObject *key = PyUnicode_DecodeUTF8((const char *)node->data.scalar.value,
                                         (Py_ssize_t)node->data.scalar.length, "strict");
    if (key == NULL) return false;
    const int known = PyDict_Contains(dict, key);
    if (known > 0) {
        char what[300];
        snprintf(what, sizeof what, "'%.256s' appears twice", (const char *)node->data.scalar.value);
        fail_node(r, node, what);
    }
    PyObject *value = known == 0 ? make_node(r, pair->value, depth) : NULL;
    const bool added = value != NULL && PyDict_SetItem(dict, key, value) == 0;
    Py_DECREF(key);
    Py_XDECREF(value);
    return added;
}

static PyObject *make_dict(reading *r, const yaml_node_t *node, int depth)
{
    PyObject *dict = PyDict_New();
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
         dict != NULL && p < node->data.mapping.pairs.top; p++)
        if (!add_pair(r, p, dict, depth)) Py_CLEAR(dict);
    return dict;
}

static bool has_tag(const yaml_node_t *node)
{
    const char *tag = (const char *)node->tag;
    return tag != NULL && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, YAML_SEQ_TAG) != 0 &&
           strcmp(tag, YAML_MAP_TAG) != 0;
}

static PyObject *make_node(reading *r, int index, int depth)
{
    const yaml_node_t *node = yaml_document_get_node(r->doc, index);
    if (has_tag(node)) {
        char what[300];
        snprintf(what, sizeof what, "the tag '%.256s' is not supported", (const char *)node->tag);
        return fail_node(r, node, what);
    }
    if (depth == DEPTH_MAX || r->nodes++ == NODES_MAX)
        return fail_node(r, node, "lists and mappings are nested too deeply");
    if (node->type == YAML_SCALAR_NODE) return make_scalar(r, node);
    return node->type == YAML_SEQUENCE_NODE ? make_list(r, node, depth + 1) : make_dict(r, node, depth + 1);
}

/* Fails when a second document follows, which would be ignored. */
static bool refuse_more(const reading *r, yaml_parser_t *parser, const char *text)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next)) {
        fail_parser(r, parser, text);
        return false;
    }
    const bool more = yaml_document_get_root_node(&next) != NULL;
    if (more) fail_at(r, next.start_mark.line, "a second document begins here (only one is read)");
    yaml_document_delete(&next);
    return !more;
}

PyObject *py_yaml(PyObject *module, PyObject *args)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    const char *text;
    Py_ssize_t size;
    PyObject *made = NULL;
    reading r = {.doc = &doc};

    (void)module;
    if (!PyArg_ParseTuple(args, "y#yO", &text, &size, &r.name, &r.plain)) return NULL;
    if (!yaml_parser_initialize(&parser)) return PyErr_NoMemory();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, (size_t)size);
    if (!yaml_parser_load(&parser, &doc)) {
        fail_parser(&r, &parser, text);
    } else {
        if (refuse_more(&r, &parser, text))
            made = yaml_document_get_root_node(&doc) ? make_node(&r, 1, 0) : Py_NewRef(Py_None);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return made;
}
