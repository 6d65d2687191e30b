/* SPDX-License-Identifier: Apache-2.0
 *
 * The module leat._leat: registers the types. Types are kept in static variables, so it is loaded once per
 * process; sub-interpreters are refused.
 */
#include "py_leat.h"

#include <leat/version.h>

static int module_exec(PyObject *module)
{
    static bool loaded;

    if (loaded) {
        PyErr_SetString(PyExc_ImportError, "leat can be imported only once per process");
        return -1;
    }
    if (py_tensor_register(module) != 0 || py_pack_register(module) != 0 ||
        py_pipeline_register(module) != 0 || py_follow_register(module) != 0 ||
        py_packer_register(module) != 0 || py_loader_register(module) != 0 ||
        PyModule_AddStringConstant(module, "version", LEAT_VERSION) != 0)
        return -1;
    py_control_hook();
    loaded = true;
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "leat._leat",
    .m_doc = "The C library of leat. Use the package leat.",
    .m_size = 0,
    .m_methods = py_facts_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__leat(void); /* called by the interpreter */

PyMODINIT_FUNC PyInit__leat(void)
{
    return PyModuleDef_Init(&module_def);
}
