/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign formats read in Python (leat/_formats.py), as sources of leat.pack and of the command. The packing
 * flow calls `next` from a separate thread, which takes the GIL for one row.
 */
#include "py_leat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "ingest/source_reader.h"
#include "ingest/stream.h"
#include "ingest/shard_mark.h"
#include "ingest/table_writer.h"
#include "io/file.h"
#include "io/object.h"
#include "io/url.h"

#define PIECE ((size_t)8 << 20) /* bytes copied at a time */

typedef struct reader {
    PyObject *object, *iterator, *row; /* row: the current row */
    leat_field *fields;
    uint32_t field_count;
    leat_pack_value *values;
    py_holding *held;
    leat__reader_classes *classes; /* of the fields */
    char wrong[512];
} reader;

static PyObject *hook, *writer; /* callbacks given to set_reader: open paths, write tables */

static int code_of(PyObject *type)
{
    static const struct {
        const char *name;
        int code;
    } known[] = {
        {"ArgumentError", LEAT_EINVAL},        {"ExistsError", LEAT_EEXIST},  {"NotFoundError", LEAT_ENOENT},
        {"FileNotFoundError", LEAT_ENOENT},    {"StorageError", LEAT_EIO},    {"MemoryError", LEAT_ENOMEM},
        {"KeyboardInterrupt", LEAT_ECANCELED}, {"ImportError", LEAT_ENOTSUP}, {"LimitError", LEAT_ELIMIT}};
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyObject *word = name != NULL ? PyUnicode_AsUTF8String(name) : NULL;
    int code = LEAT_EDATA;
    for (size_t i = 0; word != NULL && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, PyBytes_AsString(word)) == 0) code = known[i].code;
    Py_XDECREF(word);
    Py_XDECREF(name);
    return code;
}

/* Converts the current exception to text; returns its code. */
static int take_exception(char *text, size_t size)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    int code = code_of(type);
    PyObject *words = value != NULL ? PyObject_Str(value) : NULL;
    PyObject *bytes = words != NULL ? PyUnicode_AsEncodedString(words, "utf-8", "replace") : NULL;
    snprintf(text, size, "%s", bytes != NULL ? PyBytes_AsString(bytes) : "an error without a message");
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return code;
}

static int fail_with_exception(leat_error *err)
{
    char text[400];
    int code = take_exception(text, sizeof text);
    return leat__fail(err, code, "%s", text);
}

static void drop_row(reader *r)
{
    for (uint32_t i = 0; r->held != NULL && i < r->field_count; i++) py_value_drop(&r->held[i]);
    Py_CLEAR(r->row);
}

static void reader_free(reader *r)
{
    drop_row(r);
    for (uint32_t i = 0; i < r->field_count; i++) leat__free((char *)r->fields[i].name);
    for (uint32_t i = 0; r->classes != NULL && i < r->field_count; i++) {
        for (uint64_t k = 0; k < r->classes[i].count; k++) leat__free((char *)r->classes[i].names[k]);
        leat__free((char **)r->classes[i].names);
    }
    leat__free(r->classes);
    leat__free(r->fields);
    leat__free(r->values);
    leat__free(r->held);
    Py_XDECREF(r->iterator);
    if (r->object != NULL) { /* closes its files */
        PyObject *none = PyObject_CallMethod(r->object, "close", NULL);
        if (none == NULL) PyErr_Clear();
        Py_XDECREF(none);
    }
    Py_XDECREF(r->object);
    leat__free(r);
}

static void reader_close(void *cookie)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    reader_free(cookie);
    PyGILState_Release(gil);
}

