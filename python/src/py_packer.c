/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a pack: used by leat.Writer (leat/_writer.py). Python passes each sample as a list of values that
 * already have the right types for their fields.
 */
#include "py_leat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "ingest/bucket_pack.h"
#include "ingest/pack_origin.h"
#include "io/url.h"
#include "pack/packer.h"

typedef struct py_packer {
    PyObject_HEAD leat_packer *packer; /* NULL when closed, and with `sent_only` */
    char *path;                        /* owned; for a bucket: the local file that is written first */
    char *remote;                      /* NULL, or the path in a bucket */
    leat__bucket_pack stage;           /* the upload to a bucket */
    leat_log log;                      /* of `stage` */
    char *warning;                     /* owned: the last line of the log, until the warning is issued */
    bool sent_only;                    /* an earlier run finished the pack: only its upload is missing */
    uint64_t written;                  /* number of samples in that pack */
    uint64_t identity;                 /* hash of fields and options, for a bucket */
    pid_t made_by;
    bool busy; /* a thread is inside without the GIL */
    uint32_t field_count;
    leat_field *fields; /* names are owned */
} py_packer;

#define SIDE_MAX 1000000 /* the same limit as for files */

/* Raises leat.ArgumentError and returns -1. */
static int wrong(const char *format, ...)
{
    leat_error err = {.code = LEAT_EINVAL, .sample = -1, .offset = -1};
    va_list args;
    va_start(args, format);
    vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    py_raise(&err);
    return -1;
}

/* ---- fields --------------------------------------------------------------------------------- */

static uint32_t type_find(const char *name)
{
    for (uint32_t t = 1; leat_field_type_name(t) != NULL; t++) {
        if (strcmp(name, leat_field_type_name(t)) == 0) return t;
    }
    return 0;
}

