/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: arrays over borrowed memory. NumPy reads them through the buffer protocol, torch and JAX through
 * DLPack (py_dlpack.c); neither copies. The memory is released when the last array, tensor or capsule over
 * it is released.
 */
#include "py_leat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

PyTypeObject *py_tensor_type;

/* ---- borrowed memory ---------------------------------------------------------------------- */

py_memory *py_memory_new(leat_batch *batch, void *block)
{
    py_memory *memory = LEAT_NEW(BATCH, py_memory);
    if (memory == NULL) {
        leat_batch_release(&batch);
        leat__free(block);
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&memory->refs, 1);
    memory->batch = batch;
    memory->block = block;
    memory->made_by = getpid();
    return memory;
}

void py_memory_ref(py_memory *memory)
{
    atomic_fetch_add_explicit(&memory->refs, 1, memory_order_relaxed);
}

void py_memory_drop(py_memory *memory)
{
    if (memory == NULL || atomic_fetch_sub_explicit(&memory->refs, 1, memory_order_acq_rel) != 1) return;
    /* after a fork, threads that no longer exist may hold the loader's locks */
    if (memory->made_by != getpid()) return;
    leat_batch_release(&memory->batch);
    leat__free(memory->block);
    leat__free(memory);
}

/* ---- element types ------------------------------------------------------------------------ */

typedef struct dtype_row {
    const char *name, *format; /* NumPy's name; letter of `struct` for the buffer protocol */
    char kind;                 /* NumPy's letter: b, i, u, f; 0 = NumPy has no such type */
} dtype_row;

static const dtype_row dtypes[] = {
    [LEAT_DTYPE_BOOL] = {"bool", "?", 'b'},
    [LEAT_DTYPE_U8] = {"uint8", "B", 'u'},
    [LEAT_DTYPE_I8] = {"int8", "b", 'i'},
    [LEAT_DTYPE_U16] = {"uint16", "H", 'u'},
    [LEAT_DTYPE_I16] = {"int16", "h", 'i'},
    [LEAT_DTYPE_U32] = {"uint32", "I", 'u'},
    [LEAT_DTYPE_I32] = {"int32", "i", 'i'},
    [LEAT_DTYPE_U64] = {"uint64", "L", 'u'},
    [LEAT_DTYPE_I64] = {"int64", "l", 'i'},
    [LEAT_DTYPE_F16] = {"float16", "e", 'f'},
    /* `struct` has no letter for bfloat16: exported as raw bits */
    [LEAT_DTYPE_BF16] = {"bfloat16", "H", 0},
    [LEAT_DTYPE_F32] = {"float32", "f", 'f'},
    [LEAT_DTYPE_F64] = {"float64", "d", 'f'},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *py_dtype_name(uint32_t dtype)
{
    return dtype < DTYPES ? dtypes[dtype].name : NULL;
}

char py_dtype_kind(uint32_t dtype)
{
    return dtype < DTYPES ? dtypes[dtype].kind : 0;
}

uint32_t py_dtype_find(const char *name)
{
    for (uint32_t d = 1; d < DTYPES; d++) {
        if (strcmp(name, dtypes[d].name) == 0 || strcmp(name, leat_dtype_name(d)) == 0) return d;
    }
    return LEAT_DTYPE_NONE;
}

/* ---- making and freeing -------------------------------------------------------------------- */

PyObject *py_tensor_new(py_memory *memory, void *data, uint32_t dtype, int32_t ndim, const int64_t *shape,
                        const int64_t *strides)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(py_tensor_type, Py_tp_alloc);
    py_tensor *t = (py_tensor *)alloc(py_tensor_type, 0);
    if (t == NULL) return NULL;

    int64_t stride = 1, size = leat_dtype_size(dtype);
    py_memory_ref(memory);
    t->memory = memory;
    t->data = data;
    t->dtype = dtype;
    t->ndim = ndim;
    t->device = -1;
    for (int32_t d = ndim - 1; d >= 0; d--) {
        t->shape[d] = shape[d];
        t->strides[d] = strides != NULL ? strides[d] : stride;
        stride *= shape[d] > 0 ? shape[d] : 1;
        t->byte_shape[d] = (Py_ssize_t)t->shape[d];
        t->byte_strides[d] = (Py_ssize_t)(t->strides[d] * size);
    }
    return (PyObject *)t;
}

static void tensor_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_memory_drop(((py_tensor *)self)->memory);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- buffer protocol ----------------------------------------------------------------------- */