/* Parses (key, None or path, values), or (key, why it cannot be packed). */
static int fill_row(reader *r, leat__row *row)
{
    PyObject *key = PyTuple_GetItem(r->row, 0), *second = PyTuple_GetItem(r->row, 1);
    Py_ssize_t key_size = 0;
    char *text = NULL;
    if (key == NULL || second == NULL || PyBytes_AsStringAndSize(key, &text, &key_size) != 0) return -1;
    row->key = text;
    row->key_size = (size_t)key_size;
    if (PyTuple_Size(r->row) == 2) {
        row->wrong = PyBytes_AsString(second);
        return row->wrong != NULL ? 0 : -1;
    }
    if (second != Py_None && (row->path = PyBytes_AsString(second)) == NULL) return -1;
    PyObject *list = PyTuple_GetItem(r->row, 2);
    memset(r->values, 0, r->field_count * sizeof *r->values);
    for (uint32_t i = 0; list != NULL && i < r->field_count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int rc = item != NULL ? py_value_fill(&r->values[i], &r->held[i], &r->fields[i], item) : -1;
        Py_XDECREF(item); /* the list keeps it alive */
        if (rc != 0) {
            take_exception(r->wrong, sizeof r->wrong);
            row->wrong = r->wrong;
            return 0;
        }
    }
    row->values = r->values;
    return list != NULL ? 0 : -1;
}

static int reader_next(void *cookie, leat__row *row, bool *end, leat_error *err)
{
    reader *r = cookie;
    int rc = 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    drop_row(r);
    r->row = PyIter_Next(r->iterator);
    *end = r->row == NULL && !PyErr_Occurred();
    if (!*end && (r->row == NULL || fill_row(r, row) != 0)) rc = fail_with_exception(err);
    PyGILState_Release(gil);
    return rc;
}

