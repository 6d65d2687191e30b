/* SPDX-License-Identifier: Apache-2.0
 *
 * leat.select (leat/_select.py) calls include/leat/select.h in a separate Python thread, as in py_ingest.c.
 * Also returns the rows of a selection.
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
#include "pack/selection.h"

PyObject *py_select(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pack", "output", "control", "columns", "config", PY_COMMON_NAMES};
    leat_error err = {.sample = -1, .offset = -1};
    leat_select_opts o;
    leat_select_stats stats = {.struct_size = sizeof stats};
    PyObject *columns, *control;
    py_common common = {.sync = 1};
    py_run r;
    leat__buf json;
    int rc;

    (void)module;
    leat_select_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yyOOs|$" PY_COMMON_FORMAT, names, &o.pack, &o.output,
                                     &control, &columns, &o.config, PY_COMMON(&o, &common)))
        return NULL;
    if (py_run_begin(&r, columns, control) != 0) return NULL;
    o.columns = r.paths;
    o.column_count = r.count;
    o.config_name = "strategies";
    PY_COMMON_FILL(&o, &common, &r);
    Py_BEGIN_ALLOW_THREADS rc = leat_select(&o, &stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    if (rc == 0) leat__select_json(&stats, &json);
    return py_run_report(&r, &json, rc, &err);
}

/* selection(paths of packs, selection): returns its rows as the bytes of uint64 numbers. */
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
    if (rc == 0) rc = leat__selection_rows(pack, path, &rows, &count, &err);
    if (rc != 0) py_raise(&err);
    else out = PyBytes_FromStringAndSize((const char *)rows, (Py_ssize_t)(count * sizeof *rows));
    leat__free(rows);
    leat_pack_close(&pack);
    leat__free(paths);
    return out;
}
