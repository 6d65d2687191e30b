/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the extension, which uses the limited API (CPython 3.11 and later): one binary for
 * all versions. It has no logic: what can be written in Python is in python/leat.
 *
 * Threads: every call enters with the GIL; calls that can wait release it. Borrowed memory and pack handles
 * are reference-counted in C, without the GIL, because consumers of DLPack and Arrow release them from
 * threads that Python does not know.
 */
#ifndef LEAT_PY_LEAT_H
#define LEAT_PY_LEAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <leat/doctor.h>
#include <leat/error.h>
#include <leat/loader.h>
#include <leat/pack.h>

#include "base/buf.h"

/* ---- errors ----------------------------------------------------------------------------- */

/* Raises the exception of leat._errors for *err; always returns NULL. */
PyObject *py_raise(const leat_error *err);

/* Checks that this process made `what`; raises leat.ForkError and returns false otherwise. */
bool py_same_process(pid_t made_by, const char *what);

/* ---- borrowed memory ---------------------------------------------------------------------- */

/* The memory of tensors: a batch borrowed from a loader, or a block of leat__alloc. Freed when the
 * last reference is dropped, on any thread. */
typedef struct py_memory {
    _Atomic uint64_t refs;
    leat_batch *batch; /* or NULL */
    void *block;       /* or NULL */
    pid_t made_by;     /* a forked child must not release memory that its parent still uses */
} py_memory;

/* Takes ownership of the batch or the block. On failure it releases them and returns NULL with
 * MemoryError. */
py_memory *py_memory_new(leat_batch *batch, void *block);
void py_memory_ref(py_memory *memory);
void py_memory_drop(py_memory *memory);

/* ---- tensors ------------------------------------------------------------------------------ */

typedef struct py_tensor {
    PyObject_HEAD py_memory *memory;
    void *data;
    uint32_t dtype; /* leat_dtype */
    int32_t ndim;
    bool readonly;
    int32_t device; /* CUDA device of `data`, -1 = CPU memory */
    int64_t shape[LEAT_NDIM_MAX];
    int64_t strides[LEAT_NDIM_MAX];                                    /* in elements */
    Py_ssize_t byte_shape[LEAT_NDIM_MAX], byte_strides[LEAT_NDIM_MAX]; /* for the buffer protocol */
} py_tensor;

/* Makes a tensor over memory of `memory`, which gains a reference. strides NULL = row-major. It is on
 * the CPU: set `device` for others. */
PyObject *py_tensor_new(py_memory *memory, void *data, uint32_t dtype, int32_t ndim, const int64_t *shape,
                        const int64_t *strides);

/* Returns the name that NumPy uses ("float32"); NULL when unknown. */
const char *py_dtype_name(uint32_t dtype);
char py_dtype_kind(uint32_t dtype);       /* NumPy's letter: b, i, u, f; 0 for bfloat16 */
uint32_t py_dtype_find(const char *name); /* also "f32"; 0 when unknown */

PyObject *py_tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *py_tensor_dlpack_device(PyObject *self, PyObject *unused);

/* ---- packs -------------------------------------------------------------------------------- */

/* An open pack that readers, Arrow streams and images share. */
typedef struct py_pack_handle {
    _Atomic uint64_t refs;
    leat_pack *pack;
    void *tables; /* tables of tiled images, or NULL */
    pid_t made_by;
} py_pack_handle;

void py_pack_ref(py_pack_handle *h);
void py_pack_drop(py_pack_handle *h);

/* Returns the index columns as an "arrow_array_stream" capsule. */
PyObject *py_arrow_stream(py_pack_handle *h);

/* Decodes an image to height x width x channels, turned to its EXIF orientation, into a tensor. */
PyObject *py_image_decode(const py_pack_handle *h, const void *data, size_t size,
                          const leat_pack_image *image);
/* Returns the source file of an image as bytes: the stored file, or the one restored from its tiles. */
PyObject *py_image_file(const py_pack_handle *h, const void *data, size_t size, const leat_pack_image *image);
/* Inspects encoded bytes and fills in what the index stores about an image. */
int py_image_describe(const void *data, size_t size, leat_pack_image *image, leat_error *err);
/* Converts pixels (height x width x channels) to a stored image in a new block of leat__alloc. */
int py_image_raw(const void *pixels, uint32_t height, uint32_t width, uint32_t channels, uint32_t dtype,
                 void **data, size_t *size, leat_error *err);

PyObject *py_image_png(PyObject *module, PyObject *args);   /* png(pixels): returns a PNG file */
PyObject *py_check_shard(PyObject *module, PyObject *args); /* check_shard(path): raises if foreign */
PyObject *py_pixel_file(PyObject *module, PyObject *args);  /* pixel_file(stored): PNG or TIFF */
/* Returns the values of the sample last read in the order of the schema, then its key; None for
 * fields marked in `skip` (one per field, or NULL). */
PyObject *py_sample_list(const py_pack_handle *h, const leat_sample *s, const bool *skip, leat_error *err);
PyObject *py_follow_new(py_pack_handle *h, PyObject *args); /* see leat._leat.Pack.follow */
/* Returns (values of each sample, one tensor per pipeline, values that follow): see leat._leat.Pack.make. */
PyObject *py_pipeline_make(py_pack_handle *h, PyObject *args);

