/* SPDX-License-Identifier: Apache-2.0
 *
 * Random access to samples with images made by pipelines: used by leat.open(path, image=...). The random
 * draws of a sample depend only on (seed, epoch, sample), as in a loader, so the pixels equal the loader's.
 */
#include "py_follow.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "op/pipeline.h"
#include "pack/kind.h"

#define IMAGES_MAX 64 /* maximum images made of one sample */

/* ---- leat._leat.Pipeline -------------------------------------------------------------------- */

typedef struct py_pipeline {
    PyObject_HEAD leat__pipeline *pipeline;
    _Atomic(leat__pipeline_worker *) idle; /* scratch memory of the last call, or NULL */
} py_pipeline;

static PyTypeObject *pipeline_type;

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"ops", "view", "kind", "field", NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat__pipeline_opts opts = {0};
    leat__pipeline *pipeline = NULL;
    unsigned view = 0, kind = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|IIz", names, &opts.ops, &view, &kind, &opts.field))
        return NULL;
    opts.view = view;
    opts.kind = (leat__pixel_kind){leat__kind_type(kind), leat__kind_channels(kind)};
    int rc = leat__pipeline_open(&pipeline, &opts, &err);
    if (rc == 0 && leat__pipeline_batch_ops(pipeline) > 0)
        rc = leat__fail(&err, LEAT_EINVAL,
                        "image: this pipeline mixes the samples of a batch; only a"
                        " leat.Loader has batches");
    if (rc == 0 && leat__pipeline_needs_boxes(pipeline) != NULL)
        rc = leat__fail(&err, LEAT_EINVAL, "image: %s needs boxes, which only a leat.Loader passes to it",
                        leat__pipeline_needs_boxes(pipeline));
    py_pipeline *self = NULL;
    if (rc != 0) py_raise(&err);
    else self = (py_pipeline *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self != NULL) {
        self->pipeline = pipeline;
        atomic_init(&self->idle, NULL);
        return (PyObject *)self;
    }
    leat__pipeline_close(&pipeline);
    return NULL;
}

static void pipeline_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    py_pipeline *self = (py_pipeline *)object;
    leat__pipeline_worker *idle = atomic_exchange(&self->idle, NULL);
    leat__pipeline_worker_close(&idle);
    leat__pipeline_close(&self->pipeline);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

const leat__pipeline *py_pipeline_of(PyObject *object)
{
    if (Py_TYPE(object) == pipeline_type) return ((py_pipeline *)object)->pipeline;
    PyErr_SetString(PyExc_TypeError, "not a leat._leat.Pipeline");
    return NULL;
}

/* ---- making samples ------------------------------------------------------------------------- */

typedef struct made {
    uint32_t field;
    py_pipeline *pipeline; /* borrowed from the caller's list */
    const leat__output_spec *output;
    uint8_t *block;    /* all rows */
    py_memory *memory; /* owner of the block, once it has one */
} made;

typedef struct making {
    py_pack_handle *h;
    leat_sample *sample;
    leat__pipeline_worker *worker;
    made images[IMAGES_MAX];
    uint32_t count;
    bool *skip; /* per field: an image that is made, so its bytes are not needed */
    leat__draw_key key;
    bool as_stored;
    py_follow *follow; /* NULL without followers */
    leat__follow_scratch scratch;
    leat__frame *frame; /* values that follow the images of the current sample */
} making;

static int make_image(making *m, made *image, void *out, leat_error *err)
{
    leat_view view = {0};
    leat__image_info info;

    LEAT_TRY(leat_sample_field(m->sample, image->field, &view, err));
    if (view.data == NULL || view.size == 0)
        return leat__fail(err, LEAT_EDATA, "field '%s' is absent",
                          leat_pack_field(m->h->pack, image->field)->name);
    LEAT_TRY(leat__codec_probe((leat__codec_id)view.image.codec, view.data, view.size, &info, err));
    leat__encoded encoded = {.info = &info,
                             .data = view.data,
                             .len = view.size,
                             .tables = m->h->tables,
                             .entries = view.entries,
                             .entries_len = view.entries_size,
                             .orientation = m->as_stored ? 1 : view.image.orientation};
    return leat__pipeline_run(image->pipeline->pipeline, m->worker, &encoded, &m->key, out, err);
}

