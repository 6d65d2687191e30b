/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader behind leat.Loader (leat/_loader.py). Options arrive checked and complete; batches are returned
 * as tuples of tensors that share one block of memory.
 *
 * Waiting happens in slices without the GIL, and between them Python may handle signals: Ctrl-C ends a
 * blocked next() within a slice.
 */
#include "py_leat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#define SLICE_MS 50

typedef struct py_loader {
    PyObject_HEAD leat_loader *loader; /* NULL when closed */
    pid_t made_by;
    bool busy;                /* a thread is inside without the GIL */
    uint64_t given;           /* batches of this epoch that were delivered, or skipped when resuming */
    bool hashed;              /* batches have hashes of their samples */
    uint64_t digest;          /* digest of the samples delivered in this epoch, as in `leat load --digest` */
    leat_doctor_watch *watch; /* NULL until first used */
    leat_doctor_server *server;
} py_loader;

/* ---- options ---------------------------------------------------------------------------------- */

/* Memory that options point to until the loader is open. */
typedef struct scratch {
    leat_loader_image *images;
    leat_loader_source *sources;
    leat_loader_default *defaults;
    const char **fields;
    Py_buffer indices, weights, edges;
    bool has_indices, has_weights, has_edges;
} scratch;

static void scratch_free(scratch *s)
{
    leat__free(s->images);
    leat__free(s->sources);
    leat__free(s->defaults);
    leat__free(s->fields);
    if (s->has_indices) PyBuffer_Release(&s->indices);
    if (s->has_weights) PyBuffer_Release(&s->weights);
    if (s->has_edges) PyBuffer_Release(&s->edges);
}

/* Parses [(name or None, field or None, ops), …]; the list owns the strings. */
static int parse_images(leat_loader_opts *o, scratch *s, PyObject *list)
{
    Py_ssize_t n = list != Py_None ? PyList_Size(list) : 0;
    if (n < 0) return -1;
    if (n == 0) return 0;
    s->images = LEAT_NEW_ARRAY(LOADER, leat_loader_image, (size_t)n);
    if (s->images == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        leat_loader_image *image = &s->images[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "zzz", &image->name, &image->field, &image->ops))
            return -1;
    }
    o->images = s->images;
    o->image_count = (uint32_t)n;
    return 0;
}

/* Parses [(path, weight, repeat, choose), …] and [(field, i, f), …]; the lists own the text. */
static int parse_sources(leat_loader_opts *o, scratch *s, PyObject *sources, PyObject *defaults)
{
    Py_ssize_t n = sources != Py_None ? PyList_Size(sources) : 0;
    Py_ssize_t fills = defaults != Py_None ? PyList_Size(defaults) : 0;
    if (n < 0 || fills < 0) return -1;
    s->sources = LEAT_NEW_ARRAY(LOADER, leat_loader_source, (size_t)n + 1);
    s->defaults = LEAT_NEW_ARRAY(LOADER, leat_loader_default, (size_t)fills + 1);
    if (s->sources == NULL || s->defaults == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        unsigned long long choose;
        leat_loader_source *at = &s->sources[i];
        if (!PyArg_ParseTuple(PyList_GetItem(sources, i), "yddK", &at->path, &at->weight, &at->repeat,
                              &choose))
            return -1;
        at->choose = choose;
    }
    for (Py_ssize_t i = 0; i < fills; i++) {
        long long whole;
        leat_loader_default *at = &s->defaults[i];
        if (!PyArg_ParseTuple(PyList_GetItem(defaults, i), "sLd", &at->field, &whole, &at->f)) return -1;
        at->i = whole;
    }
    o->sources = s->sources;
    o->source_count = (uint32_t)n;
    o->defaults = s->defaults;
    o->default_count = (uint32_t)fills;
    return 0;
}