static int parse_shape(leat_field *f, PyObject *shape)
{
    Py_ssize_t n = PySequence_Size(shape);
    if (n < 0) return -1;
    if (n > LEAT_NDIM_MAX) {
        return wrong("field '%s': at most %d dimensions", f->name, LEAT_NDIM_MAX);
    }
    f->ndim = (uint32_t)n;
    for (Py_ssize_t d = 0; d < n; d++) {
        PyObject *item = PySequence_GetItem(shape, d);
        f->shape[d] = item != NULL ? PyLong_AsUnsignedLongLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

/* Parses (name, type, dtype or None, shape, ndim). */
static int parse_field(leat_field *f, PyObject *row)
{
    const char *name, *type, *dtype;
    PyObject *shape;
    unsigned ndim;

    if (!PyArg_ParseTuple(row, "sszOI", &name, &type, &dtype, &shape, &ndim)) return -1;
    f->name = leat__strdup(LEAT__MEM_PACK, name);
    if (f->name == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    f->type = type_find(type);
    f->dtype = dtype != NULL ? py_dtype_find(dtype) : LEAT_DTYPE_NONE;
    if (f->type == 0 || (dtype != NULL && f->dtype == LEAT_DTYPE_NONE)) {
        return wrong("field '%s': there is no type '%s'", name, f->type == 0 ? type : dtype);
    }
    f->ndim = ndim;
    return shape != Py_None ? parse_shape(f, shape) : 0;
}

int py_fields_parse(leat_field **fields, uint32_t *count, PyObject *list)
{
    Py_ssize_t n = PySequence_Size(list);
    if (n < 0) return -1;
    *fields = LEAT_NEW_ARRAY(PACK, leat_field, (size_t)n + 1);
    if (*fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *row = PySequence_GetItem(list, i);
        ++*count;
        int rc = row != NULL ? parse_field(&(*fields)[i], row) : -1;
        Py_XDECREF(row);
        if (rc != 0) return -1;
    }
    return 0;
}

/* ---- open, close ------------------------------------------------------------------------------ */

static void packer_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    py_packer *self = (py_packer *)o;
    if (self->made_by == getpid()) leat_packer_close(&self->packer);
    for (uint32_t i = 0; i < self->field_count; i++) leat__free((char *)self->fields[i].name);
    leat__free(self->fields);
    if (self->remote != NULL) leat__bucket_pack_close(&self->stage);
    leat__free(self->warning);
    leat__free(self->remote);
    leat__free(self->path);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static int count_written(py_packer *self, leat_error *err)
{
    leat_pack *pack;
    leat_pack_info info;
    LEAT_TRY(leat_pack_open(&pack, self->path, NULL, err));
    int rc = leat_pack_info_read(pack, &info, sizeof info);
    self->written = info.samples;
    self->sent_only = true;
    leat_pack_close(&pack);
    return rc;
}

/* Checks that a finished pack, which waits for its upload, has the same fields and options. */
static int check_origin(const py_packer *self, leat_error *err)
{
    leat__origin was;
    if (!leat__origin_read(self->stage.origin, &was))
        return leat__fail(
            err, LEAT_ESTATE,
            "%.200s: the finished pack in %.200s, not yet uploaded, does not record its source; "
            "start again without resume",
            self->remote, self->stage.folder);
    if (was.identity == self->identity) return 0;
    return leat__fail(
        err, LEAT_ESTATE,
        "%.200s: the unfinished upload has other fields, classes, provenance or sizes; start again "
        "without resume",
        self->remote);
}

/* Keeps a line of the log; the thread has no GIL. */
static void keep_warning(void *cookie, leat_log_level level, const char *line)
{
    py_packer *self = cookie;
    (void)level;
    leat__free(self->warning);
    self->warning = leat__strdup(LEAT__MEM_PACK, line);
}

/* Issues the warning that was kept. Returns -1 with an exception when a filter makes it one. */
static int warn(py_packer *self)
{
    char *line = self->warning;
    self->warning = NULL;
    int rc = line != NULL ? PyErr_WarnEx(PyExc_RuntimeWarning, line, 2) : 0;
    leat__free(line);
    return rc;
}

/* Opens a pack for a bucket: it is written to a local folder and uploaded by finish(). */
static int open_remote(py_packer *self, leat_packer_opts *opts, leat_error *err)
{
    self->remote = self->path;
    self->path = NULL;
    if (opts->append) return leat_packer_open(&self->packer, self->remote, opts, err); /* fails */
    LEAT_TRY(leat__url_named(self->remote, err));
    LEAT_TRY(leat__bucket_pack_open(&self->stage, self->remote, opts->replace != 0, opts->resume != 0, err));
    self->log = (leat_log){.write = keep_warning, .cookie = self, .level = LEAT_LOG_WARN};
    self->stage.log = &self->log;
    self->path = leat__strdup(LEAT__MEM_PACK, self->stage.path);
    if (self->path == NULL) return leat__fail_nomem(err, strlen(self->stage.path), "a path");
    LEAT_TRY(leat__packer_identity(opts, &self->identity, err));
    if (opts->resume && leat__bucket_pack_ready(&self->stage)) {
        LEAT_TRY(check_origin(self, err));
        return count_written(self, err);
    }
    if (!opts->resume) leat__bucket_pack_forget(&self->stage);
    opts->replace = !opts->resume; /* an existing file is from an earlier run for the same path */
    return leat_packer_open(&self->packer, self->path, opts, err);
}

static PyObject *packer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",   "fields",  "page_bytes", "shard_bytes", "provenance", "identity",
                            "resume", "replace", "sync",       "append",      NULL};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long page_bytes = 0, shard_bytes = 0, identity = 0;
    int resume = 0, replace = 0, sync = 1, append = 0, rc;
    PyObject *path, *fields;
    const char *provenance = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O|KKzKpppp", names, PyUnicode_FSConverter, &path,
                                     &fields, &page_bytes, &shard_bytes, &provenance, &identity, &resume,
                                     &replace, &sync, &append))
        return NULL;
    py_packer *self = (py_packer *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) goto out;
    self->made_by = getpid();
    if (py_fields_parse(&self->fields, &self->field_count, fields) != 0) {
        Py_CLEAR(self);
        goto out;
    }
    opts.field_count = self->field_count;
    opts.fields = self->fields;
    opts.page_bytes = page_bytes;
    opts.shard_bytes = shard_bytes;
    opts.provenance = provenance;
    opts.identity = identity;
    opts.resume = (uint32_t)resume;
    opts.replace = (uint32_t)replace;
    opts.no_sync = !sync;
    opts.append = (uint32_t)append;
    const char *name = PyBytes_AsString(path);
    self->path = leat__strdup(LEAT__MEM_PACK, name);
    if (self->path == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(self);
        goto out;
    }
    Py_BEGIN_ALLOW_THREADS rc = leat__path_remote(name) ? open_remote(self, &opts, &err)
                                                        : leat_packer_open(&self->packer, name, &opts, &err);
    Py_END_ALLOW_THREADS if (rc != 0) py_raise(&err);
    if (rc != 0 || warn(self) != 0) Py_CLEAR(self);
