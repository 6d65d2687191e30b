/* SPDX-License-Identifier: Apache-2.0
 *
 * Curating images: leat.check, leat.dedup_images and leat.dedup_semantic (leat/_images.py) call
 * include/leat/images.h. They run in a separate Python thread, as in py_ingest.c.
 */
#include "py_leat.h"

#include <stdatomic.h>
#include <string.h>

#include <leat/images.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "curate/image_check.h"
#include "curate/image_dedup.h"
#include "curate/label_check.h"
#include "curate/semantic_dedup.h"

PyObject *py_check_images(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sources", "output", "control",    "csv",
                            "limits",  "strict", "max_pixels", PY_COMMON_NAMES};
    leat_error err = {.sample = -1, .offset = -1};
    leat_check_opts o;
    PyObject *sources, *control;
    py_common common = {.sync = 1};
    unsigned long long most = 0;
    int strict = 0, rc;
    py_run r;
    leat__buf json;

    (void)module;
    leat_check_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzO|$zzpK" PY_COMMON_FORMAT, names, &sources, &o.output,
                                     &control, &o.csv, &o.limits, &strict, &most, PY_COMMON(&o, &common)))
        return NULL;
    leat_check_stats *stats = LEAT_NEW(MISC, leat_check_stats);
    if (stats == NULL) return PyErr_NoMemory();
    stats->struct_size = sizeof *stats;
    if (py_run_begin(&r, sources, control) != 0) {
        leat__free(stats);
        return NULL;
    }
    o.sources = r.paths;
    o.source_count = r.count;
    o.max_pixels = most;
    o.strict = (uint32_t)strict;
    PY_COMMON_FILL(&o, &common, &r);
    Py_BEGIN_ALLOW_THREADS rc = leat_check_images(&o, stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    if (rc == 0) leat__check_json(stats, o.output, &json);
    leat__free(stats);
    return py_run_report(&r, &json, rc, &err);
}

PyObject *py_dedup_images(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",       "output",   "control",      "csv",           "keep",
                            "orientations", "windows",  "across",       "list_probable", "threshold",
                            "probable",     "csv_pack", PY_COMMON_NAMES};
    leat_error err = {.sample = -1, .offset = -1};
    leat_dedup_images_opts o;
    leat_dedup_images_stats stats = {.struct_size = sizeof stats};
    PyObject *inputs, *control;
    py_common common = {.sync = 1};
    int windows = 0, across = 0, list = 0, rc;
    py_run r;
    leat__buf json;

    (void)module;
    leat_dedup_images_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzO|$zIIpppddz" PY_COMMON_FORMAT, names, &inputs,
                                     &o.output, &control, &o.csv, &o.keep, &o.orientations, &windows, &across,
                                     &list, &o.threshold, &o.probable, &o.csv_pack, PY_COMMON(&o, &common)))
        return NULL;
    if (py_run_begin(&r, inputs, control) != 0) return NULL;
    o.inputs = r.paths;
    o.input_count = r.count;
    o.windows = (uint32_t)windows;
    o.across = (uint32_t)across;
    o.list_probable = (uint32_t)list;
    PY_COMMON_FILL(&o, &common, &r);
    Py_BEGIN_ALLOW_THREADS rc = leat_dedup_images(&o, &stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    if (rc == 0) leat__dedup_images_json(&stats, &json);
    return py_run_report(&r, &json, rc, &err);
}

PyObject *py_dedup_semantic(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",     "output",   "control", "keep",         "threshold",
                            "keep_share", "clusters", "field",   PY_COMMON_NAMES};
    leat_error err = {.sample = -1, .offset = -1};
    leat_dedup_semantic_opts o;
    leat_dedup_semantic_stats stats = {.struct_size = sizeof stats};
    PyObject *inputs, *control;
    py_common common = {.sync = 1};
    int rc;
    py_run r;
    leat__buf json;

    (void)module;
    leat_dedup_semantic_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzO|$IddIz" PY_COMMON_FORMAT, names, &inputs, &o.output,
                                     &control, &o.keep, &o.threshold, &o.keep_share, &o.clusters, &o.field,
                                     PY_COMMON(&o, &common)))
        return NULL;
    if (py_run_begin(&r, inputs, control) != 0) return NULL;
    o.input = r.paths[0];
    PY_COMMON_FILL(&o, &common, &r);
    Py_BEGIN_ALLOW_THREADS rc = leat_dedup_semantic(&o, &stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    if (rc == 0) leat__dedup_semantic_json(&stats, &json);
    return py_run_report(&r, &json, rc, &err);
}

PyObject *py_check_labels(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",      "output", "control",    "csv",   "vectors",
                            "predictions", "column", "neighbours", "field", PY_COMMON_NAMES};
    leat_error err = {.sample = -1, .offset = -1};
    leat_check_labels_opts o;
    leat_check_labels_stats stats = {.struct_size = sizeof stats};
    PyObject *inputs, *control;
    py_common common = {.sync = 1};
    int rc;
    py_run r;
    leat__buf json;

    (void)module;
    leat_check_labels_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzO|$zzzzIz" PY_COMMON_FORMAT, names, &inputs, &o.output,
                                     &control, &o.csv, &o.vectors, &o.predictions, &o.column, &o.neighbours,
                                     &o.field, PY_COMMON(&o, &common)))
        return NULL;
    if (py_run_begin(&r, inputs, control) != 0) return NULL;
    o.pack = r.paths[0];
    PY_COMMON_FILL(&o, &common, &r);
    Py_BEGIN_ALLOW_THREADS rc = leat_check_labels(&o, &stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    if (rc == 0) leat__check_labels_json(&stats, o.output, &json);
    return py_run_report(&r, &json, rc, &err);
}
