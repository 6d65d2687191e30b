/* SPDX-License-Identifier: Apache-2.0
 *
 * Text curation: leat.filter_text, leat.dedup_text and leat.score_text (leat/_text.py) call
 * include/leat/text.h. The first two run in a separate Python thread, as in py_ingest.c.
 */
#include "py_leat.h"

#include <stdatomic.h>
#include <string.h>

#include <leat/text.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "curate/decontaminate.h"
#include "curate/dedup.h"
#include "curate/filter_run.h"

typedef struct run {
    py_run of;
    leat__buf explained;
} run;

static int on_progress(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    return py_on_progress(((run *)cookie)->of.view.buf, done, total, documents, dropped);
}

static void on_explained(void *cookie, const char *json)
{
    leat__buf_puts(&((run *)cookie)->explained, json);
}

static void on_looked(void *cookie, const leat_filter_seen *doc)
{
    leat__filter_seen_json(doc, &((run *)cookie)->explained);
}

/* Begins a run with the list of paths (bytes objects, which own them) and the control array. */
static int begin(run *r, PyObject *inputs, PyObject *control)
{
    leat__buf_init(&r->explained, LEAT__MEM_MISC, 64u << 20);
    return py_run_begin(&r->of, inputs, control);
}

/* Reads a step of a run in parts from a tuple of python/leat/_ray.py, which owns the strings. */
static int take_part(PyObject *tuple, leat__part *p)
{
    int step;
    unsigned long long offset, end_offset, line;
    memset(p, 0, sizeof *p);
    if (!PyArg_ParseTuple(tuple, "isssIIIIIIIKIKKdd;a part of a run", &step, &p->work, &p->token,
                          &p->settings, &p->number, &p->parts, &p->groups, &p->partitions, &p->from, &p->to,
                          &p->range.file, &offset, &p->range.end_file, &end_offset, &line, &p->seconds,
                          &p->cpu_seconds))
        return -1;
    p->step = (leat__part_step)step;
    p->range.offset = offset;
    p->range.end_offset = end_offset;
    p->range.line = line;
    return 0;
}

/* Ends a run; returns its JSON text: a report, or lines. */
static PyObject *end(run *r, leat__buf *json, int rc, const leat_error *err)
{
    PyObject *out = NULL;
    py_run_end(&r->of);
    if (rc != 0) py_raise(err);
    else if (json->status != 0 || r->explained.status != 0) PyErr_NoMemory();
    else
        out = Py_BuildValue("(s#s#)", leat__buf_str(json), (Py_ssize_t)json->len,
                            leat__buf_str(&r->explained), (Py_ssize_t)r->explained.len);
    leat__buf_reset(json);
    leat__buf_reset(&r->explained);
    return out;
}

PyObject *py_filter_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",      "output",       "control",  "profile",  "set",
                            "modify",      "text_field",   "id_field", "explain",  "memory",
                            "shard_bytes", "max_document", "threads",  "compress", "score_only",
                            "fail_on_bad", "replace",      "columns",  "lid",      "lang",
                            "lang_min",    "report",       "look",     "seed",     "part",
                            NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_filter_opts o;
    leat__part part;
    PyObject *inputs, *control, *step = NULL;
    unsigned long long memory = 0, shard = 0, most = 0;
    int score_only = 0, fail = 0, replace = 0, rc;
    run r;
    leat__buf json;

    (void)module;
    leat_filter_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzO|$zzzzzzKKKIIpppzzzdzIIO", names, &inputs, &o.output,
                                     &control, &o.profile, &o.set, &o.modify, &o.text_field, &o.id_field,
                                     &o.explain, &memory, &shard, &most, &o.threads, &o.compress, &score_only,
                                     &fail, &replace, &o.columns, &o.lid, &o.lang, &o.lang_min, &o.report,
                                     &o.look, &o.seed, &step) ||
        (step != NULL && take_part(step, &part) != 0))
        return NULL;
    leat_filter_stats *stats = LEAT_NEW(MISC, leat_filter_stats);
    if (stats == NULL) return PyErr_NoMemory();
    if (begin(&r, inputs, control) != 0) {
        leat__free(stats);
        return NULL;
    }
    o.inputs = r.of.paths;
    o.input_count = r.of.count;
    o.memory = memory;
    o.shard_bytes = shard;
    o.max_document = most;
    o.score_only = (uint32_t)score_only;
    o.fail_on_bad = (uint32_t)fail;
    o.replace = (uint32_t)replace;
    o.progress = on_progress;
    o.explained = on_explained;
    o.looked = on_looked;
    o.cookie = &r;
    leat__buf_init(&json, LEAT__MEM_MISC, (size_t)1 << 32);
    Py_BEGIN_ALLOW_THREADS rc =
        step != NULL ? leat__filter_part(&o, &part, &json, &err) : leat_filter_text(&o, stats, &err);
    Py_END_ALLOW_THREADS if (step == NULL) leat__filter_json(stats, &json);
    leat__free(stats);
    return end(&r, &json, rc, &err);
}

