/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor: judges facts that Python measured (leat/_diagnose.py), and those of a watched loader. Facts and
 * diagnoses are passed as JSON text.
 */
#include "py_leat.h"

#include <leat/doctor.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

#define TEXT_MAX ((size_t)64 << 20)
#define FRAMES 4096u

static int append(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

/* Returns the diagnosis in a format, as str. */
static PyObject *text_of(const leat_doctor_diagnosis *d, int format)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat__buf out;
    PyObject *text = NULL;

    leat__buf_init(&out, LEAT__MEM_DOCTOR, TEXT_MAX);
    if (leat_doctor_write(d, (leat_doctor_format)format, append, &out, &err) != 0) py_raise(&err);
    else text = py_text(leat__buf_str(&out), out.len);
    leat__buf_reset(&out);
    return text;
}

static leat_doctor_diagnosis *new_diagnosis(void)
{
    leat_doctor_diagnosis *d = LEAT_NEW(DOCTOR, leat_doctor_diagnosis);
    if (d == NULL) PyErr_NoMemory();
    return d;
}

PyObject *py_doctor_judge(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_doctor_facts facts;
    const char *json;
    Py_ssize_t len;
    int format;
    PyObject *text = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "s#i", &json, &len, &format)) return NULL;
    leat_doctor_diagnosis *d = new_diagnosis();
    if (d == NULL) return NULL;
    if (leat_doctor_facts_parse(&facts, json, (size_t)len, &err) != 0 ||
        leat_doctor_judge(&facts, d, sizeof *d, &err) != 0)
        py_raise(&err);
    else text = text_of(d, format);
    leat__free(d);
    return text;
}

/* ---- a loader under watch ---------------------------------------------------------------------- */

PyObject *py_watch_text(leat_doctor_watch *watch, int format)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_doctor_facts facts;
    PyObject *text = NULL;

    leat_doctor_diagnosis *d = new_diagnosis();
    if (d == NULL) return NULL;
    if (leat_doctor_watch_facts(watch, &facts, &err) != 0 ||
        leat_doctor_judge(&facts, d, sizeof *d, &err) != 0)
        py_raise(&err);
    else text = text_of(d, format);
    leat__free(d);
    return text;
}

PyObject *py_watch_report(leat_doctor_watch *watch, const char *title)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_doctor_facts facts;
    leat__buf out;
    PyObject *text = NULL;

    leat_doctor_diagnosis *d = new_diagnosis();
    leat_doctor_frame *frames = LEAT_NEW_ARRAY(DOCTOR, leat_doctor_frame, FRAMES);
    leat__buf_init(&out, LEAT__MEM_DOCTOR, TEXT_MAX);
    if (d == NULL || frames == NULL) {
        PyErr_NoMemory();
    } else if (leat_doctor_watch_facts(watch, &facts, &err) != 0 ||
               leat_doctor_judge(&facts, d, sizeof *d, &err) != 0 ||
               leat_doctor_report(d, frames, leat_doctor_watch_frames(watch, frames, FRAMES), title, append,
                                  &out, &err) != 0) {
        py_raise(&err);
    } else {
        text = py_text(leat__buf_str(&out), out.len);
    }
    leat__buf_reset(&out);
    leat__free(frames);
    leat__free(d);
    return text;
}
