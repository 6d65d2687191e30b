/* SPDX-License-Identifier: Apache-2.0
 *
 * leat.select (leat/_select.py) calls include/leat/select.h in a thread of Python's own,
 * as in py_ingest.c; and the rows that a selection names.
 */
#include "py_leat.h"

#include <stdatomic.h>
#include <string.h>

#include <leat/pack.h>
#include <leat/select.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "curate/select_run.h"

PyObject *py_select(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pack",    "output", "control", "columns", "config",
                            "threads", "memory", "replace", "sync",    NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_select_opts o;
    leat_select_stats stats = {.struct_size = sizeof stats};
    PyObject *columns, *control, *out = NULL;
    unsigned long long memory = 0;
    int replace = 0, sync = 1, rc;
    Py_buffer view;
    leat__buf json;

    (void)module;
    leat_select_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yyOOs|$IKpp", names, &o.pack, &o.output, &control,
                                     &columns, &o.config, &o.threads, &memory, &replace, &sync))
        return NULL;
    const char **paths = py_path_list(columns, &o.column_count);
    if (paths == NULL) return NULL;
    if (PyObject_GetBuffer(control, &view, PyBUF_CONTIG) != 0) {
        leat__free(paths);
        return NULL;
    }
    o.columns = paths;
    o.config_name = "strategies";
    o.memory = memory;
    o.replace = (uint32_t)replace;
    o.no_sync = !sync;
    o.progress = py_on_progress;
    o.cookie = view.buf;
    Py_BEGIN_ALLOW_THREADS rc = leat_select(&o, &stats, &err);
    Py_END_ALLOW_THREADS PyBuffer_Release(&view);
    leat__free(paths);
    if (rc != 0) return py_raise(&err);
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    leat__select_json(&stats, &json);
    out =
        json.status == 0 ? Py_BuildValue("s#", leat__buf_str(&json), (Py_ssize_t)json.len) : PyErr_NoMemory();
    leat__buf_reset(&json);
    return out;
}

/* selection(paths of packs, selection): its rows as the bytes of uint64 numbers. */
PyObject *py_selection(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *list, *out = NULL;
    const char *path;
    leat_pack *pack = NULL;
    uint64_t *rows = NULL, count = 0;
    uint32_t n = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oy", &list, &path)) return NULL;
    const char **paths = py_path_list(list, &n);
    if (paths == NULL) return NULL;
    int rc = leat_pack_open_many(&pack, paths, n, NULL, &err);
    if (rc == 0) rc = leat_pack_select(pack, path, NULL, 0, &count, &err);
    if (rc == 0) {
        rows = LEAT_NEW_ARRAY(MISC, uint64_t, (size_t)count + 1);
        rc = rows != NULL ? leat_pack_select(pack, path, rows, count, &count, &err)
                          : leat__fail_nomem(&err, count * sizeof *rows, "a selection");
    }
    if (rc != 0) py_raise(&err);
    else out = PyBytes_FromStringAndSize((const char *)rows, (Py_ssize_t)(count * sizeof *rows));
    leat__free(rows);
    leat_pack_close(&pack);
    leat__free(paths);
    return out;
}