PyObject *py_dedup_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",     "output",      "control",     "kind",
                            "normalize",  "words",       "chars",       "bands",
                            "rows",       "threshold",   "clusters",    "keep",
                            "keep_field", "text_field",  "id_field",    "bands_per_iteration",
                            "threads",    "memory",      "shard_bytes", "max_document",
                            "compress",   "fail_on_bad", "replace",     "resume",
                            "plan_only",  "checkpoint",  "index",       "against",
                            "level",      "report",      "compatible",  "profile",
                            "set",        "part",        NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_dedup_opts o;
    leat_dedup_stats stats = {0};
    leat__part part;
    PyObject *inputs, *control, *step = NULL;
    unsigned long long memory = 0, shard = 0, most = 0, checkpoint = 0;
    int normalize = 0, fail = 0, replace = 0, resume = 0, plan = 0, index = 0, rc;
    run r;
    leat__buf json;

    (void)module;
    leat_dedup_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OzO|$IpIIIIdIIzzzIIKKKIppppKpzIzIzzO", names, &inputs, &o.output, &control,
            &o.kind, &normalize, &o.shingle_words, &o.shingle_chars, &o.bands, &o.rows, &o.threshold,
            &o.clusters, &o.keep, &o.keep_field, &o.text_field, &o.id_field, &o.bands_per_iteration,
            &o.threads, &memory, &shard, &most, &o.compress, &fail, &replace, &resume, &plan, &checkpoint,
            &index, &o.against, &o.level, &o.report, &o.compatible, &o.profile, &o.set, &step) ||
        (step != NULL && take_part(step, &part) != 0))
        return NULL;
    if (begin(&r, inputs, control) != 0) return NULL;
    o.inputs = r.of.paths;
    o.input_count = r.of.count;
    o.normalize = (uint32_t)normalize;
    o.memory = memory;
    o.shard_bytes = shard;
    o.max_document = most;
    o.fail_on_bad = (uint32_t)fail;
    o.replace = (uint32_t)replace;
    o.resume = (uint32_t)resume;
    o.plan_only = (uint32_t)plan;
    o.checkpoint_bytes = checkpoint;
    o.index = (uint32_t)index;
    o.progress = on_progress;
    o.cookie = &r;
    leat__buf_init(&json, LEAT__MEM_MISC, (size_t)1 << 32);
    Py_BEGIN_ALLOW_THREADS rc =
        step != NULL ? leat__dedup_part(&o, &part, &json, &err) : leat_dedup_text(&o, &stats, &err);
    Py_END_ALLOW_THREADS if (step == NULL) leat__dedup_json(&stats, &json);
    return end(&r, &json, rc, &err);
}

/* text_cuts(path, max_line, step, chunks): returns [(offset, line), …], positions where a file can be cut. */
PyObject *py_text_cuts(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long max_line, step;
    leat__text_cut *cuts = NULL;
    leat__text_files files;
    const char *path;
    size_t count = 0;
    int chunks, rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "yKKp", &path, &max_line, &step, &chunks)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat__text_files_open(&files, &path, 1, max_line, &err);
    if (rc == 0) {
        rc = leat__text_files_cut(&files, step, chunks != 0, &cuts, &count, &err);
        leat__text_files_reset(&files);
    }
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row =
            Py_BuildValue("(KK)", (unsigned long long)cuts[i].offset, (unsigned long long)cuts[i].line);
        if (row == NULL || PyList_SetItem(list, (Py_ssize_t)i, row) != 0) Py_CLEAR(list);
    }
    leat__free(cuts);
    return list;
}

/* text_lines(path, from, to): counts the newlines in a range of a file. */
PyObject *py_text_lines(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long from, to;
    uint64_t count = 0;
    const char *path;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "yKK", &path, &from, &to)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat__text_count_lines(path, from, to, &count, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    return PyLong_FromUnsignedLongLong(count);
}

