/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack export: capsules that consumers own. The structures are those of the DLPack standard (ABI 1.x and
 * the one before it), declared here because leat needs nothing else of it.
 *
 * Deleters run on any thread, with or without the GIL: they touch nothing of Python.
 */
#include "py_leat.h"

#include <string.h>

#include "base/mem.h"

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
#define DL_FLAG_READ_ONLY UINT64_C(1)
#define DL_FLAG_IS_COPIED UINT64_C(2)

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *owner;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *owner;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

/* The memory of a capsule: one block with the structure, its shape, and a reference to the data. */
typedef struct export
{
    union {
        dl_managed old;
        dl_managed_versioned now;
    };
    py_memory *memory;
    int64_t shape[LEAT_NDIM_MAX], strides[LEAT_NDIM_MAX];
}
export;

static void export_free(export *e)
{
    py_memory_drop(e->memory);
    leat__free(e);
}

static void delete_old(dl_managed *self)
{
    export_free(self->owner);
}

static void delete_now(dl_managed_versioned *self)
{
    export_free(self->owner);
}

/* A capsule without a consumer still owns its export; consumers rename it. */
static void capsule_free(PyObject *capsule)
{
    static const char *const names[] = {"dltensor", "dltensor_versioned"};
    for (int i = 0; i < 2; i++) {
        if (!PyCapsule_IsValid(capsule, names[i])) continue;
        void *p = PyCapsule_GetPointer(capsule, names[i]);
        if (i == 0) ((dl_managed *)p)->deleter(p);
        else ((dl_managed_versioned *)p)->deleter(p);
    }
}

static uint8_t type_code(uint32_t dtype)
{
    switch (py_dtype_kind(dtype)) {
    case 'b': return DL_BOOL;
    case 'i': return DL_INT;
    case 'u': return DL_UINT;
    case 'f': return DL_FLOAT;
    default: return DL_BFLOAT;
    }
}

static void fill(const py_tensor *t, export *e, dl_tensor *out)
{
    bool empty = false;
    for (int32_t d = 0; d < t->ndim; d++) {
        e->shape[d] = t->shape[d];
        e->strides[d] = t->strides[d];
        if (t->shape[d] == 0) empty = true;
    }
    *out = (dl_tensor){
        .data = empty ? NULL : t->data, /* as the standard requires for tensors without elements */
        .device = {t->device < 0 ? DL_CPU : DL_CUDA, t->device < 0 ? 0 : t->device},
        .ndim = t->ndim,
        .shape = e->shape,
        .strides = e->strides,
    };
    out->dtype.code = type_code(t->dtype);
    out->dtype.bits = (uint8_t)(leat_dtype_size(t->dtype) * 8);
    out->dtype.lanes = 1;
}

/* Makes a row-major copy of the elements in separate memory. */
static py_tensor *copy_of(const py_tensor *t)
{
    int64_t count = 1, size = leat_dtype_size(t->dtype), at[LEAT_NDIM_MAX] = {0};
    for (int32_t d = 0; d < t->ndim; d++) count *= t->shape[d];
    uint8_t *block = leat__alloc_aligned(LEAT__MEM_BATCH, (size_t)(count * size) + 1, 256);
    if (block == NULL) return (py_tensor *)PyErr_NoMemory();
    for (int64_t i = 0; i < count; i++) {
        int64_t from = 0;
        for (int32_t d = 0; d < t->ndim; d++) from += at[d] * t->strides[d];
        memcpy(block + i * size, (const uint8_t *)t->data + from * size, (size_t)size);
        for (int32_t d = t->ndim - 1; d >= 0 && ++at[d] == t->shape[d]; d--) at[d] = 0;
    }
    py_memory *memory = py_memory_new(NULL, block);
    if (memory == NULL) return NULL;
    PyObject *copy = py_tensor_new(memory, block, t->dtype, t->ndim, t->shape, NULL);
    py_memory_drop(memory);
    return (py_tensor *)copy;
}

static PyObject *make_capsule(const py_tensor *t, bool versioned, uint64_t flags)
{
    export *e = LEAT_NEW(BATCH, export);
    if (e == NULL) return PyErr_NoMemory();
    py_memory_ref(t->memory);
    e->memory = t->memory;
    if (versioned) {
        e->now.version.major = 1;
        e->now.version.minor = 1;
        e->now.owner = e;
        e->now.deleter = delete_now;
        e->now.flags = flags;
        fill(t, e, &e->now.tensor);
    } else {
        e->old.owner = e;
        e->old.deleter = delete_old;
        fill(t, e, &e->old.tensor);
    }
    void *p = versioned ? (void *)&e->now : (void *)&e->old;
    PyObject *capsule = PyCapsule_New(p, versioned ? "dltensor_versioned" : "dltensor", capsule_free);
    if (capsule == NULL) export_free(e);
    return capsule;
}

static bool asks_other_device(const py_tensor *t, PyObject *device)
{
    long type, id;
    if (device == Py_None) return false;
    if (!PyArg_ParseTuple(device, "ll", &type, &id)) return true;
    if (t->device < 0 ? type == DL_CPU : type == DL_CUDA && id == t->device) return false;
    if (t->device < 0) PyErr_SetString(PyExc_BufferError, "this tensor is in CPU memory");
    else PyErr_Format(PyExc_BufferError, "this tensor is on CUDA device %d", (int)t->device);
    return true;
}

/* Checks the stream, which is otherwise not used: exported data is complete, so no stream has to wait for it.
 * The memory is not overwritten before all streams are done with it. */
static bool accepts_stream(const py_tensor *t, PyObject *stream)
{
    if (stream == Py_None) return true;
    if (t->device < 0) {
        PyErr_SetString(PyExc_BufferError, "CPU memory has no streams: stream must be None");
        return false;
    }
    long long number = PyLong_AsLongLong(stream);
    if (number == -1 && PyErr_Occurred()) return false;
    if (number != 0) return true;
    PyErr_SetString(PyExc_ValueError,
                    "stream 0 is ambiguous: 1 is the legacy default stream, 2 the thread's");
    return false;
}

PyObject *py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    py_tensor *t = (py_tensor *)self;
    long major = 0, minor = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &version, &device, &copy))
        return NULL;
    if (!accepts_stream(t, stream)) return NULL;
    if (version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor)) return NULL;
    if (asks_other_device(t, device)) return NULL;
    int wants_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (wants_copy < 0) return NULL;
    if (wants_copy && t->device >= 0) {
        PyErr_SetString(PyExc_BufferError, "a tensor on a CUDA device is copied by its consumer: copy must "
                                           "be None or False");
        return NULL;
    }
    bool versioned = major >= 1;
    if (!versioned && t->readonly && !wants_copy) {
        PyErr_SetString(PyExc_BufferError, "a read-only tensor needs DLPack 1.0 (max_version), which "
                                           "has a flag for it, or copy=True");
        return NULL;
    }
    if (!wants_copy) return make_capsule(t, versioned, t->readonly ? DL_FLAG_READ_ONLY : 0);
    py_tensor *fresh = copy_of(t);
    if (fresh == NULL) return NULL;
    PyObject *capsule = make_capsule(fresh, versioned, DL_FLAG_IS_COPIED);
    Py_DECREF(fresh);
    return capsule;
}

PyObject *py_tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    int32_t device = ((py_tensor *)self)->device;
    (void)unused;
    return Py_BuildValue("(ii)", device < 0 ? DL_CPU : DL_CUDA, device < 0 ? 0 : (int)device);
}
