/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing and exporting: leat.pack and leat.export (leat/_pack.py) do the same as the commands of those
 * names. Both run in a separate Python thread; progress and cancelling go through a small shared array, so
 * that nothing here waits for the GIL.
 */
#include "py_leat.h"

#include <stdatomic.h>
#include <string.h>

#include <leat/images.h>
#include <leat/ingest.h>
#include <leat/pack.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "curate/image_check.h"

static int take_control(PyObject *o, Py_buffer *view)
{
    if (PyObject_GetBuffer(o, view, PyBUF_CONTIG) != 0) return -1;
    if (view->len == PY_CONTROLS * (Py_ssize_t)sizeof(uint64_t)) {
        py_control_watch(view->buf);
        return 0;
    }
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "the control array has the wrong size");
    return -1;
}

static void release_control(Py_buffer *view)
{
    py_control_watch(NULL);
    PyBuffer_Release(view);
}

static PyObject *stats_dict(const leat_ingest_stats *s)
{
    typedef unsigned long long u;
    return Py_BuildValue(
        "{sK sK sK sK sK sK sK sK sK sd ss sK sK sK sK sK sK sK sK sK sK sK sK}", "samples", (u)s->samples,
        "skipped", (u)s->skipped, "bytes_in", (u)s->bytes_in, "bytes_out", (u)s->bytes_out, "pages",
        (u)s->pages, "shards", (u)s->shards, "resumed", (u)s->resumed, "duplicate_keys", (u)s->duplicate_keys,
        "budget_peak_bytes", (u)s->budget_peak_bytes, "seconds", s->seconds, "source_kind", s->source_kind,
        "changed", (u)s->changed, "ignored", (u)s->ignored, "filtered", (u)s->filtered, "existing",
        (u)s->existing, "animated", (u)s->animated, "recoded", (u)s->recoded, "missing", (u)s->missing,
        "unlabelled", (u)s->unlabelled, "frames", (u)s->frames, "in_folders", (u)s->in_folders,
        "blank_labels", (u)s->blank_labels, "blank_label_line", (u)s->blank_label_line);
}

/* Adds "check", the JSON of leat check, to the dict. */
static PyObject *add_check(PyObject *done, const leat_check_stats *found, const char *output)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_MISC, 1u << 20);
    leat__check_json(found, output, &json);
    PyObject *text =
        json.status == 0 ? PyUnicode_FromStringAndSize(json.data, (Py_ssize_t)json.len) : PyErr_NoMemory();
    leat__buf_reset(&json);
    if (text == NULL || PyDict_SetItemString(done, "check", text) != 0) Py_CLEAR(done);
    Py_XDECREF(text);
    return done;
}

PyObject *py_ingest(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "sources", "output",      "control",      "images",    "mix_raw",      "max_side",   "quality",
        "trust",   "shuffle",     "shuffle_seed", "keys",      "shard_bytes",  "page_bytes", "threads",
        "memory",  "skip_errors", "report",       "resume",    "replace",      "sync",       "fast_tiles",
        "strict",  "where",       "append",       "merge",     "members",      "defaults",   "infer",
        "select",  "frames",      "check",        "check_csv", "check_limits", NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_ingest_stats stats = {.struct_size = sizeof stats};
    leat_ingest_opts o;
    leat_check_opts check;
    leat_check_stats found = {.struct_size = sizeof found};
    unsigned long long seed = 0, shard_bytes = 0, page_bytes = 0, memory = 0;
    int trust = 0, shuffle = 0, skip = 0, resume = 0, replace = 0, sync = 1, fast = 0, strict = 0, rc = 0;
    PyObject *sources, *control;
    Py_buffer view;

    (void)module;
    leat_ingest_opts_init(&o);
    leat_check_opts_init(&check);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OyO|$IdIIppKzKKIKpzpppppzIIzzIzIzzz", names, &sources,
                                     &o.output, &control, &o.images, &o.mix_raw, &o.max_side, &o.quality,
                                     &trust, &shuffle, &seed, &o.keys, &shard_bytes, &page_bytes, &o.threads,
                                     &memory, &skip, &o.report, &resume, &replace, &sync, &fast, &strict,
                                     &o.where, &o.append, &o.merge, &o.members, &o.defaults, &o.infer,
                                     &o.select, &o.frames, &check.output, &check.csv, &check.limits))
        return NULL;
    o.trust = (uint32_t)trust;
    o.fast_tiles = (uint32_t)fast;
    o.strict = (uint32_t)strict;
    o.shuffle = (uint32_t)shuffle;
    o.shuffle_seed = seed;
    o.shard_bytes = shard_bytes;
    o.page_bytes = page_bytes;
    o.memory = memory;
    o.skip_errors = (uint32_t)skip;
    o.resume = (uint32_t)resume;
    o.replace = (uint32_t)replace;
    o.no_sync = !sync;
    o.progress = py_on_progress;
    const char **paths = py_path_list(sources, &o.source_count);
    if (paths == NULL) return NULL;
    if (take_control(control, &view) != 0) {
        leat__free(paths);
        return NULL;
    }
    o.sources = paths;
    o.cookie = view.buf;
    Py_BEGIN_ALLOW_THREADS rc =
        check.output ? leat_ingest_checked(&o, &check, &stats, &found, &err) : leat_ingest(&o, &stats, &err);
    Py_END_ALLOW_THREADS release_control(&view);
    leat__free(paths);
    if (rc != 0) return py_raise(&err);
    PyObject *done = stats_dict(&stats);
    return check.output && done ? add_check(done, &found, check.output) : done;
}