/* text_copy(part, name, patch, [(path, from, length, at), …]): makes an output file of a run in parts. */
PyObject *py_text_copy(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    PyObject *tuple, *list;
    const char *name;
    leat__part part;
    int patch, rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "OspO", &tuple, &name, &patch, &list) || take_part(tuple, &part) != 0)
        return NULL;
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return NULL;
    leat__part_piece *piece = leat__zalloc_array(LEAT__MEM_MISC, (size_t)n + 1, sizeof *piece);
    if (piece == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        unsigned long long from, len, at;
        if (PyArg_ParseTuple(PyList_GetItem(list, i), "sKKK", &piece[i].path, &from, &len, &at))
            piece[i].from = from, piece[i].len = len, piece[i].at = at;
    }
    if (PyErr_Occurred()) {
        leat__free(piece);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS rc = leat__part_copy_output(&part, name, patch != 0, piece, (size_t)n, &err);
    Py_END_ALLOW_THREADS leat__free(piece);
    if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

static void drop_lock(PyObject *capsule)
{
    leat__output_lock *lock = PyCapsule_GetPointer(capsule, NULL);
    leat__output_lock_drop(lock);
    leat__free(lock);
}

/* lock_output(folder): creates the folder and locks it until the returned object is freed. */
PyObject *py_lock_output(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *folder;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &folder)) return NULL;
    leat__output_lock *lock = LEAT_NEW(MISC, leat__output_lock);
    if (lock == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS rc = leat__output_lock_take(lock, folder, &err);
    Py_END_ALLOW_THREADS if (rc != 0)
    {
        leat__free(lock);
        return py_raise(&err);
    }
    return PyCapsule_New(lock, NULL, drop_lock);
}

/* check_output(folder, replace): fails when the folder has output or a run that can be resumed or, with
 * `replace`, output that no report of leat lists. Removes work files of earlier runs. */
PyObject *py_check_output(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *folder;
    int replace, rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "sp", &folder, &replace)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = replace ? leat__output_ours(folder, &err) : leat__output_unused(folder, &err);
    if (rc == 0) rc = leat__part_clear(folder, replace != 0, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* finished_output(folder): fails when the run that wrote output files there was killed, or still works. */
PyObject *py_finished_output(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *folder;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "y", &folder)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat__output_finished(folder, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* refuse_empty(folder, documents, bad, unit): fails when a run without documents would replace output. */
PyObject *py_refuse_empty(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    unsigned long long documents, bad;
    const char *folder, *unit;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "sKKs", &folder, &documents, &bad, &unit)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat__output_refuse_empty(folder, documents, bad, unit, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

/* clear_output(folder): removes the output of an earlier run. */
PyObject *py_clear_output(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    const char *folder;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &folder)) return NULL;
    Py_BEGIN_ALLOW_THREADS rc = leat__output_clear(folder, &err);
    Py_END_ALLOW_THREADS if (rc != 0) return py_raise(&err);
    Py_RETURN_NONE;
}

PyObject *py_decontaminate_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"inputs",   "output",      "control", "evals",       "eval_fields",
                            "ngram",    "min_matches", "by",      "window",      "text_field",
                            "id_field", "threads",     "memory",  "shard_bytes", "max_document",
                            "compress", "fail_on_bad", "replace", NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_decontaminate_opts o;
    leat_decontaminate_stats stats = {0};
    PyObject *inputs, *control, *evals;
    const char *sets[256];
    unsigned long long memory = 0, shard = 0, most = 0;
    int fail = 0, replace = 0, rc;
    run r;
    leat__buf json;

    (void)module;
    leat_decontaminate_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OzOO|$zIIIIzzIKKKIpp", names, &inputs, &o.output,
                                     &control, &evals, &o.eval_fields, &o.ngram, &o.min_matches, &o.by,
                                     &o.window, &o.text_field, &o.id_field, &o.threads, &memory, &shard,
                                     &most, &o.compress, &fail, &replace))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(evals) && o.eval_count < 256; i++)
        sets[o.eval_count++] = PyBytes_AsString(PyList_GetItem(evals, i));
    if (PyErr_Occurred() || begin(&r, inputs, control) != 0) return NULL;
    o.inputs = r.of.paths;
    o.input_count = r.of.count;
    o.evals = sets;
    o.memory = memory;
    o.shard_bytes = shard;
    o.max_document = most;
    o.fail_on_bad = (uint32_t)fail;
    o.replace = (uint32_t)replace;
    o.progress = on_progress;
    o.cookie = &r;
    Py_BEGIN_ALLOW_THREADS rc = leat_decontaminate_text(&o, &stats, &err);
    Py_END_ALLOW_THREADS leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    leat__decontaminate_json(&stats, &json);
    return end(&r, &json, rc, &err);
}