static Py_ssize_t elements(const py_tensor *t)
{
    Py_ssize_t n = 1;
    for (int32_t d = 0; d < t->ndim; d++) n *= t->byte_shape[d];
    return n;
}

static bool row_major(const py_tensor *t)
{
    int64_t stride = 1;
    for (int32_t d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] == 0) return true;
        if (t->shape[d] > 1 && t->strides[d] != stride) return false;
        stride *= t->shape[d];
    }
    return true;
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static uint8_t nothing[256]; /* an empty tensor points here */
    py_tensor *t = (py_tensor *)self;

    view->obj = NULL;
    if (t->device >= 0) {
        PyErr_Format(PyExc_BufferError, "this tensor is on CUDA device %d: take it through DLPack",
                     (int)t->device);
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) && t->readonly) {
        PyErr_SetString(PyExc_BufferError, "this tensor is read-only");
        return -1;
    }
    bool contiguous = row_major(t);
    bool wants_columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    bool wants_rows = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                      (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
    if ((wants_columns && t->ndim > 1) || (!contiguous && (!wants_strides || wants_rows))) {
        PyErr_SetString(PyExc_BufferError, "this tensor is not contiguous in the requested order");
        return -1;
    }
    Py_INCREF(self);
    *view = (Py_buffer){
        .buf = t->data != NULL ? t->data : nothing,
        .obj = self,
        .itemsize = (Py_ssize_t)leat_dtype_size(t->dtype),
        .readonly = t->readonly,
        .ndim = t->ndim,
        .format = (flags & PyBUF_FORMAT) ? (char *)dtypes[t->dtype].format : NULL,
        .shape = (flags & PyBUF_ND) ? t->byte_shape : NULL,
        .strides = wants_strides ? t->byte_strides : NULL,
    };
    view->len = elements(t) * view->itemsize;
    if (!(flags & PyBUF_ND)) view->ndim = 1;
    return 0;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static PyObject *int_tuple(const int64_t *values, int32_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(values[i]);
        if (v == NULL || PyTuple_SetItem(tuple, i, v) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    return int_tuple(((py_tensor *)self)->shape, ((py_tensor *)self)->ndim);
}

static PyObject *get_strides(PyObject *self, void *unused)
{
    (void)unused;
    return int_tuple(((py_tensor *)self)->strides, ((py_tensor *)self)->ndim);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(py_dtype_name(((py_tensor *)self)->dtype));
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((py_tensor *)self)->ndim);
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    py_tensor *t = (py_tensor *)self;
    (void)unused;
    return PyLong_FromSsize_t(elements(t) * (Py_ssize_t)leat_dtype_size(t->dtype));
}

static PyObject *get_data_ptr(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((py_tensor *)self)->data);
}

static PyObject *get_readonly(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((py_tensor *)self)->readonly);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    int32_t device = ((py_tensor *)self)->device;
    (void)unused;
    return device < 0 ? PyUnicode_FromString("cpu") : PyUnicode_FromFormat("cuda:%d", (int)device);
}

/* Implements version 3 of the protocol, for CuPy, Numba and others. The data is complete, so no
 * stream has to be waited for. */
static PyObject *get_cuda_array(PyObject *self, void *unused)
{
    py_tensor *t = (py_tensor *)self;
    int64_t bytes[LEAT_NDIM_MAX];
    char letters[8]; /* "<f4" */
    const uint32_t size = leat_dtype_size(t->dtype);
    (void)unused;
    if (t->device < 0 || dtypes[t->dtype].kind == 0) {
        PyErr_SetString(PyExc_AttributeError,
                        t->device < 0 ? "this tensor is not on a CUDA device"
                                      : "this interface has no bfloat16: take the tensor through DLPack");
        return NULL;
    }
    snprintf(letters, sizeof letters, "%c%c%u", size == 1 ? '|' : '<', dtypes[t->dtype].kind, size);
    for (int32_t d = 0; d < t->ndim; d++) bytes[d] = t->byte_strides[d];
    PyObject *shape = int_tuple(t->shape, t->ndim), *strides = int_tuple(bytes, t->ndim);
    if (shape == NULL || strides == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    unsigned long long address = elements(t) > 0 ? (unsigned long long)(uintptr_t)t->data : 0;
    return Py_BuildValue("{sN sN ss s(KO) si sO}", "shape", shape, "strides", strides, "typestr", letters,
                         "data", address, t->readonly ? Py_True : Py_False, "version", 3, "stream", Py_None);
}

static PyObject *refuse_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyErr_Format(PyExc_TypeError,
                 "this tensor is on CUDA device %d: NumPy cannot read it; take it through DLPack",
                 (int)((py_tensor *)self)->device);
    return NULL;
}