PyObject *py_export(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pack", "folder",      "control", "keys", "replace",
                            "to",   "shard_bytes", "select",  NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_export_stats stats = {0};
    leat_export_opts o;
    PyObject *control;
    Py_buffer view;
    unsigned long long shard_bytes = 0;
    int replace = 0, rc;

    (void)module;
    leat_export_opts_init(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yyO|$zpIKz", names, &o.pack, &o.folder, &control, &o.keys,
                                     &replace, &o.to, &shard_bytes, &o.select))
        return NULL;
    if (take_control(control, &view) != 0) return NULL;
    o.replace = (uint32_t)replace;
    o.shard_bytes = shard_bytes;
    o.progress = py_on_progress;
    o.cookie = view.buf;
    Py_BEGIN_ALLOW_THREADS rc = leat_export(&o, &stats, &err);
    Py_END_ALLOW_THREADS release_control(&view);
    if (rc != 0) return py_raise(&err);
    typedef unsigned long long u;
    return Py_BuildValue("{sK sK sK sK sK sK sK sK}", "samples", (u)stats.samples, "files", (u)stats.files,
                         "bytes", (u)stats.bytes, "changed", (u)stats.changed, "removed", (u)stats.removed,
                         "members", (u)stats.members, "stayed", (u)stats.stayed, "unnamed", (u)stats.unnamed);
}

static int on_split(void *cookie, uint64_t done, uint64_t total)
{
    return py_on_progress(cookie, done, total, 0, 0);
}

/* Reads the parts from a list of (path, share). */
static int take_parts(PyObject *list, leat_split_part *parts, uint32_t *count)
{
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return -1;
    if (n > (Py_ssize_t)LEAT_PACK_PARTS_MAX) {
        PyErr_Format(PyExc_ValueError, "more than %u parts", LEAT_PACK_PARTS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "yd", &parts[i].output, &parts[i].share)) return -1;
    *count = (uint32_t)n;
    return 0;
}

PyObject *py_split(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pack", "parts", "control", "stratify", "seed", "replace", "sync", NULL};
    leat_error err = {.sample = -1, .offset = -1};
    leat_split_part parts[LEAT_PACK_PARTS_MAX] = {0};
    leat_pack_split_opts o = {.struct_size = sizeof o, .parts = parts, .progress = on_split};
    const char *pack;
    PyObject *list, *control;
    Py_buffer view;
    unsigned long long seed = 0;
    int replace = 0, sync = 1, rc;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yO!O|$zKpp", names, &pack, &PyList_Type, &list, &control,
                                     &o.stratify, &seed, &replace, &sync))
        return NULL;
    if (take_parts(list, parts, &o.part_count) != 0 || take_control(control, &view) != 0) return NULL;
    o.seed = seed;
    o.replace = (uint32_t)replace;
    o.no_sync = !sync;
    o.cookie = view.buf;
    Py_BEGIN_ALLOW_THREADS rc = leat_pack_split(pack, &o, &err);
    Py_END_ALLOW_THREADS release_control(&view);
    if (rc != 0) return py_raise(&err);
    PyObject *counts = PyList_New(0);
    for (uint32_t i = 0; i < o.part_count && counts != NULL; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(parts[i].samples);
        if (n == NULL || PyList_Append(counts, n) != 0) Py_CLEAR(counts);
        Py_XDECREF(n);
    }
    return counts;
}