/* Returns the scores of one text as a list of floats, in the order of leat_text_score. */
static PyObject *score_one(leat_text_scorer *scorer, PyObject *text, double *values, uint32_t n)
{
    leat_error err = {.sample = -1, .offset = -1};
    Py_ssize_t len;
    const char *data = PyUnicode_AsUTF8AndSize(text, &len);
    if (data == NULL) return NULL;
    if (leat_text_scorer_run(scorer, data, (size_t)len, values, n, &err) != 0) return py_raise(&err);
    PyObject *row = PyList_New(n);
    for (uint32_t i = 0; row != NULL && i < n; i++) {
        PyObject *v = PyFloat_FromDouble(values[i]);
        if (v == NULL || PyList_SetItem(row, i, v) != 0) Py_CLEAR(row);
    }
    return row;
}

PyObject *py_score_text(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_text_scorer *scorer = NULL;
    PyObject *texts, *rows;
    double values[256];
    const char *name, *help;
    uint32_t n = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O", &texts)) return NULL;
    while (n < 256 && leat_text_score(n, &name, &help) == 0) n++;
    Py_ssize_t count = PyList_Size(texts);
    if (count < 0) return NULL;
    if (leat_text_scorer_open(&scorer, &err) != 0) return py_raise(&err);
    rows = PyList_New(count);
    for (Py_ssize_t i = 0; rows != NULL && i < count; i++) {
        PyObject *row = score_one(scorer, PyList_GetItem(texts, i), values, n);
        if (row == NULL || PyList_SetItem(rows, i, row) != 0) Py_CLEAR(rows);
    }
    leat_text_scorer_close(&scorer);
    return rows;
}

/* Returns the signature as a list; None for a text without shingles. */
static PyObject *sign_one(leat_text_signer *signer, PyObject *text, uint64_t *values, uint32_t n)
{
    leat_error err = {.sample = -1, .offset = -1};
    Py_ssize_t len;
    uint32_t shingles;
    const char *data = PyUnicode_AsUTF8AndSize(text, &len);
    if (data == NULL) return NULL;
    if (leat_text_signer_run(signer, data, (size_t)len, values, &shingles, &err) != 0) return py_raise(&err);
    if (shingles == 0) Py_RETURN_NONE;
    PyObject *row = PyList_New(n);
    for (uint32_t i = 0; row != NULL && i < n; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(values[i]);
        if (value == NULL || PyList_SetItem(row, i, value) != 0) Py_CLEAR(row);
    }
    return row;
}

PyObject *py_text_signatures(PyObject *module, PyObject *args)
{
    leat_error err = {.sample = -1, .offset = -1};
    leat_text_signer *signer = NULL;
    PyObject *texts, *rows;
    unsigned int compatible, words, chars, n;
    uint64_t values[1024];

    (void)module;
    if (!PyArg_ParseTuple(args, "OIIII", &texts, &compatible, &words, &chars, &n)) return NULL;
    Py_ssize_t count = PyList_Size(texts);
    if (count < 0) return NULL;
    if (leat_text_signer_open(&signer, compatible, words, chars, n, &err) != 0) return py_raise(&err);
    rows = PyList_New(count);
    for (Py_ssize_t i = 0; rows != NULL && i < count; i++) {
        PyObject *row = sign_one(signer, PyList_GetItem(texts, i), values, n);
        if (row == NULL || PyList_SetItem(rows, i, row) != 0) Py_CLEAR(rows);
    }
    leat_text_signer_close(&signer);
    return rows;
}

/* Returns (profiles, scores, modifiers), each [(name, help), …]. */
PyObject *py_text_names(PyObject *module, PyObject *unused)
{
    static int (*const lists[])(uint32_t, const char **, const char **) = {leat_text_profile, leat_text_score,
                                                                           leat_text_modifier};
    PyObject *out[3] = {NULL};
    const char *name, *help;

    (void)module;
    (void)unused;
    for (int k = 0; k < 3; k++) {
        out[k] = PyList_New(0);
        for (uint32_t i = 0; out[k] != NULL && lists[k](i, &name, &help) == 0; i++) {
            PyObject *row = Py_BuildValue("(ss)", name, help);
            if (row == NULL || PyList_Append(out[k], row) != 0) Py_CLEAR(out[k]);
            Py_XDECREF(row);
        }
    }
    if (out[0] && out[1] && out[2]) return Py_BuildValue("(NNN)", out[0], out[1], out[2]);
    for (int k = 0; k < 3; k++) Py_XDECREF(out[k]);
    return NULL;
}