/* Reads sample `index` and makes its images, row `row` of each block. Called without the GIL. */
static int make_sample(making *m, uint64_t index, size_t row, leat_error *err)
{
    int rc = 0;
    LEAT_TRY(leat_sample_read(m->sample, index, err));
    m->key.sample = index;
    for (uint32_t i = 0; i < m->count && rc == 0; i++)
        rc = make_image(m, &m->images[i], m->images[i].block + row * m->images[i].output->bytes, err);
    if (rc == 0 && m->follow != NULL)
        rc = py_follow_fill(m->follow, m->sample, m->worker, &m->key, m->as_stored, &m->scratch, &m->frame,
                            err);
    if (rc == 0) return 0;
    const char *key = leat_sample_key(m->sample, NULL);
    leat__error_context(err, "%s: sample %llu \"%s\"", leat_pack_path(m->h->pack), (unsigned long long)index,
                        key);
    leat__error_at(err, key, (int64_t)index, -1);
    return rc;
}

static bool take_images(making *m, PyObject *list, size_t rows)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0 || n > IMAGES_MAX) {
        PyErr_Format(PyExc_ValueError, "image: at most %d images are made of a sample", IMAGES_MAX);
        return false;
    }
    for (; m->count < (uint32_t)n; m->count++) {
        made *image = &m->images[m->count];
        PyObject *pipeline;
        if (!PyArg_ParseTuple(PyList_GetItem(list, m->count), "IO!", &image->field, pipeline_type, &pipeline))
            return false;
        const leat_field *f = leat_pack_field(m->h->pack, image->field);
        uint64_t bytes;
        image->pipeline = (py_pipeline *)pipeline;
        image->output = leat__pipeline_output(image->pipeline->pipeline);
        if (f == NULL || f->type != LEAT_FIELD_IMAGE) {
            PyErr_Format(PyExc_ValueError, "field %u is not an image", (unsigned)image->field);
            return false;
        }
        m->skip[image->field] = true;
        if (leat__mul_u64(image->output->bytes, rows, &bytes) && bytes < SIZE_MAX / 2)
            image->block = leat__alloc_aligned(LEAT__MEM_BATCH, (size_t)bytes + 1, 256);
        if (image->block == NULL) {
            PyErr_NoMemory();
            return false;
        }
    }
    return true;
}

static bool prepare(making *m, PyObject *list, size_t rows, leat_error *err)
{
    m->skip = LEAT_NEW_ARRAY(MISC, bool, leat_pack_field_count(m->h->pack) + 1);
    if (m->skip == NULL) {
        PyErr_NoMemory();
        return false;
    }
    if (!take_images(m, list, rows)) return false;
    if (m->follow != NULL) py_follow_skip(m->follow, m->skip);
    int rc = leat_sample_open(&m->sample, m->h->pack, err);
    if (rc == 0 && m->count > 0) m->worker = atomic_exchange(&m->images[0].pipeline->idle, NULL);
    if (rc == 0 && m->worker == NULL) rc = leat__pipeline_worker_open(&m->worker, err);
    if (rc != 0) py_raise(err);
    return rc == 0;
}

static void let_go(making *m)
{
    if (m->count > 0 && m->worker != NULL)
        m->worker = atomic_exchange(&m->images[0].pipeline->idle, m->worker);
    leat__pipeline_worker_close(&m->worker);
    leat_sample_close(&m->sample);
    leat__follow_scratch_reset(&m->scratch);
    if (m->frame != NULL) leat__frame_unref(m->frame);
    for (uint32_t i = 0; i < IMAGES_MAX; i++) {
        if (m->images[i].memory != NULL) py_memory_drop(m->images[i].memory);
        else leat__free(m->images[i].block);
    }
    leat__free(m->skip);
}