out:
    Py_DECREF(path);
    return (PyObject *)self;
}

static bool enter(py_packer *self)
{
    leat_error err = {.code = LEAT_ESTATE, .sample = -1, .offset = -1};

    if (!py_same_process(self->made_by, "writer")) return false;
    if (self->packer != NULL && !self->busy) {
        self->busy = true;
        return true;
    }
    if (self->packer == NULL && !self->sent_only) err.code = LEAT_ECLOSED;
    snprintf(err.message, sizeof err.message, "%s",
             self->busy        ? "another thread is using this writer"
             : self->sent_only ? "the pack is complete, only its upload is missing: close() uploads it"
                               : "the writer is closed");
    py_raise(&err);
    return false;
}

static PyObject *packer_close(PyObject *o, PyObject *args)
{
    py_packer *self = (py_packer *)o;
    leat_error err = {.sample = -1, .offset = -1};
    int discard = 0, rc = 0;
    if (!PyArg_ParseTuple(args, "|p", &discard)) return NULL;
    if (self->sent_only) { /* the pack stays here for the next attempt */
        self->sent_only = false;
        if (!self->busy) leat__bucket_pack_unlock(&self->stage);
        Py_RETURN_NONE;
    }
    if (self->packer == NULL) Py_RETURN_NONE;
    if (!enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS leat_packer_close(&self->packer);
    if (discard && self->remote != NULL) leat__bucket_pack_forget(&self->stage);
    if (discard) rc = leat_packer_discard(self->path, &err);
    if (self->remote != NULL) leat__bucket_pack_unlock(&self->stage);
    Py_END_ALLOW_THREADS self->busy = false;
    if (rc != 0) return py_raise(&err);
    if (warn(self) != 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int hold(py_holding *h, PyObject *o)
{
    if (PyObject_GetBuffer(o, &h->view, PyBUF_CONTIG_RO) != 0) return -1;
    h->viewed = true;
    return 0;
}

void py_value_drop(py_holding *h)
{
    if (h->viewed) PyBuffer_Release(&h->view);
    leat__free(h->block);
    *h = (py_holding){0};
}

/* Returns the type of pixels from the format of a buffer: uint8, uint16 or float32; else none. */
static uint32_t pixel_dtype(const Py_buffer *view)
{
    const char *format = view->format != NULL ? view->format : "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (strcmp(format, "B") == 0) return LEAT_DTYPE_U8;
    if (strcmp(format, "H") == 0) return LEAT_DTYPE_U16;
    return strcmp(format, "f") == 0 ? LEAT_DTYPE_F32 : LEAT_DTYPE_NONE;
}

/* Converts an image: bytes are an encoded image, an array with two or three dimensions is pixels. */
static int image_value(leat_pack_value *v, py_holding *h, PyObject *o)
{
    leat_error err = {.sample = -1, .offset = -1};
    uint32_t height = 0, width = 0, channels = 1;

    if (PyObject_GetBuffer(o, &h->view, PyBUF_CONTIG_RO | PyBUF_ND | PyBUF_FORMAT) != 0) return -1;
    h->viewed = true;
    if (h->view.ndim <= 1) {
        v->data = h->view.buf;
        v->size = (size_t)h->view.len;
        if (py_image_describe(v->data, v->size, &v->image, &err) == 0) return 0;
        py_raise(&err);
        return -1;
    }
    const Py_ssize_t *shape = h->view.shape;
    for (int d = 0; d < h->view.ndim && h->view.ndim <= 3; d++) {
        if (shape[d] < 1) goto refused;
        if (d < 2 && shape[d] > SIDE_MAX)
            return wrong("an image may have at most %d pixels per side; the %s is %zd", SIDE_MAX,
                         d == 0 ? "height" : "width", shape[d]);
    }
    const uint32_t dtype = pixel_dtype(&h->view);
    if (h->view.ndim > 3 || dtype == LEAT_DTYPE_NONE) goto refused;
    height = (uint32_t)shape[0];
    width = (uint32_t)shape[1];
    if (h->view.ndim == 3 && shape[2] > 16) goto refused;
    if (h->view.ndim == 3) channels = (uint32_t)shape[2];
    if (py_image_raw(h->view.buf, height, width, channels, dtype, &h->block, &v->size, &err) != 0) {
        py_raise(&err);
        return -1;
    }
    v->data = h->block;
    if (py_image_describe(v->data, v->size, &v->image, &err) != 0) {
        py_raise(&err);
        return -1;
    }
    v->image.flags &= (uint8_t)~LEAT_PACK_IMAGE_UNCHECKED;
    return 0;
refused:
    return wrong("pixels must be uint8, uint16 or float32, height x width x channels, with 1 to 16 channels");
}

static int array_value(leat_pack_value *v, py_holding *h, const leat_field *f, PyObject *o)
{
    if (PyObject_GetBuffer(o, &h->view, PyBUF_CONTIG_RO | PyBUF_ND) != 0) return -1;
    h->viewed = true;
    bool same = (uint32_t)h->view.ndim == f->ndim && h->view.itemsize == leat_dtype_size(f->dtype);
    for (uint32_t d = 0; same && d < f->ndim; d++) {
        v->shape[d] = (uint64_t)h->view.shape[d];
        if (f->type == LEAT_FIELD_ARRAY && v->shape[d] != f->shape[d]) same = false;
    }
    if (!same) {
        return wrong("field '%s': the array does not have the field's shape and element type", f->name);
    }
    v->data = h->view.buf;
    v->size = (size_t)h->view.len;
    return 0;
}

int py_value_fill(leat_pack_value *v, py_holding *h, const leat_field *f, PyObject *o)
{
    if (o == Py_None && f->type != LEAT_FIELD_INT && f->type != LEAT_FIELD_FLOAT) {
        v->absent = 1;
        return 0;
    }
    switch (f->type) {
    case LEAT_FIELD_INT: v->i = PyLong_AsLongLong(o); return PyErr_Occurred() ? -1 : 0;
    case LEAT_FIELD_FLOAT: v->f = PyFloat_AsDouble(o); return PyErr_Occurred() ? -1 : 0;
    case LEAT_FIELD_IMAGE: return image_value(v, h, o);
    case LEAT_FIELD_ARRAY:
    case LEAT_FIELD_RAGGED: return array_value(v, h, f, o);
    default:
        if (hold(h, o) != 0) return -1;
        v->data = h->view.buf;
        v->size = (size_t)h->view.len;
        return 0;
    }
}

static bool fill_sample(py_packer *self, leat_pack_value *values, py_holding *held, PyObject *list)
{
    for (uint32_t i = 0; i < self->field_count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int rc = item != NULL ? py_value_fill(&values[i], &held[i], &self->fields[i], item) : -1;
        Py_XDECREF(item); /* the list keeps it alive */
        if (rc != 0) return false;
    }
    return true;
}

static PyObject *packer_append(PyObject *o, PyObject *args)
{
    py_packer *self = (py_packer *)o;
    leat_error err = {.sample = -1, .offset = -1};
    leat_pack_sample sample = {0};
    const char *key;
    Py_ssize_t key_size;
    PyObject *list;
    int rc = -1;

    if (!PyArg_ParseTuple(args, "y#O", &key, &key_size, &list)) return NULL;
    if (!enter(self)) return NULL;
    leat_pack_value *values = LEAT_NEW_ARRAY(PACK, leat_pack_value, self->field_count + 1);
    py_holding *held = LEAT_NEW_ARRAY(PACK, py_holding, self->field_count + 1);
    if (values == NULL || held == NULL) {
        PyErr_NoMemory();
    } else if (fill_sample(self, values, held, list)) {
        sample.key = key;
        sample.key_size = (size_t)key_size;
        sample.values = values;
        Py_BEGIN_ALLOW_THREADS rc = leat_packer_append(self->packer, &sample, &err);
        Py_END_ALLOW_THREADS if (rc != 0) py_raise(&err);
    }
    for (uint32_t i = 0; held != NULL && i < self->field_count; i++) py_value_drop(&held[i]);
    leat__free(held);
    leat__free(values);
    self->busy = false;
    if (rc != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *packer_classes(PyObject *o, PyObject *args)
{
    py_packer *self = (py_packer *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned field;
    PyObject *list;
    int rc = LEAT_ENOMEM;

    if (!PyArg_ParseTuple(args, "IO", &field, &list)) return NULL;
    Py_ssize_t n = PyList_Size(list);
    /* the finished pack already has them: the identity covers class names */
    if (n >= 0 && self->sent_only) Py_RETURN_NONE;
    if (n < 0 || !enter(self)) return NULL;
    const char **names = LEAT_NEW_ARRAY(PACK, const char *, (size_t)n + 1);
    for (Py_ssize_t i = 0; names != NULL && i < n; i++) {
        names[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (names[i] == NULL) goto out;
    }
    if (names != NULL) rc = leat_packer_classes(self->packer, field, names, (uint64_t)n, &err);
    else leat__fail_nomem(&err, (uint64_t)n * 8, "class names");
    if (rc != 0) py_raise(&err);
out:
    leat__free(names);
    self->busy = false;
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *stats_dict(const leat_packer_stats *stats)
{
    return Py_BuildValue("{sK sK sK sK sK sK}", "samples", (unsigned long long)stats->samples, "pages",
                         (unsigned long long)stats->pages, "shards", (unsigned long long)stats->shards,
                         "payload_bytes", (unsigned long long)stats->payload_bytes, "bytes_out",
                         (unsigned long long)stats->file_bytes, "duplicate_keys",
                         (unsigned long long)stats->duplicate_keys);
}

/* Called during an upload: a signal handler that raises (Ctrl-C) stops it. */
static int on_sent(void *cookie, uint64_t done, uint64_t total)
{
    (void)cookie, (void)done, (void)total;
    PyGILState_STATE gil = PyGILState_Ensure();
    int stop = PyErr_CheckSignals() != 0;
    PyGILState_Release(gil);
    return stop;
}

static PyObject *packer_finish(PyObject *o, PyObject *unused)
{
    py_packer *self = (py_packer *)o;
    leat_error err = {.sample = -1, .offset = -1};
    leat_packer_stats stats = {0};
    int rc;

    (void)unused;
    stats.samples = self->written;
    if (self->sent_only && !self->busy) self->busy = true;
    else if (!enter(self)) return NULL;
    const leat__origin origin = {.identity = self->identity};
    Py_BEGIN_ALLOW_THREADS rc = 0;
    if (self->remote != NULL && !self->sent_only) rc = leat__origin_write(self->stage.origin, &origin, &err);
    if (rc == 0 && !self->sent_only) rc = leat_packer_finish(self->packer, &stats, &err);
    if (rc == 0) leat_packer_close(&self->packer);
    if (rc == 0 && self->remote != NULL) {
        rc = leat__bucket_pack_publish(&self->stage, on_sent, NULL, &err);
        self->sent_only = rc != 0; /* finish() may be called again */
    }
    Py_END_ALLOW_THREADS self->busy = false;
    if (PyErr_Occurred()) return NULL; /* raised by a signal handler */
    if (rc != 0) return py_raise(&err);
    if (warn(self) != 0) return NULL;
    return stats_dict(&stats);
}

/* Deletes the samples with this key from the pack being appended to; returns their number. */
static PyObject *packer_drop(PyObject *o, PyObject *args)
{
    py_packer *self = (py_packer *)o;
    leat_error err = {.sample = -1, .offset = -1};
    const char *key;
    Py_ssize_t size;
    uint64_t count = 0;
    int rc;

    if (!PyArg_ParseTuple(args, "y#", &key, &size)) return NULL;
    if (!enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_packer_drop(self->packer, key, (size_t)size, &count, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    return rc == 0 ? PyLong_FromUnsignedLongLong(count) : py_raise(&err);
}

static PyObject *packer_resumed(PyObject *o, PyObject *unused)
{
    py_packer *self = (py_packer *)o;
    uint64_t marks[LEAT_PACKER_MARKS];

    (void)unused;
    if (self->sent_only) return PyLong_FromUnsignedLongLong(self->written);
    if (!enter(self)) return NULL;
    uint64_t n = leat_packer_resumed(self->packer, marks);
    self->busy = false;
    return PyLong_FromUnsignedLongLong(n);
}

PyObject *py_compact(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "output", "shard_bytes", "replace", "sync", NULL};
    leat_pack_compact_opts opts = {.struct_size = sizeof opts};
    leat_error err = {.sample = -1, .offset = -1};
    leat_packer_stats stats = {0};
    unsigned long long shard_bytes = 0;
    int replace = 0, sync = 1, rc;
    PyObject *path = NULL, *output = NULL, *given = Py_None;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|OKpp", names, PyUnicode_FSConverter, &path, &given,
                                     &shard_bytes, &replace, &sync))
        return NULL;
    if (given != Py_None && !PyUnicode_FSConverter(given, &output)) {
        Py_DECREF(path);
        return NULL;
    }
    const char *from = PyBytes_AsString(path);
    opts.output = output != NULL ? PyBytes_AsString(output) : NULL;
    opts.shard_bytes = shard_bytes;
    opts.replace = (uint32_t)replace;
    opts.no_sync = !sync;
    Py_BEGIN_ALLOW_THREADS rc = leat_pack_compact(from, &opts, &stats, &err);
    Py_END_ALLOW_THREADS Py_XDECREF(output);
    Py_DECREF(path);
    return rc == 0 ? stats_dict(&stats) : py_raise(&err);
}

static PyMethodDef packer_methods[] = {
    {"append", packer_append, METH_VARARGS, "append(key, values): one sample."},
    {"classes", packer_classes, METH_VARARGS, "classes(field, names): names of an int field's values."},
    {"drop", packer_drop, METH_VARARGS,
     "drop(key): drops samples of the pack that is appended to; returns how many."},
    {"finish", packer_finish, METH_NOARGS, "Writes the index; the pack is complete when this returns."},
    {"resumed", packer_resumed, METH_NOARGS, "Samples that were already stored when writing resumed."},
    {"close", packer_close, METH_VARARGS,
     "close(discard=False): stops without finishing; the samples written so far can be resumed unless "
     "discarded."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot packer_slots[] = {
    {Py_tp_new, packer_new},
    {Py_tp_dealloc, packer_dealloc},
    {Py_tp_doc, "A pack being written; use leat.Writer."},
    {Py_tp_methods, packer_methods},
    {0, NULL},
};

static PyType_Spec packer_spec = {
    .name = "leat._leat.Packer",
    .basicsize = sizeof(py_packer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = packer_slots,
};

int py_packer_register(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &packer_spec, NULL);
    int rc = type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return rc;
}
