/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that follow an image, for random access to samples: used by leat.open(path, image=...,
 * mask="follow"). The loader's own followers (loader/follow.c) fill a batch of one row, so that values equal
 * the loader's.
 */
#include "py_follow.h"

#include <string.h>

#include <leat/flow.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "op/spec.h"
#include "pack/schema.h"

struct py_follow {
    PyObject_HEAD py_pack_handle *h;
    PyObject *images; /* the list, which keeps the pipelines alive */
    leat__follow follow;
    leat_budget *budget;
    leat__frames *frames;
};

static PyTypeObject *follow_type;

static void follow_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    py_follow *self = (py_follow *)object;
    leat__frames_close(&self->frames);
    leat_budget_close(&self->budget);
    leat__follow_reset(&self->follow);
    Py_XDECREF(self->images);
    if (self->h != NULL) py_pack_drop(self->h);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int add_column(leat__shape *shape, const char *name, leat_error *err)
{
    leat__column *c = &shape->columns[shape->count++];
    c->kind = LEAT__COLUMN_FIXED;
    c->tensor =
        (leat_tensor){.name = leat__strdup(LEAT__MEM_LOADER, name), .dtype = LEAT_DTYPE_U8, .ndim = 1};
    return c->tensor.name != NULL ? 0 : leat__fail_nomem(err, strlen(name), "a name");
}

/* Reads the images that can be followed from a list of (name, field, Pipeline). Returns false with an
 * exception set. */
static bool take_images(PyObject *list, leat__shape *shape, leat__followed *images, uint32_t count)
{
    leat_error err = {.sample = -1, .offset = -1};
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        unsigned field;
        PyObject *pipeline;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sIO", &name, &field, &pipeline)) return false;
        const leat__pipeline *p = py_pipeline_of(pipeline);
        if (p == NULL) return false;
        if (add_column(shape, name, &err) != 0) {
            py_raise(&err);
            return false;
        }
        images[i] = (leat__followed){.column = i, .field = field, .pipeline = p};
    }
    return true;
}

static int open_followers(py_follow *self, const char *text, leat__shape *shape, const leat__followed *images,
                          uint32_t count, leat_error *err)
{
    LEAT_TRY(leat__follow_open(&self->follow, self->h->pack, text, shape, images, count, err));
    for (uint32_t i = 0; i < self->follow.count; i++) {
        leat__follower *f = &self->follow.list[i];
        LEAT_TRY(add_column(shape, f->spec.field, err));
        LEAT_TRY(leat__follow_column(f, self->h->pack, 1, shape, shape->count - 1, err));
        f->cell = f->field;
        f->image_cell = f->image_field;
    }
    LEAT_TRY(leat_budget_open(&self->budget, UINT64_MAX / 2, err));
    return leat__frames_open(&self->frames, self->budget, shape, err); /* takes ownership of the shape */
}

PyObject *py_follow_new(py_pack_handle *h, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *text;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "sO!", &text, &PyList_Type, &list)) return NULL;
    uint32_t count = (uint32_t)PyList_Size(list);
    leat__shape shape = {.columns =
                             LEAT_NEW_ARRAY(LOADER, leat__column, (uint64_t)count + LEAT__SPEC_OPS_MAX)};
    leat__followed *images = LEAT_NEW_ARRAY(LOADER, leat__followed, (uint64_t)count + 1);
    py_follow *self = NULL;
    bool good = shape.columns != NULL && images != NULL;
    if (!good) PyErr_NoMemory();
    else self = (py_follow *)((allocfunc)PyType_GetSlot(follow_type, Py_tp_alloc))(follow_type, 0);
    good = good && self != NULL;
    if (good) {
        self->h = h;
        py_pack_ref(h);
        self->images = Py_NewRef(list);
        good = take_images(list, &shape, images, count);
    }
    if (good && open_followers(self, text, &shape, images, count, &err) != 0) {
        py_raise(&err);
        good = false;
    }
    if (self == NULL || self->frames == NULL) leat__shape_reset(&shape);
    leat__free(images);
    if (!good) Py_CLEAR(self);
    return (PyObject *)self;
}

py_follow *py_follow_of(PyObject *object)
{
    if (Py_TYPE(object) == follow_type) return (py_follow *)object;
    PyErr_SetString(PyExc_TypeError, "not a leat._leat.Follow");
    return NULL;
}

void py_follow_skip(const py_follow *self, bool *skip)
{
    for (uint32_t i = 0; i < self->follow.count; i++) skip[self->follow.list[i].field] = true;
}