static int parse_fields(leat_loader_opts *o, scratch *s, PyObject *list)
{
    if (list == Py_None) return 0;
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return -1;
    s->fields = LEAT_NEW_ARRAY(LOADER, const char *, (size_t)n + 1);
    if (s->fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        s->fields[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (s->fields[i] == NULL) return -1;
    }
    o->fields = s->fields;
    o->field_count = (uint32_t)n;
    return 0;
}

static int parse_arrays(leat_loader_opts *o, scratch *s, PyObject *indices, PyObject *weights,
                        PyObject *edges)
{
    if (indices != Py_None) {
        if (PyObject_GetBuffer(indices, &s->indices, PyBUF_CONTIG_RO) != 0) return -1;
        s->has_indices = true;
        o->indices = s->indices.buf;
        o->index_count = (uint64_t)s->indices.len / sizeof *o->indices;
    }
    if (weights != Py_None) {
        if (PyObject_GetBuffer(weights, &s->weights, PyBUF_CONTIG_RO) != 0) return -1;
        s->has_weights = true;
        o->weights = s->weights.buf;
        o->weight_count = (uint64_t)s->weights.len / sizeof(double);
    }
    if (edges != Py_None) {
        if (PyObject_GetBuffer(edges, &s->edges, PyBUF_CONTIG_RO) != 0) return -1;
        s->has_edges = true;
        o->bucket_edges = s->edges.buf;
        o->bucket_edge_count = (uint32_t)((uint64_t)s->edges.len / sizeof(double));
    }
    return 0;
}

static int parse_opts(leat_loader_opts *o, scratch *s, PyObject *args, PyObject *kwargs, PyObject **path)
{
    static char *names[] = {"path",          "batch_size",
                            "images",        "order",
                            "seed",          "drop_last",
                            "threads",       "memory",
                            "cache",         "on_error",
                            "max_bad",       "quarantine",
                            "rank",          "world",
                            "window_pages",  "streams",
                            "prefetch",      "io_depth",
                            "indices",       "weights",
                            "balance",       "draws",
                            "fields",        "digest",
                            "sample_fn",     "sample_cookie",
                            "label",         "classes",
                            "mix_labels",    "device",
                            "device_memory", "orientation",
                            "independent",   "follow",
                            "disk_cache",    "disk_cache_bytes",
                            "decode",        "sources",
                            "epoch_size",    "mix_batches",
                            "replacement",   "defaults",
                            "collate",       "pad_multiple",
                            "pad_value",     "pad_mask",
                            "bucket",        "buckets",
                            "edges",         NULL};
    PyObject *sources = Py_None, *defaults = Py_None, *given = NULL;
    unsigned long long epoch_size = 0;
    int mix_batches = 0, replacement = 0, collate = 0, pad_mask = 0, bucket = 0;
    PyObject *edges = Py_None;
    PyObject *images = Py_None, *indices = Py_None, *weights = Py_None, *fields = Py_None;
    unsigned long long seed = 0, memory = 0, max_bad = 0, draws = 0, fn = 0, cookie = 0, device_memory = 0;
    unsigned long long disk_cache_bytes = 0;
    int order = (int)o->order, cache = (int)o->cache, on_error = 0, drop_last = (int)o->drop_last;
    int digest = 0, mix_labels = 0, orientation = 0, independent = 0, decode = 0;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O|$IOiKiIKiiKzIIIIIIOOzKOpKKzIizKipzzKiOKipOiIdpiIO", names, &given,
            &o->batch_size, &images, &order, &seed, &drop_last, &o->threads, &memory, &cache, &on_error,
            &max_bad, &o->quarantine, &o->rank, &o->world, &o->window_pages, &o->streams, &o->prefetch,
            &o->io_depth, &indices, &weights, &o->balance, &draws, &fields, &digest, &fn, &cookie, &o->label,
            &o->classes, &mix_labels, &o->device, &device_memory, &orientation, &independent, &o->follow,
            &o->disk_cache, &disk_cache_bytes, &decode, &sources, &epoch_size, &mix_batches, &replacement,
            &defaults, &collate, &o->pad_multiple, &o->pad_value, &pad_mask, &bucket, &o->bucket_count,
            &edges))
        return -1;
    if (given != Py_None && !PyUnicode_FSConverter(given, path)) return -1;
    o->epoch_size = epoch_size;
    o->mix_batches = (leat_mix_batches)mix_batches;
    o->mix_replacement = (uint32_t)replacement;
    o->collate = (leat_collate)collate;
    o->pad_mask = (uint32_t)pad_mask;
    o->bucket = (leat_bucket)bucket;
    o->order = (leat_order)order;
    o->seed = seed;
    o->drop_last = (uint32_t)drop_last;
    o->memory = memory;
    o->cache = (leat_cache)cache;
    o->on_error = (leat_on_error)on_error;
    o->orientation = (leat_orientation)orientation;
    o->max_bad = max_bad;
    o->draws = draws;
    o->mix_labels = (leat_mix_labels)mix_labels;
    o->independent = (uint32_t)independent;
    o->digest = (uint32_t)digest;
    o->device_memory = device_memory;
    o->disk_cache_bytes = disk_cache_bytes;
    o->decode = (leat_decode)decode;
    o->sample_fn = (leat_sample_fn)(uintptr_t)fn;
    o->sample_cookie = (void *)(uintptr_t)cookie;
    if (parse_images(o, s, images) != 0 || parse_fields(o, s, fields) != 0) return -1;
    if (parse_sources(o, s, sources, defaults) != 0) return -1;
    return parse_arrays(o, s, indices, weights, edges);
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_loader_opts opts;
    scratch s = {0};
    PyObject *path = NULL;
    py_loader *self = NULL;
    leat_loader *loader = NULL;
    int rc;

    leat_loader_opts_init(&opts);
    if (parse_opts(&opts, &s, args, kwargs, &path) != 0) goto out;
    const char *name = path != NULL ? PyBytes_AsString(path) : NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_loader_open(&loader, name, &opts, &err);
    Py_END_ALLOW_THREADS if (rc != 0 || PyErr_Occurred()) /* by a signal handler */
    {
        py_raise(&err);
        leat_loader_close(&loader);
        goto out;
    }
    self = (py_loader *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) {
        leat_loader_close(&loader);
        goto out;
    }
    self->loader = loader;
    self->made_by = getpid();