/* Copies the class names of a field. */
static int take_names(leat__reader_classes *to, PyObject *list)
{
    Py_ssize_t n = PySequence_Size(list);
    char **names = n >= 0 ? LEAT_NEW_ARRAY(INGEST, char *, (size_t)n + 1) : NULL;
    to->names = (const char *const *)names;
    for (Py_ssize_t i = 0; names != NULL && i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        PyObject *bytes = item != NULL ? PyUnicode_AsUTF8String(item) : NULL;
        names[i] = bytes != NULL ? leat__strdup(LEAT__MEM_INGEST, PyBytes_AsString(bytes)) : NULL;
        Py_XDECREF(bytes);
        Py_XDECREF(item);
        if (names[i] == NULL) break;
        to->count++;
    }
    if (!PyErr_Occurred() && (names == NULL || to->count != (uint64_t)n)) PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

static int take_classes(reader *r)
{
    PyObject *all = PyObject_GetAttrString(r->object, "classes"); /* a dict: lists of names by field */
    r->classes = LEAT_NEW_ARRAY(INGEST, leat__reader_classes, r->field_count + 1);
    if (all != NULL && r->classes == NULL) PyErr_NoMemory();
    for (uint32_t i = 0; !PyErr_Occurred() && i < r->field_count; i++) {
        PyObject *list = PyDict_GetItemString(all, r->fields[i].name);
        if (list != NULL) (void)take_names(&r->classes[i], list);
    }
    Py_XDECREF(all);
    return PyErr_Occurred() ? -1 : 0;
}

/* Counts the files that the reader leaves out, and copies the name of the first. */
static int take_ignored(const reader *r, leat__reader *to)
{
    PyObject *list = PyObject_GetAttrString(r->object, "ignored");
    Py_ssize_t n = list != NULL ? PySequence_Size(list) : -1;
    PyObject *first = n > 0 ? PySequence_GetItem(list, 0) : NULL, *bytes = NULL;
    if (first != NULL && PyUnicode_FSConverter(first, &bytes))
        snprintf(to->ignored_first, sizeof to->ignored_first, "%s", PyBytes_AsString(bytes));
    if (n > 0) to->ignored = (uint64_t)n;
    Py_XDECREF(bytes);
    Py_XDECREF(first);
    Py_XDECREF(list);
    return PyErr_Occurred() ? -1 : 0;
}

static int take_reader(reader *r, leat__reader *to)
{
    PyObject *fields = PyObject_GetAttrString(r->object, "fields");
    PyObject *kind = fields != NULL ? PyObject_GetAttrString(r->object, "kind") : NULL;
    PyObject *total = kind != NULL ? PyObject_GetAttrString(r->object, "total") : NULL;
    PyObject *word = total != NULL ? PyUnicode_AsUTF8String(kind) : NULL;
    if (word != NULL && py_fields_parse(&r->fields, &r->field_count, fields) == 0 && take_classes(r) == 0 &&
        take_ignored(r, to) == 0) {
        r->iterator = PyObject_CallMethod(r->object, "rows", NULL);
        r->values = LEAT_NEW_ARRAY(INGEST, leat_pack_value, r->field_count + 1);
        r->held = LEAT_NEW_ARRAY(INGEST, py_holding, r->field_count + 1);
        if (r->iterator != NULL && (r->values == NULL || r->held == NULL)) PyErr_NoMemory();
        snprintf(to->kind, sizeof to->kind, "%s", PyBytes_AsString(word));
        to->total = PyLong_AsUnsignedLongLong(total);
    }
    Py_XDECREF(word);
    Py_XDECREF(total);
    Py_XDECREF(kind);
    Py_XDECREF(fields);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *call_hook(const char *const *paths, uint32_t count, const char *members)
{
    PyObject *list = PyList_New(0), *answer = NULL;
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *path = PyUnicode_DecodeFSDefault(paths[i]);
        if (path == NULL || PyList_Append(list, path) != 0) Py_CLEAR(list);
        Py_XDECREF(path);
    }
    if (list != NULL) answer = PyObject_CallFunction(hook, "Oz", list, members);
    Py_XDECREF(list);
    return answer;
}

static int reader_open(leat__reader *to, const char *const *paths, uint32_t count, const char *members,
                       leat_error *err)
{
    int rc = 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    reader *r = LEAT_NEW(INGEST, reader);
    if (r == NULL) {
        rc = leat__fail_nomem(err, sizeof *r, "a reader");
    } else {
        r->object = call_hook(paths, count, members);
        if (r->object == Py_None) {
            Py_CLEAR(r->object);
            rc = LEAT_EAGAIN;
        } else if (r->object == NULL || take_reader(r, to) != 0) {
            rc = fail_with_exception(err);
        }
    }
    if (rc != 0) {
        if (r != NULL) reader_free(r);
    } else {
        to->fields = r->fields;
        to->field_count = r->field_count;
        to->classes = r->classes;
        to->cookie = r;
        to->next = reader_next;
        to->close = reader_close;
    }
    PyGILState_Release(gil);
    return rc;
}

typedef struct telling {
    const leat_export_opts *opts;
    bool stopped;
} telling;

/* tell(done, total, bytes): reports progress; returns True when the export must stop. */
static PyObject *tell(PyObject *self, PyObject *args)
{
    telling *t = PyCapsule_GetPointer(self, NULL);
    unsigned long long done, total, bytes;
    if (t == NULL || !PyArg_ParseTuple(args, "KKK", &done, &total, &bytes)) return NULL;
    const leat_export_opts *o = t->opts;
    if (o->progress && o->progress(o->cookie, done, total, bytes, 0) != 0) t->stopped = true;
    return PyBool_FromLong(t->stopped);
}

/* Calls writer(pack, folder, keys, replace, shard_bytes, select, tell). */
static PyObject *call_writer(telling *t)
{
    static PyMethodDef method = {"tell", tell, METH_VARARGS, NULL};
    const leat_export_opts *o = t->opts;
    PyObject *pack = PyUnicode_DecodeFSDefault(o->pack), *folder = PyUnicode_DecodeFSDefault(o->folder);
    PyObject *self = PyCapsule_New(t, NULL, NULL), *answer = NULL;
    PyObject *call = self != NULL ? PyCFunction_NewEx(&method, self, NULL) : NULL;
    if (pack != NULL && folder != NULL && call != NULL)
        answer = PyObject_CallFunction(writer, "OOziKzO", pack, folder, o->keys, (int)o->replace,
                                       (unsigned long long)o->shard_bytes, o->select, call);
    Py_XDECREF(call);
    Py_XDECREF(self);
    Py_XDECREF(folder);
    Py_XDECREF(pack);
    return answer;
}

/* Writes tables. The writer returns (samples, files, bytes) of complete files. */
static int write_table(const leat_export_opts *o, leat_export_stats *stats, leat_error *err)
{
    unsigned long long samples = 0, files = 0, bytes = 0;
    int rc = 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    telling t = {.opts = o};
    PyObject *answer = call_writer(&t);
    if (answer == NULL || !PyArg_ParseTuple(answer, "KKK", &samples, &files, &bytes))
        rc = fail_with_exception(err);
    else if (t.stopped) rc = leat__fail(err, LEAT_ECANCELED, "export was stopped");
    *stats = (leat_export_stats){.samples = samples, .files = files, .bytes = bytes};
    Py_XDECREF(answer);
    PyGILState_Release(gil);
    return rc;
}

/* check_shard(path): raises unless the path is free or a Parquet file of leat.export. */
PyObject *py_check_shard(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *path;
    int rc;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS rc = leat__shard_replaceable(name, false, &err);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* set_reader(opener, writer): opener(paths, members) returns a reader, or None for unknown formats; writer
 * writes tables. */
PyObject *py_set_reader(PyObject *module, PyObject *args)
{
    PyObject *opener, *tables, *old[2] = {hook, writer};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &opener, &tables)) return NULL;
    Py_INCREF(opener);
    Py_INCREF(tables);
    hook = opener;
    writer = tables;
    Py_XDECREF(old[0]);
    Py_XDECREF(old[1]);
    leat__reader_register(reader_open);
    leat__table_writer_register(write_table);
    Py_RETURN_NONE;
}