/* Opens a frame of one row with room for the sample's values. */
static int open_frame(py_follow *self, const leat_pack_cell *cells, leat__frame **frame, leat_error *err)
{
    const leat__shape *shape = leat__frames_shape(self->frames);
    uint64_t *room = LEAT_NEW_ARRAY(LOADER, uint64_t, (uint64_t)shape->count + 1);
    if (room == NULL) return leat__fail_nomem(err, shape->count * 8u, "sizes");
    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        if (column->kind != LEAT__COLUMN_RAGGED) continue;
        const leat_field *field = leat_pack_field(self->h->pack, column->field);
        const leat_pack_cell *cell = &cells[column->field];
        uint64_t lead = leat__field_shape_bytes(field);
        uint64_t bytes = cell->absent || cell->length < lead ? 0 : cell->length - lead;
        room[c] = bytes / leat_dtype_size(field->dtype) * leat_dtype_size(column->tensor.dtype);
    }
    int rc = leat__frame_open(frame, self->frames, 1, room, false, err);
    for (uint32_t c = 0; c < shape->count && rc == 0; c++) {
        const leat_tensor *t = &(*frame)->tensors[c];
        if (t->offsets == NULL) continue;
        ((int64_t *)t->offsets)[0] = 0;
        ((int64_t *)t->offsets)[1] = (int64_t)(room[c] / leat_dtype_size(t->dtype));
    }
    leat__free(room);
    return rc;
}

int py_follow_fill(py_follow *self, leat_sample *sample, leat__pipeline_worker *worker,
                   const leat__draw_key *key, bool as_stored, leat__follow_scratch *scratch,
                   leat__frame **frame, leat_error *err)
{
    leat_pack *pack = self->h->pack;
    uint32_t n = leat_pack_field_count(pack);
    leat_pack_cell *cells = LEAT_NEW_ARRAY(LOADER, leat_pack_cell, (uint64_t)n + 1);
    uint32_t image = self->follow.list[0].image_field;
    leat_view view = {0};
    int rc = cells == NULL ? leat__fail_nomem(err, n * sizeof *cells, "cells") : 0;
    for (uint32_t f = 0; f < n && rc == 0; f++) rc = leat_pack_cells(pack, f, key->sample, 1, &cells[f], err);
    if (rc == 0) rc = leat_sample_field(sample, image, &view, err);
    if (rc == 0) rc = open_frame(self, cells, frame, err);
    if (rc == 0) {
        leat__follow_sample in = {.pack = pack,
                                  .cells = cells,
                                  .bytes = (const uint8_t *)view.data - cells[image].start,
                                  .tables = self->h->tables,
                                  .as_stored = as_stored,
                                  .key = *key};
        rc = leat__follow_fill(&self->follow, scratch, worker, &in, *frame, 0, err);
    }
    leat__free(cells);
    return rc;
}

/* Returns (bytes, dtype, shape) of one value. */
static PyObject *value_of(const leat__follower *f, const leat__frame *frame)
{
    const leat_tensor *t = &frame->tensors[f->column];
    bool ragged = t->offsets != NULL;
    uint32_t ndim = ragged ? t->ragged_ndim : t->ndim - 1;
    uint64_t bytes = leat_dtype_size(t->dtype);
    PyObject *shape = PyTuple_New(ndim);
    for (uint32_t d = 0; d < ndim && shape != NULL; d++) {
        int64_t size = ragged ? t->ragged_shapes[d] : t->shape[d + 1];
        bytes *= (uint64_t)size;
        PyObject *number = PyLong_FromLongLong(size);
        if (number == NULL || PyTuple_SetItem(shape, (Py_ssize_t)d, number) != 0) Py_CLEAR(shape);
    }
    if (shape == NULL) return NULL;
    return Py_BuildValue("(y#sN)", leat__frame_row(frame, f->column, 0), (Py_ssize_t)bytes,
                         py_dtype_name(t->dtype), shape);
}

PyObject *py_follow_values(const py_follow *self, const leat__frame *frame)
{
    PyObject *all = PyDict_New();
    for (uint32_t i = 0; i < self->follow.count && all != NULL; i++) {
        const leat__follower *f = &self->follow.list[i];
        PyObject *value = value_of(f, frame);
        if (value == NULL || PyDict_SetItemString(all, f->spec.field, value) != 0) Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

static PyObject *follow_names(PyObject *object, PyObject *unused)
{
    const py_follow *self = (py_follow *)object;
    PyObject *names = PyList_New(0);
    (void)unused;
    for (uint32_t i = 0; i < self->follow.count && names != NULL; i++) {
        PyObject *name = PyUnicode_FromString(self->follow.list[i].spec.field);
        if (name == NULL || PyList_Append(names, name) != 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef follow_methods[] = {
    {"names", follow_names, METH_NOARGS, "The fields that follow."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot follow_slots[] = {
    {Py_tp_dealloc, follow_dealloc},
    {Py_tp_doc, "Fields of a pack that follow images; made by Pack.follow."},
    {Py_tp_methods, follow_methods},
    {0, NULL},
};

static PyType_Spec follow_spec = {
    .name = "leat._leat.Follow",
    .basicsize = sizeof(py_follow),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = follow_slots,
};

int py_follow_register(PyObject *module)
{
    follow_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &follow_spec, NULL);
    return follow_type != NULL ? PyModule_AddType(module, follow_type) : -1;
}