out:
    scratch_free(&s);
    Py_XDECREF(path);
    return (PyObject *)self;
}

static void loader_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    py_loader *self = (py_loader *)o;
    if (self->loader != NULL && self->made_by == getpid()) {
        Py_BEGIN_ALLOW_THREADS leat_doctor_server_close(&self->server);
        leat_doctor_watch_close(&self->watch);
        leat_loader_close(&self->loader);
        Py_END_ALLOW_THREADS
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

/* ---- one thread at a time ------------------------------------------------------------------- */

static bool enter(py_loader *self)
{
    leat_error err = {.code = LEAT_ESTATE, .sample = -1, .offset = -1};

    if (!py_same_process(self->made_by, "loader")) return false;
    if (self->loader != NULL && !self->busy) {
        self->busy = true;
        return true;
    }
    if (self->loader == NULL) err.code = LEAT_ECLOSED;
    snprintf(err.message, sizeof err.message, "%s",
             self->loader == NULL ? "the loader is closed" : "another thread is using this loader");
    py_raise(&err);
    return false;
}

static PyObject *loader_close(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;
    (void)unused;
    if (self->loader == NULL || self->made_by != getpid()) Py_RETURN_NONE;
    if (!enter(self)) return NULL;
    leat_loader *loader = self->loader;
    self->loader = NULL;
    Py_BEGIN_ALLOW_THREADS leat_doctor_server_close(&self->server);
    leat_doctor_watch_close(&self->watch);
    leat_loader_close(&loader);
    Py_END_ALLOW_THREADS self->busy = false;
    Py_RETURN_NONE;
}

/* ---- epochs --------------------------------------------------------------------------------- */

static PyObject *loader_begin(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long epoch;
    int rc;

    if (!PyArg_ParseTuple(args, "K", &epoch) || !enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_loader_begin(self->loader, epoch, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    self->given = self->digest = 0;
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* Waits for a batch, and lets Python handle signals between slices. Returns -1 with an exception set. */
static int wait_batch(py_loader *self, leat_batch **batch)
{
    leat_error err;
    int rc;

    for (;;) {
        leat__error_reset(&err);
        Py_BEGIN_ALLOW_THREADS rc = leat_loader_next(self->loader, batch, SLICE_MS, &err);
        Py_END_ALLOW_THREADS if (rc == 0) return 0;
        if (rc != LEAT_ETIMEDOUT && rc != LEAT_EAGAIN) {
            py_raise(&err);
            return -1;
        }
        if (PyErr_CheckSignals() != 0) return -1;
    }
}

static PyObject *ragged_tuple(py_memory *memory, const leat_tensor *t, uint32_t rows)
{
    int64_t total = t->offsets[rows], ends = rows + 1;
    int64_t shapes[2] = {rows, t->ragged_ndim};
    PyObject *values = NULL, *offsets = NULL, *dims = NULL;

    values = py_tensor_new(memory, t->data, t->dtype, 1, &total, NULL);
    offsets = py_tensor_new(memory, (void *)t->offsets, LEAT_DTYPE_I64, 1, &ends, NULL);
    if (t->ragged_ndim > 0)
        dims = py_tensor_new(memory, (void *)t->ragged_shapes, LEAT_DTYPE_I64, 2, shapes, NULL);
    else dims = Py_NewRef(Py_None);
    if (values != NULL && offsets != NULL && dims != NULL)
        return Py_BuildValue("(NNN)", values, offsets, dims);
    Py_XDECREF(values);
    Py_XDECREF(offsets);
    Py_XDECREF(dims);
    return NULL;
}

static PyObject *field_value(py_memory *memory, const leat_tensor *t, uint32_t rows, int32_t device)
{
    int64_t shape[LEAT_NDIM_MAX];

    if (t->offsets != NULL) return ragged_tuple(memory, t, rows);
    memcpy(shape, t->shape, sizeof shape);
    shape[0] = rows;
    PyObject *tensor = py_tensor_new(memory, t->data, t->dtype, (int32_t)t->ndim, shape, t->strides);
    if (tensor != NULL) ((py_tensor *)tensor)->device = device;
    return tensor;
}

/* Returns (fields…, sample_id): tensors of one batch, which `memory` keeps alive. */
static PyObject *batch_tuple(py_memory *memory, uint32_t count, const leat_tensor *const *fields,
                             uint32_t rows, const uint64_t *ids, int32_t device)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count + 1), *item;
    int64_t n = rows;

    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        item = field_value(memory, fields[i], rows, device);
        if (item == NULL || PyTuple_SetItem(tuple, i, item) != 0) Py_CLEAR(tuple);
    }
    if (tuple == NULL) return NULL;
    /* ids are below 2^48: as int64, because torch has few operations on uint64 */
    item = py_tensor_new(memory, (void *)ids, LEAT_DTYPE_I64, 1, &n, NULL);
    if (item == NULL || PyTuple_SetItem(tuple, count, item) != 0) Py_CLEAR(tuple);
    return tuple;
}

static void fold_digest(py_loader *self, const leat_batch *batch)
{
    self->hashed = self->hashed || batch->sample_hash != NULL;
    for (uint32_t i = 0; batch->sample_hash != NULL && i < batch->samples; i++) {
        uint64_t pair[2] = {self->digest, batch->sample_hash[i]};
        self->digest = leat__hash64(pair, sizeof pair, 0);
    }
}

static PyObject *deliver(py_loader *self, leat_batch *batch)
{
    uint32_t count = batch->field_count; /* not the loader's: a change may be pending */
    const leat_tensor **fields = LEAT_NEW_ARRAY(LOADER, const leat_tensor *, count + 1);
    PyObject *tuple = NULL;

    if (fields == NULL) {
        leat_batch_release(&batch);
        return PyErr_NoMemory();
    }
    for (uint32_t i = 0; i < count; i++) fields[i] = &batch->fields[i];
    uint32_t rows = batch->samples;
    const uint64_t *ids = batch->sample_ids;
    fold_digest(self, batch);
    py_memory *memory = py_memory_new(batch, NULL);
    if (memory != NULL)
        tuple = batch_tuple(memory, count, fields, rows, ids, leat_loader_device(self->loader));
    py_memory_drop(memory);
    leat__free(fields);
    return tuple;
}

/* next(capturing=False, stream=None): returns the next batch, or None after the last. Steps on the
 * stream are measured only while a doctor watches. */
static PyObject *loader_next(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_batch *batch = NULL;
    PyObject *stream = Py_None;
    int capturing = 0;

    if (!PyArg_ParseTuple(args, "|pO", &capturing, &stream)) return NULL;
    uintptr_t number = stream == Py_None ? LEAT_STREAM_UNKNOWN : (uintptr_t)PyLong_AsUnsignedLongLong(stream);
    if (PyErr_Occurred() || !enter(self)) return NULL;
    leat_loader_capturing(self->loader, (uint32_t)capturing);
    leat_loader_stream(self->loader, self->watch != NULL ? number : LEAT_STREAM_UNKNOWN);
    int rc = wait_batch(self, &batch);
    self->busy = false;
    if (rc != 0) return NULL;
    if (batch == NULL) Py_RETURN_NONE;
    self->given++;
    return deliver(self, batch);
}

/* set(images or None, batch_size or 0, when): returns whether it was applied to the current epoch. */
static PyObject *loader_set(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    leat_loader_change change = LEAT_LOADER_CHANGE_INIT;
    leat_loader_opts opts = {0};
    scratch s = {0};
    PyObject *images;
    int when, rc = -1;

    if (!PyArg_ParseTuple(args, "OIi", &images, &change.batch_size, &when)) return NULL;
    if (parse_images(&opts, &s, images) == 0 && enter(self)) {
        change.when = (leat_when)when;
        change.images = opts.images;
        change.image_count = opts.image_count;
        Py_BEGIN_ALLOW_THREADS rc = leat_loader_set(self->loader, &change, &err);
        Py_END_ALLOW_THREADS self->busy = false;
        if (rc != 0) py_raise(&err);
    }
    scratch_free(&s);
    if (rc != 0) return NULL;
    Py_RETURN_NONE;
}

/* counted(given): after a change within an epoch, sets the number of past batches, in batches of the
 * current size. */
static PyObject *loader_counted(PyObject *o, PyObject *args)
{
    unsigned long long given;
    if (!PyArg_ParseTuple(args, "K", &given)) return NULL;
    ((py_loader *)o)->given = given;
    Py_RETURN_NONE;
}

static PyObject *loader_stop(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;
    (void)unused;
    if (self->loader == NULL || self->made_by != getpid()) Py_RETURN_NONE;
    if (!enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS leat_loader_stop(self->loader);
    Py_END_ALLOW_THREADS self->busy = false;
    Py_RETURN_NONE;
}

/* ---- state ----------------------------------------------------------------------------------- */

static PyObject *loader_state(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    char text[LEAT_LOADER_STATE_MAX];
    size_t size;

    (void)unused;
    if (!enter(self)) return NULL;
    int rc = leat_loader_state(self->loader, UINT64_MAX, text, sizeof text, &size, &err);
    self->busy = false;
    if (rc != 0) return py_raise(&err);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "strict");
}

static PyObject *loader_restore(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long batches;
    const char *text;
    int rc;

    if (!PyArg_ParseTuple(args, "sK", &text, &batches) || !enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_loader_restore(self->loader, text, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    if (rc != 0) return py_raise(&err);
    self->given = batches;
    self->digest = 0;
    Py_RETURN_NONE;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static PyObject *loader_fields(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;

    (void)unused;
    if (!enter(self)) return NULL;
    uint32_t n = leat_loader_field_count(self->loader);
    PyObject *list = PyList_New(n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        const leat_tensor *t = leat_loader_field(self->loader, i);
        PyObject *shape = PyTuple_New(t->ndim), *row = NULL;
        for (uint32_t d = 0; shape != NULL && d < t->ndim; d++) {
            PyObject *size = PyLong_FromLongLong(t->shape[d]);
            if (size == NULL || PyTuple_SetItem(shape, d, size) != 0) Py_CLEAR(shape);
        }
        if (shape != NULL)
            row = Py_BuildValue("(sssN)", t->name, leat_field_type_name(t->type), py_dtype_name(t->dtype),
                                shape);
        if (row == NULL || PyList_SetItem(list, i, row) != 0) Py_CLEAR(list);
    }
    self->busy = false;
    return list;
}

/* stats(all=False): returns figures of the epoch, or of all epochs so far. */
static PyObject *loader_stats(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    leat_loader_stats s = {0};
    int all = 0;

    if (!PyArg_ParseTuple(args, "|p", &all) || !enter(self)) return NULL;
    int rc =
        all ? leat_loader_read_all(self->loader, &s, sizeof s) : leat_loader_read(self->loader, &s, sizeof s);
    self->busy = false;
    if (rc != 0) {
        leat__fail(&err, rc, "the loader's statistics cannot be read");
        return py_raise(&err);
    }
    typedef unsigned long long u;
    double busy[LEAT_LOADER_STAGES];
    for (int i = 0; i < LEAT_LOADER_STAGES; i++) busy[i] = (double)s.stages[i].busy_ns / 1e9;
    PyObject *stats = Py_BuildValue(
        "{sI sI sI sK sK sK sK sK sK sK sK sK sd sd sd sd sK sK sK sK sK sK sK sd sd sd sK sK sK sK sK "
        "s(dddd)}",
        "threads", (unsigned)s.threads, "io_depth", (unsigned)s.io_depth, "prefetch", (unsigned)s.prefetch,
        "epoch", (u)s.epoch, "batches", (u)s.batches, "samples", (u)s.samples, "bad_samples",
        (u)s.bad_samples, "read_bytes", (u)s.read_bytes, "reads", (u)s.reads, "cache_hits", (u)s.cache_hits,
        "cache_misses", (u)s.cache_misses, "cache_bytes", (u)s.cache_bytes, "read_seconds",
        (double)s.read_ns / 1e9, "decode_seconds", (double)s.decode_ns / 1e9, "wait_seconds",
        (double)s.wait_ns / 1e9, "seconds", (double)s.elapsed_ns / 1e9, "budget_limit_bytes",
        (u)s.budget_limit, "budget_used_bytes", (u)s.budget_used, "budget_kept_bytes", (u)s.budget_kept,
        "budget_peak_bytes", (u)s.budget_peak, "budget_memory_bytes", (u)s.budget_memory,
        "budget_memory_peak_bytes", (u)s.budget_memory_peak, "steps", (u)s.steps, "data_ms", s.data_ms,
        "batch_ms", s.batch_ms, "prepare_ms", s.prepare_ms, "remote_requests", (u)s.remote_requests,
        "remote_retries", (u)s.remote_retries, "remote_bytes", (u)s.remote_bytes, "disk_cache_hits",
        (u)s.disk_cache_hits, "remote_hedged", (u)s.remote_hedged, "busy_seconds", busy[0], busy[1], busy[2],
        busy[3]);
    if (stats != NULL && self->hashed) {
        char hex[20];
        snprintf(hex, sizeof hex, "%016" PRIx64, self->digest);
        PyObject *text = PyUnicode_FromString(hex);
        if (text == NULL || PyDict_SetItemString(stats, "digest", text) != 0) Py_CLEAR(stats);
        Py_XDECREF(text);
    }
    if (stats == NULL || leat_loader_device(self->loader) < 0) return stats;
    PyObject *device = Py_BuildValue(
        "{sN sK sK sK sK sd sd sK sd sd sd sK sK sd}", "page_locked", PyBool_FromLong((long)s.page_locked),
        "device_limit_bytes", (u)s.device_limit, "device_used_bytes", (u)s.device_used, "device_peak_bytes",
        (u)s.device_peak, "copied_bytes", (u)s.copied_bytes, "copy_seconds", (double)s.copy_ns / 1e9,
        "copy_wait_seconds", (double)s.copy_wait_ns / 1e9, "device_images", (u)s.device_images,
        "device_decode_seconds", (double)s.device_decode_ns / 1e9, "device_share", s.device_share,
        "device_overlap_seconds", (double)s.device_overlap_ns / 1e9, "device_cached_images",
        (u)s.device_cached_images, "device_cached_bytes", (u)s.device_cached_bytes, "device_step_ms",
        s.device_step_ms);
    if (device == NULL || PyDict_Update(stats, device) != 0) Py_CLEAR(stats);
    Py_XDECREF(device);
    return stats;
}

/* prepared(ns): reports how long the caller worked on the last batch. */
static PyObject *loader_prepared(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    unsigned long long ns;

    if (!PyArg_ParseTuple(args, "K", &ns) || !enter(self)) return NULL;
    leat_loader_prepared(self->loader, ns);
    self->busy = false;
    Py_RETURN_NONE;
}

/* set_memory(bytes): sets the budget from now on. */
static PyObject *loader_set_memory(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long bytes;
    int rc;

    if (!PyArg_ParseTuple(args, "K", &bytes) || !enter(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_loader_memory_set(self->loader, bytes, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* order(epoch, first, out): writes the samples that this rank gets to a buffer of uint64. */
static PyObject *loader_order(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long epoch, first;
    PyObject *out;
    Py_buffer view;
    int rc;

    if (!PyArg_ParseTuple(args, "KKO", &epoch, &first, &out)) return NULL;
    if (PyObject_GetBuffer(out, &view, PyBUF_CONTIG) != 0) return NULL;
    if (!enter(self)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    uint64_t *ids = view.buf, count = (uint64_t)view.len / sizeof *ids;
    Py_BEGIN_ALLOW_THREADS rc = leat_loader_samples_at(self->loader, epoch, first, count, ids, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    PyBuffer_Release(&view);
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *loader_counts(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;
    (void)unused;
    if (!enter(self)) return NULL;
    self->busy = false;
    return Py_BuildValue("(KKK)", (unsigned long long)leat_loader_samples(self->loader),
                         (unsigned long long)leat_loader_batches(self->loader),
                         (unsigned long long)self->given);
}

/* advice(): returns lines that a user should know. */
static PyObject *loader_advice(PyObject *o, PyObject *unused)
{
    py_loader *self = (py_loader *)o;
    const char *line;

    (void)unused;
    if (!enter(self)) return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && (line = leat_loader_advice(self->loader, i)) != NULL; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(line); /* the line contains a path */
        if (text == NULL || PyList_Append(list, text) != 0) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    self->busy = false;
    return list;
}

/* ---- looking at it ---------------------------------------------------------------------------- */

/* Returns the watch; opens it when first requested. */
static leat_doctor_watch *watch_of(py_loader *self)
{
    leat_error err = {.sample = -1, .offset = -1};
    if (!py_same_process(self->made_by, "loader")) return NULL;
    if (self->loader == NULL) {
        err.code = LEAT_ECLOSED;
        snprintf(err.message, sizeof err.message, "the loader is closed");
    } else if (self->watch != NULL || leat_doctor_watch_open(&self->watch, self->loader, 0, &err) == 0) {
        return self->watch;
    }
    py_raise(&err);
    return NULL;
}

static PyObject *loader_watch(PyObject *o, PyObject *unused)
{
    (void)unused;
    if (watch_of((py_loader *)o) == NULL) return NULL;
    Py_RETURN_NONE;
}

/* record(path or None): starts recording the run to a file, or ends it. */
static PyObject *loader_record(PyObject *o, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *path = NULL, *given;
    int rc;

    if (!PyArg_ParseTuple(args, "O", &given)) return NULL;
    leat_doctor_watch *watch = watch_of((py_loader *)o);
    if (watch == NULL || (given != Py_None && !PyUnicode_FSConverter(given, &path))) return NULL;
    const char *name = path != NULL ? PyBytes_AsString(path) : NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat_doctor_watch_record(watch, name, &err);
    Py_END_ALLOW_THREADS Py_XDECREF(path);
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *loader_doctor(PyObject *o, PyObject *args)
{
    int format;
    if (!PyArg_ParseTuple(args, "i", &format)) return NULL;
    leat_doctor_watch *watch = watch_of((py_loader *)o);
    return watch != NULL ? py_watch_text(watch, format) : NULL;
}

static PyObject *loader_report(PyObject *o, PyObject *args)
{
    const char *title;
    if (!PyArg_ParseTuple(args, "s", &title)) return NULL;
    leat_doctor_watch *watch = watch_of((py_loader *)o);
    return watch != NULL ? py_watch_report(watch, title) : NULL;
}

static PyObject *loader_serve(PyObject *o, PyObject *args)
{
    py_loader *self = (py_loader *)o;
    leat_error err = {.sample = -1, .offset = -1};
    unsigned short port;
    if (!PyArg_ParseTuple(args, "H", &port)) return NULL;
    leat_doctor_watch *watch = watch_of(self);
    if (watch == NULL) return NULL;
    leat_doctor_server_close(&self->server);
    if (leat_doctor_serve(&self->server, watch, port, &err) != 0) return py_raise(&err);
    return PyLong_FromUnsignedLong(leat_doctor_server_port(self->server));
}

static PyMethodDef loader_methods[] = {
    {"begin", loader_begin, METH_VARARGS, "begin(epoch): starts an epoch at its first batch."},
    {"next", loader_next, METH_VARARGS,
     "(fields…, sample_id) of the next batch; None at the end. True: this thread captures a CUDA graph."},
    {"set", loader_set, METH_VARARGS, NULL},
    {"counted", loader_counted, METH_VARARGS, NULL},
    {"stop", loader_stop, METH_NOARGS, "Stops the epoch; its state can still be read."},
    {"state", loader_state, METH_NOARGS, "The loader's position, as JSON."},
    {"restore", loader_restore, METH_VARARGS, "restore(json, batches done): resumes from a state."},
    {"fields", loader_fields, METH_NOARGS, "(name, type, dtype, shape) of each field of a batch."},
    {"set_memory", loader_set_memory, METH_VARARGS, "set_memory(bytes): the budget from now on."},
    {"prepared", loader_prepared, METH_VARARGS,
     "prepared(ns): time the caller spent on the last batch before the training."},
    {"stats", loader_stats, METH_VARARGS, "stats(all=False): figures of this epoch, or of all."},
    {"advice", loader_advice, METH_NOARGS, "Advice for the user, one line each."},
    {"order", loader_order, METH_VARARGS, "order(epoch, first, out): samples of this rank."},
    {"counts", loader_counts, METH_NOARGS, "(samples, batches, batches given) of this rank per epoch."},
    {"watch", loader_watch, METH_NOARGS, "Records the doctor's measurements from now on."},
    {"record", loader_record, METH_VARARGS, "record(path or None): writes the run to a file, or ends it."},
    {"doctor", loader_doctor, METH_VARARGS, "doctor(format): the bottleneck of the run, as text."},
    {"report", loader_report, METH_VARARGS, "report(title): an HTML page with plots."},
    {"serve", loader_serve, METH_VARARGS, "serve(port): a live page on 127.0.0.1; its port."},
    {"close", loader_close, METH_NOARGS, "Stops and frees; borrowed batches stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot loader_slots[] = {
    {Py_tp_new, loader_new},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_doc, "A loader; use leat.Loader."},
    {Py_tp_methods, loader_methods},
    {0, NULL},
};

static PyType_Spec loader_spec = {
    .name = "leat._leat.Loader",
    .basicsize = sizeof(py_loader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = loader_slots,
};

int py_loader_register(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &loader_spec, NULL);
    int rc = type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return rc;
}
