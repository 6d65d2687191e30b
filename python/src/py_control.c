/* SPDX-License-Identifier: Apache-2.0
 *
 * Long calls run in a separate Python thread and share an array with the thread that waits for them: see
 * py_leat.h. Any thread.
 */
#include "py_leat.h"

#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

static _Thread_local _Atomic uint64_t *watched; /* the array of the call that this thread runs, or NULL */

void py_control_watch(void *array)
{
    watched = array;
}

/* Returns whether this thread must stop waiting for a server. The thread of a long call stops when the call
 * was canceled, the main thread when a signal handler raised an exception. The exception stays set for the
 * call that returns then. */
static bool interrupted(void)
{
    if (watched != NULL) return atomic_load_explicit(&watched[0], memory_order_relaxed) != 0;
    if (gettid() != getpid() || !Py_IsInitialized()) return false; /* handlers run in the main thread */
    PyGILState_STATE gil = PyGILState_Ensure();
    bool stop = PyErr_Occurred() != NULL || PyErr_CheckSignals() != 0;
    PyGILState_Release(gil);
    return stop;
}

void py_control_hook(void)
{
    leat__interrupt_hook(interrupted);
}

int py_on_progress(void *array, uint64_t done, uint64_t total, uint64_t third, uint64_t fourth)
{
    _Atomic uint64_t *control = array;
    const uint64_t values[PY_CONTROLS] = {0, done, total, third, fourth};
    for (int i = 1; i < PY_CONTROLS; i++) atomic_store_explicit(&control[i], values[i], memory_order_relaxed);
    return atomic_load_explicit(&control[0], memory_order_relaxed) != 0;
}

const char **py_path_list(PyObject *list, uint32_t *count)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return NULL;
    const char **paths = LEAT_NEW_ARRAY(MISC, const char *, (size_t)n + 1);
    if (paths == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; paths != NULL && i < n; i++) {
        paths[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (paths[i] != NULL) continue;
        leat__free(paths);
        return NULL;
    }
    *count = (uint32_t)n;
    return paths;
}

int py_run_begin(py_run *r, PyObject *inputs, PyObject *control)
{
    *r = (py_run){0};
    if (PyObject_GetBuffer(control, &r->view, PyBUF_CONTIG) != 0) return -1;
    if (r->view.len != PY_CONTROLS * (Py_ssize_t)sizeof(uint64_t))
        PyErr_SetString(PyExc_ValueError, "the control array has the wrong size");
    else r->paths = py_path_list(inputs, &r->count);
    if (r->paths != NULL) py_control_watch(r->view.buf);
    if (r->paths != NULL) return 0;
    PyBuffer_Release(&r->view);
    return -1;
}

void py_run_end(py_run *r)
{
    py_control_watch(NULL);
    PyBuffer_Release(&r->view);
    leat__free(r->paths);
}

PyObject *py_run_report(py_run *r, leat__buf *json, int rc, const leat_error *err)
{
    PyObject *out = NULL;
    py_run_end(r);
    if (rc != 0) py_raise(err);
    else if (json->status != 0) PyErr_NoMemory();
    else out = Py_BuildValue("s#", leat__buf_str(json), (Py_ssize_t)json->len);
    leat__buf_reset(json);
    return out;
}
