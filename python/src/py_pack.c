/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a pack: used by leat.Dataset (leat/_dataset.py). Values are returned as plain Python objects, which
 * are interpreted there.
 */
#include "py_leat.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/tile/tile.h"
#include "pack/kind.h"

typedef struct py_pack {
    PyObject_HEAD py_pack_handle *handle; /* NULL when closed */
} py_pack;

/* ---- the handle ----------------------------------------------------------------------------- */

void py_pack_ref(py_pack_handle *h)
{
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void py_pack_drop(py_pack_handle *h)
{
    if (h == NULL || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1) return;
    leat__tile_tables_close((leat__tile_tables **)&h->tables);
    leat_pack_close(&h->pack);
    leat__free(h);
}

static int open_tables(py_pack_handle *h, leat_error *err)
{
    const void *blob;
    size_t size;

    int rc = leat_pack_blob(h->pack, "tile-tables", &blob, &size, err);
    if (rc == LEAT_ENOENT) return 0;
    LEAT_TRY(rc);
    return leat__tile_tables_open((leat__tile_tables **)&h->tables, blob, size, err);
}

static PyObject *pack_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "verify", NULL};
    leat_pack_opts opts = LEAT_PACK_OPTS_INIT;
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *path;
    int verify = 1, rc;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|p", names, PyUnicode_FSConverter, &path, &verify))
        return NULL;
    py_pack_handle *h = LEAT_NEW(PACK, py_pack_handle);
    py_pack *self = NULL;
    if (h == NULL) {
        PyErr_NoMemory();
        goto out;
    }
    atomic_init(&h->refs, 1);
    h->made_by = getpid();
    opts.no_verify = !verify;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS rc = leat_pack_open(&h->pack, name, &opts, &err);
    if (rc == 0) rc = open_tables(h, &err);
    Py_END_ALLOW_THREADS if (rc != 0 || PyErr_Occurred()) /* by a signal handler */
    {
        py_raise(&err);
        goto out;
    }
    self = (py_pack *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self != NULL) {
        self->handle = h;
        h = NULL;
    }
out:
    py_pack_drop(h);
    Py_DECREF(path);
    return (PyObject *)self;
}

static void pack_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_pack_drop(((py_pack *)self)->handle);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Returns the open pack with a reference for the caller; raises when it was closed. Packs are only
 * read, with pread, so a forked child may keep using them. */
static py_pack_handle *enter(PyObject *self)
{
    py_pack_handle *h = ((py_pack *)self)->handle;
    if (h == NULL) {
        leat_error err = {.code = LEAT_ECLOSED, .sample = -1, .offset = -1, .message = "the pack is closed"};
        py_raise(&err);
        return NULL;
    }
    py_pack_ref(h);
    return h;
}

static PyObject *pack_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_pack_drop(((py_pack *)self)->handle);
    ((py_pack *)self)->handle = NULL;
    Py_RETURN_NONE;
}

/* ---- facts ---------------------------------------------------------------------------------- */

static Py_ssize_t pack_len(PyObject *self)
{
    py_pack_handle *h = enter(self);
    if (h == NULL) return -1;
    Py_ssize_t n = (Py_ssize_t)leat_pack_count(h->pack);
    py_pack_drop(h);
    return n;
}

static PyObject *pack_info(PyObject *self, PyObject *unused)
{
    leat_pack_info info = {0};

    (void)unused;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    (void)leat_pack_info_read(h->pack, &info, sizeof info);
    const char *path = leat_pack_path(h->pack);
    PyObject *name = py_text(path, strlen(path)), *dict = NULL;
    if (name != NULL)
        dict = Py_BuildValue(
            "{sN sK sK sK sI sK sK sK sK sK s(II)}", "path", name, "samples",
            (unsigned long long)info.samples, "pages", (unsigned long long)info.pages, "bytes",
            (unsigned long long)info.bytes, "shards", (unsigned)info.shards, "page_bytes",
            (unsigned long long)info.page_bytes, "max_page_bytes", (unsigned long long)info.max_page_bytes,
            "max_sample_bytes", (unsigned long long)info.max_sample_bytes, "fingerprint",
            (unsigned long long)info.fingerprint, "dropped", (unsigned long long)info.dropped, "version",
            (unsigned)info.version_major, (unsigned)info.version_minor);
    py_pack_drop(h);
    return dict;
}

