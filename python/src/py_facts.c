/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that need no handle: the table of ops, checks of pipelines, sizes in text, the command.
 */
#include "py_leat.h"

#include <stdio.h>
#include <string.h>

#include <leat/op.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli_frame.h"
#include "cli_parse.h"
#include "codec/codec.h"
#include "curate/tiny.h"
#include "loader/defaults.h"

/* ---- ops --------------------------------------------------------------------------------------- */

static PyObject *param_tuple(uint32_t op, uint32_t index)
{
    leat_op_param p;
    if (leat_op_param_at(op, index, &p) != 0) return NULL;
    bool ranged = p.min <= p.max;
    PyObject *min = ranged ? PyFloat_FromDouble(p.min) : Py_NewRef(Py_None);
    PyObject *max = ranged ? PyFloat_FromDouble(p.max) : Py_NewRef(Py_None);
    if (min != NULL && max != NULL)
        return Py_BuildValue("(sszzNNis)", p.name, p.kind, p.def, p.choices, min, max, (int)p.arity, p.help);
    Py_XDECREF(min);
    Py_XDECREF(max);
    return NULL;
}

/* Returns [(name, help, kind, [(name, kind, default, choices, min, max, arity, help), …]), …]. */
static PyObject *facts_ops(PyObject *module, PyObject *unused)
{
    uint32_t n = leat_op_count();
    PyObject *list = PyList_New(n);

    (void)module;
    (void)unused;
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        leat_op_info info = {0};
        if (leat_op_info_at(i, &info) != 0) break;
        PyObject *params = PyList_New(info.params), *row = NULL;
        for (uint32_t k = 0; params != NULL && k < info.params; k++) {
            PyObject *p = param_tuple(i, k);
            if (p == NULL || PyList_SetItem(params, k, p) != 0) Py_CLEAR(params);
        }
        if (params != NULL) row = Py_BuildValue("(ssiN)", info.name, info.help, (int)info.kind, params);
        if (row == NULL || PyList_SetItem(list, i, row) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *facts_defaults(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("{si sK ss ss ss}", "batch_size", LEAT__DEFAULT_BATCH, "memory",
                         (unsigned long long)LEAT__DEFAULT_MEMORY, "order", LEAT__DEFAULT_ORDER_NAME, "cache",
                         LEAT__DEFAULT_CACHE_NAME, "ops", LEAT__DEFAULT_OPS);
}

/* Returns the name of each order and whether it shuffles; the position is its value. */
static PyObject *facts_orders(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
#define ORDER_ARGS(id, value, name, version, shuffled) , name, shuffled ? Py_True : Py_False
#define ORDER_FORMAT(id, value, name, version, shuffled) "(sO)"
    return Py_BuildValue("(" LEAT_ORDER_MAP(ORDER_FORMAT) ")" LEAT_ORDER_MAP(ORDER_ARGS));
#undef ORDER_ARGS
#undef ORDER_FORMAT
}

static PyObject *facts_pipeline_check(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_pipeline_output out;
    const char *text;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
    if (leat_pipeline_check(text, &out, &err) != 0) return py_raise(&err);
    return Py_BuildValue("(IIIssK)", (unsigned)out.height, (unsigned)out.width, (unsigned)out.channels,
                         out.dtype, out.layout, (unsigned long long)out.bytes);
}

/* ---- sizes ------------------------------------------------------------------------------------- */

static PyObject *facts_parse_bytes(PyObject *module, PyObject *args)
{
    const char *text;
    uint64_t bytes;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
    if (!leat__str_to_bytes(text, &bytes)) {
        PyErr_Format(PyExc_ValueError, "'%s' is not a size: write 4096, 512M, 2G or 1.5GiB", text);
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(bytes);
}

/* Returns the text with user, password and query of the URLs in it replaced by "…". */
static PyObject *facts_hide_secrets(PyObject *module, PyObject *args)
{
    const char *text;
    Py_ssize_t len;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#", &text, &len)) return NULL;
    const size_t size = 2 * (size_t)len + 16; /* dots may replace fewer bytes than they take */
    char *copy = leat__alloc(LEAT__MEM_MISC, size);
    if (copy == NULL) return PyErr_NoMemory();
    memcpy(copy, text, (size_t)len + 1);
    leat__str_hide_secrets(copy, size);
    PyObject *out = py_text(copy, strlen(copy));
    leat__free(copy);
    return out;
}

/* Returns "jpeg", "png" …, detected by magic bytes; None when leat does not read this format. */
static PyObject *facts_image_sniff(PyObject *module, PyObject *args)
{
    Py_buffer data;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*", &data)) return NULL;
    leat__codec_id codec = leat__codec_sniff(data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    if (codec == LEAT__CODEC_NONE) Py_RETURN_NONE;
    return PyUnicode_FromString(leat__codec_name(codec));
}

/* Returns the names of the image formats; the first has the number 1. */
static PyObject *facts_codecs(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *names = PyTuple_New(LEAT__CODEC_COUNT - 1);
    for (int id = 1; names != NULL && id < LEAT__CODEC_COUNT; id++) {
        PyObject *name = PyUnicode_FromString(leat__codec_name((leat__codec_id)id));
        if (name == NULL || PyTuple_SetItem(names, id - 1, name) != 0) Py_CLEAR(names);
    }
    return names;
}

/* tiny(images): returns float32 rows of the built-in embedding, as bytes, from uint8 images of 32 x
 * 32 x 3. */
static PyObject *facts_tiny(PyObject *module, PyObject *args)
{
    const size_t image = (size_t)LEAT__TINY_SIDE * LEAT__TINY_SIDE * 3;
    const size_t row = (size_t)LEAT__TINY_DIM * sizeof(float);
    Py_buffer data;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*", &data)) return NULL;
    const size_t count = (size_t)data.len / image;
    PyObject *out = NULL;
    if ((size_t)data.len % image == 0) out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * row));
    else PyErr_SetString(PyExc_ValueError, "tiny: images of 32 x 32 x 3 bytes are expected");
    if (out == NULL) {
        PyBuffer_Release(&data);
        return NULL;
    }
    char *to = PyByteArray_AsString(out);
    Py_BEGIN_ALLOW_THREADS for (size_t i = 0; i < count; i++)
    {
        float vector[LEAT__TINY_DIM];
        leat__tiny_vector((const uint8_t *)data.buf + i * image, vector);
        memcpy(to + i * row, vector, row);
    }
    Py_END_ALLOW_THREADS PyBuffer_Release(&data);
    return out;
}

static PyObject *facts_memory_used(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(leat__mem_used(LEAT__MEM_CATS));
}

/* ---- the command ------------------------------------------------------------------------------- */

#define COMMAND(name) extern const cli_command cli_cmd_##name;
#include "commands.inc"
#undef COMMAND

static const cli_command *const commands[] = {
#define COMMAND(name) &cli_cmd_##name,
#include "commands.inc"
#undef COMMAND
    NULL,
};

/* Returns one row of a command's table: (name, kind, default, choices, min, max, help); names have
 * '_' for '-'. */
static PyObject *option_row(const leat__param *p)
{
    static const char *const kinds[] = {
        [LEAT__PARAM_FLAG] = "flag",     [LEAT__PARAM_INT] = "int",       [LEAT__PARAM_FLOAT] = "float",
        [LEAT__PARAM_BYTES] = "bytes",   [LEAT__PARAM_SECONDS] = "float", [LEAT__PARAM_CHOICE] = "choice",
        [LEAT__PARAM_STRING] = "string", [LEAT__PARAM_PATH] = "path",     [LEAT__PARAM_FLOATS] = "floats",
        [LEAT__PARAM_INTS] = "ints"};
    char name[64];
    bool ranged = p->min <= p->max;
    snprintf(name, sizeof name, "%s", p->name);
    for (char *s = name; *s; s++)
        if (*s == '-') *s = '_';
    PyObject *min = ranged ? PyFloat_FromDouble(p->min) : Py_NewRef(Py_None);
    PyObject *max = ranged ? PyFloat_FromDouble(p->max) : Py_NewRef(Py_None);
    if (min != NULL && max != NULL)
        return Py_BuildValue("(sszzNNs)", name, kinds[p->kind], p->def, p->choices, min, max, p->help);
    Py_XDECREF(min);
    Py_XDECREF(max);
    return NULL;
}

/* options("train"): returns the rows of a command's table, the common options last. */
static PyObject *facts_options(PyObject *module, PyObject *args)
{
    const char *name, *nearest = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    const cli_command *command = cli_find(commands, name, &nearest);
    if (command == NULL) return PyErr_Format(PyExc_ValueError, "there is no command '%s'", name);
    PyObject *list = PyList_New(0);
    const leat__param *p;
    for (size_t i = 0; list != NULL && (p = cli_option_at(command, i)) != NULL; i++) {
        PyObject *row = option_row(p);
        if (row == NULL || PyList_Append(list, row) != 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static void free_argv(char **argv, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; argv != NULL && i < n; i++) leat__free(argv[i]);
    leat__free(argv);
}

/* Returns the words of a list, ended with NULL; NULL with an exception set on failure. */
static char **word_list(PyObject *list, Py_ssize_t *count)
{
    Py_ssize_t n = *count = PyList_Size(list);
    if (n < 0) return NULL;
    char **words = LEAT_NEW_ARRAY(MISC, char *, (size_t)n + 1);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *bytes = py_path(PyList_GetItem(list, i));
        if (bytes != NULL && words != NULL) words[i] = leat__strdup(LEAT__MEM_MISC, PyBytes_AsString(bytes));
        Py_XDECREF(bytes);
        if (words == NULL || words[i] == NULL) {
            free_argv(words, n);
            if (!PyErr_Occurred()) PyErr_NoMemory();
            return NULL;
        }
    }
    return words;
}

/* main(["leat", …], self): runs the same code as the command `leat` and returns its exit code. `self`
 * are the words that start it again. */
static PyObject *facts_main(PyObject *module, PyObject *args)
{
    PyObject *list, *again;
    Py_ssize_t n, self_count = 0;
    int code = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &list, &again)) return NULL;
    char **words = word_list(list, &n), **argv = NULL; /* the command reorders argv */
    char **self = words != NULL ? word_list(again, &self_count) : NULL;
    if (self != NULL) argv = LEAT_NEW_ARRAY(MISC, char *, (size_t)n + 1);
    if (self != NULL && argv == NULL) PyErr_NoMemory();
    if (argv != NULL) {
        memcpy(argv, words, (size_t)n * sizeof *argv);
        Py_BEGIN_ALLOW_THREADS code = cli_main_inside(commands, (int)n, argv, (const char *const *)self);
        fflush(NULL);
        Py_END_ALLOW_THREADS
    }
    leat__free(argv);
    free_argv(words, n);
    free_argv(self, self_count);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(code);
}

PyMethodDef py_facts_methods[] = {
    {"ops", facts_ops, METH_NOARGS, "The table of ops."},
    {"defaults", facts_defaults, METH_NOARGS, "Defaults of a loader's options."},
    {"orders", facts_orders, METH_NOARGS, "Names of the orders, in the order of their values."},
    {"pipeline_check", facts_pipeline_check, METH_VARARGS,
     "(height, width, channels, dtype, layout, bytes) of what a pipeline makes."},
    {"parse_bytes", facts_parse_bytes, METH_VARARGS, "Bytes of a text like '2G'."},
    {"hide_secrets", facts_hide_secrets, METH_VARARGS,
     "hide_secrets(text): with user, password and query of URLs replaced by dots."},
    {"codecs", facts_codecs, METH_NOARGS, "Names of the image formats."},
    {"image_sniff", facts_image_sniff, METH_VARARGS, "Kind of an encoded image, or None."},
    {"compact", (PyCFunction)(void (*)(void))py_compact, METH_VARARGS | METH_KEYWORDS,
     "compact(path, output=None, shard_bytes=0, replace=False, sync=True): how much was written."},
    {"png", py_image_png, METH_VARARGS, "png(pixels): a PNG file of height x width x channels."},
    {"pixel_file", py_pixel_file, METH_VARARGS, "pixel_file(stored): the PNG or TIFF file of a raw image."},
    {"memory_used", facts_memory_used, METH_NOARGS, "Heap bytes that leat holds in this process."},
    {"ingest", (PyCFunction)(void (*)(void))py_ingest, METH_VARARGS | METH_KEYWORDS,
     "Packs sources; see leat.pack."},
    {"set_reader", py_set_reader, METH_VARARGS,
     "set_reader(opener, writer): of foreign formats; see leat/_formats.py."},
    {"check_shard", py_check_shard, METH_VARARGS,
     "check_shard(path): raises unless there is nothing or a Parquet file of leat.export."},
    {"read_file", py_read_file, METH_VARARGS, "read_file(path): reads a file, decompresses gzip and zstd."},
    {"yaml", py_yaml, METH_VARARGS,
     "yaml(text, name, plain): reads YAML; plain makes values of plain scalars."},
    {"list_folder", py_list_folder, METH_VARARGS,
     "list_folder(path, limit): the first names in a folder of a bucket; those of folders end with '/'."},
    {"file_tail", py_file_tail, METH_VARARGS,
     "file_tail(path, bytes): the end of a file, or all of a smaller one."},
    {"stage_file", py_stage_file, METH_VARARGS,
     "stage_file(path, fd, limit): copies it to the descriptor unless it has more bytes; its size."},
    {"decompress", py_decompress, METH_VARARGS, "decompress(name, data): decompresses gzip or zstd."},
    {"split", (PyCFunction)(void (*)(void))py_split, METH_VARARGS | METH_KEYWORDS,
     "split(pack, parts, control, **options): what leat.split does."},
    {"export", (PyCFunction)(void (*)(void))py_export, METH_VARARGS | METH_KEYWORDS,
     "Writes a pack's files; see leat.export."},
    {"decontaminate_text", (PyCFunction)(void (*)(void))py_decontaminate_text, METH_VARARGS | METH_KEYWORDS,
     "Removes what JSONL files share with evaluation sets; see leat.decontaminate_text."},
    {"filter_text", (PyCFunction)(void (*)(void))py_filter_text, METH_VARARGS | METH_KEYWORDS,
     "Filters JSONL files; see leat.filter_text."},
    {"dedup_text", (PyCFunction)(void (*)(void))py_dedup_text, METH_VARARGS | METH_KEYWORDS,
     "Deduplicates JSONL files; see leat.dedup_text."},
    {"check_images", (PyCFunction)(void (*)(void))py_check_images, METH_VARARGS | METH_KEYWORDS,
     "Checks images; see leat.check."},
    {"dedup_images", (PyCFunction)(void (*)(void))py_dedup_images, METH_VARARGS | METH_KEYWORDS,
     "Finds duplicate images; see leat.dedup_images."},
    {"check_labels", (PyCFunction)(void (*)(void))py_check_labels, METH_VARARGS | METH_KEYWORDS,
     "Checks labels; see leat.check."},
    {"dedup_semantic", (PyCFunction)(void (*)(void))py_dedup_semantic, METH_VARARGS | METH_KEYWORDS,
     "Finds similar vectors; see leat.dedup_semantic."},
    {"select", (PyCFunction)(void (*)(void))py_select, METH_VARARGS | METH_KEYWORDS,
     "Chooses samples; see leat.select."},
    {"selection", py_selection, METH_VARARGS, "selection(packs, path): rows as bytes of uint64 numbers."},
    {"lock_output", py_lock_output, METH_VARARGS,
     "Locks the output folder of a run until the result is freed."},
    {"check_output", py_check_output, METH_VARARGS, "Refuses a folder with files that may not be replaced."},
    {"finished_output", py_finished_output, METH_VARARGS,
     "Refuses to read a folder whose run did not finish."},
    {"refuse_empty", py_refuse_empty, METH_VARARGS, "Fails when a run without texts would replace output."},
    {"clear_output", py_clear_output, METH_VARARGS, "Removes files of an earlier run."},
    {"text_signatures", py_text_signatures, METH_VARARGS, "MinHash signatures of a list of texts."},
    {"text_cuts", py_text_cuts, METH_VARARGS, "Positions where a JSONL file can be cut."},
    {"text_lines", py_text_lines, METH_VARARGS, "Newlines in a range of a file."},
    {"text_copy", py_text_copy, METH_VARARGS, "An output file of a run in parts."},
    {"score_text", py_score_text, METH_VARARGS, "Scores of a list of texts."},
    {"text_names", py_text_names, METH_NOARGS, "Profiles, scores and modifiers."},
    {"doctor_judge", py_doctor_judge, METH_VARARGS,
     "doctor_judge(facts as JSON, format): the diagnosis as text; 0 page, 1 ASCII, 2 JSON, 3 YAML."},
    {"tiny", facts_tiny, METH_VARARGS, "Vectors of the built-in embedding."},
    {"options", facts_options, METH_VARARGS, "The table of options of a command."},
    {"main", facts_main, METH_VARARGS, "Runs the command and returns its exit code."},
    {NULL, NULL, 0, NULL},
};
