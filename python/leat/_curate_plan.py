# SPDX-License-Identifier: Apache-2.0
"""The plan of `leat curate`: hours, memory, disk and traffic of each step before it runs, and whether they fit."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import sys
from typing import Any

from . import _check
from ._curate_config import needs_vectors
from ._curate_steps import Run, dump_target
from ._dataset import Dataset
from ._errors import counted

GB = 10**9
_RULE_RAM, _RULE_VRAM = 4 * GB, 2 * GB  # per vCPU, a rule of thumb
_TINY = 224
_VECTOR = 512  # numbers of a vector where the model does not say
# CPU time of a step: milliseconds per MB of encoded images, microseconds per image. bench/RESULTS.md, AMD EPYC
_COST = {"pack": (13.5, 40.0), "keep": (4.1, 30.0), "check": (3.1, 42.0), "embed": (1.0, 30.0), "dedup": (0.0, 20.0),
         "dump": (0.5, 15.0)}
# Memory of a thread: bytes, and bytes per byte of an encoded image. Packing transforms the images
_THREAD = {"pack": (12e6, 35), "check": (2e6, 10), "train": (2e6, 10), "embed": (2e6, 10), "tag": (2e6, 10), "dedup": (1e6, 0)}
# Bytes on disk, measured: a row of a step's columns and lists; what each file of columns has besides its rows; and per row what a
# step deletes before it ends (the list of its rows, and the scores that check keeps between its passes)
_COLUMNS = {"check": 2200, "dedup": 128, "semantic": 250, "select": 154, "tag": 200}
_FILE = 12_000
_MEANWHILE = {"check": 2800, "embed": 70, "dedup": 110, "select": 110}
# The page: at most this many pictures, of at most this many bytes each; they are stored as PNG, larger than the JPEGs of small images
_PICTURES, _PICTURE, _PAGE = 24 + 2 * 2 * 8 + 5 * 16, 64_000, 50_000
# Memory of a process, measured: the program, the largest rest that earlier steps left, and of select a row's columns
_PROGRAM, _LEFT, _SELECT_ROW = 42 * 10**6, 10**7, 505
_ROW = {"check": 100, "embed": 130, "dedup": 400, "semantic": 36}
_BATCHES = 10**7  # images of embed and their vectors


@functools.lru_cache(maxsize=64)
def _leat(*words: str) -> dict[str, Any]:
    """Returns what a command prints with --json; {} when it fails."""
    done = subprocess.run([sys.executable, "-P", "-m", "leat", *words, "--json"], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def machine() -> dict[str, Any]:
    return _leat("machine")


def gpus() -> int:
    found = machine().get("gpus")
    return len(found) if isinstance(found, list) else 0


def _sizes(sources: list[str]) -> tuple[int, int]:
    """Returns the number of images and of bytes. For tar shards and other files, the number of images is a guess."""
    count = size = 0
    for source in sources:
        for folder, _, files in os.walk(source):
            count += len(files)
            for name in files:
                try:
                    size += os.stat(os.path.join(folder, name)).st_size
                except OSError:
                    pass
        if os.path.isfile(source):
            size += os.path.getsize(source)
            count += max(os.path.getsize(source) // 100_000, 1)
    return count, size


def facts(run: Run) -> dict[str, Any]:
    """Returns images, bytes, and whether they come over the network."""
    remote = any("://" in source for source in run.sources)
    if run.in_place:
        with Dataset(run.pack) as opened:
            return {"samples": len(opened), "bytes": opened.info.get("bytes", 0) or _sizes([run.pack])[1], "remote": False}
    if remote and len(run.sources) == 1:
        found = _leat("plan", "--dataset", run.sources[0], "--no-measure").get("facts", {})
        samples = int(found.get("samples") or 0)
        return {"samples": samples, "bytes": int(samples * (found.get("sample_bytes") or 0)), "remote": True}
    samples, size = _sizes(run.sources)
    return {"samples": samples, "bytes": size, "remote": remote}


def _dim(run: Run) -> int:
    return _TINY if run.model() == "tiny" else _VECTOR


def _wanted(run: Run, samples: int) -> int:
    options = run.steps["select"] or {}
    return min(int(options.get("count") or samples * (options.get("share") or 1)), samples)


def _cpu_seconds(run: Run, step: str, samples: int, size: int) -> float | None:
    """Returns the CPU time of a step; None where it depends on the model."""
    options = run.steps[step] or {}
    if step == "pack" and run.in_place or samples == 0:
        return 0.0
    if step in ("train", "tag") or step == "embed" and run.model() != "tiny":
        return None
    if step == "semantic":
        return 11e-6 * samples * math.sqrt(samples / 2e5) * _dim(run) / 128
    if step == "select":
        return 20e-6 * samples + ("diversity" in json.dumps(options.get("strategies", ""), default=str)) * (
            4e-9 * samples * _wanted(run, samples) * _dim(run) / 128)
    kept = step == "pack" and options.get("images") == "keep"
    per_mb, per_image = _COST["keep" if kept else step]
    cost = size / 1e6 * per_mb / 1e3 + samples * per_image / 1e6
    if step == "dedup":  # thumbnails compared per image, up to 12 where there are many; the search itself
        cost += samples * (40e-6 * min(12.0, 1e-3 * samples) + 2e-10 * samples)
    part = _wanted(run, samples) / samples if step == "dump" and dump_target(run) else 0 if step == "dump" else 1
    return cost * part


def _train_seconds(run: Run, samples: int, size: int) -> float | None:
    """Returns the hours that `leat plan` predicts for the step train, where it knows the model."""
    options = run.steps["train"] or {}
    words = ["plan", "--model", str(options.get("model")), "--samples", str(max(samples, 1)), "--sample-bytes",
             str(max(size // max(samples, 1), 1)), "--epochs", str(options.get("epochs", 90)), "--batch",
             str(options.get("batch_size", 256))]
    rate = ((_leat(*words).get("speed") or {}).get("samples_per_s") or {}).get("mid")
    return samples * options.get("epochs", 90) / rate if rate else None


def _threads(run: Run, step: str, found: dict[str, Any], cpus: int) -> int:
    """Returns the bytes that the threads of a step hold: at most its memory budget, or half of what is available."""
    options = run.steps[step] or {}
    own, per_byte = _THREAD.get(step, (0, 0))
    held = (options.get("threads") or cpus) * (own + per_byte * found["bytes"] / max(found["samples"], 1))
    most = _check.size("memory", options.get("memory") or 0) or int(machine().get("memory_available_bytes") or 0) // 2
    return int(min(held, most or held))


def _memory(run: Run, step: str, found: dict[str, Any], cpus: int) -> int:
    """Returns the bytes of a step: the part that grows with the number of images, its threads, and the program."""
    dim, samples = _dim(run), found["samples"]
    if step == "select":
        vectors = 4 * dim * (run.on("embed") and needs_vectors(run.steps["select"] or {}))
        rows = samples * (_SELECT_ROW + vectors) + _wanted(run, samples) * vectors  # chosen vectors are held twice
    else:
        rows = samples * _ROW.get(step, 0) + _BATCHES * (step == "embed")
    centres = int(math.sqrt(samples)) * dim * 4 * 33 if step == "semantic" else 0
    in_place = step == "pack" and run.in_place
    return rows + centres + (0 if in_place else _threads(run, step, found, cpus)) + _PROGRAM + _LEFT


def _disk(run: Run, step: str, samples: int, size: int) -> int:
    """Returns the bytes that a step leaves."""
    if step == "pack":
        return 0 if run.in_place else int(size * 1.02) + 60 * samples
    if step == "embed":
        return samples * (4 * _dim(run) + 80) + _FILE
    if step == "dump":
        target, wanted = dump_target(run), _wanted(run, samples)
        return int(size * wanted / max(samples, 1)) * bool(target and "://" not in target) + wanted * 30
    return samples * _COLUMNS[step] + _FILE if step in _COLUMNS else 0


def _meanwhile(run: Run, step: str, samples: int) -> int:
    """Returns the bytes on disk that a step deletes before it ends."""
    parts = 4 * _dim(run) if step == "embed" else 0
    return samples * (_MEANWHILE.get(step, 0) + parts)


def _report(samples: int, size: int) -> int:
    """Returns the most that the page takes: how many pictures it has is known only after the steps."""
    return min(_PICTURES, 4 * samples) * min(4 * size // max(samples, 1), _PICTURE) + _PAGE


def _most_disk(run: Run, rows: list[dict[str, Any]], found: dict[str, Any], report: int) -> int:
    """Returns the most that the run has on disk at any time."""
    left = most = 0
    for row in rows:
        left += row["disk_bytes"]
        most = max(most, left + _meanwhile(run, row["step"], found["samples"]))
    return max(most, left + report)


def _row(run: Run, step: str, found: dict[str, Any], cpus: int) -> dict[str, Any]:
    samples, size = found["samples"], found["bytes"]
    cpu = _cpu_seconds(run, step, samples, size)
    seconds = _train_seconds(run, samples, size) if step == "train" else None if cpu is None else cpu / cpus
    reads = {"pack": size * (not run.in_place), "check": size * (not run.checks_while_packing), "embed": size, "tag": size, "train": size * (
        (run.steps["train"] or {}).get("epochs", 90))}.get(step, 0)
    target = dump_target(run) if step == "dump" else None
    sends = int(size * _wanted(run, samples) / max(samples, 1)) if target and "://" in target else 0
    traffic = (size if step == "pack" and found["remote"] else 0) + sends
    return {"step": step, "hours": None if seconds is None else seconds / 3600, "memory_bytes": _memory(run, step, found, cpus),
            "disk_bytes": _disk(run, step, samples, size), "read_bytes": int(reads), "traffic_bytes": traffic}


def _size(count: int) -> str:
    """Returns a size as the other messages write it. It is rounded up, so that a memory limit of this size is enough."""
    unit = min(4, max(0, count.bit_length() - 1) // 10)
    if unit == 0:
        return f"{count} B"
    digits = max(0, 2 - (len(str(count >> 10 * unit)) - 1))
    return f"{math.ceil(count / 1024**unit * 10**digits) / 10**digits:.{digits}f} {'KMGT'[unit - 1]}iB"


def _least(run: Run, step: str, samples: int) -> int:
    """Returns a budget below which a step refuses this many images; 0 for steps whose need depends on the largest image."""
    options = run.steps[step] or {}
    vector = 4 * _dim(run)
    if step == "dedup":
        return (14 << 20) + 64 * samples
    if step == "semantic":
        return 512 * vector + 40 * samples
    return (41 + vector * (run.on("embed") and needs_vectors(options))) * samples if step == "select" else 0


def _enough(run: Run, step: str, samples: int) -> int:
    """Returns a budget with which a step accepts this many images. For dedup, each image may have the most descriptors: of the whole
    image and without its borders, and of nine windows (leat__dedup_rows_enough)."""
    if step != "dedup":
        return _least(run, step, samples)
    options = run.steps[step] or {}
    entries = samples * (11 if options.get("windows") else 2)
    lists = 4 * math.isqrt(entries) + 1
    index = lists * (2 * 48 + 8 + 48 * 4) + min(entries, 32 * lists) * (48 + 4)
    return _least(run, step, samples) + 4 * entries + index + (options.get("orientations") or 2) * (16 << 10)


def _over_limit(run: Run, steps: list[str], samples: int) -> str:
    """Returns which step needs the most of those that need more than their option `memory`, or ""."""
    over = []
    for step in steps:
        given = _check.size("memory", (run.steps[step] or {}).get("memory") or 0)
        if given and _least(run, step, samples) > given:
            over.append((_enough(run, step, samples), given, step))
    if not over:
        return ""
    need, given, step = max(over)
    return f"{step} needs {_size(need)} of memory, more than the {_size(given)} given"


def _short(run: Run, rows: list[dict[str, Any]], samples: int, disk: int, available: int) -> str:
    """Returns what does not fit, or ""."""
    if over := _over_limit(run, [row["step"] for row in rows], samples):
        return over
    need = max(rows, key=lambda row: row["memory_bytes"])
    if available and need["memory_bytes"] > available:
        return (f"{need['step']} needs {_size(need['memory_bytes'])} of memory, {_size(available)} are "
                "available; divide the images into several runs")
    place = run.folder
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    there = 0
    for folder, _, files in os.walk(run.folder):
        there += sum(os.path.getsize(os.path.join(folder, name)) for name in files if os.path.isfile(os.path.join(folder, name)))
    wanted, free = disk - there, shutil.disk_usage(place).free
    return f"{run.folder}: {_size(wanted)} are needed, {_size(free)} are free there" if wanted > free else ""


def make(run: Run) -> dict[str, Any]:
    """Makes the plan: a row per step, sums, and the machine compared with the rule of thumb."""
    found, here = facts(run), machine()
    cpus = max(int(here.get("cpus_usable") or 1), 1)
    rows = [_row(run, step, found, cpus) for step in run.steps if run.on(step)]
    guide = _leat("plan", "--recommend", "images", "--samples", str(max(found["samples"], 1)))
    memory = int(here.get("memory_limit_bytes") or 0)
    sanity = (f"{memory / GB:.0f} GB of memory for {cpus} vCPU{'s' * (cpus > 1)}; the rule of thumb is "
              f"{_RULE_RAM * cpus / GB:.0f} GB, and {_RULE_VRAM * cpus / GB:.0f} GB of GPU memory where a model runs")
    known = [row["hours"] for row in rows if row["hours"] is not None]
    report = _report(found["samples"], found["bytes"])
    disk = _most_disk(run, rows, found, report)
    return {"samples": found["samples"], "bytes": found["bytes"], "steps": rows, "hours": sum(known),
            "incomplete": len(known) < len(rows), "memory_bytes": max(row["memory_bytes"] for row in rows),
            "disk_bytes": disk, "report_bytes": report, "traffic_bytes": sum(row["traffic_bytes"] for row in rows),
            "cpus": cpus, "gpus": gpus(), "machine": guide.get("machine"), "sanity": sanity,
            "short": _short(run, rows, found["samples"], disk, int(here.get("memory_available_bytes") or 0))}