/* Returns a method that raises TypeError. NumPy calls it when the buffer protocol fails; without it,
 * NumPy would make an array of one object. */
static PyObject *get_array(PyObject *self, void *unused)
{
    static PyMethodDef method = {"__array__", (PyCFunction)(void (*)(void))refuse_array,
                                 METH_VARARGS | METH_KEYWORDS, "Raises TypeError."};
    (void)unused;
    if (((py_tensor *)self)->device >= 0) return PyCFunction_New(&method, self);
    PyErr_SetString(PyExc_AttributeError, "__array__");
    return NULL;
}

static PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, NULL, "Size of each dimension.", NULL},
    {"strides", get_strides, NULL, "Strides in elements.", NULL},
    {"dtype", get_dtype, NULL, "Name of the element type, as NumPy writes it.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"data_ptr", get_data_ptr, NULL, "Address of the first element; 0 when there is none.", NULL},
    {"readonly", get_readonly, NULL, "Whether consumers may not write.", NULL},
    {"device", get_device, NULL, "The device: cpu or cuda:N.", NULL},
    {"__cuda_array_interface__", get_cuda_array, NULL, "For CuPy, Numba and others, on CUDA devices.", NULL},
    {"__array__", get_array, NULL, "On CUDA devices: refuses NumPy.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static Py_ssize_t tensor_len(PyObject *self)
{
    py_tensor *t = (py_tensor *)self;
    if (t->ndim > 0) return t->byte_shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no len()");
    return -1;
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL), *text = NULL;
    if (shape != NULL)
        text = PyUnicode_FromFormat("leat.Tensor(shape=%R, dtype=%s)", shape,
                                    py_dtype_name(((py_tensor *)self)->dtype));
    Py_XDECREF(shape);
    return text;
}

/* Returns a read-only tensor over the same memory. */
static PyObject *tensor_as_readonly(PyObject *self, PyObject *unused)
{
    py_tensor *t = (py_tensor *)self;
    (void)unused;
    PyObject *view = py_tensor_new(t->memory, t->data, t->dtype, t->ndim, t->shape, t->strides);
    if (view == NULL) return NULL;
    ((py_tensor *)view)->readonly = true;
    ((py_tensor *)view)->device = t->device;
    return view;
}

/* Returns a tensor over the same memory with its dimensions in another order. */
static PyObject *tensor_permute(PyObject *self, PyObject *args)
{
    py_tensor *t = (py_tensor *)self;
    int64_t shape[LEAT_NDIM_MAX], strides[LEAT_NDIM_MAX];
    uint32_t seen = 0;

    Py_ssize_t n = PyTuple_Size(args);
    if (n != t->ndim) goto wrong;
    for (Py_ssize_t d = 0; d < n; d++) {
        long from = PyLong_AsLong(PyTuple_GetItem(args, d));
        if (from == -1 && PyErr_Occurred()) return NULL;
        if (from < 0 || from >= t->ndim || (seen >> from & 1)) goto wrong;
        seen |= 1u << from;
        shape[d] = t->shape[from];
        strides[d] = t->strides[from];
    }
    PyObject *view = py_tensor_new(t->memory, t->data, t->dtype, t->ndim, shape, strides);
    if (view == NULL) return NULL;
    ((py_tensor *)view)->readonly = t->readonly;
    ((py_tensor *)view)->device = t->device;
    return view;
wrong:
    PyErr_SetString(PyExc_ValueError, "permute takes each dimension once");
    return NULL;
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))py_tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule over the same memory."},
    {"__dlpack_device__", py_tensor_dlpack_device, METH_NOARGS,
     "(1, 0): memory of the CPU; (2, N): of CUDA device N."},
    {"as_readonly", tensor_as_readonly, METH_NOARGS, "Returns a read-only tensor over the same memory."},
    {"permute", tensor_permute, METH_VARARGS,
     "Returns a tensor over the same memory with its dimensions in another order."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_doc, "An array over borrowed memory: buffer protocol and DLPack, never a copy."},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_sq_length, tensor_len},
    {Py_bf_getbuffer, tensor_getbuffer},
    {0, NULL},
};

static PyType_Spec tensor_spec = {
    .name = "leat._leat.Tensor",
    .basicsize = sizeof(py_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = tensor_slots,
};

int py_tensor_register(PyObject *module)
{
    py_tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
    return py_tensor_type != NULL ? PyModule_AddType(module, py_tensor_type) : -1;
}