/* Reads a stream to its end; returns bytes. */
static PyObject *drain(leat__stream *s)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__buf all;
    size_t got = 0;
    int rc;
    leat__buf_init(&all, LEAT__MEM_INGEST, SIZE_MAX / 4);
    Py_BEGIN_ALLOW_THREADS do
    {
        size_t at = all.len;
        rc = leat__buf_zeros(&all, 1u << 20);
        if (rc == 0) rc = leat__stream_read(s, all.data + at, 1u << 20, &got, &err);
        else leat__fail_nomem(&err, all.len, "a file");
        if (rc == 0) all.len = at + got;
    }
    while (rc == 0 && got == 1u << 20)
        ;
    Py_END_ALLOW_THREADS PyObject *bytes =
        rc == 0 ? PyBytes_FromStringAndSize(all.data, (Py_ssize_t)all.len) : py_raise(&err);
    leat__buf_reset(&all);
    return bytes;
}

/* read_file(path): returns all bytes of a local or remote file, decompressed if gzip or zstd. */
PyObject *py_read_file(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__stream *s = NULL;
    PyObject *path, *bytes;
    int rc;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS rc = leat__stream_open(&s, name, &err);
    Py_END_ALLOW_THREADS bytes = rc == 0 ? drain(s) : py_raise(&err);
    leat__stream_close(&s);
    Py_DECREF(path);
    return bytes;
}

/* Writes all of a piece. */
static int write_piece(int fd, const char *data, size_t len, leat_error *err)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return leat__fail(err, LEAT_EIO, "a temporary file cannot be written: %s", strerror(errno));
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int copy_to(int fd, const leat__file *file, uint64_t size, leat_error *err)
{
    char *piece = leat__alloc(LEAT__MEM_INGEST, PIECE);
    int rc = piece == NULL ? leat__fail_nomem(err, PIECE, "a piece of a file") : 0;
    for (uint64_t at = 0; rc == 0 && at < size; at += PIECE) {
        size_t len = (size_t)(size - at < PIECE ? size - at : PIECE);
        rc = leat__file_pread(file, piece, len, at, err);
        if (rc == 0) rc = write_piece(fd, piece, len, err);
    }
    leat__free(piece);
    return rc;
}

/* stage_file(path, fd, limit): copies the bytes of a remote file unchanged. */
PyObject *py_stage_file(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__file *file = NULL;
    unsigned long long limit;
    uint64_t size = 0;
    PyObject *path;
    int fd, rc;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&iK", PyUnicode_FSConverter, &path, &fd, &limit)) return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS rc = leat__file_open(&file, name, LEAT__FILE_READ, &err);
    if (rc == 0) size = leat__file_size_at_open(file);
    if (rc == 0 && size <= limit) rc = copy_to(fd, file, size, &err);
    leat__file_close(&file);
    Py_END_ALLOW_THREADS Py_DECREF(path);
    return rc == 0 ? PyLong_FromUnsignedLongLong(size) : py_raise(&err);
}

