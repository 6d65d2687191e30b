/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a leat_error into an exception. The classes are defined in leat/_errors.py.
 */
#include "py_leat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

PyObject *py_text(const char *text, size_t size)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape");
}

PyObject *py_path(PyObject *path)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

PyObject *py_raise(const leat_error *err)
{
    PyObject *module = NULL, *exception = NULL, *key = NULL, *message = NULL;

    if (PyErr_Occurred()) return NULL;
    module = PyImport_ImportModule("leat._errors");
    key = py_text(err->key, strlen(err->key));
    message = py_text(err->message, strlen(err->message));
    if (module != NULL && key != NULL && message != NULL)
        exception =
            PyObject_CallMethod(module, "make", "sOiOLL", leat_code_name(err->code), message,
                                (int)err->sys_errno, key, (long long)err->sample, (long long)err->offset);
    if (exception != NULL) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(module);
    Py_XDECREF(exception);
    Py_XDECREF(key);
    Py_XDECREF(message);
    return NULL;
}

bool py_same_process(pid_t made_by, const char *what)
{
    leat_error err = {.code = LEAT_EFORK, .sample = -1, .offset = -1};

    if (getpid() == made_by) return true;
    snprintf(err.message, sizeof err.message,
             "this %s was made by process %ld, before a fork: open a new one in the child "
             "(or start children with the 'spawn' method)",
             what, (long)made_by);
    py_raise(&err);
    return false;
}