static PyObject *shape_tuple(const uint64_t *shape, uint32_t ndim)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (uint32_t d = 0; tuple != NULL && d < ndim; d++) {
        PyObject *n = PyLong_FromUnsignedLongLong(shape[d]);
        if (n == NULL || PyTuple_SetItem(tuple, d, n) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

/* Returns (name, type, dtype or None, shape or None, ndim) of each field. */
static PyObject *pack_fields(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    uint32_t n = leat_pack_field_count(h->pack);
    PyObject *list = PyList_New(n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        const leat_field *f = leat_pack_field(h->pack, i);
        PyObject *shape = f->type == LEAT_FIELD_ARRAY ? shape_tuple(f->shape, f->ndim) : Py_NewRef(Py_None);
        PyObject *row = NULL;
        if (shape != NULL)
            row = Py_BuildValue("(sszNI)", f->name, leat_field_type_name(f->type), py_dtype_name(f->dtype),
                                shape, (unsigned)f->ndim);
        if (row == NULL || PyList_SetItem(list, i, row) != 0) Py_CLEAR(list);
    }
    py_pack_drop(h);
    return list;
}

static PyObject *pack_json(PyObject *self, const char *(*text)(const leat_pack *))
{
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    const char *json = text(h->pack);
    PyObject *str = py_text(json, strlen(json));
    py_pack_drop(h);
    return str;
}

static PyObject *pack_schema(PyObject *self, PyObject *unused)
{
    (void)unused;
    return pack_json(self, leat_pack_schema);
}

static PyObject *pack_provenance(PyObject *self, PyObject *unused)
{
    (void)unused;
    return pack_json(self, leat_pack_provenance);
}

static PyObject *pack_classes(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *const *names;
    uint64_t count;
    unsigned field;

    if (!PyArg_ParseTuple(args, "I", &field)) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *list = NULL;
    if (leat_pack_classes(h->pack, field, &names, &count, &err) != 0) {
        py_raise(&err);
    } else {
        list = PyList_New((Py_ssize_t)count);
        for (uint64_t i = 0; list != NULL && i < count; i++) {
            PyObject *name = py_text(names[i], strlen(names[i]));
            if (name == NULL || PyList_SetItem(list, (Py_ssize_t)i, name) != 0) Py_CLEAR(list);
        }
    }
    py_pack_drop(h);
    return list;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Returns keys first … first+count-1 as a list of bytes. */
static PyObject *pack_keys(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long first, count;
    char small[512], *key = small;
    size_t capacity = sizeof small, size;

    if (!PyArg_ParseTuple(args, "KK", &first, &count)) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list != NULL && i < count;) {
        int rc = leat_pack_key(h->pack, first + i, key, capacity, &size, &err);
        if (rc == LEAT_ELIMIT && size + 1 > capacity) {
            if (key != small) leat__free(key);
            capacity = size + 1;
            key = leat__alloc(LEAT__MEM_MISC, capacity);
            if (key != NULL) continue;
            PyErr_NoMemory();
            Py_CLEAR(list);
            break;
        }
        PyObject *item = rc == 0 ? PyBytes_FromStringAndSize(key, (Py_ssize_t)size) : py_raise(&err);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
        i++;
    }
    if (key != small) leat__free(key);
    py_pack_drop(h);
    return list;
}

static PyObject *pack_find(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *key;
    Py_ssize_t size;
    uint64_t sample = 0;

    if (!PyArg_ParseTuple(args, "y#", &key, &size)) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    int rc = leat_pack_find(h->pack, key, (size_t)size, &sample, &err);
    py_pack_drop(h);
    if (rc == LEAT_ENOENT) Py_RETURN_NONE;
    return rc == 0 ? PyLong_FromUnsignedLongLong(sample) : py_raise(&err);
}

/* Returns the sample type and the channels of an image field, as leat._leat.Pipeline takes them. */
static PyObject *pack_kind(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__image_kind kind;
    unsigned field;

    if (!PyArg_ParseTuple(args, "I", &field)) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    int rc = leat__pack_image_kind(h->pack, field, &kind, &err);
    py_pack_drop(h);
    return rc == 0 ? PyLong_FromUnsignedLong(kind) : py_raise(&err);
}

/* ---- samples --------------------------------------------------------------------------------- */

static PyObject *image_tuple(const leat_view *v)
{
    const leat_pack_image *m = &v->image;
    return Py_BuildValue("(y#IIIIIII)", (const char *)v->data, (Py_ssize_t)v->size, (unsigned)m->width,
                         (unsigned)m->height, (unsigned)m->codec, (unsigned)m->channels,
                         (unsigned)m->orientation, (unsigned)m->flags, (unsigned)m->cost);
}

static PyObject *field_value(const leat_field *f, const leat_view *v)
{
    int64_t i;
    double d;

    if (v->data == NULL) Py_RETURN_NONE;
    switch (f->type) {
    case LEAT_FIELD_INT: memcpy(&i, v->data, sizeof i); return PyLong_FromLongLong(i);
    case LEAT_FIELD_FLOAT: memcpy(&d, v->data, sizeof d); return PyFloat_FromDouble(d);
    case LEAT_FIELD_IMAGE: return image_tuple(v);
    case LEAT_FIELD_ARRAY:
    case LEAT_FIELD_RAGGED: {
        PyObject *shape = shape_tuple(v->shape, v->ndim);
        if (shape == NULL) return NULL;
        return Py_BuildValue("(y#N)", (const char *)v->data, (Py_ssize_t)v->size, shape);
    }
    default: return PyBytes_FromStringAndSize(v->data, (Py_ssize_t)v->size);
    }
}

PyObject *py_sample_list(const py_pack_handle *h, const leat_sample *s, const bool *skip, leat_error *err)
{
    uint32_t n = leat_pack_field_count(h->pack);
    size_t size;
    const char *key = leat_sample_key(s, &size);

    PyObject *list = PyList_New((Py_ssize_t)n + 1), *item;
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        leat_view view = {0};
        if (skip != NULL && skip[i]) item = Py_NewRef(Py_None);
        else if (leat_sample_field(s, i, &view, err) != 0) item = py_raise(err);
        else item = field_value(leat_pack_field(h->pack, i), &view);
        if (item == NULL || PyList_SetItem(list, i, item) != 0) Py_CLEAR(list);
    }
    if (list == NULL) return NULL;
    item = PyBytes_FromStringAndSize(key, (Py_ssize_t)size);
    if (item == NULL || PyList_SetItem(list, n, item) != 0) Py_CLEAR(list);
    return list;
}

/* Returns the values of one sample in the order of the schema, then its key. */
static PyObject *pack_sample(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long index;
    leat_sample *s = NULL;
    PyObject *list = NULL;
    int rc;

    if (!PyArg_ParseTuple(args, "K", &index)) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_sample_open(&s, h->pack, &err);
    if (rc == 0) rc = leat_sample_read(s, index, &err);
    Py_END_ALLOW_THREADS if (rc == 0 && !PyErr_Occurred())
    {
        list = py_sample_list(h, s, NULL, &err);
    }
    else
    {
        py_raise(&err);
    }
    leat_sample_close(&s);
    py_pack_drop(h);
    return list;
}

/* Reads an INT or FLOAT column, from `first` on, into a writable buffer of 8-byte numbers. */
static PyObject *pack_column(PyObject *self, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long first;
    unsigned field;
    PyObject *out;
    Py_buffer view;
    int rc;

    if (!PyArg_ParseTuple(args, "IKO", &field, &first, &out)) return NULL;
    if (PyObject_GetBuffer(out, &view, PyBUF_CONTIG) != 0) return NULL;
    py_pack_handle *h = enter(self);
    if (h == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    const leat_field *f = leat_pack_field(h->pack, field);
    size_t count = (size_t)view.len / 8;
    Py_BEGIN_ALLOW_THREADS if (f != NULL && f->type == LEAT_FIELD_FLOAT) rc =
        leat_pack_floats(h->pack, field, first, count, view.buf, &err);
    else rc = leat_pack_ints(h->pack, field, first, count, view.buf, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&view);
    py_pack_drop(h);
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *with_image(PyObject *self, PyObject *args,
                            PyObject *(*what)(const py_pack_handle *, const void *, size_t,
                                              const leat_pack_image *))
{
    leat_pack_image image = {0};
    const char *data;
    Py_ssize_t size;
    unsigned char codec, orientation;

    if (!PyArg_ParseTuple(args, "y#bb", &data, &size, &codec, &orientation)) return NULL;
    image.codec = codec;
    image.orientation = orientation;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *result = what(h, data, (size_t)size, &image);
    py_pack_drop(h);
    return result;
}

static PyObject *pack_decode(PyObject *self, PyObject *args)
{
    return with_image(self, args, py_image_decode);
}

static PyObject *pack_file(PyObject *self, PyObject *args)
{
    return with_image(self, args, py_image_file);
}

static PyObject *pack_make(PyObject *self, PyObject *args)
{
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *made = py_pipeline_make(h, args);
    py_pack_drop(h);
    return made;
}

static PyObject *pack_follow(PyObject *self, PyObject *args)
{
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *follow = py_follow_new(h, args);
    py_pack_drop(h);
    return follow;
}

static PyObject *pack_arrow(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_pack_handle *h = enter(self);
    if (h == NULL) return NULL;
    PyObject *capsule = py_arrow_stream(h);
    py_pack_drop(h);
    return capsule;
}

static PyMethodDef pack_methods[] = {
    {"close", pack_close, METH_NOARGS, "Closes the pack; reads in progress finish first."},
    {"info", pack_info, METH_NOARGS, "Sizes, counts and the fingerprint."},
    {"fields", pack_fields, METH_NOARGS, "(name, type, dtype, shape, ndim) of each field."},
    {"schema", pack_schema, METH_NOARGS, "The schema as JSON."},
    {"provenance", pack_provenance, METH_NOARGS, "Where the pack came from, as JSON."},
    {"kind", pack_kind, METH_VARARGS,
     "kind(field): pixels of an image field; 0 = 8-bit of 1, 3 or 4 channels."},
    {"classes", pack_classes, METH_VARARGS, "Class names of an int field."},
    {"keys", pack_keys, METH_VARARGS, "keys(first, count): a list of bytes."},
    {"find", pack_find, METH_VARARGS, "Number of the sample with this key (bytes), or None."},
    {"sample", pack_sample, METH_VARARGS, "Values of a sample and its key."},
    {"make", pack_make, METH_VARARGS,
     "make(indices, [(field, Pipeline)], seed, epoch, as_stored, Follow or None): values "
     "of samples, a tensor per "
     "pipeline, values that follow."},
    {"follow", pack_follow, METH_VARARGS,
     "follow(roles, [(name, field, Pipeline)]): fields that follow images."},
    {"column", pack_column, METH_VARARGS, "column(field, first, out): an int or float column."},
    {"decode", pack_decode, METH_VARARGS, "decode(data, codec, orientation): pixels as a Tensor."},
    {"file", pack_file, METH_VARARGS, "file(data, codec, orientation): the image file as bytes."},
    {"arrow", pack_arrow, METH_NOARGS, "The index as an Arrow C stream capsule."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pack_slots[] = {
    {Py_tp_new, pack_new},
    {Py_tp_dealloc, pack_dealloc},
    {Py_tp_doc, "A pack open for reading; use leat.open()."},
    {Py_tp_methods, pack_methods},
    {Py_sq_length, pack_len},
    {0, NULL},
};

static PyType_Spec pack_spec = {
    .name = "leat._leat.Pack",
    .basicsize = sizeof(py_pack),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = pack_slots,
};

int py_pack_register(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &pack_spec, NULL);
    int rc = type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return rc;
}