/* The first `limit` names in a folder of a bucket, concatenated. */
typedef struct names {
    leat__buf text;
    size_t prefix, limit, count;
} names;

static int add_name(void *cookie, const leat__object *o, leat_error *err)
{
    names *n = cookie;
    if (strlen(o->key) <= n->prefix) return 0; /* the marker of the folder itself */
    if (n->count == n->limit) return leat__fail(err, LEAT_ECANCELED, "enough");
    n->count++;
    int rc = leat__buf_append(&n->text, o->key + n->prefix, strlen(o->key + n->prefix) + 1);
    return rc == 0 ? 0 : leat__fail_nomem(err, n->text.len, "names");
}

static int list_names(const char *path, names *n, leat_error *err)
{
    leat__store *store = NULL;
    leat__url url;
    int rc;
    LEAT_TRY(leat__url_parse(&url, path, err));
    n->prefix = strlen(url.key);
    LEAT_GO(rc, out, leat__store_open(&store, path, err));
    rc = leat__object_list(store, path, true, add_name, n, err);
out:
    leat__store_close(&store);
    return rc == LEAT_ECANCELED && n->count == n->limit ? 0 : rc;
}

/* list_folder(path, limit): returns the names in a folder of a bucket. Paths and names of folders end
 * with '/'. */
PyObject *py_list_folder(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long limit;
    names n = {.count = 0};
    PyObject *path;
    int rc;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &path, &limit)) return NULL;
    const char *name = PyBytes_AsString(path);
    n.limit = (size_t)limit;
    leat__buf_init(&n.text, LEAT__MEM_INGEST, SIZE_MAX / 4);
    Py_BEGIN_ALLOW_THREADS rc = list_names(name, &n, &err);
    Py_END_ALLOW_THREADS PyObject *list = rc == 0 ? PyList_New((Py_ssize_t)n.count) : py_raise(&err);
    const char *at = n.text.data;
    for (size_t i = 0; list != NULL && i < n.count; i++, at += strlen(at) + 1) {
        PyObject *one = PyUnicode_DecodeFSDefault(at);
        if (one == NULL || PyList_SetItem(list, (Py_ssize_t)i, one) != 0) Py_CLEAR(list);
    }
    leat__buf_reset(&n.text);
    Py_DECREF(path);
    return list;
}

/* file_tail(path, bytes): returns the end of a file, or all of a smaller one. */
PyObject *py_file_tail(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__file *file = NULL;
    unsigned long long bytes;
    PyObject *path, *tail = NULL;
    int rc;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &path, &bytes)) return NULL;
    const char *name = PyBytes_AsString(path);
    uint64_t size = 0;
    Py_BEGIN_ALLOW_THREADS rc = leat__file_open(&file, name, LEAT__FILE_READ, &err);
    if (rc == 0) size = leat__file_size_at_open(file);
    Py_END_ALLOW_THREADS uint64_t len = size < bytes ? size : bytes;
    if (rc == 0) tail = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    if (tail != NULL) {
        char *to = PyBytes_AsString(tail);
        Py_BEGIN_ALLOW_THREADS rc = leat__file_pread(file, to, (size_t)len, size - len, &err);
        Py_END_ALLOW_THREADS
    }
    leat__file_close(&file);
    Py_DECREF(path);
    if (rc == 0) return tail;
    Py_XDECREF(tail);
    return py_raise(&err);
}

/* decompress(name, data): decompresses gzip or zstd; returns other bytes unchanged. `name` is for
 * messages. */
PyObject *py_decompress(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__stream *s = NULL;
    const char *name;
    Py_buffer data;
    (void)module;
    if (!PyArg_ParseTuple(args, "sy*", &name, &data)) return NULL;
    int rc = leat__stream_open_memory(&s, name, data.buf, (size_t)data.len, &err);
    PyObject *bytes = rc == 0 ? drain(s) : py_raise(&err);
    leat__stream_close(&s);
    PyBuffer_Release(&data);
    return bytes;
}