/* ---- packing ------------------------------------------------------------------------------ */

PyObject *py_ingest(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_set_reader(PyObject *module, PyObject *args);
PyObject *py_read_file(PyObject *module, PyObject *args);
PyObject *py_yaml(PyObject *module, PyObject *args);
PyObject *py_stage_file(PyObject *module, PyObject *args);
PyObject *py_list_folder(PyObject *module, PyObject *args);
PyObject *py_file_tail(PyObject *module, PyObject *args);
PyObject *py_decompress(PyObject *module, PyObject *args);

/* Parses rows (name, type, dtype or None, shape, ndim) into fields; the first *count names are owned. */
int py_fields_parse(leat_field **fields, uint32_t *count, PyObject *list);
/* A value to be packed, and the objects it keeps alive until it is. */
typedef struct py_holding {
    Py_buffer view;
    bool viewed;
    void *block; /* pixels in the stored layout */
} py_holding;
int py_value_fill(leat_pack_value *v, py_holding *h, const leat_field *f, PyObject *o);
void py_value_drop(py_holding *h);
PyObject *py_compact(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_export(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_split(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_decontaminate_text(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_filter_text(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_dedup_text(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_dedup_images(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_select(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_selection(PyObject *module, PyObject *args);
PyObject *py_dedup_semantic(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_check_labels(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_check_images(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *py_score_text(PyObject *module, PyObject *args);
PyObject *py_text_signatures(PyObject *module, PyObject *args);
PyObject *py_lock_output(PyObject *module, PyObject *args);
PyObject *py_check_output(PyObject *module, PyObject *args);
PyObject *py_finished_output(PyObject *module, PyObject *args);
PyObject *py_refuse_empty(PyObject *module, PyObject *args);
PyObject *py_clear_output(PyObject *module, PyObject *args);
PyObject *py_text_cuts(PyObject *module, PyObject *args);
PyObject *py_text_lines(PyObject *module, PyObject *args);
PyObject *py_text_copy(PyObject *module, PyObject *args);
PyObject *py_text_names(PyObject *module, PyObject *unused);

/* ---- the doctor --------------------------------------------------------------------------- */

/* judge(facts as JSON, leat_doctor_format): returns the diagnosis as text. */
PyObject *py_doctor_judge(PyObject *module, PyObject *args);
PyObject *py_watch_text(leat_doctor_watch *watch, int format);
PyObject *py_watch_report(leat_doctor_watch *watch, const char *title); /* HTML */

/* ---- arguments ---------------------------------------------------------------------------- */

/* Converts str (undecodable bytes as surrogates), bytes or os.PathLike to a bytes object; new reference. */
PyObject *py_path(PyObject *path);
/* Converts possibly invalid UTF-8 to str with surrogates. */
PyObject *py_text(const char *text, size_t size);

/* ---- long calls ---------------------------------------------------------------------------- */

/* The control array. Python writes the first element to cancel; C writes the others: done, total, and
 * two that the call defines (bytes or documents; skipped, found or dropped). */
enum { PY_CONTROLS = 5 };

/* Lets waits for a server end when the control array of this thread's call says so, or after Ctrl-C in the
 * main thread. */
void py_control_hook(void);
void py_control_watch(void *array); /* NULL: this thread runs no such call */
/* A progress callback; its cookie is the control array. */
int py_on_progress(void *array, uint64_t done, uint64_t total, uint64_t third, uint64_t fourth);
/* Returns the paths of a list of bytes objects, which own them. The caller frees the array. */
const char **py_path_list(PyObject *list, uint32_t *count);

typedef struct py_run {
    Py_buffer view; /* the control array */
    const char **paths;
    uint32_t count;
} py_run;

int py_run_begin(py_run *r, PyObject *inputs, PyObject *control); /* -1: an exception is set */
void py_run_end(py_run *r);
/* Ends a run that returns a report as JSON text, which it frees. Returns the text, or raises. */
PyObject *py_run_report(py_run *r, leat__buf *json, int rc, const leat_error *err);

/* Arguments of all calls over packs, in the order of their format. */
typedef struct py_common {
    unsigned long long memory;
    int replace, sync;
} py_common;
#define PY_COMMON_NAMES "threads", "memory", "replace", "sync", NULL
#define PY_COMMON_FORMAT "IKpp"
#define PY_COMMON(o, k) &(o)->threads, &(k)->memory, &(k)->replace, &(k)->sync
/* Copies them, and the progress of a run that has begun, to the call's option struct. */
#define PY_COMMON_FILL(o, k, r)                                                                              \
    do {                                                                                                     \
        (o)->memory = (k)->memory;                                                                           \
        (o)->replace = (uint32_t)(k)->replace;                                                               \
        (o)->no_sync = !(k)->sync;                                                                           \
        (o)->progress = py_on_progress;                                                                      \
        (o)->cookie = (r)->view.buf;                                                                         \
    } while (0)

/* ---- the module --------------------------------------------------------------------------- */

extern PyTypeObject *py_tensor_type;

int py_tensor_register(PyObject *module);
int py_pack_register(PyObject *module);
int py_follow_register(PyObject *module);
int py_pipeline_register(PyObject *module);
int py_packer_register(PyObject *module);
int py_loader_register(PyObject *module);
extern PyMethodDef py_facts_methods[];

#endif