/* Appends the values that follow the images of the current sample to the list. */
static bool add_followers(making *m, PyObject *followers)
{
    if (m->frame == NULL) return true;
    PyObject *values = py_follow_values(m->follow, m->frame);
    leat__frame_unref(m->frame);
    m->frame = NULL;
    bool good = values != NULL && PyList_Append(followers, values) == 0;
    Py_XDECREF(values);
    return good;
}

static PyObject *all_samples(making *m, const uint64_t *index, size_t rows, PyObject *followers,
                             leat_error *err)
{
    PyObject *list = PyList_New((Py_ssize_t)rows);
    for (size_t i = 0; list != NULL && i < rows; i++) {
        uint64_t number;
        int rc;
        memcpy(&number, index + i, sizeof number);
        Py_BEGIN_ALLOW_THREADS rc = make_sample(m, number, i, err);
        Py_END_ALLOW_THREADS PyObject *values =
            rc == 0 ? py_sample_list(m->h, m->sample, m->skip, err) : py_raise(err);
        if (values == NULL || PyList_SetItem(list, (Py_ssize_t)i, values) != 0) Py_CLEAR(list);
        if (list != NULL && !add_followers(m, followers)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *tensor_of(made *image, size_t rows)
{
    const leat__output_spec *o = image->output;
    bool last = o->layout == LEAT__LAYOUT_NHWC;
    int64_t shape[5] = {(int64_t)rows, o->crops};
    int32_t n = o->crops > 0 ? 2 : 1;

    shape[n++] = last ? o->height : o->channels;
    shape[n++] = last ? o->width : o->height;
    shape[n++] = last ? o->channels : o->width;

    void *block = image->block;
    image->block = NULL; /* ownership was taken, also on failure */
    image->memory = py_memory_new(NULL, block);
    if (image->memory == NULL) return NULL;
    return py_tensor_new(image->memory, block, o->dtype, n, shape, NULL);
}

PyObject *py_pipeline_make(py_pack_handle *h, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    making m = {.h = h};
    unsigned long long seed, epoch;
    PyObject *list, *samples = NULL, *tensors = NULL, *follow = Py_None, *followers = PyList_New(0);
    Py_buffer index;
    int as_stored;

    if (followers == NULL || !PyArg_ParseTuple(args, "y*O!KKp|O", &index, &PyList_Type, &list, &seed, &epoch,
                                               &as_stored, &follow)) {
        Py_XDECREF(followers);
        return NULL;
    }
    size_t rows = (size_t)index.len / sizeof(uint64_t);
    m.key.seed = seed;
    m.key.epoch = epoch;
    m.as_stored = as_stored != 0;
    if (follow != Py_None) m.follow = py_follow_of(follow);
    if ((follow == Py_None || m.follow != NULL) && prepare(&m, list, rows, &err))
        samples = all_samples(&m, index.buf, rows, followers, &err);
    if (samples != NULL) tensors = PyList_New(m.count);
    for (uint32_t i = 0; tensors != NULL && i < m.count; i++) {
        PyObject *tensor = tensor_of(&m.images[i], rows);
        if (tensor == NULL || PyList_SetItem(tensors, i, tensor) != 0) Py_CLEAR(tensors);
    }
    let_go(&m);
    PyBuffer_Release(&index);
    if (tensors != NULL) return Py_BuildValue("(NNN)", samples, tensors, followers);
    Py_XDECREF(samples);
    Py_DECREF(followers);
    return NULL;
}

/* ---- the module ----------------------------------------------------------------------------- */

static PyType_Slot pipeline_slots[] = {
    {Py_tp_new, pipeline_new},
    {Py_tp_dealloc, pipeline_dealloc},
    {Py_tp_doc, "Pipeline(ops, view=0, kind=0, field=None): ops ready to run on samples of a pack."},
    {0, NULL},
};

static PyType_Spec pipeline_spec = {
    .name = "leat._leat.Pipeline",
    .basicsize = sizeof(py_pipeline),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = pipeline_slots,
};

int py_pipeline_register(PyObject *module)
{
    pipeline_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &pipeline_spec, NULL);
    return pipeline_type != NULL ? PyModule_AddType(module, pipeline_type) : -1;
}
